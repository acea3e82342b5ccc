/* The shape of the network between nodes: its table and checks, where a NIC is plugged in, how many
 * cables go up.
 *
 * hw_network_leaf() is the whole of wiring and placement. A block is the nodes that share a leaf,
 * or with rails a set of leaves. Placement first moves the node to its place (scattered:
 * round-robin over the blocks), wiring then finds the leaf of its NIC there. fabric/ builds links
 * only for leaves and pods that this function names.
 *
 * Which keys a network may have depends on its kind, on pods and on the routing. check_needs() has
 * that as a table of rules: needed, allowed, and the condition that would allow it, for the
 * message. */
#include "hw/network.h"

#include "hw/table.h"

#include <math.h>

const char *const hw_network_names[] = {
    [HW_POOLED] = "pooled", [HW_FAT_TREE] = "fat_tree", [HW_DRAGONFLY] = "dragonfly", NULL};
const char *const hw_wiring_names[] = {[HW_PLAIN] = "plain", [HW_RAIL] = "rail", NULL};
const char *const hw_routing_names[] = {[HW_ADAPTIVE] = "adaptive", [HW_ECMP] = "ecmp", NULL};
const char *const hw_placement_names[] = {
    [HW_PACKED] = "packed", [HW_SCATTERED] = "scattered", NULL};

#define CHOICE(member, list, must, sentence)                                                       \
    {                                                                                              \
        .key = #member, .type = FIELD_ENUM, .offset = offsetof(struct hw_network, member),         \
        .names = (list), .required = (must), .help = sentence                                      \
    }
#define NETWORK(member, ...) HW_OPTIONAL(struct hw_network, member, __VA_ARGS__)
static const struct config_field network_fields[] = {
    CHOICE(kind, hw_network_names, true, "Shape of the network."),
    CHOICE(wiring, hw_wiring_names, false, "Which leaf each NIC of a node is on."),
    CHOICE(routing, hw_routing_names, false, "How one of parallel cables is chosen."),
    CHOICE(placement, hw_placement_names, false, "Where the nodes of a job lie."),
    {CONFIG_FIELD("ecmp_seed", FIELD_INT, struct hw_network, ecmp_seed, "Of the hash of ECMP."),
        .min = 0, .max = 0x1p62},
    NETWORK(leaf_ports, "NICs on a leaf.", HW_COUNT(1, 1e4)),
    NETWORK(spines, "Spines that a leaf reaches.", HW_COUNT(1, 1e4)),
    NETWORK(spine_cables, "Cables from a leaf to each of them.", HW_COUNT(1, 1e3)),
    NETWORK(pod_leaves, "Leaves that share their spines; routers of a dragonfly's group.",
        HW_COUNT(1, 1e4)),
    NETWORK(cores, "Cores that a spine reaches.", HW_COUNT(1, 1e4)),
    NETWORK(core_cables, "Cables from a spine to each of them.", HW_COUNT(1, 1e3)),
    NETWORK(local_cables, "Dragonfly: cables between two routers of a group.", HW_COUNT(1, 1e3)),
    NETWORK(global_cables, "Dragonfly: cables from a router to other groups.", HW_COUNT(1, 1e3)),
    NETWORK(cable_bandwidth, "One cable between switches, one direction.", HW_BANDWIDTH),
    NETWORK(
        connections, "Connections of a NIC to its peer that ECMP hashes apart.", HW_COUNT(1, 1e3)),
};
const struct config_table hw_network_table = CONFIG_TABLE("a network", network_fields);

static int network_count(struct quantity q)
{
    return quantity_is_set(q) ? (int)q.value : 1;
}

/* With plain wiring a leaf of fewer ports than a node has NICs still takes one node a block; its
 * NICs then spread over several leaves. */
int hw_network_leaf(
    const struct hw_network *network, int node, int nic, int nodes, int nics_per_node)
{
    int ports = network_count(network->leaf_ports);
    int block = network->wiring == HW_RAIL ? ports
                : ports > nics_per_node    ? ports / nics_per_node
                                           : 1;
    int blocks = (nodes + block - 1) / block;
    int place = network->placement == HW_SCATTERED ? node % blocks * block + node / blocks : node;
    if (network->wiring == HW_RAIL)
        return place / block * nics_per_node + nic;
    return (place * nics_per_node + nic) / ports;
}

int hw_network_pod(const struct hw_network *network, int leaf)
{
    return quantity_is_set(network->pod_leaves) ? leaf / network_count(network->pod_leaves) : 0;
}

