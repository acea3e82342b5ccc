/* A plan: one training step of one class of ranks as a program, which exec runs. Strategies compile to plans; EXPLAIN
 * prints them.
 *
 * SPMD: every rank runs the same const plan, step after step; a rank is a few cursors into it. The host thread of a
 * rank walks the ops in order, paying host_s for each; device ops are appended to their stream as they are issued and
 * start when the stream has reached them and all ops they wait for are done (cudaStreamWaitEvent). Waits may name an op
 * of the previous step.
 *
 * Built by plan_begin / plan_*; finished by plan_end, which fixes the positions; const from then on. Names are borrowed
 * from the caller's arena, or literals: a plan of millions of ops has few that differ.
 */
#ifndef FLOPCAST_PLAN_PLAN_H
#define FLOPCAST_PLAN_PLAN_H

#include "base/index.h"
#include "base/vec.h"
#include "coll/coll.h"
#include "kernel/kernel.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum plan_stream {
    STREAM_COMPUTE,   /* the default CUDA stream */
    STREAM_COMM,      /* NCCL stream of the process group that shards (or the only one) */
    STREAM_REPLICATE, /* NCCL stream of the process group that replicates (HYBRID_SHARD) */
    STREAM_UNSHARD,   /* FSDP's unshard stream: casts of shards before all-gathers */
    STREAM_POST,      /* FSDP's post-backward stream: casts of gradients around reduce-scatters */
    STREAM_LOADER,    /* no CUDA stream: the host's threads that make the next batch */
    STREAM_COUNT,
};
extern const char *const plan_stream_names[STREAM_COUNT + 1];
static inline bool plan_stream_is_comm(int stream)
{
    return stream == STREAM_COMM || stream == STREAM_REPLICATE;
}

enum op_kind {
    OP_KERNEL,     /* index: kernels */
    OP_COLLECTIVE, /* index: collectives */
    OP_HOST,       /* host work only: Python hooks, optimizer loop */
    OP_HOST_WAIT,  /* the host blocks until the op waited for is done (event.synchronize(), loss.item()) */
    OP_KEEP,       /* index: buffers; allocated when the host passes in the first of several steps, lives on */
    OP_ALLOC,      /* index: buffers; takes effect when the host passes */
    OP_FREE, /* index: buffers; usable again by its own stream at once, by others after the ops waited for are done */
};

/* What HBM is used for. */
enum hbm_category {
    HBM_PARAMETERS, /* parameters (or shards of them) in their master precision */
    HBM_GRADIENTS,
    HBM_OPTIMIZER,
    HBM_ACTIVATIONS, /* saved and temporary activations and their gradients */
    HBM_GATHERED,    /* unsharded parameters and gradients of FSDP units, low-precision copies of shards */
    HBM_BUFFERS,     /* DDP buckets and other communication buffers of the framework */
    HBM_CONTEXT,     /* CUDA context, libraries */
    HBM_NCCL,        /* NCCL's own buffers */
    HBM_CATEGORY_COUNT,
};
extern const char *const hbm_category_names[HBM_CATEGORY_COUNT + 1];

enum plan_phase { PHASE_SETUP, PHASE_FORWARD, PHASE_BACKWARD, PHASE_RECOMPUTE, PHASE_OPTIMIZER, PHASE_COUNT };
extern const char *const plan_phase_names[PHASE_COUNT + 1];

struct plan_op {
    uint8_t kind, stream, phase;
    uint16_t n_waits;
    int32_t index;      /* by kind: kernel, collective or buffer; -1 otherwise */
    int32_t first_wait; /* into waits */
    int32_t position;   /* of a device op: its place in its stream, set by plan_end; -1 for host ops */
    float host_s;       /* host time to issue it, seconds */
    const char *name;   /* "encoder.block.3/wi" */
};

/* An op number; PLAN_PREVIOUS_STEP + op names that op in the step before (done already in the first step). */
typedef int32_t plan_wait;
enum { PLAN_NO_OP = -1, PLAN_PREVIOUS_STEP = 1 << 30 };

static inline bool plan_op_is_memory(const struct plan_op *op)
{
    return op->kind == OP_KEEP || op->kind == OP_ALLOC || op->kind == OP_FREE;
}

struct plan_collective {
    enum coll_kind kind;
    double bytes; /* whole message, see coll.h */
    int group;    /* into groups */
};

