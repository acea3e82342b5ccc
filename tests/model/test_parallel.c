/* Tensor and sequence parallelism: what the ranks say to each other, and that together they do the
 * model's work. */
#include "model/model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../near.h"
#include "exchanges.h"
#include "kernel_named.h"

enum { BF16_BYTES = 2, WIDTH = 64 };
/* The activation between two layers: of a whole micro-batch, bytes. */
static const double A = (double)BATCH * LENGTH * WIDTH * BF16_BYTES;

/* Attention and feed-forward layer: each enters and leaves once. Without sequence an all-reduce of
 * A forward and one backward; with it an all-gather and a reduce-scatter each way, and Megatron-LM
 * gathers both inputs again. */
static void a_block_moves_what_megatron_moves(void **state)
{
    (void)state;
    const struct model_shape *const shapes[] = {&small_gpt, &small_llama, &small_neox, &small_bert};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (int64_t ranks = 2; ranks <= 4; ranks *= 2)
            for (int overlap = TENSOR_BLOCKING; overlap <= TENSOR_ASYNC; overlap++) {
                struct run r = shard(
                    shapes[s], (struct model_parallel){.tensor = ranks, .tensor_overlap = overlap});
                const struct model_program *p = block(&r, 1);
                assert_int_equal(exchanges(p->forward, p->n_forward, COLL_ALL_REDUCE, A), 2);
                assert_int_equal(all_exchanges(p->forward, p->n_forward), 2);
                assert_int_equal(exchanges(p->backward, p->n_backward, COLL_ALL_REDUCE, A), 2);
                assert_int_equal(all_exchanges(p->backward, p->n_backward), 2);
                arena_release(&r.arena);

                r = shard(
                    shapes[s], (struct model_parallel){
                                   .tensor = ranks, .sequence = true, .tensor_overlap = overlap});
                p = block(&r, 1);
                int gathers = overlap == TENSOR_ASYNC ? 4 : 2;
                assert_int_equal(exchanges(p->forward, p->n_forward, COLL_ALL_GATHER, A), 2);
                assert_int_equal(exchanges(p->forward, p->n_forward, COLL_REDUCE_SCATTER, A), 2);
                assert_int_equal(all_exchanges(p->forward, p->n_forward), 4);
                assert_int_equal(
                    exchanges(p->backward, p->n_backward, COLL_ALL_GATHER, A), gathers);
                assert_int_equal(exchanges(p->backward, p->n_backward, COLL_REDUCE_SCATTER, A), 2);
                assert_int_equal(all_exchanges(p->backward, p->n_backward), gathers + 2);
                assert_int_equal(p->output_bytes, (int64_t)A / ranks);
                arena_release(&r.arena);
            }
}

/* An encoder block of T5 is as others; in a decoder block the encoder's output enters its
 * attention, too. */
static void cross_attention_takes_the_encoders_output_in(void **state)
{
    (void)state;
    struct run r = shard(&small_t5, (struct model_parallel){.tensor = 2, .sequence = true});
    const double decoder = (double)BATCH * DECODER_LENGTH * WIDTH * BF16_BYTES;
    const struct model_program *p = block(&r, 5); /* the second decoder block */
    assert_int_equal(exchanges(p->forward, p->n_forward, COLL_ALL_GATHER, decoder), 3);
    assert_int_equal(exchanges(p->forward, p->n_forward, COLL_ALL_GATHER, A), 1);
    assert_int_equal(exchanges(p->forward, p->n_forward, COLL_REDUCE_SCATTER, decoder), 3);
    assert_int_equal(exchanges(p->backward, p->n_backward, COLL_REDUCE_SCATTER, decoder), 3);
    assert_int_equal(exchanges(p->backward, p->n_backward, COLL_REDUCE_SCATTER, A), 1);
    assert_int_equal(exchanges(p->backward, p->n_backward, COLL_ALL_GATHER, decoder), 3);
    arena_release(&r.arena);
}

