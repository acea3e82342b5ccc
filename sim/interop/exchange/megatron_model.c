/* The model that Megatron's arguments describe (megatron/training/arguments.py, core/models/gpt).
 *
 * megatron_model() runs when all arguments are read. Where --model names a model, arguments of a
 * shape are put aside. The family comes first, as the rest asks for it: rotary positions are llama
 * with gated layers and neox without, all else is gpt. Then vocabulary (padded as Megatron does, by
 * tensor ranks), widths, positions, biases, windows, dropout, and experts with latent attention in
 * the second half.
 *
 * What is subtle: --moe-layer-freq may be a Python expression of lists, which expression.c
 * unrolls to a flag a block; it is simulated where some first blocks have no experts and then every
 * n-th has. With --use-checkpoint-args the arguments say nothing of the model, which is then
 * missing. */
#include "exchange/expression.h"
#include "exchange/megatron.h"

#include <stdlib.h>
#include <string.h>

/* Rows of the embedding: the tokenizer's words, rounded up (megatron/training/tokenizer:
 * _vocab_size_with_padding). */
void megatron_vocab(struct configuration *config, struct diag *diag)
{
    enum { GPT2_WORDS = 50257, DIVISIBLE_BY = 128 };
    struct configuration_setting *padded = setting_find(config, "--pad-vocab-size-to");
    padded = padded ? padded : setting_find(config, "--padded-vocab-size");
    struct configuration_setting *words = setting_find(config, "--vocab-size");
    struct configuration_setting *by = setting_find(config, "--make-vocab-size-divisible-by");
    struct configuration_setting *type = setting_find(config, "--tokenizer-type");
    struct configuration_setting *merges = setting_find(config, "--merge-file");
    bool gpt2 = type ? strcmp(type->value, "GPT2BPETokenizer") == 0 : merges != NULL;
    struct configuration_setting *from = padded  ? padded
                                         : words ? words
                                         : gpt2  ? (type ? type : merges)
                                                 : NULL;
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
    setting_aside(type, "of the vocabulary");
    if (!put_model_find(config, "vocab") && !put_find(config, "model"))
        vec_push(&config->missing, "vocab of the model: --model NAME, or --vocab-size among the "
                                   "arguments, as its tokenizer is not known");
}

static bool is_gpt(const struct configuration *config)
{
    return strcmp(put_model_find(config, "family"), "gpt") == 0;
}

static int64_t shape(struct configuration *config, const char *key)
{
    const char *text = put_model_find(config, key);
    return text ? strtoll(text, NULL, 10) : 0;
}

/* One of a few settings decides; all of them are then taken. What a family lacks and costs as much
 * is assumed. */
void megatron_family(struct configuration *config, struct diag *diag)
{
    (void)diag;
    struct configuration_setting *norm = setting_find(config, "--normalization");
    struct configuration_setting *rotary = setting_find(config, "--use-rotary-position-embeddings");
    struct configuration_setting *positions = setting_find(config, "--position-embedding-type");
    struct configuration_setting *gated = setting_find(config, "--swiglu");
    struct configuration_setting *squared = setting_find(config, "--squared-relu");
    gated = gated ? gated : setting_find(config, "--quick-geglu");
    bool latent = setting_find(config, "--multi-latent-attention") != NULL;
    bool rope = rotary || latent || setting_is(config, "--position-embedding-type", "rope") ||
                setting_is(config, "--position-embedding-type", "yarn");
    bool rms = setting_is(config, "--normalization", "RMSNorm");
    bool llama = rope && gated;
    struct configuration_setting *from = llama ? gated : positions ? positions : rotary;
    put_model(config, "family", llama ? "llama" : rope ? "neox" : "gpt", from);
    if (rms && !llama)
        assume(
            config, "--normalization RMSNorm: simulated as LayerNorm, a pass over the same bytes");
    if (!rms && llama)
        assume(config,
            "--normalization: LayerNorm is simulated as RMSNorm, a pass over the same bytes");
    if (squared && !gated) {
        assume(config, "--squared-relu: simulated as GELU, a kernel each way over the same bytes");
        setting_aside(squared, "as GELU");
    }
    setting_refuse(squared, "gated layers with SiLU or GELU are simulated");
    if (!llama)
        setting_refuse(gated, "gated layers are simulated with rotary positions");
    setting_aside(norm, "in the family");
    setting_aside(rotary, "in the family");
    setting_aside(positions, "in the family");
    setting_aside(gated, "in the family");
}

/* Rotary positions as separate kernels, where there are any. */
void megatron_rotary(struct configuration *config, struct diag *diag)
{
    (void)diag;
    bool gpt = is_gpt(config);
    struct configuration_setting *unfused = setting_find(config, "--no-rope-fusion");
    if (!unfused || !gpt || !put_find(config, "train.rotary"))
        return;
    put_remove(config, "train.rotary");
    *unfused = (struct configuration_setting){.name = unfused->name,
        .value = "",
        .bare = true,
        .at = unfused->at,
        .fate = FATE_ASIDE,
        .words = "there are no rotary positions"};
}

