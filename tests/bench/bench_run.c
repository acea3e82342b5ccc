/* Speed of whole runs, as `flopcast validate` has them: median of RUNS, and the ratio to a
 * reference measured in the same run, which a slower machine does not change: an event of the
 * engine alone, 1000 pending (the hold model).
 *
 * plan: to compile one of 256 micro-steps, an op. folded: one rank with its allocator; ranks: 32
 * with noise and without an allocator for each; both an op that a stream runs (not all take an
 * event), the compilation included. */
#include "bench.h"

#include "engine/engine.h"
#include "scenario/scenario.h"

#include <gsl/gsl_statistics_double.h>
#include <stdio.h>
#include <stdlib.h>

enum { RUNS = 5, EVENTS = 1000000, PENDING = 1000 };

static void again(void *self, const struct event *event)
{
    struct engine *engine = self;
    if (engine->events < EVENTS)
        engine_at(engine, event->time + 1 + event->target, event->kind,
            (event->target * 7 + 1) % PENDING, 0);
}

static double event_s(void)
{
    struct engine engine;
    engine_init(&engine);
    uint32_t kind = engine_register(&engine, again, &engine);
    for (uint32_t i = 0; i < PENDING; i++)
        engine_at(&engine, i, kind, i, 0);
    double begin = now_s();
    engine_run(&engine);
    double seconds = (now_s() - begin) / (double)engine.events;
    engine_release(&engine);
    return seconds;
}

/* What the streams of all ranks run in all steps. */
static double ops_run(
    const struct scenario_point *point, const struct plan *plan, const struct exec_result *result)
{
    double ops = 0;
    for (int s = 0; s < STREAM_COUNT; s++)
        ops += plan->programs[0].queue_ops.at[s].n;
    return ops * result->ranks_simulated *
           (double)(point->options.exec.steps + point->options.exec.warmup_steps);
}

/* Seconds of an op of the plan, or of one that runs. */
static double run_s(const struct scenario_override *set, int n, bool compiles_only)
{
    struct arena arena = ARENA_INIT;
    struct diag *diag = xcalloc(1, sizeof *diag);
    struct scenario_set scenario = {0};
    struct scenario_result result = {0};
    struct plan plan = {0};
    scenario_load(
        &scenario, FLOPCAST_SOURCE_DIR "/scenarios/gpt2_ddp_v100.yaml", set, n, &arena, diag);
    BUG_IF(diag->n_errors > 0 || scenario.n_points != 1, "%s", diag->text);
    double begin = now_s();
    if (compiles_only)
        scenario_compile(&plan, &scenario.points[0], &arena, diag);
    else
        scenario_simulate(&result, &scenario.points[0], &arena, diag);
    double seconds = now_s() - begin;
    if (!compiles_only)
        scenario_compile(&plan, &scenario.points[0], &arena, diag);
    BUG_IF(diag->n_errors > 0, "%s", diag->text);
    seconds /= compiles_only ? (double)plan.programs[0].ops.n
                             : ops_run(&scenario.points[0], &plan, &result.exec);
    plan_release(&plan);
    arena_release(&arena);
    free(diag);
    return seconds;
}

static void bench(const char *name, const struct scenario_override *set, int n, bool compiles_only)
{
    double run[RUNS], reference[RUNS];
    for (int r = 0; r < RUNS; r++) {
        run[r] = run_s(set, n, compiles_only);
        reference[r] = event_s();
    }
    double seconds = gsl_stats_median(run, 1, RUNS);
    printf("%-6s: %6.1f ns, %5.2f times an event of the engine alone\n", name, seconds * 1e9,
        seconds / gsl_stats_median(reference, 1, RUNS));
}

int main(void)
{
    static const struct scenario_override folded[] = {{"cluster.gpus", "8"},
        {"train.grad_accum", "256"}, {"noise.gpu_speed_spread", "0"}, {"noise.kernel_jitter", "0"},
        {"noise.network_jitter", "0"}, {"noise.host_jitter", "0"}};
    static const struct scenario_override ranks[] = {
        {"cluster.gpus", "32"}, {"train.grad_accum", "8"}};
    bench("plan", folded, sizeof folded / sizeof *folded, true);
    bench("folded", folded, sizeof folded / sizeof *folded, false);
    bench("ranks", ranks, sizeof ranks / sizeof *ranks, false);
    return 0;
}
