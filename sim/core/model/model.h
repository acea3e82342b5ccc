/* A model as layers of kernels. Families: T5 (encoder-decoder), GPT (GPT-2/minGPT/MPT-like
 * decoder), Llama (RMSNorm, SwiGLU, GQA), NeoX (GPT-NeoX, Falcon), BERT (encoder), of images ViT
 * and DeepViT (encoder), convnet (ResNet, ResNeXt, RegNet), and DHEN, which ranks by many features
 * of a sample.
 *
 * A model is read from a file of ours (under scenarios/models/) or from a Hugging Face config.json;
 * both give a struct model_shape. model_build() turns the shape into layers: what FSDP can wrap,
 * each with its parameter tensors. model_segments() turns layers and a batch into programs: the
 * kernels and communications of the forward and backward pass and the tensors that live between
 * them, as eager PyTorch launches and keeps them (the autograd rules are in model/tape.h).
 *
 * Layers are in forward order: layer 0 is the root (shared embedding, final norms, head: what no
 * block owns); its kernels come in two programs, SEGMENT_ENTRY before the first block (embedding)
 * and SEGMENT_EXIT after the last (final norm, head, loss). T5's decoder entry (embedding of the
 * decoder) and encoder exit norm run at the stacks' borders: they are blocks' neighbours in the
 * list given by model_segments(). */
#ifndef FLOPCAST_MODEL_MODEL_H
#define FLOPCAST_MODEL_MODEL_H

#include "base/arena.h"
#include "base/status.h"
#include "coll/coll.h"
#include "kernel/kernel.h"
#include "mesh/mesh.h"
#include "model/kernels.h"
#include "model/parallel.h"
#include "model/recompute.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum model_family {
    MODEL_T5,
    MODEL_GPT,
    MODEL_LLAMA,
    MODEL_NEOX,
    MODEL_BERT,
    MODEL_VIT,
    MODEL_CONVNET,
    MODEL_DHEN,
    MODEL_FAMILY_COUNT
};
extern const char *const
    model_family_names[MODEL_FAMILY_COUNT +
                       1]; /* "t5", "gpt", "llama", "neox", "bert", "vit", "convnet", "dhen" */

/* basic: two windows of 3 x 3. bottleneck: 1 x 1 to the inner width, 3 x 3 in groups, 1 x 1 to the
 * width. */
enum conv_block { CONV_BASIC, CONV_BOTTLENECK, CONV_BLOCK_COUNT };
extern const char *const conv_block_names[CONV_BLOCK_COUNT + 1]; /* "basic", "bottleneck" */

enum { MODEL_CONV_STAGES = 4 };
struct model_conv_stage {
    int64_t blocks, width, inner,
        groups; /* channels; inner, by default width, and groups, by default 1: bottleneck */
};
struct model_conv {
    int block; /* enum conv_block */
    int64_t stem_width;
    bool stem_pool; /* ResNet: 7 x 7 and a max pool, both of stride 2; false, RegNet: 3 x 3 of
                       stride 2 */
    double squeeze; /* RegNet-Y: squeeze-and-excitation to this share of the block's input width; 0:
                       none */
    struct model_conv_stage stages[MODEL_CONV_STAGES];
};

enum table_format { TABLES_FP16, TABLES_FP32, TABLES_FORMAT_COUNT };
extern const char *const table_format_names[TABLES_FORMAT_COUNT + 1]; /* "fp16", "fp32" */

/* DHEN: what a sample is, and which modules a layer's ensemble has (model/dhen.c). */
struct model_dhen {
    int64_t features; /* embeddings of a sample, the one made of its dense inputs included */
    int64_t inputs;   /* dense numbers of a sample */
    bool linear, dot, attention, convolution, cross;
    struct {
        double params; /* elements of all tables of embeddings; shared out over all ranks, by model
                          parallelism */
        int64_t pooling; /* rows that are summed to make a feature */
        int format;      /* enum table_format */
    } tables;
};

/* What stands on BERT's encoder, and what it is trained for, as classes of Hugging Face
 * transformers. pretraining: BertForPreTraining, masked words and the next sentence; masked_lm:
 * BertForMaskedLM, words alone and no pooler; classification: BertForSequenceClassification, a
 * class of each sequence from the pooler; none: BertModel, which ends in the pooler. */
enum bert_head {
    BERT_PRETRAINING,
    BERT_MASKED_LM,
    BERT_CLASSIFICATION,
    BERT_NO_HEAD,
    BERT_HEAD_COUNT
};
extern const char *const
    bert_head_names[BERT_HEAD_COUNT + 1]; /* "pretraining", "masked_lm", "classification", "none" */

/* Mixture of experts (Llama): of a block's experts, each a feed-forward layer, gated or
 * (model_shape.squared_relu) of two matrices, every token goes through those that its router scores
 * highest, and through the shared expert. */
