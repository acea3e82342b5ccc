/* Noise parameters of cluster files by the scaling curves of a table of runs, in one linear step.
 * The marked rows are simulated once as filed and once with each parameter of noise times
 * CLUSTER_STEP: the differences of log(predicted / measured ratio) are the columns of a linear
 * problem, scaled to a doubling. The column of CLUSTER_RANK needs no simulation: it counts the
 * collectives over all ranks in the first compiled program and divides by the predicted step.
 * cluster_fit_settle() solves by least squares, takes out the least determined parameter and solves
 * again, until every remaining one is determined.
 *
 * What is subtle: a ratio counts where it is not the curve's smallest cluster itself; rows alone on
 * a curve are set to not simulated before the first run. All runs share their seeds, so a
 * difference is the parameter's and not luck's. The vectors have as many entries as there were
 * ratios at first: noise must not change which rows run out of memory. */
#include "calibrate/cluster_fit.h"

#include "calibrate/training_fit.h"

#include <gsl/gsl_blas.h>
#include <gsl/gsl_multifit.h>
#include <math.h>
#include <stdlib.h>

const char *const cluster_parameter_names[CLUSTER_PARAMETERS + 1] = {
    [CLUSTER_SPREAD] = "gpu_speed_spread",
    [CLUSTER_HOST] = "host_jitter",
    [CLUSTER_NETWORK] = "network_jitter",
    [CLUSTER_RANK] = "a rank"};

/* Of a parameter doubled, on all ratios together: rounding, times being whole picoseconds. */
static const double NO_EFFECT = 1e-9;

static double cluster_fit_value_of(const struct noise_options *noise, int parameter)
{
    const double of[CLUSTER_PARAMETERS] = {
        noise->gpu_speed_spread, noise->host_jitter, noise->network_jitter, 0};
    return of[parameter];
}

static void cluster_fit_step_of(struct noise_options *noise, int parameter)
{
    noise->gpu_speed_spread *= parameter == CLUSTER_SPREAD ? CLUSTER_STEP : 1;
    noise->gpu_speed_spread_below *= parameter == CLUSTER_SPREAD ? CLUSTER_STEP : 1;
    noise->host_jitter *= parameter == CLUSTER_HOST ? CLUSTER_STEP : 1;
    noise->network_jitter *= parameter == CLUSTER_NETWORK ? CLUSTER_STEP : 1;
}

/* Rows that are alone on their curve say nothing, and need not run. */
static void keep_curves(struct validate_table *table)
{
    for (int i = 0; i < table->rows.n; i++) {
        int alike = 0;
        for (int j = 0; j < table->rows.n; j++)
            alike += table->rows.at[j].curve == table->rows.at[i].curve;
        if (alike < 2)
            table->rows.at[i].status = VALIDATE_NOT_SIMULATED;
    }
}

static bool cluster_fit_counts(const struct validate_row *row, int index)
{
    return row->has_ratio && row->smallest != index;
}

/* log(predicted / measured) of every ratio. */
static gsl_vector *off(struct validate_table *table, int rows)
{
    struct diag diag = DIAG_INIT; /* rows that make no scenario were reported before */
    gsl_vector *out = gsl_vector_alloc((size_t)rows);
    size_t n = 0;
    validate_run(table, NULL, NULL, &diag);
    for (int i = 0; i < table->rows.n; i++)
        if (cluster_fit_counts(&table->rows.at[i], i))
            gsl_vector_set(out, n++,
                log(table->rows.at[i].predicted_ratio / table->rows.at[i].measured_ratio));
    BUG_IF(n != out->size, "%zu ratios, before that %zu", n, out->size);
    return out;
}

/* Residuals with CLUSTER_STEP times a parameter, which is then as before to the last bit. */
static gsl_vector *off_with(struct validate_table *table, int parameter, int rows)
{
    struct noise_options *before = xcalloc((size_t)table->rows.n + 1, sizeof *before);
    for (int i = 0; i < table->rows.n; i++)
        if (table->rows.at[i].set.n_points == 1) {
            struct noise_options *noise = &table->rows.at[i].set.points[0].options.exec.noise;
            before[i] = *noise;
            cluster_fit_step_of(noise, parameter);
        }
    gsl_vector *out = off(table, rows);
    for (int i = 0; i < table->rows.n; i++)
        if (table->rows.at[i].set.n_points == 1)
            table->rows.at[i].set.points[0].options.exec.noise = before[i];
    free(before);
    return out;
}

