/* What a GPU and its share of the cluster draw, from shares of the GPU's limit and watts per part.
 *
 * Every number may be in a file; else it is the default below, times the scale that the default is
 * stated in (tdp, the tdp of all GPUs of a node, or W). No power log is at hand, so all defaults
 * are assumed, each with its source beside it. busy and waiting are never below idle, and idle
 * never above the limit, whatever the file says.
 *
 * Ports of switches are counted per NIC: its own port, and its part of the ports at the cables of
 * each level above. */
#include "hw/power.h"

#include <math.h>

enum number { IDLE, WAITING, BUSY, HOST, NIC, SWITCH_PORT, PUE };

#define MEMORY "from memory, no power log is at hand: "
const struct hw_power_default hw_power_defaults[] = {
    [IDLE] = {"gpu.power.idle", "tdp",
        {0.12, 0.04, QUANTITY_ASSUMED,
            MEMORY "nvidia-smi shows 40 of 300 W on V100, 55 of 400 on A100, 70 of 700 on H100",
            NULL}},
    [WAITING] = {"gpu.power.waiting", "tdp",
        {0.4, 0.2, QUANTITY_ASSUMED,
            MEMORY "0.2, 0.5 and 0.75 while three models synchronise on A100 (POLCA, arXiv "
                   "2308.12908), 0.15 while one on H100 writes checkpoints (arXiv 2503.05804)",
            NULL}},
    [BUSY] = {"gpu.power.busy", "tdp",
        {0.9, 0.07, QUANTITY_ASSUMED,
            MEMORY "more than 0.85 in the mean of steps of a 7B model on H100 (arXiv 2503.05804); "
                   "GEMMs run at the limit (thonking.ai)",
            NULL}},
    [HOST] = {"cluster.node.host_power", "tdp of all its GPUs",
        {0.5, 0.15, QUANTITY_ASSUMED,
            MEMORY "a node of 8 H100 in training draws at most 8.4 kW (arXiv 2412.08602), 5.6 of "
                   "them its GPUs' limit; GB200 NVL72: 120 to 132 kW a rack, 86 of them GPUs",
            NULL}},
    [NIC] = {"cluster.node.nic_power", "W",
        {25, 8, QUANTITY_ASSUMED,
            MEMORY "a ConnectX-7 card of 400 Gb/s, with its part of the transceiver", NULL}},
    [SWITCH_PORT] = {"cluster.switch_port_power", "W",
        {20, 8, QUANTITY_ASSUMED,
            MEMORY "a QM9700 with 64 ports of 400 Gb/s takes 747 W with copper cables, 1,720 W at "
                   "most with optical ones",
            NULL}},
    [PUE] = {"cluster.pue", "",
        {1.2, 0.15, QUANTITY_ASSUMED,
            MEMORY "1.2 at Jean Zay (BLOOM, arXiv 2211.02001); large clouds state 1.1, planners "
                   "take 1.3 to 1.5",
            NULL}},
    {0},
};

/* The file's number, or the default times the scale that it is stated in. */
static double power_number(struct quantity given, enum number which, double scale)
{
    return quantity_is_set(given) ? given.value : hw_power_defaults[which].number.value * scale;
}

/* Ports of switches for each NIC. A cable of a fat tree has both its ends at switches of which it
 * is one's way up; a dragonfly's cable is counted at either end. */
static double ports(const struct hw *hw)
{
    const struct hw_network *network = &hw->cluster.network;
    if (!(hw->cluster.nodes.value > 1))
        return 0;
    if (network->kind == HW_POOLED)
        return 1;
    double leaf_ports = network->leaf_ports.value, ends = network->kind == HW_DRAGONFLY ? 1 : 2;
    double above = quantity_is_set(network->pod_leaves)
                       ? hw_network_pod_cables(network) / network->pod_leaves.value / leaf_ports
                       : 0;
    return 1 + ends * (hw_network_leaf_cables(network) / leaf_ports + above);
}

struct hw_power hw_power_of(const struct hw *hw)
{
    const struct hw_gpu_power *gpu = &hw->gpu.power;
    double limit = hw->gpu.tdp.value, gpus = hw->node.gpus.value;
    double idle = fmin(power_number(gpu->idle, IDLE, limit), limit);
    double nic = power_number(hw->node.nic_power, NIC, 1) +
                 ports(hw) * power_number(hw->cluster.switch_port_power, SWITCH_PORT, 1);
    double node = power_number(hw->node.host_power, HOST, limit * gpus) + hw->node.nics.value * nic;
    return (struct hw_power){
        .limit_w = limit,
        .idle_w = idle,
        .waiting_w = fmax(idle, power_number(gpu->waiting, WAITING, 1) * limit),
        .busy_w = fmax(idle, power_number(gpu->busy, BUSY, 1) * limit),
        .host_w = gpus > 0 ? node / gpus : 0,
        .pue = power_number(hw->cluster.pue, PUE, 1),
    };
}

double hw_power_gpu(const struct hw_power *power, double busy_share)
{
    return busy_share * power->busy_w + (1 - busy_share) * power->waiting_w;
}

double hw_power_at_meter(const struct hw_power *power, double gpu_w)
{
    return (gpu_w + power->host_w) * power->pue;
}
