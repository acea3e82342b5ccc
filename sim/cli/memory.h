/* What `flopcast memory` and `flopcast fit` were asked, and the answer of the first as rows: bytes on one GPU, then
 * (--teach) rules of thumb beside what is modelled. */
#ifndef FLOPCAST_CLI_MEMORY_H
#define FLOPCAST_CLI_MEMORY_H

#include "hw/hw.h"
#include "model/model.h"
#include "scenario/scenario.h"
#include "strategy/footprint.h"

#include <stdio.h>

enum memory_format { MEMORY_TABLE, MEMORY_CSV, MEMORY_JSON, MEMORY_FORMAT_COUNT };
extern const char *const memory_format_names[MEMORY_FORMAT_COUNT + 1]; /* "table", "csv", "json" */

struct memory_request {
    const char *name; /* of the model file, or the parameter count as written */
    int64_t params;
    struct model model; /* when has_model */
    bool has_model;
    bool fit;   /* asked by `flopcast fit` */
    bool teach; /* with rules of thumb */
    struct footprint_options options;
    const char *gpu_path;     /* or NULL: all that topologies/gpus knows */
    const char *cluster_path; /* of `fit`: the cluster file given, or NULL */
    struct hw cluster;        /* with cluster_path */
    struct hw_gpu *gpus;
    int n_gpus;
    bool any_math;                           /* --gpu SIZE: a card of which only the memory is known */
    int format;                              /* enum memory_format */
    VEC(struct scenario_override) overrides; /* numbers of the GPU, with cluster_path of the cluster, too */
    struct arena texts;                      /* theirs */
};

/* Usage errors exit. doc: of the command, for --help. Then read what was named, and refuse what `run` would: what the
 * strategy cannot do, a GPU given that cannot multiply in the number format. */
void memory_parse(struct memory_request *request, int argc, char **argv, const char *doc);
enum status memory_load(struct memory_request *request, struct arena *arena, struct diag *diag);

void memory_free(struct memory_request *request);

/* The model's shape, or NULL; bytes of a GPU that CUDA leaves to training. */
const struct model *memory_model(const struct memory_request *request);
double memory_room(const struct hw_gpu *gpu);

/* What the matrix products of the job are in; false: the GPU has none of these. INT8 is for storage alone. */
enum dtype memory_math(const struct memory_request *request);
bool memory_supported(const struct memory_request *request, const struct hw_gpu *gpu);

/* Compute and print in the format asked for. */
void memory_print(FILE *out, const struct memory_request *request, struct arena *arena);

#endif