void megatron_positions(struct configuration *config, struct diag *diag)
{
    bool gpt = is_gpt(config);
    struct configuration_setting *rows = setting_find(config, "--max-position-embeddings");
    struct configuration_setting *kind = setting_find(config, "--position-embedding-type");
    struct configuration_setting *none = setting_find(config, "--no-position-embedding");
    kind = kind ? kind : none;
    bool learned = gpt && (!kind || strcmp(kind->value, "learned_absolute") == 0);
    setting_aside(none, "in the family");
    if (learned && rows)
        put_model(config, "max_positions",
            number_text(config, setting_int(config, rows->name, 0, diag)), rows);
    else if (gpt)
        put_model(config, "max_positions", "0", kind ? kind : NULL);
    setting_aside(rows, "there is no table of positions");
}

void megatron_width(struct configuration *config, struct diag *diag)
{
    (void)diag;
    struct configuration_setting *gated = setting_find(config, "--swiglu");
    gated = gated ? gated : setting_find(config, "--quick-geglu");
    int64_t width = shape(config, "d_model");
    enum { MOST = 1 << 24 };
    if (put_model_find(config, "d_ff") || width < 1 || width > MOST)
        return;
    enum { PLAIN = 4, ROUND = 64 };
    put_model(config, "d_ff",
        number_text(config, gated ? width * PLAIN * 2 / 3 / ROUND * ROUND : width * PLAIN), NULL);
}

/* A window of keys to the left, in all blocks or in all but every n-th: "127,0" sees 128. */
void megatron_window(struct configuration *config, struct diag *diag)
{
    struct configuration_setting *window = setting_find(config, "--window-size");
    struct configuration_setting *skip = setting_find(config, "--window-attn-skip-freq");
    if (!window) {
        setting_aside(skip, "of windows");
        return;
    }
    int64_t left = strtoll(window->value + strspn(window->value, "(["), NULL, 10);
    int64_t every = skip ? setting_int(config, skip->name, 0, diag) : 0;
    if (strcmp(put_model_find(config, "family"), "llama") != 0 || left < 1 || left > INT32_MAX)
        setting_refuse(window, "windows are simulated with --swiglu and rotary positions");
    if (window->words && window->fate != FATE_TAKEN)
        return;
    put_model(config, "sliding_window", number_text(config, left + 1), window);
    if (every > 0)
        put_model(config, "full_attention_every", number_text(config, every), skip);
}

void megatron_dropout(struct configuration *config, struct diag *diag)
{
    (void)diag;
    struct configuration_setting *hidden = setting_find(config, "--hidden-dropout");
    struct configuration_setting *attention = setting_find(config, "--attention-dropout");
    if (hidden)
        put_model(config, "dropout",
            arena_printf(config->arena, "%.6g", strtod(hidden->value, NULL)), hidden);
    else
        put_model(config, "dropout", "0.1", NULL);
    if (attention && hidden && strtod(attention->value, NULL) != strtod(hidden->value, NULL))
        setting_refuse(attention, "one dropout is simulated, --hidden-dropout's");
    else
        setting_aside(attention, "as --hidden-dropout");
}

/* The checkpoint has the shape, whatever stands among the arguments. */
static bool in_checkpoint(struct configuration *config)
{
    struct configuration_setting *checkpoint = setting_find(config, "--use-checkpoint-args");
    if (put_find(config, "model")) {
        setting_aside(checkpoint, "--model says it");
        return false;
    }
    if (checkpoint) {
        config->model.n = 0;
        setting_aside(checkpoint, "see what is missing");
        vec_push(&config->missing,
            "model: --model NAME; --use-checkpoint-args takes it from the checkpoint");
    }
    return checkpoint != NULL;
}

/* What describes the model where --model names it. */
static void leave_shape(struct configuration *config)
{
    for (int i = 0; i < config->settings.n; i++) {
        struct configuration_setting *setting = &config->settings.at[i];
        if (setting->key && strcmp(setting->key, "model") == 0)
            setting_aside(setting, "of the model, which is named");
    }
}

void megatron_model(struct configuration *config, struct diag *diag)
{
    bool named = put_find(config, "model") != NULL;
    if (!in_checkpoint(config) && put_model_find(config, "d_model"))
        importer_follow(config, CONFIGURATION_MEGATRON, "model", diag);
    if (named)
        setting_aside(setting_find(config, "--mtp-num-layers"),
            "mtp_layers of the model, which is named, says it");
    if (named || config->model.n == 0)
        leave_shape(config);
    setting_aside(setting_find(config, "--merge-file"), "of the tokenizer");
}

/* Experts and latent attention of the model that Megatron's arguments describe
 * (core/transformer/moe, core/transformer/multi_latent_attention.py). */

/* ---- --moe-layer-freq: which blocks have experts ---- */

