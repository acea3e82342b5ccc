/* What optimizers keep, what their steps move, and that LOMO never holds more than the gradients of
 * the moment. */
#include "strategy/optimizer.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "compiled.h"

/* A matrix of 100 x 50 = 5,000 elements of 4 bytes. AdamW and Adam: two moments, 40,000. Momentum,
 * Lion: one, 20,000. 8-bit Adam: two bytes an element and two FP32 scales to each of ceil(5,000 /
 * 256) = 20 blocks, 10,160. Adafactor: 4 x (100 + 50) = 600, with a first moment 20,600. SGD, LOMO:
 * nothing. */
static void a_matrix(void **state)
{
    (void)state;
    static const int64_t expected[OPTIMIZER_COUNT] = {[OPTIMIZER_ADAMW] = 40000,
        [OPTIMIZER_ADAM] = 40000,
        [OPTIMIZER_SGD_MOMENTUM] = 20000,
        [OPTIMIZER_LION] = 20000,
        [OPTIMIZER_MUON] = 40000, /* no matrix of a block */
        [OPTIMIZER_ADAM_8BIT] = 10160,
        [OPTIMIZER_ADAFACTOR] = 600,
        [OPTIMIZER_ADAFACTOR_MOMENTUM] = 20600};
    for (int o = 0; o < OPTIMIZER_COUNT; o++)
        assert_int_equal(
            optimizer_state_bytes(o, (struct optimizer_tensor){.rows = 100, .cols = 50}, 4),
            expected[o]);
}

/* A vector of 300: nothing to factor, 4 bytes each; 300 < 4,096: 8-bit Adam keeps 32 bits. In a
 * 16-bit format moments halve, but not what is FP32 or 8 bit by design. */
static void a_vector_and_16_bit(void **state)
{
    (void)state;
    assert_int_equal(optimizer_state_bytes(
                         OPTIMIZER_ADAFACTOR, (struct optimizer_tensor){.rows = 300, .cols = 1}, 4),
        1200);
    assert_int_equal(optimizer_state_bytes(
                         OPTIMIZER_ADAM_8BIT, (struct optimizer_tensor){.rows = 300, .cols = 1}, 4),
        2400);
    assert_int_equal(optimizer_state_bytes(
                         OPTIMIZER_ADAMW, (struct optimizer_tensor){.rows = 300, .cols = 1}, 2),
        1200);
    assert_int_equal(optimizer_state_bytes(
                         OPTIMIZER_ADAFACTOR, (struct optimizer_tensor){.rows = 300, .cols = 1}, 2),
        1200);
    assert_int_equal(optimizer_state_bytes(OPTIMIZER_ADAM_8BIT,
                         (struct optimizer_tensor){.rows = 100, .cols = 50}, 2),
        10160);
}

struct step {
    double bytes, flop;
    int kernels;
    double temporary_bytes,
        kept_bytes; /* buffers of the optimizer: allocated in every step, in the first */
    int temporaries, kept;
};

/* The optimizer kernels of small_gpt's plan on one GPU, and the most gradient bytes that live at
 * once. */
