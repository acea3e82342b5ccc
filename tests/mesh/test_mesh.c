#include "mesh/mesh.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

static struct mesh built(const int size[AXIS_COUNT], const char *order)
{
    struct mesh mesh;
    const char *bad;
    assert_true(mesh_build(&mesh, size, order, &bad));
    return mesh;
}

/* Members by definition: those that share every coordinate on the axes that are not named. */
static bool together(const struct mesh *mesh, unsigned axes, int a, int b)
{
    for (unsigned axis = 0; axis < AXIS_COUNT; axis++)
        if (!(axes & 1U << axis) &&
            mesh_coordinate(mesh, a, axis) != mesh_coordinate(mesh, b, axis))
            return false;
    return true;
}

static void check_group(const struct mesh *mesh, unsigned axes)
{
    struct mesh_group group = mesh_group(mesh, axes);
    assert_true(mesh_group_is_valid(&group, mesh->ranks));
    assert_int_equal(mesh_group_instances(&group, mesh->ranks) * group.size, mesh->ranks);
    for (int a = 0; a < mesh->ranks; a++) {
        int instance = mesh_group_instance(&group, a), first = mesh_group_first(&group, instance);
        assert_in_range(instance, 0, mesh_group_instances(&group, mesh->ranks) - 1);
        assert_true(first <= a && (a - first) % group.stride == 0 &&
                    (a - first) / group.stride < group.size);
        for (int b = 0; b < mesh->ranks; b++)
            assert_int_equal(
                together(mesh, axes, a, b), instance == mesh_group_instance(&group, b));
    }
}

/* The example in Megatron-LM's initialize_model_parallel(): 16 GPUs, tensor 2, pipeline 4: 8 tensor
 * groups [g0, g1], ...; 8 data groups [g0, g2], [g1, g3], [g4, g6], ...; 4 pipeline groups [g0, g4,
 * g8, g12], [g1, g5, g9, g13], ... */
static void groups_are_those_of_megatrons_example(void **state)
{
    (void)state;
    struct mesh mesh =
        built((const int[AXIS_COUNT]){[AXIS_TP] = 2, [AXIS_DP_SHARD] = 2, [AXIS_PP] = 4},
            mesh_order_default);
    assert_int_equal(mesh.ranks, 16);
    struct mesh_group tp = mesh_group(&mesh, 1U << AXIS_TP), dp = mesh_group(&mesh, AXES_DP);
    struct mesh_group pp = mesh_group(&mesh, 1U << AXIS_PP);
    assert_int_equal(mesh_group_instances(&tp, 16), 8);
    assert_int_equal(mesh_group_instances(&dp, 16), 8);
    assert_int_equal(mesh_group_instances(&pp, 16), 4);
    assert_int_equal(mesh_group_first(&dp, 2), 4);
    assert_int_equal(mesh_group_instance(&dp, 6), 2);
    assert_int_equal(dp.stride, 2);
    assert_int_equal(mesh_group_first(&pp, 1), 1);
    assert_int_equal(pp.stride, 4);
    assert_int_equal(mesh_neighbour(&mesh, 5, AXIS_PP, 1), 9);
    assert_int_equal(mesh_neighbour(&mesh, 13, AXIS_PP, 1),
        1); /* around the end, as interleaved schedules send */
    assert_int_equal(mesh_neighbour(&mesh, 1, AXIS_PP, -1), 13);
}

static void every_group_is_what_its_axes_say(void **state)
{
    (void)state;
    static const char *const orders[] = {
        "tp-cp-ep-dp-pp", "tp-cp-pp-ep-dp", "pp-dp_replicate-dp_shard-tp-cp-ep"};
    const int size[AXIS_COUNT] = {2, 3, 1, 2, 2, 3};
    for (size_t o = 0; o < sizeof orders / sizeof *orders; o++) {
        struct mesh mesh = built(size, orders[o]);
        assert_int_equal(mesh.ranks, 72);
        for (unsigned axis = 0; axis < AXIS_COUNT; axis++)
            check_group(&mesh, 1U << axis);
        check_group(&mesh, AXES_DP);
        check_group(&mesh, 1U << AXIS_TP | 1U << AXIS_CP);
        check_group(&mesh, AXES_ALL);
    }
}

/* First and last of three stages of two ranks: {0, 4}, {1, 5}, then the same six ranks on; those of
 * stage 1 in none. */
static void a_pair_of_places_leaves_the_others_out(void **state)
{
    (void)state;
    struct mesh mesh = built(
        (const int[AXIS_COUNT]){[AXIS_TP] = 2, [AXIS_PP] = 3, [AXIS_DP_SHARD] = 2}, "tp-pp-dp");
    struct mesh_group ends = mesh_pair(&mesh, AXIS_PP, 0, 2);
    static const int instance[12] = {0, 1, -1, -1, 0, 1, 2, 3, -1, -1, 2, 3};
    assert_true(mesh_group_is_valid(&ends, 12));
    assert_int_equal(mesh_group_instances(&ends, 12), 4);
    for (int r = 0; r < 12; r++)
        assert_int_equal(mesh_group_instance(&ends, r), instance[r]);
    assert_int_equal(mesh_group_first(&ends, 3), 7);
    struct mesh_group later = mesh_pair(&mesh, AXIS_PP, 1, 2);
    assert_int_equal(mesh_group_instance(&later, 0), -1);
    assert_int_equal(mesh_group_instance(&later, 5), 1);
}

