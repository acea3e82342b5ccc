/* A model file as a struct model_shape, and what a shape must obey.
 *
 * The tables are the file format, as in hw/gpu.c. A file that says model_type, architectures or
 * hidden_size is a config.json of Hugging Face and goes to huggingface.c, unless it names a family.
 * Then shape_finish() derives what was left out and checks, in this order: what the family needs or
 * has no use for, head dimensions, the pattern, the rules of the family (its file has them), the
 * number of parameters.
 *
 * Subtle: `family` is looked up before the file is read, because it decides the defaults.
 * params_bound() is an upper bound in double, so that later sums in int64 cannot overflow: a shape
 * member that adds parameters must be in it. Errors stand at the field that is to blame, found by
 * its offset; for that, keys of config.json have offsets in the same struct. */
#include "model/family.h"

#include <string.h>

/* Larger than any model in sight by a factor of a hundred; below it every count of bytes or
 * elements of parameters fits int64. */
#define MAX_PARAMS 1e15

#define FIELD(member, ...)                                                                         \
    {                                                                                              \
        .key = #member, .offset = offsetof(struct model_shape, member), __VA_ARGS__                \
    }
#define COUNT(low, high) .type = FIELD_INT, .min = (low), .max = (high)

#define STAGE_FIELD(member, least, help_)                                                          \
    {                                                                                              \
        .key = #member, .offset = offsetof(struct model_conv_stage, member),                       \
        COUNT(least, MODEL_MAX_WIDTH), .help = help_                                               \
    }
static const struct config_field stage_fields[] = {
    STAGE_FIELD(blocks, 1, "Residual blocks."),
    STAGE_FIELD(width, 1, "Channels that a block hands on."),
    STAGE_FIELD(inner, 1, "bottleneck: channels within; default width."),
    STAGE_FIELD(groups, 1, "bottleneck: groups of its 3 x 3 window; default 1."),
};
static const struct config_table stage_table = CONFIG_TABLE("a stage", stage_fields);

#define CONV_FIELD(member, ...)                                                                    \
    {                                                                                              \
        .key = #member, .offset = offsetof(struct model_conv, member), __VA_ARGS__                 \
    }
#define CONV_STAGE(i)                                                                              \
    {                                                                                              \
        .key = "stage" #i, .type = FIELD_SECTION,                                                  \
        .offset = offsetof(struct model_conv, stages[(i)-1]), .section = &stage_table,             \
        .help = "Its blocks and channels."                                                         \
    }
static const struct config_field conv_fields[] = {
    CONV_FIELD(
        block, .type = FIELD_ENUM, .names = conv_block_names, .help = "basic or bottleneck."),
    CONV_FIELD(
        stem_width, COUNT(1, MODEL_MAX_WIDTH), .help = "Channels after the stem; default 64."),
    CONV_FIELD(
        stem_pool, .type = FIELD_BOOL, .help = "The stem is 7 x 7 with a max pool; false: 3 x 3."),
    CONV_FIELD(squeeze, .type = FIELD_NUMBER, .dimension = DIM_FRACTION, .min = 0, .max = 1,
        .help =
            "Share of a block's input width that squeeze-and-excitation keeps; default 0, none."),
    CONV_STAGE(1),
    CONV_STAGE(2),
    CONV_STAGE(3),
    CONV_STAGE(4),
};
static const struct config_table conv_table =
    CONFIG_TABLE("the convolutions of a model", conv_fields);

#define TABLES_FIELD(member, ...)                                                                  \
    {                                                                                              \
        .key = #member, .offset = offsetof(struct model_dhen, tables.member), __VA_ARGS__          \
    }
static const struct config_field tables_fields[] = {
    TABLES_FIELD(params, .type = FIELD_NUMBER, .required = true, .min = 1, .max = MAX_PARAMS,
        .help = "Elements of all tables together."),
    TABLES_FIELD(pooling, COUNT(1, MODEL_MAX_WIDTH),
        .help = "Rows that are summed to make a feature; default 1."),
    TABLES_FIELD(format, .type = FIELD_ENUM, .names = table_format_names,
        .help = "Of an element: fp16 (default) or fp32."),
};
static const struct config_table tables_table =
    CONFIG_TABLE("the tables of embeddings", tables_fields);

#define DHEN_FIELD(member, ...)                                                                    \
    {                                                                                              \
        .key = #member, .offset = offsetof(struct model_dhen, member), __VA_ARGS__                 \
    }
