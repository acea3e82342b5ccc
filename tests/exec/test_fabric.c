/* Which links a collective loads on a network of switches, and what that does to its time. */
#include "fabric/isolated.h"
#include "exec/exec.h"
#include "fabric/fabric.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "../fabric/switches.h"

#include <string.h>

static double weight(const struct fixture *f, const char *name)
{
    char own[64];
    for (int u = 0; u < f->n_weights; u++)
        if (strcmp(fabric_link_name(own, sizeof own, &f->fabric, f->weights[u].link), name) == 0)
            return f->weights[u].weight;
    return 0;
}

/* Four nodes, two on a leaf. The ring 0 1 2 3 crosses the spines twice, from leaf 0 to leaf 1 (1 ->
 * 2) and back: each leaf's uplinks carry it once. Half of it goes over each NIC. */
static void a_ring_crosses_the_spines_where_nodes_lie_on_other_leaves(void **state)
{
    (void)state;
    struct fixture f;
    struct hw hw = test_hw();
    build(&f, &hw, 8, NULL);
    double rate = load(&f, (struct coll_group){0, 1, 8}, COLL_RING);
    assert_near(weight(&f, "gpu3.nvlink"), 1, 0);
    assert_near(weight(&f, "node2.nic1.out"), 0.5, 0);
    assert_near(weight(&f, "node2.nic1.in"), 0.5, 0);
    assert_near(weight(&f, "leaf0.up0"), 1, 0);
    assert_near(weight(&f, "leaf1.down0"), 1, 0);
    assert_near(rate, 20e9, 0); /* two NICs; two uplinks of 10 GB/s are as much */
    arena_release(&f.arena);
    hw.cluster.network.wiring = HW_RAIL; /* NIC i of all four nodes on leaf i */
    build(&f, &hw, 8, NULL);
    load(&f, (struct coll_group){0, 1, 8}, COLL_RING);
    assert_near(weight(&f, "leaf0.up0"), 0, 0);
    assert_near(weight(&f, "node2.nic1.out"), 0.5, 0);
    arena_release(&f.arena);
}

/* Four nodes of two GPUs, two nodes on a leaf. Of what a GPU sends to the 7 others 6/7 leave the
 * node, so 12/7 a node for each byte of a GPU, a third of it to each other node; leaf 0's two nodes
 * send two thirds of theirs up. Along a ring only one of the two would. */
static void an_all_to_all_crosses_the_spines_from_every_node(void **state)
{
    (void)state;
    struct fixture f;
    struct hw hw = test_hw();
    build(&f, &hw, 8, NULL);
    load(&f, (struct coll_group){0, 1, 8}, COLL_P2P);
    assert_near(weight(&f, "gpu3.nvlink"), 1. / 7, 1e-12);
    assert_near(weight(&f, "node2.nic1.out"), 6. / 7, 1e-12);
    assert_near(weight(&f, "node2.nic1.in"), 6. / 7, 1e-12);
    assert_near(weight(&f, "leaf0.up0"), 2 * 2. / 3 * 12 / 7, 1e-12);
    assert_near(weight(&f, "leaf0.down0"), 2 * 2. / 3 * 12 / 7, 1e-12);
    arena_release(&f.arena);
}

/* Nodes dealt to the leaves in turn: every hop crosses, a leaf's two nodes send 2 over uplinks of
 * 20 GB/s, where packed nodes send 1: the ring runs at 10 GB/s, half. */
static void a_spine_of_half_the_capacity_shows(void **state)
{
    (void)state;
    for (int placement = HW_PACKED; placement <= HW_SCATTERED; placement++)
        for (int spines = 2; spines <= 4; spines += 2) {
            struct fixture f;
            struct hw hw = test_hw();
            hw.cluster.network.placement = placement;
            hw.cluster.network.spines = assumed(spines);
            build(&f, &hw, 8, NULL);
            double rate = load(&f, (struct coll_group){0, 1, 8}, COLL_RING);
            assert_near(rate, placement == HW_SCATTERED && spines == 2 ? 10e9 : 20e9, 0);
            arena_release(&f.arena);
        }
}

/* The same through a whole run: 8 GB gathered by 8 ranks, 7 GB to move; 10 us, the one inter-node
 * hop of 14 us that bytes do not hide and 0.35 s or 0.7 s, then a kernel of 1 ms. What the NICs
 * carried is what the algorithm says: 7 GB out of and into each of 4 nodes. */
