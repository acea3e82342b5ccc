/* Links that two GPUs of a node have for themselves: of a mesh of NVLinks, and bridges between PCIe
 * cards. */
#include "fabric/fabric.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "switches.h"

#include <string.h>

/* Four GPUs a node, 90 GB/s each: 30 to each other one. */
static struct hw node_of_four(int fabric)
{
    struct hw hw = test_hw();
    hw.node.gpus = hw.node.nics = assumed(4);
    hw.node.gpu_bandwidth.value = 90e9;
    hw.node.fabric = fabric;
    return hw;
}

static double weight_of(const struct fixture *f, int link)
{
    for (int u = 0; u < f->n_weights; u++)
        if (f->weights[u].link == link)
            return f->weights[u].weight;
    return 0;
}

/* The rate that the links of what was asked for last allow. */
static double rate(const struct fixture *f)
{
    double rate = HUGE_VAL;
    for (int u = 0; u < f->n_weights; u++)
        rate = fmin(rate, f->fabric.capacity_Bps[f->weights[u].link] / f->weights[u].weight);
    return rate;
}

static double send(struct fixture *f, int from, int to)
{
    fabric_load_message(&f->fabric, (struct coll_group){from, 1, 1}, from, to, 0);
    f->n_weights = fabric_loaded(f->weights, &f->fabric);
    return rate(f);
}

static void collective(struct fixture *f, enum coll_kind kind, struct coll_group group)
{
    struct hw bridge;
    const struct hw *seen = coll_hw_of(&bridge, group, &f->hw);
    struct coll_cost cost =
        coll_choose(kind, 1e9, coll_shape(group, f->fabric.gpus), seen, COLL_FREE);
    fabric_load_collective(&f->fabric, group, &cost, 0);
    f->n_weights = fabric_loaded(f->weights, &f->fabric);
}

static void messages_of_a_mesh_take_the_links_of_their_pair(void **state)
{
    (void)state;
    struct fixture f;
    struct hw hw = node_of_four(HW_NVLINK_MESH);
    build(&f, &hw, 8, NULL);
    assert_near(send(&f, 5, 6), 30e9, 1);
    assert_int_equal(f.n_weights, 2);
    assert_near(weight_of(&f, 5), 1, 0);
    assert_near(weight_of(&f, fabric_pair_link(&f.fabric, 5, 6)), 1, 0);
    assert_int_equal(fabric_node_of(&f.fabric, fabric_pair_link(&f.fabric, 5, 6)), 1);
    assert_int_equal(
        fabric_link_bound(&f.fabric, fabric_pair_link(&f.fabric, 5, 6)), COLL_BOUND_NVLINK);
    assert_near(send(&f, 3, 4), 10e9, 1); /* its NIC */
    arena_release(&f.arena);
    hw.node.fabric = HW_NVSWITCH;
    build(&f, &hw, 8, NULL);
    assert_near(send(&f, 5, 6), 90e9, 1);
    assert_int_equal(f.n_weights, 1);
    arena_release(&f.arena);
}

/* What leaves a GPU is spread over the members of its node, but of a send_recv, which goes to the
 * next. */
static void groups_of_a_mesh_load_the_pairs_among_them(void **state)
{
    (void)state;
    struct fixture f;
    struct hw hw = node_of_four(HW_NVLINK_MESH);
    build(&f, &hw, 4, NULL);
    static const enum coll_kind kinds[] = {
        COLL_ALL_REDUCE, COLL_ALL_GATHER, COLL_BROADCAST, COLL_ALL_TO_ALL};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (int size = 2; size <= 4; size++) {
            collective(&f, kinds[k], (struct coll_group){0, 1, size});
            for (int from = 0; from < size; from++)
                for (int to = 0; to < 4; to++)
                    assert_near(weight_of(&f, fabric_pair_link(&f.fabric, from, to)),
                        to < size && to != from ? 1. / (size - 1) : 0, 1e-12);
            assert_near(rate(&f), (size - 1) * 30e9, 1);
        }
    collective(&f, COLL_SEND_RECV, (struct coll_group){0, 1, 4});
    assert_int_equal(f.n_weights, 8);
    for (int from = 0; from < 4; from++)
        assert_near(weight_of(&f, fabric_pair_link(&f.fabric, from, (from + 1) % 4)), 1, 0);
    assert_near(rate(&f), 30e9, 1);
    arena_release(&f.arena);
}

/* Half of the NVLinks of GPU 1 leave half of them to each of the others. */
static void a_degraded_gpu_has_less_to_each_other(void **state)
{
    (void)state;
    struct fixture f;
    struct hw hw = node_of_four(HW_NVLINK_MESH);
    build(&f, &hw, 4, "gpu1.nvlink=50 %");
    assert_near(send(&f, 1, 2), 15e9, 1);
    assert_near(send(&f, 2, 1), 30e9, 1);
    arena_release(&f.arena);
}

/* GPUs 2 and 3 send over their bridge and load no PCIe; a ring of four loads all PCIe and no
 * bridge. */
static void bridges_carry_what_stays_between_two(void **state)
{
    (void)state;
    struct fixture f;
    struct hw hw = node_of_four(HW_PCIE);
    hw.node.nvlink_bridge = assumed(300e9);
    build(&f, &hw, 8, NULL);
    double bridge_Bps = coll_pair_Bps(&hw, 2, 3);
    assert_true(bridge_Bps > 200e9 && bridge_Bps < 300e9);
    assert_near(send(&f, 6, 7), bridge_Bps, 1);
    assert_int_equal(f.n_weights, 1);
    assert_near(send(&f, 1, 2), 90e9, 1);
    collective(&f, COLL_ALL_REDUCE, (struct coll_group){2, 1, 2});
    assert_int_equal(f.n_weights, 2);
    assert_near(rate(&f), bridge_Bps, 1);
    collective(&f, COLL_ALL_REDUCE, (struct coll_group){0, 1, 4});
    assert_int_equal(f.n_weights, 4);
    assert_near(rate(&f), 90e9, 1);
    assert_int_equal(fabric_way(&f.fabric, 0, 1), FABRIC_WAY_BRIDGE);
    assert_int_equal(fabric_way(&f.fabric, 1, 2), FABRIC_WAY_NODE);
    assert_int_equal(fabric_way(&f.fabric, 3, 4), FABRIC_WAY_NETWORK);
    arena_release(&f.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_of_a_mesh_take_the_links_of_their_pair),
        cmocka_unit_test(groups_of_a_mesh_load_the_pairs_among_them),
        cmocka_unit_test(a_degraded_gpu_has_less_to_each_other),
        cmocka_unit_test(bridges_carry_what_stays_between_two),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
