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

/* Streams run side by side; a wait puts the second kernel of compute (1 ms) behind the cast (4 ms): idle from 1 to 4
 * ms. */
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

/* Three kernels of 1 ms each, issued 2 ms apart: they start at 2, 4 and 6 ms; the GPU is idle 2 + 1 + 1 ms. */
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

/* The host waits for the first kernel (5 ms) and then needs 1 ms to issue the next: it starts at 6 ms. */
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

/* The unshard stream's kernel of a step waits for compute's of the step before: steps cannot overlap, so each takes 1 +
 * 2 ms. Without the wait the second step's cast runs beside the first step's compute and a step takes 2 ms. */
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

/* Two GPUs gather 200 MB: 100 + 10 us of latency, then half of it at 100 GB/s: 1 ms. Compute waits for it, and for the
 * cast of 4 ms that comes before it: that is part of waiting for the collective. */
static void a_collective_takes_latency_and_bandwidth(void **state)
{
    (void)state;
    for (int casts = 0; casts < 2; casts++) {
        struct fixture f;
        begin(&f, 2);
        int world = plan_group(&f.builder, "world", 2, 1);
        if (casts)
            plan_stream_wait(&f.builder, STREAM_COMM, mover(&f, STREAM_UNSHARD, 4, 0));
        int gather = plan_collective(&f.builder, STREAM_COMM, "gather", COLL_ALL_GATHER, 200e6, world, 0);
        plan_stream_wait(&f.builder, STREAM_COMPUTE, gather);
        mover(&f, STREAM_COMPUTE, 1, 0);
        run(&f);
        near(f.result.step_time_s, 2.11e-3 + casts * 4e-3);
        near(f.result.breakdown.exposed_comm_s, 1.11e-3 + casts * 4e-3);
        near(f.result.breakdown.comm_latency_s, 0.11e-3);
        end(&f);
    }
}

/* The same, step behind step: each GPU sends 100 MB a step, of the 100 GB/s that it could, whatever ran before the
 * steps that are measured. */
static void links_are_used_as_in_the_measured_steps(void **state)
{
    (void)state;
    for (int warmup = 0; warmup <= 2; warmup++) {
        struct fixture f;
        begin(&f, 2);
        int world = plan_group(&f.builder, "world", 2, 1);
        plan_stream_wait(&f.builder, STREAM_COMM, PLAN_PREVIOUS_STEP + 1);
        int gather = plan_collective(&f.builder, STREAM_COMM, "gather", COLL_ALL_GATHER, 200e6, world, 0);
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
    int gather = plan_collective(&f.builder, STREAM_COMM, "gather", COLL_ALL_GATHER, 200e6, world, 0);
    plan_stream_wait(&f.builder, STREAM_COMPUTE, gather);
    mover(&f, STREAM_COMPUTE, 1, 0);
    run(&f);
    near(f.result.step_time_s, 2.11e-3);
    near(f.result.nvlink_utilisation, 1 / 2.11);
    near(f.result.nic_utilisation, 0);
    end(&f);
}

/* Network jitter J is log-normal with mean 1 and log-sd 0.1. It stretches the latency (0.11 ms) both ways; the bytes (1
 * ms at the links' speed) only where J is above 1, as no link is faster than it is: E max(J, 1) = 2 Phi(0.1 / 2) = 1 +
 * erf(0.05 / sqrt 2). Means of 900 steps lie within 4 of their errors; a step's standard deviation is at most 0.1
 * of 1.11 ms. */
static void network_jitter_stretches_collectives(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, 2);
    int world = plan_group(&f.builder, "world", 2, 1);
    plan_stream_wait(&f.builder, STREAM_COMM, PLAN_PREVIOUS_STEP + 1);
    int gather = plan_collective(&f.builder, STREAM_COMM, "gather", COLL_ALL_GATHER, 200e6, world, 0);
    plan_stream_wait(&f.builder, STREAM_COMPUTE, gather);
    mover(&f, STREAM_COMPUTE, 1, 0);
    f.options.steps = 900;
    f.options.noise.network_jitter = 0.1;
    run(&f);
    const double errors = 4 * 0.1 / sqrt(900), bytes_s = 1e-3 * (1 + erf(0.05 / sqrt(2)));
    assert_true(fabs(f.result.step_time_s - (1e-3 + 0.11e-3 + bytes_s)) < errors * 1.11e-3);
    assert_true(fabs(f.result.breakdown.comm_latency_s - 0.11e-3) < errors * 0.11e-3);
    assert_true(f.result.breakdown.comm_latency_s != 0.11e-3);
    assert_true(f.result.step_time_sd_s > 0.05 * 1.11e-3 && f.result.step_time_sd_s < 0.11 * 1.11e-3);
    near(f.result.breakdown.compute_s, 1e-3);
    near(f.result.breakdown.exposed_comm_s, f.result.step_time_s - 1e-3);
    end(&f);
}

