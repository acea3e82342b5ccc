/* Events of a trace of PyTorch's profiler (Kineto), one after the other, each with all that its
 * arguments say. Only complete events (ph X) are handed on, at the close of their object, since the
 * order of keys is free. Names differ between versions of PyTorch, between CUDA and ROCm, and
 * between runtime and driver calls, so categories, collectives, dtypes and calls are tables of all
 * known names. With record_shapes an operator has "Input Dims" and "Input type": from them come the
 * bytes of its inputs and, where two tensors side by side can be multiplied or are queries and
 * keys, the size of the product.
 *
 * What is subtle: times are microseconds with three decimals; whole part and fraction are read
 * separately, as text, so that nothing is lost behind what a double holds. Arguments of any
 * kind of event may have the same keys with other kinds of values, so a value that is no integer
 * counts as absent. */
#include "reader/kineto.h"

#include "reader/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    IN_ROOT,
    IN_EVENTS,
    IN_EVENT,
    IN_ARGS,
    IN_DIMS,
    IN_DIM,
    IN_TYPES,
    IN_DISTRIBUTED,
    IN_DEVICE
};
static const char *const containers[] = {"", "traceEvents", "traceEvents[]", "traceEvents[].args",
    "traceEvents[].args.Input Dims", "traceEvents[].args.Input Dims[]",
    "traceEvents[].args.Input type", "distributedInfo", "deviceProperties[]", NULL};

enum { INPUTS = 16, DIMENSIONS = 4 }; /* tensors of an operator whose sizes are kept */
enum { MOST_RANKS = 1 << 24 };
static const double MOST_BYTES = 0x1p53; /* beyond it a size is nonsense */

struct kineto_reader {
    struct kineto_about *about;
    kineto_take take;
    void *self;
    struct input *input;
    struct arena *arena;
    struct diag *diag;
    struct kineto_event event;
    bool complete; /* ph X */
    int64_t position;
    double elements[INPUTS]; /* of the event's inputs; -1: no tensor */
    struct shape {
        int n; /* dimensions */
        int64_t size[DIMENSIONS];
    } shapes[INPUTS], shape; /* the last: of the input that is being read */
    int types[INPUTS];       /* their elements' bytes */
    char type_names[INPUTS][sizeof((struct kineto_event){0}.dtype)];
    int n_dims, n_types;
    double dim;    /* the product so far */
    bool too_many; /* inputs */
    bool has_events;
};

static const struct kineto_collective collectives[] = {
    {"allreduce", "all_reduce", true}, {"all_reduce", "all_reduce", true},
    {"allreduce_coalesced", "all_reduce", true}, {"_allgather_base", "all_gather", false},
    {"_all_gather_base", "all_gather", false}, {"all_gather", "all_gather", false},
    {"allgather", "all_gather", false}, {"all_gather_into_tensor_coalesced", "all_gather", false},
    {"allgather_into_tensor_coalesced", "all_gather", false},
    {"_reduce_scatter_base", "reduce_scatter", false}, {"reduce_scatter", "reduce_scatter", false},
    {"reduce_scatter_tensor_coalesced", "reduce_scatter", false}, {"broadcast", "broadcast", true},
    {"reduce", "reduce", true}, {"all_to_all", "all_to_all", false},
    {"alltoall", "all_to_all", false}, {"alltoall_base", "all_to_all", false},
    {"all_to_allv", "all_to_all", false}, {"gather", "gather", false},
    {"scatter", "scatter", false},
    {"send_recv", "send_recv",
        false}, /* not PyTorch's: from each rank of a group to the next, as flopcast writes it */
};

const struct kineto_collective *kineto_find_collective(const char *name)
{
    for (size_t i = 0; i < sizeof collectives / sizeof *collectives; i++)
        if (strcmp(name, collectives[i].torch) == 0)
            return &collectives[i];
    return NULL;
}

