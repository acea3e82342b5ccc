#include "cli/tune.h"

#include "cli/rows.h"
#include "cli/sure.h"
#include "cli/vary.h"
#include "cli/words.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct tune_print {
    FILE *out;
    const struct tune_command *command;
    const struct scenario_set *set;
    const struct tune *tune;
    struct vary swept;
    bool noise, retries, tokens; /* whether these are columns */
    struct sure *sure;
    struct arena *arena;
};

/* ---- layouts: degrees, and what their steps are made of ---- */

enum part { PART_KERNELS, PART_GROUPS, PART_BUBBLE, PART_REST, PART_COUNT };
static const char *const part_names[PART_COUNT] = {
    [PART_KERNELS] = "kernels",
    [PART_GROUPS] = "collectives of tensor, context and expert groups",
    [PART_BUBBLE] = "the bubble",
    [PART_REST] = "messages, gradients, weights and kernels slower beside collectives",
};

/* A step in seconds, as bound.h takes it apart. */
static void parts_of(double part_s[PART_COUNT], const struct tune_candidate *candidate)
{
    const struct bound *bound = &candidate->bound;
    part_s[PART_KERNELS] = bound->kernels_s;
    part_s[PART_GROUPS] = fmax(0, bound->group_s); /* a difference, which rounds below 0 where there are none */
    part_s[PART_BUBBLE] = bound->bubble_s;
    part_s[PART_REST] = fmax(0, candidate->quiet.step_time_s - bound->kernels_s - bound->group_s - bound->bubble_s);
}

struct degrees {
    int64_t tensor, context, pipeline, chunks, expert, data;
};

static struct degrees degrees_of(const struct scenario_point *point)
{
    const struct parallelism_options *parallel = &point->options.strategy.parallelism;
    return (struct degrees){model_tensor_ranks(&parallel->model), model_context_ranks(&parallel->model),
        parallel->pipeline, parallel->virtual_stages, model_expert_ranks(&parallel->model),
        strategy_data_ranks(parallel, point->options.cluster.gpus)};
}

static void integer(struct table *table, const char *name, bool known, int64_t value)
{
    table_number(table, name, "", 0, known ? (double)value : TABLE_UNKNOWN);
}

/* No layout: unknown. */
static void layout_columns(struct table *table, const struct tune_candidate *candidate)
{
    struct degrees at = degrees_of(&candidate->point);
    bool known = candidate->is_layout;
    integer(table, "tp", known, at.tensor);
    integer(table, "cp", known, at.context);
    integer(table, "pp", known, at.pipeline);
    integer(table, "vp", known, at.chunks);
    integer(table, "ep", known, at.expert);
    integer(table, "dp", known, at.data);
}

/* Kernels of the stage with most work as fast as alone, collectives of tensor, context and expert groups that they wait
 * for, the bubble, and what the simulation adds to that bound (study/bound.h). */
static void layout_shares(struct table *table, const struct tune_candidate *candidate)
{
    static const char *const heads[PART_COUNT] = {"kernels", "tp cp ep", "bubble", "rest"};
    double part_s[PART_COUNT];
    parts_of(part_s, candidate);
    for (int p = 0; p < PART_COUNT; p++)
        table_number(table, heads[p], "% of step", 1,
            candidate->is_layout ? 100 * part_s[p] / candidate->quiet.step_time_s : TABLE_UNKNOWN);
}

/* The same for programs; no layout: 0. */
static void layout_cells(struct rows *rows, const struct tune_candidate *candidate)
{
    bool known = candidate->is_layout;
    struct degrees at = known ? degrees_of(&candidate->point) : (struct degrees){0};
    rows_int(rows, COLUMN("tensor"), at.tensor);
    rows_int(rows, COLUMN("context"), at.context);
    rows_int(rows, COLUMN("pipeline"), at.pipeline);
    rows_int(rows, COLUMN("virtual"), at.chunks);
    rows_int(rows, COLUMN("expert"), at.expert);
    rows_int(rows, COLUMN("data"), at.data);
    rows_real(rows, COLUMN("bound_step_s"), known, candidate->bound.step_s);
    rows_real(rows, COLUMN("bound_kernels_s"), known, candidate->bound.kernels_s);
    rows_real(rows, COLUMN("bound_groups_s"), known, candidate->bound.group_s);
    rows_real(rows, COLUMN("bound_bubble_s"), known, candidate->bound.bubble_s);
}