/* Of a row's step, the share by which 1 us a rank would lengthen it. */
static double of_ranks(const struct validate_row *row)
{
    struct arena arena = ARENA_INIT;
    struct plan plan;
    struct diag diag = DIAG_INIT;
    double us = 0;
    if (scenario_compile(&plan, &row->set.points[0], &arena, &diag) == STATUS_OK) {
        const struct plan_program *program = &plan.programs[0];
        for (int i = 0; i < program->ops.n; i++) {
            const struct plan_op *op = &program->ops.at[i];
            if (op->kind == OP_COLLECTIVE &&
                plan.groups.at[plan.collectives.at[op->index].group].ranks.size == plan.mesh.ranks)
                us += plan.mesh.ranks;
        }
        plan_release(&plan);
    }
    arena_release(&arena);
    return us * 1e-6 / row->predicted.step_time_s;
}

static gsl_vector *lost_by_ranks(const struct validate_table *table, int rows)
{
    gsl_vector *out = gsl_vector_alloc((size_t)rows);
    size_t n = 0;
    for (int i = 0; i < table->rows.n; i++)
        if (cluster_fit_counts(&table->rows.at[i], i))
            gsl_vector_set(out, n++,
                of_ranks(&table->rows.at[table->rows.at[i].smallest]) -
                    of_ranks(&table->rows.at[i]));
    return out;
}

static int count_ratios(const struct validate_table *table)
{
    int n = 0;
    for (int i = 0; i < table->rows.n; i++)
        n += cluster_fit_counts(&table->rows.at[i], i);
    return n;
}

/* Columns: what a residual gains when a parameter doubles, or by a us a rank. */
static gsl_matrix *slopes(struct validate_table *table, const gsl_vector *filed, int rows)
{
    gsl_matrix *out = gsl_matrix_alloc((size_t)rows, CLUSTER_PARAMETERS);
    gsl_vector *by_ranks = lost_by_ranks(table, rows);
    gsl_matrix_set_col(out, CLUSTER_RANK, by_ranks);
    gsl_vector_free(by_ranks);
    for (int p = 0; p < CLUSTER_RANK; p++) {
        gsl_vector *moved = off_with(table, p, rows);
        gsl_vector_sub(moved, filed);
        gsl_vector_scale(moved, 1 / (CLUSTER_STEP - 1));
        gsl_matrix_set_col(out, (size_t)p, moved);
        gsl_vector_free(moved);
    }
    return out;
}

static double as_filed(int parameter)
{
    return parameter == CLUSTER_RANK ? 0 : 1;
}

/* Its standard error, relative. */
static double cluster_fit_error_of(const struct cluster_parameter *of, int parameter)
{
    return of->std_error / (parameter == CLUSTER_RANK ? fabs(of->factor) : 1);
}

/* The parameters that count as determined, the others as filed; their new standard errors. */
static void calibrate_cluster_fit_solve(
    struct cluster_fit *out, const gsl_matrix *slope, const gsl_vector *filed)
{
    size_t rows = filed->size, n = 0;
    int which[CLUSTER_PARAMETERS];
    gsl_matrix *chosen = gsl_matrix_alloc(rows, CLUSTER_PARAMETERS);
    gsl_vector *wanted = gsl_vector_alloc(rows);
    for (int p = 0; p < CLUSTER_PARAMETERS; p++) {
        if (!out->parameters[p].determined)
            continue;
        gsl_vector_const_view column = gsl_matrix_const_column(slope, (size_t)p);
        gsl_matrix_set_col(chosen, n, &column.vector);
        which[n++] = p;
    }
    gsl_vector_memcpy(wanted, filed);
    gsl_vector_scale(wanted, -1);
    out->before = out->after = gsl_blas_dnrm2(filed) / sqrt((double)rows);
    if (n > 0) {
        double squares = 0;
        gsl_vector *change = gsl_vector_alloc(n);
        gsl_matrix *covariance = gsl_matrix_alloc(n, n);
        gsl_multifit_linear_workspace *work = gsl_multifit_linear_alloc(rows, n);
        gsl_matrix_view columns = gsl_matrix_submatrix(chosen, 0, 0, rows, n);
        gsl_multifit_linear(&columns.matrix, wanted, change, covariance, &squares, work);
        for (size_t i = 0; i < n; i++) {
            out->parameters[which[i]].factor = as_filed(which[i]) + gsl_vector_get(change, i);
            out->parameters[which[i]].std_error = sqrt(gsl_matrix_get(covariance, i, i));
        }
        out->after = sqrt(squares / (double)rows);
        gsl_multifit_linear_free(work);
        gsl_matrix_free(covariance);
        gsl_vector_free(change);
    }
    gsl_vector_free(wanted);
    gsl_matrix_free(chosen);
}