/* c10::ScalarType as arguments of collectives have it; then the C types that "Input type" has. */
static const struct {
    const char *name;
    int bytes;
} dtypes[] = {{"Float", 4}, {"BFloat16", 2}, {"Half", 2}, {"Double", 8}, {"Byte", 1}, {"Char", 1},
    {"Bool", 1}, {"Short", 2}, {"Int", 4}, {"Long", 8}, {"Float8_e4m3fn", 1}, {"Float8_e5m2", 1},
    {"Float8_e4m3fnuz", 1}, {"Float8_e5m2fnuz", 1}, {"ComplexFloat", 8}, {"ComplexDouble", 16},
    {"float", 4}, {"c10::BFloat16", 2}, {"c10::Half", 2}, {"double", 8}, {"unsigned char", 1},
    {"signed char", 1}, {"bool", 1}, {"short", 2}, {"short int", 2}, {"int", 4}, {"long", 8},
    {"long int", 8}, {"c10::Float8_e4m3fn", 1}, {"c10::Float8_e5m2", 1}};

/* Bytes of an element of a c10::ScalarType or C type; 0: unknown. */
static int kineto_element_bytes(const char *dtype)
{
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        if (strcmp(dtype, dtypes[i].name) == 0)
            return dtypes[i].bytes;
    return 0;
}

/* The larger side of a collective is the whole message: of gathers the output, of reductions the
 * input. */
int64_t kineto_message_bytes(const struct kineto_event *event)
{
    enum { LARGEST = 1 << 30 }; /* elements x bytes stays far from overflow */
    int64_t elements =
        event->in_elements > event->out_elements ? event->in_elements : event->out_elements;
    if (elements <= 0 || elements > (int64_t)LARGEST * LARGEST / 16)
        return 0;
    return elements * kineto_element_bytes(event->dtype);
}

#define COPY(room, text) snprintf(room, sizeof(room), "%s", text)
#define ROOM(text) text, sizeof(text)

static enum status wrong_number(struct kineto_reader *r, const struct json_scalar *scalar)
{
    return diag_input(r->diag, (struct source_pos){input_name(r->input), scalar->line, 1},
        "'%.40s' is no number for %s", scalar->text, scalar->key);
}

/* Microseconds with up to three decimals, as Kineto writes them, to nanoseconds. */
static enum status kineto_take_time(
    struct kineto_reader *r, const struct json_scalar *scalar, int64_t *out, double *us)
{
    /* A start and a duration of so much, 126 years, add up to less than int64_t holds as
     * nanoseconds. */
    static const double most_us = 4e15, ns_per_us = 1e3;
    if (!json_number(scalar, us) || !isfinite(*us) || fabs(*us) > most_us)
        return wrong_number(r, scalar);
    /* The decimals are read apart, as a double of microseconds since 1970 has steps of 0.25. */
    char *decimals;
    int64_t whole = strtoll(scalar->text, &decimals, 10);
    double part = copysign(strtod(decimals, NULL), *us);
    if (strspn(decimals, ".0123456789") < strlen(decimals)) { /* an exponent */
        whole = (int64_t)*us;
        part = *us - (double)whole;
    }
    *out = whole * 1000 + llround(part * ns_per_us);
    return STATUS_OK;
}

static enum kineto_category category(const char *text)
{
    /* As Kineto writes them now; before PyTorch 1.13 "Kernel", "Memcpy" ... */
    static const struct {
        const char *name;
        enum kineto_category category;
    } names[] = {{"kernel", KINETO_KERNEL}, {"gpu_memcpy", KINETO_MEMCPY},
        {"gpu_memset", KINETO_MEMSET}, {"cpu_op", KINETO_CPU_OP},
        {"user_annotation", KINETO_ANNOTATION}, {"gpu_user_annotation", KINETO_GPU_ANNOTATION},
        {"cuda_runtime", KINETO_RUNTIME}, {"cuda_driver", KINETO_RUNTIME},
        {"cuda_sync", KINETO_SYNC}, {"Memcpy", KINETO_MEMCPY}, {"Memset", KINETO_MEMSET},
        {"Operator", KINETO_CPU_OP}, {"Runtime", KINETO_RUNTIME}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcasecmp(text, names[i].name) == 0)
            return names[i].category;
    return KINETO_OTHER;
}