/* Layouts that differ in more than the chunks of a stage. */
static bool differs(const struct tune_candidate *a, const struct tune_candidate *b)
{
    struct degrees one = degrees_of(&a->point), two = degrees_of(&b->point);
    const struct train_options *train = &a->point.options.strategy.train, *other = &b->point.options.strategy.train;
    return one.tensor != two.tensor || one.context != two.context || one.pipeline != two.pipeline ||
           one.expert != two.expert || train->micro_batch != other->micro_batch ||
           train->activation_checkpointing != other->activation_checkpointing;
}

void tune_name(FILE *out, const struct tune_candidate *candidate)
{
    struct degrees at = degrees_of(&candidate->point);
    const struct train_options *train = &candidate->point.options.strategy.train;
    if (candidate->is_layout)
        fprintf(out, "tp %d", (int)at.tensor);
    else
        fputs(strategy_label(&candidate->point.options.strategy), out);
    if (at.context > 1)
        fprintf(out, ", cp %d", (int)at.context);
    if (candidate->is_layout)
        fprintf(out, ", pp %d", (int)at.pipeline);
    if (at.chunks > 1)
        fprintf(out, ", vp %d", (int)at.chunks);
    if (at.expert > 1)
        fprintf(out, ", ep %d", (int)at.expert);
    fprintf(out, ", micro-batch %d, checkpointing %s", (int)train->micro_batch,
        checkpointing_names[train->activation_checkpointing]);
}

/* Why another one is slower: the part that is longer by most, and what is shorter, if anything is. */
static void print_slower(FILE *out, const struct tune_candidate *best, const struct tune_candidate *other)
{
    double of_best[PART_COUNT], of_other[PART_COUNT], step_s = best->quiet.step_time_s;
    int most = 0, least = 0;
    parts_of(of_best, best);
    parts_of(of_other, other);
    for (int p = 1; p < PART_COUNT; p++) {
        most = of_other[p] - of_best[p] > of_other[most] - of_best[most] ? p : most;
        least = of_other[p] - of_best[p] < of_other[least] - of_best[least] ? p : least;
    }
    fputs("  ", out);
    tune_name(out, other);
    fprintf(out, ": %+.1f %%; %s %+.1f %%", 100 * (other->quiet.step_time_s / step_s - 1), part_names[most],
        100 * (of_other[most] - of_best[most]) / step_s);
    if (of_other[least] < of_best[least])
        fprintf(out, ", %s %+.1f %%", part_names[least], 100 * (of_other[least] - of_best[least]) / step_s);
    fprintf(out, "; %.1f GiB\n", other->quiet.peak_bytes / 0x1p30);
}

/* Layouts of the base that do not fit, and could have been faster. */
static int count_unfit(const struct tune *tune, const struct tune_candidate *best)
{
    int n = 0;
    for (int i = 0; i < tune->candidates.n; i++) {
        const struct tune_candidate *at = &tune->candidates.at[i];
        bool unfit = at->state == TUNE_PRUNED || at->state == TUNE_OOM;
        n += at->is_layout && unfit && at->base == best->base && at->bound.step_s > 0 &&
             at->bound.step_s < best->quiet.step_time_s;
    }
    return n;
}

