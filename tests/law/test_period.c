/* Periods that are skipped (exec/period.c) change nothing: times of steps, what ranks spent them
 * on, what links carried, peaks and timelines of memory are to the bit those of the whole run. */
#include "scenario/scenario.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "../combinations.h"
#include "../point.h"
#include "draws.h"
#include "layouts.h"

#define SCENARIOS FLOPCAST_SOURCE_DIR "/scenarios/"

static bool same_numbers(const double *a, const double *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!(a[i] == b[i]))
            return false;
    return true;
}

static bool same_breakdown(const struct exec_breakdown *a, const struct exec_breakdown *b)
{
    return same_numbers((const double *)a, (const double *)b, sizeof *a / sizeof(double));
}

static bool same_memory(const struct exec_memory *a, const struct exec_memory *b)
{
    return a->peak_allocated_bytes == b->peak_allocated_bytes &&
           a->peak_reserved_bytes == b->peak_reserved_bytes &&
           same_numbers(a->peak_category_bytes, b->peak_category_bytes, HBM_CATEGORY_COUNT) &&
           a->alloc_retries == b->alloc_retries && a->alloc_stall_s == b->alloc_stall_s;
}

static bool same_timeline(const struct exec_program *a, const struct exec_program *b)
{
    bool same = a->n_timeline == b->n_timeline;
    for (int i = 0; i < a->n_timeline && same; i++) {
        const struct exec_memory_sample *one = &a->timeline[i], *other = &b->timeline[i];
        same = one->time_s == other->time_s && one->reserved_bytes == other->reserved_bytes &&
               same_numbers(one->category_bytes, other->category_bytes, HBM_CATEGORY_COUNT);
    }
    return same;
}

static void assert_same_run(
    const char *what, const struct exec_result *skips, const struct exec_result *whole)
{
    bool same = skips->status == whole->status && skips->step_time_s == whole->step_time_s &&
                skips->step_time_sd_s == whole->step_time_sd_s &&
                skips->nvlink_utilisation == whole->nvlink_utilisation &&
                skips->nic_utilisation == whole->nic_utilisation &&
                same_breakdown(&skips->breakdown, &whole->breakdown) &&
                same_memory(&skips->memory, &whole->memory);
    for (int p = 0; p < whole->n_programs && whole->status == EXEC_OK; p++) {
        const struct exec_program *a = &skips->programs[p], *b = &whole->programs[p];
        same = same && same_memory(&a->memory, &b->memory) &&
               same_breakdown(&a->breakdown, &b->breakdown);
        if (same && !same_timeline(a, b))
            fail_msg("%s: another timeline of memory in program %d", what, p);
    }
    if (!same)
        fail_msg("%s: %.17g s, all periods %.17g s", what, skips->step_time_s, whole->step_time_s);
}

/* The share of its events that a run has when it skips. */
static double run_both(const char *what, const struct plan *plan, const struct hw *hw,
    struct exec_options options, struct arena *arena)
{
    struct exec_result skips, whole;
    exec_run(&skips, plan, hw, &options, arena);
    options.all_periods = true;
    exec_run(&whole, plan, hw, &options, arena);
    assert_same_run(what, &skips, &whole);
    return skips.events / whole.events;
}

/* Jobs of many micro-batches: how many there are, and how many of them skip something. */
struct tried {
    int ran, skipped;
};

static void try_drawn(
    struct tried *tried, const struct drawn *drawn, const struct hw *hw, struct arena *arena)
{
    struct plan plan, folded = {0};
    struct exec_options options = exec_default_options();
    char what[64];
    snprintf(what, sizeof what, "case %d of %s", drawn->number,
        strategy_kind_names[drawn->options.kind]);
    options.steps = 1 + drawn->number % 2;
    options.mean_documents = true;
    if (compile_drawn(&plan, drawn, hw, arena)) {
        struct model *model = ARENA_ARRAY(arena, struct model, 1);
        model_build(model, drawn->shape, arena);
        assert_true(compile_folded(&folded, &drawn->options, model, hw, drawn->gpus, arena));
        tried->skipped += run_both(what, &folded, hw, options, arena) < 1;
        tried->ran++;
    }
    plan_release(&folded);
    plan_release(&plan);
}

/* A GPU whose kernels, however small, take longer than a host needs to launch them: a host that is
 * never held up repeats nothing. */
static void load_slow_gpus(struct hw *hw, struct arena *arena)
{
    load_cluster(hw, "a100-pcie-1x200g", arena);
    hw->gpu.kernel_floor.value = hw->gpu.gemm_floor.value = 30e-6;
}

