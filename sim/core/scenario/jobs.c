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
    return ranks * blocks / fmax(stages, 1) * (double)strategy_batch(&point->options.strategy.train).micro_batches *
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
    *jobs = (struct jobs){.work = work, .total = n, .skipped = xcalloc((size_t)n + 1, sizeof *jobs->skipped)};
    for (int i = 0; i < n; i++) {
        bool known = work->known && work->known[i], others = !known && work->others && work->others[i];
        jobs->skipped[i] = known || others;
        jobs->done += known;
        jobs->total -= others;
    }
    jobs->loop = (struct crew_loop){.n = n, .known = jobs->skipped, .everyone = work->everyone};
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

/* ---- results as bytes ---- */

static void pack_timeline(struct pack *out, const struct exec_memory_sample *timeline, int n)
{
    pack_bytes(out, timeline, sizeof *timeline * (size_t)n);
}

static struct exec_memory_sample *unpack_timeline(struct unpack *from, int n, struct arena *arena)
{
    struct exec_memory_sample *timeline = ARENA_ARRAY(arena, struct exec_memory_sample, n);
    unpack_bytes(from, timeline, sizeof *timeline * (size_t)n);
    return timeline;
}

void jobs_pack_result(struct pack *out, const struct scenario_result *result)
{
    const struct exec_result *exec = &result->exec;
    BUG_IF(exec->n_spans > 0 || exec->n_host_spans > 0, "spans are not sent");
    PACK(out, *result);
    pack_text(out, exec->memory.oom_op);
    for (int p = 0; p < exec->n_programs; p++) {
        const struct exec_program *program = &exec->programs[p];
        bool same = program->timeline == exec->timeline;
        PACK(out, *program);
        pack_text(out, program->memory.oom_op);
        PACK(out, same);
        pack_timeline(out, program->timeline, same ? 0 : program->n_timeline);
    }
    pack_timeline(out, exec->timeline, exec->n_timeline);
}

void jobs_unpack_result(struct unpack *from, struct scenario_result *result, struct arena *arena)
{
    struct exec_result *exec = &result->exec;
    UNPACK(from, *result);
    result->samples = NULL;
    result->n_samples = 0;
    exec->spans = NULL;
    exec->host_spans = NULL;
    exec->stands_for = NULL;
    exec->memory.oom_op = unpack_text(from, arena);
    exec->programs = ARENA_ARRAY(arena, struct exec_program, exec->n_programs);
    bool *same = xcalloc((size_t)exec->n_programs + 1, sizeof *same);
    for (int p = 0; p < exec->n_programs; p++) {
        struct exec_program *program = &exec->programs[p];
        UNPACK(from, *program);
        program->memory.oom_op = unpack_text(from, arena);
        UNPACK(from, same[p]);
        program->timeline = unpack_timeline(from, same[p] ? 0 : program->n_timeline, arena);
    }
    exec->timeline = unpack_timeline(from, exec->n_timeline, arena);
    for (int p = 0; p < exec->n_programs; p++)
        if (same[p])
            exec->programs[p].timeline = exec->timeline;
    free(same);
}
