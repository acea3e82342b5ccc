/* Expected values are the formulae of coll/ in round numbers, worked out in the comments. */
#include "coll/nccl.h"
#include "round.h"

static void groups_lie_on_nodes(void **state)
{
    (void)state;
    struct coll_shape world = shape_of(64, 1);
    assert_int_equal(world.nodes, 8);
    assert_int_equal(world.per_node, 8);
    /* first and last of four pipeline stages of two ranks, in one node of eight: 1 and 7 */
    struct coll_shape ends = coll_shape((struct coll_group){1, 6, 2}, 8);
    assert_true(ends.ranks == 2 && ends.nodes == 1 && ends.per_node == 2);
    struct coll_shape replicas =
        coll_shape((struct coll_group){3, 8, 16}, 8); /* one rank of each node */
    assert_int_equal(replicas.nodes, 16);
    assert_int_equal(replicas.per_node, 1);
    struct coll_shape part = shape_of(4, 1);
    assert_int_equal(part.nodes, 1);
    assert_int_equal(part.per_node, 4);
    struct coll_shape every_fourth = shape_of(4, 4); /* two of each of two nodes */
    assert_int_equal(every_fourth.nodes, 2);
    assert_int_equal(every_fourth.per_node, 2);
    struct coll_shape and_a_half = shape_of(12, 1); /* a node of eight and four of the next */
    assert_int_equal(and_a_half.nodes, 2);
    assert_int_equal(and_a_half.per_node, 8);
}

/* The node's 24 channels hold SMs inside it; across nodes the cluster's, if it states them, and of
 * a group of one rank a node the eighth of them that use its NIC. */
static void channels_hold_sms(void **state)
{
    (void)state;
    struct hw hw = test_hw;
    near(coll_sms(shape_of(64, 1), &hw), 24);
    hw.cluster.nccl_channels = (struct quantity)NUMBER(16);
    near(coll_sms(shape_of(8, 1), &hw), 24);
    near(coll_sms(shape_of(64, 1), &hw), 16);
    near(coll_sms(shape_of(8, 8), &hw), 2);
    near(cost_of(COLL_ALL_REDUCE, COLL_RING, COLL_SIMPLE, 8e9, shape_of(8, 8), &hw).sms, 2);
}

/* NCCL's constants of LL, one node: 6.6 + 14 x 0.6 us; half of the bandwidth: 50 GB/s. LL128: 14 +
 * 14 x 1.9 us, 92 GB/s. The smallest time of the three is taken: LL for 8 B, LL128 for 1 MB, Simple
 * for 1 GB. */
static void protocols_by_size(void **state)
{
    (void)state;
    struct hw hw = test_hw;
    hw.node.nccl_base_latency.value = 60e-6;
    struct coll_shape shape = shape_of(8, 1);
    near(coll_isolated_s(cost_of(COLL_ALL_REDUCE, COLL_RING, COLL_LL, 8e3, shape, &hw)),
        15e-6 + 14e3 / 50e9);
    near(coll_isolated_s(cost_of(COLL_ALL_REDUCE, COLL_RING, COLL_LL128, 8e3, shape, &hw)),
        40.6e-6 + 14e3 / 92e9);
    struct coll_force ring = {COLL_RING, COLL_ANY};
    assert_int_equal(coll_choose(COLL_ALL_REDUCE, 8, shape, &hw, ring).protocol, COLL_LL);
    assert_int_equal(coll_choose(COLL_ALL_REDUCE, 4e6, shape, &hw, ring).protocol, COLL_LL128);
    assert_int_equal(coll_choose(COLL_ALL_REDUCE, 1e9, shape, &hw, ring).protocol, COLL_SIMPLE);
}

static void protocols_that_are_not_there(void **state)
{
    (void)state;
    struct hw hw = test_hw;
    struct coll_shape node = shape_of(8, 1), two = shape_of(16, 1);
    assert_true(possible(COLL_ALL_REDUCE, COLL_RING, COLL_LL128, node, &hw));
    hw.cluster.nccl_protocols =
        HW_PROTOCOLS_SIMPLE; /* what the network plugin leaves counts between nodes only */
    assert_false(possible(COLL_ALL_REDUCE, COLL_RING, COLL_LL, two, &hw));
    assert_true(possible(COLL_ALL_REDUCE, COLL_RING, COLL_LL, node, &hw));
    hw.cluster.nccl_protocols = HW_PROTOCOLS_NO_LL;
    assert_false(possible(COLL_ALL_REDUCE, COLL_RING, COLL_LL, two, &hw));
    assert_true(possible(COLL_ALL_REDUCE, COLL_RING, COLL_LL128, two, &hw));
    hw.cluster.nccl_protocols = HW_PROTOCOLS_NO_LL128;
    assert_true(possible(COLL_ALL_REDUCE, COLL_RING, COLL_LL, two, &hw));
    assert_false(possible(COLL_ALL_REDUCE, COLL_RING, COLL_LL128, two, &hw));
    hw.node.fabric = HW_PCIE; /* LL128 needs NVLink, whose stores of 128 bytes arrive whole */
    assert_false(possible(COLL_ALL_REDUCE, COLL_RING, COLL_LL128, node, &hw));
}

