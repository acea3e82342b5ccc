/* A small autograd. A module's forward pass is written against this header as it is in PyTorch;
 * each call records the kernels that eager PyTorch 2 launches for it, which tensors autograd saves,
 * and how its gradient is computed. tape_close() then runs the records backwards and yields a
 * struct model_program.
 *
 *   int hidden = tape_linear(tape, "wi", x); kernel layer.1.DenseReluDense.wi, parameter ...
 *   .wi.weight
 *   hidden = tape_map(tape, "act", TAPE_RELU, hidden);
 *
 * Calls record in the order in which they run, so at most one argument of a call may be a recording
 * call itself: C leaves the order of arguments open, and the result would depend on the compiler.
 *
 * Tensors are handles (int). A tensor has rows x cols elements; reshapes and transposes that copy
 * nothing are not recorded. Names follow the scope: scope "attn", name "c_proj" is the kernel
 * attn.c_proj, and the parameters attn.c_proj.weight and .bias of the layer.
 *
 * Life of a tensor: allocated before the kernel that writes it, freed after the last that reads it,
 * in the backward pass if autograd saved it. A local variable of Python keeps a tensor longer:
 * tape_keep(). If a tensor already has a gradient, a second one is added to it in place by a
 * separate kernel, as the engine does, unless the first is still needed elsewhere.
 *
 * Ignored: kernels on tensors of a token's size (masks, labels, ids, scalars), the autograd
 * engine's own small allocations. Sources: PyTorch 2 derivatives.yaml, FunctionsManual.cpp,
 * input_buffer.cpp. */
#ifndef FLOPCAST_MODEL_TAPE_H
#define FLOPCAST_MODEL_TAPE_H

#include "model/model.h"

struct tape;

/* FP8 (workload.fp8): the linear layers of blocks run as TransformerEngine's Linear with delayed
 * scaling does on Hopper (transformer_engine/pytorch/module/linear.py): input, weight and gradient
 * are each cast to FP8 together with their transposes by one kernel, the three GEMMs are in FP8,
 * results are in the storage format; backward keeps the transposes in place of the input.
 * Attention, norms, the head stay as they are; so do layers whose sides are no multiples of 16, and
 * adapters (LoRA's lora_A and lora_B are no layers of TransformerEngine in peft, NeMo and
 * Megatron-Bridge). A frozen matrix has no gradient: nothing is transposed for it but the weight
 * (TransformerEngine 2; 1.x writes transposes that nobody reads), with frozen_once by a kernel
 * before each use. Ignored: the kernel that updates scales and the all_reduce of the largest
 * values, some kB a step. With any_layout (Blackwell) nothing is transposed: one copy of each
 * operand serves all three.
 *
 * With FUSION_TRANSFORMER_ENGINE as Megatron-Core has it: weights lie in FP8 beside their
 * transposes, which the strategy makes once a step, not each micro-step; with sequence what the
 * ranks of AXIS_TP gather in blocks is cast before, each rank its rows, and the transposes are made
 * behind (TransformerEngine's LayerNormLinear and Linear gather in FP8; beside adapters in the
 * storage format, which these read). Ignored: norms that write FP8 themselves. Else weights are
 * cast in each micro-step and gathers are in the storage format.
 *
 * fp8_recipe mxfp8 (with FUSION_TRANSFORMER_ENGINE, Blackwell): the same kernels, with a scale of a
 * byte for each 32 values along either side, so nothing is transposed later; gathers over AXIS_TP
 * are in the storage format. fp4 (NVFP4, TransformerEngine 2's NVFP4BlockScaling, recalled): half a
 * byte and a scale of a byte for each 16 values, beside one of the whole tensor, for which a pass
 * looks before; input and gradient take a random Hadamard transform on their way to the weight's
 * gradient, by other kernels; rounding at random costs nothing; weights have scales of 16 x 16
 * values and no transform. Products of all blocks are in it. Ignored: that scales are put in the
 * order that cuBLASLt reads, some kB by a kernel before each product; gathers over AXIS_TP in the
 * narrow formats; that recipes leave some blocks in BF16.
 *
 * fp8_recipe tensorwise and rowwise: torchao's Float8Linear instead
 * (torchao/float8/float8_linear.py, 2024-12), whose scales are of the step itself. tensorwise: a
 * pass over an operand finds its largest value (over the ranks of AXIS_TP, too, where DTensor has
 * it), another casts it; products that sum over rows, of which Hopper wants both operands along
 * them, take copies of what was cast. rowwise: a row is cast by the kernel that finds its scale;
 * across rows another pass finds other scales, another cast is made of the 16-bit tensor, and
 * products have one scale a row and column, at no cost. With torch.compile what several layers take
 * of one input is made once. With sequence, what is gathered between the ranks of AXIS_TP is cast
 * before where it has one scale (Float8ColwiseParallel, Float8RowwiseParallel). Ignored: casts that
 * TorchInductor fuses into what comes before; slow accumulation in dgrad and wgrad
 * (use_fast_accum); CUTLASS's rate for scales of rows; that casts across rows read HBM in short
 * pieces. */

