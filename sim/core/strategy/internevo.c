/* InternEvo's hybrid ZeRO-1 as a plan. Source: internlm/solver/optimizer/hybrid_zero_optim.py and
 * internlm/core/communication/utils.py (ParamBcastSyncHandler) of InternEvo 0.2, restated from
 * memory.
 *
 * Weights and gradients are 16-bit (bf16_master), or one format throughout. Gradients are
 * all-reduced over all ranks in buckets of reduce_bucket_size elements, in the last micro-step
 * only; each bucket is flattened, reduced and copied back on a separate stream, and the host waits
 * for the bucket before. The optimizer's FP32 weights and moments are shared out over zero1 ranks
 * by WHOLE tensors: with overlap_sync_param in the order of the model, as many tensors to each rank
 * (n / zero1 + 1 of n, restated); else the largest first, each to the rank that has least. After
 * the step each rank broadcasts its tensors, flattened, to the others: as many collectives as
 * ranks, or as tensors where those are fewer. (DeepSpeed gathers flat shards instead, which takes
 * params / allgather_bucket_size of them.)
 *   With overlap_sync_param a block waits, before its first kernel, for the ranks that own a part
 *   of it; else the
 * next forward pass waits for all.
 *   Broadcasts follow one another: NCCL lays its rings down the ranks of a node (its logs show 0 7
 *   6 5 4 3 2 1), so
 * that the next root is the last but few to have the data before, and the pipeline fills anew for
 * every root. On a node boundary, one root in eight, the next one is near; that is ignored.
 *   One program stands for all ranks: its optimizer steps on the largest part, which is what the
 *   others wait for.
 * Ignored: tensor, pipeline and sequence parallelism, groups of parameters by their format, loss
 * scaling. */
#include "strategy/buckets.h"

struct internevo {
    struct emit *emit;
    const struct internevo_options *options;
    int ranks;              /* all */
    int world, zero1;       /* groups */
    int *segment;           /* by tensor: whose backward pass completes its gradient */
    int *owner;             /* by tensor */
    int64_t *owned;         /* elements, by rank of the zero1 group */
    int n_owners;           /* the ranks after these own nothing */
    plan_wait *arrivals;    /* by owner: its broadcast; PLAN_NO_OP once compute has waited for it */
    int64_t largest;        /* part */
    struct buckets buckets; /* in elements; reduced: the copy out of one */
};

/* ---- who owns what ---- */

static void internevo_own(struct internevo *self, int tensor, int rank)
{
    self->owner[tensor] = rank;
    self->owned[rank] += self->emit->model->tensors[tensor].numel;
    self->n_owners = rank >= self->n_owners ? rank + 1 : self->n_owners;
    self->largest = self->owned[rank] > self->largest ? self->owned[rank] : self->largest;
}

/* model.h has a layer's tensors in a row, the root's first; in the order of the modules norm and
 * head come last. */
static void find_segments(struct internevo *self)
{
    const struct model_segments *segments = &self->emit->segments;
    for (int s = 0; s < segments->n; s++)
        for (int k = 0; k < segments->at[s].program->n_backward; k++) {
            int param = segments->at[s].program->backward[k].param_grad;
            if (param >= 0)
                self->segment[segments->at[s].tensor_base + param] = s;
        }
}

static void share_in_order(struct internevo *self, int ranks)
{
    int n = self->emit->model->n_tensors, rank = 0, of_rank = 0;
    for (int s = 0; s < self->emit->segments.n; s++)
        for (int t = 0; t < n; t++) {
            if (self->segment[t] != s)
                continue;
            if (++of_rank > n / ranks + 1 && rank + 1 < ranks) {
                rank++;
                of_rank = 1;
            }
            internevo_own(self, t, rank);
        }
}

