/* The table of a node's file and its checks: what a field alone cannot say. Counts are whole, hosts
 * divide the GPUs, the three numbers of NVLink SHARP are given together and only beside an
 * NVSwitch, and a bridge only beside PCIe.
 *
 * A NIC faster than 200 GB/s is a warning and not an error: it is nearly always bits written as
 * bytes. */
#include "hw/table.h"

#include <math.h>

const char *const hw_fabric_names[] = {
    [HW_NVSWITCH] = "nvswitch", [HW_NVLINK_MESH] = "nvlink_mesh", [HW_PCIE] = "pcie", NULL};

#define NODE(member, ...) HW_REQUIRED(struct hw_node, member, __VA_ARGS__)
static const struct config_field node_fields[] = {
    {CONFIG_FIELD("name", FIELD_STRING, struct hw_node, name, "Name of the node."),
        .required = true},
    HW_EXTENDS(struct hw_node, FILES_NODES),
    {CONFIG_FIELD("gpu", FIELD_PATH, struct hw_node, gpu_path,
         "The GPU file, relative to this one, or a name that `flopcast files` lists."),
        .files = FILES_GPUS, .required = true},
    NODE(gpus, "GPUs in the node, which NVLink or PCIe joins.", HW_COUNT(1, 1024)),
    HW_OPTIONAL(struct hw_node, hosts,
        "Machines that its GPUs are in, as many in each: trays of a rack. Default: 1.",
        HW_COUNT(1, 1024)),
    {CONFIG_FIELD("fabric", FIELD_ENUM, struct hw_node, fabric, "Links between its GPUs."),
        .names = hw_fabric_names, .required = true},
    NODE(gpu_bandwidth, "Bandwidth of a GPU to its peers, one direction.", HW_BANDWIDTH),
    HW_OPTIONAL(struct hw_node, nvlink_bridge,
        "Bandwidth of the NVLink bridge between each two neighbours on PCIe, one direction.",
        HW_BANDWIDTH),
    NODE(nics, "NICs, shared evenly by the GPUs.", HW_COUNT(0, 1024)),
    NODE(nic_bandwidth, "One NIC, one direction.", HW_BANDWIDTH),
    NODE(pcie_bandwidth, "GPU to or from host memory, one direction.", HW_BANDWIDTH),
    HW_OPTIONAL(
        struct hw_node, host_memory, "Host memory of the node, of all its hosts.", HW_BYTES),
    HW_OPTIONAL(struct hw_node, host_bandwidth,
        "Bandwidth of host memory that streaming loops reach, all sockets of all hosts.",
        HW_BANDWIDTH),
    HW_OPTIONAL(struct hw_node, image_time,
        "An image: loaded, decoded and cropped by all cores of the node together.", HW_LATENCY),
    NODE(nccl_efficiency, "Share of gpu_bandwidth that the busbw of a ring in the node reaches.",
        HW_SHARE),
    NODE(nccl_hop_latency, "An intra-node hop of a ring, Simple protocol.", HW_LATENCY),
    NODE(nccl_base_latency, "Base latency of a collective, Simple protocol.", HW_LATENCY),
    NODE(nccl_channels, "SMs that a collective occupies on each GPU.", HW_COUNT(1, 128)),
    NODE(nccl_bytes, "HBM that NCCL takes for one communicator.", HW_BYTES),
    HW_OPTIONAL(struct hw_node, nccl_link_latency,
        "What an intra-node hop of LL and LL128 takes beyond NCCL's table.", HW_LATENCY),
    HW_OPTIONAL(struct hw_node, nccl_ring_tail,
        "What the end of a ring in the node takes, Simple protocol, in steps.",
        .dimension = DIM_NONE, .min = 0, .max = 2),
    HW_OPTIONAL(struct hw_node, nvls_efficiency,
        "Share of gpu_bandwidth at which the switch reduces.", HW_SHARE),
    HW_OPTIONAL(
        struct hw_node, nvls_latency, "Base latency of a collective by the switch.", HW_LATENCY),
    HW_OPTIONAL(struct hw_node, nvls_step_latency, "A step of chunks by the switch.", HW_LATENCY),
    HW_OPTIONAL(struct hw_node, host_power,
        "Power of the node without GPUs and NICs. Default: 0.5 of the tdp of its GPUs.",
        HW_ANY_POWER),
    HW_OPTIONAL(struct hw_node, nic_power, "Power of a NIC. Default: 25 W.", HW_ANY_POWER),
};
const struct config_table hw_node_table = CONFIG_TABLE("a node", node_fields);

