/* A trace of PyTorch's profiler as a struct trace.
 *
 * All events are read once (take_event) into lists: activities of GPUs, CUDA calls, intents (what
 * the host says of a collective that it launches meanwhile), steps, optimizer ranges, waits. Then
 * trace_kineto_finish() keeps one device, turns times into picoseconds since its first kernel,
 * finds for each activity the call that launched it by correlation, describes collectives by the
 * intents around that call, assigns phases and steps.
 *
 * What is subtle: several kernels inside one intent do not share its size; a batch of sends and
 * receives (batch_isend_irecv) is one kernel for many intents, those since the thread's kernel
 * before; bytes below 0 are of the input alone until the number of ranks is known. A correlation
 * may repeat, then the first call counts. */
#include "reader/kineto.h"
#include "foreign/trace_file.h"

#include <stdlib.h>
#include <string.h>

/* Cut at the horizon, beyond which differences of picoseconds would overflow. */
ps_t trace_ps(int64_t ns, int64_t origin_ns)
{
    enum { PS_PER_NS = 1000 };
    const int64_t horizon_ns = PS_HORIZON / PS_PER_NS;
    double far_ns = (double)ns - (double)origin_ns, most_ns = (double)horizon_ns;
    if (far_ns > most_ns)
        return PS_HORIZON;
    return far_ns < -most_ns ? -PS_HORIZON : (ns - origin_ns) * PS_PER_NS;
}

void trace_count_device(struct trace_devices *devices, int64_t device)
{
    for (int i = 0; i < devices->numbers.n; i++)
        if (devices->numbers.at[i] == device)
            return;
    if (devices->numbers.n == 0 || device < devices->lowest)
        devices->lowest = device;
    vec_push(&devices->numbers, device);
}

int64_t trace_next_device(const struct trace_devices *devices, int64_t device)
{
    int64_t next = -1;
    for (int i = 0; i < devices->numbers.n; i++)
        if (devices->numbers.at[i] > device && (next < 0 || devices->numbers.at[i] < next))
            next = devices->numbers.at[i];
    return next;
}

enum status trace_no_device(
    const struct trace *trace, int64_t device, const char *file, struct diag *diag)
{
    return diag_input(diag, (struct source_pos){.file = file},
        "no kernel of GPU %lld in it, but of %d other%s", (long long)device, trace->devices,
        plural(trace->devices));
}

/* The first character of the file chooses: SQLite, JSON, or a message. */
enum status trace_load(struct trace *out, const char *path, int64_t device, const char *steps,
    struct arena *arena, struct diag *diag)
{
    static const char sqlite_begins[] = "SQLite format 3"; /* a file of JSON begins with { or [ */
    struct input *input = NULL;
    char first = '\0';
    *out = (struct trace){.rank = -1, .next_device = -1};
    enum status status = input_open(&input, path, diag);
    if (status == STATUS_OK)
        status = input_peek(input, &first, diag);
    if (status == STATUS_OK && first == sqlite_begins[0])
        status = trace_read_nsys(out, path, device, steps, arena, diag);
    else if (status == STATUS_OK && steps)
        status = diag_input(diag, (struct source_pos){.file = path},
            "steps by name are of NVTX ranges in a profile of Nsight Systems; of PyTorch's "
            "profiler call step() after each");
    else if (status == STATUS_OK &&
             !strchr("{[ \t\r\n\xef", first)) /* the last: of a byte order mark; or '\0' */
        status = diag_input(diag, (struct source_pos){.file = path},
            "no trace: that is JSON or, of Nsight Systems, SQLite, and this begins with '%c'; a "
            "log of nccl-tests is for `flopcast calibrate check FILE`",
            first);
    else if (status == STATUS_OK)
        status = trace_read_kineto(out, input, device, arena, diag);
    input_close(input);
    return status;
}

static const char loader_prefix[] = "enumerate(DataLoader)#";
static const char step_prefix[] = "ProfilerStep#",
                  nccl_prefix[] = "nccl:", optimizer_prefix[] = "Optimizer.step#";

struct call { /* of the CUDA runtime */
    int64_t correlation, process, thread, start_ns, end_ns;
};

