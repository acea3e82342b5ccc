/* Flow-level against chunk-level: coll/ prices a collective as latency + bytes / rate; chunks.h
 * sends every message.
 *
 * Where both claim the same thing they agree within 2 %, from 2 to 512 ranks. Rings in one node, or
 * with one rank a node, as NCCL cuts too: at every size, to rounding. Rings over whole nodes and
 * trees cut finely: where latency or bytes dominate by far.
 *
 * Where they differ:
 *
 * - A ring over N nodes of several GPUs: the last chunk crosses between nodes N times a round, one
 * more than NCCL's tuner counts.
 *
 * - A tree's pipeline must fill: as NCCL cuts it, mid sizes take up to 3 times as long. NCCL's
 * tuner corrects trees down too (to 0.5 from 128 kB to 2 MB); that it does so for this reason is a
 * guess. In a fine cut, up and down overlap: mid sizes of 2 to 16 ranks take up to 21 % less.
 *
 * - Three nodes: neither tree has a node with two children, so the busiest sends 1.5 S where the
 * flow-level mode says 2 S.
 *
 * - A tree limited by NVLink: the flow-level mode counts 2 (n - 1) / n S a GPU, the chains send 2
 * (p - 1) / p S over NVLink. */
#include "fabric/fabric.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "../near.h"
#include "chunks.h"

/* An A100 cluster in round numbers: 8 GPUs of 235 GB/s and 8 NICs of 23 GB/s a node, 3.4 and 26.7
 * us a hop. */
static struct hw test_hw(void)
{
    struct hw hw = {0};
    hw.node.gpus.value = hw.node.nics.value = 8;
    hw.node.gpu_bandwidth.value = 235e9;
    hw.node.nic_bandwidth.value = 23e9;
    hw.node.nccl_efficiency.value = hw.cluster.nccl_efficiency.value =
        hw.cluster.oversubscription.value = 1;
    hw.node.nccl_base_latency.value = 8.4e-6;
    hw.gpu.arch = "Blackwell"; /* whose tree channels carry more than these NICs */
    hw.node.fabric = HW_NVSWITCH;
    hw.node.nccl_hop_latency.value = 3.4e-6;
    hw.cluster.nccl_net_latency.value = 6.35e-6; /* twice, and NCCL's own 14 us: 26.7 */
    hw.cluster.nccl_credit_latency =
        (struct quantity){.value = 1e-12, .kind = QUANTITY_ASSUMED}; /* see chunks.h */
    hw.node.nccl_channels.value = 24;
    hw.cluster.nccl_channels = hw.node.nccl_channels;
    hw.cluster.nodes.value = 512;
    return hw;
}

struct pair {
    double flow_s, chunks_s;
};

static struct pair compare(enum coll_kind kind, enum coll_algorithm algorithm, double bytes,
    struct coll_group group, const struct hw *hw, struct chunk_options options)
{
    struct coll_cost cost;
    assert_true(coll_cost(
        &cost, kind, algorithm, COLL_SIMPLE, bytes, coll_shape(group, hw_gpus_per_node(hw)), hw));
    return (struct pair){
        coll_isolated_s(cost), chunks_collective_s(kind, algorithm, bytes, group, hw, &options)};
}

#define AGREE(p, share) assert_near((p).chunks_s, (p).flow_s, (share) * (p).flow_s)

static const struct coll_group plain_groups[] = {
    {0, 1, 2}, {4, 1, 4}, {0, 1, 8}, /* in a node */
    {3, 8, 2}, {0, 8, 3}, {0, 8, 4}, {0, 8, 7}, {0, 8, 16}, {0, 8, 64}, {5, 8, 128},
    {0, 8, 512}, /* one of each node */
};
enum { N_PLAIN = sizeof plain_groups / sizeof *plain_groups };

