/* A step that repeats itself: periods that will be alike are skipped, not simulated.
 *
 * A pipeline of many micro-batches soon does the same again and again. Each rank runs stretches of
 * its program that are like those before (plan/fold.h), and without noise its state is the same
 * again after each period; only the clock and the numbers of ops are higher. Then what follows is
 * the same, too, to the picosecond, as long as the programs go on alike.
 *
 * How: the run is stopped between two events whenever its first rank has begun some stretches more,
 * and its state is copied (a look). If the state is that of an earlier look, the time between them
 * is a period. Then n periods are skipped, as many as all programs have left: each time, number and
 * pending event goes on by n periods (period_skip). The allocator alone is followed op by op
 * (ledger_repeat), since the block that a buffer gets repeats after some more periods, or never.
 * When its host comes to each op is known, and blocks that other queues used come back at the same
 * ops as in the period before. Periods in which it would make a segment are not skipped.
 *
 * Two states are the same if
 * - the same events are pending, in the same order and as far from now;
 * - each queue is in the same op of a like stretch, with as much of it done, or has not moved since
 *   and comes to its next op only after the skipped periods;
 * - each host is as far ahead and has begun a burst a period later. (A host that is never held up
 *   begins none: its period has fractions of picoseconds, which would add up.)
 * - the same collectives are under way, with as many bytes left.
 * Programs are alike for n periods if each stretch that a rank was in or had looked at in the
 * period has the pattern of the one n periods later, and both name stretches that are alike, or the
 * same one.
 *
 * Subtle: all sums of a run are of whole picoseconds and bytes, so n times a period's share gives
 * the same bits as adding it up. A run whose warm-up is taken for noise (warm.c) skips nothing
 * beyond that instant; a step with a timeline skips nothing.
 *
 * Of 192 micro-batches of GPT-3 175B on 12 stages 156 are skipped, and a fifth of the events are
 * left (tests/law/test_period.c). */
#include "base/digest.h"
#include "exec/state.h"

#include <stdlib.h>
#include <string.h>

/* Looks that are kept, and stretches from one to the next: an interleaved pipeline of 8 stages and
 * 12 chunks repeats itself after 192. */
enum { LOOKS = 128, LOOK_STRETCHES = 2 };
/* A program of fewer stretches than this has too little to skip. */
enum { FEW_STRETCHES = 32 };

/* Where bytes of a communicator are. */
struct period_meeting {
    struct communicator comm;
    struct net_flow flow;
};

/* The run at a look. */
struct period_look {
    uint64_t hash;
    ps_t now;
    struct rank *ranks;
    struct queue *queues;
    struct period_meeting *meetings;
    VEC(struct event) events; /* pending, superseded ones left out, in their order */
    VEC(struct pending_free) pending;
    int *n_pending, *n_returns; /* of each rank's ledger */
    double *carried;            /* by link */
};

/* How far a rank has gone since an earlier look. */
struct period_pace {
    int32_t stretches, ops;
};

/* ---- looking ---- */

static bool is_superseded(const struct sim *sim, const struct event *event)
{
    const struct net *net = &sim->machine->net;
    if (event->kind == sim->events.queue)
        return event->arg != sim->queues[event->target].epoch;
    const struct net_flow *flow =
        event->kind == net->end_kind ? &net->flows.at[event->target] : NULL;
    return flow && !(flow->active && flow->epoch == event->arg);
}

static int period_by_time(const void *one, const void *other)
{
    const struct event *a = one, *b = other;
    if (a->time != b->time)
        return a->time < b->time ? -1 : 1;
    return a->seq < b->seq ? -1 : 1;
}

