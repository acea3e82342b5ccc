/* The passes of one segment as ops of a plan: kernels, collectives, and the life of their tensors.
 *
 * forward_ops() and backward_ops() go through a program's ops. Before each op the activations that
 * are born at it are allocated, behind it those whose life ends are freed. emit->saved has their
 * buffers, one set for each micro-batch and chunk under way (pipeline.c). Hooks of the strategy are
 * called around ops that use a parameter or complete its gradient.
 *
 * Recomputation: a block that runs again is emitted with PASS_NO_GRAD in forward, which keeps its
 * output alone (and what selective checkpointing keeps), and with PASS_RECOMPUTE before its
 * backward pass. A unit of several blocks keeps one input. Parts of a block (recompute_modules)
 * drop what is made in them and run again by themselves.
 *
 * A process group has one queue, that of its first collective. What the host pays for an op depends
 * on what launches it: the op alone, one call into C++ with others (inner), a CUDA graph (replays),
 * or a kernel for each expert.
 *
 * Subtle: an output is the next segment's input. hand_back() gives the gradient to the segment
 * before and frees the output; drop_input() frees it earlier, where no backward kernel of either
 * segment reads it. */
#include "strategy/emit.h"

#include "base/digest.h"

#include <math.h>

struct sought_name {
    const struct emit *emit;
    int layer;
    const char *what;
};

static bool emit_same_name(const void *self, int32_t item)
{
    const struct sought_name *sought = self;
    const struct emit_name *made = &sought->emit->made.at[item];
    return made->layer == sought->layer && made->what == sought->what;
}

const char *emit_name(struct emit *emit, int layer, const char *what)
{
    uint64_t hash = digest_word(digest_word(DIGEST_INIT, (uint64_t)layer), (uintptr_t)what);
    int32_t known =
        index_find(&emit->names, hash, emit_same_name, &(struct sought_name){emit, layer, what});
    if (known >= 0)
        return emit->made.at[known].name;
    const char *name = arena_printf(emit->arena, "%s/%s", emit->model->layers[layer].name, what);
    vec_push(&emit->made, (struct emit_name){layer, what, name});
    index_add(&emit->names, hash, emit->made.n - 1);
    return name;
}

void emit_stream_kernel(struct emit *emit, int stream, enum kernel_kind kind, const char *name,
    double reads, double writes)
{
    plan_kernel(&emit->builder, stream, name, kernel_stream(kind, reads, writes, 0),
        emit->options->host.kernel_issue_s);
}

void emit_tensor_kernel(struct emit *emit, int tensor, enum kernel_kind kind, const char *name,
    int64_t reads, int64_t writes, double issue_s)
{
    const struct model_tensor *at = &emit->model->tensors[tensor];
    plan_kernel(&emit->builder, STREAM_COMPUTE, arena_printf(emit->arena, "%s/%s", at->name, name),
        kernel_stream(kind, (double)(reads * at->numel), (double)(writes * at->numel), 0), issue_s);
}

void emit_accumulate_grad(struct emit *emit, int tensor, double issue_s)
{
    emit_tensor_kernel(emit, tensor, KERNEL_ELEMENTWISE, "accumulate_grad", 2 * emit->param_bytes,
        emit->param_bytes, issue_s);
}

static bool is_nf4(const struct emit *emit, const struct model_tensor *tensor)
{
    return emit->workload.nf4 && tensor->frozen && model_is_block_matrix(emit->model, tensor);
}

int64_t emit_kept_bytes(const struct emit *emit, const struct model_tensor *tensor)
{
    if (is_nf4(emit, tensor) || (tensor->frozen && !emit->workload.nf4))
        return emit_used_bytes(emit, tensor);
    return tensor->numel * emit->master_bytes;
}

int64_t emit_used_bytes(const struct emit *emit, const struct model_tensor *tensor)
{
    return is_nf4(emit, tensor) ? llround(model_nf4_bytes(tensor->numel))
                                : tensor->numel * emit->param_bytes;
}

