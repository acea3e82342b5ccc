/* A table as lines of text, fitted to the width of a terminal.
 *
 * Cells are one list, row after row, and the first row brings the columns. find_widths() takes the
 * longest text of each column; rows_table_fit() then gives up room in this order: heads are broken
 * between words, columns with a spare rank are left out (the highest rank first, of equal ones the
 * last), texts are cut a character at a time, always the widest, to SHORTEST or the longest piece
 * of their head. If that is not enough, texts are whole again, and rows_table_print_parts() makes
 * several tables, each with the first column. A last line names what was left out.
 *
 * What is subtle: widths count characters, lengths of texts bytes. Blanks behind a text are pending
 * (*blanks) until more text follows, so no line ends in them. COLUMNS goes before the terminal's
 * own width, 0 is no limit; a FILE in memory has none. */
#include "rows/table.h"

#include "base/status.h"
#include "base/utf8.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { USUAL_SCREEN = 80, WIDEST_SCREEN = 100000 };

static bool is_terminal(FILE *out)
{
    int file = fileno(out); /* -1: memory */
    return file >= 0 && isatty(file);
}

static int terminal_width(FILE *out)
{
    struct winsize size = {0};
    if (is_terminal(out) && ioctl(fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col;
    return USUAL_SCREEN;
}

int screen_width(FILE *out)
{
    if (fileno(out) < 0) /* memory */
        return 0;
    const char *columns = getenv("COLUMNS");
    char *end = NULL;
    long width = columns ? strtol(columns, &end, 10) : -1;
    if (columns && end != columns && !*end && width >= 0 && width <= WIDEST_SCREEN)
        return (int)width;
    return terminal_width(out);
}

int screen_line(FILE *out)
{
    int given = screen_width(out), wide = terminal_width(out);
    return (given > 0 && given < wide ? given : wide) - 1;
}

bool screen_colour(FILE *out)
{
    const char *none = getenv("NO_COLOR"), *term = getenv("TERM");
    return is_terminal(out) && !(none && *none) && term && *term && strcmp(term, "dumb") != 0;
}

static int least_of(int a, int b)
{
    return a < b ? a : b;
}

static int rows_table_wider(int width, const char *text)
{
    int own = utf8_width(text, (int)strlen(text));
    return own > width ? own : width;
}

/* Bytes of the text's next line: up to its end or as many whole words as fit, one at least. */
static int words_in(const char *text, int width)
{
    int end = (int)strcspn(text, "\n"), taken = (int)strcspn(text, " \n");
    for (int next; taken < end; taken = next) {
        next = taken + 1 + (int)strcspn(text + taken + 1, " \n");
        if (utf8_width(text, next) > width)
            break;
    }
    return taken;
}

void screen_wrap(FILE *out, const char *head, const char *text)
{
    enum { LONGEST = 100, SHORTEST = 20 };
    int screen = screen_width(out), at = rows_table_wider(0, head);
    int width = (screen > 0 ? least_of(screen, LONGEST) : LONGEST) - at;
    width = width > SHORTEST ? width : SHORTEST;
    for (const char *before = head; *text; before = "") {
        int n = words_in(text, width), shown = n;
        while (shown > 1 && text[shown - 1] == ' ')
            shown--;
        fprintf(out, "%*s%.*s\n", at, before, shown, text);
        text += n + (text[n] == ' ' || text[n] == '\n');
    }
}

/* Texts are not narrower than SHORTEST. */
enum { GAP = 2, SHORTEST = 10, MOST_WIDTH = 1 << 20 };
static const char cut[] = "..";

/* How a table is laid out: columns that are shown, each with its width. */
struct layout {
    const struct table *table;
    int n_columns, n_rows;
    int *width;
    bool *shown;
    bool broken, colour; /* heads are broken between words */
};

void table_column(struct table *table, const char *name, const char *unit, bool is_text)
{
    vec_push(&table->columns, (struct table_column){name, unit, is_text});
    vec_push(&table->spare, 0);
}

void table_spare(struct table *table, int rank)
{
    int column = table->rows > 0 ? table->cells.n - 1 : table->spare.n - 1;
    if (column < table->spare.n)
        table->spare.at[column] = (char)rank;
}

void table_cell(struct table *table, const char *text)
{
    vec_push(&table->cells, text);
}

/* The first row brings the columns. */
static void rows_table_put(struct table *table, struct table_column column, const char *text)
{
    if (table->rows == 1)
        table_column(table, column.name, column.unit, column.is_text);
    table_cell(table, text);
}

void table_row(struct table *table)
{
    table->rows++;
}

void table_text(struct table *table, const char *name, const char *unit, const char *text)
{
    rows_table_put(table, (struct table_column){name, unit, true}, text);
}

void table_number_as(struct table *table, const char *name, const char *unit, const char *text)
{
    rows_table_put(table, (struct table_column){name, unit, false}, text);
}

void table_number(struct table *table, const char *name, const char *unit, int digits, double value)
{
    table_number_as(table, name, unit,
        isnan(value) ? "-" : arena_printf(&table->numbers, "%.*f", digits, value));
}

void table_mark(struct table *table, enum table_mark mark)
{
    while (table->marks.n < table->cells.n)
        vec_push(&table->marks, TABLE_PLAIN);
    table->marks.at[table->cells.n - 1] = (char)mark;
}

/* Bytes up to where a line may be broken: before a blank, or after what joins words ("fsdp.",
 * "limit_", "TFLOPS/", but not "tokens/" of "tokens/s"). */
static int piece(const char *text)
{
    enum { LEAST = 3 };
    static const char ends[] = " ._/";
    for (int n = 0;;) {
        n += (int)strcspn(text + n, ends);
        if (!text[n] || text[n] == ' ')
            return n;
        n++;
        if (n > 1 && (text[n - 1] != '/' || strcspn(text + n, ends) >= LEAST))
            return n;
    }
}

static int longest_piece(const char *text)
{
    int longest = 0;
    while (*text) {
        int n = piece(text), own = utf8_width(text, n);
        longest = own > longest ? own : longest;
        text += n + (text[n] == ' ');
    }
    return longest;
}

static const char *rows_table_cell(const struct layout *layout, int row, int column)
{
    return layout->table->cells.at[row * layout->n_columns + column];
}

static void find_widths(struct layout *layout)
{
    for (int c = 0; c < layout->n_columns; c++) {
        const struct table_column *column = &layout->table->columns.at[c];
        int width =
            layout->broken ? longest_piece(column->name) : rows_table_wider(0, column->name);
        int unit = layout->broken ? longest_piece(column->unit) : rows_table_wider(0, column->unit);
        layout->width[c] = unit > width ? unit : width;
        for (int r = 0; r < layout->n_rows; r++)
            layout->width[c] = rows_table_wider(layout->width[c], rows_table_cell(layout, r, c));
    }
}

static int line_width(const struct layout *layout)
{
    int width = -GAP;
    for (int c = 0; c < layout->n_columns; c++)
        width += layout->shown[c] ? layout->width[c] + GAP : 0;
    return width;
}

/* The column to leave out next; -1: all that are left stay. Of equal rank the last goes first. */
static int most_spare(const struct layout *layout)
{
    int found = -1;
    for (int c = 0; c < layout->n_columns; c++)
        if (layout->shown[c] && layout->table->spare.at[c] > 0 &&
            (found < 0 || layout->table->spare.at[c] >= layout->table->spare.at[found]))
            found = c;
    return found;
}

/* The column of texts to cut next; heads stay whole. */
static int widest_text(const struct layout *layout)
{
    int found = -1;
    for (int c = 0; c < layout->n_columns; c++) {
        const struct table_column *column = &layout->table->columns.at[c];
        int name = longest_piece(column->name), unit = longest_piece(column->unit);
        int least = name > unit ? name : unit;
        least = least > SHORTEST ? least : SHORTEST;
        if (layout->shown[c] && column->is_text && layout->width[c] > least &&
            (found < 0 || layout->width[c] > layout->width[found]))
            found = c;
    }
    return found;
}

static void rows_table_fit(struct layout *layout, int width)
{
    if (line_width(layout) > width) {
        layout->broken = true;
        find_widths(layout);
    }
    for (int c; line_width(layout) > width && (c = most_spare(layout)) >= 0;)
        layout->shown[c] = false;
    for (int c; line_width(layout) > width && (c = widest_text(layout)) >= 0;)
        layout->width[c]--;
    if (line_width(layout) > width) /* it did not help */
        find_widths(layout);
}

/* The i-th line, n bytes, of a text that is broken so that pieces stay whole; NULL: it has
 * fewer. */
static const char *broken_line(const char *text, int width, int i, int *n)
{
    for (int line = 0; *text; line++) {
        int taken = piece(text), next;
        for (; text[taken]; taken = next) {
            next = taken + (text[taken] == ' ');
            next += piece(text + next);
            if (utf8_width(text, next) > width)
                break;
        }
        *n = taken;
        if (line == i)
            return text;
        text += taken + (text[taken] == ' ');
    }
    *n = 0;
    return NULL;
}

/* The i-th line of a cell: words stay whole where they fit; NULL: it has fewer. */
static const char *cell_line(const char *text, int width, int i, int *n)
{
    for (int line = 0; *text; line++) {
        *n = words_in(text, width);
        if (utf8_width(text, *n) > width)
            broken_line(text, width, 0, n);
        if (line == i)
            return text;
        text += *n + (text[*n] == ' ');
    }
    *n = 0;
    return NULL;
}

static int rows_table_count_lines(const char *text, int width)
{
    int n, lines = 0;
    while (broken_line(text, width, lines, &n))
        lines++;
    return lines;
}

/* mark: of the cell. *blanks: pending blanks, printed only before further text, so that no line
 * ends in them. */
static void rows_table_print_text(
    const struct layout *layout, FILE *out, int c, const char *text, int n, char mark, int *blanks)
{
    int width = layout->width[c], own = utf8_width(text, n);
    bool is_text = layout->table->columns.at[c].is_text, is_cut = own > width;
    const char *colour = !layout->colour || mark == TABLE_PLAIN ? ""
                         : mark == TABLE_BAD                    ? SCREEN_RED
                                                                : SCREEN_YELLOW;
    int shown = is_cut ? utf8_bytes(text, width - (int)strlen(cut)) : n,
        left = is_cut ? 0 : width - own;
    if (n > 0)
        fprintf(out, "%*s%s%.*s%s%s", *blanks + (is_text ? 0 : left), "", colour, shown, text,
            is_cut ? cut : "", *colour ? SCREEN_PLAIN : "");
    *blanks = n > 0 ? (is_text ? left : 0) + GAP : *blanks + width + GAP;
}

static int last_shown(const struct layout *layout)
{
    int last = layout->n_columns - 1;
    while (last > 0 && !layout->shown[last])
        last--;
    return last;
}

/* The names, or the units, as lines that end together. */
static void rows_table_print_head(const struct layout *layout, FILE *out, bool units)
{
    int lines = 0, last = last_shown(layout);
    for (int c = 0; c < layout->n_columns; c++) {
        const struct table_column *column = &layout->table->columns.at[c];
        int n = rows_table_count_lines(
            units ? column->unit : column->name, layout->broken ? layout->width[c] : MOST_WIDTH);
        lines = layout->shown[c] && n > lines ? n : lines;
    }
    for (int line = 0; line < lines; line++) {
        int blanks = 0;
        for (int c = 0; c <= last; c++) {
            const struct table_column *column = &layout->table->columns.at[c];
            const char *text = units ? column->unit : column->name;
            int width = layout->broken ? layout->width[c] : MOST_WIDTH, n = 0;
            int own = rows_table_count_lines(text, width), skipped = units ? 0 : lines - own;
            const char *part =
                line >= skipped ? broken_line(text, width, line - skipped, &n) : NULL;
            if (layout->shown[c])
                rows_table_print_text(layout, out, c, part ? part : "", n, TABLE_PLAIN, &blanks);
        }
        fputc('\n', out);
    }
}

static char mark_of(const struct table *table, int cell)
{
    return (char)(cell < table->marks.n ? table->marks.at[cell] : TABLE_PLAIN);
}

static void print_shown(const struct layout *layout, FILE *out)
{
    int last = last_shown(layout);
    rows_table_print_head(layout, out, false);
    rows_table_print_head(layout, out, true);
    for (int r = 0; r < layout->n_rows; r++)
        for (int line = 0, lines = 1; line < lines; line++) {
            int blanks = 0;
            for (int c = 0; c <= last; c++) {
                int n, more;
                const char *text =
                    cell_line(rows_table_cell(layout, r, c), layout->width[c], line, &n);
                if (!layout->shown[c])
                    continue;
                rows_table_print_text(layout, out, c, text ? text : "", n,
                    mark_of(layout->table, r * layout->n_columns + c), &blanks);
                lines += text && line + 1 == lines && cell_line(text, layout->width[c], 1, &more);
            }
            fputc('\n', out);
        }
}

/* Columns that stand are too wide for one table: several, each with the first of them. A part
 * has at least one column beside the first, however wide it is. */
static void rows_table_print_parts(struct layout *layout, FILE *out, int width)
{
    int n = layout->n_columns;
    bool *wanted = xcalloc((size_t)n, sizeof *wanted);
    int head = 0;
    memcpy(wanted, layout->shown, sizeof *wanted * (size_t)n);
    while (head < n - 1 && !wanted[head])
        head++;
    if (layout->table->columns.at[head].is_text && layout->width[head] > width / 2 &&
        width / 2 > SHORTEST)
        layout->width[head] = width / 2;
    for (int next = head + 1, part = 0; next < n; part++) {
        for (int c = 0; c < n; c++)
            layout->shown[c] = c == head;
        int first = next;
        for (; next < n; next++) {
            layout->shown[next] = wanted[next];
            if (line_width(layout) > width && next > first) {
                layout->shown[next] = false;
                break;
            }
        }
        fputs(part ? "\n" : "", out);
        print_shown(layout, out);
    }
    memcpy(layout->shown, wanted, sizeof *wanted * (size_t)n);
    free(wanted);
}

static void rows_table_print_left_out(const struct layout *layout, FILE *out, int width)
{
    static const char begin[] = "not shown, for want of room (--wide): ";
    int at = 0;
    for (int c = 0; c < layout->n_columns; c++) {
        if (layout->shown[c])
            continue;
        const struct table_column *column = &layout->table->columns.at[c];
        const char *unit = column->unit, *open = *unit ? " (" : "", *shut = *unit ? ")" : "";
        int n = rows_table_wider(0, column->name) + rows_table_wider(0, unit) +
                (int)(strlen(open) + strlen(shut));
        const char *joint = at == 0 ? begin : at + 3 + n > width ? ",\n  " : ", ";
        at = (*joint == ',' && joint[1] == '\n' ? 2 : at + (int)strlen(joint)) + n;
        fprintf(out, "%s%s%s%s%s", joint, column->name, open, unit, shut);
    }
    fputs(at ? "\n" : "", out);
}

void table_print_on(FILE *out, const struct table *table, int width, bool colour)
{
    int n = table->columns.n;
    BUG_IF(n == 0 || table->cells.n % n != 0, "%d cells in %d columns", table->cells.n, n);
    struct layout layout = {
        .table = table, .n_columns = n, .n_rows = table->cells.n / n, .colour = colour};
    layout.width = xcalloc((size_t)n, sizeof *layout.width);
    layout.shown = xcalloc((size_t)n, sizeof *layout.shown);
    for (int c = 0; c < n; c++)
        layout.shown[c] = true;
    find_widths(&layout);
    if (width > 0)
        rows_table_fit(&layout, width);
    if (width > 0 && line_width(&layout) > width)
        rows_table_print_parts(&layout, out, width);
    else
        print_shown(&layout, out);
    rows_table_print_left_out(&layout, out, width);
    free(layout.width);
    free(layout.shown);
}

void table_print(FILE *out, const struct table *table)
{
    table_print_on(out, table, screen_width(out), screen_colour(out));
}

/* "TFLOPS/GPU"; "exposed comm, % of step". */
static const char *rows_table_name_of(struct arena *arena, const struct table_column *column)
{
    const char *joint = !*column->unit || *column->unit == '/' ? "" : ", ";
    return arena_printf(arena, "%s%s%s", column->name, joint, column->unit);
}

void table_print_row(FILE *out, const struct table *table)
{
    struct arena arena = ARENA_INIT;
    bool colour = screen_colour(out);
    int width = 0;
    for (int c = 0; c < table->columns.n; c++)
        width = rows_table_wider(width, rows_table_name_of(&arena, &table->columns.at[c]));
    for (int c = 0; c < table->columns.n; c++) {
        char mark = colour ? mark_of(table, c) : TABLE_PLAIN;
        const char *begin = mark == TABLE_BAD        ? SCREEN_RED
                            : mark == TABLE_DOUBTFUL ? SCREEN_YELLOW
                                                     : "";
        const char *name = rows_table_name_of(&arena, &table->columns.at[c]);
        int blanks = width - rows_table_wider(0, name) + GAP;
        fputs(begin, out);
        screen_wrap(out, arena_printf(&arena, "%s%*s", name, blanks, ""), table->cells.at[c]);
        fputs(*begin ? SCREEN_PLAIN : "", out);
    }
    arena_release(&arena);
}

void table_free(struct table *table)
{
    vec_free(&table->columns);
    vec_free(&table->spare);
    vec_free(&table->cells);
    vec_free(&table->marks);
    arena_release(&table->numbers);
}

void table_finish(FILE *out, struct table *table)
{
    if (table->columns.n > 0)
        table_print(out, table);
    table_free(table);
}
