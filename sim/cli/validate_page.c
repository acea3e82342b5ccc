/* The page of evidence: tables in Markdown between the markers of a file. */
#include "cli/validate_parts.h"

#include "cli/words.h"
#include "config/csv.h"
#include "validate/first_sight.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* "<!-- begin NAME: written ... -->", and without a name for the evidence. */
static const char BEGIN[] = "<!-- begin", WRITTEN[] = ": written by flopcast validate --page -->\n",
                  END[] = "<!-- end -->\n";

struct part {
    enum validate_by by;
    const char *name; /* NULL: any class */
    int fitted;       /* -1: whether a fit rests on them or not */
};

static bool in_part(const struct validate_row *row, const void *self)
{
    const struct part *part = self;
    return (part->fitted < 0 || (*row->used_in_fit != '\0') == (part->fitted == 1)) &&
           (!part->name || strcmp(validate_class(row, part->by), part->name) == 0);
}

/* A text in a cell of a table. */
static void put_text(FILE *out, const char *text)
{
    fputs("| ", out);
    for (; *text; text++)
        fprintf(out, *text == '|' ? "\\%c" : "%c", *text);
    fputc(' ', out);
}

static void put_percent(FILE *out, struct arena *arena, bool known, double part, bool sign)
{
    fprintf(out, "| %s ", known ? words_number(arena, 100 * part, 1, sign) : "");
}

static void put_counted(FILE *out, struct arena *arena, int n, double part)
{
    if (n > 0)
        fprintf(out, "| %d: %s ", n, words_number(arena, 100 * part, 1, false));
    else
        fputs("| ", out);
}

struct sight { /* of a part */
    int n, missed;
    double median;
};

static struct sight sight_of(const struct validate_table *rows, const struct part *part)
{
    struct sight sight = {0};
    for (int i = 0; i < rows->rows.n; i++)
        sight.missed += rows->rows.at[i].first_sight_missed && in_part(&rows->rows.at[i], part);
    struct validate_summary first = validate_first_sight_summarise(rows, in_part, part).first;
    sight.n = first.n_errors;
    sight.median = first.median;
    return sight;
}

static void put_source(
    FILE *out, struct arena *arena, const struct validate_table *rows, const char *name, const struct part *part)
{
    struct validate_summary s = validate_summarise(rows, in_part, part);
    struct sight first = sight_of(rows, part);
    if (s.n_rows == 0)
        return;
    put_text(out, name);
    fprintf(out, "| %d | %d | %d ", s.n_rows, s.n_not_simulated, s.n_errors);
    put_percent(out, arena, s.n_errors > 0, s.bias, true);
    put_percent(out, arena, s.n_errors > 0, s.median, false);
    put_percent(out, arena, s.n_errors > 0, s.p90, false);
    put_counted(out, arena, first.n, first.median);
    if (first.missed > 0)
        fprintf(out, "(%d missed) ", first.missed);
    put_counted(out, arena, s.n_ratios, s.ratio_mean);
    put_counted(out, arena, s.n_node_ratios, s.node_ratio_mean);
    if (s.n_node_ratios > 0)
        fprintf(out, "(%s) ", words_number(arena, 100 * s.node_ratio_median, 1, false));
    put_counted(out, arena, s.n_allocated, s.allocated_median);
    put_counted(out, arena, s.n_reserved, s.reserved_median);
    if (s.n_intervals > 0)
        fprintf(out, "| %.0f, %.0f; %.0f ", 100.0 * s.n_covered / s.n_intervals,
            100.0 * s.n_covered_as_new / s.n_intervals, 100 * s.width_median);
    else
        fputs("| ", out);
    fprintf(out, "| %d, %d | %d | %d |\n", s.fits_right, s.oom_right, s.false_fits, s.false_oom);
}

static void put_sources(FILE *out, const struct validate_table *rows)
{
    struct arena arena = ARENA_INIT;
    struct validate_classes sources = validate_classes(rows, BY_SOURCE, &arena);
    fputs(
        "### By source\n\n"
        "Errors of the speed of a GPU in percent: predicted / measured - 1. Rows that a fit rests on stand apart. "
        "*not run*: no\nscenario, or not simulated, each with its reason. *first sight*: predictions that were "
        "committed before the\nmeasurements, number and median; *missed* were predicted to run out of memory, or not "
        "at all. "
        "*ratios*: to the smallest cluster of the\nsame settings, mean error in points; *to a node*: those to one "
        "node, mean (median). Memory: peaks, number and median error. *90 %*: measurements in their 90 % intervals, "
        "in percent; then in those that they had if nothing else of their source were known;\nthen the median width of "
        "the former, in percent of the prediction. Out of memory: rows that "
        "fit and that do not, "
        "as published; false \"fits\"; false \"out of memory\".\n\n"
        "| source | rows | not run | speeds | bias | median | p90 | first sight | ratios | to a node | allocated | "
        "reserved | 90 % | right: fit, OOM | false fits | false OOM |\n"
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n",
        out);
    for (int i = 0; i < sources.n; i++)
        for (int fitted = 1; fitted >= 0; fitted--) {
            const char *name = *sources.names[i] ? sources.names[i] : "(no source)";
            put_source(out, &arena, rows, fitted ? arena_printf(&arena, "%s (in fits)", name) : name,
                &(struct part){BY_SOURCE, sources.names[i], fitted});
        }
    put_source(out, &arena, rows, "all that fits rest on", &(struct part){BY_SOURCE, NULL, 1});
    put_source(out, &arena, rows, "all others", &(struct part){BY_SOURCE, NULL, 0});
    arena_release(&arena);
}

