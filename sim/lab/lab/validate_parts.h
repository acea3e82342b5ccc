/* Private to cli: parts of what `flopcast validate` prints, after validate_run(). */
#ifndef FLOPCAST_LAB_VALIDATE_PARTS_H
#define FLOPCAST_LAB_VALIDATE_PARTS_H

#include "validate/classes.h"
#include "validate/sure_fit.h"

#include <stdio.h>

/* Errors by source and GPU, rows that fits rest on apart. */
void validate_groups_print(FILE *out, const struct validate_table *rows);
/* Row by row. */
void validate_rows_print(FILE *out, const struct validate_table *rows);
/* Whether ratios are better than those of a rule of thumb. */
void validate_skill_print(FILE *out, const struct validate_table *rows);
/* Reasons with the rows that they hold for. */
void validate_not_simulated_print(FILE *out, const struct validate_table *rows);
/* What curves of data parallelism lose beyond what is predicted (validate_loss()). */
void validate_loss_print(FILE *out, const struct validate_table *rows);
/* How well intervals of speeds hold for a maker without runs in them (validate/sure_fit.h). */
void validate_sure_print(FILE *out, const struct sure_left_out *left);
/* The same in Markdown, with ratios and peaks. */
void validate_sure_page(FILE *out, const struct validate_table *rows, const struct sure_left_out *left);

/* Errors, ratios, peaks, verdicts and intervals class by class (validate/classes.h). Rows that fits rest on stand in
 * lines of their class beside those of the others. */
void validate_by_print(FILE *out, const struct validate_table *rows, enum validate_by by);
/* Rows that ran where they are simulated out of memory, or the other way round, by source. */
void validate_verdicts_print(FILE *out, const struct validate_table *rows);

/* Of rows that were read back: which builds made how many of them, and which are stale (validate/stored.h). */
void validate_made_print(FILE *out, const struct validate_table *rows);

/* What a page shows. The files are those of flopcast's results/. */
struct validate_page {
    const struct validate_table *rows;
    const struct sure_left_out *left;
    const char *claims, *groups, *peers;
};

/* The page: each part of it, as Markdown, in place of what stands between the markers of the file. */
enum status validate_page_write(const char *path, const struct validate_page *page, struct diag *diag);

/* --open: the rows that are off, grouped by their suspected cause. */
void validate_open_print(FILE *out, const struct validate_table *rows);

/* The tables of collectives that are open or contradicted, by the columns status and suspected_cause of the file
 * (results/measured/nccl_tables.csv). They are not simulated here: `flopcast calibrate fit nccl` prints their errors.
 */
enum status validate_open_print_nccl(FILE *out, const char *path, struct diag *diag);

/* Single GPUs and single nodes, where no network hides what the kernels take: errors by stack profile and whether a fit
 * rests on the rows. Rows without a stack stand under their source: the GPU's own numbers are then the profile. Nothing
 * when no row is of one node. */
void validate_node_print(FILE *out, const struct validate_table *rows);

/* Errors of predictions that were made before the measurements were known, beside today's of the same rows, by source.
 * Nothing where no row has one. */
void validate_first_sight_print(FILE *out, const struct validate_table *rows);

#endif