static void a_run_sees_the_spine_and_conserves_bytes(void **state)
{
    (void)state;
    for (int placement = HW_PACKED; placement <= HW_SCATTERED; placement++) {
        struct hw hw = test_hw();
        hw.cluster.network.placement = placement;
        struct arena arena = ARENA_INIT;
        struct plan plan = {0};
        struct plan_builder builder;
        plan_begin(&builder, &plan, 8);
        int world = plan_group(&builder, "world", 8, 1);
        int gather =
            plan_collective(&builder, STREAM_COMM, "gather", COLL_ALL_GATHER, 8e9, world, 0);
        plan_stream_wait(&builder, STREAM_COMPUTE, gather);
        plan_kernel(&builder, STREAM_COMPUTE, "move", kernel_stream(KERNEL_COPY, 1e9, 0, 0), 0);
        plan_end(&builder);
        struct exec_options options = {.steps = 1, .seed = 1};
        for (int fold = FOLD_AUTO; fold <= FOLD_OFF; fold++) {
            struct exec_result result;
            options.fold = fold;
            exec_run(&result, &plan, &hw, &options, &arena);
            double moving_s = placement == HW_SCATTERED ? 0.7 : 0.35;
            assert_near(result.step_time_s, 24e-6 + moving_s + 1e-3, 1e-9);
            assert_near(result.nic_utilisation * result.step_time_s * 16 * 10e9, 8 * 7e9, 1);
            assert_int_equal(result.ranks_simulated, fold == FOLD_AUTO ? 1 : 8);
        }
        plan_release(&plan);
        arena_release(&arena);
    }
}

/* One rank stands for all where every group meets links like those of its sisters: the whole job,
 * and groups inside a node as long as no link is degraded. */
