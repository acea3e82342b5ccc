/* The lower bounds of study/bound.h: costs of blocks, the longest path through a schedule, and
 * bounds of any plan. Costs of blocks come from plans of a shorter model, one block a stage,
 * compiled with one micro-batch and with two; their difference is what a further micro-batch adds,
 * without what a step does once. Blocks that are alike share their costs (find_standing()). In a
 * program the longest path is one pass over its ops: an op starts after what it waits for and after
 * its queue's previous op.
 *
 * What is subtle: everything that is left out may only make a step longer, and a bound that is too
 * high would let the search lose the best layout. So collectives count only where their groups lie
 * alike in every layout (bound_is_known()), exchanges of experts do not count where another
 * micro-batch's kernels hide them, and a relative 1e-6 is taken off for the simulator's rounding to
 * picoseconds. Bytes are held to the same rule. */
#include "study/bound.h"

#include "base/vec.h"
#include "strategy/schedule.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- costs of blocks ---- */

/* The axes whose groups lie alike in every layout, as they come before those of data parallelism
 * and stages. An order of the user's may have them elsewhere: then their collectives take nothing.
 */
static bool bound_is_known(const struct plan *plan, const struct mesh_group *ranks,
    const struct parallelism_options *options)
{
    const struct mesh *mesh = &plan->mesh;
    int inner = mesh->size[AXIS_TP] * mesh->size[AXIS_EP] * mesh->size[AXIS_CP];
    return !options->order && ranks->size > 1 && ranks->size * ranks->stride <= inner;
}

static double collective_s(const struct plan *plan, const struct hw *hw, int index)
{
    const struct plan_collective *at = &plan->collectives.at[index];
    const struct mesh_group *ranks = &plan->groups.at[at->group].ranks;
    struct coll_group group = {mesh_group_first(ranks, 0), ranks->stride, ranks->size};
    struct hw bridge;
    return coll_isolated_s(coll_of(at->kind, at->bytes, at->routing,
        coll_shape(group, hw_gpus_per_node(hw)), coll_hw_of(&bridge, group, hw)));
}

/* Equal collectives of a plan are computed once (plan_first_collectives). */
static double *collective_times(const struct plan *plan, const struct hw *hw)
{
    double *times = xcalloc((size_t)plan->collectives.n + 1, sizeof *times);
    int *first = plan_first_collectives(plan);
    for (int i = 0; i < plan->collectives.n; i++)
        times[i] = first[i] < i ? times[first[i]] : collective_s(plan, hw, i);
    free(first);
    return times;
}

/* How long each collective of a plan takes alone, 0 of those of no matter; merges: of exchanges,
 * too, as another micro-batch's kernels run beside them. For free(). */
static double *isolated_times(const struct plan *plan, const struct job *job, bool merges)
{
    double *times = xcalloc((size_t)plan->collectives.n + 1, sizeof *times);
    double *all = collective_times(plan, job->hw);
    for (int i = 0; i < plan->collectives.n; i++) {
        const struct plan_collective *at = &plan->collectives.at[i];
        const struct mesh_group *ranks = &plan->groups.at[at->group].ranks;
        if (bound_is_known(plan, ranks, &job->options->parallelism) &&
            !(merges && at->serves == PARALLEL_EXPERT))
            times[i] = all[i];
    }
    free(all);
    return times;
}

static double *kernel_times(const struct plan *plan, const struct hw *hw)
{
    double *times = xcalloc((size_t)plan->kernels.n + 1, sizeof *times);
    for (int i = 0; i < plan->kernels.n; i++)
        times[i] = kernel_duration_s(&plan->kernels.at[i], &hw->gpu, kernel_whole_gpu(&hw->gpu));
    return times;
}

/* Waits for the step before, and negative ones, count as over. Ops that neither compute nor
 * communicate take no time and no queue. */