enum router { ROUTER_SOFTMAX, ROUTER_SIGMOID, ROUTER_PLAIN_SIGMOID, ROUTER_COUNT };
/* "softmax"; "sigmoid", with a bias that no gradient moves; "plain_sigmoid", without */
extern const char *const router_names[ROUTER_COUNT + 1];
struct model_moe {
    int64_t experts;      /* routed ones of a block; 0: feed-forward layers are dense */
    int64_t per_token;    /* of them that a token goes through */
    int64_t d_ff;         /* width of each */
    int64_t shared_d_ff;  /* width of the shared expert, of all shared ones together; 0: none */
    bool shared_gate;     /* its output is multiplied by sigmoid(x w) (Qwen2-MoE) */
    int64_t dense_layers; /* the number of first blocks whose feed-forward layer is dense, of width
                             model_shape.d_ff */
    int64_t every;  /* of those after them the blocks that have experts are those whose number, from
                     * 1 on, is a multiple of it; 0 and 1: all */
    int router;     /* enum router */
    int64_t groups; /* experts lie in as many groups, of which the best are chosen first (DeepSeek);
                       0 and 1: none */
    int64_t kept_groups; /* how many of them; 0: all */
    bool normalised;     /* the chosen scores are divided by their sum, or scaled */
    bool biases;         /* of the router and of each expert's matrices (gpt-oss) */
    bool beside; /* a dense feed-forward layer of model_shape.d_ff stands beside the experts, and
                  * each has norms around it (Gemma 4) */
    int64_t hash_layers; /* first blocks whose experts a table of words chooses, so that the router
                            has no bias */
    int64_t latent; /* routed experts take and give rows of this width, which one matrix makes of
                     * the residual stream and another brings back (Nemotron 3); 0: they work on the
                     * residual stream */
    int64_t local;  /* experts that this rank holds; 0: all. In no file: a strategy narrows a shape
                     * by it before it builds the rank's share of the model */
};

/* Multi-head latent attention (Llama; DeepSeek-V2, arXiv 2405.04434): keys and values are made of a
 * narrow latent, so are queries where q_lora_rank says so. A head's query and key have a part
 * without positions and a rotary part, which for keys is one for all heads: model_shape.d_kv is the
 * sum of both. */
struct model_mla {
    int64_t kv_lora_rank; /* 0: attention is not latent */
    int64_t q_lora_rank;  /* 0: queries are made of the residual stream itself */
    int64_t qk_nope_head_dim, qk_rope_head_dim, v_head_dim;
    /* Sparse attention (DeepSeek-V3.2): an indexer with index_heads narrow heads scores all pairs,
     * a query attends to the index_topk keys with the highest scores. 0: to all. */
    int64_t index_heads, index_head_dim, index_topk;
};

/* What blocks have in the place of attention (Llama; model/mixer.c): a gated delta rule
 * (Qwen3-Next), a selective scan (Mamba, in Jamba) or its scalar form (Mamba 2). */
enum mixer_kind { MIXER_NONE, MIXER_DELTANET, MIXER_MAMBA, MIXER_MAMBA2, MIXER_COUNT };
extern const char *const mixer_names[MIXER_COUNT + 1]; /* "none", "deltanet", "mamba", "mamba2" */
struct model_mixer {
    int kind;
    int64_t heads, head_dim; /* of values; Mamba: one head of all channels */
    int64_t groups, state;   /* heads of keys and queries (B and C), and their dimension */
    int64_t conv;            /* length of the causal filter of each channel */
    int64_t dt_rank;         /* Mamba */
    int64_t attention_every; /* blocks whose number, from 1 on, leaves attention_at over this have
                                attention; 0: none */
    int64_t attention_at;
    bool apart; /* DeltaNet: four matrices in the place of two (Qwen3.5) */
};

/* What blocks that see all keys have where others have a window (Llama: MiMo-V2, Gemma 4;
 * model/blocks.c); 0: what those have. */
struct model_full {
    int64_t n_heads, n_kv_heads, d_kv, value_dim;
    double rotary_share;
    bool keys_are_values; /* no matrix of values: they are the keys before norm and positions (Gemma
                             4) */
    bool no_sinks;        /* attention_sinks are of blocks with a window alone (MiMo-V2) */
};

/* Attention to a window and to compressed keys (Llama: DeepSeek-V4; model/compressed.c). */
struct model_compressed {
    const char *pattern; /* a character for each block: w, a window alone; c, keys of `ratio` tokens
                          * each, chosen by an indexer; h, all keys, of heavy_ratio tokens each.
                          * NULL: attention is not compressed */
    int64_t q_lora_rank, o_groups, o_lora_rank;
    int64_t ratio, heavy_ratio;
    int64_t index_heads, index_head_dim, index_topk;
};

