/* DeepSpeed's ZeRO as a plan. Source: deepspeed/runtime/zero/{stage_1_and_2,stage3,partitioned_param_coordinator}.py,
 * restated.
 *
 * Weights and gradients are 16-bit (or FP32), the optimizer works on FP32 master weights of which each rank holds 1/N.
 *   Gradients go into a contiguous bucket of reduce_bucket_size elements as they become ready; a full bucket is reduced
 * to the ranks that own its parts. Stage 1 keeps all gradients until the last micro-step and reduces then, stage 2 and
 * 3 reduce in every one. Without overlap_comm the compute stream waits for each reduction. Step: the owned gradients in
 * FP32, the optimizer on the owned part, the new weights cast, and (stages 1 and 2) gathered in buckets of
 * allgather_bucket_size; the next forward pass waits for that. Stage 3 shards the weights: a matrix is gathered before
 * the first kernel that uses it, with the next ones in the order of use up to stage3_prefetch_bucket_size; the host
 * goes on when at most two of the gathers that kernels have come to are not done (__max_ongoing_fetch_events); after
 * use it is released unless it comes again within stage3_max_reuse_distance elements. Parameters below
 * stage3_param_persistence_threshold stay whole. offload_optimizer: owned gradients go to the host as they are reduced,
 * the CPU steps in one pass, 16-bit weights come back. Frozen parameters (adapters beside them) are weights like
 * others, sharded and gathered, in NF4 where they lie so; they have no gradient, no master copy and no state. Ignored:
 * adding up the owned part over micro-steps (1/N of the gradients), parameters on the host, ZeRO++, MiCS,
 * stage3_max_live_parameters, round_robin_gradients, gradient clipping. Not checked: that a parameter which does not
 * fit into the prefetch bucket any more is left for later. From memory, DeepSpeed takes it still; then large models
 * would hide most gathers, which the published 175B runs do not show (at 512 tokens on 128 GPUs a step takes 8.5 s
 * and 3.4 s a sequence: the gathers are not hidden at all). */
#include "strategy/emit.h"

struct gathered {
    int buffer;         /* or PLAN_NO_OP */
    plan_wait ready_op; /* compute has to wait for it, once */
};

enum { ONGOING_FETCHES = 2 };

struct zero {
    struct emit *emit;
    const struct zero_options *options;
    int group;
    int64_t owned; /* elements of this rank's part of everything */
    bool overlaps;
    bool first_micro_step, reduces; /* this micro-step */
    int *grads;                     /* by tensor: buffer */
    int64_t bucket_elements;        /* in the bucket that is filling */
    VEC(int) in_bucket;             /* tensors */
    int owned_grads;                /* buffer of the owned part of the gradients, or PLAN_NO_OP */
    int buckets;
    /* stage 3 */
    struct gathered *weights;               /* by tensor */
    VEC(int) uses;                          /* tensors in the order in which kernels of a micro-step use them */
    int at;                                 /* in uses */
    plan_wait fetches[ONGOING_FETCHES + 1]; /* the last gathers that kernels came to, a ring */
    int n_fetches;
};

static bool persists(const struct zero *zero, int tensor)
{
    return zero->options->stage < 3 || zero->emit->gpus == 1 ||
           zero->emit->model->tensors[tensor].numel < zero->options->stage3_param_persistence_threshold;
}

static int64_t weight_bytes(const struct zero *zero, int tensor)
{
    return emit_used_bytes(zero->emit, &zero->emit->model->tensors[tensor]);
}

static void stream_kernel(struct zero *zero, enum kernel_kind kind, const char *name, double reads, double writes)
{
    struct emit *emit = zero->emit;
    plan_kernel(&emit->builder, STREAM_COMPUTE, name, kernel_stream(kind, reads, writes, 0),
        emit->options->host.kernel_issue_s);
}

/* ---- stage 3: weights come and go ----------------------------------------------------------------------------------
 */

/* One collective for one or several tensors; each has its own buffer. */
static void gather(struct zero *zero, const int *tensors, int n)
{
    struct emit *emit = zero->emit;
    double bytes = 0;
    for (int i = 0; i < n; i++) {
        int t = tensors[i];
        zero->weights[t].buffer =
            plan_alloc(&emit->builder, STREAM_COMM, emit->model->tensors[t].name, weight_bytes(zero, t), HBM_GATHERED);
        bytes += (double)weight_bytes(zero, t);
    }
    if (n == 0)
        return;
    plan_host(&emit->builder, "fetch_sub_module", emit->options->host.unit_hook_s);
    plan_wait op = plan_collective(&emit->builder, STREAM_COMM,
        arena_printf(emit->arena, "%s/all_gather", emit->model->tensors[tensors[0]].name), COLL_ALL_GATHER, bytes,
        zero->group, emit->options->host.collective_issue_s);
    for (int i = 0; i < n; i++)
        zero->weights[tensors[i]].ready_op = op;
}

