#include "exec/exec.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "step.h"

static void kernels_of_a_stream_follow_each_other(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, 1);
    mover(&f, STREAM_COMPUTE, 2, 0);
    mover(&f, STREAM_COMPUTE, 3, 0);
    run(&f);
    near(f.result.step_time_s, 5e-3);
    near(f.result.breakdown.compute_s, 5e-3);
    end(&f);
}

/* Streams run side by side; a wait puts the second kernel of compute (1 ms) behind the cast (4 ms):
 * idle from 1 to 4 ms. */
static void streams_overlap_and_wait(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, 1);
    mover(&f, STREAM_COMPUTE, 1, 0);
    int cast = mover(&f, STREAM_UNSHARD, 4, 0);
    plan_stream_wait(&f.builder, STREAM_COMPUTE, cast);
    mover(&f, STREAM_COMPUTE, 2, 0);
    run(&f);
    near(f.result.step_time_s, 6e-3);
    near(f.result.breakdown.other_idle_s, 3e-3);
    near(f.result.breakdown.exposed_comm_s, 0);
    end(&f);
}

/* Three kernels of 1 ms each, issued 2 ms apart: they start at 2, 4 and 6 ms; the GPU is idle 2 + 1
 * + 1 ms. */
static void a_slow_host_starves_the_gpu(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, 1);
    for (int i = 0; i < 3; i++)
        mover(&f, STREAM_COMPUTE, 1, 2e-3);
    run(&f);
    near(f.result.step_time_s, 7e-3);
    near(f.result.breakdown.host_bound_s, 4e-3);
    near(f.result.breakdown.compute_s, 3e-3);
    end(&f);
}

/* The host waits for the first kernel (5 ms) and then needs 1 ms to issue the next: it starts at 6
 * ms. */
static void the_host_blocks_where_it_waits(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, 1);
    int first = mover(&f, STREAM_COMPUTE, 5, 0);
    plan_host_wait(&f.builder, "loss.item()", first, 0);
    mover(&f, STREAM_COMPUTE, 1, 1e-3);
    run(&f);
    near(f.result.step_time_s, 7e-3);
    near(f.result.breakdown.host_bound_s, 1e-3);
    end(&f);
}

/* The unshard stream's kernel of a step waits for compute's of the step before: steps cannot
 * overlap, so each takes 1 + 2 ms. Without the wait the second step's cast runs beside the first
 * step's compute and a step takes 2 ms. */
static void a_wait_on_the_step_before_keeps_steps_apart(void **state)
{
    (void)state;
    for (int waits = 0; waits < 2; waits++) {
        struct fixture f;
        begin(&f, 1);
        if (waits)
            plan_stream_wait(&f.builder, STREAM_UNSHARD, PLAN_PREVIOUS_STEP + 1);
        int cast = mover(&f, STREAM_UNSHARD, 1, 0);
        plan_stream_wait(&f.builder, STREAM_COMPUTE, cast);
        mover(&f, STREAM_COMPUTE, 2, 0);
        f.options.steps = 3;
        f.options.warmup_steps = 1;
        run(&f);
        near(f.result.step_time_s, waits ? 3e-3 : 2e-3);
        end(&f);
    }
}

/* Two GPUs gather 200 MB: 100 + 10 us of latency, then half of it at 100 GB/s: 1 ms. Compute waits
 * for it, and for the cast of 4 ms that comes before it: that is part of waiting for the
 * collective. */
static void a_collective_takes_latency_and_bandwidth(void **state)
{
    (void)state;
    for (int casts = 0; casts < 2; casts++) {
        struct fixture f;
        begin(&f, 2);
        int world = plan_group(&f.builder, "world", 2, 1);
        if (casts)
            plan_stream_wait(&f.builder, STREAM_COMM, mover(&f, STREAM_UNSHARD, 4, 0));
        int gather =
            plan_collective(&f.builder, STREAM_COMM, "gather", COLL_ALL_GATHER, 200e6, world, 0);
        plan_stream_wait(&f.builder, STREAM_COMPUTE, gather);
        mover(&f, STREAM_COMPUTE, 1, 0);
        run(&f);
        near(f.result.step_time_s, 2.11e-3 + casts * 4e-3);
        near(f.result.breakdown.exposed_comm_s, 1.11e-3 + casts * 4e-3);
        near(f.result.breakdown.comm_latency_s, 0.11e-3);
        end(&f);
    }
}

