/* What the operations of a tape (tape_dense.c, tape_pointwise.c, tape_rows.c) are written with. Not
 * for families.
 *
 * A buffer is memory; a value is a tensor in a buffer, with its gradient's buffer once the backward
 * pass has one. */
#ifndef FLOPCAST_MODEL_TAPE_CORE_H
#define FLOPCAST_MODEL_TAPE_CORE_H

#include "base/vec.h"
#include "model/tape.h"

enum { NO_BUFFER = -1, NO_PARAM = -1, NO_VALUE = -1 };

struct tape_buffer {
    struct model_activation life;
    int64_t elements;
    int view_of;   /* a part of another buffer: NO_BUFFER when it is none */
    bool external; /* the caller keeps it: not listed */
    bool held[2];  /* to the end of the forward, backward pass */
    bool handed;   /* no kernel of the program writes it: the gradient of the output, the loader's
                      images */
    bool vanished; /* it lives in the registers of a fused kernel: not listed */
};

struct tape_value {
    const char *name;
    int buffer, grad;
    int64_t rows, cols, element_bytes;
    bool needs_grad;
    bool shared; /* between the blocks of a stack: its gradient exists before the program's backward
                    pass starts */
    bool foreign;  /* made by another segment: its gradient is still needed when the program ends */
    int float8[2]; /* torchao: the buffers that it was cast to, along its rows and across;
                      NO_BUFFER: not yet */
    struct {       /* by tape_enter(), where collectives run beside its users */
        int from;  /* the value that entered; NO_VALUE: this did not */
        int first_user; /* output of the linear layer that comes last in backward, NO_VALUE: none
                           yet */
        int again;      /* backward: the buffer into which it is gathered once more */
        bool pending;   /* that has not been waited for */
        int reduced;    /* backward: the buffer with the sum of the ranks' gradients */
    } entered;
};

struct tape_op {
    void (*backward)(struct tape *, const struct tape_op *);
    const char *name;
    int in[3], out;   /* values */
    int saved[2];     /* buffers, beyond inputs and output */
    int weight, bias; /* parameters, relative to the layer's first */
    int64_t m, n, k, batch;
    int64_t window;      /* flash attention: keys that a query sees; 0: all */
    bool causal;         /* attention: under the causal mask */
    int choice;          /* enum tape_turn or enum tape_function */
    int region;          /* enum tape_region */
    int64_t value_dim;   /* attention: of values */
    int64_t part, parts; /* experts: of a stack of matrices */
    double row_cost;     /* rows taken or added: times what their bytes take; 0: once */
    double
        model_flop; /* of each of an op's products, where the kernel does more; 0: the kernel's */
    unsigned axes;  /* exchange */
    struct tape_route route; /* of it */
    const int *list;         /* stacked values, and n of them */
};

/* What the ranks of AXIS_TP have: outside of what is cut all rows alike, or with sequence each its
 * own; inside a part of the heads, columns or words; all rows alike with sequence, too
 * (tape_gather(), before tape_scatter()). */
enum tape_region { REGION_OUTSIDE, REGION_CUT, REGION_ALIKE };

enum { FORWARD, BACKWARD };

struct tape_touched { /* a kernel reads or writes a buffer that is no view */
    int kernel, buffer;
};

struct tape {
    const struct model *model;
    const struct model_workload *workload;
    struct arena *arena;
    const char *scope;
    int layer;
    int pass;        /* FORWARD or BACKWARD */
    double row_cost; /* of rows that are taken and added, see tape_row_cost() */
    unsigned parts;  /* of which parts is what is recorded now, see model_op */
    int loss;        /* a value, or NO_VALUE */
    int input;       /* the same */
    int output_grad; /* the buffer that the backward pass starts from, or NO_BUFFER */
    int region;      /* enum tape_region, where forward is; in backward of the op */
    int sent;        /* what the communication on its way reads, or NO_BUFFER */
    int64_t storage_bytes, residual_bytes; /* of an element; residual: of embeddings and norms, and
                                              what they are added to */
    VEC(struct model_op) program[2];       /* by pass */
    VEC(struct tape_touched) touches[2];
    struct model_op *fused[2]; /* while tape_fuse works */
    VEC(struct tape_buffer) buffers;
    VEC(struct tape_value) values;
    VEC(struct tape_op) ops;
};

/* scope.name, or name with a suffix. */
const char *tape_name(struct tape *tape, const char *name);
const char *tape_suffix(struct tape *tape, const char *name, const char *suffix);

/* Relative index of the layer's parameter scope.name.suffix, without suffix where it is "", or
 * NO_PARAM. */
