/* The search of study/tune.h over the candidates of tune_axes.c: which of them are simulated, in
 * which order, and how they rank.
 *
 * One order of all that may fit: by their bound for a sequence. Where noise decides in the end, the
 * most promising are simulated without it, and tune_finals() runs the best with it. Layouts, and
 * all of a search over several variants, go by branch and bound: one is left out when its bound is
 * not below the keep-th best time of its group and, between variants, not below the best time of
 * its base.
 *
 * What is subtle: a bound must never be above the simulated time, or the best layout could be lost.
 * Everything is counted in simulations and never in seconds, so the answer is the same on every
 * machine. Equal candidates keep the order in which they were made. */
#include "study/tune_search.h"

#include <math.h>
#include <stdlib.h>

const char *const tune_order_names[] = {[TUNE_BY_SPEED] = "speed", [TUNE_BY_COST] = "cost", NULL};

/* Seconds, dollars or GPU-hours for the same tokens; 0: it is not in the order. Less is better
 * in every order. */
static double price_of(
    const struct tune_candidate *candidate, const struct tune_rates *rates, enum tune_order by)
{
    bool priced = candidate->point.hw.gpu.price.value > 0;
    if (by == TUNE_BY_SPEED)
        return 1 / rates->tokens_per_s;
    if (by == TUNE_BY_COST)
        return priced ? rates->usd_per_gtokens : 0;
    return priced ? 0 : rates->gpu_hours_per_gtokens;
}

/* The candidates in the order that did not run out of memory, finalists with noise or all
 * without. finals: only finalists, by what they give with noise; else all that ran, by what they
 * give without it. */
