/* Folding a program into patterns. Each stretch is written down as its pattern would be, in scratch
 * arrays (the draft), and looked for among those that are there by hash and full comparison; a new
 * one is kept in the arena.
 *
 * Stretches begin where cells do. Within one, ops that a wait names, and stretches that allocate a
 * buffer, are written relative to their stretch, which has a slot: slot 0 is the stretch itself,
 * others come in the order in which its ops name them. Two stretches with equal drafts then differ
 * in their slots alone. That is why buffers and collectives get new numbers first: by the order of
 * allocation, and with alike collectives as one.
 *
 * Sums of host time must be those of adding op by op, bit for bit, as the executor's times are
 * compared exactly. A sum is kept as host_s of the stretch plus a part within it; draft_host_s()
 * checks that this addition gives the same double at every op. If it does once not, or a stretch
 * has too many slots, the program stays as it is and only gets the new numbers of collectives.
 *
 * sum_up() then gives each stretch what comes before it, and from behind the next op that blocks
 * the host. A stretch of no ops stands at the end, so that looking one further needs no test. */
#include "plan/fold.h"

#include "base/digest.h"

#include <stdlib.h>
#include <string.h>

/* ---- what follows from the ops of a pattern ---- */

static void fold_derive(struct plan_pattern *pattern, struct arena *arena)
{
    int32_t n = pattern->n_ops;
    int32_t *launches = ARENA_ARRAY(arena, int32_t, n + 1),
            *next_block = ARENA_ARRAY(arena, int32_t, n + 1),
            *next_memory = ARENA_ARRAY(arena, int32_t, n + 1);
    for (int32_t i = 0; i < n; i++)
        launches[i + 1] = launches[i] + (pattern->ops[i].position >= 0);
    next_block[n] = next_memory[n] = n;
    for (int32_t i = n - 1; i >= 0; i--) {
        bool blocks = pattern->ops[i].kind == OP_HOST_WAIT;
        next_block[i] = blocks ? i : next_block[i + 1];
        next_memory[i] = blocks || plan_op_is_memory(&pattern->ops[i]) ? i : next_memory[i + 1];
    }
    pattern->launches = launches;
    pattern->next_block = next_block;
    pattern->next_memory = next_memory;
}

static void mark_awaited(bool *awaited, const struct plan_program *program)
{
    for (int w = 0; w < program->waits.n; w++)
        awaited[program->waits.at[w] & ~PLAN_PREVIOUS_STEP] = true;
}

/* What each stretch adds to, from the first one on; the last of them stands behind all. */
static void sum_up(struct plan_fold *fold, struct arena *arena)
{
    struct plan_pattern *nothing = ARENA_NEW(arena, struct plan_pattern);
    nothing->host_s = ARENA_ARRAY(arena, double, 1);
    nothing->launches = nothing->next_block = nothing->next_memory = ARENA_ARRAY(arena, int32_t, 1);
    struct plan_stretch *behind = &fold->stretches[fold->n_stretches];
    behind->pattern = nothing;
    behind->sums_s = nothing->host_s;
    behind->first_op = behind->block = behind->memory = fold->n_ops;
    behind->first_buffer = fold->n_buffers;
    behind[1].first_op = INT32_MAX;
    behind[1].block = behind[1].memory = fold->n_ops;
    int32_t launches = 0,
            *positions = ARENA_ARRAY(arena, int32_t, fold->n_queues * (fold->n_stretches + 1));
    for (int s = 0; s < fold->n_stretches; s++, positions += fold->n_queues) {
        struct plan_stretch *at = &fold->stretches[s];
        at->ops = at->pattern->ops;
        at->sums_s = at->pattern->host_s;
        at->awaited = at->pattern->awaited;
        at->positions = positions;
        at->launches = launches;
        launches += at->pattern->launches[at->pattern->n_ops];
        for (int q = 0; q < fold->n_queues; q++)
            positions[fold->n_queues + q] = positions[q] + at->pattern->n_queue_ops[q];
    }
    behind->positions = positions;
    behind->launches = launches;
    for (int s = fold->n_stretches - 1; s >= 0; s--) {
        struct plan_stretch *at = &fold->stretches[s];
        int32_t n = at->pattern->n_ops, block = at->pattern->next_block[0],
                memory = at->pattern->next_memory[0];
        at->block = block < n ? at->first_op + block : at[1].block;
        at->memory = memory < n ? at->first_op + memory : at[1].memory;
    }
}

