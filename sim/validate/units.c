/* Finds figures that cannot be in the unit of their column: tokens of the whole job, milliseconds, GiB. */
#include "validate/validate.h"

#include <stddef.h>

/* No published training run is this far from what its hardware can do; a wrong unit is a factor of 1000, a job instead
 * of a GPU a factor of 8 or more. Twice the peak leaves
 * room for a model that is not quite the one that ran. */
static const double FAR = 30, MOST_MFU = 2;

static const struct {
    const char *column, *unit;
    size_t offset; /* in struct validate_figures */
    enum { SPEED, TIME, BYTES } what;
} units[] = {
    {"tokens_per_s_per_gpu", "tokens a second of one GPU", offsetof(struct validate_figures, tokens_per_s_per_gpu),
        SPEED},
    {"tflops_per_gpu", "TFLOPS of one GPU", offsetof(struct validate_figures, tflops_per_gpu), SPEED},
    {"step_time_s", "seconds", offsetof(struct validate_figures, step_time_s), TIME},
    {"peak_allocated_bytes", "bytes of one GPU", offsetof(struct validate_figures, peak_allocated_bytes), BYTES},
    {"peak_reserved_bytes", "bytes of one GPU", offsetof(struct validate_figures, peak_reserved_bytes), BYTES},
};

static void check_row(const struct csv_table *csv, const struct validate_row *row, struct diag *diag)
{
    double hbm_bytes = row->set.points[0].hw.gpu.hbm_capacity.value;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        double measured = 0,
               predicted = *(const double *)(const void *)((const char *)&row->predicted + units[i].offset);
        csv_number(csv, row->csv_row, csv_column(csv, units[i].column), 0, &measured, diag);
        if (measured <= 0 || predicted <= 0)
            continue;
        double ratio = measured / predicted, speed = units[i].what == TIME ? 1 / ratio : ratio;
        bool cannot = units[i].what == BYTES ? measured > hbm_bytes : row->mfu * speed > MOST_MFU;
        if (cannot || speed < 1 / FAR)
            diag_warn(diag, csv_pos(csv, row->csv_row),
                "%s is %.15g, %.4g times what is predicted%s; the column is in %s", units[i].column, measured, ratio,
                !cannot                  ? ""
                : units[i].what == BYTES ? ", more than the GPU has"
                                         : ", more than the GPU can compute",
                units[i].unit);
    }
}

void validate_check_units(const struct validate_table *table, struct diag *diag)
{
    for (int i = 0; i < table->rows.n; i++)
        if (table->rows.at[i].status == VALIDATE_OK)
            check_row(table->rows.at[i].csv, &table->rows.at[i], diag);
}
