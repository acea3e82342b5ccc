/* Layouts of 16 GPUs that tensor, context, expert and pipeline parallelism make of small models:
 * the plan obeys the laws of plans (programs meet, nothing waits for ever, what is allocated is
 * freed), the ranks' FLOP add up to the model's, and one rank of a program stands for all of it. */
#include "exec/exec.h"
#include "strategy/strategy.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "../check_and_compile.h"
#include "../shapes.h"
#include "hw/hw.h"

enum { GPUS = 16, LAYERS = 8, SAMPLES = 32, EVERY = 4, RUN_EVERY = 11 };

static void load_hw(struct hw *hw, struct arena *arena)
{
    struct diag diag = DIAG_INIT;
    if (hw_load(hw, FLOPCAST_SOURCE_DIR "/topologies/clusters/h100-8x400g.yaml", arena, &diag) !=
        STATUS_OK)
        fail_msg("%s", diag.text);
}

/* Of one and of two chunks a stage. */
enum { SCHEDULES = 3 };
static const int schedules[2][SCHEDULES] = {{SCHEDULE_1F1B, SCHEDULE_GPIPE, SCHEDULE_ZBH1},
    {SCHEDULE_1F1B, SCHEDULE_ZBV, SCHEDULE_DUALPIPEV}};

static struct strategy_options options_of(int kind, int number)
{
    static const int tensor[] = {1, 2, 4}, context[] = {1, 2}, expert[] = {1, 2, 4},
                     stages[] = {1, 2, 4};
    struct strategy_options options = strategy_default_options();
    options.kind = kind;
    options.train.seq_len = 64;
    options.train.micro_batch = 1;
    options.train.global_batch = SAMPLES;
    options.train.attention = ATTENTION_FLASH;
    struct parallelism_options *parallel = &options.parallelism;
    parallel->model.tensor = tensor[number % 3];
    parallel->model.sequence = parallel->model.tensor > 1;
    parallel->model.context = context[number / 3 % 2];
    parallel->model.context_kind = number / 3 % CONTEXT_PARALLEL_COUNT;
    parallel->model.expert = expert[number / 6 % 3];
    parallel->model.expert_tensor = number / 18 % 2;
    parallel->pipeline = stages[number / 36 % 3];
    parallel->virtual_stages = parallel->pipeline > 1 ? 1 + number / 108 % 2 : 1;
    parallel->schedule = parallel->pipeline > 1
                             ? schedules[parallel->virtual_stages - 1][number / 216 % SCHEDULES]
                             : 0;
    parallel->overlap_p2p_comm = number / 5 % 2;
    options.megatron.use_distributed_optimizer = number / 7 % 2;
    options.megatron.overlap_grad_reduce = number / 11 % 2;
    options.megatron.overlap_param_gather = options.megatron.overlap_grad_reduce && number / 13 % 2;
    options.train.activation_checkpointing = number / 17 % 3;
    if (kind == STRATEGY_FSDP) {
        parallel->model.expert = parallel->model.expert_tensor = 1;
        options.fsdp.version = 2;
        options.fsdp.sharding_strategy = number / 6 % 3 == 0 ? HYBRID_SHARD : FULL_SHARD;
        options.fsdp.sharding_group_size = 2;
        options.fsdp.reshard_after_forward = number / 7 % RESHARD_COUNT;
        options.fsdp.reduce_dtype = number / 18 % 2 ? REDUCE_FP32 : REDUCE_PARAM_DTYPE;
    }
    strategy_share_batch(&options, GPUS);
    return options;
}
enum { LAYOUTS = 3 * 2 * 3 * 2 * 3 * 2 * SCHEDULES };

/* FLOP of a step of the same samples on one GPU that does all. */
static double whole_flop(const struct model *model, const struct hw *hw, struct arena *arena)
{
    struct strategy_options options = options_of(STRATEGY_MEGATRON, 0);
    struct diag diag = DIAG_INIT;
    struct plan plan;
    options.kind = STRATEGY_SINGLE_DEVICE;
    strategy_share_batch(&options, 1);
    assert_int_equal(check_and_compile(&plan, &options, model, hw, 1, arena, &diag), STATUS_OK);
    double flop = plan_model_flop(&plan, ATTENTION_FLOP_FULL);
    plan_release(&plan);
    return flop;
}

static double step_s(const struct plan *plan, const struct hw *hw, int fold, struct arena *arena)
{
    struct exec_options exec = exec_default_options();
    struct exec_result result;
    exec.fold = fold;
    exec.steps = exec.warmup_steps = 1;
    exec_run(&result, plan, hw, &exec, arena);
    assert_int_equal(result.status, EXEC_OK);
    assert_int_equal(result.ranks_simulated, fold == FOLD_OFF ? GPUS : plan->n_programs);
    return result.step_time_s;
}

/* How many of every fourth layout there are. */
static int try_layouts(int kind, const struct model_shape *shape, int first, const struct hw *hw)
{
    struct arena arena = ARENA_INIT;
    struct model_shape deep = *shape;
    struct model model;
    int n = 0;
    deep.n_layers = LAYERS;
    model_build(&model, &deep, &arena);
    double whole = whole_flop(&model, hw, &arena);
    for (int i = first; i < LAYOUTS; i += EVERY) {
        struct arena scratch = ARENA_INIT;
        struct strategy_options options = options_of(kind, i);
        struct diag diag = DIAG_INIT;
        struct plan plan;
        char why[512] = "";
        if (check_and_compile(&plan, &options, &model, hw, GPUS, &scratch, &diag) == STATUS_OK) {
            if (!plan_check(&plan, why, sizeof why))
                fail_msg("%s, layout %d: %s", shape->name, i, why);
            double flop = GPUS * plan_model_flop(&plan, ATTENTION_FLOP_FULL);
            if (fabs(flop / whole - 1) > 1e-9)
                fail_msg(
                    "%s, layout %d: %.12g FLOP, the model has %.12g", shape->name, i, flop, whole);
            assert_true(plan.samples == SAMPLES &&
                        plan.tokens == (double)SAMPLES * (double)options.train.seq_len);
            if (n % RUN_EVERY == 0)
                assert_true(step_s(&plan, hw, FOLD_AUTO, &scratch) ==
                            step_s(&plan, hw, FOLD_OFF, &scratch));
            plan_release(&plan);
            n++;
        }
        arena_release(&scratch);
    }
    arena_release(&arena);
    return n;
}

static void layouts_obey_the_laws(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct hw hw;
    load_hw(&hw, &arena);
    const struct model_shape *const shapes[] = {
        &small_gpt, &small_llama, &small_moe, &small_deepseek};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        assert_true(try_layouts(STRATEGY_MEGATRON, shapes[i], (int)i, &hw) >= 20);
    arena_release(&arena);
}

/* fully_shard with stages: units of a stage, of its model chunks. */
static void stages_of_fully_shard_obey_the_laws(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct hw hw;
    load_hw(&hw, &arena);
    struct model_shape untied = small_gpt;
    untied.tied_embeddings = false;
    assert_true(try_layouts(STRATEGY_FSDP, &untied, 0, &hw) >= 20);
    assert_true(try_layouts(STRATEGY_FSDP, &small_llama, 1, &hw) >= 20);
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(layouts_obey_the_laws),
        cmocka_unit_test(stages_of_fully_shard_obey_the_laws)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
