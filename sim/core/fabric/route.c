/* Which links a collective, or a message, crosses.
 *
 * route_add() puts weight on a link in the fabric's scratch arrays, and marks it in a bit set;
 * fabric_loaded() reads the set in the order of links and empties both. So the cost is that of the
 * links that are loaded plus one word for each 64 links, and links come in one order whatever the
 * order of adding, which the digest of a run needs.
 *
 * A hop between nodes is divided among the NICs of the group's GPUs, and over each NIC among
 * connections. Under adaptive routing one link stands for all cables, so a connection's hash does
 * not matter. Under ECMP the hash of the connection's key picks a spine (and core), and in each
 * bundle of parallel cables a cable among those that are alive; where links have failed, only among
 * whole ways. The same key gives the same way, so a run's traffic does not jump between calls.
 *
 * Subtle: ways are counted before one is picked, twice through by_spine(); that is paid only where
 * links are degraded. */
#include "base/digest.h"
#include "base/rng.h"
#include "coll/hops.h"
#include "fabric/fabric.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool route_add(struct fabric *fabric, int link, double weight)
{
    fabric->weight[link] += weight;
    fabric->loaded[link / 64] |= UINT64_C(1) << link % 64;
    return fabric->capacity_Bps[link] > 0;
}

static bool alive(const struct fabric *fabric, int link)
{
    return fabric->capacity_Bps[link] > 0;
}

/* One of n, by a connection's key and the place where it is picked. */
static int hash(uint64_t key, int place, int n)
{
    struct rng_stream stream = rng_stream(key, (uint32_t)place, 0);
    return (int)(rng_uniform(&stream) * n);
}

/* Of cables first .. first + n - 1, the one that the key hashes to among those that are alive; -1:
 * none is. */
static int hash_cable(const struct fabric *fabric, int first, int n, uint64_t key)
{
    int living = 0;
    for (int c = 0; c < n; c++)
        living += alive(fabric, first + c);
    if (living == 0)
        return -1;
    int pick = hash(key, first, living);
    for (int c = 0;; c++)
        if (alive(fabric, first + c) && pick-- == 0)
            return first + c;
}

/* By spine s (and core c when the pods differ): every bundle of parallel cables hashes on its own.
 * The links go to way; false when a bundle is dead. */
static bool by_spine(
    int way[4], const struct fabric *fabric, int from, int to, int s, int c, uint64_t key)
{
    const struct hw_network *network = &fabric->hw->cluster.network;
    int spines = (int)network->spines.value, bundle = fabric->leaf_links / spines;
    int from_pod = hw_network_pod(network, from), to_pod = hw_network_pod(network, to);
    way[0] = hash_cable(fabric, fabric_leaf_link(fabric, from, 0, s * bundle), bundle, key);
    way[1] = hash_cable(fabric, fabric_leaf_link(fabric, to, 1, s * bundle), bundle, key);
    way[2] = way[3] = way[0];
    if (from_pod == to_pod)
        return way[0] >= 0 && way[1] >= 0;
    int cores = (int)network->cores.value, trunk = fabric->pod_links / spines / cores,
        at = (s * cores + c) * trunk;
    way[2] = hash_cable(fabric, fabric_pod_link(fabric, from_pod, 0, at), trunk, key);
    way[3] = hash_cable(fabric, fabric_pod_link(fabric, to_pod, 1, at), trunk, key);
    return way[0] >= 0 && way[1] >= 0 && way[2] >= 0 && way[3] >= 0;
}

/* ECMP: the switches know which ways are whole, and the connection's hash picks one of them; -1:
 * none is. */
static int hash_way(
    const struct fabric *fabric, int from, int to, int ways, int cores, uint64_t key)
{
    int way[4], whole = 0;
    if (!fabric->degraded)
        return hash(key, fabric->first_pair, ways);
    for (int w = 0; w < ways; w++)
        whole += by_spine(way, fabric, from, to, w / cores, w % cores, key);
    if (whole == 0)
        return -1;
    int pick = hash(key, fabric->first_pair, whole);
    for (int w = 0;; w++)
        if (by_spine(way, fabric, from, to, w / cores, w % cores, key) && pick-- == 0)
            return w;
}

static bool add_hashed(struct fabric *fabric, int from, int to, double weight, uint64_t key)
{
    const struct hw_network *network = &fabric->hw->cluster.network;
    bool same_pod = hw_network_pod(network, from) == hw_network_pod(network, to);
    int cores = same_pod ? 1 : (int)network->cores.value, ways = (int)network->spines.value * cores,
        way[4];
    int w = hash_way(fabric, from, to, ways, cores, key);
    if (w < 0)
        return false;
    by_spine(way, fabric, from, to, w / cores, w % cores, key);
    for (int i = 0; i < (same_pod ? 2 : 4); i++)
        route_add(fabric, way[i], weight);
    return true;
}

