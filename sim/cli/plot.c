#include "cli/cli.h"
#include "cli/arguments.h"

#include "base/files.h"
#include "base/units.h"
#include "report/report.h"

#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum {
    KEY_DB = 256,
    KEY_OUT,
    KEY_KEEP,
    KEY_SCENARIO,
    KEY_RUN,
    KEY_WHERE,
    KEY_X,
    KEY_FACET,
    KEY_SIZE,
    KEY_FROM,
    KEY_TO
};

struct command {
    struct report_plot plot;
    VEC(struct store_choice) choices;
};

static const struct argp_option options[] = {
    {"db", KEY_DB, "PATH", 0, "The database of `flopcast run --db` (default: results/flopcast.db)", 0},
    {"out", KEY_OUT, "FILE", 0,
        "The picture, .png, .svg or .pdf; - draws in characters on stdout (default: FIGURE.png)", 0},
    {"keep-script", KEY_KEEP, NULL, 0, "Also write FILE.gp: the gnuplot script with its data, to restyle by hand", 0},
    {"scenario", KEY_SCENARIO, "NAME", OPTION_LIST,
        "Its newest run, not the newest of all; may be repeated: several in one figure", 0},
    {"run", KEY_RUN, "N", OPTION_LIST, "This run of the database, as --scenario; a wrong number lists the newest", 0},
    {"where", KEY_WHERE, "EXPR", 0,
        "Only points for which this is true: SQL over results (columns of table point) and settings, as in \"gpus >= "
        "64 "
        "AND fsdp.sharding_strategy = 'FULL_SHARD'\"",
        0},
    {"x", KEY_X, "SETTING", 0,
        "The setting on the x axis, a number or not, as in --x train.micro_batch (default: cluster.gpus, or what "
        "differs "
        "most)",
        0},
    {"facet", KEY_FACET, "SETTING", 0, "A panel for each value of this setting (default: where curves are many)", 0},
    {"size", KEY_SIZE, "WxH", 0,
        "In pixels, cm or in, as in 1600x900, 16x9cm, 6.5x4in (96 pixels to an inch); for - in characters. Letters "
        "grow "
        "along (default: 1200 pixels wide, as high as the figure needs)",
        0},
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

/* "16x9cm" */
static struct report_size size_of(const char *arg, struct argp_state *state)
{
    static const struct {
        const char *unit;
        double pixels;
    } units[] = {{"", 1}, {"px", 1}, {"in", 96}, {"cm", 96 / 2.54}, {"mm", 96 / 25.4}};
    enum { LEAST = 10, MOST = 16000 }; /* Cairo ends at 32767 */
    char *end = NULL;
    double width = strtod(arg, &end), height = 0, pixels = 0;
    if (*end == 'x') {
        height = strtod(end + 1, &end);
        for (size_t i = 0; i < sizeof units / sizeof *units; i++)
            pixels = strcmp(end, units[i].unit) == 0 ? units[i].pixels : pixels;
    }
    struct report_size size = {width * pixels, height * pixels};
    if (!(size.width >= LEAST && size.width <= MOST && size.height >= LEAST && size.height <= MOST))
        argp_error(state, "--size %s: give width x height of %d to %d pixels, as in 1600x900, 16x9cm or 6.5x4in", arg,
            LEAST, MOST);
    return size;
}

static int64_t run_of(const char *arg, struct argp_state *state)
{
    char *end = NULL;
    long long id = strtoll(arg, &end, 10);
    if (end == arg || *end)
        argp_error(state, "--run %s: give the number of a run, as in --run 3", arg);
    return id;
}

/* As wide as the terminal, or as COLUMNS says. */
static double columns(void)
{
    const char *text = getenv("COLUMNS");
    long n = text ? strtol(text, NULL, 10) : 0;
    struct winsize window;
    if (n <= 0 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0)
        n = window.ws_col;
    return n <= 0 ? 0 : n < 40 ? 40 : n > 1000 ? 1000 : (double)n;
}

static void check_cut(const struct report_plot *plot, struct argp_state *state)
{
    if (plot->from.given && plot->to.given && plot->from.s >= plot->to.s)
        argp_error(state, "--to must be later than --from");
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct command *command = state->input;
    struct report_plot *plot = &command->plot;
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
        vec_push(&command->choices, (struct store_choice){.scenario = arg});
        return 0;
    case KEY_RUN:
        vec_push(&command->choices, (struct store_choice){.run = run_of(arg, state)});
        return 0;
    case KEY_WHERE:
        plot->show.where = arg;
        return 0;
    case KEY_X:
        plot->show.x = arg;
        return 0;
    case KEY_FACET:
        plot->show.facet = arg;
        return 0;
    case KEY_SIZE:
        plot->size = size_of(arg, state);
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
    struct command command = {
        .plot = {.folder = folder ? folder : own, .others = folder ? own : NULL, .db = "results/flopcast.db"}};
    arguments_parse(&argp, argc, argv, 0, &command);
    struct report_plot plot = command.plot;
    plot.show.choices = command.choices.at;
    plot.show.n_choices = command.choices.n;
    char out[256];
    snprintf(out, sizeof out, "%s.png", plot.figure);
    bool named = plot.out != NULL;
    if (!named)
        plot.out = out;
    if (strcmp(plot.out, "-") == 0 && plot.size.width == 0)
        plot.size.width = columns();
    struct diag diag = DIAG_INIT;
    if (report_plot(&plot, &diag) == STATUS_OK && !named)
        printf("wrote %s\n", out);
    vec_free(&command.choices);
    arena_release(&arena);
    return cli_report(&diag);
}