/* With all parameters that have an effect; then without the worst that is not determined, until all
 * are. */
static void cluster_fit_settle(
    struct cluster_fit *out, const gsl_matrix *slope, const gsl_vector *filed)
{
    for (size_t p = 0; p < CLUSTER_PARAMETERS; p++) {
        gsl_vector_const_view column = gsl_matrix_const_column(slope, p);
        out->parameters[p] = (struct cluster_parameter){.filed = out->parameters[p].filed,
            .factor = as_filed((int)p),
            .std_error = HUGE_VAL,
            .determined = gsl_blas_dnrm2(&column.vector) > NO_EFFECT};
    }
    int worst = -1;
    do {
        if (worst >= 0)
            out->parameters[worst].determined = false;
        worst = -1;
        calibrate_cluster_fit_solve(out, slope, filed);
        for (int p = 0; p < CLUSTER_PARAMETERS; p++) {
            const struct cluster_parameter *of = &out->parameters[p];
            if (of->determined && !(cluster_fit_error_of(of, p) < CLUSTER_DETERMINED) &&
                (worst < 0 || cluster_fit_error_of(of, p) >
                                  cluster_fit_error_of(&out->parameters[worst], worst)))
                worst = p;
        }
    } while (worst >= 0);
}

static void set_filed(struct cluster_fit *out, struct validate_table *table)
{
    for (int i = 0; i < table->rows.n; i++)
        for (int p = 0; p < CLUSTER_PARAMETERS; p++)
            if (cluster_fit_counts(&table->rows.at[i], i))
                out->parameters[p].filed +=
                    cluster_fit_value_of(&table->rows.at[i].set.points[0].options.exec.noise, p) /
                    out->rows;
}

/* The table is simulated five times: to count ratios, for the residuals, and for three columns. */
enum status cluster_fit_solve(
    struct cluster_fit *out, const char *table, const char *base, struct diag *diag)
{
    struct validate_table runs = {0};
    bool *rows = training_fit_rows(table, diag);
    *out = (struct cluster_fit){0};
    if (rows && validate_load(&runs, table, base, rows, diag)) {
        keep_curves(&runs);
        validate_run(&runs, NULL, NULL, diag);
        out->rows = count_ratios(&runs);
        if (out->rows <= CLUSTER_PARAMETERS)
            diag_input(diag, (struct source_pos){.file = table},
                "%d ratios to fit %d parameters with; mark more rows of curves in column "
                "'used_in_fit'",
                out->rows, CLUSTER_PARAMETERS);
    }
    if (diag->n_errors == 0) {
        set_filed(out, &runs);
        gsl_vector *filed = off(&runs, out->rows);
        gsl_matrix *slope = slopes(&runs, filed, out->rows);
        cluster_fit_settle(out, slope, filed);
        gsl_matrix_free(slope);
        gsl_vector_free(filed);
    }
    validate_release(&runs);
    free(rows);
    return diag->worst;
}

void cluster_fit_print(FILE *out, const struct cluster_fit *fit)
{
    fprintf(out, "%-18s %10s %14s\n", "parameter", "in files", "times");
    const struct cluster_parameter *rank = &fit->parameters[CLUSTER_RANK];
    for (int p = 0; p < CLUSTER_RANK; p++) {
        const struct cluster_parameter *of = &fit->parameters[p];
        fprintf(out, "%-18s %8.2f %% %6.2f +- %.2f%s\n", cluster_parameter_names[p],
            100 * of->filed, of->factor, of->std_error,
            of->determined ? "" : "  not determined by these rows");
    }
    fprintf(out,
        "\nbeyond what is predicted, a collective over all ranks takes %.2f +- %.2f us longer for "
        "each rank%s\n",
        rank->factor, rank->std_error, rank->determined ? "" : " (not determined)");
    fprintf(out,
        "%d ratios: root mean square of log(predicted / measured) %.2f %%, with the fitted values "
        "%.2f %%\n",
        fit->rows, 100 * fit->before, 100 * fit->after);
}
