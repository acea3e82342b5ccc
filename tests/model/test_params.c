/* Parameter counts against published ones, and the layout of layers and tensors. */
#include "model/model.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../near.h"

static struct model load(const char *folder, const char *file, struct arena *arena)
{
    static struct diag diag;
    diag = DIAG_INIT;
    struct model_shape shape;
    if (model_load(&shape, arena_printf(arena, "%s/%s", folder, file), false, arena, &diag))
        fail_msg("%s", diag.text);
    struct model model;
    model_build(&model, &shape, arena);
    return model;
}

static void counts_are_the_published_ones(void **state)
{
    (void)state;
    /* T5: the sum of the sizes in the checkpoints, tied (transformers). gpt2: transformers'
     * num_parameters(). gpt3-175b: the minGPT row of the PyTorch FSDP posts. mpt: NumParams of the
     * llm-foundry throughput tables at 2048 tokens. Llama, Mistral, larger gpt2: the model cards.
     * megatron, ds: 12 L d^2 (1 + 13 / 12 d) + (V + S) d + 2 d, with which the sources' rounded
     * sizes agree. dhen: by test_dhen.c's closed form; the FSDP paper says 550M. resnet to vit:
     * num_params of the weights in torchvision's documentation. bert-large: BertModel's 335,141,888
     * (transformers' num_parameters()) and the heads of BertForPreTraining: transform 1,049,600 +
     * 2,048, bias 30,522, sentence 2,050. */
    const struct {
        const char *file;
        int64_t params;
    } expected[] = {
        {"mixtral-8x22b-g8t8.yaml",
            140620634112 + 56L * (64 - 8) * 6144}, /* Mixtral 8x22B and a router of 64 */
        {"t5-large.yaml", 737668096},
        {"t5-3b.yaml", 2851598336},
        {"t5-11b.yaml", 11307321344},
        {"t5-v1_1-xxl.yaml", 11135332352},
        {"gpt2.yaml", 124439808},
        {"gpt3-175b.yaml", 174601101312},
        {"mpt-1b.yaml", 1315950592},
        {"mpt-7b.yaml", 6658859008},
        {"mpt-13b.yaml", 12853954560},
        {"mpt-30b.yaml", 29975214080},
        {"llama2-7b.yaml", 6738415616},
        {"llama3.1-8b.yaml", 8030261248},
        {"llama3.1-70b.yaml", 70553706496},
        {"llama2-13b.yaml", 13015864320},
        {"llama2-70b.yaml", 68976648192},
        {"llama3.1-405b.yaml", 405853388800},
        {"nemo-llama3-405b.yaml", 405853388800},
        {"yi-34b.yaml", 34388917248},
        {"mpt-125m.yaml", 125311488},
        {"mpt-760m.yaml", 760470528},
        {"mpt-3b.yaml", 2651837440},
        {"mpt-70b.yaml", 64862437376},
        {"internlm-7b.yaml", 7321423872},
        {"bert-large.yaml", 336226108},
        {"dhen-550m.yaml", 550793287},
        {"resnet18.yaml", 11689512},
        {"resnet34.yaml", 21797672},
        {"resnet50.yaml", 25557032},
        {"resnet101.yaml", 44549160},
        {"resnet152.yaml", 60192808},
        {"resnext101_32x8d.yaml", 88791336},
        {"regnet_y_16gf.yaml", 83590140},
        {"regnet_y_32gf.yaml", 145046770},
        {"regnet_y_128gf.yaml", 644812894},
        {"vit_b_16.yaml", 86567656},
        {"vit_l_16.yaml", 304326632},
        {"vit_h_14.yaml", 632045800},
        {"mpt-350m.yaml", 355985408},
        {"gpt2-medium.yaml", 354823168},
        {"gpt2-large.yaml", 774030080},
        {"gpt2-xl.yaml", 1557611200},
        {"bloom-176b.yaml", INT64_C(176247271424)},
        {"megatron-gpt-1.7b.yaml", 1652230656},
        {"megatron-gpt-3.6b.yaml", 3562168320},
        {"megatron-gpt-7.5b.yaml", 7467786240},
        {"megatron-gpt-18b.yaml", 18449756160},
        {"megatron-gpt-39b.yaml", 39096041472},
        {"megatron-gpt-76b.yaml", 76050739200},
        {"megatron-gpt-145b.yaml", 145622261760},
        {"megatron-gpt-310b.yaml", 310130540544},
        {"megatron-gpt-530b.yaml", 529600819200},
        {"megatron-gpt-1t.yaml", 1008038758400},
        {"ds-530b.yaml", 529579847680},
        {"ds-1t.yaml", 1008012544000},
        {"mistral-7b.yaml", 7241732096},
        {"llama3.2-1b.yaml", 1235814400},
        {"llama3.2-3b.yaml", 3212749824},
        {"resnext50_32x4d.yaml", 25028904},
        {"qwen3-0.6b.yaml", 596049920},
        {"qwen3-1.7b.yaml", 1720574976},
        {"qwen3-4b.yaml", 4022468096},
        {"qwen3-8b.yaml", 8190735360},
        {"qwen3-14b.yaml", 14768307200},
        {"qwen3-32b.yaml", 32762123264},
    };
    struct arena arena = ARENA_INIT;
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        assert_int_equal(
            load(FLOPCAST_SOURCE_DIR "/scenarios/models", expected[i].file, &arena).params,
            expected[i].params);
    arena_release(&arena);
}

