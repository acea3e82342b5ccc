/* What `flopcast replay` and `flopcast trace scale` print alike. */
#ifndef FLOPCAST_CLI_REPLAY_H
#define FLOPCAST_CLI_REPLAY_H

#include "exchange/replay.h"

/* A table of collectives behind the head; nothing where there are none. */
void replay_print_comm(const struct replay *replay, const char *head);

#endif
