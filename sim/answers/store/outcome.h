/* What `flopcast validate` and `flopcast tune` keep: summaries of simulations by their identity,
 * each as soon as it is there, so that these commands can be stopped, killed, and divided into
 * shards, and simulate nothing twice. */
#ifndef FLOPCAST_STORE_OUTCOME_H
#define FLOPCAST_STORE_OUTCOME_H

#include "scenario/identity.h"
#include "store/store.h"

struct store_outcomes;

/* stop: asked after each one that is stored; NULL: never. Both borrowed until the end. */
struct store_outcomes *store_outcomes_begin(struct store *store, bool (*stop)(void));
/* For a search or a validation. */
const struct scenario_kept *store_outcomes_kept(struct store_outcomes *outcomes);
/* What could not be read or stored, which also ended the work. NULL is fine. */
enum status store_outcomes_end(struct store_outcomes *outcomes, struct diag *diag);

#endif