struct origin { /* of an activity */
    int64_t device, process, correlation, external;
};

/* What the host says of the collective that it launches meanwhile. */
struct intent {
    int64_t process, thread, start_ns, end_ns;
    int8_t kind;
    int32_t ranks, group;
    double bytes,
        input_bytes; /* the whole message; what goes in, where that is all that is known */
    int kernels;     /* launched inside */
    bool is_message;
    struct trace_message message;
};

struct step {
    int64_t process, thread, number, start_ns, end_ns;
};

struct interval {
    int64_t start_ns, end_ns;
};

struct trace_reader {
    struct trace *trace; /* times are nanoseconds of the file until all is read */
    struct arena *arena;
    const char *file;
    VEC(struct origin) origins;
    VEC(struct call) calls;
    VEC(struct intent) intents;
    VEC(struct step) steps, gpu_steps;
    VEC(struct interval) optimizer, loading;
    struct trace_waits waits;
    struct trace_shapes shapes;
};

static ps_t ps_of_us(double us)
{
    return us > 0 ? ps_from_s(us * 1e-6) : 0;
}

/* False: it is neither a send nor a receive. */
static bool trace_kineto_message_of(
    struct trace_reader *r, const struct kineto_event *event, struct trace_message *out)
{
    bool sends = strcmp(event->collective, "send") == 0;
    *out = (struct trace_message){.sends = sends,
        .peer = event->has_peer ? (int32_t)event->peer : -1,
        .group = trace_group_named(r->trace, event, r->arena),
        .bytes = (double)kineto_message_bytes(event)};
    return sends || strcmp(event->collective, "recv") == 0;
}

static int8_t trace_kineto_kind_of(const char *name)
{
    for (int kind = 0; name && kind < COLL_KIND_COUNT; kind++)
        if (strcmp(name, coll_kind_names[kind]) == 0)
            return (int8_t)kind;
    return TRACE_UNKNOWN_KIND;
}

static int8_t torch_kind(const char *name)
{
    const struct kineto_collective *found = kineto_find_collective(name);
    return trace_kineto_kind_of(found ? found->name : NULL);
}

static int32_t trace_kineto_ranks_of(const struct kineto_event *event)
{
    return event->ranks >= 2 && event->ranks <= INT32_MAX ? (int32_t)event->ranks : 0;
}

static int trace_kineto_class_of(
    const struct trace *trace, const struct kineto_event *event, int8_t *kind)
{
    int class = trace_classify(trace, event->name, kind);
    for (int k = 0; *event->kind && k < KERNEL_KIND_COUNT; k++)
        if (strcmp(event->kind, kernel_kind_names[k]) == 0)
            return k;
    if (event->category != KINETO_KERNEL)
        return class == KERNEL_HOST_COPY ? KERNEL_HOST_COPY : KERNEL_COPY;
    return *event->collective ? TRACE_COLLECTIVE : class;
}

static uint8_t phase_named(const char *name)
{
    for (int phase = 0; phase < PHASE_COUNT; phase++)
        if (strcmp(name, plan_phase_names[phase]) == 0)
            return (uint8_t)phase;
    return PHASE_COUNT;
}

static void add_message(
    struct trace *trace, struct trace_activity *activity, struct trace_message message)
{
    if (activity->n_messages++ == 0)
        activity->message = trace->messages.n;
    activity->ranks = 2;
    vec_push(&trace->messages, message);
}

static void take_message(
    struct trace_reader *r, const struct kineto_event *event, struct trace_activity *activity)
{
    struct trace_message message;
    if (!trace_kineto_message_of(r, event, &message))
        return;
    add_message(r->trace, activity, message);
}

