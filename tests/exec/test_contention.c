/* What kernels lose beside collectives. */
#include "exec/exec.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "step.h"

/* A kernel that computes for 10 ms on 100 SMs, beside a collective that takes all of that time and
 * holds 20 of them: 10 / 0.8 = 12.5 ms. The collective: 0.11 ms + x / 100 GB/s with 2 x bytes; 3 GB
 * -> 15.11 ms. */
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

/* A collective across nodes holds as many SMs as the cluster has channels, 10 of 100; one inside a
 * node beside it 20 more. Both last longer than the kernel: 10 ms / 0.9 and 10 ms / 0.7. */
static void collectives_hold_what_their_channels_do(void **state)
{
    (void)state;
    for (int inside = 0; inside < 2; inside++) {
        struct fixture f;
        begin(&f, 4);
        f.hw.cluster.nccl_channels = (struct quantity){.value = 10, .kind = QUANTITY_ASSUMED};
        int node = plan_group(&f.builder, "shard", 2, 1),
            world = plan_group(&f.builder, "world", 4, 1);
        plan_collective(&f.builder, STREAM_REPLICATE, "across", COLL_ALL_GATHER, 8e9, world, 0);
        if (inside)
            plan_collective(&f.builder, STREAM_COMM, "inside", COLL_ALL_GATHER, 8e9, node, 0);
        computer(&f, 10);
        run(&f);
        near(f.result.breakdown.compute_s, 10e-3 / (inside ? 0.7 : 0.9));
        end(&f);
    }
}

/* Traffic: while its bytes move, for 15 ms after 0.11 ms of latency, the all-gather takes half of
 * HBM (see bytes_are_slower_beside_a_collective); with an overlap_traffic of 0.8 kernels take 1.4
 * times as long, beyond what else they lose. 10 ms of compute: 0.8 x 0.11 ms of it are done when
 * bytes begin to move, 15 ms x 0.8 / 1.4 when the collective ends. 5 ms of bytes: 0.11 ms are done,
 * and then 0.5 / 1.4 of what would be. */
static void what_moves_slows_beyond_what_is_taken(void **state)
{
    (void)state;
    for (int bytes = 0; bytes < 2; bytes++) {
        struct fixture f;
        begin(&f, 2);
        f.hw.gpu.overlap_traffic.value = 0.8;
        int world = plan_group(&f.builder, "world", 2, 1);
        plan_collective(&f.builder, STREAM_COMM, "gather", COLL_ALL_GATHER, 3e9, world, 0);
        if (bytes)
            mover(&f, STREAM_COMPUTE, 5, 0);
        else
            computer(&f, 10);
        run(&f);
        near(f.result.step_time_s,
            bytes ? 0.11e-3 + 4.89e-3 * 1.4 / 0.5 : 25.11e-3 - 0.088e-3 - 15e-3 * 0.8 / 1.4);
        end(&f);
    }
}

/* A collective that waits moves nothing. The second GPU is half as fast and comes to the all-gather
 * of 778 MB at 8 ms, the first at 4; bytes move from 8.11 to 12 ms, at half of HBM. Kernels that
 * move bytes for 20 ms on both lose only then, 3.89 ms at 0.5 / 1.4 of their speed, although the
 * first GPU's collective is resident from 4 ms on. */
static void who_waits_takes_no_bytes(void **state)
{
    (void)state;
    struct degrade_event slow = {.target = 1, .share = 0.5};
    struct fixture f;
    begin(&f, 2);
    f.hw.gpu.overlap_traffic.value = 0.8;
    f.options.gpu_events = (struct degrade_events){&slow, 1};
    int world = plan_group(&f.builder, "world", 2, 1);
    int before = plan_kernel(
        &f.builder, STREAM_UNSHARD, "before", kernel_stream(KERNEL_ELEMENTWISE, 0, 0, 4e9), 0);
    plan_stream_wait(&f.builder, STREAM_COMM, before);
    plan_collective(&f.builder, STREAM_COMM, "gather", COLL_ALL_GATHER, 778e6, world, 0);
    mover(&f, STREAM_COMPUTE, 20, 0);
    run(&f);
    near(f.result.step_time_s, 20e-3 + 3.89e-3 * (1 - 0.5 / 1.4));
    near(f.result.breakdown.contention_s, 3.89e-3 * (1 - 0.5 / 1.4));
    end(&f);
}

/* A late rank lengthens residence on an early one. Both compute for 4 ms before an all-gather of 4
 * ms (0.11 + 3.89: 778 MB), and for 20 ms beside it. The second GPU has a share of its speed and
 * comes at 4 ms / share; until then the first one's collective waits, and holds 20 of its 100 SMs:
 * of 4 ms / share of residence kernels lose a fifth, on the late one of 4 ms whatever the share. */
