/* The files under topologies/: they load, and what they say fits together. */
#include "hw/override.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "../near.h"
#include "clusters.h"

#include <stdlib.h>
#include <glob.h>
#include <math.h>
#include <string.h>

#define GPUS FLOPCAST_SOURCE_DIR "/topologies/gpus/"
#define CLUSTERS FLOPCAST_SOURCE_DIR "/topologies/clusters/"

static struct hw load(struct arena *arena, const char *path)
{
    struct hw hw;
    struct diag *diag = ARENA_NEW(arena, struct diag);
    if (hw_load(&hw, path, arena, diag) != STATUS_OK)
        fail_msg("%s", diag->text);
    return hw;
}

/* What every cluster must satisfy, whatever its numbers are. */
static void check(const char *path, struct hw *hw)
{
    (void)path;
    const struct hw_gpu *gpu = &hw->gpu;
    assert_true(gpu->memory_sms.value <= gpu->sms.value);
    assert_true(
        hw->node.nccl_channels.value < gpu->sms.value); /* a collective leaves SMs to compute */
    assert_true(
        quantity_is_set(hw->cluster.gpu_speed_spread)); /* it extends topologies/noise.yaml */
    assert_true(
        hw->node.nccl_bytes.value + gpu->context_bytes.value < 0.2 * gpu->hbm_capacity.value);
    /* a GPU's way out of the node is narrower than the way inside it */
    assert_true(hw->node.nics.value * hw->node.nic_bandwidth.value / hw->node.gpus.value <
                hw->node.gpu_bandwidth.value);
    for (int i = 0; i < DTYPE_COUNT; i++)
        if (quantity_is_set(gpu->gemm[i].peak))
            assert_true(gpu->gemm[i].efficiency.value >
                        0.5); /* no GEMM library is worse for large products */
}

static void test_all_clusters_load(void **state)
{
    (void)state;
    each_cluster(check);
}

static struct hw_gpu load_gpu(struct arena *arena, const char *path)
{
    struct hw_gpu gpu;
    struct diag *diag = ARENA_NEW(arena, struct diag);
    if (hw_load_gpu(&gpu, path, arena, diag) != STATUS_OK)
        fail_msg("%s", diag->text);
    return gpu;
}

/* To the three digits that the files have. */
static void assert_borrowed(struct quantity q, const char *path, const char *what, double wanted)
{
    if (q.kind == QUANTITY_ASSUMED && fabs(q.value / wanted - 1) > 1e-3)
        fail_msg("%s: %s is %g; the fit that it names says %g now", path, what, q.value, wanted);
}

/* Nobody knows a borrowed number better than the fit does. */
static void assert_wider(struct quantity q, const char *path, const char *what, struct quantity fit)
{
    assert_int_equal(fit.kind, QUANTITY_FITTED);
    if (q.kind == QUANTITY_ASSUMED && !(q.std_error > fit.std_error))
        fail_msg(
            "%s: %s +- %g; the fit has +- %g, and a number that is taken over has a larger error",
            path, what, q.std_error, fit.std_error);
}

/* What training showed on some cards stands for the others, too, and is to follow when it is fitted
 * again. */
static void test_what_is_borrowed_from_a_fit_is_what_the_fit_says(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct hw_gpu v100 = load_gpu(&arena, GPUS "v100-sxm2-16gb.yaml"),
                  a100 = load_gpu(&arena, GPUS "a100-sxm4-80gb.yaml"),
                  h100 = load_gpu(&arena, GPUS "h100-sxm5-80gb.yaml");
    glob_t paths;
    assert_int_equal(glob(GPUS "*.yaml", 0, NULL, &paths), 0);
    for (size_t i = 0; i < paths.gl_pathc; i++) {
        const char *path = paths.gl_pathv[i];
        struct hw_gpu gpu = load_gpu(&arena, path);
        const struct {
            const char *what;
            struct quantity q, fit;
        } all[] = {
            {"conv_efficiency", gpu.conv_efficiency, v100.conv_efficiency},
            {"overlap_start", gpu.overlap_start, a100.overlap_start},
            {"overlap_traffic", gpu.overlap_traffic, a100.overlap_traffic},
            {"norm_row_time", gpu.norm_row_time, h100.norm_row_time},
        };
        for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
            assert_true(quantity_is_set(all[k].q));
            assert_borrowed(all[k].q, path, all[k].what, all[k].fit.value);
            assert_wider(all[k].q, path, all[k].what, all[k].fit);
        }
    }
    globfree(&paths);
    arena_release(&arena);
}

