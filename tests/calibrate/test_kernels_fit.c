/* The fit of the kernel model to single operators: on times that the model made itself it finds the
 * numbers that made them; on results/measured/kernels.csv it is as good as issue and header claim
 * on shapes that it did not see. */
#include "calibrate/kernels_fit.h"
#include "calibrate/recipes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "../near.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KERNELS FLOPCAST_SOURCE_DIR "/results/measured/kernels.csv"
#define GPUS FLOPCAST_SOURCE_DIR "/topologies/gpus"
#define HEADER "gpu,session,operator,m,n,k,batch,forward_us,backward_us\n"

static void load_gpu(struct hw_gpu *gpu, const char *name, struct arena *arena)
{
    struct diag diag = DIAG_INIT;
    assert_int_equal(
        hw_load_gpu(gpu, arena_printf(arena, GPUS "/%s.yaml", name), arena, &diag), STATUS_OK);
    hw_clear_training_rates(gpu);
}

/* What is asked on held-out shapes: median and 90th percentile of products 5 and 15 %, of attention
 * 8 and 20 %, of memory-bound kernels 10 and 25 %. Products of unfused attention are a class that
 * no number rests on: as good as the others on GH200; on A100 the same shape measured twice in the
 * table's second session differs by up to a fifth. */
static void test_held_out_shapes(void **state)
{
    (void)state;
    static const struct {
        double median, p90;
    } most[KERNELS_CLASS_COUNT] = {[KERNELS_GEMM] = {0.05, 0.15},
        [KERNELS_BATCHED_GEMM] = {0.10, 0.25},
        [KERNELS_ATTENTION] = {0.08, 0.20},
        [KERNELS_MEMORY] = {0.10, 0.25}};
    struct arena names = ARENA_INIT;
    struct diag none = DIAG_INIT;
    struct recipes recipes;
    assert_int_equal(recipes_load(&recipes, &names, &none), STATUS_OK);
    assert_true(recipes.kernels.n >= 2);
    for (int i = 0; i < recipes.kernels.n; i++) {
        struct arena arena = ARENA_INIT;
        struct diag diag = DIAG_INIT;
        const char *name = recipes.kernels.list[i];
        struct hw_gpu gpu;
        struct kernels_fit fit;
        load_gpu(&gpu, name, &arena);
        assert_int_equal(kernels_fit_solve(&fit, &gpu, name, KERNELS, &diag), STATUS_OK);
        for (int class = 0; class < KERNELS_CLASS_COUNT; class ++) {
            struct fit_error error =
                kernels_error(&fit, (enum kernels_class) class, KERNELS_HELD_OUT);
            print_message("%s %s: %d rows, median %.1f %%, p90 %.1f %%\n", name,
                kernels_class_names[class], error.n, 100 * error.median, 100 * error.p90);
            assert_true(error.n >= 50);
            assert_true(error.median <= most[class].median);
            assert_true(error.p90 <= most[class].p90);
        }
        kernels_fit_free(&fit);
        arena_release(&arena);
    }
    arena_release(&names);
}

static const char *write_table(struct arena *arena, const char *rows)
{
    char *path = arena_printf(arena, "/tmp/flopcast-kernels-XXXXXX");
    int descriptor = mkstemp(path);
    assert_true(descriptor >= 0);
    FILE *file = fdopen(descriptor, "w");
    fprintf(file, HEADER "%s", rows);
    fclose(file);
    return path;
}

static void put(FILE *out, const struct kernels_fit *truth, int operator, int64_t m, int64_t n,
    int64_t k, int64_t batch)
{
    /* loading gives a row its kernels */
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    struct kernels_rows rows;
    const char *name = kernels_operators[operator].name;
    const char *path = write_table(&arena, arena_printf(&arena, "x,,%s,%ld,%ld,%ld,%ld,1e9,1e9\n",
                                               name, (long)m, (long)n, (long)k, (long)batch));
    assert_int_equal(kernels_rows_load(&rows, path, "x", &truth->gpu, &diag), STATUS_OK);
    unlink(path);
    assert_int_equal(rows.list.n, 2);
    fprintf(out, "x,,%s,%ld,%ld,%ld,%ld,%.9g,%.9g\n", name, (long)m, (long)n, (long)k, (long)batch,
        1e6 * kernels_predict_s(truth, &rows.list.at[0]),
        1e6 * kernels_predict_s(truth, &rows.list.at[1]));
    vec_free(&rows.list);
    arena_release(&arena);
}

