/* GPUs that run slower than their kind, from the start or from a time of the run on.
 *
 * "node3.gpu5=80 %, node7=90 % at 2 s": a list as fabric/degrade.h has it. node<n>.gpu<g> is a GPU, counted from 0 as
 * the job's nodes and a node's GPUs are; node<n> stands for all GPUs of that node. The share that is left is that of
 * the SMs' clock, as heat or a power cap lowers it: what a kernel computes (struct kernel_time, compute_s: products,
 * attention, arithmetic, sums over rows) takes 1 / share as long. It multiplies with the speeds of noise.
 *
 * Ignored: what a lower clock does to HBM, to the floor of a kernel and to collectives, which all keep their speed; and
 * that partial sums of split products (kernel/gemm.h), which are part of compute_s, go through HBM. */
#ifndef FLOPCAST_FABRIC_SLOW_H
#define FLOPCAST_FABRIC_SLOW_H

#include "fabric/degrade.h"
#include "hw/hw.h"

#include <stdbool.h>

struct slow_gpus {
    struct degradation *degradation;
    int ranks, gpus; /* gpus: a node */
    bool uneven;     /* at some time some GPU of the job is slower than another */
};

/* text may be NULL. Names are those of the cluster's GPUs, so that one list serves jobs of any size; what is wrong with
 * it is an error at `at`. Everything lives in the arena. */
enum status slow_gpus_build(struct slow_gpus *out, const struct hw *hw, int ranks, const char *text,
    struct source_pos at, struct arena *arena, struct diag *diag);

/* What is left of a rank's speed at a time. */
double slow_gpus_share(const struct slow_gpus *slow, int rank, ps_t time);

/* Whether a job of this number of ranks has a GPU that the list names. */
bool slow_gpus_concern(const struct hw *hw, int ranks, const char *text);

#endif