/* Add a connection's weight to the links between two leaves; false when there is no way. */
bool fabric_add_between(struct fabric *fabric, int from, int to, double weight, uint64_t key)
{
    const struct hw_network *network = &fabric->hw->cluster.network;
    if (from == to)
        return true;
    if (network->routing == HW_ECMP)
        return add_hashed(fabric, from, to, weight, key);
    bool ok = route_add(fabric, fabric_leaf_link(fabric, from, 0, 0), weight);
    ok &= route_add(fabric, fabric_leaf_link(fabric, to, 1, 0), weight);
    int from_pod = hw_network_pod(network, from), to_pod = hw_network_pod(network, to);
    if (from_pod == to_pod)
        return ok;
    ok &= route_add(fabric, fabric_pod_link(fabric, from_pod, 0, 0), weight);
    ok &= route_add(fabric, fabric_pod_link(fabric, to_pod, 1, 0), weight);
    return ok;
}

/* NICs of a group's GPUs on each node, as a mask of the node's. */
static int mark_nics(bool *used, const struct fabric *fabric, struct coll_group group)
{
    memset(used, 0, sizeof *used * (size_t)fabric->nics);
    struct coll_shape shape = coll_shape(group, fabric->gpus);
    int n = 0;
    for (int i = 0; i < shape.per_node; i++) {
        int gpu = (group.first + i * group.stride) % fabric->gpus;
        int first = gpu * fabric->nics / fabric->gpus,
            end = (gpu + 1) * fabric->nics / fabric->gpus;
        for (int nic = first; nic == first || nic < end; nic++) {
            n += !used[nic];
            used[nic] = true;
        }
    }
    return n;
}

static int connections(const struct fabric *fabric)
{
    if (fabric->hw->cluster.network.routing == HW_ADAPTIVE)
        return 1; /* all take the same links */
    struct quantity own = fabric->hw->cluster.network.connections;
    if (quantity_is_set(own))
        return (int)own.value;
    const struct coll_shape whole_nodes = {2 * fabric->gpus, 2, fabric->gpus};
    return (int)fmax(1, floor(coll_sms(whole_nodes, fabric->hw) / fabric->nics));
}

/* weight bytes from a node of the job to another, over the marked NICs. The connection's key is
 * made of links, part and seed, so two groups on the same NICs have separate hashes only by
 * `key`. */
static void add_hop(struct fabric *fabric, const bool *used, int n_used, int from, int to,
    double weight, uint64_t key)
{
    int parts = connections(fabric);
    for (int nic = 0; nic < fabric->nics; nic++) {
        if (!used[nic])
            continue;
        int out = fabric_nic_link(fabric, from, nic, 0), in = fabric_nic_link(fabric, to, nic, 1);
        route_add(fabric, out, weight / n_used);
        route_add(fabric, in, weight / n_used);
        if (fabric_is_pooled(fabric))
            continue;
        uint64_t pair = digest_word(digest_word(key, (uint64_t)out), (uint64_t)in);
        for (int part = 0; part < parts; part++) {
            uint64_t connection = digest_word(
                digest_word(pair, (uint64_t)part), (uint64_t)fabric->hw->cluster.network.ecmp_seed);
            bool ok = fabric_add_between(fabric, fabric_leaf_of(fabric, from, nic),
                fabric_leaf_of(fabric, to, nic), weight / n_used / parts, connection);
            BUG_IF(!ok, "no way from node %d to node %d", from, to);
        }
    }
}

static int node_of(
    const struct fabric *fabric, struct coll_group group, struct coll_shape shape, int i)
{
    return (group.first + i * shape.per_node * group.stride) / fabric->gpus;
}

/* Of a group that spans nodes, over the NICs of its GPUs. Pooled: every node as the busiest, which
 * a ring gives. */
static void add_hops(struct fabric *fabric, struct coll_group group, struct coll_shape shape,
    const struct coll_cost *cost, uint64_t key)
{
    bool *used = xcalloc((size_t)fabric->nics, sizeof *used);
    struct coll_hop *hops = xcalloc((size_t)COLL_MAX_HOPS(shape.nodes), sizeof *hops);
    int n_used = mark_nics(used, fabric, group);
    int n = coll_hops(hops, fabric_is_pooled(fabric) ? COLL_RING : cost->algorithm, shape.nodes);
    for (int h = 0; h < n; h++)
        add_hop(fabric, used, n_used, node_of(fabric, group, shape, hops[h].from),
            node_of(fabric, group, shape, hops[h].to), cost->node_out_factor * hops[h].share, key);
    free(hops);
    free(used);
}

