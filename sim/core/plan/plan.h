/* A plan: one training step of a job as programs, which exec runs. Strategies compile to plans;
 * EXPLAIN prints them.
 *
 * A program is what one class of ranks runs: there is one under data parallelism, one a stage under
 * pipeline parallelism, one a rank that was traced. Every rank of the class runs the same const
 * program, step after step; a rank is a few cursors into it. The host thread of a rank walks the
 * ops in order, paying host_s for each; device ops are appended to their queue (a CUDA stream) as
 * they are issued and start when the queue has reached them and all ops they wait for are done
 * (cudaStreamWaitEvent). Waits may name an op of the previous step, and always one of the same
 * program.
 *
 * Programs meet in two ways. The k-th collective of a group in one member's program is the k-th in
 * every other member's. The k-th send of a channel (an axis, a distance on it, a tag) of a rank is
 * the k-th receive of that channel of the rank at that distance. Both sides wait for each other, as
 * NCCL's kernels do (no eager sends), so programs can deadlock: plan_check() proves that they do
 * not. Ignored there: the limit of the launch queue.
 *
 * Built by plan_begin / plan_*; finished by plan_end, which fixes the positions; const from then
 * on. Names are borrowed from the caller's arena, or literals: a plan of millions of ops has few
 * that differ. */
#ifndef FLOPCAST_PLAN_PLAN_H
#define FLOPCAST_PLAN_PLAN_H

#include "base/index.h"
#include "base/vec.h"
#include "coll/coll.h"
#include "kernel/documents.h"
#include "kernel/kernel.h"
#include "mesh/mesh.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* The queues that every plan has, by their places in plan->queues; a plan may have more
 * (plan_queue). */
enum plan_stream {
    STREAM_COMPUTE,   /* the default CUDA stream */
    STREAM_COMM,      /* NCCL stream of the process group that shards (or the only one) */
    STREAM_REPLICATE, /* NCCL stream of the process group that replicates (HYBRID_SHARD) */
    STREAM_UNSHARD,   /* FSDP's pre-unshard stream: shards are copied and cast there before
                         all-gathers */
    STREAM_POST,      /* FSDP's post-backward stream: casts of gradients around reduce-scatters */
    STREAM_LOADER,    /* no CUDA stream: the host's threads that make the next batch */
    STREAM_COUNT,
};

enum plan_queue_kind {
    QUEUE_COMPUTE, /* the first queue, and only that: a step ends with its last op, its idle time is
                      explained */
    QUEUE_COMM,    /* a NCCL stream: collectives, sends and receives, which hold SMs while they wait
                      and move */
    QUEUE_SIDE,    /* kernels beside the compute stream */
    QUEUE_HOST,    /* threads of the host */
};

struct plan_queue {
    const char *name;
    uint8_t kind; /* enum plan_queue_kind */
};

enum op_kind {
    OP_KERNEL,     /* index: kernels */
    OP_COLLECTIVE, /* index: collectives */
    OP_HOST,       /* host work only: Python hooks, optimizer loop */
    OP_HOST_WAIT,  /* the host blocks until the op waited for is done (event.synchronize(),
                      loss.item()) */
    OP_KEEP,  /* index: buffers; allocated when the host passes in the first of several steps, lives
                 on */
    OP_ALLOC, /* index: buffers; takes effect when the host passes */
    OP_FREE,  /* index: buffers; usable again by its own stream at once, by others after the ops
                 waited for are done */
    OP_SEND,  /* index: messages */
    OP_RECV,
};

/* What HBM is used for. */
enum hbm_category {
    HBM_PARAMETERS, /* parameters (or shards of them) in their master precision */
    HBM_GRADIENTS,
    HBM_OPTIMIZER,
    HBM_ACTIVATIONS, /* saved and temporary activations and their gradients */
    HBM_GATHERED,    /* unsharded parameters and gradients of FSDP units, low-precision copies of
                        shards */
    HBM_BUFFERS,     /* DDP buckets and other communication buffers of the framework */
    HBM_CONTEXT,     /* CUDA context, libraries */
    HBM_NCCL,        /* NCCL's own buffers */
    HBM_CATEGORY_COUNT,
};
extern const char *const hbm_category_names[HBM_CATEGORY_COUNT + 1];

