/* Rows of an answer. A command fills each row once, cell by cell; a cell names its column, which
 * says what programs and what people see of it. rows_print() makes of them the table
 * (rows/table.h), CSV or JSON (rows/records.h), and an answer of the database takes the cells
 * for programs as they are. */
#ifndef FLOPCAST_ROWS_ROWS_H
#define FLOPCAST_ROWS_ROWS_H

#include "rows/records.h"
#include "rows/table.h"

struct rows_column {
    const char *name;           /* for programs, base SI with the unit in it; NULL: not for them */
    const char *heading, *unit; /* for people; heading NULL: not for them */
    double scale;               /* from the value to what people see; 0: as it is */
    int digits;                 /* after the point */
    bool sign;                  /* "+1.0" */
    const char *unknown;        /* what people see where it is not known; NULL: "-" */
    int spare;                  /* table_spare() */
};

/* COLUMN("step_time_s", "step", "s", .digits = 4); COLUMN(NULL, "effect", "%") for people,
 * COLUMN("status") for programs. */
#define COLUMN(...) ((struct rows_column){.name = __VA_ARGS__})

/* Texts are borrowed. Begins as {0}. */
struct rows {
    struct table table;
    VEC(struct record_cell) cells; /* for programs, row by row */
    int n;                         /* rows */
    int most;                      /* of which people see the first; 0: all */
};

void rows_next(
    struct rows *rows); /* the cells that follow are of a new one; all rows have the same columns */
void rows_text(
    struct rows *rows, struct rows_column column, const char *text); /* NULL: not known */
void rows_int(struct rows *rows, struct rows_column column, int64_t value);
void rows_real(struct rows *rows, struct rows_column column, bool known, double value);
/* A row for programs alone, of an initialiser list of cells. */
void rows_cells(struct rows *rows, const struct record_cell *cells, int n);
#define ROWS_CELLS(rows, ...) rows_cells((rows), RECORD_CELLS(__VA_ARGS__))
/* A number whose text for people is made elsewhere; the second for people alone. */
void rows_real_as(
    struct rows *rows, struct rows_column column, bool known, double value, const char *text);
void rows_number_as(struct rows *rows, const char *heading, const char *unit, const char *text);
void rows_mark(struct rows *rows, enum table_mark mark); /* the last cell that people see */

void rows_print(FILE *out, const struct rows *rows, enum records_format format);
void rows_free(struct rows *rows);
void rows_finish(FILE *out, struct rows *rows, enum records_format format); /* print and free */

/* The cells for programs as an answer (store/answer.h) in the database db, below this head. */
enum status rows_keep(const struct rows *rows, const char *db, const char *kind,
    const struct record_cell *head, int n_head, struct diag *diag);

#endif
