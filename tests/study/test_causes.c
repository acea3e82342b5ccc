/* One table of words for what takes throughput: a step's parts add up, and blame what the waterfall
 * blames. */
#include "../scenario/workspace.h"

#include "../near.h"
#include "study/explain.h"

/* Collectives last 4 s: 1 s waiting for the last member, 1 s latency, 2 s bytes. They cost 2 s of
 * kernels that run slower and 0.4 s of waiting, 0.6 s for each of their seconds. Of 0.5 s without a
 * kernel issued cudaMalloc explains 0.2. */
static const struct exec_breakdown breakdown = {.compute_s = 7,
    .contention_s = 2,
    .exposed_comm_s = 0.4,
    .host_bound_s = 0.5,
    .other_idle_s = 0.1,
    .comm_s = 3,
    .comm_latency_s = 1,
    .comm_wait_s = 1};

static void parts_add_up_to_the_step(void **state)
{
    (void)state;
    static const double expected[STEP_PART_COUNT] = {5, 0.2, 0.6, 0.6, 1.2, 0.3, 0, 0.1};
    struct scenario_step step = scenario_step(&breakdown, 0.2);
    double sum = 0;
    for (int i = 0; i < STEP_PART_COUNT; i++) {
        assert_near(step.part_s[i], expected[i], 1e-12);
        sum += step.part_s[i];
    }
    assert_near(sum, 7 + 0.4 + 0.5 + 0.1, 1e-12);
    /* Longer than the host's idle time: most of the stall was hidden. */
    assert_near(scenario_step(&breakdown, 2).part_s[STEP_HOST], 0, 0);
    /* Stages that wait for one another, for 0.7 s of 3 s in which their messages lie: no
     * straggler's, and not divided. */
    struct exec_breakdown stages = breakdown;
    stages.bubble_s = 0.7;
    stages.stage_wait_s = 3;
    stages.comm_wait_s += 3;
    step = scenario_step(&stages, 0.2);
    for (int i = 0; i < STEP_PART_COUNT; i++)
        assert_near(step.part_s[i], i == STEP_BUBBLE ? 0.7 : expected[i], 1e-12);
    /* One GPU: nothing to divide by. */
    const struct exec_breakdown alone = {.compute_s = 1};
    step = scenario_step(&alone, 0);
    assert_near(step.part_s[STEP_KERNELS], 1, 0);
    assert_near(step.part_s[STEP_LATENCY], 0, 0);
}

/* 5, 1.2, 0.6 of 8 s are 62.5, 15 and 7.5 %; 2.4 s are 30 %, of which 2 s or 83 % are slower
 * kernels. */
static void a_step_is_said_in_words(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    const char *text;
    struct scenario_step step = scenario_step(&breakdown, 0.2);
    text = scenario_step_sentence(&arena, &step);
    assert_string_equal(text,
        "kernels alone take 62.5 % of a step of 8 s. 15.0 % go to "
        "bandwidth and contention: links take "
        "their time for the bytes, and kernels beside them have fewer SMs and less HBM bandwidth. "
        "7.5 % go to stragglers: collectives wait for the slowest GPU. Of the 30.0 % that "
        "collectives cost in all, 83 in 100 are kernels that run slower beside them, the others "
        "waiting for them.");
    const struct exec_breakdown alone = {.compute_s = 1};
    step = scenario_step(&alone, 0);
    text = scenario_step_sentence(&arena, &step);
    assert_string_equal(text,
        "kernels alone take 100.0 % of a step of 1 s; nothing else takes a share worth naming.");
    arena_release(&arena);
}

static void a_loss_is_said_in_words(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    const char *text;
    struct scenario_loss loss = {.small_gpus = 8, .large_gpus = 64, .small = 100, .large = 90};
    loss.part[CAUSE_LATENCY] = 11;
    loss.part[CAUSE_STRAGGLERS] = 1; /* less than 15 % of the largest: not named */
    loss.part[CAUSE_REST] = -2;
    text = scenario_loss_sentence(&arena, &loss);
    assert_string_equal(text,
        "From 8 to 64 GPUs a GPU loses 10.00 of its 100.00 TFLOPS (10.0 %). 11.00 (11.0 %) "
        "go to latency: a collective passes its hops one after the other, however few bytes "
        "it carries. 2.00 come back, because the larger cluster leaves each GPU less work.");
    loss = (struct scenario_loss){.small_gpus = 8, .large_gpus = 64, .small = 100, .large = 103};
    loss.part[CAUSE_REST] = -3;
    text = scenario_loss_sentence(&arena, &loss);
    assert_string_equal(text, "From 8 to 64 GPUs a GPU gains 3.00 of its 100.00 TFLOPS (3.0 %).");
    loss.large = 100;
    loss.part[CAUSE_REST] = 0;
    text = scenario_loss_sentence(&arena, &loss);
    assert_string_equal(text, "From 8 to 64 GPUs a GPU keeps its 100.00 TFLOPS.");
    arena_release(&arena);
}

