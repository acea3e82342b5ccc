/* Private to foreign: between the two readers behind topology_read and what they say of the
 * machine. */
#ifndef FLOPCAST_FOREIGN_TOPOLOGY_FILE_H
#define FLOPCAST_FOREIGN_TOPOLOGY_FILE_H

#include "foreign/topology.h"

/* The devices of an XML file, as they stand there. */
struct topology_gpu {
    const char *busid, *device; /* device: PCI device, or NULL */
    int sm, cpu;                /* cpu: which cpu element it is under */
    double pcie_Bps;            /* of its way to the host */
    bool pcie_guessed;          /* the speed of its narrowest link is not known */
    int links;                  /* NVLinks, all together */
};

struct topology_nvlink {
    int gpu, count;
    const char *target; /* busid */
    bool to_switch;     /* the file says so */
    bool to_gpu;        /* the same; neither: an old file, the target decides */
};

struct topology_nic {
    const char *name;
    double Bps, pcie_Bps;
};

struct topology_devices {
    VEC(struct topology_gpu) gpus;
    VEC(struct topology_nvlink) nvlinks;
    VEC(struct topology_nic) nics;
};

/* The only code that sees expat. devices->gpus has at least one after STATUS_OK; the caller frees
 * the arrays. */
enum status topology_read_xml(
    struct topology_devices *devices, struct input *input, struct arena *arena, struct diag *diag);

enum status topology_read_matrix(
    struct topology_dump *out, struct input *input, struct arena *arena, struct diag *diag);

/* out->bridge_links of GPUs that NVLinks do not join all together; an error at `at` where they are
 * no pairs either. */
enum status topology_judge_bridges(struct topology_dump *out, const int *links,
    struct source_pos at, struct arena *arena, struct diag *diag);

/* Whether links join all of the GPUs; links[a * gpus + b] > 0: a reaches b. */
bool topology_joined(const int *links, int gpus);

#endif
