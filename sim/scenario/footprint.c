#include "scenario/footprint.h"

#include <math.h>
#include <string.h>

/* Bytes. Measured as peak resident memory of the release program on 64-bit Linux (results/NOTES.md, "Memory of a
 * worker"), the highest of each kind, rounded up. */
static const double PROCESS_BYTES = 7 * 1024 * 1024; /* the program, what it has loaded, and what any run needs */
static const double OP_BYTES = 224;        /* in the plan, in the tables of a run, in the memory timeline: 123 to 219 */
static const double GPU_BYTES = 2 * 1024;  /* links, places in groups: 1.5 KiB between 8,192 and 16,384 GPUs */
static const double RANK_BYTES = 4 * 1024; /* queues and host: 3 KiB with 8 queues */
/* Of a rank's allocator: blocks and pools; a number of 4 bytes for each tensor, of which there are 0.3 to 0.4 an op. */
static const double LEDGER_BYTES = 160 * 1024, LEDGER_OP_BYTES = 2;

/* Ops of a block and micro-batch: 156 to 838 in flopcast's scenarios, most with checkpointing and LoRA. Of an expert
 * that has separate kernels: about 22 kernels forward, backward and recomputed, and each one's output comes and goes.
 * What is done once a step, such as bucketed communication, is less than what is rounded up here. */
static const double MOST_OPS_A_BLOCK = 1000, MOST_OPS_AN_EXPERT = 100;

/* Below this a run of one rank of each program is no small part of a run of all. */
static const double RANKS_A_PROGRAM = 16;

double footprint_bytes(const struct footprint *footprint)
{
    double ledger_bytes = LEDGER_BYTES + LEDGER_OP_BYTES * footprint->ops / footprint->programs;
    double rank_bytes = RANK_BYTES + (footprint->ledgers ? ledger_bytes : 0);
    return PROCESS_BYTES + footprint->ops * OP_BYTES + footprint->gpus * GPU_BYTES + footprint->ranks * rank_bytes;
}

static bool may_have_ledgers(const struct exec_options *exec)
{
    return exec_noise_is_on(&exec->noise) && !exec->no_memory;
}

struct footprint footprint_at_most(const struct scenario_point *point)
{
    const struct strategy_options *strategy = &point->options.strategy;
    const struct model_moe *moe = &point->model.shape.moe;
    double gpus = (double)point->options.cluster.gpus;
    double experts = (double)moe->experts / (double)strategy_expert_axis(&strategy->parallelism);
    double block_ops = MOST_OPS_A_BLOCK + MOST_OPS_AN_EXPERT * experts;
    return (struct footprint){
        .ops = block_ops * point->model.n_layers * (double)strategy_batch(&strategy->train).micro_batches,
        .programs = fmax((double)strategy->parallelism.pipeline, 1),
        .gpus = gpus,
        .ranks = gpus,
        .ledgers = may_have_ledgers(&point->options.exec)};
}

struct footprint footprint_of_plan(const struct scenario_point *point, const struct plan *plan)
{
    const struct exec_options *exec = &point->options.exec;
    struct footprint out = {.ops = plan_ops(plan), .programs = plan->n_programs, .gpus = plan->mesh.ranks};
    out.ranks = exec_ranks_at_most(plan, &point->hw, exec);
    out.ledgers = out.ranks > plan->n_programs && may_have_ledgers(exec);
    if (out.ledgers && out.ranks >= RANKS_A_PROGRAM * out.programs)
        out.ledgers = exec_has_ledgers(plan, &point->hw, exec);
    return out;
}

/* ---- few micro-batches for many ---- */

/* Of one micro-batch for each stage, so that interleaved schedules divide, times n. */
static enum status compile_waves(
    struct plan *out, const struct scenario_point *point, int64_t n, struct arena *arena, struct diag *diag)
{
    struct scenario_point few = *point;
    struct train_options *train = &few.options.strategy.train;
    train->global_batch = train->device_batch = 0;
    train->grad_accum = n;
    return scenario_compile(out, &few, arena, diag);
}

