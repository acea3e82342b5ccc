/* A table of runs: columns to settings, cells to overrides of the base scenario. A column is a
 * short name of settings[], a dotted path of a scenario, or one of other_columns[]; an unknown one
 * that looks like a known name is an error, any other a warning.
 *
 * Each row loads the base with its cells as overrides, whose origins are the cell's line and
 * column, so a message of the loader points into the table. A row that makes no scenario keeps its
 * reason and is not simulated; the others go on. Curves are rows that agree in all settings but
 * gpus and in their source. The digest of a row sums digests of cells, so the order of columns does
 * not matter and curves span files.
 *
 * What is subtle: single_device counts as DDP in it, so that a script's run on one GPU is the
 * smallest size of its DDP curve. Numbering curves is quadratic in rows. */
#include "base/digest.h"
#include "validate/validate.h"

#include <dirent.h>
#include <fnmatch.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

const char *const validate_status_names[VALIDATE_STATUS_COUNT + 1] = {
    [VALIDATE_OK] = "ok", [VALIDATE_OOM] = "oom", [VALIDATE_NOT_SIMULATED] = "not_simulated"};

static const struct {
    const char *column, *path;
} settings[] = {
    {"model", "model"},
    {"topology", "cluster.topology"},
    {"stack", "stack"},
    {"gpus", "cluster.gpus"},
    {"strategy", "strategy"},
    {"sharding_strategy", "fsdp.sharding_strategy"},
    {"backward_prefetch", "fsdp.backward_prefetch"},
    {"reduce_dtype", "fsdp.reduce_dtype"},
    {"zero_stage", "deepspeed.zero_optimization.stage"},
    {"precision", "train.precision"},
    {"optimizer", "train.optimizer"},
    {"optimizer_impl", "train.optimizer_impl"},
    {"micro_batch", "train.micro_batch"},
    {"grad_accum", "train.grad_accum"},
    {"seq_len", "train.seq_len"},
    {"decoder_seq_len", "train.decoder_seq_len"},
    {"activation_checkpointing", "train.activation_checkpointing"},
    {"checkpoint_early_stop", "train.checkpoint_early_stop"},
    {"attention", "train.attention"},
    {"cross_entropy", "train.cross_entropy"},
    {"use_cache", "train.use_cache"},
    {"max_positions", "max_positions"},
    {"flops_formula", "report.flops_formula"},
    {"attention_flop", "report.attention_flop"},
};
enum { N_SETTINGS = sizeof settings / sizeof *settings, MOST_COLUMNS = 128 };

/* What was measured, then what is said about it. */
static const char *const other_columns[] = {"tokens_per_s_per_gpu", "tflops_per_gpu", "step_time_s",
    "peak_allocated_bytes", "peak_reserved_bytes", "oom", "id", "source", "url", "family",
    "used_in_fit", "not_simulated", "apart", "assumptions", "value_kind", "notes", "status",
    "suspected_cause", "first_sight", "predicted_by", "inputs"};
enum { N_OTHERS = sizeof other_columns / sizeof *other_columns, N_MEASURED = 6 };

bool validate_measures(const struct csv_table *csv)
{
    for (int i = 0; i < N_MEASURED; i++)
        if (csv_column(csv, other_columns[i]) >= 0)
            return true;
    return false;
}

bool validate_is_measured(const struct csv_table *csv, int row)
{
    for (int i = 0; i < N_MEASURED; i++)
        if (*csv_cell(csv, row, csv_column(csv, other_columns[i])))
            return true;
    return false;
}

/* The scenario's path that a column sets; NULL: it sets none. */
static const char *path_of(const char *column)
{
    for (int i = 0; i < N_SETTINGS; i++)
        if (strcmp(column, settings[i].column) == 0)
            return settings[i].path;
    return strchr(column, '.') ? column : NULL;
}

/* A short name and its path, say. */
static void check_twice(const struct csv_table *csv, struct source_pos head, struct diag *diag)
{
    for (int c = 0; c < csv_columns(csv); c++)
        for (int before = 0; before < c; before++) {
            const char *a = path_of(csv_name(csv, before)), *b = path_of(csv_name(csv, c));
            if (a && b && strcmp(a, b) == 0)
                diag_input(diag, head,
                    "columns '%s' and '%s' set the same option; leave one of them out",
                    csv_name(csv, before), csv_name(csv, c));
        }
}

