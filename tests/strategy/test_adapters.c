/* LoRA and QLoRA in plans: what is multiplied, kept and sent. Numbers are those of small_llama: 3
 * blocks of matrices 64 x 64 (q, o), 32 x 64 (k, v) and 160 x 64 (gate, up, down), 43,008 elements
 * each; head and embedding of 64,000; adapters of rank r have r x (2 x 128 + 2 x 96 + 3 x 224) =
 * 1,120 r elements a block. */
#include "strategy/strategy.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "../near.h"
#include "compiled.h"

#include <string.h>

enum { BLOCKS = 3, BLOCK_ELEMENTS = 43008, HEAD = 64000, RANK = 8, ADAPTERS = 1120 * RANK };

static struct strategy_options adapting(int kind, bool qlora)
{
    struct strategy_options options = options_of(FULL_SHARD);
    options.kind = kind;
    options.train.lora_rank = RANK;
    options.train.qlora = qlora;
    return options;
}

/* 2 x 32 tokens. A frozen matrix is multiplied forward and for the gradient of its input: two
 * thirds of full training's three products; adapters take all three, as do scores and context (2 x
 * 4 heads, 32 x 32 pairs of 16). */
static void a_frozen_matrix_takes_two_products_of_three(void **state)
{
    (void)state;
    double linear = 2.0 * 64 * (BLOCKS * BLOCK_ELEMENTS + HEAD),
           attention = BLOCKS * 4.0 * 2 * 4 * 32 * 32 * 16;
    double adapters = 2.0 * 64 * BLOCKS * ADAPTERS;
    struct strategy_options options = adapting(STRATEGY_DDP, false);
    struct compiled compiled;
    compile(&compiled, &options, &small_llama, 1);
    assert_near(compiled.plan.programs[0].model_flop / (2 * linear + 3 * attention + 3 * adapters),
        1, 1e-12);
    assert_near(
        compiled.plan.programs[0].hardware_flop / compiled.plan.programs[0].model_flop, 1, 1e-12);
    drop(&compiled);
    options.train.lora_rank = 0;
    compile(&compiled, &options, &small_llama, 1);
    assert_near(compiled.plan.programs[0].model_flop / (3 * linear + 3 * attention), 1, 1e-12);
    drop(&compiled);
}

static double kept_by(const struct plan_program *program, enum hbm_category category)
{
    double bytes = 0;
    for (int i = 0; i < program->setup.n; i++) {
        const struct plan_buffer *buffer = &program->buffers.at[program->setup.at[i]];
        bytes += buffer->category == category ? (double)buffer->bytes : 0;
    }
    for (int i = 0; i < program->ops.n; i++) {
        const struct plan_op *op = &program->ops.at[i];
        if (op->kind == OP_KEEP && program->buffers.at[op->index].category == category)
            bytes += (double)program->buffers.at[op->index].bytes;
    }
    return bytes;
}

static double kept(const struct plan *plan, enum hbm_category category)
{
    return kept_by(&plan->programs[0], category);
}

struct traffic {
    double read, written;
};

/* Of the kernels whose names have this part. */
static struct traffic traffic_of(const struct plan *plan, const char *part)
{
    struct traffic sum = {0};
    for (int i = 0; i < plan->programs[0].ops.n; i++) {
        const struct plan_op *op = &plan->programs[0].ops.at[i];
        if (op->kind != OP_KERNEL || !strstr(op->name, part))
            continue;
        sum.read += plan->kernels.at[op->index].read_bytes;
        sum.written += plan->kernels.at[op->index].write_bytes;
    }
    return sum;
}

/* DDP: the base in 2 bytes (QLoRA: 4.127 bits, what is no matrix of a block 4 bytes); adapters 4,
 * their moments 8, their buckets 4, and nothing else is reduced. Autocast reads what lies in 4
 * bytes and writes 2. Bytes of a matrix in NF4 are whole: half a byte each of 21. */
