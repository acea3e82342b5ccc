/* Tables that SQL scripts make, for the terminal, as Markdown or as records.
 *
 * One statement after the other: store_next() runs it, its names become columns, its rows go out
 * as they come; only the terminal's table waits for the last one. A name is
 * "heading|unit|digits|spare": '+' before the digits prints signs, '!' behind them marks large
 * values as doubtful, '>' before the heading makes a right-hand column. A column "@" is a word
 * that takes the place of '@' in headings. A first column without a heading is the text above a
 * group of rows; where it is the only one, rows are lines of text.
 *
 * What is subtle: sheet_take() gets the names as its first call. The lines "-- text" of a
 * statement are printed with its first row, so a statement without rows is silent. What the last
 * statement begins with is printed where only comments are left. */
#include "rows/sheet.h"

#include "rows/table.h"
#include "rows/words.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct sheet_heading {
    const char *heading, *unit;
    int digits, spare; /* digits < 0: as it is */
    bool sign, doubtful, right;
};

struct sheet {
    FILE *out;
    enum sheet_form { FORM_TERMINAL, FORM_MARKDOWN, FORM_RECORDS } form;
    const char *above; /* the script, from the lines above the statement on */
    struct arena arena;
    struct table table;
    struct records records;
    struct sheet_heading columns[RECORD_MAX_CELLS];
    int n, word, rows; /* word: the column "@", or -1; rows: of the statement */
    const char *of;    /* the text that the table stands below, or NULL */
};

/* The lines "-- text" that a statement begins with, behind what is said in other comments. */
static void sheet_put_above(FILE *out, const char *script)
{
    const char *at = script + strspn(script, "\n");
    while (strncmp(at, "/*", 2) == 0) {
        const char *end = strstr(at, "*/");
        if (!end)
            return;
        at = end + 2 + strspn(end + 2, "\n");
    }
    while (strncmp(at, "--", 2) == 0) {
        const char *text = at + 2 + (at[2] == ' ');
        int n = (int)strcspn(text, "\n");
        fprintf(out, "%.*s\n", n, text);
        at = text + n + (text[n] == '\n');
    }
}

/* "mean|%|+1!|3" */
static struct sheet_heading sheet_column(struct sheet *sheet, const char *name)
{
    char *rest = arena_strdup(&sheet->arena, name), *parts[4] = {""};
    for (int i = 0; i < 4; i++) {
        char *part = strsep(&rest, "|");
        parts[i] = part ? part : "";
    }
    bool right = *parts[0] == '>', sign = *parts[2] == '+', digits = *parts[2] != '\0';
    return (struct sheet_heading){.heading = parts[0] + right,
        .unit = parts[1],
        .digits = digits ? atoi(parts[2]) : -1,
        .spare = atoi(parts[3]),
        .sign = sign,
        .doubtful = strchr(parts[2], '!') != NULL,
        .right = right};
}

static bool sheet_is_lines(const struct sheet *sheet)
{
    return sheet->n == 1 && !*sheet->columns[0].heading;
}

static bool sheet_has_groups(const struct sheet *sheet)
{
    return sheet->n > 1 && !*sheet->columns[0].heading;
}

/* A heading or unit with the word in it. */
static const char *sheet_worded(
    struct sheet *sheet, const char *text, const struct store_value *values)
{
    const char *at = sheet->word >= 0 ? strchr(text, '@') : NULL;
    if (!at)
        return text;
    return arena_printf(
        &sheet->arena, "%.*s%s%s", (int)(at - text), text, values[sheet->word].text, at + 1);
}

static const char *sheet_cell(
    struct sheet *sheet, const struct sheet_heading *column, const struct store_value *value)
{
    if (value->kind == STORE_NUMBER && column->digits >= 0)
        return words_number(&sheet->arena, value->number, column->digits, column->sign);
    return value->text                    ? arena_strdup(&sheet->arena, value->text)
           : sheet->form == FORM_TERMINAL ? "-"
                                          : "";
}

static void sheet_end_table(struct sheet *sheet)
{
    table_finish(sheet->out, &sheet->table);
    sheet->table = (struct table){0};
}

static void sheet_take_table(struct sheet *sheet, const struct store_value *values)
{
    struct table *table = &sheet->table;
    if (sheet_has_groups(sheet) && (!sheet->of || strcmp(sheet->of, values[0].text) != 0)) {
        sheet_end_table(sheet);
        sheet->of = arena_strdup(&sheet->arena, values[0].text);
        fprintf(sheet->out, "\n%s\n", sheet->of);
    }
    table_row(table);
    for (int i = sheet_has_groups(sheet); i < sheet->n; i++) {
        const struct sheet_heading *column = &sheet->columns[i];
        if (i == sheet->word)
            continue;
        const char *heading = sheet_worded(sheet, column->heading, values),
                   *unit = sheet_worded(sheet, column->unit, values),
                   *cell = sheet_cell(sheet, column, &values[i]);
        bool is_text = values[i].kind == STORE_TEXT && !column->right && column->digits < 0;
        (is_text ? table_text : table_number_as)(table, heading, unit, cell);
        table_spare(table, column->spare);
        if (column->doubtful && fabs(values[i].number) > 100 * TABLE_FAR_OFF)
            table_mark(table, TABLE_DOUBTFUL);
    }
}