/* Every row has a different name, which --where and reports use. */
static void check_ids(const struct csv_table *csv, struct diag *diag)
{
    int column = csv_column(csv, "id");
    for (int r = 0; r < csv_rows(csv); r++) {
        const char *id = csv_cell(csv, r, column);
        int first = 0;
        while (strcmp(csv_cell(csv, first, column), id) != 0)
            first++;
        if (!*id)
            diag_input(diag, csv_pos(csv, r), "no id; give each row its own");
        else if (first < r)
            diag_input(diag, csv_pos(csv, r),
                "id '%s' is that of line %d, too; give each row its own", id,
                csv_pos(csv, first).line);
    }
}

static bool check_columns(const struct csv_table *csv, const char *path, struct diag *diag)
{
    const char *known[N_SETTINGS + N_OTHERS];
    for (int i = 0; i < N_SETTINGS; i++)
        known[i] = settings[i].column;
    for (int i = 0; i < N_OTHERS; i++)
        known[N_SETTINGS + i] = other_columns[i];
    int before = diag->n_errors;
    struct source_pos head = {.file = path};
    for (int c = 0; c < csv_columns(csv); c++) {
        const char *name = csv_name(csv, c);
        bool fine = path_of(name) != NULL;
        for (int i = 0; i < N_OTHERS; i++)
            fine = fine || strcmp(name, other_columns[i]) == 0;
        const char *near = fine ? NULL : nearest_name(name, known, N_SETTINGS + N_OTHERS);
        if (!fine && near)
            diag_input(
                diag, head, "column '%s' means nothing here; did you mean '%s'?", name, near);
        else if (!fine)
            diag_warn(diag, head,
                "column '%s' is not read; `flopcast validate --help` lists those that are; a "
                "dotted name sets that field of the scenario",
                name);
    }
    if (csv_columns(csv) > MOST_COLUMNS)
        diag_input(diag, head, "%d columns; at most %d", csv_columns(csv), MOST_COLUMNS);
    static const char *const required[] = {"id", "model", "topology", "gpus"};
    for (size_t i = 0; i < sizeof required / sizeof *required; i++)
        if (csv_column(csv, required[i]) < 0)
            diag_input(diag, head, "no column '%s', which every table of runs has", required[i]);
    check_twice(csv, head, diag);
    if (diag->n_errors == before && csv_rows(csv) == 0)
        diag_input(diag, head, "no run below the names of the columns; write one a line");
    if (diag->n_errors == before)
        check_ids(csv, diag);
    return diag->n_errors == before;
}

static bool says(const char *cell, const char *const words[4])
{
    for (int i = 0; i < 4; i++)
        if (strcasecmp(cell, words[i]) == 0)
            return true;
    return false;
}
static const char *const yes[4] = {"yes", "y", "true", "1"}, *const no[4] = {
                                                                 "no", "n", "false", "0"};

const char *validate_used_in_fit(const struct csv_table *csv, int row)
{
    const char *cell = csv_cell(csv, row, csv_column(csv, "used_in_fit"));
    return says(cell, no) ? "" : cell;
}

/* Another word would be taken for a file's name, and the row for fitted. */
static void check_used_in_fit(const struct csv_table *csv, int row, struct diag *diag)
{
    const char *used = validate_used_in_fit(csv, row), *end = strstr(used, ": ");
    size_t n = end ? (size_t)(end - used) : strlen(used);
    static const char suffix[] = ".yaml";
    bool file =
        n >= strlen(suffix) && strncmp(used + n - strlen(suffix), suffix, strlen(suffix)) == 0;
    if (*used && !file && !says(used, yes))
        diag_input(diag, csv_pos(csv, row),
            "used_in_fit is '%s'; write the file whose numbers rest on this row, as "
            "topologies/gpus/a100-sxm4-80gb.yaml, or nothing",
            used);
}

/* A run out of memory has no speed; some tables write 0. */
static double figure(
    const struct csv_table *csv, int row, const char *column, bool oom, struct diag *diag)
{
    double value = 0;
    int at = csv_column(csv, column);
    enum status status = csv_number(csv, row, at, 0, &value, diag);
    if (status == STATUS_OK && *csv_cell(csv, row, at) && value <= 0 && !(oom && value == 0))
        diag_input(
            diag, csv_pos(csv, row), "%s is %g; a measurement is above 0, or empty", column, value);
    return value > 0 ? value : 0;
}