/* Tree by LL on 8 nodes: 6.8 + 2 (7 x 0.6 + 3 x (5 + 3)) = 63.2 us; its bandwidth is a 3.8th of 92
 * % of NVLink's (of the NICs': times 64 x 63/64 / 64 ... above that), and the tuner's correction of
 * 1 kB is 0.9. */
static void small_all_reduces_take_the_tree(void **state)
{
    (void)state;
    struct coll_shape shape = shape_of(64, 1);
    struct coll_cost small = coll_choose(COLL_ALL_REDUCE, 1024, shape, &test_hw, COLL_FREE);
    assert_int_equal(small.algorithm, COLL_TREE);
    assert_int_equal(small.protocol, COLL_LL);
    /* 2 S leave each node: per bus byte 2 / (2 x 63/64); LL: 80 GB/s x 0.92 / 3.8 = 19.4 GB/s,
     * under its 20.4 */
    near(small.node_out_factor, 64. / 63);
    near(small.max_rate_Bps, 80e9 * 0.92 / 3.8 * 63 / 64);
    double bytes_s = small.bus_bytes / small.max_rate_Bps;
    /* Each of 3 levels up and 3 down waits for all of it; 1024 B is the fifth entry of the table:
     * 0.9. */
    near(coll_isolated_s(small), 63.2e-6 + 6 * 1024 / (80e9 * 0.92 / 3.8) + bytes_s / 0.9);
    assert_int_equal(
        coll_choose(COLL_ALL_REDUCE, 1e10, shape, &test_hw, COLL_FREE).algorithm, COLL_RING);
    assert_int_equal(
        coll_choose(COLL_ALL_GATHER, 1024, shape, &test_hw, COLL_FREE).algorithm, COLL_RING);
}

/* Two nodes are special: a tree sends half of what a ring sends over the network (nccl#946). */
static void a_tree_on_two_nodes_halves_the_network_traffic(void **state)
{
    (void)state;
    struct coll_shape shape = shape_of(16, 1);
    struct coll_cost tree = cost_of(COLL_ALL_REDUCE, COLL_TREE, COLL_SIMPLE, 16e9, shape, &test_hw);
    struct coll_cost ring = cost_of(COLL_ALL_REDUCE, COLL_RING, COLL_SIMPLE, 16e9, shape, &test_hw);
    near(ring.bus_bytes * ring.node_out_factor, 2 * 15e9);
    near(tree.bus_bytes * tree.node_out_factor, 16e9);
}

/* A node whose NVLinks take longer than NCCL's table has: 14 steps of a ring, and of a tree's chain
 * up and down, by LL and LL128, not by Simple, whose step is stated. */
static void slower_links(void **state)
{
    (void)state;
    struct hw hw = test_hw;
    hw.node.nccl_link_latency = (struct quantity)NUMBER(0.7e-6);
    for (int algorithm = COLL_RING; algorithm <= COLL_TREE; algorithm++)
        for (int protocol = COLL_LL; protocol <= COLL_SIMPLE; protocol++) {
            enum coll_algorithm a = (enum coll_algorithm)algorithm;
            enum coll_protocol p = (enum coll_protocol)protocol;
            double before_s =
                cost_of(COLL_ALL_REDUCE, a, p, 1e3, shape_of(8, 1), &test_hw).latency_s;
            double after_s = cost_of(COLL_ALL_REDUCE, a, p, 1e3, shape_of(8, 1), &hw).latency_s;
            assert_true(fabs(after_s - before_s - (p == COLL_SIMPLE ? 0 : 14 * 0.7e-6)) < 1e-12);
        }
}

/* NCCL's tuner goes by compute capability: from 8.0 to below 9.0 Ampere's row (Ada is 8.9), below
 * it Volta's (Turing is 7.5). */
