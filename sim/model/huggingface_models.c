/* Keys and defaults of each model type, as in transformers 4 (configuration_<type>.py). */
#include "model/huggingface_models.h"

#include <string.h>

static const char *const t5_projections[] = {"relu", "gated-gelu", NULL};
static const char *const gpt2_activations[] = {"gelu_new", "gelu", "gelu_pytorch_tanh", NULL};
static const char *const llama_activations[] = {"silu", NULL};
static const char *const gemma_activations[] = {"gelu_pytorch_tanh", "gelu", NULL}; /* one kernel each */
static const char *const neox_activations[] = {"gelu", NULL};
static const char *const opt_activations[] = {"relu", NULL};
static const char *const deepseek2_methods[] = {"greedy", "group_limited_greedy", NULL};
static const char *const deepseek2_scores[] = {"softmax", NULL};
static const char *const deepseek3_methods[] = {"noaux_tc", NULL};
static const char *const deepseek3_scores[] = {"sigmoid", NULL};
static const char *const bert_activations[] = {"gelu", NULL};

/* required here: null is an error. */
#define KEY(key_, member, ...)                                                                                         \
    {                                                                                                                  \
        .key = (key_), .offset = offsetof(struct config_json, member), __VA_ARGS__                                     \
    }
#define COUNT(high) .type = FIELD_INT, .min = 1, .max = (high), .required = true
#define NULLABLE(high) .type = FIELD_INT, .min = 1, .max = (high)
#define SHARE .type = FIELD_NUMBER, .dimension = DIM_FRACTION, .min = 0, .max = 0.99, .required = true
#define FLAG .type = FIELD_BOOL, .required = true
#define CHOICE(names_) .type = FIELD_ENUM, .names = (names_), .required = true

static const struct config_field t5_fields[] = {
    KEY("d_model", shape.d_model, COUNT(MODEL_MAX_WIDTH)),
    KEY("d_ff", shape.d_ff, COUNT(MODEL_MAX_WIDTH)),
    KEY("d_kv", shape.d_kv, COUNT(MODEL_MAX_HEAD_DIM)),
    KEY("num_heads", shape.n_heads, COUNT(MODEL_MAX_HEADS)),
    KEY("num_layers", shape.n_layers, COUNT(MODEL_MAX_LAYERS)),
    KEY("num_decoder_layers", shape.n_decoder_layers, NULLABLE(MODEL_MAX_LAYERS)),
    KEY("vocab_size", shape.vocab, COUNT(MODEL_MAX_VOCAB)),
    KEY("relative_attention_num_buckets", shape.relative_buckets, COUNT(MODEL_MAX_HEADS)),
    KEY("tie_word_embeddings", shape.tied_embeddings, FLAG),
    KEY("dropout_rate", shape.dropout, SHARE),
    KEY("feed_forward_proj", feed_forward_proj, CHOICE(t5_projections)),
};
static const struct config_field gpt2_fields[] = {
    KEY("n_embd", shape.d_model, COUNT(MODEL_MAX_WIDTH)),
    KEY("n_inner", shape.d_ff, NULLABLE(MODEL_MAX_WIDTH)),
    KEY("n_head", shape.n_heads, COUNT(MODEL_MAX_HEADS)),
    KEY("n_layer", shape.n_layers, COUNT(MODEL_MAX_LAYERS)),
    KEY("vocab_size", shape.vocab, COUNT(MODEL_MAX_VOCAB)),
    KEY("n_positions", shape.max_positions, COUNT(MODEL_MAX_POSITIONS)),
    KEY("tie_word_embeddings", shape.tied_embeddings, FLAG),
    KEY("resid_pdrop", shape.dropout, SHARE),
    KEY("embd_pdrop", embd_pdrop, SHARE),
    KEY("attn_pdrop", attn_pdrop, SHARE),
    KEY("activation_function", activation_function, CHOICE(gpt2_activations)),
};
#define SOFTCAP .type = FIELD_NUMBER, .min = 0, .max = 1e6
/* clang-format off */
#define TRANSFORMER_KEYS                                                                                               \
    KEY("hidden_size", shape.d_model, COUNT(MODEL_MAX_WIDTH)),                                                         \
    KEY("intermediate_size", shape.d_ff, COUNT(MODEL_MAX_WIDTH)),                                                      \
    KEY("num_attention_heads", shape.n_heads, COUNT(MODEL_MAX_HEADS)),                                                 \
    KEY("num_key_value_heads", shape.n_kv_heads, NULLABLE(MODEL_MAX_HEADS)),                                           \
    KEY("num_hidden_layers", shape.n_layers, COUNT(MODEL_MAX_LAYERS)),                                                 \
    KEY("vocab_size", shape.vocab, COUNT(MODEL_MAX_VOCAB)),                                                            \
    KEY("tie_word_embeddings", shape.tied_embeddings, FLAG),                                                           \
    KEY("attention_dropout", shape.dropout, SHARE),                                                                    \
    KEY("attention_bias", attention_bias, FLAG),                                                                       \
    KEY("mlp_bias", mlp_bias, FLAG)
