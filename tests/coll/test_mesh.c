/* Groups on a part of a mesh of NVLinks. */
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

/* Links of 140 GB/s spread over 7 peers, 20 each: a ring of k of 8 GPUs has (k - 1) x 20 GB/s, behind a switch all 140.
 * An all_reduce of 8 GB by k puts 2 (k - 1) / k of it on the links; Simple: base and hops are 0 here. */
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_part_has_only_its_links),
        cmocka_unit_test(one_gpu_a_node_is_not_bound_by_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