static void generations_between_the_tuners_rows(void **state)
{
    (void)state;
    static const char *const alike[][2] = {{"Ada", "Ampere"}, {"Turing", "Volta"}};
    double seconds[2][2];
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++) {
            struct hw hw = test_hw;
            hw.gpu.arch = alike[i][j];
            seconds[i][j] = coll_isolated_s(
                cost_of(COLL_ALL_REDUCE, COLL_RING, COLL_LL, 1e6, shape_of(8, 1), &hw));
        }
    near(seconds[0][0], seconds[0][1]);
    near(seconds[1][0], seconds[1][1]);
    assert_true(seconds[0][0] < seconds[1][0]);
}

/* What links a GPU would have to others of its node does not matter to groups of one GPU on each,
 * however slow it is (NICs may be faster: a node of one GPU on PCIe); nor does it make a latency
 * less than nothing. */
static void a_gpu_alone_on_its_node_needs_no_links_there(void **state)
{
    (void)state;
    struct hw slow = test_hw;
    slow.node.gpu_bandwidth.value = 1e9;
    int possibilities = 0;
    for (int kind = 0; kind < COLL_KIND_COUNT; kind++)
        for (int a = 0; a < COLL_ALGORITHM_COUNT; a++)
            for (int p = 0; p < COLL_PROTOCOL_COUNT; p++) {
                struct coll_cost cost, same;
                const struct coll_shape shape = shape_of(64, 8);
                bool ok = coll_cost(&cost, (enum coll_kind)kind, (enum coll_algorithm)a,
                    (enum coll_protocol)p, 1e9, shape, &test_hw);
                assert_int_equal(ok, coll_cost(&same, (enum coll_kind)kind, (enum coll_algorithm)a,
                                         (enum coll_protocol)p, 1e9, shape, &slow));
                if (!ok)
                    continue;
                near(same.latency_s, cost.latency_s);
                near(same.max_rate_Bps, cost.max_rate_Bps);
                assert_true(cost.latency_s > 0 && cost.gpu_out_factor == 0);
                possibilities++;
            }
    assert_true(possibilities > 15);
}

/* Bytes through each GPU's HBM, counted step by step as NCCL's ring primitives go through n parts
 * of a message, 1/n each: what is sent over NVLink is written on the peer, so a part that arrives
 * is staged twice (written, read). */
static double counted(enum coll_kind kind, double n, double staged)
{
    double send = 1, recv_reduce_send = staged + 1, recv_reduce_copy = staged + 2,
           recv_copy = staged + 1, copy = 1;
    double scatter = send + (n - 2) * recv_reduce_send + recv_reduce_copy;
    double gather = (n - 1) * recv_copy; /* what is sent on is in registers */
    return (kind == COLL_REDUCE_SCATTER  ? scatter
               : kind == COLL_ALL_GATHER ? send + copy + gather
               : kind == COLL_ALL_REDUCE ? scatter + gather
                                         : (staged + 1) * n) /
           n;
}

static void rings_stage_read_and_write(void **state)
{
    (void)state;
    static const double staged[] = {[COLL_LL] = 4, [COLL_LL128] = 2 * 16.0 / 15, [COLL_SIMPLE] = 2};
    for (int kind = COLL_ALL_REDUCE; kind <= COLL_REDUCE; kind++)
        for (int protocol = COLL_LL; protocol <= COLL_SIMPLE; protocol++) {
            struct coll_cost cost = cost_of((enum coll_kind)kind, COLL_RING,
                (enum coll_protocol)protocol, 1e9, shape_of(8, 1), &test_hw);
            near(cost.hbm_bytes, counted((enum coll_kind)kind, 8, staged[protocol]) * 1e9);
            /* of 16 ranks on two nodes one ring in 8 leaves a GPU's node, staged by its sender, too
             */
            cost = cost_of((enum coll_kind)kind, COLL_RING, (enum coll_protocol)protocol, 1e9,
                shape_of(16, 1), &test_hw);
            near(cost.hbm_bytes, counted((enum coll_kind)kind, 16, staged[protocol]) * 1e9 +
                                     staged[protocol] / 8 * cost.bus_bytes);
        }
}

/* One rank on each of 16 nodes: PAT takes 8 us + 4 x 20/3.5 us + 16 x 2.8 us, where a ring takes 5
 * us and 15 inter-node hops of 20. */
