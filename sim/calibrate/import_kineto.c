#include "calibrate/import_kineto.h"

#include "calibrate/json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { IN_ROOT, IN_EVENTS, IN_EVENT, IN_ARGS, IN_DISTRIBUTED, IN_DEVICE };
static const char *const containers[] = {
    "", "traceEvents", "traceEvents[]", "traceEvents[].args", "distributedInfo", "deviceProperties[]", NULL};

static const double us = 1e-6; /* ts and dur are in microseconds */

/* The event being read; texts longer than their room are cut. */
struct event {
    char name[512], collective[64], dtype[32];
    bool complete, kernel; /* ph X; cat kernel */
    double start_us, duration_us;
    int64_t in_elements, out_elements, ranks, device, stream;
};

struct reader {
    struct kineto_trace *trace;
    const struct kineto_sink *sink;
    struct input *input;
    struct arena *arena;
    struct diag *diag;
    struct event event;
    int64_t position; /* of the event, from 1 */
    bool has_events;
};

/* Names that ProcessGroupNCCL records, and ours. */
static const struct {
    const char *torch, *name;
    bool in_place;
} collectives[] = {
    {"allreduce", "all_reduce", true},
    {"allreduce_coalesced", "all_reduce", true},
    {"_allgather_base", "all_gather", false},
    {"all_gather", "all_gather", false},
    {"allgather", "all_gather", false},
    {"all_gather_into_tensor_coalesced", "all_gather", false},
    {"allgather_into_tensor_coalesced", "all_gather", false},
    {"_reduce_scatter_base", "reduce_scatter", false},
    {"reduce_scatter", "reduce_scatter", false},
    {"reduce_scatter_tensor_coalesced", "reduce_scatter", false},
    {"broadcast", "broadcast", true},
    {"reduce", "reduce", true},
    {"all_to_all", "all_to_all", false},
    {"alltoall", "all_to_all", false},
    {"alltoall_base", "all_to_all", false},
    {"all_to_allv", "all_to_all", false},
    {"gather", "gather", false},
    {"scatter", "scatter", false},
};

/* c10::ScalarType. */
static const struct {
    const char *name;
    int bytes;
} dtypes[] = {{"Float", 4}, {"BFloat16", 2}, {"Half", 2}, {"Double", 8}, {"Byte", 1}, {"Char", 1}, {"Bool", 1},
    {"Short", 2}, {"Int", 4}, {"Long", 8}, {"Float8_e4m3fn", 1}, {"Float8_e5m2", 1}, {"Float8_e4m3fnuz", 1},
    {"Float8_e5m2fnuz", 1}, {"ComplexFloat", 8}, {"ComplexDouble", 16}};

static int element_bytes(const char *dtype)
{
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        if (strcmp(dtype, dtypes[i].name) == 0)
            return dtypes[i].bytes;
    return 0;
}

#define COPY(room, text) snprintf(room, sizeof(room), "%s", text)

static enum status wrong_number(struct reader *r, const struct json_scalar *scalar)
{
    return diag_input(r->diag, (struct source_pos){input_name(r->input), scalar->line, 1},
        "'%.40s' is no number for %s", scalar->text, scalar->key);
}

static enum status take_number(struct reader *r, const struct json_scalar *scalar, double *out)
{
    return json_number(scalar, out) && isfinite(*out) ? STATUS_OK : wrong_number(r, scalar);
}

static enum status take_event(struct reader *r, const struct json_scalar *scalar)
{
    struct event *event = &r->event;
    const char *key = scalar->key;
    if (strcmp(key, "ph") == 0)
        event->complete = strcmp(scalar->text, "X") == 0;
    else if (strcmp(key, "cat") == 0)
        event->kernel = strcasecmp(scalar->text, "kernel") == 0; /* "Kernel" before PyTorch 1.13 */
    else if (strcmp(key, "name") == 0)
        COPY(event->name, scalar->text);
    else if (strcmp(key, "ts") == 0)
        return take_number(r, scalar, &event->start_us);
    else if (strcmp(key, "dur") == 0)
        return take_number(r, scalar, &event->duration_us);
    return STATUS_OK;
}