#define LLAMA_KEYS                                                                                                     \
    TRANSFORMER_KEYS,                                                                                                  \
    KEY("head_dim", shape.d_kv, NULLABLE(MODEL_MAX_HEAD_DIM))
#define LLAMA_ACTIVATION KEY("hidden_act", hidden_act, CHOICE(llama_activations))
#define GEMMA_KEYS                                                                                                     \
    LLAMA_KEYS,                                                                                                        \
    KEY("hidden_act", hidden_act, CHOICE(gemma_activations)),                                                          \
    KEY("hidden_activation", hidden_act, .type = FIELD_ENUM, .names = gemma_activations)
#define GEMMA2_KEYS                                                                                                    \
    GEMMA_KEYS,                                                                                                        \
    KEY("sliding_window", shape.sliding_window, NULLABLE(MODEL_MAX_POSITIONS)),                                        \
    KEY("attn_logit_softcapping", shape.attention_softcap, SOFTCAP),                                                   \
    KEY("final_logit_softcapping", shape.logit_softcap, SOFTCAP)
#define QWEN_KEYS                                                                                                      \
    LLAMA_KEYS,                                                                                                        \
    LLAMA_ACTIVATION,                                                                                                  \
    KEY("sliding_window", shape.sliding_window, NULLABLE(MODEL_MAX_POSITIONS)),                                        \
    KEY("use_sliding_window", use_sliding_window, FLAG),                                                               \
    KEY("max_window_layers", shape.max_window_layers, .type = FIELD_INT, .min = 0, .max = MODEL_MAX_LAYERS,            \
        .required = true)
#define EXPERT_KEYS                                                                                                    \
    KEY("num_experts_per_tok", shape.moe.per_token, COUNT(MODEL_MAX_EXPERTS)),                                         \
    KEY("moe_intermediate_size", shape.moe.d_ff, COUNT(MODEL_MAX_WIDTH))
#define QWEN_MOE_KEYS                                                                                                  \
    QWEN_KEYS,                                                                                                         \
    EXPERT_KEYS,                                                                                                       \
    KEY("num_experts", shape.moe.experts, COUNT(MODEL_MAX_EXPERTS)),                                                   \
    KEY("num_local_experts", shape.moe.experts, COUNT(MODEL_MAX_EXPERTS)),                                             \
    KEY("decoder_sparse_step", shape.moe.every, COUNT(MODEL_MAX_LAYERS)),                                              \
    KEY("norm_topk_prob", shape.moe.normalised, FLAG)
#define RANK .type = FIELD_INT, .min = 0, .max = MODEL_MAX_WIDTH
#define DEEPSEEK_KEYS                                                                                                  \
    TRANSFORMER_KEYS,                                                                                                  \
    KEY("head_dim", rotary_dim, NULLABLE(MODEL_MAX_HEAD_DIM)),                                                         \
    LLAMA_ACTIVATION,                                                                                                  \
    EXPERT_KEYS,                                                                                                       \
    KEY("n_routed_experts", shape.moe.experts, COUNT(MODEL_MAX_EXPERTS)),                                              \
    KEY("n_shared_experts", shared_experts, .type = FIELD_INT, .min = 0, .max = MODEL_MAX_EXPERTS),                    \
    KEY("first_k_dense_replace", shape.moe.dense_layers, .type = FIELD_INT, .min = 0, .max = MODEL_MAX_LAYERS),        \
    KEY("n_group", shape.moe.groups, NULLABLE(MODEL_MAX_EXPERTS)),                                                     \
    KEY("topk_group", kept_groups, NULLABLE(MODEL_MAX_EXPERTS)),                                                       \
    KEY("norm_topk_prob", shape.moe.normalised, FLAG),                                                                 \
    KEY("routed_scaling_factor", routed_scaling, .type = FIELD_NUMBER, .min = 0, .max = 1e6, .required = true),        \
    KEY("q_lora_rank", shape.mla.q_lora_rank, RANK),                                                                   \
    KEY("kv_lora_rank", shape.mla.kv_lora_rank, COUNT(MODEL_MAX_WIDTH)),                                               \
    KEY("qk_nope_head_dim", shape.mla.qk_nope_head_dim, COUNT(MODEL_MAX_HEAD_DIM)),                                    \
    KEY("qk_rope_head_dim", shape.mla.qk_rope_head_dim, COUNT(MODEL_MAX_HEAD_DIM)),                                    \
    KEY("v_head_dim", shape.mla.v_head_dim, COUNT(MODEL_MAX_HEAD_DIM))
