#include "cli/validate_parts.h"

#include "cli/table.h"
#include "cli/words.h"
#include "validate/interval.h"

#include <string.h>

/* Rows that no fit rests on, of a source on a GPU with a model; NULL: any. */
struct group {
    const char *source, *gpu, *model;
};

static bool in_group(const struct validate_row *row, const void *self)
{
    const struct group *group = self;
    return (!group->source || strcmp(row->source, group->source) == 0) &&
           (!group->gpu || strcmp(row->gpu, group->gpu) == 0) &&
           (!group->model || strcmp(row->model, group->model) == 0) && *row->used_in_fit == '\0';
}

static void cell_coverage(struct table *table, struct arena *arena, int covered, int n)
{
    table_cell(table, arena_printf(arena, "%d", n));
    table_cell(table, n > 0 ? words_number(arena, 100.0 * covered / n, 1, false) : "-");
}

static void add_coverage(struct table *table, struct arena *arena, const char *name, const struct group *group,
    const struct validate_table *rows)
{
    struct validate_summary s = validate_summarise(rows, in_group, group);
    if (s.n_intervals == 0)
        return;
    table_cell(table, name);
    table_cell(table, group->gpu ? group->gpu : "all");
    table_cell(table, group->model ? group->model : "all");
    cell_coverage(table, arena, s.n_covered, s.n_intervals);
    cell_coverage(table, arena, s.n_ratio_covered, s.n_ratio_intervals);
}

void validate_coverage_print(FILE *out, const struct validate_table *rows)
{
    struct arena arena = ARENA_INIT;
    struct table table = {0};
    static const struct table_column columns[] = {{"source", "", true}, {"GPU", "", true}, {"model", "", true},
        {"speeds", "", false}, {"covered", "%", false}, {"ratios", "", false}, {"covered", "%", false}};
    table_columns(&table, columns, NULL, sizeof columns / sizeof *columns);
    for (int i = 0; i < rows->rows.n; i++) {
        const struct validate_row *row = &rows->rows.at[i];
        struct group group = {row->source, row->gpu, row->model};
        bool first = true;
        for (int j = 0; j < i && first; j++)
            first = !in_group(&rows->rows.at[j], &group);
        if (first && in_group(row, &group))
            add_coverage(&table, &arena, row->source, &group, rows);
    }
    add_coverage(&table, &arena, "all that no fit rests on", &(struct group){0}, rows);
    fputs("\n90 % intervals of rows that no fit rests on:\n", out);
    table_finish(out, &table);
    arena_release(&arena);
}

static void print_waiting(FILE *out, const struct validate_table *rows, const struct discrepancy *filed)
{
    struct validate_discrepancy found = validate_waiting(rows);
    if (found.rows > 0)
        fprintf(out, "  %-14s %5.1f +- %.1f, filed %.1f +- %.1f (%d rows; a plain number)\n", "waiting", found.value,
            found.std_error, filed->waiting.value, filed->waiting.std_error, found.rows);
}

void validate_discrepancy_print(FILE *out, const struct validate_table *rows, const struct discrepancy *filed)
{
    fputs(
        "\nwhat the model leaves out (log-standard deviation of speeds with and without a stack profile, and of their\n"
        "ratio for each doubling of the GPUs), by these rows, and filed, by which intervals are widened:\n",
        out);
    for (int c = 0; c < DISCREPANCY_CLASSES; c++) {
        struct validate_discrepancy found = validate_discrepancy(rows, (enum discrepancy_class)c);
        if (found.rows == 0) {
            fprintf(out, "  %-14s none of these rows, filed %.2f +- %.2f %%\n", discrepancy_names[c],
                100 * filed->of[c].value, 100 * filed->of[c].std_error);
            continue;
        }
        fprintf(out, "  %-14s %5.2f +- %.2f %%, filed %.2f +- %.2f %% (%d row%s, %d famil%s, %d source%s)\n",
            discrepancy_names[c], 100 * found.value, 100 * found.std_error, 100 * filed->of[c].value,
            100 * filed->of[c].std_error, found.rows, plural(found.rows), found.families,
            found.families == 1 ? "y" : "ies", found.sources, plural(found.sources));
    }
    print_waiting(out, rows, filed);
}
