/* What each candidate takes at least, which prunes and which orders the search.
 *
 * Of a strategy the plan is compiled once, in parallel, for its peak (exec/peak.h) and a bound of
 * its step. Layouts that cut a block alike share the costs of blocks (study/bound.h), which are
 * found once for each such class, classes in parallel, small micro-batches first: where a layout
 * does not fit, the same one with a larger micro-batch is pruned without a bound. */
#include "exec/peak.h"
#include "study/tune_search.h"

#include <stdlib.h>

double tune_promise(const struct tune_candidate *candidate)
{
    const struct strategy_options *strategy = &candidate->point.options.strategy;
    int64_t ranks =
        strategy_data_ranks(&strategy->parallelism, candidate->point.options.cluster.gpus);
    return candidate->bound.step_s / (double)(strategy_batch(&strategy->train).samples * ranks);
}

/* ---- strategies ---- */

static void find_peak(struct tune_candidate *candidate, struct diag *diag)
{
    struct arena arena = ARENA_INIT;
    struct plan plan = {0};
    struct exec_peak peak = {0};
    if (scenario_compile(&plan, &candidate->point, &arena, diag) == STATUS_OK) {
        exec_peak(&peak, &plan, &candidate->point.hw);
        candidate->bound = bound_plan(&plan, &candidate->point.hw);
        candidate->least_bytes = exec_tensors(&peak);
        candidate->state = exec_room(&peak) >= 0 ? TUNE_LEFT_OUT : TUNE_PRUNED;
    }
    plan_release(&plan);
    arena_release(&arena);
}

/* Those whose host memory is too small for what they offload, which only the plan knows, go. They
 * are counted in their order, so that the first reason is the same on every machine. */
static void find_peaks(struct tune *tune, struct arena *arena)
{
    int n = tune->candidates.n;
    struct diag *diags = xcalloc((size_t)n + 1, sizeof *diags);
#ifdef _OPENMP
#pragma omp parallel for schedule(dynamic)
#endif
    for (int i = 0; i < n; i++)
        if (!tune->candidates.at[i].is_layout)
            find_peak(&tune->candidates.at[i], &diags[i]);
    tune->candidates.n = 0;
    for (int i = 0; i < n; i++)
        if (diags[i].worst == STATUS_OK)
            tune->candidates.at[tune->candidates.n++] = tune->candidates.at[i];
        else
            tune_refuse(tune, &diags[i], arena);
    free(diags);
}

/* ---- layouts ---- */

/* Layouts with the same costs of blocks, in the order of candidates. */
struct alike {
    VEC(int) list;
    struct bound_costs costs;
    struct arena arena;
};

static bool has_costs_of(const struct tune *tune, const struct alike *alike, int i)
{
    const struct tune_candidate *own = &tune->candidates.at[i],
                                *other = &tune->candidates.at[alike->list.at[0]];
    return other->base == own->base &&
           !tune_axes_differ(&other->point, &own->point, ~(unsigned)TUNE_OF_BLOCKS);
}

/* A larger micro-batch takes no less memory: samples in flight are no fewer. */
static bool fits_smaller(const struct tune *tune, int i)
{
    const struct tune_candidate *own = &tune->candidates.at[i];
    int64_t batch = own->point.options.strategy.train.micro_batch;
    for (int k = i - 1; k >= 0; k--) { /* the same layout's lie side by side */
        const struct tune_candidate *at = &tune->candidates.at[k];
        if (!at->is_layout || at->base != own->base)
            return true;
        if (!tune_axes_differ(&own->point, &at->point, 1U << TUNE_BATCH) &&
            at->point.options.strategy.train.micro_batch < batch)
            return at->state != TUNE_PRUNED;
        if (at->point.options.strategy.parallelism.virtual_stages !=
            own->point.options.strategy.parallelism.virtual_stages)
            return true;
    }
    return true;
}

static void bound_one(struct tune_candidate *candidate, const struct bound_costs *costs)
{
    const struct hw_gpu *gpu = &candidate->point.hw.gpu;
    candidate->bound = bound_layout(costs, &candidate->point);
    candidate->least_bytes = candidate->bound.bytes - gpu->context_bytes.value;
    candidate->state =
        candidate->bound.bytes <= gpu->hbm_capacity.value ? TUNE_LEFT_OUT : TUNE_PRUNED;
}

/* The diag cannot have errors: scenario_check() has passed the point before. */
static void bound_alike(struct tune *tune, struct alike *alike)
{
    int n = 0;
    for (int k = 0; k < alike->list.n; k++) {
        if (fits_smaller(tune, alike->list.at[k]))
            alike->list.at[n++] = alike->list.at[k];
        else
            tune->candidates.at[alike->list.at[k]].state = TUNE_PRUNED;
    }
    alike->list.n = n;
    if (n == 0)
        return;
    struct diag diag = DIAG_INIT;
    enum status status = bound_costs(
        &alike->costs, &tune->candidates.at[alike->list.at[0]].point, &alike->arena, &diag);
    BUG_IF(status != STATUS_OK, "%s", diag.text);
    for (int k = 0; k < n; k++)
        bound_one(&tune->candidates.at[alike->list.at[k]], &alike->costs);
    arena_release(&alike->arena);
}

/* Those of one micro-batch after those of all smaller ones. */
static void find_layout_bounds(struct tune *tune)
{
    VEC(struct alike) all = {0};
    int64_t most = 0;
    for (int i = 0; i < tune->candidates.n; i++) {
        int k = 0;
        if (!tune->candidates.at[i].is_layout)
            continue;
        while (k < all.n && !has_costs_of(tune, &all.at[k], i))
            k++;
        if (k == all.n)
            vec_push(&all, (struct alike){0});
        vec_push(&all.at[k].list, i);
        int64_t batch = tune->candidates.at[i].point.options.strategy.train.micro_batch;
        most = batch > most ? batch : most;
    }
    for (int64_t batch = 1, least = 0; least < most; least = batch, batch *= 2) {
#ifdef _OPENMP
#pragma omp parallel for schedule(dynamic)
#endif
        for (int k = 0; k < all.n; k++) {
            int64_t own =
                tune->candidates.at[all.at[k].list.at[0]].point.options.strategy.train.micro_batch;
            if (own > least && own <= batch)
                bound_alike(tune, &all.at[k]);
        }
    }
    for (int k = 0; k < all.n; k++)
        vec_free(&all.at[k].list);
    vec_free(&all);
}

void tune_find_bounds(struct tune *tune, struct arena *arena)
{
    find_peaks(tune, arena);
    find_layout_bounds(tune);
}
