/* Megatron-Core's DistributedDataParallel and its optimizers as a plan. Source:
 * megatron/core/distributed and megatron/core/optimizer of Megatron-LM (d98e8a64, 2026-08),
 * restated.
 *
 * Weights are 16-bit (or FP32). Every parameter has a main_grad in a contiguous buffer, in FP32
 * with grad_reduce_in_fp32: GEMMs add the gradients of matrices to it as they make them
 * (gradient_accumulation_fusion), other gradients are added by a kernel each. The buffer is zeroed
 * in each step.
 *   Buckets: on the first stage and its first model chunk tensors go to buckets of bucket_size
 *   elements in the order in
 * which their gradients become ready; every other chunk is one bucket. A bucket goes when its last
 * gradient of the last micro-batch is there: checked for NaN (its norm), scaled, then
 * reduce-scattered (use_distributed_optimizer) or all-reduced over the ranks that hold the same
 * parameters. Without overlap_grad_reduce all go, as one, when the pipeline has run dry.
 *   Step: gradients of what sequence parallelism holds on every rank of the TP group are
 *   all-reduced there, those of a
 * tied embedding between the first and the last stage; the norm, over all ranks; the optimizer on
 * the owned FP32 shard (or on everything; muon: strategy/muon.h); the weights cast, and gathered by
 * bucket. With overlap_param_gather a bucket is gathered in the next forward pass: when a layer
 * needs it, and one bucket ahead.
 *
 * FP8 (precision fp8_mixed with fusion transformer_engine): weights that multiply in it are kept
 * beside their transposes, both made once a step; with fp8_param_gather there are no 16-bit ones,
 * and gathers have a byte an element. Frozen ones are FP8, too; with fp8_param_gather they lie
 * there once, without a transpose, which is made for each use (MLPerf's llama2_70b_lora runs on an
 * H200 with all of the 69 GB, TP 1: two copies would not fit). Blackwell multiplies all as they
 * lie, so there are no transposes (workload.any_layout).
 *   fp8_recipe mxfp8: each copy has its scales, so with fp8_param_gather gathers are in 16 bits and
 *   both
 * are made behind (reuse_grad_buf_for_mxfp8_param_ag, recalled). fp4_mixed: weights are kept in 16
 * bits and, made once a step after a pass for the largest value, twice in NVFP4.
 *
 * Experts (tensors split over AXIS_EP) have buffers apart, which are reduced over the ranks that
 * hold the same experts.
 *
 * Autograd wants a gradient from each linear layer, although its GEMM has added it to main_grad
 * already: with fusion transformer_engine it gets one that nobody reads, in the format of the
 * weights, of which there is one for each shape (get_dummy_wgrad in
 * transformer_engine/pytorch/module/base.py, recalled), for the whole run. Matrices that read the
 * same input are one there: q, k and v, gate and up.
 *
 * Ignored: padding of buckets, the first step (whose reductions do not overlap), several instances
 * of the distributed optimizer (but Megatron-FSDP's), align_param_gather. Without the distributed
 * optimizer the norm is added up over TP and PP groups in turn. */
#include "strategy/megatron.h"
#include "strategy/muon.h"

#include <string.h>

/* Megatron-LM/megatron/training: elements of a bucket, at least and for each rank of data
 * parallelism. */
enum { LEAST_BUCKET = 40000000, BUCKET_A_RANK = 1000000 };

static int megatron_class_of(const struct model_tensor *tensor)
{
    return tensor->split & 1U << AXIS_EP ? EXPERT : DENSE;
}

/* ---- buckets ---- */

static int megatron_chunk_of(const struct emit *emit, int segment)
{
    int c = 0;
    while (segment >= emit->chunk_begin[c + 1])
        c++;
    return c;
}

static int64_t bucket_limit(const struct megatron *self, int class, int chunk)
{
    const struct emit *emit = self->emit;
    int64_t by_rank = (int64_t)BUCKET_A_RANK * self->ranks[class];
    if (!self->options->overlap_grad_reduce || emit->schedule.stage > 0 || chunk > 0)
        return INT64_MAX;
    return self->options->bucket_size > 0 ? self->options->bucket_size
           : by_rank > LEAST_BUCKET       ? by_rank
                                          : LEAST_BUCKET;
}

