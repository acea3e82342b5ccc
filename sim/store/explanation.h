/* Explanations in the database. */
#ifndef FLOPCAST_STORE_EXPLANATION_H
#define FLOPCAST_STORE_EXPLANATION_H

#include "study/explain.h"
#include "store/store.h"

/* In one transaction. label: what the curve is. *first: 0 for the first curve of a command, which sets it to its id;
 * the others have it from there, and a figure shows them together. */
enum status store_put_explanation(struct store *store, const struct scenario_waterfall *waterfall, const char *label,
    const struct scenario_point *small, const struct scenario_point *large, int64_t *first, struct diag *diag);

#endif
