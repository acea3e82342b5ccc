/* `flopcast model FILE`: shape, parameters, FLOP of a token, and the layers with their tensors,
 * alike ones once. FLOP are those of a forward program that is built for a typical workload here,
 * in BF16 and without parallelism. */
#include "model/family.h"

#include <inttypes.h>
#include <string.h>

/* Assumed where the shape does not say a length: what T5 was trained with (arXiv 1910.10683, 3.1.2)
 * and Llama 2 (2307.09288, 2.2). */
enum { T5_LENGTH = 512, LLAMA_LENGTH = 4096 };

static struct model_workload typical_workload(const struct model_shape *shape)
{
    int64_t of_image = model_sample_tokens(shape);
    int64_t length = of_image > 0                ? of_image
                     : shape->family == MODEL_T5 ? T5_LENGTH
                     : shape->max_positions > 0  ? shape->max_positions
                                                 : LLAMA_LENGTH;
    return (struct model_workload){
        .micro_batch = 1,
        .seq_len = length,
        .decoder_seq_len = shape->family == MODEL_T5 ? length : 0,
        .math = DTYPE_BF16,
        .storage = DTYPE_BF16,
    };
}

static const char *grouped(char *text, size_t n, int64_t value)
{
    char digits[32], *at = text;
    int length = snprintf(digits, sizeof digits, "%" PRId64, value);
    BUG_IF(value < 0 || (size_t)(2 * length) > n, "%s does not fit", digits);
    for (int i = 0; i < length; i++) {
        *at++ = digits[i];
        if (i + 1 < length && (length - i - 1) % 3 == 0)
            *at++ = ',';
    }
    *at = '\0';
    return text;
}

void model_print_layers(FILE *out, const struct model *model)
{
    char params[48], total[48];
    fprintf(out, "\n%6s  %-24s %8s %18s %19s\n", "count", "layer", "tensors", "parameters each",
        "together");
    for (int i = 0; i < model->n_layers; i++) {
        const struct model_layer *layer = &model->layers[i];
        if (layer->alike != i)
            continue;
        int count = 0;
        for (int j = i; j < model->n_layers; j++)
            count += model->layers[j].alike == i;
        fprintf(out, "%6d  %-24s %8d %18s %19s\n", count, layer->name, layer->n_tensors,
            grouped(params, sizeof params, layer->params),
            grouped(total, sizeof total, layer->params * count));
        for (int j = 0; j < layer->n_tensors; j++) {
            const struct model_tensor *tensor = &model->tensors[layer->first_tensor + j];
            size_t prefix = layer->role == LAYER_ROOT ? 0 : strlen(layer->name) + 1;
            fprintf(out, "        . %-50s %8" PRId64, tensor->name + prefix, tensor->rows);
            fprintf(out, tensor->cols > 1 ? " x %" PRId64 "\n" : "\n", tensor->cols);
        }
    }
}

static void model_print_stages(FILE *out, const struct model_shape *s)
{
    fprintf(out, ", %s blocks, images of %" PRId64 " x %" PRId64 ", %" PRId64 " classes, stages",
        conv_block_names[s->conv.block], s->image_size, s->image_size, s->classes);
    for (int i = 0; i < MODEL_CONV_STAGES; i++)
        fprintf(out, "%s %" PRId64 " of %" PRId64, i ? "," : "", s->conv.stages[i].blocks,
            s->conv.stages[i].width);
    fputc('\n', out);
}

static void print_dhen(FILE *out, const struct model_shape *s)
{
    const struct {
        const char *name;
        bool given;
    } modules[] = {{"linear", s->dhen.linear}, {"dot", s->dhen.dot},
        {"attention", s->dhen.attention}, {"convolution", s->dhen.convolution},
        {"cross", s->dhen.cross}};
    fprintf(out, ": samples of %" PRId64 " features of %" PRId64 ", d_ff %" PRId64 ", modules",
        s->dhen.features, s->d_model, s->d_ff);
    for (size_t i = 0; i < sizeof modules / sizeof *modules; i++)
        if (modules[i].given)
            fprintf(out, " %s", modules[i].name);
    fprintf(out,
        "\ntables      %.4g B elements of %s, shared out over all GPUs, no part of the "
        "parameters\n",
        s->dhen.tables.params / 1e9, table_format_names[s->dhen.tables.format]);
}

static void print_experts(FILE *out, const struct model_shape *s)
{
    const struct model_moe *moe = &s->moe;
    fprintf(out, "experts     %" PRId64 " of width %" PRId64 ", %" PRId64 " a token, router %s",
        moe->experts, moe->d_ff, moe->per_token, router_names[moe->router]);
    if (moe->groups > 1)
        fprintf(out, " in %" PRId64 " groups", moe->groups);
    if (moe->latent > 0)
        fprintf(out, ", in a latent of %" PRId64, moe->latent);
    if (moe->shared_d_ff > 0)
        fprintf(out, "; a shared one of width %" PRId64 "%s", moe->shared_d_ff,
            moe->shared_gate ? ", gated" : "");
    if (moe->dense_layers > 0)
        fprintf(out, "; the first %" PRId64 " block%s dense", moe->dense_layers,
            moe->dense_layers == 1 ? " is" : "s are");
    if (moe->every > 1)
        fprintf(out, "; every %" PRId64 "-th block", moe->every);
    fputc('\n', out);
}

static void print_latent(FILE *out, const struct model_mla *mla)
{
    fprintf(out, "attention   latent, of width %" PRId64 " for keys and values", mla->kv_lora_rank);
    if (mla->q_lora_rank > 0)
        fprintf(out, " and %" PRId64 " for queries", mla->q_lora_rank);
    fprintf(out, "; heads of %" PRId64 " + %" PRId64 " rotary, values of %" PRId64 "\n",
        mla->qk_nope_head_dim, mla->qk_rope_head_dim, mla->v_head_dim);
}

