/* Whether a job fits into the memory of its GPUs, and the largest micro-batch that does.
 *
 * The verdict is the simulated allocator's. Without noise one rank stands for all; where
 * cudaMalloc must be tried again, ranks differ and the verdict needs the noise, which costs as
 * much as all ranks. The search starts at the largest micro-batch whose peak, by the plan alone,
 * is within the capacity, which needs no simulation; from there it goes down in growing steps
 * and then by halves.
 *
 * What is subtle: fitting is not monotone in the micro-batch, because of gaps between tensors.
 * So some larger ones are tried behind the first that does not fit, as long as only
 * fragmentation is in the way. Where verdicts with noise would cost much, a micro-batch without
 * any retry is looked for first: noise cannot change that verdict. */
#include "study/fit.h"

#include <math.h>

static enum fit_verdict study_fit_simulate(const struct scenario_point *point)
{
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    struct scenario_result result;
    enum status status = scenario_simulate(&result, point, &arena, &diag);
    const struct exec_memory *memory = &result.exec.memory;
    enum fit_verdict verdict = FIT_OK;
    if (status != STATUS_OK) /* too little host memory */
        verdict = FIT_OOM;
    else if (result.exec.status != EXEC_OK)
        verdict = memory->required_bytes > memory->capacity_bytes ? FIT_OOM : FIT_FRAGMENTED;
    else if (memory->alloc_retries > 0)
        verdict = FIT_RETRIES;
    arena_release(&arena);
    return verdict;
}

static enum fit_verdict quiet_verdict(const struct scenario_point *point)
{
    struct scenario_point quiet = *point;
    exec_be_quiet(&quiet.options.exec);
    return study_fit_simulate(&quiet);
}

/* Only retries make a second simulation worth while, as with noise they may end out of memory.
 * Where they do not, the verdict is that without noise. */
enum fit_verdict fit_verdict(const struct scenario_point *point)
{
    enum fit_verdict quiet = quiet_verdict(point),
                     noisy = quiet == FIT_RETRIES ? study_fit_simulate(point) : quiet;
    return fit_fits(noisy) ? quiet : noisy;
}

enum status fit_peak(struct exec_peak *out, const struct scenario_point *point, struct diag *diag)
{
    struct arena arena = ARENA_INIT;
    struct plan plan = {0};
    enum status status = scenario_compile(&plan, point, &arena, diag);
    *out = (struct exec_peak){0};
    if (status == STATUS_OK)
        exec_peak(out, &plan, &point->hw);
    plan_release(&plan);
    arena_release(&arena);
    return status;
}

/* Each stage's parameters, blocks and peak, of one plan. */
enum status fit_stages(struct fit_stage **stages, int *n, const struct scenario_point *point,
    struct arena *arena, struct diag *diag)
{
    struct plan plan = {0};
    const struct scenario *options = &point->options;
    *n = 0;
    if (scenario_compile(&plan, point, arena, diag) == STATUS_OK) {
        struct job job =
            strategy_job(&options->strategy, &point->model, &point->hw, (int)options->cluster.gpus);
        *n = plan.n_programs;
        *stages = ARENA_ARRAY(arena, struct fit_stage, *n);
        for (int s = 0; s < *n; s++) {
            const struct model *model = strategy_rank_model(&job, s, arena);
            (*stages)[s].params = model->params;
            (*stages)[s].blocks = model->n_layers - 1; /* the root is a layer */
            exec_program_peak(&(*stages)[s].peak, &plan, s, &point->hw);
        }
    }
    plan_release(&plan);
    return diag->worst;
}

static struct scenario_point with_batch(const struct scenario_point *point, int64_t micro_batch)
{
    struct scenario_point changed = *point;
    changed.options.strategy.train.micro_batch = micro_batch;
    return changed;
}

/* Bytes beyond the GPU's capacity, negative where there is room. A micro-batch that makes tensors
 * beyond what can be counted fits nowhere, nor does a job that cannot be. Bytes above what is
 * there; the line between two of them leads to the next guess. */
static double excess(const struct scenario_point *point, int64_t micro_batch)
{
    const struct train_options *train = &point->options.strategy.train;
    struct scenario_point changed = with_batch(point, micro_batch);
    struct diag diag = DIAG_INIT;
    struct exec_peak peak;
    double largest = model_largest_tensor_bytes(
        &point->model.shape, micro_batch, train->seq_len, train->decoder_seq_len);
    if (largest > MODEL_MAX_TENSOR_BYTES || fit_peak(&peak, &changed, &diag) != STATUS_OK)
        return HUGE_VAL;
    return -exec_room(&peak);
}