/* The same gather, whose result another stream casts for 4 ms before compute goes on, as a step's end does behind
 * FSDP's last reduce-scatter: compute lacks the collective for its 1.11 ms, and the cast for the rest. Compute's own
 * first kernel hides 1 ms of the gather, unless the gather has to wait for it. */
static void a_collective_is_exposed_behind_the_kernel_that_waits_for_it(void **state)
{
    (void)state;
    for (int first = 0; first < 3; first++) { /* no first kernel; one that hides; one that is waited for */
        struct fixture f;
        begin(&f, 2);
        int kernel = first ? mover(&f, STREAM_COMPUTE, 1, 0) : PLAN_NO_OP;
        plan_stream_wait(&f.builder, STREAM_COMM, first == 2 ? kernel : PLAN_NO_OP);
        int world = plan_group(&f.builder, "world", 2, 1);
        int gather = plan_collective(&f.builder, STREAM_COMM, "gather", COLL_ALL_GATHER, 200e6, world, 0);
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

/* Compute waits from 0.5 to 3 ms for a cast that waits for nothing, beside a gather from 0.2 to 1.31 ms: while that is
 * under way the wait counts as its. */
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

/* Two groups of one rank in each of two nodes share the nodes' NICs: alone each would reach its own NIC's 50 GB/s, and
 * together the node's 100 GB/s are enough. With one NIC of 50 GB/s a node they halve each other. 200 MB all-gathered by
 * 2 ranks: 100 MB on the wire after one inter-node hop of 14 us. */
static void groups_that_share_nics_halve_each_other(void **state)
{
    (void)state;
    for (int nics = 1; nics <= 2; nics++) {
        struct fixture f;
        begin(&f, 4);
        f.hw.node.nics.value = nics;
        int across = plan_group(&f.builder, "replicate", 2, 2);
        int gather = plan_collective(&f.builder, STREAM_COMM, "gather", COLL_ALL_GATHER, 200e6, across, 0);
        plan_stream_wait(&f.builder, STREAM_COMPUTE, gather);
        mover(&f, STREAM_COMPUTE, 1, 0);
        run(&f);
        near(f.result.step_time_s, 0.114e-3 + 100e6 / (nics * 25e9) + 1e-3);
        end(&f);
    }
}

/* A kernel that computes for 10 ms on 100 SMs, beside a collective that takes all of that time and holds 20 of them: 10
 * / 0.8 = 12.5 ms. The collective: 0.11 ms + x / 100 GB/s with 2 x bytes; 3 GB -> 15.11 ms. */
static void compute_is_slower_beside_a_collective(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, 2);
    int world = plan_group(&f.builder, "world", 2, 1);
    plan_collective(&f.builder, STREAM_COMM, "gather", COLL_ALL_GATHER, 3e9, world, 0);
    computer(&f, 10);
    run(&f);
    near(f.result.step_time_s, 12.5e-3);
    near(f.result.breakdown.contention_s, 2.5e-3);
    end(&f);
}

/* A collective across nodes holds as many SMs as the cluster has channels, 10 of 100; one inside a node beside it 20
 * more. Both last longer than the kernel: 10 ms / 0.9 and 10 ms / 0.7. */
static void collectives_hold_what_their_channels_do(void **state)
{
    (void)state;
    for (int inside = 0; inside < 2; inside++) {
        struct fixture f;
        begin(&f, 4);
        f.hw.cluster.nccl_channels = (struct quantity){.value = 10, .kind = QUANTITY_ASSUMED};
        int node = plan_group(&f.builder, "shard", 2, 1), world = plan_group(&f.builder, "world", 4, 1);
        plan_collective(&f.builder, STREAM_REPLICATE, "across", COLL_ALL_GATHER, 8e9, world, 0);
        if (inside)
            plan_collective(&f.builder, STREAM_COMM, "inside", COLL_ALL_GATHER, 8e9, node, 0);
        computer(&f, 10);
        run(&f);
        near(f.result.breakdown.compute_s, 10e-3 / (inside ? 0.7 : 0.9));
        end(&f);
    }
}

/* Traffic: while its bytes move, for 15 ms after 0.11 ms of latency, the all-gather takes 3 GB / 15 ms = a fifth of HBM
 * (see bytes_are_slower_beside_a_collective); with an overlap_traffic of 2 kernels take 1.4 times as long, beyond what
 * else they lose. 10 ms of compute: 0.8 x 0.11 ms of it are done when bytes begin to move, 15 ms x 0.8 / 1.4 when the
 * collective ends. 6 ms of bytes: 0.11 ms are done, and then 0.8 / 1.4 of what would be. */
static void what_moves_slows_beyond_what_is_taken(void **state)
{
    (void)state;
    for (int bytes = 0; bytes < 2; bytes++) {
        struct fixture f;
        begin(&f, 2);
        f.hw.gpu.overlap_traffic.value = 2;
        int world = plan_group(&f.builder, "world", 2, 1);
        plan_collective(&f.builder, STREAM_COMM, "gather", COLL_ALL_GATHER, 3e9, world, 0);
        if (bytes)
            mover(&f, STREAM_COMPUTE, 6, 0);
        else
            computer(&f, 10);
        run(&f);
        near(f.result.step_time_s, bytes ? 0.11e-3 + 5.89e-3 * 1.4 / 0.8 : 25.11e-3 - 0.088e-3 - 15e-3 * 0.8 / 1.4);
        end(&f);
    }
}

/* A collective that waits moves nothing. The second GPU is half as fast and comes to the all-gather of 778 MB at 8 ms,
 * the first at 4; bytes move from 8.11 to 12 ms, at a fifth of HBM. Kernels that move bytes for 20 ms on both lose only
 * then, 3.89 ms at 0.8 / 1.4 of their speed, although the first GPU's collective is resident from 4 ms on. */
static void who_waits_takes_no_bytes(void **state)
{
    (void)state;
    struct degrade_event slow = {.target = 1, .share = 0.5};
    struct fixture f;
    begin(&f, 2);
    f.hw.gpu.overlap_traffic.value = 2;
    f.options.gpu_events = (struct degrade_events){&slow, 1};
    int world = plan_group(&f.builder, "world", 2, 1);
    int before = plan_kernel(&f.builder, STREAM_UNSHARD, "before", kernel_stream(KERNEL_ELEMENTWISE, 0, 0, 4e9), 0);
    plan_stream_wait(&f.builder, STREAM_COMM, before);
    plan_collective(&f.builder, STREAM_COMM, "gather", COLL_ALL_GATHER, 778e6, world, 0);
    mover(&f, STREAM_COMPUTE, 20, 0);
    run(&f);
    near(f.result.step_time_s, 20e-3 + 3.89e-3 * (1 - 0.8 / 1.4));
    near(f.result.breakdown.contention_s, 3.89e-3 * (1 - 0.8 / 1.4));
    end(&f);
}

/* overlap_start: of 500 kernels of 10 us those that start beside the collective of 4 ms take 5 us more, beyond the SMs
 * that it holds: 17.5 us. The first starts at the same instant before it, runs at 0.8 of the speed and pays no start:
 * 12.5 us. 227 more start by 12.5 us + 227 x 17.5 us = 3.985 ms, and the 229th of all at 3.985 ms: at 4 ms 10 of its
 * 12.5 us are done, and 2 us are left (5 us of the start, run down alike: 15 of 17.5 us are done, 2.5 / 17.5 of 15 us
 * are left). The remaining 271 take 10 us. */
static void each_kernel_that_starts_beside_a_collective_pays(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, 2);
    f.hw.gpu.overlap_start.value = 5e-6;
    int world = plan_group(&f.builder, "world", 2, 1);
    plan_collective(&f.builder, STREAM_COMM, "gather", COLL_ALL_GATHER, 778e6, world, 0);
    for (int i = 0; i < 500; i++)
        computer(&f, 0.01);
    run(&f);
    near(f.result.step_time_s, 12.5e-6 + 227 * 17.5e-6 + 15e-6 + 15e-6 * 2.5 / 17.5 + 271 * 10e-6);
    end(&f);
}

