/* The page of evidence: tables in Markdown between the markers of a file. */
#include "base/file_write.h"
#include "lab/validate_parts.h"
#include "rows/words.h"
#include "config/csv.h"
#include "validate/first_sight.h"

#include <errno.h>
#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- what README.md shows ---- */

struct group {
    const char *sources, *gpus; /* patterns, apart by ';'; "": all */
    bool fitted;
};

/* Whether the text is of one of the patterns. */
static bool is_of(const char *patterns, const char *text)
{
    if (!*patterns)
        return true;
    for (const char *at = patterns; *at;) {
        char pattern[256];
        size_t n = strcspn(at, ";");
        snprintf(pattern, sizeof pattern, "%.*s", (int)n, at);
        if (fnmatch(pattern, text, 0) == 0)
            return true;
        at += n + (at[n] == ';');
    }
    return false;
}

static bool in_group(const struct validate_row *row, const void *self)
{
    const struct group *group = self;
    return (*row->used_in_fit != '\0') == group->fitted && is_of(group->sources, row->source) &&
           is_of(group->gpus, row->gpu);
}

/* 2217: "2,217". */
static const char *whole(struct arena *arena, int n)
{
    return n < 1000 ? arena_printf(arena, "%d", n) : arena_printf(arena, "%d,%03d", n / 1000, n % 1000);
}

static const char *percent(struct arena *arena, double part)
{
    return words_number(arena, 100 * part, 1, false);
}

static void put_errors(FILE *out, struct arena *arena, const struct validate_summary *s)
{
    if (s->n_errors > 0)
        fprintf(
            out, "| %s | %s %% | %s %% ", whole(arena, s->n_errors), percent(arena, s->median), percent(arena, s->p90));
    else
        fputs("| - | - | - ", out);
}

/* How many runs are predicted how well, in two lines. */
static void put_summary(FILE *out, const struct validate_page *page, struct diag *diag)
{
    const struct validate_table *rows = page->rows;
    (void)diag;
    struct arena arena = ARENA_INIT;
    const struct group rest = {.sources = "", .gpus = ""};
    struct validate_summary today = validate_summarise(rows, in_group, &rest);
    struct validate_first_sight blind = validate_first_sight_summarise(rows, in_group, &rest);
    int stale = 0;
    for (int i = 0; i < rows->rows.n; i++)
        stale += rows->rows.at[i].stale;
    if (blind.first.n_errors > 0) {
        enum { NEWEST = 100 };
        struct validate_summary newest = validate_first_sight_newest(rows, in_group, &rest, NEWEST);
        fprintf(out,
            "**Why believe it?** %s published runs were predicted blind: median error %s %%, of the newest %s %s %%.\n",
            whole(&arena, blind.first.n_errors), percent(&arena, blind.first.median), whole(&arena, newest.n_errors),
            percent(&arena, newest.median));
    } else
        fputs("**Why believe it?** No published run was predicted blind.\n", out);
    fprintf(out, "Today %s that no fit rests on are at %s %%, after changes that were made with errors in view",
        whole(&arena, today.n_errors), percent(&arena, today.median));
    if (stale > 0)
        fprintf(out, "; %s rows are stale", whole(&arena, stale));
    fputs(".\n", out);
    arena_release(&arena);
}

/* The largest cluster of a T5-11B that loses the most as published. */
static const struct validate_row *largest_loss(const struct validate_table *rows)
{
    const struct validate_row *found = NULL;
    for (int i = 0; i < rows->rows.n; i++) {
        const struct validate_row *row = &rows->rows.at[i];
        if (row->has_ratio && strcmp(row->model, "t5-11b") == 0 &&
            (!found || row->gpus > found->gpus ||
                (row->gpus == found->gpus && row->measured_ratio < found->measured_ratio)))
            found = row;
    }
    return found;
}

static void put_loss(FILE *out, struct arena *arena, const struct validate_table *rows)
{
    const struct validate_row *row = largest_loss(rows);
    if (row && row->measured_ratio < 1)
        fprintf(out, "**T5-11B of the FSDP paper** loses %s %% from %d to %d GPUs, published %s %%.\n",
            percent(arena, 1 - row->predicted_ratio), (int)rows->rows.at[row->smallest].gpus, (int)row->gpus,
            percent(arena, 1 - row->measured_ratio));
}

static bool is_any(const struct validate_row *row, const void *self)
{
    (void)row;
    (void)self;
    return true;
}