/* Why the first of an order is that, beside those behind it. Nothing where it is no layout. */
static void print_why(FILE *out, const struct tune *tune, const int *order, int n)
{
    enum { NEXT = 3 };
    const struct tune_candidate *best = &tune->candidates.at[order[0]], *named[NEXT + 1] = {best};
    double part_s[PART_COUNT];
    int others = 1, unfit = count_unfit(tune, best);
    if (!best->is_layout)
        return;
    parts_of(part_s, best);
    fputs("\nwhy: of its step, ", out);
    for (int p = 0; p < PART_COUNT; p++)
        fprintf(out, "%s%s %.1f %%", p == 0 ? "" : ", ", part_names[p], 100 * part_s[p] / best->quiet.step_time_s);
    fprintf(
        out, "; %.1f GiB of %.1f\n", best->quiet.peak_bytes / 0x1p30, best->point.hw.gpu.hbm_capacity.value / 0x1p30);
    for (int i = 1; i < n && others <= NEXT; i++) {
        const struct tune_candidate *at = &tune->candidates.at[order[i]];
        bool is_new = at->is_layout && at->base == best->base;
        for (int k = 0; k < others && is_new; k++)
            is_new = differs(named[k], at);
        if (!is_new)
            continue;
        if (others == 1)
            fputs("the next that differ in more than vp, by what they add to its step:\n", out);
        print_slower(out, best, at);
        named[others++] = at;
    }
    if (unfit > 0)
        fprintf(out, "%d that do not fit could be faster by their bounds\n", unfit);
}

/* ---- what a table and records share ---- */

static const char *prefetch(const struct scenario_point *point)
{
    const struct strategy_options *strategy = &point->options.strategy;
    if (strategy->kind != STRATEGY_FSDP)
        return "-";
    if (strategy->fsdp.forward_prefetch)
        return "forward + PRE";
    return backward_prefetch_names[strategy->fsdp.backward_prefetch];
}

/* What the scenario sweeps and the search does not settle. */
static void find_swept(
    struct vary *out, const struct scenario_set *set, const struct tune_candidate *any, struct arena *arena)
{
    struct tune_settings settings = tune_settings(any, arena);
    struct vary all;
    vary_find_unnamed(&all, set, arena);
    *out = (struct vary){0};
    for (int i = 0; i < all.options.n; i++)
        if (!tune_sets(&settings, all.options.at[i].path))
            vec_push(&out->options, all.options.at[i]);
    vec_free(&all.options);
}

static const double GTOKENS = 1e9, S_PER_DAY = 86400;

static double days(const struct tune_print *print, const struct tune_rates *rates)
{
    return print->command->tokens.n / rates->tokens_per_s / S_PER_DAY;
}

/* Of an amount for 10^9 tokens that of all. */
static double of_all(const struct tune_print *print, double per_gtokens)
{
    return per_gtokens * print->command->tokens.n / GTOKENS;
}

/* The points of the first variant: what differs between variants is no sweep. */
static struct scenario_set one_variant(const struct scenario_set *set, const struct tune_command *command)
{
    struct scenario_set one = *set;
    one.n_points /= command->options.variants > 1 ? command->options.variants : 1;
    return one;
}

/* ---- the table ---- */

/* Of the candidate and those that it represents. */
static const char *prefetches(const struct tune_print *print, int index)
{
    const char *text = prefetch(&print->tune->candidates.at[index].point);
    for (int i = 0; i < print->tune->candidates.n; i++)
        if (i != index && print->tune->candidates.at[i].represents == index)
            text = arena_printf(print->arena, "%s, %s", text, prefetch(&print->tune->candidates.at[i].point));
    return text;
}

/* What a terminal without room leaves out last, first: how a column is ranked for table_spare(). */
enum {
    SPARE_GPU = 1,
    SPARE_GROUP,
    SPARE_ACCUM,
    SPARE_QUIET,
    SPARE_PREFETCH,
    SPARE_RETRIES,
    SPARE_INTERVAL,
    SPARE_GPU_HOURS,
    SPARE_ENERGY
};

/* All candidates are on the same card. */
static bool one_gpu(const struct tune *tune)
{
    for (int i = 1; i < tune->candidates.n; i++)
        if (strcmp(tune->candidates.at[i].point.hw.gpu.name, tune->candidates.at[0].point.hw.gpu.name) != 0)
            return false;
    return true;
}

static bool all_layouts(const struct tune *tune)
{
    for (int i = 0; i < tune->candidates.n; i++)
        if (!tune->candidates.at[i].is_layout)
            return false;
    return true;
}

static void number(struct table *table, const char *name, const char *unit, int spare, int digits, double value)
{
    table_number(table, name, unit, digits, value);
    table_spare(table, spare);
}

static const char *stack_of(const struct scenario_point *point, struct arena *arena)
{
    return point->options.stack_path ? words_stem(point->options.stack_path, arena) : "none";
}