struct model_shape {
    const char *name;   /* "t5-11b" */
    const char *source; /* where the shape comes from; "assumed ..." where it is */
    int family;         /* enum model_family */
    int head;           /* BERT: enum bert_head */
    int64_t d_model, d_ff, d_kv, n_heads,
        n_kv_heads;           /* d_kv: head dimension; n_kv_heads = n_heads without GQA */
    int64_t n_layers;         /* T5: encoder layers */
    int64_t n_decoder_layers; /* T5 only; 0 for models of one stack */
    int64_t vocab;
    int64_t max_positions;    /* rows of a learned position embedding (GPT, BERT), 0 = none */
    int64_t relative_buckets; /* T5: 32 */
    int64_t token_types;      /* BERT: 2, sentences A and B */
    double head_share;        /* BERT: share of the positions whose word the head predicts */
    int64_t sliding_window; /* Llama: keys that a position attends to, itself and those just before
                             * it, where attention is fused (naive attention multiplies all and
                             * masks); 0: all before it */
    int64_t max_window_layers;    /* Llama: the number of first blocks that attend to all keys
                                     nevertheless (Qwen2) */
    int64_t full_attention_every; /* Llama: so does every block of this number (Gemma 2: 2, Gemma 3:
                                     6); 0: none */
    bool qk_norm;    /* Llama: an RMSNorm of each head's query and key (Qwen3, Gemma 3) */
    bool post_norms; /* Llama: a norm behind attention and feed-forward layer, too (Gemma 2, Gemma
                        3) */
    bool fused_projections; /* Llama: one matrix for q, k and v, and one for gate and up (Phi-3) */
    bool gelu_gate;         /* Llama: the gate is tanh-GELU in one kernel (Gemma), not SiLU */
    bool scaled_embedding;  /* Llama: embeddings are multiplied by a constant (Gemma) */
    double attention_softcap, logit_softcap; /* Llama: c tanh(x / c) of scores, of logits (Gemma 2);
                                              * 0: none. Flash attention does it on the way */
    double rotary_share; /* Llama 1, NeoX: share of each head that rotary positions turn; 0: none */
    bool parallel_residual; /* NeoX: attention and feed-forward layer read the same and are added
                               together */
    bool shared_norm;       /* NeoX: they share their norm, too (Falcon 7B) */
    bool separate_qkv;      /* GPT: three matrices for q, k and v, not one (OPT) */
    bool relu;              /* GPT: the feed-forward layer's function is ReLU (OPT), not GELU */
    bool embedding_norm;    /* GPT: a norm behind the embedding (BLOOM) */
    bool keeps_attention;   /* GPT: dropout on the residual stream only, not on the weights of
                               attention (OPT) */
    bool tied_embeddings;
    bool gated_ffn; /* gated-GELU (T5 v1.1), SwiGLU (Llama): three matrices instead of two */
    bool biases;    /* GPT: linear layers and norms carry biases; Llama: q, k and v do (Qwen2) */
    bool composed_gelu; /* tanh-GELU written out in Python ("gelu_new": GPT-2, minGPT, T5 v1.1): 8
                           kernels, not 1 */
    bool low_precision_norm; /* LayerNorm takes and gives the storage format even under autocast
                              * (MPT's low_precision_layernorm); without autocast every LayerNorm
                              * does */
    bool sequence_first;     /* GPT, BERT: hidden states lie as (sequence, batch, width), so that
                              * batched GEMMs read q, k and v of all heads where they lie
                              * (Megatron-LM; NVIDIA's DeepLearningExamples) */
    bool fused_softmax;      /* GPT: the GEMM scales, and one kernel masks and normalises the scores
                                (Megatron-LM) */
    bool block_locals;  /* GPT: a block's forward has what norms and sub-layers give in variables
                         * until it returns (MPTBlock); false: an expression, whose parts go when
                         * they are used (minGPT) */
    double dropout;     /* probability in training; 0 launches no dropout kernels */
    int64_t image_size; /* positions along a side; 0: a model of tokens, which has no patch and
                           mixes no heads */
    int64_t classes;    /* of the head; of BERT's heads that of classification */
    int64_t patch;      /* ViT: positions along a side of a patch */
    bool mixes_heads;   /* DeepViT */
    struct model_conv conv;
    struct model_dhen dhen;
    struct model_moe moe;
    struct model_mla mla;
    bool output_bias;     /* Llama: with biases, the output projection has one, too (gpt-oss) */
    bool attention_sinks; /* Llama: a learned logit of each head in the sum of softmax (gpt-oss) */
    bool attention_gate;  /* Llama: q_proj gives a gate, too, whose sigmoid multiplies the context
                             (Qwen3-Next) */
    bool qk_plain_norm;  /* Llama: heads of queries and keys are normed without weights (Llama 4) */
    bool full_unrotated; /* Llama: blocks of full_attention_every turn no positions (Llama 4) */
    int64_t attention_chunk; /* Llama: a position sees those before it in its own chunk, of this
                              * length, except blocks of full_attention_every; 0: all before it. As
                              * sliding_window, where attention is fused */
    struct model_mixer mixer;
    const char *pattern; /* Llama: the one sub-layer of each block, a character each, "M-M*-"
                          * (Nemotron-H): M the mixer,
                          * * attention, - the feed-forward layer, E experts; NULL: blocks have a
                          * feed-forward layer behind it */
    bool squared_relu;  /* Llama: two matrices and ReLU squared in place of the gate (Nemotron-H) */
    int64_t value_dim;  /* Llama: dimension of a value's head; 0: d_kv */
    bool value_norm;    /* Llama: values' heads are normed without weights (Gemma 4) */
    bool qk_norm_whole; /* Llama: one RMSNorm over all heads of queries, one of keys (MiniMax-M2) */
    bool keys_are_values;          /* of struct model_full. In no file, as moe.local */
    const char *attention_pattern; /* Llama: a character for each block: f sees all keys, w the
                                    * sliding_window; NULL: as full_attention_every says */
    struct model_full full;
    struct model_compressed compressed;
    int64_t hyper;        /* Llama: streams of the residual stream, which hyper-connections mix
                             (DeepSeek-V4); 0: one */
    const char *blocks;   /* Llama: key heads and d_ff of blocks that differ one by one
                           * (model/blocks.c); NULL: they do not */
    int64_t blocks_ranks; /* tensor ranks that the list's numbers are cut over; 0: none. In no file,
                             as moe.local */
    int64_t mtp_layers;   /* Llama: layers of multi-token prediction behind the last block
                             (model/mtp.c) */
    int64_t mtp_width;    /* columns of their projections that this rank has; 0: all. In no file, as
                             moe.local */
};