int emit_group(struct emit *emit, const char *name, unsigned axes)
{
    return plan_group_of(&emit->builder, name, mesh_group(&emit->builder.plan->mesh, axes));
}

int emit_degree(const struct emit *emit, unsigned axes)
{
    return mesh_degree(&emit->builder.plan->mesh, axes);
}

static int emit_queue_of(struct emit *emit, int group, int otherwise)
{
    while (emit->group_queues.n <= group)
        vec_push(&emit->group_queues, PLAN_NO_OP);
    int *queue = &emit->group_queues.at[group];
    return *queue = *queue == PLAN_NO_OP ? otherwise : *queue;
}

/* host.collective_check of all ranks of a group: the first hears from one after the other, at less
 * cost in its node. */
static double check_s(const struct emit *emit, const struct mesh_group *ranks)
{
    const struct host_options *host = &emit->options->host;
    int in_node = (hw_gpus_per_node(emit->hw) + ranks->stride - 1) / ranks->stride;
    int near = ranks->size < in_node ? ranks->size : in_node;
    return host->collective_check_s * (ranks->size - near + near * host->collective_check_in_node);
}

static double collective_issue_s(const struct emit *emit, int group)
{
    return emit->options->host.collective_issue_s +
           check_s(emit, &emit->builder.plan->groups.at[group].ranks);
}

plan_wait emit_collective(struct emit *emit, int queue, plan_wait after, const char *name,
    enum coll_kind kind, double bytes, int group)
{
    queue = emit_queue_of(emit, group, queue);
    plan_stream_wait(&emit->builder, queue, after);
    return plan_collective(
        &emit->builder, queue, name, kind, bytes, group, collective_issue_s(emit, group));
}

plan_wait emit_all_reduce(
    struct emit *emit, const char *name, double bytes, int group, enum plan_parallelism serves)
{
    emit->builder.serves = serves;
    plan_wait op = emit_collective(emit, STREAM_COMM, plan_last_op(&emit->builder, STREAM_COMPUTE),
        name, COLL_ALL_REDUCE, bytes, group);
    emit->builder.serves = PARALLEL_DATA;
    plan_stream_wait(&emit->builder, STREAM_COMPUTE, op);
    return op;
}

plan_wait emit_add_over_model(struct emit *emit, const char *what, double bytes)
{
    plan_wait tensor = emit_all_reduce(emit, arena_printf(emit->arena, "%s/all_reduce.tp", what),
        bytes, emit_group(emit, "tp", 1U << AXIS_TP), PARALLEL_TENSOR);
    plan_wait pipeline = emit_all_reduce(emit, arena_printf(emit->arena, "%s/all_reduce.pp", what),
        bytes, emit_group(emit, "pp", 1U << AXIS_PP), PARALLEL_PIPELINE);
    return pipeline != PLAN_NO_OP ? pipeline : tensor;
}

int64_t emit_partial_elements(const struct emit *emit)
{
    int64_t elements = 0;
    for (int s = 0; s < emit->segments.n; s++) {
        const struct model_segment *at = &emit->segments.at[s];
        for (int k = 0; k < at->program->n_backward; k++) {
            const struct model_op *op = &at->program->backward[k];
            if (op->param_grad >= 0 && op->partial)
                elements += emit->model->tensors[at->tensor_base + op->param_grad].numel;
        }
    }
    return elements;
}

void emit_reduce_tied_embedding(struct emit *emit, int64_t element_bytes)
{
    const struct schedule *at = &emit->schedule;
    unsigned ends = emit->model->ends;
    if (ends == 0 || ends == MODEL_BOTH_ENDS ||
        !(emit->model->shape.tied_embeddings || emit->model->shape.mtp_layers > 0))
        return;
    int group = plan_group_of(&emit->builder, "embedding",
        mesh_pair(&emit->builder.plan->mesh, AXIS_PP, 0, at->stages - 1));
    int64_t numel = emit->model->tensors[0].numel; /* the root begins with the table of words */
    emit_all_reduce(emit, "embedding.grad/all_reduce", (double)(numel * element_bytes), group,
        PARALLEL_PIPELINE);
}