/* To as many digits as the speed's interval has. */
static void sure_cell(const struct tune_print *print, struct table *table, const char *name, const char *unit,
    int spare, const struct regime *regime, double value, int digits)
{
    table_number_as(table, name, unit, isnan(value) ? "-" : sure_number(print->arena, regime, value, digits));
    table_spare(table, spare);
}

/* What the candidate is. */
static void name_candidate(const struct tune_print *print, struct table *table, int index)
{
    const struct scenario_point *point = &print->tune->candidates.at[index].point;
    const struct strategy_options *strategy = &point->options.strategy;
    bool grouped = strategy->kind == STRATEGY_FSDP && strategy->fsdp.sharding_group_size > 0;
    table_text(table, "GPU", "", point->hw.gpu.name);
    table_spare(table, one_gpu(print->tune) ? SPARE_GPU : 0);
    table_number(table, "GPUs", "", 0, (double)point->options.cluster.gpus);
    table_text(table, "strategy", "", strategy_label(strategy));
    if (print->command->options.variants > 1)
        table_text(table, "stack", "", stack_of(point, print->arena));
    for (int i = 0; i < print->swept.options.n; i++) {
        const struct vary_option *option = &print->swept.options.at[i];
        table_text(table, option->path, "", vary_short(option, &point->options, print->arena));
    }
    if (!all_layouts(print->tune)) {
        number(table, "group", "GPUs", SPARE_GROUP, 0,
            grouped ? (double)strategy->fsdp.sharding_group_size : TABLE_UNKNOWN);
        table_text(table, "prefetch", "", prefetches(print, index));
        table_spare(table, SPARE_PREFETCH);
    }
    if (print->tune->quiet_only)
        layout_columns(table, &print->tune->candidates.at[index]);
    table_text(table, "checkpoint", "", checkpointing_names[strategy->train.activation_checkpointing]);
    table_number(table, "batch", "/GPU", 0, (double)strategy->train.micro_batch);
    number(table, "accum", "", SPARE_ACCUM, 0, (double)strategy_batch(&strategy->train).micro_batches);
}

static void add_row(const struct tune_print *print, struct table *table, int index)
{
    const struct tune_candidate *candidate = &print->tune->candidates.at[index];
    const struct tune_rates *rates = candidate->finalist ? &candidate->noisy : &candidate->quiet;
    const char *counted = words_counted_all(print->set);
    double usd = rates->usd_per_gtokens > 0 ? rates->usd_per_gtokens : TABLE_UNKNOWN;
    const struct regime *regime = sure_of(print->sure, &candidate->point, REGIME_OF_SPEED, rates->waiting_share);
    struct arena *arena = print->arena;
    table_row(table);
    name_candidate(print, table, index);
    sure_cell(print, table, arena_printf(arena, "%s/s", counted), "of the job", 0, regime, rates->tokens_per_s, 0);
    table_number_as(table, "90 %", "of the job", sure_range(arena, regime, rates->tokens_per_s, 0));
    table_spare(table, SPARE_INTERVAL);
    sure_cell(print, table, "TFLOPS", "/GPU", 0, regime, rates->tflops_per_gpu, 1);
    if (print->noise)
        sure_cell(print, table, "no noise", "TFLOPS", SPARE_QUIET, regime, candidate->quiet.tflops_per_gpu, 1);
    if (print->retries)
        number(table, "retries", "/step", SPARE_RETRIES, 1, rates->retries);
    table_number(table, "HBM peak", "GiB", 1, rates->peak_bytes / 0x1p30);
    if (print->tune->quiet_only)
        layout_shares(table, candidate);
    if (print->tokens) {
        sure_cell(print, table, "time", "days", 0, regime, days(print, rates), 1);
        sure_cell(print, table, "GPU-h", "", SPARE_GPU_HOURS, regime, of_all(print, rates->gpu_hours_per_gtokens), 0);
        sure_cell(print, table, "cost", "$", 0, regime, of_all(print, usd), 0);
        sure_cell(print, table, "energy", "MWh", SPARE_ENERGY, regime, of_all(print, rates->kwh_per_gtokens) / 1e3, 1);
    } else {
        sure_cell(print, table, "GPU-h", arena_printf(arena, "/10^9 %s", counted), SPARE_GPU_HOURS, regime,
            rates->gpu_hours_per_gtokens, 1);
        sure_cell(print, table, "cost", "$/10^9", 0, regime, usd, 2);
        sure_cell(print, table, "energy", "kWh/10^9", SPARE_ENERGY, regime, rates->kwh_per_gtokens, 1);
    }
}

