/* Fits what only training shows: of the GPU files gemm_sustained and conv_efficiency, of the stack
 * profiles attention_efficiency, attention_backward, pointwise_efficiency and step_pause,
 * norm_row_time of both, and the costs under a profile's host (scenario/stack.h).
 *
 * Rows: those of tables of runs (validate/validate.h) whose used_in_fit names a file, or a file and
 * one of these keys; the rule by which they were chosen stands in the table. Parameters: the
 * quantities of kind fitted of these names in the GPUs of the rows, as their stack leaves them, and
 * those of kind assumed that a row names as the key; those that are one parameter (hw/draw.h) are
 * fitted as one, however many files have it. A row that names "FILE: host" is for costs of the host
 * alone, one that names a rate for rates.
 *
 * Costs of the host are a property of software: they are to be seen on few nodes and to hold on
 * many. So a row of more than TRAINING_FIT_NODES nodes, or a profile of more than
 * TRAINING_FIT_NUMBERS such costs that are fitted, is an error.
 *
 * Priors: what direct measurements of kernels say of a parameter, with an error that has in it how
 * far a framework's kernels may be from those that were measured. Runs of one regime determine sums
 * of rates better than each of them: a parameter that they leave open ends where its prior is. In
 * the sum of squares a prior counts as a row does that is off by ROW_ERROR, 2 %, assumed: about
 * what left-out rows are off by.
 *
 * Residuals: log(predicted / measured) of the speed; robust (calibrate/fit.h). A prediction is a
 * run without noise, which takes milliseconds, times what noise made of it with the values in the
 * files: so the fit is to be repeated with its results filed, until it stands still (twice will
 * do).
 *
 * Cross-validation: for each family of rows, a source and a model, the fit on all others, and its
 * errors on that family. What no other row depends on keeps its filed value. */
#ifndef FLOPCAST_CALIBRATE_TRAINING_FIT_H
#define FLOPCAST_CALIBRATE_TRAINING_FIT_H

#include "calibrate/fit.h"
#include "validate/validate.h"

#include <stdio.h>

/* A rule, written before any fit by it. What is fitted to few nodes and has few numbers, all other
 * rows can contradict. */
enum { TRAINING_FIT_NODES = 4, TRAINING_FIT_NUMBERS = 5 };

/* Of a parameter. */
struct training_about {
    int rows;              /* that depend on it */
    struct quantity prior; /* unset: none */
};

struct training_fit {
    struct validate_table table;
    /* A row a row of the table: its speed without noise, measured as what noise makes of it. Those
     * without an error are left out. Parameters that are no rate are costs of section host, of a
     * stack profile. */
    struct fit fit;
    VEC(struct training_about) about; /* of every parameter */
    double *speeds;                   /* without noise, at the numbers of the moment */
    struct training_memo *memo;       /* by row: what was simulated last */
};

/* rows: which of the table's rows, as validate_load has it. Free with training_fit_free(), also
 * after an error. */
enum status training_fit_load(struct training_fit *out, const char *table, const char *base,
    const bool *rows, struct diag *diag);
/* The same of several tables, each with the rows that training_fit_rows() says. */
enum status training_fit_load_tables(struct training_fit *out, const char *const *tables, int n,
    const char *base, struct diag *diag);
/* Priors from a file such as topologies/fitted/priors.yaml:
 *
 *   priors:
 *     - {fit: training/h100, attention_backward: {value: 0.7, kind: measured, std_error: 0.1,
 *       source: "..."}}
 *
 * Those of fits that none of the rows is about are ignored. arena: holds their texts. */
enum status training_fit_priors(
    struct training_fit *fit, const char *path, struct arena *arena, struct diag *diag);
/* An error when the rows do not determine the parameters: the search ends nowhere, or where an
 * error is not finite. */
enum status training_fit_solve(struct training_fit *fit, struct diag *diag);
/* The filed values taken for the solution: their standard errors and covariance alone, in seconds.
 */
void training_fit_filed(struct training_fit *fit);
void training_fit_free(struct training_fit *fit);

/* Whether this is the name of a rate that is fitted here, or "host", as
 * used_in_fit calls all costs of the host together. */
bool training_fit_has(const char *key);

/* Which rows of the table say used_in_fit, with no key or one of these; to be freed. NULL where the
 * table cannot be read. */
bool *training_fit_rows(const char *path, struct diag *diag);

/* log(predicted / measured) of a row at the numbers of the moment; 0 where nothing can be compared.
 */
double training_fit_residual(const struct training_fit *fit, int row);

/* Every parameter beside its filed value, and the errors of the rows. */
void training_fit_print(FILE *out, const struct training_fit *fit);
/* Solves once for each family of rows, without it, and prints the errors of that family. */
enum status training_fit_cross_validate(FILE *out, struct training_fit *fit, struct diag *diag);

/* Every GPU file and stack profile of the rows with a number that the fit determines, once more in
 * that folder, under its own name (two of one name are an error); what is fitted says the tables as
 * its source, and keeps its id. */
enum status training_fit_write(
    const struct training_fit *fit, const char *folder, struct diag *diag);

#endif
