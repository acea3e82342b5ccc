#include "crew/crew.h"

#include <stdlib.h>

struct weighed {
    double cost;
    int job;
};

static int costlier(const void *a, const void *b)
{
    const struct weighed *one = a, *two = b;
    if (one->cost != two->cost)
        return one->cost < two->cost ? 1 : -1;
    return one->job < two->job ? 1 : -1;
}

int *crew_order(const double *cost, int n)
{
    struct weighed *weighed = xcalloc((size_t)n + 1, sizeof *weighed);
    int *order = xcalloc((size_t)n + 1, sizeof *order);
    for (int i = 0; i < n; i++)
        weighed[i] = (struct weighed){cost[i], i};
    qsort(weighed, (size_t)n, sizeof *weighed, costlier);
    for (int i = 0; i < n; i++)
        order[i] = weighed[i].job;
    free(weighed);
    return order;
}

static int least(const double *loads, int n)
{
    int found = 0;
    for (int s = 1; s < n; s++)
        if (loads[s] < loads[found])
            found = s;
    return found;
}

void crew_shard(bool *mine, const double *cost, const int *with, int n, int shard, int shards)
{
    double *loads = xcalloc((size_t)shards, sizeof *loads), *sums = xcalloc((size_t)n + 1, sizeof *sums);
    for (int i = 0; i < n; i++) {
        BUG_IF(with && (with[i] < 0 || with[i] > i || with[with[i]] != with[i]), "job %d is with %d", i, with[i]);
        sums[with ? with[i] : i] += cost[i];
    }
    int *order = crew_order(sums, n);
    for (int k = 0; k < n; k++) {
        int i = order[k];
        if (with && with[i] != i)
            continue;
        int chosen = least(loads, shards);
        loads[chosen] += sums[i];
        mine[i] = chosen == shard - 1;
    }
    for (int i = 0; i < n && with; i++)
        mine[i] = mine[with[i]];
    free(order);
    free(loads);
    free(sums);
}
