/* Files of measurements into a database, or as CSV, by their format.
 *
 * import_store() opens one transaction for all files: every file is read, so that all mistakes
 * are reported, and the worst status decides whether anything is kept; only an I/O error ends
 * the loop. A file whose content is in the database, by digest, is left out and said so. The
 * readers fill struct nccl_log or call a sink a row; a line of report follows each file.
 *
 * What is subtle: "PARTIAL" in a log's name counts as its comment. measure and direct have no
 * table in the database, and reach it by a mistake of the program only. */
#include "import/import.h"

#include "import/kineto_collectives.h"
#include "import/measure.h"
#include "config/csv.h"

#include <string.h>

const char *const import_format_names[] = {"nccl-tests", "nsys", "kineto", "measure", "direct"};

/* PARTIAL in the name means the same as the comment. */
static enum status read_nccl(struct nccl_log *log, const char *path,
    const struct import_request *request, struct arena *arena, struct diag *diag)
{
    struct input *input = NULL;
    enum status status = input_open(&input, path, diag);
    if (status == STATUS_OK)
        status = nccl_read(log, input, &request->nccl, arena, diag);
    input_close(input);
    log->about.partial |= strstr(path, "PARTIAL") != NULL;
    return status;
}

/* "all_reduce, 16 ranks on 2 nodes", of rows that have it in common. */
static void import_print_group(FILE *report, const struct nccl_log *log)
{
    const struct collective_measurement *first = &log->rows.at[0];
    bool alike = true;
    for (int i = 1; i < log->rows.n; i++) {
        const struct collective_measurement *row = &log->rows.at[i];
        alike = alike && row->ranks == first->ranks && row->nodes == first->nodes &&
                strcmp(row->collective, first->collective) == 0;
    }
    if (!alike)
        fputs(": several collectives or groups", report);
    else if (first->nodes > 0)
        fprintf(report, ": %s, %d ranks on %d node%s", first->collective, first->ranks,
            first->nodes, plural(first->nodes));
    else
        fprintf(report, ": %s, %d ranks", first->collective, first->ranks);
}

static enum status store_nccl(struct store_import *import, const char *path,
    const struct import_request *request, struct arena *arena, FILE *report, struct diag *diag)
{
    struct nccl_log log = {0};
    enum status status = read_nccl(&log, path, request, arena, diag);
    for (int i = 0; i < log.rows.n && status == STATUS_OK; i++)
        status = store_import_collective(import, &log.rows.at[i], diag);
    if (status == STATUS_OK)
        status = store_import_about(import, &log.about, diag);
    if (status == STATUS_OK) {
        fprintf(report, "%s: %d rows", path, log.rows.n);
        import_print_group(report, &log);
        if (log.empty > 0)
            fprintf(report, "; %d of 0 bytes left out", log.empty);
        if (log.wrong > 0)
            fprintf(report, "; %d with wrong results left out", log.wrong);
        if (!log.ended)
            fputs("; without the closing lines", report);
        fprintf(report, "%s%s\n", log.about.partial ? "; partial" : "",
            log.about.unhealthy ? "; unhealthy" : "");
    }
    vec_free(&log.rows);
    return status;
}

static enum status import_put_collective(
    void *self, const struct collective_measurement *row, struct diag *diag)
{
    return store_import_collective(self, row, diag);
}

static enum status put_kernel(void *self, const struct kernel_measurement *row, struct diag *diag)
{
    return store_import_kernel(self, row, diag);
}

static enum status store_kineto(struct store_import *import, const char *path, struct arena *arena,
    FILE *report, struct diag *diag)
{
    const struct kineto_sink sink = {import_put_collective, put_kernel, import};
    struct kineto_trace trace;
    struct input *input = NULL;
    enum status status = input_open(&input, path, diag);
    if (status == STATUS_OK)
        status = kineto_read(&trace, input, &sink, arena, diag);
    input_close(input);
    if (status == STATUS_OK)
        status = store_import_about(import, &trace.about, diag);
    if (status != STATUS_OK)
        return status;
    fprintf(report, "%s: %lld collective%s and %lld other kernel%s", path,
        (long long)trace.collectives, plural(trace.collectives), (long long)trace.kernels,
        plural(trace.kernels));
    if (trace.left_out > 0)
        fprintf(report, "; %lld collective%s without size left out", (long long)trace.left_out,
            plural(trace.left_out));
    fputc('\n', report);
    return STATUS_OK;
}

