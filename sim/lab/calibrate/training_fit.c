/* Rates of GPUs and costs of hosts by training runs, where every prediction is a simulation.
 * training_fit_collect() makes a parameter of each quantity of the rows' GPUs and stacks that is
 * asked for; equal key and id are one. Before the search each row is simulated with noise, which
 * gives its error; then noise is switched off, and the target of a row is its speed without noise
 * over (1 + error). So the search runs noiseless simulations, in parallel over rows, and stays near
 * what noisy ones would say. training_fit_settle() writes values into all rows' points and
 * simulates. Most parameters concern few rows, and a step along one leaves the others where they
 * were: each row remembers the two points at which it was simulated last, so a column of finite
 * differences costs only the rows that it moves.
 *
 * What is subtle: STEP is wide, as simulated time is in whole picoseconds and jumps where kernels
 * change places. Rows without an error are left out but keep their place. */
#include "calibrate/training_fit.h"

#include "base/arena.h"
#include "base/files.h"
#include "calibrate/fit_files.h"
#include "hw/override.h"
#include "scenario/stack.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char fit_of_host[] = "host";

static const double CAUCHY = 0.05; /* assumed: log residual at which a row counts half */

/* Of the finite differences: simulated time is whole picoseconds, and a kernel more or less beside
 * a collective is a jump; assumed, well above the one and below what matters. */
static const double STEP = 1e-3;

/* The quantities of a GPU that this fit is about. Behind them the costs of section host, in the
 * order of stack_host_table. */
#define KEY(member, training_fit_is_share)                                                         \
    {                                                                                              \
#member, offsetof(struct hw_gpu, member), training_fit_is_share                            \
    }
static const struct {
    const char *name;
    size_t offset;
    bool share;
} rates[] = {KEY(gemm_sustained, true), KEY(attention_efficiency, true),
    KEY(attention_backward, true), KEY(pointwise_efficiency, true), KEY(norm_row_time, false),
    KEY(conv_efficiency, true), KEY(step_pause, false)};
enum { N_RATES = sizeof rates / sizeof *rates, N_KEYS = N_RATES + STRATEGY_HOST_COSTS };

static bool is_rate(const char *key)
{
    for (int k = 0; k < N_RATES; k++)
        if (strcmp(rates[k].name, key) == 0)
            return true;
    return false;
}

bool training_fit_has(const char *key)
{
    return is_rate(key) || strcmp(key, fit_of_host) == 0;
}

static const struct config_field *host_field(int key)
{
    return &stack_host_table.fields[key - N_RATES];
}

static const char *training_fit_name_of(int key)
{
    return key < N_RATES ? rates[key].name : host_field(key)->key;
}

static bool training_fit_is_share(int key)
{
    return key < N_RATES ? rates[key].share : host_field(key)->dimension == DIM_FRACTION;
}

static struct quantity *training_fit_quantity_of(struct scenario_point *point, int key)
{
    if (key >= N_RATES)
        return &point->stack_host[key - N_RATES];
    return (struct quantity *)(void *)((unsigned char *)&point->hw.gpu + rates[key].offset);
}

static void set_value(struct scenario_point *point, int key, double value)
{
    if (key < N_RATES)
        training_fit_quantity_of(point, key)->value = value;
    else
        stack_set_host(point, key - N_RATES, value);
}

/* The parameter that a quantity is; -1: it is none. */
static int training_fit_find(const struct training_fit *fit, int key, struct quantity q)
{
    for (int i = 0; q.source && i < fit->fit.parameters.n; i++) {
        const struct fit_parameter *p = &fit->fit.parameters.at[i];
        if (strcmp(p->key, training_fit_name_of(key)) == 0 &&
            strcmp(p->id, quantity_parameter(q)) == 0)
            return i;
    }
    return -1;
}

/* A run without convolutions says nothing about their rate. */
static bool concerns(int key, const struct validate_row *row)
{
    return strcmp(training_fit_name_of(key), "conv_efficiency") != 0 ||
           row->set.points[0].model.shape.image_size > 0;
}

/* What is fitted is fitted again, what is assumed where the row names it: "FILE: KEY". A row that
 * names the host is for its costs alone. */
