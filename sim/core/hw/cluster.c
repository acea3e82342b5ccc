/* The table of a cluster's file, the loader of a cluster with its node and GPU, and what `flopcast
 * topology` prints.
 *
 * hw_load_from() reads cluster, node and GPU in this order, as each names the file of the next. It
 * stops at the first file that cannot be read, because what the others lack would follow from it.
 * hw_check_cluster() comes last: it needs the NICs of the node. hw_derive() copies what kernels
 * read (the host link, the time to decode an image) from the node into the GPU, so that kernel/
 * needs no node; whoever changes a number of a node calls it again.
 *
 * Subtle: enums are stored as int with value 0 as the default, so a file that leaves one out gets
 * the first name. The order of hw_nccl_versions is such a default, the newest first, and
 * hw_nccl_minor() counts on it. */
#include "hw/table.h"

#include <limits.h>
#include <math.h>

const char *const hw_protocols_names[] = {[HW_PROTOCOLS_ALL] = "all",
    [HW_PROTOCOLS_NO_LL] = "no_ll",
    [HW_PROTOCOLS_NO_LL128] = "no_ll128",
    [HW_PROTOCOLS_SIMPLE] = "simple",
    NULL};

const char *const hw_plugin_names[] = {[HW_PLUGIN_NONE] = "none",
    [HW_PLUGIN_P3DN] = "aws_p3dn",
    [HW_PLUGIN_P4D] = "aws_p4d",
    [HW_PLUGIN_P5] = "aws_p5",
    [HW_PLUGIN_P5EN] = "aws_p5en",
    [HW_PLUGIN_P6] = "aws_p6",
    NULL};

const char *const hw_flow_control_names[] = {
    [HW_SLIDING_WINDOW] = "sliding_window", [HW_STOP_AND_WAIT] = "stop_and_wait", NULL};

const char *const hw_cta_policy_names[] = {
    [HW_CTA_DEFAULT] = "default", [HW_CTA_ZERO] = "zero", NULL};
const char *const hw_nccl_versions[] = {"2.30", "2.29", "2.28", "2.27", "2.26", "2.25", "2.24",
    "2.23", "2.22", "2.21", "2.20", "2.19", "2.18", "2.17", "2.16", "2.15", "2.14", "2.13", "2.12",
    "2.11", "2.10", "2.9", "2.8", "2.7", "2.6", "2.5", "2.4", NULL};

