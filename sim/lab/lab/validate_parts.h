/* Private to cli: parts of what `flopcast validate` prints, after validate_run(). */
#ifndef FLOPCAST_LAB_VALIDATE_PARTS_H
#define FLOPCAST_LAB_VALIDATE_PARTS_H

#include "store/store.h"
#include "validate/sure_fit.h"

#include <stdio.h>

/* The rows in a database in memory, for the tables of validate/tables.h: errors and intervals are
 * there, what was predicted first, too. Texts are copied. On failure *out is NULL, or for
 * store_close(). */
enum status evidence_open(struct store **out, const struct validate_table *rows, struct diag *diag);
/* A file beside them, as a table of that name. */
enum status evidence_put_csv(
    struct store *evidence, const char *table, const char *path, struct diag *diag);

/* On the terminal: validate/tables/NAME.sql. */
enum status evidence_print(FILE *out, struct store *evidence, const char *name, struct diag *diag);

/* The breakdowns, by_N_NAME.sql, in their order: how many. */
enum { EVIDENCE_BREAKDOWNS = 32 };
struct breakdown {
    const char *name, *table; /* "gpus", "by_4_gpus" */
};
int evidence_breakdowns(struct breakdown *out, int room);

/* What curves of data parallelism lose beyond what is predicted (validate_loss()). */
void validate_loss_print(FILE *out, const struct validate_table *rows);
/* How well intervals of speeds hold for a maker without runs in them (validate/sure_fit.h). */
void validate_sure_print(FILE *out, const struct sure_left_out *left);
/* The same in Markdown, with ratios and peaks. */
void validate_sure_page(
    FILE *out, const struct validate_table *rows, const struct sure_left_out *left);

/* What a page shows. */
struct validate_page {
    const struct validate_table *rows;
    const struct sure_left_out *left;
    struct store *evidence;
};

/* The page: each part of it, as Markdown, in place of what stands between the markers of the file.
 */
enum status validate_page_write(
    const char *path, const struct validate_page *page, struct diag *diag);

#endif
