/* The HBM of ranks in host program order: one allocator (hbm.c) a rank, driven by ops that keep,
 * allocate and free.
 *
 * ledger_op() is called when the host comes to such an op. It collects pending blocks, asks the
 * allocator, and counts its calls of cudaMalloc and cudaFree into host time. If the allocator finds
 * nothing, the host must first wait until the GPU has run dry (drained), and is then called again.
 * Every op that cost host time is a stop, with its step and whether it drained: a run without
 * ledgers replays the stops of another one (follow).
 *
 * The timeline of the last step has a row for each of LEDGER_ROWS equal stretches of its samples,
 * the highest of each, so that a pipeline's millions of samples need no room.
 *
 * Subtle: PyTorch looks for events only when it allocates; so does collect_pending(). Buffers that
 * the first step makes and keeps are there from the start in a run of one step. */
#include "base/digest.h"
#include "exec/peak.h"
#include "exec/state.h"

#include <stdlib.h>
#include <string.h>

static const struct plan_fold *fold_of(const struct sim *sim, int rank)
{
    return sim->ranks[rank].tables->fold;
}

static int64_t fixed_bytes(const struct sim *sim, int program)
{
    double fixed[HBM_CATEGORY_COUNT] = {0};
    exec_fixed_memory(fixed, sim->plan, program, sim->costs.hw);
    return (int64_t)(fixed[HBM_CONTEXT] + fixed[HBM_NCCL]);
}

static void fail(struct sim *sim, int rank, const struct plan_buffer *buffer)
{
    struct exec_memory *memory = &sim->result->memory;
    sim->memory.out_of_memory = true;
    sim->memory.oom_program = sim->ranks[rank].program;
    sim->result->status = EXEC_OOM;
    memory->oom_op = buffer->name;
    memory->oom_category = buffer->category;
    memory->oom_request_bytes = (double)buffer->bytes;
    engine_stop(&sim->machine->engine);
}

static bool is_first_of_program(const struct sim *sim, int rank)
{
    return sim->ranks[rank].number == plan_first_rank(sim->plan, sim->ranks[rank].program);
}

void ledger_begin_row(struct ledger *ledger, int row)
{
    ledger->row = row;
    if (ledger->n_rows > 0)
        ledger->row_end = (int)((int64_t)(row + 1) * ledger->n_samples / ledger->n_rows);
}

int ledger_burst_of(const struct ledger *ledger, int32_t op)
{
    int b = ledger->bursts.n - 1;
    while (b > 0 && ledger->bursts.at[b].first > op)
        b--;
    return b;
}

/* When the host is at the op at hand. */
static ps_t ledger_time(const struct sim *sim, int rank)
{
    const struct ledger *ledger = &sim->memory.ledgers[rank];
    const struct plan_fold *fold = fold_of(sim, rank);
    if (!ledger->repeats)
        return sim->machine->engine.now;
    int32_t op = ledger->op - ledger->shift;
    const struct host_burst *burst = &ledger->bursts.at[ledger_burst_of(ledger, op)];
    return burst->base + ledger->later +
           ps_from_s(plan_fold_host_s(fold, op) - plan_fold_host_s(fold, burst->first));
}

void ledger_sample_level(
    struct sim *sim, int rank, int64_t allocated, int64_t reserved, const int64_t *by_category)
{
    struct ledger *ledger = &sim->memory.ledgers[rank];
    BUG_IF(ledger->samples == ledger->n_samples, "more than %d samples", ledger->n_samples);
    struct ledger_rows *rows =
        ledger->repeats ? &ledger_last_part(ledger)->rows : &ledger->timeline;
    if (ledger->samples++ == ledger->row_end) {
        ledger_begin_row(ledger, ledger->row + 1);
        rows->none = true;
    }
    if (!ledger->repeats && sim->ranks[rank].host_step + 1 != sim->total_steps)
        return;
    double bytes = (double)allocated;
    if (!rows->none && bytes <= rows->highest_bytes)
        return;
    rows->none = false;
    rows->highest_bytes = bytes;
    rows->times[ledger->row] = ledger_time(sim, rank);
    struct exec_memory_sample *row = &rows->at[ledger->row];
    row->reserved_bytes = (double)reserved;
    for (int c = 0; c < HBM_CATEGORY_COUNT; c++)
        row->category_bytes[c] = (double)by_category[c];
}