/* torch.compile (workload.fusion inductor): what TorchInductor makes of the record. Neighbouring
 * kernels that work element by element or along rows (pointwise, norm, softmax, loss, copies)
 * become one: it reads each tensor from outside once, and what only it uses is never written; a sum
 * over rows, for a parameter's gradient, ends a group. A tensor that backward needs for such work
 * only is made again there from what its group was made of, unless it is small or would keep larger
 * GEMM results that backward does not need otherwise (the min-cut partitioner's rule, taken buffer
 * by buffer). GEMMs and fused attention stay as they are. Ignored: choices by measured time,
 * templates and epilogues of Triton's GEMMs, graph breaks, guards, compilation itself; CUDA graphs
 * are off.
 *
 * torchscript: of these only neighbours that work element by element become one (Megatron-LM's
 * scripted functions on NVFuser); norms, softmax and losses have kernels already (Apex).
 * transformer_engine: the same. */

/* A tape for the program of one segment. Everything lives in arena but the tape itself, which
 * tape_close() frees. */
struct tape *tape_open(const struct model *model, int layer, const struct model_workload *workload,
    struct arena *arena);
/* output is handed to the next segment; when it is the loss (the last segment), nothing is. */
struct model_program *tape_close(struct tape *tape, int output);

void tape_scope(struct tape *tape, const char *scope); /* borrowed; "" for none */
bool tape_has(
    const struct tape *tape, const char *name);    /* the layer has the parameter name.weight */
bool tape_has_flash_attn(const struct tape *tape); /* FUSION_FLASH_ATTN */
bool tape_has_transformer_engine(const struct tape *tape); /* FUSION_TRANSFORMER_ENGINE */
bool tape_rotates_complex(const struct tape *tape);        /* ROTARY_COMPLEX */
bool tape_rotates_unfused(const struct tape *tape);        /* ROTARY_UNFUSED */

/* ---- tensors that come from outside ---- */

int tape_input(struct tape *tape, const char *name, int64_t rows,
    int64_t cols); /* the output of the segment before */
/* The encoder's output: the caller keeps it; its gradient, a sum over the blocks, is listed by
 * every program. */
int tape_memory(struct tape *tape, const char *name, int64_t rows, int64_t cols);
/* What a stack's first block made and every block reads; listed by every program, as is its
 * gradient, a sum over the blocks. */
int tape_shared(struct tape *tape, const char *name, int64_t rows, int64_t cols, bool needs_grad);
void tape_share(
    struct tape *tape, int tensor); /* in the first block: this is what the others read */
void tape_keep(struct tape *tape, int tensor); /* a local variable holds it until here */

/* ---- multiplying ---- */

/* How a parameter's gradient comes together when several segments use it (tied embeddings), in the
 * order of the backward pass: later shares are added to the first by a kernel each; the gradient is
 * complete with the last. */
enum tape_turn { TURN_ONLY, TURN_FIRST, TURN_MIDDLE, TURN_LAST };

int tape_linear(struct tape *tape, const char *name,
    int x); /* bias, if there is one, in the GEMM's epilogue (cuBLASLt) */
/* Of a router: selective checkpointing makes it again, and does not count it (model_op.mm). */
int tape_linear_router(struct tape *tape, const char *name, int x);
int tape_linear_shared(struct tape *tape, const char *name, int x, enum tape_turn turn);
/* The same with a bias of that whole name. */
int tape_linear_tied(
    struct tape *tape, const char *name, const char *bias, int x, enum tape_turn turn);
