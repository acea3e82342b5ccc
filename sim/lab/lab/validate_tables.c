/* What `flopcast validate` prints: errors of rows in groups, row by row, and what is said of them. */
#include "rows/table.h"
#include "lab/validate_parts.h"
#include "rows/words.h"
#include "config/csv.h"
#include "validate/first_sight.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- columns of a summary ---- */

/* A count; or, where the count `of` is not 0, a share in percent, given as it is or as another count. */
struct column {
    const char *heading, *unit;
    size_t at, of; /* in struct validate_summary, or struct validate_first_sight */
    enum { COLUMN_COUNT, COLUMN_SHARE, COLUMN_PART } kind;
    int spare; /* table_spare() */
};
#define IN(member) offsetof(struct validate_summary, member)
#define COUNT(heading, member) heading, "", IN(member), IN(member), COLUMN_COUNT
#define SHARE(heading, unit, member, of) heading, unit, IN(member), IN(of), COLUMN_SHARE
#define PART(heading, member, of) heading, "%", IN(member), IN(of), COLUMN_PART

static void put_columns(struct table *table, const void *summary, const struct column *column)
{
    for (; column->heading; column++) {
        const void *at = (const char *)summary + column->at;
        int of = *(const int *)(const void *)((const char *)summary + column->of);
        if (column->kind == COLUMN_COUNT)
            table_number(table, column->heading, column->unit, 0, of);
        else {
            double share = column->kind == COLUMN_SHARE ? *(const double *)at : *(const int *)at / fmax(of, 1);
            table_number_as(table, column->heading, column->unit,
                of > 0 ? words_number(&table->numbers, 100 * share, 1, false) : "-");
        }
        table_spare(table, column->spare);
    }
}

/* ---- groups of rows ---- */

/* NULL: any. fitted: whether a fit rests on them; -1: either. */
struct group {
    const char *source, *gpu, *model, *class;
    enum validate_by by; /* of class */
    int fitted;
};

static bool is_it(const char *wanted, const char *text)
{
    return !wanted || strcmp(wanted, text) == 0;
}

static bool in_group(const struct validate_row *row, const void *self)
{
    const struct group *group = self;
    return is_it(group->source, row->source) && is_it(group->gpu, row->gpu) && is_it(group->model, row->model) &&
           (group->fitted < 0 || (*row->used_in_fit != '\0') == group->fitted) &&
           (!group->class || strcmp(validate_class(row, group->by), group->class) == 0);
}

/* Row i is in the group, and none before it is. */
static bool opens(const struct validate_table *rows, int i, const struct group *group)
{
    for (int j = 0; j < i; j++)
        if (in_group(&rows->rows.at[j], group))
            return false;
    return in_group(&rows->rows.at[i], group);
}

static const char *yes_or_no(bool is)
{
    return is ? "yes" : "no";
}

/* Of a source on a GPU, or of all. */
static void add_source(
    struct table *table, const struct validate_table *rows, const char *name, const struct group *group)
{
    static const struct column columns[] = {{COUNT("rows", n_rows), 2}, {COUNT("speeds", n_errors), 0},
        {SHARE("bias", "%", bias, n_errors), 0}, {SHARE("median", "%", median, n_errors), 0},
        {SHARE("p90", "%", p90, n_errors), 0}, {SHARE("mean", "%", mean, n_errors), 7}, {COUNT("ratios", n_ratios), 4},
        {SHARE("mean", "points", ratio_mean, n_ratios), 5}, {SHARE("most", "points", ratio_most, n_ratios), 6},
        {COUNT("peaks", n_memory), 3}, {SHARE("median", "%", memory_median, n_memory), 3},
        {COUNT("OOM wrong", oom_wrong), 1}, {0}};
    struct validate_summary s = validate_summarise(rows, in_group, group);
    if (s.n_rows == 0)
        return;
    table_row(table);
    table_text(table, "source", "", name);
    table_text(table, "GPU", "", group->gpu ? group->gpu : "all");
    table_text(table, "in fit", "", yes_or_no(group->fitted));
    put_columns(table, &s, columns);
}

