/* Any bytes as a text of a page, and as the address of a link. What must hold: no crash, no leak;
 * nothing in the page that the text brought begins a tag, ends an attribute or is no entity; a link
 * leads to http or https only. */
#include "report/html.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* A text that ends where data has a 0 at the latest. */
static char *text_of(const uint8_t *data, size_t size)
{
    char *text = xcalloc(size + 1, 1);
    if (size > 0)
        memcpy(text, data, size);
    return text;
}

static void check_escaped(const char *page)
{
    static const char *const entities[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};
    BUG_IF(page[strcspn(page, "<>\"'")] != '\0', "markup in '%s'", page);
    for (const char *at = strchr(page, '&'); at; at = strchr(at + 1, '&')) {
        bool known = false;
        for (size_t i = 0; i < sizeof entities / sizeof *entities; i++)
            known = known || strncmp(at, entities[i], strlen(entities[i])) == 0;
        BUG_IF(!known, "an entity in '%s'", page);
    }
}

static void check_table(const char *text)
{
    char *page = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&page, &n);
    BUG_IF(!out, "open_memstream failed");
    struct html_rows rows = {.address = 1};
    const struct store_value head[] = {
        {.kind = STORE_TEXT, .text = "run"}, {.kind = STORE_TEXT, .text = "address"}};
    const struct store_value row[] = {
        {.kind = STORE_TEXT, .text = "name"}, {.kind = STORE_TEXT, .text = text}};
    html_take(&rows, 2, head);
    html_take(&rows, 2, row);
    html_table(out, &rows, 0, 1, 0, "caption");
    html_free(&rows);
    fclose(out);
    static const char href[] = "href=\"";
    const char *link = strstr(page, href), *end = link ? strchr(link + strlen(href), '"') : NULL;
    BUG_IF(link && (!end || strncmp(end, "\">name</a></td>", strlen("\">name</a></td>")) != 0),
        "%s", page);
    BUG_IF(link && strncmp(link + strlen(href), "http", strlen("http")) != 0, "%s", page);
    free(page);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = text_of(data, size), *page = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&page, &n);
    BUG_IF(!out, "open_memstream failed");
    html_text(out, text);
    fclose(out);
    check_escaped(page);
    check_table(text);
    free(page);
    free(text);
    return 0;
}
