/* A dump as a node: NCCL's rules for what it says, assumptions with their reason for what it
 * does not.
 *
 * Links, GPUs and NICs of an XML file are judged first (fabric, fewest links, slowest PCI path);
 * the matrix has done that itself. Then each number of a node gets its value, kind and source:
 * bandwidths by NCCL's own constants, so they are what NCCL counts on and not what a datasheet
 * says; latencies by NCCL's tuner; what a dump leaves open by the generation of the GPU.
 *
 * What is subtle: the GPU's model is certain only by its PCI device; by number of links or
 * compute capability it is a guess, which the file then says. A node of several kinds of GPUs or
 * NICs becomes one of the first kind, or of the fastest NICs, with a remark. */
#include "coll/nccl.h"
#include "foreign/topology_file.h"

#include <stdlib.h>
#include <string.h>

/* ---- what the devices of an XML file make as a node ---- */

bool topology_joined(const int *links, int gpus)
{
    bool *reached = xcalloc((size_t)gpus, sizeof *reached);
    int *queue = xcalloc((size_t)gpus, sizeof *queue), n = 0;
    reached[0] = true;
    queue[n++] = 0;
    for (int i = 0; i < n; i++)
        for (int to = 0; to < gpus; to++)
            if (links[queue[i] * gpus + to] > 0 && !reached[to]) {
                reached[to] = true;
                queue[n++] = to;
            }
    free(reached);
    free(queue);
    return n == gpus;
}

static int find_gpu(const struct topology_devices *d, const char *busid)
{
    for (int i = 0; i < d->gpus.n; i++)
        if (strcasecmp(d->gpus.at[i].busid, busid) == 0)
            return i;
    return -1;
}

/* Every GPU has a link to a switch: NVSwitch. Every GPU has links, and they join all: a mesh. Else
 * PCI. links: room for those from each GPU to each. */
static int fabric_of(const struct topology_devices *d, int least_links, int *links)
{
    int n = d->gpus.n, n_switched = 0;
    bool *switched = xcalloc((size_t)n, sizeof *switched);
    for (int i = 0; i < d->nvlinks.n; i++) {
        const struct topology_nvlink *nvlink = &d->nvlinks.at[i];
        int to = find_gpu(d, nvlink->target);
        if (to >= 0)
            links[nvlink->gpu * n + to] += nvlink->count;
        else if (nvlink->to_switch || !nvlink->to_gpu)
            switched[nvlink->gpu] = true;
    }
    for (int i = 0; i < n; i++)
        n_switched += switched[i];
    bool joined = n > 1 && least_links > 0 && topology_joined(links, n);
    free(switched);
    return n_switched == n ? HW_NVSWITCH : joined ? HW_NVLINK_MESH : HW_PCIE;
}

static enum status topology_node_judge_links(struct topology_dump *out,
    const struct topology_devices *d, struct source_pos at, struct arena *arena, struct diag *diag)
{
    int *links = ARENA_ARRAY(arena, int, d->gpus.n * d->gpus.n);
    int least = d->gpus.at[0].links, most = least;
    for (int i = 1; i < d->gpus.n; i++) {
        least = d->gpus.at[i].links < least ? d->gpus.at[i].links : least;
        most = d->gpus.at[i].links > most ? d->gpus.at[i].links : most;
    }
    out->fabric = fabric_of(d, least, links);
    out->links = out->fabric == HW_PCIE ? 0 : least;
    if (out->fabric != HW_PCIE && most > least)
        vec_push(&out->remarks,
            arena_printf(arena, "GPUs have %d to %d NVLinks; %d are counted.", least, most, least));
    return out->fabric == HW_PCIE ? topology_judge_bridges(out, links, at, arena, diag) : STATUS_OK;
}

