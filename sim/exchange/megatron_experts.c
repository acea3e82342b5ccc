/* Experts and latent attention of the model that Megatron's arguments describe (core/transformer/moe,
 * core/transformer/multi_latent_attention.py). */
#include "exchange/megatron.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* ---- --moe-layer-freq: which blocks have experts ---- */

enum { MOST_BLOCKS = 4096, MOST_DEPTH = 8 };

/* A Python expression of lists of 0 and 1: "([0]*3+[1]*58)". */
struct pattern {
    const char *at;
    int depth;
    bool bad;
};
struct blocks {
    unsigned char has[MOST_BLOCKS];
    int n;
};

static char next(struct pattern *p)
{
    p->at += strspn(p->at, " ");
    return *p->at;
}

static void append(struct pattern *p, struct blocks *to, const struct blocks *from)
{
    for (int i = 0; i < from->n && !p->bad; i++) {
        p->bad = to->n == MOST_BLOCKS;
        if (!p->bad)
            to->has[to->n++] = from->has[i];
    }
}

static void parse_sum(struct pattern *p, struct blocks *out);

static void parse_list(struct pattern *p, struct blocks *out)
{
    p->at++;
    while (!p->bad && next(p) != ']') {
        p->bad = (*p->at != '0' && *p->at != '1') || isdigit((unsigned char)p->at[1]) || out->n == MOST_BLOCKS;
        if (!p->bad)
            out->has[out->n++] = *p->at++ == '1';
        if (next(p) == ',')
            p->at++;
        else
            p->bad |= *p->at != ']';
    }
    p->at += !p->bad;
}

static void parse_term(struct pattern *p, struct blocks *out)
{
    struct blocks *one = xcalloc(1, sizeof *one);
    if (next(p) == '[') {
        parse_list(p, one);
    } else if (*p->at == '(' && p->depth < MOST_DEPTH) {
        p->at++;
        p->depth++;
        parse_sum(p, one);
        p->depth--;
        p->bad |= next(p) != ')';
        p->at += !p->bad;
    } else {
        p->bad = true;
    }
    int64_t times = 1;
    if (!p->bad && next(p) == '*') {
        char *end = NULL;
        p->at++;
        next(p);
        times = strtoll(p->at, &end, 10);
        p->bad |= end == p->at || times < 0 || times > MOST_BLOCKS;
        p->at = end;
    }
    for (int64_t i = 0; i < times && !p->bad; i++)
        append(p, out, one);
    free(one);
}

static void parse_sum(struct pattern *p, struct blocks *out)
{
    parse_term(p, out);
    while (!p->bad && next(p) == '+') {
        p->at++;
        parse_term(p, out);
    }
}

/* As moe.dense_layers, the number of first blocks without, and moe.every; false: the blocks do not lie so. */
static bool regular(const struct blocks *blocks, int *dense, int *every)
{
    int first = 0;
    while (first < blocks->n && !blocks->has[first])
        first++;
    int second = first + 1;
    while (second < blocks->n && !blocks->has[second])
        second++;
    *every = first == blocks->n ? 1 : second < blocks->n ? second - first : 1;
    *dense = first - (*every - 1);
    for (int i = 0; i < blocks->n && *dense >= 0; i++)
        if (blocks->has[i] != (i >= *dense && (i - *dense + 1) % *every == 0))
            return false;
    return *dense >= 0 && first < blocks->n;
}

/* A number n: block 0, n, 2n ... have experts (get_moe_layer_pattern). Ours are the last of each n, which is as many.
 */
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
    struct blocks *blocks = xcalloc(1, sizeof *blocks);
    struct pattern pattern = {.at = freq->value};
    int dense = 0, every = 1;
    parse_sum(&pattern, blocks);
    bool read = !pattern.bad && next(&pattern) == '\0';
    if (read && blocks->n == n && regular(blocks, &dense, &every)) {
        put_model(config, "moe.dense_layers", number_text(config, dense), freq);
        put_model(config, "moe.every", number_text(config, every), freq);
    } else {
        diag_input(diag, freq->value_at,
            "--moe-layer-freq is '%s'; simulated are %lld blocks of which the first have no experts and then every "
            "n-th "
            "has, as ([0]*3+[1]*58); --model NAME says the model otherwise",
            freq->value, (long long)n);
    }
    free(blocks);
}

/* ---- the rest ---- */

