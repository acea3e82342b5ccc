/* NCCL's double binary tree. */
#include "coll/hops.h"
#include "coll/nccl.h"
#include "round.h"

/* The drawing in NCCL's src/graph/trees.cc: 0 over 8, 8 over 4 and 12, those over 2, 6, 10 and 13,
 * and the odd ones. The second tree is its mirror. */
static void trees_are_those_of_nccl(void **state)
{
    (void)state;
    static const int parents[] = {-1, 2, 4, 2, 8, 6, 4, 6, 0, 10, 12, 10, 8, 12};
    for (int node = 0; node < 14; node++) {
        assert_int_equal(coll_tree_parent(0, node, 14), parents[node]);
        int mirrored = coll_tree_parent(1, 13 - node, 14);
        assert_int_equal(mirrored < 0 ? -1 : 13 - mirrored, parents[node]);
    }
}

/* On three nodes or more a channel of Ampere carries 17.8 GB/s by Simple, LL128 120/128 of that and
 * 20 at most, LL 1/3.8; of Hopper 36 and 29 (NCCL's tuner: perChMaxTreeBws comes before the
 * protocol's share). */
static void channels_bound_a_tree(void **state)
{
    (void)state;
    struct hw hw = test_hw;
    hw.gpu.arch = "Ampere";
    near(nccl_tree_max_Bps(&hw, COLL_SIMPLE, false, shape_of(32, 1)), 8 * 17.8e9);
    near(nccl_tree_max_Bps(&hw, COLL_LL128, false, shape_of(32, 1)), 8 * 17.8e9 * 120 / 128);
    near(nccl_tree_max_Bps(&hw, COLL_LL, false, shape_of(32, 1)), 8 * 17.8e9 / 3.8);
    hw.gpu.arch = "Hopper";
    near(nccl_tree_max_Bps(&hw, COLL_SIMPLE, false, shape_of(32, 2)), 4 * 36e9);
    near(nccl_tree_max_Bps(&hw, COLL_LL128, false, shape_of(32, 2)), 4 * 29e9);
}

/* One root in each, all nodes below it at most ceil(log2 n) down, and four edges at most at a node:
 * a parent and two children in one tree, a parent in the other. The hops carry as much as tree.c
 * counts: of four parts a hop one. */
static void no_node_is_busy_in_both_trees(void **state)
{
    (void)state;
    enum { MOST = 130 };
    for (int n = 3, levels = 2; n <= MOST; n++, levels += n > 1 << levels) {
        int edges[MOST] = {0};
        for (int tree = 0; tree < 2; tree++)
            for (int node = 0, roots = 0; node < n; node++) {
                int depth = 0, parent = coll_tree_parent(tree, node, n);
                for (int up = parent; up >= 0 && depth <= n; up = coll_tree_parent(tree, up, n))
                    depth++;
                assert_true(parent < n && depth <= levels);
                roots += parent < 0;
                assert_true(roots <= 1 && (node < n - 1 || roots == 1));
                edges[node]++;
                if (parent >= 0)
                    edges[parent]++;
                else
                    edges[node]--;
            }
        struct coll_hop hops[COLL_MAX_HOPS(MOST)];
        double sent[MOST] = {0};
        int n_hops = coll_hops(hops, COLL_TREE, n);
        for (int h = 0; h < n_hops; h++)
            sent[hops[h].from] += hops[h].share;
        for (int node = 0; node < n; node++) {
            assert_true(edges[node] <= 4);
            near(sent[node], edges[node] / 4.);
        }
    }
}

/* Links that are not in the way leave the tuner's bounds of Hopper: on 4 nodes 36 GB/s a channel,
 * of LL 20.4 in all, in a node 141. */
static void bounds_of_trees(void **state)
{
    (void)state;
    struct hw hw = test_hw;
    hw.node.gpu_bandwidth.value = hw.node.nic_bandwidth.value = 10e12;
    struct coll_shape node = shape_of(8, 1), four = shape_of(32, 1);
    struct coll_cost cost = cost_of(COLL_ALL_REDUCE, COLL_TREE, COLL_SIMPLE, 8e9, four, &hw);
    near(cost.max_rate_Bps, 8 * 36e9);
    assert_int_equal(cost.rate_bound, COLL_BOUND_CHANNELS);
    cost = cost_of(COLL_ALL_REDUCE, COLL_TREE, COLL_LL, 8e9, four, &hw);
    near(cost.max_rate_Bps, 20.4e9);
    assert_int_equal(cost.rate_bound, COLL_BOUND_PROTOCOL);
    near(cost_of(COLL_ALL_REDUCE, COLL_TREE, COLL_LL, 8e9, node, &hw).max_rate_Bps, 141e9);
    near(cost_of(COLL_ALL_REDUCE, COLL_TREE, COLL_SIMPLE, 8e9, node, &hw).max_rate_Bps, 9.2e12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trees_are_those_of_nccl),
        cmocka_unit_test(channels_bound_a_tree),
        cmocka_unit_test(no_node_is_busy_in_both_trees),
        cmocka_unit_test(bounds_of_trees),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
