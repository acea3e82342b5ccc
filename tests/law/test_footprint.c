/* The bounds of what a simulation takes of this machine's memory. That they are above what it takes is measured by
 * tests/bench/bench_points; here: they follow what they are said to, and the plan of few micro-batches stands for the
 * one of many. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "../point.h"
#include "scenario/footprint.h"

#define SCENARIO(name) FLOPCAST_SOURCE_DIR "/scenarios/" name ".yaml"
#define QUIET                                                                                                          \
    {"noise.gpu_speed_spread", "0"}, {"noise.kernel_jitter", "0"}, {"noise.network_jitter", "0"},                      \
    {                                                                                                                  \
        "noise.host_jitter", "0"                                                                                       \
    }

static struct scenario_point load(
    const char *scenario, const struct scenario_override *overrides, int n, struct arena *arena)
{
    struct diag *diag = xcalloc(1, sizeof *diag);
    struct scenario_set set = {0};
    if (scenario_load(&set, scenario, overrides, n, arena, diag) != STATUS_OK)
        fail_msg("%s", diag->text);
    assert_int_equal(set.n_points, 1);
    free(diag);
    return set.points[0];
}

static struct footprint find(const struct scenario_point *point)
{
    struct diag diag = DIAG_INIT;
    struct footprint out;
    assert_int_equal(footprint_find(&out, point, &diag), STATUS_OK);
    return out;
}

static void more_of_anything_takes_more(void **state)
{
    (void)state;
    const struct footprint some = {.ops = 1e5, .programs = 4, .gpus = 64, .ranks = 64};
    struct footprint ops = some, gpus = some, ranks = some, ledgers = some;
    ops.ops = 2e5;
    gpus.gpus = 128;
    ranks.ranks = 128;
    ledgers.ledgers = true;
    double bytes = footprint_bytes(&some);
    assert_true(footprint_bytes(&ops) > bytes);
    assert_true(footprint_bytes(&gpus) > bytes);
    assert_true(footprint_bytes(&ranks) > bytes);
    assert_true(footprint_bytes(&ledgers) > bytes);
}

/* The ops of all micro-batches, from those of one wave and of two; and the ranks, as a run has them. */
static void few_micro_batches_stand_for_many(void **state)
{
    (void)state;
    static const struct scenario_override accumulated[] = {{"cluster.gpus", "8"}, {"train.grad_accum", "9"}, QUIET},
                                          pipeline[] = {{"cluster.gpus", "64"}, {"train.global_batch", "40"}},
                                          noisy[] = {{"cluster.gpus", "64"}, {"train.global_batch", "8"},
                                              {"noise.gpu_speed_spread", "0.02"}, {"run.steps", "1"},
                                              {"run.warmup_steps", "0"}};
    const struct {
        const char *scenario;
        const struct scenario_override *overrides;
        int n;
        double ranks;
    } cases[] = {{SCENARIO("gpt2_ddp_v100"), OVERRIDES(accumulated), 1},
        {SCENARIO("llama3_70b_nemo"), OVERRIDES(pipeline), 4}, {SCENARIO("llama3_70b_nemo"), OVERRIDES(noisy), 64}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct arena arena = ARENA_INIT;
        struct scenario_point point = load(cases[i].scenario, cases[i].overrides, cases[i].n, &arena);
        struct scenario_result result = simulate_point(cases[i].scenario, cases[i].overrides, cases[i].n, &arena);
        struct footprint loose = footprint_at_most(&point), close = find(&point);
        assert_true(close.ops == result.plan_ops);
        assert_true(close.ranks == cases[i].ranks && close.ranks == result.exec.ranks_simulated);
        assert_true(footprint_bytes(&loose) >= footprint_bytes(&close));
        arena_release(&arena);
    }
}

/* 128 GPUs that vary, of which each frees cached segments again and again: each has a ledger, 0.2 MiB. Not with a
 * smaller model in as much memory. */
static void ledgers_are_there_where_segments_are_freed(void **state)
{
    (void)state;
    static const struct scenario_override retries[] = {{"cluster.gpus", "128"}, {"train.micro_batch", "1"},
        {"fsdp.limit_all_gathers", "false"}, {"noise.gpu_speed_spread", "0.02"}};
    static const struct scenario_override none[] = {{"cluster.gpus", "32"}, {"noise.gpu_speed_spread", "0.02"}};
    struct arena arena = ARENA_INIT;
    struct scenario_point point = load(SCENARIO("allocator_retries"), OVERRIDES(retries), &arena);
    struct footprint with = find(&point);
    assert_true(with.ledgers);
    with.ledgers = false;
    double without = footprint_bytes(&with);
    with.ledgers = true;
    assert_true(footprint_bytes(&with) > without + 128 * 160 * 1024.0);
    point = load(SCENARIO("gpt2_ddp_v100"), OVERRIDES(none), &arena);
    assert_false(find(&point).ledgers);
    assert_true(footprint_at_most(&point).ledgers);
    arena_release(&arena);
}

/* Where memory is plenty nothing is compiled; where it is short the close bound decides. */
static void points_are_looked_at_closely_where_memory_is_short(void **state)
{
    (void)state;
    static const struct scenario_override one[] = {{"cluster.gpus", "8"}, QUIET};
    static const struct scenario_override seeded[] = {{"cluster.gpus", "8"}, {"run.seed", "7"}, QUIET};
    struct arena arena = ARENA_INIT;
    struct scenario_point a = load(SCENARIO("gpt2_ddp_v100"), OVERRIDES(one), &arena);
    struct scenario_point b = load(SCENARIO("gpt2_ddp_v100"), OVERRIDES(seeded), &arena);
    const struct scenario_point *points[] = {&a, &b, &a};
    const bool skipped[] = {false, false, true};
    struct footprint loose = footprint_at_most(&a), close = find(&a);
    double bytes[3];
    footprint_each(bytes, points, 3, skipped, 2, 1e15);
    assert_true(bytes[0] == footprint_bytes(&loose) && bytes[1] == bytes[0] && bytes[2] == 0);
    footprint_each(bytes, points, 3, skipped, 2, 2 * footprint_bytes(&loose) - 1);
    assert_true(bytes[0] == footprint_bytes(&close) && bytes[1] == bytes[0] && bytes[2] == 0);
    assert_true(bytes[0] < footprint_bytes(&loose));
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(more_of_anything_takes_more),
        cmocka_unit_test(few_micro_batches_stand_for_many),
        cmocka_unit_test(ledgers_are_there_where_segments_are_freed),
        cmocka_unit_test(points_are_looked_at_closely_where_memory_is_short),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
