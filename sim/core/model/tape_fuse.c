/* What TorchInductor makes of a recorded program (model/tape.h), after both passes were recorded.
 *
 * 1. Neighbouring kernels that can be fused get one group. A product, a communication, and a sum
 *    over rows for a parameter end it.
 * 2. remake_all() decides which buffers backward makes again from what their group read, instead of
 *    keeping them. It goes from the last group to the first, because what is remade there needs
 *    results of earlier ones.
 * 3. fuse_pass() replaces each group by one kernel. It reads each buffer from outside once, and
 *    writes only what lives on.
 * 4. move_lives() renumbers the lives of buffers. Those that never leave their group vanish.
 *
 * The min-cut of the real partitioner is taken buffer by buffer: can_be_remade() says what may be
 * remade, choose_cuts() keeps a result where remaking it would keep more bytes of products. Cost:
 * groups x buffers x touches, once a segment.
 *
 * Subtle: TorchScript's and TransformerEngine's stacks use the same code with fewer kinds of
 * kernels (fusible()), and do not fuse over the border of a recomputed part. */
#include "model/tape_core.h"

#include <string.h>

/* A result of so much less than what it was made from, such as a mean, is kept rather than made
 * again. */
enum { SMALL_RESULT = 16 };

/* A communication breaks the graph, and so does what it sends, and what waits for it. */
static bool fusible(const struct tape *tape, int pass, int k)
{
    const struct model_op *op = &tape->program[pass].at[k];
    enum kernel_kind kind = op->work.kind;
    bool breaks = op->kind != MODEL_KERNEL || op->apart || (k > 0 && op[-1].kind == MODEL_WAIT) ||
                  (k + 1 < tape->program[pass].n && op[1].kind == MODEL_COMM);
    bool along_rows =
        kind == KERNEL_NORM || kind == KERNEL_SOFTMAX || kind == KERNEL_LOSS || kind == KERNEL_COPY;
    return !breaks && (kind == KERNEL_ELEMENTWISE ||
                          (along_rows && tape->workload->fusion == FUSION_INDUCTOR));
}

/* group[k]: the fused kernel that kernel k becomes a part of. A sum over rows for a parameter ends
 * its group: what comes next is another loop. */
static int group_kernels(const struct tape *tape, int pass, int *group)
{
    int n = -1;
    bool open = false;
    for (int k = 0; k < tape->program[pass].n; k++) {
        const struct model_op *kernel = &tape->program[pass].at[k];
        bool joins = fusible(tape, pass, k);
        bool scripted_apart =
            k > 0 && tape->workload->fusion != FUSION_INDUCTOR && kernel->parts != kernel[-1].parts;
        n += !(joins && open && !scripted_apart);
        group[k] = n;
        open = joins && kernel->param_grad == NO_PARAM;
    }
    return n + 1;
}

static bool born_at(const struct tape *tape, int buffer, int pass, const int *group, int at)
{
    const struct tape_buffer *b = &tape->buffers.at[buffer];
    return !b->external && !b->handed && b->life.born_in_backward == (pass == BACKWARD) &&
           b->life.born < tape->program[pass].n && group[b->life.born] == at;
}

/* Backward needs the buffer for element-by-element work only: then it can be made again there. */
static bool remade(const struct tape *tape, int buffer)
{
    const struct tape_buffer *b = &tape->buffers.at[buffer];
    if (b->external || b->handed || b->held[FORWARD] || b->held[BACKWARD] ||
        b->life.born_in_backward || b->life.backward_last < 0 ||
        b->life.born >= tape->program[FORWARD].n || !fusible(tape, FORWARD, b->life.born))
        return false;
    for (int i = 0; i < tape->touches[BACKWARD].n; i++) {
        struct tape_touched t = tape->touches[BACKWARD].at[i];
        if (t.buffer == buffer && !fusible(tape, BACKWARD, t.kernel))
            return false;
    }
    return true;
}

