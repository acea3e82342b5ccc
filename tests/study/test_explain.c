/* The waterfall: parts add up to the loss, and each vanishes with its cause. */
#include "../scenario/workspace.h"

#include "../near.h"
#include "study/explain.h"

#include <math.h>

#define GPUS(list)                                                                                 \
    {                                                                                              \
        "cluster.gpus", list                                                                       \
    }
#define NO_NOISE                                                                                   \
    {"noise.kernel_jitter", "0"}, {"noise.host_jitter", "0"},                                      \
    {                                                                                              \
        "noise.gpu_speed_spread", "0"                                                              \
    }
/* A batch that makes the GPU, not the host, the bottleneck. */
#define LOADED                                                                                     \
    {                                                                                              \
        "train.micro_batch", "64"                                                                  \
    }

static struct scenario_waterfall explain(const struct scenario_override *set, int n)
{
    struct scenario_waterfall waterfall;
    struct loaded *loaded = load_text(BASE, set, n);
    assert_string_equal(loaded->diag.text, "");
    assert_int_equal(loaded->set.n_points, 2);
    assert_int_equal(
        scenario_explain(&waterfall, &loaded->set.points[0], &loaded->set.points[1], &loaded->diag),
        STATUS_OK);
    double sum = waterfall.rest;
    for (int i = 0; i < CAUSE_COUNT; i++)
        sum += waterfall.part[i];
    assert_near(sum, waterfall.small[0] - waterfall.large[0], 1e-9 * waterfall.small[0]);
    unload(loaded);
    return waterfall;
}
/* A first step, before which nothing has to be warmed up, is a cold one: the GPU begins with the
 * host. */
#define EXPLAIN(...)                                                                               \
    explain((const struct scenario_override[]){{"run.warmup_steps", "1"}, __VA_ARGS__},            \
        (int)(sizeof((const struct scenario_override[]){{"run.warmup_steps", "1"}, __VA_ARGS__}) / \
              sizeof(struct scenario_override)))

static void everything_at_once(void **state)
{
    (void)state;
    struct scenario_waterfall w =
        EXPLAIN(GPUS("[8, 32]"), LOADED, {"noise.gpu_speed_spread", "0.03"});
    assert_true(w.part[CAUSE_STRAGGLERS] != 0 && w.part[CAUSE_LATENCY] != 0);
    /* Causes go one after the other: without latency, bandwidth may have more to lose than before.
     */
    assert_true(w.part[CAUSE_LATENCY] + w.part[CAUSE_BANDWIDTH] > 0);
    assert_true(w.small[0] > w.large[0]);
}

/* A step is steady: segments of the first ones cost nothing, whatever the warm-up. Where HBM is
 * full cudaMalloc is tried again in every step, and that is the allocator's. */
static void retries_are_the_allocators(void **state)
{
    (void)state;
    struct scenario_waterfall w = EXPLAIN(GPUS("[8, 32]"), LOADED, NO_NOISE);
    assert_near(w.part[CAUSE_ALLOCATOR], 0,
        1e-4 * w.small[0]); /* steady steps, which differ by so little */
    static const struct scenario_override full[] = {
        {"fsdp.limit_all_gathers", "false"}, {"train.micro_batch", "2"}, GPUS("[128, 256]")};
    struct arena arena = ARENA_INIT;
    struct diag *diag = ARENA_NEW(&arena, struct diag);
    struct scenario_set set;
    assert_int_equal(scenario_load(&set, FLOPCAST_SOURCE_DIR "/scenarios/allocator_retries.yaml",
                         full, 3, &arena, diag),
        STATUS_OK);
    assert_int_equal(scenario_explain(&w, &set.points[0], &set.points[1], diag), STATUS_OK);
    assert_true(
        w.small[0] <
        0.99 * w.small[CAUSE_STRAGGLERS]); /* the round without cudaMallocs, with all else */
    assert_true(w.part[CAUSE_ALLOCATOR] != 0);
    arena_release(&arena);
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
    struct scenario_waterfall w = EXPLAIN(GPUS("[8, 32]"), NO_NOISE, {"host.kernel_issue", "0 us"},
        {"host.backward_issue", "0 us"}, {"host.collective_issue", "0 us"},
        {"host.unit_hook", "0 us"}, {"host.step", "0 us"});
    assert_near(w.part[CAUSE_HOST], 0, 0);
    /* and a host that is the bottleneck hides the rest: with it, nothing else matters as much */
    w = EXPLAIN(GPUS("[8, 32]"), NO_NOISE, {"train.micro_batch", "1"});
    assert_true(w.part[CAUSE_HOST] != 0);
}

