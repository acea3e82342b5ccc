#include "crew/dispatch.h"

#include <stdlib.h>
#include <string.h>

struct weighed {
    double cost;
    int job;
};

static int costlier(const void *a, const void *b)
{
    const struct weighed *one = a, *two = b;
    if (one->cost != two->cost)
        return one->cost < two->cost ? 1 : -1;
    return one->job < two->job ? 1 : -1;
}

int *dispatch_order(const double *cost, int n)
{
    struct weighed *weighed = xcalloc((size_t)n + 1, sizeof *weighed);
    int *order = xcalloc((size_t)n + 1, sizeof *order);
    for (int i = 0; i < n; i++)
        weighed[i] = (struct weighed){cost[i], i};
    qsort(weighed, (size_t)n, sizeof *weighed, costlier);
    for (int i = 0; i < n; i++)
        order[i] = weighed[i].job;
    free(weighed);
    return order;
}

void dispatch_begin(struct dispatch *dispatch, int n, const int *order, const bool *known, const double *bytes)
{
    *dispatch = (struct dispatch){.n = n,
        .bytes = bytes,
        .queue = xcalloc((size_t)n + 1, sizeof *dispatch->queue),
        .losses = xcalloc((size_t)n + 1, sizeof *dispatch->losses)};
    for (int i = 0; i < n; i++)
        if (!known || !known[order[i]])
            dispatch->queue[dispatch->last++] = order[i];
}

int dispatch_add_machine(struct dispatch *dispatch, double bytes)
{
    vec_push(&dispatch->machines, ((struct dispatch_machine){.bytes = bytes}));
    return dispatch->machines.n - 1;
}

int dispatch_add_worker(struct dispatch *dispatch, int machine)
{
    vec_push(&dispatch->workers, ((struct dispatch_worker){.machine = machine, .job = DISPATCH_NONE}));
    return dispatch->workers.n - 1;
}

static double bytes_of(const struct dispatch *dispatch, int job)
{
    return dispatch->bytes ? dispatch->bytes[job] : 0;
}

static bool fits(const struct dispatch *dispatch, const struct dispatch_machine *machine, int job)
{
    return machine->running == 0 || machine->used + bytes_of(dispatch, job) <= machine->bytes;
}

/* The first job of the queue that fits, taken out of it. */
static int take_queued(struct dispatch *dispatch, const struct dispatch_machine *machine)
{
    for (int i = dispatch->first; i < dispatch->last; i++) {
        int job = dispatch->queue[i];
        if (job == DISPATCH_NONE || !fits(dispatch, machine, job))
            continue;
        dispatch->queue[i] = DISPATCH_NONE;
        while (dispatch->first < dispatch->last && dispatch->queue[dispatch->first] == DISPATCH_NONE)
            dispatch->first++;
        return job;
    }
    return DISPATCH_NONE;
}

static int take(struct dispatch *dispatch, const struct dispatch_machine *machine)
{
    for (int i = 0; i < dispatch->again.n; i++) {
        int job = dispatch->again.at[i];
        if (!fits(dispatch, machine, job))
            continue;
        dispatch->again.at[i] = dispatch->again.at[--dispatch->again.n];
        return job;
    }
    int job = take_queued(dispatch, machine);
    if (job == DISPATCH_NONE && dispatch->running == 0 && dispatch->alone.n > 0)
        job = dispatch->alone.at[--dispatch->alone.n];
    return job;
}

int dispatch_next(struct dispatch *dispatch, int worker)
{
    struct dispatch_worker *own = &dispatch->workers.at[worker];
    struct dispatch_machine *machine = &dispatch->machines.at[own->machine];
    BUG_IF(own->job != DISPATCH_NONE, "worker %d is at job %d", worker, own->job);
    if (dispatch->stopped || own->gone)
        return DISPATCH_NONE;
    /* beside a job that is to be alone nothing begins */
    for (int i = 0; i < dispatch->workers.n && dispatch->running == 1; i++) {
        int job = dispatch->workers.at[i].job;
        if (job != DISPATCH_NONE && dispatch->losses[job] > 1)
            return DISPATCH_NONE;
    }
    int job = take(dispatch, machine);
    if (job == DISPATCH_NONE)
        return job;
    own->job = job;
    machine->used += bytes_of(dispatch, job);
    machine->running++;
    dispatch->running++;
    return job;
}

int dispatch_done(struct dispatch *dispatch, int worker)
{
    struct dispatch_worker *own = &dispatch->workers.at[worker];
    struct dispatch_machine *machine = &dispatch->machines.at[own->machine];
    int job = own->job;
    BUG_IF(job == DISPATCH_NONE, "worker %d has no job", worker);
    own->job = DISPATCH_NONE;
    machine->used -= bytes_of(dispatch, job);
    machine->running--;
    if (machine->running == 0) /* and nothing of rounding stays */
        machine->used = 0;
    dispatch->running--;
    return job;
}

int dispatch_lost(struct dispatch *dispatch, int worker, bool *failed)
{
    int job = dispatch_done(dispatch, worker);
    *failed = ++dispatch->losses[job] >= DISPATCH_TRIES;
    if (*failed)
        return job;
    if (dispatch->losses[job] == 1)
        vec_push(&dispatch->again, job);
    else
        vec_push(&dispatch->alone, job);
    return job;
}

void dispatch_remove(struct dispatch *dispatch, int worker)
{
    BUG_IF(dispatch->workers.at[worker].job != DISPATCH_NONE, "worker %d still has a job", worker);
    dispatch->workers.at[worker].gone = true;
}

void dispatch_stop(struct dispatch *dispatch)
{
    dispatch->stopped = true;
}

int dispatch_waiting(const struct dispatch *dispatch)
{
    int n = dispatch->again.n + dispatch->alone.n;
    for (int i = dispatch->first; i < dispatch->last; i++)
        n += dispatch->queue[i] != DISPATCH_NONE;
    return dispatch->stopped ? 0 : n;
}

void dispatch_end(struct dispatch *dispatch)
{
    free(dispatch->queue);
    free(dispatch->losses);
    vec_free(&dispatch->again);
    vec_free(&dispatch->alone);
    vec_free(&dispatch->machines);
    vec_free(&dispatch->workers);
    *dispatch = (struct dispatch){0};
}

static int larger(const void *a, const void *b)
{
    const double *one = a, *two = b;
    return (*one < *two) - (*one > *two);
}

int dispatch_at_once(const double *bytes, const bool *known, int n, int workers, double machine_bytes)
{
    double *sorted = xcalloc((size_t)n + 1, sizeof *sorted), sum = 0;
    int jobs = 0, at_once = 0;
    for (int i = 0; i < n; i++)
        if (!known || !known[i])
            sorted[jobs++] = bytes[i];
    qsort(sorted, (size_t)jobs, sizeof *sorted, larger);
    while (at_once < jobs && at_once < workers && (at_once == 0 || sum + sorted[at_once] <= machine_bytes))
        sum += sorted[at_once++];
    free(sorted);
    return jobs < workers && at_once == jobs ? workers : at_once > 0 ? at_once : 1;
}