static bool is_asked(int key, struct quantity q, const struct validate_row *row)
{
    const char *named = strstr(row->used_in_fit, ": ");
    if (named && strcmp(named + 2, fit_of_host) == 0 && key < N_RATES)
        return false;
    if (named && is_rate(named + 2) && key >= N_RATES)
        return false;
    return (q.kind == QUANTITY_FITTED && q.value > 0) ||
           (q.kind == QUANTITY_ASSUMED && named &&
               strcmp(named + 2, training_fit_name_of(key)) == 0);
}

/* Shares are varied so that they stay shares. Every parameter counts as a row: one without a prior
 * is met. */
static int add_parameter(struct training_fit *fit, int key, struct quantity q)
{
    bool share = training_fit_is_share(key);
    struct fit_parameter *p = fit_add(
        &fit->fit, training_fit_name_of(key), share ? DIM_FRACTION : DIM_SECONDS, NULL, q.value);
    p->id = quantity_parameter(q);
    p->scale = share ? FIT_LOGIT : FIT_LOG;
    p->filed = p->fitted = q;
    p->expected = q.value;
    vec_push(&fit->about, (struct training_about){0});
    return fit->about.n - 1;
}

static void training_fit_collect(struct training_fit *fit)
{
    for (int i = 0; i < fit->table.rows.n; i++)
        for (int k = 0; k < N_KEYS; k++) {
            struct validate_row *row = &fit->table.rows.at[i];
            if (row->status == VALIDATE_NOT_SIMULATED || !concerns(k, row))
                continue;
            struct quantity q = *training_fit_quantity_of(&row->set.points[0], k);
            int p = training_fit_find(fit, k, q);
            if (p < 0 && is_asked(k, q, row))
                p = add_parameter(fit, k, q);
            if (p >= 0)
                fit->about.at[p].rows++;
        }
}

static void set_values(struct training_fit *fit)
{
    for (int i = 0; i < fit->table.rows.n; i++)
        for (int k = 0; k < N_KEYS; k++) {
            struct validate_row *row = &fit->table.rows.at[i];
            if (row->status == VALIDATE_NOT_SIMULATED)
                continue;
            struct scenario_point *point = &row->set.points[0];
            int p = training_fit_find(fit, k, *training_fit_quantity_of(point, k));
            if (p >= 0)
                set_value(point, k, fit->fit.parameters.at[p].fitted.value);
        }
}

/* The two points at which a row was simulated last. Most parameters are those of one GPU or stack:
 * when the fit steps along one, the rows of the others stand where they stood. */
struct training_memo {
    struct {
        double at[N_KEYS], speed;
    } last[2];
    int next;
};

static bool same_point(const double *a, const double *b)
{
    for (int k = 0; k < N_KEYS; k++)
        if (a[k] < b[k] || a[k] > b[k])
            return false;
    return true;
}

static double training_fit_speed_of(struct training_fit *fit, int i)
{
    struct scenario_point *point = &fit->table.rows.at[i].set.points[0];
    struct training_memo *memo = &fit->memo[i];
    double at[N_KEYS];
    for (int k = 0; k < N_KEYS; k++)
        at[k] = training_fit_quantity_of(point, k)->value;
    for (int m = 0; m < 2; m++)
        if (memo->last[m].speed > 0 && same_point(memo->last[m].at, at))
            return memo->last[m].speed;
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT; /* what can be compiled was compiled before */
    struct scenario_result result = {0};
    scenario_simulate(&result, point, &arena, &diag);
    memcpy(memo->last[memo->next].at, at, sizeof at);
    memo->last[memo->next].speed = result.tokens_per_s_per_gpu;
    memo->next = !memo->next;
    arena_release(&arena);
    return result.tokens_per_s_per_gpu;
}

static void run_rows(struct training_fit *fit)
{
#ifdef _OPENMP
#pragma omp parallel for schedule(dynamic)
#endif
    for (int i = 0; i < fit->table.rows.n; i++)
        if (fit->table.rows.at[i].has_error)
            fit->speeds[i] = training_fit_speed_of(fit, i);
}

/* Values stay within this times and over the filed one; a search does not reach it. */
static const double RANGE = 1e3;

static void training_fit_settle(void *self)
{
    set_values(self);
    run_rows(self);
}

static double training_fit_predict(const void *self, const void *speed)
{
    (void)self;
    return *(const double *)speed;
}

double training_fit_residual(const struct training_fit *fit, int row)
{
    return fit->table.rows.at[row].has_error ? fit_residual(&fit->fit, row) : 0;
}

