/* Muon: momentum, orthogonalisation by Newton-Schulz steps in BF16, and which rank does it for
 * which matrix.
 *
 * Each matrix is multiplied in its wide form, m <= n: MUON_STEPS times a Gram product, its square
 * and the update. A rank that has a shard of a matrix needs it whole: all ranks gather and
 * orthogonalise every matrix (step_on()), or each matrix goes to one rank and back by all_to_alls
 * (step_on_dealt()).
 *
 * Dealing: matrices, largest first, go to the ranks back and forth (0 1 2, 2 1 0, ...). The program
 * is that of the rank with the most FLOP, as the others wait for it. */
#include "strategy/muon.h"

#include <stdlib.h>

enum { BF16_BYTES = 2 };

static struct optimizer_tensor muon_part_of(struct optimizer_tensor tensor, int64_t matrices)
{
    tensor.rows = tensor.rows / tensor.matrices * matrices;
    tensor.matrices = matrices;
    return tensor;
}

struct optimizer_tensor muon_tensor(
    const struct model *model, int optimizer, const struct model_tensor *tensor)
{
    return (struct optimizer_tensor){.rows = tensor->rows,
        .cols = tensor->cols,
        .matrices = optimizer == OPTIMIZER_MUON ? model_block_matrices(model, tensor) : 0};
}

/* ---- orthogonalisation ---- */

/* A matrix as it is multiplied, m <= n. */
struct wide {
    int64_t m, n;
};

static struct wide wide_of(struct optimizer_tensor tensor)
{
    int64_t rows = tensor.rows / tensor.matrices, cols = tensor.cols;
    return rows < cols ? (struct wide){rows, cols} : (struct wide){cols, rows};
}

double muon_flop(struct optimizer_tensor tensor)
{
    struct wide x = wide_of(tensor);
    double m = (double)x.m, n = (double)x.n;
    return (double)tensor.matrices * MUON_STEPS * (4 * m * m * n + 2 * m * m * m);
}

static void kernel(struct emit *emit, const char *name, struct kernel_work work)
{
    plan_kernel(&emit->builder, STREAM_COMPUTE,
        arena_printf(emit->arena, "optimizer/muon/%s", name), work,
        emit->options->host.kernel_issue_s);
}

static void muon_stream(struct emit *emit, const char *name, double reads, double writes)
{
    kernel(emit, name, kernel_stream(KERNEL_OPTIMIZER, reads, writes, 0));
}

static void muon_multiply(struct emit *emit, const char *name, int64_t m, int64_t n, int64_t k)
{
    kernel(emit, name, kernel_gemm(m, n, k, 1, DTYPE_BF16, BF16_BYTES, BF16_BYTES));
}

/* torch.addmm, of a sum of m x n and a product with k in between: one call that launches two
 * kernels. */
static void add_product(struct emit *emit, const char *name, int64_t m, int64_t n, int64_t k)
{
    double bytes = (double)(BF16_BYTES * m * n), inner_s = emit->options->host.inner_issue_s;
    struct kernel_work work = kernel_gemm(m, n, k, 1, DTYPE_BF16, BF16_BYTES, BF16_BYTES);
    work.read_bytes += bytes;
    muon_stream(emit, arena_printf(emit->arena, "%s.copy_", name), bytes, bytes);
    plan_kernel(&emit->builder, STREAM_COMPUTE,
        arena_printf(emit->arena, "optimizer/muon/%s", name), work,
        inner_s > 0 ? inner_s : emit->options->host.kernel_issue_s);
}

static void orthogonalise(struct emit *emit, struct wide x)
{
    double bytes = (double)(BF16_BYTES * x.m * x.n);
    int made = plan_alloc(&emit->builder, STREAM_COMPUTE, "optimizer/muon/products",
        BF16_BYTES * (x.m * x.n + 2 * x.m * x.m), HBM_OPTIMIZER);
    muon_stream(emit, "norm", bytes, BF16_BYTES);
    muon_stream(emit, "clamp", BF16_BYTES, BF16_BYTES);
    muon_stream(emit, "div_", bytes, bytes);
    for (int i = 0; i < MUON_STEPS; i++) {
        muon_multiply(emit, "gram", x.m, x.m, x.n);
        add_product(emit, "gram_update", x.m, x.m, x.m);
        add_product(emit, "update", x.m, x.n, x.m);
    }
    plan_free(&emit->builder, made, PLAN_NO_OP);
}

