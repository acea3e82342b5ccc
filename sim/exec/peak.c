#include "exec/peak.h"

#include "exec/hbm.h"

void exec_fixed_memory(double *category_bytes, const struct plan *plan, const struct hw *hw)
{
    int communicators = 0;
    for (int g = 0; g < plan->groups.n; g++)
        communicators += plan->groups.at[g].size > 1;
    category_bytes[HBM_CONTEXT] = hw->gpu.context_bytes.value;
    category_bytes[HBM_NCCL] = communicators * hw->node.nccl_bytes.value;
}

/* Bytes of tensors. */
struct count {
    int64_t total, peak;
    int64_t now[HBM_CATEGORY_COUNT], at_peak[HBM_CATEGORY_COUNT], largest[HBM_CATEGORY_COUNT];
};

static void change(struct count *count, const struct plan_buffer *buffer, int sign)
{
    int category = buffer->category;
    int64_t bytes = sign * hbm_round(buffer->bytes);
    count->now[category] += bytes;
    count->total += bytes;
    if (count->now[category] > count->largest[category])
        count->largest[category] = count->now[category];
    if (count->total <= count->peak)
        return;
    count->peak = count->total;
    for (int c = 0; c < HBM_CATEGORY_COUNT; c++)
        count->at_peak[c] = count->now[c];
}

static void count_step(struct count *count, const struct plan *plan, bool first)
{
    for (int i = 0; i < plan->ops.n; i++) {
        const struct plan_op *op = &plan->ops.at[i];
        if (plan_op_is_memory(op) && (first || op->kind != OP_KEEP))
            change(count, &plan->buffers.at[op->index], op->kind == OP_FREE ? -1 : 1);
    }
}

void exec_peak(struct exec_peak *out, const struct plan *plan, const struct hw *hw)
{
    struct count count = {0};
    for (int i = 0; i < plan->setup.n; i++)
        change(&count, &plan->buffers.at[plan->setup.at[i]], 1);
    count_step(&count, plan, true);
    count_step(&count, plan, false);
    *out = (struct exec_peak){0};
    for (int c = 0; c < HBM_CATEGORY_COUNT; c++) {
        out->category_bytes[c] = (double)count.at_peak[c];
        out->largest_category[c] = (double)count.largest[c];
    }
    exec_fixed_memory(out->category_bytes, plan, hw);
    exec_fixed_memory(out->largest_category, plan, hw);
    out->total_bytes = (double)count.peak + out->category_bytes[HBM_CONTEXT] + out->category_bytes[HBM_NCCL];
}
