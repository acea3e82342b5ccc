/* The host thread of a rank. Its work between two blocking points is one segment: the issue times
 * of all ops in it follow from its start and the prefix sums of host costs, so no event and no
 * memory per op is needed. */
#include "exec/state.h"

static ps_t issued_at(const struct rank *rank, double s)
{
    return rank->host_base + ps_from_s((s - rank->host_first_s) * rank->host_factor);
}

ps_t host_issue_time(const struct rank *rank, int32_t step, int32_t op, double s)
{
    if (step != rank->host_step)
        return step < rank->host_step ? 0 : PS_NEVER;
    if (op < rank->host_first)
        return 0; /* in an earlier segment, which lies in the past */
    return op < rank->host_end ? issued_at(rank, s) : PS_NEVER;
}

/* Launches that the GPU has not finished when the host is before an op of its step. */
static int64_t outstanding(const struct rank *rank, int32_t op)
{
    return (int64_t)rank->host_step * rank->tables->n_launches +
           plan_fold_launches(rank->tables->fold, op) - rank->done;
}

/* The same of the op that ends the burst. */
static int64_t outstanding_at_end(const struct rank *rank)
{
    return rank->host_launched - rank->done;
}

/* The stretch that an op is in, which mostly is the one that the host is in already. */
static const struct plan_stretch *host_stretch(struct rank *rank, int32_t op)
{
    const struct plan_stretch *at = rank->host_stretch;
    if (!at || op < at->first_op || op >= at[1].first_op)
        rank->host_stretch = at = plan_fold_stretch(rank->tables->fold, op);
    return at;
}

static void host_ends_at(struct rank *rank, int32_t op)
{
    rank->host_end = op;
    rank->host_launched = (int64_t)rank->host_step * rank->tables->n_launches +
                          plan_fold_launches(rank->tables->fold, op);
}

/* The first op before `end` before which the launch queue would be full if the GPU did nothing from
 * now on; end when there is none. */
