#include "strategy/states.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "../near.h"

#define GB 1e9
#define BILLION INT64_C(1000000000)

static struct states states(int64_t params, int precision, int optimizer, int stage, int64_t gpus)
{
    struct strategy_options options = strategy_default_options();
    options.kind = stage > 0 ? STRATEGY_DEEPSPEED : STRATEGY_DDP;
    options.zero.stage = stage;
    options.train.precision = precision;
    options.train.optimizer = optimizer;
    return states_of(params, &options, gpus, false);
}

static double sum(struct states s)
{
    return s.weights + s.gradients + s.optimizer;
}

/* Pure 16-bit training with Adam, 70B: weights 2 x 70, gradients 2 x 70, two moments 4 x 70 = 140 +
 * 140 + 280 = 560 GB. FP32 doubles each. A byte for everything: 4 x 70. */
static void seventy_billion(void **state)
{
    (void)state;
    struct states half = states(70 * BILLION, PRECISION_BF16, OPTIMIZER_ADAM, 0, 1);
    assert_near(half.weights, 140 * GB, 1);
    assert_near(half.gradients, 140 * GB, 1);
    assert_near(half.optimizer, 280 * GB, 1);
    assert_near(sum(states(70 * BILLION, PRECISION_FP32, OPTIMIZER_ADAM, 0, 1)), 1120 * GB, 1);
    assert_near(sum(states(70 * BILLION, PRECISION_TF32, OPTIMIZER_ADAM, 0, 1)), 1120 * GB, 1);
    struct strategy_options options = strategy_default_options();
    assert_near(sum(states_of(70 * BILLION, &options, 1, true)), 280 * GB, 1);
}

/* arXiv 1910.02054, Figure 1: 7.5B parameters, mixed precision Adam (2 + 2 + 12 bytes), 64 GPUs:
 * 120 GB, 31.4, 16.6, 1.9 GB. Baseline 16 x 7.5 = 120; stage 1: (4 + 12/64) x 7.5 = 31.41; 2: (2 +
 * 14/64) x 7.5 = 16.64; 3: 16/64 x 7.5 = 1.875. */
static void zero_paper_figure_1(void **state)
{
    (void)state;
    const double expected[] = {120, 31.40625, 16.640625, 1.875};
    for (int stage = 0; stage <= 3; stage++)
        assert_near(sum(states(7500000000, PRECISION_BF16_MIXED, OPTIMIZER_ADAM, stage, 64)),
            expected[stage] * GB, 64);
}

/* The paper's limits: 4 x less with stage 1, 8 x with 2, N x with 3. */
static void zero_limits(void **state)
{
    (void)state;
    const int64_t many = 1 << 20, params = 64 * BILLION;
    double whole = 16.0 * (double)params;
    assert_near(
        whole / sum(states(params, PRECISION_FP16_MIXED, OPTIMIZER_ADAM, 1, many)), 4, 1e-3);
    assert_near(
        whole / sum(states(params, PRECISION_FP16_MIXED, OPTIMIZER_ADAM, 2, many)), 8, 1e-3);
    assert_near(whole / sum(states(params, PRECISION_FP16_MIXED, OPTIMIZER_ADAM, 3, 64)), 64, 1e-6);
}

/* Bytes of state a parameter, FP32 and 16 bit: AdamW 8 and 4, Lion 4 and 2 (one moment), momentum 4
 * and 2, LOMO and SGD none. BF16 with an FP32 copy: 4 of the copy and 8. As one tensor, 8-bit Adam
 * takes 2 bytes and 2 x 4 / 256 of scales, Adafactor is a square matrix of sqrt(10^9) = 31,623
 * rows. */