/* Worse numbers that are one cause's own. */
static void worsen(struct scenario_point *point, int which)
{
    static const struct degrade_event slow_gpu = {0, 11, 0.5},
                                      slow_link = {0, 16, 1e-4}; /* of 16 GPUs; a NIC out */
    struct hw *hw = &point->hw;
    struct quantity slow = {1e6, 0, QUANTITY_ASSUMED, "test", NULL},
                    pause = {1e-3, 0, QUANTITY_ASSUMED, "test", NULL};
    switch (which) {
    case 0:
        point->options.exec.noise = (struct noise_options){.gpu_speed_spread = 0.1,
            .kernel_jitter = 0.1,
            .network_jitter = 0.1,
            .host_jitter = 0.1};
        break;
    case 11:
        point->options.exec.gpu_events = (struct degrade_events){&slow_gpu, 1};
        break;
    case 1: /* so little that the choice of algorithms stays */
        hw->cluster.nccl_net_latency.value *= 2;
        break;
    case 2:
        hw->node.nic_bandwidth.value /= 10;
        break;
    case 3:
        hw->cluster.oversubscription.value = 10;
        break;
    case 4:
        hw->cluster.nccl_channel_bandwidth = slow;
        break;
    case 5:
        hw->cluster.nccl_staging_bandwidth = slow;
        break;
    case 6:
        point->options.exec.link_events = (struct degrade_events){&slow_link, 1};
        break;
    case 7: /* a leaf for each node, and one cable up */
        hw->cluster.network = (struct hw_network){.kind = HW_FAT_TREE,
            .leaf_ports = hw->node.nics,
            .cable_bandwidth = hw->node.nic_bandwidth,
            .spines = {1, 0, QUANTITY_ASSUMED, "test", NULL},
            .spine_cables = {1, 0, QUANTITY_ASSUMED, "test", NULL}};
        break;
    case 8:
        hw->gpu.overlap_traffic.value = 30;
        break;
    case 9:
        point->options.strategy.host.kernel_issue_s = 1e-3;
        break;
    case 10:
        hw->gpu.step_pause = pause;
        break;
    }
}

static double step_s(const struct scenario_point *point)
{
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    struct scenario_result result;
    assert_int_equal(scenario_simulate(&result, point, &arena, &diag), STATUS_OK);
    arena_release(&arena);
    return result.exec.step_time_s;
}

/* What is removed leaves no trace: then it does not matter how bad it was, which it did before. */
static void what_is_removed_leaves_no_trace(void **state)
{
    (void)state;
    static const enum scenario_cause causes[] = {CAUSE_STRAGGLERS, CAUSE_LATENCY, CAUSE_BANDWIDTH,
        CAUSE_BANDWIDTH, CAUSE_BANDWIDTH, CAUSE_BANDWIDTH, CAUSE_BANDWIDTH, CAUSE_BANDWIDTH,
        CAUSE_CONTENTION, CAUSE_HOST, CAUSE_HOST, CAUSE_STRAGGLERS};
    const struct scenario_override set[] = {GPUS("16"), NO_NOISE, {"host.kernel_issue", "0 us"},
        {"host.backward_issue", "0 us"}, {"host.collective_issue", "0 us"}, {"host.step", "0 us"},
        {"ddp.bucket_cap", "1 MB"}, {"run.warmup_steps", "1"}};
    struct loaded *loaded = load_text(BASE, set, (int)(sizeof set / sizeof *set));
    assert_string_equal(loaded->diag.text, "");
    double base_s = step_s(&loaded->set.points[0]);
    for (int i = 0; i < (int)(sizeof causes / sizeof *causes); i++) {
        struct scenario_point good = loaded->set.points[0], bad = good;
        worsen(&bad, i);
        double slower = step_s(&bad) / base_s;
        scenario_remove_cause(&good, causes[i]);
        scenario_remove_cause(&bad, causes[i]);
        double still = step_s(&bad) / step_s(&good);
        if (!(slower > 1.001) || fabs(still - 1) > 1e-6)
            fail_msg("number %d: %g times as long, without its cause %g", i, slower, still);
    }
    unload(loaded);
}

/* Without limits of the network NCCL would choose other algorithms on 32 GPUs than on 16. What is
 * taken away is taken from the collectives that the job has: a job that grows does not gain by its
 * network, and little is left unexplained, in shares, as without these limits the job is four times
 * as fast. */
static void the_collectives_stay(void **state)
{
    (void)state;
    struct scenario_waterfall w = EXPLAIN(GPUS("[16, 32]"), NO_NOISE,
        {"cluster.topology", FLOPCAST_SOURCE_DIR "/topologies/clusters/slingshot-4xh100.yaml"},
        {"model", FLOPCAST_SOURCE_DIR "/scenarios/models/llama3.2-3b.yaml"},
        {"train.micro_batch", "3"}, {"train.seq_len", "128"}, {"train.precision", "bf16_mixed"},
        {"ddp.bucket_cap", "5 MiB"}, {"host.kernel_issue", "0 us"}, {"host.backward_issue", "0 us"},
        {"host.collective_issue", "0 us"}, {"host.unit_hook", "0 us"}, {"host.step", "0 us"});
    double left = w.large[CAUSE_BANDWIDTH + 1] / w.small[CAUSE_BANDWIDTH + 1];
    assert_true(left >= w.large[CAUSE_BANDWIDTH] / w.small[CAUSE_BANDWIDTH]);
    assert_true(left > 0.95 && left < 1.05);
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
        scenario_explain(&waterfall, &loaded->set.points[0], &loaded->set.points[1], &loaded->diag),
        STATUS_INPUT);
    assert_non_null(
        strstr(loaded->diag.text, "out of memory on 8 GPUs; there is no speed to explain"));
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
        blocks |= strcmp(item->name, "transformer.h.#/mlp.c_fc") == 0 &&
                  item->times == 2; /* two layers */
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
        cmocka_unit_test(retries_are_the_allocators),
        cmocka_unit_test(without_noise_nothing_is_lost_to_stragglers),
        cmocka_unit_test(within_a_node_nothing_is_lost_to_the_network),
        cmocka_unit_test(a_host_without_cost_loses_nothing),
        cmocka_unit_test(what_is_removed_leaves_no_trace),
        cmocka_unit_test(the_collectives_stay),
        cmocka_unit_test(without_collectives_nothing_is_lost_to_them),
        cmocka_unit_test(out_of_memory_has_no_speed),
        cmocka_unit_test(the_path_adds_up_to_the_step),
    };
    return cmocka_run_group_tests(tests, enter_workspace, leave_workspace);
}
