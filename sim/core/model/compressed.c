/* DeepSeek-V4's decoder (its inference code, recalled; its report is not at hand): one head of
 * keys, which are the values, too; queries of a latent; results of groups of heads to a latent
 * each, and of these to the residual stream. A query attends to the last keys, a sliding window,
 * and to compressed keys before them, each made of `ratio` tokens (with those of its neighbour):
 * those that an indexer chooses (pattern c); or of `heavy_ratio` tokens: all of them (h); or to
 * none (w). A gate weighs the tokens of a compressed key by a softmax of them with learned
 * positions.
 *
 * Hyper-connections (arXiv 2409.19606; there held on a manifold by Sinkhorn's iterations): the
 * residual stream is `hyper` streams; of all of them numbers are made by which they are mixed into
 * what a sub-layer reads, by which its result goes to each, and by which they are mixed among
 * themselves.
 *
 * Assumed: attention to a window and to chosen or compressed keys works as a window with as many
 * keys does in the mean; mixing is done element by element, Sinkhorn's iterations in one kernel; a
 * softmax over the tokens of a compressed key takes what one along rows does. Ignored: FP4 and FP8
 * of inference; that sqrt(softplus) of the router are two kernels; that experts of the first blocks
 * are chosen by a table of words (moe.hash_layers), and the table. */
#include "model/family.h"

#include <string.h>

int64_t model_stream_width(const struct model_shape *s)
{
    return s->hyper > 1 ? s->hyper * s->d_model : s->d_model;
}

static char compressed_kind_of(const struct model_shape *s, int64_t layer)
{
    return s->compressed.pattern[model_kind_of(s, layer) - 1];
}

/* ---- compressed attention ---- */

/* Columns of what is compressed: with its neighbour's tokens two halves. */
static int64_t halves(char kind)
{
    return kind == 'c' ? 2 : 1;
}

static void compressor_tensors(
    struct model_builder *b, const char *scope, int64_t ratio, int64_t cols, int64_t width)
{
    struct arena *arena = b->arena;
    build_tensor(b, arena_printf(arena, "self_attn.%s.ape", scope), ratio, cols);
    build_tensor(b, arena_printf(arena, "self_attn.%s_kv.weight", scope), cols, b->shape->d_model);
    build_tensor(
        b, arena_printf(arena, "self_attn.%s_gate.weight", scope), cols, b->shape->d_model);
    build_tensor(b, arena_printf(arena, "self_attn.%s_norm.weight", scope), width, 1);
}

void compressed_tensors(struct model_builder *b, int64_t layer)
{
    const struct model_shape *s = b->shape;
    const struct model_compressed *m = &s->compressed;
    int64_t d = s->d_model, inner = s->n_heads * s->d_kv;
    char kind = compressed_kind_of(s, layer);
    build_tensor(b, "self_attn.q_a_proj.weight", m->q_lora_rank, d);
    build_tensor(b, "self_attn.q_a_layernorm.weight", m->q_lora_rank, 1);
    build_tensor(b, "self_attn.q_b_proj.weight", inner, m->q_lora_rank);
    build_tensor(b, "self_attn.kv_proj.weight", s->d_kv, d);
    build_tensor(b, "self_attn.kv_norm.weight", s->d_kv, 1);
    build_tensor(b, "self_attn.o_a.grouped", m->o_groups * m->o_lora_rank, inner / m->o_groups);
    build_tensor(b, "self_attn.o_b_proj.weight", d, m->o_groups * m->o_lora_rank);
    build_tensor(b, "self_attn.sinks", s->n_heads, 1);
    if (kind != 'w')
        compressor_tensors(b, "compress", kind == 'c' ? m->ratio : m->heavy_ratio,
            halves(kind) * s->d_kv, s->d_kv);
    if (kind != 'c')
        return;
    build_tensor(
        b, "self_attn.indexer.wq_b.weight", m->index_heads * m->index_head_dim, m->q_lora_rank);
    build_tensor(b, "self_attn.indexer.weights_proj.weight", m->index_heads, d);
    compressor_tensors(b, "indexer.wc", m->ratio, 2 * m->index_head_dim, m->index_head_dim);
}

