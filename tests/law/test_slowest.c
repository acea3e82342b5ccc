/* run.fold slowest beside every rank, with all noise of a cluster: the same step within half a
 * percent. */
#include "exec/exec.h"
#include "strategy/strategy.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "../check_and_compile.h"
#include "../point.h"

enum { LAYERS = 4 };

struct layout {
    enum strategy_kind kind;
    int64_t tensor, pipeline, grad_accum;
    int simulated, simulated_beside_slow; /* ranks by the slowest; where a host is slow */
    const char *seq_len;
};

/* Of H100 with all noise of their cluster; returns the hardware. */
static const struct hw *compile(struct plan *plan, struct exec_options *exec,
    const struct layout *layout, const char *gpus, struct arena *arena)
{
    struct diag diag = DIAG_INIT;
    struct scenario_set set = {0};
    const struct scenario_override overrides[] = {
        {"cluster.gpus", gpus}, {"train.seq_len", layout->seq_len}, {"train.micro_batch", "1"}};
    if (scenario_load(&set, FLOPCAST_SOURCE_DIR "/scenarios/llama2_7b_h100_fsdp.yaml",
            OVERRIDES(overrides), arena, &diag) != STATUS_OK)
        fail_msg("%s", diag.text);
    struct scenario_point *point = &set.points[0];
    struct strategy_options *options = &point->options.strategy;
    options->kind = (int)layout->kind;
    options->parallelism.model.tensor = layout->tensor;
    options->parallelism.pipeline = layout->pipeline;
    options->train.grad_accum = layout->grad_accum;
    struct model_shape shape = point->model.shape;
    shape.n_layers = LAYERS;
    struct model *model = arena_alloc(arena, sizeof *model);
    model_build(model, &shape, arena);
    *exec = point->options.exec;
    assert_true(exec->noise.gpu_speed_spread > 0 && exec->noise.kernel_jitter > 0 &&
                exec->noise.network_jitter > 0);
    exec->steps = exec->warmup_steps = 1;
    if (check_and_compile(plan, options, model, &point->hw, atoi(gpus), arena, &diag) != STATUS_OK)
        fail_msg("%s", diag.text);
    return &point->hw;
}

enum { ALIKE = -1 }; /* slow_hosts: there are none, and all GPUs are as fast */

static struct exec_result simulate(
    const struct layout *layout, const char *gpus, enum exec_fold fold, int64_t slow_hosts)
{
    struct arena arena = ARENA_INIT;
    struct plan plan;
    struct exec_options exec;
    struct exec_result result;
    struct exec_progress progress = {0};
    const struct hw *hw = compile(&plan, &exec, layout, gpus, &arena);
    exec.fold = (int)fold;
    exec.noise.slow_hosts = slow_hosts == ALIKE ? 0 : slow_hosts;
    if (slow_hosts == ALIKE)
        exec.noise.gpu_speed_spread = 0;
    exec.progress = &progress;
    exec_run(&result, &plan, hw, &exec, &arena);
    assert_int_equal(result.status, EXEC_OK);
    assert_true(progress.by_slowest == (fold == FOLD_AUTO && result.ranks_simulated < atoi(gpus)));
    plan_release(&plan);
    arena_release(&arena);
    return result;
}

static void as_every_rank(void **state)
{
    (void)state;
    static const double MOST = 0.005;
    /* 4 nodes of 8; 4 nodes of 4 pairs; 4 times two nodes of 4 pairs. Where a host is slow its
     * unit, and one more of pipelines */
    static const struct layout cases[] = {{STRATEGY_FSDP, 1, 1, 1, 32, 8, "4096"},
        {STRATEGY_DDP, 2, 1, 1, 16, 4, "4096"}, {STRATEGY_MEGATRON, 2, 2, 4, 32, 16, "4096"}};
    for (int c = 0; c < 9; c++) {
        const struct layout *layout = &cases[c / 3];
        int slow_hosts = c % 3 - 1;
        struct exec_result all = simulate(layout, "128", FOLD_OFF, slow_hosts),
                           slowest = simulate(layout, "128", FOLD_SLOWEST, slow_hosts);
        double error = slowest.step_time_s / all.step_time_s - 1;
        print_message("%d: %d of %d ranks, %+.3f %% of %.4f s\n", c, slowest.ranks_simulated,
            all.ranks_simulated, 100 * error, all.step_time_s);
        assert_int_equal(all.ranks_simulated, 128);
        assert_int_equal(slowest.ranks_simulated,
            slow_hosts > 0 ? layout->simulated_beside_slow : layout->simulated);
        assert_true(fabs(error) < MOST);
    }
}

