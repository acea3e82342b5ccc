/* Files that are wrong: each mistake is told with its file, and with what would be right. */
#include "hw/hw.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct folder {
    struct arena arena;
    char *path;
};

static int set_up(void **state)
{
    struct folder *folder = xcalloc(1, sizeof *folder);
    char name[] = "/tmp/flopcast-hw-XXXXXX";
    assert_non_null(mkdtemp(name));
    folder->path = arena_strdup(&folder->arena, name);
    *state = folder;
    return 0;
}

static int tear_down(void **state)
{
    struct folder *folder = *state;
    static const char *const files[] = {"gpu.yaml", "node.yaml", "cluster.yaml"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        unlink(arena_printf(&folder->arena, "%s/%s", folder->path, files[i]));
    rmdir(folder->path);
    arena_release(&folder->arena);
    free(folder);
    return 0;
}

#define SOURCED(value) "{value: " value ", kind: assumed, source: test}\n"

/* A GPU, with lines put in place of its memory_sms and its formats. */
static const char *gpu_text(struct arena *arena, const char *memory_sms, const char *formats)
{
    return arena_printf(arena,
        "name: G\narch: Hopper\nsms: " SOURCED("10") "hbm_capacity: " SOURCED("80 GB") "hbm_bandwidth: " SOURCED(
            "1 "
            "TB/s") "hbm_efficiency: " SOURCED("0.9") "l2_capacity: " SOURCED("50 MB") "vector_flops: " SOURCED("60 "
                                                                                                                "TFLOP"
                                                                                                                "S") "k"
                                                                                                                     "e"
                                                                                                                     "r"
                                                                                                                     "n"
                                                                                                                     "e"
                                                                                                                     "l"
                                                                                                                     "_"
                                                                                                                     "f"
                                                                                                                     "l"
                                                                                                                     "o"
                                                                                                                     "o"
                                                                                                                     "r"
                                                                                                                     ":"
                                                                                                                     " " SOURCED("2 us") "gemm_floor: " SOURCED("5 us") "attention_efficiency:"
                                                                                                                                                                        " " SOURCED(
                                                                                                                                                                            "0.5") "context_"
                                                                                                                                                                                   "bytes:"
                                                                                                                                                                                   " " SOURCED("500 MB") "tdp: " SOURCED(
                                                                                                                                                                                       "700 W") "%s%s",
        memory_sms, formats);
}
#define MEMORY_SMS "memory_sms: " SOURCED("5")
#define BF16                                                                                                           \
    "gemm:\n  bf16:\n    peak: " SOURCED("900 TFLOPS") "    efficiency: " SOURCED("0.9") "    k_overhead: " SOURCED(   \
        "100") "    load_bandwidth: " SOURCED("9 TB/s")

static const char *node_text(struct arena *arena, const char *nics)
{
    return arena_printf(arena,
        "name: N\ngpu: gpu.yaml\nfabric: nvswitch\ngpus: " SOURCED("8") "gpu_bandwidth: " SOURCED(
            "450 GB/s") "nics: %s"
                        "nic_bandwidth: " SOURCED("400 Gb/s") "pcie_bandwidth: " SOURCED(
                            "50 GB/s") "nccl_efficiency:"
                                       " " SOURCED("0.8") "nccl_hop_latency: " SOURCED(
                                           "3 us") "nccl_base_latency: " SOURCED("8 us") "nccl_"
                                                                                         "channe"
                                                                                         "ls:"
                                                                                         " " SOURCED("24") "nccl_bytes:"
                                                                                                           " " SOURCED(
                                                                                                               "1 GB"),
        nics);
}

static const char *cluster_text(struct arena *arena, const char *nodes)
{
    return arena_printf(arena,
        "name: C\nnode: node.yaml\nnodes: %soversubscription: " SOURCED("1") "nccl_efficiency: " SOURCED(
            "0.9") "nccl_hop_latency: " SOURCED("20 us"),
        nodes);
}

static const char *write_file(struct folder *folder, const char *name, const char *text)
{
    const char *path = arena_printf(&folder->arena, "%s/%s", folder->path, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    return path;
}

/* Load a cluster of these three files; the messages. */
static const char *load(
    struct folder *folder, const char *gpu, const char *node, const char *cluster, enum status expected)
{
    struct hw hw;
    struct diag *diag = ARENA_NEW(&folder->arena, struct diag);
    write_file(folder, "gpu.yaml", gpu);
    write_file(folder, "node.yaml", node);
    const char *path = write_file(folder, "cluster.yaml", cluster);
    assert_int_equal(hw_load(&hw, path, &folder->arena, diag), expected);
    return diag->text;
}

static void expect(const char *text, const char *file, const char *part)
{
    if (!strstr(text, file) || !strstr(text, part))
        fail_msg("'%s' does not name %s and say: %s", text, file, part);
}

static void test_good_files(void **state)
{
    struct folder *folder = *state;
    struct arena *arena = &folder->arena;
    load(folder, gpu_text(arena, MEMORY_SMS, BF16), node_text(arena, SOURCED("8")), cluster_text(arena, SOURCED("4")),
        STATUS_OK);
    /* one node needs no NIC */
    load(folder, gpu_text(arena, MEMORY_SMS, BF16), node_text(arena, SOURCED("0")), cluster_text(arena, SOURCED("1")),
        STATUS_OK);
}

static void test_bad_gpu(void **state)
{
    struct folder *folder = *state;
    struct arena *arena = &folder->arena;
    const char *node = node_text(arena, SOURCED("8")), *cluster = cluster_text(arena, SOURCED("4"));
    expect(load(folder, gpu_text(arena, "memory_sms: " SOURCED("11"), BF16), node, cluster, STATUS_INPUT), "gpu.yaml",
        "memory_sms is 11 of 10 SMs");
    expect(load(folder, gpu_text(arena, MEMORY_SMS, "gemm: {}\n"), node, cluster, STATUS_INPUT), "gpu.yaml",
        "multiplies in no number format");
    expect(load(folder, gpu_text(arena, MEMORY_SMS, "gemm:\n  bf16:\n    peak: " SOURCED("900 TFLOPS")), node, cluster,
               STATUS_INPUT),
        "gpu.yaml", "gemm.bf16 of 'G' is incomplete");
    expect(load(folder, gpu_text(arena, "", BF16), node, cluster, STATUS_INPUT), "gpu.yaml", "memory_sms");
    /* 900 GFLOPS for 900 TFLOPS would pass; bytes for flops does not */
    expect(load(folder, gpu_text(arena, MEMORY_SMS, "gemm:\n  bf16:\n    peak: " SOURCED("900 GB")), node, cluster,
               STATUS_INPUT),
        "gpu.yaml", "900 GB");
}

static void test_bad_node_and_cluster(void **state)
{
    struct folder *folder = *state;
    struct arena *arena = &folder->arena;
    const char *gpu = gpu_text(arena, MEMORY_SMS, BF16);
    expect(load(folder, gpu, node_text(arena, SOURCED("2.5")), cluster_text(arena, SOURCED("4")), STATUS_INPUT),
        "node.yaml", "nics is 2.5");
    expect(load(folder, gpu, node_text(arena, SOURCED("0")), cluster_text(arena, SOURCED("4")), STATUS_INPUT),
        "cluster.yaml", "4 nodes without a NIC");
    expect(load(folder, gpu, node_text(arena, SOURCED("8")), cluster_text(arena, SOURCED("1.5")), STATUS_INPUT),
        "cluster.yaml", "nodes is 1.5");
}

static void test_missing_file(void **state)
{
    struct folder *folder = *state;
    struct hw hw;
    struct diag *diag = ARENA_NEW(&folder->arena, struct diag);
    const char *path = write_file(folder, "cluster.yaml", cluster_text(&folder->arena, SOURCED("4")));
    assert_int_not_equal(hw_load(&hw, path, &folder->arena, diag), STATUS_OK);
    expect(diag->text, "node.yaml", "error");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_good_files, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_bad_gpu, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_bad_node_and_cluster, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_missing_file, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
