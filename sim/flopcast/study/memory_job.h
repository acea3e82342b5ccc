/* A job that is asked what memory it takes (`flopcast memory`, `capacity`, `model`), and the
 * changes that save memory.
 *
 * It is a point of a scenario. Of a bare number of parameters, and for what is kept in INT8 (which
 * nobody trains with), the states alone are counted (strategy/states.h). */
#ifndef FLOPCAST_STUDY_MEMORY_JOB_H
#define FLOPCAST_STUDY_MEMORY_JOB_H

#include "study/fit.h"

struct memory_job {
    struct scenario_point point;
    int64_t params;
    bool has_model; /* point.model; else params are all that is known */
    bool counted;   /* activations of a micro-batch; else of one token (image, sample) */
    bool int8;      /* a byte for everything */
    /* The frozen matrices of the blocks beside adapters are in INT8 (LLM.int8, arXiv 2208.07339: an
     * FP32 scale to each row) where the point has NF4. */
    bool int8_base;
};

/* What a frozen model beside adapters is kept in: all of it in 16 bits, or the matrices of its
 * blocks in INT8 or NF4 and the rest in FP32. */
enum memory_base { MEMORY_BASE_HALF, MEMORY_BASE_INT8, MEMORY_BASE_NF4, MEMORY_BASE_COUNT };
extern const char *const memory_base_names[MEMORY_BASE_COUNT + 1]; /* "16bit", "int8", "nf4" */

/* GPUs that hold one copy of the model by tensor, context, pipeline and expert parallelism
 * together. */
int64_t memory_copy_gpus(const struct parallelism_options *parallelism);

/* "zero3", "fsdp": the strategy by the word that `--strategy` takes. */
const char *memory_strategy(const struct strategy_options *options);

/* Completes a point whose options were changed, and refuses what `run` would. */
enum status memory_check(struct memory_job *job, struct diag *diag);

/* The peak of the job's plan, or (not planned) the states alone. STATUS_INPUT: it cannot be. */
struct memory_need {
    struct exec_peak peak;
    bool planned;
};
enum status memory_need(struct memory_need *out, const struct memory_job *job, struct diag *diag);
bool memory_fits(const struct memory_job *job);

/* What an INT8 base takes more than the NF4 one that the plan has in its place. */
double memory_int8_extra(const struct memory_job *job);

/* Bytes of a base: blocks' matrices in INT8 or NF4 with double quantisation, the rest (embeddings,
 * norms, head) in rest_bytes each: 2, or 4 after prepare_model_for_kbit_training (QLoRA, arXiv
 * 2305.14314; peft/utils/other.py). */
double memory_base_bytes(const struct model *model, int base, int64_t rest_bytes);

/* Whether the GPU has what the matrix products of the job are in. INT8 is for storage alone. */
bool memory_supported(const struct memory_job *job, const struct hw_gpu *gpu);

/* The cluster takes any number of GPUs and has all the host memory that is asked for. */
void memory_unlimited(struct hw *hw);

/* A change of a job: settings, as --set takes them. */
enum { MEMORY_MOST_SETTINGS = 6 };
struct memory_change {
    struct scenario_override settings[MEMORY_MOST_SETTINGS];
    int n;
};
/* Makes it, and checks the job. Texts live in the arena. */
enum status memory_apply(struct memory_job *job, const struct memory_change *change,
    struct arena *arena, struct diag *diag);

/* Ways to save memory that a job may lack, from cheap to dear, each alone: the i-th into *out;
 * false: there is no such one. Some change nothing of a job, or cannot be made: memory_apply() says
 * so. */
bool memory_saving(struct memory_change *out, int i);

/* A job that memory_check() has passed and that does not fit: the changes from cheap to dear
 * (kernels that are as fast or faster, recomputation, smaller micro-batches, sharding over the GPUs
 * that are there, an optimizer with less state, host memory, more GPUs, other layouts, adapters
 * instead of all parameters), and the first that suffices alone; where none does, cheap kernels,
 * full checkpointing and one sequence at a time together, over the fewest GPUs with FSDP. *out: the
 * job with it. False: nothing of these helps. */
bool memory_remedy(struct memory_change *change, struct memory_job *out,
    const struct memory_job *job, struct arena *arena);

/* The fewest GPUs, a power of two, over which the job's strategy makes it fit; 0: not with
 * MEMORY_MOST_GPUS either. */
enum { MEMORY_MOST_GPUS = 1 << 14 };
int64_t memory_fewest_gpus(const struct memory_job *job);

/* ---- memory_rules.c: rules of thumb that courses teach, each beside what is modelled ---- */

#define MEMORY_NOT_GIVEN ((double)NAN)
struct memory_row {
    const char *section; /* "gpu": bytes on one GPU; "stage": on one of a pipeline's stage; "rule":
                            a rule of thumb */
    const char *name;
    double rule;     /* bytes; MEMORY_NOT_GIVEN where there is none */
    double modelled; /* bytes; MEMORY_NOT_GIVEN where nothing is modelled */
    double largest;  /* bytes at its own fullest moment; MEMORY_NOT_GIVEN ... */
    const char *note;
};
struct memory_rows {
    VEC(struct memory_row) list;
};
void memory_add_rules(struct memory_rows *rows, const struct memory_job *job, struct arena *arena);

#endif