int hw_network_leaf_cables(const struct hw_network *network)
{
    if (network->kind == HW_DRAGONFLY)
        return (network_count(network->pod_leaves) - 1) * network_count(network->local_cables);
    return network_count(network->spines) * network_count(network->spine_cables);
}

int hw_network_pod_cables(const struct hw_network *network)
{
    if (!quantity_is_set(network->pod_leaves))
        return 0;
    if (network->kind == HW_DRAGONFLY)
        return network_count(network->pod_leaves) * network_count(network->global_cables);
    return network_count(network->spines) * network_count(network->cores) *
           network_count(network->core_cables);
}

static enum status check_counts(
    const struct hw_network *network, const struct hw_source *source, struct diag *diag)
{
    enum status status = STATUS_OK;
    for (int i = 0; i < hw_network_table.n_fields; i++) {
        const struct config_field *field = &network_fields[i];
        if (field->type != FIELD_SOURCED || field->dimension != DIM_NONE)
            continue;
        const char *member = (const char *)network + field->offset;
        char key[64];
        snprintf(key, sizeof key, "network.%s", field->key);
        enum status whole =
            hw_whole(source, key, *(const struct quantity *)(const void *)member, diag);
        status = status ? status : whole;
    }
    return status;
}

static enum status check_needs(
    const struct hw_network *network, const struct hw_source *source, struct diag *diag)
{
    bool tree = network->kind == HW_FAT_TREE, fly = network->kind == HW_DRAGONFLY,
         switches = tree || fly;
    bool pods = quantity_is_set(network->pod_leaves), ecmp = network->routing == HW_ECMP;
    const struct {
        const char *key;
        struct quantity value;
        bool needed, allowed;
        const char *without; /* what allows it to a fat tree */
    } rules[] = {
        {"leaf_ports", network->leaf_ports, switches, switches, ""},
        {"spines", network->spines, tree, tree, ""},
        {"spine_cables", network->spine_cables, false, tree, ""},
        {"pod_leaves", network->pod_leaves, fly, switches, ""},
        {"cores", network->cores, tree && pods, tree && pods, " without pod_leaves"},
        {"core_cables", network->core_cables, false, tree && pods, " without pod_leaves"},
        {"local_cables", network->local_cables, false, fly, ""},
        {"global_cables", network->global_cables, fly, fly, ""},
        {"cable_bandwidth", network->cable_bandwidth, false, switches, ""},
        {"connections", network->connections, false, tree && ecmp, " without routing: ecmp"},
    };
    const char *what = hw_network_names[network->kind];
    enum status status = STATUS_OK;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        bool given = quantity_is_set(rules[i].value);
        char key[64];
        snprintf(key, sizeof key, "network.%s", rules[i].key);
        if (rules[i].needed && !given)
            status = diag_input(diag, hw_place(source, "network"), "network: a %s%s needs %s", what,
                pods ? " with pod_leaves" : "", rules[i].key);
        if (given && !rules[i].allowed)
            status =
                diag_input(diag, hw_place(source, key), "network: a %s%s has no %s; take it out",
                    switches ? what : "pooled network", tree ? rules[i].without : "", rules[i].key);
    }
    return status;
}

/* Nodes on one pool of NICs have no leaves to lie on, and no parallel cables to pick from. */
static enum status check_pooled(
    const struct hw_network *network, const struct hw_source *source, struct diag *diag)
{
    if (network->wiring == HW_PLAIN && network->routing == HW_ADAPTIVE &&
        network->placement == HW_PACKED)
        return STATUS_OK;
    return diag_input(diag, hw_place(source, "network"),
        "network: a pooled network has no wiring, routing or placement; take out what is given of "
        "them");
}

enum status hw_check_network(const struct hw_network *network, double oversubscription,
    const struct hw_source *source, struct diag *diag)
{
    enum status counts = check_counts(network, source, diag),
                status = check_needs(network, source, diag);
    if (network->kind == HW_POOLED) {
        enum status pooled = check_pooled(network, source, diag);
        return status ? status : pooled;
    }
    if (oversubscription != 1)
        status = diag_input(diag, hw_place(source, "oversubscription"),
            "oversubscription is %g beside a network; write 1, the network's own cables say the "
            "rest",
            oversubscription);
    if (network->kind == HW_DRAGONFLY && network->pod_leaves.value == 1)
        status = diag_input(diag, hw_place(source, "network.pod_leaves"),
            "network: a group of one router has no local cables; pod_leaves is 2 or more");
    if (network->kind == HW_DRAGONFLY && network->routing == HW_ECMP)
        status = diag_input(diag, hw_place(source, "network.routing"),
            "network: a dragonfly with ecmp is not modelled; use routing: adaptive");
    return status ? status : counts;
}
