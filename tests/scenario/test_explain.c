/* The waterfall: parts add up to the loss, and each vanishes with its cause. */
#include "workspace.h"

#include "../near.h"
#include "scenario/explain.h"

#define GPUS(list)                                                                                                     \
    {                                                                                                                  \
        "cluster.gpus", list                                                                                           \
    }
#define NO_NOISE                                                                                                       \
    {"noise.kernel_jitter", "0"}, {"noise.host_jitter", "0"},                                                          \
    {                                                                                                                  \
        "noise.gpu_speed_spread", "0"                                                                                  \
    }
/* A batch that makes the GPU, not the host, the bottleneck. */
#define LOADED                                                                                                         \
    {                                                                                                                  \
        "train.micro_batch", "64"                                                                                      \
    }

static struct scenario_waterfall explain(const struct scenario_override *set, int n)
{
    struct scenario_waterfall waterfall;
    struct loaded *loaded = load_text(BASE, set, n);
    assert_string_equal(loaded->diag.text, "");
    assert_int_equal(loaded->set.n_points, 2);
    assert_int_equal(
        scenario_explain(&waterfall, &loaded->set.points[0], &loaded->set.points[1], &loaded->diag), STATUS_OK);
    double sum = waterfall.rest;
    for (int i = 0; i < CAUSE_COUNT; i++)
        sum += waterfall.part[i];
    assert_near(sum, waterfall.small[0] - waterfall.large[0], 1e-9 * waterfall.small[0]);
    unload(loaded);
    return waterfall;
}
/* The first step is full of cudaMallocs, which hide the rest. */
#define EXPLAIN(...)                                                                                                   \
    explain((const struct scenario_override[]){{"run.warmup_steps", "2"}, __VA_ARGS__},                                \
        (int)(sizeof((const struct scenario_override[]){{"run.warmup_steps", "2"}, __VA_ARGS__}) /                     \
              sizeof(struct scenario_override)))

static void everything_at_once(void **state)
{
    (void)state;
    struct scenario_waterfall w = EXPLAIN(GPUS("[8, 32]"), LOADED, {"noise.gpu_speed_spread", "0.03"});
    assert_true(w.part[CAUSE_STRAGGLERS] != 0 && w.part[CAUSE_LATENCY] > 0 && w.part[CAUSE_BANDWIDTH] > 0);
    assert_true(w.small[0] > w.large[0]);
}

static void without_noise_nothing_is_lost_to_stragglers(void **state)
{
    (void)state;
    struct scenario_waterfall w = EXPLAIN(GPUS("[8, 32]"), LOADED, NO_NOISE);
    assert_near(w.part[CAUSE_STRAGGLERS], 0, 0);
}

static void within_a_node_nothing_is_lost_to_the_network(void **state)
{
    (void)state;
    struct scenario_waterfall w = EXPLAIN(GPUS("[2, 8]"), LOADED, NO_NOISE);
    assert_near(w.part[CAUSE_BANDWIDTH], 0, 0);
    assert_true(w.part[CAUSE_LATENCY] != 0);
}

static void a_host_without_cost_loses_nothing(void **state)
{
    (void)state;
    struct scenario_waterfall w =
        EXPLAIN(GPUS("[8, 32]"), NO_NOISE, {"host.kernel_issue", "0 us"}, {"host.backward_issue", "0 us"},
            {"host.collective_issue", "0 us"}, {"host.unit_hook", "0 us"}, {"host.step", "0 us"});
    assert_near(w.part[CAUSE_HOST], 0, 0);
    /* and a host that is the bottleneck hides the rest: with it, nothing else matters as much */
    w = EXPLAIN(GPUS("[8, 32]"), NO_NOISE, {"train.micro_batch", "1"});
    assert_true(w.part[CAUSE_HOST] != 0);
}

/* One GPU has no collectives: neither end loses to them. */
static void without_collectives_nothing_is_lost_to_them(void **state)
{
    (void)state;
    struct scenario_waterfall w = EXPLAIN(GPUS("[1, 1]"), LOADED, NO_NOISE);
    assert_near(w.part[CAUSE_LATENCY], 0, 0);
    assert_near(w.part[CAUSE_BANDWIDTH], 0, 0);
    assert_near(w.part[CAUSE_CONTENTION], 0, 0);
    assert_near(w.rest, 0, 0);
}

static void out_of_memory_has_no_speed(void **state)
{
    (void)state;
    const struct scenario_override set[] = {GPUS("[8, 16]"), {"train.micro_batch", "16384"}};
    struct scenario_waterfall waterfall;
    struct loaded *loaded = load_text(BASE, set, 2);
    assert_int_equal(
        scenario_explain(&waterfall, &loaded->set.points[0], &loaded->set.points[1], &loaded->diag), STATUS_INPUT);
    assert_non_null(strstr(loaded->diag.text, "out of memory on 8 GPUs; there is no speed to explain"));
    unload(loaded);
}

/* The compute stream works or waits, and nothing else: its items add up to the step. */
static void the_path_adds_up_to_the_step(void **state)
{
    (void)state;
    const struct scenario_override set[] = {GPUS("16"), LOADED, NO_NOISE};
    struct loaded *loaded = load_text(BASE, set, 5);
    struct scenario_point *point = &loaded->set.points[0];
    static const int rank_0 = 0;
    point->options.exec.trace_ranks = &rank_0;
    point->options.exec.n_trace_ranks = 1;
    struct scenario_result result;
    scenario_simulate(&result, point, &loaded->arena, &loaded->diag);
    struct scenario_path path;
    scenario_path(&path, &result.exec, &loaded->arena);
    double sum = 0;
    bool blocks = false, waits = false;
    for (int i = 0; i < path.items.n; i++) {
        const struct scenario_path_item *item = &path.items.at[i];
        assert_true(item->seconds > 0 && item->beside_s >= -1e-9 && item->times > 0);
        assert_true(i == 0 || item->seconds <= path.items.at[i - 1].seconds);
        blocks |= strcmp(item->name, "transformer.h.#/mlp.c_fc") == 0 && item->times == 2; /* two layers */
        waits |= item->waiting;
        sum += item->seconds;
    }
    assert_true(blocks && waits);
    assert_near(sum, path.step_s, 1e-9);
    assert_near(path.step_s, result.exec.step_time_s, 1e-9); /* one step was measured */
    vec_free(&path.items);
    unload(loaded);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_at_once),
        cmocka_unit_test(without_noise_nothing_is_lost_to_stragglers),
        cmocka_unit_test(within_a_node_nothing_is_lost_to_the_network),
        cmocka_unit_test(a_host_without_cost_loses_nothing),
        cmocka_unit_test(without_collectives_nothing_is_lost_to_them),
        cmocka_unit_test(out_of_memory_has_no_speed),
        cmocka_unit_test(the_path_adds_up_to_the_step),
    };
    return cmocka_run_group_tests(tests, enter_workspace, leave_workspace);
}