/* One entry for each 64 ops: plan_fold_stretch() goes on from there, over few stretches. */
static void find_stretches(struct plan_fold *fold, struct arena *arena)
{
    int32_t n = (fold->n_ops >> PLAN_FOLD_SHIFT) + 1, stretch = 0,
            *at = ARENA_ARRAY(arena, int32_t, n);
    for (int32_t i = 0; i < n; i++) {
        while (fold->stretches[stretch + 1].first_op <= i << PLAN_FOLD_SHIFT)
            stretch++;
        at[i] = stretch;
    }
    fold->at = at;
}

static void take_setup(
    struct plan_fold *fold, const struct plan_program *program, bool anew, struct arena *arena)
{
    int32_t *numbers = ARENA_ARRAY(arena, int32_t, program->setup.n + 1);
    struct plan_buffer *buffers = ARENA_ARRAY(arena, struct plan_buffer, program->setup.n + 1);
    for (int i = 0; i < program->setup.n; i++) {
        numbers[i] = anew ? i : program->setup.at[i];
        buffers[i] = program->buffers.at[program->setup.at[i]];
    }
    fold->n_setup = program->setup.n;
    fold->setup = numbers;
    fold->setup_buffers = buffers;
}

/* ---- one stretch ---- */

const struct plan_fold *plan_fold_flat(
    const struct plan *plan, const struct plan_program *program, struct arena *arena)
{
    struct plan_fold *fold = ARENA_NEW(arena, struct plan_fold);
    struct plan_pattern *pattern = ARENA_NEW(arena, struct plan_pattern);
    int n = program->ops.n, queues = plan->queues.n;
    *fold = (struct plan_fold){.n_ops = n,
        .n_buffers = program->buffers.n,
        .n_queues = queues,
        .n_stretches = 1,
        .n_patterns = 1,
        .patterns = arena_alloc(arena, sizeof *fold->patterns),
        .stretches = ARENA_ARRAY(arena, struct plan_stretch, 3)};
    bool *awaited = ARENA_ARRAY(arena, bool, n + 1);
    double *host_s = ARENA_ARRAY(arena, double, n + 1);
    const int32_t **queue_ops = arena_alloc(arena, sizeof *queue_ops * (size_t)queues);
    int32_t *n_queue_ops = ARENA_ARRAY(arena, int32_t, queues);
    mark_awaited(awaited, program);
    for (int i = 0; i < n; i++)
        host_s[i + 1] = host_s[i] + (double)program->ops.at[i].host_s;
    for (int q = 0; q < queues; q++) {
        queue_ops[q] = program->queue_ops.at[q].at;
        n_queue_ops[q] = program->queue_ops.at[q].n;
    }
    *pattern = (struct plan_pattern){.n_ops = n,
        .n_slots = 1,
        .ops = program->ops.at,
        .waits = program->waits.at,
        .buffers = program->buffers.at,
        .awaited = awaited,
        .host_s = host_s,
        .queue_ops = queue_ops,
        .n_queue_ops = n_queue_ops};
    fold_derive(pattern, arena);
    fold->patterns[0] = pattern;
    fold->stretches[0] =
        (struct plan_stretch){.pattern = pattern, .slots = ARENA_ARRAY(arena, int32_t, 1)};
    fold->stretches[1].host_s = host_s[n];
    sum_up(fold, arena);
    find_stretches(fold, arena);
    take_setup(fold, program, false, arena);
    return fold;
}

/* ---- many ---- */

/* A pattern that grows. */
struct draft {
    VEC(struct plan_op) ops;
    VEC(plan_wait) waits;
    VEC(uint16_t) slots;
    VEC(struct plan_buffer) buffers;
    VEC(double) host_s;
    plan_numbers refers; /* to these stretches */
    const bool *awaited;
    uint64_t hash;
};

struct folding {
    const struct plan *plan;
    const struct plan_program *program;
    struct plan_fold *fold;
    struct arena *arena;
    struct draft draft;
    struct index known; /* patterns */
    VEC(const struct plan_pattern *) patterns;
    int32_t *home, *place; /* by buffer: the stretch that allocates it, and its place there */
    int32_t *collectives;  /* their new numbers, from `own` on */
    int own;
    bool *awaited; /* by op */
    double host_s; /* of the ops before */
};

