/* Private to cli: parts of what `flopcast validate` prints, after validate_run(). */
#ifndef FLOPCAST_CLI_VALIDATE_PARTS_H
#define FLOPCAST_CLI_VALIDATE_PARTS_H

#include "validate/validate.h"

#include <stdio.h>

/* --open: the rows that are off, grouped by their suspected cause. */
void validate_open_print(FILE *out, const struct validate_table *rows);

/* The tables of collectives that are open or contradicted, by the columns status and suspected_cause of the file
 * (results/measured/nccl_tables.csv). They are not simulated here: `flopcast calibrate fit nccl` prints their errors.
 */
enum status validate_open_print_nccl(FILE *out, const char *path, struct diag *diag);

/* Single GPUs and single nodes, where no network hides what the kernels take: errors by stack profile and whether a fit
 * rests on the rows. Rows without a stack stand under their source: the GPU's own numbers are then the profile. Nothing
 * when no row is of one node. */
void validate_node_print(FILE *out, const struct validate_table *rows);

/* Errors of predictions that were made before the measurements were known, beside today's of the same rows, by source.
 * Nothing where no row has one. */
void validate_first_sight_print(FILE *out, const struct validate_table *rows);

#endif