/* Are there rows, parameters to fit to them, and fewer parameters than rows? */
static bool is_enough(const struct training_fit *fit, struct source_pos at, struct diag *diag)
{
    int n = fit->table.rows.n, before = diag->n_errors;
    char list[256] = "";
    for (int k = 0, used = 0; k < N_RATES; k++)
        used +=
            snprintf(list + used, sizeof list - (size_t)used, "%s%s", k ? ", " : "", rates[k].name);
    if (n == 0)
        diag_input(diag, at,
            "no row to fit to; name the GPU file in column 'used_in_fit' of those that are");
    else if (fit->fit.parameters.n == 0)
        diag_input(diag, at,
            "nothing to fit with %d rows: none of %s is of kind fitted in their GPU file or stack "
            "profile, nor a cost under its host; name one that is assumed there behind the file in "
            "used_in_fit, as in 'FILE: gemm_sustained'",
            n, list);
    else if (n <= fit->fit.parameters.n)
        diag_input(diag, at,
            "%d rows to fit %d parameters with; mark more rows than parameters in column "
            "'used_in_fit'",
            n, fit->fit.parameters.n);
    return diag->n_errors == before;
}

/* Costs of the host of the row's profile that are fitted. */
static int host_numbers(const struct training_fit *fit, struct validate_row *row)
{
    int numbers = 0;
    for (int k = N_RATES; row->status != VALIDATE_NOT_SIMULATED && k < N_KEYS; k++)
        numbers +=
            training_fit_find(fit, k, *training_fit_quantity_of(&row->set.points[0], k)) >= 0;
    return numbers;
}

/* The rule for costs of the host: few numbers of a profile, small clusters. */
static void training_fit_check_host(struct training_fit *fit, struct diag *diag)
{
    for (int i = 0; i < fit->table.rows.n; i++) {
        struct validate_row *row = &fit->table.rows.at[i];
        int numbers = host_numbers(fit, row);
        if (numbers == 0)
            continue;
        struct source_pos at = csv_pos(row->csv, row->csv_row);
        int of_node = hw_gpus_per_node(&row->set.points[0].hw);
        if (row->gpus > (int64_t)TRAINING_FIT_NODES * of_node)
            diag_input(diag, at,
                "costs of the host are fitted on at most %d nodes, and this run is on %" PRId64
                " GPUs of %d a node; leave used_in_fit out",
                TRAINING_FIT_NODES, row->gpus, of_node);
        if (numbers > TRAINING_FIT_NUMBERS)
            diag_input(diag, at,
                "%d costs of the host of one profile would be fitted, and at most %d may; make "
                "others kind: assumed",
                numbers, TRAINING_FIT_NUMBERS);
    }
}

static enum status training_fit_begin(
    struct training_fit *fit, const char *table, struct diag *diag)
{
    int before = diag->n_errors;
    training_fit_collect(fit);
    int n = fit->table.rows.n;
    if (!is_enough(fit, (struct source_pos){.file = table}, diag))
        return diag->worst;
    training_fit_check_host(fit, diag);
    if (diag->n_errors > before)
        return diag->worst;
    fit->speeds = xcalloc((size_t)n, sizeof *fit->speeds);
    fit->memo = xcalloc((size_t)n, sizeof *fit->memo);
    validate_run(&fit->table, NULL, NULL, diag);
    for (int i = 0; i < n; i++)
        if (fit->table.rows.at[i].status != VALIDATE_NOT_SIMULATED)
            fit->table.rows.at[i].set.points[0].options.exec.noise = (struct noise_options){0};
    run_rows(fit);
    for (int i = 0; i < n; i++) {
        const struct validate_row *row = &fit->table.rows.at[i];
        fit_add_row(
            &fit->fit, &fit->speeds[i], row->has_error ? fit->speeds[i] / (1 + row->error) : 1);
        fit->fit.rows.at[i].left_out = !row->has_error;
    }
    return diag->worst;
}

enum status training_fit_load(struct training_fit *out, const char *table, const char *base,
    const bool *rows, struct diag *diag)
{
    *out = (struct training_fit){0};
    if (!validate_load(&out->table, table, base, rows, diag))
        return diag->worst;
    return training_fit_begin(out, table, diag);
}

