/* Private to strategy/: Muon (Jordan et al. 2024; Moonlight, arXiv 2502.16982) on the matrices of a
 * model's blocks.
 *
 * A matrix of m x n, m <= n (else its transpose), as torch/optim/_muon.py (PyTorch 2.9 and later)
 * steps on it, and Megatron-LM through Emerging-Optimizers, in whose default, fp32_matmul_prec
 * medium, GEMMs are BF16, too:
 * - momentum.lerp_(grad), grad.lerp(momentum) (Nesterov), a cast to BF16;
 * - X / norm(X); then MUON_STEPS times A = X X^T, B = b A + c A A, X = a X + B X (Newton-Schulz,
 * the quintic): 2 m^2 n + 2 m^3 + 2 m^2 n FLOP. addmm copies what it adds to into its result, which
 * the GEMM then reads and writes;
 * - param.mul_ (weight decay), param.add_. Tables, the head, norms and biases are AdamW's. Each
 * expert of a block has matrices, which come one after another.
 *
 * Who does it:
 * - each rank that has the whole matrix, alike (DDP; Megatron-LM's --optimizer muon). Under tensor
 * parallelism each rank takes its part of a matrix as one (muon_tp_mode blockwise, the default).
 * - distributed (train.muon_distributed): matrices are dealt, the largest first and from every
 *   second lap on backwards (Megatron-LM's layer_wise_distributed_optimizer, shard_params():
 *   --optimizer dist_muon); a rank keeps the state of those that it got, and all ranks gather what
 *   all have stepped on. The rank with the most FLOP is modelled.
 * - under FSDP moments lie in shards. Updates are gathered in BF16, a tensor at a time, and each
 * rank orthogonalises all and takes its part; or, distributed, each matrix goes to one rank and
 * comes back, by all_to_all (microsoft/dion).
 *   The compute stream waits for both.
 *
 * Ignored: kernels that use the symmetry of X X^T; overlap of these collectives; that Megatron-LM
 * deals whole tensors of AdamW, too (here each rank has an equal share); q, k and v that a model
 * keeps in one matrix and muon_split_qkv takes apart. */
#ifndef FLOPCAST_STRATEGY_MUON_H
#define FLOPCAST_STRATEGY_MUON_H

#include "strategy/emit.h"

enum { MUON_STEPS = 5 };

/* How a rank that has all of a parameter tensor steps on it, with any optimizer. */
struct optimizer_tensor muon_tensor(
    const struct model *model, int optimizer, const struct model_tensor *tensor);

/* FLOP of the orthogonalisation of all matrices of the tensor. */
double muon_flop(struct optimizer_tensor tensor);

/* What the rank with the most of this FLOP gets where the matrices are dealt to ranks; AdamW's
 * tensors are left as they are. In place; returns how many tensors are left. */
int muon_deal(struct optimizer_tensor *tensors, int n, int ranks);

/* The step on the matrices; returns the tensors that are AdamW's and sets *n to how many. */
const struct optimizer_tensor *muon_step(
    struct emit *emit, const struct optimizer_tensor *tensors, int *n);

/* Whether matrices are dealt to ranks. */
static inline bool muon_distributes(const struct strategy_options *options)
{
    return options->train.optimizer == OPTIMIZER_MUON && options->train.muon_distributed;
}

/* What all ranks of the group have stepped on goes to all: bytes of the whole. */
void muon_gather(struct emit *emit, double bytes, int group);

#endif
