/* A struct trace: kernels, copies and collectives of one GPU with their steps, and its sums over
 * a mean step.
 *
 * trace_of_run() makes one of a simulated rank, so that measured and simulated steps go through
 * the same sums. trace_sum() counts time by class of kernels, by collective (kind, ranks, bytes)
 * and by kernel name, and divides all by the number of steps; what overlaps counts in each,
 * whereas the parts of the step (trace_idle.c) do not overlap. What is subtle: activities
 * outside of steps are left out of sums; names are numbered once by a hash, since a trace has
 * few names for very many kernels. */
#include "foreign/trace.h"

#include "base/digest.h"
#include "foreign/trace_file.h"
#include "foreign/trace_sum.h"

#include <stdlib.h>
#include <string.h>

const char *trace_class_name(int class)
{
    BUG_IF(class < 0 || class >= TRACE_CLASS_COUNT, "class %d", class);
    return class == TRACE_COLLECTIVE ? "collective"
           : class == TRACE_OTHER    ? "other"
                                     : kernel_kind_names[class];
}

void trace_free(struct trace *trace)
{
    vec_free(&trace->activities);
    vec_free(&trace->names);
    vec_free(&trace->steps);
    vec_free(&trace->groups);
    vec_free(&trace->messages);
    vec_free(&trace->products);
    vec_free(&trace->waits);
    vec_free(&trace->loading);
    index_free(&trace->name_index);
}

struct wanted {
    const struct trace *trace;
    const char *name;
};

static bool foreign_trace_same_name(const void *self, int32_t item)
{
    const struct wanted *wanted = self;
    return strcmp(wanted->trace->names.at[item], wanted->name) == 0;
}

int trace_name(struct trace *trace, const char *name, struct arena *arena)
{
    uint64_t hash = DIGEST_INIT;
    for (const char *c = name; *c; c++)
        hash = digest_word(hash, (unsigned char)*c);
    const struct wanted wanted = {trace, name};
    int32_t found = index_find(&trace->name_index, hash, foreign_trace_same_name, &wanted);
    if (found >= 0)
        return found;
    index_add(&trace->name_index, hash, trace->names.n);
    vec_push(&trace->names, arena_strdup(arena, name));
    return trace->names.n - 1;
}

/* When the host issued each op, and what it was blocked for. */
static void take_host(
    struct trace *out, const struct exec_result *exec, int rank, struct trace_interval *issues)
{
    for (int i = 0; i < exec->n_host_spans; i++) {
        const struct exec_host_span *span = &exec->host_spans[i];
        struct trace_interval at = {
            span->start - exec->last_step_start, span->end - exec->last_step_start};
        if (span->rank == rank && span->kind == HOST_ISSUE)
            issues[span->op] = at;
        else if (span->rank == rank && span->kind == HOST_WAITS)
            vec_push(&out->waits, (struct trace_wait){.start = at.start,
                                      .end = at.end,
                                      .recorded = PS_NEVER,
                                      .stream = TRACE_HOST,
                                      .on = TRACE_ANY_STREAM});
    }
}

static int last_op(const struct exec_result *exec)
{
    int last = 0;
    for (int i = 0; i < exec->n_host_spans; i++)
        last = exec->host_spans[i].op > last ? exec->host_spans[i].op : last;
    for (int i = 0; i < exec->n_spans; i++)
        last = exec->spans[i].op > last ? exec->spans[i].op : last;
    return last;
}

/* Loading images is the host's, not the GPU's. Launch times come from the host's spans by the
 * number of the op. */
void trace_of_run(struct trace *out, const struct exec_result *exec, int rank, struct arena *arena)
{
    *out = (struct trace){.rank = rank, .devices = 1, .found = TRACE_ANNOTATED};
    ps_t origin = exec->last_step_start;
    int ops = last_op(exec) + 1;
    struct trace_interval *issues = xcalloc((size_t)ops, sizeof *issues);
    for (int i = 0; i < ops; i++)
        issues[i] = (struct trace_interval){PS_NEVER, PS_NEVER};
    take_host(out, exec, rank, issues);
    out->has_launches = exec->n_host_spans > 0;
    for (int i = 0; i < exec->n_spans; i++) {
        const struct exec_span *span = &exec->spans[i];
        if (span->stream == STREAM_LOADER)
            continue;
        struct trace_activity activity = {.start = span->start - origin,
            .end = span->end - origin,
            .name = trace_name(out, span->name, arena),
            .stream = span->stream,
            .phase = span->phase,
            .group = -1,
            .product = -1,
            .launched = issues[span->op].start,
            .returned = issues[span->op].end,
            .class = (uint8_t)(span->is_collective ? TRACE_COLLECTIVE : span->kernel)};
        if (span->is_collective) {
            activity.kind = (int8_t)span->collective;
            activity.ranks = span->group_size;
            activity.bytes = span->bytes;
        }
        vec_push(&out->activities, activity);
    }
    free(issues);
    vec_push(&out->steps, (struct trace_step){.end = exec->last_step_end - origin});
}

