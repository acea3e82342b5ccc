/* The plan is the only model of memory; here closed forms, published or derived, hold it. */
#include "exec/peak.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "../near.h"
#include "../strategy/compiled.h"
#include "strategy/states.h"

enum { GPUS = 4, ROUND = 512 };

static double bytes_in(const struct plan_program *program, int32_t buffer, int category)
{
    const struct plan_buffer *at = &program->buffers.at[buffer];
    return at->category == category ? (double)at->bytes : 0;
}

/* What a plan keeps from step to step, by category. */
static double kept(const struct plan *plan, int category)
{
    const struct plan_program *program = &plan->programs[0];
    double bytes = 0;
    for (int i = 0; i < program->setup.n; i++)
        bytes += bytes_in(program, program->setup.at[i], category);
    for (int i = 0; i < program->ops.n; i++)
        if (program->ops.at[i].kind == OP_KEEP)
            bytes += bytes_in(program, program->ops.at[i].index, category);
    return bytes;
}

static struct exec_peak peak_of(const struct compiled *compiled)
{
    struct exec_peak peak;
    struct hw hw = test_hw();
    exec_peak(&peak, &compiled->plan, &hw);
    return peak;
}

static struct strategy_options of(int kind, int64_t stage, int precision, int optimizer)
{
    struct strategy_options options = zero_of(stage);
    options.kind = kind;
    options.train.precision = precision;
    options.train.optimizer = optimizer;
    options.train.optimizer_impl = OPTIMIZER_FUSED; /* has no temporaries */
    return options;
}

static bool can(const struct strategy_options *options)
{
    int precision = options->train.precision;
    if (precision == PRECISION_FP4_MIXED) /* Megatron's alone */
        return false;
    return options->kind != STRATEGY_DEEPSPEED ||
           (precision != PRECISION_BF16 && precision != PRECISION_BF16_MASTER);
}

/* Weights, gradients and optimizer state of a small model as the parameter count alone has them,
 * for every strategy, precision and optimizer of plain tensors. Shards are padded, at most GPUs - 1
 * elements a unit, blocks rounded up. */
static void states_are_those_of_the_parameter_count(void **state)
{
    (void)state;
    static const int kinds[][2] = {{STRATEGY_SINGLE_DEVICE, 0}, {STRATEGY_DDP, 0},
        {STRATEGY_DEEPSPEED, 1}, {STRATEGY_DEEPSPEED, 2}, {STRATEGY_DEEPSPEED, 3},
        {STRATEGY_FSDP, 0}};
    static const int optimizers[] = {
        OPTIMIZER_ADAMW, OPTIMIZER_SGD, OPTIMIZER_SGD_MOMENTUM, OPTIMIZER_LION};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (int precision = 0; precision < PRECISION_COUNT; precision++)
            for (size_t o = 0; o < sizeof optimizers / sizeof *optimizers; o++) {
                struct strategy_options options =
                    of(kinds[k][0], kinds[k][1], precision, optimizers[o]);
                int gpus = options.kind == STRATEGY_SINGLE_DEVICE ? 1 : GPUS;
                struct compiled c;
                if (!can(&options))
                    continue;
                compile(&c, &options, &small_llama, gpus);
                struct states expected = states_of(c.model.params, &options, gpus, false);
                double padding = 16.0 * GPUS * c.model.n_layers;
                assert_near(kept(&c.plan, HBM_PARAMETERS), expected.weights, padding);
                assert_near(kept(&c.plan, HBM_OPTIMIZER), expected.optimizer, padding);
                drop(&c);
            }
}

/* Gradients at their fullest: all of them in whole models, one rank's part in FSDP. (DeepSpeed
 * joins its part for the step, beside them.) */
