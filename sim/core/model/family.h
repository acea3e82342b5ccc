/* What a family of models is to the rest of the module: how its layers and tensors are laid out,
 * and the forward pass of each of its segments, written on a tape. One file per family: t5.c,
 * gpt.c, llama.c, neox.c, bert.c, vit.c, convnet.c, dhen.c; moe.c, mla.c, mixer.c, blocks.c and
 * mtp.c are parts of Llama's. */
#ifndef FLOPCAST_MODEL_FAMILY_H
#define FLOPCAST_MODEL_FAMILY_H

#include "base/vec.h"
#include "config/config.h"
#include "model/tape.h"

struct model_builder {
    const struct model_shape *shape;
    struct arena *arena;
    VEC(struct model_layer) layers;
    VEC(struct model_tensor) tensors;
    int n_batch_norms;
    int64_t batch_norm_channels;
};

/* Begin a layer; then its tensors, in the order of model.parameters(). name of a tensor: within the
 * layer; whole in the root. */
void build_layer(struct model_builder *builder, enum layer_role role, const char *name);
void build_tensor(struct model_builder *builder, const char *name, int64_t rows, int64_t cols);
/* Those of an nn.Linear, name.weight (out x in) and name.bias; with in 1 those of a norm. */
void build_linear(struct model_builder *builder, const char *name, int64_t in, int64_t out);
/* A tensor that no gradient moves. */
void build_buffer(struct model_builder *builder, const char *name, int64_t numel);
/* The tensor built last is cut over the ranks of these axes. */
void build_split(struct model_builder *builder, unsigned axes);

struct segment_context {
    struct tape *tape;
    struct arena *arena;
    const struct model_shape *shape;
    const struct model_workload *workload;
    enum layer_role role;
    enum segment_kind kind;
    bool frozen; /* the model is; only adapters beside its matrices are trained */
    int layer;   /* of the whole model; 0 for all but blocks, and SEGMENT_MTP: of the block that it
                  * leads to. Alike layers share the program of the first */
    unsigned ends; /* of the model or stage */
};

/* How the gradient of a matrix that both ends use comes together: on a stage with one of them it
 * has one use. */
static inline enum tape_turn segment_turn(const struct segment_context *c, enum tape_turn turn)
{
    return c->ends == MODEL_BOTH_ENDS ? turn : TURN_ONLY;
}

/* Rows between attention and feed-forward layers, where sequence parallelism leaves each rank its
 * part of them. */
static inline int64_t segment_rows(const struct segment_context *c, int64_t length)
{
    const struct model_parallel *parallel = &c->workload->parallel;
    return c->workload->micro_batch * length /
           (parallel->sequence ? model_tensor_ranks(parallel) : 1);
}

/* Every position attends to positions of the same stack. */
static inline struct tape_attention self_attention(const struct segment_context *c, bool both_ways)
{
    const struct model_workload *w = c->workload;
    return (struct tape_attention){
        w->micro_batch, c->shape->n_heads, w->seq_len, w->seq_len, c->shape->d_kv, both_ways, 0, 0};
}

/* model/attention.c: rotary positions (rotary_share), repeated key heads, then fused or naive
 * attention; what comes out is rows x heads of the query. q, k, v: as the linear layers leave them.
 */
int family_attention(const struct segment_context *c, int q, int k, int v, struct tape_attention a);
/* Under fusion flash_attn whoever projects copies q, k and v, which one GEMM made, before they are
 * split. */
bool family_copies_qkv(const struct tape *t, const struct model_shape *s);
/* Its second half: as many keys and values as queries, turned already. */
int family_attend(const struct segment_context *c, int q, int k, int v, struct tape_attention a);
int family_rotate(struct tape *t, int x); /* whole heads */
/* c tanh(x / c), a kernel for each of these names. */
int family_softcap(struct tape *t, const char *names[3], int x);

/* The program of a SEGMENT_BORDER. */
const struct model_program *model_border(int64_t output_bytes, struct arena *arena);
/* model/moe.c: a block's experts, in the scope mlp; without those for a block that has none. */
void moe_tensors(struct model_builder *b, int64_t block);
int moe_forward(const struct segment_context *c, int x);
const char *moe_check(const struct model_shape *s, size_t *offset);
/* model/mla.c: latent attention, in the scope self_attn; from the normed residual stream to
 * o_proj's result. */
void mla_tensors(struct model_builder *b);
int mla_forward(const struct segment_context *c, int x);
/* Of its indexer's queries and keys, with weights made of x. What enters goes on. */
int mla_index(
    const struct segment_context *c, int x, int q, int k, int goes_on, struct tape_attention shape);