void validate_groups_print(FILE *out, const struct validate_table *rows)
{
    struct table table = {0};
    for (int i = 0; i < rows->rows.n; i++) {
        struct group group = {.source = rows->rows.at[i].source, .gpu = rows->rows.at[i].gpu, .fitted = -1};
        if (!*group.gpu || !opens(rows, i, &group))
            continue;
        for (group.fitted = 1; group.fitted >= 0; group.fitted--)
            add_source(&table, rows, group.source, &group);
    }
    struct group fitted = {.fitted = 1}, rest = {0};
    bool some = validate_summarise(rows, in_group, &fitted).n_rows > 0;
    add_source(&table, rows, "all that fits rest on", &fitted);
    add_source(&table, rows, some ? "all others" : "all", &rest);
    table_finish(out, &table);
    fputs("\nspeeds: |predicted / measured - 1|; ratios: speed over that of the curve's smallest cluster, percentage "
          "points;\npeaks: of memory, allocated where that was measured, else reserved by PyTorch; OOM wrong: out of "
          "memory only here, or only there\n",
        out);
}

static void add_class(
    struct table *table, const struct validate_table *rows, const char *name, const struct group *group)
{
    static const struct column columns[] = {{COUNT("rows", n_rows), 0}, {COUNT("not simulated", n_not_simulated), 0},
        {COUNT("speeds", n_errors), 0}, {SHARE("bias", "%", bias, n_errors), 0},
        {SHARE("median", "%", median, n_errors), 0}, {SHARE("p90", "%", p90, n_errors), 0},
        {SHARE("MAD", "%", mad, n_errors), 0}, {COUNT("runs", n_runs), 0},
        {SHARE("median", "%", runs_median, n_runs), 0}, {COUNT("ratios", n_ratios), 0},
        {SHARE("mean", "points", ratio_mean, n_ratios), 0}, {COUNT("to a node", n_node_ratios), 0},
        {SHARE("mean", "points", node_ratio_mean, n_node_ratios), 0},
        {SHARE("median", "points", node_ratio_median, n_node_ratios), 0}, {COUNT("allocated", n_allocated), 0},
        {SHARE("median", "%", allocated_median, n_allocated), 0}, {COUNT("reserved", n_reserved), 0},
        {SHARE("median", "%", reserved_median, n_reserved), 0}, {COUNT("fits", fits_right), 0},
        {COUNT("OOM", oom_right), 0}, {COUNT("false fits", false_fits), 0}, {COUNT("false OOM", false_oom), 0},
        {PART("in 90 %", n_covered, n_intervals), 0}, {SHARE("width", "%", width_median, n_intervals), 0}, {0}};
    struct validate_summary s = validate_summarise(rows, in_group, group);
    if (s.n_rows == 0)
        return;
    table_row(table);
    table_text(table, validate_by_names[group->by], "", name);
    table_text(table, "in fit", "", yes_or_no(group->fitted));
    put_columns(table, &s, columns);
}

void validate_by_print(FILE *out, const struct validate_table *rows, enum validate_by by)
{
    struct arena arena = ARENA_INIT;
    struct table table = {0};
    struct validate_classes classes = validate_classes(rows, by, &arena);
    for (int i = 0; i < classes.n; i++)
        for (int fitted = 1; fitted >= 0; fitted--)
            add_class(&table, rows, *classes.names[i] ? classes.names[i] : "(no source)",
                &(struct group){.class = classes.names[i], .by = by, .fitted = fitted});
    add_class(&table, rows, "all that fits rest on", &(struct group){.by = by, .fitted = 1});
    add_class(&table, rows, "all others", &(struct group){.by = by});
    fprintf(out, "\nby %s\n", validate_by_names[by]);
    table_finish(out, &table);
    arena_release(&arena);
}

/* Of predictions before the measurements, and of today. */
static void add_first(
    struct table *table, const struct validate_table *rows, const char *name, const struct group *group)
{
#define FIRST(heading, member)                                                                                         \
    {                                                                                                                  \
        heading, "%", offsetof(struct validate_first_sight, member),                                                   \
            offsetof(struct validate_first_sight, first.n_errors), COLUMN_SHARE, 0                                     \
    }
    static const struct column columns[] = {{COUNT("speeds", n_errors), 0}, FIRST("first: bias", first.bias),
        FIRST("median", first.median), FIRST("p90", first.p90), FIRST("today: bias", today.bias),
        FIRST("median", today.median), FIRST("p90", today.p90), {0}};
    struct validate_first_sight s = validate_first_sight_summarise(rows, in_group, group);
    if (s.first.n_errors == 0)
        return;
    table_row(table);
    table_text(table, "source", "", name);
    put_columns(table, &s, columns);
}

void validate_first_sight_print(FILE *out, const struct validate_table *rows)
{
    struct table table = {0};
    struct group all = {.fitted = -1};
    if (validate_first_sight_summarise(rows, in_group, &all).first.n_errors == 0)
        return;
    for (int i = 0; i < rows->rows.n; i++) {
        struct group group = {.source = rows->rows.at[i].source, .fitted = -1};
        if (opens(rows, i, &group))
            add_first(&table, rows, group.source, &group);
    }
    add_first(&table, rows, "all", &all);
    fputs("\nfirst: errors of predictions made before the measurements were known; today: of the same rows\n", out);
    table_finish(out, &table);
}