/* What comes after the present use, up to the prefetch bucket, as one gather. */
static void prefetch(struct zero *zero)
{
    VEC(int) next = {0};
    int64_t elements = 0;
    for (int u = zero->at + 1; u < zero->uses.n; u++) {
        int t = zero->uses.at[u];
        if (persists(zero, t) || zero->weights[t].buffer != PLAN_NO_OP)
            continue;
        elements += zero->emit->model->tensors[t].numel;
        if (elements > zero->options->stage3_prefetch_bucket_size)
            break;
        bool listed = false;
        for (int i = 0; i < next.n && !listed; i++)
            listed = next.at[i] == t;
        if (!listed)
            vec_push(&next, t);
    }
    gather(zero, next.at, next.n);
    vec_free(&next);
}

/* A kernel has come to a gathered tensor. */
static void await_fetch(struct zero *zero, plan_wait gathered)
{
    plan_wait *oldest = &zero->fetches[zero->n_fetches % (ONGOING_FETCHES + 1)];
    if (zero->n_fetches++ > ONGOING_FETCHES)
        plan_host_wait(&zero->emit->builder, "ongoing_fetch_events", *oldest, 0);
    *oldest = gathered;
    plan_stream_wait(&zero->emit->builder, STREAM_COMPUTE, gathered);
}

static void param_needed(void *self, int tensor)
{
    struct zero *zero = self;
    if (persists(zero, tensor))
        return;
    if (zero->weights[tensor].buffer == PLAN_NO_OP)
        gather(zero, &tensor, 1);
    prefetch(zero);
    if (zero->weights[tensor].ready_op != PLAN_NO_OP)
        await_fetch(zero, zero->weights[tensor].ready_op);
    zero->weights[tensor].ready_op = PLAN_NO_OP;
}

/* Elements used between the present use of a tensor and its next one; INT64_MAX when there is none. */
static int64_t reuse_distance(const struct zero *zero, int tensor)
{
    int64_t elements = 0;
    for (int u = zero->at + 1; u < zero->uses.n; u++) {
        if (zero->uses.at[u] == tensor)
            return elements;
        elements += zero->emit->model->tensors[zero->uses.at[u]].numel;
    }
    return INT64_MAX;
}

static void param_used(void *self, int tensor)
{
    struct zero *zero = self;
    struct gathered *weight = &zero->weights[tensor];
    if (weight->buffer != PLAN_NO_OP && reuse_distance(zero, tensor) > zero->options->stage3_max_reuse_distance) {
        plan_free(&zero->emit->builder, weight->buffer, plan_last_op(&zero->emit->builder, STREAM_COMPUTE));
        weight->buffer = PLAN_NO_OP;
    }
    zero->at++;
}

/* The order of use, as DeepSpeed records it in its first step: each stage's forward kernels, then backward with
 * recomputation. */
static void trace_uses(struct zero *zero)
{
    struct emit *emit = zero->emit;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < emit->stages.n; i++) {
            int s = pass ? emit->stages.n - 1 - i : i;
            const struct model_program *program = emit->stages.at[s].program;
            int base = emit->stages.at[s].tensor_base;
            bool forward = pass == 0 || emit_recomputes(emit, s);
            for (int k = 0; k < program->n_forward && forward; k++)
                if (program->forward[k].param_use >= 0 && !(pass && emit_skips(emit, s, k)))
                    vec_push(&zero->uses, base + program->forward[k].param_use);
            for (int k = 0; k < program->n_backward && pass; k++)
                if (program->backward[k].param_use >= 0)
                    vec_push(&zero->uses, base + program->backward[k].param_use);
        }
}

/* ---- gradients ------------------------------------------------------------------------------------------------------
 */

static void send_bucket(struct zero *zero)
{
    struct emit *emit = zero->emit;
    struct plan_builder *builder = &emit->builder;
    if (zero->bucket_elements == 0)
        return;
    plan_host(builder, "reduce_ipg_grads", emit->options->host.unit_hook_s);
    plan_stream_wait(builder, STREAM_COMM, plan_last_op(builder, STREAM_COMPUTE));
    plan_wait op = plan_collective(builder, STREAM_COMM,
        arena_printf(emit->arena, "bucket.%d/reduce_scatter", zero->buckets++), COLL_REDUCE_SCATTER,
        (double)(zero->bucket_elements * emit->param_bytes), zero->group, emit->options->host.collective_issue_s);
    if (!zero->overlaps)
        plan_stream_wait(builder, STREAM_COMPUTE, op);
    if (zero->options->offload_optimizer) {
        plan_stream_wait(builder, STREAM_POST, op != PLAN_NO_OP ? op : plan_last_op(builder, STREAM_COMPUTE));
        emit_host_copy(emit, STREAM_POST, "owned_grads/device_to_host",
            (double)(zero->bucket_elements * emit->param_bytes) / emit->gpus);
    }
    for (int i = 0; i < zero->in_bucket.n && zero->options->stage >= 2; i++) {
        int t = zero->in_bucket.at[i];
        plan_free(builder, zero->grads[t], PLAN_NO_OP); /* it was copied into the bucket */
        zero->grads[t] = PLAN_NO_OP;
    }
    zero->in_bucket.n = 0;
    zero->bucket_elements = 0;
}