enum status training_fit_load_tables(
    struct training_fit *out, const char *const *tables, int n, const char *base, struct diag *diag)
{
    *out = (struct training_fit){0};
    for (int i = 0; i < n; i++) {
        bool *rows = training_fit_rows(tables[i], diag);
        bool good = rows && validate_add(&out->table, tables[i], base, rows, diag);
        free(rows);
        if (!good)
            return diag->worst;
    }
    return training_fit_begin(out, tables[0], diag);
}

/* From near: runs that PyTorch's allocator stalls are off by a third, and must not drag the first
 * round along. */
static struct fit *from_filed(struct training_fit *fit)
{
    struct fit *driver = &fit->fit;
    driver->self = fit;
    driver->predict = training_fit_predict;
    driver->settle = training_fit_settle;
    driver->scale = CAUCHY;
    driver->step = STEP;
    driver->range = RANGE;
    driver->starts_near = true;
    for (int i = 0; i < driver->parameters.n; i++)
        driver->parameters.at[i].fitted = driver->parameters.at[i].filed;
    return driver;
}

enum status training_fit_solve(struct training_fit *fit, struct diag *diag)
{
    bool good = fit_solve(from_filed(fit));
    for (int i = 0; i < fit->fit.parameters.n; i++)
        good = good && isfinite(fit->fit.parameters.at[i].fitted.std_error);
    if (!good)
        return diag_input(diag, (struct source_pos){0},
            "the fit does not stand still; the rows do not determine it: add runs of other batches "
            "and clusters, or name fewer files in used_in_fit");
    return STATUS_OK;
}

void training_fit_filed(struct training_fit *fit)
{
    fit_covariance(from_filed(fit));
}

void training_fit_free(struct training_fit *fit)
{
    validate_release(&fit->table);
    fit_free(&fit->fit);
    vec_free(&fit->about);
    free(fit->speeds);
    free(fit->memo);
}

/* ---- what `flopcast calibrate fit training` prints ---- */

/* Of the rows that were left out, or of those that were not. */
static struct fit_error errors_of(const struct training_fit *fit, bool left_out)
{
    struct fit_sample sample = {0};
    for (int i = 0; i < fit->table.rows.n; i++)
        if (fit->table.rows.at[i].has_error && fit->fit.rows.at[i].left_out == left_out)
            fit_sample_add(&sample, fit->speeds[i], fit->fit.rows.at[i].measured);
    return fit_sample_error(&sample);
}

/* No error: no row's speed depends on it. One as large as the number itself: by the rows the number
 * could be 0. */
static bool is_determined(const struct fit_parameter *parameter)
{
    return parameter->fitted.std_error > 0 &&
           parameter->fitted.std_error < fabs(parameter->fitted.value);
}

/* Rows, prior, and what the file says of it. */
static const char *training_fit_remark(
    const struct training_fit *fit, int parameter, struct arena *arena)
{
    const struct fit_parameter *p = &fit->fit.parameters.at[parameter];
    const struct training_about *about = &fit->about.at[parameter];
    const char *prior = "";
    if (quantity_is_set(about->prior))
        prior =
            arena_printf(arena, ", prior %.3g +- %.2g", about->prior.value, about->prior.std_error);
    return arena_printf(arena, "(%d row%s%s%s) %s", about->rows, plural(about->rows), prior,
        is_determined(p) ? "" : ", not determined by these; keep it", p->filed.source);
}

void training_fit_print(FILE *out, const struct training_fit *fit)
{
    struct arena arena = ARENA_INIT;
    fit_print_head(out, "parameters");
    for (int i = 0; i < fit->fit.parameters.n; i++) {
        const struct fit_parameter *p = &fit->fit.parameters.at[i];
        struct quantity found = is_determined(p) ? p->fitted : (struct quantity){0};
        fit_print_number(
            out, "", p->key, p->filed, found, p->dimension, training_fit_remark(fit, i, &arena));
    }
    fit_print_tied(out, &fit->fit);
    fit_print_error(out, "speed", "fitted", errors_of(fit, false));
    arena_release(&arena);
}

static bool same_family(const struct validate_row *a, const struct validate_row *b)
{
    return strcmp(a->source, b->source) == 0 && strcmp(a->model, b->model) == 0;
}

/* left_out of every row is set anew for each family; the parameters begin at the filed values
 * each time. */
