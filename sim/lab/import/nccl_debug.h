/* What NCCL says of itself with NCCL_DEBUG=INFO, and settings of its environment: "# env:
 * NCCL_MIN_CTAS=24", a command line, "NCCL_ALGO set by environment to Ring". Read line by line,
 * wherever in a line it stands; other lines say nothing.
 *
 *   24 coll channels, 16 nvls channels, 32 p2p channels ..., also "Channel 00/16 :" NCCL version
 *   2.26.2+cuda12.8 Using network IB; Channel 00/0 : 7[7] -> 8[0] [send] via NET/IB/0/GDRDMA NET/IB
 *   : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB ... NCCL_NVLS_ENABLE, NCCL_MIN_ and MAX_ NCHANNELS or
 *   CTAS, NCCL_ALGO, NCCL_PROTO, NCCL_IB_DISABLE, NCCL_NET, NCCL_P2P_DISABLE, NCCL_NET_GDR_LEVEL,
 *   NCCL_NET_DISABLE_GDR
 *
 * Ignored: which communicator a line is of. Where they have different numbers of channels, none is
 * taken. */
#ifndef FLOPCAST_IMPORT_NCCL_DEBUG_H
#define FLOPCAST_IMPORT_NCCL_DEBUG_H

#include "base/arena.h"
#include "base/status.h"

enum nccl_said { NCCL_NOT_SAID, NCCL_ON, NCCL_OFF };

struct nccl_settings { /* 0, NULL: not said */
    int channels, min_channels, max_channels, nics;
    bool channels_differ;
    const char *version, *algorithm, *protocol;
    enum nccl_said nvls, rdma, gpudirect, p2p; /* rdma off: sockets */
};

void nccl_settings_line(struct nccl_settings *out, const char *line, struct arena *arena);

/* Adds what a file says, as NCCL_DEBUG_FILE is; one that says nothing is STATUS_INPUT. */
enum status nccl_settings_read(
    struct nccl_settings *out, const char *path, struct arena *arena, struct diag *diag);

#endif