/* The slowest PCI path stands for all, as a ring goes through every GPU. */
static void judge_gpus(struct topology_dump *out, const struct topology_devices *d)
{
    const struct topology_gpu *first = &d->gpus.at[0];
    out->sm = first->sm;
    out->pci_device = first->device;
    out->pcie_Bps = first->pcie_Bps;
    bool alike = true, one_cpu = true, guessed = first->pcie_guessed;
    for (int i = 1; i < d->gpus.n; i++) {
        const struct topology_gpu *gpu = &d->gpus.at[i];
        alike = alike && gpu->sm == first->sm;
        one_cpu = one_cpu && gpu->cpu == first->cpu;
        guessed |= gpu->pcie_guessed;
        out->pcie_Bps = gpu->pcie_Bps < out->pcie_Bps ? gpu->pcie_Bps : out->pcie_Bps;
    }
    if (!alike)
        vec_push(&out->remarks, "GPUs of several kinds; the first is taken for all.");
    if (guessed)
        vec_push(
            &out->remarks, "The speed of a PCI link is not known; NCCL takes it for generation 3.");
    if (out->fabric == HW_PCIE && !one_cpu)
        vec_push(&out->remarks, "GPUs are under several CPUs; the link between the CPUs, which "
                                "rings cross, is not in gpu_bandwidth.");
}

static void topology_node_judge_nics(
    struct topology_dump *out, const struct topology_devices *d, struct arena *arena)
{
    const struct topology_nic *slower = NULL;
    int n_slower = 0;
    bool narrow = false;
    for (int i = 0; i < d->nics.n; i++)
        out->nic_Bps = d->nics.at[i].Bps > out->nic_Bps ? d->nics.at[i].Bps : out->nic_Bps;
    for (int i = 0; i < d->nics.n; i++) {
        const struct topology_nic *nic = &d->nics.at[i];
        if (nic->Bps < out->nic_Bps) {
            slower = slower ? slower : nic;
            n_slower++;
        } else {
            out->nics++;
            narrow |= nic->pcie_Bps < nic->Bps;
        }
    }
    if (slower)
        vec_push(&out->remarks,
            arena_printf(arena, "Slower NICs are left out: %d, as %s with %.4g Gb/s.", n_slower,
                slower->name, slower->Bps * 8e-9));
    if (narrow)
        vec_push(
            &out->remarks, "NCCL counts on less of the PCI link of a NIC than the NIC's rate.");
}

static enum status topology_node_judge(struct topology_dump *out,
    const struct topology_devices *devices, struct source_pos at, struct arena *arena,
    struct diag *diag)
{
    out->gpus = devices->gpus.n;
    enum status status = topology_node_judge_links(out, devices, at, arena, diag);
    judge_gpus(out, devices);
    topology_node_judge_nics(out, devices, arena);
    return status;
}

/* NCCL's bandwidth of one NVLink in one direction by compute capability (src/graph/topo.h, 2.30.7).
 */
static const struct {
    int sm;
    double Bps;
} nvlinks[] = {
    {60, 18e9}, {70, 20e9}, {80, 20e9}, {86, 12e9}, {87, 20e9}, {90, 20.6e9}, {100, 40.1e9}};
/* A datasheet has 25 GB/s where NCCL counts 20. */
static const double of_datasheet = 1.25;

/* Nodes by generation of their GPUs: what a dump may leave open. */
static const struct family {
    const char *arch; /* as GPU files have it */
    int sm;
    int max_links;   /* NVLinks of a GPU */
    double pcie_Bps; /* x16 of the generation that its GPUs have, by NCCL's rule */
    double nic_Bps;  /* usual in nodes of the kind: 100, 200, 400 Gb/s (topologies/nodes) */
    int channels;    /* topologies/nodes has the sources */
    const char *gpu;
} families[] = {
    {"Volta", 70, 6, 12e9, 12.5e9, 12, "v100-sxm2-32gb"},
    {"Ampere", 80, 12, 24e9, 25e9, 24, "a100-sxm4-80gb"},
    {"Hopper", 90, 18, 48e9, 50e9, 24, "h100-sxm5-80gb"},
    {"Blackwell", 100, 18, 48e9, 50e9, 24, NULL},
};
enum { N_FAMILIES = sizeof families / sizeof *families };

