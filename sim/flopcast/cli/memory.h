/* What `flopcast memory`, `flopcast capacity` and (the cut of a model over ranks) `flopcast model`
 * were asked.
 *
 * Each asks a point of a scenario: of a scenario file the point that it names; of a model alone one
 * with what the command line says and these defaults: an H100's cluster of any size, as many GPUs
 * as hold one copy, one token. Of a bare number of parameters the states alone are counted. */
#ifndef FLOPCAST_CLI_MEMORY_H
#define FLOPCAST_CLI_MEMORY_H

#include "options/arguments.h"
#include "rows/records.h"
#include "study/memory_job.h"

#include <stdio.h>

/* ---- memory_request.c ---- */

struct memory_gpu {
    struct hw_gpu gpu;
    double nccl_bytes; /* of a communicator, in flopcast's first cluster that has the GPU */
};

struct memory_request {
    const char *name; /* of the scenario or model file, or the parameter count as written */
    bool capacity;    /* asked by `flopcast capacity` */
    bool model;    /* asked by `flopcast model`: how a model is cut, and nothing of its training */
    bool teach;    /* with rules of thumb */
    bool savings;  /* with what each way to save memory gives and costs */
    bool of_file;  /* name is a scenario's file, which says all */
    bool named;    /* one GPU is: by --gpu, --topology or the scenario; gpus[0] is that */
    bool any_math; /* --gpu SIZE: a card of which only the memory is known */
    /* No cluster of flopcast's takes the job as it is, why: its point lies on one of any size. */
    bool anywhere;
    int n_gpus;
    enum records_format format;
    struct memory_gpu *gpus;  /* the one, or all that topologies/gpus knows */
    const char *gpu_path;     /* --gpu, or NULL */
    const char *cluster_path; /* the cluster that the job lies on; NULL: the scenario says */
    int64_t gpus_asked;       /* by the command line or the scenario; 0: by neither */
    struct memory_job job;
    struct scenario_set set;    /* all points of a scenario; job has the first */
    struct scenario said;       /* what the command line says, alone */
    struct overrides overrides; /* the same as it was typed, and defaults */
    struct diag why;
};

/* Usage errors exit. doc: of the command, for --help. Then read what was named, and refuse what
 * `run` would: what the strategy cannot do, a GPU given that cannot multiply in the number format.
 */
void memory_parse(struct memory_request *request, int argc, char **argv, const char *doc);
enum status memory_load(struct memory_request *request, struct arena *arena, struct diag *diag);
void memory_free(struct memory_request *request);

/* "--attention flash --set train.cross_entropy=fused": the change as options of these commands. */
const char *memory_said(const struct memory_change *change, struct arena *arena);

/* ---- memory_savings.c: several jobs in one table ---- */

/* A row a point of the request's set. */
enum status memory_print_points(FILE *out, struct memory_request *request, struct diag *diag);
/* A row a way to save memory (memory_saving()), alone: what is left of the peak, and the step
 * beside that of the job as it is, simulated without noise on a GPU where all of it would fit. */
enum status memory_print_savings(
    FILE *out, struct memory_request *request, struct arena *arena, struct diag *diag);

/* ---- memory.c ---- */

void memory_print_degrees(
    FILE *out, const struct memory_job *job); /* ", tensor 2, pipeline 4, LoRA ..." */

#endif
