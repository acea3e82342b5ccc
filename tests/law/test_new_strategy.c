/* A strategy is one file and one line. This file is one that the program does not have: every rank
 * holds the model, and when backward is over one all-reduce joins the gradients of all, with
 * nothing beside it. The table below, with its line, stands in for the one of the library. */
#include "coll/coll.h"
#include "exec/exec.h"
#include "strategy/emit.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "../combinations.h"

/* ---- the file ---- */

struct toy {
    struct optimizer_tensor *tensors; /* what the optimizer steps on */
};

static void setup(struct emit *emit)
{
    struct toy *toy = emit->state;
    toy->tensors = ARENA_ARRAY(emit->arena, struct optimizer_tensor, emit->model->n_tensors);
    for (int t = 0; t < emit->model->n_tensors; t++) {
        const struct model_tensor *tensor = &emit->model->tensors[t];
        plan_keep(&emit->builder, tensor->name, emit_kept_bytes(emit, tensor), HBM_PARAMETERS);
        toy->tensors[t] = (struct optimizer_tensor){.rows = tensor->rows, .cols = tensor->cols};
    }
}

static void grad_begins(struct emit *emit, int tensor)
{
    emit_alloc_grad(
        emit, tensor, emit->model->tensors[tensor].numel * emit->master_bytes, HBM_GRADIENTS);
}

static void step_ends(struct emit *emit)
{
    struct toy *toy = emit->state;
    struct plan_builder *builder = &emit->builder;
    plan_stream_wait(builder, STREAM_COMPUTE,
        emit_collective(emit, STREAM_COMM, plan_last_op(builder, STREAM_COMPUTE),
            "gradients/all_reduce", COLL_ALL_REDUCE,
            (double)(emit->model->params * emit->master_bytes),
            emit_group(emit, "world", AXES_DP)));
    emit_first_state(emit, toy->tensors, emit->model->n_tensors);
    emit_optimizer(emit, toy->tensors, emit->model->n_tensors);
}

static const struct data_parallel toy_hooks = {.state_size = sizeof(struct toy),
    .label = "one all-reduce",
    .setup = setup,
    .step_ends = step_ends,
    .grad_begins = grad_begins};

/* ---- the line ---- */

#define STRATEGIES_AND_TOY(X) STRATEGIES(X) X(STRATEGY_TOY, "toy", toy_hooks)

#define STRATEGY_HOOKS(kind, name, hooks) &hooks,
const struct data_parallel *const strategies[] = {STRATEGIES_AND_TOY(STRATEGY_HOOKS)};
enum { STRATEGY_TOY = STRATEGY_COUNT };

/* ---- the test ---- */

static double step_s(int gpus, const struct hw *hw, double *params)
{
    struct arena arena = ARENA_INIT;
    struct drawn drawn = {.shape = &small_gpt, .gpus = gpus, .options = strategy_default_options()};
    drawn.options.kind = STRATEGY_TOY;
    drawn.options.train.seq_len = 32;
    drawn.options.train.micro_batch = 1;
    drawn.options.train.precision = PRECISION_FP32;
    drawn.options.train.grad_accum = 2;
    drawn.options.host = (struct host_options){0};
    struct exec_options exec = exec_default_options();
    exec.noise = (struct noise_options){0};
    struct exec_result result;
    struct plan plan;
    char why[256];
    assert_string_equal(strategy_label(&drawn.options), "one all-reduce");
    assert_true(compile_drawn(&plan, &drawn, hw, &arena));
    if (!plan_check(&plan, why, sizeof why))
        fail_msg("%s", why);
    assert_int_equal(plan.collectives.n, gpus > 1);
    *params = gpus > 1 ? plan.collectives.at[0].bytes / 4 : *params;
    exec_run(&result, &plan, hw, &exec, &arena);
    assert_int_equal(result.status, EXEC_OK);
    plan_release(&plan);
    arena_release(&arena);
    return result.step_time_s;
}

/* The host costs nothing and nothing runs beside the all-reduce: what several ranks take longer
 * than one is what coll.h says of the collective alone, latency + bus bytes / rate; it carries 4
 * bytes a parameter. Within 10 ps: exec counts whole picoseconds. */
static void the_step_is_longer_by_the_all_reduce(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct hw hw;
    load_cluster(&hw, "a100-80gb-roce-2tb", &arena);
    struct model model;
    model_build(&model, &small_gpt, &arena);
    double params = 0, alone = step_s(1, &hw, &params);
    static const int ranks[] = {2, 8, 32};
    for (int i = 0; i < 3; i++) {
        double longer = step_s(ranks[i], &hw, &params) - alone;
        assert_true(params == (double)model.params);
        struct coll_shape shape =
            coll_shape((struct coll_group){0, 1, ranks[i]}, hw_gpus_per_node(&hw));
        struct coll_cost cost = coll_choose(COLL_ALL_REDUCE, 4.0 * params, shape, &hw, COLL_FREE);
        double expected = cost.latency_s + cost.bus_bytes / cost.max_rate_Bps;
        if (fabs(longer - expected) > 1e-11)
            fail_msg("%d ranks: %.13g s longer, expected %.13g", ranks[i], longer, expected);
    }
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_step_is_longer_by_the_all_reduce)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
