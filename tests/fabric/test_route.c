/* Which of the links of a network of switches collectives take, on networks of any shape. */
#include "fabric/fabric.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/rng.h"
#include "switches.h"

#include <string.h>

/* What enters a switch leaves it, whatever the network, the group and the algorithm; nodes send and
 * receive what the algorithm says. */
static void check_balance(struct fixture *f, struct coll_group group, enum coll_algorithm algorithm)
{
    double leaf[64] = {0}, pod[64] = {0}, sent = 0, received = 0;
    load(f, group, algorithm);
    const struct fabric *fabric = &f->fabric;
    for (int u = 0; u < f->n_weights; u++) {
        int link = f->weights[u].link;
        double w = f->weights[u].weight;
        if (link < fabric->first_nic)
            continue;
        if (link < fabric->first_leaf) {
            int in = (link - fabric->first_nic) % 2, nic = (link - fabric->first_nic) / 2;
            leaf[fabric_leaf_of(fabric, nic / fabric->nics, nic % fabric->nics)] += in ? -w : w;
            *(in ? &received : &sent) += w;
        } else if (link < fabric->first_pod) {
            int of = (link - fabric->first_leaf) / fabric->leaf_links;
            leaf[of / 2] += of % 2 ? w : -w;
            pod[hw_network_pod(&f->hw.cluster.network, of / 2)] += of % 2 ? -w : w;
        } else {
            int of = (link - fabric->first_pod) / fabric->pod_links;
            pod[of / 2] += of % 2 ? w : -w;
        }
    }
    for (int i = 0; i < 64; i++) {
        assert_near(leaf[i], 0, 1e-9);
        if (fabric->pods > 0)
            assert_near(pod[i], 0, 1e-9);
    }
    int nodes = coll_shape(group, fabric->gpus).nodes;
    /* A ring: one message's worth from each node. A tree: 2 (N - 1) edges and half of the data each
     * way on each; per byte of bus, 2 (n - 1) / n of the data. To all: what each rank has for ranks
     * of other nodes, of n - 1 parts. */
    double ranks = group.size;
    double want = algorithm == COLL_RING  ? nodes
                  : algorithm == COLL_P2P ? ranks * (ranks - ranks / nodes) / (ranks - 1)
                                          : 2 * (nodes - 1) / (2 * (ranks - 1) / ranks);
    want = nodes == 1 ? 0 : want;
    assert_near(sent, want, 1e-9);
    assert_near(received, want, 1e-9);
}

static void what_enters_a_switch_leaves_it(void **state)
{
    (void)state;
    struct rng_stream rng = rng_stream(11, 1, 1);
    for (int i = 0; i < 300; i++) {
        struct hw hw = test_hw();
        struct hw_network *network = &hw.cluster.network;
        int gpus = 1 << (int)(rng_uniform(&rng) * 3), nodes = 2 + (int)(rng_uniform(&rng) * 14);
        hw.node.gpus.value = gpus;
        hw.node.nics.value = 1 << (int)(rng_uniform(&rng) * 3);
        network->kind = rng_uniform(&rng) < 0.2 ? HW_DRAGONFLY : HW_FAT_TREE;
        bool tree = network->kind == HW_FAT_TREE;
        network->wiring = rng_uniform(&rng) < 0.5 ? HW_PLAIN : HW_RAIL;
        network->routing = tree && rng_uniform(&rng) < 0.7 ? HW_ECMP : HW_ADAPTIVE;
        network->placement = rng_uniform(&rng) < 0.5 ? HW_PACKED : HW_SCATTERED;
        network->ecmp_seed = i;
        network->leaf_ports = assumed(4);
        network->spine_cables = assumed(1 + (int)(rng_uniform(&rng) * 2));
        if (!tree || rng_uniform(&rng) < 0.5)
            network->pod_leaves = assumed(2);
        network->cores = assumed(2);
        network->global_cables = assumed(1);
        struct fixture f;
        build(&f, &hw, gpus * nodes, tree ? "leaf0.up0=0" : NULL);
        check_balance(&f, (struct coll_group){0, 1, gpus * nodes}, i % 2 ? COLL_TREE : COLL_RING);
        check_balance(
            &f, (struct coll_group){gpus - 1, gpus, nodes}, i % 2 ? COLL_RING : COLL_TREE);
        check_balance(&f, (struct coll_group){0, 1, gpus}, COLL_RING);
        check_balance(&f, (struct coll_group){0, 1, gpus * nodes}, COLL_P2P);
        arena_release(&f.arena);
    }
}

/* Hashing spreads worse than ideal: of 8 connections on 8 uplinks some meet (all apart: 8! / 8^8 =
 * 0.24 %), and the fullest uplink sets the rate. The same seed gives the same links. */
static void connections_collide_under_ecmp(void **state)
{
    (void)state;
    struct hw hw = test_hw();
    hw.cluster.network.placement = HW_SCATTERED;
    hw.cluster.network.spines = assumed(4);
    hw.cluster.network.routing = HW_ECMP;
    double slowest = HUGE_VAL, fastest = 0, mean = 0;
    for (int seed = 0; seed < 50; seed++) {
        double rates[2];
        for (int again = 0; again < 2; again++) {
            struct fixture f;
            hw.cluster.network.ecmp_seed = seed;
            build(&f, &hw, 8, NULL);
            rates[again] = load(&f, (struct coll_group){0, 1, 8}, COLL_RING);
            arena_release(&f.arena);
        }
        assert_near(rates[0], rates[1], 0);
        slowest = fmin(slowest, rates[0]);
        fastest = fmax(fastest, rates[0]);
        mean += rates[0] / 50;
    }
    assert_true(fastest <= 20e9 * (1 + 1e-12)); /* what adaptive routing gives */
    assert_true(slowest < 0.5 * 20e9 && mean < 0.8 * 20e9);
    assert_true(slowest < fastest);
}

