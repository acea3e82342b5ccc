/* Any bytes as a trace of PyTorch's profiler. What must hold: no crash, no leak, a message for every refusal, and rows
 * that the database takes. */
#include "calibrate/import_kineto.h"

static enum status take_collective(void *self, const struct collective_measurement *row, struct diag *diag)
{
    (void)self;
    (void)diag;
    BUG_IF(row->bytes <= 0 || row->ranks < 2 || !*row->dtype, "a collective of %ld B", (long)row->bytes);
    BUG_IF(!(row->out_of_place_s > 0 || row->in_place_s > 0), "a collective without time");
    return STATUS_OK;
}

static enum status take_kernel(void *self, const struct kernel_measurement *row, struct diag *diag)
{
    (void)self;
    (void)diag;
    BUG_IF(!*row->name || !(row->duration_s >= 0), "a kernel of %g s", row->duration_s);
    return STATUS_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    struct kineto_trace trace;
    const struct kineto_sink sink = {take_collective, take_kernel, NULL};
    struct input *input = input_open_text("fuzz.json", (const char *)data, size);
    enum status status = kineto_read(&trace, input, &sink, &arena, &diag);
    BUG_IF((status == STATUS_OK) != (diag.n_errors == 0), "status %d, %d errors", status, diag.n_errors);
    BUG_IF(status == STATUS_OK && trace.collectives + trace.kernels == 0, "no rows and no message");
    input_close(input);
    arena_release(&arena);
    return 0;
}