#define MODULE(member, help_) DHEN_FIELD(member, .type = FIELD_BOOL, .help = help_)
static const struct config_field dhen_fields[] = {
    DHEN_FIELD(features, COUNT(2, MODEL_MAX_WIDTH), .required = true,
        .help = "Embeddings of a sample, with the one that its dense inputs make."),
    DHEN_FIELD(
        inputs, COUNT(1, MODEL_MAX_WIDTH), .required = true, .help = "Dense numbers of a sample."),
    MODULE(
        linear, "A layer mixes features by a matrix; default false, as the modules that follow."),
    MODULE(dot, "A layer multiplies features pairwise, then an MLP of width d_ff."),
    MODULE(attention, "A layer has a transformer encoder layer over the features."),
    MODULE(convolution, "A layer has a convolution of 3 x 3 over features x d_model."),
    MODULE(cross, "A layer crosses the whole sample with itself (DCN)."),
    {.key = "tables",
        .type = FIELD_SECTION,
        .required = true,
        .section = &tables_table,
        .help = "The sparse part: shared out over all GPUs."},
};
static const struct config_table dhen_table = CONFIG_TABLE("a DHEN", dhen_fields);

#define MOE_FIELD(key_, member, ...)                                                               \
    {                                                                                              \
        .key = (key_), .offset = offsetof(struct model_moe, member), __VA_ARGS__                   \
    }
static const struct config_field moe_fields[] = {
    MOE_FIELD("experts", experts, COUNT(2, MODEL_MAX_EXPERTS), .required = true,
        .help = "Routed experts of a block."),
    MOE_FIELD("experts_per_token", per_token, COUNT(1, MODEL_MAX_EXPERTS), .required = true,
        .help = "Experts that a token goes through."),
    MOE_FIELD("d_ff", d_ff, COUNT(1, MODEL_MAX_WIDTH), .required = true, .help = "Width of each."),
    MOE_FIELD("shared_d_ff", shared_d_ff, COUNT(0, MODEL_MAX_WIDTH),
        .help = "Width of the shared expert, of all of them together; default 0, none."),
    MOE_FIELD("shared_gate", shared_gate, .type = FIELD_BOOL,
        .help = "The shared expert's output is gated (Qwen2-MoE); default false."),
    MOE_FIELD("dense_layers", dense_layers, COUNT(0, MODEL_MAX_LAYERS),
        .help =
            "The number of first blocks that are dense, of width d_ff of the model; default 0."),
    MOE_FIELD("every", every, COUNT(1, MODEL_MAX_LAYERS),
        .help = "Every n-th block has experts; default 1, all."),
    MOE_FIELD("router", router, .type = FIELD_ENUM, .names = router_names,
        .help =
            "softmax (default), sigmoid with a bias for balance (DeepSeek-V3), or plain_sigmoid."),
    MOE_FIELD("groups", groups, COUNT(1, MODEL_MAX_EXPERTS),
        .help = "Groups of experts, of which the best are chosen first; default 1."),
    MOE_FIELD("kept_groups", kept_groups, COUNT(1, MODEL_MAX_EXPERTS),
        .help = "Of them those that a token goes to; default all."),
    MOE_FIELD("normalised", normalised, .type = FIELD_BOOL,
        .help = "The chosen scores are divided by their sum or scaled; default false."),
    MOE_FIELD("biases", biases, .type = FIELD_BOOL,
        .help = "Of the router and of each expert's matrices (gpt-oss); default false."),
    MOE_FIELD("beside", beside, .type = FIELD_BOOL,
        .help = "A dense layer, of width d_ff of the model, stands beside the experts (Gemma 4); "
                "default false."),
    MOE_FIELD("hash_layers", hash_layers, COUNT(0, MODEL_MAX_LAYERS),
        .help = "First blocks whose experts a table of words chooses (DeepSeek-V4); default 0."),
    MOE_FIELD("latent", latent, COUNT(0, MODEL_MAX_WIDTH),
        .help = "Width that routed experts take and give, made of d_model by a matrix (Nemotron "
                "3); default 0, d_model."),
};
static const struct config_table moe_table = CONFIG_TABLE("a mixture of experts", moe_fields);

#define MLA_FIELD(member, most, ...)                                                               \
    {                                                                                              \
        .key = #member, .offset = offsetof(struct model_mla, member), COUNT(0, most), __VA_ARGS__  \
    }
static const struct config_field mla_fields[] = {
    MLA_FIELD(kv_lora_rank, MODEL_MAX_WIDTH, .required = true,
        .help = "Width of the latent of keys and values."),
    MLA_FIELD(q_lora_rank, MODEL_MAX_WIDTH, .help = "Of that of queries; default 0, none."),
    MLA_FIELD(qk_nope_head_dim, MODEL_MAX_HEAD_DIM, .required = true,
        .help = "Of a query or key, without positions."),
    MLA_FIELD(qk_rope_head_dim, MODEL_MAX_HEAD_DIM, .required = true, .help = "The same, rotary."),
    MLA_FIELD(v_head_dim, MODEL_MAX_HEAD_DIM, .required = true, .help = "Of a value."),
    MLA_FIELD(index_heads, MODEL_MAX_HEADS,
        .help = "Heads of the indexer (DeepSeek-V3.2); default 0, none."),
    MLA_FIELD(index_head_dim, MODEL_MAX_HEAD_DIM, .help = "Their dimension."),
    MLA_FIELD(index_topk, MODEL_MAX_POSITIONS, .help = "Keys that a query attends to."),
};
static const struct config_table mla_table = CONFIG_TABLE("latent attention", mla_fields);