/* NCCL reaches 80 % of a node's two NICs, and of the cables of its leaf as many; then a tenth of
 * NVLink's 100 GB/s. */
static void capacities_are_what_nccl_reaches(void **state)
{
    (void)state;
    struct hw hw = test_hw();
    hw.cluster.nccl_efficiency.value = 0.8;
    for (int slow = 0; slow < 2; slow++) {
        struct fixture f;
        hw.node.nccl_efficiency.value = slow ? 0.1 : 1;
        build(&f, &hw, 8, NULL);
        assert_near(load(&f, (struct coll_group){0, 1, 8}, COLL_RING), slow ? 10e9 : 2 * 8e9, 1);
        arena_release(&f.arena);
    }
}

/* Three NICs for two GPUs: one has two of them near, and together they use all. */
static void all_nics_of_a_node_are_used(void **state)
{
    (void)state;
    struct hw hw = test_hw();
    hw.node.nics.value = 3;
    hw.cluster.network.leaf_ports = assumed(3);
    hw.cluster.network.spines = assumed(3);
    struct fixture f;
    build(&f, &hw, 4, NULL);
    assert_near(load(&f, (struct coll_group){0, 1, 4}, COLL_RING), 30e9, 1);
    arena_release(&f.arena);
}

/* A hop is a connection for each channel of a NIC's, and channels across nodes are the cluster's
 * where it says so. */
static void connections_are_those_of_channels_across_nodes(void **state)
{
    (void)state;
    struct hw hw = test_hw(), like = test_hw();
    hw.node.nccl_channels.value = 16;
    hw.cluster.nccl_channels = assumed(4);
    like.node.nccl_channels.value = 4;
    like.cluster.nccl_channels = assumed(4);
    for (int seed = 0; seed < 10; seed++) {
        struct hw *of[] = {&hw, &like};
        double rates[2];
        for (int i = 0; i < 2; i++) {
            struct fixture f;
            of[i]->cluster.network.placement = HW_SCATTERED;
            of[i]->cluster.network.routing = HW_ECMP;
            of[i]->cluster.network.ecmp_seed = seed;
            build(&f, of[i], 16, NULL);
            rates[i] = load(&f, (struct coll_group){0, 1, 16}, COLL_RING);
            arena_release(&f.arena);
        }
        assert_near(rates[0], rates[1], 0);
    }
}

/* What NCCL reaches of the network counts for NICs and for cables between switches: at a half, of a
 * NIC of 10 GB/s 5, of the four cables of 20 GB/s from a leaf to two spines 40. */
static void cables_and_nics_are_what_nccl_reaches(void **state)
{
    (void)state;
    static struct fixture f;
    struct hw hw = test_hw();
    hw.cluster.nccl_efficiency.value = 0.5;
    hw.cluster.network.spine_cables = assumed(2);
    hw.cluster.network.cable_bandwidth = assumed(20e9);
    build(&f, &hw, 16, NULL);
    assert_near(f.fabric.capacity_Bps[f.fabric.first_nic], 5e9, 1e-3);
    assert_near(f.fabric.capacity_Bps[fabric_leaf_link(&f.fabric, 0, 0, 0)], 40e9, 1e-3);
    assert_near(f.fabric.capacity_Bps[0], 100e9, 1e-3);
    arena_release(&f.arena);
}

/* Of three levels: from the first leaf to the last goes up out of its pod and down into the
 * other's. */
static void between_pods_a_flow_goes_up_and_down(void **state)
{
    (void)state;
    static struct fixture f;
    struct hw hw = test_hw();
    hw.cluster.network.pod_leaves = assumed(2);
    hw.cluster.network.cores = assumed(2);
    build(&f, &hw, 32, NULL); /* 16 nodes, two on a leaf, two leaves in each of 4 pods */
    assert_int_equal(f.fabric.pods, 4);
    assert_true(fabric_add_between(&f.fabric, 0, 7, 0.5, 0));
    const int loaded[] = {fabric_leaf_link(&f.fabric, 0, 0, 0),
        fabric_leaf_link(&f.fabric, 7, 1, 0), fabric_pod_link(&f.fabric, 0, 0, 0),
        fabric_pod_link(&f.fabric, 3, 1, 0)};
    double sum = 0;
    for (int l = 0; l < f.fabric.n_links; l++)
        sum += f.fabric.weight[l];
    for (int i = 0; i < 4; i++)
        assert_near(f.fabric.weight[loaded[i]], 0.5, 0);
    assert_near(sum, 4 * 0.5, 0);
    arena_release(&f.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_enters_a_switch_leaves_it),
        cmocka_unit_test(connections_collide_under_ecmp),
        cmocka_unit_test(capacities_are_what_nccl_reaches),
        cmocka_unit_test(all_nics_of_a_node_are_used),
        cmocka_unit_test(connections_are_those_of_channels_across_nodes),
        cmocka_unit_test(cables_and_nics_are_what_nccl_reaches),
        cmocka_unit_test(between_pods_a_flow_goes_up_and_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