static void ddp_keeps_and_sends_adapters(void **state)
{
    (void)state;
    for (int qlora = 0; qlora < 2; qlora++) {
        struct strategy_options options = adapting(STRATEGY_DDP, qlora);
        struct compiled compiled;
        compile(&compiled, &options, &small_llama, 8);
        double trained = BLOCKS * ADAPTERS, matrices = BLOCKS * BLOCK_ELEMENTS;
        double rest = (double)compiled.model.params - matrices;
        double base = qlora ? matrices * 4.127 / 8 + 4 * rest : 2 * (matrices + rest);
        assert_near(kept(&compiled.plan, HBM_PARAMETERS), base + 4 * trained, 21 * 0.5);
        assert_near(kept(&compiled.plan, HBM_OPTIMIZER), 8 * trained, 0);
        assert_near(kept(&compiled.plan, HBM_BUFFERS), 4 * trained, 0);
        assert_near(bytes_of(&compiled.plan, COLL_ALL_REDUCE), 4 * trained, 0);
        struct traffic cast = traffic_of(&compiled.plan, "/autocast");
        assert_near(cast.read, 4 * (trained + (qlora ? rest : 0)), 0);
        assert_near(cast.written, 2 * (trained + (qlora ? rest : 0)), 0);
        drop(&compiled);
    }
}

/* FSDP over 8: a block is gathered whole in 16 bits, forward and backward, the root once; of
 * gradients, the adapters' alone are scattered. All of it divides by 8. */
static void fsdp_gathers_the_base_and_scatters_adapters(void **state)
{
    (void)state;
    struct strategy_options options = adapting(STRATEGY_FSDP, false);
    struct compiled compiled;
    compile(&compiled, &options, &small_llama, 8);
    double root = (double)compiled.model.layers[0].params;
    double blocks = (double)compiled.model.params - root + BLOCKS * ADAPTERS;
    assert_near(bytes_of(&compiled.plan, COLL_ALL_GATHER), 2 * (2 * blocks + root), 0);
    assert_near(bytes_of(&compiled.plan, COLL_REDUCE_SCATTER), 2.0 * BLOCKS * ADAPTERS, 0);
    assert_int_equal(count(&compiled.plan, COLL_REDUCE_SCATTER), BLOCKS);
    drop(&compiled);
}

/* QLoRA widens each of the 21 matrices for each of its two products: 4.127 bits read, 2 bytes
 * written an element. */
static void matrices_are_widened_for_each_product(void **state)
{
    (void)state;
    struct strategy_options options = adapting(STRATEGY_DDP, true);
    struct compiled compiled;
    compile(&compiled, &options, &small_llama, 1);
    double read = 0, written = 0;
    int n = 0;
    for (int i = 0; i < compiled.plan.programs[0].ops.n; i++) {
        const struct plan_op *op = &compiled.plan.programs[0].ops.at[i];
        if (op->kind != OP_KERNEL || !strstr(op->name, "dequantize"))
            continue;
        read += compiled.plan.kernels.at[op->index].read_bytes;
        written += compiled.plan.kernels.at[op->index].write_bytes;
        n++;
    }
    assert_int_equal(n, 2 * 7 * BLOCKS);
    assert_near(read, 2.0 * BLOCKS * BLOCK_ELEMENTS * 4.127 / 8, 1e-6);
    assert_near(written, 2.0 * BLOCKS * BLOCK_ELEMENTS * 2, 1e-6);
    drop(&compiled);
}

/* T5's blocks, 3 of the encoder and 2 of the decoder with cross-attention, 64 tokens of either
 * stack: the frozen model is spared one product of three, but not attention. Matrices are 64 x 128
 * (4, decoder 8) and 64 x 96 (2), the head tied: 64 x 1,000; adapters of rank 8 have 8 x (rows +
 * columns). */
