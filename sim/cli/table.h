/* A table of texts with aligned columns and a head of two lines: names and units. */
#ifndef FLOPCAST_CLI_TABLE_H
#define FLOPCAST_CLI_TABLE_H

#include "base/vec.h"

#include <stdbool.h>
#include <stdio.h>

struct table_column {
    const char *name, *unit;
    bool is_text; /* aligned left */
};

/* All texts are borrowed. */
struct table {
    VEC(struct table_column) columns;
    VEC(const char *) cells; /* row by row */
};

void table_column(
    struct table *table, const char *name, const char *unit, bool is_text); /* all before the first cell */
void table_cell(struct table *table, const char *text);
void table_print(FILE *out, const struct table *table);
void table_free(struct table *table);

#endif
