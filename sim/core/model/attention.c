/* Attention with rotary positions and fewer key heads than heads, as Hugging Face transformers 4
 * runs it in eager mode for Llama, NeoX and what is like them. Key and value heads are repeated
 * before attention, with flash attention too (as transformers' SDPA path and torchtitan do). */
#include "model/family.h"

/* (x * cos) + (rotate_half(x) * sin); the rotary kernels of flash-attn and TransformerEngine go
 * over x once. complex: view_as_complex(x.float()) times freqs_cis, and back by type_as
 * (torchtitan/models/llama/model.py, apply_rotary_emb). */
int family_rotate(struct tape *t, int x)
{
    if (tape_rotates_complex(t)) {
        int wide =
            tape_scale_apart(t, "rope.mul", tape_cast(t, "rope.float", x, dtype_bytes(DTYPE_FP32)));
        return tape_cast_to_storage(t, "rope.type_as", wide);
    }
    bool fused = !tape_rotates_unfused(t);
    if (fused && tape_has_flash_attn(t))
        return tape_map_in_place(t, "rope", TAPE_SCALE, x);
    if (fused && tape_has_transformer_engine(t))
        return tape_map(t, "rope", TAPE_SCALE, x);
    if (!fused) {
        int along = tape_scale_apart(t, "rope.cos", x);
        return tape_add(t, "rope.add", along,
            tape_scale_apart(t, "rope.sin", tape_rotate_half(t, "rope.rotate", x)));
    }
    int along = tape_map(t, "rope.cos", TAPE_SCALE, x);
    return tape_add(t, "rope.add", along,
        tape_map(t, "rope.sin", TAPE_SCALE, tape_rotate_half(t, "rope.rotate", x)));
}

/* Of a part of each head where rotary_share says so. Ignored: that the gradient of each of the two
 * slices is one of the whole head, zero elsewhere, and that they are added. */
int family_turn(struct tape *t, const struct model_shape *s, int x, int64_t heads)
{
    if (s->rotary_share >= 1)
        return family_rotate(t, x);
    int64_t turned = (int64_t)(s->rotary_share * (double)s->d_kv);
    if (turned == 0)
        return x;
    const int64_t cols[2] = {heads * turned, heads * (s->d_kv - turned)};
    int parts[2];
    tape_split(t, "rope.slice", x, cols, parts, 2);
    return tape_cat(t, "rope.cat", family_rotate(t, parts[0]), parts[1]);
}

/* c tanh(x / c) */
int family_softcap(struct tape *t, const char *names[3], int x)
{
    x = tape_map(t, names[0], TAPE_SCALE, x);
    x = tape_map(t, names[1], TAPE_TANH, x);
    return tape_map(t, names[2], TAPE_SCALE, x);
}

static int attention_naive_attention(struct tape *t, const struct segment_context *c,
    const struct tape_attention *a, int q, int k, int v)
{
    int64_t products = a->batch * a->heads,
            value_dim = a->value_dim > 0 ? a->value_dim : a->head_dim;
    tape_begin_part(t, RECOMPUTE_CORE_ATTN);
    int query = tape_copy(t, "q.copy", q, products * a->queries, a->head_dim);
    int weights = tape_matmul(
        t, "scores", query, k, products, a->queries, a->keys, a->head_dim, !a->both_ways);
    weights = tape_map(t, "scores.scale", TAPE_SCALE, weights);
    if (c->shape->attention_softcap > 0)
        weights =
            family_softcap(t, (const char *[]){"scores.div", "scores.tanh", "scores.mul"}, weights);
    weights = tape_add_mask(t, "scores.mask", weights, products * a->queries, a->keys);
    weights = tape_cast_to_storage(t, "weights.to", tape_softmax(t, "softmax", weights, true));
    weights = tape_dropout(t, "dropout", weights);
    int context = tape_matmul(
        t, "context", weights, v, products, a->queries, value_dim, a->keys, !a->both_ways);
    context = tape_copy(t, "context.copy", context, a->batch * a->queries, a->heads * value_dim);
    tape_end_part(t, RECOMPUTE_CORE_ATTN);
    return context;
}

