/* The tuner of aws-ofi-nccl: regions of ranks and bytes, each with an algorithm and a protocol; the
 * first that covers a collective is taken. Only on three nodes or more of 8 ranks. An upper bound
 * is a polygon; it is interpolated in the logarithms of both, and beyond its ends taken as at its
 * ends (assumed).
 *
 * Source: aws/aws-ofi-nccl src/tuner/nccl_ofi_regions.cpp and src/platform-aws.cpp @2daf7d3,
 * restated from notes that give most vertices. Left out: p6's pocket of Ring LL128 from 18 to 134
 * MB, p6's all_gather and reduce_scatter (no vertices at hand); there NCCL's own rule decides. */
#include "coll/tuner.h"

#include "coll/nccl.h"

#include <math.h>

#define US 1e-6
#define KIB 1024.
#define MB 1e6
#define GB 1e9

enum { MOST_VERTICES = 7 };
static const struct region {
    int plugin;
    enum coll_kind kind;
    enum coll_algorithm algorithm;
    enum coll_protocol protocol;
    double from_ranks; /* none below */
    struct vertex {
        double ranks, bytes;
    } most[MOST_VERTICES]; /* none: no bound */
} regions[] = {
    {HW_PLUGIN_P5, COLL_ALL_REDUCE, COLL_TREE, COLL_LL128, 0,
        {{32, 37.7 * MB}, {64, 117 * MB}, {128, 302 * MB}, {256, 302 * MB}, {512, 335 * MB},
            {1024, 537 * MB}, {2048, 403 * MB}}},
    {HW_PLUGIN_P5, COLL_ALL_REDUCE, COLL_NVLS_TREE, COLL_SIMPLE, 160, {{0, 0}}},
    {HW_PLUGIN_P5, COLL_ALL_REDUCE, COLL_RING, COLL_LL128, 0,
        {{32, 1.6 * GB}, {64, 2.1 * GB}, {128, 2.1 * GB}}},
    {HW_PLUGIN_P5, COLL_ALL_REDUCE, COLL_NVLS_TREE, COLL_SIMPLE, 128, {{128, 6.4 * GB}}},
    {HW_PLUGIN_P5, COLL_ALL_REDUCE, COLL_RING, COLL_SIMPLE, 0, {{0, 0}}},
    {HW_PLUGIN_P5EN, COLL_ALL_REDUCE, COLL_TREE, COLL_LL, 0, {{32, 192 * KIB}}},
    {HW_PLUGIN_P5EN, COLL_ALL_REDUCE, COLL_TREE, COLL_LL128, 0,
        {{127, 129.5 * MB}, {1024, 218 * MB}}},
    {HW_PLUGIN_P5EN, COLL_ALL_REDUCE, COLL_RING, COLL_LL128, 0,
        {{32, 294 * MB}, {64, 589 * MB}, {128, 549 * MB}}},
    {HW_PLUGIN_P5EN, COLL_ALL_REDUCE, COLL_NVLS_TREE, COLL_SIMPLE, 0,
        {{32, 510 * MB}, {256, 7.5 * GB}, {448, 17 * GB}}},
    {HW_PLUGIN_P5EN, COLL_ALL_REDUCE, COLL_RING, COLL_SIMPLE, 0, {{0, 0}}},
    {HW_PLUGIN_P5EN, COLL_ALL_GATHER, COLL_RING, COLL_LL, 0,
        {{128, 4.7 * MB}, {384, 13.6 * MB}, {1024, 33.6 * MB}}},
    {HW_PLUGIN_P5EN, COLL_ALL_GATHER, COLL_RING, COLL_LL128, 0,
        {{32, 495 * MB}, {64, 956 * MB}, {384, 7.2 * GB}}},
    {HW_PLUGIN_P5EN, COLL_ALL_GATHER, COLL_RING, COLL_SIMPLE, 0, {{0, 0}}},
    {HW_PLUGIN_P5EN, COLL_REDUCE_SCATTER, COLL_RING, COLL_LL, 0,
        {{128, 4.7 * MB}, {256, 7.3 * MB}}},
    {HW_PLUGIN_P5EN, COLL_REDUCE_SCATTER, COLL_RING, COLL_LL128, 0,
        {{32, 589 * MB}, {128, 2.4 * GB}, {256, 7.2 * GB}}},
    {HW_PLUGIN_P5EN, COLL_REDUCE_SCATTER, COLL_RING, COLL_SIMPLE, 0, {{0, 0}}},
    {HW_PLUGIN_P6, COLL_ALL_REDUCE, COLL_TREE, COLL_LL, 0, {{32, 384 * KIB}}},
    {HW_PLUGIN_P6, COLL_ALL_REDUCE, COLL_TREE, COLL_LL128, 0,
        {{32, 18 * MB}, {64, 40 * MB}, {128, 57 * MB}, {256, 73 * MB}, {1024, 97 * MB}}},
    {HW_PLUGIN_P6, COLL_ALL_REDUCE, COLL_NVLS_TREE, COLL_SIMPLE, 0,
        {{32, 435 * MB}, {64, 1.07 * GB}, {512, 10.7 * GB}}},
    {HW_PLUGIN_P6, COLL_ALL_REDUCE, COLL_RING, COLL_SIMPLE, 0, {{0, 0}}},
};

static double bound(const struct region *region, double ranks)
{
    const struct vertex *v = region->most;
    if (v->ranks == 0)
        return HUGE_VAL;
    int last = 0;
    while (last + 1 < MOST_VERTICES && v[last + 1].ranks > 0)
        last++;
    if (ranks <= v[0].ranks || ranks >= v[last].ranks)
        return ranks <= v[0].ranks ? v[0].bytes : v[last].bytes;
    int i = 0;
    while (ranks > v[i + 1].ranks)
        i++;
    double along = log(ranks / v[i].ranks) / log(v[i + 1].ranks / v[i].ranks);
    return v[i].bytes * pow(v[i + 1].bytes / v[i].bytes, along);
}

bool nccl_aws_choice(struct coll_force *out, const struct coll_query *query)
{
    static const int fewest_nodes = 3, per_node = 8;
    if (query->shape.nodes < fewest_nodes || query->shape.per_node != per_node)
        return false;
    for (size_t i = 0; i < sizeof regions / sizeof *regions; i++) {
        const struct region *region = &regions[i];
        if (region->plugin != query->hw->cluster.nccl_plugin || region->kind != query->kind ||
            query->shape.ranks < region->from_ranks ||
            query->bytes > bound(region, query->shape.ranks))
            continue;
        *out = (struct coll_force){(int)region->algorithm, (int)region->protocol};
        return true;
    }
    return false;
}

double nccl_plugin_latency_s(const struct hw *hw)
{
    static const double stated_us[] = {[HW_PLUGIN_NONE] = 0,
        [HW_PLUGIN_P3DN] = 150,
        [HW_PLUGIN_P4D] = 75,
        [HW_PLUGIN_P5] = 75,
        [HW_PLUGIN_P5EN] = 35,
        [HW_PLUGIN_P6] = 35};
    return stated_us[hw->cluster.nccl_plugin] * US;
}