/* What training showed on one card, as another one of the same silicon is to have it. Where that
 * card has another power limit, its clock goes with the cube root of the limit. */
static void check_silicon(const struct hw_gpu *gpu, const char *path, const struct hw_gpu *fitted)
{
    double clock = cbrt(gpu->tdp.value / fitted->tdp.value);
    const struct {
        const char *what;
        struct quantity q, fit;
        double times;
    } all[] = {
        {"gemm_sustained", gpu->gemm_sustained, fitted->gemm_sustained, clock},
        {"pointwise_efficiency", gpu->pointwise_efficiency, fitted->pointwise_efficiency, 1},
        {"norm_row_time", gpu->norm_row_time, fitted->norm_row_time, 1},
        {"conv_efficiency", gpu->conv_efficiency, fitted->conv_efficiency, 1},
        {"overlap_start", gpu->overlap_start, fitted->overlap_start, 1},
        {"overlap_traffic", gpu->overlap_traffic, fitted->overlap_traffic, 1},
        {"step_pause", gpu->step_pause, fitted->step_pause, 1},
    };
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
        bool own = all[k].q.kind == QUANTITY_FITTED || all[k].q.kind == QUANTITY_MEASURED;
        if (all[k].fit.kind != QUANTITY_FITTED || own)
            continue;
        if (!quantity_is_set(all[k].q))
            fail_msg("%s has no %s; it was fitted on %s, the same silicon", path, all[k].what,
                fitted->name);
        assert_int_equal(all[k].q.kind, QUANTITY_ASSUMED);
        assert_borrowed(all[k].q, path, all[k].what, all[k].fit.value * all[k].times);
        assert_wider(all[k].q, path, all[k].what, all[k].fit);
    }
}

static void test_cards_of_one_silicon_share_what_training_showed(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    glob_t paths;
    int pairs = 0;
    assert_int_equal(glob(GPUS "*.yaml", 0, NULL, &paths), 0);
    for (size_t i = 0; i < paths.gl_pathc; i++) {
        struct hw_gpu gpu = load_gpu(&arena, paths.gl_pathv[i]);
        assert_non_null(gpu.silicon);
        for (size_t j = 0; j < paths.gl_pathc; j++) {
            struct hw_gpu other = load_gpu(&arena, paths.gl_pathv[j]);
            if (i == j || strcmp(gpu.silicon, other.silicon) != 0)
                continue;
            assert_string_equal(gpu.arch, other.arch);
            double per_sm = gpu.vector_flops.value /
                            gpu.sms.value; /* the SMs are the same, clocks differ little */
            assert_near(other.vector_flops.value / other.sms.value / per_sm, 1, 0.05);
            check_silicon(&gpu, paths.gl_pathv[i], &other);
            pairs++;
        }
    }
    assert_int_equal(pairs,
        4 * 3 + 5 * 4 + 4 * 3 + 2 + 2 + 2); /* GA100, GH100, GB100; AD102, GV100 and CDNA 3 */
    globfree(&paths);
    arena_release(&arena);
}

