/* Folding a program into patterns, op by op. Each stretch is written down as its pattern would be,
 * in scratch arrays (the draft), and looked for among those that are there by hash and full
 * comparison; a new one is kept in the arena. So of a program that is folded while it grows only
 * the stretch that grows is there op by op.
 *
 * Stretches begin where cells do. Within one, ops that a wait names, and stretches that allocate a
 * buffer, are written relative to their stretch, which has a slot: slot 0 is the stretch itself,
 * others come in the order in which its ops name them. Two stretches with equal drafts then differ
 * in their slots alone. That is why buffers get new numbers, by the order of allocation, and alike
 * collectives are one.
 *
 * Sums of host time must be those of adding op by op, bit for bit, as the executor's times are
 * compared exactly. A sum is kept as host_s of the stretch plus a part within it;
 * plan_folding_push() checks that this addition gives the same double at every op. If it does once
 * not, or a stretch has too many slots, there is no fold.
 *
 * Which ops are waited for is known at the end, and not the same in all stretches of a pattern:
 * find_awaited() gives each stretch its marks. sum_up() gives it what comes before it, and from
 * behind the next op that blocks the host. A stretch of no ops stands at the end, so that looking
 * one further needs no test. */
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
    for (int i = 0; i < program->ops.n; i++) {
        const struct plan_op *op = &program->ops.at[i];
        for (int w = op->first_wait; w < op->first_wait + op->n_waits; w++)
            awaited[program->waits.at[w] & ~PLAN_PREVIOUS_STEP] = true;
    }
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
        .host_s = host_s,
        .queue_ops = queue_ops,
        .n_queue_ops = n_queue_ops};
    fold_derive(pattern, arena);
    fold->patterns[0] = pattern;
    fold->stretches[0] = (struct plan_stretch){
        .pattern = pattern, .awaited = awaited, .slots = ARENA_ARRAY(arena, int32_t, 1)};
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
    plan_numbers refers;              /* to these stretches */
    int32_t positions[UINT8_MAX + 1]; /* by queue: its ops */
    uint64_t hash;
};

/* What became of a buffer, and where it was allocated: in which stretch, and its place there. */
struct home {
    enum { HOME_NONE, HOME_OF_STEP, HOME_OF_RUN } kind;
    int32_t stretch, place;
};

struct plan_folding {
    const struct plan *plan;
    const struct plan_program *program;
    struct plan_fold *fold;
    struct arena *arena;
    struct draft draft;
    struct index known; /* patterns */
    VEC(struct plan_pattern *) patterns;
    VEC(struct plan_stretch) stretches;
    plan_numbers at;        /* see struct plan_fold */
    VEC(struct home) homes; /* by buffer */
    int32_t current;        /* the stretch that grows */
    int live;               /* buffers that are still to be freed */
    double host_s;          /* of the ops before */
    bool holds;             /* so far it can be held so */
    /* What is to name the op of PLAN_LAST_STEP: */
    VEC(plan_wait *) last_waits;
    VEC(int32_t *) last_slots;
};

/* In the place of a stretch, and of an op in it, as long as the op is not known. */
enum { STRETCH_OF_LAST = -1, OP_OF_LAST = PLAN_PREVIOUS_STEP | (PLAN_PREVIOUS_STEP - 1) };

static void open_stretch(struct plan_folding *f)
{
    struct draft *draft = &f->draft;
    if (++f->current == f->stretches.n)
        vec_push(&f->stretches, (struct plan_stretch){.first_op = f->fold->n_ops});
    f->stretches.at[f->current].host_s = f->host_s;
    draft->ops.n = draft->waits.n = draft->slots.n = draft->buffers.n = draft->host_s.n =
        draft->refers.n = 0;
    memset(draft->positions, 0, sizeof draft->positions);
    draft->hash = DIGEST_INIT;
    vec_push(&draft->host_s, 0);
    vec_push(&draft->refers, f->current);
}

struct plan_folding *plan_folding_begin(
    const struct plan *plan, const struct plan_program *program, struct arena *arena)
{
    struct plan_folding *f = xcalloc(1, sizeof *f);
    *f = (struct plan_folding){.plan = plan,
        .program = program,
        .fold = ARENA_NEW(arena, struct plan_fold),
        .arena = arena,
        .current = -1,
        .holds = true};
    open_stretch(f);
    return f;
}

