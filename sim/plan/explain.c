#include "plan/plan.h"

#include "base/units.h"

#include <stdio.h>

/* In powers of 1024, as PyTorch counts: lines side by side are in one kind of unit. */
static const char *size_text(char *buffer, size_t n, double bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    size_t unit = 0;
    for (; bytes >= 1024 && unit + 1 < sizeof units / sizeof *units; unit++)
        bytes /= 1024;
    snprintf(buffer, n, "%.4g %s", bytes, units[unit]);
    return buffer;
}

static void print_kernel(FILE *out, const struct kernel_work *work, const struct hw *hw)
{
    char duration[32];
    quantity_format(
        duration, sizeof duration, kernel_duration_s(work, &hw->gpu, kernel_whole_gpu(&hw->gpu)), DIM_SECONDS);
    fprintf(out, "%-11s %9s", kernel_kind_names[work->kind], duration);
    if (work->kind == KERNEL_GEMM)
        fprintf(out, "  %lldx%lldx%lld x%lld %s", (long long)work->m, (long long)work->n, (long long)work->k,
            (long long)work->batch, dtype_names[work->math]);
    char read[32], written[32];
    fprintf(out, "  reads %s, writes %s", size_text(read, sizeof read, work->read_bytes),
        size_text(written, sizeof written, work->write_bytes));
}

static struct coll_cost cost_of(
    const struct plan *plan, const struct plan_collective *collective, const struct hw *hw, struct coll_shape *shape)
{
    const struct plan_group *group = &plan->groups.at[collective->group];
    *shape = coll_shape((struct coll_group){0, group->stride, group->size}, hw_gpus_per_node(hw));
    return coll_choose(collective->kind, collective->bytes, *shape, hw, COLL_FREE);
}

static void print_collective(
    FILE *out, const struct plan *plan, const struct plan_collective *collective, const struct hw *hw)
{
    const struct plan_group *group = &plan->groups.at[collective->group];
    struct coll_shape shape;
    struct coll_cost cost = cost_of(plan, collective, hw, &shape);
    char duration[32], latency[32], bytes[32];
    fprintf(out, "%-14s %9s  %s on %s of %d (%d node%s), %s, latency %s, bound by %s",
        coll_kind_names[collective->kind],
        quantity_format(duration, sizeof duration, coll_isolated_s(cost), DIM_SECONDS),
        size_text(bytes, sizeof bytes, collective->bytes), group->name, group->size, shape.nodes, plural(shape.nodes),
        coll_algorithm_names[cost.algorithm], quantity_format(latency, sizeof latency, cost.latency_s, DIM_SECONDS),
        coll_bound_names[coll_bound(&cost)]);
}

static bool alike(const struct plan_collective *a, const struct plan_collective *b)
{
    return a->kind == b->kind && a->bytes == b->bytes && a->group == b->group;
}

/* Those of one kind, size and group together, in the order of the first of them. */
static void print_collectives(FILE *out, const struct plan *plan, const struct hw *hw)
{
    if (plan->collectives.n > 0)
        fputs("collectives of the step, alone on their links:\n", out);
    for (int i = 0; i < plan->collectives.n; i++) {
        const struct plan_collective *collective = &plan->collectives.at[i];
        int times = 0;
        bool first = true;
        for (int j = 0; j < plan->collectives.n && first; j++)
            if (alike(collective, &plan->collectives.at[j])) {
                first = j >= i;
                times++;
            }
        if (!first)
            continue;
        struct coll_shape shape;
        struct coll_cost cost = cost_of(plan, collective, hw, &shape);
        char each[32], bytes[32], busbw[32];
        fprintf(out, "  %5d x %-14s of %-10s on %s of %d (%d node%s): %s each, busbw %s, %s %s, bound by %s\n", times,
            coll_kind_names[collective->kind], size_text(bytes, sizeof bytes, collective->bytes),
            plan->groups.at[collective->group].name, shape.ranks, shape.nodes, plural(shape.nodes),
            quantity_format(each, sizeof each, coll_isolated_s(cost), DIM_SECONDS),
            quantity_format(busbw, sizeof busbw, cost.bus_bytes / coll_isolated_s(cost), DIM_BYTES_PER_S),
            coll_algorithm_names[cost.algorithm], coll_protocol_names[cost.protocol],
            coll_bound_names[coll_bound(&cost)]);
    }
}

static void print_detail(FILE *out, const struct plan *plan, const struct plan_op *op, const struct hw *hw)
{
    char bytes[32];
    switch ((enum op_kind)op->kind) {
    case OP_KERNEL:
        print_kernel(out, &plan->kernels.at[op->index], hw);
        break;
    case OP_COLLECTIVE:
        print_collective(out, plan, &plan->collectives.at[op->index], hw);
        break;
    case OP_KEEP:
    case OP_ALLOC:
    case OP_FREE:
        fprintf(out, "%-11s %s of %s",
            op->kind == OP_KEEP    ? "keep"
            : op->kind == OP_ALLOC ? "alloc"
                                   : "free",
            size_text(bytes, sizeof bytes, (double)plan->buffers.at[op->index].bytes),
            hbm_category_names[plan->buffers.at[op->index].category]);
        break;
    case OP_HOST:
        fprintf(out, "host");
        break;
    case OP_HOST_WAIT:
        fprintf(out, "host waits");
        break;
    }
}

void plan_explain(FILE *out, const struct plan *plan, const struct hw *hw)
{
    fprintf(out, "plan of one step for each of %d ranks: %d ops, %.4g model FLOP, %.4g hardware FLOP, digest %016llx\n",
        plan->ranks, plan->ops.n, plan->model_flop, plan->hardware_flop, (unsigned long long)plan_digest(plan));
    for (int i = 0; i < plan->setup.n; i++) {
        const struct plan_buffer *buffer = &plan->buffers.at[plan->setup.at[i]];
        char bytes[32];
        fprintf(out, "  kept  %-40s %s of %s\n", buffer->name, size_text(bytes, sizeof bytes, (double)buffer->bytes),
            hbm_category_names[buffer->category]);
    }
    for (int i = 0; i < plan->ops.n; i++) {
        const struct plan_op *op = &plan->ops.at[i];
        bool device = op->position >= 0;
        fprintf(out, "%6d %-9s %-9s %-48s ", i, plan_phase_names[op->phase],
            device ? plan_stream_names[op->stream] : "host", op->name);
        print_detail(out, plan, op, hw);
        for (int w = op->first_wait; w < op->first_wait + op->n_waits; w++) {
            int32_t waited = plan->waits.at[w];
            fprintf(out, "%s%d%s", w == op->first_wait ? "  after " : ",", waited & ~PLAN_PREVIOUS_STEP,
                waited & PLAN_PREVIOUS_STEP ? " (previous step)" : "");
        }
        fputc('\n', out);
    }
    print_collectives(out, plan, hw);
}