/* In steps of a factor until one does not fit. Then where the line through both sides crosses, as
 * the peak is nearly linear in the micro-batch; every third time the middle, as at a bend the line
 * comes closer slowly. */
int64_t fit_largest_by_peak(const struct scenario_point *point, int64_t most)
{
    enum { FACTOR = 4, MIDDLE = 3 };
    int64_t fits = 0, over = most + 1, at = 1;
    double room = 0, beyond = HUGE_VAL;
    for (int trial = 1; over - fits > 1; trial++) {
        double bytes = excess(point, at);
        if (bytes <= 0) {
            fits = at;
            room = -bytes;
        } else {
            over = at;
            beyond = bytes;
        }
        double share = isinf(beyond) || trial % MIDDLE == 0 ? 1. / 2 : room / (room + beyond);
        at = over > most ? FACTOR * at : fits + (int64_t)(share * (double)(over - fits));
        at = at <= fits ? fits + 1 : at >= over ? over - 1 : at;
    }
    return fits;
}

typedef enum fit_verdict judgement(const struct scenario_point *);

static enum fit_verdict try(struct fit_search *search, judgement *judge, int64_t micro_batch)
{
    struct scenario_point changed = with_batch(&search->point, micro_batch);
    enum fit_verdict verdict = judge(&changed);
    if (fit_fits(verdict)) {
        search->micro_batch = micro_batch;
        search->retries = verdict == FIT_RETRIES;
    }
    return verdict;
}

/* From `most` down in growing steps until one fits, then by halves between it and the last that
 * does not; then a little beyond. */
static void study_fit_find(struct fit_search *search, judgement *judge, int64_t most)
{
    enum { LOOK_BEYOND = 4 };
    int64_t over = most + 1, step = 1; /* over does not fit, search->micro_batch does */
    bool fragmented = false;
    search->micro_batch = 0;
    search->retries = false;
    while (over - search->micro_batch > 1) {
        bool found = search->micro_batch > 0;
        int64_t at = found ? search->micro_batch + (over - search->micro_batch) / 2 : over - step;
        enum fit_verdict verdict = try(search, judge, at > 1 ? at : 1);
        if (fit_fits(verdict))
            continue;
        over = at > 1 ? at : 1;
        fragmented = verdict == FIT_FRAGMENTED;
        step *= 2;
    }
    for (int64_t at = over + 1; at <= most && at <= search->micro_batch + LOOK_BEYOND && fragmented;
         at++)
        fragmented = try(search, judge, at) != FIT_OOM;
}

/* Nothing that is tried again: then noise cannot change the verdict. */
static enum fit_verdict strict_verdict(const struct scenario_point *point)
{
    enum fit_verdict verdict = quiet_verdict(point);
    return verdict == FIT_RETRIES ? FIT_FRAGMENTED : verdict;
}

/* Every rank's allocator instead of one's: this number of ops of all ranks together takes about
 * half a second (measured). */
static bool costs_much(const struct scenario_point *point)
{
    static const double MOST_OPS = 2e6;
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    struct plan plan = {0};
    scenario_compile(&plan, point, &arena, &diag);
    double ops = (double)plan_ops(&plan) * (double)point->options.cluster.gpus;
    plan_release(&plan);
    arena_release(&arena);
    return ops > MOST_OPS;
}

/* The first search is without noise and bounds the others from above. */
static void find_largest(struct fit_search *search)
{
    study_fit_find(search, quiet_verdict, fit_largest_by_peak(&search->point, search->most));
    int64_t quiet = search->micro_batch; /* what is out of memory without noise is so with it */
    if (!search->retries)
        return;
    if (costs_much(&search->point))
        study_fit_find(search, strict_verdict, quiet);
    if (search->micro_batch == 0 || search->retries)
        study_fit_find(search, fit_verdict, quiet);
}

void fit_largest_batches(struct fit_search *searches, int n, scenario_progress progress, void *self)
{
    int done = 0;
    /* Last first: the jobs of many GPUs take longest and mostly stand at the end. */
#ifdef _OPENMP
#pragma omp parallel for schedule(dynamic)
#endif
    for (int i = 0; i < n; i++) {
        find_largest(&searches[n - 1 - i]);
        if (!progress)
            continue;
#ifdef _OPENMP
#pragma omp critical(fit_progress)
#endif
        progress(self, ++done, n);
    }
}
