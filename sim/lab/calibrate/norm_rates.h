/* The stream model (kernel/kernel.h) against measured norms (results/measured/norm.csv): floor +
 * bytes over a share of the GPU's streaming rate, one share for each library and pass.
 *
 * The share is the median over two thirds of the shapes, the errors those of the last third: every
 * third in order of bytes, then rows. Shapes whose bytes fit in L2 are left out, as repetitions
 * then read L2.
 *
 * Nothing in topologies/ is computed from it: it says how good the model's form is, and what
 * pointwise_efficiency of a stack stands for: PyTorch's eager norm and its gradient reach 0.93 and
 * 0.46 of the streaming rate, cuDNN's 1.15 and 1.01. More than 1: hbm_efficiency is that of FP64
 * streams (results/measured/hbm.csv), which on H200 is low. */
#ifndef FLOPCAST_CALIBRATE_NORM_RATES_H
#define FLOPCAST_CALIBRATE_NORM_RATES_H

#include "calibrate/fit.h"
#include "hw/hw.h"

struct norm_rate {
    const char *library, *pass; /* "pytorch", "backward" */
    int n_fitted;
    double share;              /* of hbm_bandwidth x hbm_efficiency */
    struct fit_error held_out; /* of the shapes held out */
};
enum { NORM_RATES = 6 };

/* gpu: the hardware that name ("h200-sxm-141gb") says in the table. No rows for a library or pass
 * are an error. */
enum status norm_rates_load(struct norm_rate out[NORM_RATES], const char *norm_csv,
    const char *name, const struct hw_gpu *gpu, struct diag *diag);

#endif
