#include "cli/cli.h"

#include "base/files.h"
#include "base/vec.h"
#include "cli/figures.h"
#include "report/page.h"

#include <argp.h>
#include <stdio.h>
#include <stdlib.h>

struct command {
    struct report_page page;
    VEC(const char *) runs;
};

static void take_run(void *self, const struct argument *argument)
{
    struct command *command = self;
    vec_push(&command->runs, argument->text);
}

#define AT(at) .member = offsetof(struct command, page.at)
static const struct command_option options[] = {
    FIGURES_DB_OPTION(struct command, page.db),
    {"out", "FILE", "The page (default: report.html)", OPTION_TEXT, AT(out)},
    {0},
};

int cmd_report(int argc, char **argv)
{
    const struct command_line line = {.options = options,
        .args_doc = "[RUN...]",
        .take = take_run,
        .doc =
            "Write stored runs as one HTML page that needs nothing beside it: pictures, tables, causes, memory, "
            "samples, the measured runs that are nearest, settings with their origins, and how to repeat it.\v"
            "RUN is the number of a run, or the name of a scenario: its newest run (default: the newest of all). "
            "The page makes no requests; it can be mailed, printed, and read on a phone. Where a pointer stands on a "
            "picture, it says the value. Pictures need gnuplot; without it the page says so and has the rest.\n\n"
            "`flopcast waterfall SCENARIO --db PATH` and `flopcast run SCENARIO --samples 10 --db PATH` add why "
            "throughput is lost, and how sure it is; `flopcast run` of one of its points with --trace FILE --db PATH "
            "adds a part of its timeline; `flopcast sensitivity --db PATH` and `flopcast goodput --db PATH` add what "
            "it "
            "depends on, and months of training."};
    struct arena arena = ARENA_INIT;
    struct command command = {.page.db = FIGURES_DB};
    figures_find(&command.page.folder, &command.page.others, &arena);
    command_line_parse(&line, argc, argv, &command);
    struct report_page page = command.page;
    page.runs = command.runs.at;
    page.n_runs = command.runs.n;
    page.validated = files_own(&arena, "results/validated.csv");
    bool named = page.out != NULL;
    if (!named)
        page.out = "report.html";
    struct diag diag = DIAG_INIT;
    if (report_page(&page, &diag) == STATUS_OK && !named)
        printf("wrote %s\n", page.out);
    vec_free(&command.runs);
    arena_release(&arena);
    return cli_report(&diag);
}
