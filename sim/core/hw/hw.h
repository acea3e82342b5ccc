/* Hardware as data: GPU, node, cluster, read from the YAML files under topologies/. Every number is
 * a struct quantity: a value in base SI with its kind and source.
 *
 * Modelled: one kind of node in a cluster; a GPU's compute peaks, SMs, HBM, what kernels reach of
 * them; inside a node an NVSwitch or a mesh of NVLinks (or PCIe, also with NVLink bridges between
 * neighbours), as bandwidth per GPU and direction; NICs shared evenly by the node's GPUs; between
 * nodes a network of switches (hw/network.h), or a pooled one with an oversubscription factor.
 * Ignored for now: PCIe switches, NUMA, two kinds of GPU or node in a job.
 *
 * A file may say `extends: other.yaml`, a file of the same kind (a path relative to it, or a name
 * that `flopcast files` lists). It then states only the numbers that differ, also inside sections.
 * The other file may extend a third one.
 *
 * A loaded file owns its strings through the arena that is handed in. */
#ifndef FLOPCAST_HW_HW_H
#define FLOPCAST_HW_HW_H

#include "base/arena.h"
#include "base/quantity.h"
#include "base/status.h"
#include "base/units.h"
#include "hw/network.h"

#include <stdint.h>
#include <stdio.h>

/* Number formats, spelled as PyTorch and CUDA spell them. TF32 is a way to multiply, stored as
 * FP32. */
enum dtype {
    DTYPE_FP32,
    DTYPE_TF32,
    DTYPE_BF16,
    DTYPE_FP16,
    DTYPE_FP8,
    DTYPE_INT8,
    DTYPE_FP4,
    DTYPE_COUNT
};
extern const char *const
    dtype_names[DTYPE_COUNT + 1]; /* "fp32", "tf32", "bf16", "fp16", "fp8", "int8", "fp4", NULL */
double dtype_size(enum dtype dtype);   /* bytes of an element in memory: 4, 4, 2, 2, 1, 1, 0.5 */
int64_t dtype_bytes(enum dtype dtype); /* the same in whole bytes: of fp4 1 */

/* Architectures that a GPU file may name. NCCL's constants and stack profiles are looked up by
 * them. */
enum { HW_ARCHS = 7 };
extern const char *const
    hw_archs[HW_ARCHS]; /* "Volta", "Turing", "Ampere", "Ada", "Hopper", "Blackwell", "CDNA" */

/* What a GEMM reaches on this GPU in one number format (see kernel/gemm.h for the model that these
 * are the parameters of). */
struct hw_gemm {
    struct quantity peak; /* FLOP/s, dense, datasheet */
    struct quantity
        efficiency; /* share of the peak that a full wave of tiles with long K reaches, fraction */
    struct quantity k_overhead;     /* prologue and epilogue of a tile, in elements of K */
    struct quantity load_bandwidth; /* B/s at which all SMs together load operand tiles: what limits
                                       small tiles */
    /* Optional. Unset: no bound, and one GEMM runs on the same kernels as a batch. */
    struct quantity
        tile_share; /* share of an SM's peak that four warps reach: a tile of up to 128 x 128 */
    struct quantity
        single_efficiency; /* efficiency of kernels that exist only for one GEMM, not for a batch */
};

/* What the GPU draws, all optional (hw/power.h, which also has the defaults). */
struct hw_gpu_power {
    struct quantity idle;          /* W, no process on it */
    struct quantity busy, waiting; /* shares of tdp: kernels run on the compute stream, and not */
};

