/* A plan as text: the ops of each program, then all programs side by side, then the collectives in
 * groups.
 *
 * Durations are those of a kernel with the whole GPU, and of a collective alone on its links. Side
 * by side, one line has the next device op of every program. A program whose next op meets others
 * that have not come prints nothing and holds back, so that ops that meet stand on one line. Where
 * all hold back, all print: a plan that cannot go on is shown, too.
 *
 * Quadratic in collectives (print_collectives) and in programs (holds_back): for reading, not for
 * jobs of any size. */
#include "plan/plan.h"

#include "base/units.h"
#include "plan/meet.h"

#include <stdio.h>

/* In powers of 1024, as PyTorch counts: lines side by side are in one kind of unit. */
static const char *explain_size_text(char *buffer, size_t n, double bytes)
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
    quantity_format(duration, sizeof duration,
        kernel_duration_s(work, &hw->gpu, kernel_whole_gpu(&hw->gpu)), DIM_SECONDS);
    fprintf(out, "%-11s %9s", kernel_kind_names[work->kind], duration);
    if (work->kind == KERNEL_GEMM)
        fprintf(out, "  %lldx%lldx%lld x%lld %s", (long long)work->m, (long long)work->n,
            (long long)work->k, (long long)work->batch, dtype_names[work->math]);
    char read[32], written[32];
    fprintf(out, "  reads %s, writes %s", explain_size_text(read, sizeof read, work->read_bytes),
        explain_size_text(written, sizeof written, work->write_bytes));
}

static struct coll_cost explain_cost_of(const struct plan *plan,
    const struct plan_collective *collective, const struct hw *hw, struct coll_shape *shape)
{
    const struct plan_group *group = &plan->groups.at[collective->group];
    const struct coll_group members = {group->ranks.offset, group->ranks.stride, group->ranks.size};
    *shape = coll_shape(members, hw_gpus_per_node(hw));
    struct hw bridge;
    return coll_of(collective->kind, collective->bytes, collective->routing, *shape,
        coll_hw_of(&bridge, members, hw));
}

static void print_collective(FILE *out, const struct plan *plan,
    const struct plan_collective *collective, const struct hw *hw)
{
    const struct plan_group *group = &plan->groups.at[collective->group];
    struct coll_shape shape;
    struct coll_cost cost = explain_cost_of(plan, collective, hw, &shape);
    char duration[32], latency[32], bytes[32];
    fprintf(out, "%-14s %9s  %s on %s of %d (%d node%s), %s, latency %s, bound by %s",
        coll_kind_names[collective->kind],
        quantity_format(duration, sizeof duration, coll_isolated_s(cost), DIM_SECONDS),
        explain_size_text(bytes, sizeof bytes, collective->bytes), group->name, group->ranks.size,
        shape.nodes, plural(shape.nodes), coll_algorithm_names[cost.algorithm],
        quantity_format(latency, sizeof latency, cost.latency_s, DIM_SECONDS),
        coll_bound_names[coll_bound(&cost)]);
}

static bool explain_alike(const struct plan_collective *a, const struct plan_collective *b)
{
    return a->kind == b->kind && a->bytes == b->bytes && a->group == b->group &&
           a->routing == b->routing;
}

/* Those of one kind, size and group together, in the order of the first of them. */
static void explain_print_collectives(FILE *out, const struct plan *plan, const struct hw *hw)
{
    if (plan->collectives.n > 0)
        fputs("collectives of the step, alone on their links:\n", out);
    for (int i = 0; i < plan->collectives.n; i++) {
        const struct plan_collective *collective = &plan->collectives.at[i];
        int times = 0;
        bool first = true;
        for (int j = 0; j < plan->collectives.n && first; j++)
            if (explain_alike(collective, &plan->collectives.at[j])) {
                first = j >= i;
                times++;
            }
        if (!first)
            continue;
        struct coll_shape shape;
        struct coll_cost cost = explain_cost_of(plan, collective, hw, &shape);
        char each[32], bytes[32], busbw[32];
        fprintf(out,
            "  %5d x %-14s of %-10s on %s of %d (%d node%s): %s each, busbw %s, %s %s, bound by "
            "%s\n",
            times, coll_kind_names[collective->kind],
            explain_size_text(bytes, sizeof bytes, collective->bytes),
            plan->groups.at[collective->group].name, shape.ranks, shape.nodes, plural(shape.nodes),
            quantity_format(each, sizeof each, coll_isolated_s(cost), DIM_SECONDS),
            quantity_format(
                busbw, sizeof busbw, cost.bus_bytes / coll_isolated_s(cost), DIM_BYTES_PER_S),
            coll_algorithm_names[cost.algorithm], coll_protocol_names[cost.protocol],
            coll_bound_names[coll_bound(&cost)]);
    }
}

