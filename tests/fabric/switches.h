/* A small network of switches, and what a collective loads of it. Include after cmocka.h. */
#ifndef FLOPCAST_TESTS_FABRIC_SWITCHES_H
#define FLOPCAST_TESTS_FABRIC_SWITCHES_H

#include "fabric/fabric.h"

#include "../near.h"

#include <math.h>

static inline struct quantity assumed(double value)
{
    return (struct quantity){.value = value, .kind = QUANTITY_ASSUMED, .source = "test"};
}

/* Two GPUs and two NICs of 10 GB/s a node, 100 GB/s between GPUs; 10 us once, no hops inside;
 * between nodes NCCL's own 14 us. Four NICs (two nodes, when plain) on a leaf and two spines: 2 :
 * 1. */
static inline struct hw test_hw(void)
{
    struct hw hw = {0};
    hw.gpu.arch = "Volta";
    hw.cluster.nccl_protocols = HW_PROTOCOLS_SIMPLE;
    hw.gpu.hbm_capacity.value = 1e9;
    hw.gpu.hbm_bandwidth.value = 1e12;
    hw.gpu.hbm_efficiency.value = 1;
    hw.gpu.sms.value = 100;
    hw.gpu.memory_sms.value = 1;
    hw.gpu.vector_flops.value = 1e12;
    hw.node.gpus.value = hw.node.nics.value = 2;
    hw.node.gpu_bandwidth.value = 100e9;
    hw.node.nic_bandwidth.value = 10e9;
    hw.node.nccl_efficiency.value = hw.cluster.nccl_efficiency.value =
        hw.cluster.oversubscription.value = 1;
    hw.node.nccl_base_latency.value = 10e-6;
    hw.node.nccl_channels.value = 4;
    hw.cluster.nodes.value = 64;
    hw.cluster.network =
        (struct hw_network){.kind = HW_FAT_TREE, .leaf_ports = assumed(4), .spines = assumed(2)};
    return hw;
}

struct fixture {
    struct hw hw;
    struct fabric fabric;
    struct arena arena;
    struct link_weight weights[4096];
    int n_weights;
};

/* degraded may be NULL. */
static inline struct degrade_events link_events(
    const struct hw *hw, int ranks, const char *degraded, struct arena *arena)
{
    struct diag diag = DIAG_INIT;
    struct degrade_events events;
    degrade_links(&events, hw, ranks, degraded, (struct source_pos){0}, arena, &diag);
    assert_string_equal(diag.text, "");
    return events;
}

static inline void build(struct fixture *f, const struct hw *hw, int ranks, const char *degraded)
{
    *f = (struct fixture){.hw = *hw};
    struct degrade_events events = link_events(hw, ranks, degraded, &f->arena);
    fabric_build(&f->fabric, &f->hw, ranks, &events, &f->arena);
    assert_true(f->fabric.n_links <= 4096);
}

/* The group's all-gather by ring, all-reduce by tree, or all-to-all; returns the rate of bus bytes
 * that the links allow. */
static inline double load(struct fixture *f, struct coll_group group, enum coll_algorithm algorithm)
{
    struct coll_shape shape = coll_shape(group, f->fabric.gpus);
    enum coll_kind kind = algorithm == COLL_TREE  ? COLL_ALL_REDUCE
                          : algorithm == COLL_P2P ? COLL_ALL_TO_ALL
                                                  : COLL_ALL_GATHER;
    struct coll_cost cost;
    assert_true(coll_cost(&cost, kind, algorithm, COLL_SIMPLE, 1e9, shape, &f->hw));
    fabric_load_collective(&f->fabric, group, &cost, 0);
    f->n_weights = fabric_loaded(f->weights, &f->fabric);
    double rate = HUGE_VAL;
    for (int u = 0; u < f->n_weights; u++)
        rate = fmin(rate, f->fabric.capacity_Bps[f->weights[u].link] / f->weights[u].weight);
    return rate;
}

#endif
