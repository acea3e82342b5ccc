#include "workspace.h"

#include "base/threads.h"
#include "scenario/lottery.h"

#include <math.h>

#define SWEPT                                                                                      \
    BASE "sweep:\n"                                                                                \
         "  - strategy: [ddp, fsdp]\n"                                                             \
         "  - cluster.gpus: [1, 8, 16]\n"

static void assert_near(double value, double expected, double tolerance)
{
    if (!(fabs(value - expected) <= tolerance))
        fail_msg("%.17g is not %.17g +- %g", value, expected, tolerance);
}

struct counted {
    int calls, last, total;
};

static void count_progress(void *self, int done, int total)
{
    struct counted *counted = self;
    assert_int_equal(done, counted->last + 1);
    *counted = (struct counted){counted->calls + 1, done, total};
}

/* Points are independent: what a thread computes depends on nothing but its point. */
static void threads_do_not_change_results(void **state)
{
    (void)state;
    struct loaded *loaded = load_text(SWEPT, NULL, 0);
    assert_string_equal(loaded->diag.text, "");
    int n = loaded->set.n_points;
    struct scenario_result *results = xcalloc((size_t)n, sizeof *results);
    struct arena *arenas = xcalloc((size_t)n, sizeof *arenas);
    struct counted counted = {0};
    enum status status = scenario_simulate_all(
        results, arenas, &loaded->set, count_progress, &counted, &loaded->diag);
    assert_string_equal(loaded->diag.text, "");
    assert_int_equal(status, STATUS_OK);
    assert_int_equal(counted.calls, n);
    assert_int_equal(counted.total, n);
    for (int i = 0; i < n; i++) {
        struct arena arena = ARENA_INIT;
        struct scenario_result alone;
        assert_int_equal(
            scenario_simulate(&alone, &loaded->set.points[i], &arena, &loaded->diag), STATUS_OK);
        assert_true(alone.exec.digest == results[i].exec.digest);
        assert_true(alone.exec.step_time_s == results[i].exec.step_time_s);
        assert_true(alone.exec.step_time_s > 0);
        arena_release(&arena);
        arena_release(&arenas[i]);
    }
    free(arenas);
    free(results);
    unload(loaded);
}

struct kept {
    const struct scenario_set *set;
    int points[8], n, enough;
};

static bool keep(void *self, int point)
{
    struct kept *kept = self;
    kept->points[kept->n++] = point;
    return kept->n < kept->enough;
}

/* On one thread: the largest first (SWEPT has 1, 8, 16 GPUs of two strategies), not what is known,
 * and none after the one that is enough. */
static void a_loop_leaves_out_what_is_known_and_may_be_ended(void **state)
{
    (void)state;
    enum { N = 6 };
    static const bool known[N] = {false, true, false, false, false, true};
    static const int expected[] = {2, 4, 3};
    struct loaded *loaded = load_text(SWEPT, NULL, 0);
    assert_int_equal(loaded->set.n_points, N);
    struct scenario_result results[N];
    struct arena arenas[N] = {0};
    struct kept kept = {.set = &loaded->set, .enough = 3};
    struct counted counted = {.last = 2}; /* those known are done */
    struct scenario_work work = {.known = known, .keep = keep, .self = &kept};
    memset(results, 0xff, sizeof results);
    threads_limit(1);
    assert_int_equal(
        scenario_simulate_some(results, arenas, &loaded->set, &work, &loaded->diag), STATUS_OK);
    assert_int_equal(kept.n, 3);
    for (int i = 0; i < kept.n; i++) {
        assert_int_equal(kept.points[i], expected[i]);
        assert_true(results[expected[i]].exec.step_time_s > 0);
    }
    struct scenario_result untouched;
    memset(&untouched, 0xff, sizeof untouched);
    static const int others[] = {0, 1, 5};
    for (int i = 0; i < 3; i++)
        assert_memory_equal(&results[others[i]], &untouched, sizeof untouched);
    work = (struct scenario_work){.known = known, .progress = count_progress, .self = &counted};
    scenario_simulate_some(results, arenas, &loaded->set, &work, &loaded->diag);
    assert_int_equal(counted.calls, 4);
    assert_int_equal(counted.last, N);
    threads_limit(2);
    for (int i = 0; i < N; i++)
        arena_release(&arenas[i]);
    unload(loaded);
}