/* Times stay nanoseconds of the file until set_origin(). */
static enum status take_activity(
    struct trace_reader *r, const struct kineto_event *event, struct diag *diag)
{
    enum status status = kineto_check_kernel(event, r->file, diag);
    if (status != STATUS_OK)
        return status;
    struct trace_activity activity = {.start = event->start_ns,
        .end = event->start_ns + event->duration_ns,
        .name = trace_name(r->trace, event->name, r->arena),
        .stream = (int32_t)event->stream,
        .step = TRACE_NO_STEP,
        .phase = phase_named(event->phase),
        .group = -1,
        .product = -1,
        .line = event->line,
        .alone = ps_of_us(event->alone_us)};
    activity.class = (uint8_t)trace_kineto_class_of(r->trace, event, &activity.kind);
    if (activity.class == TRACE_COLLECTIVE && *event->collective) {
        int8_t said = torch_kind(event->collective);
        activity.kind = said != TRACE_UNKNOWN_KIND ? said : activity.kind;
        activity.ranks = trace_kineto_ranks_of(event);
        activity.group = trace_group_named(r->trace, event, r->arena);
        activity.bytes = (double)kineto_message_bytes(event);
        take_message(r, event, &activity);
        if (activity.kind == COLL_SEND_RECV && said != COLL_SEND_RECV && activity.n_messages == 0)
            activity.bytes = 0; /* of several calls in one, which say what each of them is */
    }
    vec_push(&r->trace->activities, activity);
    vec_push(&r->origins,
        (struct origin){event->device, event->process, event->correlation, event->external});
    return STATUS_OK;
}

static void take_annotation(struct trace_reader *r, const struct kineto_event *event)
{
    int64_t end_ns = event->start_ns + (event->duration_ns > 0 ? event->duration_ns : 0);
    if (strncmp(event->name, step_prefix, strlen(step_prefix)) == 0) {
        struct step step = {event->process, event->thread,
            strtoll(event->name + strlen(step_prefix), NULL, 10), event->start_ns, end_ns};
        if (event->category == KINETO_GPU_ANNOTATION)
            vec_push(&r->gpu_steps, step);
        else
            vec_push(&r->steps, step);
    } else if (event->category == KINETO_ANNOTATION &&
               strncmp(event->name, optimizer_prefix, strlen(optimizer_prefix)) == 0) {
        vec_push(&r->optimizer, (struct interval){event->start_ns, end_ns});
    } else if (event->category == KINETO_ANNOTATION &&
               strncmp(event->name, nccl_prefix, strlen(nccl_prefix)) == 0) {
        vec_push(&r->intents, (struct intent){.process = event->process,
                                  .thread = event->thread,
                                  .start_ns = event->start_ns,
                                  .end_ns = end_ns,
                                  .group = -1,
                                  .kind = torch_kind(event->name + strlen(nccl_prefix)),
                                  .input_bytes = event->input_bytes});
    }
}

static void take_op(struct trace_reader *r, const struct kineto_event *event)
{
    trace_shapes_take(&r->shapes, r->trace, event);
    if (!*event->collective || strcmp(event->name, "record_param_comms") != 0)
        return;
    struct intent intent = {.process = event->process,
        .thread = event->thread,
        .start_ns = event->start_ns,
        .end_ns = event->start_ns + event->duration_ns,
        .kind = torch_kind(event->collective),
        .ranks = trace_kineto_ranks_of(event),
        .group = trace_group_named(r->trace, event, r->arena),
        .bytes = (double)kineto_message_bytes(event)};
    intent.is_message = trace_kineto_message_of(r, event, &intent.message);
    vec_push(&r->intents, intent);
}

/* An annotation, in older traces an operator. */
static void take_loading(struct trace_reader *r, const struct kineto_event *event)
{
    bool host = event->category == KINETO_ANNOTATION || event->category == KINETO_CPU_OP;
    if (host && strncmp(event->name, loader_prefix, strlen(loader_prefix)) == 0 &&
        event->duration_ns > 0)
        vec_push(
            &r->loading, (struct interval){event->start_ns, event->start_ns + event->duration_ns});
}

