#include "plan/plan.h"

#include <string.h>

const char *const plan_stream_names[] = {"compute", "comm", "replicate", "unshard", "post", "loader", NULL};
const char *const hbm_category_names[] = {
    "parameters", "gradients", "optimizer", "activations", "gathered", "buffers", "context", "nccl", NULL};
const char *const plan_phase_names[] = {"setup", "forward", "backward", "recompute", "optimizer", NULL};

void plan_begin(struct plan_builder *builder, struct plan *plan, int ranks)
{
    BUG_IF(ranks < 1, "plan for %d ranks", ranks);
    *plan = (struct plan){.ranks = ranks};
    *builder = (struct plan_builder){.plan = plan, .phase = PHASE_SETUP};
    for (int s = 0; s < STREAM_COUNT; s++)
        builder->last_op[s] = PLAN_NO_OP;
}

int plan_group(struct plan_builder *builder, const char *name, int size, int stride)
{
    struct plan *plan = builder->plan;
    for (int i = 0; i < plan->groups.n; i++)
        if (plan->groups.at[i].size == size && plan->groups.at[i].stride == stride)
            return i;
    vec_push(&plan->groups, (struct plan_group){name, size, stride});
    return plan->groups.n - 1;
}

void plan_stream_wait(struct plan_builder *builder, enum plan_stream stream, plan_wait op)
{
    if (op != PLAN_NO_OP)
        vec_push(&builder->pending[stream], op);
}

static int push_op(struct plan_builder *builder, struct plan_op op, const char *name)
{
    op.name = name;
    op.phase = (uint8_t)builder->phase;
    op.first_wait = builder->plan->waits.n - op.n_waits;
    op.position = -1;
    vec_push(&builder->plan->ops, op);
    int number = builder->plan->ops.n - 1;
    if (op.kind == OP_KERNEL || op.kind == OP_COLLECTIVE)
        builder->last_op[op.stream] = number;
    return number;
}

/* A device op takes the waits that were put on its stream since the last one. */
static uint16_t take_waits(struct plan_builder *builder, enum plan_stream stream)
{
    int n = builder->pending[stream].n;
    BUG_IF(n > UINT16_MAX, "%d waits on one op", n);
    for (int i = 0; i < n; i++)
        vec_push(&builder->plan->waits, builder->pending[stream].at[i]);
    builder->pending[stream].n = 0;
    return (uint16_t)n;
}

struct sought_kernel {
    const struct plan *plan;
    const struct kernel_work *work;
};

static bool same_kernel(const void *self, int32_t item)
{
    const struct sought_kernel *sought = self;
    return kernel_same(sought->work, &sought->plan->kernels.at[item]);
}

/* The blocks of a model and the micro-steps are alike: of a million kernels a few hundred are not the same. */
static int32_t number_of(struct plan_builder *builder, const struct kernel_work *work)
{
    struct plan *plan = builder->plan;
    uint64_t hash = kernel_digest(work);
    int32_t known = index_find(&builder->kernels, hash, same_kernel, &(struct sought_kernel){plan, work});
    if (known >= 0)
        return known;
    vec_push(&plan->kernels, *work);
    index_add(&builder->kernels, hash, plan->kernels.n - 1);
    return plan->kernels.n - 1;
}

int plan_kernel(
    struct plan_builder *builder, enum plan_stream stream, const char *name, struct kernel_work work, double host_s)
{
    struct plan_op op = {
        .kind = OP_KERNEL, .stream = (uint8_t)stream, .index = number_of(builder, &work), .host_s = (float)host_s};
    op.n_waits = take_waits(builder, stream);
    return push_op(builder, op, name);
}

int plan_collective(struct plan_builder *builder, enum plan_stream stream, const char *name, enum coll_kind kind,
    double bytes, int group, double host_s)
{
    struct plan *plan = builder->plan;
    BUG_IF(!plan_stream_is_comm((int)stream), "a collective on the stream '%s'", plan_stream_names[stream]);
    if (plan->groups.at[group].size == 1)
        return PLAN_NO_OP;
    vec_push(&plan->collectives, (struct plan_collective){kind, bytes, group});
    struct plan_op op = {
        .kind = OP_COLLECTIVE, .stream = (uint8_t)stream, .index = plan->collectives.n - 1, .host_s = (float)host_s};
    op.n_waits = take_waits(builder, stream);
    return push_op(builder, op, name);
}