/* From every node of a group to every other one. */
static void add_all_pairs(struct fabric *fabric, struct coll_group group, struct coll_shape shape,
    const struct coll_cost *cost, uint64_t key)
{
    bool *used = xcalloc((size_t)fabric->nics, sizeof *used);
    int n_used = mark_nics(used, fabric, group);
    double weight = cost->node_out_factor / (shape.nodes - 1);
    for (int from = 0; from < shape.nodes; from++)
        for (int to = 0; to < shape.nodes; to++)
            if (to != from)
                add_hop(fabric, used, n_used, node_of(fabric, group, shape, from),
                    node_of(fabric, group, shape, to), weight, key);
    free(used);
}

enum fabric_way fabric_way(const struct fabric *fabric, int from, int to)
{
    if (from / fabric->gpus != to / fabric->gpus)
        return FABRIC_WAY_NETWORK;
    return hw_bridged(&fabric->hw->node, from % fabric->gpus, to % fabric->gpus) ? FABRIC_WAY_BRIDGE
                                                                                 : FABRIC_WAY_NODE;
}

/* weight bytes over the links that two ranks of a node have for themselves, if they have any. */
static void route_add_pair(struct fabric *fabric, int from, int to, double weight)
{
    if (fabric->first_pair < fabric->n_links && alive(fabric, fabric_pair_link(fabric, from, to)))
        route_add(fabric, fabric_pair_link(fabric, from, to), weight);
}

/* What rank i of a group sends to its others of the node; of a send_recv to the next. */
static void add_pairs(struct fabric *fabric, struct coll_group group, struct coll_shape shape,
    const struct coll_cost *cost, int i)
{
    bool to_next = cost->algorithm == COLL_P2P && !cost->all_pairs;
    int on_node = shape.per_node, first = i - i % on_node,
        next = shape.nodes > 1 ? i + 1 : first + (i + 1) % on_node;
    double weight = to_next ? cost->gpu_out_factor : cost->gpu_out_factor / (on_node - 1);
    for (int j = first; j < first + on_node; j++)
        if (j != i && (!to_next || j == next))
            route_add_pair(
                fabric, group.first + i * group.stride, group.first + j * group.stride, weight);
}

/* Within nodes. Two that a bridge joins use nothing else, and more than two do not use it. A rank
 * of a mesh or bridge loads its pair links beside, or in place of, its whole NVLink. */
static void add_inside(struct fabric *fabric, struct coll_group group, struct coll_shape shape,
    const struct coll_cost *cost)
{
    if (shape.per_node == 1)
        return;
    bool bridged = shape.per_node == 2 &&
                   fabric_way(fabric, group.first, group.first + group.stride) == FABRIC_WAY_BRIDGE;
    bool bridges = quantity_is_set(fabric->hw->node.nvlink_bridge);
    for (int i = 0; i < shape.ranks; i++) {
        if (!bridged)
            route_add(fabric, group.first + i * group.stride, cost->gpu_out_factor);
        if (bridged || !bridges)
            add_pairs(fabric, group, shape, cost, i);
    }
}

void fabric_load_collective(
    struct fabric *fabric, struct coll_group group, const struct coll_cost *cost, uint64_t key)
{
    struct coll_shape shape = coll_shape(group, fabric->gpus);
    add_inside(fabric, group, shape, cost);
    if (shape.nodes > 1 && cost->all_pairs && !fabric_is_pooled(fabric))
        add_all_pairs(fabric, group, shape, cost, key);
    else if (shape.nodes > 1)
        add_hops(fabric, group, shape, cost, key);
}

void fabric_load_message(
    struct fabric *fabric, struct coll_group group, int from, int to, uint64_t key)
{
    enum fabric_way way = fabric_way(fabric, from, to);
    if (way != FABRIC_WAY_NETWORK) {
        if (way == FABRIC_WAY_NODE)
            route_add(fabric, from, 1);
        route_add_pair(fabric, from, to, 1);
        return;
    }
    bool *used = xcalloc((size_t)fabric->nics, sizeof *used);
    int n_used = mark_nics(used, fabric, group);
    add_hop(fabric, used, n_used, from / fabric->gpus, to / fabric->gpus, 1, key);
    free(used);
}

int fabric_loaded(struct link_weight *weights, struct fabric *fabric)
{
    int n = 0;
    for (int word = 0; word < FABRIC_WORDS(fabric->n_links); word++)
        for (; fabric->loaded[word] != 0; fabric->loaded[word] &= fabric->loaded[word] - 1) {
            int link = word * 64 + __builtin_ctzll(fabric->loaded[word]);
            if (fabric->weight[link] > 0)
                weights[n++] = (struct link_weight){link, fabric->weight[link]};
            fabric->weight[link] = 0;
        }
    return n;
}

bool fabric_is_uniform(const struct fabric *fabric)
{
    return !fabric->degraded && (fabric->nodes == 1 || fabric_is_pooled(fabric));
}
