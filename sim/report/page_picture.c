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

void page_picture(const struct page_run *run, const struct page_picture *picture, struct diag *diag)
{
    if (*run->no_pictures)
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
    } else if (status == STATUS_INPUT) { /* it has no room, say */
        put_note(run->out, arena_printf(run->arena, "Figure %s is not drawn: ", picture->figure), &own);
    } else {
        int n;
        const char *why = diag_first(&own, &n);
        put_note(run->out, "The page has no pictures: ", &own);
        diag_warn(diag, (struct source_pos){.file = run->page->out}, "the page has no pictures: %.*s", n, why);
        *run->no_pictures = true;
    }
    free(svg);
}

void page_figure(const struct page_run *run, const char *figure, struct diag *diag)
{
    page_picture(run, &(struct page_picture){.figure = figure, .choice = {.run = run->id}}, diag);
}