/* clang-format on */
static const struct config_field llama_fields[] = {LLAMA_KEYS, LLAMA_ACTIVATION};
static const struct config_field qwen_fields[] = {QWEN_KEYS}; /* Qwen2 and Qwen3 */
static const struct config_field mixtral_fields[] = {
    LLAMA_KEYS,
    LLAMA_ACTIVATION,
    KEY("sliding_window", shape.sliding_window, NULLABLE(MODEL_MAX_POSITIONS)),
    KEY("num_local_experts", shape.moe.experts, COUNT(MODEL_MAX_EXPERTS)),
    KEY("num_experts_per_tok", shape.moe.per_token, COUNT(MODEL_MAX_EXPERTS)),
};
static const struct config_field qwen2_moe_fields[] = {
    QWEN_MOE_KEYS,
    KEY("shared_expert_intermediate_size", shape.moe.shared_d_ff, .type = FIELD_INT, .min = 0, .max = MODEL_MAX_WIDTH),
    KEY("qkv_bias", shape.biases, FLAG),
};
static const struct config_field qwen3_moe_fields[] = {QWEN_MOE_KEYS};
static const struct config_field deepseek2_fields[] = {
    DEEPSEEK_KEYS,
    KEY("topk_method", topk_method, CHOICE(deepseek2_methods)),
    KEY("scoring_func", scoring_func, CHOICE(deepseek2_scores)),
};
static const struct config_field deepseek3_fields[] = {
    DEEPSEEK_KEYS,
    KEY("topk_method", topk_method, CHOICE(deepseek3_methods)),
    KEY("scoring_func", scoring_func, CHOICE(deepseek3_scores)),
};
static const struct config_field gemma_fields[] = {GEMMA_KEYS};
static const struct config_field gemma2_fields[] = {GEMMA2_KEYS};
static const struct config_field gemma3_fields[] = {
    GEMMA2_KEYS,
    KEY("sliding_window_pattern", shape.full_attention_every, COUNT(MODEL_MAX_LAYERS)),
    KEY("_sliding_window_pattern", shape.full_attention_every, COUNT(MODEL_MAX_LAYERS)),
};
static const struct config_field phi3_fields[] = {
    LLAMA_KEYS,
    LLAMA_ACTIVATION,
    KEY("sliding_window", shape.sliding_window, NULLABLE(MODEL_MAX_POSITIONS)),
    KEY("resid_pdrop", embd_pdrop, SHARE),
    KEY("embd_pdrop", attn_pdrop, SHARE),
};
static const struct config_field mistral_fields[] = {
    LLAMA_KEYS,
    LLAMA_ACTIVATION,
    KEY("sliding_window", shape.sliding_window, NULLABLE(MODEL_MAX_POSITIONS)),
};
static const struct config_field neox_fields[] = {
    KEY("hidden_size", shape.d_model, COUNT(MODEL_MAX_WIDTH)),
    KEY("intermediate_size", shape.d_ff, COUNT(MODEL_MAX_WIDTH)),
    KEY("num_attention_heads", shape.n_heads, COUNT(MODEL_MAX_HEADS)),
    KEY("num_hidden_layers", shape.n_layers, COUNT(MODEL_MAX_LAYERS)),
    KEY("vocab_size", shape.vocab, COUNT(MODEL_MAX_VOCAB)),
    KEY("rotary_pct", shape.rotary_share, .type = FIELD_NUMBER, .dimension = DIM_FRACTION, .min = 0, .max = 1,
        .required = true),
    KEY("use_parallel_residual", shape.parallel_residual, FLAG),
    KEY("attention_bias", shape.biases, FLAG),
    KEY("tie_word_embeddings", shape.tied_embeddings, FLAG),
    KEY("hidden_dropout", shape.dropout, SHARE),
    KEY("attention_dropout", attn_pdrop, SHARE),
    KEY("hidden_act", hidden_act, CHOICE(neox_activations)),
};
static const struct config_field falcon_fields[] = {
    KEY("hidden_size", shape.d_model, COUNT(MODEL_MAX_WIDTH)),
    KEY("ffn_hidden_size", shape.d_ff, NULLABLE(MODEL_MAX_WIDTH)),
    KEY("num_attention_heads", shape.n_heads, COUNT(MODEL_MAX_HEADS)),
    KEY("n_head", shape.n_heads, COUNT(MODEL_MAX_HEADS)),
    KEY("num_kv_heads", shape.n_kv_heads, NULLABLE(MODEL_MAX_HEADS)),
    KEY("n_head_kv", shape.n_kv_heads, NULLABLE(MODEL_MAX_HEADS)),
    KEY("num_hidden_layers", shape.n_layers, COUNT(MODEL_MAX_LAYERS)),
    KEY("n_layer", shape.n_layers, COUNT(MODEL_MAX_LAYERS)),
    KEY("vocab_size", shape.vocab, COUNT(MODEL_MAX_VOCAB)),
    KEY("multi_query", multi_query, FLAG),
    KEY("new_decoder_architecture", new_decoder_architecture, FLAG),
    KEY("parallel_attn", shape.parallel_residual, FLAG),
    KEY("num_ln_in_parallel_attn", num_ln_in_parallel_attn, NULLABLE(2)),
    KEY("bias", shape.biases, FLAG),
    KEY("alibi", alibi, FLAG),
    KEY("tie_word_embeddings", shape.tied_embeddings, FLAG),
    KEY("hidden_dropout", shape.dropout, SHARE),
    KEY("attention_dropout", attn_pdrop, SHARE),
    KEY("activation", hidden_act, CHOICE(neox_activations)),
};
static const struct config_field opt_fields[] = {
    KEY("hidden_size", shape.d_model, COUNT(MODEL_MAX_WIDTH)),
    KEY("ffn_dim", shape.d_ff, COUNT(MODEL_MAX_WIDTH)),
    KEY("num_attention_heads", shape.n_heads, COUNT(MODEL_MAX_HEADS)),
    KEY("num_hidden_layers", shape.n_layers, COUNT(MODEL_MAX_LAYERS)),
    KEY("vocab_size", shape.vocab, COUNT(MODEL_MAX_VOCAB)),
    KEY("max_position_embeddings", shape.max_positions, COUNT(MODEL_MAX_POSITIONS - OPT_OFFSET)),
    KEY("word_embed_proj_dim", word_embed_proj_dim, NULLABLE(MODEL_MAX_WIDTH)),
    KEY("do_layer_norm_before", do_layer_norm_before, FLAG),
    KEY("enable_bias", shape.biases, FLAG),
    KEY("tie_word_embeddings", shape.tied_embeddings, FLAG),
    KEY("dropout", shape.dropout, SHARE),
    KEY("attention_dropout", attn_pdrop, SHARE),
    KEY("activation_function", hidden_act, CHOICE(opt_activations)),
};
static const struct config_field bloom_fields[] = {
    KEY("hidden_size", shape.d_model, COUNT(MODEL_MAX_WIDTH)),
    KEY("n_embed", shape.d_model, COUNT(MODEL_MAX_WIDTH)),
    KEY("n_head", shape.n_heads, COUNT(MODEL_MAX_HEADS)),
    KEY("num_attention_heads", shape.n_heads, COUNT(MODEL_MAX_HEADS)),
    KEY("n_layer", shape.n_layers, COUNT(MODEL_MAX_LAYERS)),
    KEY("num_hidden_layers", shape.n_layers, COUNT(MODEL_MAX_LAYERS)),
    KEY("vocab_size", shape.vocab, COUNT(MODEL_MAX_VOCAB)),
    KEY("tie_word_embeddings", shape.tied_embeddings, FLAG),
    KEY("hidden_dropout", shape.dropout, SHARE),
    KEY("attention_dropout", attn_pdrop, SHARE),
};
static const struct config_field vit_fields[] = {
    KEY("hidden_size", shape.d_model, COUNT(MODEL_MAX_WIDTH)),
    KEY("intermediate_size", shape.d_ff, COUNT(MODEL_MAX_WIDTH)),
    KEY("num_attention_heads", shape.n_heads, COUNT(MODEL_MAX_HEADS)),
    KEY("num_hidden_layers", shape.n_layers, COUNT(MODEL_MAX_LAYERS)),
    KEY("image_size", shape.image_size, COUNT(MODEL_MAX_IMAGE)),
    KEY("patch_size", shape.patch, COUNT(MODEL_MAX_IMAGE)),
    KEY("hidden_dropout_prob", shape.dropout, SHARE),
    KEY("attention_probs_dropout_prob", attn_pdrop, SHARE),
    KEY("hidden_act", hidden_act, CHOICE(bert_activations)),
    KEY("qkv_bias", shape.biases, FLAG),
};
static const struct config_field bert_fields[] = {
    KEY("hidden_size", shape.d_model, COUNT(MODEL_MAX_WIDTH)),
    KEY("intermediate_size", shape.d_ff, COUNT(MODEL_MAX_WIDTH)),
    KEY("num_attention_heads", shape.n_heads, COUNT(MODEL_MAX_HEADS)),
    KEY("num_hidden_layers", shape.n_layers, COUNT(MODEL_MAX_LAYERS)),
    KEY("vocab_size", shape.vocab, COUNT(MODEL_MAX_VOCAB)),
    KEY("max_position_embeddings", shape.max_positions, COUNT(MODEL_MAX_POSITIONS)),
    KEY("type_vocab_size", shape.token_types, COUNT(MODEL_MAX_HEADS)),
    KEY("tie_word_embeddings", shape.tied_embeddings, FLAG),
    KEY("hidden_dropout_prob", shape.dropout, SHARE),
    KEY("attention_probs_dropout_prob", attn_pdrop, SHARE),
    KEY("hidden_act", hidden_act, CHOICE(bert_activations)),
};

