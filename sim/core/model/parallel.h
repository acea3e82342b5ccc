/* How a model is cut over ranks: by width (tensor), by tokens (sequence, context), by experts and
 * by blocks (stages of a pipeline). A rank's share is a model, too, so strategies lay out
 * parameters, gradients and states as they do a whole model's. */
#ifndef FLOPCAST_MODEL_PARALLEL_H
#define FLOPCAST_MODEL_PARALLEL_H

#include "base/arena.h"
#include "mesh/mesh.h"

#include <stdbool.h>
#include <stdint.h>

struct model;
struct model_shape;
struct model_workload;

/* How the sequence is cut for attention over the ranks of AXIS_CP, by TransformerEngine's names
 * (cp_comm_type).
 *   p2p         keys and values go around a ring, an exchange beside the attention of each step
 *   all_gather  keys and values of all ranks are gathered first, in backward again
 *   a2a         DeepSpeed-Ulysses: an all_to_all turns a part of the sequence with all heads into
 *               the whole sequence with a part of the heads, and back
 * Of a packed sequence each document is cut as a sequence would be, so that ranks have the same
 * work.
 *
 * ring_allgather, ring_alltoall: PyTorch's context_parallel()
 * (torch/distributed/tensor/experimental/_attention.py of 2.6), with set_rotate_method()
 * "allgather" (its default) and "alltoall". Key heads are repeated before. There is an attention
 * kernel a step, of the local keys, then of each other rank's; results are merged in FP32 by
 * kernels that work element by element. Keys and values come by one all_gather, or go around a
 * ring, in backward again; their gradients go around in FP32, an exchange a step, the last one too.
 * Compiled (train.fusion inductor) every collective is waited for where it stands: funcol traces a
 * wait behind it (_maybe_wrap_tensor), and Inductor's reorder_for_compute_comm_overlap is off by
 * default. Else they run beside the kernel of a step; two in flight at once are one message here.
 */
enum context_parallel {
    CONTEXT_P2P,
    CONTEXT_ALL_GATHER,
    CONTEXT_A2A,
    CONTEXT_RING_ALLGATHER,
    CONTEXT_RING_ALLTOALL,
    CONTEXT_PARALLEL_COUNT
};
extern const char *const
    context_parallel_names[CONTEXT_PARALLEL_COUNT + 1]; /* "p2p" ... "ring_alltoall", as above */
static inline bool context_is_pytorch(int kind)
{
    return kind == CONTEXT_RING_ALLGATHER || kind == CONTEXT_RING_ALLTOALL;
}

/* What runs beside the collectives of tensor parallelism.
 *   none   nothing: each is waited for at once, and the linear layers keep the gathered input
 *          (DTensor, torchtitan)
 *   async  Megatron-LM's LinearWithGradAccumulationAndAsyncCommunication: in backward the input's
 *          gradient is reduced beside the product for the weight's; with sequence a linear layer
 *          keeps its shard of the input only, and gathers it again beside the product for the
 *          input's gradient
 *   user_buffers  TransformerEngine's tp_comm_overlap, with sequence only (else async), in blocks
 *          only: what async has beside GEMMs (bulk); and where a GEMM reads what is gathered, or
 *          its result is reduce-scattered, both in pieces
 *          (transformer_engine/pytorch/module/base.py, defaults of Megatron-LM's switches): gather:
 *          t pieces of the rows, own ones first; each rank's copy engine hands rows on to the next
 *          rank while others are multiplied (ring-exchange; the own rows are copied into the buffer
 *          first) reduce-scatter: 4 pieces of the columns, each reduced beside the GEMM of the next
 *          one (pipeline); the last one is waited for Pieces of a GEMM take together as long as the
 *          GEMM (up to three streams fill each other's last waves, assumed), and have a launch
 *          each. Reductions cost what NCCL's do. Ignored: SMs that GEMMs leave free for 16-SM
 *          reductions when none is there, the copy of the gathered tensor, layers that are no qkv,
 *          proj, fc1 or fc2 (with several layers that read the same, the first one's GEMM is cut)
 *   micro_pipeline  torch.compile's _micro_pipeline_tp ("async TP"), with sequence, within a node,
 *          in blocks only: what none has, and where a GEMM reads what is gathered first, or its
 *          result is reduce-scattered, both in t pieces of the rows
 *          (torch/distributed/_symmetric_memory/__init__.py, _fused_all_gather_matmul and
 *          _fused_matmul_reduce_scatter): a gather as with user_buffers; each rank's part of a
 *          result is copied there beside the GEMM of the next piece, and a kernel adds the t parts
 *          up at the end. Casts of weights that stand between gather and GEMM come before both (FP8
 *          tensorwise). Not cut: where the gathered is cast (rowwise), sums of several layers'
 *          input gradients. Pieces of a GEMM cost what user_buffers' do (two streams in turn) */
enum tensor_overlap {
    TENSOR_BLOCKING,
    TENSOR_ASYNC,
    TENSOR_USER_BUFFERS,
    TENSOR_MICRO_PIPELINE,
    TENSOR_OVERLAP_COUNT
};
extern const char *const
    tensor_overlap_names[TENSOR_OVERLAP_COUNT + 1]; /* "none" ... "micro_pipeline", as above */

/* How a model is cut over ranks (Megatron-LM's tensor, sequence and context parallelism). Ranks 0
 * and 1: not cut. */
