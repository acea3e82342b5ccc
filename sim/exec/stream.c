/* Streams: ops start in order, kernels run at the speed that collectives beside them leave. */
#include "exec/state.h"

#include <math.h>

bool wait_satisfied(const struct sim *sim, const struct rank *rank, plan_wait wait, int32_t step)
{
    if (wait & PLAN_PREVIOUS_STEP)
        step--;
    const struct plan_op *op = &sim->plan->ops.at[wait & ~PLAN_PREVIOUS_STEP];
    return rank->streams[op->stream].done > (int64_t)step * sim->plan->stream_ops[op->stream].n + op->position;
}

static bool waits_satisfied(const struct sim *sim, const struct rank *rank, const struct plan_op *op, int32_t step)
{
    for (int w = op->first_wait; w < op->first_wait + op->n_waits; w++)
        if (!wait_satisfied(sim, rank, sim->plan->waits.at[w], step))
            return false;
    return true;
}

/* alone: as if no collective were there. */
static double kernel_ps(
    const struct sim *sim, const struct kernel_cost *cost, const struct rank *rank, bool alone, double jitter)
{
    alone = alone || sim->options->no_contention;
    int holding = alone ? 0 : rank->holding;
    double stretch = alone ? 1 : rank->stretch, slower = holding ? 1 + sim->hw->gpu.overlap_slowdown.value : 1;
    double busy_s = fmax(cost->compute_s[holding] / rank->speed, cost->memory_s * stretch) * slower;
    return (busy_s + cost->floor_s) * jitter * (double)PS_PER_S;
}

/* For how long the rank has been in some collective, since the run began. */
static ps_t in_collectives(const struct sim *sim, const struct rank *rank)
{
    return rank->comm_total + (rank->in_collective ? sim->engine.now - rank->comm_since : 0);
}

/* Why the compute stream was idle before this op: the host had not issued it, or it waited for others. Kernels of other
 * streams mostly wait for a collective themselves, as the sharded gradients' casts do for the reduce-scatter. */
static void account_idle(struct sim *sim, struct rank *rank, const struct stream *stream, const struct plan_op *op)
{
    ps_t now = sim->engine.now, idle = now - stream->idle_since;
    if (idle == 0)
        return;
    ps_t host = stream->issue > stream->idle_since ? stream->issue - stream->idle_since : 0;
    bool for_comm = false;
    for (int w = op->first_wait; w < op->first_wait + op->n_waits; w++)
        for_comm |= plan_stream_is_comm(sim->plan->ops.at[sim->plan->waits.at[w] & ~PLAN_PREVIOUS_STEP].stream);
    ps_t waited = idle - host, in_comm = in_collectives(sim, rank) - stream->idle_comm;
    ps_t comm = for_comm || in_comm > waited ? waited : in_comm;
    rank->spent.host_bound_s += s_from_ps(host);
    rank->spent.exposed_comm_s += s_from_ps(comm);
}

static double draw_jitter(const struct sim *sim, struct rank *rank, int stream_index)
{
    double sigma = sim->options->noise.kernel_jitter;
    return sigma > 0 ? rng_lognormal_mean1(&rank->kernel_noise[stream_index], sigma) : 1;
}

static const struct plan_op *op_at(const struct sim *sim, int stream_index, int32_t position)
{
    return &sim->plan->ops.at[sim->plan->stream_ops[stream_index].at[position]];
}

/* The event at the end of a running kernel, or when the op that a stream waits for has been issued. */
static void arm(struct sim *sim, int rank_index, int stream_index, ps_t end)
{
    engine_at(&sim->engine, end, sim->ev_stream, (uint32_t)(rank_index * STREAM_COUNT + stream_index),
        ++sim->ranks[rank_index].streams[stream_index].epoch);
}