/* Megatron-FSDP: a unit is one bucket; what belongs to none goes to buckets of the limit. */
static bool is_full(const struct megatron *self, const struct bucket *bucket,
    const struct model_tensor *next, int segment)
{
    int64_t limit = bucket_limit(self, bucket->class, megatron_chunk_of(self->emit, segment));
    if (!self->by_unit)
        return bucket->elements >= limit;
    return bucket->layer != next->layer || (next->layer == 0 && bucket->elements >= limit);
}

/* The tensor joins the bucket that is filling. */
static void megatron_join(struct megatron *self, int tensor, int segment, int filling[N_CLASSES])
{
    const struct model_tensor *at = &self->emit->model->tensors[tensor];
    int class = megatron_class_of(at);
    self->segment[tensor] = segment;
    if (self->bucket[tensor] != NO_BUCKET) { /* both chunks of a stage use it */
        self->buckets.at[self->bucket[tensor]].left++;
        return;
    }
    if (filling[class] >= 0 && is_full(self, &self->buckets.at[filling[class]], at, segment))
        filling[class] = -1;
    if (filling[class] < 0) {
        vec_push(&self->buckets, ((struct bucket){.class = class,
                                     .layer = at->layer,
                                     .reduced = PLAN_NO_OP,
                                     .gathered = PLAN_NO_OP,
                                     .weights = PLAN_NO_OP,
                                     .copies = PLAN_NO_OP,
                                     .grads = PLAN_NO_OP}));
        filling[class] = self->buckets.n - 1;
    }
    struct bucket *bucket = &self->buckets.at[filling[class]];
    bucket->elements += at->numel;
    bucket->fp8 += model_keeps_fp8(self->emit->model, &self->emit->workload, at) ? at->numel : 0;
    bucket->tensors++;
    bucket->left++;
    self->bucket[tensor] = filling[class];
}

/* Tensors in the order in which their gradients become complete. */
static void fill_buckets(struct megatron *self)
{
    const struct emit *emit = self->emit;
    int filling[N_CLASSES] = {-1, -1};
    for (int s = emit->segments.n - 1; s >= 0; s--) {
        const struct model_segment *at = &emit->segments.at[s];
        for (int k = 0; k < at->program->n_backward; k++) {
            const struct model_op *op = &at->program->backward[k];
            if (op->param_grad < 0)
                continue;
            self->fused[at->tensor_base + op->param_grad] = model_op_is_weight_gradient(op);
            megatron_join(self, at->tensor_base + op->param_grad, s, filling);
        }
        for (int c = 0; c < N_CLASSES && emit->chunk_begin[megatron_chunk_of(emit, s)] == s; c++)
            filling[c] = -1;
    }
}

/* ---- weights ---- */

/* The scales of a weight in FP8 or NVFP4 hold for its transpose, too, so that the former is what is
 * gathered; Megatron-FSDP has shards of both, where they do not. */
static bool gathers_fp8(const struct megatron *self)
{
    const struct model_workload *w = &self->emit->workload;
    return self->options->fp8_param_gather &&
           (w->fp4 || w->fp8_recipe != FP8_MXFP8 || self->cuts_weights);
}

/* Bytes of elements of weights that multiply in FP8 or NVFP4: of one copy; as they are gathered;
 * beside what is made of them for the step. */
double megatron_narrow_bytes(const struct megatron *self, double elements)
{
    return elements * model_narrow_bytes(&self->emit->workload);
}

static double gathered_bytes(const struct megatron *self, double elements)
{
    return gathers_fp8(self) ? megatron_narrow_bytes(self, elements)
                             : elements * (double)self->emit->param_bytes;
}

static double megatron_kept_bytes(const struct megatron *self, double elements)
{
    bool in_copies = self->options->fp8_param_gather && !gathers_fp8(self);
    return in_copies ? 0 : gathered_bytes(self, elements);
}

/* Copies that are made for the step, and elements of which they are. */
static int n_copies(const struct megatron *self)
{
    return (gathers_fp8(self) ? 0 : 1) + (model_turns_fp8(&self->emit->workload) ? 1 : 0);
}

static double copied_elements(const struct megatron *self)
{
    return (double)(self->fp8 + (self->options->fp8_param_gather ? 0 : self->frozen_fp8));
}

double megatron_unsharded_bytes(const struct megatron *self, const struct bucket *bucket)
{
    double wide = (double)((bucket->elements - bucket->fp8) * self->emit->param_bytes);
    return wide + gathered_bytes(self, (double)bucket->fp8);
}

