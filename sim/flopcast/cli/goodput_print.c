/* What `flopcast goodput` prints and stores: the answer in a sentence, a row a point, where the
 * other time goes by cause, costs of checkpoints, and rows of the database.
 *
 * goodput_print_fill() names each column once for people and for programs: a column without a
 * heading is for programs only, one without a name for people only. What is subtle: numbers of the
 * step are rounded to as many digits as their interval has, shares of time are not, since they come
 * from other randomness. Of several jobs the one that trains most is named, together with those
 * that histories cannot tell apart from it (is_tie()). */
#include "cli/goodput.h"

#include "rows/rows.h"
#include "rows/vary.h"
#include "rows/words.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static const double S_PER_HOUR = 3600, S_PER_MINUTE = 60;
static const double KWH_PER_MWH = 1e3;
static const char *const time_heads[GOODPUT_TIMES] = {"training", "checkpoints", "lost work",
    "detection", "waiting for hosts", "restart", "fewer hosts", "slow hosts"};
static const char *const cause_heads[GOODPUT_CAUSES] = {
    "GPU", "host", "link", "switch", "software", "maintenance", "slow host"};

/* Columns of times: two are shown where a job is elastic, or has nodes that get slow. */
static bool goodput_print_is_shown(const struct months_point *points, int n, int time)
{
    bool shown = time != GOODPUT_SHRUNK && time != GOODPUT_SLOWED;
    for (int i = 0; i < n; i++) {
        const struct goodput_options *options = &points[i].job.options;
        shown = shown || (time == GOODPUT_SHRUNK && options->elastic_nodes > 0) ||
                (time == GOODPUT_SLOWED && options->slow_node_mtbf_s > 0);
    }
    return shown;
}

static double goodput_print_known(const struct months_point *point, double value)
{
    return point->ok ? value : TABLE_UNKNOWN;
}

/* At least as many digits as show three of a small number. */
static int goodput_print_digits_of(double value, int digits)
{
    return value > 0 && value < 1 ? digits + (int)ceil(-log10(value)) : digits;
}

static const char *goodput_print_number_of(
    struct arena *arena, const struct sure_range *range, double value, int digits)
{
    return sure_number(arena, range, value, goodput_print_digits_of(value, digits));
}

/* A column of the total, for people beside its interval, and the ends for programs. high is 0
 * where the worst histories train nothing: then there is no upper end. */
static void fill_total(struct rows *rows, const struct months_total *total,
    struct rows_column column, const char *what, const struct sure_range *range,
    struct arena *arena)
{
    bool known = total->mean > 0, ranged = known && total->high > 0;
    double scale = column.scale > 0 ? column.scale : 1;
    const char *text =
        known ? goodput_print_number_of(arena, range, scale * total->mean, column.digits) : "-";
    rows_real_as(rows, column, known, total->mean, text);
    if (column.heading)
        rows_text(rows, COLUMN(NULL, "90 %", what),
            ranged ? arena_printf(arena, "%s to %s",
                         goodput_print_number_of(arena, range, scale * total->low, column.digits),
                         goodput_print_number_of(arena, range, scale * total->high, column.digits))
                   : NULL);
    rows_real(rows, COLUMN(arena_printf(arena, "%s_p05", column.name)), known, total->low);
    rows_real(rows, COLUMN(arena_printf(arena, "%s_p95", column.name)), ranged, total->high);
}

/* What is paid for, where tokens are given. */
static void fill_totals(struct rows *rows, const struct goodput_command *command,
    const struct months_point *p, struct arena *arena)
{
    bool given = command->tokens.n > 0;
    fill_total(rows, &p->total_days, COLUMN("training_days", given ? "days" : NULL, .digits = 1),
        "of days", p->range, arena);
    fill_total(rows, &p->total_usd, COLUMN("cost_usd", given ? "cost" : NULL, "$"), "of cost",
        p->range, arena);
    fill_total(rows, &p->total_kwh,
        COLUMN("energy_kwh", given ? "energy" : NULL, "MWh", 1 / KWH_PER_MWH, 1), "of energy",
        p->range, arena);
}