/* The stretch of an op that is there. */
static int32_t fold_stretch_of(const struct plan_folding *f, int32_t op)
{
    int32_t stretch = f->current;
    if (op >= f->stretches.at[stretch].first_op &&
        (stretch + 1 == f->stretches.n || op < f->stretches.at[stretch + 1].first_op))
        return stretch;
    stretch = f->at.at[op >> PLAN_FOLD_SHIFT];
    while (stretch + 1 < f->stretches.n && f->stretches.at[stretch + 1].first_op <= op)
        stretch++;
    return stretch;
}

int32_t plan_folding_ops(const struct plan_folding *f)
{
    return f->fold->n_ops;
}

int plan_folding_stream(const struct plan_folding *f, int32_t op)
{
    int32_t stretch = fold_stretch_of(f, op), place = op - f->stretches.at[stretch].first_op;
    return (stretch == f->current ? f->draft.ops.at : f->stretches.at[stretch].pattern->ops)[place]
        .stream;
}

/* The slot in which the stretch that is written down has that one. */
static int slot_of(struct plan_folding *f, int32_t stretch)
{
    plan_numbers *refers = &f->draft.refers;
    for (int i = refers->n - 1; i >= 0; i--)
        if (refers->at[i] == stretch)
            return i;
    vec_push(refers, stretch);
    return refers->n - 1;
}

static void draft_wait(struct plan_folding *f, plan_wait wait)
{
    plan_wait previous = wait & PLAN_PREVIOUS_STEP, op = wait & ~PLAN_PREVIOUS_STEP;
    BUG_IF(!previous && op >= f->fold->n_ops, "op %d waits for op %d, which is not before it",
        f->fold->n_ops, op);
    int32_t stretch = STRETCH_OF_LAST;
    if (wait != PLAN_LAST_STEP) {
        stretch = fold_stretch_of(f, op);
        wait = (op - f->stretches.at[stretch].first_op) | previous;
    } else {
        wait = OP_OF_LAST;
    }
    int slot = slot_of(f, stretch);
    vec_push(&f->draft.waits, wait);
    vec_push(&f->draft.slots, (uint16_t)slot);
    f->draft.hash = digest_word(f->draft.hash, (uint64_t)slot << 32 | (uint32_t)wait);
}

/* position has two meanings from here on: a place in its queue within the stretch, or -1 - slot of
 * the buffer's home. */
static void draft_memory(struct plan_folding *f, struct plan_op *op)
{
    BUG_IF(op->index < 0, "op %d (%s) is of no buffer", f->fold->n_ops, op->name);
    while (f->homes.n <= op->index)
        vec_push(&f->homes, (struct home){0});
    struct home *home = &f->homes.at[op->index];
    bool frees = op->kind == OP_FREE;
    BUG_IF(home->kind != (frees ? HOME_OF_STEP : HOME_NONE), "op %d (%s) %s a buffer that is %s",
        f->fold->n_ops, op->name, frees ? "frees" : "allocates", frees ? "not there" : "there");
    f->live += frees ? -1 : op->kind == OP_ALLOC;
    if (!frees) {
        *home = (struct home){
            op->kind == OP_KEEP ? HOME_OF_RUN : HOME_OF_STEP, f->current, f->draft.buffers.n};
        vec_push(&f->draft.buffers, f->program->buffers.at[op->index]);
    }
    op->position = -1 - slot_of(f, home->stretch);
    op->index = home->place;
    home->kind = frees ? HOME_NONE : home->kind;
}

