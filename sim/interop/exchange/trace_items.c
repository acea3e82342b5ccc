/* What the host did in a step, one thing after the other: launches, waits, and work in between.
 *
 * The step's launches are sorted as the host made them and walked together with its waits. From
 * one to the next the host takes a time that is its own: what it was blocked for is not, since a
 * simulated host is blocked by the simulated GPU. What is subtle: a call may have waited for
 * room in the launch queue, which the trace does not say. So launches ahead of the GPU are
 * counted; beyond 1000, or beyond 400 with a call of 1 ms and more, all that a call takes above
 * the usual (the median of unblocked launches) was blocking. Copies that return when they are
 * done are a launch and a wait. Without launch times, gaps between kernels stand for the host
 * (walk_gpu()). */
#include "exchange/trace_items.h"

#include <stdlib.h>

/* What is on its way to the GPU, at a time that only goes on. */
struct queue_of_launches {
    ps_t *launched, *ended; /* sorted */
    int n, launches, ends;
};

/* Launches ahead of the GPU at which a call that gives it something may block (CUDA; exec/state.h
 * has 1024). Whether it did, only the call's duration says. Of what the step before had launched
 * the trace may not show all: where the host is MANY ahead, a call of LONG was blocked, too. */
static const int FULL = 1000, MANY = 400;
static const ps_t LONG = PS_PER_S / 1000;
static const ps_t USUAL =
    5 * (PS_PER_S / 1000000); /* of a launch, where all may be blocked; assumed */

static ps_t trace_items_earlier(ps_t a, ps_t b)
{
    return a < b ? a : b;
}

static ps_t trace_items_later(ps_t a, ps_t b)
{
    return a > b ? a : b;
}

static int trace_items_by_time(const void *a, const void *b)
{
    ps_t x = *(const ps_t *)a, y = *(const ps_t *)b;
    return (x > y) - (x < y);
}

static struct queue_of_launches all_launches(const struct trace *trace)
{
    size_t room = (size_t)trace->activities.n + 1;
    struct queue_of_launches queue = {
        xcalloc(room, sizeof(ps_t)), xcalloc(room, sizeof(ps_t)), 0, 0, 0};
    for (int i = 0; i < trace->activities.n; i++) {
        const struct trace_activity *activity = &trace->activities.at[i];
        if (activity->launched == PS_NEVER && !trace->has_launches)
            continue;
        queue.launched[queue.n] =
            activity->launched == PS_NEVER ? INT64_MIN : activity->launched; /* before the trace */
        queue.ended[queue.n++] = activity->end;
    }
    qsort(queue.launched, (size_t)queue.n, sizeof(ps_t), trace_items_by_time);
    qsort(queue.ended, (size_t)queue.n, sizeof(ps_t), trace_items_by_time);
    return queue;
}

static void free_queue(struct queue_of_launches *queue)
{
    free(queue->launched);
    free(queue->ended);
}

static int ahead_of_gpu(struct queue_of_launches *queue, ps_t at)
{
    while (queue->launches < queue->n && queue->launched[queue->launches] < at)
        queue->launches++;
    while (queue->ends < queue->n && queue->ended[queue->ends] <= at)
        queue->ends++;
    return queue->launches - queue->ends;
}

/* ---- the step's launches and waits ---- */

static int by_launch(const void *a, const void *b)
{
    const struct item *x = a, *y = b;
    if (x->returned != y->returned)
        return x->returned < y->returned ? -1 : 1;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return (x->activity > y->activity) - (x->activity < y->activity);
}

static int trace_items_stream_of(struct items *items, const struct trace_activity *activity)
{
    int s = 0;
    while (s < items->streams.n && items->streams.at[s].number != activity->stream)
        s++;
    if (s == items->streams.n)
        vec_push(&items->streams, (struct item_stream){.number = activity->stream});
    struct item_stream *stream = &items->streams.at[s];
    if (activity->class == TRACE_COLLECTIVE) {
        stream->collectives = true;
        stream->comm += activity->end - activity->start;
    } else if (activity->class != KERNEL_HOST_COPY) {
        stream->busy += activity->end - activity->start;
    }
    return s;
}

/* By what runs on them. Compute is the stream with most kernel time; NCCL's are those with more
 * collectives than kernels. */
