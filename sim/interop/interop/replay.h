/* What `flopcast replay` and `flopcast trace scale` print alike. */
#ifndef FLOPCAST_INTEROP_REPLAY_H
#define FLOPCAST_INTEROP_REPLAY_H

#include "rows/records.h"
#include "exchange/replay.h"

/* A table of collectives behind the head; nothing where there are none. For programs the step
 * before them. */
void replay_print_comm(const struct replay *replay, const char *head, enum records_format format);

#endif
