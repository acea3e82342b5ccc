/* Two passes whose ops are launched in turns: see plan_weave() in plan.h.
 *
 * First the new order is made: weave_take() moves runs of ops, cut where exchanges of tokens begin
 * and where the first kernel needs what was exchanged. Then ops, waits and cells are moved by it. A
 * wait is translated to the new place of its op. If that place is later than the waiting op, which
 * only a wait for the end of a whole pass can bring about, it becomes a wait for the last op that
 * the queue has before it. */
#include "plan/plan.h"

#include <stdlib.h>

/* Of tokens; counts of them are gathered with what is computed before. */
static bool weave_is_exchange(const struct plan_builder *builder, int i)
{
    const struct plan_op *op = &builder->program->ops.at[i];
    if (op->kind != OP_COLLECTIVE)
        return false;
    const struct plan_collective *collective = &builder->plan->collectives.at[op->index];
    return collective->kind == COLL_ALL_TO_ALL && collective->serves == PARALLEL_EXPERT;
}

/* A kernel that needs what was exchanged. */
static bool needs_exchange(const struct plan_builder *builder, int i)
{
    const struct plan_program *program = builder->program;
    const struct plan_op *op = &program->ops.at[i];
    bool needs = false;
    for (int w = 0; w < op->n_waits && op->kind == OP_KERNEL && op->stream == STREAM_COMPUTE; w++) {
        plan_wait wait = program->waits.at[op->first_wait + w];
        needs |= wait < PLAN_PREVIOUS_STEP && weave_is_exchange(builder, wait);
    }
    return needs;
}

/* The end of what is computed from op at on: the next exchange, and before it what the host
 * allocates and waits for. */
static int end_of_computation(const struct plan_builder *builder, int at, int end)
{
    int i = at;
    while (i < end && !weave_is_exchange(builder, i))
        i++;
    if (i == end)
        return end;
    const struct plan_op *ops = builder->program->ops.at;
    while (i > at && (ops[i - 1].kind == OP_HOST_WAIT || ops[i - 1].kind == OP_HOST ||
                         plan_op_is_memory(&ops[i - 1])))
        i--;
    return i;
}

static int end_of_exchange(const struct plan_builder *builder, int at, int end)
{
    while (at < end && !needs_exchange(builder, at))
        at++;
    return at;
}

/* The new order: at place i the old op order[i], and the other way round. */
struct order {
    int *order, *place, n;
};

static void weave_take(struct order *order, int *at, int end)
{
    for (; *at < end; (*at)++) {
        order->place[*at] = order->n;
        order->order[order->n++] = *at;
    }
}

static void weave_pair(
    struct order *order, const struct plan_builder *builder, const struct plan_pair *pair)
{
    int first = pair->first, second = pair->second;
    weave_take(order, &second, end_of_computation(builder, second, pair->end));
    weave_take(order, &second, end_of_exchange(builder, second, pair->end));
    while (first < pair->second || second < pair->end) {
        weave_take(order, &first, end_of_computation(builder, first, pair->second));
        weave_take(order, &second, end_of_computation(builder, second, pair->end));
        weave_take(order, &first, end_of_exchange(builder, first, pair->second));
        weave_take(order, &second, end_of_exchange(builder, second, pair->end));
    }
}

/* What an op waited for at its old place; where that comes later now, all that the queue has before
 * the op. */
static plan_wait weave_moved(
    const struct order *order, plan_wait wait, int place, const int *last_of_queue, int queue)
{
    if (wait >= PLAN_PREVIOUS_STEP)
        return PLAN_PREVIOUS_STEP + order->place[wait - PLAN_PREVIOUS_STEP];
    int to = order->place[wait];
    BUG_IF(to >= place && last_of_queue[queue] < 0, "op %d waits for nothing", place);
    return to < place ? to : last_of_queue[queue];
}

static void move_ops(struct plan_builder *builder, const struct order *order)
{
    struct plan_program *program = builder->program;
    struct plan_op *old = xcalloc((size_t)order->n, sizeof *old);
    int *last_of_queue = xcalloc((size_t)builder->plan->queues.n, sizeof *last_of_queue);
    for (int i = 0; i < order->n; i++)
        old[i] = program->ops.at[i];
    for (int q = 0; q < builder->plan->queues.n; q++)
        last_of_queue[q] = PLAN_NO_OP;
    for (int i = 0; i < order->n; i++) {
        struct plan_op *op = &program->ops.at[i];
        *op = old[order->order[i]];
        for (int w = 0; w < op->n_waits; w++) {
            plan_wait *wait = &program->waits.at[op->first_wait + w];
            *wait =
                weave_moved(order, *wait, i, last_of_queue, old[*wait % PLAN_PREVIOUS_STEP].stream);
        }
        if (op->kind == OP_KERNEL || plan_op_is_comm(op))
            last_of_queue[op->stream] = i;
    }
    free(last_of_queue);
    free(old);
}

/* A cell goes on wherever ops of another one lay between. */
static void move_cells(struct plan_program *program, const struct order *order)
{
    struct plan_cell *cells = xcalloc((size_t)order->n + 1, sizeof *cells);
    for (int i = 0; i < order->n; i++)
        cells[i] = plan_cell_of(program, order->order[i]);
    program->cells.n = 0;
    for (int i = 0; i < order->n; i++) {
        const struct plan_cell *before = i > 0 ? &cells[i - 1] : &(struct plan_cell){.pass = NULL};
        bool same = cells[i].pass == before->pass && cells[i].micro_batch == before->micro_batch &&
                    cells[i].chunk == before->chunk;
        cells[i].first_op = i;
        if (!same)
            vec_push(&program->cells, cells[i]);
    }
    free(cells);
}

void plan_weave(struct plan_builder *builder, const struct plan_pair *pairs, int n)
{
    size_t room = (size_t)builder->program->ops.n + 1;
    struct order order = {.order = xcalloc(room, sizeof *order.order),
        .place = xcalloc(room, sizeof *order.place),
        .n = 0};
    int next = 0;
    for (int p = 0; p < n; p++) {
        weave_take(&order, &next, pairs[p].first);
        weave_pair(&order, builder, &pairs[p]);
        next = pairs[p].end;
    }
    weave_take(&order, &next, builder->program->ops.n);
    move_cells(builder->program, &order);
    move_ops(builder, &order);
    free(order.place);
    free(order.order);
}
