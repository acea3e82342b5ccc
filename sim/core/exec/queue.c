/* Queues: ops start in order, kernels run at the speed that collectives beside them leave.
 *
 * A queue tries to start its next op when something may have changed: the host has come further, an
 * op of its rank that others wait for has ended, or its time of issue has come. Bits of the rank
 * say which queues are worth a try: one that waits for an op of another queue (blocked) or for the
 * host (unissued) is not looked at before that has happened.
 *
 * A running kernel has an event at its end. When the SMs that collectives hold, their traffic or
 * the GPU's speed change, account_progress() takes off what is done at the old speed, and
 * schedule_ends() sets new ends; the queue's epoch makes the old events void. Compute times are
 * kept per kernel for each number of held SMs that has occurred (sm_states).
 *
 * Subtle: an event may come at the instant at which another has already started the op; then the
 * epoch differs. Sums over queues are made anew each time, never by adding and taking away, so that
 * they return to exactly 0. */
#include "base/digest.h"
#include "exec/state.h"

#include <math.h>
#include <string.h>

void queue_arm(struct sim *sim, int rank_index, int queue_index, ps_t end)
{
    engine_at(&sim->machine->engine, end, sim->events.queue,
        (uint32_t)(rank_index * sim->n_queues + queue_index),
        ++sim->ranks[rank_index].queues[queue_index].epoch);
}

/* Of the whole running kernel at the current speed. */
static double running_ps(const struct sim *sim, const struct rank *rank, const struct queue *queue)
{
    return queue_kernel_ps(sim, rank, queue_op(queue)->index, queue->draws, queue->start_s);
}

static void start_kernel(struct sim *sim, int rank_index, int queue_index, const struct plan_op *op)
{
    struct rank *rank = &sim->ranks[rank_index];
    struct queue *queue = &rank->queues[queue_index];
    queue->draws = queue_draw(sim, rank, queue, queue->op, 0);
    queue->state = QUEUE_RUNNING;
    rank->waiting &= ~queue_bit(queue_index);
    rank->running |= queue_bit(queue_index);
    queue->started = sim->machine->engine.now;
    queue->left = 1;
    queue->spent = 0;
    double alone_ps = queue_isolated_ps(sim, rank, op->index, queue->draws);
    queue->alone_ps = ps_round(alone_ps);
    queue->start_s = queue_start_s(sim, rank, op->index, queue->started);
    queue->end =
        queue->started + ps_round(rank->sm_state ? running_ps(sim, rank, queue) : alone_ps);
    if (tracing_busy(sim, rank_index, queue_index))
        trace_busy(sim, rank_index, true);
    if (queue_index == STREAM_COMPUTE)
        ahead_look(sim, rank_index);
    else
        queue_arm(sim, rank_index, queue_index, queue->end);
}

void queue_count(struct sim *sim, struct rank *rank, int queue_index, ps_t end)
{
    struct queue *queue = &rank->queues[queue_index];
    if (queue_index == STREAM_COMPUTE && measuring(sim, queue->step)) {
        ps_t spent = queue->spent + end - queue->started;
        rank->spent[SPENT_COMPUTE] += spent;
        rank->spent[SPENT_CONTENTION] += spent - queue->alone_ps;
        rank->spent[SPENT_OPTIMIZER] += queue_op(queue)->phase == PHASE_OPTIMIZER ? spent : 0;
    }
    queue->done++;
    rank->done++;
}

void queue_resume(struct sim *sim, int rank_index, int queue_index, const struct queue *quiet)
{
    struct rank *rank = &sim->ranks[rank_index];
    struct queue *queue = &rank->queues[queue_index];
    queue->position = quiet->position;
    queue->op = quiet->op;
    queue->cursor = quiet->cursor;
    queue->done = quiet->done;
    queue->step = quiet->step;
    queue->idle_since = sim->machine->engine.now;
    if (quiet->state != QUEUE_RUNNING)
        return;
    queue->state = QUEUE_RUNNING;
    rank->waiting &= ~queue_bit(queue_index);
    rank->running |= queue_bit(queue_index);
    queue->draws = quiet->draws;
    queue->started = quiet->started;
    queue->left = quiet->left;
    queue->spent = quiet->spent;
    queue->alone_ps = quiet->alone_ps;
    queue->end = quiet->end;
}

static void start_comm(struct sim *sim, int rank_index, int queue_index, int32_t op_index)
{
    struct rank *rank = &sim->ranks[rank_index];
    struct queue *queue = &rank->queues[queue_index];
    queue->state = QUEUE_IN_COMM;
    rank->waiting &= ~queue_bit(queue_index);
    queue->started = sim->machine->engine.now;
    if (rank->in_collective++ == 0)
        rank->comm_since = sim->machine->engine.now;
    communicator_arrive(sim, rank_index, op_index);
}

