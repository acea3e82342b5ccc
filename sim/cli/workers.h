/* Private to cli: what commands say of their workers before the first simulation. */
#ifndef FLOPCAST_CLI_WORKERS_H
#define FLOPCAST_CLI_WORKERS_H

#include "cli/arguments.h"
#include "crew/crew.h"
#include "scenario/identity.h"

/* One line on standard error where memory keeps some of the workers waiting. At most one for each number of workers in
 * a row: said is an int, the number of the last line, 0 at first. */
void workers_say(void *said, const struct crew_plan *plan);

/* A command's part of the simulations; they are said by workers_say(). said: 0, and there as long as the share is. */
struct scenario_share workers_share(
    struct crew *crew, const struct scenario_kept *kept, const struct shard *shard, int *said);

#endif
