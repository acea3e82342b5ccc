/* Columns and sentences about layouts: their degrees, and what their steps are made of.
 *
 * A step is taken apart by the candidate's bound (study/bound.h): kernels, collectives of
 * tensor, context and expert groups, fill and drain of the pipeline; the rest is what the
 * simulated step takes beyond these. So the parts add up to the step, but the rest also holds
 * what overlaps imperfectly. What is subtle: parts of two layouts are compared by their
 * differences over the best one's step, so they are in the same unit as the difference of the
 * steps. */
#include "cli/tune.h"

#include "rows/rows.h"
#include "rows/table.h"
#include "rows/words.h"

#include <math.h>
#include <stdlib.h>

/* Layouts: degrees, and what their steps are made of. */

enum part { PART_KERNELS, PART_GROUPS, PART_BUBBLE, PART_REST, PART_COUNT };
static const char *const part_names[PART_COUNT] = {
    [PART_KERNELS] = "kernels",
    [PART_GROUPS] = "collectives of tensor, context and expert groups",
    [PART_BUBBLE] = "fill and drain of the pipeline",
    [PART_REST] = "messages, gradients, weights and kernels slower beside collectives",
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

struct degrees {
    int64_t tensor, context, pipeline, chunks, expert, data;
};

static struct degrees degrees_of(const struct scenario_point *point)
{
    const struct parallelism_options *parallel = &point->options.strategy.parallelism;
    return (struct degrees){model_tensor_ranks(&parallel->model),
        model_context_ranks(&parallel->model), parallel->pipeline, parallel->virtual_stages,
        model_expert_ranks(&parallel->model),
        strategy_data_ranks(parallel, point->options.cluster.gpus)};
}

static void tune_layout_integer(struct table *table, const char *name, bool known, int64_t value)
{
    table_number(table, name, "", 0, known ? (double)value : TABLE_UNKNOWN);
}

void tune_layout_columns(struct table *table, const struct tune_candidate *candidate)
{
    struct degrees at = degrees_of(&candidate->point);
    bool known = candidate->is_layout;
    tune_layout_integer(table, "tp", known, at.tensor);
    tune_layout_integer(table, "cp", known, at.context);
    tune_layout_integer(table, "pp", known, at.pipeline);
    tune_layout_integer(table, "vp", known, at.chunks);
    tune_layout_integer(table, "ep", known, at.expert);
    tune_layout_integer(table, "dp", known, at.data);
}

void tune_layout_shares(struct table *table, const struct tune_candidate *candidate)
{
    static const char *const heads[PART_COUNT] = {"kernels", "tp cp ep", "fill, drain", "rest"};
    double part_s[PART_COUNT];
    tune_layout_parts_of(part_s, candidate);
    for (int p = 0; p < PART_COUNT; p++)
        table_number(table, heads[p], "% of step", 1,
            candidate->is_layout ? 100 * part_s[p] / candidate->quiet.step_time_s : TABLE_UNKNOWN);
}

void tune_layout_cells(struct rows *rows, const struct tune_candidate *candidate)
{
    bool known = candidate->is_layout;
    struct degrees at = known ? degrees_of(&candidate->point) : (struct degrees){0};
    rows_int(rows, COLUMN("tensor"), at.tensor);
    rows_int(rows, COLUMN("context"), at.context);
    rows_int(rows, COLUMN("pipeline"), at.pipeline);
    rows_int(rows, COLUMN("virtual"), at.chunks);
    rows_int(rows, COLUMN("expert"), at.expert);
    rows_int(rows, COLUMN("data"), at.data);
    rows_real(rows, COLUMN("bound_step_s"), known, candidate->bound.step_s);
    rows_real(rows, COLUMN("bound_kernels_s"), known, candidate->bound.kernels_s);
    rows_real(rows, COLUMN("bound_groups_s"), known, candidate->bound.group_s);
    rows_real(rows, COLUMN("bound_bubble_s"), known, candidate->bound.bubble_s);
}

bool tune_differs(const struct tune_candidate *a, const struct tune_candidate *b)
{
    struct degrees one = degrees_of(&a->point), two = degrees_of(&b->point);
    const struct train_options *train = &a->point.options.strategy.train,
                               *other = &b->point.options.strategy.train;
    return one.tensor != two.tensor || one.context != two.context || one.pipeline != two.pipeline ||
           one.expert != two.expert || train->micro_batch != other->micro_batch ||
           train->activation_checkpointing != other->activation_checkpointing;
}

void tune_name(FILE *out, const struct tune_candidate *candidate)
{
    struct degrees at = degrees_of(&candidate->point);
    const struct train_options *train = &candidate->point.options.strategy.train;
    if (candidate->is_layout)
        fprintf(out, "tp %d", (int)at.tensor);
    else
        fputs(strategy_label(&candidate->point.options.strategy), out);
    if (at.context > 1)
        fprintf(out, ", cp %d", (int)at.context);
    if (candidate->is_layout)
        fprintf(out, ", pp %d", (int)at.pipeline);
    if (at.chunks > 1)
        fprintf(out, ", vp %d", (int)at.chunks);
    if (at.expert > 1)
        fprintf(out, ", ep %d", (int)at.expert);
    fprintf(out, ", micro-batch %d, checkpointing %s", (int)train->micro_batch,
        checkpointing_names[train->activation_checkpointing]);
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
    char *text = NULL;
    size_t n = 0;
    FILE *to = out;
    out = open_memstream(&text, &n);
    BUG_IF(!out, "open_memstream failed");
    tune_name(out, other);
    fprintf(out, ": %+.1f %%; %s %+.1f %%", 100 * (other->quiet.step_time_s / step_s - 1),
        part_names[most], 100 * (of_other[most] - of_best[most]) / step_s);
    if (of_other[least] < of_best[least])
        fprintf(out, ", %s %+.1f %%", part_names[least],
            100 * (of_other[least] - of_best[least]) / step_s);
    fprintf(out, "; %.1f GiB", other->quiet.peak_bytes / 0x1p30);
    fclose(out);
    screen_wrap(to, "  ", text);
    free(text);
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

/* The first three that differ from the best and from each other in more than chunks. */
void tune_why(FILE *out, const struct tune *tune, const int *order, int n)
{
    enum { NEXT = 3 };
    const struct tune_candidate *best = &tune->candidates.at[order[0]], *named[NEXT + 1] = {best};
    double part_s[PART_COUNT];
    int others = 1, unfit = count_unfit(tune, best);
    if (!best->is_layout)
        return;
    tune_layout_parts_of(part_s, best);
    const char *parts = "";
    struct arena arena = ARENA_INIT;
    for (int p = 0; p < PART_COUNT; p++)
        parts = arena_printf(&arena, "%s%s%s %.1f %%", parts, p == 0 ? "" : ", ", part_names[p],
            100 * part_s[p] / best->quiet.step_time_s);
    words_paragraph_of(out, "why: of its step, %s; %.1f GiB of %.1f", parts,
        best->quiet.peak_bytes / 0x1p30, best->point.hw.gpu.hbm_capacity.value / 0x1p30);
    arena_release(&arena);
    for (int i = 1; i < n && others <= NEXT; i++) {
        const struct tune_candidate *at = &tune->candidates.at[order[i]];
        bool is_new = at->is_layout && at->base == best->base;
        for (int k = 0; k < others && is_new; k++)
            is_new = tune_differs(named[k], at);
        if (!is_new)
            continue;
        if (others == 1)
            fputs("the next that differ in more than vp, by what they add to its step:\n", out);
        print_slower(out, best, at);
        named[others++] = at;
    }
    if (unfit > 0)
        fprintf(out, "%d that do not fit could be faster by their bounds\n", unfit);
}
