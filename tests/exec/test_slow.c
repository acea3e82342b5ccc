/* GPUs that are slow, by name and from a time on. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "step.h"

static void set_slow(struct fixture *f, const char *text)
{
    struct diag diag = DIAG_INIT;
    degrade_gpus(&f->options.gpu_events, &f->hw, f->plan.mesh.ranks, text, (struct source_pos){0},
        &f->arena, &diag);
    assert_string_equal(diag.text, "");
}

/* A kernel that computes for 10 ms, then one that moves bytes for 5 ms, which no clock of SMs
 * changes. */
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
        set_slow(&f, cases[c / 2].text);
        f.options.one_by_one = c % 2;
        computer(&f, 10);
        mover(&f, STREAM_COMPUTE, 5, 0);
        run(&f);
        near(f.result.step_time_s, cases[c / 2].want_s);
        near(f.result.breakdown.compute_s, cases[c / 2].want_s);
        near(
            f.result.breakdown.contention_s, 0); /* slow is not the same as slowed by collectives */
        end(&f);
    }
}

/* Kernels of a row that is looked at ahead run at the speed of their time: 20 of 1 ms, half as fast
 * after 7.5. */
static void what_follows_runs_at_the_new_speed(void **state)
{
    (void)state;
    for (int one_by_one = 0; one_by_one < 2; one_by_one++) {
        struct fixture f;
        begin(&f, 1);
        set_slow(&f, "node0.gpu0=50 % at 7.5 ms");
        f.options.one_by_one = one_by_one;
        for (int i = 0; i < 20; i++)
            computer(&f, 1);
        run(&f);
        near(f.result.step_time_s, 7.5e-3 + 2 * 12.5e-3);
        near(f.result.breakdown.contention_s, 0);
        end(&f);
    }
}

/* Two GPUs compute for 10 ms and then gather, for 0.11 + 1 ms: the fast one waits for the slow one.
 * Where both are as slow, one stands for both. */
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
        set_slow(&f, cases[c].text);
        f.options.fold = FOLD_AUTO;
        int world = plan_group(&f.builder, "world", 2, 1);
        plan_stream_wait(&f.builder, STREAM_COMM, computer(&f, 10));
        int gather =
            plan_collective(&f.builder, STREAM_COMM, "gather", COLL_ALL_GATHER, 200e6, world, 0);
        plan_stream_wait(&f.builder, STREAM_COMPUTE, gather);
        mover(&f, STREAM_COMPUTE, 1, 0);
        run(&f);
        near(f.result.step_time_s, cases[c].compute_s + 1.11e-3 + 1e-3);
        near(f.result.breakdown.comm_wait_s, cases[c].wait_s);
        assert_int_equal(f.result.ranks_simulated, cases[c].simulated);
        end(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_computed_takes_longer),
        cmocka_unit_test(what_follows_runs_at_the_new_speed),
        cmocka_unit_test(others_wait_for_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