struct hw_gpu {
    const char *name;    /* "A100-SXM4-80GB" */
    const char *extends; /* path of the GPU file that it extends, or NULL */
    const char *arch;    /* "Volta", "Ampere", "Hopper": selects NCCL's constants */
    const char
        *silicon; /* the chip, "GH100", of H100, H200 and GH200: rates that training showed on one
                     of these (kind fitted) hold for the others too. NULL: not given */
    struct quantity sms;            /* streaming multiprocessors */
    struct quantity hbm_capacity;   /* bytes */
    struct quantity hbm_bandwidth;  /* B/s, datasheet */
    struct quantity hbm_efficiency; /* share of it that large streaming kernels reach, fraction */
    struct quantity l2_capacity;    /* bytes */
    struct quantity vector_flops;   /* FLOP/s of the non-tensor FP32 units */
    struct quantity kernel_floor; /* s: duration of the smallest kernel, back to back in a stream */
    struct quantity gemm_floor;   /* s: the same for a GEMM kernel (launch, prologue, epilogue) */
    struct quantity
        row_gap; /* bytes that HBM loses at each piece of a GEMM operand's row, optional */
    struct quantity memory_sms;           /* SMs that suffice to saturate HBM bandwidth */
    struct quantity attention_efficiency; /* share of a GEMM peak that the GEMMs of fused attention
                                             reach, fraction */
    struct quantity
        attention_backward; /* the same of its backward kernel, as a share of that; optional, 1 */
    struct quantity
        attention_wide; /* the same of heads wider than 128, as a share of that; optional, 1 */
    struct quantity attention_overhead; /* start and end of a block of queries, in keys, optional */
    struct quantity attention_backward_overhead; /* the same of a block of keys in backward;
                                                    optional, that of queries */
    struct quantity
        attention_softmax; /* softmax of a pair of query and key, in elements of a head; optional */
    struct quantity context_bytes; /* CUDA context, cuBLAS workspaces and loaded modules, bytes */
    struct quantity tdp;           /* W */
    struct quantity price;         /* $/h, optional */
    struct hw_gemm gemm[DTYPE_COUNT]; /* peak unset: this GPU cannot multiply in this format */
    double
        host_link_Bps;   /* to or from host memory: hw_derive puts the node's pcie_bandwidth here */
    double host_image_s; /* an image by all cores of a host, likewise; 0: unknown */
    /* Optional. The numbers above come from short measurements of single kernels; these are the
     * shares of them that hours of training reach. Default 1. A stack profile (scenario/stack.h)
     * may replace them. */
    struct quantity gemm_sustained;       /* share of the GEMM rates: clocks at the power limit */
    struct quantity pointwise_efficiency; /* share of the streaming rate that softmax, norm,
                                             elementwise, embedding and loss kernels reach: unlike
                                             copies, they are many and not all bytes count */
    struct quantity norm_row_time; /* s that a block of PyTorch's kernel for the gradients of a
                                      layer norm's weight and bias takes for a row
                                      (kernel/kernel.h). Unset: bytes alone count */
    struct quantity
        accumulate_exposed; /* of what a GEMM moves because it adds to its result, the share of time
                               that is not hidden (kernel/kernel.h). Default 0 */
    struct quantity conv_efficiency; /* share of the GEMM rates that cuDNN's convolutions reach */
    struct quantity
        overlap_start; /* s that a kernel takes longer if a collective is resident when it starts:
                          its blocks are placed between those of NCCL. Default 0 */
    struct quantity overlap_traffic; /* how much longer kernels take beside collectives that move,
                                        for the share of hbm_bandwidth that these take: their bytes
                                        pass through L2 as operands do. 0.5: beside collectives that
                                        take a fifth, a tenth longer. Default 0 */
    struct quantity
        step_pause; /* s that the GPU has nothing to do between two steps: the training loop reads
                       the loss (loss.item() waits for the whole step), computes metrics, logs and
                       takes a batch from the data loader. Unset: it does not wait for the GPU */
    /* Optional, default 0: host time, seconds, of a call for a segment of PyTorch's allocator. */
    struct quantity cuda_malloc, cuda_free;
    struct hw_gpu_power power;
};

enum hw_fabric { HW_NVSWITCH, HW_NVLINK_MESH, HW_PCIE };
extern const char *const hw_fabric_names[]; /* "nvswitch", "nvlink_mesh", "pcie", NULL */

