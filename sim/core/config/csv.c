/* CSV tables in memory: cells row by row, with the line where each row begins.
 *
 * libcsv splits the cells and counts no lines, so it gets one line at a time, and the line counter
 * is ours. A quoted cell may go on over the end of a line; in_row then holds the row's first line.
 * Comments count only before the header. Cells live in the table's arena, and csv_cell() is an
 * index, so a table is read by column names looked up once.
 *
 * libcsv is strict here: a quote inside a cell that is not quoted is an error, as it is mostly a
 * lost separator. */
#include "config/csv.h"
#include "config/config.h"
#include "config/document.h"

#include <csv.h>
#include <math.h>
#include <string.h>

struct csv_table {
    struct arena arena; /* name and cells */
    const char *name;
    int columns;
    VEC(const char *) cells; /* row by row, the header first */
    VEC(int) lines;          /* where a row starts, the header first */
};

struct filler {
    struct csv_table *table;
    struct diag *diag;
    enum status worst;
    int line;     /* being fed */
    int row_line; /* where the row that is being read began */
    int row_cell; /* its first cell */
    bool in_row;  /* a quoted cell goes on over the end of a line */
};

static void csv_refuse(struct filler *f, int line, const char *what)
{
    f->worst = diag_input(f->diag, (struct source_pos){f->table->name, line, 1}, "%s", what);
}

static void check_header(struct filler *f)
{
    struct csv_table *table = f->table;
    struct source_pos at = {table->name, f->row_line, 1};
    if (table->columns == 1 && strpbrk(table->cells.at[0], ";\t"))
        f->worst = diag_input(
            f->diag, at, "one column '%.40s'; separate cells by commas", table->cells.at[0]);
    for (int i = 0; i < table->columns; i++) {
        const char *name = table->cells.at[i];
        if (!*name)
            f->worst = diag_input(f->diag, at, "column %d of the header has no name", i + 1);
        else if (csv_column(table, name) != i)
            f->worst = diag_input(f->diag, at, "column '%.40s' stands twice in the header", name);
    }
}

static void take_cell(void *bytes, size_t n, void *user)
{
    struct filler *f = user;
    const char *text = bytes ? bytes : "";
    if (memchr(text, '\0', n))
        csv_refuse(f, f->line, "NUL character in a cell");
    vec_push(&f->table->cells, arena_strdup(&f->table->arena, text));
}

/* Rows of empty cells, which spreadsheets leave below a table, are blank lines. */
static bool is_empty(const struct filler *f)
{
    for (int i = f->row_cell; i < f->table->cells.n; i++)
        if (*f->table->cells.at[i])
            return false;
    return true;
}

static void csv_take_row(int terminator, void *user)
{
    (void)terminator;
    struct filler *f = user;
    struct csv_table *table = f->table;
    int n = table->cells.n - f->row_cell;
    f->in_row = false;
    if (table->lines.n > 0 && n == table->columns && is_empty(f)) {
        table->cells.n = f->row_cell;
        return;
    }
    vec_push(&table->lines, f->row_line);
    if (table->lines.n == 1) {
        table->columns = n;
        check_header(f);
    } else if (n != table->columns) {
        f->worst = diag_input(f->diag, (struct source_pos){table->name, f->row_line, 1},
            "%d cell%s where the header has %d", n, plural(n), table->columns);
    }
    f->row_cell = table->cells.n;
}

/* libcsv skips such lines silently. */
static bool is_blank(const char *line, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (!strchr(" \t\r\n", line[i]) || line[i] == '\0')
            return false;
    return true;
}

/* The mark that UTF-16 begins with; spreadsheets call it Unicode. */
static bool is_utf16(const char *text, size_t n)
{
    return n >= 2 && (memcmp(text, "\xff\xfe", 2) == 0 || memcmp(text, "\xfe\xff", 2) == 0);
}

