/* What `flopcast tune` prints: the best in a sentence, tables by order, the command that runs
 * the first, counts and prices; or a record for each candidate.
 *
 * A table has columns only for what differs or was searched: the GPU where there are several,
 * what the scenario sweeps and the search does not set, noise where it changed something. What
 * is subtle: candidates that differ only in prefetch are one row, represented by the fastest;
 * layouts that differ only in chunks of a stage follow a better one and are folded away. A table
 * of GPUs without a price is by GPU-hours, beside the one by cost. Numbers are rounded to what
 * the interval of the speed makes sense of. */
#include "cli/tune.h"

#include "rows/rows.h"
#include "rows/sure.h"
#include "rows/vary.h"
#include "rows/words.h"

#include <inttypes.h>
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

/* ---- what a table and records share ---- */

static const char *tune_print_prefetch(const struct scenario_point *point)
{
    const struct strategy_options *strategy = &point->options.strategy;
    if (strategy->kind != STRATEGY_FSDP)
        return "-";
    if (strategy->fsdp.forward_prefetch)
        return "forward + PRE";
    return backward_prefetch_names[strategy->fsdp.backward_prefetch];
}

/* What the scenario sweeps and the search does not settle. Settings that a candidate sets are
 * columns of the search already. */
static void find_swept(struct vary *out, const struct scenario_set *set,
    const struct tune_candidate *any, struct arena *arena)
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

static const double GTOKENS = 1e9;

static double days(const struct tune_print *print, const struct tune_rates *rates)
{
    return print->command->tokens.n / rates->tokens_per_s / S_PER_DAY;
}

/* Of an amount for 10^9 tokens that of all, where it is said how many these are. */
static double of_all(const struct tune_print *print, double per_gtokens)
{
    return print->tokens ? per_gtokens * print->command->tokens.n / GTOKENS : per_gtokens;
}

/* ---- the table ---- */

/* Of the candidate and those that it represents. */
static const char *prefetches(const struct tune_print *print, int index)
{
    const char *text = tune_print_prefetch(&print->tune->candidates.at[index].point);
    for (int i = 0; i < print->tune->candidates.n; i++)
        if (i != index && print->tune->candidates.at[i].represents == index)
            text = arena_printf(print->arena, "%s, %s", text,
                tune_print_prefetch(&print->tune->candidates.at[i].point));
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
    SPARE_GPU_HOURS,
    SPARE_ENERGY
};