static void look_at_events(const struct sim *sim, struct period_look *look)
{
    const struct engine *engine = &sim->machine->engine;
    look->events.n = 0;
    for (int i = 0; i < engine->heap.n; i++)
        if (!is_superseded(sim, &engine->heap.at[i]))
            vec_push(&look->events, engine->heap.at[i]);
    for (int i = engine->in_line; i < engine->line.n; i++)
        if (!is_superseded(sim, &engine->line.at[i]))
            vec_push(&look->events, engine->line.at[i]);
    if (look->events.n > 0)
        qsort(look->events.at, (size_t)look->events.n, sizeof *look->events.at, period_by_time);
}

static uint64_t hash_of(const struct sim *sim, const struct period_look *look)
{
    uint64_t hash = DIGEST_INIT;
    for (int i = 0; i < look->events.n; i++) {
        hash = digest_word(hash, (uint64_t)(look->events.at[i].time - look->now));
        hash =
            digest_word(hash, (uint64_t)look->events.at[i].kind << 32 | look->events.at[i].target);
    }
    for (int r = 0; r < sim->n_ranks; r++) {
        const struct rank *rank = &look->ranks[r];
        hash = digest_word(hash, rank->waiting << 32 | rank->running);
        hash = digest_word(hash, (uint64_t)(rank->host_launched - rank->done));
        hash = digest_word(hash, (uint64_t)rank->queues[STREAM_COMPUTE].cursor.place);
    }
    return hash;
}

static void look_open(const struct sim *sim, struct period_look *look)
{
    if (look->ranks)
        return;
    const struct period *period = &sim->period;
    look->ranks = xcalloc((size_t)sim->n_ranks, sizeof *look->ranks);
    look->queues = xcalloc((size_t)sim->n_ranks * (size_t)sim->n_queues, sizeof *look->queues);
    look->meetings = xcalloc((size_t)period->n_meetings + 1, sizeof *look->meetings);
    look->n_pending = xcalloc((size_t)sim->n_ranks, sizeof *look->n_pending);
    look->n_returns = xcalloc((size_t)sim->n_ranks, sizeof *look->n_returns);
    look->carried = xcalloc((size_t)sim->fabric.n_links, sizeof *look->carried);
}

static void look_take(struct sim *sim, struct period_look *look)
{
    const struct period *period = &sim->period;
    const struct net *net = &sim->machine->net;
    look_open(sim, look);
    look->now = sim->machine->engine.now;
    look->pending.n = 0;
    for (int r = 0; r < sim->n_ranks; r++) {
        ahead_settle(sim, r);
        look->ranks[r] = sim->ranks[r];
        if (!sim->memory.ledgers)
            continue;
        const struct ledger *ledger = &sim->memory.ledgers[r];
        look->n_pending[r] = ledger->pending.n;
        look->n_returns[r] = ledger->returns.n;
        for (int i = 0; i < ledger->pending.n; i++)
            vec_push(&look->pending, ledger->pending.at[i]);
    }
    memcpy(look->queues, sim->queues,
        sizeof *look->queues * (size_t)sim->n_ranks * (size_t)sim->n_queues);
    for (int i = 0; i < period->n_meetings; i++) {
        const struct communicator *comm = &sim->meetings.all[period->meetings[i]];
        look->meetings[i] = (struct period_meeting){*comm, net->flows.at[comm->flow]};
    }
    memcpy(look->carried, net->carried.at, sizeof *look->carried * (size_t)sim->fabric.n_links);
    look_at_events(sim, look);
    look->hash = hash_of(sim, look);
}

/* ---- whether the run stands as it stood ---- */

/* A time that has moved with the period, or not at all. */
static bool went_on(ps_t then, ps_t now, ps_t period)
{
    return now == then || now - then == period;
}

static bool op_went_on(int32_t then, int32_t now, struct period_pace pace)
{
    return now == then || now - then == pace.ops;
}

static bool same_real(double a, double b)
{
    return a == b;
}

