/* Models of every family and variant, and ways to cut them, for laws of programs. Include after
 * cmocka.h. */
#ifndef FLOPCAST_TESTS_MODEL_VARIANTS_H
#define FLOPCAST_TESTS_MODEL_VARIANTS_H

#include "programs.h"

enum { VARIANTS = 53 };

/* Every shape with every variant that its family knows. */
static inline int variants(struct model_shape out[VARIANTS])
{
    int n = 0;
    out[n++] = small_gpt;
    out[n++] = small_t5;
    out[n++] = small_llama;
    out[n] = small_gpt; /* minGPT without biases, positions or tied head */
    out[n].composed_gelu = true, out[n].biases = out[n].tied_embeddings = false,
    out[n++].max_positions = 0;
    out[n] = small_t5; /* T5 v1.1 */
    out[n].gated_ffn = out[n].composed_gelu = true, out[n++].tied_embeddings = false;
    out[n] = small_t5;
    out[n].gated_ffn = true, out[n++].dropout = 0;
    out[n] = small_llama; /* Qwen2 0.5B, without groups */
    out[n].biases = out[n].tied_embeddings = true, out[n++].n_kv_heads = 4;
    out[n] = small_llama;
    out[n++].dropout = 0.1;
    out[n++] = small_bert;
    out[n] = small_bert; /* masked positions only */
    out[n++].head_share = 0.25;
    out[n] = small_bert;
    out[n++].head = BERT_MASKED_LM;
    out[n] = small_bert;
    out[n].head = BERT_CLASSIFICATION, out[n++].classes = 3;
    out[n] = small_bert;
    out[n++].head = BERT_NO_HEAD;
    out[n] = small_llama; /* Qwen2 with a window in all blocks but the first */
    out[n].sliding_window = 7, out[n++].max_window_layers = 1;
    out[n] = small_llama; /* Qwen3 */
    out[n++].qk_norm = true;
    out[n] = small_llama; /* Phi-3 */
    out[n++].fused_projections = true;
    out[n] = small_llama; /* Gemma 2, with Gemma 3's norms */
    out[n].post_norms = out[n].qk_norm = out[n].gelu_gate = out[n].scaled_embedding =
        out[n].tied_embeddings = true;
    out[n].attention_softcap = out[n].logit_softcap = 30, out[n].sliding_window = 7,
    out[n++].full_attention_every = 2;
    out[n++] = small_moe;
    out[n] = small_moe; /* Mixtral */
    out[n].moe.shared_gate = false, out[n].moe.shared_d_ff = out[n].moe.dense_layers = 0,
    out[n++].moe.normalised = true;
    out[n++] = small_deepseek;
    out[n] = small_deepseek; /* V3.2 */
    out[n].mla.index_heads = 2, out[n].mla.index_head_dim = 6, out[n++].mla.index_topk = 5;
    out[n] = small_moe; /* gpt-oss */
    out[n].moe.shared_gate = false, out[n].moe.shared_d_ff = 0,
    out[n].moe.biases = out[n].biases = true;
    out[n].output_bias = out[n].attention_sinks = true, out[n].sliding_window = 7,
    out[n++].full_attention_every = 2;
    out[n] = small_moe; /* Llama 4 */
    out[n].moe.shared_gate = false, out[n].moe.router = ROUTER_PLAIN_SIGMOID,
    out[n].qk_plain_norm = true;
    out[n].full_unrotated = true, out[n].attention_chunk = 4, out[n++].full_attention_every = 2;
    out[n] = small_moe; /* Qwen3-Next */
    out[n].qk_norm = out[n].attention_gate = true, out[n].rotary_share = 0.5;
    out[n++].mixer = (struct model_mixer){MIXER_DELTANET, 4, 6, 2, 8, 4, 0, 2, 0, false};
    out[n] = small_llama; /* Qwen3.5 */
    out[n].qk_norm = out[n].attention_gate = true, out[n].rotary_share = 0.5;
    out[n++].mixer = (struct model_mixer){MIXER_DELTANET, 4, 6, 2, 8, 4, 0, 2, 0, true};
    out[n] = small_moe; /* MiniMax-M2 */
    out[n].qk_norm_whole = true, out[n].moe.shared_gate = false, out[n].moe.shared_d_ff = 0,
    out[n++].rotary_share = 0.5;
    out[n] = small_moe; /* MiMo-V2 */
    out[n].moe.shared_gate = false, out[n].attention_pattern = "fwf", out[n].sliding_window = 7,
    out[n].value_dim = 8;
    out[n].attention_sinks = true,
    out[n++].full = (struct model_full){.n_kv_heads = 4, .no_sinks = true};
    out[n] = small_moe; /* Gemma 4 */
    out[n].post_norms = out[n].qk_norm = out[n].value_norm = out[n].gelu_gate =
        out[n].scaled_embedding = true;
    out[n].moe.shared_gate = false, out[n].moe.shared_d_ff = out[n].moe.dense_layers = 0,
    out[n].moe.beside = true;
    out[n].sliding_window = 7, out[n].full_attention_every = 2, out[n].logit_softcap = 30;
    out[n++].full = (struct model_full){
        .d_kv = 32, .n_kv_heads = 2, .rotary_share = 0.25, .keys_are_values = true};
    out[n] = small_moe; /* DeepSeek-V4 */
    out[n].n_kv_heads = 1, out[n].rotary_share = 0.5, out[n].hyper = 4, out[n].sliding_window = 3;
    out[n].moe.router = ROUTER_SIGMOID, out[n].moe.shared_gate = false, out[n].moe.dense_layers = 0;
    out[n].attention_sinks = true, out[n].moe.hash_layers = 1;
    out[n++].compressed = (struct model_compressed){"wch", 24, 2, 8, 4, 8, 2, 6, 2};
    out[n] = small_llama; /* Llama-3.3-Nemotron-Super */
    out[n++].blocks = "2x160 0x96 4x0";
    out[n] = small_llama; /* Jamba without experts */
    out[n].rotary_share = 0,
    out[n++].mixer = (struct model_mixer){MIXER_MAMBA, 1, 32, 1, 4, 4, 3, 2, 1, false};
    out[n] = small_llama; /* Mamba 2 */
    out[n].d_ff = 0,
    out[n++].mixer = (struct model_mixer){MIXER_MAMBA2, 4, 8, 2, 6, 4, 0, 0, 0, false};
    out[n] = small_llama; /* Nemotron-H */
    out[n].gated_ffn = false, out[n].squared_relu = true, out[n].rotary_share = 0,
    out[n].pattern = "M*-";
    out[n++].mixer = (struct model_mixer){MIXER_MAMBA2, 4, 8, 2, 6, 4, 0, 0, 0, false};
    out[n] = small_moe; /* Nemotron 3 */
    out[n].gated_ffn = false, out[n].squared_relu = true, out[n].rotary_share = 0,
    out[n].pattern = "ME*";
    out[n].moe.shared_gate = false, out[n].moe.dense_layers = 0, out[n].moe.router = ROUTER_SIGMOID;
    out[n++].mixer = (struct model_mixer){MIXER_MAMBA2, 4, 8, 2, 6, 4, 0, 0, 0, false};
    out[n] = small_moe; /* its experts, with biases, behind attention in each block */
    out[n].gated_ffn = false, out[n].squared_relu = true, out[n++].moe.biases = true;
    out[n] = small_moe; /* Nemotron 3 Super: experts of a latent */
    out[n].moe.latent = 24, out[n].moe.router = ROUTER_SIGMOID, out[n++].moe.shared_gate = false;
    out[n] = small_deepseek; /* with multi-token prediction */
    out[n++].mtp_layers = 2;
    out[n] = small_moe;
    out[n].tied_embeddings = true, out[n++].mtp_layers = 1;
    out[n++] = small_neox;
    out[n] = small_neox; /* Falcon 7B */
    out[n].biases = false, out[n].n_kv_heads = 1, out[n].rotary_share = 1,
    out[n++].shared_norm = true;
    out[n] = small_neox; /* with dropout, one after the other, without positions */
    out[n].dropout = 0.1, out[n].parallel_residual = false, out[n].tied_embeddings = true,
    out[n++].rotary_share = 0;
    out[n] = small_gpt; /* OPT */
    out[n].separate_qkv = out[n].relu = true, out[n++].keeps_attention = true;
    out[n] = small_gpt; /* BLOOM */
    out[n].embedding_norm = true, out[n++].max_positions = 0;
    out[n++] = small_vit;
    out[n] = small_vit; /* DeepViT */
    out[n++].mixes_heads = true;
    out[n++] = small_resnet;
    out[n] = small_resnet; /* RegNet-Y */
    out[n].conv.stem_pool = false, out[n++].conv.squeeze = 0.25;
    out[n] = small_resnet; /* ResNet-18 */
    out[n++].conv.block = CONV_BASIC;
    out[n++] = small_dhen;
    return n;
}

