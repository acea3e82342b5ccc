/* Private to cli: the part of `flopcast validate` about single GPUs and single nodes, where no network hides what the
 * kernels take: errors by framework, one stack profile each. */
#ifndef FLOPCAST_CLI_VALIDATE_NODE_H
#define FLOPCAST_CLI_VALIDATE_NODE_H

#include "validate/validate.h"

#include <stdio.h>

/* A table by stack profile and whether a fit rests on the rows. Rows without a stack stand under their source: the
 * GPU's own numbers are then the profile. Nothing when no row is of one node. */
void validate_node_print(FILE *out, const struct validate_table *rows);

#endif
