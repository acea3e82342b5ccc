/* A plan whose alike cells are held once (plan/fold.h) is the plan: op by op, wait by wait, buffer
 * by buffer, with the same sums of host time to the last bit; and a run of it is the same, event by
 * event. */
#include "exec/exec.h"
#include "plan/fold.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "../combinations.h"
#include "../point.h"
#include "draws.h"

#include <string.h>

#define SCENARIOS FLOPCAST_SOURCE_DIR "/scenarios/"

/* The same job, held once. */
struct pair {
    const struct plan *flat, *folded;
    const struct plan_program *program;
    const struct plan_fold *fold;
    int32_t *number_of; /* by buffer of the program: its number in the fold, -1: not met yet */
};

static void assert_same_buffer(const struct pair *pair, int32_t i, const struct plan_op *op)
{
    int32_t number;
    const struct plan_buffer *a = &pair->program->buffers.at[op->index],
                             *b = plan_fold_buffer(pair->fold, i, &number);
    assert_true(a->bytes == b->bytes && a->category == b->category && a->stream == b->stream);
    assert_string_equal(a->name, b->name);
    if (op->kind == OP_FREE)
        assert_int_equal(pair->number_of[op->index], number);
    assert_in_range(number, pair->program->setup.n, pair->fold->n_buffers - 1);
    pair->number_of[op->index] = number;
}

static void assert_same_op(const struct pair *pair, int32_t i)
{
    const struct plan_op *a = &pair->program->ops.at[i], *b = plan_fold_op(pair->fold, i);
    assert_true(a->kind == b->kind && a->stream == b->stream && a->phase == b->phase &&
                a->n_waits == b->n_waits);
    assert_true(a->host_s == b->host_s && (a->position >= 0) == (b->position >= 0));
    assert_string_equal(a->name, b->name);
    for (int w = 0; w < a->n_waits; w++)
        assert_int_equal(
            pair->program->waits.at[a->first_wait + w], plan_fold_wait(pair->fold, i, w));
    if (a->position >= 0)
        assert_int_equal(a->position, plan_fold_position(pair->fold, i));
    if (plan_op_is_memory(a)) {
        assert_same_buffer(pair, i, a);
    } else if (a->kind == OP_COLLECTIVE) {
        const struct plan_collective *x = &pair->flat->collectives.at[a->index],
                                     *y = &pair->folded->collectives.at[b->index];
        assert_true(x->kind == y->kind && x->bytes == y->bytes && x->group == y->group &&
                    x->serves == y->serves && x->routing == y->routing);
    } else {
        assert_int_equal(a->index, b->index);
    }
}

/* What is looked up before an op. */
static void assert_same_sums(const struct pair *pair, struct arena *arena)
{
    const struct plan_fold *flat = plan_fold_flat(pair->flat, pair->program, arena);
    for (int32_t i = 0; i <= flat->n_ops; i++) {
        assert_true(plan_fold_host_s(flat, i) == plan_fold_host_s(pair->fold, i));
        assert_int_equal(plan_fold_launches(flat, i), plan_fold_launches(pair->fold, i));
        assert_int_equal(plan_fold_block(flat, i), plan_fold_block(pair->fold, i));
        assert_int_equal(plan_stretch_memory(plan_fold_stretch(flat, i), i),
            plan_stretch_memory(plan_fold_stretch(pair->fold, i), i));
    }
}

/* The way along each queue. */
static void assert_same_queues(const struct pair *pair)
{
    for (int q = 0; q < pair->flat->queues.n; q++) {
        const plan_numbers *ops = &pair->program->queue_ops.at[q];
        assert_int_equal(ops->n, plan_fold_queue_ops(pair->fold, q));
        struct plan_cursor cursor = {0};
        for (int k = 0; k < ops->n; k++) {
            if (k == 0)
                cursor = plan_cursor_first(pair->fold, q);
            else
                plan_cursor_next(&cursor, q);
            assert_int_equal(ops->at[k], plan_cursor_number(&cursor));
            bool awaited = false;
            for (int w = 0; w < pair->program->waits.n && ops->n < 64; w++)
                awaited |= (pair->program->waits.at[w] & ~PLAN_PREVIOUS_STEP) == ops->at[k];
            assert_true(ops->n >= 64 || awaited == plan_cursor_awaited(&cursor));
        }
    }
}

/* How many ops are held, of how many. */
struct held {
    double ops, all;
};

