#include "report/script.h"

#include "base/arena.h"
#include "store/store.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* As an expression of gnuplot's in the height, which is in pixels: 20 to a line of characters. */
static const struct {
    const char *suffix, *terminal;
} terminals[] = {
    {".png", "\"pngcairo noenhanced size 1200,\".height.\" font 'DejaVu Sans,13' linewidth 1.5\""},
    {".svg", "\"svg noenhanced size 1200,\".height.\" dynamic font 'DejaVu Sans,13' linewidth 1.5\""},
    {"-", "'dumb noenhanced size 120,'.(height / 20)"},
};

const char *script_terminal(const char *path)
{
    for (size_t i = 0; i < sizeof terminals / sizeof *terminals; i++) {
        size_t n = strlen(path), m = strlen(terminals[i].suffix);
        bool whole = terminals[i].suffix[0] != '.';
        if (n >= m && (!whole || n == m) && strcmp(path + n - m, terminals[i].suffix) == 0)
            return terminals[i].terminal;
    }
    return NULL;
}

/* wrap(text, n): the text in lines of at most n characters. */
static const char wrap[] = "wrap_at(text, i) = i < 2 || text[i:i] eq ' ' ? i : wrap_at(text, i - 1)\n"
                           "wrap(text, n) = strlen(text) <= n ? text : "
                           "text[1:wrap_at(text, n + 1) - 1].\"\\n\".wrap(text[wrap_at(text, n + 1) + 1:*], n)\n";