static enum status trace_kineto_take_event(
    void *self, const struct kineto_event *event, struct diag *diag)
{
    struct trace_reader *r = self;
    take_loading(r, event);
    switch (event->category) {
    case KINETO_KERNEL:
    case KINETO_MEMCPY:
    case KINETO_MEMSET:
        return take_activity(r, event, diag);
    case KINETO_ANNOTATION:
    case KINETO_GPU_ANNOTATION:
        take_annotation(r, event);
        return STATUS_OK;
    case KINETO_CPU_OP:
        take_op(r, event);
        return STATUS_OK;
    case KINETO_RUNTIME:
        trace_waits_take(&r->waits, event);
        if (event->correlation > 0)
            vec_push(&r->calls, (struct call){event->correlation, event->process, event->thread,
                                    event->start_ns, event->start_ns + event->duration_ns});
        return STATUS_OK;
    case KINETO_SYNC:
        trace_waits_take(&r->waits, event);
        return STATUS_OK;
    case KINETO_OTHER:
        break;
    }
    return STATUS_OK;
}

/* ---- what launched what ---- */

static int trace_kineto_by_correlation(const void *a, const void *b)
{
    const struct call *x = a, *y = b;
    if (x->correlation != y->correlation)
        return x->correlation < y->correlation ? -1 : 1;
    return x->start_ns < y->start_ns ? -1 : x->start_ns > y->start_ns;
}

