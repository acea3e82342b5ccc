/* Channels across nodes: what logs of NCCL show, and what follows from its rules for NICs that no
 * log is of. */
#include "coll/nccl.h"
#include "coll/tuner.h"
#include "round.h"

/* GPUs and NICs of a node, a NIC's Gb/s, and what the GPU has: NVLinks in GB/s of the data sheet,
 * PCIe of copies. */
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
        fail_msg("%s, %g x %g Gb/s: %d x %g GB/s, %d channels", machine->arch, machine->nics,
            machine->nic_Gbps, search.found, search.speed_Bps / 1e9, search.channels);
    near(coll_channels(true, &hw), machine->channels);
    near(coll_channels(false, &hw), 24);
}

/* "coll channels" of logs, where they state what the search found too. Sources, of the row's NICs
 * and GPUs: 1 4 x 100 Gb/s of p4d, NCCL 2.8.3: 8 (AWS EFA/EKS README; aws-ofi-nccl#715) 2 one NIC
 * of p4d or A800: 2 (aws-ofi-nccl#64, nccl-tests#133) 3 8 x 200 Gb/s of A100: 16 (NVIDIA/nccl#820,
 * read by another) 4 Leonardo, 2 x 4 A100 with 4 NICs, NCCL 2.18: 8 (nccl-tests#352) 5 8 x 400 Gb/s
 * of H100: 16 (nccl-tests#319), the search "nChannels 8, bw 48/48" (PCIe 5 caps 50 at 48) 6 4 NICs
 * beside 8 H100: 16 (nccl#1357; its speed is not stated, 400 Gb/s as elsewhere) 7 32 x 100 Gb/s of
 * p5: 16 (awsome-distributed-training#386) 8 4 x 200 Gb/s of 4 GH200: 8 (Slingshot) 9 H20, 2 of the
 * GPUs with a NIC each: 8 (nccl#1189, the search "4 x 24": two a NIC after the split) 10 8 x 400
 * Gb/s of B200: 16 (MIT, 2 x 8) */
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

/* NCCL's speeds across nodes (speedArrayInter, sm90SpeedArrayInter, sm100SpeedArrayInter of
 * src/graph/search.cc): a lone NIC of just such a speed has one channel of it. */
static void a_nic_of_a_speed_of_the_table_has_that(void **state)
{
    (void)state;
    static const struct {
        const char *arch;
        double GBps[20];
    } tables[] = {
        {"Ampere", {48, 30, 28, 24, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3, 2.4, 1.2, 0.24, 0.12}},
        {"Hopper", {48, 45, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6, 3, 2.4, 1.2, 0.24, 0.12}},
        {"Blackwell",
            {96, 48, 45.1, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6, 3, 2.4, 1.2, 0.24, 0.12}},
    };
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
        for (int i = 0; tables[t].GBps[i] > 0; i++) {
            struct hw hw = hw_of(
                &(struct machine){tables[t].arch, 1, 1, 8 * tables[t].GBps[i], 900, 450, 0, 0, 0});
            struct coll_search search = coll_search(&hw);
            assert_int_equal(search.found, 1);
            assert_true(fabs(search.speed_Bps - tables[t].GBps[i] * 1e9) < 1);
        }
}

/* Faster NICs than any log is of. H100: eight channels of 48 GB/s fill what NCCL counts of a GPU's
 * NVLinks, 18 x 20.6 = 371, so 800 Gb/s give no more, be PCIe 5 in the way (48 GB/s a slot) or not
 * (96). B200 with PCIe 6: 8 x 96 fill 722, 96 is split into two of 48, all are doubled: 32. Four
 * NICs of 200 Gb/s have 4 x 24, doubled 8; of 400 Gb/s 4 x 48, split into 8 x 24 and doubled. A
 * rate between the table's: 350 Gb/s are 43.75 GB/s, of which a channel takes 42; of four such NICs
 * too channels are split, as on GPUs after Ampere slower ones than 50 GB/s stay whole where there
 * are more than four (ncclTopoDupChannels: ccMin > 80 && bwIntra < 50 && nChannels > 4). */
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

