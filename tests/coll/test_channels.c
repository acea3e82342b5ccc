/* Channels across nodes: what logs of NCCL show, and what follows from its rules for NICs that no log is of. */
#include "round.h"

/* GPUs and NICs of a node, a NIC's Gb/s, and what the GPU has: NVLinks in GB/s of the data sheet, PCIe of copies. */
struct machine {
    const char *arch;
    double gpus, nics, nic_Gbps, nvlink_GBps, pcie_GBps;
    int found;
    double speed_GBps;
    int channels;
};

static struct hw hw_of(const struct machine *machine)
{
    struct hw hw = test_hw;
    hw.cluster.nccl_channels = (struct quantity){0};
    hw.gpu.arch = machine->arch;
    hw.node.gpus.value = machine->gpus;
    hw.node.nics.value = machine->nics;
    hw.node.nic_bandwidth.value = machine->nic_Gbps * 1e9 / 8;
    hw.node.gpu_bandwidth.value = machine->nvlink_GBps * 1e9;
    hw.node.pcie_bandwidth = (struct quantity)NUMBER(machine->pcie_GBps * 1e9);
    return hw;
}

static void check(const struct machine *machine)
{
    struct hw hw = hw_of(machine);
    struct coll_search search = coll_search(&hw);
    if (search.channels != machine->channels || search.found != machine->found ||
        fabs(search.speed_Bps - machine->speed_GBps * 1e9) > 1)
        fail_msg("%s, %g x %g Gb/s: %d x %g GB/s, %d channels", machine->arch, machine->nics, machine->nic_Gbps,
            search.found, search.speed_Bps / 1e9, search.channels);
    near(coll_channels(true, &hw), machine->channels);
    near(coll_channels(false, &hw), 24);
}

/* "coll channels" of logs, where they state what the search found too. Sources, of the row's NICs and GPUs:
 * 1 4 x 100 Gb/s of p4d, NCCL 2.8.3: 8 (AWS EFA/EKS README; aws-ofi-nccl#715)
 * 2 one NIC of p4d or A800: 2 (aws-ofi-nccl#64, nccl-tests#133)
 * 3 8 x 200 Gb/s of A100: 16 (NVIDIA/nccl#820, read by another)
 * 4 Leonardo, 2 x 4 A100 with 4 NICs, NCCL 2.18: 8 (nccl-tests#352)
 * 5 8 x 400 Gb/s of H100: 16 (nccl-tests#319), the search "nChannels 8, bw 48/48" (PCIe 5 caps 50 at 48)
 * 6 4 NICs beside 8 H100: 16 (nccl#1357; its speed is not stated, 400 Gb/s as elsewhere)
 * 7 32 x 100 Gb/s of p5: 16 (awsome-distributed-training#386)
 * 8 4 x 200 Gb/s of 4 GH200: 8 (Slingshot)
 * 9 H20, 2 of the GPUs with a NIC each: 8 (nccl#1189, the search "4 x 24": two a NIC after the split)
 * 10 8 x 400 Gb/s of B200: 16 (MIT, 2 x 8) */
static void counts_of_the_logs(void **state)
{
    (void)state;
    static const struct machine machines[] = {
        {"Ampere", 8, 4, 100, 300, 26, 4, 12, 8},
        {"Ampere", 8, 1, 100, 300, 26, 1, 12, 2},
        {"Ampere", 8, 8, 200, 300, 26, 8, 24, 16},
        {"Ampere", 4, 4, 100, 300, 26, 4, 12, 8},
        {"Hopper", 8, 8, 400, 450, 55.4, 8, 48, 16},
        {"Hopper", 8, 4, 400, 450, 55.4, 4, 48, 16},
        {"Hopper", 8, 32, 100, 450, 55.4, 8, 48, 16},
        {"Hopper", 4, 4, 200, 450, 450, 4, 24, 8},
        {"Hopper", 2, 2, 400, 450, 55.4, 2, 48, 8},
        {"Blackwell", 8, 8, 400, 900, 55.4, 8, 48, 16},
    };
    for (size_t i = 0; i < sizeof machines / sizeof *machines; i++)
        check(&machines[i]);
}

/* Faster NICs than any log is of. H100: eight channels of 48 GB/s fill what NCCL counts of a GPU's NVLinks, 18 x 20.6 =
 * 371, so 800 Gb/s give no more, be PCIe 5 in the way (48 GB/s a slot) or not (96). B200 with PCIe 6: 8 x 96 fill 722,
 * 96 is split into two of 48, all are doubled: 32. Four NICs of 200 Gb/s have 4 x 24, doubled 8; of 400 Gb/s 4 x 48,
 * split into 8 x 24 and doubled. A rate between the table's: 350 Gb/s are 43.75 GB/s, of which a channel takes 42; of
 * four such NICs too channels are split, as on GPUs after Ampere slower ones than 50 GB/s stay whole where there are
 * more than four (ncclTopoDupChannels: ccMin > 80 && bwIntra < 50 && nChannels > 4). */