static void frozen_t5_is_spared_a_third(void **state)
{
    (void)state;
    const double tokens = 64, encoder = 4 * 64 * 128 + 2 * 64 * 96,
                 decoder = 8 * 64 * 128 + 2 * 64 * 96;
    const double linear = 2 * tokens * (3 * encoder + 2 * decoder + HEAD);
    const double adapters = 2 * tokens * RANK * (3 * (4 * 192 + 2 * 160) + 2 * (8 * 192 + 2 * 160));
    struct strategy_options options = adapting(STRATEGY_FSDP, false);
    struct compiled frozen, full;
    compile(&frozen, &options, &small_t5, 8);
    options.train.lora_rank = 0;
    compile(&full, &options, &small_t5, 8);
    assert_near((full.plan.programs[0].model_flop - linear + 3 * adapters) /
                    frozen.plan.programs[0].model_flop,
        1, 1e-12);
    drop(&frozen);
    drop(&full);
}

/* ZeRO over 8 in mixed precision: master weights and two moments of 4 bytes for the adapters'
 * elements that a rank owns; their gradients reduced, stages 1 and 2 gather them new; the base as
 * kernels see it, whole or (stage 3) sharded. */
static void zero_owns_adapters_alone(void **state)
{
    (void)state;
    for (int i = 0; i < 6; i++) {
        struct strategy_options options = adapting(STRATEGY_DEEPSPEED, i % 2);
        options.zero.stage = 1 + i / 2;
        options.zero.stage3_param_persistence_threshold = 0;
        options.zero.use_multi_rank_bucket_allreduce = false;
        struct compiled compiled;
        compile(&compiled, &options, &small_llama, 8);
        double trained = BLOCKS * ADAPTERS, matrices = BLOCKS * BLOCK_ELEMENTS;
        double rest = (double)compiled.model.params - matrices;
        double base = 2 * rest + matrices * (i % 2 ? 4.127 / 8 : 2.0);
        double ranks = options.zero.stage == 3 ? 8 : 1;
        assert_near(kept(&compiled.plan, HBM_PARAMETERS), (base + 2 * trained) / ranks, 21 * 0.5);
        assert_near(kept(&compiled.plan, HBM_OPTIMIZER), (4 + 8) * trained / 8, 0);
        assert_near(bytes_of(&compiled.plan, COLL_REDUCE_SCATTER), 2 * trained, 0);
        if (options.zero.stage < 3)
            assert_near(bytes_of(&compiled.plan, COLL_ALL_GATHER), 2 * trained, 0);
        drop(&compiled);
    }
}

/* Megatron-Core with fp8_param_gather: of what is frozen in blocks a byte an element; root, norms
 * (2 x 64 a block) and adapters in BF16. Backward transposes each frozen matrix. */
static void a_frozen_matrix_lies_in_fp8_once(void **state)
{
    (void)state;
    struct strategy_options options = adapting(STRATEGY_MEGATRON, false);
    options.train.precision = PRECISION_FP8_MIXED;
    options.train.fusion = FUSION_TRANSFORMER_ENGINE;
    options.train.attention = ATTENTION_FLASH;
    options.megatron.fp8_param_gather = true;
    struct compiled compiled;
    compile(&compiled, &options, &small_llama, 1);
    const double matrices = (double)BLOCKS * BLOCK_ELEMENTS,
                 rest = (double)compiled.model.params - matrices;
    assert_near(
        kept(&compiled.plan, HBM_PARAMETERS), matrices + 2 * (rest + (double)BLOCKS * ADAPTERS), 0);
    int transposed = 0;
    for (int i = 0; i < compiled.plan.programs[0].ops.n; i++)
        transposed +=
            strstr(compiled.plan.programs[0].ops.at[i].name, ".weight.transpose") != NULL &&
            compiled.plan.programs[0].ops.at[i].kind == OP_KERNEL;
    assert_int_equal(transposed, 7 * BLOCKS);
    drop(&compiled);
}

/* Three stages of a block keep together what one GPU keeps, what is frozen and what is trained; as
 * many FLOP are done, and as many messages go as in full training. FSDP keeps no gradients between
 * steps. */