#define MIXER_FIELD(member, most, ...)                                                             \
    {                                                                                              \
        .key = #member, .offset = offsetof(struct model_mixer, member), COUNT(0, most),            \
        __VA_ARGS__                                                                                \
    }
static const struct config_field mixer_fields[] = {
    {CONFIG_FIELD("kind", FIELD_ENUM, struct model_mixer, kind,
         "deltanet (Qwen3-Next), mamba (Jamba) or mamba2."),
        .required = true, .names = mixer_names},
    MIXER_FIELD(heads, MODEL_MAX_HEADS, .required = true, .help = "Heads of values; mamba: 1."),
    MIXER_FIELD(head_dim, MODEL_MAX_WIDTH, .required = true, .help = "Dimension of a value."),
    MIXER_FIELD(
        groups, MODEL_MAX_HEADS, .required = true, .help = "Heads of keys and queries (B and C)."),
    MIXER_FIELD(state, MODEL_MAX_HEAD_DIM, .required = true, .help = "Their dimension."),
    MIXER_FIELD(conv, MODEL_MAX_HEAD_DIM, .required = true,
        .help = "Length of each channel's causal filter."),
    MIXER_FIELD(dt_rank, MODEL_MAX_WIDTH, .help = "mamba: width that time steps are made of."),
    {CONFIG_FIELD("apart", FIELD_BOOL, struct model_mixer, apart,
        "deltanet: four matrices in the place of two (Qwen3.5); default false.")},
    MIXER_FIELD(attention_every, MODEL_MAX_LAYERS,
        .help = "One block in this number has attention, not the mixer; default 0, none."),
    MIXER_FIELD(attention_at, MODEL_MAX_LAYERS,
        .help = "Which one: what its number, from 1 on, leaves over attention_every; default 0, "
                "the last."),
};
static const struct config_table mixer_table = CONFIG_TABLE("a mixer", mixer_fields);

#define FULL_FIELD(member, ...)                                                                    \
    {                                                                                              \
        .key = #member, .offset = offsetof(struct model_full, member), __VA_ARGS__                 \
    }
static const struct config_field full_fields[] = {
    FULL_FIELD(n_heads, COUNT(0, MODEL_MAX_HEADS),
        .help = "Attention heads; default those of all blocks."),
    FULL_FIELD(
        n_kv_heads, COUNT(0, MODEL_MAX_HEADS), .help = "Key and value heads; default the same."),
    FULL_FIELD(
        d_kv, COUNT(0, MODEL_MAX_HEAD_DIM), .help = "Dimension of a head; default the same."),
    FULL_FIELD(value_dim, COUNT(0, MODEL_MAX_HEAD_DIM),
        .help = "Dimension of a value's head; default the same."),
    FULL_FIELD(rotary_share, .type = FIELD_NUMBER, .dimension = DIM_FRACTION, .min = 0, .max = 1,
        .help = "Share of each head that positions turn; default the same."),
    FULL_FIELD(keys_are_values, .type = FIELD_BOOL,
        .help = "Values are the keys before norm and positions (Gemma 4); default false."),
    FULL_FIELD(
        no_sinks, .type = FIELD_BOOL, .help = "Without attention_sinks (MiMo-V2); default false."),
};
static const struct config_table full_table = CONFIG_TABLE("blocks of full attention", full_fields);

#define COMPRESSED_FIELD(member, most, ...)                                                        \
    {                                                                                              \
        .key = #member, .offset = offsetof(struct model_compressed, member), COUNT(0, most),       \
        __VA_ARGS__                                                                                \
    }
static const struct config_field compressed_fields[] = {
    {CONFIG_FIELD("pattern", FIELD_STRING, struct model_compressed, pattern,
        "A character for each block: w, a window alone; c, chosen compressed keys; h, all, of more "
        "tokens each.")},
    COMPRESSED_FIELD(q_lora_rank, MODEL_MAX_WIDTH, .help = "Width of the latent of queries."),
    COMPRESSED_FIELD(
        o_groups, MODEL_MAX_HEADS, .help = "Groups of heads, each with a latent of its results."),
    COMPRESSED_FIELD(o_lora_rank, MODEL_MAX_WIDTH, .help = "Width of each of these."),
    COMPRESSED_FIELD(ratio, MODEL_MAX_POSITIONS, .help = "Tokens of a compressed key in blocks c."),
    COMPRESSED_FIELD(heavy_ratio, MODEL_MAX_POSITIONS, .help = "The same in blocks h."),
    COMPRESSED_FIELD(index_heads, MODEL_MAX_HEADS, .help = "Heads of the indexer of blocks c."),
    COMPRESSED_FIELD(index_head_dim, MODEL_MAX_HEAD_DIM, .help = "Their dimension."),
    COMPRESSED_FIELD(
        index_topk, MODEL_MAX_POSITIONS, .help = "Compressed keys that a query attends to."),
};
static const struct config_table compressed_table =
    CONFIG_TABLE("compressed attention", compressed_fields);