void emit_free(struct emit *emit, int *buffer, plan_wait last_use)
{
    plan_free(&emit->builder, *buffer, last_use);
    *buffer = PLAN_NO_OP;
}

void emit_alloc_grad(struct emit *emit, int tensor, int64_t bytes, enum hbm_category category)
{
    if (emit->grads[tensor] == PLAN_NO_OP)
        emit->grads[tensor] = plan_alloc(
            &emit->builder, STREAM_COMPUTE, emit->model->tensors[tensor].name, bytes, category);
}

void emit_begin_grad(struct emit *emit, int tensor)
{
    emit_alloc_grad(
        emit, tensor, emit->model->tensors[tensor].numel * emit->param_bytes, HBM_GRADIENTS);
}

/* Blocks of its model chunk up to this one. */
static int block_of_chunk(const struct emit *emit, int segment)
{
    int c = 0;
    while (segment >= emit->chunk_begin[c + 1])
        c++;
    int begin = emit->chunk_begin[c];
    return emit->blocks[segment] - (begin > 0 ? emit->blocks[begin - 1] : 0);
}

/* Method block leaves multi-token prediction out, as Megatron-LM does with a warning. */
static bool is_chosen(const struct emit *emit, int segment)
{
    const struct train_options *train = &emit->options->train;
    bool predicts = segment > 0 && emit->segments.at[segment - 1].kind == SEGMENT_MTP;
    if (train->recompute_method == RECOMPUTE_BLOCK)
        return !predicts && block_of_chunk(emit, segment) <= train->recompute_num_layers;
    return emit->blocks[segment] % train->checkpoint_interval == 0;
}

bool emit_recomputes(const struct emit *emit, int segment)
{
    const struct train_options *train = &emit->options->train;
    bool of_blocks = train->activation_checkpointing == CHECKPOINT_FULL ||
                     train->activation_checkpointing == CHECKPOINT_SELECTIVE;
    return of_blocks && emit->segments.at[segment].program->reruns && is_chosen(emit, segment);
}

/* Blocks that run again as one. */
static int unit(const struct emit *emit)
{
    const struct train_options *train = &emit->options->train;
    return train->recompute_method == RECOMPUTE_UNIFORM ? (int)train->recompute_num_layers : 1;
}

static bool begins_unit(const struct emit *emit, int segment)
{
    return unit(emit) == 1 || block_of_chunk(emit, segment) % unit(emit) == 1;
}

/* The last block of a chunk ends a unit that is not full. */
static bool ends_unit(const struct emit *emit, int segment)
{
    int next = segment + 1;
    return unit(emit) == 1 || next == emit->segments.n || !emit_recomputes(emit, next) ||
           begins_unit(emit, next);
}

static bool keeps(const struct emit *emit, int segment, int k)
{
    return emit->options->train.activation_checkpointing == CHECKPOINT_SELECTIVE &&
           emit->segments.at[segment].program->forward[k].kept;
}

/* What follows in the unit needs the output. */
static bool stops_early(const struct emit *emit, int segment)
{
    return emit->options->train.checkpoint_early_stop && ends_unit(emit, segment);
}

bool emit_skips(const struct emit *emit, int segment, int k)
{
    return (stops_early(emit, segment) && k >= emit->segments.at[segment].program->n_rerun) ||
           keeps(emit, segment, k);
}

/* A hook about a parameter of a segment, -1: none. */
static void call(
    struct emit *emit, void (*hook)(struct emit *, int), const struct model_segment *at, int param)
{
    if (hook && param >= 0)
        hook(emit, at->tensor_base + param);
}

static void birth(struct emit *emit, int segment, int activation)
{
    const struct model_activation *tensor =
        &emit->segments.at[segment].program->activations[activation];
    const char **name = &emit->ops[segment].names[activation];
    if (!*name)
        *name = emit_name(emit, emit->segments.at[segment].layer, tensor->name);
    emit->saved[segment][activation] =
        plan_alloc(&emit->builder, STREAM_COMPUTE, *name, tensor->bytes, HBM_ACTIVATIONS);
}

