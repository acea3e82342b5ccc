/* What `flopcast memory`, `flopcast capacity` and (the cut of a model over ranks) `flopcast model` were asked: a job of
 * study/memory.h. */
#ifndef FLOPCAST_CLI_MEMORY_H
#define FLOPCAST_CLI_MEMORY_H

#include "options/arguments.h"
#include "rows/records.h"
#include "study/memory.h"

#include <stdio.h>

/* ---- memory_request.c ---- */

struct memory_gpu {
    struct hw_gpu gpu;
    double nccl_bytes; /* of a communicator, in flopcast's first cluster that has the GPU */
};

struct memory_request {
    const char *name; /* of the model file, or the parameter count as written */
    bool capacity;    /* asked by `flopcast capacity` */
    bool model;       /* asked by `flopcast model`: how a model is cut, and nothing of its training */
    bool teach;       /* with rules of thumb */
    struct memory_job job;
    struct hw hw;             /* the job's own takes any number of GPUs */
    const char *gpu_path;     /* or NULL: all that topologies/gpus knows */
    const char *cluster_path; /* the cluster file given, or NULL */
    struct memory_gpu *gpus;
    int n_gpus;
    bool any_math; /* --gpu SIZE: a card of which only the memory is known */
    enum records_format format;
    struct overrides overrides; /* numbers of the GPU, with cluster_path of the cluster, too */
};

/* Usage errors exit. doc: of the command, for --help. Then read what was named, and refuse what `run` would: what the
 * strategy cannot do, a GPU given that cannot multiply in the number format. */
void memory_parse(struct memory_request *request, int argc, char **argv, const char *doc);
enum status memory_load(struct memory_request *request, struct arena *arena, struct diag *diag);
void memory_free(struct memory_request *request);

/* ---- memory.c ---- */

void memory_print_degrees(FILE *out, const struct memory_job *job); /* ", tensor 2, pipeline 4, LoRA ..." */

#endif
