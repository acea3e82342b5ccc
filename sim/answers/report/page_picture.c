/* A figure as a part of an HTML page: gnuplot's SVG with three changes.
 *
 * Ids and references to them get a prefix, because several pictures share the ids of one page;
 * gnuplot's hover texts, which need its script, become <title> elements, which a browser shows
 * by itself; the outer <svg> loses its size and keeps its viewBox, so the page scales it. The
 * text is changed in one pass that follows only whether it is inside a tag. A figure that cannot
 * be drawn leaves a note in its place. What is subtle: until a picture was drawn, a failure of
 * gnuplot counts as one that is missing: it is said once, and no further picture is tried. Later a
 * failure is that figure's alone. */
#include "report/gnuplot.h"
#include "report/html.h"
#include "report/page_parts.h"
#include "report/script.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* What gnuplot (5.4, svg.trm) writes around a hypertext; in a text of data it has replaced " by '.
 */
static const char hypertext[] = " onmousemove=\"gnuplot_svg.showHypertext(evt,'",
                  hypertext_end[] = "')\" onmouseout=", title[] = "<title>",
                  title_end[] = "</title>", desc[] = "<desc>", desc_end[] = "</desc>";

static bool starts(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* What ids and references to them begin with; the id follows. */
static size_t before_id(const char *at)
{
    static const char *const starts_of[] = {" id=\"", " id='", "href=\"#", "href='#", "url(#"};
    for (size_t i = 0; i < sizeof starts_of / sizeof *starts_of; i++)
        if (starts(at, starts_of[i]))
            return strlen(starts_of[i]);
    return 0;
}

/* Behind the element at `at`, which ends so; where it does not end, at its own end. */
static const char *behind(const char *at, const char *end)
{
    const char *found = strstr(at, end);
    return found ? found + strlen(end) : at + strlen(at);
}

/* The hypertext that begins at `at` as a title, in place of the empty one behind it. */
static const char *put_hypertext(FILE *out, const char *at)
{
    const char *text = at + strlen(hypertext), *end = strstr(text, hypertext_end);
    if (!end)
        return at + strlen(at);
    fprintf(out, ">%s", title);
    html_utf8(out, text, (size_t)(end - text));
    fputs(title_end, out);
    return behind(end, title_end);
}

static void put_body(FILE *out, const char *svg, const char *prefix)
{
    bool in_tag = false;
    while (*svg) {
        if (starts(svg, title)) { /* names of plots that nobody gave */
            svg = behind(svg, title_end);
        } else if (starts(svg, desc)) {
            svg = behind(svg, desc_end);
        } else if (in_tag && starts(svg, hypertext)) {
            svg = put_hypertext(out, svg);
            in_tag = false;
        } else if (in_tag && before_id(svg) > 0) {
            size_t n = before_id(svg);
            fprintf(out, "%.*s%s", (int)n, svg, prefix);
            svg += n;
        } else {
            in_tag = *svg == '<' || (in_tag && *svg != '>');
            size_t n = 1 + strcspn(svg + 1, "< >\"'hu");
            html_utf8(out, svg, n);
            svg += n;
        }
    }
}

/* An SVG of gnuplot's as an element of HTML: `prefix` before each id and each reference to one, so
 * that a page can hold several; its hypertexts are titles, which a browser shows under the pointer
 * without a script. label: what a screen reader says in place of it. */
static void put_picture(FILE *out, const char *svg, const char *prefix, const char *label)
{
    const char *open = strstr(svg, "<svg"), *box = open ? strstr(open, "viewBox=\"") : NULL,
               *body = open ? strchr(open, '>') : NULL;
    if (!box || !body || box > body)
        return;
    box += strlen("viewBox=\"");
    fprintf(out, "<svg viewBox=\"%.*s\" role=\"img\" aria-label=\"", (int)strcspn(box, "\""), box);
    html_text(out, label);
    fputs("\">", out);
    put_body(out, body + 1, prefix);
}

static enum status page_picture_draw(
    char **svg, const struct page_run *run, const struct page_picture *picture, struct diag *diag)
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

/* In the place of a picture: the figure has no room, say, or gnuplot fell over it; or there is no
 * gnuplot at all. */
static void put_missing(const struct page_run *run, const char *figure, enum status status,
    const struct diag *why, struct diag *diag)
{
    bool all = status == STATUS_IO && !run->gnuplot->works;
    const char *what = all ? "The page has no pictures"
                           : arena_printf(run->arena, "Figure %s is not drawn", figure);
    put_note(run->out, arena_printf(run->arena, "%s: ", what), why);
    int n;
    const char *first = diag_first(why, &n);
    if (all)
        diag_warn(diag, (struct source_pos){.file = run->page->out},
            "the page has no pictures: %.*s", n, first);
    else if (status == STATUS_IO)
        diag_warn(diag, (struct source_pos){.file = run->page->out}, "figure %s is not drawn: %.*s",
            figure, n, first);
    run->gnuplot->is_missing = all;
}

void page_picture(const struct page_run *run, const struct page_picture *picture, struct diag *diag)
{
    if (run->gnuplot->is_missing)
        return;
    char *svg = NULL;
    struct diag own = DIAG_INIT;
    enum status status = page_picture_draw(&svg, run, picture, &own);
    if (status == STATUS_OK) {
        fputs("<figure tabindex=\"0\">", run->out);
        put_picture(run->out, svg,
            arena_printf(run->arena, "run%lld-%s-", (long long)run->id, picture->figure),
            arena_printf(run->arena, "Figure %s of %s; its numbers are in the tables",
                picture->figure, run->scenario));
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
