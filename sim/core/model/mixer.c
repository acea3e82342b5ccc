/* What a block has in the place of attention. Layouts and names as in Hugging Face transformers.
 *   deltanet  Qwen3NextGatedDeltaNet: q, k, v and a gate by one matrix, two numbers a head by
 *             another, a filter over q, k and v, the gated delta rule, a norm of each head times
 *             silu(gate), a projection back (Qwen3.5: q, k and v, the gate and the two numbers by a
 *             matrix each)
 *   mamba     JambaMambaMixer: x and a gate by one matrix, a filter over x, of which time steps, B
 *             and C are made and normed, a selective scan, silu(gate), a projection back
 *   mamba2    Mamba2Mixer: a gate, x with B and C, and time steps by one matrix, a filter, SSD, a
 *             norm, a projection
 * The scans and their rates: model/tape_scan.c.
 *
 * A pattern (Nemotron-H, arXiv 2504.03624) says block by block which one sub-layer it has: the
 * mixer, attention, the feed-forward layer or (Nemotron 3) experts, with a norm before it.
 *
 * Ignored: norms of DeltaNet's queries and keys, which its kernel does; softplus and the like of
 * numbers a head; that Mamba 2's norm is a gated one over groups. */
#include "model/family.h"

#include <string.h>

const char *const mixer_names[MIXER_COUNT + 1] = {[MIXER_NONE] = "none",
    [MIXER_DELTANET] = "deltanet",
    [MIXER_MAMBA] = "mamba",
    [MIXER_MAMBA2] = "mamba2"};

bool model_mixes(const struct model_shape *shape, int layer)
{
    const struct model_mixer *m = &shape->mixer;
    if (shape->pattern)
        return layer > 0 && shape->pattern[layer - 1] == 'M';
    bool attends = m->attention_every > 0 &&
                   model_kind_of(shape, layer) % m->attention_every == m->attention_at;
    return layer > 0 && m->kind != MIXER_NONE && !attends;
}

bool model_attends(const struct model_shape *shape, int layer)
{
    if (shape->pattern || layer < 1)
        return layer > 0 && shape->pattern[layer - 1] == '*';
    return !model_mixes(shape, layer) && (!shape->blocks || model_key_heads(shape, layer) > 0);
}

/* Columns of values; of keys and queries together; of what the filter goes over. */
static int64_t inner(const struct model_mixer *m)
{
    return m->heads * m->head_dim;
}

static int64_t keyed(const struct model_mixer *m)
{
    return 2 * m->groups * m->state;
}

static int64_t filtered(const struct model_mixer *m)
{
    return m->kind == MIXER_MAMBA ? inner(m) : inner(m) + keyed(m);
}

static void scan_tensors(struct model_builder *b, bool has_d)
{
    const struct model_mixer *m = &b->shape->mixer;
    bool mamba = m->kind == MIXER_MAMBA;
    build_tensor(b, "self_attn.scan.A_log", mamba ? inner(m) : m->heads, mamba ? m->state : 1);
    if (!mamba)
        build_tensor(b, "self_attn.scan.dt_bias", m->heads, 1);
    if (has_d)
        build_tensor(b, "self_attn.scan.D", mamba ? inner(m) : m->heads, 1);
}

static void mamba_tensors(struct model_builder *b)
{
    const struct model_mixer *m = &b->shape->mixer;
    build_tensor(b, "self_attn.x_proj.weight", m->dt_rank + keyed(m), inner(m));
    build_linear(b, "self_attn.dt_proj", m->dt_rank, inner(m));
    build_tensor(b, "self_attn.dt_layernorm.weight", m->dt_rank, 1);
    build_tensor(b, "self_attn.b_layernorm.weight", m->state, 1);
    build_tensor(b, "self_attn.c_layernorm.weight", m->state, 1);
}

void mixer_tensors(struct model_builder *b)
{
    const struct model_mixer *m = &b->shape->mixer;
    const int64_t d = b->shape->d_model;
    bool delta = m->kind == MIXER_DELTANET, steps = m->kind == MIXER_MAMBA2;
    if (m->apart) {
        build_tensor(b, "self_attn.in_proj_qkv.weight", filtered(m), d);
        build_tensor(b, "self_attn.in_proj_z.weight", inner(m), d);
        build_tensor(b, "self_attn.in_proj_b.weight", m->heads, d);
        build_tensor(b, "self_attn.in_proj_a.weight", m->heads, d);
    } else {
        build_tensor(
            b, "self_attn.in_proj.weight", filtered(m) + inner(m) + (steps ? m->heads : 0), d);
        if (delta)
            build_tensor(b, "self_attn.in_proj_ba.weight", 2 * m->heads, d);
    }
    build_tensor(b, "self_attn.conv1d.weight", filtered(m), m->conv);
    if (!delta)
        build_tensor(b, "self_attn.conv1d.bias", filtered(m), 1);
    if (m->kind == MIXER_MAMBA)
        mamba_tensors(b);
    else
        build_tensor(b, "self_attn.norm.weight", delta ? m->head_dim : inner(m), 1);
    scan_tensors(b, !delta);
    build_tensor(b, "self_attn.out_proj.weight", d, inner(m));
}