static void print_mixer(FILE *out, const struct model_mixer *m)
{
    fprintf(out, "mixer       %s: %" PRId64 " head%s of %" PRId64 ", states of %" PRId64,
        mixer_names[m->kind], m->heads, m->heads == 1 ? "" : "s", m->head_dim, m->state);
    if (m->attention_every > 0)
        fprintf(out, "; one of %" PRId64 " blocks has attention", m->attention_every);
    fputc('\n', out);
}

static void print_full(FILE *out, const struct model_shape *s)
{
    const struct model_full *full = &s->full;
    fprintf(out,
        "full        attention has %" PRId64 " heads of %" PRId64 " (%" PRId64 " for keys)%s\n",
        full->n_heads > 0 ? full->n_heads : s->n_heads, full->d_kv > 0 ? full->d_kv : s->d_kv,
        full->n_kv_heads > 0 ? full->n_kv_heads : s->n_kv_heads,
        full->keys_are_values ? ", which are values, too" : "");
}

static void print_width(FILE *out, const struct model_shape *s)
{
    fprintf(out, ": d_model %" PRId64 ", d_ff %" PRId64 "%s, %" PRId64 " heads of %" PRId64,
        s->d_model, s->d_ff, s->gated_ffn ? " gated" : "", s->n_heads, s->d_kv);
    if (s->n_kv_heads != s->n_heads)
        fprintf(out, " (%" PRId64 " for keys)", s->n_kv_heads);
    if (s->image_size > 0)
        fprintf(out,
            ", images of %" PRId64 " x %" PRId64 " in patches of %" PRId64 ", %" PRId64
            " classes\n",
            s->image_size, s->image_size, s->patch, s->classes);
    else
        fprintf(out, ", vocabulary %" PRId64 "%s", s->vocab, s->tied_embeddings ? ", tied" : "");
    if (s->family == MODEL_BERT)
        fprintf(out, ", head %s", bert_head_names[s->head]);
    if (s->sliding_window > 0)
        fprintf(out, "\nwindow      of %" PRId64 " keys with flash attention", s->sliding_window);
    if (s->attention_chunk > 0)
        fprintf(
            out, "\nchunks      of %" PRId64 " positions with flash attention", s->attention_chunk);
    if (s->full_attention_every > 0)
        fprintf(out, ", in all blocks but every %" PRId64 "-th", s->full_attention_every);
    if (s->max_window_layers > 0)
        fprintf(out, ", in blocks from the one numbered %" PRId64 " on", s->max_window_layers);
    if (s->image_size == 0)
        fputc('\n', out);
    if (s->mla.kv_lora_rank > 0)
        print_latent(out, &s->mla);
    if (s->mla.index_heads > 0)
        fprintf(out, "sparse      an indexer chooses %" PRId64 " keys for a query\n",
            s->mla.index_topk);
    if (s->mixer.kind != MIXER_NONE)
        print_mixer(out, &s->mixer);
    if (s->pattern)
        fprintf(out, "pattern     %s\n", s->pattern);
    if (s->attention_pattern)
        fprintf(out, "pattern     %s, f full attention and w a window\n", s->attention_pattern);
    if (s->compressed.pattern)
        fprintf(out,
            "compressed  %s: w a window alone, c keys of %" PRId64 " tokens, h of %" PRId64 "\n",
            s->compressed.pattern, s->compressed.ratio, s->compressed.heavy_ratio);
    if (s->hyper > 1)
        fprintf(out, "streams     %" PRId64 ", mixed by hyper-connections\n", s->hyper);
    if (s->blocks)
        fprintf(out, "blocks      %s (key heads x d_ff)\n", s->blocks);
    if (model_has_full(s))
        print_full(out, s);
    if (s->moe.experts > 0)
        print_experts(out, s);
    if (s->mtp_layers > 0)
        fprintf(out, "mtp         %" PRId64 " layer%s of multi-token prediction\n", s->mtp_layers,
            s->mtp_layers == 1 ? "" : "s");
}

void model_print(FILE *out, const struct model *model)
{
    const struct model_shape *s = &model->shape;
    char params[48];
    fprintf(out, "model       %s\nsource      %s\n", s->name, s->source);
    fprintf(out, "family      %s", model_family_names[s->family]);
    if (s->family == MODEL_CONVNET)
        model_print_stages(out, s);
    else if (s->family == MODEL_DHEN)
        print_dhen(out, s);
    else
        print_width(out, s);
    fprintf(out, "parameters  %s (%.4g B)", grouped(params, sizeof params, model->params),
        (double)model->params / 1e9);
    if (s->moe.experts > 0) {
        int64_t active = model_active_params(s, model->params);
        fprintf(out, ", of which a token meets %s (%.4g B)", grouped(params, sizeof params, active),
            (double)active / 1e9);
    }
    fprintf(out, "\nlayers      %d and the root\n", model->n_layers - 1);
    struct arena arena = ARENA_INIT;
    struct model_segments segments;
    struct model_workload workload = typical_workload(s);
    model_segments(&segments, model, &workload, &arena);
    double flop = model_forward_flop(&segments), tokens = (double)model_tokens(model, &workload);
    if (model_sample_tokens(s) > 0)
        fprintf(out, "forward     %.4g GFLOP %s (two for a multiply-add)\n", flop / tokens / 1e9,
            s->image_size > 0 ? "an image" : "a sample");
    else
        fprintf(out,
            "forward     %.4g GFLOP a token at length %" PRId64
            " (naive attention counted over all pairs)\n",
            flop / tokens / 1e9, workload.seq_len);
    arena_release(&arena);
    model_print_layers(out, model);
}
