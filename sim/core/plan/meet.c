#include "plan/meet.h"

#include <stdlib.h>

/* ---- who meets whom ---- */

/* Ops of each program that take part in one thing, in their order: the collectives of a group, the sends or the
 * receives of a channel. */
struct parts {
    const struct plan *plan;
    int kinds;         /* groups, then sends and receives of each channel */
    plan_numbers *ops; /* by program and kind */
};

int plan_part_of(const struct plan *plan, const struct plan_op *op)
{
    if (op->kind == OP_COLLECTIVE)
        return plan->collectives.at[op->index].group;
    return plan->groups.n + 2 * plan->messages.at[op->index].channel + (op->kind == OP_RECV);
}

static struct parts find_parts(const struct plan *plan)
{
    struct parts parts = {.plan = plan, .kinds = plan->groups.n + 2 * plan->channels.n};
    parts.ops = xcalloc((size_t)plan->n_programs * (size_t)parts.kinds, sizeof *parts.ops);
    for (int p = 0; p < plan->n_programs; p++)
        for (int i = 0; i < plan->programs[p].ops.n; i++) {
            const struct plan_op *op = &plan->programs[p].ops.at[i];
            if (plan_op_is_comm(op))
                vec_push(&parts.ops[p * parts.kinds + plan_part_of(plan, op)], i);
        }
    return parts;
}

static void release_parts(struct parts *parts)
{
    for (int i = 0; i < parts->plan->n_programs * parts->kinds; i++)
        vec_free(&parts->ops[i]);
    free(parts->ops);
}

static const struct plan_op *op_of(const struct plan *plan, int program, int op)
{
    return &plan->programs[program].ops.at[op];
}

static bool counterparts(const struct plan *plan, const struct plan_op *a, const struct plan_op *b)
{
    if (a->kind != OP_COLLECTIVE)
        return plan->messages.at[a->index].bytes == plan->messages.at[b->index].bytes;
    const struct plan_collective *x = &plan->collectives.at[a->index], *y = &plan->collectives.at[b->index];
    return x->kind == y->kind && x->bytes == y->bytes;
}

static double bytes_of(const struct plan *plan, const struct plan_op *op)
{
    return op->kind == OP_COLLECTIVE ? plan->collectives.at[op->index].bytes : plan->messages.at[op->index].bytes;
}

static const char *kind_of(const struct plan *plan, const struct plan_op *op)
{
    return op->kind == OP_SEND   ? "send"
           : op->kind == OP_RECV ? "recv"
                                 : coll_kind_names[plan->collectives.at[op->index].kind];
}

/* The k-th op of part a of program p meets the k-th of part b of program q. */
static bool join(struct plan_meets *meets, const struct parts *parts, int p, int a, int q, int b, char *why, size_t n)
{
    const struct plan *plan = parts->plan;
    const plan_numbers *mine = &parts->ops[p * parts->kinds + a], *theirs = &parts->ops[q * parts->kinds + b];
    for (int k = 0; k < mine->n || k < theirs->n; k++) {
        if (k >= mine->n || k >= theirs->n) {
            int has = k < mine->n ? p : q, lacks = k < mine->n ? q : p, op = k < mine->n ? mine->at[k] : theirs->at[k];
            snprintf(why, n, "op %d (%s) of program %d is %s number %d there, and program %d has no counterpart", op,
                op_of(plan, has, op)->name, has, kind_of(plan, op_of(plan, has, op)), k + 1, lacks);
            return false;
        }
        const struct plan_op *x = op_of(plan, p, mine->at[k]), *y = op_of(plan, q, theirs->at[k]);
        if (!counterparts(plan, x, y)) {
            snprintf(why, n, "op %d (%s) of program %d, %s of %.0f bytes, meets op %d (%s) of program %d, %s of %.0f",
                mine->at[k], x->name, p, kind_of(plan, x), bytes_of(plan, x), theirs->at[k], y->name, q,
                kind_of(plan, y), bytes_of(plan, y));
            return false;
        }
        int from = meets->first[p] + mine->at[k], to = meets->first[q] + theirs->at[k];
        if (from == to)
            continue;
        int leader = from < to ? from : to, other = from < to ? to : from;
        meets->leader[other] = leader;
        meets->n[leader]++;
    }
    return true;
}

static bool join_group(struct plan_meets *meets, const struct parts *parts, int p, int g, char *why, size_t n)
{
    const struct plan *plan = parts->plan;
    const struct mesh_group *ranks = &plan->groups.at[g].ranks;
    const plan_numbers *ops = &parts->ops[p * parts->kinds + g];
    int instance = mesh_group_instance(ranks, plan_first_rank(plan, p));
    if (instance < 0 && ops->n == 0)
        return true;
    if (instance < 0) {
        snprintf(why, n, "op %d (%s) of program %d is a collective of the group %s, which has no rank of it",
            ops->at[0], op_of(plan, p, ops->at[0])->name, p, plan->groups.at[g].name);
        return false;
    }
    bool all;
    int first = plan_program_of(plan, mesh_group_first(ranks, instance));
    if (plan->second_from > 0 && plan_group_meets_kinds(plan, g, &all))
        first = 0; /* also where the first rank of this program is in a group without the other kind */
    return first == p || join(meets, parts, first, g, p, g, why, n);
}

