/* Private to the readers of Hugging Face's config.json: what a file gives before it is a shape, and the model types. */
#ifndef FLOPCAST_MODEL_HUGGINGFACE_MODELS_H
#define FLOPCAST_MODEL_HUGGINGFACE_MODELS_H

#include "model/family.h"

struct config_json {
    struct model_shape shape;
    int feed_forward_proj, activation_function, hidden_act;
    double embd_pdrop, attn_pdrop; /* attn_pdrop: BERT's attention_probs_dropout_prob too */
    bool attention_bias, mlp_bias, use_sliding_window;
    bool multi_query, new_decoder_architecture, alibi; /* Falcon */
    int64_t num_ln_in_parallel_attn;                   /* the same; 0: by its architecture */
    bool do_layer_norm_before;                         /* OPT */
    int64_t word_embed_proj_dim;                       /* the same; 0: the width */
    int64_t shared_experts;                            /* DeepSeek: n_shared_experts, each of the routed ones' width */
    int64_t kept_groups;                               /* DeepSeek: topk_group */
    double routed_scaling;                             /* DeepSeek: routed_scaling_factor */
    int topk_method;                                   /* DeepSeek */
    int scoring_func;                                  /* the same */
    int64_t rotary_dim;                                /* DeepSeek: head_dim, what rotary positions turn */
    int windows;                                       /* how blocks of full attention are chosen */
};

/* With use_sliding_window, from max_window_layers on (Qwen2, Qwen3); all but every n-th block (Gemma 2 and 3). */
enum { WINDOWS_ALL, WINDOWS_FROM, WINDOWS_EVERY };

enum { TOPK_GREEDY, TOPK_GROUP_LIMITED }; /* DeepSeek-V2 */
enum { PROJECTION_RELU, PROJECTION_GATED_GELU };
enum { ACTIVATION_GELU_NEW };
enum { OPT_OFFSET = 2 }; /* OPTLearnedPositionalEmbedding: rows that no position uses */

/* PretrainedConfig.num_labels, where no id2label lists them. */
enum { DEFAULT_LABELS = 2 };

struct model_type {
    const char *name;
    const struct config_table *table;
    struct config_json defaults;
};

/* NULL: it is not modelled. */
const struct model_type *huggingface_model(const char *name);

#endif