static void assert_order(const struct model_op *at, const char *const *names, int n)
{
    for (int i = 0; i < n; i++)
        assert_string_equal(at[i].name, names[i]);
}

/* LinearWithGradAccumulationAndAsyncCommunication.backward: gather the input, dgrad beside;
 * reduce-scatter the input's gradient, wgrad beside. Without sequence the same, except that the
 * input is there. */
static void collectives_run_beside_products(void **state)
{
    (void)state;
    struct run r = shard(&small_gpt,
        (struct model_parallel){.tensor = 2, .sequence = true, .tensor_overlap = TENSOR_ASYNC});
    const struct model_program *p = block(&r, 1);
    const struct model_op *at = kernel_named(p->backward, p->n_backward, "mlp.in.again/all_gather");
    static const char *const with[] = {"mlp.in.again/all_gather", "mlp.c_fc.dgrad", "wait",
        "mlp.in.dgrad/reduce_scatter", "mlp.c_fc.wgrad", "mlp.c_fc.bgrad", "wait"};
    assert_order(at, with, sizeof with / sizeof *with);
    /* The gathered input goes when forward has used it; the shard stays, and the second copy is
     * backward's. */
    for (int i = 0; i < p->n_activations; i++) {
        const struct model_activation *a = &p->activations[i];
        if (strcmp(a->name, "mlp.in") == 0)
            assert_true(a->bytes == (int64_t)A && a->backward_last < 0);
        if (strcmp(a->name, "ln_2") == 0)
            assert_true(
                a->bytes == (int64_t)A / 2 && a->backward_last >= (int)(at - p->backward) + 2);
        if (strcmp(a->name, "mlp.in.again") == 0)
            assert_true(a->bytes == (int64_t)A && a->backward_last == (int)(at - p->backward) + 4);
    }
    arena_release(&r.arena);

    r = shard(&small_gpt, (struct model_parallel){.tensor = 2, .tensor_overlap = TENSOR_ASYNC});
    p = block(&r, 1);
    at = kernel_named(p->backward, p->n_backward, "mlp.c_fc.dgrad");
    static const char *const without[] = {
        "mlp.c_fc.dgrad", "mlp.in.dgrad/all_reduce", "mlp.c_fc.wgrad", "mlp.c_fc.bgrad", "wait"};
    assert_order(at, without, sizeof without / sizeof *without);
    arena_release(&r.arena);

    /* Llama's q, k and v: the first product of backward is v's, the last one q's. */
    r = shard(&small_llama,
        (struct model_parallel){.tensor = 2, .sequence = true, .tensor_overlap = TENSOR_ASYNC});
    p = block(&r, 1);
    assert_string_equal(kernel_named(p->backward, p->n_backward, "self_attn.v_proj.dgrad")[-1].name,
        "self_attn.in.again/all_gather");
    assert_string_equal(kernel_named(p->backward, p->n_backward, "self_attn.q_proj.wgrad")[-1].name,
        "self_attn.in.dgrad/reduce_scatter");
    arena_release(&r.arena);
}

/* DTensor gathers and reduce-scatters dimension 1: of a block's four collectives each way each has
 * a copy of all of it, which reads and writes A. Async TP's pieces need none: what stays is before
 * the two sums of gradients of what q, k and v, and gate and up, have read. */
