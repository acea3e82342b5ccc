/* Candidates of a search, simulated by threads or taken from where results are kept.
 *
 * A group of candidates becomes a set of points, without noise where that is asked for. Results
 * that somebody keeps (a database) are looked up by the identity of the point first; of the rest,
 * each shard leaves to others what crew_shard() gives them by estimated cost. What is subtle: a
 * candidate without a result is either another shard's or was not reached because keeping was to
 * end; only the latter stops the search. changing() is called before and after candidates change,
 * as another thread may read them. */
#include "scenario/energy.h"
#include "study/tune_search.h"

#include <stdlib.h>

static struct tune_rates rates_of(
    const struct scenario_point *point, const struct scenario_result *result)
{
    static const double GTOKENS = 1e9, SECONDS_PER_HOUR = 3600, JOULES_PER_KWH = 3.6e6;
    double gpu_hours = GTOKENS / result->tokens_per_s_per_gpu / SECONDS_PER_HOUR;
    return (struct tune_rates){
        .step_time_s = result->exec.step_time_s,
        .tflops_per_gpu = result->tflops_per_gpu,
        .tokens_per_s = result->tokens_per_s_per_gpu * (double)point->options.cluster.gpus,
        .gpu_hours_per_gtokens = gpu_hours,
        .usd_per_gtokens = gpu_hours * point->hw.gpu.price.value,
        .kwh_per_gtokens = GTOKENS * scenario_energy(point, result).per_token_j / JOULES_PER_KWH,
        .retries = result->exec.memory.alloc_retries_a_step,
        .peak_bytes = result->exec.memory.peak_allocated_bytes,
        .mfu = result->mfu,
    };
}

struct simulated {
    struct tune *tune;
    const struct scenario_share *share;
    struct scenario_set set;
    struct scenario_result *results;
    struct arena *arenas;
    struct scenario_identity *identities; /* where somebody keeps results */
    bool *known, *others;
    scenario_progress progress;
    void *self;
};

static bool tune_simulate_keep(void *self, int i)
{
    struct simulated *all = self;
    const struct scenario_kept *kept = all->share->kept;
    all->tune->own++;
    return !kept || kept->keep(kept->self, &all->identities[i], &all->results[i]);
}

static void show(void *self, int done, int total)
{
    const struct simulated *all = self;
    if (all->progress)
        all->progress(all->self, done, total);
}

static void find_known(struct simulated *all)
{
    const struct scenario_kept *kept = all->share->kept;
    for (int i = 0; i < all->set.n_points && kept; i++) {
        scenario_identify(&all->identities[i], &all->set.points[i]);
        all->known[i] = kept->find(kept->self, &all->identities[i], &all->results[i]);
        all->tune->known += all->known[i];
    }
}

static void tune_simulate_leave_to_others(struct simulated *all)
{
    double *cost = xcalloc((size_t)all->set.n_points + 1, sizeof *cost);
    for (int i = 0; i < all->set.n_points; i++)
        cost[i] = scenario_weight(&all->set.points[i]);
    crew_shard(all->others, cost, NULL, all->set.n_points, all->share->shard, all->share->shards);
    for (int i = 0; i < all->set.n_points; i++)
        all->others[i] = !all->others[i];
    free(cost);
}

/* What came out; of a candidate that is left to others nothing did. A result that is neither
 * known nor simulated is all zeros: status ok, a step of 0 s. */
static void take_rates(struct simulated *all, const int *chosen, bool noise)
{
    for (int i = 0; i < all->set.n_points; i++) {
        struct tune_candidate *candidate = &all->tune->candidates.at[chosen[i]];
        const struct scenario_result *result = &all->results[i];
        bool ran = result->exec.status == EXEC_OK && result->exec.step_time_s > 0;
        if (!ran && result->exec.status == EXEC_OK) {
            all->tune->left++;
            all->tune->stopped = all->tune->stopped || !all->others[i];
            continue;
        }
        candidate->state = ran ? TUNE_RAN : TUNE_OOM;
        if (ran)
            *(noise ? &candidate->noisy : &candidate->quiet) = rates_of(&candidate->point, result);
    }
}

enum status tune_simulate(struct tune *tune, const int *chosen, int n, bool noise, bool divided,
    scenario_progress progress, void *self, struct diag *diag)
{
    static const struct scenario_share nobody = {0};
    struct arena scratch = ARENA_INIT;
    struct simulated all = {.tune = tune,
        .share = tune->share ? tune->share : &nobody,
        .set = {.n_points = n, .points = ARENA_ARRAY(&scratch, struct scenario_point, n)},
        .results = ARENA_ARRAY(&scratch, struct scenario_result, n),
        .arenas = ARENA_ARRAY(&scratch, struct arena, n),
        .identities = ARENA_ARRAY(&scratch, struct scenario_identity, n),
        .known = ARENA_ARRAY(&scratch, bool, n),
        .others = ARENA_ARRAY(&scratch, bool, n),
        .progress = progress,
        .self = self};
    for (int i = 0; i < n; i++) {
        all.set.points[i] = tune->candidates.at[chosen[i]].point;
        if (!noise)
            exec_be_quiet(&all.set.points[i].options.exec);
    }
    find_known(&all);
    if (divided && all.share->shards > 0)
        tune_simulate_leave_to_others(&all);
    const struct scenario_work work = {.known = all.known,
        .others = all.others,
        .keep = tune_simulate_keep,
        .progress = show,
        .self = &all};
    enum status status = scenario_simulate_some(all.results, all.arenas, &all.set, &work, diag);
    if (tune->changing)
        tune->changing(tune->self, true);
    if (status == STATUS_OK)
        take_rates(&all, chosen, noise);
    if (tune->changing)
        tune->changing(tune->self, false);
    for (int i = 0; i < n; i++)
        arena_release(&all.arenas[i]);
    arena_release(&scratch);
    return status;
}
