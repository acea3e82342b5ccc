/* Where the steps of a trace begin, and which activity belongs to which.
 *
 * Activities are sorted by their begin. With marks (ProfilerStep#N) an activity belongs to the
 * step in which the host launched it, and a step lasts on the GPU from the end of the last
 * kernel of the step before to that of its last one. Without marks the kernels of the busiest
 * stream are a sequence of names, and its period is searched: the distance between the last two
 * occurrences of a rare name is tried, and taken where 90 % of the kernels equal those one
 * period before. If there is no period, the trace is one step.
 *
 * What is subtle: a kernel of every tenth step alone would give a period of ten steps, so a
 * whole part of the period that fits as well replaces it. Kernels launched before the first step
 * end when the GPU comes to it, which is where the first step begins. */
#include "foreign/trace.h"

#include <stdlib.h>
#include <string.h>

/* ---- order ---- */

struct pair {
    struct trace_activity activity;
    int place; /* in the file: what begins at one instant keeps its order */
};

static int trace_steps_earlier(const void *a, const void *b)
{
    const struct pair *x = a, *y = b;
    if (x->activity.start != y->activity.start)
        return x->activity.start < y->activity.start ? -1 : 1;
    return x->place < y->place ? -1 : 1;
}

static void trace_steps_sort(struct trace *trace)
{
    int n = trace->activities.n;
    struct pair *pairs = xcalloc((size_t)n + 1, sizeof *pairs);
    for (int i = 0; i < n; i++)
        pairs[i] = (struct pair){trace->activities.at[i], i};
    qsort(pairs, (size_t)n, sizeof *pairs, trace_steps_earlier);
    for (int i = 0; i < n; i++)
        trace->activities.at[i] = pairs[i].activity;
    free(pairs);
}

/* ---- annotations ---- */

static bool is_kernel(const struct trace_activity *activity)
{
    return activity->class != TRACE_COLLECTIVE && activity->class != KERNEL_HOST_COPY;
}

static int mark_at(const struct trace_marks *marks, ps_t time)
{
    int n = marks->steps.n, low = 0, high = n;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (marks->steps.at[middle].host_start <= time)
            low = middle + 1;
        else
            high = middle;
    }
    bool after = low == n && time > marks->steps.at[n - 1].host_end;
    return after ? TRACE_NO_STEP : low - 1;
}

static ps_t trace_steps_later(ps_t a, ps_t b)
{
    return a > b ? a : b;
}

/* When the kernels of each step end; [0] is of what was launched before the first. A stream runs
 * what was launched first first, so there that is what comes before the first kernel of a step. */
static void kernel_ends(ps_t *ends, const struct trace *trace)
{
    VEC(int32_t) begun = {0}; /* streams that have come to the first step */
    for (int i = 0; i < trace->activities.n; i++) {
        const struct trace_activity *activity = &trace->activities.at[i];
        bool before = activity->step == TRACE_NO_STEP;
        if (!is_kernel(activity))
            continue;
        int s = 0;
        while (s < begun.n && begun.at[s] != activity->stream)
            s++;
        if (s == begun.n && !before)
            vec_push(&begun, activity->stream);
        if (s == begun.n || !before)
            ends[activity->step + 1] = trace_steps_later(ends[activity->step + 1], activity->end);
    }
    vec_free(&begun);
}

/* False: no activity is in any of them. Collectives and copies do not end a step, since they may
 * run into the next one. */
static bool annotated(struct trace *trace, const struct trace_marks *marks)
{
    int n = marks->steps.n, inside = 0;
    if (n == 0)
        return false;
    for (int i = 0; i < trace->activities.n; i++) {
        struct trace_activity *activity = &trace->activities.at[i];
        ps_t by = trace->has_launches ? activity->launched : activity->start;
        activity->step = by == PS_NEVER ? TRACE_NO_STEP : mark_at(marks, by);
        inside += activity->step != TRACE_NO_STEP;
    }
    if (inside == 0)
        return false;
    ps_t *ends = xcalloc((size_t)n + 1, sizeof *ends);
    for (int s = 0; s <= n; s++)
        ends[s] = INT64_MIN;
    kernel_ends(ends, trace);
    const struct trace_mark *first = &marks->steps.at[0], *last = &marks->steps.at[n - 1];
    if (ends[0] == INT64_MIN && first->gpu_start != PS_NEVER)
        ends[0] = first->gpu_start;
    ps_t start = trace_steps_later(first->host_start, ends[0]);
    for (int s = 1; s <= n; s++) {
        ps_t end = trace_steps_later(start,
            trace_steps_later(s < n ? marks->steps.at[s].host_start : last->host_end, ends[s]));
        const struct trace_mark *mark = &marks->steps.at[s - 1];
        vec_push(&trace->steps,
            (struct trace_step){start, end, mark->host_start, mark->host_end, mark->number});
        start = end;
    }
    free(ends);
    trace->outside = trace->activities.n - inside;
    trace->found = TRACE_ANNOTATED;
    return true;
}

/* ---- repetition ---- */