/* The same with a collective of 4 ms (0.11 + 3.89: 778 MB): in 4 ms 3.2 ms of work are done, 6.8 ms are left at full
 * speed: 10.8 ms. */
static void the_rest_runs_at_full_speed_when_the_collective_ends(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, 2);
    int world = plan_group(&f.builder, "world", 2, 1);
    plan_collective(&f.builder, STREAM_COMM, "gather", COLL_ALL_GATHER, 778e6, world, 0);
    computer(&f, 10);
    run(&f);
    near(f.result.step_time_s, 10.8e-3);
    end(&f);
}

/* HBM: an all-gather of 3 GB on two ranks reads and writes 1.5 GB each in 15 ms after 0.11 ms of latency, 200 GB/s of
 * the 1 TB/s. A kernel that alone moves bytes for 8 ms has 7.89 of them left then, which take 7.89 / 0.8. */
static void bytes_are_slower_beside_a_collective(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, 2);
    int world = plan_group(&f.builder, "world", 2, 1);
    plan_collective(&f.builder, STREAM_COMM, "gather", COLL_ALL_GATHER, 3e9, world, 0);
    mover(&f, STREAM_COMPUTE, 8, 0);
    run(&f);
    near(f.result.step_time_s, 0.11e-3 + 7.89e-3 / 0.8);
    end(&f);
}

