/* What a machine says about itself, as a node file: the topology that NCCL writes to
 * NCCL_TOPO_DUMP_FILE (XML), and the matrix of `nvidia-smi topo -m` as people paste it.
 *
 * XML (NVIDIA/nccl src/graph/xml.cc): GPUs with their compute capability, PCI device and NVLinks,
 * PCI links with speed and width, NICs with their rate. Bandwidths are those that NCCL itself
 * counts on (src/graph/topo.cc and topo.h): a PCI link width x speed / 80 GB/s, a NIC Mb/s / 8000
 * GB/s, an NVLink by compute capability. A GPU's way to the host is its narrowest PCI link. Unknown
 * elements and attributes are passed over; a document type declaration, hence every entity, is
 * refused.
 *
 * Matrix: the line of column names and a line for each GPU are looked for between whatever else is
 * there (prompts, mail quotes, colours, the legend). NV# is a number of links. A GPU has at most
 * TOPOLOGY_MAX_LINKS; where the links to all others are more, they lead to a switch. It does not
 * say what the GPUs are, nor the rate of NICs or PCI links.
 *
 * Ignored: CPUs and NUMA distance (GPUs under several CPUs are noted), PCI switches shared by
 * several GPUs, NIC affinity. NVLinks that join pairs of PCIe cards are bridges (nvlink_bridge of
 * the node, 1.25 times what NCCL counts, as the datasheet has it); those that join some of the GPUs
 * otherwise are refused. NICs that are slower than others (XML), or not behind a GPU's PCI switch
 * while others are (matrix), are for storage or management: they are noted and left out.
 *
 * Kinds in the node: counts are measured, the rate that a NIC states is datasheet, bandwidths by
 * NCCL's rules and what a dump does not say are assumed, each with its reason. */
#ifndef FLOPCAST_FOREIGN_TOPOLOGY_H
#define FLOPCAST_FOREIGN_TOPOLOGY_H

#include "base/vec.h"
#include "reader/input.h"
#include "hw/hw.h"

enum {
    TOPOLOGY_MAX_GPUS = 1024,
    TOPOLOGY_MAX_LINKS =
        18, /* NVLinks of a GPU: 18 on Hopper and Blackwell, fewer before (NVIDIA datasheets) */
    TOPOLOGY_MAX_BYTES = 16 << 20,  /* of a file; a dump of NCCL is some kilobytes */
    TOPOLOGY_MAX_DEPTH = 64,        /* of elements */
    TOPOLOGY_MAX_VALUE_BYTES = 1024 /* of an attribute */
};

struct topology_dump {
    const char *how;  /* "nccl topology XML", "nvidia-smi topo -m" */
    int gpus;         /* at least 1 */
    int fabric;       /* enum hw_fabric */
    int links;        /* NVLinks of a GPU, of the one with the fewest; 0 on HW_PCIE */
    int bridge_links; /* of a bridge between each two neighbours on HW_PCIE; 0: there is none */
    int sm;           /* compute capability, 90 for 9.0; 0: not said */
    const char *pci_device; /* "0x2330" of a GPU, or NULL */
    double pcie_Bps;        /* a GPU's way to the host, of the GPU with the least; 0: not said */
    int nics;
    double nic_Bps;            /* of one; 0: not said */
    VEC(const char *) remarks; /* what a reader of the node should know; sentences */
};

/* XML or matrix, as the first character says. Texts live in the arena. Free with
 * vec_free(&out->remarks), also after an error. */
enum status topology_read(
    struct topology_dump *out, struct input *input, struct arena *arena, struct diag *diag);

/* The file under topologies/gpus (without ".yaml") that the dump fits best; NULL when there is
 * none, and the caller has to know. *certain: the dump names the GPU. */
const char *topology_gpu(const struct topology_dump *dump, bool *certain);

/* The dump as a node of this GPU, whose file is at gpu_path. at: for the message when the GPU does
 * not fit the dump. Texts live in the arena or are the caller's. */
enum status topology_node(struct hw_node *out, const struct topology_dump *dump, const char *name,
    const char *gpu_path, const struct hw_gpu *gpu, struct source_pos at, struct arena *arena,
    struct diag *diag);

#endif