/* Row lookup in name.weight; rows: how many. The gradient is dense: zeros, then a scatter-add. */
int tape_embedding(struct tape *tape, const char *name, int64_t rows, enum tape_turn turn);
/* NEFTune, where the workload has it: zeros, uniform noise in them, the sum; else x itself. */
int tape_neftune(struct tape *tape, int x);
/* batch products of m x k by k x n; the result has batch * m rows of n. causal: of attention under
 * the causal mask, which hides half of what is computed. */
int tape_matmul(struct tape *tape, const char *name, int a, int b, int64_t batch, int64_t m,
    int64_t n, int64_t k, bool causal);

/* ---- tensor and sequence parallelism (workload.parallel): without it each returns what it is
 * given ---- */

/* Into what the ranks of AXIS_TP do each with a part of the heads, columns or words, and out of it,
 * where their results are summed (Megatron-LM, arXiv 1909.08053, f and g): enter: nothing, the
 * gradient is all-reduced; leave: all-reduce, nothing. With sequence (arXiv 2205.05198) each rank
 * has its rows outside: enter: all-gather, the gradient is reduce-scattered; leave: reduce-scatter,
 * the gradient is all-gathered. An input is cast to the storage format before it enters. Each
 * collective is waited for at once, but in backward those of what linear layers alone read may run
 * beside their products (workload.parallel.tensor_overlap): before all of them the input is
 * gathered again, after the last one's product its gradient is reduced beside that of its weight.
 * Megatron-LM has one such layer (fused q, k, v); with several all but the last are done before.
 *
 * Gradients of what is not cut but read by each rank for its rows or heads are parts of a sum
 * (model_op.partial), and so are those of key heads that several ranks hold; whoever reduces
 * gradients adds them up. Ignored: that Megatron-LM gathers into one buffer for the whole run; FP8,
 * but with FUSION_TRANSFORMER_ENGINE: that the input is gathered again (its transpose in FP8 is
 * kept whole). TransformerEngine's user buffers cut collectives into pieces beside pieces of GEMMs
 * (model/parallel.h). */
int tape_enter(struct tape *tape, const char *name, int x);
/* tape_linear() of whose matrix a rank has some columns, then leave; its bias, if there is one, is
 * added to the sum by the kernel that comes next, at no cost (Megatron-LM's bias_dropout_add). */
int tape_linear_row(struct tape *tape, const char *name, int x);
/* tape_embedding() of words, of which a rank has some: those of others look up any row, then zeros
 * are written over them; then leave. summed: by an all-reduce, with sequence too, where something
 * is added to all rows before tape_scatter(). */
int tape_words(struct tape *tape, const char *name, int64_t rows, enum tape_turn turn, bool summed);
/* With sequence: a rank's rows of what all have, copied, the gradient is all-gathered; all rows, of
 * whose gradient a rank copies its own. What is done with them is done by every rank, those of
 * AXIS_CP too (what a sample has one of). */
int tape_scatter(struct tape *tape, const char *name, int x);
int tape_gather(struct tape *tape, const char *name, int x);
/* All columns of what a linear layer left cut, side by side, by a copy of what was gathered; of the
 * gradient, which all ranks have alike, a rank copies its own (Megatron-LM's
 * gather_from_tensor_model_parallel_region). tape_scatter() goes on. */
int tape_gather_columns(struct tape *tape, const char *name, int x, int64_t cols);
/* tape_cross_entropy() of logits of which a rank has the columns of its words, in FP32: all-reduces
 * of the largest logit, of the label's and of the sum of exponentials, 4 bytes a row each
 * (Megatron-LM, tensor_parallel/cross_entropy.py, in place where it is). fused: the last two
 * together, a kernel between two of them; torch.compile's functions give new tensors, so that
 * logits in FP32 and their exponentials are there at once, of which the latter are kept; the
 * gradient is written in the logits' format (--cross-entropy-loss-fusion, impl native:
 * fusions/fused_cross_entropy.py). te: an all-gather of three numbers a row and rank.
 * loss_parallel: DTensor's _log_softmax and _nll_loss_and_log_softmax_backward, as many
 * all-reduces, each operation a kernel with a new FP32 tensor: of logits, shifted ones and their
 * exponentials three are there at once forward, in backward four. On one rank Megatron-LM
 * (FUSION_TORCHSCRIPT, FUSION_TRANSFORMER_ENGINE) has the same without collectives, others
 * tape_cross_entropy(). */