static void optimizer_states(void **state)
{
    (void)state;
    static const struct {
        int optimizer;
        double fp32, half;
    } rows[] = {{OPTIMIZER_ADAMW, 8, 4}, {OPTIMIZER_ADAM, 8, 4}, {OPTIMIZER_LION, 4, 2},
        {OPTIMIZER_MUON, 4, 2}, {OPTIMIZER_SGD_MOMENTUM, 4, 2}, {OPTIMIZER_LOMO, 0, 0},
        {OPTIMIZER_SGD, 0, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int optimizer = rows[i].optimizer;
        assert_near(
            states(BILLION, PRECISION_FP32, optimizer, 0, 1).optimizer, rows[i].fp32 * GB, 1);
        assert_near(
            states(BILLION, PRECISION_BF16, optimizer, 0, 1).optimizer, rows[i].half * GB, 1);
    }
    assert_near(
        states(BILLION, PRECISION_BF16_MASTER, OPTIMIZER_ADAMW, 0, 1).optimizer, 12 * GB, 1);
    assert_near(states_optimizer(BILLION, NULL, OPTIMIZER_ADAM_8BIT, 4), 2.03125 * GB, 1);
    assert_near(states_optimizer(BILLION, NULL, OPTIMIZER_ADAFACTOR, 4), 4.0 * 2 * 31623, 1e-9);
    assert_near(states(BILLION, PRECISION_FP32, OPTIMIZER_LOMO, 0, 1).gradients, 0, 0);
    /* flat shards have no rows and columns */
    assert_near(states(BILLION, PRECISION_FP32, OPTIMIZER_MUON, 3, 2).optimizer, 4 * 0.5 * GB, 1);
    assert_near(
        states(BILLION, PRECISION_FP32, OPTIMIZER_ADAFACTOR, 3, 2).optimizer, 4 * 0.5 * GB, 1);
}

/* Megatron-LM's --exp-avg-dtype and --exp-avg-sq-dtype bf16: 2 bytes less a parameter each; other
 * strategies have none. */
static void moments_in_bf16(void **state)
{
    (void)state;
    struct strategy_options options = strategy_default_options();
    options.kind = STRATEGY_MEGATRON;
    options.train.precision = PRECISION_BF16_MIXED;
    double both = states_of(BILLION, &options, 1, false).optimizer;
    options.megatron.exp_avg_dtype = MOMENT_BF16;
    assert_near(both - states_of(BILLION, &options, 1, false).optimizer, 2 * GB, 1);
    options.megatron.exp_avg_sq_dtype = MOMENT_BF16;
    assert_near(both - states_of(BILLION, &options, 1, false).optimizer, 4 * GB, 1);
    options.kind = STRATEGY_DDP;
    assert_near(states_of(BILLION, &options, 1, false).optimizer, both, 1);
}

/* Host memory takes what the GPU gives up: FSDP shards, gradients and moments (16 bytes), ZeRO-2
 * FP32 weights, gradients and moments (16). */
static void offloading_moves_bytes(void **state)
{
    (void)state;
    struct strategy_options options = strategy_default_options();
    options.fsdp.cpu_offload = options.zero.offload_optimizer = true;
    struct states s = states_of(BILLION, &options, 8, false);
    assert_near(s.host, 16 * 0.125 * GB, 64);
    assert_near(sum(s), 0, 1e-9);
    options.kind = STRATEGY_DEEPSPEED;
    options.zero.stage = 2;
    s = states_of(BILLION, &options, 8, false);
    assert_near(s.host, 16 * 0.125 * GB, 64);
    assert_near(sum(s), (2 + 2 * 0.125) * GB, 64);
}

/* DeepSpeed's stage 0: FP16_Optimizer keeps 16 bytes an element, BF16_Optimizer 2 + 4 and 12 over
 * the ranks. */
static void stage_0_is_one_of_two(void **state)
{
    (void)state;
    struct strategy_options options = strategy_default_options();
    options.kind = STRATEGY_DEEPSPEED;
    options.zero.stage = 0;
    options.train.precision = PRECISION_FP16_MIXED;
    assert_near(sum(states_of(BILLION, &options, 8, false)), 16 * GB, 64);
    options.train.precision = PRECISION_BF16_MIXED;
    assert_near(sum(states_of(BILLION, &options, 8, false)), (2 + 4 + 12 * 0.125) * GB, 64);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stage_0_is_one_of_two),
        cmocka_unit_test(seventy_billion),
        cmocka_unit_test(zero_paper_figure_1),
        cmocka_unit_test(zero_limits),
        cmocka_unit_test(optimizer_states),
        cmocka_unit_test(moments_in_bf16),
        cmocka_unit_test(offloading_moves_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
