#include "cli/validate_parts.h"

#include "cli/table.h"
#include "cli/words.h"
#include "validate/skill.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Rows of a source on a GPU; NULL: any. fitted: whether a fit rests on them. */
struct group {
    const char *source, *gpu;
    bool fitted;
};

static bool in_group(const struct validate_row *row, const void *self)
{
    const struct group *group = self;
    return (!group->source || strcmp(row->source, group->source) == 0) &&
           (!group->gpu || strcmp(row->gpu, group->gpu) == 0) && (*row->used_in_fit != '\0') == group->fitted;
}

static void cell_percent(struct table *table, struct arena *arena, bool known, double value)
{
    table_cell(table, known ? words_number(arena, 100 * value, 1, false) : "-");
}

static void add_summary(struct table *table, struct arena *arena, const char *name, const struct group *group,
    const struct validate_table *rows)
{
    struct validate_summary s = validate_summarise(rows, in_group, group);
    if (s.n_rows == 0)
        return;
    bool any = s.n_errors > 0;
    table_cell(table, name);
    table_cell(table, group->gpu ? group->gpu : "all");
    table_cell(table, group->fitted ? "yes" : "no");
    table_cell(table, arena_printf(arena, "%d", s.n_rows));
    table_cell(table, arena_printf(arena, "%d", s.n_errors));
    cell_percent(table, arena, any, s.bias);
    cell_percent(table, arena, any, s.median);
    cell_percent(table, arena, any, s.p90);
    cell_percent(table, arena, any, s.mean);
    table_cell(table, arena_printf(arena, "%d", s.n_ratios));
    cell_percent(table, arena, s.n_ratios > 0, s.ratio_mean);
    cell_percent(table, arena, s.n_ratios > 0, s.ratio_most);
    table_cell(table, arena_printf(arena, "%d", s.n_memory));
    cell_percent(table, arena, s.n_memory > 0, s.memory_median);
    table_cell(table, arena_printf(arena, "%d", s.oom_wrong));
}

/* The first row of each source and GPU stands for its group. */
static bool opens_group(const struct validate_table *rows, int i)
{
    for (int j = 0; j < i; j++)
        if (strcmp(rows->rows.at[j].source, rows->rows.at[i].source) == 0 &&
            strcmp(rows->rows.at[j].gpu, rows->rows.at[i].gpu) == 0)
            return false;
    return *rows->rows.at[i].gpu != '\0';
}

void validate_groups_print(FILE *out, const struct validate_table *rows)
{
    struct arena arena = ARENA_INIT;
    struct table table = {0};
    static const struct table_column columns[] = {{"source", "", true}, {"GPU", "", true}, {"in fit", "", true},
        {"rows", "", false}, {"speeds", "", false}, {"bias", "%", false}, {"median", "%", false}, {"p90", "%", false},
        {"mean", "%", false}, {"ratios", "", false}, {"mean", "points", false}, {"most", "points", false},
        {"peaks", "", false}, {"median", "%", false}, {"OOM wrong", "", false}};
    static const int spare[sizeof columns / sizeof *columns] = {0, 0, 0, 2, 0, 0, 0, 0, 7, 4, 5, 6, 3, 3, 1};
    table_columns(&table, columns, spare, sizeof columns / sizeof *columns);
    for (int i = 0; i < rows->rows.n; i++)
        for (int fitted = 1; fitted >= 0 && opens_group(rows, i); fitted--) {
            struct group group = {rows->rows.at[i].source, rows->rows.at[i].gpu, fitted == 1};
            add_summary(&table, &arena, rows->rows.at[i].source, &group, rows);
        }
    struct group fitted = {.fitted = true}, rest = {0};
    bool some = validate_summarise(rows, in_group, &fitted).n_rows > 0;
    add_summary(&table, &arena, "all that fits rest on", &fitted, rows);
    add_summary(&table, &arena, some ? "all others" : "all", &rest, rows);
    table_finish(out, &table);
    arena_release(&arena);
    fputs("\nspeeds: |predicted / measured - 1|; ratios: speed over that of the curve's smallest cluster, percentage "
          "points;\npeaks: of memory, allocated where that was measured, else reserved by PyTorch; OOM wrong: out of "
          "memory only here, or only there\n",
        out);
}

