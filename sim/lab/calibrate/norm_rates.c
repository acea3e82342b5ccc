/* How well one share of the streaming rate describes measured RMS norms, by library and pass.
 *
 * The norms beyond L2 are sorted by bytes, then rows, and every third is held out, so the choice
 * does not depend on the order of the table. The share is the median over the others of bytes
 * over the time less the kernel's floor; the error is that of kernel_duration_s() with this
 * share on the ones held out. Nothing is written: the result is a check of the model's form. */
#include "calibrate/norm_rates.h"

#include "base/vec.h"
#include "config/csv.h"
#include "kernel/kernel.h"

#include <gsl/gsl_statistics_double.h>
#include <string.h>

enum { HELD_OUT_EVERY = 3, BYTES_OF_ELEMENT = 2 /* bf16 */ };

struct norm {
    double bytes, rows, measured_s;
};
typedef VEC(struct norm) norms;

static int compare_norms(const void *a, const void *b)
{
    const struct norm *x = a, *y = b;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? -1 : 1;
    return (x->rows > y->rows) - (x->rows < y->rows);
}

/* The RMS norms of a library and pass that do not fit in L2, sorted. */
static enum status select_norms(norms *out, const struct csv_table *table,
    const struct norm_rate *rate, const char *name, double l2_bytes, struct diag *diag)
{
    const char *const columns[] = {"gpu", "norm", "library", "pass"};
    const char *const wanted[] = {name, "rms_norm", rate->library, rate->pass};
    for (int row = 0; row < csv_rows(table); row++) {
        bool all = true;
        for (int i = 0; i < 4; i++)
            all =
                all && strcmp(csv_cell(table, row, csv_column(table, columns[i])), wanted[i]) == 0;
        if (!all)
            continue;
        struct norm norm = {0};
        double rate_GBps = 0;
        enum status status =
            csv_number(table, row, csv_column(table, "bytes"), 0, &norm.bytes, diag);
        if (status == STATUS_OK)
            status = csv_number(table, row, csv_column(table, "rows"), 0, &norm.rows, diag);
        if (status == STATUS_OK)
            status = csv_number(table, row, csv_column(table, "rate_GBps"), 0, &rate_GBps, diag);
        if (status != STATUS_OK)
            return status;
        norm.measured_s = norm.bytes / (1e9 * rate_GBps);
        if (norm.bytes > l2_bytes)
            vec_push(out, norm);
    }
    if (out->n < HELD_OUT_EVERY)
        return diag_input(diag, (struct source_pos){0},
            "%d norms of %s, %s on '%s' beyond L2; a fit needs %d", out->n, rate->library,
            rate->pass, name, HELD_OUT_EVERY);
    qsort(out->at, (size_t)out->n, sizeof *out->at, compare_norms);
    return STATUS_OK;
}

static bool norm_rates_is_held_out(int i)
{
    return i % HELD_OUT_EVERY == HELD_OUT_EVERY - 1;
}

static void norm_rates_fit(struct norm_rate *rate, const norms *rows, const struct hw_gpu *gpu)
{
    double *values = xcalloc((size_t)rows->n, sizeof *values);
    struct fit_sample sample = {0};
    double all_Bps = gpu->hbm_bandwidth.value * gpu->hbm_efficiency.value;
    for (int i = 0; i < rows->n; i++)
        if (!norm_rates_is_held_out(i))
            values[rate->n_fitted++] =
                rows->at[i].bytes / (rows->at[i].measured_s - gpu->kernel_floor.value) / all_Bps;
    rate->share = gsl_stats_median(values, 1, (size_t)rate->n_fitted);
    struct hw_gpu with = *gpu;
    with.pointwise_efficiency = (struct quantity){.value = rate->share, .kind = QUANTITY_FITTED};
    for (int i = 0; i < rows->n; i++) {
        if (!norm_rates_is_held_out(i))
            continue;
        struct kernel_work work = kernel_stream(KERNEL_NORM, rows->at[i].bytes, 0, 0);
        fit_sample_add(&sample, kernel_duration_s(&work, &with, kernel_whole_gpu(&with)),
            rows->at[i].measured_s);
    }
    rate->held_out = fit_sample_error(&sample);
    free(values);
}

enum status norm_rates_load(struct norm_rate out[NORM_RATES], const char *norm_csv,
    const char *name, const struct hw_gpu *gpu, struct diag *diag)
{
    static const char *const libraries[] = {"cudnn", "torch_compile", "pytorch"};
    static const char *const passes[] = {"forward", "backward"};
    struct csv_table *table = NULL;
    enum status status = csv_load(&table, norm_csv, diag);
    for (int i = 0; i < NORM_RATES && status == STATUS_OK; i++) {
        norms rows = {0};
        out[i] = (struct norm_rate){.library = libraries[i / 2], .pass = passes[i % 2]};
        status = select_norms(&rows, table, &out[i], name, gpu->l2_capacity.value, diag);
        if (status == STATUS_OK)
            norm_rates_fit(&out[i], &rows, gpu);
        vec_free(&rows);
    }
    csv_release(table);
    return status;
}