struct bound_passes bound_passes(const struct plan *plan, const struct plan_program *program,
    const double *kernel_s, const double *coll_s)
{
    struct bound_passes passes = {0};
    double *ends = xcalloc((size_t)program->ops.n + 1, sizeof *ends);
    double free_s[UINT8_MAX + 1] = {0}; /* by queue */
    for (int i = 0; i < program->ops.n; i++) {
        const struct plan_op *op = &program->ops.at[i];
        double start = 0;
        for (int w = 0; w < op->n_waits; w++) {
            plan_wait wait = program->waits.at[op->first_wait + w];
            if (wait >= 0 && wait < PLAN_PREVIOUS_STEP)
                start = fmax(start, ends[wait]);
        }
        ends[i] = start;
        if (op->kind != OP_KERNEL && !plan_op_is_comm(op))
            continue;
        double *queue = &free_s[op->stream], before = *queue;
        double takes = op->kind == OP_KERNEL       ? kernel_s[op->index]
                       : op->kind == OP_COLLECTIVE ? coll_s[op->index]
                                                   : 0;
        ends[i] = *queue = fmax(start, *queue) + takes;
        bool forward = op->phase == PHASE_FORWARD,
             backward = op->phase == PHASE_BACKWARD || op->phase == PHASE_RECOMPUTE;
        if (plan->queues.at[op->stream].kind != QUEUE_COMPUTE || !(forward || backward))
            continue;
        *(forward ? &passes.forward_s : &passes.backward_s) += *queue - before;
        passes.kernels_s += takes;
    }
    free(ends);
    return passes;
}

/* The fewest bytes that live between the last kernel of the forward pass and the first of the
 * backward pass, as one micro-batch has them. */
static double held_bytes(const struct plan *plan, const struct plan_program *program)
{
    int64_t now = 0, least = INT64_MAX;
    for (int i = 0; i < program->ops.n; i++) {
        const struct plan_op *op = &program->ops.at[i];
        bool computes = op->kind == OP_KERNEL && plan->queues.at[op->stream].kind == QUEUE_COMPUTE;
        if (computes && op->phase != PHASE_FORWARD)
            break;
        if (computes)
            least = INT64_MAX;
        if (op->kind == OP_ALLOC || op->kind == OP_FREE)
            now += (op->kind == OP_ALLOC ? 1 : -1) * program->buffers.at[op->index].bytes;
        least = now < least ? now : least;
    }
    return least == INT64_MAX ? 0 : (double)least;
}

/* What a block hands on and keeps, too: no tensor is let go of when the first message has gone. */
static double shared_bytes(
    const struct plan *plan, const struct plan_program *program, const struct job *job)
{
    int sent = PLAN_NO_OP;
    for (int i = 0; i < program->ops.n; i++) {
        const struct plan_op *op = &program->ops.at[i];
        if (op->kind == OP_SEND && sent == PLAN_NO_OP &&
            plan->channels.at[plan->messages.at[op->index].channel].delta > 0)
            sent = i;
        for (int w = 0; w < op->n_waits && op->kind == OP_FREE && sent != PLAN_NO_OP; w++)
            if (program->waits.at[op->first_wait + w] == sent)
                return 0;
    }
    if (sent == PLAN_NO_OP)
        return 0;
    double parts =
        (double)model_tensor_ranks(&job->workload.parallel); /* at most: scatter_gather */
    return plan->messages.at[program->ops.at[sent].index].bytes * parts;
}

/* Whether every rank has all of what is in the category: Megatron-FSDP may shard weights and
 * gradients, too. */
static bool is_whole(const struct megatron_options *options, int category)
{
    int sharding =
        options->use_megatron_fsdp ? options->data_parallel_sharding_strategy : SHARD_NOTHING;
    return !(category == HBM_PARAMETERS && sharding >= SHARD_OPTIM_GRADS_PARAMS) &&
           !(category == HBM_GRADIENTS && sharding >= SHARD_OPTIM_GRADS);
}

