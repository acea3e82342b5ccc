/* What `flopcast run` prints about the results of a scenario. */
#ifndef FLOPCAST_CLI_OUTPUT_H
#define FLOPCAST_CLI_OUTPUT_H

#include "rows/vary.h"
#include "scenario/sure.h"
#include "store/record.h"

#include <stdio.h>

/* For people: a table; below it the points that are out of memory, what each curve loses from its
 * smallest to its largest cluster, the range of these changes where several curves are readings of
 * one publication, and what the scenario assumes. Of sampled results also median and 90 % interval.
 * Where sure has measurements, the speed is that given them, and the simulated one stands beside.
 */
void output_table(FILE *out, const struct scenario_set *set, const struct scenario_result *results,
    struct sure *sure);

/* RFC 4180 (lines end in CR LF): the scenario's name, then the cells of store/record.h; empty where
 * not applicable; then swept, what the scenario sweeps, as "train.attention=flash;
 * cluster.gpus=16"; the cells of record_fill_deviation; each swept setting by its path, with its
 * unit where it has one ("host.kernel_issue (s)"), of columns (by vary_find_all), so that all
 * scenarios of a file of CSV have the same; last, of sampled results, the cells of
 * record_fill_band. */
void output_csv_head(FILE *out, const struct vary *columns, const struct scenario_set *set,
    const struct scenario_result *results);
void output_csv(FILE *out, const struct vary *columns, const struct scenario_set *set,
    const struct scenario_result *results);

/* Objects of one array, a point each: the same cells (null where not applicable), "memory" by
 * category, "config" with the origin of each value. first: no comma before the first object. */
void output_json(
    FILE *out, const struct scenario_set *set, const struct scenario_result *results, bool first);

/* run --plan: the plan of each point, compiled for it; quiet: that it compiles is all. Ends at the
 * first mistake. */
void output_plans(const struct scenario_set *set, bool quiet, struct diag *diag);

#endif
