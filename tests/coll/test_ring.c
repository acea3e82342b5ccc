/* Rings: expected values are the formulae of coll/ring.c in round numbers, worked out in the
 * comments. */
#include "round.h"

/* One node: 7 hops of 2 us + 5 us = 19 us; 7/8 of 8 GB at 100 GB/s = 70 ms. Nothing crosses, so
 * nothing hides. */
static void all_gather_in_a_node(void **state)
{
    (void)state;
    struct coll_cost cost = coll_choose(COLL_ALL_GATHER, 8e9, shape_of(8, 1), &test_hw, COLL_FREE);
    assert_int_equal(cost.algorithm, COLL_RING);
    assert_int_equal(cost.protocol, COLL_SIMPLE);
    near(cost.latency_s, 19e-6);
    near(cost.bus_bytes, 7e9);
    near(cost.node_out_factor, 0);
    near(coll_isolated_s(cost), 19e-6 + 70e-3);
}

/* 64 ranks on 8 nodes: 63 steps, 7 between nodes: 63/64 of 64 GB at the node's 80 GB/s of NICs,
 * less than NVLink's 100, behind which all intra-node hops and all inter-node hops (20 us) except
 * one hide; the base is 5. An all-reduce takes the bytes twice. 64 kB: all 56 hops of 2 us and 7
 * inter-node hops are seen, and of the bytes (0.63 us inside, 0.7875 across) the half that is
 * stored at each step, and the rest of the last. */
static void rings_across_nodes(void **state)
{
    (void)state;
    struct coll_shape shape = shape_of(64, 1);
    struct coll_cost scatter =
        cost_of(COLL_REDUCE_SCATTER, COLL_RING, COLL_SIMPLE, 64e9, shape, &test_hw);
    near(coll_isolated_s(scatter), 25e-6 + 63e9 / 80e9);
    struct coll_cost reduce =
        cost_of(COLL_ALL_REDUCE, COLL_RING, COLL_SIMPLE, 64e9, shape, &test_hw);
    near(coll_isolated_s(reduce), 25e-6 + 126e9 / 80e9);
    near(reduce.bus_bytes, 126e9);
    struct coll_cost small =
        cost_of(COLL_ALL_GATHER, COLL_RING, COLL_SIMPLE, 64e3, shape, &test_hw);
    near(coll_isolated_s(small), 117e-6 + 140e-6 + (56 * 0.63e-6 + 8 * 0.7875e-6) / 2 / 63);
    /* LL128 (4 + 3 us an inter-node hop, 120/128 of the bytes, inside 92 %) stores nothing inside
     * and all where it crosses, and has one last inter-node hop. */
    double bytes = 63. / 64 * 4e6, across_s = bytes / 75e9;
    double stays_s = 62 * (1.9e-6 + bytes / 92e9 / 63) + across_s / 63;
    near(coll_isolated_s(cost_of(COLL_ALL_GATHER, COLL_RING, COLL_LL128, 4e6, shape, &test_hw)),
        14e-6 + 7e-6 + fmax(stays_s, 56 * 1.9e-6 + 42e-6 + across_s * 7 / 63));
    near(reduce.node_out_factor, 1);
}

/* A pipeline: 56 hops and 7 inter-node hops, at each of which the 24 channels (or 8, where the
 * cluster has those) send a slot of 512 KiB, then the bytes at 80 GB/s; a slot is no larger than
 * the message. NCCL does not count slots when it chooses: 64 MB take 1.06 ms by Simple without
 * them, 1.02 by LL128 (75 GB/s), which it takes; with those of 576 kB 2.31 ms, and Simple would
 * take 2.16. */