static struct scenario_step step_of(const struct scenario_point *point)
{
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    struct scenario_result result;
    assert_int_equal(scenario_simulate(&result, point, &arena, &diag), STATUS_OK);
    struct scenario_step step =
        scenario_step(&result.exec.breakdown, result.exec.memory.alloc_stall_s);
    arena_release(&arena);
    return step;
}

enum { SLOW_NICS, LONG_HOPS, NOISY };

/* The part of a step that grows most from 8 to 32 GPUs, and the cause that the waterfall puts
 * first. */
static void blamed(int what, enum scenario_step_part *part, enum scenario_cause *cause)
{
    const struct scenario_override set[] = {{"cluster.gpus", "[8, 32]"},
        {"train.micro_batch", "64"}, {"noise.kernel_jitter", "0"}, {"noise.host_jitter", "0"},
        {"noise.gpu_speed_spread", what == NOISY ? "0.2" : "0"},
        {"noise.gpu_speed_spread_below", what == NOISY ? "0.2" : "0"}, {"run.warmup_steps", "2"}};
    struct loaded *loaded = load_text(BASE, set, (int)(sizeof set / sizeof *set));
    assert_string_equal(loaded->diag.text, "");
    struct scenario_point *points = loaded->set.points;
    for (int i = 0; i < 2; i++) {
        if (what == SLOW_NICS)
            points[i].hw.node.nic_bandwidth.value /= 10;
        if (what == LONG_HOPS)
            points[i].hw.cluster.nccl_net_latency.value *= 100;
    }
    struct scenario_waterfall waterfall;
    scenario_explain(&waterfall, &points[0], &points[1], &loaded->diag);
    struct scenario_step small = step_of(&points[0]), large = step_of(&points[1]);
    assert_string_equal(loaded->diag.text, "");
    *part = STEP_KERNELS;
    for (int i = 1; i < STEP_PART_COUNT; i++)
        if (large.part_s[i] - small.part_s[i] > large.part_s[*part] - small.part_s[*part])
            *part = (enum scenario_step_part)i;
    *cause = 0;
    for (int i = 1; i < CAUSE_COUNT; i++)
        if (waterfall.part[i] > waterfall.part[*cause])
            *cause = (enum scenario_cause)i;
    unload(loaded);
}

static void a_step_blames_what_the_waterfall_blames(void **state)
{
    (void)state;
    enum scenario_step_part part;
    enum scenario_cause cause;
    blamed(SLOW_NICS, &part, &cause);
    assert_int_equal(part, STEP_BYTES);
    assert_int_equal(cause, CAUSE_BANDWIDTH);
    blamed(LONG_HOPS, &part, &cause);
    assert_int_equal(part, STEP_LATENCY);
    assert_int_equal(cause, CAUSE_LATENCY);
    blamed(NOISY, &part, &cause);
    assert_int_equal(part, STEP_STRAGGLERS);
    assert_int_equal(cause, CAUSE_STRAGGLERS);
}

/* What both views name has one name and one sentence in both. */
static void both_views_have_the_same_words(void **state)
{
    (void)state;
    static const struct {
        enum scenario_step_part part;
        enum scenario_cause cause;
    } same[] = {{STEP_ALLOCATOR, CAUSE_ALLOCATOR}, {STEP_STRAGGLERS, CAUSE_STRAGGLERS},
        {STEP_LATENCY, CAUSE_LATENCY}, {STEP_HOST, CAUSE_HOST}, {STEP_BUBBLE, CAUSE_BUBBLE}};
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        assert_string_equal(
            scenario_step_parts[same[i].part].name, scenario_causes[same[i].cause].name);
        assert_string_equal(
            scenario_step_parts[same[i].part].means, scenario_causes[same[i].cause].means);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(parts_add_up_to_the_step),
        cmocka_unit_test(a_step_is_said_in_words), cmocka_unit_test(a_loss_is_said_in_words),
        cmocka_unit_test(a_step_blames_what_the_waterfall_blames),
        cmocka_unit_test(both_views_have_the_same_words)};
    return cmocka_run_group_tests(tests, enter_workspace, leave_workspace);
}
