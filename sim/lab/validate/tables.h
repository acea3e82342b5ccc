/* What `flopcast validate` says of its rows, each table a file: tables/NAME.sql, a script as
 * rows/sheet.h prints it.
 *
 * Its database is in memory and has the table `row`, of what validate.h has for each row
 * (validate/validation.h names the first columns, lab/validate_tables.c the others), and on pages
 * claims, groups and peers, the files of results/. What all scripts share is made by views.sql:
 * table run, which is row with what follows from it, and view summary.
 *
 *   by_N_NAME.sql   a breakdown, for --by NAME, the Nth of all
 *   page_NAME.sql   what stands behind a marker "<!-- begin NAME: ..." of a page
 *                   (lab/validate_page.c), '_' for ' '
 *   others          parts of what the terminal shows */
#ifndef FLOPCAST_VALIDATE_TABLES_H
#define FLOPCAST_VALIDATE_TABLES_H

#include "base/texts.h"

extern const struct text validate_tables[];

#endif