static const struct config_field fields[] = {
    {CONFIG_FIELD("family", FIELD_ENUM, struct model_shape, family,
         "t5, gpt, llama, neox, bert, vit, convnet or dhen"),
        .required = true, .names = model_family_names},
    FIELD(name, .type = FIELD_STRING, .required = true, .help = "What the model is called."),
    FIELD(source, .type = FIELD_STRING, .required = true,
        .help = "Where the shape comes from; assumed ... where it is."),
    FIELD(d_model, COUNT(1, MODEL_MAX_WIDTH), .help = "Width of the residual stream."),
    FIELD(d_ff, COUNT(1, MODEL_MAX_WIDTH), .help = "Width of the feed-forward layer."),
    FIELD(d_kv, COUNT(1, MODEL_MAX_HEAD_DIM),
        .help = "Dimension of a head; default d_model / n_heads."),
    FIELD(n_heads, COUNT(1, MODEL_MAX_HEADS), .help = "Attention heads."),
    FIELD(n_kv_heads, COUNT(1, MODEL_MAX_HEADS), .help = "Key and value heads; default n_heads."),
    FIELD(n_layers, COUNT(1, MODEL_MAX_LAYERS), .help = "Blocks; T5: of the encoder."),
    FIELD(n_decoder_layers, COUNT(0, MODEL_MAX_LAYERS),
        .help = "T5: blocks of the decoder; default n_layers."),
    FIELD(vocab, COUNT(1, MODEL_MAX_VOCAB), .help = "Rows of the embedding."),
    FIELD(max_positions, COUNT(0, MODEL_MAX_POSITIONS),
        .help = "GPT, BERT: rows of the position embedding; GPT: 0 is none."),
    FIELD(relative_buckets, COUNT(0, MODEL_MAX_HEADS),
        .help = "T5: rows of the relative position bias; default 32."),
    FIELD(token_types, COUNT(1, MODEL_MAX_HEADS),
        .help = "BERT: rows of the token type embedding; default 2."),
    FIELD(head, .type = FIELD_ENUM, .names = bert_head_names,
        .help = "BERT: what it is trained for, BertForPreTraining (the default), BertForMaskedLM, "
                "BertForSequenceClassification or BertModel."),
    FIELD(head_share, .type = FIELD_NUMBER, .dimension = DIM_FRACTION, .min = 0.001, .max = 1,
        .help = "BERT: share of the positions whose word the head predicts; default 1."),
    FIELD(sliding_window, COUNT(1, MODEL_MAX_POSITIONS),
        .help = "Llama: keys that a position attends to with flash attention; default all."),
    FIELD(max_window_layers, COUNT(0, MODEL_MAX_LAYERS),
        .help =
            "Llama: the number of first blocks that attend to all keys nevertheless; default 0."),
    FIELD(full_attention_every, COUNT(0, MODEL_MAX_LAYERS),
        .help =
            "Llama: so does every block of this number (Gemma 2: 2, Gemma 3: 6); default 0, none."),
    FIELD(qk_norm, .type = FIELD_BOOL,
        .help = "Llama: a norm of each head's query and key (Qwen3); default false."),
    FIELD(post_norms, .type = FIELD_BOOL,
        .help =
            "Llama: norms behind attention and feed-forward layer, too (Gemma 2); default false."),
    FIELD(fused_projections, .type = FIELD_BOOL,
        .help =
            "Llama: one matrix for q, k and v, and one for gate and up (Phi-3); default false."),
    FIELD(gelu_gate, .type = FIELD_BOOL,
        .help = "Llama: the gate is GELU (Gemma), not SiLU; default false."),
    FIELD(scaled_embedding, .type = FIELD_BOOL,
        .help = "Llama: embeddings are multiplied by a constant (Gemma); default false."),
    FIELD(attention_softcap, .type = FIELD_NUMBER, .min = 0, .max = 1e6,
        .help = "Llama: scores are capped by c tanh(x / c) (Gemma 2); default 0, none."),
    FIELD(logit_softcap, .type = FIELD_NUMBER, .min = 0, .max = 1e6,
        .help = "Llama: so are logits (Gemma 2); default 0, none."),
    FIELD(rotary_share, .type = FIELD_NUMBER, .dimension = DIM_FRACTION, .min = 0, .max = 1,
        .help = "NeoX: share of each head that rotary positions turn; default 25 %."),
    FIELD(parallel_residual, .type = FIELD_BOOL,
        .help = "NeoX: attention and feed-forward layer side by side; default true."),
    FIELD(shared_norm, .type = FIELD_BOOL,
        .help = "NeoX: one norm for both of them (Falcon 7B); default false."),
    FIELD(separate_qkv, .type = FIELD_BOOL,
        .help = "GPT: three matrices for q, k and v (OPT); default false."),
    FIELD(relu, .type = FIELD_BOOL, .help = "GPT: ReLU (OPT), not GELU; default false."),
    FIELD(embedding_norm, .type = FIELD_BOOL,
        .help = "GPT: a norm behind the embedding (BLOOM); default false."),
    FIELD(keeps_attention, .type = FIELD_BOOL,
        .help = "GPT: no dropout on the weights of attention (OPT); default false."),
    FIELD(tied_embeddings, .type = FIELD_BOOL,
        .help = "The head uses the embedding; default: false for llama only."),
    FIELD(gated_ffn, .type = FIELD_BOOL,
        .help = "Three matrices in the feed-forward layer; default: llama true."),
    FIELD(biases, .type = FIELD_BOOL,
        .help = "GPT, NeoX: all layers (default true). Llama: q, k and v (Qwen2)."),
    FIELD(sequence_first, .type = FIELD_BOOL,
        .help = "GPT, BERT: (sequence, batch, width), where heads need no copies (Megatron-LM); "
                "default false."),
    FIELD(fused_softmax, .type = FIELD_BOOL,
        .help =
            "GPT: the GEMM scales, one kernel masks and normalises (Megatron-LM); default false."),
    FIELD(block_locals, .type = FIELD_BOOL,
        .help = "Local variables hold what a block's norms and sub-layers give (MPTBlock); default "
                "false."),
    FIELD(low_precision_norm, .type = FIELD_BOOL,
        .help = "LayerNorm in 16 bit even under autocast (MPT's low_precision_layernorm); default "
                "false."),
    FIELD(composed_gelu, .type = FIELD_BOOL,
        .help = "GELU as eight kernels (gelu_new) instead of one; default false."),
    FIELD(dropout, .type = FIELD_NUMBER, .dimension = DIM_FRACTION, .min = 0, .max = 0.99,
        .help = "Probability; default: t5, bert 0.1, others 0."),
    FIELD(image_size, COUNT(1, MODEL_MAX_IMAGE),
        .help = "vit, convnet: positions along an image's side; default 224."),
    FIELD(classes, COUNT(1, MODEL_MAX_VOCAB),
        .help = "vit, convnet: classes of the head, default 1000; dhen: tasks, default 1; BERT: of "
                "classification."),
    FIELD(patch, COUNT(1, MODEL_MAX_IMAGE),
        .help = "vit: positions along a patch's side; default 16."),
    FIELD(mixes_heads, .type = FIELD_BOOL, .help = "vit: DeepViT's re-attention; default false."),
    {CONFIG_FIELD(
         "conv", FIELD_SECTION, struct model_shape, conv, "convnet: its stem and four stages."),
        .section = &conv_table},
    {CONFIG_FIELD("dhen", FIELD_SECTION, struct model_shape, dhen,
         "dhen: what a sample is, and the modules of a layer."),
        .section = &dhen_table},
    {CONFIG_FIELD("moe", FIELD_SECTION, struct model_shape, moe,
         "Llama: a mixture of experts in place of d_ff."),
        .section = &moe_table},
    {CONFIG_FIELD(
         "mla", FIELD_SECTION, struct model_shape, mla, "Llama: latent attention (DeepSeek)."),
        .section = &mla_table},
    FIELD(output_bias, .type = FIELD_BOOL,
        .help = "Llama: with biases, the output projection has one, too (gpt-oss); default false."),
    FIELD(attention_sinks, .type = FIELD_BOOL,
        .help = "Llama: a learned logit of each head in softmax (gpt-oss); default false."),
    FIELD(attention_gate, .type = FIELD_BOOL,
        .help =
            "Llama: queries come with a gate of what is attended to (Qwen3-Next); default false."),
    FIELD(qk_plain_norm, .type = FIELD_BOOL,
        .help =
            "Llama: a norm of each head's query and key without weights (Llama 4); default false."),
    FIELD(full_unrotated, .type = FIELD_BOOL,
        .help = "Llama: blocks of full_attention_every have no rotary positions (Llama 4); default "
                "false."),
    FIELD(attention_chunk, COUNT(1, MODEL_MAX_POSITIONS),
        .help = "Llama: positions see their own chunk, of this length (Llama 4); default all."),
    {CONFIG_FIELD("mixer", FIELD_SECTION, struct model_shape, mixer,
         "Llama: what blocks have in the place of attention (Mamba, DeltaNet)."),
        .section = &mixer_table},
    FIELD(pattern, .type = FIELD_STRING,
        .help = "Llama: the one sub-layer of each block, M the mixer, * attention, - feed-forward, "
                "E experts (Nemotron-H)."),
    FIELD(value_dim, COUNT(0, MODEL_MAX_HEAD_DIM),
        .help = "Llama: dimension of a value's head; default d_kv."),
    FIELD(value_norm, .type = FIELD_BOOL,
        .help = "Llama: a norm of each head's value, without weights (Gemma 4); default false."),
    FIELD(qk_norm_whole, .type = FIELD_BOOL,
        .help =
            "Llama: one norm over all heads of queries, one of keys (MiniMax-M2); default false."),
    FIELD(attention_pattern, .type = FIELD_STRING,
        .help =
            "Llama: a character for each block, f full attention, w the sliding_window; default as "
            "full_attention_every says."),
    {CONFIG_FIELD("full", FIELD_SECTION, struct model_shape, full,
         "Llama: what blocks of full attention have where others have a window (MiMo-V2, Gemma "
         "4)."),
        .section = &full_table},
    {CONFIG_FIELD("compressed", FIELD_SECTION, struct model_shape, compressed,
         "Llama: attention to a window and to compressed keys (DeepSeek-V4)."),
        .section = &compressed_table},
    FIELD(hyper, COUNT(0, MODEL_MAX_HEADS),
        .help = "Llama: streams of the residual stream, which hyper-connections mix (DeepSeek-V4); "
                "default one."),
    FIELD(blocks, .type = FIELD_STRING,
        .help = "Llama: key heads and d_ff of blocks that differ one by one, \"8x28672 0x14336*2\" "
                "(Nemotron)."),
    FIELD(squared_relu, .type = FIELD_BOOL,
        .help = "Llama: without a gate (gated_ffn: false), ReLU squared, of experts, too "
                "(Nemotron-H); default false."),
    FIELD(mtp_layers, COUNT(0, MODEL_MAX_LAYERS),
        .help = "Llama: layers of multi-token prediction (DeepSeek-V3, GLM-4.5); default 0."),
};

