/* Private to sim/report: a figure as a part of an HTML page. */
#ifndef FLOPCAST_REPORT_PICTURE_H
#define FLOPCAST_REPORT_PICTURE_H

#include "base/status.h"

#include <stddef.h>
#include <stdio.h>

/* An SVG of gnuplot's as an element of HTML: `prefix` before each id and each reference to one, so that a page can hold
 * several; its hypertexts are titles, which a browser shows under the pointer without a script. label: what a screen
 * reader says in place of it. */
void picture_inline(FILE *out, const char *svg, const char *prefix, const char *label);

#endif