static void assumed_t5_shapes_have_the_papers_sizes(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    double small =
        (double)load(FLOPCAST_SOURCE_DIR "/scenarios/models", "t5-611m.yaml", &arena).params;
    double large =
        (double)load(FLOPCAST_SOURCE_DIR "/scenarios/models", "t5-2.28b.yaml", &arena).params;
    assert_true(small > 0.99 * 611e6 && small < 1.01 * 611e6);
    assert_true(large > 0.99 * 2.28e9 && large < 1.01 * 2.28e9);
    arena_release(&arena);
}

static void config_json_gives_the_same_counts(void **state)
{
    (void)state;
    /* mistral-7b: all keys by default; 7,241,732,096 on the model card of Mistral-7B-v0.1.
     * qwen2-7b: 7,615,616,512 on Qwen2-7B's. bert-base, BertForMaskedLM: 109,482,240 of BertModel
     * less the pooler's 590,592, and the head 590,592 + 1,536 + 30,522. qwen3 to phi-3: 2 V d (1 V
     * d where tied) + d + L (d (2 n + 2 g) d_head + 3 d f + 2 or 4 d, and 2 d_head with norms of q
     * and k), which the cards round to 8.2, 8.54, 9.24, 1.0 and 3.8 billion. gpt-neox:
     * 20,554,567,680 on its card; bloom: 176,247,271,424 and 7,069,016,064 on theirs; opt, falcon:
     * by the classes' tensors, 6.7, 7 and 40 billion. */
    const struct {
        const char *file;
        int64_t params;
    } expected[] = {
        {"t5-11b.json", 11307321344}, {"flan-t5-xxl.json", 11135332352}, {"gpt2.json", 124439808},
        {"llama-3.1-8b.json", 8030261248}, {"mistral-7b.json", 7241732096},
        {"qwen2-7b.json", 7615616512}, {"bert-base.json", 109514298}, {"qwen3-8b.json", 8190735360},
        {"gemma-7b.json", 8537680896}, {"gemma-2-9b.json", 9241705984},
        {"gemma-3-1b.json", 999885952}, {"phi-3-mini.json", 3821079552},
        {"gpt-neox-20b.json", 20554567680}, {"opt-6.7b.json", 6658473984},
        {"bloom.json", 176247271424}, {"bloom-7b1.json", 7069016064},
        {"falcon-7b.json", 6921720704}, {"falcon-40b.json", 41303293952},
        {"vit-base.json",
            85800963}, /* vit_b_16's 86,567,656 less 997 classes of 768 weights and a bias */
    };
    struct arena arena = ARENA_INIT;
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        assert_int_equal(
            load(FLOPCAST_TEST_DIR "/data", expected[i].file, &arena).params, expected[i].params);
    arena_release(&arena);
}

/* transformers' num_parameters() of BertConfig(): BertModel 109,482,240; the pooler 590,592; the
 * words' head 590,592 + 1,536 + 30,522; the sentence's 1,538; a classifier of n labels 769 n. */