static void what_lies_batch_first_is_copied(void **state)
{
    (void)state;
    for (int overlap = TENSOR_BLOCKING; overlap <= TENSOR_MICRO_PIPELINE;
         overlap += TENSOR_MICRO_PIPELINE) {
        struct model_parallel parallel = {.tensor = 4, .sequence = true, .tensor_overlap = overlap};
        struct run plain = shard(&small_llama, parallel);
        parallel.gather_dim = 1;
        struct run r = shard(&small_llama, parallel);
        const struct model_program *p = block(&r, 1), *before = block(&plain, 1);
        bool copies = overlap == TENSOR_BLOCKING;
        for (int pass = 0; pass < 2; pass++) {
            const struct model_op *ops = pass ? p->backward : p->forward;
            int n = pass ? p->n_backward : p->n_forward, found = 0;
            for (int i = 0; i < n; i++) {
                size_t length = strlen(ops[i].name);
                if (length < 4 || strcmp(ops[i].name + length - 4, ".cat") != 0)
                    continue;
                found++;
                assert_true(ops[i].work.read_bytes == A && ops[i].work.write_bytes == A);
            }
            assert_int_equal(found, copies ? 4 : pass ? 2 : 0);
            assert_int_equal(
                all_exchanges(ops, n), pass ? all_exchanges(before->backward, before->n_backward)
                                            : all_exchanges(before->forward, before->n_forward));
        }
        arena_release(&r.arena);
        arena_release(&plain.arena);
    }
}

/* T tokens: the loss all-reduces 3 numbers of 4 bytes a token, fused one and then two. What Llama's
 * head reads and its words' rows are A; a learned position is added to the sum of an all-reduce,
 * and only then has each rank its rows. */
static void words_are_shared_out(void **state)
{
    (void)state;
    const double tokens = (double)BATCH * LENGTH;
    for (int loss = CROSS_ENTROPY_EAGER; loss <= CROSS_ENTROPY_FUSED; loss++) {
        struct model_workload w = workload(&small_llama, DTYPE_BF16, ATTENTION_NAIVE);
        w.parallel = (struct model_parallel){.tensor = 4, .sequence = true};
        w.cross_entropy = loss;
        struct run r = shard_of(&small_llama, w);
        const struct model_program *head = r.segments.at[r.segments.n - 1].program,
                                   *entry = r.segments.at[0].program;
        bool fused = loss == CROSS_ENTROPY_FUSED;
        assert_int_equal(
            exchanges(head->forward, head->n_forward, COLL_ALL_REDUCE, FLOAT_BYTES * tokens),
            fused ? 1 : 3);
        assert_int_equal(
            exchanges(head->forward, head->n_forward, COLL_ALL_REDUCE, 2 * FLOAT_BYTES * tokens),
            fused ? 1 : 0);
        assert_int_equal(exchanges(head->forward, head->n_forward, COLL_ALL_GATHER, A), 1);
        assert_int_equal(all_exchanges(head->backward, head->n_backward), 1);
        assert_int_equal(exchanges(head->backward, head->n_backward, COLL_REDUCE_SCATTER, A), 1);
        assert_int_equal(exchanges(entry->forward, entry->n_forward, COLL_REDUCE_SCATTER, A), 1);
        assert_int_equal(exchanges(entry->backward, entry->n_backward, COLL_ALL_GATHER, A), 1);
        /* 1000 words: 1024 over 4 ranks in multiples of 128; logits of tokens x 256, in FP32 for
         * the loss. */
        const struct kernel_work *logits =
            &kernel_named(head->forward, head->n_forward, "lm_head")->work;
        assert_true(logits->m == BATCH * LENGTH && logits->n == 256);
        for (int i = 0; i < head->n_activations; i++)
            if (strcmp(head->activations[i].name, "loss.float") == 0)
                assert_int_equal(head->activations[i].bytes, BATCH * LENGTH * 256 * FLOAT_BYTES);
        arena_release(&r.arena);
    }
    struct run r = shard(&small_gpt, (struct model_parallel){.tensor = 2, .sequence = true});
    const struct model_program *entry = r.segments.at[0].program;
    assert_int_equal(exchanges(entry->forward, entry->n_forward, COLL_ALL_REDUCE, A), 1);
    assert_int_equal(all_exchanges(entry->forward, entry->n_forward), 1);
    assert_int_equal(exchanges(entry->backward, entry->n_backward, COLL_ALL_GATHER, A), 1);
    assert_int_equal(all_exchanges(entry->backward, entry->n_backward), 1);
    arena_release(&r.arena);
}

/* Key heads that several ranks hold, padded words and layers that every rank does whole count once.
 */
