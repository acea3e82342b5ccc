/* FOLD_SLOWEST: which ranks are simulated (exec.h). Ranks that meet in collectives which do not
 * serve data parallelism are a set in lockstep; nodes that such sets and messages join are a unit.
 */
#include "exec/state.h"

#include <gsl/gsl_sort.h>

/* Units and ranks that are simulated, or stood for, as long as there are others. One unit alone
 * never waits for another, and a slow GPU costs a pipeline less than its stage's time, so the next
 * slowest may be last: of 70B with pipelines on 256 and 512 GPUs one unit is 1.2 and 1.7 % too
 * fast, two 0.4 %, four 0.01 %. */
enum { LEAST_UNITS = 4, LEAST_RANKS = 32 };
/* By how much the GPUs of a unit may be faster than the slowest of all and still be waited for,
 * which are units of slow hosts (10 %) then. Two of pipelines are there in any case: where what is
 * not kernels takes the most of a step, one with a slow host is 0.3 % too fast alone. All are where
 * hosts are waited for. */
static const double WAITED_FOR = 0.05;
/* Which hosts will be slow is not known before; beyond these slower_hosts() does for the others. Of
 * nanotron's 920 runs on up to 512 GPUs 32 ranks put 42 off by more than 2 %, one by 12; 128 and
 * 256 ranks put four of 1B by 0.4 and 0.3 %. */
enum { LEAST_RANKS_BY_HOSTS = 512 };

struct parts {
    int *set_of;  /* of each rank: the lowest one of its set */
    int *unit_of; /* of each node: the lowest one of its unit */
};

static int slowest_root(int *of, int i)
{
    while (of[i] != i)
        i = of[i] = of[of[i]];
    return i;
}

static void slowest_join(int *of, int a, int b)
{
    a = slowest_root(of, a);
    b = slowest_root(of, b);
    of[a > b ? a : b] = a > b ? b : a;
}

static int *slowest_apart(const struct sim *sim, int n)
{
    int *of = ARENA_ARRAY(sim->arena, int, n);
    for (int i = 0; i < n; i++)
        of[i] = i;
    return of;
}

/* Ranks of the group meet for data parallelism alone. */
static bool slowest_is_data_parallel(const struct plan *plan, int group)
{
    for (int c = 0; c < plan->collectives.n; c++)
        if (plan->collectives.at[c].group == group &&
            plan->collectives.at[c].serves != PARALLEL_DATA)
            return false;
    return true;
}

static struct parts slowest_parts_of(const struct sim *sim)
{
    const struct plan *plan = sim->plan;
    int ranks = plan->mesh.ranks, in_node = sim->fabric.gpus;
    struct parts parts = {slowest_apart(sim, ranks), slowest_apart(sim, sim->fabric.nodes)};
    for (int g = 0; g < plan->groups.n; g++) {
        const struct mesh_group *group = &plan->groups.at[g].ranks;
        int instances = slowest_is_data_parallel(plan, g) ? 0 : mesh_group_instances(group, ranks);
        for (int i = 0; i < instances; i++)
            for (int m = 1, first = mesh_group_first(group, i); m < group->size; m++)
                if (plan_program_of(plan, first) ==
                    plan_program_of(plan, first + m * group->stride))
                    slowest_join(parts.set_of, first, first + m * group->stride);
                else
                    slowest_join(
                        parts.unit_of, first / in_node, (first + m * group->stride) / in_node);
    }
    for (int r = 0; r < ranks; r++) {
        parts.set_of[r] = slowest_root(parts.set_of, r);
        slowest_join(parts.unit_of, r / in_node, parts.set_of[r] / in_node);
    }
    for (int c = 0; c < plan->channels.n; c++)
        for (int r = 0; r < ranks; r++)
            slowest_join(parts.unit_of, r / in_node,
                mesh_neighbour(
                    &plan->mesh, r, plan->channels.at[c].axis, plan->channels.at[c].delta) /
                    in_node);
    for (int node = 0; node < sim->fabric.nodes; node++)
        parts.unit_of[node] = slowest_root(parts.unit_of, node);
    return parts;
}

/* The units with the slowest GPUs; gives how many ranks they have. speeds: NULL where GPUs are
 * alike. */
static int slowest_watch(
    struct sim *sim, const struct parts *parts, const struct gpu_speeds *speeds)
{
    int nodes = sim->fabric.nodes, taken = 0;
    int least = sim->fold.hosts_matter ? LEAST_RANKS_BY_HOSTS : LEAST_RANKS;
    double *slowest = ARENA_ARRAY(sim->arena, double, nodes);
    int *ranks_of = ARENA_ARRAY(sim->arena, int, nodes);
    size_t *order = ARENA_ARRAY(sim->arena, size_t, nodes);
    for (int node = 0; node < nodes; node++)
        slowest[node] = HUGE_VAL;
    for (int r = 0; r < sim->plan->mesh.ranks; r++) {
        int unit = parts->unit_of[r / sim->fabric.gpus];
        slowest[unit] = fmin(slowest[unit], speeds ? speeds[r].of[SPEED_LIMITED] : 1);
        ranks_of[unit]++;
    }
    gsl_sort_index(order, slowest, 1, (size_t)nodes);
    sim->fold.watched = ARENA_ARRAY(sim->arena, bool, nodes);
    for (int i = 0, n = 0; i < nodes && (n < LEAST_UNITS || taken < least); i++) {
        int unit = (int)order[i];
        bool behind = slowest[unit] > (1 + WAITED_FOR) * slowest[order[0]];
        if (behind && !sim->fold.hosts_matter && n >= (sim->plan->n_programs > 1 ? 2 : 1))
            break;
        n += ranks_of[unit] > 0;
        taken += ranks_of[unit];
        for (int node = 0; node < nodes && ranks_of[unit] > 0; node++)
            sim->fold.watched[node] |= parts->unit_of[node] == unit;
    }
    return taken;
}

/* By how many standard deviations the slowest host of all is behind the slowest of those that are
 * watched, expected. */
static double slower_hosts(const struct sim *sim, int watched)
{
    int ranks = sim->plan->mesh.ranks;
    return rng_normal_score(ranks - 1, ranks) - rng_normal_score(watched - 1, watched);
}

int stand_in(const struct sim *sim, int number)
{
    int index = sim->fold.index_of[number], program = plan_program_of(sim->plan, number);
    if (index < 0)
        for (index = 0; plan_program_of(sim->plan, sim->fold.numbers[index]) != program;)
            index++;
    return index;
}

void slowest_choose(struct sim *sim, struct gpu_speeds *speeds)
{
    int ranks = sim->plan->mesh.ranks, n = 0;
    struct parts parts = slowest_parts_of(sim);
    int watched = slowest_watch(sim, &parts, speeds);
    sim->fold.numbers = ARENA_ARRAY(sim->arena, int, watched);
    for (int r = 0; r < ranks; r++) {
        int first = sim->fold.hosts_matter ? r : parts.set_of[r];
        sim->fold.index_of[r] = -1;
        if (!sim->fold.watched[r / sim->fabric.gpus])
            continue;
        if (first == r)
            sim->fold.numbers[n++] = r;
        sim->fold.index_of[r] = first == r ? n - 1 : sim->fold.index_of[first];
        for (int s = 0; speeds && s < SPEED_COUNT; s++)
            speeds[first].of[s] = fmin(speeds[first].of[s], speeds[r].of[s]);
    }
    sim->n_ranks = n;
    sim->fold.siblings = sim->fold.watched_alone = true;
    sim->fold.simulated_share = (double)watched / ranks;
    sim->fold.hosts_behind = slower_hosts(sim, watched);
}