typedef void check_run(const struct run *r);

static inline void for_every_format(const struct model_shape *shape,
    const struct model_parallel *parallel, enum attention_kernel attention, check_run *check)
{
    int formats = model_sample_tokens(shape) > 0 ? FORMAT_AUTOCAST : FORMAT_COUNT;
    for (int format = 0; format < formats; format++)
        for (int fusion = 0; fusion < FUSION_COUNT; fusion++) {
            struct run r = run_part(
                shape, (enum format)format, attention, (enum kernel_fusion)fusion, parallel);
            check(&r);
            arena_release(&r.arena);
        }
}

/* Those that the model can be cut by. */
static inline void for_every_variant_cut(
    const struct model_parallel *parallels, size_t n_parallels, check_run *check)
{
    struct model_shape shapes[VARIANTS];
    int n = variants(shapes);
    for (int i = 0; i < n; i++)
        for (int attention = ATTENTION_NAIVE;
             attention <= (model_takes_flash(&shapes[i]) ? ATTENTION_FLASH : ATTENTION_NAIVE);
             attention++)
            for (size_t p = 0; p < n_parallels; p++) {
                struct arena arena = ARENA_INIT;
                struct model_workload w =
                    workload(&shapes[i], DTYPE_BF16, (enum attention_kernel)attention);
                w.parallel = parallels[p];
                if (!model_shard_wrong(&shapes[i], &w, &arena))
                    for_every_format(
                        &shapes[i], &parallels[p], (enum attention_kernel)attention, check);
                arena_release(&arena);
            }
}

