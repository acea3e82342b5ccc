/* What a figure shows: which points of which runs, over which setting, in which curves and panels.
 *
 * store_show() makes temporary tables on the connection, which queries read beside those of the
 * database:
 *
 *   shown        a row a point: point_id, run_id, place (in the order of runs and of their sweeps);
 *                x and x_text, its
 * value on the x axis (a text counts by its place among the others); panel, curve, color (1 ...);
 * curve_label,
 *                panel_label; varied (its settings that differ, besides model, strategy, batch and
 *                GPUs, or NULL)
 *   shown_axis   one row: path and title of the x axis, asked (it was given), n (its values), low,
 *                high, logarithmic, number (else its values are texts); common (what all points
 *                have in common, where panels leave it out
 * of the names of curves, or NULL), condition (or NULL) shown_tick x, text shown_setting,
 * shown_vary all settings
 * of the points (point_id, path, value, text); those that differ (path, n)
 *   shown_bar    of figures with a bar a point: point_id, place (1 ...); of more than 16 points the
 *                ends of each curve alone, chosen says so, else it is NULL
 *
 * Points on one curve differ only in the setting of the x axis, or in settings that go along with
 * it: one value for each value of the axis. More curves than a panel has colors for become panels,
 * one for each value of a setting.
 *
 * with_interval(value, low, high, digits) in a query is "718 (615-1,050)": as many digits as the
 * interval makes sense of, `digits` behind the point at most; the value alone where the ends are
 * NULL.
 *
 * figure_room(n, most, 'bars', ', or another axis with --x') in a query is 1, or ends it with a
 * sentence that says how to choose fewer: by --where, and by the last argument. */
#ifndef FLOPCAST_STORE_SHOWN_H
#define FLOPCAST_STORE_SHOWN_H

#include "store/store.h"

/* A run, or the newest of a scenario. */
struct store_choice {
    const char *scenario; /* NULL: the run */
    int64_t run;
};

struct store_show {
    const struct store_choice *choices; /* none: the newest run, and queries see all others, too */
    int n_choices;
    const char
        *where; /* a condition in SQL over columns of table point, scenario, run, and settings, as
                 * in "gpus >= 64 AND fsdp.sharding_strategy LIKE 'HYBRID%'"; NULL: all points */
    const char *x; /* a setting, by its path or the last name of it; NULL: cluster.gpus where that
                    * differs, else the setting that differs most */
    const char *facet; /* a setting with a panel for each value; NULL: as many as are needed */
};

/* With choices or a condition, queries from now on see nothing else, in tables and views alike:
 * what is newest is the newest of these. Explanations, and other studies of a scenario, are those
 * of the scenarios that are chosen. Texts are borrowed until store_close(). */
enum status store_show(struct store *store, const struct store_show *show, struct diag *diag);

/* What queries since then have read, as a sum: a query of fits or measurements only shows no
 * points. */
enum store_reads {
    STORE_READS_POINTS = 1,
    STORE_READS_EXPLANATIONS = 2,
    STORE_READS_X = 4,
    STORE_READS_PANELS = 8
};
unsigned store_reads(const struct store *store);

#endif