/* libcsv counts no lines, so it is fed one at a time. */
static void csv_feed(struct filler *f, struct csv_parser *parser, const char *text, size_t n)
{
    static const char mark[] = "\xef\xbb\xbf"; /* that spreadsheets write before the text: U+FEFF */
    size_t skip =
        n >= sizeof mark - 1 && memcmp(text, mark, sizeof mark - 1) == 0 ? sizeof mark - 1 : 0;
    text += skip;
    n -= skip;
    if (is_utf16(text, n)) {
        csv_refuse(f, 1, "this is UTF-16; save the table as CSV in UTF-8");
        return;
    }
    for (size_t length; n > 0; text += length, n -= length) {
        const char *newline = memchr(text, '\n', n);
        length = newline ? (size_t)(newline - text) + 1 : n;
        f->line++;
        if (f->table->lines.n == 0 && !f->in_row && *text == '#')
            continue;
        if (!f->in_row)
            f->row_line = f->line;
        f->in_row |= !is_blank(text, length);
        size_t taken = csv_parse(parser, text, length, take_cell, csv_take_row, f);
        if (taken < length) {
            f->worst =
                diag_input(f->diag, (struct source_pos){f->table->name, f->line, (int)taken + 1},
                    "a quote inside a cell, or text after a closing quote; quote the whole cell "
                    "and double the quotes in it");
            return;
        }
    }
    if (csv_fini(parser, take_cell, csv_take_row, f) != 0)
        csv_refuse(f, f->row_line, "a quoted cell of this row is not closed");
}

enum status csv_load_text(
    struct csv_table **out, const char *name, const char *text, size_t n, struct diag *diag)
{
    struct csv_table *table = xcalloc(1, sizeof *table);
    struct filler f = {.table = table, .diag = diag};
    struct csv_parser parser;
    *out = NULL;
    table->name = arena_strdup(&table->arena, name);
    if (csv_init(&parser, CSV_STRICT | CSV_STRICT_FINI | CSV_APPEND_NULL) != 0)
        f.worst = diag_io(diag, (struct source_pos){.file = name}, "out of memory");
    else
        csv_feed(&f, &parser, text, n);
    csv_free(&parser);
    if (f.worst == STATUS_OK && table->lines.n == 0)
        csv_refuse(&f, 1, "no header row");
    if (f.worst != STATUS_OK) {
        csv_release(table);
        return f.worst;
    }
    *out = table;
    return STATUS_OK;
}

enum status csv_load(struct csv_table **out, const char *path, struct diag *diag)
{
    char *text = NULL;
    size_t n = 0;
    *out = NULL;
    enum status status = config_read_file(&text, &n, FILES_ANY, path, diag);
    if (status == STATUS_OK)
        status = csv_load_text(out, path, text, n, diag);
    free(text);
    return status;
}

void csv_release(struct csv_table *table)
{
    if (!table)
        return;
    vec_free(&table->cells);
    vec_free(&table->lines);
    arena_release(&table->arena);
    free(table);
}

int csv_rows(const struct csv_table *table)
{
    return table->lines.n - 1;
}

int csv_columns(const struct csv_table *table)
{
    return table->columns;
}

const char *csv_name(const struct csv_table *table, int column)
{
    BUG_IF(column < 0 || column >= table->columns, "column %d of %d", column, table->columns);
    return table->cells.at[column];
}

int csv_column(const struct csv_table *table, const char *name)
{
    for (int i = 0; i < table->columns; i++)
        if (strcmp(table->cells.at[i], name) == 0)
            return i;
    return -1;
}

static void csv_check_row(const struct csv_table *table, int row)
{
    BUG_IF(row < 0 || row >= csv_rows(table), "row %d of %d", row, csv_rows(table));
}

const char *csv_cell(const struct csv_table *table, int row, int column)
{
    csv_check_row(table, row);
    BUG_IF(column < -1 || column >= table->columns, "column %d of %d", column, table->columns);
    return column < 0
               ? ""
               : table->cells.at[(size_t)(row + 1) * (size_t)table->columns + (size_t)column];
}

struct source_pos csv_pos(const struct csv_table *table, int row)
{
    csv_check_row(table, row);
    return (struct source_pos){table->name, table->lines.at[row + 1], 1};
}

enum status csv_number(const struct csv_table *table, int row, int column, double missing,
    double *out, struct diag *diag)
{
    const char *text = csv_cell(table, row, column);
    char why[128]; /* the least that quantity_parse() asks for */
    if (!*text) {
        *out = missing;
        return STATUS_OK;
    }
    if (!quantity_parse(out, text, DIM_NONE, why, sizeof why))
        return diag_input(
            diag, csv_pos(table, row), "column '%.40s': %s", table->cells.at[column], why);
    return STATUS_OK;
}

void csv_write_text(FILE *out, const char *text)
{
    if (!strpbrk(text, ",\"\r\n")) {
        fputs(text, out);
        return;
    }
    fputc('"', out);
    for (const char *c = text; *c; c++)
        fputs(*c == '"' ? "\"\"" : (char[]){*c, '\0'}, out);
    fputc('"', out);
}
