/* Private to strategy/: one step as a plan.
 *
 * emit_step() goes through the cells of a schedule and emits, segment by segment, the kernels of
 * the forward and the backward pass with the life of their tensors. What depends on where
 * parameters, gradients and optimizer state lie is up to the hooks of struct data_parallel, which
 * it calls at fixed points. A strategy is such a table of hooks: a file that defines one, and its
 * line in STRATEGIES. */
#ifndef FLOPCAST_STRATEGY_EMIT_H
#define FLOPCAST_STRATEGY_EMIT_H

#include "mesh/mesh.h"
#include "strategy/segment_ops.h"
#include "strategy/strategy.h"

struct emit;

/* A strategy of data parallelism. Its state is emit->state, zeroed before setup. A hook may be
 * NULL: nothing to do. In the order in which a step comes to them: */
struct data_parallel {
    size_t state_size;
    /* As results call it: label, or by its options. */
    const char *label, *(*label_of)(const struct strategy_options *);
    const char *section; /* of STRATEGY_SECTIONS, that it reads */
    unsigned takes;      /* beside data parallelism: bits of enum plan_parallelism */
    const char *
        copies_as; /* it keeps 16-bit weights and FP32 copies, under this name; NULL: it does not */
    bool clips_by_option; /* see strategy_clips_by_option() */
    bool changes_ops;     /* of a program, once it has all */
    /* The hooks of a job with these options, where they decide; NULL: these. */
    const struct data_parallel *(*variant)(const struct strategy_options *);
    /* How many of a job's ranks are to share one copy of what is sharded, AXIS_DP_SHARD; NULL: each
     * has all. */
    int (*shard_ranks)(const struct strategy_options *, const struct hw *, int ranks);
    /* What is there for the whole run; what is left over from the step before. */
    void (*setup)(struct emit *);
    void (*step_begins)(struct emit *);
    void (*forward_begins)(
        struct emit *); /* of a micro-batch: emit->on_first and on_last are set */
    void (*before_forward)(struct emit *, int segment);
    void (*after_forward)(struct emit *, int segment);
    void (*before_backward)(struct emit *, int segment);
    void (*after_backward)(struct emit *, int segment);
    void (*backward_ends)(struct emit *); /* of a micro-batch; its outputs are gone */
    void (*step_ends)(struct emit *);     /* the optimizer, and the state's arrays */
    /* Within a segment, before and after a kernel that uses a parameter tensor (index in
     * model->tensors), and before and after a backward kernel that completes its gradient. */
    void (*param_needed)(struct emit *, int tensor);
    void (*param_used)(struct emit *, int tensor);
    void (*grad_begins)(struct emit *, int tensor);
    void (*grad_ready)(struct emit *, int tensor);
};

/* By enum strategy_kind. */
extern const struct data_parallel *const strategies[];
#define STRATEGY_DECLARATION(kind, name, hooks) extern const struct data_parallel hooks;
STRATEGIES(STRATEGY_DECLARATION)

struct emit_name {
    int layer;
    const char *what, *name;
};

/* An activation in host memory, of this block. */
struct offloaded {
    int block, segment, activation;
};

/* A message that is on its way to a cell. */
struct posted {
    bool is;
    struct cell cell;
    plan_wait op;
};

