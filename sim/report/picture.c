#include "report/picture.h"

#include "report/html.h"

#include <stdbool.h>
#include <string.h>

/* What gnuplot (5.4, svg.trm) writes around a hypertext; in a text of data it has replaced " by '. */
static const char hypertext[] = " onmousemove=\"gnuplot_svg.showHypertext(evt,'",
                  hypertext_end[] = "')\" onmouseout=", title[] = "<title>", title_end[] = "</title>",
                  desc[] = "<desc>", desc_end[] = "</desc>";

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

void picture_inline(FILE *out, const char *svg, const char *prefix, const char *label)
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
