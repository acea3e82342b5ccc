/* Golden digests of what drawn cases (tests/combinations.h) compile to, one for each strategy and
 * one for each family of models, and of what a quarter of the plans do, one for each cluster. Laws
 * say what holds of any plan; these notice what no law forbids: a kernel that reads other bytes, a
 * wait that is gone. As in test_digest.c a digest that changes on purpose is put in here anew, and
 * the commit says why. A change of one strategy or family leaves the others of its table as they
 * are. */
#include "scenario/scenario.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "../combinations.h"
#include "base/digest.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { CASES = 2000, UNITS = 500, EXECUTED = 4 };

/* NVSwitch and as many NICs as GPUs; the same with leaf and spine switches; PCIe and one NIC a
 * node. */
static const char *const clusters[] = {"h100-8x400g", "h100-8x400g-rail", "a100-pcie-1x200g"};
enum { CLUSTERS = sizeof clusters / sizeof *clusters };

struct digests {
    uint64_t strategy[STRATEGY_MEGATRON], family[MODEL_FAMILY_COUNT], cluster[CLUSTERS];
};

static const struct digests want = {
    .strategy = {[STRATEGY_FSDP] = UINT64_C(0x535f42c791cb4bf0),
        [STRATEGY_DDP] = UINT64_C(0x592c03c6a311f2a7),
        [STRATEGY_DEEPSPEED] = UINT64_C(0x1efa04e731c8a2d8),
        [STRATEGY_INTERNEVO] = UINT64_C(0xfde0a30124e15d9f),
        [STRATEGY_SINGLE_DEVICE] = UINT64_C(0xcd994bf09c938324)},
    .family = {[MODEL_T5] = UINT64_C(0x30df68fca471aa00),
        [MODEL_GPT] = UINT64_C(0xfb0405d5e6ba3295),
        [MODEL_LLAMA] = UINT64_C(0x3be95ae919632d17),
        [MODEL_BERT] = UINT64_C(0x485ff884c2aca0d4),
        [MODEL_VIT] = UINT64_C(0xc854f27a3cec47fc),
        [MODEL_CONVNET] = UINT64_C(0x6e69a4cebeb38f34),
        [MODEL_DHEN] = UINT64_C(0xffb7424ad1f8dd8e)},
    .cluster = {UINT64_C(0xbde8b607d06f775e), UINT64_C(0xe036b6b453db9614),
        UINT64_C(0xf60fc9137ef5b052)},
};

static const uint64_t want_units = UINT64_C(0x03777dc3db414ccb);

static uint64_t digest_real(uint64_t digest, double value)
{
    uint64_t word;
    memcpy(&word, &value, sizeof word);
    return digest_word(digest, word);
}

/* What plan_digest() leaves out, too. */
static uint64_t digest_plan(uint64_t digest, const struct plan *plan)
{
    digest = digest_word(digest, plan_digest(plan));
    for (int k = 0; k < plan->kernels.n; k++)
        digest = digest_word(digest, kernel_digest(&plan->kernels.at[k]));
    const struct plan_program *program = &plan->programs[0];
    for (int b = 0; b < program->buffers.n; b++)
        digest = digest_word(digest,
            ((uint64_t)program->buffers.at[b].category << 8) | program->buffers.at[b].stream);
    for (int s = 0; s < program->setup.n; s++)
        digest = digest_word(digest, (uint64_t)program->setup.at[s]);
    for (int c = 0; c < plan->collectives.n; c++) {
        const struct mesh_group *group = &plan->groups.at[plan->collectives.at[c].group].ranks;
        digest = digest_word(digest, ((uint64_t)group->size << 32) | (uint64_t)group->stride);
    }
    const double ranks = plan->mesh.ranks,
                 sums[] = {program->model_flop, program->hardware_flop, program->host_bytes,
                     plan->tokens / ranks, plan->samples / ranks};
    for (size_t i = 0; i < sizeof sums / sizeof *sums; i++)
        digest = digest_real(digest, sums[i]);
    return digest;
}

