/* Whatever is combined with whatever: models of every family and the options of strategies, drawn
 * independently. What strategy_check has nothing against is a lawful plan, and exec runs it to its
 * end. The seed is fixed: a case that fails here fails again. Its settings are printed, or its
 * number where a BUG ends the test. */
#include "scenario/scenario.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "../combinations.h"
#include "draws.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { UNITS = 1500, EXECUTED = 8 }; /* every eighth is */

static struct drawn current = {.number = -1}; /* of which nobody knows yet that it holds */

static void print_case(const struct drawn *drawn)
{
    struct scenario scenario = scenario_default();
    scenario.strategy = drawn->options;
    scenario.cluster.gpus = drawn->gpus;
    fprintf(stderr, "case %d: model '%s'\n", drawn->number, drawn->shape->name);
    config_write_json(stderr, &scenario_table, &scenario, NULL);
}

static int print_current(void **state)
{
    (void)state;
    if (current.number >= 0)
        print_case(&current);
    return 0;
}

/* A BUG ends the test here, where nothing may be formatted. */
static char current_line[64];
static void on_abort(int signal)
{
    (void)signal;
    ssize_t written = write(STDERR_FILENO, current_line, strlen(current_line));
    (void)written;
}

/* ---- laws ---- */

/* Recomputation alone makes the GPU do more than the model needs: a forward pass at most, of which
 * three are a step, two where the matrices are frozen. A causal flash kernel leaves half of the
 * scores out. */
static void check_plan(const struct plan *plan, const struct drawn *drawn)
{
    const struct train_options *train = &drawn->options.train;
    char why[256] = "";
    if (!plan_check(plan, why, sizeof why))
        fail_msg("%s", why);
    int64_t batch =
        train->device_batch ? train->device_batch : train->micro_batch * train->grad_accum;
    assert_true(plan->samples == (double)(batch * plan->mesh.ranks));
    double ratio =
        plan_hardware_flop(plan, ATTENTION_FLOP_FULL) / plan_model_flop(plan, ATTENTION_FLOP_FULL);
    if (train->attention != ATTENTION_NAIVE)
        return;
    if (train->activation_checkpointing == CHECKPOINT_NONE)
        assert_true(ratio > 1 - 1e-12 && ratio < 1 + 1e-12);
    else
        assert_true(ratio > 1 - 1e-12 && ratio < (train->lora_rank ? 3.0 / 2 : 4.0 / 3) + 1e-12);
}

static void execute(const struct plan *plan, const struct hw *hw, int number, struct arena *arena)
{
    struct exec_options options = exec_default_options();
    struct exec_result result;
    options.steps = options.warmup_steps = 1;
    if (number / EXECUTED % 4 == 0 && plan->mesh.ranks <= 8) /* ranks one by one */
        options.noise = (struct noise_options){.gpu_speed_spread = 0.02,
            .gpu_speed_spread_below = 0.006,
            .kernel_jitter = 0.01,
            .network_jitter = 0.02,
            .host_jitter = 0.05};
    exec_run(&result, plan, hw, &options, arena);
    assert_int_equal(result.status, EXEC_OK);
    assert_true(result.step_time_s > 0);
}

/* Whether the case can be done. */
static bool holds(struct drawn (*drawn)(int), int number, const struct hw *hw)
{
    struct arena arena = ARENA_INIT;
    struct plan plan;
    current = drawn(number);
    snprintf(current_line, sizeof current_line, "in case %d of test_combinations.c\n", number);
    bool taken = compile_drawn(&plan, &current, hw, &arena);
    if (taken) {
        check_plan(&plan, &current);
        if (number % EXECUTED == 0)
            execute(&plan, hw, number, &arena);
    }
    plan_release(&plan);
    arena_release(&arena);
    current.number = -1;
    return taken;
}

static int taken_of(struct drawn (*drawn)(int), int cases)
{
    struct arena arena = ARENA_INIT;
    struct hw hw;
    signal(SIGABRT, on_abort);
    load_cluster(&hw, "h100-8x400g", &arena);
    int taken = 0;
    for (int i = 0; i < cases; i++)
        taken += holds(drawn, i, &hw);
    arena_release(&arena);
    return taken;
}

static void every_combination_is_a_lawful_plan(void **state)
{
    (void)state;
    int cases = law_draws(6000);
    assert_true(taken_of(draw, cases) > cases / 2);
}

static void so_is_every_one_of_megatron_fsdp(void **state)
{
    (void)state;
    assert_true(taken_of(draw_megatron_fsdp, UNITS) > UNITS / 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_combination_is_a_lawful_plan),
        cmocka_unit_test(so_is_every_one_of_megatron_fsdp)};
    return cmocka_run_group_tests(tests, NULL, print_current);
}
