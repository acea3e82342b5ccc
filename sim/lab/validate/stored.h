/* What came out of published runs, kept in a file: so that tables of errors, and the page that
 * shows them, can be made again without a simulation.
 *
 * The file is a CSV, a row for each row of the tables of runs: file (from the folder of this one),
 * base (its base scenario, in the first row of each table), id, settings (a digest of the settings
 * that the row gives), inputs (a digest of all that went in: settings, model, cluster, node, GPU,
 * stack profile, fitted numbers; scenario_digest_inputs()), made_by (build digest and commit of the
 * program), what was simulated (model, gpu, strategy, framework, layout), status and reason,
 * waiting_share, and the predicted figures. Rows with the same inputs are the same run. What was
 * measured, sources and first sights stand in the tables and their predictions, and are read from
 * there: errors are those of today's tables. */
#ifndef FLOPCAST_VALIDATE_STORED_H
#define FLOPCAST_VALIDATE_STORED_H

#include "validate/validate.h"

/* Replaces the file. base: of all tables. */
enum status validate_stored_write(
    const struct validate_table *table, const char *base, const char *path, struct diag *diag);

/* The tables that the file names with their predictions, and errors; after it,
 * validate_first_sight(). A row that the file lacks, or whose settings are others now, is warned of
 * and not simulated, with that as its reason. source: as in validate_is_of(); NULL: all. */
bool validate_stored_read(
    struct validate_table *out, const char *path, const char *source, struct diag *diag);

/* After it: marks the rows that are stale and warns of them, table by table. All scenarios are
 * loaded, none simulated (seconds). */
void validate_stored_check(struct validate_table *table, struct diag *diag);

#endif
