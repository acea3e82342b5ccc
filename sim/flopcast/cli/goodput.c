/* `flopcast goodput`: months of training out of one simulated step, failures and checkpoints.
 *
 * The step is simulated once a point; study/months.h makes months of it. Where something was
 * measured of the job, they are months of that speed. */
#include "cli/goodput.h"

#include "base/files.h"
#include "cli/cli.h"
#include "rows/table.h"
#include "options/waiting.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

COMMAND(cmd_goodput, 18, "goodput", 0, "months of training: what failures and checkpoints cost",
    "flopcast goodput llama2_7b_h100_fsdp --set cluster.gpus=512");

/* Every default number with its unit, kind and source. */
static void print_sources(FILE *out)
{
    struct arena arena = ARENA_INIT;
    struct table table = {0};
    struct months_source source;
    for (int i = 0; months_source(&source, i, &arena); i++) {
        table_row(&table);
        table_text(&table, "setting", "", source.setting);
        table_text(&table, "default", "", source.value);
        table_text(&table, "kind", "", source.kind);
        table_text(&table, "source", "", source.source);
    }
    table_finish(out, &table);
    arena_release(&arena);
}

enum { DEFAULT_SEEDS = 20 };

static void take_days(void *days, const struct argument *argument)
{
    char *end = NULL;
    double value = strtod(argument->text, &end);
    if (end == argument->text || *end || !(value > 0 && value <= GOODPUT_MAX_DAYS))
        argp_error(argument->state, "--days %s: a number of days up to %d is wanted, as in 30",
            argument->text, GOODPUT_MAX_DAYS);
    *(double *)days = value;
}

static const struct command_option goodput_options[] = {
    {"set", "KEY=VALUE", "Set an option, as in goodput.checkpoint_interval=10min; may be repeated",
        OPTION_SET, AT(goodput_command, overrides)},
    JOB_OPTIONS(struct goodput_command),
    {"days", "D",
        "Days that a history lasts (default: goodput.days of the scenario, else as many as "
        "--tokens take without a failure, else 30)",
        OPTION_TAKE, AT(goodput_command, days), .take = take_days},
    {"seeds", "N", "Histories, whose spread the intervals are (default: 20)", OPTION_SAMPLES,
        AT(goodput_command, seeds)},
    {"tokens", "N",
        "Days, dollars and energy of a training on this number of tokens (images, samples), as in "
        "15T",
        OPTION_TAKE, AT(goodput_command, tokens), .take = argument_tokens},
    PRICE_OPTION(struct goodput_command),
    MEASURED_OPTION(struct goodput_command),
    {"db", "PATH", "Store the points in this database, for `flopcast plot goodput`", OPTION_TEXT,
        AT(goodput_command, db)},
    {"sources", NULL, "Print the numbers that a scenario need not set, with kind and source",
        OPTION_FLAG, AT(goodput_command, sources)},
    RECORDS_OPTION(struct goodput_command),
    {0},
};

/* How sure a step is. Where something was measured the result becomes what that makes of it, and
 * its interval is around it. Then everything behind works on the measured speed, and the interval
 * is relative to it. */
static const struct sure_range *goodput_take_range(struct sure *sure,
    const struct scenario_point *point, struct scenario_result *result, struct arena *arena)
{
    static const struct sure_range none = {0};
    if (result->exec.status != EXEC_OK)
        return &none;
    const struct sure_range *range = sure_of_speed(sure, point, result->mfu);
    if (!range->known)
        return range;
    result->exec.step_time_s /= range->middle;
    result->tflops_per_gpu *= range->middle;
    result->tokens_per_s_per_gpu *= range->middle;
    struct sure_range *around = ARENA_NEW(arena, struct sure_range);
    *around = (struct sure_range){true, range->low / range->middle, range->high / range->middle, 1};
    return around;
}

