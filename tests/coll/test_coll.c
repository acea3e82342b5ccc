#include "coll/coll.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

/* A cluster in round numbers: 8 GPUs a node, 100 GB/s a GPU inside (all reached), 8 NICs of 10 GB/s, hops of 2 us
 * inside and 10 us between nodes, 5 us base. */
static struct hw test_hw(void)
{
    struct hw hw = {0};
    hw.node.gpus.value = hw.node.nics.value = 8;
    hw.node.gpu_bandwidth.value = 100e9;
    hw.node.nic_bandwidth.value = 10e9;
    hw.node.nccl_efficiency.value = hw.cluster.nccl_efficiency.value = 1;
    hw.node.nccl_hop_latency.value = 2e-6;
    hw.node.nccl_base_latency.value = 5e-6;
    hw.node.nccl_channels.value = 24;
    hw.cluster.nccl_hop_latency.value = 10e-6;
    hw.cluster.oversubscription.value = 1;
    hw.cluster.nodes.value = 64;
    return hw;
}

static void near(double got, double want)
{
    if (fabs(got - want) > 1e-12 * fabs(want))
        fail_msg("got %.17g, want %.17g", got, want);
}

static void groups_lie_on_nodes(void **state)
{
    (void)state;
    struct coll_shape world = coll_shape((struct coll_group){0, 1, 64}, 8);
    assert_int_equal(world.nodes, 8);
    assert_int_equal(world.per_node, 8);
    struct coll_shape replicas = coll_shape((struct coll_group){3, 8, 16}, 8); /* one rank of each node */
    assert_int_equal(replicas.nodes, 16);
    assert_int_equal(replicas.per_node, 1);
    struct coll_shape part = coll_shape((struct coll_group){0, 1, 4}, 8);
    assert_int_equal(part.nodes, 1);
    assert_int_equal(part.per_node, 4);
    struct coll_shape every_fourth = coll_shape((struct coll_group){0, 4, 4}, 8); /* two of each of two nodes */
    assert_int_equal(every_fourth.nodes, 2);
    assert_int_equal(every_fourth.per_node, 2);
}

/* One node: 7 hops of 2 us + 5 us = 19 us; 7/8 of 8 GB at 100 GB/s = 70 ms. */
static void all_gather_in_a_node(void **state)
{
    (void)state;
    struct hw hw = test_hw();
    struct coll_cost cost =
        coll_choose(COLL_ALL_GATHER, 8e9, coll_shape((struct coll_group){0, 1, 8}, 8), &hw, COLL_FREE);
    near(cost.latency_s, 19e-6);
    near(cost.bus_bytes, 7e9);
    near(cost.node_out_factor, 0);
    near(coll_alone_s(cost), 19e-6 + 70e-3);
}

/* 64 ranks on 8 nodes: 63 hops, 7 between nodes: 5 + 56 x 2 + 7 x 10 = 187 us; the node's 80 GB/s of NICs are less than
 * NVLink's 100: 63/64 of 64 GB / 80 GB/s. An all-reduce takes both twice (but the base). */
static void rings_across_nodes(void **state)
{
    (void)state;
    struct hw hw = test_hw();
    struct coll_shape shape = coll_shape((struct coll_group){0, 1, 64}, 8);
    struct coll_cost scatter = coll_cost(COLL_REDUCE_SCATTER, COLL_RING, 64e9, shape, &hw);
    near(scatter.latency_s, 187e-6);
    near(coll_alone_s(scatter), 187e-6 + 63e9 / 80e9);
    struct coll_cost reduce = coll_cost(COLL_ALL_REDUCE, COLL_RING, 64e9, shape, &hw);
    near(reduce.latency_s, 5e-6 + 2 * 182e-6);
    near(reduce.bus_bytes, 2 * 63e9);
}

/* NCCL's latency of a tree: base + 2 ((p - 1) inside + log2 N between) = 5 + 2 (7 x 2 + 3 x 10) = 93 us on 8 nodes.
 * Small messages go by tree, large ones by ring: NCCL's rule is the smaller time. */
static void small_all_reduces_take_the_tree(void **state)
{
    (void)state;
    struct hw hw = test_hw();
    struct coll_shape shape = coll_shape((struct coll_group){0, 1, 64}, 8);
    struct coll_cost small = coll_choose(COLL_ALL_REDUCE, 1024, shape, &hw, COLL_FREE);
    assert_int_equal(small.algorithm, COLL_TREE);
    near(small.latency_s, 93e-6);
    assert_int_equal(coll_choose(COLL_ALL_REDUCE, 1e9, shape, &hw, COLL_FREE).algorithm, COLL_RING);
    assert_int_equal(coll_choose(COLL_ALL_GATHER, 1024, shape, &hw, COLL_FREE).algorithm, COLL_RING);
}

/* Two nodes are special: a tree sends half of what a ring sends over the network (nccl#946). */
static void a_tree_on_two_nodes_halves_the_network_traffic(void **state)
{
    (void)state;
    struct hw hw = test_hw();
    struct coll_shape shape = coll_shape((struct coll_group){0, 1, 16}, 8);
    struct coll_cost tree = coll_cost(COLL_ALL_REDUCE, COLL_TREE, 16e9, shape, &hw);
    struct coll_cost ring = coll_cost(COLL_ALL_REDUCE, COLL_RING, 16e9, shape, &hw);
    near(ring.bus_bytes * ring.node_out_factor, 2 * 15e9);
    near(tree.bus_bytes * tree.node_out_factor, 16e9);
}

/* A group with one rank a node has one of eight NICs near: 10 GB/s. */
static void a_lone_rank_reaches_its_own_nic(void **state)
{
    (void)state;
    struct hw hw = test_hw();
    struct coll_cost cost =
        coll_cost(COLL_ALL_GATHER, COLL_RING, 8e9, coll_shape((struct coll_group){0, 8, 8}, 8), &hw);
    near(cost.max_rate_Bps, 10e9);
    hw.node.nics.value = 4; /* four NICs for eight GPUs: the one near, of 10 GB/s, still */
    cost = coll_cost(COLL_ALL_GATHER, COLL_RING, 8e9, coll_shape((struct coll_group){0, 8, 8}, 8), &hw);
    near(cost.max_rate_Bps, 10e9);
}

static void one_rank_costs_nothing(void **state)
{
    (void)state;
    struct hw hw = test_hw();
    struct coll_cost cost =
        coll_choose(COLL_ALL_REDUCE, 1e9, coll_shape((struct coll_group){0, 1, 1}, 8), &hw, COLL_FREE);
    near(coll_alone_s(cost), 0);
    near(cost.sms, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_lie_on_nodes),
        cmocka_unit_test(all_gather_in_a_node),
        cmocka_unit_test(rings_across_nodes),
        cmocka_unit_test(small_all_reduces_take_the_tree),
        cmocka_unit_test(a_tree_on_two_nodes_halves_the_network_traffic),
        cmocka_unit_test(a_lone_rank_reaches_its_own_nic),
        cmocka_unit_test(one_rank_costs_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
