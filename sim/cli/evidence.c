#include "cli/evidence.h"

#include "cli/table.h"
#include "cli/words.h"

#include <stdlib.h>
#include <string.h>

static const double PERCENT = 100;

static const char *percent(double share, struct arena *arena)
{
    return words_number(arena, PERCENT * share, 1, true);
}

/* What both forms say; apart: between its halves, a space or the end of a line. */
static const char *sentence(const struct scenario_unlike *unlike, const struct evidence_pair *pair,
    const char *const names[2], char apart, struct arena *arena)
{
    const char *a = pair->points[0]->hw.gpu.silicon, *b = pair->points[1]->hw.gpu.silicon, *chip = "";
    if (a && b && strcmp(a, b) == 0 && strcmp(pair->points[0]->hw.gpu.name, pair->points[1]->hw.gpu.name) != 0)
        chip = arena_printf(arena, " (both GPUs are %s)", a);
    const char *what = pair->what ? arena_printf(arena, ", %s", pair->what) : "";
    return arena_printf(arena,
        "unlike evidence%s%s: of the %s %% from %s to %s,%c%s points rest on numbers known for one and assumed or "
        "missing for the other; with the known ones on both: %s %%",
        what, chip, percent(unlike->change, arena), names[0], names[1], apart,
        percent(unlike->change - unlike->even, arena), percent(unlike->even, arena));
}

static void print_parts(
    FILE *out, const struct scenario_unlike *unlike, const char *const names[2], struct arena *arena)
{
    struct table table = {0};
    for (int i = 0; i < unlike->n_parts; i++) {
        const struct scenario_unlike_part *part = &unlike->parts[i];
        table_row(&table);
        table_text(&table, "number", "", part->number.key);
        table_text(&table, names[0], "", hw_unlike_text(&part->number, 0, arena));
        table_text(&table, names[1], "", hw_unlike_text(&part->number, 1, arena));
        table_number_as(&table, "points", "", percent(part->part, arena));
    }
    table_finish(out, &table);
}

static const char *list_parts(const struct scenario_unlike *unlike, struct arena *arena)
{
    const char *text = "";
    for (int i = 0; i < unlike->n_parts; i++) {
        const struct scenario_unlike_part *part = &unlike->parts[i];
        text = arena_printf(arena, "%s%s %s: %s, %s", text, i ? ";" : ":", part->number.key,
            hw_unlike_text(&part->number, 0, arena), hw_unlike_text(&part->number, 1, arena));
    }
    return text;
}

void evidence_report(FILE *out, const struct evidence_pair *pair, struct source_pos at, struct diag *diag)
{
    const struct hw *a = &pair->points[0]->hw, *b = &pair->points[1]->hw;
    bool gpus = strcmp(a->gpu.name, b->gpu.name) != 0;
    const char *const names[2] = {pair->names[0] ? pair->names[0]
                                  : gpus         ? a->gpu.name
                                                 : a->cluster.name,
        pair->names[1] ? pair->names[1]
        : gpus         ? b->gpu.name
                       : b->cluster.name};
    struct arena arena = ARENA_INIT;
    struct scenario_unlike unlike;
    if (scenario_unlike(&unlike, pair->points, pair->speeds, &arena, diag) == STATUS_OK && unlike.n_parts > 0) {
        const char *text = sentence(&unlike, pair, names, out ? '\n' : ' ', &arena);
        if (out) {
            fprintf(out, "\n%s\n\n", text);
            print_parts(out, &unlike, names, &arena);
        } else {
            diag_warn(diag, at, "%s%s", text, list_parts(&unlike, &arena));
        }
    }
    arena_release(&arena);
}

/* In how many settings beside the cluster two points differ. */
static int differences(const struct vary *vary, const struct scenario *a, const struct scenario *b)
{
    int n = 0;
    for (int i = 0; i < vary->options.n; i++)
        n += strcmp(vary->options.at[i].path, "cluster.topology") != 0 && vary_differs(&vary->options.at[i], a, b);
    return n;
}

static const char *topology_of(const struct scenario_set *set, int point)
{
    return set->points[point].options.cluster.topology;
}

/* The first point that ran on the cluster that point i is the first of; -1: i is not, or none ran. */
static int first_that_ran(const struct scenario_set *set, const struct scenario_result *results, int i)
{
    for (int j = 0; j < i; j++)
        if (strcmp(topology_of(set, j), topology_of(set, i)) == 0)
            return -1;
    for (int j = i; j < set->n_points; j++)
        if (results[j].exec.status == EXEC_OK && strcmp(topology_of(set, j), topology_of(set, i)) == 0)
            return j;
    return -1;
}

/* The point of the first topology that is nearest to this one. */
static int counterpart(
    const struct scenario_set *set, const struct scenario_result *results, const struct vary *vary, int point)
{
    int best = -1, least = 0;
    for (int i = 0; i < set->n_points; i++) {
        if (results[i].exec.status != EXEC_OK || strcmp(topology_of(set, i), topology_of(set, 0)) != 0)
            continue;
        int n = differences(vary, &set->points[i].options, &set->points[point].options);
        if (best < 0 || n < least) {
            best = i;
            least = n;
        }
    }
    return best;
}

void evidence_report_swept(
    FILE *out, const struct scenario_set *set, const struct scenario_result *results, struct diag *diag)
{
    struct arena arena = ARENA_INIT;
    struct vary vary;
    vary_find(&vary, set, &arena);
    for (int i = 1; i < set->n_points; i++) {
        if (strcmp(topology_of(set, i), topology_of(set, 0)) == 0)
            continue;
        int other = first_that_ran(set, results, i), first = other < 0 ? -1 : counterpart(set, results, &vary, other);
        if (first < 0)
            continue;
        const struct evidence_pair pair = {.points = {&set->points[first], &set->points[other]},
            .what = words_point(&set->points[other], &arena),
            .speeds = {results[first].tokens_per_s_per_gpu, results[other].tokens_per_s_per_gpu}};
        evidence_report(out, &pair, (struct source_pos){.file = set->file}, diag);
    }
    vec_free(&vary.options);
    arena_release(&arena);
}

static double speed_of(const struct tune_candidate *candidate)
{
    return candidate->quiet.tokens_per_s / (double)candidate->point.options.cluster.gpus;
}

void evidence_report_search(FILE *out, const struct tune *tune, const char *file, struct diag *diag)
{
    int *order = xcalloc((size_t)tune->candidates.n + 1, sizeof *order);
    int n = tune_rank_quiet(order, tune, TUNE_BY_SPEED);
    for (int i = 1; i < n; i++) {
        const struct tune_candidate *best = &tune->candidates.at[order[0]], *other = &tune->candidates.at[order[i]];
        bool first = true; /* of its cluster */
        for (int j = 0; j < i && first; j++)
            first = strcmp(tune->candidates.at[order[j]].point.options.cluster.topology,
                        other->point.options.cluster.topology) != 0;
        if (!first)
            continue;
        const struct evidence_pair pair = {.points = {&best->point, &other->point},
            .speeds = {speed_of(best), speed_of(other)},
            .what = "a GPU of the fastest of each"};
        evidence_report(out, &pair, (struct source_pos){.file = file}, diag);
    }
    free(order);
}