/* The layer, from 1 on, whose kind this one is of: one of multi-token prediction is as the last
 * block. */
static inline int64_t model_kind_of(const struct model_shape *shape, int64_t layer)
{
    return shape->mtp_layers > 0 && layer > shape->n_layers ? shape->n_layers : layer;
}

/* The shape with what this layer's block has alone: the same, or a copy in the arena. */
const struct model_shape *model_block_shape(
    const struct model_shape *shape, int64_t layer, struct arena *arena);
/* Key heads of a layer's attention, 0: it has none; elements of keys and values of a position. */
int64_t model_key_heads(const struct model_shape *shape, int64_t layer);
int64_t model_cached_width(const struct model_shape *shape, int64_t layer);
bool model_has_full(const struct model_shape *shape);
/* Columns of what blocks hand on. */
int64_t model_stream_width(const struct model_shape *shape);

/* Experts of a block that this rank holds; 0: its feed-forward layer is dense. block: from 0 on. */
int64_t model_local_experts(const struct model_shape *shape, int64_t block);
/* Width of the rows that the routed experts take and give. */
static inline int64_t model_routed_width(const struct model_shape *shape)
{
    return shape->moe.latent > 0 ? shape->moe.latent : shape->d_model;
}
/* Parameters that a token meets: all but those of the experts that it does not go through.
 * shape.moe.local 0. */
int64_t model_active_params(const struct model_shape *shape, int64_t params);

/* Fused attention is possible: the scores are only scaled, masked and normalised by softmax. */
bool model_takes_flash(const struct model_shape *shape);

/* The window of a layer's fused attention in keys; 0: all before. */
int64_t model_window(const struct model_shape *shape, int layer);
/* Whether it has the mixer; attention. */
bool model_mixes(const struct model_shape *shape, int layer);
bool model_attends(const struct model_shape *shape, int layer);
/* The window is 0 for layer 0, the root; block i is layer i + 1. Its chunk; 0: none. */
int64_t model_chunk(const struct model_shape *shape, int layer);

/* Tokens of a sample as blocks see it, where the model says how many: ViT: an image's patches and
 * the class token; convnet: 1; DHEN: its features. 0: texts, which are as long as the workload
 * says. */
int64_t model_sample_tokens(const struct model_shape *shape);

/* Bytes of the largest tensor of a micro-step, at most. Sizes are kept in int64 and counted in
 * double: at most MODEL_MAX_TENSOR_BYTES both are exact. */
#define MODEL_MAX_TENSOR_BYTES 0x1p53
double model_largest_tensor_bytes(
    const struct model_shape *shape, int64_t micro_batch, int64_t seq_len, int64_t decoder_seq_len);

/* Bytes of the embedding tables of one of these ranks, and of what row-wise Adagrad keeps for them
 * (an FP32 sum to a row: fbgemm's EXACT_ROWWISE_ADAGRAD); bytes. 0: the model has none. */
int64_t model_table_bytes(const struct model_shape *shape, int64_t ranks);
int64_t model_table_state_bytes(const struct model_shape *shape, int64_t ranks);

/* One parameter tensor. Tensors stand in the order of layers; within a layer, of
 * model.parameters(). (In PyTorch the root's later tensors, such as the final norm, come after the
 * blocks'; here a layer's tensors are one run.) */
struct model_tensor {
    const char
        *name; /* as in PyTorch's state_dict: "encoder.block.0.layer.0.SelfAttention.q.weight" */
    int64_t rows, cols; /* cols 1 for vectors */
    int64_t numel;
    int layer;      /* the layer that owns it */
    bool frozen;    /* not trained: it has no gradient */
    unsigned split; /* axes over whose ranks it is cut, 1 << AXIS_TP and the like; 0: each has all
                       of it */
    double counted; /* share of its work that counts as model FLOP of this rank: elements of the
                     * whole tensor over those that all ranks of AXIS_TP hold together; 1 where they
                     * hold each once */
};

enum layer_role { LAYER_ROOT, LAYER_ENCODER_BLOCK, LAYER_DECODER_BLOCK };

struct model_layer {
    const char *name; /* "encoder.block.0" */
    enum layer_role role;
    int first_tensor, n_tensors; /* into model->tensors */
    int64_t params;
    int64_t trained; /* those of them that are not frozen */
    int alike;  /* index of the first layer with the same shape and role: programs can be shared */
    int number; /* its index in the whole model, of which this may be a stage */
};

/* The ends of a model: the embedding, and the head with the loss. */
enum { MODEL_ENTRY = 1, MODEL_EXIT = 2, MODEL_BOTH_ENDS = MODEL_ENTRY | MODEL_EXIT };