static void bound_count_states(struct bound_block *block, const struct plan_program *program,
    const struct megatron_options *options)
{
    for (int i = 0; i < program->setup.n; i++) {
        const struct plan_buffer *buffer = &program->buffers.at[program->setup.at[i]];
        if (!is_whole(options, buffer->category))
            continue;
        *(buffer->category == HBM_OPTIMIZER ? &block->optimizer_bytes : &block->state_bytes) +=
            (double)buffer->bytes;
    }
    for (int i = 0; i < program->ops.n; i++)
        if (program->ops.at[i].kind == OP_KEEP &&
            program->buffers.at[program->ops.at[i].index].category == HBM_OPTIMIZER)
            block->optimizer_bytes += (double)program->buffers.at[program->ops.at[i].index].bytes;
}

/* A shorter model whose blocks stand for all: the first and the last one have the model's ends, and
 * between them is one of each kind. */
struct standing {
    struct model model;
    int *of; /* by block of the whole model: which of its blocks */
};

/* Whether the first n blocks have one for each of all. */
static bool stand_for_all(const struct model *model, int n, int *of)
{
    int all = model_blocks(model);
    const struct model_layer *blocks = model->layers + 1;
    for (int b = 1; b < all - 1; b++) {
        int same = 1;
        while (same < n - 1 && blocks[same].alike != blocks[b].alike)
            same++;
        if (same == n - 1)
            return false;
        of[b] = same;
    }
    of[0] = 0;
    of[all - 1] = n - 1;
    return blocks[n - 1].alike == blocks[all - 1].alike;
}

/* Where loads of experts are drawn, block by block, each stands for itself. n grows until the
 * first n blocks stand for all; the first and last are always themselves. */
static struct standing find_standing(const struct scenario_point *point, struct arena *arena)
{
    const struct model *model = &point->model;
    int all = model_blocks(model), n = 2;
    struct standing standing = {.model = *model, .of = ARENA_ARRAY(arena, int, all)};
    bool drawn = strategy_draws_experts(&point->options.strategy);
    while (n < all && !stand_for_all(model, n, standing.of))
        n++;
    if (n < all && !drawn) {
        struct model_shape shape = model->shape;
        shape.n_layers = n;
        model_build(&standing.model, &shape, arena);
    }
    bool shorter = standing.model.n_layers < model->n_layers;
    for (int b = 0; b < all && !shorter; b++)
        standing.of[b] = b;
    return standing;
}

/* The optimizer's state is sharded over data parallelism. */
static bool shares_optimizer(const struct strategy_options *options)
{
    const struct megatron_options *megatron = &options->megatron;
    bool shards = megatron->use_megatron_fsdp
                      ? megatron->data_parallel_sharding_strategy >= SHARD_OPTIM
                      : megatron->use_distributed_optimizer;
    return shards || options->train.muon_distributed;
}

/* The cut model as a pipeline of a block a stage, which Megatron-FSDP has none of: what it adds
 * is left out. What only works on whole models or more ranks is switched off: it can only add to
 * a step. */
static struct scenario_point block_by_block(
    const struct scenario_point *point, const struct model *model, int micro_batches)
{
    struct scenario_point cut = *point;
    struct strategy_options *strategy = &cut.options.strategy;
    struct parallelism_options *parallel = &strategy->parallelism;
    cut.model = *model;
    parallel->pipeline = model_blocks(model);
    parallel->virtual_stages = 1;
    parallel->first_layers = parallel->last_layers = -1;
    parallel->schedule = SCHEDULE_1F1B;
    strategy->train.global_batch = 0;
    strategy->train.device_batch = 0;
    strategy->train.grad_accum = micro_batches;
    strategy->train.cpu_offloading_num_layers = 0;
    strategy->megatron.use_distributed_optimizer =
        shares_optimizer(strategy) && !strategy->train.muon_distributed;
    strategy->megatron.use_megatron_fsdp = strategy->megatron.overlap_moe_expert_parallel_comm =
        false;
    strategy->megatron.num_distributed_optimizer_instances = 0;
    cut.options.cluster.gpus = parallel->pipeline * model_tensor_ranks(&parallel->model) *
                               model_context_ranks(&parallel->model) *
                               strategy_expert_axis(parallel);
    return cut;
}

/* sign -1, 1: what the blocks take is taken from, added to what is there. Bytes come from the
 * plan with one micro-batch alone. */
