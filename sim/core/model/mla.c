/* Multi-head latent attention, as Hugging Face transformers runs DeepSeek-V2 and -V3 in training
 * (modeling_deepseek_v3.py) and Megatron-LM (multi_latent_attention.py): queries and keys of a part
 * without positions and a rotary part, both whole in memory; nothing is absorbed into the
 * projections. Query and key of a head are concatenated; the key's rotary part is one for all
 * heads.
 *
 * Sparse attention (DeepSeek-V3.2): an indexer chooses index_topk keys for each query; attention to
 * them has as many pairs as a sliding window of that many keys, and, assumed, such a window's rate
 * where it is fused (keys that are gathered from all over take longer; by how much no run at hand
 * tells).
 *
 * Ignored: that rotary parts are stored interleaved and transposed before they are turned; that
 * FlashAttention 2, which takes one head dimension only, wants values filled up with zeros;
 * Megatron's kernel that turns and concatenates at once. */
#include "model/family.h"

void mla_tensors(struct model_builder *b)
{
    const struct model_shape *s = b->shape;
    const struct model_mla *a = &s->mla;
    int64_t d = s->d_model, n = s->n_heads;
    if (a->q_lora_rank > 0) {
        build_tensor(b, "self_attn.q_a_proj.weight", a->q_lora_rank, d);
        build_tensor(b, "self_attn.q_a_layernorm.weight", a->q_lora_rank, 1);
        build_tensor(b, "self_attn.q_b_proj.weight", n * s->d_kv, a->q_lora_rank);
    } else {
        build_tensor(b, "self_attn.q_proj.weight", n * s->d_kv, d);
    }
    build_tensor(
        b, "self_attn.kv_a_proj_with_mqa.weight", a->kv_lora_rank + a->qk_rope_head_dim, d);
    build_tensor(b, "self_attn.kv_a_layernorm.weight", a->kv_lora_rank, 1);
    build_tensor(b, "self_attn.kv_b_proj.weight", n * (a->qk_nope_head_dim + a->v_head_dim),
        a->kv_lora_rank);
    build_tensor(b, "self_attn.o_proj.weight", d, n * a->v_head_dim);
    if (a->index_heads == 0)
        return;
    build_tensor(
        b, "self_attn.indexer.wq_b.weight", a->index_heads * a->index_head_dim, a->q_lora_rank);
    build_tensor(b, "self_attn.indexer.wk.weight", a->index_head_dim, d);
    build_linear(b, "self_attn.indexer.k_norm", 1, a->index_head_dim);
    build_tensor(b, "self_attn.indexer.weights_proj.weight", a->index_heads, d);
}

/* Latents are made of the rows that a rank has, heads of all rows: with tensor parallelism the
 * narrow latents enter, as Megatron's column-parallel layers take them. */
struct latents {
    int q, kv, k_rot;
};

static struct latents mla_compress(const struct segment_context *c, int x)
{
    struct tape *t = c->tape;
    const struct model_mla *m = &c->shape->mla;
    const int64_t widths[2] = {m->kv_lora_rank, m->qk_rope_head_dim};
    int parts[2];
    int q = m->q_lora_rank > 0
                ? tape_rms_norm(t, "q_a_layernorm", tape_linear(t, "q_a_proj", x), true)
                : x;
    tape_split(t, "kv_a.split", tape_linear(t, "kv_a_proj_with_mqa", x), widths, parts, 2);
    struct latents out = {.q = q, .kv = tape_rms_norm(t, "kv_a_layernorm", parts[0], true)};
    out.q = tape_enter(t, "q.in", out.q);
    out.kv = tape_enter(t, "kv.in", out.kv);
    out.k_rot = tape_enter(t, "k_rot.in", parts[1]);
    return out;
}

static int query(struct tape *t, const struct model_shape *s, int latent)
{
    const int64_t widths[2] = {
        s->n_heads * s->mla.qk_nope_head_dim, s->n_heads * s->mla.qk_rope_head_dim};
    int parts[2];
    tape_split(t, "q.split", tape_linear(t, s->mla.q_lora_rank > 0 ? "q_b_proj" : "q_proj", latent),
        widths, parts, 2);
    int turned = family_rotate(t, parts[1]);
    return tape_cat(t, "q.cat", parts[0], turned);
}

/* DeepSeek-V3.2's lightning indexer (its report's section 2; Indexer in modeling_deepseek_v32,
 * recalled), in training: its inputs are detached, its own loss compares its scores with what
 * attention weighs. What enters goes on.
 *
 * Assumed: a fused kernel of scores works at the rate of flash attention. Ignored: the sum of
 * attention's weights over heads that the loss wants, FP8 and the Hadamard transform of inference,
 * rotary positions of the indexer's heads. */