static void fill_causes(struct rows *rows, const struct months_point *p, struct arena *arena)
{
    for (int time = GOODPUT_CHECKPOINT; time < GOODPUT_TIMES; time++)
        rows_real(rows, COLUMN(arena_printf(arena, "%s_share", goodput_time_names[time])), p->ok,
            months_time_share(p, time));
    for (int cause = 0; cause < GOODPUT_CAUSES; cause++) {
        const char *name = goodput_cause_names[cause];
        rows_real(rows, COLUMN(arena_printf(arena, "%s_interruptions", name)), p->ok,
            p->interruptions[cause]);
        rows_real(rows, COLUMN(arena_printf(arena, "%s_lost_share", name)), p->ok,
            months_cause_share(p, cause));
    }
    rows_real(rows, COLUMN("hangs"), p->ok, p->hangs);
}

/* Shares as fractions, in base SI; what depends on the step to as many digits as that is sure. */
static void goodput_print_fill(struct rows *rows, const struct goodput_command *command,
    const struct scenario_point *point, const struct months_point *p, struct arena *arena)
{
    const struct sure_range *range = p->range;
    double step_s = p->job.step_s, mtbf_s = p->costs.mtbf_s,
           effective = p->tflops_per_gpu * p->share.mean;
    bool ok = p->ok;
    rows_int(rows, COLUMN("gpus", "GPUs"), point->options.cluster.gpus);
    rows_real(rows, COLUMN("spare_gpus", "GPUs", "spare"), ok, p->spare_gpus);
    rows_text(rows, COLUMN("status"), ok ? "ok" : "oom");
    rows_real(rows, COLUMN("days"), ok, p->days);
    rows_int(rows, COLUMN("seeds"), command->seeds);
    rows_real_as(
        rows, COLUMN("step_time_s", "step", "s"), ok, step_s, sure_number(arena, range, step_s, 3));
    rows_real(rows, COLUMN("mtbf_s"), ok && isfinite(mtbf_s), mtbf_s);
    rows_number_as(rows, "fails every", "h",
        ok && isfinite(mtbf_s) ? words_number(arena, mtbf_s / S_PER_HOUR,
                                     goodput_print_digits_of(mtbf_s / S_PER_HOUR, 2), false)
                               : "-");
    rows_real(rows, COLUMN("checkpoint_bytes"), ok, p->costs.bytes);
    rows_real(rows, COLUMN("checkpoint_stall_s"), ok, p->costs.stall_s);
    rows_real(rows, COLUMN("checkpoint_interval_s", "checkpoint every", "min", 1. / 60, 1), ok,
        p->interval_s);
    rows_real(rows, COLUMN("goodput", "goodput", "%", PERCENT, 1), ok, p->share.mean);
    rows_text(rows, COLUMN(NULL, "90 %", "by failures"),
        ok ? arena_printf(arena, "%.1f to %.1f", PERCENT * p->share.low, PERCENT * p->share.high)
           : "OOM");
    rows_real(rows, COLUMN("goodput_p05"), ok, p->share.low);
    rows_real(rows, COLUMN("goodput_p95"), ok, p->share.high);
    rows_real_as(rows, COLUMN("tflops_per_gpu", "TFLOPS/GPU", "step"), ok, p->tflops_per_gpu,
        sure_number(arena, range, p->tflops_per_gpu, 1));
    rows_real_as(rows, COLUMN("effective_tflops_per_gpu", "TFLOPS/GPU", "effective"), ok, effective,
        sure_number(arena, range, effective, 1));
    rows_real(rows, COLUMN("effective_tokens_per_s"), ok, p->tokens_per_s * p->share.mean);
    fill_causes(rows, p, arena);
    fill_totals(rows, command, p, arena);
}

