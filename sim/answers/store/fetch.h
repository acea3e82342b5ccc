/* Private to store: a point's result as it was put in (put.h). */
#ifndef FLOPCAST_STORE_FETCH_H
#define FLOPCAST_STORE_FETCH_H

#include "store/database.h"

/* All that store/record.h, "memory" of the JSON and the words of a point without memory are made
 * of. Not the timeline and the spans; samples are elsewhere. */
enum status fetch_result(struct store *store, int64_t point_id, struct scenario_result *out,
    struct arena *arena, struct diag *diag);

extern const char fetch_what[]; /* "read the results", for messages */

#endif
