/* A table of texts with aligned columns and a head of two lines: names and units.
 *
 * No line is longer than the screen is wide: heads are broken between words; columns that may be
 * left out are, and named below; the longest texts go on in the lines below; what is still too wide
 * is printed as several tables, each with the first column. With --wide all is printed as it is. */
#ifndef FLOPCAST_ROWS_TABLE_H
#define FLOPCAST_ROWS_TABLE_H

#include "base/arena.h"
#include "base/vec.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>

struct table_column {
    const char *name, *unit;
    bool is_text; /* aligned left */
};

/* Colour of a cell, where the terminal has it. doubtful: a prediction that is far off; bad: out of
 * memory. */
enum table_mark { TABLE_PLAIN, TABLE_DOUBTFUL, TABLE_BAD };

/* Texts are borrowed; those of numbers are copied. */
struct table {
    VEC(struct table_column) columns;
    VEC(char) spare;         /* of each column, by table_spare() */
    VEC(const char *) cells; /* row by row */
    VEC(char) marks;         /* of the first cells; others are plain */
    int rows;                /* begun by table_row() */
    struct arena numbers;
};

#define TABLE_UNKNOWN ((double)NAN) /* a number that is printed as "-" */

/* Row by row: cells that name their columns, in each row the same ones. */
void table_row(struct table *table); /* the cells that follow are of a new one */
void table_text(struct table *table, const char *name, const char *unit, const char *text);
void table_number(
    struct table *table, const char *name, const char *unit, int digits, double value);
void table_number_as(
    struct table *table, const char *name, const char *unit, const char *text); /* made elsewhere */
/* The last column may be left out where there is no room; the highest rank goes first. 0: it stays.
 */
void table_spare(struct table *table, int rank);
void table_mark(struct table *table, enum table_mark mark); /* the last cell */

/* Or first all columns, then all cells. */
void table_column(struct table *table, const char *name, const char *unit, bool is_text);
void table_cell(struct table *table, const char *text);

void table_print(FILE *out, const struct table *table);
/* The same for a screen of that width (0: no limit), in colour or not. */
void table_print_on(FILE *out, const struct table *table, int width, bool colour);
/* The row of a table that has one: a line a column, "TFLOPS/GPU 396 (333-476)"; all columns, as
 * there is room. */
void table_print_row(FILE *out, const struct table *table);
void table_free(struct table *table);
void table_finish(
    FILE *out, struct table *table); /* print and free; nothing where there is no column */

/* ---- the terminal ---- */

/* Characters of a line of out: $COLUMNS, a terminal or not; else what the terminal says, else 80,
 * in a pipe, too. 0: no limit, in memory and where COLUMNS is 0, which is what --wide sets. */
int screen_width(FILE *out);
/* Characters of one line that is written again and again (\r) on the terminal out: one less than it
 * is wide, or than $COLUMNS, as it then stays one line. */
int screen_line(FILE *out);
/* The text in lines that are no longer than the screen is wide, or than 100 characters; the first
 * behind head, the others as far to the right. What stands behind an end of a line in it begins
 * another one. */
void screen_wrap(FILE *out, const char *head, const char *text);
/* out is a terminal that shows colour: not TERM=dumb, and NO_COLOR (no-color.org) is not set. */
bool screen_colour(FILE *out);
/* Escape sequences of ANSI terminals. */
#define SCREEN_RED "\033[31m"
#define SCREEN_YELLOW "\033[33m"
#define SCREEN_PLAIN "\033[0m"

/* A prediction is doubtful from here on: |predicted / measured - 1|. Tables of results/measured
 * count as missed from there, too. */
#define TABLE_FAR_OFF 0.1

#endif
