/* Stored runs as one HTML page that needs nothing beside it: no request leaves it (its
 * Content-Security-Policy forbids them), its style and its script stand in it (page.css, page.js),
 * its pictures are SVG. For each run: the question, the figures that the folder of figures draws of
 * it, its points, where a step's time goes and what a larger cluster costs in the sentences of
 * scenario/causes.h, a part of the timeline of a traced point, memory by category, samples, what it
 * depends on, months of training, every setting with its origin, and the command that
 * repeats it. Links lead to the sources of those runs; a reader follows them, the page does not.
 *
 * A text of the database is a text on the page, whatever is in it (report/html.h). Where gnuplot is
 * not installed, or a figure has no room for what a run has, the page says so in the picture's
 * place. Equal databases give equal pages. Errors are those of store/store.h; a page that fails
 * leaves the old file as it was. */
#ifndef FLOPCAST_REPORT_PAGE_H
#define FLOPCAST_REPORT_PAGE_H

#include "base/status.h"

struct report_page {
    const char *folder, *others; /* as in report_plot */
    const char *db, *out;
    const char *const *runs; /* each the number of a run, or the name of a scenario: its newest */
    int n_runs;              /* 0: the newest run */
};

enum status report_page(const struct report_page *page, struct diag *diag);

#endif
