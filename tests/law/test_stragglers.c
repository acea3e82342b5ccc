/* Laws of slow hosts and of pauses of the host (noise.straggler_share, noise.host_pause). */
#include "scenario/scenario.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "../near.h"
#include "../point.h"

#include <math.h>

#define SCENARIO FLOPCAST_SOURCE_DIR "/scenarios/sharding_strategies_7b.yaml"
enum { GPUS = 32 };

/* GPT-2 without noise, one step before the measured one. */
static struct scenario_point load(const char *gpus, struct arena *arena)
{
    const struct scenario_override list[] = {
        {"model", FLOPCAST_SOURCE_DIR "/scenarios/models/gpt2.yaml"}, {"cluster.gpus", gpus},
        {"strategy", "ddp"}, {"fsdp.sharding_strategy", "NO_SHARD"},
        {"train.activation_checkpointing", "none"}, {"train.micro_batch", "8"},
        {"train.seq_len", "1024"}, {"train.precision", "bf16_mixed"}, {"run.steps", "1"},
        {"run.warmup_steps", "1"}, {"noise.gpu_speed_spread", "0"},
        {"noise.gpu_speed_spread_below", "0"}, {"noise.kernel_jitter", "0"},
        {"noise.network_jitter", "0"}, {"noise.host_jitter", "0"}};
    struct diag *diag = ARENA_NEW(arena, struct diag);
    struct scenario_set set;
    if (scenario_load(&set, SCENARIO, OVERRIDES(list), arena, diag) != STATUS_OK)
        fail_msg("%s", diag->text);
    return set.points[0];
}

static double step_s(const struct scenario_point *point, struct arena *arena)
{
    struct scenario_result result;
    struct diag *diag = ARENA_NEW(arena, struct diag);
    assert_int_equal(scenario_simulate(&result, point, arena, diag), STATUS_OK);
    return result.exec.step_time_s;
}

static double step_with_slow(struct scenario_point point, const char *slow, struct arena *arena)
{
    struct diag *diag = ARENA_NEW(arena, struct diag);
    if (degrade_gpus(&point.options.exec.gpu_events, &point.hw, GPUS, slow, (struct source_pos){0},
            arena, diag))
        fail_msg("%s", diag->text);
    return step_s(&point, arena);
}

/* So small that GPUs which are not stragglers are alike to 1e-8. */
static const double NEARLY_NONE = 1e-9;

/* Each of four nodes is slow with the probability of the share. As all wait for a slow one, however
 * many there are, the mean step is that without by (1 - share)^4, and with a slow host by the rest.
 * A share of 0 changes no bit. */
static void the_step_is_the_mean_over_clusters(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct scenario_point point = load("32", &arena);
    double none_s = step_s(&point, &arena), slow_s = step_with_slow(point, "node2=80 %", &arena);
    point.options.exec.noise.gpu_speed_spread = NEARLY_NONE;
    point.options.exec.noise.straggler_share = point.options.exec.noise.straggler_slowdown = 0;
    double alike_s = step_s(&point, &arena);
    point.options.exec.noise.straggler_slowdown = 0.25; /* 1 / 1.25 = 80 % */
    assert_true(step_s(&point, &arena) == alike_s);
    static const double shares[] = {0.001, 0.125, 0.25, 0.7, 1};
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        point.options.exec.noise.straggler_share = shares[i];
        double none = pow(1 - shares[i], 4);
        for (int seed = 1; seed <= 3; seed++) {
            point.options.exec.seed = seed;
            assert_near(step_s(&point, &arena), none * none_s + (1 - none) * slow_s, 1e-6 * none_s);
        }
    }
    arena_release(&arena);
}

/* A rack of several hosts is slow as often as as many nodes: of 4 nodes of 4 hosts each of 16 may
 * be slow, and of a part of a node the hosts that the job is on. A node that is one host says so or
 * not, to the bit. */