static void megatron_gather(struct megatron *self, int b, plan_wait after)
{
    struct emit *emit = self->emit;
    struct bucket *bucket = &self->buckets.at[b];
    bucket->gathering = true;
    bucket->gathered = emit_collective(emit, STREAM_COMM, after,
        arena_printf(emit->arena, "bucket.%d/all_gather", b), COLL_ALL_GATHER,
        megatron_unsharded_bytes(self, bucket), self->group[bucket->class]);
}

/* The next bucket of the class in the order of forward. */
static int next_of_class(const struct megatron *self, int b)
{
    int next = b - 1;
    while (next >= 0 && self->buckets.at[next].class != self->buckets.at[b].class)
        next--;
    return next;
}

static void need_bucket(struct megatron *self, int b)
{
    struct bucket *bucket = &self->buckets.at[b];
    if (bucket->gathering && bucket->gathered == PLAN_NO_OP)
        return;
    if (!bucket->gathering)
        megatron_gather(self, b, PLAN_LAST_STEP);
    plan_stream_wait(&self->emit->builder, STREAM_COMPUTE, bucket->gathered);
    bucket->gathered = PLAN_NO_OP;
    int next = next_of_class(self, b);
    if (next >= 0 && !self->buckets.at[next].gathering)
        megatron_gather(self, next, PLAN_LAST_STEP);
}

static void megatron_before_forward(struct emit *emit, int segment)
{
    struct megatron *self = emit->state;
    if (!self->scatters || !self->options->overlap_param_gather || !emit->on_first)
        return;
    for (int t = 0; t < emit->model->n_tensors; t++)
        if (self->segment[t] == segment)
            need_bucket(self, self->bucket[t]);
}

/* ---- gradients ---- */

/* gradient_scaling_factor is not 1: gradients are divided by the dense ranks; with
 * average_in_collective NCCL divides by those of the group, which of experts are fewer. */
bool megatron_is_scaled(const struct megatron *self, int class)
{
    int divided = self->options->average_in_collective ? self->ranks[class] * self->replicas : 1;
    return divided != self->ranks[DENSE] * self->replicas;
}

static void megatron_reduce(struct megatron *self, int b)
{
    struct emit *emit = self->emit;
    struct plan_builder *builder = &emit->builder;
    struct bucket *bucket = &self->buckets.at[b];
    double bytes = (double)(bucket->elements * self->grad_bytes);
    double issue_s = emit->options->host.backward_issue_s;
    if (self->options->check_for_nan_in_grad)
        plan_kernel(builder, STREAM_COMPUTE,
            arena_printf(emit->arena, "bucket.%d/check_for_nan", b),
            kernel_stream(KERNEL_NORM, bytes, 0, 0), issue_s);
    if (megatron_is_scaled(self, bucket->class))
        plan_kernel(builder, STREAM_COMPUTE, arena_printf(emit->arena, "bucket.%d/scale", b),
            kernel_stream(KERNEL_ELEMENTWISE, bytes, bytes, 0), issue_s);
    bucket->reduced = emit_collective(emit, STREAM_COMM, plan_last_op(builder, STREAM_COMPUTE),
        arena_printf(
            emit->arena, self->scatters ? "bucket.%d/reduce_scatter" : "bucket.%d/all_reduce", b),
        self->scatters ? COLL_REDUCE_SCATTER : COLL_ALL_REDUCE, bytes, self->group[bucket->class]);
}

/* A gradient that no GEMM adds to main_grad has a separate buffer until a kernel has added it. */
void megatron_grad_begins(struct emit *emit, int tensor)
{
    struct megatron *self = emit->state;
    if (!self->fused[tensor])
        emit_begin_grad(emit, tensor);
}

void megatron_grad_ready(struct emit *emit, int tensor)
{
    struct megatron *self = emit->state;
    if (!self->fused[tensor]) {
        emit_tensor_kernel(emit, tensor, KERNEL_ELEMENTWISE, "main_grad.add_",
            self->grad_bytes + emit->param_bytes, self->grad_bytes,
            emit->options->host.backward_issue_s);
        emit_free(emit, &emit->grads[tensor], PLAN_NO_OP);
    }
    struct bucket *bucket = &self->buckets.at[self->bucket[tensor]];
    if (emit->on_last && --bucket->left == 0 && self->options->overlap_grad_reduce)
        megatron_reduce(self, self->bucket[tensor]);
}