/* The same, step behind step: each GPU sends 100 MB a step, of the 100 GB/s that it could, whatever
 * ran before the steps that are measured. */
static void links_are_used_as_in_the_measured_steps(void **state)
{
    (void)state;
    for (int warmup = 0; warmup <= 2; warmup++) {
        struct fixture f;
        begin(&f, 2);
        int world = plan_group(&f.builder, "world", 2, 1);
        plan_stream_wait(&f.builder, STREAM_COMM, PLAN_PREVIOUS_STEP + 1);
        int gather =
            plan_collective(&f.builder, STREAM_COMM, "gather", COLL_ALL_GATHER, 200e6, world, 0);
        plan_stream_wait(&f.builder, STREAM_COMPUTE, gather);
        mover(&f, STREAM_COMPUTE, 1, 0);
        f.options.steps = 2;
        f.options.warmup_steps = warmup;
        run(&f);
        near(f.result.step_time_s, 2.11e-3);
        near(f.result.step_time_sd_s, 0);
        near(f.result.nvlink_utilisation, 1 / 2.11);
        near(f.result.nic_utilisation, 0);
        end(&f);
    }
}

/* A machine without NICs: its NVLinks are used as those of one that has some. */
static void nvlinks_are_counted_without_nics(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, 2);
    f.hw.node.nics.value = 0;
    f.hw.node.nic_bandwidth.value = 0;
    f.hw.cluster.nodes.value = 1;
    int world = plan_group(&f.builder, "world", 2, 1);
    plan_stream_wait(&f.builder, STREAM_COMM, PLAN_PREVIOUS_STEP + 1);
    int gather =
        plan_collective(&f.builder, STREAM_COMM, "gather", COLL_ALL_GATHER, 200e6, world, 0);
    plan_stream_wait(&f.builder, STREAM_COMPUTE, gather);
    mover(&f, STREAM_COMPUTE, 1, 0);
    run(&f);
    near(f.result.step_time_s, 2.11e-3);
    near(f.result.nvlink_utilisation, 1 / 2.11);
    near(f.result.nic_utilisation, 0);
    end(&f);
}

/* Network jitter J is log-normal with mean 1 and log-sd 0.1. It stretches the latency (0.11 ms)
 * both ways; the bytes (1 ms at the links' speed) only where J is above 1, as no link is faster
 * than it is: E max(J, 1) = 2 Phi(0.1 / 2) = 1 + erf(0.05 / sqrt 2). Means of 900 steps lie within
 * 4 of their errors; a step's standard deviation is at most 0.1 of 1.11 ms. */
static void network_jitter_stretches_collectives(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, 2);
    int world = plan_group(&f.builder, "world", 2, 1);
    plan_stream_wait(&f.builder, STREAM_COMM, PLAN_PREVIOUS_STEP + 1);
    int gather =
        plan_collective(&f.builder, STREAM_COMM, "gather", COLL_ALL_GATHER, 200e6, world, 0);
    plan_stream_wait(&f.builder, STREAM_COMPUTE, gather);
    mover(&f, STREAM_COMPUTE, 1, 0);
    f.options.steps = 900;
    f.options.noise.network_jitter = 0.1;
    run(&f);
    const double errors = 4 * 0.1 / sqrt(900), bytes_s = 1e-3 * (1 + erf(0.05 / sqrt(2)));
    assert_true(fabs(f.result.step_time_s - (1e-3 + 0.11e-3 + bytes_s)) < errors * 1.11e-3);
    assert_true(fabs(f.result.breakdown.comm_latency_s - 0.11e-3) < errors * 0.11e-3);
    assert_true(f.result.breakdown.comm_latency_s != 0.11e-3);
    assert_true(
        f.result.step_time_sd_s > 0.05 * 1.11e-3 && f.result.step_time_sd_s < 0.11 * 1.11e-3);
    near(f.result.breakdown.compute_s, 1e-3);
    near(f.result.breakdown.exposed_comm_s, f.result.step_time_s - 1e-3);
    end(&f);
}

/* Mean of the greatest of n draws of mean 1: the integral over its distribution. */
static double greatest_mean(double sigma, int n)
{
    const double top = 10, step = 1e-3;
    double mean = 0;
    for (double z = -top; z < top; z += step) {
        double cdf = 0.5 * erfc(-z / sqrt(2)), density = exp(-z * z / 2) / sqrt(2 * acos(-1));
        mean += step * n * pow(cdf, n - 1) * density * exp(sigma * z - sigma * sigma / 2);
    }
    return mean;
}