static void print_message(FILE *out, const struct plan *plan, const struct plan_op *op)
{
    const struct plan_message *message = &plan->messages.at[op->index];
    const struct plan_channel *channel = &plan->channels.at[message->channel];
    bool sends = op->kind == OP_SEND;
    char bytes[32];
    fprintf(out, "%-11s %s %s the rank at %+d on %s", sends ? "send" : "recv",
        explain_size_text(bytes, sizeof bytes, message->bytes), sends ? "to" : "from",
        sends ? channel->delta : -channel->delta, mesh_axis_names[channel->axis]);
}

static void print_buffer(FILE *out, const struct plan_op *op, const struct plan_buffer *buffer)
{
    char bytes[32];
    fprintf(out, "%-11s %s of %s",
        op->kind == OP_KEEP    ? "keep"
        : op->kind == OP_ALLOC ? "alloc"
                               : "free",
        explain_size_text(bytes, sizeof bytes, (double)buffer->bytes),
        hbm_category_names[buffer->category]);
}

static void print_detail(FILE *out, const struct plan *plan, const struct plan_program *program,
    const struct plan_op *op, const struct hw *hw)
{
    switch ((enum op_kind)op->kind) {
    case OP_KERNEL:
        print_kernel(out, &plan->kernels.at[op->index], hw);
        break;
    case OP_COLLECTIVE:
        print_collective(out, plan, &plan->collectives.at[op->index], hw);
        break;
    case OP_SEND:
    case OP_RECV:
        print_message(out, plan, op);
        break;
    case OP_KEEP:
    case OP_ALLOC:
    case OP_FREE:
        print_buffer(out, op, &program->buffers.at[op->index]);
        break;
    case OP_HOST:
        fprintf(out, "host");
        break;
    case OP_HOST_WAIT:
        fprintf(out, "host waits");
        break;
    }
}

static void print_program(
    FILE *out, const struct plan *plan, const struct plan_program *program, const struct hw *hw)
{
    for (int i = 0; i < program->setup.n; i++) {
        const struct plan_buffer *buffer = &program->buffers.at[program->setup.at[i]];
        char bytes[32];
        fprintf(out, "  kept  %-40s %s of %s\n", buffer->name,
            explain_size_text(bytes, sizeof bytes, (double)buffer->bytes),
            hbm_category_names[buffer->category]);
    }
    for (int i = 0; i < program->ops.n; i++) {
        const struct plan_op *op = &program->ops.at[i];
        bool device = op->position >= 0;
        fprintf(out, "%6d %-9s %-9s %-48s ", i, plan_phase_names[op->phase],
            device ? plan->queues.at[op->stream].name : "host", op->name);
        print_detail(out, plan, program, op, hw);
        for (int w = op->first_wait; w < op->first_wait + op->n_waits; w++) {
            int32_t waited = program->waits.at[w];
            fprintf(out, "%s%d%s", w == op->first_wait ? "  after " : ",",
                waited & ~PLAN_PREVIOUS_STEP,
                waited & PLAN_PREVIOUS_STEP ? " (previous step)" : "");
        }
        fputc('\n', out);
    }
}

/* ---- programs side by side ---- */

enum { COLUMN = 34 };

/* The next device op of a program from `at` on, or the number of its ops. */
static int next_device_op(const struct plan_program *program, int at)
{
    while (at < program->ops.n && program->ops.at[at].position < 0)
        at++;
    return at;
}

