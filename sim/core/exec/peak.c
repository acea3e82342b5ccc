/* The peak of tensors by counting allocations and frees in program order, twice: what the first
 * step makes and keeps is there in all of the second. A free counts at once, whatever stream still
 * uses the block, as in max_memory_allocated. */
#include "exec/peak.h"

#include "exec/hbm.h"
#include "plan/fold.h"

static int communicators_of(const struct plan *plan, int program)
{
    int communicators = 0;
    unsigned axes = 0;
    for (int g = 0; g < plan->groups.n; g++) {
        const struct mesh_group *ranks = &plan->groups.at[g].ranks;
        communicators +=
            ranks->size > 1 && mesh_group_instance(ranks, plan_first_rank(plan, program)) >= 0;
    }
    for (int c = 0; c < plan->channels.n; c++) { /* send_next and send_prev share one */
        communicators += !(axes & 1U << plan->channels.at[c].axis);
        axes |= 1U << plan->channels.at[c].axis;
    }
    return communicators;
}

void exec_fixed_memory(
    double *category_bytes, const struct plan *plan, int program, const struct hw *hw)
{
    category_bytes[HBM_CONTEXT] = hw->gpu.context_bytes.value;
    category_bytes[HBM_NCCL] = communicators_of(plan, program) * hw->node.nccl_bytes.value;
}

struct exec_peak exec_peak_on(
    struct exec_peak peak, const struct hw_gpu *gpu, double communicator_bytes)
{
    double context = gpu->context_bytes.value, nccl = peak.communicators * communicator_bytes;
    peak.total_bytes = exec_tensors(&peak) + context + nccl;
    peak.category_bytes[HBM_CONTEXT] = peak.largest_category[HBM_CONTEXT] = context;
    peak.category_bytes[HBM_NCCL] = peak.largest_category[HBM_NCCL] = nccl;
    peak.capacity_bytes = gpu->hbm_capacity.value;
    return peak;
}

/* Bytes of tensors. */
struct count {
    int64_t total, peak;
    int last; /* category */
    int64_t now[HBM_CATEGORY_COUNT], at_peak[HBM_CATEGORY_COUNT], largest[HBM_CATEGORY_COUNT];
};

static void peak_change(struct count *count, const struct plan_buffer *buffer, int sign)
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
    count->last = category;
    for (int c = 0; c < HBM_CATEGORY_COUNT; c++)
        count->at_peak[c] = count->now[c];
}

static void count_step(struct count *count, const struct plan_program *program, bool first)
{
    for (int i = 0; i < plan_program_ops(program); i++) {
        const struct plan_op *op =
            program->fold ? plan_fold_op(program->fold, i) : &program->ops.at[i];
        int32_t number;
        if (plan_op_is_memory(op) && (first || op->kind != OP_KEEP))
            peak_change(count,
                program->fold ? plan_fold_buffer(program->fold, i, &number)
                              : &program->buffers.at[op->index],
                op->kind == OP_FREE ? -1 : 1);
    }
}

static void count_setup(struct count *count, const struct plan_program *program)
{
    for (int i = 0; program->fold && i < program->fold->n_setup; i++)
        peak_change(count, &program->fold->setup_buffers[i], 1);
    for (int i = 0; i < program->setup.n; i++)
        peak_change(count, &program->buffers.at[program->setup.at[i]], 1);
}

void exec_program_peak(struct exec_peak *out, const struct plan *plan, int p, const struct hw *hw)
{
    const struct plan_program *program = &plan->programs[p];
    struct count count = {0};
    count_setup(&count, program);
    count_step(&count, program, true);
    count_step(&count, program, false);
    *out = (struct exec_peak){.last = count.last,
        .kept_state_bytes = (double)count.now[HBM_OPTIMIZER],
        .host_bytes = program->host_bytes,
        .total_bytes = (double)count.peak,
        .communicators = communicators_of(plan, p)};
    for (int c = 0; c < HBM_CATEGORY_COUNT; c++) {
        out->category_bytes[c] = (double)count.at_peak[c];
        out->largest_category[c] = (double)count.largest[c];
    }
    *out = exec_peak_on(*out, &hw->gpu, hw->node.nccl_bytes.value);
}

void exec_peak(struct exec_peak *out, const struct plan *plan, const struct hw *hw)
{
    exec_program_peak(out, plan, 0, hw);
    for (int p = 1; p < plan->n_programs; p++) {
        struct exec_peak peak;
        exec_program_peak(&peak, plan, p, hw);
        if (exec_room(&peak) < exec_room(out))
            *out = peak;
    }
}
