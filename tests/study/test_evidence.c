/* How much of a difference rests on numbers that one side alone knows. */
#include "study/evidence.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "../near.h"
#include "../point.h"

#include <string.h>

#define CLUSTERS FLOPCAST_SOURCE_DIR "/topologies/clusters/"

static struct scenario_point load(const char *topology, struct arena *arena)
{
    const struct scenario_override list[] = {{"cluster.topology", topology}, {"cluster.gpus", "16"},
        {"fsdp.sharding_strategy", "FULL_SHARD"}, {"train.micro_batch", "1"}};
    struct diag *diag = ARENA_NEW(arena, struct diag);
    struct scenario_set set;
    if (scenario_load(&set, FLOPCAST_SOURCE_DIR "/scenarios/llama2_7b_h100_fsdp.yaml", OVERRIDES(list), arena, diag) !=
        STATUS_OK)
        fail_msg("%s", diag->text);
    set.points[0].options.exec.noise = (struct noise_options){0};
    set.points[0].options.exec.no_memory = true; /* as the quiet runs are, so that all agrees to the last digit */
    return set.points[0];
}

static double speed(const struct scenario_point *point)
{
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    struct scenario_result result;
    assert_int_equal(scenario_simulate(&result, point, &arena, &diag), STATUS_OK);
    arena_release(&arena);
    return result.tokens_per_s_per_gpu;
}

/* H100 with its fit and a card of the same numbers whose sustained rates nobody knows: all that it gains is that. With
 * the HBM of H200, too, the gain is split; whichever is first. */
static void what_rests_on_a_fit_of_one_side(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    struct scenario_point known = load(CLUSTERS "h100-8x400g.yaml", &arena), other = known, even = known;
    even.hw.gpu.hbm_bandwidth.value = other.hw.gpu.hbm_bandwidth.value = 4.8e12; /* a rate: not evened out */
    other.hw.gpu.gemm_sustained = (struct quantity){0};
    other.options.cluster.topology = "another";
    const double speeds[] = {speed(&known), speed(&other)}, evened = speed(&even);
    assert_true(speeds[1] > 1.1 * speeds[0] && evened > speeds[0]);
    for (int swap = 0; swap < 2; swap++) {
        const struct scenario_point *const points[2] = {swap ? &other : &known, swap ? &known : &other};
        const double own[2] = {speeds[swap], speeds[!swap]};
        struct scenario_unlike unlike;
        assert_int_equal(scenario_unlike(&unlike, points, own, &arena, &diag), STATUS_OK);
        assert_int_equal(unlike.n_parts, 1);
        assert_string_equal(unlike.parts[0].number.key, "gpu.gemm_sustained");
        assert_near(unlike.change, own[1] / own[0] - 1, 1e-12);
        assert_near(unlike.even, (swap ? speeds[0] / evened : evened / speeds[0]) - 1, 1e-9);
        assert_near(unlike.parts[0].part, unlike.change - unlike.even, 1e-9);
    }
    arena_release(&arena);
}

/* Several numbers: each alone, the largest first; those that change nothing are left out. */
static void numbers_stand_by_what_they_make(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    struct scenario_point known = load(CLUSTERS "h100-8x400g.yaml", &arena), other = known;
    other.options.cluster.topology = "another";
    other.hw.gpu.gemm_sustained = (struct quantity){0};
    other.hw.gpu.attention_efficiency.value *= 0.8; /* measured on H100 */
    other.hw.gpu.attention_efficiency.kind = QUANTITY_ASSUMED;
    other.hw.gpu.gemm[DTYPE_TF32].efficiency.value *= 0.8; /* nothing here multiplies in TF32 */
    other.hw.gpu.gemm[DTYPE_TF32].efficiency.kind = QUANTITY_ASSUMED;
    const struct scenario_point *const points[2] = {&known, &other};
    const double speeds[2] = {speed(&known), speed(&other)};
    struct scenario_unlike unlike;
    assert_int_equal(scenario_unlike(&unlike, points, speeds, &arena, &diag), STATUS_OK);
    assert_int_equal(unlike.n_parts, 2);
    assert_string_equal(unlike.parts[0].number.key, "gpu.gemm_sustained");
    assert_string_equal(unlike.parts[1].number.key, "gpu.attention_efficiency");
    assert_true(unlike.parts[0].part > 0 && unlike.parts[1].part < 0);
    assert_near(unlike.even, 0, 1e-12); /* then they are one machine */
    arena_release(&arena);
}

static int parts(const struct scenario_point *a, const struct scenario_point *b, double speed_a, double speed_b)
{
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    struct scenario_unlike unlike;
    const struct scenario_point *const points[2] = {a, b};
    const double speeds[2] = {speed_a, speed_b};
    assert_int_equal(scenario_unlike(&unlike, points, speeds, &arena, &diag), STATUS_OK);
    arena_release(&arena);
    return unlike.n_parts;
}

static void nothing_is_said_where_nothing_is_compared(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct scenario_point known = load(CLUSTERS "h100-8x400g.yaml", &arena), other = known;
    other.options.cluster.topology = "another";
    assert_int_equal(parts(&known, &other, 1, 1), 0); /* alike */
    other.hw.gpu.gemm_sustained = (struct quantity){0};
    assert_int_equal(parts(&known, &other, 1, 1), 1);
    assert_int_equal(parts(&known, &other, 0, 1), 0); /* one is out of memory */
    assert_int_equal(parts(&known, &other, 1, 0), 0);
    other.options.cluster.given.gpu.gemm_sustained = (struct quantity){1, 0, QUANTITY_ASSUMED, "--set", NULL};
    assert_int_equal(parts(&known, &other, 1, 1), 0); /* a choice */
    other.options.cluster.given.gpu.gemm_sustained = (struct quantity){0};
    other.options.cluster.topology = known.options.cluster.topology;
    assert_int_equal(parts(&known, &other, 1, 1), 0); /* one cluster: a stack's doing */
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_rests_on_a_fit_of_one_side),
        cmocka_unit_test(numbers_stand_by_what_they_make),
        cmocka_unit_test(nothing_is_said_where_nothing_is_compared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
