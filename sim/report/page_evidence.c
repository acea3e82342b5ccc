/* The measured runs that are nearest to the points of a run: how far they are, and how well they were predicted. */
#include "report/page_parts.h"
#include "report/page_texts.h"
#include "validate/regime.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double PERCENT = 100;

/* Columns of page_job.sql. */
enum { LABEL, GPU, FRAMEWORK, STRATEGY, PRECISION, PARAMS, GPUS, DEGREES, PATH = DEGREES + LAYOUT_AXES, WAITING };

enum { OF_A_POINT = 5, MOST_RUNS = 60 }; /* runs that are listed: the nearest of a point; in all */

static struct nearest_job job_of(const struct html_rows *points, int row, struct arena *arena)
{
    int64_t degrees[LAYOUT_AXES];
    for (int i = 0; i < LAYOUT_AXES; i++)
        degrees[i] = strtoll(html_cell(points, row, DEGREES + i), NULL, 10);
    const char *gpu = html_cell(points, row, GPU);
    return (struct nearest_job){.gpu = gpu,
        .arch = nearest_arch(arena, gpu),
        .framework = html_cell(points, row, FRAMEWORK),
        .strategy = html_cell(points, row, STRATEGY),
        .layout = nearest_layout(arena, degrees),
        .precision = html_cell(points, row, PRECISION),
        .params = strtod(html_cell(points, row, PARAMS), NULL),
        .gpus = strtoll(html_cell(points, row, GPUS), NULL, 10),
        .experts = degrees[2] > 1 || nearest_experts(arena, html_cell(points, row, PATH))};
}

/* ---- rows that a query did not make ---- */

static void begin(struct html_rows *rows, const char *const *names, int n)
{
    *rows = (struct html_rows){.arena = ARENA_INIT, .columns = n};
    for (int i = 0; i < n; i++)
        vec_push(&rows->names, names[i]);
}

/* NULL: an empty cell. */
static void add(struct html_rows *rows, const char *text)
{
    vec_push(&rows->cells, text && *text ? arena_strdup(&rows->arena, text) : NULL);
    rows->n = rows->cells.n / rows->columns;
}

static void add_number(struct html_rows *rows, int digits, double value)
{
    add(rows, arena_printf(&rows->arena, "%.*f", digits, value));
}

/* An error of prediction, %. */
static void add_error(struct html_rows *rows, double error)
{
    add(rows, arena_printf(&rows->arena, "%+.1f", PERCENT * error));
}

/* ---- tables ---- */

/* "framework megatron-core, 2.1 x GPUs": the terms that are not 0, with what the run has. */
static const char *differences(const struct nearest_found *found, const struct nearest_job *job,
    const struct nearest_job *run, struct arena *arena)
{
    const char *const texts[NEAREST_TERMS] = {[NEAREST_GPU] = run->gpu,
        [NEAREST_FRAMEWORK] = *run->framework ? run->framework : "no stack profile",
        [NEAREST_STRATEGY] = run->strategy,
        [NEAREST_LAYOUT] = run->layout,
        [NEAREST_PRECISION] = run->precision,
        [NEAREST_MODEL] = arena_printf(arena, "%.3gB, not %.3gB", run->params / 1e9, job->params / 1e9),
        [NEAREST_GPUS] = arena_printf(arena, "%lld, not %lld", (long long)run->gpus, (long long)job->gpus)};
    const char *text = "";
    for (int i = 0; i < NEAREST_TERMS; i++)
        if (found->terms[i] >= 0.05) /* as it is printed: more than 0.0 */
            text = arena_printf(arena, "%s%s%s %s", text, *text ? "; " : "", nearest_term_names[i], texts[i]);
    return *text ? text : "nothing that counts here";
}

struct evidence {
    const struct page_run *run;
    const struct html_rows *points; /* of page_job.sql */
    struct nearest_job *jobs;
    struct nearest *found;
};