static struct step step_in(
    int precision, int optimizer, int impl, int kind, int gpus, double *gradients)
{
    struct strategy_options options = strategy_default_options();
    options.kind = kind;
    options.train.seq_len = 32;
    options.train.micro_batch = 1;
    options.train.precision = precision;
    options.train.optimizer = optimizer;
    options.train.optimizer_impl = impl;
    struct hw hw = {.gpu.name = "test", .node.gpus.value = 8};
    hw.gpu.gemm[DTYPE_FP32].peak = hw.gpu.gemm[DTYPE_BF16].peak =
        (struct quantity){.value = 1e12, .kind = QUANTITY_ASSUMED};
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    struct model model;
    struct plan plan;
    struct step step = {0};
    double now = 0;
    *gradients = 0;
    model_build(&model, &small_gpt, &arena);
    check_and_compile(&plan, &options, &model, &hw, gpus, &arena, &diag);
    assert_string_equal(diag.text, "");
    for (int i = 0; i < plan.programs[0].ops.n; i++) {
        const struct plan_op *op = &plan.programs[0].ops.at[i];
        if (op->kind == OP_KERNEL && plan.kernels.at[op->index].kind == KERNEL_OPTIMIZER) {
            const struct kernel_work *work = &plan.kernels.at[op->index];
            step.bytes += work->read_bytes + work->write_bytes;
            step.flop += work->flop;
            step.kernels++;
        }
        if (plan_op_is_memory(op) &&
            plan.programs[0].buffers.at[op->index].category == HBM_OPTIMIZER) {
            step.temporaries += op->kind == OP_ALLOC;
            step.temporary_bytes +=
                op->kind == OP_ALLOC ? (double)plan.programs[0].buffers.at[op->index].bytes : 0;
            step.kept += op->kind == OP_KEEP;
            step.kept_bytes +=
                op->kind == OP_KEEP ? (double)plan.programs[0].buffers.at[op->index].bytes : 0;
        }
        bool alloc = op->kind == OP_ALLOC, gradient = alloc || op->kind == OP_FREE;
        if (!gradient || plan.programs[0].buffers.at[op->index].category != HBM_GRADIENTS)
            continue;
        now += (alloc ? 1 : -1) * (double)plan.programs[0].buffers.at[op->index].bytes;
        *gradients = now > *gradients ? now : *gradients;
    }
    plan_release(&plan);
    arena_release(&arena);
    return step;
}

static struct step step_of(int optimizer, int impl, int kind, int gpus, double *gradients)
{
    return step_in(PRECISION_FP32, optimizer, impl, kind, gpus, gradients);
}

/* small_gpt: embeddings 1,000 x 64 and 32 x 64, final norm 2 x 64; a block has norms 4 x 64,
 * matrices 64 x 192 + 64 x 64 + 64 x 256 + 256 x 64 = 49,152 and biases 192 + 64 + 256 + 64 = 576.
 */
enum { BLOCK = 256 + 49152 + 576, PARAMS = 66048 + 128 + 3 * BLOCK, TENSORS = 4 + 3 * 12 };

/* AdamW, foreach: ten passes read 13 and write 9 elements (1, 1, 2, 1, 2, 1, 1, 1, 3 and 9 writes);
 * 40 tensors are two launches each. Fused: reads parameter, gradient and two moments, writes all
 * but the gradient. The formulae are the same, so is the flop: 1 + 1 + 2 + 1 + 3 + 1 + 1 + 1 + 3 =
 * 14. */
static void adamw_moves(void **state)
{
    (void)state;
    double gradients;
    struct step foreach = step_of(OPTIMIZER_ADAMW, OPTIMIZER_FOREACH, STRATEGY_DDP, 1, &gradients);
    assert_true(foreach.bytes == 4.0 * (13 + 9) * PARAMS);
    assert_int_equal(foreach.kernels, 9 * 2);
    /* One list of results as large as the parameters; two moments of each of them, made in the
     * first step. */
    assert_int_equal(foreach.temporaries, TENSORS);
    assert_true(foreach.temporary_bytes == 4.0 * PARAMS);
    assert_int_equal(foreach.kept, 2 * TENSORS);
    assert_true(foreach.kept_bytes == 8.0 * PARAMS);
    assert_true(gradients == 4.0 * PARAMS);
    struct step fused = step_of(OPTIMIZER_ADAMW, OPTIMIZER_FUSED, STRATEGY_DDP, 1, &gradients);
    assert_true(fused.bytes == 4.0 * 7 * PARAMS);
    assert_int_equal(fused.kernels, 2);
    assert_true(fused.flop == 14.0 * PARAMS && foreach.flop == fused.flop);
}

/* torch.optim.SGD with momentum: buf.mul_ (reads 1, writes 1 element), buf.add_(grad) (2, 1),
 * param.add_(buf) (2, 1); without momentum the last only; weight decay adds grad.add(param) (2, 1),
 * a new list. Fused: reads parameter, gradient and momentum, writes parameter and momentum.
 * Momentum is as large as the parameters and made in the first step. */