/* Where 90 SMs are needed to draw all of HBM, the 80 that a collective leaves draw 8/9 of it: so much it is in the
 * latency, and 0.8 when bytes move, which is the lower of the two. Where 80 suffice nothing is lost in the latency. */
static void bytes_need_sms(void **state)
{
    (void)state;
    for (int needed = 80; needed <= 90; needed += 10) {
        struct fixture f;
        begin(&f, 2);
        f.hw.gpu.memory_sms.value = needed;
        int world = plan_group(&f.builder, "world", 2, 1);
        plan_collective(&f.builder, STREAM_COMM, "gather", COLL_ALL_GATHER, 3e9, world, 0);
        mover(&f, STREAM_COMPUTE, 8, 0);
        run(&f);
        near(f.result.step_time_s, 0.11e-3 + (8e-3 - 0.11e-3 * 80 / needed) / 0.8);
        end(&f);
    }
}

/* HBM is given back when a collective ends: of 778 MB, from 0.11 to 4 ms. 10 ms of bytes lose a fifth of 3.89 ms. */
static void hbm_is_given_back(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, 2);
    int world = plan_group(&f.builder, "world", 2, 1);
    plan_collective(&f.builder, STREAM_COMM, "gather", COLL_ALL_GATHER, 778e6, world, 0);
    mover(&f, STREAM_COMPUTE, 10, 0);
    run(&f);
    near(f.result.step_time_s, 10e-3 + 3.89e-3 * 0.2);
    near(f.result.breakdown.contention_s, 3.89e-3 * 0.2);
    end(&f);
}

