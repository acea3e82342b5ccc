/* Several jobs on one cluster: which nodes each gets, and how fast each is alone and beside the
 * others.
 *
 * Nodes are whole: those given by --nodes are taken first, the others are dealt out packed, in
 * turns, or drawn. Each job is simulated alone on its nodes, then all in one simulation
 * (exec_run_together()). What is subtle: a step of a job only counts as long as all others run
 * beside it, so each job gets as many measured steps as fill the longest measured time. All jobs
 * must see the same links, which check() compares; ranks of different jobs then share link after
 * link. */
#include "study/together.h"

#include "base/rng.h"
#include "scenario/kinds.h"

#include <math.h>
#include <stdlib.h>

const char *const together_placement_names[] = {"packed", "interleaved", "drawn", NULL};

enum { ENTITY_PLACEMENT = 1 };

/* ---- who gets which nodes ---- */

static struct source_pos at_nodes(int job, struct arena *arena)
{
    return (struct source_pos){.file = arena_printf(arena, "--nodes %d", job + 1)};
}

/* "0-3,8" to numbers; false: it is none. At most n of them are kept, all are counted. */
static bool read_nodes(const char *text, int *nodes, int room, int *count)
{
    *count = 0;
    for (const char *rest = text;; rest++) {
        char *end = NULL;
        long first = strtol(rest, &end, 10), last = first;
        if (end == rest)
            return false;
        rest = end;
        if (*rest == '-') {
            last = strtol(rest + 1, &end, 10);
            if (end == rest + 1)
                return false;
            rest = end;
        }
        if (first < 0 || last < first || last >= SCENARIO_MAX_POINTS)
            return false;
        for (long node = first; node <= last; node++, (*count)++)
            if (*count < room)
                nodes[*count] = (int)node;
        if (*rest == '\0')
            return true;
        if (*rest != ',')
            return false;
    }
}

static void take_given(struct together_job *job, int j, struct arena *arena, struct diag *diag)
{
    int count = 0;
    if (!read_nodes(job->given, job->nodes, job->n_nodes, &count))
        diag_input(diag, at_nodes(j, arena), "'%s' is no list of nodes; it is written as 0-3,8", job->given);
    else if (count != job->n_nodes)
        diag_input(diag, at_nodes(j, arena), "%d nodes, but the job's %lld GPUs are on %d", count,
            (long long)job->point->options.cluster.gpus, job->n_nodes);
}

/* The number of nodes where none is said: up to the last one given, and as many as all jobs need. */
static int nodes_needed(const struct together_job *jobs, int n_jobs)
{
    int sum = 0, last = 0;
    for (int j = 0; j < n_jobs; j++) {
        sum += jobs[j].n_nodes;
        for (int n = 0; jobs[j].given && n < jobs[j].n_nodes; n++)
            last = jobs[j].nodes[n] >= last ? jobs[j].nodes[n] + 1 : last;
    }
    return sum > last ? sum : last;
}

static void check_given(
    const struct together_job *jobs, int n_jobs, bool *taken, int nodes, struct arena *arena, struct diag *diag)
{
    for (int j = 0; j < n_jobs; j++)
        for (int n = 0; jobs[j].given && n < jobs[j].n_nodes; n++) {
            int node = jobs[j].nodes[n];
            if (node >= nodes)
                diag_input(diag, at_nodes(j, arena), "node %d of %d nodes; they are counted from 0", node, nodes);
            else if (taken[node])
                diag_input(diag, at_nodes(j, arena), "node %d is given twice", node);
            else
                taken[node] = true;
        }
}

/* The n-th node of a job: the first free one, or from a drawn one on. A drawn node that is taken
 * gives way to the next free one, around the end. */
static void deal_node(
    struct together_job *job, int n, const struct together_cluster *cluster, struct rng_stream *chance, bool *taken)
{
    if (job->given || n >= job->n_nodes)
        return;
    int node = cluster->placement == TOGETHER_DRAWN ? (int)(rng_uniform(chance) * cluster->nodes) : 0;
    while (taken[node])
        node = (node + 1) % cluster->nodes;
    taken[node] = true;
    job->nodes[n] = node;
}