int32_t plan_folding_push(struct plan_folding *f, const struct plan_op *op, const plan_wait *waits)
{
    struct draft *draft = &f->draft;
    struct plan_op at = *op;
    at.first_wait = draft->waits.n;
    for (int w = 0; w < at.n_waits; w++)
        draft_wait(f, waits[w]);
    at.position = -1;
    if (at.kind == OP_KERNEL || plan_op_is_comm(&at))
        at.position = draft->positions[at.stream]++;
    else if (plan_op_is_memory(&at))
        draft_memory(f, &at);
    draft->hash = digest_word(
        draft->hash, (uint64_t)at.kind << 40 | (uint64_t)at.stream << 32 | (uint32_t)at.index);
    draft->hash = digest_word(draft->hash, (uint64_t)at.n_waits << 32 | (uint32_t)at.position);
    vec_push(&draft->ops, at);
    /* Adding up one by one has to be what the sum of the stretch added to that before it is. */
    double before_s = f->stretches.at[f->current].host_s, of_this = 0;
    f->host_s += (double)at.host_s;
    of_this = f->host_s - before_s;
    f->holds = f->holds && before_s + of_this == f->host_s;
    vec_push(&draft->host_s, of_this);
    return f->fold->n_ops++;
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
    const struct plan_folding *f = self;
    const struct draft *draft = &f->draft;
    const struct plan_pattern *pattern = f->patterns.at[item];
    if (pattern->n_ops != draft->ops.n || pattern->n_waits != draft->waits.n ||
        pattern->n_buffers != draft->buffers.n)
        return false;
    for (int i = 0; i < draft->ops.n; i++)
        if (!same_op(&draft->ops.at[i], &pattern->ops[i]) ||
            draft->host_s.at[i + 1] != pattern->host_s[i + 1])
            return false;
    for (int b = 0; b < pattern->n_buffers; b++)
        if (!same_buffer(&draft->buffers.at[b], &pattern->buffers[b]))
            return false;
    size_t waits = (size_t)pattern->n_waits;
    return waits == 0 ||
           (memcmp(draft->waits.at, pattern->waits, sizeof *pattern->waits * waits) == 0 &&
               memcmp(draft->slots.at, pattern->slots, sizeof *pattern->slots * waits) == 0);
}

static void *kept(struct arena *arena, const void *at, size_t bytes)
{
    void *copy = arena_alloc(arena, bytes);
    if (bytes > 0)
        memcpy(copy, at, bytes);
    return copy;
}
#define KEPT(f, vec) kept((f)->arena, (vec).at, sizeof *(vec).at *(size_t)(vec).n)

static struct plan_pattern *keep_draft(struct plan_folding *f)
{
    struct plan_pattern *pattern = ARENA_NEW(f->arena, struct plan_pattern);
    const struct draft *draft = &f->draft;
    plan_wait *waits = KEPT(f, draft->waits);
    for (int w = 0; w < draft->waits.n; w++)
        if (waits[w] == OP_OF_LAST)
            vec_push(&f->last_waits, &waits[w]);
    *pattern = (struct plan_pattern){.n_ops = draft->ops.n,
        .n_slots = draft->refers.n,
        .n_waits = draft->waits.n,
        .n_buffers = draft->buffers.n,
        .ops = KEPT(f, draft->ops),
        .waits = waits,
        .slots = KEPT(f, draft->slots),
        .buffers = KEPT(f, draft->buffers),
        .host_s = KEPT(f, draft->host_s)};
    vec_push(&f->patterns, pattern);
    return pattern;
}

static void close_stretch(struct plan_folding *f)
{
    struct plan_stretch *at = &f->stretches.at[f->current];
    struct draft *draft = &f->draft;
    f->holds = f->holds && draft->refers.n <= UINT16_MAX;
    int32_t like = index_find(&f->known, draft->hash, is_draft, f);
    if (like < 0)
        index_add(&f->known, draft->hash, f->patterns.n);
    at->pattern = like < 0 ? keep_draft(f) : f->patterns.at[like];
    int32_t *slots = KEPT(f, draft->refers);
    for (int i = 0; i < draft->refers.n; i++)
        if (slots[i] == STRETCH_OF_LAST)
            vec_push(&f->last_slots, &slots[i]);
    at->slots = slots;
    while (f->at.n << PLAN_FOLD_SHIFT < f->fold->n_ops)
        vec_push(&f->at, f->current);
}

void plan_folding_cut(struct plan_folding *f)
{
    if (f->draft.ops.n == 0)
        return;
    close_stretch(f);
    open_stretch(f);
}

/* PLAN_LAST_STEP is `last` from here on. */
static void name_last(struct plan_folding *f, int32_t last)
{
    if (f->last_slots.n == 0)
        return;
    BUG_IF(last < 0 || last >= f->fold->n_ops, "op %d of %d is the last of a step", last,
        f->fold->n_ops);
    int32_t stretch = fold_stretch_of(f, last), place = last - f->stretches.at[stretch].first_op;
    for (int i = 0; i < f->last_waits.n; i++)
        *f->last_waits.at[i] = PLAN_PREVIOUS_STEP | place;
    for (int i = 0; i < f->last_slots.n; i++)
        *f->last_slots.at[i] = stretch;
}

