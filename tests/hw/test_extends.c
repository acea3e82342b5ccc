/* Files that extend others: `extends: other.yaml`, and what differs. */
#include "hw/override.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "read_all.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TOPOLOGIES FLOPCAST_SOURCE_DIR "/topologies/"
#define H100 TOPOLOGIES "gpus/h100-sxm5-80gb.yaml"
#define SOURCED(value) "{value: " value ", kind: assumed, source: test}\n"

static int enter(void **state)
{
    (void)state;
    char folder[] = "/tmp/flopcast-extends-XXXXXX";
    return !mkdtemp(folder) || chdir(folder) != 0 ? -1 : 0;
}

static int leave(void **state)
{
    (void)state;
    char *folder = getcwd(NULL, 0), *command = NULL;
    int failed =
        chdir("/") != 0 || asprintf(&command, "rm -r '%s'", folder) < 0 || system(command) != 0;
    free(command);
    free(folder);
    return failed;
}

static void put(const char *path, const char *text)
{
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    fputs(text, out);
    assert_int_equal(fclose(out), 0);
}

struct card {
    struct hw_gpu gpu;
    struct hw_source source;
    struct arena arena;
    struct diag diag;
};

static struct card *load(const char *path)
{
    struct card *card = xcalloc(1, sizeof *card);
    hw_load_gpu_from(&card->gpu, &card->source, path, &card->arena, &card->diag);
    return card;
}

static void release(struct card *card)
{
    vec_free(&card->source.keys.list);
    arena_release(&card->arena);
    free(card);
}

/* All that the file does not say is the other's, number by number, also inside a section. */
static void what_differs_is_enough(void **state)
{
    (void)state;
    put("mine.yaml", "extends: " H100 "\nname: Mine\nhbm_capacity: " SOURCED(
                         "96 GB") "gemm:\n  bf16:\n    efficiency: " SOURCED("0.5"));
    put("mine2.yaml", "extends: mine.yaml\ntdp: " SOURCED("500 W"));
    struct card *h100 = load(H100), *mine = load("mine.yaml"), *mine2 = load("mine2.yaml");
    assert_string_equal(mine->diag.text, "");
    assert_string_equal(mine2->diag.text, "");
    assert_string_equal(mine->gpu.extends, H100);
    assert_null(h100->gpu.extends);
    assert_string_equal(mine2->gpu.name, "Mine");
    assert_true(mine2->gpu.hbm_capacity.value == 96e9);
    assert_true(mine2->gpu.gemm[DTYPE_BF16].efficiency.value == 0.5);
    assert_true(mine2->gpu.tdp.value == 500);
    assert_true(mine->gpu.tdp.value == 700); /* NVIDIA's datasheet, in the file */
    assert_true(mine2->gpu.gemm[DTYPE_BF16].peak.value == h100->gpu.gemm[DTYPE_BF16].peak.value);
    assert_string_equal(
        mine2->gpu.gemm[DTYPE_FP8].efficiency.source, h100->gpu.gemm[DTYPE_FP8].efficiency.source);
    assert_string_equal(mine2->gpu.arch, "Hopper");
    release(h100);
    release(mine);
    release(mine2);
}

/* Of a cluster each of the three files may extend another; an own name of the node is the own
 * node's. */
static void a_cluster_of_extended_files(void **state)
{
    (void)state;
    put("gpu.yaml",
        "extends: topologies/gpus/h100-sxm5-80gb.yaml\nname: G\n"); /* a name that flopcast files
                                                                       lists */
    put("node.yaml", "extends: topologies/nodes/dgx-h100-like.yaml\nname: N\ngpu: "
                     "gpu.yaml\nnic_bandwidth: " SOURCED("800 Gb/s"));
    put("cluster.yaml",
        "extends: topologies/clusters/h100-8x400g-rail.yaml\nname: C\nnode: node.yaml\n"
        "network:\n  spines: " SOURCED("8"));
    struct hw hw;
    struct hw_sources sources;
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    assert_int_equal(hw_load_from(&hw, &sources, "cluster.yaml", &arena, &diag), STATUS_OK);
    assert_string_equal(diag.text, "");
    assert_string_equal(hw.cluster.name, "C");
    assert_string_equal(hw.node.name, "N");
    assert_string_equal(hw.gpu.name, "G");
    assert_true(hw.node.nic_bandwidth.value == 100e9);
    assert_true(hw.cluster.network.spines.value == 8);
    assert_true(hw.cluster.network.leaf_ports.value == 32); /* the other's */
    assert_int_equal(hw.cluster.network.wiring, HW_RAIL);
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    hw_print(out, &hw, &sources);
    fclose(out);
    static const char *const parts[] = {"cluster C, extends ",
        "/topologies/clusters/h100-8x400g-rail.yaml\n", "test  [cluster.yaml:5]\n",
        "test  [node.yaml:4]\n", "/topologies/gpus/h100-sxm5-80gb.yaml:", "node N, extends ",
        "gpu G (Hopper, GH100), extends "};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (!strstr(text, parts[i]))
            fail_msg("no '%s' in %s", parts[i], text);
    free(text);
    hw_sources_free(&sources);
    arena_release(&arena);
}

