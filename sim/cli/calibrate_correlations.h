/* Private to cli: how fitted numbers go together, of `flopcast calibrate show`. */
#ifndef FLOPCAST_CLI_CALIBRATE_CORRELATIONS_H
#define FLOPCAST_CLI_CALIBRATE_CORRELATIONS_H

#include "base/status.h"

#include <stdio.h>

/* The pairs of a file as topologies/fitted/correlations.yaml that go together by half or more, the closest first. Above
 * 0.95 one sum or product of the two is measured, and neither of them: a warning each. */
enum status calibrate_correlations_print(FILE *out, const char *path, struct diag *diag);

#endif