static enum status store_nsys(
    struct store_import *import, const char *path, FILE *report, struct diag *diag)
{
    struct store_nsys result = {0};
    enum status status = store_import_nsys(import, path, &result, diag);
    if (status == STATUS_OK)
        fprintf(report, "%s: %lld kernels, %lld of them NCCL's\n", path, (long long)result.kernels,
            (long long)result.collectives);
    return status;
}

static enum status store_file(struct store_import *import, const char *path,
    const struct import_request *request, struct arena *arena, FILE *report, struct diag *diag)
{
    uint64_t digest = 0;
    struct store_known known = {0};
    enum status status = input_digest(path, &digest, diag);
    if (status == STATUS_OK)
        status = store_import_source(
            import, import_format_names[request->format], path, digest, &known, diag);
    if (status != STATUS_OK)
        return status;
    if (known.known) {
        fprintf(report, "%s: its content is in the database, imported on %s as %s; left out\n",
            path, known.created_utc, known.file);
        return STATUS_OK;
    }
    switch (request->format) {
    case IMPORT_NSYS:
        return store_nsys(import, path, report, diag);
    case IMPORT_KINETO:
        return store_kineto(import, path, arena, report, diag);
    case IMPORT_NCCL_TESTS:
    case IMPORT_MEASURE:
    case IMPORT_DIRECT:
    case IMPORT_FORMAT_COUNT:
        break;
    }
    return store_nccl(import, path, request, arena, report, diag);
}

enum status import_store(
    struct store *store, const struct import_request *request, FILE *report, struct diag *diag)
{
    struct arena arena = ARENA_INIT;
    struct store_import *import = NULL;
    BUG_IF(request->format == IMPORT_MEASURE || request->format == IMPORT_DIRECT,
        "the database has no table for these");
    enum status worst = store_import_begin(&import, store, diag);
    if (worst != STATUS_OK)
        return worst;
    for (int i = 0; i < request->n_files && worst != STATUS_IO;
         i++) { /* all mistakes of all files */
        enum status status = store_file(import, request->files[i], request, &arena, report, diag);
        worst = status > worst ? status : worst;
    }
    worst = store_import_end(import, worst, diag);
    arena_release(&arena);
    return worst;
}

static void import_print_text(FILE *out, const char *text)
{
    csv_write_text(out, text ? text : "");
    fputc(',', out);
}

static void print_time(FILE *out, double time_s)
{
    if (time_s > 0)
        fprintf(out, "%.10g", time_s * 1e6);
    fputc(',', out);
}

static void import_print_row(FILE *out, const char *path, const struct measurement_about *about,
    const struct collective_measurement *row)
{
    import_print_text(out, about->source ? about->source : path);
    import_print_text(out, about->gpu);
    if (row->nodes > 0)
        fprintf(out, "%d", row->nodes);
    fprintf(out, ",%d,", row->ranks);
    import_print_text(out, about->network);
    import_print_text(out, about->nccl_version);
    import_print_text(out, row->collective);
    import_print_text(out, row->algorithm);
    import_print_text(out, row->protocol);
    fprintf(out, "%lld,", (long long)row->bytes);
    print_time(out, row->out_of_place_s);
    print_time(out, row->in_place_s);
    char kind[40];
    snprintf(kind, sizeof kind, "measured%s%s", about->partial ? ", partial" : "",
        about->unhealthy ? ", unhealthy" : "");
    csv_write_text(out, kind);
    fputs("\r\n", out);
}

enum status import_print_csv(FILE *out, const struct import_request *request, struct diag *diag)
{
    enum status worst = STATUS_OK;
    fputs("source,gpu,nodes,ranks,network,nccl_version,collective,algorithm,protocol,bytes,time_us_"
          "out_of_place,time_us_in_place,kind\r\n",
        out);
    for (int f = 0; f < request->n_files; f++) {
        struct arena arena = ARENA_INIT;
        struct nccl_log log = {0};
        enum status status = read_nccl(&log, request->files[f], request, &arena, diag);
        worst = status > worst ? status : worst;
        for (int i = 0; i < log.rows.n && status == STATUS_OK; i++)
            import_print_row(out, request->files[f], &log.about, &log.rows.at[i]);
        vec_free(&log.rows);
        arena_release(&arena);
    }
    return worst;
}

enum status import_print_measured(
    FILE *out, const struct import_request *request, struct diag *diag)
{
    enum status worst = STATUS_OK;
    for (int f = 0; f < request->n_files; f++) {
        struct measured_file file;
        enum status status = measured_read(&file, request->files[f], diag);
        worst = status > worst ? status : worst;
        if (status == STATUS_OK) {
            fprintf(out, "%s: ", request->files[f]);
            measured_print(out, &file);
        }
        measured_file_free(&file);
    }
    return worst;
}