static void print_points(FILE *out, const struct goodput_command *command,
    const struct scenario_set *set, const struct months_point *points, struct arena *arena)
{
    struct rows rows = {0};
    struct vary all, unnamed;
    vary_find(&all, set, arena);
    vary_find_unnamed(&unnamed, set, arena);
    for (int i = 0; i < set->n_points; i++) {
        const struct scenario_point *point = &set->points[i];
        rows_next(&rows);
        rows_text(&rows, COLUMN(NULL, "job"), vary_name(&unnamed, point, arena));
        rows_text(&rows, COLUMN("scenario"), point->options.name);
        rows_text(&rows, COLUMN("model"), point->model.shape.name);
        rows_text(&rows, COLUMN("swept"), vary_assignments(&all, point, arena));
        goodput_print_fill(&rows, command, point, &points[i], arena);
    }
    if (command->format == RECORDS_TABLE && set->n_points == 1)
        table_print_row(out, &rows.table);
    else
        rows_print(out, &rows, command->format);
    rows_free(&rows);
    vec_free(&all.options);
    vec_free(&unnamed.options);
}

/* Where the time goes: a row for each cause, and all of them together. Rows without any lost
 * time are left out; the last row sums all causes. */
static void print_waterfall(FILE *out, const struct months_point *point)
{
    struct table table = {0};
    for (int cause = 0; cause <= GOODPUT_CAUSES + 1; cause++) {
        bool all = cause == GOODPUT_CAUSES + 1;
        if (!all && months_cause_share(point, cause) == 0)
            continue;
        table_row(&table);
        table_text(&table, "cause", "",
            all                         ? "all"
            : cause == GOODPUT_NO_CAUSE ? "none"
                                        : cause_heads[cause]);
        table_number(&table, "interruptions", "", 1,
            all                         ? months_interruptions(point)
            : cause == GOODPUT_NO_CAUSE ? TABLE_UNKNOWN
                                        : point->interruptions[cause]);
        double sum = 0;
        for (int time = GOODPUT_CHECKPOINT; time < GOODPUT_TIMES; time++) {
            if (!goodput_print_is_shown(point, 1, time))
                continue;
            double share = all ? months_time_share(point, time) : point->time_share[time][cause];
            table_number(&table, time_heads[time], "%", 2, PERCENT * share);
            sum += share;
        }
        table_number(&table, "sum", "%", 2, PERCENT * sum);
    }
    table_finish(out, &table);
}

/* The same of several points, a row each. */
static void print_times(FILE *out, const struct scenario_set *set,
    const struct months_point *points, struct arena *arena)
{
    struct table table = {0};
    struct vary vary;
    vary_find_unnamed(&vary, set, arena);
    fputs("\nWhere the rest of the time goes:\n\n", out);
    for (int i = 0; i < set->n_points; i++) {
        table_row(&table);
        table_text(&table, "job", "", vary_name(&vary, &set->points[i], arena));
        table_number(&table, "GPUs", "", 0, (double)set->points[i].options.cluster.gpus);
        table_number(&table, "interruptions", "", 1,
            goodput_print_known(&points[i], months_interruptions(&points[i])));
        for (int time = GOODPUT_CHECKPOINT; time < GOODPUT_TIMES; time++) {
            double share =
                goodput_print_known(&points[i], PERCENT * months_time_share(&points[i], time));
            if (goodput_print_is_shown(points, set->n_points, time))
                table_number(&table, time_heads[time], "%", 2, share);
        }
    }
    table_finish(out, &table);
    vec_free(&vary.options);
    fputs("\nof one point (--set takes away the others) this is also by cause\n", out);
}

