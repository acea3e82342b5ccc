#include "cli/cli.h"
#include "cli/arguments.h"

#include "base/files.h"
#include "base/units.h"
#include "report/report.h"

#include <argp.h>
#include <stdio.h>
#include <stdlib.h>

enum { KEY_DB = 256, KEY_OUT, KEY_KEEP, KEY_SCENARIO, KEY_FROM, KEY_TO };

static const struct argp_option options[] = {
    {"db", KEY_DB, "PATH", 0, "The database of `flopcast run --db` (default: results/flopcast.db)", 0},
    {"out", KEY_OUT, "FILE", 0, "The picture, .png or .svg; - draws in characters on stdout (default: FIGURE.png)", 0},
    {"keep-script", KEY_KEEP, NULL, 0, "Also write FILE.gp: the gnuplot script with its data, to restyle by hand", 0},
    {"scenario", KEY_SCENARIO, "NAME", 0, "Its newest run, not the newest of all", 0},
    {"from", KEY_FROM, "TIME", 0, "Of timeline: from this time of the step on, as in --from 120ms", 0},
    {"to", KEY_TO, "TIME", 0, "Of timeline: up to this time", 0},
    {0},
};

static struct report_time time_of(const char *option, const char *arg, struct argp_state *state)
{
    struct report_time time = {.given = true};
    char why[256];
    if (!quantity_parse(&time.s, arg, DIM_SECONDS, why, sizeof why))
        argp_error(state, "--%s: %s", option, why);
    return time;
}

static void check_cut(const struct report_plot *plot, struct argp_state *state)
{
    if (plot->from.given && plot->to.given && plot->from.s >= plot->to.s)
        argp_error(state, "--to must be later than --from");
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct report_plot *plot = state->input;
    switch (key) {
    case KEY_DB:
        plot->db = arg;
        return 0;
    case KEY_OUT:
        plot->out = arg;
        return 0;
    case KEY_KEEP:
        plot->keep_script = true;
        return 0;
    case KEY_SCENARIO:
        plot->scenario = arg;
        return 0;
    case KEY_FROM:
        plot->from = time_of("from", arg, state);
        return 0;
    case KEY_TO:
        plot->to = time_of("to", arg, state);
        return 0;
    case ARGP_KEY_ARG:
        if (plot->figure)
            argp_error(state, "one figure at a time; '%s' is a second one", arg);
        plot->figure = arg;
        return 0;
    case ARGP_KEY_END:
        check_cut(plot, state);
        return 0;
    case ARGP_KEY_NO_ARGS:
        argp_error(state, "a figure is missing, as in: flopcast plot scaling");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

int cmd_plot(int argc, char **argv)
{
    const struct argp argp = {.options = options,
        .parser = parse,
        .args_doc = "FIGURE",
        .doc = "Draw a figure from a database: FIGURE.sql and FIGURE.gp of the folder $FLOPCAST_PLOTS, where that has "
               "them, or of the folder plots.\v"
               "Needs gnuplot. A figure shows the newest run: scaling, speed, breakdown, memory and memory_timeline of "
               "any scenario, t5_scaling and t5_model_scale of theirs. A name that no figure has lists all; each .sql "
               "begins with what it shows.\n\n"
               "A figure of your own: in FIGURE.sql a SELECT for each data series, under a line `-- name: SERIES`; in "
               "FIGURE.gp what gnuplot does with it, as in `plot $SERIES using \"gpus\":\"step_time_s\"`. `sqlite3 DB "
               ".schema` prints tables and views with units; begin with v_scaling, v_memory and v_breakdown."};
    const char *folder = getenv("FLOPCAST_PLOTS");
    struct arena arena = ARENA_INIT;
    const char *own = files_own(&arena, "plots");
    struct report_plot plot = {
        .folder = folder ? folder : own, .others = folder ? own : NULL, .db = "results/flopcast.db"};
    arguments_parse(&argp, argc, argv, 0, &plot);
    char out[256];
    snprintf(out, sizeof out, "%s.png", plot.figure);
    bool named = plot.out != NULL;
    if (!named)
        plot.out = out;
    struct diag diag = DIAG_INIT;
    if (report_plot(&plot, &diag) == STATUS_OK && !named)
        printf("wrote %s\n", out);
    arena_release(&arena);
    return cli_report(&diag);
}