struct hw_node {
    const char *name;
    const char *extends;  /* path of the node file that it extends, or NULL */
    const char *gpu_path; /* path of the GPU file */
    struct quantity gpus; /* GPUs in the node: of its network, what NVLink joins */
    struct quantity
        hosts;  /* machines that these are in, as many in each: the trays of a rack; optional, 1 */
    int fabric; /* enum hw_fabric */
    struct quantity gpu_bandwidth; /* B/s a GPU can send to its peers, one direction, datasheet */
    struct quantity nvlink_bridge; /* B/s of the NVLink bridge that joins GPUs 0 and 1, 2 and 3, ...
                                      of HW_PCIE, one direction, datasheet; optional */
    struct quantity nics;          /* number of NICs */
    struct quantity nic_bandwidth; /* B/s of one NIC, one direction */
    struct quantity pcie_bandwidth; /* B/s GPU <-> host, one direction */
    struct quantity host_memory;    /* bytes, of all its hosts; optional */
    struct quantity
        host_bandwidth; /* B/s of host memory, all sockets, as streaming loops reach it; optional */
    struct quantity
        image_time; /* s in which all cores together load, decode and crop one image; optional */
    /* What NCCL reaches and costs inside the node. */
    struct quantity nccl_efficiency;  /* share of gpu_bandwidth that ring busbw reaches, fraction */
    struct quantity nccl_hop_latency; /* s of one ring step inside the node, Simple protocol */
    struct quantity nccl_base_latency; /* s of a collective with the Simple protocol, once */
    struct quantity
        nccl_channels; /* thread blocks (= SMs) that a collective occupies on each GPU */
    struct quantity nccl_link_latency; /* s of a step inside the node by LL and LL128, more than
                                          NCCL's own table has; optional, default 0 */
    struct quantity nccl_ring_tail; /* ring in a node, Simple: what its end takes that no other step
                                       hides, in steps; optional, default 0 */
    struct quantity nccl_bytes;     /* HBM that NCCL takes for one communicator, bytes */
    /* Only where an NVSwitch can reduce (NVLink SHARP); all or none. */
    struct quantity nvls_efficiency;   /* share of gpu_bandwidth at which the switch takes a step of
                                          chunks, fraction */
    struct quantity nvls_latency;      /* s of a collective by the switch, once */
    struct quantity nvls_step_latency; /* s of a step, whatever its chunks: blocks of all GPUs wait
                                          for each other */
    /* Optional (hw/power.h). */
    struct quantity host_power; /* W of the node without GPUs and NICs */
    struct quantity nic_power;  /* W of a NIC */
};

/* Whether a bridge joins two GPUs of a node, by their numbers in it. */
static inline bool hw_bridged(const struct hw_node *node, int a, int b)
{
    return quantity_is_set(node->nvlink_bridge) && a != b && a / 2 == b / 2;
}

/* Protocols that the network plugin leaves to collectives between nodes. */
enum hw_protocols {
    HW_PROTOCOLS_ALL,
    HW_PROTOCOLS_NO_LL,
    HW_PROTOCOLS_NO_LL128,
    HW_PROTOCOLS_SIMPLE
};
extern const char *const hw_protocols_names[]; /* "all", "no_ll", "no_ll128", "simple", NULL */

/* What carries NCCL between nodes: its own InfiniBand and sockets, or aws-ofi-nccl, which states a
 * latency of its network to NCCL and, on p5, p5en and p6, says which algorithm to take
 * (coll/tuner_aws.c). */
enum hw_plugin {
    HW_PLUGIN_NONE,
    HW_PLUGIN_P3DN,
    HW_PLUGIN_P4D,
    HW_PLUGIN_P5,
    HW_PLUGIN_P5EN,
    HW_PLUGIN_P6
};
extern const char *const hw_plugin_names[]; /* "none", "aws_p3dn", ..., NULL */

/* What a ring (Simple) has under way to another node: two chunks, or one that the next waits for
 * (coll/ring.c). */