static void lone_ranks_gather_by_pat(void **state)
{
    (void)state;
    struct coll_shape shape = shape_of(16, 8);
    struct coll_cost cost = cost_of(COLL_ALL_GATHER, COLL_PAT, COLL_SIMPLE, 1e6, shape, &test_hw);
    near(cost.latency_s, 8e-6 + 4 * 20e-6 / 3.5 + 16 * 2.8e-6);
    near(cost.max_rate_Bps, 0.75 * 10e9); /* of the rank's NIC */
    assert_int_equal(coll_choose(COLL_ALL_GATHER, 1e5, shape, &test_hw,
                         (struct coll_force){COLL_ANY, COLL_SIMPLE})
                         .algorithm,
        COLL_PAT);
    assert_false(possible(COLL_ALL_GATHER, COLL_PAT, COLL_SIMPLE, shape_of(16, 1), &test_hw));
}

/* A block of a Hopper moves 38.7 GB/s (tuner), half of it each way. */
static const double p2p_channel_Bps = 38.7e9 / 2, p2p_nvlink_share = 0.85;

/* 16 ranks on 2 nodes send 1/16 of 16 GB to each of 15 others, 8 of them on the other node: 8 ranks
 * x 8 GB leave a node at 80 GB/s = 0.8 s, after a quarter of the first 128 KiB of a channel and 7 x
 * 2 more posts of 1 us, 2 channels a peer. */
static void all_to_all_crosses_with_most_of_it(void **state)
{
    (void)state;
    struct coll_cost cost =
        coll_choose(COLL_ALL_TO_ALL, 16e9, shape_of(16, 1), &test_hw, COLL_FREE);
    assert_int_equal(cost.algorithm, COLL_P2P);
    near(cost.bus_bytes, 15e9);
    near(cost.bus_bytes * cost.node_out_factor, 64e9);
    near(cost.bus_bytes * cost.gpu_out_factor, 7e9);
    near(coll_isolated_s(cost), 5e-6 + 20e-6 + 131072 / p2p_channel_Bps / 4 + 7 * 2 * 1e-6 + 0.8);
}

/* To the next rank: 1 GB leaves each node by the NIC of one GPU, 10 GB/s; inside, by NVLink. */
static void send_recv_crosses_by_one_nic(void **state)
{
    (void)state;
    near(coll_isolated_s(coll_choose(COLL_SEND_RECV, 1e9, shape_of(16, 1), &test_hw, COLL_FREE)),
        25e-6 + 131072 / p2p_channel_Bps / 4 + 0.1);
    near(coll_isolated_s(coll_choose(COLL_SEND_RECV, 1e9, shape_of(8, 1), &test_hw, COLL_FREE)),
        7e-6 + 524288 / p2p_channel_Bps / 4 + 0.01 / p2p_nvlink_share);
}

/* A copy engine's takes all links and no SM; to another node it is a send. */
static void peer_copies_hold_no_sms(void **state)
{
    (void)state;
    struct coll_cost copy = coll_choose(COLL_PEER_COPY, 1e9, shape_of(8, 1), &test_hw, COLL_FREE);
    near(coll_isolated_s(copy), 7e-6 + 0.01);
    near(copy.sms, 0);
    near(copy.hbm_bytes, 2e9);
    copy = coll_choose(COLL_PEER_COPY, 1e9, shape_of(16, 1), &test_hw, COLL_FREE);
    struct coll_cost send = coll_choose(COLL_SEND_RECV, 1e9, shape_of(16, 1), &test_hw, COLL_FREE);
    near(coll_isolated_s(copy), coll_isolated_s(send));
    assert_true(copy.sms > 0);
}

/* 32 channels (24, rounded up to a power of two) on 8 ranks: at least 4 for a peer, 16 at most, as
 * many as leave none more than 16 MiB. Of NVLinks that carry 1 TB/s a peer gets what its channels
 * do: 4 of them up to 64 MiB, 8 up to 128, 16 from there on. 4 KiB are one part. A pair has all 32.
 */
/* NCCL_CTA_POLICY zero: what copies to peers can do in a node holds no SM and stages nothing, at a
 * ring's rate; sums, other groups and what is forced are as they were. */
