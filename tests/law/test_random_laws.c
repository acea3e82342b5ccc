/* Laws at random points: models of every family and size, clusters, strategies, sizes of batches.
 * - A faster NIC or NVLink, a shorter latency, a GPU that computes faster, more HBM bandwidth: the
 * step takes at most 1 % longer, or the program says why: by the allocator's retries (in every
 * result), or by what kernels lose beside
 *   collectives (contention_s, in every result): cuBLAS chooses a tile for the whole GPU
 *   (kernel/gemm.h), and the one of a faster GPU may take another wave where a collective holds
 *   SMs. Without that the law holds.
 * - However many steps of warm-up are asked for, the mean is the same, unless cudaMalloc fails in
 *   measured steps.
 * - Kernels take longer beside a collective that only waits by what its SMs and launch slots
 *   explain: LONG_LOSS of a long kernel, SHORT_LOSS_S of each, whatever the speed of NICs; or where
 *   tiles just fill the GPU, at most by what they take if collectives are beside them all the time.
 * - MFU <= HFU <= 1, also where the optimizer multiplies in BF16 and the model in FP32 (muon).
 *   NVLinks and NICs are in use for 0 to all of the time.
 * FLOPCAST_LAW_DRAWS=10000 in the environment: that many points instead of DRAWS. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "../combinations.h"
#include "draws.h"
#include "exec/exec.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DRAWS = 150 };

static const char *const clusters[] = {"h100-8x400g", "a100-80gb-roce-2tb", "a100-80gb-4x100g",
    "h200-4x400g", "b200-8x400g", "aws-p4d-efa", "gcp-a3-mega", "dgx-1v-ib", "l40s-2x200g",
    "slingshot-4xh100"};
enum { CLUSTERS = sizeof clusters / sizeof *clusters };
static struct hw systems[CLUSTERS];
static struct arena files;

static int load(void **state)
{
    (void)state;
    for (int i = 0; i < CLUSTERS; i++)
        load_cluster(&systems[i], clusters[i], &files);
    return 0;
}

static int release(void **state)
{
    (void)state;
    arena_release(&files);
    return 0;
}

struct drawn_point {
    struct drawn job;
    struct model_shape shape;
    const char *cluster;
    struct hw hw;
};

/* The cases of combinations.h, with matrices up to 64 times as wide and sequences up to 64 times as
 * long, on up to 8 nodes of any cluster. */
static void draw_point(struct drawn_point *out, int number, struct rng_stream *rng)
{
    out->job = draw(number);
    out->shape = *out->job.shape;
    int64_t wide = ONE_OF(rng, 1, 4, 16, 64);
    if (out->shape.image_size == 0 && out->shape.family != MODEL_DHEN) {
        out->shape.d_model *= wide;
        out->shape.d_ff *= wide;
        out->shape.n_heads *= wide;
        out->shape.n_kv_heads *= wide;
        int64_t most = out->shape.max_positions > 0 ? out->shape.max_positions : 4096;
        int64_t *length = &out->job.options.train.seq_len, longer = *length * ONE_OF(rng, 1, 8, 64);
        *length = longer > most ? most : longer;
    }
    out->job.shape = &out->shape;
    int at = below(rng, CLUSTERS);
    out->cluster = clusters[at];
    out->hw = systems[at];
    int a_node = (int)out->hw.node.gpus.value;
    if (out->job.gpus > 1)
        out->job.gpus = a_node * (int)ONE_OF(rng, 1, 2, 4, 8);
}

struct run {
    struct exec_result result;
    bool taken;
    double mfu, hfu;
    double beside_s; /* kernels of the compute stream, were collectives beside them all the time */
    int kernels;
};