static void gradients_are_those_of_the_parameter_count(void **state)
{
    (void)state;
    static const int kinds[] = {STRATEGY_SINGLE_DEVICE, STRATEGY_DDP, STRATEGY_FSDP};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        struct strategy_options options = of(kinds[k], 0, PRECISION_FP32, OPTIMIZER_ADAMW);
        int gpus = options.kind == STRATEGY_SINGLE_DEVICE ? 1 : GPUS;
        struct compiled c;
        compile(&c, &options, &small_llama, gpus);
        struct states expected = states_of(c.model.params, &options, gpus, false);
        assert_near(peak_of(&c).largest_category[HBM_GRADIENTS], expected.gradients,
            (double)ROUND * c.model.n_tensors);
        drop(&c);
    }
}

/* DDP's buckets are a second copy of the gradients; autocast keeps a copy in 16 bits of every
 * weight that backward will need. */
static void ddp_keeps_copies_and_buckets(void **state)
{
    (void)state;
    struct strategy_options options = of(STRATEGY_DDP, 0, PRECISION_BF16_MIXED, OPTIMIZER_ADAMW);
    struct compiled c;
    compile(&c, &options, &small_llama, GPUS);
    struct exec_peak peak = peak_of(&c);
    double params = (double)c.model.params;
    assert_near(peak.largest_category[HBM_BUFFERS], 4 * params, ROUND);
    assert_near(peak.largest_category[HBM_GATHERED], 2 * params, (double)ROUND * c.model.n_layers);
    drop(&c);
}

/* 8-bit Adam: two moments of a byte each and for each a scale of 4 bytes to 256 elements where a
 * tensor has 4,096 of them, FP32 moments where it has less. Adafactor: 4 (rows + columns) of a
 * matrix, 4 an element of a vector, and of a flat shard. */
static void optimizers_that_see_shapes(void **state)
{
    (void)state;
    struct strategy_options adam =
                                of(STRATEGY_SINGLE_DEVICE, 0, PRECISION_FP32, OPTIMIZER_ADAM_8BIT),
                            adafactor =
                                of(STRATEGY_SINGLE_DEVICE, 0, PRECISION_FP32, OPTIMIZER_ADAFACTOR);
    struct compiled eight, factored;
    compile(&eight, &adam, &small_llama, 1);
    compile(&factored, &adafactor, &small_llama, 1);
    int64_t bytes = 0, sums = 0;
    for (int i = 0; i < eight.model.n_tensors; i++) {
        const struct model_tensor *tensor = &eight.model.tensors[i];
        bytes += tensor->numel >= 4096 ? 2 * (tensor->numel + 4 * ((tensor->numel + 255) / 256))
                                       : 8 * tensor->numel;
        sums += 4 * (tensor->cols > 1 ? tensor->rows + tensor->cols : tensor->numel);
    }
    assert_true(kept(&eight.plan, HBM_OPTIMIZER) == (double)bytes);
    assert_true(kept(&factored.plan, HBM_OPTIMIZER) == (double)sums);
    drop(&eight);
    drop(&factored);
    adafactor.kind = STRATEGY_FSDP;
    compile(&factored, &adafactor, &small_llama, GPUS);
    assert_near(kept(&factored.plan, HBM_OPTIMIZER), (double)factored.model.params, 16.0 * GPUS);
    drop(&factored);
}

/* LOMO holds one gradient at a time, the largest: the embedding's 1,000 x 64, in FP32. */
static void lomo_holds_one_gradient(void **state)
{
    (void)state;
    struct strategy_options options = of(STRATEGY_SINGLE_DEVICE, 0, PRECISION_FP32, OPTIMIZER_LOMO);
    struct compiled c;
    compile(&c, &options, &small_llama, 1);
    assert_true(peak_of(&c).largest_category[HBM_GRADIENTS] == 4 * 1000 * 64);
    drop(&c);
}

/* Llama block, d = 64, d_ff = 160: q and o are 64 x 64, k and v 32 x 64, gate, up and down 160 x
 * 64: 3 x (2 x 4,096 + 2 x 2,048 + 3 x 10,240) = 129,024 elements in 3 blocks. Adapters of rank 16
 * on q and v: 3 blocks of 16 x (128 + 96), in FP32: 4 + 4 + 8 bytes. The base is in 16 bits, or
 * (QLoRA) in 4.127 and the rest in FP32; autocast casts adapters, and that rest. */
