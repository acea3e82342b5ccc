/* Import of nodes: files as machines write them, files as nobody should, and the node that comes
 * out. */
#include "hw/override.h"
#include "foreign/topology.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "../near.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DATA FLOPCAST_SOURCE_DIR "/tests/import/data/topology/"
#define GPUS FLOPCAST_SOURCE_DIR "/topologies/gpus/"

static enum status read_text(
    struct topology_dump *dump, const char *text, size_t n, struct arena *arena, struct diag *diag)
{
    struct input *input = input_open_text("x", text, n);
    enum status status = topology_read(dump, input, arena, diag);
    input_close(input);
    assert_int_equal(status == STATUS_OK, diag->n_errors == 0);
    return status;
}

static void read_file(struct topology_dump *dump, const char *path, struct arena *arena)
{
    struct diag diag = DIAG_INIT;
    struct input *input = NULL;
    assert_int_equal(input_open(&input, path, &diag), STATUS_OK);
    topology_read(dump, input, arena, &diag);
    assert_string_equal(diag.text, "");
    input_close(input);
}

static struct hw_node node_of(
    const struct topology_dump *dump, const char *gpu_file, struct arena *arena)
{
    struct diag diag = DIAG_INIT;
    struct hw_gpu gpu;
    struct hw_node node = {0};
    const char *path = arena_printf(arena, GPUS "%s.yaml", gpu_file);
    hw_load_gpu(&gpu, path, arena, &diag);
    topology_node(
        &node, dump, "imported", path, &gpu, (struct source_pos){.file = path}, arena, &diag);
    assert_string_equal(diag.text, "");
    return node;
}

static void remarks_say(const struct topology_dump *dump, const char *const *texts)
{
    int n = 0;
    for (; texts[n]; n++)
        if (n >= dump->remarks.n || !strstr(dump->remarks.at[n], texts[n]))
            fail_msg("remark %d: '%s' is wanted", n, texts[n]);
    assert_int_equal(dump->remarks.n, n);
}

/* Whole files. Bandwidths by the rules of NCCL that import_topology.h states: H100 18 x 20.6 GB/s,
 * PCI generation 5 16 x 240 / 80, NIC 400,000 Mb/s / 8000; A100 12 x 20, 16 x 120 / 80, 200,000 /
 * 8000; V100 6 x 20, 16 x 60 / 80; the A40 in slots of 8 lanes 8 x 120 / 80. */
