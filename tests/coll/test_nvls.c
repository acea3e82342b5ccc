/* NVLS and NVLSTree: steps of chunks through switches that add. */
#include "coll/nccl.h"
#include "round.h"

/* Steps of 16 channels, 8 heads and 128 KiB each take 16 MiB / 60 GB/s and 5 us; a message of k
 * steps takes k + 2 of them after 50 us, where a ring moves 14 GB at 100 GB/s. Across 4 nodes
 * chunks are 64 KiB; two levels up and two down are each 30 us, twice the network's 3 and a step
 * over NICs of 80 GB/s times 5/6, in which three steps pass the switch, too, and the slowest stage,
 * the NICs' (2 S leave each node), is counted with the bytes. */
static void switches_that_reduce(void **state)
{
    (void)state;
    assert_false(possible(COLL_ALL_REDUCE, COLL_NVLS, COLL_SIMPLE, shape_of(8, 1), &test_hw));
    struct hw hw = reducing();
    assert_true(possible(COLL_ALL_REDUCE, COLL_NVLS, COLL_SIMPLE, shape_of(3, 1), &hw));
    assert_false(possible(
        COLL_ALL_REDUCE, COLL_NVLS, COLL_SIMPLE, shape_of(2, 1), &hw)); /* NCCL asks for three */
    assert_true(possible(COLL_ALL_REDUCE, COLL_NVLS_TREE, COLL_SIMPLE, shape_of(8, 2), &hw));
    assert_false(possible(COLL_ALL_REDUCE, COLL_NVLS_TREE, COLL_SIMPLE, shape_of(8, 4), &hw));
    struct coll_cost node =
        cost_of(COLL_ALL_REDUCE, COLL_NVLS, COLL_SIMPLE, 8e9, shape_of(8, 1), &hw);
    near(coll_isolated_s(node), 50e-6 + (8e9 / 0x1p24 + 2) * (0x1p24 / 60e9 + 5e-6));
    near(node.bus_bytes * node.gpu_out_factor, 8e9);
    near(node.hbm_bytes, 16e9);
    near(node.sms, 16); /* NVLS's own channels, where a ring has the node's 24 */
    struct coll_cost four =
        cost_of(COLL_ALL_REDUCE, COLL_NVLS_TREE, COLL_SIMPLE, 8e9, shape_of(32, 1), &hw);
    double nics_Bps = 80e9 * 5 / 6, nics_s = 2 * 0x1p23 / nics_Bps; /* of a step */
    near(four.latency_s, 50e-6 + 3 * (0x1p23 / 60e9 + 5e-6) + 2 * (2 * 36e-6 + nics_s) - nics_s);
    near(four.bus_bytes * four.node_out_factor, 16e9);
    near(four.bus_bytes / four.max_rate_Bps, 16e9 / nics_Bps);
    assert_false(possible(COLL_ALL_GATHER, COLL_NVLS, COLL_SIMPLE, shape_of(8, 1), &hw));
    assert_false(possible(COLL_ALL_REDUCE, COLL_NVLS_TREE, COLL_LL, shape_of(32, 1), &hw));
}

/* Where NCCL changes chunks, seen in tables of nccl-tests: from 1 GiB on 8 H100 the 128 KiB of 128
 * channels and heads (NVIDIA/dgxc-benchmarking), below 64 KiB; on 2 x 8 from 64 MiB on
 * (NVIDIA/nccl-tests#309), on 2 x 8 B200, with twice the channels, from 128 MiB on (dstack,
 * Lambda). From 4 nodes on never more than 64 KiB. The smallest are 16 KiB, and no step is more
 * than the message. A run with 24 channels has them here too. */
static void chunks_of_the_switch(void **state)
{
    (void)state;
    struct hw hw = reducing();
    near(nccl_nvls_step_bytes(0x1p30, shape_of(8, 1), &hw), 0x1p24);
    near(nccl_nvls_step_bytes(0x1p29, shape_of(8, 1), &hw), 0x1p23);
    near(nccl_nvls_step_bytes(0x1p20, shape_of(8, 1), &hw), 0x1p21);
    near(nccl_nvls_step_bytes(0x1p26, shape_of(16, 1), &hw), 0x1p24);
    near(nccl_nvls_step_bytes(0x1p25, shape_of(16, 1), &hw), 0x1p23);
    near(nccl_nvls_step_bytes(0x1p33, shape_of(32, 1), &hw), 0x1p23);
    near(
        coll_isolated_s(cost_of(COLL_ALL_REDUCE, COLL_NVLS, COLL_SIMPLE, 6e5, shape_of(8, 1), &hw)),
        50e-6 + 3 * 15e-6);
    hw.cluster.nccl_channels = (struct quantity)NUMBER(24);
    near(nccl_nvls_step_bytes(0x1p33, shape_of(16, 1), &hw), 24 * 8 * 0x1p17);
    hw = reducing();
    hw.gpu.arch = "Blackwell";
    near(nccl_nvls_step_bytes(0x1p27, shape_of(16, 1), &hw), 0x1p25);
    near(nccl_nvls_step_bytes(0x1p26, shape_of(16, 1), &hw), 0x1p24);
}

/* Switches of the network that add, at half of the NICs' 80 GB/s: 8 GB leave each node once, in 0.2
 * s whatever the number of nodes, where a ring sends 14 to 16. Chain: 2 x 7 x 2.8 + 30 us and the
 * network's 3 twice. Direct: 2 (3.7 + 7 x 0.4) + 31 + 6 us; with two GPUs a NIC, two thirds of the
 * bandwidth. */