static void ranks_do_the_models_flop_together(void **state)
{
    (void)state;
    struct model_shape falcon = small_neox;
    falcon.n_kv_heads = 1;
    falcon.biases = false;
    struct model_shape phi = small_llama;
    phi.fused_projections = true;
    const struct model_shape *const shapes[] = {
        &small_gpt, &small_llama, &small_neox, &small_t5, &small_bert, &small_vit, &falcon, &phi};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (int64_t ranks = 2; ranks <= 4; ranks *= 2)
            for (int sequence = 0; sequence <= (shapes[s] != &small_vit);
                 sequence++) { /* 17 patches */
                struct run whole = run(shapes[s], DTYPE_BF16, ATTENTION_NAIVE);
                struct run r = shard(
                    shapes[s], (struct model_parallel){.tensor = ranks, .sequence = sequence != 0});
                assert_near((double)ranks * model_step_flop(&r.segments),
                    model_step_flop(&whole.segments), 1e-12);
                assert_near((double)ranks * model_step_masked_flop(&r.segments),
                    model_step_masked_flop(&whole.segments), 1e-12);
                arena_release(&r.arena);
                arena_release(&whole.arena);
            }
}

/* Names of the parameters whose gradients are parts of sums, in the order of backward, one behind
 * the other. */
static const char *partial(const struct run *r, struct arena *arena)
{
    const char *names = "";
    for (int s = r->segments.n - 1; s >= 0; s--) {
        const struct model_segment *segment = &r->segments.at[s];
        for (int i = 0; i < segment->program->n_backward && segment->layer <= 1; i++) {
            const struct model_op *op = &segment->program->backward[i];
            if (op->partial)
                names = arena_printf(arena, "%s %s", names,
                    r->model.tensors[segment->tensor_base + op->param_grad].name);
        }
    }
    return names;
}

/* What Megatron-LM marks sequence_parallel; learned positions are added to all rows. A norm of each
 * head sees a rank's heads only, with sequence or without. */
static void some_gradients_are_parts_of_sums(void **state)
{
    (void)state;
    struct run r = shard(&small_gpt, (struct model_parallel){.tensor = 2, .sequence = true});
    assert_string_equal(partial(&r, &r.arena),
        " transformer.ln_f.weight transformer.ln_f.bias transformer.h.0.mlp.c_proj.bias "
        "transformer.h.0.ln_2.weight transformer.h.0.ln_2.bias transformer.h.0.attn.c_proj.bias "
        "transformer.h.0.ln_1.weight transformer.h.0.ln_1.bias");
    arena_release(&r.arena);
    r = shard(&small_gpt, (struct model_parallel){.tensor = 2});
    assert_string_equal(partial(&r, &r.arena), "");
    arena_release(&r.arena);
    struct model_shape qwen = small_llama;
    qwen.qk_norm = true;
    r = shard(&qwen, (struct model_parallel){.tensor = 2});
    assert_string_equal(partial(&r, &r.arena),
        " model.layers.0.self_attn.k_norm.weight model.layers.0.self_attn.q_norm.weight");
    arena_release(&r.arena);
    r = shard(&small_bert, (struct model_parallel){.tensor = 2, .sequence = true});
    assert_null(strstr(partial(&r, &r.arena), "pooler"));
    assert_non_null(strstr(partial(&r, &r.arena), "transform.dense.weight"));
    arena_release(&r.arena);
}

static double elements(const struct model *model, bool split)
{
    double sum = 0;
    for (int t = 0; t < model->n_tensors; t++)
        sum += (model->tensors[t].split == 1U << AXIS_TP) == split ? (double)model->tensors[t].numel
                                                                   : 0;
    return sum;
}

/* What is not cut, of GPT: in a block two norms of 2 d and two biases of d; the final norm, 32
 * positions. Of Llama: two norms of d, the final one. 1000 words are padded to 1024. Llama's 2 key
 * heads of 16 are there for 4 ranks twice. */