const struct config_table model_shape_table = CONFIG_TABLE("a model", fields);

const char *model_first_wrong(const struct model_rule *rules, size_t n, size_t *offset)
{
    for (size_t i = 0; i < n; i++)
        if (rules[i].wrong) {
            *offset = rules[i].offset;
            return rules[i].sentence;
        }
    return NULL;
}

/* An upper bound, in double: each block counted as the largest kind, a T5 decoder's with gated
 * feed-forward. */
static double params_bound(const struct model_shape *s)
{
    double d = (double)s->d_model, inner = (double)s->n_heads * (double)s->d_kv,
           ff = (double)s->d_ff;
    double blocks = (double)(s->n_layers + s->n_decoder_layers + s->mtp_layers);
    double others = (double)s->mtp_layers * d * (2 * d + 3);
    for (int i = 0; i < MODEL_CONV_STAGES; i++) {
        double width = (double)s->conv.stages[i].width,
               inner_width = (double)s->conv.stages[i].inner;
        double widest = width > inner_width ? width : inner_width;
        others += (double)s->conv.stages[i].blocks * 18 * widest * widest;
    }
    double sample = (double)s->dhen.features * d,
           pairs = (double)s->dhen.features * (double)s->dhen.features;
    others += sample * ff + (double)s->dhen.inputs * ff +
              blocks * (sample * sample + (pairs + sample) * ff + pairs);
    double latent = (double)(s->mla.q_lora_rank + s->mla.kv_lora_rank + s->mla.qk_rope_head_dim);
    double values = (double)s->n_heads * (double)s->mla.v_head_dim;
    others += blocks * (latent * (d + inner + values) + values * d);
    double routed = (double)s->moe.experts * (double)s->moe.d_ff + (double)s->moe.shared_d_ff;
    others += blocks * 2 * d * (double)s->moe.latent;
    others += blocks * (3 * d * routed + 4 * (double)s->moe.experts * (d + (double)s->moe.d_ff));
    const struct model_mixer *m = &s->mixer;
    double mixed = (double)m->heads * (double)m->head_dim, keyed = (double)(m->groups * m->state);
    others += blocks * (d + (double)(m->conv + m->state + m->dt_rank) + 8) *
              (3 * mixed + 2 * keyed + 2 * (double)(m->heads + m->state + m->dt_rank));
    const struct model_full *f = &s->full;
    double heads = (double)(s->n_heads > f->n_heads ? s->n_heads : f->n_heads);
    double head =
        (double)(s->d_kv > f->d_kv ? s->d_kv : f->d_kv) + (double)(s->value_dim + f->value_dim);
    others +=
        blocks * (8 * d * heads * head + 2 * heads * head + 3 * d * (s->moe.beside ? ff + 2 : 0));
    const struct model_compressed *z = &s->compressed;
    double outs = (double)z->o_groups * (double)z->o_lora_rank;
    double indexes = (double)z->index_heads * (double)z->index_head_dim;
    double streams = (double)(s->hyper > 1 ? s->hyper : 0);
    others += blocks * (outs * (inner + d) + (double)z->q_lora_rank * (d + inner + indexes + 1) +
                           (double)z->index_heads * d +
                           4 * (head + (double)z->index_head_dim + 1) *
                               (d + (double)(z->ratio + z->heavy_ratio) + 1));
    others += (blocks + 1) * 2 * ((2 + streams) * streams * (streams * d + 1) + 3);
    others += s->blocks ? blocks * 3 * d * (double)MODEL_MAX_WIDTH : 0;
    double indexed = (double)s->mla.index_heads * (double)s->mla.index_head_dim;
    others += blocks * (indexed + (double)(s->mla.index_heads + s->mla.index_head_dim)) *
              (latent + d + 2);
    return others + (double)s->classes * (d + (double)s->conv.stages[MODEL_CONV_STAGES - 1].width) +
           (2 * (double)s->vocab + (double)s->max_positions) * d +
           blocks * (8 * d * inner + 3 * d * ff);
}

