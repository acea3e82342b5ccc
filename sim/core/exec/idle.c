/* Why the compute queue was idle: for the host, for a collective or message, for a stage that had
 * not come yet. It follows what has been waited for back in time, and changes nothing of what is
 * simulated. */
#include "exec/state.h"

ps_t idle_in_collectives(const struct sim *sim, const struct rank *rank)
{
    return rank->comm_total +
           (rank->in_collective ? sim->machine->engine.now - rank->comm_since : 0);
}

enum plan_parallelism idle_serves(const struct sim *sim, const struct plan_op *op)
{
    const struct plan *plan = sim->plan;
    if (op->kind == OP_COLLECTIVE)
        return plan->collectives.at[op->index].serves;
    return plan_parallelism_of(1U << plan->channels.at[plan->messages.at[op->index].channel].axis);
}

bool idle_meets_stages(const struct sim *sim, const struct plan_op *op)
{
    const struct plan *plan = sim->plan;
    if (op->kind == OP_COLLECTIVE)
        return sim->meetings.group_meets_stages[plan->collectives.at[op->index].group];
    return plan->n_programs > 1 &&
           plan->channels.at[plan->messages.at[op->index].channel].axis == plan->program_axis;
}

/* Of what the op waited for on other queues, the op that ended last, if its queue knows of it
 * still. */
static const struct queue *awaited_last(const struct rank *rank, int32_t number)
{
    const struct plan_op *op = op_of(rank, number);
    const struct queue *last = NULL;
    for (int w = 0; w < op->n_waits; w++) {
        plan_wait wait = wait_of(rank, number, w) & ~PLAN_PREVIOUS_STEP;
        const struct queue *queue = &rank->queues[op_of(rank, wait)->stream];
        if (op_of(rank, wait)->stream != op->stream && queue->last_op == wait && queue->done > 0 &&
            (!last || queue->idle_since > last->idle_since))
            last = queue;
    }
    return last;
}

/* Idle for communication, `left` of the time from one instant to another at which `op` could go on:
 * to what the op waited for, before that to what this waited for, and so on. What is left then goes
 * where the last part went. */
static void idle_attribute(
    struct sim *sim, struct rank *rank, const struct queue *last, ps_t from, ps_t until, ps_t left)
{
    enum plan_parallelism serves = PARALLEL_DATA;
    ps_t bubble = 0, all = left;
    for (int hop = 0; hop < sim->n_queues && last && left > 0 && until > from; hop++) {
        const struct plan_op *op = op_of(rank, last->last_op);
        ps_t began = last->last_began > from ? last->last_began : from;
        began = began < until ? began : until;
        if (plan_op_is_comm(op)) {
            ps_t moved = last->last_moved > began ? last->last_moved : began;
            moved = moved < until ? moved : until;
            serves = idle_serves(sim, op);
            ps_t moving = until - moved < left ? until - moved : left;
            left -= moving;
            ps_t waiting = moved - began < left ? moved - began : left;
            left -= waiting;
            bool stages = idle_meets_stages(sim, op);
            bubble += stages ? waiting : 0;
            rank->spent[SPENT_EXPOSED + (int)serves] += stages ? moving : moving + waiting;
            rank->spent[SPENT_EXPOSED_WAIT] += stages ? 0 : waiting;
        }
        until = began;
        last = awaited_last(rank, last->last_op);
    }
    rank->spent[SPENT_EXPOSED + (int)serves] += left;
    rank->spent[SPENT_BUBBLE] += bubble;
    rank->spent[SPENT_EXPOSED_COMM] += all - bubble;
}

/* The collective or message that the host was blocked for last, before it issued the queue's op;
 * NULL: it was not, or for another op. */
static const struct queue *blocked_for(const struct rank *rank, const struct queue *issued)
{
    const struct queue *last = NULL;
    int32_t first = issued->issue_first;
    if (first == 0 &&
        op_of(rank, first)->kind != OP_HOST_WAIT) /* the step before may have ended with one */
        for (first = rank->tables->n_ops - 1; first > 0 && op_of(rank, first)->kind == OP_HOST;)
            first--;
    for (int32_t i = first; i >= 0 && op_of(rank, i)->kind == OP_HOST_WAIT; i--) {
        const struct queue *queue = awaited_last(rank, i);
        if (queue && (!last || queue->idle_since > last->idle_since))
            last = queue;
    }
    return last && plan_op_is_comm(op_of(rank, last->last_op)) ? last : NULL;
}

/* The host had not issued the op, or it waited for others. Kernels of other queues mostly wait for
 * a collective themselves, as the sharded gradients' casts do for the reduce-scatter. */
void idle_account(struct sim *sim, struct rank *rank, const struct queue *queue)
{
    ps_t now = sim->machine->engine.now, idle = now - queue->idle_since;
    if (idle == 0)
        return;
    ps_t host = queue->issue > queue->idle_since ? queue->issue - queue->idle_since : 0;
    bool for_comm = false;
    for (int w = 0; w < queue_op(queue)->n_waits; w++) {
        plan_wait wait = wait_of(rank, queue->op, w) & ~PLAN_PREVIOUS_STEP;
        for_comm |= plan_queue_is_comm(sim->plan, op_of(rank, wait)->stream);
    }
    ps_t waited = idle - host, in_comm = idle_in_collectives(sim, rank) - queue->idle_comm;
    ps_t comm = for_comm || in_comm > waited ? waited : in_comm;
    if (comm > 0)
        idle_attribute(sim, rank, awaited_last(rank, queue->op), now - waited, now, comm);
    const struct queue *comm_queue =
        host > 0 && queue->issue_base > queue->idle_since ? blocked_for(rank, queue) : NULL;
    if (comm_queue) {
        ps_t end =
            queue->issue_base < comm_queue->idle_since ? queue->issue_base : comm_queue->idle_since;
        ps_t blocked = end - queue->idle_since;
        blocked = blocked < 0 ? 0 : blocked < host ? blocked : host;
        idle_attribute(
            sim, rank, comm_queue, queue->idle_since, queue->idle_since + blocked, blocked);
        host -= blocked;
    }
    rank->spent[SPENT_HOST_BOUND] += host;
}
