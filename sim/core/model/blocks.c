/* Decoders whose blocks are not all alike (Llama): which see all keys and which a window, what the
 * former have in the place of the latter's heads (MiMo-V2, Gemma 4), and models whose blocks differ
 * one by one, as a search of architectures left them (Puzzle, arXiv 2411.19146:
 * Llama-3.3-Nemotron-Super). The latter's list is a text, "8x28672 0x14336*2 8x0": key heads and
 * width of the feed-forward layer, 0 for none of it, and of how many blocks. */
#include "model/family.h"

#include <stdlib.h>
#include <string.h>

/* The block from 0 on that the list says it of; false: the list ends before, or says something
 * else. */
struct block_run {
    int64_t n_kv_heads, d_ff, blocks;
};

static bool blocks_read_number(const char **text, int64_t most, int64_t *out)
{
    char *end = NULL;
    if (**text < '0' || **text > '9')
        return false;
    *out = strtoll(*text, &end, 10);
    *text = end;
    return *out <= most;
}

static bool read_run(const char **text, struct block_run *run)
{
    run->blocks = 1;
    *text += strspn(*text, " ");
    if (!blocks_read_number(text, MODEL_MAX_HEADS, &run->n_kv_heads) || **text != 'x')
        return false;
    ++*text;
    if (!blocks_read_number(text, MODEL_MAX_WIDTH, &run->d_ff))
        return false;
    if (**text == '*') {
        ++*text;
        if (!blocks_read_number(text, MODEL_MAX_LAYERS, &run->blocks))
            return false;
    }
    return run->blocks > 0 && (**text == ' ' || **text == '\0');
}

static struct block_run run_of(const struct model_shape *shape, int64_t block)
{
    const char *text = shape->blocks;
    struct block_run run = {0};
    while (read_run(&text, &run) && block >= run.blocks)
        block -= run.blocks;
    int64_t ranks = shape->blocks_ranks > 1 ? shape->blocks_ranks : 1;
    if (run.n_kv_heads > 0)
        run.n_kv_heads = run.n_kv_heads > ranks ? run.n_kv_heads / ranks : 1;
    run.d_ff /= ranks;
    return run;
}

static bool blocks_sees_all(const struct model_shape *shape, int64_t layer)
{
    layer = model_kind_of(shape, layer);
    if (shape->attention_pattern)
        return layer > 0 && shape->attention_pattern[layer - 1] == 'f';
    return shape->full_attention_every > 0 && layer % shape->full_attention_every == 0;
}

int64_t model_window(const struct model_shape *shape, int layer)
{
    bool narrow =
        model_kind_of(shape, layer) > shape->max_window_layers && !blocks_sees_all(shape, layer);
    return narrow ? shape->sliding_window : 0;
}

int64_t model_chunk(const struct model_shape *shape, int layer)
{
    return layer > 0 && !blocks_sees_all(shape, layer) ? shape->attention_chunk : 0;
}

/* What is given replaces what all blocks have. */
static void take_full(struct model_shape *own, const struct model_full *full)
{
    own->n_heads = full->n_heads > 0 ? full->n_heads : own->n_heads;
    own->n_kv_heads = full->n_kv_heads > 0 ? full->n_kv_heads : own->n_kv_heads;
    own->d_kv = full->d_kv > 0 ? full->d_kv : own->d_kv;
    own->value_dim = full->value_dim > 0 ? full->value_dim : own->value_dim;
    own->rotary_share = full->rotary_share > 0 ? full->rotary_share : own->rotary_share;
    own->keys_are_values = full->keys_are_values;
    own->attention_sinks = own->attention_sinks && !full->no_sinks;
}

bool model_has_full(const struct model_shape *shape)
{
    const struct model_full *full = &shape->full;
    return full->n_heads > 0 || full->n_kv_heads > 0 || full->d_kv > 0 || full->value_dim > 0 ||
           full->rotary_share > 0 || full->keys_are_values || full->no_sinks;
}

const struct model_shape *model_block_shape(
    const struct model_shape *shape, int64_t layer, struct arena *arena)
{
    bool other = model_has_full(shape) && blocks_sees_all(shape, layer);
    if (layer < 1 || (!other && !shape->blocks))
        return shape;
    struct model_shape *own = ARENA_NEW(arena, struct model_shape);
    *own = *shape;
    if (other)
        take_full(own, &shape->full);
    if (shape->blocks) {
        struct block_run run = run_of(shape, model_kind_of(shape, layer) - 1);
        own->n_kv_heads = run.n_kv_heads;
        own->d_ff = run.d_ff;
    }
    return own;
}

int64_t model_key_heads(const struct model_shape *shape, int64_t layer)
{
    if (shape->blocks)
        return run_of(shape, model_kind_of(shape, layer) - 1).n_kv_heads;
    return blocks_sees_all(shape, layer) && shape->full.n_kv_heads > 0 ? shape->full.n_kv_heads
                                                                       : shape->n_kv_heads;
}

