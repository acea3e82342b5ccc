/* Files that are wrong: each mistake is reported with its file, and with what would be right. */
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

struct line {
    const char *key, *value;
};

/* The head, then the lines with their values sourced, then the tail. */
static const char *text_of(struct arena *arena, const char *head, const struct line *lines,
    size_t n_lines, const char *tail)
{
    char *text = arena_strdup(arena, head);
    for (size_t i = 0; i < n_lines; i++)
        text = arena_printf(arena, "%s%s: {value: %s, kind: assumed, source: test}\n", text,
            lines[i].key, lines[i].value);
    return arena_printf(arena, "%s%s", text, tail);
}

#define MEMORY_SMS "memory_sms: " SOURCED("5")
#define PEAK "gemm:\n  bf16:\n    peak: "
static const char bf16[] =
    PEAK SOURCED("900 TFLOPS") "    efficiency: " SOURCED("0.9") /* and the two others */
    "    k_overhead: " SOURCED("100") "    load_bandwidth: " SOURCED("9 TB/s");

/* A GPU with these lines for memory_sms and formats. */
static const char *gpu_text(struct arena *arena, const char *memory_sms, const char *formats)
{
    static const struct line lines[] = {{"sms", "10"}, {"hbm_capacity", "80 GB"},
        {"hbm_bandwidth", "1 TB/s"}, {"hbm_efficiency", "0.9"}, {"l2_capacity", "50 MB"},
        {"vector_flops", "60 TFLOPS"}, {"kernel_floor", "2 us"}, {"gemm_floor", "5 us"},
        {"attention_efficiency", "0.5"}, {"context_bytes", "500 MB"}, {"tdp", "700 W"}};
    const char *tail = arena_printf(arena, "%s%s", memory_sms, formats);
    return text_of(arena, "name: G\narch: Hopper\n", lines, sizeof lines / sizeof *lines, tail);
}

static const char *node_text(struct arena *arena, const char *nics)
{
    static const struct line lines[] = {{"gpus", "8"}, {"gpu_bandwidth", "450 GB/s"},
        {"nic_bandwidth", "400 Gb/s"}, {"pcie_bandwidth", "50 GB/s"}, {"nccl_efficiency", "0.8"},
        {"nccl_hop_latency", "3 us"}, {"nccl_base_latency", "8 us"}, {"nccl_channels", "24"},
        {"nccl_bytes", "1 GB"}};
    const char *tail = arena_printf(arena, "nics: %s", nics);
    return text_of(arena, "name: N\ngpu: gpu.yaml\nfabric: nvswitch\n", lines,
        sizeof lines / sizeof *lines, tail);
}

static const char *cluster_text(struct arena *arena, const char *nodes)
{
    static const struct line lines[] = {
        {"oversubscription", "1"}, {"nccl_efficiency", "0.9"}, {"nccl_net_latency", "2 us"}};
    const char *tail = arena_printf(arena, "nodes: %s", nodes);
    return text_of(arena, "name: C\nnode: node.yaml\n", lines, sizeof lines / sizeof *lines, tail);
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
static const char *load(struct folder *folder, const char *gpu, const char *node,
    const char *cluster, enum status expected)
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
    load(folder, gpu_text(arena, MEMORY_SMS, bf16), node_text(arena, SOURCED("8")),
        cluster_text(arena, SOURCED("4")), STATUS_OK);
    /* one node needs no NIC */
    load(folder, gpu_text(arena, MEMORY_SMS, bf16), node_text(arena, SOURCED("0")),
        cluster_text(arena, SOURCED("1")), STATUS_OK);
}

