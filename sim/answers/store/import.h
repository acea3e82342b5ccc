/* Private to store: an import that is under way. */
#ifndef FLOPCAST_STORE_IMPORT_H
#define FLOPCAST_STORE_IMPORT_H

#include "store/insert.h"
#include "store/measurement.h"

struct store_import {
    struct store *store;
    int64_t source_id; /* of the file whose rows come now */
};

/* One integer of one row. */
enum status import_read_int(
    struct store_import *import, const char *sql, int64_t *out, struct diag *diag);

#endif
