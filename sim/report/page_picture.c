#include "report/gnuplot.h"
#include "report/page_parts.h"
#include "report/picture.h"
#include "report/script.h"

#include <stdlib.h>
#include <string.h>

static enum status draw(char **svg, const struct page_run *run, const struct page_picture *picture, struct diag *diag)
{
    const struct report_plot plot = {.folder = run->page->folder,
        .others = run->page->others,
        .figure = picture->figure,
        .db = run->page->db,
        .show = {.choices = &picture->choice, .n_choices = 1},
        .out = "page.svg",
        .from = {picture->to_s > picture->from_s, picture->from_s},
        .to = {picture->to_s > picture->from_s, picture->to_s},
        .hover = true};
    char *script = NULL;
    size_t n = 0;
    enum status status = script_make(&script, &plot, diag);
    if (status == STATUS_OK)
        status = gnuplot_run(svg, &n, script, diag);
    free(script);
    return status;
}

static void put_note(FILE *out, const char *before, const struct diag *why)
{
    int n;
    const char *first = diag_first(why, &n);
    fprintf(out, "<p class=\"note\">%s", before);
    html_text(out, first ? strndupa(first, (size_t)n) : "");
    fputs("</p>\n", out);
}

/* In the place of a picture: the figure has no room, say, or gnuplot fell over it; or there is no gnuplot at all. */
static void put_missing(
    const struct page_run *run, const char *figure, enum status status, const struct diag *why, struct diag *diag)
{
    bool all = status == STATUS_IO && !run->gnuplot->works;
    const char *what = all ? "The page has no pictures" : arena_printf(run->arena, "Figure %s is not drawn", figure);
    put_note(run->out, arena_printf(run->arena, "%s: ", what), why);
    int n;
    const char *first = diag_first(why, &n);
    if (all)
        diag_warn(diag, (struct source_pos){.file = run->page->out}, "the page has no pictures: %.*s", n, first);
    else if (status == STATUS_IO)
        diag_warn(diag, (struct source_pos){.file = run->page->out}, "figure %s is not drawn: %.*s", figure, n, first);
    run->gnuplot->is_missing = all;
}

void page_picture(const struct page_run *run, const struct page_picture *picture, struct diag *diag)
{
    if (run->gnuplot->is_missing)
        return;
    char *svg = NULL;
    struct diag own = DIAG_INIT;
    enum status status = draw(&svg, run, picture, &own);
    if (status == STATUS_OK) {
        fputs("<figure tabindex=\"0\">", run->out);
        picture_inline(run->out, svg, arena_printf(run->arena, "run%lld-%s-", (long long)run->id, picture->figure),
            arena_printf(run->arena, "Figure %s of %s; its numbers are in the tables", picture->figure, run->scenario));
        fputs("</figure>\n", run->out);
        diag_merge(diag, &own);
        run->gnuplot->works = true;
    } else {
        put_missing(run, picture->figure, status, &own, diag);
    }
    free(svg);
}

void page_figure(const struct page_run *run, const char *figure, struct diag *diag)
{
    page_picture(run, &(struct page_picture){.figure = figure, .choice = {.run = run->id}}, diag);
}