/* PCI devices (pci-ids.ucw.cz) that have a file. */
static const struct {
    const char *device, *gpu;
} pci_devices[] = {{"0x1db1", "v100-sxm2-16gb"}, {"0x1db5", "v100-sxm2-32gb"},
    {"0x20b0", "a100-sxm4-40gb"}, {"0x20b2", "a100-sxm4-80gb"}, {"0x2330", "h100-sxm5-80gb"},
    {"0x2335", "h200-sxm-141gb"}};

enum status topology_read(
    struct topology_dump *out, struct input *input, struct arena *arena, struct diag *diag)
{
    *out = (struct topology_dump){0};
    char first = '\0';
    enum status status = input_peek(input, &first, diag);
    if (status != STATUS_OK)
        return status;
    if (first != '<')
        return topology_read_matrix(out, input, arena, diag);
    struct topology_devices found = {0};
    out->how = "nccl topology XML";
    status = topology_read_xml(&found, input, arena, diag);
    if (status == STATUS_OK)
        status = topology_node_judge(
            out, &found, (struct source_pos){.file = input_name(input)}, arena, diag);
    vec_free(&found.gpus);
    vec_free(&found.nvlinks);
    vec_free(&found.nics);
    return status;
}

const char *topology_gpu(const struct topology_dump *dump, bool *certain)
{
    *certain = true;
    for (size_t i = 0; dump->pci_device && i < sizeof pci_devices / sizeof *pci_devices; i++)
        if (strcasecmp(dump->pci_device, pci_devices[i].device) == 0)
            return pci_devices[i].gpu;
    *certain = false;
    /* Only GPUs on NVLink: those on PCI are of too many kinds to guess. */
    for (int i = 0; i < N_FAMILIES && dump->links > 0 && !dump->pci_device; i++)
        if (dump->sm > 0 ? dump->sm == families[i].sm : dump->links <= families[i].max_links)
            return families[i].gpu;
    return NULL;
}

static const struct family *family_of(const char *arch)
{
    for (int i = 0; i < N_FAMILIES; i++)
        if (strcmp(arch, families[i].arch) == 0)
            return &families[i];
    return NULL;
}

static double nvlink_Bps(int sm)
{
    double Bps = nvlinks[0].Bps;
    for (size_t i = 0; i < sizeof nvlinks / sizeof *nvlinks; i++)
        if (sm >= nvlinks[i].sm)
            Bps = nvlinks[i].Bps;
    return Bps;
}

static struct quantity quantity(double value, enum quantity_kind kind, const char *source)
{
    return (struct quantity){.value = value, .kind = kind, .source = source};
}

static struct quantity assumed(double value, const char *source)
{
    return quantity(value, QUANTITY_ASSUMED, source);
}

/* Without NVLink the GPUs' bandwidth is that of PCI. */
static void set_links(struct hw_node *out, const struct topology_dump *dump,
    const struct family *family, struct arena *arena)
{
    int sm = dump->sm > 0 ? dump->sm : family->sm;
    const char *pcie_source =
        dump->pcie_Bps > 0
            ? arena_printf(arena,
                  "%s, NCCL's rule: width x speed / 80 GB/s, narrowest link to the host", dump->how)
            : arena_printf(arena, "%s does not say it; x16 of the generation of %s, by NCCL's rule",
                  dump->how, family->arch);
    out->pcie_bandwidth =
        assumed(dump->pcie_Bps > 0 ? dump->pcie_Bps : family->pcie_Bps, pcie_source);
    if (dump->fabric == HW_PCIE)
        out->gpu_bandwidth = assumed(out->pcie_bandwidth.value,
            arena_printf(arena, "no NVLink between all GPUs: as pcie_bandwidth. %s", pcie_source));
    if (dump->bridge_links > 0)
        out->nvlink_bridge = assumed(dump->bridge_links * nvlink_Bps(sm) * of_datasheet,
            arena_printf(arena,
                "%s, NCCL's rule: %d NVLinks x %g GB/s (SM %d), and 1.25 times that on the "
                "datasheet",
                dump->how, dump->bridge_links, nvlink_Bps(sm) * 1e-9, sm));
    if (dump->fabric != HW_PCIE)
        out->gpu_bandwidth = assumed(dump->links * nvlink_Bps(sm),
            arena_printf(arena, "%s, NCCL's rule: %d NVLinks x %g GB/s (SM %d)", dump->how,
                dump->links, nvlink_Bps(sm) * 1e-9, sm));
}

