/* The page of evidence: tables in Markdown between the markers of a file. A marker names its
 * table; the one without a name stands for several and what sure_fit.h says.
 *
 * The file is read whole, rewritten into memory, and written only if every marker was understood
 * and has an end, so a mistake leaves it as it was. What stands outside the markers is copied
 * byte for byte. A marker NAME is the script page_name.sql, with '_' for what is no letter. */
#include "base/file_write.h"
#include "rows/sheet.h"
#include "lab/validate_parts.h"
#include "validate/tables.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* "<!-- begin NAME: written ... -->", and without a name for the evidence. */
static const char BEGIN[] = "<!-- begin", WRITTEN[] = ": written by flopcast validate --page -->\n",
                  END[] = "<!-- end -->\n";

static void put_evidence(FILE *out, const struct validate_page *page, struct diag *diag)
{
    static const char *const parts[] = {"page_source", "", "page_predictions", "made", "page_apart",
        "page_framework", "page_layout", "page_gpus", "page_waiting", "page_claims"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (*parts[i])
            sheet_markdown(out, page->evidence, texts_find(validate_tables, parts[i]), diag);
        else
            validate_sure_page(out, page->rows, page->left);
}

/* The whole file, for free(); NULL: it cannot be read. */
static char *validate_page_read_file(const char *path, struct diag *diag)
{
    FILE *in = fopen(path, "r");
    VEC(char) text = {0};
    for (int c; in && (c = fgetc(in)) != EOF;)
        vec_push(&text, (char)c);
    bool failed = !in || ferror(in);
    if (in)
        fclose(in);
    vec_push(&text, '\0');
    if (!failed)
        return text.at;
    diag_io(diag, (struct source_pos){.file = path}, "cannot be read: %s", strerror(errno));
    vec_free(&text);
    return NULL;
}

/* The table that a marker names, page_NAME with '_' for what are no small letters; NULL: there is
 * none. */
static const struct text *validate_page_table_of(const char *name, size_t n)
{
    char file[64] = "page_";
    size_t at = strlen(file);
    for (size_t i = 0; i < n && at + 1 < sizeof file; i++)
        file[at++] =
            (char)(isalpha((unsigned char)name[i]) ? tolower((unsigned char)name[i]) : '_');
    return texts_find(validate_tables, file);
}

/* What stands behind the marker at the text; *end is behind the marker. False: it names nothing. */
static bool put_part(FILE *out, const char *text, const char *before, const char **end,
    const struct validate_page *page, struct diag *diag)
{
    const char *name = text + strlen(BEGIN), *written = strstr(name, WRITTEN);
    bool evidence = written == name;
    const struct text *table = written && *name == ' '
                                   ? validate_page_table_of(name + 1, (size_t)(written - name - 1))
                                   : NULL;
    if (!evidence && !table)
        return false;
    *end = written + strlen(WRITTEN);
    fwrite(before, 1, (size_t)(*end - before), out);
    if (evidence)
        put_evidence(out, page, diag);
    else
        sheet_markdown(out, page->evidence, table, diag);
    return true;
}

/* The text with its parts anew; false: no part is there, or one has no end. */
static bool validate_page_rewrite(
    FILE *out, const char *text, const struct validate_page *page, struct diag *diag)
{
    int n = 0;
    for (const char *begin; (begin = strstr(text, BEGIN)); n++) {
        const char *inside = NULL, *end = strstr(begin, END);
        if (!end || !put_part(out, begin, text, &inside, page, diag))
            return false;
        text = end;
    }
    fputs(text, out);
    return n > 0;
}

enum status validate_page_write(
    const char *path, const struct validate_page *page, struct diag *diag)
{
    struct source_pos at = {.file = path};
    char *text = validate_page_read_file(path, diag), *made = NULL;
    size_t size = 0;
    FILE *memory = text ? xmemstream(&made, &size) : NULL;
    bool good = memory && validate_page_rewrite(memory, text, page, diag);
    if (memory)
        fclose(memory);
    if (text && !good)
        diag_input(diag, at,
            "has no lines '%s%.*s' and '%.*s', between which the tables go, or others that begin "
            "so",
            BEGIN, (int)sizeof WRITTEN - 2, WRITTEN, (int)sizeof END - 2, END);
    if (good)
        file_write(path, made, size, diag);
    free(made);
    free(text);
    return diag->worst;
}