static bool same_events(const struct period_look *then, const struct period_look *now)
{
    if (then->events.n != now->events.n)
        return false;
    for (int i = 0; i < now->events.n; i++) {
        const struct event *a = &then->events.at[i], *b = &now->events.at[i];
        if (a->time - then->now != b->time - now->now || a->kind != b->kind ||
            a->target != b->target)
            return false;
    }
    return true;
}

static bool same_ahead(const struct ahead *then, const struct ahead *now, ps_t period)
{
    if (then->n != now->n || then->at != now->at || then->event != now->event)
        return false;
    for (int i = 0; i < now->n; i++)
        if (now->kernels[i].end - then->kernels[i].end != period)
            return false;
    return true;
}

static bool same_host(
    const struct rank *then, const struct rank *now, ps_t period, struct period_pace pace)
{
    return then->host_state == now->host_state && then->host_step == now->host_step &&
           now->host_base - then->host_base == period &&
           now->host_first - then->host_first == pace.ops &&
           now->host_end - then->host_end == pace.ops &&
           now->host_launched - now->done == then->host_launched - then->done &&
           same_real(then->host_factor, now->host_factor) && (now->host_state != HOST_DRAINING);
}

static bool same_rank(
    const struct rank *then, const struct rank *now, ps_t period, struct period_pace pace)
{
    return same_host(then, now, period, pace) && then->waiting == now->waiting &&
           then->blocked == now->blocked && then->unissued == now->unissued &&
           (!now->unissued || now->unissued_from == then->unissued_from ||
               now->unissued_from - then->unissued_from == pace.ops) &&
           then->running == now->running && then->holding == now->holding &&
           then->slows_starts == now->slows_starts && then->sm_state == now->sm_state &&
           then->in_collective == now->in_collective &&
           went_on(then->comm_since, now->comm_since, period) &&
           went_on(then->held_since, now->held_since, period) &&
           same_real(then->memory_slowdown, now->memory_slowdown) &&
           same_real(then->traffic, now->traffic) && same_real(then->share, now->share) &&
           same_ahead(&then->ahead, &now->ahead, period);
}

static bool queue_moved(const struct queue *then, const struct queue *now)
{
    return now->done != then->done;
}

/* It is in the same op of another stretch, as far apart as the period is long; or in the very same,
 * before which it waits. */
static bool same_place(const struct queue *then, const struct queue *now, struct period_pace pace)
{
    if (now->step != then->step)
        return false;
    if (!queue_moved(then, now))
        return now->state == QUEUE_WAITING && now->op == then->op;
    return now->op - then->op == pace.ops &&
           now->done - then->done == now->position - then->position &&
           now->cursor.stretch - then->cursor.stretch == pace.stretches &&
           now->cursor.stretch->pattern == then->cursor.stretch->pattern &&
           now->cursor.place == then->cursor.place;
}

static bool same_queue(
    const struct queue *then, const struct queue *now, ps_t period, struct period_pace pace)
{
    return same_place(then, now, pace) && then->state == now->state &&
           then->wake_pending == now->wake_pending && then->issue_known == now->issue_known &&
           then->blocks == now->blocks &&
           (!now->blocks || now->blocks_until - now->done == then->blocks_until - then->done) &&
           same_real(then->sms_held, now->sms_held) && same_real(then->hbm_Bps, now->hbm_Bps) &&
           same_real(then->start_s, now->start_s) && same_real(then->left, now->left) &&
           then->spent == now->spent && then->alone_ps == now->alone_ps &&
           same_real(then->draws.jitter, now->draws.jitter) &&
           same_real(then->draws.compute, now->draws.compute) &&
           went_on(then->issue, now->issue, period) &&
           went_on(then->issue_base, now->issue_base, period) &&
           op_went_on(then->issue_first, now->issue_first, pace) &&
           op_went_on(then->last_op, now->last_op, pace) &&
           went_on(then->idle_since, now->idle_since, period) &&
           went_on(then->last_began, now->last_began, period) &&
           went_on(then->last_moved, now->last_moved, period) &&
           went_on(then->started, now->started, period) && went_on(then->end, now->end, period);
}

