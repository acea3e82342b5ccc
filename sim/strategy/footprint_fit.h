/* What fits on a GPU, by the closed form of footprint.h: searches over its options. room: bytes of HBM that training
 * may take (capacity less the CUDA context; NCCL's buffers and fragmentation are the user's to leave). */
#ifndef FLOPCAST_STRATEGY_FOOTPRINT_FIT_H
#define FLOPCAST_STRATEGY_FOOTPRINT_FIT_H

#include "strategy/footprint.h"

/* A job: the model by its parameters, its shape (or NULL), and how it is trained. */
struct footprint_job {
    int64_t params;
    const struct model *model;
    struct footprint_options options;
};

double footprint_job_bytes(const struct footprint_job *job);

/* The largest micro-batch that fits, at most FOOTPRINT_MOST_BATCH; 0: not even one sequence does. Needs a model. */
enum { FOOTPRINT_MOST_BATCH = 1 << 14, FOOTPRINT_MOST_GPUS = 1 << 14 };
int64_t footprint_largest_batch(const struct footprint_job *job, double room);

/* The fewest GPUs, a power of two, over which the job's strategy makes it fit; 0: not with FOOTPRINT_MOST_GPUS either.
 */
int64_t footprint_fewest_gpus(const struct footprint_job *job, double room);

/* A job that does not fit: the changes from cheap to dear (kernels that are as fast or faster, recomputation, smaller
 * micro-batches, sharding over the GPUs that are there, an optimizer with less state, host memory, more GPUs, adapters
 * instead of all parameters), and the first that suffices alone; where none does, cheap kernels, full checkpointing and
 * one sequence at a time together, over the fewest GPUs with FSDP. What it is, as options of `flopcast memory`, and the
 * job with it in out; NULL: nothing of these helps. The text lives in the arena. */
const char *footprint_remedy(
    struct footprint_job *out, const struct footprint_job *job, double room, struct arena *arena);

#endif