/* The first rows of an order. */
static void print_best(struct tune_print *print, const int *order, int n, int rows)
{
    struct table table = {0};
    print->noise = print->retries = false;
    for (int i = 0; i < n && i < rows; i++) {
        const struct tune_candidate *candidate = &print->tune->candidates.at[order[i]];
        print->noise =
            print->noise || (candidate->finalist && candidate->noisy.step_time_s != candidate->quiet.step_time_s);
        print->retries = print->retries || candidate->noisy.retries > 0;
    }
    for (int i = 0; i < n && i < rows; i++)
        add_row(print, &table, order[i]);
    table_finish(print->out, &table);
}

static void print_set(FILE *out, const char *key, const char *value, struct arena *arena)
{
    fprintf(out, " --set %s", words_shell(arena_printf(arena, "%s=%s", key, value), arena));
}

/* The candidate as a command: what --set gave beside the settings searched, these, what the scenario sweeps. */
static void print_command(const struct tune_print *print, int index)
{
    FILE *out = print->out;
    struct arena *arena = print->arena;
    const struct tune_command *command = print->command;
    const struct tune_candidate *candidate = &print->tune->candidates.at[index];
    struct tune_settings settings = tune_settings(candidate, arena);
    struct vary vary;
    vary_find(&vary, print->set, arena);
    fprintf(out, "\nthe first: flopcast run %s", words_shell(command->file, arena));
    for (int i = 0; i < command->overrides.list.n; i++) {
        const struct scenario_override *given = &command->overrides.list.at[i];
        const char *path = config_key_path(&scenario_table, given->key, arena); /* --set may have used an alias */
        bool is_set = tune_sets(&settings, path);
        for (int k = 0; k < vary.options.n && !is_set; k++)
            is_set = strcmp(vary.options.at[k].path, path) == 0;
        if (!is_set)
            print_set(out, given->key, given->value, arena);
    }
    for (int i = 0; i < settings.n; i++)
        print_set(out, settings.list[i].key, settings.list[i].value, arena);
    for (int i = 0; i < vary.options.n; i++) {
        const struct vary_option *option = &vary.options.at[i];
        if (!tune_sets(&settings, option->path))
            print_set(out, option->path, vary_text(option, &candidate->point.options, arena), arena);
    }
    fputc('\n', out);
    vec_free(&vary.options);
}

/* Why there is nothing to rank. */
static void print_none(FILE *out, const struct tune *tune)
{
    int left = tune->count[TUNE_LEFT_OUT];
    if (left > 0)
        fprintf(out, "none of the %d tried fits; %d left out by --limit: take a larger one, or a smaller --max-batch\n",
            tune->count[TUNE_OOM] + tune->count[TUNE_PRUNED], left);
    else
        fputs("nothing fits: take more or larger GPUs, a shorter train.seq_len, or train.attention=flash\n", out);
}

static void print_counts(FILE *out, const struct tune_command *command, const struct tune *tune)
{
    int tried = tune->count[TUNE_RAN] + tune->count[TUNE_OOM];
    const char *by = tried < command->options.max_simulations ? ": stopped" : " by --limit";
    fprintf(out, "\n%d candidate%s: %d ran, %d out of memory, %d pruned: cannot fit", tune->candidates.n,
        plural(tune->candidates.n), tune->count[TUNE_RAN], tune->count[TUNE_OOM], tune->count[TUNE_PRUNED]);
    if (tune->count[TUNE_SLOWER] > 0)
        fprintf(out, ", %d slower by their bounds", tune->count[TUNE_SLOWER]);
    if (tune->count[TUNE_LEFT_OUT] > 0)
        fprintf(out, ", %d left out%s", tune->count[TUNE_LEFT_OUT], by);
    if (tune->n_refused > 0)
        fprintf(
            out, "\n%d more %s not possible: %s", tune->n_refused, tune->n_refused == 1 ? "is" : "are", tune->refusal);
    fputs("\n", out);
}

