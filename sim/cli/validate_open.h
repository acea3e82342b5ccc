/* Private to cli: `flopcast validate --open`, the rows that are off and what is known of each. */
#ifndef FLOPCAST_CLI_VALIDATE_OPEN_H
#define FLOPCAST_CLI_VALIDATE_OPEN_H

#include "validate/validate.h"

#include <stdio.h>

/* The open rows, grouped by their suspected cause, after validate_run(). */
void validate_open_print(FILE *out, const struct validate_table *rows);

/* The tables of collectives that are open or contradicted, by the columns status and suspected_cause of the file
 * (results/measured/nccl_tables.csv). They are not simulated here: `flopcast calibrate fit nccl` prints their errors.
 */
enum status validate_open_print_nccl(FILE *out, const char *path, struct diag *diag);

#endif
