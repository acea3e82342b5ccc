#include "calibrate/training_fit.h"

#include "scenario/stack.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const char training_fit_host[] = "host";

static const double CAUCHY = 0.05; /* assumed: log residual at which a row counts half */

/* Of the finite differences: simulated time is whole picoseconds, and a kernel more or less beside a collective is a
 * jump; assumed, well above the one and below what matters. */
static const double STEP = 1e-3;

/* The quantities of a GPU that this fit is about. Behind them the costs of section host, in the order of
 * stack_host_table. */
#define KEY(member, is_share)                                                                                          \
    {                                                                                                                  \
#member, offsetof(struct hw_gpu, member), is_share                                                             \
    }
static const struct {
    const char *name;
    size_t offset;
    bool share;
} rates[] = {KEY(gemm_sustained, true), KEY(attention_efficiency, true), KEY(attention_backward, true),
    KEY(pointwise_efficiency, true), KEY(norm_row_time, false), KEY(conv_efficiency, true), KEY(step_pause, false)};
enum { N_RATES = sizeof rates / sizeof *rates, N_KEYS = N_RATES + SCENARIO_HOST_COSTS };

static bool is_rate(const char *key)
{
    for (int k = 0; k < N_RATES; k++)
        if (strcmp(rates[k].name, key) == 0)
            return true;
    return false;
}

bool training_fit_has(const char *key)
{
    return is_rate(key) || strcmp(key, training_fit_host) == 0;
}

static const struct config_field *host_field(int key)
{
    return &stack_host_table.fields[key - N_RATES];
}

static const char *name_of(int key)
{
    return key < N_RATES ? rates[key].name : host_field(key)->key;
}

static bool is_share(int key)
{
    return key < N_RATES ? rates[key].share : host_field(key)->dimension == DIM_FRACTION;
}

static struct quantity *quantity_of(struct scenario_point *point, int key)
{
    if (key >= N_RATES)
        return &point->stack_host[key - N_RATES];
    return (struct quantity *)(void *)((unsigned char *)&point->hw.gpu + rates[key].offset);
}

static void set_value(struct scenario_point *point, int key, double value)
{
    if (key < N_RATES)
        quantity_of(point, key)->value = value;
    else
        stack_set_host(point, key - N_RATES, value);
}

/* The parameter that a quantity is; -1: it is none. */
static int find(const struct training_fit *fit, int key, struct quantity q)
{
    for (int i = 0; q.source && i < fit->fit.parameters.n; i++) {
        const struct fit_parameter *p = &fit->fit.parameters.at[i];
        if (strcmp(p->key, name_of(key)) == 0 && strcmp(p->id, quantity_parameter(q)) == 0)
            return i;
    }
    return -1;
}

/* A run without convolutions says nothing about their rate. */
static bool concerns(int key, const struct validate_row *row)
{
    return strcmp(name_of(key), "conv_efficiency") != 0 || row->set.points[0].model.shape.image_size > 0;
}

/* What is fitted is fitted again, what is assumed where the row names it: "FILE: KEY". A row that names the host is for
 * its costs alone. */
static bool is_asked(int key, struct quantity q, const struct validate_row *row)
{
    const char *named = strstr(row->used_in_fit, ": ");
    if (named && strcmp(named + 2, training_fit_host) == 0 && key < N_RATES)
        return false;
    if (named && is_rate(named + 2) && key >= N_RATES)
        return false;
    return (q.kind == QUANTITY_FITTED && q.value > 0) ||
           (q.kind == QUANTITY_ASSUMED && named && strcmp(named + 2, name_of(key)) == 0);
}

/* Shares are varied so that they stay shares. Every parameter counts as a row: one without a prior is met. */
static int add_parameter(struct training_fit *fit, int key, struct quantity q)
{
    bool share = is_share(key);
    struct fit_parameter *p = fit_add(&fit->fit, name_of(key), share ? DIM_FRACTION : DIM_SECONDS, NULL, q.value);
    p->id = quantity_parameter(q);
    p->scale = share ? FIT_LOGIT : FIT_LOG;
    p->filed = p->fitted = q;
    p->expected = q.value;
    vec_push(&fit->about, (struct training_about){0});
    return fit->about.n - 1;
}

static void collect(struct training_fit *fit)
{
    for (int i = 0; i < fit->table.rows.n; i++)
        for (int k = 0; k < N_KEYS; k++) {
            struct validate_row *row = &fit->table.rows.at[i];
            if (row->status == VALIDATE_NOT_SIMULATED || !concerns(k, row))
                continue;
            struct quantity q = *quantity_of(&row->set.points[0], k);
            int p = find(fit, k, q);
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
            int p = find(fit, k, *quantity_of(point, k));
            if (p >= 0)
                set_value(point, k, fit->fit.parameters.at[p].fitted.value);
        }
}