const char *mla_check(const struct model_shape *s, size_t *offset);
/* model/mixer.c: what a block has in the place of attention, from the normed residual stream to
 * what is added to it. */
void mixer_tensors(struct model_builder *b);
int mixer_forward(const struct segment_context *c, int x);
const char *mixer_check(const struct model_shape *s, size_t *offset);
/* model/compressed.c: attention to a window and compressed keys, as mla_tensors() and
 * mla_forward(); hyper-connections: what a sub-layer reads of the streams, and the streams behind
 * it; of words, and for the head. Names of scopes: "hc_attn", "hc_ffn". */
void compressed_tensors(struct model_builder *b, int64_t layer);
int compressed_forward(const struct segment_context *c, int x);
const char *compressed_check(const struct model_shape *s, size_t *offset);
struct hyper_pass {
    int streams, to, among;
};
void hyper_tensors(struct model_builder *b, const char *scope);
void hyper_root_tensors(struct model_builder *b);
int hyper_enter(const struct segment_context *c, const char *scope, int x, struct hyper_pass *pass);
int hyper_leave(
    const struct segment_context *c, const char *scope, const struct hyper_pass *pass, int out);
int hyper_begin(const struct segment_context *c, int words);
int hyper_end(const struct segment_context *c, int x);
/* model/gpt.c: SEGMENT_EXIT: a norm, and the loss by the matrix `head`, or by that of words where
 * they are tied. */
int family_head(
    const struct segment_context *c, const char *norm, const char *words, const char *head);
/* model/llama.c: a norm of each head without weights. model/attention.c: rotary positions of a
 * share of each head. */
int family_plain_norm(
    struct tape *t, const struct segment_context *c, const char *name, int x, int64_t heads);
int family_turn(struct tape *t, const struct model_shape *s, int x, int64_t heads);
/* model/blocks.c */
const char *blocks_check(const struct model_shape *s, size_t *offset);
bool blocks_divide(const struct model_shape *s, int64_t ranks);
/* model/mtp.c: multi-token prediction: tensors in the root and in a block; SEGMENT_EXIT and
 * SEGMENT_MTP; a block's input; the turn of a lookup of words in SEGMENT_ENTRY. */
void mtp_root_tensors(struct model_builder *b);
void mtp_block_tensors(struct model_builder *b, int block);
int mtp_head(const struct segment_context *c);
int mtp_block_input(const struct segment_context *c);
enum tape_turn mtp_entry_turn(const struct segment_context *c);

/* What a shape of a family must not be: a sentence, and the offset in struct model_shape of the
 * field to blame. */
struct model_rule {
    size_t offset;
    bool wrong;
    const char *sentence;
};
#define MODEL_RULE(member, wrong, sentence)                                                        \
    {                                                                                              \
        offsetof(struct model_shape, member), (wrong), (sentence)                                  \
    }
/* The sentence of the first that is broken; NULL: none is. */
const char *model_first_wrong(const struct model_rule *rules, size_t n, size_t *offset);

struct model_family_code {
    struct model_shape defaults;                    /* what a file of ours need not say */
    void (*layers)(struct model_builder *);         /* root first */
    int (*forward)(const struct segment_context *); /* the segment's output, or the loss */
    /* What is wrong with the shape for this family, by model_first_wrong(). */
    const char *(*check)(const struct model_shape *, size_t *offset);
};

extern const struct model_family_code model_family_t5, model_family_gpt, model_family_llama,
    model_family_neox, model_family_bert, model_family_vit, model_family_convnet, model_family_dhen;
const struct model_family_code *model_family_code(const struct model_shape *shape);

/* Read a Hugging Face config.json. force: as of model_load(). *table: its keys, whose offsets are
 * those of struct model_shape. */
enum status huggingface_read(struct model_shape *out, struct config_node root, bool force,
    const struct config_table **table, struct arena *arena, struct diag *diag);

/* Upper limits of shape fields: well above any published model, and small enough that no tensor's
 * size overflows. */
enum {
    MODEL_MAX_WIDTH = 1 << 20,
    MODEL_MAX_VOCAB = 1 << 24,
    MODEL_MAX_POSITIONS = 1 << 20,
    MODEL_MAX_HEADS = 1 << 14,
    MODEL_MAX_HEAD_DIM = 1 << 14,
    MODEL_MAX_LAYERS = 4096,
    MODEL_MAX_IMAGE = 1 << 14,
    MODEL_MAX_EXPERTS = 1 << 14,
};

#endif
