/* ZeRO-3's weights: see zero.h. Source:
 * deepspeed/runtime/zero/{partitioned_param_coordinator,partition_parameters, stage3}.py, restated;
 * before 0.6 the coordinators in stage3.py, from memory.
 *
 * A matrix is gathered before the first kernel that uses it, with the next ones in the order of
 * use; after use it is released unless it comes again within stage3_max_reuse_distance elements.
 * Parameters below stage3_param_persistence_threshold stay whole; after the step they are gathered.
 * By the year, stage3_fetch:
 * - trace, DeepSpeed 0.6 and later (pull request 1453, 2022-01): the next parameters are gathered
 *   together until they reach the prefetch bucket (the one that oversteps it comes along) or
 *   stage3_max_live_parameters are gathered. The host goes on when at most two of the gathers that
 *   kernels have come to are not done.
 * - blocking, before that: every parameter is gathered alone, into c10d's list of a tensor a rank
 *   (a view and a copy each), and every gather waits until the GPU has run dry
 *   (torch.cuda.synchronize in _allgather_param). The whole parameters are gathered at once and
 *   copied out rank by rank. */
#include "strategy/zero.h"

bool zero_persists(const struct zero *zero, int tensor)
{
    return zero->options->stage < 3 || zero->ranks == 1 ||
           zero->emit->model->tensors[tensor].numel <
               zero->options->stage3_param_persistence_threshold;
}

int64_t zero_weight_bytes(const struct zero *zero, int tensor)
{
    return emit_used_bytes(zero->emit, &zero->emit->model->tensors[tensor]);
}

double zero_loop_s(const struct zero *zero, double views, double copies)
{
    const struct host_options *host = &zero->emit->options->host;
    return zero->ranks * (views * host->view_s + copies * host->backward_issue_s);
}

bool zero_blocks(const struct zero *zero)
{
    return zero->options->stage == 3 && zero->options->stage3_fetch == FETCH_BLOCKING;
}

plan_wait zero_copy_list(struct zero *zero, int stream, double bytes, plan_wait after)
{
    struct plan_builder *builder = &zero->emit->builder;
    plan_stream_wait(builder, stream, after);
    return plan_kernel(
        builder, stream, "c10d/copy_list", kernel_stream(KERNEL_COPY, bytes, bytes, 0), 0);
}

void zero_synchronize(struct zero *zero)
{
    struct plan_builder *builder = &zero->emit->builder;
    for (int stream = 0; stream < STREAM_COUNT; stream++)
        plan_host_wait(builder, "synchronize", plan_last_op(builder, stream), 0);
}

/* One collective for one or several tensors; each has its own buffer. */
static void zero_fetch_gather(struct zero *zero, const int *tensors, int n)
{
    struct emit *emit = zero->emit;
    double bytes = 0, views_s = zero_blocks(zero) ? zero_loop_s(zero, 1, 1)
                                : n > 1           ? zero_loop_s(zero, 1, 0)
                                                  : 0;
    if (n == 0)
        return;
    for (int i = 0; i < n; i++) {
        int t = tensors[i];
        zero->weights[t].buffer = plan_alloc(&emit->builder, STREAM_COMM,
            emit->model->tensors[t].name, zero_weight_bytes(zero, t), HBM_GATHERED);
        zero->live += emit->model->tensors[t].numel;
        bytes += (double)zero_weight_bytes(zero, t);
    }
    if (zero_blocks(zero))
        zero_synchronize(zero);
    plan_host(&emit->builder, "fetch_sub_module", emit->options->host.unit_hook_s + views_s);
    plan_wait op = emit_collective(emit, STREAM_COMM, PLAN_NO_OP,
        arena_printf(emit->arena, "%s/all_gather", emit->model->tensors[tensors[0]].name),
        COLL_ALL_GATHER, bytes, zero->group);
    if (zero_blocks(zero))
        op = zero_copy_list(zero, STREAM_UNSHARD, bytes, op);
    for (int i = 0; i < n; i++)
        zero->weights[tensors[i]].ready_op = op;
}

