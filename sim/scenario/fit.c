#include "scenario/fit.h"

#include "scenario/file.h"

static enum fit_verdict simulate(const struct scenario_point *point)
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
    quiet.options.exec.noise = (struct noise_options){0};
    return simulate(&quiet);
}

enum fit_verdict fit_verdict(const struct scenario_point *point)
{
    enum fit_verdict quiet = quiet_verdict(point), noisy = quiet == FIT_RETRIES ? simulate(point) : quiet;
    return fit_fits(noisy) ? quiet : noisy;
}

enum status fit_point(struct scenario_point *out, const struct hw *hw, const struct model *model,
    const struct strategy_options *strategy, int64_t gpus, struct diag *diag)
{
    struct noise_field noise[NOISE_FIELDS];
    *out = (struct scenario_point){.options = scenario_default(), .hw = *hw, .model = *model};
    out->options.strategy = *strategy;
    out->options.cluster.gpus = gpus;
    inputs_noise(noise, out);
    for (int i = 0; i < NOISE_FIELDS; i++)
        if (quantity_is_set(noise[i].cluster))
            *noise[i].value = noise[i].cluster.value;
    check_point(out, diag);
    return diag->worst;
}

typedef enum fit_verdict judgement(const struct scenario_point *);

/* A micro-batch that makes tensors beyond what can be counted fits nowhere. */
static enum fit_verdict judge_batch(judgement *judge, const struct scenario_point *point, int64_t micro_batch)
{
    struct scenario_point changed = *point;
    struct train_options *train = &changed.options.strategy.train;
    train->micro_batch = micro_batch;
    double bytes = model_largest_tensor_bytes(&point->model.shape, micro_batch, train->seq_len, train->decoder_seq_len);
    return bytes > MODEL_MAX_TENSOR_BYTES ? FIT_OOM : judge(&changed);
}

static enum fit_verdict try(struct fit_search *search, judgement *judge, int64_t micro_batch)
{
    enum fit_verdict verdict = judge_batch(judge, &search->point, micro_batch);
    if (fit_fits(verdict)) {
        search->micro_batch = micro_batch;
        search->retries = verdict == FIT_RETRIES;
    }
    return verdict;
}

/* From guess on in growing steps until the border lies between two, then by halves; then a little beyond. */
static void find(struct fit_search *search, judgement *judge, int64_t guess, int64_t most)
{
    enum { LOOK_BEYOND = 4 };
    enum fit_verdict failed = FIT_OOM;
    int64_t over = most + 1, step = 1, at = guess; /* over does not fit, search->micro_batch does */
    bool up = false, down = false;
    search->micro_batch = 0;
    search->retries = false;
    while (over - search->micro_batch > 1) {
        at = at <= search->micro_batch ? search->micro_batch + 1 : at >= over ? over - 1 : at;
        enum fit_verdict verdict = try(search, judge, at);
        if (fit_fits(verdict)) {
            up = true;
            at += step;
        } else {
            failed = verdict;
            over = at;
            down = true;
            at -= step;
        }
        step *= 2;
        if (up && down)
            at = search->micro_batch + (over - search->micro_batch) / 2;
    }
    for (at = over + 1; at <= most && at <= search->micro_batch + LOOK_BEYOND && failed == FIT_FRAGMENTED; at++) {
        enum fit_verdict verdict = try(search, judge, at);
        failed = verdict == FIT_OOM ? FIT_OOM : failed;
    }
}

/* Nothing that is tried again: then noise cannot change the verdict. */
static enum fit_verdict strict_verdict(const struct scenario_point *point)
{
    enum fit_verdict verdict = quiet_verdict(point);
    return verdict == FIT_RETRIES ? FIT_FRAGMENTED : verdict;
}

/* Every rank's allocator instead of one's: this number of ops of all ranks together takes about half a second
 * (measured). */
static bool costs_much(const struct scenario_point *point)
{
    static const double MOST_OPS = 2e6;
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    struct plan plan = {0};
    scenario_compile(&plan, point, &arena, &diag);
    double ops = (double)plan.ops.n * (double)point->options.cluster.gpus;
    plan_release(&plan);
    arena_release(&arena);
    return ops > MOST_OPS;
}

static void find_largest(struct fit_search *search)
{
    find(search, quiet_verdict, search->guess, search->most);
    int64_t quiet = search->micro_batch; /* what is out of memory without noise is so with it */
    if (!search->retries)
        return;
    if (costs_much(&search->point))
        find(search, strict_verdict, quiet, quiet);
    if (search->micro_batch == 0 || search->retries)
        find(search, fit_verdict, quiet, quiet);
}

void fit_largest_batches(struct fit_search *searches, int n)
{
    /* Last first: the jobs of many GPUs take longest and mostly stand at the end. */
#ifdef _OPENMP
#pragma omp parallel for schedule(dynamic)
#endif
    for (int i = 0; i < n; i++)
        find_largest(&searches[n - 1 - i]);
}
