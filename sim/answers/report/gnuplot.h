/* Private to report: gnuplot as a function from script to picture. */
#ifndef FLOPCAST_REPORT_GNUPLOT_H
#define FLOPCAST_REPORT_GNUPLOT_H

#include "base/status.h"

#include <stddef.h>

/* what gnuplot writes to stdout; free() *picture. Its messages are an error, or a warning if it
 * draws nevertheless. */
enum status gnuplot_run(char **picture, size_t *n, const char *script, struct diag *diag);

#endif