/* ---- the step ---- */

/* _allreduce_non_tensor_model_parallel_grads: gradients of which each rank of a TP group has a
 * part, flattened, added up and copied back. */
static void add_up_partial(struct megatron *self)
{
    struct emit *emit = self->emit;
    double bytes = (double)(emit_partial_elements(emit) * self->grad_bytes);
    if (self->cuts_grads)
        bytes = ceil(bytes / self->ranks[DENSE]);
    if (bytes <= 0)
        return;
    emit_stream_kernel(emit, STREAM_COMPUTE, KERNEL_COPY, "partial.grads/flatten", bytes, bytes);
    emit_all_reduce(emit, "partial.grads/all_reduce", bytes, emit_group(emit, "tp", 1U << AXIS_TP),
        PARALLEL_TENSOR);
    emit_stream_kernel(emit, STREAM_COMPUTE, KERNEL_COPY, "partial.grads/copy_", bytes, bytes);
}

/* clip_grad_norm: in FP32, over the owned gradients; the coefficient stays on the GPU. */
static void megatron_clip(struct megatron *self, double owned_bytes)
{
    struct emit *emit = self->emit;
    emit_stream_kernel(emit, STREAM_COMPUTE, KERNEL_NORM, "grad_norm/norm", owned_bytes, 0);
    if (self->scatters || muon_distributes(emit->options)) {
        emit_all_reduce(emit, "grad_norm/all_reduce", FLOAT_BYTES,
            emit_group(emit, "world", AXES_ALL), PARALLEL_DATA);
    } else {
        emit_add_over_model(emit, "grad_norm", FLOAT_BYTES);
    }
    emit_stream_kernel(
        emit, STREAM_COMPUTE, KERNEL_ELEMENTWISE, "grad_norm/scale", owned_bytes, owned_bytes);
}

/* Of a class: muon's matrices; the rest as if it were one tensor. */
static void megatron_own(struct megatron *self, int class)
{
    const struct emit *emit = self->emit;
    bool deals = muon_distributes(emit->options), shards = deals || self->scatters;
    int64_t rest = self->elements[class], ranks = shards ? self->ranks[class] : 1;
    ranks *= self->cuts_outer ? self->replicas : 1;
    struct optimizer_tensor *tensors = self->tensors + self->n_tensors;
    int n = 0;
    for (int t = 0; t < emit->model->n_tensors; t++) {
        struct optimizer_tensor tensor =
            muon_tensor(emit->model, emit->options->train.optimizer, &emit->model->tensors[t]);
        if (tensor.matrices == 0 || self->bucket[t] == NO_BUCKET ||
            megatron_class_of(&emit->model->tensors[t]) != class)
            continue;
        rest -= optimizer_numel(tensor);
        tensors[n++] = tensor;
    }
    if (deals)
        n = muon_deal(tensors, n, self->ranks[class]);
    if (rest > 0)
        tensors[n++] = optimizer_vector((rest + ranks - 1) / ranks);
    self->n_tensors += n;
}

static int64_t megatron_owned(const struct megatron *self)
{
    int64_t elements = 0;
    for (int i = 0; i < self->n_tensors; i++)
        elements += optimizer_numel(self->tensors[i]);
    return elements;
}

static void megatron_optimizer_step(struct megatron *self)
{
    struct emit *emit = self->emit;
    struct plan_builder *builder = &emit->builder;
    int full = PLAN_NO_OP;
    double elements = (double)megatron_owned(self);
    double narrow = elements * (double)self->grad_bytes,
           wide = elements * (double)emit->master_bytes;
    if (self->grad_bytes != emit->master_bytes) {
        full =
            plan_alloc(builder, STREAM_COMPUTE, "main_grad.float()", (int64_t)wide, HBM_GRADIENTS);
        emit_stream_kernel(emit, STREAM_COMPUTE, KERNEL_COPY, "main_grad.float()", narrow, wide);
    }
    megatron_clip(self, wide);
    emit_optimizer(emit, self->tensors, self->n_tensors);
    plan_free(builder, full, PLAN_NO_OP);
    if (emit->param_bytes != emit->master_bytes)
        emit_stream_kernel(emit, STREAM_COMPUTE, KERNEL_COPY, "optimizer/weights_from_fp32", wide,
            elements * (double)emit->param_bytes);
}