/* Of a sequence. */
static int64_t compressed_keys(const struct segment_context *c, int64_t ratio)
{
    return (c->workload->seq_len + ratio - 1) / ratio;
}

/* A key of `ratio` tokens each. */
static int compressed_compress(const struct segment_context *c, const char *scope, int x,
    int64_t ratio, int64_t width, bool both)
{
    struct tape *t = c->tape;
    struct arena *arena = c->arena;
    const int64_t keys = c->workload->micro_batch * compressed_keys(c, ratio),
                  cols[2] = {width, width};
    int kv = tape_linear(t, arena_printf(arena, "%s_kv", scope), x), parts[2];
    int gate = tape_linear(t, arena_printf(arena, "%s_gate", scope), x);
    gate = tape_add_learned(t, scope, "ape", gate);
    gate = tape_cast_to_storage(t, arena_printf(arena, "%s.to", scope),
        tape_softmax(t, arena_printf(arena, "%s.softmax", scope), gate, true));
    int out = tape_pool(t, arena_printf(arena, "%s.sum", scope), TAPE_POOL_MEAN,
        tape_mul(t, arena_printf(arena, "%s.mul", scope), kv, gate), keys);
    if (both) {
        tape_split(t, arena_printf(arena, "%s.halves", scope), out, cols, parts, 2);
        out = tape_add(t, arena_printf(arena, "%s.add", scope), parts[0], parts[1]);
    }
    return tape_rms_norm(t, arena_printf(arena, "%s_norm", scope), out, true);
}

/* As DeepSeek-V3.2's indexer (model/mla.c), on compressed keys. */
static int compressed_choose(const struct segment_context *c, int x, int latent, int goes_on)
{
    struct tape *t = c->tape;
    const struct model_compressed *m = &c->shape->compressed;
    int detached = tape_detach(t, "indexer.x", x);
    int q = tape_linear(t, "indexer.wq_b", tape_detach(t, "indexer.q", latent));
    int k = compressed_compress(c, "indexer.wc", detached, m->ratio, m->index_head_dim, true);
    struct tape_attention a = self_attention(c, false);
    a.heads = m->index_heads;
    a.head_dim = m->index_head_dim;
    a.keys = compressed_keys(c, m->ratio);
    return mla_index(c, detached, q, k, goes_on, a);
}

/* Keys that a query attends to beside its window, in the mean. */
static int64_t keys_beside(const struct model_compressed *m, char kind, int64_t length)
{
    int64_t fine = length / (m->ratio > 0 ? m->ratio : 1),
            chosen = fine < m->index_topk ? fine : m->index_topk;
    return kind == 'c' ? chosen : kind == 'h' ? length / (2 * m->heavy_ratio) : 0;
}

int compressed_forward(const struct segment_context *c, int x)
{
    struct tape *t = c->tape;
    const struct model_shape *s = c->shape;
    const struct model_compressed *m = &s->compressed;
    const int64_t rows = tape_rows(t, x), inner = s->n_heads * s->d_kv;
    char kind = compressed_kind_of(s, c->layer);
    struct tape_attention a = self_attention(c, false);
    int latent = tape_rms_norm(t, "q_a_layernorm", tape_linear(t, "q_a_proj", x), true);
    int q = family_plain_norm(t, c, "q_norm", tape_linear(t, "q_b_proj", latent), s->n_heads);
    q = family_turn(t, s, q, s->n_heads);
    int kv = family_turn(t, s, tape_rms_norm(t, "kv_norm", tape_linear(t, "kv_proj", x), true), 1);
    if (kind != 'w') {
        int *both = ARENA_ARRAY(c->arena, int, 2);
        both[0] = kv;
        both[1] = compressed_compress(
            c, "compress", x, kind == 'c' ? m->ratio : m->heavy_ratio, s->d_kv, kind == 'c');
        both[1] = family_turn(t, s, both[1], 1);
        kv = tape_stack(t, "keys.cat", both, 2);
    }
    if (kind == 'c')
        q = compressed_choose(c, x, latent, q);
    if (c->workload->attention !=
        ATTENTION_FLASH) { /* all keys, those of the window for each head, and a mask */
        a.keys += kind == 'w' ? 0 : compressed_keys(c, kind == 'c' ? m->ratio : m->heavy_ratio);
        kv = tape_repeat(t, "keys.repeat", kv, s->n_heads);
    }
    a.window = s->sliding_window + keys_beside(m, kind, c->workload->seq_len);
    int context = tape_sinks(t, "sinks", family_attend(c, q, kv, kv, a), s->n_heads);
    context = tape_view(t, "o_a.groups", context, rows * m->o_groups, inner / m->o_groups);
    struct tape_experts groups = {m->o_groups, m->o_groups, 0, (double)(rows * m->o_groups)};
    context = tape_experts(t, "o_a", "grouped", context, groups);
    return tape_linear(
        t, "o_b_proj", tape_view(t, "o_a.latents", context, rows, m->o_groups * m->o_lora_rank));
}

