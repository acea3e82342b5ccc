#include "cli/arguments.h"
#include "cli/calibrate.h"
#include "cli/cli.h"
#include "cli/records.h"
#include "cli/table.h"
#include "cli/vary.h"
#include "cli/words.h"

#include "base/files.h"
#include "calibrate/trace_check.h"

#include <limits.h>
#include <math.h>

enum { MOST_ROWS = 1000000, MOST_DEVICES = 1 << 20 };
static const double ms = 1e3, us = 1e6, GB = 1e-9;

struct check_command {
    const char *file, *scenario, *db;
    int device, top;
    enum records_format format;
    struct overrides overrides;
    struct arena arena;
};

static const char doc[] =
    "Compare a trace of a training run with what is predicted for its scenario: the step, its kernels class by class, "
    "its "
    "collectives one by one, and where the two differ most. FILE is a trace of PyTorch's profiler (.json, .json.gz) or "
    "a profile of Nsight Systems (`nsys export --type sqlite`), of one rank.\v"
    "Steps are found by the annotations ProfilerStep#N, else by the repetition of the kernels. All times are those of "
    "the mean step. A collective's time includes that it waits for the last rank. Exposed communication: a collective "
    "runs and no kernel does. Classes follow from the names of kernels; '-' is not known. A trace of `flopcast run "
    "--trace` can be checked, too.";

static void take_device(void *member, const struct argument *argument)
{
    char *end = NULL;
    int *device = member;
    *device = (int)strtol(argument->text, &end, 10);
    if (*argument->text < '0' || *argument->text > '9' || *end || *device > MOST_DEVICES)
        argp_error(argument->state, "--device %s: the number of a GPU is wanted, as in 0", argument->text);
}

static void check_given(void *self, struct argp_state *state)
{
    const struct check_command *command = self;
    if (!command->scenario && command->overrides.list.n > 0)
        argp_error(state, "--set is for --scenario FILE");
    if (!command->scenario && command->db)
        argp_error(state, "--db is for --scenario FILE: it stores both sides");
}

#define AT(at) .member = offsetof(struct check_command, at)
static const struct command_option options[] = {
    {"scenario", "FILE", "The scenario of the run that was traced; without it the trace is summed up", OPTION_TEXT,
        AT(scenario)},
    {"set", "KEY=VALUE", "Set an option of the scenario, as in --set cluster.gpus=16; may be repeated", OPTION_SET,
        AT(overrides)},
    {"device", "N", "Of several GPUs in a file: which one (default: the one of the lowest number)", OPTION_TAKE,
        AT(device), .take = take_device},
    {"top", "N", "Show the N longest collectives, kernels and differences (default: 12)", OPTION_COUNT, AT(top),
        .most = MOST_ROWS},
    RECORDS_OPTION(struct check_command),
    {"db", "PATH", "Store the measured and the simulated step in this database, for `flopcast plot timeline`",
        OPTION_TEXT, AT(db)},
    {0},
};

/* ---- what was found ---- */

static void print_head(FILE *out, const struct check_command *command, const struct trace_check *check)
{
    const struct trace *trace = &check->trace;
    const struct trace_sum *sum = &check->measured;
    fputs(command->file, out);
    if (trace->rank >= 0)
        fprintf(out, ": rank %lld", (long long)trace->rank);
    if (trace->rank >= 0 && trace->world_size > 0)
        fprintf(out, " of %lld", (long long)trace->world_size);
    fprintf(out, "%s%s", trace->rank >= 0 ? ", " : ": ", trace->about.gpu ? trace->about.gpu : "GPU not stated");
    if (trace->devices > 1)
        fprintf(out, ", GPU %lld of %d in the file", (long long)trace->device, trace->devices);
    if (trace->about.nccl_version)
        fprintf(out, ", NCCL %s", trace->about.nccl_version);
    fputc('\n', out);
    if (trace->found == TRACE_WHOLE)
        fputs("no steps found: no annotation ProfilerStep#N, and the kernels do not repeat; the whole trace counts as "
              "one\n",
            out);
    else if (trace->found == TRACE_ANNOTATED)
        fprintf(out, "%d step%s, found by ProfilerStep annotations", sum->steps, plural(sum->steps));
    else
        fprintf(out, "%d step%s, found by repetition: every %d kernels, %.1f %% of them alike", sum->steps,
            plural(sum->steps), trace->period, 100 * trace->alike);
    if (trace->found != TRACE_WHOLE)
        fprintf(out, ": %.3f to %.3f ms, %.3f ms in the mean\n", sum->shortest_s * ms, sum->longest_s * ms,
            sum->step_s * ms);
    if (trace->outside > 0)
        fprintf(out, "%d kernel%s and copies of other steps left out\n", trace->outside, plural(trace->outside));
    if (trace->without_copies)
        fputs("copies by memcpy and memset are not read from a profile of Nsight Systems\n", out);
    if (trace->ranks_assumed > 0)
        fprintf(out,
            "the trace does not say how many ranks a collective has: all %lld are assumed, as one NCCL stream "
            "has them all\n",
            (long long)trace->world_size);
}