enum plan_phase {
    PHASE_SETUP,
    PHASE_FORWARD,
    PHASE_BACKWARD,
    PHASE_RECOMPUTE,
    PHASE_OPTIMIZER,
    PHASE_COUNT
};
extern const char *const plan_phase_names[PHASE_COUNT + 1];

struct plan_op {
    uint8_t kind, stream, phase;
    uint16_t n_waits;
    int32_t index;      /* by kind: kernel, collective, message or buffer; -1 otherwise */
    int32_t first_wait; /* into waits */
    int32_t position; /* of a device op: its place in its queue, set by plan_end; -1 for host ops */
    float host_s;     /* host time to issue it, seconds */
    const char *name; /* "encoder.block.3/wi" */
};

/* An op number; PLAN_PREVIOUS_STEP + op names that op in the step before (done already in the first
 * step). */
typedef int32_t plan_wait;
enum {
    PLAN_NO_OP = -1,
    PLAN_PREVIOUS_STEP = 1 << 30,
    PLAN_LAST_STEP = PLAN_PREVIOUS_STEP, /* of a program that grows: see plan_link_steps() */
};

static inline bool plan_op_is_memory(const struct plan_op *op)
{
    return op->kind == OP_KEEP || op->kind == OP_ALLOC || op->kind == OP_FREE;
}

/* On a QUEUE_COMM: an op in which ranks meet. */
static inline bool plan_op_is_comm(const struct plan_op *op)
{
    return op->kind == OP_COLLECTIVE || op->kind == OP_SEND || op->kind == OP_RECV;
}

/* What of a job needs a collective or message. */
enum plan_parallelism {
    PARALLEL_DATA,
    PARALLEL_TENSOR,
    PARALLEL_CONTEXT,
    PARALLEL_EXPERT,
    PARALLEL_PIPELINE,
    PARALLEL_COUNT
};
extern const char *const plan_parallelism_names[PARALLEL_COUNT + 1]; /* "data", "tensor", ... */

/* By the axes over which ranks meet (1 << AXIS_TP | ...). Of several: data, then pipeline, expert,
 * tensor. */
enum plan_parallelism plan_parallelism_of(unsigned axes);

struct plan_collective {
    enum coll_kind kind;
    double bytes; /* whole message, see coll.h */
    int group;    /* into groups */
    /* Not by the group: where an axis is all that data parallelism has, too, one communicator
     * serves both. */
    enum plan_parallelism serves;
    const struct coll_routing *routing; /* see coll_of(); NULL: NCCL's. Lives as long as names */
};

/* A process group. Its ranks are in the programs that have collectives of it, and in no other. */
struct plan_group {
    const char *name; /* "world", "shard", "replicate" */
    struct mesh_group ranks;
};

/* Messages from each rank that sends them to the one at `delta` on the axis, around its end. Those
 * of one tag come in the order in which they are sent. */
struct plan_channel {
    enum mesh_axis axis;
    int delta, tag;
};
static inline bool plan_channel_same(const struct plan_channel *a, const struct plan_channel *b)
{
    return a->axis == b->axis && a->delta == b->delta && a->tag == b->tag;
}

struct plan_message {
    int channel; /* into channels */
    double bytes;
};

struct plan_buffer {
    int64_t bytes;
    uint8_t category;
    uint8_t stream; /* whose pool it comes from in the caching allocator */
    const char *name;
};

/* A cell of the schedule: the ops that the host issues from first_op on, until the next one begins.
 * For timelines, and for what is drawn for a micro-batch. */
struct plan_cell {
    const char
        *pass; /* a literal, see strategy/schedule.h; NULL: what follows belongs to no cell */
    int32_t first_op, micro_batch, chunk;
};