static void grad_begins(void *self, int tensor)
{
    struct zero *zero = self;
    if (zero->grads[tensor] == PLAN_NO_OP)
        zero->grads[tensor] = plan_alloc(&zero->emit->builder, STREAM_COMPUTE, zero->emit->model->tensors[tensor].name,
            weight_bytes(zero, tensor), HBM_GRADIENTS);
}

static void grad_ready(void *self, int tensor)
{
    struct zero *zero = self;
    const struct model_tensor *at = &zero->emit->model->tensors[tensor];
    double bytes = (double)weight_bytes(zero, tensor);
    if (zero->options->stage == 1 && !zero->first_micro_step)
        stream_kernel(zero, KERNEL_ELEMENTWISE, arena_printf(zero->emit->arena, "%s/accumulate_grad", at->name),
            2 * bytes, bytes);
    if (!zero->reduces)
        return;
    if (zero->bucket_elements + at->numel > zero->options->reduce_bucket_size)
        send_bucket(zero);
    stream_kernel(zero, KERNEL_COPY, arena_printf(zero->emit->arena, "%s/copy_to_bucket", at->name), bytes, bytes);
    zero->bucket_elements += at->numel;
    vec_push(&zero->in_bucket, tensor);
}

/* ---- the step
 * ---------------------------------------------------------------------------------------------------------- */

static void gather_weights(struct zero *zero)
{
    struct emit *emit = zero->emit;
    struct plan_builder *builder = &emit->builder;
    plan_stream_wait(builder, STREAM_COMM, plan_last_op(builder, STREAM_COMPUTE));
    for (int64_t left = emit->model->trained, n = 0; left > 0; left -= zero->options->allgather_bucket_size, n++) {
        int64_t elements = left < zero->options->allgather_bucket_size ? left : zero->options->allgather_bucket_size;
        plan_collective(builder, STREAM_COMM, arena_printf(emit->arena, "weights.%d/all_gather", (int)n),
            COLL_ALL_GATHER, (double)(elements * emit->param_bytes), zero->group,
            emit->options->host.collective_issue_s);
    }
}

/* The step on the host, and the new weights back. */
static void offloaded_step(struct zero *zero)
{
    struct emit *emit = zero->emit;
    struct optimizer_tensor owned = {zero->owned, 1};
    emit_host_optimizer(emit, &owned, 1, true, plan_last_op(&emit->builder, STREAM_POST));
    emit_host_copy(emit, STREAM_COMPUTE, "weights/host_to_device", (double)(zero->owned * emit->param_bytes));
}

static void device_step(struct zero *zero)
{
    struct emit *emit = zero->emit;
    struct plan_builder *builder = &emit->builder;
    double owned = (double)zero->owned;
    builder->phase = PHASE_OPTIMIZER;
    plan_stream_wait(builder, STREAM_COMPUTE, plan_last_op(builder, STREAM_COMM));
    int full = PLAN_NO_OP;
    if (emit->param_bytes != emit->master_bytes) {
        full = plan_alloc(builder, STREAM_COMPUTE, "fp32_grads", zero->owned * emit->master_bytes, HBM_GRADIENTS);
        stream_kernel(zero, KERNEL_COPY, "optimizer/grads_to_fp32", owned * (double)emit->param_bytes,
            owned * (double)emit->master_bytes);
    }
    emit_optimizer(emit, &(struct optimizer_tensor){zero->owned, 1}, 1);
    plan_free(builder, full, PLAN_NO_OP);
    stream_kernel(zero, KERNEL_COPY, "optimizer/weights_from_fp32", owned * (double)emit->master_bytes,
        owned * (double)emit->param_bytes);
}

static void keep_optimizer(struct zero *zero)
{
    struct emit *emit = zero->emit;
    bool master = emit->param_bytes != emit->master_bytes;
    plan_keep(&emit->builder, "fp32_master_weights", master ? zero->owned * emit->master_bytes : 0, HBM_OPTIMIZER);
    plan_keep(&emit->builder, "optimizer_state", emit_state_bytes(emit, (struct optimizer_tensor){zero->owned, 1}),
        HBM_OPTIMIZER);
}