static const char *time_ms(struct arena *arena, double seconds)
{
    return arena_printf(arena, "%.3f", seconds * ms);
}

static const char *share(struct arena *arena, double seconds, double step_s)
{
    return step_s > 0 ? arena_printf(arena, "%.1f", 100 * seconds / step_s) : "-";
}

/* Columns of both sides, or only of the measured one. */
static void two_sides(struct table *table, bool compared, const char *unit)
{
    table_column(table, "measured", unit, false);
    if (compared)
        table_column(table, "simulated", unit, false);
}

/* ---- tables ---- */

static void print_parts(FILE *out, const struct trace_check *check, struct arena *arena)
{
    const struct trace_sum *m = &check->measured, *s = &check->simulated;
    const struct {
        const char *name;
        double measured_s, simulated_s;
    } parts[] = {{"step", m->step_s, s->step_s}, {"  kernels run", m->compute_s, s->compute_s},
        {"  exposed communication", m->exposed_s, s->exposed_s},
        {"  copies from or to the host alone", m->copies_s, s->copies_s}, {"  idle", m->idle_s, s->idle_s},
        {"hidden communication", m->hidden_s, s->hidden_s}};
    struct table table = {0};
    table_column(&table, "time of a step", "", true);
    two_sides(&table, check->compared, "ms");
    table_column(&table, "measured", "%", false);
    if (check->compared) {
        table_column(&table, "simulated", "%", false);
        table_column(&table, "measured - simulated", "ms", false);
    }
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        table_cell(&table, parts[i].name);
        table_cell(&table, time_ms(arena, parts[i].measured_s));
        if (check->compared)
            table_cell(&table, time_ms(arena, parts[i].simulated_s));
        table_cell(&table, share(arena, parts[i].measured_s, m->step_s));
        if (!check->compared)
            continue;
        table_cell(&table, share(arena, parts[i].simulated_s, s->step_s));
        table_cell(&table, words_number(arena, (parts[i].measured_s - parts[i].simulated_s) * ms, 3, true));
    }
    fputc('\n', out);
    table_print(out, &table);
    table_free(&table);
}

static void print_classes(FILE *out, const struct trace_check *check, struct arena *arena)
{
    const struct trace_sum *m = &check->measured, *s = &check->simulated;
    struct table table = {0};
    table_column(&table, "class of kernels", "", true);
    two_sides(&table, check->compared, "a step");
    two_sides(&table, check->compared, "ms");
    if (check->compared)
        table_column(&table, "measured - simulated", "ms", false);
    for (int c = 0; c < TRACE_CLASS_COUNT; c++) {
        if (m->class_count[c] == 0 && s->class_count[c] == 0)
            continue;
        table_cell(&table, trace_class_name(c));
        table_cell(&table, arena_printf(arena, "%.5g", m->class_count[c]));
        if (check->compared)
            table_cell(&table, arena_printf(arena, "%.5g", s->class_count[c]));
        table_cell(&table, time_ms(arena, m->class_s[c]));
        if (!check->compared)
            continue;
        table_cell(&table, time_ms(arena, s->class_s[c]));
        table_cell(&table, words_number(arena, (m->class_s[c] - s->class_s[c]) * ms, 3, true));
    }
    fputc('\n', out);
    table_print(out, &table);
    table_free(&table);
}

/* Rounded to a number of digits; "-" for what is not known. */
static const char *known(struct arena *arena, double value, int digits)
{
    return value > 0 ? arena_printf(arena, "%.*f", digits, value) : "-";
}

static const char *count(struct arena *arena, const struct trace_group *group)
{
    return group ? arena_printf(arena, "%.4g", group->count) : "-";
}

static double mean_s(const struct trace_group *group)
{
    return group ? group->time_s / group->count : 0;
}

/* Bytes a second of one of the collectives in the mean; 0: not known. */
static double rate(const struct trace_group *group, double bytes)
{
    return group && group->time_s > 0 ? bytes / mean_s(group) : 0;
}