static void death(struct emit *emit, int segment, int activation)
{
    emit_free(emit, &emit->saved[segment][activation], PLAN_NO_OP);
}

/* "tp", "cp", "tp-cp": a process group is called after its axes, and so is its stream. */
static const char *axes_name(struct emit *emit, unsigned axes)
{
    const char *name = NULL;
    for (int a = 0; a < AXIS_COUNT; a++)
        if (axes & 1U << a)
            name = name ? arena_printf(emit->arena, "%s-%s", name, mesh_axis_names[a])
                        : mesh_axis_names[a];
    return name;
}

/* Of the ranks of data parallelism: on the strategy's stream. */
static bool of_data(unsigned axes)
{
    return !(axes & ~(unsigned)AXES_DP);
}

static int comm_queue(struct emit *emit, unsigned axes)
{
    return of_data(axes) ? emit->comm_queue
                         : plan_queue(&emit->builder, axes_name(emit, axes), QUEUE_COMM);
}

/* What the host pays for an op that costs it issue_s where nothing launches it along. */
static double launched_s(const struct emit *emit, const struct model_op *op, double issue_s)
{
    if (emit->replays)
        return 0;
    double inner_s = emit->options->host.inner_issue_s;
    return op->inner && inner_s > 0 ? inner_s : issue_s;
}

static struct kernel_work launched(const struct emit *emit, const struct model_op *op)
{
    struct kernel_work work = op->work;
    work.graphed = emit->replays || emit->options->train.cuda_graphs == CUDA_GRAPHS_FULL_ITERATION;
    return work;
}

/* Its group and queue are those that it had the first time. */
static void emit_comm(struct emit *emit, struct segment_op *known, const struct model_op *op)
{
    const struct model_comm *comm = &op->comm;
    if (known->group < 0) {
        known->group = emit_group(
            emit, of_data(comm->axes) ? "world" : axes_name(emit, comm->axes), comm->axes);
        known->queue = emit_queue_of(emit, known->group, comm_queue(emit, comm->axes));
    }
    int group = known->group, queue = known->queue;
    emit->builder.serves = plan_parallelism_of(comm->axes);
    emit->builder.routing = comm->routing;
    plan_stream_wait_stream(&emit->builder, queue, STREAM_COMPUTE);
    emit->comm = plan_collective(&emit->builder, queue, known->name, comm->kind, comm->bytes, group,
        launched_s(emit, op, collective_issue_s(emit, group)));
    emit->builder.serves = PARALLEL_DATA;
    emit->builder.routing = NULL;
}

static plan_wait emit_awaited(struct emit *emit, unsigned axes)
{
    if (axes == 0)
        return emit->comm;
    int group = emit_group(emit, of_data(axes) ? "world" : axes_name(emit, axes), axes);
    return plan_last_op(&emit->builder, emit_queue_of(emit, group, comm_queue(emit, axes)));
}

/* Experts beyond the first: a kernel each, and an operation of autograd for the gradient of each
 * one's matrix. */
static double of_experts_s(const struct emit *emit, const struct model_op *op)
{
    const struct host_options *host = &emit->options->host;
    if (op->matrices < 2 || !(host->expert_launch_s > 0))
        return 0;
    double gradient_s = model_op_is_weight_gradient(op) ? host->backward_issue_s : 0;
    return (op->matrices - 1) * (host->expert_launch_s + gradient_s);
}

