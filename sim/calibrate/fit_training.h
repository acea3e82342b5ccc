/* Fits what only training shows: of the GPU files gemm_sustained and overlap_slowdown, of the stack profiles
 * attention_efficiency, attention_backward and pointwise_efficiency.
 *
 * Rows: those of a table of runs (validate/validate.h) whose used_in_fit is not empty; the rule by which they were
 * chosen stands in the table. Parameters: the quantities of kind fitted of these five names in the GPUs of the rows, as
 * their stack leaves them; those with the same name and the same source text are one, however many files have it.
 *
 * Residuals: log(predicted / measured) of the speed; robust (robust.h). A prediction is a run without noise, which
 * takes milliseconds, times what noise made of it with the values in the files: so the fit is to be repeated with its
 * results filed, until it stands still (twice will do). */
#ifndef FLOPCAST_CALIBRATE_FIT_TRAINING_H
#define FLOPCAST_CALIBRATE_FIT_TRAINING_H

#include "validate/validate.h"

#include <stdio.h>

struct training_parameter {
    const char *key, *source;
    struct quantity filed, fitted;
    int rows; /* that depend on it */
};

struct training_fit {
    struct validate_table table;
    VEC(struct training_parameter) parameters;
    double *noise;              /* by row: speed with noise over speed without, values as filed */
    struct training_memo *memo; /* by row: what was simulated last */
    double
        *covariance; /* of what is varied (logit of shares, log of the slowdown), parameters.n squared; NULL before */
};

/* rows: which of the table's rows, as validate_load has it. Free with training_fit_free(), also after an error. */
enum status training_fit_load(
    struct training_fit *out, const char *table, const char *base, const bool *rows, struct diag *diag);
enum status training_fit_solve(struct training_fit *fit, struct diag *diag);
void training_fit_free(struct training_fit *fit);

/* Loads the rows with used_in_fit, fits, and prints every parameter beside its filed value. */
enum status training_fit_print(FILE *out, const char *path, const char *base, struct diag *diag);

#endif
