/* Jobs beside each other on one network. Two GPUs and two NICs of 10 GB/s a node (tests/fabric/switches.h), two nodes
 * on a leaf unless a test says otherwise, and two uplinks of 10 GB/s a leaf. */
#include "exec/together.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "../fabric/switches.h"

static const double LATENCIES_S = 1e-3; /* of a step's one or two collectives 24 us each, of its kernel 1 us: less */

/* A step: an all-gather of pairs of nodes that moves pair_bytes, then one of all ranks that moves all_bytes; 0: none.
 */
struct step {
    double pair_bytes, all_bytes;
};

static void make_plan(struct plan *plan, int ranks, struct step step)
{
    struct plan_builder builder;
    plan_begin(&builder, plan, ranks);
    int pair = plan_group(&builder, "pair", 4, 1), world = plan_group(&builder, "world", ranks, 1), last = -1;
    if (step.pair_bytes > 0) /* a rank of 4 sends 3/4 of the whole */
        last = plan_collective(&builder, STREAM_COMM, "in", COLL_ALL_GATHER, step.pair_bytes * 4 / 3, pair, 0);
    if (step.all_bytes > 0)
        last = plan_collective(
            &builder, STREAM_COMM, "all", COLL_ALL_GATHER, step.all_bytes * ranks / (ranks - 1), world, 0);
    plan_stream_wait(&builder, STREAM_COMPUTE, last);
    int used = plan_kernel(&builder, STREAM_COMPUTE, "use", kernel_stream(KERNEL_COPY, 1e6, 0, 0), 0);
    plan_host_wait(&builder, "step", used, 0); /* the next step's collectives come after it */
    plan_end(&builder);
}

struct jobs {
    struct arena arena;
    struct plan plans[2];
    struct exec_options options[2];
    struct exec_job list[2];
    struct exec_result results[2];
};

static void add_job(
    struct jobs *jobs, int j, const struct hw *hw, struct step step, int nodes, const int *at, int steps)
{
    make_plan(&jobs->plans[j], 2 * nodes, step);
    jobs->options[j] = (struct exec_options){.steps = steps, .warmup_steps = 2, .seed = 1};
    jobs->list[j] = (struct exec_job){&jobs->plans[j], hw, &jobs->options[j], {at, 8}, &jobs->results[j]};
}

static void run(struct jobs *jobs, int first, int n)
{
    exec_run_together(jobs->list + first, n, &jobs->arena);
}

static void release(struct jobs *jobs)
{
    for (int j = 0; j < 2; j++)
        plan_release(&jobs->plans[j]);
    arena_release(&jobs->arena);
}

/* Rings 0 -> 2 -> 0 and 1 -> 3 -> 1: both cross leaf 0's uplinks, 20 GB/s, which one of them fills. 6 GB take 0.3 s
 * alone, 0.6 s beside the other, and as neither computes, always. */
static void jobs_that_share_uplinks_get_half_of_them(void **state)
{
    (void)state;
    struct hw hw = test_hw();
    struct jobs jobs = {0};
    const int left[] = {0, 2}, right[] = {1, 3};
    add_job(&jobs, 0, &hw, (struct step){0, 6e9}, 2, left, 4);
    add_job(&jobs, 1, &hw, (struct step){0, 6e9}, 2, right, 4);
    for (int j = 0; j < 2; j++) {
        run(&jobs, j, 1);
        assert_near(jobs.results[j].step_time_s, 0.3, LATENCIES_S);
    }
    run(&jobs, 0, 2);
    for (int j = 0; j < 2; j++) {
        assert_int_equal(jobs.results[j].status, EXEC_OK);
        assert_near(jobs.results[j].step_time_s, 0.6, LATENCIES_S);
        /* 6 GB out of and into both nodes; 2 NICs of 10 GB/s each way */
        assert_near(jobs.results[j].nic_utilisation * jobs.results[j].step_time_s * 80e9, 24e9, 1e8);
    }
    release(&jobs);
}

/* Each on one leaf: nothing is shared, and the steps are those of the job alone to the last picosecond. */
static void jobs_on_different_leaves_do_not_meet(void **state)
{
    (void)state;
    struct hw hw = test_hw();
    struct jobs jobs = {0};
    const int left[] = {0, 1}, right[] = {2, 3};
    add_job(&jobs, 0, &hw, (struct step){0, 6e9}, 2, left, 4);
    add_job(&jobs, 1, &hw, (struct step){0, 6e9}, 2, right, 4);
    run(&jobs, 0, 1);
    double alone_s = jobs.results[0].step_time_s;
    run(&jobs, 0, 2);
    assert_true(jobs.results[0].step_time_s == alone_s);
    assert_true(jobs.results[1].step_time_s == alone_s);
    release(&jobs);
}

/* Four nodes on a leaf. The first job's pairs of nodes are on one leaf each, its ring of all crosses; the second job
 * only crosses. In 0.3 s of pairs the second has the uplinks to itself and moves its 6 GB; then both have 10 GB/s and
 * take 0.6 s for 6 GB. So 0.9 s a step of the first (alone 0.6) and for two steps of the second (alone 0.3 each): both
 * are slowed to 1.5, half of the first's traffic and two thirds of the second's time being shared. */
static void a_job_that_shares_half_of_its_traffic_is_slowed_by_half(void **state)
{
    (void)state;
    struct hw hw = test_hw();
    hw.cluster.network.leaf_ports = assumed(8);
    struct jobs jobs = {0};
    const int first[] = {0, 1, 4, 5}, second[] = {2, 3, 6, 7};
    add_job(&jobs, 0, &hw, (struct step){6e9, 6e9}, 4, first, 4);
    add_job(&jobs, 1, &hw, (struct step){0, 6e9}, 4, second, 8);
    for (int j = 0; j < 2; j++) {
        run(&jobs, j, 1);
        assert_near(jobs.results[j].step_time_s, j == 0 ? 0.6 : 0.3, LATENCIES_S);
    }
    run(&jobs, 0, 2);
    assert_near(jobs.results[0].step_time_s, 0.9, 2 * LATENCIES_S);
    assert_near(jobs.results[1].step_time_s, 0.45, 2 * LATENCIES_S);
    release(&jobs);
}

/* Measured steps are all beside the other job, whichever has done its own first: with 2 or with 12 steps of the second
 * the first is as slow. */
static void a_job_goes_on_until_the_others_are_measured(void **state)
{
    (void)state;
    struct hw hw = test_hw();
    const int left[] = {0, 2}, right[] = {1, 3};
    double step_s[2];
    for (int i = 0; i < 2; i++) {
        struct jobs jobs = {0};
        add_job(&jobs, 0, &hw, (struct step){0, 6e9}, 2, left, 4);
        add_job(&jobs, 1, &hw, (struct step){0, 6e9}, 2, right, i == 0 ? 2 : 12);
        run(&jobs, 0, 2);
        step_s[i] = jobs.results[0].step_time_s;
        release(&jobs);
    }
    assert_near(step_s[0], 0.6, LATENCIES_S);
    assert_near(step_s[1], step_s[0], 1e-9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jobs_that_share_uplinks_get_half_of_them),
        cmocka_unit_test(jobs_on_different_leaves_do_not_meet),
        cmocka_unit_test(a_job_that_shares_half_of_its_traffic_is_slowed_by_half),
        cmocka_unit_test(a_job_goes_on_until_the_others_are_measured),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
