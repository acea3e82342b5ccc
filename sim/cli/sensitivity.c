#include "cli/cli.h"

#include "base/files.h"
#include "base/units.h"
#include "cli/records.h"
#include "cli/table.h"
#include "cli/vary.h"
#include "cli/words.h"
#include "scenario/sensitivity.h"
#include "store/study.h"

#include <argp.h>
#include <math.h>
#include <unistd.h>

static const double PERCENT = 100;
enum { TOP = 15, MOST_ITEMS = 100000 };

struct command {
    const char *file, *db;
    int top;
    enum records_format format;
    struct overrides overrides;
    struct arena arena;
};

#define AT(at) .member = offsetof(struct command, at)
static const struct command_option options[] = {
    {"set", "KEY=VALUE", "Set an option, as in --set cluster.gpus=64; may be repeated", OPTION_SET, AT(overrides)},
    {"seed", "N", "The same as --set run.seed=N", OPTION_SEED, AT(overrides)},
    {"db", "PATH", "Store the result in this database, for `flopcast plot sensitivity`", OPTION_TEXT, AT(db)},
    {"top", "N", "table: the N parameters with the largest effect (default: 15)", OPTION_COUNT, AT(top),
        .most = MOST_ITEMS},
    RECORDS_OPTION(struct command),
    {0},
};

static const char *name_of(const struct sensitivity_part *part)
{
    return part->parameter ? part->parameter->path : "host";
}

static const char *kind_of(const struct sensitivity_part *part)
{
    return hw_kind_name(part->parameter ? part->parameter->number.kind : QUANTITY_ASSUMED);
}

static double spread_of(const struct sensitivity_part *part)
{
    return part->parameter ? part->parameter->spread : DRAW_ASSUMED;
}

static const char *source_of(const struct sensitivity_part *part)
{
    return part->parameter ? part->parameter->number.source : "what the host costs (strategy/strategy.h), all together";
}

static const char *value_of(const struct sensitivity_part *part, struct arena *arena)
{
    char text[64];
    if (!part->parameter)
        return "host.*";
    return arena_strdup(
        arena, quantity_format(text, sizeof text, part->parameter->number.value, part->parameter->dimension));
}

static void print_table(FILE *out, const struct sensitivity *s, const char *point, int top, struct arena *arena)
{
    struct table table = {0};
    double variance = s->independent * s->independent;
    fprintf(out, "%s: %.2f TFLOPS per GPU\n\n", point, s->tflops_per_gpu);
    for (int i = 0; i < s->n_parts && i < top; i++) {
        const struct sensitivity_part *part = &s->parts[i];
        table_row(&table);
        table_text(&table, "number", "", name_of(part));
        table_number_as(&table, "value", "", value_of(part, arena));
        table_number(&table, "standard", "error, %", 1, PERCENT * spread_of(part));
        table_text(&table, "kind", "", kind_of(part));
        table_number(&table, "lower", "TFLOPS/GPU", 2, part->low);
        table_number(&table, "higher", "TFLOPS/GPU", 2, part->high);
        table_number_as(&table, "effect", "%", words_number(&table.numbers, PERCENT * part->effect, 2, true));
        table_number(&table, "of the", "variance, %", 1, PERCENT * part->effect * part->effect / variance);
        table_text(&table, "source", "", source_of(part));
        table_spare(&table, 1);
    }
    table_finish(out, &table);
    if (s->n_parts > top)
        fprintf(out, "and %d more (--top %d)\n", s->n_parts - top, s->n_parts);
    fprintf(out,
        "\nAll together, one standard deviation: %.2f %% if they were independent, %.2f %% as fits correlate them. "
        "What "
        "the model leaves out: %.1f %%.\n%d more numbers that have errors change nothing here.\n",
        PERCENT * s->independent, PERCENT * s->correlated, PERCENT * s->discrepancy, s->n_idle);
}

enum { CELLS = 6 };

static void fill(struct record_cell *cells, const struct sensitivity_part *part)
{
    cells[0] = cell_text("parameter", name_of(part));
    cells[1] = cell_text("kind", kind_of(part));
    cells[2] = cell_real("spread", true, spread_of(part));
    cells[3] = cell_real("low_tflops_per_gpu", true, part->low);
    cells[4] = cell_real("high_tflops_per_gpu", true, part->high);
    cells[5] = cell_text("source", source_of(part));
}