/* Collectives wait for the slowest link: their latency grows with the nodes as the mean of the
 * greatest of as many draws, one NIC a node here. 400 steps; the greatest of several draws spreads
 * less than one. */
static void a_collective_waits_for_the_slowest_link(void **state)
{
    (void)state;
    const double sigma = 0.1, steps = 400;
    for (int nodes = 2; nodes <= 32; nodes *= 4) {
        struct fixture f;
        begin(&f, 2 * nodes);
        int world = plan_group(&f.builder, "world", 2 * nodes, 1);
        plan_stream_wait(&f.builder, STREAM_COMM, PLAN_PREVIOUS_STEP + 1);
        int gather =
            plan_collective(&f.builder, STREAM_COMM, "gather", COLL_ALL_GATHER, 200e6, world, 0);
        plan_stream_wait(&f.builder, STREAM_COMPUTE, gather);
        mover(&f, STREAM_COMPUTE, 1, 0);
        run(&f);
        double quiet_s = f.result.breakdown.comm_latency_s;
        f.options.steps = (int)steps;
        f.options.noise.network_jitter = sigma;
        exec_run(&f.result, &f.plan, &f.hw, &f.options, &f.arena);
        double links = nodes * f.hw.node.nics.value,
               ratio = f.result.breakdown.comm_latency_s / quiet_s;
        assert_true(fabs(ratio - greatest_mean(sigma, (int)links)) < 4 * sigma / sqrt(steps));
        end(&f);
    }
}

/* A step that waits for its host alone, whose bursts end where it waits for the GPU: of 100 ms in
 * one burst, in 100, and in 400 of a quarter each. Bursts are independent, so in 900 steps the
 * step's spread is a tenth of that of 1 ms for the first two; bursts below 1 ms differ as one of 1
 * ms does, so twice less than if they went on growing. The error of a standard deviation is 1 /
 * sqrt(2 x 900). */
static void a_host_is_late_in_independent_parts(void **state)
{
    (void)state;
    const double sigma = 0.2, work_s = 100e-3,
                 want[] = {sigma / sqrt(100), sigma / sqrt(100), sigma / sqrt(400)};
    const int bursts[] = {1, 100, 400};
    for (int i = 0; i < 3; i++) {
        struct fixture f;
        begin(&f, 1);
        for (int b = 0; b < bursts[i]; b++) {
            int kernel = mover(&f, STREAM_COMPUTE, 0, work_s / bursts[i]);
            plan_host_wait(&f.builder, "synchronize", kernel, 0);
        }
        f.options.steps = 900;
        f.options.noise.host_jitter = sigma;
        run(&f);
        assert_true(fabs(f.result.step_time_s / work_s - 1) < 4 * want[i] / sqrt(900));
        assert_true(fabs(f.result.step_time_sd_s / work_s / want[i] - 1) < 4 / sqrt(2 * 900));
        end(&f);
    }
}

/* The same gather, whose result another stream casts for 4 ms before compute goes on, as a step's
 * end does behind FSDP's last reduce-scatter: compute lacks the collective for its 1.11 ms, and the
 * cast for the rest. Compute's own first kernel hides 1 ms of the gather, unless the gather has to
 * wait for it. */
static void a_collective_is_exposed_behind_the_kernel_that_waits_for_it(void **state)
{
    (void)state;
    for (int first = 0; first < 3;
         first++) { /* no first kernel; one that hides; one that is waited for */
        struct fixture f;
        begin(&f, 2);
        int kernel = first ? mover(&f, STREAM_COMPUTE, 1, 0) : PLAN_NO_OP;
        plan_stream_wait(&f.builder, STREAM_COMM, first == 2 ? kernel : PLAN_NO_OP);
        int world = plan_group(&f.builder, "world", 2, 1);
        int gather =
            plan_collective(&f.builder, STREAM_COMM, "gather", COLL_ALL_GATHER, 200e6, world, 0);
        plan_stream_wait(&f.builder, STREAM_POST, gather);
        int cast = mover(&f, STREAM_POST, 4, 0);
        plan_stream_wait(&f.builder, STREAM_COMPUTE, cast);
        mover(&f, STREAM_COMPUTE, 1, 0);
        f.options.no_contention = true;
        run(&f);
        near(f.result.step_time_s, first == 2 ? 7.11e-3 : 6.11e-3);
        near(f.result.breakdown.exposed_comm_s, first == 1 ? 0.11e-3 : 1.11e-3);
        near(f.result.breakdown.other_idle_s, 4e-3);
        end(&f);
    }
}