/* "there are: a, b, c", behind the `used` characters of out, for the message about a figure that is not there. */
static size_t list_figures(char *out, size_t used, size_t n, const char *folder)
{
    struct dirent **entries = NULL;
    int count = scandir(folder, &entries, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        char *dot = strrchr(entries[i]->d_name, '.');
        if (dot && strcmp(dot, ".sql") == 0 && used < n)
            used += (size_t)snprintf(out + used, n - used, "%s %.*s",
                used ? "" : "there are:", (int)(dot - entries[i]->d_name), entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
    return used;
}

/* The text of folder/figure.suffix; path is filled in for messages. */
static enum status read_part(
    char **out, char *path, size_t n, const struct report_plot *plot, const char *suffix, struct diag *diag)
{
    snprintf(path, n, "%s/%s.%s", plot->folder, plot->figure, suffix);
    FILE *in = fopen(path, "r");
    if (!in && errno == ENOENT && plot->others) {
        struct report_plot other = *plot;
        other.folder = plot->others;
        other.others = NULL;
        char other_path[4096];
        snprintf(other_path, sizeof other_path, "%s/%s.%s", other.folder, other.figure, suffix);
        if (access(other_path, F_OK) == 0)
            return read_part(out, path, n, &other, suffix, diag);
        errno = ENOENT;
    }
    if (!in && errno == ENOENT) {
        char figures[1024];
        size_t used = list_figures(figures, 0, sizeof figures, plot->folder);
        if (plot->others)
            used = list_figures(figures, used, sizeof figures, plot->others);
        if (used == 0)
            snprintf(figures, sizeof figures, "the folder holds none; FLOPCAST_PLOTS names another");
        return diag_input(
            diag, (struct source_pos){.file = path}, "there is no figure '%s'; %s", plot->figure, figures);
    }
    size_t size = 0;
    bool ok = in && getdelim(out, &size, '\0', in) > 0 && !ferror(in);
    enum status status =
        ok ? STATUS_OK
           : diag_io(diag, (struct source_pos){.file = path}, "cannot read the figure: %s", strerror(errno));
    if (in)
        fclose(in);
    return status;
}

struct block {
    FILE *out;
    int rows; /* the line of names included */
};

static void write_row(void *self, int n, const struct store_value *values)
{
    struct block *block = self;
    for (int i = 0; i < n; i++) {
        const struct store_value *value = &values[i];
        if (i)
            fputc(' ', block->out);
        if (value->kind != STORE_TEXT) {
            fputs(value->kind == STORE_NULL ? "NaN" : value->text, block->out);
            continue;
        }
        /* What could end the text or the line becomes something alike that cannot. */
        fputc('"', block->out);
        for (const char *c = value->text; *c; c++)
            fputc(*c == '"' ? '\'' : iscntrl((unsigned char)*c) ? ' ' : *c, block->out);
        fputc('"', block->out);
    }
    fputc('\n', block->out);
    block->rows++;
}

static bool is_name(const char *text)
{
    return *text && strspn(text, "abcdefghijklmnopqrstuvwxyz_") == strlen(text);
}

static const char name_mark[] = "-- name:";

/* What a figure shows, and where it looks for it. */
struct shown {
    const char *figure, *db;
    bool cut; /* a part of its time */
    char about[256];
};

/* What a figure shows: the comment that its SQL begins with. */
static struct shown shown_by(const struct report_plot *plot, const char *sql)
{
    struct shown shown = {.figure = plot->figure, .db = plot->db, .cut = plot->from.given || plot->to.given};
    bool says = sql && strncmp(sql, "-- ", 3) == 0 && strncmp(sql, name_mark, strlen(name_mark)) != 0;
    const char *text = says ? sql + 3 : "what its SQL selects.";
    snprintf(shown.about, sizeof shown.about, "%.*s", (int)strcspn(text, "\n"), text);
    return shown;
}

/* One series: its name line is at `at`, its SQL runs from sql to the next name line. shown: not NULL for the figure's
 * first series, which must not be empty. */
static enum status write_block(FILE *out, struct store *store, char *name, const char *sql, struct source_pos at,
    const struct shown *shown, struct diag *diag)
{
    char *end = name + strlen(name);
    while (end > name && isspace((unsigned char)end[-1]))
        *--end = '\0';
    name += strspn(name, " \t");
    if (!is_name(name))
        return diag_input(diag, at, "'%s' cannot name a data block; use lower-case letters and _", name);
    struct block block = {out, 0};
    fprintf(out, "$%s << EOD\n", name);
    enum status status = store_query(store, sql, at, write_row, &block, diag);
    fputs("EOD\n", out);
    if (status == STATUS_OK && shown && block.rows < 2 && shown->cut)
        return diag_input(diag, (struct source_pos){0},
            "figure '%s' has nothing between --from and --to; without them it shows all", shown->figure);
    if (status == STATUS_OK && shown && block.rows < 2)
        return diag_input(diag, (struct source_pos){.file = shown->db},
            "nothing in this database is for figure '%s', which shows: %s Store that first, with --db %s",
            shown->figure, shown->about, shown->db);
    return status;
}

/* sql is cut up in place. */
static enum status write_blocks(
    FILE *out, struct store *store, char *sql, const char *path, const struct shown *shown, struct diag *diag)
{
    enum status status = STATUS_OK;
    int line = 1;
    char *mark = strstr(sql, name_mark);
    if (!mark)
        return diag_input(diag, (struct source_pos){.file = path},
            "no data series; write a line \"-- name: SERIES\" above each SELECT");
    for (char *from = sql; mark && status == STATUS_OK; shown = NULL) {
        for (; from < mark; from++)
            line += *from == '\n';
        char *text = mark + strcspn(mark, "\n");
        struct source_pos at = {path, line, 1};
        if (*text) {
            *text++ = '\0';
            line++;
        }
        char *next = strstr(text, name_mark);
        char *name = mark + strlen(name_mark);
        if (next)
            *next = '\0';
        status = write_block(out, store, name, text, at, shown, diag);
        if (next)
            *next = name_mark[0];
        from = text;
        mark = next;
    }
    return status;
}

enum status script_make(char **out, const struct report_plot *plot, struct diag *diag)
{
    char sql_path[4096], gp_path[4096];
    char *sql = NULL, *gp = NULL;
    struct store *store = NULL;
    size_t n = 0;
    *out = NULL;
    FILE *script = open_memstream(out, &n);
    BUG_IF(!script, "open_memstream failed");
    enum status status = read_part(&sql, sql_path, sizeof sql_path, plot, "sql", diag);
    if (status == STATUS_OK)
        status = read_part(&gp, gp_path, sizeof gp_path, plot, "gp", diag);
    struct shown shown = {0};
    if (status == STATUS_OK)
        shown = shown_by(plot, sql);
    bool is_path = *plot->db && strncmp(plot->db, "file:", strlen("file:")) != 0; /* and no URI of SQLite's */
    if (status == STATUS_OK && is_path && access(plot->db, F_OK) != 0)
        status = diag_io(diag, (struct source_pos){.file = plot->db},
            "cannot open the database: %s; figure '%s' shows: %s Store that first, with --db %s", strerror(errno),
            shown.figure, shown.about, shown.db);
    if (status == STATUS_OK)
        status = store_open(&store, plot->db, STORE_READ, diag);
    if (status == STATUS_OK && plot->scenario)
        status = store_narrow(store, plot->scenario, diag);
    struct store_parameter cut[] = {
        {":from_s", plot->from.given, plot->from.s, false}, {":to_s", plot->to.given, plot->to.s, false}};
    if (status == STATUS_OK) {
        store_parameters(store, cut, sizeof cut / sizeof *cut);
        fprintf(script, "terminal(height) = 'set terminal '.%s\neval terminal(800)\n", script_terminal(plot->out));
        fputs("set encoding utf8\nset datafile columnheaders\n", script);
        fputs(wrap, script);
        status = write_blocks(script, store, sql, sql_path, &shown, diag);
        fputs(gp, script);
    }
    if (status == STATUS_OK && plot->scenario && !store_narrow_counted(store))
        status = diag_input(diag, (struct source_pos){0},
            "figure '%s' shows no scenario's runs; leave out --scenario %s", plot->figure, plot->scenario);
    for (size_t i = 0; i < sizeof cut / sizeof *cut && status == STATUS_OK; i++)
        if (cut[i].given && !cut[i].used)
            status = diag_input(
                diag, (struct source_pos){0}, "figure '%s' cannot be cut; leave out --from and --to", plot->figure);
    fclose(script);
    store_close(store);
    free(sql);
    free(gp);
    if (status != STATUS_OK) {
        free(*out);
        *out = NULL;
    }
    return status;
}