/* ---- sums ---- */

static void add_to_group(
    struct trace_sum *out, const struct trace_activity *activity, double time_s)
{
    for (int i = 0; i < out->groups.n; i++) {
        struct trace_group *group = &out->groups.at[i];
        if (group->kind == activity->kind && group->ranks == activity->ranks &&
            group->bytes == activity->bytes) {
            group->count++;
            group->time_s += time_s;
            return;
        }
    }
    vec_push(&out->groups,
        (struct trace_group){activity->kind, activity->ranks, activity->bytes, 1, time_s});
}

static void add_activities(struct trace_sum *out, const struct trace *trace)
{
    struct trace_kernel *kernels = xcalloc((size_t)trace->names.n + 1, sizeof *kernels);
    for (int i = 0; i < trace->activities.n; i++) {
        const struct trace_activity *activity = &trace->activities.at[i];
        double time_s = s_from_ps(activity->end - activity->start);
        if (activity->step == TRACE_NO_STEP)
            continue;
        out->class_s[activity->class] += time_s;
        out->class_count[activity->class]++;
        if (activity->class == TRACE_COLLECTIVE) {
            add_to_group(out, activity, time_s);
            continue;
        }
        struct trace_kernel *kernel = &kernels[activity->name];
        kernel->name = trace->names.at[activity->name];
        kernel->class = activity->class;
        kernel->count++;
        kernel->time_s += time_s;
    }
    for (int i = 0; i < trace->names.n; i++)
        if (kernels[i].count > 0)
            vec_push(&out->kernels, kernels[i]);
    free(kernels);
}

static int longest_group(const void *a, const void *b)
{
    const struct trace_group *x = a, *y = b;
    if (x->time_s != y->time_s)
        return x->time_s > y->time_s ? -1 : 1;
    if (x->kind != y->kind)
        return x->kind - y->kind;
    return x->bytes > y->bytes ? -1 : x->bytes < y->bytes;
}

static int longest_kernel(const void *a, const void *b)
{
    const struct trace_kernel *x = a, *y = b;
    return x->time_s > y->time_s ? -1 : x->time_s < y->time_s ? 1 : strcmp(x->name, y->name);
}

static void add_steps(struct trace_sum *out, const struct trace *trace)
{
    int n = trace->steps.n;
    out->steps = n;
    out->step_s = s_from_ps(trace->steps.at[n - 1].end - trace->steps.at[0].start) / n;
    for (int i = 0; i < n; i++) {
        double time_s = s_from_ps(trace->steps.at[i].end - trace->steps.at[i].start);
        out->shortest_s = i == 0 || time_s < out->shortest_s ? time_s : out->shortest_s;
        out->longest_s = time_s > out->longest_s ? time_s : out->longest_s;
    }
}

void trace_sum(struct trace_sum *out, const struct trace *trace)
{
    *out = (struct trace_sum){0};
    add_steps(out, trace);
    trace_sum_unions(out, trace);
    add_activities(out, trace);
    for (int c = 0; c < TRACE_CLASS_COUNT; c++) {
        out->class_s[c] /= out->steps;
        out->class_count[c] /= out->steps;
    }
    for (int i = 0; i < out->groups.n; i++) {
        out->groups.at[i].count /= out->steps;
        out->groups.at[i].time_s /= out->steps;
    }
    for (int i = 0; i < out->kernels.n; i++) {
        out->kernels.at[i].count /= out->steps;
        out->kernels.at[i].time_s /= out->steps;
    }
    if (out->groups.n > 0)
        qsort(out->groups.at, (size_t)out->groups.n, sizeof *out->groups.at, longest_group);
    if (out->kernels.n > 0)
        qsort(out->kernels.at, (size_t)out->kernels.n, sizeof *out->kernels.at, longest_kernel);
}

