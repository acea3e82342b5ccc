/* Columns and sentences about layouts: what their steps are made of.
 *
 * A step is taken apart by the candidate's bound (study/bound.h): kernels, collectives of
 * tensor, context and expert groups, fill and drain of the pipeline; the rest is what the
 * simulated step takes beyond these. So the parts add up to the step, but the rest also holds
 * what overlaps imperfectly. What is subtle: parts of two layouts are compared by their
 * differences over the best one's step, so they are in the same unit as the difference of the
 * steps. */
#include "cli/tune.h"

#include "rows/rows.h"
#include "rows/words.h"

#include <math.h>
#include <stdlib.h>

enum part { PART_KERNELS, PART_GROUPS, PART_BUBBLE, PART_REST, PART_COUNT };
static const struct {
    const char *name, *heading;
} parts[PART_COUNT] = {
    [PART_KERNELS] = {"kernels", "kernels"},
    [PART_GROUPS] = {"collectives of tensor, context and expert groups", "tp cp ep"},
    [PART_BUBBLE] = {"fill and drain of the pipeline", "fill, drain"},
    [PART_REST] = {"messages, gradients, weights and kernels slower beside collectives", "rest"},
};

/* A step in seconds, as bound.h takes it apart. */
static void tune_layout_parts_of(double part_s[PART_COUNT], const struct tune_candidate *candidate)
{
    const struct bound *bound = &candidate->bound;
    part_s[PART_KERNELS] = bound->kernels_s;
    part_s[PART_GROUPS] =
        fmax(0, bound->group_s); /* a difference, which rounds below 0 where there are none */
    part_s[PART_BUBBLE] = bound->bubble_s;
    part_s[PART_REST] =
        fmax(0, candidate->quiet.step_time_s - bound->kernels_s - bound->group_s - bound->bubble_s);
}

void tune_layout_shares(struct rows *rows, const struct tune_candidate *candidate)
{
    double part_s[PART_COUNT];
    tune_layout_parts_of(part_s, candidate);
    for (int p = 0; p < PART_COUNT; p++)
        rows_real(rows, COLUMN(NULL, parts[p].heading, "% of step", .digits = 1),
            candidate->is_layout, 100 * part_s[p] / candidate->quiet.step_time_s);
}

const char *tune_name(struct arena *arena, const struct tune_candidate *candidate)
{
    const struct strategy_options *strategy = &candidate->point.options.strategy;
    const char *name = candidate->is_layout ? "" : strategy_label(strategy);
    for (enum tune_axis_index i = TUNE_TENSOR; i < TUNE_AXES; i++) {
        int degree = (int)tune_axis_value(i, &candidate->point);
        bool always = i == TUNE_TENSOR || i == TUNE_PIPELINE;
        if (tune_axes[i].label && (always ? candidate->is_layout : degree > 1))
            name = arena_printf(
                arena, "%s%s%s %d", name, *name ? ", " : "", tune_axes[i].label, degree);
    }
    return arena_printf(arena, "%s, micro-batch %d, checkpointing %s", name,
        (int)strategy->train.micro_batch,
        checkpointing_names[strategy->train.activation_checkpointing]);
}

/* Why another one is slower: the part that is longer by most, and what is shorter, if anything is.
 */
static void print_slower(
    FILE *out, const struct tune_candidate *best, const struct tune_candidate *other)
{
    double of_best[PART_COUNT], of_other[PART_COUNT], step_s = best->quiet.step_time_s;
    int most = 0, least = 0;
    tune_layout_parts_of(of_best, best);
    tune_layout_parts_of(of_other, other);
    for (int p = 1; p < PART_COUNT; p++) {
        most = of_other[p] - of_best[p] > of_other[most] - of_best[most] ? p : most;
        least = of_other[p] - of_best[p] < of_other[least] - of_best[least] ? p : least;
    }
    struct arena arena = ARENA_INIT;
    const char *text = arena_printf(&arena, "%s: %+.1f %%; %s %+.1f %%", tune_name(&arena, other),
        100 * (other->quiet.step_time_s / step_s - 1), parts[most].name,
        100 * (of_other[most] - of_best[most]) / step_s);
    if (of_other[least] < of_best[least])
        text = arena_printf(&arena, "%s, %s %+.1f %%", text, parts[least].name,
            100 * (of_other[least] - of_best[least]) / step_s);
    screen_wrap(
        out, "  ", arena_printf(&arena, "%s; %.1f GiB", text, other->quiet.peak_bytes / GIB));
    arena_release(&arena);
}

/* Layouts of the base that do not fit, and could have been faster. Only those whose bound is
 * below the best step; others would not have been wanted. */
static int count_unfit(const struct tune *tune, const struct tune_candidate *best)
{
    int n = 0;
    for (int i = 0; i < tune->candidates.n; i++) {
        const struct tune_candidate *at = &tune->candidates.at[i];
        bool unfit = at->state == TUNE_PRUNED || at->state == TUNE_OOM;
        n += at->is_layout && unfit && at->base == best->base && at->bound.step_s > 0 &&
             at->bound.step_s < best->quiet.step_time_s;
    }
    return n;
}

/* The best's parts, and of the next three of its base what they add to them. */
void tune_why(FILE *out, const struct tune *tune, const int *order, int n)
{
    enum { NEXT = 3 };
    const struct tune_candidate *best = &tune->candidates.at[order[0]];
    double part_s[PART_COUNT];
    int others = 1, unfit = count_unfit(tune, best);
    if (!best->is_layout)
        return;
    tune_layout_parts_of(part_s, best);
    const char *text = "";
    struct arena arena = ARENA_INIT;
    for (int p = 0; p < PART_COUNT; p++)
        text = arena_printf(&arena, "%s%s%s %.1f %%", text, p == 0 ? "" : ", ", parts[p].name,
            100 * part_s[p] / best->quiet.step_time_s);
    words_paragraph_of(out, "why: of its step, %s; %.1f GiB of %.1f", text,
        best->quiet.peak_bytes / GIB, best->point.hw.gpu.hbm_capacity.value / GIB);
    arena_release(&arena);
    for (int i = 1; i < n && others <= NEXT; i++) {
        const struct tune_candidate *at = &tune->candidates.at[order[i]];
        if (!at->is_layout || at->base != best->base)
            continue;
        if (others == 1)
            fputs("the next that differ in more than vp, by what they add to its step:\n", out);
        print_slower(out, best, at);
        others++;
    }
    if (unfit > 0)
        fprintf(out, "%d that do not fit could be faster by their bounds\n", unfit);
}
