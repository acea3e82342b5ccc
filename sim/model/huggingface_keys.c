#include "model/huggingface.h"

#include "base/vec.h"

#include <stdlib.h>
#include <string.h>

/* What a key may say without changing the computation. */
enum harmless { NEVER, FALSE_OR_NULL, ZERO_OR_NULL, ONE_OR_NULL, EMPTY_OR_NULL, ABSOLUTE };
static const char expert_layers[] = "a mixture of experts is modelled for other model_types: mixtral, qwen2_moe ...";
static const struct {
    const char *key;
    enum harmless harmless;
    const char *why;
} refused[] = {
    {"num_local_experts", ONE_OR_NULL, expert_layers},
    {"num_experts", ONE_OR_NULL, expert_layers},
    {"n_routed_experts", ONE_OR_NULL, expert_layers},
    {"moe_intermediate_size", FALSE_OR_NULL, expert_layers},
    {"num_experts_per_tok", FALSE_OR_NULL, expert_layers},
    {"output_router_logits", FALSE_OR_NULL, "the load-balancing loss of transformers is not modelled"},
    {"router_jitter_noise", ZERO_OR_NULL, "noise on what the router reads is not modelled"},
    {"moe_layer_freq", ONE_OR_NULL, "experts in every n-th block are not modelled here (decoder_sparse_step is)"},
    {"mlp_only_layers", EMPTY_OR_NULL, expert_layers},
    {"is_decoder", FALSE_OR_NULL, "an encoder with a causal mask is not modelled"},
    {"add_cross_attention", FALSE_OR_NULL, "attention to another stack is modelled in T5 only"},
    {"tie_encoder_decoder", FALSE_OR_NULL, "stacks that share parameters are not modelled"},
    {"position_embedding_type", ABSOLUTE, "positions within BERT's scores are not modelled; 'absolute' is"},
    {"reorder_and_upcast_attn", FALSE_OR_NULL, "attention in FP32 (reorder_and_upcast_attn) is not modelled"},
    {"chunk_size_feed_forward", ZERO_OR_NULL, "a feed-forward layer in chunks is not modelled"},
    {"pruned_heads", EMPTY_OR_NULL, "layers that differ in their number of heads are not modelled"},
    {"apply_residual_connection_post_layernorm", FALSE_OR_NULL, "a residual taken behind the norm is not modelled"},
    {"slow_but_exact", FALSE_OR_NULL, "BLOOM's slow_but_exact is not modelled"},
    {"layerdrop", ZERO_OR_NULL, "layers that are dropped at random are not modelled"},
    {"_remove_final_layer_norm", FALSE_OR_NULL, "a decoder without a final norm is not modelled"},
    {"use_bidirectional_attention", FALSE_OR_NULL, "a decoder without a causal mask is not modelled"},
    {"partial_rotary_factor", ONE_OR_NULL, "rotary positions of a part of each head are not modelled"},
};

/* Keys of PretrainedConfig and of the classes that we read (transformers 4) which leave kernels, shapes and tensors as
 * they are: names of labels and tokens, how text is generated, constants that kernels multiply by, where the file is
 * from, and what flopcast's own settings say (train.precision for torch_dtype, train.activation_checkpointing ...). */
static const char *const inert[] = {"_attn_implementation", "_attn_implementation_autoset", "_commit_hash",
    "_name_or_path", "adapters", "architectures", "attention_softmax_in_fp32", "attn_implementation", "aux_loss_alpha",
    "bad_words_ids", "begin_suppress_tokens", "bias_dropout_fusion", "bos_token_id", "cache_implementation",
    "classifier_dropout", "cls_token_id", "cross_attention_hidden_size", "custom_pipelines", "decoder_start_token_id",
    "dense_act_fn", "directionality", "diversity_penalty", "do_sample", "dtype", "early_stopping",
    "encoder_no_repeat_ngram_size", "encoder_stride", "eos_token_id", "ep_size", "exponential_decay_length_penalty",
    "finetuning_task", "forced_bos_token_id", "forced_eos_token_id", "gradient_checkpointing", "id2label",
    "initializer_factor", "initializer_range", "is_encoder_decoder", "is_gated_act", "keys_to_ignore_at_inference",
    "label2id", "layer_norm_elementwise_affine", "layer_norm_eps", "layer_norm_epsilon", "length_penalty",
    "mask_token_id", "masked_softmax_fusion", "max_length", "max_position_embeddings", "max_sequence_length",
    "min_length", "model_type", "n_ctx", "n_positions", "no_repeat_ngram_size", "num_beam_groups", "num_beams",
    "num_channels", "num_labels", "num_return_sequences", "offset_alibi", "original_max_position_embeddings",
    "output_attentions", "output_hidden_states", "output_past", "output_scores", "pad_token_id", "pooler_act",
    "pooler_fc_size", "pooler_num_attention_heads", "pooler_num_fc_layers", "pooler_output_size",
    "pooler_size_per_head", "pooler_type", "prefix", "pretraining_tp", "query_pre_attn_scalar", "problem_type",
    "relative_attention_max_distance", "remove_invalid_values", "repetition_penalty", "return_dict",
    "return_dict_in_generate", "rms_norm_eps", "rope_local_base_freq", "rope_parameters", "rope_scaling", "qk_head_dim",
    "rope_interleave", "rope_theta", "rotary_emb_base", "router_aux_loss_coef", "scale_attn_by_inverse_layer_idx",
    "scale_attn_weights", "sep_token_id", "seq_aux", "seq_length", "skip_bias_add", "skip_bias_add_qkv",
    "sliding_window_size", "summary_activation", "summary_first_dropout", "summary_proj_to_labels", "summary_type",
    "summary_use_proj", "suppress_tokens", "task_specific_params", "temperature", "tf_legacy_loss", "tokenizer_class",
    "top_k", "top_p", "torch_dtype", "torchscript", "transformers_version", "typical_p", "unk_token_id",
    "unsloth_fixed", "unsloth_version", "use_bfloat16", "use_cache", "use_return_dict", NULL};