static const struct config_table t5_table = CONFIG_TABLE("a T5 config.json", t5_fields);
static const struct config_table gpt2_table = CONFIG_TABLE("a GPT-2 config.json", gpt2_fields);
static const struct config_table llama_table = CONFIG_TABLE("a Llama config.json", llama_fields);
static const struct config_table mistral_table = CONFIG_TABLE("a Mistral config.json", mistral_fields);
static const struct config_table qwen2_table = CONFIG_TABLE("a Qwen2 config.json", qwen_fields);
static const struct config_table qwen3_table = CONFIG_TABLE("a Qwen3 config.json", qwen_fields);
static const struct config_table mixtral_table = CONFIG_TABLE("a Mixtral config.json", mixtral_fields);
static const struct config_table qwen2_moe_table = CONFIG_TABLE("a Qwen2-MoE config.json", qwen2_moe_fields);
static const struct config_table qwen3_moe_table = CONFIG_TABLE("a Qwen3-MoE config.json", qwen3_moe_fields);
static const struct config_table deepseek2_table = CONFIG_TABLE("a DeepSeek-V2 config.json", deepseek2_fields);
static const struct config_table deepseek3_table = CONFIG_TABLE("a DeepSeek-V3 config.json", deepseek3_fields);
static const struct config_table gemma_table = CONFIG_TABLE("a Gemma config.json", gemma_fields);
static const struct config_table gemma2_table = CONFIG_TABLE("a Gemma 2 config.json", gemma2_fields);
static const struct config_table gemma3_table = CONFIG_TABLE("a Gemma 3 config.json", gemma3_fields);
static const struct config_table phi3_table = CONFIG_TABLE("a Phi-3 config.json", phi3_fields);
static const struct config_table neox_table = CONFIG_TABLE("a GPT-NeoX config.json", neox_fields);
static const struct config_table falcon_table = CONFIG_TABLE("a Falcon config.json", falcon_fields);
static const struct config_table opt_table = CONFIG_TABLE("an OPT config.json", opt_fields);
static const struct config_table bloom_table = CONFIG_TABLE("a BLOOM config.json", bloom_fields);
static const struct config_table bert_table = CONFIG_TABLE("a BERT config.json", bert_fields);
static const struct config_table vit_table = CONFIG_TABLE("a ViT config.json", vit_fields);

