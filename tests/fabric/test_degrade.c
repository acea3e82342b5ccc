/* Degraded links and slow GPUs: from text to events. */
#include "fabric/degrade.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "switches.h"

#include <string.h>

static void expect_link_error(const struct hw *hw, const char *degraded, const char *want)
{
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    struct degrade_events events;
    assert_int_equal(degrade_links(&events, hw, 8, degraded, (struct source_pos){0}, &arena, &diag),
        STATUS_INPUT);
    if (!strstr(diag.text, want))
        fail_msg("'%s' gives '%s'", degraded, diag.text);
    arena_release(&arena);
}

static void links_that_cannot_be_are_an_error(void **state)
{
    (void)state;
    struct hw hw = test_hw();
    expect_link_error(&hw, "node1.nic0.in=0", "node1.nic0.in has failed");
    expect_link_error(&hw, "gpu0.*=0", "gpu0.nvlink has failed");
    expect_link_error(&hw, "leaf0.up*=0", "leave no way from leaf0 to leaf1");
    expect_link_error(&hw, "node9.nic0.in=0.5", "no link is called 'node9.nic0.in'");
    expect_link_error(&hw, "leaf0.up0=1.5", "use 0 to 1");
    expect_link_error(&hw, "leaf0.up0", "there is no '='");
    expect_link_error(&hw, "leaf0.up0=half", "not a fraction");
    expect_link_error(&hw, "leaf0.up0=50 % at noon", "'noon' is no time");
    expect_link_error(&hw, "leaf0.up0=50 % at -1 s", "is no time from 0");
    expect_link_error(&hw, "node1.nic0.in=0 at 2.5 s", "node1.nic0.in has failed at 2.5 s");
    expect_link_error(&hw, "leaf0.up0=0 at 1 s, leaf0.up1=0 at 2 s",
        "failed at 2 s leave no way from leaf0 to leaf1");
    hw.cluster.network.routing =
        HW_ECMP; /* spine 0 is reached by one leaf, spine 1 reaches the other */
    expect_link_error(&hw, "leaf0.up0=0, leaf1.down1=0", "no way from leaf0 to leaf1");
}

static void expect_gpu_error(const char *text, const char *want)
{
    struct hw hw = test_hw();
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    struct degrade_events events;
    hw.cluster.name = "test";
    hw.cluster.nodes.value = 8;
    assert_int_equal(
        degrade_gpus(&events, &hw, 4, text, (struct source_pos){0}, &arena, &diag), STATUS_INPUT);
    if (!strstr(diag.text, want))
        fail_msg("'%s' gives '%s'", text, diag.text);
    arena_release(&arena);
}

/* Eight nodes of two GPUs. */
static void gpus_that_cannot_be_are_an_error(void **state)
{
    (void)state;
    expect_gpu_error("node8.gpu0=50 %",
        "no GPU of cluster 'test' is called 'node8.gpu0'; names are node0.gpu0 to node7.gpu1");
    expect_gpu_error("node0.gpu2=50 %", "is called 'node0.gpu2'");
    expect_gpu_error("node8=50 %", "is called 'node8'");
    expect_gpu_error("gpu3=50 %", "is called 'gpu3'");
    expect_gpu_error("node0=50 %, nod1=50 %", "is called 'nod1'");
    expect_gpu_error("node0=120 %",
        "slow GPU 'node0=120 %': 1.2 of the speed is left; use 0.01 to 1 (1 to 100 %)");
    expect_gpu_error("node0=0", "0 of the speed is left");
    expect_gpu_error("node0=-50 %", "-0.5 of the speed is left");
    expect_gpu_error("node0", "there is no '='; write a pattern and what is left, and when, as in "
                              "'node3.gpu5=50 % at 2.5 s'");
    expect_gpu_error("node0=slow", "not a fraction");
    expect_gpu_error("node0=50 % at noon", "'noon' is no time");
    expect_gpu_error("node0=50 % at -1 s", "is no time from 0");
}

