/* A job in the words of `flopcast memory` and `capacity`, what it takes, and what would make it fit.
 *
 * It is a point of a scenario, whose plan is asked. Of a model of which only the number of parameters is known, and for
 * what is kept in INT8 (which nobody trains with), the states alone are counted (strategy/states.h). */
#ifndef FLOPCAST_STUDY_MEMORY_H
#define FLOPCAST_STUDY_MEMORY_H

#include "strategy/states.h"
#include "study/fit.h"

/* A precision, or one of these: fp16, of which each byte is as bf16's, and int8. */
enum memory_dtype { MEMORY_FP16 = PRECISION_COUNT, MEMORY_INT8, MEMORY_DTYPE_COUNT };
extern const char *const memory_dtype_names[MEMORY_DTYPE_COUNT + 1];
enum memory_strategy {
    MEMORY_SINGLE_DEVICE,
    MEMORY_DDP,
    MEMORY_ZERO1,
    MEMORY_ZERO2,
    MEMORY_ZERO3,
    MEMORY_FSDP,
    MEMORY_MEGATRON,
    MEMORY_STRATEGY_COUNT
};
extern const char *const memory_strategy_names[MEMORY_STRATEGY_COUNT + 1]; /* "single_device", "ddp", "zero1" ... */
/* What a frozen model beside adapters is kept in: all of it in 16 bits, or the matrices of its blocks in INT8
 * (LLM.int8, arXiv 2208.07339: an FP32 scale to each row) or NF4 (QLoRA), and the rest in FP32. */
enum memory_base { MEMORY_BASE_HALF, MEMORY_BASE_INT8, MEMORY_BASE_NF4, MEMORY_BASE_COUNT };
extern const char *const memory_base_names[MEMORY_BASE_COUNT + 1]; /* "16bit", "int8", "nf4" */

struct memory_job {
    struct scenario_point point;
    int64_t params;
    bool has_model; /* point.model */
    bool counted;   /* activations of a micro-batch; else of one token (image, sample) */
    int dtype, strategy, base;
    bool offload;
    int64_t grad_accum; /* as was asked; 0: enough to fill the pipeline */
};

/* GPUs that hold one copy of the model by tensor, context, pipeline and expert parallelism together. */
int64_t memory_copy_gpus(const struct memory_job *job);

/* The one place where these words become settings of a scenario: dtype, strategy, base and offload in the point. */
void memory_set(struct memory_job *job);

/* Complete the point, and refuse what `run` would. */
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

/* Bytes of a base: blocks' matrices in INT8 or NF4 with double quantisation, the rest (embeddings, norms, head) in
 * rest_bytes each: 2, or 4 after prepare_model_for_kbit_training (QLoRA, arXiv 2305.14314; peft/utils/other.py). */
double memory_base_bytes(const struct model *model, int base, int64_t rest_bytes);

/* What the matrix products of the job are in; false: the GPU has none of these. INT8 is for storage alone. */
enum dtype memory_math(const struct memory_job *job);
bool memory_supported(const struct memory_job *job, const struct hw_gpu *gpu);

/* The cluster takes any number of GPUs and has all the host memory that is asked for. */
void memory_unlimited(struct hw *hw);

/* A job that memory_check() has passed and that does not fit: the changes from cheap to dear (kernels that are as fast
 * or faster, recomputation, smaller micro-batches, sharding over the GPUs that are there, an optimizer with less state,
 * host memory, more GPUs, adapters instead of all parameters), and the first that suffices alone; where none does,
 * cheap kernels, full checkpointing and one sequence at a time together, over the fewest GPUs with FSDP. What it is, as
 * options of `flopcast memory`, and the job with it in out; NULL: nothing of these helps. The text lives in the arena.
 */
const char *memory_remedy(struct memory_job *out, const struct memory_job *job, struct arena *arena);

/* The fewest GPUs, a power of two, over which the job's strategy makes it fit; 0: not with MEMORY_MOST_GPUS either. */
enum { MEMORY_MOST_GPUS = 1 << 14 };
int64_t memory_fewest_gpus(const struct memory_job *job);

/* Of a point's job: bytes of the parameters that are trained, of LoRA the adapters, and of the optimizer's state of
 * them, wherever they lie meanwhile. */
double memory_state_bytes(const struct scenario_point *point);

#endif
