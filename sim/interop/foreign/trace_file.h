/* Private to foreign: what readers of traces share. */
#ifndef FLOPCAST_FOREIGN_TRACE_FILE_H
#define FLOPCAST_FOREIGN_TRACE_FILE_H

#include "reader/input.h"
#include "reader/kineto.h"
#include "foreign/trace.h"

enum status trace_read_kineto(
    struct trace *out, struct input *input, int64_t device, struct arena *arena, struct diag *diag);
enum status trace_read_nsys(struct trace *out, const char *path, int64_t device, const char *steps,
    struct arena *arena, struct diag *diag);

/* Nanoseconds of a file as time since its origin; what is further from it than PS_HORIZON is as
 * far. */
ps_t trace_ps(int64_t ns, int64_t origin_ns);

/* The GPUs of a file. */
struct trace_devices {
    VEC(int64_t) numbers;
    int64_t lowest;
};
void trace_count_device(struct trace_devices *devices, int64_t device);
int64_t trace_next_device(
    const struct trace_devices *devices, int64_t device); /* -1: none is higher */
enum status trace_no_device(
    const struct trace *trace, int64_t device, const char *file, struct diag *diag);

/* ---- trace.c: what Kineto says of process groups, and of what waits for what ---- */

/* The group of a collective's arguments, in trace->groups; -1: they name none. */
int trace_group_named(struct trace *trace, const struct kineto_event *event, struct arena *arena);

/* Waits as they are read; times are nanoseconds of the file. */
struct trace_waiter { /* of each wait */
    int64_t process;
    bool sync; /* a cuda_sync event, else a call */
};
struct trace_record { /* a cudaEventRecord */
    int64_t correlation, start_ns;
};
struct trace_waits {
    VEC(struct trace_wait) list; /* recorded: the correlation of the cudaEventRecord, 0: not said */
    VEC(struct trace_waiter) waiters;
    VEC(struct trace_record) records;
    bool says; /* there are cuda_sync events */
};
void trace_waits_take(struct trace_waits *waits, const struct kineto_event *event);
/* process: that the kernels are of. In a file of several only its waits count; all do where calls
 * never have the number of a GPU's process, as nothing says then whose they are. */
void trace_waits_finish(
    struct trace_waits *waits, struct trace *trace, int64_t process, int64_t origin_ns);
void trace_waits_free(struct trace_waits *waits);

/* ---- trace.c: shapes of GEMMs, where record_shapes was on ---- */

struct trace_shape {
    int64_t external; /* of the operator */
    int32_t product;  /* in trace->products, where each is once */
};
struct trace_shapes {
    VEC(struct trace_shape) list;
    struct index products;
    bool sorted;
};
void trace_shapes_take(
    struct trace_shapes *shapes, struct trace *trace, const struct kineto_event *event);
/* In trace->products; -1: the operator's shapes are not known. */
int trace_shapes_find(struct trace_shapes *shapes, int64_t external);
void trace_shapes_free(struct trace_shapes *shapes);

#endif
