/* The timeline of the last measured step, of the ranks asked for. Spans are pushed in the order of
 * their ends and sorted by rank at the end, by counting. Host spans are made when a segment is
 * over: only then is it known what stopped the host, and issue times of its ops follow from its
 * start (host.c). Recording changes no time; kernels of a traced step are simulated one by one
 * (ahead.c), so there are more events. */
#include "exec/state.h"

void trace_setup(struct sim *sim)
{
    const struct exec_options *options = sim->options;
    if (options->n_trace_ranks == 0)
        return;
    sim->measure.traced = ARENA_ARRAY(sim->arena, bool, sim->n_ranks);
    for (int i = 0; i < options->n_trace_ranks; i++) {
        int rank = options->trace_ranks[i];
        BUG_IF(rank < 0 || rank >= sim->plan->mesh.ranks, "rank %d of %d", rank,
            sim->plan->mesh.ranks);
        sim->measure.traced[stand_in(sim, rank)] = true;
    }
}

/* The last one that the op waits for on another queue: of several, the one that was issued last. */
static int32_t exec_trace_awaited(const struct rank *rank, int32_t number)
{
    const struct plan_op *op = op_of(rank, number);
    int32_t found = -1;
    for (int w = 0; w < op->n_waits; w++) {
        plan_wait wait = wait_of(rank, number, w);
        if (!(wait & PLAN_PREVIOUS_STEP) && op_of(rank, wait)->stream != op->stream && wait > found)
            found = wait;
    }
    return found;
}

/* What is known of a collective or message beside its times. */
static void describe_comm(const struct sim *sim, const struct plan_op *op, struct exec_span *span)
{
    span->is_collective = true;
    span->meets_stages = idle_meets_stages(sim, op);
    if (op->kind == OP_COLLECTIVE) {
        const struct plan_collective *collective = &sim->plan->collectives.at[op->index];
        span->collective = (int)collective->kind;
        span->bytes = collective->bytes;
        span->group_size = sim->plan->groups.at[collective->group].ranks.size;
    } else {
        span->collective = COLL_SEND_RECV;
        span->bytes = sim->plan->messages.at[op->index].bytes;
        span->group_size = 2;
    }
}

void trace_record(struct sim *sim, int rank_index, int queue_index, struct exec_span span)
{
    const struct rank *rank = &sim->ranks[rank_index];
    span.op = rank->queues[queue_index].op;
    const struct plan_op *op = op_of(rank, span.op);
    span.end = sim->machine->engine.now;
    span.rank = rank_index;
    span.stream = op->stream;
    span.queue = sim->plan->queues.at[op->stream].name;
    span.phase = op->phase;
    span.name = op->name;
    span.program = rank->program;
    span.cell = plan_cell_of(rank->tables->program, span.op);
    span.waits_for = exec_trace_awaited(rank, span.op);
    if (op->kind == OP_KERNEL)
        span.kernel = (int)sim->plan->kernels.at[op->index].kind;
    else
        describe_comm(sim, op, &span);
    vec_push(&sim->measure.spans, span);
}

void trace_busy(struct sim *sim, int rank_index, bool begins)
{
    const struct rank *rank = &sim->ranks[rank_index];
    ps_t now = sim->machine->engine.now;
    struct exec_span *last = NULL;
    for (int i = sim->measure.busy.n - 1; i >= 0 && !last; i--)
        if (sim->measure.busy.at[i].rank == rank_index)
            last = &sim->measure.busy.at[i];
    if (last && (!begins || last->end == now))
        last->end = now;
    else
        vec_push(&sim->measure.busy, (struct exec_span){.start = now,
                                         .end = now,
                                         .moving = now,
                                         .rank = rank_index,
                                         .op = rank->queues[STREAM_COMPUTE].op,
                                         .stream = STREAM_COMPUTE,
                                         .program = rank->program,
                                         .waits_for = -1});
}

/* ---- the host ---- */

void trace_host_step(struct sim *sim, int rank_index)
{
    if (tracing_host(sim, rank_index))
        vec_push(
            &sim->measure.host_spans, (struct exec_host_span){.start = sim->machine->engine.now,
                                          .rank = rank_index,
                                          .op = -1,
                                          .kind = HOST_STEP});
}

static void end_host_step(struct sim *sim, int rank_index)
{
    for (int i = 0; i < sim->measure.host_spans.n; i++) {
        struct exec_host_span *span = &sim->measure.host_spans.at[i];
        if (span->rank == rank_index && span->kind == HOST_STEP)
            span->end = sim->machine->engine.now;
    }
}

static void record_host_op(struct sim *sim, int rank_index, int32_t op_index, ps_t start, ps_t end)
{
    const struct plan_op *op = op_of(&sim->ranks[rank_index], op_index);
    bool issues = op->position >= 0;
    if (sim->options->trace_gaps)
        return;
    if (issues || end > start)
        vec_push(&sim->measure.host_spans, (struct exec_host_span){.start = start,
                                               .end = end,
                                               .rank = rank_index,
                                               .op = op_index,
                                               .kind = issues ? HOST_ISSUE : HOST_WORK,
                                               .phase = op->phase,
                                               .name = op->name});
}