static enum status find_whole(struct footprint *out, const struct scenario_point *point, struct diag *diag)
{
    struct arena arena = ARENA_INIT;
    struct plan plan = {0};
    enum status status = scenario_compile(&plan, point, &arena, diag);
    if (status == STATUS_OK)
        *out = footprint_of_plan(point, &plan);
    plan_release(&plan);
    arena_release(&arena);
    return status;
}

/* What a wave of micro-batches adds, all the others add, too. */
static enum status find_by_waves(
    struct footprint *out, const struct scenario_point *point, int64_t micro_batches, int64_t wave, struct diag *diag)
{
    struct arena arena = ARENA_INIT;
    struct plan one = {0}, two = {0};
    enum status status = compile_waves(&one, point, wave, &arena, diag);
    if (status == STATUS_OK)
        status = compile_waves(&two, point, 2 * wave, &arena, diag);
    if (status == STATUS_OK) {
        double first = plan_ops(&one), more = plan_ops(&two) - first;
        out->ops = first + more * (double)(micro_batches - wave) / (double)wave;
        out->programs = one.n_programs;
        out->ranks = exec_ranks_at_most(&one, &point->hw, &point->options.exec);
    }
    plan_release(&one);
    plan_release(&two);
    arena_release(&arena);
    return status;
}

enum status footprint_find(struct footprint *out, const struct scenario_point *point, struct diag *diag)
{
    const struct strategy_options *strategy = &point->options.strategy;
    int64_t micro_batches = strategy_batch(&strategy->train).micro_batches;
    int64_t wave = strategy->parallelism.pipeline > 1 ? strategy->parallelism.pipeline : 1;
    *out = footprint_at_most(point);
    bool whole = micro_batches <= 3 * wave || (out->ledgers && out->ranks >= RANKS_A_PROGRAM * out->programs);
    return whole ? find_whole(out, point, diag) : find_by_waves(out, point, micro_batches, wave, diag);
}

/* ---- several ---- */

/* Where only padding differs a point is looked at once more, and nothing else. */
static bool same_bytes(const void *a, const void *b, size_t n)
{
    return memcmp(a, b, n) == 0;
}

/* Points that differ in seeds, in how much GPUs vary, in numbers of the network: their plans have the same ops, and
 * whether cudaMalloc fails is decided by a run without noise. */
static bool is_alike(const struct scenario_point *a, const struct scenario_point *b)
{
    const struct scenario *one = &a->options, *two = &b->options;
    return same_bytes(&one->strategy, &two->strategy, sizeof one->strategy) &&
           same_bytes(&one->exec.allocator, &two->exec.allocator, sizeof one->exec.allocator) &&
           same_bytes(
               &a->hw.gpu.hbm_capacity.value, &b->hw.gpu.hbm_capacity.value, sizeof a->hw.gpu.hbm_capacity.value) &&
           one->cluster.gpus == two->cluster.gpus && one->cluster.topology == two->cluster.topology &&
           one->exec.fold == two->exec.fold && one->exec.link_events.n == two->exec.link_events.n &&
           one->exec.gpu_events.n == two->exec.gpu_events.n &&
           may_have_ledgers(&one->exec) == may_have_ledgers(&two->exec) && a->model.layers == b->model.layers;
}

typedef VEC(int) places;

void footprint_each(double *bytes, const struct scenario_point *const *points, int n, const bool *skipped, int workers,
    double available)
{
    places found = {0};
    for (int i = 0; i < n; i++) {
        struct footprint footprint = footprint_at_most(points[i]);
        bytes[i] = skipped && skipped[i] ? 0 : footprint_bytes(&footprint);
        if (bytes[i] * workers <= available)
            continue;
        int like = found.n - 1;
        while (like >= 0 && !is_alike(points[found.at[like]], points[i]))
            like--;
        if (like >= 0) {
            bytes[i] = bytes[found.at[like]];
            continue;
        }
        struct diag diag = DIAG_INIT; /* whoever simulates it says what is wrong */
        footprint_find(&footprint, points[i], &diag);
        bytes[i] = footprint_bytes(&footprint);
        vec_push(&found, i);
    }
    vec_free(&found);
}
