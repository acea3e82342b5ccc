/* Private to sim/calibrate: the correlations of a fit as an entry of topologies/fitted/correlations.yaml (hw/draw.h).
 */
#ifndef FLOPCAST_CALIBRATE_CORRELATIONS_H
#define FLOPCAST_CALIBRATE_CORRELATIONS_H

#include <stddef.h>
#include <stdio.h>

/* covariance: of n parameters, n x n; keys and ids as in the files. Parameters that go with no other are
 * left out. */
void correlations_print(FILE *out, const char *const *keys, const char *const *ids, const double *covariance, int n);

#endif
