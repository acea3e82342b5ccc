/* Private to store: conditions over the columns and settings of points. */
#ifndef FLOPCAST_STORE_WHERE_H
#define FLOPCAST_STORE_WHERE_H

#include "store/database.h"

/* The path of a setting of the points in shown_setting, which name is, or the last name of which it
 * is. In the arena; NULL: there is none, or (*many) several. */
const char *where_path(struct store *store, const char *name, bool *many, struct arena *arena);

/* A condition of the user's may be any SQL, also one that does not end or that fills the memory:
 * from here to where_unlimit() it is interrupted (SQLITE_INTERRUPT; where_was_too_long()) or
 * refused. */
struct where_limit {
    int steps, bytes;
};
void where_limit(struct where_limit *limit, sqlite3 *db);
void where_unlimit(struct where_limit *limit, sqlite3 *db);
bool where_was_too_long(const struct where_limit *limit);

/* A database of somebody's may have views that do not end: from here on what its queries take all
 * together is bounded. */
void where_bound_reading(struct store *store);

/* Takes out of shown_setting the points that do not fit. */
enum status where_keep(struct store *store, const char *expression, struct diag *diag);

/* "they differ in cluster.gpus (8, 16, 32), train.micro_batch (1, 2)": the settings of these
 * points. In the arena. */
const char *where_differ(struct store *store, struct arena *arena);

/* "train.micro_batch = 8": one of these, for an example; NULL when they differ in nothing. */
const char *where_example(struct store *store, struct arena *arena);

#endif
