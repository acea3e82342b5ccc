/* How near measured runs are to a job, and how well flopcast predicted those: what is known of the regime of a
 * question.
 *
 * The distance of a run from a job is a sum of terms, each 0 where both are alike:
 *   gpu        1; 0.5 where only the variant differs: the name up to the first '-' is the same ("A100")
 *   framework  1 for another stack profile
 *   strategy   1 for other data parallelism ("FULL_SHARD", "ZeRO-1")
 *   layout     1 for each axis (TP, CP, EP, PP, DP) that one of the two has and the other has not
 *   precision  1
 *   model      0.5 for each doubling of the parameters
 *   gpus       0.5 for each doubling of the GPUs
 *
 * The weights are assumed: they say what counts as one difference. What the distance is good for does not depend on
 * them much: over a few rows of each source, the median error of a row's NEAREST_RUNS nearest rows goes along with the
 * row's own error by a rank correlation of 0.65 to 0.71 for five sets of weights that differ by a factor of up to 4,
 * and of about 0 without a distance (results/NOTES.md); tests/validate/test_nearest.c holds it above 0.5. Not looked
 * at: batch, sequence length, network, recomputation. */
#ifndef FLOPCAST_VALIDATE_NEAREST_H
#define FLOPCAST_VALIDATE_NEAREST_H

#include "validate/validate.h"

enum nearest_term {
    NEAREST_GPU,
    NEAREST_FRAMEWORK,
    NEAREST_STRATEGY,
    NEAREST_LAYOUT,
    NEAREST_PRECISION,
    NEAREST_MODEL,
    NEAREST_GPUS,
    NEAREST_TERMS
};
extern const char *const nearest_term_names[NEAREST_TERMS + 1]; /* "gpu", "framework", ... */
/* What a term counts, for a reader: "0.5 for each doubling of the parameters". */
extern const char *const nearest_term_texts[NEAREST_TERMS + 1];

/* Names as in struct validate_row; params 0: not known, then its term is 0. */
struct nearest_job {
    const char *gpu, *framework, *strategy, *layout, *precision;
    double params;
    int64_t gpus;
    const char *arch; /* of hw_archs; "": not known */
    bool experts;     /* the model has some */
};

/* The axes of more than one rank, in the order TP, CP, EP, PP, DP: "TP+DP"; "one GPU". */
enum { LAYOUT_AXES = 5 };
const char *nearest_layout(struct arena *arena, const int64_t degrees[LAYOUT_AXES]);

/* The generation of the GPU of a name; "": there is no such file. */
const char *nearest_arch(struct arena *arena, const char *gpu);

/* Whether the model of a file, or of a name, has experts; false: it cannot be read. */
bool nearest_experts(struct arena *arena, const char *model);

/* Data parallelism is what is left of the ranks, experts over some of these. */
struct nearest_job nearest_job_of(struct arena *arena, const struct scenario_point *point);

/* The distance is the sum of the terms. */
double nearest_distance(double terms[NEAREST_TERMS], const struct nearest_job *a, const struct nearest_job *b);

enum regime_of { REGIME_OF_SPEED, REGIME_OF_PEAK, REGIME_OFS }; /* tokens/s per GPU, or the peak of memory */

/* The rows of a table with what distinguishes them. */
struct nearest_runs {
    struct validate_table table;
    struct nearest_job *jobs;          /* one a row of the table */
    int *sources, *families, *regimes; /* of a row: the first of its source, its family (lessons.h), its regime */
    double waiting;                    /* discrepancy.h; 0: not known */
    double new_source[REGIME_OFS][2];  /* regime.h: of regimes that are known, and poorly; 0: not known, 1 is taken */
    struct arena arena;
};

/* From a file of validate_stored_write() and the project's discrepancy.yaml; what it warns of is left out: such rows
 * are not compared. */
bool nearest_load(struct nearest_runs *out, const char *path, struct diag *diag);
/* Sets sources, families and regimes by what rows and jobs say. */
void nearest_number(struct nearest_runs *runs);
void nearest_release(struct nearest_runs *runs);

enum { NEAREST_RUNS = 20, NEAREST_FAR = 3 /* from this distance on errors say little about the job */ };

struct nearest_found {
    int row; /* of the table */
    double distance, terms[NEAREST_TERMS];
};
struct nearest {
    struct nearest_found runs[NEAREST_RUNS]; /* the nearest first, then as the table has them */
    int n;                                   /* of runs with a speed that is measured and predicted, in no fit */
    int n_near;                              /* of these, nearer than NEAREST_FAR */
    double median, p90, bias; /* of |error|; median of error; of those that are near, where none is of all; fractions. n
                               * 0: not known */
    int n_fitted;             /* runs that a fit rests on, and that are as near as the last of these */
};

/* Runs that are the same run (struct validate_row) count once. Those on GPUs of another generation, or with products in
 * another precision (regime.h), are never near: n may be 0. except: rows of this source's maker (lessons.h) are not
 * compared; NULL: all are. */
void nearest_find(
    struct nearest *out, const struct nearest_runs *runs, const struct nearest_job *job, const char *except);

#endif
