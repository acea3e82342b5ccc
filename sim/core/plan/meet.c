/* Which ops of different programs meet, and whether a step of all programs comes to its end.
 *
 * Ops that take part in one thing (the collectives of a group, the sends or the receives of a
 * channel) form a list per program, in order; the k-th of two lists meet. One rank stands for each
 * program, its lowest. Meetings are kept as a leader per op, the lowest number among those that
 * meet, with a count.
 *
 * plan_meets_go_on() then runs all programs without times. A host goes on until it blocks, a queue
 * until its head is not issued, waits, or meets ops that have not come. No program has a choice, so
 * any order of trying gives the same end state, and what has not gone on then never will. Each
 * round is linear in programs and queues; the whole is linear in ops if something moves in each
 * round.
 *
 * Everything goes through walkers and the *_of() functions, as a program is either plain arrays or
 * folded. */
#include "plan/meet.h"

#include "plan/fold.h"

#include <stdlib.h>

/* ---- who meets whom ---- */

/* Ops of each program that take part in one thing, in their order: the collectives of a group, the
 * sends or the receives of a channel. */
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

static int queue_length(const struct plan *plan, int program, int queue)
{
    const struct plan_fold *fold = plan->programs[program].fold;
    if (!fold)
        return plan->programs[program].queue_ops.at[queue].n;
    return plan_fold_queue_ops(fold, queue);
}

/* The ops of a queue one after the other. */
struct walker {
    int program, queue, at; /* ops before it */
    int length;
    struct plan_cursor cursor;
};

static struct walker walk_from_first(const struct plan *plan, int program, int queue)
{
    struct walker walker = {
        .program = program, .queue = queue, .length = queue_length(plan, program, queue)};
    if (plan->programs[program].fold && walker.length > 0)
        walker.cursor = plan_cursor_first(plan->programs[program].fold, queue);
    return walker;
}

static int walker_op(const struct plan *plan, const struct walker *walker)
{
    const struct plan_program *program = &plan->programs[walker->program];
    return program->fold ? plan_cursor_number(&walker->cursor)
                         : program->queue_ops.at[walker->queue].at[walker->at];
}

static void walk_on(const struct plan *plan, struct walker *walker)
{
    const struct plan_fold *fold = plan->programs[walker->program].fold;
    if (++walker->at < walker->length && fold)
        plan_cursor_next(&walker->cursor, walker->queue);
}

static const struct plan_op *meet_op_of(const struct plan *plan, int program, int op)
{
    const struct plan_program *of = &plan->programs[program];
    return of->fold ? plan_fold_op(of->fold, op) : &of->ops.at[op];
}

static plan_wait wait_of(const struct plan *plan, int program, int op, int w)
{
    const struct plan_program *of = &plan->programs[program];
    return of->fold ? plan_fold_wait(of->fold, op, w) : of->waits.at[of->ops.at[op].first_wait + w];
}

static int position_of(const struct plan *plan, int program, int op)
{
    const struct plan_program *of = &plan->programs[program];
    return of->fold ? plan_fold_position(of->fold, op) : of->ops.at[op].position;
}

/* (Ops of one part are on one queue.) */
static struct parts meet_find_parts(const struct plan *plan)
{
    struct parts parts = {.plan = plan, .kinds = plan->groups.n + 2 * plan->channels.n};
    parts.ops = xcalloc((size_t)plan->n_programs * (size_t)parts.kinds, sizeof *parts.ops);
    for (int p = 0; p < plan->n_programs; p++)
        for (int q = 0; q < plan->queues.n; q++) {
            struct walker at = walk_from_first(plan, p, q);
            for (; plan_queue_is_comm(plan, q) && at.at < at.length; walk_on(plan, &at)) {
                int number = walker_op(plan, &at);
                const struct plan_op *op = meet_op_of(plan, p, number);
                if (plan_op_is_comm(op))
                    vec_push(&parts.ops[p * parts.kinds + plan_part_of(plan, op)], number);
            }
        }
    return parts;
}

static void release_parts(struct parts *parts)
{
    for (int i = 0; i < parts->plan->n_programs * parts->kinds; i++)
        vec_free(&parts->ops[i]);
    free(parts->ops);
}

static bool counterparts(const struct plan *plan, const struct plan_op *a, const struct plan_op *b)
{
    if (a->kind != OP_COLLECTIVE)
        return plan->messages.at[a->index].bytes == plan->messages.at[b->index].bytes;
    const struct plan_collective *x = &plan->collectives.at[a->index],
                                 *y = &plan->collectives.at[b->index];
    return x->kind == y->kind && x->bytes == y->bytes;
}

