/* A GPU's numbers from a file of flopcast_measure whose times follow from known numbers: what is
 * measured comes out, what is not stays as the GPU's file has it. */
#include "calibrate/measure_fit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../near.h"
#include "../number.h"

#define HEADER                                                                                     \
    "category,kernel,dtype,m,n,k,batch,bytes,flop,sms,gpus,beside,cache,time_us_median,time_us_"   \
    "min,time_us_max,"                                                                             \
    "sm_clock_MHz,gpu,driver,cuda,date,version,kind\n"
#define FROM ",,made up,550.1,13.0,2026-01-31,0.1.0,measured\n"
#define FORMAT(peak_, efficiency_, overhead_, load_)                                               \
    {                                                                                              \
        .peak = NUMBER(peak_), .efficiency = NUMBER(efficiency_), .k_overhead = NUMBER(overhead_), \
        .load_bandwidth = NUMBER(load_)                                                            \
    }

/* About an A100; and what was known of it before. */
static const struct hw_gpu truth = {.name = "made up",
    .sms = NUMBER(108),
    .hbm_bandwidth = NUMBER(2e12),
    .hbm_efficiency = NUMBER(0.85),
    .l2_capacity = NUMBER(40e6),
    .kernel_floor = NUMBER(2.5e-6),
    .gemm_floor = NUMBER(5e-6),
    .memory_sms = NUMBER(60),
    .vector_flops = NUMBER(19e12),
    .pointwise_efficiency = NUMBER(0.7),
    .gemm = {[DTYPE_BF16] = FORMAT(312e12, 0.8, 120, 3e12),
        [DTYPE_INT8] = FORMAT(624e12, 0.7, 200, 3.5e12)}};
static const struct hw_gpu filed = {.name = "made up",
    .sms = NUMBER(108),
    .hbm_bandwidth = NUMBER(2e12),
    .hbm_efficiency = NUMBER(0.5),
    .l2_capacity = NUMBER(40e6),
    .kernel_floor = NUMBER(9e-6),
    .gemm_floor = NUMBER(9e-6),
    .memory_sms = NUMBER(10),
    .vector_flops = NUMBER(19e12),
    .gemm_sustained = NUMBER(0.9),
    .overlap_traffic = NUMBER(0.5),
    .context_bytes = NUMBER(1e9),
    .gemm = {[DTYPE_BF16] = FORMAT(312e12, 0.5, 10, 1e12),
        [DTYPE_INT8] = FORMAT(624e12, 0.5, 10, 1e12),
        [DTYPE_FP16] = FORMAT(312e12, 0.6, 11, 2e12)}};

static double alone_s(struct kernel_work work, const struct hw_gpu *gpu)
{
    return kernel_duration_s(&work, gpu, kernel_whole_gpu(gpu));
}

static void put_time(FILE *out, double seconds)
{
    fprintf(out, ",%.17g,%.17g,%.17g" FROM, 1e6 * seconds, 1e6 * seconds, 1e6 * seconds);
}

/* Warm rows of small products show L2 at twice the speed; the cold ones, which stand behind them,
 * are the law's. */
static void put_products(FILE *out, const struct hw_gpu *gpu, enum dtype math)
{
    int64_t bytes = dtype_bytes(math), result_bytes = math == DTYPE_INT8 ? 4 : bytes;
    for (int m = 256; m <= 4096; m *= 4)
        for (int n = 128; n <= 4096; n *= 2)
            for (int k = 128; k <= 8192; k *= 4)
                for (int batch = 1; batch <= 3; batch++) {
                    double s = alone_s(kernel_gemm(m, n, k, batch, math, bytes, result_bytes), gpu);
                    for (int cold = 0; cold < 2; cold++) {
                        fprintf(out, "gemm,\"tn; a, b\",%s,%d,%d,%d,%d,1,1,,1,,%s",
                            dtype_names[math], m, n, k, batch, cold ? "cold" : "warm");
                        put_time(out, cold ? s : s / 2);
                    }
                }
}

static void put_streams(FILE *out)
{
    static const char *const kernels[] = {"scale", "triad"};
    static const double sizes[] = {1e8, 1e9, 1e10};
    const double whole_Bps = 0.85 * 2e12;
    for (int i = 0; i < 2; i++)
        for (int s = 0; s < 3; s++) { /* slower where it is small */
            fprintf(out, "hbm,%s,fp32,,1,,,%.17g,,,1,,warm", kernels[i], sizes[s]);
            put_time(out, sizes[s] / whole_Bps + (s < 2 ? 1e-5 : 0));
        }
    for (int sms = 15; sms <= 60; sms += 15) { /* 60 of them reach the whole rate */
        fprintf(out, "hbm,triad,fp32,,1,,,1e10,,%d,1,,warm", sms);
        put_time(out, 1e10 / (whole_Bps * sms / 60));
    }
}

/* Of each kind one that comes from HBM, and one out of L2 that would be taken for a rate above the
 * GPU's. */