#define CLUSTER(member, ...) HW_REQUIRED(struct hw_cluster, member, __VA_ARGS__)
#define OPTIONAL(member, ...) HW_OPTIONAL(struct hw_cluster, member, __VA_ARGS__)
static const struct config_field cluster_fields[] = {
    {CONFIG_FIELD("name", FIELD_STRING, struct hw_cluster, name, "Name of the cluster."),
        .required = true},
    HW_EXTENDS(struct hw_cluster, FILES_CLUSTERS),
    {CONFIG_FIELD("node", FIELD_PATH, struct hw_cluster, node_path,
         "The node file, relative to this one, or a name that `flopcast files` lists."),
        .files = FILES_NODES, .required = true},
    CLUSTER(nodes, "The most nodes.", HW_COUNT(1, 1e6)),
    CLUSTER(oversubscription, "Leaf uplinks: 1 is full bisection, 2 half.", HW_COUNT(1, 64)),
    CLUSTER(nccl_efficiency, "Share of the NICs' bandwidth that the busbw of a ring reaches.",
        HW_SHARE),
    CLUSTER(nccl_net_latency, "What an inter-node hop takes beyond NCCL's table.", HW_LATENCY),
    OPTIONAL(nccl_ring_post_latency,
        "What posts add to an inter-node hop of a ring; a message of c channels 1 - 1/c of it.",
        HW_LATENCY),
    OPTIONAL(nccl_tree_post_latency,
        "What posts add to an inter-node hop of a tree; a message of c channels 1 - 1/c of it.",
        HW_LATENCY),
    OPTIONAL(nccl_credit_latency,
        "Until a place in the buffer to another node is free again, Simple. Default: a hop of one "
        "channel.",
        HW_LATENCY),
    OPTIONAL(nccl_channels,
        "Channels across nodes, each an SM on each GPU. Default: what NCCL's search gives.",
        HW_COUNT(1, 128)),
    OPTIONAL(nccl_channel_bandwidth, "Busbw that each of them carries.", HW_BANDWIDTH),
    OPTIONAL(nccl_staging_bandwidth,
        "Without GPUDirect: what a process sends and receives through host memory.", HW_BANDWIDTH),
    OPTIONAL(nvls_tree_latency, "A level of NVLSTree between nodes.", HW_LATENCY),
    OPTIONAL(nccl_collnet_efficiency,
        "Share of the NICs' bandwidth at which switches reduce (SHARP).", HW_SHARE),
    {CONFIG_FIELD("nccl_protocols", FIELD_ENUM, struct hw_cluster, nccl_protocols,
         "Protocols that the network plugin allows."),
        .names = hw_protocols_names},
    {CONFIG_FIELD("nccl_plugin", FIELD_ENUM, struct hw_cluster, nccl_plugin,
         "The network plugin, where it has a say in NCCL's choice of algorithm."),
        .names = hw_plugin_names},
    {CONFIG_FIELD("nccl_version", FIELD_ENUM, struct hw_cluster, nccl_version,
         "NCCL's version: what its tuner takes, and how many channels it lays."),
        .names = hw_nccl_versions},
    {CONFIG_FIELD("nccl_flow_control", FIELD_ENUM, struct hw_cluster, nccl_flow_control,
         "Of a ring (Simple) two chunks are under way to another node (sliding_window, the "
         "default), or one, which the next waits for (stop_and_wait)."),
        .names = hw_flow_control_names},
    {CONFIG_FIELD("nccl_cta_policy", FIELD_ENUM, struct hw_cluster, nccl_cta_policy,
         "NCCL_CTA_POLICY; zero (2.28 and later): copy engines do all_gather and all_to_all in a "
         "node, and hold no SM."),
        .names = hw_cta_policy_names},
    {CONFIG_FIELD("network", FIELD_SECTION, struct hw_cluster, network,
         "Switches between the nodes; without it all NICs of a node are one link."),
        .section = &hw_network_table},
    OPTIONAL(gpu_speed_spread,
        "Relative standard deviation of speed at the power limit, per GPU, persistent.", HW_SPREAD),
    OPTIONAL(gpu_speed_spread_below, "The same of compute below the power limit.", HW_SPREAD),
    OPTIONAL(kernel_jitter, "Log-standard deviation of a kernel's duration, transient.", HW_SPREAD),
    OPTIONAL(network_jitter,
        "Log-standard deviation of a collective's duration by the luck of one of its links between "
        "nodes, transient.",
        HW_SPREAD),
    OPTIONAL(host_jitter,
        "Log-standard deviation of a host burst of 1 ms or less; of more, over the root of its ms.",
        HW_SPREAD),
    OPTIONAL(straggler_share, "Share of hosts whose GPUs are slow, persistent.", HW_SPREAD),
    OPTIONAL(straggler_slowdown, "By how much longer kernels take on a slow host.", HW_SPREAD),
    OPTIONAL(switch_port_power, "Power of a port of a switch, with its transceiver. Default: 20 W.",
        HW_ANY_POWER),
    OPTIONAL(pue, "Power of the building for that of its computers (PUE). Default: 1.2.",
        HW_COUNT(1, 10)),
};
const struct config_table hw_cluster_table = CONFIG_TABLE("a cluster", cluster_fields);

enum status hw_check_cluster(const struct hw *hw, const struct hw_source *source, struct diag *diag)
{
    enum status whole = hw_whole(source, "nodes", hw->cluster.nodes, diag), nics = STATUS_OK;
    if (hw->cluster.nodes.value > 1 && !(hw->node.nics.value > 0))
        nics = diag_input(diag, hw_place(source, "nodes"),
            "%g nodes without a NIC; give nics in '%s', or nodes: 1", hw->cluster.nodes.value,
            hw->cluster.node_path);
    enum { FIRST_ZERO = 28 };
    int version = HW_NCCL_NEWEST - hw->cluster.nccl_version;
    if (hw->cluster.nccl_cta_policy == HW_CTA_ZERO && version < FIRST_ZERO)
        nics = diag_input(diag, hw_place(source, "nccl_cta_policy"),
            "NCCL 2.%d has no zero-CTA policy; take nccl_version 2.28 or later, or the default "
            "policy",
            version);
    enum status network =
        hw_check_network(&hw->cluster.network, hw->cluster.oversubscription.value, source, diag);
    return whole ? whole : nics ? nics : network;
}