static void find_kinds(struct items *items)
{
    for (int s = 0; s < items->streams.n; s++)
        if (items->streams.at[s].busy > items->streams.at[items->compute].busy)
            items->compute = s;
    for (int s = 0; s < items->streams.n; s++) {
        struct item_stream *stream = &items->streams.at[s];
        stream->nccl = s != items->compute && stream->collectives && stream->comm >= stream->busy;
    }
}

/* A copy from or to the host that returns when it is done. */
static bool returns_when_done(const struct trace_activity *activity)
{
    int class = activity->class;
    return (class == KERNEL_HOST_COPY || class == KERNEL_COPY) && activity->returned != PS_NEVER &&
           activity->returned >= activity->end;
}

/* Sorted as the host launched them, or as they ran where that is not known. */
static struct item *launches_of(struct items *items, int *n)
{
    const struct trace *trace = items->trace;
    struct item *list = xcalloc((size_t)trace->activities.n + 1, sizeof *list);
    for (int i = *n = 0; i < trace->activities.n; i++) {
        const struct trace_activity *activity = &trace->activities.at[i];
        if (activity->step != items->step)
            continue;
        bool known = trace->has_launches && activity->returned != PS_NEVER;
        ps_t returned = known ? activity->returned : activity->start;
        list[(*n)++] = (struct item){.kind = ITEM_LAUNCH,
            .activity = activity,
            .returned = returned,
            .issued = trace_items_earlier(returned, activity->start),
            .start = activity->start,
            .end = activity->end,
            .stream = trace_items_stream_of(items, activity)};
    }
    if (*n > 1)
        qsort(list, (size_t)*n, sizeof *list, by_launch);
    find_kinds(items);
    return list;
}

/* ---- the walk ---- */

struct items_walk {
    struct items *items;
    struct queue_of_launches queue;
    ps_t at;            /* where the host is */
    ps_t usual;         /* how long a launch mostly takes */
    VEC(int) of_stream; /* waits of streams that their next launch takes, places in trace->waits */
};

static void push_host(struct items_walk *walk, ps_t until)
{
    if (until > walk->at)
        vec_push(&walk->items->list,
            (struct item){
                .kind = ITEM_HOST, .host = until - walk->at, .issued = until, .stream = -1});
    walk->at = trace_items_later(walk->at, until);
}

/* The host goes on at the end of what it waited for; what it takes after that is its own. */
static void trace_items_push_wait(
    struct items_walk *walk, const struct trace_wait *wait, ps_t start, ps_t end)
{
    push_host(walk, start);
    vec_push(&walk->items->list, (struct item){.kind = ITEM_WAIT,
                                     .wait = wait,
                                     .issued = end,
                                     .start = start,
                                     .end = end,
                                     .stream = -1});
    walk->at = trace_items_later(walk->at, end);
}

static void take_waits_of_stream(struct items_walk *walk, const struct item *launch)
{
    const struct trace *trace = walk->items->trace;
    int kept = 0;
    for (int i = 0; i < walk->of_stream.n; i++) {
        const struct trace_wait *wait = &trace->waits.at[walk->of_stream.at[i]];
        if (wait->stream == launch->activity->stream || wait->stream == TRACE_ANY_STREAM)
            vec_push(
                &walk->items->waits, (struct item_wait){walk->items->list.n, wait, PLAN_NO_OP});
        else
            walk->of_stream.at[kept++] = walk->of_stream.at[i];
    }
    walk->of_stream.n = kept;
}

/* For how long of a call the host was blocked by a full queue. */
static ps_t blocked(struct items_walk *walk, ps_t start, ps_t end)
{
    ps_t above = end - start - walk->usual;
    int ahead = ahead_of_gpu(&walk->queue, start);
    return ahead >= FULL || (ahead >= MANY && above > LONG) ? trace_items_later(above, 0) : 0;
}

/* host is the time that the host took for itself before and in the call. */
static void push_launch(struct items_walk *walk, struct item launch)
{
    ps_t called = launch.activity->launched, own;
    bool known = called != PS_NEVER, waits = returns_when_done(launch.activity);
    if (known && waits) /* for what its stream has before it */
        launch.issued =
            trace_items_earlier(launch.issued, trace_items_later(called + walk->usual, walk->at));
    own = launch.issued - walk->at;
    if (known && !waits)
        own -= blocked(walk, trace_items_later(called, walk->at), launch.issued);
    launch.host = trace_items_later(own, 0);
    take_waits_of_stream(walk, &launch);
    vec_push(&walk->items->list, launch);
    walk->at = trace_items_later(walk->at, launch.issued);
    if (waits)
        trace_items_push_wait(walk, NULL, walk->at, launch.returned);
}

