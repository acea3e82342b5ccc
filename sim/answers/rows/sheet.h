/* Private to cli: what a script of SQL statements gives, printed on the terminal, as Markdown, CSV
 * or JSON. The script says all of it, as files of tables/ do:
 *
 *   -- by framework                        lines above a statement are printed above its rows,
 *                                          where it has any;
 *   SELECT framework, count(*) AS "rows", those behind the last statement at the end. Other
 *   comments: slash and
 * star. 100 * avg(error) AS "mean|%|1|3" FROM run GROUP BY framework;
 *
 * The name of a column is "heading|unit|digits|rank":
 *   heading   ">" before it: numbers in Markdown, aligned to the right. "@" in heading and unit:
 *             the text of the column
 * "@", which is not printed itself. CSV and JSON have it as the name of the column digits of a
 * number behind the
 * point; "+1": with its sign; "1!": marked on the terminal where it is 10 and more off. Nothing:
 * whole numbers and
 * texts as they are rank a column that a narrow screen leaves out, the highest first A column
 * without a heading:
 * alone, its texts are lines; before others, a table for each text, which stands above it. NULL is
 * "-" on the terminal, and nothing elsewhere.
 *
 * Markdown gives ' ' between its bars to '', '  ' to NULL, as its readers do not tell them apart.
 */
#ifndef FLOPCAST_ROWS_SHEET_H
#define FLOPCAST_ROWS_SHEET_H

#include "base/texts.h"
#include "rows/records.h"
#include "store/sheet.h"

/* *rows gets those of all statements; NULL: nobody wants it. */
enum status sheet_print(FILE *out, struct store *store, const struct text *script,
    enum records_format format, int *rows, struct diag *diag);
enum status sheet_markdown(
    FILE *out, struct store *store, const struct text *script, struct diag *diag);

#endif
