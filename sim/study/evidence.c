#include "study/evidence.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double LITTLE = 1e-3; /* of the change: less than the model knows */

/* Without noise, for one rank where ranks are alike; HBM is not followed. 0: it could not be simulated. */
static double quiet_speed(const struct scenario_point *of, const struct hw *hw, struct diag *diag)
{
    struct scenario_point point = *of;
    struct scenario_result result;
    struct arena arena = ARENA_INIT;
    point.hw = *hw;
    exec_be_quiet(&point.options.exec);
    point.options.exec.no_memory = true;
    point.options.exec.n_trace_ranks = 0;
    enum status status = scenario_simulate(&result, &point, &arena, diag);
    arena_release(&arena);
    return status == STATUS_OK ? result.tokens_per_s_per_gpu : 0;
}

/* The speed of the second point over that of the first, with some numbers the same on both. */
static double even_ratio(
    const struct scenario_point *const points[2], const struct hw_unlike *numbers, int n, struct diag *diag)
{
    struct hw a = points[0]->hw, b = points[1]->hw;
    for (int i = 0; i < n; i++)
        hw_even_out(&a, &b, &numbers[i]);
    double first = quiet_speed(points[0], &a, diag);
    return first > 0 ? quiet_speed(points[1], &b, diag) / first : 0;
}

static int largest_first(const void *a, const void *b)
{
    const struct scenario_unlike_part *x = a, *y = b;
    return fabs(x->part) < fabs(y->part)   ? 1
           : fabs(x->part) > fabs(y->part) ? -1
                                           : strcmp(x->number.key, y->number.key);
}

/* What each number makes of the change, alone; numbers that make little of it are left out. */
static void find_parts(struct scenario_unlike *out, const struct scenario_point *const points[2],
    const struct hw_unlikes *numbers, struct arena *arena, struct diag *diag)
{
    double ratio = 1 + out->change, quiet = even_ratio(points, NULL, 0, diag);
    struct hw_unlike *kept = ARENA_ARRAY(arena, struct hw_unlike, numbers->list.n);
    out->parts = ARENA_ARRAY(arena, struct scenario_unlike_part, numbers->list.n);
    for (int i = 0; i < numbers->list.n && diag->worst == STATUS_OK; i++) {
        double part = ratio * (1 - even_ratio(points, &numbers->list.at[i], 1, diag) / quiet);
        if (fabs(part) < LITTLE)
            continue;
        kept[out->n_parts] = numbers->list.at[i];
        out->parts[out->n_parts++] = (struct scenario_unlike_part){numbers->list.at[i], part};
    }
    if (out->n_parts == 0)
        return;
    out->even = ratio * even_ratio(points, kept, out->n_parts, diag) / quiet - 1;
    qsort(out->parts, (size_t)out->n_parts, sizeof *out->parts, largest_first);
}

enum status scenario_unlike(struct scenario_unlike *out, const struct scenario_point *const points[2],
    const double speeds[2], struct arena *arena, struct diag *diag)
{
    const struct scenario_cluster_options *first = &points[0]->options.cluster, *second = &points[1]->options.cluster;
    const struct hw *const machines[2] = {&points[0]->hw, &points[1]->hw};
    const struct hw *const given[2] = {&first->given, &second->given};
    *out = (struct scenario_unlike){0};
    if (strcmp(first->topology, second->topology) == 0 || !(speeds[0] > 0) || !(speeds[1] > 0))
        return STATUS_OK;
    out->change = out->even = speeds[1] / speeds[0] - 1;
    struct hw_unlikes numbers;
    hw_unlike(&numbers, machines, given, arena);
    if (numbers.list.n > 0)
        find_parts(out, points, &numbers, arena, diag);
    vec_free(&numbers.list);
    return diag->worst;
}