/* A process group of every rank: ranks that differ by stride x i, size of them. Rank r's instance is
 * (r / (size stride)) stride + r % stride. */
struct plan_group {
    const char *name; /* "world", "shard", "replicate" */
    int size, stride;
};

struct plan_buffer {
    int64_t bytes;
    uint8_t category;
    uint8_t stream; /* whose pool it comes from in the caching allocator */
    const char *name;
};

struct plan {
    int ranks;
    VEC(struct plan_op) ops;
    VEC(plan_wait) waits;
    VEC(struct kernel_work) kernels; /* each once, however many ops are it */
    VEC(struct plan_collective) collectives;
    VEC(struct plan_group) groups;
    VEC(struct plan_buffer) buffers;
    VEC(int32_t) setup; /* buffers that live for the whole run, allocated before the first step, in order */
    VEC(int32_t) stream_ops[STREAM_COUNT]; /* ops of each stream in order, set by plan_end */
    double model_flop;    /* per rank and step: forward and backward, 3 x forward where all is trained */
    double hardware_flop; /* per rank and step: what the GEMM and attention kernels execute, recomputation counted */
    double host_bytes;    /* pinned host memory of a rank, for the whole run */
    double tokens;        /* per rank and step */
    double samples;       /* per rank and step */
};

/* ---- builder ---- */

struct plan_builder {
    struct plan *plan;
    struct index kernels;                 /* of plan->kernels */
    enum plan_phase phase;                /* of the ops appended from now on */
    VEC(plan_wait) pending[STREAM_COUNT]; /* waits that the stream's next op takes */
    int last_op[STREAM_COUNT];            /* PLAN_NO_OP: none yet */
};

void plan_begin(struct plan_builder *builder, struct plan *plan, int ranks);
int plan_group(
    struct plan_builder *builder, const char *name, int size, int stride); /* the same group twice is one group */
/* The stream's next op waits for op (cudaStreamWaitEvent). PLAN_NO_OP is ignored. */
void plan_stream_wait(struct plan_builder *builder, enum plan_stream stream, plan_wait op);
int plan_kernel(
    struct plan_builder *builder, enum plan_stream stream, const char *name, struct kernel_work work, double host_s);
int plan_collective(struct plan_builder *builder, enum plan_stream stream, const char *name, enum coll_kind kind,
    double bytes, int group, double host_s); /* a group of one rank: no op, returns PLAN_NO_OP */
int plan_host(struct plan_builder *builder, const char *name, double host_s);
int plan_host_wait(struct plan_builder *builder, const char *name, plan_wait waited, double host_s);
/* A buffer that lives for the whole run. */
void plan_keep(struct plan_builder *builder, const char *name, int64_t bytes, enum hbm_category category);
/* One that is allocated here in the first step: what PyTorch makes when it is first needed. bytes 0: none. */
void plan_keep_from_here(struct plan_builder *builder, const char *name, int64_t bytes, enum hbm_category category);
/* A buffer allocated by the host now; returns its number for plan_free. bytes 0 gives PLAN_NO_OP, which plan_free
 * ignores. */
int plan_alloc(
    struct plan_builder *builder, enum plan_stream stream, const char *name, int64_t bytes, enum hbm_category category);
/* last_use: the last op of another stream that uses it (record_stream), or PLAN_NO_OP when only its own stream did. */
void plan_free(struct plan_builder *builder, int buffer, plan_wait last_use);
int plan_last_op(const struct plan_builder *builder, enum plan_stream stream); /* PLAN_NO_OP when none yet */
void plan_end(struct plan_builder *builder);
void plan_release(struct plan *plan); /* the arrays */

/* ---- looking at a plan ---- */

/* Laws that every plan obeys: waits point backwards, indices are in range, every buffer allocated in the step is freed
 * in it exactly once, every collective's group divides the ranks and has all its collectives on one stream, as a NCCL
 * communicator runs one after the other. On a breach false and why. */
bool plan_check(const struct plan *plan, char *why, size_t n);

/* Like SQLite's EXPLAIN: one op a line. Then the collectives that are alike together, alone on their links, with what
 * binds them. */
void plan_explain(FILE *out, const struct plan *plan, const struct hw *hw);

uint64_t plan_digest(const struct plan *plan);

#endif