/* In a node a step is a hop and a chunk at the link's rate in both; between nodes, the chunk or an
 * inter-node hop and a slice, whichever is longer: equal to the rounding of picoseconds. Broadcast
 * is a pipeline in one and n - 1 half messages in the other: only its latency can agree, so few
 * bytes. */
static void rings_of_whole_chunks_agree_at_every_size(void **state)
{
    (void)state;
    struct hw hw = test_hw();
    struct chunk_options whole = chunks_as_flow(COLL_RING);
    const double sizes[] = {1e3, 1e5, 1e7, 1e9, 1e11};
    for (int g = 0; g < N_PLAIN; g++)
        for (int s = 0; s < 5; s++) {
            bool large = plain_groups[g].size > 128;
            for (int kind = COLL_ALL_REDUCE; kind <= COLL_REDUCE_SCATTER; kind++)
                if (!large || (s == 2 && kind == COLL_ALL_GATHER))
                    AGREE(compare((enum coll_kind)kind, COLL_RING, sizes[s], plain_groups[g], &hw,
                              whole),
                        1e-6);
        }
    AGREE(compare(COLL_BROADCAST, COLL_RING, 1e3, plain_groups[9], &hw, whole), 0.02);
    /* 64 GB in 512 kB a channel: the pipeline of 7 hops fills in 0.1 % of the time. */
    AGREE(compare(COLL_BROADCAST, COLL_RING, 64e9, plain_groups[2], &hw,
              chunks_as_nccl(COLL_BROADCAST)),
        0.02);
}

/* Eight ranks a node and NICs as fast as NVLink: of few bytes, exactly one hop between nodes takes
 * the place of one inside, each round: 23.3 us. Of 512 ranks' latency that is 0.7 %. Of many bytes,
 * the eighth of a hop inside that a step waits more is nothing. */
static void rings_over_nodes_cross_once_more_than_nccl_counts(void **state)
{
    (void)state;
    struct hw hw = test_hw();
    hw.node.nic_bandwidth.value = 235e9 / 8;
    const int ranks[] = {16, 64, 512};
    for (int r = 0; r < 3; r++) {
        struct coll_group group = {0, 1, ranks[r]};
        struct chunk_options whole = chunks_as_flow(COLL_RING);
        struct pair small = compare(COLL_ALL_REDUCE, COLL_RING, 1e3, group, &hw, whole);
        assert_near(small.chunks_s - small.flow_s, 2 * (26.7e-6 - 3.4e-6), 1e-8);
        if (ranks[r] == 512)
            AGREE(small, 0.02);
        AGREE(compare(COLL_ALL_REDUCE, COLL_RING, 1e9, group, &hw, whole), 0.04);
        AGREE(compare(COLL_ALL_REDUCE, COLL_RING, 1e11, group, &hw, whole), 0.001);
    }
}

/* As NCCL cuts, and with NICs slower than NVLink. */
static void rings_as_nccl_cuts_agree(void **state)
{
    (void)state;
    struct hw hw = test_hw();
    for (int nodes = 0; nodes <= 64; nodes = nodes ? nodes * 4 : 1) {
        struct coll_group group = {0, nodes ? 1 : 8, nodes ? 8 * nodes : 64};
        bool several = nodes > 1;
        struct chunk_options nccl = chunks_as_nccl(COLL_ALL_GATHER);
        struct pair small = compare(COLL_ALL_GATHER, COLL_RING, 2e3 * group.size, group, &hw, nccl);
        assert_near(
            small.chunks_s, small.flow_s + (several ? 26.7e-6 - 3.4e-6 : 0), 0.02 * small.flow_s);
        AGREE(compare(COLL_ALL_GATHER, COLL_RING, 2e8 * group.size, group, &hw, nccl), 0.02);
        for (int kilobytes = 100; kilobytes < 100000; kilobytes *= nodes == 64 ? 1000 : 4)
            if (several) {
                struct pair p = compare(
                    COLL_ALL_GATHER, COLL_RING, 1e3 * kilobytes * group.size, group, &hw, nccl);
                assert_near(p.chunks_s, p.flow_s, 0.03 * p.flow_s + 26.7e-6 - 3.4e-6);
            } else {
                AGREE(compare(COLL_ALL_GATHER, COLL_RING, 1e3 * kilobytes * group.size, group, &hw,
                          nccl),
                    1e-3);
            }
    }
}