static void switches_that_reduce_between_nodes(void **state)
{
    (void)state;
    struct hw hw = test_hw;
    for (int a = COLL_COLLNET_DIRECT; a <= COLL_COLLNET_CHAIN; a++)
        assert_false(
            possible(COLL_ALL_REDUCE, (enum coll_algorithm)a, COLL_SIMPLE, shape_of(16, 1), &hw));
    hw.cluster.nccl_collnet_efficiency = (struct quantity)NUMBER(0.5);
    for (int nodes = 2; nodes <= 64; nodes *= 2) {
        struct coll_shape shape = shape_of(8 * nodes, 1);
        struct coll_cost chain =
            cost_of(COLL_ALL_REDUCE, COLL_COLLNET_CHAIN, COLL_SIMPLE, 8e9, shape, &hw);
        near(coll_isolated_s(chain), 39.2e-6 + 30e-6 + 6e-6 + 0.2);
        near(chain.bus_bytes * chain.node_out_factor, 8e9);
        near(chain.bus_bytes * chain.gpu_out_factor, 14e9);
        near(coll_isolated_s(
                 cost_of(COLL_ALL_REDUCE, COLL_COLLNET_DIRECT, COLL_SIMPLE, 8e9, shape, &hw)),
            13e-6 + 31e-6 + 6e-6 + 0.2);
    }
    near(coll_collnet_share(&hw), 0.5 / hw.cluster.nccl_efficiency.value);
    hw.cluster.nccl_efficiency.value /= 2; /* of the NICs: what the switches reach stays */
    near(coll_isolated_s(
             cost_of(COLL_ALL_REDUCE, COLL_COLLNET_CHAIN, COLL_SIMPLE, 8e9, shape_of(16, 1), &hw)),
        39.2e-6 + 30e-6 + 6e-6 + 0.2);
    hw.node.nics.value = 4;
    near(coll_isolated_s(
             cost_of(COLL_ALL_REDUCE, COLL_COLLNET_DIRECT, COLL_SIMPLE, 8e9, shape_of(64, 1), &hw)),
        50e-6 + 0.4 * 1.5);
    assert_false(possible(COLL_ALL_REDUCE, COLL_COLLNET_CHAIN, COLL_SIMPLE, shape_of(8, 1), &hw));
    hw.node.fabric = HW_NVLINK_MESH;
    assert_false(possible(COLL_ALL_REDUCE, COLL_COLLNET_DIRECT, COLL_SIMPLE, shape_of(64, 1), &hw));
    assert_true(possible(COLL_ALL_REDUCE, COLL_COLLNET_CHAIN, COLL_SIMPLE, shape_of(64, 1), &hw));
    hw.node.fabric = HW_NVSWITCH;
    assert_false(possible(COLL_ALL_REDUCE, COLL_COLLNET_CHAIN, COLL_LL, shape_of(16, 1), &hw));
    assert_false(possible(COLL_ALL_GATHER, COLL_COLLNET_DIRECT, COLL_SIMPLE, shape_of(16, 1), &hw));
}

/* What bounds each: links of 100 GB/s in a node; over 4 nodes NICs, faster ones leave the switch's
 * 60 GB/s, and both faster the channels: of Hopper 45.5 GB/s each by the tuner, eight of them. */
static void bounds_of_switches(void **state)
{
    (void)state;
    struct hw hw = reducing();
    struct coll_shape shape = shape_of(32, 1);
    struct coll_cost cost =
        cost_of(COLL_ALL_REDUCE, COLL_NVLS, COLL_SIMPLE, 8e9, shape_of(8, 1), &hw);
    assert_int_equal(cost.rate_bound, COLL_BOUND_NVLINK);
    cost = cost_of(COLL_ALL_REDUCE, COLL_NVLS_TREE, COLL_SIMPLE, 8e9, shape, &hw);
    assert_int_equal(cost.rate_bound, COLL_BOUND_NIC);
    hw.node.nic_bandwidth.value = 100e9;
    cost = cost_of(COLL_ALL_REDUCE, COLL_NVLS_TREE, COLL_SIMPLE, 8e9, shape, &hw);
    assert_int_equal(cost.rate_bound, COLL_BOUND_NVLINK);
    near(cost.bus_bytes / cost.max_rate_Bps, 8e9 / 0x1p23 * (0x1p23 / 60e9 + 5e-6));
    hw.node.gpu_bandwidth.value = 10e12;
    hw.node.nvls_step_latency.value = 0;
    hw.node.nic_bandwidth.value = 1e12;
    cost = cost_of(COLL_ALL_REDUCE, COLL_NVLS_TREE, COLL_SIMPLE, 8e9, shape, &hw);
    assert_int_equal(cost.rate_bound, COLL_BOUND_CHANNELS);
    near(cost.max_rate_Bps, 8 * 45.5e9);
}

/* A GPU alone on its node has nothing to hand on there: 31 us and twice the network's 3. */
static void collnet_of_lone_gpus(void **state)
{
    (void)state;
    struct hw hw = test_hw;
    hw.cluster.nccl_collnet_efficiency = (struct quantity)NUMBER(0.5);
    near(cost_of(COLL_ALL_REDUCE, COLL_COLLNET_DIRECT, COLL_SIMPLE, 8e9, shape_of(4, 8), &hw)
             .latency_s,
        37e-6);
    near(cost_of(COLL_ALL_REDUCE, COLL_COLLNET_DIRECT, COLL_SIMPLE, 8e9, shape_of(8, 4), &hw)
             .latency_s,
        37e-6 + 2 * (3.7e-6 + 0.4e-6));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(switches_that_reduce),
        cmocka_unit_test(chunks_of_the_switch),
        cmocka_unit_test(switches_that_reduce_between_nodes),
        cmocka_unit_test(bounds_of_switches),
        cmocka_unit_test(collnet_of_lone_gpus),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
