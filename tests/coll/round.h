/* A cluster in round numbers for the tests of collectives, and how they ask for a cost. */
#ifndef FLOPCAST_TESTS_COLL_ROUND_H
#define FLOPCAST_TESTS_COLL_ROUND_H

#include "../number.h"
#include "coll/coll.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

/* A cluster in round numbers: 8 GPUs a node, 100 GB/s a GPU inside (all reached), 8 NICs of 10
 * GB/s, hops of 2 us inside, 5 us base. An inter-node hop of Simple is NCCL's 14 us and twice 3 us
 * of this network: 20 us. A place of a connection's buffer is free again at once. */
static const struct hw test_hw = {
    .gpu.arch = "Hopper",
    .node = {.fabric = HW_NVSWITCH,
        .gpus = NUMBER(8),
        .nics = NUMBER(8),
        .gpu_bandwidth = NUMBER(100e9),
        .nic_bandwidth = NUMBER(10e9),
        .nccl_efficiency = NUMBER(1),
        .nccl_hop_latency = NUMBER(2e-6),
        .nccl_base_latency = NUMBER(5e-6),
        .nccl_channels = NUMBER(24)},
    .cluster = {.nodes = NUMBER(64),
        .oversubscription = NUMBER(1),
        .nccl_efficiency = NUMBER(1),
        .nccl_net_latency = NUMBER(3e-6),
        .nccl_credit_latency = NUMBER(1e-9),
        .nccl_channels = NUMBER(24),
        .nvls_tree_latency = NUMBER(30e-6)},
};

static inline void near(double got, double want)
{
    if (fabs(got - want) > 1e-12 * fabs(want))
        fail_msg("got %.17g, want %.17g", got, want);
}

/* size ranks, stride apart, from rank 0 on. */
static inline struct coll_shape shape_of(int size, int stride)
{
    return coll_shape((struct coll_group){0, stride, size}, 8);
}

static inline struct coll_cost cost_of(enum coll_kind kind, enum coll_algorithm algorithm,
    enum coll_protocol protocol, double bytes, struct coll_shape shape, const struct hw *hw)
{
    struct coll_cost cost;
    assert_true(coll_cost(&cost, kind, algorithm, protocol, bytes, shape, hw));
    return cost;
}

static inline bool possible(enum coll_kind kind, enum coll_algorithm algorithm,
    enum coll_protocol protocol, struct coll_shape shape, const struct hw *hw)
{
    struct coll_cost cost;
    return coll_cost(&cost, kind, algorithm, protocol, 1e6, shape, hw);
}

/* What the switch reduces at: 60 GB/s and 5 us for every step of chunks. */
static inline struct hw reducing(void)
{
    struct hw hw = test_hw;
    hw.cluster.nccl_channels = (struct quantity){0}; /* NVLS has its own */
    hw.node.nvls_efficiency = (struct quantity)NUMBER(0.6);
    hw.node.nvls_latency = (struct quantity)NUMBER(50e-6);
    hw.node.nvls_step_latency = (struct quantity)NUMBER(5e-6);
    return hw;
}

#endif
