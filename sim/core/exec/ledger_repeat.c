/* Periods that a run skips (period.c), followed by the allocators of its ranks alone.
 *
 * ledger_repeat_ops() asks the allocator op by op, period after period, until it is where it was
 * some periods before, with the same blocks for buffers that are those periods later (skip_rounds):
 * mostly after as many as a pipeline has in flight. From then on only samples are taken, those of
 * the last round again. Buffers that are allocated from the period's first stretch on are taken to
 * move with the periods, all others to stay; where that is not so, nothing is found to be alike.
 *
 * The last step mostly begins as the one before it did, buffers at the same addresses: then what
 * the periods came to in that step (struct ledger_part) is taken, and nothing is followed. */
#include "base/digest.h"
#include "exec/state.h"

#include <string.h>

static void ledger_keep(const struct sim *sim, int rank, struct ledger_state *out)
{
    const struct ledger *ledger = &sim->memory.ledgers[rank];
    ledger_state_release(out);
    hbm_copy(&out->hbm, &ledger->hbm);
    vec_copy(&out->pending, &ledger->pending);
    out->samples = ledger->samples;
    out->row = ledger->row;
    out->part = ledger->part;
}

/* Of each buffer that lives its block, or that it does not. */
static void set_blocks(struct ledger *ledger, bool live)
{
    for (int32_t i = 0; i < ledger->hbm.blocks.n; i++)
        if (hbm_is_allocated(&ledger->hbm, i))
            ledger->blocks[ledger->hbm.blocks.at[i].owner] = live ? i : -1;
}

static void ledger_restore(struct sim *sim, int rank, const struct ledger_state *state)
{
    struct ledger *ledger = &sim->memory.ledgers[rank];
    set_blocks(ledger, false);
    hbm_release(&ledger->hbm);
    hbm_copy(&ledger->hbm, &state->hbm);
    vec_free(&ledger->pending);
    vec_copy(&ledger->pending, &state->pending);
    ledger->looked = 0;
    set_blocks(ledger, true);
    ledger->samples = state->samples;
    ledger_begin_row(ledger, state->row);
    ledger->part = state->part;
}

/* Ops of a stretch from one on to another. */
static bool ledger_repeat_stretch(
    struct sim *sim, int rank, const struct plan_stretch *at, int32_t from, int32_t end)
{
    struct ledger *ledger = &sim->memory.ledgers[rank];
    const int32_t *next = at->pattern->next_memory;
    int32_t i = next[from > at->first_op ? from - at->first_op : 0],
            n = end < at[1].first_op ? end - at->first_op : at->pattern->n_ops;
    for (; i < n; i = next[i + 1]) {
        ledger->op = at->first_op + i;
        if (!plan_op_is_memory(&at->ops[i]))
            continue;
        if (!ledger_do(sim, rank, at, &at->ops[i], false) || ledger->hbm.mallocs > 0 ||
            ledger->hbm.frees > 0)
            return false;
        ledger_sample(sim, rank);
    }
    return true;
}

/* Once more. */
static bool ledger_repeat_once(struct sim *sim, int rank, int32_t from, int32_t end)
{
    struct ledger *ledger = &sim->memory.ledgers[rank];
    const struct plan_fold *fold = sim->ranks[rank].tables->fold;
    bool went = true;
    ledger->next_return = ledger->repeats->first_return;
    for (const struct plan_stretch *at = plan_fold_stretch(fold, from); at->first_op < end && went;
         at++)
        went = ledger_repeat_stretch(sim, rank, at, from, end);
    return went && ledger->next_return == ledger->returns.n;
}

/* The first buffer of a period's first stretch, and how many it allocates. */
struct period_buffers {
    int32_t first, n;
};

static struct period_buffers buffers_of_period(
    const struct sim *sim, int rank, const struct ledger_period *period)
{
    const struct plan_fold *fold = sim->ranks[rank].tables->fold;
    int32_t first = plan_fold_stretch(fold, period->from)->first_buffer,
            next = plan_fold_stretch(fold, period->from + period->ops)->first_buffer;
    return (struct period_buffers){first, next - first};
}