static void an_architecture_decides_which_heads_are_counted(void **state)
{
    (void)state;
    const struct {
        const char *text;
        int64_t params;
    } cases[] = {
        {"{\"model_type\": \"bert\"}", 110106428},
        {"{\"model_type\": \"bert\", \"architectures\": null}", 110106428},
        {"{\"model_type\": \"bert\", \"architectures\": [\"BertForPreTraining\"]}", 110106428},
        {"{\"model_type\": \"bert\", \"architectures\": [\"BertForMaskedLM\"]}", 109514298},
        {"{\"model_type\": \"bert\", \"architectures\": [\"BertModel\"]}", 109482240},
        {"{\"model_type\": \"bert\", \"architectures\": [\"BertForSequenceClassification\"]}",
            109483778},
        {"{\"model_type\": \"bert\", \"architectures\": [\"BertForSequenceClassification\"], "
         "\"id2label\": {\"0\": \"a\", \"1\": \"b\", \"2\": \"c\"}}",
            109484547},
        {"{\"model_type\": \"t5\", \"architectures\": [\"T5WithLMHeadModel\"]}",
            60506624}, /* t5-small */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct arena arena = ARENA_INIT;
        struct diag diag = DIAG_INIT;
        struct model_shape shape;
        struct model model;
        assert_int_equal(
            model_parse(&shape, "c.json", cases[i].text, strlen(cases[i].text), &arena, &diag),
            STATUS_OK);
        model_build(&model, &shape, &arena);
        assert_int_equal(model.params, cases[i].params);
        arena_release(&arena);
    }
}

/* Total and active parameters. Mixtral: 46.7B and 12.9B (arXiv 2401.04088 and Mistral's
 * announcement), 141B and 39B of 8x22B; Qwen1.5-MoE 14.3B and 2.7B, Qwen2-57B-A14B 57.4B and 14B,
 * Qwen3 30.5B and 3.3B, 235B and 22B (model cards); DeepSeek-V2 236B and 21B, V2-Lite 15.7B and
 * 2.4B, which leaves the embeddings out (arXiv 2405.04434; 2 x 102400 x 2048 less is 2.24B), V3
 * 671B and 37B (arXiv 2412.19437), without the layer that predicts further tokens. Exact totals:
 * the classes' tensors in transformers; of V3 with 58 x 256 biases of the router. The files are
 * recalled, not fetched. */
static void experts_are_counted_as_published(void **state)
{
    (void)state;
    const struct {
        const char *name;
        int64_t params;
        double billions, active;
    } expected[] = {
        {"mixtral-8x7b", 46702792704, 46.7, 12.9},
        {"mixtral-8x22b", 140620634112, 141, 39},
        {"qwen1.5-moe-a2.7b", 14315784192, 14.3, 2.7},
        {"qwen2-57b-a14b", 57408658944, 57.4, 14},
        {"qwen3-30b-a3b", 30532122624, 30.5, 3.3},
        {"qwen3-235b-a22b", 235093634560, 235, 22},
        {"deepseek-v2", 235741434880, 236, 21},
        {"deepseek-v2-lite", 15706484224, 15.7, 2.4 + 2.0 * 102400 * 2048 / 1e9},
        {"deepseek-v3", 671026419200, 671, 37},
    };
    struct arena arena = ARENA_INIT;
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        struct model model = load(
            FLOPCAST_TEST_DIR "/data", arena_printf(&arena, "%s.json", expected[i].name), &arena);
        struct model ours = load(FLOPCAST_SOURCE_DIR "/scenarios/models",
            arena_printf(&arena, "%s.yaml", expected[i].name), &arena);
        double active = (double)model_active_params(&model.shape, model.params) / 1e9;
        assert_int_equal(model.params, expected[i].params);
        assert_int_equal(ours.params, expected[i].params);
        assert_int_equal(model_active_params(&ours.shape, ours.params),
            model_active_params(&model.shape, model.params));
        assert_true(fabs((double)model.params / 1e9 - expected[i].billions) < 0.5);
        if (fabs(active / expected[i].active - 1) > 0.07)
            fail_msg(
                "%s: %.2f B active, published %.2f", expected[i].name, active, expected[i].active);
    }
    arena_release(&arena);
}