/* The rules of versions (coll.h). H100 with 8 x 400 Gb/s: 8 x 48 doubled to 16, once more to 32 in
 * 2.18 and 2.19 only. A lone NIC of 400 Gb/s: 48, split into 2 x 24, 4; from 2.20 to 2.27 as many
 * as NVLS has, 16 of Hopper and 32 of Blackwell, where there is NVLS. B200 with 8 x 400 Gb/s: 16,
 * of those versions 32. */
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
            fail_msg("%s of NCCL 2.%d: %d channels", cases[i].machine.arch, cases[i].version,
                coll_search(&hw).channels);
    }
}

/* A NIC is no faster than its way over PCIe: 8 NICs of 100 GB/s behind slots of 55.4, and two NICs
 * for each of four GPUs, 8 x 40 GB/s behind 4 slots. */
static void pcie_bounds_nics(void **state)
{
    (void)state;
    struct hw hw = hw_of(&(struct machine){"Hopper", 8, 8, 800, 450, 55.4, 0, 0, 0});
    near(coll_nic_Bps(&hw), 55.4e9);
    near(coll_node_Bps(&hw), 8 * 55.4e9);
    struct coll_cost cost =
        cost_of(COLL_ALL_REDUCE, COLL_RING, COLL_SIMPLE, 8e9, shape_of(32, 1), &hw);
    assert_int_equal(cost.rate_bound, COLL_BOUND_PCIE);
    near(cost.max_rate_Bps, 8 * 55.4e9);
    hw = hw_of(&(struct machine){"Hopper", 4, 8, 320, 450, 55.4, 0, 0, 0});
    near(coll_nic_Bps(&hw), 27.7e9);
    near(coll_node_Bps(&hw), 4 * 55.4e9);
}

/* A ring of 32 GPUs whose NICs, 8 x 12.5 GB/s, are far slower than its NVLinks: busbw of a large
 * message is what they carry, and twice as fast NICs are worth 1.5 times at least; a small message
 * takes as long as before, and is said to be bound by latency. Channels of 20 GB/s are the limit
 * where NICs carry more: 16 of them 320 GB/s. */
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
    struct coll_cost before = coll_nccl_choice(COLL_ALL_REDUCE, 8e9, shape, &slow, ring),
                     after = coll_nccl_choice(COLL_ALL_REDUCE, 8e9, shape, &fast, ring),
                     most = coll_nccl_choice(COLL_ALL_REDUCE, 8e9, shape, &fastest, ring);
    near(before.max_rate_Bps, 100e9);
    assert_int_equal(coll_bound(&before), COLL_BOUND_NIC);
    near(after.max_rate_Bps, 200e9);
    assert_int_equal(coll_bound(&after), COLL_BOUND_NIC);
    assert_true(coll_isolated_s(before) > 1.5 * coll_isolated_s(after));
    near(most.max_rate_Bps, 320e9);
    assert_int_equal(coll_bound(&most), COLL_BOUND_CHANNELS);
    before = coll_nccl_choice(COLL_ALL_REDUCE, 1e3, shape, &slow, COLL_FREE);
    after = coll_nccl_choice(COLL_ALL_REDUCE, 1e3, shape, &fast, COLL_FREE);
    /* 1 kB of LL crosses at 24 % of 100 GB/s, up and down two levels: 0.16 us of 35, half of it
     * gained */
    assert_true(coll_isolated_s(before) - coll_isolated_s(after) < 5e-3 * coll_isolated_s(before));
    assert_int_equal(coll_bound(&before), COLL_BOUND_LATENCY);
    assert_int_equal(coll_bound(&after), COLL_BOUND_LATENCY);
}