static void open_stretches(struct folding *f)
{
    const struct plan_program *program = f->program;
    struct plan_fold *fold = f->fold;
    fold->stretches = ARENA_ARRAY(f->arena, struct plan_stretch, program->cells.n + 3);
    for (int c = 0; c < program->cells.n; c++) {
        int32_t first = program->cells.at[c].first_op;
        if (fold->n_stretches == 0 && first > 0)
            fold->n_stretches++;
        if (first < program->ops.n &&
            (first == 0 || fold->stretches[fold->n_stretches - 1].first_op < first))
            fold->stretches[fold->n_stretches++].first_op = first;
    }
    if (fold->n_stretches == 0)
        fold->n_stretches = 1;
    fold->stretches[fold->n_stretches].first_op = program->ops.n;
    fold->stretches[fold->n_stretches + 1].first_op = INT32_MAX;
}

/* Buffers by number in the order in which ops allocate them, behind those that live for the whole
 * run. */
static void number_buffers(struct folding *f)
{
    const struct plan_program *program = f->program;
    struct plan_fold *fold = f->fold;
    int32_t next = program->setup.n;
    for (int s = 0; s < fold->n_stretches; s++) {
        struct plan_stretch *at = &fold->stretches[s];
        at->first_buffer = next;
        for (int32_t i = at->first_op; i < at[1].first_op; i++) {
            const struct plan_op *op = &program->ops.at[i];
            if (op->kind != OP_ALLOC && op->kind != OP_KEEP)
                continue;
            f->home[op->index] = s;
            f->place[op->index] = next++ - at->first_buffer;
        }
    }
    fold->n_buffers = next;
}

struct alike {
    const struct plan *plan;
    const struct plan_collective *one;
};

static bool fold_is_alike(const void *self, int32_t item)
{
    const struct alike *sought = self;
    const struct plan_collective *a = sought->one, *b = &sought->plan->collectives.at[item];
    return a->kind == b->kind && a->bytes == b->bytes && a->group == b->group &&
           a->serves == b->serves && a->routing == b->routing;
}

/* Of the plan's collectives from `own` on those that none before is like; where each is then. */
static void number_collectives(struct plan *plan, int own, struct index *known, int32_t *numbers)
{
    int kept = own;
    for (int c = own; c < plan->collectives.n; c++) {
        const struct plan_collective one = plan->collectives.at[c];
        uint64_t bits,
            hash = digest_word(DIGEST_INIT, (uint64_t)one.kind << 32 | (uint64_t)one.group);
        memcpy(&bits, &one.bytes, sizeof bits);
        hash = digest_word(hash, bits);
        int32_t like = index_find(known, hash, fold_is_alike, &(struct alike){plan, &one});
        if (like < 0) {
            like = kept++;
            plan->collectives.at[like] = one;
            index_add(known, hash, like);
        }
        numbers[c - own] = like;
    }
    plan->collectives.n = kept;
}

/* The slot in which the stretch that is written down has that one. */
static int slot_of(struct folding *f, int32_t stretch)
{
    plan_numbers *refers = &f->draft.refers;
    for (int i = refers->n - 1; i >= 0; i--)
        if (refers->at[i] == stretch)
            return i;
    vec_push(refers, stretch);
    return refers->n - 1;
}

static void draft_waits(struct folding *f, const struct plan_op *op)
{
    for (int w = op->first_wait; w < op->first_wait + op->n_waits; w++) {
        plan_wait wait = f->program->waits.at[w], previous = wait & PLAN_PREVIOUS_STEP;
        const struct plan_stretch *on = plan_fold_stretch(f->fold, wait & ~PLAN_PREVIOUS_STEP);
        wait = ((wait & ~PLAN_PREVIOUS_STEP) - on->first_op) | previous;
        int slot = slot_of(f, (int32_t)(on - f->fold->stretches));
        vec_push(&f->draft.waits, wait);
        vec_push(&f->draft.slots, (uint16_t)slot);
        f->draft.hash = digest_word(f->draft.hash, (uint64_t)slot << 32 | (uint32_t)wait);
    }
}

/* position has two meanings from here on: a place in its queue within the stretch, or -1 - slot of
 * the buffer's home. */
