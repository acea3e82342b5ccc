/* What process groups with GPUs of two kinds meet: the lower bandwidth, the higher latency, the older architecture. */
#include "hw/hw.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static struct quantity number(double value)
{
    return (struct quantity){value, 0, QUANTITY_ASSUMED, "test", NULL};
}

static struct hw two_kinds(void)
{
    struct hw hw = {.second_from = 8};
    hw.gpu.arch = "Hopper";
    hw.second_gpu.arch = "Ampere";
    hw.node = (struct hw_node){.name = "h",
        .fabric = HW_NVSWITCH,
        .gpu_bandwidth = number(450e9),
        .nic_bandwidth = number(50e9),
        .nccl_channels = number(16),
        .nccl_hop_latency = number(1e-6),
        .nvls_efficiency = number(0.9),
        .nvls_latency = number(1e-5),
        .nvls_step_latency = number(1e-6)};
    hw.second_node = (struct hw_node){.name = "a",
        .fabric = HW_NVLINK_MESH,
        .gpu_bandwidth = number(300e9),
        .nic_bandwidth = number(100e9),
        .nccl_channels = number(24),
        .nccl_hop_latency = number(2e-6)};
    return hw;
}

static void each_number_is_that_of_the_slower_side(void **state)
{
    (void)state;
    struct hw hw = two_kinds(), both = hw_of_both(&hw);
    assert_true(both.node.gpu_bandwidth.value == 300e9);
    assert_true(both.node.nic_bandwidth.value == 50e9);
    assert_true(both.node.nccl_channels.value == 16);
    assert_true(both.node.nccl_hop_latency.value == 2e-6);
    assert_int_equal(both.node.fabric, HW_NVLINK_MESH);
    assert_string_equal(both.gpu.arch, "Ampere");
    assert_false(quantity_is_set(both.node.nvls_efficiency)); /* the other has no switch that reduces */
    assert_int_equal(both.second_from, 0);
}

/* Every number of a node, with the slower side first and second: of bandwidths, shares and channels the lower, of
 * times the higher, of NVLS only where both have it. */
static void all_numbers_of_the_slower_side(void **state)
{
    (void)state;
    static const size_t low[] = {offsetof(struct hw_node, gpu_bandwidth), offsetof(struct hw_node, nic_bandwidth),
        offsetof(struct hw_node, pcie_bandwidth), offsetof(struct hw_node, nccl_efficiency),
        offsetof(struct hw_node, nccl_channels), offsetof(struct hw_node, nvls_efficiency)};
    static const size_t high[] = {offsetof(struct hw_node, nccl_hop_latency),
        offsetof(struct hw_node, nccl_base_latency), offsetof(struct hw_node, nccl_link_latency),
        offsetof(struct hw_node, nccl_ring_tail), offsetof(struct hw_node, nvls_latency),
        offsetof(struct hw_node, nvls_step_latency)};
    enum { LOW = sizeof low / sizeof *low, N = LOW + sizeof high / sizeof *high };
    for (int turned = 0; turned < 2; turned++) {
        struct hw hw = two_kinds();
        for (int i = 0; i < N; i++) {
            size_t at = i < LOW ? low[i] : high[i - LOW];
            *(struct quantity *)(void *)((char *)&hw.node + at) = number(turned ? 3 : 2);
            *(struct quantity *)(void *)((char *)&hw.second_node + at) = number(turned ? 2 : 3);
        }
        struct hw both = hw_of_both(&hw);
        for (int i = 0; i < N; i++) {
            size_t at = i < LOW ? low[i] : high[i - LOW];
            assert_true(((struct quantity *)(void *)((char *)&both.node + at))->value == (i < LOW ? 2 : 3));
        }
        hw.second_node.nvls_efficiency = (struct quantity){0};
        both = hw_of_both(&hw);
        assert_false(quantity_is_set(both.node.nvls_efficiency));
        assert_false(quantity_is_set(both.node.nvls_latency));
        assert_false(quantity_is_set(both.node.nvls_step_latency));
    }
}

/* Whichever is the first. */
static void the_order_does_not_matter(void **state)
{
    (void)state;
    struct hw hw = two_kinds(), second = hw_of_second(&hw), both = hw_of_both(&hw), reversed = hw_of_both(&second);
    assert_string_equal(second.node.name, "a");
    assert_string_equal(second.gpu.arch, "Ampere");
    assert_true(both.node.gpu_bandwidth.value == reversed.node.gpu_bandwidth.value);
    assert_true(both.node.nccl_hop_latency.value == reversed.node.nccl_hop_latency.value);
    assert_string_equal(both.gpu.arch, reversed.gpu.arch);
}

/* NCCL 2.30 allows LL128 among GPUs of Hopper and newer; before, all must have one compute capability. */
static void ll128_wants_one_capability(void **state)
{
    (void)state;
    static const struct {
        const char *first, *second;
        int minor, allowed, expected;
    } cases[] = {
        {"Hopper", "Ampere", 30, HW_PROTOCOLS_ALL, HW_PROTOCOLS_NO_LL128},
        {"Hopper", "Hopper", 20, HW_PROTOCOLS_ALL, HW_PROTOCOLS_ALL},
        {"Hopper", "Blackwell", 30, HW_PROTOCOLS_ALL, HW_PROTOCOLS_ALL},
        {"Hopper", "Blackwell", 29, HW_PROTOCOLS_ALL, HW_PROTOCOLS_NO_LL128},
        {"Volta", "Ampere", 30, HW_PROTOCOLS_NO_LL, HW_PROTOCOLS_SIMPLE},
        {"Volta", "Ampere", 30, HW_PROTOCOLS_NO_LL128, HW_PROTOCOLS_NO_LL128},
        {"Volta", "Ampere", 30, HW_PROTOCOLS_SIMPLE, HW_PROTOCOLS_SIMPLE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct hw hw = two_kinds();
        hw.gpu.arch = cases[i].first;
        hw.second_gpu.arch = cases[i].second;
        hw.cluster.nccl_version = HW_NCCL_NEWEST - cases[i].minor;
        hw.cluster.nccl_protocols = cases[i].allowed;
        assert_int_equal(hw_of_both(&hw).cluster.nccl_protocols, cases[i].expected);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_number_is_that_of_the_slower_side),
        cmocka_unit_test(all_numbers_of_the_slower_side),
        cmocka_unit_test(the_order_does_not_matter),
        cmocka_unit_test(ll128_wants_one_capability),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