/* What only one family has. */
#define ONLY(family_, member)                                                                      \
    {                                                                                              \
#member, s->member> 0, s->member> 0 && s->family == (family_)                              \
    }

/* What a family's shape cannot do without, and what another's has no use for. */
static enum status shape_check_given(const struct model_shape *s, struct config_node root,
    const struct config_table *table, struct diag *diag)
{
    bool convolves = s->family == MODEL_CONVNET, ranks = s->family == MODEL_DHEN;
    bool has_words = s->image_size == 0 && !ranks;
    const struct {
        const char *key;
        bool given, needed;
    } keys[] = {{"d_model", s->d_model > 0, !convolves},
        {"d_ff", s->d_ff > 0, !convolves && (s->d_ff > 0 || s->mixer.kind != MIXER_MAMBA2)},
        {"n_heads", s->n_heads > 0, !convolves}, {"n_layers", s->n_layers > 0, !convolves},
        {"head", s->head != BERT_PRETRAINING,
            s->head != BERT_PRETRAINING && s->family == MODEL_BERT},
        ONLY(MODEL_LLAMA, sliding_window), ONLY(MODEL_LLAMA, max_window_layers),
        ONLY(MODEL_LLAMA, full_attention_every), ONLY(MODEL_LLAMA, qk_norm),
        ONLY(MODEL_LLAMA, post_norms), ONLY(MODEL_LLAMA, fused_projections),
        ONLY(MODEL_LLAMA, gelu_gate), ONLY(MODEL_LLAMA, scaled_embedding),
        {"moe", s->moe.experts > 0, s->moe.experts > 0 && s->family == MODEL_LLAMA},
        {"mla", s->mla.kv_lora_rank > 0, s->mla.kv_lora_rank > 0 && s->family == MODEL_LLAMA},
        ONLY(MODEL_LLAMA, output_bias), ONLY(MODEL_LLAMA, attention_sinks),
        ONLY(MODEL_LLAMA, attention_gate), ONLY(MODEL_LLAMA, qk_plain_norm),
        ONLY(MODEL_LLAMA, full_unrotated), ONLY(MODEL_LLAMA, attention_chunk),
        {"compressed", s->compressed.pattern != NULL,
            s->compressed.pattern && s->family == MODEL_LLAMA},
        ONLY(MODEL_LLAMA, hyper), ONLY(MODEL_LLAMA, value_dim), ONLY(MODEL_LLAMA, value_norm),
        ONLY(MODEL_LLAMA, qk_norm_whole),
        {"full", model_has_full(s), model_has_full(s) && s->family == MODEL_LLAMA},
        {"attention_pattern", s->attention_pattern != NULL,
            s->attention_pattern && s->family == MODEL_LLAMA},
        {"blocks", s->blocks != NULL, s->blocks && s->family == MODEL_LLAMA},
        {"mixer", s->mixer.kind > 0, s->mixer.kind > 0 && s->family == MODEL_LLAMA},
        ONLY(MODEL_LLAMA, attention_softcap), ONLY(MODEL_LLAMA, logit_softcap),
        ONLY(MODEL_LLAMA, mtp_layers), ONLY(MODEL_LLAMA, squared_relu),
        {"pattern", s->pattern != NULL, s->pattern && s->family == MODEL_LLAMA},
        {"vocab", s->vocab > 0, has_words}, {"conv", s->conv.stages[0].blocks > 0, convolves},
        {"dhen", s->dhen.features > 0, ranks}};
    enum status status = STATUS_OK;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        if (keys[i].needed && !keys[i].given)
            status = diag_input(
                diag, config_pos(root), "%s has no '%s'; it is required", table->what, keys[i].key);
        else if (keys[i].given && !keys[i].needed)
            status = diag_input(diag, config_pos(config_find(root, keys[i].key)),
                "family '%s' has no '%s'; leave it out", model_family_names[s->family],
                keys[i].key);
    }
    if ((s->image_size == 0) != (s->family != MODEL_VIT && !convolves))
        status =
            diag_input(diag, config_pos(root), "image_size is for vit and convnet; leave it out");
    return status;
}