/* "tokens/s/GPU", or what the rows' models have instead. */
static const char *speed_unit(const struct validate_table *rows, struct arena *arena)
{
    struct scenario_set all = {.points = ARENA_ARRAY(arena, struct scenario_point, rows->rows.n)};
    for (int i = 0; i < rows->rows.n; i++)
        if (rows->rows.at[i].set.n_points == 1)
            all.points[all.n_points++] = rows->rows.at[i].set.points[0];
    return arena_printf(arena, "%s/s/GPU", all.n_points ? words_counted_all(&all) : "tokens");
}

void validate_rows_print(FILE *out, const struct validate_table *rows)
{
    struct arena arena = ARENA_INIT;
    struct table table = {0};
    const char *unit = speed_unit(rows, &arena);
    const struct table_column columns[] = {{"id", "", true}, {"model", "", true}, {"GPU", "", true},
        {"strategy", "", true}, {"GPUs", "", false}, {"in fit", "", true}, {"measured", unit, false},
        {"predicted", unit, false}, {"error", "%", false}, {"ratio", "points", false}, {"measured peak", "GB", false},
        {"predicted peak", "GB", false}, {"status", "", true}};
    static const int spare[sizeof columns / sizeof *columns] = {0, 0, 1, 0, 0, 2, 0, 0, 0, 3, 4, 4, 0};
    table_columns(&table, columns, spare, sizeof columns / sizeof *columns);
    for (int i = 0; i < rows->rows.n; i++) {
        const struct validate_row *row = &rows->rows.at[i];
        if (row->status == VALIDATE_NOT_SIMULATED)
            continue;
        const double figures[] = {row->measured.tokens_per_s_per_gpu, row->predicted.tokens_per_s_per_gpu};
        const double peaks[] = {row->measured_peak_bytes, row->predicted_peak_bytes};
        const char *const texts[] = {row->id, row->model, row->gpu, row->strategy,
            arena_printf(&arena, "%" PRId64, row->gpus), *row->used_in_fit ? "yes" : "no"};
        for (size_t k = 0; k < sizeof texts / sizeof *texts; k++)
            table_cell(&table, texts[k]);
        for (int k = 0; k < 2; k++)
            table_cell(&table, figures[k] > 0 ? arena_printf(&arena, "%.1f", figures[k]) : "-");
        table_cell(&table, row->has_error ? words_number(&arena, 100 * row->error, 1, true) : "-");
        if (row->has_error && fabs(row->error) > TABLE_FAR_OFF)
            table_mark(&table, TABLE_DOUBTFUL);
        table_cell(&table,
            row->has_ratio ? words_number(&arena, 100 * (row->predicted_ratio - row->measured_ratio), 1, true) : "-");
        for (int k = 0; k < 2; k++)
            table_cell(&table, peaks[k] > 0 ? arena_printf(&arena, "%.1f", peaks[k] * 1e-9) : "-");
        bool agrees = (row->status == VALIDATE_OOM) == row->measured_oom;
        table_cell(&table, arena_printf(&arena, "%s%s", validate_status_names[row->status],
                               agrees              ? ""
                               : row->measured_oom ? ", published: out of memory"
                                                   : ", published: fits"));
    }
    table_finish(out, &table);
    arena_release(&arena);
    fputc('\n', out);
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

void validate_not_simulated_print(FILE *out, const struct validate_table *rows)
{
    bool heading = false;
    for (int i = 0; i < rows->rows.n; i++) {
        const struct validate_row *row = &rows->rows.at[i];
        bool first = row->status == VALIDATE_NOT_SIMULATED;
        for (int j = 0; j < i && first; j++)
            first = strcmp(rows->rows.at[j].reason, row->reason) != 0;
        if (!first)
            continue;
        fprintf(out, "%s  %s:", heading ? "" : "\nnot simulated:\n", row->reason);
        heading = true;
        for (int j = i; j < rows->rows.n; j++)
            if (strcmp(rows->rows.at[j].reason, row->reason) == 0)
                fprintf(out, " %s", rows->rows.at[j].id);
        fputc('\n', out);
    }
}