static void keep_queues(const struct plan_folding *f, struct plan_pattern *pattern)
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

/* ---- which ops are waited for ---- */

/* Arrays of struct plan_stretch, each once. */
struct mark {
    const bool *at;
    int32_t n;
};

struct marks {
    struct index known;
    VEC(struct mark) all;
};

struct sought_marks {
    const struct marks *marks;
    struct mark one;
};

static bool fold_same_marks(const void *self, int32_t item)
{
    const struct sought_marks *sought = self;
    const struct mark *a = &sought->one, *b = &sought->marks->all.at[item];
    return a->n == b->n && memcmp(a->at, b->at, (size_t)a->n) == 0;
}

static const bool *marks_find(struct marks *marks, const bool *at, int32_t n, struct arena *arena)
{
    uint64_t hash = digest_word(DIGEST_INIT, (uint64_t)n), word;
    for (int32_t i = 0; i < n; i += (int32_t)sizeof word) {
        word = 0;
        memcpy(&word, at + i, n - i < (int32_t)sizeof word ? (size_t)(n - i) : sizeof word);
        hash = digest_word(hash, word);
    }
    int32_t like =
        index_find(&marks->known, hash, fold_same_marks, &(struct sought_marks){marks, {at, n}});
    if (like < 0) {
        like = marks->all.n;
        index_add(&marks->known, hash, like);
        vec_push(&marks->all, (struct mark){kept(arena, at, (size_t)n), n});
    }
    return marks->all.at[like].at;
}

static void mark_waits_of(const struct plan_fold *fold, int s, bool *awaited)
{
    const struct plan_stretch *at = &fold->stretches[s];
    const struct plan_pattern *pattern = at->pattern;
    for (int w = 0; w < pattern->n_waits; w++) {
        const struct plan_stretch *on = &fold->stretches[at->slots[pattern->slots[w]]];
        int32_t place = pattern->waits[w] & ~PLAN_PREVIOUS_STEP;
        BUG_IF(place >= on->pattern->n_ops || on->pattern->ops[place].position < 0,
            "an op waits for op %d, which runs on no stream", on->first_op + place);
        awaited[on->first_op + place] = true;
    }
}

static void find_awaited(struct plan_fold *fold, struct arena *arena)
{
    bool *awaited = xcalloc((size_t)fold->n_ops + 1, 1);
    struct marks marks = {0};
    for (int s = 0; s < fold->n_stretches; s++)
        mark_waits_of(fold, s, awaited);
    for (int s = 0; s < fold->n_stretches; s++) {
        struct plan_stretch *at = &fold->stretches[s];
        at->awaited = marks_find(&marks, awaited + at->first_op, at->pattern->n_ops, arena);
    }
    index_free(&marks.known);
    vec_free(&marks.all);
    free(awaited);
}

/* ---- the end ---- */

/* Buffers by number in the order in which ops allocate them, behind those that live for the whole
 * run. */
static void number_buffers(struct plan_fold *fold)
{
    fold->n_buffers = fold->n_setup;
    for (int s = 0; s < fold->n_stretches; s++) {
        fold->stretches[s].first_buffer = fold->n_buffers;
        fold->n_buffers += fold->stretches[s].pattern->n_buffers;
    }
}

static void finish_folding(struct plan_folding *f)
{
    struct plan_fold *fold = f->fold;
    fold->n_queues = f->plan->queues.n;
    fold->n_stretches = f->current + 1;
    fold->n_patterns = f->patterns.n;
    fold->patterns = KEPT(f, f->patterns);
    fold->stretches = ARENA_ARRAY(f->arena, struct plan_stretch, fold->n_stretches + 2);
    memcpy(fold->stretches, f->stretches.at, sizeof *fold->stretches * (size_t)fold->n_stretches);
    fold->stretches[fold->n_stretches].host_s = f->host_s;
    for (int p = 0; p < f->patterns.n; p++) {
        fold_derive(f->patterns.at[p], f->arena);
        keep_queues(f, f->patterns.at[p]);
    }
    take_setup(fold, f->program, true, f->arena);
    number_buffers(fold);
    sum_up(fold, f->arena);
    find_stretches(fold, f->arena);
    find_awaited(fold, f->arena);
}