void megatron_step_ends(struct emit *emit)
{
    struct megatron *self = emit->state;
    struct plan_builder *builder = &emit->builder;
    for (int b = 0; b < self->buckets.n && !self->cuts_grads; b++) {
        if (!self->options->overlap_grad_reduce)
            megatron_reduce(self, b);
        plan_stream_wait(builder, STREAM_COMPUTE, self->buckets.at[b].reduced);
    }
    add_up_partial(self);
    emit_reduce_tied_embedding(emit, self->grad_bytes);
    builder->phase = PHASE_OPTIMIZER;
    megatron_optimizer_step(self);
    for (int c = 0; c < N_CLASSES && muon_distributes(emit->options); c++)
        if (self->elements[c] > 0)
            muon_gather(emit, (double)(self->elements[c] * emit->param_bytes), self->group[c]);
    plan_wait stepped = plan_last_op(builder, STREAM_COMPUTE);
    bool gathers_now =
        self->scatters && !self->cuts_weights && !self->options->overlap_param_gather;
    for (int b = 0; b < self->buckets.n && gathers_now; b++) {
        megatron_gather(self, b, stepped);
        plan_stream_wait(builder, STREAM_COMPUTE, self->buckets.at[b].gathered);
    }
    plan_link_steps(&emit->builder, stepped);
    vec_free(&self->reducing);
    vec_free(&self->buckets);
}

/* Weights in FP8, or their transposes alone where they are gathered so, are made once for the step.
 */
static void megatron_copy_weights(struct megatron *self)
{
    struct emit *emit = self->emit;
    double elements = copied_elements(self);
    double read = gathered_bytes(self, elements),
           written = megatron_narrow_bytes(self, elements * n_copies(self));
    if (elements > 0 && emit->workload.fp4 && !gathers_fp8(self))
        emit_stream_kernel(
            emit, STREAM_COMPUTE, KERNEL_ELEMENTWISE, "fp4_weights.amax", read, FLOAT_BYTES);
    if (written > 0)
        emit_stream_kernel(emit, STREAM_COMPUTE, KERNEL_ELEMENTWISE, "fp8_weights", read, written);
}

/* Elements of gradients that a rank keeps. */
static int64_t kept_gradients(const struct megatron *self)
{
    int64_t elements = 0;
    for (int c = 0; c < N_CLASSES; c++)
        elements += self->cuts_grads ? (self->elements[c] + self->ranks[c] - 1) / self->ranks[c]
                                     : self->elements[c];
    return elements;
}

/* zero_grad_buffer(), then the weights. */
void megatron_step_begins(struct emit *emit)
{
    struct megatron *self = emit->state;
    double bytes = (double)(kept_gradients(self) * self->grad_bytes);
    emit->builder.phase = PHASE_FORWARD;
    if (self->scatters && !self->cuts_weights && !self->options->overlap_param_gather &&
        self->ranks[DENSE] > 1)
        plan_stream_wait(&emit->builder, STREAM_COMPUTE, PLAN_LAST_STEP);
    emit_stream_kernel(emit, STREAM_COMPUTE, KERNEL_COPY, "grad_buffer.zero_", 0, bytes);
    if (!self->cuts_weights)
        megatron_copy_weights(self);
}

/* A layer's matrix, wherever it is in the model. */
struct matrix {
    const char *name;
    int64_t elements; /* of an expert's, where it is several experts' */
};

static struct matrix matrix_of(
    const struct model *model, int tensor, const struct kernel_work *wgrad)
{
    const struct model_layer *layer = &model->layers[model->tensors[tensor].layer];
    size_t prefix = layer->role == LAYER_ROOT ? 0 : strlen(layer->name);
    return (struct matrix){model->tensors[tensor].name + prefix, wgrad->m * wgrad->n};
}

