/* `flopcast plot` and `flopcast report`: options and defaults of what is drawn from a database.
 *
 * The figure's name, options of time and size, and choices of runs go to answers/report; here
 * are only the defaults. The database is results/flopcast.db of the working folder, else of
 * flopcast's own files; figures come from $FLOPCAST_PLOTS, then from flopcast's own plots. What
 * is subtle: --scenario and --run share one list, so that their order on the command line is the
 * order in the figure. Physical sizes are at 96 pixels to an inch, as in CSS. */
#include "base/files.h"
#include "base/units.h"
#include "options/arguments.h"
#include "cli/cli.h"
#include "options/waiting.h"
#include "report/page.h"
#include "report/report.h"

#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

COMMAND(cmd_plot, 4, "plot", 0, "draw a figure from a database",
    "flopcast run gpt2_ddp_v100 --db my.db &&\nflopcast plot scaling --db my.db --out my.png");
COMMAND(cmd_report, 6, "report", 0, "write stored runs as one HTML page",
    "flopcast run gpt2_ddp_v100 --db my.db &&\nflopcast report --db my.db --out my.html");

#define FIGURES_DB "results/flopcast.db" /* where no --db is given */
#define DB_OPTION(type, path)                                                                      \
    {                                                                                              \
        "db", "PATH", "The database of `flopcast run --db` (default: " FIGURES_DB ")",             \
            OPTION_TEXT, .member = offsetof(type, path)                                            \
    }

/* Where no --db is given: of the working folder, or flopcast's own as files are. */
static enum status default_db(const char **db, struct arena *arena, struct diag *diag)
{
    const char *own = files_own(arena, FIGURES_DB);
    if (*db)
        return STATUS_OK;
    *db = access(FIGURES_DB, F_OK) == 0 ? FIGURES_DB : own;
    if (access(*db, F_OK) == 0)
        return STATUS_OK;
    return diag_io(diag, (struct source_pos){.file = FIGURES_DB},
        "there is no such database here; name one by --db, or make one: flopcast run SCENARIO "
        "--db " FIGURES_DB);
}

/* The folders of figures: $FLOPCAST_PLOTS, then flopcast's own. */
static void find_figures(const char **folder, const char **others, struct arena *arena)
{
    const char *given = getenv("FLOPCAST_PLOTS"), *own = files_own(arena, "plots");
    *folder = given ? given : own;
    *others = given ? own : NULL;
}

struct plot_command {
    struct report_plot plot;
    VEC(struct store_choice) choices;
};

static void plot_take_time(void *member, const struct argument *argument)
{
    struct report_time *time = member;
    char why[256];
    time->given = true;
    if (!quantity_parse(&time->s, argument->text, DIM_SECONDS, why, sizeof why))
        argp_error(argument->state, "--%s: %s", argument->option, why);
}

/* "16x9cm" */
static void plot_take_size(void *member, const struct argument *argument)
{
    static const struct {
        const char *unit;
        double pixels;
    } units[] = {{"", 1}, {"px", 1}, {"in", 96}, {"cm", 96 / 2.54}, {"mm", 96 / 25.4}};
    enum { LEAST = 10, MOST = 16000 }; /* Cairo ends at 32767 */
    char *end = NULL;
    double width = strtod(argument->text, &end), height = 0, pixels = 0;
    if (*end == 'x') {
        height = strtod(end + 1, &end);
        for (size_t i = 0; i < sizeof units / sizeof *units; i++)
            pixels = strcmp(end, units[i].unit) == 0 ? units[i].pixels : pixels;
    }
    struct report_size *size = member;
    *size = (struct report_size){width * pixels, height * pixels};
    if (!(size->width >= LEAST && size->width <= MOST && size->height >= LEAST &&
            size->height <= MOST))
        argp_error(argument->state,
            "--size %s: give width x height of %d to %d pixels, as in 1600x900, 16x9cm or 6.5x4in",
            argument->text, LEAST, MOST);
}

static void take_scenario(void *self, const struct argument *argument)
{
    struct plot_command *command = self;
    vec_push(&command->choices, (struct store_choice){.scenario = argument->text});
}