/* ---- the step ---- */

/* BF16 updates of what this rank has moments of; returns their buffer. */
static int momentum(struct emit *emit, struct optimizer_tensor tensor)
{
    int64_t numel = optimizer_numel(tensor), step = emit->step_bytes;
    double bytes = (double)(numel * step);
    int nesterov = plan_alloc(
        &emit->builder, STREAM_COMPUTE, "optimizer/muon/nesterov", numel * step, HBM_OPTIMIZER);
    muon_stream(emit, "momentum.lerp_", 2 * bytes, bytes);
    muon_stream(emit, "nesterov.lerp", 2 * bytes, bytes);
    int update = plan_alloc(
        &emit->builder, STREAM_COMPUTE, "optimizer/muon/update", numel * BF16_BYTES, HBM_OPTIMIZER);
    muon_stream(emit, "bfloat16", bytes, (double)(numel * BF16_BYTES));
    plan_free(&emit->builder, nesterov, PLAN_NO_OP);
    return update;
}

static void muon_apply(struct emit *emit, struct optimizer_tensor tensor, int update)
{
    double numel = (double)optimizer_numel(tensor), bytes = numel * (double)emit->step_bytes;
    muon_stream(emit, "param.mul_", bytes, bytes);
    muon_stream(emit, "param.add_", bytes + numel * BF16_BYTES, bytes);
    plan_free(&emit->builder, update, PLAN_NO_OP);
}

static void exchange(
    struct emit *emit, const char *name, enum coll_kind kind, double bytes, int group)
{
    plan_stream_wait(&emit->builder, STREAM_COMPUTE,
        emit_collective(emit, STREAM_COMM, plan_last_op(&emit->builder, STREAM_COMPUTE),
            arena_printf(emit->arena, "optimizer/muon/%s", name), kind, bytes, group));
}

void muon_gather(struct emit *emit, double bytes, int group)
{
    exchange(emit, "params/all_gather", COLL_ALL_GATHER, bytes, group);
}

/* Every rank all of the tensor's matrices. */
static void step_on(struct emit *emit, struct optimizer_tensor tensor)
{
    int update = momentum(emit, tensor), whole = PLAN_NO_OP;
    int64_t bytes = tensor.rows * tensor.cols * BF16_BYTES;
    if (tensor.ranks > 1) {
        whole = plan_alloc(
            &emit->builder, STREAM_COMPUTE, "optimizer/muon/gathered", bytes, HBM_GATHERED);
        exchange(emit, "update/all_gather", COLL_ALL_GATHER, (double)bytes, tensor.group);
    }
    for (int64_t i = 0; i < tensor.matrices; i++)
        orthogonalise(emit, wide_of(tensor));
    muon_apply(emit, tensor, update);
    plan_free(&emit->builder, whole, PLAN_NO_OP);
}

/* A matrix of this rank; while it comes and goes each other rank has another one. */
static void step_on_own(struct emit *emit, struct optimizer_tensor own)
{
    struct wide x = wide_of(own);
    int64_t bytes = x.m * x.n * BF16_BYTES;
    for (int64_t i = 0; i < own.matrices; i++) {
        int whole = plan_alloc(
            &emit->builder, STREAM_COMPUTE, "optimizer/muon/gathered", bytes, HBM_GATHERED);
        exchange(emit, "update/all_to_all", COLL_ALL_TO_ALL, (double)bytes, own.group);
        orthogonalise(emit, x);
        exchange(emit, "update/all_to_all_back", COLL_ALL_TO_ALL, (double)bytes, own.group);
        plan_free(&emit->builder, whole, PLAN_NO_OP);
    }
}

/* Shards of matrices, which ranks of a group have of all of them. */
static void step_on_dealt(struct emit *emit, const struct optimizer_tensor *shards, int n)
{
    struct optimizer_tensor *own = ARENA_ARRAY(emit->arena, struct optimizer_tensor, n);
    int *updates = ARENA_ARRAY(emit->arena, int, n);
    for (int i = 0; i < n; i++) {
        own[i] = shards[i];
        updates[i] = momentum(emit, shards[i]);
    }
    int n_own = muon_deal(own, n, shards[0].ranks);
    for (int i = 0; i < n_own; i++)
        step_on_own(emit, own[i]);
    for (int i = 0; i < n; i++)
        muon_apply(emit, shards[i], updates[i]);
}

