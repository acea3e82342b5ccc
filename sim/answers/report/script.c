/* The script of a figure for gnuplot: canvas and terminal, the data of its SQL, then its .gp.
 *
 * plots/FIGURE.sql holds series, each a line "-- name: SERIES" and a SELECT below it. Each becomes
 * a data block ($SERIES << EOD), so the script needs no other file; an inlined .gp follows, with
 * files in place of the lines that include them. A figure that is not in plots/ is looked for in a
 * second folder.
 *
 * What is subtle: all figures are laid out on one canvas of 1200 pixels' width, and a size scales
 * that as a whole, letters too. gnuplot's text terminals and Cairo count in different units, hence
 * one function a terminal. The first series must have a row, or the figure says what it would show;
 * the others may be empty. Options that no query of the figure used are errors, found by what the
 * connection has read (store_reads) and by the parameters that were bound. */
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

enum { WIDTH = 1200, HEIGHT = 800, COLUMNS = 120, LINE = 20 /* pixels to a line of characters */ };
static const double INCH = 96;              /* pixels */
static const double PAPER_WIDTH = 6.5 * 96; /* of letter and A4 between margins of an inch, about */

static const char *const suffixes[SCRIPT_KIND_COUNT] = {".png", ".svg", ".pdf", "-"};

bool script_draws(const char *path, enum script_kind *kind)
{
    size_t n = strlen(path);
    for (int i = 0; i < SCRIPT_KIND_COUNT; i++) {
        size_t m = strlen(suffixes[i]);
        bool whole = suffixes[i][0] != '.';
        if (n >= m && (!whole || n == m) && strcmp(path + n - m, suffixes[i]) == 0) {
            *kind = (enum script_kind)i;
            return true;
        }
    }
    return false;
}

/* What a script begins with: the canvas, and the function that sets the terminal for a height of
 * it. A size scales all of the canvas, letters too, so that every figure looks alike at every size.
 */
static void write_canvas(FILE *out, enum script_kind kind, struct report_size size)
{
    bool text = kind == SCRIPT_TEXT, sized = size.height > 0;
    double width = size.width > 0 ? size.width : kind == SCRIPT_PDF ? PAPER_WIDTH : WIDTH;
    double scale = text ? 1 : width / WIDTH;
    double height = sized ? (text ? size.height * LINE : size.height / scale) : HEIGHT;
    double inches = scale / INCH;
    fprintf(out, "plain = %d\n", text);
    if (sized)
        fprintf(out, "canvas(wanted) = %.0f\n", height);
    else
        fputs("canvas(wanted) = wanted > 16000 ? 16000 : int(wanted)\n",
            out); /* Cairo ends at 32767 pixels */
    switch (kind) {
    case SCRIPT_PNG:
        fprintf(out,
            "terminal(height) = sprintf(\"set terminal pngcairo noenhanced size %.0f,%%.0f font "
            "'DejaVu Sans,13' fontscale %g linewidth %g pointscale %g\", height * %.17g)\n",
            WIDTH * scale, scale, 1.5 * scale, scale, scale);
        break;
    case SCRIPT_SVG: /* report.c scales it */
        fprintf(out,
            "terminal(height) = sprintf(\"set terminal svg noenhanced size %d,%%.0f dynamic font "
            "'DejaVu Sans,13' linewidth 1.5\", height)\n",
            WIDTH);
        break;
    case SCRIPT_PDF: /* in inches; its lines are counted in half points */
        fprintf(out,
            "terminal(height) = sprintf(\"set terminal pdfcairo noenhanced size %.4f,%%.4f font "
            "'DejaVu Sans,13' fontscale %g linewidth %g pointscale %g\", height * %.17g)\n",
            WIDTH * inches, scale, 2.25 * scale, scale, inches);
        break;
    case SCRIPT_TEXT:
        fprintf(out,
            "terminal(height) = sprintf('set terminal dumb noenhanced size %.0f,%%.0f', height / "
            "%d)\n",
            size.width > 0 ? size.width : COLUMNS, LINE);
        break;
    case SCRIPT_KIND_COUNT:
        break;
    }
    fprintf(out,
        "height = canvas(%d)\neval terminal(height)\nset encoding utf8\nset datafile "
        "columnheaders\n",
        HEIGHT);
}

/* wrap(text, n): the text in lines of at most n characters. */
static const char wrap[] =
    "wrap_at(text, i) = i < 2 || text[i:i] eq ' ' ? i : wrap_at(text, i - 1)\n"
    "wrap(text, n) = strlen(text) <= n ? text : "
    "text[1:wrap_at(text, n + 1) - 1].\"\\n\".wrap(text[wrap_at(text, n + 1) + 1:*], n)\n";