/* The events and the peaks of HBM; a third of the runs have noise where all ranks are simulated for
 * it, one by one. */
static uint64_t digest_run(
    uint64_t digest, const struct plan *plan, const struct hw *hw, int number, struct arena *arena)
{
    struct exec_options options = exec_default_options();
    struct exec_result result;
    options.steps = options.warmup_steps = 1;
    options.allocator.expandable_segments = number / EXECUTED % 5 == 0;
    if (number / EXECUTED % 4 == 0 && plan->mesh.ranks <= 8)
        options.noise = (struct noise_options){.gpu_speed_spread = 0.02,
            .gpu_speed_spread_below = 0.006,
            .kernel_jitter = 0.01,
            .network_jitter = 0.02,
            .host_jitter = 0.05};
    exec_run(&result, plan, hw, &options, arena);
    const struct exec_memory *memory = &result.memory;
    digest = digest_word(digest, result.digest);
    digest =
        digest_real(digest_real(digest, memory->peak_allocated_bytes), memory->peak_reserved_bytes);
    for (int c = 0; c < HBM_CATEGORY_COUNT; c++)
        digest = digest_real(digest, memory->peak_category_bytes[c]);
    return digest;
}

static void take(struct digests *digests, int number, const struct hw *hw)
{
    struct arena arena = ARENA_INIT;
    struct drawn drawn = draw(number);
    struct plan plan;
    int cluster = number / EXECUTED % CLUSTERS;
    if (compile_drawn(&plan, &drawn, &hw[cluster], &arena)) {
        uint64_t *strategy = &digests->strategy[drawn.options.kind],
                 *family = &digests->family[drawn.shape->family];
        *strategy = digest_plan(*strategy, &plan);
        *family = digest_plan(*family, &plan);
        if (number % EXECUTED == 0)
            digests->cluster[cluster] =
                digest_run(digests->cluster[cluster], &plan, &hw[cluster], number, &arena);
    }
    plan_release(&plan);
    arena_release(&arena);
}

/* How many differ; they are printed as they would stand above. */
static int compare(const char *table, const uint64_t *got, const uint64_t *wanted, int n)
{
    int differ = 0;
    for (int i = 0; i < n; i++) {
        if (got[i] == wanted[i])
            continue;
        fprintf(stderr, "%s %d: UINT64_C(0x%016" PRIx64 ")\n", table, i, got[i]);
        differ++;
    }
    return differ;
}

/* Megatron-FSDP, which is drawn apart. */
static void its_units_are_what_they_were(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct hw hw;
    uint64_t digest = 0;
    load_cluster(&hw, clusters[0], &arena);
    for (int i = 0; i < UNITS; i++) {
        struct arena scratch = ARENA_INIT;
        struct drawn drawn = draw_megatron_fsdp(i);
        struct plan plan;
        if (compile_drawn(&plan, &drawn, &hw, &scratch))
            digest = digest_plan(digest, &plan);
        plan_release(&plan);
        arena_release(&scratch);
    }
    assert_int_equal(compare("megatron_fsdp", &digest, &want_units, 1), 0);
    arena_release(&arena);
}

static void plans_and_runs_are_what_they_were(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct hw hw[CLUSTERS];
    struct digests got = {0};
    for (int c = 0; c < CLUSTERS; c++)
        load_cluster(&hw[c], clusters[c], &arena);
    for (int i = 0; i < CASES; i++)
        take(&got, i, hw);
    int differ = compare("strategy", got.strategy, want.strategy, STRATEGY_MEGATRON) +
                 compare("family", got.family, want.family, MODEL_FAMILY_COUNT) +
                 compare("cluster", got.cluster, want.cluster, CLUSTERS);
    assert_int_equal(differ, 0);
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(plans_and_runs_are_what_they_were),
        cmocka_unit_test(its_units_are_what_they_were)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