static int32_t queue_full_at(const struct rank *rank, int32_t end)
{
    int32_t low = 0, high = end;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (outstanding(rank, middle) >= LAUNCH_QUEUE)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* The next op at or after `from` that stops the host: one that blocks it, or one that allocates or
 * frees: each of them where the rank has a ledger, elsewhere those where the allocator is known to
 * take its time. */
static int32_t next_stop(const struct sim *sim, struct rank *rank, int32_t from)
{
    if (sim->memory.ledgers)
        return plan_stretch_memory(host_stretch(rank, from), from);
    int32_t block = plan_fold_block(rank->tables->fold, from);
    if (!sim->memory.before || rank->next_stop == sim->memory.before[rank->program].stops.n)
        return block;
    const struct ledger_stop *stop = &sim->memory.before[rank->program].stops.at[rank->next_stop];
    return stop->step == rank->host_step + sim->memory.before_steps && stop->op < block ? stop->op
                                                                                        : block;
}

/* The segment reaches to there, or to where the launch queue is full. Returns when. */
static ps_t extend_segment(const struct sim *sim, struct rank *rank, int32_t from)
{
    const struct plan_fold *fold = rank->tables->fold;
    int32_t stop = next_stop(sim, rank, from);
    const struct plan_stretch *stretch = host_stretch(rank, stop);
    int64_t launched = (int64_t)rank->host_step * rank->tables->n_launches + stretch->launches +
                       stretch->pattern->launches[stop - stretch->first_op];
    if (launched - rank->done >= LAUNCH_QUEUE) {
        int32_t full = queue_full_at(rank, stop);
        host_ends_at(rank, full > from ? full : from);
        return issued_at(rank, plan_fold_host_s(fold, rank->host_end));
    }
    rank->host_end = stop > from ? stop : from; /* mostly */
    rank->host_launched = launched;
    return issued_at(rank, stretch->host_s + stretch->sums_s[stop - stretch->first_op]);
}

static void reach(struct sim *sim, int rank_index, int32_t from)
{
    ps_t end = extend_segment(sim, &sim->ranks[rank_index], from);
    engine_at(&sim->machine->engine, end, sim->events.host, (uint32_t)rank_index, 0);
    queue_try_all(sim, rank_index);
}

/* The same where the host's event is the one that runs. True: it is at the end of the segment now,
 * as no queue has to be tried and nothing else happens before: most ops that touch memory follow
 * another one. */
static bool reach_at_once(struct sim *sim, int rank_index, int32_t from)
{
    struct rank *rank = &sim->ranks[rank_index];
    ps_t end = extend_segment(sim, rank, from);
    if (!queue_may_start(rank) &&
        engine_goes_on(&sim->machine->engine, end, sim->events.host, (uint32_t)rank_index))
        return true;
    engine_at(&sim->machine->engine, end, sim->events.host, (uint32_t)rank_index, 0);
    queue_try_all(sim, rank_index);
    return false;
}

void host_draw_pause(const struct sim *sim, struct rank *rank, ps_t after)
{
    const struct noise_options *noise = &sim->options->noise;
    rank->next_pause = noise->host_pause_s > 0
                           ? after + ps_from_s(rng_exponential(&rank->pauses,
                                         noise->host_pause_interval_s * sim->fold.simulated_share))
                           : PS_NEVER;
}

/* When the host goes on that would now: after the pause that was due, if there was one. */
static ps_t after_pause(const struct sim *sim, struct rank *rank)
{
    ps_t now = sim->machine->engine.now;
    if (now < rank->next_pause)
        return now;
    ps_t end = now + ps_from_s(sim->options->noise.host_pause_s);
    host_draw_pause(sim, rank, end);
    return end;
}

double host_jitter(const struct sim *sim, double work_s)
{
    static const double JITTER_OF_S = 1e-3; /* of noise.host_jitter */
    return sim->options->noise.host_jitter * sqrt(JITTER_OF_S / fmax(work_s, JITTER_OF_S));
}

static void host_begins_at(struct rank *rank, int32_t op)
{
    rank->host_first = op;
    rank->host_first_s = plan_fold_host_s(rank->tables->fold, op);
}

/* As queue_drawn_at(), of the burst's first op; a draw takes a step of the stream, seldom more. */
static uint64_t host_drawn_at(const struct sim *sim, const struct rank *rank)
{
    enum { STEPS_A_DRAW = 16 };
    int64_t steps = rank->host_step - sim->options->warmup_steps;
    return (uint64_t)((steps * rank->tables->n_ops + rank->host_first) * STEPS_A_DRAW);
}

/* A new segment begins now with op first, whose cost the host pays; it may stop from op `from` on.
 */
static void begin_segment(struct sim *sim, int rank_index, int32_t first, int32_t from)
{
    struct rank *rank = &sim->ranks[rank_index];
    const struct plan_fold *fold = rank->tables->fold;
    host_begins_at(rank, first);
    double sigma =
        host_jitter(sim, plan_fold_host_s(fold, plan_fold_block(fold, from)) - rank->host_first_s);
    rank->host_noise.counter = host_drawn_at(sim, rank);
    rank->host_factor = sigma > 0 ? rng_lognormal_mean1(&rank->host_noise, sigma) : 1;
    if (sim->fold.hosts_behind > 0)
        rank->host_factor *= exp(sim->fold.hosts_behind * sigma);
    rank->host_state = HOST_RUNNING;
    rank->host_base = after_pause(sim, rank);
    ledger_note_burst(sim, rank_index);
    reach(sim, rank_index, from);
}

void host_begin_step(struct sim *sim, int rank)
{
    trace_host_step(sim, rank);
    ledger_begin_step(sim, rank);
    begin_segment(sim, rank, 0, 0);
}

void host_resume(struct sim *sim, int rank_index, const struct rank *quiet)
{
    struct rank *rank = &sim->ranks[rank_index];
    const struct ledger *before = sim->memory.before ? &sim->memory.before[rank->program] : NULL;
    ps_t now = sim->machine->engine.now;
    rank->host_base = quiet->host_base;
    rank->host_first = quiet->host_first;
    rank->host_first_s = quiet->host_first_s;
    rank->host_factor = quiet->host_factor;
    rank->host_step = quiet->host_step;
    rank->host_state = quiet->host_state;
    host_ends_at(rank, quiet->host_end);
    host_await(rank);
    host_draw_pause(sim, rank, now);
    while (before && rank->next_stop < before->stops.n) {
        const struct ledger_stop *stop = &before->stops.at[rank->next_stop];
        if (stop->step > rank->host_step ||
            (stop->step == rank->host_step && stop->op >= rank->host_end))
            break;
        rank->next_stop++;
    }
    if (rank->host_state != HOST_RUNNING)
        return;
    ps_t end = issued_at(rank, plan_fold_host_s(rank->tables->fold, rank->host_end));
    engine_at(
        &sim->machine->engine, end > now ? end : now, sim->events.host, (uint32_t)rank_index, 0);
}

/* The allocator has done what op `at` asks for; the host was in CUDA's own calls for it. A new
 * segment, with the jitter of the old one, begins after that. */
static void leave_allocator(struct sim *sim, int rank_index, int32_t at, ps_t since, ps_t calls)
{
    struct rank *rank = &sim->ranks[rank_index];
    ps_t stood = sim->machine->engine.now - since + calls;
    if (sim->memory.out_of_memory)
        return;
    if (sim->memory.ledgers && measuring(sim, rank->host_step))
        sim->memory.ledgers[rank_index].stall += stood;
    if (stood > 0) {
        trace_host_segment(sim, rank_index, HOST_ALLOCATES, sim->machine->engine.now + calls);
        rank->host_base = sim->machine->engine.now + calls;
        host_begins_at(rank, at);
        ledger_note_burst(sim, rank_index);
    }
    rank->host_state = HOST_RUNNING;
    reach(sim, rank_index, at + 1);
}

static void retry_when_drained(struct sim *sim, int rank_index)
{
    struct rank *rank = &sim->ranks[rank_index];
    int32_t at = rank->host_end;
    ps_t calls;
    if (outstanding_at_end(rank) > 0)
        return;
    ledger_op(sim, rank_index, host_stretch(rank, at), true, &calls);
    leave_allocator(sim, rank_index, at, rank->drain_since, calls);
}

/* The op after `at` touches memory, too, and the host comes to it at the same instant. */
static bool goes_on(const struct rank *rank, int32_t at)
{
    return at + 1 < rank->tables->n_ops && plan_op_is_memory(op_of(rank, at + 1)) &&
           plan_fold_host_s(rank->tables->fold, at + 1) == plan_fold_host_s(rank->tables->fold, at);
}

/* Where every rank has a ledger, ops in a row take one event: half of all events of such a run
 * would be theirs. True: the host is at the end of its next segment. */
static bool call_allocator(struct sim *sim, int rank_index)
{
    struct rank *rank = &sim->ranks[rank_index];
    bool in_a_row = sim->memory.ledgers && !sim->fold.on;
    ps_t calls = 0;
    while (ledger_op(sim, rank_index, host_stretch(rank, rank->host_end), false, &calls)) {
        if (calls > 0 || sim->memory.out_of_memory) {
            leave_allocator(sim, rank_index, rank->host_end, sim->machine->engine.now, calls);
            return false;
        }
        if (!in_a_row || !goes_on(rank, rank->host_end))
            return reach_at_once(sim, rank_index, rank->host_end + 1);
        host_ends_at(rank, rank->host_end + 1);
    }
    rank->host_state = HOST_DRAINING;
    rank->drain_since = sim->machine->engine.now;
    retry_when_drained(sim, rank_index);
    return false;
}

int64_t host_wants(const struct rank *rank)
{
    return rank->host_state == HOST_QUEUE_FULL ? outstanding_at_end(rank) - LAUNCH_QUEUE / 2 : 0;
}

void host_await(struct rank *rank)
{
    if (rank->host_state == HOST_BLOCKED)
        rank->host_awaits = wait_wants(rank, wait_of(rank, rank->host_end, 0), rank->host_step);
}

void host_check(struct sim *sim, int rank_index)
{
    struct rank *rank = &sim->ranks[rank_index];
    if (rank->host_state == HOST_DRAINING)
        retry_when_drained(sim, rank_index);
    if (rank->host_state == HOST_QUEUE_FULL && outstanding_at_end(rank) <= LAUNCH_QUEUE / 2) {
        trace_host_segment(sim, rank_index, HOST_FULL_QUEUE, sim->machine->engine.now);
        begin_segment(sim, rank_index, rank->host_end, rank->host_end);
    }
    if (rank->host_state != HOST_BLOCKED || !is_satisfied(rank->host_awaits))
        return;
    trace_host_segment(sim, rank_index, HOST_WAITS, sim->machine->engine.now);
    begin_segment(sim, rank_index, rank->host_end, rank->host_end + 1);
}

/* The segment is over. True: so is the next one, as nothing happened in between. */
static bool end_segment(struct sim *sim, int rank_index)
{
    struct rank *rank = &sim->ranks[rank_index];
    int32_t at = rank->host_end;
    ahead_settle(sim, rank_index);
    warm_look(sim);
    period_ask(sim);
    if (at == rank->tables->n_ops) {
        trace_host_segment(sim, rank_index, HOST_WORK, sim->machine->engine.now);
        if (rank->host_step + 1 == sim->total_steps) {
            rank->host_state = HOST_DONE;
            return false;
        }
        rank->host_step++;
        host_begin_step(sim, rank_index);
        return false;
    }
    const struct plan_stretch *stretch = host_stretch(rank, at);
    const struct plan_op *op = &stretch->ops[at - stretch->first_op];
    if (op->kind == OP_HOST_WAIT) {
        rank->host_state = HOST_BLOCKED;
        host_await(rank);
        host_check(sim, rank_index);
    } else if (plan_op_is_memory(op) && next_stop(sim, rank, at) == at) {
        return call_allocator(sim, rank_index);
    } else if (outstanding_at_end(rank) >= LAUNCH_QUEUE) {
        rank->host_state = HOST_QUEUE_FULL;
    } else {
        reach(sim, rank_index, at); /* the GPU has caught up in the meantime */
    }
    return false;
}

void host_on_event(void *self, const struct event *event)
{
    while (end_segment(self, (int)event->target))
        ;
}