static void sheet_put_markdown(FILE *out, const char *text)
{
    fputs("| ", out);
    for (; *text; text++)
        fprintf(out, *text == '|' ? "\\%c" : "%c", *text);
}

static void sheet_take_markdown(struct sheet *sheet, const struct store_value *values)
{
    for (int i = 0; i < sheet->n && sheet->rows == 0; i++)
        if (i != sheet->word)
            fprintf(sheet->out, "| %s ", sheet_worded(sheet, sheet->columns[i].heading, values));
    fputs(sheet->rows == 0 ? "|\n" : "", sheet->out);
    for (int i = 0; i < sheet->n && sheet->rows == 0; i++)
        if (i != sheet->word)
            fputs(sheet->columns[i].right ? "|--:" : "|---", sheet->out);
    fputs(sheet->rows == 0 ? "|\n" : "", sheet->out);
    for (int i = 0; i < sheet->n; i++) {
        if (i == sheet->word)
            continue;
        const char *cell = sheet_cell(sheet, &sheet->columns[i], &values[i]);
        sheet_put_markdown(sheet->out, cell);
        fputs(*cell || values[i].kind == STORE_NULL ? " " : "", sheet->out);
    }
    fputs("|\n", sheet->out);
}

static void sheet_take_record(struct sheet *sheet, const struct store_value *values)
{
    struct record_cell cells[RECORD_MAX_CELLS];
    for (int i = 0; i < sheet->n; i++) {
        const char *name = sheet->columns[i].heading;
        cells[i] = values[i].kind == STORE_NUMBER ? cell_real(name, true, values[i].number)
                                                  : cell_text(name, values[i].text);
    }
    records_row(&sheet->records, cells, sheet->n);
}

static void sheet_take(void *self, int n, const struct store_value *values)
{
    struct sheet *sheet = self;
    if (sheet->n == 0) {
        BUG_IF(n > RECORD_MAX_CELLS, "%d columns", n);
        sheet->word = -1;
        for (sheet->n = 0; sheet->n < n; sheet->n++) {
            if (strcmp(values[sheet->n].text, "@") == 0)
                sheet->word = sheet->n;
            sheet->columns[sheet->n] = sheet_column(sheet, values[sheet->n].text);
        }
        return;
    }
    if (sheet->rows == 0 && sheet->form != FORM_RECORDS)
        sheet_put_above(sheet->out, sheet->above);
    if (sheet->form == FORM_RECORDS)
        sheet_take_record(sheet, values);
    else if (sheet_is_lines(sheet))
        fprintf(sheet->out, "%s\n", values[0].text ? values[0].text : "");
    else
        (sheet->form == FORM_MARKDOWN ? sheet_take_markdown : sheet_take_table)(sheet, values);
    sheet->rows++;
}

/* All statements; their rows are counted. */
static enum status sheet_run(struct sheet *sheet, struct store *store, const struct text *script,
    int *rows, struct diag *diag)
{
    const char *rest = script->text;
    enum status status = STATUS_OK;
    sheet->above = rest;
    while (*rest && status == STATUS_OK) {
        sheet->above = rest;
        sheet->n = sheet->rows = 0;
        sheet->of = NULL;
        status = store_next(
            store, &rest, (struct source_pos){.file = script->name}, sheet_take, sheet, diag);
        sheet_end_table(sheet);
        *rows += sheet->rows;
    }
    if (sheet->form != FORM_RECORDS && status == STATUS_OK && sheet->n == 0)
        sheet_put_above(sheet->out, sheet->above);
    arena_release(&sheet->arena);
    return status;
}

enum status sheet_print(FILE *out, struct store *store, const struct text *script,
    enum records_format format, int *rows, struct diag *diag)
{
    struct sheet sheet = {
        .out = out, .form = format == RECORDS_TABLE ? FORM_TERMINAL : FORM_RECORDS};
    int n = 0;
    if (sheet.form == FORM_RECORDS)
        sheet.records = records_begin(out, format);
    enum status status = sheet_run(&sheet, store, script, &n, diag);
    if (sheet.form == FORM_RECORDS)
        records_end(&sheet.records);
    if (rows)
        *rows = n;
    return status;
}

enum status sheet_markdown(
    FILE *out, struct store *store, const struct text *script, struct diag *diag)
{
    struct sheet sheet = {.out = out, .form = FORM_MARKDOWN};
    int n = 0;
    return sheet_run(&sheet, store, script, &n, diag);
}