static void copy_engines_hold_no_sms(void **state)
{
    (void)state;
    static const enum coll_kind kinds[] = {
        COLL_ALL_GATHER, COLL_ALL_TO_ALL, COLL_REDUCE_SCATTER, COLL_ALL_REDUCE};
    struct hw hw = test_hw, zero = test_hw;
    zero.cluster.nccl_cta_policy = HW_CTA_ZERO;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        for (int nodes = 1; nodes <= 2; nodes++) {
            struct coll_shape shape = shape_of(8 * nodes, 1);
            struct coll_cost by_sms = coll_choose(kinds[i], 1e9, shape, &hw, COLL_FREE),
                             by_copies = coll_choose(kinds[i], 1e9, shape, &zero, COLL_FREE);
            bool copies = nodes == 1 && i < 2;
            assert_true((by_copies.sms == 0) == copies && by_sms.sms > 0);
            if (copies) {
                near(by_copies.hbm_bytes, 2 * 7. / 8 * 1e9);
                assert_true(by_copies.hbm_bytes < by_sms.hbm_bytes);
                assert_true(coll_isolated_s(by_copies) <= 1.1 * coll_isolated_s(by_sms));
            } else {
                near(coll_isolated_s(by_copies), coll_isolated_s(by_sms));
            }
        }
    struct coll_force ring = {COLL_RING, COLL_SIMPLE};
    assert_true(coll_choose(COLL_ALL_GATHER, 1e9, shape_of(8, 1), &zero, ring).sms > 0);
    near(coll_choose(COLL_ALL_GATHER, 1e9, shape_of(1, 1), &zero, COLL_FREE).bus_bytes, 0);
}

static void few_channels_bound_one_peer(void **state)
{
    (void)state;
    struct hw hw = test_hw;
    hw.node.gpu_bandwidth.value = 1e12;
    const struct {
        double bytes, channels;
    } of[] = {{4096, 1}, {0x1p26, 4}, {0x1p27, 8}, {0x1p28, 16}, {0x1p33, 16}};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        near(cost_of(COLL_SEND_RECV, COLL_P2P, COLL_SIMPLE, of[i].bytes, shape_of(8, 1), &hw)
                 .max_rate_Bps,
            of[i].channels * p2p_channel_Bps);
    near(cost_of(COLL_SEND_RECV, COLL_P2P, COLL_SIMPLE, 0x1p30, shape_of(2, 1), &hw).max_rate_Bps,
        32 * p2p_channel_Bps);
    near(cost_of(COLL_ALL_TO_ALL, COLL_P2P, COLL_SIMPLE, 0x1p30, shape_of(8, 1), &hw).max_rate_Bps,
        7. / 8 * 32 * p2p_channel_Bps); /* 8 for each of 8 would be 64; there are 32, for the copy
                                           to itself too */
}

/* Of 32 channels a peer among 16 ranks on 2 nodes gets at least 2 and 8 at most, as many as leave
 * none more than a chunk, 128 KiB; and never more than there are parts of 64 KiB. */
static void few_channels_cross_to_one_peer(void **state)
{
    (void)state;
    const struct {
        double kib, channels;
    } of[] = {{1, 1}, {64, 1}, {65, 2}, {256, 2}, {257, 4}, {512, 4}, {513, 8}, {1 << 20, 8}};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        struct nccl_p2p p2p = nccl_p2p(COLL_SEND_RECV, 1024 * of[i].kib, shape_of(16, 1), &test_hw);
        near(p2p.channels, of[i].channels);
        near(p2p.all_channels, 32);
        near(p2p.chunk_bytes, 0x1p17);
    }
}

/* An all_to_all has two channels a remote peer, which do not bound it: GPUs of two nodes fill their
 * NICs. On 512 ranks one channel is left. */
static void nics_bound_an_all_to_all_of_two_nodes(void **state)
{
    (void)state;
    struct coll_cost cost =
        cost_of(COLL_ALL_TO_ALL, COLL_P2P, COLL_SIMPLE, 0x1p30, shape_of(16, 1), &test_hw);
    assert_int_equal(cost.rate_bound, COLL_BOUND_NIC);
    near(nccl_p2p(COLL_ALL_TO_ALL, 0x1p30, shape_of(16, 1), &test_hw).channels, 2);
    near(nccl_p2p(COLL_ALL_TO_ALL, 0x1p30, shape_of(512, 1), &test_hw).channels, 1);
}

/* A channel more for every 512 threads of 8 bytes (LL), 640 of 8 (LL128), 512 of 64 (Simple); at
 * least one. */
static void channels_grow_with_the_message(void **state)
{
    (void)state;
    const double bytes[COLL_PROTOCOL_COUNT] = {4096, 5120, 32768};
    for (int p = 0; p < COLL_PROTOCOL_COUNT; p++) {
        near(nccl_channels((enum coll_protocol)p, 1, 16), 1);
        near(nccl_channels((enum coll_protocol)p, 3 * bytes[p] - 1, 16), 2);
        near(nccl_channels((enum coll_protocol)p, 3 * bytes[p], 16), 3);
        near(nccl_channels((enum coll_protocol)p, 1e9, 16), 16);
    }
}

/* 16 GB on 2 nodes of 8: reduce-scatter inside (14 GB at 100 GB/s), all-reduce of 2 GB with the
 * peer, all 8 rails together at 80 GB/s (8 x 2 GB), all-gather inside. Half of the ring's bytes on
 * the NICs, 30 GB. */
