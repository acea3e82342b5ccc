/* Collectives: members arrive, the last one starts it, latency passes, bytes flow, all end. */
#include "exec/state.h"

#include <math.h>
#include <string.h>

static int instance_of(const struct plan_group *group, int rank)
{
    return rank / (group->size * group->stride) * group->stride + rank % group->stride;
}

static struct coll_group members_of(const struct plan_group *group, int instance)
{
    int block = instance / group->stride, offset = instance % group->stride;
    return (struct coll_group){block * group->size * group->stride + offset, group->stride, group->size};
}

/* The links of an instance's collective, found anew only when the last one loaded them otherwise. */
static void set_uses(struct sim *sim, struct instance *instance)
{
    const struct coll_cost *cost = &instance->cost;
    if (instance->room_uses > 0 && fabric_uses_alike(&instance->uses_of, cost))
        return;
    uint64_t key = (uint64_t)(instance - sim->instances);
    int n = fabric_uses(sim->uses, &sim->fabric, instance->members, cost, key);
    if (n > instance->room_uses) {
        instance->uses = ARENA_ARRAY(sim->arena, struct link_weight, n);
        instance->room_uses = n;
    }
    memcpy(instance->uses, sim->uses, sizeof *sim->uses * (size_t)n);
    instance->n_uses = n;
    instance->uses_of = *cost;
}

/* Links change: the ways of all collectives are found anew, also of those whose bytes are on them. */
void collective_on_links(void *self, const struct event *event)
{
    struct sim *sim = self;
    int n_instances = sim->group_first[sim->plan->groups.n];
    if (sim->step_ranks[sim->total_steps - 1] == sim->n_ranks)
        return; /* the job has ended */
    fabric_set_time(&sim->fabric, &sim->options->link_events, event->time);
    for (int l = 0; l < sim->fabric.n_links; l++)
        net_set_capacity(&sim->net, l, sim->fabric.capacity_Bps[l]);
    for (int i = 0; i < n_instances; i++) {
        struct instance *instance = &sim->instances[i];
        instance->room_uses = 0; /* the flow still has the old ones */
        if (!sim->net.flows.at[instance->slot].active)
            continue;
        set_uses(sim, instance);
        net_reroute(&sim->net, instance->slot, instance->uses, instance->n_uses);
    }
}

/* The different numbers of SMs that collectives hold. */
static void setup_holdings(struct sim *sim)
{
    int n = sim->plan->collectives.n;
    sim->coll_holding = ARENA_ARRAY(sim->arena, int, n);
    sim->holdings = ARENA_ARRAY(sim->arena, double, n + 1);
    sim->n_holdings = 1;
    for (int c = 0; c < n; c++) {
        int h = 1;
        while (h < sim->n_holdings && sim->holdings[h] != sim->coll_costs[c].sms)
            h++;
        sim->holdings[h] = sim->coll_costs[c].sms;
        sim->n_holdings = h == sim->n_holdings ? h + 1 : sim->n_holdings;
        sim->coll_holding[c] = h;
    }
}

void collective_setup(struct sim *sim)
{
    const struct plan *plan = sim->plan;
    int total = 0;
    sim->group_first = ARENA_ARRAY(sim->arena, int, plan->groups.n + 1);
    for (int g = 0; g < plan->groups.n; g++) {
        sim->group_first[g] = total;
        total += plan->ranks / plan->groups.at[g].size;
    }
    sim->group_first[plan->groups.n] = total;
    sim->instances = ARENA_ARRAY(sim->arena, struct instance, total);
    for (int g = 0; g < plan->groups.n; g++)
        for (int i = sim->group_first[g]; i < sim->group_first[g + 1]; i++)
            sim->instances[i] = (struct instance){.group = g,
                .members = members_of(&plan->groups.at[g], i - sim->group_first[g]),
                .slot = net_add_flow(&sim->net),
                .noise = rng_stream((uint64_t)sim->options->seed, ENTITY_COLLECTIVE, (uint64_t)i)};
    sim->coll_costs = ARENA_ARRAY(sim->arena, struct coll_cost, plan->collectives.n);
    for (int c = 0; c < plan->collectives.n; c++) {
        const struct plan_collective *collective = &plan->collectives.at[c];
        struct coll_shape shape =
            coll_shape(sim->instances[sim->group_first[collective->group]].members, hw_gpus_per_node(sim->hw));
        const struct hw *chosen_on = sim->options->chosen_on ? sim->options->chosen_on : sim->hw;
        sim->coll_costs[c] = coll_choose(collective->kind, collective->bytes, shape, chosen_on, COLL_FREE);
        if (chosen_on != sim->hw)
            sim->coll_costs[c] = coll_choose(collective->kind, collective->bytes, shape, sim->hw,
                (struct coll_force){(int)sim->coll_costs[c].algorithm, (int)sim->coll_costs[c].protocol});
        if (sim->options->no_latency)
            sim->coll_costs[c].latency_s = 0;
    }
    setup_holdings(sim);
}

double collective_sms(const struct sim *sim, int holding)
{
    return sim->holdings[holding % sim->n_holdings] + sim->holdings[holding / sim->n_holdings];
}

/* What an op adds to rank->holding. */
static int holding_of(const struct sim *sim, const struct plan_op *op)
{
    return sim->coll_holding[op->index] * (op->stream == STREAM_REPLICATE ? sim->n_holdings : 1);
}

/* How many members of an instance are simulated: all, or rank 0 for all when folded. */
static int present(const struct sim *sim, const struct instance *instance)
{
    return sim->folded ? 1 : instance->members.size;
}