/* ---- one GPU, one node ---- */

/* Rows of a framework. fitted: whether a fit rests on them. */
struct framework {
    const char *stack, *source;
    bool fitted;
};

static struct framework framework_of(const struct validate_row *row)
{
    const char *stack = row->set.points[0].options.stack_path;
    return (struct framework){stack, stack ? "" : row->source, *row->used_in_fit != '\0'};
}

static bool is_one_node(const struct validate_row *row)
{
    return row->has_error && row->set.n_points == 1 && (double)row->gpus <= row->set.points[0].hw.node.gpus.value;
}

static bool of_framework(const struct validate_row *row, const void *self)
{
    const struct framework *a = self;
    if (!is_one_node(row))
        return false;
    struct framework b = framework_of(row);
    bool same_stack = a->stack && b.stack ? strcmp(a->stack, b.stack) == 0 : a->stack == b.stack;
    return same_stack && strcmp(a->source, b.source) == 0 && a->fitted == b.fitted;
}

/* Of the framework of row `first`, where no row before that is of it. */
static void add_framework(struct table *table, struct arena *arena, const struct validate_table *rows, int first)
{
    static const struct column columns[] = {{COUNT("rows", n_errors), 0}, {SHARE("bias", "%", bias, n_errors), 0},
        {SHARE("median", "%", median, n_errors), 0}, {0}};
    struct framework framework = framework_of(&rows->rows.at[first]);
    double most = 0;
    for (int i = 0; i < first; i++)
        if (of_framework(&rows->rows.at[i], &framework))
            return;
    for (int i = first; i < rows->rows.n; i++)
        if (of_framework(&rows->rows.at[i], &framework))
            most = fmax(most, fabs(rows->rows.at[i].error));
    struct validate_summary s = validate_summarise(rows, of_framework, &framework);
    table_row(table);
    table_text(table, "stack", "", framework.stack ? words_stem(framework.stack, arena) : "none");
    table_text(table, "source", "", framework.source);
    table_text(table, "in fit", "", yes_or_no(framework.fitted));
    put_columns(table, &s, columns);
    table_number_as(table, "most", "%", words_number(arena, 100 * most, 1, false));
}

void validate_node_print(FILE *out, const struct validate_table *rows)
{
    struct arena arena = ARENA_INIT;
    struct table table = {0};
    for (int i = 0; i < rows->rows.n; i++)
        if (is_one_node(&rows->rows.at[i]))
            add_framework(&table, &arena, rows, i);
    if (table.rows > 0)
        fputs("\nspeed on one GPU or one node, by stack profile (aim: 7 % in the median)\n", out);
    table_finish(out, &table);
    arena_release(&arena);
}

/* ---- row by row ---- */

/* "tokens/s/GPU", or what the rows' models have instead. */
static const char *speed_unit(const struct validate_table *rows, struct arena *arena)
{
    struct scenario_set all = {.points = ARENA_ARRAY(arena, struct scenario_point, rows->rows.n)};
    for (int i = 0; i < rows->rows.n; i++)
        if (rows->rows.at[i].set.n_points == 1)
            all.points[all.n_points++] = rows->rows.at[i].set.points[0];
    return arena_printf(arena, "%s/s/GPU", all.n_points ? words_counted_all(&all) : "tokens");
}

static void spare_text(struct table *table, const char *name, int spare, const char *text)
{
    table_text(table, name, "", text);
    table_spare(table, spare);
}

/* 0: not known. */
static void spare_number(struct table *table, const char *name, const char *unit, int spare, double value)
{
    table_number(table, name, unit, 1, value > 0 ? value : TABLE_UNKNOWN);
    table_spare(table, spare);
}

/* With its sign. */
static void percent(struct table *table, const char *name, const char *unit, bool known, double part)
{
    table_number_as(table, name, unit, known ? words_number(&table->numbers, 100 * part, 1, true) : "-");
}

static void name_row(struct table *table, const struct validate_row *row)
{
    table_row(table);
    table_text(table, "id", "", row->id);
    table_text(table, "model", "", row->model);
}