/* Compute waits from 0.5 to 3 ms for a cast that waits for nothing, beside a gather from 0.2 to
 * 1.31 ms: while that is under way the wait counts as its. */
static void waits_beside_a_collective_are_exposed(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, 2);
    plan_stream_wait(&f.builder, STREAM_COMM, mover(&f, STREAM_UNSHARD, 0.2, 0));
    int world = plan_group(&f.builder, "world", 2, 1);
    plan_collective(&f.builder, STREAM_COMM, "gather", COLL_ALL_GATHER, 200e6, world, 0);
    int cast = mover(&f, STREAM_POST, 3, 0);
    mover(&f, STREAM_COMPUTE, 0.5, 0);
    plan_stream_wait(&f.builder, STREAM_COMPUTE, cast);
    mover(&f, STREAM_COMPUTE, 1, 0);
    f.options.no_contention = true;
    run(&f);
    near(f.result.step_time_s, 4e-3);
    near(f.result.breakdown.exposed_comm_s, 0.81e-3);
    near(f.result.breakdown.other_idle_s, 1.69e-3);
    end(&f);
}

/* Two groups of one rank in each of two nodes share the nodes' NICs: alone each would reach its own
 * NIC's 50 GB/s, and together the node's 100 GB/s are enough. With one NIC of 50 GB/s a node they
 * halve each other. 200 MB all-gathered by 2 ranks: 100 MB on the wire after one inter-node hop of
 * 14 us. */
static void groups_that_share_nics_halve_each_other(void **state)
{
    (void)state;
    for (int nics = 1; nics <= 2; nics++) {
        struct fixture f;
        begin(&f, 4);
        f.hw.node.nics.value = nics;
        int across = plan_group(&f.builder, "replicate", 2, 2);
        int gather =
            plan_collective(&f.builder, STREAM_COMM, "gather", COLL_ALL_GATHER, 200e6, across, 0);
        plan_stream_wait(&f.builder, STREAM_COMPUTE, gather);
        mover(&f, STREAM_COMPUTE, 1, 0);
        run(&f);
        near(f.result.step_time_s, 0.114e-3 + 100e6 / (nics * 25e9) + 1e-3);
        end(&f);
    }
}

/* With persistently different speeds the slowest rank sets the pace of all, and the others wait in
 * the collective for it. */
static void stragglers_hold_everybody_up(void **state)
{
    (void)state;
    double times[2], waits[2];
    for (int noisy = 0; noisy < 2; noisy++) {
        struct fixture f;
        begin(&f, 8);
        int world = plan_group(&f.builder, "world", 8, 1);
        computer(&f, 10);
        plan_stream_wait(&f.builder, STREAM_COMM, 0);
        int reduce =
            plan_collective(&f.builder, STREAM_COMM, "reduce", COLL_ALL_REDUCE, 1e6, world, 0);
        plan_stream_wait(&f.builder, STREAM_COMPUTE, reduce);
        computer(&f, 0.001);
        f.options.noise.gpu_speed_spread = f.options.noise.gpu_speed_spread_below =
            noisy ? 0.05 : 0;
        run(&f);
        times[noisy] = f.result.step_time_s;
        waits[noisy] = f.result.breakdown.comm_wait_s;
        end(&f);
    }
    near(waits[0], 0);
    assert_true(waits[1] > 1e-4);
    /* the slowest of eight is 1.434 standard deviations (Blom: the quantile 0.625 / 8.25) of 5 %
     * behind */
    double behind = 1 / (1 - 1.4342 * 0.05) - 1;
    assert_true(fabs(times[1] - times[0] - 10.001e-3 * behind) < 1e-6);
}

/* What limits a kernel decides how far it follows its GPU: the slower of two is 0.5895 standard
 * deviations (Blom: the quantile 0.625 / 2.25) behind, of 10 % in a GEMM that reaches its GPU's
 * sustained rate, of 3 % in other compute, a smaller GEMM among it, of nothing where bytes of HBM
 * take the time. */