static bool same_flow(const struct net_flow *then, const struct net_flow *now, ps_t period)
{
    if (then->active != now->active)
        return false;
    return !now->active ||
           (now->settled_at - then->settled_at == period && now->end - then->end == period &&
               now->looks_at - then->looks_at == period && !then->changed && !now->changed &&
               same_real(then->bytes_left, now->bytes_left) && same_real(then->rate, now->rate) &&
               same_real(then->fair, now->fair) && same_real(then->rate_cap, now->rate_cap) &&
               then->bottleneck == now->bottleneck && then->n_weights == now->n_weights);
}

static bool same_meeting(
    const struct period_meeting *then, const struct period_meeting *now, ps_t period)
{
    const struct communicator *a = &then->comm, *b = &now->comm;
    return a->arrived == b->arrived && went_on(a->start, b->start, period) &&
           same_flow(&then->flow, &now->flow, period);
}

/* What waits to come back to the allocator is from as long ago. */
static bool same_pending(const struct sim *sim, const struct period_look *then,
    const struct period_look *now, const struct period_pace *paces)
{
    if (then->pending.n != now->pending.n)
        return false;
    for (int r = 0, i = 0; r < sim->n_ranks; r++) {
        if (then->n_pending[r] != now->n_pending[r])
            return false;
        for (int end = i + now->n_pending[r]; i < end; i++)
            if (then->pending.at[i].step != now->pending.at[i].step ||
                !op_went_on(then->pending.at[i].last_use, now->pending.at[i].last_use, paces[r]))
                return false;
    }
    return true;
}

/* By how much the compute queue of a rank has gone on; its other queues that have did as much. */
static struct period_pace pace_of(const struct queue *then, const struct queue *now)
{
    return (struct period_pace){
        (int32_t)(now->cursor.stretch - then->cursor.stretch), now->op - then->op};
}

/* What a rank has been idle in collectives since its compute queue began to be idle. */
static ps_t idle_since_then(
    const struct period_look *look, const struct rank *rank, const struct queue *compute)
{
    return rank->comm_total + (rank->in_collective ? look->now - rank->comm_since : 0) -
           compute->idle_comm;
}

static bool look_is_like(const struct sim *sim, const struct period_look *then,
    const struct period_look *now, struct period_pace *paces)
{
    ps_t period = now->now - then->now;
    if (then->hash != now->hash || period <= 0 || !same_events(then, now))
        return false;
    for (int r = 0; r < sim->n_ranks; r++) {
        const struct queue *a = then->queues + (ptrdiff_t)r * sim->n_queues,
                           *b = now->queues + (ptrdiff_t)r * sim->n_queues;
        paces[r] = pace_of(&a[STREAM_COMPUTE], &b[STREAM_COMPUTE]);
        if (paces[r].stretches <= 0 ||
            !same_rank(&then->ranks[r], &now->ranks[r], period, paces[r]))
            return false;
        if (idle_since_then(then, &then->ranks[r], &a[STREAM_COMPUTE]) !=
            idle_since_then(now, &now->ranks[r], &b[STREAM_COMPUTE]))
            return false;
        for (int q = 0; q < sim->n_queues; q++)
            if (b[q].n_ops > 0 && !same_queue(&a[q], &b[q], period, paces[r]))
                return false;
    }
    for (int i = 0; i < sim->period.n_meetings; i++)
        if (!same_meeting(&then->meetings[i], &now->meetings[i], period))
            return false;
    return same_pending(sim, then, now, paces);
}

/* ---- for how long ---- */