int64_t model_cached_width(const struct model_shape *shape, int64_t layer)
{
    struct model_shape own = *shape;
    if (blocks_sees_all(shape, layer))
        take_full(&own, &shape->full);
    int64_t latent = own.mla.v_head_dim, value = latent > 0          ? latent
                                                 : own.value_dim > 0 ? own.value_dim
                                                                     : own.d_kv;
    return model_key_heads(shape, layer) * (own.d_kv + value);
}

/* A sentence, or NULL. */
static const char *blocks_wrong(const struct model_shape *s)
{
    const char *text = s->blocks;
    struct block_run run = {0};
    int64_t n = 0;
    while (text && *text) {
        if (!read_run(&text, &run))
            return "blocks is a list of key heads and widths, as in \"8x28672 0x14336*2\": 0 is "
                   "none, *2 of two blocks";
        if (run.n_kv_heads + run.d_ff == 0)
            return "a block has attention, a feed-forward layer or both; leave those with neither "
                   "out";
        if (run.n_kv_heads > 0 && s->n_heads % run.n_kv_heads)
            return "the number of heads must be a multiple of the number of key heads of each "
                   "block";
        n += run.blocks;
    }
    return text && n != s->n_layers ? "blocks is a list of all blocks of the model, n_layers"
                                    : NULL;
}

bool blocks_divide(const struct model_shape *s, int64_t ranks)
{
    const char *text = s->blocks;
    struct block_run run = {0};
    while (text && read_run(&text, &run))
        if (run.d_ff % ranks ||
            (run.n_kv_heads > 0 && run.n_kv_heads % ranks && ranks % run.n_kv_heads))
            return false;
    return true;
}

const char *blocks_check(const struct model_shape *s, size_t *offset)
{
    const char *pattern = s->attention_pattern, *wrong = blocks_wrong(s);
    bool other = model_has_full(s);
    int64_t heads = s->full.n_heads > 0 ? s->full.n_heads : s->n_heads;
    int64_t keys = s->full.n_kv_heads > 0 ? s->full.n_kv_heads : s->n_kv_heads;
    const struct model_rule rules[] = {
        MODEL_RULE(blocks, wrong != NULL, wrong),
        MODEL_RULE(blocks,
            s->blocks &&
                (s->moe.experts > 0 || s->mixer.kind != MIXER_NONE || s->mla.kv_lora_rank > 0 ||
                    s->pattern || s->mtp_layers > 0 || s->post_norms || other),
            "blocks that differ one by one are modelled of attention and a dense feed-forward "
            "layer"),
        MODEL_RULE(attention_pattern, pattern && strspn(pattern, "fw") != strlen(pattern),
            "attention_pattern has a character for each block: f, full attention, or w, a window"),
        MODEL_RULE(attention_pattern, pattern && strlen(pattern) != (size_t)s->n_layers,
            "attention_pattern has a character for each block, n_layers"),
        MODEL_RULE(attention_pattern,
            pattern &&
                (s->full_attention_every > 0 || s->max_window_layers > 0 || s->sliding_window == 0),
            "attention_pattern says which blocks have the sliding_window, in place of "
            "full_attention_every and max_window_layers"),
        MODEL_RULE(full, other && !pattern && s->full_attention_every == 0,
            "full says what blocks of full_attention_every or of attention_pattern have; neither "
            "is given"),
        MODEL_RULE(
            full, other && s->mla.kv_lora_rank > 0, "full is of attention that is not latent"),
        MODEL_RULE(full, heads % keys != 0,
            "full: the number of heads must be a multiple of that of key heads"),
        MODEL_RULE(
            full, s->full.d_kv % 2 != 0, "full: rotary positions need an even head dimension"),
        MODEL_RULE(full, s->full.keys_are_values && s->full.value_dim > 0,
            "full: keys that are values have their dimension; leave value_dim out"),
        MODEL_RULE(full, s->full.keys_are_values && (s->fused_projections || s->value_dim > 0),
            "full: keys that are values are modelled with separate matrices, of one dimension"),
        MODEL_RULE(value_dim, s->value_dim > 0 && (s->mla.kv_lora_rank > 0 || s->attention_gate),
            "values of another dimension than keys are modelled without latents (there v_head_dim "
            "is it) and gates"),
        MODEL_RULE(value_norm, s->value_norm && (s->value_dim > 0 || s->full.value_dim > 0),
            "norms of values are modelled where they have the keys' dimension"),
        MODEL_RULE(qk_norm_whole, s->qk_norm_whole && (s->qk_norm || s->qk_plain_norm),
            "queries and keys are normed head by head (qk_norm, qk_plain_norm) or whole "
            "(qk_norm_whole)"),
    };
    return model_first_wrong(rules, sizeof rules / sizeof *rules, offset);
}