static enum status add_passes(struct bound_block *blocks, const struct scenario_point *point,
    const struct model *model, int micro_batches, int sign, struct diag *diag)
{
    struct scenario_point cut = block_by_block(point, model, micro_batches);
    struct job job =
        strategy_job(&cut.options.strategy, &cut.model, &cut.hw, (int)cut.options.cluster.gpus);
    struct arena scratch = ARENA_INIT;
    struct plan plan = {0};
    enum status status = scenario_compile(&plan, &cut, &scratch, diag);
    double *kernel_s = kernel_times(&plan, &cut.hw);
    double *coll_s = isolated_times(
        &plan, &job, point->options.strategy.megatron.overlap_moe_expert_parallel_comm);
    for (int b = 0; b < plan.n_programs && status == STATUS_OK; b++) {
        const struct plan_program *program = &plan.programs[b];
        struct bound_block *block = &blocks[b];
        struct bound_passes passes = bound_passes(&plan, program, kernel_s, coll_s);
        block->forward_s += sign * passes.forward_s;
        block->backward_s += sign * passes.backward_s;
        block->kernels_s += sign * passes.kernels_s;
        if (micro_batches > 1)
            continue;
        block->held_bytes = point->options.strategy.train.cpu_offloading_num_layers > 0
                                ? 0
                                : held_bytes(&plan, program);
        block->shared_bytes = shared_bytes(&plan, program, &job);
        bound_count_states(block, program, &point->options.strategy.megatron);
    }
    free(coll_s);
    free(kernel_s);
    plan_release(&plan);
    arena_release(&scratch);
    return status;
}

enum status bound_costs(struct bound_costs *out, const struct scenario_point *point,
    struct arena *arena, struct diag *diag)
{
    const struct parallelism_options *parallel = &point->options.strategy.parallelism;
    int blocks = model_blocks(&point->model);
    struct arena scratch = ARENA_INIT;
    struct standing standing = find_standing(point, &scratch);
    struct bound_block *found = xcalloc((size_t)standing.model.n_layers, sizeof *found);
    *out =
        (struct bound_costs){.blocks = ARENA_ARRAY(arena, struct bound_block, blocks), .n = blocks};
    if (shares_optimizer(&point->options.strategy))
        out->optimizer_ranks =
            (double)(model_context_ranks(&parallel->model) * strategy_expert_axis(parallel));
    enum status status = add_passes(found, point, &standing.model, 1, -1, diag);
    if (status == STATUS_OK)
        status = add_passes(found, point, &standing.model, 2, 1, diag);
    for (int b = 0; b < blocks; b++)
        out->blocks[b] = found[standing.of[b]];
    free(found);
    arena_release(&scratch);
    return status;
}

/* ---- a layout's schedule ---- */

struct stage {
    struct schedule schedule;
    struct bound_block *chunks;
    struct cell *cells;
    int n_cells, next;
    double ready_s, kernels_s, state_bytes, held_bytes, most_held;
};

/* What a block hands on as the next one's input is held once where both are in one chunk. */
static struct bound_block bound_chunk_of(
    const struct bound_costs *costs, const struct model_chunk *at, double optimizer_share)
{
    struct bound_block sum = {0};
    for (int b = at->first; b < at->first + at->n; b++) {
        const struct bound_block *block = &costs->blocks[b];
        sum.forward_s += block->forward_s;
        sum.backward_s += block->backward_s;
        sum.kernels_s += block->kernels_s;
        sum.held_bytes +=
            block->held_bytes - (b > at->first ? costs->blocks[b - 1].shared_bytes : 0);
        sum.state_bytes += block->state_bytes + optimizer_share * block->optimizer_bytes;
    }
    return sum;
}

/* optimizer_share: the costs were found with few ranks of data parallelism, the layout shares
 * the states over its own. */
