/* The file of types, scenarios/huggingface/types.yaml: what config.json of each model_type holds,
 * as data.
 *
 *   types:                 by model_type
 *     llama:
 *       what: a Llama config.json            (for messages)
 *       classes: [LlamaForCausalLM]          "architectures" that are read; {CLASS: {MEMBER:
 *                                            value}} where they differ
 *       keys: [decoder, {KEY: HOW, ...}] names of sets of keys, or keys; of two alike the later one
 *       counts
 *       shape: {family: llama, ...}          defaults of the class in transformers, in keys of a
 *                                            model file of ours
 *       more: {windows: from}                defaults of more_fields in model/huggingface_types.c
 *     llama4: {inside: text_config}          the model is that of this key
 *     kimi_k2: {as: deepseek_v3}             another name of that type
 *   keys: sets of keys. refused, inert, says_shape, unmodelled: see there.
 *
 * KEY is a key of the file, or a path of keys, "rope_parameters.partial_rotary_factor".
 *
 * HOW is a key of a model file ("d_model", "moe.experts"), a list of such, {} for a key that
 * changes nothing, or
 *   {to: MEMBER, null: true, least: N}       null is the same as 0: to be derived; at least N
 *   {values: {VALUE: {MEMBER: value}}, default: VALUE} one of these values, and what each means for
 *   the shape
 *   {letters: {VALUE: LETTER}}               a list of one of these values for each layer: the
 *                                            shape's pattern, or, with windows: true, its
 *                                            attention_pattern, with compressed: true, that of
 *                                            compressed attention
 *   {each: [VALUE, ...]}                     a list of one of these values for each layer
 *   {dense: VALUE, or: [VALUE, ...]} a list of which the first layers say VALUE: moe.dense_layers;
 *                                            or no list, and one of these
 *   {only: [VALUE, ...], why: SENTENCE}      any other value is an error
 *   {same: MEMBER, default: VALUE, why: SENTENCE} a number that must be the member's; default:
 *   where it is
 * absent */
#ifndef FLOPCAST_MODEL_HUGGINGFACE_H
#define FLOPCAST_MODEL_HUGGINGFACE_H

#include "model/family.h"

/* What a file gives before it is a shape. */
struct config_json {
    struct model_shape shape;
    int windows;     /* how blocks of full attention are chosen */
    int other;       /* what layer_types calls the others: enum other_layers */
    bool windows_on; /* use_sliding_window */
    bool multi_query, new_decoder_architecture, alibi; /* Falcon */
    int64_t num_ln_in_parallel_attn;                   /* the same; 0: by its architecture */
    double attention_dropout;                          /* OPT */
    int64_t rotary_dim;     /* MiniMax: of each head what rotary positions turn */
    bool beside_only;       /* Gemma 4: experts stand beside a dense layer, or there are none */
    bool listed_blocks;     /* DeciLM: block_configs say what each block is */
    int64_t shared_experts; /* DeepSeek: n_shared_experts, each of the routed ones' width */
    int64_t kept_groups;    /* the same: topk_group */
    double routed_scaling;  /* the same: routed_scaling_factor */
    int choice;             /* a value of the key that is read just now */
    double number;          /* the same */
};

/* With use_sliding_window, from max_window_layers on (Qwen2, Qwen3); all but every n-th block
 * (Gemma 2 and 3). */
enum { WINDOWS_ALL, WINDOWS_FROM, WINDOWS_EVERY, WINDOWS_COUNT };

enum other_layers { OTHER_SLIDING, OTHER_CHUNKED, OTHER_LINEAR, OTHER_COUNT };
extern const char *const huggingface_others[OTHER_COUNT + 1]; /* "sliding_attention" ... */

/* A key of config.json. */
struct huggingface_key {
    struct config_field field; /* of struct config_json; key alone where nothing is assigned */
    struct config_node how;    /* in the file of types */
};
struct huggingface_type {
    struct config_node root, entry; /* of the file of types */
    const char *name;
    bool force; /* what would change the answer and cannot be read is a warning, not an error */
    VEC(struct huggingface_key) keys; /* freed by huggingface_forget() */
};

/* The types' names, "t5, gpt2, ...". */
const char *huggingface_names(struct config_node types, struct arena *arena);

/* The type that the node, a key of root's, names, with the defaults of its class in *json; else an
 * error that says what is lacking and lists the types. types: the root of the file. */
enum status huggingface_type(struct huggingface_type *out, struct config_json *json,
    struct config_node types, struct config_node root, struct config_node model_type,
    struct arena *arena, struct diag *diag);
void huggingface_forget(struct huggingface_type *type);

/* "architectures", the class that was trained, must be one of the type's; where it is absent or
 * null, it is the first of these. */
enum status huggingface_architecture(struct config_json *json, const struct huggingface_type *type,
    struct config_node root, struct arena *arena, struct diag *diag);

/* What the file says and the shape cannot: an error, or, as --force asks for, a warning. */
enum status huggingface_drop(const struct huggingface_type *type, struct source_pos at,
    const char *sentence, struct diag *diag);

/* The value of a key, or of a path of keys; CONFIG_NONE: it is not there. */
struct config_node huggingface_find(struct config_node root, const char *path);

/* model/huggingface_lists.c: a key whose value is a list of what each layer is; layer_types;
 * block_configs. */
enum status huggingface_read_list(struct config_json *json, const struct huggingface_key *key,
    struct config_node list, struct config_node root, struct arena *arena, struct diag *diag);
enum status huggingface_layer_types(
    struct config_json *json, struct config_node root, struct diag *diag);
enum status huggingface_read_blocks(
    struct config_json *json, struct config_node root, struct arena *arena, struct diag *diag);

/* Keys that neither the type has nor `read`, a NULL-terminated list, names. Those that change the
 * computation in a way that is not modelled, or whose name says that they do, are dropped as above.
 * Those that change nothing here pass. Others are named in a warning. */
enum status huggingface_check_keys(const struct huggingface_type *type, struct config_node root,
    int64_t n_layers, const char *const *read, struct arena *arena, struct diag *diag);

/* One of the values of a sequence, or null. */
bool huggingface_says(struct config_node values, struct config_node value);

#endif