/* The other bounds, one by one. In a node 100 GB/s of NVLink, or of PCIe. LL's flags. Uplinks of a
 * third of the NICs. Copies through host memory. Of a group of one: nothing. */
static void each_bound_has_its_name(void **state)
{
    (void)state;
    struct hw hw = test_hw;
    struct coll_cost cost =
        cost_of(COLL_ALL_GATHER, COLL_RING, COLL_SIMPLE, 8e9, shape_of(8, 1), &hw);
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

/* What NCCL's tuner multiplies: channels, and their speed inside a node and across. p4d: 4 of 12
 * GB/s, of a tree inside a node 20, the fastest of its table up to 24. H100 with 8 x 400 Gb/s: a
 * tree's 48 inside is less than what is left of NVLink, 371 / 8, but never less than across; NVLS
 * has the 8 GPUs for heads, 45 up to 46.4 of the table across nodes, 40 of that inside one. 72 GPUs
 * of a rack are no more than 32 heads: 722 / 32 = 22.6. */
static void graphs_of_the_tuner(void **state)
{
    (void)state;
    static const struct {
        struct machine machine;
        enum coll_algorithm algorithm;
        int nodes;
        double channels, inside_GBps, across_GBps;
    } cases[] = {
        {{"Ampere", 8, 4, 100, 300, 26, 0, 0, 0}, COLL_RING, 2, 4, 12, 12},
        {{"Ampere", 8, 4, 100, 300, 26, 0, 0, 0}, COLL_TREE, 2, 4, 20, 12},
        {{"Hopper", 8, 8, 400, 450, 55.4, 0, 0, 0}, COLL_RING, 2, 8, 48, 48},
        {{"Hopper", 8, 8, 400, 450, 55.4, 0, 0, 0}, COLL_TREE, 2, 8, 48, 48},
        {{"Hopper", 8, 8, 400, 450, 55.4, 0, 0, 0}, COLL_NVLS_TREE, 2, 8, 45, 48},
        {{"Hopper", 8, 8, 400, 450, 55.4, 0, 0, 0}, COLL_NVLS, 1, 8, 40, 40},
        {{"Hopper", 8, 4, 200, 450, 55.4, 0, 0, 0}, COLL_NVLS_TREE, 2, 4, 24, 24},
        {{"Blackwell", 72, 72, 400, 900, 110, 0, 0, 0}, COLL_NVLS, 1, 32, 20, 20},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct hw hw = hw_of(&cases[i].machine);
        int gpus = (int)cases[i].machine.gpus;
        struct nccl_graph graph = nccl_graph(cases[i].algorithm,
            (struct coll_shape){cases[i].nodes * gpus, cases[i].nodes, gpus}, &hw);
        if (graph.channels != cases[i].channels ||
            fabs(graph.inside_Bps - cases[i].inside_GBps * 1e9) > 1 ||
            fabs(graph.across_Bps - cases[i].across_GBps * 1e9) > 1)
            fail_msg("case %zu: %g channels, %g and %g GB/s", i, graph.channels,
                graph.inside_Bps / 1e9, graph.across_Bps / 1e9);
    }
}

/* The sentence of the header. */
static void channels_in_words(void **state)
{
    (void)state;
    char words[512];
    struct hw hw = hw_of(&(struct machine){"Hopper", 8, 8, 400, 450, 55.4, 0, 0, 0});
    assert_string_equal(coll_channels_words(words, sizeof words, &hw),
        "16 channels: its search finds 8 of 48 GB/s, doubled (to it a NIC is 48 GB/s by its PCIe "
        "slot, a GPU's links in the node 370.8 GB/s)");
    hw = hw_of(&(struct machine){"Blackwell", 8, 8, 800, 900, 110, 0, 0, 0});
    assert_string_equal(coll_channels_words(words, sizeof words, &hw),
        "32 channels: its search finds 8 of 96 GB/s, split in two, doubled (to it a NIC is 96 GB/s "
        "by its PCIe slot, a GPU's links in the node 721.8 GB/s)");
    hw.cluster.nccl_channels = (struct quantity)NUMBER(12);
    assert_string_equal(
        coll_channels_words(words, sizeof words, &hw), "12 channels, as nccl_channels says");
}

/* Estimates of old and new versions by NCCL's own arithmetic (src/graph/tuning.cc), on two nodes of
 * 8 A100 with 4 x 100 Gb/s unless said otherwise. Ring, 30 steps of which 2 across (and 2 more of
 * 2.14 to 2.22): LL of 2.10, 3.6 + 28 x 1.8 x 0.47 + 2 x 2.7 us; LL of 2.18, 6.6 + 26 x 1 (a
 * network step posts no faster) + 4 x 2.7; Simple of 2.27, 8.4 + 28 x 3.4 + 2 x 14. Broadcast by
 * Simple, 16 ranks: 8.4 + 16 x 14. Tree, 14 steps inside and one level: 8.4 + 2 (7 x 4 + 14). NVLS
 * between nodes: 2.18 23 + 2 x 19 and thrice that on four; 2.27 25 + 2 x 14, 2.30 25 + 2 x 20.9; on
 * four two levels. PAT of 16 lone ranks: 8 + 4 x 14 / 3.5 + 16 x 2.8. */
static void estimates_by_version(void **state)
{
    (void)state;
    static const struct {
        int version;
        enum coll_kind kind;
        enum coll_algorithm algorithm;
        enum coll_protocol protocol;
        int nodes, per_node;
        double us;
    } cases[] = {
        {10, COLL_ALL_REDUCE, COLL_RING, COLL_LL, 2, 8, 3.6 + 28 * 1.8 * 0.47 + 2 * 2.7},
        {18, COLL_ALL_REDUCE, COLL_RING, COLL_LL, 2, 8, 6.6 + 26 + 4 * 2.7},
        {27, COLL_ALL_REDUCE, COLL_RING, COLL_LL, 2, 8, 6.6 + 28 + 2 * 2.7},
        {27, COLL_ALL_REDUCE, COLL_RING, COLL_SIMPLE, 2, 8, 8.4 + 28 * 3.4 + 2 * 14},
        {27, COLL_ALL_REDUCE, COLL_RING, COLL_SIMPLE, 1, 8, 8.4 + 14 * 3.4},
        {27, COLL_ALL_GATHER, COLL_RING, COLL_SIMPLE, 2, 8, 8.4 + 14 * 3.4 + 14},
        {18, COLL_ALL_GATHER, COLL_RING, COLL_SIMPLE, 2, 8, 8.4 + 14 * 3.4 + 14},
        {27, COLL_BROADCAST, COLL_RING, COLL_SIMPLE, 2, 8, 8.4 + 16 * 14},
        {27, COLL_BROADCAST, COLL_RING, COLL_LL, 2, 8, 6.6 + 16 * 2.7},
        {27, COLL_REDUCE, COLL_RING, COLL_SIMPLE, 1, 8, 8.4 + 3.4},
        {27, COLL_ALL_REDUCE, COLL_TREE, COLL_SIMPLE, 2, 8, 8.4 + 2 * (7 * 4 + 14)},
        {27, COLL_ALL_REDUCE, COLL_TREE, COLL_SIMPLE, 4, 8, 8.4 + 2 * (7 * 4 + 2 * 14)},
        {10, COLL_ALL_REDUCE, COLL_TREE, COLL_LL, 2, 8, 4.4 + 2 * (7 * 1.8 * 0.52 + 5)},
        {18, COLL_ALL_REDUCE, COLL_NVLS_TREE, COLL_SIMPLE, 2, 8, 23 + 2 * 19},
        {18, COLL_ALL_REDUCE, COLL_NVLS_TREE, COLL_SIMPLE, 4, 8, 23 + 6 * 19},
        {27, COLL_ALL_REDUCE, COLL_NVLS_TREE, COLL_SIMPLE, 2, 8, 25 + 2 * 14},
        {30, COLL_ALL_REDUCE, COLL_NVLS_TREE, COLL_SIMPLE, 4, 8, 25 + 4 * 20.9},
        {27, COLL_ALL_GATHER, COLL_PAT, COLL_SIMPLE, 16, 1, 8 + 4 * 14 / 3.5 + 16 * 2.8},
    };
    struct hw hw = hw_of(&(struct machine){"Ampere", 8, 4, 100, 300, 26, 0, 0, 0});
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double estimate_s;
        hw.cluster.nccl_version = HW_NCCL_NEWEST - cases[i].version;
        hw.gpu.arch = cases[i].version == 30
                          ? "Hopper"
                          : "Ampere"; /* from 2.28 on NVLS counts for those that have it */
        int ranks = cases[i].nodes * cases[i].per_node;
        const struct coll_query query = {cases[i].kind, cases[i].protocol, 0x1p-20,
            {ranks, cases[i].nodes, cases[i].per_node}, &hw};
        assert_true(nccl_estimate(&estimate_s, &query, cases[i].algorithm));
        if (fabs(estimate_s * 1e6 - cases[i].us) > 1e-6)
            fail_msg("case %zu: %.9g us, not %.9g", i, estimate_s * 1e6, cases[i].us);
    }
}