/* "30 days", "3.5 h", "12 min". The largest unit of which there is at least one. */
static const char *goodput_print_lasting(struct arena *arena, double days)
{
    double s = days * S_PER_DAY;
    return s >= S_PER_DAY      ? arena_printf(arena, days < 1e4 ? "%.4g days" : "%.0f days", days)
           : s >= S_PER_HOUR   ? arena_printf(arena, "%.3g h", s / S_PER_HOUR)
           : s >= S_PER_MINUTE ? arena_printf(arena, "%.3g min", s / S_PER_MINUTE)
                               : arena_printf(arena, "%.3g s", s);
}

/* "a host is a compute tray of 4 GPUs; a rack of 72 GPUs has 18": of the first point, where those
 * of all are alike. */
static void print_host(FILE *out, const struct scenario_set *set, struct arena *arena)
{
    const struct hw *hw = &set->points[0].hw;
    int hosts = hw_hosts_per_node(hw), gpus = hw_gpus_per_host(hw);
    for (int i = 1; i < set->n_points; i++)
        if (hw_hosts_per_node(&set->points[i].hw) != hosts ||
            hw_gpus_per_host(&set->points[i].hw) != gpus)
            return;
    if (hosts > 1)
        words_paragraph(
            out, arena_printf(arena,
                     "a host is a compute tray of %d GPU%s; a rack of %d GPUs (%s) has %d, and its "
                     "own spares: only a tray of the same rack can take another's place",
                     gpus, plural(gpus), hw_gpus_per_node(hw), hw->node.name, hosts));
    else
        words_paragraph(
            out, arena_printf(arena, "a host is a node of %d GPU%s", gpus, plural(gpus)));
}

static void print_costs(FILE *out, const struct goodput_command *command,
    const struct scenario_set *set, const struct months_point *point, struct arena *arena)
{
    char bytes[32];
    const struct goodput_costs *costs = &point->costs;
    const struct goodput_options *options = &point->job.options;
    const char *written =
        options->async_checkpoint
            ? arena_printf(arena, ", then it is written for %.3g s", costs->write_s)
            : "";
    words_paragraph(out, arena_printf(arena,
                             "a checkpoint of %s: training waits %.3g s%s; a restart takes %.0f s "
                             "and %.3g s to load it",
                             quantity_format(bytes, sizeof bytes, costs->bytes, DIM_BYTES),
                             costs->stall_s, written, costs->restart_s, costs->load_s));
    words_paragraph(
        out, arena_printf(arena, "best interval: Young %.3g min, Daly %.3g min; %s: %.3g min",
                 goodput_young_s(costs) / 60, goodput_daly_s(costs) / 60,
                 options->checkpoint_interval_s > 0 ? "given" : "found", point->interval_s / 60));
    words_paragraph(out,
        arena_printf(arena, "%.1f interruptions, %.1f of them hangs, and %.0f checkpoints in %s",
            months_interruptions(point), point->hangs, point->checkpoints,
            goodput_print_lasting(arena, point->days)));
    words_paragraph(out,
        arena_printf(arena, "GPUs paid: %" PRId64 " + %.0f spare (goodput.hot_spares)%s",
            set->points[0].options.cluster.gpus, point->spare_gpus,
            command->tokens.n > 0 ? "; 90 %: by the luck of failures and by how sure the step is"
                                  : ""));
}

/* What takes time beside training; next to nothing in so short a history that nothing fails in it.
 */
static void goodput_print_rest(FILE *out, const struct months_point *point, struct arena *arena)
{
    static const double SHOWN = 5e-5; /* 0.0 % */
    double rest = 1 - point->share.mean;
    if (rest >= SHOWN) {
        fprintf(out, "\nWhere the other %.1f %% of the time goes:\n\n", PERCENT * rest);
        print_waterfall(out, point);
        fputc('\n', out);
        return;
    }
    double mtbf_s = point->costs.mtbf_s;
    fputc('\n', out);
    words_paragraph(out, arena_printf(arena, "Next to nothing takes other time in %s%s.",
                             goodput_print_lasting(arena, point->days),
                             isfinite(mtbf_s) && point->days * S_PER_DAY < mtbf_s
                                 ? arena_printf(arena, ": the job fails every %s",
                                       goodput_print_lasting(arena, mtbf_s / S_PER_DAY))
                                 : ""));
}