/* The kernels that will follow the one that the compute stream begins. */
static void look_ahead(struct sim *sim, int rank_index)
{
    struct rank *rank = &sim->ranks[rank_index];
    const struct stream *stream = &rank->streams[STREAM_COMPUTE];
    struct ahead *ahead = &rank->ahead;
    int32_t left = (int32_t)sim->plan->stream_ops[STREAM_COMPUTE].n - 1 - stream->position;
    ahead->n = ahead->at = ahead->event = 0;
    if (sim->options->one_by_one || tracing(sim, rank_index, STREAM_COMPUTE))
        return;
    const struct plan_op *op = op_at(sim, STREAM_COMPUTE, stream->position);
    ps_t now = stream->end;
    while (ahead->n < AHEAD && ahead->n < left && now <= PS_HORIZON && !sim->awaited[op - sim->plan->ops.at]) {
        op = op_at(sim, STREAM_COMPUTE, stream->position + ahead->n + 1);
        if (host_issue_time(sim, rank, stream->step, (int32_t)(op - sim->plan->ops.at)) > now ||
            !waits_satisfied(sim, rank, op, stream->step))
            return;
        struct ahead_kernel *kernel = &ahead->kernels[ahead->n++];
        kernel->undrawn = rank->kernel_noise[STREAM_COMPUTE].counter;
        kernel->jitter = draw_jitter(sim, rank, STREAM_COMPUTE);
        kernel->duration_ps = kernel_ps(sim, &sim->kernel_costs[op->index], rank, false, kernel->jitter);
        kernel->end = now += ps_round(kernel->duration_ps);
    }
}

/* Let the event of the compute stream be at the end of the last kernel ahead, or of the one that wakes the host. */
static void arm_ahead(struct sim *sim, int rank_index)
{
    struct rank *rank = &sim->ranks[rank_index];
    struct ahead *ahead = &rank->ahead;
    int64_t wanted = host_wants(sim, rank);
    ahead->event = wanted > 0 && ahead->at + wanted - 1 < ahead->n ? ahead->at + (int)wanted - 1 : ahead->n;
    bool running = ahead->event == ahead->at;
    arm(sim, rank_index, STREAM_COMPUTE,
        running ? rank->streams[STREAM_COMPUTE].end : ahead->kernels[ahead->event - 1].end);
}

/* An op of another stream has ended: one kernel of the compute stream less until a full queue wakes the host. (When the
 * queue fills, half of it is more than there is ahead.) */
static void rearm(struct sim *sim, int rank_index)
{
    struct rank *rank = &sim->ranks[rank_index];
    int64_t wanted = host_wants(sim, rank);
    if (rank->streams[STREAM_COMPUTE].state == STREAM_RUNNING && wanted > 0 &&
        rank->ahead.at + wanted - 1 < rank->ahead.event)
        arm_ahead(sim, rank_index);
}

static void start_kernel(struct sim *sim, int rank_index, int stream_index, const struct plan_op *op)
{
    struct rank *rank = &sim->ranks[rank_index];
    struct stream *stream = &rank->streams[stream_index];
    const struct kernel_cost *cost = &sim->kernel_costs[op->index];
    stream->jitter = draw_jitter(sim, rank, stream_index);
    stream->state = STREAM_RUNNING;
    stream->started = sim->engine.now;
    stream->left = 1;
    stream->spent_ps = 0;
    double alone_ps = kernel_ps(sim, cost, rank, true, stream->jitter);
    stream->alone_ps = ps_round(alone_ps);
    stream->duration_ps = rank->holding ? kernel_ps(sim, cost, rank, false, stream->jitter) : alone_ps;
    stream->end = stream->started + ps_round(stream->duration_ps);
    if (stream_index != STREAM_COMPUTE) {
        arm(sim, rank_index, stream_index, stream->end);
        return;
    }
    look_ahead(sim, rank_index);
    arm_ahead(sim, rank_index);
}

/* The running kernel of the compute stream has ended, and the next one ahead begins. */
static void begin_next(struct sim *sim, struct rank *rank)
{
    struct stream *stream = &rank->streams[STREAM_COMPUTE];
    const struct ahead_kernel *next = &rank->ahead.kernels[rank->ahead.at++];
    stream->position++;
    stream->started = stream->end;
    stream->end = next->end;
    stream->left = 1;
    stream->spent_ps = 0;
    stream->jitter = next->jitter;
    stream->duration_ps = next->duration_ps;
    const struct plan_op *op = op_at(sim, STREAM_COMPUTE, stream->position);
    stream->alone_ps = ps_round(kernel_ps(sim, &sim->kernel_costs[op->index], rank, true, next->jitter));
}

