/* A step: its batch, the cells of its schedule, and what stands at both ends.
 *
 * emit_step() makes a program for each stage. emit_stage() cuts the model for the stage's ranks,
 * records its segments, calls the strategy's setup, and goes through the cells: what arrives
 * before, the pass segment by segment with the strategy's hooks around each, what is sent behind.
 * At the end come the optimizer (step_ends) and the freeing of gradients. Merged pairs of passes
 * are emitted one after the other and woven last (plan_weave()), when all ops have their numbers.
 *
 * Subtle: a last micro-batch of fewer sequences gets segments of its size, from its first forward
 * pass on. For exec a program is folded while it grows, unless a strategy changes its ops at the
 * end, or passes are woven. */
#include "strategy/pipeline.h"

/* This rank's tables of embeddings, which no strategy touches. */
static void keep_tables(struct emit *emit)
{
    int ranks = emit_degree(emit, emit->model->tables.split);
    int64_t bytes = model_table_bytes(&emit->model->shape, ranks);
    if (bytes == 0)
        return;
    plan_keep(&emit->builder, "tables", bytes, HBM_PARAMETERS);
    plan_keep(&emit->builder, "tables/rowwise_adagrad",
        model_table_state_bytes(&emit->model->shape, ranks), HBM_OPTIMIZER);
}

/* A step begins when its batch, made during the step before, is handed over; then the host begins
 * with the next. */
static void load_batch(struct emit *emit, int64_t batch)
{
    int handed_over = plan_next_op(&emit->builder), decoded = handed_over + 1;
    plan_stream_wait(&emit->builder, STREAM_COMPUTE, PLAN_PREVIOUS_STEP + decoded);
    plan_kernel(&emit->builder, STREAM_COMPUTE, "data_loader.next",
        kernel_stream(KERNEL_COPY, 0, 0, 0), emit->options->host.kernel_issue_s);
    plan_stream_wait(&emit->builder, STREAM_LOADER, handed_over);
    plan_kernel(&emit->builder, STREAM_LOADER, "data_loader",
        (struct kernel_work){.kind = KERNEL_DECODE,
            .m = batch,
            .batch = hw_ranks_of_host(emit->hw, emit->builder.plan->mesh.ranks)},
        0);
}

/* The segments of a micro-batch. */
static void lay_out_segments(struct emit *emit)
{
    model_segments(&emit->segments, emit->model, &emit->workload, emit->arena);
    emit->ops = segment_ops_lay_out(&emit->segments, emit->arena);
    pipeline_lay_out(emit);
}

static void stage_begins(struct emit *emit, const struct job *job)
{
    keep_tables(emit);
    if (quantity_is_set(emit->hw->gpu.step_pause))
        plan_host(&emit->builder, "step_pause", emit->hw->gpu.step_pause.value);
    if (job->options->train.decode_images)
        load_batch(emit, job->batch.samples);
    lay_out_segments(emit);
    emit->flights = ARENA_ARRAY(emit->arena, int **, emit->micro_batches * emit->schedule.chunks);
    emit->grads = ARENA_ARRAY(emit->arena, int, emit->model->n_tensors);
    for (int t = 0; t < emit->model->n_tensors; t++)
        emit->grads[t] = PLAN_NO_OP;
    emit->caches = ARENA_ARRAY(emit->arena, int, emit->segments.n);
    emit->blocks = ARENA_ARRAY(emit->arena, int, emit->segments.n);
    for (int s = 0; s < emit->segments.n; s++) {
        emit->blocks[s] = (s > 0 ? emit->blocks[s - 1] : 0) + emit->segments.at[s].program->reruns;
        emit->caches[s] = PLAN_NO_OP;
    }
}

static void stage_ends(struct emit *emit)
{
    emit->builder.captures = false;
    if (quantity_is_set(emit->hw->gpu.step_pause))
        plan_host_wait(
            &emit->builder, "loss.item", plan_last_op(&emit->builder, STREAM_COMPUTE), 0);
    if (emit->pairs.n > 0)
        plan_weave(&emit->builder, emit->pairs.at, emit->pairs.n);
    vec_free(&emit->pairs);
    index_free(&emit->names);
    vec_free(&emit->made);
    vec_free(&emit->idle);
    vec_free(&emit->offloaded);
    vec_free(&emit->group_queues);
}

bool emit_opens_layer(const struct emit *emit, int segment)
{
    bool opened = emit->segments.at[segment].layer != 0;
    int chunk = 0;
    while (segment >= emit->chunk_begin[chunk + 1])
        chunk++;
    for (int s = emit->chunk_begin[chunk]; s < segment && !opened; s++)
        if (emit->segments.at[s].layer == 0 && emit->segments.at[s].kind != SEGMENT_BORDER)
            return false;
    return true;
}

#define CALL(hook, ...)                                                                            \
    do {                                                                                           \
        if (emit->hooks->hook)                                                                     \
            emit->hooks->hook(__VA_ARGS__);                                                        \
    } while (0)