/* ---- hyper-connections ---- */

static int64_t mixes(const struct model_shape *s)
{
    return (2 + s->hyper) * s->hyper;
}

void hyper_tensors(struct model_builder *b, const char *scope)
{
    if (b->shape->hyper < 2)
        return;
    build_linear(
        b, arena_printf(b->arena, "%s_fn", scope), model_stream_width(b->shape), mixes(b->shape));
    build_tensor(b, arena_printf(b->arena, "%s.scale", scope), 3,
        1); /* of each of the three kinds of numbers */
}

void hyper_root_tensors(struct model_builder *b)
{
    if (b->shape->hyper < 2)
        return;
    build_linear(b, "hc_head_fn", model_stream_width(b->shape), b->shape->hyper);
    build_tensor(b, "hc_head.scale", 1, 1);
}

/* What a sub-layer reads: the streams, times a number each, added. */
static int compressed_gather(const struct segment_context *c, const char *scope, int x, int numbers)
{
    struct tape *t = c->tape;
    const int64_t rows = tape_rows(t, x), h = c->shape->hyper, d = c->shape->d_model;
    int streams = tape_view(t, arena_printf(c->arena, "%s.streams", scope), x, rows * h, d);
    numbers = tape_view(t, arena_printf(c->arena, "%s.pre", scope), numbers, rows * h, 1);
    int weighed = tape_mul(t, arena_printf(c->arena, "%s.weigh", scope), streams, numbers);
    return tape_pool(t, arena_printf(c->arena, "%s.sum", scope), TAPE_POOL_MEAN, weighed, rows);
}

static int numbers_of(const struct segment_context *c, const char *scope, int x)
{
    struct tape *t = c->tape;
    int numbers = tape_linear(t, arena_printf(c->arena, "%s_fn", scope), x);
    numbers = tape_add_learned(t, scope, "scale", numbers);
    return tape_map(t, arena_printf(c->arena, "%s.sinkhorn", scope), TAPE_SIGMOID, numbers);
}

int hyper_enter(const struct segment_context *c, const char *scope, int x, struct hyper_pass *pass)
{
    const int64_t h = c->shape->hyper, cols[3] = {h, h, h * h};
    int parts[3];
    *pass = (struct hyper_pass){.streams = x};
    if (h < 2)
        return x;
    tape_split(c->tape, arena_printf(c->arena, "%s.split", scope), numbers_of(c, scope, x), cols,
        parts, 3);
    pass->to = parts[1];
    pass->among = parts[2];
    return compressed_gather(c, scope, x, parts[0]);
}