static void what_meets_like_links_is_folded(void **state)
{
    (void)state;
    static const char slow[] = "node0.nic0.out = 30 %";
    static const struct {
        int size, stride, simulated;
        const char *degraded;
    } cases[] = {{8, 1, 1, NULL}, {8, 1, 1, slow}, {2, 1, 1, NULL}, {2, 1, 8, slow},
        {4, 2, 8, NULL}, {4, 1, 8, NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct hw hw = test_hw();
        struct arena arena = ARENA_INIT;
        struct plan plan = {0};
        struct plan_builder builder;
        plan_begin(&builder, &plan, 8);
        int group = plan_group(&builder, "group", cases[i].size, cases[i].stride);
        int gather =
            plan_collective(&builder, STREAM_COMM, "gather", COLL_ALL_GATHER, 8e9, group, 0);
        plan_stream_wait(&builder, STREAM_COMPUTE, gather);
        plan_kernel(&builder, STREAM_COMPUTE, "move", kernel_stream(KERNEL_COPY, 1e9, 0, 0), 0);
        plan_end(&builder);
        struct exec_options options = {
            .steps = 1, .seed = 1, .link_events = link_events(&hw, 8, cases[i].degraded, &arena)};
        struct exec_result folded, all;
        exec_run(&folded, &plan, &hw, &options, &arena);
        assert_int_equal(folded.ranks_simulated, cases[i].simulated);
        options.fold = FOLD_OFF;
        exec_run(&all, &plan, &hw, &options, &arena);
        assert_int_equal(all.ranks_simulated, 8);
        assert_near(folded.step_time_s, all.step_time_s, 0);
        plan_release(&plan);
        arena_release(&arena);
    }
}

/* One NIC of node 0 at 30 %: its ring's half runs at 3 GB/s, hence the ring at 6; groups of other
 * nodes, and in-node groups of node 0, are as fast as before. */
static void a_degraded_link_slows_exactly_those_that_cross_it(void **state)
{
    (void)state;
    struct fixture f;
    struct hw hw = test_hw();
    build(&f, &hw, 8, "node0.nic0.out = 30 %");
    assert_near(load(&f, (struct coll_group){0, 1, 8}, COLL_RING), 6e9, 1);
    assert_near(load(&f, (struct coll_group){0, 1, 4}, COLL_RING), 6e9, 1);  /* nodes 0 and 1 */
    assert_near(load(&f, (struct coll_group){4, 1, 4}, COLL_RING), 20e9, 1); /* nodes 2 and 3 */
    assert_near(load(&f, (struct coll_group){0, 1, 2}, COLL_RING), 100e9, 1);
    assert_near(
        load(&f, (struct coll_group){0, 2, 4}, COLL_RING), 3e9, 1); /* GPU 0 of each node: NIC 0 */
    assert_near(load(&f, (struct coll_group){1, 2, 4}, COLL_RING), 10e9, 1); /* GPU 1: NIC 1 */
    arena_release(&f.arena);
    hw.cluster.network = (struct hw_network){0};
    build(&f, &hw, 8, "node0.nics.*=0.5, gpu7.nvlink=0.1");
    assert_near(load(&f, (struct coll_group){0, 1, 4}, COLL_RING), 10e9, 1);
    assert_near(load(&f, (struct coll_group){4, 1, 4}, COLL_RING), 10e9, 1); /* NVLink of rank 7 */
    assert_near(load(&f, (struct coll_group){2, 1, 4}, COLL_RING), 20e9, 1);
    arena_release(&f.arena);
}

/* A failed uplink: adaptive routing has one of two cables left, ECMP puts all on the other one. */
static void a_failed_cable_is_routed_around(void **state)
{
    (void)state;
    for (int routing = HW_ADAPTIVE; routing <= HW_ECMP; routing++) {
        struct fixture f;
        struct hw hw = test_hw();
        hw.cluster.network.routing = routing;
        build(&f, &hw, 8, "leaf0.up1=0");
        assert_near(load(&f, (struct coll_group){0, 1, 8}, COLL_RING), 10e9, 1);
        assert_near(weight(&f, "leaf0.up0"), 1, 1e-12);
        arena_release(&f.arena);
    }
}

/* Rings of 8 GB (7 GB to move, 10 + 14 us before them) one after the other, at 20 GB/s: 0.350024 s
 * each. */
static double run_gathers(
    const struct hw *hw, int n, const char *degraded, struct exec_result *result)
{
    struct arena arena = ARENA_INIT;
    struct plan plan = {0};
    struct plan_builder builder;
    plan_begin(&builder, &plan, 8);
    int world = plan_group(&builder, "world", 8, 1), gather = -1;
    for (int i = 0; i < n; i++)
        gather = plan_collective(&builder, STREAM_COMM, "gather", COLL_ALL_GATHER, 8e9, world, 0);
    plan_stream_wait(&builder, STREAM_COMPUTE, gather);
    plan_kernel(&builder, STREAM_COMPUTE, "move", kernel_stream(KERNEL_COPY, 1e9, 0, 0), 0);
    plan_end(&builder);
    const struct exec_options options = {.steps = 1,
        .seed = 1,
        .fold = FOLD_OFF,
        .link_events = link_events(hw, 8, degraded, &arena)};
    exec_run(result, &plan, hw, &options, &arena);
    plan_release(&plan);
    arena_release(&arena);
    return result->step_time_s - 1e-3; /* the kernel */
}

/* Isolated means what a run of only this collective takes: on whole links (0.350024 s), over one
 * spine cable of 10 GB/s for the ring's 20, with a NIC at 30 %. */
static void alone_is_what_a_run_of_it_takes(void **state)
{
    (void)state;
    for (int c = 0; c < 3; c++) {
        struct hw hw = test_hw();
        struct arena arena = ARENA_INIT;
        struct diag diag = DIAG_INIT;
        struct exec_result result;
        const char *degraded = c == 2 ? "node0.nic0.out=30 %" : NULL;
        hw.cluster.network.spines = assumed(c == 1 ? 1 : 2);
        struct isolated *isolated =
            isolated_new(&hw, 8, 4, degraded, (struct source_pos){0}, &arena, &diag);
        double alone_s =
            coll_isolated_s(isolated_cost(isolated, COLL_ALL_GATHER, 8e9, COLL_FREE, NULL));
        assert_near(alone_s, 24e-6 + 0.35 / (c == 1 ? 0.5 : c == 2 ? 0.3 : 1), 1e-12);
        assert_near(alone_s, run_gathers(&hw, 1, degraded, &result), 1e-11);
        arena_release(&arena);
    }
}

static void alone_refuses_what_the_cluster_cannot_hold(void **state)
{
    (void)state;
    static const struct {
        int ranks, nodes;
        const char *degraded, *want;
    } cases[] = {
        {6, 4, NULL, "6 ranks on 4 nodes of 2 GPUs are not as many on each"},
        {6, 2, NULL, "6 ranks on 2 nodes of 2 GPUs are not as many on each"},
        {130, 65, NULL,
            "130 ranks on 65 nodes, but the cluster has 64 of 2 GPUs; take at most 128 ranks"},
        {8, 4, "leaf7.up0=0", "no link is called 'leaf7.up0'"},
    };
    struct hw hw = test_hw();
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct arena arena = ARENA_INIT;
        struct diag diag = DIAG_INIT;
        assert_null(isolated_new(&hw, cases[c].ranks, cases[c].nodes, cases[c].degraded,
            (struct source_pos){0}, &arena, &diag));
        if (!strstr(diag.text, cases[c].want))
            fail_msg("'%s'", diag.text);
        arena_release(&arena);
    }
}

