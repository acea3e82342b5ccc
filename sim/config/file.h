/* Private to sim/config: a whole text file in memory. At most CONFIG_MAX_BYTES; a larger one is an error, so that a
 * wrong path (a database, a trace) ends in a sentence and not in a long wait. */
#ifndef FLOPCAST_CONFIG_FILE_H
#define FLOPCAST_CONFIG_FILE_H

#include "base/files.h"
#include "base/status.h"

/* On success *out holds the *n bytes (free() it). On failure *out is NULL. */
enum status config_read_file(char **out, size_t *n, enum files_kind kind, const char *path, struct diag *diag);

#endif
