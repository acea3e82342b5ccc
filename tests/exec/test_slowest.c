/* FOLD_SLOWEST: what is simulated for all, where GPUs differ. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "step.h"

enum { RANKS = 64 }; /* two a node, 32 nodes */
static const double SPREAD = 0.015;
/* The slowest of 64: the normal quantile of (64 - 0.375) / (64.25), Blom's. */
static const double SLOWEST = 2.336691;

static void begin_many(struct fixture *f, int fold, double spread)
{
    begin(f, RANKS);
    f->hw.cluster.nodes.value = RANKS / 2.0;
    f->options.fold = fold;
    f->options.noise.gpu_speed_spread = f->options.noise.gpu_speed_spread_below = spread;
}

/* 10 ms, then a gather over all ranks. */
static void gather_all(struct fixture *f)
{
    int world = plan_group(&f->builder, "world", RANKS, 1);
    plan_stream_wait(&f->builder, STREAM_COMM, computer(f, 10));
    int gather =
        plan_collective(&f->builder, STREAM_COMM, "gather", COLL_ALL_GATHER, 200e6, world, 0);
    plan_stream_wait(&f->builder, STREAM_COMPUTE, gather);
    mover(f, STREAM_COMPUTE, 1, 0);
}

static double step_of(int fold, double spread, int simulated)
{
    struct fixture f;
    begin_many(&f, fold, spread);
    gather_all(&f);
    run(&f);
    assert_int_equal(f.result.ranks_simulated, simulated);
    double step_s = f.result.step_time_s;
    end(&f);
    return step_s;
}

/* 16 of 32 nodes. Without noise one rank stands for all. */
static void the_slowest_nodes_decide(void **state)
{
    (void)state;
    double alike_s = step_of(FOLD_SLOWEST, 0, 1);
    double all_s = step_of(FOLD_OFF, SPREAD, RANKS),
           slowest_s = step_of(FOLD_SLOWEST, SPREAD, RANKS / 2);
    near(slowest_s, all_s);
    double longer_s = 10e-3 * (1 / (1 - SPREAD * SLOWEST) - 1);
    assert_true(fabs(slowest_s - alike_s - longer_s) < 1e-7); /* SLOWEST has six digits */
}

/* Pairs that meet for tensor parallelism are one rank, with the speed of the slower one. */
static void a_set_in_lockstep_is_one_rank(void **state)
{
    (void)state;
    double step_s[FOLD_COUNT];
    static const int folds[] = {FOLD_OFF, FOLD_SLOWEST}, simulated[] = {RANKS, RANKS / 4};
    for (int i = 0; i < 2; i++) {
        struct fixture f;
        begin_many(&f, folds[i], SPREAD);
        f.builder.serves = PARALLEL_TENSOR;
        int pair = plan_group(&f.builder, "tp", 2, 1);
        plan_stream_wait(&f.builder, STREAM_COMM, computer(&f, 10));
        int sum = plan_collective(&f.builder, STREAM_COMM, "sum", COLL_ALL_REDUCE, 200e6, pair, 0);
        plan_stream_wait(&f.builder, STREAM_COMPUTE, sum);
        f.builder.serves = PARALLEL_DATA;
        gather_all(&f);
        run(&f);
        assert_int_equal(f.result.ranks_simulated, simulated[i]);
        step_s[folds[i]] = f.result.step_time_s;
        end(&f);
    }
    near(step_s[FOLD_SLOWEST], step_s[FOLD_OFF]);
}

/* A rank that nobody stands for has the timeline of another one of its program. */
static void every_rank_has_a_timeline(void **state)
{
    (void)state;
    for (int rank = 0; rank < RANKS; rank++) {
        struct fixture f;
        begin_many(&f, FOLD_SLOWEST, SPREAD);
        gather_all(&f);
        f.options.trace_ranks = &rank;
        f.options.n_trace_ranks = 1;
        run(&f);
        assert_int_equal(f.result.n_spans, 3);
        assert_int_equal(f.result.spans[0].rank, exec_simulated_rank(&f.result, rank));
        end(&f);
    }
}

/* A block of 700 MB of 1 GB is freed after a kernel of 10 ms, and as much asked for 9.99 ms later:
 * slower GPUs drain for it. The slowest one is the result, whichever it is, and what its ranks did
 * adds up to the step. */
static void the_allocator_of_the_slowest_is_the_result(void **state)
{
    (void)state;
    for (int seed = 1; seed <= 4; seed++) {
        struct exec_result results[2];
        for (int i = 0; i < 2; i++) {
            struct fixture f;
            begin_many(&f, i ? FOLD_SLOWEST : FOLD_OFF, SPREAD);
            f.options.seed = seed;
            int first = plan_alloc(&f.builder, STREAM_UNSHARD, "gathered", 700000000, HBM_GATHERED);
            plan_free(&f.builder, first, computer(&f, 10));
            plan_host(&f.builder, "work", 9.99e-3);
            int second =
                plan_alloc(&f.builder, STREAM_UNSHARD, "gathered", 700000000, HBM_GATHERED);
            plan_free(&f.builder, second, computer(&f, 1));
            run(&f);
            results[i] = f.result;
            const struct exec_breakdown *part = &f.result.programs[0].breakdown;
            near(part->compute_s + part->exposed_comm_s + part->bubble_s + part->host_bound_s +
                     part->other_idle_s,
                f.result.step_time_s);
            end(&f);
        }
        assert_int_equal(results[1].ranks_simulated, RANKS / 2);
        assert_true(results[0].memory.alloc_retries == 1);
        assert_true(results[1].memory.alloc_retries == 1);
        near(results[1].memory.alloc_stall_s, results[0].memory.alloc_stall_s);
        near(results[1].step_time_s, results[0].step_time_s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_slowest_nodes_decide),
        cmocka_unit_test(a_set_in_lockstep_is_one_rank),
        cmocka_unit_test(every_rank_has_a_timeline),
        cmocka_unit_test(the_allocator_of_the_slowest_is_the_result),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