static void momentum_moves(void **state)
{
    (void)state;
    double gradients;
    struct step with =
        step_of(OPTIMIZER_SGD_MOMENTUM, OPTIMIZER_FOREACH, STRATEGY_DDP, 1, &gradients);
    assert_int_equal(with.kernels, 3 * 2);
    assert_true(with.bytes == 4.0 * (5 + 3) * PARAMS);
    assert_true(with.flop == 4.0 * PARAMS);
    assert_int_equal(with.kept, TENSORS);
    assert_true(with.kept_bytes == 4.0 * PARAMS);
    assert_int_equal(with.temporaries, 0);
    struct step fused =
        step_of(OPTIMIZER_SGD_MOMENTUM, OPTIMIZER_FUSED, STRATEGY_DDP, 1, &gradients);
    assert_int_equal(fused.kernels, 2);
    assert_true(fused.bytes == 4.0 * (3 + 2) * PARAMS);
    assert_true(fused.kept_bytes == 4.0 * PARAMS);
    struct step without = step_of(OPTIMIZER_SGD, OPTIMIZER_FOREACH, STRATEGY_DDP, 1, &gradients);
    assert_int_equal(without.kernels, 2);
    assert_true(without.bytes == 4.0 * (2 + 1) * PARAMS);
    assert_true(without.kept_bytes == 0);
    struct step loop =
        step_of(OPTIMIZER_SGD_MOMENTUM, OPTIMIZER_FOR_LOOP, STRATEGY_DDP, 1, &gradients);
    assert_int_equal(loop.kernels, 3 * TENSORS);
    assert_true(loop.bytes == with.bytes);
    assert_true(loop.kept_bytes == with.kept_bytes);
}

/* A launch takes 36 tensors, or 320 blocks of 65,536 elements. */
static void launches_end_when_they_are_full(void **state)
{
    (void)state;
    enum { FULL = 320 * 65536 };
    const struct optimizer_tensor small = optimizer_vector(100), full = optimizer_vector(FULL),
                                  more = optimizer_vector(FULL + 1),
                                  large = optimizer_vector(3 * FULL + 1);
    struct optimizer_tensor many[73];
    for (int i = 0; i < 73; i++)
        many[i] = small;
    assert_int_equal(optimizer_launches(&small, 1), 1);
    assert_int_equal(optimizer_launches(many, 36), 1);
    assert_int_equal(optimizer_launches(many, 37), 2);
    assert_int_equal(optimizer_launches(many, 73), 3);
    assert_int_equal(optimizer_launches(&full, 1), 1);
    assert_int_equal(optimizer_launches(&more, 1), 2);
    assert_int_equal(optimizer_launches(&large, 1), 4);
    many[0] = large; /* its last block shares the fourth launch with 35 others */
    assert_int_equal(optimizer_launches(many, 36), 4);
    assert_int_equal(optimizer_launches(many, 37), 5);
}

/* The loop moves what foreach does, in nine launches a tensor. */
static void adamw_in_a_loop(void **state)
{
    (void)state;
    double gradients;
    struct step loop = step_of(OPTIMIZER_ADAMW, OPTIMIZER_FOR_LOOP, STRATEGY_DDP, 1, &gradients);
    assert_int_equal(loop.kernels, 9 * TENSORS);
    assert_true(loop.bytes == 4.0 * (13 + 9) * PARAMS);
}

/* BF16 with FP32 copies: the step works on 4 bytes, and FP32 gradients stand beside the BF16 ones.
 */
static void fp32_copies_with_the_optimizer(void **state)
{
    (void)state;
    double gradients;
    struct step step = step_in(
        PRECISION_BF16_MASTER, OPTIMIZER_ADAMW, OPTIMIZER_FUSED, STRATEGY_DDP, 1, &gradients);
    assert_true(step.bytes == 4.0 * 7 * PARAMS);
    assert_true(gradients == (2.0 + 4.0) * PARAMS);
}