static void hierarchical_only_when_forced(void **state)
{
    (void)state;
    struct coll_shape shape = shape_of(16, 1);
    struct coll_force force = {COLL_HIERARCHICAL, COLL_SIMPLE};
    struct coll_cost cost = coll_choose(COLL_ALL_REDUCE, 16e9, shape, &test_hw, force);
    assert_int_equal(cost.algorithm, COLL_HIERARCHICAL);
    near(cost.bus_bytes / cost.max_rate_Bps, 0.14 + 0.2 + 0.14);
    near(cost.bus_bytes * cost.node_out_factor, 16e9);
    near(cost.bus_bytes * cost.gpu_out_factor, 28e9);
    assert_int_not_equal(coll_choose(COLL_ALL_REDUCE, 16e9, shape, &test_hw, COLL_FREE).algorithm,
        COLL_HIERARCHICAL);
}

/* The same for the halves of an all-reduce: 8 x 1 GB over the rails, 14 GB inside. Latencies and
 * traffic of HBM are those of the stages, rings of 8 in a node and of 2 across. Where there is one
 * node or one GPU in each, and for other kinds, there are no stages. */
static void stages_of_the_hierarchy_add_up(void **state)
{
    (void)state;
    const struct coll_shape shape = shape_of(16, 1), inside = {8, 1, 8}, across = {2, 2, 1};
    const struct coll_force force = {COLL_HIERARCHICAL, COLL_SIMPLE};
    const enum coll_kind kinds[] = {COLL_ALL_GATHER, COLL_REDUCE_SCATTER};
    for (int i = 0; i < 2; i++) {
        struct coll_cost cost = coll_choose(kinds[i], 16e9, shape, &test_hw, force);
        struct coll_cost in = cost_of(kinds[i], COLL_RING, COLL_SIMPLE, 16e9, inside, &test_hw);
        struct coll_cost out = cost_of(kinds[i], COLL_RING, COLL_SIMPLE, 2e9, across, &test_hw);
        assert_int_equal(cost.algorithm, COLL_HIERARCHICAL);
        near(cost.bus_bytes / cost.max_rate_Bps, 0.14 + 0.1);
        near(cost.bus_bytes * cost.node_out_factor, 8e9);
        near(cost.bus_bytes * cost.gpu_out_factor, 14e9);
        near(cost.latency_s, in.latency_s + out.latency_s);
        near(cost.hbm_bytes, in.hbm_bytes + out.hbm_bytes);
    }
    assert_int_not_equal(
        coll_choose(COLL_BROADCAST, 16e9, shape, &test_hw, force).algorithm, COLL_HIERARCHICAL);
    assert_int_not_equal(
        coll_choose(COLL_ALL_REDUCE, 16e9, inside, &test_hw, force).algorithm, COLL_HIERARCHICAL);
    assert_int_not_equal(
        coll_choose(COLL_ALL_REDUCE, 16e9, across, &test_hw, force).algorithm, COLL_HIERARCHICAL);
}

/* What cannot be done as forced is done otherwise, the protocol given up first. */
static void force_falls_back(void **state)
{
    (void)state;
    struct coll_force tree = {COLL_TREE, COLL_LL}, nvls = {COLL_NVLS, COLL_LL128};
    struct coll_shape shape = shape_of(8, 1);
    struct coll_cost cost = coll_choose(COLL_ALL_REDUCE, 1e9, shape, &test_hw, tree);
    assert_int_equal(cost.algorithm, COLL_TREE);
    assert_int_equal(cost.protocol, COLL_LL);
    assert_int_equal(coll_choose(COLL_ALL_GATHER, 1e9, shape, &test_hw, tree).algorithm, COLL_RING);
    assert_int_equal(coll_choose(COLL_ALL_GATHER, 1e9, shape, &test_hw, tree).protocol, COLL_LL);
    assert_int_equal(coll_choose(COLL_ALL_REDUCE, 1e9, shape, &test_hw, nvls).protocol, COLL_LL128);
}

/* A group with one rank a node has one of eight NICs near: 10 GB/s; where there are four, the one
 * near still. */
static void a_lone_rank_reaches_its_own_nic(void **state)
{
    (void)state;
    struct hw hw = test_hw;
    near(cost_of(COLL_ALL_GATHER, COLL_RING, COLL_SIMPLE, 8e9, shape_of(8, 8), &hw).max_rate_Bps,
        10e9);
    hw.node.nics.value = 4;
    near(cost_of(COLL_ALL_GATHER, COLL_RING, COLL_SIMPLE, 8e9, shape_of(8, 8), &hw).max_rate_Bps,
        10e9);
}