static void print_group(struct table *table, const struct trace_pair *pair, bool compared, struct arena *arena)
{
    const struct trace_group *m = pair->measured, *s = pair->simulated, *any = m ? m : s;
    BUG_IF(!any, "a pair of nothing");
    double m_bus = m ? rate(m, trace_bus_bytes(m)) : 0, s_bus = s ? rate(s, trace_bus_bytes(s)) : 0;
    table_cell(table, any->kind == TRACE_UNKNOWN_KIND ? "-" : coll_kind_names[any->kind]);
    table_cell(table, known(arena, any->ranks ? any->ranks : s ? s->ranks : 0, 0));
    table_cell(table, known(arena, any->bytes, 0));
    table_cell(table, count(arena, m));
    if (compared)
        table_cell(table, count(arena, s));
    table_cell(table, known(arena, mean_s(m) * us, 1));
    if (compared)
        table_cell(table, known(arena, mean_s(s) * us, 1));
    table_cell(table, known(arena, m ? rate(m, m->bytes) * GB : 0, 2));
    table_cell(table, known(arena, m_bus * GB, 2));
    if (compared)
        table_cell(table, known(arena, s_bus * GB, 2));
}

static void print_collectives(FILE *out, const struct trace_check *check, int top, struct arena *arena)
{
    int n = check->pairs.n;
    struct table table = {0};
    if (n == 0) {
        fputs("\nno collectives\n", out);
        return;
    }
    table_column(&table, "collective", "", true);
    table_column(&table, "ranks", "", false);
    table_column(&table, "bytes", "", false);
    two_sides(&table, check->compared, "a step");
    two_sides(&table, check->compared, "us");
    table_column(&table, "measured", "algbw, GB/s", false);
    two_sides(&table, check->compared, "busbw, GB/s");
    for (int i = 0; i < n && i < top; i++)
        print_group(&table, &check->pairs.at[i], check->compared, arena);
    fputc('\n', out);
    table_print(out, &table);
    table_free(&table);
    if (n > top)
        fprintf(out, "and %d more: --top %d\n", n - top, n);
}

static void print_kernels(FILE *out, const struct trace_sum *sum, int top, struct arena *arena)
{
    static const int width = 80; /* of a name: C++ templates are longer than any line */
    struct table table = {0};
    table_column(&table, "kernel", "", true);
    table_column(&table, "class", "", true);
    table_column(&table, "a step", "", false);
    table_column(&table, "ms", "", false);
    for (int i = 0; i < sum->kernels.n && i < top; i++) {
        const struct trace_kernel *kernel = &sum->kernels.at[i];
        table_cell(&table, arena_printf(arena, "%.*s", width, kernel->name));
        table_cell(&table, trace_class_name(kernel->class));
        table_cell(&table, arena_printf(arena, "%.5g", kernel->count));
        table_cell(&table, time_ms(arena, kernel->time_s));
    }
    fputc('\n', out);
    table_print(out, &table);
    table_free(&table);
}

static void print_differences(FILE *out, const struct trace_check *check, int top, struct arena *arena)
{
    const struct trace_sum *m = &check->measured, *s = &check->simulated;
    int n = check->differences.n;
    fprintf(out, "\nthe step takes %.4g ms, simulated %.4g ms (measured / simulated - 1 = %s %%); %s\n", m->step_s * ms,
        s->step_s * ms, words_number(arena, 100 * (m->step_s / s->step_s - 1), 1, true),
        n > 0 ? "what differs most:" : "no part differs by 0.1 % of the step");
    for (int i = 0; i < n && i < top; i++)
        fprintf(out, "%3d. %s\n", i + 1, check->differences.at[i].text);
}

static void print(FILE *out, const struct check_command *command, const struct trace_check *check)
{
    struct arena arena = ARENA_INIT;
    print_head(out, command, check);
    print_parts(out, check, &arena);
    print_classes(out, check, &arena);
    print_collectives(out, check, command->top, &arena);
    print_kernels(out, &check->measured, command->top, &arena);
    if (check->compared)
        print_differences(out, check, command->top, &arena);
    arena_release(&arena);
}

/* ---- for programs ---- */