struct emit {
    struct plan_builder builder;
    const struct strategy_options *options;
    const struct model *model; /* with its adapters; of several ranks or stages this one's share */
    const struct hw *hw;
    struct arena *arena;
    const struct data_parallel *hooks;
    void *state;                    /* theirs */
    struct model_workload workload; /* of the micro-batch that is emitted */
    struct model_segments segments;
    struct segment_ops *ops; /* by segment */
    int micro_batches;
    int64_t last_micro_batch; /* its sequences */
    bool on_first, on_last;   /* micro-batch of the step */
    struct cell cell;         /* of the schedule, that is emitted */
    int64_t master_bytes;     /* a parameter as it is kept: 4, or 2 in BF16 */
    int64_t step_bytes; /* a parameter as the optimizer steps on it: master_bytes, or 4 where it has
                           a copy */
    int64_t param_bytes; /* a parameter as kernels see it: master_bytes, or 2 in mixed precision */
    int64_t main_grad_bytes;   /* GEMMs add matrices' gradients to buffers of such elements; 0: they
                                  make a tensor */
    bool overwrites_main_grad; /* they write them and add nothing */
    unsigned recomputed_parts; /* of blocks, see strategy_recomputed_parts() */
    bool replays;   /* cuda_graphs layer: of the ops of a block that follow its first one */
    int comm_queue; /* of the model's communications: STREAM_COMM, unless the strategy sets another
                     */
    plan_wait comm; /* the last of them */
    int norm_group; /* ranks that add up the norm of their gradients, or PLAN_NO_OP: each has all */
    VEC(int) group_queues; /* by group: the queue of its collectives; PLAN_NO_OP: none yet */
    struct index names;    /* of what emit_name made */
    VEC(struct emit_name) made;
    int *grads;  /* by tensor: buffer of its gradient, or PLAN_NO_OP; what is left is freed after
                    step_ends */
    int *caches; /* by segment: past_key_values, see train_options.use_cache */
    int *blocks; /* by segment: blocks up to this one */
    int **saved; /* by segment: buffer of each activation that lives now, PLAN_NO_OP for others; of
                  * the cell's chunk and micro-batch, one of: */
    int ***flights;   /* by micro-batch and chunk; NULL: not under way */
    VEC(int **) idle; /* those that ended */
    VEC(int) outputs; /* pipeline_keep_output()'s buffers, of output_bytes together */
    int64_t output_bytes;
    VEC(struct offloaded) offloaded;
    int n_away;       /* blocks whose activations have left HBM */
    int *chunk_begin; /* by model chunk: its first segment; then the end of all */
    struct schedule schedule;
    struct posted posted[2][2];  /* on either leg of a V the next activations, the next gradients;
                                    else on the first */
    VEC(struct plan_pair) pairs; /* cells whose ops are launched in turns, see schedule.merges */
};

/* The whole step. */
void emit_step(struct plan *plan, const struct job *job, struct arena *arena);

/* Is it the first segment of its layer in a forward pass, hence the last in backward? The root has
 * several. */
bool emit_opens_layer(const struct emit *emit, int segment);

/* Activation checkpointing: is the segment a block that runs again; does it leave kernel k of its
 * forward pass out, because what that computes was kept or comes too late to be needed? */
bool emit_recomputes(const struct emit *emit, int segment);
bool emit_skips(const struct emit *emit, int segment, int k);

/* The kernels of a segment's forward pass. With recomputation only its output is kept, and what
 * selective checkpointing keeps. */
void emit_forward(struct emit *emit, int segment);
/* Recomputation, where the segment does it, and the kernels of its backward pass; at its end
 * everything that the segment kept, and the output of the segment before it, is freed; the gradient
 * of that output goes to the segment before. */
void emit_backward(struct emit *emit, int segment);
/* The same without the matrices' gradients, and these alone (see model_op_is_weight_gradient()).
 * Ignored: that they need gradients which the residual stream goes on with. */
void emit_backward_input(struct emit *emit, int segment);
void emit_backward_weight(struct emit *emit, int segment);
/* Activations of the first blocks go to host memory: behind a segment's forward pass, and back
 * before the backward one. */
void offload_behind_forward(struct emit *emit, int segment);
void offload_before_backward(struct emit *emit, int segment);
/* An activation that another stage, or the host, sends. */
void emit_receive_into(struct emit *emit, int segment, int activation);

/* The group of the ranks that differ in these axes, which lie side by side; how many differ in any
 * axes. */
int emit_group(struct emit *emit, const char *name, unsigned axes);
int emit_degree(const struct emit *emit, unsigned axes);

/* A collective that begins when `after` is done, at the host's price for one. A process group has
 * one stream: the first that one of its collectives was put on; `queue` where this is the first. */