static void one_rank_costs_nothing(void **state)
{
    (void)state;
    struct coll_cost cost = coll_choose(COLL_ALL_REDUCE, 1e9, shape_of(1, 1), &test_hw, COLL_FREE);
    near(coll_isolated_s(cost), 0);
    near(cost.sms, 0);
}

/* Twice the bytes never take less time by the same algorithm and protocol; latency that bytes hide
 * never turns negative. NCCL's choice is not always the fastest, so where it changes time may fall
 * (8 nodes of H100: 889 us for 8 MiB, 511 for 16; NVIDIA/nccl-tests#309); what it misses is never
 * faster than the fastest. */
static void larger_messages_take_longer(void **state)
{
    (void)state;
    struct hw hw = reducing();
    for (int kind = 0; kind < COLL_KIND_COUNT; kind++)
        for (int size = 2; size <= 512; size *= 2) {
            double before[COLL_ALGORITHM_COUNT][COLL_PROTOCOL_COUNT] = {0};
            for (double bytes = 8; bytes < 1e11; bytes *= 2) {
                double least_s = HUGE_VAL;
                for (int a = 0; a < COLL_ALGORITHM_COUNT; a++)
                    for (int p = 0; p < COLL_PROTOCOL_COUNT; p++) {
                        struct coll_cost cost;
                        if (!coll_cost(&cost, (enum coll_kind)kind, (enum coll_algorithm)a,
                                (enum coll_protocol)p, bytes, shape_of(size, 1), &hw))
                            continue;
                        assert_true(coll_isolated_s(cost) >= before[a][p]);
                        assert_true(
                            cost.latency_s >= cost.unestimated_s && cost.unestimated_s >= 0);
                        before[a][p] = coll_isolated_s(cost);
                        least_s = fmin(least_s, a == COLL_HIERARCHICAL ? HUGE_VAL : before[a][p]);
                    }
                struct coll_cost cost = coll_nccl_choice(
                    (enum coll_kind)kind, bytes, shape_of(size, 1), &hw, COLL_FREE);
                assert_true(coll_isolated_s(cost) >= least_s);
            }
        }
}

/* What passes each GPU's HBM besides rings: CollNet and switches read and write the message once; a
 * send is read, staged twice and written; DeepEP's tokens are read once and written where they
 * arrive. By time: over NICs 16 GB at 80 GB/s. */
static void traffic_of_hbm_by_algorithm(void **state)
{
    (void)state;
    struct hw hw = reducing();
    hw.cluster.nccl_collnet_efficiency = (struct quantity)NUMBER(0.5);
    struct coll_shape two = shape_of(16, 1);
    static const enum coll_algorithm once[] = {
        COLL_COLLNET_DIRECT, COLL_COLLNET_CHAIN, COLL_NVLS_TREE};
    for (size_t i = 0; i < sizeof once / sizeof *once; i++)
        near(cost_of(COLL_ALL_REDUCE, once[i], COLL_SIMPLE, 8e9, two, &hw).hbm_bytes, 16e9);
    near(cost_of(COLL_ALL_TO_ALL, COLL_P2P, COLL_SIMPLE, 16e9, two, &hw).hbm_bytes, 4 * 15e9);
    near(cost_of(COLL_SEND_RECV, COLL_P2P, COLL_SIMPLE, 1e9, two, &hw).hbm_bytes, 4e9);
    struct coll_cost gather = cost_of(COLL_ALL_GATHER, COLL_RING, COLL_SIMPLE, 16e9, two, &test_hw);
    near(coll_hbm_Bps(gather), gather.hbm_bytes / (15e9 / 80e9));
    near(coll_hbm_Bps((struct coll_cost){0}), 0);
}

/* Links that serve a group and may be slow: all 64 NICs of 8 nodes, 8 of them where each node has a
 * rank, and one of a group in a node. */
static void links_of_a_group(void **state)
{
    (void)state;
    near(coll_links(shape_of(64, 1), &test_hw), 64);
    near(coll_links(shape_of(8, 8), &test_hw), 8);
    near(coll_links(shape_of(8, 1), &test_hw), 1);
    struct hw hw = test_hw;
    hw.node.nics.value = 1; /* eight GPUs share it */
    near(coll_links(shape_of(16, 1), &hw), 2);
    near(coll_links(shape_of(2, 8), &hw), 2);
}