void trace_sum_free(struct trace_sum *sum)
{
    vec_free(&sum->groups);
    vec_free(&sum->kernels);
}

double trace_bus_bytes(const struct trace_group *group)
{
    if (group->ranks < 2 || group->kind == TRACE_UNKNOWN_KIND)
        return 0;
    return group->bytes * coll_bus_factor((enum coll_kind)group->kind, group->ranks);
}

/* Shapes of GEMMs and attention by the operators that launched them: with record_shapes an operator
 * has "Input Dims" and "Input type", and what it launches has its "External id". Assumed: the
 * result is of the inputs' type, FP32 is not multiplied as TF32, attention is causal where there
 * are as many queries as keys. */

static const struct {
    const char *name;
    enum dtype dtype;
} types[] = {{"float", DTYPE_FP32}, {"c10::BFloat16", DTYPE_BF16}, {"c10::Half", DTYPE_FP16},
    {"c10::Float8_e4m3fn", DTYPE_FP8}, {"c10::Float8_e5m2", DTYPE_FP8},
    {"signed char", DTYPE_INT8}};

/* Sizes beyond are nonsense, and their products would overflow. */
static bool is_sane(int64_t size)
{
    enum { MOST = 1 << 28 };
    return size > 0 && size <= MOST;
}

static struct kernel_work foreign_trace_attention(const struct kineto_event *event, enum dtype math)
{
    enum { PRODUCTS = 2, FLOP_OF_PAIR = 2 };
    bool causal = event->m == event->n;
    double of_head = (double)event->k * (double)event->batch, bytes = (double)dtype_bytes(math);
    double pairs = (double)event->m * (double)event->n * (causal ? ATTENTION_CAUSAL_SHARE : 1);
    return (struct kernel_work){.kind = KERNEL_ATTENTION,
        .math = math,
        .flop = PRODUCTS * FLOP_OF_PAIR * pairs * of_head,
        .read_bytes = (double)(event->m + 2 * event->n) * of_head * bytes,
        .write_bytes = (double)event->m * of_head * bytes,
        .m = event->m,
        .n = event->n,
        .k = event->k,
        .batch = event->batch,
        .causal = causal};
}

struct sought {
    const struct trace *trace;
    const struct kernel_work *work;
};

static bool foreign_trace_same_product(const void *self, int32_t item)
{
    const struct sought *sought = self;
    return kernel_same(&sought->trace->products.at[item], sought->work);
}

static int32_t foreign_trace_number_of(
    struct trace_shapes *shapes, struct trace *trace, const struct kernel_work *work)
{
    const struct sought sought = {trace, work};
    int32_t found =
        index_find(&shapes->products, kernel_digest(work), foreign_trace_same_product, &sought);
    if (found >= 0)
        return found;
    index_add(&shapes->products, kernel_digest(work), trace->products.n);
    vec_push(&trace->products, *work);
    return trace->products.n - 1;
}

void trace_shapes_take(
    struct trace_shapes *shapes, struct trace *trace, const struct kineto_event *event)
{
    if (event->external <= 0 || !is_sane(event->batch) || !is_sane(event->m) ||
        !is_sane(event->n) || !is_sane(event->k))
        return;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        enum dtype math = types[i].dtype;
        int64_t bytes = dtype_bytes(math);
        if (strcmp(event->dtype, types[i].name) != 0)
            continue;
        struct kernel_work work = event->attends ? foreign_trace_attention(event, math)
                                                 : kernel_gemm(event->m, event->n, event->k,
                                                       event->batch, math, bytes, bytes);
        vec_push(&shapes->list,
            (struct trace_shape){event->external, foreign_trace_number_of(shapes, trace, &work)});
    }
}

static int by_external(const void *a, const void *b)
{
    const struct trace_shape *x = a, *y = b;
    return (x->external > y->external) - (x->external < y->external);
}

