/* Megatron-FSDP (Megatron-LM's --use-megatron-fsdp) in place of DistributedDataParallel;
 * optimizers, main_grad and FP8 are megatron.c's. Source: megatron/core/distributed/fsdp/src of
 * Megatron-LM (megatron_fsdp.py, param_and_grad_buffer.py; end of 2025) and its documentation,
 * recalled.
 *
 * A unit is a transformer layer. Its parameters are flat buffers: one for the ranks that hold the
 * same dense ones (over CP, too), one for those that hold the same experts, which are so sharded
 * over expert data parallelism. What no unit has (embedding, head, last norm) goes to buckets of
 * bucket_size elements. TP cuts parameters before that.
 *
 * no_shard: gradients are all-reduced by unit. optim: they are reduce-scattered, and weights
 * gathered in the next step's first forward pass. Both reduce once a step, with its last
 * micro-batch, as DDP does.
 *
 * optim_grads: a unit's gradients live from its backward pass to their reduction. GEMMs write them
 * (and read nothing), a kernel copies those that no GEMM makes. On a side stream they are scaled,
 * reduce-scattered and added to the shard that is kept, in every micro-batch. The compute stream
 * waits for the oldest reductions, and lets go of their buffers, when those under way have more
 * elements than suggested_communication_unit_size.
 *
 * optim_grads_params: weights are shards, too. A unit is gathered before its forward pass and again
 * before its backward pass, in every micro-batch, and freed behind each; what no unit has is
 * gathered once a step and stays. With overlap_param_gather units ahead are gathered along, until
 * all of them together have as many elements as suggested_communication_unit_size (two units, and
 * 10^9 at least). A gather waits for what was computed when it was issued. It shares a communicator
 * with reductions, so that they run one after the other, as they were issued.
 *
 * fsdp_double_buffer: buffers for the weights and the gradients of two units for the whole run; no
 * more than the next unit is gathered ahead, and gradients of a third wait for the first.
 *
 * num_distributed_optimizer_instances: as many copies of what is sharded (HSDP), between which the
 * reduced shards of the last micro-batch are all-reduced. outer_dp_sharding_strategy optim: they
 * are reduce-scattered there, each instance steps on a part of its shard, and gathers the others'
 * when a unit is first needed in the next step, before it is gathered.
 *
 * FP8: with fp8_param_gather the shards are FP8, cast from the FP32 ones after the optimizer's
 * step, and so is what is gathered. Transposes are made in each backward pass
 * (keep_fp8_transpose_cache off); MXFP8 has a shard for each direction, of which forward and
 * backward gather theirs. Without it 16 bits are gathered, and both FP8 copies are made in each
 * forward pass and kept up to the backward pass, or made again where the layer is recomputed.
 *
 * Assumed: a pass for NaN looks through a unit's gradients before they are reduced, as DDP's does.
 * Ignored: padding, hooks of modules within a unit, the all-reduce of FP8's largest values before
 * the cast, coalescing of collectives, registration of buffers with NCCL (--nccl-ub, with which
 * collectives hold fewer SMs), formats of communication and of main gradients that differ. Refused:
 * pipelines, adapters. */
#include "strategy/megatron.h"

/* Elements that are gathered at once at least ("Cap to 1B elements"). */
static const double LEAST_WINDOW = 1e9;

static bool doubles(const struct megatron *self)
{
    return self->cuts_weights && self->options->fsdp_double_buffer;
}

static bool is_unit(const struct bucket *bucket)
{
    return bucket->layer != 0;
}

/* ---- bytes ---- */

static bool has_both_directions(const struct megatron *self)
{
    return self->options->fp8_param_gather && self->emit->workload.fp8_recipe == FP8_MXFP8;
}

double megatron_fsdp_shard_bytes(const struct megatron *self, const struct bucket *bucket)
{
    double second =
        has_both_directions(self) ? megatron_narrow_bytes(self, (double)bucket->fp8) : 0;
    return (megatron_unsharded_bytes(self, bucket) + second) / self->ranks[bucket->class];
}

static double grad_bytes(const struct megatron *self, const struct bucket *bucket)
{
    return (double)(bucket->elements * self->grad_bytes);
}

static const char *megatron_fsdp_name_of(
    const struct megatron *self, const struct bucket *bucket, const char *what)
{
    return emit_name(self->emit, bucket->layer, what);
}