static const double alike_enough =
    0.9; /* of a step's kernels, those of the step before: what is less is no loop */
static const double as_alike =
    0.01;              /* a shorter period may be so much less alike, so that it is the loop's */
enum { ANCHORS = 64 }; /* names that are tried, the rarest first */

struct sequence {
    int *names, *activities; /* of the kernels of one stream */
    int n;
};

static double trace_steps_alike(const struct sequence *sequence, int period)
{
    int same = 0;
    for (int i = 0; i + period < sequence->n; i++)
        same += sequence->names[i] == sequence->names[i + period];
    return (double)same / (sequence->n - period);
}

/* The kernels of the stream that was busiest with them. */
static struct sequence trace_steps_busiest(const struct trace *trace)
{
    struct sequence sequence = {0};
    int32_t stream = trace_compute_stream(trace);
    size_t room = (size_t)trace->activities.n + 1;
    sequence.names = xcalloc(room, sizeof *sequence.names);
    sequence.activities = xcalloc(room, sizeof *sequence.activities);
    for (int i = 0; i < trace->activities.n; i++) {
        const struct trace_activity *activity = &trace->activities.at[i];
        if (!is_kernel(activity) || activity->stream != stream)
            continue;
        sequence.names[sequence.n] = activity->name;
        sequence.activities[sequence.n++] = i;
    }
    return sequence;
}

struct anchor {
    int name, count, first, last,
        before; /* places in the sequence; before: the one before the last */
};

static int rarest_first(const void *a, const void *b)
{
    const struct anchor *x = a, *y = b;
    return x->count != y->count ? x->count - y->count : x->first - y->first;
}

/* How many kernels a step has; 0: none is found. First and last occurrence of each name come
 * from one pass; each trial is one more pass. */
static int find_period(const struct sequence *sequence, int n_names, int *first)
{
    struct anchor *anchors = xcalloc((size_t)n_names + 1, sizeof *anchors);
    int period = 0;
    for (int i = 0; i < sequence->n; i++) {
        struct anchor *anchor = &anchors[sequence->names[i]];
        if (anchor->count++ == 0)
            anchor->first = i;
        anchor->before = anchor->last;
        anchor->last = i;
    }
    qsort(anchors, (size_t)n_names, sizeof *anchors, rarest_first);
    for (int i = 0, tried = 0; i < n_names && tried < ANCHORS && period == 0; i++) {
        int distance = anchors[i].last - anchors[i].before;
        if (anchors[i].count < 2)
            continue;
        tried++;
        if (2 * distance <= sequence->n && trace_steps_alike(sequence, distance) >= alike_enough) {
            period = distance;
            *first = anchors[i].first;
        }
    }
    free(anchors);
    /* A kernel of every tenth step alone marks ten of them. */
    for (int parts = period; parts > 1; parts--)
        if (period % parts == 0 && trace_steps_alike(sequence, period / parts) >=
                                       trace_steps_alike(sequence, period) - as_alike)
            return period / parts;
    return period;
}

/* trace_steps.c finds repetition, for trace_find_steps(). False: there is none. */
static bool find_repetition(struct trace *trace)
{
    struct sequence sequence = trace_steps_busiest(trace);
    int first = 0, period = find_period(&sequence, trace->names.n, &first);
    if (period > 0) {
        trace->found = TRACE_REPEATED;
        trace->period = period;
        trace->alike = trace_steps_alike(&sequence, period);
        const struct trace_activity *all = trace->activities.at;
        for (int at = first % period; at + period <= sequence.n; at += period) {
            bool ends = at + period == sequence.n;
            ps_t end = ends ? all[sequence.activities[sequence.n - 1]].end
                            : all[sequence.activities[at + period]].start;
            vec_push(&trace->steps,
                (struct trace_step){.start = all[sequence.activities[at]].start, .end = end});
        }
    }
    free(sequence.names);
    free(sequence.activities);
    return period > 0;
}

/* By the time at which each begins. */
static void put_into_steps(struct trace *trace)
{
    int step = 0;
    for (int i = 0; i < trace->activities.n; i++) {
        struct trace_activity *activity = &trace->activities.at[i];
        while (step < trace->steps.n && activity->start >= trace->steps.at[step].end)
            step++;
        bool in = step < trace->steps.n && activity->start >= trace->steps.at[step].start;
        activity->step = in ? step : TRACE_NO_STEP;
        trace->outside += !in;
    }
}

void trace_find_steps(struct trace *trace, const struct trace_marks *marks)
{
    BUG_IF(trace->activities.n == 0, "no activities");
    trace_steps_sort(trace);
    if (annotated(trace, marks))
        return;
    if (!find_repetition(trace)) {
        trace->found = TRACE_WHOLE;
        ps_t end = trace->activities.at[0].start;
        for (int i = 0; i < trace->activities.n; i++)
            end = trace_steps_later(end, trace->activities.at[i].end);
        vec_push(&trace->steps,
            (struct trace_step){.start = trace->activities.at[0].start, .end = end + 1});
    }
    put_into_steps(trace);
}