/* For a row that is not simulated; the errors of other rows come from the scenario. */
static int64_t validate_table_gpus_of(const struct csv_table *csv, int row)
{
    double value = 0;
    struct diag own = DIAG_INIT;
    csv_number(csv, row, csv_column(csv, "gpus"), 0, &value, &own);
    return value > 0 && value < 1e9 ? (int64_t)value : 0;
}

static void read_measured(struct validate_row *row, const struct csv_table *csv, struct diag *diag)
{
    int r = row->csv_row;
    const char *cell = csv_cell(csv, r, csv_column(csv, "oom"));
    bool oom = row->measured_oom = says(cell, yes);
    if (*cell && !oom && !says(cell, no))
        diag_input(diag, csv_pos(csv, r), "oom is '%s'; write yes, no, or nothing", cell);
    row->measured = (struct validate_figures){
        .tokens_per_s_per_gpu = figure(csv, r, "tokens_per_s_per_gpu", oom, diag),
        .tflops_per_gpu = figure(csv, r, "tflops_per_gpu", oom, diag),
        .step_time_s = figure(csv, r, "step_time_s", oom, diag),
        .peak_allocated_bytes = figure(csv, r, "peak_allocated_bytes", oom, diag),
        .peak_reserved_bytes = figure(csv, r, "peak_reserved_bytes", oom, diag),
    };
    row->has_verdict = validate_is_measured(csv, r);
    row->measured_speed = row->measured.tokens_per_s_per_gpu > 0 || row->measured.step_time_s > 0 ||
                          row->measured.tflops_per_gpu > 0;
}

static void read_status(struct validate_row *row, const struct csv_table *csv, struct diag *diag)
{
    const char *cell = csv_cell(csv, row->csv_row, csv_column(csv, "status"));
    row->open = strcmp(cell, "open") == 0;
    if (*cell && !row->open)
        diag_input(
            diag, csv_pos(csv, row->csv_row), "status is '%s'; write open, or nothing", cell);
    else if (*row->suspected_cause && !row->open)
        diag_input(diag, csv_pos(csv, row->csv_row),
            "a suspected_cause, but status is not open; write open, or no cause");
}

static void load_scenario(struct validate_table *table, struct validate_row *row, const char *path,
    const char *base, struct diag *diag)
{
    const struct csv_table *csv = row->csv;
    struct scenario_override overrides[MOST_COLUMNS];
    const char *from[MOST_COLUMNS];
    int n = 0;
    for (int c = 0; c < csv_columns(csv); c++) {
        const char *name = csv_name(csv, c), *key = path_of(name),
                   *cell = csv_cell(csv, row->csv_row, c);
        if (!key || !*cell)
            continue;
        from[n] =
            arena_printf(&table->arena, "%s:%d:%s", path, csv_pos(csv, row->csv_row).line, name);
        overrides[n++] = (struct scenario_override){key, cell};
    }
    struct diag own = DIAG_INIT;
    scenario_load_from(&row->set, base, overrides, from, ORIGIN_TABLE, n, &table->arena, &own);
    if (own.n_errors == 0 && row->set.n_points != 1)
        diag_input(
            &own, csv_pos(csv, row->csv_row), "the base scenario sweeps; a row is one point");
    diag_merge_at(diag, &own, base,
        csv_pos(csv, row->csv_row)); /* a setting of the base that does not suit the row */
    if (own.n_errors == 0)
        return;
    row->status = VALIDATE_NOT_SIMULATED;
    int length = 0;
    const char *reason = diag_first(&own, &length);
    row->reason = arena_printf(&table->arena, "%.*s", length, reason);
    row->set = (struct scenario_set){0};
}

static uint64_t validate_table_digest_text(uint64_t digest, const char *text)
{
    for (size_t i = 0; i == 0 || text[i - 1]; i++)
        digest = digest_word(digest, (unsigned char)text[i]);
    return digest;
}

/* Every setting that a row gives but gpus, and its source: what the rows of a curve share, in
 * whatever file and order of columns they stand. Scripts that wrap the model on several GPUs only
 * have one GPU's row in DDP's curve. */
