/* Predictions that were written before the measurement was known, and their errors once it is.
 *
 * validate_predict() writes a file that must not exist ("wx"), with the commit, the digest of
 * the program and that of each row's inputs. A program of uncommitted changes or unknown commit
 * is refused, as nobody could build it again; --uncommitted writes the file with words that mark
 * it, and validate_first_sight() refuses such a file. A measured row names its file in column
 * first_sight; the error is that of the first speed that was measured.
 *
 * What is subtle: rows of a table mostly name one file, so the last one that was read is kept
 * open. A row that ran but was predicted out of memory has no error and is counted as missed. */
#include "validate/first_sight.h"

#include "base/build.h"
#include "scenario/identity.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Ends predicted_by, so that validate_first_sight() knows such a file. */
#define UNCOMMITTED " with uncommitted changes"

void validate_keep_unmeasured(struct validate_table *table)
{
    int kept = 0;
    for (int i = 0; i < table->rows.n; i++)
        if (!validate_is_measured(table->rows.at[i].csv, table->rows.at[i].csv_row))
            table->rows.at[kept++] = table->rows.at[i];
    table->rows.n = kept;
}

static const struct {
    const char *column;
    size_t offset; /* in struct validate_figures */
} figures[] = {
    {"tokens_per_s_per_gpu", offsetof(struct validate_figures, tokens_per_s_per_gpu)},
    {"tflops_per_gpu", offsetof(struct validate_figures, tflops_per_gpu)},
    {"step_time_s", offsetof(struct validate_figures, step_time_s)},
    {"peak_allocated_bytes", offsetof(struct validate_figures, peak_allocated_bytes)},
    {"peak_reserved_bytes", offsetof(struct validate_figures, peak_reserved_bytes)},
};
enum { N_FIGURES = sizeof figures / sizeof *figures };

static void first_sight_write_row(FILE *out, const struct validate_row *row, bool uncommitted)
{
    csv_write_text(out, row->id);
    for (int i = 0; i < N_FIGURES; i++) {
        double value =
            *(const double *)(const void *)((const char *)&row->predicted + figures[i].offset);
        fprintf(out, value > 0 ? ",%.10g" : ",", value);
    }
    struct scenario_identity inputs = {""};
    if (row->set.n_points == 1)
        scenario_identify(&inputs, &row->set.points[0]);
    fprintf(out, ",%s,flopcast " FLOPCAST_VERSION " %016" PRIx64 "%s,%s\n",
        row->status == VALIDATE_NOT_SIMULATED ? ""
        : row->status == VALIDATE_OOM         ? "yes"
                                              : "no",
        build_digest(), uncommitted ? UNCOMMITTED : "", inputs.text);
}

static void write_head(FILE *out, bool uncommitted)
{
    char commit[BUILD_COMMIT_SIZE];
    build_commit(commit);
    fputs("# Predictions of `flopcast validate --predict`, made before the measurements were "
          "known; not to be changed.\n"
          "# Columns of measurements hold what is predicted; predicted_by: version and build "
          "digest of the program; inputs: digest of all that went in. Settings are those of the "
          "table at the commit.\n",
        out);
    fprintf(out, "# commit %s%s\n", commit, uncommitted ? UNCOMMITTED ": no first sight" : "");
    fputs("id", out);
    for (int i = 0; i < N_FIGURES; i++)
        fprintf(out, ",%s", figures[i].column);
    fputs(",oom,predicted_by,inputs\n", out);
}

enum status validate_can_predict(const char *path, bool uncommitted, struct diag *diag)
{
    char commit[BUILD_COMMIT_SIZE];
    build_commit(commit);
    const char *dirty = strstr(commit, "-dirty");
    struct source_pos at = {.file = path};
    if (dirty && !uncommitted)
        return diag_input(diag, at,
            "this program was built with uncommitted changes (%s), which nobody could build again; "
            "commit first and build again, or try it by --uncommitted, which makes no first sight",
            commit);
    if (strcmp(commit, "unknown") == 0 && !uncommitted)
        return diag_input(diag, at,
            "of which commit this program was built is unknown; commit first and build again in "
            "that checkout, or try it by --uncommitted, which makes no first sight");
    return STATUS_OK;
}