/* Any strategy, model and options. */
static void drawn_cases(void **state)
{
    (void)state;
    struct arena shared = ARENA_INIT;
    struct hw hw;
    struct tried tried = {0};
    load_slow_gpus(&hw, &shared);
    for (int i = 0; i < law_draws(120); i++) {
        struct arena arena = ARENA_INIT;
        struct drawn drawn = draw(i);
        if (drawn.options.train.device_batch == 0)
            drawn.options.train.grad_accum = 16 + i % 32;
        try_drawn(&tried, &drawn, &hw, &arena);
        arena_release(&arena);
    }
    print_message("%d of %d jobs skip something\n", tried.skipped, tried.ran);
    assert_true(tried.skipped > 0);
    arena_release(&shared);
}

/* Pipelines, tensor parallelism, experts. */
static void drawn_layouts(void **state)
{
    (void)state;
    static const struct model_shape *const shapes[] = {
        &small_llama, &small_gpt, &small_moe, &small_deepseek};
    struct arena shared = ARENA_INIT;
    struct hw hw;
    struct tried tried = {0};
    load_slow_gpus(&hw, &shared);
    for (int k = 0; k < LAYOUT_KINDS; k++)
        for (int i = 0; i < LAYOUTS; i++) {
            struct arena arena = ARENA_INIT;
            struct model_shape deep = *shapes[i % 4];
            deep.n_layers = 4;
            struct drawn drawn = {
                .number = i, .shape = &deep, .gpus = 8, .options = layout(layout_kinds[k], i)};
            drawn.options.train.grad_accum = 16 + 2 * (i % 8);
            drawn.options.parallelism.model.expert = deep.moe.experts > 0 ? 2 : 1;
            try_drawn(&tried, &drawn, &hw, &arena);
            arena_release(&arena);
        }
    print_message("%d of %d layouts skip something\n", tried.skipped, tried.ran);
    assert_true(tried.skipped > tried.ran / 5);
    arena_release(&shared);
}

static double check(const char *scenario, const struct scenario_override *overrides, int n)
{
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    struct scenario_set set = {0};
    if (scenario_load(&set, scenario, overrides, n, &arena, &diag) != STATUS_OK)
        fail_msg("%s", diag.text);
    struct scenario_point *point = &set.points[0];
    struct scenario_result results[2];
    for (int whole = 0; whole < 2; whole++) {
        exec_be_quiet(&point->options.exec);
        point->options.exec.all_periods = whole == 1;
        assert_int_equal(scenario_simulate(&results[whole], point, &arena, &diag), STATUS_OK);
    }
    assert_same_run(scenario, &results[0].exec, &results[1].exec);
    double share = results[0].exec.events / results[1].exec.events;
    print_message("%s: %.3f of its events\n", scenario, share);
    arena_release(&arena);
    return share;
}

/* Of 192 micro-batches on 12 stages. */
static void a_long_pipeline(void **state)
{
    (void)state;
    const struct scenario_override set[] = {{"cluster.gpus", "768"}, {"train.micro_batch", "1"}};
    assert_true(check(SCENARIOS "gpt3_175b.yaml", OVERRIDES(set)) < 0.25);
}

static void schedules(void **state)
{
    (void)state;
    static const struct {
        const char *schedule, *chunks, *stages;
        double share;
    } kinds[] = {{"1F1B", "1", "2", 0.3}, {"GPipe", "1", "2", 0.4}, {"ZBH1", "1", "2", 0.3},
        {"1F1B", "2", "2", 0.3}, {"1F1B", "3", "4", 0.6}, {"ZBVZeroBubble", "2", "2", 0.4},
        {"DualPipeV", "2", "2", 0.4}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const struct scenario_override set[] = {{"model", SCENARIOS "models/gpt2.yaml"},
            {"cluster.gpus", "16"}, {"parallelism.tensor", "2"},
            {"parallelism.pipeline", kinds[i].stages}, {"parallelism.schedule", kinds[i].schedule},
            {"parallelism.virtual", kinds[i].chunks}, {"train.micro_batch", "1"},
            {"train.global_batch", "512"}, {"train.seq_len", "1024"}, {"run.steps", "1"}};
        double share = check(SCENARIOS "gpt3_175b.yaml", OVERRIDES(set));
        print_message("%s, %s chunks\n", kinds[i].schedule, kinds[i].chunks);
        assert_true(share <= kinds[i].share);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(drawn_cases),
        cmocka_unit_test(drawn_layouts),
        cmocka_unit_test(a_long_pipeline),
        cmocka_unit_test(schedules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
