/* Private to report: a gnuplot script made from a figure's .sql and .gp and the database. */
#ifndef FLOPCAST_REPORT_SCRIPT_H
#define FLOPCAST_REPORT_SCRIPT_H

#include "report/report.h"

#include <stddef.h>

/* Settings, data blocks, then the .gp: everything but `set output`. free() *out. */
enum status script_make(char **out, const struct report_plot *plot, struct diag *diag);

/* Whether there is such a figure, and its queries ask for this scenario by name: a figure made for
 * it. */
bool script_is_of(const struct report_plot *plot, const char *scenario);

/* Is there something to draw a file of this name with? */
enum script_kind { SCRIPT_PNG, SCRIPT_SVG, SCRIPT_PDF, SCRIPT_TEXT, SCRIPT_KIND_COUNT };
bool script_draws(const char *path, enum script_kind *kind);

#endif
