#include "plan/plan.h"

#include "base/digest.h"

#include <stdio.h>
#include <string.h>

static int limit_of(const struct plan *plan, int kind)
{
    switch ((enum op_kind)kind) {
    case OP_KERNEL:
        return plan->kernels.n;
    case OP_COLLECTIVE:
        return plan->collectives.n;
    case OP_KEEP:
    case OP_ALLOC:
    case OP_FREE:
        return plan->buffers.n;
    case OP_HOST:
    case OP_HOST_WAIT:
        break;
    }
    return 0;
}

/* A wait that points forward within the step could never be satisfied: the plan would not be acyclic. */
static bool waits_hold(const struct plan *plan, int i, char *why, size_t n)
{
    const struct plan_op *op = &plan->ops.at[i];
    for (int w = op->first_wait; w < op->first_wait + op->n_waits; w++) {
        int32_t waited = plan->waits.at[w], previous = waited & PLAN_PREVIOUS_STEP;
        waited &= ~PLAN_PREVIOUS_STEP;
        if (waited < 0 || waited >= plan->ops.n || (!previous && waited >= i)) {
            snprintf(why, n, "op %d (%s) waits for op %d, which does not come before it", i, op->name, waited);
            return false;
        }
        if (plan->ops.at[waited].position < 0) {
            snprintf(why, n, "op %d (%s) waits for op %d (%s), which runs on no stream", i, op->name, waited,
                plan->ops.at[waited].name);
            return false;
        }
    }
    return true;
}

enum buffer_state { BUFFER_UNUSED, BUFFER_LIVE, BUFFER_FREED };

static bool buffers_hold(const struct plan *plan, unsigned char *state, char *why, size_t n)
{
    for (int i = 0; i < plan->setup.n; i++)
        state[plan->setup.at[i]] = BUFFER_FREED; /* kept: must be neither allocated nor freed in the step */
    for (int i = 0; i < plan->ops.n; i++) {
        const struct plan_op *op = &plan->ops.at[i];
        if (!plan_op_is_memory(op))
            continue;
        unsigned char expected = op->kind == OP_FREE ? BUFFER_LIVE : BUFFER_UNUSED;
        if (state[op->index] != expected) {
            snprintf(why, n, "op %d %s buffer %s, which is %s", i, op->kind == OP_FREE ? "frees" : "allocates",
                op->name,
                state[op->index] == BUFFER_LIVE    ? "live"
                : state[op->index] == BUFFER_FREED ? "already freed"
                                                   : "not allocated");
            return false;
        }
        state[op->index] = op->kind == OP_ALLOC ? BUFFER_LIVE : BUFFER_FREED; /* kept: as those of setup */
    }
    for (int b = 0; b < plan->buffers.n; b++)
        if (state[b] == BUFFER_LIVE) {
            snprintf(why, n, "buffer %s (%lld bytes) is never freed", plan->buffers.at[b].name,
                (long long)plan->buffers.at[b].bytes);
            return false;
        }
    return true;
}

/* exec follows one collective of a group at a time, as NCCL runs those of a communicator: they have to be in one order.
 */
static bool communicators_hold(const struct plan *plan, const struct plan_op **first, char *why, size_t n)
{
    for (int i = 0; i < plan->ops.n; i++) {
        const struct plan_op *op = &plan->ops.at[i];
        if (op->kind != OP_COLLECTIVE)
            continue;
        int group = plan->collectives.at[op->index].group;
        if (!first[group])
            first[group] = op;
        if (first[group]->stream != op->stream) {
            snprintf(why, n, "group %s has collectives on two streams: %s on '%s', %s on '%s'",
                plan->groups.at[group].name, first[group]->name, plan_stream_names[first[group]->stream], op->name,
                plan_stream_names[op->stream]);
            return false;
        }
    }
    return true;
}

bool plan_check(const struct plan *plan, char *why, size_t n)
{
    for (int g = 0; g < plan->groups.n; g++) {
        const struct plan_group *group = &plan->groups.at[g];
        if (group->size < 1 || group->stride < 1 || plan->ranks % (group->size * group->stride) != 0) {
            snprintf(why, n, "group %s: %d ranks with stride %d do not divide %d ranks", group->name, group->size,
                group->stride, plan->ranks);
            return false;
        }
    }
    for (int i = 0; i < plan->ops.n; i++) {
        const struct plan_op *op = &plan->ops.at[i];
        int limit = limit_of(plan, op->kind);
        if (op->stream >= STREAM_COUNT || (limit > 0 && (op->index < 0 || op->index >= limit))) {
            snprintf(why, n, "op %d (%s) has index %d of %d, stream %d", i, op->name, op->index, limit, op->stream);
            return false;
        }
        if (!waits_hold(plan, i, why, n))
            return false;
    }
    for (int c = 0; c < plan->collectives.n; c++)
        if (plan->collectives.at[c].group < 0 || plan->collectives.at[c].group >= plan->groups.n) {
            snprintf(why, n, "collective %d has group %d of %d", c, plan->collectives.at[c].group, plan->groups.n);
            return false;
        }
    unsigned char *state = xcalloc((size_t)plan->buffers.n, 1);
    const struct plan_op **first = xcalloc((size_t)plan->groups.n, sizeof *first);
    bool holds = communicators_hold(plan, first, why, n) && buffers_hold(plan, state, why, n);
    free(first);
    free(state);
    return holds;
}

static uint64_t digest_double(uint64_t digest, double value)
{
    uint64_t word;
    memcpy(&word, &value, sizeof word);
    return digest_word(digest, word);
}

uint64_t plan_digest(const struct plan *plan)
{
    uint64_t digest = digest_word(DIGEST_INIT, (uint64_t)plan->ranks);
    for (int i = 0; i < plan->ops.n; i++) {
        const struct plan_op *op = &plan->ops.at[i];
        digest = digest_word(digest, ((uint64_t)op->kind << 32) | ((uint64_t)op->stream << 16) | op->phase);
        digest = digest_double(digest_word(digest, (uint64_t)(uint32_t)op->index), (double)op->host_s);
        for (int w = op->first_wait; w < op->first_wait + op->n_waits; w++)
            digest = digest_word(digest, (uint64_t)(uint32_t)plan->waits.at[w]);
    }
    for (int i = 0; i < plan->kernels.n; i++) {
        const struct kernel_work *work = &plan->kernels.at[i];
        digest = digest_double(digest_double(digest, work->flop), work->read_bytes + work->write_bytes);
    }
    for (int i = 0; i < plan->collectives.n; i++)
        digest = digest_double(digest_word(digest, plan->collectives.at[i].kind), plan->collectives.at[i].bytes);
    for (int i = 0; i < plan->buffers.n; i++)
        digest = digest_word(digest, (uint64_t)plan->buffers.at[i].bytes);
    return digest;
}