static int rank(int *order, const struct tune *tune, enum tune_order by, bool finals)
{
    double *prices = xcalloc((size_t)tune->candidates.n + 1, sizeof *prices);
    int n = 0;
    for (int i = 0; i < tune->candidates.n;
         i++) { /* by insertion: a few hundred, and equals stay in order */
        const struct tune_candidate *candidate = &tune->candidates.at[i];
        if (candidate->state == TUNE_RAN && (candidate->finalist || !finals))
            prices[i] = price_of(candidate, finals ? &candidate->noisy : &candidate->quiet, by);
        if (!(prices[i] > 0))
            continue;
        int at = n++;
        for (; at > 0 && prices[order[at - 1]] > prices[i]; at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
    free(prices);
    return n;
}

int tune_rank(int *order, const struct tune *tune, enum tune_order by)
{
    return rank(order, tune, by, tune->n_finalists > 0);
}

int tune_rank_quiet(int *order, const struct tune *tune, enum tune_order by)
{
    return rank(order, tune, by, false);
}

static bool is_near(double a, double b)
{
    static const double little = 1e-3; /* less than the model knows */
    return fabs(a - b) <= little * a;
}

/* They differ in prefetch alone, and it changes next to nothing. */
static bool tune_is_alike(const struct tune_candidate *a, const struct tune_candidate *b)
{
    return a->base == b->base && is_near(a->quiet.tokens_per_s, b->quiet.tokens_per_s) &&
           is_near(a->quiet.peak_bytes, b->quiet.peak_bytes) &&
           a->quiet.retries == b->quiet.retries &&
           !tune_axes_differ(&a->point, &b->point, 1U << TUNE_BACKWARD | 1U << TUNE_FORWARD);
}

/* Who represents whom: the fastest without noise. */
static void tune_find_alike(struct tune *tune)
{
    int *order = tune_indices(tune);
    int n = rank(order, tune, TUNE_BY_SPEED, false);
    for (int i = 0; i < n; i++) {
        struct tune_candidate *first = &tune->candidates.at[order[i]];
        if (first->represents >= 0)
            continue;
        first->represents = order[i];
        for (int j = i + 1; j < n; j++) {
            struct tune_candidate *other = &tune->candidates.at[order[j]];
            if (other->represents < 0 && tune_is_alike(first, other))
                other->represents = order[i];
        }
    }
    free(order);
}

/* Out of memory with noise: those that it represented stand for themselves. */
static void study_tune_leave(struct tune *tune, int gone)
{
    tune->count[TUNE_RAN]--;
    tune->count[TUNE_OOM]++;
    for (int i = 0; i < tune->candidates.n; i++)
        if (tune->candidates.at[i].represents == gone)
            tune->candidates.at[i].represents = -1;
}

/* These run with noise. Of a search with layouts, and of points without noise, the run without
 * noise counts as the run with it. */
static enum status run_finals(struct tune *tune, const int *chosen, int n,
    scenario_progress progress, void *self, struct diag *diag)
{
    VEC(int) noisy = {0};
    for (int i = 0; i < n; i++) {
        struct tune_candidate *candidate = &tune->candidates.at[chosen[i]];
        candidate->noisy = candidate->quiet;
        candidate->finalist = true;
        if (!tune->quiet_only && scenario_varies(&candidate->point))
            vec_push(&noisy, chosen[i]);
    }
    enum status status = tune_simulate(tune, noisy.at, noisy.n, true, true, progress, self, diag);
    for (int i = 0; i < noisy.n; i++)
        if (tune->candidates.at[noisy.at[i]].state == TUNE_OOM)
            study_tune_leave(tune, noisy.at[i]);
    tune->n_finalists += n;
    vec_free(&noisy);
    return status;
}

/* Whether a candidate could still come in among the first rows. It is optimistic: the candidate
 * loses by noise no more than the finalist that lost least. */
static bool could_win(
    const struct tune *tune, enum tune_order by, int rows, const struct tune_candidate *next)
{
    int *order = tune_indices(tune);
    int n = rank(order, tune, by, true);
    double least_loss = HUGE_VAL; /* the step's time with noise over that without */
    for (int i = 0; i < n; i++) {
        const struct tune_candidate *final = &tune->candidates.at[order[i]];
        least_loss = fmin(least_loss, final->noisy.step_time_s / final->quiet.step_time_s);
    }
    const struct tune_candidate *last = n < rows ? NULL : &tune->candidates.at[order[rows - 1]];
    bool could =
        !last || price_of(next, &next->quiet, by) * least_loss < price_of(last, &last->noisy, by);
    free(order);
    return could;
}

/* The candidates in the order, one of those alike. */
static int rank_first(int *order, struct tune *tune, enum tune_order by)
{
    tune_find_alike(tune);
    int all = rank(order, tune, by, false), n = 0;
    for (int i = 0; i < all; i++)
        if (tune->candidates.at[order[i]].represents == order[i])
            order[n++] = order[i];
    return n;
}

/* First as many as there are rows, then four at a time while the next one could still come in. 2
 * x rows bound the work where noise costs all of them alike. A finalist that runs out of memory
 * with noise leaves the order, and those it stood for come back, so the order is made anew after
 * each group of runs. */
enum status tune_finals(struct tune *tune, enum tune_order by, int rows, scenario_progress progress,
    void *self, struct diag *diag)
{
    enum { AT_ONCE = 4 }; /* runs between two looks at who leads */
    int *order = tune_indices(tune);
    int *chosen = tune_indices(tune);
    enum status status = STATUS_OK;
    for (int ran = 0; status == STATUS_OK && ran < 2 * rows && tune->left == 0;) {
        int n = rank_first(order, tune, by), first = 0,
            k = 0; /* anew: one that runs out of memory leaves the order */
        while (first < n && tune->candidates.at[order[first]].finalist)
            first++;
        if (first == n ||
            (first >= rows && !could_win(tune, by, rows, &tune->candidates.at[order[first]])))
            break;
        for (int i = first;
             i < n && i < (first < rows ? rows : first + AT_ONCE) && ran + k < 2 * rows; i++)
            if (!tune->candidates.at[order[i]].finalist)
                chosen[k++] = order[i];
        status = run_finals(tune, chosen, k, progress, self, diag);
        ran += k;
    }
    free(chosen);
    free(order);
    return status;
}

const char *const tune_state_names[TUNE_STATE_COUNT + 1] = {[TUNE_RAN] = "ran",
    [TUNE_OOM] = "oom",
    [TUNE_PRUNED] = "pruned",
    [TUNE_SLOWER] = "slower",
    [TUNE_LEFT_OUT] = "left_out"};

/* ---- the search ---- */

/* One that waits for its simulation. EVERY: no bound stops it. */
struct waiting {
    double promise;
    int group, index;
};
enum { EVERY = -1 };

static int by_promise(const void *a, const void *b)
{
    const struct waiting *one = a, *two = b;
    if (one->group != two->group)
        return one->group < two->group ? -1 : 1;
    if (one->promise != two->promise)
        return one->promise < two->promise ? -1 : 1;
    return one->index < two->index ? -1 : one->index > two->index;
}

/* What a sequence took, as tune_promise() has it. */
static double time_of(const struct tune_candidate *at)
{
    return tune_promise(at) / at->bound.step_s * at->quiet.step_time_s;
}

/* The keep shortest times of a group so far, shortest first. */
struct leaders {
    double *step_s;
    int n, keep;
};

/* An insertion into the sorted list; what comes behind a full list is dropped. */
static void lead(struct leaders *leaders, double step_s)
{
    int at = leaders->n < leaders->keep ? leaders->n++ : leaders->keep;
    if (at == leaders->keep && leaders->step_s[--at] <= step_s)
        return;
    for (; at > 0 && leaders->step_s[at - 1] > step_s; at--)
        leaders->step_s[at] = leaders->step_s[at - 1];
    leaders->step_s[at] = step_s;
}

static bool could_lead(const struct leaders *leaders, double least_s)
{
    return leaders->n < leaders->keep || least_s < leaders->step_s[leaders->keep - 1];
}

/* Of those that bounds may stop every n-th, so that each of n shards has some of all bounds. */
static int keep_own(struct waiting *order, int n, struct tune *tune)
{
    int kept = 0, bounded = 0;
    for (int k = 0; k < n; k++) {
        if (order[k].group == EVERY || bounded++ % tune->share->shards == tune->share->shard - 1)
            order[kept++] = order[k];
        else
            tune->left++;
    }
    return kept;
}

/* The waiting ones of a group from *next on that are simulated together; returns how many. Those
 * that cannot lead are slower, those beyond `most` are left out. */
static int choose(int *chosen, struct tune *tune, const struct waiting *order, int n, int *next,
    int at_once, int most, const struct leaders *leaders, const double *of_base)
{
    int count = 0, group = order[*next].group;
    for (; *next < n && order[*next].group == group && (group == EVERY || count < at_once);
         ++*next) {
        const struct waiting *own = &order[*next];
        struct tune_candidate *at = &tune->candidates.at[own->index];
        bool may_lead = group == EVERY || could_lead(leaders, own->promise) ||
                        (tune->bounded && own->promise < of_base[at->base]);
        if (!may_lead)
            at->state = TUNE_SLOWER;
        else if (count < most)
            chosen[count++] = own->index;
    }
    return count;
}

/* Simulations run in groups of 2, 4 and then 8, whatever the number of threads, so the same
 * layouts are simulated on every machine. */
static enum status run_waiting(struct tune *tune, const struct waiting *order, int n,
    const struct tune_options *options, scenario_progress progress, void *self, struct diag *diag)
{
    enum {
        FIRST = 2,
        AT_ONCE = 8
    }; /* between two looks at who leads; an early leader saves most */
    struct leaders leaders = {.keep = options->keep > 0 ? options->keep : 1};
    leaders.step_s = xcalloc((size_t)leaders.keep, sizeof *leaders.step_s);
    double *of_base = xcalloc((size_t)tune->n_bases + 1, sizeof *of_base);
    for (int b = 0; b < tune->n_bases; b++)
        of_base[b] = HUGE_VAL;
    int *chosen = xcalloc((size_t)n + 1, sizeof *chosen), at_once = FIRST, ran = 0;
    enum status status = STATUS_OK;
    for (int next = 0; next < n && status == STATUS_OK && !tune->stopped;) {
        bool every = order[next].group == EVERY;
        if (next > 0 && order[next - 1].group != order[next].group)
            leaders.n = 0;
        int count = choose(chosen, tune, order, n, &next, at_once, options->max_simulations - ran,
            &leaders, of_base);
        status =
            tune_simulate(tune, chosen, count, false, every, every ? progress : NULL, self, diag);
        for (int k = 0; k < count && !every; k++) {
            const struct tune_candidate *at = &tune->candidates.at[chosen[k]];
            if (at->state != TUNE_RAN)
                continue;
            lead(&leaders, time_of(at));
            of_base[at->base] = fmin(of_base[at->base], time_of(at));
        }
        if (every)
            continue;
        ran += count;
        at_once = at_once < AT_ONCE ? 2 * at_once : AT_ONCE;
        if (progress && count > 0)
            progress(self, next, n);
    }
    free(chosen);
    free(leaders.step_s);
    free(of_base);
    return status;
}

enum status tune_run(struct tune *tune, const struct tune_options *options,
    scenario_progress progress, void *self, struct diag *diag)
{
    VEC(struct waiting) order = {0};
    for (int i = 0; i < tune->candidates.n; i++) {
        const struct tune_candidate *at = &tune->candidates.at[i];
        int group = at->is_layout || tune->bounded ? at->group : EVERY;
        if (at->state == TUNE_LEFT_OUT)
            vec_push(&order, ((struct waiting){tune_promise(at), group, i}));
    }
    if (order.n > 0)
        qsort(order.at, (size_t)order.n, sizeof *order.at, by_promise);
    if (tune->share && tune->share->shards > 0)
        order.n = keep_own(order.at, order.n, tune);
    enum status status = run_waiting(tune, order.at, order.n, options, progress, self, diag);
    for (int i = 0; i < tune->candidates.n; i++)
        tune->count[tune->candidates.at[i].state]++;
    vec_free(&order);
    return status;
}