/* Those of all shapes, which layers share: elements. */
static int64_t dummy_gradients(const struct megatron *self)
{
    const struct emit *emit = self->emit;
    VEC(struct matrix) seen = {0};
    int64_t sum = 0;
    for (int s = 0; s < emit->segments.n && emit->workload.fusion == FUSION_TRANSFORMER_ENGINE;
         s++) {
        const struct model_segment *at = &emit->segments.at[s];
        for (int k = 0; k < at->program->n_backward; k++) {
            const struct model_op *op = &at->program->backward[k];
            if (!model_op_is_weight_gradient(op))
                continue;
            int tensor = at->tensor_base + (op->param_grad >= 0 ? op->param_grad : op->param_share),
                i = 0;
            struct matrix matrix = matrix_of(emit->model, tensor, &op->work);
            while (i < seen.n && (seen.at[i].elements != matrix.elements ||
                                     strcmp(seen.at[i].name, matrix.name) != 0))
                i++;
            if (i < seen.n)
                continue;
            vec_push(&seen, matrix);
            sum += matrix.elements;
        }
    }
    vec_free(&seen);
    return sum;
}

/* What a rank has of the weights for the whole run. */
static void keep_weights(struct megatron *self)
{
    struct emit *emit = self->emit;
    struct plan_builder *builder = &emit->builder;
    int64_t all = self->elements[DENSE] + self->elements[EXPERT];
    int64_t wide = (all - self->fp8) * emit->param_bytes;
    double made = (double)(self->fp8 + (gathers_fp8(self) ? 0 : self->frozen_fp8)) * n_copies(self);
    plan_keep(builder, "param_buffer", wide + (int64_t)megatron_kept_bytes(self, (double)self->fp8),
        HBM_PARAMETERS);
    plan_keep(builder, "fp8_weights", (int64_t)megatron_narrow_bytes(self, made), HBM_PARAMETERS);
    plan_keep(builder, "frozen_params",
        (emit->model->params - all - self->frozen_fp8) * emit->param_bytes +
            (int64_t)megatron_kept_bytes(self, (double)self->frozen_fp8),
        HBM_PARAMETERS);
}

static void keep_shards(struct megatron *self)
{
    double bytes = 0;
    for (int b = 0; b < self->buckets.n; b++)
        bytes += megatron_fsdp_shard_bytes(self, &self->buckets.at[b]);
    plan_keep(&self->emit->builder, "param_shards", (int64_t)bytes, HBM_PARAMETERS);
}

static void megatron_setup_memory(struct megatron *self)
{
    struct emit *emit = self->emit;
    struct plan_builder *builder = &emit->builder;
    (self->cuts_weights ? keep_shards : keep_weights)(self);
    plan_keep(builder, "grad_buffer", kept_gradients(self) * self->grad_bytes, HBM_GRADIENTS);
    plan_keep(builder, "dummy_wgrads", dummy_gradients(self) * emit->param_bytes, HBM_GRADIENTS);
    for (int i = 0; i < self->n_tensors; i++) {
        bool copied = emit->param_bytes != emit->master_bytes;
        plan_keep(builder, "main_params",
            copied ? optimizer_numel(self->tensors[i]) * emit->master_bytes : 0, HBM_OPTIMIZER);
        plan_keep(
            builder, "optimizer_state", emit_state_bytes(emit, self->tensors[i]), HBM_OPTIMIZER);
    }
}

/* Over which ranks the state of a class is sharded, and those that have the same shard; one
 * instance: none. */
static void setup_groups(struct megatron *self, int class, unsigned axes, unsigned grid)
{
    struct emit *emit = self->emit;
    bool apart = megatron_instances(emit->options) > 1;
    unsigned copies = (apart ? 1U << AXIS_DP_REPLICATE : 0) | grid;
    self->group[class] =
        emit_group(emit, class == EXPERT ? "expert_dp" : "dp", (axes & ~copies) | grid);
    self->ranks[class] = emit_degree(emit, (axes & ~copies) | grid);
    self->replicas = apart ? emit_degree(emit, 1U << AXIS_DP_REPLICATE) : 1;
    self->replicate_group[class] =
        apart ? emit_group(emit, class == EXPERT ? "expert_instances" : "instances", copies)
              : PLAN_NO_OP;
}

