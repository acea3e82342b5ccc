/* The page of evidence: tables in Markdown between the markers of a file. */
#include "cli/validate_parts.h"

#include "cli/words.h"
#include "config/csv.h"
#include "validate/first_sight.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char BEGIN[] = "<!-- begin: written by flopcast validate --page -->\n", END[] = "<!-- end -->\n";

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
        if (first)
            fprintf(out, "%s`%s` by %s",
                n++ ? "; " : "\nPredictions, and the build that made them: ", row->first_sight_file, row->predicted_by);
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

static void put_page(FILE *out, const struct validate_table *rows, const char *claims, struct diag *diag)
{
    put_sources(out, rows);
    put_predictions(out, rows);
    validate_made_print(out, rows);
    put_classes(out, rows, BY_FRAMEWORK, "framework");
    put_classes(out, rows, BY_LAYOUT, "layout");
    put_classes(out, rows, BY_GPUS, "GPUs");
    put_classes(out, rows, BY_WAITING, "exposed communication and bubble");
    put_claims(out, claims, diag);
}

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

enum status validate_page_write(
    const char *page, const struct validate_table *rows, const char *claims, struct diag *diag)
{
    struct source_pos at = {.file = page};
    char *text = read_file(page, diag), *begin = text ? strstr(text, BEGIN) : NULL,
         *end = begin ? strstr(begin, END) : NULL;
    if (text && !end)
        diag_input(diag, at, "has no lines '%.*s' and '%.*s', between which the tables go", (int)sizeof BEGIN - 2,
            BEGIN, (int)sizeof END - 2, END);
    FILE *out = end ? fopen(page, "w") : NULL;
    if (end && !out)
        diag_io(diag, at, "cannot be written: %s", strerror(errno));
    if (out) {
        fwrite(text, 1, (size_t)(begin - text) + sizeof BEGIN - 1, out);
        fputc('\n', out);
        put_page(out, rows, claims, diag);
        fputc('\n', out);
        fputs(end, out);
        bool failed = ferror(out) != 0;
        if (fclose(out) != 0 || failed)
            diag_io(diag, at, "cannot be written: %s", strerror(errno));
    }
    free(text);
    return diag->worst;
}