struct model {
    struct model_shape shape;
    struct model_layer *layers; /* layers[0] is the root */
    int n_layers;
    struct model_tensor *tensors;
    int n_tensors;
    int64_t params;             /* all, tied ones once */
    int64_t trained;            /* those of them that are not frozen */
    struct model_tensor tables; /* DHEN's tables of embeddings, as one; no layer's, no strategy
                                 * touches them. numel 0: there are none */
    unsigned ends;              /* that this model, or stage of one, has */
    int n_chunks, *chunks; /* of a stage: the first layer of each model chunk; 0: the whole model */
    /* Buffers of BatchNorm layers: running mean and variance of their channels, and a counter a
     * layer. */
    int n_batch_norms;
    int64_t batch_norm_channels;
};

/* Of a whole model, the blocks that pipeline stages share; those of multi-token prediction are
 * where the head is. */
static inline int model_blocks(const struct model *model)
{
    return model->n_layers - 1 - (int)model->shape.mtp_layers;
}

/* Megatron-LM's moe_token_dispatcher_type: how tokens come to the ranks that hold their experts. */
enum token_dispatcher {
    DISPATCHER_ALLTOALL,
    DISPATCHER_ALLGATHER,
    DISPATCHER_FLEX,
    DISPATCHER_COUNT
};
extern const char
    *const token_dispatcher_names[DISPATCHER_COUNT + 1]; /* "alltoall", "allgather", "flex" */

/* Its moe_flex_dispatcher_backend: whose kernels do it. */
enum flex_backend { FLEX_DEEPEP, FLEX_HYBRIDEP, FLEX_BACKEND_COUNT };
extern const char *const flex_backend_names[FLEX_BACKEND_COUNT + 1]; /* "deepep", "hybridep" */

/* What a rank computes on in one micro-step. */
struct model_workload {
    int64_t micro_batch; /* sequences, images, samples */
    int64_t seq_len;     /* tokens of a sequence (T5: encoder side); else model_sample_tokens() */
    int64_t decoder_seq_len; /* T5: tokens of the decoder side; 0 for decoder-only models */
    enum dtype math;         /* GEMMs multiply in this */
    enum dtype storage; /* activations and parameters as GEMMs take them: BF16, FP16 or FP32 (TF32
                         * math has FP32 storage) */
    int attention;      /* enum attention_kernel */
    double document_pairs; /* of the pairs of positions of a sequence those within its documents, in
                            * the mean (kernel/documents.h); 0: it is one document */
    int cross_entropy;     /* enum cross_entropy */
    int fusion;            /* enum kernel_fusion */
    int rotary;            /* enum rotary_kind */
    int compiled;          /* enum compiled_part */
    bool autocast; /* torch.autocast around FP32 parameters: the residual stream, norms, softmax in
                    * FP32; what multiplies casts its inputs to the storage format, a kernel each */
    bool channels_last; /* images and what is made of them lie in NHWC; else in NCHW, PyTorch's
                           default */
    bool loss_fp32; /* eager: logits are cast to FP32 for the loss (PyTorch autocast and HF do) */
    bool neftune;   /* noise is added to the embeddings (NEFTune, arXiv 2310.05914; transformers'
                       hook) */
    bool nf4; /* frozen matrices of blocks lie in NF4, 4 bits an element (QLoRA): before each GEMM
               * its matrix is upcast into the storage format (bitsandbytes' dequantize kernel) */
    bool fp8; /* linear layers of blocks multiply in FP8, see model/tape.h */
    bool fp4; /* with it: in NVFP4 in place of FP8; fp8_recipe is not read */
    int fp8_recipe;    /* enum fp8_recipe */
    bool frozen_once;  /* a frozen matrix in FP8 lies there without its transpose, which is made for
                          each use */
    bool any_layout;   /* FP8 products with a scale of the whole operand take it as it lies, along
                        * either side: nothing is transposed (Blackwell; TransformerEngine's
                        * is_non_tn_fp8_gemm_supported()) */
    bool fp8_weights;  /* tensorwise: matrices come in FP8 (FSDP's float8 all-gather) */
    bool drops_logits; /* the training loop lets go of them before backward (torchtitan does; a loop
                        * that keeps its `outputs` does not) */
    struct model_parallel
        parallel;         /* sequences above are whole ones; the model is model_shard()'s */
    int expert_kernels;   /* enum expert_kernels */
    int token_dispatcher; /* enum token_dispatcher */
    double
        expert_imbalance; /* with expert parallelism: rows that the experts of this rank get, over
                           * the mean of ranks; 0 and 1: balanced, at most the number of ranks.
                           * Above 1 it is the busiest rank that is modelled, for which all wait */
    /* With it, in place of expert_imbalance: how unlike experts are in the tokens that they get,
     * the log-standard deviation of each one's share; 0: alike. Drawn for each block
     * (model_expert_load()), so that programs of blocks differ. */
    double expert_spread;
    int64_t expert_seed;
    bool shared_expert_overlap; /* Megatron-LM's moe_shared_expert_overlap: it runs beside dispatch
                                   and combine */
    int flex_backend;           /* enum flex_backend */
    double flex_sms;            /* SMs of its kernels: moe_deepep_num_sms, moe_hybridep_num_sms */
    bool aux_loss;              /* moe_router_load_balancing_type aux_loss, with a coefficient */
    bool unfused_permutation;   /* not moe_permute_fusion: rows go to experts and back by PyTorch's
                                   kernels */
    bool swiglu_fp8_input;  /* Megatron-LM's activation_func_fp8_input_store: tape_swiglu()'s input
                               is kept in FP8 */
    double expert_capacity; /* moe_expert_capacity_factor: an expert takes no more than this times
                             * its mean of a rank's tokens, what is over is dropped; 0: takes all */
    bool pad_to_capacity;   /* moe_pad_expert_input_to_capacity: and no fewer, so that no count is
                               exchanged */
    bool router_pads; /* moe_router_padding_for_quantization: experts' rows in FP8 are filled up
                       * where they are routed, not copied into place */
};