/* How long a launch takes where the queue has room: the median. */
static ps_t usual_launch(const struct trace *trace, const struct item *launches, int n)
{
    ps_t *took = xcalloc((size_t)n + 1, sizeof *took), median;
    struct queue_of_launches queue = all_launches(trace);
    int free_ones = 0;
    for (int i = 0; i < n; i++) {
        const struct trace_activity *activity = launches[i].activity;
        if (activity->launched != PS_NEVER && ahead_of_gpu(&queue, activity->launched) < MANY)
            took[free_ones++] = activity->returned - activity->launched;
    }
    if (free_ones > 1)
        qsort(took, (size_t)free_ones, sizeof *took, trace_items_by_time);
    median = free_ones > 0 ? took[free_ones / 2] : USUAL;
    free_queue(&queue);
    free(took);
    return median;
}

/* Waits of streams are kept until the next launch on that stream, which is when they take
 * effect. */
static void walk_host(struct items *items, const struct item *launches, int n)
{
    const struct trace *trace = items->trace;
    struct items_walk walk = {
        .items = items, .at = items->host_start, .usual = usual_launch(trace, launches, n)};
    walk.queue = all_launches(trace);
    for (int i = 0, w = 0; i < n || w < trace->waits.n;) {
        const struct trace_wait *wait = w < trace->waits.n ? &trace->waits.at[w] : NULL;
        if (wait && (i == n || wait->start < launches[i].returned)) {
            bool inside = wait->start >= items->host_start && wait->start < items->host_end;
            if (inside && wait->on == TRACE_LAUNCH_QUEUE) {
                push_host(&walk, wait->start);
                walk.at = trace_items_later(walk.at, wait->end);
            } else if (inside && wait->on == TRACE_SLOW_CALL) {
                push_host(&walk, wait->end - blocked(&walk, wait->start, wait->end));
                walk.at = trace_items_later(walk.at, wait->end);
            } else if (inside && wait->stream == TRACE_HOST)
                trace_items_push_wait(&walk, wait, wait->start, wait->end);
            else if (inside)
                vec_push(&walk.of_stream, w);
            w++;
        } else {
            push_launch(&walk, launches[i++]);
        }
    }
    push_host(&walk, items->host_start + items->period);
    vec_free(&walk.of_stream);
    free_queue(&walk.queue);
}

/* Without launches: what begins when nothing has run for a while comes after that while. */
static void walk_gpu(struct items *items, const struct item *launches, int n)
{
    const struct trace_step *step = &items->trace->steps.at[items->step];
    ps_t busy = step->start;
    for (int i = 0; i < n; i++) {
        struct item launch = launches[i];
        launch.idle = trace_items_later(launch.start - busy, 0);
        vec_push(&items->list, launch);
        busy = trace_items_later(busy, launch.end);
    }
    if (n > 0)
        items->list.at[0].idle += trace_items_later(step->end - busy, 0);
}

/* The period is from mark to mark on the host; cycle is that of the loop, the GPU's where it is
 * longer. */
void items_make(struct items *items, const struct trace *trace, int step)
{
    const struct trace_step *at = &trace->steps.at[step];
    bool next = step + 1 < trace->steps.n;
    int n = 0;
    *items = (struct items){.trace = trace,
        .step = step,
        .host_start = PS_NEVER,
        .period = at->end - at->start,
        .cycle = at->end - at->start};
    struct item *launches = launches_of(items, &n);
    if (trace->has_launches && n > 0) {
        bool marked = trace->found == TRACE_ANNOTATED;
        items->host_start =
            marked ? at->host_start
                   : trace_items_earlier(launches[0].activity->launched, launches[0].returned);
        items->host_end = marked ? next ? trace->steps.at[step + 1].host_start : at->host_end
                                 : items->host_start + items->period;
        items->period = items->host_end - items->host_start;
        items->cycle = next ? items->period : trace_items_later(items->period, at->end - at->start);
        walk_host(items, launches, n);
    } else {
        walk_gpu(items, launches, n);
    }
    free(launches);
}

void items_free(struct items *items)
{
    vec_free(&items->list);
    vec_free(&items->waits);
    vec_free(&items->streams);
}
