/* Private to calibrate: what a fit found, as hardware files have it. */
#ifndef FLOPCAST_CALIBRATE_FIT_FILES_H
#define FLOPCAST_CALIBRATE_FIT_FILES_H

#include "config/config.h"
#include "hw/hw.h"

/* With four digits of the value and two of the error; beyond what its field allows it is the end of
 * that. */
struct quantity fit_files_rounded(struct quantity found, const struct config_field *field);

/* *now, which begins as it is filed, takes what was found: every number whose kind is measured or
 * fitted and whose source is not the file's own text (the pointer: an earlier fit may have left the
 * same words), with `source` in its place, and if it is fitted with the id `fit`. Returns how many.
 */
int fit_files_take(const struct config_table *table, void *now, const void *found,
    const char *source, const char *fit);

/* hw_write_changed() and config_write_changed() to the file at path, which may be `from` itself: it
 * is written when all of it is known. */
enum status fit_files_write_changes(const char *path, const char *from,
    const struct config_change *changes, int n, struct diag *diag);
enum status fit_files_write(const char *path, const char *from, const struct config_table *table,
    const void *now, struct diag *diag);

#endif
