/* `flopcast calibrate check trace`: a trace summed up, or beside the simulation of its scenario
 * (foreign/trace_check.h).
 *
 * Here are options and tables: the step and its parts, classes of kernels, collectives one by
 * one, the longest kernels, and differences in order. Every table has a second column where
 * there is a simulation. What is subtle: people read the verdict first, so it stands above the
 * tables; programs get rows of one shape for parts, classes and collectives, with a column that
 * says which. */
#include "options/arguments.h"
#include "options/command.h"
#include "rows/rows.h"
#include "rows/vary.h"
#include "rows/words.h"

#include "base/files.h"
#include "foreign/trace_check.h"

#include <math.h>
#include <string.h>

COMMAND(calibrate_check_trace, 58, "calibrate check trace", COMMAND_PART,
    "compare a trace with what is predicted",
    "flopcast run gpt2_ddp_v100 --set cluster.gpus=8 --trace r0.json.gz &&\n"
    "flopcast calibrate check trace r0.json.gz --scenario gpt2_ddp_v100 \\\n    --set "
    "cluster.gpus=8");

enum { MOST_ROWS = 1000000, MOST_DEVICES = 1 << 20 };
static const double ms = 1e3, us = 1e6, GB = 1e-9;

struct check_command {
    const char *file, *scenario, *steps, *db;
    int device, top;
    enum records_format format;
    struct overrides overrides;
    struct arena arena;
};

static const char doc[] =
    "Compare a trace of a training run with what is predicted for its "
    "scenario: the step, its kernels class by class, "
    "its collectives one by one, and where the two differ most. FILE is a trace of PyTorch's "
    "profiler (.json, .json.gz) or a profile of Nsight Systems (`nsys export --type sqlite`), of "
    "one rank.\vSteps are found by the annotations ProfilerStep#N or by --steps, else by the "
    "repetition of the kernels. All times are those of the mean step. A collective's time includes "
    "that it waits for the last rank. Exposed communication: no kernel runs, and the compute "
    "stream, or the host that is blocked, waits for a collective; "
    "where the host has launched no next kernel "
    "for another reason, it is waited for. Classes follow from the names of kernels; '-' is not "
    "known. A trace of `flopcast run --trace` can be checked, too.";

static void calibrate_check_trace_take_device(void *member, const struct argument *argument)
{
    char *end = NULL;
    int *device = member;
    *device = (int)strtol(argument->text, &end, 10);
    if (*argument->text < '0' || *argument->text > '9' || *end || *device > MOST_DEVICES)
        argp_error(
            argument->state, "--device %s: the number of a GPU is wanted, as in 0", argument->text);
}

static void calibrate_check_trace_check_given(void *self, struct argp_state *state)
{
    const struct check_command *command = self;
    if (!command->scenario && command->overrides.list.n > 0)
        argp_error(state, "--set is for --scenario FILE");
    if (!command->scenario && command->db)
        argp_error(state, "--db is for --scenario FILE: it stores both sides");
}

static const struct command_option calibrate_check_trace_options[] = {
    {"scenario", "FILE",
        "The scenario of the run that was traced; without it the trace is summed up", OPTION_TEXT,
        AT(check_command, scenario)},
    {"set", "KEY=VALUE",
        "Set an option of the scenario, as in --set cluster.gpus=16; may be repeated", OPTION_SET,
        AT(check_command, overrides)},
    {"device", "N", "Of several GPUs in a file: which one (default: the one of the lowest number)",
        OPTION_TAKE, AT(check_command, device), .take = calibrate_check_trace_take_device},
    {"steps", "REGEX",
        "Of Nsight Systems: the NVTX ranges that are steps, as in --steps '^step [0-9]+$'",
        OPTION_TEXT, AT(check_command, steps)},
    {"top", "N", "Show the N longest collectives, kernels and differences (default: 12)",
        OPTION_COUNT, AT(check_command, top), .most = MOST_ROWS},
    RECORDS_OPTION(struct check_command),
    {"db", "PATH",
        "Store the measured and the simulated step in this database, for `flopcast plot timeline`",
        OPTION_TEXT, AT(check_command, db)},
    {0},
};

/* ---- what was found ---- */