/* The GPUs of the candidates that ran, with or without a price; by the first candidate of each. */
static const char *gpu_names(const struct tune_print *print, bool priced)
{
    const char *names = "";
    for (int i = 0; i < print->tune->candidates.n; i++) {
        const struct tune_candidate *candidate = &print->tune->candidates.at[i];
        const char *name = candidate->point.hw.gpu.name;
        if (candidate->state == TUNE_RAN && (candidate->point.hw.gpu.price.value > 0) == priced && !strstr(names, name))
            names = arena_printf(print->arena, "%s%s%s", names, *names ? ", " : "", name);
    }
    return names;
}

static bool same_source(const struct hw_gpu *a, const struct hw_gpu *b)
{
    return strcmp(a->price.source, b->price.source) == 0;
}

/* A line for each source of prices: what it says of which GPU. */
static void print_prices(const struct tune_print *print)
{
    VEC(const struct hw_gpu *) known = {0};
    for (int i = 0; i < print->tune->candidates.n; i++) {
        const struct tune_candidate *candidate = &print->tune->candidates.at[i];
        const struct hw_gpu *gpu = &candidate->point.hw.gpu;
        bool is_known = candidate->state != TUNE_RAN || !(gpu->price.value > 0);
        for (int k = 0; k < known.n && !is_known; k++)
            is_known = strcmp(known.at[k]->name, gpu->name) == 0 && known.at[k]->price.value == gpu->price.value;
        if (!is_known)
            vec_push(&known, gpu);
    }
    for (int i = 0; i < known.n; i++) {
        const char *separator = "price: ";
        bool printed = false;
        for (int k = 0; k < i; k++)
            printed = printed || same_source(known.at[k], known.at[i]);
        for (int k = i; k < known.n && !printed; k++)
            if (same_source(known.at[k], known.at[i])) {
                fprintf(print->out, "%s%s %g $/h", separator, known.at[k]->name, known.at[k]->price.value);
                separator = ", ";
            }
        if (!printed)
            fprintf(print->out, ": %s\n", known.at[i]->price.source);
    }
    vec_free(&known);
}

static void print_title(const struct tune_print *print, const char *what)
{
    fprintf(print->out, "%s", what);
    if (print->tokens)
        fprintf(print->out, ", for %s %s", print->command->tokens.text, words_counted_all(print->set));
    fputs("\n\n", print->out);
}

static void print_noise(const struct tune_print *print)
{
    if (print->tune->quiet_only)
        fputs("\nwithout noise (GPUs alike, no jitter); `flopcast run` has it\n", print->out);
    if (print->noise)
        fprintf(print->out,
            "\nthe %d best without noise (GPUs alike, no jitter) were run with it, as `flopcast run` has it\n",
            print->tune->n_finalists);
}

/* The best of each strategy and stack, which the search finds of all of them. */
static void print_bests(struct tune_print *print, int *order)
{
    int n = tune_rank_quiet(order, print->tune, TUNE_BY_SPEED), kept = 0;
    for (int i = 0; i < n; i++) {
        bool known = false;
        for (int k = 0; k < kept; k++)
            known = known || print->tune->candidates.at[order[k]].base == print->tune->candidates.at[order[i]].base;
        if (!known)
            order[kept++] = order[i];
    }
    fputc('\n', print->out);
    print_title(print, "the best of each strategy and stack");
    print_best(print, order, kept, kept);
}

/* "best by speed", or of what was tried. */
static const char *best_title(const struct tune_print *print, int by)
{
    const struct tune *tune = print->tune;
    const char *title = arena_printf(print->arena, "best by %s", tune_order_names[by]);
    int tried = tune->count[TUNE_RAN] + tune->count[TUNE_OOM];
    if (tune->count[TUNE_LEFT_OUT] == 0)
        return title;
    return arena_printf(print->arena, "best of the %d tried, by %s", tried, tune_order_names[by]);
}

