/* A rank keeps in mind which rows it was given; the others it has made. To rank 0 it sends its
 * database without those that were given, puts back what it had, and from then on they are given,
 * too. */
#include "store/share.h"

#include "store/database.h"
#include "store/merge.h"

#include <stdlib.h>

static const char what_shared[] = "share the database with other ranks";

/* All rows that there are now have been given, or delivered. */
static const char mark_sql[] =
    "DROP TABLE IF EXISTS temp.given_point; DROP TABLE IF EXISTS temp.given_sample;DROP TABLE IF "
    "EXISTS temp.given_outcome;CREATE TEMP TABLE given_point AS SELECT id FROM main.point;"
    "CREATE TEMP TABLE given_sample AS SELECT identity, draw, sample FROM main.sample;"
    "CREATE TEMP TABLE given_outcome AS SELECT identity FROM main.outcome";
/* What belongs to a point goes with it. */
static const char forget_sql[] =
    "DELETE FROM main.point WHERE id IN given_point;"
    "DELETE FROM main.sample WHERE (identity, draw, sample) IN given_sample;"
    "DELETE FROM main.outcome WHERE identity IN given_outcome; VACUUM main";

enum status store_open_of_rank(
    struct store **out, const char *path, const struct ranks *ranks, struct diag *diag)
{
    return store_open(out, path && ranks_is_first(ranks) ? path : ":memory:", STORE_WRITE, diag);
}

enum status store_share(struct store *store, struct ranks *ranks, struct diag *diag)
{
    size_t n = 0;
    if (ranks_count(ranks) == 1)
        return STATUS_OK;
    if (ranks_is_first(ranks)) {
        unsigned char *bytes = database_bytes(store, &n);
        ranks_give(ranks, bytes, n);
        sqlite3_free(bytes);
        return STATUS_OK;
    }
    unsigned char *bytes = ranks_take(ranks, &n);
    bool taken = database_take(store, "main", bytes, n);
    free(bytes);
    return taken ? database_exec(store, mark_sql, what_shared, diag)
                 : database_fail(store, what_shared, diag);
}

/* Rows that this rank has made, to rank 0. */
static enum status deliver(struct store *store, struct ranks *ranks, struct diag *diag)
{
    size_t n = 0, n_all = 0;
    unsigned char *all = database_bytes(store, &n_all);
    enum status status = database_exec(store, forget_sql, what_shared, diag);
    unsigned char *bytes = database_bytes(store, &n);
    ranks_deliver(ranks, bytes, n);
    sqlite3_free(bytes);
    if (status == STATUS_OK && !database_take(store, "main", all, n_all))
        status = database_fail(store, what_shared, diag);
    sqlite3_free(all);
    return status == STATUS_OK ? database_exec(store, mark_sql, what_shared, diag) : status;
}

enum status store_gather(struct store *store, struct ranks *ranks, struct diag *diag)
{
    enum status status = STATUS_OK;
    unsigned char *bytes;
    size_t n = 0;
    if (ranks_count(ranks) == 1)
        return STATUS_OK;
    if (!ranks_is_first(ranks))
        return deliver(store, ranks, diag);
    while ((bytes = ranks_collect(ranks, &n, diag))) {
        struct store_merged added;
        if (status == STATUS_OK)
            status = store_merge_bytes(store, bytes, n, &added, diag);
        free(bytes);
    }
    return status;
}