void megatron_setup(struct emit *emit)
{
    struct megatron *self = emit->state;
    const struct megatron_options *options = &emit->options->megatron;
    int n = emit->model->n_tensors, sharding = options->data_parallel_sharding_strategy;
    *self = (struct megatron){.emit = emit,
        .options = options,
        .scatters = options->use_megatron_fsdp ? sharding >= SHARD_OPTIM
                                               : options->use_distributed_optimizer,
        .by_unit = options->use_megatron_fsdp,
        .cuts_grads = options->use_megatron_fsdp && sharding >= SHARD_OPTIM_GRADS,
        .cuts_weights = options->use_megatron_fsdp && sharding >= SHARD_OPTIM_GRADS_PARAMS,
        .grad_bytes = options->grad_reduce_in_fp32 ? FLOAT_BYTES : emit->param_bytes,
        .tensors = ARENA_ARRAY(emit->arena, struct optimizer_tensor, n + N_CLASSES),
        .bucket = ARENA_ARRAY(emit->arena, int, n),
        .segment = ARENA_ARRAY(emit->arena, int, n),
        .fused = ARENA_ARRAY(emit->arena, bool, n)};
    setup_groups(self, DENSE, AXES_DENSE, 0);
    setup_groups(self, EXPERT, AXES_EXPERT, AXES_OF_EXPERT_GRID);
    self->cuts_outer = self->replicas > 1 && options->outer_dp_sharding_strategy == SHARD_OPTIM;
    emit->overwrites_main_grad = self->cuts_grads;
    emit->main_grad_bytes = self->grad_bytes;
    for (int t = 0; t < n; t++) {
        const struct model_tensor *at = &emit->model->tensors[t];
        self->bucket[t] = self->segment[t] = NO_BUCKET;
        bool fp8 = model_keeps_fp8(emit->model, &emit->workload, at);
        self->frozen_fp8 += at->frozen && fp8 ? at->numel : 0;
        self->scaled += self->options->fp8_amax_reduce && fp8;
    }
    fill_buckets(self);
    for (int b = 0; b < self->buckets.n; b++) {
        self->elements[self->buckets.at[b].class] += self->buckets.at[b].elements;
        self->fp8 += self->buckets.at[b].fp8;
    }
    for (int c = 0; c < N_CLASSES; c++)
        megatron_own(self, c);
    megatron_setup_memory(self);
}

/* ---- settings ---- */

const char *const megatron_outer_names[] = {"no_shard", "optim", NULL};
const char *const megatron_sharding_names[] = {
    "no_shard", "optim", "optim_grads", "optim_grads_params", NULL};

static const struct config_field megatron_fields[] = {
#define SETTINGS SETTING_FIELD
#include "strategy/megatron_settings.h"
};
const struct config_table megatron_table = CONFIG_TABLE("'megatron'", megatron_fields);

const struct megatron_options megatron_defaults = {
#define SETTINGS SETTING_DEFAULT
#include "strategy/megatron_settings.h"
};

static bool is_fsdp(const struct strategy_options *options)
{
    return options->megatron.use_megatron_fsdp;
}

static const char *megatron_label_of(const struct strategy_options *options)
{
    static const char *const units[] = {"Megatron-FSDP no_shard", "Megatron-FSDP optim",
        "Megatron-FSDP optim_grads", "Megatron-FSDP optim_grads_params"};
    if (is_fsdp(options))
        return units[options->megatron.data_parallel_sharding_strategy];
    return options->megatron.use_distributed_optimizer ? "Megatron distributed optimizer"
                                                       : "Megatron DDP";
}

static const struct data_parallel *megatron_variant(const struct strategy_options *options)
{
    return is_fsdp(options) ? &megatron_fsdp_hooks : &megatron_hooks;
}

/* Of an instance; 0: they do not divide. What shards over all ranks needs no axis. */
static int megatron_shard_ranks(
    const struct strategy_options *options, const struct hw *hw, int ranks)
{
    int instances = megatron_instances(options);
    (void)hw;
    return !is_fsdp(options) ? 1 : ranks % instances == 0 ? ranks / instances : 0;
}

const struct data_parallel megatron_hooks = {.state_size = sizeof(struct megatron),
    .label_of = megatron_label_of,
    .section = "megatron",
    .takes = 1U << PARALLEL_TENSOR | 1U << PARALLEL_CONTEXT | 1U << PARALLEL_PIPELINE |
             1U << PARALLEL_EXPERT,
    .copies_as = "Megatron",
    .variant = megatron_variant,
    .shard_ranks = megatron_shard_ranks,
    .setup = megatron_setup,
    .step_begins = megatron_step_begins,
    .before_forward = megatron_before_forward,
    .after_forward = megatron_reduce_amax_forward,
    .backward_ends = megatron_reduce_amax_backward,
    .step_ends = megatron_step_ends,
    .grad_begins = megatron_grad_begins,
    .grad_ready = megatron_grad_ready};