static void draft_op(struct folding *f, int32_t i, int32_t *positions)
{
    struct plan_op op = f->program->ops.at[i];
    int first_wait = f->draft.waits.n;
    draft_waits(f, &op);
    op.first_wait = first_wait;
    if (op.position >= 0)
        op.position = positions[op.stream]++;
    if (op.kind == OP_COLLECTIVE)
        op.index = f->collectives[op.index - f->own];
    if (plan_op_is_memory(&op)) {
        if (op.kind != OP_FREE)
            vec_push(&f->draft.buffers, f->program->buffers.at[op.index]);
        op.position = -1 - slot_of(f, f->home[op.index]);
        op.index = f->place[op.index];
    }
    f->draft.hash = digest_word(
        f->draft.hash, (uint64_t)op.kind << 40 | (uint64_t)op.stream << 32 | (uint32_t)op.index);
    f->draft.hash = digest_word(f->draft.hash, (uint64_t)op.n_waits << 32 | (uint32_t)op.position);
    vec_push(&f->draft.ops, op);
}

/* False: adding up one by one is not what the sum of the stretch added to that before it is. */
static bool draft_host_s(struct folding *f, int32_t first, int32_t end)
{
    double now = f->host_s;
    bool exact = true;
    for (int32_t i = first; i <= end; i++) {
        double of_this = now - f->host_s;
        exact = exact && f->host_s + of_this == now;
        vec_push(&f->draft.host_s, of_this);
        if (i < end)
            now += (double)f->program->ops.at[i].host_s;
    }
    f->host_s = now;
    return exact;
}

static bool fold_same_name(const char *a, const char *b)
{
    return a == b || strcmp(a, b) == 0;
}

static bool same_op(const struct plan_op *a, const struct plan_op *b)
{
    return a->kind == b->kind && a->stream == b->stream && a->phase == b->phase &&
           a->n_waits == b->n_waits && a->index == b->index && a->first_wait == b->first_wait &&
           a->position == b->position && a->host_s == b->host_s && fold_same_name(a->name, b->name);
}

static bool same_buffer(const struct plan_buffer *a, const struct plan_buffer *b)
{
    return a->bytes == b->bytes && a->category == b->category && a->stream == b->stream &&
           fold_same_name(a->name, b->name);
}

/* The hash leaves out names, phases and host time; this compares all that a pattern holds. */
static bool is_draft(const void *self, int32_t item)
{
    const struct folding *f = self;
    const struct draft *draft = &f->draft;
    const struct plan_pattern *pattern = f->patterns.at[item];
    if (pattern->n_ops != draft->ops.n)
        return false;
    int waits = 0, buffers = 0;
    for (int i = 0; i < draft->ops.n; i++) {
        const struct plan_op *op = &draft->ops.at[i];
        if (!same_op(op, &pattern->ops[i]) || draft->awaited[i] != pattern->awaited[i] ||
            draft->host_s.at[i + 1] != pattern->host_s[i + 1])
            return false;
        waits += op->n_waits;
        buffers += op->kind == OP_ALLOC || op->kind == OP_KEEP;
    }
    for (int b = 0; b < buffers; b++)
        if (!same_buffer(&draft->buffers.at[b], &pattern->buffers[b]))
            return false;
    return waits == 0 ||
           (memcmp(draft->waits.at, pattern->waits, sizeof *pattern->waits * (size_t)waits) == 0 &&
               memcmp(draft->slots.at, pattern->slots, sizeof *pattern->slots * (size_t)waits) ==
                   0);
}

static void *kept(struct arena *arena, const void *at, size_t bytes)
{
    void *copy = arena_alloc(arena, bytes);
    if (bytes > 0)
        memcpy(copy, at, bytes);
    return copy;
}
#define KEPT(f, vec) kept((f)->arena, (vec).at, sizeof *(vec).at *(size_t)(vec).n)

static void keep_queues(const struct folding *f, struct plan_pattern *pattern)
{
    int queues = f->fold->n_queues;
    int32_t **ops = arena_alloc(f->arena, sizeof *ops * (size_t)queues),
            *n = ARENA_ARRAY(f->arena, int32_t, queues);
    for (int i = 0; i < pattern->n_ops; i++)
        n[pattern->ops[i].stream] += pattern->ops[i].position >= 0;
    for (int q = 0; q < queues; q++)
        ops[q] = ARENA_ARRAY(f->arena, int32_t, n[q]);
    for (int i = 0; i < pattern->n_ops; i++)
        if (pattern->ops[i].position >= 0)
            ops[pattern->ops[i].stream][pattern->ops[i].position] = i;
    pattern->queue_ops = (const int32_t *const *)ops;
    pattern->n_queue_ops = n;
}

