/* Text, cells and tables as HTML.
 *
 * Everything that comes from a file or the database goes through html_put(), which writes valid
 * UTF-8 and escapes what HTML could take for markup, so a page is well formed whatever a name
 * holds. Rows of a query are copied into an arena as texts. What is subtle: a column counts as
 * numbers, and is set to the right, by its texts ("718 (615-1,050)"), since queries format them; a
 * column that is empty in all rows of a table is left out; only http and https addresses become
 * links. */
#include "report/html.h"

#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

static bool is_control(uint32_t code)
{
    return (code < 0x20 && code != '\n' && code != '\t') || (code >= 0x7f && code < 0xa0) ||
           (code & 0xfffe) == 0xfffe;
}

static const char *escaped(uint32_t code)
{
    switch (code) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    case '\'':
        return "&#39;";
    default:
        return NULL;
    }
}

static void html_put(FILE *out, const char *text, size_t n, bool escape)
{
    for (size_t i = 0; i < n;) {
        uint32_t code = 0;
        size_t length = utf8_character(text + i, n - i, &code);
        const char *other = length > 0 && escape ? escaped(code) : NULL;
        if (length == 0)
            fputs(UTF8_REPLACEMENT, out);
        else if (other)
            fputs(other, out);
        else if (is_control(code))
            fputc('?', out);
        else
            fwrite(text + i, 1, length, out);
        i += length > 0 ? length : 1;
    }
}

void html_text(FILE *out, const char *text)
{
    html_put(out, text, strlen(text), true);
}

void html_utf8(FILE *out, const char *text, size_t n)
{
    html_put(out, text, n, false);
}

void html_take(void *self, int n, const struct store_value *values)
{
    struct html_rows *rows = self;
    if (rows->columns == 0) {
        rows->columns = n;
        for (int i = 0; i < n; i++)
            vec_push(&rows->names, arena_strdup(&rows->arena, values[i].text));
        return;
    }
    for (int i = 0; i < n; i++)
        vec_push(&rows->cells,
            values[i].kind == STORE_NULL ? NULL : arena_strdup(&rows->arena, values[i].text));
    rows->n++;
}

static const char *report_html_cell(const struct html_rows *rows, int row, int column)
{
    return rows->cells.at[row * rows->columns + column];
}

const char *html_cell(const struct html_rows *rows, int row, int column)
{
    const char *text = report_html_cell(rows, row, column);
    return text ? text : "";
}

void html_free(struct html_rows *rows)
{
    vec_free(&rows->names);
    vec_free(&rows->cells);
    arena_release(&rows->arena);
}

/* Behind "1,234.5", where commas stand between thousands; NULL: the text begins with something
 * else. */
static const char *behind_number(const char *text)
{
    char *end = NULL;
    const char *digits = text + (*text == '-' || *text == '+');
    if (*digits < '0' || *digits > '9')
        return NULL;
    strtod(text, &end);
    while (*end == ',' && end[1] >= '0' && end[1] <= '9')
        strtod(end + 1, &end);
    return end;
}

/* "718", "718 (615-1,050)". */
static bool is_number(const char *text)
{
    const char *end = behind_number(text);
    if (end && strncmp(end, " (", 2) == 0)
        end = behind_number(end + 2);
    else
        return end && *end == '\0';
    end = end && *end == '-' ? behind_number(end + 1) : NULL;
    return end && strcmp(end, ")") == 0;
}

enum column_kind { COLUMN_EMPTY, COLUMN_NUMBERS, COLUMN_TEXTS };

static enum column_kind html_kind_of(const struct html_rows *rows, int first, int n, int column)
{
    enum column_kind kind = COLUMN_EMPTY;
    for (int r = first; r < first + n && kind != COLUMN_TEXTS; r++) {
        const char *text = report_html_cell(rows, r, column);
        if (text)
            kind = is_number(text) ? COLUMN_NUMBERS : COLUMN_TEXTS;
    }
    return kind;
}

/* Bytes of the web address that the text begins with; behind it may stand a remark,
 * "https://a.org/b (table 3)". 0: it begins with something else, as javascript:, which is no link.
 */
static size_t web_address(const char *text)
{
    static const char parts[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~:/?#[]@!$&()*+,;=%";
    bool is = strncmp(text, "https://", strlen("https://")) == 0 ||
              strncmp(text, "http://", strlen("http://")) == 0;
    return is ? strspn(text, parts) : 0;
}

static void put_cell(FILE *out, const struct html_rows *rows, int row, int column)
{
    const char *address = rows->address == column + 1 ? html_cell(rows, row, column + 1) : "";
    size_t n = web_address(address);
    if (n > 0) {
        fputs("<a rel=\"noreferrer\" href=\"", out);
        html_put(out, address, n, true);
        fputs("\">", out);
    }
    html_text(out, html_cell(rows, row, column));
    fputs(n > 0 ? "</a>" : "", out);
}

static void put_cells(
    FILE *out, const struct html_rows *rows, int row, const enum column_kind *kinds)
{
    fputs("<tr>", out);
    for (int c = 0; c < rows->columns; c++) {
        if (kinds[c] == COLUMN_EMPTY)
            continue;
        fputs(kinds[c] == COLUMN_NUMBERS ? "<td class=\"n\">" : "<td>", out);
        put_cell(out, rows, row, c);
        fputs("</td>", out);
    }
    fputs("</tr>\n", out);
}

void html_table(
    FILE *out, const struct html_rows *rows, int first, int n, int hidden, const char *caption)
{
    enum column_kind *kinds = xcalloc((size_t)rows->columns + 1, sizeof *kinds);
    /* a region that can have the focus, so that keys scroll it */
    fputs("<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"", out);
    html_text(out, caption);
    fputs("\"><table><caption>", out);
    html_text(out, caption);
    fputs("</caption>\n<thead><tr>", out);
    for (int c = 0; c < rows->columns; c++) {
        kinds[c] = c < hidden || (c > 0 && c == rows->address) ? COLUMN_EMPTY
                                                               : html_kind_of(rows, first, n, c);
        if (kinds[c] == COLUMN_EMPTY)
            continue;
        fputs(kinds[c] == COLUMN_NUMBERS ? "<th scope=\"col\" class=\"n\">" : "<th scope=\"col\">",
            out);
        html_text(out, rows->names.at[c]);
        fputs("</th>", out);
    }
    fputs("</tr></thead>\n<tbody>\n", out);
    for (int r = first; r < first + n; r++)
        put_cells(out, rows, r, kinds);
    fputs("</tbody></table></div>\n", out);
    free(kinds);
}