int plan_host(struct plan_builder *builder, const char *name, double host_s)
{
    return push_op(builder, (struct plan_op){.kind = OP_HOST, .index = -1, .host_s = (float)host_s}, name);
}

int plan_host_wait(struct plan_builder *builder, const char *name, plan_wait waited, double host_s)
{
    if (waited == PLAN_NO_OP)
        return PLAN_NO_OP;
    vec_push(&builder->plan->waits, waited);
    return push_op(
        builder, (struct plan_op){.kind = OP_HOST_WAIT, .n_waits = 1, .index = -1, .host_s = (float)host_s}, name);
}

static int push_buffer(
    struct plan_builder *builder, enum plan_stream stream, const char *name, int64_t bytes, enum hbm_category category)
{
    vec_push(&builder->plan->buffers, (struct plan_buffer){bytes, (uint8_t)category, (uint8_t)stream, name});
    return builder->plan->buffers.n - 1;
}

void plan_keep(struct plan_builder *builder, const char *name, int64_t bytes, enum hbm_category category)
{
    if (bytes <= 0)
        return;
    int buffer = push_buffer(builder, STREAM_COMPUTE, name, bytes, category);
    vec_push(&builder->plan->setup, buffer);
}

int plan_alloc(
    struct plan_builder *builder, enum plan_stream stream, const char *name, int64_t bytes, enum hbm_category category)
{
    if (bytes <= 0)
        return PLAN_NO_OP;
    int buffer = push_buffer(builder, stream, name, bytes, category);
    push_op(builder, (struct plan_op){.kind = OP_ALLOC, .stream = (uint8_t)stream, .index = buffer}, name);
    return buffer;
}

void plan_keep_from_here(struct plan_builder *builder, const char *name, int64_t bytes, enum hbm_category category)
{
    if (bytes <= 0)
        return;
    int buffer = push_buffer(builder, STREAM_COMPUTE, name, bytes, category);
    push_op(builder, (struct plan_op){.kind = OP_KEEP, .stream = STREAM_COMPUTE, .index = buffer}, name);
}

void plan_free(struct plan_builder *builder, int buffer, plan_wait last_use)
{
    if (buffer == PLAN_NO_OP)
        return;
    struct plan_op op = {.kind = OP_FREE, .stream = builder->plan->buffers.at[buffer].stream, .index = buffer};
    if (last_use != PLAN_NO_OP) {
        vec_push(&builder->plan->waits, last_use);
        op.n_waits = 1;
    }
    push_op(builder, op, builder->plan->buffers.at[buffer].name);
}

int plan_last_op(const struct plan_builder *builder, enum plan_stream stream)
{
    return builder->last_op[stream];
}

void plan_end(struct plan_builder *builder)
{
    struct plan *plan = builder->plan;
    for (int i = 0; i < plan->ops.n; i++) {
        struct plan_op *op = &plan->ops.at[i];
        if (op->kind != OP_KERNEL && op->kind != OP_COLLECTIVE)
            continue;
        op->position = plan->stream_ops[op->stream].n;
        vec_push(&plan->stream_ops[op->stream], i);
    }
    for (int s = 0; s < STREAM_COUNT; s++)
        vec_free(&builder->pending[s]);
    index_free(&builder->kernels);
}

void plan_release(struct plan *plan)
{
    vec_free(&plan->ops);
    vec_free(&plan->waits);
    vec_free(&plan->kernels);
    vec_free(&plan->collectives);
    vec_free(&plan->groups);
    vec_free(&plan->buffers);
    vec_free(&plan->setup);
    for (int s = 0; s < STREAM_COUNT; s++)
        vec_free(&plan->stream_ops[s]);
}