static const struct coll_group tree_groups[] = {
    {0, 1, 2}, {0, 1, 3}, {0, 1, 8},              /* in a node */
    {0, 8, 2}, {0, 8, 4}, {0, 8, 16}, {0, 8, 64}, /* one of each node */
    {0, 1, 64}, {0, 1, 512},                      /* whole nodes */
};

static void trees_cut_finely_agree_where_one_term_dominates(void **state)
{
    (void)state;
    struct hw hw = test_hw();
    for (size_t g = 0; g < sizeof tree_groups / sizeof *tree_groups; g++)
        for (int large = 0; large < 2; large++) {
            struct chunk_options fine = chunks_as_flow(COLL_TREE);
            if (!large || tree_groups[g].size == 512)
                fine.slices =
                    large ? 600 : 50; /* enough for 26 hops (1.5 %); of few bytes, for anything */
            struct pair p =
                compare(COLL_ALL_REDUCE, COLL_TREE, large ? 2e10 : 1e3, tree_groups[g], &hw, fine);
            AGREE(p, 0.02);
        }
}

/* 64 nodes of 8, 24 channels: below 1 MB a rank's whole half is one chunk a channel, and each of 26
 * hops takes it all. */
static void trees_as_nccl_cuts_fill_their_pipeline(void **state)
{
    (void)state;
    struct hw hw = test_hw();
    struct coll_group group = {0, 1, 512};
    struct chunk_options nccl = chunks_as_nccl(COLL_ALL_REDUCE);
    AGREE(compare(COLL_ALL_REDUCE, COLL_TREE, 1e4, group, &hw, nccl), 0.02);
    struct pair middle = compare(COLL_ALL_REDUCE, COLL_TREE, 2e7, group, &hw, nccl);
    assert_true(middle.chunks_s > 1.1 * middle.flow_s && middle.chunks_s < 1.3 * middle.flow_s);
    struct pair three = compare(COLL_ALL_REDUCE, COLL_TREE, 2e10, (struct coll_group){0, 8, 3}, &hw,
        chunks_as_flow(COLL_TREE));
    assert_near(three.chunks_s, 0.75 * three.flow_s, 0.02 * three.flow_s);
}

/* A chain in each node and one way through switches that add: NICs at half their rate, so that they
 * are the limit. In between the pipeline fills where the formula adds. */
static void collnet_chains_cut_finely_agree_where_one_term_dominates(void **state)
{
    (void)state;
    struct hw hw = test_hw();
    hw.cluster.nccl_collnet_efficiency = (struct quantity){.value = 0.5, .kind = QUANTITY_ASSUMED};
    static const struct coll_group groups[] = {
        {0, 1, 16}, {0, 4, 16}, {0, 8, 4}, {0, 1, 64}, {0, 1, 256}};
    for (size_t g = 0; g < sizeof groups / sizeof *groups; g++) {
        struct chunk_options fine = chunks_as_flow(COLL_COLLNET_CHAIN);
        fine.slices = 50; /* of few bytes, for any number of hops */
        AGREE(compare(COLL_ALL_REDUCE, COLL_COLLNET_CHAIN, 1e3, groups[g], &hw, fine), 0.02);
        fine.slices = 800; /* 15 hops fill in 1.9 % of the time */
        AGREE(compare(COLL_ALL_REDUCE, COLL_COLLNET_CHAIN, 2e10, groups[g], &hw, fine), 0.02);
    }
}

/* Twice oversubscribed leaves, nodes scattered, ECMP, one NIC at half speed: what the flow-level
 * mode's weights say of a ring is what its messages do. 16 nodes of 8, 2 a leaf; 24 channels are 3
 * connections a NIC. */