/* The stretch and the one a period later are one pattern, and what they name is. */
static bool is_alike(const struct plan_fold *fold, int32_t s, int32_t apart)
{
    const struct plan_stretch *one = &fold->stretches[s], *other = &one[apart];
    if (one->pattern != other->pattern || one->awaited != other->awaited ||
        !same_real(one[1].host_s - one->host_s, other[1].host_s - other->host_s))
        return false;
    for (int k = 1; k < one->pattern->n_slots; k++) {
        int32_t a = one->slots[k], b = other->slots[k];
        if (a != b && (b - a != apart || fold->stretches[a].pattern != fold->stretches[b].pattern))
            return false;
    }
    return true;
}

static int32_t stretch_of(const struct plan_fold *fold, int32_t op)
{
    return (int32_t)(plan_fold_stretch(fold, op) - fold->stretches);
}

/* How many more periods the rank's program is alike. */
static int64_t rank_has_left(const struct sim *sim, const struct period_look *then,
    const struct period_look *now, int r, struct period_pace pace)
{
    const struct rank *rank = &now->ranks[r];
    const struct plan_fold *fold = rank->tables->fold;
    int64_t left = INT64_MAX;
    int32_t from = stretch_of(fold, then->ranks[r].host_end),
            top = stretch_of(fold, rank->host_end);
    for (int q = 0; q < sim->n_queues; q++) {
        const struct queue *a = &then->queues[r * sim->n_queues + q],
                           *b = &now->queues[r * sim->n_queues + q];
        if (b->n_ops == 0 || (b->step > rank->host_step && !queue_moved(a, b)))
            continue;
        if (b->step != rank->host_step)
            return 0; /* the host is in the step after */
        if (queue_moved(a, b)) {
            int32_t last = stretch_of(fold, a->last_op), next = stretch_of(fold, b->op);
            from = last < from ? last : from;
            top = next > top ? next : top;
        } else {
            int64_t until = (b->op - rank->host_end) / pace.ops; /* below 1: it is issued soon */
            left = until < left ? until : left;
        }
    }
    from -= from > 0; /* what a host was blocked for (idle.c) */
    int32_t end = from;
    while (end + pace.stretches < fold->n_stretches && is_alike(fold, end, pace.stretches))
        end++;
    int64_t periods = end > top ? (end - 1 - top) / pace.stretches + 1 : 0;
    return periods < left ? periods : left;
}

/* How many periods can be skipped. */
static int64_t periods_left(const struct sim *sim, const struct period_look *then,
    const struct period_look *now, const struct period_pace *paces)
{
    int64_t left = (PS_HORIZON - now->now) / (now->now - then->now) - 1;
    for (int r = 0; r < sim->n_ranks && left > 0; r++) {
        int64_t of_this = rank_has_left(sim, then, now, r, paces[r]);
        left = of_this < left ? of_this : left;
    }
    int64_t done = now->queues[STREAM_COMPUTE].done,
            step = done - then->queues[STREAM_COMPUTE].done;
    if (sim->warm.taken_at < INT64_MAX && left > 0) {
        int64_t until = sim->warm.taken_at > done ? (sim->warm.taken_at - 1 - done) / step : 0;
        left = until < left ? until : left;
    }
    return left;
}

/* ---- going on ---- */

#define GO_ON(field) (now->field += (__typeof__(now->field))(n * (now->field - then->field)))

static void skip_rank(struct rank *now, const struct rank *then, int64_t n)
{
    GO_ON(host_base);
    GO_ON(host_first);
    GO_ON(host_end);
    GO_ON(host_launched);
    GO_ON(unissued_from);
    GO_ON(done);
    GO_ON(comm_since);
    GO_ON(comm_total);
    GO_ON(held_since);
    now->host_first_s = plan_fold_host_s(now->tables->fold, now->host_first);
    for (int i = 0; i < now->ahead.n; i++)
        GO_ON(ahead.kernels[i].end);
    for (int i = 0; i < SPENT_COUNT; i++)
        GO_ON(spent[i]);
    host_await(now);
}