void trace_host_segment(struct sim *sim, int rank_index, enum exec_host_kind blocked, ps_t until)
{
    const struct rank *rank = &sim->ranks[rank_index];
    ps_t at = rank->host_base;
    if (!tracing_host(sim, rank_index))
        return;
    for (int32_t op = rank->host_first; op < rank->host_end; op++) {
        ps_t issued = host_issue_time(
            rank, rank->host_step, op, plan_fold_host_s(rank->tables->fold, op + 1));
        record_host_op(sim, rank_index, op, at, issued);
        at = issued;
    }
    if (rank->host_end == rank->tables->n_ops) {
        end_host_step(sim, rank_index);
        return;
    }
    if (until <= at)
        return;
    const struct plan_op *op = op_of(rank, rank->host_end);
    struct exec_host_span span = {.start = at,
        .end = until,
        .rank = rank_index,
        .op = rank->host_end,
        .kind = (uint8_t)blocked,
        .phase = op->phase,
        .name = op->name};
    if (blocked == HOST_WAITS) {
        plan_wait wait = wait_of(rank, rank->host_end, 0);
        span.op = wait & PLAN_PREVIOUS_STEP ? -1 : wait;
    }
    vec_push(&sim->measure.host_spans, span);
}

/* Of a list of the quiet run what the one that stands for rank r has there, as the rank's own. */
#define RESUME(sim, r, list, type)                                                                 \
    for (int i = 0; i < (sim)->after->measure.list.n; i++) {                                       \
        type span = (sim)->after->measure.list.at[i];                                              \
        if (span.rank != (sim)->ranks[r].program)                                                  \
            continue;                                                                              \
        span.rank = (r);                                                                           \
        vec_push(&(sim)->measure.list, span);                                                      \
    }

void trace_resume(struct sim *sim)
{
    for (int r = 0; r < sim->n_ranks && sim->measure.traced; r++) {
        if (!sim->measure.traced[r])
            continue;
        RESUME(sim, r, spans, struct exec_span)
        RESUME(sim, r, busy, struct exec_span)
        RESUME(sim, r, host_spans, struct exec_host_span)
    }
}

/* ---- what a run leaves ---- */

/* Spans by rank; of one rank they stand so already, and are millions in a long pipeline: the arena
 * takes them as they are. */
#define BY_RANK(sim, from, to, type)                                                               \
    do {                                                                                           \
        int *next = ARENA_ARRAY(                                                                   \
            (sim)->arena, int, (sim)->n_ranks + 1); /* place of the next span of a rank */         \
        bool one_rank = true;                                                                      \
        for (int i = 1; i < (from).n && one_rank; i++)                                             \
            one_rank = (from).at[i].rank == (from).at[0].rank;                                     \
        for (int i = 0; i < (from).n; i++)                                                         \
            next[(from).at[i].rank + 1]++;                                                         \
        for (int r = 0; r < (sim)->n_ranks; r++)                                                   \
            next[r + 1] += next[r];                                                                \
        (to) = one_rank ? (from).at : ARENA_ARRAY((sim)->arena, type, (from).n);                   \
        for (int i = 0; i < (from).n && !one_rank; i++)                                            \
            (to)[next[(from).at[i].rank]++] = (from).at[i];                                        \
        for (int i = 0; i < (from).n; i++)                                                         \
            (to)[i].rank = (sim)->ranks[(to)[i].rank].number;                                      \
        if (one_rank)                                                                              \
            vec_keep(to, &(from), (sim)->arena);                                                   \
        vec_free(&(from));                                                                         \
    } while (0)

/* Those of the compute queue (trace_gaps) among the others, in the order of their ends. */
static void merge_busy(struct sim *sim)
{
    int others = sim->measure.spans.n, busy = sim->measure.busy.n;
    for (int i = 0; i < busy; i++)
        vec_push(&sim->measure.spans, sim->measure.busy.at[i]);
    struct exec_span *at = sim->measure.spans.at;
    for (int to = others + busy - 1; busy > 0; to--) {
        bool other = others > 0 && at[others - 1].end >= sim->measure.busy.at[busy - 1].end;
        at[to] = other ? at[--others] : sim->measure.busy.at[--busy];
    }
}

void trace_result(struct sim *sim)
{
    struct exec_result *result = sim->result;
    result->last_step_start =
        sim->total_steps > 1 ? sim->measure.step_end[sim->total_steps - 2] : 0;
    result->last_step_end = sim->measure.step_end[sim->total_steps - 1];
    if (!sim->measure.traced)
        return;
    merge_busy(sim);
    result->n_spans = sim->measure.spans.n;
    BY_RANK(sim, sim->measure.spans, result->spans, struct exec_span);
    result->n_host_spans = sim->measure.host_spans.n;
    BY_RANK(sim, sim->measure.host_spans, result->host_spans, struct exec_host_span);
}
