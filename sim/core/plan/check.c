/* The laws of a plan, and its digest.
 *
 * Within a program they are checked in one pass over ops: indices, waits that point to earlier
 * device ops, buffers that are allocated and freed once, one queue a communicator. A buffer is a
 * state machine of unused, live and freed; those of the setup start as freed, so that any op on
 * them is a breach. Between programs meet.c finds what meets and whether all go on.
 *
 * The digest is over what decides times: kinds, queues, host times, waits, kernels by FLOP and
 * bytes, collectives, messages, sizes of buffers. Names are not in it. */
#include "plan/check.h"

#include "base/digest.h"
#include "plan/meet.h"

#include <stdio.h>
#include <string.h>

static int limit_of(const struct plan *plan, int buffers, int kind)
{
    switch ((enum op_kind)kind) {
    case OP_KERNEL:
        return plan->kernels.n;
    case OP_COLLECTIVE:
        return plan->collectives.n;
    case OP_SEND:
    case OP_RECV:
        return plan->messages.n;
    case OP_KEEP:
    case OP_ALLOC:
    case OP_FREE:
        return buffers;
    case OP_HOST:
    case OP_HOST_WAIT:
        break;
    }
    return 0;
}

/* A wait that points forward within the step could never be satisfied: the plan would not be
 * acyclic. */
static bool waits_hold(const struct plan_program *program, int i, char *why, size_t n)
{
    const struct plan_op *op = &program->ops.at[i];
    for (int w = op->first_wait; w < op->first_wait + op->n_waits; w++) {
        int32_t waited = program->waits.at[w], previous = waited & PLAN_PREVIOUS_STEP;
        waited &= ~PLAN_PREVIOUS_STEP;
        if (waited < 0 || waited >= program->ops.n || (!previous && waited >= i)) {
            snprintf(why, n, "op %d (%s) waits for op %d, which does not come before it", i,
                op->name, waited);
            return false;
        }
        if (program->ops.at[waited].position < 0) {
            snprintf(why, n, "op %d (%s) waits for op %d (%s), which runs on no stream", i,
                op->name, waited, program->ops.at[waited].name);
            return false;
        }
    }
    return true;
}

enum buffer_state { BUFFER_UNUSED, BUFFER_LIVE, BUFFER_FREED };

static bool buffers_hold(
    const struct plan_program *program, unsigned char *state, char *why, size_t n)
{
    for (int i = 0; i < program->setup.n; i++)
        state[program->setup.at[i]] =
            BUFFER_FREED; /* kept: must be neither allocated nor freed in the step */
    for (int i = 0; i < program->ops.n; i++) {
        const struct plan_op *op = &program->ops.at[i];
        if (!plan_op_is_memory(op))
            continue;
        unsigned char expected = op->kind == OP_FREE ? BUFFER_LIVE : BUFFER_UNUSED;
        if (state[op->index] != expected) {
            snprintf(why, n, "op %d %s buffer %s, which is %s", i,
                op->kind == OP_FREE ? "frees" : "allocates", op->name,
                state[op->index] == BUFFER_LIVE    ? "live"
                : state[op->index] == BUFFER_FREED ? "already freed"
                                                   : "not allocated");
            return false;
        }
        state[op->index] =
            op->kind == OP_ALLOC ? BUFFER_LIVE : BUFFER_FREED; /* kept: as those of setup */
    }
    for (int b = 0; b < program->buffers.n; b++)
        if (state[b] == BUFFER_LIVE) {
            snprintf(why, n, "buffer %s (%lld bytes) is never freed", program->buffers.at[b].name,
                (long long)program->buffers.at[b].bytes);
            return false;
        }
    return true;
}

/* exec follows one collective of a group at a time, as NCCL runs those of a communicator: they have
 * to be in one order. So have the sends of a channel, and its receives. */
static bool communicators_hold(const struct plan *plan, const struct plan_op *ops, int n_ops,
    const struct plan_op **first, char *why, size_t n)
{
    for (int i = 0; i < n_ops; i++) {
        const struct plan_op *op = &ops[i];
        if (!plan_op_is_comm(op))
            continue;
        bool collective = op->kind == OP_COLLECTIVE;
        int place = plan_part_of(plan, op);
        if (!first[place])
            first[place] = op;
        if (first[place]->stream != op->stream) {
            snprintf(why, n, "%s %s has %s on two streams: %s on '%s', %s on '%s'",
                collective ? "group" : "a channel on",
                collective
                    ? plan->groups.at[place].name
                    : mesh_axis_names[plan->channels.at[plan->messages.at[op->index].channel].axis],
                collective            ? "collectives"
                : op->kind == OP_RECV ? "receives"
                                      : "sends",
                first[place]->name, plan->queues.at[first[place]->stream].name, op->name,
                plan->queues.at[op->stream].name);
            return false;
        }
    }
    return true;
}

static bool indices_hold(
    const struct plan *plan, const struct plan_op *ops, int n_ops, int buffers, char *why, size_t n)
{
    for (int i = 0; i < n_ops; i++) {
        const struct plan_op *op = &ops[i];
        int limit = limit_of(plan, buffers, op->kind);
        if (op->stream >= plan->queues.n || (limit > 0 && (op->index < 0 || op->index >= limit))) {
            snprintf(why, n, "op %d (%s) has index %d of %d, stream %d", i, op->name, op->index,
                limit, op->stream);
            return false;
        }
    }
    return true;
}