static void emit_op(struct emit *emit, const struct model_segment *at, struct segment_op *known,
    const struct model_op *op, double issue_s)
{
    struct plan_builder *builder = &emit->builder;
    struct kernel_work work;
    if (!known->name)
        known->name = emit_name(emit, at->layer, op->name);
    switch (op->kind) {
    case MODEL_KERNEL:
        work = launched(emit, op);
        known->kernel = plan_kernel_number(builder, &work, known->kernel);
        plan_kernel_numbered(builder, STREAM_COMPUTE, known->name, known->kernel,
            launched_s(emit, op, issue_s + of_experts_s(emit, op)));
        if (op->work.kind == KERNEL_ATTENTION && op->masked_flop > 0)
            builder->program->skipped_flop +=
                op->work.flop * op->masked_flop / (op->model_flop - op->masked_flop);
        break;
    case MODEL_COMM:
        emit_comm(emit, known, op);
        break;
    case MODEL_WAIT:
        plan_stream_wait(builder, STREAM_COMPUTE, emit_awaited(emit, op->comm.axes));
        break;
    case MODEL_HOST_WAIT:
        plan_host_wait(builder, known->name, plan_last_op(builder, STREAM_COMPUTE), 0);
        break;
    }
    emit->replays =
        emit->options->train.cuda_graphs == CUDA_GRAPHS_LAYER && at->kind == SEGMENT_BLOCK;
}

static void forward_op(struct emit *emit, int segment, int k)
{
    const struct model_segment *at = &emit->segments.at[segment];
    const struct model_op *op = &at->program->forward[k];
    call(emit, emit->hooks->param_needed, at, op->param_use);
    emit_op(emit, at, &emit->ops[segment].forward[k], op, emit->options->host.kernel_issue_s);
    call(emit, emit->hooks->param_used, at, op->param_use);
}

int emit_autocast_weights(struct emit *emit, int layer)
{
    if (emit->param_bytes == emit->master_bytes)
        return PLAN_NO_OP;
    int64_t from = 0, to = 0;
    const struct model_layer *at = &emit->model->layers[layer];
    for (int t = at->first_tensor; t < at->first_tensor + at->n_tensors; t++) {
        int64_t kept = emit_kept_bytes(emit, &emit->model->tensors[t]);
        int64_t used = emit_used_bytes(emit, &emit->model->tensors[t]);
        from += kept != used ? kept : 0;
        to += kept != used ? used : 0;
    }
    if (to == 0)
        return PLAN_NO_OP;
    int copy = plan_alloc(&emit->builder, STREAM_COMPUTE,
        emit_name(emit, layer, "autocast_weights"), to, HBM_GATHERED);
    emit_stream_kernel(emit, STREAM_COMPUTE, KERNEL_COPY, emit_name(emit, layer, "autocast"),
        (double)from, (double)to);
    return copy;
}

enum pass {
    PASS_NO_GRAD,   /* autograd records nothing: only the output stays, and what selective
                       checkpointing keeps */
    PASS_SAVE,      /* what backward needs stays, too */
    PASS_RECOMPUTE, /* as PASS_SAVE; what was kept is not computed again, the output is there
                       already */
};

/* Made and used within a part that is recomputed, or what it gives (model/recompute.h). */
static bool is_dropped(const struct emit *emit, const struct model_program *program,
    const struct model_activation *tensor)
{
    if (tensor->born_in_backward || tensor->forward_last < 0)
        return false;
    unsigned born = emit->recomputed_parts & program->forward[tensor->born].parts;
    return born & RECOMPUTE_OUTPUTS || born & program->forward[tensor->forward_last].parts;
}

/* Parts of a block once more, whose results are there already unless they are dropped. */
static void recompute_parts(struct emit *emit, int segment)
{
    const struct model_program *program = emit->segments.at[segment].program;
    emit->builder.phase = PHASE_RECOMPUTE;
    emit->replays = false;
    for (int k = 0; k < program->n_forward && emit->recomputed_parts; k++) {
        if (!(program->forward[k].parts & emit->recomputed_parts))
            continue;
        for (int a = 0; a < program->n_activations; a++)
            if (is_dropped(emit, program, &program->activations[a]) &&
                program->activations[a].born == k)
                birth(emit, segment, a);
        forward_op(emit, segment, k);
        for (int a = 0; a < program->n_activations; a++)
            if (is_dropped(emit, program, &program->activations[a]) &&
                program->activations[a].forward_last == k &&
                program->activations[a].backward_last < 0)
                death(emit, segment, a);
    }
}

