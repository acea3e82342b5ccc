/* Files that are there whole or not at all. */
#ifndef FLOPCAST_BASE_FILE_WRITE_H
#define FLOPCAST_BASE_FILE_WRITE_H

#include "base/status.h"

#include <stddef.h>

/* Writes bytes to path through a temporary name beside it. */
enum status file_write(const char *path, const char *bytes, size_t n, struct diag *diag);

#endif