/* Models of 2025, by the totals that Hugging Face shows for their files (recalled; each is what the
 * classes' tensors add up to): gpt-oss 20,914,757,184 and 116,829,156,672; GLM-4.5 358,337,776,896
 * and 14,400 of routers, Air 110,468,824,832, both with a layer that predicts further tokens, as
 * the next test has it; Llama 4 Scout 108,641,793,536 and Maverick 401,583,781,376, both with
 * 871,932,416 of images; Qwen3-Next 81,324,862,720, DeepSeek-V3.2 685,396,921,376 with that layer
 * and with scales of FP8, one for each 128 x 128; Jamba 51,570,323,328; Mamba 2 2,702,599,680 and
 * 7,285,403,648. */
static void models_of_2025_are_counted_as_published(void **state)
{
    (void)state;
    const int64_t index = 8192 * 1536 + 128 * 7168 + 2 * 128 + 64 * 7168, images = 871932416;
    const struct {
        const char *name;
        int64_t params, published, more; /* published 0: with multi-token prediction, below */
        double active; /* billions, as published, which leaves gpt-oss's embedding out; 0: not */
    } expected[] = {
        {"gpt-oss-20b", INT64_C(20914757184), INT64_C(20914757184), 0,
            3.61 + 201088.0 * 2880 / 1e9},
        {"gpt-oss-120b", INT64_C(116829156672), INT64_C(116829156672), 0,
            5.13 + 201088.0 * 2880 / 1e9},
        {"glm-4.5", INT64_C(352797829024), 0, 0, 32},
        {"glm-4.5-air", INT64_C(106852251264), 0, 0, 12},
        {"llama4-scout", INT64_C(107769861120), INT64_C(108641793536), images, 17},
        {"llama4-maverick", INT64_C(400711848960), INT64_C(401583781376), images, 17},
        {"qwen3-next-80b-a3b", INT64_C(79674391296), 0, 0, 3.9},
        {"deepseek-v3.2", INT64_C(671877944064), INT64_C(671026419200) + 61 * index, 0, 37},
        {"jamba-v0.1", INT64_C(51570323328), INT64_C(51570323328), 0, 12},
        {"mamba2-codestral-7b", INT64_C(7285403648), INT64_C(7285403648), 0, 0},
        {"mamba2-2.7b", INT64_C(2702599680), INT64_C(2702599680), 0, 0},
    };
    struct arena arena = ARENA_INIT;
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        struct model ours = load(FLOPCAST_SOURCE_DIR "/scenarios/models",
            arena_printf(&arena, "%s.yaml", expected[i].name), &arena);
        double active = (double)model_active_params(&ours.shape, ours.params) / 1e9;
        assert_int_equal(ours.params, expected[i].params);
        if (expected[i].published > 0)
            assert_int_equal(ours.params + expected[i].more, expected[i].published);
        if (expected[i].active > 0 && fabs(active / expected[i].active - 1) > 0.13)
            fail_msg(
                "%s: %.2f B active, published %.2f", expected[i].name, active, expected[i].active);
        if (i + 1 == sizeof expected / sizeof *expected)
            continue; /* no config.json of transformers */
        struct model model = load(
            FLOPCAST_TEST_DIR "/data", arena_printf(&arena, "%s.json", expected[i].name), &arena);
        assert_int_equal(model.params, expected[i].params);
    }
    /* 685,396,921,376 less what DeepSeek-V3 has, 62 indexers, and a scale for each 128 x 128 of
     * wq_b and wk. */
    assert_int_equal(
        INT64_C(685396921376) - INT64_C(684531386000), 62 * (index + 64 * 12 + 1 * 56));
    arena_release(&arena);
}

/* Models of published runs: Qwen2.5 to the last digit, as Hugging Face shows for its files
 * (recalled). Moonlight: 15.29 B without embedding and head (arXiv 2502.16982, recalled). Kimi K2
 * is called 1 T with 32 B active, Nemotron 3 Super 120 B with 12 B active. */