/* All candidates are on the same card. */
static bool one_gpu(const struct tune *tune)
{
    for (int i = 1; i < tune->candidates.n; i++)
        if (strcmp(tune->candidates.at[i].point.hw.gpu.name,
                tune->candidates.at[0].point.hw.gpu.name) != 0)
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

static const char *stack_of(const struct scenario_point *point, struct arena *arena)
{
    return point->options.stack_path ? words_stem(point->options.stack_path, arena) : "none";
}

/* An axis as a cell: for programs its name is the last part of its path, for people its label.
 * Where it does not count: 0, or nothing; "-". */
static void add_axis(struct rows *rows, enum tune_axis_index index,
    const struct scenario_point *point, bool programs, bool people)
{
    const struct tune_axis *axis = &tune_axes[index];
    struct rows_column column = {.name = programs ? strrchr(axis->path, '.') + 1 : NULL,
        .heading = people ? axis->label : NULL,
        .unit = axis->unit};
    bool counts = tune_axis_counts(index, point);
    const char *text = counts ? tune_axis_text(index, point, &rows->table.numbers) : NULL;
    if (axis->size != sizeof(int64_t))
        rows_text(rows, column, text);
    else
        rows_real_as(rows, column, true, counts ? (double)tune_axis_value(index, point) : 0,
            counts ? text : "-");
}

/* Degrees of a layout; the rest of the GPUs are ranks of data parallelism. */
static void add_degrees(
    struct rows *rows, const struct tune_candidate *candidate, bool programs, bool people)
{
    const struct scenario_point *point = &candidate->point;
    bool known = candidate->is_layout;
    for (enum tune_axis_index i = TUNE_TENSOR; i < TUNE_AXES; i++)
        if (tune_axes[i].label)
            add_axis(rows, i, point, programs, people);
    double ranks = (double)strategy_data_ranks(
        &point->options.strategy.parallelism, point->options.cluster.gpus);
    rows_real(rows, COLUMN(NULL, people ? "dp" : NULL), known, ranks);
    if (programs)
        rows_real(rows, COLUMN("data"), true, known ? ranks : 0);
}

/* What only people see of what the candidate is. */
static void add_looks(const struct tune_print *print, struct rows *rows, int index)
{
    const struct tune_candidate *candidate = &print->tune->candidates.at[index];
    const struct strategy_options *strategy = &candidate->point.options.strategy;
    int64_t group = strategy->kind == STRATEGY_FSDP ? strategy->fsdp.sharding_group_size : 0;
    if (print->command->options.variants > 1)
        rows_text(rows, COLUMN(NULL, "stack"), stack_of(&candidate->point, print->arena));
    for (int i = 0; i < print->swept.options.n; i++) {
        const struct vary_option *option = &print->swept.options.at[i];
        rows_text(rows, COLUMN(NULL, option->path),
            vary_short(option, &candidate->point.options, print->arena));
    }
    if (!all_layouts(print->tune)) {
        rows_real(
            rows, COLUMN(NULL, "group", "GPUs", .spare = SPARE_GROUP), group > 0, (double)group);
        rows_text(
            rows, COLUMN(NULL, "prefetch", .spare = SPARE_PREFETCH), prefetches(print, index));
    }
    if (print->tune->quiet_only)
        add_degrees(rows, candidate, false, true);
}

/* For people, to as many digits as the speed's interval has. */
static void add_sure(const struct tune_print *print, struct rows *rows, struct rows_column column,
    const struct sure_range *range, double value)
{
    rows_real_as(rows, column, !isnan(value), value,
        isnan(value) ? "" : sure_number(print->arena, range, value, column.digits));
}

/* What people see of what it gives: of a finalist by its run with noise. */
static void add_gains(
    const struct tune_print *print, struct rows *rows, const struct tune_candidate *candidate)
{
    const struct tune_rates *rates = candidate->finalist ? &candidate->noisy : &candidate->quiet;
    const char *counted = words_counted_all(print->set);
    bool all = print->tokens;
    const struct sure_range *range = sure_of_speed(print->sure, &candidate->point, rates->mfu);
    struct arena *arena = print->arena;
    add_sure(print, rows, COLUMN(NULL, arena_printf(arena, "%s/s", counted), "of the job"), range,
        rates->tokens_per_s);
    rows_number_as(
        rows, "TFLOPS", "/GPU (90 %)", sure_with_range(arena, range, rates->tflops_per_gpu, 1));
    if (print->noise)
        add_sure(print, rows, COLUMN(NULL, "no noise", "TFLOPS", .spare = SPARE_QUIET, .digits = 1),
            range, candidate->quiet.tflops_per_gpu);
    if (print->retries)
        rows_real(rows, COLUMN(NULL, "retries", "/step", .spare = SPARE_RETRIES, .digits = 1), true,
            rates->retries);
    rows_real(rows, COLUMN(NULL, "HBM peak", "GiB", .scale = 1 / 0x1p30, .digits = 1), true,
        rates->peak_bytes);
    if (print->tune->quiet_only)
        tune_layout_shares(rows, candidate);
    if (all)
        add_sure(print, rows, COLUMN(NULL, "time", "days", .digits = 1), range, days(print, rates));
    add_sure(print, rows,
        COLUMN(NULL, "GPU-h", all ? "" : arena_printf(arena, "/10^9 %s", counted),
            .spare = SPARE_GPU_HOURS, .digits = all ? 0 : 1),
        range, of_all(print, rates->gpu_hours_per_gtokens));
    add_sure(print, rows, COLUMN(NULL, "cost", all ? "$" : "$/10^9", .digits = all ? 0 : 2), range,
        rates->usd_per_gtokens > 0 ? of_all(print, rates->usd_per_gtokens) : TABLE_UNKNOWN);
    add_sure(print, rows,
        COLUMN(NULL, "energy", all ? "MWh" : "kWh/10^9", .spare = SPARE_ENERGY, .digits = 1), range,
        of_all(print, rates->kwh_per_gtokens) / (all ? 1e3 : 1));
}

/* For programs; prefix: of the names of all cells. */
static void add_rates(const struct tune_print *print, struct rows *rows, const char *prefix,
    bool known, const struct tune_rates *rates)
{
    bool priced = known && rates->usd_per_gtokens > 0;
    const struct {
        const char *name;
        bool known;
        double value;
    } cells[] = {{"step_time_s", known, rates->step_time_s},
        {"tflops_per_gpu", known, rates->tflops_per_gpu},
        {"tokens_per_s", known, rates->tokens_per_s},
        {"gpu_hours_per_gtokens", known, rates->gpu_hours_per_gtokens},
        {"usd_per_gtokens", priced, rates->usd_per_gtokens},
        {"kwh_per_gtokens", known, rates->kwh_per_gtokens},
        {"alloc_retries_a_step", known, rates->retries},
        {"days", known, known ? days(print, rates) : 0},
        {"usd", priced, priced ? of_all(print, rates->usd_per_gtokens) : 0}};
    enum { ALL = sizeof cells / sizeof *cells, OF_TOKENS = 2 };
    for (int i = 0; i < (print->tokens ? ALL : ALL - OF_TOKENS); i++)
        rows_real(rows, COLUMN(arena_printf(print->arena, "%s%s", prefix, cells[i].name)),
            cells[i].known, cells[i].value);
}

/* What the candidate is and gives: the columns of programs and of people, each in their order. */
static void tune_print_add_row(const struct tune_print *print, struct rows *rows, int index)
{
    const struct tune_candidate *candidate = &print->tune->candidates.at[index];
    const struct scenario_point *point = &candidate->point;
    const struct strategy_options *strategy = &point->options.strategy;
    bool people = print->command->format == RECORDS_TABLE, ran = candidate->state == TUNE_RAN;
    static const enum tune_axis_index own[] = {
        TUNE_GROUP, TUNE_BACKWARD, TUNE_FORWARD, TUNE_CHECKPOINTING, TUNE_BATCH};
    rows_next(rows);
    rows_text(rows, COLUMN("model"), point->model.shape.name);
    rows_text(rows, COLUMN("cluster"), point->hw.cluster.name);
    rows_text(rows, COLUMN("swept"), vary_assignments(&print->swept, point, print->arena));
    if (people)
        rows_text(rows, COLUMN(NULL, "GPU", .spare = one_gpu(print->tune) ? SPARE_GPU : 0),
            point->hw.gpu.name);
    add_axis(rows, TUNE_GPUS, point, true, true);
    rows_text(rows, COLUMN("strategy", "strategy"), strategy_label(strategy));
    if (people)
        add_looks(print, rows, index);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        add_axis(rows, own[i], point, true, true);
    rows_int(rows, COLUMN("grad_accum", "accum", .spare = SPARE_ACCUM),
        strategy_batch(&strategy->train).micro_batches);
    rows_text(rows, COLUMN("status"), tune_state_names[candidate->state]);
    rows_real(rows, COLUMN("least_bytes"), true, candidate->least_bytes);
    rows_real(rows, COLUMN("peak_allocated_bytes"), ran, candidate->quiet.peak_bytes);
    if (print->tune->quiet_only) {
        const struct bound *bound = &candidate->bound;
        bool known = candidate->is_layout;
        add_degrees(rows, candidate, true, false);
        rows_real(rows, COLUMN("bound_step_s"), known, bound->step_s);
        rows_real(rows, COLUMN("bound_kernels_s"), known, bound->kernels_s);
        rows_real(rows, COLUMN("bound_groups_s"), known, bound->group_s);
        rows_real(rows, COLUMN("bound_bubble_s"), known, bound->bubble_s);
    }
    if (print->command->options.variants > 1)
        rows_text(rows, COLUMN("stack"), stack_of(point, print->arena));
    add_rates(print, rows, "", ran, &candidate->quiet);
    add_rates(print, rows, "noisy_", ran && candidate->finalist, &candidate->noisy);
    for (int i = 0; i < print->swept.options.n; i++)
        vec_push(&rows->cells, vary_cell(&print->swept.options.at[i], &point->options));
    if (people)
        add_gains(print, rows, candidate);
}

static bool same_base(const struct tune_candidate *a, const struct tune_candidate *b)
{
    return a->base == b->base;
}

/* Layouts that differ in the chunks of a stage alone. */
static bool differ_in_chunks(const struct tune_candidate *a, const struct tune_candidate *b)
{
    return a->is_layout && same_base(a, b) &&
           !tune_axes_differ(&a->point, &b->point, TUNE_OF_CHUNKS);
}

/* Of those alike the first stays. How many stay. */
static int fold(const struct tune *tune, int *order, int n,
    bool (*alike)(const struct tune_candidate *, const struct tune_candidate *))
{
    int kept = 0;
    for (int i = 0; i < n; i++) {
        int k = 0;
        while (k < kept && !alike(&tune->candidates.at[order[k]], &tune->candidates.at[order[i]]))
            k++;
        if (k == kept)
            order[kept++] = order[i];
    }
    return kept;
}

/* The first rows of an order. */
static void tune_print_best(struct tune_print *print, const int *order, int n, int rows)
{
    struct rows table = {0};
    print->noise = print->retries = false;
    for (int i = 0; i < n && i < rows; i++) {
        const struct tune_candidate *candidate = &print->tune->candidates.at[order[i]];
        print->noise = print->noise || (candidate->finalist && candidate->noisy.step_time_s !=
                                                                   candidate->quiet.step_time_s);
        print->retries = print->retries || candidate->noisy.retries > 0;
    }
    for (int i = 0; i < n && i < rows; i++)
        tune_print_add_row(print, &table, order[i]);
    rows_finish(print->out, &table, RECORDS_TABLE);
}

/* What the command line gave, without what the search or the sweep decides; then the candidate's
 * settings; then its values of what is swept. In this order the last one holds. */
struct tune_overrides tune_overrides(const struct tune_command *command,
    const struct scenario_set *set, const struct tune_candidate *candidate, struct arena *arena)
{
    struct tune_overrides out = {0};
    struct tune_settings settings = tune_settings(candidate, arena);
    struct vary vary;
    vary_find(&vary, set, arena);
    for (int i = 0; i < command->overrides.list.n; i++) {
        const struct scenario_override *given = &command->overrides.list.at[i];
        const char *path =
            config_key_path(&scenario_table, given->key, arena); /* --set may have used an alias */
        bool is_set = tune_sets(&settings, path);
        for (int k = 0; k < vary.options.n && !is_set; k++)
            is_set = strcmp(vary.options.at[k].path, path) == 0;
        if (!is_set)
            vec_push(&out.list, *given);
    }
    for (int i = 0; i < settings.n; i++)
        vec_push(&out.list, settings.list[i]);
    for (int i = 0; i < vary.options.n; i++) {
        const struct vary_option *option = &vary.options.at[i];
        if (!tune_sets(&settings, option->path))
            vec_push(&out.list, ((struct scenario_override){option->path,
                                    vary_text(option, &candidate->point.options, arena)}));
    }
    vec_free(&vary.options);
    return out;
}

/* The candidate as a command. */
static void print_command(const struct tune_print *print, int index)
{
    struct arena *arena = print->arena;
    struct tune_overrides overrides =
        tune_overrides(print->command, print->set, &print->tune->candidates.at[index], arena);
    const char *text =
        arena_printf(arena, "flopcast run %s", words_file(arena, print->command->file));
    for (int i = 0; i < overrides.list.n; i++) {
        const struct scenario_override *one = &overrides.list.at[i];
        bool quiet = strcmp(one->key, "noise") == 0 && strcmp(one->value, "off") == 0;
        text = arena_printf(arena, "%s %s%s", text, quiet ? "--no-noise" : "--set ",
            quiet ? "" : words_shell(arena_printf(arena, "%s=%s", one->key, one->value), arena));
    }
    fputc('\n', print->out);
    words_command(print->out, "the first: ", text);
    vec_free(&overrides.list);
}

/* Why there is nothing to rank. */
static void print_none(FILE *out, const struct tune *tune)
{
    int left = tune->count[TUNE_LEFT_OUT];
    if (left > 0)
        fprintf(out,
            "none of the %d tried fits; %d left out by --limit: take a larger one, or a smaller "
            "--max-batch\n",
            tune->count[TUNE_OOM] + tune->count[TUNE_PRUNED], left);
    else
        fputs("nothing fits: take more or larger GPUs, a shorter train.seq_len, or "
              "train.attention=flash\n",
            out);
}

static void print_counts(const struct tune_print *print)
{
    const struct tune *tune = print->tune;
    const int *count = tune->count;
    const char *slower = "", *left = "";
    if (count[TUNE_SLOWER] > 0)
        slower = arena_printf(print->arena, ", %d slower by their bounds", count[TUNE_SLOWER]);
    if (count[TUNE_LEFT_OUT] > 0)
        left = arena_printf(print->arena, ", %d left out%s", count[TUNE_LEFT_OUT],
            count[TUNE_RAN] + count[TUNE_OOM] < print->command->options.max_simulations
                ? ": stopped"
                : " by --limit");
    words_paragraph_of(print->out,
        "\n%d candidate%s: %d ran, %d out of memory, %d pruned: cannot fit%s%s", tune->candidates.n,
        plural(tune->candidates.n), count[TUNE_RAN], count[TUNE_OOM], count[TUNE_PRUNED], slower,
        left);
    if (tune->n_refused > 0)
        words_paragraph_of(print->out, "%d more %s not possible: %s", tune->n_refused,
            tune->n_refused == 1 ? "is" : "are", tune->refusal);
}

/* The GPUs of the candidates that ran, with or without a price; by the first candidate of each.
 * A name that is part of another one is left out, too. */
static const char *gpu_names(const struct tune_print *print, bool priced)
{
    const char *names = "";
    for (int i = 0; i < print->tune->candidates.n; i++) {
        const struct tune_candidate *candidate = &print->tune->candidates.at[i];
        const char *name = candidate->point.hw.gpu.name;
        if (candidate->state == TUNE_RAN && (candidate->point.hw.gpu.price.value > 0) == priced &&
            !strstr(names, name))
            names = arena_printf(print->arena, "%s%s%s", names, *names ? ", " : "", name);
    }
    return names;
}

/* A line for each source of prices: what it says of which GPU. */
static void print_prices(const struct tune_print *print)
{
    struct price_source {
        const char *name, *prices;
    };
    VEC(struct price_source) sources = {0};
    for (int i = 0; i < print->tune->candidates.n; i++) {
        const struct tune_candidate *candidate = &print->tune->candidates.at[i];
        const struct hw_gpu *gpu = &candidate->point.hw.gpu;
        int k = 0;
        if (candidate->state != TUNE_RAN || !(gpu->price.value > 0))
            continue;
        while (k < sources.n && strcmp(sources.at[k].name, gpu->price.source) != 0)
            k++;
        if (k == sources.n)
            vec_push(&sources, ((struct price_source){gpu->price.source, ""}));
        const char **prices = &sources.at[k].prices,
                   *own = arena_printf(print->arena, ", %s %g $/h", gpu->name, gpu->price.value);
        if (!strstr(*prices, own))
            *prices = arena_printf(print->arena, "%s%s", *prices, own);
    }
    for (int k = 0; k < sources.n; k++)
        words_paragraph_of(
            print->out, "price: %s: %s", sources.at[k].prices + 2, sources.at[k].name);
    vec_free(&sources);
}

static void tune_print_title(const struct tune_print *print, const char *what)
{
    fprintf(print->out, "%s", what);
    if (print->tokens)
        fprintf(
            print->out, ", for %s %s", print->command->tokens.text, words_counted_all(print->set));
    fputs("\n\n", print->out);
}

static void print_noise(const struct tune_print *print)
{
    if (print->tune->quiet_only)
        words_paragraph(print->out,
            "\nwithout noise (GPUs alike, no jitter); `flopcast run` has it, and its "
            "bubble has fill, drain and stages that wait for slower ones");
    if (print->noise)
        words_paragraph_of(print->out,
            "\nthe %d best without noise (GPUs alike, no jitter) were run with it, as `flopcast "
            "run` has it",
            print->tune->n_finalists);
}

/* The best of each strategy and stack, which the search finds of all of them. */
static void print_bests(struct tune_print *print, int *order)
{
    int n = fold(print->tune, order, tune_rank_quiet(order, print->tune, TUNE_BY_SPEED), same_base);
    fputc('\n', print->out);
    tune_print_title(print, "the best of each strategy and stack");
    tune_print_best(print, order, n, n);
}

/* The best in a sentence. */
static void tune_print_said(const struct tune_print *print, int index)
{
    const struct tune_candidate *best = &print->tune->candidates.at[index];
    const struct tune_rates *rates = best->finalist ? &best->noisy : &best->quiet;
    struct arena *arena = print->arena;
    const struct sure_range *range = sure_of_speed(print->sure, &best->point, rates->mfu);
    const char *usd = rates->usd_per_gtokens > 0 && print->tokens
                          ? arena_printf(arena, "; %s",
                                sure_said(arena, range, of_all(print, rates->usd_per_gtokens), "$"))
                          : "";
    const char *time = print->tokens ? arena_printf(arena, "; %s for %s",
                                           sure_said(arena, range, days(print, rates), "days"),
                                           print->command->tokens.text)
                                     : "";
    int64_t gpus = best->point.options.cluster.gpus;
    const struct hw_gpu *gpu = &best->point.hw.gpu;
    words_paragraph_of(print->out, "%s on %" PRId64 " GPU%s: %s%s%s; %s", tune_name(arena, best),
        gpus, plural(gpus),
        sure_said(arena, range, rates->tokens_per_s,
            arena_printf(arena, "%s/s", words_counted_all(print->set))),
        time, usd,
        sure_said_to_fit(arena, print->sure, rates->peak_bytes + gpu->context_bytes.value,
            gpu->hbm_capacity.value));
    fputc('\n', print->out);
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

/* The order asked for; what it leaves out because it has no price; the best by the other order,
 * if that is another. order is scratch memory for one ranking after the other. */
static void print_orders(struct tune_print *print, int *order)
{
    const struct tune *tune = print->tune;
    int by = print->command->by, top = print->command->top,
        n = tune_rank(order, tune, (enum tune_order)by);
    bool all = by == TUNE_BY_SPEED, none_priced = !all && n == 0;
    const char *unpriced = gpu_names(print, false);
    int first = -1, ranked = n;
    if (n > 0) {
        first = order[0];
        tune_print_said(print, first);
        n = fold(tune, order, n, differ_in_chunks);
        tune_why(print->out, tune, order, n);
        fputs(tune->candidates.at[first].is_layout ? "\n" : "", print->out);
        tune_print_title(print, best_title(print, by));
        tune_print_best(print, order, n, top);
        if (n < ranked)
            words_paragraph_of(print->out,
                "\n%d more rows differ in vp alone (chunks of a stage); --format csv has them",
                ranked - n);
        print_noise(print);
        print_command(print, first);
    }
    if (!all && (n = tune_rank(order, tune, TUNE_UNPRICED)) > 0) {
        fputs(first >= 0 ? "\n" : "", print->out);
        tune_print_title(
            print, arena_printf(print->arena, "no price, so by GPU-hours: %s", unpriced));
        tune_print_best(print, order, n, top);
        if (none_priced) {
            first = order[0];
            print_noise(print);
            print_command(print, first);
        }
    }
    int other = !all ? TUNE_BY_SPEED : *gpu_names(print, true) ? TUNE_BY_COST : TUNE_UNPRICED;
    if (tune_rank(order, tune, (enum tune_order)other) > 0 && order[0] != first) {
        fputc('\n', print->out);
        tune_print_title(print, other == TUNE_BY_SPEED  ? "best by speed"
                                : other == TUNE_BY_COST ? "best by cost"
                                                        : "fewest GPU-hours");
        tune_print_best(print, order, 1, 1);
    }
    if (print->command->options.variants > 1)
        print_bests(print, order);
    if (*unpriced)
        fprintf(print->out, "\nno price: %s; --price NAME=DOLLARS an hour gives one\n", unpriced);
}

/* The sentences and tables. */
static void print_answer(struct tune_print *print)
{
    const struct tune *tune = print->tune;
    int *order = tune_indices(tune);
    if (tune_rank(order, tune, TUNE_BY_SPEED) == 0)
        print_none(print->out, tune);
    else {
        find_swept(&print->swept, print->set, &tune->candidates.at[order[0]], print->arena);
        print_orders(print, order);
        sure_print(print->out, print->command->sure);
        own_runs_print(print->out, &print->command->own);
    }
    print_counts(print);
    print_prices(print);
    if (tune->candidates.n > 0)
        tune_print_held(print->out, print->command, tune, print->arena);
    free(order);
}

/* ---- records ---- */

/* Rows as the table has them; then those that ran and are no finalists; then all others, as they
 * were made. Four rankings one after the other, each adding what is not there yet. */
static int order_of_records(int *order, const struct tune *tune, int asked)
{
    bool *taken = xcalloc((size_t)tune->candidates.n + 1, sizeof *taken);
    int *ranked = tune_indices(tune), n = 0;
    for (int k = 0; k < 4; k++) {
        int by = k % 2 && asked == TUNE_BY_COST ? TUNE_UNPRICED : asked;
        int all = (k < 2 ? tune_rank : tune_rank_quiet)(ranked, tune, (enum tune_order)by);
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

static void print_records(struct tune_print *print)
{
    const struct tune *tune = print->tune;
    struct rows rows = {0};
    int *order = tune_indices(tune), n = order_of_records(order, tune, print->command->by);
    if (n > 0)
        find_swept(&print->swept, print->set, &tune->candidates.at[0], print->arena);
    for (int i = 0; i < n; i++)
        tune_print_add_row(print, &rows, order[i]);
    rows_finish(print->out, &rows, print->command->format);
    free(order);
}

void tune_print(FILE *out, const struct tune_command *command, const struct scenario_set *set,
    const struct tune *tune, struct arena *arena)
{
    struct scenario_set one = *set; /* what differs between variants is no sweep */
    one.n_points /= command->options.variants > 1 ? command->options.variants : 1;
    struct tune_print print = {.out = out,
        .command = command,
        .set = &one,
        .tune = tune,
        .tokens = command->tokens.n > 0,
        .sure = command->sure,
        .arena = arena};
    (command->format == RECORDS_TABLE ? print_answer : print_records)(&print);
    vec_free(&print.swept.options);
}