struct plan_fold *plan_folding_end(struct plan_folding *f, int32_t last)
{
    struct plan_fold *fold = f->fold;
    if (f->draft.ops.n > 0 || f->current == 0)
        close_stretch(f);
    else
        f->current--;
    name_last(f, last);
    BUG_IF(f->live > 0, "%d buffers are never freed", f->live);
    bool holds = f->holds;
    if (holds)
        finish_folding(f);
    vec_free(&f->draft.ops);
    vec_free(&f->draft.waits);
    vec_free(&f->draft.slots);
    vec_free(&f->draft.buffers);
    vec_free(&f->draft.host_s);
    vec_free(&f->draft.refers);
    vec_free(&f->patterns);
    vec_free(&f->stretches);
    vec_free(&f->at);
    vec_free(&f->homes);
    vec_free(&f->last_waits);
    vec_free(&f->last_slots);
    index_free(&f->known);
    free(f);
    return holds ? fold : NULL;
}

/* ---- a program that is complete ---- */

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

int32_t plan_fold_collective(
    const struct plan *plan, struct index *known, const struct plan_collective *one, int32_t next)
{
    uint64_t bits,
        hash = digest_word(DIGEST_INIT, (uint64_t)one->kind << 32 | (uint64_t)one->group);
    memcpy(&bits, &one->bytes, sizeof bits);
    hash = digest_word(hash, bits);
    int32_t like = index_find(known, hash, fold_is_alike, &(struct alike){plan, one});
    if (like < 0)
        index_add(known, hash, next);
    return like < 0 ? next : like;
}

/* Of the plan's collectives from `own` on those that none before is like; where each is then. */
static void number_collectives(struct plan *plan, int own, struct index *known, int32_t *numbers)
{
    int kept = own;
    for (int c = own; c < plan->collectives.n; c++) {
        const struct plan_collective one = plan->collectives.at[c];
        int32_t like = plan_fold_collective(plan, known, &one, kept);
        plan->collectives.at[like] = one;
        kept += like == kept;
        numbers[c - own] = like;
    }
    plan->collectives.n = kept;
}

/* An op may wait for one of the step before that comes later: stretches are known beforehand. */
static void open_stretches(struct plan_folding *f)
{
    const struct plan_program *program = f->program;
    for (int c = 0; c < program->cells.n; c++) {
        int32_t first = program->cells.at[c].first_op;
        if (first > f->stretches.at[f->stretches.n - 1].first_op && first < program->ops.n)
            vec_push(&f->stretches, (struct plan_stretch){.first_op = first});
    }
    for (int s = 0; s < f->stretches.n; s++) {
        int32_t end = s + 1 < f->stretches.n ? f->stretches.at[s + 1].first_op : program->ops.n;
        while (f->at.n << PLAN_FOLD_SHIFT < end)
            vec_push(&f->at, s);
    }
}

/* Collectives get their new numbers first; if it does not come to a fold, these are written into
 * the program. */
struct plan_fold *plan_fold_make(struct plan *plan, struct plan_program *program, int own,
    struct index *known, struct arena *arena)
{
    int32_t *collectives = xcalloc((size_t)(plan->collectives.n - own) + 1, sizeof *collectives);
    number_collectives(plan, own, known, collectives);
    for (int i = 0; i < program->ops.n; i++)
        if (program->ops.at[i].kind == OP_COLLECTIVE)
            program->ops.at[i].index = collectives[program->ops.at[i].index - own];
    free(collectives);
    struct plan_folding *f = plan_folding_begin(plan, program, arena);
    open_stretches(f);
    int last = f->stretches.n - 1;
    for (int i = 0; i < program->ops.n; i++) {
        const struct plan_op *op = &program->ops.at[i];
        if (f->current < last && i == f->stretches.at[f->current + 1].first_op)
            plan_folding_cut(f);
        plan_folding_push(f, op, &program->waits.at[op->first_wait]);
    }
    return plan_folding_end(f, PLAN_NO_OP);
}