static void pipelines_store_slots(void **state)
{
    (void)state;
    struct coll_shape shape = shape_of(64, 1);
    const double hops_s = 117e-6 + 140e-6, slot = 0x1p19;
    near(coll_isolated_s(cost_of(COLL_BROADCAST, COLL_RING, COLL_SIMPLE, 8e9, shape, &test_hw)),
        hops_s + 7 * 24 * slot / 80e9 + 0.1);
    struct hw hw = test_hw;
    hw.cluster.nccl_channels = (struct quantity)NUMBER(8);
    near(coll_isolated_s(cost_of(COLL_REDUCE, COLL_RING, COLL_SIMPLE, 8e9, shape, &hw)),
        hops_s + 7 * 8 * slot / 80e9 + 0.1);
    near(coll_isolated_s(cost_of(COLL_BROADCAST, COLL_RING, COLL_SIMPLE, 8e6, shape, &test_hw)),
        hops_s + 8 * 0.1e-3);
    struct coll_cost chosen = coll_choose(COLL_BROADCAST, 64e6, shape, &test_hw, COLL_FREE);
    assert_int_equal(chosen.protocol, COLL_LL128);
    near(coll_isolated_s(chosen), 14e-6 + 56 * 1.9e-6 + 7 * 7e-6 + (7 * 24 * 576e3 + 64e6) / 75e9);
    assert_true(coll_isolated_s(cost_of(COLL_BROADCAST, COLL_RING, COLL_SIMPLE, 64e6, shape,
                    &test_hw)) < coll_isolated_s(chosen));
}

/* NICs of 20 GB/s each, more than NVLink: each rank inside takes its hop of 2 us and its bytes in
 * all of 63 steps. Few bytes: in all but the one that crosses, which takes longer. */
static void fast_nics_leave_the_hops_inside(void **state)
{
    (void)state;
    struct hw hw = test_hw;
    hw.node.nic_bandwidth.value = 20e9;
    struct coll_shape two = shape_of(16, 1);
    near(coll_isolated_s(
             cost_of(COLL_ALL_GATHER, COLL_RING, COLL_SIMPLE, 64e9, shape_of(64, 1), &hw)),
        5e-6 + 63 * 2e-6 + 0.63);
    near(coll_isolated_s(cost_of(COLL_ALL_GATHER, COLL_RING, COLL_SIMPLE, 1.6e6, two, &hw)),
        5e-6 + 20e-6 + 14 * 3e-6 + 1.5e6 / 160e9 / 15 / 2);
}

/* What the network adds: posts of 1 us to each of two slices, where a message fills many channels,
 * whatever number is laid. A message of 32 KiB fills one (NCCL gives a thread 64 bytes, 512 threads
 * a channel), so nothing is added. 16 ranks on 2 nodes: 5 us, one inter-node hop of 20 us, which
 * nothing hides, and 14 x 2 us with 14/15 of 0.3072 us of bytes and half of the last 15th of 0.384.
 * With many bytes those hide. */
static void posting_takes_time_where_channels_are_many(void **state)
{
    (void)state;
    struct hw hw = test_hw;
    hw.cluster.nccl_ring_post_latency = (struct quantity)NUMBER(1e-6);
    struct coll_shape shape = shape_of(16, 1);
    struct coll_cost small = cost_of(COLL_ALL_GATHER, COLL_RING, COLL_SIMPLE, 32768, shape, &hw);
    near(coll_isolated_s(small), 5e-6 + 20e-6 + 28e-6 + 14 * 0.3072e-6 / 15 + 0.384e-6 / 2 / 15);
    struct coll_cost large = cost_of(COLL_ALL_GATHER, COLL_RING, COLL_SIMPLE, 1e9, shape, &hw);
    near(coll_isolated_s(large),
        5e-6 + 20e-6 + 2 * (1 - 1 / floor(1e9 / 32768)) * 1e-6 + 15. / 16 * 1e9 / 80e9);
    hw.cluster.nccl_channels = (struct quantity)NUMBER(32);
    assert_true(coll_isolated_s(cost_of(COLL_ALL_GATHER, COLL_RING, COLL_SIMPLE, 1e9, shape,
                    &hw)) <= coll_isolated_s(large));
}

/* A place is free again after 1 ms and a slice, and there are two: of 16 ranks on 2 nodes 14
 * further steps take half of that each, whether few bytes move or many. LL has more places, many
 * bytes need none. */
static void places_of_a_buffer_come_back_late(void **state)
{
    (void)state;
    struct hw hw = test_hw;
    hw.cluster.nccl_credit_latency = (struct quantity)NUMBER(1e-3);
    struct coll_shape shape = shape_of(16, 1);
    struct coll_cost slow = cost_of(COLL_ALL_GATHER, COLL_RING, COLL_SIMPLE, 1.6e6, shape, &hw);
    near(coll_isolated_s(slow), 5e-6 + 20e-6 + 14 * (1e-3 + 1.5e6 / 80e9 / 15 / 2) / 2);
    assert_true(
        coll_isolated_s(cost_of(COLL_ALL_GATHER, COLL_RING, COLL_LL, 1.6e6, shape, &hw)) ==
        coll_isolated_s(cost_of(COLL_ALL_GATHER, COLL_RING, COLL_LL, 1.6e6, shape, &test_hw)));
    assert_true(
        coll_isolated_s(cost_of(COLL_ALL_GATHER, COLL_RING, COLL_SIMPLE, 64e9, shape, &hw)) ==
        coll_isolated_s(cost_of(COLL_ALL_GATHER, COLL_RING, COLL_SIMPLE, 64e9, shape, &test_hw)));
}