/* Rates follow from the step time: of 8 GPUs, 2 sequences of 128 tokens each. */
static void rates_follow_from_the_step(void **state)
{
    (void)state;
    struct loaded *loaded = load_text(BASE "report: {flops_formula: hardware}\n", NULL, 0);
    assert_string_equal(loaded->diag.text, "");
    struct arena arena = ARENA_INIT;
    struct scenario_result result;
    assert_int_equal(
        scenario_simulate(&result, &loaded->set.points[0], &arena, &loaded->diag), STATUS_OK);
    double step_s = result.exec.step_time_s,
           peak = loaded->set.points[0].hw.gpu.gemm[DTYPE_FP16].peak.value;
    assert_true(step_s > 0);
    assert_near(result.samples_per_s, 8 * 2 / step_s, 1e-9 * result.samples_per_s);
    assert_near(result.tokens_per_s_per_gpu, 2 * 128 / step_s, 1e-9 * result.tokens_per_s_per_gpu);
    assert_true(result.tflops_per_gpu == result.hw_tflops_per_gpu);
    assert_near(result.mfu, result.model_tflops_per_gpu * 1e12 / peak, 1e-12);
    /* no recomputation: both counts are three times the forward pass, less what the mask hides of
     * naive attention, half of 3 x 4 b s^2 d a layer */
    double masked = 3 * 4.0 * 2 * 128 * 128 * 256 * 2 / 2 / step_s * 1e-12;
    assert_near(result.hw_tflops_per_gpu, result.model_tflops_per_gpu + masked,
        1e-6 * result.hw_tflops_per_gpu);
    arena_release(&arena);
    unload(loaded);
}

/* 262,144 tokens are nearly all attention: 2 layers' 4 x s x d a token and forward pass is 99 % of
 * it. Counted in full the model's FLOP are twice the causal ones, whatever the kernel does. */
static void shares_of_the_peak_are_never_above_one(void **state)
{
    (void)state;
    write_text("long.json",
        "{\"model_type\": \"gpt2\", \"n_embd\": 1024, \"n_layer\": 2, \"n_head\": 8, "
        "\"vocab_size\": 1000, \"n_positions\": 262144}\n");
    struct loaded *loaded =
        load_text("name: long\nmodel: long.json\n"
                  "cluster: {topology: " FLOPCAST_SOURCE_DIR
                  "/topologies/clusters/a100-80gb-roce-2tb.yaml, gpus: 1}\n"
                  "train: {micro_batch: 1, seq_len: 262144, precision: bf16_mixed, attention: "
                  "flash}\nstrategy: single_device\nrun: {steps: 1, warmup_steps: 0}\n"
                  "sweep:\n  - train.activation_checkpointing: [none, full]\n  - "
                  "report.attention_flop: [causal, full]\n",
            NULL, 0);
    assert_string_equal(loaded->diag.text, "");
    struct scenario_result results[4];
    struct arena arena = ARENA_INIT;
    for (int i = 0; i < 4; i++)
        assert_int_equal(
            scenario_simulate(&results[i], &loaded->set.points[i], &arena, &loaded->diag),
            STATUS_OK);
    double peak = loaded->set.points[0].hw.gpu.gemm[DTYPE_BF16].peak.value;
    assert_true(results[0].mfu <= results[0].hfu && results[0].hfu <= 1);
    assert_true(results[1].mfu == results[0].mfu && results[1].hfu == results[0].hfu);
    assert_near(results[0].mfu, results[0].model_tflops_per_gpu * 1e12 / peak, 1e-12);
    assert_near(results[0].hfu, results[0].hw_tflops_per_gpu * 1e12 / peak, 1e-12);
    /* a step: 6 x 24 d^2 s of the blocks' matrices, 6 x 1000 d s of the head, 12 x s^2 d a layer of
     * attention, or half */
    double d = 1024, s = 262144, matrices = 2 * 72 * d * d * s + 6e3 * d * s,
           attention = 2 * 12 * s * s * d;
    assert_near(results[1].model_tflops_per_gpu / results[0].model_tflops_per_gpu,
        (matrices + attention) / (matrices + attention / 2), 1e-9);
    /* the backward kernel computes the scores again: (2 + 5) / 6 of the model's */
    assert_near(results[1].hw_tflops_per_gpu / results[0].hw_tflops_per_gpu,
        (matrices + attention * 7 / 6) / (matrices + attention * 7 / 12), 1e-9);
    /* full checkpointing runs the blocks' forward pass again, 24 d^2 s and half of 4 s^2 d a layer
     */
    double again = 2 * 24 * d * d * s + 2 * 2 * s * s * d;
    assert_near(results[2].hfu / results[2].mfu,
        (matrices + attention * 7 / 12 + again) / (matrices + attention / 2), 1e-9);
    assert_true(results[2].hfu <= 1);
    arena_release(&arena);
    unload(loaded);
}

