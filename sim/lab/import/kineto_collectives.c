#include "import/kineto_collectives.h"

#include "reader/kineto.h"

static const double us = 1e-6;

struct reader {
    struct kineto_trace *trace;
    const struct kineto_sink *sink;
    const char *file;
};

static enum status take_collective(
    struct reader *r, const struct kineto_event *event, struct diag *diag)
{
    enum { MOST_RANKS = 1 << 30 };
    const struct kineto_collective *found = kineto_find_collective(event->collective);
    int64_t bytes = kineto_message_bytes(event);
    if (!found || bytes == 0 || event->ranks < 2 || event->ranks > MOST_RANKS ||
        event->duration_us <= 0) {
        r->trace->left_out++;
        return STATUS_OK;
    }
    const struct collective_measurement row = {.position = event->position,
        .collective = found->name,
        .dtype = event->dtype,
        .ranks = (int)event->ranks,
        .bytes = bytes,
        .out_of_place_s = found->in_place ? 0 : event->duration_us * us,
        .in_place_s = found->in_place ? event->duration_us * us : 0};
    r->trace->collectives++;
    return r->sink->collective(r->sink->self, &row, diag);
}

static enum status kineto_collectives_take_event(
    void *self, const struct kineto_event *event, struct diag *diag)
{
    struct reader *r = self;
    if (event->category != KINETO_KERNEL)
        return STATUS_OK;
    enum status status = kineto_check_kernel(event, r->file, diag);
    if (status != STATUS_OK)
        return status;
    if (*event->collective)
        return take_collective(r, event, diag);
    const struct kernel_measurement row = {.position = event->position,
        .name = event->name,
        .device = event->device,
        .stream = event->stream,
        .start_s = (double)event->start_ns * 1e-9,
        .duration_s = event->duration_us * us};
    r->trace->kernels++;
    return r->sink->kernel(r->sink->self, &row, diag);
}

enum status kineto_read(struct kineto_trace *out, struct input *input,
    const struct kineto_sink *sink, struct arena *arena, struct diag *diag)
{
    *out = (struct kineto_trace){0};
    struct reader r = {out, sink, input_name(input)};
    struct kineto_about about;
    enum status status = kineto_scan(&about, input, kineto_collectives_take_event, &r, arena, diag);
    out->about = (struct measurement_about){.gpu = about.gpu, .nccl_version = about.nccl_version};
    if (status == STATUS_OK && out->collectives + out->kernels == 0)
        status = diag_input(diag, (struct source_pos){.file = input_name(input)},
            "no GPU kernels in it (%lld collective%s without size left out); profile with "
            "ProfilerActivity.CUDA",
            (long long)out->left_out, plural(out->left_out));
    return status;
}