/* Copies to the host go over the GPU's link: 10 ms at 1 GB/s stay 10 ms beside a collective that takes SMs and HBM. */
static void copies_to_the_host_are_not_slowed(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, 2);
    f.hw.gpu.host_link_Bps = 1e9;
    f.hw.gpu.overlap_start.value = f.hw.gpu.overlap_traffic.value = 1;
    f.hw.gpu.memory_sms.value = 100;
    int world = plan_group(&f.builder, "world", 2, 1);
    plan_collective(&f.builder, STREAM_COMM, "gather", COLL_ALL_GATHER, 3e9, world, 0);
    plan_kernel(&f.builder, STREAM_COMPUTE, "copy", kernel_stream(KERNEL_HOST_COPY, 1e7, 0, 0), 0);
    plan_kernel(&f.builder, STREAM_COMPUTE, "copy", kernel_stream(KERNEL_HOST_COPY, 1e7, 0, 0), 0);
    run(&f);
    near(f.result.step_time_s, 20e-3);
    end(&f);
}

/* With persistently different speeds the slowest rank sets the pace of all, and the others wait in the collective for
 * it. */
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
        int reduce = plan_collective(&f.builder, STREAM_COMM, "reduce", COLL_ALL_REDUCE, 1e6, world, 0);
        plan_stream_wait(&f.builder, STREAM_COMPUTE, reduce);
        computer(&f, 0.001);
        f.options.noise.gpu_speed_spread = noisy ? 0.05 : 0;
        run(&f);
        times[noisy] = f.result.step_time_s;
        waits[noisy] = f.result.breakdown.comm_wait_s;
        end(&f);
    }
    near(waits[0], 0);
    assert_true(waits[1] > 1e-4);
    /* the slowest of eight is 1.434 standard deviations (Blom: the quantile 0.625 / 8.25) of 5 % behind */
    double behind = 1 / (1 - 1.4342 * 0.05) - 1;
    assert_true(fabs(times[1] - times[0] - 10.001e-3 * behind) < 1e-6);
}

/* 1 GB of HBM, of which the CUDA context takes 50 MB and NCCL 30: 600 MB are kept, 500 MB more do not fit: 180 MB short
 * (in whole 2 MiB steps and 512 B; here exact enough). */
static void out_of_memory_is_a_result(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, 2);
    plan_group(&f.builder, "world", 2, 1);
    f.hw.gpu.context_bytes.value = 50 << 20;
    f.hw.node.nccl_bytes.value = 30 << 20;
    plan_keep(&f.builder, "weights", 600 << 20, HBM_PARAMETERS);
    mover(&f, STREAM_COMPUTE, 1, 0);
    int buffer = plan_alloc(&f.builder, STREAM_COMPUTE, "scores", 500 << 20, HBM_ACTIVATIONS);
    mover(&f, STREAM_COMPUTE, 1, 0);
    plan_free(&f.builder, buffer, PLAN_NO_OP);
    run(&f);
    assert_int_equal(f.result.status, EXEC_OOM);
    assert_string_equal(f.result.memory.oom_op, "scores");
    assert_int_equal(f.result.memory.oom_category, HBM_ACTIVATIONS);
    assert_true(f.result.memory.oom_request_bytes == 500 << 20);
    assert_true(f.result.memory.required_bytes == 1180 << 20);
    assert_true(f.result.memory.required_category_bytes[HBM_PARAMETERS] == 600 << 20);
    assert_true(f.result.memory.required_category_bytes[HBM_CONTEXT] == 50 << 20);
    assert_true(f.result.memory.required_category_bytes[HBM_NCCL] == 30 << 20);
    assert_true(f.result.memory.peak_allocated_bytes == 600 << 20);
    end(&f);
}