static struct stage *stages_of(
    const struct bound_costs *costs, const struct job *job, struct arena *scratch)
{
    int n = job->mesh.size[AXIS_PP];
    struct stage *stages = ARENA_ARRAY(scratch, struct stage, n);
    double ranks = (double)job->mesh.ranks / (job->mesh.size[AXIS_PP] * job->mesh.size[AXIS_TP]);
    double share = costs->optimizer_ranks > 0 ? costs->optimizer_ranks / ranks : 1;
    for (int s = 0; s < n; s++) {
        struct model_stage part = strategy_stage(job, s, scratch);
        struct stage *stage = &stages[s];
        *stage = (struct stage){.schedule = strategy_schedule(job, s)};
        stage->chunks = ARENA_ARRAY(scratch, struct bound_block, part.n_chunks);
        for (int c = 0; c < part.n_chunks; c++) {
            stage->chunks[c] = bound_chunk_of(costs, &part.chunks[c], share);
            stage->kernels_s += (double)stage->schedule.micro_batches * stage->chunks[c].kernels_s;
            stage->state_bytes += stage->chunks[c].state_bytes;
        }
        stage->cells = ARENA_ARRAY(scratch, struct cell, schedule_most_cells(&stage->schedule));
        stage->n_cells = schedule_cells(stage->cells, &stage->schedule);
    }
    const struct bound_block *last = &costs->blocks[costs->n - 1];
    const struct model_shape *shape = &job->model->shape;
    if (strategy_stage(job, 0, scratch).ends == MODEL_BOTH_ENDS &&
        (shape->tied_embeddings ||
            shape->mtp_layers > 0)) /* its table was counted with both ends */
        stages[0].state_bytes -= last->state_bytes + share * last->optimizer_bytes;
    return stages;
}

/* When each chunk of the model has passed each micro-batch, forward and backward; negative: not
 * yet. */
struct passed {
    double *at[2];
    int micro_batches, places;
};

static double *passed_at(const struct passed *passed, bool forward, int micro_batch, int place)
{
    return &passed->at[!forward][micro_batch * passed->places + place];
}

/* When a cell's input is there; negative: not known yet. */
static double bound_input_s(const struct passed *passed, const struct cell *cell, int place)
{
    bool forward = cell->kind == CELL_FORWARD;
    int from = forward ? place - 1 : place + 1;
    if (cell->kind == CELL_BACKWARD_WEIGHT || from < 0)
        return 0;
    if (from == passed->places) /* the loss is this cell's forward pass, before it on its stage */
        return 0;
    return *passed_at(passed, forward, cell->micro_batch, from);
}

/* A stage goes on until it waits for another; whether it came on. */
static bool advance(struct stage *stage, struct passed *passed)
{
    bool moved = false;
    for (; stage->next < stage->n_cells; stage->next++, moved = true) {
        const struct cell *cell = &stage->cells[stage->next];
        const struct bound_block *chunk = &stage->chunks[cell->chunk];
        int place = schedule_place(&stage->schedule, cell->chunk);
        double input = bound_input_s(passed, cell, place);
        bool forward = cell->kind == CELL_FORWARD;
        if (input < 0)
            break;
        stage->ready_s =
            fmax(stage->ready_s, input) + (forward                          ? chunk->forward_s
                                              : cell->kind == CELL_BACKWARD ? chunk->backward_s
                                                                            : 0);
        stage->held_bytes += forward                              ? chunk->held_bytes
                             : cell->kind != CELL_BACKWARD_WEIGHT ? -chunk->held_bytes
                                                                  : 0;
        stage->most_held = fmax(stage->most_held, stage->held_bytes);
        if (cell->kind != CELL_BACKWARD_WEIGHT)
            *passed_at(passed, forward, cell->micro_batch, place) = stage->ready_s;
    }
    return moved;
}

/* Walks all stages through their schedules, each as far as its inputs are known, until nothing
 * moves: linear in the number of cells, times the rounds in which stages wait for one another. */
static double path_s(struct stage *stages, int n, struct arena *scratch)
{
    const struct schedule *first = &stages[0].schedule;
    struct passed passed = {.micro_batches = first->micro_batches, .places = n * first->chunks};
    int all = passed.micro_batches * passed.places;
    for (int d = 0; d < 2; d++) {
        passed.at[d] = ARENA_ARRAY(scratch, double, all);
        for (int i = 0; i < all; i++)
            passed.at[d][i] = -1;
    }
    double end = 0;
    for (bool moved = true; moved;) {
        moved = false;
        for (int s = 0; s < n; s++)
            moved |= advance(&stages[s], &passed);
    }
    for (int s = 0; s < n; s++) {
        BUG_IF(stages[s].next < stages[s].n_cells, "stage %d waits for ever", s);
        end = fmax(end, stages[s].ready_s);
    }
    return end;
}