static int64_t round_up(int64_t value, int64_t unit)
{
    return (value + unit - 1) / unit * unit;
}

static void setup_memory(struct zero *zero)
{
    struct emit *emit = zero->emit;
    struct plan_builder *builder = &emit->builder;
    int64_t n = emit->gpus, whole = 0, sharded = 0;
    for (int t = 0; t < emit->model->n_tensors; t++) {
        zero->grads[t] = PLAN_NO_OP;
        zero->weights[t] = (struct gathered){PLAN_NO_OP, PLAN_NO_OP};
        *(persists(zero, t) ? &whole : &sharded) += weight_bytes(zero, t);
    }
    zero->owned = (emit->model->trained + n - 1) / n;
    plan_keep(builder, "weights", whole + round_up(sharded, n * emit->param_bytes) / n, HBM_PARAMETERS);
    if (zero->options->offload_optimizer) /* FP32 weights and gradients, and the states */
        emit_keep_on_host(emit,
            2 * zero->owned * emit->master_bytes + emit_state_bytes(emit, (struct optimizer_tensor){zero->owned, 1}));
    else
        keep_optimizer(zero);
    int64_t bucket = zero->options->reduce_bucket_size < emit->model->trained ? zero->options->reduce_bucket_size
                                                                              : emit->model->trained;
    plan_keep(builder, "ipg_buckets", (zero->overlaps ? 2 : 1) * bucket * emit->param_bytes, HBM_BUFFERS);
}

static void micro_step(struct zero *zero)
{
    struct emit *emit = zero->emit;
    zero->at = 0;
    for (int s = 0; s < emit->stages.n; s++)
        emit_forward(emit, s);
    for (int s = emit->stages.n - 1; s >= 0; s--)
        emit_backward(emit, s);
    emit_drop_outputs(emit);
    send_bucket(zero);
}

void compile_deepspeed(struct emit *emit)
{
    struct zero zero = {.emit = emit, .options = &emit->options->zero, .owned_grads = PLAN_NO_OP};
    struct plan_builder *builder = &emit->builder;
    emit->self = &zero;
    emit->grad_begins = grad_begins;
    emit->grad_ready = grad_ready;
    if (zero.options->stage == 3) {
        emit->param_needed = param_needed;
        emit->param_used = param_used;
        trace_uses(&zero);
    }
    int overlap = zero.options->overlap_comm;
    zero.overlaps = overlap == OVERLAP_TRUE || (overlap == OVERLAP_NULL && zero.options->stage == 3);
    zero.group = plan_group(builder, "world", emit->gpus, 1);
    zero.grads = ARENA_ARRAY(emit->arena, int, emit->model->n_tensors);
    zero.weights = ARENA_ARRAY(emit->arena, struct gathered, emit->model->n_tensors);
    setup_memory(&zero);
    plan_host(builder, "step", emit->options->host.step_s);
    if (emit->gpus > 1) /* weights of the step before: gathered (stages 1 and 2), or at least written (stage 3) */
        plan_stream_wait(builder, zero.options->stage == 3 ? STREAM_COMM : STREAM_COMPUTE, EMIT_LAST_STEP);
    if (emit->gpus > 1 && zero.options->stage > 1 &&
        !zero.options->offload_optimizer) /* what the reductions leave, kept to the step */
        zero.owned_grads =
            plan_alloc(builder, STREAM_COMPUTE, "owned_grads", zero.owned * emit->param_bytes, HBM_GRADIENTS);
    int64_t micro_steps = emit->options->train.grad_accum;
    for (int64_t m = 0; m < micro_steps; m++) {
        zero.first_micro_step = m == 0;
        zero.reduces =
            (emit->gpus > 1 || zero.options->offload_optimizer) && (zero.options->stage > 1 || m + 1 == micro_steps);
        micro_step(&zero);
    }
    if (zero.options->offload_optimizer)
        offloaded_step(&zero);
    else
        device_step(&zero);
    if (zero.options->stage < 3)
        gather_weights(&zero);
    for (int t = 0; t < emit->model->n_tensors; t++) {
        plan_free(builder, zero.grads[t], PLAN_NO_OP);
        plan_free(builder, zero.weights[t].buffer, plan_last_op(builder, STREAM_COMPUTE));
    }
    plan_free(builder, zero.owned_grads, PLAN_NO_OP);
    emit_link_steps(emit, plan_last_op(builder, zero.options->stage == 3 ? STREAM_COMPUTE : STREAM_COMM));
    vec_free(&zero.in_bucket);
    vec_free(&zero.uses);
}
