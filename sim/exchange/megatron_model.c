/* The model that Megatron's arguments describe (megatron/training/arguments.py, core/models/gpt). */
#include "exchange/rules.h"

#include <stdlib.h>
#include <string.h>

/* Rows of the embedding: the tokenizer's words, rounded up (megatron/training/tokenizer: _vocab_size_with_padding). */
static void find_vocab(struct configuration *config, struct diag *diag)
{
    enum { GPT2_WORDS = 50257, DIVISIBLE_BY = 128 };
    struct configuration_setting *padded = setting_find(config, "--pad-vocab-size-to");
    padded = padded ? padded : setting_find(config, "--padded-vocab-size");
    struct configuration_setting *words = setting_find(config, "--vocab-size");
    struct configuration_setting *by = setting_find(config, "--make-vocab-size-divisible-by");
    struct configuration_setting *type = setting_find(config, "--tokenizer-type");
    struct configuration_setting *merges = setting_find(config, "--merge-file");
    bool gpt2 = type ? strcmp(type->value, "GPT2BPETokenizer") == 0 : merges != NULL;
    struct configuration_setting *from = padded ? padded : words ? words : gpt2 ? (type ? type : merges) : NULL;
    int64_t rows = padded  ? setting_int(config, padded->name, 0, diag)
                   : words ? setting_int(config, words->name, 0, diag)
                   : gpt2  ? GPT2_WORDS
                           : 0;
    int64_t unit = times(setting_int(config, "--make-vocab-size-divisible-by", DIVISIBLE_BY, diag),
        put_int(config, "parallelism.tensor", 1));
    if (!padded && rows > 0 && unit > 0)
        rows = (rows + unit - 1) / unit * unit;
    if (from && rows > 0)
        put_model(config, "vocab", number_text(config, rows), from);
    setting_aside(by, "in the vocabulary");
    setting_aside(words, "padded");
    setting_aside(type, NULL);
    setting_aside(merges, NULL);
    if (!put_model_find(config, "vocab"))
        vec_push(&config->missing,
            "vocab of the model: --model NAME, or --vocab-size among the arguments, as its tokenizer is not known");
}

static int64_t shape(struct configuration *config, const char *key)
{
    const char *text = put_model_find(config, key);
    return text ? strtoll(text, NULL, 10) : 0;
}

/* One of a few settings decides; all of them are then taken. */
static void find_family(struct configuration *config)
{
    struct configuration_setting *norm = setting_find(config, "--normalization");
    struct configuration_setting *rotary = setting_find(config, "--use-rotary-position-embeddings");
    struct configuration_setting *positions = setting_find(config, "--position-embedding-type");
    struct configuration_setting *gated = setting_find(config, "--swiglu");
    bool rope = rotary || setting_is(config, "--position-embedding-type", "rope");
    bool rms = setting_is(config, "--normalization", "RMSNorm");
    bool llama = rope && rms && gated;
    struct configuration_setting *from = rms ? norm : positions ? positions : rotary;
    put_model(config, "family", llama ? "llama" : rope ? "neox" : "gpt", from);
    if (!llama) {
        if (rms)
            norm->fate = FATE_NOT_UNDERSTOOD, norm->words = "RMSNorm is simulated with --swiglu and rotary positions";
        setting_refuse(gated, "gated layers are simulated with RMSNorm and rotary positions");
    }
    setting_aside(norm, "in the family");
    setting_aside(rotary, "in the family");
    setting_aside(positions, "in the family");
    setting_aside(gated, "in the family");
}

static void find_positions(struct configuration *config, bool gpt, struct diag *diag)
{
    struct configuration_setting *rows = setting_find(config, "--max-position-embeddings");
    struct configuration_setting *kind = setting_find(config, "--position-embedding-type");
    bool learned = gpt && (!kind || strcmp(kind->value, "learned_absolute") == 0);
    if (learned && rows)
        put_model(config, "max_positions", number_text(config, setting_int(config, rows->name, 0, diag)), rows);
    else if (gpt)
        put_model(config, "max_positions", "0", kind ? kind : NULL);
    setting_aside(rows, "there is no table of positions");
}