int trace_shapes_find(struct trace_shapes *shapes, int64_t external)
{
    const struct trace_shape wanted = {.external = external};
    if (external <= 0 || shapes->list.n == 0)
        return -1;
    if (!shapes->sorted)
        qsort(shapes->list.at, (size_t)shapes->list.n, sizeof wanted, by_external);
    shapes->sorted = true;
    const struct trace_shape *found =
        bsearch(&wanted, shapes->list.at, (size_t)shapes->list.n, sizeof wanted, by_external);
    return found ? found->product : -1;
}

void trace_shapes_free(struct trace_shapes *shapes)
{
    vec_free(&shapes->list);
    index_free(&shapes->products);
}

/* What Kineto says of process groups, and of what waits for what.
 *
 * With enable_cuda_sync_events (PyTorch 2.1 and later, _ExperimentalConfig) there is an event of
 * category cuda_sync for each wait: "Stream Wait Event" (stream waits for what wait_on_stream had
 * been given when the cudaEventRecord of correlation wait_on_cuda_event_record_corr_id was called),
 * "Event Sync" (the host does), "Stream Sync", "Context Sync". These are taken, and of the
 * runtime's calls only the records. Without them the calls are all there is: that a stream waits,
 * and that the host does, but not for what. Format: Kineto's CudaSyncActivity, as recalled, and as
 * flopcast itself writes it. */

/* ---- groups ---- */

enum { MOST_RANKS = 1 << 24 };

static int32_t foreign_trace_number_at(const char *text, const char **end)
{
    char *rest = NULL;
    long number = strtol(text, &rest, 10);
    *end = rest;
    return rest != text && number >= 0 && number < INT32_MAX ? (int32_t)number : -1;
}

/* "[0, 8, 16]", of many ranks "[0, 1, 2, ..., 62, 63]": evenly apart as far as they are said. */
static void foreign_trace_read_ranks(struct trace_group_of_ranks *group, const char *text)
{
    int32_t before = -1, stride = 0, said = 0, last = -1;
    bool even = true;
    for (const char *at = text + strcspn(text, "0123456789"); *at;
         at += strcspn(at, "0123456789")) {
        bool gap = before >= 0 && strstr(text, "...") && strstr(text, "...") < at && last < 0;
        int32_t rank = foreign_trace_number_at(at, &at);
        if (said == 0)
            group->first = rank;
        else if (said == 1)
            stride = rank - before;
        else if (gap)
            last = rank;
        else if (rank - before != stride)
            even = false;
        before = rank;
        said++;
    }
    bool whole = said == group->ranks || last >= 0;
    if (said > 1 && even && stride > 0 && whole && before < MOST_RANKS &&
        before == group->first + (int64_t)(group->ranks - 1) * stride)
        group->stride = stride;
}

int trace_group_named(struct trace *trace, const struct kineto_event *event, struct arena *arena)
{
    if (!*event->group || event->ranks < 2 || event->ranks > MOST_RANKS)
        return -1;
    struct trace_group_of_ranks group = {.ranks = (int32_t)event->ranks};
    foreign_trace_read_ranks(&group, event->group_ranks);
    for (int g = 0; g < trace->groups.n; g++) {
        const struct trace_group_of_ranks *known = &trace->groups.at[g];
        if (strcmp(known->name, event->group) == 0 && known->ranks == group.ranks &&
            known->first == group.first &&
            known->stride == group.stride) /* one name, other ranks: of another rank in the file */
            return g;
    }
    group.name = arena_strdup(arena, event->group);
    group.says = *event->group_says ? arena_strdup(arena, event->group_says) : NULL;
    vec_push(&trace->groups, group);
    return trace->groups.n - 1;
}

/* ---- waits ---- */

static void foreign_trace_push_wait(
    struct trace_waits *waits, const struct kineto_event *event, int32_t stream, int32_t on)
{
    vec_push(&waits->list, (struct trace_wait){.start = event->start_ns,
                               .end = event->start_ns + event->duration_ns,
                               .recorded = event->waited_record,
                               .stream = stream,
                               .on = on});
    vec_push(
        &waits->waiters, (struct trace_waiter){event->process, event->category == KINETO_SYNC});
}

