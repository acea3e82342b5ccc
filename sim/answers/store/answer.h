/* Answers in the database: what a command has found out, as a head and rows of cells: studies of a
 * scenario, validations, fits of parameters, checks of logs and traces. The views of schema.sql
 * name their columns for SQL. One transaction: an answer is there whole or not at all.
 *
 *     store_answer_begin
 *       store_answer_put: rows, in any order
 *     store_answer_end */
#ifndef FLOPCAST_STORE_ANSWER_H
#define FLOPCAST_STORE_ANSWER_H

#include "store/record.h"
#include "store/store.h"

struct store_answer {
    struct store *store;
    int64_t id, rows; /* id: of the head */
};

/* kind: "sensitivity", "nccl" ... On failure there is no answer to end, and out->store is NULL. */
enum status store_answer_begin(struct store_answer *out, struct store *store, const char *kind,
    const struct record_cell *head, int n, struct diag *diag);

/* A row of this part of the answer. */
enum status store_answer_put(struct store_answer *answer, const char *part,
    const struct record_cell *cells, int n, struct diag *diag);

/* Commits when status is STATUS_OK, else (or when that fails) rolls back. */
enum status store_answer_end(struct store_answer *answer, enum status status, struct diag *diag);

#endif
