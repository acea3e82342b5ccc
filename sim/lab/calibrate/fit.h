/* Private to calibrate: the one driver of all fits of a model's numbers to measurements.
 *
 * Minimises log(model / measured) of the rows, so that small and large times count alike, and
 * beside them what each parameter is expected to be, by GSL's Levenberg-Marquardt, reweighted with
 * 1 / (1 + (residual / scale)^2) (Cauchy) until it stands still, so that single odd rows do not
 * bend the rest. Standard errors and covariance are scaled by the variance of the residuals: the
 * rows' own scatter is not known. A parameter on which no row depends gets a standard error of 0.
 *
 * A fit fills in rows and parameters, calls fit_solve(), and prints by fit_print_...(); what it
 * found goes to files by calibrate/fit_files.h, to a database by store/answer.h. */
#ifndef FLOPCAST_CALIBRATE_FIT_H
#define FLOPCAST_CALIBRATE_FIT_H

#include "base/units.h"
#include "base/vec.h"
#include "config/config.h"
#include "config/csv.h"

#include <stdbool.h>
#include <stdio.h>

/* Correlation from which on two parameters stand for one another, and a fit says so; assumed. */
#define FIT_TIED 0.8

/* What is varied of a value x: log(x), log(x / (1 - x)), which keeps a share one, or x itself. */
enum fit_scale { FIT_LOG, FIT_LOGIT, FIT_LINEAR };

struct fit_parameter {
    const char *key, *id; /* as in the files; id: NULL where nothing but the key tells it */
    enum dimension dimension;
    enum fit_scale scale;
    struct quantity filed;
    struct quantity fitted; /* its value is the start, then the solution */
    struct quantity *at[2]; /* where the model reads it; NULL: settle() sees to it */
    double expected;        /* a value that it is expected near, > 0; 0: none */
    double weight; /* of the distance from it, as varied: the residual of a row that it counts as */
    bool fixed;    /* not varied */
    int number;    /* of what is varied; -1: fixed. Set by fit_solve() */
};

struct fit_row {
    const void *row;
    double measured; /* > 0 */
    double factor;   /* of its residual */
    bool left_out;   /* counts as a row that is met */
};

struct fit {
    VEC(struct fit_parameter) parameters;
    VEC(struct fit_row) rows;
    void *self;
    double (*predict)(const void *self, const void *row); /* > 0, in the unit of measured */
    /* Whether the row's prediction may read the parameter; NULL: all read all. A difference in one
     * parameter then asks those rows alone. */
    bool (*reads)(const void *self, const void *row, const struct fit_parameter *parameter);
    void (*settle)(
        void *self); /* parameters have new values; NULL: the model reads them where they are */
    double scale;    /* residual at which a row counts half */
    double step;  /* relative step of the finite differences; 0: GSL's own, for models smooth to the
                     last bit */
    double range; /* a value stays within its start times and over this; 0: any */
    bool
        starts_near; /* the start is near enough to weigh the rows by it; else they begin alike, and
                        a fit with kinks comes back from there to another place of a flat valley */
    const char *source;
    size_t n_free;
    double *covariance; /* of what is varied, n_free squared; NULL before fit_solve() */
};

/* One more parameter of this key, read by the model at `at`, whose value starts as said. */
struct fit_parameter *fit_add(
    struct fit *fit, const char *key, enum dimension dimension, struct quantity *at, double start);
void fit_add_row(struct fit *fit, const void *row, double measured);

/* Whether the rows determine the parameters: there are more of them, and the search stood still. */
bool fit_solve(struct fit *fit);
/* The start taken for the solution: its standard errors and covariance by one set of differences.
 */
void fit_covariance(struct fit *fit);
void fit_free(struct fit *fit);

/* log(model / measured) of a row at the numbers of the moment, without its factor. */
double fit_residual(const struct fit *fit, int row);
/* What fit_solve() makes smallest (Cauchy's), over the rows. */
double fit_cost(const struct fit *fit);

/* Its place among the names, which end with NULL; -1: it is none of them, or NULL. */
int fit_find_name(const char *const *names, const char *name);

/* Of model / measured - 1. */
struct fit_error {
    int n;
    double bias;              /* median */
    double median, p90, most; /* of its absolute value; all 0 without rows */
};
/* {0} is empty. */
struct fit_sample {
    VEC(double) off;
};
void fit_sample_add(struct fit_sample *sample, double model, double measured);
/* Empties the sample. */
struct fit_error fit_sample_error(struct fit_sample *sample);

/* The heading of the lines below. */
void fit_print_head(FILE *out, const char *name);
/* A number beside the one in its file; one that is not set is "-". group: of a format or a file, or
 * "". remark: behind it, or "". */
void fit_print_number(FILE *out, const char *group, const char *key, struct quantity filed,
    struct quantity found, enum dimension dimension, const char *remark);
/* Those numbers of a file that were found: keys (NULL at the end) where they are set, or, without
 * keys, what is measured or fitted and does not have the file's source. */
void fit_print_fields(FILE *out, const struct config_table *table, const void *filed,
    const void *found, const char *group, const char *const *keys);
void fit_print_parameters(FILE *out, const struct fit *fit);
/* The pairs that are tied. */
void fit_print_tied(FILE *out, const struct fit *fit);
/* Its error, where there are rows. */
void fit_print_error(FILE *out, const char *what, const char *use, struct fit_error error);
/* The correlations of what is varied, an entry of topologies/fitted/correlations.yaml (hw/draw.h).
 * Parameters that go with no other are left out. */
void fit_print_correlations(FILE *out, const struct fit *fit);

#endif