static void change_share(struct sim *sim, const struct instance *instance, int holding, double hbm_Bps)
{
    for (int i = 0; i < present(sim, instance); i++) {
        int rank_index = instance->members.first + i * instance->members.stride;
        struct rank *rank = &sim->ranks[rank_index];
        rank->holding += holding;
        rank->hbm_taken_Bps = rank->holding ? fmax(0, rank->hbm_taken_Bps + hbm_Bps) : 0;
        stream_retime(sim, rank_index);
    }
}

static double hbm_rate(const struct coll_cost *cost)
{
    return cost->hbm_bytes / coll_isolated_s(*cost);
}

static void begin(struct sim *sim, struct instance *instance)
{
    instance->start = sim->engine.now;
    double sigma = sim->options->noise.network_jitter;
    double jitter = sigma > 0 ? rng_lognormal_mean1(&instance->noise, sigma) : 1;
    instance->cost.latency_s *= jitter;
    instance->cost.max_rate_Bps /= jitter;
    engine_at(&sim->engine, sim->engine.now + ps_from_s(instance->cost.latency_s), sim->ev_latency,
        (uint32_t)(instance - sim->instances), 0);
}

void collective_arrive(struct sim *sim, int rank_index, int32_t op_index)
{
    const struct plan_op *op = &sim->plan->ops.at[op_index];
    int group = sim->plan->collectives.at[op->index].group;
    struct instance *instance =
        &sim->instances[sim->group_first[group] + instance_of(&sim->plan->groups.at[group], rank_index)];
    BUG_IF(instance->arrived > 0 && instance->op != op_index, "rank %d arrives at %s while others are at %s",
        rank_index, op->name, sim->plan->ops.at[instance->op].name);
    if (instance->arrived++ == 0) {
        instance->op = op_index;
        instance->cost = sim->coll_costs[op->index];
        instance->first_arrival = sim->engine.now;
        instance->arrived_sum = 0;
    }
    instance->arrived_sum += sim->engine.now - instance->first_arrival;
    sim->ranks[rank_index].holding += holding_of(sim, op);
    if (instance->arrived < present(sim, instance)) {
        stream_retime(sim, rank_index);
        return;
    }
    change_share(sim, instance, 0, hbm_rate(&instance->cost));
    if (!sim->folded || !sim->sisters) {
        begin(sim, instance);
        return;
    }
    /* Folded: the other instances of the group do the same at the same time and share the links. */
    for (int i = sim->group_first[group]; i < sim->group_first[group + 1]; i++) {
        sim->instances[i].cost = instance->cost;
        sim->instances[i].op = op_index;
        begin(sim, &sim->instances[i]);
    }
}

void collective_on_latency(void *self, const struct event *event)
{
    struct sim *sim = self;
    struct instance *instance = &sim->instances[event->target];
    set_uses(sim, instance);
    net_start(&sim->net, instance->slot, instance->cost.bus_bytes, instance->cost.max_rate_Bps, instance->uses,
        instance->n_uses, (struct net_listener){sim->ev_collective_end, event->target});
}

/* What has limited an instance's collective, which took so long from its last arrival on. */
static enum coll_bound bound_of(const struct sim *sim, const struct instance *instance, double taken_s)
{
    static const double longer = 1.05; /* than alone: other collectives took part of its links */
    struct coll_cost alone = instance->cost;
    for (int i = 0; i < instance->n_uses; i++) {
        double link_Bps = sim->fabric.capacity_Bps[instance->uses[i].link] / instance->uses[i].weight;
        if (link_Bps < alone.max_rate_Bps) {
            alone.max_rate_Bps = link_Bps;
            alone.rate_bound = fabric_link_bound(&sim->fabric, instance->uses[i].link);
        }
    }
    return taken_s > longer * coll_isolated_s(alone) ? COLL_BOUND_SHARED_LINKS : coll_bound(&alone);
}

void collective_on_end(void *self, const struct event *event)
{
    struct sim *sim = self;
    struct instance *instance = &sim->instances[event->target];
    if (sim->folded && instance->members.first != 0)
        return;
    const struct plan_op *op = &sim->plan->ops.at[instance->op];
    double moving_s = s_from_ps(sim->engine.now - instance->start), latency_s = instance->cost.latency_s;
    double hbm_Bps = hbm_rate(&sim->coll_costs[op->index]);
    instance->arrived = 0;
    change_share(sim, instance, -holding_of(sim, op), -hbm_Bps);
    for (int i = 0; i < present(sim, instance); i++) {
        int rank_index = instance->members.first + i * instance->members.stride;
        struct rank *rank = &sim->ranks[rank_index];
        const struct stream *stream = &rank->streams[op->stream];
        if (measuring(sim, stream->step)) {
            rank->spent.comm_s += moving_s;
            rank->spent.comm_latency_s += latency_s;
            rank->spent.comm_wait_s += s_from_ps(instance->start - stream->started);
        }
        if (tracing(sim, rank_index, op->stream))
            trace_record(sim, rank_index, op->stream,
                (struct exec_span){.start = stream->started,
                    .moving = instance->start,
                    .bus_bytes = instance->cost.bus_bytes,
                    .latency_s = latency_s,
                    .bound = bound_of(sim, instance, moving_s),
                    .algorithm = (int)instance->cost.algorithm,
                    .protocol = (int)instance->cost.protocol});
        stream_finish(sim, rank_index, op->stream);
    }
}
