/* A rank's share of a model under tensor and expert parallelism, and what can be cut.
 *
 * The share is built as a model from a narrower shape (shard_narrow()), then compared tensor by
 * tensor with the whole: names must agree, a tensor of fewer elements is split, and `counted` is
 * the share of the whole's FLOP that the rank counts, so that padding and copies on several ranks
 * are not counted twice.
 *
 * model_shard_wrong() has the rules, each a sentence with numbers that would do. A family that gets
 * a new kind of attention must be refused here until its cut is modelled. */
#include "model/family.h"

#include <string.h>

/* Rows of the vocabulary that each rank has. */
static int64_t padded_vocab(int64_t vocab, int64_t ranks)
{
    int64_t multiple = MODEL_VOCAB_MULTIPLE * ranks;
    return (vocab + multiple - 1) / multiple * MODEL_VOCAB_MULTIPLE;
}

static int64_t shard_degree(int64_t ranks)
{
    return ranks > 1 ? ranks : 1;
}

static struct model_shape shard_narrow(
    const struct model_shape *whole, const struct model_parallel *parallel)
{
    struct model_shape shape = *whole;
    int64_t ranks = model_tensor_ranks(parallel);
    shape.moe.local = whole->moe.experts / shard_degree(parallel->expert);
    shape.moe.d_ff /= shard_degree(parallel->expert_tensor);
    shape.moe.shared_d_ff /= ranks;
    if (ranks == 1)
        return shape;
    shape.n_heads /= ranks;
    shape.full.n_heads /= ranks;
    shape.blocks_ranks = whole->blocks ? ranks : 0;
    if (shape.full.n_kv_heads > 0)
        shape.full.n_kv_heads = whole->full.n_kv_heads > ranks ? whole->full.n_kv_heads / ranks : 1;
    shape.n_kv_heads = whole->n_kv_heads > ranks ? whole->n_kv_heads / ranks : 1;
    shape.d_ff /= ranks;
    shape.vocab = padded_vocab(whole->vocab, ranks);
    shape.mtp_width = whole->mtp_layers > 0 ? whole->d_model / ranks : 0;
    return shape;
}

void model_shard(struct model *out, const struct model *model,
    const struct model_parallel *parallel, struct arena *arena)
{
    *out = *model;
    int64_t ranks = model_tensor_ranks(parallel);
    if (ranks * shard_degree(parallel->expert) * shard_degree(parallel->expert_tensor) == 1)
        return;
    struct model_shape shape = shard_narrow(&model->shape, parallel);
    model_build(out, &shape, arena);
    BUG_IF(out->n_tensors != model->n_tensors, "%s: %d tensors of %d", shape.name, out->n_tensors,
        model->n_tensors);
    for (int t = 0; t < out->n_tensors; t++) {
        struct model_tensor *tensor = &out->tensors[t];
        const struct model_tensor *whole = &model->tensors[t];
        BUG_IF(strcmp(tensor->name, whole->name) != 0, "%s is %s", tensor->name, whole->name);
        int64_t all =
            tensor->split & 1U << AXIS_EP ? whole->numel / parallel->expert : whole->numel;
        tensor->split |= tensor->numel != all ? 1U << AXIS_TP : 0;
        tensor->counted = (double)all / ((double)ranks * (double)tensor->numel);
    }
}

/* Of what is modelled on whole heads and sequences only. */
static const char *cut_wrong(const struct model_shape *s, bool context)
{
    if (s->mixer.kind != MIXER_NONE)
        return "scans in the place of attention (Mamba, DeltaNet) are modelled without tensor and "
               "context parallelism";
    if (s->mla.index_heads > 0)
        return "sparse attention by an indexer is modelled without tensor and context parallelism";
    if (s->compressed.pattern || s->hyper > 1)
        return "compressed attention and hyper-connections are modelled without tensor and context "
               "parallelism";
    if (context && s->blocks)
        return "blocks that differ one by one are modelled without context parallelism";
    if (s->qk_norm_whole)
        return "norms over all heads are modelled without tensor and context parallelism";
    if (context && model_has_full(s))
        return "blocks of full attention with other heads are modelled without context parallelism";
    return context && s->attention_chunk > 0
               ? "attention in chunks is modelled without context parallelism"
               : NULL;
}

static const char *tensor_wrong(
    const struct model_shape *s, const struct model_workload *w, struct arena *arena)
{
    const long ranks = (long)model_tensor_ranks(&w->parallel);
    const struct {
        const char *what;
        int64_t n;
    } cut[] = {{"attention heads", s->n_heads},
        {"columns of the feed-forward layer (d_ff)", s->d_ff},
        {"columns of the projections of multi-token prediction (d_model)",
            s->mtp_layers > 0 ? s->d_model : 0}};
    for (size_t i = 0; i < sizeof cut / sizeof *cut; i++)
        if (cut[i].n % ranks)
            return arena_printf(arena,
                "%ld %s of %s are not divisible by %ld ranks of tensor parallelism; %s would do",
                (long)cut[i].n, cut[i].what, s->name, ranks, divisors(cut[i].n).text);
    const int64_t full = s->full.n_kv_heads;
    if (!blocks_divide(s, ranks))
        return arena_printf(arena,
            "key heads and widths of some blocks of %s are not divisible by %ld ranks of tensor "
            "parallelism",
            s->name, ranks);
    if (s->full.n_heads % ranks || (full % ranks && ranks % full))
        return arena_printf(arena,
            "%ld key heads of blocks of full attention in %s and %ld ranks of tensor "
            "parallelism: neither divides the other",
            (long)full, s->name, ranks);
    if (s->n_kv_heads % ranks && ranks % s->n_kv_heads)
        return arena_printf(arena,
            "%ld key heads of %s and %ld ranks of tensor parallelism: neither divides the other; "
            "%s would do",
            (long)s->n_kv_heads, s->name, ranks, divisors(s->n_kv_heads).text);
    if (s->mixes_heads)
        return "re-attention mixes all heads of DeepViT, which tensor parallelism would part";
    return NULL;
}