static void assert_same_plan(const struct plan *flat, const struct plan *folded, struct held *held)
{
    assert_int_equal(flat->n_programs, folded->n_programs);
    assert_int_equal(plan_ops(flat), plan_ops(folded));
    for (int p = 0; p < flat->n_programs; p++) {
        struct arena arena = ARENA_INIT;
        struct pair pair = {flat, folded, &flat->programs[p], folded->programs[p].fold, NULL};
        assert_non_null(pair.fold);
        assert_int_equal(pair.fold->n_setup, pair.program->setup.n);
        pair.number_of = ARENA_ARRAY(&arena, int32_t, pair.program->buffers.n + 1);
        for (int32_t i = 0; i < pair.program->ops.n; i++)
            assert_same_op(&pair, i);
        assert_same_sums(&pair, &arena);
        assert_same_queues(&pair);
        for (int k = 0; k < pair.fold->n_patterns; k++)
            held->ops += pair.fold->patterns[k]->n_ops;
        held->all += pair.fold->n_ops;
        arena_release(&arena);
    }
}

static void assert_same_run(
    const struct plan *flat, const struct plan *folded, const struct hw *hw, bool noise)
{
    const struct plan *const plans[] = {flat, folded};
    struct arena arena = ARENA_INIT;
    struct exec_result results[2];
    struct exec_options options = exec_default_options();
    options.steps = 1;
    options.all_periods = true; /* only of cells that are held once some can be skipped */
    if (noise)
        options.noise = (struct noise_options){.gpu_speed_spread = 0.02,
            .gpu_speed_spread_below = 0.006,
            .kernel_jitter = 0.01,
            .network_jitter = 0.02,
            .host_jitter = 0.05};
    for (int i = 0; i < 2; i++)
        exec_run(&results[i], plans[i], hw, &options, &arena);
    assert_int_equal(results[0].status, results[1].status);
    assert_true(results[0].digest == results[1].digest && results[0].events == results[1].events);
    assert_true(results[0].step_time_s == results[1].step_time_s);
    assert_memory_equal(&results[0].breakdown, &results[1].breakdown, sizeof results[0].breakdown);
    assert_true(results[0].memory.peak_allocated_bytes == results[1].memory.peak_allocated_bytes &&
                results[0].memory.peak_reserved_bytes == results[1].memory.peak_reserved_bytes &&
                results[0].memory.alloc_stall_s == results[1].memory.alloc_stall_s &&
                results[0].memory.required_bytes == results[1].memory.required_bytes);
    arena_release(&arena);
}

/* Any strategy, model and options; a run of some of them. */
static void drawn_cases(void **state)
{
    (void)state;
    enum { RUN_EVERY = 10, MOST_RANKS = 8 };
    struct arena shared = ARENA_INIT;
    struct hw hw;
    struct held held = {0};
    int same = 0, cases = law_draws(3000);
    load_cluster(&hw, "a100-pcie-1x200g", &shared);
    for (int i = 0; i < cases; i++) {
        struct arena arena = ARENA_INIT;
        struct drawn drawn = draw(i);
        struct plan flat, folded = {0};
        if (compile_drawn(&flat, &drawn, &hw, &arena)) {
            struct model model;
            model_build(&model, drawn.shape, &arena);
            assert_true(compile_folded(&folded, &drawn.options, &model, &hw, drawn.gpus, &arena));
            assert_same_plan(&flat, &folded, &held);
            if (i % RUN_EVERY == 0)
                assert_same_run(&flat, &folded, &hw, flat.mesh.ranks <= MOST_RANKS);
            same++;
        }
        plan_release(&flat);
        plan_release(&folded);
        arena_release(&arena);
    }
    assert_true(same > cases / 2);
    arena_release(&shared);
}

static void check(
    const char *scenario, const struct scenario_override *overrides, int n, double most_held)
{
    struct arena arena = ARENA_INIT;
    struct diag *diag = xcalloc(1, sizeof *diag);
    struct scenario_set set = {0};
    struct held held = {0};
    struct plan flat, folded;
    if (scenario_load(&set, scenario, overrides, n, &arena, diag) != STATUS_OK)
        fail_msg("%s", diag->text);
    const struct scenario_point *point = &set.points[0];
    assert_int_equal(scenario_compile(&flat, point, &arena, diag), STATUS_OK);
    assert_true(compile_folded(&folded, &point->options.strategy, &point->model, &point->hw,
        (int)point->options.cluster.gpus, &arena));
    assert_same_plan(&flat, &folded, &held);
    assert_same_run(&flat, &folded, &point->hw, false);
    if (!(held.ops <= most_held * held.all))
        fail_msg("%g of %g ops are held", held.ops, held.all);
    plan_release(&flat);
    plan_release(&folded);
    arena_release(&arena);
    free(diag);
}