static void hosts_of_a_node_are_slow_one_by_one(void **state)
{
    (void)state;
    static const struct {
        const char *gpus;
        double hosts, slow; /* of a node; of the job */
    } cases[] = {{"32", 0, 4}, {"32", 1, 4}, {"32", 2, 8}, {"32", 4, 16}, {"4", 4, 2}, {"3", 4, 2},
        {"4", 0, 1}};
    double of_one_s = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct arena arena = ARENA_INIT;
        struct scenario_point point = load(cases[i].gpus, &arena);
        struct noise_options *noise = &point.options.exec.noise;
        point.hw.node.hosts = (struct quantity){cases[i].hosts, 0, QUANTITY_ASSUMED, "", NULL};
        point.hw.node.hosts.kind = cases[i].hosts > 0 ? QUANTITY_ASSUMED : QUANTITY_UNSET;
        noise->gpu_speed_spread = NEARLY_NONE;
        noise->straggler_share = 0.05;
        noise->straggler_slowdown = 0.25;
        struct scenario_result result;
        assert_int_equal(
            scenario_simulate(&result, &point, &arena, ARENA_NEW(&arena, struct diag)), STATUS_OK);
        assert_near(result.slow.share, 1 - pow(0.95, cases[i].slow), 1e-12);
        assert_true(result.slow.some_s > 1.1 * result.slow.none_s);
        of_one_s = i == 0 ? result.exec.step_time_s : of_one_s;
        assert_true(i != 1 || result.exec.step_time_s == of_one_s);
        arena_release(&arena);
    }
}

/* Of 100 nodes with a share of 0.5 % the clusters that have slow ones have 1.27 in the mean: their
 * step lies by 0.27 between those with one and with two. What the mean adds to a step is computed
 * on the slow ranks, and the others wait. */
static void between_one_slow_node_and_two(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct scenario_point point = load("800", &arena);
    struct noise_options *noise = &point.options.exec.noise;
    noise->gpu_speed_spread = 0.015;
    noise->straggler_share = 0.005;
    noise->straggler_slowdown = 0.1;
    point.options.exec.fold = FOLD_SLOWEST;
    struct scenario_result mean, of[3];
    struct diag *diag = ARENA_NEW(&arena, struct diag);
    assert_int_equal(scenario_simulate(&mean, &point, &arena, diag), STATUS_OK);
    for (int slow = 0; slow < 3; slow++) {
        noise->slow_hosts = slow;
        noise->straggler_slowdown = slow == 0 ? 0 : 0.1;
        assert_int_equal(scenario_simulate(&of[slow], &point, &arena, diag), STATUS_OK);
    }
    double slow_hosts = 0.5 / mean.slow.share, one_s = of[1].exec.step_time_s,
           two_s = of[2].exec.step_time_s;
    assert_near(slow_hosts, 1.27, 0.01);
    assert_true(fabs(two_s - one_s) > 1e-6 * one_s);
    assert_near(mean.slow.some_s, one_s + (slow_hosts - 1) * (two_s - one_s), 1e-9 * one_s);
    assert_near(mean.slow.none_s, of[0].exec.step_time_s, 1e-9 * one_s);
    double more_s = mean.exec.step_time_s - of[0].exec.step_time_s;
    double computed_s = mean.exec.breakdown.compute_s - of[0].exec.breakdown.compute_s;
    assert_near(computed_s, more_s * slow_hosts / 100, 1e-9 * one_s);
    arena_release(&arena);
}

/* One node more is one more that may be slow, no cliff: of 90 to 110 nodes, of which 0.5 % are
 * slow, each takes at most 0.1 % longer than the one before it a node, and the breakdown still adds
 * up. */
static void no_number_of_nodes_is_a_cliff(void **state)
{
    (void)state;
    static const char *const gpus[] = {"720", "760", "784", "792", "800", "808", "840", "880"};
    double last_s = 0, last_nodes = 0;
    for (size_t i = 0; i < sizeof gpus / sizeof *gpus; i++) {
        struct arena arena = ARENA_INIT;
        struct scenario_point point = load(gpus[i], &arena);
        struct noise_options *noise = &point.options.exec.noise;
        noise->gpu_speed_spread = 0.015;
        noise->straggler_share = 0.005;
        noise->straggler_slowdown = 0.1;
        point.options.exec.fold = FOLD_SLOWEST;
        struct scenario_result result;
        assert_int_equal(
            scenario_simulate(&result, &point, &arena, ARENA_NEW(&arena, struct diag)), STATUS_OK);
        double step_s = result.exec.step_time_s, nodes = (double)point.options.cluster.gpus / 8;
        assert_near(result.slow.share, 1 - pow(0.995, nodes), 1e-12);
        assert_near(step_s,
            result.slow.none_s + result.slow.share * (result.slow.some_s - result.slow.none_s),
            1e-12);
        assert_true(result.slow.some_s > 1.02 * result.slow.none_s);
        const struct exec_breakdown *parts = &result.exec.breakdown;
        assert_near(
            parts->compute_s + parts->exposed_comm_s + parts->host_bound_s + parts->other_idle_s,
            step_s, 1e-9);
        assert_true(i == 0 || fabs(step_s / last_s - 1) < 0.001 * (nodes - last_nodes));
        last_s = step_s;
        last_nodes = nodes;
        arena_release(&arena);
    }
}