static void a_contended_ring_agrees_too(void **state)
{
    (void)state;
    const struct quantity ports = {.value = 16, .kind = QUANTITY_ASSUMED},
                          spines = {.value = 8, .kind = QUANTITY_ASSUMED};
    for (int routing = HW_ADAPTIVE; routing <= HW_ECMP; routing++) {
        struct hw hw = test_hw();
        hw.cluster.network = (struct hw_network){.kind = HW_FAT_TREE,
            .routing = routing,
            .placement = HW_SCATTERED,
            .leaf_ports = ports,
            .spines = spines};
        const char *degraded[] = {NULL, "node5.nic3.out=10 %"};
        for (int d = 0; d < 2; d++) {
            struct coll_group world = {0, 1, 128};
            struct arena arena = ARENA_INIT;
            struct diag diag = DIAG_INIT;
            struct fabric fabric;
            struct degrade_events events;
            degrade_links(&events, &hw, 128, degraded[d], (struct source_pos){0}, &arena, &diag);
            assert_string_equal(diag.text, "");
            fabric_build(&fabric, &hw, 128, &events, &arena);
            struct coll_cost cost;
            assert_true(coll_cost(
                &cost, COLL_ALL_GATHER, COLL_RING, COLL_SIMPLE, 32e9, coll_shape(world, 8), &hw));
            struct link_weight *weights = ARENA_ARRAY(&arena, struct link_weight, fabric.n_links);
            double rate = cost.max_rate_Bps;
            fabric_load_collective(&fabric, world, &cost, 0);
            for (int u = fabric_loaded(weights, &fabric) - 1; u >= 0; u--)
                rate = fmin(rate, fabric.capacity_Bps[weights[u].link] / weights[u].weight);
            assert_true(rate < 0.55 * cost.max_rate_Bps);
            struct chunk_options options = chunks_as_nccl(COLL_ALL_GATHER);
            options.degraded_links = &events;
            double flow_s = cost.latency_s + cost.bus_bytes / rate;
            assert_near(chunks_collective_s(COLL_ALL_GATHER, COLL_RING, 32e9, world, &hw, &options),
                flow_s, 0.02 * flow_s);
            arena_release(&arena);
        }
    }
}

/* A message is a slice of all channels, and those across nodes are the cluster's, whatever a node
 * has inside. */
static void messages_are_cut_by_the_channels_across_nodes(void **state)
{
    (void)state;
    struct hw hw = test_hw(), like = test_hw();
    hw.cluster.nccl_channels = like.cluster.nccl_channels =
        (struct quantity){.value = 8, .kind = QUANTITY_ASSUMED};
    like.node.nccl_channels.value = 8;
    struct chunk_options options = chunks_as_nccl(COLL_ALL_REDUCE);
    static const enum coll_algorithm algorithms[] = {COLL_RING, COLL_TREE};
    for (size_t i = 0; i < sizeof algorithms / sizeof *algorithms; i++) {
        struct coll_group world = {0, 1, 32};
        assert_near(chunks_collective_s(COLL_ALL_REDUCE, algorithms[i], 1e9, world, &hw, &options),
            chunks_collective_s(COLL_ALL_REDUCE, algorithms[i], 1e9, world, &like, &options), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rings_of_whole_chunks_agree_at_every_size),
        cmocka_unit_test(rings_over_nodes_cross_once_more_than_nccl_counts),
        cmocka_unit_test(rings_as_nccl_cuts_agree),
        cmocka_unit_test(trees_cut_finely_agree_where_one_term_dominates),
        cmocka_unit_test(trees_as_nccl_cuts_fill_their_pipeline),
        cmocka_unit_test(collnet_chains_cut_finely_agree_where_one_term_dominates),
        cmocka_unit_test(a_contended_ring_agrees_too),
        cmocka_unit_test(messages_are_cut_by_the_channels_across_nodes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