/* "there are: a, b, c", after the first `used` characters of out, for the message about a figure
 * that is not there. */
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
static enum status read_part(char **out, char *path, size_t n, const struct report_plot *plot,
    const char *suffix, struct diag *diag)
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
            snprintf(
                figures, sizeof figures, "the folder holds none; FLOPCAST_PLOTS names another");
        return diag_input(diag, (struct source_pos){.file = path}, "there is no figure '%s'; %s",
            plot->figure, figures);
    }
    size_t size = 0;
    bool ok = in && getdelim(out, &size, '\0', in) > 0 && !ferror(in);
    enum status status = ok ? STATUS_OK
                            : diag_io(diag, (struct source_pos){.file = path},
                                  "cannot read the figure: %s", strerror(errno));
    if (in)
        fclose(in);
    return status;
}

/* The scenario's name in its SQL is what makes a figure the scenario's. */
bool script_is_of(const struct report_plot *plot, const char *scenario)
{
    struct diag unsaid = DIAG_INIT;
    struct arena arena = ARENA_INIT;
    char *text = NULL, path[4096];
    bool is = !strchr(plot->figure, '/') &&
              read_part(&text, path, sizeof path, plot, "sql", &unsaid) == STATUS_OK &&
              strstr(text, arena_printf(&arena, "scenario = '%s'", scenario));
    free(text);
    arena_release(&arena);
    return is;
}

static const char include[] = "#include \"";

enum { MOST_INCLUDED = 8 }; /* in each other */

/* The .gp at this path, with files in place of the lines that include them. at.line counts how
 * deep includes are nested here. */
static enum status write_gp(FILE *out, const struct report_plot *plot, const char *gp,
    struct source_pos at, struct diag *diag)
{
    enum status status = STATUS_OK;
    if (at.line > MOST_INCLUDED)
        return diag_input(diag, (struct source_pos){.file = at.file}, "files include each other");
    for (const char *line = gp ? gp : ""; *line && status == STATUS_OK;) {
        size_t n = strcspn(line, "\n"), prefix = strlen(include);
        if (strncmp(line, include, prefix) == 0) {
            char name[64], path[4096], *text = NULL;
            struct report_plot part = *plot;
            snprintf(
                name, sizeof name, "%.*s", (int)strcspn(line + prefix, ".\"\n"), line + prefix);
            part.figure = name;
            status = read_part(&text, path, sizeof path, &part, "gp", diag);
            if (status == STATUS_OK)
                status =
                    write_gp(out, &part, text, (struct source_pos){path, at.line + 1, 1}, diag);
            free(text);
        } else {
            fprintf(out, "%.*s\n", (int)n, line);
        }
        line += n + (line[n] == '\n');
    }
    return status;
}

struct block {
    FILE *out;
    int rows; /* the line of names included */
};

static void script_write_row(void *self, int n, const struct store_value *values)
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
        /* Characters that would end the text or the line are replaced by similar ones. */
        fputc('"', block->out);
        for (const char *c = value->text; *c; c++)
            fputc(*c == '"' ? '\'' : iscntrl((unsigned char)*c) ? ' ' : *c, block->out);
        fputc('"', block->out);
    }
    fputc('\n', block->out);
    block->rows++;
}

static bool script_is_name(const char *text)
{
    return *text && strspn(text, "abcdefghijklmnopqrstuvwxyz_") == strlen(text);
}

static const char name_mark[] = "-- name:";

/* What a figure shows, and where it looks for it. */
struct shown {
    const char *figure, *db;
    bool cut;    /* a part of its time */
    bool chosen; /* some of the database's points */
    char about[256];
};

/* What a figure shows: the comment that its SQL begins with. */
static struct shown shown_by(const struct report_plot *plot, const char *sql)
{
    struct shown shown = {.figure = plot->figure,
        .db = plot->db,
        .cut = plot->from.given || plot->to.given,
        .chosen = plot->show.n_choices > 0 || plot->show.where};
    bool says =
        sql && strncmp(sql, "-- ", 3) == 0 && strncmp(sql, name_mark, strlen(name_mark)) != 0;
    const char *text = says ? sql + 3 : "what its SQL selects.";
    snprintf(shown.about, sizeof shown.about, "%.*s", (int)strcspn(text, "\n"), text);
    return shown;
}

/* One series: its name line is at `at`, its SQL runs from sql to the next name line. shown: not
 * NULL for the figure's first series, which must not be empty. */
static enum status write_block(FILE *out, struct store *store, char *name, const char *sql,
    struct source_pos at, const struct shown *shown, struct diag *diag)
{
    char *end = name + strlen(name);
    while (end > name && isspace((unsigned char)end[-1]))
        *--end = '\0';
    name += strspn(name, " \t");
    if (!script_is_name(name))
        return diag_input(
            diag, at, "'%s' cannot name a data block; use lower-case letters and _", name);
    struct block block = {out, 0};
    fprintf(out, "$%s << EOD\n", name);
    enum status status = store_query(store, sql, at, script_write_row, &block, diag);
    fputs("EOD\n", out);
    if (status == STATUS_OK && shown && block.rows < 2 && shown->cut)
        return diag_input(diag, (struct source_pos){0},
            "figure '%s' has nothing between --from and --to; without them it shows all",
            shown->figure);
    if (status == STATUS_OK && shown && block.rows < 2 && shown->chosen)
        return diag_input(diag, (struct source_pos){.file = shown->db},
            "nothing of what --scenario, --run and --where choose is for figure '%s', which shows: "
            "%s",
            shown->figure, shown->about);
    if (status == STATUS_OK && shown && block.rows < 2)
        return diag_input(diag, (struct source_pos){.file = shown->db},
            "nothing in this database is for figure '%s', which shows: %s Store that first, with "
            "--db %s",
            shown->figure, shown->about, shown->db);
    return status;
}