static int choose_keys(const struct segment_context *c, int x, int latent, int goes_on)
{
    struct tape *t = c->tape;
    int detached = tape_detach(t, "indexer.x", x),
        q = tape_linear(t, "indexer.wq_b", tape_detach(t, "indexer.q", latent));
    int k = tape_layer_norm(t, "indexer.k_norm", tape_linear(t, "indexer.wk", detached));
    struct tape_attention a = self_attention(c, false);
    a.heads = c->shape->mla.index_heads;
    a.head_dim = c->shape->mla.index_head_dim;
    return mla_index(c, detached, q, k, goes_on, a);
}

int mla_index(
    const struct segment_context *c, int x, int q, int k, int goes_on, struct tape_attention shape)
{
    struct tape *t = c->tape;
    const int64_t rows = tape_rows(t, q);
    int weights = tape_view(
        t, "indexer.weights", tape_linear(t, "indexer.weights_proj", x), rows * shape.heads, 1);
    q = tape_mul(t, "indexer.weigh",
        tape_view(t, "indexer.heads", q, rows * shape.heads, shape.head_dim), weights);
    return tape_index(t, "indexer",
        tape_view(t, "indexer.q", q, rows, shape.heads * shape.head_dim), k, goes_on, shape);
}

int mla_forward(const struct segment_context *c, int x)
{
    struct tape *t = c->tape;
    const struct model_shape *s = c->shape;
    const struct model_mla *m = &s->mla;
    const int64_t n = s->n_heads, wide[2] = {n * m->qk_nope_head_dim, n * m->v_head_dim};
    struct tape_attention a = self_attention(c, false);
    struct latents latents = mla_compress(c, x);
    tape_begin_part(t, RECOMPUTE_MLA_UP_PROJ);
    int q = query(t, s, latents.q), kv[2];
    a.value_dim = m->v_head_dim;
    if (m->index_heads > 0) {
        q = choose_keys(c, x, latents.q, q);
        a.window = m->index_topk;
    }
    int up = tape_linear(t, "kv_b_proj", latents.kv);
    tape_split(t, "kv_b.split", up, wide, kv, 2);
    int turned = tape_expand(t, "k_rot.expand", family_rotate(t, latents.k_rot), n);
    turned = tape_view(t, "k_rot.heads", turned, tape_rows(t, up), n * m->qk_rope_head_dim);
    int k = tape_cat(t, "k.cat", kv[0], turned);
    tape_end_part(t, RECOMPUTE_MLA_UP_PROJ);
    return tape_linear_row(t, "o_proj", family_attend(c, q, k, kv[1], a));
}

const char *mla_check(const struct model_shape *s, size_t *offset)
{
    const struct model_mla *m = &s->mla;
    bool latent = m->kv_lora_rank > 0;
    const struct model_rule rules[] = {
        MODEL_RULE(mla, !latent && (m->q_lora_rank > 0 || m->v_head_dim > 0),
            "latent attention has a kv_lora_rank; give it, or leave out mla"),
        MODEL_RULE(mla,
            latent && (m->qk_nope_head_dim == 0 || m->qk_rope_head_dim == 0 || m->v_head_dim == 0),
            "latent attention needs qk_nope_head_dim, qk_rope_head_dim and v_head_dim"),
        MODEL_RULE(mla, latent && m->qk_rope_head_dim % 2 != 0,
            "rotary positions need an even qk_rope_head_dim"),
        MODEL_RULE(n_kv_heads, latent && s->n_kv_heads != s->n_heads,
            "latent attention has as many key heads as heads"),
        MODEL_RULE(d_kv, latent && s->d_kv != m->qk_nope_head_dim + m->qk_rope_head_dim,
            "the head dimension of latent attention is qk_nope_head_dim + qk_rope_head_dim; leave "
            "d_kv out"),
        MODEL_RULE(mla,
            m->index_heads > 0 &&
                (m->index_head_dim == 0 || m->index_topk == 0 || m->q_lora_rank == 0),
            "an indexer needs index_head_dim, index_topk and the latent of queries, q_lora_rank"),
        MODEL_RULE(mla,
            latent && (s->qk_norm || s->fused_projections || s->biases || s->sliding_window > 0),
            "latent attention without norms of heads, fused matrices, biases and windows is "
            "modelled"),
    };
    return model_first_wrong(rules, sizeof rules / sizeof *rules, offset);
}
