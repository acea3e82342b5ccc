/* What Kineto says of process groups, and of what waits for what.
 *
 * With enable_cuda_sync_events (PyTorch 2.1 and later, _ExperimentalConfig) there is an event of category cuda_sync for
 * each wait: "Stream Wait Event" (stream waits for what wait_on_stream had been given when the cudaEventRecord of
 * correlation wait_on_cuda_event_record_corr_id was called), "Event Sync" (the host does), "Stream Sync", "Context
 * Sync". These are taken, and of the runtime's calls only the records. Without them the calls are all there is: that a
 * stream waits, and that the host does, but not for what. Format: Kineto's CudaSyncActivity, as recalled, and as
 * flopcast itself writes it. */
#include "import/trace_file.h"

#include <stdlib.h>
#include <string.h>

/* ---- groups ---- */

static int32_t number_at(const char *text, const char **end)
{
    char *rest = NULL;
    long number = strtol(text, &rest, 10);
    *end = rest;
    return rest != text && number >= 0 && number < INT32_MAX ? (int32_t)number : -1;
}

/* "[0, 8, 16]", of many ranks "[0, 1, 2, ..., 62, 63]": evenly apart as far as they are said. */
static void read_ranks(struct trace_group_of_ranks *group, const char *text)
{
    int32_t before = -1, stride = 0, said = 0, last = -1;
    bool even = true;
    for (const char *at = text + strcspn(text, "0123456789"); *at; at += strcspn(at, "0123456789")) {
        bool gap = before >= 0 && strstr(text, "...") && strstr(text, "...") < at && last < 0;
        int32_t rank = number_at(at, &at);
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
    if (said > 1 && even && stride > 0 && whole && before == group->first + (group->ranks - 1) * stride)
        group->stride = stride;
}

int trace_group_named(struct trace *trace, const struct kineto_event *event, struct arena *arena)
{
    enum { MOST_RANKS = 1 << 24 };
    if (!*event->group || event->ranks < 2 || event->ranks > MOST_RANKS)
        return -1;
    for (int g = 0; g < trace->groups.n; g++)
        if (strcmp(trace->groups.at[g].name, event->group) == 0 && trace->groups.at[g].ranks == event->ranks)
            return g;
    struct trace_group_of_ranks group = {.name = arena_strdup(arena, event->group),
        .says = *event->group_says ? arena_strdup(arena, event->group_says) : NULL,
        .ranks = (int32_t)event->ranks};
    read_ranks(&group, event->group_ranks);
    vec_push(&trace->groups, group);
    return trace->groups.n - 1;
}

/* ---- waits ---- */

void trace_waits_take(struct trace_waits *waits, const struct kineto_event *event)
{
    static const struct {
        const char *name;
        int32_t stream, on;
    } calls[] = {{"cudaStreamWaitEvent", TRACE_ANY_STREAM, TRACE_ANY_STREAM},
        {"cudaEventSynchronize", TRACE_HOST, TRACE_ANY_STREAM}, {"cudaStreamSynchronize", TRACE_HOST, TRACE_ANY_STREAM},
        {"cudaDeviceSynchronize", TRACE_HOST, TRACE_ALL_STREAMS}, {"Stream Wait Event", 0, 0},
        {"Event Sync", TRACE_HOST, 0}, {"Stream Sync", TRACE_HOST, 0}, {"Context Sync", TRACE_HOST, TRACE_ALL_STREAMS}};
    if (strcmp(event->name, "cudaEventRecord") == 0)
        vec_push(&waits->records, (struct trace_record){event->correlation, event->start_ns});
    waits->says |= event->category == KINETO_SYNC;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        if (strcmp(event->name, calls[i].name) != 0)
            continue;
        struct trace_wait wait = {.start = event->start_ns,
            .end = event->start_ns + event->duration_ns,
            .recorded = event->waited_record,
            .stream = calls[i].stream == 0 ? (int32_t)event->stream : calls[i].stream,
            .on = calls[i].on};
        if (wait.on == 0)
            wait.on = (int32_t)(strcmp(event->name, "Stream Sync") == 0 ? event->stream : event->waited_stream);
        vec_push(&waits->list, wait);
    }
}

static int by_correlation(const void *a, const void *b)
{
    const struct trace_record *x = a, *y = b;
    return (x->correlation > y->correlation) - (x->correlation < y->correlation);
}

static int by_start(const void *a, const void *b)
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
            : bsearch(&wanted, waits->records.at, (size_t)waits->records.n, sizeof wanted, by_correlation);
    return found ? trace_ps(found->start_ns, origin_ns) : PS_NEVER;
}

/* A call that a cuda_sync event stands for is left out: whoever of them says for what is waited. */
static bool counts(const struct trace_waits *waits, const struct trace_wait *wait)
{
    return !waits->says || wait->on != TRACE_ANY_STREAM;
}

void trace_waits_finish(struct trace_waits *waits, struct trace *trace, int64_t origin_ns)
{
    trace->says_waits = waits->says;
    if (waits->records.n > 1)
        qsort(waits->records.at, (size_t)waits->records.n, sizeof *waits->records.at, by_correlation);
    for (int i = 0; i < waits->list.n; i++) {
        struct trace_wait wait = waits->list.at[i];
        if (!counts(waits, &wait))
            continue;
        bool all_so_far = wait.on != TRACE_ANY_STREAM && wait.recorded == 0;
        wait.recorded = all_so_far ? trace_ps(wait.start, origin_ns) : recorded_at(waits, wait.recorded, origin_ns);
        wait.start = trace_ps(wait.start, origin_ns);
        wait.end = trace_ps(wait.end, origin_ns);
        vec_push(&trace->waits, wait);
    }
    if (trace->waits.n > 1)
        qsort(trace->waits.at, (size_t)trace->waits.n, sizeof *trace->waits.at, by_start);
}

void trace_waits_free(struct trace_waits *waits)
{
    vec_free(&waits->list);
    vec_free(&waits->records);
}