/* The running op of a stream has ended at `end`. */
static void count(struct sim *sim, struct rank *rank, int stream_index, ps_t end)
{
    struct stream *stream = &rank->streams[stream_index];
    if (stream_index == STREAM_COMPUTE && measuring(sim, stream->step)) {
        double spent_ps = stream->spent_ps + (double)(end - stream->started);
        rank->spent.compute_s += spent_ps / (double)PS_PER_S;
        rank->spent.contention_s += (spent_ps - (double)stream->alone_ps) / (double)PS_PER_S;
    }
    stream->done++;
    rank->done++;
}

void stream_settle(struct sim *sim, int rank_index)
{
    struct rank *rank = &sim->ranks[rank_index];
    const struct stream *stream = &rank->streams[STREAM_COMPUTE];
    while (rank->ahead.at < rank->ahead.event && stream->state == STREAM_RUNNING && stream->end <= sim->engine.now) {
        count(sim, rank, STREAM_COMPUTE, stream->end);
        begin_next(sim, rank);
    }
}

static void try_start(struct sim *sim, int rank_index, int stream_index)
{
    struct rank *rank = &sim->ranks[rank_index];
    struct stream *stream = &rank->streams[stream_index];
    if (stream->state != STREAM_WAITING || stream->step == sim->total_steps)
        return;
    int32_t op_index = sim->plan->stream_ops[stream_index].at[stream->position];
    const struct plan_op *op = &sim->plan->ops.at[op_index];
    if (!stream->issue_known) {
        stream->issue = host_issue_time(sim, rank, stream->step, op_index);
        if (stream->issue == PS_NEVER)
            return; /* the host tries all streams when it goes on */
        stream->issue_known = true;
    }
    if (stream->issue > sim->engine.now) {
        if (!stream->wake_pending)
            arm(sim, rank_index, stream_index, stream->issue);
        stream->wake_pending = true;
        return;
    }
    if (!waits_satisfied(sim, rank, op, stream->step))
        return;                   /* whoever ends the op waited for tries all streams of the rank */
    stream->wake_pending = false; /* another event of this instant may have come before it: */
    stream->epoch++;              /* it is superseded */
    if (stream_index == STREAM_COMPUTE && measuring(sim, stream->step))
        account_idle(sim, rank, stream, op);
    if (op->kind == OP_KERNEL) {
        start_kernel(sim, rank_index, stream_index, op);
    } else {
        stream->state = STREAM_IN_COLLECTIVE;
        stream->started = sim->engine.now;
        if (rank->in_collective++ == 0)
            rank->comm_since = sim->engine.now;
        collective_arrive(sim, rank_index, op_index);
    }
}

void stream_try_all(struct sim *sim, int rank)
{
    for (int s = 0; s < STREAM_COUNT; s++)
        if (sim->plan->stream_ops[s].n > 0)
            try_start(sim, rank, s);
}

static void end_step(struct sim *sim, int32_t step)
{
    sim->step_end[step] = sim->engine.now; /* the last rank to come here leaves the latest time */
    sim->step_ranks[step]++;
    if (step + 1 == sim->options->warmup_steps && sim->step_ranks[step] == sim->n_ranks) {
        sim->measure_from = sim->engine.now;
        for (int l = 0; l < sim->net.capacity.n; l++)
            sim->carried_before[l] = net_carried(&sim->net, l);
    }
}

void stream_finish(struct sim *sim, int rank_index, int stream_index)
{
    struct rank *rank = &sim->ranks[rank_index];
    struct stream *stream = &rank->streams[stream_index];
    stream_settle(sim, rank_index);
    count(sim, rank, stream_index, sim->engine.now);
    if (stream_index == STREAM_COMPUTE && rank->ahead.at < rank->ahead.n) {
        begin_next(sim, rank);
        host_check(sim, rank_index);
        arm_ahead(sim, rank_index);
        return;
    }
    if (stream->state == STREAM_IN_COLLECTIVE && --rank->in_collective == 0)
        rank->comm_total += sim->engine.now - rank->comm_since;
    stream->state = STREAM_WAITING;
    stream->idle_since = sim->engine.now;
    stream->idle_comm = in_collectives(sim, rank);
    stream->issue_known = false;
    bool awaited = sim->awaited[sim->plan->stream_ops[stream_index].at[stream->position]];
    if (++stream->position == sim->plan->stream_ops[stream_index].n) {
        stream->position = 0;
        stream->step++;
        if (stream_index == STREAM_COMPUTE)
            end_step(sim, stream->step - 1);
    }
    host_check(sim, rank_index);
    if (awaited)
        stream_try_all(sim, rank_index);
    else
        try_start(sim, rank_index, stream_index);
    rearm(sim, rank_index);
}

