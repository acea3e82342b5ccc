/* What `flopcast run` prints about the results of a scenario. */
#ifndef FLOPCAST_CLI_OUTPUT_H
#define FLOPCAST_CLI_OUTPUT_H

#include "scenario/scenario.h"
#include "store/record.h"

#include <stdio.h>

/* For people: a table; below it the points that are out of memory, what each curve loses from its smallest to its
 * largest cluster, the range of these changes where several curves are readings of one publication, and what the
 * scenario assumes. Of sampled results also median and 90 % interval. */
void output_table(FILE *out, const struct scenario_set *set, const struct scenario_result *results);

/* RFC 4180 (lines end in CR LF): the scenario's name, then the cells of store/record.h; empty where not applicable.
 * The last, swept, says what the scenario sweeps: "train.attention=flash; cluster.gpus=16". Sampled results have those
 * of record_fill_band behind it; so has the JSON. */
void output_csv_head(FILE *out, const struct scenario_set *set, const struct scenario_result *results);
void output_csv(FILE *out, const struct scenario_set *set, const struct scenario_result *results);

/* Objects of one array, a point each: the same cells (null where not applicable), "memory" by category, "config" with
 * the origin of each value. first: no comma before the first object. */
void output_json(FILE *out, const struct scenario_set *set, const struct scenario_result *results, bool first);

/* One cell of a row, its number with 15 digits; nothing, or null, where it is not known. */
void output_csv_cell(FILE *out, const struct record_cell *cell);
void output_json_cell(FILE *out, const struct record_cell *cell); /* "name": value */

#endif
