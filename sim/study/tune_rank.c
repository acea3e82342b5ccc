#include "study/tune_search.h"

#include "base/files.h"

#include <math.h>
#include <string.h>

const char *const tune_order_names[] = {[TUNE_BY_SPEED] = "speed", [TUNE_BY_COST] = "cost", NULL};

/* Seconds, dollars or GPU-hours for the same tokens; 0: it is not in the order. */
static double price_of(const struct tune_candidate *candidate, const struct tune_rates *rates, enum tune_order by)
{
    bool priced = candidate->point.hw.gpu.price.value > 0;
    if (by == TUNE_BY_SPEED)
        return 1 / rates->tokens_per_s;
    if (by == TUNE_BY_COST)
        return priced ? rates->usd_per_gtokens : 0;
    return priced ? 0 : rates->gpu_hours_per_gtokens;
}

/* The candidates in the order that did not run out of memory, finalists with noise or all without. */
static int rank(int *order, const struct tune *tune, enum tune_order by, bool finals)
{
    double *prices = xcalloc((size_t)tune->candidates.n + 1, sizeof *prices);
    int n = 0;
    for (int i = 0; i < tune->candidates.n; i++) { /* by insertion: a few hundred, and equals stay in order */
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
    return strcmp(path, "fsdp.backward_prefetch") == 0 || strcmp(path, "fsdp.forward_prefetch") == 0;
}

/* They differ in prefetch alone, and it changes next to nothing. */
static bool is_alike(const struct tune_candidate *a, const struct tune_candidate *b, struct arena *scratch)
{
    if (a->base != b->base || !is_near(a->quiet.tokens_per_s, b->quiet.tokens_per_s) ||
        !is_near(a->quiet.peak_bytes, b->quiet.peak_bytes) || a->quiet.retries != b->quiet.retries)
        return false;
    struct tune_settings of_a = tune_settings(a, scratch), of_b = tune_settings(b, scratch);
    bool same = of_a.n == of_b.n;
    for (int i = 0; i < of_a.n && same; i++)
        same = strcmp(of_a.list[i].key, of_b.list[i].key) == 0 &&
               (strcmp(of_a.list[i].value, of_b.list[i].value) == 0 || is_prefetch(of_a.list[i].key));
    return same;
}

/* Who represents whom: the fastest without noise. */
static void find_alike(struct tune *tune)
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
            if (other->represents < 0 && is_alike(first, other, &scratch))
                other->represents = order[i];
        }
        arena_release(&scratch);
    }
    free(order);
}

/* Out of memory with noise: those that it represented stand for themselves. */
static void leave(struct tune *tune, int gone)
{
    tune->count[TUNE_RAN]--;
    tune->count[TUNE_OOM]++;
    for (int i = 0; i < tune->candidates.n; i++)
        if (tune->candidates.at[i].represents == gone)
            tune->candidates.at[i].represents = -1;
}

/* These run with noise. */
static enum status run_finals(
    struct tune *tune, const int *chosen, int n, scenario_progress progress, void *self, struct diag *diag)
{
    VEC(int) noisy = {0};
    for (int i = 0; i < n; i++) {
        struct tune_candidate *candidate = &tune->candidates.at[chosen[i]];
        candidate->noisy = candidate->quiet;
        candidate->finalist = true;
        if (!tune->quiet_only && exec_noise_is_on(&candidate->point.options.exec.noise))
            vec_push(&noisy, chosen[i]);
    }
    enum status status = tune_simulate(tune, noisy.at, noisy.n, true, true, progress, self, diag);
    for (int i = 0; i < noisy.n; i++)
        if (tune->candidates.at[noisy.at[i]].state == TUNE_OOM)
            leave(tune, noisy.at[i]);
    tune->n_finalists += n;
    vec_free(&noisy);
    return status;
}