static void skip_queue(struct queue *now, const struct queue *then, int64_t n)
{
    now->cursor.stretch += n * (now->cursor.stretch - then->cursor.stretch);
    GO_ON(position);
    GO_ON(op);
    GO_ON(done);
    GO_ON(blocks_until);
    GO_ON(issue);
    GO_ON(issue_base);
    GO_ON(issue_first);
    GO_ON(idle_since);
    GO_ON(idle_comm);
    GO_ON(last_op);
    GO_ON(last_began);
    GO_ON(last_moved);
    GO_ON(started);
    GO_ON(end);
}

static void skip_meeting(struct sim *sim, int i, const struct period_meeting *then, int64_t n)
{
    struct communicator *comm = &sim->meetings.all[sim->period.meetings[i]];
    struct net_flow *flow = &sim->machine->net.flows.at[comm->flow];
    comm->start += n * (comm->start - then->comm.start);
    if (!flow->active)
        return;
    flow->settled_at += n * (flow->settled_at - then->flow.settled_at);
    flow->end += n * (flow->end - then->flow.end);
    flow->looks_at += n * (flow->looks_at - then->flow.looks_at);
}

/* Follows the allocators of all ranks through n periods, or as many as none makes a segment in: how
 * many these are. */
static int64_t skip_ledgers(struct sim *sim, const struct period_look *then,
    const struct period_look *now, const struct period_pace *paces, int64_t n)
{
    int64_t went = n;
    for (int r = 0; sim->memory.ledgers && r < sim->n_ranks; r++)
        went = ledger_repeat(sim, r,
            &(struct ledger_period){.from = then->ranks[r].host_end,
                .ops = paces[r].ops,
                .first_return = then->n_returns[r],
                .length = now->now - then->now,
                .times = went});
    for (int r = 0; sim->memory.ledgers && r < sim->n_ranks; r++)
        ledger_settle(sim, r, went == n);
    return went == n || went == 0 ? went : skip_ledgers(sim, then, now, paces, went);
}

static void period_skip(
    struct sim *sim, const struct period_look *then, const struct period_look *now, int64_t n)
{
    struct net *net = &sim->machine->net;
    for (int r = 0; r < sim->n_ranks; r++)
        skip_rank(&sim->ranks[r], &then->ranks[r], n);
    for (int q = 0; q < sim->n_ranks * sim->n_queues; q++)
        if (sim->queues[q].n_ops > 0)
            skip_queue(&sim->queues[q], &then->queues[q], n);
    for (int i = 0; i < sim->period.n_meetings; i++)
        skip_meeting(sim, i, &then->meetings[i], n);
    for (int l = 0; l < sim->fabric.n_links; l++)
        net->carried.at[l] += (double)n * (now->carried[l] - then->carried[l]);
    engine_shift(&sim->machine->engine, n * (now->now - then->now));
}

/* ---- when ---- */

/* The next look is some stretches further on; twice as many each time that the allocator was in the
 * way, as it will be for a while. */
static void expect_look(struct sim *sim)
{
    enum { MOST_FAILS = 16 };
    int fails = sim->period.fails;
    const struct queue *queue = &sim->queues[STREAM_COMPUTE];
    const struct plan_fold *fold = sim->ranks[0].tables->fold;
    int64_t stretch = queue->cursor.stretch - fold->stretches +
                      ((int64_t)LOOK_STRETCHES << (fails < MOST_FAILS ? fails : MOST_FAILS)),
            in_step = stretch < fold->n_stretches
                          ? fold->stretches[stretch].positions[STREAM_COMPUTE]
                          : queue->n_ops;
    sim->period.look_at =
        queue->step >= sim->total_steps ? INT64_MAX : (int64_t)queue->step * queue->n_ops + in_step;
}

/* Looks of before are no use in another step, or after a period was skipped. */
static void period_forget(struct sim *sim)
{
    sim->period.n = 0;
    for (int r = 0; sim->memory.ledgers && r < sim->n_ranks; r++)
        ledger_begin_period(sim, r);
}