/* ---- the answer ---- */

/* With three digits: "0.0123", "87.9", "104", "12300". */
static const char *three(struct arena *arena, double value)
{
    int place = value > 0 ? (int)floor(log10(value)) - 2 : 0;
    double unit = pow(10, place);
    return arena_printf(
        arena, "%.*f", place < 0 ? -place : 0, place > 0 ? round(value / unit) * unit : value);
}

/* " (70.3 to 102)", in the unit that is `one`; "" where it is not known. */
static const char *goodput_print_range_of(
    struct arena *arena, const struct months_total *total, double one)
{
    return total->high > 0 ? arena_printf(arena, " (%s to %s)", three(arena, total->low / one),
                                 three(arena, total->high / one))
                           : "";
}

/* "87.7 days (70.3 to 102)". */
static const char *days_said(struct arena *arena, const struct months_total *days)
{
    const struct {
        double one;
        const char *unit;
    } units[] = {{1, "days"}, {S_PER_HOUR / S_PER_DAY, "h"}, {S_PER_MINUTE / S_PER_DAY, "min"},
        {1 / S_PER_DAY, "s"}};
    int u = 0;
    while (u < 3 && days->mean < units[u].one)
        u++;
    return arena_printf(arena, "%s %s%s", three(arena, days->mean / units[u].one), units[u].unit,
        goodput_print_range_of(arena, days, units[u].one));
}

/* "$104 million (83 to 121)". */
static const char *cost_said(struct arena *arena, const struct months_total *usd)
{
    double one = usd->mean >= 1e9 ? 1e9 : usd->mean >= 1e6 ? 1e6 : usd->mean >= 1e4 ? 1e3 : 1;
    const char *word = usd->mean >= 1e9   ? " billion"
                       : usd->mean >= 1e6 ? " million"
                       : usd->mean >= 1e4 ? " thousand"
                                          : "";
    return arena_printf(arena, "$%s%s%s", three(arena, usd->mean / one), word,
        goodput_print_range_of(arena, usd, one));
}

/* "90.5 % of the time trains (goodput; 90.0 to 91.0 by the luck of failures)". */
static const char *share_said(struct arena *arena, const struct months_point *p, const char *of)
{
    return arena_printf(arena,
        "%.1f %% of %s trains (goodput; %.1f to %.1f by the luck of failures)",
        PERCENT * p->share.mean, of, PERCENT * p->share.low, PERCENT * p->share.high);
}

static const char *point_said(struct arena *arena, const struct goodput_command *command,
    const struct scenario_point *point, const struct months_point *p)
{
    if (!p->ok)
        return "out of memory: no step, so no goodput; `flopcast run` says what is short";
    const char *effective = sure_number(arena, p->range, p->tflops_per_gpu * p->share.mean, 1);
    if (!(p->total_days.mean > 0))
        return arena_printf(arena, "%s: %s of the step's %s TFLOPS/GPU are left.",
            share_said(arena, p, goodput_print_lasting(arena, p->days)), effective,
            sure_number(arena, p->range, p->tflops_per_gpu, 1));
    const char *spares =
        p->spare_gpus > 0 ? arena_printf(arena, " and %.0f spare", p->spare_gpus) : "";
    const char *cost = p->total_usd.mean > 0
                           ? arena_printf(arena, " %s and", cost_said(arena, &p->total_usd))
                           : "";
    return arena_printf(arena, "%s %s take %s on %" PRId64 " GPUs%s, and%s %s MWh; %s.",
        command->tokens.text, words_counted(&point->model.shape), days_said(arena, &p->total_days),
        point->options.cluster.gpus, spares, cost, three(arena, p->total_kwh.mean / KWH_PER_MWH),
        share_said(arena, p, "the time"));
}

