#include "study/tune_search.h"

#include "study/fit.h"

#include <stdlib.h>
#include <string.h>

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
static struct scenario_point searched(const struct scenario_point *from, const struct tune_options *options)
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

/* The global batch, where one is asked for, by what the scenario accumulates by. false: not with this micro-batch. */
static bool set_steps(const struct search *search, struct train_options *train, int64_t gpus)
{
    int64_t global = search->options->global_batch, per_micro_step = train->micro_batch * gpus;
    if (train->device_batch == 0) {
        if (global == 0)
            return true;
        if (global % per_micro_step || (search->accum_set && train->grad_accum != global / per_micro_step))
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

static void add(const struct search *search, struct scenario_point point)
{
    struct diag diag = DIAG_INIT;
    if (!set_steps(search, &point.options.strategy.train, point.options.cluster.gpus))
        return;
    scenario_check(&point, &diag);
    if (diag.n_errors > 0)
        tune_refuse(search->out, &diag, search->arena);
    else
        vec_push(&search->out->candidates,
            ((struct tune_candidate){.point = point, .base = search->base, .group = search->group, .represents = -1}));
}

static void add_prefetches(const struct search *search, struct scenario_point point)
{
    static const int backwards[] = {BACKWARD_PRE, BACKWARD_POST};
    struct fsdp_options *fsdp = &point.options.strategy.fsdp;
    int given = fsdp->backward_prefetch, forward_given = fsdp->forward_prefetch;
    bool one = search->set[SEARCH_BACKWARD], forward_set = search->set[SEARCH_FORWARD];
    for (int b = 0; b < (one ? 1 : 2); b++)
        for (int forward = 0; forward < 2; forward++) {
            bool rare = backwards[b] == BACKWARD_POST && forward; /* only where somebody asks for it */
            if (forward_set ? forward != forward_given : !one && rare)
                continue;
            fsdp->backward_prefetch = one ? given : backwards[b];
            fsdp->forward_prefetch = forward != 0;
            add(search, point);
        }
}

static void add_groups(const struct search *search, struct scenario_point point)
{
    int64_t gpus = point.options.cluster.gpus, node = hw_gpus_per_node(&point.hw);
    struct fsdp_options *fsdp = &point.options.strategy.fsdp;
    bool one_node = search->set[SEARCH_SHARDING] && node >= gpus; /* nothing to search: as the scenario says */
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
        if (own->sharding_strategy == HYBRID_SHARD || own->sharding_strategy == HYBRID_SHARD_ZERO2) {
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
            add(search, point);
    }
}

/* point: with its micro-batch and checkpointing. */
static void add_strategies(const struct search *search, struct scenario_point point)
{
    bool several = point.options.cluster.gpus > 1, one = search->set[SEARCH_STRATEGY];
    int given = point.options.strategy.kind;
    static const int kinds[] = {
        STRATEGY_FSDP, STRATEGY_DEEPSPEED, STRATEGY_DDP, STRATEGY_SINGLE_DEVICE, STRATEGY_INTERNEVO};
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
            add(search, point);
    }
}

/* One micro-batch of every base point. */
static void add_batch(struct search *search, const struct scenario_point *base, int64_t batch, bool last)
{
    if (layout_searched(base)) {
        if (last)
            layout_candidates(search->out, base, search->base, search->group, search->options, search->arena);
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
    int64_t ranks = strategy_data_ranks(&strategy->parallelism, candidate->point.options.cluster.gpus);
    return candidate->bound.step_s / (double)(strategy_batch(&strategy->train).samples * ranks);
}

/* Those whose host memory is too small for what they offload, which only the plan knows, go. */
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

void tune_candidates(
    struct tune *out, const struct scenario_set *set, const struct tune_options *options, struct arena *arena)
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

enum status tune_run(
    struct tune *tune, const struct tune_options *options, scenario_progress progress, void *self, struct diag *diag)
{
    VEC(int) chosen = {0};
    VEC(struct promising) all = {0};
    for (int i = 0; i < tune->candidates.n; i++)
        if (tune->candidates.at[i].state == TUNE_LEFT_OUT && !tune->candidates.at[i].is_layout && !tune->bounded)
            vec_push(&all, ((struct promising){tune_promise(&tune->candidates.at[i]), i}));
    if (all.n > 0)
        qsort(all.at, (size_t)all.n, sizeof *all.at, by_promise);
    for (int k = 0; k < all.n && k < options->max_simulations; k++)
        vec_push(&chosen, all.at[k].index);
    vec_free(&all);
    enum status status = tune_simulate(tune, chosen.at, chosen.n, false, true, progress, self, diag);
    if (status == STATUS_OK && !tune->stopped)
        status = layout_run(tune, options, progress, self, diag);
    for (int i = 0; i < tune->candidates.n; i++)
        tune->count[tune->candidates.at[i].state]++;
    vec_free(&chosen);
    return status;
}