/* Bytes of an element of an operand in FP8 or NVFP4, with its share of the scales of blocks. */
double model_narrow_bytes(const struct model_workload *workload);
/* Whether backward passes want operands in FP8 or NVFP4 along their other side. */
bool model_turns_fp8(const struct model_workload *workload);
/* Whether this weight is kept in FP8 (or NVFP4) beside its transpose, as FUSION_TRANSFORMER_ENGINE
 * multiplies by it. */
bool model_keeps_fp8(const struct model *model, const struct model_workload *workload,
    const struct model_tensor *tensor);

/* Who gets how many tokens: experts alike, as benchmarks force them to be (Megatron-LM's
 * --moe-router-force-load-balancing, AutoModel's fake_balanced_gate), or as a router that is
 * trained has them. */
enum expert_routing { ROUTING_BALANCED, ROUTING_LEARNED, ROUTING_COUNT };
extern const char *const expert_routing_names[ROUTING_COUNT + 1]; /* "balanced", "learned" */

/* Log-standard deviation of the experts' shares with a learned router, for expert_spread. Of T
 * tokens, which a group of ranks routes at once, each to k of E experts, an expert's share has the
 * relative variance
 *
 *   V = exp(s^2) - 1 + (E/k - 1) / T
 *
 * the first part as popular experts stay so, the second as tokens choose independently
 * (multinomial). s: 0.4, assumed, between two measured ones (both recalled): 0.25 of all tokens of
 * a validation set, by the greatest of 64 experts, 0.5 to 0.7 above the mean, with a loss that
 * balances them (Wang et al., arXiv 2408.15664, MaxVio_global of table 2, over the 2.39 standard
 * deviations that the greatest of 64 is); 0.6 and more of a step, by 64 GB200 that reached 14.7 %
 * MFU with the learned router and 32.4 with forced balance (marin-community/marin issue 7668), as
 * its busiest GPU then has at least 2.2 times the mean. Times or over 1.6: one standard error.
 * Ignored: what a loss, a bias or a z-loss does to s, by their coefficients; that tokens of a text
 * are alike; training's first steps, which are worse. */
double model_learned_spread(
    const struct model_workload *workload, int64_t experts, int64_t per_token);

/* What the busiest of R ranks of n experts then has over the mean, expected: exp(z u - u^2 / 2),
 * where u^2 = ln(1 + V (1
 * - 1/R) / n) and z is the expected greatest of R normal draws (base/rng.h): sums of log-normal
 * shares as log-normal ones (Fenton 1960). */
double model_learned_load(
    const struct model_workload *workload, int64_t experts, int64_t per_token);

/* Rows of the busiest rank's experts over the mean of ranks, of a block (from 0 on): as
 * expert_imbalance says, or of shares that are log-normal and independent from expert to expert,
 * the sum over a rank's experts, the most of the ranks. For all micro-batches alike: experts that
 * are popular stay so. */
double model_expert_load(const struct model_workload *workload, int64_t experts, int64_t block);

/* Tokens that a micro-step processes on one rank: encoder plus decoder tokens. Where the model
 * fixes the tokens of a sample, samples: what throughput is counted in. */
int64_t model_tokens(const struct model *model, const struct model_workload *workload);

/* Bytes of the keys and values that a decoder block hands out as past_key_values (self-attention,
 * and cross-attention in T5); 0 for a block without them. Ignored: that those of GPT are views,
 * which hold the queries, too. */
int64_t model_cache_bytes(
    const struct model *model, const struct model_workload *workload, int layer);
/* Whether these are the tensors that autograd saves anyway, so that they cost nothing: so it is for
 * fused attention. torch.matmul saves separate copies in the layout of heads, unless the batch is
 * one. */
bool model_cache_is_saved(const struct model *model, const struct model_workload *workload);

enum model_op_kind {
    MODEL_KERNEL,
    MODEL_COMM, /* a collective, which begins when the op before it is done and runs beside those
                   that follow */
    MODEL_WAIT, /* those that follow begin when the communication before it is done; where comm.axes
                 * are set, the last one of these */
    MODEL_HOST_WAIT, /* the host goes on when all kernels before it are done (tensor.tolist(),
                        torch.nonzero) */
};

/* A collective of the ranks that differ in these axes. */
struct model_comm {
    enum coll_kind kind;
    unsigned axes; /* 1 << AXIS_TP and the like */
    double bytes;  /* of the whole message, as coll/coll.h has it */
    const struct coll_routing
        *routing; /* an all_to_all of tokens as DeepEP moves them; NULL: NCCL's */
};

