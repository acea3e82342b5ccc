/* The parts of a page about one run: answer, results, steps, losses, time line, memory, samples,
 * sensitivity, evidence, months of training, settings, and the command that repeats it.
 *
 * Most parts are a query whose rows become a table or sentences, and a figure. A part of which
 * the database holds nothing is left out or says which command adds it. What is subtle:
 * explanations and other studies are of a scenario and not of a run, so they are read over a
 * second connection that shows the scenario; the order of columns of the queries is repeated
 * here as enums; the command is written so that a shell and YAML both read the values back as
 * they were. */
#include "report/page_parts.h"

#include "base/files.h"
#include "report/page_texts.h"
#include "report/script.h"
#include "store/shown.h"
#include "scenario/sure.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- how sure it is ---- */

/* Columns of page_job.sql. */
enum { GPU, NARROW_GPUS, NARROW_LOW, NARROW_HIGH, WIDE_GPUS, WIDE_LOW, WIDE_HIGH };

static struct sure_range range_at(const struct html_rows *rows, int row, int low, int high)
{
    return (struct sure_range){
        true, strtod(html_cell(rows, row, low), NULL), strtod(html_cell(rows, row, high), NULL), 1};
}

static const char *page_parts_arch_of(struct arena *arena, const char *gpu)
{
    struct hw_gpu read;
    struct diag unread = DIAG_INIT;
    return hw_load_gpu(&read, files_find(arena, FILES_GPUS, gpu), arena, &unread) == STATUS_OK
               ? read.arch
               : "";
}

/* A row for each GPU; the range comes from the points, the sentence from the
 * measured runs. */
enum status page_evidence(const struct page_run *run, struct diag *diag)
{
    struct html_rows rows;
    struct sure_numbers numbers;
    bool known = sure_load_own(&numbers, run->arena); /* else no point has an interval */
    enum status status = page_ask(&rows, run->store, page_job_sql, diag);
    if (status == STATUS_OK && known && rows.n > 0)
        fputs("<h3>How sure it is</h3>\n", run->out);
    for (int i = 0; status == STATUS_OK && known && i < rows.n; i++) {
        const char *arch = page_parts_arch_of(run->arena, html_cell(&rows, i, GPU));
        struct sure_asked asked = {.arch = arch,
            .evidence = sure_evidence(&numbers, arch),
            .narrowest = range_at(&rows, i, NARROW_LOW, NARROW_HIGH),
            .widest = range_at(&rows, i, WIDE_LOW, WIDE_HIGH),
            .narrowest_gpus = strtoll(html_cell(&rows, i, NARROW_GPUS), NULL, 10),
            .widest_gpus = strtoll(html_cell(&rows, i, WIDE_GPUS), NULL, 10)};
        fputs("<p>", run->out);
        html_text(run->out, sure_sentence(run->arena, &numbers, &asked));
        fputs(".</p>\n", run->out);
    }
    html_free(&rows);
    return status;
}

enum status page_ask(
    struct html_rows *rows, struct store *store, const char *sql, struct diag *diag)
{
    *rows = (struct html_rows){.arena = ARENA_INIT};
    return store_query(store, sql, (struct source_pos){0}, html_take, rows, diag);
}

/* Studies are of a scenario and of no run, as explanations. */
static void study_figure(const struct page_run *run, const char *figure, struct diag *diag)
{
    page_picture(
        run, &(struct page_picture){.figure = figure, .choice = {.scenario = run->scenario}}, diag);
}

/* How many rows from first on have the same first cell. */
static int alike_rows(const struct html_rows *rows, int first)
{
    int n = 0;
    while (first + n < rows->n &&
           strcmp(html_cell(rows, first + n, 0), html_cell(rows, first, 0)) == 0)
        n++;
    return n;
}

/* A table for each text of the first column, which is its caption. */
static void put_tables(FILE *out, const struct html_rows *rows)
{
    for (int first = 0, n = 0; first < rows->n; first += n) {
        n = alike_rows(rows, first);
        html_table(out, rows, first, n, 1, html_cell(rows, first, 0));
    }
}