/* How much a job trains: tokens (images, samples) a second, or between jobs that count other things
 * the TFLOPS of all GPUs. 0 where it does not fit. */
static double trained(
    const struct scenario_point *point, const struct months_point *p, bool one_model)
{
    double all =
        one_model ? p->tokens_per_s : p->tflops_per_gpu * (double)point->options.cluster.gpus;
    return p->ok ? all * p->share.mean : 0;
}

static bool is_one_model(const struct scenario_set *set)
{
    for (int i = 1; i < set->n_points; i++)
        if (strcmp(set->points[i].options.model_path, set->points[0].options.model_path) != 0)
            return false;
    return true;
}

/* The means of two differ by less than they would with other histories, or by nothing that one
 * reads. luck is the width of both 90 % bands; the difference of means is compared with half of
 * it over the root of the number of histories. */
static bool is_tie(double most, double other, const struct months_point *a,
    const struct months_point *b, int seeds)
{
    static const double NOTHING = 0.001;
    double luck = hypot((a->share.high - a->share.low) / a->share.mean,
        (b->share.high - b->share.low) / b->share.mean);
    return other > 0 && 1 - other / most < fmax(NOTHING, luck / 2 / sqrt(seeds));
}

static const char *job_said(
    struct arena *arena, const struct vary *vary, const struct scenario_point *point)
{
    int64_t gpus = point->options.cluster.gpus;
    return arena_printf(
        arena, "%s, %" PRId64 " GPU%s", vary_name(vary, point, arena), gpus, plural(gpus));
}

/* "1.82 billion tokens a day", "24,100 TFLOPS on all its GPUs". */
static const char *trained_said(
    struct arena *arena, const struct scenario_point *point, double trained_most, bool one_model)
{
    if (!one_model)
        return arena_printf(arena, "%s TFLOPS on all its GPUs",
            trained_most < 100 ? three(arena, trained_most) : words_count(arena, trained_most));
    double day = trained_most * S_PER_DAY, one = day >= 1e12  ? 1e12
                                                 : day >= 1e9 ? 1e9
                                                 : day >= 1e6 ? 1e6
                                                              : 1;
    const char *word = one >= 1e12  ? " trillion"
                       : one >= 1e9 ? " billion"
                       : one >= 1e6 ? " million"
                                    : "";
    return arena_printf(arena, "%s%s %s a day",
        one > 1 ? three(arena, day / one) : words_count(arena, day), word,
        words_counted(&point->model.shape));
}

/* Which of several jobs trains most, or is done first with the tokens of the command, and which
 * as much. With --tokens the one that is done first, else the one with most tokens a day;
 * between models TFLOPS of all GPUs. */
static const char *best_said(struct arena *arena, const struct goodput_command *command,
    const struct scenario_set *set, const struct months_point *points)
{
    enum { NAMED = 2 };
    bool one_model = command->tokens.n > 0 || is_one_model(set);
    int best = -1, ties = 0;
    double most = 0;
    for (int i = 0; i < set->n_points; i++) {
        double of = trained(&set->points[i], &points[i], one_model);
        if (points[i].ok && (best < 0 || of > most)) {
            best = i;
            most = of;
        }
    }
    if (best < 0)
        return "out of memory, all of them";
    struct vary vary;
    vary_find_unnamed(&vary, set, arena);
    const char *others = "";
    for (int i = 0; i < set->n_points; i++) {
        double of = trained(&set->points[i], &points[i], one_model);
        if (i != best && is_tie(most, of, &points[best], &points[i], command->seeds) &&
            ties++ < NAMED)
            others = arena_printf(arena, "%s%s%s", others, *others ? "; " : "",
                job_said(arena, &vary, &set->points[i]));
    }
    if (ties > NAMED)
        others = arena_printf(arena, "%s; and %d more", others, ties - NAMED);
    if (ties > 0)
        others = arena_printf(arena, " (a tie, as histories differ: %s)", others);
    const char *does = command->tokens.n > 0
                           ? "is done first"
                           : arena_printf(arena, "trains most, %s",
                                 trained_said(arena, &set->points[best], most, one_model));
    const char *said = arena_printf(arena, "Of %d jobs %s, %s%s: %s", set->n_points,
        job_said(arena, &vary, &set->points[best]), does, others,
        point_said(arena, command, &set->points[best], &points[best]));
    vec_free(&vary.options);
    return said;
}

