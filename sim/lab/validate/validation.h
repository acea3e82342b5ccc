/* Validations in the database. */
#ifndef FLOPCAST_VALIDATE_VALIDATION_H
#define FLOPCAST_VALIDATE_VALIDATION_H

#include "store/record.h"
#include "store/store.h"
#include "validate/validate.h"

/* All rows in one transaction. file: the table of runs. */
enum status validation_put(
    struct store *store, const struct validate_table *table, const char *file, struct diag *diag);

enum { VALIDATION_CELLS = 32 };
/* A row as cells, in the order and by the names of the view validation_row. */
void validation_record(struct record_cell cells[VALIDATION_CELLS], const struct validate_row *row);

#endif
