/* Communicators: members arrive, the last one starts what they came for, latency passes, bytes
 * flow, all end.
 *
 * A process group has one for each set of ranks, a channel one for each rank that sends. A member's
 * queue stands still from its arrival to the end, so the k-th collective of one member meets the
 * k-th of all others without a count; plan_check() has seen to it that these are the same.
 *
 * What ranks do that are not simulated matters by the links it loads. A communicator of such ranks
 * alone (n_parties of 0) is a sibling of the one whose rank stands for its own, and has no flow:
 * that one's flow loads the links of both, with the sum of their weights, and one draw. */
#include "exec/state.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool communicator_is_message(const struct communicator *comm)
{
    return comm->channel >= 0;
}

/* A simulated member and its queue that stands in the communicator. */
struct party {
    int rank, queue;
};

/* A communicator of a group has a party for each member that is simulated. */
static struct party party_of(const struct sim *sim, const struct communicator *comm, int i)
{
    if (communicator_is_message(comm)) {
        int rank = sim->fold.index_of[i == 0 ? comm->from : comm->to];
        const struct program_tables *tables = sim->ranks[rank].tables;
        return (struct party){
            rank, (i == 0 ? tables->send_queue : tables->recv_queue)[comm->channel]};
    }
    int rank = comm->parties[i];
    return (struct party){rank, sim->ranks[rank].tables->group_queue[comm->group]};
}

/* Of the links in `uses` those of the watched nodes; others are loaded alike. */
static int keep_watched(struct sim *sim, int n)
{
    int kept = 0;
    for (int i = 0; i < n; i++) {
        if (sim->fold.watched[fabric_node_of(&sim->fabric, sim->meetings.uses[i].link)])
            sim->meetings.uses[kept++] = sim->meetings.uses[i];
    }
    return kept;
}

static void communicator_load(
    struct sim *sim, const struct communicator *comm, const struct coll_cost *cost)
{
    uint64_t key = (uint64_t)(comm - sim->meetings.all);
    struct coll_group sender = {comm->from, 1, 1}; /* a message stays on the NICs near its sender */
    if (communicator_is_message(comm))
        fabric_load_message(&sim->fabric, sender, comm->from, comm->to, key);
    else
        fabric_load_collective(&sim->fabric, comm->members, cost, key);
}

/* The links that a communicator loads with its siblings, found anew only when it loaded others
 * before. */
static void set_uses(struct sim *sim, struct communicator *comm)
{
    const struct coll_cost *cost = &comm->cost;
    if (comm->room_uses > 0 &&
        (communicator_is_message(comm) || fabric_weights_alike(&comm->uses_of, cost)))
        return;
    communicator_load(sim, comm, cost);
    for (int i = comm->sibling; i >= 0; i = sim->meetings.all[i].sibling)
        communicator_load(sim, &sim->meetings.all[i], cost);
    int n = fabric_loaded(sim->meetings.uses, &sim->fabric);
    n = sim->fold.watched_alone ? keep_watched(sim, n) : n;
    if (n > comm->room_uses) {
        comm->uses = ARENA_ARRAY(sim->arena, struct link_weight, n);
        comm->room_uses = n;
    }
    memcpy(comm->uses, sim->meetings.uses, sizeof *sim->meetings.uses * (size_t)n);
    comm->n_uses = n;
    comm->uses_of = *cost;
}

/* Links change: the ways of all are found anew, also of those whose bytes are on them. */
void communicator_on_links(void *self, const struct event *event)
{
    struct sim *sim = self;
    if (sim->measure.step_ranks[sim->total_steps - 1] == sim->n_ranks)
        return; /* the job has ended */
    fabric_set_time(&sim->fabric, &sim->options->link_events, event->time);
    for (int l = 0; l < sim->fabric.n_links; l++)
        net_set_capacity(&sim->machine->net, l, sim->fabric.capacity_Bps[l]);
    for (int i = 0; i < sim->meetings.n; i++) {
        struct communicator *comm = &sim->meetings.all[i];
        comm->room_uses = 0; /* the flow still has the old ones */
        if (comm->n_parties == 0 || !sim->machine->net.flows.at[comm->flow].active)
            continue;
        set_uses(sim, comm);
        net_reroute(&sim->machine->net, comm->flow, comm->uses, comm->n_uses);
    }
}