static void test_bad_gpu(void **state)
{
    struct folder *folder = *state;
    struct arena *arena = &folder->arena;
    const char *node = node_text(arena, SOURCED("8")), *cluster = cluster_text(arena, SOURCED("4"));
    expect(load(folder, gpu_text(arena, "memory_sms: " SOURCED("11"), bf16), node, cluster,
               STATUS_INPUT),
        "gpu.yaml:14:13: ", "memory_sms is 11 of 10 SMs");
    expect(load(folder, gpu_text(arena, MEMORY_SMS, "gemm: {}\n"), node, cluster, STATUS_INPUT),
        "gpu.yaml", "multiplies in no number format");
    expect(load(folder, gpu_text(arena, MEMORY_SMS, PEAK SOURCED("900 TFLOPS")), node, cluster,
               STATUS_INPUT),
        "gpu.yaml:17:11: ", "gemm.bf16 of 'G' is incomplete");
    expect(load(folder, gpu_text(arena, "", bf16), node, cluster, STATUS_INPUT), "gpu.yaml",
        "memory_sms");
    const char *good = gpu_text(arena, MEMORY_SMS, bf16), *sms = strstr(good, "10,");
    const char *half =
        arena_printf(arena, "%.*s10.5,%s", (int)(sms - good), good, sms + strlen("10,"));
    expect(load(folder, half, node, cluster, STATUS_INPUT),
        "gpu.yaml:3:6: ", "sms is 10.5; it counts things");
    char *wrong = arena_strdup(arena, gpu_text(arena, MEMORY_SMS, bf16));
    *strstr(wrong, "Hopper") = 'h';
    expect(load(folder, wrong, node, cluster, STATUS_INPUT),
        "gpu.yaml:2:7: ", "arch is 'hopper'; Volta, Turing");
    const char *idle = arena_printf(arena, MEMORY_SMS "power:\n  idle: %s", SOURCED("701 W"));
    expect(load(folder, gpu_text(arena, idle, bf16), node, cluster, STATUS_INPUT),
        "gpu.yaml:16:9: ", "power.idle is 701 W of a tdp of 700 W");
    /* 900 GFLOPS for 900 TFLOPS would pass; bytes for flops does not */
    expect(load(folder, gpu_text(arena, MEMORY_SMS, PEAK SOURCED("900 GB")), node, cluster,
               STATUS_INPUT),
        "gpu.yaml", "900 GB");
}

static void test_bad_node_and_cluster(void **state)
{
    struct folder *folder = *state;
    struct arena *arena = &folder->arena;
    const char *gpu = gpu_text(arena, MEMORY_SMS, bf16);
    expect(load(folder, gpu, node_text(arena, SOURCED("2.5")), cluster_text(arena, SOURCED("4")),
               STATUS_INPUT),
        "node.yaml:13:7: ", "nics is 2.5");
    expect(load(folder, gpu, node_text(arena, SOURCED("0")), cluster_text(arena, SOURCED("4")),
               STATUS_INPUT),
        "cluster.yaml:6:8: ", "4 nodes without a NIC");
    expect(load(folder, gpu, node_text(arena, SOURCED("8")), cluster_text(arena, SOURCED("1.5")),
               STATUS_INPUT),
        "cluster.yaml:6:8: ", "nodes is 1.5");
}

/* NVLink SHARP is the switch's: three numbers, and none of a mesh. */
static void test_bad_nvls(void **state)
{
    struct folder *folder = *state;
    struct arena *arena = &folder->arena;
    static const char all[] =
        SOURCED("8") "nvls_efficiency: " SOURCED("0.6") "nvls_latency: " SOURCED("9 us");
    const char *gpu = gpu_text(arena, MEMORY_SMS, bf16),
               *cluster = cluster_text(arena, SOURCED("4"));
    expect(load(folder, gpu, node_text(arena, all), cluster, STATUS_INPUT), "node.yaml",
        "belong together");
    const char *good =
        node_text(arena, arena_printf(arena, "%snvls_step_latency: %s", all, SOURCED("4 us")));
    load(folder, gpu, good, cluster, STATUS_OK);
    const char *fabric = strstr(good, "nvswitch");
    const char *mesh = arena_printf(
        arena, "%.*snvlink_mesh%s", (int)(fabric - good), good, fabric + strlen("nvswitch"));
    expect(load(folder, gpu, mesh, cluster, STATUS_INPUT), "node.yaml", "only a switch reduces");
}