/* Of which documents the sequences of a rank's micro-batches are packed; documents.n 0: each is
 * one. What attention kernels take for it is drawn for each step, micro-batch and rank that trains
 * on other samples (exec/exec.h). */
struct plan_packing {
    struct documents documents; /* the list is in the arena of the plan */
    int32_t micro_batches, sequences,
        last_sequences; /* sequences of a micro-batch, of the last one */
};

typedef VEC(int32_t) plan_numbers;

/* What one class of ranks runs. */
struct plan_program {
    struct plan_fold
        *fold; /* of a plan that was begun with folds, mostly: ops, waits, buffers, setup and
                * queue_ops are there (plan/fold.h), and no longer here. NULL: they are here */
    VEC(struct plan_op) ops;
    VEC(plan_wait) waits;
    VEC(struct plan_buffer) buffers;
    plan_numbers
        setup; /* buffers that live for the whole run, allocated before the first step, in order */
    struct plan_packing packing;
    VEC(struct plan_cell)
    cells; /* in the order of ops; none: it is not known which op is of which */
    VEC(plan_numbers) queue_ops; /* ops of each queue in order, set by plan_end */
    double model_flop; /* a rank and step: forward and backward, 3 x forward where all is trained */
    double masked_flop;   /* what of model_flop masks hide */
    double hardware_flop; /* a rank and step: what GEMM and attention kernels execute, recomputation
                             counted */
    double math_flop[DTYPE_COUNT]; /* the same by what they multiply in */
    double skipped_flop;           /* what causal attention kernels skip of all pairs */
    double host_bytes;             /* pinned host memory of a rank, for the whole run */
};

struct plan {
    struct mesh mesh;
    int n_programs;              /* 1, the size of program_axis, or `inner` times that */
    enum mesh_axis program_axis; /* of several programs a rank runs that of its coordinate there */
    enum mesh_axis
        inner_axis; /* inner > 1: at each place on program_axis, that of its coordinate here */
    int inner;      /* programs at a place on program_axis: 1, or the size of inner_axis */
    struct plan_program *programs;
    VEC(struct plan_queue) queues;
    VEC(struct plan_group) groups;
    VEC(struct plan_channel) channels;
    /* shared by the programs: */
    VEC(struct kernel_work) kernels; /* each once, however many ops are it */
    VEC(struct plan_collective) collectives;
    VEC(struct plan_message) messages; /* each once */
    double tokens, samples;            /* of the job and step */
    struct arena folds;                /* of the programs */
};

static inline int plan_program_of(const struct plan *plan, int rank)
{
    if (plan->n_programs == 1)
        return 0;
    int place = mesh_coordinate(&plan->mesh, rank, plan->program_axis);
    return plan->inner == 1
               ? place
               : place * plan->inner + mesh_coordinate(&plan->mesh, rank, plan->inner_axis);
}
/* Its place on program_axis: of the stages of a pipeline. */
static inline int plan_stage_of(const struct plan *plan, int rank)
{
    return plan_program_of(plan, rank) / plan->inner;
}
/* The lowest rank that runs a program. */
static inline int plan_first_rank(const struct plan *plan, int program)
{
    if (plan->n_programs == 1)
        return 0;
    return program / plan->inner * plan->mesh.stride[plan->program_axis] +
           program % plan->inner * plan->mesh.stride[plan->inner_axis];
}
/* How many ranks run a program, any of them. */
static inline int plan_program_ranks(const struct plan *plan)
{
    return plan->mesh.ranks / plan->n_programs;
}
/* Sequences of the same length that need not have the same documents. */
bool plan_documents_vary(const struct plan *plan);
static inline bool plan_queue_is_comm(const struct plan *plan, int queue)
{
    return plan->queues.at[queue].kind == QUEUE_COMM;
}
/* The cell of an op; one with pass NULL: it is of none. */
struct plan_cell plan_cell_of(const struct plan_program *program, int op);
int plan_program_ops(const struct plan_program *program);
/* Ops of all programs. */
int plan_ops(const struct plan *plan);
/* A GPU and step, in the mean over the job. */
double plan_model_flop(const struct plan *plan, enum attention_flop counts);
double plan_hardware_flop(const struct plan *plan, enum attention_flop counts);
double plan_math_flop(
    const struct plan *plan, enum dtype math); /* of ATTENTION_FLOP_CAUSAL what is in this format */