/* Events of all kinds have such keys; only kernels are checked, when they end: what is no integer counts as absent. */
static void take_args(struct event *event, const struct json_scalar *scalar)
{
    const struct {
        const char *key;
        int64_t *at;
    } numbers[] = {{"In msg nelems", &event->in_elements}, {"Out msg nelems", &event->out_elements},
        {"Group size", &event->ranks}, {"device", &event->device}, {"stream", &event->stream}};
    if (strcmp(scalar->key, "Collective name") == 0)
        COPY(event->collective, scalar->text);
    else if (strcmp(scalar->key, "dtype") == 0)
        COPY(event->dtype, scalar->text);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (strcmp(scalar->key, numbers[i].key) == 0 && !json_int(scalar, numbers[i].at))
            *numbers[i].at = 0;
}

static enum status take_scalar(void *self, const struct json_scalar *scalar)
{
    struct reader *r = self;
    struct measurement_about *about = &r->trace->about;
    if (!scalar->key)
        return STATUS_OK;
    switch (scalar->container) {
    case IN_EVENT:
        return take_event(r, scalar);
    case IN_ARGS:
        take_args(&r->event, scalar);
        return STATUS_OK;
    case IN_DISTRIBUTED:
        if (strcmp(scalar->key, "nccl_version") == 0)
            about->nccl_version = arena_strdup(r->arena, scalar->text);
        return STATUS_OK;
    case IN_DEVICE:
        if (strcmp(scalar->key, "name") == 0 && !about->gpu)
            about->gpu = arena_strdup(r->arena, scalar->text);
        return STATUS_OK;
    default:
        return STATUS_OK;
    }
}

static enum status end_collective(struct reader *r)
{
    const struct event *event = &r->event;
    enum { LARGEST = 1 << 30 }; /* elements x bytes stays far from overflow */
    int64_t elements = event->in_elements > event->out_elements ? event->in_elements : event->out_elements;
    for (size_t i = 0; i < sizeof collectives / sizeof *collectives; i++) {
        struct collective_measurement row = {.position = r->position,
            .collective = collectives[i].name,
            .dtype = event->dtype,
            .ranks = (int)event->ranks,
            .out_of_place_s = collectives[i].in_place ? 0 : event->duration_us * us,
            .in_place_s = collectives[i].in_place ? event->duration_us * us : 0};
        if (strcmp(event->collective, collectives[i].torch) != 0)
            continue;
        if (elements <= 0 || elements > (int64_t)LARGEST * LARGEST / 16 || event->ranks < 2 || event->ranks > LARGEST ||
            event->duration_us <= 0 || element_bytes(event->dtype) == 0)
            break;
        row.bytes = elements * element_bytes(event->dtype);
        r->trace->collectives++;
        return r->sink->collective(r->sink->self, &row, r->diag);
    }
    r->trace->left_out++;
    return STATUS_OK;
}

static enum status end_event(struct reader *r, int line)
{
    const struct event *event = &r->event;
    if (!event->complete || !event->kernel)
        return STATUS_OK;
    struct source_pos at = {input_name(r->input), line, 1};
    if (!*event->name)
        return diag_input(r->diag, at, "a kernel without a name");
    if (event->duration_us < 0)
        return diag_input(r->diag, at, "a kernel of %g us", event->duration_us);
    if (*event->collective)
        return end_collective(r);
    struct kernel_measurement row = {.position = r->position,
        .name = event->name,
        .device = event->device,
        .stream = event->stream,
        .start_s = event->start_us * us,
        .duration_s = event->duration_us * us};
    r->trace->kernels++;
    return r->sink->kernel(r->sink->self, &row, r->diag);
}

static enum status take_close(void *self, int container, int line)
{
    struct reader *r = self;
    if (container == IN_EVENTS)
        r->has_events = true;
    if (container != IN_EVENT)
        return STATUS_OK;
    r->position++;
    enum status status = end_event(r, line);
    r->event = (struct event){0};
    return status;
}

enum status kineto_read(struct kineto_trace *out, struct input *input, const struct kineto_sink *sink,
    struct arena *arena, struct diag *diag)
{
    *out = (struct kineto_trace){0};
    struct reader r = {.trace = out, .sink = sink, .input = input, .arena = arena, .diag = diag};
    const struct json_handler handler = {containers, take_scalar, take_close, &r};
    enum status status = json_read(input, &handler, diag);
    if (status != STATUS_OK)
        return status;
    struct source_pos whole_file = {.file = input_name(input)};
    if (!r.has_events)
        return diag_input(diag, whole_file, "no traceEvents; this is no trace of PyTorch's profiler");
    if (out->collectives + out->kernels == 0)
        return diag_input(diag, whole_file,
            "no GPU kernels in it (%lld collective%s without size left out); profile with ProfilerActivity.CUDA",
            (long long)out->left_out, plural(out->left_out));
    return STATUS_OK;
}
