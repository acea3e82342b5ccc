/* Private to sim/report: files that are there whole or not at all. */
#ifndef FLOPCAST_REPORT_FILE_H
#define FLOPCAST_REPORT_FILE_H

#include "base/status.h"

#include <stddef.h>

/* Writes bytes to path through a temporary name beside it. */
enum status file_write(const char *path, const char *bytes, size_t n, struct diag *diag);

#endif
