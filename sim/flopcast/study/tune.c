/* The search of study/tune.h: which candidates there are, in which order they are simulated, and
 * how they rank. Points of the scenario that differ only in what is searched are one base
 * (searched() sets all that to defaults and compares the settings as JSON). For each micro-batch,
 * the largest first, and each base nested loops add a candidate for every checkpointing, strategy,
 * sharding, group and prefetch; what scenario_check() refuses is counted. Then each candidate's
 * plan is compiled once, in parallel, for the peak that prunes it and a bound of its step.
 * tune_run() simulates the most promising without noise, tune_finals() runs the best with it;
 * layouts (study/tune_layout.c) go by branch and bound.
 *
 * What is subtle: an option that --set gave is never changed, and is found by its origin.
 * Everything is counted in simulations and never in seconds, so the answer is the same on every
 * machine. Equal candidates keep the order in which they were made. */
#include "base/files.h"
#include "study/fit.h"
#include "study/tune_search.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

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

static bool is_prefetch(const char *path)
{
    return strcmp(path, "fsdp.backward_prefetch") == 0 ||
           strcmp(path, "fsdp.forward_prefetch") == 0;
}

/* They differ in prefetch alone, and it changes next to nothing. */
static bool tune_is_alike(
    const struct tune_candidate *a, const struct tune_candidate *b, struct arena *scratch)
{
    if (a->base != b->base || !is_near(a->quiet.tokens_per_s, b->quiet.tokens_per_s) ||
        !is_near(a->quiet.peak_bytes, b->quiet.peak_bytes) || a->quiet.retries != b->quiet.retries)
        return false;
    struct tune_settings of_a = tune_settings(a, scratch), of_b = tune_settings(b, scratch);
    bool same = of_a.n == of_b.n;
    for (int i = 0; i < of_a.n && same; i++)
        same =
            strcmp(of_a.list[i].key, of_b.list[i].key) == 0 &&
            (strcmp(of_a.list[i].value, of_b.list[i].value) == 0 || is_prefetch(of_a.list[i].key));
    return same;
}