/* The last micro-batch may have fewer sequences (train_options.device_batch), hence smaller
 * segments, and other kernels where those depend on the number of tokens: which products take FP8
 * does (model/tape.h). */
static void micro_batch_begins(struct emit *emit, struct cell cell)
{
    struct plan *plan = emit->builder.plan;
    if (emit->on_last && emit->last_micro_batch != emit->workload.micro_batch) {
        emit->workload.micro_batch = emit->last_micro_batch;
        lay_out_segments(emit);
    }
    int begin = emit->chunk_begin[cell.chunk], end = emit->chunk_begin[cell.chunk + 1];
    const struct model_segments chunk = {emit->segments.at + begin, end - begin};
    emit->builder.program->model_flop += model_step_flop(&chunk);
    emit->builder.program->masked_flop += model_step_masked_flop(&chunk);
    if (emit->schedule.stage == 0 && cell.chunk == 0)
        plan->tokens += (double)model_tokens(emit->model, &emit->workload);
}

static bool step_is_border(const struct emit *emit, int segment)
{
    return emit->segments.at[segment].kind == SEGMENT_BORDER;
}

static void step_forward(struct emit *emit, struct cell cell)
{
    micro_batch_begins(emit, cell);
    pipeline_take_flight(emit, cell);
    CALL(forward_begins, emit);
    emit->builder.phase = PHASE_FORWARD;
    for (int s = emit->chunk_begin[cell.chunk]; s < emit->chunk_begin[cell.chunk + 1]; s++) {
        if (step_is_border(emit, s))
            continue;
        CALL(before_forward, emit, s);
        emit_forward(emit, s);
        CALL(after_forward, emit, s);
        offload_behind_forward(emit, s);
    }
}

static void backward(struct emit *emit, struct cell cell)
{
    static void (*const parts[CELL_KIND_COUNT])(struct emit *, int) = {
        [CELL_BACKWARD] = emit_backward,
        [CELL_BACKWARD_INPUT] = emit_backward_input,
        [CELL_BACKWARD_WEIGHT] = emit_backward_weight};
    pipeline_take_flight(emit, cell);
    emit->builder.phase = PHASE_BACKWARD;
    for (int s = emit->chunk_begin[cell.chunk + 1] - 1; s >= emit->chunk_begin[cell.chunk]; s--) {
        if (step_is_border(emit, s))
            continue;
        CALL(before_backward, emit, s);
        offload_before_backward(emit, s);
        parts[cell.kind](emit, s);
        CALL(after_backward, emit, s);
    }
    emit_drop_outputs(emit);
    CALL(backward_ends, emit);
}

static void begin_cell(struct emit *emit, struct cell cell)
{
    emit->cell = cell;
    emit->on_first = cell.micro_batch == 0;
    emit->on_last = cell.micro_batch + 1 == emit->micro_batches;
    plan_begin_cell(&emit->builder, cell_pass_names[cell.kind], cell.micro_batch, cell.chunk);
}

static void cell_before(struct emit *emit, const struct cell *cells, int n, int i)
{
    begin_cell(emit, cells[i]);
    if (emit->options->host.pass_s > 0)
        plan_host(&emit->builder, "pass", emit->options->host.pass_s);
    pipeline_before(emit, cells, n, i);
}

static void cell_pass(struct emit *emit, struct cell cell)
{
    (cell.kind == CELL_FORWARD ? step_forward : backward)(emit, cell);
    if (cell.kind == CELL_FORWARD)
        pipeline_keep_output(emit, cell);
}

static void cell_after(struct emit *emit, const struct cell *cells, int n, int i)
{
    pipeline_after(emit, cells, n, i);
    if (cells[i].kind == CELL_BACKWARD || cells[i].kind == CELL_BACKWARD_WEIGHT)
        pipeline_end_flight(emit, cells[i]);
}

/* Both have what they need before the first begins, and send what they made behind the second. */
static void merged(struct emit *emit, const struct cell *cells, int n, int i)
{
    struct plan_pair pair;
    cell_before(emit, cells, n, i);
    cell_before(emit, cells, n, i + 1);
    begin_cell(emit, cells[i]);
    pair.first = plan_next_op(&emit->builder);
    cell_pass(emit, cells[i]);
    begin_cell(emit, cells[i + 1]);
    pair.second = plan_next_op(&emit->builder);
    cell_pass(emit, cells[i + 1]);
    pair.end = plan_next_op(&emit->builder);
    vec_push(&emit->pairs, pair);
    cell_after(emit, cells, n, i);
    cell_after(emit, cells, n, i + 1);
}