void trace_waits_take(struct trace_waits *waits, const struct kineto_event *event)
{
    static const int64_t long_ns =
        20000; /* of calls that give the GPU something, which mostly take 1 to 10 us */
    bool calls = event->category != KINETO_SYNC;
    int32_t on = calls ? TRACE_ANY_STREAM : (int32_t)event->waited_stream;
    waits->says |= !calls;
    switch (event->call) {
    case CALL_LAUNCH: /* flopcast's own: before the launch */
        if (event->correlation == 0 && strcmp(event->name, "cudaLaunchKernel") == 0)
            foreign_trace_push_wait(waits, event, TRACE_HOST, TRACE_LAUNCH_QUEUE);
        break;
    case CALL_EVENT_RECORD:
        vec_push(&waits->records, (struct trace_record){event->correlation, event->start_ns});
        if (event->duration_ns > long_ns)
            foreign_trace_push_wait(waits, event, TRACE_HOST, TRACE_SLOW_CALL);
        break;
    case CALL_STREAM_WAIT:
        foreign_trace_push_wait(
            waits, event, calls ? TRACE_ANY_STREAM : (int32_t)event->stream, on);
        if (calls && event->duration_ns > long_ns)
            foreign_trace_push_wait(waits, event, TRACE_HOST, TRACE_SLOW_CALL);
        break;
    case CALL_EVENT_SYNC:
        foreign_trace_push_wait(waits, event, TRACE_HOST, on);
        break;
    case CALL_STREAM_SYNC:
        foreign_trace_push_wait(
            waits, event, TRACE_HOST, calls ? TRACE_ANY_STREAM : (int32_t)event->stream);
        break;
    case CALL_DEVICE_SYNC:
        foreign_trace_push_wait(waits, event, TRACE_HOST, TRACE_ALL_STREAMS);
        break;
    case CALL_MALLOC:
    case CALL_OTHER:
        break;
    }
}

static int foreign_trace_by_correlation(const void *a, const void *b)
{
    const struct trace_record *x = a, *y = b;
    return (x->correlation > y->correlation) - (x->correlation < y->correlation);
}

static int foreign_trace_by_start(const void *a, const void *b)
{
    const struct trace_wait *x = a, *y = b;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return (x->end > y->end) - (x->end < y->end);
}

static ps_t recorded_at(const struct trace_waits *waits, int64_t correlation, int64_t origin_ns)
{
    const struct trace_record wanted = {.correlation = correlation};
    const struct trace_record *found =
        correlation == 0 || waits->records.n == 0
            ? NULL
            : bsearch(&wanted, waits->records.at, (size_t)waits->records.n, sizeof wanted,
                  foreign_trace_by_correlation);
    return found ? trace_ps(found->start_ns, origin_ns) : PS_NEVER;
}

/* A call that a cuda_sync event stands for is left out: whoever of them says for what is waited. */
static bool foreign_trace_counts(const struct trace_waits *waits, const struct trace_wait *wait)
{
    return !waits->says || wait->on != TRACE_ANY_STREAM;
}

void trace_waits_finish(
    struct trace_waits *waits, struct trace *trace, int64_t process, int64_t origin_ns)
{
    bool own[2] = {false, false}; /* of calls, of cuda_sync events */
    for (int i = 0; i < waits->list.n; i++)
        own[waits->waiters.at[i].sync] |= waits->waiters.at[i].process == process;
    trace->says_waits = waits->says;
    if (waits->records.n > 1)
        qsort(waits->records.at, (size_t)waits->records.n, sizeof *waits->records.at,
            foreign_trace_by_correlation);
    for (int i = 0; i < waits->list.n; i++) {
        struct trace_wait wait = waits->list.at[i];
        const struct trace_waiter *waiter = &waits->waiters.at[i];
        if (!foreign_trace_counts(waits, &wait) ||
            (own[waiter->sync] && waiter->process != process))
            continue;
        bool all_so_far = wait.on != TRACE_ANY_STREAM && wait.recorded == 0;
        wait.recorded = all_so_far ? trace_ps(wait.start, origin_ns)
                                   : recorded_at(waits, wait.recorded, origin_ns);
        wait.start = trace_ps(wait.start, origin_ns);
        wait.end = trace_ps(wait.end, origin_ns);
        vec_push(&trace->waits, wait);
    }
    if (trace->waits.n > 1)
        qsort(trace->waits.at, (size_t)trace->waits.n, sizeof *trace->waits.at,
            foreign_trace_by_start);
}

void trace_waits_free(struct trace_waits *waits)
{
    vec_free(&waits->list);
    vec_free(&waits->waiters);
    vec_free(&waits->records);
}
