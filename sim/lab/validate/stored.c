/* What was predicted of all tables, in one CSV: written by --results, read by --from. A line is a
 * run: its table and id, a digest of the settings that the table gives it, a digest of all that
 * went into the simulation, who made it, and the predicted figures. Reading joins it to what the
 * tables say today: validate_add_unread() loads the table without scenarios, and a row takes its
 * figures if the digest of its settings is the same; errors are worked out anew, so corrected
 * measurements count. validate_stored_check() loads the scenarios as well and warns of rows that
 * would be predicted from other inputs.
 *
 * What is subtle: rows of a table stand together and mostly in the same order, so a search begins
 * behind the last row found. Columns that came later may be missing (`later`). Names of tables
 * are relative to the file. Rows of the same inputs are one run, as if they had been simulated;
 * keep_source() renumbers that. */
#include "validate/stored.h"

#include "base/build.h"
#include "base/file_write.h"
#include "base/files.h"
#include "base/index.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* How a column is written and read: MADE by who writes it, else the member of a row. */
static const struct stored_column {
    const char *name;
    size_t to;      /* in struct validate_row, where it is read into; 0: not by itself */
    double missing; /* of a number: an empty cell */
    enum { MADE, TEXT, NUMBER, COUNT } kind;
    bool later; /* came after files were written; empty where a file lacks it */
} columns[] = {
#define TO(member) offsetof(struct validate_row, member)
    {.name = "file"}, {.name = "base", .later = true}, {.name = "id"}, {.name = "settings"},
    {.name = "inputs", .to = TO(inputs), .later = true},
    {.name = "made_by", .to = TO(made_by), .later = true},
    {.name = "model", .to = TO(model), .kind = TEXT}, {.name = "gpu", .to = TO(gpu), .kind = TEXT},
    {.name = "strategy", .to = TO(strategy), .kind = TEXT},
    {.name = "framework", .to = TO(framework), .kind = TEXT},
    {.name = "layout", .to = TO(layout), .kind = TEXT}, {.name = "status"},
    {.name = "reason", .to = TO(reason), .kind = TEXT},
    {.name = "waiting_share", .to = TO(waiting_share), .kind = NUMBER, .missing = -1},
    {.name = "tokens_per_s_per_gpu", .to = TO(predicted.tokens_per_s_per_gpu), .kind = NUMBER},
    {.name = "tflops_per_gpu", .to = TO(predicted.tflops_per_gpu), .kind = NUMBER},
    {.name = "step_time_s", .to = TO(predicted.step_time_s), .kind = NUMBER},
    {.name = "peak_allocated_bytes", .to = TO(predicted.peak_allocated_bytes), .kind = NUMBER},
    {.name = "peak_reserved_bytes", .to = TO(predicted.peak_reserved_bytes), .kind = NUMBER},
    {.name = "mfu", .to = TO(mfu), .kind = NUMBER},
    {.name = "node_gpus", .to = TO(node_gpus), .kind = COUNT, .later = true}
#undef TO
};
enum { N_COLUMNS = sizeof columns / sizeof *columns };

/* Digest of what goes in; "" where the row makes no scenario. */
static const char *inputs_of(struct arena *arena, const struct validate_row *row)
{
    if (row->set.n_points != 1)
        return "";
    return arena_printf(arena, "%016" PRIx64, scenario_digest_inputs(&row->set.points[0]));
}

/* made: the texts of columns that are MADE. */
static void stored_write_row(FILE *out, const struct validate_row *row, const char *const *made)
{
    for (const struct stored_column *c = columns; c < columns + N_COLUMNS; c++) {
        const void *from = (const char *)row + c->to;
        double value = c->kind == NUMBER  ? *(const double *)from
                       : c->kind == COUNT ? (double)*(const int64_t *)from
                                          : c->missing;
        fputs(c > columns ? "," : "", out);
        if (c->kind == MADE)
            csv_write_text(out, *made++);
        else if (c->kind == TEXT)
            csv_write_text(out, *(const char *const *)from);
        else if (value > c->missing)
            fprintf(out, "%.7g", value);
    }
    fputc('\n', out);
}

