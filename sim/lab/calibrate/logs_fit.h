/* A cluster's own numbers of NCCL from logs of nccl-tests that were run on it.
 *
 * Varied are the numbers of its cluster file and its node file that say what NCCL reaches and costs
 * (keys nccl_ and nvls_: shares, bandwidths and latencies; channels and buffers stay), by
 * nccl_fit.h: logarithms, robust, all logs together, each log's table with the algorithm and
 * protocol that it names. The start is what the files say; a latency of 0 starts at 1 us.
 *
 * What the logs do not determine stays as filed. The node file's numbers, where no log is of one
 * node: a slow network looks like slow links inside the node, too. Of the others at most half as
 * many are varied as there are sizes, those on which the sizes depend most; and one that they do
 * not determine (a standard error of half its value) stays, the worst first, until all others are:
 * logs of one node say nothing of the network, those of one collective little of others.
 *
 * What comes out beyond what a file may say is written as the end of that, and reported. A share
 * above 1: the bandwidth that it is of is more than the file says.
 *
 * Compared is coll_choose(), which does not see a network of switches: measure where nothing else
 * runs. Nor does it know what a launch adds when one process drives several GPUs. */
#ifndef FLOPCAST_CALIBRATE_LOGS_FIT_H
#define FLOPCAST_CALIBRATE_LOGS_FIT_H

#include "calibrate/nccl_fit.h"
#include "import/nccl.h"

struct logs_request {
    const char *topology; /* cluster file */
    const char *const *logs;
    int n_logs;
    struct nccl_options nccl; /* of every log */
};

struct logs_error {
    struct fit_error large, small; /* sizes from 1 MiB on, below 64 KiB */
};

struct logs_fit {
    struct hw filed, fitted; /* fitted: numbers that the logs determine are of kind fitted, with
                                this fit as source */
    struct nccl_fit nccl;    /* a case a table of the logs; predicts by the numbers of `fitted` */
    int n_node;              /* of them, how many are the node file's */
    VEC(struct logs_error) before; /* of every case, by the filed numbers */
    VEC(const char *) kept;        /* "key: source" of numbers that the logs do not determine */
};

/* Texts live in the arena. Free with logs_fit_free(), also after an error. A table whose collective
 * is not modelled, or whose group the cluster cannot hold, is STATUS_INPUT. */
enum status logs_fit_solve(struct logs_fit *out, const struct logs_request *request,
    struct arena *arena, struct diag *diag);
void logs_fit_free(struct logs_fit *fit);

struct logs_error logs_case_error(const struct logs_fit *fit, int i);

/* Every table with its errors before and after, every number beside the files'. */
void logs_fit_print(FILE *out, const struct logs_fit *fit);

/* The cluster file with the fitted numbers at path, and its node file, where that has some, beside
 * it: "c.yaml" and "c-node.yaml". */
enum status logs_fit_write(const struct logs_fit *fit, const struct logs_request *request,
    const char *path, struct arena *arena, struct diag *diag);

#endif