/* A loop that reads the loss waits for the whole step, so what it does then comes on top, to the
 * last digit of a float; one that does not wait is never slower. */
static void a_pause_comes_on_top_of_the_step(void **state)
{
    (void)state;
    struct loaded *loaded =
        load_text(BASE "noise: {kernel_jitter: 0, gpu_speed_spread: 0, host_jitter: 0, "
                       "network_jitter: 0}\n"
                       "sweep:\n  - strategy: [ddp, fsdp, deepspeed]\n",
            NULL, 0);
    assert_string_equal(loaded->diag.text, "");
    for (int i = 0; i < loaded->set.n_points; i++) {
        static const double pauses[] = {0, 0.010, 0.025}; /* the first is not set */
        double step_s[3];
        for (int j = 0; j < 3; j++) {
            struct scenario_point point = loaded->set.points[i];
            if (j > 0)
                point.hw.gpu.step_pause =
                    (struct quantity){.value = pauses[j], .kind = QUANTITY_ASSUMED};
            struct arena arena = ARENA_INIT;
            struct scenario_result result;
            assert_int_equal(scenario_simulate(&result, &point, &arena, &loaded->diag), STATUS_OK);
            step_s[j] = result.exec.step_time_s;
            arena_release(&arena);
        }
        assert_near(step_s[2] - step_s[1], 0.015, 2e-9);
        assert_true(step_s[0] <= step_s[1] && step_s[0] > step_s[1] - 0.030);
    }
    unload(loaded);
}

/* Of the base with these settings; floor_s, which may be NULL, is its GPU's kernel_floor. */
static double step_time_s(const struct scenario_override *set, int n, double *floor_s)
{
    struct loaded *loaded = load_text(BASE, set, n);
    assert_string_equal(loaded->diag.text, "");
    struct arena arena = ARENA_INIT;
    struct scenario_result result;
    assert_int_equal(
        scenario_simulate(&result, &loaded->set.points[0], &arena, &loaded->diag), STATUS_OK);
    if (floor_s)
        *floor_s = loaded->set.points[0].hw.gpu.kernel_floor.value;
    arena_release(&arena);
    unload(loaded);
    return result.exec.step_time_s;
}

/* A batch is decoded while the GPUs work on the one before, so a step takes the longer of both: 16
 * images for each of 8 GPUs in 120.2 us each are 15.4 ms, which ResNet-18 in FP16 is far below. On
 * one GPU 1.9 ms, which it is not. Handing the batch over is a kernel that does nothing. */
static void steps_wait_for_the_batch(void **state)
{
    (void)state;
    static const char *const gpus[] = {"8", "1"}, *const decodes[] = {"false", "true"};
    for (int i = 0; i < 2; i++) {
        double step_s[2], floor_s = 0;
        for (int j = 0; j < 2; j++) {
            const struct scenario_override set[] = {
                {"model", FLOPCAST_SOURCE_DIR "/scenarios/models/resnet18.yaml"},
                {"train.seq_len", "1"}, {"train.micro_batch", "16"},
                {"train.decode_images", decodes[j]}, {"cluster.gpus", gpus[i]},
                {"noise.kernel_jitter", "0"}, {"noise.host_jitter", "0"},
                {"run.warmup_steps", "4"}};
            step_s[j] = step_time_s(set, sizeof set / sizeof *set, &floor_s);
        }
        assert_true(step_s[0] > 2e-3 && step_s[0] < 15e-3);
        if (i == 0)
            assert_near(step_s[1], 16 * 8 * 120.2e-6 + floor_s, 1e-9);
        else
            assert_true(step_s[1] >= step_s[0] && step_s[1] <= step_s[0] + 10e-6);
    }
}

/* By default steps are measured when segments are there: GPT-2 with FSDP allocates for 0.7 ms of 18
 * in its second step. */
static void steps_are_measured_when_memory_is_there(void **state)
{
    (void)state;
    double step_s[2];
    char by_default[8];
    snprintf(by_default, sizeof by_default, "%d", (int)exec_default_options().warmup_steps);
    for (int i = 0; i < 2; i++) {
        const struct scenario_override set[] = {{"strategy", "fsdp"},
            {"model", FLOPCAST_SOURCE_DIR "/scenarios/models/gpt2.yaml"},
            {"cluster.topology", FLOPCAST_SOURCE_DIR "/topologies/clusters/h100-8x400g.yaml"},
            {"train.seq_len", "512"}, {"train.micro_batch", "4"}, {"noise.gpu_speed_spread", "0"},
            {"noise.kernel_jitter", "0"}, {"noise.network_jitter", "0"}, {"noise.host_jitter", "0"},
            {"run.warmup_steps", i ? by_default : "6"}};
        step_s[i] = step_time_s(set, sizeof set / sizeof *set, NULL);
    }
    assert_near(step_s[1], step_s[0], 0.005 * step_s[0]);
}

