#include "calibrate/robust.h"

#include <gsl/gsl_blas.h>
#include <gsl/gsl_multifit_nlinear.h>
#include <math.h>

enum { REWEIGHTINGS = 40, MAX_STEPS = 100, FEW_STEPS = 3 };
static const double STILL_SHARE = 0.1; /* of the step of finite differences: a fit that moves less stands still */

/* Residuals that are simulations are rough at the size of a step, and cost more than weights: few steps between
 * weightings do. */
static bool is_rough(const struct robust_problem *p)
{
    return p->step > 0;
}

static double still(const struct robust_problem *p, double smooth)
{
    return is_rough(p) ? STILL_SHARE * p->step : smooth;
}

static void weigh(gsl_vector *weights, gsl_vector *off, const gsl_vector *at, const struct robust_problem *p)
{
    p->residuals(at, p->context, off);
    for (size_t i = 0; i < p->n_rows; i++)
        gsl_vector_set(weights, i, 1 / (1 + pow(gsl_vector_get(off, i) / p->scale, 2)));
}

static bool search(gsl_multifit_nlinear_workspace *work, const struct robust_problem *p, gsl_vector *at)
{
    gsl_multifit_nlinear_fdf problem = {.f = p->residuals, .n = p->n_rows, .p = p->n_parameters, .params = p->context};
    gsl_vector *weights = gsl_vector_alloc(p->n_rows), *off = gsl_vector_alloc(p->n_rows);
    gsl_vector *before = gsl_vector_alloc(p->n_parameters);
    gsl_vector_set_all(weights, 1);
    if (p->starts_near)
        weigh(weights, off, at, p);
    double moved = HUGE_VAL;
    for (int round = 0; round < REWEIGHTINGS && moved > still(p, 1e-6); round++) {
        int info;
        gsl_vector_memcpy(before, at);
        gsl_multifit_nlinear_winit(at, weights, &problem, work);
        gsl_multifit_nlinear_driver(
            is_rough(p) ? FEW_STEPS : MAX_STEPS, still(p, 1e-9), 1e-9, 0, NULL, NULL, &info, work);
        gsl_vector_memcpy(at, gsl_multifit_nlinear_position(work));
        weigh(weights, off, at, p);
        gsl_vector_sub(before, at);
        moved = gsl_blas_dnrm2(before);
    }
    gsl_vector_free(weights);
    gsl_vector_free(off);
    gsl_vector_free(before);
    return moved < 1e-3; /* a tenth of a percent: below what is asked of the numbers */
}

static gsl_multifit_nlinear_workspace *begin(const struct robust_problem *problem)
{
    gsl_multifit_nlinear_parameters how = gsl_multifit_nlinear_default_parameters();
    if (problem->step > 0)
        how.h_df = problem->step;
    return gsl_multifit_nlinear_alloc(gsl_multifit_nlinear_trust, &how, problem->n_rows, problem->n_parameters);
}

static void covariance_of(
    gsl_matrix *covariance, gsl_multifit_nlinear_workspace *work, const struct robust_problem *problem)
{
    double sum = 0;
    const gsl_vector *off = gsl_multifit_nlinear_residual(work);
    gsl_blas_ddot(off, off, &sum);
    gsl_multifit_nlinear_covar(gsl_multifit_nlinear_jac(work), 0, covariance);
    gsl_matrix_scale(covariance, sum / (double)(problem->n_rows - problem->n_parameters));
}

bool robust_fit(gsl_vector *at, gsl_matrix *covariance, const struct robust_problem *problem)
{
    gsl_multifit_nlinear_workspace *work = begin(problem);
    bool good = search(work, problem, at);
    covariance_of(covariance, work, problem);
    gsl_multifit_nlinear_free(work);
    return good;
}

void robust_covariance(const gsl_vector *at, gsl_matrix *covariance, const struct robust_problem *p)
{
    gsl_multifit_nlinear_fdf problem = {.f = p->residuals, .n = p->n_rows, .p = p->n_parameters, .params = p->context};
    gsl_multifit_nlinear_workspace *work = begin(p);
    gsl_vector *weights = gsl_vector_alloc(p->n_rows), *off = gsl_vector_alloc(p->n_rows);
    weigh(weights, off, at, p);
    gsl_multifit_nlinear_winit(at, weights, &problem, work);
    covariance_of(covariance, work, p);
    gsl_vector_free(weights);
    gsl_vector_free(off);
    gsl_multifit_nlinear_free(work);
}
