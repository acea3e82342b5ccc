/* `flopcast calibrate import`: measured files into the database, or as CSV.
 *
 * All files of a request are stored or none of them. A file whose content is in the database is
 * left out, with a line in `report` that says so. */
#ifndef FLOPCAST_IMPORT_IMPORT_H
#define FLOPCAST_IMPORT_IMPORT_H

#include "import/nccl.h"

#include <stdio.h>

enum import_format {
    IMPORT_NCCL_TESTS,
    IMPORT_NSYS,
    IMPORT_KINETO,
    IMPORT_MEASURE,
    IMPORT_DIRECT,
    IMPORT_FORMAT_COUNT
};
extern const char
    *const import_format_names[IMPORT_FORMAT_COUNT]; /* "nccl-tests", "nsys", "kineto", "measure",
                                                        "direct" */

struct import_request {
    enum import_format format;
    const char *const *files;
    int n_files; /* IMPORT_NSYS: 1 */
    struct nccl_options nccl;
};

/* Not for IMPORT_MEASURE and IMPORT_DIRECT. report: a line about each file. */
enum status import_store(
    struct store *store, const struct import_request *request, FILE *report, struct diag *diag);

/* Files of nccl-tests as the table results/measured/collectives.csv has: a row a size, times in
 * microseconds. The kind is "measured", with ", partial" (an excerpt; also where its name has
 * PARTIAL) and ", unhealthy" (the source shows a fault). */
enum status import_print_csv(FILE *out, const struct import_request *request, struct diag *diag);

/* Files of flopcast_measure: checked and summarised (measure.h), not stored. A file with mistakes
 * is not summarised. */
enum status import_print_measured(
    FILE *out, const struct import_request *request, struct diag *diag);

#endif
