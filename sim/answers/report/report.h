/* Pictures from the database: a figure is a pair FIGURE.sql and FIGURE.gp in one folder.
 *
 * FIGURE.sql holds one SELECT for each data series, each under a line "-- name: SERIES". Its rows
 * go to gnuplot as the data block $SERIES with a line of column names (`set datafile columnheaders`
 * is on: write `using "gpus":"tflops"`); NULL is NaN. The first series must have rows, the others
 * may be empty. :from_s and :to_s in it are the ends of the part of a step that was asked for, NULL
 * where none was; store/shown.h says what else its SQL may read. FIGURE.gp draws them: the terminal
 * is set by the suffix of the picture, enhanced text is off. A line `#include "NAME.gp"` in it
 * stands for that file of the folder.
 *
 * A script draws on a canvas 1200 wide. It begins with `height`, 800 or what --size makes of it; a
 * figure that needs more says `height = canvas(1000)`, which --size overrules and gnuplot's limits
 * bound, then `eval terminal(height)`. wrap(text, n) breaks a text into lines of at most n
 * characters, and plain is 1 where characters are drawn. Texts of the database reach gnuplot only
 * as data, where it evaluates nothing.
 *
 * gnuplot reads the script from memory and hands the picture back through a pipe; a picture is put
 * in place by renaming, so that one that fails leaves the old one as it was. */
#ifndef FLOPCAST_REPORT_REPORT_H
#define FLOPCAST_REPORT_REPORT_H

#include "base/status.h"
#include "store/shown.h"

#include <stdbool.h>

/* A time of a step, seconds since it began. */
struct report_time {
    bool given;
    double s;
};

/* Pixels, 96 to an inch where the picture is measured in these; of a figure in characters, columns
 * and lines. 0: as the figure has it, which is 1200 x 800 for most, in a .pdf 6.5 inches wide. */
struct report_size {
    double width, height;
};

struct report_plot {
    const char *folder; /* where the figures are */
    const char *others; /* where those are that it lacks; NULL: nowhere */
    const char *figure;
    const char *db;
    struct store_show show;
    struct report_size size;
    const char *out;             /* .png, .svg, .pdf, or "-": drawn in characters on stdout */
    struct report_time from, to; /* the part of a step that is shown */
    bool hover; /* points and parts of bars say their values where a pointer stands (of an .svg) */
    bool keep_script; /* also writes OUT.gp: the script with its data, ready for gnuplot */
};

enum status report_plot(const struct report_plot *plot, struct diag *diag);

#endif
