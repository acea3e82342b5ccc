/* A loop over jobs: each thread takes the next job of a queue, in the order asked for, until there
 * is none or the caller wants no more. What a job says is kept apart and put together in the order
 * of jobs in the end. */
#include "crew/crew.h"

#include "base/arena.h"
#include "base/diag_set.h"
#include "base/threads.h"

#include <stdlib.h>

enum { NO_JOB = -1 };

struct queue {
    const struct crew_loop *loop;
    int *jobs, first, last; /* not begun yet: jobs[first .. last - 1] */
    bool stopped;
    struct diag_set diags;
    enum status worst;
};

static int take_job(struct queue *queue)
{
    int job = NO_JOB;
#ifdef _OPENMP
#pragma omp critical(crew_run)
#endif
    if (!queue->stopped && queue->first < queue->last)
        job = queue->jobs[queue->first++];
    return job;
}

/* False: there is none left. */
static bool do_job(struct queue *queue)
{
    const struct crew_loop *loop = queue->loop;
    int job = take_job(queue);
    if (job == NO_JOB)
        return false;
    struct diag diag = DIAG_INIT;
    enum status status = loop->job(loop->self, job, &diag);
#ifdef _OPENMP
#pragma omp critical(crew_run)
#endif
    {
        diag_set_keep(&queue->diags, job, &diag);
        queue->worst = status > queue->worst ? status : queue->worst;
        if (loop->ended && !loop->ended(loop->self, job, status))
            queue->stopped = true;
    }
    return true;
}

static void fill_queue(struct queue *queue)
{
    const struct crew_loop *loop = queue->loop;
    queue->jobs = xcalloc((size_t)loop->n + 1, sizeof *queue->jobs);
    for (int i = 0; i < loop->n; i++)
        if (!loop->known || !loop->known[loop->order[i]])
            queue->jobs[queue->last++] = loop->order[i];
}

#ifdef _OPENMP
static int threads_for(const struct queue *queue)
{
    int threads = threads_count();
    return threads < queue->last ? threads : queue->last > 0 ? queue->last : 1;
}
#endif

enum status crew_run(const struct crew_loop *loop, struct diag *diag)
{
    struct queue queue = {.loop = loop, .diags = diag_set_begin(loop->n)};
    fill_queue(&queue);
    threads_nest();
#ifdef _OPENMP
#pragma omp parallel num_threads(threads_for(&queue))
#endif
    while (do_job(&queue))
        continue;
    free(queue.jobs);
    diag_set_end(&queue.diags, diag);
    return queue.worst;
}

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

int *crew_order(const double *cost, int n)
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

static int least(const double *loads, int n)
{
    int found = 0;
    for (int s = 1; s < n; s++)
        if (loads[s] < loads[found])
            found = s;
    return found;
}

void crew_shard(bool *mine, const double *cost, const int *with, int n, int shard, int shards)
{
    double *loads = xcalloc((size_t)shards, sizeof *loads),
           *sums = xcalloc((size_t)n + 1, sizeof *sums);
    for (int i = 0; i < n; i++) {
        BUG_IF(with && (with[i] < 0 || with[i] > i || with[with[i]] != with[i]),
            "job %d is with %d", i, with[i]);
        sums[with ? with[i] : i] += cost[i];
    }
    int *order = crew_order(sums, n);
    for (int k = 0; k < n; k++) {
        int i = order[k];
        if (with && with[i] != i)
            continue;
        int chosen = least(loads, shards);
        loads[chosen] += sums[i];
        mine[i] = chosen == shard - 1;
    }
    for (int i = 0; i < n && with; i++)
        mine[i] = mine[with[i]];
    free(order);
    free(loads);
    free(sums);
}