/* Which buffers backward keeps, of those that it could make again. */
struct cuts {
    const struct tape *tape;
    const int *group;
    bool *cut;     /* by buffer: it is kept */
    bool *origins; /* of the buffer that find_origins was asked for */
    bool *taken;   /* products that are kept for others */
};

/* A result of so much less than what its fused kernel reads stays. */
static bool is_small(const struct cuts *cuts, int buffer, int g)
{
    const struct tape *tape = cuts->tape;
    int64_t most = 0;
    for (int i = 0; i < tape->touches[FORWARD].n; i++) {
        struct tape_touched t = tape->touches[FORWARD].at[i];
        if (cuts->group[t.kernel] == g && !born_at(tape, t.buffer, FORWARD, cuts->group, g) &&
            tape->buffers.at[t.buffer].life.bytes > most)
            most = tape->buffers.at[t.buffer].life.bytes;
    }
    return most == 0 || tape->buffers.at[buffer].life.bytes * SMALL_RESULT <= most;
}

static bool can_be_remade(const struct cuts *cuts, int buffer, int g)
{
    return born_at(cuts->tape, buffer, FORWARD, cuts->group, g) && remade(cuts->tape, buffer) &&
           !is_small(cuts, buffer, g);
}

/* What the buffer is made from: what its fused kernel reads, or makes on the way and keeps. */
static void find_origins(const struct cuts *cuts, int buffer)
{
    const struct tape *tape = cuts->tape;
    int born = tape->buffers.at[buffer].life.born;
    for (int b = 0; b < tape->buffers.n; b++)
        cuts->origins[b] = b == buffer;
    for (int k = born; k >= 0 && cuts->group[k] == cuts->group[born]; k--) {
        bool needed = false;
        for (int i = 0; i < tape->touches[FORWARD].n; i++) {
            struct tape_touched t = tape->touches[FORWARD].at[i];
            if (t.kernel != k || !cuts->origins[t.buffer] || cuts->cut[t.buffer] ||
                tape->buffers.at[t.buffer].life.born != k)
                continue;
            needed = true;
            cuts->origins[t.buffer] = false;
        }
        for (int i = 0; i < tape->touches[FORWARD].n && needed; i++) {
            struct tape_touched t = tape->touches[FORWARD].at[i];
            if (t.kernel == k && tape->buffers.at[t.buffer].life.born != k)
                cuts->origins[t.buffer] = true;
        }
    }
}

/* A product, attention or a look-up made it, and backward has no other use of it. */
static bool is_idle_product(const struct cuts *cuts, int buffer)
{
    const struct tape_buffer *b = &cuts->tape->buffers.at[buffer];
    if (b->external || b->handed || b->held[BACKWARD] || b->life.born_in_backward ||
        b->life.backward_last >= 0 || b->life.born >= cuts->tape->program[FORWARD].n ||
        cuts->taken[buffer])
        return false;
    return !fusible(cuts->tape, FORWARD, b->life.born);
}

/* Bytes that backward keeps for what the fused kernel could make again: the products that it is
 * made from, or, with cuts, itself where that is less. */
static int64_t tape_fuse_kept_bytes(const struct cuts *cuts, int g, bool with_cuts)
{
    int64_t all = 0;
    memset(cuts->taken, 0, (size_t)cuts->tape->buffers.n);
    for (int buffer = 0; buffer < cuts->tape->buffers.n; buffer++) {
        int64_t own = cuts->tape->buffers.at[buffer].life.bytes, products = 0;
        if (!can_be_remade(cuts, buffer, g))
            continue;
        find_origins(cuts, buffer);
        for (int b = 0; b < cuts->tape->buffers.n; b++)
            products += cuts->origins[b] && is_idle_product(cuts, b)
                            ? cuts->tape->buffers.at[b].life.bytes
                            : 0;
        cuts->cut[buffer] = with_cuts && products > own;
        all += cuts->cut[buffer] ? own : products;
        for (int b = 0; b < cuts->tape->buffers.n && !cuts->cut[buffer]; b++)
            cuts->taken[b] |= cuts->origins[b] && is_idle_product(cuts, b);
    }
    return all;
}

