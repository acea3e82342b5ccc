/* Errors of predictions that were made before the measurements were known, beside today's of the same rows, by source.
 * Nothing where no row has one. */
#ifndef FLOPCAST_CLI_VALIDATE_FIRST_SIGHT_H
#define FLOPCAST_CLI_VALIDATE_FIRST_SIGHT_H

#include "validate/validate.h"

#include <stdio.h>

void validate_first_sight_print(FILE *out, const struct validate_table *rows);

#endif