static void megatron_fsdp_stream_kernel(struct megatron *self, int stream, enum kernel_kind kind,
    const struct bucket *bucket, const char *what, double reads, double writes)
{
    emit_stream_kernel(
        self->emit, stream, kind, megatron_fsdp_name_of(self, bucket, what), reads, writes);
}

/* ---- weights ---- */

/* What a gather starts after: all that is computed by now. */
static plan_wait computed(const struct megatron *self)
{
    plan_wait last = plan_last_op(&self->emit->builder, STREAM_COMPUTE);
    return last != PLAN_NO_OP ? last : PLAN_LAST_STEP;
}

/* The other instances have stepped on the rest of this one's shard, once a step. */
static plan_wait gather_outer(struct megatron *self, struct bucket *bucket, plan_wait after)
{
    if (!self->cuts_outer || bucket->whole)
        return after;
    bucket->whole = true;
    plan_wait op = emit_collective(self->emit, STREAM_REPLICATE, after,
        megatron_fsdp_name_of(self, bucket, "outer_all_gather"), COLL_ALL_GATHER,
        megatron_fsdp_shard_bytes(self, bucket), self->replicate_group[bucket->class]);
    return op != PLAN_NO_OP ? op : after;
}

static void megatron_fsdp_gather(struct megatron *self, struct bucket *bucket)
{
    struct emit *emit = self->emit;
    double bytes = megatron_unsharded_bytes(self, bucket);
    bool sharded = self->ranks[bucket->class] > 1;
    if (bucket->gathering || !(sharded || self->cuts_outer))
        return;
    bucket->gathering = true;
    if (sharded && self->cuts_weights && !(doubles(self) && is_unit(bucket)))
        bucket->weights = plan_alloc(&emit->builder, STREAM_COMM,
            megatron_fsdp_name_of(self, bucket, "unsharded_params"), (int64_t)bytes, HBM_GATHERED);
    plan_wait ready = gather_outer(self, bucket, computed(self));
    plan_wait op =
        emit_collective(emit, STREAM_COMM, ready, megatron_fsdp_name_of(self, bucket, "all_gather"),
            COLL_ALL_GATHER, bytes, self->group[bucket->class]);
    bucket->gathered = op != PLAN_NO_OP ? op : ready;
}

/* Behind the buckets of a unit, which lie side by side, in a direction. */
static int past_unit(const struct megatron *self, int b, int direction)
{
    int layer = self->buckets.at[b].layer;
    do
        b += direction;
    while (layer != 0 && b >= 0 && b < self->buckets.n && self->buckets.at[b].layer == layer);
    return b;
}

/* Up to the bucket `end`; returns elements. */
static double gather_up_to(struct megatron *self, int b, int end, int direction)
{
    double elements = 0;
    for (; b != end; b += direction) {
        megatron_fsdp_gather(self, &self->buckets.at[b]);
        elements += (double)self->buckets.at[b].elements;
    }
    return elements;
}

/* The unit of bucket b, from its side that comes first in the direction, and of those behind it
 * what the window takes. */
static void gather_ahead(struct megatron *self, int b, int direction)
{
    int end = past_unit(self, b, direction), ahead = 0;
    double elements = gather_up_to(self, b, end, direction);
    while (self->options->overlap_param_gather && elements < self->window && end >= 0 &&
           end < self->buckets.n && !(doubles(self) && ahead > 0)) {
        int next = past_unit(self, end, direction);
        elements += gather_up_to(self, end, next, direction);
        end = next;
        ahead++;
    }
}

/* Of the segment's unit, or of what it has of the root, the bucket that comes first in the
 * direction; NO_BUCKET: none. */
static int bucket_of(const struct megatron *self, int segment, int direction)
{
    const struct model *model = self->emit->model;
    int layer = self->emit->segments.at[segment].layer, found = NO_BUCKET;
    for (int t = 0; t < model->n_tensors; t++) {
        int b = self->bucket[t];
        bool has = layer != 0 ? model->tensors[t].layer == layer : self->segment[t] == segment;
        if (has && b != NO_BUCKET && (found == NO_BUCKET || (b - found) * direction < 0))
            found = b;
    }
    return found;
}

/* The unit has no segment beyond this one. */
static bool is_edge(const struct emit *emit, int segment, int direction)
{
    int next = segment + direction, layer = emit->segments.at[segment].layer;
    return layer == 0 || next < 0 || next >= emit->segments.n ||
           emit->segments.at[next].layer != layer;
}

