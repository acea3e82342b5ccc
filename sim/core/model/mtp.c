/* The head of a decoder, and multi-token prediction (DeepSeek-V3, arXiv 2412.19437, section 2.2;
 * GLM-4.5), as Megatron-LM trains it (megatron/core/transformer/multi_token_prediction.py,
 * recalled): each of mtp_layers layers looks up the next token's embedding in the model's own
 * table, norms it (enorm) and what the layer before gives behind its last norm (hnorm), projects
 * both together to d_model (eh_proj), goes through a block as the last one is and a further norm
 * (shared_head.norm) into the model's head; the loss is added. Names are those of the published
 * checkpoints, without their copies of embedding and head: model.layers.N.eh_proj for the first
 * layer behind N blocks.
 *
 * SEGMENT_MTP, of the root, is the head for what comes from the block before it, and the norms of
 * what goes on; the layer, a block as others are (FP8, recomputation, experts), begins with
 * eh_proj. It stands with the head, where the embedding is, too.
 *
 * Assumed: a head runs as soon as its layer has; Megatron-LM runs them all at the end, in the same
 * memory. Ignored: that ids and labels are rolled by a position (between ranks of context
 * parallelism, too); with full recomputation, that Megatron-LM keeps what the two norms read, not
 * their results beside it. */
#include "model/family.h"

static const char *scope_of(struct arena *arena, const struct model_shape *s, int64_t i)
{
    return arena_printf(arena, "model.layers.%d", (int)(s->n_layers + i));
}

void mtp_root_tensors(struct model_builder *b)
{
    const struct model_shape *s = b->shape;
    static const char *const norms[] = {"enorm", "hnorm", "shared_head.norm"};
    for (int64_t i = 0; i < s->mtp_layers; i++)
        for (size_t k = 0; k < sizeof norms / sizeof *norms; k++)
            build_tensor(b,
                arena_printf(b->arena, "%s.%s.weight", scope_of(b->arena, s, i), norms[k]),
                s->d_model, 1);
}

void mtp_block_tensors(struct model_builder *b, int block)
{
    const struct model_shape *s = b->shape;
    if (block >= s->n_layers)
        build_tensor(
            b, "eh_proj.weight", s->mtp_width > 0 ? s->mtp_width : s->d_model, 2 * s->d_model);
}

/* Layers on this rank. */
static int model_mtp_layers(const struct segment_context *c)
{
    return c->ends & MODEL_EXIT ? (int)c->shape->mtp_layers : 0;
}

/* Of this rank's uses of a matrix of words, in the order of backward, one that is `back` segments
 * before the last. A segment's lookup comes before its head; with tied embeddings both are of one
 * matrix. */
static enum tape_turn mtp_turn(const struct segment_context *c, bool looks_up, int back)
{
    bool tied = c->shape->tied_embeddings;
    int heads = c->ends & MODEL_EXIT ? model_mtp_layers(c) + 1 : 0,
        lookups = model_mtp_layers(c) + (c->ends & MODEL_ENTRY ? 1 : 0);
    int n = (looks_up && !tied ? 0 : heads) + (looks_up || tied ? lookups : 0), at = back;
    if (looks_up)
        at = back - 1 + (!tied ? 0 : heads < back ? heads : back);
    else if (tied)
        at = 2 * back;
    return n == 1 ? TURN_ONLY : at == 0 ? TURN_FIRST : at == n - 1 ? TURN_LAST : TURN_MIDDLE;
}

enum tape_turn mtp_entry_turn(const struct segment_context *c)
{
    return mtp_turn(c, true, model_mtp_layers(c) + 1);
}

/* The loss. */
static int mtp_predict(const struct segment_context *c, int normed, int back)
{
    struct tape *t = c->tape;
    const char *matrix = c->shape->tied_embeddings ? "model.embed_tokens" : "lm_head";
    int logits = tape_linear_shared(
        t, matrix, tape_enter(t, "lm_head.in", normed), mtp_turn(c, false, back));
    if (c->shape->logit_softcap > 0)
        logits =
            family_softcap(t, (const char *[]){"logits.div", "logits.tanh", "logits.mul"}, logits);
    return tape_word_loss(t, "loss", logits);
}

/* What layer i takes: words and what was normed, side by side. */
static int both(const struct segment_context *c, int normed, int i, int back)
{
    struct tape *t = c->tape;
    int64_t rows = c->workload->micro_batch * c->workload->seq_len;
    int words = tape_words(t, "model.embed_tokens", rows, mtp_turn(c, true, back), false);
    words = c->shape->scaled_embedding ? tape_map(t, "model.normalizer", TAPE_SCALE, words) : words;
    tape_scope(t, scope_of(c->arena, c->shape, i));
    words = tape_rms_norm(t, "enorm", words, true);
    return tape_cat(t, "cat", words, tape_rms_norm(t, "hnorm", normed, true));
}

int mtp_head(const struct segment_context *c)
{
    struct tape *t = c->tape;
    int i = c->kind == SEGMENT_MTP ? c->layer - (int)c->shape->n_layers - 1 : model_mtp_layers(c),
        back = model_mtp_layers(c) - i;
    int x = tape_input(
        t, "hidden_states", segment_rows(c, c->workload->seq_len), model_stream_width(c->shape));
    x = hyper_end(c, x);
    const char *norm =
        i == 0 ? "model.norm"
               : arena_printf(c->arena, "%s.shared_head.norm", scope_of(c->arena, c->shape, i - 1));
    int normed = tape_rms_norm(t, norm, x, true);
    int loss = mtp_predict(c, normed, back);
    return c->kind == SEGMENT_MTP ? both(c, normed, i, back) : loss;
}

int mtp_block_input(const struct segment_context *c)
{
    struct tape *t = c->tape;
    const int64_t rows = segment_rows(c, c->workload->seq_len), d = model_stream_width(c->shape);
    bool projects = tape_has(t, "eh_proj");
    int x = tape_input(t, "hidden_states", rows, projects ? 2 * d : d);
    if (!projects)
        return x;
    x = tape_linear(t, "eh_proj", tape_enter(t, "eh_proj.in", x));
    x = tape_scatter(t, "eh_proj.own", tape_gather_columns(t, "eh_proj.gather", x, d));
    return tape_cast(
        t, "eh_proj.to", x, dtype_bytes(c->workload->autocast ? DTYPE_FP32 : c->workload->storage));
}