static struct degrade_events gpu_events(
    const struct hw *hw, int ranks, const char *text, struct arena *arena)
{
    struct diag diag = DIAG_INIT;
    struct degrade_events events;
    assert_int_equal(
        degrade_gpus(&events, hw, ranks, text, (struct source_pos){0}, arena, &diag), STATUS_OK);
    return events;
}

static void assert_event(
    const struct degrade_events *events, int i, double at_s, int target, double share)
{
    assert_true(events->list[i].at == ps_from_s(at_s));
    assert_int_equal(events->list[i].target, target);
    assert_near(events->list[i].share, share, 1e-12);
}

/* A job of 4 GPUs is on nodes 0 and 1; the cluster's others are no mistake. */
static void names_are_the_clusters(void **state)
{
    (void)state;
    struct hw hw = test_hw();
    struct arena arena = ARENA_INIT;
    assert_int_equal(gpu_events(&hw, 4, "node7.gpu1=50 %", &arena).n, 0);
    assert_int_equal(gpu_events(&hw, 4, "node7.gpu1=50 %, node1=90 % at 1 s", &arena).n, 2);
    assert_int_equal(gpu_events(&hw, 16, "node7.gpu1=50 %", &arena).n, 1);
    assert_int_equal(gpu_events(&hw, 4, NULL, &arena).n, 0);
    arena_release(&arena);
}

/* By time, then by GPU: what all entries so far leave of it. */
static void a_text_becomes_events(void **state)
{
    (void)state;
    struct hw hw = test_hw();
    struct arena arena = ARENA_INIT;
    struct degrade_events events = gpu_events(
        &hw, 4, "node1=0.5 at 2 s, node1.gpu0=0.8, node0.gpu1=1, node1=1 at 3 s", &arena);
    assert_int_equal(events.n, 6);
    assert_event(&events, 0, 0, 1, 1);
    assert_event(&events, 1, 0, 2, 0.8);
    assert_event(&events, 2, 2, 2, 0.8 * 0.5);
    assert_event(&events, 3, 2, 3, 0.5);
    assert_event(&events, 4, 3, 2, 0.8);
    assert_event(&events, 5, 3, 3, 1);
    assert_true(degrade_uneven(&events, 4));
    events = gpu_events(&hw, 4, "*=0.5, node0=1 at 1 s, node1=1 at 1 s", &arena);
    assert_false(degrade_uneven(&events, 4));
    arena_release(&arena);
}

/* Adaptive routing: leaf 0's two cables up are one link, of which half of one and all of the other
 * are three quarters; under ECMP each is a link. Links are the 8 GPUs' NVLinks, 8 NICs out and in,
 * then leaf 0's. */
static void a_link_of_several_cables_has_their_mean(void **state)
{
    (void)state;
    struct hw hw = test_hw();
    struct arena arena = ARENA_INIT;
    struct degrade_events events =
        link_events(&hw, 8, "leaf0.up1=50 % at 1 s, gpu2.nvlink=10 %", &arena);
    assert_int_equal(events.n, 2);
    assert_event(&events, 0, 0, 2, 0.1);
    assert_event(&events, 1, 1, 8 + 16, 0.75);
    hw.cluster.network.routing = HW_ECMP;
    events = link_events(&hw, 8, "leaf0.up1=50 %", &arena);
    assert_int_equal(events.n, 1);
    assert_event(&events, 0, 0, 8 + 16 + 1, 0.5);
    arena_release(&arena);
}

/* Several moments are looked at in their order: a NIC that fails first is named first. */
static void the_first_failure_is_named(void **state)
{
    (void)state;
    struct hw hw = test_hw();
    expect_link_error(
        &hw, "gpu0.nvlink=0 at 2 s, node1.nic0.in=0 at 1 s", "node1.nic0.in has failed at 1 s");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(links_that_cannot_be_are_an_error),
        cmocka_unit_test(gpus_that_cannot_be_are_an_error),
        cmocka_unit_test(names_are_the_clusters),
        cmocka_unit_test(a_text_becomes_events),
        cmocka_unit_test(a_link_of_several_cables_has_their_mean),
        cmocka_unit_test(the_first_failure_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