static double beside_s(const struct plan *plan, const struct hw *hw)
{
    double held[STREAM_COUNT] = {0}, taken_Bps[STREAM_COUNT] = {0}, sum = 0;
    const struct plan_program *program = &plan->programs[0];
    for (int i = 0; i < program->ops.n; i++) {
        const struct plan_op *op = &program->ops.at[i];
        if (op->kind != OP_COLLECTIVE)
            continue;
        const struct plan_collective *coll = &plan->collectives.at[op->index];
        const struct mesh_group *ranks = &plan->groups.at[coll->group].ranks;
        struct coll_shape shape = coll_shape(
            (struct coll_group){0, ranks->stride, ranks->size}, (int)hw->node.gpus.value);
        struct coll_cost cost = coll_choose(coll->kind, coll->bytes, shape, hw, COLL_FREE);
        held[op->stream] = fmax(held[op->stream], cost.sms);
        taken_Bps[op->stream] = fmax(taken_Bps[op->stream], coll_hbm_Bps(cost));
    }
    struct kernel_share left = kernel_whole_gpu(&hw->gpu);
    for (int q = 0; q < STREAM_COUNT; q++) {
        left.sms -= held[q];
        left.hbm_Bps += taken_Bps[q];
    }
    for (int i = 0; i < program->ops.n; i++)
        if (program->ops.at[i].kind == OP_KERNEL && program->ops.at[i].stream == STREAM_COMPUTE)
            sum += kernel_duration_s(&plan->kernels.at[program->ops.at[i].index], &hw->gpu, left);
    return sum;
}

static double at_peaks_s(const struct plan *plan, const struct hw *hw)
{
    double sum = 0;
    for (enum dtype math = 0; math < DTYPE_COUNT; math++)
        if (plan_math_flop(plan, math) > 0)
            sum += plan_math_flop(plan, math) / hw->gpu.gemm[math].peak.value;
    return sum;
}

static struct run execute_with(struct exec_options options, const struct drawn_point *point,
    const struct hw *hw, const struct hw *chosen_on)
{
    struct arena arena = ARENA_INIT;
    struct plan plan;
    struct run run = {.taken = compile_drawn(&plan, &point->job, hw, &arena)};
    if (run.taken) {
        options.steps = 1;
        options.chosen_on = chosen_on;
        exec_run(&run.result, &plan, hw, &options, &arena);
        double peak = hw->gpu.gemm[strategy_math(&point->job.options.train)].peak.value;
        double could = run.result.step_time_s * peak;
        run.taken = run.result.status == EXEC_OK && !run.result.overlong && could > 0;
        run.mfu = plan_model_flop(&plan, ATTENTION_FLOP_CAUSAL) / could;
        run.hfu = at_peaks_s(&plan, hw) / run.result.step_time_s;
        run.beside_s = beside_s(&plan, hw);
        for (int i = 0; i < plan.programs[0].ops.n; i++)
            run.kernels += plan.programs[0].ops.at[i].kind == OP_KERNEL;
    }
    plan_release(&plan);
    arena_release(&arena);
    return run;
}

static struct run execute_after(int warmup_steps, const struct drawn_point *point)
{
    struct exec_options options = exec_default_options();
    options.warmup_steps = warmup_steps;
    return execute_with(options, point, &point->hw, NULL);
}

static struct run execute(
    const struct drawn_point *point, const struct hw *hw, const struct hw *chosen_on)
{
    return execute_with(exec_default_options(), point, hw, chosen_on);
}

static void nic(struct hw *hw, double by)
{
    hw->node.nic_bandwidth.value *= by;
}

static void nvlink(struct hw *hw, double by)
{
    hw->node.gpu_bandwidth.value *= by;
}

static void latency(struct hw *hw, double by)
{
    hw->cluster.nccl_net_latency.value /= by;
}

static void compute(struct hw *hw, double by)
{
    for (int d = 0; d < DTYPE_COUNT; d++)
        hw->gpu.gemm[d].peak.value *= by;
    hw->gpu.vector_flops.value *= by;
}

static void hbm(struct hw *hw, double by)
{
    hw->gpu.hbm_bandwidth.value *= by;
}

static const struct {
    const char *name;
    void (*faster)(struct hw *, double);
} changes[] = {{"NIC", nic}, {"NVLink", nvlink}, {"network latency", latency}, {"compute", compute},
    {"HBM", hbm}};
enum { CHANGES = sizeof changes / sizeof *changes };

static const double SLOWER = 1.01;

static void describe_point(const struct drawn_point *point)
{
    const struct strategy_options *o = &point->job.options;
    print_message("case %d, %s, %d GPUs, %s x %" PRId64 ", %s, %s, batch %" PRId64 " x %" PRId64
                  " x %" PRId64 ": ",
        point->job.number, point->cluster, point->job.gpus, point->shape.name, point->shape.d_model,
        strategy_label(o), precision_names[o->train.precision], o->train.micro_batch,
        o->train.grad_accum, o->train.seq_len);
}

