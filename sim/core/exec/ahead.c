/* Kernels of the compute queue that will follow the running one without a gap, whatever happens
 * elsewhere except a change of their speed: issued, waiting for nothing, awaited by nobody. Only
 * the end of the last one is an event, or of the one that wakes the host; those before are settled
 * when somebody looks. Times and noise are those of one event a kernel (exec_options.one_by_one,
 * tests/law/test_ahead.c): where the speed changes, kernels that have not begun are forgotten, and
 * drawn again alike. A third of a run's time, measured; of 8, 16, 32 and 64 eight was the fastest,
 * as more is drawn in vain. */
#include "exec/state.h"

static void find_kernels(struct sim *sim, int rank_index)
{
    struct rank *rank = &sim->ranks[rank_index];
    struct queue *queue = &rank->queues[STREAM_COMPUTE];
    struct ahead *ahead = &rank->ahead;
    int32_t left = queue->n_ops - 1 - queue->position;
    ahead->n = ahead->at = ahead->event = 0;
    if (sim->options->one_by_one ||
        (tracing(sim, rank_index, STREAM_COMPUTE) && !sim->options->trace_gaps))
        return;
    struct plan_cursor cursor = queue->cursor;
    ps_t now = queue->end;
    while (
        ahead->n < AHEAD && ahead->n < left && now <= PS_HORIZON && !plan_cursor_awaited(&cursor)) {
        plan_cursor_next(&cursor, STREAM_COMPUTE);
        const struct plan_op *op = plan_cursor_op(&cursor);
        int32_t number = plan_cursor_number(&cursor);
        if (host_issue_time(rank, queue->step, number, plan_cursor_host_s(&cursor)) > now ||
            unsatisfied_wait(rank, &cursor, queue->step).queue)
            return;
        struct ahead_kernel *kernel = &ahead->kernels[ahead->n++];
        kernel->draws = queue_draw(sim, rank, queue, number, ahead->n);
        double start_s = queue_start_s(sim, rank, op->index, now);
        kernel->end = now +=
            ps_round(queue_kernel_ps(sim, rank, op->index, kernel->draws, start_s));
    }
}

/* Let the event of the compute queue be at the end of the last kernel ahead, or of the one that
 * wakes the host. */
static void arm(struct sim *sim, int rank_index)
{
    struct rank *rank = &sim->ranks[rank_index];
    struct ahead *ahead = &rank->ahead;
    int64_t wanted = host_wants(rank);
    ahead->event =
        wanted > 0 && ahead->at + wanted - 1 < ahead->n ? ahead->at + (int)wanted - 1 : ahead->n;
    bool running = ahead->event == ahead->at;
    queue_arm(sim, rank_index, STREAM_COMPUTE,
        running ? rank->queues[STREAM_COMPUTE].end : ahead->kernels[ahead->event - 1].end);
}

void ahead_look(struct sim *sim, int rank_index)
{
    find_kernels(sim, rank_index);
    arm(sim, rank_index);
}

/* The running kernel has ended, and the next one ahead begins. */
static void ahead_begin_next(struct sim *sim, struct rank *rank)
{
    struct queue *queue = &rank->queues[STREAM_COMPUTE];
    const struct ahead_kernel *next = &rank->ahead.kernels[rank->ahead.at++];
    queue_go_on(rank, STREAM_COMPUTE); /* to one of this step */
    int32_t kernel = queue_op(queue)->index;
    queue->started = queue->end;
    queue->end = next->end;
    queue->left = 1;
    queue->spent = 0;
    queue->draws = next->draws;
    queue->start_s = queue_start_s(sim, rank, kernel, queue->started);
    queue->alone_ps = rank->slows_starts
                          ? ps_round(queue_isolated_ps(sim, rank, kernel, next->draws))
                          : queue->end - queue->started;
}

void ahead_settle(struct sim *sim, int rank_index)
{
    struct rank *rank = &sim->ranks[rank_index];
    const struct queue *queue = &rank->queues[STREAM_COMPUTE];
    while (rank->ahead.at < rank->ahead.event && queue->state == QUEUE_RUNNING &&
           queue->end <= sim->machine->engine.now) {
        queue_count(sim, rank, STREAM_COMPUTE, queue->end);
        ahead_begin_next(sim, rank);
    }
}

bool ahead_finish(struct sim *sim, int rank_index)
{
    struct rank *rank = &sim->ranks[rank_index];
    if (rank->ahead.at == rank->ahead.n)
        return false;
    ahead_begin_next(sim, rank);
    host_check(sim, rank_index);
    arm(sim, rank_index);
    return true;
}

void ahead_forget(struct sim *sim, int rank_index)
{
    struct rank *rank = &sim->ranks[rank_index];
    struct ahead *ahead = &rank->ahead;
    if (ahead->n == ahead->at)
        return;
    ahead->n = ahead->event = ahead->at;
}

/* (When the launch queue fills, half of it is more than there is ahead.) */
void ahead_rearm(struct sim *sim, int rank_index)
{
    struct rank *rank = &sim->ranks[rank_index];
    int64_t wanted = host_wants(rank);
    if (rank->queues[STREAM_COMPUTE].state == QUEUE_RUNNING && wanted > 0 &&
        rank->ahead.at + wanted - 1 < rank->ahead.event)
        arm(sim, rank_index);
}