static void check_stages(int kind)
{
    struct strategy_options options = adapting(kind, false);
    options.fsdp.version = 2;
    options.train.attention = ATTENTION_FLASH;
    options.train.grad_accum = BLOCKS;
    double sums[2][3] = {{0}}, flop[2] = {0};
    int messages[2] = {0};
    for (int i = 0; i < 3; i++) {
        struct compiled compiled;
        options.parallelism.pipeline = i > 0 ? BLOCKS : 1;
        options.train.lora_rank = i < 2 ? RANK : 0;
        compile(&compiled, &options, &small_llama, i > 0 ? BLOCKS : 1);
        for (int p = 0; p < compiled.plan.n_programs; p++) {
            const struct plan_program *program = &compiled.plan.programs[p];
            for (int k = 0; k < program->ops.n && i > 0; k++)
                messages[i - 1] += program->ops.at[k].kind == OP_SEND;
            for (int c = 0; c < 3 && i < 2; c++)
                sums[i][c] += kept_by(program,
                    (enum hbm_category[]){HBM_PARAMETERS, HBM_GRADIENTS, HBM_OPTIMIZER}[c]);
            if (i < 2)
                flop[i] += program->model_flop;
        }
        drop(&compiled);
    }
    for (int c = 0; c < 3; c++)
        assert_true(
            (sums[0][c] > 0 || (kind == STRATEGY_FSDP && c == 1)) && sums[0][c] == sums[1][c]);
    assert_near(flop[1] / flop[0], 1, 1e-12);
    assert_true(messages[0] > 0 && messages[0] == messages[1]);
}

static void stages_share_base_and_adapters(void **state)
{
    (void)state;
    check_stages(STRATEGY_MEGATRON);
    check_stages(STRATEGY_FSDP);
}

/* Over two tensor ranks as over two parts of the sequence. Tensor: of q, k, v, gate and up lora_B
 * is cut as the matrix is, of o and down lora_A; the others are whole, and their gradients are
 * summed over the ranks. A rank has RANK x (96 + 2 x 80 + 96 + 2 x 144 + 144) elements of a block's
 * adapters. Context: all, on each half. */
static void adapters_are_cut_as_their_matrices(void **state)
{
    (void)state;
    enum { CUT = 784 * RANK, WHOLE = 7 * 64 * RANK, SIZE = 2 };
    for (int context = 0; context < 2; context++) {
        struct strategy_options options = adapting(STRATEGY_MEGATRON, false);
        options.train.attention = ATTENTION_FLASH;
        options.parallelism.model = context
                                        ? (struct model_parallel){.tensor = 1, .context = SIZE}
                                        : (struct model_parallel){.tensor = SIZE, .sequence = true};
        struct compiled compiled;
        char why[256] = "";
        compile(&compiled, &options, &small_llama, SIZE);
        if (!plan_check(&compiled.plan, why, sizeof why))
            fail_msg("%s", why);
        double trained = BLOCKS * (double)(context ? ADAPTERS : CUT),
               grad_bytes = options.megatron.grad_reduce_in_fp32 ? 4 : 2;
        assert_near(kept(&compiled.plan, HBM_GRADIENTS), trained * grad_bytes, 0);
        double summed = 0;
        for (int i = 0; i < compiled.plan.programs[0].ops.n; i++) {
            const struct plan_op *op = &compiled.plan.programs[0].ops.at[i];
            if (op->kind == OP_COLLECTIVE && strcmp(op->name, "partial.grads/all_reduce") == 0)
                summed += compiled.plan.collectives.at[op->index].bytes;
        }
        assert_near(summed, context ? 0 : BLOCKS * (double)WHOLE * grad_bytes, 0);
        drop(&compiled);
    }
}

/* Whatever is combined, the plan obeys plan_check's laws, no gradient but those of adapters is
 * made, and adapters on fewer layers multiply less. */