int tape_word_loss(struct tape *tape, const char *name, int logits);

struct tape_attention {
    int64_t batch, heads, queries, keys, head_dim;
    bool both_ways; /* not causal: every pair of positions */
    int64_t window; /* causal: keys that a query sees, its own the last of them; 0: all before it.
                       For tape_flash() */
    int64_t value_dim; /* of a head's values and of what is gathered of them, where it is not
                          head_dim; 0: it is */
};
/* Attention without a fused kernel, from q, k and v as the linear layers leave them: the scaled
 * scores (unscaled for fused_softmax), and what the weights that a family makes of them (mask,
 * softmax, dropout) gather from v. torch.matmul of (batch, heads, ...) copies each operand into the
 * layout of heads, and its gradient back.
 *
 * sequence_first: torch.bmm reads (sequence, batch x heads, head dimension) where it lies. The
 * gradients of q, k and v come as heads and are copied back, those of a split by its concatenation;
 * what is gathered is copied, and its gradient read where it lies. */
/* What is recorded between belongs to the part (model/recompute.h). Core attention begins with
 * tape_scores() and ends with tape_context(), or here. */
void tape_begin_part(struct tape *tape, enum recompute_part part);
void tape_end_part(struct tape *tape, enum recompute_part part);
int tape_scores(struct tape *tape, const struct tape_attention *shape, int q, int k);
int tape_context(struct tape *tape, const struct tape_attention *shape, int weights, int v);
/* FlashAttention 2: q, k, v as the linear layers leave them, one kernel forward, three backward.
 *
 * With context parallelism shape says a rank's positions, as TransformerEngine has it
 * (pytorch/attention/dot_product_attention/context_parallel.py). A rank has two chunks of the
 * sequence, one from the front and one from the back, so all have as much of the causal mask; its
 * kernels are those of the middle rank. k and v may have fewer heads than q (repeated ones would be
 * sent several times).
 *   p2p         k and v, copied together, go around the ring in c - 1 exchanges beside the
 *               attention of c steps: the diagonal under the mask, then all queries with half of
 *               the keys or half of the queries with all keys. The steps' results are kept and put
 *               together at the end. Backward mirrors it; an exchange has k and v, their gradients
 *               so far, or both: 2 (c - 1) times k and v.
 *   all_gather  k and v are gathered and put in order, then each chunk sees what is before it;
 *               backward gathers them again and reduce-scatters their gradients. Nothing runs
 *               beside.
 *   a2a         q, k, v and the result are copied, exchanged by all_to_all and copied, each waited
 *               for at once; a rank has a part of the heads with all positions between.
 * With values of another dimension (cuDNN, FlashAttention 3; FlashAttention 2 fills them up to the
 * queries') FLOP and bytes are those of each operand, and the kernel's rate that of the queries'
 * dimension.
 *
 * Ignored: the second stream of p2p's odd steps (which fills the last wave of the step before),
 * a2a's copies beside other exchanges, FP8, a2a+p2p. */
int tape_flash(
    struct tape *tape, const char *name, int q, int k, int v, struct tape_attention shape);

/* Learned logits of heads in attention's softmax, scope.sinks; go on with the result, which is the
 * context. The fused kernel has them in its sum; backward a kernel makes their gradient of the sums
 * of rows. Ignored: the concatenation of attention that is not fused. */
int tape_sinks(struct tape *tape, const char *name, int context, int64_t heads);
/* x, of which no gradient is asked. */
int tape_detach(struct tape *tape, const char *name, int x);
/* An indexer's scores of all pairs that a causal mask leaves, by q (rows x heads x head dimension)
 * and k (rows x head dimension), one fused kernel that writes the sum over heads, and the choice of
 * keys, which reads it; backward the gradients of q and k by its own loss. Go on with the result,
 * which is `goes_on`. */
int tape_index(
    struct tape *tape, const char *name, int q, int k, int goes_on, struct tape_attention shape);

/* ---- in the place of attention (tape_scan.c) ---- */

/* A causal filter of `length` positions of each channel and SiLU, causal_conv1d: name.weight,
 * name.bias if there is. */
