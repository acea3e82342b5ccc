#include "calibrate/streams.h"

#include "base/vec.h"
#include "config/csv.h"

#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <string.h>

struct match {
    const char *column, *value;
};
typedef VEC(double) numbers;

/* The numbers in `wanted` of all rows whose cells match. None is an error. */
static enum status select_numbers(
    numbers *out, const char *path, const char *wanted, const struct match *matches, int n_matches, struct diag *diag)
{
    struct csv_table *table = NULL;
    enum status status = csv_load(&table, path, diag);
    for (int row = 0; status == STATUS_OK && row < csv_rows(table); row++) {
        bool all = true;
        for (int i = 0; i < n_matches; i++)
            all = all && strcmp(csv_cell(table, row, csv_column(table, matches[i].column)), matches[i].value) == 0;
        double value = 0;
        if (all && (status = csv_number(table, row, csv_column(table, wanted), 0, &value, diag)) == STATUS_OK)
            vec_push(out, value);
    }
    csv_release(table);
    if (status == STATUS_OK && out->n == 0)
        status = diag_input(diag, (struct source_pos){.file = path}, "no row with %s '%s' and %s '%s'",
            matches[0].column, matches[0].value, matches[1].column, matches[1].value);
    return status;
}

/* The one number (the first, where there are several). */
static enum status select_number(
    double *out, const char *path, const char *wanted, const struct match *matches, int n_matches, struct diag *diag)
{
    numbers found = {0};
    enum status status = select_numbers(&found, path, wanted, matches, n_matches, diag);
    *out = found.n > 0 ? found.at[0] : 0;
    vec_free(&found);
    return status;
}

enum status stream_rates_load(struct stream_rates *out, const char *hbm_csv, const char *gpu, struct diag *diag)
{
    static const char *const which[][2] = {{"scale", "100.0"}, {"triad", "100.0"}};
    double rate_GBps[2] = {0};
    for (int i = 0; i < 2; i++) {
        const struct match matches[] = {{"gpu", gpu}, {"kernel", which[i][0]}, {"occupancy_percent", which[i][1]}};
        enum status status = select_number(&rate_GBps[i], hbm_csv, "bandwidth_GBps", matches, 3, diag);
        if (status)
            return status;
    }
    *out = (struct stream_rates){.bandwidth_Bps = 1e9 * (rate_GBps[0] + rate_GBps[1]) / 2};
    return STATUS_OK;
}

enum status launch_floor_load(double *out_s, const char *launch_csv, const char *gpu, struct diag *diag)
{
    const struct match matches[] = {{"gpu", gpu}, {"launch", "stream launches"}};
    enum status status = select_number(out_s, launch_csv, "time_us", matches, 2, diag);
    *out_s *= 1e-6;
    return status;
}

enum status attention_rate_load(double *out_flops, const char *attention_csv, const char *gpu, struct diag *diag)
{
    const struct match matches[] = {{"gpu", gpu}, {"kernel", "flash attention 2"}};
    numbers found = {0};
    enum status status = select_numbers(&found, attention_csv, "tflops", matches, 2, diag);
    *out_flops = status ? 0 : 1e12 * gsl_stats_median(found.at, 1, (size_t)found.n);
    vec_free(&found);
    return status;
}

enum status best_gemm_load(
    struct best_gemm *out, const char *mamf_csv, const char *gpu, enum dtype math, struct diag *diag)
{
    static const char *const columns[] = {"m", "n", "k", "tflops"};
    const struct match matches[] = {{"gpu", gpu}, {"dtype", dtype_names[math]}};
    double value[4];
    for (int i = 0; i < 4; i++) {
        enum status status = select_number(&value[i], mamf_csv, columns[i], matches, 2, diag);
        if (status)
            return status;
    }
    int64_t bytes = dtype_bytes(math), result_bytes = math == DTYPE_FP8 ? dtype_bytes(DTYPE_BF16) : bytes;
    *out = (struct best_gemm){
        .work = kernel_gemm((int64_t)value[0], (int64_t)value[1], (int64_t)value[2], 1, math, bytes, result_bytes),
        .flops = 1e12 * value[3]};
    return STATUS_OK;
}

double best_gemm_efficiency(const struct best_gemm *best, const struct hw_gpu *gpu)
{
    struct hw_gpu trial = *gpu;
    double low = 0, high = 1; /* the duration falls as the efficiency grows: bisect */
    for (int i = 0; i < 60; i++) {
        double middle = (low + high) / 2;
        trial.gemm[best->work.math].efficiency.value = middle;
        double flops = best->work.flop / kernel_duration_s(&best->work, &trial, kernel_whole_gpu(&trial));
        if (flops < best->flops)
            low = middle;
        else
            high = middle;
    }
    return (low + high) / 2;
}