/* The results of a matrix and of the adapter beside it are not kept for what their sum would do
 * for. */
static void choose_cuts(const struct cuts *cuts, int g)
{
    int64_t without = tape_fuse_kept_bytes(cuts, g, false);
    if (tape_fuse_kept_bytes(cuts, g, true) >= without)
        memset(cuts->cut, 0, (size_t)cuts->tape->buffers.n);
}

/* Backward reads what the buffer was made from instead of the buffer. */
static void remake(struct tape *tape, int buffer, const struct cuts *cuts, int g)
{
    find_origins(cuts, buffer);
    for (int i = 0, n = tape->touches[BACKWARD].n; i < n; i++) {
        struct tape_touched *t = &tape->touches[BACKWARD].at[i];
        if (t->buffer != buffer)
            continue;
        int kernel = t->kernel;
        t->buffer = NO_BUFFER;
        for (int j = 0; j < tape->touches[FORWARD].n; j++) {
            int from = tape->touches[FORWARD].at[j].buffer;
            if (cuts->group[tape->touches[FORWARD].at[j].kernel] != g || !cuts->origins[from])
                continue;
            vec_push(&tape->touches[BACKWARD], ((struct tape_touched){kernel, from}));
            struct model_activation *life = &tape->buffers.at[from].life;
            life->backward_last = life->backward_last > kernel ? life->backward_last : kernel;
        }
    }
    tape->buffers.at[buffer].life.backward_last = -1;
}

/* The last fused kernels first: they make backward need results of earlier ones. */
static void remake_all(struct tape *tape, const int *group, int n_groups)
{
    size_t n = (size_t)tape->buffers.n + 1;
    struct cuts cuts = {
        tape, group, xcalloc(n, sizeof(bool)), xcalloc(n, sizeof(bool)), xcalloc(n, sizeof(bool))};
    for (int g = n_groups - 1; g >= 0; g--) {
        choose_cuts(&cuts, g);
        for (int i = tape->buffers.n - 1; i >= 0; i--)
            if (!cuts.cut[i] && can_be_remade(&cuts, i, g))
                remake(tape, i, &cuts, g);
    }
    free(cuts.cut);
    free(cuts.origins);
    free(cuts.taken);
}

/* The last kernel of the buffer's life in the pass that it is born in, if its life ends there. */
static bool stays_inside(const struct tape *tape, int buffer, int pass, const int *group)
{
    const struct tape_buffer *b = &tape->buffers.at[buffer];
    bool ends_here = pass == BACKWARD || b->life.backward_last < 0;
    int last = pass == BACKWARD ? b->life.backward_last : b->life.forward_last;
    return !b->external && !b->held[FORWARD] && !b->held[BACKWARD] && ends_here && last >= 0 &&
           born_at(tape, buffer, pass, group, group[last]);
}

/* Bytes of a fused kernel: each buffer from outside is read once, what stays inside is neither
 * written nor read. seen[buffer]: the group that has counted it. */