/* The files of predictions, and which programs made them. */
static void put_predictions(FILE *out, const struct validate_table *rows)
{
    int n = 0;
    for (int i = 0; i < rows->rows.n; i++) {
        const struct validate_row *row = &rows->rows.at[i];
        bool first = row->predicted_by && *row->predicted_by;
        for (int j = 0; j < i && first; j++)
            first = !rows->rows.at[j].predicted_by ||
                    strcmp(rows->rows.at[j].first_sight_file, row->first_sight_file) != 0 ||
                    strcmp(rows->rows.at[j].predicted_by, row->predicted_by) != 0;
        const char *slash = first ? strrchr(row->first_sight_file, '/') : NULL;
        if (first)
            fprintf(out, "%s`%s` by %s", n++ ? "; " : "\nPredictions (`predictions/`), and the build that made them: ",
                slash ? slash + 1 : row->first_sight_file, row->predicted_by);
    }
    fputs(n ? ".\n" : "", out);
}

/* Of rows that no fit rests on. */
static void put_classes(FILE *out, const struct validate_table *rows, enum validate_by by, const char *heading)
{
    struct arena arena = ARENA_INIT;
    struct validate_classes classes = validate_classes(rows, by, &arena);
    fprintf(out,
        "\n### By %s\n\nRows that no fit rests on. *runs*: rows of a source that are the same run count once, with "
        "the median of what was\nmeasured.\n\n| %s | rows | not run | speeds | bias | median | p90 | MAD | runs | "
        "median | 90 %% | false fits | false OOM |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|\n",
        heading, heading);
    for (int i = 0; i < classes.n; i++) {
        struct part part = {by, classes.names[i], 0};
        struct validate_summary s = validate_summarise(rows, in_part, &part);
        if (s.n_rows == 0)
            continue;
        put_text(out, classes.names[i]);
        fprintf(out, "| %d | %d | %d ", s.n_rows, s.n_not_simulated, s.n_errors);
        put_percent(out, &arena, s.n_errors > 0, s.bias, true);
        const double errors[] = {s.median, s.p90, s.mad};
        for (size_t k = 0; k < sizeof errors / sizeof *errors; k++)
            put_percent(out, &arena, s.n_errors > 0, errors[k], false);
        fprintf(out, "| %d ", s.n_runs);
        put_percent(out, &arena, s.n_runs > 0, s.runs_median, false);
        if (s.n_intervals > 0)
            fprintf(out, "| %.0f; %.0f ", 100.0 * s.n_covered / s.n_intervals, 100 * s.width_median);
        else
            fputs("| ", out);
        fprintf(out, "| %d | %d |\n", s.false_fits, s.false_oom);
    }
    arena_release(&arena);
}

static void put_claims(FILE *out, const char *path, struct diag *diag)
{
    struct csv_table *csv = NULL;
    if (csv_load(&csv, path, diag) != STATUS_OK)
        return;
    static const char *const columns[] = {"simulator", "what", "error", "source", "kind"};
    fputs("\n### What other simulators state\n\nEach on its own data, so not comparable line by line "
          "(`claims.csv`).\n\n| simulator | what | error | source | kind |\n|---|---|---|---|---|\n",
        out);
    for (int r = 0; r < csv_rows(csv); r++) {
        for (size_t c = 0; c < sizeof columns / sizeof *columns; c++)
            put_text(out, csv_cell(csv, r, csv_column(csv, columns[c])));
        fputs("|\n", out);
    }
    csv_release(csv);
}

static bool is_apart(const struct validate_row *row, const void *reason)
{
    return !*row->used_in_fit && strcmp(row->apart, reason) == 0;
}

static void put_apart_line(FILE *out, struct arena *arena, const struct validate_table *rows, const char *reason)
{
    struct validate_summary s = validate_summarise(rows, is_apart, reason);
    put_text(out, *reason ? reason : "all others");
    fprintf(out, "| %d ", s.n_errors);
    put_percent(out, arena, s.n_errors > 0, s.bias, true);
    put_percent(out, arena, s.n_errors > 0, s.median, false);
    put_percent(out, arena, s.n_errors > 0, s.p90, false);
    fputs("|\n", out);
}