static void megatron_fsdp_await(struct megatron *self, int b, int direction)
{
    for (int end = past_unit(self, b, direction); b != end; b += direction) {
        plan_stream_wait(&self->emit->builder, STREAM_COMPUTE, self->buckets.at[b].gathered);
        self->buckets.at[b].gathered = PLAN_NO_OP;
    }
}

/* Weights as products take them, where what is gathered is not that. */
static void megatron_fsdp_copy_weights(struct megatron *self, struct bucket *bucket, bool backward)
{
    bool narrow = self->options->fp8_param_gather;
    double fp8 = (double)bucket->fp8, one = megatron_narrow_bytes(self, fp8);
    if (bucket->fp8 == 0 || bucket->copies != PLAN_NO_OP || has_both_directions(self) ||
        (narrow && !backward))
        return;
    double written = one * ((narrow ? 0 : 1) + (model_turns_fp8(&self->emit->workload) ? 1 : 0));
    double read = narrow ? one : fp8 * (double)self->emit->param_bytes;
    if (!(written > 0))
        return;
    bucket->copies = plan_alloc(&self->emit->builder, STREAM_COMPUTE,
        megatron_fsdp_name_of(self, bucket, "fp8_weights"), (int64_t)written, HBM_GATHERED);
    if (self->emit->workload.fp4)
        megatron_fsdp_stream_kernel(self, STREAM_COMPUTE, KERNEL_ELEMENTWISE, bucket,
            "fp4_weights.amax", read, FLOAT_BYTES);
    megatron_fsdp_stream_kernel(
        self, STREAM_COMPUTE, KERNEL_ELEMENTWISE, bucket, "fp8_weights", read, written);
}

static void drop_copies(struct megatron *self, int b, int direction)
{
    for (int end = past_unit(self, b, direction); b != end; b += direction)
        emit_free(self->emit, &self->buckets.at[b].copies, PLAN_NO_OP);
}

/* The stream of gathers waits for what was computed before it uses the memory again. */
static void megatron_fsdp_release(struct megatron *self, int b, int direction)
{
    for (int end = past_unit(self, b, direction); b != end; b += direction) {
        emit_free(self->emit, &self->buckets.at[b].weights, PLAN_NO_OP);
        self->buckets.at[b].gathering = false;
    }
}

static void hook(struct megatron *self, int b, const char *what)
{
    plan_host(&self->emit->builder, megatron_fsdp_name_of(self, &self->buckets.at[b], what),
        self->emit->options->host.unit_hook_s);
}

static void megatron_fsdp_unshard(struct megatron *self, int b, int direction, bool backward)
{
    gather_ahead(self, b, direction);
    megatron_fsdp_await(self, b, direction);
    for (int at = b, end = past_unit(self, b, direction); at != end && self->cuts_weights;
         at += direction)
        megatron_fsdp_copy_weights(self, &self->buckets.at[at], backward);
}

static void megatron_fsdp_before_forward(struct emit *emit, int segment)
{
    struct megatron *self = emit->state;
    int b = bucket_of(self, segment, -1);
    if (b == NO_BUCKET || !is_edge(emit, segment, -1))
        return;
    hook(self, b, "pre_forward");
    if (self->cuts_weights ||
        (self->scatters && self->options->overlap_param_gather && emit->on_first))
        megatron_fsdp_unshard(self, b, -1, false);
}

static void megatron_fsdp_after_forward(struct emit *emit, int segment)
{
    struct megatron *self = emit->state;
    int b = bucket_of(self, segment, -1);
    if (b != NO_BUCKET && is_unit(&self->buckets.at[b]) && is_edge(emit, segment, 1)) {
        hook(self, b, "post_forward");
        if (self->cuts_weights)
            megatron_fsdp_release(self, b, -1);
        if (emit_recomputes(emit, segment))
            drop_copies(self, b, -1);
    }
    megatron_reduce_amax_forward(emit, segment);
}

static void megatron_fsdp_before_backward(struct emit *emit, int segment)
{
    struct megatron *self = emit->state;
    int b = bucket_of(self, segment, 1);
    if (b == NO_BUCKET || !is_unit(&self->buckets.at[b]) || !is_edge(emit, segment, 1))
        return;
    hook(self, b, "pre_backward");
    if (self->cuts_weights)
        megatron_fsdp_unshard(self, b, 1, true);
}

