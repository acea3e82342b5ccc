/* --algo, --proto: what NCCL_ALGO and NCCL_PROTO would be set to. */
#ifndef FLOPCAST_CLI_FORCE_H
#define FLOPCAST_CLI_FORCE_H

#include "coll/coll.h"

#include <argp.h>

enum { KEY_ALGO = 400, KEY_PROTO };
#define FORCE_ALGORITHMS "Ring, Tree, NVLS, NVLSTree, CollNetDirect, CollNetChain, PAT, P2P or Hierarchical"
#define FORCE_PROTOCOLS "LL, LL128 or Simple"
#define FORCE_OPTIONS                                                                                                  \
    {"algo", KEY_ALGO, "NAME", 0, FORCE_ALGORITHMS ", as NCCL_ALGO", 0},                                               \
    {                                                                                                                  \
        "proto", KEY_PROTO, "NAME", 0, FORCE_PROTOCOLS ", as NCCL_PROTO", 0                                            \
    }

/* One of the two options; any case. */
void force_option(struct coll_force *force, int key, const char *arg, struct argp_state *state);

#endif