/* Bandwidth of 1 TiB by the same arithmetic: a ring of 4 x 12 GB/s, 16/30 of it; of LL a quarter in
 * 2.10 and half from 2.23 on; PAT three quarters of a ring. A large all_reduce of rings over nodes
 * waits 1.4 times the latency, of Volta 1.9. A plugin's stated latency comes to each step across,
 * twice for Simple. */
static void bandwidth_by_version(void **state)
{
    (void)state;
    static const double tib = 0x1p40;
    struct hw hw = hw_of(&(struct machine){"Ampere", 8, 4, 100, 300, 26, 0, 0, 0});
    double estimate_s;
    struct coll_query query = {COLL_ALL_REDUCE, COLL_LL, tib, {16, 2, 8}, &hw};
    hw.cluster.nccl_version = HW_NCCL_NEWEST - 10;
    assert_true(nccl_estimate(&estimate_s, &query, COLL_RING));
    near(estimate_s, (3.6 + 28 * 1.8 * 0.47 + 2 * 2.7) * 1e-6 + tib / (12e9 * 16 / 30));
    hw.cluster.nccl_version = HW_NCCL_NEWEST - 27;
    assert_true(nccl_estimate(&estimate_s, &query, COLL_RING));
    near(estimate_s, (6.6 + 28 + 2 * 2.7) * 1e-6 + tib / (24e9 * 16 / 30));
    query.protocol = COLL_SIMPLE;
    query.bytes = 1e6; /* latency counts */
    assert_true(nccl_estimate(&estimate_s, &query, COLL_RING));
    near(estimate_s, 1.4 * (8.4 + 28 * 3.4 + 2 * 14) * 1e-6 + 1e6 / (48e9 * 16 / 30));
    hw.cluster.nccl_plugin = HW_PLUGIN_P4D;
    assert_true(nccl_estimate(&estimate_s, &query, COLL_RING));
    near(estimate_s, 1.4 * (8.4 + 28 * 3.4 + 2 * (14 + 150)) * 1e-6 + 1e6 / (48e9 * 16 / 30));
    hw.cluster.nccl_plugin = HW_PLUGIN_NONE;
    hw.gpu.arch = "Volta";
    assert_true(nccl_estimate(&estimate_s, &query, COLL_RING));
    near(estimate_s, 1.9 * (8.4 + 28 * 3.4 + 2 * 14) * 1e-6 + 1e6 / (48e9 * 16 / 30));
}

