#include "cli/table.h"

#include "base/status.h"

#include <string.h>

enum { GAP = 2 };

void table_column(struct table *table, const char *name, const char *unit, bool is_text)
{
    vec_push(&table->columns, (struct table_column){name, unit, is_text});
}

void table_cell(struct table *table, const char *text)
{
    vec_push(&table->cells, text);
}

static int wider(int width, const char *text)
{
    int n = (int)strlen(text);
    return n > width ? n : width;
}

static void print_cell(FILE *out, const struct table_column *column, const char *text, int width, bool last)
{
    if (!column->is_text)
        fprintf(out, "%*s%s", width, text, last ? "\n" : "  ");
    else if (last)
        fprintf(out, "%s\n", text);
    else
        fprintf(out, "%-*s", width + GAP, text);
}

void table_print(FILE *out, const struct table *table)
{
    int n = table->columns.n, rows = n ? table->cells.n / n : 0;
    BUG_IF(n == 0 || table->cells.n % n != 0, "%d cells in %d columns", table->cells.n, n);
    int *widths = xcalloc((size_t)n, sizeof *widths);
    for (int c = 0; c < n; c++) {
        widths[c] = wider(wider(0, table->columns.at[c].name), table->columns.at[c].unit);
        for (int r = 0; r < rows; r++)
            widths[c] = wider(widths[c], table->cells.at[r * n + c]);
    }
    bool units = false;
    for (int c = 0; c < n; c++)
        units = units || *table->columns.at[c].unit;
    for (int r = -2; r < rows; r++)
        for (int c = 0; c < n && (r != -1 || units); c++) {
            const struct table_column *column = &table->columns.at[c];
            const char *text = r == -2 ? column->name : r == -1 ? column->unit : table->cells.at[r * n + c];
            print_cell(out, column, text, widths[c], c == n - 1);
        }
    free(widths);
}

void table_free(struct table *table)
{
    vec_free(&table->columns);
    vec_free(&table->cells);
}
