#include "report/page_parts.h"

#include "report/page_texts.h"
#include "report/script.h"
#include "store/shown.h"
#include "validate/regime.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- the measured runs that are nearest to the points of a run: how far they are, and how well they were predicted
 * ---- */

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
    enum { OF_ERRORS = 6 }; /* the last of these, of runs that are near */
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
        if (found->n_near == 0) {
            for (int c = 0; c < OF_ERRORS; c++)
                add(&rows, NULL);
            continue;
        }
        add_number(&rows, 1, found->runs[found->n_near - 1].distance);
        add_number(&rows, 0, found->n_near);
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

/* The least and the most of the points that have at least one run, near or not: "1.5 to 3.4". */
static const char *span(
    struct arena *arena, const struct evidence *e, double (*of)(const struct nearest *), double times, bool near)
{
    double low = HUGE_VAL, high = 0;
    for (int i = 0; i < e->points->n; i++) {
        if ((near ? e->found[i].n_near : e->found[i].n) == 0)
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
    int n = 0, any = 0, most = 0, far = 0;
    for (int i = 0; i < e->points->n; i++) {
        any += e->found[i].n;
        most = e->found[i].n_near > most ? e->found[i].n_near : most;
        far += e->found[i].n_near == 0;
    }
    put_regimes(e);
    if (any == 0) {
        fputs("<p>No published run on GPUs of this generation, with products in this precision, is at hand.</p>\n",
            e->run->out);
        return;
    }
    for (int r = 0; r < e->run->measured->table.rows.n; r++)
        n += e->run->measured->table.rows.at[r].has_error;
    fprintf(e->run->out,
        "<p>flopcast was compared with %d published runs. The distance to the nearest one on GPUs of this generation, "
        "with products in this precision, is %s (what it counts stands below).",
        n, span(arena, e, nearest_of, 1, false));
    if (most > 0)
        fprintf(e->run->out,
            " Of those nearer than %d that no fit rests on, the %d nearest were predicted with a median error of <b>%s "
            "%%</b>; 9 of 10 were within <b>%s %%</b> (tokens/s per GPU).",
            NEAREST_FAR, most, span(arena, e, median_of, PERCENT, true), span(arena, e, p90_of, PERCENT, true));
    if (far > 0)
        fprintf(e->run->out, " %s run is nearer than %d%s: their errors say little here.",
            most ? "Of some points no" : "No", NEAREST_FAR, most ? "" : " to any point");
    fputs("</p>\n", e->run->out);
    put_points(e);
    put_terms(e->run->out);
    put_runs(e);
}

enum status page_evidence(const struct page_run *run, struct diag *diag)
{
    struct html_rows points;
    fputs("<h3>How sure it is: evidence for this regime</h3>\n", run->out);
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

enum status page_ask(struct html_rows *rows, struct store *store, const char *sql, struct diag *diag)
{
    *rows = (struct html_rows){.arena = ARENA_INIT};
    return store_query(store, sql, (struct source_pos){0}, html_take, rows, diag);
}

static enum status put_table(const struct page_run *run, const char *sql, const char *caption, struct diag *diag)
{
    struct html_rows rows;
    enum status status = page_ask(&rows, run->store, sql, diag);
    if (status == STATUS_OK && rows.n > 0)
        html_table(run->out, &rows, 0, rows.n, 0, caption);
    html_free(&rows);
    return status;
}

/* The sentence that answers, then what it looks like. The curve of a figure made for the scenario, where there is one
 * for the scenario (plots/README.md), comes first. */
enum status page_answer(const struct page_run *run, struct diag *diag)
{
    struct html_rows rows;
    enum status status = page_ask(&rows, run->store, page_answer_sql, diag);
    for (int r = 0; r < rows.n && status == STATUS_OK; r++) {
        fputs("<p class=\"answer\">", run->out);
        html_text(run->out, html_cell(&rows, r, 0));
        fputs("</p>\n", run->out);
    }
    html_free(&rows);
    const struct report_plot plot = {.folder = run->page->folder, .others = run->page->others, .figure = run->scenario};
    bool own = script_is_of(&plot, run->scenario);
    page_figure(run, own ? run->scenario : run->gpu_counts > 1 ? "scaling" : "speed", diag);
    return status;
}

enum status page_results(const struct page_run *run, struct diag *diag)
{
    fputs("<h3>Results</h3>\n<p class=\"screen\">A click on a column's name sorts.</p>\n", run->out);
    return put_table(run, page_results_sql,
        "A row a point; rates and memory of one GPU; in brackets: between these, 90 % of measured runs of such jobs "
        "would be",
        diag);
}

/* "label: sentence" for each row; of more than a few only the first stand open. */
static void put_sentences(FILE *out, const struct html_rows *rows, const char *what)
{
    enum { OPEN = 4 };
    for (int r = 0; r < rows->n; r++) {
        if (r == OPEN)
            fprintf(out, "<details><summary>%d more %s</summary>\n", rows->n - OPEN, what);
        fputs("<p><b>", out);
        html_text(out, html_cell(rows, r, 0));
        fputs(":</b> ", out);
        html_text(out, html_cell(rows, r, 1));
        fputs("</p>\n", out);
    }
    if (rows->n > OPEN)
        fputs("</details>\n", out);
}

enum status page_steps(const struct page_run *run, struct diag *diag)
{
    struct html_rows rows;
    enum status status = page_ask(&rows, run->store, page_steps_sql, diag);
    if (status == STATUS_OK && rows.n > 0) {
        fputs("<h3>Where the time of a step goes</h3>\n", run->out);
        put_sentences(run->out, &rows, "points");
        page_figure(run, "breakdown", diag);
    }
    html_free(&rows);
    return status;
}

/* parts: of all explanations, those of one in a row. */
static void put_waterfall(FILE *out, const struct html_rows *parts, const char *id, const char *caption)
{
    int first = 0, n = 0;
    while (first < parts->n && strcmp(html_cell(parts, first, 0), id) != 0)
        first++;
    while (first + n < parts->n && strcmp(html_cell(parts, first + n, 0), id) == 0)
        n++;
    html_table(out, parts, first, n, 1, caption);
}

static void put_losses(
    const struct page_run *run, const struct html_rows *rows, const struct html_rows *parts, struct diag *diag)
{
    FILE *out = run->out;
    enum { ID = 2, CAPTION = 3, CREATED = 4, VERSION = 5 };
    fputs("<h3>Why it loses throughput as it grows</h3>\n<p>By <code>flopcast waterfall</code> ", out);
    html_text(out, html_cell(rows, 0, VERSION));
    fputs(" of ", out);
    html_text(out, html_cell(rows, 0, CREATED));
    fputs(": one cause after the other is taken away; the parts add up to the change.</p>\n", out);
    put_sentences(out, rows, "curves");
    page_picture(run, &(struct page_picture){.figure = "waterfall", .choice = {.scenario = run->scenario}}, diag);
    for (int r = 0; r < rows->n; r++)
        put_waterfall(out, parts, html_cell(rows, r, ID), html_cell(rows, r, CAPTION));
}

/* Explanations are of a scenario and of no run (sim/store/schema.sql). */
enum status page_losses(const struct page_run *run, struct diag *diag)
{
    struct store *store = NULL;
    struct html_rows rows = {0}, parts = {0};
    const struct store_choice choice = {.scenario = run->scenario};
    if (!run->explained) {
        fputs("<h3>Why it loses throughput as it grows</h3>\n<p>Not explained: <code>flopcast waterfall</code> with "
              "<code>--db</code> adds it.</p>\n",
            run->out);
        return STATUS_OK;
    }
    enum status status = store_open(&store, run->page->db, STORE_READ, diag);
    if (status == STATUS_OK)
        status = store_show(store, &(struct store_show){.choices = &choice, .n_choices = 1}, diag);
    if (status == STATUS_OK)
        status = page_ask(&rows, store, page_losses_sql, diag);
    if (status == STATUS_OK)
        status = page_ask(&parts, store, page_waterfall_sql, diag);
    if (status == STATUS_OK && rows.n > 0)
        put_losses(run, &rows, &parts, diag);
    html_free(&rows);
    html_free(&parts);
    store_close(store);
    return status;
}

enum status page_memory(const struct page_run *run, struct diag *diag)
{
    fputs("<h3>Memory of a GPU by category</h3>\n", run->out);
    page_figure(run, "memory", diag);
    if (!run->oom)
        page_figure(run, "memory_timeline", diag);
    return put_table(run, page_memory_sql, "GiB at the peak; of a point out of memory, what it would need", diag);
}

/* Columns of page_trace.sql. */
enum { TRACE_RUN, TRACE_POINT, TRACE_IS_PIPELINE, TRACE_FROM, TRACE_TO, TRACE_STEP };

static void put_timeline(const struct page_run *run, const struct html_rows *rows, struct diag *diag)
{
    double from_s = strtod(html_cell(rows, 0, TRACE_FROM), NULL), to_s = strtod(html_cell(rows, 0, TRACE_TO), NULL);
    bool pipeline = *html_cell(rows, 0, TRACE_IS_PIPELINE) == '1';
    fputs("<p>", run->out);
    html_text(run->out, html_cell(rows, 0, TRACE_POINT));
    fprintf(run->out,
        pipeline ? ": the first %.3g of %.4g s, stage by stage; a number is a micro-batch.</p>\n"
                 : ": %.3g of %.4g s, about the first backward kernel, stream by stream.</p>\n",
        to_s - from_s, strtod(html_cell(rows, 0, TRACE_STEP), NULL));
    const struct store_choice choice = {.run = strtoll(html_cell(rows, 0, TRACE_RUN), NULL, 10)};
    page_picture(
        run, &(struct page_picture){.figure = "timeline", .choice = choice, .from_s = from_s, .to_s = to_s}, diag);
}

enum status page_timeline(const struct page_run *run, struct diag *diag)
{
    struct html_rows rows;
    enum status status = page_ask(&rows, run->store, page_trace_sql, diag);
    fputs("<h3>A part of a step</h3>\n", run->out);
    if (status == STATUS_OK && rows.n > 0)
        put_timeline(run, &rows, diag);
    else if (status == STATUS_OK)
        fputs("<p>Not traced: <code>flopcast run</code> of one of these points with <code>--trace step.json.gz</code> "
              "and <code>--db</code> adds its timeline.</p>\n",
            run->out);
    html_free(&rows);
    return status;
}

enum status page_samples(const struct page_run *run, struct diag *diag)
{
    struct html_rows rows;
    enum status status = page_ask(&rows, run->store, page_samples_sql, diag);
    if (status == STATUS_OK && rows.n > 0) {
        fputs("<h3>Samples</h3>\n<p>Each point was simulated again with numbers drawn from their standard errors and "
              "other seeds of the noise: the median, and the spread of 90 %. <i>Of the model</i>: with what the model "
              "leaves out.</p>\n",
            run->out);
        html_table(run->out, &rows, 0, rows.n, 0, "TFLOPS per GPU");
    }
    html_free(&rows);
    return status;
}

/* Studies are of a scenario and of no run, as explanations. */
static void study_figure(const struct page_run *run, const char *figure, struct diag *diag)
{
    page_picture(run, &(struct page_picture){.figure = figure, .choice = {.scenario = run->scenario}}, diag);
}

enum status page_dependence(const struct page_run *run, struct diag *diag)
{
    struct html_rows rows;
    enum status status = page_ask(&rows, run->store,
        "SELECT count(*) FROM main.sensitivity WHERE scenario = (SELECT scenario FROM main.run WHERE id = (SELECT "
        "max(run_id) FROM shown)) HAVING count(*) > 0",
        diag);
    if (status == STATUS_OK && rows.n > 0) {
        fputs("<h3>What it depends on</h3>\n<p>One number at a time, one standard error lower and higher, by "
              "<code>flopcast sensitivity</code>.</p>\n",
            run->out);
        study_figure(run, "sensitivity", diag);
    }
    html_free(&rows);
    return status;
}

/* Days, dollars and energy, where it was said how many tokens are to be trained on. */
static enum status months_totals(const struct page_run *run, struct diag *diag)
{
    struct html_rows rows;
    enum status status = page_ask(&rows, run->store, page_totals_sql, diag);
    if (status == STATUS_OK && rows.n > 0)
        html_table(run->out, &rows, 0, rows.n, 1, html_cell(&rows, 0, 0));
    html_free(&rows);
    return status;
}

enum status page_months(const struct page_run *run, struct diag *diag)
{
    struct html_rows rows;
    enum status status = page_ask(&rows, run->store, page_months_sql, diag);
    if (status == STATUS_OK && rows.n > 0) {
        fputs("<h3>Months of training</h3>\n<p>What failures and checkpoints leave, by <code>flopcast "
              "goodput</code>.</p>\n",
            run->out);
        study_figure(run, "goodput", diag);
        html_table(run->out, &rows, 0, rows.n, 0, "Shares of the time");
        status = months_totals(run, diag);
    }
    html_free(&rows);
    return status;
}

/* ---- settings, and the command that repeats them ---- */

enum status page_settings(const struct page_run *run, struct diag *diag)
{
    static const char *const captions[] = {
        "", "Given on the command line", "From the scenario and from files that it names", "Defaults"};
    enum { KINDS = sizeof captions / sizeof *captions, DEFAULTS = KINDS - 1 };
    struct html_rows rows;
    enum status status = page_ask(&rows, run->store, page_settings_sql, diag);
    fputs("<h3>Configuration</h3>\n<p>Every setting, and where its value was set.</p>\n", run->out);
    for (int first = 0, n = 0; status == STATUS_OK && first < rows.n; first += n) {
        const char *kind = html_cell(&rows, first, 0);
        long at = strtol(kind, NULL, 10);
        for (n = 0; first + n < rows.n && strcmp(html_cell(&rows, first + n, 0), kind) == 0;)
            n++;
        if (at == DEFAULTS)
            fprintf(run->out, "<details><summary>%d defaults</summary>\n", n);
        html_table(run->out, &rows, first, n, 1, captions[at > 0 && at < KINDS ? at : 0]);
        if (at == DEFAULTS)
            fputs("</details>\n", run->out);
    }
    html_free(&rows);
    return status;
}

/* As a word of a shell's command line. */
static const char *quoted(struct arena *arena, const char *text)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./=-+:,@%";
    const char *out = "";
    if (*text && text[strspn(text, plain)] == '\0')
        return text;
    for (const char *part = text;; part++) {
        size_t n = strcspn(part, "'");
        out = arena_printf(arena, "%s%.*s%s", out, (int)n, part, part[n] ? "'\\''" : "");
        part += n;
        if (!*part)
            return arena_printf(arena, "'%s'", out);
    }
}

/* One value as YAML; a text that YAML could take for something else stands in quotes. */
static const char *as_yaml(struct arena *arena, const struct html_rows *rows, int row)
{
    enum { TYPE = 1, VALUE = 2, UNIT = 3 };
    const char *type = html_cell(rows, row, TYPE), *value = html_cell(rows, row, VALUE),
               *unit = html_cell(rows, row, UNIT);
    if (strcmp(type, "true") == 0 || strcmp(type, "false") == 0 || strcmp(type, "null") == 0)
        return type;
    if (*unit)
        return arena_printf(arena, "%s %s", value, unit);
    if (strcmp(type, "text") != 0 || value[strcspn(value, " ,:[]{}#&*!|>'\"%@`\\")] == '\0')
        return value;
    const char *out = "";
    for (const char *c = value; *c; c++)
        out = arena_printf(arena, strchr("\"\\", *c) ? "%s\\%c" : "%s%c", out, *c);
    return arena_printf(arena, "\"%s\"", out);
}

/* " --set KEY=VALUE" for each key; several values make a sweep. */
static const char *overrides(struct arena *arena, const struct html_rows *rows)
{
    const char *out = "";
    for (int first = 0, n = 0; first < rows->n; first += n) {
        const char *key = html_cell(rows, first, 0), *list = "";
        for (n = 0; first + n < rows->n && strcmp(html_cell(rows, first + n, 0), key) == 0; n++)
            list = arena_printf(arena, "%s%s%s", list, n ? ", " : "", as_yaml(arena, rows, first + n));
        const char *set = arena_printf(arena, n > 1 ? "%s=[%s]" : "%s=%s", key, list);
        out = arena_printf(arena, "%s --set %s", out, quoted(arena, set));
    }
    return out;
}

enum status page_repeat(const struct page_run *run, struct diag *diag)
{
    struct html_rows given, sampled = {0};
    enum status status = page_ask(&given, run->store, page_given_sql, diag);
    if (status == STATUS_OK)
        status = page_ask(&sampled, run->store,
            "SELECT max(samples) FROM (SELECT (SELECT samples FROM band WHERE band.point_id = shown.point_id) AS "
            "samples FROM shown) HAVING max(samples) > 0",
            diag);
    fputs("<h3>How to repeat it</h3>\n<pre>flopcast run ", run->out);
    html_text(run->out, quoted(run->arena, run->file));
    if (status == STATUS_OK) {
        html_text(run->out, overrides(run->arena, &given));
        if (sampled.n > 0)
            fprintf(run->out, " --samples %s", html_cell(&sampled, 0, 0));
    }
    fputs("</pre>\n<p>flopcast ", run->out);
    html_text(run->out, run->version);
    fputs(
        ". With the same version, the same files and the same seed the digest of all events is the same, whatever the "
        "machine.</p>\n<details><summary>Digests</summary>\n",
        run->out);
    if (status == STATUS_OK)
        status = put_table(run, page_points_sql, "A row a point", diag);
    fputs("</details>\n", run->out);
    html_free(&given);
    html_free(&sampled);
    return status;
}