static bool join_all(struct plan_meets *meets, const struct parts *parts, char *why, size_t n)
{
    const struct plan *plan = parts->plan;
    for (int p = 0; p < plan->n_programs; p++) {
        for (int g = 0; g < plan->groups.n; g++)
            if (!join_group(meets, parts, p, g, why, n))
                return false;
        for (int c = 0; c < plan->channels.n; c++) {
            const struct plan_channel *channel = &plan->channels.at[c];
            int to = mesh_neighbour(&plan->mesh, plan_first_rank(plan, p), channel->axis, channel->delta);
            int sends = plan->groups.n + 2 * c;
            if (!join(meets, parts, p, sends, plan_program_of(plan, to), sends + 1, why, n))
                return false;
        }
    }
    return true;
}

bool plan_meets_find(struct plan_meets *out, const struct plan *plan, char *why, size_t n)
{
    out->first = xcalloc((size_t)plan->n_programs + 1, sizeof *out->first);
    for (int p = 0; p < plan->n_programs; p++)
        out->first[p + 1] = out->first[p] + plan->programs[p].ops.n;
    int total = out->first[plan->n_programs];
    out->leader = xcalloc((size_t)total, sizeof *out->leader);
    out->n = xcalloc((size_t)total, sizeof *out->n);
    for (int i = 0; i < total; i++) {
        out->leader[i] = i;
        out->n[i] = 1;
    }
    struct parts parts = find_parts(plan);
    bool all = join_all(out, &parts, why, n);
    release_parts(&parts);
    return all;
}

void plan_meets_release(struct plan_meets *meets)
{
    free(meets->first);
    free(meets->leader);
    free(meets->n);
}

/* ---- whether all go on ---- */

struct walk {
    const struct plan_meets *meets;
    const struct plan *plan;
    int *host;    /* by program: the op that its host is before */
    int *head;    /* by program and queue: ops done */
    int *arrived; /* by leader: ops that wait for the others */
    bool *there;  /* by op: it is one of those */
};

static int *head_of(const struct walk *walk, int program, int queue)
{
    return &walk->head[program * walk->plan->queues.n + queue];
}

static bool is_done(const struct walk *walk, int program, plan_wait wait)
{
    const struct plan_op *op = op_of(walk->plan, program, wait & ~PLAN_PREVIOUS_STEP);
    return (wait & PLAN_PREVIOUS_STEP) || *head_of(walk, program, op->stream) > op->position;
}

static bool waits_are_done(const struct walk *walk, int program, const struct plan_op *op)
{
    for (int w = op->first_wait; w < op->first_wait + op->n_waits; w++)
        if (!is_done(walk, program, walk->plan->programs[program].waits.at[w]))
            return false;
    return true;
}

static bool host_goes_on(const struct walk *walk, int program)
{
    const struct plan_program *all = &walk->plan->programs[program];
    int before = walk->host[program];
    while (walk->host[program] < all->ops.n) {
        const struct plan_op *op = &all->ops.at[walk->host[program]];
        if (op->kind == OP_HOST_WAIT && !waits_are_done(walk, program, op))
            break;
        walk->host[program]++;
    }
    return walk->host[program] > before;
}

static bool queue_goes_on(const struct walk *walk, int program, int queue)
{
    const plan_numbers *ops = &walk->plan->programs[program].queue_ops.at[queue];
    int *head = head_of(walk, program, queue);
    bool moved = false;
    for (; *head < ops->n; (*head)++, moved = true) {
        int number = ops->at[*head], at = walk->meets->first[program] + number, leader = walk->meets->leader[at];
        const struct plan_op *op = op_of(walk->plan, program, number);
        if (number >= walk->host[program] || !waits_are_done(walk, program, op))
            break;
        moved = moved || !walk->there[at];
        walk->arrived[leader] += !walk->there[at];
        walk->there[at] = true;
        if (walk->arrived[leader] < walk->meets->n[leader])
            break;
    }
    return moved;
}

static bool program_goes_on(const struct walk *walk, int program)
{
    bool moved = host_goes_on(walk, program);
    for (int q = 0; q < walk->plan->queues.n; q++)
        moved = queue_goes_on(walk, program, q) || moved;
    return moved;
}

/* The first op of each program that others would have to come to: those that wait for each other are among them. */
static bool all_done(const struct walk *walk, char *why, size_t n)
{
    int length = 0;
    for (int p = 0; p < walk->plan->n_programs; p++)
        for (int q = 0; q < walk->plan->queues.n; q++) {
            const plan_numbers *ops = &walk->plan->programs[p].queue_ops.at[q];
            int at = *head_of(walk, p, q);
            if (at == ops->n || (size_t)length >= n)
                continue;
            if (walk->there[walk->meets->first[p] + ops->at[at]])
                length += snprintf(why + length, n - (size_t)length, "%s op %d (%s) of program %d",
                    length ? "," : "deadlock: these wait for each other:", ops->at[at],
                    op_of(walk->plan, p, ops->at[at])->name, p);
        }
    return length == 0;
}

bool plan_meets_go_on(const struct plan_meets *meets, const struct plan *plan, char *why, size_t n)
{
    size_t ops = (size_t)meets->first[plan->n_programs], programs = (size_t)plan->n_programs;
    struct walk walk = {.meets = meets,
        .plan = plan,
        .host = xcalloc(programs, sizeof *walk.host),
        .head = xcalloc(programs * (size_t)plan->queues.n, sizeof *walk.head),
        .arrived = xcalloc(ops, sizeof *walk.arrived),
        .there = xcalloc(ops, sizeof *walk.there)};
    for (bool moved = true; moved;) {
        moved = false;
        for (int p = 0; p < plan->n_programs; p++)
            moved = program_goes_on(&walk, p) || moved;
    }
    bool done = all_done(&walk, why, n);
    free(walk.host);
    free(walk.head);
    free(walk.arrived);
    free(walk.there);
    return done;
}
