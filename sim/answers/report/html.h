/* Private to report: texts and tables as HTML. */
#ifndef FLOPCAST_REPORT_HTML_H
#define FLOPCAST_REPORT_HTML_H

#include "base/arena.h"
#include "base/vec.h"
#include "store/store.h"

#include <stdio.h>

/* A text between tags, or in an attribute in double quotes: & < > " ' are escaped; a control
 * character becomes "?", a byte that is no UTF-8 becomes U+FFFD. */
void html_text(FILE *out, const char *text);

/* The same of SVG that is well-formed already: nothing is escaped. */
void html_utf8(FILE *out, const char *text, size_t n);

/* Rows of a query: self of html_take, a store_row. cells: NULL where the database has NULL. */
struct html_rows {
    int columns, n; /* n: without the names */
    VEC(const char *) names;
    VEC(const char *) cells;
    struct arena arena;
    int address; /* a column that is not shown: where the column before it leads, if that is a web
                    address; 0: none */
};
void html_take(void *self, int n, const struct store_value *values);
const char *html_cell(const struct html_rows *rows, int row, int column); /* "" for NULL */
void html_free(struct html_rows *rows);

/* n rows from first, without the first `hidden` columns, as a table whose columns a click on their
 * names sorts. Columns without a value are left out; a column of numbers stands to the right. */
void html_table(
    FILE *out, const struct html_rows *rows, int first, int n, int hidden, const char *caption);

#endif
