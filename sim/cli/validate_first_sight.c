#include "cli/validate_parts.h"

#include "cli/table.h"
#include "cli/words.h"
#include "validate/first_sight.h"

#include <string.h>

static bool of_source(const struct validate_row *row, const void *source)
{
    return !source || strcmp(row->source, source) == 0;
}

/* source: NULL for all. */
static void add_line(
    struct table *table, struct arena *arena, const struct validate_table *rows, const char *name, const char *source)
{
    struct validate_first_sight s = validate_first_sight_summarise(rows, of_source, source);
    if (s.first.n_errors == 0)
        return;
    table_cell(table, name);
    table_cell(table, arena_printf(arena, "%d", s.first.n_errors));
    const double percents[] = {s.first.bias, s.first.median, s.first.p90, s.today.bias, s.today.median, s.today.p90};
    for (size_t k = 0; k < sizeof percents / sizeof *percents; k++)
        table_cell(table, words_number(arena, 100 * percents[k], 1, false));
}

void validate_first_sight_print(FILE *out, const struct validate_table *rows)
{
    struct arena arena = ARENA_INIT;
    struct table table = {0};
    static const struct table_column columns[] = {{"source", "", true}, {"speeds", "", false},
        {"first: bias", "%", false}, {"median", "%", false}, {"p90", "%", false}, {"today: bias", "%", false},
        {"median", "%", false}, {"p90", "%", false}};
    bool any = validate_first_sight_summarise(rows, of_source, NULL).first.n_errors > 0;
    table_columns(&table, columns, NULL, sizeof columns / sizeof *columns);
    for (int i = 0; i < rows->rows.n && any; i++) {
        bool opens = true;
        for (int j = 0; j < i && opens; j++)
            opens = strcmp(rows->rows.at[j].source, rows->rows.at[i].source) != 0;
        if (opens)
            add_line(&table, &arena, rows, rows->rows.at[i].source, rows->rows.at[i].source);
    }
    add_line(&table, &arena, rows, "all", NULL);
    if (any) {
        fputs("\nfirst: errors of predictions made before the measurements were known; today: of the same rows\n", out);
        table_print(out, &table);
    }
    table_free(&table);
    arena_release(&arena);
}