/* NCCL's bounds of busbw by version (tuning.cc), of 1 TiB, where latencies are nothing. Eight A100:
 * 6 channels of 40 GB/s inside, 240; over nodes 4 NICs of 12, whose tree has 20 inside a node while
 * there are two. Rings: 235 of an Ampere before 2.18; LL a quarter, of gathers in a node a third,
 * from 2.23 on half, at most 87.7; LL128 0.92 (0.7 of lone GPUs before 2.23), at most 20 a channel.
 * Trees 0.92, at half of it; LL 1 / 3.8; LL128 7 / 9 or 120 / 128. */
static void bounds_of_bandwidth_by_version(void **state)
{
    (void)state;
    static const struct {
        int version;
        enum coll_kind kind;
        enum coll_algorithm algorithm;
        enum coll_protocol protocol;
        int nodes, per_node;
        double GBps;
    } cases[] = {
        {10, COLL_ALL_REDUCE, COLL_RING, COLL_SIMPLE, 1, 8, 235},
        {17, COLL_ALL_REDUCE, COLL_RING, COLL_SIMPLE, 1, 8, 235},
        {18, COLL_ALL_REDUCE, COLL_RING, COLL_SIMPLE, 1, 8, 240},
        {10, COLL_ALL_REDUCE, COLL_RING, COLL_LL, 1, 8, 235 / 4.},
        {10, COLL_ALL_GATHER, COLL_RING, COLL_LL, 1, 8, 235 / 3.},
        {22, COLL_ALL_REDUCE, COLL_RING, COLL_LL, 1, 8, 60},
        {23, COLL_ALL_REDUCE, COLL_RING, COLL_LL, 1, 8, 87.7},
        {27, COLL_ALL_REDUCE, COLL_RING, COLL_LL, 1, 8, 87.7},
        {10, COLL_ALL_GATHER, COLL_RING, COLL_LL, 2, 8, 12},
        {27, COLL_ALL_GATHER, COLL_RING, COLL_LL, 2, 8, 24},
        {27, COLL_ALL_REDUCE, COLL_RING, COLL_LL128, 1, 8, 0.92 * 240},
        {27, COLL_ALL_REDUCE, COLL_RING, COLL_LL128, 2, 8, 0.92 * 48},
        {10, COLL_ALL_REDUCE, COLL_RING, COLL_LL128, 2, 1, 0.7 * 12},
        {22, COLL_ALL_REDUCE, COLL_RING, COLL_LL128, 2, 1, 0.7 * 12},
        {23, COLL_ALL_REDUCE, COLL_RING, COLL_LL128, 2, 1, 0.92 * 12},
        {22, COLL_ALL_REDUCE, COLL_RING, COLL_LL128, 2, 2, 0.92 * 2 * 12},
        {27, COLL_ALL_REDUCE, COLL_TREE, COLL_SIMPLE, 1, 8, 0.92 * 240},
        {10, COLL_ALL_REDUCE, COLL_TREE, COLL_SIMPLE, 1, 8, 0.92 * 235},
        {27, COLL_ALL_REDUCE, COLL_TREE, COLL_LL, 1, 8, 0.92 * 240 / 3.8},
        {27, COLL_ALL_REDUCE, COLL_TREE, COLL_LL128, 1, 8, 0.92 * 240 * 7 / 9},
        {27, COLL_ALL_REDUCE, COLL_TREE, COLL_SIMPLE, 2, 8, 0.92 * 4 * 20},
        {27, COLL_ALL_REDUCE, COLL_TREE, COLL_LL, 2, 8, 0.92 * 4 * 20 / 3.8},
        {27, COLL_ALL_REDUCE, COLL_TREE, COLL_LL128, 2, 8, 0.92 * 4 * 20 * 120 / 128},
        {27, COLL_ALL_REDUCE, COLL_TREE, COLL_SIMPLE, 4, 8, 0.92 * 48},
        {27, COLL_ALL_REDUCE, COLL_TREE, COLL_LL, 4, 8, 0.92 * 48 / 3.8},
        {27, COLL_ALL_REDUCE, COLL_TREE, COLL_LL128, 4, 8, 0.92 * 48 * 120 / 128},
    };
    struct hw hw = hw_of(&(struct machine){"Ampere", 8, 4, 100, 300, 26, 0, 0, 0});
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double little_s, much_s;
        hw.cluster.nccl_version = HW_NCCL_NEWEST - cases[i].version;
        int ranks = cases[i].nodes * cases[i].per_node;
        struct coll_query query = {cases[i].kind, cases[i].protocol, 0x1p40,
            {ranks, cases[i].nodes, cases[i].per_node}, &hw};
        assert_true(nccl_estimate(&little_s, &query, cases[i].algorithm));
        query.bytes *= 2;
        assert_true(nccl_estimate(&much_s, &query, cases[i].algorithm));
        double steps = (cases[i].kind == COLL_ALL_REDUCE ? 2. : 1.) * (ranks - 1) / ranks;
        double GBps =
            0x1p40 / (much_s - little_s) / 1e9 * (cases[i].algorithm == COLL_TREE ? 2 : steps);
        if (fabs(GBps / cases[i].GBps - 1) > 1e-6)
            fail_msg("case %zu: %.9g GB/s, not %.9g", i, GBps, cases[i].GBps);
    }
}