int tape_find(const struct tape *tape, const char *name, const char *suffix);
const struct model_tensor *tape_tensor(const struct tape *tape, int param);
bool tape_trains(const struct tape *tape, int param); /* it is not frozen */

/* A buffer that the next kernel of the current pass writes. */
int tape_buffer(
    struct tape *tape, const char *name, int64_t rows, int64_t cols, int64_t element_bytes);
/* A value in a new buffer that the next kernel writes. */
int tape_value(struct tape *tape, const char *name, int64_t rows, int64_t cols,
    int64_t element_bytes, bool needs_grad);
struct tape_value tape_at(const struct tape *tape, int value);
void tape_push(
    struct tape *tape, struct tape_op op); /* recorded only if its output needs a gradient */

/* Of an op: how often the bytes of its rows count. */
double tape_times(double row_cost);

/* A list of buffers, up to the first that is NO_BUFFER. */
#define BUFFERS(...) ((const int[]){__VA_ARGS__, NO_BUFFER})
/* Launch a kernel that reads and writes these buffers; then say which matrix it used, and which
 * parameter's gradient is complete after it. */
void tape_launch(struct tape *tape, const char *name, struct kernel_work work, double model_flop,
    const int *buffers);
void tape_touch(struct tape *tape, int buffer); /* one more */
void tape_of_experts(
    struct tape *tape, int64_t matrices); /* the kernel launched last multiplies by as many */
void tape_mark_mm(
    struct tape *tape, const struct tape_op *op); /* it is aten.mm, where the op has no bias */
void tape_mark_kept(
    struct tape *tape); /* selective checkpointing keeps what the op recorded last does */
/* The same for a collective of a buffer, called after the kernel that leaves it, and for waiting
 * for it. */
void tape_communicate(
    struct tape *tape, const char *name, enum coll_kind kind, unsigned axes, int buffer);
void tape_await(struct tape *tape);
/* From one buffer into another, or in place; the whole message is the larger one. Waited for at
 * once. */
void tape_exchange(
    struct tape *tape, const char *name, enum coll_kind kind, unsigned axes, int from, int to);
void tape_use(struct tape *tape, int param);
/* The kernel launched last makes the first of several shares of the parameter's gradient, which is
 * held from then on. */
void tape_begin_shares(struct tape *tape, int param);
void tape_complete(struct tape *tape, int param); /* NO_PARAM: none; BUG for a frozen one */

/* Launch a kernel that reads and writes buffers once. */
struct tape_stream {
    enum kernel_kind kind;
    const char *name;
    double ops;         /* arithmetic operations for each element of the largest buffer */
    const int *reads;   /* BUFFERS(...) */
    int write;          /* a buffer, or NO_BUFFER */
    double param_bytes; /* of a parameter's gradient that it writes */
    int64_t rows, cols; /* of a sum over rows for a layer norm's parameters; else 0 */
};
void tape_run(struct tape *tape, struct tape_stream stream);
/* The usual case, without a parameter; an elementwise kernel, which reads a, and b unless it is
 * NO_BUFFER. */
void tape_pass(struct tape *tape, enum kernel_kind kind, const char *name, double ops,
    const int *reads, int write);
void tape_elementwise(struct tape *tape, const char *name, double ops, int a, int b, int write);
/* The kernel that sums the rows of grad into the gradients of biases. */
void tape_bias_sum(struct tape *tape, const struct tape_op *op, int grad, int64_t biases);
/* It, where the op has a bias, whose gradient is then complete. */
void tape_bias_gradient(struct tape *tape, const struct tape_op *op, int grad, int64_t biases);
/* Make op.out, shaped as shape, by a kernel that reads the op's first two inputs (NO_VALUE: none);
 * record the op. */
int tape_apply(struct tape *tape, struct tape_op op, enum kernel_kind kind, struct tape_value shape,
    double ops);
/* Its backward pass by one kernel, op.dgrad, that reads the gradient of the output, and what else
 * it says, for that of the first input. */
void tape_back(
    struct tape *tape, const struct tape_op *op, enum kernel_kind kind, double ops, int also);

/* What a product takes: x itself, or under autocast its cast to the storage format. */
int tape_autocast(struct tape *tape, const char *name, int x);

/* Products of the backward kernel of FlashAttention over those of the forward one. */
double tape_flash_backward_products(const struct tape_op *op);
/* Of the pairs of positions of a sequence those within its documents, in the mean. */
static inline double tape_document_pairs(const struct tape *tape)
{
    return tape->workload->document_pairs > 0 ? tape->workload->document_pairs : 1;
}
/* The kernel just launched is of attention: what the mask hides of its model FLOP. */
void tape_count_masked(struct tape *tape, bool causal);
struct tape_op tape_flash_op(
    struct tape *tape, const char *name, int q, int k, int v, struct tape_attention shape);
