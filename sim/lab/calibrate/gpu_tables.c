/* Numbers that are read off one table of results/measured, by matching cells: medians and linear
 * fits.
 *
 * select_numbers() loads the table, keeps the rows whose cells equal all matches and reads one
 * column of them; each function here names the columns that it wants, so a table is read once a
 * column. Those reads give equal numbers of values in the same order, since a row that matches
 * gives a number in each.
 *
 * Attention is linear least squares without a search: with a = 1 / rate of very many keys, and b
 * = overhead x a, every row says 1 = rate x (a x (keys + extra keys) + b x overheads) / keys, as
 * attention_walk() counts both. Settled rates and accumulation are medians over products of at
 * least SETTLED_LONG_US; their errors are of the spread over rows. */
#include "calibrate/gpu_tables.h"

#include "base/vec.h"
#include "config/csv.h"
#include "kernel/attention.h"

#include <gsl/gsl_multifit.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <string.h>

struct match {
    const char *column, *value;
};
typedef VEC(double) number_list;

/* The numbers in `wanted` of all rows whose cells match. None is an error. */
static enum status select_numbers(number_list *out, const char *path, const char *wanted,
    const struct match *matches, int n_matches, struct diag *diag)
{
    struct csv_table *table = NULL;
    enum status status = csv_load(&table, path, diag);
    for (int row = 0; status == STATUS_OK && row < csv_rows(table); row++) {
        bool all = true;
        for (int i = 0; i < n_matches; i++)
            all = all && strcmp(csv_cell(table, row, csv_column(table, matches[i].column)),
                             matches[i].value) == 0;
        double value = 0;
        if (all && (status = csv_number(table, row, csv_column(table, wanted), 0, &value, diag)) ==
                       STATUS_OK)
            vec_push(out, value);
    }
    csv_release(table);
    if (status == STATUS_OK && out->n == 0)
        status =
            diag_input(diag, (struct source_pos){.file = path}, "no row with %s '%s' and %s '%s'",
                matches[0].column, matches[0].value, matches[1].column, matches[1].value);
    return status;
}

/* The one number (the first, where there are several). */
static enum status select_number(double *out, const char *path, const char *wanted,
    const struct match *matches, int n_matches, struct diag *diag)
{
    number_list found = {0};
    enum status status = select_numbers(&found, path, wanted, matches, n_matches, diag);
    *out = found.n > 0 ? found.at[0] : 0;
    vec_free(&found);
    return status;
}

enum status stream_rates_load(
    struct stream_rates *out, const char *hbm_csv, const char *gpu, struct diag *diag)
{
    static const char *const which[][2] = {{"scale", "100.0"}, {"triad", "100.0"}};
    double rate_GBps[2] = {0};
    for (int i = 0; i < 2; i++) {
        const struct match matches[] = {
            {"gpu", gpu}, {"kernel", which[i][0]}, {"occupancy_percent", which[i][1]}};
        enum status status =
            select_number(&rate_GBps[i], hbm_csv, "bandwidth_GBps", matches, 3, diag);
        if (status)
            return status;
    }
    *out = (struct stream_rates){.bandwidth_Bps = 1e9 * (rate_GBps[0] + rate_GBps[1]) / 2};
    return STATUS_OK;
}

enum status launch_floor_load(
    double *out_s, const char *launch_csv, const char *gpu, struct diag *diag)
{
    const struct match matches[] = {{"gpu", gpu}, {"launch", "stream launches"}};
    enum status status = select_number(out_s, launch_csv, "time_us", matches, 2, diag);
    *out_s *= 1e-6;
    return status;
}

typedef struct {
    double tflops, keys;
    bool causal;
} attention_row;
typedef VEC(attention_row) attention_rows;