/* 300 MB in every step, given back, then as many that are kept from the first step on: those take the block, so the
 * second step's cudaMalloc of 1 ms makes the second block, and from the third step on there is none: 2 ms in four
 * steps. A run of one step has what is kept from the start. */
static void what_the_first_step_keeps_takes_free_blocks(void **state)
{
    (void)state;
    static const struct {
        int warmup, steps;
        double stall_s;
    } runs[] = {{0, 1, 1e-3}, {1, 1, 1e-3}, {2, 1, 0}, {0, 4, 0.5e-3}};
    for (int i = 0; i < 4; i++) {
        struct fixture f;
        begin(&f, 1);
        f.hw.gpu.cuda_malloc.value = 1e-3;
        f.options.steps = runs[i].steps;
        f.options.warmup_steps = runs[i].warmup;
        int scores = plan_alloc(&f.builder, STREAM_COMPUTE, "scores", 300 << 20, HBM_ACTIVATIONS);
        mover(&f, STREAM_COMPUTE, 1, 0);
        plan_free(&f.builder, scores, PLAN_NO_OP);
        plan_keep_from_here(&f.builder, "moments", 300 << 20, HBM_OPTIMIZER);
        mover(&f, STREAM_COMPUTE, 1, 0);
        run(&f);
        near(f.result.memory.alloc_stall_s, runs[i].stall_s);
        assert_true(f.result.memory.peak_allocated_bytes == 600 << 20);
        assert_true(f.result.memory.peak_reserved_bytes == 600 << 20);
        end(&f);
    }
}

/* A block of 400 MB that a kernel of 10 ms on another stream uses, then one of 700 MB, then another kernel of 10 ms; a
 * cudaMalloc or cudaFree takes 1 ms. In 2 GB the second cudaMalloc lies beside the first kernel: 1 + 10 + 10 ms. In 1
 * GB it fails at 1 ms; the host waits for the kernel to 11 ms, frees the first block, tries again and issues the second
 * kernel at 13 ms: 23 ms, of which the host stood 1 + 10 + 2. */
static void a_retry_drains_the_gpu(void **state)
{
    (void)state;
    for (int limited = 0; limited < 2; limited++) {
        struct fixture f;
        begin(&f, 1);
        f.hw.gpu.cuda_malloc.value = f.hw.gpu.cuda_free.value = 1e-3;
        f.hw.gpu.hbm_capacity.value = limited ? 1e9 : 2e9;
        int first = plan_alloc(&f.builder, STREAM_UNSHARD, "gathered", 400000000, HBM_GATHERED);
        plan_free(&f.builder, first, mover(&f, STREAM_COMPUTE, 10, 0));
        int second = plan_alloc(&f.builder, STREAM_COMPUTE, "scores", 700000000, HBM_ACTIVATIONS);
        mover(&f, STREAM_COMPUTE, 10, 0);
        plan_free(&f.builder, second, PLAN_NO_OP);
        run(&f);
        assert_int_equal(f.result.status, EXEC_OK);
        near(f.result.step_time_s, limited ? 23e-3 : 21e-3);
        near(f.result.memory.alloc_stall_s, limited ? 13e-3 : 2e-3);
        assert_true(f.result.memory.alloc_retries_a_step == limited);
        end(&f);
    }
}

/* Two GPUs, one faster and one slower than 10 ms by a few per cent. A block of 700 MB of 1 GB is freed after a kernel
 * of 10 ms, and as much asked for 9.99 ms later: the slower one has to drain for it, the faster one has the block by
 * then. The result is the slower one's, whichever of the two it is. */