/* By place, see plan_part_of(): an op of it. */
static const struct plan_op **no_ops(const struct plan *plan)
{
    return xcalloc(
        (size_t)plan->groups.n + 2 * (size_t)plan->channels.n, sizeof(const struct plan_op *));
}

bool plan_program_holds(
    const struct plan *plan, const struct plan_program *program, char *why, size_t n)
{
    const struct plan_op *ops = program->ops.at;
    int n_ops = program->ops.n;
    bool holds = indices_hold(plan, ops, n_ops, program->buffers.n, why, n);
    for (int i = 0; i < n_ops && holds; i++)
        holds = waits_hold(program, i, why, n);
    if (!holds)
        return false;
    unsigned char *state = xcalloc((size_t)program->buffers.n, 1);
    const struct plan_op **first = no_ops(plan);
    holds =
        communicators_hold(plan, ops, n_ops, first, why, n) && buffers_hold(program, state, why, n);
    free(first);
    free(state);
    return holds;
}

bool plan_fold_holds(const struct plan *plan, const struct plan_fold *fold, char *why, size_t n)
{
    const struct plan_op **first = no_ops(plan);
    bool holds = true;
    for (int p = 0; p < fold->n_patterns && holds; p++) {
        const struct plan_pattern *at = fold->patterns[p];
        holds = indices_hold(plan, at->ops, at->n_ops, fold->n_buffers, why, n) &&
                communicators_hold(plan, at->ops, at->n_ops, first, why, n);
    }
    free(first);
    return holds;
}

static bool groups_hold(const struct plan *plan, char *why, size_t n)
{
    for (int g = 0; g < plan->groups.n; g++) {
        const struct mesh_group *ranks = &plan->groups.at[g].ranks;
        if (!mesh_group_is_valid(ranks, plan->mesh.ranks)) {
            snprintf(why, n, "group %s: %d ranks with stride %d do not divide %d ranks",
                plan->groups.at[g].name, ranks->size, ranks->stride, plan->mesh.ranks);
            return false;
        }
    }
    for (int c = 0; c < plan->collectives.n; c++)
        if (plan->collectives.at[c].group < 0 || plan->collectives.at[c].group >= plan->groups.n) {
            snprintf(why, n, "collective %d has group %d of %d", c, plan->collectives.at[c].group,
                plan->groups.n);
            return false;
        }
    return true;
}

/* A single program without messages meets itself op by op, and its waits point backwards: it always
 * goes on. */
static bool programs_meet(const struct plan *plan, char *why, size_t n)
{
    if (plan->n_programs == 1 && plan->messages.n == 0)
        return true;
    struct plan_meets meets;
    bool holds = plan_meets_find(&meets, plan, why, n) && plan_meets_go_on(&meets, plan, why, n);
    plan_meets_release(&meets);
    return holds;
}

bool plan_check(const struct plan *plan, char *why, size_t n)
{
    if (!groups_hold(plan, why, n))
        return false;
    for (int p = 0; p < plan->n_programs; p++)
        if (!plan->programs[p].fold && !plan_program_holds(plan, &plan->programs[p], why, n))
            return false;
    return programs_meet(plan, why, n);
}

static uint64_t digest_double(uint64_t digest, double value)
{
    uint64_t word;
    memcpy(&word, &value, sizeof word);
    return digest_word(digest, word);
}

static uint64_t digest_ops(uint64_t digest, const struct plan_program *program)
{
    for (int i = 0; i < program->ops.n; i++) {
        const struct plan_op *op = &program->ops.at[i];
        digest = digest_word(
            digest, ((uint64_t)op->kind << 32) | ((uint64_t)op->stream << 16) | op->phase);
        digest =
            digest_double(digest_word(digest, (uint64_t)(uint32_t)op->index), (double)op->host_s);
        for (int w = op->first_wait; w < op->first_wait + op->n_waits; w++)
            digest = digest_word(digest, (uint64_t)(uint32_t)program->waits.at[w]);
    }
    const struct documents *documents = &program->packing.documents;
    digest = documents->fixed_number > 0 ? digest_double(digest, documents->fixed_number) : digest;
    for (int i = 0; i < documents->n; i++)
        digest = digest_double(digest_word(digest, (uint64_t)documents->lengths[i].tokens),
            documents->lengths[i].up_to);
    return digest;
}

uint64_t plan_digest(const struct plan *plan)
{
    uint64_t digest = digest_word(DIGEST_INIT, (uint64_t)plan->mesh.ranks);
    for (int p = 0; p < plan->n_programs; p++)
        digest = digest_ops(digest, &plan->programs[p]);
    for (int i = 0; i < plan->kernels.n; i++) {
        const struct kernel_work *work = &plan->kernels.at[i];
        digest =
            digest_double(digest_double(digest, work->flop), work->read_bytes + work->write_bytes);
    }
    for (int i = 0; i < plan->collectives.n; i++) {
        const struct plan_collective *at = &plan->collectives.at[i];
        digest = digest_double(digest_word(digest, at->kind), at->bytes);
        if (at->routing)
            digest = digest_double(
                digest_word(digest, (uint64_t)at->routing->per_token), at->routing->sms);
    }
    for (int i = 0; i < plan->messages.n; i++)
        digest = digest_double(digest_word(digest, (uint64_t)plan->messages.at[i].channel),
            plan->messages.at[i].bytes);
    for (int p = 0; p < plan->n_programs; p++)
        for (int i = 0; i < plan->programs[p].buffers.n; i++)
            digest = digest_word(digest, (uint64_t)plan->programs[p].buffers.at[i].bytes);
    return digest;
}