void ledger_sample(struct sim *sim, int rank)
{
    struct ledger *ledger = &sim->memory.ledgers[rank];
    const struct hbm *hbm = &ledger->hbm;
    if (ledger->n_rows == 0)
        return;
    ledger_sample_level(sim, rank, hbm->allocated, hbm->reserved, hbm->by_category);
    if (!ledger->records)
        return;
    struct ledger_level level = {ledger->op - ledger->shift, hbm->allocated, hbm->reserved, {0}};
    memcpy(level.by_category, hbm->by_category, sizeof level.by_category);
    vec_push(&ledger->levels, level);
}

static void setup_rows(struct sim *sim, struct ledger_rows *rows, int n)
{
    rows->at = ARENA_ARRAY(sim->arena, struct exec_memory_sample, n);
    rows->times = ARENA_ARRAY(sim->arena, ps_t, n);
    rows->none = true;
}

/* Each op that touches memory leaves a sample. */
static void setup_timeline(struct sim *sim, int rank)
{
    struct ledger *ledger = &sim->memory.ledgers[rank];
    const struct plan_fold *fold = fold_of(sim, rank);
    for (int s = 0; s < fold->n_stretches; s++)
        for (int i = 0; i < fold->stretches[s].pattern->n_ops; i++)
            ledger->n_samples += plan_op_is_memory(&fold->stretches[s].ops[i]);
    ledger->n_rows = ledger->n_samples < LEDGER_ROWS ? ledger->n_samples : LEDGER_ROWS;
    setup_rows(sim, &ledger->timeline, ledger->n_rows);
    for (int i = 0; i < LEDGER_PARTS && sim->period.looks; i++)
        setup_rows(sim, &ledger->parts[i].rows, ledger->n_rows);
}

/* Its last use has passed; in a part that is repeated: it had, of the one that this one repeats. */
static bool comes_back(struct sim *sim, int rank, const struct pending_free *pending)
{
    struct ledger *ledger = &sim->memory.ledgers[rank];
    if (ledger->repeats) {
        if (ledger->next_return == ledger->returns.n)
            return false;
        const struct pending_return *next = &ledger->returns.at[ledger->next_return];
        bool comes = next->op + ledger->shift == ledger->op &&
                     next->last_use + ledger->shift == pending->last_use;
        ledger->next_return += comes;
        return comes;
    }
    bool comes = is_satisfied(pending->wanted);
    if (comes && sim->period.looks)
        vec_push(&ledger->returns,
            (struct pending_return){sim->ranks[rank].host_end, pending->last_use});
    return comes;
}

/* How many of those that are pending are known to be so still: at the last look nothing of the rank
 * had ended that has not now. In a part that is repeated, all until the op of the next return. */
static int still_pending(const struct sim *sim, int rank)
{
    const struct ledger *ledger = &sim->memory.ledgers[rank];
    if (!ledger->repeats)
        return sim->ranks[rank].done == ledger->looked_at ? ledger->looked : 0;
    bool none = ledger->next_return == ledger->returns.n ||
                ledger->returns.at[ledger->next_return].op + ledger->shift != ledger->op;
    return none ? ledger->pending.n : 0;
}

/* Blocks whose last use on another stream has passed come back. */
static void collect_pending(struct sim *sim, int rank)
{
    struct ledger *ledger = &sim->memory.ledgers[rank];
    int kept = still_pending(sim, rank);
    for (int i = kept; i < ledger->pending.n; i++) {
        struct pending_free pending = ledger->pending.at[i];
        if (comes_back(sim, rank, &pending))
            hbm_reuse(&ledger->hbm, pending.block);
        else
            ledger->pending.at[kept++] = pending;
    }
    ledger->pending.n = kept;
    ledger->looked = ledger->repeats ? 0 : kept;
    ledger->looked_at = sim->ranks[rank].done;
}