/* Out of memory is a result, with no rates. */
static void out_of_memory_is_a_result(void **state)
{
    (void)state;
    const struct scenario_override set[] = {
        {"train.micro_batch", "65536"}, {"train.seq_len", "1024"}};
    struct loaded *loaded = load_text(BASE, set, 2);
    assert_string_equal(loaded->diag.text, "");
    struct arena arena = ARENA_INIT;
    struct scenario_result result;
    assert_int_equal(
        scenario_simulate(&result, &loaded->set.points[0], &arena, &loaded->diag), STATUS_OK);
    assert_int_equal(result.exec.status, EXEC_OOM);
    assert_true(result.tflops_per_gpu == 0 && result.mfu == 0 && result.samples_per_s == 0);
    assert_true(result.exec.memory.required_bytes > result.exec.memory.capacity_bytes);
    arena_release(&arena);
    unload(loaded);
}

/* A run with this number of slow hosts. */
static double step_with(
    const struct plan *plan, const struct scenario_point *point, int64_t slow_hosts)
{
    struct arena arena = ARENA_INIT;
    struct exec_result result;
    struct exec_options options = point->options.exec;
    options.noise.slow_hosts = slow_hosts;
    options.fold = FOLD_SLOWEST;
    exec_run(&result, plan, &point->hw, &options, &arena);
    arena_release(&arena);
    return result.step_time_s;
}

/* Of clusters with 4 nodes 1 - (1 - s)^4 have slow ones, 4 s / that many in the mean: 1.03, 1.58,
 * 1.95 and 2.01 nodes of s = 0.02, 0.3, 0.44 and 0.46. Between two numbers of nodes lies the step,
 * at less than 0.05 of the way it is the nearer one's. What it is longer by slow hosts compute and
 * the others wait for; links rest in it. */
