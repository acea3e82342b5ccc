/* --set KEY=VALUE of commands that have hardware and no scenario: its numbers, by the paths of
 * hw/override.h. */
#ifndef FLOPCAST_OPTIONS_GIVEN_H
#define FLOPCAST_OPTIONS_GIVEN_H

#include "hw/override.h"
#include "scenario/scenario.h"

/* The numbers of a cluster, its node and its GPU. */
enum status given_cluster(struct hw *hw, const struct hw_sources *sources,
    const struct scenario_override *list, int n, struct arena *arena, struct diag *diag);

#endif