static void models_of_blind_runs_are_counted_as_published(void **state)
{
    (void)state;
    const struct {
        const char *name;
        int64_t published, unseen; /* unseen: what the published count leaves out */
        double active, within;     /* billions, as published; 0: all */
    } expected[] = {
        {"qwen2.5-7b", INT64_C(7615616512), 0, 0, 0},
        {"qwen2.5-14b", INT64_C(14770033664), 0, 0, 0},
        {"qwen2.5-32b", INT64_C(32763876352), 0, 0, 0},
        {"moonlight-16b-a3b", INT64_C(15290000000), 2 * INT64_C(163840) * 2048,
            2.24 + 2 * 163840.0 * 2048 / 1e9, 0.001},
        {"kimi-k2", INT64_C(1000000000000), 0, 32, 0.03},
        {"nemotron-3-super-120b-a12b", INT64_C(120000000000), 0, 12, 0.01},
    };
    struct arena arena = ARENA_INIT;
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        struct model model = load(FLOPCAST_SOURCE_DIR "/scenarios/models",
            arena_printf(&arena, "%s.yaml", expected[i].name), &arena);
        double active = (double)model_active_params(&model.shape, model.params) / 1e9;
        double ratio = (double)(model.params - expected[i].unseen) / (double)expected[i].published;
        if (fabs(ratio - 1) > expected[i].within)
            fail_msg("%s: %lld parameters", expected[i].name, (long long)model.params);
        if (expected[i].active > 0 && fabs(active / expected[i].active - 1) > 0.07)
            fail_msg(
                "%s: %.2f B active, published %.2f", expected[i].name, active, expected[i].active);
    }
    arena_release(&arena);
}

/* Nemotron-H (arXiv 2504.03624, recalled): with d the width, of Mamba 2 d (2 h P + 2 g N + h) + (K
 * + 1) (h P + 2 g N) + 3 h + h P + h P d + d, of the MLP 2 d f + d, of attention (2 n + 2 g) d_head
 * d + d. No published count is at hand. */
static void a_pattern_is_counted_by_its_blocks(void **state)
{
    (void)state;
    enum {
        D = 4096,
        F = 21504,
        H = 128,
        P = 64,
        G = 8,
        N = 128,
        K = 4,
        HEADS = 32,
        KEYS = 8,
        DIM = 128,
        VOCAB = 131072
    };
    const int64_t d = D, inner = H * P, columns = inner + 2 * G * N;
    const int64_t scan =
        d * (inner + columns + H) + (K + 1) * columns + 3 * H + inner + inner * d + d;
    const int64_t feed_forward = 2 * d * F + d, attention = (2 * HEADS + 2 * KEYS) * DIM * d + d;
    struct arena arena = ARENA_INIT;
    struct model ours = load(FLOPCAST_SOURCE_DIR "/scenarios/models", "nemotron-h-8b.yaml", &arena);
    struct model theirs = load(FLOPCAST_TEST_DIR "/data", "nemotron-h-8b.json", &arena);
    assert_int_equal(ours.params, 24 * (scan + feed_forward) + 4 * attention + 2 * VOCAB * d + d);
    assert_int_equal(theirs.params, ours.params);
    assert_int_equal(theirs.n_tensors, ours.n_tensors);
    assert_string_equal(theirs.shape.pattern, ours.shape.pattern);
    arena_release(&arena);
}

/* Nemotron 3 Super, published 120 B, 12 B active without the embedding (model card, recalled): 512
 * experts of width 2688 work in a latent of 1024, which two matrices make and bring back; of them a
 * token meets 22. */
static void experts_of_a_latent_are_counted_as_published(void **state)
{
    (void)state;
    enum {
        D = 4096,
        F = 2688,
        LATENT = 1024,
        SHARED = 5376,
        EXPERTS = 512,
        TOP = 22,
        INNER = 128 * 64,
        KEYED = 2 * 8 * 128,
        HEADS = 128,
        ATTENTION = (2 * 32 + 2 * 2) * 128 * D + D,
        VOCAB = 131072
    };
    const int64_t columns = INNER + KEYED, expert = 2 * LATENT * F;
    const int64_t scan =
        D * (INNER + columns + HEADS) + 5 * columns + 3 * HEADS + INNER + INNER * D + D;
    const int64_t routed = EXPERTS * (D + 1 + expert) + 2 * D * LATENT + 2 * D * SHARED + D;
    struct arena arena = ARENA_INIT;
    struct model model = load(FLOPCAST_TEST_DIR "/data", "nemotron-3-super-120b-a12b.json", &arena);
    int64_t active = model_active_params(&model.shape, model.params);
    assert_int_equal(
        model.params, 40 * (scan + routed) + 8 * ATTENTION + 2 * (int64_t)VOCAB * D + D);
    assert_int_equal(active, model.params - 40 * (EXPERTS - TOP) * expert);
    assert_near((double)model.params, 120e9, 1e9);
    assert_near((double)(active - (int64_t)VOCAB * D), 12e9, 0.5e9);
    arena_release(&arena);
}