/* An op of a program: a kernel or a communication. */
struct model_op {
    enum model_op_kind kind;
    const char *name; /* "layer.0.SelfAttention.q", "attn.softmax", "tables/all_to_all"; backward:
                       * "attn.c_attn.dgrad", "attn.c_attn.wgrad" */
    struct model_comm comm; /* MODEL_COMM, axes: MODEL_WAIT; the rest: MODEL_KERNEL */
    struct kernel_work work;
    double model_flop;  /* of the model: GEMMs and attention over all pairs (ATTENTION_FLOP_FULL). A
                         * causal flash kernel does half of that (work.flop), its backward 2.5 times
                         * its forward, not 2 */
    double masked_flop; /* what of model_flop the mask hides, causal and of documents: not in
                           ATTENTION_FLOP_CAUSAL */
    int param_grad; /* backward: index of the parameter tensor whose gradient is complete after this
                       kernel, else -1 */
    bool partial;   /* that gradient is this rank's part of a sum over AXIS_TP, whose ranks have the
                     * parameter alike, each for its rows or heads (norms and biases of row layers
                     * with sequence; norms of heads) */
    int param_share; /* backward: index of the tensor of whose gradient this kernel makes the first
                        share, which is held until the others come (tied embeddings), else -1;
                        counts as param_grad does */
    int param_use;   /* index of the matrix that this kernel multiplies by or looks up in, else -1;
                        counts as param_grad does */
    unsigned parts;  /* forward: of which parts it is, 1 << RECOMPUTE_CORE_ATTN and the like */
    int matrices; /* of experts that the kernel stands for, each a separate parameter there; 0: no
                     experts' */
    bool inner; /* the call into C++ that launched the op before launches it, too (host.inner_issue)
                 */
    bool apart; /* torch.compile leaves the kernel as it is */
    bool mm;    /* forward: aten.mm, a product with one matrix and without bias (with one it is
                 * aten.addmm, of all experts at once aten._grouped_mm), but a router's */
    /* Forward: selective activation checkpointing keeps what it computes and does not run it again,
     * as torchtitan's list says (_op_sac_save_list, the only one of a framework): every second
     * aten.mm, from the first, without those of routers, which it does not count either; fused
     * attention; reduce-scatters and all_to_alls, DeepEP's dispatch and combine too (recalled; from
     * late 2025 on); copies to the host, of the numbers of rows, so that the host does not wait
     * again (recalled). All else is made again, products of experts and those with a bias too.
     * TransformerEngine's products and attention, which no list names, count as PyTorch's. Ignored:
     * the maxima of FP8 inputs, which the list has; that torch.compile keeps nothing that backward
     * does not need. */
    bool kept;
};

/* The gradient of a linear layer's matrix, which nothing else in backward waits for. */
static inline bool model_op_is_weight_gradient(const struct model_op *op)
{
    return op->kind == MODEL_KERNEL && op->work.kind == KERNEL_GEMM &&
           (op->param_grad >= 0 || op->param_share >= 0);
}

/* A tensor that lives in HBM during a layer's forward and backward pass. Indices count ops within
 * the program's forward or backward list. A tensor is allocated just before kernel born runs and
 * released just after its last use. */
struct model_activation {
    const char *name;
    int64_t bytes;
    bool born_in_backward; /* born is an index into backward (a gradient or a temporary of it) */
    int born;
    int forward_last;  /* last forward kernel that uses it; -1 when born in backward */
    int backward_last; /* last backward kernel that uses it; -1: not needed in backward */
};

/* A layer's (or entry's, exit's) kernels and tensors for one micro-batch. The input of the program
 * (the output of the segment before it, whose output_bytes say its size) is not among the tensors:
 * it is the activation checkpoint that the caller keeps until the program's backward is done (but
 * see drops_input). The output is among them.
 *
 * Gradients at the borders: the gradient of the output is an activation born at backward kernel 0,
 * that of the input one that lives to the last backward kernel (often the same one: the residual
 * stream). So the caller does nothing to hand it over. T5's tensors that all blocks of a stack
 * share (position bias, its gradient, the gradient of the encoder's output) are listed in the same
 * way in every program of the stack, from first kernel to last; with recomputation they are thus
 * not counted between a stack's forward and its backward pass. The encoder's output itself is the
 * output of the STACK_EXIT segment, which the caller keeps until the backward pass of the segment
 * after it. Gradients of parameters are the caller's, partial sums of tied ones too. */
struct model_program {
    struct model_op *forward, *backward; /* ops */
    int n_forward, n_backward;
    struct model_activation *activations;
    int n_activations;
    int output; /* index of the activation that is handed to the next segment, -1 for the last
                   segment */
    int64_t output_bytes;
    bool takes_input;            /* the output of the segment before it */
    int input_grad, output_grad; /* indices of the activations that are the gradients of input and
                                  * output: the one is the other of the segment before; -1: none, or
                                  * within a fused kernel */
    bool drops_input; /* backward needs nothing of the input: unless the program is run again, the
                       * segment before it can let go of its output when the forward pass is over (a
                       * norm that casts to FP32 saves the cast) */
    bool reruns;      /* a block, which full activation checkpointing recomputes */
    int n_rerun;      /* forward ops until everything that backward needs is there again */
};