static void goodput_print_answer(FILE *out, const struct goodput_command *command,
    const struct scenario_set *set, const struct months_point *points, struct arena *arena)
{
    words_paragraph(out, set->n_points > 1
                             ? best_said(arena, command, set, points)
                             : point_said(arena, command, &set->points[0], &points[0]));
    fputc('\n', out);
}

void goodput_print(FILE *out, const struct goodput_command *command, const struct scenario_set *set,
    const struct months_point *points, struct arena *arena)
{
    if (command->format != RECORDS_TABLE) {
        print_points(out, command, set, points, arena);
        return;
    }
    goodput_print_answer(out, command, set, points, arena);
    bool alike = points[0].ok;
    for (int i = 1; i < set->n_points; i++)
        alike = alike && points[i].days == points[0].days;
    const char *days =
        alike ? arena_printf(arena, " of %s", goodput_print_lasting(arena, points[0].days)) : "";
    const char *tokens = command->tokens.n > 0 ? arena_printf(arena, ", %s %s",
                                                     command->tokens.text, words_counted_all(set))
                                               : "";
    words_paragraph(out, arena_printf(arena, "%s, %d histories%s%s", set->points[0].options.name,
                             command->seeds, days, tokens));
    fputc('\n', out);
    print_points(out, command, set, points, arena);
    if (set->n_points > 1) {
        print_times(out, set, points, arena);
    } else if (points[0].ok) {
        goodput_print_rest(out, &points[0], arena);
        print_costs(out, command, set, &points[0], arena);
    } else {
        fputc('\n', out);
    }
    print_host(out, set, arena);
    if (set->points[0].options.assumptions)
        words_assumptions(out, set->points[0].options.assumptions);
}

/* ---- the database ---- */

/* What distinguishes curves: not the interval, which may be the axis. */
static void leave_out_interval(struct vary *vary)
{
    int kept = 0;
    for (int i = 0; i < vary->options.n; i++)
        if (strcmp(vary->options.at[i].path, "goodput.checkpoint_interval") != 0)
            vary->options.at[kept++] = vary->options.at[i];
    vary->options.n = kept;
}

enum status goodput_keep(const struct goodput_command *command, const struct scenario_set *set,
    const struct months_point *points, struct arena *arena, struct diag *diag)
{
    struct vary vary;
    struct rows rows = {0};
    vary_find_unnamed(&vary, set, arena);
    leave_out_interval(&vary);
    for (int i = 0; i < set->n_points; i++) {
        const struct months_point *p = &points[i];
        rows_next(&rows);
        rows_text(&rows, COLUMN("label"), vary_name(&vary, &set->points[i], arena));
        rows_int(&rows, COLUMN("searched"), p->ok && p->job.options.checkpoint_interval_s == 0);
        rows_real(&rows, COLUMN("price_usd_per_gpu_hour"), p->price_usd_per_gpu_hour > 0,
            p->price_usd_per_gpu_hour);
        goodput_print_fill(&rows, command, &set->points[i], p, arena);
    }
    vec_free(&vary.options);
    const struct record_cell head[] = {cell_text("scenario", set->points[0].options.name),
        cell_int("histories", command->seeds),
        cell_real("tokens", command->tokens.n > 0, command->tokens.n)};
    enum status status =
        rows_keep(&rows, command->db, "goodput", head, sizeof head / sizeof *head, diag);
    rows_free(&rows);
    return status;
}