static void put_points(const struct evidence *e)
{
    static const char *const names[] = {"point", "nearest run", "distance", "what differs", "distance of the last",
        "runs", "median error, %", "90th percentile, %", "bias, %", "as near, in a fit"};
    const struct nearest_runs *measured = e->run->measured;
    struct html_rows rows;
    begin(&rows, names, sizeof names / sizeof *names);
    for (int i = 0; i < e->points->n; i++) {
        const struct nearest *found = &e->found[i];
        const struct nearest_found *first = &found->runs[0];
        if (found->n == 0)
            continue;
        add(&rows, html_cell(e->points, i, LABEL));
        add(&rows, measured->table.rows.at[first->row].id);
        add_number(&rows, 1, first->distance);
        add(&rows, differences(first, &e->jobs[i], &measured->jobs[first->row], &rows.arena));
        add_number(&rows, 1, found->runs[found->n - 1].distance);
        add_number(&rows, 0, found->n);
        add_number(&rows, 1, PERCENT * found->median);
        add_number(&rows, 1, PERCENT * found->p90);
        add_error(&rows, found->bias);
        add_number(&rows, 0, found->n_fitted);
    }
    html_table(e->run->out, &rows, 0, rows.n, 0, "A row a point: the nearest measured runs");
    html_free(&rows);
}

static void put_run_row(struct html_rows *rows, const struct nearest_runs *measured, const struct nearest_found *found)
{
    const struct validate_row *row = &measured->table.rows.at[found->row];
    const struct nearest_job *job = &measured->jobs[found->row];
    add(rows, row->id);
    add(rows, csv_cell(row->csv, row->csv_row, csv_column(row->csv, "url")));
    add(rows, row->source);
    add(rows, row->model);
    add(rows, arena_printf(&rows->arena, "%.3g", job->params / 1e9));
    add(rows, job->gpu);
    add_number(rows, 0, (double)job->gpus);
    add(rows, job->framework);
    add(rows, job->strategy);
    add(rows, job->layout);
    add(rows, job->precision);
    add(rows, arena_printf(&rows->arena, "%.4g", row->measured.tokens_per_s_per_gpu));
    add(rows, arena_printf(&rows->arena, "%.4g", row->predicted.tokens_per_s_per_gpu));
    add_error(rows, row->error);
    add_number(rows, 1, found->distance);
}

/* The nearest few of every point, each once with its least distance. */
static void put_runs(const struct evidence *e)
{
    static const char *const names[] = {"run", "address", "source", "model", "parameters, 1e9", "GPU", "GPUs",
        "framework", "strategy", "layout", "precision", "tokens/s/GPU measured", "predicted", "error, %", "distance"};
    struct nearest_found listed[MOST_RUNS];
    int n = 0;
    for (int nth = 0; nth < OF_A_POINT; nth++)
        for (int i = 0; i < e->points->n; i++) {
            const struct nearest_found *found = &e->found[i].runs[nth];
            int at = 0;
            while (at < n && listed[at].row != found->row)
                at++;
            if (nth >= e->found[i].n || at == MOST_RUNS)
                continue;
            if (at == n)
                listed[n++] = *found;
            else if (found->distance < listed[at].distance)
                listed[at] = *found;
        }
    struct html_rows rows;
    begin(&rows, names, sizeof names / sizeof *names);
    rows.address = 1;
    for (int i = 0; i < n; i++)
        put_run_row(&rows, e->run->measured, &listed[i]);
    fprintf(e->run->out, "<details><summary>The %d nearest run%s, with what was measured</summary>\n", n, plural(n));
    html_table(e->run->out, &rows, 0, rows.n, 0, "Published runs; their rows stand in results/measured");
    fputs("</details>\n", e->run->out);
    html_free(&rows);
}

static void put_terms(FILE *out)
{
    fputs("<details><summary>What the distance counts</summary>\n<p>It is the sum of:</p>\n<ul>\n", out);
    for (int i = 0; i < NEAREST_TERMS; i++) {
        fprintf(out, "<li>%s: ", nearest_term_names[i]);
        html_text(out, nearest_term_texts[i]);
        fputs("</li>\n", out);
    }
    fputs("</ul>\n<p>Below 1, next to nothing differs; from 3 on, the regime is another one, and the errors say little "
          "about this point. These weights are assumed. Batch, sequence length, network and recomputation do not "
          "count.</p>\n</details>\n",
        out);
}