#define GEMMA_DEFAULTS                                                                                                 \
    .family = MODEL_LLAMA, .rotary_share = 1, .gated_ffn = true, .gelu_gate = true, .scaled_embedding = true,          \
    .tied_embeddings = true, .d_kv = 256
#define LLAMA_DEFAULTS                                                                                                 \
    .family = MODEL_LLAMA, .rotary_share = 1, .d_model = 4096, .n_heads = 32, .n_layers = 32, .gated_ffn = true

#define QWEN_MOE_DEFAULTS                                                                                              \
    .family = MODEL_LLAMA, .rotary_share = 1, .gated_ffn = true, .d_model = 2048, .n_layers = 24, .vocab = 151936
#define DEEPSEEK_MLA                                                                                                   \
    .q_lora_rank = 1536, .kv_lora_rank = 512, .qk_nope_head_dim = 128, .qk_rope_head_dim = 64, .v_head_dim = 128

static const struct model_type model_types[] = {
    {"t5", &t5_table,
        {.shape = {.family = MODEL_T5,
             .d_model = 512,
             .d_ff = 2048,
             .d_kv = 64,
             .n_heads = 8,
             .n_layers = 6,
             .vocab = 32128,
             .relative_buckets = 32,
             .tied_embeddings = true,
             .dropout = 0.1}}},
    {"gpt2", &gpt2_table,
        {.shape = {.family = MODEL_GPT,
             .d_model = 768,
             .n_heads = 12,
             .n_layers = 12,
             .vocab = 50257,
             .max_positions = 1024,
             .tied_embeddings = true,
             .biases = true,
             .dropout = 0.1},
            .embd_pdrop = 0.1,
            .attn_pdrop = 0.1}},
    {"opt", &opt_table,
        {.shape = {.family = MODEL_GPT,
             .d_model = 768,
             .d_ff = 3072,
             .n_heads = 12,
             .n_layers = 12,
             .vocab = 50272,
             .max_positions = 2048,
             .separate_qkv = true,
             .relu = true,
             .tied_embeddings = true,
             .biases = true,
             .dropout = 0.1},
            .do_layer_norm_before = true}},
    {"bloom", &bloom_table,
        {.shape = {.family = MODEL_GPT,
             .d_model = 64,
             .n_heads = 8,
             .n_layers = 2,
             .vocab = 250880,
             .embedding_norm = true,
             .composed_gelu = true,
             .tied_embeddings = true,
             .biases = true}}},
    {"gpt_neox", &neox_table,
        {.shape = {.family = MODEL_NEOX,
             .d_model = 6144,
             .d_ff = 24576,
             .n_heads = 64,
             .n_layers = 44,
             .vocab = 50432,
             .rotary_share = 0.25,
             .parallel_residual = true,
             .biases = true}}},
    {"falcon", &falcon_table,
        {.shape = {.family = MODEL_NEOX,
             .d_model = 4544,
             .n_heads = 71,
             .n_layers = 32,
             .vocab = 65024,
             .parallel_residual = true,
             .tied_embeddings = true},
            .multi_query = true}},
    {"llama", &llama_table, {.shape = {LLAMA_DEFAULTS, .d_ff = 11008, .vocab = 32000}}},
    {"mistral", &mistral_table,
        {.shape = {LLAMA_DEFAULTS, .d_ff = 14336, .vocab = 32000, .n_kv_heads = 8, .sliding_window = 4096}}},
    {"qwen2", &qwen2_table,
        {.shape = {LLAMA_DEFAULTS, .d_ff = 22016, .vocab = 151936, .n_kv_heads = 32, .biases = true,
             .sliding_window = 4096, .max_window_layers = 28},
            .windows = WINDOWS_FROM}},
    {"qwen3", &qwen3_table,
        {.shape = {LLAMA_DEFAULTS, .d_ff = 22016, .vocab = 151936, .n_kv_heads = 32, .d_kv = 128, .qk_norm = true,
             .sliding_window = 4096, .max_window_layers = 28},
            .windows = WINDOWS_FROM}},
    {"mixtral", &mixtral_table,
        {.shape = {LLAMA_DEFAULTS, .d_ff = 14336, .vocab = 32000, .n_kv_heads = 8,
             .moe = {.experts = 8, .per_token = 2, .normalised = true}}}},
    {"qwen2_moe", &qwen2_moe_table,
        {.shape = {QWEN_MOE_DEFAULTS, .d_ff = 5632, .n_heads = 16, .n_kv_heads = 16, .biases = true,
             .sliding_window = 4096, .max_window_layers = 28,
             .moe = {.experts = 60, .per_token = 4, .d_ff = 1408, .shared_d_ff = 5632, .shared_gate = true}},
            .windows = WINDOWS_FROM}},
    {"qwen3_moe", &qwen3_moe_table,
        {.shape = {QWEN_MOE_DEFAULTS, .d_ff = 6144, .n_heads = 32, .n_kv_heads = 4, .qk_norm = true,
             .sliding_window = 4096, .moe = {.experts = 128, .per_token = 8, .d_ff = 768}},
            .windows = WINDOWS_FROM}},
    {"deepseek_v2", &deepseek2_table,
        {.shape = {LLAMA_DEFAULTS, .d_ff = 11008, .vocab = 32000, .moe = {.experts = 64, .d_ff = 1407},
             .mla = {DEEPSEEK_MLA}},
            .shared_experts = 2,
            .routed_scaling = 1}},
    {"deepseek_v3", &deepseek3_table,
        {.shape = {.family = MODEL_LLAMA,
             .rotary_share = 1,
             .gated_ffn = true,
             .d_model = 7168,
             .n_heads = 128,
             .n_layers = 61,
             .d_ff = 18432,
             .vocab = 129280,
             .moe = {.experts = 256,
                 .per_token = 8,
                 .d_ff = 2048,
                 .dense_layers = 3,
                 .router = ROUTER_SIGMOID,
                 .groups = 8,
                 .normalised = true},
             .mla = {DEEPSEEK_MLA}},
            .shared_experts = 1,
            .kept_groups = 4,
            .routed_scaling = 2.5}},
    {"gemma", &gemma_table,
        {.shape = {GEMMA_DEFAULTS, .d_model = 3072, .d_ff = 24576, .n_heads = 16, .n_kv_heads = 16, .n_layers = 28,
             .vocab = 256000}}},
    {"gemma2", &gemma2_table,
        {.shape = {GEMMA_DEFAULTS, .d_model = 2304, .d_ff = 9216, .n_heads = 8, .n_kv_heads = 4, .n_layers = 26,
             .vocab = 256000, .post_norms = true, .sliding_window = 4096, .full_attention_every = 2,
             .attention_softcap = 50, .logit_softcap = 30},
            .windows = WINDOWS_EVERY}},
    {"gemma3_text", &gemma3_table,
        {.shape = {GEMMA_DEFAULTS, .d_model = 2304, .d_ff = 9216, .n_heads = 8, .n_kv_heads = 4, .n_layers = 26,
             .vocab = 262208, .post_norms = true, .qk_norm = true, .sliding_window = 4096, .full_attention_every = 6},
            .windows = WINDOWS_EVERY}},
    {"phi3", &phi3_table,
        {.shape = {.family = MODEL_LLAMA,
             .rotary_share = 1,
             .gated_ffn = true,
             .d_model = 3072,
             .d_ff = 8192,
             .n_heads = 32,
             .n_layers = 32,
             .vocab = 32064,
             .fused_projections = true}}},
    {"bert", &bert_table,
        {.shape = {.family = MODEL_BERT,
             .d_model = 768,
             .d_ff = 3072,
             .n_heads = 12,
             .n_layers = 12,
             .vocab = 30522,
             .max_positions = 512,
             .token_types = 2,
             .head_share = 1,
             .tied_embeddings = true,
             .biases = true,
             .dropout = 0.1},
            .attn_pdrop = 0.1}},
    {"vit", &vit_table,
        {.shape = {.family = MODEL_VIT,
             .d_model = 768,
             .d_ff = 3072,
             .n_heads = 12,
             .n_layers = 12,
             .image_size = 224,
             .patch = 16,
             .classes = DEFAULT_LABELS,
             .biases = true}}},
};

const struct model_type *huggingface_model(const char *name)
{
    for (size_t i = 0; i < sizeof model_types / sizeof *model_types; i++)
        if (strcmp(name, model_types[i].name) == 0)
            return &model_types[i];
    return NULL;
}