int tape_filter(struct tape *tape, const char *name, int x, int64_t length);
/* Mixers over the positions of sequences: x has what is scanned (with keys and queries for DeltaNet
 * and Mamba 2), gates time steps and decays, keys B and C for Mamba (else NO_VALUE: -1). Parameters
 * scope.A_log, scope.dt_bias, scope.D, those that are there. */
int tape_scan(struct tape *tape, const char *name, const struct model_mixer *mixer, int x,
    int gates, int keys);

/* ---- element by element ---- */

enum tape_function {
    TAPE_SCALE, /* times or by a constant (or a small constant tensor, as RoPE's cos) */
    TAPE_SHIFT, /* plus a constant */
    TAPE_MASK,  /* where(mask, x, constant) */
    TAPE_POWER, /* x^p */
    TAPE_RSQRT,
    TAPE_TANH,
    TAPE_RELU,
    TAPE_GELU, /* one fused kernel */
    TAPE_SILU,
    TAPE_SIGMOID,
    TAPE_FUNCTION_COUNT
};
int tape_map(struct tape *tape, const char *name, enum tape_function function, int x);
int tape_scale_apart(
    struct tape *tape, const char *name, int x); /* TAPE_SCALE, by kernels that nothing fuses */
/* x = f(x), as nn.ReLU(inplace=True); go on with the result. BUG for a function whose gradient
 * needs x. */
int tape_map_in_place(struct tape *tape, const char *name, enum tape_function function, int x);
/* 0.5 x (1 + tanh(c (x + 0.044715 x^3))), a kernel for every operation. torch.pow is one of those
 * that autocast runs in FP32, and type promotion keeps what follows there, the result too. */
int tape_gelu_new(struct tape *tape, int x);

int tape_add(struct tape *tape, const char *name, int a,
    int b); /* the smaller one is broadcast over the other's rows */
/* Plus a small constant, which broadcasts x to rows x cols. */
int tape_add_mask(struct tape *tape, const char *name, int x, int64_t rows, int64_t cols);
int tape_add_in_place(
    struct tape *tape, const char *name, int a, int b); /* a += b; go on with the result */
/* b: as a, or one number per row, or a row for several of a's. */
int tape_mul(struct tape *tape, const char *name, int a, int b);
int tape_mul_weight(struct tape *tape, const char *name, int x); /* times the vector name.weight */
int tape_dropout(
    struct tape *tape, const char *name, int x); /* with the model's probability; 0: x itself */
int tape_cast(struct tape *tape, const char *name, int x,
    int64_t element_bytes); /* x itself when it is so already */
int tape_cast_to_storage(struct tape *tape, const char *name, int x);

/* ---- of experts (tape_experts.c) ---- */

int64_t tape_rows(const struct tape *tape, int x);
/* The host waits for all kernels so far; where selective checkpointing keeps what it waits for, not
 * once more. */
void tape_host_wait(struct tape *tape, const char *name, bool kept);

/* The k highest of each row of scores; their gradient is scattered into zeros. passes: kernels over
 * all scores that prepare the choice (a bias is added, groups are masked), without gradient.
 * Ignored: the work of selecting. */
int tape_top_k(struct tape *tape, const char *name, int scores, int64_t k, int64_t passes);
/* Megatron-LM's loss that balances experts (switch_load_balancing_loss_func): tokens of each expert
 * are counted, added up over the ranks of these axes (0: none), and multiplied by the sums of its
 * scores; its gradient is added to that of the scores. Go on with the result, which are the scores.
 */
int tape_aux_loss(struct tape *tape, const char *name, int scores, unsigned axes);
/* Numbers of a row at the places of as many columns that indices say, zeros elsewhere. */
int tape_spread(struct tape *tape, const char *name, int x, int64_t cols);
/* Rows that are taken and added from here on, and their gradients, take this multiple of what their
 * bytes do; 0: once. */
void tape_row_cost(struct tape *tape, double times);
/* Rows of x as indices say, each as often as they say. Its gradient is added to zeros. */
int tape_take_rows(struct tape *tape, const char *name, int x, int64_t rows);
/* into.index_add_(x): rows of x are added to those of `into` that indices say, in place; go on with
 * the result. What it is added to is read and written once: atomics meet in L2. */
int tape_scatter_add(struct tape *tape, const char *name, int into, int x);
/* How many of the tokens go to each expert, out of a mask of a byte for each of both; gathered from
 * `ranks` ranks of these axes, and copied to the host, which waits for it. */
