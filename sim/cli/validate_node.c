#include "cli/validate_parts.h"

#include "cli/table.h"
#include "cli/words.h"

#include <math.h>
#include <string.h>

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

/* "composer" of ".../composer.yaml" */
static const char *stack_name(const char *path, struct arena *arena)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *dot = strrchr(name, '.');
    return arena_printf(arena, "%.*s", dot ? (int)(dot - name) : (int)strlen(name), name);
}

static void add_framework(struct table *table, struct arena *arena, const struct validate_table *rows, int first)
{
    struct framework framework = framework_of(&rows->rows.at[first]);
    struct validate_summary summary = validate_summarise(rows, of_framework, &framework);
    double most = 0;
    for (int i = first; i < rows->rows.n; i++)
        if (of_framework(&rows->rows.at[i], &framework))
            most = fmax(most, fabs(rows->rows.at[i].error));
    table_cell(table, framework.stack ? stack_name(framework.stack, arena) : "none");
    table_cell(table, framework.source);
    table_cell(table, framework.fitted ? "yes" : "no");
    table_cell(table, arena_printf(arena, "%d", summary.n_errors));
    const double figures[] = {summary.bias, summary.median, most};
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
        table_cell(table, words_number(arena, 100 * figures[i], 1, false));
}

static bool opens_framework(const struct validate_table *rows, int at)
{
    if (!is_one_node(&rows->rows.at[at]))
        return false;
    struct framework framework = framework_of(&rows->rows.at[at]);
    for (int i = 0; i < at; i++)
        if (of_framework(&rows->rows.at[i], &framework))
            return false;
    return true;
}

void validate_node_print(FILE *out, const struct validate_table *rows)
{
    struct arena arena = ARENA_INIT;
    struct table table = {0};
    static const struct table_column columns[] = {{"stack", "", true}, {"source", "", true}, {"in fit", "", true},
        {"rows", "", false}, {"bias", "%", false}, {"median", "%", false}, {"most", "%", false}};
    table_columns(&table, columns, NULL, sizeof columns / sizeof *columns);
    bool any = false;
    for (int i = 0; i < rows->rows.n; i++)
        if (opens_framework(rows, i)) {
            any = true;
            add_framework(&table, &arena, rows, i);
        }
    if (any) {
        fputs("\nspeed on one GPU or one node, by stack profile (aim: 7 % in the median)\n", out);
        table_print(out, &table);
    }
    table_free(&table);
    arena_release(&arena);
}