/* False: something has to be freed, or where the GPU is drained, there is too little memory. */
static bool ledger_allocate(
    struct sim *sim, int rank, const struct plan_buffer *buffer, int32_t number, bool drained)
{
    struct ledger *ledger = &sim->memory.ledgers[rank];
    int category = buffer->category, stream = buffer->stream;
    int32_t block = drained ? hbm_reclaim(&ledger->hbm, buffer->bytes, category, stream) : -1;
    if (block < 0)
        collect_pending(sim, rank);
    if (block < 0)
        block = (drained ? hbm_retry : hbm_alloc)(&ledger->hbm, buffer->bytes, category, stream);
    ledger->blocks[number] = block;
    if (block >= 0)
        ledger->hbm.blocks.at[block].owner = number;
    return block >= 0;
}

/* In a run of one step, which stands for those that follow, what the first step makes is there
 * before. */
static bool makes_in_first_step(const struct sim *sim)
{
    return sim->total_steps > 1;
}

static void setup_buffer(
    struct sim *sim, int rank, const struct plan_buffer *buffer, int32_t number)
{
    /* nothing is free yet that a retry could release */
    if (!sim->memory.out_of_memory && !ledger_allocate(sim, rank, buffer, number, false))
        fail(sim, rank, buffer);
}

static void setup_kept(struct sim *sim, int rank)
{
    const struct plan_fold *fold = fold_of(sim, rank);
    for (int32_t i = 0; i < fold->n_ops; i++)
        if (plan_fold_op(fold, i)->kind == OP_KEEP) {
            int32_t number;
            const struct plan_buffer *buffer = plan_fold_buffer(fold, i, &number);
            setup_buffer(sim, rank, buffer, number);
        }
}

static void setup_one(struct sim *sim, int rank)
{
    struct ledger *ledger = &sim->memory.ledgers[rank];
    const struct plan_fold *fold = fold_of(sim, rank);
    hbm_init(&ledger->hbm, (int64_t)sim->costs.hw->gpu.hbm_capacity.value,
        fixed_bytes(sim, sim->ranks[rank].program), &sim->options->allocator);
    ledger->blocks = xcalloc((size_t)fold->n_buffers, sizeof *ledger->blocks);
    memset(ledger->blocks, -1, (size_t)fold->n_buffers * sizeof *ledger->blocks);
    if (is_first_of_program(sim, rank))
        setup_timeline(sim, rank);
    for (int i = 0; i < fold->n_setup; i++)
        setup_buffer(sim, rank, &fold->setup_buffers[i], fold->setup[i]);
    if (!makes_in_first_step(sim))
        setup_kept(sim, rank);
    ledger->hbm.mallocs = 0; /* the time of those lies before the first step */
}

void ledger_setup(struct sim *sim)
{
    sim->memory.ledgers = ARENA_ARRAY(sim->arena, struct ledger, sim->n_ranks);
    for (int r = 0; r < sim->n_ranks; r++)
        setup_one(sim, r);
}

void ledger_state_release(struct ledger_state *state)
{
    hbm_release(&state->hbm);
    vec_free(&state->pending);
}

void ledger_release(struct sim *sim)
{
    for (int r = 0; sim->memory.ledgers && r < sim->n_ranks; r++) {
        hbm_release(&sim->memory.ledgers[r].hbm);
        free(sim->memory.ledgers[r].blocks);
        vec_free(&sim->memory.ledgers[r].pending);
        vec_free(&sim->memory.ledgers[r].stops);
        vec_free(&sim->memory.ledgers[r].returns);
        vec_free(&sim->memory.ledgers[r].bursts);
        vec_free(&sim->memory.ledgers[r].levels);
        ledger_state_release(&sim->memory.ledgers[r].before);
        for (int i = 0; i < LEDGER_PARTS; i++)
            ledger_state_release(&sim->memory.ledgers[r].parts[i].after);
    }
}

static void give_back(struct sim *sim, int rank, const struct plan_stretch *stretch,
    const struct plan_op *op, const struct plan_buffer *buffer, int32_t number)
{
    struct ledger *ledger = &sim->memory.ledgers[rank];
    int32_t block = ledger->blocks[number];
    ledger->blocks[number] = -1;
    hbm_free(&ledger->hbm, block, buffer->category);
    if (op->n_waits == 0) {
        hbm_reuse(&ledger->hbm, block);
        return;
    }
    int32_t step = sim->ranks[rank].host_step;
    plan_wait last_use = plan_stretch_wait(fold_of(sim, rank), stretch, op, 0);
    vec_push(&ledger->pending, (struct pending_free){block, step, last_use,
                                   wait_wants(&sim->ranks[rank], last_use, step)});
}

