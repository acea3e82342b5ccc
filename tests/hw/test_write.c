/* A hardware file once more: what is not changed stays byte for byte. */
#include "hw/hw.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "../near.h"
#include "clusters.h"
#include "read_all.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TOPOLOGIES FLOPCAST_SOURCE_DIR "/topologies/"

static char *changed(const char *path, const struct config_table *table, const void *now)
{
    char *text = NULL;
    size_t n = 0;
    struct diag diag = DIAG_INIT;
    FILE *out = open_memstream(&text, &n);
    assert_int_equal(hw_write_changed(out, path, table, now, &diag), STATUS_OK);
    fclose(out);
    return text;
}

static void check_unchanged(const char *path, struct hw *hw)
{
    const struct {
        const char *path;
        const struct config_table *table;
        const void *now;
    } files[] = {{path, &hw_cluster_table, &hw->cluster},
        {hw->cluster.node_path, &hw_node_table, &hw->node},
        {hw->node.gpu_path, &hw_gpu_table, &hw->gpu}};
    for (size_t j = 0; j < sizeof files / sizeof *files; j++) {
        char *is = changed(files[j].path, files[j].table, files[j].now),
             *was = read_all(files[j].path);
        assert_string_equal(is, was);
        free(is);
        free(was);
    }
}

static void unchanged_files_stay(void **state)
{
    (void)state;
    each_cluster(check_unchanged);
}

/* Lines of b that a has not. */
static int new_lines(const char *a, char *b)
{
    int n = 0;
    char *rest;
    for (char *line = strtok_r(b, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        n += strstr(a, line) == NULL;
    return n;
}

/* A number of a section, one that the file does not have, the name: three lines. */
static void what_changes(void **state)
{
    (void)state;
    static const char path[] = TOPOLOGIES "gpus/h200-sxm-141gb.yaml";
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    struct hw_gpu gpu, back;
    char copy[] = "/tmp/flopcast-write-XXXXXX";
    assert_int_equal(hw_load_gpu(&gpu, path, &arena, &diag), STATUS_OK);
    assert_false(quantity_is_set(gpu.pointwise_efficiency));
    gpu.name = "H200 \"of ours\"";
    gpu.gemm[DTYPE_BF16].efficiency =
        (struct quantity){0.7654, 0.012, QUANTITY_FITTED, "own run: today", NULL};
    gpu.pointwise_efficiency = (struct quantity){0.9, 0, QUANTITY_MEASURED, "own run", NULL};
    char *text = changed(path, &hw_gpu_table, &gpu), *was = read_all(path);
    FILE *out = fdopen(mkstemp(copy), "w");
    fputs(text, out);
    fclose(out);
    assert_int_equal(hw_load_gpu(&back, copy, &arena, &diag), STATUS_OK);
    unlink(copy);
    assert_string_equal(back.name, gpu.name);
    assert_near(back.gemm[DTYPE_BF16].efficiency.value, 0.7654, 1e-12);
    assert_near(back.gemm[DTYPE_BF16].efficiency.std_error, 0.012, 1e-12);
    assert_string_equal(back.gemm[DTYPE_BF16].efficiency.source, "own run: today");
    assert_near(back.pointwise_efficiency.value, 0.9, 1e-12);
    assert_near(back.gemm[DTYPE_FP8].efficiency.value, gpu.gemm[DTYPE_FP8].efficiency.value, 0);
    assert_int_equal(new_lines(was, text), 3);
    free(text);
    free(was);
    arena_release(&arena);
}

/* A card of one's own may leave its silicon out: neither the file nor the number that is added
 * needs it. */
static void a_card_without_its_silicon(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    struct hw_gpu gpu;
    char path[] = "/tmp/flopcast-write-XXXXXX",
         *text = read_all(TOPOLOGIES "gpus/h200-sxm-141gb.yaml");
    static const char LINE[] = "silicon: GH100\n";
    size_t n = sizeof LINE - 1, at = 0, length = strlen(text);
    while (at < length && strncmp(text + at, LINE, n) != 0)
        at++;
    assert_true(at < length);
    memmove(text + at, text + at + n, length - at - n + 1);
    FILE *out = fdopen(mkstemp(path), "w");
    fputs(text, out);
    fclose(out);
    assert_int_equal(hw_load_gpu(&gpu, path, &arena, &diag), STATUS_OK);
    assert_null(gpu.silicon);
    char *same = changed(path, &hw_gpu_table, &gpu);
    assert_string_equal(same, text);
    gpu.pointwise_efficiency = (struct quantity){0.9, 0, QUANTITY_MEASURED, "own run", NULL};
    char *more = changed(path, &hw_gpu_table, &gpu);
    assert_int_equal(new_lines(text, more), 1);
    unlink(path);
    free(text);
    free(same);
    free(more);
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(unchanged_files_stay),
        cmocka_unit_test(what_changes), cmocka_unit_test(a_card_without_its_silicon)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
