/* Groups on a part of a mesh of NVLinks, messages over the links of a pair, and pairs that a bridge
 * joins. */
#include "coll/coll.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "../near.h"
#include "../number.h"

static const struct hw mesh = {.gpu.arch = "Volta",
    .node = {.fabric = HW_NVLINK_MESH,
        .gpus = NUMBER(8),
        .nics = NUMBER(4),
        .gpu_bandwidth = NUMBER(140e9),
        .nic_bandwidth = NUMBER(100e9),
        .nccl_efficiency = NUMBER(1),
        .nccl_channels = NUMBER(12)},
    .cluster = {.nodes = NUMBER(2), .oversubscription = NUMBER(1), .nccl_efficiency = NUMBER(1)}};

/* Links of 140 GB/s spread over 7 peers, 20 each: a ring of k of 8 GPUs has (k - 1) x 20 GB/s,
 * behind a switch all 140. An all_reduce of 8 GB by k puts 2 (k - 1) / k of it on the links;
 * Simple: base and hops are 0 here. */
static void a_part_has_only_its_links(void **state)
{
    (void)state;
    struct hw hw = mesh;
    for (int k = 2; k <= 8; k++)
        for (int fabric = HW_NVSWITCH; fabric <= HW_NVLINK_MESH; fabric++) {
            struct coll_cost cost;
            hw.node.fabric = fabric;
            struct coll_shape shape = coll_shape((struct coll_group){0, 1, k}, 8);
            assert_true(coll_cost(&cost, COLL_ALL_REDUCE, COLL_RING, COLL_SIMPLE, 8e9, shape, &hw));
            double links_Bps = fabric == HW_NVLINK_MESH ? (k - 1) * 20e9 : 140e9;
            assert_near(coll_isolated_s(cost), 2. * (k - 1) / k * 8e9 / links_Bps, 1e-12);
        }
}

/* One GPU of each of two nodes needs no NVLink: 4 NICs of 100 GB/s, of which one is near. */
static void one_gpu_a_node_is_not_bound_by_it(void **state)
{
    (void)state;
    struct coll_cost cost;
    struct coll_shape shape = coll_shape((struct coll_group){0, 8, 2}, 8);
    assert_true(coll_cost(&cost, COLL_ALL_REDUCE, COLL_RING, COLL_SIMPLE, 8e9, shape, &mesh));
    assert_near(cost.max_rate_Bps, 100e9, 1e-3);
}

static struct coll_cost on(const struct hw *hw, enum coll_kind kind, int size)
{
    const struct coll_group group = {0, 1, size};
    struct hw bridge;
    return coll_choose(kind, 8e9, coll_shape(group, 8), coll_hw_of(&bridge, group, hw), COLL_FREE);
}

/* However many send to their next, a pair has 20 GB/s of links, of which NCCL's sends reach 0.85; a
 * copy engine all of it. The NICs, 100 GB/s a GPU, are faster than that. */
static void a_message_has_the_links_of_its_pair(void **state)
{
    (void)state;
    for (int k = 2; k <= 16; k *= 2) {
        assert_near(on(&mesh, COLL_SEND_RECV, k).max_rate_Bps, 0.85 * 20e9, 1);
        if (k <= 8)
            assert_near(on(&mesh, COLL_PEER_COPY, k).max_rate_Bps, 20e9, 1);
    }
    struct coll_cost far = coll_choose(
        COLL_SEND_RECV, 8e9, coll_shape((struct coll_group){0, 8, 2}, 8), &mesh, COLL_FREE);
    assert_near(far.max_rate_Bps, 100e9, 1);
}

static struct hw bridged(void)
{
    struct hw hw = mesh;
    hw.gpu.arch = "Ampere";
    hw.node.fabric = HW_PCIE;
    hw.node.gpu_bandwidth.value = 25e9;
    hw.node.nvlink_bridge = (struct quantity)NUMBER(300e9);
    return hw;
}

/* GPUs 0 and 1, 2 and 3, ... have a bridge; GPUs 1 and 2 have none. */
static void only_the_two_of_a_pair_are_bridged(void **state)
{
    (void)state;
    struct hw hw = bridged(), bridge;
    static const struct {
        struct coll_group group;
        bool bridged;
    } cases[] = {{{0, 1, 2}, true}, {{6, 1, 2}, true}, {{10, 1, 2}, true}, {{1, 1, 2}, false},
        {{0, 2, 2}, false}, {{0, 1, 4}, false}, {{0, 4, 4}, false}, {{0, 8, 2}, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(coll_hw_of(&bridge, cases[i].group, &hw) == &bridge, cases[i].bridged);
    hw.node.nvlink_bridge = (struct quantity){0};
    assert_ptr_equal(coll_hw_of(&bridge, cases[0].group, &hw), &hw);
}

/* Of NVIDIA/nccl-tests#178, A100 PCIe: 208 GB/s of busbw on 2, 20 on 3 (PCIe 4: 24 GB/s here); NCCL
 * takes LL128 over the bridge as over other NVLinks, and not over PCIe. */
static void a_bridge_carries_what_two_send_each_other(void **state)
{
    (void)state;
    struct hw hw = bridged();
    hw.node.gpu_bandwidth.value = 24e9;
    struct coll_cost two = on(&hw, COLL_ALL_REDUCE, 2), three = on(&hw, COLL_ALL_REDUCE, 3);
    assert_near(two.bus_bytes / coll_isolated_s(two), 208e9, 0.07 * 208e9);
    assert_int_equal(coll_bound(&two), COLL_BOUND_NVLINK);
    assert_near(three.bus_bytes / coll_isolated_s(three), 24e9, 0.01 * 24e9);
    assert_int_equal(coll_bound(&three), COLL_BOUND_PCIE);
    assert_near(on(&hw, COLL_SEND_RECV, 2).max_rate_Bps, 0.85 * 240e9, 1);
    assert_near(on(&hw, COLL_SEND_RECV, 4).max_rate_Bps, 0.85 * 24e9, 1);
    struct coll_cost cost;
    const struct coll_group group = {0, 1, 2};
    struct coll_shape pair = coll_shape(group, 8);
    assert_false(coll_cost(&cost, COLL_ALL_REDUCE, COLL_RING, COLL_LL128, 1e6, pair, &hw));
    struct hw bridge;
    const struct hw *seen = coll_hw_of(&bridge, group, &hw);
    assert_true(coll_cost(&cost, COLL_ALL_REDUCE, COLL_RING, COLL_LL128, 1e6, pair, seen));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_part_has_only_its_links),
        cmocka_unit_test(one_gpu_a_node_is_not_bound_by_it),
        cmocka_unit_test(a_message_has_the_links_of_its_pair),
        cmocka_unit_test(only_the_two_of_a_pair_are_bridged),
        cmocka_unit_test(a_bridge_carries_what_two_send_each_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