/* Where the file says this field; the whole file when it does not. */
static struct source_pos field_pos(
    struct config_node root, const struct config_table *table, size_t offset)
{
    for (int i = 0; i < table->n_fields; i++) {
        struct config_node node = config_find(root, table->fields[i].key);
        if (table->fields[i].offset == offset && node.doc)
            return config_pos(node);
    }
    return config_pos(root);
}

static enum status check_pattern(const struct model_shape *s, struct config_node root,
    const struct config_table *table, struct diag *diag)
{
    struct source_pos pos = field_pos(root, table, offsetof(struct model_shape, pattern));
    size_t known = s->pattern ? strspn(s->pattern, "M*-E") : 0,
           n = s->pattern ? strlen(s->pattern) : 0;
    if (known < n)
        return diag_input(diag, pos,
            "block %zu of the pattern is '%c'; modelled are M (the mixer), * (attention), - (the "
            "feed-forward layer) and E (experts)",
            known + 1, s->pattern[known]);
    if (s->pattern && n != (size_t)s->n_layers)
        return diag_input(diag, pos,
            "the pattern has %zu blocks, and the model %ld; one character is one block", n,
            (long)s->n_layers);
    return STATUS_OK;
}

/* What the file leaves to be derived, then what no single field shows. */
static enum status shape_finish(struct model_shape *s, struct config_node root,
    const struct config_table *table, struct diag *diag)
{
    enum status given = shape_check_given(s, root, table, diag);
    if (given)
        return given;
    for (int i = 0; i < MODEL_CONV_STAGES; i++) {
        struct model_conv_stage *stage = &s->conv.stages[i];
        stage->inner = stage->inner ? stage->inner : stage->width;
        stage->groups = stage->groups ? stage->groups : 1;
    }
    if (s->n_kv_heads == 0)
        s->n_kv_heads = s->n_heads;
    if (s->mla.kv_lora_rank > 0 && s->d_kv == 0)
        s->d_kv = s->mla.qk_nope_head_dim + s->mla.qk_rope_head_dim;
    if (s->family == MODEL_T5 && s->n_decoder_layers == 0 &&
        !config_find(root, "n_decoder_layers").doc)
        s->n_decoder_layers = s->n_layers;
    if (s->d_kv == 0 && s->n_heads > 0 && s->d_model % s->n_heads)
        return diag_input(diag, field_pos(root, table, offsetof(struct model_shape, n_heads)),
            "%ld heads do not divide d_model %ld; choose another number or give the head dimension",
            (long)s->n_heads, (long)s->d_model);
    if (s->d_kv == 0 && s->n_heads > 0)
        s->d_kv = s->d_model / s->n_heads;
    enum status pattern = check_pattern(s, root, table, diag);
    if (pattern)
        return pattern;
    size_t offset = 0;
    const char *wrong = model_family_code(s)->check(s, &offset);
    if (wrong)
        return diag_input(diag, field_pos(root, table, offset), "%s", wrong);
    if (params_bound(s) > MAX_PARAMS)
        return diag_input(diag, field_pos(root, table, offsetof(struct model_shape, d_model)),
            "up to %.3g parameters; a model has at most %.3g", params_bound(s), MAX_PARAMS);
    return STATUS_OK;
}