/* Whether a candidate could still come in among the first rows. */
static bool could_win(const struct tune *tune, enum tune_order by, int rows, const struct tune_candidate *next)
{
    int *order = xcalloc((size_t)tune->candidates.n + 1, sizeof *order);
    int n = rank(order, tune, by, true);
    double least_loss = HUGE_VAL; /* the step's time with noise over that without */
    for (int i = 0; i < n; i++) {
        const struct tune_candidate *final = &tune->candidates.at[order[i]];
        least_loss = fmin(least_loss, final->noisy.step_time_s / final->quiet.step_time_s);
    }
    const struct tune_candidate *last = n < rows ? NULL : &tune->candidates.at[order[rows - 1]];
    bool could = !last || price_of(next, &next->quiet, by) * least_loss < price_of(last, &last->noisy, by);
    free(order);
    return could;
}

/* The candidates in the order, one of those alike. */
static int rank_first(int *order, struct tune *tune, enum tune_order by)
{
    find_alike(tune);
    int all = rank(order, tune, by, false), n = 0;
    for (int i = 0; i < all; i++)
        if (tune->candidates.at[order[i]].represents == order[i])
            order[n++] = order[i];
    return n;
}

enum status tune_finals(
    struct tune *tune, enum tune_order by, int rows, scenario_progress progress, void *self, struct diag *diag)
{
    enum { AT_ONCE = 4 }; /* runs between two looks at who leads */
    int *order = xcalloc((size_t)tune->candidates.n + 1, sizeof *order);
    int *chosen = xcalloc((size_t)tune->candidates.n + 1, sizeof *chosen);
    enum status status = STATUS_OK;
    for (int ran = 0; status == STATUS_OK && ran < 2 * rows && tune->left == 0;) {
        int n = rank_first(order, tune, by), first = 0, k = 0; /* anew: one that runs out of memory leaves the order */
        while (first < n && tune->candidates.at[order[first]].finalist)
            first++;
        if (first == n || (first >= rows && !could_win(tune, by, rows, &tune->candidates.at[order[first]])))
            break;
        for (int i = first; i < n && i < (first < rows ? rows : first + AT_ONCE) && ran + k < 2 * rows; i++)
            if (!tune->candidates.at[order[i]].finalist)
                chosen[k++] = order[i];
        status = run_finals(tune, chosen, k, progress, self, diag);
        ran += k;
    }
    free(chosen);
    free(order);
    return status;
}

struct tune_settings tune_settings(const struct tune_candidate *candidate, struct arena *arena)
{
    static const char *const always[] = {"cluster.gpus", "train.micro_batch", "train.grad_accum",
        "train.activation_checkpointing", "strategy", "train.device_batch", NULL};
    static const char *const of_layouts[] = {"cluster.gpus", "train.micro_batch", "train.grad_accum",
        "train.activation_checkpointing", "strategy", "train.global_batch", NULL};
    static const char *const by_strategy[STRATEGY_COUNT][5] = {
        [STRATEGY_FSDP] = {"fsdp.sharding_strategy", "fsdp.sharding_group_size", "fsdp.backward_prefetch",
            "fsdp.forward_prefetch"},
        [STRATEGY_DEEPSPEED] = {"deepspeed.zero_optimization.stage"},
        [STRATEGY_INTERNEVO] = {"internevo.zero1"},
    };
    const struct scenario *options = &candidate->point.options;
    const char *const *lists[] = {candidate->is_layout ? of_layouts : always,
        candidate->is_layout ? layout_paths : by_strategy[options->strategy.kind]};
    struct tune_settings all = {.n = 0};
    if (options->stack_path && tune_is_set(&candidate->point, "stack"))
        all.list[all.n++] = (struct scenario_override){"stack", files_name_from(arena, NULL, options->stack_path)};
    for (int l = 0; l < 2; l++)
        for (const char *const *path = lists[l]; *path; path++) {
            size_t at = 0;
            const struct config_field *field = config_field_at(&scenario_table, *path, &at);
            const char *value = config_value_text(field, (const char *)options + at, arena);
            bool none = strcmp(*path, "train.device_batch") == 0 && options->strategy.train.device_batch == 0;
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
