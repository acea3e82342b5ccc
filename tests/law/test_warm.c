/* A run with noise that begins where the quiet one stands near the end of its warm-up
 * (exec/warm.c): with noise that is next to nothing it has the quiet run's step, and with that of
 * its cluster the mean and spread over seeds of one whose warm-up has noise throughout. */
#include "scenario/scenario.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <gsl/gsl_statistics_double.h>

#include "../combinations.h"
#include "../point.h"

#define SCENARIOS FLOPCAST_SOURCE_DIR "/scenarios/"
#define OF_STEPS(warmup, measured)                                                                 \
    {"run.warmup_steps", warmup},                                                                  \
    {                                                                                              \
        "run.steps", measured                                                                      \
    }

#define STAGES                                                                                     \
    {"cluster.gpus", "32"}, {"strategy", "megatron"}, {"stack", "megatron-core"},                  \
        {"fsdp.sharding_strategy", "FULL_SHARD"}, {"train.micro_batch", "1"},                      \
    {                                                                                              \
        "train.seq_len", "2048"                                                                    \
    }

struct warmed {
    const char *scenario;
    struct scenario_override overrides[12];
    int n;
};
#define JOB(name, ...)                                                                             \
    {                                                                                              \
        SCENARIOS name, {__VA_ARGS__},                                                             \
            (int)(sizeof((const struct scenario_override[]){__VA_ARGS__}) /                        \
                  sizeof(struct scenario_override))                                                \
    }

/* DDP whose hosts matter, FSDP with rate limiter, ZeRO-3, pipelines with and without virtual
 * stages and of few micro-batches, experts, a GPU alone. */
static const struct warmed jobs[] = {
    JOB("gpt2_ddp_v100.yaml", {"cluster.gpus", "16"}, OF_STEPS("2", "1")),
    JOB("llama2_7b_h100_fsdp.yaml", {"cluster.gpus", "16"}, {"train.micro_batch", "1"},
        {"fsdp.sharding_strategy", "FULL_SHARD"}, {"train.seq_len", "2048"}, OF_STEPS("1", "2")),
    JOB("zero_stages_7b.yaml", {"cluster.gpus", "16"}, {"strategy", "zero3"}, OF_STEPS("1", "1")),
    JOB("llama2_7b_h100_fsdp.yaml", STAGES, {"parallelism.pipeline", "4"},
        {"parallelism.virtual", "2"}, {"train.grad_accum", "8"}, OF_STEPS("1", "1")),
    JOB("llama2_7b_h100_fsdp.yaml", STAGES, {"parallelism.pipeline", "8"},
        {"train.grad_accum", "3"}, OF_STEPS("1", "1")),
    JOB("mixtral_8x22b.yaml", {"cluster.gpus", "128"}, {"train.global_batch", "64"},
        OF_STEPS("1", "1")),
    JOB("gpt2_ddp_v100.yaml", {"cluster.gpus", "1"}, OF_STEPS("2", "1")),
};
enum { JOBS = sizeof jobs / sizeof *jobs };

static void load(struct scenario_set *set, const struct warmed *job, struct arena *arena)
{
    struct diag diag = DIAG_INIT;
    if (scenario_load(set, job->scenario, job->overrides, job->n, arena, &diag) != STATUS_OK)
        fail_msg("%s", diag.text);
    set->points[0].options.exec.noise.straggler_share = 0;
}

static struct exec_result simulate(const struct scenario_point *point, struct arena *arena)
{
    struct diag diag = DIAG_INIT;
    struct scenario_result result = {0};
    if (scenario_simulate(&result, point, arena, &diag) != STATUS_OK)
        fail_msg("%s", diag.text);
    assert_int_equal(result.exec.status, EXEC_OK);
    return result.exec;
}

static void next_to_no_noise(void **state)
{
    (void)state;
    static const struct noise_options faint = {.kernel_jitter = 1e-9, .network_jitter = 1e-9};
    for (int j = 0; j < JOBS; j++) {
        struct arena arena = ARENA_INIT;
        struct scenario_set set = {0};
        load(&set, &jobs[j], &arena);
        struct scenario_point point = set.points[0];
        exec_be_quiet(&point.options.exec);
        struct exec_result quiet = simulate(&point, &arena);
        point.options.exec.noise = faint;
        struct exec_result begun = simulate(&point, &arena);
        point.options.exec.noisy_warmup = true;
        struct exec_result whole = simulate(&point, &arena);
        double error = begun.step_time_s / quiet.step_time_s - 1,
               fewer = begun.events / whole.events;
        print_message("%d: %d ranks, %+.5f %%, %.2f of the events\n", j, begun.ranks_simulated,
            100 * error, fewer);
        assert_true(fabs(error) < 1e-3);
        assert_true(fewer < 0.85);
        arena_release(&arena);
    }
}