static void kernels_follow_their_gpu_by_what_limits_them(void **state)
{
    (void)state;
    enum { GEMM, SMALL_GEMM, VECTORS, BYTES, CASES };
    static const double spreads[CASES] = {0.1, 0.03, 0.03, 0};
    for (int what = 0; what < CASES; what++) {
        double times[2];
        for (int noisy = 0; noisy < 2; noisy++) {
            struct fixture f;
            begin(&f, 2);
            f.hw.gpu.gemm[DTYPE_BF16] =
                (struct hw_gemm){.peak = {.value = 1e13, .kind = QUANTITY_ASSUMED},
                    .efficiency = {.value = 0.9},
                    .load_bandwidth = {.value = 1e15}};
            const int64_t rows = what == GEMM ? 12800 : 70;
            if (what == VECTORS)
                computer(&f, 10);
            else if (what == BYTES)
                mover(&f, STREAM_COMPUTE, 10, 0);
            else
                plan_kernel(&f.builder, STREAM_COMPUTE, "multiply",
                    kernel_gemm(rows, 12800, 4096, 1, DTYPE_BF16, 2, 2), 0);
            if (noisy)
                f.options.noise =
                    (struct noise_options){.gpu_speed_spread = 0.1, .gpu_speed_spread_below = 0.03};
            run(&f);
            times[noisy] = f.result.step_time_s;
            end(&f);
        }
        double behind = 1 / (1 - 0.5895 * spreads[what]) - 1;
        if (fabs(times[1] / times[0] - 1 - behind) > 1e-4 + 0.02 * behind)
            fail_msg("kernel %d: %g, not %g behind", what, times[1] / times[0] - 1, behind);
    }
}

/* The host pauses for 1 s, the next time 100 ms after it goes on, in the mean (exponential), where
 * it then stops first. It works for 1 s in pieces of 1 ms, each of which ends in a wait: 1 s /
 * 100.5 ms = 10 pauses, be they ten times as long as what lies between them. Of ten runs 99.5, with
 * a deviation of sqrt(99.5) = 10 as of all such counts: three of these are 30. */
static void pauses_count_from_the_end_of_the_last(void **state)
{
    (void)state;
    enum { RUNS = 10, PIECES = 1000 };
    double pauses = 0;
    for (int i = 0; i < RUNS; i++) {
        struct fixture f;
        begin(&f, 1);
        f.options.seed = i + 1;
        f.options.noise.host_pause_s = 1;
        f.options.noise.host_pause_interval_s = 0.1;
        for (int k = 0; k < PIECES; k++) {
            plan_host(&f.builder, "work", 1e-3);
            plan_host_wait(&f.builder, "item", computer(&f, 0.001), 0);
        }
        run(&f);
        double counted = f.result.step_time_s - PIECES * (1e-3 + 1e-6);
        assert_true(fabs(counted - round(counted)) < 1e-3);
        pauses += round(counted);
        end(&f);
    }
    assert_true(pauses > 70 && pauses < 130);
}

/* The launch queue: 3000 kernels of 1 us host and 10 us GPU time each, with 1 MB allocated for
 * every kernel and freed by the next (another stream having used it). The host gets 1024 launches
 * ahead, not 3000, so not more than about 1024 blocks can be pending at a time. */
static void the_host_is_at_most_a_launch_queue_ahead(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, 1);
    f.hw.gpu.hbm_capacity.value = 100e9;
    for (int i = 0; i < 3000; i++) {
        int buffer = plan_alloc(&f.builder, STREAM_UNSHARD, "gathered", 2 << 20, HBM_GATHERED);
        int last = mover(&f, STREAM_COMPUTE, 0.01, 1e-6);
        plan_free(&f.builder, buffer, last);
    }
    run(&f);
    near(f.result.step_time_s, 3000 * 10e-6 + 1e-6);
    double blocks = f.result.memory.peak_reserved_bytes / (2 << 20);
    assert_true(blocks >= 1000 && blocks <= 1040);
    end(&f);
}

static double step_of_slow(int64_t slow_hosts, double share, bool drawn)
{
    struct fixture f;
    begin(&f, 8);
    int world = plan_group(&f.builder, "world", 8, 1);
    plan_stream_wait(&f.builder, STREAM_COMM, computer(&f, 10));
    int reduce = plan_collective(&f.builder, STREAM_COMM, "reduce", COLL_ALL_REDUCE, 1e6, world, 0);
    plan_stream_wait(&f.builder, STREAM_COMPUTE, reduce);
    computer(&f, 0.001);
    f.options.noise.gpu_speed_spread = f.options.noise.gpu_speed_spread_below = 1e-12;
    f.options.noise.slow_hosts = slow_hosts;
    f.options.noise.straggler_share = share;
    f.options.noise.straggler_slowdown = 0.25;
    f.options.noise.drawn_speeds = drawn;
    run(&f);
    double step_s = f.result.step_time_s;
    end(&f);
    return step_s;
}