/* So are numbers of NCCL that a node or cluster has from the fit of another. */
static void test_what_links_borrow_is_what_the_fit_says(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct hw h100 = load(&arena, CLUSTERS "h100-8x400g.yaml"),
              p4d = load(&arena, CLUSTERS "aws-p4d-efa.yaml");
    int borrowed = 0;
    glob_t paths;
    assert_int_equal(glob(CLUSTERS "*.yaml", 0, NULL, &paths), 0);
    for (size_t i = 0; i < paths.gl_pathc; i++) {
        struct hw hw = load(&arena, paths.gl_pathv[i]);
        static const double blackwell =
            0.74 / 0.85; /* NCCL's own efficiencies of NVLS (src/graph/tuning.cc) */
        const struct {
            const char *what, *says;
            struct quantity q, fit;
            double times;
        } all[] = {
            {"nccl_efficiency", "fit of Hopper nodes", hw.node.nccl_efficiency,
                h100.node.nccl_efficiency, 1},
            {"nvls_latency", "fit of Hopper nodes", hw.node.nvls_latency, h100.node.nvls_latency,
                1},
            {"nvls_step_latency", "fit of Hopper nodes", hw.node.nvls_step_latency,
                h100.node.nvls_step_latency, 1},
            {"nvls_efficiency", "fit of Hopper nodes", hw.node.nvls_efficiency,
                h100.node.nvls_efficiency, blackwell},
            {"nccl_efficiency", "fit of InfiniBand NDR", hw.cluster.nccl_efficiency,
                h100.cluster.nccl_efficiency, 1},
            {"nccl_efficiency", "fitted on p4d", hw.cluster.nccl_efficiency,
                p4d.cluster.nccl_efficiency, 1},
        };
        for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
            if (!quantity_is_set(all[k].q) || !strstr(all[k].q.source, all[k].says))
                continue;
            assert_int_equal(all[k].fit.kind, QUANTITY_FITTED);
            assert_borrowed(
                all[k].q, paths.gl_pathv[i], all[k].what, all[k].fit.value * all[k].times);
            borrowed++;
        }
    }
    assert_int_equal(borrowed,
        12); /* of HGX B200 and B300 1 and 1 each, GB200 and GB300 2 each, p3dn 1, H800 3 */
    globfree(&paths);
    arena_release(&arena);
}

static void test_fsdp_paper_cluster(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct hw hw = load(&arena, CLUSTERS "a100-80gb-roce-2tb.yaml");
    assert_string_equal(hw.gpu.name, "A100-SXM4-80GB");
    assert_int_equal(hw_gpus_per_node(&hw), 8);
    /* arXiv 2304.11277: 2 Tb/s a node = 250 GB/s, and 512 GPUs */
    assert_near(hw.node.nics.value * hw.node.nic_bandwidth.value, 250e9, 1);
    assert_true(hw.cluster.nodes.value * hw.node.gpus.value >= 512);
    /* datasheet: 312 TFLOPS of bf16; no fp8 on Ampere */
    assert_near(hw.gpu.gemm[DTYPE_BF16].peak.value, 312e12, 1);
    assert_false(quantity_is_set(hw.gpu.gemm[DTYPE_FP8].peak));
    assert_int_equal(hw.gpu.sms.kind, QUANTITY_DATASHEET);
    arena_release(&arena);
}

static void test_print_shows_every_number_with_its_source(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct hw hw = load(&arena, CLUSTERS "h100-8x400g.yaml");
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    assert_non_null(out);
    hw_print(out, &hw, &(struct hw_sources){0});
    fclose(out);
    const char *const parts[] = {"oversubscription", "nccl_channels", "hbm_bandwidth",
        "gemm.bf16.efficiency", "gemm.fp8.peak", "450 GB/s", "datasheet", "measured", "assumed",
        "fitted", " +- ", hw.gpu.hbm_efficiency.source};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        assert_non_null(strstr(text, parts[i]));
    assert_null(strstr(text, "int8")); /* not given in the file */
    assert_null(strstr(text, "unset"));
    free(text);
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_clusters_load),
        cmocka_unit_test(test_what_is_borrowed_from_a_fit_is_what_the_fit_says),
        cmocka_unit_test(test_cards_of_one_silicon_share_what_training_showed),
        cmocka_unit_test(test_what_links_borrow_is_what_the_fit_says),
        cmocka_unit_test(test_fsdp_paper_cluster),
        cmocka_unit_test(test_print_shows_every_number_with_its_source),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