static void calibrate_check_trace_print_head(
    FILE *to, const struct check_command *command, const struct trace_check *check)
{
    const struct trace *trace = &check->trace;
    const struct trace_sum *sum = &check->measured;
    struct words_gathered lines;
    FILE *out = words_gather(&lines);
    fputs(command->file, out);
    if (trace->rank >= 0)
        fprintf(out, ": rank %lld", (long long)trace->rank);
    if (trace->rank >= 0 && trace->world_size > 0)
        fprintf(out, " of %lld", (long long)trace->world_size);
    fprintf(out, "%s%s", trace->rank >= 0 ? ", " : ": ",
        trace->about.gpu ? trace->about.gpu : "GPU not stated");
    if (trace->devices > 1)
        fprintf(out, ", GPU %lld of %d in the file", (long long)trace->device, trace->devices);
    if (trace->about.nccl_version)
        fprintf(out, ", NCCL %s", trace->about.nccl_version);
    fputc('\n', out);
    if (trace->found == TRACE_WHOLE)
        fputs("no steps found: no annotation ProfilerStep#N, and the kernels do not repeat; the "
              "whole trace counts as one\n",
            out);
    else if (trace->found == TRACE_ANNOTATED)
        fprintf(out, "%d step%s, found by %s", sum->steps, plural(sum->steps),
            command->steps ? "NVTX ranges" : "ProfilerStep annotations");
    else
        fprintf(out, "%d step%s, found by repetition: every %d kernels, %.1f %% of them alike",
            sum->steps, plural(sum->steps), trace->period, 100 * trace->alike);
    if (trace->found != TRACE_WHOLE)
        fprintf(out, ": %.3f to %.3f ms, %.3f ms in the mean\n", sum->shortest_s * ms,
            sum->longest_s * ms, sum->step_s * ms);
    if (trace->outside > 0)
        fprintf(out, "%d kernel%s and copies of other steps left out\n", trace->outside,
            plural(trace->outside));
    if (trace->without_copies)
        fputs("copies by memcpy and memset are not read from a profile of Nsight Systems\n", out);
    if (trace->ranks_assumed > 0)
        fprintf(out,
            "the trace does not say how many ranks a collective has: all %lld are assumed, as one "
            "NCCL stream has them all\n",
            (long long)trace->world_size);
    words_gathered(to, &lines);
}

/* ---- tables ---- */

/* A number of both sides, or only of the measured one. */
static void two_sides(struct table *table, const struct trace_check *check, const char *unit,
    int digits, double measured, double simulated)
{
    table_number(table, "measured", unit, digits, measured);
    if (check->compared)
        table_number(table, "simulated", unit, digits, simulated);
}

static void difference(
    struct table *table, const struct trace_check *check, double measured_s, double simulated_s)
{
    if (check->compared)
        table_number_as(table, "measured - simulated", "ms",
            words_number(&table->numbers, (measured_s - simulated_s) * ms, 3, true));
}

/* The step and what it is made of, as people and as programs read it. */
struct part {
    const char *words, *name;
    double measured_s, simulated_s;
};
enum { PARTS = 9 };

static void calibrate_check_trace_find_parts(
    struct part parts[PARTS], const struct trace_check *check)
{
    const struct trace_sum *m = &check->measured, *s = &check->simulated;
    const struct part found[PARTS] = {{"step", "step", m->step_s, s->step_s},
        {"  kernels run", "compute", m->compute_s, s->compute_s},
        {"  exposed communication", "exposed_comm", m->exposed_s, s->exposed_s},
        {"  waiting for the host", "host_bound", m->host_s, s->host_s},
        {"    after it was blocked by the GPU", "host_blocked", m->sync_s, s->sync_s},
        {"    while it loads data", "data_loader", m->loader_s, s->loader_s},
        {"  copies from or to the host alone", "host_copy", m->copies_s, s->copies_s},
        {"  other idle", "idle", m->idle_s, s->idle_s},
        {"hidden communication", "hidden_comm", m->hidden_s, s->hidden_s}};
    memcpy(parts, found, sizeof found);
}

static double calibrate_check_trace_share(double seconds, double step_s)
{
    return step_s > 0 ? 100 * seconds / step_s : TABLE_UNKNOWN;
}

