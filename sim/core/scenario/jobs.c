/* What loops over points share: the order of the jobs, which are skipped, what is done when one
 * ends, and a result as bytes for other ranks of MPI.
 *
 * The order is by weight, largest first, so that no thread starts the longest job when the others
 * are done. The weight follows the executor's folding: where ranks are alike only one a stage is
 * simulated, so noise makes a point as heavy as its ranks are many.
 *
 * Results travel as plain bytes of their structs, as all ranks run one program on one kind of
 * machine. Pointers in them are meaningless on arrival: texts and arrays are sent after the struct
 * and put in place again. A program's timeline that is the run's own is sent once, as a flag. */
#include "scenario/jobs.h"

#include <math.h>
#include <stdlib.h>

bool scenario_varies(const struct scenario_point *point)
{
    const struct exec_options *exec = &point->options.exec;
    bool documents = document_options_vary(&point->options.strategy.train.documents);
    return exec_noise_is_on(&exec->noise) || (documents && !exec->mean_documents);
}

double scenario_weight(const struct scenario_point *point)
{
    const struct exec_options *exec = &point->options.exec;
    const struct model_shape *shape = &point->model.shape;
    bool one_by_one = scenario_varies(point) || exec->fold == FOLD_OFF;
    double stages = (double)point->options.strategy.parallelism.pipeline;
    double ranks = one_by_one ? (double)point->options.cluster.gpus : fmax(stages, 1);
    double blocks = 1 + (double)(shape->n_layers + shape->n_decoder_layers); /* images: alike */
    return ranks * blocks / fmax(stages, 1) *
           (double)strategy_batch(&point->options.strategy.train).micro_batches *
           (double)(exec->warmup_steps + exec->steps);
}

int *jobs_order(const struct scenario_set *set)
{
    double *weights = xcalloc((size_t)set->n_points + 1, sizeof *weights);
    for (int i = 0; i < set->n_points; i++)
        weights[i] = scenario_weight(&set->points[i]);
    int *order = crew_order(weights, set->n_points);
    free(weights);
    return order;
}

void jobs_begin(struct jobs *jobs, int n, const struct scenario_work *work)
{
    *jobs = (struct jobs){
        .work = work, .total = n, .skipped = xcalloc((size_t)n + 1, sizeof *jobs->skipped)};
    for (int i = 0; i < n; i++) {
        bool known = work->known && work->known[i],
             others = !known && work->others && work->others[i];
        jobs->skipped[i] = known || others;
        jobs->done += known;
        jobs->total -= others;
    }
    jobs->loop = (struct crew_loop){.n = n, .known = jobs->skipped};
}

bool jobs_ended(struct jobs *jobs, int job, enum status status)
{
    const struct scenario_work *work = jobs->work;
    bool goes_on = status != STATUS_OK || !work->keep || work->keep(work->self, job);
    jobs->done++;
    if (work->progress)
        work->progress(work->self, jobs->done, jobs->total);
    return goes_on;
}

void jobs_end(struct jobs *jobs)
{
    free(jobs->skipped);
}