/* What comes after the present use, until it reaches the prefetch bucket. */
static void zero_fetch_prefetch(struct zero *zero)
{
    VEC(int) next = {0};
    int64_t elements = 0, most = zero->options->stage3_prefetch_bucket_size;
    int64_t room = zero->options->stage3_max_live_parameters - zero->live;
    if (room <= 0)
        return;
    if (!zero_blocks(zero) && room < most)
        most = room;
    for (int u = zero->at + 1; u < zero->uses.n && elements < most; u++) {
        int t = zero->uses.at[u];
        if (zero_persists(zero, t) || zero->weights[t].buffer != PLAN_NO_OP)
            continue;
        bool listed = false;
        for (int i = 0; i < next.n && !listed; i++)
            listed = next.at[i] == t;
        if (!listed) {
            elements += zero->emit->model->tensors[t].numel;
            vec_push(&next, t);
        }
    }
    for (int i = 0; i < next.n && zero_blocks(zero); i++)
        zero_fetch_gather(zero, &next.at[i], 1);
    if (!zero_blocks(zero))
        zero_fetch_gather(zero, next.at, next.n);
    vec_free(&next);
}

void zero_keep_ongoing(struct zero *zero, struct ongoing *ongoing, const char *name, plan_wait op)
{
    plan_wait *oldest = &ongoing->ops[ongoing->n % (ONGOING + 1)];
    if (ongoing->n++ > ONGOING)
        plan_host_wait(&zero->emit->builder, name, *oldest, 0);
    *oldest = op;
}

void zero_param_needed(struct emit *emit, int tensor)
{
    struct zero *zero = emit->state;
    struct gathered *weight = &zero->weights[tensor];
    if (zero_persists(zero, tensor))
        return;
    if (weight->buffer == PLAN_NO_OP)
        zero_fetch_gather(zero, &tensor, 1);
    if (weight->ready_op != PLAN_NO_OP && !zero_blocks(zero))
        zero_keep_ongoing(zero, &zero->fetches, "ongoing_fetch_events", weight->ready_op);
    plan_stream_wait(&emit->builder, STREAM_COMPUTE, weight->ready_op);
    weight->ready_op = PLAN_NO_OP;
    zero_fetch_prefetch(zero);
}

/* Elements used between the present use of a tensor and its next one; INT64_MAX when there is none.
 */
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

void zero_param_used(struct emit *emit, int tensor)
{
    struct zero *zero = emit->state;
    struct gathered *weight = &zero->weights[tensor];
    if (weight->buffer != PLAN_NO_OP &&
        reuse_distance(zero, tensor) > zero->options->stage3_max_reuse_distance) {
        emit_free(emit, &weight->buffer, plan_last_op(&emit->builder, STREAM_COMPUTE));
        zero->live -= emit->model->tensors[tensor].numel;
    }
    zero->at++;
}

/* The order of use, as DeepSpeed records it in its first step: each segment's forward kernels, then
 * backward with recomputation. Kernels of a micro-step with fewer sequences may differ; DeepSpeed's
 * modules do not, so the order that it recorded holds there, too, and only what stands for it here
 * is made again. */
void zero_trace_uses(struct zero *zero)
{
    struct emit *emit = zero->emit;
    zero->uses.n = zero->at = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < emit->segments.n; i++) {
            int s = pass ? emit->segments.n - 1 - i : i;
            const struct model_program *program = emit->segments.at[s].program;
            int base = emit->segments.at[s].tensor_base;
            bool forward = pass == 0 || emit_recomputes(emit, s);
            for (int k = 0; k < program->n_forward && forward; k++)
                if (program->forward[k].param_use >= 0 && !(pass && emit_skips(emit, s, k)))
                    vec_push(&zero->uses, base + program->forward[k].param_use);
            for (int k = 0; k < program->n_backward && pass; k++)
                if (program->backward[k].param_use >= 0)
                    vec_push(&zero->uses, base + program->backward[k].param_use);
        }
}

void zero_gather_whole(struct zero *zero)
{
    struct emit *emit = zero->emit;
    struct plan_builder *builder = &emit->builder;
    double bytes = 0;
    int n = 0;
    plan_stream_wait(builder, STREAM_COMM, plan_last_op(builder, STREAM_COMPUTE));
    for (int t = 0; t < emit->model->n_tensors; t++) {
        if (!zero_persists(zero, t))
            continue;
        bytes += (double)zero_weight_bytes(zero, t);
        n++;
        if (!zero_blocks(zero))
            emit_collective(emit, STREAM_COMM, PLAN_NO_OP,
                arena_printf(emit->arena, "%s/all_gather", emit->model->tensors[t].name),
                COLL_ALL_GATHER, (double)zero_weight_bytes(zero, t), zero->group);
    }
    if (!zero_blocks(zero) || n == 0)
        return;
    plan_host_wait(builder, "persistent_parameters/copy",
        emit_collective(emit, STREAM_COMM, PLAN_NO_OP, "persistent_parameters/all_gather",
            COLL_ALL_GATHER, bytes, zero->group),
        zero_loop_s(zero, n, n));
}