/* tape_flash() of positions that are all on this rank; of a rank's part of them (tape_context.c).
 */
int tape_flash_alone(
    struct tape *tape, const char *name, int q, int k, int v, struct tape_attention shape);
int tape_flash_context(
    struct tape *tape, const char *name, int q, int k, int v, struct tape_attention shape);

/* Heads of a batched product out of what a linear layer leaves, and back: copies, or for
 * sequence_first as tape.h says. */
int tape_to_heads(struct tape *tape, const char *name, int x, int64_t rows, int64_t cols);
int tape_from_heads(struct tape *tape, const char *name, int x, int64_t rows, int64_t cols);

/* Backward pass: the gradient of an op's output; a new gradient for a value; handing a gradient to
 * a value. */
int tape_grad(const struct tape *tape, const struct tape_op *op);
int tape_new_grad(struct tape *tape, int value);
void tape_give(struct tape *tape, int value, int grad);

/* tape_parallel.c: the share of the work with a matrix that is model FLOP of this rank, and whether
 * a parameter's gradient is a part of a sum over AXIS_TP, here. What a linear layer that reads x
 * does about the ranks of AXIS_TP in its backward pass: the buffer that its weight's gradient is
 * made from (gathering begins, then is waited for); the sum of the input's gradients after its last
 * user's product (begins, then is waited for). They do nothing where x did not enter, or nothing is
 * to run beside. */
double tape_counted(const struct tape *tape, int weight);
bool tape_partial(const struct tape *tape, int param);
int tape_gather_again(struct tape *tape, int x);
void tape_await_again(struct tape *tape, int x);
void tape_reduce_entered(struct tape *tape, const struct tape_op *op);
void tape_await_reduced(struct tape *tape, const struct tape_op *op);
/* Out of a row layer with this bias, or NO_PARAM; there is more than one rank. */
int tape_leave(struct tape *tape, const char *name, int bias, int x);
/* tape_rows.c: the loss is made of these logits, which the training loop holds as the workload
 * says. */
int tape_end_loss(struct tape *tape, int logits, int loss);

/* The workload has linear layers in FP8, and this one is; the op without backward, output and
 * saved. */
bool tape_in_fp8(const struct tape *tape, const struct tape_op *op);
/* Gathers of this layer's `rows` rows over AXIS_TP are in FP8; what they gather, made of the value,
 * or of a buffer by kernels name.cast and the like. */
bool tape_quantizes(const struct tape *tape, int64_t rows);
int tape_quantize(struct tape *tape, const char *name, int x);
int tape_quantized_buffer(
    struct tape *tape, const char *name, int from, int64_t rows, int64_t cols);
bool tape_is_quantized(const struct tape *tape, int buffer);
/* The kernel just launched does not become one with its neighbours. */
void tape_set_apart(struct tape *tape);
/* The pass name.amax for the largest absolute value of a tensor, which its scale is made of;
 * more_ops: what it does beside that, an element. Returns the scale. from: NO_BUFFER: a weight. */
int tape_find_scale(
    struct tape *tape, const char *name, int from, double elements, double more_ops);
int64_t tape_matrices(const struct tape_op *op); /* that lie side by side in a layer's weight */
int tape_fp8_linear(
    struct tape *tape, struct tape_op op); /* op.batch matrices side by side; 0: one */
void tape_fp8_multiply(struct tape *tape, const struct tape_op *op, const char *name, int64_t m,
    int64_t n, int64_t k, const int *buffers);
/* The product of a linear layer, and its op; x, weight: its operands in FP8. */
int tape_fp8_forward(struct tape *tape, struct tape_op op, int x, int weight);
/* The same as torchao has it (tape_float8.c), and one operand along its rows; itself where it is in
 * FP8. from: NO_BUFFER: a weight. */
int tape_float8_linear(struct tape *tape, struct tape_op op);
int tape_float8_cast(struct tape *tape, const char *name, int from, int64_t rows, int64_t cols);
enum { TAPE_FP8_STEP = 16 }; /* sides of FP8 products are multiples of it */

/* After both passes: neighbouring element-by-element kernels become one. output_buffer is handed
 * on, or NO_BUFFER. */
void tape_fuse(struct tape *tape, int output_buffer);
/* Of a finished program of a block cut over ranks of AXIS_TP, with sequence: user_buffers and
 * micro_pipeline. */
void model_cut_into_pieces(
    struct model_program *program, const struct model_parallel *parallel, struct arena *arena);

#endif