static void put_verdicts(FILE *out, struct arena *arena, const struct validate_table *rows)
{
    struct validate_summary s = validate_summarise(rows, is_any, NULL);
    int right = s.fits_right + s.oom_right, n = right + s.false_fits + s.false_oom;
    if (n > 0)
        fprintf(out,
            "Verdicts fits / out of memory are right for %.0f %% of %s runs, %s of %s that ran out of memory among "
            "them.\n",
            100.0 * right / n, whole(arena, n), whole(arena, s.oom_right), whole(arena, s.oom_right + s.false_fits));
}

/* Accuracy by group, the loss of T5-11B, verdicts. */
static void put_accuracy(FILE *out, const struct validate_page *page, struct diag *diag)
{
    const struct validate_table *rows = page->rows;
    struct csv_table *csv = NULL;
    struct arena arena = ARENA_INIT;
    if (csv_load(&csv, page->groups, diag) != STATUS_OK)
        return;
    fputs("| published runs | blind | median | p90 | today | median | p90 |\n|---|--:|--:|--:|--:|--:|--:|\n", out);
    for (int r = 0; r < csv_rows(csv); r++) {
        const struct group group = {csv_cell(csv, r, csv_column(csv, "sources")),
            csv_cell(csv, r, csv_column(csv, "gpus")),
            strcmp(csv_cell(csv, r, csv_column(csv, "in_fits")), "yes") == 0};
        struct validate_summary today = validate_summarise(rows, in_group, &group);
        struct validate_first_sight blind = validate_first_sight_summarise(rows, in_group, &group);
        fprintf(out, "| %s: %s ", csv_cell(csv, r, csv_column(csv, "group")), group.fitted ? "fitted" : "left out");
        put_errors(out, &arena, &blind.first);
        put_errors(out, &arena, &today);
        fputs("|\n", out);
    }
    fputc('\n', out);
    put_loss(out, &arena, rows);
    put_verdicts(out, &arena, rows);
    csv_release(csv);
    arena_release(&arena);
}

/* Its runs, one by one. */
static void put_fsdp_paper(FILE *out, const struct validate_page *page, struct diag *diag)
{
    const struct validate_table *rows = page->rows;
    (void)diag;
    struct arena arena = ARENA_INIT;
    fputs("| run | model | strategy | GPUs | simulated tokens/s/GPU | published | error % | of the smallest cluster | "
          "published |\n|---|---|---|--:|--:|--:|--:|--:|--:|\n",
        out);
    for (int i = 0; i < rows->rows.n; i++) {
        const struct validate_row *row = &rows->rows.at[i];
        if (!is_of("arXiv 2304.11277*", row->source) || row->status == VALIDATE_NOT_SIMULATED)
            continue;
        fprintf(out, "| %s | %s | %s | %d ", row->id, row->model, row->strategy, (int)row->gpus);
        if (row->has_error)
            fprintf(out, "| %.0f | %.0f | %s ", row->predicted.tokens_per_s_per_gpu, row->measured.tokens_per_s_per_gpu,
                words_number(&arena, 100 * row->error, 1, true));
        else
            fprintf(out, "| %s | %s | ", row->status == VALIDATE_OOM ? "out of memory" : "fits",
                row->measured_oom  ? "out of memory"
                : row->has_verdict ? "fits"
                                   : "");
        if (row->has_ratio && &rows->rows.at[row->smallest] != row)
            fprintf(out, "| %.3f | %.3f |\n", row->predicted_ratio, row->measured_ratio);
        else
            fputs("| | |\n", out);
    }
    arena_release(&arena);
}

/* ---- other simulators on the same rows: results/peers.csv beside what flopcast predicts ---- */

/* Rows with errors of step times in place of theirs. */
struct errors {
    struct validate_table peer, own;
    int nearer; /* flopcast */
};

static void add(struct errors *errors, const struct validate_row *row, double peer, double own)
{
    struct validate_row of_peer = *row, of_own = *row;
    of_peer.has_ratio = of_own.has_ratio = false; /* its smallest cluster is a row of the whole table */
    of_peer.same = of_own.same = errors->peer.rows.n;
    of_peer.error = peer;
    of_own.error = own;
    vec_push(&errors->peer.rows, of_peer);
    vec_push(&errors->own.rows, of_own);
    errors->nearer += fabs(own) < fabs(peer);
}

static const struct validate_row *row_of(const struct validate_table *rows, const char *id)
{
    for (int i = 0; i < rows->rows.n; i++)
        if (strcmp(rows->rows.at[i].id, id) == 0)
            return rows->rows.at[i].has_error ? &rows->rows.at[i] : NULL;
    return NULL;
}