/* Whether the program stands at an op of which others have not come so far. */
static bool holds_back(
    const struct plan *plan, const struct plan_meets *meets, const int *at, int program)
{
    int number = plan_meets_number(meets, plan, program, at[program]),
        leader = number < 0 ? -1 : meets->leader[number];
    int come = 0;
    for (int p = 0; p < plan->n_programs && leader >= 0; p++) {
        int there = at[p] < plan->programs[p].ops.n ? plan_meets_number(meets, plan, p, at[p]) : -1;
        come += there >= 0 && meets->leader[there] == leader;
    }
    return leader >= 0 && come < meets->n[leader];
}

/* One line: the next op of each program, of which those that hold back print nothing unless all do.
 * False: none left. */
static bool print_line(FILE *out, const struct plan *plan, const struct plan_meets *meets, int *at)
{
    int left = 0, ready = 0;
    bool *go = xcalloc((size_t)plan->n_programs, sizeof *go);
    for (int p = 0; p < plan->n_programs; p++) {
        bool there = at[p] < plan->programs[p].ops.n;
        left += there;
        go[p] = there && !holds_back(plan, meets, at, p);
        ready += go[p];
    }
    for (int p = 0; p < plan->n_programs && left; p++) {
        const struct plan_program *program = &plan->programs[p];
        char cell[COLUMN] = "";
        if (at[p] < program->ops.n && (go[p] || ready == 0)) {
            const struct plan_op *op = &program->ops.at[at[p]];
            snprintf(cell, sizeof cell, "%5d %-8.8s %s", at[p], plan->queues.at[op->stream].name,
                op->name);
            at[p] = next_device_op(program, at[p] + 1);
        }
        fprintf(out, "%s%-*s", p ? " | " : "", p + 1 < plan->n_programs ? COLUMN : 0, cell);
    }
    if (left)
        fputc('\n', out);
    free(go);
    return left > 0;
}

static void print_side_by_side(FILE *out, const struct plan *plan)
{
    struct plan_meets meets;
    char why[256];
    int *at = xcalloc((size_t)plan->n_programs, sizeof *at);
    fprintf(out, "device ops of the %d programs side by side; ops that meet stand on one line:\n",
        plan->n_programs);
    if (!plan_meets_find(&meets, plan, why, sizeof why))
        fprintf(out, "  %s\n", why);
    for (int p = 0; p < plan->n_programs; p++)
        at[p] = next_device_op(&plan->programs[p], 0);
    while (print_line(out, plan, &meets, at))
        continue;
    plan_meets_release(&meets);
    free(at);
}

void plan_explain(FILE *out, const struct plan *plan, const struct hw *hw)
{
    int ranks = plan->mesh.ranks;
    unsigned long long digest = plan_digest(plan);
    if (plan->n_programs == 1)
        fprintf(out,
            "plan of one step for each of %d ranks: %d ops, %.4g model FLOP, %.4g hardware FLOP, "
            "digest %016llx\n",
            ranks, plan_ops(plan), plan_model_flop(plan, ATTENTION_FLOP_CAUSAL),
            plan_hardware_flop(plan, ATTENTION_FLOP_CAUSAL), digest);
    else
        fprintf(out,
            "plan of one step of %d ranks in %d programs: %d ops, %.4g model FLOP of the job, "
            "digest %016llx\n",
            ranks, plan->n_programs, plan_ops(plan),
            plan_model_flop(plan, ATTENTION_FLOP_CAUSAL) * ranks, digest);
    for (int p = 0; p < plan->n_programs; p++) {
        if (plan->n_programs > 1)
            fprintf(out, "program %d, for each of %d ranks: %d ops, %.4g hardware FLOP\n", p,
                plan_program_ranks(plan), plan->programs[p].ops.n, plan->programs[p].hardware_flop);
        print_program(out, plan, &plan->programs[p], hw);
    }
    if (plan->n_programs > 1)
        print_side_by_side(out, plan);
    explain_print_collectives(out, plan, hw);
}