/* In its first step AdamW makes exp_avg and exp_avg_sq of each tensor, a block each; FP32 copies of
 * 16-bit parameters are a third. FSDP's tensors are the shards of four units. 8-bit Adam's and
 * Adafactor's state is one block of a tensor here; SGD has none. */
static void the_first_step_makes_a_block_a_moment(void **state)
{
    (void)state;
    double unused;
    static const struct {
        int precision, optimizer, kind, gpus, blocks;
        double bytes; /* a parameter, 0: not looked at */
    } cases[] = {{PRECISION_FP32, OPTIMIZER_ADAMW, STRATEGY_DDP, 1, 2 * TENSORS, 8},
        {PRECISION_BF16_MASTER, OPTIMIZER_ADAMW, STRATEGY_DDP, 1, 3 * TENSORS, 12},
        {PRECISION_BF16_MASTER, OPTIMIZER_SGD_MOMENTUM, STRATEGY_DDP, 1, 2 * TENSORS, 8},
        {PRECISION_FP32, OPTIMIZER_ADAM, STRATEGY_FSDP, 8, 2 * 4, 8.0 / 8},
        {PRECISION_FP32, OPTIMIZER_LION, STRATEGY_FSDP, 8, 4, 4.0 / 8},
        {PRECISION_FP32, OPTIMIZER_ADAM_8BIT, STRATEGY_DDP, 1, TENSORS, 0},
        {PRECISION_FP32, OPTIMIZER_ADAFACTOR, STRATEGY_DDP, 1, TENSORS, 0},
        {PRECISION_FP32, OPTIMIZER_SGD, STRATEGY_DDP, 1, 0, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct step step = step_in(cases[i].precision, cases[i].optimizer, OPTIMIZER_FOREACH,
            cases[i].kind, cases[i].gpus, &unused);
        assert_int_equal(step.kept, cases[i].blocks);
        if (cases[i].bytes > 0)
            assert_true(step.kept_bytes == cases[i].bytes * PARAMS);
    }
}

/* One launch a tensor: reads parameter and gradient, writes the parameter (12 bytes), reads and
 * writes the state. */
static void adam_8bit_moves(void **state)
{
    (void)state;
    double gradients;
    struct step step = step_of(OPTIMIZER_ADAM_8BIT, OPTIMIZER_FOREACH, STRATEGY_DDP, 1, &gradients);
    const int64_t large[] = {
        64000, 64 * 192, 64 * 64, 64 * 256, 256 * 64}; /* the first once, the others a block each */
    int64_t bytes = 2 * (64000 + 4 * 250), rest = PARAMS - 64000;
    for (int i = 1; i < 5; i++) {
        bytes += 3 * 2 * (large[i] + 4 * large[i] / 256);
        rest -= 3 * large[i];
    }
    bytes += 8 * rest;
    assert_int_equal(step.kernels, TENSORS);
    assert_true(step.bytes == 12.0 * PARAMS + 2.0 * (double)bytes);
}

/* Lion: eight passes a tensor, 11 reads and 8 writes. */
static void lion_moves(void **state)
{
    (void)state;
    double gradients;
    struct step step = step_of(OPTIMIZER_LION, OPTIMIZER_FOREACH, STRATEGY_DDP, 1, &gradients);
    assert_int_equal(step.kernels, 8 * TENSORS);
    assert_true(step.bytes == 4.0 * (11 + 8) * PARAMS);
}

/* Adafactor has 15 passes; a matrix goes without the three of vectors, a vector without the three
 * of matrices. A flat shard is a vector: four units, one each. */
static void adafactor_sees_shapes(void **state)
{
    (void)state;
    double gradients;
    struct step step = step_of(OPTIMIZER_ADAFACTOR, OPTIMIZER_FOREACH, STRATEGY_DDP, 1, &gradients);
    /* reads and writes: of a matrix 13 and 8, of a vector 15 and 10 */
    const double matrices = 66048 + 3 * 49152;
    assert_int_equal(step.kernels, 12 * TENSORS);
    assert_true(step.bytes == 4 * ((13 + 8) * matrices + (15 + 10) * (PARAMS - matrices)));
    struct step flat =
        step_of(OPTIMIZER_ADAFACTOR, OPTIMIZER_FOREACH, STRATEGY_FSDP, 8, &gradients);
    assert_int_equal(flat.kernels, 12 * 4);
    assert_true(flat.bytes == 4.0 * (15 + 10) * PARAMS / 8);
    /* a first moment: mul_ (1, 1) and add_ (2, 1) more, and 4 bytes a parameter more that are kept
     */
    struct step first =
        step_of(OPTIMIZER_ADAFACTOR_MOMENTUM, OPTIMIZER_FOREACH, STRATEGY_DDP, 1, &gradients);
    assert_int_equal(first.kernels, 14 * TENSORS);
    assert_true(first.bytes == step.bytes + 4.0 * (3 + 2) * PARAMS);
    assert_true(first.kept_bytes == step.kept_bytes + 4.0 * PARAMS);
}

/* LOMO: an update a tensor, 3 x 4 bytes a parameter, within backward. On one GPU the most gradients
 * at once are those of one parameter and, for the moment of its kernel, of a second; the tied
 * embedding's waits from the head to the lookup, where the positions' gradient lives beside it.
 * FSDP: a unit's shard. */
static void lomo_forgets(void **state)
{
    (void)state;
    double gradients;
    struct step step = step_of(OPTIMIZER_LOMO, OPTIMIZER_FOREACH, STRATEGY_DDP, 1, &gradients);
    assert_int_equal(step.kernels, TENSORS);
    assert_true(step.bytes == 12.0 * PARAMS);
    assert_true(gradients >= 4.0 * 64000 && gradients <= 4.0 * (64000 + 16384 + 256));
    step = step_of(OPTIMIZER_LOMO, OPTIMIZER_FOREACH, STRATEGY_FSDP, 8, &gradients);
    assert_true(step.bytes == 12.0 * PARAMS / 8);
    assert_true(gradients == 4.0 * (66048 + 128) / 8);
}

static void refuse(int kind, int64_t grad_accum, int64_t device_batch, const char *words)
{
    struct strategy_options options = strategy_default_options();
    options.kind = kind;
    options.train.seq_len = 32;
    options.train.micro_batch = 1;
    options.train.precision = PRECISION_FP32;
    options.train.optimizer = OPTIMIZER_LOMO;
    options.train.grad_accum = grad_accum;
    options.train.device_batch = device_batch;
    refuse_plan(test_hw(), &options, words);
}

static void autocast_where_it_cannot_be(void **state)
{
    (void)state;
    struct strategy_options options = strategy_default_options();
    options.train.seq_len = 32;
    options.train.micro_batch = 1;
    options.train.autocast = true;
    options.train.precision = PRECISION_FP32;
    refuse_plan(test_hw(), &options, "train.autocast is of bf16_mixed and fp16_mixed");
}

static void lomo_where_it_cannot_be(void **state)
{
    (void)state;
    refuse(STRATEGY_DEEPSPEED, 1, 0, "take strategy ddp or fsdp");
    refuse(STRATEGY_DDP, 2, 0, "take train.grad_accum: 1");
    refuse(STRATEGY_DDP, 1, 2, "no more in train.device_batch than in train.micro_batch");
    refuse(STRATEGY_DDP, 3, 2,
        "train.device_batch of 2 makes 2 micro-steps of up to 1 sequences, but train.grad_accum is "
        "3");
}

/* Bytes that kernels of this name move. */
static double moved_by(const struct plan *plan, const char *name)
{
    double bytes = 0;
    for (int i = 0; i < plan->programs[0].ops.n; i++)
        if (plan->programs[0].ops.at[i].kind == OP_KERNEL &&
            strcmp(plan->programs[0].ops.at[i].name, name) == 0) {
            const struct kernel_work *work = &plan->kernels.at[plan->programs[0].ops.at[i].index];
            bytes += work->read_bytes + work->write_bytes;
        }
    return bytes;
}

/* Every FP32 gradient is read for the norm, then read and written: of a rank, that is all of them
 * (DDP, alone), or an eighth (FULL_SHARD), whose norms are added up by one all_reduce of a number.
 * small_gpt's units divide by 8. The steps of DeepSpeed, InternEvo, Megatron and nanotron have
 * their own. */
static void clipping_by_the_norm(void **state)
{
    (void)state;
    for (int kind = 0; kind < STRATEGY_COUNT; kind++)
        for (int clips = 0; clips < 2; clips++) {
            struct strategy_options options = options_of(FULL_SHARD);
            struct compiled compiled;
            options.kind = kind;
            options.train.clip_grad_norm = clips;
            if (kind == STRATEGY_INTERNEVO)
                options.train.precision = PRECISION_BF16_MASTER;
            compile(&compiled, &options, &small_gpt, kind == STRATEGY_SINGLE_DEVICE ? 1 : 8);
            bool by_torch = kind != STRATEGY_DEEPSPEED && kind != STRATEGY_INTERNEVO &&
                            kind < STRATEGY_MEGATRON && clips;
            double owned = (double)compiled.model.params / (kind == STRATEGY_FSDP ? 8 : 1);
            assert_true(moved_by(&compiled.plan, "optimizer/clip_grad_norm_/norm") ==
                        (by_torch ? 4 * owned : 0));
            assert_true(moved_by(&compiled.plan, "optimizer/clip_grad_norm_/mul_") ==
                        (by_torch ? 8 * owned : 0));
            if (kind == STRATEGY_FSDP)
                assert_int_equal(count(&compiled.plan, COLL_ALL_REDUCE), clips);
            drop(&compiled);
        }
    struct strategy_options lomo = options_of(FULL_SHARD);
    lomo.train.optimizer = OPTIMIZER_LOMO;
    lomo.train.clip_grad_norm = true;
    refuse_plan(test_hw(), &lomo, "second backward pass");
}

/* weight_decay is SGD's alone: AdamW and Lion always decay, Adam never does. */
static void only_sgd_reads_weight_decay(void **state)
{
    (void)state;
    for (int optimizer = 0; optimizer < OPTIMIZER_LOMO; optimizer++) {
        uint64_t digests[2];
        for (int decays = 0; decays < 2; decays++) {
            struct strategy_options options = options_of(NO_SHARD);
            struct compiled compiled;
            options.train.optimizer = optimizer;
            options.train.weight_decay = decays;
            compile(&compiled, &options, &small_gpt, 1);
            digests[decays] = plan_digest(&compiled.plan);
            drop(&compiled);
        }
        bool reads = optimizer == OPTIMIZER_SGD || optimizer == OPTIMIZER_SGD_MOMENTUM;
        assert_int_equal(digests[0] != digests[1], reads);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_sgd_reads_weight_decay),
        cmocka_unit_test(a_matrix),
        cmocka_unit_test(a_vector_and_16_bit),
        cmocka_unit_test(adamw_moves),
        cmocka_unit_test(momentum_moves),
        cmocka_unit_test(launches_end_when_they_are_full),
        cmocka_unit_test(adamw_in_a_loop),
        cmocka_unit_test(fp32_copies_with_the_optimizer),
        cmocka_unit_test(the_first_step_makes_a_block_a_moment),
        cmocka_unit_test(adam_8bit_moves),
        cmocka_unit_test(lion_moves),
        cmocka_unit_test(adafactor_sees_shapes),
        cmocka_unit_test(clipping_by_the_norm),
        cmocka_unit_test(lomo_forgets),
        cmocka_unit_test(lomo_where_it_cannot_be),
        cmocka_unit_test(autocast_where_it_cannot_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
