/* What must hold of every topology that is read: no crash, no leak, a message for every refusal,
 * and a node that any GPU file of its generation makes of it is one that hw_load_node_from takes.
 */
#ifndef FLOPCAST_TESTS_FUZZ_TOPOLOGY_DUMP_H
#define FLOPCAST_TESTS_FUZZ_TOPOLOGY_DUMP_H

#include "foreign/topology.h"

static void check_node(const struct topology_dump *dump, struct arena *arena)
{
    static const char *const archs[] = {"Volta", "Ampere", "Hopper", "Blackwell"};
    int fits = 0;
    for (size_t i = 0; i < sizeof archs / sizeof *archs; i++) {
        struct diag diag = DIAG_INIT;
        const struct hw_gpu gpu = {.name = "GPU", .arch = archs[i]};
        struct hw_node node;
        if (topology_node(&node, dump, "n", "g", &gpu, (struct source_pos){.file = "g"}, arena,
                &diag) != STATUS_OK)
            continue;
        fits++;
        BUG_IF(
            node.gpus.value < 1 || node.gpus.value > TOPOLOGY_MAX_GPUS, "%g GPUs", node.gpus.value);
        BUG_IF(!(node.gpu_bandwidth.value >= 1e8 && node.gpu_bandwidth.value < 1e12), "%g B/s",
            node.gpu_bandwidth.value);
        BUG_IF(!(node.pcie_bandwidth.value >= 1e8 && node.nic_bandwidth.value >= 1e8),
            "less than a node file takes");
        BUG_IF(node.nics.value < 0 || !node.nics.source || !node.nic_bandwidth.source, "NICs");
    }
    BUG_IF(fits == 0 && dump->sm == 0, "a matrix that no GPU fits");
}

static inline int fuzz_topology(const char *name, const uint8_t *data, size_t size)
{
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    struct topology_dump dump;
    struct input *input = input_open_text(name, (const char *)data, size);
    enum status status = topology_read(&dump, input, &arena, &diag);
    BUG_IF((status == STATUS_OK) != (diag.n_errors == 0), "status %d, %d errors", status,
        diag.n_errors);
    if (status == STATUS_OK)
        check_node(&dump, &arena);
    vec_free(&dump.remarks);
    input_close(input);
    arena_release(&arena);
    return 0;
}

#endif