static void put_peer_errors(FILE *out, struct arena *arena, struct errors *errors)
{
    if (errors->peer.rows.n == 0) {
        fputs("| - | | ", out);
        return;
    }
    struct validate_summary peer = validate_summarise(&errors->peer, is_any, NULL),
                            own = validate_summarise(&errors->own, is_any, NULL);
    fprintf(out, "| %s / %s | %s / %s | %d of %d ", words_number(arena, 100 * peer.median, 1, false),
        words_number(arena, 100 * peer.p90, 1, false), words_number(arena, 100 * own.median, 1, false),
        words_number(arena, 100 * own.p90, 1, false), errors->nearer, errors->peer.rows.n);
    vec_free(&errors->peer.rows);
    vec_free(&errors->own.rows);
}

/* The lines of one sample and tool, which row r of the file opens. */
static void put_line(
    FILE *out, struct arena *arena, const struct validate_table *rows, const struct csv_table *csv, int first)
{
    const int sample = csv_column(csv, "sample"), tool = csv_column(csv, "tool"), id = csv_column(csv, "id"),
              time = csv_column(csv, "step_time_s");
    struct errors blind = {0}, today = {0};
    struct diag unread = DIAG_INIT;
    for (int r = first; r < csv_rows(csv); r++) {
        const struct validate_row *row = row_of(rows, csv_cell(csv, r, id));
        double step_time_s = 0;
        if (!row || strcmp(csv_cell(csv, r, sample), csv_cell(csv, first, sample)) != 0 ||
            strcmp(csv_cell(csv, r, tool), csv_cell(csv, first, tool)) != 0 ||
            csv_number(csv, r, time, 0, &step_time_s, &unread) != STATUS_OK)
            continue;
        double measured = row->predicted.step_time_s * (1 + row->error), peer = step_time_s / measured - 1;
        add(&today, row, peer, 1 / (1 + row->error) - 1);
        if (row->has_first_sight)
            add(&blind, row, peer, 1 / (1 + row->first_sight_error) - 1);
    }
    fprintf(out, "| %s | %s %s ", csv_cell(csv, first, sample), csv_cell(csv, first, tool),
        csv_cell(csv, first, csv_column(csv, "version")));
    put_peer_errors(out, arena, &blind);
    put_peer_errors(out, arena, &today);
    fputs("|\n", out);
}

/* Errors of step times of other simulators and of flopcast on the same rows, those that were predicted first apart. */
static void put_peers(FILE *out, const struct validate_page *page, struct diag *diag)
{
    struct csv_table *csv = NULL;
    struct arena arena = ARENA_INIT;
    if (csv_load(&csv, page->peers, diag) != STATUS_OK)
        return;
    const int sample = csv_column(csv, "sample"), tool = csv_column(csv, "tool");
    fputs("| runs | simulator | on blind runs | flopcast blind | nearer | on all | flopcast today | nearer |\n"
          "|---|---|--:|--:|--:|--:|--:|--:|\n",
        out);
    for (int r = 0; r < csv_rows(csv); r++) {
        bool opens = true;
        for (int before = 0; before < r && opens; before++)
            opens = strcmp(csv_cell(csv, before, sample), csv_cell(csv, r, sample)) != 0 ||
                    strcmp(csv_cell(csv, before, tool), csv_cell(csv, r, tool)) != 0;
        if (opens)
            put_line(out, &arena, page->rows, csv, r);
    }
    csv_release(csv);
    arena_release(&arena);
}

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
        fprintf(out, "| %.0f; %.0f ", 100.0 * s.n_covered / s.n_intervals, 100 * s.width_median);
    else
        fputs("| ", out);
    fprintf(out, "| %d, %d | %d | %d |\n", s.fits_right, s.oom_right, s.false_fits, s.false_oom);
}