/* sql is cut up in place. */
static enum status write_blocks(FILE *out, struct store *store, char *sql, const char *path,
    const struct shown *shown, struct diag *diag)
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

/* An option that was given, and that no query of the figure has used, is an error. */
static enum status check_used(const struct report_plot *plot, unsigned reads,
    const struct store_parameter *cut, int n, struct diag *diag)
{
    const struct source_pos nowhere = {0};
    for (int i = 0; i < n; i++)
        if (cut[i].given && !cut[i].used)
            return diag_input(diag, nowhere, "figure '%s' cannot be cut; leave out --from and --to",
                plot->figure);
    if (plot->show.where && !(reads & STORE_READS_POINTS))
        return diag_input(
            diag, nowhere, "figure '%s' shows no points; leave out --where", plot->figure);
    for (int i = 0; i < plot->show.n_choices; i++) {
        const char *scenario = plot->show.choices[i].scenario;
        if (scenario && !(reads & (STORE_READS_POINTS | STORE_READS_EXPLANATIONS)))
            return diag_input(diag, nowhere,
                "figure '%s' shows no scenario's runs; leave out --scenario %s", plot->figure,
                scenario);
        if (!scenario && !(reads & STORE_READS_POINTS))
            return diag_input(
                diag, nowhere, "figure '%s' shows no runs; leave out --run", plot->figure);
    }
    if (plot->show.x && !(reads & STORE_READS_X))
        return diag_input(
            diag, nowhere, "figure '%s' has no setting on its x axis; leave out --x", plot->figure);
    if (plot->show.facet && !(reads & STORE_READS_PANELS))
        return diag_input(diag, nowhere, "figure '%s' has no panels of settings; leave out --facet",
            plot->figure);
    return STATUS_OK;
}

/* The database's part of a script: a data block for each series. A database that is not there is
 * reported with what the figure needs; SQLite's message would not say that. */
static enum status write_data(FILE *script, const struct report_plot *plot, char *sql,
    const char *sql_path, struct diag *diag)
{
    struct store *store = NULL;
    struct shown shown = shown_by(plot, sql);
    struct store_parameter cut[] = {{":from_s", plot->from.given, plot->from.s, false},
        {":to_s", plot->to.given, plot->to.s, false}};
    enum { CUTS = sizeof cut / sizeof *cut };
    bool is_path =
        *plot->db && strncmp(plot->db, "file:", strlen("file:")) != 0; /* and no URI of SQLite's */
    if (is_path && access(plot->db, F_OK) != 0)
        return diag_io(diag, (struct source_pos){.file = plot->db},
            "cannot open the database: %s; figure '%s' shows: %s Store that first, with --db %s",
            strerror(errno), shown.figure, shown.about, shown.db);
    enum status status = store_open(&store, plot->db, STORE_READ, diag);
    const struct store_show *show = &plot->show;
    bool reads =
        strstr(sql, "shown") ||
        strstr(sql, "figure_room"); /* a figure that needs no points does not wait for it */
    if (status == STATUS_OK && (reads || show->n_choices || show->where || show->x || show->facet))
        status = store_show(store, show, diag);
    if (status == STATUS_OK) {
        store_parameters(store, cut, CUTS);
        status = write_blocks(script, store, sql, sql_path, &shown, diag);
    }
    if (status == STATUS_OK)
        status = check_used(plot, store_reads(store), cut, CUTS, diag);
    if (status == STATUS_OK)
        store_warn_unfinished(store, diag);
    store_close(store);
    return status;
}

enum status script_make(char **out, const struct report_plot *plot, struct diag *diag)
{
    char sql_path[4096], gp_path[4096];
    char *sql = NULL, *gp = NULL;
    size_t n = 0;
    enum script_kind kind;
    *out = NULL;
    BUG_IF(!script_draws(plot->out, &kind), "%s", plot->out);
    FILE *script = xmemstream(out, &n);
    write_canvas(script, kind, plot->size);
    fprintf(script, "hover = %d\n", plot->hover);
    fputs(wrap, script);
    enum status status = read_part(&sql, sql_path, sizeof sql_path, plot, "sql", diag);
    if (status == STATUS_OK)
        status = read_part(&gp, gp_path, sizeof gp_path, plot, "gp", diag);
    if (status == STATUS_OK)
        status = write_data(script, plot, sql, sql_path, diag);
    if (status == STATUS_OK)
        status = write_gp(script, plot, gp, (struct source_pos){gp_path, 1, 1}, diag);
    fclose(script);
    free(sql);
    free(gp);
    if (status != STATUS_OK) {
        free(*out);
        *out = NULL;
    }
    return status;
}