/* Of all that decides what the periods from now on do, these many periods earlier. */
static uint64_t digest_period(
    const struct sim *sim, int rank, const struct ledger_period *period, int64_t times)
{
    const struct ledger *ledger = &sim->memory.ledgers[rank];
    struct period_buffers buffers = buffers_of_period(sim, rank, period);
    uint64_t digest = hbm_digest(&ledger->hbm, buffers.first, (int32_t)times * buffers.n);
    for (int i = 0; i < ledger->pending.n; i++) {
        const struct pending_free *pending = &ledger->pending.at[i];
        digest = digest_word(digest, (uint64_t)hbm_address(&ledger->hbm, pending->block));
        digest = digest_word(digest, (uint64_t)(pending->last_use - (int32_t)times * period->ops));
    }
    return digest;
}

/* Over all that decides what becomes of a part: beside that where blocks came back, and when the
 * host comes to ops, counted from `base` on. */
static uint64_t digest_part(
    const struct sim *sim, int rank, const struct ledger_period *period, ps_t base)
{
    const struct ledger *ledger = &sim->memory.ledgers[rank];
    uint64_t digest = digest_word(digest_period(sim, rank, period, 0), (uint64_t)period->from);
    digest = digest_word(digest, (uint64_t)period->ops);
    digest = digest_word(digest, (uint64_t)period->times);
    digest = digest_word(digest, (uint64_t)period->length);
    for (int i = period->first_return; i < ledger->returns.n; i++)
        digest = digest_word(digest,
            (uint64_t)ledger->returns.at[i].op << 32 | (uint32_t)ledger->returns.at[i].last_use);
    for (int i = ledger_burst_of(ledger, period->from); i < ledger->bursts.n; i++) {
        digest = digest_word(digest, (uint64_t)ledger->bursts.at[i].first);
        digest = digest_word(digest, (uint64_t)(ledger->bursts.at[i].base - base));
    }
    return digest | 1;
}

/* What is pending is of this step, and its last uses are moved on by some ops. */
static void ledger_pending_since(struct sim *sim, int rank, int32_t ops)
{
    struct ledger *ledger = &sim->memory.ledgers[rank];
    for (int i = 0; i < ledger->pending.n; i++) {
        struct pending_free *pending = &ledger->pending.at[i];
        pending->step = sim->ranks[rank].host_step;
        pending->last_use += ops;
        pending->wanted = wait_wants(&sim->ranks[rank], pending->last_use, pending->step);
    }
}

/* As the part before it, which began alike. */
static void ledger_repeat_part(struct sim *sim, int rank)
{
    struct ledger *ledger = &sim->memory.ledgers[rank];
    ledger_restore(sim, rank, &ledger_last_part(ledger)->after);
    hbm_keep_peaks(&ledger->hbm, &ledger->before.hbm);
    ledger_pending_since(sim, rank, 0);
}

/* ---- an allocator that repeats itself, too ---- */

/* Samples of n periods more, as those of the last periods, which are recorded. */
static void sample_periods(
    struct sim *sim, int rank, const struct ledger_period *period, int64_t went, int64_t n)
{
    struct ledger *ledger = &sim->memory.ledgers[rank];
    int32_t op = INT32_MAX;
    for (int64_t done = 0; done < n && ledger->levels.n > 0;)
        for (int i = 0; i < ledger->levels.n; i++) {
            const struct ledger_level *level = &ledger->levels.at[i];
            if (level->op <= op) {
                ledger->shift = (int32_t)((went + ++done) * period->ops);
                ledger->later = (went + done) * period->length;
            }
            op = level->op;
            ledger->op = op + ledger->shift;
            ledger_sample_level(sim, rank, level->allocated, level->reserved, level->by_category);
        }
}

/* All is as it was, n periods later. */
static void shift_buffers(struct sim *sim, int rank, const struct ledger_period *period, int64_t n)
{
    struct ledger *ledger = &sim->memory.ledgers[rank];
    struct period_buffers buffers = buffers_of_period(sim, rank, period);
    set_blocks(ledger, false);
    for (int32_t i = 0; i < ledger->hbm.blocks.n; i++)
        if (hbm_is_allocated(&ledger->hbm, i) && ledger->hbm.blocks.at[i].owner >= buffers.first)
            ledger->hbm.blocks.at[i].owner += (int32_t)n * buffers.n;
    set_blocks(ledger, true);
    ledger_pending_since(sim, rank, (int32_t)n * period->ops);
}

/* What is known of a part's periods: */
struct rounds {
    VEC(uint64_t) seen; /* digests of their beginnings */
    int64_t length;     /* after this many the allocator is where it was; 0: not yet */
    int64_t begun;      /* the first period of a round that is recorded */
    bool over;          /* no more is to be known */
};