/* NVLSTree from 2.28 on, of 8 H100: the switch twice 0.85 of its channels' speed, 7 / 8 of it; the
 * network once, twice on two nodes, at most 57.7 and 45.5 a channel. NICs of 25 GB/s count 24
 * everywhere, 35.7 by the switch; of 50 the switch has 45, so 66.9, and the network 48. All of it
 * 16 / 30 and 32 / 62. */
static void bounds_of_a_switch(void **state)
{
    (void)state;
    static const struct {
        double nic_Gbps;
        int nodes;
        double GBps;
    } cases[] = {{200, 2, 24 * 2 * 0.85 * 7 / 8}, {200, 4, 24}, {400, 2, 57.7}, {400, 4, 45.5}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct hw hw = hw_of(&(struct machine){"Hopper", 8, 8, cases[i].nic_Gbps, 450, 0, 0, 0, 0});
        double little_s, much_s, n = 8 * cases[i].nodes;
        hw.cluster.nccl_version = HW_NCCL_NEWEST - 28;
        struct coll_query query = {
            COLL_ALL_REDUCE, COLL_SIMPLE, 0x1p40, {8 * cases[i].nodes, cases[i].nodes, 8}, &hw};
        assert_true(nccl_estimate(&little_s, &query, COLL_NVLS_TREE));
        query.bytes *= 2;
        assert_true(nccl_estimate(&much_s, &query, COLL_NVLS_TREE));
        double GBps = 0x1p40 / (much_s - little_s) / 1e9,
               expected = 8 * cases[i].GBps * n / (2 * (n - 1));
        if (fabs(GBps / expected - 1) > 1e-6)
            fail_msg("case %zu: %.9g GB/s, not %.9g", i, GBps, expected);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_of_the_logs),
        cmocka_unit_test(a_nic_of_a_speed_of_the_table_has_that),
        cmocka_unit_test(faster_nics_open_more_where_there_is_room),
        cmocka_unit_test(channels_by_version),
        cmocka_unit_test(pcie_bounds_nics),
        cmocka_unit_test(a_faster_nic_helps_where_it_binds),
        cmocka_unit_test(each_bound_has_its_name),
        cmocka_unit_test(graphs_of_the_tuner),
        cmocka_unit_test(channels_in_words),
        cmocka_unit_test(estimates_by_version),
        cmocka_unit_test(bandwidth_by_version),
        cmocka_unit_test(bounds_of_bandwidth_by_version),
        cmocka_unit_test(bounds_of_a_switch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