static void add_row(struct table *table, const struct validate_row *row, const char *unit, struct arena *arena)
{
    bool agrees = !row->has_verdict || (row->status == VALIDATE_OOM) == row->measured_oom;
    name_row(table, row);
    spare_text(table, "GPU", 1, row->gpu);
    table_text(table, "strategy", "", row->strategy);
    table_number(table, "GPUs", "", 0, (double)row->gpus);
    spare_text(table, "in fit", 2, yes_or_no(*row->used_in_fit));
    spare_number(table, "measured", unit, 0, row->measured.tokens_per_s_per_gpu);
    spare_number(table, "predicted", unit, 0, row->predicted.tokens_per_s_per_gpu);
    percent(table, "error", "%", row->has_error, row->error);
    if (row->has_error && fabs(row->error) > TABLE_FAR_OFF)
        table_mark(table, TABLE_DOUBTFUL);
    percent(table, "ratio", "points", row->has_ratio, row->predicted_ratio - row->measured_ratio);
    table_spare(table, 3);
    spare_number(table, "measured peak", "GiB", 4, row->measured_peak_bytes / 0x1p30);
    spare_number(table, "predicted peak", "GiB", 4, row->predicted_peak_bytes / 0x1p30);
    table_text(table, "status", "",
        arena_printf(arena, "%s%s", validate_status_names[row->status],
            agrees              ? ""
            : row->measured_oom ? ", published: out of memory"
                                : ", published: fits"));
}

void validate_rows_print(FILE *out, const struct validate_table *rows)
{
    struct arena arena = ARENA_INIT;
    struct table table = {0};
    const char *unit = speed_unit(rows, &arena);
    for (int i = 0; i < rows->rows.n; i++)
        if (rows->rows.at[i].status != VALIDATE_NOT_SIMULATED)
            add_row(&table, &rows->rows.at[i], unit, &arena);
    table_finish(out, &table);
    arena_release(&arena);
    fputc('\n', out);
}

/* ---- rows of which the same is said ---- */

static const char *reason_of(const struct validate_row *row)
{
    return row->status == VALIDATE_NOT_SIMULATED ? row->reason : NULL;
}

static const char *cause_of(const struct validate_row *row)
{
    return row->open ? row->suspected_cause : NULL;
}

static const char *maker_of(const struct validate_row *row)
{
    return row->made_by;
}

/* text_of: NULL of a row of which nothing is said. */
static bool says(const struct validate_row *row, const char *(*text_of)(const struct validate_row *), const char *text)
{
    return text_of(row) && strcmp(text_of(row), text) == 0;
}

/* Whether row i is the first of which that is said, and of how many it is; 0: it is not. */
static int count_first(const struct validate_table *rows, int i, const char *(*text_of)(const struct validate_row *))
{
    const char *text = text_of(&rows->rows.at[i]);
    int n = 0;
    for (int j = 0; j < rows->rows.n && text; j++) {
        bool same = says(&rows->rows.at[j], text_of, text);
        if (same && j < i)
            return 0;
        n += same;
    }
    return n;
}

void validate_not_simulated_print(FILE *out, const struct validate_table *rows)
{
    bool heading = false;
    for (int i = 0; i < rows->rows.n; i++) {
        if (count_first(rows, i, reason_of) == 0)
            continue;
        const char *reason = rows->rows.at[i].reason;
        fprintf(out, "%s  %s:", heading ? "" : "\nnot simulated:\n", reason);
        heading = true;
        for (int j = i; j < rows->rows.n; j++)
            if (says(&rows->rows.at[j], reason_of, reason))
                fprintf(out, " %s", rows->rows.at[j].id);
        fputc('\n', out);
    }
}

static void add_open(struct table *table, const struct validate_row *row)
{
    bool peaks = row->measured_peak_bytes > 0 && row->predicted_peak_bytes > 0, oom = row->status == VALIDATE_OOM;
    name_row(table, row);
    table_text(table, "GPU", "", row->gpu);
    table_text(table, "strategy", "", row->strategy);
    table_number(table, "GPUs", "", 0, (double)row->gpus);
    percent(table, "speed", "%", row->has_error, row->error);
    percent(table, "ratio", "points", row->has_ratio, row->predicted_ratio - row->measured_ratio);
    percent(table, "memory", "%", peaks, peaks ? row->predicted_peak_bytes / row->measured_peak_bytes - 1 : 0);
    table_text(table, "", "",
        oom == row->measured_oom ? ""
        : oom                    ? "simulated out of memory"
                                 : "published out of memory");
}

