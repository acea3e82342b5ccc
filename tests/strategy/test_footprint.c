#include "strategy/footprint.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "../near.h"
#include "../shapes.h"

#include <stdlib.h>

#define GB 1e9
#define BILLION INT64_C(1000000000)

static struct footprint_options training(int dtype, int optimizer, int strategy, int64_t gpus)
{
    return (struct footprint_options){.dtype = dtype, .optimizer = optimizer, .strategy = strategy, .gpus = gpus};
}

static double states(int64_t params, int dtype, int optimizer, int strategy, int64_t gpus)
{
    struct footprint_options options = training(dtype, optimizer, strategy, gpus);
    struct footprint f = footprint_of(params, NULL, &options, NULL);
    return f.weights + f.gradients + f.optimizer;
}

static struct model build(int family, struct arena *arena)
{
    struct model model;
    model_build(&model, small_shapes[family], arena);
    return model;
}

/* A parameter in FP32 is 4 bytes: 1B parameters are 4 GB of weights; 16 bits 2 GB, 8 bits 1 GB. */
static void weights_by_format(void **state)
{
    (void)state;
    static const struct {
        int dtype;
        double gb;
    } rows[] = {{FOOTPRINT_FP32, 4}, {FOOTPRINT_TF32, 4}, {FOOTPRINT_BF16_MASTER, 2}, {FOOTPRINT_BF16, 2},
        {FOOTPRINT_FP16, 2}, {FOOTPRINT_INT8, 1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct footprint_options options = training(rows[i].dtype, OPTIMIZER_ADAMW, FOOTPRINT_DDP, 1);
        assert_near(footprint_of(BILLION, NULL, &options, NULL).weights, rows[i].gb * GB, 1);
    }
}

/* Pure 16-bit training with Adam, 70B: weights 2 x 70, gradients 2 x 70, two moments 4 x 70 = 140 + 140 + 280 = 560 GB.
 */
static void seventy_billion_in_16_bit(void **state)
{
    (void)state;
    struct footprint_options options = training(FOOTPRINT_BF16, OPTIMIZER_ADAM, FOOTPRINT_DDP, 1);
    struct footprint f = footprint_of(70 * BILLION, NULL, &options, NULL);
    assert_near(f.weights, 140 * GB, 1);
    assert_near(f.gradients, 140 * GB, 1);
    assert_near(f.optimizer, 280 * GB, 1);
    assert_near(footprint_total(&f), 560 * GB, 1); /* pure 16 bit casts nothing, one GPU has no buckets */
}

/* arXiv 1910.02054, Figure 1: 7.5B parameters, mixed precision Adam (2 + 2 + 12 bytes), 64 GPUs: 120
 * GB, 31.4, 16.6, 1.9 GB. baseline 16 x 7.5 = 120;  stage 1: (4 + 12/64) x 7.5 = 31.41;  2: (2 + 14/64) x 7.5 = 16.64;
 * 3: 16/64 x 7.5 = 1.875 */
static void zero_paper_figure_1(void **state)
{
    (void)state;
    const int64_t params = 7500000000;
    const double expected[] = {31.40625, 16.640625, 1.875};
    assert_near(states(params, FOOTPRINT_BF16_MIXED, OPTIMIZER_ADAM, FOOTPRINT_DDP, 64), 120 * GB, 1);
    for (int stage = 0; stage < 3; stage++)
        assert_near(states(params, FOOTPRINT_BF16_MIXED, OPTIMIZER_ADAM, FOOTPRINT_ZERO1 + stage, 64),
            expected[stage] * GB, 64);
}

/* The paper's limits: 4 x less with stage 1, 8 x with 2, N x with 3. */
static void zero_limits(void **state)
{
    (void)state;
    const int64_t many = 1 << 20, params = 64 * BILLION;
    double whole = 16.0 * (double)params;
    assert_near(whole / states(params, FOOTPRINT_FP16_MIXED, OPTIMIZER_ADAM, FOOTPRINT_ZERO1, many), 4, 1e-3);
    assert_near(whole / states(params, FOOTPRINT_FP16_MIXED, OPTIMIZER_ADAM, FOOTPRINT_ZERO2, many), 8, 1e-3);
    assert_near(whole / states(params, FOOTPRINT_FP16_MIXED, OPTIMIZER_ADAM, FOOTPRINT_ZERO3, 64), 64, 1e-6);
}

/* Bytes of state a parameter, FP32 and 16 bit: AdamW 8 and 4, Lion 4 and 2 (one moment), momentum 4 and 2, LOMO and SGD
 * none. */
static void optimizer_states(void **state)
{
    (void)state;
    static const struct {
        int optimizer;
        double fp32, half;
    } rows[] = {{OPTIMIZER_ADAMW, 8, 4}, {OPTIMIZER_ADAM, 8, 4}, {OPTIMIZER_LION, 4, 2}, {OPTIMIZER_SGD_MOMENTUM, 4, 2},
        {OPTIMIZER_LOMO, 0, 0}, {OPTIMIZER_SGD, 0, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double p = (double)BILLION;
        assert_near(footprint_optimizer_state(BILLION, NULL, rows[i].optimizer, FOOTPRINT_FP32), rows[i].fp32 * p, 1);
        assert_near(footprint_optimizer_state(BILLION, NULL, rows[i].optimizer, FOOTPRINT_BF16), rows[i].half * p, 1);
    }
}

/* Two tensors, 100 x 50 and a vector of 300. 8-bit Adam: the matrix has 5,000 >= 4,096 elements: two moments of a byte
 * each and a scale of 4 bytes to each of ceil(5000 / 256) = 20 blocks: 2 (5000 + 80) = 10,160; the vector keeps FP32
 * moments: 2 x 4 x 300 = 2,400. Adafactor in FP32: 4 (100 + 50) = 600 for rows and columns, 4 x 300 = 1,200 for the
 * vector. */
static void optimizers_that_see_shapes(void **state)
{
    (void)state;
    struct model_tensor tensors[] = {
        {.name = "w", .rows = 100, .cols = 50, .numel = 5000}, {.name = "b", .rows = 300, .cols = 1, .numel = 300}};
    struct model_layer layer = {.name = "root", .n_tensors = 2, .params = 5300};
    struct model model = {.layers = &layer, .n_layers = 1, .tensors = tensors, .n_tensors = 2, .params = 5300};
    assert_near(footprint_optimizer_state(5300, &model, OPTIMIZER_ADAM_8BIT, FOOTPRINT_FP32), 12560, 1e-9);
    assert_near(footprint_optimizer_state(5300, &model, OPTIMIZER_ADAFACTOR, FOOTPRINT_FP32), 1800, 1e-9);

    /* LOMO holds one gradient at a time, the largest: 4 x 5,000 bytes. */
    struct footprint_options options = training(FOOTPRINT_FP32, OPTIMIZER_LOMO, FOOTPRINT_DDP, 1);
    assert_near(footprint_of(5300, &model, &options, NULL).gradients, 20000, 1e-9);

    /* Two ranks of FSDP cut flat shards, which have no rows and columns: 4 bytes for each of 2,650 elements. */
    options = training(FOOTPRINT_FP32, OPTIMIZER_ADAFACTOR, FOOTPRINT_FSDP, 2);
    assert_near(footprint_of(5300, &model, &options, NULL).optimizer, 4 * 2650, 1e-9);
}

/* Without a shape: 8-bit Adam 2 bytes and 2 x 4 / 256 for scales; Adafactor as one square matrix of sqrt(10^9) = 31,623
 * rows. */
static void optimizers_without_shapes(void **state)
{
    (void)state;
    assert_near(footprint_optimizer_state(BILLION, NULL, OPTIMIZER_ADAM_8BIT, FOOTPRINT_FP32), 2.03125 * GB, 1);
    assert_near(footprint_optimizer_state(BILLION, NULL, OPTIMIZER_ADAFACTOR, FOOTPRINT_FP32), 4.0 * 2 * 31623, 1e-9);
}

/* BF16 with an FP32 copy in the optimizer: 2 + 2 + 4 + 8 bytes, on one GPU too, and nothing is cast. */
static void bf16_with_a_master_copy(void **state)
{
    (void)state;
    assert_near(states(BILLION, FOOTPRINT_BF16_MASTER, OPTIMIZER_ADAMW, FOOTPRINT_DDP, 1), (2 + 2 + 4 + 8) * GB, 1);
    struct footprint_options options = training(FOOTPRINT_BF16_MASTER, OPTIMIZER_ADAMW, FOOTPRINT_DDP, 1);
    assert_near(footprint_of(BILLION, NULL, &options, NULL).copies, 0, 0);
}

/* DDP in mixed precision: 4 + 4 + 8 bytes of states, 2 of weights that autocast casts, 4 of buckets
 * (gradient_as_bucket_view off). */
static void ddp_keeps_copies_and_buckets(void **state)
{
    (void)state;
    struct footprint_options options = training(FOOTPRINT_BF16_MIXED, OPTIMIZER_ADAMW, FOOTPRINT_DDP, 8);
    struct footprint f = footprint_of(BILLION, NULL, &options, NULL);
    assert_near(f.weights + f.gradients + f.optimizer, 16 * GB, 1);
    assert_near(f.copies, 2 * GB, 1);
    assert_near(f.buffers, 4 * GB, 1);
}

/* FSDP over N ranks: every unit is padded to N, and two gathered units, a gradient and the root stand beside the
 * shards. */
static void fsdp_shards_units(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct model model = build(MODEL_GPT, &arena);
    const int64_t gpus = 7;
    double shard = 0, largest = 0;
    for (int i = 0; i < model.n_layers; i++) {
        shard += (double)((model.layers[i].params + gpus - 1) / gpus);
        if (i > 0)
            largest = fmax(largest, (double)model.layers[i].params);
    }
    struct footprint_options options = training(FOOTPRINT_BF16_MIXED, OPTIMIZER_ADAMW, FOOTPRINT_FSDP, gpus);
    struct footprint f = footprint_of(model.params, &model, &options, NULL);
    assert_near(f.weights, 4 * shard, 1e-9);
    assert_near(f.gradients, 4 * shard, 1e-9);
    assert_near(f.optimizer, 8 * shard, 1e-6);
    assert_near(f.copies, 2 * ((double)model.layers[0].params + 3 * largest), 1e-9);
    assert_true(f.buffers == 0);
    options.gpus = 1; /* alone, FSDP is plain training: nothing is gathered, only autocast's copies are left */
    f = footprint_of(model.params, &model, &options, NULL);
    assert_near(f.copies, 2 * (double)model.params, 1e-9);
    arena_release(&arena);
}

/* 2 x batch x layers x KV heads x head size x context x bytes: Llama-2 7B at 4,096 tokens in 16 bit, 2 x 32 x 32 x 128
 * x 4096 x 2 = 2 GiB a sequence; with 8 KV heads (Llama 3.1 8B) a quarter of it. T5 caches those of its
 * decoder only: 10 tokens for itself, 30 of the encoder. */
static void kv_cache(void **state)
{
    (void)state;
    struct model_shape shape = {.family = MODEL_LLAMA, .n_layers = 32, .n_heads = 32, .n_kv_heads = 32, .d_kv = 128};
    assert_true(footprint_kv_cache(&shape, 1, 4096, 0, 2) == 0x1p31);
    shape.n_kv_heads = 8;
    assert_true(footprint_kv_cache(&shape, 3, 4096, 4096, 2) == 3 * 0x1p29);
    struct model_shape t5 = {.family = MODEL_T5, .n_layers = 99, .n_decoder_layers = 5, .n_kv_heads = 2, .d_kv = 8};
    assert_true(footprint_kv_cache(&small_vit, 3, 4096, 4096, 2) == 0); /* nor do encoders */
    assert_true(footprint_kv_cache(&small_bert, 3, 4096, 4096, 2) == 0);
    assert_true(footprint_kv_cache(&t5, 1, 10, 30, 1) == 2.0 * 5 * 2 * 8 * (10 + 30));
}

/* Llama block, d = 64, d_ff = 160: q and o are 64 x 64, k and v 32 x 64, gate, up and down 160 x 64: rank r adds r (2 x
 * 128 + 2 x 96 + 3 x 224) = 1,120 r to each of 3 blocks. The frozen base: 4.127 bits for each of their 3 x (2 x 4,096 +
 * 2 x 2,048 + 3 x 10,240) = 129,024 elements, 2 bytes for each other one. */
static void adapters(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct model model = build(MODEL_LLAMA, &arena);
    assert_int_equal(footprint_lora_params(&model, 16, NULL), 3 * 16 * 1120);
    double rest = (double)model.params - 129024;
    assert_near(footprint_quantised_base(&model, BASE_NF4, 2), 129024 * 4.127 / 8 + 2 * rest, 1e-6);
    /* INT8: a byte an element, and 4 for each row: 64 (q, o) + 32 (k, v) + 160 (gate, up) twice, and down's 64. */
    assert_near(footprint_quantised_base(&model, BASE_INT8, 2), 129024 + 4 * 3 * (2 * 256 + 64) + 2 * rest, 1e-6);
    arena_release(&arena);
}

/* Adafactor keeps rows and columns of each adapter, in FP32: of q, 16 x 64 and 64 x 16, 4 (80 + 80) bytes; of v, 16 x
 * 64 and 32 x 16, 4 (80 + 48); in 3 blocks. Flat shards are vectors: 4 bytes for each of 3 x 16 x 224 / 8 elements. */
static void adapters_have_shapes(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct model model;
    model_build(&model, &small_llama, &arena);
    struct footprint_options options = training(FOOTPRINT_BF16_MIXED, OPTIMIZER_ADAFACTOR, FOOTPRINT_DDP, 8);
    options.lora_rank = 16;
    options.lora_targets = "q_proj,v_proj";
    options.base = BASE_HALF;
    assert_near(footprint_of(model.params, &model, &options, &arena).optimizer, 3 * (640 + 512), 1e-9);
    options.strategy = FOOTPRINT_FSDP;
    assert_near(footprint_of(model.params, &model, &options, &arena).optimizer, 4.0 * 3 * 16 * 224 / 8, 1e-9);
    arena_release(&arena);
}

/* Adapters on q and v alone: 3 blocks of 16 x (128 + 96). LoRA trains FP32 adapters (4 + 4 + 8 bytes) on a base in 16
 * bits; QLoRA, prepared, keeps what is not in 4 bits in FP32, which autocast casts to 16 for use.
 * What a frozen layer need not keep for its gradient is gone: less than in full training. */
static void adapters_train_little(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct model model = build(MODEL_LLAMA, &arena);
    assert_int_equal(footprint_lora_params(&model, 16, "q_proj,v_proj"), 3 * 16 * 224);
    assert_int_equal(footprint_lora_params(&model, 16, "proj"), 0);
    struct footprint_options options = training(FOOTPRINT_BF16_MIXED, OPTIMIZER_ADAMW, FOOTPRINT_DDP, 1);
    options.micro_batch = 4;
    options.seq_len = 32;
    double full = footprint_of(model.params, &model, &options, &arena).activations;
    options.lora_rank = 16;
    options.lora_targets = "q_proj,v_proj";
    struct footprint f = footprint_of(model.params, &model, &options, &arena);
    double trained = 3 * 16 * 224;
    assert_near(f.weights, 2 * (double)model.params + 4 * trained, 1e-6);
    assert_near(f.gradients, 4 * trained, 1e-6);
    assert_near(f.optimizer, 8 * trained, 1e-6);
    assert_near(f.copies, 2 * trained, 1e-6); /* autocast's, of the adapters */
    assert_near(f.buffers, 0, 1e-6);
    assert_true(f.activations < full);
    options.base = BASE_NF4;
    f = footprint_of(model.params, &model, &options, &arena);
    assert_near(f.weights, 129024 * 4.127 / 8 + 4 * ((double)model.params - 129024) + 4 * trained, 1e-6);
    assert_near(f.copies, 2 * ((double)model.params - 129024 + trained), 1e-6);

    /* Eight GPUs: DDP's buckets hold the adapters' gradients again; FSDP gathers the root and three blocks in NF4. */
    options.gpus = 8;
    f = footprint_of(model.params, &model, &options, &arena);
    assert_near(f.buffers, 4 * trained, 1e-6);
    options.strategy = FOOTPRINT_FSDP;
    f = footprint_of(model.params, &model, &options, &arena);
    double norms = 3 * 2 * 64;
    assert_near(f.copies, 2 * (double)model.layers[0].params + 129024 * 4.127 / 8 + 2 * norms + 2 * trained, 1e-6);
    assert_near(f.gradients, 4 * trained / 8, 0.01 * trained);
    assert_near(f.buffers, 0, 1e-6);
    arena_release(&arena);
}

/* Host memory takes what the GPU gives up: FSDP shards, gradients and moments (16 bytes), ZeRO-2 FP32 weights and
 * moments (12). */
static void offloading_moves_bytes(void **state)
{
    (void)state;
    struct footprint_options options = training(FOOTPRINT_BF16_MIXED, OPTIMIZER_ADAMW, FOOTPRINT_FSDP, 8);
    options.offload = true;
    struct footprint f = footprint_of(BILLION, NULL, &options, NULL);
    assert_near(f.host, 16 * 0.125 * GB, 64);
    assert_near(f.weights + f.gradients + f.optimizer, 0, 1e-9);
    options.strategy = FOOTPRINT_ZERO2;
    f = footprint_of(BILLION, NULL, &options, NULL);
    assert_near(f.host, 12 * 0.125 * GB, 64);
    assert_near(f.weights + f.gradients, (2 + 2 * 0.125) * GB, 64);
}

/* 4 sequences of 32 tokens of 64 elements in 16 bits, twice. */
static void neftune(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct model model = build(MODEL_LLAMA, &arena);
    struct footprint_options options = {.dtype = FOOTPRINT_BF16, .gpus = 1, .micro_batch = 4, .seq_len = 32};
    assert_near(footprint_neftune(&model, &options), 2 * 2 * 4 * 32 * 64, 1e-9);
    arena_release(&arena);
}

static double activations(const struct model *model, int64_t batch, int checkpointing, int dtype)
{
    struct arena arena = ARENA_INIT;
    struct footprint_options options = {.dtype = dtype,
        .gpus = 1,
        .micro_batch = batch,
        .seq_len = 32,
        .decoder_seq_len = model->shape.family == MODEL_T5 ? 32 : 0,
        .checkpointing = checkpointing};
    double bytes = footprint_activations(model, &options, &arena);
    arena_release(&arena);
    return bytes;
}

/* Laws: at least the blocks' outputs and the FP32 logits with their gradient are there at once; checkpointing saves; a
 * longer stack costs more without checkpointing by what a block keeps, with it by one output. */
static void activations_obey_laws(void **state)
{
    (void)state;
    static const int families[] = {MODEL_T5, MODEL_GPT, MODEL_LLAMA};
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        struct arena arena = ARENA_INIT;
        struct model model = build(families[i], &arena);
        double full = activations(&model, 4, CHECKPOINT_NONE, FOOTPRINT_FP32),
               saved = activations(&model, 4, CHECKPOINT_FULL, FOOTPRINT_FP32);
        double tokens = 4 * 32, outputs = tokens * 64 * 4 * (double)(model.n_layers - 1);
        assert_true(full > saved);
        assert_true(saved > outputs + tokens * 1000 * 4);
        assert_true(activations(&model, 4, CHECKPOINT_NONE, FOOTPRINT_BF16) < full);

        struct model_shape longer = model.shape;
        longer.n_layers++;
        struct model model2;
        model_build(&model2, &longer, &arena);
        double more_full = activations(&model2, 4, CHECKPOINT_NONE, FOOTPRINT_FP32) - full;
        double more_saved = activations(&model2, 4, CHECKPOINT_FULL, FOOTPRINT_FP32) - saved;
        assert_near(more_saved, tokens * 64 * 4, 1e-6);
        assert_true(more_full > 10 * more_saved);
        arena_release(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_by_format),
        cmocka_unit_test(seventy_billion_in_16_bit),
        cmocka_unit_test(zero_paper_figure_1),
        cmocka_unit_test(zero_limits),
        cmocka_unit_test(optimizer_states),
        cmocka_unit_test(optimizers_that_see_shapes),
        cmocka_unit_test(optimizers_without_shapes),
        cmocka_unit_test(bf16_with_a_master_copy),
        cmocka_unit_test(ddp_keeps_copies_and_buckets),
        cmocka_unit_test(fsdp_shards_units),
        cmocka_unit_test(kv_cache),
        cmocka_unit_test(adapters),
        cmocka_unit_test(adapters_have_shapes),
        cmocka_unit_test(adapters_train_little),
        cmocka_unit_test(offloading_moves_bytes),
        cmocka_unit_test(neftune),
        cmocka_unit_test(activations_obey_laws),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
