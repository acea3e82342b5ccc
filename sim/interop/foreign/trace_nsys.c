/* A profile of Nsight Systems as a struct trace: by way of an import into a database in memory,
 * as store/ alone sees SQLite. It has no sizes of collectives. Steps are those NVTX ranges that
 * the user names, else found by repetition.
 *
 * Queries give rows as texts, the first call the names (head). First the devices are counted, so
 * that the lowest one is taken where none was asked for; then its kernels are read with their
 * launches, times from the first launch, kernel or range on. What is subtle: ranges of steps
 * must not overlap; one that begins inside the last step is passed over, and the longer of two
 * that begin together comes first. Kernels of several processes on one GPU are refused, as they
 * are no single rank. */
#include "foreign/trace_file.h"

#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct rows {
    struct trace *trace;
    struct arena *arena;
    int64_t device; /* wanted */
    struct trace_devices devices;
    const char *process; /* of the rows so far */
    bool several;        /* processes */
    bool head;           /* the row of names has passed */
};

static ps_t seconds(const char *text)
{
    double s = strtod(text, NULL);
    return ps_from_s(s > 0 ? s : 0);
}

static int8_t trace_nsys_kind_of(const char *name)
{
    for (int kind = 0; kind < COLL_KIND_COUNT; kind++)
        if (strcmp(name, coll_kind_names[kind]) == 0)
            return (int8_t)kind;
    return TRACE_UNKNOWN_KIND;
}

static void trace_nsys_count(void *self, int n, const struct store_value *values)
{
    struct rows *rows = self;
    (void)n;
    if (rows->head)
        trace_count_device(&rows->devices, strtoll(values[0].text, NULL, 10));
    rows->head = true;
}

/* Times are from the first launch on, of which a profile without CUDA's calls has none. temp.launch
 * and temp.range are what store_import_nsys() leaves. */
#define ORIGIN                                                                                     \
    "(SELECT min((SELECT min(start_s) FROM v_kernel_measurement), coalesce((SELECT min(time) / "   \
    "1e9 FROM "                                                                                    \
    "temp.launch), "                                                                               \
    "1e9), coalesce((SELECT min(start) / 1e9 FROM temp.range), 1e9)) AS origin)"
enum { DEVICE, PROCESS, NAME, STREAM, START, END, COLLECTIVE, LAUNCHED };
static const char select_kernels[] =
    "SELECT device, process, name, stream, start_s - origin, start_s + duration_s - origin, "
    "collective, (SELECT time / 1e9 - origin FROM nsys.CUPTI_ACTIVITY_KIND_KERNEL AS k JOIN "
    "temp.launch ON correlation = k.correlationId AND launch.process = k.globalPid WHERE k.rowid = "
    "position) FROM v_kernel_measurement, " ORIGIN " ORDER BY position";
enum { RANGE_TEXT, RANGE_START, RANGE_END };
static const char select_ranges[] =
    "SELECT text, start / 1e9 - origin, \"end\" / 1e9 - origin FROM temp.range, " ORIGIN
    " WHERE text IS NOT NULL AND thread & ~0xffffff IN (SELECT globalPid FROM "
    "nsys.CUPTI_ACTIVITY_KIND_KERNEL WHERE "
    "deviceId = %lld) ORDER BY start, \"end\" DESC";

static void trace_nsys_take(void *self, int n, const struct store_value *values)
{
    struct rows *rows = self;
    (void)n;
    bool head = !rows->head;
    rows->head = true;
    if (head || strtoll(values[DEVICE].text, NULL, 10) != rows->device)
        return;
    const char *process = values[PROCESS].kind == STORE_NULL ? "" : values[PROCESS].text;
    rows->several |= rows->process && strcmp(rows->process, process) != 0;
    if (!rows->process)
        rows->process = arena_strdup(rows->arena, process);
    const char *name = values[NAME].kind == STORE_NULL ? "(no name)" : values[NAME].text;
    struct trace_activity activity = {.start = seconds(values[START].text),
        .end = seconds(values[END].text),
        .name = trace_name(rows->trace, name, rows->arena),
        .stream = (int32_t)strtol(values[STREAM].text, NULL, 10),
        .step = TRACE_NO_STEP,
        .phase = PHASE_COUNT,
        .group = -1,
        .product = -1,
        .launched = values[LAUNCHED].kind == STORE_NULL ? PS_NEVER : seconds(values[LAUNCHED].text),
        .returned = PS_NEVER};
    activity.class = (uint8_t)trace_classify(rows->trace, name, &activity.kind);
    if (values[COLLECTIVE].kind != STORE_NULL)
        activity.kind = trace_nsys_kind_of(values[COLLECTIVE].text);
    vec_push(&rows->trace->activities, activity);
}

static void take_gpu(void *self, int n, const struct store_value *values)
{
    struct rows *rows = self;
    (void)n;
    if (rows->head && values[0].kind == STORE_TEXT)
        rows->trace->about.gpu = arena_strdup(rows->arena, values[0].text);
    rows->head = true;
}

