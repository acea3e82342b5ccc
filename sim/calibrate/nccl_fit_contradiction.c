/* Tables of one machine that say different things. */
#include "calibrate/nccl_fit.h"

#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <string.h>

static bool same_machine_and_settings(const struct nccl_case *a, const struct nccl_case *b)
{
    return a != b && a->use != NCCL_BAD && b->use != NCCL_BAD && strcmp(a->topology, b->topology) == 0 &&
           a->kind == b->kind && a->ranks / a->nodes == b->ranks / b->nodes &&
           a->force.algorithm == b->force.algorithm && a->force.protocol == b->force.protocol &&
           a->channels == b->channels && a->launch_s == b->launch_s;
}

/* Between the sizes of a table the logarithm of time goes straight with the logarithm of bytes; 0 outside of them. */
static double measured_s(const struct nccl_case *table, double bytes)
{
    const struct nccl_point *below = NULL, *above = NULL;
    for (int i = 0; i < table->points.n; i++) {
        const struct nccl_point *point = &table->points.at[i];
        if (point->bytes <= bytes && (!below || point->bytes > below->bytes))
            below = point;
        if (point->bytes >= bytes && (!above || point->bytes < above->bytes))
            above = point;
    }
    if (!below || !above)
        return 0;
    double span = log(above->bytes / below->bytes), part = span > 0 ? log(bytes / below->bytes) / span : 0;
    return below->measured_s * pow(above->measured_s / below->measured_s, part);
}

/* By the sizes of a: median factor that two tables are apart: 1 or more on groups of one size, whichever is the slower;
 * else how much slower the smaller group is. */
static double factor(const struct nccl_case *a, const struct nccl_case *b, double min_bytes, double max_bytes)
{
    size_t n = 0;
    double *factors = xcalloc((size_t)a->points.n, sizeof *factors);
    for (int i = 0; i < a->points.n; i++) {
        const struct nccl_point *point = &a->points.at[i];
        double other_s = measured_s(b, point->bytes);
        if (point->bytes >= min_bytes && point->bytes < max_bytes && other_s > 0)
            factors[n++] = a->nodes == b->nodes  ? exp(fabs(log(point->measured_s / other_s)))
                           : a->nodes < b->nodes ? point->measured_s / other_s
                                                 : other_s / point->measured_s;
    }
    gsl_sort(factors, 1, n);
    double median = n > 0 ? gsl_stats_median_from_sorted_data(factors, 1, n) : 1;
    free(factors);
    return median;
}

struct nccl_contradiction nccl_case_contradiction(
    const struct nccl_fit *fit, const struct nccl_case *which, double min_bytes, double max_bytes)
{
    struct nccl_contradiction worst = {NULL, 1};
    for (int i = 0; i < fit->cases.n; i++) {
        const struct nccl_case *other = &fit->cases.at[i];
        bool comparable = which->nodes == other->nodes || (which->nodes > 1 && other->nodes > 1);
        if (!comparable || !same_machine_and_settings(which, other))
            continue;
        double apart = fmax(factor(which, other, min_bytes, max_bytes), factor(other, which, min_bytes, max_bytes));
        if (apart > worst.factor)
            worst = (struct nccl_contradiction){other, apart};
    }
    /* Nothing lies within the wanted error of both when they are further apart than this. */
    static const double most = (1 + NCCL_LARGE_WANTED) / (1 - NCCL_LARGE_WANTED);
    if (worst.factor <= most)
        worst.with = NULL;
    return worst;
}
