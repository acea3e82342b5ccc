/* Private to cli: what commands say of their workers before the first simulation. */
#ifndef FLOPCAST_CLI_WORKERS_H
#define FLOPCAST_CLI_WORKERS_H

#include "crew/crew.h"

/* One line on standard error where memory keeps some of the workers waiting. At most one for each number of workers in
 * a row: said is an int, the number of the last line, 0 at first. */
void workers_say(void *said, const struct crew_plan *plan);

#endif