static void forward_ops(struct emit *emit, int segment, enum pass pass)
{
    const struct model_program *program = emit->segments.at[segment].program;
    const struct segment_lives born = emit->ops[segment].lives[BORN_IN_FORWARD];
    const struct segment_lives last = emit->ops[segment].lives[LAST_IN_FORWARD];
    bool early = pass == PASS_RECOMPUTE && stops_early(emit, segment);
    bool hands_on = pass != PASS_RECOMPUTE || !ends_unit(emit, segment);
    emit->replays = false;
    for (int k = 0; k < (early ? program->n_rerun : program->n_forward); k++) {
        for (int i = born.first[k]; i < born.first[k + 1]; i++)
            if (emit->saved[segment][born.activations[i]] == PLAN_NO_OP)
                birth(emit, segment, born.activations[i]);
        if (pass != PASS_RECOMPUTE || !emit_skips(emit, segment, k))
            forward_op(emit, segment, k);
        for (int i = last.first[k]; i < last.first[k + 1]; i++) {
            int a = last.activations[i];
            const struct model_activation *tensor = &program->activations[a];
            if (hands_on && a == program->output)
                continue;
            bool needed = pass == PASS_NO_GRAD ? keeps(emit, segment, tensor->born)
                                               : tensor->backward_last >= 0;
            needed = needed && !is_dropped(emit, program, tensor);
            if (!needed)
                death(emit, segment, a);
        }
    }
}

/* The output of the segment before goes where nobody will read it again. */
static void drop_input(struct emit *emit, int segment)
{
    if (!emit->segments.at[segment].program->drops_input || emit_recomputes(emit, segment))
        return;
    const struct model_program *before = emit->segments.at[segment - 1].program;
    if (emit_recomputes(emit, segment - 1) || before->activations[before->output].backward_last < 0)
        death(emit, segment - 1, before->output);
}

void emit_forward(struct emit *emit, int segment)
{
    emit->builder.phase = PHASE_FORWARD;
    forward_ops(emit, segment, emit_recomputes(emit, segment) ? PASS_NO_GRAD : PASS_SAVE);
    drop_input(emit, segment);
    if (emit_recomputes(emit, segment) && !begins_unit(emit, segment))
        death(emit, segment - 1, emit->segments.at[segment - 1].program->output);
    int layer = emit->segments.at[segment].layer;
    bool saved =
        !emit_recomputes(emit, segment) && model_cache_is_saved(emit->model, &emit->workload);
    if (emit->options->train.use_cache && !saved)
        emit->caches[segment] =
            plan_alloc(&emit->builder, STREAM_COMPUTE, emit_name(emit, layer, "past_key_values"),
                model_cache_bytes(emit->model, &emit->workload, layer), HBM_ACTIVATIONS);
}

void emit_drop_outputs(struct emit *emit)
{
    for (int s = 0; s < emit->segments.n; s++)
        emit_free(emit, &emit->caches[s], PLAN_NO_OP);
}

enum backward_part { BACKWARD_ALL, BACKWARD_INPUT, BACKWARD_WEIGHT };

/* gradient_accumulation_fusion: the GEMM reads and writes main_grad (or writes it) in place of
 * writing a gradient; then the op is *changed. */
static const struct model_op *accumulating(const struct emit *emit, const struct model_segment *at,
    const struct model_op *op, struct model_op *changed)
{
    if (emit->main_grad_bytes == 0 || !model_op_is_weight_gradient(op) || op->param_grad < 0)
        return op;
    double numel = (double)emit->model->tensors[at->tensor_base + op->param_grad].numel;
    double read = emit->overwrites_main_grad ? 0 : numel * (double)emit->main_grad_bytes;
    double written = numel * (double)(emit->main_grad_bytes - emit->param_bytes);
    *changed = *op;
    changed->work.read_bytes += read;
    changed->work.write_bytes += written;
    changed->work.added_bytes = read + written;
    return changed;
}

static bool emit_is_of(const struct model_op *op, enum backward_part part)
{
    return part == BACKWARD_ALL || (part == BACKWARD_WEIGHT) == model_op_is_weight_gradient(op);
}

