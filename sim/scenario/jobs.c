#include "scenario/jobs.h"

#include <math.h>
#include <stdlib.h>

struct weighed {
    double weight;
    int point;
};

double scenario_weight(const struct scenario_point *point)
{
    const struct exec_options *exec = &point->options.exec;
    const struct model_shape *shape = &point->model.shape;
    bool one_by_one = exec_noise_is_on(&exec->noise) || exec->fold == FOLD_OFF;
    double stages = (double)point->options.strategy.parallelism.pipeline;
    double ranks = one_by_one ? (double)point->options.cluster.gpus : fmax(stages, 1);
    double blocks = 1 + (double)(shape->n_layers + shape->n_decoder_layers); /* images: alike */
    return ranks * blocks / fmax(stages, 1) * (double)strategy_batch(&point->options.strategy.train).micro_batches *
           (double)(exec->warmup_steps + exec->steps);
}

/* Of alike ones the last first: sweeps mostly grow. */
static int heavier(const void *a, const void *b)
{
    const struct weighed *one = a, *two = b;
    if (one->weight != two->weight)
        return one->weight < two->weight ? 1 : -1;
    return one->point < two->point ? 1 : -1;
}

int *jobs_order(const struct scenario_set *set)
{
    size_t n = (size_t)set->n_points;
    struct weighed *weighed = xcalloc(n, sizeof *weighed);
    int *order = xcalloc(n, sizeof *order);
    for (int i = 0; i < set->n_points; i++)
        weighed[i] = (struct weighed){scenario_weight(&set->points[i]), i};
    qsort(weighed, n, sizeof *weighed, heavier);
    for (size_t i = 0; i < n; i++)
        order[i] = weighed[i].point;
    free(weighed);
    return order;
}

struct jobs jobs_begin(int n, const struct scenario_work *work)
{
    struct jobs jobs = {.work = work, .diags = diag_set_begin(n), .n = n};
    for (int i = 0; i < n && work->known; i++)
        jobs.done += work->known[i];
    return jobs;
}

bool jobs_wants(struct jobs *jobs, int job)
{
    return !atomic_load(&jobs->ended) && !(jobs->work->known && jobs->work->known[job]);
}

void jobs_end_one(struct jobs *jobs, int job, enum status status, const struct diag *diag)
{
    const struct scenario_work *work = jobs->work;
    diag_set_keep(&jobs->diags, job, diag);
#ifdef _OPENMP
#pragma omp critical(jobs_end_one)
#endif
    {
        jobs->done++;
        if (work->keep && status == STATUS_OK && !work->keep(work->self, job))
            atomic_store(&jobs->ended, true);
        if (work->progress)
            work->progress(work->self, jobs->done, jobs->n);
    }
}

enum status jobs_end(struct jobs *jobs, struct diag *diag)
{
    return diag_set_end(&jobs->diags, diag);
}
