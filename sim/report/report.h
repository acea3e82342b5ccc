/* Pictures from the database: a figure is a pair FIGURE.sql and FIGURE.gp in one folder.
 *
 * FIGURE.sql holds one SELECT for each data series, each under a line "-- name: SERIES". Its rows go to gnuplot as the
 * data block $SERIES with a line of column names (`set datafile columnheaders` is on: write `using "gpus":"tflops"`);
 * NULL is NaN. The first series must have rows, the others may be empty. :from_s and :to_s in it are the ends of the
 * part of a step that was asked for, NULL where none was. FIGURE.gp draws them: the terminal is set by
 * the suffix of the picture, enhanced text is off. Texts of the database reach gnuplot only as data, where it evaluates
 * nothing.
 *
 * gnuplot reads the script from memory and hands the picture back through a pipe; a picture is put in place by
 * renaming, so that one that fails leaves the old one as it was. */
#ifndef FLOPCAST_REPORT_REPORT_H
#define FLOPCAST_REPORT_REPORT_H

#include "base/status.h"

#include <stdbool.h>

/* A time of a step, seconds since it began. */
struct report_time {
    bool given;
    double s;
};

struct report_plot {
    const char *folder; /* where the figures are */
    const char *others; /* where those are that it lacks; NULL: nowhere */
    const char *figure;
    const char *db;
    const char *scenario;        /* only its results are seen; NULL: all */
    const char *out;             /* .png, .svg, or "-": drawn in characters on stdout */
    struct report_time from, to; /* the part of a step that is shown */
    bool keep_script;            /* also writes OUT.gp: the script with its data, ready for gnuplot */
};

enum status report_plot(const struct report_plot *plot, struct diag *diag);

#endif
