/* Traces of PyTorch's profiler (Kineto's Chrome trace, .json or .json.gz) as measurements, in
 * constant memory: traces of a million events are common. Of the events only GPU kernels are looked
 * at ("ph": "X", "cat": "kernel"):
 * - NCCL kernels that carry the arguments of their collective (PyTorch 2.2 and later: "Collective
 * name", "In msg nelems", "Out msg nelems", "Group size", "dtype") become collectives. bytes = the
 * larger of in and out elements x size of the number format, as nccl-tests counts. PyTorch's
 * all_reduce, broadcast and reduce work in place, the others not. The duration includes waiting for
 * the last rank;
 * - all other kernels become kernels, with their names. Left out and counted: collectives that are
 * none (barrier, wait) or have no size or one rank. One trace is one rank. */
#ifndef FLOPCAST_IMPORT_KINETO_COLLECTIVES_H
#define FLOPCAST_IMPORT_KINETO_COLLECTIVES_H

#include "base/arena.h"
#include "reader/input.h"
#include "store/measurement.h"

/* Where the rows go as they are read; texts in them are valid during the call. Anything but
 * STATUS_OK ends the reading. */
struct kineto_sink {
    enum status (*collective)(
        void *self, const struct collective_measurement *row, struct diag *diag);
    enum status (*kernel)(void *self, const struct kernel_measurement *row, struct diag *diag);
    void *self;
};

struct kineto_trace {
    struct measurement_about about; /* texts in the arena */
    int64_t collectives, kernels, left_out;
};

/* A trace without GPU kernels is an error. */
enum status kineto_read(struct kineto_trace *out, struct input *input,
    const struct kineto_sink *sink, struct arena *arena, struct diag *diag);

#endif