static void a_point_is_the_mean_over_the_lottery(void **state)
{
    (void)state;
    static const struct {
        double share, above; /* of the way from one slow host to two */
    } cases[] = {{0.02, 0}, {0.3, -1}, {0.44, 1}, {0.46, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct loaded *loaded = load_text(BASE
            "noise: {gpu_speed_spread: 1.0e-9, straggler_slowdown: 1, kernel_jitter: 0, "
            "host_jitter: 0, network_jitter: 0, straggler_share: 0}\n",
            (struct scenario_override[]){
                {"cluster.gpus", "32"}, {"train.micro_batch", "128"}, {"train.seq_len", "512"}},
            3);
        assert_string_equal(loaded->diag.text, "");
        struct scenario_point *point = &loaded->set.points[0];
        struct plan plan = {0};
        struct scenario_result result = {0};
        struct exec_result none;
        struct arena arena = ARENA_INIT;
        assert_int_equal(scenario_compile(&plan, point, &arena, &loaded->diag), STATUS_OK);
        exec_run(&result.exec, &plan, &point->hw, &point->options.exec, &arena);
        none = result.exec;
        struct exec_breakdown parts = none.programs[0].breakdown;
        point->options.exec.noise.straggler_share = cases[i].share;
        lottery_simulate(&result, &plan, &point->hw, &point->options.exec, &arena);
        double some = 1 - pow(1 - cases[i].share, 4), nodes = 4 * cases[i].share / some,
               one_s = step_with(&plan, point, 1);
        double above = cases[i].above >= 0 ? cases[i].above : nodes - 1;
        double some_s = one_s + above * (step_with(&plan, point, 2) - one_s),
               more_s = some * (some_s - none.step_time_s);
        assert_true(one_s > 1.01 * none.step_time_s);
        assert_near(result.slow.share, some, 1e-12);
        assert_near(result.slow.none_s, none.step_time_s, 0);
        assert_near(result.slow.some_s, some_s, 1e-12);
        assert_near(result.exec.step_time_s, none.step_time_s + more_s, 1e-12);
        double computed_s = more_s * nodes / 4;
        const struct exec_breakdown *with[] = {&result.exec.breakdown,
            &result.exec.programs[0].breakdown},
                                    *without[] = {&none.breakdown, &parts};
        for (int p = 0; p < 2; p++) {
            assert_near(with[p]->compute_s - without[p]->compute_s, computed_s, 1e-12);
            assert_near(
                with[p]->exposed_comm_s - without[p]->exposed_comm_s, more_s - computed_s, 1e-12);
            assert_near(with[p]->comm_wait_s - without[p]->comm_wait_s, more_s - computed_s, 1e-12);
            assert_near(
                with[p]->comm[PARALLEL_DATA].exposed_s - without[p]->comm[PARALLEL_DATA].exposed_s,
                more_s - computed_s, 1e-12);
        }
        double rest = none.step_time_s / result.exec.step_time_s;
        assert_near(result.exec.nvlink_utilisation, none.nvlink_utilisation * rest, 1e-12);
        assert_near(result.exec.nic_utilisation, none.nic_utilisation * rest, 1e-12);
        plan_release(&plan);
        arena_release(&arena);
        unload(loaded);
    }
}

/* Its runs go on at once, or one after the other; all of them count for how far the point is. */
static void threads_do_not_change_the_lottery(void **state)
{
    (void)state;
    struct scenario_result results[2];
    struct arena arena = ARENA_INIT;
    struct loaded *loaded =
        load_text(BASE "noise: {gpu_speed_spread: 0.01, straggler_slowdown: 1, "
                       "kernel_jitter: 0.01, host_jitter: 0.1, straggler_share: 0.3}\n",
            (struct scenario_override[]){{"cluster.gpus", "32"}, {"train.micro_batch", "32"}}, 2);
    assert_string_equal(loaded->diag.text, "");
    struct scenario_point *point = &loaded->set.points[0];
    for (int i = 0; i < 2; i++) {
        struct exec_progress progress = {0};
        point->options.exec.progress = &progress;
        threads_limit(i == 0 ? 1 : 3);
        assert_int_equal(scenario_simulate(&results[i], point, &arena, &loaded->diag), STATUS_OK);
        assert_int_equal(progress.runs, 3);
        assert_int_equal(progress.thousandths, 3000);
    }
    threads_limit(2);
    assert_true(results[0].slow.some_s > results[0].slow.none_s);
    assert_true(results[0].slow.some_s == results[1].slow.some_s);
    assert_true(results[0].exec.step_time_s == results[1].exec.step_time_s);
    assert_int_equal(results[0].exec.digest, results[1].exec.digest);
    assert_true(
        results[0].exec.memory.peak_reserved_bytes == results[1].exec.memory.peak_reserved_bytes);
    arena_release(&arena);
    unload(loaded);
}

/* The longest points go first: by GPUs that are simulated, blocks of a stage, micro-batches and
 * steps. */
static void weights_of_points(void **state)
{
    (void)state;
    struct scenario_point point = {.options = {.strategy = {.parallelism.pipeline = 1,
                                                   .train = {.micro_batch = 2, .grad_accum = 3}},
                                       .cluster.gpus = 16,
                                       .exec = {.steps = 4, .warmup_steps = 1}},
        .model.shape.n_layers = 7};
    assert_near(scenario_weight(&point), 8 * 3 * 5, 0); /* 7 blocks and the root, on one rank */
    point.options.exec.fold = FOLD_OFF;
    assert_near(scenario_weight(&point), 16 * 8 * 3 * 5, 0);
    point.options.exec.fold = FOLD_AUTO;
    point.options.exec.noise.kernel_jitter = 0.01;
    assert_near(scenario_weight(&point), 16 * 8 * 3 * 5, 0);
    point.options.strategy.parallelism.pipeline = 2;
    point.model.shape.n_decoder_layers = 8;
    assert_near(scenario_weight(&point), 16 * 16 / 2 * 3 * 5, 0);
    point.options.exec.noise.kernel_jitter = 0;
    assert_near(scenario_weight(&point), 2 * 16 / 2 * 3 * 5, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_point_is_the_mean_over_the_lottery),
        cmocka_unit_test(threads_do_not_change_the_lottery),
        cmocka_unit_test(weights_of_points),
        cmocka_unit_test(threads_do_not_change_results),
        cmocka_unit_test(a_loop_leaves_out_what_is_known_and_may_be_ended),
        cmocka_unit_test(rates_follow_from_the_step),
        cmocka_unit_test(shares_of_the_peak_are_never_above_one),
        cmocka_unit_test(a_pause_comes_on_top_of_the_step),
        cmocka_unit_test(steps_wait_for_the_batch),
        cmocka_unit_test(steps_are_measured_when_memory_is_there),
        cmocka_unit_test(out_of_memory_is_a_result),
    };
    return cmocka_run_group_tests(tests, enter_workspace, leave_workspace);
}