/* Other names of a type: Kimi K2 1,026 B, 32.9 B a token (its card: 1 T, 32 B), GLM-5 744 B (its
 * card). */
static void other_names_of_a_type_are_read_as_it(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct model kimi = load(FLOPCAST_TEST_DIR "/data", "kimi-k2.json", &arena);
    struct model glm = load(FLOPCAST_TEST_DIR "/data", "glm-5.1.json", &arena);
    assert_int_equal(kimi.params, INT64_C(1026408232448));
    assert_near((double)model_active_params(&kimi.shape, kimi.params), 32.86e9, 0.01e9);
    assert_near((double)glm.params, 744e9, 0.5e9);
    arena_release(&arena);
}

/* Models of 2026, whose blocks differ. To the last digit, as Hugging Face shows for their files
 * (recalled): MiMo 7B with its layer of multi-token prediction, Llama-3.3-Nemotron-Super.
 * MiniMax-M2.5 is called 230 B with 10 B active, MiMo-V2 Flash 309 B with 15 B, Gemma 4 25.2 B with
 * 3.8 B (its card), DeepSeek-V4 Flash 284 B with 13 B beside the embedding, Qwen3.5 27 B, and 35 B
 * with 3 B. */
static void models_of_2026_are_counted_as_published(void **state)
{
    (void)state;
    const struct {
        const char *name;
        double published, active, within, active_within; /* billions; active 0: all */
    } expected[] = {
        {"mimo-7b", 7.833409536, 0, 0, 0},
        {"nemotron-super-49b", 49.867145216, 0, 0, 0},
        {"minimax-m2.5", 230, 10, 0.01, 0.11},
        {"mimo-v2-flash", 309, 15, 0.002, 0.04},
        {"gemma-4-26b-a4b", 25.2, 3.8, 0.003, 0.01},
        {"qwen3.5-27b", 27, 0, 0.005, 0},
        {"deepseek-v4-flash", 284, 13 + 129280 * 4096 / 1e9, 0.002, 0.03},
        {"qwen3.5-35b-a3b", 35, 3, 0.011, 0.16},
    };
    struct arena arena = ARENA_INIT;
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        struct model model = load(
            FLOPCAST_TEST_DIR "/data", arena_printf(&arena, "%s.json", expected[i].name), &arena);
        double active = (double)model_active_params(&model.shape, model.params) / 1e9,
               all = (double)model.params / 1e9;
        if (fabs(all / expected[i].published - 1) > expected[i].within + 1e-12)
            fail_msg("%s: %.9f B parameters, published %.9f", expected[i].name, all,
                expected[i].published);
        if (expected[i].active > 0 &&
            fabs(active / expected[i].active - 1) > expected[i].active_within)
            fail_msg(
                "%s: %.2f B active, published %.2f", expected[i].name, active, expected[i].active);
        if (i < 2)
            continue; /* no model file */
        struct model ours = load(FLOPCAST_SOURCE_DIR "/scenarios/models",
            arena_printf(&arena, "%s.yaml", expected[i].name), &arena);
        assert_int_equal(ours.params, model.params);
        assert_int_equal(ours.n_tensors, model.n_tensors);
        for (int t = 0; t < ours.n_tensors; t++)
            assert_int_equal(ours.tensors[t].numel, model.tensors[t].numel);
    }
    arena_release(&arena);
}

/* Nemotron 3 Nano, published 31.6 B, 3.6 B active, 3.2 B without the embedding (model card,
 * recalled): blocks of experts have E (d + 1) of the router, E times 2 d f, 2 d f of the shared
 * one's own width, and d. */
