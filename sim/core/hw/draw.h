/* What a machine may be like, given how well its numbers are known: a draw of every number that
 * speeds are made of (a rate, a latency, a share), in GPU, node and cluster.
 *
 * How far a number may be off, one standard deviation: its std_error, whatever its kind. Where
 * there is none, by kind, relative: DRAW_ASSUMED, DRAW_MEASURED; a datasheet's number stays, what
 * is reached of it being another number's matter. Counts, capacities, powers and prices stay unless
 * they have a std_error. Draws are normal in the logarithm of a number, and of a share in that of
 * share / (1 - share), so that both stay what they are: the filed value is the median. Both kinds'
 * spreads are assumed, and for all numbers alike.
 *
 * A fitted number says which parameter it is by `fit: <id>` beside its source: numbers of the same
 * key and id are one parameter and get one draw, in whatever file or point they are. Draws and
 * correlations know them by key and id, so that the words of a source may be mended. Where there is
 * no id (every other kind, and a fitted number that its user has not named), numbers of the same
 * key and source text are one parameter: one sentence is one assumption.
 *
 * Parameters of one fit are drawn with the correlations of that fit (struct hw_fits); what is in no
 * such list is drawn independently. */
#ifndef FLOPCAST_HW_DRAW_H
#define FLOPCAST_HW_DRAW_H

#include "config/config.h"
#include "hw/hw.h"

#include <stdint.h>

/* Assumed: where a second source of an assumed number is at hand (attention on A100 0.50 to 0.73,
 * speed spread 1.3 and 1.76 %), they are about this far from their mean. Of the logarithm. */
#define DRAW_ASSUMED 0.2
/* Assumed: measured elsewhere, on one machine, often read off a table of rounded numbers. */
#define DRAW_MEASURED 0.05

/* A fit's parameters, and how their errors go together. */
struct hw_fit {
    int n;
    const char **keys, **ids; /* as in the files */
    double *factor;           /* n x n, lower triangle: Cholesky factor of the correlations */
};
struct hw_fits {
    struct hw_fit *list;
    int n;
};

/* A file such as topologies/fitted/correlations.yaml:
 *
 *   fits:
 *     - parameters:
 *         - {key: gemm_sustained, fit: training/h100}
 *         - {key: norm_row_time, fit: training/a100-h100}
 *       correlations: [[0.3]] # a list a parameter from the second on: with those before it
 *
 * Correlations that cannot be (their matrix is not positive definite) are an error. */
enum status hw_fits_load(
    struct hw_fits *out, const char *path, struct arena *arena, struct diag *diag);

/* The draw number `draw` of a seed; the same for the same machine, whatever was drawn before. */
void hw_draw(struct hw *hw, const struct hw_fits *fits, uint64_t seed, uint64_t draw);

/* A parameter that draws vary: where its number stands first, and how far it may be off. */
struct hw_parameter {
    const char *path;     /* "gpu.gemm_sustained" */
    const char *key, *id; /* by which draws and correlations know it */
    struct quantity number;
    enum dimension dimension;
    double spread; /* one standard deviation, of the logarithm or of that of share / (1 - share) */
    double error;  /* the same of the number, over its value */
};

/* All of them, each once, in the order of the files' keys; their number. In the arena. */
int hw_parameters(const struct hw_parameter **out, const struct hw *hw, struct arena *arena);

/* Moves one by this number of standard deviations, in all places that it has; nothing else. */
void hw_shift(struct hw *hw, const struct hw_parameter *parameter, double by);

/* Of the draws of two parameters. */
double hw_correlation(
    const struct hw_fits *fits, const struct hw_parameter *a, const struct hw_parameter *b);

/* The same of one number that stands elsewhere, a stack profile's. */
void hw_draw_quantity(struct quantity *q, const struct config_field *field,
    const struct hw_fits *fits, uint64_t seed, uint64_t draw);

/* A standard normal draw of the same kind for a number that is in no file: the costs of the host,
 * say. */
double hw_draw_normal(const char *key, const char *parameter, uint64_t seed, uint64_t draw);

#endif