enum hw_flow_control { HW_SLIDING_WINDOW, HW_STOP_AND_WAIT };
extern const char *const hw_flow_control_names[]; /* as above, NULL at the end */

/* NCCL_CTA_POLICY, of NCCL 2.28 and later: zero lets copy engines do what they can
 * (coll/copy_engine.c). Registered buffers, which it needs, are taken to be there. */
enum hw_cta_policy { HW_CTA_DEFAULT, HW_CTA_ZERO };
extern const char *const hw_cta_policy_names[]; /* "default", "zero", NULL */

/* NCCL 2.30, 2.29, ... 2.4, the newest first: the choice where a file says nothing. */
enum { HW_NCCL_NEWEST = 30, HW_NCCL_OLDEST = 4 };
extern const char
    *const hw_nccl_versions[HW_NCCL_NEWEST - HW_NCCL_OLDEST + 2]; /* "2.30", ..., NULL */

struct hw_cluster {
    const char *name;
    const char *extends; /* path of the cluster file that it extends, or NULL */
    const char *node_path;
    struct quantity nodes;            /* how many there are at most */
    struct quantity oversubscription; /* leaf uplinks : 1 = full bisection, 2 = half */
    struct quantity
        nccl_efficiency; /* share of the NICs' bandwidth that ring busbw reaches, fraction */
    struct quantity nccl_net_latency; /* s of an inter-node hop, more than NCCL's own table has for
                                         the network */
    /* Optional. */
    struct quantity
        nccl_ring_post_latency; /* s that posts add to an inter-node hop of a ring whose message
                                   fills many channels; c of them add 1 - 1/c of it; default 0 */
    struct quantity nccl_tree_post_latency; /* the same of a tree's */
    struct quantity nccl_credit_latency;    /* s until a place in a ring's buffer (Simple) is free
                                               again; default: a hop of one channel */
    struct quantity nccl_channels; /* thread blocks (= SMs) of a collective across nodes; default:
                                      coll_search() */
    struct quantity
        nccl_channel_bandwidth; /* B/s of busbw that each of them carries; default: no bound */
    struct quantity
        nccl_staging_bandwidth;        /* B/s that one process copies through host memory, sent and
                                          received together; default: no copy (GPUDirect) */
    struct quantity nvls_tree_latency; /* s of a level of NVLSTree; default: no NVLSTree */
    struct quantity nccl_collnet_efficiency; /* share of the NICs at which switches add up nodes;
                                                default: no CollNet */
    int nccl_protocols;                      /* enum hw_protocols; default all */
    int nccl_plugin;                         /* enum hw_plugin; default none */
    int nccl_version;                        /* of hw_nccl_versions; default the newest */
    int nccl_flow_control;                   /* enum hw_flow_control; default HW_SLIDING_WINDOW */
    int nccl_cta_policy;                     /* enum hw_cta_policy; default HW_CTA_DEFAULT */
    struct hw_network network;               /* optional; kind HW_POOLED when it is not given */
    /* Variation of this kind of cluster, all optional (0 = none). */
    struct quantity gpu_speed_spread; /* persistent, per GPU: relative standard deviation of the
                                         speed of kernels at the power limit */
    struct quantity gpu_speed_spread_below; /* the same of compute below it */
    struct quantity kernel_jitter;          /* transient, per kernel: log-standard deviation */
    struct quantity network_jitter; /* transient, of one link between nodes in one collective:
                                       log-standard deviation */
    struct quantity host_jitter; /* log-standard deviation of a host burst of 1 ms or less; of more,
                                  * over the root of its ms */
    struct quantity straggler_share,
        straggler_slowdown; /* persistent: hosts that are slow; how much longer kernels
                               take there, fraction */
    /* Optional (hw/power.h). */
    struct quantity switch_port_power; /* W of a port of a switch, with its transceiver */
    struct quantity pue;               /* power of the building / power of its computers */
};