void tape_count(struct tape *tape, const char *name, int64_t tokens, int64_t experts, int64_t ranks,
    unsigned axes);

/* x by the matrices of experts, each its equal share of the rows: one kernel, a batch of `experts`
 * products of rows / experts (rounded up) with matrices of the stack scope.name.suffix, which holds
 * `stack` of them. Fewer than those: the tensor's gradient comes in parts, the first being that of
 * the last part. rows: that the model counts FLOP of, of the whole stack. Assumed: a grouped kernel
 * works as a batch of equal products does (TransformerEngine starts a product an expert on up to
 * four streams). In FP8 with rows filled up to FP8's step, as Megatron pads them. */
struct tape_experts {
    int64_t experts, stack, part;
    double rows;
};
int tape_experts(
    struct tape *tape, const char *name, const char *suffix, int x, struct tape_experts of);
/* x's rows in n runs as equal as can be, views one after another; their gradients are concatenated.
 * And n tensors of as many columns one upon another, by a copy; the gradients are views. The arrays
 * are in the tape's arena. */
const int *tape_runs(struct tape *tape, const char *name, int x, int64_t n);
int tape_stack(struct tape *tape, const char *name, const int *parts, int64_t n);
/* silu(gate) x up of x = (gate, up), one kernel each way, which saves x alone (Megatron-Core,
 * fused_bias_swiglu.py). swiglu_fp8_input: it saves x.to(float8_e4m3fn), a kernel, and backward
 * begins with one that widens it. */
int tape_swiglu(struct tape *tape, const char *name, int x);
/* silu(gate) x up x probability of x = (gate, up), one kernel each way (Megatron-LM's
 * weighted_bias_swiglu). */
int tape_weighted_swiglu(struct tape *tape, const char *name, int x, int probs);
/* relu(x)^2: two kernels each way; with FUSION_TRANSFORMER_ENGINE one, which saves x alone
 * (Megatron-Core's squared_relu is scripted). And relu(x)^2 x probability, one kernel each way
 * (use_fused_weighted_squared_relu, recalled). */
int tape_squared_relu(struct tape *tape, const char *name, int x);
int tape_weighted_squared_relu(struct tape *tape, const char *name, int x, int probs);

/* A collective of x's rows that gives `rows` of them: COLL_ALL_TO_ALL, or COLL_ALL_GATHER and
 * COLL_REDUCE_SCATTER, each of which is the other's gradient. Its message is the larger of both
 * tensors. What runs between it and tape_arrive(), which gives the tensor to go on with, runs
 * beside it; backward the same. */
int tape_send_rows(
    struct tape *tape, const char *name, enum coll_kind kind, unsigned axes, int x, int64_t rows);
int tape_arrive(struct tape *tape, int exchanged);
/* An all_to_all of tokens as DeepEP moves them, `bytes` of the tokens of a rank, there and back. */
struct tape_route {
    const struct coll_routing *routing;
    double bytes;
};
int tape_send_routed(struct tape *tape, const char *name, unsigned axes, int x, int64_t rows,
    struct tape_route route);

/* ---- of images: rows are positions, image by image, columns are channels (channels_last) ---- */

enum { COLOURS = 3 };

struct tape_window {
    int64_t images, size; /* of the input: size x size positions, */
    int64_t width;        /* or size x width; 0: square */
    int64_t kernel, stride,
        groups; /* kernel odd and padded to keep the size, or kernel = stride without padding */
};
int64_t tape_window_size(
    const struct tape_window *window); /* of the output: size / stride, rounded up */

/* cuDNN's implicit GEMM: what is multiplied is gathered from x by the kernel itself. Forward:
 * output positions x channels, over the window; dgrad: a GEMM for each phase of the stride; wgrad:
 * over all positions, split by the GEMM model. A bias is added by a separate kernel.
 *
 * On tensor cores cuDNN multiplies channels_last tensors only (cuDNN developer guide, "tensor
 * layouts"): with contiguous ones it converts what a kernel reads before, and what it writes after
 * (nchwToNhwcKernel, nhwcToNchwKernel), forward and backward; TorchInductor makes the model
 * channels_last itself. In FP32 windows of 3 x 3 with stride 1 and one group run on Winograd's F(2
 * x 2, 3 x 3), forward and backward, with 16 multiplications in place of 36 (Lavin and Gray, arXiv
 * 1509.09308; cuDNN lists it for all three); its additions are ignored.
 *
 * Ignored: other Winograd and FFT kernels, workspaces. */