/* A group on the second node, every second GPU of the third: each lies in one. */
static void groups_that_begin_on_a_later_node(void **state)
{
    (void)state;
    struct coll_shape shape = coll_shape((struct coll_group){8, 1, 8}, 8);
    assert_true(shape.nodes == 1 && shape.per_node == 8);
    shape = coll_shape((struct coll_group){16, 2, 4}, 8);
    assert_true(shape.nodes == 1 && shape.per_node == 4);
}

/* The longest stage names what bounds the hierarchy: of 16 GB 0.2 s on NICs of 80 GB/s a node, 0.14
 * in it; with NICs twice as fast the links inside. One NIC of eight carries all rails: 1.6 s. */
static void the_longest_stage_bounds_the_hierarchy(void **state)
{
    (void)state;
    const struct coll_shape shape = shape_of(16, 1);
    struct hw hw = test_hw;
    struct coll_cost cost =
        cost_of(COLL_ALL_REDUCE, COLL_HIERARCHICAL, COLL_SIMPLE, 16e9, shape, &hw);
    assert_int_equal(cost.rate_bound, COLL_BOUND_NIC);
    hw.node.nics.value = 1;
    cost = cost_of(COLL_ALL_REDUCE, COLL_HIERARCHICAL, COLL_SIMPLE, 16e9, shape, &hw);
    near(cost.bus_bytes / cost.max_rate_Bps, 0.14 + 1.6 + 0.14);
    hw.node.nics.value = 8;
    hw.node.nic_bandwidth.value = 20e9;
    cost = cost_of(COLL_ALL_REDUCE, COLL_HIERARCHICAL, COLL_SIMPLE, 16e9, shape, &hw);
    assert_int_equal(cost.rate_bound, COLL_BOUND_NVLINK);
}

/* LL128 by generation and version: any of Ampere, Hopper from 2.18 on, Blackwell from 2.26 on;
 * Simple always. */
static void who_knows_ll128(void **state)
{
    (void)state;
    static const struct {
        const char *arch;
        int first;
    } known[] = {{"Ampere", HW_NCCL_OLDEST}, {"Hopper", 18}, {"Blackwell", 26}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct hw hw = test_hw;
        hw.gpu.arch = known[i].arch;
        for (int version = HW_NCCL_OLDEST; version <= HW_NCCL_NEWEST; version++) {
            hw.cluster.nccl_version = HW_NCCL_NEWEST - version;
            assert_int_equal(possible(COLL_ALL_GATHER, COLL_RING, COLL_LL128, shape_of(8, 1), &hw),
                version >= known[i].first);
            assert_true(possible(COLL_ALL_GATHER, COLL_RING, COLL_SIMPLE, shape_of(8, 1), &hw));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_lie_on_nodes),
        cmocka_unit_test(channels_hold_sms),
        cmocka_unit_test(protocols_by_size),
        cmocka_unit_test(protocols_that_are_not_there),
        cmocka_unit_test(small_all_reduces_take_the_tree),
        cmocka_unit_test(a_tree_on_two_nodes_halves_the_network_traffic),
        cmocka_unit_test(slower_links),
        cmocka_unit_test(generations_between_the_tuners_rows),
        cmocka_unit_test(a_gpu_alone_on_its_node_needs_no_links_there),
        cmocka_unit_test(rings_stage_read_and_write),
        cmocka_unit_test(lone_ranks_gather_by_pat),
        cmocka_unit_test(all_to_all_crosses_with_most_of_it),
        cmocka_unit_test(send_recv_crosses_by_one_nic),
        cmocka_unit_test(peer_copies_hold_no_sms),
        cmocka_unit_test(copy_engines_hold_no_sms),
        cmocka_unit_test(few_channels_bound_one_peer),
        cmocka_unit_test(few_channels_cross_to_one_peer),
        cmocka_unit_test(nics_bound_an_all_to_all_of_two_nodes),
        cmocka_unit_test(channels_grow_with_the_message),
        cmocka_unit_test(hierarchical_only_when_forced),
        cmocka_unit_test(stages_of_the_hierarchy_add_up),
        cmocka_unit_test(force_falls_back),
        cmocka_unit_test(a_lone_rank_reaches_its_own_nic),
        cmocka_unit_test(one_rank_costs_nothing),
        cmocka_unit_test(larger_messages_take_longer),
        cmocka_unit_test(traffic_of_hbm_by_algorithm),
        cmocka_unit_test(links_of_a_group),
        cmocka_unit_test(groups_that_begin_on_a_later_node),
        cmocka_unit_test(the_longest_stage_bounds_the_hierarchy),
        cmocka_unit_test(who_knows_ll128),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