/* One chunk is under way at a time: 14 of 15 steps take their bytes and the trip of each of their
 * chunks, of which all channels together have 2 MiB each. */
static void a_chunk_waits_for_the_last(void **state)
{
    (void)state;
    struct hw hw = test_hw;
    hw.cluster.nccl_credit_latency = (struct quantity)NUMBER(1e-3);
    hw.cluster.nccl_flow_control = HW_STOP_AND_WAIT;
    struct coll_shape shape = shape_of(16, 1);
    const double chunk_bytes = coll_sms(shape, &hw) * 0x1p21,
                 bytes[] = {1.6e6, 16 * chunk_bytes, 24 * chunk_bytes};
    const double chunks[] = {1, 1, 2};
    for (int i = 0; i < 3; i++)
        near(
            coll_isolated_s(cost_of(COLL_ALL_GATHER, COLL_RING, COLL_SIMPLE, bytes[i], shape, &hw)),
            5e-6 + 20e-6 + 14 * (chunks[i] * 1e-3 + bytes[i] / 16 / 80e9));
}

/* Across nodes 4 channels of 5 GB/s carry 20 GB/s, less than the NICs. */
static void channels_bound_rings_across_nodes(void **state)
{
    (void)state;
    struct hw hw = test_hw;
    hw.cluster.nccl_channels = (struct quantity)NUMBER(4);
    hw.cluster.nccl_channel_bandwidth = (struct quantity)NUMBER(5e9);
    near(cost_of(COLL_ALL_GATHER, COLL_RING, COLL_SIMPLE, 1e9, shape_of(16, 1), &hw).max_rate_Bps,
        20e9);
    near(cost_of(COLL_ALL_GATHER, COLL_RING, COLL_SIMPLE, 1e9, shape_of(8, 1), &hw).max_rate_Bps,
        100e9);
}

/* Each process copies 6 GB/s through host memory, one of them at each of 8 NICs of 10 GB/s: 48 GB/s
 * for a ring, which leaves from one process and comes in at another. Half of that for one way of a
 * tree, which on two nodes has S bytes to send where busbw counts 30/16 S; and 3 GB/s where a node
 * has one rank, over one NIC. In a node it does not matter. */
static void processes_copy_without_gpudirect(void **state)
{
    (void)state;
    struct hw hw = test_hw;
    hw.cluster.nccl_staging_bandwidth = (struct quantity)NUMBER(6e9);
    near(cost_of(COLL_ALL_REDUCE, COLL_RING, COLL_SIMPLE, 1e9, shape_of(16, 1), &hw).max_rate_Bps,
        48e9);
    near(cost_of(COLL_ALL_REDUCE, COLL_TREE, COLL_SIMPLE, 1e9, shape_of(16, 1), &hw).max_rate_Bps,
        24e9 * 30 / 16);
    near(cost_of(COLL_ALL_REDUCE, COLL_RING, COLL_SIMPLE, 1e9, shape_of(4, 8), &hw).max_rate_Bps,
        3e9);
    near(cost_of(COLL_ALL_REDUCE, COLL_RING, COLL_SIMPLE, 1e9, shape_of(8, 1), &hw).max_rate_Bps,
        100e9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_gather_in_a_node),
        cmocka_unit_test(rings_across_nodes),
        cmocka_unit_test(pipelines_store_slots),
        cmocka_unit_test(fast_nics_leave_the_hops_inside),
        cmocka_unit_test(posting_takes_time_where_channels_are_many),
        cmocka_unit_test(places_of_a_buffer_come_back_late),
        cmocka_unit_test(a_chunk_waits_for_the_last),
        cmocka_unit_test(channels_bound_rings_across_nodes),
        cmocka_unit_test(processes_copy_without_gpudirect),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