/* The steps, then point by point the histories, which are on all cores themselves. */
static void goodput_run_all(const struct goodput_command *command, struct scenario_set *set,
    struct arena *arena, struct diag *diag)
{
    size_t n = (size_t)set->n_points;
    struct scenario_result *results = xcalloc(n, sizeof *results);
    struct arena *arenas = xcalloc(n, sizeof *arenas);
    struct months_point *points = ARENA_ARRAY(arena, struct months_point, n);
    struct sure sure = {0};
    struct own_runs own = {.command = "goodput"};
    const struct months_asked asked = {
        command->days, command->tokens.n, command->tokens.text, command->seeds};
    enum status status =
        own_runs_simulate(&own, &sure, &command->measured, set, &command->overrides, arena, diag);
    struct waiting *waiting =
        waiting_begin("goodput", set->points[0].options.name, "points", set, false);
    if (status == STATUS_OK)
        status = scenario_simulate_all(results, arenas, set, waiting_count, waiting, diag);
    for (int i = 0; i < set->n_points && status == STATUS_OK; i++) {
        const struct sure_range *range =
            goodput_take_range(&sure, &set->points[i], &results[i], arena);
        months_simulate(&points[i], &asked, &set->points[i], &results[i], range, arena, diag);
    }
    waiting_end(waiting);
    if (diag->worst == STATUS_OK)
        goodput_print(stdout, command, set, points, arena);
    if (diag->worst == STATUS_OK && command->format == RECORDS_TABLE)
        sure_print(stdout, &sure);
    if (diag->worst == STATUS_OK && command->format == RECORDS_TABLE)
        own_runs_print(stdout, &own);
    if (diag->worst == STATUS_OK && command->db)
        goodput_keep(command, set, points, arena, diag);
    sure_end(&sure);
    vec_free(&own.list);
    for (int i = 0; i < set->n_points; i++)
        arena_release(&arenas[i]);
    free(arenas);
    free(results);
}

static void goodput_check_arguments(void *self, struct argp_state *state)
{
    struct goodput_command *command = self;
    if (!command->file && !command->sources)
        argp_error(state, "a scenario file is missing");
}

int cmd_goodput(int argc, char **argv)
{
    const struct command_line line = {.options = goodput_options,
        .common = COMMON_SIMULATE,
        .args_doc = "SCENARIO|MODEL",
        .files = FILES_SCENARIOS,
        .one = "scenario",
        AT(goodput_command, file),
        .check = goodput_check_arguments,
        .doc = "Months of training: the simulated step, and GPUs, nodes, links, switches and "
               "software that fail, hangs until the watchdog ends them, hot spares, restarts and "
               "checkpoints. Prints the share of time that trains (goodput), what is left of "
               "TFLOPS, and where the rest goes.\vSection goodput of the scenario says how often "
               "parts fail and how checkpoints are written ('flopcast help settings'); --sources "
               "says where its defaults are from. checkpoint_interval 0 s: the interval with the "
               "largest goodput is searched. "
               "Intervals of goodput are 5 to 95 % of the histories; those of days, dollars and "
               "energy hold the step's, by measured runs of the same range, too. Dollars and "
               "energy count hot spares, too, which idle: by default none below "
               "64 nodes, then by the job's size. Energy is at the "
               "meter: GPUs in steps or waiting for one, host, network, PUE."};
    struct goodput_command command = {.seeds = DEFAULT_SEEDS};
    command_line_parse(&line, argc, argv, &command);
    struct diag diag = DIAG_INIT;
    struct scenario_set set;
    if (command.sources)
        print_sources(stdout);
    if (command.file) {
        command.file = files_find(&command.arena, FILES_SCENARIOS, command.file);
        overrides_load(&set, command.file, &command.overrides, &command.arena, &diag);
        if (diag.worst == STATUS_OK && command.db &&
            (command.measured.texts.n > 0 || set.n_measured > 0))
            diag_input(&diag, set.n_measured > 0 ? set.measured[0].at : (struct source_pos){0},
                "what was measured shifts the months that are printed, and --db keeps what is "
                "simulated; leave out one of them");
        if (diag.worst == STATUS_OK &&
            prices_set(&command.prices, &set, &command.arena, &diag) == STATUS_OK)
            goodput_run_all(&command, &set, &command.arena, &diag);
    }
    overrides_free(&command.overrides);
    own_runs_free(&command.measured);
    prices_free(&command.prices);
    arena_release(&command.arena);
    return cli_report(&diag);
}