int family_attend(const struct segment_context *c, int q, int k, int v, struct tape_attention a)
{
    struct tape *t = c->tape;
    int64_t value_dim = a.value_dim > 0 ? a.value_dim : a.head_dim;
    if (c->workload->attention == ATTENTION_FLASH)
        return tape_flash(t, "flash", q, k, v, a);
    if (c->shape->n_heads == c->shape->n_kv_heads) { /* a repeated tensor is contiguous already */
        k = tape_copy(t, "k.copy", k, a.batch * a.heads * a.keys, a.head_dim);
        v = tape_copy(t, "v.copy", v, a.batch * a.heads * a.keys, value_dim);
    }
    return attention_naive_attention(t, c, &a, q, k, v);
}

/* nanotron/models/llama.py around flash-attn's kernels: with as many key heads as heads q, k and v,
 * which one GEMM made, are copied together into the layout of heads, else each; k and v are joined
 * and permuted for the rotary kernel, which works in place. So what flash attention saves of q, a
 * part of the first copy, holds k and v there, too. Ignored: cu_seqlens (six kernels on a number a
 * sequence); that what is copied together for k and v is a kernel each here. */
bool family_copies_qkv(const struct tape *t, const struct model_shape *s)
{
    return tape_has_flash_attn(t) && s->fused_projections && s->n_heads == s->n_kv_heads;
}

static void lay_out_for_flash_attn(
    struct tape *t, const struct model_shape *s, int *q, int *k, int *v)
{
    if (!family_copies_qkv(t, s)) {
        *q = tape_clone(t, "q.contiguous", *q);
        *k = tape_clone(t, "k.contiguous", *k);
        *v = tape_clone(t, "v.contiguous", *v);
    }
    *k = tape_clone(t, "k.permute", tape_clone(t, "k.cat", *k));
    *v = tape_clone(t, "v.permute", tape_clone(t, "v.cat", *v));
}

/* One GEMM made q, k and v: they are parts of its result. TransformerEngine's kernels take them as
 * that, or each by itself: where rotary positions made q and k anew, v is copied out
 * (get_qkv_layout in attention/dot_product_attention, recalled), and what the GEMM made is not
 * kept. */
static bool lies_in_qkv(const struct model_shape *s)
{
    return s->fused_projections || s->family == MODEL_NEOX;
}

int family_attention(const struct segment_context *c, int q, int k, int v, struct tape_attention a)
{
    struct tape *t = c->tape;
    const struct model_shape *s = c->shape;
    bool copies = tape_has_flash_attn(t);
    if (copies)
        lay_out_for_flash_attn(t, s, &q, &k, &v);
    const struct model_parallel *parallel = &c->workload->parallel;
    bool alone = model_context_ranks(parallel) ==
                 1; /* else they would be sent several times, as PyTorch does */
    bool repeats = (alone || context_is_pytorch(parallel->context_kind)) &&
                   !(tape_has_transformer_engine(t) && c->workload->attention == ATTENTION_FLASH);
    int64_t groups = repeats ? s->n_heads / s->n_kv_heads : 1;
    if (s->rotary_share > 0 && lies_in_qkv(s) && tape_has_transformer_engine(t) &&
        c->workload->attention == ATTENTION_FLASH)
        v = tape_clone(t, "v.contiguous", v);
    q = family_turn(t, s, q, s->n_heads);
    k = tape_repeat(t, "k.repeat", family_turn(t, s, k, s->n_kv_heads), groups);
    v = tape_repeat(t, "v.repeat", v, groups);
    int context = family_attend(c, q, k, v, a);
    return copies ? tape_clone(t, "context.transpose", context) : context;
}