int tape_conv(struct tape *tape, const char *name, int x, struct tape_window window);
/* Over all positions: statistics, then a second pass that normalises; backward the same. Ignored:
 * cuDNN's kernel that keeps small tensors on the chip between the passes, running statistics. */
int tape_batch_norm(struct tape *tape, const char *name, int x);
enum tape_pool { TAPE_POOL_MAX, TAPE_POOL_MEAN };
int tape_pool(struct tape *tape, const char *name, enum tape_pool kind, int x,
    int64_t rows); /* rows: of the result */
int tape_images(struct tape *tape, const char *name, int64_t rows,
    int64_t cols); /* FP32, from the loader; no gradient */
/* A row that is learned, in front of every image's. */
int tape_prepend(struct tape *tape, const char *scope, const char *tensor, int x, int64_t images);
int tape_add_learned(struct tape *tape, const char *scope, const char *tensor,
    int x); /* plus scope.tensor, broadcast */

/* ---- of features: rows are samples' features, sample by sample ---- */

/* The pooled embeddings of the samples, all features except one, from tables that are sharded over
 * the ranks as TorchRec does: a kernel sums the rows that this rank's tables give all ranks'
 * samples, as many bytes as its own samples need; an all_to_all in place hands them to their
 * samples; backward the same way back, and a kernel that updates the rows (fbgemm's fused row-wise
 * Adagrad). Ignored: the exchange of ids, which is done a batch ahead, the sort of ids before the
 * update, tables of unequal load. tape_join() waits for the exchange. */
int tape_tables(struct tape *tape, const char *name, int64_t samples);
/* cat() of the tables' features and another of each sample. */
int tape_join(struct tape *tape, const char *name, int tables, int other);

/* ---- along rows, and moving ---- */

int tape_mean(struct tape *tape, const char *name, int x); /* of each row */
int tape_softmax(struct tape *tape, const char *name, int x,
    bool fp32); /* fp32: the result; a kernel casts x unless it is FP16 */
int tape_layer_norm(struct tape *tape, const char *name, int x); /* one fused kernel */
/* T5LayerNorm and LlamaRMSNorm, an operation a kernel; they differ in whether x is multiplied in
 * FP32 or in the storage format. FUSION_FLASH_ATTN and FUSION_TRANSFORMER_ENGINE: one kernel, as
 * tape_layer_norm. */
int tape_rms_norm(struct tape *tape, const char *name, int x, bool multiply_in_fp32);
/* Into another layout, of rows x cols; its gradient is copied back. */
int tape_copy(struct tape *tape, const char *name, int x, int64_t rows, int64_t cols);
int tape_clone(struct tape *tape, const char *name, int x); /* the same shape */
/* The same elements as rows x cols; no kernel. */
int tape_view(struct tape *tape, const char *name, int x, int64_t rows, int64_t cols);
/* Some rows of x, wherever they lie; their gradients are added to zeros. */
int tape_select(struct tape *tape, const char *name, int x, int64_t rows);
/* 2 or 3 views with these numbers of columns; backward concatenates. */
void tape_split(
    struct tape *tape, const char *name, int x, const int64_t *cols, int parts[], int n);
int tape_cat(
    struct tape *tape, const char *name, int a, int b); /* of columns; its gradients are views */
int tape_repeat(struct tape *tape, const char *name, int x,
    int64_t times); /* GQA: each key head for several queries */
int tape_expand(struct tape *tape, const char *name, int x,
    int64_t times); /* the same as a view: no kernel forward */
int tape_rotate_half(struct tape *tape, const char *name, int x); /* cat(-x2, x1) */
/* 64-bit integers out of other such (or none: -1), without gradient. */
int tape_integers(struct tape *tape, const char *name, int from, int64_t rows, int64_t cols);
int tape_zeros(
    struct tape *tape, const char *name, int64_t rows, int64_t cols); /* without gradient */

int tape_cross_entropy(struct tape *tape, const char *name,
    int logits); /* the loss; the logits are returned beside it */
int tape_add_losses(struct tape *tape, const char *name, int a, int b); /* the loss is their sum */

#endif