static void the_rank_that_stands_longest_is_the_result(void **state)
{
    (void)state;
    for (int seed = 1; seed <= 6; seed++) {
        struct fixture f;
        begin(&f, 2);
        f.options.seed = seed;
        f.options.noise.gpu_speed_spread = 0.05;
        int first = plan_alloc(&f.builder, STREAM_UNSHARD, "gathered", 700000000, HBM_GATHERED);
        plan_free(&f.builder, first, computer(&f, 10));
        plan_host(&f.builder, "work", 9.99e-3);
        int second = plan_alloc(&f.builder, STREAM_UNSHARD, "gathered", 700000000, HBM_GATHERED);
        plan_free(&f.builder, second, computer(&f, 1));
        run(&f);
        assert_false(f.result.folded);
        assert_true(f.result.memory.alloc_retries == 1);
        assert_true(f.result.memory.alloc_stall_s > 0.01e-3);
        end(&f);
    }
}

/* Blocks of 20 MiB, each of which a kernel of 10 ms of another stream uses before it is freed. Events are asked for by
 * malloc, and nowhere else: the second malloc comes while the first kernel runs, so it makes a segment. The third finds
 * the first block when the host has meanwhile worked 15 ms, and makes a segment when it has not. The fourth comes after
 * another 15 ms: the second block's event, recorded when it was freed, has passed by then, as its kernel ended at 20
 * ms. */
static void malloc_asks_for_events(void **state)
{
    (void)state;
    for (int late = 0; late < 2; late++) {
        struct fixture f;
        begin(&f, 1);
        for (int i = 0; i < 4; i++) {
            if (late && i >= 2)
                plan_host(&f.builder, "work", 15e-3);
            int block = plan_alloc(&f.builder, STREAM_UNSHARD, "gathered", 20 << 20, HBM_GATHERED);
            plan_free(&f.builder, block, mover(&f, STREAM_COMPUTE, 10, 0));
        }
        run(&f);
        assert_true(f.result.memory.peak_reserved_bytes == (late ? 40 : 80) << 20);
        assert_true(f.result.memory.peak_allocated_bytes == 20 << 20);
        end(&f);
    }
}

/* The launch queue: 3000 kernels of 1 us host and 10 us GPU time each, with 1 MB allocated for every kernel and freed
 * by the next (another stream having used it). The host gets 1024 launches ahead, not 3000, so not more than about 1024
 * blocks can be pending at a time. */
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
        cmocka_unit_test(a_collective_is_exposed_behind_the_kernel_that_waits_for_it),
        cmocka_unit_test(waits_beside_a_collective_are_exposed),
        cmocka_unit_test(groups_that_share_nics_halve_each_other),
        cmocka_unit_test(compute_is_slower_beside_a_collective),
        cmocka_unit_test(collectives_hold_what_their_channels_do),
        cmocka_unit_test(what_moves_slows_beyond_what_is_taken),
        cmocka_unit_test(who_waits_takes_no_bytes),
        cmocka_unit_test(each_kernel_that_starts_beside_a_collective_pays),
        cmocka_unit_test(bytes_need_sms),
        cmocka_unit_test(hbm_is_given_back),
        cmocka_unit_test(copies_to_the_host_are_not_slowed),
        cmocka_unit_test(the_rest_runs_at_full_speed_when_the_collective_ends),
        cmocka_unit_test(bytes_are_slower_beside_a_collective),
        cmocka_unit_test(stragglers_hold_everybody_up),
        cmocka_unit_test(out_of_memory_is_a_result),
        cmocka_unit_test(what_the_first_step_keeps_takes_free_blocks),
        cmocka_unit_test(a_retry_drains_the_gpu),
        cmocka_unit_test(malloc_asks_for_events),
        cmocka_unit_test(the_rank_that_stands_longest_is_the_result),
        cmocka_unit_test(the_host_is_at_most_a_launch_queue_ahead),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