static void take_run(void *self, const struct argument *argument)
{
    struct plot_command *command = self;
    char *end = NULL;
    long long id = strtoll(argument->text, &end, 10);
    if (end == argument->text || *end)
        argp_error(
            argument->state, "--run %s: give the number of a run, as in --run 3", argument->text);
    vec_push(&command->choices, (struct store_choice){.run = id});
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

static void plot_check(void *self, struct argp_state *state)
{
    const struct report_plot *plot = &((const struct plot_command *)self)->plot;
    if (plot->from.given && plot->to.given && plot->from.s >= plot->to.s)
        argp_error(state, "--to must be later than --from");
}

static const struct command_option plot_options[] = {
    DB_OPTION(struct plot_command, plot.db),
    {"out", "FILE",
        "The picture, .png, .svg or .pdf; - draws in characters on stdout (default: FIGURE.png)",
        OPTION_TEXT, AT(plot_command, plot.out)},
    {"keep-script", NULL,
        "Also write FILE.gp: the gnuplot script with its data, to restyle by hand", OPTION_FLAG,
        AT(plot_command, plot.keep_script)},
    {"scenario", "NAME",
        "Its newest run, not the newest of all; may be repeated: several in one figure",
        OPTION_TAKE, .take = take_scenario, .flags = OPTION_LIST},
    {"run", "N", "This run of the database, as --scenario; a wrong number lists the newest",
        OPTION_TAKE, .take = take_run, .flags = OPTION_LIST},
    {"where", "EXPR",
        "Only points for which this is true: SQL over results (columns of table point) and "
        "settings, as in \"gpus >= 64 AND fsdp.sharding_strategy = 'FULL_SHARD'\"",
        OPTION_TEXT, AT(plot_command, plot.show.where)},
    {"x", "SETTING",
        "The setting on the x axis, a number or not, as in --x train.micro_batch (default: "
        "cluster.gpus, or what differs most)",
        OPTION_TEXT, AT(plot_command, plot.show.x)},
    {"facet", "SETTING", "A panel for each value of this setting (default: where curves are many)",
        OPTION_TEXT, AT(plot_command, plot.show.facet)},
    {"size", "WxH",
        "In pixels, cm or in, as in 1600x900, 16x9cm, 6.5x4in (96 pixels to an inch); for - in "
        "characters. Letters grow along (default: 1200 pixels wide, a .pdf 6.5 inches as the text "
        "of a paper, as high as the figure needs)",
        OPTION_TAKE, AT(plot_command, plot.size), .take = plot_take_size},
    {"from", "TIME", "Of timeline: from this time of the step on, as in --from 120ms", OPTION_TAKE,
        AT(plot_command, plot.from), .take = plot_take_time},
    {"to", "TIME", "Of timeline: up to this time", OPTION_TAKE, AT(plot_command, plot.to),
        .take = plot_take_time},
    {0},
};

int cmd_plot(int argc, char **argv)
{
    const struct command_line line = {.options = plot_options,
        .args_doc = "FIGURE",
        .one = "figure",
        AT(plot_command, plot.figure),
        .missing = "a figure is missing, as in: flopcast plot scaling",
        .check = plot_check,
        .doc = "Draw a figure from a database: FIGURE.sql and FIGURE.gp of the folder "
               "$FLOPCAST_PLOTS, where that has them, or of the folder plots.\v"
               "Needs gnuplot. A figure shows the newest run: scaling, speed, breakdown, memory "
               "and memory_timeline of any scenario, t5_scaling and t5_model_scale of theirs. A "
               "name that no figure has lists all; each .sql begins with what it shows.\n\n"
               "A figure of your own: in FIGURE.sql a SELECT for each data series, under a line "
               "`-- name: SERIES`; in FIGURE.gp what gnuplot does with it, as in `plot $SERIES "
               "using \"gpus\":\"step_time_s\"`. `sqlite3 DB .schema` prints tables and views with "
               "units; begin with v_scaling, v_memory and v_breakdown."};
    struct arena arena = ARENA_INIT;
    struct plot_command command = {0};
    find_figures(&command.plot.folder, &command.plot.others, &arena);
    command_line_parse(&line, argc, argv, &command);
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
    struct waiting *waiting = waiting_begin("plot", plot.figure, "under way", NULL, false);
    bool drawn =
        default_db(&plot.db, &arena, &diag) == STATUS_OK && report_plot(&plot, &diag) == STATUS_OK;
    waiting_end(waiting);
    if (drawn && !named)
        printf("wrote %s\n", out);
    vec_free(&command.choices);
    arena_release(&arena);
    return cli_report(&diag);
}

/* ---- report ---- */

struct page_command {
    struct report_page page;
    VEC(const char *) runs;
};

static void take_page_run(void *self, const struct argument *argument)
{
    struct page_command *command = self;
    vec_push(&command->runs, argument->text);
}

static const struct command_option page_options[] = {
    DB_OPTION(struct page_command, page.db),
    {"out", "FILE", "The page (default: report.html)", OPTION_TEXT,
        .member = offsetof(struct page_command, page.out)},
    {0},
};

int cmd_report(int argc, char **argv)
{
    const struct command_line line = {.options = page_options,
        .args_doc = "[RUN...]",
        .take = take_page_run,
        .doc = "Write stored runs as one HTML page that needs nothing beside it: pictures, tables, "
               "causes, memory, samples, the measured runs that are nearest, settings with their "
               "origins, and how to repeat it.\vRUN is the number of a run, or the name of a "
               "scenario: its newest run (default: the newest of all). The page makes no requests; "
               "it can be mailed, printed, and read on a phone. Where a pointer stands on a "
               "picture, it says the value. Pictures need gnuplot; without it the page says so and "
               "has the rest.\n\n"
               "`flopcast waterfall SCENARIO --db PATH` and `flopcast run SCENARIO --samples 10 "
               "--db PATH` add why throughput is lost, and how sure it is; `flopcast run` of one "
               "of its points with --trace FILE --db PATH adds a part of its timeline; `flopcast "
               "sensitivity --db PATH` and `flopcast goodput --db PATH` add what it depends on, "
               "and months of training."};
    struct arena arena = ARENA_INIT;
    struct page_command command = {0};
    find_figures(&command.page.folder, &command.page.others, &arena);
    command_line_parse(&line, argc, argv, &command);
    struct report_page page = command.page;
    page.runs = command.runs.at;
    page.n_runs = command.runs.n;
    bool named = page.out != NULL;
    if (!named)
        page.out = "report.html";
    struct diag diag = DIAG_INIT;
    struct waiting *waiting = waiting_begin("report", "", "pictures are under way", NULL, false);
    bool written =
        default_db(&page.db, &arena, &diag) == STATUS_OK && report_page(&page, &diag) == STATUS_OK;
    waiting_end(waiting);
    if (written && !named)
        printf("wrote %s\n", page.out);
    vec_free(&command.runs);
    arena_release(&arena);
    return cli_report(&diag);
}