enum status hw_load_from(struct hw *out, struct hw_sources *sources, const char *cluster_path,
    struct arena *arena, struct diag *diag)
{
    *out = (struct hw){0};
    *sources = (struct hw_sources){.cluster = {.path = cluster_path}};
    enum status status = hw_read(&out->cluster, &hw_cluster_table, &sources->cluster, arena, diag);
    if (status == STATUS_OK)
        status = hw_load_node_from(&out->node, &sources->node, out->cluster.node_path, arena, diag);
    if (status == STATUS_OK)
        status = hw_load_gpu_from(&out->gpu, &sources->gpu, out->node.gpu_path, arena, diag);
    if (status == STATUS_OK)
        status = hw_check_cluster(out, &sources->cluster, diag);
    hw_derive(out);
    return status;
}

enum status hw_load(
    struct hw *out, const char *cluster_path, struct arena *arena, struct diag *diag)
{
    struct hw_sources sources;
    enum status status = hw_load_from(out, &sources, cluster_path, arena, diag);
    hw_sources_free(&sources);
    return status;
}

void hw_derive(struct hw *hw)
{
    hw->gpu.host_link_Bps = hw->node.pcie_bandwidth.value;
    hw->gpu.host_image_s = hw->node.image_time.value * hw_hosts_per_node(hw);
}

/* "a leaf has 32 NICs and 16 cables up: 2 : 1 (oversubscribed)": what comes in on one side of a
 * switch, and goes out. The taper is the bandwidth that enters a switch from below over what leaves
 * it upwards, so 1 is full bisection. */
static void print_level(FILE *out, const char *what, double n_down, const char *down,
    double down_Bps, int n_up, const char *up, double up_Bps)
{
    double taper = n_down * down_Bps / (n_up * up_Bps);
    fprintf(out, "  %s has %g %s and %d %s: %.3g : 1 %s\n", what, n_down, down, n_up, up, taper,
        taper > 1 ? "(oversubscribed)" : "(full bisection)");
}

/* What the counts of the network come to, level by level, in the words that networks are bought by.
 */
static void print_taper(FILE *out, const struct hw *hw)
{
    const struct hw_network *network = &hw->cluster.network;
    if (network->kind == HW_POOLED)
        return;
    double nic = hw->node.nic_bandwidth.value, ports = network->leaf_ports.value,
           leaves = network->pod_leaves.value;
    double cable = quantity_is_set(network->cable_bandwidth) ? network->cable_bandwidth.value : nic;
    int leaf_cables = hw_network_leaf_cables(network), pod_cables = hw_network_pod_cables(network);
    if (network->kind == HW_DRAGONFLY) {
        print_level(out, "a router", ports, "NICs", nic, leaf_cables, "cables in its group", cable);
        print_level(
            out, "a group", leaves * ports, "NICs", nic, pod_cables, "cables to others", cable);
        return;
    }
    print_level(out, "a leaf", ports, "NICs", nic, leaf_cables, "cables up", cable);
    if (pod_cables > 0)
        print_level(out, "a pod", leaves * leaf_cables, "cables from its leaves", cable, pod_cables,
            "to cores", cable);
}

/* "node mine, extends topologies/nodes/dgx-h100-like.yaml", and its numbers with their places where
 * it says so. */
static void cluster_print_file(FILE *out, const char *what, const char *extends,
    const struct config_table *table, const void *from, const struct hw_source *source)
{
    char heading[PATH_MAX + 256];
    snprintf(heading, sizeof heading, "%s%s%s", what, extends ? ", extends " : "",
        extends ? extends : "");
    hw_print_table(out, heading, table, from, extends ? source : NULL);
}

void hw_print(FILE *out, const struct hw *hw, const struct hw_sources *sources)
{
    char what[256];
    if (hw->cluster.name) {
        snprintf(what, sizeof what, "cluster %s", hw->cluster.name);
        cluster_print_file(
            out, what, hw->cluster.extends, &hw_cluster_table, &hw->cluster, &sources->cluster);
        print_taper(out, hw);
    }
    if (hw->node.name) {
        snprintf(what, sizeof what, "node %s", hw->node.name);
        cluster_print_file(out, what, hw->node.extends, &hw_node_table, &hw->node, &sources->node);
    }
    const char *silicon = hw->gpu.silicon;
    snprintf(what, sizeof what, "gpu %s (%s%s%s)", hw->gpu.name, hw->gpu.arch, silicon ? ", " : "",
        silicon ? silicon : "");
    cluster_print_file(out, what, hw->gpu.extends, &hw_gpu_table, &hw->gpu, &sources->gpu);
}