/* The order asked for; what it leaves out because it has no price; the best by the other order, if that is another. */
static void print_orders(struct tune_print *print, int *order)
{
    const struct tune *tune = print->tune;
    int by = print->command->by, top = print->command->top, n = tune_rank(order, tune, (enum tune_order)by);
    bool all = by == TUNE_BY_SPEED, none_priced = !all && n == 0;
    const char *unpriced = gpu_names(print, false);
    int first = -1;
    if (n > 0) {
        first = order[0];
        print_title(print, best_title(print, by));
        print_best(print, order, n, top);
        print_noise(print);
        print_why(print->out, tune, order, n);
        print_command(print, first);
    }
    if (!all && (n = tune_rank(order, tune, TUNE_UNPRICED)) > 0) {
        fputs(first >= 0 ? "\n" : "", print->out);
        print_title(print, arena_printf(print->arena, "no price, so by GPU-hours: %s", unpriced));
        print_best(print, order, n, top);
        if (none_priced) {
            first = order[0];
            print_noise(print);
            print_command(print, first);
        }
    }
    int other = !all ? TUNE_BY_SPEED : *gpu_names(print, true) ? TUNE_BY_COST : TUNE_UNPRICED;
    if (tune_rank(order, tune, (enum tune_order)other) > 0 && order[0] != first) {
        fputc('\n', print->out);
        print_title(print, other == TUNE_BY_SPEED  ? "best by speed"
                           : other == TUNE_BY_COST ? "best by cost"
                                                   : "fewest GPU-hours");
        print_best(print, order, 1, 1);
    }
    if (print->command->options.variants > 1)
        print_bests(print, order);
    if (*unpriced)
        fprintf(print->out, "\nno price: %s; --price NAME=DOLLARS an hour gives one\n", unpriced);
}

void tune_print_table(FILE *out, const struct tune_command *command, const struct scenario_set *set,
    const struct tune *tune, struct arena *arena)
{
    const struct scenario_set one = one_variant(set, command);
    struct sure sure = {0};
    struct tune_print print = {.out = out,
        .command = command,
        .set = &one,
        .tune = tune,
        .tokens = command->tokens.n > 0,
        .sure = &sure,
        .arena = arena};
    int *order = xcalloc((size_t)tune->candidates.n + 1, sizeof *order);
    int n = tune_rank(order, tune, TUNE_BY_SPEED);
    if (n == 0)
        print_none(out, tune);
    else {
        find_swept(&print.swept, &one, &tune->candidates.at[order[0]], arena);
        print_orders(&print, order);
        sure_print(out, &sure);
    }
    print_counts(out, command, tune);
    print_prices(&print);
    if (tune->candidates.n > 0)
        tune_print_held(out, command, tune, arena);
    sure_end(&sure);
    vec_free(&print.swept.options);
    free(order);
}

/* ---- records ---- */

/* prefix: of the names of all cells. */
static void add_rates(
    const struct tune_print *print, struct rows *rows, const char *prefix, bool known, const struct tune_rates *rates)
{
    bool priced = known && rates->usd_per_gtokens > 0;
    const struct {
        const char *name;
        bool known;
        double value;
    } cells[] = {{"step_time_s", known, rates->step_time_s}, {"tflops_per_gpu", known, rates->tflops_per_gpu},
        {"tokens_per_s", known, rates->tokens_per_s}, {"gpu_hours_per_gtokens", known, rates->gpu_hours_per_gtokens},
        {"usd_per_gtokens", priced, rates->usd_per_gtokens}, {"kwh_per_gtokens", known, rates->kwh_per_gtokens},
        {"alloc_retries_a_step", known, rates->retries}, {"days", known, known ? days(print, rates) : 0},
        {"usd", priced, priced ? of_all(print, rates->usd_per_gtokens) : 0}};
    enum { ALL = sizeof cells / sizeof *cells, OF_TOKENS = 2 };
    for (int i = 0; i < (print->tokens ? ALL : ALL - OF_TOKENS); i++)
        rows_real(
            rows, COLUMN(arena_printf(print->arena, "%s%s", prefix, cells[i].name)), cells[i].known, cells[i].value);
}