enum status training_fit_cross_validate(FILE *out, struct training_fit *fit, struct diag *diag)
{
    const struct validate_row *rows = fit->table.rows.at;
    enum status status = STATUS_OK;
    fprintf(out, "%-60s %-14s %5s %8s %8s %8s %9s\n", "left out", "model", "rows", "bias %",
        "median %", "p90 %", "others %");
    for (int i = 0; i < fit->table.rows.n && status == STATUS_OK; i++) {
        bool first = true;
        for (int j = 0; j < i && first; j++)
            first = !same_family(&rows[j], &rows[i]);
        if (!first)
            continue;
        for (int j = 0; j < fit->table.rows.n; j++)
            fit->fit.rows.at[j].left_out = !rows[j].has_error || same_family(&rows[j], &rows[i]);
        status = training_fit_solve(fit, diag);
        struct fit_error e = errors_of(fit, true), others = errors_of(fit, false);
        if (status == STATUS_OK)
            fprintf(out, "%-60s %-14s %5d %8.1f %8.1f %8.1f %9.1f\n", rows[i].source, rows[i].model,
                e.n, 100 * e.bias, 100 * e.median, 100 * e.p90, 100 * others.median);
        fflush(out);
    }
    return status;
}

bool *training_fit_rows(const char *path, struct diag *diag)
{
    struct csv_table *csv = NULL;
    if (csv_load(&csv, path, diag) != STATUS_OK)
        return NULL;
    bool *rows = xcalloc((size_t)csv_rows(csv) + 1, sizeof *rows);
    for (int r = 0; r < csv_rows(csv); r++) {
        const char *used = validate_used_in_fit(csv, r), *key = strstr(used, ": ");
        rows[r] = key ? training_fit_has(key + 2) : *used != '\0';
    }
    csv_release(csv);
    return rows;
}

/* ---- what a fit to training runs found, into copies of the files ---- */

struct writing {
    const struct training_fit *fit;
    const char *tables, *file; /* file: the one that is written once more */
    VEC(struct config_change) changes;
    VEC(const char *) seen, written; /* files; paths */
    struct arena arena;
};

static const struct fit_parameter *find_by_id(
    const struct training_fit *fit, const char *key, const char *id)
{
    for (int i = 0; i < fit->fit.parameters.n; i++) {
        const struct fit_parameter *p = &fit->fit.parameters.at[i];
        if (strcmp(p->key, key) == 0 && strcmp(p->id, id) == 0 && is_determined(p))
            return p;
    }
    return NULL;
}

static const struct config_field *field_of(const struct fit_parameter *p)
{
    const struct config_table *table = training_fit_has(p->key) ? &hw_gpu_table : &stack_host_table;
    for (int i = 0; i < table->n_fields; i++)
        if (strcmp(table->fields[i].key, p->key) == 0)
            return &table->fields[i];
    BUG_IF(true, "%s has no '%s'", table->what, p->key);
    return NULL;
}

static const char *stem_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* What the words of the source say of the rows: as the file has it, or the file. */
static const char *of_what(struct writing *w, const struct fit_parameter *p)
{
    static const char used[] = "used_in_fit: ";
    const char *old = strstr(p->filed.source, used);
    if (p->filed.kind == QUANTITY_FITTED && old)
        return old + strlen(used);
    return training_fit_has(p->key)
               ? stem_of(w->file)
               : arena_printf(&w->arena, "%s: %s", stem_of(w->file), fit_of_host);
}

static const char *text_of(struct writing *w, const struct fit_parameter *p)
{
    const struct config_field *field = field_of(p);
    struct quantity q = fit_files_rounded(p->fitted, field);
    q.kind = QUANTITY_FITTED;
    q.source = arena_printf(&w->arena,
        "`flopcast calibrate fit training` on the rows of %s with used_in_fit: %s", w->tables,
        of_what(w, p));
    if (!q.fit) /* it was assumed, or its user gave no id */
        q.fit = arena_printf(&w->arena, "training/%s", stem_of(w->file));
    char *text = NULL;
    size_t n = 0;
    FILE *out = xmemstream(&text, &n);
    hw_write_quantity(out, q, field->dimension);
    fclose(out);
    const char *kept = arena_strdup(&w->arena, text);
    free(text);
    return kept;
}