static void ranks_have_the_models_parameters_together(void **state)
{
    (void)state;
    const double d = WIDTH, layers = 3, padding = 24 * d;
    struct run whole = run(&small_gpt, DTYPE_BF16, ATTENTION_NAIVE);
    for (int64_t ranks = 2; ranks <= 4; ranks *= 2) {
        struct run r = shard(&small_gpt, (struct model_parallel){.tensor = ranks});
        double kept = layers * 6 * d + 2 * d + 32 * d;
        assert_near(elements(&r.model, false), kept, 0);
        assert_near((double)ranks * (double)r.model.params,
            (double)whole.model.params + (double)(ranks - 1) * kept + padding, 0);
        arena_release(&r.arena);
    }
    arena_release(&whole.arena);
    whole = run(&small_llama, DTYPE_BF16, ATTENTION_NAIVE);
    struct run r = shard(&small_llama, (struct model_parallel){.tensor = 4});
    double kept = layers * 2 * d + d, copies = layers * 2 * (4 - 2) * 16 * d;
    assert_near(elements(&r.model, false), kept, 0);
    assert_near(
        4 * elements(&r.model, true), (double)whole.model.params - kept + copies + 2 * padding, 0);
    arena_release(&r.arena);
    r = shard(&small_llama, (struct model_parallel){.tensor = 1});
    assert_int_equal(r.model.params, whole.model.params);
    assert_near(elements(&r.model, true), 0, 0);
    arena_release(&r.arena);
    arena_release(&whole.arena);
}

static double kept_by_a_block(const struct run *r)
{
    const struct model_program *p = block(r, 1);
    double kept = 0;
    for (int i = 0; i < p->n_activations; i++)
        if (!p->activations[i].born_in_backward && p->activations[i].backward_last >= 0)
            kept += (double)p->activations[i].bytes;
    return kept;
}

/* Korthikanti et al. (arXiv 2205.05198), for Megatron-LM's kernels (heads where they lie; scale,
 * mask and softmax in one): equation 2, s b h (10 + 24 / t + 5 n s / (h t)) bytes a block, and with
 * sequence equation 4, s b h (34 + 5 n s / h) / t. Differs: they leave out mean and deviation of
 * two norms, 4 bytes each a row. The first norm's input, which they count, is the block before's
 * output. Without overlap what the two norms give is kept whole: 4 s b h, not 4 / t. */
static void a_block_keeps_what_korthikanti_counts(void **state)
{
    (void)state;
    struct model_shape megatron = small_gpt;
    megatron.sequence_first = true;
    megatron.fused_softmax = true;
    megatron.n_heads = megatron.n_kv_heads = 8;
    megatron.d_kv = WIDTH / 8;
    const double s = LENGTH, b = BATCH, h = WIDTH, n = 8,
                 norms = 2.0 * 2 * FLOAT_BYTES * LENGTH * BATCH;
    for (int64_t ranks = 2; ranks <= 4; ranks *= 2)
        for (int overlap = TENSOR_BLOCKING; overlap <= TENSOR_ASYNC; overlap++) {
            double t = (double)ranks,
                   whole = overlap == TENSOR_BLOCKING ? 4 * s * b * h * (1 - 1 / t) : 0;
            struct run r = shard(
                &megatron, (struct model_parallel){.tensor = ranks, .tensor_overlap = overlap});
            assert_near(kept_by_a_block(&r) + A,
                s * b * h * (10 + 24 / t + 5 * n * s / (h * t)) + norms, 1e-9);
            arena_release(&r.arena);
            r = shard(&megatron, (struct model_parallel){
                                     .tensor = ranks, .sequence = true, .tensor_overlap = overlap});
            assert_near(kept_by_a_block(&r) + A / t,
                s * b * h * (34 + 5 * n * s / h) / t + norms / t + whole, 1e-9);
            arena_release(&r.arena);
        }
}

/* Selective checkpointing keeps reduce-scatters (torchtitan); what runs again ends when all is
 * there. */
