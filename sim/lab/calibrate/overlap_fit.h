/* Fits what kernels lose beside collectives (kernel/kernel.h): overlap_start, memory_sms as a share
 * of the SMs, and overlap_traffic.
 *
 * The first two from results/measured/overlap_groups.csv: the same kernel alone and wholly inside
 * one NCCL kernel, in traces. Predicted from the time alone, of which nothing else is known:
 * - a GEMM: times waves of its blocks on the SMs that the channels leave over waves on all SMs,
 *   plus overlap_start. An SM takes blocks_per_sm of them. This is what split-K GEMMs of 1.4 to 2.4
 *   x are: their blocks just fill the GPU;
 * - others: times memory_sms over the free SMs where these are fewer, plus overlap_start.
 * overlap_traffic from results/measured/overlap_published.csv: kernels beside a collective that
 * moves over NVLink, by kernel_duration_s() with the SMs and HBM traffic that coll/ gives the
 * collective.
 *
 * Residuals: log(predicted / measured), robust (calibrate/fit.h). Rows are held out as the heads of
 * the tables say. Standard errors: the fit again without each source in turn (jackknife), as rows
 * of one trace or profile err together.
 *
 * Left out: whether the collective of a group waits or moves, which traces do not show (taken: it
 * waits); L2 hits of short kernels, which a collective's bytes evict; and that in protocol LL all
 * threads poll: beside an all-reduce by LL on 24 channels short kernels take three times as long,
 * on 8 channels as long as alone, and nothing says what is between the two. */
#ifndef FLOPCAST_CALIBRATE_OVERLAP_FIT_H
#define FLOPCAST_CALIBRATE_OVERLAP_FIT_H

#include "base/status.h"
#include "base/vec.h"
#include "calibrate/fit.h"
#include "hw/hw.h"
#include "kernel/kernel.h"

#include <stdbool.h>
#include <stdio.h>

/* Kernels of a group are long from here on, seconds alone. */
#define OVERLAP_LONG_S 20e-6

struct overlap_group {
    const char *source;
    bool gemm, held_out;
    double sms, channels, blocks, blocks_per_sm, alone_s, beside_s;
};

struct overlap_published {
    const char *source;
    struct hw hw;
    struct kernel_work work;
    double sms_held, hbm_Bps, ratio;
    bool held_out;
};

struct overlap_fit {
    VEC(struct overlap_group) groups;
    VEC(struct overlap_published) published;
    struct quantity start, memory_share, traffic; /* with jackknife's errors */
};

/* measured, clusters: folders. Free also after an error. */
enum status overlap_fit_solve(struct overlap_fit *out, const char *measured, const char *clusters,
    struct arena *arena, struct diag *diag);
void overlap_fit_free(struct overlap_fit *fit);

/* Seconds of a group beside the collective; how many times as long a published kernel takes. */
double overlap_fit_beside_s(const struct overlap_fit *fit, const struct overlap_group *group);
double overlap_fit_ratio(const struct overlap_fit *fit, const struct overlap_published *row);

/* |predicted / measured - 1| of groups. */
struct fit_error overlap_fit_error(const struct overlap_fit *fit, bool longer, bool held_out);

void overlap_fit_print(FILE *out, const struct overlap_fit *fit);

#endif