/* How the program explains that a step takes longer with something faster; NULL: not at all. */
static const char *said(const struct run *slow, const struct run *fast)
{
    if (fast->result.memory.alloc_retries > slow->result.memory.alloc_retries)
        return "retries";
    double bound_s = SLOWER * slow->result.step_time_s;
    double loss_s = fast->result.breakdown.contention_s - slow->result.breakdown.contention_s;
    return fast->result.step_time_s - fmax(0, loss_s) <= bound_s ? "kernels beside collectives"
                                                                 : NULL;
}

static void faster_is_no_slower(void **state)
{
    (void)state;
    int taken = 0, by_allocator = 0, by_kernels = 0, violations = 0;
    for (int number = 0; number < law_draws(DRAWS); number++) {
        struct rng_stream rng = rng_stream(7, 0, (uint64_t)number);
        struct drawn_point point;
        draw_point(&point, number, &rng);
        int change = below(&rng, CHANGES);
        double by = exp2(2 * rng_uniform(&rng));
        struct run slow = execute(&point, &point.hw, NULL);
        if (!slow.taken)
            continue;
        struct hw hw = point.hw;
        changes[change].faster(&hw, by);
        struct run fast = execute(&point, &hw, NULL);
        taken++;
        if (fast.taken && fast.result.step_time_s <= SLOWER * slow.result.step_time_s)
            continue;
        const char *why = fast.taken ? said(&slow, &fast) : NULL;
        by_allocator += why && why[0] == 'r';
        by_kernels += why && why[0] == 'k';
        violations += !why;
        describe_point(&point);
        print_message("%s x %.2f: %.6g s, before %.6g s, retries %g, before %g: %s\n",
            changes[change].name, by, fast.result.step_time_s, slow.result.step_time_s,
            fast.result.memory.alloc_retries, slow.result.memory.alloc_retries,
            why ? why : "NOT SAID");
    }
    print_message("%d points: %d slower by more than 1 %%, by the allocator %d, by kernels beside "
                  "collectives %d, not said %d\n",
        taken, by_allocator + by_kernels + violations, by_allocator, by_kernels, violations);
    assert_true(taken > law_draws(DRAWS) / 3);
    assert_int_equal(violations, 0);
}

/* Every rank, with a noise that is none. */
static double all_ranks_s(int warmup_steps, const struct drawn_point *point)
{
    struct exec_options options = exec_default_options();
    options.warmup_steps = warmup_steps;
    options.noise.host_jitter = 1e-12;
    return execute_with(options, point, &point->hw, NULL).result.step_time_s;
}

/* The mean of the measured steps is that of any later ones, unless the allocator tries again in
 * each of them. */
static void more_warm_up_changes_nothing(void **state)
{
    (void)state;
    static const double LATER = 1e-3, COLD = 1e-3;
    double worst = 0;
    int taken = 0, retrying = 0, violations = 0;
    for (int number = 0; number < law_draws(DRAWS); number++) {
        struct rng_stream rng = rng_stream(10, 0, (uint64_t)number);
        struct drawn_point point;
        draw_point(&point, number, &rng);
        struct run first = execute_after(1, &point);
        if (!first.taken)
            continue;
        taken++;
        double shortest = first.result.step_time_s, longest = shortest;
        bool retries = first.result.memory.alloc_stall_s > 0;
        for (int warmup = 2; warmup <= 6; warmup++) {
            struct run later = execute_after(warmup, &point);
            shortest = fmin(shortest, later.result.step_time_s);
            longest = fmax(longest, later.result.step_time_s);
            retries |= later.result.memory.alloc_stall_s > 0;
        }
        retrying += retries;
        bool all = point.job.gpus <= 16 && !retries;
        double one_s = all ? all_ranks_s(1, &point) : 1, more_s = all ? all_ranks_s(6, &point) : 1;
        worst = fmax(worst, fabs(more_s / one_s - 1));
        if (retries || (longest <= (1 + LATER) * shortest && fabs(more_s / one_s - 1) < COLD))
            continue;
        violations++;
        describe_point(&point);
        print_message("%.9g to %.9g s after 1 to 6 steps, %.9g after one; all ranks %.9g after "
                      "one, %.9g after six\n",
            shortest, longest, first.result.step_time_s, one_s, more_s);
    }
    print_message(
        "%d points, %d of them retry; all ranks differ by %.2g at most\n", taken, retrying, worst);
    assert_true(taken > law_draws(DRAWS) / 3);
    assert_int_equal(violations, 0);
}