/* Two of the parts of the host's time are details of it, and are left out where both sides have
 * none. */
static void calibrate_check_trace_print_parts(FILE *out, const struct trace_check *check)
{
    struct part parts[PARTS];
    struct table table = {0};
    calibrate_check_trace_find_parts(parts, check);
    for (const struct part *part = parts; part < parts + PARTS; part++) {
        bool detail = strncmp(part->words, "    ", 4) == 0;
        if (detail && part->measured_s == 0 && part->simulated_s == 0)
            continue;
        table_row(&table);
        table_text(&table, "time of a step", "", part->words);
        two_sides(&table, check, "ms", 3, part->measured_s * ms, part->simulated_s * ms);
        two_sides(&table, check, "%", 1,
            calibrate_check_trace_share(part->measured_s, check->measured.step_s),
            calibrate_check_trace_share(part->simulated_s, check->simulated.step_s));
        difference(&table, check, part->measured_s, part->simulated_s);
    }
    fputc('\n', out);
    table_finish(out, &table);
}

/* Five digits of a count. */
static void calibrate_check_trace_count(
    struct table *table, const char *name, const char *unit, double n)
{
    table_number_as(table, name, unit, arena_printf(&table->numbers, "%.5g", n));
}

static void print_classes(FILE *out, const struct trace_check *check)
{
    const struct trace_sum *m = &check->measured, *s = &check->simulated;
    struct table table = {0};
    for (int c = 0; c < TRACE_CLASS_COUNT; c++) {
        if (m->class_count[c] == 0 && s->class_count[c] == 0)
            continue;
        table_row(&table);
        table_text(&table, "class of kernels", "", trace_class_name(c));
        calibrate_check_trace_count(&table, "measured", "a step", m->class_count[c]);
        if (check->compared)
            calibrate_check_trace_count(&table, "simulated", "a step", s->class_count[c]);
        two_sides(&table, check, "ms", 3, m->class_s[c] * ms, s->class_s[c] * ms);
        difference(&table, check, m->class_s[c], s->class_s[c]);
    }
    fputc('\n', out);
    table_finish(out, &table);
}

static double calibrate_check_trace_known(double value)
{
    return value > 0 ? value : TABLE_UNKNOWN;
}

static const char *group_count(struct table *table, const struct trace_group *group)
{
    return group ? arena_printf(&table->numbers, "%.4g", group->count) : "-";
}

static double mean_s(const struct trace_group *group)
{
    return group ? group->time_s / group->count : 0;
}

/* Bytes a second of one of the collectives in the mean; TABLE_UNKNOWN: not known. */
static double calibrate_check_trace_rate(const struct trace_group *group, double bytes)
{
    return group && group->time_s > 0 ? calibrate_check_trace_known(bytes / mean_s(group))
                                      : TABLE_UNKNOWN;
}

static void add_group(
    struct table *table, const struct trace_check *check, const struct trace_pair *pair)
{
    const struct trace_group *m = pair->measured, *s = pair->simulated, *any = m ? m : s;
    BUG_IF(!any, "a pair of nothing");
    table_row(table);
    table_text(table, "collective", "",
        any->kind == TRACE_UNKNOWN_KIND ? "-" : coll_kind_names[any->kind]);
    table_number(table, "ranks", "", 0,
        calibrate_check_trace_known(any->ranks ? any->ranks
                                    : s        ? s->ranks
                                               : 0));
    table_number(table, "bytes", "", 0, calibrate_check_trace_known(any->bytes));
    table_number_as(table, "measured", "a step", group_count(table, m));
    if (check->compared)
        table_number_as(table, "simulated", "a step", group_count(table, s));
    two_sides(table, check, "us", 1, calibrate_check_trace_known(mean_s(m) * us),
        calibrate_check_trace_known(mean_s(s) * us));
    table_number(table, "measured", "algbw, GB/s", 2,
        m ? calibrate_check_trace_rate(m, m->bytes) * GB : TABLE_UNKNOWN);
    two_sides(table, check, "busbw, GB/s", 2,
        m ? calibrate_check_trace_rate(m, trace_bus_bytes(m)) * GB : TABLE_UNKNOWN,
        s ? calibrate_check_trace_rate(s, trace_bus_bytes(s)) * GB : TABLE_UNKNOWN);
}