static void faster_nics_open_more_where_there_is_room(void **state)
{
    (void)state;
    static const struct machine machines[] = {
        {"Hopper", 8, 8, 800, 450, 55.4, 8, 48, 16},
        {"Hopper", 8, 8, 800, 450, 110, 8, 48, 16},
        {"Blackwell", 8, 8, 800, 900, 110, 8, 96, 32},
        {"Blackwell", 8, 8, 800, 900, 55.4, 8, 48, 16},
        {"Hopper", 8, 4, 200, 450, 55.4, 4, 24, 8},
        {"Hopper", 8, 8, 350, 450, 55.4, 8, 42, 16},
        {"Hopper", 8, 4, 350, 450, 55.4, 4, 42, 16},
    };
    for (size_t i = 0; i < sizeof machines / sizeof *machines; i++)
        check(&machines[i]);
    const struct machine slot = machines[0];
    struct hw hw = hw_of(&slot);
    assert_true(coll_search(&hw).pcie && coll_search(&hw).full);
    near(coll_search(&hw).nic_Bps, 48e9);
    hw.cluster.nccl_channels = (struct quantity)NUMBER(12); /* what a file states counts */
    near(coll_channels(true, &hw), 12);
}

/* The rules of versions (coll.h). H100 with 8 x 400 Gb/s: 8 x 48 doubled to 16, once more to 32 in 2.18 and 2.19 only.
 * A lone NIC of 400 Gb/s: 48, split into 2 x 24, 4; from 2.20 to 2.27 as many as NVLS has, 16 of Hopper and 32 of
 * Blackwell, where there is NVLS. B200 with 8 x 400 Gb/s: 16, of those versions 32. */