/* ---- setting up ---- */

static void count_communicators(struct sim *sim)
{
    const struct plan *plan = sim->plan;
    int total = 0;
    sim->meetings.group_first = ARENA_ARRAY(sim->arena, int, plan->groups.n + 1);
    sim->meetings.channel_first = ARENA_ARRAY(sim->arena, int, plan->channels.n + 1);
    sim->meetings.group_meets_stages = ARENA_ARRAY(sim->arena, bool, plan->groups.n + 1);
    for (int g = 0; g < plan->groups.n; g++) {
        sim->meetings.group_first[g] = total;
        total += mesh_group_instances(&plan->groups.at[g].ranks, plan->mesh.ranks);
    }
    sim->meetings.group_first[plan->groups.n] = total;
    for (int c = 0; c < plan->channels.n; c++, total += plan->mesh.ranks)
        sim->meetings.channel_first[c] = total;
    sim->meetings.n = total;
    sim->meetings.all = ARENA_ARRAY(sim->arena, struct communicator, total);
}

static void setup_group(struct sim *sim, int g)
{
    const struct mesh_group *ranks = &sim->plan->groups.at[g].ranks;
    int first = mesh_group_first(ranks, 0);
    for (int i = 1; i < ranks->size; i++)
        sim->meetings.group_meets_stages[g] |=
            plan_stage_of(sim->plan, first + i * ranks->stride) != plan_stage_of(sim->plan, first);
    for (int i = sim->meetings.group_first[g]; i < sim->meetings.group_first[g + 1]; i++) {
        sim->meetings.all[i] = (struct communicator){.group = g,
            .channel = -1,
            .members = {mesh_group_first(ranks, i - sim->meetings.group_first[g]), ranks->stride,
                ranks->size},
            .sibling = -1};
    }
    for (int i = 0; i < sim->n_ranks; i++) {
        int instance = mesh_group_instance(ranks, sim->fold.numbers[i]);
        if (instance < 0)
            continue;
        struct communicator *comm = &sim->meetings.all[sim->meetings.group_first[g] + instance];
        if (!comm->parties)
            comm->parties = ARENA_ARRAY(
                sim->arena, int, ranks->size < sim->n_ranks ? ranks->size : sim->n_ranks);
        comm->parties[comm->n_parties++] = i;
    }
}

static void setup_channel(struct sim *sim, int c)
{
    const struct plan_channel *channel = &sim->plan->channels.at[c];
    for (int r = 0; r < sim->plan->mesh.ranks; r++) {
        int to = mesh_neighbour(&sim->plan->mesh, r, channel->axis, channel->delta);
        sim->meetings.all[sim->meetings.channel_first[c] + r] = (struct communicator){.group = -1,
            .channel = c,
            .from = r,
            .to = to,
            .n_parties = is_simulated(sim, r) ? 2 : 0,
            .sibling = -1};
    }
}

/* Times are those on hw; algorithm and protocol are NCCL's choice on the other. */
struct machine_pair {
    const struct hw *hw, *chosen;
};

/* As a group sees it, in room where that differs. */
static struct machine_pair seen_by(
    struct hw room[2], struct coll_group group, const struct machine_pair *on)
{
    const struct hw *hw = coll_hw_of(&room[0], group, on->hw);
    return (struct machine_pair){
        hw, on->chosen == on->hw ? hw : coll_hw_of(&room[1], group, on->chosen)};
}

static struct coll_cost communicator_cost_of(const struct sim *sim, const struct machine_pair *on,
    enum coll_kind kind, double bytes, const struct coll_routing *routing, struct coll_shape shape)
{
    struct coll_cost cost = coll_of(kind, bytes, routing, shape, on->chosen);
    if (on->chosen != on->hw && routing)
        cost = coll_routed(bytes, routing, shape, on->hw);
    else if (on->chosen != on->hw)
        cost = coll_choose(kind, bytes, shape, on->hw,
            (struct coll_force){(int)cost.algorithm, (int)cost.protocol});
    if (sim->options->no_latency)
        cost.latency_s = 0;
    return cost;
}