/* Who represents whom: the fastest without noise. */
static void tune_find_alike(struct tune *tune)
{
    int *order = xcalloc((size_t)tune->candidates.n + 1, sizeof *order);
    int n = rank(order, tune, TUNE_BY_SPEED, false);
    for (int i = 0; i < n; i++) {
        struct tune_candidate *first = &tune->candidates.at[order[i]];
        struct arena scratch = ARENA_INIT;
        if (first->represents >= 0)
            continue;
        first->represents = order[i];
        for (int j = i + 1; j < n; j++) {
            struct tune_candidate *other = &tune->candidates.at[order[j]];
            if (other->represents < 0 && tune_is_alike(first, other, &scratch))
                other->represents = order[i];
        }
        arena_release(&scratch);
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
    int *order = xcalloc((size_t)tune->candidates.n + 1, sizeof *order);
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
    int *order = xcalloc((size_t)tune->candidates.n + 1, sizeof *order);
    int *chosen = xcalloc((size_t)tune->candidates.n + 1, sizeof *chosen);
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

/* Values are read from the candidate's point by the paths of settings, so what is printed as a
 * command is what was simulated. */
struct tune_settings tune_settings(const struct tune_candidate *candidate, struct arena *arena)
{
    static const char *const always[] = {"cluster.gpus", "train.micro_batch", "train.grad_accum",
        "train.activation_checkpointing", "strategy", "train.device_batch", NULL};
    static const char *const of_layouts[] = {"cluster.gpus", "train.micro_batch",
        "train.grad_accum", "train.activation_checkpointing", "strategy", "train.global_batch",
        NULL};
    static const char *const by_strategy[STRATEGY_COUNT][5] = {
        [STRATEGY_FSDP] = {"fsdp.sharding_strategy", "fsdp.sharding_group_size",
            "fsdp.backward_prefetch", "fsdp.forward_prefetch"},
        [STRATEGY_DEEPSPEED] = {"deepspeed.zero_optimization.stage"},
        [STRATEGY_INTERNEVO] = {"internevo.zero1"},
    };
    const struct scenario *options = &candidate->point.options;
    const char *const *lists[] = {candidate->is_layout ? of_layouts : always,
        candidate->is_layout ? layout_paths : by_strategy[options->strategy.kind]};
    struct tune_settings all = {.n = 0};
    if (options->stack_path && tune_is_set(&candidate->point, "stack"))
        all.list[all.n++] =
            (struct scenario_override){"stack", files_name_from(arena, NULL, options->stack_path)};
    if (options->strategy.kind == STRATEGY_FSDP &&
        tune_is_set(&candidate->point, "fsdp.version")) /* fsdp2 says it */
        all.list[all.n++] = (struct scenario_override){
            "fsdp.version", arena_printf(arena, "%" PRId64, options->strategy.fsdp.version)};
    for (int l = 0; l < 2; l++)
        for (const char *const *path = lists[l]; *path; path++) {
            size_t at = 0;
            const struct config_field *field = config_field_at(&scenario_table, *path, &at);
            const char *value = config_value_text(field, (const char *)options + at, arena);
            bool none = strcmp(*path, "train.device_batch") == 0 &&
                        options->strategy.train.device_batch == 0;
            if (!none)
                all.list[all.n++] = (struct scenario_override){*path, value};
        }
    return all;
}

bool tune_sets(const struct tune_settings *settings, const char *path)
{
    for (int i = 0; i < settings->n; i++)
        if (strcmp(settings->list[i].key, path) == 0)
            return true;
    return false;
}

const char *const tune_state_names[TUNE_STATE_COUNT + 1] = {[TUNE_RAN] = "ran",
    [TUNE_OOM] = "oom",
    [TUNE_PRUNED] = "pruned",
    [TUNE_SLOWER] = "slower",
    [TUNE_LEFT_OUT] = "left_out"};

/* What is searched, unless --set says it. */
enum searched {
    SEARCH_STRATEGY,
    SEARCH_SHARDING,
    SEARCH_GROUP,
    SEARCH_BACKWARD,
    SEARCH_FORWARD,
    SEARCH_STAGE,
    SEARCH_BATCH,
    SEARCH_CHECKPOINTING,
    SEARCH_COUNT
};
static const char *const searched_paths[SEARCH_COUNT] = {
    [SEARCH_STRATEGY] = "strategy",
    [SEARCH_SHARDING] = "fsdp.sharding_strategy",
    [SEARCH_GROUP] = "fsdp.sharding_group_size",
    [SEARCH_BACKWARD] = "fsdp.backward_prefetch",
    [SEARCH_FORWARD] = "fsdp.forward_prefetch",
    [SEARCH_STAGE] = "deepspeed.zero_optimization.stage",
    [SEARCH_BATCH] = "train.micro_batch",
    [SEARCH_CHECKPOINTING] = "train.activation_checkpointing",
};

bool tune_is_set(const struct scenario_point *point, const char *path)
{
    return scenario_origin(point, path).kind == ORIGIN_COMMAND_LINE;
}

/* What is searched, out of the way: points that differ in nothing else have the same candidates. */
static struct scenario_point searched(
    const struct scenario_point *from, const struct tune_options *options)
{
    struct scenario_point point = *from;
    struct scenario plain = scenario_default();
    bool layouts = layout_searched(from);
    if (layouts)
        layout_base(&point, options);
    plain.strategy.train.micro_batch = 1;
    for (int i = 0; i < SEARCH_COUNT; i++)
        if (!tune_is_set(from, searched_paths[i]) && !(layouts && i == SEARCH_STRATEGY))
            config_copy(&point.options, &plain, searched_paths[i], &scenario_table);
    if (!tune_is_set(from, searched_paths[SEARCH_STRATEGY])) /* InternEvo is not searched */
        point.options.strategy.internevo = plain.strategy.internevo;
    if (options->global_batch && !tune_is_set(from, "train.grad_accum"))
        point.options.strategy.train.grad_accum = 1;
    point.published.found = false;
    return point;
}

static char *options_text(const struct scenario_point *point)
{
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    BUG_IF(!out, "open_memstream failed");
    config_write_json(out, &scenario_table, &point->options, NULL);
    fclose(out);
    return text;
}

/* What one base point and one step of the search are about. */
struct search {
    struct tune *out;
    const struct tune_options *options;
    struct arena *arena;
    int base, group;
    bool set[SEARCH_COUNT]; /* by --set: the base point's value is the only one */
    bool accum_set, device_set;
};

void tune_refuse(struct tune *tune, const struct diag *diag, struct arena *arena)
{
    if (tune->n_refused++ > 0)
        return;
    int length = 0;
    const char *reason = diag_first(diag, &length);
    tune->refusal = arena_printf(arena, "%.*s", length, reason);
}

/* The global batch, where one is asked for, by what the scenario accumulates by. false: not with
 * this micro-batch. With train.device_batch a micro-batch is a part of the device's batch;
 * without it the number of micro-steps makes up the global batch. */
static bool set_steps(const struct search *search, struct train_options *train, int64_t gpus)
{
    int64_t global = search->options->global_batch, per_micro_step = train->micro_batch * gpus;
    if (train->device_batch == 0) {
        if (global == 0)
            return true;
        if (global % per_micro_step ||
            (search->accum_set && train->grad_accum != global / per_micro_step))
            return false;
        train->grad_accum = global / per_micro_step;
        return true;
    }
    if (global && (global % gpus || (search->device_set && train->device_batch != global / gpus)))
        return false;
    if (global)
        train->device_batch = global / gpus;
    /* A larger micro-batch is the device's batch, once. */
    if (!search->set[SEARCH_BATCH] && train->micro_batch / 2 >= train->device_batch)
        return false;
    strategy_fit_micro_batch(train);
    if (!search->accum_set)
        train->grad_accum = 1;
    return true;
}

/* Batch first, as checks need it; a refusal is counted, and only the first one is kept in words. */
static void tune_add(const struct search *search, struct scenario_point point)
{
    struct diag diag = DIAG_INIT;
    if (!set_steps(search, &point.options.strategy.train, point.options.cluster.gpus))
        return;
    scenario_check(&point, &diag);
    if (diag.n_errors > 0)
        tune_refuse(search->out, &diag, search->arena);
    else
        vec_push(&search->out->candidates,
            ((struct tune_candidate){
                .point = point, .base = search->base, .group = search->group, .represents = -1}));
}

/* BACKWARD_POST with forward prefetch is tried only if the command line fixes one of the two. */
static void add_prefetches(const struct search *search, struct scenario_point point)
{
    static const int backwards[] = {BACKWARD_PRE, BACKWARD_POST};
    struct fsdp_options *fsdp = &point.options.strategy.fsdp;
    int given = fsdp->backward_prefetch, forward_given = fsdp->forward_prefetch;
    bool one = search->set[SEARCH_BACKWARD], forward_set = search->set[SEARCH_FORWARD];
    for (int b = 0; b < (one ? 1 : 2); b++)
        for (int forward = 0; forward < 2; forward++) {
            bool rare =
                backwards[b] == BACKWARD_POST && forward; /* only where somebody asks for it */
            if (forward_set ? forward != forward_given : !one && rare)
                continue;
            fsdp->backward_prefetch = one ? given : backwards[b];
            fsdp->forward_prefetch = forward != 0;
            tune_add(search, point);
        }
}

/* Groups are whole nodes, and smaller than the job, since a group as large as the job is
 * FULL_SHARD. */
static void add_groups(const struct search *search, struct scenario_point point)
{
    int64_t gpus = point.options.cluster.gpus, node = hw_gpus_per_node(&point.hw);
    struct fsdp_options *fsdp = &point.options.strategy.fsdp;
    bool one_node =
        search->set[SEARCH_SHARDING] && node >= gpus; /* nothing to search: as the scenario says */
    if (search->set[SEARCH_GROUP] || one_node) {
        add_prefetches(search, point);
        return;
    }
    for (int64_t group = node; group > 1 && group < gpus; group *= 2) {
        fsdp->sharding_group_size = group;
        add_prefetches(search, point);
    }
}

static void add_fsdp(const struct search *search, struct scenario_point point)
{
    static const int shardings[] = {FULL_SHARD, SHARD_GRAD_OP, HYBRID_SHARD};
    struct fsdp_options *fsdp = &point.options.strategy.fsdp;
    int given = fsdp->sharding_strategy;
    bool one = search->set[SEARCH_SHARDING];
    for (size_t i = 0; i < (one ? 1 : sizeof shardings / sizeof *shardings); i++) {
        struct scenario_point sharded = point;
        struct fsdp_options *own = &sharded.options.strategy.fsdp;
        own->sharding_strategy = one ? given : shardings[i];
        if (own->sharding_strategy == HYBRID_SHARD ||
            own->sharding_strategy == HYBRID_SHARD_ZERO2) {
            add_groups(search, sharded);
            continue;
        }
        own->sharding_group_size = 0;
        add_prefetches(search, sharded);
    }
}

static void add_stages(const struct search *search, struct scenario_point point)
{
    int64_t given = point.options.strategy.zero.stage;
    for (int64_t stage = 1; stage <= 3; stage++) {
        point.options.strategy.zero.stage = stage;
        if (!search->set[SEARCH_STAGE] || stage == given)
            tune_add(search, point);
    }
}

/* point: with its micro-batch and checkpointing. */
static void add_strategies(const struct search *search, struct scenario_point point)
{
    bool several = point.options.cluster.gpus > 1, one = search->set[SEARCH_STRATEGY];
    int given = point.options.strategy.kind;
    static const int kinds[] = {STRATEGY_FSDP, STRATEGY_DEEPSPEED, STRATEGY_DDP,
        STRATEGY_SINGLE_DEVICE, STRATEGY_INTERNEVO};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        bool alone = kinds[i] == STRATEGY_SINGLE_DEVICE;
        if (one ? kinds[i] != given : kinds[i] == STRATEGY_INTERNEVO || alone == several)
            continue;
        point.options.strategy.kind = kinds[i];
        if (kinds[i] == STRATEGY_FSDP)
            add_fsdp(search, point);
        else if (kinds[i] == STRATEGY_DEEPSPEED)
            add_stages(search, point);
        else
            tune_add(search, point);
    }
}

/* One micro-batch of every base point. Layouts have their own loop over micro-batches, so they
 * are added once, with the last batch; so is a base whose micro-batch is given. */
static void add_batch(
    struct search *search, const struct scenario_point *base, int64_t batch, bool last)
{
    if (layout_searched(base)) {
        if (last)
            layout_candidates(
                search->out, base, search->base, search->group, search->options, search->arena);
        return;
    }
    struct scenario_point point = *base;
    struct train_options *train = &point.options.strategy.train;
    int given = train->activation_checkpointing;
    for (int i = 0; i < SEARCH_COUNT; i++)
        search->set[i] = tune_is_set(base, searched_paths[i]);
    if (search->options->variants > 1)
        search->set[SEARCH_BACKWARD] = search->set[SEARCH_FORWARD] = true;
    search->accum_set = tune_is_set(base, "train.grad_accum");
    search->device_set = tune_is_set(base, "train.device_batch");
    if (search->set[SEARCH_BATCH] && !last)
        return;
    if (!search->set[SEARCH_BATCH])
        train->micro_batch = batch;
    for (int checkpointing = 0; checkpointing < CHECKPOINT_SEARCHED; checkpointing++) {
        if (search->set[SEARCH_CHECKPOINTING] && checkpointing != given)
            continue;
        train->activation_checkpointing = checkpointing;
        add_strategies(search, point);
    }
}

static bool find_peak(struct tune_candidate *candidate, struct diag *diag)
{
    struct arena arena = ARENA_INIT;
    struct plan plan = {0};
    struct exec_peak peak = {0};
    if (candidate->is_layout)
        return true;
    enum status status = scenario_compile(&plan, &candidate->point, &arena, diag);
    if (status == STATUS_OK) {
        exec_peak(&peak, &plan, &candidate->point.hw);
        candidate->bound = bound_plan(&plan, &candidate->point.hw);
        candidate->least_bytes = exec_tensors(&peak);
        candidate->state = exec_room(&peak) >= 0 ? TUNE_LEFT_OUT : TUNE_PRUNED;
    }
    plan_release(&plan);
    arena_release(&arena);
    return status == STATUS_OK;
}

double tune_promise(const struct tune_candidate *candidate)
{
    const struct strategy_options *strategy = &candidate->point.options.strategy;
    int64_t ranks =
        strategy_data_ranks(&strategy->parallelism, candidate->point.options.cluster.gpus);
    return candidate->bound.step_s / (double)(strategy_batch(&strategy->train).samples * ranks);
}

/* Those whose host memory is too small for what they offload, which only the plan knows, go. The
 * loop runs in parallel and only notes what is possible. What is refused is compiled once more,
 * in order, for its message. */
static void find_peaks(const struct search *search)
{
    struct tune *tune = search->out;
    bool *possible = xcalloc((size_t)tune->candidates.n + 1, sizeof *possible);
    int n = tune->candidates.n;
#ifdef _OPENMP
#pragma omp parallel for schedule(dynamic)
#endif
    for (int i = 0; i < n; i++) {
        struct diag diag = DIAG_INIT;
        possible[i] = find_peak(&tune->candidates.at[i], &diag);
    }
    tune->candidates.n = 0;
    for (int i = 0; i < n; i++) {
        struct diag diag = DIAG_INIT;
        if (possible[i]) {
            tune->candidates.at[tune->candidates.n++] = tune->candidates.at[i];
        } else {
            find_peak(&tune->candidates.at[i], &diag);
            tune_refuse(search->out, &diag, search->arena);
        }
    }
    free(possible);
}

/* Several variants of one job (tune_options.variants) stand one behind the other in the set, so
 * point i is job i % jobs. */
void tune_candidates(struct tune *out, const struct scenario_set *set,
    const struct tune_options *options, struct arena *arena)
{
    *out = (struct tune){0};
    struct search search = {.out = out, .options = options, .arena = arena};
    VEC(struct scenario_point) bases = {0};
    VEC(const char *) texts = {0};
    VEC(int) groups = {0};
    int jobs = options->variants > 1 ? set->n_points / options->variants : 0;
    for (int i = 0; i < set->n_points; i++) {
        struct scenario_point base = searched(&set->points[i], options);
        char *text = options_text(&base);
        bool known = false;
        for (int j = 0; j < texts.n && !known; j++)
            known = strcmp(texts.at[j], text) == 0;
        if (!known) {
            vec_push(&groups, jobs > 0 ? i % jobs : bases.n);
            vec_push(&bases, base);
            vec_push(&texts, arena_strdup(arena, text));
        }
        free(text);
    }
    int64_t largest = 1;
    while (2 * largest <= options->max_batch)
        largest *= 2;
    for (int64_t batch = largest; batch >= 1; batch /= 2)
        for (int i = 0; i < bases.n; i++) {
            search.base = i;
            search.group = groups.at[i];
            add_batch(&search, &bases.at[i], batch, batch == 1);
        }
    find_peaks(&search);
    layout_bounds(out);
    out->bounded = out->quiet_only = options->variants > 1;
    for (int i = 0; i < bases.n; i++)
        out->quiet_only = out->quiet_only || layout_searched(&bases.at[i]);
    vec_free(&bases);
    vec_free(&texts);
    vec_free(&groups);
}

struct promising {
    double promise;
    int index;
};

static int by_promise(const void *a, const void *b)
{
    const struct promising *one = a, *two = b;
    if (one->promise != two->promise)
        return one->promise < two->promise ? -1 : 1;
    return one->index < two->index ? -1 : one->index > two->index;
}

enum status tune_run(struct tune *tune, const struct tune_options *options,
    scenario_progress progress, void *self, struct diag *diag)
{
    VEC(int) chosen = {0};
    VEC(struct promising) all = {0};
    for (int i = 0; i < tune->candidates.n; i++)
        if (tune->candidates.at[i].state == TUNE_LEFT_OUT && !tune->candidates.at[i].is_layout &&
            !tune->bounded)
            vec_push(&all, ((struct promising){tune_promise(&tune->candidates.at[i]), i}));
    if (all.n > 0)
        qsort(all.at, (size_t)all.n, sizeof *all.at, by_promise);
    for (int k = 0; k < all.n && k < options->max_simulations; k++)
        vec_push(&chosen, all.at[k].index);
    vec_free(&all);
    enum status status =
        tune_simulate(tune, chosen.at, chosen.n, false, true, progress, self, diag);
    if (status == STATUS_OK && !tune->stopped)
        status = layout_run(tune, options, progress, self, diag);
    for (int i = 0; i < tune->candidates.n; i++)
        tune->count[tune->candidates.at[i].state]++;
    vec_free(&chosen);
    return status;
}
