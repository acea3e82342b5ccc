/* Parts of the page that README.md shows: accuracy by groups of results/groups.csv, the loss of T5, verdicts. */
#include "cli/validate_parts.h"

#include "cli/words.h"
#include "config/csv.h"
#include "validate/first_sight.h"

#include <fnmatch.h>
#include <math.h>
#include <string.h>

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

void validate_summary_put(FILE *out, const struct validate_table *rows)
{
    struct arena arena = ARENA_INIT;
    const struct group rest = {.sources = "", .gpus = ""};
    struct validate_summary today = validate_summarise(rows, in_group, &rest);
    struct validate_first_sight blind = validate_first_sight_summarise(rows, in_group, &rest);
    int stale = 0;
    for (int i = 0; i < rows->rows.n; i++)
        stale += rows->rows.at[i].stale;
    if (blind.first.n_errors > 0)
        fprintf(out, "**Why believe it?** %s published runs were predicted blind: median error %s %%.\n",
            whole(&arena, blind.first.n_errors), percent(&arena, blind.first.median));
    else
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

void validate_accuracy_put(FILE *out, const struct validate_table *rows, const char *groups, struct diag *diag)
{
    struct csv_table *csv = NULL;
    struct arena arena = ARENA_INIT;
    if (csv_load(&csv, groups, diag) != STATUS_OK)
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

void validate_source_put(FILE *out, const struct validate_table *rows, const char *source)
{
    struct arena arena = ARENA_INIT;
    fputs("| run | model | strategy | GPUs | simulated tokens/s/GPU | published | error % | of the smallest cluster | "
          "published |\n|---|---|---|--:|--:|--:|--:|--:|--:|\n",
        out);
    for (int i = 0; i < rows->rows.n; i++) {
        const struct validate_row *row = &rows->rows.at[i];
        if (!is_of(source, row->source) || row->status == VALIDATE_NOT_SIMULATED)
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