/* As moe.dense_layers, the number of first blocks without, and moe.every; false: the blocks do not
 * lie so. */
static bool is_regular(const struct expression_value *blocks, int *dense, int *every)
{
    int first = 0;
    while (first < blocks->n && !blocks->items[first])
        first++;
    int second = first + 1;
    while (second < blocks->n && !blocks->items[second])
        second++;
    *every = first == blocks->n ? 1 : second < blocks->n ? second - first : 1;
    *dense = first - (*every - 1);
    for (int i = 0; i < blocks->n && *dense >= 0; i++)
        if (blocks->items[i] != (i >= *dense && (i - *dense + 1) % *every == 0))
            return false;
    return *dense >= 0 && first < blocks->n;
}

/* A number n: block 0, n, 2n ... have experts (get_moe_layer_pattern). Ours are the last of each n,
 * which is as many. */
static void find_layers(struct configuration *config, struct diag *diag)
{
    struct configuration_setting *freq = setting_find(config, "--moe-layer-freq");
    const char *layers = put_model_find(config, "n_layers");
    int64_t n = layers ? strtoll(layers, NULL, 10) : 0;
    if (!freq)
        return;
    if (strspn(freq->value, "0123456789") == strlen(freq->value)) {
        int64_t every = setting_int(config, freq->name, 1, diag);
        if (every == 1)
            setting_aside(freq, "all blocks");
        else if (every > 1 && n % every == 0)
            put_model(config, "moe.every", number_text(config, every), freq);
        setting_refuse(freq, "a number that divides the blocks is simulated");
        return;
    }
    struct expression expression = {.at = freq->value, .arena = config->arena};
    struct expression_value blocks;
    int dense = 0, every = 1;
    if (expression_read(&blocks, &expression) && blocks.items && blocks.n == n &&
        is_regular(&blocks, &dense, &every)) {
        put_model(config, "moe.dense_layers", number_text(config, dense), freq);
        put_model(config, "moe.every", number_text(config, every), freq);
    } else {
        diag_input(diag, freq->value_at,
            "--moe-layer-freq is '%s'; simulated are %lld blocks of which the first have no "
            "experts and then every n-th has, as ([0]*3+[1]*58); --model NAME says the model "
            "otherwise",
            freq->value, (long long)n);
    }
}

/* ---- the rest ---- */

static void megatron_model_find_groups(struct configuration *config, struct diag *diag)
{
    struct configuration_setting *groups = setting_find(config, "--moe-router-num-groups");
    struct configuration_setting *kept = setting_find(config, "--moe-router-group-topk");
    struct configuration_setting *scaling =
        setting_find(config, "--moe-router-topk-scaling-factor");
    struct configuration_setting *before = setting_find(config, "--moe-router-pre-softmax");
    bool sigmoid = setting_is(config, "--moe-router-score-function", "sigmoid");
    if (groups && setting_int(config, groups->name, 1, diag) > 1) {
        put_model(config, "moe.groups",
            number_text(config, setting_int(config, groups->name, 1, diag)), groups);
        if (kept)
            put_model(config, "moe.kept_groups",
                number_text(config, setting_int(config, kept->name, 1, diag)), kept);
    }
    setting_aside(groups, "one group");
    setting_aside(kept, "of groups");
    bool scaled = scaling && strtod(scaling->value, NULL) > 0 &&
                  (strtod(scaling->value, NULL) < 1 || strtod(scaling->value, NULL) > 1);
    bool plain = before && !sigmoid &&
                 !scaled; /* softmax of all, and nothing done to those that are chosen */
    put_model(config, "moe.normalised", plain ? "false" : "true",
        plain    ? before
        : scaled ? scaling
                 : NULL);
    setting_aside(before, "of the scaling that follows");
    setting_aside(scaling, "1");
}

void megatron_experts(struct configuration *config, struct diag *diag)
{
    struct configuration_setting *experts = setting_find(config, "--num-experts");
    const char *family = put_model_find(config, "family");
    bool llama = strcmp(family, "llama") == 0, named = put_find(config, "model") != NULL;
    struct configuration_setting *latent = setting_find(config, "--multi-latent-attention");
    if ((experts || latent) && !llama && !named) {
        diag_input(diag, (experts ? experts : latent)->at,
            "%s: experts and latent attention are simulated with gated layers (--swiglu) and "
            "rotary positions; --model NAME says the model otherwise",
            (experts ? experts : latent)->name);
        return;
    }
    importer_follow(config, CONFIGURATION_MEGATRON, "latent", diag);
    if (!experts)
        return;
    importer_follow(config, CONFIGURATION_MEGATRON, "experts", diag);
    if (!setting_find(config, "--moe-ffn-hidden-size") && put_model_find(config, "d_ff"))
        put_model(config, "moe.d_ff", put_model_find(config, "d_ff"), NULL);
    find_layers(config, diag);
    importer_follow(config, CONFIGURATION_MEGATRON, "router", diag);
    megatron_model_find_groups(config, diag);
}
