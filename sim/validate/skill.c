#include "validate/skill.h"

#include <gsl/gsl_fit.h>
#include <math.h>

/* Doublings from the curve's smallest cluster; 0 where the row has no ratio to another. */
static double doublings(const struct validate_table *table, const struct validate_row *row)
{
    return row->has_ratio ? log2((double)row->gpus / (double)table->rows.at[row->smallest].gpus) : 0;
}

struct validate_skill validate_skill(const struct validate_table *table)
{
    struct validate_skill skill = {0};
    VEC(double) at = {0}, losses = {0};
    for (int i = 0; i < table->rows.n; i++) {
        const struct validate_row *row = &table->rows.at[i];
        if (*row->used_in_fit == '\0' || doublings(table, row) <= 0)
            continue;
        vec_push(&at, doublings(table, row));
        vec_push(&losses, 1 - row->measured_ratio);
    }
    skill.n_fitted = at.n;
    double covariance = 0, squares = 0;
    if (at.n > 0)
        gsl_fit_mul(at.at, 1, losses.at, 1, (size_t)at.n, &skill.loss_of_doubling, &covariance, &squares);
    for (int i = 0; i < table->rows.n; i++) {
        const struct validate_row *row = &table->rows.at[i];
        if (*row->used_in_fit != '\0' || doublings(table, row) <= 0)
            continue;
        skill.n++;
        skill.mean += fabs(row->predicted_ratio - row->measured_ratio);
        skill.mean_of_rule += fabs(1 - skill.loss_of_doubling * doublings(table, row) - row->measured_ratio);
    }
    skill.mean /= skill.n ? skill.n : 1;
    skill.mean_of_rule /= skill.n ? skill.n : 1;
    vec_free(&at);
    vec_free(&losses);
    return skill;
}