/* Pipelines of all schedules, experts, packed documents; and what is held of them, of all. */
static void schedules(void **state)
{
    (void)state;
    static const struct {
        const char *schedule, *chunks;
    } kinds[] = {{"1F1B", "1"}, {"GPipe", "1"}, {"ZBH1", "1"}, {"1F1B", "2"},
        {"ZBVZeroBubble", "2"}, {"DualPipeV", "2"}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const struct scenario_override set[] = {{"model", SCENARIOS "models/gpt2.yaml"},
            {"cluster.gpus", "16"}, {"parallelism.tensor", "2"}, {"parallelism.pipeline", "2"},
            {"parallelism.schedule", kinds[i].schedule}, {"parallelism.virtual", kinds[i].chunks},
            {"train.micro_batch", "1"}, {"train.global_batch", "128"}, {"train.seq_len", "1024"},
            {"run.steps", "1"}};
        check(SCENARIOS "gpt3_175b.yaml", OVERRIDES(set), 0.5);
    }
}

static void a_long_pipeline(void **state)
{
    (void)state;
    const struct scenario_override set[] = {{"cluster.gpus", "1536"}, {"train.micro_batch", "1"}};
    check(SCENARIOS "gpt3_175b.yaml", OVERRIDES(set), 0.15);
}

static void experts(void **state)
{
    (void)state;
    const struct scenario_override set[] = {
        {"cluster.gpus", "128"}, {"parallelism.expert_tensor", "2"}, {"train.global_batch", "256"}};
    check(SCENARIOS "mixtral_8x22b.yaml", OVERRIDES(set), 0.6);
}

static void packed_documents(void **state)
{
    (void)state;
    const struct scenario_override set[] = {{"cluster.gpus", "8"}, {"train.grad_accum", "8"}};
    check(SCENARIOS "packed_8b.yaml", OVERRIDES(set), 1);
}

/* Of a sum of 1.5, 1024 / 2^-42, 1 and 1 (2^-42 s) the part behind the first is rounded, and added
 * to it gives another sum. So the plan has all ops one by one, as the flat one. */
static void rounded_sums(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct diag *diag = xcalloc(1, sizeof *diag);
    struct scenario_set set = {0};
    struct plan flat, folded;
    const struct scenario_override overrides[] = {{"model", SCENARIOS "models/gpt2.yaml"},
        {"cluster.gpus", "16"}, {"parallelism.tensor", "2"}, {"parallelism.pipeline", "2"},
        {"train.micro_batch", "1"}, {"train.global_batch", "128"}, {"train.seq_len", "1024"},
        {"host.step", "3.410605131648481e-13 s"}, {"host.pass", "1024 s"},
        {"host.kernel_issue", "2.2737367544323206e-13 s"}};
    if (scenario_load(&set, SCENARIOS "gpt3_175b.yaml", OVERRIDES(overrides), &arena, diag) !=
        STATUS_OK)
        fail_msg("%s", diag->text);
    const struct scenario_point *point = &set.points[0];
    assert_int_equal(scenario_compile(&flat, point, &arena, diag), STATUS_OK);
    assert_true(compile_folded(&folded, &point->options.strategy, &point->model, &point->hw,
        (int)point->options.cluster.gpus, &arena));
    for (int p = 0; p < flat.n_programs; p++) {
        const struct plan_program *a = &flat.programs[p], *b = &folded.programs[p];
        assert_null(b->fold);
        assert_int_equal(a->ops.n, b->ops.n);
        for (int op = 0; op < a->ops.n; op++)
            assert_true(a->ops.at[op].kind == b->ops.at[op].kind &&
                        a->ops.at[op].host_s == b->ops.at[op].host_s);
    }
    assert_true(flat.tokens == folded.tokens && flat.samples == folded.samples);
    plan_release(&flat);
    plan_release(&folded);
    arena_release(&arena);
    free(diag);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(drawn_cases),
        cmocka_unit_test(schedules),
        cmocka_unit_test(a_long_pipeline),
        cmocka_unit_test(experts),
        cmocka_unit_test(packed_documents),
        cmocka_unit_test(rounded_sums),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