/* of: "step" (it and its parts), "class". measured, simulated: how many (0: not counted), seconds. */
static void part_row(struct records *records, const char *of, const char *name, const struct trace_check *check,
    const double measured[2], const double simulated[2])
{
    bool compared = check->compared, counted = measured[0] + simulated[0] > 0;
    RECORDS_ROW(records, cell_text("of", of), cell_text("name", name), cell_text("ranks", NULL),
        cell_text("bytes", NULL), cell_text("bus_bytes", NULL), cell_real("count", counted, measured[0]),
        cell_real("time_s", true, measured[1]), cell_real("simulated_count", counted && compared, simulated[0]),
        cell_real("simulated_time_s", compared, simulated[1]));
}

static void collective_row(struct records *records, const struct trace_pair *pair)
{
    const struct trace_group *m = pair->measured, *s = pair->simulated, *any = m ? m : s;
    BUG_IF(!any, "a pair of nothing");
    double bus_bytes = trace_bus_bytes(any);
    RECORDS_ROW(records, cell_text("of", "collective"),
        cell_text("name", any->kind == TRACE_UNKNOWN_KIND ? NULL : coll_kind_names[any->kind]),
        cell_real("ranks", any->ranks > 0, any->ranks), cell_real("bytes", any->bytes > 0, any->bytes),
        cell_real("bus_bytes", bus_bytes > 0, bus_bytes), cell_real("count", m != NULL, m ? m->count : 0),
        cell_real("time_s", m != NULL, m ? m->time_s : 0), cell_real("simulated_count", s != NULL, s ? s->count : 0),
        cell_real("simulated_time_s", s != NULL, s ? s->time_s : 0));
}

static void print_records(FILE *out, const struct trace_check *check, enum records_format format)
{
    const struct trace_sum *m = &check->measured, *s = &check->simulated;
    const struct {
        const char *name;
        double measured_s, simulated_s;
    } parts[] = {{"step", m->step_s, s->step_s}, {"compute", m->compute_s, s->compute_s},
        {"exposed_comm", m->exposed_s, s->exposed_s}, {"host_copy", m->copies_s, s->copies_s},
        {"idle", m->idle_s, s->idle_s}, {"hidden_comm", m->hidden_s, s->hidden_s}};
    struct records records = records_begin(out, format);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        part_row(&records, "step", parts[i].name, check, (const double[]){0, parts[i].measured_s},
            (const double[]){0, parts[i].simulated_s});
    for (int c = 0; c < TRACE_CLASS_COUNT; c++)
        if (m->class_count[c] + s->class_count[c] > 0)
            part_row(&records, "class", trace_class_name(c), check, (const double[]){m->class_count[c], m->class_s[c]},
                (const double[]){s->class_count[c], s->class_s[c]});
    for (int i = 0; i < check->pairs.n; i++)
        collective_row(&records, &check->pairs.at[i]);
    records_end(&records);
}

/* ---- command ---- */

static enum status compare(struct check_command *command, struct trace_check *check, struct diag *diag)
{
    struct arena *arena = &command->arena;
    command->scenario = files_find(arena, FILES_SCENARIOS, command->scenario);
    enum status status = scenario_load(
        &check->set, command->scenario, command->overrides.list.at, command->overrides.list.n, arena, diag);
    if (status == STATUS_OK)
        status = vary_refuse_several(&check->set, "a trace is of one", arena, diag);
    if (status == STATUS_OK)
        status = trace_check_simulate(check, command->file, diag);
    return status;
}

static enum status store_check(const struct check_command *command, const struct trace_check *check, struct diag *diag)
{
    struct store *store = NULL;
    enum status status = store_open(&store, command->db, STORE_WRITE, diag);
    if (status == STATUS_OK)
        status = trace_check_store(check, command->file, store, diag);
    store_close(store);
    return status;
}

int calibrate_check_trace(int argc, char **argv)
{
    const struct command_line line = {options, "FILE", doc, arguments_table, "trace", AT(file),
        .missing = "a trace is missing", .check = check_given};
    struct check_command command = {.device = -1, .top = 12};
    struct diag diag = DIAG_INIT;
    struct trace_check check = {0};
    command_line_parse(&line, argc, argv, &command);
    enum status status = trace_check_load(&check, command.file, command.device, &diag);
    if (status == STATUS_OK && command.scenario)
        status = compare(&command, &check, &diag);
    if (status == STATUS_OK && command.format != RECORDS_TABLE)
        print_records(stdout, &check, command.format);
    else if (status == STATUS_OK)
        print(stdout, &command, &check);
    if (status == STATUS_OK && command.db)
        store_check(&command, &check, &diag);
    trace_check_free(&check);
    overrides_free(&command.overrides);
    arena_release(&command.arena);
    return cli_report(&diag);
}