static bool is_one_of(const char *key, const char *const *names)
{
    for (; *names; names++)
        if (strcmp(key, *names) == 0)
            return true;
    return false;
}

static bool is_read(const char *key, const struct config_table *table, const char *const *read)
{
    for (int i = 0; i < table->n_fields; i++)
        if (strcmp(key, table->fields[i].key) == 0)
            return true;
    return is_one_of(key, read);
}

static bool is_harmless(struct config_node value, enum harmless harmless)
{
    const char *text = config_text(value);
    if (config_kind(value) == CONFIG_NULL && harmless != NEVER)
        return true;
    switch (harmless) {
    case NEVER:
        return false;
    case FALSE_OR_NULL:
        return strcmp(text, "false") == 0;
    case ZERO_OR_NULL:
        return strcmp(text, "0") == 0 || strcmp(text, "0.0") == 0;
    case ONE_OR_NULL:
        return strcmp(text, "1") == 0 || strcmp(text, "1.0") == 0 || strcmp(text, "0") == 0;
    case EMPTY_OR_NULL:
        return config_kind(value) != CONFIG_SCALAR && config_count(value) == 0;
    case ABSOLUTE:
        return strcmp(text, "absolute") == 0;
    }
    return false;
}

/* true: the key is one of those that are refused; an error where its value changes something. */
static bool is_refused(struct config_node value, const char *key, enum status *status, struct diag *diag)
{
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        if (strcmp(refused[i].key, key) != 0)
            continue;
        if (!is_harmless(value, refused[i].harmless))
            *status = diag_input(diag, config_pos(value), "%s: %s", key, refused[i].why);
        return true;
    }
    return false;
}

/* Keys that a user may take for read, with what to do. */
static bool is_explained(struct config_node value, const char *key, struct diag *diag)
{
    if (strcmp(key, "auto_map") == 0)
        diag_warn(diag, config_pos(value),
            "auto_map: the model's own code is not read; simulated is the class of transformers");
    else if (strcmp(key, "quantization_config") == 0)
        diag_warn(diag, config_pos(value),
            "quantization_config is ignored: weights are as train.precision says; for QLoRA set train.qlora: true");
    else if (strcmp(key, "num_nextn_predict_layers") == 0)
        diag_warn(diag, config_pos(value),
            "num_nextn_predict_layers is ignored: prediction of several tokens is not modelled, nor is it in the class "
            "of transformers");
    else if (strcmp(key, "sliding_window") == 0 || strcmp(key, "use_sliding_window") == 0)
        diag_warn(diag, config_pos(value),
            "%s is ignored: the class of this model_type in transformers does not read it", key);
    else
        return false;
    return true;
}

enum status huggingface_check_keys(struct config_node root, const struct config_table *table, const char *const *read,
    struct arena *arena, struct diag *diag)
{
    enum { MOST_NAMED = 8 };
    enum status status = STATUS_OK;
    struct config_node first = {0};
    const char *names = "";
    int n = 0;
    for (int i = 0; i < config_count(root); i++) {
        const char *key = config_text(config_key(root, i));
        struct config_node value = config_item(root, i);
        if (is_read(key, table, read) || is_one_of(key, inert) || is_refused(value, key, &status, diag) ||
            config_kind(value) == CONFIG_NULL || is_explained(value, key, diag))
            continue;
        if (n == 0)
            first = config_key(root, i);
        if (n < MOST_NAMED)
            names = arena_printf(arena, "%s%s%.40s", names, n ? ", " : "", key);
        n++;
    }
    if (n > 0)
        diag_warn(diag, config_pos(first),
            "%d key%s not known here and ignored: %s%s; if %s the computation, the prediction is of another model", n,
            n == 1 ? " is" : "s are", names, n > MOST_NAMED ? " ..." : "", n == 1 ? "it changes" : "they change");
    return status;
}