static uint64_t curve_digest(const struct csv_table *csv, int csv_row)
{
    uint64_t digest =
        validate_table_digest_text(DIGEST_INIT, csv_cell(csv, csv_row, csv_column(csv, "source")));
    for (int c = 0; c < csv_columns(csv); c++) {
        const char *path = path_of(csv_name(csv, c)), *cell = csv_cell(csv, csv_row, c);
        bool alone = strcmp(cell, strategy_kind_names[STRATEGY_SINGLE_DEVICE]) == 0;
        if (path && *cell &&
            strcmp(csv_name(csv, c), "gpus") != 0) /* a sum: of columns in any order */
            digest += validate_table_digest_text(validate_table_digest_text(DIGEST_INIT, path),
                alone ? strategy_kind_names[STRATEGY_DDP] : cell);
    }
    return digest;
}

/* Curves of the rows from first on, among all rows. */
static void number_curves(struct validate_table *table, int first)
{
    for (int i = first; i < table->rows.n; i++) {
        struct validate_row *rows = table->rows.at;
        int same = 0;
        rows[i].curve_digest = curve_digest(rows[i].csv, rows[i].csv_row);
        while (rows[same].curve_digest != rows[i].curve_digest)
            same++;
        rows[i].curve = same;
    }
}

static void push_row(struct validate_table *table, const struct csv_table *csv, int r,
    const char *path, struct diag *diag)
{
    struct validate_row row = {
        .csv = csv,
        .csv_row = r,
        .file = path,
        .id = csv_cell(csv, r, csv_column(csv, "id")),
        .source = csv_cell(csv, r, csv_column(csv, "source")),
        .used_in_fit = validate_used_in_fit(csv, r),
        .reason = csv_cell(csv, r, csv_column(csv, "not_simulated")),
        .apart = csv_cell(csv, r, csv_column(csv, "apart")),
        .suspected_cause = csv_cell(csv, r, csv_column(csv, "suspected_cause")),
        .model = csv_cell(csv, r, csv_column(csv, "model")),
        .gpu = "",
        .strategy = csv_cell(csv, r, csv_column(csv, "strategy")),
        .framework = "",
        .layout = "",
        .gpus = validate_table_gpus_of(csv, r),
        .alone = strcmp(csv_cell(csv, r, csv_column(csv, "strategy")),
                     strategy_kind_names[STRATEGY_SINGLE_DEVICE]) == 0,
    };
    read_measured(&row, csv, diag);
    check_used_in_fit(csv, r, diag);
    read_status(&row, csv, diag);
    vec_push(&table->rows, row);
}

/* "TP+PP+DP": the axes of more than one rank, experts over some of the data-parallel ranks; "one
 * GPU". */
static const char *layout_of(struct arena *arena, const struct scenario *options)
{
    const struct parallelism_options *p = &options->strategy.parallelism;
    const struct {
        const char *axis;
        int64_t ranks;
    } axes[] = {{"TP", p->model.tensor}, {"CP", p->model.context}, {"EP", p->model.expert},
        {"PP", p->pipeline}, {"DP", strategy_data_ranks(p, options->cluster.gpus)}};
    const char *layout = "";
    for (size_t i = 0; i < sizeof axes / sizeof *axes; i++)
        if (axes[i].ranks > 1)
            layout = arena_printf(arena, "%s%s%s", layout, *layout ? "+" : "", axes[i].axis);
    return *layout ? layout : "one GPU";
}

/* "composer" of ".../composer.yaml"; "" of NULL. */
static const char *framework_of(struct arena *arena, const char *stack)
{
    const char *slash = stack ? strrchr(stack, '/') : NULL, *name = slash ? slash + 1 : stack;
    const char *dot = name ? strrchr(name, '.') : NULL;
    return !name ? ""
                 : arena_printf(arena, "%.*s", dot ? (int)(dot - name) : (int)strlen(name), name);
}

/* What the row's scenario says of it. */
static void validate_table_describe(struct validate_row *row, struct arena *arena)
{
    const struct scenario_point *point = &row->set.points[0];
    row->model = point->model.shape.name;
    row->gpu = point->hw.gpu.name;
    row->gpus = point->options.cluster.gpus;
    row->node_gpus = hw_gpus_per_node(&point->hw);
    row->strategy = strategy_label(&point->options.strategy);
    row->framework = framework_of(arena, point->options.stack_path);
    row->layout = layout_of(arena, &point->options);
    row->alone = point->options.strategy.kind == STRATEGY_SINGLE_DEVICE;
}

