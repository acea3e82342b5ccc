/* What the devices of an XML file make as a node. */
#include "import/topology_file.h"

#include <stdlib.h>
#include <string.h>

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

/* Every GPU has a link to a switch: NVSwitch. Every GPU has links, and they join all: a mesh. Else PCI. */
static int fabric_of(const struct topology_devices *d, int least_links)
{
    int n = d->gpus.n, n_switched = 0;
    int *links = xcalloc((size_t)n * (size_t)n, sizeof *links);
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
    free(links);
    free(switched);
    return n_switched == n ? HW_NVSWITCH : joined ? HW_NVLINK_MESH : HW_PCIE;
}

static void judge_links(struct topology_dump *out, const struct topology_devices *d, struct arena *arena)
{
    int least = d->gpus.at[0].links, most = least;
    for (int i = 1; i < d->gpus.n; i++) {
        least = d->gpus.at[i].links < least ? d->gpus.at[i].links : least;
        most = d->gpus.at[i].links > most ? d->gpus.at[i].links : most;
    }
    out->fabric = fabric_of(d, least);
    out->links = out->fabric == HW_PCIE ? 0 : least;
    if (out->fabric == HW_PCIE && most > 0)
        vec_push(&out->remarks, "NVLink does not join all of the GPUs; it is left out, and rings cross PCI.");
    if (out->fabric != HW_PCIE && most > least)
        vec_push(&out->remarks, arena_printf(arena, "GPUs have %d to %d NVLinks; %d are counted.", least, most, least));
}

static void judge_gpus(struct topology_dump *out, const struct topology_devices *d)
{
    const struct topology_gpu *first = &d->gpus.at[0];
    out->gpus = d->gpus.n;
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
        vec_push(&out->remarks, "The speed of a PCI link is not known; NCCL takes it for generation 3.");
    if (out->fabric == HW_PCIE && !one_cpu)
        vec_push(&out->remarks,
            "GPUs are under several CPUs; the link between the CPUs, which rings cross, is not in gpu_bandwidth.");
}

static void judge_nics(struct topology_dump *out, const struct topology_devices *d, struct arena *arena)
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
        vec_push(&out->remarks, arena_printf(arena, "Slower NICs are left out: %d, as %s with %.4g Gb/s.", n_slower,
                                    slower->name, slower->Bps * 8e-9));
    if (narrow)
        vec_push(&out->remarks, "NCCL counts on less of the PCI link of a NIC than the NIC's rate.");
}

void topology_judge(struct topology_dump *out, const struct topology_devices *devices, struct arena *arena)
{
    judge_links(out, devices, arena);
    judge_gpus(out, devices);
    judge_nics(out, devices, arena);
}