static void find_router(struct configuration *config, struct diag *diag)
{
    struct configuration_setting *score = setting_find(config, "--moe-router-score-function");
    struct configuration_setting *groups = setting_find(config, "--moe-router-num-groups");
    struct configuration_setting *kept = setting_find(config, "--moe-router-group-topk");
    struct configuration_setting *scaling = setting_find(config, "--moe-router-topk-scaling-factor");
    struct configuration_setting *before = setting_find(config, "--moe-router-pre-softmax");
    struct configuration_setting *bias = setting_find(config, "--moe-router-enable-expert-bias");
    bool sigmoid = score && strcmp(score->value, "sigmoid") == 0;
    if (score && (sigmoid || strcmp(score->value, "softmax") == 0))
        put_model(config, "moe.router", score->value, score);
    setting_refuse(score, "known are: softmax sigmoid");
    if (bias && !sigmoid)
        assume(config, "--moe-router-enable-expert-bias: the bias on scores is simulated with sigmoid only");
    setting_aside(bias, "of the router's score function");
    if (groups && setting_int(config, groups->name, 1, diag) > 1) {
        put_model(config, "moe.groups", number_text(config, setting_int(config, groups->name, 1, diag)), groups);
        if (kept)
            put_model(config, "moe.kept_groups", number_text(config, setting_int(config, kept->name, 1, diag)), kept);
    }
    setting_aside(groups, "one group");
    setting_aside(kept, "of groups");
    bool scaled = scaling && strtod(scaling->value, NULL) > 0 &&
                  (strtod(scaling->value, NULL) < 1 || strtod(scaling->value, NULL) > 1);
    bool plain = before && !sigmoid && !scaled; /* softmax of all, and nothing done to those that are chosen */
    put_model(config, "moe.normalised", plain ? "false" : "true", plain ? before : scaled ? scaling : NULL);
    setting_aside(before, "of the scaling that follows");
    setting_aside(scaling, "1");
}

static void find_shared(struct configuration *config, struct diag *diag)
{
    struct configuration_setting *shared = setting_find(config, "--moe-shared-expert-intermediate-size");
    struct configuration_setting *gate = setting_find(config, "--moe-shared-expert-gate");
    if (shared)
        put_model(config, "moe.shared_d_ff", number_text(config, setting_int(config, shared->name, 0, diag)), shared);
    if (gate && shared)
        put_model(config, "moe.shared_gate", "true", gate);
    setting_aside(gate, "of a shared expert");
}

static void find_routed(struct configuration *config, struct configuration_setting *experts, struct diag *diag)
{
    struct configuration_setting *topk = setting_find(config, "--moe-router-topk");
    struct configuration_setting *width = setting_find(config, "--moe-ffn-hidden-size");
    put_model(config, "moe.experts", number_text(config, setting_int(config, experts->name, 0, diag)), experts);
    if (topk)
        put_model(config, "moe.experts_per_token", number_text(config, setting_int(config, topk->name, 2, diag)), topk);
    else
        put_model(config, "moe.experts_per_token", "2", NULL);
    if (width)
        put_model(config, "moe.d_ff", number_text(config, setting_int(config, width->name, 0, diag)), width);
    else if (put_model_find(config, "d_ff"))
        put_model(config, "moe.d_ff", put_model_find(config, "d_ff"), NULL);
}

static void find_latent(struct configuration *config, struct diag *diag)
{
    static const struct {
        const char *name, *key;
        int64_t by_default; /* MLATransformerConfig; of --q-lora-rank none */
    } parts[] = {{"--kv-lora-rank", "mla.kv_lora_rank", 32}, {"--q-lora-rank", "mla.q_lora_rank", 0},
        {"--qk-head-dim", "mla.qk_nope_head_dim", 128}, {"--qk-pos-emb-head-dim", "mla.qk_rope_head_dim", 64},
        {"--v-head-dim", "mla.v_head_dim", 128}};
    struct configuration_setting *latent = setting_find(config, "--multi-latent-attention");
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        struct configuration_setting *part = setting_find(config, parts[i].name);
        if (latent && part)
            put_model(config, parts[i].key, number_text(config, setting_int(config, part->name, 0, diag)), part);
        else if (latent)
            put_model(config, parts[i].key, number_text(config, parts[i].by_default), NULL);
        setting_aside(part, "of latent attention");
    }
    if (!latent)
        return;
    setting_aside(latent, "see mla");
    put_model_remove(config, "d_kv");
    put_model_remove(config, "n_kv_heads");
    put_model_remove(config, "rotary_share");
}

void megatron_experts(struct configuration *config, struct diag *diag)
{
    struct configuration_setting *experts = setting_find(config, "--num-experts");
    const char *family = put_model_find(config, "family");
    bool llama = strcmp(family, "llama") == 0, named = put_find(config, "model") != NULL;
    struct configuration_setting *latent = setting_find(config, "--multi-latent-attention");
    if ((experts || latent) && !llama && !named) {
        diag_input(diag, (experts ? experts : latent)->at,
            "%s: experts and latent attention are simulated with gated layers (--swiglu) and rotary positions; --model "
            "NAME says the model otherwise",
            (experts ? experts : latent)->name);
        return;
    }
    find_latent(config, diag);
    if (!experts)
        return;
    find_routed(config, experts, diag);
    find_layers(config, diag);
    find_shared(config, diag);
    find_router(config, diag);
}