/* Without the prefix "cuda", "cu" or "hip", and the suffix "_v2", "_ptsz" or "_spt". */
static const struct {
    const char *name;
    enum kineto_call call;
} calls[] = {{"LaunchKernel", CALL_LAUNCH}, {"LaunchKernelEx", CALL_LAUNCH},
    {"LaunchKernelExC", CALL_LAUNCH}, {"LaunchCooperativeKernel", CALL_LAUNCH},
    {"LaunchCooperativeKernelMultiDevice", CALL_LAUNCH}, {"Launch", CALL_LAUNCH},
    {"ModuleLaunchKernel", CALL_LAUNCH}, {"ModuleLaunchCooperativeKernel", CALL_LAUNCH},
    {"ExtLaunchKernel", CALL_LAUNCH}, {"ExtModuleLaunchKernel", CALL_LAUNCH},
    {"HccModuleLaunchKernel", CALL_LAUNCH}, {"ExtLaunchMultiKernelMultiDevice", CALL_LAUNCH},
    {"LaunchByPtr", CALL_LAUNCH}, {"GraphLaunch", CALL_LAUNCH}, {"EventRecord", CALL_EVENT_RECORD},
    {"EventRecordWithFlags", CALL_EVENT_RECORD}, {"StreamWaitEvent", CALL_STREAM_WAIT},
    {"EventSynchronize", CALL_EVENT_SYNC}, {"StreamSynchronize", CALL_STREAM_SYNC},
    {"DeviceSynchronize", CALL_DEVICE_SYNC}, {"ThreadSynchronize", CALL_DEVICE_SYNC},
    {"CtxSynchronize", CALL_DEVICE_SYNC}, {"Free", CALL_DEVICE_SYNC}, {"MemFree", CALL_DEVICE_SYNC},
    {"Malloc", CALL_MALLOC}, {"MemAlloc", CALL_MALLOC}, {"ExtMallocWithFlags", CALL_MALLOC},
    {"MemCreate", CALL_MALLOC}, {"MemMap", CALL_MALLOC}};

/* As CUPTI calls what cuda_sync events are of. */
static const struct {
    const char *name;
    enum kineto_call call;
} syncs[] = {{"Stream Wait Event", CALL_STREAM_WAIT}, {"Event Sync", CALL_EVENT_SYNC},
    {"Stream Sync", CALL_STREAM_SYNC}, {"Context Sync", CALL_DEVICE_SYNC}};

/* cuda_sync events go by CUPTI's names, calls by theirs without prefix and suffix. */
static enum kineto_call call_of(const struct kineto_event *event)
{
    static const char *const prefixes[] = {"cuda", "cu", "hip"};
    for (size_t i = 0; i < sizeof syncs / sizeof *syncs && event->category == KINETO_SYNC; i++)
        if (strcmp(event->name, syncs[i].name) == 0)
            return syncs[i].call;
    for (size_t p = 0; p < sizeof prefixes / sizeof *prefixes && event->category == KINETO_RUNTIME;
         p++) {
        size_t prefix = strlen(prefixes[p]);
        const char *name = event->name + prefix;
        size_t n = strncmp(event->name, prefixes[p], prefix) == 0 ? strcspn(name, "_") : 0;
        for (size_t i = 0; i < sizeof calls / sizeof *calls && n > 0; i++)
            if (strlen(calls[i].name) == n && strncmp(name, calls[i].name, n) == 0)
                return calls[i].call;
    }
    return CALL_OTHER;
}

static enum status kineto_take_event(struct kineto_reader *r, const struct json_scalar *scalar)
{
    struct kineto_event *event = &r->event;
    const char *key = scalar->key;
    double start_us;
    if (strcmp(key, "ph") == 0)
        r->complete = strcmp(scalar->text, "X") == 0;
    else if (strcmp(key, "cat") == 0)
        event->category = category(scalar->text);
    else if (strcmp(key, "name") == 0)
        COPY(event->name, scalar->text);
    else if (strcmp(key, "ts") == 0)
        return kineto_take_time(r, scalar, &event->start_ns, &start_us);
    else if (strcmp(key, "dur") == 0)
        return kineto_take_time(r, scalar, &event->duration_ns, &event->duration_us);
    else if (strcmp(key, "pid") == 0 && !json_int(scalar, &event->process))
        event->process = 0;
    else if (strcmp(key, "tid") == 0 && !json_int(scalar, &event->thread))
        event->thread = 0;
    return STATUS_OK;
}

