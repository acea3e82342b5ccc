/* Where NICs are plugged in. */
#include "hw/network.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

static struct quantity assumed(double value)
{
    return (struct quantity){.value = value, .kind = QUANTITY_ASSUMED, .source = "test"};
}

/* 8 nodes of 4 NICs, 8 ports a leaf. Plain: two nodes a leaf, 4 leaves. Rail: NIC i of all 8 nodes
 * on leaf i. */
static void wiring(void **state)
{
    (void)state;
    struct hw_network plain = {.kind = HW_FAT_TREE, .leaf_ports = assumed(8)}, rail = plain;
    rail.wiring = HW_RAIL;
    for (int node = 0; node < 8; node++)
        for (int nic = 0; nic < 4; nic++) {
            assert_int_equal(hw_network_leaf(&plain, node, nic, 8, 4), node / 2);
            assert_int_equal(hw_network_leaf(&rail, node, nic, 8, 4), nic);
        }
    assert_int_equal(
        hw_network_leaf(&rail, 8, 1, 16, 4), 5); /* the second block of 8 nodes has leaves 4 to 7 */
    plain.leaf_ports = assumed(2);               /* a node of 4 NICs on two leaves of 2 ports */
    assert_int_equal(hw_network_leaf(&plain, 3, 1, 8, 4), 6);
    assert_int_equal(hw_network_leaf(&plain, 3, 2, 8, 4), 7);
}

/* Scattered: 7 nodes are dealt to ceil(7 / 2) = 4 leaves of two nodes in turn: 0 1 2 3 0 1 2. */
static void placement(void **state)
{
    (void)state;
    struct hw_network network = {
        .kind = HW_FAT_TREE, .leaf_ports = assumed(8), .placement = HW_SCATTERED};
    for (int node = 0; node < 7; node++)
        assert_int_equal(hw_network_leaf(&network, node, 0, 7, 4), node % 4);
}

/* SimGrid's "3; 8,4,2; 1,4,3; 1,2,1": a leaf has 4 spines x 2 cables, a pod 4 spines x 3 cores x 1.
 * A dragonfly group of 4 routers: 3 local cables a router (x 2), 4 x 5 global ones. */
static void cables(void **state)
{
    (void)state;
    struct hw_network tree = {
        .kind = HW_FAT_TREE, .leaf_ports = assumed(8), .pod_leaves = assumed(4)};
    tree.spines = assumed(4);
    tree.spine_cables = assumed(2);
    tree.cores = assumed(3);
    assert_int_equal(hw_network_leaf_cables(&tree), 8);
    assert_int_equal(hw_network_pod_cables(&tree), 12);
    tree.core_cables = assumed(2);
    assert_int_equal(hw_network_pod_cables(&tree), 24);
    assert_int_equal(hw_network_pod(&tree, 7), 1);
    tree.pod_leaves = (struct quantity){0};
    assert_int_equal(hw_network_pod_cables(&tree), 0);
    assert_int_equal(hw_network_pod(&tree, 7), 0);
    struct hw_network fly = {
        .kind = HW_DRAGONFLY, .leaf_ports = assumed(8), .pod_leaves = assumed(4)};
    fly.local_cables = assumed(2);
    fly.global_cables = assumed(5);
    assert_int_equal(hw_network_leaf_cables(&fly), 6);
    assert_int_equal(hw_network_pod_cables(&fly), 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wiring), cmocka_unit_test(placement), cmocka_unit_test(cables)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