/* Costs of an end of the model lie in those of its block. A first or last chunk without blocks has
 * the end alone, and then that block counts nothing, as it is on another stage. */
static struct bound_costs without_ends(const struct bound_costs *costs,
    const struct parallelism_options *parallel, struct arena *scratch)
{
    struct bound_costs changed = *costs;
    if (parallel->first_layers != 0 && parallel->last_layers != 0)
        return changed;
    changed.blocks = ARENA_ARRAY(scratch, struct bound_block, costs->n);
    memcpy(changed.blocks, costs->blocks, sizeof *changed.blocks * (size_t)costs->n);
    if (parallel->first_layers == 0)
        changed.blocks[0] = (struct bound_block){0};
    if (parallel->last_layers == 0)
        changed.blocks[costs->n - 1] = (struct bound_block){0};
    return changed;
}

/* A stage's sum of work is another bound beside the path. It matters for schedules whose split
 * backward cells take nothing on the path. */
struct bound bound_layout(const struct bound_costs *costs, const struct scenario_point *point)
{
    static const double rounding = 1e-6; /* of picoseconds, over the kernels of a step */
    struct job job = strategy_job(
        &point->options.strategy, &point->model, &point->hw, (int)point->options.cluster.gpus);
    struct arena scratch = ARENA_INIT;
    int n = job.mesh.size[AXIS_PP];
    struct bound_costs own = without_ends(costs, &point->options.strategy.parallelism, &scratch);
    struct stage *stages = stages_of(&own, &job, &scratch);
    struct bound bound = {.step_s = path_s(stages, n, &scratch)};
    double busiest_s = 0;
    for (int s = 0; s < n; s++) {
        double work_s = 0;
        for (int c = 0; c < stages[s].schedule.chunks; c++)
            work_s += stages[s].schedule.micro_batches *
                      (stages[s].chunks[c].forward_s + stages[s].chunks[c].backward_s);
        bound.bytes = fmax(bound.bytes, stages[s].state_bytes + stages[s].most_held);
        if (work_s <= busiest_s)
            continue;
        busiest_s = work_s;
        bound.kernels_s = stages[s].kernels_s;
        bound.group_s = work_s - stages[s].kernels_s;
    }
    bound.step_s = fmax(bound.step_s, busiest_s) * (1 - rounding);
    bound.bubble_s = fmax(0, bound.step_s - busiest_s);
    bound.bytes += point->hw.gpu.context_bytes.value;
    arena_release(&scratch);
    return bound;
}

/* ---- any plan ---- */

/* The busiest queue of any program, without regard to waits. */
struct bound bound_plan(const struct plan *plan, const struct hw *hw)
{
    struct bound bound = {0};
    double *kernel_s = kernel_times(plan, hw), *coll_s = collective_times(plan, hw);
    for (int p = 0; p < plan->n_programs; p++) {
        double work_s[UINT8_MAX + 1] = {0};
        const struct plan_program *program = &plan->programs[p];
        for (int i = 0; i < program->ops.n; i++) {
            const struct plan_op *op = &program->ops.at[i];
            work_s[op->stream] += op->kind == OP_KERNEL       ? kernel_s[op->index]
                                  : op->kind == OP_COLLECTIVE ? coll_s[op->index]
                                                              : 0;
        }
        for (int q = 0; q < plan->queues.n; q++)
            bound.step_s =
                fmax(bound.step_s, plan->queues.at[q].kind == QUEUE_HOST ? 0 : work_s[q]);
        bound.kernels_s = fmax(bound.kernels_s, work_s[STREAM_COMPUTE]);
    }
    free(coll_s);
    free(kernel_s);
    return bound;
}