static enum status read_own(
    struct model_shape *out, struct config_node root, struct arena *arena, struct diag *diag)
{
    const char *family = config_text(config_find(root, "family"));
    for (int i = 0; i < MODEL_FAMILY_COUNT; i++)
        if (strcmp(family, model_family_names[i]) == 0)
            *out = model_family_code(&(struct model_shape){.family = i})->defaults;
    return config_read(root, &model_shape_table, out, arena, NULL, diag);
}

static enum status read_document(struct model_shape *out, struct config_node root, bool force,
    struct arena *arena, struct diag *diag)
{
    *out = (struct model_shape){0};
    const struct config_table *table = &model_shape_table;
    bool theirs = config_find(root, "model_type").doc || config_find(root, "architectures").doc ||
                  config_find(root, "hidden_size").doc;
    bool ours = !theirs || config_find(root, "family").doc;
    enum status status = ours ? read_own(out, root, arena, diag)
                              : huggingface_read(out, root, force, &table, arena, diag);
    return status ? status : shape_finish(out, root, table, diag);
}

enum status model_load(
    struct model_shape *out, const char *path, bool force, struct arena *arena, struct diag *diag)
{
    struct config_doc *doc = NULL;
    enum status status = config_load_kind(&doc, FILES_MODELS, path, diag);
    if (status)
        return status;
    status = read_document(out, config_root(doc), force, arena, diag);
    config_free(doc);
    return status;
}

enum status model_parse(struct model_shape *out, const char *name, const char *text, size_t n,
    struct arena *arena, struct diag *diag)
{
    struct config_doc *doc = NULL;
    enum status status = config_parse(&doc, name, text, n, diag);
    if (status)
        return status;
    status = read_document(out, config_root(doc), false, arena, diag);
    config_free(doc);
    return status;
}
