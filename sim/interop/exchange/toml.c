/* TOML as YAML in flow style, which the parser of configurations then reads: each table becomes
 * "name": {...}, each pair name: value.
 *
 * What torchtitan's files have is read: tables, pairs, strings of one line, lists over lines;
 * inline tables, arrays of tables and strings of several lines are refused. What is subtle:
 * every line of the input stays a line of the output and columns move by little, so that
 * positions in messages are those of the TOML file. */
#include "exchange/toml.h"

#include <stdlib.h>
#include <string.h>

struct toml {
    const char *name, *at, *end, *line_start;
    int line;
    FILE *out;
    bool in_table;
    struct diag *diag;
};

static bool toml_refuse(const struct toml *t, const char *at, const char *why)
{
    diag_input(
        t->diag, (struct source_pos){t->name, t->line, (int)(at - t->line_start) + 1}, "%s", why);
    return false;
}

static char here(const struct toml *t)
{
    return t->at < t->end ? *t->at : '\n';
}

static bool ends_line(const struct toml *t)
{
    return t->at >= t->end || *t->at == '\n' ||
           (*t->at == '\r' && t->at + 1 < t->end && t->at[1] == '\n');
}

static bool is_bare(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c && strchr("_-+.:", c));
}

static void copy_blanks(struct toml *t)
{
    for (; t->at < t->end && (*t->at == ' ' || *t->at == '\t'); t->at++)
        fputc(' ', t->out);
}

static void toml_skip_comment(struct toml *t)
{
    copy_blanks(t);
    if (here(t) == '#')
        while (!ends_line(t))
            t->at++;
}

static void end_line(struct toml *t)
{
    while (t->at < t->end && *t->at != '\n')
        t->at++;
    t->at += t->at < t->end;
    t->line++;
    t->line_start = t->at;
    fputc('\n', t->out);
}

/* "..." with the escapes that YAML has, too, or '...'. */
static bool copy_string(struct toml *t)
{
    const char *begin = t->at;
    char quote = *t->at;
    if (t->end - t->at >= 3 && t->at[1] == quote && t->at[2] == quote)
        return toml_refuse(t, begin, "strings of several lines are not read; write it on one line");
    fputc(*t->at++, t->out);
    while (!ends_line(t) && *t->at != quote) {
        if (quote == '"' && *t->at == '\\' && t->at + 1 < t->end && t->at[1] != '\n')
            fputc(*t->at++, t->out);
        fputc(*t->at++, t->out);
    }
    if (ends_line(t))
        return toml_refuse(t, begin, "the string does not end; its quote is missing");
    fputc(*t->at++, t->out);
    return true;
}

static bool copy_bare(struct toml *t)
{
    if (!is_bare(here(t)))
        return toml_refuse(t, t->at,
            here(t) == '{' ? "inline tables are not read; write a table, [name]"
                           : "a value is wanted: \"text\", a number, true, false or [a, list]");
    for (; t->at < t->end && is_bare(*t->at); t->at++)
        fputc(*t->at, t->out);
    return true;
}

/* A list may go over lines, with comments. */
static bool copy_list(struct toml *t)
{
    enum { MOST = 8 };
    const char *begin = t->at;
    int depth = 0, first_line = t->line;
    do {
        toml_skip_comment(t);
        if (t->at >= t->end) {
            diag_input(t->diag, (struct source_pos){t->name, first_line, 1},
                "the list does not end; its ] is missing");
            return false;
        }
        char c = *t->at;
        if (ends_line(t)) {
            end_line(t);
        } else if (c == '[' || c == ']' || c == ',') {
            depth += c == '[' ? 1 : c == ']' ? -1 : 0;
            fputc(*t->at++, t->out);
        } else if (!(c == '"' || c == '\'' ? copy_string(t) : copy_bare(t))) {
            return false;
        }
    } while (depth > 0 && depth <= MOST);
    return depth == 0 || toml_refuse(t, begin, "a list of too many lists");
}

static bool copy_value(struct toml *t)
{
    char c = here(t);
    return c == '[' ? copy_list(t) : c == '"' || c == '\'' ? copy_string(t) : copy_bare(t);
}

/* name = value */
static bool copy_pair(struct toml *t)
{
    const char *begin = t->at;
    if (here(t) == '"' || here(t) == '\'' ? !copy_string(t) : !copy_bare(t))
        return false;
    copy_blanks(t);
    if (here(t) != '=')
        return toml_refuse(t, begin, "a line is 'name = value', or '[table]'; there is no '='");
    t->at++;
    fputc(':', t->out);
    if (here(t) != ' ' && here(t) != '\t')
        fputc(' ', t->out); /* YAML wants it; the value is then a column further right */
    copy_blanks(t);
    if (!copy_value(t))
        return false;
    fputc(',', t->out);
    return true;
}

/* [a.b] */
static bool open_table(struct toml *t)
{
    const char *begin = t->at++;
    if (here(t) == '[')
        return toml_refuse(t, begin, "arrays of tables are not read");
    while (here(t) == ' ' || here(t) == '\t')
        t->at++;
    const char *name = t->at;
    while (t->at < t->end && is_bare(*t->at))
        t->at++;
    int length = (int)(t->at - name);
    while (here(t) == ' ' || here(t) == '\t')
        t->at++;
    if (length == 0 || here(t) != ']')
        return toml_refuse(t, begin,
            "a table is '[name]', letters, digits, '-', '_' and '.' between the brackets");
    t->at++;
    fprintf(t->out, "%s\"%.*s\": {", t->in_table ? "}," : "", length, name);
    t->in_table = true;
    return true;
}

static bool copy_line(struct toml *t)
{
    toml_skip_comment(t);
    if (!ends_line(t)) {
        if (!(here(t) == '[' ? open_table(t) : copy_pair(t)))
            return false;
        toml_skip_comment(t);
        if (!ends_line(t))
            return toml_refuse(
                t, t->at, "something stands behind the value; one 'name = value' a line");
    }
    end_line(t);
    return true;
}

enum status toml_parse(
    struct config_doc **out, const char *name, const char *text, size_t n, struct diag *diag)
{
    *out = NULL;
    char *yaml = NULL;
    size_t bytes = 0;
    struct toml t = {.name = name,
        .at = text,
        .end = text + n,
        .line_start = text,
        .line = 1,
        .out = xmemstream(&yaml, &bytes),
        .diag = diag};
    fputc('{', t.out);
    bool whole = true;
    while (whole && t.at < t.end)
        whole = copy_line(&t);
    fputs(t.in_table ? "}}" : "}", t.out);
    fclose(t.out);
    enum status status = whole ? config_parse(out, name, yaml, bytes, diag) : STATUS_INPUT;
    free(yaml);
    return status;
}