static void recomputation_waits_for_what_it_gathers(void **state)
{
    (void)state;
    struct run r = shard(&small_bert, (struct model_parallel){.tensor = 2, .sequence = true});
    const struct model_program *p = block(&r, 1);
    for (int i = 0; i < p->n_forward; i++)
        if (p->forward[i].kind == MODEL_COMM)
            assert_int_equal(p->forward[i].kept, p->forward[i].comm.kind == COLL_REDUCE_SCATTER);
    for (int i = 0; i < p->n_rerun; i++)
        if (p->forward[i].kind == MODEL_COMM)
            assert_true(i + 1 < p->n_rerun && p->forward[i + 1].kind == MODEL_WAIT);
    arena_release(&r.arena);
}

/* In FP8 the transposes of the gathered input are kept, so it is not gathered again; the rest is as
 * in 16 bits. */
static void fp8_keeps_what_it_gathered(void **state)
{
    (void)state;
    struct model_workload w = workload(&small_gpt, DTYPE_BF16, ATTENTION_NAIVE);
    w.fp8 = true;
    w.parallel =
        (struct model_parallel){.tensor = 2, .sequence = true, .tensor_overlap = TENSOR_ASYNC};
    struct run r = shard_of(&small_gpt, w), whole = run(&small_gpt, DTYPE_BF16, ATTENTION_NAIVE);
    const struct model_program *p = block(&r, 1);
    assert_int_equal(exchanges(p->backward, p->n_backward, COLL_ALL_GATHER, A), 2);
    assert_int_equal(exchanges(p->backward, p->n_backward, COLL_REDUCE_SCATTER, A), 2);
    assert_string_equal(kernel_named(p->backward, p->n_backward, "mlp.c_fc.wgrad")[-1].name,
        "mlp.in.dgrad/reduce_scatter");
    assert_near(2 * model_step_flop(&r.segments), model_step_flop(&whole.segments), 1e-12);
    arena_release(&r.arena);
    arena_release(&whole.arena);
}

static unsigned split_of(const struct model *model, const char *name)
{
    for (int t = 0; t < model->n_tensors; t++)
        if (strcmp(model->tensors[t].name, name) == 0)
            return model->tensors[t].split;
    fail_msg("no tensor %s", name);
    return 0;
}

/* Beside a matrix that is cut by its outputs lora_A reads what all have, beside one by its inputs
 * lora_B writes it. */
static void adapters_are_cut_as_their_matrix(void **state)
{
    (void)state;
    struct run r = shard(&small_llama, (struct model_parallel){.tensor = 2});
    struct model adapted;
    model_adapt(&adapted, &r.model, 4, "q_proj,o_proj", &r.arena);
    const unsigned cut = 1U << AXIS_TP;
    assert_int_equal(split_of(&adapted, "model.layers.0.self_attn.q_proj.lora_A.weight"), 0);
    assert_int_equal(split_of(&adapted, "model.layers.0.self_attn.q_proj.lora_B.weight"), cut);
    assert_int_equal(split_of(&adapted, "model.layers.0.self_attn.o_proj.lora_A.weight"), cut);
    assert_int_equal(split_of(&adapted, "model.layers.0.self_attn.o_proj.lora_B.weight"), 0);
    struct model_workload w = workload(&small_llama, DTYPE_BF16, ATTENTION_NAIVE);
    w.parallel =
        (struct model_parallel){.tensor = 2, .sequence = true, .tensor_overlap = TENSOR_ASYNC};
    model_segments(&r.segments, &adapted, &w, &r.arena);
    const struct model_program *p = block(&r, 1);
    assert_int_equal(exchanges(p->backward, p->n_backward, COLL_REDUCE_SCATTER, A), 2);
    arena_release(&r.arena);
}

static void assert_wrong(
    const struct model_shape *shape, struct model_workload w, const char *sentence)
{
    struct arena arena = ARENA_INIT;
    const char *wrong = model_shard_wrong(shape, &w, &arena);
    if (sentence)
        assert_string_equal(wrong, sentence);
    else
        assert_null(wrong);
    arena_release(&arena);
}