static void setup_costs(struct sim *sim)
{
    const struct plan *plan = sim->plan;
    const struct hw *chosen_on = sim->options->chosen_on;
    const struct machine_pair pair = {sim->costs.hw, chosen_on ? chosen_on : sim->costs.hw},
                              *on = &pair;
    struct coll_cost *of_collectives =
        ARENA_ARRAY(sim->arena, struct coll_cost, plan->collectives.n);
    struct coll_cost(*of_messages)[FABRIC_WAY_COUNT] =
        arena_alloc(sim->arena, sizeof *of_messages * (size_t)(plan->messages.n + 1));
    sim->costs.collectives = of_collectives;
    sim->costs.messages = of_messages;
    struct hw room[2];
    int *first = plan_first_collectives(plan);
    for (int c = 0; c < plan->collectives.n; c++) {
        const struct plan_collective *collective = &plan->collectives.at[c];
        of_collectives[c] = of_collectives[first[c]];
        if (first[c] < c)
            continue;
        struct coll_group members =
            sim->meetings.all[sim->meetings.group_first[collective->group]].members;
        const struct machine_pair seen = seen_by(room, members, on);
        of_collectives[c] = communicator_cost_of(sim, &seen, collective->kind, collective->bytes,
            collective->routing, coll_shape(members, hw_gpus_per_node(sim->costs.hw)));
    }
    free(first);
    const struct machine_pair bridged = seen_by(room, (struct coll_group){0, 1, 2}, on);
    for (int m = 0; m < plan->messages.n; m++)
        for (int way = 0; way < FABRIC_WAY_COUNT; way++) {
            struct coll_cost *cost = &of_messages[m][way];
            int nodes = way == FABRIC_WAY_NETWORK ? 2 : 1;
            *cost = communicator_cost_of(sim, way == FABRIC_WAY_BRIDGE ? &bridged : on,
                COLL_SEND_RECV, plan->messages.at[m].bytes, NULL,
                (struct coll_shape){.ranks = 2, .nodes = nodes, .per_node = 3 - nodes});
            cost->hbm_bytes /= 2; /* half at each end; in nccl-tests' send_recv a GPU is both */
        }
}

static bool is_watched(const struct sim *sim, int rank)
{
    return !sim->fold.watched || sim->fold.watched[rank / sim->fabric.gpus];
}

static bool touches_watched(const struct sim *sim, const struct communicator *comm)
{
    if (comm->n_parties > 0)
        return true;
    if (communicator_is_message(comm))
        return is_watched(sim, comm->from) || is_watched(sim, comm->to);
    for (int m = 0; m < comm->members.size; m++)
        if (is_watched(sim, comm->members.first + m * comm->members.stride))
            return true;
    return false;
}

/* Where no link is shared between nodes, ranks of a program meet the same loads on every node:
 * those on the nodes of the first ranks decide, and flows that touch none of these need not be
 * there; nor, where nodes are alike, need the links of others. */
static void find_watched(struct sim *sim)
{
    if (sim->fabric.leaves > 0)
        return;
    sim->fold.watched = ARENA_ARRAY(sim->arena, bool, sim->fabric.nodes);
    for (int p = 0; p < sim->plan->n_programs; p++)
        sim->fold.watched[plan_first_rank(sim->plan, p) / sim->fabric.gpus] = true;
    sim->fold.watched_alone = sim->fold.siblings && fabric_is_uniform(&sim->fabric);
}

/* The communicator that one without a party does as: of the rank that stands for its first member,
 * or, where none does, for the next one. */
static int leader_of(const struct sim *sim, const struct communicator *comm)
{
    for (int m = 0; m < (communicator_is_message(comm) ? 1 : comm->members.size); m++) {
        int number = communicator_is_message(comm) ? comm->from
                                                   : comm->members.first + m * comm->members.stride;
        int index = sim->fold.index_of[number];
        if (index < 0)
            continue;
        number = sim->fold.numbers[index];
        int instance = communicator_is_message(comm)
                           ? number
                           : mesh_group_instance(&sim->plan->groups.at[comm->group].ranks, number);
        return instance < 0 ? -1
                            : instance + (communicator_is_message(comm)
                                                 ? sim->meetings.channel_first[comm->channel]
                                                 : sim->meetings.group_first[comm->group]);
    }
    return -1;
}

