/* What ASTRA-sim takes beside the traces: its system, network, memory and group files. */
#include "exchange/chakra.h"

#include "config/config.h"

int astra_group(const struct plan *plan, int group, int instance)
{
    enum { FIRST = 1 }; /* CommunicatorGroup::set_id() asserts id > 0 */
    int number = FIRST + instance;
    for (int g = 0; g < group; g++)
        number += mesh_group_instances(&plan->groups.at[g].ranks, plan->mesh.ranks);
    return number;
}

static void write_groups(FILE *out, const struct plan *plan)
{
    const char *comma = "";
    fputs("{", out);
    for (int g = 0; g < plan->groups.n; g++) {
        const struct mesh_group *ranks = &plan->groups.at[g].ranks;
        for (int i = 0; ranks->size > 1 && i < mesh_group_instances(ranks, plan->mesh.ranks); i++, comma = ",") {
            fprintf(out, "%s\n  \"%d\": [", comma, astra_group(plan, g, i));
            for (int m = 0; m < ranks->size; m++)
                fprintf(out, "%s%d", m ? ", " : "", mesh_group_first(ranks, i) + m * ranks->stride);
            fputs("]", out);
        }
    }
    fputs("\n}\n", out);
}

/* Dimensions of the network: GPUs of a node, nodes. A job on one node has one, whatever its GPUs. */
static int dimensions(const struct plan *plan, const struct hw *hw)
{
    return plan->mesh.ranks > hw_gpus_per_node(hw) ? 2 : 1;
}

static void write_network(FILE *out, const struct plan *plan, const struct hw *hw)
{
    static const double GIB = 0x1p30; /* its GB */
    int per_node = hw_ranks_of_node(hw, plan->mesh.ranks), nodes = plan->mesh.ranks / per_node;
    bool two = dimensions(plan, hw) == 2;
    double nic_Bps = two ? coll_node_Bps(hw) / per_node : 0;
    double hop_s = 1e9 * coll_hop_s(COLL_RING, COLL_SIMPLE, 0, false, hw);
    double far_s = two ? 1e9 * coll_hop_s(COLL_RING, COLL_SIMPLE, 0, true, hw) : 0;
    fprintf(out, "# GPUs of a node, then nodes; bandwidth in GB/s of 2^30 bytes, latency in ns.\n");
    if (two)
        fprintf(out,
            "topology: [Switch, Switch]\nnpus_count: [%d, %d]\nbandwidth: [%.6f, %.6f]\nlatency: [%.3f, %.3f]\n",
            per_node, nodes, coll_gpu_Bps(hw) / GIB, nic_Bps / GIB, hop_s, far_s);
    else
        fprintf(out, "topology: [Switch]\nnpus_count: [%d]\nbandwidth: [%.6f]\nlatency: [%.3f]\n", per_node,
            coll_gpu_Bps(hw) / GIB, hop_s);
}

static void write_list(FILE *out, const char *key, int n)
{
    fprintf(out, "  \"%s\": [%s],\n", key, n == 2 ? "\"ring\", \"ring\"" : "\"ring\"");
}

/* The higher dense peak of BF16 and FP16, the precisions that all GPUs train in except FP8. */
static double peak_flops(const struct hw_gpu *gpu)
{
    double bf16 = gpu->gemm[DTYPE_BF16].peak.value;
    return bf16 > 0 ? bf16 : gpu->gemm[DTYPE_FP16].peak.value;
}

/* endpoint-delay in ns: some of ASTRA-sim's collectives assert that it is not 0. */
static void write_system(FILE *out, const struct plan *plan, const struct hw *hw)
{
    int n = dimensions(plan, hw);
    fputs("{\n  \"scheduling-policy\": \"LIFO\",\n  \"endpoint-delay\": 1,\n  \"active-chunks-per-dimension\": 1,\n"
          "  \"preferred-dataset-splits\": 1,\n",
        out);
    write_list(out, "all-reduce-implementation", n);
    write_list(out, "all-gather-implementation", n);
    write_list(out, "reduce-scatter-implementation", n);
    fprintf(out, "  \"all-to-all-implementation\": [%s],\n", n == 2 ? "\"direct\", \"direct\"" : "\"direct\"");
    fprintf(out,
        "  \"collective-optimization\": \"localBWAware\",\n  \"local-mem-bw\": %.6g,\n  \"peak-perf\": %.6g,\n"
        "  \"roofline-enabled\": 0,\n  \"boost-mode\": 0\n}\n",
        hw->gpu.hbm_bandwidth.value * 1e-9, peak_flops(&hw->gpu) * 1e-12);
}

static bool finish(FILE *out)
{
    bool ok = out && ferror(out) == 0;
    return out && fclose(out) == 0 && ok;
}

bool astra_write(
    const char *folder, const struct plan *plan, const struct hw *hw, const char **failed, char *room, size_t n)
{
    static const char *const files[] = {"comm_groups.json", "network.yml", "system.json", "memory.json"};
    for (size_t f = 0; f < sizeof files / sizeof *files; f++) {
        snprintf(room, n, "%s/%s", folder, files[f]);
        *failed = room;
        FILE *out = fopen(room, "w");
        if (out && f == 0)
            write_groups(out, plan);
        else if (out && f == 1)
            write_network(out, plan, hw);
        else if (out && f == 2)
            write_system(out, plan, hw);
        else if (out)
            fputs("{\n  \"memory-type\": \"NO_MEMORY_EXPANSION\"\n}\n", out);
        if (!finish(out))
            return false;
    }
    return true;
}
