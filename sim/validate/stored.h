/* What came out of published runs, kept in a file: so that tables of errors, and the page that shows them, can be made
 * again without a simulation.
 *
 * The file is a CSV, a row for each row of the tables of runs: file (from the folder of this one), base (its base
 * scenario, in the first row of each table), id, settings (a digest of the settings that the row gives), inputs (a
 * digest of all that went in: settings, model, cluster, node, GPU, stack profile, fitted numbers;
 * scenario_digest_inputs()), made_by (build digest and commit of the program), what was simulated (model, gpu,
 * strategy, framework, layout, class of the discrepancy), status and reason, same_as (the number of the first row of
 * this file that is the same run, from 1), waiting_share, the predicted figures, and of the intervals the ends by
 * errors of numbers and the discrepancy that each needs (interval.h). What was measured, sources and first sights stand
 * in the tables and their predictions, and are read from there: errors are those of today's tables. */
#ifndef FLOPCAST_VALIDATE_STORED_H
#define FLOPCAST_VALIDATE_STORED_H

#include "validate/validate.h"

/* After validate_intervals(). Replaces the file. base: of all tables; uncertainty: of the samples. */
enum status validate_stored_write(const struct validate_table *table, const char *base,
    const struct scenario_uncertainty *uncertainty, const char *path, struct diag *diag);

/* The tables that the file names with their predictions, errors and needs; after it, validate_widen() and
 * validate_first_sight(). A row that the file lacks, or whose settings are others now, is warned of and not simulated,
 * with that as its reason. source: as in validate_is_of(); NULL: all. */
bool validate_stored_read(struct validate_table *out, const char *path, const char *source, struct diag *diag);

/* After it: marks the rows that are stale and warns of them, table by table. All scenarios are loaded, none simulated
 * (seconds). */
void validate_stored_check(
    struct validate_table *table, const struct scenario_uncertainty *uncertainty, struct diag *diag);

#endif
