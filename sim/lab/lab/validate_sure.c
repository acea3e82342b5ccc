/* How sure predictions are (validate/sure_fit.h), below the tables of `validate` and on a page. */
#include "lab/validate_parts.h"
#include "rows/words.h"

#include <inttypes.h>
#include <math.h>

/* What a measurement of one's own is worth. */
static const char *given_sentence(struct arena *arena, const struct sure_given_score *given)
{
    return arena_printf(arena,
        "With the smallest row of a curve as a measurement of one's own (run --measured) %d others "
        "of %d makers are off by %.1f %% in the median, 9 of 10 by at most %.1f %% (%.1f and %.1f "
        "without); %.0f %% of the rows lie in their intervals, %.0f %% by makers; median width "
        "%.0f %%",
        given->rows, given->makers, 100 * given->median, 100 * given->p90,
        100 * given->before_median, 100 * given->before_p90, 100 * given->covered,
        100 * given->covered_makers, 100 * given->width);
}

static void put_score(FILE *out, const char *what, const struct sure_score *score)
{
    fprintf(out, "  %-22s %5.1f %9.1f %8.0f %9.3f %9.3f\n", what, 100 * score->covered_rows,
        100 * score->covered_makers, 100 * score->width, score->score_rows, score->score_makers);
}

void validate_sure_print(FILE *out, const struct sure_left_out *left)
{
    struct arena arena = ARENA_INIT;
    if (left->makers > 1) {
        fputc('\n', out);
        words_paragraph_of(out,
            "how sure: 90 %% intervals of %d speeds of %d makers, each maker's by the runs of the "
            "others. The score of an interval is its width and 20 times what a measurement lies "
            "outside, of the prediction; less is better:",
            left->rows, left->makers);
        fprintf(out,
            "\n  %-22s inside, %%           width, %%  score\n  %-22s  rows    makers   median     "
            " rows    makers\n",
            "", "");
        put_score(out, "as printed", &left->by_terms);
        put_score(out, "one for all jobs", &left->by_constant);
        fputc('\n', out);
        words_paragraph(out, given_sentence(&arena, &left->given));
    }
    arena_release(&arena);
}

void validate_loss_print(FILE *out, const struct validate_table *rows)
{
    struct validate_loss loss = validate_loss(rows);
    if (loss.n > 0)
        words_paragraph_of(out,
            "\ncurves of DDP and FSDP alone lose %.2f %% of the speed on their smallest cluster, "
            "and %.2f are predicted: %.2f +- %.2f are not explained (%d ratios of %d makers, too "
            "small in %d)",
            100 * loss.measured, 100 * loss.predicted, 100 * (loss.measured - loss.predicted),
            100 * loss.std_error, loss.n, loss.sources, loss.too_small);
}

/* ---- on a page ---- */

static void put_page_score(FILE *out, const char *what, const struct sure_score *score)
{
    fprintf(out, "| %s | %.1f | %.1f | %.0f | %.3f | %.3f |\n", what, 100 * score->covered_rows,
        100 * score->covered_makers, 100 * score->width, score->score_rows, score->score_makers);
}

static void put_ratios(FILE *out, const char *what, const struct sure_ratios *ratios)
{
    fprintf(out,
        "| ratios of two sizes, %s, per root of a doubling | %" PRId64 " | %" PRId64
        " | -%.1f to +%.1f |\n",
        what, ratios->runs, ratios->makers, 100 * -expm1(-ratios->slower),
        100 * expm1(ratios->faster));
}

void validate_sure_page(
    FILE *out, const struct validate_table *rows, const struct sure_left_out *left)
{
    struct arena arena = ARENA_INIT;
    struct sure_numbers numbers;
    if (left->makers > 1) {
        fprintf(out,
            "\n### How sure\n\nIntervals of 90 %% of %d speeds of %d makers, each maker's by the "
            "runs of the others (`sim/lab/validate/sure_fit.h`). *score*: the width and\n20 times "
            "what a measurement lies outside, of the prediction (Winkler's); less is better.\n\n| "
            "interval | inside: rows, %% | makers, %% | width, %%: median | score: rows | makers "
            "|\n|---|--:|--:|--:|--:|--:|\n",
            left->rows, left->makers);
        put_page_score(out, "as printed", &left->by_terms);
        put_page_score(out, "one for all jobs", &left->by_constant);
        fprintf(out, "\n%s.\n", given_sentence(&arena, &left->given));
    }
    if (sure_fit(&numbers, rows, &arena)) {
        struct sure_range peak = sure_peak(&numbers);
        fputs("\n| measured / predicted - 1, 9 of 10 | number | makers | between, % "
              "|\n|---|--:|--:|--:|\n",
            out);
        put_ratios(out, "data parallelism alone", &numbers.ratios[0]);
        put_ratios(out, "ranks that share a model", &numbers.ratios[1]);
        fprintf(out, "| peaks of memory | %" PRId64 " | %" PRId64 " | %+.1f to %+.1f |\n",
            numbers.peak_runs, numbers.peak_makers, 100 * (peak.low - 1), 100 * (peak.high - 1));
        fprintf(out,
            "\nCurves of DDP and FSDP alone lose %.2f +- %.2f points more than predicted (%" PRId64
            " ratios of %" PRId64 " makers).\n",
            100 * numbers.loss.value, 100 * numbers.loss.std_error, numbers.loss.runs,
            numbers.loss.makers);
    }
    arena_release(&arena);
}