struct hosts {
    const char *strategy, *gpus;
    int seeds, all, simulated;
    double most;
};

/* A step of GPT-2 on H100, in the mean over seeds. */
static double of_many_hosts_s(const struct hosts *hosts, const char *fold, int simulated)
{
    double sum_s = 0;
    for (int seed = 1; seed <= hosts->seeds; seed++) {
        struct arena arena = ARENA_INIT;
        const struct scenario_override overrides[] = {{"cluster.gpus", hosts->gpus},
            {"cluster.topology", "h100"}, {"train.seq_len", "512"}, {"train.micro_batch", "1"},
            {"noise.straggler_share", "0"}, {"strategy", hosts->strategy}, {"run.fold", fold},
            {"run.seed", arena_printf(&arena, "%d", seed)}};
        struct scenario_result result = simulate_point(
            FLOPCAST_SOURCE_DIR "/scenarios/gpt2_ddp_v100.yaml", OVERRIDES(overrides), &arena);
        assert_int_equal(result.exec.ranks_simulated, simulated);
        sum_s += result.exec.step_time_s;
        arena_release(&arena);
    }
    return sum_s / hosts->seeds;
}

/* Hosts that a step waits for: those of a part of the ranks are as late as the slowest of all. */
static void as_every_host(void **state)
{
    (void)state;
    static const struct hosts cases[] = {
        {"ddp", "256", 8, 256, 32, 0.01}, {"zero3", "1024", 1, 1024, 512, 0.003}};
    for (int c = 0; c < 2; c++) {
        double all_s = of_many_hosts_s(&cases[c], "off", cases[c].all),
               slowest_s = of_many_hosts_s(&cases[c], "slowest", cases[c].simulated);
        double error = slowest_s / all_s - 1;
        print_message("%s: %d of %d ranks, %+.3f %% of %.5f s\n", cases[c].strategy,
            cases[c].simulated, cases[c].all, 100 * error, all_s);
        assert_true(fabs(error) < cases[c].most);
    }
}

/* By itself a job is by the slowest where a step of all ranks is more than 5 million ops. */
static void large_jobs_are(void **state)
{
    (void)state;
    static const struct layout layout = {STRATEGY_FSDP, 1, 1, 32, 32, 8, "4096"};
    struct exec_result large = simulate(&layout, "4096", FOLD_AUTO, 0),
                       asked = simulate(&layout, "4096", FOLD_SLOWEST, 0),
                       small = simulate(&layout, "64", FOLD_AUTO, 0);
    assert_int_equal(large.ranks_simulated, 32);
    assert_int_equal(large.digest, asked.digest);
    assert_int_equal(small.ranks_simulated, 64);
}

/* Its own look at a quiet run, or that of a run with other noise: the same events. */
static void shared_reference(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct plan plan;
    struct exec_options exec;
    struct exec_reference shared = {0};
    struct exec_result without, with, alone;
    const struct hw *hw = compile(
        &plan, &exec, &(struct layout){STRATEGY_MEGATRON, 2, 2, 4, 0, 0, "4096"}, "128", &arena);
    exec.fold = FOLD_SLOWEST;
    exec_refer(&shared, &plan, hw, &exec, &arena);
    exec.reference = &shared;
    exec_run(&without, &plan, hw, &exec, &arena);
    exec.noise.slow_hosts = 2;
    exec_run(&with, &plan, hw, &exec, &arena);
    exec.reference = NULL;
    exec_run(&alone, &plan, hw, &exec, &arena);
    assert_true(with.step_time_s > without.step_time_s);
    assert_int_equal(with.digest, alone.digest);
    assert_true(with.step_time_s == alone.step_time_s);
    assert_true(with.memory.peak_reserved_bytes == alone.memory.peak_reserved_bytes);
    assert_true(with.memory.peak_reserved_bytes > 0);
    exec_reference_release(&shared);
    plan_release(&plan);
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(as_every_rank),
        cmocka_unit_test(as_every_host), cmocka_unit_test(large_jobs_are),
        cmocka_unit_test(shared_reference)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
