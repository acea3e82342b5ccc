/* Multi-token prediction in plans: the embedding's second copy, what runs again, what is refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../near.h"
#include "compiled.h"

enum { STAGES = 2, BLOCKS = 4, VOCAB = 1000, WIDTH = 64 };

static struct model_shape predicting(int64_t layers)
{
    struct model_shape shape = small_deepseek;
    shape.n_layers = BLOCKS;
    shape.mtp_layers = layers;
    return shape;
}

static struct strategy_options megatron(void)
{
    struct strategy_options options = options_of(NO_SHARD);
    options.kind = STRATEGY_MEGATRON;
    options.train.attention = ATTENTION_FLASH;
    options.train.grad_accum = 4;
    options.parallelism.pipeline = STAGES;
    return options;
}

static int kernels_ending(
    const struct plan_program *program, enum plan_phase phase, const char *end)
{
    int n = 0;
    for (int i = 0; i < program->ops.n; i++) {
        const struct plan_op *op = &program->ops.at[i];
        size_t a = strlen(op->name), b = strlen(end);
        n += op->kind == OP_KERNEL && op->phase == phase && a >= b &&
             strcmp(op->name + a - b, end) == 0;
    }
    return n;
}

static int reduces_embedding(const struct compiled *c, int program)
{
    const struct plan_program *at = &c->plan.programs[program];
    int n = 0;
    for (int i = 0; i < at->ops.n; i++) {
        if (strcmp(at->ops.at[i].name, "embedding.grad/all_reduce") != 0)
            continue;
        assert_near(c->plan.collectives.at[at->ops.at[i].index].bytes,
            (double)VOCAB * WIDTH * FLOAT_BYTES, 0);
        n++;
    }
    return n;
}

/* Both ends have the table, though it is not tied to the head; without such layers one has.
 * Interleaved, and with what runs again, plans stay sound. In a V both ends are of one stage. */
static void both_ends_reduce_the_embedding(void **state)
{
    (void)state;
    for (int64_t layers = 0; layers <= 2; layers++)
        for (int way = 0; way < 3; way++)
            for (int checkpointing = CHECKPOINT_NONE; checkpointing <= CHECKPOINT_FULL;
                 checkpointing++) {
                struct compiled c;
                char why[512] = "";
                const struct model_shape shape = predicting(layers);
                struct strategy_options options = megatron();
                options.train.activation_checkpointing = checkpointing;
                options.parallelism.virtual_stages = way > 0 ? 2 : 1;
                options.parallelism.schedule = way > 1 ? SCHEDULE_DUALPIPEV : SCHEDULE_1F1B;
                compile(&c, &options, &shape, 2 * STAGES);
                if (!plan_check(&c.plan, why, sizeof why))
                    fail_msg("%s", why);
                for (int s = 0; s < STAGES; s++)
                    assert_int_equal(reduces_embedding(&c, s), layers > 0 && way < 2);
                drop(&c);
            }
}

/* A layer runs again by itself; method block leaves it out. */
static void what_runs_again(void **state)
{
    (void)state;
    for (int method = RECOMPUTE_UNIFORM; method <= RECOMPUTE_BLOCK; method++) {
        struct compiled c;
        const struct model_shape shape = predicting(1);
        struct strategy_options options = megatron();
        options.train.activation_checkpointing = CHECKPOINT_FULL;
        options.train.recompute_method = method;
        options.train.recompute_num_layers = method == RECOMPUTE_BLOCK ? BLOCKS : 1;
        compile(&c, &options, &shape, 2 * STAGES);
        int micro_batches = (int)options.train.grad_accum;
        int again = method == RECOMPUTE_BLOCK ? 0 : micro_batches;
        assert_int_equal(
            kernels_ending(&c.plan.programs[STAGES - 1], PHASE_FORWARD, "eh_proj"), micro_batches);
        assert_int_equal(
            kernels_ending(&c.plan.programs[STAGES - 1], PHASE_RECOMPUTE, "eh_proj"), again);
        assert_int_equal(kernels_ending(&c.plan.programs[STAGES - 1], PHASE_FORWARD, "lm_head"),
            2 * micro_batches);
        assert_int_equal(kernels_ending(&c.plan.programs[0], PHASE_FORWARD, "eh_proj"), 0);
        drop(&c);
    }
}

/* Other strategies train it without a pipeline. */
static void every_strategy_trains_it(void **state)
{
    (void)state;
    const struct model_shape shape = predicting(2);
    for (int kind = 0; kind < STRATEGY_COUNT; kind++) {
        struct compiled c;
        char why[512] = "";
        struct strategy_options options = options_of(FULL_SHARD);
        options.kind = kind;
        options.train.attention = ATTENTION_FLASH;
        options.train.precision =
            kind == STRATEGY_INTERNEVO ? PRECISION_BF16_MASTER : options.train.precision;
        compile(&c, &options, &shape, kind == STRATEGY_SINGLE_DEVICE ? 1 : 8);
        if (!plan_check(&c.plan, why, sizeof why))
            fail_msg("%s: %s", strategy_kind_names[kind], why);
        assert_int_equal(kernels_ending(&c.plan.programs[0], PHASE_FORWARD, "eh_proj"), 2);
        drop(&c);
    }
}

static void what_is_refused(void **state)
{
    (void)state;
    const struct model_shape shape = predicting(1);
    struct strategy_options options = megatron();
    options.kind = STRATEGY_NANOTRON;
    refuse_model(
        &shape, test_hw(), &options, "is simulated in a pipeline of strategy: megatron only");
    options = megatron();
    options.train.activation_checkpointing = CHECKPOINT_FULL;
    options.train.recompute_num_layers = 2;
    refuse_model(&shape, test_hw(), &options, "run again each by itself");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_ends_reduce_the_embedding),
        cmocka_unit_test(what_runs_again),
        cmocka_unit_test(every_strategy_trains_it),
        cmocka_unit_test(what_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