int hyper_leave(
    const struct segment_context *c, const char *scope, const struct hyper_pass *pass, int out)
{
    struct tape *t = c->tape;
    const int64_t h = c->shape->hyper, d = c->shape->d_model, rows = tape_rows(t, out);
    struct arena *arena = c->arena;
    int streams = tape_view(t, arena_printf(arena, "%s.before", scope), pass->streams, rows * h, d);
    int among = tape_view(t, arena_printf(arena, "%s.comb", scope), pass->among, rows * h, h);
    among = tape_mean(t, arena_printf(arena, "%s.mix", scope), among);
    streams = tape_mul(t, arena_printf(arena, "%s.mixed", scope), streams, among);
    int to = tape_view(t, arena_printf(arena, "%s.post", scope), pass->to, rows * h, 1);
    out = tape_mul(t, arena_printf(arena, "%s.given", scope),
        tape_expand(t, arena_printf(arena, "%s.expand", scope), out, h), to);
    streams = tape_view(t, arena_printf(arena, "%s.mixed.rows", scope), streams, rows, h * d);
    out = tape_view(t, arena_printf(arena, "%s.given.rows", scope), out, rows, h * d);
    return tape_add(t, arena_printf(arena, "%s.residual", scope), streams, out);
}

int hyper_begin(const struct segment_context *c, int words)
{
    struct tape *t = c->tape;
    int64_t rows = tape_rows(t, words), h = c->shape->hyper;
    if (h < 2)
        return words;
    return tape_copy(t, "model.streams", words, rows, h * c->shape->d_model);
}

int hyper_end(const struct segment_context *c, int x)
{
    return c->shape->hyper < 2 ? x
                               : compressed_gather(c, "hc_head", x, numbers_of(c, "hc_head", x));
}

const char *compressed_check(const struct model_shape *s, size_t *offset)
{
    const struct model_compressed *m = &s->compressed;
    bool on = m->pattern != NULL;
    const char *pattern = on ? m->pattern : "";
    const struct model_rule rules[] = {
        MODEL_RULE(compressed, !on && (m->q_lora_rank > 0 || m->o_groups > 0 || m->ratio > 0),
            "compressed attention has a pattern of its blocks; give it, or leave out compressed"),
        MODEL_RULE(compressed,
            strspn(pattern, "wch") != strlen(pattern) ||
                (on && strlen(pattern) != (size_t)s->n_layers),
            "the pattern of compressed attention has a character for each block: w, a window "
            "alone, c or h"),
        MODEL_RULE(compressed,
            on && (m->q_lora_rank == 0 || m->o_groups == 0 || m->o_lora_rank == 0),
            "compressed attention needs q_lora_rank, o_groups and o_lora_rank"),
        MODEL_RULE(compressed, on && m->o_groups > 0 && s->n_heads % m->o_groups != 0,
            "the number of heads must be a multiple of o_groups"),
        MODEL_RULE(compressed,
            strchr(pattern, 'c') && (m->ratio == 0 || m->index_heads == 0 ||
                                        m->index_head_dim == 0 || m->index_topk == 0),
            "blocks 'c' need a ratio and an indexer: index_heads, index_head_dim and index_topk"),
        MODEL_RULE(compressed, strchr(pattern, 'h') && m->heavy_ratio == 0,
            "blocks 'h' need a heavy_ratio"),
        MODEL_RULE(compressed, on && (s->n_kv_heads != 1 || s->sliding_window == 0),
            "compressed attention has one key head (n_kv_heads: 1) and a sliding_window"),
        MODEL_RULE(compressed,
            on && (s->mla.kv_lora_rank > 0 || s->mixer.kind != MIXER_NONE || s->pattern ||
                      s->blocks || s->biases || s->fused_projections || s->qk_norm ||
                      s->attention_pattern || s->full_attention_every > 0 ||
                      s->max_window_layers > 0 || s->value_dim > 0 || s->mtp_layers > 0),
            "compressed attention is modelled without latents of keys, mixers, biases, other "
            "windows and multi-token prediction"),
        MODEL_RULE(hyper,
            s->hyper > 1 && (s->post_norms || s->pattern || s->blocks || s->mtp_layers > 0),
            "hyper-connections are modelled with one norm before each of two sub-layers"),
    };
    return model_first_wrong(rules, sizeof rules / sizeof *rules, offset);
}
