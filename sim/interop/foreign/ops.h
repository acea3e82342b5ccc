/* Operators of a training step, as a run without a GPU writes them (scenarios/fake_step.py: torch.distributed's fake
 * process group with FakeTensorMode), to a trace of PyTorch's profiler in which kernels take what a GPU's tables say.
 *
 * JSON lines, an operator each, of one rank, in the order of its host:
 *   {"op": "aten.mm.default", "dtype": "bfloat16", "in": [[8192, 4096], [4096, 4096]], "out": [[8192, 4096]]}
 *   {"op": "c10d.allreduce_.default", "collective": "allreduce", "group": "0", "ranks": [0, 1], "dtype": "float32",
 *    "in": [[1048576]], "out": [[1048576]]}
 *   {"wait": 2}
 * in, out: shapes of its tensors; dtype: of the first result; phase (optional): forward, backward, optimizer. wait:
 * what follows waits for the collective of that line.
 *
 * An operator of ATen is one kernel: a GEMM, fused attention, or one that reads its inputs and writes its results once,
 * by its name (ops_kernel.c); a view is none. The host takes issue_s for each kernel and collective, views nothing.
 * Collectives lie on a stream for each group, with kind, bytes and ranks, and take no time: `flopcast trace scale`
 * finds theirs. Assumed: attention is causal where there are as many queries as keys; FP32 is not multiplied as TF32.
 *
 * Refused: convolutions; a collective without group, ranks or size, or whose ranks are not evenly apart. Ignored:
 * memory, several kernels of one operator, broadcast inputs that are read once. */
#ifndef FLOPCAST_FOREIGN_OPS_H
#define FLOPCAST_FOREIGN_OPS_H

#include "foreign/trace.h"

#include <stdio.h>

struct ops_options {
    const struct hw_gpu *gpu;
    double issue_s;
};

struct ops_counts {
    int64_t kernels, views, collectives;
    double kernels_s; /* on the compute stream */
    int ranks;        /* the highest of any group, and one */
};

/* The step as a trace; path: of the operators, plain or gzipped. */
enum status ops_write_trace(
    struct ops_counts *counts, FILE *out, const char *path, const struct ops_options *options, struct diag *diag);
/* The same of a text. */
enum status ops_write_trace_of(struct ops_counts *counts, FILE *out, const char *text, size_t n,
    const struct ops_options *options, struct diag *diag);

/* ---- ops_kernel.c ---- */

enum { OPS_TENSORS = 4, OPS_DIMS = 8 };

struct op_tensor {
    int n;
    double size[OPS_DIMS];
};

struct op_shapes {
    struct op_tensor in[OPS_TENSORS], out[OPS_TENSORS]; /* the first of them */
    int n_in, n_out;
    double in_numel, out_numel; /* of all */
};

/* Number format by PyTorch's name, "bfloat16" or "torch.bfloat16"; math: what a product of it is done in. 0: none. */
int64_t ops_dtype(const char *name, enum dtype *math);

enum ops_found { OPS_KERNEL, OPS_VIEW, OPS_REFUSED };
enum ops_found ops_kernel(
    struct kernel_work *out, const char *name, const struct op_shapes *shapes, enum dtype math, int64_t element_bytes);

#endif
