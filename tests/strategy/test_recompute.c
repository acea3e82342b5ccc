/* Full recomputation by Megatron-LM's methods: which blocks run again, and what is kept meanwhile.
 */
#include "strategy/strategy.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "compiled.h"

enum { BLOCKS = 6 };

static struct strategy_options recomputing(int method, int64_t layers)
{
    struct strategy_options options = options_of(FULL_SHARD);
    options.kind = STRATEGY_MEGATRON;
    options.train.activation_checkpointing = CHECKPOINT_FULL;
    options.train.recompute_method = method;
    options.train.recompute_num_layers = layers;
    return options;
}

static struct model_shape six_blocks(void)
{
    struct model_shape shape = small_gpt;
    shape.n_layers = BLOCKS;
    return shape;
}

static int kernels_in(const struct plan *plan, const char *end, enum plan_phase phase)
{
    int n = 0;
    for (int p = 0; p < plan->n_programs; p++)
        for (int i = 0; i < plan->programs[p].ops.n; i++) {
            const struct plan_op *op = &plan->programs[p].ops.at[i];
            size_t a = strlen(op->name), b = strlen(end);
            n += op->kind == OP_KERNEL && op->phase == phase && a >= b &&
                 strcmp(op->name + a - b, end) == 0;
        }
    return n;
}

/* block: the first N blocks of each chunk run again. uniform: all of them, whatever the unit. */
static void blocks_that_run_again(void **state)
{
    (void)state;
    static const struct {
        int method;
        int64_t layers, stages;
        int again;
    } cases[] = {{RECOMPUTE_UNIFORM, 1, 1, 6}, {RECOMPUTE_UNIFORM, 2, 1, 6},
        {RECOMPUTE_UNIFORM, 4, 1, 6}, {RECOMPUTE_UNIFORM, 6, 1, 6}, {RECOMPUTE_UNIFORM, 9, 1, 6},
        {RECOMPUTE_BLOCK, 1, 1, 1}, {RECOMPUTE_BLOCK, 4, 1, 4}, {RECOMPUTE_BLOCK, 9, 1, 6},
        {RECOMPUTE_BLOCK, 1, 2, 2}, {RECOMPUTE_BLOCK, 2, 2, 4}, {RECOMPUTE_UNIFORM, 2, 2, 6}};
    const struct model_shape shape = six_blocks();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct strategy_options options = recomputing(cases[i].method, cases[i].layers);
        struct compiled compiled;
        options.parallelism.pipeline = cases[i].stages;
        options.train.grad_accum = 4;
        compile(&compiled, &options, &shape, 2);
        assert_int_equal(kernels_in(&compiled.plan, "/attn.c_attn", PHASE_FORWARD), 4 * BLOCKS);
        assert_int_equal(
            kernels_in(&compiled.plan, "/attn.c_attn", PHASE_RECOMPUTE), 4 * cases[i].again);
        drop(&compiled);
    }
}

/* Activations that live when the head's backward pass begins, in bytes. */
static double kept_activations(const struct plan *plan)
{
    const struct plan_program *program = &plan->programs[0];
    double live = 0;
    for (int i = 0; i < program->ops.n; i++) {
        const struct plan_op *op = &program->ops.at[i];
        if (op->phase == PHASE_BACKWARD)
            break;
        if (op->kind != OP_ALLOC && op->kind != OP_FREE)
            continue;
        const struct plan_buffer *buffer = &program->buffers.at[op->index];
        if (buffer->category == HBM_ACTIVATIONS)
            live += (op->kind == OP_ALLOC ? 1.0 : -1.0) * (double)buffer->bytes;
    }
    return live;
}

/* Six inputs, three, two, one of b s d elements of 2 bytes: each unit more is an input more. */
static void a_unit_keeps_its_input(void **state)
{
    (void)state;
    const struct model_shape shape = six_blocks();
    double bytes[BLOCKS + 1] = {0}, input = 2.0 * 2 * 32 * 64;
    for (int n = 1; n <= BLOCKS; n++) {
        struct strategy_options options = recomputing(RECOMPUTE_UNIFORM, n);
        struct compiled compiled;
        compile(&compiled, &options, &shape, 1);
        bytes[n] = kept_activations(&compiled.plan);
        drop(&compiled);
    }
    assert_true(bytes[1] - bytes[2] == 3 * input);
    assert_true(bytes[1] - bytes[3] == 4 * input);
    assert_true(bytes[1] - bytes[4] == 4 * input); /* units of four and of two */
    assert_true(bytes[1] - bytes[6] == 5 * input);
}

/* With block every block less that runs again keeps more. */
static void blocks_that_do_not_keep_all(void **state)
{
    (void)state;
    const struct model_shape shape = six_blocks();
    double before = 0, step = 0;
    for (int n = BLOCKS; n >= 1; n--) {
        struct strategy_options options = recomputing(RECOMPUTE_BLOCK, n);
        struct compiled compiled;
        compile(&compiled, &options, &shape, 1);
        double bytes = kept_activations(&compiled.plan);
        assert_true(n == BLOCKS || bytes > before);
        assert_true(n >= BLOCKS - 1 || bytes - before == step);
        step = bytes - before;
        before = bytes;
        drop(&compiled);
    }
}

static void what_units_cannot(void **state)
{
    (void)state;
    struct strategy_options options = recomputing(RECOMPUTE_UNIFORM, 2);
    options.kind = STRATEGY_FSDP;
    refuse_plan(test_hw(), &options, "parameters are gathered block by block");
    options = recomputing(RECOMPUTE_UNIFORM, 2);
    options.train.activation_checkpointing = CHECKPOINT_SELECTIVE;
    refuse_plan(test_hw(), &options, "keep their input alone");
    options = recomputing(RECOMPUTE_BLOCK, 2);
    options.train.checkpoint_interval = 2;
    refuse_plan(test_hw(), &options, "leave one of them out");
    options = recomputing(RECOMPUTE_UNIFORM, 2);
    options.kind = STRATEGY_DDP;
    options.train.decoder_seq_len = 32;
    refuse_model(&small_t5, test_hw(), &options, "no single stack");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_that_run_again),
        cmocka_unit_test(a_unit_keeps_its_input),
        cmocka_unit_test(blocks_that_do_not_keep_all),
        cmocka_unit_test(what_units_cannot),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