static bool has_timeline(const struct sim *sim)
{
    return sim->measure.traced && sim->queues[STREAM_COMPUTE].step + 1 == sim->total_steps;
}

/* Where a step before skipped fewer at the same op, as many are skipped, and the rest thereafter:
 * then the allocator may do as it did (ledger_repeat). */
static int64_t as_before(const struct period *period, const struct period_look *now, int64_t n)
{
    for (int i = period->skipped.n - 1; i >= 0; i--)
        if (period->skipped.at[i].op == now->queues[STREAM_COMPUTE].op)
            return period->skipped.at[i].times < n ? period->skipped.at[i].times : n;
    return n;
}

/* Back to the look that this one is like, if any; what can be skipped is. */
static void period_compare(struct sim *sim)
{
    struct period *period = &sim->period;
    struct period_pace *paces = xcalloc((size_t)sim->n_ranks, sizeof *paces);
    const struct period_look *now = &period->looks[(period->n - 1) % LOOKS];
    for (int i = period->n - 2; i >= 0 && i > period->n - 1 - LOOKS; i--) {
        const struct period_look *then = &period->looks[i % LOOKS];
        if (!look_is_like(sim, then, now, paces))
            continue;
        int64_t left = as_before(period, now, periods_left(sim, then, now, paces)),
                n = left > 0 ? skip_ledgers(sim, then, now, paces, left) : 0;
        period->fails = n > 0 ? 0 : period->fails + (left > 0);
        if (n > 0) {
            vec_push(&period->skipped, (struct period_skipped){now->queues[STREAM_COMPUTE].op, n});
            period_skip(sim, then, now, n);
            period_forget(sim);
        }
        break;
    }
    free(paces);
}

bool period_go_on(struct sim *sim)
{
    struct period *period = &sim->period;
    const struct net *net = &sim->machine->net;
    if (!period->asked || sim->machine->engine.overlong || sim->memory.out_of_memory)
        return false;
    period->asked = false;
    sim->machine->engine.stopped = false;
    if (net->solve_pending || net->changed.n > 0)
        return true; /* the next event will do */
    if (period->step != sim->queues[STREAM_COMPUTE].step) {
        period->step = sim->queues[STREAM_COMPUTE].step;
        period->fails = 0;
        period_forget(sim);
    }
    if (!has_timeline(sim)) {
        look_take(sim, &period->looks[period->n++ % LOOKS]);
        period_compare(sim);
    }
    expect_look(sim);
    return true;
}

/* Those that a simulated rank has to do with. */
static void find_meetings(struct sim *sim)
{
    struct period *period = &sim->period;
    period->meetings = ARENA_ARRAY(sim->arena, int, sim->meetings.n);
    for (int i = 0; i < sim->meetings.n; i++)
        if (sim->meetings.all[i].n_parties > 0)
            period->meetings[period->n_meetings++] = i;
}

void period_setup(struct sim *sim)
{
    sim->period.look_at = INT64_MAX;
    if (!sim->fold.on || sim->options->all_periods || sim->queues[STREAM_COMPUTE].n_ops == 0 ||
        sim->ranks[0].tables->fold->n_stretches < FEW_STRETCHES)
        return;
    find_meetings(sim);
    sim->period.looks = xcalloc(LOOKS, sizeof *sim->period.looks);
    sim->period.step = -1;
    sim->period.look_at = 0;
}

void period_release(struct sim *sim)
{
    for (int i = 0; sim->period.looks && i < LOOKS; i++) {
        struct period_look *look = &sim->period.looks[i];
        free(look->ranks);
        free(look->queues);
        free(look->meetings);
        free(look->n_pending);
        free(look->n_returns);
        free(look->carried);
        vec_free(&look->events);
        vec_free(&look->pending);
    }
    free(sim->period.looks);
    vec_free(&sim->period.skipped);
}