static void find_width(struct configuration *config)
{
    struct configuration_setting *gated = setting_find(config, "--swiglu");
    int64_t width = shape(config, "d_model");
    enum { MOST = 1 << 24 };
    if (put_model_find(config, "d_ff") || width < 1 || width > MOST)
        return;
    enum { PLAIN = 4, ROUND = 64 };
    put_model(config, "d_ff", number_text(config, gated ? width * PLAIN * 2 / 3 / ROUND * ROUND : width * PLAIN), NULL);
}

static void find_switches(struct configuration *config, bool gpt)
{
    struct configuration_setting *untied = setting_find(config, "--untie-embeddings-and-output-weights");
    struct configuration_setting *plain = setting_find(config, "--disable-bias-linear");
    struct configuration_setting *norm = setting_find(config, "--embed-layernorm");
    struct configuration_setting *groups = setting_find(config, "--group-query-attention");
    struct configuration_setting *share = setting_find(config, "--rotary-percent");
    bool llama = strcmp(put_model_find(config, "family"), "llama") == 0;
    bool neox = !gpt && !llama;
    if (untied)
        put_model(config, "tied_embeddings", "false", untied);
    else
        put_model(config, "tied_embeddings", "true", NULL);
    if (plain && !llama)
        put_model(config, "biases", "false", plain);
    setting_aside(plain, "in the family");
    if (norm && gpt)
        put_model(config, "embedding_norm", "true", norm);
    setting_aside(groups, "by --num-query-groups");
    if (neox)
        put_model(config, "parallel_residual", "false", NULL);
    if (neox && !share)
        put_model(config, "rotary_share", "100 %", NULL);
    else if (neox)
        put_model(config, "rotary_share", arena_printf(config->arena, "%.6g", strtod(share->value, NULL)), share);
    setting_aside(share, "of rotary positions");
    if (gpt) {
        put_model(config, "sequence_first", "true", NULL);
        struct configuration_setting *unfused = setting_find(config, "--no-masked-softmax-fusion");
        put_model(config, "fused_softmax", unfused ? "false" : "true", unfused);
    }
}

static void find_dropout(struct configuration *config)
{
    struct configuration_setting *hidden = setting_find(config, "--hidden-dropout");
    struct configuration_setting *attention = setting_find(config, "--attention-dropout");
    if (hidden)
        put_model(config, "dropout", arena_printf(config->arena, "%.6g", strtod(hidden->value, NULL)), hidden);
    else
        put_model(config, "dropout", "0.1", NULL);
    if (attention && hidden && strtod(attention->value, NULL) != strtod(hidden->value, NULL))
        setting_refuse(attention, "one dropout is simulated, --hidden-dropout's");
    else
        setting_aside(attention, "as --hidden-dropout");
}

static void find_experts(struct configuration *config, struct diag *diag)
{
    struct configuration_setting *experts = setting_find(config, "--num-experts");
    struct configuration_setting *topk = setting_find(config, "--moe-router-topk");
    struct configuration_setting *width = setting_find(config, "--moe-ffn-hidden-size");
    if (!experts)
        return;
    put_model(config, "moe.experts", number_text(config, setting_int(config, experts->name, 0, diag)), experts);
    if (topk)
        put_model(config, "moe.experts_per_token", number_text(config, setting_int(config, topk->name, 2, diag)), topk);
    else
        put_model(config, "moe.experts_per_token", "2", NULL);
    if (width)
        put_model(config, "moe.d_ff", number_text(config, setting_int(config, width->name, 0, diag)), width);
    else if (put_model_find(config, "d_ff"))
        put_model(config, "moe.d_ff", put_model_find(config, "d_ff"), NULL);
    put_model(config, "moe.normalised", "true", NULL);
}

void megatron_model(struct configuration *config, struct diag *diag)
{
    if (!put_model_find(config, "d_model"))
        return;
    find_family(config);
    bool gpt = strcmp(put_model_find(config, "family"), "gpt") == 0;
    find_vocab(config, diag);
    find_width(config);
    find_positions(config, gpt, diag);
    find_switches(config, gpt);
    find_dropout(config);
    find_experts(config, diag);
}