static void backward_ops(struct emit *emit, int segment, enum backward_part part)
{
    const struct model_segment *at = &emit->segments.at[segment];
    const struct model_program *program = at->program;
    const struct segment_lives born = emit->ops[segment].lives[BORN_IN_BACKWARD];
    const struct segment_lives last = emit->ops[segment].lives[LAST_IN_BACKWARD];
    emit->replays = false;
    for (int k = 0; k < program->n_backward; k++) {
        if (!emit_is_of(&program->backward[k], part))
            continue;
        struct model_op accumulated;
        const struct model_op *op = accumulating(emit, at, &program->backward[k], &accumulated);
        call(emit, emit->hooks->param_needed, at, op->param_use);
        call(emit, emit->hooks->grad_begins, at, op->param_grad);
        call(emit, emit->hooks->grad_begins, at, op->param_share);
        for (int i = born.first[k]; i < born.first[k + 1]; i++)
            if (emit->saved[segment][born.activations[i]] == PLAN_NO_OP)
                birth(emit, segment, born.activations[i]);
        emit_op(
            emit, at, &emit->ops[segment].backward[k], op, emit->options->host.backward_issue_s);
        for (int i = last.first[k]; i < last.first[k + 1]; i++)
            if (last.activations[i] != program->input_grad)
                death(emit, segment, last.activations[i]);
        call(emit, emit->hooks->param_used, at, op->param_use);
        call(emit, emit->hooks->grad_ready, at, op->param_grad);
    }
}

/* The segment before gets the gradient of its output, which nobody reads any more. */
static void hand_back(struct emit *emit, int segment)
{
    const struct model_program *program = emit->segments.at[segment].program;
    const struct model_program *before = emit->segments.at[segment - 1].program;
    death(emit, segment - 1, before->output);
    if (program->input_grad < 0 || before->output_grad < 0)
        return;
    emit->saved[segment - 1][before->output_grad] = emit->saved[segment][program->input_grad];
    emit->saved[segment][program->input_grad] = PLAN_NO_OP;
}

/* The blocks of the unit that ends here. */
static void recompute_unit(struct emit *emit, int segment)
{
    int begin = segment;
    while (!begins_unit(emit, begin))
        begin--;
    emit->builder.phase = PHASE_RECOMPUTE;
    for (int s = begin; s <= segment; s++)
        forward_ops(emit, s, PASS_RECOMPUTE);
}

static void backward_of_inputs(struct emit *emit, int segment, enum backward_part part)
{
    const struct model_program *program = emit->segments.at[segment].program;
    int checkpoint =
        PLAN_NO_OP; /* the output of the first forward pass; recomputation makes another */
    if (emit_recomputes(emit, segment) && ends_unit(emit, segment)) {
        if (program->output >= 0) {
            checkpoint = emit->saved[segment][program->output];
            emit->saved[segment][program->output] = PLAN_NO_OP;
        }
        recompute_unit(emit, segment);
    }
    recompute_parts(emit, segment);
    emit->builder.phase = PHASE_BACKWARD;
    backward_ops(emit, segment, part);
    plan_free(&emit->builder, checkpoint, PLAN_NO_OP);
    if (program->takes_input)
        hand_back(emit, segment);
}

static void drop_all(struct emit *emit, int segment)
{
    for (int a = 0; a < emit->segments.at[segment].program->n_activations; a++)
        death(emit, segment, a);
}

void emit_backward(struct emit *emit, int segment)
{
    backward_of_inputs(emit, segment, BACKWARD_ALL);
    drop_all(emit, segment);
}

void emit_backward_input(struct emit *emit, int segment)
{
    backward_of_inputs(emit, segment, BACKWARD_INPUT);
}

void emit_backward_weight(struct emit *emit, int segment)
{
    backward_ops(emit, segment, BACKWARD_WEIGHT);
    drop_all(emit, segment);
}

void emit_receive_into(struct emit *emit, int segment, int activation)
{
    birth(emit, segment, activation);
}