/* The largest tensor that is left, to the rank that has least. */
static void share_by_size(struct internevo *self, int ranks)
{
    const struct model *model = self->emit->model;
    for (int t = 0; t < model->n_tensors; t++)
        self->owner[t] = -1;
    for (int i = 0; i < model->n_tensors; i++) {
        int largest = -1, least = 0;
        for (int t = 0; t < model->n_tensors; t++)
            if (self->owner[t] < 0 &&
                (largest < 0 || model->tensors[t].numel > model->tensors[largest].numel))
                largest = t;
        for (int r = 1; r < ranks; r++)
            least = self->owned[r] < self->owned[least] ? r : least;
        internevo_own(self, largest, least);
    }
}

/* ---- weights ---- */

/* What the step before has left behind, at the start of this one: the optimizer's last kernel is
 * the last op that the compute stream had. */
static void broadcast_weights(struct internevo *self)
{
    struct emit *emit = self->emit;
    struct plan_builder *builder = &emit->builder;
    builder->phase = PHASE_OPTIMIZER;
    if (self->ranks > 1)
        plan_stream_wait(builder, STREAM_COMM, PLAN_LAST_STEP);
    for (int r = 0; r < self->n_owners; r++)
        self->arrivals[r] = emit_collective(emit, STREAM_COMM, PLAN_NO_OP,
            arena_printf(emit->arena, "weights.%d/broadcast", r), COLL_BROADCAST,
            (double)(self->owned[r] * emit->param_bytes), self->zero1);
}

static void await_owner(struct internevo *self, int rank)
{
    plan_stream_wait(&self->emit->builder, STREAM_COMPUTE, self->arrivals[rank]);
    self->arrivals[rank] = PLAN_NO_OP;
}

static void internevo_before_forward(struct emit *emit, int segment)
{
    struct internevo *self = emit->state;
    for (int t = 0; t < emit->model->n_tensors; t++)
        if (self->segment[t] == segment)
            await_owner(self, self->owner[t]);
}

/* ---- gradients ---- */

static plan_wait internevo_reduce(struct emit *emit, const int *tensors, int n, int64_t elements)
{
    struct internevo *self = emit->state;
    struct plan_builder *builder = &emit->builder;
    double bytes = (double)(elements * emit->param_bytes);
    (void)tensors;
    (void)n;
    plan_host_wait(builder, "comm_stream.synchronize", buckets_last(&self->buckets),
        emit->options->host.unit_hook_s);
    int flat =
        plan_alloc(builder, STREAM_POST, "bucket/flat", elements * emit->param_bytes, HBM_BUFFERS);
    plan_stream_wait(builder, STREAM_POST, plan_last_op(builder, STREAM_COMPUTE));
    emit_stream_kernel(emit, STREAM_POST, KERNEL_COPY, "bucket/flatten", bytes, bytes);
    plan_stream_wait(builder, STREAM_POST,
        emit_collective(emit, STREAM_COMM, plan_last_op(builder, STREAM_POST),
            arena_printf(emit->arena, "bucket.%d/all_reduce", self->buckets.sent.n),
            COLL_ALL_REDUCE, bytes, self->world));
    emit_stream_kernel(emit, STREAM_POST, KERNEL_COPY, "bucket/unflatten_and_copy", bytes, bytes);
    plan_wait reduced = plan_last_op(builder, STREAM_POST);
    plan_free(builder, flat, PLAN_NO_OP);
    if (!self->options->overlap_sync_grad)
        plan_stream_wait(builder, STREAM_COMPUTE, reduced);
    return reduced;
}

static void internevo_grad_ready(struct emit *emit, int tensor)
{
    struct internevo *self = emit->state;
    int64_t numel = emit->model->tensors[tensor].numel;
    if (!emit->on_first)
        emit_accumulate_grad(emit, tensor, emit->options->host.kernel_issue_s);
    if (self->ranks == 1 || !emit->on_last)
        return;
    if (self->buckets.size + numel > self->options->reduce_bucket_size)
        buckets_send(emit, &self->buckets);
    buckets_add(&self->buckets, tensor, numel);
}

