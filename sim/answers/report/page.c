/* A report as one HTML page without any other file: style, script and pictures stand in it, and
 * its Content-Security-Policy loads nothing from elsewhere.
 *
 * The page is made in memory and written in the end, so a failure leaves no half of one. Each
 * run is a section: what was asked, then the parts of page_parts.c in a fixed order, each from a
 * query (page_*.sql). What is subtle: what is shown is a state of the connection
 * (store/shown.h), so each run is read over a connection opened for it; runs are resolved to
 * their numbers before, since the same run may be chosen by its scenario and by its number. */
#include "report/page.h"

#include "base/file_write.h"
#include "report/page_parts.h"
#include "report/page_texts.h"

#include <stdlib.h>
#include <string.h>

/* ---- a run ---- */

/* Columns of page_run.sql. */
enum {
    ID,
    SCENARIO,
    DESCRIPTION,
    RUN_FILE,
    VERSION,
    CREATED,
    FINISHED,
    POINTS,
    GPU_COUNTS,
    OOM,
    EXPLAINED,
    TAKEN,
    ASSUMPTIONS
};

static void put_element(FILE *out, const char *tag, const char *class, const char *text)
{
    fprintf(out, *class ? "<%s class=\"%s\">" : "<%s>", tag, class);
    html_text(out, text);
    fprintf(out, "</%s>\n", tag);
}

static void put_question(const struct page_run *run, const struct html_rows *about)
{
    FILE *out = run->out;
    put_element(out, "h2", "", run->scenario);
    if (*html_cell(about, 0, DESCRIPTION))
        put_element(out, "p", "", html_cell(about, 0, DESCRIPTION));
    const char *finished = html_cell(about, 0, FINISHED), *points = html_cell(about, 0, POINTS);
    put_element(out, "p", "about",
        arena_printf(run->arena, "Run %lld of %s, begun %s by flopcast %s: %s%s%s point%s.%s",
            (long long)run->id, run->page->db, html_cell(about, 0, CREATED), run->version, finished,
            strcmp(finished, points) == 0 ? "" : " of ",
            strcmp(finished, points) == 0 ? "" : points, plural(strtol(points, NULL, 10)),
            strcmp(finished, points) == 0
                ? ""
                : " It is under way, or was stopped; the same command goes on."));
    if (*html_cell(about, 0, ASSUMPTIONS)) {
        fputs("<details><summary>What is assumed</summary>\n", out);
        put_element(out, "p", "lines", html_cell(about, 0, ASSUMPTIONS));
        fputs("</details>\n", out);
    }
}

static enum status page_put_run(
    struct page_run *run, const struct html_rows *about, struct diag *diag)
{
    static enum status (*const parts[])(const struct page_run *, struct diag *) = {page_answer,
        page_results, page_steps, page_losses, page_timeline, page_memory, page_samples,
        page_dependence, page_evidence, page_months, page_settings, page_repeat};
    enum status status = STATUS_OK;
    fprintf(run->out, "<section id=\"run%lld\">\n", (long long)run->id);
    put_question(run, about);
    for (size_t i = 0; i < sizeof parts / sizeof *parts && status == STATUS_OK; i++)
        status = parts[i](run, diag);
    fputs("</section>\n", run->out);
    return status;
}

/* Opens the database so that it shows the one choice (NULL: the newest run), and asks what run that
 * is. */
static enum status open_run(struct store **store, struct html_rows *about, const char *db,
    const struct store_choice *choice, struct diag *diag)
{
    enum status status = store_open(store, db, STORE_READ, diag);
    if (status == STATUS_OK)
        status = store_show(
            *store, &(struct store_show){.choices = choice, .n_choices = choice != NULL}, diag);
    if (status == STATUS_OK)
        status = page_ask(about, *store, page_run_sql, diag);
    if (status == STATUS_OK && about->n == 0)
        status = diag_input(diag, (struct source_pos){.file = db},
            "no run of this database has a point; store one first, as in: flopcast run SCENARIO "
            "--db %s",
            db);
    return status;
}

static struct store_choice choice_of(const char *run)
{
    bool number = *run && run[strspn(run, "0123456789")] == '\0';
    return number ? (struct store_choice){.run = strtoll(run, NULL, 10)}
                  : (struct store_choice){.scenario = run};
}

/* ---- the page ---- */

struct chosen {
    int64_t id;
    const char *scenario, *description;
};
struct chosen_runs {
    VEC(struct chosen) list;
    struct arena arena;
};