/* Those that do as another, after it, from the first to the last. */
static void link_siblings(struct sim *sim)
{
    for (int i = sim->meetings.n - 1; i >= 0; i--) {
        struct communicator *comm = &sim->meetings.all[i];
        int leader = comm->n_parties == 0 && touches_watched(sim, comm) ? leader_of(sim, comm) : -1;
        if (leader < 0)
            continue;
        comm->sibling = sim->meetings.all[leader].sibling;
        sim->meetings.all[leader].sibling = i;
    }
}

void communicator_setup(struct sim *sim)
{
    count_communicators(sim);
    for (int g = 0; g < sim->plan->groups.n; g++)
        setup_group(sim, g);
    for (int c = 0; c < sim->plan->channels.n; c++)
        setup_channel(sim, c);
    for (int i = 0; i < sim->meetings.n; i++) {
        struct communicator *comm = &sim->meetings.all[i];
        if (comm->n_parties == 0)
            continue;
        comm->flow = net_add_flow(&sim->machine->net);
        comm->noise = rng_stream((uint64_t)sim->options->seed, ENTITY_COLLECTIVE, (uint64_t)i);
    }
    if (sim->fold.on)
        find_watched(sim);
    if (sim->fold.siblings)
        link_siblings(sim);
    setup_costs(sim);
}

/* ---- running ---- */

/* What the GPU gives a collective, and the kernels on it are timed anew. */
static void communicator_hold(struct sim *sim, struct party party, double sms, double hbm_Bps)
{
    struct rank *rank = &sim->ranks[party.rank];
    struct queue *queue = &rank->queues[party.queue];
    rank->holding =
        sms > 0 ? rank->holding | queue_bit(party.queue) : rank->holding & ~queue_bit(party.queue);
    queue->sms_held = sms;
    queue->hbm_Bps = hbm_Bps;
    queue_retime(sim, party.rank);
}

/* Its siblings begin with it, and end with it. */
static void communicator_begin(struct sim *sim, struct communicator *comm)
{
    comm->start = sim->machine->engine.now;
    struct party first = party_of(sim, comm, 0);
    double sigma = sim->options->noise.network_jitter;
    double links = communicator_is_message(comm)
                       ? 1
                       : coll_links(coll_shape(comm->members, sim->fabric.gpus), sim->costs.hw);
    comm->noise.counter = queue_drawn_at(sim, &sim->ranks[first.rank].queues[first.queue], 0);
    double jitter = sigma > 0 ? rng_lognormal_max(&comm->noise, sigma, links) : 1;
    comm->cost.latency_s *= jitter;
    comm->cost.max_rate_Bps /= jitter;
    engine_at(&sim->machine->engine, sim->machine->engine.now + ps_from_s(comm->cost.latency_s),
        sim->events.latency, (uint32_t)(comm - sim->meetings.all), 0);
}

static struct communicator *communicator_find(
    const struct sim *sim, const struct rank *rank, const struct plan_op *op)
{
    const struct plan *plan = sim->plan;
    if (op->kind == OP_COLLECTIVE) {
        int group = plan->collectives.at[op->index].group;
        int instance = mesh_group_instance(&plan->groups.at[group].ranks, rank->number);
        return &sim->meetings.all[sim->meetings.group_first[group] + instance];
    }
    int c = plan->messages.at[op->index].channel, from = rank->number;
    if (op->kind == OP_RECV)
        from = mesh_neighbour(
            &plan->mesh, from, plan->channels.at[c].axis, -plan->channels.at[c].delta);
    from = sim->fold.numbers[sim->fold.index_of[from]];
    return &sim->meetings.all[sim->meetings.channel_first[c] + from];
}

/* What a member's op costs in this communicator. */
static const struct coll_cost *cost_here(
    const struct sim *sim, const struct communicator *comm, int32_t index)
{
    if (!communicator_is_message(comm))
        return &sim->costs.collectives[index];
    return &sim->costs.messages[index][fabric_way(&sim->fabric, comm->from, comm->to)];
}

