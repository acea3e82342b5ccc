/* Private to cli: the collectives of a step and what binds them, as explain and whatif print them.
 */
#ifndef FLOPCAST_CLI_COMM_H
#define FLOPCAST_CLI_COMM_H

#include "study/comm.h"

#include <stdio.h>

/* One of several steps side by side. */
struct comm_side {
    const char *label; /* of its columns; "" when it is the only one */
    const struct scenario_comm *comm;
};

/* A table of the collectives that take longest, at most `most` of them, and of those of any side;
 * the first side's order. A table of one side also has busbw and algorithm. */
void comm_table(
    FILE *out, const struct comm_side *sides, int n_sides, int most, struct arena *arena);

#endif