static void mistakes_are_reported_in_their_file(void **state)
{
    (void)state;
    put("base.yaml", "extends: " H100 "\nname: B\n\n\nmemory_sms: " SOURCED("100"));
    put("fragment.yaml", "name: F\narch: Hopper\ngemm: {bf16: {peak: {value: 1 PFLOPS, kind: "
                         "assumed, source: test}}}\n");
    put("circle.yaml", "name: X\nextends: circle2.yaml\n");
    put("circle2.yaml", "name: Y\nextends: circle.yaml\n");
    put("wrong.yaml", "extends: " H100 "\nsms: 5\n");
    static const struct {
        const char *text, *expected;
        int messages;
    } cases[] = {
        {"extends: nowhere.yaml\n",
            "x.yaml:1:10: error: cannot open 'nowhere.yaml': No such file or directory", 1},
        {"name: X\nextends: x.yaml\n", "x.yaml:2:10: error: 'extends' leads back to 'x.yaml'", 1},
        {"name: X\nextends: circle.yaml\n",
            "circle2.yaml:2:10: error: 'extends' leads back to 'circle.yaml'", 1},
        {"extends: wrong.yaml\n",
            "wrong.yaml:2:6: error: 'sms' is a single value; a mapping {value: 5, kind", 1},
        {"extends: base.yaml\nsms: " SOURCED("50"),
            "base.yaml:5:13: error: memory_sms is 100 of 50 SMs", 1},
        {"extends: base.yaml\nmemory_sms: " SOURCED("200"),
            "x.yaml:2:13: error: memory_sms is 200 of 132 SMs", 1},
        {"extends: base.yaml\nhbm_capcity: " SOURCED("9 GB"),
            "x.yaml:2:1: error: unknown key 'hbm_capcity' in a GPU; "
            "did you mean 'hbm_capacity'?",
            1},
        {"extends: base.yaml\nhbm_capacity: " SOURCED("9 Gb"),
            "x.yaml:2:23: error: '9 Gb' is not a size", 1},
        {"extends: fragment.yaml\n",
            "x.yaml:1:1: error: a GPU needs the key 'sms' (Streaming multiprocessors.)", 12},
        {"extends: 5\n", "x.yaml:1:10: error: cannot open '5'", 1},
        {"extends: [a]\n", "x.yaml:1:10: error: 'extends' is a list; a path is wanted", 1},
        {"extends: ''\n", "x.yaml:1:10: error: '' is not a path", 1},
        {"extends: " TOPOLOGIES "nodes/dgx-h100-like.yaml\n", "this does not look like a GPU", 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put("x.yaml", cases[i].text);
        struct card *card = load("x.yaml");
        if (!strstr(card->diag.text, cases[i].expected) || card->diag.n_errors != cases[i].messages)
            fail_msg("%s: %d messages: %s", cases[i].text, card->diag.n_errors, card->diag.text);
        release(card);
    }
}

/* What a fit finds goes into the file that extends, and reads back; the other file stays out of it.
 */
static void a_fit_is_written_into_the_file_that_extends(void **state)
{
    (void)state;
    static const char before[] = "# mine\nextends: " H100 "\nname: Mine\n";
    put("mine.yaml", before);
    struct card *mine = load("mine.yaml");
    struct hw_gpu now = mine->gpu;
    now.gemm[DTYPE_BF16].efficiency =
        (struct quantity){0.7654, 0.012, QUANTITY_FITTED, "own run", NULL};
    now.gemm[DTYPE_BF16].k_overhead = (struct quantity){150, 2, QUANTITY_FITTED, "own run", NULL};
    now.hbm_efficiency = (struct quantity){0.9, 0, QUANTITY_MEASURED, "own run", NULL};
    FILE *out = fopen("fitted.yaml", "w");
    struct diag diag = DIAG_INIT;
    assert_int_equal(hw_write_changed(out, "mine.yaml", &hw_gpu_table, &now, &diag), STATUS_OK);
    fclose(out);
    char *text = read_all("fitted.yaml");
    assert_string_equal(text,
        "# mine\nextends: " H100 "\nname: Mine\n"
        "hbm_efficiency: {value: 0.9, kind: measured, source: \"own run\"}\n"
        "gemm: {bf16: {efficiency: {value: 0.7654, kind: fitted, std_error: 0.012, source: \"own "
        "run\"}, k_overhead: {value: 150, kind: fitted, std_error: 2, source: \"own run\"}}}\n");
    struct card *back = load("fitted.yaml");
    assert_string_equal(back->diag.text, "");
    assert_true(back->gpu.gemm[DTYPE_BF16].k_overhead.value == 150);
    assert_true(back->gpu.gemm[DTYPE_BF16].load_bandwidth.value ==
                mine->gpu.gemm[DTYPE_BF16].load_bandwidth.value);
    free(text);
    release(back);
    release(mine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_differs_is_enough),
        cmocka_unit_test(a_cluster_of_extended_files),
        cmocka_unit_test(mistakes_are_reported_in_their_file),
        cmocka_unit_test(a_fit_is_written_into_the_file_that_extends),
    };
    return cmocka_run_group_tests(tests, enter, leave);
}