static void megatron_fsdp_after_backward(struct emit *emit, int segment)
{
    struct megatron *self = emit->state;
    int b = bucket_of(self, segment, 1);
    if (b == NO_BUCKET || !is_edge(emit, segment, -1))
        return;
    hook(self, b, "post_backward");
    drop_copies(self, b, 1);
    if (self->cuts_weights && is_unit(&self->buckets.at[b]))
        megatron_fsdp_release(self, b, 1);
}

/* ---- gradients ---- */

/* The i-th that was sent. */
static struct bucket *reducing(const struct megatron *self, int i)
{
    return &self->buckets.at[self->reducing.at[i]];
}

static void finish_oldest(struct megatron *self)
{
    struct bucket *bucket = reducing(self, self->first_reducing++);
    plan_stream_wait(&self->emit->builder, STREAM_COMPUTE, bucket->reduced);
    emit_free(self->emit, &bucket->grads, PLAN_NO_OP);
    bucket->under_way = false;
}

/* Waits for the gradients on their way, but the last of these elements. */
static void drain(struct megatron *self, double left)
{
    double elements = 0;
    for (int i = self->first_reducing; i < self->reducing.n; i++)
        elements += (double)reducing(self, i)->elements;
    while (self->first_reducing < self->reducing.n && elements > left) {
        elements -= (double)reducing(self, self->first_reducing)->elements;
        finish_oldest(self);
    }
}

/* A bucket's gradients begin when those of the micro-batch before are reduced; with two buffers no
 * more than one unit's are under way. */
static void make_room(struct megatron *self, const struct bucket *bucket)
{
    int last = self->reducing.n - 1;
    while (bucket->under_way)
        finish_oldest(self);
    while (doubles(self) && self->first_reducing < last &&
           reducing(self, self->first_reducing)->layer != reducing(self, last)->layer)
        finish_oldest(self);
}

/* Its shard of the sum over the ranks, in a buffer that is only for that, is added to what is kept.
 */
static void megatron_fsdp_scatter(struct megatron *self, struct bucket *bucket)
{
    struct emit *emit = self->emit;
    struct plan_builder *builder = &emit->builder;
    double shard = grad_bytes(self, bucket) / self->ranks[bucket->class];
    int reduced = plan_alloc(builder, STREAM_POST,
        megatron_fsdp_name_of(self, bucket, "reduced_grads"), (int64_t)shard, HBM_GATHERED);
    plan_wait last = emit_collective(emit, STREAM_COMM, plan_last_op(builder, STREAM_POST),
        megatron_fsdp_name_of(self, bucket, "reduce_scatter"), COLL_REDUCE_SCATTER,
        grad_bytes(self, bucket), self->group[bucket->class]);
    plan_stream_wait(builder, STREAM_POST, last);
    megatron_fsdp_stream_kernel(
        self, STREAM_POST, KERNEL_ELEMENTWISE, bucket, "main_grad.add_", 2 * shard, shard);
    plan_free(builder, reduced, PLAN_NO_OP);
    bucket->reduced = plan_last_op(builder, STREAM_POST);
    if (emit->on_last && self->replicas > 1)
        bucket->reduced = emit_collective(emit, STREAM_REPLICATE, bucket->reduced,
            megatron_fsdp_name_of(
                self, bucket, self->cuts_outer ? "outer_reduce_scatter" : "outer_all_reduce"),
            self->cuts_outer ? COLL_REDUCE_SCATTER : COLL_ALL_REDUCE, shard,
            self->replicate_group[bucket->class]);
}

static void megatron_fsdp_reduce(struct megatron *self, int b)
{
    struct plan_builder *builder = &self->emit->builder;
    struct bucket *bucket = &self->buckets.at[b];
    double bytes = grad_bytes(self, bucket);
    drain(self, self->window);
    plan_stream_wait(builder, STREAM_POST, plan_last_op(builder, STREAM_COMPUTE));
    if (self->options->check_for_nan_in_grad)
        megatron_fsdp_stream_kernel(
            self, STREAM_POST, KERNEL_NORM, bucket, "check_for_nan", bytes, 0);
    if (megatron_is_scaled(self, bucket->class))
        megatron_fsdp_stream_kernel(
            self, STREAM_POST, KERNEL_ELEMENTWISE, bucket, "scale", bytes, bytes);
    megatron_fsdp_scatter(self, bucket);
    bucket->filling = false;
    bucket->under_way = true;
    vec_push(&self->reducing, b);
    if (!self->options->overlap_grad_reduce)
        drain(self, 0);
}