/* One slow host of four holds all up: 10 ms of compute become 12.5, and so with all of them, where
 * they are drawn with certainty too. Where nobody draws, a probability makes nobody slow. (The
 * microsecond at the end is 1.25 on slow ranks, which end the step.) */
static void slow_hosts_take_longer(void **state)
{
    (void)state;
    double quick_s = step_of_slow(0, 0, false), longer_s = 2.5e-3 + 0.25e-6;
    near(step_of_slow(1, 0, false), quick_s + longer_s);
    near(step_of_slow(4, 0, false), quick_s + longer_s);
    near(step_of_slow(1, 0, true), quick_s + longer_s);
    near(step_of_slow(0, 1, true), quick_s + longer_s);
    near(step_of_slow(0, 1, false), quick_s);
    near(step_of_slow(0, 0, true), quick_s);
}

/* Without noise all steps are alike, and so is their mean, whatever their number and of warm-up
 * steps. */
static void means_are_those_of_a_step(void **state)
{
    (void)state;
    struct exec_breakdown first = {0};
    for (int steps = 1; steps <= 4; steps += 3) {
        struct fixture f;
        begin(&f, 4);
        int world = plan_group(&f.builder, "world", 4, 1);
        plan_stream_wait(&f.builder, STREAM_COMM, mover(&f, STREAM_COMPUTE, 1, 2e-3));
        int gather =
            plan_collective(&f.builder, STREAM_COMM, "gather", COLL_ALL_GATHER, 400e6, world, 0);
        computer(&f, 1);
        plan_stream_wait(&f.builder, STREAM_COMPUTE, gather);
        int last = mover(&f, STREAM_COMPUTE, 1, 0);
        plan_host_wait(&f.builder, "item", last, 0);
        f.options.steps = steps;
        f.options.warmup_steps = steps - 1;
        run(&f);
        const struct exec_breakdown *b = &f.result.breakdown;
        if (steps == 1)
            first = *b;
        assert_true(b->compute_s > 0 && b->contention_s > 0 && b->exposed_comm_s > 0 &&
                    b->host_bound_s > 0);
        near(b->compute_s, first.compute_s);
        near(b->contention_s, first.contention_s);
        near(b->exposed_comm_s, first.exposed_comm_s);
        near(b->host_bound_s, first.host_bound_s);
        near(b->comm_s, first.comm_s);
        near(b->comm_latency_s, first.comm_latency_s);
        near(b->comm[PARALLEL_DATA].moving_s, first.comm[PARALLEL_DATA].moving_s);
        near(b->comm[PARALLEL_DATA].exposed_s, first.comm[PARALLEL_DATA].exposed_s);
        near(b->compute_s + b->exposed_comm_s + b->host_bound_s + b->other_idle_s,
            f.result.step_time_s);
        end(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_of_a_stream_follow_each_other),
        cmocka_unit_test(streams_overlap_and_wait),
        cmocka_unit_test(a_slow_host_starves_the_gpu),
        cmocka_unit_test(the_host_blocks_where_it_waits),
        cmocka_unit_test(a_wait_on_the_step_before_keeps_steps_apart),
        cmocka_unit_test(a_collective_takes_latency_and_bandwidth),
        cmocka_unit_test(links_are_used_as_in_the_measured_steps),
        cmocka_unit_test(nvlinks_are_counted_without_nics),
        cmocka_unit_test(network_jitter_stretches_collectives),
        cmocka_unit_test(a_host_is_late_in_independent_parts),
        cmocka_unit_test(a_collective_waits_for_the_slowest_link),
        cmocka_unit_test(a_collective_is_exposed_behind_the_kernel_that_waits_for_it),
        cmocka_unit_test(waits_beside_a_collective_are_exposed),
        cmocka_unit_test(groups_that_share_nics_halve_each_other),
        cmocka_unit_test(stragglers_hold_everybody_up),
        cmocka_unit_test(kernels_follow_their_gpu_by_what_limits_them),
        cmocka_unit_test(pauses_count_from_the_end_of_the_last),
        cmocka_unit_test(the_host_is_at_most_a_launch_queue_ahead),
        cmocka_unit_test(slow_hosts_take_longer),
        cmocka_unit_test(means_are_those_of_a_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