static void put_pointwise(FILE *out)
{
    static const struct {
        const char *category;
        enum kernel_kind kind;
    } kinds[] = {{"norm", KERNEL_NORM}, {"attention", KERNEL_SOFTMAX},
        {"elementwise", KERNEL_ELEMENTWISE}, {"embedding", KERNEL_EMBEDDING},
        {"loss", KERNEL_LOSS}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        fprintf(out, "%s,x,bf16,1,1,,,1e9,,,1,,warm", kinds[i].category);
        put_time(out, alone_s(kernel_stream(kinds[i].kind, 5e8, 5e8, 0), &truth));
        fprintf(out, "%s,x,bf16,1,1,,,2e7,,,1,,cold", kinds[i].category);
        put_time(out, alone_s(kernel_stream(kinds[i].kind, 1e7, 1e7, 0), &truth));
        fprintf(out, "%s,x,bf16,1,1,,,2e7,,,1,,warm", kinds[i].category);
        put_time(out, 3e-6);
    }
}

static enum status fit_text(
    struct measure_fit *fit, struct measured_file *file, char *text, struct diag *diag)
{
    assert_int_equal(measured_read_text(file, "x.csv", text, strlen(text), diag), STATUS_OK);
    free(text);
    return measure_fit_solve(fit, &filed, file, diag);
}

static void check_format(const struct hw_gpu *gpu, enum dtype math)
{
    assert_near(gpu->gemm[math].efficiency.value / truth.gemm[math].efficiency.value, 1, 1e-2);
    assert_near(gpu->gemm[math].k_overhead.value / truth.gemm[math].k_overhead.value, 1, 5e-2);
    assert_near(
        gpu->gemm[math].load_bandwidth.value / truth.gemm[math].load_bandwidth.value, 1, 1e-2);
    assert_int_equal(gpu->gemm[math].efficiency.kind, QUANTITY_FITTED);
}

static void what_was_measured_comes_out(void **state)
{
    (void)state;
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    fputs(HEADER "launch,\"empty kernels one after the other, GPU and host\",,,,,,,,,1,,", out);
    put_time(out, 2.5e-6);
    put_streams(out);
    put_pointwise(out);
    put_products(out, &truth, DTYPE_BF16);
    put_products(out, &truth, DTYPE_INT8);
    put_products(out, &truth, DTYPE_BF16); /* once more: the same products, no more of them */
    fputs("gemm,tn,fp16,8192,8192,8192,1,1,1,,1,,warm,3500,3500,3500" FROM,
        out); /* one product says too little */
    fputs("sustained,burst,bf16,1,1,1,1,1,1e12,,1,,,1000,1000,1000" FROM, out);
    fputs("sustained,window,bf16,1,1,1,1,1,1e12,,1,,,1250,1250,1250" FROM, out);
    fputs("memory,context,,,,,,4e8,,,1,,,,," FROM "memory,cuBLAS,,,,,,1e8,,,1,,,,," FROM
          "memory,NCCL communicator,,,,,,1e8,,,2,,,,," FROM,
        out);
    fclose(out);
    struct measured_file file;
    struct measure_fit fit;
    struct diag diag = DIAG_INIT;
    assert_int_equal(fit_text(&fit, &file, text, &diag), STATUS_OK);
    const struct hw_gpu *gpu = &fit.gpu;
    assert_near(gpu->kernel_floor.value, 2.5e-6, 1e-15);
    assert_near(gpu->hbm_efficiency.value, 0.85, 1e-12);
    assert_near(gpu->memory_sms.value, 60, 1e-9);
    assert_near(gpu->pointwise_efficiency.value, 0.7, 1e-9);
    assert_near(gpu->gemm_floor.value / truth.gemm_floor.value, 1, 1e-2);
    check_format(gpu, DTYPE_BF16);
    check_format(gpu, DTYPE_INT8);
    assert_near(gpu->gemm_sustained.value, 0.8, 1e-12); /* 1000 / 1250 */
    assert_near(gpu->context_bytes.value, 5e8, 0);
    /* what was not measured, or said too little */
    assert_near(gpu->overlap_traffic.value, 0.5, 0);
    assert_near(gpu->gemm[DTYPE_FP16].efficiency.value, 0.6, 0);
    assert_false(fit.products[DTYPE_FP16]);
    assert_int_equal(fit.gemm.list.n, 2 * 3 * 6 * 4 * 3 + 1);
    measure_fit_free(&fit);
    measured_file_free(&file);
}

/* H100's file with what was measured: gemm_floor, too, though the file's has the words of the same
 * fit as its source. Loads limit every product of FP16, so its efficiency is not determined and
 * stays; tile_share of TF32 stays, too, and the others are those beside it. */