static void step_run(struct emit *emit)
{
    emit->hooks->setup(emit);
    plan_host(&emit->builder, "step", emit->options->host.step_s);
    CALL(step_begins, emit);
    struct cell *cells =
        ARENA_ARRAY(emit->arena, struct cell, schedule_most_cells(&emit->schedule));
    int n = schedule_cells(cells, &emit->schedule);
    for (int i = 0; i < n; i++) {
        if (schedule_merges(&emit->schedule, cells, n, i)) {
            merged(emit, cells, n, i++);
            continue;
        }
        cell_before(emit, cells, n, i);
        cell_pass(emit, cells[i]);
        cell_after(emit, cells, n, i);
    }
    plan_begin_cell(&emit->builder, NULL, 0, 0);
    pipeline_merge_outputs(emit);
    CALL(step_ends, emit);
    for (int t = 0; t < emit->model->n_tensors; t++) /* zero_grad(set_to_none=True) */
        emit_free(emit, &emit->grads[t], PLAN_NO_OP);
}

const struct model *strategy_rank_model(const struct job *job, int stage, struct arena *arena)
{
    struct model *cut = ARENA_NEW(arena, struct model), *adapted = ARENA_NEW(arena, struct model),
                 *share = ARENA_NEW(arena, struct model);
    model_shard(cut, job->model, &job->workload.parallel, arena);
    model_adapt(
        adapted, cut, job->options->train.lora_rank, job->options->train.lora_targets, arena);
    if (job->mesh.size[AXIS_PP] == 1)
        return adapted;
    struct model_stage part = strategy_stage(job, stage, arena);
    model_stage(share, adapted, &part, &job->workload, arena);
    return share;
}

/* What programs of attention are made with, and what exec draws. */
static void lay_out_documents(struct emit *emit, const struct job *job)
{
    const struct train_options *train = &job->options->train;
    struct plan_packing *out = &emit->builder.program->packing;
    char why[DOCUMENTS_WHY];
    bool known =
        documents_read(&out->documents, &train->documents, train->seq_len, emit->arena, why);
    BUG_IF(!known, "%s", why);
    if (out->documents.n > 0)
        emit->workload.document_pairs = documents_mean(&out->documents);
    out->micro_batches = (int32_t)job->batch.micro_batches;
    out->sequences = (int32_t)job->workload.micro_batch;
    out->last_sequences = (int32_t)job->batch.last;
}

static const struct data_parallel *hooks_of(const struct strategy_options *options)
{
    const struct data_parallel *hooks = strategies[options->kind];
    return hooks->variant ? hooks->variant(options) : hooks;
}

static void emit_stage(struct emit *emit, const struct job *job, int stage)
{
    const struct strategy_options *options = job->options;
    const struct data_parallel *hooks = hooks_of(options);
    const char *unknown;
    *emit = (struct emit){.builder = emit->builder,
        .options = options,
        .model = strategy_rank_model(job, stage, emit->arena),
        .hw = job->hw,
        .arena = emit->arena,
        .hooks = hooks,
        .state = arena_alloc(emit->arena, hooks->state_size),
        .workload = job->workload,
        .micro_batches = (int)job->batch.micro_batches,
        .last_micro_batch = job->batch.last,
        .master_bytes = job->element.master,
        .step_bytes = job->element.step,
        .param_bytes = job->element.param,
        .recomputed_parts = strategy_recomputed_parts(&options->train, &unknown),
        .comm_queue = STREAM_COMM,
        .norm_group = PLAN_NO_OP,
        .schedule = strategy_schedule(job, stage)};
    lay_out_documents(emit, job);
    emit->builder.captures = options->train.cuda_graphs == CUDA_GRAPHS_FULL_ITERATION;
    stage_begins(emit, job);
    step_run(emit);
    stage_ends(emit);
}

/* False: see plan_end(). */
static bool emit_stages(
    struct plan *plan, const struct job *job, enum plan_folds folds, struct arena *arena)
{
    struct emit emit = {.arena = arena};
    plan_begin_programs(&emit.builder, plan, &job->mesh, AXIS_PP);
    plan_fold_programs(&emit.builder, folds);
    for (int stage = 0; stage < job->mesh.size[AXIS_PP]; stage++) {
        if (stage > 0)
            plan_next_program(&emit.builder);
        emit_stage(&emit, job, stage);
    }
    plan->samples = (double)job->batch.samples * emit_degree(&emit, AXES_DATA);
    plan->tokens *= emit_degree(&emit, AXES_DATA); /* so far of one rank */
    return plan_end(&emit.builder);
}

void emit_step(struct plan *plan, const struct job *job, struct arena *arena)
{
    bool whole = hooks_of(job->options)->changes_ops || strategy_schedule(job, 0).merges;
    enum plan_folds folds = !job->folds ? PLAN_FOLDS_NONE
                            : whole     ? PLAN_FOLDS_PROGRAMS
                                        : PLAN_FOLDS_OPS;
    if (emit_stages(plan, job, folds, arena))
        return;
    plan_release(plan);
    emit_stages(plan, job, PLAN_FOLDS_PROGRAMS, arena);
}
