/* GPUs that are slow, by name and from a time on. */
#include "fabric/slow.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "step.h"

/* A kernel that computes for 10 ms, then one that moves bytes for 5 ms, which no clock of SMs changes. */
static void what_is_computed_takes_longer(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double want_s;
    } cases[] = {
        {NULL, 15e-3}, {"node0.gpu0=50 %", 25e-3}, {" node0.gpu0 = 0.8 ", 17.5e-3},
        {"node0=50 %", 25e-3},                         /* all GPUs of a node */
        {"node*.gpu0=50 %", 25e-3},                    /* a pattern */
        {"node0.gpu1=50 %", 15e-3},                    /* another GPU of the node */
        {"node1=50 %, node0.gpu0=100 %", 15e-3},       /* another node of the cluster */
        {"node0=50 %, node0.gpu0=50 %", 45e-3},        /* two entries that name it multiply */
        {"node0.gpu0=50 % at 4 ms", 21e-3},            /* 6 of 10 ms are left: 4 + 12 + 5 */
        {"node0.gpu0=50 % at 10 ms", 15e-3},           /* as it ends */
        {"node0.gpu0=50 % at 12 ms", 15e-3},           /* bytes move */
        {"node0.gpu0=50 % at 20 ms", 15e-3},           /* the run has ended */
        {"node0=50 % at 4 ms, node0=1 at 8 ms", 17e-3} /* 4 + 4 of which half counts + 4 + 5 */
    };
    for (size_t c = 0; c < 2 * sizeof cases / sizeof *cases; c++) {
        struct fixture f;
        begin(&f, 1);
        f.options.slow_gpus = cases[c / 2].text;
        f.options.one_by_one = c % 2;
        computer(&f, 10);
        mover(&f, STREAM_COMPUTE, 5, 0);
        run(&f);
        near(f.result.step_time_s, cases[c / 2].want_s);
        near(f.result.breakdown.compute_s, cases[c / 2].want_s);
        near(f.result.breakdown.contention_s, 0); /* slow is not the same as slowed by collectives */
        end(&f);
    }
}

/* Kernels of a row that is looked at ahead run at the speed of their time: 20 of 1 ms, half as fast after 7.5. */
static void what_follows_runs_at_the_new_speed(void **state)
{
    (void)state;
    for (int one_by_one = 0; one_by_one < 2; one_by_one++) {
        struct fixture f;
        begin(&f, 1);
        f.options.slow_gpus = "node0.gpu0=50 % at 7.5 ms";
        f.options.one_by_one = one_by_one;
        for (int i = 0; i < 20; i++)
            computer(&f, 1);
        run(&f);
        near(f.result.step_time_s, 7.5e-3 + 2 * 12.5e-3);
        near(f.result.breakdown.contention_s, 0);
        end(&f);
    }
}

/* Two GPUs compute for 10 ms and then gather, for 0.11 + 1 ms: the fast one waits for the slow one. Where both are as
 * slow, one stands for both. */
static void others_wait_for_it(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double compute_s, wait_s;
        int simulated;
    } cases[] = {
        {NULL, 10e-3, 0, 1},
        {"node0.gpu1=100 %", 10e-3, 0, 1},
        {"node0.gpu1=50 %", 20e-3, 5e-3, 2}, /* 10 ms of one of two */
        {"*=50 %", 20e-3, 0, 1},
        {"node0.gpu1=50 % at 1 s", 10e-3, 0, 2},
        {"*=50 % at 4 ms", 16e-3, 0, 1},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct fixture f;
        begin(&f, 2);
        f.options.slow_gpus = cases[c].text;
        f.options.fold = FOLD_AUTO;
        int world = plan_group(&f.builder, "world", 2, 1);
        plan_stream_wait(&f.builder, STREAM_COMM, computer(&f, 10));
        int gather = plan_collective(&f.builder, STREAM_COMM, "gather", COLL_ALL_GATHER, 200e6, world, 0);
        plan_stream_wait(&f.builder, STREAM_COMPUTE, gather);
        mover(&f, STREAM_COMPUTE, 1, 0);
        run(&f);
        near(f.result.step_time_s, cases[c].compute_s + 1.11e-3 + 1e-3);
        near(f.result.breakdown.comm_wait_s, cases[c].wait_s);
        assert_int_equal(f.result.ranks_simulated, cases[c].simulated);
        end(&f);
    }
}

static void expect_error(const char *text, const char *want)
{
    struct hw hw = test_hw();
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    struct slow_gpus slow;
    hw.cluster.name = "test";
    assert_int_equal(slow_gpus_build(&slow, &hw, 4, text, (struct source_pos){0}, &arena, &diag), STATUS_INPUT);
    if (!strstr(diag.text, want))
        fail_msg("'%s' gives '%s'", text, diag.text);
    arena_release(&arena);
}

/* Eight nodes of two GPUs. */
static void what_cannot_be_is_an_error(void **state)
{
    (void)state;
    expect_error(
        "node8.gpu0=50 %", "no GPU of cluster 'test' is called 'node8.gpu0'; names are node0.gpu0 to node7.gpu1");
    expect_error("node0.gpu2=50 %", "is called 'node0.gpu2'");
    expect_error("node8=50 %", "is called 'node8'");
    expect_error("gpu3=50 %", "is called 'gpu3'");
    expect_error("node0=50 %, nod1=50 %", "is called 'nod1'");
    expect_error("node0=120 %", "slow GPU 'node0=120 %': 1.2 of the speed is left; use 0.01 to 1 (1 to 100 %)");
    expect_error("node0=0", "0 of the speed is left");
    expect_error("node0=-50 %", "-0.5 of the speed is left");
    expect_error(
        "node0", "there is no '='; write a pattern and what is left, and when, as in 'node3.gpu5=50 % at 2.5 s'");
    expect_error("node0=slow", "not a fraction");
    expect_error("node0=50 % at noon", "'noon' is no time");
    expect_error("node0=50 % at -1 s", "is no time from 0");
}

/* A job of 4 GPUs is on nodes 0 and 1; the cluster's others are no mistake. */
static void names_are_the_clusters(void **state)
{
    (void)state;
    struct hw hw = test_hw();
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    struct slow_gpus slow;
    assert_int_equal(
        slow_gpus_build(&slow, &hw, 4, "node7.gpu1=50 %", (struct source_pos){0}, &arena, &diag), STATUS_OK);
    assert_false(slow.uneven);
    assert_false(slow_gpus_concern(&hw, 4, "node7.gpu1=50 %"));
    assert_true(slow_gpus_concern(&hw, 4, "node7.gpu1=50 %, node1=90 % at 1 s"));
    assert_true(slow_gpus_concern(&hw, 16, "node7.gpu1=50 %"));
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_computed_takes_longer),
        cmocka_unit_test(what_follows_runs_at_the_new_speed),
        cmocka_unit_test(others_wait_for_it),
        cmocka_unit_test(what_cannot_be_is_an_error),
        cmocka_unit_test(names_are_the_clusters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