/* Two gathers. A NIC of node 0 falls to 30 %, the ring to 6 GB/s, while the second one moves: at
 * 0.450048 s it has sent 2 of 7 GB and needs 5/6 s for the rest. What changes after the end changes
 * nothing; what changes before the second one slows it alone; a link that comes back stops slowing.
 * The NICs carry 14 GB out of and into each of 4 nodes in any case. */
static void a_link_that_degrades_slows_what_comes_after(void **state)
{
    (void)state;
    static const double one_s = 0.35 + 24e-6;
    static const struct {
        const char *degraded;
        double want_s, nics_Bps; /* of all NICs, when the step ends */
    } cases[] = {
        {"node0.nic0.out=30 % at 0.450048 s", one_s + 24e-6 + 0.1 + 5. / 6, 153e9},
        {"node0.nic0.out=30 % at 350.024 ms", one_s + 24e-6 + 7. / 6, 153e9},
        {"node0.nic0.out=30 % at 2 s", 2 * one_s, 160e9},
        {"node0.nic0.out=30 % at 0.450048 s, node0.nic0.out=1 at 0.950048 s", 2 * one_s + 0.35,
            160e9},
        {"node0.nic0.out=50 %, node0.nic0.out=1 at 0.200024 s", 2 * one_s + 0.1, 160e9},
    };
    struct hw hw = test_hw();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct exec_result result;
        double got_s = run_gathers(&hw, 2, cases[i].degraded, &result);
        if (fabs(got_s - cases[i].want_s) > 1e-9)
            fail_msg("%s: %.9f s, not %.9f", cases[i].degraded, got_s, cases[i].want_s);
        assert_near(result.nic_utilisation * result.step_time_s * cases[i].nics_Bps, 8 * 14e9, 1);
    }
}

/* One of leaf 0's two uplinks fails in the middle of a gather: its traffic moves to the other one,
 * under either routing, and the ring, of which the leaf sends 10 GB/s a NIC to the next, goes on at
 * 10 GB/s. 2 of 7 GB are sent after 0.100024 s, 5 are left. */
static void traffic_is_moved_off_a_cable_that_fails(void **state)
{
    (void)state;
    for (int routing = HW_ADAPTIVE; routing <= HW_ECMP; routing++) {
        struct hw hw = test_hw();
        hw.cluster.network.routing = routing;
        struct exec_result result;
        double whole_s = run_gathers(&hw, 1, NULL, &result);
        double failed_s = run_gathers(&hw, 1, "leaf0.up1=0 at 0.100024 s", &result);
        double sent = 0.1 / (whole_s - 24e-6); /* ECMP: connections may collide from the start */
        assert_near(failed_s, 24e-6 + 0.1 + (1 - sent) * 0.7, 1e-9);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_ring_crosses_the_spines_where_nodes_lie_on_other_leaves),
        cmocka_unit_test(an_all_to_all_crosses_the_spines_from_every_node),
        cmocka_unit_test(a_spine_of_half_the_capacity_shows),
        cmocka_unit_test(a_run_sees_the_spine_and_conserves_bytes),
        cmocka_unit_test(what_meets_like_links_is_folded),
        cmocka_unit_test(a_degraded_link_slows_exactly_those_that_cross_it),
        cmocka_unit_test(alone_is_what_a_run_of_it_takes),
        cmocka_unit_test(alone_refuses_what_the_cluster_cannot_hold),
        cmocka_unit_test(a_link_that_degrades_slows_what_comes_after),
        cmocka_unit_test(traffic_is_moved_off_a_cable_that_fails),
        cmocka_unit_test(a_failed_cable_is_routed_around),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
