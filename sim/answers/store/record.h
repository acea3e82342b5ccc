/* A point with its result as a row of named values. record_columns is the one list of them: the
 * columns of the tables point and outcome, of the CSV and of the JSON, in this order, and what
 * people see of them. */
#ifndef FLOPCAST_STORE_RECORD_H
#define FLOPCAST_STORE_RECORD_H

#include "scenario/scenario.h"

#include <stdio.h>

enum record_kind { RECORD_NULL, RECORD_INT, RECORD_REAL, RECORD_TEXT };

struct record_cell {
    const char *name;
    enum record_kind kind;
    int64_t integer;
    double real;
    const char *text; /* borrowed from the point, the result or the record */
};

struct record_cell cell_int(const char *name, int64_t value);
struct record_cell cell_real(const char *name, bool known, double value); /* NULL when not known */
struct record_cell cell_text(const char *name, const char *text);         /* NULL gives NULL */

/* Cells and how many, two arguments of a function: RECORD_CELLS(cell_int("a", 1), ...). */
#define RECORD_CELLS(...)                                                                          \
    (const struct record_cell[]){__VA_ARGS__},                                                     \
        (int)(sizeof((const struct record_cell[]){__VA_ARGS__}) / sizeof(struct record_cell))

/* A number with 15 digits, or the text as it is. False: nothing, as it is not known or no finite
 * number. */
bool record_write(FILE *out, const struct record_cell *cell);

enum { RECORD_MAX_CELLS = 80 };

/* Holds its own hexadecimal texts: do not copy. */
struct record {
    struct record_cell cells[RECORD_MAX_CELLS];
    int n;
    char curve[17], digest[17], band[9][32];
};

/* What a table without room leaves out, the highest first; 0 stays. What is the same in all points
 * says little. */
enum record_spare {
    RECORD_STAYS,
    RECORD_SPARE_MFU,
    RECORD_SPARE_TOKENS,
    RECORD_SPARE_STEP,
    RECORD_SPARE_INTERVAL,
    RECORD_SPARE_ALLOCATED_DEVIATION,
    RECORD_SPARE_RESERVED_DEVIATION,
    RECORD_SPARE_ALLOCATED,
    RECORD_SPARE_STRATEGY,
    RECORD_SPARE_MODEL,
    RECORD_SPARE_EXPOSED,
    RECORD_SPARE_BUBBLE,
    RECORD_SPARE_BATCH,
    RECORD_SPARE_RESERVED,
    RECORD_SPARE_RETRIES,
    RECORD_SPARE_NUMBERS
};

struct record_source {
    const struct scenario_point *point;
    const struct scenario_result *result;
};

struct record_column {
    const char *name;  /* with the unit, base SI: "step_time_s" */
    const char *sql;   /* its type in the database */
    const char *about; /* what it means, for the schema; NULL: the name says it */
    size_t
        offset; /* of its double in struct scenario_result, into which the database's comes back */
    struct record_cell (*get)(
        const struct record_source *source, struct record *record); /* or makes it; NULL */
    bool (*known)(const struct record_source *source); /* else NULL; of a double. NULL: always */
    bool kept_only;                                    /* in the database, not in CSV and JSON */
    bool program; /* also in table program: a member of exec_breakdown or exec_memory */
    bool outcome; /* also in table outcome, 0 where not known */
    struct {
        const char *heading, *unit; /* heading NULL: not in the table for people */
        double scale;               /* from the value to what people see */
        int digits;                 /* after the point */
        enum record_spare spare;
        int place;    /* from 1, among the columns behind the speed */
        bool counted; /* the heading begins with what is counted: tokens, images */
        bool of_step; /* divided by the time of a step */
        bool sure;    /* to as many digits as the interval of the speed has */
    } shown;
    bool (*shown_if)(const struct record_source *source); /* it of any point; NULL: always */
};
extern const struct record_column record_columns[];
extern const int n_record_columns;

/* Of a column without get. */
double record_number(const struct scenario_result *result, const struct record_column *column);
void record_set(struct scenario_result *result, const struct record_column *column, double value);

void record_fill(
    struct record *out, const struct scenario_point *point, const struct scenario_result *result);
/* For the database: all columns; those of table outcome. */
void record_fill_kept(
    struct record *out, const struct scenario_point *point, const struct scenario_result *result);
void record_fill_outcome(struct record *out, const struct scenario_result *result);
/* The columns of a table as lines of its CREATE TABLE. */
enum record_table { RECORD_POINT, RECORD_PROGRAM, RECORD_OUTCOME };
void record_declare(FILE *out, enum record_table table);
/* Of one that is in table program: where it is. */
double *record_of_program(struct exec_program *program, const struct record_column *column);

/* How sure it is, where it was sampled (scenario/sample.h): the number of samples that ran, then of
 * each sampled quantity 5, 50 and 95 % ("tflops_per_gpu_p05" ...), NULL where none ran. */
void record_fill_band(struct record *out, const struct scenario_result *result);

/* How far the simulated numbers are from published ones, simulated / published - 1, as fractions:
 * tflops_deviation, peak_allocated_deviation, peak_reserved_deviation; NULL where either is not
 * known. In the database the views v_scaling and v_memory have them. */
void record_fill_deviation(
    struct record *out, const struct scenario_point *point, const struct scenario_result *result);

#endif