/* A bridge joins two cards on PCIe. */
static void test_bad_bridge(void **state)
{
    struct folder *folder = *state;
    struct arena *arena = &folder->arena;
    const char *gpu = gpu_text(arena, MEMORY_SMS, bf16),
               *cluster = cluster_text(arena, SOURCED("4"));
    const char *bridged = node_text(arena, SOURCED("8") "nvlink_bridge: " SOURCED("300 GB/s"));
    expect(load(folder, gpu, bridged, cluster, STATUS_INPUT), "node.yaml",
        "whose NVLinks join all GPUs");
    const char *fabric = strstr(bridged, "nvswitch");
    const char *pcie = arena_printf(
        arena, "%.*spcie%s", (int)(fabric - bridged), bridged, fabric + strlen("nvswitch"));
    load(folder, gpu, pcie, cluster, STATUS_OK);
}

#define PORTS "  leaf_ports: " SOURCED("16")

static void test_bad_network(void **state)
{
    struct folder *folder = *state;
    struct arena *arena = &folder->arena;
    const char *gpu = gpu_text(arena, MEMORY_SMS, bf16), *node = node_text(arena, SOURCED("8"));
    const struct {
        const char *network, *says, *place; /* network: is line 7 */
    } cases[] = {
        {"network:\n  kind: fat_tree\n  spines: " SOURCED("4"), "a fat_tree needs leaf_ports",
            "8:9"},
        {"network:\n  kind: fat_tree\n" PORTS, "a fat_tree needs spines", "8:9"},
        {"network:\n  kind: fat_tree\n" PORTS "  spines: " SOURCED("4") "  cores: " SOURCED("2"),
            "without pod_leaves has no cores", "11:10"},
        {"network:\n  kind: fat_tree\n" PORTS
         "  spines: " SOURCED("4") "  pod_leaves: " SOURCED("2"),
            "with pod_leaves needs cores", "8:9"},
        {"network:\n  kind: fat_tree\n" PORTS "  spines: " SOURCED("2.5"), "network.spines is 2.5",
            "10:11"},
        {"network:\n  kind: dragonfly\n  routing: ecmp\n" PORTS
         "  pod_leaves: " SOURCED("4") "  global_cables: " SOURCED("2"),
            "a dragonfly with ecmp is not modelled", "9:12"},
        {"network:\n  kind: dragonfly\n" PORTS
         "  pod_leaves: " SOURCED("1") "  global_cables: " SOURCED("2"),
            "pod_leaves is 2 or more", "10:15"},
        {"network:\n  kind: torus\n", "torus", "8:9"},
        {"network:\n  wiring: rail\n", "kind", "8:3"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *cluster =
            arena_printf(arena, "%s%s", cluster_text(arena, SOURCED("4")), cases[i].network);
        expect(load(folder, gpu, node, cluster, STATUS_INPUT),
            arena_printf(arena, "cluster.yaml:%s: ", cases[i].place), cases[i].says);
    }
    const char *good = arena_printf(arena,
        "%snetwork:\n  kind: fat_tree\n  wiring: rail\n  routing: ecmp\n"
        "  ecmp_seed: 7\n" PORTS "  spines: %s",
        cluster_text(arena, SOURCED("4")), SOURCED("4"));
    load(folder, gpu, node, good, STATUS_OK);
}

static void test_missing_file(void **state)
{
    struct folder *folder = *state;
    struct hw hw;
    struct diag *diag = ARENA_NEW(&folder->arena, struct diag);
    const char *path =
        write_file(folder, "cluster.yaml", cluster_text(&folder->arena, SOURCED("4")));
    assert_int_not_equal(hw_load(&hw, path, &folder->arena, diag), STATUS_OK);
    expect(diag->text, "node.yaml", "error");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_good_files, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_bad_gpu, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_bad_node_and_cluster, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_bad_nvls, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_bad_bridge, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_bad_network, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_missing_file, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