/* ---- builder ---- */

struct plan_tail {
    VEC(plan_wait) pending; /* waits that the queue's next op takes */
    int last_op;            /* PLAN_NO_OP: none yet */
};

/* Whether programs are held as plan/fold.h says. For exec alone, which needs a tenth of the memory
 * then. */
enum plan_folds {
    PLAN_FOLDS_NONE,
    PLAN_FOLDS_PROGRAMS, /* when they are complete */
    PLAN_FOLDS_OPS,      /* while they grow: nothing looks back at an op, nor weaves */
};

struct plan_builder {
    enum plan_folds folds;
    bool unfit;                   /* of PLAN_FOLDS_OPS a program could not be held so */
    struct plan_folding *folding; /* the program that grows is held there, or NULL: op by op */
    plan_numbers unused;          /* buffers of it that are freed, whose numbers others take */
    int last_step;                /* plan_link_steps() */
    struct index alike;           /* folds: of plan->collectives */
    int own;                      /* folds: the first collective of the program that grows */
    /* Of a CUDA graph: ops of forward and backward passes from now on are launched by the first of
     * them, and the host waits in none. */
    bool captures, launched;
    struct plan *plan;
    struct plan_program *program;       /* the one that grows */
    struct index kernels;               /* of plan->kernels */
    enum plan_phase phase;              /* of the ops appended from now on */
    enum plan_parallelism serves;       /* of the collectives appended from now on */
    const struct coll_routing *routing; /* of these, too */
    VEC(struct plan_tail) tails;        /* of each queue, in this program */
};

/* A plan of one program for all ranks, which differ in data only. */
void plan_begin(struct plan_builder *builder, struct plan *plan, int ranks);
/* A plan of a program for each place on an axis of the mesh; the first one begins. */
void plan_begin_programs(struct plan_builder *builder, struct plan *plan, const struct mesh *mesh,
    enum mesh_axis program_axis);
/* And of each place on another axis: programs of a place on the first axis come one after the
 * other. */
void plan_begin_programs_by_two(struct plan_builder *builder, struct plan *plan,
    const struct mesh *mesh, enum mesh_axis program_axis, enum mesh_axis inner_axis);
void plan_next_program(struct plan_builder *builder);
/* Before the first op of the first program. */
void plan_fold_programs(struct plan_builder *builder, enum plan_folds folds);
/* A cell begins with the next op; pass NULL: none does. */
void plan_begin_cell(struct plan_builder *builder, const char *pass, int micro_batch, int chunk);
/* One more queue, for all programs; the same name twice is one queue. */
int plan_queue(struct plan_builder *builder, const char *name, enum plan_queue_kind kind);
/* The same ranks twice are one group. plan_group: ranks that differ by stride x i, size of them. */
int plan_group(struct plan_builder *builder, const char *name, int size, int stride);
int plan_group_of(struct plan_builder *builder, const char *name, struct mesh_group ranks);
/* The queue's next op waits for op (cudaStreamWaitEvent). PLAN_NO_OP is ignored. */
void plan_stream_wait(struct plan_builder *builder, int queue, plan_wait op);
/* The same for all that `other` was given up to here: its last op, and the waits that its next op
 * takes (cudaEventRecord on `other`, then cudaStreamWaitEvent). What the queue itself runs comes
 * before anyway. */
void plan_stream_wait_stream(struct plan_builder *builder, int queue, int other);
int plan_kernel(struct plan_builder *builder, int queue, const char *name, struct kernel_work work,
    double host_s);
/* The same in two: the number of a kernel in the plan, which is `guess` where that one is alike
 * (-1: no guess), without a search; and the op of a kernel that has one. */