static void channels_by_version(void **state)
{
    (void)state;
    static const struct {
        struct machine machine;
        int version, channels;
        bool nvls;
    } cases[] = {
        {{"Hopper", 8, 8, 400, 450, 55.4, 8, 48, 0}, 17, 16, true},
        {{"Hopper", 8, 8, 400, 450, 55.4, 8, 48, 0}, 18, 32, true},
        {{"Hopper", 8, 8, 400, 450, 55.4, 8, 48, 0}, 19, 32, true},
        {{"Hopper", 8, 8, 400, 450, 55.4, 8, 48, 0}, 20, 16, true},
        {{"Hopper", 8, 1, 400, 450, 55.4, 1, 48, 0}, 19, 4, true},
        {{"Hopper", 8, 1, 400, 450, 55.4, 1, 48, 0}, 20, 16, true},
        {{"Hopper", 8, 1, 400, 450, 55.4, 1, 48, 0}, 27, 16, true},
        {{"Hopper", 8, 1, 400, 450, 55.4, 1, 48, 0}, 27, 4, false},
        {{"Hopper", 8, 1, 400, 450, 55.4, 1, 48, 0}, 28, 4, true},
        {{"Blackwell", 8, 8, 400, 900, 55.4, 8, 48, 0}, 27, 32, true},
        {{"Blackwell", 8, 8, 400, 900, 55.4, 8, 48, 0}, 28, 16, true},
        {{"Ampere", 8, 8, 200, 300, 26, 8, 24, 0}, 19, 16, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct hw hw = hw_of(&cases[i].machine);
        hw.cluster.nccl_version = HW_NCCL_NEWEST - cases[i].version;
        if (cases[i].nvls)
            hw.node.nvls_efficiency = (struct quantity)NUMBER(0.6);
        if (coll_search(&hw).channels != cases[i].channels)
            fail_msg(
                "%s of NCCL 2.%d: %d channels", cases[i].machine.arch, cases[i].version, coll_search(&hw).channels);
    }
}

/* A NIC is no faster than its way over PCIe: 8 NICs of 100 GB/s behind slots of 55.4, and two NICs for each of four
 * GPUs, 8 x 40 GB/s behind 4 slots. */
static void pcie_bounds_nics(void **state)
{
    (void)state;
    struct hw hw = hw_of(&(struct machine){"Hopper", 8, 8, 800, 450, 55.4, 0, 0, 0});
    near(coll_nic_Bps(&hw), 55.4e9);
    near(coll_node_Bps(&hw), 8 * 55.4e9);
    struct coll_cost cost = cost_of(COLL_ALL_REDUCE, COLL_RING, COLL_SIMPLE, 8e9, shape_of(32, 1), &hw);
    assert_int_equal(cost.rate_bound, COLL_BOUND_PCIE);
    near(cost.max_rate_Bps, 8 * 55.4e9);
    hw = hw_of(&(struct machine){"Hopper", 4, 8, 320, 450, 55.4, 0, 0, 0});
    near(coll_nic_Bps(&hw), 27.7e9);
    near(coll_node_Bps(&hw), 4 * 55.4e9);
}

/* A ring of 32 GPUs whose NICs, 8 x 12.5 GB/s, are far slower than its NVLinks: busbw of a large message is what they
 * carry, and twice as fast NICs are worth 1.5 times at least; a small message takes as long as before, and is said to
 * be bound by latency. Channels of 20 GB/s are the limit where NICs carry more: 16 of them 320 GB/s. */
static void a_faster_nic_helps_where_it_binds(void **state)
{
    (void)state;
    struct machine machine = {"Hopper", 8, 8, 100, 450, 55.4, 0, 0, 0};
    struct hw slow = hw_of(&machine);
    slow.cluster.nccl_channel_bandwidth = (struct quantity)NUMBER(20e9);
    struct hw fast = slow, fastest = slow;
    fast.node.nic_bandwidth.value *= 2;
    fastest.node.nic_bandwidth.value *= 4;
    struct coll_shape shape = shape_of(32, 1);
    static const struct coll_force ring = {COLL_RING, COLL_SIMPLE};
    struct coll_cost before = coll_choose(COLL_ALL_REDUCE, 8e9, shape, &slow, ring),
                     after = coll_choose(COLL_ALL_REDUCE, 8e9, shape, &fast, ring),
                     most = coll_choose(COLL_ALL_REDUCE, 8e9, shape, &fastest, ring);
    near(before.max_rate_Bps, 100e9);
    assert_int_equal(coll_bound(&before), COLL_BOUND_NIC);
    near(after.max_rate_Bps, 200e9);
    assert_int_equal(coll_bound(&after), COLL_BOUND_NIC);
    assert_true(coll_isolated_s(before) > 1.5 * coll_isolated_s(after));
    near(most.max_rate_Bps, 320e9);
    assert_int_equal(coll_bound(&most), COLL_BOUND_CHANNELS);
    before = coll_choose(COLL_ALL_REDUCE, 1e3, shape, &slow, COLL_FREE);
    after = coll_choose(COLL_ALL_REDUCE, 1e3, shape, &fast, COLL_FREE);
    /* 1 kB of LL crosses at 24 % of 100 GB/s, up and down two levels: 0.16 us of 35, half of it gained */
    assert_true(coll_isolated_s(before) - coll_isolated_s(after) < 5e-3 * coll_isolated_s(before));
    assert_int_equal(coll_bound(&before), COLL_BOUND_LATENCY);
    assert_int_equal(coll_bound(&after), COLL_BOUND_LATENCY);
}

/* The other bounds, one by one. In a node 100 GB/s of NVLink, or of PCIe. LL's flags. Uplinks of a third of
 * the NICs. Copies through host memory. Of a group of one: nothing. */
static void each_bound_has_its_name(void **state)
{
    (void)state;
    struct hw hw = test_hw;
    struct coll_cost cost = cost_of(COLL_ALL_GATHER, COLL_RING, COLL_SIMPLE, 8e9, shape_of(8, 1), &hw);
    assert_int_equal(coll_bound(&cost), COLL_BOUND_NVLINK);
    cost = cost_of(COLL_ALL_GATHER, COLL_RING, COLL_LL, 8e9, shape_of(8, 1), &hw);
    assert_int_equal(coll_bound(&cost), COLL_BOUND_PROTOCOL);
    cost = cost_of(COLL_ALL_REDUCE, COLL_TREE, COLL_LL, 8e9, shape_of(32, 1), &hw);
    assert_int_equal(coll_bound(&cost), COLL_BOUND_PROTOCOL);
    hw.node.fabric = HW_PCIE;
    cost = cost_of(COLL_ALL_GATHER, COLL_RING, COLL_SIMPLE, 8e9, shape_of(8, 1), &hw);
    assert_int_equal(coll_bound(&cost), COLL_BOUND_PCIE);
    hw = test_hw;
    hw.cluster.oversubscription.value = 3;
    cost = cost_of(COLL_ALL_GATHER, COLL_RING, COLL_SIMPLE, 8e9, shape_of(16, 1), &hw);
    assert_int_equal(coll_bound(&cost), COLL_BOUND_NETWORK);
    hw.cluster.oversubscription.value = 1;
    hw.cluster.nccl_staging_bandwidth = (struct quantity)NUMBER(6e9);
    cost = cost_of(COLL_ALL_REDUCE, COLL_RING, COLL_SIMPLE, 8e9, shape_of(16, 1), &hw);
    assert_int_equal(coll_bound(&cost), COLL_BOUND_HOST_MEMORY);
    cost = cost_of(COLL_ALL_REDUCE, COLL_RING, COLL_SIMPLE, 8e9, shape_of(1, 1), &hw);
    assert_int_equal(coll_bound(&cost), COLL_BOUND_NONE);
    for (int b = 0; b < COLL_BOUND_COUNT; b++)
        assert_non_null(coll_bound_names[b]);
    assert_null(coll_bound_names[COLL_BOUND_COUNT]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_of_the_logs),
        cmocka_unit_test(faster_nics_open_more_where_there_is_room),
        cmocka_unit_test(channels_by_version),
        cmocka_unit_test(pcie_bounds_nics),
        cmocka_unit_test(a_faster_nic_helps_where_it_binds),
        cmocka_unit_test(each_bound_has_its_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