struct model_parallel {
    int64_t tensor; /* ranks of AXIS_TP: heads, feed-forward layers and vocabulary */
    bool sequence; /* between these, each of them has its part of the sequence (arXiv 2205.05198) */
    int tensor_overlap; /* enum tensor_overlap; with gather_dim 1 none or micro_pipeline */
    /* With sequence: the dimension that is gathered and reduce-scattered. 0: what lies sequence
     * first (Megatron-LM). 1: samples first, as DTensor's Shard(1) of torchtitan: each gather has a
     * copy of all of it behind it, each reduce-scatter one before it
     * (torch/distributed/_functional_collectives.py, all_gather_tensor and reduce_scatter_tensor,
     * torch.cat), but not where async TP cuts the product into pieces (micro_pipeline). Ignored:
     * that Inductor could make such a copy and a cast by rows in one. */
    int64_t gather_dim;
    int64_t context;  /* ranks of AXIS_CP: each has its part of the sequence everywhere */
    int context_kind; /* enum context_parallel */
    /* ring_allgather, ring_alltoall: ranks have parts of the sequence one after the other
     * (enable_load_balance off), so that under a causal mask the last one has the most work. It is
     * this one that is modelled: all wait for it. Else each has two of 2 c chunks, the r-th and the
     * r-th last, and all have as much work. */
    bool context_sequential;
    int64_t expert;        /* ranks that share a block's experts: model_moe.local of them on each */
    int64_t expert_tensor; /* ranks that share each expert's width, AXIS_TP: model_moe.d_ff is a
                              rank's part of it */
};
static inline int64_t model_tensor_ranks(const struct model_parallel *parallel)
{
    return parallel->tensor > 1 ? parallel->tensor : 1;
}
static inline int64_t model_context_ranks(const struct model_parallel *parallel)
{
    return parallel->context > 1 ? parallel->context : 1;
}

static inline int64_t model_expert_ranks(const struct model_parallel *parallel)
{
    return parallel->expert > 1 ? parallel->expert : 1;
}
/* Ranks that share each expert. */
static inline int64_t model_expert_width(const struct model_parallel *parallel)
{
    return parallel->expert_tensor > 1 ? parallel->expert_tensor : 1;
}
/* Experts are shared out over a second grid of the ranks (mesh/mesh.h), as they are not over whole
 * TP groups side by side: those of context parallelism are among them, or some of a TP group's.
 * Without, both grids have the same groups. */
static inline bool model_expert_folds(const struct model_parallel *parallel)
{
    bool whole = model_tensor_ranks(parallel) > 1 && model_expert_width(parallel) == 1;
    int64_t ranks = model_expert_ranks(parallel);
    return ranks > 1 && (model_context_ranks(parallel) > 1 ||
                            (whole && ranks % model_tensor_ranks(parallel) != 0));
}
/* The axes over whose ranks experts are shared out: where each is whole on its rank, those of
 * tensor parallelism, which have different tokens then, are the first of them. */
static inline unsigned model_expert_axes(const struct model_parallel *parallel)
{
    bool whole = model_tensor_ranks(parallel) > 1 && model_expert_width(parallel) == 1;
    if (model_expert_folds(parallel))
        return 1U << AXIS_EP | AXES_OF_EXPERT_GRID;
    return 1U << AXIS_EP | (whole ? 1U << AXIS_TP : 0U);
}
/* Those over whose ranks each expert is shared; the ranks that hold the same experts. */
static inline unsigned model_expert_tensor_axes(const struct model_parallel *parallel)
{
    return 1U << AXIS_TP | (model_expert_folds(parallel) ? AXES_OF_EXPERT_GRID : 0U);
}
/* Groups of context and tensor parallelism that experts are shared out over: data parallelism has a
 * multiple of them. */
static inline int64_t model_expert_axis(const struct model_parallel *parallel)
{
    int64_t dense = model_tensor_ranks(parallel) * model_context_ranks(parallel);
    int64_t experts = model_expert_ranks(parallel) * model_expert_width(parallel), a = dense,
            b = experts;
    while (b > 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return model_expert_ranks(parallel) == 1 ? 1 : experts / a;
}

/* The part of a model that each rank of AXIS_TP has (all have alike): a model of the same width and
 * blocks whose heads, feed-forward layers and vocabulary are narrower, so that all sizes follow.
 * Tensors that are smaller than the whole model's are marked (split). With fewer key heads than
 * ranks several ranks hold the same one. The vocabulary is padded so that each rank has a multiple
 * of MODEL_VOCAB_MULTIPLE rows (Megatron-LM, --make-vocab-size-divisible-by). Neither is counted as
 * model FLOP: the sum over the ranks is the whole model's (model_tensor.counted). What is not cut
 * counts on each rank as its share of one.
 *
 * Differs: T5's table of relative positions is cut by heads (Megatron-LM keeps the small table
 * whole). Of an adapter (model_adapt) the matrix on the residual stream's side is on each rank, and
 * counts on each. */
enum { MODEL_VOCAB_MULTIPLE = 128 };
void model_shard(struct model *out, const struct model *model,
    const struct model_parallel *parallel, struct arena *arena);
/* Why a model cannot be cut as the workload says, a sentence with numbers that would do; in arena.
 * NULL: it can. */
const char *model_shard_wrong(
    const struct model_shape *shape, const struct model_workload *workload, struct arena *arena);

/* What a stage of a pipeline has of a model of one stack: chunks of its blocks, by their numbers
 * from 0, and the ends. Of the root a stage has the tensors that its ends use: a tied embedding is
 * on the stages with an end. A stage of several chunks has both ends in different ones, the first
 * and the last, so that each makes a whole gradient of it. */
struct model_chunk {
    int first, n;
};
struct model_stage {
    const struct model_chunk *chunks;
    int n_chunks;
    unsigned ends;
};
void model_stage(struct model *out, const struct model *model, const struct model_stage *stage,
    const struct model_workload *workload, struct arena *arena);

#endif