static void orders_that_leave_an_axis_out_are_refused(void **state)
{
    (void)state;
    struct mesh mesh;
    const char *bad, *order = "tp-xp-dp";
    const int size[AXIS_COUNT] = {[AXIS_TP] = 2, [AXIS_PP] = 2};
    assert_false(mesh_build(&mesh, size, order, &bad));
    assert_ptr_equal(bad, order + 3);
    assert_false(mesh_build(&mesh, size, order = "tp-dp", &bad)); /* pp is larger than 1 */
    assert_ptr_equal(bad, order + strlen(order));
    assert_false(mesh_build(&mesh, size, order = "tp-dp-dp_shard-pp", &bad)); /* dp has it */
    assert_ptr_equal(bad, order + 6);
    assert_true(mesh_build(&mesh, size, "tp-pp", &bad));
    struct mesh data = mesh_data_parallel(24, 8);
    assert_int_equal(data.size[AXIS_DP_REPLICATE], 3);
    assert_int_equal(data.stride[AXIS_DP_REPLICATE], 8);
}

static void groups_that_overlap_or_stick_out_are_not_valid(void **state)
{
    (void)state;
    struct mesh_group group = {.size = 2, .stride = 2, .width = 2, .period = 4};
    assert_true(mesh_group_is_valid(&group, 8));
    assert_false(mesh_group_is_valid(&group, 6)); /* the period does not divide the ranks */
    group.width = 3; /* an instance's member would be another's first */
    assert_false(mesh_group_is_valid(&group, 12));
    group = (struct mesh_group){.size = 2, .stride = 2, .width = 1, .period = 4, .offset = 2};
    assert_false(mesh_group_is_valid(&group, 8)); /* 2 and 4: beyond the period */
}

/* MoE Parallel Folding: 16 ranks of which attention has TP 2 and CP 2 and experts have EP 8, whole
 * on each rank, in two stages. Those that share experts are neighbours whatever they are in
 * attention; the rest of the stage's, none here, hold the same. With EP 2 every second rank of a
 * stage does. */
static void experts_have_a_second_grid(void **state)
{
    (void)state;
    const int dense[AXIS_COUNT] = {
        [AXIS_TP] = 2, [AXIS_CP] = 2, [AXIS_DP_REPLICATE] = 2, [AXIS_PP] = 2};
    const int of_eight[AXIS_COUNT] = {[AXIS_EP] = 8, [AXIS_PP] = 2};
    const int of_two[AXIS_COUNT] = {[AXIS_EP] = 2, [AXIS_DP_REPLICATE] = 4, [AXIS_PP] = 2};
    const unsigned ep = 1U << AXIS_EP | AXES_OF_EXPERT_GRID,
                   expert_dp = AXES_EXPERT | AXES_OF_EXPERT_GRID;
    struct mesh mesh = built(dense, mesh_order_default);
    assert_true(mesh_fold(&mesh, of_eight, mesh_order_default));
    assert_int_equal(mesh_degree(&mesh, ep), 8);
    assert_int_equal(mesh_degree(&mesh, expert_dp), 1);
    struct mesh_group experts = mesh_group(&mesh, ep);
    assert_int_equal(experts.size, 8);
    assert_int_equal(experts.stride, 1);
    assert_int_equal(mesh_group_first(&experts, 1), 8);
    assert_int_equal(mesh_degree(&mesh, 1U << AXIS_CP), 2); /* the first grid is as it was */
    mesh = built(dense, mesh_order_default);
    assert_true(mesh_fold(&mesh, of_two, mesh_order_default));
    struct mesh_group alike = mesh_group(&mesh, expert_dp);
    assert_int_equal(alike.size, 4);
    assert_int_equal(alike.stride, 2);
    assert_int_equal(mesh_group_instance(&alike, 6), 0);
    assert_int_equal(mesh_group_instance(&alike, 7), 1);
    /* Stages that lie inside data parallelism would have other ranks of experts than of the rest.
     */
    mesh = built(dense, "tp-cp-pp-dp");
    assert_false(mesh_fold(&mesh, of_two, "tp-ep-pp-dp"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_are_those_of_megatrons_example),
        cmocka_unit_test(experts_have_a_second_grid),
        cmocka_unit_test(every_group_is_what_its_axes_say),
        cmocka_unit_test(a_pair_of_places_leaves_the_others_out),
        cmocka_unit_test(orders_that_leave_an_axis_out_are_refused),
        cmocka_unit_test(groups_that_overlap_or_stick_out_are_not_valid),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