static enum status attention_rows_load(attention_rows *out, const char *attention_csv,
    const char *gpu, const char *kernel, struct diag *diag)
{
    static const char *const masks[] = {"no", "yes"};
    enum status status = STATUS_OK;
    for (int causal = 0; causal < 2 && status == STATUS_OK; causal++) {
        const struct match matches[] = {
            {"gpu", gpu}, {"kernel", kernel}, {"causal", masks[causal]}};
        number_list rates = {0}, lengths = {0};
        status = select_numbers(&rates, attention_csv, "tflops", matches, 3, diag);
        if (status == STATUS_OK)
            status = select_numbers(&lengths, attention_csv, "seq_len", matches, 3, diag);
        for (int i = 0; status == STATUS_OK && i < rates.n; i++)
            vec_push(out, (attention_row){rates.at[i], lengths.at[i], causal});
        vec_free(&rates);
        vec_free(&lengths);
    }
    return status;
}

/* 1 = tflops x (a + b overheads / keys) with a = 1 / rate of very many keys and b = overhead a. */
static void attention_solve(struct attention_fit *out, const attention_rows *rows)
{
    size_t n = (size_t)rows->n;
    gsl_matrix *factors = gsl_matrix_alloc(n, 2), *covariance = gsl_matrix_alloc(2, 2);
    gsl_vector *ones = gsl_vector_alloc(n), *found = gsl_vector_alloc(2);
    gsl_multifit_linear_workspace *work = gsl_multifit_linear_alloc(n, 2);
    double squares = 0;
    for (size_t i = 0; i < n; i++) {
        const attention_row *row = &rows->at[i];
        struct attention_walk walk = attention_walk(row->causal);
        gsl_vector_set(ones, i, 1);
        gsl_matrix_set(factors, i, 0, row->tflops * (1 + walk.extra_keys / row->keys));
        gsl_matrix_set(factors, i, 1, row->tflops * walk.overheads / row->keys);
    }
    gsl_multifit_linear(factors, ones, found, covariance, &squares, work);
    double a = gsl_vector_get(found, 0), b = gsl_vector_get(found, 1);
    *out = (struct attention_fit){.flops = 1e12 / a,
        .overhead = b / a,
        .overhead_std_error = sqrt(gsl_matrix_get(covariance, 1, 1)) / a};
    gsl_multifit_linear_free(work);
    gsl_matrix_free(factors);
    gsl_matrix_free(covariance);
    gsl_vector_free(ones);
    gsl_vector_free(found);
}

enum status attention_fit_load(struct attention_fit *out, const char *attention_csv,
    const char *gpu, const char *kernel, struct diag *diag)
{
    attention_rows rows = {0};
    enum status status = attention_rows_load(&rows, attention_csv, gpu, kernel, diag);
    *out = (struct attention_fit){0};
    if (status == STATUS_OK)
        attention_solve(out, &rows);
    vec_free(&rows);
    return status;
}

enum status best_gemm_load(struct best_gemm *out, const char *mamf_csv, const char *gpu,
    enum dtype math, struct diag *diag)
{
    static const char *const columns[] = {"m", "n", "k", "tflops"};
    const struct match matches[] = {{"gpu", gpu}, {"dtype", dtype_names[math]}};
    double value[4];
    for (int i = 0; i < 4; i++) {
        enum status status = select_number(&value[i], mamf_csv, columns[i], matches, 2, diag);
        if (status)
            return status;
    }
    int64_t bytes = dtype_bytes(math),
            result_bytes = math == DTYPE_FP8 ? dtype_bytes(DTYPE_BF16) : bytes;
    *out = (struct best_gemm){.work = kernel_gemm((int64_t)value[0], (int64_t)value[1],
                                  (int64_t)value[2], 1, math, bytes, result_bytes),
        .flops = 1e12 * value[3]};
    return STATUS_OK;
}