static void the_written_file_has_what_was_measured(void **state)
{
    (void)state;
    static const char path[] = FLOPCAST_SOURCE_DIR "/topologies/gpus/h100-sxm5-80gb.yaml";
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    struct hw_gpu h100, back, slow;
    assert_int_equal(hw_load_gpu(&h100, path, &arena, &diag), STATUS_OK);
    slow = h100;
    hw_clear_training_rates(&slow);
    slow.gemm_floor.value = 4e-6;
    slow.gemm[DTYPE_FP16].load_bandwidth.value = 1e11;
    char *text = NULL, copy[] = "/tmp/flopcast-measure-XXXXXX";
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    fputs(HEADER, out);
    put_products(out, &slow, DTYPE_BF16);
    put_products(out, &slow, DTYPE_FP16);
    put_products(out, &slow, DTYPE_TF32);
    fclose(out);
    struct measured_file file;
    struct measure_fit fit;
    assert_int_equal(measured_read_text(&file, "x.csv", text, n, &diag), STATUS_OK);
    assert_int_equal(measure_fit_solve(&fit, &h100, &file, &diag), STATUS_OK);
    close(mkstemp(copy));
    assert_int_equal(measure_fit_write(&fit, &h100, &file, path, copy, &arena, &diag), STATUS_OK);
    assert_int_equal(hw_load_gpu(&back, copy, &arena, &diag), STATUS_OK);
    assert_near(back.gemm_floor.value / 4e-6, 1, 1e-2);
    assert_near(back.gemm[DTYPE_FP16].load_bandwidth.value / 1e11, 1, 1e-2);
    assert_near(back.gemm[DTYPE_FP16].efficiency.value, h100.gemm[DTYPE_FP16].efficiency.value, 0);
    assert_string_equal(
        back.gemm[DTYPE_FP16].efficiency.source, h100.gemm[DTYPE_FP16].efficiency.source);
    assert_near(back.gemm[DTYPE_TF32].tile_share.value, h100.gemm[DTYPE_TF32].tile_share.value, 0);
    assert_near(
        fit.gpu.gemm[DTYPE_TF32].tile_share.value, h100.gemm[DTYPE_TF32].tile_share.value, 0);
    unlink(copy);
    free(text);
    measure_fit_free(&fit);
    measured_file_free(&file);
    arena_release(&arena);
}

/* Twice as long beside eight SMs; a GEMM that has 100 of 108 SMs takes 1.08 times as long by the
 * model at most. */
static void slowdowns_are_printed(void **state)
{
    (void)state;
    struct measured_file file;
    struct measure_fit fit;
    struct diag diag = DIAG_INIT;
    char *
        text = strdup(HEADER
           "overlap,tn; square,bf16,8192,8192,8192,1,4e8,1e12,,1,,,1000,1000,1000" FROM
           "overlap,tn; square,bf16,8192,8192,8192,1,4e8,1e12,,1,copy on 8 SMs,,2000,2000,2000" FROM
           "allocation,cudaMalloc,,,,,1,2e7,,,1,,,500,500,500" FROM),
       *printed = NULL;
    size_t n = 0;
    assert_int_equal(fit_text(&fit, &file, text, &diag), STATUS_OK);
    assert_near(fit.gpu.cuda_malloc.value, 5e-4, 1e-15);
    FILE *out = open_memstream(&printed, &n);
    measure_fit_print(out, &fit, &filed, &file);
    fclose(out);
    assert_non_null(strstr(printed, "3 rows of made up, driver 550.1"));
    assert_non_null(strstr(printed,
        "beside copy on 8 SMs                takes 2.00 times as long, by its SMs and bytes 1."));
    free(printed);
    measure_fit_free(&fit);
    measured_file_free(&file);
}

/* H100's file has what was measured on one: HBM from the same run by hbm.csv, rounded there; the
 * context. */
static void h100_is_as_measured(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    struct hw_gpu h100;
    struct measured_file file;
    struct measure_fit fit;
    const char *gpu = FLOPCAST_SOURCE_DIR "/topologies/gpus/h100-sxm5-80gb.yaml";
    assert_int_equal(hw_load_gpu(&h100, gpu, &arena, &diag), STATUS_OK);
    assert_int_equal(
        measured_read(&file, FLOPCAST_SOURCE_DIR "/results/measured/h100_measure.csv", &diag),
        STATUS_OK);
    assert_int_equal(measure_fit_solve(&fit, &h100, &file, &diag), STATUS_OK);
    assert_near(h100.hbm_efficiency.value / fit.gpu.hbm_efficiency.value, 1, 1e-3);
    assert_near(h100.context_bytes.value / fit.gpu.context_bytes.value, 1, 1e-3);
    measure_fit_free(&fit);
    measured_file_free(&file);
    arena_release(&arena);
}

static void rows_that_say_nothing_are_refused(void **state)
{
    (void)state;
    struct measured_file file;
    struct measure_fit fit;
    struct diag diag = DIAG_INIT;
    char *text = strdup(HEADER "nccl,all_reduce,,,,,,1e6,,,2,,,10,10,10" FROM);
    assert_int_equal(fit_text(&fit, &file, text, &diag), STATUS_INPUT);
    assert_non_null(strstr(diag.text, "x.csv:2"));
    assert_non_null(strstr(diag.text, "no number of a GPU follows"));
    measured_file_free(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_measured_comes_out),
        cmocka_unit_test(the_written_file_has_what_was_measured),
        cmocka_unit_test(slowdowns_are_printed),
        cmocka_unit_test(h100_is_as_measured),
        cmocka_unit_test(rows_that_say_nothing_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