static void put_sources(FILE *out, const struct validate_table *rows)
{
    struct arena arena = ARENA_INIT;
    struct validate_classes sources = validate_classes(rows, BY_SOURCE, &arena);
    fputs("### By source\n\n"
          "Errors of the speed of a GPU in percent: simulated / measured - 1. Rows that a fit rests on stand apart. "
          "*not run*: no\nscenario, or not simulated, each with its reason. *first sight*: predictions that were "
          "committed before the\nmeasurements, number and median; *missed* were predicted to run out of memory, or not "
          "at all. "
          "*ratios*: to the smallest cluster of the\nsame settings, mean error in points; *to a node*: those to one "
          "node, mean (median). Memory: peaks, number and median error. *90 %*: measurements in the 90 % intervals "
          "that runs of other makers give, in percent; then\nthe median width of these, in percent of the prediction. "
          "Out "
          "of memory: rows that "
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

/* Errors of the rows of a sample that tool has (NULL: any tool), which were predicted first: the tool's, and ours. */
static struct errors blind_errors(
    const struct validate_table *rows, const struct csv_table *csv, const char *sample, const char *tool)
{
    struct errors errors = {0};
    struct diag unread = DIAG_INIT;
    for (int r = 0; r < csv_rows(csv); r++) {
        const char *id = csv_cell(csv, r, csv_column(csv, "id"));
        const struct validate_row *row = row_of(rows, id);
        double step_time_s = 0;
        bool known = false;
        for (int i = 0; i < errors.own.rows.n && !known; i++)
            known = strcmp(errors.own.rows.at[i].id, id) == 0;
        if (!row || known || !row->has_first_sight ||
            strcmp(csv_cell(csv, r, csv_column(csv, "sample")), sample) != 0 ||
            (tool && strcmp(csv_cell(csv, r, csv_column(csv, "tool")), tool) != 0) ||
            csv_number(csv, r, csv_column(csv, "step_time_s"), 0, &step_time_s, &unread) != STATUS_OK)
            continue;
        double measured = row->predicted.step_time_s * (1 + row->error);
        add(&errors, row, step_time_s / measured - 1, 1 / (1 + row->first_sight_error) - 1);
    }
    return errors;
}

static void put_short(FILE *out, struct arena *arena, const struct validate_table *errors)
{
    struct validate_summary all = validate_summarise(errors, is_any, NULL);
    fprintf(out, "| %s / %s ", words_number(arena, 100 * all.median, 1, false),
        words_number(arena, 100 * all.p90, 1, false));
}

/* A row a sample that all of these have. */
static void put_peers_in_short(FILE *out, const struct validate_page *page, struct diag *diag)
{
    static const char *const tools[] = {"Calculon", "llm-analysis", "RAPID-LLM", "SimuMax"};
    enum { TOOLS = sizeof tools / sizeof *tools };
    struct csv_table *csv = NULL;
    struct arena arena = ARENA_INIT;
    if (csv_load(&csv, page->peers, diag) != STATUS_OK)
        return;
    fputs("Other simulators on the same runs, which flopcast predicted blind: median and 90th percentile of errors in "
          "%.\n\n"
          "| runs | flopcast ",
        out);
    for (int t = 0; t < TOOLS; t++)
        fprintf(out, "| %s ", tools[t]);
    fputs("|\n|---|", out);
    for (int t = 0; t <= TOOLS; t++)
        fputs("--:|", out);
    fputs("\n", out);
    for (int r = 0; r < csv_rows(csv); r++) {
        const char *sample = csv_cell(csv, r, csv_column(csv, "sample"));
        bool opens = true, all = true;
        for (int before = 0; before < r && opens; before++)
            opens = strcmp(csv_cell(csv, before, csv_column(csv, "sample")), sample) != 0;
        if (!opens)
            continue;
        struct errors of[TOOLS], any = blind_errors(page->rows, csv, sample, NULL);
        for (int t = 0; t < TOOLS; t++) {
            of[t] = blind_errors(page->rows, csv, sample, tools[t]);
            all = all && of[t].peer.rows.n > 1;
        }
        if (all) {
            fprintf(out, "| %s ", sample);
            put_short(out, &arena, &any.own);
            for (int t = 0; t < TOOLS; t++)
                put_short(out, &arena, &of[t].peer);
            fputs("|\n", out);
        }
        for (int t = 0; t < TOOLS; t++) {
            vec_free(&of[t].peer.rows);
            vec_free(&of[t].own.rows);
        }
        vec_free(&any.peer.rows);
        vec_free(&any.own.rows);
    }
    csv_release(csv);
    arena_release(&arena);
}

static void put_evidence(FILE *out, const struct validate_page *page, struct diag *diag)
{
    const struct validate_table *rows = page->rows;
    put_sources(out, rows);
    validate_sure_page(out, rows, page->left);
    put_predictions(out, rows);
    validate_made_print(out, rows);
    put_apart(out, rows);
    put_classes(out, rows, BY_FRAMEWORK, "framework");
    put_classes(out, rows, BY_LAYOUT, "layout");
    put_classes(out, rows, BY_GPUS, "GPUs");
    put_classes(out, rows, BY_WAITING, "exposed communication and bubble");
    put_claims(out, page->claims, diag);
}

static const struct {
    const char *name; /* in the marker */
    void (*put)(FILE *out, const struct validate_page *page, struct diag *diag);
} parts[] = {{"", put_evidence}, {" summary", put_summary}, {" accuracy", put_accuracy}, {" peers", put_peers},
    {" other simulators", put_peers_in_short}, {" FSDP paper", put_fsdp_paper}};
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
    if (good)
        file_write(path, made, size, diag);
    free(made);
    free(text);
    return diag->worst;
}