/* Which runs they are; one of them twice is a mistake. */
static enum status page_choose(
    struct chosen_runs *chosen, const struct report_page *page, struct diag *diag)
{
    enum status status = STATUS_OK;
    for (int i = 0; i == 0 || i < page->n_runs; i++) {
        struct store *store = NULL;
        struct html_rows about = {0};
        struct store_choice choice =
            page->n_runs ? choice_of(page->runs[i]) : (struct store_choice){0};
        enum status one = open_run(&store, &about, page->db, page->n_runs ? &choice : NULL, diag);
        int64_t id = one == STATUS_OK ? strtoll(html_cell(&about, 0, ID), NULL, 10) : 0;
        for (int j = 0; j < chosen->list.n && one == STATUS_OK; j++)
            if (chosen->list.at[j].id == id)
                one = diag_input(diag, (struct source_pos){0},
                    "run %lld is chosen twice; name it once", (long long)id);
        if (one == STATUS_OK)
            vec_push(&chosen->list,
                (struct chosen){id, arena_strdup(&chosen->arena, html_cell(&about, 0, SCENARIO)),
                    arena_strdup(&chosen->arena, html_cell(&about, 0, DESCRIPTION))});
        status = one > status ? one : status;
        html_free(&about);
        store_close(store);
    }
    return status;
}

static void page_put_head(FILE *out, const struct chosen_runs *chosen)
{
    int n = chosen->list.n;
    fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta "
          "name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta "
          "http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
          "'unsafe-inline'; script-src 'unsafe-inline'\">\n<title>",
        out);
    for (int i = 0; i < n; i++) {
        fputs(i ? ", " : "", out);
        html_text(out, chosen->list.at[i].scenario);
    }
    fprintf(out,
        " - flopcast</title>\n<style>\n%s</style>\n</head>\n<body>\n<main>\n<h1>flopcast: what was "
        "simulated</h1>\n<p class=\"phone\">Wide tables move sideways; pictures fit, turn the "
        "screen to enlarge them.</p>\n",
        page_css);
    if (n < 2)
        return;
    fputs("<ul>\n", out);
    for (int i = 0; i < n; i++) {
        const struct chosen *run = &chosen->list.at[i];
        fprintf(out, "<li><a href=\"#run%lld\">", (long long)run->id);
        html_text(out, run->scenario);
        fprintf(out, "</a> (run %lld)%s", (long long)run->id, *run->description ? ": " : "");
        html_text(out, run->description);
        fputs("</li>\n", out);
    }
    fputs("</ul>\n", out);
}

/* What all runs of a page share. */
struct shared {
    const struct report_page *page;
    FILE *out;
    struct page_gnuplot gnuplot;
};

static enum status put_chosen(struct shared *shared, int64_t id, struct diag *diag)
{
    const struct report_page *page = shared->page;
    struct store *store = NULL;
    struct html_rows about = {0};
    struct arena arena = ARENA_INIT;
    enum status status =
        open_run(&store, &about, page->db, &(struct store_choice){.run = id}, diag);
    if (status == STATUS_OK) {
        struct page_run run = {.page = page,
            .out = shared->out,
            .gnuplot = &shared->gnuplot,
            .store = store,
            .id = id,
            .scenario = html_cell(&about, 0, SCENARIO),
            .file = html_cell(&about, 0, RUN_FILE),
            .version = html_cell(&about, 0, VERSION),
            .gpu_counts = strtol(html_cell(&about, 0, GPU_COUNTS), NULL, 10),
            .oom = *html_cell(&about, 0, OOM) == '1',
            .explained = strcmp(html_cell(&about, 0, EXPLAINED), "0") != 0,
            .arena = &arena};
        status = page_put_run(&run, &about, diag);
    }
    html_free(&about);
    store_close(store);
    arena_release(&arena);
    return status;
}

enum status report_page(const struct report_page *page, struct diag *diag)
{
    struct chosen_runs chosen = {.arena = ARENA_INIT};
    char *text = NULL;
    size_t n = 0;
    FILE *out = xmemstream(&text, &n);
    enum status status = page_choose(&chosen, page, diag);
    struct shared shared = {.page = page, .out = out};
    if (status == STATUS_OK)
        page_put_head(out, &chosen);
    for (int i = 0; i < chosen.list.n && status == STATUS_OK; i++)
        status = put_chosen(&shared, chosen.list.at[i].id, diag);
    fprintf(out, "</main>\n<script>\n%s</script>\n</body>\n</html>\n", page_js);
    fclose(out);
    if (status == STATUS_OK)
        status = file_write(page->out, text, n, diag);
    free(text);
    vec_free(&chosen.list);
    arena_release(&chosen.arena);
    return status;
}
