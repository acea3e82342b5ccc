/* What a cluster draws from the meter, in W, by what its GPUs do.
 *
 *   busy       the compute stream runs kernels
 *   waiting    it does not: exposed communication, a pipeline's bubble, the host, a checkpoint, a
 *              restart
 *   idle       no process is on the GPU: a hot spare
 *
 * Each is a share of the board's limit (tdp), or of idle W, from the GPU's file (section power). To
 * it come a GPU's part of its node's host (CPUs, host memory, NVSwitches, fans, disks, losses of
 * power supplies), of the NICs, and of the ports of switches: the one that a NIC is plugged into
 * and, where the cluster's file says how its network is wired, both ends of the cables above,
 * shared evenly. None where the cluster is one node. The sum is multiplied by PUE, what the
 * building draws for what its computers draw.
 *
 * What a file does not say is hw_power_defaults'. No time depends on any of these numbers.
 *
 * Ignored: clocks that fall at the limit (gemm_sustained has what they cost), kernels that draw
 * less than others, host and network that draw less while GPUs wait. */
#ifndef FLOPCAST_HW_POWER_H
#define FLOPCAST_HW_POWER_H

#include "hw/hw.h"

struct hw_power {
    double limit_w, idle_w, waiting_w, busy_w; /* of a GPU; idle <= waiting, busy <= limit */
    double host_w;                             /* a GPU's part of host, NICs and switch ports */
    double pue;                                /* 1 or more */
};
struct hw_power hw_power_of(const struct hw *hw);

/* Of a GPU that is busy for this share of the time, from 0 to 1, and waits for the rest. */
double hw_power_gpu(const struct hw_power *power, double busy_share);

/* At the meter, for a GPU that draws gpu_w: with host, network and PUE. */
double hw_power_at_meter(const struct hw_power *power, double gpu_w);

/* The default numbers, each with its error and source. The list ends with a key NULL. */
struct hw_power_default {
    const char *key;  /* as in --set: "gpu.power.busy" */
    const char *unit; /* "tdp": a share of the GPU's; "W"; "" */
    struct quantity number;
};
extern const struct hw_power_default hw_power_defaults[];

#endif