void communicator_arrive(struct sim *sim, int rank_index, int32_t op_index)
{
    struct rank *rank = &sim->ranks[rank_index];
    const struct plan_op *op = op_of(rank, op_index);
    struct communicator *comm = communicator_find(sim, rank, op);
    struct party party = {rank_index, op->stream};
    const struct coll_cost *cost = cost_here(sim, comm, op->index);
    if (comm->arrived++ == 0)
        comm->cost = *cost;
    communicator_hold(sim, party, cost->sms, 0);
    if (comm->arrived == comm->n_parties)
        communicator_begin(sim, comm);
}

void communicator_on_latency(void *self, const struct event *event)
{
    struct sim *sim = self;
    struct communicator *comm = &sim->meetings.all[event->target];
    for (int i = 0; i < comm->n_parties; i++)
        communicator_hold(sim, party_of(sim, comm, i), comm->cost.sms, coll_hbm_Bps(comm->cost));
    set_uses(sim, comm);
    net_start(&sim->machine->net, comm->flow, comm->cost.bus_bytes, comm->cost.max_rate_Bps,
        comm->uses, comm->n_uses, (struct net_listener){sim->events.comm_end, event->target});
}

/* What a communicator has ended. */
struct ended {
    ps_t start;
    struct coll_cost cost;
    const struct link_weight *uses;
    int n_uses;
};

/* What has limited a collective, which took so long from its last arrival on. */
static enum coll_bound bound_of(const struct sim *sim, const struct ended *comm, double taken_s)
{
    static const double longer = 1.05; /* than isolated: others took part of its links */
    struct coll_cost alone = comm->cost;
    for (int i = 0; i < comm->n_uses; i++) {
        double link_Bps = sim->fabric.capacity_Bps[comm->uses[i].link] / comm->uses[i].weight;
        if (link_Bps < alone.max_rate_Bps) {
            alone.max_rate_Bps = link_Bps;
            alone.rate_bound = fabric_link_bound(&sim->fabric, comm->uses[i].link);
        }
    }
    return taken_s > longer * coll_isolated_s(alone) ? COLL_BOUND_SHARED_LINKS : coll_bound(&alone);
}

/* One member's op is over; comm is as it ended, but it may be in its next one. */
static void communicator_finish(struct sim *sim, const struct ended *comm, struct party party)
{
    struct rank *rank = &sim->ranks[party.rank];
    struct queue *queue = &rank->queues[party.queue];
    queue->last_moved = comm->start;
    if (measuring(sim, queue->step)) {
        const struct plan_op *op = queue_op(queue);
        ps_t wait = comm->start - queue->started, moving = sim->machine->engine.now - comm->start;
        rank->spent[SPENT_MOVING + (int)idle_serves(sim, op)] += moving;
        rank->spent[SPENT_STAGE_WAIT] += idle_meets_stages(sim, op) ? wait : 0;
        rank->spent[SPENT_COMM] += moving;
        rank->spent[SPENT_COMM_LATENCY] += ps_from_s(comm->cost.latency_s);
        rank->spent[SPENT_COMM_WAIT] += wait;
    }
    if (tracing(sim, party.rank, party.queue))
        trace_record(sim, party.rank, party.queue,
            (struct exec_span){.start = queue->started,
                .moving = comm->start,
                .bus_bytes = comm->cost.bus_bytes,
                .latency_s = comm->cost.latency_s,
                .bound = bound_of(sim, comm, s_from_ps(sim->machine->engine.now - comm->start)),
                .algorithm = (int)comm->cost.algorithm,
                .protocol = (int)comm->cost.protocol});
    queue_finish(sim, party.rank, party.queue);
}

void communicator_on_end(void *self, const struct event *event)
{
    struct sim *sim = self;
    progress_follow(sim);
    struct communicator *comm = &sim->meetings.all[event->target];
    comm->arrived = 0;
    /* The first member that goes on may come with the next collective. */
    const struct ended ended = {comm->start, comm->cost, comm->uses, comm->n_uses};
    for (int i = 0; i < comm->n_parties; i++)
        communicator_hold(sim, party_of(sim, comm, i), 0, 0);
    for (int i = 0; i < comm->n_parties; i++)
        communicator_finish(sim, &ended, party_of(sim, comm, i));
    warm_look(sim);
    period_ask(sim);
}