static enum status check_hosts(
    const struct hw_node *node, const struct hw_source *source, struct diag *diag)
{
    if (hw_whole(source, "hosts", node->hosts, diag) != STATUS_OK)
        return STATUS_INPUT;
    if (!quantity_is_set(node->hosts) || fmod(node->gpus.value, node->hosts.value) == 0)
        return STATUS_OK;
    return diag_input(diag, hw_place(source, "hosts"),
        "%g hosts do not share %g GPUs evenly; give a number of hosts that divides them, as the "
        "trays of a rack do",
        node->hosts.value, node->gpus.value);
}

static enum status check_bridge(
    const struct hw_node *node, const struct hw_source *source, struct diag *diag)
{
    if (!quantity_is_set(node->nvlink_bridge) || node->fabric == HW_PCIE)
        return STATUS_OK;
    return diag_input(diag, hw_place(source, "nvlink_bridge"),
        "nvlink_bridge beside fabric: %s, whose NVLinks join all GPUs; take it out, or write pcie",
        hw_fabric_names[node->fabric]);
}

enum status hw_check_node(
    const struct hw_node *node, const struct hw_source *source, struct diag *diag)
{
    static const double fastest_nic_Bps =
        200e9; /* 1.6 Tb/s, twice that of 2026: more are bits written as bytes */
    if (node->nic_bandwidth.value > fastest_nic_Bps)
        diag_warn(diag, hw_place(source, "nic_bandwidth"),
            "a NIC of %g GB/s is one of %g Gb/s; bytes have a capital B, bits a small one",
            1e-9 * node->nic_bandwidth.value, 8e-9 * node->nic_bandwidth.value);
    const struct {
        const char *key;
        struct quantity value;
    } together[] = {{"nvls_efficiency", node->nvls_efficiency},
        {"nvls_latency", node->nvls_latency}, {"nvls_step_latency", node->nvls_step_latency}};
    const char *given = NULL, *missing = NULL;
    for (size_t i = 0; i < sizeof together / sizeof *together; i++)
        *(quantity_is_set(together[i].value) ? &given : &missing) = together[i].key;
    enum status nvls = STATUS_OK;
    if (given && missing)
        nvls = diag_input(diag, hw_place(source, given),
            "nvls_efficiency, nvls_latency and nvls_step_latency belong together; give all or "
            "none");
    else if (given && node->fabric != HW_NVSWITCH)
        nvls = diag_input(diag, hw_place(source, given),
            "nvls_efficiency beside fabric: %s; only a switch reduces, so take the three of NVLS "
            "out, or write nvswitch",
            hw_fabric_names[node->fabric]);
    enum status bridge = check_bridge(node, source, diag);
    enum status gpus = hw_whole(source, "gpus", node->gpus, diag);
    enum status nics = hw_whole(source, "nics", node->nics, diag);
    enum status hosts = gpus ? gpus : check_hosts(node, source, diag);
    return nvls ? nvls : bridge ? bridge : hosts ? hosts : nics;
}

enum status hw_load_node_from(struct hw_node *out, struct hw_source *source, const char *path,
    struct arena *arena, struct diag *diag)
{
    *out = (struct hw_node){0};
    *source = (struct hw_source){.path = path};
    enum status status = hw_read(out, &hw_node_table, source, arena, diag);
    return status == STATUS_OK ? hw_check_node(out, source, diag) : status;
}