/* Events of all kinds have such keys, of any kind of value: what is no integer counts as absent. */
static void take_args(struct kineto_event *event, const struct json_scalar *scalar)
{
    const struct {
        const char *key;
        int64_t *at;
    } numbers[] = {{"In msg nelems", &event->in_elements}, {"Out msg nelems", &event->out_elements},
        {"Group size", &event->ranks}, {"device", &event->device}, {"stream", &event->stream},
        {"correlation", &event->correlation}, {"External id", &event->external},
        {"wait_on_stream", &event->waited_stream},
        {"wait_on_cuda_event_record_corr_id", &event->waited_record}};
    const struct {
        const char *key;
        char *at;
        size_t room;
    } texts[] = {{"Collective name", ROOM(event->collective)}, {"dtype", ROOM(event->dtype)},
        {"kind", ROOM(event->kind)}, {"phase", ROOM(event->phase)},
        {"Process Group Name", ROOM(event->group)},
        {"Process Group Ranks", ROOM(event->group_ranks)},
        {"Process Group Description", ROOM(event->group_says)}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (strcmp(scalar->key, texts[i].key) == 0)
            snprintf(texts[i].at, texts[i].room, "%s", scalar->text);
    if (strcmp(scalar->key, "Dst Rank") == 0 || strcmp(scalar->key, "Src Rank") == 0)
        event->has_peer =
            json_int(scalar, &event->peer) && event->peer >= 0 && event->peer < MOST_RANKS;
    if (strcmp(scalar->key, "alone (us)") == 0 && !json_number(scalar, &event->alone_us))
        event->alone_us = 0;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (strcmp(scalar->key, numbers[i].key) == 0 && !json_int(scalar, numbers[i].at))
            *numbers[i].at = 0;
}

/* [[8, 1024], [], ...] and ["float", "Scalar", ...]: an empty list is no tensor, or one of no
 * dimension. */
static void take_input(struct kineto_reader *r, const struct json_scalar *scalar)
{
    double size;
    if (scalar->container == IN_TYPES && r->n_types < INPUTS) {
        COPY(r->type_names[r->n_types], scalar->text);
        r->types[r->n_types++] = kineto_element_bytes(scalar->text);
    } else if (scalar->container == IN_TYPES)
        r->too_many = true;
    if (scalar->container == IN_DIM && r->shape.n < DIMENSIONS &&
        !json_int(scalar, &r->shape.size[r->shape.n]))
        r->shape.size[r->shape.n] = 0;
    r->shape.n += scalar->container == IN_DIM;
    if (scalar->container == IN_DIM)
        r->dim = (r->dim < 0 ? 1 : r->dim) *
                 (json_number(scalar, &size) && size >= 0 ? size : (double)NAN);
}

static enum status kineto_take_scalar(void *self, const struct json_scalar *scalar)
{
    struct kineto_reader *r = self;
    struct kineto_about *about = r->about;
    if (!scalar->key) {
        take_input(r, scalar);
        return STATUS_OK;
    }
    switch (scalar->container) {
    case IN_EVENT:
        return kineto_take_event(r, scalar);
    case IN_ARGS:
        take_args(&r->event, scalar);
        return STATUS_OK;
    case IN_DISTRIBUTED:
        if (strcmp(scalar->key, "nccl_version") == 0)
            about->nccl_version = arena_strdup(r->arena, scalar->text);
        else if (strcmp(scalar->key, "rank") == 0 && !json_int(scalar, &r->about->rank))
            r->about->rank = -1;
        else if (strcmp(scalar->key, "world_size") == 0 && !json_int(scalar, &r->about->world_size))
            r->about->world_size = 0;
        return STATUS_OK;
    case IN_DEVICE:
        if (strcmp(scalar->key, "name") == 0 && !about->gpu)
            about->gpu = arena_strdup(r->arena, scalar->text);
        return STATUS_OK;
    default:
        return STATUS_OK;
    }
}

static double input_bytes(const struct kineto_reader *r)
{
    double bytes = 0;
    if (r->too_many || r->n_dims != r->n_types)
        return 0;
    for (int i = 0; i < r->n_dims; i++) {
        if (r->elements[i] >= 0 && r->types[i] == 0)
            return 0; /* a tensor of a type that is not known */
        bytes += r->elements[i] > 0 ? r->elements[i] * r->types[i] : 0;
    }
    return bytes < MOST_BYTES ? bytes : 0;
}

/* Whether they can be multiplied, [batch,] m x k by [batch,] k x n. */
static bool take_product(struct kineto_event *event, const struct shape *a, const struct shape *b)
{
    int n = a->n;
    bool fit = n == b->n && (n == 2 || n == 3) && a->size[n - 1] == b->size[n - 2] &&
               a->size[0] > 0 && b->size[n - 1] > 0;
    if (!fit || a->size[n - 2] <= 0 || a->size[n - 1] <= 0 || (n == 3 && a->size[0] != b->size[0]))
        return false;
    event->batch = n == 3 ? a->size[0] : 1;
    event->m = a->size[n - 2];
    event->k = a->size[n - 1];
    event->n = b->size[n - 1];
    return true;
}

/* Queries and keys, [sequences, heads, tokens, head] or, as _flash_attention_forward has them,
 * tokens before heads. */
static bool take_attention(struct kineto_event *event, const struct shape *q, const struct shape *k)
{
    int heads = strstr(event->name, "_flash_attention") ? 2 : 1, tokens = heads == 2 ? 1 : 2;
    if (q->n != 4 || k->n != 4 || q->size[3] != k->size[3] || q->size[0] != k->size[0])
        return false;
    for (int i = 0; i < DIMENSIONS; i++)
        if (q->size[i] <= 0 || q->size[i] > INT32_MAX || k->size[i] <= 0)
            return false;
    event->attends = true;
    event->batch = q->size[0] * q->size[heads];
    event->m = q->size[tokens];
    event->n = k->size[tokens];
    event->k = q->size[3];
    return true;
}

static void find_product(struct kineto_reader *r)
{
    for (int i = 0; i + 1 < r->n_dims && r->n_dims == r->n_types; i++) {
        if (!take_product(&r->event, &r->shapes[i], &r->shapes[i + 1]) &&
            !take_attention(&r->event, &r->shapes[i], &r->shapes[i + 1]))
            continue;
        COPY(r->event.dtype, r->type_names[i]);
        return;
    }
}

/* What is left in `r` belongs to the next event. */
static enum status kineto_take_close(void *self, int container, int line)
{
    struct kineto_reader *r = self;
    if (container == IN_EVENTS)
        r->has_events = true;
    if (container == IN_DIM) {
        if (r->n_dims < INPUTS) {
            r->shapes[r->n_dims] = r->shape;
            r->elements[r->n_dims++] = r->dim;
        }
        r->dim = -1;
        r->shape.n = 0;
    }
    if (container != IN_EVENT)
        return STATUS_OK;
    r->event.position = ++r->position;
    r->event.line = line;
    r->event.input_bytes = input_bytes(r);
    r->event.call = call_of(&r->event);
    if (r->event.category == KINETO_CPU_OP)
        find_product(r);
    enum status status = STATUS_OK;
    if (r->complete) {
        r->about->events++;
        status = r->take(r->self, &r->event, r->diag);
    }
    r->event = (struct kineto_event){0};
    r->complete = false;
    r->n_dims = r->n_types = 0;
    r->too_many = false;
    r->dim = -1;
    return status;
}

enum status kineto_check_kernel(
    const struct kineto_event *event, const char *file, struct diag *diag)
{
    struct source_pos at = {file, event->line, 1};
    if (!*event->name)
        return diag_input(diag, at, "a kernel without a name");
    if (event->duration_us < 0)
        return diag_input(diag, at, "a kernel of %g us", event->duration_us);
    return STATUS_OK;
}

enum status kineto_scan(struct kineto_about *out, struct input *input, kineto_take take, void *self,
    struct arena *arena, struct diag *diag)
{
    *out = (struct kineto_about){.rank = -1};
    struct kineto_reader r = {.about = out,
        .take = take,
        .self = self,
        .input = input,
        .arena = arena,
        .diag = diag,
        .dim = -1};
    const struct json_handler handler = {.containers = containers,
        .scalar = kineto_take_scalar,
        .close = kineto_take_close,
        .self = &r};
    enum status status = json_read(input, &handler, diag);
    if (status == STATUS_OK && !r.has_events)
        status = diag_input(diag, (struct source_pos){.file = input_name(input)},
            "no traceEvents; this is no trace of PyTorch's profiler (a log of nccl-tests is for "
            "`flopcast calibrate check FILE`)");
    return status;
}