/* When the op that a queue is before was issued; PS_NEVER: the host has not come to it and tries
 * all queues when it goes on. */
static ps_t issue_of_next(const struct rank *rank, struct queue *queue)
{
    if (queue->issue_known)
        return queue->issue;
    ps_t issue = host_issue_time(rank, queue->step, queue->op, plan_cursor_host_s(&queue->cursor));
    if (issue != PS_NEVER) {
        queue->issue = issue;
        queue->issue_base = rank->host_base;
        queue->issue_first = rank->host_first;
        queue->issue_known = true;
    }
    return issue;
}

/* A queue waits for an op of another one: it is not tried again before that op has ended. */
static void queue_block(struct rank *rank, int queue_index, struct wanted wanted)
{
    struct queue *on = wanted.queue;
    on->blocks_until =
        on->blocks && on->blocks_until < wanted.done ? on->blocks_until : wanted.done;
    on->blocks |= queue_bit(queue_index);
    rank->blocked |= queue_bit(queue_index);
}

static void unblock(struct rank *rank, struct queue *queue)
{
    if (!queue->blocks || queue->done < queue->blocks_until)
        return;
    rank->blocked &= ~queue->blocks;
    queue->blocks = 0;
}

/* The queue is not tried again before the host has come to its op. */
static void wait_for_host(struct rank *rank, int queue_index, int64_t op)
{
    rank->unissued_from = rank->unissued && rank->unissued_from < op ? rank->unissued_from : op;
    rank->unissued |= queue_bit(queue_index);
}

static void try_start(struct sim *sim, int rank_index, int queue_index)
{
    struct rank *rank = &sim->ranks[rank_index];
    struct queue *queue = &rank->queues[queue_index];
    if (queue->state != QUEUE_WAITING || queue->step == sim->total_steps)
        return;
    int32_t op_index = queue->op;
    const struct plan_op *op = queue_op(queue);
    ps_t issue = issue_of_next(rank, queue);
    if (issue == PS_NEVER) {
        wait_for_host(rank, queue_index, (int64_t)queue->step * rank->tables->n_ops + op_index);
        return;
    }
    rank->unissued &= ~queue_bit(queue_index);
    if (issue > sim->machine->engine.now) {
        if (!queue->wake_pending)
            queue_arm(sim, rank_index, queue_index, issue);
        queue->wake_pending = true;
        return;
    }
    struct wanted wanted = unsatisfied_wait(rank, &queue->cursor, queue->step);
    if (wanted.queue) {
        queue_block(rank, queue_index, wanted);
        return;
    }
    queue->wake_pending = false; /* another event of this instant may have come before it: */
    queue->epoch++;              /* it is superseded */
    if (queue_index == STREAM_COMPUTE && measuring(sim, queue->step))
        idle_account(sim, rank, queue);
    if (op->kind == OP_KERNEL)
        start_kernel(sim, rank_index, queue_index, op);
    else
        start_comm(sim, rank_index, queue_index, op_index);
}

bool queue_may_start(const struct rank *rank)
{
    return (rank->waiting & ~rank->blocked & ~rank->unissued) != 0 ||
           (rank->unissued && rank->unissued_from < host_reached(rank));
}

void queue_try_all(struct sim *sim, int rank_index)
{
    struct rank *rank = &sim->ranks[rank_index];
    if (rank->unissued && rank->unissued_from < host_reached(rank))
        rank->unissued = 0;
    for
        EACH_QUEUE(q, rank->waiting & ~rank->blocked & ~rank->unissued)
    try_start(sim, rank_index, (int)q);
}

/* What links carry outside the measured time counts neither at its beginning nor at its end. */
static void count_carried(struct sim *sim, double sign)
{
    for (int l = 0; l < sim->machine->net.capacity.n; l++)
        sim->measure.carried[l] += sign * net_carried(&sim->machine->net, l);
}

static void end_step(struct sim *sim, int32_t step)
{
    if (step >= sim->total_steps)
        return;
    sim->measure.step_end[step] =
        sim->machine->engine.now; /* the last rank to come here leaves the latest time */
    sim->measure.step_ranks[step]++;
    if (sim->measure.step_ranks[step] < sim->n_ranks)
        return;
    if (step + 1 == sim->options->warmup_steps) {
        sim->measure.from = sim->machine->engine.now;
        count_carried(sim, -1);
    }
    if (step + 1 < sim->total_steps)
        return;
    count_carried(sim, 1);
}