/* Where the query has rows: what stands above them, and a figure of the scenario, unless NULL; the
 * rows as a table, without a caption as those of put_tables(). */
static enum status page_parts_put_table(const struct page_run *run, const char *sql,
    const char *above, const char *figure, const char *caption, struct diag *diag)
{
    struct html_rows rows;
    enum status status = page_ask(&rows, run->store, sql, diag);
    if (status == STATUS_OK && rows.n > 0) {
        fputs(above ? above : "", run->out);
        if (figure)
            study_figure(run, figure, diag);
        if (caption)
            html_table(run->out, &rows, 0, rows.n, 0, caption);
        else
            put_tables(run->out, &rows);
    }
    html_free(&rows);
    return status;
}

/* The sentence that answers, then what it looks like. The curve of a figure made for the scenario,
 * where there is one for the scenario (plots/README.md), comes first. */
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
    const struct report_plot plot = {
        .folder = run->page->folder, .others = run->page->others, .figure = run->scenario};
    bool own = script_is_of(&plot, run->scenario);
    page_figure(run, own ? run->scenario : run->gpu_counts > 1 ? "scaling" : "speed", diag);
    return status;
}

enum status page_results(const struct page_run *run, struct diag *diag)
{
    fputs(
        "<h3>Results</h3>\n<p class=\"screen\">A click on a column's name sorts.</p>\n", run->out);
    return page_parts_put_table(run, page_results_sql, NULL, NULL,
        "A row a point; rates and memory of one GPU; in brackets: between these, 90 % of measured "
        "runs of such jobs would be",
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

static void put_losses(const struct page_run *run, const struct html_rows *rows,
    const struct html_rows *parts, struct diag *diag)
{
    FILE *out = run->out;
    enum { OF_CREATED = 2, OF_VERSION = 3 };
    fputs("<h3>Why it loses throughput as it grows</h3>\n<p>By <code>flopcast waterfall</code> ",
        out);
    html_text(out, html_cell(rows, 0, OF_VERSION));
    fputs(" of ", out);
    html_text(out, html_cell(rows, 0, OF_CREATED));
    fputs(": one cause after the other is taken away; the parts add up to the change.</p>\n", out);
    put_sentences(out, rows, "curves");
    study_figure(run, "waterfall", diag);
    put_tables(out, parts);
}

/* Explanations are of a scenario and of no run (store/schema.sql). */
enum status page_losses(const struct page_run *run, struct diag *diag)
{
    struct store *store = NULL;
    struct html_rows rows = {0}, parts = {0};
    const struct store_choice choice = {.scenario = run->scenario};
    if (!run->explained) {
        fputs("<h3>Why it loses throughput as it grows</h3>\n<p>Not explained: <code>flopcast "
              "waterfall</code> with <code>--db</code> adds it.</p>\n",
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
    return page_parts_put_table(run, page_memory_sql, NULL, NULL,
        "GiB at the peak; of a point out of memory, what it would need", diag);
}

/* Columns of page_trace.sql. */
enum { TRACE_RUN, TRACE_POINT, TRACE_IS_PIPELINE, TRACE_FROM, TRACE_TO, TRACE_STEP };

static void page_parts_put_timeline(
    const struct page_run *run, const struct html_rows *rows, struct diag *diag)
{
    double from_s = strtod(html_cell(rows, 0, TRACE_FROM), NULL),
           to_s = strtod(html_cell(rows, 0, TRACE_TO), NULL);
    bool pipeline = *html_cell(rows, 0, TRACE_IS_PIPELINE) == '1';
    fputs("<p>", run->out);
    html_text(run->out, html_cell(rows, 0, TRACE_POINT));
    fprintf(run->out,
        pipeline ? ": the first %.3g of %.4g s, stage by stage; a number is a micro-batch.</p>\n"
                 : ": %.3g of %.4g s, about the first backward kernel, stream by stream.</p>\n",
        to_s - from_s, strtod(html_cell(rows, 0, TRACE_STEP), NULL));
    const struct store_choice choice = {.run = strtoll(html_cell(rows, 0, TRACE_RUN), NULL, 10)};
    page_picture(run,
        &(struct page_picture){
            .figure = "timeline", .choice = choice, .from_s = from_s, .to_s = to_s},
        diag);
}

enum status page_timeline(const struct page_run *run, struct diag *diag)
{
    struct html_rows rows;
    enum status status = page_ask(&rows, run->store, page_trace_sql, diag);
    fputs("<h3>A part of a step</h3>\n", run->out);
    if (status == STATUS_OK && rows.n > 0)
        page_parts_put_timeline(run, &rows, diag);
    else if (status == STATUS_OK)
        fputs("<p>Not traced: <code>flopcast run</code> of one of these points with <code>--trace "
              "step.json.gz</code> and <code>--db</code> adds its timeline.</p>\n",
            run->out);
    html_free(&rows);
    return status;
}

enum status page_samples(const struct page_run *run, struct diag *diag)
{
    return page_parts_put_table(run, page_samples_sql,
        "<h3>Samples</h3>\n<p>Each point was simulated again with numbers drawn from their "
        "standard "
        "errors and other seeds of the noise: the median, and the spread of 90 %. What the model "
        "leaves out is not in it.</p>\n",
        NULL, "TFLOPS per GPU", diag);
}

enum status page_dependence(const struct page_run *run, struct diag *diag)
{
    struct html_rows rows;
    enum status status = page_ask(&rows, run->store,
        "SELECT 1 FROM main.sensitivity WHERE scenario = (SELECT scenario FROM main.run WHERE id = "
        "(SELECT max(run_id) FROM shown))",
        diag);
    if (status == STATUS_OK && rows.n > 0) {
        fputs("<h3>What it depends on</h3>\n<p>One number at a time, one standard error lower and "
              "higher, by <code>flopcast sensitivity</code>.</p>\n",
            run->out);
        study_figure(run, "sensitivity", diag);
    }
    html_free(&rows);
    return status;
}

/* Then days, dollars and energy, where it was said how many tokens are to be trained on. */
enum status page_months(const struct page_run *run, struct diag *diag)
{
    enum status status = page_parts_put_table(run, page_months_sql,
        "<h3>Months of training</h3>\n<p>What failures and checkpoints leave, by "
        "<code>flopcast goodput</code>.</p>\n",
        "goodput", "Shares of the time", diag);
    return status == STATUS_OK ? page_parts_put_table(run, page_totals_sql, NULL, NULL, NULL, diag)
                               : status;
}

/* ---- settings, and the command that repeats them ---- */

enum status page_settings(const struct page_run *run, struct diag *diag)
{
    static const char *const captions[] = {"", "Given on the command line",
        "From the scenario and from files that it names", "Defaults"};
    enum { KINDS = sizeof captions / sizeof *captions, DEFAULTS = KINDS - 1 };
    struct html_rows rows;
    enum status status = page_ask(&rows, run->store, page_settings_sql, diag);
    fputs("<h3>Configuration</h3>\n<p>Every setting, and where its value was set.</p>\n", run->out);
    for (int first = 0, n = 0; status == STATUS_OK && first < rows.n; first += n) {
        long at = strtol(html_cell(&rows, first, 0), NULL, 10);
        n = alike_rows(&rows, first);
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
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./=-+:,@%";
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

/* One value as YAML; a text that YAML could take for something else stands in quotes. Types are
 * those of json_tree() for the stored setting. */
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
        n = alike_rows(rows, first);
        for (int r = 0; r < n; r++)
            list =
                arena_printf(arena, "%s%s%s", list, r ? ", " : "", as_yaml(arena, rows, first + r));
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
            "SELECT max(samples) FROM (SELECT (SELECT samples FROM band WHERE band.point_id = "
            "shown.point_id) AS samples FROM shown) HAVING max(samples) > 0",
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
    fputs(". With the same version, the same files and the same seed the digest of all events is "
          "the same, whatever the machine.</p>\n<details><summary>Digests</summary>\n",
        run->out);
    if (status == STATUS_OK)
        status = page_parts_put_table(run, page_points_sql, NULL, NULL, "A row a point", diag);
    fputs("</details>\n", run->out);
    html_free(&given);
    html_free(&sampled);
    return status;
}