/* Of every long product: the rate measured over the model's. */
static enum status long_shares(number_list *out, number_list rows[4], const char *path,
    const char *name, const struct hw_gpu *gpu, enum dtype math, struct diag *diag)
{
    static const char *const columns[] = {"m", "n", "k", "tflops"};
    const struct match matches[] = {{"gpu", name}, {"dtype", dtype_names[math]}};
    for (int i = 0; i < 4; i++) {
        enum status status = select_numbers(&rows[i], path, columns[i], matches, 2, diag);
        if (status)
            return status;
    }
    for (int i = 0; i < rows[0].n; i++) {
        int64_t m = (int64_t)rows[0].at[i], n = (int64_t)rows[1].at[i], k = (int64_t)rows[2].at[i];
        struct kernel_work work =
            kernel_gemm(m, n, k, 1, math, dtype_bytes(math), dtype_bytes(math));
        double measured_s = work.flop / (1e12 * rows[3].at[i]);
        if (measured_s >= 1e-6 * SETTLED_LONG_US)
            vec_push(out, kernel_duration_s(&work, gpu, kernel_whole_gpu(gpu)) / measured_s);
    }
    if (out->n == 0)
        return diag_input(diag, (struct source_pos){.file = path},
            "no product of at least %d us on '%s'", SETTLED_LONG_US, name);
    return STATUS_OK;
}

enum status settled_rates_load(struct settled_rates *out, const char *settled_csv, const char *name,
    const struct hw_gpu *gpu, enum dtype math, struct diag *diag)
{
    struct hw_gpu fresh = *gpu;
    hw_clear_training_rates(&fresh);
    number_list rows[4] = {0}, shares = {0};
    enum status status = long_shares(&shares, rows, settled_csv, name, &fresh, math, diag);
    if (status == STATUS_OK) {
        size_t n = (size_t)shares.n;
        double settled = gsl_stats_median(shares.at, 1, n);
        *out = (struct settled_rates){
            .n = shares.n, .settled = settled, .spread = gsl_stats_sd(shares.at, 1, n) / settled};
    }
    for (int i = 0; i < 4; i++)
        vec_free(&rows[i]);
    vec_free(&shares);
    return status;
}

/* The share of the added traffic's streaming time by which products get longer: 0 is wholly
 * hidden, 1 not at all. The error of the median is that of a normal distribution of the rows'
 * spread. */
enum status accumulate_fit_load(struct accumulate_fit *out, const char *accumulate_csv,
    const char *gpu, enum dtype result, bool grouped, struct diag *diag)
{
    enum { GROUPS, M, N, PLAIN_US, LONGER_US, HBM_GBPS, COLUMNS };
    static const char *const columns[COLUMNS] = {
        "groups", "m", "n", "plain_us", "accumulating_us", "hbm_GBps"};
    const struct match matches[] = {{"gpu", gpu}, {"result", dtype_names[result]}};
    number_list rows[COLUMNS] = {0}, exposed = {0};
    enum status status = STATUS_OK;
    for (int i = 0; i < COLUMNS && status == STATUS_OK; i++)
        status = select_numbers(&rows[i], accumulate_csv, columns[i], matches, 2, diag);
    const double bytes = (double)(2 * dtype_bytes(result) - dtype_bytes(DTYPE_BF16));
    for (int i = 0; status == STATUS_OK && i < rows[0].n; i++) {
        double added = bytes * rows[GROUPS].at[i] * rows[M].at[i] * rows[N].at[i];
        if ((rows[GROUPS].at[i] > 1) == grouped && rows[PLAIN_US].at[i] >= SETTLED_LONG_US)
            vec_push(&exposed, 1e-6 * (rows[LONGER_US].at[i] - rows[PLAIN_US].at[i]) /
                                   (added / (1e9 * rows[HBM_GBPS].at[i])));
    }
    if (status == STATUS_OK && exposed.n == 0)
        status = diag_input(diag, (struct source_pos){.file = accumulate_csv},
            "no product of at least %d us on '%s' that adds to %s", SETTLED_LONG_US, gpu,
            dtype_names[result]);
    if (status == STATUS_OK) {
        size_t n = (size_t)exposed.n;
        double *work = xcalloc(n, sizeof *work);
        double median = gsl_stats_median(exposed.at, 1, n);
        *out = (struct accumulate_fit){
            exposed.n, median, sqrt(M_PI / 2 / (double)n) * gsl_stats_mad(exposed.at, 1, n, work)};
        free(work);
    }
    for (int i = 0; i < COLUMNS; i++)
        vec_free(&rows[i]);
    vec_free(&exposed);
    return status;
}