enum status validate_stored_write(
    const struct validate_table *table, const char *base, const char *path, struct diag *diag)
{
    struct arena arena = ARENA_INIT;
    char *made = NULL;
    size_t size = 0;
    FILE *out = xmemstream(&made, &size);
    fputs("# What flopcast " FLOPCAST_VERSION " predicts of published runs: written by `flopcast "
          "validate --results`, read by `--from`.\n",
        out);
    for (int c = 0; c < N_COLUMNS; c++)
        fprintf(out, "%s%s", c ? "," : "", columns[c].name);
    fputc('\n', out);
    char commit[BUILD_COMMIT_SIZE];
    build_commit(commit);
    const char *made_by = arena_printf(&arena, "%016" PRIx64 " %s", build_digest(), commit);
    const char *of = NULL, *file = "", *base_name = files_name_from(&arena, path, base);
    for (int i = 0; i < table->rows.n; i++) {
        const struct validate_row *row = &table->rows.at[i];
        bool first = of != row->file;
        if (first)
            file = files_name_from(&arena, path, row->file);
        of = row->file;
        char settings[17];
        snprintf(settings, sizeof settings, "%016" PRIx64,
            validate_settings_digest(row->csv, row->csv_row));
        const char *const texts[] = {file, first ? base_name : "", row->id, settings,
            inputs_of(&arena, row), made_by, validate_status_names[row->status]};
        stored_write_row(out, row, texts);
    }
    arena_release(&arena);
    fclose(out);
    enum status status = file_write(path, made, size, diag);
    free(made);
    return status;
}

/* ---- reading ---- */

struct stored {
    const struct csv_table *csv;
    int at[N_COLUMNS]; /* of the columns above */
};

static int stored_place(const struct stored *stored, const char *column)
{
    for (int c = 0; c < N_COLUMNS; c++)
        if (strcmp(columns[c].name, column) == 0)
            return stored->at[c];
    BUG_IF(true, "no column '%s'", column);
}

static const char *text(const struct stored *stored, int row, const char *column)
{
    return csv_cell(stored->csv, row, stored_place(stored, column));
}

static int index_of(const char *name, const char *const *names)
{
    int i = 0;
    while (names[i] && strcmp(names[i], name) != 0)
        i++;
    return names[i] ? i : -1;
}

static void stored_read_row(struct validate_row *row, const struct stored *stored, int r,
    struct arena *arena, struct diag *diag)
{
    for (int c = 0; c < N_COLUMNS; c++) {
        void *to = (char *)row + columns[c].to;
        double value = 0;
        if (columns[c].kind == NUMBER || columns[c].kind == COUNT)
            csv_number(stored->csv, r, stored->at[c], columns[c].missing, &value, diag);
        if (columns[c].kind == NUMBER)
            *(double *)to = value;
        else if (columns[c].kind == COUNT)
            *(int64_t *)to = (int64_t)value;
        else if (columns[c].to > 0)
            *(const char **)to = arena_strdup(arena, csv_cell(stored->csv, r, stored->at[c]));
    }
    int status = index_of(text(stored, r, "status"), validate_status_names);
    row->status = status < 0 ? VALIDATE_NOT_SIMULATED : (enum validate_status)status;
    if (status < 0)
        diag_input(diag, csv_pos(stored->csv, r),
            "status is '%s'; write the file again by --results", text(stored, r, "status"));
}

/* A file that the file at path names. */
static const char *stored_find(struct arena *arena, const char *path, const char *name)
{
    const char *slash = strrchr(path, '/');
    const char *joined = *name == '/' || !slash
                             ? name
                             : arena_printf(arena, "%.*s/%s", (int)(slash - path), path, name);
    return arena_strdup(arena, files_find_from(arena, FILES_ANY, joined, name));
}

/* The row of an id, of rows first to end - 1: rows of the table mostly follow each other here as
 * there, so that it is asked of row next first. end: none has it. */
static int row_of(const struct stored *stored, int first, int end, int next, const char *id)
{
    const int column = stored_place(stored, "id"), n = end - first;
    for (int i = 0; i < n; i++) {
        int at = first + (next - first + i) % n;
        if (strcmp(csv_cell(stored->csv, at, column), id) == 0)
            return at;
    }
    return end;
}

/* The rows of one table, from row r of the file on that holds them; gives the row after the last.
 */
static int read_table(struct validate_table *out, const struct stored *stored, int r,
    const char *path, struct diag *diag)
{
    const char *name = text(stored, r, "file"), *table = stored_find(&out->arena, path, name);
    const char *base = text(stored, r, "base");
    int first = out->rows.n, lacking = 0, changed = 0, end = r;
    while (end < csv_rows(stored->csv) && strcmp(text(stored, end, "file"), name) == 0)
        end++;
    if (!validate_add_unread(out, table, diag))
        return end;
    const char *base_path = *base ? stored_find(&out->arena, path, base) : NULL;
    int next = r;
    for (int i = first; i < out->rows.n; i++) {
        struct validate_row *row = &out->rows.at[i];
        row->base = base_path;
        int at = row_of(stored, r, end, next, row->id);
        next = at + 1;
        char digest[17];
        snprintf(
            digest, sizeof digest, "%016" PRIx64, validate_settings_digest(row->csv, row->csv_row));
        bool same = at < end && strcmp(text(stored, at, "settings"), digest) == 0;
        lacking += at == end;
        changed += at < end && !same;
        if (same)
            stored_read_row(row, stored, at, &out->arena, diag);
        else if (!*row->reason)
            row->reason =
                at == end ? "not in the file of results" : "its settings have changed since";
    }
    if (lacking + changed > 0)
        diag_warn(diag, (struct source_pos){.file = table},
            "%d row%s not in '%s', %d with other settings there; write it again by `flopcast "
            "validate --all --results`",
            lacking, plural(lacking), path, changed);
    return end;
}