/* A run with this number of measured steps, behind a warm-up as long as asked, or as long as it
 * needs. */
static struct exec_result run_steps(const struct plan *plan, const struct hw *hw, int warmup_steps,
    int steps, bool as_asked, struct arena *arena)
{
    struct exec_options options = exec_default_options();
    struct exec_result result;
    options.warmup_steps = warmup_steps;
    options.steps = steps;
    options.from_the_start = as_asked;
    exec_run(&result, plan, hw, &options, arena);
    return result;
}

static bool same_run(const struct exec_result *a, const struct exec_result *b)
{
    return a->digest == b->digest && a->events == b->events && a->step_time_s == b->step_time_s &&
           memcmp(&a->breakdown, &b->breakdown, sizeof a->breakdown) == 0 &&
           a->memory.peak_reserved_bytes == b->memory.peak_reserved_bytes &&
           a->memory.alloc_stall_s == b->memory.alloc_stall_s &&
           a->memory.alloc_retries_a_step == b->memory.alloc_retries_a_step &&
           a->nic_utilisation == b->nic_utilisation &&
           a->nvlink_utilisation == b->nvlink_utilisation && a->n_timeline == b->n_timeline &&
           (a->n_timeline == 0 ||
               memcmp(a->timeline, b->timeline, sizeof *a->timeline * (size_t)a->n_timeline) == 0);
}

/* A run whose warm-up gets longer while it goes on is, event by event, the one that was asked for
 * as long a warm-up from the start, and no shorter warm-up is steady. HBM is what the job has
 * reserved on a whole GPU, less a little. */
static void warm_up_grows_as_if_asked(void **state)
{
    (void)state;
    enum { LEAST = 2, MOST = 8 };
    int taken = 0, longer = 0, longest = 0;
    for (int number = 0; number < law_draws(DRAWS); number++) {
        struct rng_stream rng = rng_stream(11, 0, (uint64_t)number);
        struct drawn_point point;
        struct arena arena = ARENA_INIT;
        struct plan plan;
        draw_point(&point, number, &rng);
        int steps = 1 + below(&rng, 3);
        double share = 0.9 + 0.1 * rng_uniform(&rng);
        if (compile_drawn(&plan, &point.job, &point.hw, &arena)) {
            struct exec_result whole = run_steps(&plan, &point.hw, LEAST, steps, false, &arena);
            struct hw hw = point.hw;
            hw.gpu.hbm_capacity.value = share * (whole.memory.peak_reserved_bytes + 4e9);
            struct exec_result grown = run_steps(&plan, &hw, LEAST, steps, false, &arena),
                               asked = {0};
            int warmup = LEAST - 1;
            bool same = false;
            for (bool steady = false;
                 !steady && !same && warmup < MOST && grown.status == EXEC_OK;) {
                double before_s = run_steps(&plan, &hw, warmup, 1, true, &arena).step_time_s;
                asked = run_steps(&plan, &hw, ++warmup, steps, true, &arena);
                same = same_run(&grown, &asked);
                double now_s = run_steps(&plan, &hw, warmup, 1, true, &arena).step_time_s;
                steady =
                    asked.memory.alloc_stall_s == 0 && fabs(now_s - before_s) <= 0.99e-3 * now_s;
            }
            if (grown.status == EXEC_OK && !grown.overlong && !same) {
                describe_point(&point);
                fail_msg(
                    "%d steps: no run that was asked for is the same up to %d steps of warm-up",
                    steps, warmup);
            }
            taken += same;
            longer += same && warmup > LEAST;
            longest += same && warmup == MOST;
        }
        plan_release(&plan);
        arena_release(&arena);
    }
    print_message(
        "%d points, %d with a longer warm-up, %d with the longest\n", taken, longer, longest);
    assert_true(taken > law_draws(DRAWS) / 3 && longer > law_draws(DRAWS) / 20 && longest > 0);
}

