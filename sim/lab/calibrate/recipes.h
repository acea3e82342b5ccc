/* Which measurements stand for which GPU, topologies/fitted/recipes.yaml, whose head says what the
 * keys are: another GPU that is fitted is an entry there. GPUs are files of topologies/gpus without
 * ".yaml". */
#ifndef FLOPCAST_CALIBRATE_RECIPES_H
#define FLOPCAST_CALIBRATE_RECIPES_H

#include "calibrate/gemm_fit.h"

/* Names of GPUs; NULL: none. */
struct recipe {
    const char *gpu, *stream, *launch, *attention, *kernels;
    const char *gemm; /* of one of recipes.gemm */
    const char *casts, *products, *fp8, *fp4, *cudnn;
};

struct recipe_names {
    const char *const *list;
    int n;
};

struct recipes {
    const struct recipe *gpus;
    const struct gemm_case *gemm;
    int n_gpus, n_gemm;
    struct recipe_names kernels, direct, norms;
};

/* All texts in the arena. A name that stands in no list it must be in is an error, with its place.
 */
enum status recipes_load(struct recipes *out, struct arena *arena, struct diag *diag);

/* The place of a name; -1: it is not there, or NULL. */
int recipes_find(struct recipe_names names, const char *gpu);

/* Of the fit of products of a GPU; -1: there is none. */
int recipes_gemm(const struct recipes *recipes, const char *gpu);

#endif