void stream_on_event(void *self, const struct event *event)
{
    struct sim *sim = self;
    int rank_index = (int)event->target / STREAM_COUNT, stream_index = (int)event->target % STREAM_COUNT;
    struct rank *rank = &sim->ranks[rank_index];
    struct stream *stream = &rank->streams[stream_index];
    if (event->arg != stream->epoch)
        return;
    if (stream->wake_pending) {
        stream->wake_pending = false;
        try_start(sim, rank_index, stream_index);
        return;
    }
    if (stream_index == STREAM_COMPUTE)
        stream_settle(sim, rank_index);
    if (tracing(sim, rank_index, stream_index)) {
        ps_t start = stream->started - llround(stream->spent_ps);
        trace_record(sim, rank_index, stream_index,
            (struct exec_span){.start = start, .moving = start, .alone = stream->alone_ps});
    }
    stream_finish(sim, rank_index, stream_index);
}

/* Of the time of a kernel that HBM limits, by what collectives beside it take. */
static double stretch(const struct sim *sim, const struct rank *rank)
{
    const struct hw_gpu *gpu = &sim->hw->gpu;
    struct kernel_share share = kernel_whole_gpu(gpu);
    struct kernel_work byte = kernel_stream(KERNEL_COPY, 1e9, 0, 0); /* any size: only the ratio counts */
    double alone_s = kernel_time(&byte, gpu, share).memory_s;
    share.sms = fmax(1, share.sms - collective_sms(sim, rank->holding));
    share.hbm_Bps = rank->hbm_taken_Bps;
    return kernel_time(&byte, gpu, share).memory_s / alone_s;
}

void stream_retime(struct sim *sim, int rank_index)
{
    struct rank *rank = &sim->ranks[rank_index];
    struct ahead *ahead = &rank->ahead;
    stream_settle(sim, rank_index);
    rank->stretch = rank->holding ? stretch(sim, rank) : 1;
    if (ahead->n > ahead->at) { /* what follows will run at another speed */
        rank->kernel_noise[STREAM_COMPUTE].counter = ahead->kernels[ahead->at].undrawn;
        ahead->n = ahead->event = ahead->at;
    }

    for (int s = 0; s < STREAM_COUNT; s++) {
        struct stream *stream = &rank->streams[s];
        if (stream->state != STREAM_RUNNING)
            continue;
        const struct plan_op *op = &sim->plan->ops.at[sim->plan->stream_ops[s].at[stream->position]];
        double elapsed = (double)(sim->engine.now - stream->started);
        stream->left = fmax(0, stream->left - elapsed / stream->duration_ps);
        stream->spent_ps += elapsed;
        stream->started = sim->engine.now;
        stream->duration_ps = kernel_ps(sim, &sim->kernel_costs[op->index], rank, false, stream->jitter);
        stream->end = sim->engine.now + ps_round(stream->left * stream->duration_ps);
        arm(sim, rank_index, s, stream->end);
    }
}

/* The whole of the running kernel of a stream, as if no collective were there. */
static double running_alone_ps(const struct sim *sim, const struct rank *rank, int stream_index)
{
    const struct stream *stream = &rank->streams[stream_index];
    const struct plan_op *op = op_at(sim, stream_index, stream->position);
    return kernel_ps(sim, &sim->kernel_costs[op->index], rank, true, stream->jitter);
}

void stream_set_share(struct sim *sim, int rank_index, double share)
{
    struct rank *rank = &sim->ranks[rank_index];
    double alone_ps[STREAM_COUNT] = {0}; /* of a running kernel at the old speed */
    stream_settle(sim, rank_index);      /* what has ended had that speed, too */
    for (int s = 0; s < STREAM_COUNT; s++)
        if (rank->streams[s].state == STREAM_RUNNING)
            alone_ps[s] = running_alone_ps(sim, rank, s);
    rank->share = share;
    rank->speed = rank->drawn_speed * share;
    stream_retime(sim, rank_index);
    for (int s = 0; s < STREAM_COUNT; s++)
        if (rank->streams[s].state == STREAM_RUNNING)
            rank->streams[s].alone_ps +=
                llround(rank->streams[s].left * (running_alone_ps(sim, rank, s) - alone_ps[s]));
}