static ps_t calls_of(const struct sim *sim, int rank)
{
    const struct hw_gpu *gpu = &sim->costs.hw->gpu;
    struct hbm *hbm = &sim->memory.ledgers[rank].hbm;
    if (hbm->mallocs == 0 && hbm->frees == 0)
        return 0; /* mostly */
    double spent_s =
        (double)hbm->mallocs * gpu->cuda_malloc.value + (double)hbm->frees * gpu->cuda_free.value;
    hbm->mallocs = hbm->frees = 0;
    return ps_from_s(spent_s);
}

/* As the ledger of the reference run answered. */
static bool ledger_follow(const struct ledger *before, struct rank *rank, bool drained, ps_t *calls)
{
    const struct ledger_stop *stop = &before->stops.at[rank->next_stop];
    if (stop->drains && !drained)
        return false;
    *calls = stop->calls;
    rank->next_stop++;
    return true;
}

bool ledger_do(struct sim *sim, int rank, const struct plan_stretch *stretch,
    const struct plan_op *op, bool drained)
{
    int32_t number;
    const struct plan_buffer *buffer =
        plan_stretch_buffer(fold_of(sim, rank), stretch, op, &number);
    bool found = true;
    if (op->kind == OP_FREE)
        give_back(sim, rank, stretch, op, buffer, number);
    else if (op->kind == OP_ALLOC || (sim->ranks[rank].host_step == 0 && makes_in_first_step(sim)))
        found = ledger_allocate(sim, rank, buffer, number, drained);
    if (!found && drained)
        fail(sim, rank, buffer);
    return found || drained;
}

bool ledger_op(
    struct sim *sim, int rank, const struct plan_stretch *stretch, bool drained, ps_t *calls)
{
    if (!sim->memory.ledgers)
        return ledger_follow(
            &sim->memory.before[sim->ranks[rank].program], &sim->ranks[rank], drained, calls);
    struct ledger *ledger = &sim->memory.ledgers[rank];
    int32_t step = sim->ranks[rank].host_step, op_index = sim->ranks[rank].host_end;
    int64_t retries = ledger->hbm.retries;
    if (!ledger_do(sim, rank, stretch, &stretch->ops[op_index - stretch->first_op], drained))
        return false;
    *calls = calls_of(sim, rank);
    if (*calls > 0 || drained) {
        vec_push(&ledger->stops, (struct ledger_stop){step, op_index, drained, *calls});
        sim_warm_longer(sim, step);
    }
    ledger->measured_retries += measuring(sim, step) ? ledger->hbm.retries - retries : 0;
    ledger_sample(sim, rank);
    return true;
}

void ledger_note_burst(struct sim *sim, int rank)
{
    const struct rank *at = &sim->ranks[rank];
    if (sim->memory.ledgers && sim->period.looks)
        vec_push(
            &sim->memory.ledgers[rank].bursts, (struct host_burst){at->host_first, at->host_base});
}

void ledger_begin_period(struct sim *sim, int rank)
{
    sim->memory.ledgers[rank].returns.n = sim->memory.ledgers[rank].bursts.n = 0;
    ledger_note_burst(sim, rank);
}

void ledger_begin_step(struct sim *sim, int rank)
{
    if (!sim->memory.ledgers)
        return;
    struct ledger *ledger = &sim->memory.ledgers[rank];
    ledger->samples = 0;
    ledger_begin_row(ledger, 0);
    ledger->timeline.none = true;
}

void ledger_forget_measured(struct sim *sim)
{
    for (int r = 0; r < sim->n_ranks; r++) {
        struct ledger *ledger = &sim->memory.ledgers[r];
        ledger->stall = 0;
        ledger->measured_retries = 0;
    }
}

int32_t ledger_steady_from(const struct sim *sim)
{
    int32_t from = 0;
    for (int r = 0; sim->memory.ledgers && !sim->memory.out_of_memory && r < sim->n_ranks; r++) {
        const struct ledger *ledger = &sim->memory.ledgers[r];
        if (ledger->stops.n > 0 && ledger->stops.at[ledger->stops.n - 1].step >= from)
            from = ledger->stops.at[ledger->stops.n - 1].step + 1;
    }
    return from;
}

