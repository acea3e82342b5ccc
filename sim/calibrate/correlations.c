#include "calibrate/correlations.h"

#include "base/arena.h"
#include "config/config.h"

#include <math.h>
#include <stdlib.h>

/* Assumed: a parameter that has no correlation as large as this is drawn independently; a band does not show it. */
static const double MATTERS = 0.1;

static double correlation(const double *covariance, int n, int i, int j)
{
    return covariance[i * n + j] / sqrt(covariance[i * n + i] * covariance[j * n + j]);
}

/* Those worth a line, in order. NaN, of a parameter that nothing determines, is none. */
static int choose(int *chosen, const double *covariance, int n)
{
    int n_chosen = 0;
    for (int i = 0; i < n; i++) {
        double most = 0;
        for (int j = 0; j < n; j++)
            most = i == j ? most : fmax(most, fabs(correlation(covariance, n, i, j)));
        if (most >= MATTERS)
            chosen[n_chosen++] = i;
    }
    return n_chosen;
}

void correlations_print(FILE *out, const char *const *keys, const char *const *ids, const double *covariance, int n)
{
    int *chosen = xcalloc((size_t)n + 1, sizeof *chosen);
    int n_chosen = choose(chosen, covariance, n);
    fputs("  - parameters:\n", out);
    for (int i = 0; i < n_chosen; i++) {
        fprintf(out, "      - {key: %s, fit: ", keys[chosen[i]]);
        json_write_string(out, ids[chosen[i]]);
        fputs("}\n", out);
    }
    fputs("    correlations:\n", out);
    for (int i = 1; i < n_chosen; i++) {
        /* Two digits: tens of rows determine no more. Towards 0, which keeps what is nearly one parameter apart. */
        for (int j = 0; j < i; j++)
            fprintf(out, "%s%g", j ? ", " : "      - [",
                trunc(100 * correlation(covariance, n, chosen[i], chosen[j])) / 100 + 0.0);
        fputs("]\n", out);
    }
    free(chosen);
}