plan_wait emit_collective(struct emit *emit, int queue, plan_wait after, const char *name,
    enum coll_kind kind, double bytes, int group);
/* An all_reduce that the compute stream waits for at once. */
plan_wait emit_all_reduce(
    struct emit *emit, const char *name, double bytes, int group, enum plan_parallelism serves);
/* Numbers of these bytes, added up over the ranks that share the model, first of tensor
 * parallelism, then of the pipeline. Returns the last all_reduce; PLAN_NO_OP: one rank has it all.
 */
plan_wait emit_add_over_model(struct emit *emit, const char *what, double bytes);
/* Elements whose gradients are parts of a sum over the TP group: of what sequence parallelism
 * leaves on every rank. */
int64_t emit_partial_elements(const struct emit *emit);
/* The first and the last stage hold the same table, tied to the head or for multi-token prediction:
 * its gradient is all-reduced between them. */
void emit_reduce_tied_embedding(struct emit *emit, int64_t element_bytes);
/* plan_free(), after which *buffer is PLAN_NO_OP. */
void emit_free(struct emit *emit, int *buffer, plan_wait last_use);

/* For a tensor that has none: emit->grads[tensor]. */
void emit_alloc_grad(struct emit *emit, int tensor, int64_t bytes, enum hbm_category category);
/* The same in the format of the weights, as kernels see them: a grad_begins hook. */
void emit_begin_grad(struct emit *emit, int tensor);

/* The model's outputs go out of scope: past_key_values are freed. */
void emit_drop_outputs(struct emit *emit);

/* Bytes of a parameter tensor, as it is kept and as gathers and kernels see it: what differs is
 * cast in between. */
int64_t emit_kept_bytes(const struct emit *emit, const struct model_tensor *tensor);
int64_t emit_used_bytes(const struct emit *emit, const struct model_tensor *tensor);

/* A kernel that streams; name as it is. */
void emit_stream_kernel(struct emit *emit, int stream, enum kernel_kind kind, const char *name,
    double reads, double writes);
/* A kernel of the compute stream over a tensor, "tensor/name"; bytes an element. */
void emit_tensor_kernel(struct emit *emit, int tensor, enum kernel_kind kind, const char *name,
    int64_t reads, int64_t writes, double issue_s);
/* autograd adds a gradient to the one of the micro-batches before. */
void emit_accumulate_grad(struct emit *emit, int tensor, double issue_s);
/* "encoder.block.3/wi", made once. what: a literal or a string of the model, compared by its
 * address. */
const char *emit_name(struct emit *emit, int layer, const char *what);

/* What the optimizer keeps for a tensor of this rank, or for a flat shard. */
int64_t emit_state_bytes(const struct emit *emit, struct optimizer_tensor tensor);
/* That state as PyTorch's optimizers make it: in their first step, a block for each moment of a
 * tensor. */
void emit_first_state(struct emit *emit, const struct optimizer_tensor *tensors, int n);
/* The kernels of optimizer.step() over what this rank updates; none where that happens in backward.
 */
void emit_optimizer(struct emit *emit, const struct optimizer_tensor *tensors, int n);
/* The state lives in host memory, pinned: keep these bytes there; step on the CPU, which the host
 * thread does, at the rank's share of the node's memory bandwidth, when op (the last copy of a
 * gradient) is done. in_one: in one pass. */
void emit_keep_on_host(struct emit *emit, int64_t bytes);
void emit_host_optimizer(
    struct emit *emit, const struct optimizer_tensor *tensors, int n, bool in_one, plan_wait op);
/* autocast: low-precision copies of a layer's parameters, which its backward pass reads, too;
 * PLAN_NO_OP: none. */
int emit_autocast_weights(struct emit *emit, int layer);
/* A copy between device and host. */
void emit_host_copy(struct emit *emit, int stream, const char *name, double bytes);

/* LOMO: the strategy calls emit_update as soon as a gradient is there, then frees it. */
bool emit_updates_in_backward(const struct emit *emit);
void emit_update(struct emit *emit, int stream, int64_t numel);

#endif