static inline void for_every_variant(check_run *check)
{
    for_every_variant_cut(&(struct model_parallel){0}, 1, check);
}

/* Whole and cut. */
static inline void for_every_part(check_run *check)
{
    static const struct model_parallel parallels[] = {{0}, {.tensor = 2},
        {.tensor = 4, .tensor_overlap = TENSOR_ASYNC}, {.tensor = 2, .sequence = true},
        {.tensor = 4, .sequence = true, .tensor_overlap = TENSOR_ASYNC},
        {.tensor = 2, .sequence = true, .tensor_overlap = TENSOR_USER_BUFFERS}, {.context = 3},
        {.tensor = 2, .sequence = true, .context = 2},
        {.context = 2, .context_kind = CONTEXT_ALL_GATHER},
        {.context = 2, .context_kind = CONTEXT_A2A},
        {.context = 3, .context_kind = CONTEXT_RING_ALLGATHER},
        {.context = 3, .context_kind = CONTEXT_RING_ALLTOALL, .context_sequential = true},
        {.tensor = 2, .sequence = true, .tensor_overlap = TENSOR_MICRO_PIPELINE},
        {.tensor = 2, .sequence = true, .gather_dim = 1}};
    for_every_variant_cut(parallels, sizeof parallels / sizeof *parallels, check);
}

#endif
