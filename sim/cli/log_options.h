/* --collective, --ranks, --nodes: what a log of nccl-tests does not say. */
#ifndef FLOPCAST_CLI_LOG_OPTIONS_H
#define FLOPCAST_CLI_LOG_OPTIONS_H

#include "import/nccl.h"

#include <argp.h>

enum { KEY_COLLECTIVE = 410, KEY_RANKS, KEY_NODES };
/* of: whose they are, before each sentence of the help, as "Of nccl-tests: ". */
#define LOG_OPTIONS(of)                                                                                                \
    {"collective", KEY_COLLECTIVE, "NAME", 0, of "what was measured, where a log does not say it", 0},                 \
        {"ranks", KEY_RANKS, "N", 0, of "how many ranks ran", 0},                                                      \
    {                                                                                                                  \
        "nodes", KEY_NODES, "N", 0, of "on how many nodes; also where a log counts trays as nodes", 0                  \
    }

/* One of the three. */
void log_option(struct nccl_options *out, int key, const char *arg, struct argp_state *state);

#endif
