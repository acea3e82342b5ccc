/* Activations of the first blocks in host memory: what is copied, where it is waited for, what
 * stays. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../near.h"
#include "compiled.h"

enum { BLOCKS = 6, MICRO_BATCHES = 2 };

static struct strategy_options offloading(int64_t blocks)
{
    struct strategy_options options = options_of(NO_SHARD);
    options.kind = STRATEGY_MEGATRON;
    options.train.precision = PRECISION_BF16_MIXED;
    options.train.attention = ATTENTION_FLASH;
    options.train.fusion = FUSION_TRANSFORMER_ENGINE;
    options.train.grad_accum = MICRO_BATCHES;
    options.train.cpu_offloading_num_layers = blocks;
    return options;
}

static void compile_blocks(struct compiled *out, int64_t blocks)
{
    struct strategy_options options = offloading(blocks);
    struct model_shape shape = small_llama;
    char why[512] = "";
    shape.n_layers = BLOCKS;
    compile(out, &options, &shape, 4);
    if (!plan_check(&out->plan, why, sizeof why))
        fail_msg("%s", why);
}

static double copied(const struct plan *plan, const char *direction, int *copies)
{
    double bytes = 0;
    const struct plan_program *program = &plan->programs[0];
    *copies = 0;
    for (int i = 0; i < program->ops.n; i++) {
        const struct plan_op *op = &program->ops.at[i];
        if (op->kind != OP_KERNEL || !strstr(op->name, direction))
            continue;
        ++*copies;
        bytes += plan->kernels.at[op->index].read_bytes;
    }
    return bytes;
}

/* A copy each way for a block and micro-batch; all blocks keep as much. */
static void what_leaves_comes_back(void **state)
{
    (void)state;
    double of_one = 0;
    for (int blocks = 1; blocks < BLOCKS; blocks++) {
        struct compiled c;
        int out, back;
        compile_blocks(&c, blocks);
        double away = copied(&c.plan, "device_to_host", &out),
               home = copied(&c.plan, "host_to_device", &back);
        assert_true(away == home && out == back && out == blocks * MICRO_BATCHES);
        of_one = blocks == 1 ? away : of_one;
        assert_near(away, blocks * of_one, 1);
        assert_near(c.plan.programs[0].host_bytes, away / MICRO_BATCHES, 1);
        drop(&c);
    }
}

/* In the last block's forward pass, of those away all are, and none of the others. */
static void memory_is_freed_before_forward_ends(void **state)
{
    (void)state;
    double bytes[3] = {0}, of_one = 0;
    static const int blocks[] = {0, 1, 3};
    for (int i = 0; i < 3; i++) {
        struct compiled c;
        int64_t now = 0;
        int copies;
        compile_blocks(&c, blocks[i]);
        const struct plan_program *program = &c.plan.programs[0];
        for (int o = 0; o < program->ops.n && program->ops.at[o].phase <= PHASE_FORWARD; o++) {
            const struct plan_op *op = &program->ops.at[o];
            if (op->kind == OP_ALLOC || op->kind == OP_FREE)
                now += (op->kind == OP_ALLOC ? 1 : -1) * program->buffers.at[op->index].bytes;
        }
        bytes[i] = (double)now;
        of_one =
            blocks[i] == 1 ? copied(&c.plan, "device_to_host", &copies) / MICRO_BATCHES : of_one;
        drop(&c);
    }
    assert_near(bytes[0] - bytes[1], of_one, 1);
    assert_near(bytes[0] - bytes[2], 3 * of_one, 1);
}

static void refused(void **state)
{
    (void)state;
    struct strategy_options options = offloading(2);
    options.train.activation_checkpointing = CHECKPOINT_FULL;
    refuse_model(&small_llama, test_hw(), &options, "in a pipeline or with recomputation");
    options = offloading(small_llama.n_layers);
    refuse_model(&small_llama, test_hw(), &options, "one at least stays on the GPU");
    options = offloading(1);
    options.kind = STRATEGY_DDP;
    refuse_model(
        &small_llama, test_hw(), &options, "offloaded by TransformerEngine in Megatron-LM");
    struct hw hw = test_hw();
    hw.node.host_memory = (struct quantity){0};
    options = offloading(1);
    refuse_model(&small_llama, hw, &options, "has no host_memory");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_leaves_comes_back),
        cmocka_unit_test(memory_is_freed_before_forward_ends),
        cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