static void experts_of_a_pattern_are_counted_as_published(void **state)
{
    (void)state;
    enum {
        D = 2688,
        F = 1856,
        SHARED = 3712,
        EXPERTS = 128,
        TOP = 6,
        INNER = 64 * 64,
        KEYED = 2 * 8 * 128,
        HEADS = 64,
        ATTENTION = (2 * 32 + 2 * 2) * 128 * D + D,
        VOCAB = 131072
    };
    const int64_t columns = INNER + KEYED, expert = 2 * D * F;
    const int64_t scan =
        D * (INNER + columns + HEADS) + 5 * columns + 3 * HEADS + INNER + INNER * D + D;
    const int64_t routed = EXPERTS * (D + 1 + expert) + 2 * D * SHARED + D,
                  embedding = (int64_t)VOCAB * D;
    struct arena arena = ARENA_INIT;
    struct model ours =
        load(FLOPCAST_SOURCE_DIR "/scenarios/models", "nemotron-3-nano-30b-a3b.yaml", &arena);
    struct model theirs = load(FLOPCAST_TEST_DIR "/data", "nemotron-3-nano-30b-a3b.json", &arena);
    int64_t active = model_active_params(&ours.shape, ours.params);
    assert_int_equal(ours.params, 23 * (scan + routed) + 6 * ATTENTION + 2 * embedding + D);
    assert_int_equal(active, ours.params - 23 * (EXPERTS - TOP) * expert);
    assert_near((double)ours.params, 31.6e9, 0.05e9);
    assert_near((double)active, 3.6e9, 0.05e9);
    assert_near((double)(active - embedding), 3.2e9, 0.05e9);
    assert_int_equal(theirs.params, ours.params);
    assert_int_equal(theirs.n_tensors, ours.n_tensors);
    assert_string_equal(theirs.shape.pattern, ours.shape.pattern);
    assert_memory_equal(&theirs.shape.moe, &ours.shape.moe, sizeof ours.shape.moe);
    arena_release(&arena);
}

/* One scale for each 128 x 128 of a block's matrix that lies in FP8, of experts in each expert's:
 * all but the router's and eh_proj. */
static int64_t scales(const struct model *model, int64_t experts)
{
    int64_t sum = 0;
    for (int t = 0; t < model->n_tensors; t++) {
        const struct model_tensor *at = &model->tensors[t];
        int64_t stack = strstr(at->name, "experts.") && !strstr(at->name, "shared") ? experts : 1;
        if (at->layer > 0 && at->cols > 1 && !strstr(at->name, "mlp.gate.") &&
            !strstr(at->name, "eh_proj"))
            sum += stack * ((at->rows / stack + 127) / 128) * ((at->cols + 127) / 128);
    }
    return sum;
}

/* The same totals, of which a layer of multi-token prediction is a part: its checkpoints have
 * copies of embedding and head, Qwen3-Next's have none; DeepSeek-V3's 684,531,386,000 have scales
 * of FP8, too. */
static void multi_token_prediction_is_counted_as_published(void **state)
{
    (void)state;
    const struct {
        const char *name;
        int64_t published, vocab, experts;
    } expected[] = {
        {"deepseek-v3-mtp", INT64_C(684531386000), 129280, 256},
        {"glm-4.5-mtp", INT64_C(358337776896) + 90 * 160, 151552, 0},
        {"glm-4.5-air-mtp", INT64_C(110468824832), 151552, 0},
        {"qwen3-next-80b-a3b-mtp", INT64_C(81324862720), 0, 0},
    };
    struct arena arena = ARENA_INIT;
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        struct model model = load(FLOPCAST_SOURCE_DIR "/scenarios/models",
            arena_printf(&arena, "%s.yaml", expected[i].name), &arena);
        int64_t copies = 2 * expected[i].vocab * model.shape.d_model;
        int64_t quantised = expected[i].experts > 0 ? scales(&model, expected[i].experts) : 0;
        assert_int_equal(model.params + copies + quantised, expected[i].published);
    }
    arena_release(&arena);
}

static void layers_cover_the_tensors(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct model model = load(FLOPCAST_SOURCE_DIR "/scenarios/models", "t5-11b.yaml", &arena);
    int64_t params = 0;
    int next = 0;
    for (int i = 0; i < model.n_layers; i++) {
        const struct model_layer *layer = &model.layers[i];
        int64_t sum = 0;
        assert_int_equal(layer->first_tensor, next);
        for (int j = 0; j < layer->n_tensors; j++, next++) {
            const struct model_tensor *tensor = &model.tensors[next];
            assert_int_equal(tensor->layer, i);
            assert_int_equal(tensor->numel, tensor->rows * tensor->cols);
            sum += tensor->numel;
        }
        assert_int_equal(sum, layer->params);
        params += sum;
    }
    assert_int_equal(next, model.n_tensors);
    assert_int_equal(params, model.params);
    arena_release(&arena);
}