static const struct call *launch_of(const struct trace_reader *r, const struct origin *origin)
{
    const struct call wanted = {.correlation = origin->correlation, .start_ns = INT64_MIN};
    int low = 0, high = r->calls.n;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (trace_kineto_by_correlation(&r->calls.at[middle], &wanted) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    bool found = origin->correlation > 0 && low < r->calls.n &&
                 r->calls.at[low].correlation == origin->correlation;
    return found ? &r->calls.at[low] : NULL;
}

static int by_thread(const void *a, const void *b)
{
    const struct intent *x = a, *y = b;
    if (x->process != y->process)
        return x->process < y->process ? -1 : 1;
    if (x->thread != y->thread)
        return x->thread < y->thread ? -1 : 1;
    if (x->start_ns != y->start_ns)
        return x->start_ns < y->start_ns ? -1 : 1;
    return x->end_ns > y->end_ns ? -1 : x->end_ns < y->end_ns; /* the outer one first */
}

/* Around the call: record_param_comms, and the annotation in it. What one does not know the
 * other may. Intents of a thread nest, so one around the call began among the last few before
 * it. */
static void find_intents(struct trace_reader *r, const struct call *call, struct intent *found[2])
{
    enum { NESTED = 8 }; /* as many begin before the call at most, and one of them is around it */
    const struct intent wanted = {
        .process = call->process, .thread = call->thread, .start_ns = call->start_ns};
    int low = 0, high = r->intents.n, n = 0;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (by_thread(&r->intents.at[middle], &wanted) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (int i = low - 1; i >= 0 && i >= low - NESTED && n < 2; i--) {
        struct intent *intent = &r->intents.at[i];
        if (intent->process == call->process && intent->thread == call->thread &&
            intent->end_ns >= call->start_ns)
            found[n++] = intent;
    }
}

static double whole_message(int kind, double input_bytes, int ranks)
{
    return kind == COLL_ALL_GATHER ? input_bytes * ranks : input_bytes;
}

static void trace_kineto_describe(
    struct trace *trace, struct trace_activity *activity, struct intent *const found[2])
{
    double input_bytes = 0;
    for (int i = 0; i < 2; i++) {
        const struct intent *intent = found[i];
        if (!intent)
            continue;
        activity->kind = intent->kind != TRACE_UNKNOWN_KIND ? intent->kind : activity->kind;
        activity->ranks = activity->ranks ? activity->ranks : intent->ranks;
        activity->group = activity->group >= 0 ? activity->group : intent->group;
        if (intent->kernels > 1)
            continue; /* which of them took what is not said */
        if (intent->is_message && activity->n_messages == 0)
            add_message(trace, activity, intent->message);
        activity->bytes = activity->bytes > 0 ? activity->bytes : intent->bytes;
        input_bytes = input_bytes > 0 ? input_bytes : intent->input_bytes;
    }
    if (activity->bytes == 0 && input_bytes > 0)
        activity->bytes = -input_bytes; /* below 0: of the input alone, until the ranks are known */
}

static bool wants_description(const struct trace_activity *activity)
{
    return activity->class == TRACE_COLLECTIVE && activity->bytes <= 0;
}

/* ---- sends and receives ---- */

/* A kernel of them whose arguments do not say it, by the call that launched it. */
struct batch {
    const struct call *call;
    struct trace_activity *activity;
};

static int by_call(const void *a, const void *b)
{
    const struct call *x = ((const struct batch *)a)->call, *y = ((const struct batch *)b)->call;
    if (x->process != y->process)
        return x->process < y->process ? -1 : 1;
    if (x->thread != y->thread)
        return x->thread < y->thread ? -1 : 1;
    return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

/* batch_isend_irecv: what was called on the thread since its kernel before, up to the launch. The
 * first intent that is of a later batch is left as *next. */
static void take_batch(struct trace_reader *r, const struct batch *batch, int *next)
{
    const struct intent wanted = {.process = batch->call->process,
        .thread = batch->call->thread,
        .start_ns = batch->call->start_ns,
        .end_ns = INT64_MIN};
    struct trace_activity *activity = batch->activity;
    for (; *next < r->intents.n && by_thread(&r->intents.at[*next], &wanted) <= 0; ++*next) {
        const struct intent *intent = &r->intents.at[*next];
        bool own = intent->process == wanted.process && intent->thread == wanted.thread;
        if (!own || !intent->is_message || intent->kernels > 0)
            continue;
        add_message(r->trace, activity, intent->message);
        activity->bytes += intent->message.bytes;
    }
}

/* The intents are sorted, and those around a launch have counted it. */
static void describe_batches(struct trace_reader *r)
{
    struct trace *trace = r->trace;
    VEC(struct batch) batches = {0};
    for (int i = 0; i < trace->activities.n; i++) {
        struct trace_activity *activity = &trace->activities.at[i];
        const struct call *call = launch_of(r, &r->origins.at[i]);
        if (activity->class == TRACE_COLLECTIVE && activity->kind == COLL_SEND_RECV &&
            !activity->n_messages && call)
            vec_push(&batches, (struct batch){call, activity});
    }
    if (batches.n > 1)
        qsort(batches.at, (size_t)batches.n, sizeof *batches.at, by_call);
    for (int i = 0, next = 0; i < batches.n; i++)
        take_batch(r, &batches.at[i], &next);
    vec_free(&batches);
}

/* Two passes: how many kernels an intent launched must be known before it describes any. Where a
 * kernel does not say what it does (before PyTorch 2.2), the call that launched it does: it lies
 * inside the annotation "nccl:all_reduce" and, newer, in record_param_comms. NCCL's kernels are
 * generic, so what the annotation says goes before the kernel's name. */
static void describe_collectives(struct trace_reader *r)
{
    struct trace *trace = r->trace;
    struct intent *(*found)[2] = xcalloc((size_t)trace->activities.n + 1, sizeof *found);
    if (r->intents.n > 0)
        qsort(r->intents.at, (size_t)r->intents.n, sizeof *r->intents.at, by_thread);
    for (int i = 0; i < trace->activities.n; i++) {
        const struct call *call = launch_of(r, &r->origins.at[i]);
        if (!call || !wants_description(&trace->activities.at[i]))
            continue;
        find_intents(r, call, found[i]);
        for (int f = 0; f < 2; f++)
            if (found[i][f])
                found[i][f]->kernels++;
    }
    for (int i = 0; i < trace->activities.n; i++)
        if (wants_description(&trace->activities.at[i]))
            trace_kineto_describe(trace, &trace->activities.at[i], found[i]);
    free(found);
    describe_batches(r);
}

/* A process group has its own stream. Where all collectives are on one and none says how large its
 * group is, it is the world. */
static void assume_ranks(struct trace *trace)
{
    int32_t stream = -1;
    bool one = trace->world_size >= 2 && trace->world_size <= INT32_MAX;
    for (int i = 0; i < trace->activities.n; i++) {
        const struct trace_activity *activity = &trace->activities.at[i];
        if (activity->class != TRACE_COLLECTIVE)
            continue;
        one = one && activity->ranks == 0 && (stream < 0 || stream == activity->stream);
        stream = activity->stream;
    }
    for (int i = 0; i < trace->activities.n; i++) {
        struct trace_activity *activity = &trace->activities.at[i];
        if (activity->class != TRACE_COLLECTIVE)
            continue;
        activity->ranks = one ? (int32_t)trace->world_size : activity->ranks;
        trace->ranks_assumed += one;
        if (activity->bytes < 0)
            activity->bytes = whole_message(activity->kind, -activity->bytes, activity->ranks);
    }
}

/* ---- one GPU ---- */

/* Leaves the activities of the device alone; the process that they are of. */
static enum status keep_device(
    struct trace_reader *r, int64_t device, int64_t *process, struct diag *diag)
{
    struct trace *trace = r->trace;
    struct source_pos at = {.file = r->file};
    struct trace_devices devices = {0};
    int n = 0, processes = 0;
    for (int i = 0; i < r->origins.n; i++)
        trace_count_device(&devices, r->origins.at[i].device);
    device = device < 0 ? devices.lowest : device;
    trace->devices = devices.numbers.n;
    trace->next_device = trace_next_device(&devices, device);
    vec_free(&devices.numbers);
    for (int i = 0; i < trace->activities.n; i++) {
        const struct origin *origin = &r->origins.at[i];
        if (origin->device != device)
            continue;
        processes += processes == 0 || origin->process != *process;
        *process = origin->process;
        trace->activities.at[n] = trace->activities.at[i];
        r->origins.at[n++] = *origin;
    }
    trace->activities.n = r->origins.n = n;
    trace->device = device;
    if (n == 0)
        return trace_no_device(trace, device, r->file, diag);
    if (processes > 1)
        return diag_input(diag, at,
            "kernels of several processes on GPU %lld; a trace of one rank is wanted, or --device "
            "of one that a single rank uses",
            (long long)device);
    return STATUS_OK;
}

static int trace_kineto_by_start(const void *a, const void *b)
{
    const struct step *x = a, *y = b;
    return x->start_ns < y->start_ns ? -1 : x->start_ns > y->start_ns;
}

/* The host's steps: those of the GPU's own process, where the trace has several with one number
 * each. Steps that begin within the one before are another thread's copy of it. */
static void take_steps(
    struct trace_reader *r, struct trace_marks *marks, int64_t process, int64_t origin_ns)
{
    bool own = false;
    int64_t end_ns = INT64_MIN;
    if (r->steps.n > 0)
        qsort(r->steps.at, (size_t)r->steps.n, sizeof *r->steps.at, trace_kineto_by_start);
    for (int i = 0; i < r->steps.n; i++)
        own |= r->steps.at[i].process == process;
    for (int i = 0; i < r->steps.n; i++) {
        const struct step *step = &r->steps.at[i];
        if ((own && step->process != process) || step->start_ns < end_ns)
            continue;
        end_ns = step->end_ns;
        struct trace_mark mark = {trace_ps(step->start_ns, origin_ns),
            trace_ps(step->end_ns, origin_ns), PS_NEVER, step->number};
        for (int g = 0; g < r->gpu_steps.n; g++) {
            const struct step *gpu = &r->gpu_steps.at[g];
            ps_t start = trace_ps(gpu->start_ns, origin_ns);
            if (gpu->number == step->number && gpu->process == process && start < mark.gpu_start)
                mark.gpu_start = start;
        }
        vec_push(&marks->steps, mark);
    }
}

/* From nanoseconds of the file to picoseconds since the first event that counts. */
static enum status set_origin(struct trace_reader *r, int64_t *origin_ns, struct diag *diag)
{
    struct trace *trace = r->trace;
    int64_t first = INT64_MAX, last = INT64_MIN;
    for (int i = 0; i < trace->activities.n; i++) {
        const struct trace_activity *activity = &trace->activities.at[i];
        first = activity->start < first ? activity->start : first;
        last = activity->end > last ? activity->end : last;
    }
    *origin_ns = first;
    if (last / 1000 - first / 1000 > PS_HORIZON / 1000000)
        return diag_input(diag, (struct source_pos){.file = r->file},
            "its kernels lie more than %lld days apart; are its times microseconds?",
            (long long)(PS_HORIZON / PS_PER_S / 86400));
    for (int i = 0; i < trace->activities.n; i++) {
        struct trace_activity *activity = &trace->activities.at[i];
        activity->start = trace_ps(activity->start, first);
        activity->end = trace_ps(activity->end, first);
    }
    return STATUS_OK;
}

/* Backward runs on autograd's own thread, all else on the thread of the loop. */
static void find_phase(
    const struct trace_reader *r, struct trace_activity *activity, const struct call *call)
{
    if (activity->phase != PHASE_COUNT || !call || r->steps.n == 0)
        return;
    activity->phase = call->thread == r->steps.at[0].thread ? PHASE_FORWARD : PHASE_BACKWARD;
    for (int i = 0; i < r->optimizer.n; i++)
        if (call->start_ns >= r->optimizer.at[i].start_ns &&
            call->start_ns <= r->optimizer.at[i].end_ns)
            activity->phase = PHASE_OPTIMIZER;
}

/* Launches count as known where half of the activities have one. */
static enum status trace_kineto_finish(struct trace_reader *r, int64_t device, struct diag *diag)
{
    struct trace *trace = r->trace;
    struct trace_marks marks = {0};
    int64_t process = 0, origin_ns = 0;
    int launches = 0;
    enum status status = keep_device(r, device, &process, diag);
    if (status == STATUS_OK)
        status = set_origin(r, &origin_ns, diag);
    if (status != STATUS_OK)
        return status;
    if (r->calls.n > 0)
        qsort(r->calls.at, (size_t)r->calls.n, sizeof *r->calls.at, trace_kineto_by_correlation);
    describe_collectives(r);
    assume_ranks(trace);
    for (int i = 0; i < trace->activities.n; i++) {
        const struct call *call = launch_of(r, &r->origins.at[i]);
        struct trace_activity *activity = &trace->activities.at[i];
        activity->launched = call ? trace_ps(call->start_ns, origin_ns) : PS_NEVER;
        activity->returned = call ? trace_ps(call->end_ns, origin_ns) : PS_NEVER;
        launches += call != NULL;
        find_phase(r, activity, call);
        if (activity->class == KERNEL_GEMM || activity->class == KERNEL_ATTENTION)
            activity->product = trace_shapes_find(&r->shapes, r->origins.at[i].external);
    }
    trace->has_launches = 2 * launches >= trace->activities.n;
    take_steps(r, &marks, process, origin_ns);
    for (int i = 0; i < r->loading.n; i++)
        vec_push(
            &trace->loading, (struct trace_interval){trace_ps(r->loading.at[i].start_ns, origin_ns),
                                 trace_ps(r->loading.at[i].end_ns, origin_ns)});
    trace_waits_finish(&r->waits, trace, process, origin_ns);
    trace_find_steps(trace, &marks);
    vec_free(&marks.steps);
    return STATUS_OK;
}

enum status trace_read_kineto(
    struct trace *out, struct input *input, int64_t device, struct arena *arena, struct diag *diag)
{
    struct trace_reader r = {.trace = out, .arena = arena, .file = input_name(input)};
    struct kineto_about about = {0};
    enum status status = trace_names_load(out, arena, diag);
    if (status == STATUS_OK)
        status = kineto_scan(&about, input, trace_kineto_take_event, &r, arena, diag);
    out->about = (struct measurement_about){.gpu = about.gpu, .nccl_version = about.nccl_version};
    out->rank = about.rank;
    out->world_size = about.world_size;
    if (status == STATUS_OK && out->activities.n == 0)
        status = diag_input(diag, (struct source_pos){.file = r.file},
            "no GPU kernels in it; profile with ProfilerActivity.CUDA");
    if (status == STATUS_OK)
        status = trace_kineto_finish(&r, device, diag);
    if (out->devices > 1)
        out->rank = -1; /* it is that of one of them */
    vec_free(&r.origins);
    vec_free(&r.calls);
    vec_free(&r.intents);
    vec_free(&r.steps);
    vec_free(&r.gpu_steps);
    vec_free(&r.optimizer);
    vec_free(&r.loading);
    trace_waits_free(&r.waits);
    trace_shapes_free(&r.shapes);
    return status;
}