/* In this order: kernels ahead are settled, the op counts, queues that waited for it are released,
 * the cursor goes on, then the host and at last queues are tried. An op that nobody waits for tries
 * its queue alone. */
void queue_finish(struct sim *sim, int rank_index, int queue_index)
{
    struct rank *rank = &sim->ranks[rank_index];
    struct queue *queue = &rank->queues[queue_index];
    ahead_settle(sim, rank_index);
    queue_count(sim, rank, queue_index, sim->machine->engine.now);
    if (queue_index == STREAM_COMPUTE && ahead_finish(sim, rank_index))
        return;
    if (queue->state == QUEUE_IN_COMM && --rank->in_collective == 0)
        rank->comm_total += sim->machine->engine.now - rank->comm_since;
    queue->state = QUEUE_WAITING;
    rank->waiting |= queue_bit(queue_index);
    rank->running &= ~queue_bit(queue_index);
    unblock(rank, queue);
    queue->idle_since = sim->machine->engine.now;
    queue->idle_comm = idle_in_collectives(sim, rank);
    queue->issue_known = false;
    queue->last_op = queue->op;
    queue->last_began = queue->started;
    bool awaited = plan_cursor_awaited(&queue->cursor);
    if (queue_go_on(rank, queue_index) && queue_index == STREAM_COMPUTE)
        end_step(sim, queue->step - 1);
    host_check(sim, rank_index);
    if (awaited)
        queue_try_all(sim, rank_index);
    else
        try_start(sim, rank_index, queue_index);
    ahead_rearm(sim, rank_index);
}

void queue_on_event(void *self, const struct event *event)
{
    struct sim *sim = self;
    struct queue *queue =
        &sim->queues[event->target]; /* not by way of its rank: half of the events are superseded */
    if (event->arg != queue->epoch)
        return;
    int rank_index = (int)event->target / sim->n_queues,
        queue_index = (int)event->target % sim->n_queues;
    if (queue->wake_pending) {
        queue->wake_pending = false;
        try_start(sim, rank_index, queue_index);
        return;
    }
    if (queue_index == STREAM_COMPUTE)
        ahead_settle(sim, rank_index);
    if (tracing_busy(sim, rank_index, queue_index)) {
        trace_busy(sim, rank_index, false);
    } else if (tracing(sim, rank_index, queue_index)) {
        ps_t start = queue->started - queue->spent;
        trace_record(sim, rank_index, queue_index,
            (struct exec_span){.start = start, .moving = start, .alone = queue->alone_ps});
    }
    queue_finish(sim, rank_index, queue_index);
}

static void queue_prefetch(const void *at, size_t bytes)
{
    enum { CACHE_LINE = 64 };
    for (size_t i = 0; i < bytes; i += CACHE_LINE)
        __builtin_prefetch((const char *)at + i, 1);
}

void queue_prepare(const void *self, const struct event *event)
{
    const struct sim *sim = self;
    queue_prefetch(&sim->queues[event->target], sizeof *sim->queues);
    queue_prefetch(&sim->ranks[event->target / (uint32_t)sim->n_queues], sizeof *sim->ranks);
}

/* Of the time of a kernel that HBM limits, by what collectives beside it take. When a collective
 * starts, all its ranks ask for the same, and those of a layer do in each micro-batch. */
static double memory_slowdown(struct sim *sim, const struct rank *rank, double hbm_Bps)
{
    uint64_t bits;
    memcpy(&bits, &hbm_Bps, sizeof bits);
    struct slowdown *last =
        &sim->costs.slowdowns[digest_word(bits, (uint64_t)rank->sm_state) % SLOWDOWNS];
    const struct hw_gpu *gpu = &sim->costs.hw->gpu;
    if (last->sm_state == rank->sm_state && last->hbm_Bps == hbm_Bps)
        return last->factor;
    struct kernel_share share = kernel_whole_gpu(gpu);
    struct kernel_work byte =
        kernel_stream(KERNEL_COPY, 1e9, 0, 0); /* any size: only the ratio counts */
    if (sim->costs.alone_on != gpu) {
        sim->costs.alone_on = gpu;
        sim->costs.alone_s = kernel_time(&byte, gpu, share).memory_s;
    }
    share.sms = fmax(1, share.sms - sim->costs.sm_states.at[rank->sm_state].sms);
    share.hbm_Bps = hbm_Bps;
    *last = (struct slowdown){
        rank->sm_state, hbm_Bps, kernel_time(&byte, gpu, share).memory_s / sim->costs.alone_s};
    return last->factor;
}