static void late_ranks_lengthen_residence_on_early_ones(void **state)
{
    (void)state;
    for (int late = 1; late <= 4; late++) {
        struct degrade_event slow = {.target = 1, .share = 1.0 / late};
        struct fixture f;
        begin(&f, 2);
        f.options.gpu_events = (struct degrade_events){&slow, 1};
        int world = plan_group(&f.builder, "world", 2, 1);
        int before = plan_kernel(
            &f.builder, STREAM_UNSHARD, "before", kernel_stream(KERNEL_ELEMENTWISE, 0, 0, 4e9), 0);
        plan_stream_wait(&f.builder, STREAM_COMM, before);
        plan_collective(&f.builder, STREAM_COMM, "gather", COLL_ALL_GATHER, 778e6, world, 0);
        computer(&f, 20);
        run(&f);
        near(f.result.breakdown.comm_wait_s, (late - 1) * 4e-3 / 2);
        near(f.result.breakdown.contention_s,
            (0.2 * late * 4e-3 + 0.2 * 4e-3) / 2); /* means over both */
        near(f.result.step_time_s, late * 20e-3 + 0.2 * 4e-3);
        end(&f);
    }
}

/* overlap_start: of 500 kernels of 10 us those that start beside the collective of 4 ms take 5 us
 * more, beyond the SMs that it holds: 17.5 us. The first starts at the same instant before it, runs
 * at 0.8 of the speed and pays no start: 12.5 us. 227 more start by 12.5 us + 227 x 17.5 us = 3.985
 * ms, and the 229th of all at 3.985 ms: at 4 ms 10 of its 12.5 us are done, and 2 us are left (5 us
 * of the start, run down alike: 15 of 17.5 us are done, 2.5 / 17.5 of 15 us are left). The
 * remaining 271 take 10 us. */
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

/* The same with a collective of 4 ms (0.11 + 3.89: 778 MB): in 4 ms 3.2 ms of work are done, 6.8 ms
 * are left at full speed: 10.8 ms. */
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

/* HBM: of an all-gather of 3 GB on two ranks 1.5 GB come to each, are staged (written, read) and
 * written, and the rank's own 1.5 GB are read and written: 7.5 GB in 15 ms after 0.11 ms of
 * latency, half of the 1 TB/s. A kernel that alone moves bytes for 7 ms has 6.89 of them left then,
 * which take twice as long. */
static void bytes_are_slower_beside_a_collective(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, 2);
    int world = plan_group(&f.builder, "world", 2, 1);
    plan_collective(&f.builder, STREAM_COMM, "gather", COLL_ALL_GATHER, 3e9, world, 0);
    mover(&f, STREAM_COMPUTE, 7, 0);
    run(&f);
    near(f.result.step_time_s, 0.11e-3 + 6.89e-3 / 0.5);
    end(&f);
}

/* Where 90 SMs are needed to draw all of HBM, the 80 that a collective leaves draw 8/9 of it: so
 * much it is in the latency, and 0.5 when bytes move, which is the lower of the two. Where 80
 * suffice nothing is lost in the latency. */
static void bytes_need_sms(void **state)
{
    (void)state;
    for (int needed = 80; needed <= 90; needed += 10) {
        struct fixture f;
        begin(&f, 2);
        f.hw.gpu.memory_sms.value = needed;
        int world = plan_group(&f.builder, "world", 2, 1);
        plan_collective(&f.builder, STREAM_COMM, "gather", COLL_ALL_GATHER, 3e9, world, 0);
        mover(&f, STREAM_COMPUTE, 7, 0);
        run(&f);
        near(f.result.step_time_s, 0.11e-3 + (7e-3 - 0.11e-3 * 80 / needed) / 0.5);
        end(&f);
    }
}

/* HBM is given back when a collective ends: of 778 MB, from 0.11 to 4 ms. 10 ms of bytes lose half
 * of 3.89 ms. */
static void hbm_is_given_back(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, 2);
    int world = plan_group(&f.builder, "world", 2, 1);
    plan_collective(&f.builder, STREAM_COMM, "gather", COLL_ALL_GATHER, 778e6, world, 0);
    mover(&f, STREAM_COMPUTE, 10, 0);
    run(&f);
    near(f.result.step_time_s, 10e-3 + 3.89e-3 * 0.5);
    near(f.result.breakdown.contention_s, 3.89e-3 * 0.5);
    end(&f);
}

/* Copies to the host go over the GPU's link: 10 ms at 1 GB/s stay 10 ms beside a collective that
 * takes SMs and HBM. */
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(compute_is_slower_beside_a_collective),
        cmocka_unit_test(collectives_hold_what_their_channels_do),
        cmocka_unit_test(what_moves_slows_beyond_what_is_taken),
        cmocka_unit_test(who_waits_takes_no_bytes),
        cmocka_unit_test(late_ranks_lengthen_residence_on_early_ones),
        cmocka_unit_test(each_kernel_that_starts_beside_a_collective_pays),
        cmocka_unit_test(the_rest_runs_at_full_speed_when_the_collective_ends),
        cmocka_unit_test(bytes_are_slower_beside_a_collective),
        cmocka_unit_test(bytes_need_sms),
        cmocka_unit_test(hbm_is_given_back),
        cmocka_unit_test(copies_to_the_host_are_not_slowed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