/* The file's rows; curves are numbered. */
static bool validate_table_add_rows(
    struct validate_table *table, const char *path, const bool *keep, struct diag *diag)
{
    struct csv_table *csv = NULL;
    if (csv_load(&csv, path, diag) != STATUS_OK)
        return false;
    vec_push(&table->files, csv);
    if (!check_columns(csv, path, diag))
        return false;
    int before = diag->n_errors, first = table->rows.n;
    for (int r = 0; r < csv_rows(csv); r++)
        if (!keep || keep[r])
            push_row(table, csv, r, path, diag);
    number_curves(table, first);
    return diag->n_errors == before;
}

bool validate_add_unread(struct validate_table *table, const char *path, struct diag *diag)
{
    int first = table->rows.n;
    bool added = validate_table_add_rows(table, path, NULL, diag);
    for (int i = first; i < table->rows.n; i++) {
        table->rows.at[i].status = VALIDATE_NOT_SIMULATED;
        table->rows.at[i].same = i;
        table->rows.at[i].waiting_share = -1;
    }
    return added;
}

/* In the order of the columns, unlike the digest of curves: a results file says what this row of
 * this table was. */
uint64_t validate_settings_digest(const struct csv_table *csv, int row)
{
    uint64_t digest = DIGEST_INIT;
    for (int c = 0; c < csv_columns(csv); c++) {
        const char *texts[] = {path_of(csv_name(csv, c)), csv_cell(csv, row, c)};
        for (size_t t = 0; t < 2 && texts[0] && *texts[1]; t++)
            digest = validate_table_digest_text(digest, texts[t]);
    }
    return digest;
}

bool validate_add(struct validate_table *table, const char *path, const char *base,
    const bool *keep, struct diag *diag)
{
    int first = table->rows.n;
    if (!validate_table_add_rows(table, path, keep, diag))
        return false;
    for (int i = first; i < table->rows.n; i++) {
        struct validate_row *row = &table->rows.at[i];
        if (*row->reason)
            row->status = VALIDATE_NOT_SIMULATED;
        else
            load_scenario(table, row, path, base, diag);
        if (row->set.n_points == 1)
            validate_table_describe(row, &table->arena);
    }
    return true;
}

bool validate_load(struct validate_table *out, const char *path, const char *base, const bool *keep,
    struct diag *diag)
{
    *out = (struct validate_table){0};
    return validate_add(out, path, base, keep, diag);
}

static bool is_smallest_of_open(const struct validate_table *table, int at)
{
    const struct validate_row *row = &table->rows.at[at];
    bool any_open = false;
    for (int i = 0; i < table->rows.n; i++) {
        const struct validate_row *other = &table->rows.at[i];
        if (other->curve != row->curve)
            continue;
        any_open |= other->open;
        if (other->gpus < row->gpus)
            return false;
    }
    return any_open;
}

/* The smallest row of an open curve stays too, since the ratios of the others need it. */
void validate_keep_open(struct validate_table *table)
{
    bool *keep = xcalloc((size_t)table->rows.n + 1, sizeof *keep);
    for (int i = 0; i < table->rows.n; i++)
        keep[i] = table->rows.at[i].open || is_smallest_of_open(table, i);
    int kept = 0;
    for (int i = 0; i < table->rows.n; i++)
        if (keep[i])
            table->rows.at[kept++] = table->rows.at[i];
    table->rows.n = kept;
    free(keep);
}

void validate_release(struct validate_table *table)
{
    for (int i = 0; i < table->files.n; i++)
        csv_release(table->files.at[i]);
    vec_free(&table->files);
    vec_free(&table->rows);
    arena_release(&table->arena);
}

/* ---- which files are tables of runs, and which of their rows are asked for ---- */

static bool is_table_of_runs(const char *path)
{
    struct csv_table *csv = NULL;
    struct diag unread = DIAG_INIT; /* other files of the folder may be anything */
    bool is = csv_load(&csv, path, &unread) == STATUS_OK && csv_column(csv, "predicted_by") < 0 &&
              validate_measures(csv);
    static const char *const required[] = {"id", "model", "topology", "gpus"};
    for (size_t i = 0; i < sizeof required / sizeof *required && is; i++)
        is = csv_column(csv, required[i]) >= 0;
    csv_release(csv);
    return is;
}