/* The two points at which a row was simulated last. Most parameters are those of one GPU or stack: when the fit steps
 * along one, the rows of the others stand where they stood. */
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

static double speed_of(struct training_fit *fit, int i)
{
    struct scenario_point *point = &fit->table.rows.at[i].set.points[0];
    struct training_memo *memo = &fit->memo[i];
    double at[N_KEYS];
    for (int k = 0; k < N_KEYS; k++)
        at[k] = quantity_of(point, k)->value;
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
            fit->speeds[i] = speed_of(fit, i);
}

/* Values stay within this times and over the filed one; a search does not reach it. */
static const double RANGE = 1e3;

static void settle(void *self)
{
    set_values(self);
    run_rows(self);
}

static double predict(const void *self, const void *speed)
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
        used += snprintf(list + used, sizeof list - (size_t)used, "%s%s", k ? ", " : "", rates[k].name);
    if (n == 0)
        diag_input(diag, at, "no row to fit to; name the GPU file in column 'used_in_fit' of those that are");
    else if (fit->fit.parameters.n == 0)
        diag_input(diag, at,
            "nothing to fit with %d rows: none of %s is of kind fitted in their GPU file or stack profile, nor a cost "
            "under its host; name one that is assumed there behind the file in used_in_fit, as in 'FILE: "
            "gemm_sustained'",
            n, list);
    else if (n <= fit->fit.parameters.n)
        diag_input(diag, at,
            "%d rows to fit %d parameters with; mark more rows than parameters in column 'used_in_fit'", n,
            fit->fit.parameters.n);
    return diag->n_errors == before;
}

/* Costs of the host of the row's profile that are fitted. */
static int host_numbers(const struct training_fit *fit, struct validate_row *row)
{
    int numbers = 0;
    for (int k = N_RATES; row->status != VALIDATE_NOT_SIMULATED && k < N_KEYS; k++)
        numbers += find(fit, k, *quantity_of(&row->set.points[0], k)) >= 0;
    return numbers;
}

/* The rule for costs of the host: few numbers of a profile, small clusters. */
static void check_host(struct training_fit *fit, struct diag *diag)
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
                "%d costs of the host of one profile would be fitted, and at most %d may; make others kind: assumed",
                numbers, TRAINING_FIT_NUMBERS);
    }
}

static enum status begin(struct training_fit *fit, const char *table, struct diag *diag)
{
    int before = diag->n_errors;
    collect(fit);
    int n = fit->table.rows.n;
    if (!is_enough(fit, (struct source_pos){.file = table}, diag))
        return diag->worst;
    check_host(fit, diag);
    if (diag->n_errors > before)
        return diag->worst;
    fit->speeds = xcalloc((size_t)n, sizeof *fit->speeds);
    fit->memo = xcalloc((size_t)n, sizeof *fit->memo);
    validate_run(&fit->table, NULL, NULL, NULL, diag);
    for (int i = 0; i < n; i++)
        if (fit->table.rows.at[i].status != VALIDATE_NOT_SIMULATED)
            fit->table.rows.at[i].set.points[0].options.exec.noise = (struct noise_options){0};
    run_rows(fit);
    for (int i = 0; i < n; i++) {
        const struct validate_row *row = &fit->table.rows.at[i];
        fit_add_row(&fit->fit, &fit->speeds[i], row->has_error ? fit->speeds[i] / (1 + row->error) : 1);
        fit->fit.rows.at[i].left_out = !row->has_error;
    }
    return diag->worst;
}

enum status training_fit_load(
    struct training_fit *out, const char *table, const char *base, const bool *rows, struct diag *diag)
{
    *out = (struct training_fit){0};
    if (!validate_load(&out->table, table, base, rows, diag))
        return diag->worst;
    return begin(out, table, diag);
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
    return begin(out, tables[0], diag);
}

/* From near: runs that PyTorch's allocator stalls are off by a third, and must not drag the first round along. */
static struct fit *from_filed(struct training_fit *fit)
{
    struct fit *driver = &fit->fit;
    driver->self = fit;
    driver->predict = predict;
    driver->settle = settle;
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
            "the fit does not stand still; the rows do not determine it: add runs of other batches and clusters, or "
            "name fewer files in used_in_fit");
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