/* The buffer of the unit's gradients, and one of a gradient that no GEMM writes there. */
static void megatron_fsdp_grad_begins(struct emit *emit, int tensor)
{
    struct megatron *self = emit->state;
    struct bucket *bucket = &self->buckets.at[self->bucket[tensor]];
    megatron_grad_begins(emit, tensor);
    if (!self->cuts_grads || bucket->filling)
        return;
    make_room(self, bucket);
    bucket->filling = true;
    if (doubles(self) && is_unit(bucket))
        return;
    bucket->grads = plan_alloc(&emit->builder, STREAM_COMPUTE,
        megatron_fsdp_name_of(self, bucket, "unsharded_grads"), (int64_t)grad_bytes(self, bucket),
        HBM_GATHERED);
}

static void megatron_fsdp_grad_ready(struct emit *emit, int tensor)
{
    struct megatron *self = emit->state;
    int b = self->bucket[tensor];
    struct bucket *bucket = &self->buckets.at[b];
    if (!self->cuts_grads) {
        megatron_grad_ready(emit, tensor);
        return;
    }
    if (!self->fused[tensor]) {
        emit_tensor_kernel(emit, tensor, KERNEL_COPY, "main_grad.copy_", emit->param_bytes,
            self->grad_bytes, emit->options->host.backward_issue_s);
        emit_free(emit, &emit->grads[tensor], PLAN_NO_OP);
    }
    if (--bucket->left > 0)
        return;
    bucket->left = bucket->tensors;
    megatron_fsdp_reduce(self, b);
}

/* ---- the step ---- */

/* The mean of units: a number of elements. */
static double unit_elements(const struct megatron *self)
{
    double elements = 0;
    int units = 0;
    for (int b = 0; b < self->buckets.n; b++) {
        const struct bucket *bucket = &self->buckets.at[b];
        elements += is_unit(bucket) ? (double)bucket->elements : 0;
        units += is_unit(bucket) && (b == 0 || self->buckets.at[b - 1].layer != bucket->layer);
    }
    return units > 0 ? elements / units : 0;
}

/* Of the largest unit. */
static void keep_buffers(struct megatron *self)
{
    double weights = 0, grads = 0;
    for (int b = 0, end; b < self->buckets.n; b = end) {
        double of_weights = 0, of_grads = 0;
        end = past_unit(self, b, 1);
        for (int at = b; at < end && is_unit(&self->buckets.at[b]); at++) {
            of_weights += megatron_unsharded_bytes(self, &self->buckets.at[at]);
            of_grads += grad_bytes(self, &self->buckets.at[at]);
        }
        weights = of_weights > weights ? of_weights : weights;
        grads = of_grads > grads ? of_grads : grads;
    }
    plan_keep(&self->emit->builder, "double_buffer.params", 2 * (int64_t)weights, HBM_GATHERED);
    plan_keep(&self->emit->builder, "double_buffer.grads", 2 * (int64_t)grads, HBM_GATHERED);
}

/* What no unit has stays gathered to the end of backward. */
static void megatron_fsdp_step_ends(struct emit *emit)
{
    struct megatron *self = emit->state;
    drain(self, 0);
    for (int b = 0; b < self->buckets.n; b++)
        emit_free(emit, &self->buckets.at[b].weights, PLAN_NO_OP);
    megatron_step_ends(emit);
}

static void megatron_fsdp_setup(struct emit *emit)
{
    struct megatron *self = emit->state;
    megatron_setup(emit);
    double two = self->cuts_weights ? 2 * unit_elements(self) : 0;
    int64_t given = self->options->suggested_communication_unit_size;
    self->window = given > 0 ? (double)given : two > LEAST_WINDOW ? two : LEAST_WINDOW;
    if (doubles(self))
        keep_buffers(self);
}

const struct data_parallel megatron_fsdp_hooks = {.state_size = sizeof(struct megatron),
    .setup = megatron_fsdp_setup,
    .step_begins = megatron_step_begins,
    .before_forward = megatron_fsdp_before_forward,
    .after_forward = megatron_fsdp_after_forward,
    .before_backward = megatron_fsdp_before_backward,
    .after_backward = megatron_fsdp_after_backward,
    .backward_ends = megatron_reduce_amax_backward,
    .step_ends = megatron_fsdp_step_ends,
    .grad_begins = megatron_fsdp_grad_begins,
    .grad_ready = megatron_fsdp_grad_ready};