static void set_nics(struct hw_node *out, const struct topology_dump *dump,
    const struct family *family, struct arena *arena)
{
    out->nics = quantity(dump->nics, QUANTITY_MEASURED, dump->how);
    out->nic_bandwidth =
        dump->nic_Bps > 0
            ? quantity(dump->nic_Bps, QUANTITY_DATASHEET,
                  arena_printf(arena,
                      "%s: the rate that the NIC states, NCCL's rule: Mb/s / 8000 GB/s", dump->how))
            : assumed(family->nic_Bps,
                  arena_printf(arena, "%s does not say it; usual in nodes of %s GPUs", dump->how,
                      family->arch));
}

/* What NCCL costs inside the node: its own tuner, until something is measured here. */
static void set_nccl(struct hw_node *out, const struct topology_dump *dump,
    const struct family *family, struct arena *arena)
{
    /* topologies/nodes: receive buffers of 8 MiB for the ring and three neighbours of trees, in
     * each channel. */
    static const double channel_bytes = 4 * 8 * 0x1p20;
    static const int pci_channels = 2;
    bool pci = dump->fabric == HW_PCIE;
    int channels = pci ? pci_channels : family->channels;
    out->nccl_efficiency = assumed(
        1, pci ? "gpu_bandwidth is what NCCL counts on; not measured here"
               : "gpu_bandwidth is what NCCL counts on. Measured rings: 129 of 120 GB/s on 8 V100, "
                 "235 of 240 on 8 A100, 365-370 of 371 on 8 H100 (topologies/nodes)");
    out->nccl_hop_latency =
        assumed(nccl_hop_s[COLL_RING][pci ? NCCL_PCI : NCCL_NVLINK][COLL_SIMPLE],
            arena_printf(arena, "NCCL's own tuner (src/graph/tuning.cc, 2.30.7): ring, Simple, %s",
                pci ? "PCI" : "NVLink"));
    out->nccl_base_latency = assumed(nccl_base_s[COLL_RING][COLL_SIMPLE],
        "NCCL's own tuner (src/graph/tuning.cc, 2.30.7): ring, Simple, once for a collective");
    out->nccl_channels =
        assumed(channels, pci ? "NCCL's least number; no log at hand" : "as in topologies/nodes");
    out->nccl_bytes = assumed(channels * channel_bytes,
        arena_printf(arena, "%d channels x 4 neighbours x 8 MiB", channels));
}

enum status topology_node(struct hw_node *out, const struct topology_dump *dump, const char *name,
    const char *gpu_path, const struct hw_gpu *gpu, struct source_pos at, struct arena *arena,
    struct diag *diag)
{
    const struct family *family = family_of(gpu->arch);
    if (!family)
        return diag_input(diag, at,
            "%s is of architecture %s; nodes of Volta to Blackwell can be described", gpu->name,
            gpu->arch);
    if (dump->sm > 0 && dump->sm / 10 != family->sm / 10)
        return diag_input(diag, at,
            "%s is of architecture %s, but the GPUs of the dump have compute capability %d.%d",
            gpu->name, gpu->arch, dump->sm / 10, dump->sm % 10);
    int links = dump->links > dump->bridge_links ? dump->links : dump->bridge_links;
    if (links > family->max_links)
        return diag_input(diag, at, "%s has at most %d NVLinks, but the GPUs of the dump have %d",
            gpu->name, family->max_links, links);
    *out = (struct hw_node){.name = name,
        .gpu_path = gpu_path,
        .gpus = quantity(dump->gpus, QUANTITY_MEASURED, dump->how),
        .fabric = dump->fabric};
    set_links(out, dump, family, arena);
    set_nics(out, dump, family, arena);
    set_nccl(out, dump, family, arena);
    return STATUS_OK;
}