static void what_cannot_be_cut_is_said(void **state)
{
    (void)state;
    struct model_workload w = workload(&small_gpt, DTYPE_BF16, ATTENTION_NAIVE);
    w.parallel.tensor = 3;
    assert_wrong(&small_gpt, w,
        "4 attention heads of gpt are not divisible by 3 ranks of tensor parallelism; 1, 2, 4 "
        "would do");
    struct model_shape shape = small_llama;
    shape.n_heads = 12;
    shape.n_kv_heads = 4;
    shape.d_ff = 150;
    w.parallel.tensor = 6;
    assert_wrong(&shape, w,
        "4 key heads of llama and 6 ranks of tensor parallelism: neither divides the other; 1, 2, "
        "4 would do");
    w.parallel.tensor = 4;
    assert_wrong(&shape, w,
        "150 columns of the feed-forward layer (d_ff) of llama are not divisible by 4 ranks of "
        "tensor parallelism; 1, 2, 3, 5, 6, 10, 15, 25, 30, 50, 75, 150 would do");
    w.parallel.sequence = true;
    w.seq_len = 25;
    assert_wrong(&small_gpt, w,
        "sequences of 25 tokens are not divisible by 4 (1 ranks of context parallelism, two chunks "
        "each, and 4 that share what lies between the linear layers); 28 would do");
    w.parallel.tensor = 1;
    assert_wrong(&small_gpt, w,
        "sequence parallelism is between the ranks of tensor parallelism, of which there is one");
    w = workload(&small_resnet, DTYPE_BF16, ATTENTION_NAIVE);
    assert_wrong(&small_resnet, w, NULL);
    w.parallel.tensor = 2;
    assert_wrong(
        &small_resnet, w, "family 'convnet' has no tensor or context parallelism; leave both out");
    assert_wrong(
        &small_dhen, w, "family 'dhen' has no tensor or context parallelism; leave both out");
}

/* A rank has a part of the words. Rows of others are zeros, in the sum and in its gradient: nothing
 * is read, and all but its share written. */
static void words_of_other_ranks_are_masked(void **state)
{
    (void)state;
    for (int ranks = 2; ranks <= 4; ranks *= 2) {
        struct run r = shard(&small_gpt, (struct model_parallel){.tensor = ranks});
        const struct model_program *p = r.segments.at[0].program;
        const struct model_op *mask =
                                  kernel_named(p->forward, p->n_forward, "transformer.wte.mask"),
                              *back = kernel_named(
                                  p->backward, p->n_backward, "transformer.wte.mask.dgrad");
        assert_true(mask->work.read_bytes == 0 && back->work.read_bytes == 0);
        assert_near(mask->work.write_bytes, A * (1 - 1. / ranks), 1e-9);
        assert_near(back->work.write_bytes, A * (1 - 1. / ranks), 1e-9);
        arena_release(&r.arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_of_other_ranks_are_masked),
        cmocka_unit_test(a_block_moves_what_megatron_moves),
        cmocka_unit_test(cross_attention_takes_the_encoders_output_in),
        cmocka_unit_test(collectives_run_beside_products),
        cmocka_unit_test(what_lies_batch_first_is_copied),
        cmocka_unit_test(words_are_shared_out),
        cmocka_unit_test(ranks_do_the_models_flop_together),
        cmocka_unit_test(some_gradients_are_parts_of_sums),
        cmocka_unit_test(ranks_have_the_models_parameters_together),
        cmocka_unit_test(a_block_keeps_what_korthikanti_counts),
        cmocka_unit_test(recomputation_waits_for_what_it_gathers),
        cmocka_unit_test(fp8_keeps_what_it_gathered),
        cmocka_unit_test(adapters_are_cut_as_their_matrix),
        cmocka_unit_test(what_cannot_be_cut_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
