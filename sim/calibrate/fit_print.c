#include "calibrate/fit.h"

#include "base/arena.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Assumed: a parameter that has no correlation as large as this is drawn independently; a band does not show it. */
static const double MATTERS = 0.1;

void fit_print_head(FILE *out, const char *name)
{
    fprintf(out, "%s\n  %-29s %14s %14s\n", name, "", "in the file", "fitted");
}

void fit_print_number(FILE *out, const char *group, const char *key, struct quantity filed, struct quantity found,
    enum dimension dimension, const char *remark)
{
    char before[64] = "-", now[64] = "-", error[64];
    if (quantity_is_set(filed))
        quantity_format(before, sizeof before, filed.value, dimension);
    if (quantity_is_set(found))
        quantity_format(now, sizeof now, found.value, dimension);
    fprintf(out, "  %-8s %-20s %14s %14s", group, key, before, now);
    if (found.kind == QUANTITY_FITTED)
        fprintf(out, "  +- %s", quantity_format(error, sizeof error, found.std_error, dimension));
    fprintf(out, "%s%s\n", *remark ? "  " : "", remark);
}

static bool is_printed(
    const struct config_field *field, struct quantity was, struct quantity is, const char *const *keys)
{
    if (field->type != FIELD_SOURCED || !(quantity_is_set(was) || quantity_is_set(is)))
        return false;
    for (int i = 0; keys && keys[i]; i++)
        if (strcmp(keys[i], field->key) == 0)
            return true;
    return !keys && (is.kind == QUANTITY_MEASURED || is.kind == QUANTITY_FITTED) && is.source != was.source;
}

void fit_print_fields(FILE *out, const struct config_table *table, const void *filed, const void *found,
    const char *group, const char *const *keys)
{
    for (int i = 0; i < table->n_fields; i++) {
        const struct config_field *field = &table->fields[i];
        const void *was = (const char *)filed + field->offset, *is = (const char *)found + field->offset;
        if (field->type == FIELD_SECTION)
            fit_print_fields(out, field->section, was, is, field->key, keys);
        else if (field->type == FIELD_SOURCED &&
                 is_printed(field, *(const struct quantity *)was, *(const struct quantity *)is, keys))
            fit_print_number(out, group, field->key, *(const struct quantity *)was, *(const struct quantity *)is,
                field->dimension, "");
    }
}

void fit_print_parameters(FILE *out, const struct fit *fit)
{
    for (int i = 0; i < fit->parameters.n; i++) {
        const struct fit_parameter *p = &fit->parameters.at[i];
        fit_print_number(out, "", p->key, p->filed, p->fitted, p->dimension, p->id ? p->id : "");
    }
}

static double correlation(const struct fit *fit, int a, int b)
{
    const struct fit_parameter *p = fit->parameters.at;
    if (p[a].number < 0 || p[b].number < 0)
        return 0;
    size_t n = fit->n_free, i = (size_t)p[a].number, j = (size_t)p[b].number;
    return fit->covariance[i * n + j] / sqrt(fit->covariance[i * n + i] * fit->covariance[j * n + j]);
}

static void print_name(FILE *out, const char *before, const struct fit_parameter *p)
{
    fprintf(out, "%s%s%s%s%s", before, p->key, p->id ? " (" : "", p->id ? p->id : "", p->id ? ")" : "");
}

void fit_print_tied(FILE *out, const struct fit *fit)
{
    for (int i = 0; i < fit->parameters.n; i++)
        for (int j = 0; j < i; j++) {
            double both = correlation(fit, i, j);
            if (!(fabs(both) > FIT_TIED))
                continue;
            fprintf(out, "  correlation %+.2f", both);
            print_name(out, ": ", &fit->parameters.at[i]);
            print_name(out, " and ", &fit->parameters.at[j]);
            fputc('\n', out);
        }
}

void fit_print_error(FILE *out, const char *what, const char *use, struct fit_error error)
{
    if (error.n > 0)
        fprintf(out, "  %-22s %-13s %5d rows: |model / measured - 1| median %5.1f %%, 90th percentile %5.1f %%\n", what,
            use, error.n, 100 * error.median, 100 * error.p90);
}

/* Those worth a line, in order. NaN, of a parameter that nothing determines, is none. */
static int choose(int *chosen, const struct fit *fit)
{
    int n_chosen = 0;
    for (int i = 0; i < fit->parameters.n; i++) {
        double most = 0;
        for (int j = 0; j < fit->parameters.n; j++)
            most = i == j ? most : fmax(most, fabs(correlation(fit, i, j)));
        if (most >= MATTERS)
            chosen[n_chosen++] = i;
    }
    return n_chosen;
}

void fit_print_correlations(FILE *out, const struct fit *fit)
{
    int *chosen = xcalloc((size_t)fit->parameters.n + 1, sizeof *chosen);
    int n_chosen = choose(chosen, fit);
    fputs("  - parameters:\n", out);
    for (int i = 0; i < n_chosen; i++) {
        const struct fit_parameter *p = &fit->parameters.at[chosen[i]];
        fprintf(out, "      - {key: %s, fit: ", p->key);
        json_write_string(out, p->id);
        fputs("}\n", out);
    }
    fputs("    correlations:\n", out);
    for (int i = 1; i < n_chosen; i++) {
        /* Two digits: tens of rows determine no more. Towards 0, which keeps what is nearly one parameter apart. */
        for (int j = 0; j < i; j++)
            fprintf(
                out, "%s%g", j ? ", " : "      - [", trunc(100 * correlation(fit, chosen[i], chosen[j])) / 100 + 0.0);
        fputs("]\n", out);
    }
    free(chosen);
}