/* Segments in forward order: each is a program and the layer whose parameters it uses. */
enum segment_kind {
    SEGMENT_ENTRY,
    SEGMENT_BLOCK,
    SEGMENT_STACK_EXIT,
    SEGMENT_DECODER_ENTRY,
    SEGMENT_MTP, /* between the last block, or one of multi-token prediction, and the next such:
                    model/mtp.c */
    SEGMENT_EXIT,
    SEGMENT_BORDER, /* where a model chunk begins whose input another stage sends: no kernels; its
                     * output is what was received, its output's gradient what goes back */
};
struct model_segment {
    enum segment_kind kind;
    int layer; /* 0 for entry, exit and the like */
    const struct model_program
        *program;    /* shared between alike layers: param_grad counts from the layer's first */
    int tensor_base; /* add to param_grad >= 0 to get the index in model->tensors (0 for layer 0) */
};
struct model_segments {
    struct model_segment *at;
    int n;
};

extern const struct config_table model_shape_table;

/* The model_type of each config.json that is read (scenarios/huggingface/types.yaml): "t5, gpt2,
 * ...". */
const char *model_type_names(struct arena *arena, struct diag *diag);

/* Read a model file: our YAML (key "family:") or a Hugging Face config.json (key "model_type"),
 * absent keys by that family's defaults in the transformers library. What a config.json says and no
 * shape can is an error; force: a warning, and the model is another one. model_parse: of a text,
 * not forced. */
enum status model_load(
    struct model_shape *out, const char *path, bool force, struct arena *arena, struct diag *diag);
enum status model_parse(struct model_shape *out, const char *name, const char *text, size_t n,
    struct arena *arena, struct diag *diag);

/* Lay out layers and tensors. The shape must have passed model_load's checks. */
void model_build(struct model *out, const struct model_shape *shape, struct arena *arena);

/* LoRA (arXiv 2106.09685) as peft lays it out: the model is frozen, and each matrix of a block that
 * targets names gets two more after it, lora_A (rank x in) and lora_B (out x rank); their product
 * with the matrix's input is scaled and added to its output (a kernel each, without dropout). Of a
 * matrix that tensor parallelism cuts along its output lora_B is cut alike, along its input lora_A;
 * the other of the two is whole on each rank, and its gradient a part of a sum. The product of what
 * is cut along its input is summed with the matrix's own (NeMo's adapters sum what lora_A gives).
 * targets: names of linear layers as in peft's target_modules, "q_proj,v_proj"; NULL: all of the
 * blocks. rank 0: the model as it is. Ignored: peft's casts of the input to the adapters' FP32 and
 * back; that without checkpointing the first block needs no gradient of its input. */
void model_adapt(struct model *out, const struct model *model, int64_t rank, const char *targets,
    struct arena *arena);
/* Whether the tensor is a matrix of a block, which adapters go beside and QLoRA quantises; the
 * stacks of experts are not (peft and bitsandbytes take linear layers). */
bool model_is_block_matrix(const struct model *model, const struct model_tensor *tensor);
/* Matrices of a block that the tensor holds: 1, of experts those of this rank, one upon another; 0:
 * it is none, or the root's, a table or the head. */
int64_t model_block_matrices(const struct model *model, const struct model_tensor *tensor);
/* One of model_adapt()'s. */
bool model_is_adapter(const struct model_tensor *tensor);
/* All matrices of the blocks are linear layers, which adapters go beside; a convolution's is not.
 */
bool model_takes_adapters(const struct model_shape *shape);
/* The first name of the list that no linear layer of a block is called, in arena; NULL: there is
 * none such. */
const char *model_unknown_target(
    const struct model *model, const char *targets, struct arena *arena);
/* QLoRA (arXiv 2305.14314), section 3: a second quantisation leaves 0.127 bits of constants to an
 * element of 4 bits; in thousandths of a bit. */
enum { MODEL_NF4_MILLIBITS = 4127 };
/* Bytes of these elements in NF4. */
double model_nf4_bytes(int64_t numel);

/* The segments of one micro-step with their programs, of a stage those of its chunks one after the
 * other. BUG for flash attention where model_takes_flash() says no: Hugging Face's T5 adds a
 * position bias to its scores, DeepViT mixes the heads' maps. */
void model_segments(struct model_segments *out, const struct model *model,
    const struct model_workload *workload, struct arena *arena);

/* flop of the forward pass of one micro-step on one rank: GEMMs and attention only, the usual
 * meaning of "model FLOPs", attention over all pairs (ATTENTION_FLOP_FULL); a training step is
 * three times this without recomputation, four times with full recomputation of the blocks (the
 * head is not recomputed). */
double model_forward_flop(const struct model_segments *segments);
/* flop of the forward and the backward pass: three times the forward one where all is trained; a
 * frozen matrix has no gradient, which saves one of its three GEMMs. */
double model_step_flop(const struct model_segments *segments);
/* The part of model_step_flop that causal masks hide. */
double model_step_masked_flop(const struct model_segments *segments);
/* The part of model_forward_flop that lies in blocks (what full activation checkpointing runs
 * again). */
double model_block_forward_flop(const struct model_segments *segments);

/* Name, source, parameters, layers, the tensors of each kind of layer, forward flop per token. */
void model_print(FILE *out, const struct model *model);
void model_print_layers(
    FILE *out, const struct model *model); /* its last part: layers and tensors */

#endif