static double meet_bytes_of(const struct plan *plan, const struct plan_op *op)
{
    return op->kind == OP_COLLECTIVE ? plan->collectives.at[op->index].bytes
                                     : plan->messages.at[op->index].bytes;
}

static const char *meet_kind_of(const struct plan *plan, const struct plan_op *op)
{
    return op->kind == OP_SEND   ? "send"
           : op->kind == OP_RECV ? "recv"
                                 : coll_kind_names[plan->collectives.at[op->index].kind];
}

/* The k-th op of part a of program p meets the k-th of part b of program q. */
static bool meet_join(struct plan_meets *meets, const struct parts *parts, int p, int a, int q,
    int b, char *why, size_t n)
{
    const struct plan *plan = parts->plan;
    const plan_numbers *mine = &parts->ops[p * parts->kinds + a],
                       *theirs = &parts->ops[q * parts->kinds + b];
    for (int k = 0; k < mine->n || k < theirs->n; k++) {
        if (k >= mine->n || k >= theirs->n) {
            int has = k < mine->n ? p : q, lacks = k < mine->n ? q : p,
                op = k < mine->n ? mine->at[k] : theirs->at[k];
            snprintf(why, n,
                "op %d (%s) of program %d is %s number %d there, and program %d has no counterpart",
                op, meet_op_of(plan, has, op)->name, has,
                meet_kind_of(plan, meet_op_of(plan, has, op)), k + 1, lacks);
            return false;
        }
        const struct plan_op *x = meet_op_of(plan, p, mine->at[k]),
                             *y = meet_op_of(plan, q, theirs->at[k]);
        if (!counterparts(plan, x, y)) {
            snprintf(why, n,
                "op %d (%s) of program %d, %s of %.0f bytes, meets op %d (%s) of program %d, %s of "
                "%.0f",
                mine->at[k], x->name, p, meet_kind_of(plan, x), meet_bytes_of(plan, x),
                theirs->at[k], y->name, q, meet_kind_of(plan, y), meet_bytes_of(plan, y));
            return false;
        }
        int from = plan_meets_number(meets, plan, p, mine->at[k]),
            to = plan_meets_number(meets, plan, q, theirs->at[k]);
        if (from == to)
            continue;
        int leader = from < to ? from : to, other = from < to ? to : from;
        meets->leader[other] = leader;
        meets->n[leader]++;
    }
    return true;
}

/* The program of the group's first rank joins with each other program of the group; both see the
 * same leader then. */
static bool join_group(
    struct plan_meets *meets, const struct parts *parts, int p, int g, char *why, size_t n)
{
    const struct plan *plan = parts->plan;
    const struct mesh_group *ranks = &plan->groups.at[g].ranks;
    const plan_numbers *ops = &parts->ops[p * parts->kinds + g];
    int instance = mesh_group_instance(ranks, plan_first_rank(plan, p));
    if (instance < 0 && ops->n == 0)
        return true;
    if (instance < 0) {
        snprintf(why, n,
            "op %d (%s) of program %d is a collective of the group %s, which has no rank of it",
            ops->at[0], meet_op_of(plan, p, ops->at[0])->name, p, plan->groups.at[g].name);
        return false;
    }
    int first = plan_program_of(plan, mesh_group_first(ranks, instance));
    return first == p || meet_join(meets, parts, first, g, p, g, why, n);
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
            int to = mesh_neighbour(
                &plan->mesh, plan_first_rank(plan, p), channel->axis, channel->delta);
            int sends = plan->groups.n + 2 * c;
            if (!meet_join(meets, parts, p, sends, plan_program_of(plan, to), sends + 1, why, n))
                return false;
        }
    }
    return true;
}

int plan_meets_number(const struct plan_meets *meets, const struct plan *plan, int program, int op)
{
    int queue = meet_op_of(plan, program, op)->stream;
    if (!plan_queue_is_comm(plan, queue))
        return -1;
    return meets->first[program * plan->queues.n + queue] + position_of(plan, program, op);
}

bool plan_meets_find(struct plan_meets *out, const struct plan *plan, char *why, size_t n)
{
    int queues = plan->queues.n;
    *out = (struct plan_meets){
        .first = xcalloc((size_t)plan->n_programs * (size_t)queues, sizeof *out->first)};
    for (int i = 0; i < plan->n_programs * queues; i++) {
        out->first[i] = out->total;
        out->total +=
            plan_queue_is_comm(plan, i % queues) ? queue_length(plan, i / queues, i % queues) : 0;
    }
    out->leader = xcalloc((size_t)out->total, sizeof *out->leader);
    out->n = xcalloc((size_t)out->total, sizeof *out->n);
    for (int i = 0; i < out->total; i++) {
        out->leader[i] = i;
        out->n[i] = 1;
    }
    struct parts parts = meet_find_parts(plan);
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
    int *host;           /* by program: the op that its host is before */
    struct walker *head; /* by program and queue: ops done */
    int *arrived;        /* by leader: ops that wait for the others */
    bool *there;         /* by op: it is one of those */
};