static int gated(struct tape *t, int out, int gate)
{
    return tape_mul(t, "gate.mul", out, tape_map(t, "gate.silu", TAPE_SILU, gate));
}

static int deltanet(const struct segment_context *c, int x)
{
    struct tape *t = c->tape;
    const struct model_mixer *m = &c->shape->mixer;
    const int64_t rows = tape_rows(t, x), widths[2] = {filtered(m), inner(m)};
    int parts[2], rates = -1, last = -1;
    if (m->apart) {
        parts[0] = tape_linear(t, "in_proj_qkv", x);
        parts[1] = tape_linear(t, "in_proj_z", x);
        rates = tape_linear(t, "in_proj_b", x);
        last = tape_linear(t, "in_proj_a", x);
    } else {
        tape_split(t, "in_proj.split", tape_linear(t, "in_proj", x), widths, parts, 2);
        rates = tape_linear(t, "in_proj_ba", x);
    }
    int out = tape_scan(t, "scan", m, tape_filter(t, "conv1d", parts[0], m->conv), rates, last);
    out = tape_rms_norm(t, "norm", tape_view(t, "heads", out, rows * m->heads, m->head_dim), true);
    return gated(t, tape_view(t, "heads", out, rows, inner(m)), parts[1]);
}

static int mamba2(const struct segment_context *c, int x)
{
    struct tape *t = c->tape;
    const struct model_mixer *m = &c->shape->mixer;
    const int64_t widths[3] = {inner(m), filtered(m), m->heads};
    int parts[3];
    tape_split(t, "in_proj.split", tape_linear(t, "in_proj", x), widths, parts, 3);
    int out = tape_scan(t, "scan", m, tape_filter(t, "conv1d", parts[1], m->conv), parts[2], -1);
    return tape_rms_norm(t, "norm", gated(t, out, parts[0]), true);
}

static int mamba(const struct segment_context *c, int x)
{
    struct tape *t = c->tape;
    const struct model_mixer *m = &c->shape->mixer;
    const int64_t widths[2] = {inner(m), inner(m)}, narrow[3] = {m->dt_rank, m->state, m->state};
    int parts[2], of[3];
    tape_split(t, "in_proj.split", tape_linear(t, "in_proj", x), widths, parts, 2);
    int filtered_x = tape_filter(t, "conv1d", parts[0], m->conv);
    tape_split(t, "x_proj.split", tape_linear(t, "x_proj", filtered_x), narrow, of, 3);
    int steps = tape_linear(t, "dt_proj", tape_rms_norm(t, "dt_layernorm", of[0], true));
    int keys = tape_rms_norm(t, "b_layernorm", of[1], true);
    keys = tape_cat(t, "bc.cat", keys, tape_rms_norm(t, "c_layernorm", of[2], true));
    return gated(t, tape_scan(t, "scan", m, filtered_x, steps, keys), parts[1]);
}

int mixer_forward(const struct segment_context *c, int x)
{
    int kind = c->shape->mixer.kind;
    int out = kind == MIXER_DELTANET ? deltanet(c, x)
              : kind == MIXER_MAMBA2 ? mamba2(c, x)
                                     : mamba(c, x);
    return tape_linear(c->tape, "out_proj", out);
}

const char *mixer_check(const struct model_shape *s, size_t *offset)
{
    const struct model_mixer *m = &s->mixer;
    bool mixes = m->kind != MIXER_NONE;
    const struct model_rule rules[] = {
        MODEL_RULE(mixer, !mixes && m->heads > 0, "a mixer has a kind other than none"),
        MODEL_RULE(mixer,
            mixes && (m->heads == 0 || m->head_dim == 0 || m->groups == 0 || m->state == 0 ||
                         m->conv == 0),
            "a mixer needs heads, head_dim, groups, state and conv"),
        MODEL_RULE(mixer,
            m->kind == MIXER_MAMBA && (m->dt_rank == 0 || m->groups != 1 || m->heads != 1),
            "mamba has one head of all channels, one group and a dt_rank"),
        MODEL_RULE(mixer, m->apart && m->kind != MIXER_DELTANET, "apart is of deltanet's matrices"),
        MODEL_RULE(mixer, mixes && m->groups > 0 && m->heads % m->groups != 0,
            "the number of a mixer's heads must be a multiple of its groups"),
        MODEL_RULE(mixer, m->attention_at > 0 && m->attention_at >= m->attention_every,
            "attention_at is less than attention_every"),
        MODEL_RULE(mixer, mixes && s->post_norms,
            "mixers are modelled with one norm before each sub-layer"),
        MODEL_RULE(pattern, s->pattern && strchr(s->pattern, 'M') && !mixes,
            "blocks 'M' of a pattern need a mixer"),
        MODEL_RULE(pattern, s->pattern && strchr(s->pattern, '-') && s->d_ff == 0,
            "blocks '-' of a pattern need d_ff"),
        MODEL_RULE(pattern, s->pattern && (m->attention_every > 0 || s->full_attention_every > 0),
            "a pattern says which blocks attend; leave attention_every and full_attention_every "
            "out"),
        MODEL_RULE(pattern, s->pattern && (s->post_norms || s->mtp_layers > 0),
            "a pattern is modelled without norms behind sub-layers and multi-token prediction"),
    };
    return model_first_wrong(rules, sizeof rules / sizeof *rules, offset);
}