static void find_changes(struct writing *w, struct config_node mapping, const char *prefix)
{
    for (int i = 0; i < config_count(mapping); i++) {
        const char *key = config_text(config_key(mapping, i));
        struct config_node value = config_item(mapping, i);
        if (config_kind(value) != CONFIG_MAPPING)
            continue;
        const char *path = arena_printf(&w->arena, "%s%s", prefix, key);
        struct config_node id = config_find(value, "fit");
        const struct fit_parameter *p =
            find_by_id(w->fit, key, config_text(id.doc ? id : config_find(value, "source")));
        if (p)
            vec_push(&w->changes, (struct config_change){path, text_of(w, p)});
        else
            find_changes(w, value, arena_printf(&w->arena, "%s.", path));
    }
}

/* The copy of a file that extends another extends that one's copy, where there is one. */
static void rename_extended(struct writing *w, const char *extends, const char *folder)
{
    const char *name = stem_of(extends);
    const char *copy = arena_printf(&w->arena, "%s/%s", folder, name), *text = NULL;
    for (int i = 0; i < w->written.n && !text; i++)
        if (strcmp(w->written.at[i], copy) == 0)
            text = name;
    if (!text && w->changes.n == 0)
        return; /* nothing of either is written */
    if (!text)
        text = files_name_from(&w->arena, copy, extends);
    vec_push(
        &w->changes, (struct config_change){"extends", arena_printf(&w->arena, "\"%s\"", text)});
}

/* Once a file, whichever rows have it. Depth first: an extended file is written before those
 * that extend it, so that their copies know whether it has one. */
static enum status write_file(
    struct writing *w, const char *file, const char *folder, struct diag *diag)
{
    for (int i = 0; i < w->seen.n; i++)
        if (strcmp(w->seen.at[i], file) == 0)
            return STATUS_OK;
    vec_push(&w->seen, file);
    w->changes.n = 0;
    w->file = file;
    struct config_doc *doc = NULL;
    enum status status = config_load(&doc, file, diag);
    const char *extends = NULL;
    if (status == STATUS_OK)
        status = hw_extended(&extends, FILES_GPUS, config_root(doc), &w->arena, diag);
    if (status == STATUS_OK && extends) { /* its numbers may be those of that file */
        status = write_file(w, extends, folder, diag);
        w->changes.n = 0;
        w->file = file;
    }
    if (status == STATUS_OK)
        find_changes(w, config_root(doc), "");
    config_free(doc);
    if (status != STATUS_OK)
        return status;
    if (extends)
        rename_extended(w, extends, folder);
    const char *path = arena_printf(&w->arena, "%s/%s", folder, stem_of(file));
    if (w->changes.n == 0)
        return STATUS_OK;
    for (int i = 0; i < w->written.n; i++)
        if (strcmp(w->written.at[i], path) == 0)
            return diag_input(diag, (struct source_pos){.file = file},
                "another file of the same name was written to %s; rename one of the two", path);
    vec_push(&w->written, path);
    return fit_files_write_changes(path, file, w->changes.at, w->changes.n, diag);
}

/* The files of the rows, once each: "a.csv and b.csv". */
static const char *tables_of(const struct training_fit *fit, struct arena *arena)
{
    const char *list = "", *last = NULL;
    for (int i = 0; i < fit->table.rows.n; i++) {
        const char *file = fit->table.rows.at[i].file;
        if (last && strcmp(last, file) == 0)
            continue;
        list = arena_printf(
            arena, "%s%s%s", list, last ? " and " : "", files_name_from(arena, NULL, file));
        last = file;
    }
    return list;
}

enum status training_fit_write(
    const struct training_fit *fit, const char *folder, struct diag *diag)
{
    struct writing w = {.fit = fit};
    w.tables = tables_of(fit, &w.arena);
    enum status status = STATUS_OK;
    for (int i = 0; i < fit->table.rows.n && status == STATUS_OK; i++) {
        const struct validate_row *row = &fit->table.rows.at[i];
        if (row->status == VALIDATE_NOT_SIMULATED)
            continue;
        const struct scenario_point *point = &row->set.points[0];
        status = write_file(&w, point->hw.node.gpu_path, folder, diag);
        if (status == STATUS_OK && point->options.stack_path)
            status = write_file(&w, point->options.stack_path, folder, diag);
    }
    vec_free(&w.changes);
    vec_free(&w.seen);
    vec_free(&w.written);
    arena_release(&w.arena);
    return status;
}