static void add_candidate(const struct tune_print *print, struct rows *rows, const struct tune_candidate *candidate)
{
    const struct scenario_point *point = &candidate->point;
    const struct strategy_options *strategy = &point->options.strategy;
    const struct fsdp_options *fsdp = strategy->kind == STRATEGY_FSDP ? &strategy->fsdp : NULL;
    const char *forward = fsdp && fsdp->forward_prefetch ? "true" : "false";
    bool ran = candidate->state == TUNE_RAN;
    rows_next(rows);
    rows_text(rows, COLUMN("model"), point->model.shape.name);
    rows_text(rows, COLUMN("cluster"), point->hw.cluster.name);
    rows_text(rows, COLUMN("swept"), vary_assignments(&print->swept, point, print->arena));
    rows_int(rows, COLUMN("gpus"), point->options.cluster.gpus);
    rows_text(rows, COLUMN("strategy"), strategy_label(strategy));
    rows_int(rows, COLUMN("sharding_group_size"), fsdp ? fsdp->sharding_group_size : 0);
    rows_text(rows, COLUMN("backward_prefetch"), fsdp ? backward_prefetch_names[fsdp->backward_prefetch] : NULL);
    rows_text(rows, COLUMN("forward_prefetch"), fsdp ? forward : NULL);
    rows_text(rows, COLUMN("activation_checkpointing"), checkpointing_names[strategy->train.activation_checkpointing]);
    rows_int(rows, COLUMN("micro_batch"), strategy->train.micro_batch);
    rows_int(rows, COLUMN("grad_accum"), strategy_batch(&strategy->train).micro_batches);
    rows_text(rows, COLUMN("status"), tune_state_names[candidate->state]);
    rows_real(rows, COLUMN("least_bytes"), true, candidate->least_bytes);
    rows_real(rows, COLUMN("peak_allocated_bytes"), ran, candidate->quiet.peak_bytes);
    if (print->tune->quiet_only)
        layout_cells(rows, candidate);
    if (print->command->options.variants > 1)
        rows_text(rows, COLUMN("stack"), stack_of(point, print->arena));
    add_rates(print, rows, "", ran, &candidate->quiet);
    add_rates(print, rows, "noisy_", ran && candidate->finalist, &candidate->noisy);
    for (int i = 0; i < print->swept.options.n; i++)
        vec_push(&rows->cells, vary_cell(&print->swept.options.at[i], &point->options));
}

/* Rows as the table has them; then those that ran and are no finalists; then all others, as they were made. */
static int order_of_records(int *order, const struct tune_command *command, const struct tune *tune)
{
    bool *taken = xcalloc((size_t)tune->candidates.n + 1, sizeof *taken);
    int *ranked = xcalloc((size_t)tune->candidates.n + 1, sizeof *ranked), n = 0;
    const int orders[] = {command->by, command->by == TUNE_BY_COST ? TUNE_UNPRICED : command->by};
    for (int k = 0; k < 4; k++) {
        enum tune_order by = (enum tune_order)orders[k % 2];
        int all = (k < 2 ? tune_rank : tune_rank_quiet)(ranked, tune, by);
        for (int i = 0; i < all; i++)
            if (!taken[ranked[i]]) {
                taken[ranked[i]] = true;
                order[n++] = ranked[i];
            }
    }
    for (int i = 0; i < tune->candidates.n; i++)
        if (!taken[i])
            order[n++] = i;
    free(taken);
    free(ranked);
    return n;
}

void tune_print_records(FILE *out, const struct tune_command *command, const struct scenario_set *set,
    const struct tune *tune, struct arena *arena)
{
    const struct scenario_set one = one_variant(set, command);
    struct tune_print print = {
        .out = out, .command = command, .set = &one, .tune = tune, .tokens = command->tokens.n > 0, .arena = arena};
    if (tune->candidates.n > 0)
        find_swept(&print.swept, &one, &tune->candidates.at[0], arena);
    struct rows rows = {0};
    int *order = xcalloc((size_t)tune->candidates.n + 1, sizeof *order), n = order_of_records(order, command, tune);
    for (int i = 0; i < n; i++)
        add_candidate(&print, &rows, &tune->candidates.at[order[i]]);
    rows_finish(out, &rows, command->format);
    free(order);
    vec_free(&print.swept.options);
}