static struct kernel_work fused_work(
    const struct tape *tape, int pass, const int *group, int from, int to, int *seen)
{
    struct kernel_work work = {.kind = KERNEL_ELEMENTWISE};
    double read_bytes = 0, born_bytes = 0, read_apart = 0, written_apart = 0;
    for (int k = from; k < to; k++) {
        const struct kernel_work *part = &tape->program[pass].at[k].work;
        read_apart += part->read_bytes;
        written_apart += part->write_bytes;
        work.flop += part->flop;
    }
    for (int i = 0; i < tape->touches[pass].n; i++) {
        struct tape_touched t = tape->touches[pass].at[i];
        if (t.buffer == NO_BUFFER || t.kernel < from || t.kernel >= to || seen[t.buffer] == from)
            continue;
        seen[t.buffer] = from;
        double bytes = (double)tape->buffers.at[t.buffer].life.bytes;
        if (!born_at(tape, t.buffer, pass, group, group[from]))
            read_bytes += bytes;
        else if (stays_inside(tape, t.buffer, pass, group))
            born_bytes += bytes;
    }
    work.read_bytes =
        read_bytes < read_apart ? read_bytes : read_apart; /* of a view, only a part is read */
    work.write_bytes = written_apart > born_bytes ? written_apart - born_bytes : 0;
    return work;
}

static void fuse_pass(struct tape *tape, int pass, const int *group)
{
    int *seen = xcalloc((size_t)tape->buffers.n + 1, sizeof *seen), n = 0;
    for (int i = 0; i < tape->buffers.n; i++)
        seen[i] = -1;
    for (int from = 0, to = 0; from < tape->program[pass].n; from = to, n++) {
        while (to < tape->program[pass].n && group[to] == group[from])
            to++;
        struct model_op kernel =
            tape->program[pass].at[to - 1]; /* only the last can complete a parameter */
        if (kernel.work.kind == KERNEL_NORM && tape->workload->fusion == FUSION_INDUCTOR)
            kernel.work.m = kernel.work.n = 0; /* Inductor splits long sums over rows */
        if (to - from > 1) {
            kernel.name = tape_suffix(tape, kernel.name, "fused");
            kernel.work = fused_work(tape, pass, group, from, to, seen);
        }
        tape->fused[pass][n] = kernel;
    }
    free(seen);
}

static void move_lives(struct tape *tape, int *const group[2])
{
    for (int i = 0; i < tape->buffers.n; i++) {
        struct tape_buffer *b = &tape->buffers.at[i];
        int pass = b->life.born_in_backward ? BACKWARD : FORWARD;
        b->vanished = stays_inside(tape, i, pass, group[pass]);
    }
    for (int i = 0; i < tape->buffers.n; i++) {
        struct model_activation *life = &tape->buffers.at[i].life;
        int pass = life->born_in_backward ? BACKWARD : FORWARD;
        if (life->born < tape->program[pass].n)
            life->born = group[pass][life->born];
        if (life->forward_last >= 0)
            life->forward_last = group[FORWARD][life->forward_last];
        if (life->backward_last >= 0)
            life->backward_last = group[BACKWARD][life->backward_last];
    }
}

void tape_fuse(struct tape *tape, int output_buffer)
{
    int *group[2], n[2];
    bool was_held = output_buffer != NO_BUFFER && tape->buffers.at[output_buffer].held[FORWARD];
    if (output_buffer != NO_BUFFER)
        tape->buffers.at[output_buffer].held[FORWARD] = true; /* it goes on to the next segment */
    for (int pass = FORWARD; pass <= BACKWARD; pass++) {
        group[pass] = xcalloc((size_t)tape->program[pass].n + 1, sizeof *group[pass]);
        n[pass] = group_kernels(tape, pass, group[pass]);
    }
    remake_all(tape, group[FORWARD], n[FORWARD]);
    for (int pass = FORWARD; pass <= BACKWARD; pass++) {
        tape->fused[pass] = ARENA_ARRAY(tape->arena, struct model_op, n[pass]);
        fuse_pass(tape, pass, group[pass]);
    }
    move_lives(tape, group);
    for (int pass = FORWARD; pass <= BACKWARD; pass++) {
        for (int k = 0; k < n[pass]; k++)
            tape->program[pass].at[k] = tape->fused[pass][k];
        tape->program[pass].n = n[pass];
        free(group[pass]);
    }
    if (output_buffer != NO_BUFFER)
        tape->buffers.at[output_buffer].held[FORWARD] = was_held;
}
