/* A profile of Nsight Systems as a struct trace: by way of an import into a database in memory, as store/ alone sees
 * SQLite. It has no launches and no sizes of collectives, so steps are found by repetition. */
#include "import/trace_file.h"

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

static int8_t kind_of(const char *name)
{
    for (int kind = 0; kind < COLL_KIND_COUNT; kind++)
        if (strcmp(name, coll_kind_names[kind]) == 0)
            return (int8_t)kind;
    return TRACE_UNKNOWN_KIND;
}

static void count(void *self, int n, const struct store_value *values)
{
    struct rows *rows = self;
    (void)n;
    if (rows->head)
        trace_count_device(&rows->devices, strtoll(values[0].text, NULL, 10));
    rows->head = true;
}

enum { DEVICE, PROCESS, NAME, STREAM, START, END, COLLECTIVE };
static const char select_kernels[] = "SELECT device, process, name, stream, start_s - (SELECT min(start_s) FROM "
                                     "v_kernel_measurement), start_s + duration_s - (SELECT min(start_s) FROM "
                                     "v_kernel_measurement), collective FROM v_kernel_measurement ORDER BY position";

static void take(void *self, int n, const struct store_value *values)
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
        .launched = PS_NEVER,
        .returned = PS_NEVER};
    activity.class = (uint8_t)trace_classify(name, &activity.kind);
    if (values[COLLECTIVE].kind != STORE_NULL)
        activity.kind = kind_of(values[COLLECTIVE].text);
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

static enum status import(struct store *store, const char *path, struct diag *diag)
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

static enum status read_rows(struct rows *rows, struct store *store, const char *path, struct diag *diag)
{
    const struct source_pos at = {.file = path};
    enum status status = store_query(store, "SELECT DISTINCT device FROM v_kernel_measurement", at, count, rows, diag);
    rows->device = rows->device < 0 ? rows->devices.lowest : rows->device;
    rows->head = false;
    if (status == STATUS_OK)
        status = store_query(store, select_kernels, at, take, rows, diag);
    rows->head = false;
    if (status == STATUS_OK)
        status = store_query(store, "SELECT gpu FROM measurement_source", at, take_gpu, rows, diag);
    return status;
}

enum status trace_read_nsys(struct trace *out, const char *path, int64_t device, struct arena *arena, struct diag *diag)
{
    struct store *store = NULL;
    struct rows rows = {.trace = out, .arena = arena, .device = device};
    const struct trace_marks none = {0};
    enum status status = store_open(&store, ":memory:", STORE_WRITE, diag);
    if (status == STATUS_OK)
        status = import(store, path, diag);
    if (status == STATUS_OK)
        status = read_rows(&rows, store, path, diag);
    store_close(store);
    out->device = rows.device;
    out->devices = rows.devices.numbers.n;
    out->without_copies = true;
    if (status == STATUS_OK && out->activities.n == 0)
        status = trace_no_device(out, rows.device, path, diag);
    else if (status == STATUS_OK && rows.several)
        status = diag_input(diag, (struct source_pos){.file = path},
            "kernels of several processes on GPU %lld; --device of one that a single rank uses is wanted",
            (long long)rows.device);
    if (status == STATUS_OK)
        trace_find_steps(out, &none);
    vec_free(&rows.devices.numbers);
    return status;
}
