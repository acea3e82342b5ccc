/* Several jobs on one engine and one network: each is a sim with a place, which maps its nodes to
 * the cluster's.
 *
 * The first job's links are added to the network, and all others must have the same ones. Each job
 * is first run alone and folded, for the stops of its allocator and for whether it fits; one that
 * does not takes no part. A job that has done its measured steps is counted off and goes on; the
 * last one to be counted off stops the engine. */
#include "exec/together.h"

#include "exec/state.h"

/* A job and the run of it alone, whose ledgers it needs. */
struct party {
    struct sim *sim, *alone;
    struct exec_options quiet;
};

static void check_job(const struct exec_job *job)
{
    const struct exec_options *options = job->options;
    char why[256];
    BUG_IF(!plan_check(job->plan, why, sizeof why), "%s", why);
    BUG_IF(options->steps < 1 || options->warmup_steps < 0 || options->steps + options->warmup_steps > EXEC_MAX_STEPS,
        "%lld + %lld steps", (long long)options->warmup_steps, (long long)options->steps);
    BUG_IF(options->n_trace_ranks > 0 || options->gpu_events.n > 0 || options->link_events.n > 0,
        "traces, slow GPUs or degraded links beside other jobs");
}

static void check_nodes(const struct exec_job *jobs, int n_jobs)
{
    int cluster = jobs[0].place.cluster_nodes;
    bool *taken = xcalloc((size_t)cluster, sizeof *taken);
    for (int j = 0; j < n_jobs; j++) {
        int in_node = hw_gpus_per_node(jobs[j].hw), nodes = (jobs[j].plan->mesh.ranks + in_node - 1) / in_node;
        BUG_IF(jobs[j].place.cluster_nodes != cluster, "%d nodes, not %d", jobs[j].place.cluster_nodes, cluster);
        for (int n = 0; n < nodes; n++) {
            int node = jobs[j].place.nodes[n];
            BUG_IF(node < 0 || node >= cluster || taken[node], "node %d", node);
            taken[node] = true;
        }
    }
    free(taken);
}

static bool links_alike(const struct fabric *a, const struct fabric *b)
{
    if (a->n_links != b->n_links || a->first_nic != b->first_nic || a->first_leaf != b->first_leaf ||
        a->first_pod != b->first_pod || a->first_pair != b->first_pair)
        return false;
    for (int l = 0; l < a->n_links; l++)
        if (a->capacity_Bps[l] < b->capacity_Bps[l] || a->capacity_Bps[l] > b->capacity_Bps[l])
            return false;
    return true;
}

bool exec_links_alike(const struct hw *a, const struct hw *b, int nodes)
{
    struct arena arena = ARENA_INIT;
    struct fabric of_a, of_b;
    fabric_build(&of_a, a, nodes * hw_gpus_per_node(a), NULL, &arena);
    fabric_build(&of_b, b, nodes * hw_gpus_per_node(b), NULL, &arena);
    bool alike = links_alike(&of_a, &of_b);
    arena_release(&arena);
    return alike;
}

static void open_party(struct party *party, const struct exec_job *job, struct machine *machine, struct arena *arena)
{
    party->sim = sim_open(job->out, job->plan, job->hw, job->options, &job->place, machine, arena);
    if (job->options->no_memory)
        return;
    party->alone = sim_reference(party->sim, &party->quiet, job->out);
    sim_follow(party->sim, party->alone);
}

static bool takes_part(const struct party *party)
{
    return !party->alone || (!party->alone->memory.out_of_memory && !party->alone->result->overlong);
}

static void close_party(struct party *party)
{
    if (takes_part(party))
        sim_end(party->sim);
    if (party->alone)
        sim_close(party->alone);
    sim_close(party->sim);
}

void exec_run_together(const struct exec_job *jobs, int n_jobs, struct arena *arena)
{
    struct party parties[EXEC_MAX_JOBS] = {0};
    struct machine machine;
    BUG_IF(n_jobs < 1 || n_jobs > EXEC_MAX_JOBS, "%d jobs", n_jobs);
    check_nodes(jobs, n_jobs);
    machine_open(&machine);
    for (int j = 0; j < n_jobs; j++) {
        check_job(&jobs[j]);
        open_party(&parties[j], &jobs[j], &machine, arena);
        BUG_IF(!links_alike(&parties[j].sim->fabric, &parties[0].sim->fabric), "links of job %d", j);
    }
    for (int j = 0; j < n_jobs; j++)
        if (takes_part(&parties[j])) {
            machine.unfinished++;
            sim_begin(parties[j].sim, false);
        }
    if (machine.unfinished > 0)
        engine_run(&machine.engine);
    for (int j = 0; j < n_jobs; j++)
        close_party(&parties[j]);
    machine_close(&machine);
}