/* A cluster with its node and GPU, all loaded. */
struct hw {
    struct hw_gpu gpu;
    struct hw_node node;
    struct hw_cluster cluster;
};

struct config_table;
extern const struct config_table hw_gpu_table, hw_node_table, hw_cluster_table;

/* Load a cluster file and the node and GPU files that it names. Also checks what the tables cannot:
 * at least one GEMM peak, NICs where there is more than one node. */
enum status hw_load(
    struct hw *out, const char *cluster_path, struct arena *arena, struct diag *diag);
enum status hw_load_gpu(
    struct hw_gpu *out, const char *path, struct arena *arena, struct diag *diag);

/* Sets the members that follow from others. hw_load calls it; call it again after changing a
 * number. */
void hw_derive(struct hw *hw);

struct hw_sources;
/* Every number of the cluster, its node and its GPU, one a line: key, value with unit, standard
 * error, kind and source; if a file extends another, also where the number stands. A cluster or
 * node without a name is left out, so that a GPU or node can be printed without them. */
void hw_print(FILE *out, const struct hw *hw, const struct hw_sources *sources);
const char *hw_kind_name(enum quantity_kind kind); /* "datasheet" ..., "unset" */

/* A sourced number as files have it: {value: 0.93, kind: fitted, std_error: 0.015, source: "..."}.
 */
void hw_write_quantity(FILE *out, struct quantity q, enum dimension dimension);

/* The node as a file that hw_load_node_from reads back, values to 12 digits; optional numbers that
 * are unset are left out. */
void hw_write_node(FILE *out, const struct hw_node *node);

/* Writes the file at path, with its comments, updated to *now, which was loaded from it and then
 * changed: sourced numbers, the name, and the files that it names. table: hw_gpu_table,
 * hw_node_table or hw_cluster_table, the type of *now. A number that only *now has is added; one
 * that only the file has stays. */
enum status hw_write_changed(FILE *out, const char *path, const struct config_table *table,
    const void *now, struct diag *diag);

/* Leaves the rates that short measurements of single kernels find: unsets those that only training
 * shows. */
static inline void hw_clear_training_rates(struct hw_gpu *gpu)
{
    gpu->gemm_sustained = gpu->pointwise_efficiency = gpu->conv_efficiency = (struct quantity){0};
}

/* 27 of NCCL 2.27. */
static inline int hw_nccl_minor(const struct hw *hw)
{
    return HW_NCCL_NEWEST - hw->cluster.nccl_version;
}
static inline int hw_gpus_per_node(const struct hw *hw)
{
    return (int)hw->node.gpus.value;
}
/* Ranks on the first node of a job of this many GPUs. */
static inline int hw_ranks_of_node(const struct hw *hw, int gpus)
{
    return gpus < hw_gpus_per_node(hw) ? gpus : hw_gpus_per_node(hw);
}

/* A host has an operating system, CPUs and their memory. It fails, is slow or is replaced as one; a
 * node of several, a rack, does not. */
static inline int hw_hosts_per_node(const struct hw *hw)
{
    return quantity_is_set(hw->node.hosts) ? (int)hw->node.hosts.value : 1;
}
static inline int hw_gpus_per_host(const struct hw *hw)
{
    return hw_gpus_per_node(hw) / hw_hosts_per_node(hw);
}
/* Hosts that a job of this many GPUs is on, and its ranks on the first. */
static inline int64_t hw_hosts(const struct hw *hw, int64_t gpus)
{
    return (gpus + hw_gpus_per_host(hw) - 1) / hw_gpus_per_host(hw);
}
static inline int hw_ranks_of_host(const struct hw *hw, int gpus)
{
    return gpus < hw_gpus_per_host(hw) ? gpus : hw_gpus_per_host(hw);
}

/* Whether what a log or trace calls its GPU is this one's model: "NVIDIA H100 80GB HBM3" and
 * H100-SXM5-80GB. */
bool hw_same_gpu(const char *said, const struct hw_gpu *gpu);

#endif
