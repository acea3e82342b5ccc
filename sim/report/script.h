/* Private to sim/report: a gnuplot script made from a figure's .sql and .gp and the database. */
#ifndef FLOPCAST_REPORT_SCRIPT_H
#define FLOPCAST_REPORT_SCRIPT_H

#include "report/report.h"

#include <stddef.h>

/* Settings, data blocks, then the .gp: everything but `set output`. free() *out. */
enum status script_make(char **out, const struct report_plot *plot, struct diag *diag);

/* The terminal that draws a file with this name, an expression of gnuplot's in `height`; NULL when there is none. */
const char *script_terminal(const char *path);

#endif