/* Times that the model gives with other numbers than the file's: the fit finds them. */
static void test_numbers_come_back(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    struct hw_gpu gpu;
    load_gpu(&gpu, "a100-sxm4-80gb", &arena);
    struct kernels_fit truth = {.gpu = gpu, .launch_gap.value = 40e-6, .backward_rate.value = 1.1},
                       fit;
    truth.gpu.gemm[DTYPE_FP16].efficiency.value = 0.8;
    truth.gpu.gemm_floor.value = 6e-6;
    truth.gpu.attention_efficiency.value = 0.6;
    truth.gpu.attention_backward.value = 0.7;
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    for (int operator= 0; operator<KERNELS_OPERATORS; operator++)
        truth.share[operator][0].value = truth.share[operator][1].value = 1;
    truth.share[9][0].value = 0.7; /* gelu */
    for (int64_t m = 512; m <= 8192; m *= 2)
        for (int64_t side = 512; side <= 8192; side *= 2) {
            put(out, &truth, 0, m, side, 3 * side, 1);
            put(out, &truth, 7, m, m, 32 * (1 + side / 1024), 24);
            put(out, &truth, 8, m, side, 0, 1);
            put(out, &truth, 9, m, side, 0, 1);
        }
    fclose(out);
    const char *path = write_table(&arena, text);
    assert_int_equal(kernels_fit_solve(&fit, &gpu, "x", path, &diag), STATUS_OK);
    assert_near(fit.gpu.gemm[DTYPE_FP16].efficiency.value, 0.8, 0.004);
    assert_near(fit.gpu.gemm_floor.value, 6e-6, 0.3e-6);
    assert_near(fit.launch_gap.value, 40e-6, 2e-6);
    assert_near(fit.backward_rate.value, 1.1, 0.01);
    assert_near(fit.gpu.attention_efficiency.value, 0.6, 0.006);
    assert_near(fit.gpu.attention_backward.value, 0.7, 0.007);
    assert_near(fit.share[9][0].value, 0.7, 0.001);
    kernels_fit_free(&fit);
    unlink(path);
    free(text);
    arena_release(&arena);
}

/* Times that HBM cannot reach are left out: 1 GB in 0.1 ms is 10 TB/s. The first session fits
 * nothing. */
static void test_uses(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    struct hw_gpu gpu;
    struct kernels_rows rows;
    load_gpu(&gpu, "a100-sxm4-80gb", &arena);
    const char *path = write_table(&arena, "x,,residual_add,16384,10240,0,1,100,\n"
                                           "x,first,residual_add,16384,10240,0,1,700,\n"
                                           "x,second,context,128,64,128,8,10,\n"
                                           "y,,gelu,16384,10240,0,1,700,\n");
    assert_int_equal(kernels_rows_load(&rows, path, "x", &gpu, &diag), STATUS_OK);
    assert_int_equal(rows.list.n, 2);
    assert_int_equal(rows.list.at[0].use, KERNELS_FIRST_SESSION);
    assert_int_equal(rows.list.at[1].use, KERNELS_HELD_OUT); /* its class is */
    unlink(path);
    vec_free(&rows.list);
    arena_release(&arena);
}

static void test_bad_tables(void **state)
{
    (void)state;
    static const struct {
        const char *rows, *message;
    } cases[] = {
        {"x,,gelus,1,1,0,1,1,1\n",
            ": unknown operator 'gelus'; linear_qkv, flash_attention, gelu, ..."},
        {"x,,gelu,0,1,0,1,1,1\n", ": m is missing or not positive"},
        {"y,,gelu,1,1,0,1,1,1\n", "no row for GPU 'x'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct arena arena = ARENA_INIT;
        struct diag diag = DIAG_INIT;
        struct hw_gpu gpu;
        struct kernels_rows rows;
        load_gpu(&gpu, "a100-sxm4-80gb", &arena);
        const char *path = write_table(&arena, cases[i].rows);
        assert_int_equal(kernels_rows_load(&rows, path, "x", &gpu, &diag), STATUS_INPUT);
        assert_non_null(strstr(diag.text, cases[i].message));
        unlink(path);
        vec_free(&rows.list);
        arena_release(&arena);
    }
}

static void test_report(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    assert_int_equal(
        kernels_fit_print(out, FLOPCAST_SOURCE_DIR "/results/measured", GPUS, &arena, &diag),
        STATUS_OK);
    fclose(out);
    static const char *const words[] = {
        "a100-sxm4-80gb", "gh200-96gb", "+- ", "correlation +", "held out", "first session"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        assert_non_null(strstr(text, words[i]));
    free(text);
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_held_out_shapes),
        cmocka_unit_test(test_numbers_come_back),
        cmocka_unit_test(test_uses),
        cmocka_unit_test(test_bad_tables),
        cmocka_unit_test(test_report),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