static struct plan_pattern *keep_draft(struct folding *f)
{
    struct plan_pattern *pattern = ARENA_NEW(f->arena, struct plan_pattern);
    const struct draft *draft = &f->draft;
    *pattern = (struct plan_pattern){.n_ops = draft->ops.n,
        .n_slots = draft->refers.n,
        .ops = KEPT(f, draft->ops),
        .waits = KEPT(f, draft->waits),
        .slots = KEPT(f, draft->slots),
        .buffers = KEPT(f, draft->buffers),
        .host_s = KEPT(f, draft->host_s),
        .awaited = kept(f->arena, draft->awaited, (size_t)draft->ops.n)};
    fold_derive(pattern, f->arena);
    keep_queues(f, pattern);
    vec_push(&f->patterns, pattern);
    return pattern;
}

/* False: the program cannot be held so. */
static bool fold_stretch(struct folding *f, int s)
{
    struct plan_stretch *at = &f->fold->stretches[s];
    struct draft *draft = &f->draft;
    int32_t *positions = xcalloc((size_t)f->fold->n_queues, sizeof *positions);
    draft->ops.n = draft->waits.n = draft->slots.n = draft->buffers.n = draft->host_s.n =
        draft->refers.n = 0;
    draft->hash = DIGEST_INIT;
    draft->awaited = f->awaited + at->first_op;
    vec_push(&draft->refers, s);
    for (int32_t i = at->first_op; i < at[1].first_op; i++)
        draft_op(f, i, positions);
    free(positions);
    at->host_s = f->host_s;
    if (draft->refers.n > UINT16_MAX || !draft_host_s(f, at->first_op, at[1].first_op))
        return false;
    int32_t like = index_find(&f->known, draft->hash, is_draft, f);
    if (like < 0)
        index_add(&f->known, draft->hash, f->patterns.n);
    at->pattern = like < 0 ? keep_draft(f) : f->patterns.at[like];
    at->slots = KEPT(f, draft->refers);
    return true;
}

static void close_folding(struct folding *f)
{
    vec_free(&f->draft.ops);
    vec_free(&f->draft.waits);
    vec_free(&f->draft.slots);
    vec_free(&f->draft.buffers);
    vec_free(&f->draft.host_s);
    vec_free(&f->draft.refers);
    vec_free(&f->patterns);
    index_free(&f->known);
    free(f->home);
    free(f->place);
    free(f->collectives);
    free(f->awaited);
}

/* Collectives get their new numbers first; if it does not come to a fold, these are written into
 * the program. */
struct plan_fold *plan_fold_make(struct plan *plan, struct plan_program *program, int own,
    struct index *known, struct arena *arena)
{
    struct folding f = {.plan = plan,
        .program = program,
        .fold = ARENA_NEW(arena, struct plan_fold),
        .arena = arena,
        .home = xcalloc((size_t)program->buffers.n, sizeof *f.home),
        .place = xcalloc((size_t)program->buffers.n, sizeof *f.place),
        .collectives = xcalloc((size_t)(plan->collectives.n - own), sizeof *f.collectives),
        .own = own,
        .awaited = xcalloc((size_t)program->ops.n, 1)};
    struct plan_fold *fold = f.fold;
    fold->n_ops = program->ops.n;
    fold->n_queues = plan->queues.n;
    open_stretches(&f);
    find_stretches(fold, arena);
    number_buffers(&f);
    number_collectives(plan, own, known, f.collectives);
    mark_awaited(f.awaited, program);
    bool folds = true;
    for (int s = 0; s < fold->n_stretches && folds; s++)
        folds = fold_stretch(&f, s);
    for (int i = 0; i < program->ops.n && !folds; i++)
        if (program->ops.at[i].kind == OP_COLLECTIVE)
            program->ops.at[i].index = f.collectives[program->ops.at[i].index - own];
    if (folds) {
        fold->n_patterns = f.patterns.n;
        fold->patterns = kept(arena, f.patterns.at, sizeof *f.patterns.at * (size_t)f.patterns.n);
        fold->stretches[fold->n_stretches].host_s = f.host_s;
        sum_up(fold, arena);
        take_setup(fold, program, true, arena);
    }
    close_folding(&f);
    return folds ? fold : NULL;
}