static void every_combination_is_lawful(void **state)
{
    (void)state;
    static const int families[] = {MODEL_GPT, MODEL_LLAMA, MODEL_BERT, MODEL_T5};
    static const char *const few[] = {[MODEL_GPT] = "c_attn",
        [MODEL_LLAMA] = "q_proj,v_proj",
        [MODEL_BERT] = "query",
        [MODEL_T5] = "q,v"};
    enum {
        STRATEGIES = STRATEGY_INTERNEVO,
        KINDS = 4 * STRATEGIES * 2
    }; /* InternEvo refuses adapters */
    for (int i = 0; i < KINDS * 2 * CHECKPOINT_COUNT * SHARDING_COUNT; i++) {
        int family = families[i % 4];
        struct strategy_options options = adapting(i / 4 % STRATEGIES, i / 4 / STRATEGIES % 2);
        options.train.activation_checkpointing = i / KINDS % CHECKPOINT_COUNT;
        options.fsdp.sharding_strategy = i / KINDS / CHECKPOINT_COUNT % SHARDING_COUNT;
        options.zero.stage = 1 + options.fsdp.sharding_strategy % 3;
        options.train.grad_accum = 1 + i / KINDS / CHECKPOINT_COUNT / SHARDING_COUNT;
        double flop[2];
        for (int all = 0; all < 2; all++) {
            options.train.lora_targets = all ? NULL : few[family];
            struct compiled compiled;
            char why[256] = "";
            compile(&compiled, &options, small_shapes[family], 16);
            if (!plan_check(&compiled.plan, why, sizeof why))
                fail_msg("%s, %s: %s", small_shapes[family]->name, strategy_label(&options), why);
            for (int b = 0; b < compiled.plan.programs[0].buffers.n; b++) {
                const struct plan_buffer *buffer = &compiled.plan.programs[0].buffers.at[b];
                if (buffer->category == HBM_GRADIENTS && strstr(buffer->name, ".weight"))
                    assert_non_null(strstr(buffer->name, "lora_"));
            }
            flop[all] = compiled.plan.programs[0].model_flop;
            drop(&compiled);
        }
        assert_true(flop[0] < flop[1]);
    }
}

/* What a frozen ViT learned beside its linear layers (class token, positions, the convolution that
 * makes patches) has no gradient: nothing runs backward through the embeddings, and of the root
 * nothing is reduced. small_vit's adapters have RANK x (4 x 128 + 2 x 320) elements a block. */
static void frozen_embeddings_of_images_have_no_gradient(void **state)
{
    (void)state;
    for (int kind = STRATEGY_FSDP; kind <= STRATEGY_DEEPSPEED; kind++) {
        struct strategy_options options = adapting(kind, false);
        options.train.seq_len = model_sample_tokens(&small_vit);
        struct compiled compiled;
        char why[256] = "";
        compile(&compiled, &options, &small_vit, 8);
        if (!plan_check(&compiled.plan, why, sizeof why))
            fail_msg("%s: %s", strategy_kind_names[kind], why);
        double reduced = bytes_of(&compiled.plan, COLL_ALL_REDUCE) +
                         bytes_of(&compiled.plan, COLL_REDUCE_SCATTER);
        double norm =
            kind == STRATEGY_DEEPSPEED ? sizeof(double) : 0; /* of the gradients, before the step */
        assert_near(reduced - norm,
            (kind == STRATEGY_DDP ? 4.0 : 2.0) * BLOCKS * RANK * (4 * 128 + 2 * 320), 0);
        for (int i = 0; i < compiled.plan.programs[0].ops.n; i++) {
            const struct plan_op *op = &compiled.plan.programs[0].ops.at[i];
            bool backward = op->kind == OP_KERNEL && op->phase == PHASE_BACKWARD;
            assert_false(backward && strstr(op->name, "vit.embeddings"));
        }
        drop(&compiled);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_frozen_matrix_takes_two_products_of_three),
        cmocka_unit_test(ddp_keeps_and_sends_adapters),
        cmocka_unit_test(fsdp_gathers_the_base_and_scatters_adapters),
        cmocka_unit_test(matrices_are_widened_for_each_product),
        cmocka_unit_test(frozen_t5_is_spared_a_third),
        cmocka_unit_test(zero_owns_adapters_alone),
        cmocka_unit_test(a_frozen_matrix_lies_in_fp8_once),
        cmocka_unit_test(stages_share_base_and_adapters),
        cmocka_unit_test(adapters_are_cut_as_their_matrices),
        cmocka_unit_test(every_combination_is_lawful),
        cmocka_unit_test(frozen_embeddings_of_images_have_no_gradient),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