static bool is_share(double value)
{
    return value >= 0 && value <= 1 + 1e-9;
}

static void shares_are_at_most_one(void **state)
{
    (void)state;
    int taken = 0, violations = 0, muon = 0;
    double most = 0, nic = 0, nvlink = 0;
    for (int number = 0; number < law_draws(DRAWS); number++) {
        struct rng_stream rng = rng_stream(8, 0, (uint64_t)number);
        struct drawn_point point;
        draw_point(&point, number, &rng);
        if (one_in(&rng, 4))
            point.job.options.train.optimizer = OPTIMIZER_MUON;
        struct run run = execute(&point, &point.hw, NULL);
        if (!run.taken)
            continue;
        taken++;
        muon += point.job.options.train.optimizer == OPTIMIZER_MUON;
        most = fmax(most, run.hfu);
        nic = fmax(nic, run.result.nic_utilisation);
        nvlink = fmax(nvlink, run.result.nvlink_utilisation);
        if (run.mfu <= run.hfu * (1 + 1e-12) && is_share(run.hfu) &&
            is_share(run.result.nic_utilisation) && is_share(run.result.nvlink_utilisation))
            continue;
        violations++;
        describe_point(&point);
        print_message("MFU %.4f, HFU %.4f, NICs %.4f, NVLinks %.4f\n", run.mfu, run.hfu,
            run.result.nic_utilisation, run.result.nvlink_utilisation);
    }
    print_message("%d points, %d with muon; the highest HFU %.3f, NICs %.3f, NVLinks %.3f\n", taken,
        muon, most, nic, nvlink);
    assert_true(taken > law_draws(DRAWS) / 3 && muon > law_draws(DRAWS) / 20);
    assert_int_equal(violations, 0);
}

/* Measured beside resident NCCL kernels (traces on A100 and V100; arXiv 2507.03114): kernels below
 * 20 us lose 3 to 9 us each, long GEMMs up to 7 %. */
static const double LONG_LOSS = 0.07, SHORT_LOSS_S = 9e-6;
static void waiting_collectives_cost_little(void **state)
{
    (void)state;
    int taken = 0, by_tiles = 0, violations = 0;
    for (int number = 0; number < law_draws(DRAWS); number++) {
        struct rng_stream rng = rng_stream(9, 0, (uint64_t)number);
        struct drawn_point point;
        draw_point(&point, number, &rng);
        if (point.job.gpus <= (int)point.hw.node.gpus.value)
            continue;
        struct hw slow_nic = point.hw;
        nic(&slow_nic, 1.0 / 64);
        slow_nic.cluster
            .nccl_channels = /* for such NICs NCCL would lay others, up to 48 instead of 16 */
            (struct quantity){.value = coll_channels(true, &point.hw), .kind = QUANTITY_ASSUMED};
        struct run fast = execute(&point, &point.hw, NULL),
                   slow = execute(&point, &slow_nic, &point.hw);
        if (!fast.taken || !slow.taken)
            continue;
        taken++;
        const struct exec_breakdown *a = &fast.result.breakdown, *b = &slow.result.breakdown;
        double alone = a->compute_s - a->contention_s, more = b->compute_s - a->compute_s;
        if (more <= LONG_LOSS * alone + SHORT_LOSS_S * fast.kernels)
            continue;
        bool tiles = b->compute_s <= slow.beside_s;
        by_tiles += tiles;
        violations += !tiles;
        describe_point(&point);
        print_message("kernels %.6g s, alone %.6g s, with NICs 64 times slower %.6g s, always "
                      "beside them %.6g s\n",
            a->compute_s, alone, b->compute_s, slow.beside_s);
    }
    print_message(
        "%d points, %d with kernels slower than waiting explains, %d of them by their tiles\n",
        taken, by_tiles + violations, by_tiles);
    assert_true(taken > law_draws(DRAWS) / 8);
    assert_int_equal(violations, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(faster_is_no_slower),
        cmocka_unit_test(more_warm_up_changes_nothing),
        cmocka_unit_test(warm_up_grows_as_if_asked),
        cmocka_unit_test(shares_are_at_most_one),
        cmocka_unit_test(waiting_collectives_cost_little),
    };
    return cmocka_run_group_tests(tests, load, release);
}