static void adapters_train_little(void **state)
{
    (void)state;
    const double blocks = 129024, trained = 3 * 16 * 224;
    for (int qlora = 0; qlora < 2; qlora++) {
        struct strategy_options options =
            of(STRATEGY_SINGLE_DEVICE, 0, PRECISION_BF16_MIXED, OPTIMIZER_ADAMW);
        options.train.lora_rank = 16;
        options.train.lora_targets = "q_proj,v_proj";
        options.train.qlora = qlora;
        struct compiled c;
        compile(&c, &options, &small_llama, 1);
        struct exec_peak peak = peak_of(&c);
        double rest = (double)c.model.params - blocks,
               rounding = (double)ROUND * (c.model.n_tensors + 12);
        double base = qlora ? blocks * 4.127 / 8 + 4 * rest : 2 * (blocks + rest);
        assert_near(kept(&c.plan, HBM_PARAMETERS), base + 4 * trained,
            c.model.n_tensors); /* bytes are whole */
        assert_near(kept(&c.plan, HBM_OPTIMIZER), 8 * trained, 1e-9);
        assert_near(peak.largest_category[HBM_GRADIENTS], 4 * trained, rounding);
        assert_near(
            peak.largest_category[HBM_GATHERED], 2 * (trained + (qlora ? rest : 0)), rounding);
        drop(&c);
    }
}

static double activations(int layers, int attention, int checkpointing)
{
    struct strategy_options options =
        of(STRATEGY_SINGLE_DEVICE, 0, PRECISION_FP16_MIXED, OPTIMIZER_SGD);
    struct model_shape shape = small_gpt;
    shape.n_layers = layers;
    options.train.micro_batch = 4; /* no tensor is rounded up */
    options.train.attention = attention;
    options.train.activation_checkpointing = checkpointing;
    struct compiled c;
    compile(&c, &options, &shape, 1);
    double bytes = peak_of(&c).largest_category[HBM_ACTIVATIONS];
    drop(&c);
    return bytes;
}

/* A layer more keeps s b h (34 + 5 a s / h) bytes in 16 bits (Korthikanti et al., arXiv 2205.05198,
 * equation 1), and mean and reciprocal deviation of two LayerNorms in FP32, 16 s b, which they
 * leave out. Flash attention keeps no scores (- 5 a s^2 b) but the logarithms of their sums in FP32
 * (+ 4 a s b); full checkpointing its input, 2 s b h. */
static void a_layer_keeps_what_korthikanti_counts(void **state)
{
    (void)state;
    const double s = 32, b = 4, h = 64, a = 4,
                 layer = s * b * h * (34 + 5 * a * s / h) + 16 * s * b;
    const struct {
        int attention, checkpointing;
        double bytes;
    } cases[] = {{ATTENTION_NAIVE, CHECKPOINT_NONE, layer},
        {ATTENTION_FLASH, CHECKPOINT_NONE, layer - 5 * a * s * s * b + 4 * a * s * b},
        {ATTENTION_NAIVE, CHECKPOINT_FULL, 2 * s * b * h}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double more = activations(7, cases[i].attention, cases[i].checkpointing) -
                      activations(6, cases[i].attention, cases[i].checkpointing);
        assert_near(more, cases[i].bytes, 1e-9);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(states_are_those_of_the_parameter_count),
        cmocka_unit_test(gradients_are_those_of_the_parameter_count),
        cmocka_unit_test(ddp_keeps_copies_and_buckets),
        cmocka_unit_test(optimizers_that_see_shapes),
        cmocka_unit_test(lomo_holds_one_gradient),
        cmocka_unit_test(adapters_train_little),
        cmocka_unit_test(a_layer_keeps_what_korthikanti_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