static int validate_table_by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

struct validate_files validate_files_in(const char *folder, struct arena *arena)
{
    VEC(const char *) found = {0};
    static const char ending[] = ".csv";
    DIR *open = opendir(folder);
    for (const struct dirent *entry; open && (entry = readdir(open));) {
        size_t n = strlen(entry->d_name), tail = sizeof ending - 1;
        const char *path = arena_printf(arena, "%s/%s", folder, entry->d_name);
        if (n > tail && strcmp(entry->d_name + n - tail, ending) == 0 && is_table_of_runs(path))
            vec_push(&found, path);
    }
    if (open)
        closedir(open);
    struct validate_files files = {.n = found.n};
    if (found.n > 0)
        qsort(found.at, (size_t)found.n, sizeof *found.at, validate_table_by_name);
    vec_keep(files.paths, &found, arena);
    return files;
}

/* A pattern without '*' and '?' may stand anywhere in the source or the file's name. */
bool validate_is_of(const struct csv_table *csv, int row, const char *path, const char *pattern)
{
    char whole[512];
    snprintf(whole, sizeof whole, strpbrk(pattern, "*?") ? "%s" : "*%s*", pattern);
    const char *slash = strrchr(path, '/');
    return fnmatch(whole, csv_cell(csv, row, csv_column(csv, "source")), FNM_CASEFOLD) == 0 ||
           fnmatch(whole, slash ? slash + 1 : path, FNM_CASEFOLD) == 0;
}

/* ---- finds figures that cannot be in the unit of their column: tokens of the whole job,
 * milliseconds, GiB ---- */

/* No published training run is this far from what its hardware can do; a wrong unit is a factor of
 * 1000, a job instead of a GPU a factor of 8 or more. Twice the peak leaves room for a model that
 * is not quite the one that ran. */
static const double FAR = 30, MOST_MFU = 2;

static const struct {
    const char *column, *unit;
    size_t offset; /* in struct validate_figures */
    enum { SPEED, TIME, BYTES } what;
} units[] = {
    {"tokens_per_s_per_gpu", "tokens a second of one GPU",
        offsetof(struct validate_figures, tokens_per_s_per_gpu), SPEED},
    {"tflops_per_gpu", "TFLOPS of one GPU", offsetof(struct validate_figures, tflops_per_gpu),
        SPEED},
    {"step_time_s", "seconds", offsetof(struct validate_figures, step_time_s), TIME},
    {"peak_allocated_bytes", "bytes of one GPU",
        offsetof(struct validate_figures, peak_allocated_bytes), BYTES},
    {"peak_reserved_bytes", "bytes of one GPU",
        offsetof(struct validate_figures, peak_reserved_bytes), BYTES},
};

/* A speed FAR times too low, or above MOST_MFU times the peak, or more bytes than the GPU has,
 * is a column in another unit. */
static void validate_table_check_row(
    const struct csv_table *csv, const struct validate_row *row, struct diag *diag)
{
    double hbm_bytes = row->set.points[0].hw.gpu.hbm_capacity.value;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        double measured = 0,
               predicted =
                   *(const double *)(const void *)((const char *)&row->predicted + units[i].offset);
        csv_number(csv, row->csv_row, csv_column(csv, units[i].column), 0, &measured, diag);
        if (measured <= 0 || predicted <= 0)
            continue;
        double ratio = measured / predicted, speed = units[i].what == TIME ? 1 / ratio : ratio;
        bool cannot = units[i].what == BYTES ? measured > hbm_bytes : row->mfu * speed > MOST_MFU;
        if (cannot || speed < 1 / FAR)
            diag_warn(diag, csv_pos(csv, row->csv_row),
                "%s is %.15g, %.4g times what is predicted%s; the column is in %s", units[i].column,
                measured, ratio,
                !cannot                  ? ""
                : units[i].what == BYTES ? ", more than the GPU has"
                                         : ", more than the GPU can compute",
                units[i].unit);
    }
}

void validate_check_units(const struct validate_table *table, struct diag *diag)
{
    for (int i = 0; i < table->rows.n; i++)
        if (table->rows.at[i].status == VALIDATE_OK)
            validate_table_check_row(table->rows.at[i].csv, &table->rows.at[i], diag);
}