static int by_number(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

/* Nodes for jobs that are given none. There are enough. interleaved: the n-th node of every job,
 * then the next one of every job. */
static void deal(struct together_job *jobs, int n_jobs, const struct together_cluster *cluster, bool *taken)
{
    struct rng_stream chance = rng_stream(cluster->seed, ENTITY_PLACEMENT, 0);
    int rounds = cluster->placement == TOGETHER_INTERLEAVED ? cluster->nodes : 1;
    for (int round = 0; round < rounds; round++)
        for (int j = 0; j < n_jobs; j++)
            for (int n = round; n < (rounds > 1 ? round + 1 : jobs[j].n_nodes); n++)
                deal_node(&jobs[j], n, cluster, &chance, taken);
    for (int j = 0; j < n_jobs; j++)
        if (!jobs[j].given)
            qsort(jobs[j].nodes, (size_t)jobs[j].n_nodes, sizeof *jobs[j].nodes, by_number);
}

enum status together_place(
    struct together_job *jobs, int n_jobs, struct together_cluster *cluster, struct arena *arena, struct diag *diag)
{
    int most = (int)jobs[0].point->hw.cluster.nodes.value;
    for (int j = 0; j < n_jobs; j++) {
        int in_node = hw_gpus_per_node(&jobs[j].point->hw);
        jobs[j].n_nodes = ((int)jobs[j].point->options.cluster.gpus + in_node - 1) / in_node;
        jobs[j].nodes = ARENA_ARRAY(arena, int, jobs[j].n_nodes);
        if (jobs[j].given)
            take_given(&jobs[j], j, arena, diag);
    }
    if (diag->worst != STATUS_OK)
        return diag->worst;
    int needed = nodes_needed(jobs, n_jobs);
    if (cluster->nodes == 0)
        cluster->nodes = needed;
    if (cluster->nodes > most)
        return diag_input(
            diag, jobs[0].point->gpus_at, "%d nodes are needed, but the cluster has %d", cluster->nodes, most);
    if (cluster->nodes < needed)
        return diag_input(
            diag, jobs[0].point->gpus_at, "%d nodes are needed for these jobs, not %d", needed, cluster->nodes);
    bool *taken = ARENA_ARRAY(arena, bool, cluster->nodes);
    check_given(jobs, n_jobs, taken, cluster->nodes, arena, diag);
    if (diag->worst == STATUS_OK)
        deal(jobs, n_jobs, cluster, taken);
    return diag->worst;
}

/* ---- alone, and beside each other ---- */

static void check(const struct together_job *jobs, int n_jobs, int nodes, struct diag *diag)
{
    for (int j = 0; j < n_jobs; j++) {
        const struct scenario_point *point = jobs[j].point;
        kinds_refuse(point, 1, "flopcast together", diag);
        if (point->options.exec.gpu_events.n > 0 || point->options.exec.link_events.n > 0)
            diag_input(diag, point->gpus_at,
                "cluster.slow_gpus and cluster.degraded_links cannot be set where several jobs share a cluster");
        if (j == 0 && point->hw.cluster.network.kind == HW_POOLED)
            diag_input(diag, point->gpus_at,
                "cluster '%s' has no switches (its file has no section 'network'), so jobs that have nodes to "
                "themselves "
                "share nothing; take another, as cluster.topology=h100-8x400g-rail",
                point->hw.cluster.name);
        else if (j > 0 && !exec_links_alike(&point->hw, &jobs[0].point->hw, nodes))
            diag_input(diag, point->gpus_at,
                "the links of job %d are not those of job 1; give both the same cluster.topology and "
                "cluster.nccl_version",
                j + 1);
    }
}

struct run {
    struct plan *plans;
    struct exec_options *options;
    struct exec_job *list;
    int n_jobs;
    struct arena *arena;
};

static enum status compile(struct run *run, struct together_job *jobs, int cluster_nodes, struct diag *diag)
{
    for (int j = 0; j < run->n_jobs; j++) {
        const struct scenario_point *point = jobs[j].point;
        if (scenario_compile(&run->plans[j], point, run->arena, diag) != STATUS_OK)
            return diag->worst;
        run->options[j] = point->options.exec;
        run->list[j] =
            (struct exec_job){&run->plans[j], &point->hw, &run->options[j], {jobs[j].nodes, cluster_nodes}, NULL};
    }
    return STATUS_OK;
}

/* As many measured steps of each as the longest measured time takes. */
static void set_steps(struct run *run, const struct together_job *jobs)
{
    double longest_s = 0;
    for (int j = 0; j < run->n_jobs; j++)
        longest_s = fmax(longest_s, (double)run->options[j].steps * jobs[j].alone.exec.step_time_s);
    for (int j = 0; j < run->n_jobs; j++) {
        double step_s = jobs[j].alone.exec.step_time_s, most = EXEC_MAX_STEPS - (double)run->options[j].warmup_steps;
        if (step_s > 0)
            run->options[j].steps = (int64_t)fmin(most, ceil(longest_s / step_s));
    }
}

static void simulate(struct run *run, struct together_job *jobs, int first, int n, bool beside, struct diag *diag)
{
    for (int j = first; j < first + n; j++)
        run->list[j].out = beside ? &jobs[j].beside.exec : &jobs[j].alone.exec;
    exec_run_together(run->list + first, n, run->arena);
    for (int j = first; j < first + n; j++) {
        if (run->list[j].out->overlong)
            diag_input(
                diag, jobs[j].point->gpus_at, "the run would take too long; look for a bandwidth that is far too low");
        else
            scenario_rates(beside ? &jobs[j].beside : &jobs[j].alone, &run->plans[j], jobs[j].point);
    }
}

enum status scenario_together(struct together_job *jobs, int n_jobs, const struct together_cluster *cluster,
    struct arena *arena, struct diag *diag)
{
    check(jobs, n_jobs, cluster->nodes, diag);
    if (diag->worst != STATUS_OK)
        return diag->worst;
    struct run run = {.plans = ARENA_ARRAY(arena, struct plan, n_jobs),
        .options = ARENA_ARRAY(arena, struct exec_options, n_jobs),
        .list = ARENA_ARRAY(arena, struct exec_job, n_jobs),
        .n_jobs = n_jobs,
        .arena = arena};
    if (compile(&run, jobs, cluster->nodes, diag) == STATUS_OK) {
        for (int j = 0; j < n_jobs; j++)
            simulate(&run, jobs, j, 1, false, diag);
        set_steps(&run, jobs);
        simulate(&run, jobs, 0, n_jobs, true, diag);
    }
    for (int j = 0; j < n_jobs; j++)
        plan_release(&run.plans[j]);
    return diag->worst;
}