int32_t plan_kernel_number(
    struct plan_builder *builder, const struct kernel_work *work, int32_t guess);
int plan_kernel_numbered(
    struct plan_builder *builder, int queue, const char *name, int32_t kernel, double host_s);
int plan_collective(struct plan_builder *builder, int queue, const char *name, enum coll_kind kind,
    double bytes, int group, double host_s); /* a group of one rank: no op, returns PLAN_NO_OP */
/* ncclSend to the rank at `delta` on the axis, and the ncclRecv of what the rank at -delta sends
 * so. An axis of one rank: no op. */
int plan_send(struct plan_builder *builder, int queue, const char *name,
    struct plan_channel channel, double bytes, double host_s);
int plan_recv(struct plan_builder *builder, int queue, const char *name,
    struct plan_channel channel, double bytes, double host_s);
int plan_host(struct plan_builder *builder, const char *name, double host_s);
int plan_host_wait(struct plan_builder *builder, const char *name, plan_wait waited, double host_s);
/* A buffer that lives for the whole run. */
void plan_keep(
    struct plan_builder *builder, const char *name, int64_t bytes, enum hbm_category category);
/* One that is allocated here in the first step: what PyTorch makes when it is first needed. bytes
 * 0: none. */
void plan_keep_from_here(
    struct plan_builder *builder, const char *name, int64_t bytes, enum hbm_category category);
/* A buffer allocated by the host now; returns its number for plan_free. bytes 0 gives PLAN_NO_OP,
 * which plan_free ignores. */
int plan_alloc(struct plan_builder *builder, int queue, const char *name, int64_t bytes,
    enum hbm_category category);
/* last_use: the last op of another stream that uses it (record_stream), or PLAN_NO_OP when only its
 * own stream did. */
void plan_free(struct plan_builder *builder, int buffer, plan_wait last_use);
int plan_last_op(const struct plan_builder *builder, int queue); /* PLAN_NO_OP when none yet */
int plan_next_op(const struct plan_builder *builder);            /* the number of the next one */
/* Waits of this program for PLAN_LAST_STEP are for this op of the step before. */
void plan_link_steps(struct plan_builder *builder, int last);
/* Ops from `first` on and from `second` on to `end`: two passes that need nothing of each other. */
struct plan_pair {
    int first, second, end;
};
/* Launches the ops of pairs in turns, each queue in that order: the second one up to its first
 * exchange of experts' tokens; then, again and again, what the first one computes up to its next
 * exchange, what the second one does, and both exchanges. So kernels of one pass run beside the
 * exchanges of the other. An op that waited for the end of the first pass waits for what its queue
 * has before it. pairs: in their order, apart. No op of this program may follow. */
void plan_weave(struct plan_builder *builder, const struct plan_pair *pairs, int n);
/* False: of PLAN_FOLDS_OPS a program could not be folded; the plan is of no use. */
bool plan_end(struct plan_builder *builder);
void plan_release(struct plan *plan); /* the arrays, and folds */

/* ---- looking at a plan ---- */

/* Of each collective the first that takes as long: of its kind, bytes, group and routing. For
 * free(). */
int *plan_first_collectives(const struct plan *plan);

/* Laws that every plan obeys: waits point backwards, indices are in range, every buffer allocated
 * in the step is freed in it exactly once, groups fit the mesh, a program has the collectives of a
 * group on one queue, and the sends and the receives of a channel on one each, as a NCCL
 * communicator runs one after the other. Between programs: members of a group have the same
 * collectives of it in the same order, every send has its receive, of as many bytes, and the
 * programs cannot deadlock. On a breach false, and why: the ops are named. */
bool plan_check(const struct plan *plan, char *why, size_t n);

/* Like SQLite's EXPLAIN: one op a line. Then the collectives that are alike together, alone on
 * their links, with what binds them. Several programs: each one, then all of them side by side, ops
 * that meet on one line. */
void plan_explain(FILE *out, const struct plan *plan, const struct hw *hw);

uint64_t plan_digest(const struct plan *plan);

#endif