static void calibrate_check_trace_print_collectives(
    FILE *out, const struct trace_check *check, int top)
{
    int n = check->pairs.n;
    struct table table = {0};
    fputs(n == 0 ? "\nno collectives\n" : "\n", out);
    for (int i = 0; i < n && i < top; i++)
        add_group(&table, check, &check->pairs.at[i]);
    table_finish(out, &table);
    if (n > top)
        fprintf(out, "and %d more: --top %d\n", n - top, n);
}

static void print_kernels(FILE *out, const struct trace_sum *sum, int top)
{
    static const int width = 80; /* of a name: C++ templates are longer than any line */
    struct table table = {0};
    for (int i = 0; i < sum->kernels.n && i < top; i++) {
        const struct trace_kernel *kernel = &sum->kernels.at[i];
        table_row(&table);
        table_text(&table, "kernel", "", arena_printf(&table.numbers, "%.*s", width, kernel->name));
        table_text(&table, "class", "", trace_class_name(kernel->class));
        calibrate_check_trace_count(&table, "a step", "", kernel->count);
        table_number(&table, "ms", "", 3, kernel->time_s * ms);
    }
    fputc('\n', out);
    table_finish(out, &table);
}

/* A line, on a screen as many as it takes. */
static void sentence(FILE *out, const char *text)
{
    if (screen_width(out) > 0)
        words_paragraph(out, text);
    else
        fprintf(out, "%s\n", text);
}

static void print_differences(
    FILE *out, const struct trace_check *check, bool parts, int top, struct arena *arena)
{
    const char *head = parts ? "" : "\nkernels and collectives that differ most, hidden or not:\n";
    for (int i = 0, n = 0; i < check->differences.n && n < top; i++) {
        const struct trace_difference *difference = &check->differences.at[i];
        if (difference->part != parts)
            continue;
        fputs(head, out);
        sentence(out, arena_printf(arena, "%3d. %s", ++n, difference->text));
        head = "";
    }
}

/* What people read first: what the step loses by, and, beside a scenario, what is not as it says.
 */
static void print_verdict(FILE *out, const struct trace_check *check, int top, struct arena *arena)
{
    fputc('\n', out);
    if (check->compared) {
        sentence(out, check->verdict);
        print_differences(out, check, true, top, arena);
    } else if (check->measured.step_s > 0) {
        words_paragraph(out, trace_check_loss(&check->measured, arena));
    }
}

static void calibrate_check_trace_print(
    FILE *out, const struct check_command *command, const struct trace_check *check)
{
    struct arena arena = ARENA_INIT;
    calibrate_check_trace_print_head(out, command, check);
    print_verdict(out, check, command->top, &arena);
    calibrate_check_trace_print_parts(out, check);
    print_classes(out, check);
    calibrate_check_trace_print_collectives(out, check, command->top);
    print_kernels(out, &check->measured, command->top);
    if (check->compared)
        print_differences(out, check, false, command->top, &arena);
    arena_release(&arena);
}

/* ---- for programs ---- */

/* of: "step" (it and its parts), "class". measured, simulated: how many (0: not counted), seconds.
 */
static void part_row(struct rows *rows, const char *of, const char *name,
    const struct trace_check *check, const double measured[2], const double simulated[2])
{
    bool compared = check->compared, counted = measured[0] + simulated[0] > 0;
    ROWS_CELLS(rows, cell_text("of", of), cell_text("name", name), cell_text("ranks", NULL),
        cell_text("bytes", NULL), cell_text("bus_bytes", NULL),
        cell_real("count", counted, measured[0]), cell_real("time_s", true, measured[1]),
        cell_real("simulated_count", counted && compared, simulated[0]),
        cell_real("simulated_time_s", compared, simulated[1]));
}