/* The least and the most of the points: "1.5 to 3.4". */
static const char *span(
    struct arena *arena, const struct evidence *e, double (*of)(const struct nearest *), double times)
{
    double low = HUGE_VAL, high = 0;
    for (int i = 0; i < e->points->n; i++) {
        if (e->found[i].n == 0)
            continue;
        low = fmin(low, times * of(&e->found[i]));
        high = fmax(high, times * of(&e->found[i]));
    }
    const char *a = arena_printf(arena, "%.1f", low), *b = arena_printf(arena, "%.1f", high);
    return strcmp(a, b) == 0 ? a : arena_printf(arena, "%s to %s", a, b);
}

static double nearest_of(const struct nearest *found)
{
    return found->runs[0].distance;
}

static double median_of(const struct nearest *found)
{
    return found->median;
}

static double p90_of(const struct nearest *found)
{
    return found->p90;
}

/* How sure each regime is, once. */
static void put_regimes(const struct evidence *e)
{
    for (int i = 0; i < e->points->n; i++) {
        struct regime regime;
        double waiting = 0; /* of the point that waits most */
        bool known = false;
        for (int j = 0; j < e->points->n; j++) {
            bool alike = regime_rung_of(&e->jobs[j], &e->jobs[i]) == REGIME_ALIKE;
            known |= alike && j < i;
            waiting = alike ? fmax(waiting, strtod(html_cell(e->points, j, WAITING), NULL)) : waiting;
        }
        if (known)
            continue;
        regime_find(&regime, e->run->measured, &e->jobs[i], REGIME_OF_SPEED, waiting, NULL);
        fputs("<p>How sure: ", e->run->out);
        html_text(e->run->out, regime_text(e->run->arena, &regime, &e->jobs[i]));
        fputs(".</p>\n", e->run->out);
    }
}

static void put_evidence(const struct evidence *e)
{
    struct arena *arena = e->run->arena;
    int n = 0, most = 0;
    for (int i = 0; i < e->points->n; i++)
        most = e->found[i].n > most ? e->found[i].n : most;
    put_regimes(e);
    if (most == 0) {
        fputs("<p>No published run on GPUs of this generation, with products in this precision, is at hand.</p>\n",
            e->run->out);
        return;
    }
    for (int r = 0; r < e->run->measured->table.rows.n; r++)
        n += e->run->measured->table.rows.at[r].has_error;
    fprintf(e->run->out,
        "<p>flopcast was compared with %d published runs. The distance to the nearest one on GPUs of this generation, "
        "with "
        "products in this precision, is %s (what it counts stands below). The %d nearest that no fit "
        "rests on were predicted with a median error of <b>%s %%</b>; 9 of 10 were within <b>%s %%</b> (tokens/s per "
        "GPU).</p>\n",
        n, span(arena, e, nearest_of, 1), most, span(arena, e, median_of, PERCENT), span(arena, e, p90_of, PERCENT));
    put_points(e);
    put_terms(e->run->out);
    put_runs(e);
}

enum status page_evidence(const struct page_run *run, struct diag *diag)
{
    struct html_rows points;
    fputs("<h3>Evidence for this regime</h3>\n", run->out);
    enum status status = page_ask(&points, run->store, page_job_sql, diag);
    struct evidence e = {.run = run,
        .points = &points,
        .jobs = ARENA_ARRAY(run->arena, struct nearest_job, points.n + 1),
        .found = ARENA_ARRAY(run->arena, struct nearest, points.n + 1)};
    bool any = run->measured != NULL && status == STATUS_OK && points.n > 0;
    for (int i = 0; i < (any ? points.n : 0); i++) {
        e.jobs[i] = job_of(&points, i, run->arena);
        nearest_find(&e.found[i], run->measured, &e.jobs[i], NULL);
    }
    if (any)
        put_evidence(&e);
    else
        fputs("<p>The file of published runs, results/validated.csv, is not at hand.</p>\n", run->out);
    html_free(&points);
    return status;
}