/* Behind `went` periods, how many are skipped: as many rounds as there is room for. Where samples
 * are taken, those of one round are recorded first. */
static int64_t skip_rounds(struct sim *sim, int rank, const struct ledger_period *period,
    struct rounds *rounds, int64_t went)
{
    struct ledger *ledger = &sim->memory.ledgers[rank];
    if (rounds->over || went == period->times)
        return 0;
    if (rounds->length == 0) {
        uint64_t now = digest_period(sim, rank, period, went);
        for (int i = rounds->seen.n - 1; i >= 0 && rounds->length == 0; i--)
            rounds->length = rounds->seen.at[i] == now ? rounds->seen.n - i : 0;
        vec_push(&rounds->seen, now);
        rounds->begun = went;
        ledger->records = rounds->length > 0 && ledger->n_rows > 0;
        ledger->levels.n = 0;
    }
    if (rounds->length == 0 || (ledger->records && went < rounds->begun + rounds->length))
        return 0;
    int64_t n = (period->times - went) / rounds->length * rounds->length;
    sample_periods(sim, rank, period, went, n);
    shift_buffers(sim, rank, period, n);
    ledger->records = false;
    rounds->over = true;
    return n;
}

/* Op by op. */
static int64_t ledger_repeat_ops(struct sim *sim, int rank, const struct ledger_period *period)
{
    struct ledger *ledger = &sim->memory.ledgers[rank];
    struct ledger_part *part = ledger_last_part(ledger);
    struct rounds rounds = {.over = hbm_collects(&ledger->hbm)};
    int64_t went = 0;
    bool goes = true;
    part->first_row = ledger->row;
    part->rows.none = true;
    ledger->repeats = period;
    while (goes && (went += skip_rounds(sim, rank, period, &rounds, went)) < period->times) {
        ledger->shift = (int32_t)((went + 1) * period->ops);
        ledger->later = (went + 1) * period->length;
        goes = ledger_repeat_once(
            sim, rank, period->from + ledger->shift, period->from + period->ops + ledger->shift);
        went += goes;
    }
    vec_free(&rounds.seen);
    ledger->records = false;
    ledger->repeats = NULL;
    if (went == period->times)
        ledger_keep(sim, rank, &part->after);
    return went;
}

int64_t ledger_repeat(struct sim *sim, int rank, const struct ledger_period *period)
{
    struct ledger *ledger = &sim->memory.ledgers[rank];
    ps_t base = sim->machine->engine.now;
    uint64_t begun = digest_part(sim, rank, period, base);
    ledger_keep(sim, rank, &ledger->before);
    for (int i = 0; i < LEDGER_PARTS; i++) {
        ledger->part = (ledger->part + 1) % LEDGER_PARTS; /* the oldest, and at last the last one */
        if (ledger_last_part(ledger)->begun == begun && !hbm_collects(&ledger->hbm)) {
            ledger_repeat_part(sim, rank);
            return period->times;
        }
    }
    ledger->part = (ledger->part + 1) % LEDGER_PARTS;
    int64_t went = ledger_repeat_ops(sim, rank, period);
    ledger_last_part(ledger)->begun = went == period->times ? begun : 0;
    ledger_last_part(ledger)->base = base;
    return went;
}

/* The part's rows become the timeline's; the first of them may have begun before it. */
static void join_rows(struct sim *sim, int rank)
{
    struct ledger *ledger = &sim->memory.ledgers[rank];
    const struct ledger_part *part = ledger_last_part(ledger);
    ps_t later = sim->machine->engine.now - part->base;
    if (part->rows.none || sim->ranks[rank].host_step + 1 != sim->total_steps)
        return;
    for (int row = part->first_row; row <= part->after.row; row++) {
        double bytes = 0;
        for (int c = 0; c < HBM_CATEGORY_COUNT; c++)
            bytes += part->rows.at[row].category_bytes[c];
        if (row == part->first_row && !ledger->timeline.none &&
            bytes <= ledger->timeline.highest_bytes)
            continue;
        ledger->timeline.at[row] = part->rows.at[row];
        ledger->timeline.times[row] = part->rows.times[row] + later;
        ledger->timeline.none = false;
        ledger->timeline.highest_bytes = bytes;
    }
}

void ledger_settle(struct sim *sim, int rank, bool keep)
{
    if (keep)
        join_rows(sim, rank);
    else
        ledger_restore(sim, rank, &sim->memory.ledgers[rank].before);
}
