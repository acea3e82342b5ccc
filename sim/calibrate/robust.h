/* Private to sim/calibrate: robust least squares for the fits of this module.
 *
 * Minimises the residuals f (logarithms of model over measurement, so that small and large times count alike) by GSL's
 * Levenberg-Marquardt, reweighted with 1 / (1 + (residual / scale)^2) (Cauchy) until it stands still, so that single
 * odd rows do not bend the rest. */
#ifndef FLOPCAST_CALIBRATE_ROBUST_H
#define FLOPCAST_CALIBRATE_ROBUST_H

#include <gsl/gsl_matrix.h>
#include <gsl/gsl_vector.h>
#include <stdbool.h>
#include <stddef.h>

/* Correlation from which on two parameters stand for one another, and a fit says so; assumed. */
#define CALIBRATE_TIED 0.8

struct robust_problem {
    int (*residuals)(const gsl_vector *parameters, void *context, gsl_vector *out); /* returns GSL_SUCCESS */
    void *context;
    size_t n_rows, n_parameters; /* more rows than parameters */
    double scale;                /* residual at which a row counts half */
    double
        step; /* relative step of the finite differences; 0: GSL's own, for residuals that are smooth to the last bit */
    bool starts_near; /* the start is near enough to weigh the rows by it; else they begin alike, and a fit with kinks
                         comes back from there to another place of a flat valley */
};

/* at: the start in, the solution out. covariance (n_parameters squared) out, scaled by the variance of the residuals:
 * the rows' own scatter is not known. Returns whether the last rounds stood still. */
bool robust_fit(gsl_vector *at, gsl_matrix *covariance, const struct robust_problem *problem);

/* The covariance at `at`, which is taken for the solution: one set of differences instead of a search. */
void robust_covariance(const gsl_vector *at, gsl_matrix *covariance, const struct robust_problem *problem);

#endif