static void collective_row(struct rows *rows, const struct trace_pair *pair)
{
    const struct trace_group *m = pair->measured, *s = pair->simulated, *any = m ? m : s;
    BUG_IF(!any, "a pair of nothing");
    double bus_bytes = trace_bus_bytes(any);
    ROWS_CELLS(rows, cell_text("of", "collective"),
        cell_text("name", any->kind == TRACE_UNKNOWN_KIND ? NULL : coll_kind_names[any->kind]),
        cell_real("ranks", any->ranks > 0, any->ranks),
        cell_real("bytes", any->bytes > 0, any->bytes),
        cell_real("bus_bytes", bus_bytes > 0, bus_bytes),
        cell_real("count", m != NULL, m ? m->count : 0),
        cell_real("time_s", m != NULL, m ? m->time_s : 0),
        cell_real("simulated_count", s != NULL, s ? s->count : 0),
        cell_real("simulated_time_s", s != NULL, s ? s->time_s : 0));
}

static void calibrate_check_trace_print_records(
    FILE *out, const struct trace_check *check, enum records_format format)
{
    const struct trace_sum *m = &check->measured, *s = &check->simulated;
    struct part parts[PARTS];
    calibrate_check_trace_find_parts(parts, check);
    struct rows rows = {0};
    for (size_t i = 0; i < PARTS; i++)
        part_row(&rows, "step", parts[i].name, check, (const double[]){0, parts[i].measured_s},
            (const double[]){0, parts[i].simulated_s});
    for (int c = 0; c < TRACE_CLASS_COUNT; c++)
        if (m->class_count[c] + s->class_count[c] > 0)
            part_row(&rows, "class", trace_class_name(c), check,
                (const double[]){m->class_count[c], m->class_s[c]},
                (const double[]){s->class_count[c], s->class_s[c]});
    for (int i = 0; i < check->pairs.n; i++)
        collective_row(&rows, &check->pairs.at[i]);
    rows_finish(out, &rows, format);
}

/* ---- command ---- */

static enum status calibrate_check_trace_compare(
    struct check_command *command, struct trace_check *check, struct diag *diag)
{
    struct arena *arena = &command->arena;
    command->scenario = files_find(arena, FILES_SCENARIOS, command->scenario);
    enum status status = scenario_load(&check->set, command->scenario, command->overrides.list.at,
        command->overrides.list.n, arena, diag);
    if (status == STATUS_OK)
        status = vary_refuse_several(&check->set, "a trace is of one", arena, diag);
    if (status == STATUS_OK)
        scenario_warn_measured(&check->set, "flopcast calibrate check trace", diag);
    if (status == STATUS_OK)
        status = trace_check_simulate(check, command->file, diag);
    return status;
}

static enum status calibrate_check_trace_store_check(
    const struct check_command *command, const struct trace_check *check, struct diag *diag)
{
    struct store *store = NULL;
    enum status status = store_open(&store, command->db, STORE_WRITE, diag);
    if (status == STATUS_OK)
        status = trace_check_store(check, command->file, store, diag);
    store_close(store);
    return status;
}

/* With --db both sides are stored even when they were printed for programs. */
int calibrate_check_trace(int argc, char **argv)
{
    const struct command_line line = {calibrate_check_trace_options, "FILE", doc, COMMON_TABLE,
        "trace", AT(check_command, file), .missing = "a trace is missing",
        .check = calibrate_check_trace_check_given};
    struct check_command command = {.device = -1, .top = 12};
    struct diag diag = DIAG_INIT;
    struct trace_check check = {0};
    command_line_parse(&line, argc, argv, &command);
    int sides = 1 + (command.scenario != NULL);
    words_progress("check trace", "sides: it is read", 0, sides);
    enum status status =
        trace_check_load(&check, command.file, command.device, command.steps, &diag);
    words_progress("check trace", command.scenario ? "sides; it is simulated" : "sides", 1, sides);
    if (status == STATUS_OK && command.scenario) {
        status = calibrate_check_trace_compare(&command, &check, &diag);
        words_progress("check trace", "sides                  ", sides, sides);
    }
    if (status == STATUS_OK && command.format != RECORDS_TABLE)
        calibrate_check_trace_print_records(stdout, &check, command.format);
    else if (status == STATUS_OK)
        calibrate_check_trace_print(stdout, &command, &check);
    if (status == STATUS_OK && command.db)
        calibrate_check_trace_store_check(&command, &check, &diag);
    trace_check_free(&check);
    overrides_free(&command.overrides);
    arena_release(&command.arena);
    return cli_report(&diag);
}