bool ledger_drains_from(const struct sim *sim, int32_t step)
{
    for (int r = 0; r < sim->n_ranks; r++)
        for (int i = 0; i < sim->memory.ledgers[r].stops.n; i++)
            if (sim->memory.ledgers[r].stops.at[i].drains &&
                sim->memory.ledgers[r].stops.at[i].step >= step)
                return true;
    return false;
}

static void timeline_result(
    const struct sim *sim, const struct ledger *ledger, struct exec_program *program)
{
    double began =
        sim->total_steps > 1 ? s_from_ps(sim->measure.step_end[sim->total_steps - 2]) : 0;
    program->timeline = ledger->timeline.at;
    program->n_timeline = ledger->samples > 0 ? ledger->row + 1 : 0;
    for (int row = 0; row < program->n_timeline; row++)
        program->timeline[row].time_s = s_from_ps(ledger->timeline.times[row]) - began;
}

/* Of the ranks of a program the first of those whose host stood longest for its allocator; the
 * others wait for it. */
static const struct ledger *slowest(const struct sim *sim, int p)
{
    const struct ledger *found = &sim->memory.ledgers[stand_in(sim, plan_first_rank(sim->plan, p))];
    for (int r = 0; r < sim->n_ranks; r++)
        if (sim->ranks[r].program == p && sim->memory.ledgers[r].stall > found->stall)
            found = &sim->memory.ledgers[r];
    return found;
}

static void program_result(const struct sim *sim, int p)
{
    struct exec_memory *memory = &sim->result->programs[p].memory;
    const struct ledger *ledger = slowest(sim, p);
    const struct ledger *first = &sim->memory.ledgers[stand_in(sim, plan_first_rank(sim->plan, p))];
    memory->capacity_bytes = sim->costs.hw->gpu.hbm_capacity.value;
    memory->peak_allocated_bytes = (double)ledger->hbm.peak_allocated;
    memory->peak_reserved_bytes = (double)ledger->hbm.peak_reserved;
    memory->alloc_retries = (double)ledger->hbm.retries;
    memory->alloc_retries_a_step = (double)ledger->measured_retries / (double)sim->options->steps;
    memory->alloc_stall_s = s_from_ps(ledger->stall) / (double)sim->options->steps;
    for (int c = 0; c < HBM_CATEGORY_COUNT; c++)
        memory->peak_category_bytes[c] = (double)ledger->hbm.at_peak[c];
    exec_fixed_memory(memory->peak_category_bytes, sim->plan, p, sim->costs.hw);
    if (!sim->memory.out_of_memory) {
        timeline_result(sim, first, &sim->result->programs[p]);
        return;
    }
    struct exec_peak peak;
    exec_program_peak(&peak, sim->plan, p, sim->costs.hw);
    memory->required_bytes = peak.total_bytes;
    memcpy(memory->required_category_bytes, peak.category_bytes, sizeof peak.category_bytes);
}

static double left_bytes(const struct sim *sim, int program)
{
    const struct exec_memory *memory = &sim->result->programs[program].memory;
    return memory->capacity_bytes - memory->peak_reserved_bytes;
}

/* The program without which the job would not fit. */
static int fullest(const struct sim *sim)
{
    int most = 0;
    for (int p = 1; p < sim->plan->n_programs; p++)
        if (left_bytes(sim, p) < left_bytes(sim, most))
            most = p;
    return sim->memory.out_of_memory ? sim->memory.oom_program : most;
}

void ledger_result(struct sim *sim)
{
    struct exec_result *result = sim->result;
    const struct exec_memory failed = result->memory;
    for (int p = 0; p < sim->plan->n_programs; p++)
        program_result(sim, p);
    result->fullest = fullest(sim);
    struct exec_memory *memory = &result->programs[result->fullest].memory;
    if (sim->memory.out_of_memory) {
        memory->oom_op = failed.oom_op;
        memory->oom_category = failed.oom_category;
        memory->oom_request_bytes = failed.oom_request_bytes;
    }
    result->memory = *memory;
    result->timeline = result->programs[result->fullest].timeline;
    result->n_timeline = result->programs[result->fullest].n_timeline;
}