static struct walker *head_of(const struct walk *walk, int program, int queue)
{
    return &walk->head[program * walk->plan->queues.n + queue];
}

/* A queue is in order, so an op is done when more ops of its queue are done than come before it. */
static bool is_done(const struct walk *walk, int program, plan_wait wait)
{
    int op = wait & ~PLAN_PREVIOUS_STEP;
    return (wait & PLAN_PREVIOUS_STEP) ||
           head_of(walk, program, meet_op_of(walk->plan, program, op)->stream)->at >
               position_of(walk->plan, program, op);
}

static bool waits_are_done(const struct walk *walk, int program, int op)
{
    for (int w = 0, n = meet_op_of(walk->plan, program, op)->n_waits; w < n; w++)
        if (!is_done(walk, program, wait_of(walk->plan, program, op, w)))
            return false;
    return true;
}

/* The first op from there on that blocks the host; the number of ops: none does. */
static int next_block(const struct plan *plan, int program, int from)
{
    const struct plan_program *of = &plan->programs[program];
    if (of->fold)
        return plan_fold_block(of->fold, from);
    while (from < of->ops.n && of->ops.at[from].kind != OP_HOST_WAIT)
        from++;
    return from;
}

static bool host_goes_on(const struct walk *walk, int program)
{
    int *host = &walk->host[program], before = *host,
        n = plan_program_ops(&walk->plan->programs[program]);
    while ((*host = next_block(walk->plan, program, *host)) < n &&
           waits_are_done(walk, program, *host))
        ++*host;
    return *host > before;
}

/* It is there, and maybe the last. */
static bool meets_now(const struct walk *walk, int at, bool *moved)
{
    int leader = walk->meets->leader[at];
    *moved = *moved || !walk->there[at];
    walk->arrived[leader] += !walk->there[at];
    walk->there[at] = true;
    return walk->arrived[leader] == walk->meets->n[leader];
}

static bool queue_goes_on(const struct walk *walk, int program, int queue)
{
    struct walker *head = head_of(walk, program, queue);
    bool moved = false, meets = plan_queue_is_comm(walk->plan, queue);
    int first = walk->meets->first[program * walk->plan->queues.n + queue];
    for (; head->at < head->length; walk_on(walk->plan, head), moved = true) {
        int number = walker_op(walk->plan, head);
        if (number >= walk->host[program] || !waits_are_done(walk, program, number))
            break;
        if (meets && !meets_now(walk, first + head->at, &moved))
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

/* The first op of each program that others would have to come to: those that wait for each other
 * are among them. */
static bool all_done(const struct walk *walk, char *why, size_t n)
{
    int length = 0;
    for (int p = 0; p < walk->plan->n_programs; p++)
        for (int q = 0; q < walk->plan->queues.n; q++) {
            const struct walker *head = head_of(walk, p, q);
            if (head->at == head->length || (size_t)length >= n ||
                !plan_queue_is_comm(walk->plan, q))
                continue;
            int number = walker_op(walk->plan, head);
            if (walk->there[walk->meets->first[p * walk->plan->queues.n + q] + head->at])
                length += snprintf(why + length, n - (size_t)length, "%s op %d (%s) of program %d",
                    length ? "," : "deadlock: these wait for each other:", number,
                    meet_op_of(walk->plan, p, number)->name, p);
        }
    return length == 0;
}

bool plan_meets_go_on(const struct plan_meets *meets, const struct plan *plan, char *why, size_t n)
{
    size_t programs = (size_t)plan->n_programs, queues = (size_t)plan->queues.n;
    struct walk walk = {.meets = meets,
        .plan = plan,
        .host = xcalloc(programs, sizeof *walk.host),
        .head = xcalloc(programs * queues, sizeof *walk.head),
        .arrived = xcalloc((size_t)meets->total, sizeof *walk.arrived),
        .there = xcalloc((size_t)meets->total, sizeof *walk.there)};
    for (size_t i = 0; i < programs * queues; i++)
        walk.head[i] = walk_from_first(plan, (int)(i / queues), (int)(i % queues));
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