static void whole_files(void **state)
{
    static const struct {
        const char *file, *gpu;
        bool certain;
        int gpus, fabric, nics;
        double gpu_GBps, pcie_GBps, nic_GBps;
        enum quantity_kind nic_kind;
        const char *remarks[4];
    } cases[] = {
        {"h100.xml", "h100-sxm5-80gb", true, 8, HW_NVSWITCH, 8, 370.8, 48, 50, QUANTITY_DATASHEET,
            {"Slower NICs are left out: 2, as mlx5_8 with 200 Gb/s",
                "less of the PCI link of a NIC"}},
        {"a100.xml", "a100-sxm4-80gb", true, 8, HW_NVSWITCH, 8, 240, 24, 25, QUANTITY_DATASHEET,
            {"less of the PCI link of a NIC"}},
        {"dgx-1v.xml", "v100-sxm2-32gb", false, 8, HW_NVLINK_MESH, 4, 120, 12, 12.5,
            QUANTITY_DATASHEET, {"less of the PCI link of a NIC"}},
        {"pcie.xml", NULL, false, 4, HW_PCIE, 1, 12, 12, 1.25, QUANTITY_DATASHEET,
            {"under several CPUs"}},
        {"h100.txt", "h100-sxm5-80gb", false, 8, HW_NVSWITCH, 8, 370.8, 48, 50, QUANTITY_ASSUMED,
            {"are left out: 2, as NIC8"}},
        {"dgx-1v.txt", "v100-sxm2-32gb", false, 8, HW_NVLINK_MESH, 4, 120, 12, 12.5,
            QUANTITY_ASSUMED, {NULL}},
        {"pcie.txt", NULL, false, 4, HW_PCIE, 0, 24, 24, 25, QUANTITY_ASSUMED, {NULL}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct arena arena = ARENA_INIT;
        struct topology_dump dump;
        bool certain = true;
        read_file(&dump, arena_printf(&arena, DATA "%s", cases[i].file), &arena);
        remarks_say(&dump, cases[i].remarks);
        const char *gpu = topology_gpu(&dump, &certain);
        assert_int_equal(certain, cases[i].certain);
        assert_int_equal(gpu != NULL, cases[i].gpu != NULL);
        if (gpu)
            assert_string_equal(gpu, cases[i].gpu);
        struct hw_node node = node_of(&dump, gpu ? gpu : "a100-sxm4-80gb", &arena);
        assert_near(node.gpus.value, cases[i].gpus, 0);
        assert_int_equal(node.fabric, cases[i].fabric);
        assert_near(node.nics.value, cases[i].nics, 0);
        assert_near(node.gpu_bandwidth.value, cases[i].gpu_GBps * 1e9, 1);
        assert_near(node.pcie_bandwidth.value, cases[i].pcie_GBps * 1e9, 1);
        assert_near(node.nic_bandwidth.value, cases[i].nic_GBps * 1e9, 1);
        assert_int_equal(node.nic_bandwidth.kind, cases[i].nic_kind);
        vec_free(&dump.remarks);
        arena_release(&arena);
    }
}

/* What is written loads to the same node. */
static void written_and_read(void **state)
{
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    struct topology_dump dump;
    char path[] = "node.XXXXXX";
    (void)state;
    read_file(&dump, DATA "pcie.xml", &arena);
    struct hw_node node = node_of(&dump, "a100-sxm4-80gb", &arena), back;
    node.name = "a \"name\"\nof two: lines # and more";
    node.nccl_hop_latency = (struct quantity){1.0 / 3e5, 1e-7, QUANTITY_FITTED, "made up", NULL};
    FILE *out = fdopen(mkstemp(path), "w");
    hw_write_node(out, &node);
    fclose(out);
    struct hw_source source;
    assert_int_equal(hw_load_node_from(&back, &source, path, &arena, &diag), STATUS_OK);
    vec_free(&source.keys.list);
    unlink(path);
    assert_string_equal(back.name, node.name);
    assert_string_equal(back.gpu_path, node.gpu_path);
    assert_int_equal(back.fabric, HW_PCIE);
    assert_false(quantity_is_set(back.host_memory));
    assert_near(back.nccl_hop_latency.value, 1.0 / 3e5, 1e-17);
    assert_near(back.nccl_hop_latency.std_error, 1e-7, 1e-17);
    assert_int_equal(back.nccl_hop_latency.kind, QUANTITY_FITTED);
    assert_near(back.gpu_bandwidth.value, 12e9, 1);
    assert_string_equal(back.gpu_bandwidth.source, node.gpu_bandwidth.source);
    vec_free(&dump.remarks);
    arena_release(&arena);
}

#define PCI(inside)                                                                                \
    "<pci busid='0' class='0x030200' link_speed='16.0 GT/s PCIe' link_width='16'>" inside "</pci>"
#define SYSTEM(inside) "<system version='1'><cpu>\n" inside "\n</cpu></system>"
#define GPU PCI("<gpu dev='0' sm='80'/>")
#define BOMB                                                                                       \
    "<?xml version='1.0'?>\n<!DOCTYPE system [<!ENTITY a 'aaaaaaaa'><!ENTITY b "                   \
    "'&a;&a;&a;&a;'><!ENTITY c "                                                                   \
    "'&b;&b;&b;&b;'>]>\n" SYSTEM("<x y='&c;'/>")

/* Line and column are expat's: where the tag begins, of a document type declaration its bracket. */
static void broken_xml(void **state)
{
    static const struct {
        const char *text, *expected;
    } cases[] = {
        {"<system version='1'>\n <cpu>", "x:2:7: error: no XML: no element found"},
        {"<system version='1'>\n <cpu></system>", "x:2:9: error: no XML: mismatched tag"},
        {"<\x01\xff", "x:1:2: error: no XML: not well-formed"},
        {"<html/>", "x:1:1: error: the root is 'html'; NCCL writes 'system'"},
        {"<system version='2'/>", "x:1:1: error: version 2; only 1 is known"},
        {"<system version='2'><pci busid='0'><gpu gcn='gfx942' sm='304'/></pci></system>",
            "x:1:36: error: a GPU of AMD's (gfx942), as RCCL writes it; nodes of Volta to "
            "Blackwell are made of such files: copy topologies/nodes/8x-mi300x.yaml"},
        {SYSTEM(""), "x: error: no gpu in it"},
        {SYSTEM("  <gpu sm='80'/>"), "x:2:3: error: a gpu that is in no pci element"},
        {SYSTEM(PCI("<gpu/>")), "a gpu without sm"},
        {SYSTEM(PCI("<gpu sm='ninety'/>")),
            "sm is 'ninety'; a whole number from 10 to 999 is wanted"},
        {SYSTEM(PCI("<gpu sm='80'><nvlink target='1'/></gpu>")),
            "an nvlink without target or count"},
        {SYSTEM(PCI("<gpu sm='80'><nvlink target='1' count=''/></gpu>")),
            "an nvlink without target or count"},
        {SYSTEM(PCI("<gpu sm='80'><nvlink target='' count='1'/></gpu>")),
            "an nvlink without target or count"},
        {SYSTEM(PCI("<gpu sm='80'><nvlink target='0' count='1'/></gpu>")),
            "an nvlink from a gpu to itself"},
        {SYSTEM(PCI("<gpu sm=''/>")), "a gpu without sm"},
        {SYSTEM(GPU GPU), "a second gpu at busid '0'; one machine a file"},
        {SYSTEM("<pci busid=''/>"), "a pci element without busid"},
        {SYSTEM(PCI("<gpu sm='80'><nvlink target='1' count='19'/></gpu>")), "count is '19'"},
        {SYSTEM(PCI(
             "<gpu sm='80'><nvlink target='1' count='9'/><nvlink target='2' count='10'/></gpu>")),
            "more than 18 NVLinks of one GPU"},
        {SYSTEM("<nvlink target='1' count='1'/>"), "an nvlink that is in no gpu"},
        {SYSTEM("<pci link_width='16'/>"), "a pci element without busid"},
        {SYSTEM("<pci busid='0' link_width='-1'/>"), "link_width is '-1'"},
        {SYSTEM(GPU "<nic><net speed='1e5'/></nic>"), "speed is '1e5'"},
        {SYSTEM(GPU "<nic><net speed='100'/></nic>"), "a NIC of 100 Mb/s"},
        {BOMB, "x:2:18: error: a document type declaration"},
        {"<!DOCTYPE s SYSTEM 'file:///etc/passwd'><system/>", "a document type declaration"},
        {SYSTEM(GPU "&undefined;"), "no XML: undefined entity"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct arena arena = ARENA_INIT;
        struct diag diag = DIAG_INIT;
        struct topology_dump dump;
        assert_int_equal(
            read_text(&dump, cases[i].text, strlen(cases[i].text), &arena, &diag), STATUS_INPUT);
        if (!strstr(diag.text, cases[i].expected))
            fail_msg("'%s' is not in: %s", cases[i].expected, diag.text);
        vec_free(&dump.remarks);
        arena_release(&arena);
    }
}

static void refused(const char *text, size_t n, const char *expected)
{
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    struct topology_dump dump;
    assert_int_equal(read_text(&dump, text, n, &arena, &diag), STATUS_INPUT);
    if (!strstr(diag.text, expected))
        fail_msg("'%s' is not in: %s", expected, diag.text);
    assert_int_equal(diag.n_errors, 1);
    vec_free(&dump.remarks);
    arena_release(&arena);
}

/* Sizes that a dump of NCCL never has. */
static void huge_xml(void **state)
{
    static const size_t huge = (size_t)TOPOLOGY_MAX_BYTES + 100;
    char *text = malloc(huge);
    int depth = TOPOLOGY_MAX_DEPTH, n = 0;
    (void)state;
    assert_non_null(text);
    memset(text, 'a', huge);
    text[sprintf(text, "<system x='")] = 'a';
    refused(text, huge, "more than 16 MiB");
    text[2000] = '\'';
    refused(text, 2001, "unclosed token");
    sprintf(text + 2000, "'/>");
    refused(text, 2003, "x:1:1: error: an attribute of more than 1024 bytes");
    n = sprintf(text, "<system>\n");
    for (int i = 1; i < depth; i++)
        n += sprintf(text + n, "<pci busid='%d'>", i);
    refused(text, (size_t)n, "no element found"); /* as deep as allowed, but cut */
    n += sprintf(text + n, "\n<pci busid='x'>");
    refused(text, (size_t)n, "x:3:1: error: nested more than 64 levels deep");
    free(text);
}

/* Three mistakes, three messages. */
static void all_mistakes(void **state)
{
    static const char text[] =
        SYSTEM(PCI("<gpu sm='x'/>") "\n<pci busid='1'><gpu/></pci>\n<nvlink/>");
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    struct topology_dump dump;
    (void)state;
    assert_int_equal(read_text(&dump, text, strlen(text), &arena, &diag), STATUS_INPUT);
    assert_int_equal(diag.n_errors, 3);
    vec_free(&dump.remarks);
    arena_release(&arena);
}

#define HEAD "\tGPU0\tGPU1\tNIC0\tCPU Affinity\n"
#define ROW0 "GPU0\t X \tNV12\tPIX\t0-7\n"
#define ROW1 "GPU1\tNV12\t X \tSYS\t0-7\n"

static void broken_matrix(void **state)
{
    static const struct {
        const char *text, *expected;
    } cases[] = {
        {"", "x: error: neither XML"},
        {"hello\nGPU0 is fine\n", "no row of GPU0"}, /* "is" and "fine" pass for NICs */
        {HEAD, "x:1:1: error: no row of GPU0"},
        {HEAD ROW0, "no row of GPU1"},
        {HEAD ROW0 ROW1 ROW0, "x:4:1: error: GPU0 a second time"},
        {HEAD ROW0 "GPU1\tNV12\t X \n", "x:3:1: error: GPU1 has 2 cells of 3"},
        {HEAD ROW0 "GPU1\tNV12\tPIX\tSYS\t0-7\n", "GPU1: X is wanted below its own column"},
        {HEAD ROW0 "GPU1\tX\tX\tSYS\t0-7\n",
            "GPU1: X is wanted below its own column, and below no other"},
        {HEAD ROW0 "GPU1\tNV4\t X \tSYS\t0-7\n",
            "GPU0 and GPU1 do not agree on their NVLinks: 12 and 4"},
        {HEAD ROW0 "GPU2\tNV4\t X \tSYS\t0-7\n", "a row of GPU2, which has no column"},
        {HEAD "GPU0\t X \tNV19\tPIX\t0-7\n", "a GPU has at most 18 NVLinks"},
        {"GPU0 GPU2\n", "the columns must be GPU0, GPU1, ... in order"},
        {"GPU0 NIC0 GPU1\n", "the columns must be GPU0, GPU1, ... in order"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        refused(cases[i].text, strlen(cases[i].text), cases[i].expected);
    refused(HEAD "\0", sizeof HEAD, "a NUL byte");
}

/* Links of a GPU by the matrix alone: cells are summed in a mesh, and a sum beyond 18 means a
 * switch. */
static void links_of_a_matrix(void **state)
{
    static const struct {
        const char *text;
        int fabric, links, nics;
    } cases[] = {
        {HEAD ROW0 ROW1, HW_NVLINK_MESH, 12, 1},
        {"GPU0 CPU Affinity\nGPU0 X 0-7\n", HW_PCIE, 0, 0}, /* one GPU: no peers */
        /* HGX A100 of four GPUs: 3 peers x 4 links */
        {"GPU0 GPU1 GPU2 GPU3\nGPU0 X NV4 NV4 NV4\nGPU1 NV4 X NV4 NV4\nGPU2 NV4 NV4 X NV4\nGPU3 "
         "NV4 NV4 NV4 X\n",
            HW_NVLINK_MESH, 12, 0},
        /* three of eight A100 on NVSwitch: 2 x 12 is more than a GPU has */
        {"GPU0 GPU1 GPU2\nGPU0 X NV12 NV12\nGPU1 NV12 X NV12\nGPU2 NV12 NV12 X\n", HW_NVSWITCH, 12,
            0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct arena arena = ARENA_INIT;
        struct diag diag = DIAG_INIT;
        struct topology_dump dump;
        read_text(&dump, cases[i].text, strlen(cases[i].text), &arena, &diag);
        assert_string_equal(diag.text, "");
        assert_int_equal(dump.fabric, cases[i].fabric);
        assert_int_equal(dump.links, cases[i].links);
        assert_int_equal(dump.nics, cases[i].nics);
        vec_free(&dump.remarks);
        arena_release(&arena);
    }
}

#define PAIRS "GPU0 GPU1 GPU2 GPU3\n"
/* Bridges join pairs of PCIe cards; neighbours of the node in any case. */
static void bridges_of_a_matrix(void **state)
{
    static const struct {
        const char *text, *remark;
    } cases[] = {
        {PAIRS
            "GPU0 X NV12 SYS SYS\nGPU1 NV12 X SYS SYS\nGPU2 SYS SYS X NV12\nGPU3 SYS SYS NV12 X\n",
            NULL},
        {PAIRS
            "GPU0 X SYS NV12 SYS\nGPU1 SYS X SYS NV12\nGPU2 NV12 SYS X SYS\nGPU3 SYS NV12 SYS X\n",
            "start jobs with CUDA_VISIBLE_DEVICES=0,2,1,3"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct arena arena = ARENA_INIT;
        struct diag diag = DIAG_INIT;
        struct topology_dump dump;
        assert_int_equal(
            read_text(&dump, cases[i].text, strlen(cases[i].text), &arena, &diag), STATUS_OK);
        const char *const remarks[] = {cases[i].remark, NULL};
        remarks_say(&dump, remarks);
        struct hw_node node = node_of(&dump, "a100-pcie-80gb", &arena);
        assert_int_equal(node.fabric, HW_PCIE);
        assert_near(node.nvlink_bridge.value, 12 * 25e9, 1); /* as datasheets have it */
        assert_near(node.gpu_bandwidth.value, 24e9, 1);
        vec_free(&dump.remarks);
        arena_release(&arena);
    }
}

/* Some of the GPUs, a pair with fewer links, or a mesh of some: what no node describes is not
 * dropped. */
static void other_links_are_refused(void **state)
{
    static const char *const texts[] = {
        "GPU0 GPU1 GPU2\nGPU0 X NV4 SYS\nGPU1 NV4 X SYS\nGPU2 SYS SYS X\n",
        PAIRS "GPU0 X NV12 SYS SYS\nGPU1 NV12 X SYS SYS\nGPU2 SYS SYS X NV4\nGPU3 SYS SYS NV4 X\n",
        PAIRS "GPU0 X NV4 NV4 SYS\nGPU1 NV4 X NV4 SYS\nGPU2 NV4 NV4 X SYS\nGPU3 SYS SYS SYS X\n",
    };
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        refused(texts[i], strlen(texts[i]), "x:1:1: error: NVLinks join GPU");
}

/* A link that one end knows nothing of joins nothing. */
static void one_sided_link(void **state)
{
    static const char text[] =
        SYSTEM("<pci busid='0'><gpu sm='80'><nvlink target='1' count='4'/></gpu></pci>"
               "<pci busid='1'><gpu sm='80'/></pci>");
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    struct topology_dump dump;
    (void)state;
    assert_int_equal(read_text(&dump, text, strlen(text), &arena, &diag), STATUS_OK);
    assert_int_equal(dump.fabric, HW_PCIE);
    assert_int_equal(dump.links, 0);
    vec_free(&dump.remarks);
    arena_release(&arena);
}

static void gpu_that_does_not_fit(void **state)
{
    static const struct {
        const char *file, *gpu, *expected;
    } cases[] = {
        {"h100.xml", "a100-sxm4-80gb", "the GPUs of the dump have compute capability 9.0"},
        {"h100.txt", "a100-sxm4-80gb", "has at most 12 NVLinks, but the GPUs of the dump have 18"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct arena arena = ARENA_INIT;
        struct diag diag = DIAG_INIT;
        struct topology_dump dump;
        struct hw_gpu gpu;
        struct hw_node node;
        read_file(&dump, arena_printf(&arena, DATA "%s", cases[i].file), &arena);
        hw_load_gpu(&gpu, arena_printf(&arena, GPUS "%s.yaml", cases[i].gpu), &arena, &diag);
        assert_int_equal(topology_node(&node, &dump, "n", "g", &gpu,
                             (struct source_pos){.file = "g"}, &arena, &diag),
            STATUS_INPUT);
        if (!strstr(diag.text, cases[i].expected))
            fail_msg("'%s' is not in: %s", cases[i].expected, diag.text);
        vec_free(&dump.remarks);
        arena_release(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(whole_files),
        cmocka_unit_test(written_and_read), cmocka_unit_test(broken_xml),
        cmocka_unit_test(huge_xml), cmocka_unit_test(all_mistakes), cmocka_unit_test(broken_matrix),
        cmocka_unit_test(links_of_a_matrix), cmocka_unit_test(one_sided_link),
        cmocka_unit_test(bridges_of_a_matrix), cmocka_unit_test(other_links_are_refused),
        cmocka_unit_test(gpu_that_does_not_fit)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