enum status validate_predict(
    const struct validate_table *table, const char *path, bool uncommitted, struct diag *diag)
{
    struct source_pos at = {.file = path};
    if (validate_can_predict(path, uncommitted, diag) != STATUS_OK)
        return diag->worst;
    if (table->rows.n == 0)
        return diag_input(diag, at,
            "every row is measured already; leave the columns of measurements empty of the rows "
            "to be predicted");
    FILE *out = fopen(path, "wx");
    if (!out && errno == EEXIST)
        return diag_input(diag, at,
            "the file is there already, and predictions are not made twice; name another file");
    if (!out)
        return diag_io(diag, at, "cannot be written: %s", strerror(errno));
    write_head(out, uncommitted);
    for (int i = 0; i < table->rows.n; i++)
        first_sight_write_row(out, &table->rows.at[i], uncommitted);
    bool failed = ferror(out) != 0;
    if (fclose(out) != 0 || failed)
        return diag_io(diag, at, "cannot be written: %s", strerror(errno));
    return STATUS_OK;
}

/* The row's prediction in a file that is read already. */
static void take_first_sight(
    struct validate_row *row, const struct csv_table *file, struct arena *arena, struct diag *diag)
{
    int id = csv_column(file, "id"), at = 0;
    while (at < csv_rows(file) && strcmp(csv_cell(file, at, id), row->id) != 0)
        at++;
    if (at == csv_rows(file)) {
        diag_input(diag, csv_pos(row->csv, row->csv_row), "'%s' has no prediction of '%s'",
            row->first_sight_file, row->id);
        return;
    }
    row->predicted_by =
        arena_printf(arena, "%s", csv_cell(file, at, csv_column(file, "predicted_by")));
    if (strstr(row->predicted_by, UNCOMMITTED)) {
        diag_input(diag, csv_pos(row->csv, row->csv_row),
            "'%s' was predicted with uncommitted changes, so it is no first sight; leave "
            "first_sight empty",
            row->first_sight_file);
        return;
    }
    static const char *const speeds[] = {"tokens_per_s_per_gpu", "step_time_s", "tflops_per_gpu"};
    for (size_t i = 0; i < sizeof speeds / sizeof *speeds; i++) {
        double measured = 0, predicted = 0;
        csv_number(row->csv, row->csv_row, csv_column(row->csv, speeds[i]), 0, &measured, diag);
        csv_number(file, at, csv_column(file, speeds[i]), 0, &predicted, diag);
        if (measured <= 0)
            continue;
        row->has_first_sight = predicted > 0;
        row->first_sight_missed = predicted <= 0;
        bool time = strcmp(speeds[i], "step_time_s") == 0;
        row->first_sight_error =
            predicted > 0 ? (time ? measured / predicted : predicted / measured) - 1 : 0;
        return;
    }
}

void validate_first_sight(struct validate_table *table, struct diag *diag)
{
    const char *open = "";
    struct csv_table *file = NULL;
    struct arena arena = ARENA_INIT; /* paths, which messages name */
    for (int i = 0; i < table->rows.n; i++) {
        struct validate_row *row = &table->rows.at[i];
        row->first_sight_file =
            csv_cell(row->csv, row->csv_row, csv_column(row->csv, "first_sight"));
        if (!*row->first_sight_file)
            continue;
        const char *name = row->first_sight_file, *slash = strrchr(row->file, '/');
        int folder = *name == '/' || !slash ? 0 : (int)(slash + 1 - row->file);
        const char *path = arena_printf(&arena, "%.*s%s", folder, row->file, name);
        if (strcmp(open, path) != 0) {
            csv_release(file);
            file = NULL;
            open = path;
            csv_load(&file, path, diag);
        }
        if (file)
            take_first_sight(row, file, &table->arena, diag);
    }
    csv_release(file);
    arena_release(&arena);
}
