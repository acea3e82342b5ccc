/* What a cluster draws, from numbers made by hand and from the files under topologies/. */
#include "hw/override.h"
#include "hw/power.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "../near.h"
#include "clusters.h"

#include <string.h>

#define NUMBER(value) ((struct quantity){(value), 0, QUANTITY_ASSUMED, "test", NULL})
static const double SAME = 1e-9;

/* Two nodes of 4 GPUs of 500 W with 2 NICs, all of its power given. */
static struct hw by_hand(void)
{
    struct hw hw = {0};
    hw.gpu.tdp = NUMBER(500);
    hw.gpu.power = (struct hw_gpu_power){NUMBER(50), NUMBER(0.8), NUMBER(0.3)};
    hw.node.gpus = NUMBER(4);
    hw.node.nics = NUMBER(2);
    hw.node.host_power = NUMBER(600);
    hw.node.nic_power = NUMBER(20);
    hw.cluster.nodes = NUMBER(2);
    hw.cluster.switch_port_power = NUMBER(10);
    hw.cluster.pue = NUMBER(1.2);
    return hw;
}

/* A GPU's part: (600 + 2 x (20 + one port of 10)) / 4 = 165 W. Busy for a quarter of the time: 0.25
 * x 400 + 0.75 x 150 = 212.5 W; at the meter (212.5 + 165) x 1.2 = 453 W. */
static void numbers_of_the_files(void **state)
{
    (void)state;
    struct hw hw = by_hand();
    struct hw_power power = hw_power_of(&hw);
    assert_near(power.host_w, 165, SAME);
    assert_near(hw_power_gpu(&power, 0.25), 212.5, SAME);
    assert_near(hw_power_at_meter(&power, 212.5), 453, SAME);
    assert_near(power.idle_w, 50, SAME);
    hw.gpu.power.waiting = NUMBER(0.01); /* 5 W: no less than idle */
    assert_near(hw_power_of(&hw).waiting_w, 50, SAME);
    hw.cluster.nodes = NUMBER(1); /* no switch: (600 + 2 x 20) / 4 */
    assert_near(hw_power_of(&hw).host_w, 160, SAME);
}

/* Ports a NIC. Leaf-spine, full bisection: that of the NIC and both ends of one cable up, 3; half
 * of it, 2 : 1: 2. Three levels of 4 leaves of 8 NICs, 8 cables up, 32 from the pod: 1 + 2 + 2. A
 * dragonfly of 4 routers of 8 NICs in a group, a cable between two of them and 2 to other groups a
 * router: 1 + 3 / 8 + 2 / 8. */
static void ports_of_networks(void **state)
{
    (void)state;
    const struct {
        struct hw_network network;
        double ports;
    } cases[] = {
        {{.kind = HW_FAT_TREE, .leaf_ports = NUMBER(8), .spines = NUMBER(8)}, 3},
        {{.kind = HW_FAT_TREE, .leaf_ports = NUMBER(8), .spines = NUMBER(4)}, 2},
        {{.kind = HW_FAT_TREE,
             .leaf_ports = NUMBER(8),
             .spines = NUMBER(8),
             .pod_leaves = NUMBER(4),
             .cores = NUMBER(4)},
            5},
        {{.kind = HW_DRAGONFLY,
             .leaf_ports = NUMBER(8),
             .pod_leaves = NUMBER(4),
             .global_cables = NUMBER(2)},
            1.625},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct hw hw = by_hand();
        hw.cluster.network = cases[i].network;
        assert_near(hw_power_of(&hw).host_w, (600 + 2 * (20 + 10 * cases[i].ports)) / 4, SAME);
    }
}

/* Whatever a file leaves out: idle <= waiting <= busy <= limit, and PUE is a plain factor. */
static void check_power(const char *path, struct hw *hw)
{
    (void)path;
    struct hw_power power = hw_power_of(hw);
    assert_true(power.idle_w > 0 && power.idle_w <= power.waiting_w);
    assert_true(power.waiting_w < power.busy_w && power.busy_w <= power.limit_w);
    for (double share = 0; share <= 1; share += 0.25) {
        double gpu = hw_power_gpu(&power, share);
        assert_true(gpu >= power.idle_w && gpu <= power.limit_w);
    }
    hw->cluster.pue = NUMBER(1);
    struct hw_power in_the_hall = hw_power_of(hw);
    hw->cluster.pue = NUMBER(1.2);
    power = hw_power_of(hw);
    assert_near(hw_power_at_meter(&power, 100), 1.2 * hw_power_at_meter(&in_the_hall, 100), SAME);
}

static void all_clusters(void **state)
{
    (void)state;
    each_cluster(check_power);
}

/* Every default has an error and says where it is from; the help of its key has the same number. */
static void defaults_have_sources(void **state)
{
    (void)state;
    int n = 0;
    for (; hw_power_defaults[n].key; n++) {
        struct arena arena = ARENA_INIT;
        size_t at = 0;
        const struct config_field *field =
            config_field_at(&hw_override_table, hw_power_defaults[n].key, &at);
        assert_non_null(field);
        const char *expected =
            arena_printf(&arena, "Default: %g", hw_power_defaults[n].number.value);
        assert_non_null(strstr(field->help, expected)); /* `flopcast help gpus` */
        arena_release(&arena);
        assert_non_null(hw_power_defaults[n].number.source);
        assert_true(hw_power_defaults[n].number.std_error > 0);
    }
    assert_int_equal(n, 7);
}

/* Where a file says nothing: idle 0.12, waiting 0.4 and busy 0.9 of 500 W, a host half of what its
 * 4 GPUs may draw, 25 W a NIC and 20 W for its port: (1000 + 2 x 45) / 4. No GPU idles above its
 * limit, none waits below what it idles at. */
static void numbers_that_are_left_out(void **state)
{
    (void)state;
    struct hw hw = {0};
    hw.gpu.tdp = NUMBER(500);
    hw.node.gpus = NUMBER(4);
    hw.node.nics = NUMBER(2);
    hw.cluster.nodes = NUMBER(2);
    struct hw_power power = hw_power_of(&hw);
    assert_near(power.limit_w, 500, SAME);
    assert_near(power.idle_w, 60, SAME);
    assert_near(power.waiting_w, 200, SAME);
    assert_near(power.busy_w, 450, SAME);
    assert_near(power.host_w, 272.5, SAME);
    assert_near(power.pue, 1.2, SAME);
    hw.gpu.power.idle = NUMBER(900);
    assert_near(hw_power_of(&hw).idle_w, 500, SAME);
    assert_near(hw_power_of(&hw).busy_w, 500, SAME);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_of_the_files),
        cmocka_unit_test(ports_of_networks),
        cmocka_unit_test(all_clusters),
        cmocka_unit_test(defaults_have_sources),
        cmocka_unit_test(numbers_that_are_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
