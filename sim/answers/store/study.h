/* Studies in the database: what a command found out about a scenario, as a head and its rows. */
#ifndef FLOPCAST_STORE_STUDY_H
#define FLOPCAST_STORE_STUDY_H

#include "store/record.h"
#include "store/store.h"

/* cells: those of the first row, then of the next; a row has n_cells. */
struct store_study {
    const char *table, *rows_table; /* "sensitivity", "sensitivity_part" */
    const struct record_cell *head;
    const struct record_cell *cells;
    int n_head, n_cells, n_rows;
    int64_t *id; /* gets that of the head; NULL: nobody wants it */
};

/* In one transaction. The version, the rows' TABLE_id and their position are added. */
enum status store_put_study(
    struct store *store, const struct store_study *study, struct diag *diag);

#endif