static const char *experts_wrong(
    const struct model_shape *s, const struct model_workload *w, struct arena *arena)
{
    const int64_t tensor = model_tensor_ranks(&w->parallel),
                  width = shard_degree(w->parallel.expert_tensor);
    const int64_t ranks = shard_degree(w->parallel.expert);
    if (s->moe.experts == 0)
        return ranks * width > 1
                   ? arena_printf(arena, "%s has no experts that ranks could share", s->name)
                   : NULL;
    if (s->moe.experts % ranks)
        return arena_printf(arena,
            "%ld experts of %s are not divisible by %ld ranks of expert parallelism; %s would do",
            (long)s->moe.experts, s->name, (long)ranks, divisors(s->moe.experts).text);
    if (width > 1 && width != tensor)
        return arena_printf(arena,
            "experts cut over %ld ranks beside %ld ranks of tensor parallelism: 1 and %ld are "
            "modelled",
            (long)width, (long)tensor, (long)tensor);
    if (s->moe.d_ff % width || s->moe.shared_d_ff % tensor)
        return arena_printf(arena,
            "the experts' width of %s, %ld, and that of the shared one, %ld, are not divisible "
            "by their ranks",
            s->name, (long)s->moe.d_ff, (long)s->moe.shared_d_ff);
    if (tensor > 1 && !w->parallel.sequence)
        return "a mixture of experts needs sequence parallelism beside tensor parallelism "
               "(Megatron-LM demands it): else every rank would send the same tokens";
    return NULL;
}

/* Each rank of AXIS_CP has two chunks of the sequence, one from the front and one from the back, so
 * that all have as much of the causal mask. */
enum { SHARD_CHUNKS = 2 };

static const char *length_wrong(
    const char *what, int64_t length, const struct model_parallel *parallel, struct arena *arena)
{
    int64_t context = model_context_ranks(parallel),
            tensor = parallel->sequence ? model_tensor_ranks(parallel) : 1;
    int64_t multiple = context > 1 ? SHARD_CHUNKS * context : 1;
    while (multiple % (context * tensor))
        multiple += context > 1 ? SHARD_CHUNKS * context : 1;
    if (length % multiple == 0)
        return NULL;
    return arena_printf(arena,
        "sequences of %ld %s are not divisible by %ld (%ld ranks of context parallelism, two "
        "chunks each, and %ld that share what lies between the linear layers); %ld would do",
        (long)length, what, (long)multiple, (long)context, (long)tensor,
        (long)((length + multiple - 1) / multiple * multiple));
}

static const char *context_wrong(
    const struct model_shape *s, const struct model_workload *w, struct arena *arena)
{
    const int64_t context = w->parallel.context, tensor = model_tensor_ranks(&w->parallel);
    const int64_t heads = s->n_heads / tensor,
                  kv = s->n_kv_heads > tensor ? s->n_kv_heads / tensor : 1;
    if (s->image_size > 0)
        return arena_printf(
            arena, "%s is a model of images, which context parallelism does not cut", s->name);
    if (w->attention != ATTENTION_FLASH)
        return "context parallelism is of flash attention; naive attention has all positions on "
               "one rank";
    if (s->sliding_window > 0 && w->parallel.context_kind != CONTEXT_A2A)
        return arena_printf(arena,
            "context parallelism of the kind '%s' knows no sliding window; take '%s'",
            context_parallel_names[w->parallel.context_kind], context_parallel_names[CONTEXT_A2A]);
    if (w->parallel.context_kind == CONTEXT_A2A && (heads % context || kv % context))
        return arena_printf(arena,
            "context parallelism of the kind 'a2a' gives each of its %ld ranks a part of the %ld "
            "heads and %ld key heads that tensor parallelism leaves; divisors of %ld would do: %s",
            (long)context, (long)heads, (long)kv, (long)kv, divisors(kv).text);
    return NULL;
}

const char *model_shard_wrong(
    const struct model_shape *shape, const struct model_workload *workload, struct arena *arena)
{
    const struct model_parallel *parallel = &workload->parallel;
    int64_t tensor = model_tensor_ranks(parallel), context = model_context_ranks(parallel);
    if (parallel->sequence && tensor == 1)
        return "sequence parallelism is between the ranks of tensor parallelism, of which there is "
               "one";
    const char *experts = experts_wrong(shape, workload, arena);
    if (experts || (tensor == 1 && context == 1))
        return experts;
    if (shape->family == MODEL_CONVNET || shape->family == MODEL_DHEN)
        return arena_printf(arena,
            "family '%s' has no tensor or context parallelism; leave both out",
            model_family_names[shape->family]);
    const char *wrong = cut_wrong(shape, context > 1);
    if (!wrong)
        wrong = tensor_wrong(shape, workload, arena);
    if (!wrong)
        wrong = length_wrong("tokens", workload->seq_len, parallel, arena);
    if (!wrong && shape->n_decoder_layers > 0)
        wrong = length_wrong("decoder tokens", workload->decoder_seq_len, parallel, arena);
    if (!wrong && context > 1)
        wrong = context_wrong(shape, workload, arena);
    return wrong;
}
