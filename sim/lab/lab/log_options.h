/* Options of the commands that read logs of nccl-tests. */
#ifndef FLOPCAST_LAB_LOG_OPTIONS_H
#define FLOPCAST_LAB_LOG_OPTIONS_H

#include "import/nccl.h"
#include "options/arguments.h"

/* --collective, --ranks, --nodes: what a log of nccl-tests does not say; in struct nccl_options
 * `nccl` of type. of: whose they are, before each sentence of the help, as "Of nccl-tests: ". */
#define LOG_OPTIONS(of, type)                                                                      \
    {"collective", "NAME", of "what was measured, where a log does not say it", OPTION_TAKE,       \
        .member = offsetof(type, nccl.collective), .take = argument_collective},                   \
        {"ranks", "N", of "how many ranks ran", OPTION_COUNT,                                      \
            .member = offsetof(type, nccl.ranks), .most = 1 << 20},                                \
    {                                                                                              \
        "nodes", "N", of "on how many nodes; also where a log counts trays as nodes",              \
            OPTION_COUNT, .member = offsetof(type, nccl.nodes), .most = 1 << 20                    \
    }
void argument_collective(void *name, const struct argument *argument);

#endif