/* Drawn one by one, each of four nodes is slow with the probability of 0.2: of 200 seeds, 1 - 0.8^4
 * = 59 % have one. The standard error of that is 3.5 %. */
static void luck_decides_where_speeds_are_drawn(void **state)
{
    (void)state;
    enum { SEEDS = 200 };
    struct arena arena = ARENA_INIT;
    struct scenario_point point = load("32", &arena);
    point.options.exec.steps = 1;
    point.options.exec.warmup_steps = 0;
    point.options.exec.no_memory = true;
    double none_s = step_s(&point, &arena);
    int slow = 0;
    point.options.exec.noise = (struct noise_options){.gpu_speed_spread = NEARLY_NONE,
        .straggler_share = 0.2,
        .straggler_slowdown = 0.25,
        .drawn_speeds = true};
    for (int seed = 1; seed <= SEEDS; seed++) {
        struct arena run = ARENA_INIT;
        point.options.exec.seed = seed;
        slow += step_s(&point, &run) > 1.01 * none_s;
        arena_release(&run);
    }
    assert_near((double)slow / SEEDS, 1 - pow(0.8, 4), 4 * 0.035);
    arena_release(&arena);
}

/* GPUs that are alike by the setting have no stragglers, and are folded. */
static void none_where_gpus_are_alike(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct scenario_point point = load("32", &arena);
    double none_s = step_s(&point, &arena);
    point.options.exec.noise =
        (struct noise_options){.straggler_share = 1, .straggler_slowdown = 0.5};
    assert_true(step_s(&point, &arena) == none_s);
    arena_release(&arena);
}

/* One rank whose host pauses whenever it can: the GPU runs dry each time, so that a pause that is
 * 10 s longer makes the step longer by 10 s for each place where the host begins or goes on. */
static void a_pause_that_nothing_hides_is_lost(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct scenario_point point = load("1", &arena);
    double seconds[2];
    for (int i = 0; i < 2; i++) {
        point.options.exec.noise.host_pause_s = 10 * (i + 1);
        point.options.exec.noise.host_pause_interval_s = 1e-9;
        seconds[i] = step_s(&point, &arena);
    }
    double pauses = (seconds[1] - seconds[0]) / 10;
    assert_true(pauses > 0.5);
    assert_near(pauses, round(pauses), 1e-6);
    arena_release(&arena);
}

/* Pauses that come once in 30 years do nothing; one rank of 32 that stands still holds up all
 * others: the more ranks, the more is lost. 1 s once in 40 steps of a rank: with 32 ranks most
 * steps have one, with one rank few. */
static void ranks_wait_for_the_one_that_pauses(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    double lost_s[2];
    static const char *const gpus[] = {"1", "32"};
    for (int i = 0; i < 2; i++) {
        struct scenario_point point = load(gpus[i], &arena);
        point.options.exec.steps = 20;
        double none_s = step_s(&point, &arena);
        point.options.exec.noise.host_pause_s = 1;
        point.options.exec.noise.host_pause_interval_s = 1e9;
        assert_true(step_s(&point, &arena) == none_s);
        point.options.exec.noise.host_pause_interval_s = 40 * none_s;
        lost_s[i] = step_s(&point, &arena) - none_s;
        assert_true(
            lost_s[i] >= 0 &&
            lost_s[i] < 1.1 * (i == 0 ? 20 : 40)); /* at most one a step and rank is likely */
    }
    assert_true(lost_s[1] > 5 * lost_s[0]);
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_step_is_the_mean_over_clusters),
        cmocka_unit_test(hosts_of_a_node_are_slow_one_by_one),
        cmocka_unit_test(between_one_slow_node_and_two),
        cmocka_unit_test(no_number_of_nodes_is_a_cliff),
        cmocka_unit_test(luck_decides_where_speeds_are_drawn),
        cmocka_unit_test(none_where_gpus_are_alike),
        cmocka_unit_test(a_pause_that_nothing_hides_is_lost),
        cmocka_unit_test(ranks_wait_for_the_one_that_pauses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