static enum status trace_nsys_import(struct store *store, const char *path, struct diag *diag)
{
    struct store_import *import = NULL;
    struct store_known known = {0};
    struct store_nsys result = {0};
    enum status status = store_import_begin(&import, store, diag);
    if (status != STATUS_OK)
        return status;
    status = store_import_source(import, "nsys", path, 0, &known, diag);
    if (status == STATUS_OK)
        status = store_import_nsys(import, path, &result, diag);
    return store_import_end(import, status, diag);
}

static enum status read_rows(
    struct rows *rows, struct store *store, const char *path, struct diag *diag)
{
    const struct source_pos at = {.file = path};
    enum status status = store_query(store, "SELECT DISTINCT device FROM v_kernel_measurement", at,
        trace_nsys_count, rows, diag);
    rows->device = rows->device < 0 ? rows->devices.lowest : rows->device;
    rows->head = false;
    if (status == STATUS_OK)
        status = store_query(store, select_kernels, at, trace_nsys_take, rows, diag);
    rows->head = false;
    if (status == STATUS_OK)
        status = store_query(store, "SELECT gpu FROM measurement_source", at, take_gpu, rows, diag);
    return status;
}

struct ranges {
    regex_t steps;
    struct trace_marks marks;
    const char *seen; /* the first that is none */
    struct arena *arena;
    bool head;
};

static int64_t number_at_end(const char *text, int64_t otherwise)
{
    size_t n = strlen(text);
    while (n > 0 && text[n - 1] >= '0' && text[n - 1] <= '9')
        n--;
    return text[n] ? strtoll(text + n, NULL, 10) : otherwise;
}

static void trace_nsys_take_range(void *self, int n, const struct store_value *values)
{
    struct ranges *ranges = self;
    struct trace_marks *marks = &ranges->marks;
    bool head = !ranges->head;
    (void)n;
    ranges->head = true;
    if (head)
        return;
    const char *text = values[RANGE_TEXT].text;
    ps_t start = seconds(values[RANGE_START].text), last = PS_NEVER;
    if (marks->steps.n > 0)
        last = marks->steps.at[marks->steps.n - 1].host_end;
    if (regexec(&ranges->steps, text, 0, NULL, 0) != 0)
        ranges->seen = ranges->seen ? ranges->seen : arena_strdup(ranges->arena, text);
    else if (marks->steps.n == 0 || start >= last)
        vec_push(&marks->steps, (struct trace_mark){start, seconds(values[RANGE_END].text),
                                    PS_NEVER, number_at_end(text, marks->steps.n)});
}

/* The marks of the steps, which the pattern names; out: not found. */
static enum status read_ranges(struct ranges *ranges, struct rows *rows, struct store *store,
    const char *path, const char *steps, struct diag *diag)
{
    const struct source_pos at = {.file = path};
    char sql[sizeof select_ranges + 32];
    if (regcomp(&ranges->steps, steps, REG_EXTENDED | REG_NOSUB) != 0)
        return diag_input(
            diag, at, "'%s' is no regular expression; write one as '^step [0-9]+$'", steps);
    snprintf(sql, sizeof sql, select_ranges, (long long)rows->device);
    enum status status = store_query(store, sql, at, trace_nsys_take_range, ranges, diag);
    regfree(&ranges->steps);
    if (status == STATUS_OK && ranges->marks.steps.n == 0)
        status = ranges->seen
                     ? diag_input(diag, at, "no NVTX range is called '%s'; there is '%s'", steps,
                           ranges->seen)
                     : diag_input(diag, at,
                           "no NVTX ranges in it; profile with `nsys profile --trace=cuda,nvtx`");
    return status;
}

/* By the ranges, in which the launches of a step's kernels lie; else by repetition. */
static void find_steps(struct trace *trace, const struct ranges *ranges)
{
    trace->has_launches = ranges->marks.steps.n > 0;
    trace_find_steps(trace, &ranges->marks);
    trace->has_launches = false; /* what waits for what is not said */
}

enum status trace_read_nsys(struct trace *out, const char *path, int64_t device, const char *steps,
    struct arena *arena, struct diag *diag)
{
    struct store *store = NULL;
    struct rows rows = {.trace = out, .arena = arena, .device = device};
    struct ranges ranges = {.arena = arena};
    enum status status = trace_names_load(out, arena, diag);
    if (status == STATUS_OK)
        status = store_open(&store, ":memory:", STORE_WRITE, diag);
    if (status == STATUS_OK)
        status = trace_nsys_import(store, path, diag);
    if (status == STATUS_OK)
        status = read_rows(&rows, store, path, diag);
    if (status == STATUS_OK && steps)
        status = read_ranges(&ranges, &rows, store, path, steps, diag);
    store_close(store);
    out->device = rows.device;
    out->devices = rows.devices.numbers.n;
    out->next_device = trace_next_device(&rows.devices, rows.device);
    out->without_copies = true;
    if (status == STATUS_OK && out->activities.n == 0)
        status = trace_no_device(out, rows.device, path, diag);
    else if (status == STATUS_OK && rows.several)
        status = diag_input(diag, (struct source_pos){.file = path},
            "kernels of several processes on GPU %lld; --device of one that a single rank uses is "
            "wanted",
            (long long)rows.device);
    if (status == STATUS_OK)
        find_steps(out, &ranges);
    vec_free(&ranges.marks.steps);
    vec_free(&rows.devices.numbers);
    return status;
}
