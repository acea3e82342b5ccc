/* Private to store: rows of a point. */
#ifndef FLOPCAST_STORE_PUT_H
#define FLOPCAST_STORE_PUT_H

#include "store/insert.h"

#include "base/vec.h"

/* A document that is stored, by the digest of what it was made of. */
struct put_document {
    uint64_t digest;
    int64_t id;
};

/* Documents, kept from one point to the next. Begins as {store}. */
struct put {
    struct store *store;
    VEC(struct put_document) documents;
};

/* Where a point belongs, and what it is. */
struct put_place {
    int64_t run_id;
    int position;
    const char *identity;
    int64_t simulated_id; /* the point that the result was taken from, whose timeline is copied; 0:
                             none */
};

void put_end(struct put *put);
void put_forget(struct put *put); /* after a rollback: documents may be gone */

/* Inside a transaction; *id: of the point. */
enum status put_point(struct put *put, const struct put_place *place,
    const struct scenario_point *point, const struct scenario_result *result, int64_t *id,
    struct diag *diag);
enum status put_band(
    struct put *put, int64_t point_id, const struct scenario_result *result, struct diag *diag);

extern const char put_what[]; /* "store the run", for messages */

#endif
