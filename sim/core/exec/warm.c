/* The warm-up of a run with noise: the quiet run's, except its end.
 *
 * The quiet run of a rank of each program, which is made for the allocator anyway, keeps what its
 * ranks are doing at one instant, three quarters through the compute ops of its last step of
 * warm-up: at the end of a host's burst or of a collective, which are the same whether kernels have
 * events or not (ahead.c). A run with noise begins at that instant: each of its ranks is where the
 * one of its program stood. So its clock, its numbers of steps and the allocator's stops are those
 * of the quiet run. Where no burst and no collective ends so late, nothing is kept; then, and where
 * GPUs differ or drain for the allocator, a run with noise has its own warm-up (exec.c).
 *
 * Subtle: at one instant all ranks together are a consistent state, whatever they are doing: a
 * collective that has not ended has ended for none of its members. A kernel goes on; a collective
 * under way begins once more, as the network keeps nothing of it. A part of a step is left for
 * that, and for noise to move ranks apart, before a step is measured. A host goes on with the burst
 * that it is in. Where a host is draining its GPU the next instant is taken. */
#include "exec/state.h"

/* Of the first rank's compute ops of a step. */
static const double WARM_SHARE = 0.75;

void warm_expect(struct sim *sim)
{
    int64_t ops = sim->queues[STREAM_COMPUTE].n_ops, last = sim->options->warmup_steps - 1;
    if (sim->warm.wanted && last >= 0 && ops > 0)
        sim->warm.taken_at = last * ops + (int64_t)(WARM_SHARE * (double)ops);
}

static bool some_host_drains(const struct sim *sim)
{
    for (int r = 0; r < sim->n_ranks; r++)
        if (sim->ranks[r].host_state == HOST_DRAINING)
            return true;
    return false;
}

void warm_take(struct sim *sim)
{
    struct warm *warm = &sim->warm;
    int32_t last = (int32_t)sim->options->warmup_steps - 1;
    ahead_settle(sim, 0);
    if (sim->queues[STREAM_COMPUTE].done < warm->taken_at || some_host_drains(sim))
        return;
    warm->taken_at = INT64_MAX;
    if (sim->measure.step_ranks[last] == sim->n_ranks)
        return;
    if (!warm->ranks) {
        warm->ranks = ARENA_ARRAY(sim->arena, struct rank, sim->n_ranks);
        warm->queues = ARENA_ARRAY(sim->arena, struct queue, sim->n_ranks * sim->n_queues);
    }
    for (int r = 0; r < sim->n_ranks; r++) {
        ahead_settle(sim, r);
        warm->ranks[r] = sim->ranks[r];
    }
    for (int q = 0; q < sim->n_ranks * sim->n_queues; q++)
        warm->queues[q] = sim->queues[q];
    for (warm->steps = 0; sim->measure.step_ranks[warm->steps] == sim->n_ranks;)
        warm->steps++;
    warm->now = sim->machine->engine.now;
    sim->measure.traced = NULL; /* its timeline ends here, and stays for trace_resume() */
}

static void resume_rank(struct sim *sim, int r)
{
    const struct warm *warm = &sim->after->warm;
    struct rank *rank = &sim->ranks[r];
    const struct queue *quiet = warm->queues + (ptrdiff_t)rank->program * sim->n_queues;
    for (int q = 0; q < sim->n_queues; q++)
        if (rank->queues[q].n_ops > 0)
            queue_resume(sim, r, q, &quiet[q]);
    rank->done = warm->ranks[rank->program].done;
    host_resume(sim, r, &warm->ranks[rank->program]);
    /* its compute queue may have ended a step that another program's has not */
    for (int32_t s = warm->steps; s < rank->queues[STREAM_COMPUTE].step; s++)
        sim->measure.step_ranks[s]++;
}

void warm_resume(struct sim *sim)
{
    const struct warm *warm = &sim->after->warm;
    engine_begin_at(&sim->machine->engine, warm->now);
    for (int32_t s = 0; s < warm->steps; s++)
        sim->measure.step_ranks[s] = sim->n_ranks;
    for (int r = 0; r < sim->n_ranks; r++)
        resume_rank(sim, r);
    trace_resume(sim);
    for (int r = 0; r < sim->n_ranks; r++) {
        host_check(sim, r);
        for
            EACH_QUEUE(q, sim->ranks[r].running)
            {
                if (q != STREAM_COMPUTE)
                    queue_arm(sim, r, (int)q, sim->ranks[r].queues[q].end);
            }
        if (sim->ranks[r].running & queue_bit(STREAM_COMPUTE))
            ahead_look(sim, r);
        queue_try_all(sim, r);
    }
}