/* Names as in T5ForConditionalGeneration().state_dict(), in the order of its parameters. */
static void t5_blocks_are_laid_out_as_in_pytorch(void **state)
{
    (void)state;
    const char *const decoder[] = {
        "decoder.block.0.layer.0.SelfAttention.q.weight",
        "decoder.block.0.layer.0.SelfAttention.k.weight",
        "decoder.block.0.layer.0.SelfAttention.v.weight",
        "decoder.block.0.layer.0.SelfAttention.o.weight",
        "decoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight",
        "decoder.block.0.layer.0.layer_norm.weight",
        "decoder.block.0.layer.1.EncDecAttention.q.weight",
        "decoder.block.0.layer.1.EncDecAttention.k.weight",
        "decoder.block.0.layer.1.EncDecAttention.v.weight",
        "decoder.block.0.layer.1.EncDecAttention.o.weight",
        "decoder.block.0.layer.1.layer_norm.weight",
        "decoder.block.0.layer.2.DenseReluDense.wi.weight",
        "decoder.block.0.layer.2.DenseReluDense.wo.weight",
        "decoder.block.0.layer.2.layer_norm.weight",
    };
    struct arena arena = ARENA_INIT;
    struct model model = load(FLOPCAST_SOURCE_DIR "/scenarios/models", "t5-11b.yaml", &arena);
    assert_int_equal(model.n_layers, 1 + 24 + 24);
    const struct model_layer *layer = &model.layers[1 + 24];
    assert_string_equal(layer->name, "decoder.block.0");
    assert_int_equal(layer->n_tensors, sizeof decoder / sizeof *decoder);
    for (int i = 0; i < layer->n_tensors; i++)
        assert_string_equal(model.tensors[layer->first_tensor + i].name, decoder[i]);
    /* Block 0 of each stack has the bias and is alone; the rest are alike. */
    const int alike[][2] = {{0, 0}, {1, 1}, {2, 2}, {3, 2}, {24, 2}, {25, 25}, {26, 26}, {48, 26}};
    for (size_t i = 0; i < sizeof alike / sizeof *alike; i++)
        assert_int_equal(model.layers[alike[i][0]].alike, alike[i][1]);
    arena_release(&arena);
}

static void print_tells_the_shape(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct model model = load(FLOPCAST_SOURCE_DIR "/scenarios/models", "gpt2.yaml", &arena);
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    model_print(out, &model);
    fclose(out);
    assert_non_null(strstr(text, "parameters  124,439,808 (0.1244 B)"));
    /* 12 blocks of 24 d^2 + 4 s d and a head of 2 d V a token: 12 (24 * 589824 + 4 * 1024 * 768) +
     * 2 * 768 * 50257 = 284,812,800 */
    assert_non_null(strstr(text, "forward     0.2848 GFLOP a token at length 1024"));
    assert_non_null(strstr(text, "transformer.wte.weight"));
    assert_non_null(strstr(
        text, "    12  transformer.h.0                12          7,087,872          85,054,464"));
    free(text);
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_are_the_published_ones),
        cmocka_unit_test(assumed_t5_shapes_have_the_papers_sizes),
        cmocka_unit_test(config_json_gives_the_same_counts),
        cmocka_unit_test(an_architecture_decides_which_heads_are_counted),
        cmocka_unit_test(experts_are_counted_as_published),
        cmocka_unit_test(models_of_2025_are_counted_as_published),
        cmocka_unit_test(models_of_blind_runs_are_counted_as_published),
        cmocka_unit_test(multi_token_prediction_is_counted_as_published),
        cmocka_unit_test(a_pattern_is_counted_by_its_blocks),
        cmocka_unit_test(experts_of_a_latent_are_counted_as_published),
        cmocka_unit_test(other_names_of_a_type_are_read_as_it),
        cmocka_unit_test(models_of_2026_are_counted_as_published),
        cmocka_unit_test(experts_of_a_pattern_are_counted_as_published),
        cmocka_unit_test(layers_cover_the_tensors),
        cmocka_unit_test(t5_blocks_are_laid_out_as_in_pytorch),
        cmocka_unit_test(print_tells_the_shape),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
