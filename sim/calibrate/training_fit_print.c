/* What `flopcast calibrate fit training` prints. */
#include "calibrate/training_fit.h"

#include "base/arena.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Of the rows that were left out, or of those that were not. */
static struct fit_error errors_of(const struct training_fit *fit, bool left_out)
{
    struct fit_sample sample = {0};
    for (int i = 0; i < fit->table.rows.n; i++)
        if (fit->table.rows.at[i].has_error && fit->fit.rows.at[i].left_out == left_out)
            fit_sample_add(&sample, fit->speeds[i], fit->fit.rows.at[i].measured);
    return fit_sample_error(&sample);
}

/* No error: no row's speed depends on it. One as large as the number itself: by the rows the number could be 0. */
bool training_fit_determines(const struct fit_parameter *parameter)
{
    return parameter->fitted.std_error > 0 && parameter->fitted.std_error < fabs(parameter->fitted.value);
}

/* Rows, prior, and what the file says of it. */
static const char *remark(const struct training_fit *fit, int parameter, struct arena *arena)
{
    const struct fit_parameter *p = &fit->fit.parameters.at[parameter];
    const struct training_about *about = &fit->about.at[parameter];
    const char *prior = "";
    if (quantity_is_set(about->prior))
        prior = arena_printf(arena, ", prior %.3g +- %.2g", about->prior.value, about->prior.std_error);
    return arena_printf(arena, "(%d row%s%s%s) %s", about->rows, plural(about->rows), prior,
        training_fit_determines(p) ? "" : ", not determined by these; keep it", p->filed.source);
}

void training_fit_print(FILE *out, const struct training_fit *fit)
{
    struct arena arena = ARENA_INIT;
    fit_print_head(out, "parameters");
    for (int i = 0; i < fit->fit.parameters.n; i++) {
        const struct fit_parameter *p = &fit->fit.parameters.at[i];
        struct quantity found = training_fit_determines(p) ? p->fitted : (struct quantity){0};
        fit_print_number(out, "", p->key, p->filed, found, p->dimension, remark(fit, i, &arena));
    }
    fit_print_tied(out, &fit->fit);
    fit_print_error(out, "speed", "fitted", errors_of(fit, false));
    arena_release(&arena);
}

static bool same_family(const struct validate_row *a, const struct validate_row *b)
{
    return strcmp(a->source, b->source) == 0 && strcmp(a->model, b->model) == 0;
}

enum status training_fit_cross_validate(FILE *out, struct training_fit *fit, struct diag *diag)
{
    const struct validate_row *rows = fit->table.rows.at;
    enum status status = STATUS_OK;
    fprintf(out, "%-60s %-14s %5s %8s %8s %8s %9s\n", "left out", "model", "rows", "bias %", "median %", "p90 %",
        "others %");
    for (int i = 0; i < fit->table.rows.n && status == STATUS_OK; i++) {
        bool first = true;
        for (int j = 0; j < i && first; j++)
            first = !same_family(&rows[j], &rows[i]);
        if (!first)
            continue;
        for (int j = 0; j < fit->table.rows.n; j++)
            fit->fit.rows.at[j].left_out = !rows[j].has_error || same_family(&rows[j], &rows[i]);
        status = training_fit_solve(fit, diag);
        struct fit_error e = errors_of(fit, true), others = errors_of(fit, false);
        if (status == STATUS_OK)
            fprintf(out, "%-60s %-14s %5d %8.1f %8.1f %8.1f %9.1f\n", rows[i].source, rows[i].model, e.n, 100 * e.bias,
                100 * e.median, 100 * e.p90, 100 * others.median);
        fflush(out);
    }
    return status;
}

bool *training_fit_rows(const char *path, struct diag *diag)
{
    struct csv_table *csv = NULL;
    if (csv_load(&csv, path, diag) != STATUS_OK)
        return NULL;
    bool *rows = xcalloc((size_t)csv_rows(csv) + 1, sizeof *rows);
    for (int r = 0; r < csv_rows(csv); r++) {
        const char *used = validate_used_in_fit(csv, r), *key = strstr(used, ": ");
        rows[r] = key ? training_fit_has(key + 2) : *used != '\0';
    }
    csv_release(csv);
    return rows;
}