static bool has_inputs(const void *self, int32_t row)
{
    const struct validate_row *const *pair =
        self; /* rows of the table, and the one that is looked for */
    return strcmp(pair[0][row].inputs, pair[1]->inputs) == 0;
}

/* Rows with the same inputs are the same run; the first stands for them. */
static void find_same(struct validate_table *table)
{
    struct index index = {0};
    for (int i = 0; i < table->rows.n; i++) {
        struct validate_row *row = &table->rows.at[i];
        row->same = i;
        if (row->status == VALIDATE_NOT_SIMULATED || !row->inputs || !*row->inputs)
            continue;
        const struct validate_row *const pair[] = {table->rows.at, row};
        uint64_t hash = strtoull(row->inputs, NULL, 16);
        int32_t first = index_find(&index, hash, has_inputs, pair);
        if (first < 0)
            index_add(&index, hash, i);
        else
            row->same = first;
    }
    index_free(&index);
}

static void keep_source(struct validate_table *table, const char *source)
{
    int kept = 0, *place = xcalloc((size_t)table->rows.n + 1, sizeof *place);
    for (int i = 0; i < table->rows.n; i++) {
        struct validate_row row = table->rows.at[i];
        place[i] = validate_is_of(row.csv, row.csv_row, row.file, source) ? kept : -1;
        if (place[i] < 0)
            continue;
        row.same = place[row.same] >= 0 ? place[row.same]
                                        : kept; /* another source's run stays the same for each */
        table->rows.at[kept++] = row;
    }
    table->rows.n = kept;
    free(place);
}

bool validate_stored_read(
    struct validate_table *out, const char *path, const char *source, struct diag *diag)
{
    *out = (struct validate_table){0};
    struct csv_table *csv = NULL;
    int before = diag->n_errors;
    if (csv_load(&csv, path, diag) != STATUS_OK)
        return false;
    struct stored stored = {.csv = csv};
    for (int c = 0; c < N_COLUMNS; c++) {
        stored.at[c] = csv_column(csv, columns[c].name);
        if (stored.at[c] < 0 && !columns[c].later)
            diag_input(diag, (struct source_pos){.file = path},
                "no column '%s'; this is no file that `flopcast validate --results` wrote",
                columns[c].name);
    }
    for (int r = 0; r < csv_rows(csv) && diag->n_errors == before;)
        r = read_table(out, &stored, r, path, diag);
    csv_release(csv);
    find_same(out);
    if (source)
        keep_source(out, source);
    validate_set_errors(out);
    return diag->n_errors == before;
}

/* ---- what went in ---- */

enum { MOST_NAMED = 5 };

/* The rows of the table's file from the first one on; gives the row after the last. */
static int check_file(struct validate_table *table, int first, struct diag *diag)
{
    const struct csv_table *csv = table->rows.at[first].csv;
    const char *path = table->rows.at[first].file, *base = table->rows.at[first].base, *names = "";
    struct validate_table today = {0};
    struct arena arena = ARENA_INIT;
    struct diag own = DIAG_INIT; /* what is wrong with a row is said where it is simulated */
    bool loaded = base && validate_load(&today, path, base, NULL, &own);
    int i = first, stale = 0, unsaid = 0;
    for (; i < table->rows.n && table->rows.at[i].csv == csv; i++) {
        struct validate_row *row = &table->rows.at[i];
        if (!row->inputs) /* no result */
            continue;
        const char *inputs = loaded ? inputs_of(&arena, &today.rows.at[row->csv_row]) : NULL;
        unsaid += !inputs;
        row->stale = !inputs || strcmp(inputs, row->inputs) != 0;
        stale += row->stale;
        if (row->stale && stale <= MOST_NAMED)
            names = arena_printf(&arena, "%s%s%s", names, *names ? ", " : "", row->id);
    }
    if (stale > 0)
        diag_warn(diag, (struct source_pos){.file = path},
            "%d row%s %s (%s%s); write them again by `flopcast validate --results`", stale,
            plural(stale),
            unsaid ? "of it stand in the file of results without a digest of what went in"
                   : "of it would be predicted from other settings, hardware, stack profiles or "
                     "fitted numbers today",
            names, stale > MOST_NAMED ? ", ..." : "");
    validate_release(&today);
    arena_release(&arena);
    return i;
}

void validate_stored_check(struct validate_table *table, struct diag *diag)
{
    for (int i = 0; i < table->rows.n;)
        i = check_file(table, i, diag);
}