/* The shards from the i-th on that are of its group. */
static int of_group(
    struct optimizer_tensor *out, const struct optimizer_tensor *tensors, int n, int i, bool *done)
{
    int found = 0;
    for (int k = i; k < n; k++) {
        if (tensors[k].matrices == 0 || tensors[k].ranks <= 1 ||
            tensors[k].group != tensors[i].group)
            continue;
        out[found++] = tensors[k];
        done[k] = true;
    }
    return found;
}

const struct optimizer_tensor *muon_step(
    struct emit *emit, const struct optimizer_tensor *tensors, int *n)
{
    struct optimizer_tensor *rest = ARENA_ARRAY(emit->arena, struct optimizer_tensor, *n),
                            *shards = ARENA_ARRAY(emit->arena, struct optimizer_tensor, *n);
    bool deals = muon_distributes(emit->options), *done = ARENA_ARRAY(emit->arena, bool, *n);
    int left = 0;
    for (int i = 0; i < *n; i++) {
        if (tensors[i].matrices == 0)
            rest[left++] = tensors[i];
        else if (!deals || tensors[i].ranks <= 1)
            step_on(emit, tensors[i]);
        else if (!done[i])
            step_on_dealt(emit, shards, of_group(shards, tensors, *n, i, done));
    }
    *n = left;
    return rest;
}

/* ---- dealing ---- */

struct dealt {
    int64_t numel;
    int tensor, rank;
};

static int largest_first(const void *a, const void *b)
{
    const struct dealt *x = a, *y = b;
    if (x->numel != y->numel)
        return x->numel < y->numel ? 1 : -1;
    return x->tensor < y->tensor ? -1 : x->tensor > y->tensor;
}

/* Every matrix with its rank. */
static int deal(struct dealt *cards, const struct optimizer_tensor *tensors, int n, int ranks)
{
    int n_cards = 0;
    for (int i = 0; i < n; i++)
        for (int64_t k = 0; k < tensors[i].matrices; k++)
            cards[n_cards++] = (struct dealt){
                .numel = tensors[i].rows / tensors[i].matrices * tensors[i].cols, .tensor = i};
    qsort(cards, (size_t)n_cards, sizeof *cards, largest_first);
    for (int c = 0; c < n_cards; c++) {
        int place = c % ranks;
        cards[c].rank = c / ranks % 2 == 0 ? place : ranks - 1 - place;
    }
    return n_cards;
}

static int muon_busiest(
    const struct dealt *cards, int n_cards, const struct optimizer_tensor *tensors, int ranks)
{
    double *flop = xcalloc((size_t)ranks, sizeof *flop);
    int most = 0;
    for (int c = 0; c < n_cards; c++)
        flop[cards[c].rank] += muon_flop(muon_part_of(tensors[cards[c].tensor], 1));
    for (int r = 1; r < ranks; r++)
        if (flop[r] > flop[most])
            most = r;
    free(flop);
    return most;
}

int muon_deal(struct optimizer_tensor *tensors, int n, int ranks)
{
    int64_t all = 0;
    int left = 0;
    for (int i = 0; i < n; i++)
        all += tensors[i].matrices;
    struct dealt *cards = xcalloc((size_t)all + 1, sizeof *cards);
    int64_t *counts = xcalloc((size_t)n + 1, sizeof *counts);
    int n_cards = deal(cards, tensors, n, ranks),
        rank = muon_busiest(cards, n_cards, tensors, ranks);
    for (int c = 0; c < n_cards; c++)
        counts[cards[c].tensor] += cards[c].rank == rank;
    for (int i = 0; i < n; i++) {
        if (tensors[i].matrices == 0)
            tensors[left++] = tensors[i];
        else if (counts[i] > 0)
            tensors[left++] = muon_part_of(tensors[i], counts[i]);
    }
    free(counts);
    free(cards);
    return left;
}
