/* What published scaling curves say about what cluster files assume: gpu_speed_spread (with
 * gpu_speed_spread_below), host_jitter, network_jitter; and of a time that no file has: what each
 * collective over all ranks takes longer in the step for each rank, linear in the ranks. What is
 * proportional to compute and what is not differ in curves of one model at several batches: without
 * that time the spread stands for both.
 *
 * Rows: those of a table of runs with used_in_fit that lie on a curve of at least two sizes.
 * Residuals: log(predicted / measured) of a row's ratio to its curve's smallest cluster, in which
 * the level of the curve cancels. All clusters share one value of each, as their files do.
 * kernel_jitter averages out over a step and is not fitted. A time of a us a rank makes the ratio
 * of a row with n collectives over its N ranks and a step of t lower by n N a / t, less the same of
 * the curve's smallest cluster; that it is hidden in some steps is left out.
 *
 * Solved in one Gauss-Newton step from the filed values, with differences to CLUSTER_STEP times
 * each: what is lost is close to linear in each of them. Errors from the scatter of the residuals.
 * A parameter whose standard error is not below CLUSTER_DETERMINED of its filed value (the time a
 * rank: of what is fitted) is not determined: the worst of those keeps that value, and the rest is
 * solved again. */
#ifndef FLOPCAST_CALIBRATE_CLUSTER_FIT_H
#define FLOPCAST_CALIBRATE_CLUSTER_FIT_H

#include "base/status.h"

#include <stdbool.h>
#include <stdio.h>

#define CLUSTER_STEP                                                                               \
    1.5 /* assumed: large against the luck of a seed, of which all runs share one */
#define CLUSTER_DETERMINED 0.5 /* assumed: zero is two standard errors away */

enum { CLUSTER_SPREAD, CLUSTER_HOST, CLUSTER_NETWORK, CLUSTER_RANK, CLUSTER_PARAMETERS };
extern const char *const cluster_parameter_names[CLUSTER_PARAMETERS + 1];

struct cluster_fit {
    int rows; /* ratios */
    struct cluster_parameter {
        double filed;             /* the mean over rows; of CLUSTER_RANK 0 */
        double factor, std_error; /* fitted over filed; of CLUSTER_RANK us a rank and collective */
        bool determined; /* else both are of the last solution with it; without an effect on any
                          * row, filed and infinite
                          */
    } parameters[CLUSTER_PARAMETERS];
    double before, after; /* root mean square of the residuals, with the filed and (linearly) the
                             fitted values */
};

enum status cluster_fit_solve(
    struct cluster_fit *out, const char *table, const char *base, struct diag *diag);

void cluster_fit_print(FILE *out, const struct cluster_fit *fit);

#endif
