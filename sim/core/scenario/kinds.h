/* Jobs on nodes of two kinds: data-parallel ranks before hw.second_from are on nodes of the cluster's file, the others
 * on those of cluster.second_node.
 *
 * Each kind has a plan, of the same collectives, and plan_join() makes one of them. By cluster.batch_split:
 *
 *   equal      every GPU computes micro_batch samples at a time; in each collective the faster kind waits
 *   by_speed   the samples of all GPUs in a micro-step stay as many, and are shared so that the slower kind ends as
 * early as it can: of all whole numbers of samples a GPU, those with the least time of the slower kind. The time of a
 * kind is that of its kernels with micro_batch samples, alone, times its samples / micro_batch.
 *
 * As PyTorch averages gradients over ranks, not over samples, such a job scales its loss by its rank's samples; that
 * costs nothing here. Ignored: a data loader that is slower for larger batches of decoded images. */
#ifndef FLOPCAST_SCENARIO_KINDS_H
#define FLOPCAST_SCENARIO_KINDS_H

#include "scenario/scenario.h"

/* What the keys of a second kind ask for is there and can be. After all numbers of the hardware are known. */
void kinds_check(const struct scenario_point *point, struct diag *diag);

/* scenario_compile() of such a job. micro_batch: samples that a GPU of each kind computes on at once. */
enum status kinds_compile(struct plan *out, double micro_batch[SCENARIO_KINDS], const struct scenario_point *point,
    struct arena *arena, struct diag *diag);

/* For what knows jobs on one kind of node only, "flopcast tune": an error where a point has two. */
enum status kinds_refuse(const struct scenario_point *points, int n, const char *what, struct diag *diag);

/* The mean over the job's GPUs of what is `first` for those of the first kind and `second` for the others. */
double kinds_mean(const struct scenario_point *point, double first, double second);

#endif