/* Any strategy, model and options: the quiet run's step, or nearly, and no rank waits for ever. */
static void drawn_cases(void **state)
{
    (void)state;
    enum { CASES = 1200, MOST_RANKS = 64 };
    struct arena shared = ARENA_INIT;
    struct hw hw;
    int ran = 0, differ = 0;
    load_cluster(&hw, "a100-pcie-1x200g", &shared);
    for (int i = 0; i < CASES; i++) {
        struct arena arena = ARENA_INIT;
        struct drawn drawn = draw(i);
        struct plan plan;
        struct exec_result quiet, begun;
        struct exec_options options = exec_default_options();
        options.steps = 1;
        options.mean_documents = true;
        if (compile_drawn(&plan, &drawn, &hw, &arena) && plan.mesh.ranks <= MOST_RANKS) {
            exec_run(&quiet, &plan, &hw, &options, &arena);
            options.noise.kernel_jitter = options.noise.host_jitter = 1e-9;
            exec_run(&begun, &plan, &hw, &options, &arena);
            assert_int_equal(quiet.status, begun.status);
            double error = quiet.status == EXEC_OK ? begun.step_time_s / quiet.step_time_s - 1 : 0;
            if (fabs(error) > 1e-3)
                print_message("%d: %+.2f %%\n", i, 100 * error);
            assert_true(fabs(error) < 0.01); /* a collective begins once more */
            differ += fabs(error) > 1e-3;
            ran += quiet.status == EXEC_OK;
        }
        plan_release(&plan);
        arena_release(&arena);
    }
    print_message("%d jobs, %d of them by more than 0.1 %%\n", ran, differ);
    assert_true(ran > CASES / 4 && differ <= ran / 200);
    arena_release(&shared);
}

/* Step times over seeds, with one way of warm-up or the other. */
static void draw_steps(double *steps_s, int n, struct scenario_point point, bool noisy_warmup)
{
    point.options.exec.noisy_warmup = noisy_warmup;
    for (int i = 0; i < n; i++) {
        struct arena arena = ARENA_INIT;
        point.options.exec.seed = 1 + i + (noisy_warmup ? n : 0);
        steps_s[i] = simulate(&point, &arena).step_time_s;
        arena_release(&arena);
    }
}

static void same_in_the_mean(void **state)
{
    (void)state;
    enum { SEEDS = 24 };
    double begun_s[SEEDS], whole_s[SEEDS];
    for (int j = 0; j < 3; j++) {
        struct arena arena = ARENA_INIT;
        struct scenario_set set = {0};
        load(&set, &jobs[j], &arena);
        draw_steps(begun_s, SEEDS, set.points[0], false);
        draw_steps(whole_s, SEEDS, set.points[0], true);
        double mean_s = gsl_stats_mean(whole_s, 1, SEEDS), sd_s = gsl_stats_sd(whole_s, 1, SEEDS),
               error = gsl_stats_mean(begun_s, 1, SEEDS) / mean_s - 1,
               ratio = gsl_stats_sd(begun_s, 1, SEEDS) / sd_s;
        print_message("%d: mean %+.3f %% of %.4f s, standard deviation %.2f of %.3f %%\n", j,
            100 * error, mean_s, ratio, 100 * sd_s / mean_s);
        assert_true(fabs(error) < 0.003 + 3 * sd_s / mean_s / sqrt(SEEDS / 2.0));
        assert_true(ratio > 0.5 && ratio < 2);
        arena_release(&arena);
    }
}

/* A timeline changes nothing, and has what hosts have done of the measured step before the instant
 * at which the run begins. */
static void traced_as_well(void **state)
{
    (void)state;
    static const int ranks[] = {0, 24};
    struct arena arena = ARENA_INIT;
    struct scenario_set set = {0};
    load(&set, &jobs[3], &arena);
    struct scenario_point point = set.points[0];
    struct exec_result plain = simulate(&point, &arena);
    point.options.exec.trace_ranks = ranks;
    point.options.exec.n_trace_ranks = 2;
    struct exec_result traced = simulate(&point, &arena);
    assert_true(plain.step_time_s == traced.step_time_s);
    point.options.exec.noisy_warmup = true;
    struct exec_result whole = simulate(&point, &arena);
    assert_int_equal(traced.n_spans, whole.n_spans);
    int steps = 0, issued[2] = {0};
    for (int i = 0; i < traced.n_host_spans; i++) {
        steps += traced.host_spans[i].kind == HOST_STEP;
        issued[0] += traced.host_spans[i].kind == HOST_ISSUE;
    }
    for (int i = 0; i < whole.n_host_spans; i++)
        issued[1] += whole.host_spans[i].kind == HOST_ISSUE;
    assert_int_equal(steps, 2);
    assert_int_equal(issued[0], issued[1]);
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(next_to_no_noise),
        cmocka_unit_test(drawn_cases), cmocka_unit_test(same_in_the_mean),
        cmocka_unit_test(traced_as_well)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
