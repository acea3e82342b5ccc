/* Private to sim/import: what readers of traces share. */
#ifndef FLOPCAST_IMPORT_TRACE_FILE_H
#define FLOPCAST_IMPORT_TRACE_FILE_H

#include "import/input.h"
#include "import/trace.h"

enum status trace_read_kineto(
    struct trace *out, struct input *input, int64_t device, struct arena *arena, struct diag *diag);
enum status trace_read_nsys(
    struct trace *out, const char *path, int64_t device, struct arena *arena, struct diag *diag);

/* Nanoseconds of a file as time since its origin; what is further from it than PS_HORIZON is as far. */
ps_t trace_ps(int64_t ns, int64_t origin_ns);

/* The GPUs of a file. */
struct trace_devices {
    VEC(int64_t) numbers;
    int64_t lowest;
};
void trace_count_device(struct trace_devices *devices, int64_t device);
enum status trace_no_device(const struct trace *trace, int64_t device, const char *file, struct diag *diag);

#endif