void validate_open_print(FILE *out, const struct validate_table *rows)
{
    int n = 0;
    for (int i = 0; i < rows->rows.n; i++)
        n += rows->rows.at[i].open;
    fprintf(out,
        "%d run%s whose prediction is off, and for which no number was changed. Deviations: predicted from "
        "measured.\n",
        n, plural(n));
    for (int i = 0; i < rows->rows.n; i++) {
        struct table table = {0};
        const char *cause = rows->rows.at[i].suspected_cause;
        if (count_first(rows, i, cause_of) == 0)
            continue;
        for (int j = i; j < rows->rows.n; j++)
            if (says(&rows->rows.at[j], cause_of, cause))
                add_open(&table, &rows->rows.at[j]);
        fprintf(out, "\n%s\n", *cause ? cause : "No cause is suspected.");
        table_finish(out, &table);
    }
}

enum status validate_open_print_nccl(FILE *out, const char *path, struct diag *diag)
{
    struct csv_table *csv = NULL;
    enum status status = csv_load(&csv, path, diag);
    if (status != STATUS_OK)
        return status;
    fputs("\nTables of collectives; `flopcast calibrate fit nccl` prints the error of each:\n", out);
    for (int r = 0; r < csv_rows(csv); r++) {
        const char *state = csv_cell(csv, r, csv_column(csv, "status"));
        const char *cause = csv_cell(csv, r, csv_column(csv, "suspected_cause"));
        if (*state)
            fprintf(out, "  %s: %s, %s nodes, %s (%s)%s%s\n", state, csv_cell(csv, r, csv_column(csv, "collective")),
                csv_cell(csv, r, csv_column(csv, "nodes")), csv_cell(csv, r, csv_column(csv, "gpu")),
                csv_cell(csv, r, csv_column(csv, "source")), *cause ? ". " : "", cause);
    }
    csv_release(csv);
    return STATUS_OK;
}

void validate_made_print(FILE *out, const struct validate_table *rows)
{
    int stale = 0, kinds = 0;
    for (int i = 0; i < rows->rows.n; i++) {
        const char *made_by = rows->rows.at[i].made_by;
        int n = count_first(rows, i, maker_of);
        stale += rows->rows.at[i].stale;
        if (n == 0)
            continue;
        const char *commit = strchr(made_by, ' ');
        fprintf(out, "%s%d row%s by ", kinds++ ? "; " : "\nPredicted: ", n, plural(n));
        if (commit)
            fprintf(out, "build %.*s of commit %s", (int)(commit - made_by), made_by, commit + 1);
        else
            fprintf(out, "a build that is not stated");
    }
    if (kinds == 0)
        return;
    fprintf(out, ".\nStale, because something else would go in today: %d row%s", stale, plural(stale));
    for (int i = 0, named = 0; i < rows->rows.n; i++)
        if (rows->rows.at[i].stale && named++ < 20)
            fprintf(
                out, "%s%s%s", named == 1 ? ": " : ", ", rows->rows.at[i].id, named == 20 && stale > 20 ? ", ..." : "");
    fputs(".\n", out);
}

void validate_verdicts_print(FILE *out, const struct validate_table *rows)
{
    static const struct {
        bool oom;
        const char *heading;
    } wrong[] = {{true, "simulated out of memory, but ran"}, {false, "simulated to fit, but ran out of memory"}};
    for (size_t w = 0; w < sizeof wrong / sizeof *wrong; w++) {
        const char *source = NULL;
        int n = 0;
        for (int i = 0; i < rows->rows.n; i++) {
            const struct validate_row *row = &rows->rows.at[i];
            if (!row->has_verdict || row->status == VALIDATE_NOT_SIMULATED ||
                (row->status == VALIDATE_OOM) != wrong[w].oom || row->measured_oom == wrong[w].oom)
                continue;
            if (n++ == 0)
                fprintf(out, "\n%s:", wrong[w].heading);
            if (!source || strcmp(source, row->source) != 0)
                fprintf(out, "\n  %s:", *row->source ? row->source : "(no source)");
            source = row->source;
            fprintf(out, " %s", row->id);
        }
        if (n > 0)
            fputc('\n', out);
    }
}

void validate_skill_print(FILE *out, const struct validate_table *rows)
{
    struct validate_skill skill = validate_skill(rows);
    if (skill.n_fitted > 0 && skill.n > 0 && skill.mean_of_rule > 0)
        fprintf(out,
            "\n"
            "a loss of %.2f %% with each doubling of the GPUs, fitted to %d ratios that fits rest on, is %.1f points "
            "off the other %d in\n"
            "the mean; predictions %.1f: a skill of %.0f %%\n",
            100 * skill.loss_of_doubling, skill.n_fitted, 100 * skill.mean_of_rule, skill.n, 100 * skill.mean,
            100 * (1 - skill.mean / skill.mean_of_rule));
}