static void print_records(FILE *out, const struct sensitivity *s, enum records_format format)
{
    struct records records = records_begin(out, format);
    for (int i = 0; i < s->n_parts; i++) {
        struct record_cell cells[CELLS];
        fill(cells, &s->parts[i]);
        records_row(&records, cells, CELLS);
    }
    records_end(&records);
}

static void keep(const char *db, const struct sensitivity *s, const char *scenario, const char *point,
    struct arena *arena, struct diag *diag)
{
    const struct record_cell head[] = {cell_text("scenario", scenario), cell_text("label", point),
        cell_real("tflops_per_gpu", true, s->tflops_per_gpu), cell_real("independent", true, s->independent),
        cell_real("correlated", true, s->correlated), cell_real("discrepancy", true, s->discrepancy),
        cell_int("idle", s->n_idle)};
    struct record_cell *cells = ARENA_ARRAY(arena, struct record_cell, CELLS * s->n_parts + 1);
    for (int i = 0; i < s->n_parts; i++)
        fill(&cells[(ptrdiff_t)i * CELLS], &s->parts[i]);
    const struct store_study study = {.table = "sensitivity",
        .rows_table = "sensitivity_part",
        .head = head,
        .n_head = sizeof head / sizeof *head,
        .cells = cells,
        .n_cells = CELLS,
        .n_rows = s->n_parts};
    struct store *store = NULL;
    if (store_open(&store, db, STORE_WRITE, diag) == STATUS_OK)
        store_put_study(store, &study, diag);
    store_close(store);
}

static void show_progress(void *self, int done, int total)
{
    (void)self;
    fprintf(stderr, "\rsensitivity: %d of %d runs%s", done, total, done == total ? "\n" : "");
}

static void run(struct command *command, const struct scenario_point *point, struct diag *diag)
{
    struct scenario_uncertainty uncertainty;
    struct sensitivity s;
    struct arena *arena = &command->arena;
    if (scenario_uncertainty_load(&uncertainty, files_folder(arena), arena, diag) != STATUS_OK ||
        scenario_sensitivity(
            &s, point, &uncertainty, isatty(STDERR_FILENO) ? show_progress : NULL, NULL, arena, diag) != STATUS_OK)
        return;
    const char *name = words_point(point, arena);
    if (command->format == RECORDS_TABLE)
        print_table(stdout, &s, name, command->top, arena);
    else
        print_records(stdout, &s, command->format);
    if (command->db)
        keep(command->db, &s, point->options.name, name, arena, diag);
}

int cmd_sensitivity(int argc, char **argv)
{
    const struct command_line line = {.options = options,
        .common = COMMON_SIMULATE,
        .args_doc = "SCENARIO",
        .files = FILES_SCENARIOS,
        .one = "scenario",
        AT(file),
        .missing = "a scenario file is missing",
        .doc = "What a prediction depends on: every number that has an error, one at a time, one standard error lower "
               "and higher; the one with the largest effect first.\v"
               "The numbers are those that `flopcast run --samples` draws, of GPU, node and cluster and of the host; "
               "errors without a fit are 20 % for assumed numbers and 5 % for measured ones. The scenario must be one "
               "point. Effects are half of what the logarithm of speed changes by; their squares add up to the "
               "variance of samples, as far as the step is a product of powers of the numbers."};
    struct command command = {.top = TOP};
    command_line_parse(&line, argc, argv, &command);
    struct diag diag = DIAG_INIT;
    struct scenario_set set;
    command.file = files_find(&command.arena, FILES_SCENARIOS, command.file);
    scenario_load(&set, command.file, command.overrides.list.at, command.overrides.list.n, &command.arena, &diag);
    if (diag.worst == STATUS_OK)
        vary_refuse_several(&set, "`flopcast sensitivity` is of one", &command.arena, &diag);
    if (diag.worst == STATUS_OK)
        run(&command, &set.points[0], &diag);
    overrides_free(&command.overrides);
    arena_release(&command.arena);
    return cli_report(&diag);
}