/* By reasons that the tables state: a value of the row was measured in the same job, say. */
static void put_apart(FILE *out, const struct validate_table *rows)
{
    struct arena arena = ARENA_INIT;
    for (int i = 0, lines = 0; i < rows->rows.n; i++) {
        const char *reason = rows->rows.at[i].apart;
        bool opens = *reason != '\0';
        for (int j = 0; j < i && opens; j++)
            opens = strcmp(rows->rows.at[j].apart, reason) != 0;
        if (opens && lines++ == 0) {
            fputs("\n### Rows that are summed apart\n\nOf rows that no fit rests on (column `apart` of the "
                  "tables; slow reruns by the rule of sim/validate/validate.h).\n\n| rows | speeds | bias | median | "
                  "p90 |\n|---|---|---|---|---|\n",
                out);
            put_apart_line(out, &arena, rows, "");
        }
        if (opens)
            put_apart_line(out, &arena, rows, reason);
    }
    arena_release(&arena);
}

static void put_evidence(FILE *out, const struct validate_page *page, struct diag *diag)
{
    const struct validate_table *rows = page->rows;
    put_sources(out, rows);
    put_predictions(out, rows);
    validate_made_print(out, rows);
    put_apart(out, rows);
    put_classes(out, rows, BY_FRAMEWORK, "framework");
    put_classes(out, rows, BY_LAYOUT, "layout");
    put_classes(out, rows, BY_GPUS, "GPUs");
    put_classes(out, rows, BY_WAITING, "exposed communication and bubble");
    put_claims(out, page->claims, diag);
}

static void put_summary(FILE *out, const struct validate_page *page, struct diag *diag)
{
    (void)diag;
    validate_summary_put(out, page->rows);
}

static void put_accuracy(FILE *out, const struct validate_page *page, struct diag *diag)
{
    validate_accuracy_put(out, page->rows, page->groups, diag);
}

static void put_peers(FILE *out, const struct validate_page *page, struct diag *diag)
{
    validate_peers_put(out, page->rows, page->peers, diag);
}

static void put_fsdp_paper(FILE *out, const struct validate_page *page, struct diag *diag)
{
    (void)diag;
    validate_source_put(out, page->rows, "arXiv 2304.11277*");
}

static const struct {
    const char *name; /* in the marker */
    void (*put)(FILE *out, const struct validate_page *page, struct diag *diag);
} parts[] = {{"", put_evidence}, {" summary", put_summary}, {" accuracy", put_accuracy}, {" peers", put_peers},
    {" FSDP paper", put_fsdp_paper}};
enum { PARTS = sizeof parts / sizeof *parts };

/* The whole file, for free(); NULL: it cannot be read. */
static char *read_file(const char *path, struct diag *diag)
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

/* The part whose marker stands at the text; *end is behind the marker. -1: none. */
static int part_at(const char *text, const char **end)
{
    const char *name = text + strlen(BEGIN), *written = strstr(name, WRITTEN);
    for (int i = 0; i < PARTS && written; i++)
        if ((size_t)(written - name) == strlen(parts[i].name) &&
            strncmp(name, parts[i].name, strlen(parts[i].name)) == 0) {
            *end = written + strlen(WRITTEN);
            return i;
        }
    return -1;
}

/* The text with its parts anew; false: no part is there, or one has no end. */
static bool rewrite(FILE *out, const char *text, const struct validate_page *page, struct diag *diag)
{
    int n = 0;
    for (const char *begin; (begin = strstr(text, BEGIN)); n++) {
        const char *inside = NULL, *end = strstr(begin, END);
        int part = part_at(begin, &inside);
        if (part < 0 || !end)
            return false;
        fwrite(text, 1, (size_t)(inside - text), out);
        parts[part].put(out, page, diag);
        text = end;
    }
    fputs(text, out);
    return n > 0;
}

enum status validate_page_write(const char *path, const struct validate_page *page, struct diag *diag)
{
    struct source_pos at = {.file = path};
    char *text = read_file(path, diag), *made = NULL;
    size_t size = 0;
    FILE *memory = text ? open_memstream(&made, &size) : NULL;
    bool good = memory && rewrite(memory, text, page, diag);
    if (memory)
        fclose(memory);
    if (text && !good)
        diag_input(diag, at, "has no lines '%s%.*s' and '%.*s', between which the tables go, or others that begin so",
            BEGIN, (int)sizeof WRITTEN - 2, WRITTEN, (int)sizeof END - 2, END);
    FILE *out = good ? fopen(path, "w") : NULL;
    if (good && !out)
        diag_io(diag, at, "cannot be written: %s", strerror(errno));
    if (out) {
        bool failed = fwrite(made, 1, size, out) != size;
        if (fclose(out) != 0 || failed)
            diag_io(diag, at, "cannot be written: %s", strerror(errno));
    }
    free(made);
    free(text);
    return diag->worst;
}