/* The state of a GPU on which collectives hold this number of SMs, met now or before. */
static int find_state(struct sim *sim, double sms)
{
    for (int s = 1; s < sim->costs.sm_states.n; s++)
        if (sim->costs.sm_states.at[s].sms == sms)
            return s;
    const struct hw_gpu *gpu = &sim->costs.hw->gpu;
    struct sm_state state = {sms, ARENA_ARRAY(sim->arena, double, sim->plan->kernels.n)};
    for (int k = 0; k < sim->plan->kernels.n; k++) {
        struct kernel_share share = kernel_whole_gpu(gpu);
        share.sms = fmax(1, share.sms - sms);
        state.compute_s[k] = kernel_time(&sim->plan->kernels.at[k], gpu, share).compute_s;
    }
    vec_push(&sim->costs.sm_states, state);
    return sim->costs.sm_states.n - 1;
}

/* Summed anew in the order of queues, as adding and taking away would leave rounding. */
static void set_sm_state(struct sim *sim, struct rank *rank)
{
    double sms = 0, hbm_Bps = 0;
    for
        EACH_QUEUE(q, rank->holding)
        {
            sms += rank->queues[q].sms_held;
            hbm_Bps += rank->queues[q].hbm_Bps;
        }
    rank->sm_state = sms > 0 ? find_state(sim, sms) : 0;
    bool slowed = rank->sm_state && !sim->options->no_contention;
    rank->compute_s = sim->costs.sm_states.at[slowed ? rank->sm_state : 0].compute_s;
    rank->memory_slowdown = slowed ? memory_slowdown(sim, rank, hbm_Bps) : 1;
    rank->traffic = slowed ? kernel_traffic(&sim->costs.hw->gpu, hbm_Bps) : 1;
    rank->slows_starts = slowed;
    rank->held_since = sim->machine->engine.now;
}

/* The kernels that run have come this far at the speed that they had until now. */
static void account_progress(struct sim *sim, int rank_index)
{
    struct rank *rank = &sim->ranks[rank_index];
    ahead_settle(sim, rank_index);
    ahead_forget(sim, rank_index);
    for
        EACH_QUEUE(q, rank->running)
        {
            struct queue *queue = &rank->queues[q];
            ps_t elapsed = sim->machine->engine.now - queue->started;
            queue->left = fmax(0, queue->left - (double)elapsed / running_ps(sim, rank, queue));
            queue->spent += elapsed;
            queue->started = sim->machine->engine.now;
        }
}

static void schedule_ends(struct sim *sim, int rank_index)
{
    struct rank *rank = &sim->ranks[rank_index];
    for
        EACH_QUEUE(q, rank->running)
        {
            struct queue *queue = &rank->queues[q];
            if (queue->spent == 0) /* it has begun at this instant */
                queue->start_s = queue_start_s(sim, rank, queue_op(queue)->index, queue->started);
            queue->end =
                sim->machine->engine.now + ps_round(queue->left * running_ps(sim, rank, queue));
            queue_arm(sim, rank_index, (int)q, queue->end);
        }
}

void queue_retime(struct sim *sim, int rank_index)
{
    account_progress(sim, rank_index);
    set_sm_state(sim, &sim->ranks[rank_index]);
    schedule_ends(sim, rank_index);
}

/* The whole of the running kernel of a queue, as if no collective were there. */
static double running_isolated_ps(const struct sim *sim, const struct rank *rank, int queue_index)
{
    const struct queue *queue = &rank->queues[queue_index];
    const struct plan_op *op = queue_op(queue);
    return queue_isolated_ps(sim, rank, op->index, queue->draws);
}

static void give_share(const struct sim *sim, struct rank *rank, double share)
{
    rank->share = share;
    memset(rank->alone_s, 0, sizeof *rank->alone_s * (size_t)sim->plan->kernels.n);
}

void queue_set_share(struct sim *sim, int rank_index, double share)
{
    struct rank *rank = &sim->ranks[rank_index];
    account_progress(sim, rank_index);
    double old_share = rank->share;
    give_share(sim, rank, share);
    schedule_ends(sim, rank_index);
    for
        EACH_QUEUE(q, rank->running)
        {
            struct queue *queue = &rank->queues[q];
            double now_ps = running_isolated_ps(sim, rank, (int)q);
            give_share(sim, rank, old_share);
            double before_ps = running_isolated_ps(sim, rank, (int)q);
            give_share(sim, rank, share);
            queue->alone_ps += llround(queue->left * (now_ps - before_ps));
        }
}