/* ---- the step ---- */

/* The norm of the gradients, which the host reads to clip by it; then each rank steps on what it
 * owns. */
static void internevo_step_ends(struct emit *emit)
{
    struct internevo *self = emit->state;
    struct plan_builder *builder = &emit->builder;
    struct optimizer_tensor part = optimizer_vector(self->largest);
    buckets_send(emit, &self->buckets);
    builder->phase = PHASE_OPTIMIZER;
    plan_stream_wait(builder, STREAM_COMPUTE, buckets_last(&self->buckets));
    emit_stream_kernel(emit, STREAM_COMPUTE, KERNEL_ELEMENTWISE, "grad_norm",
        (double)(self->largest * emit->param_bytes), 0);
    plan_wait norm = plan_last_op(builder, STREAM_COMPUTE);
    plan_wait sum = emit_collective(emit, STREAM_COMM, norm, "grad_norm/all_reduce",
        COLL_ALL_REDUCE, sizeof(float), self->zero1);
    plan_host_wait(builder, "grad_norm.item", sum == PLAN_NO_OP ? norm : sum, 0);
    emit_optimizer(emit, &part, 1);
    plan_link_steps(&emit->builder, plan_last_op(builder, STREAM_COMPUTE));
    buckets_free(&self->buckets);
}

static void internevo_setup(struct emit *emit)
{
    struct internevo *self = emit->state;
    int n = emit->model->n_tensors;
    int owners = emit_degree(emit, 1 << AXIS_DP_SHARD);
    *self = (struct internevo){.emit = emit,
        .options = &emit->options->internevo,
        .ranks = emit_degree(emit, AXES_DP),
        .world = emit_group(emit, "world", AXES_DP),
        .zero1 = emit_group(emit, "zero1", 1 << AXIS_DP_SHARD),
        .segment = ARENA_ARRAY(emit->arena, int, n),
        .owner = ARENA_ARRAY(emit->arena, int, n),
        .owned = ARENA_ARRAY(emit->arena, int64_t, owners),
        .arrivals = ARENA_ARRAY(emit->arena, plan_wait, owners),
        .buckets = {.reduce = internevo_reduce}};
    find_segments(self);
    if (self->options->overlap_sync_param)
        share_in_order(self, owners);
    else
        share_by_size(self, owners);
    struct optimizer_tensor part = optimizer_vector(self->largest);
    plan_keep(&emit->builder, "weights", emit->model->params * emit->param_bytes, HBM_PARAMETERS);
    plan_keep(&emit->builder, "optimizer_state", emit_state_bytes(emit, part), HBM_OPTIMIZER);
    broadcast_weights(self);
}

static void internevo_step_begins(struct emit *emit)
{
    struct internevo *self = emit->state;
    for (int r = 0; r < self->n_owners && !self->options->overlap_sync_param; r++)
        await_owner(self, r);
}

/* ---- settings ---- */

static const struct config_field internevo_fields[] = {
#define SETTINGS SETTING_FIELD
#include "strategy/internevo_settings.h"
};
const struct config_table internevo_table = CONFIG_TABLE("'internevo'", internevo_fields);

const struct internevo_options internevo_defaults = {
#define SETTINGS SETTING_DEFAULT
#include "strategy/internevo_settings.h"
};

static int internevo_shard_ranks(
    const struct strategy_options *options, const struct hw *hw, int ranks)
{
    (void)hw;
    return (int)internevo_zero1_size(&options->internevo, ranks);
}

const struct data_parallel internevo_hooks = {.state_size = sizeof(struct internevo),
    .label = "hybrid ZeRO-1",
    .section = "internevo",
    .shard_ranks = internevo_shard_ranks,
    .setup = internevo_setup,
    .step_begins = internevo_step_begins,
    .before_forward = internevo_before_forward,
    .step_ends = internevo_step_ends,
    .grad_begins = emit_begin_grad,
    .grad_ready = internevo_grad_ready};
