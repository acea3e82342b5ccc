#include "exec/peak.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static const struct hw cluster = {.gpu.context_bytes.value = 1000, .node.nccl_bytes.value = 100};

/* 512 bytes of weights all the time. Activations reach 1,024 bytes; half of them goes before 256
 * bytes of gradients come, which count 512. In the first step the fullest moment is 512 + 1,024.
 * The optimizer's state of 512 is made at the end of that step, so the second step reaches 512 +
 * 1,024 + 512. */
static void kept_from_the_first_step_is_there_in_the_second(void **state)
{
    (void)state;
    struct plan plan = {0};
    struct plan_builder builder;
    plan_begin(&builder, &plan, 2);
    plan_keep(&builder, "weight", 512, HBM_PARAMETERS);
    int one = plan_alloc(&builder, STREAM_COMPUTE, "one", 512, HBM_ACTIVATIONS);
    int two = plan_alloc(&builder, STREAM_COMPUTE, "two", 512, HBM_ACTIVATIONS);
    plan_free(&builder, one, PLAN_NO_OP);
    int gradient = plan_alloc(&builder, STREAM_COMPUTE, "gradient", 256, HBM_GRADIENTS);
    plan_free(&builder, two, PLAN_NO_OP);
    plan_keep_from_here(&builder, "moment", 512, HBM_OPTIMIZER);
    plan_free(&builder, gradient, PLAN_NO_OP);
    plan_end(&builder);
    struct exec_peak peak;
    exec_peak(&peak, &plan, &cluster);
    assert_true(peak.total_bytes == 2048 + 1000);
    assert_true(peak.category_bytes[HBM_PARAMETERS] == 512);
    assert_true(peak.category_bytes[HBM_ACTIVATIONS] == 1024);
    assert_true(peak.category_bytes[HBM_OPTIMIZER] == 512);
    assert_true(peak.category_bytes[HBM_GRADIENTS] == 0);
    assert_true(peak.largest_category[HBM_GRADIENTS] == 512);
    assert_true(peak.largest_category[HBM_ACTIVATIONS] == 1024);
    assert_true(peak.category_bytes[HBM_CONTEXT] == 1000 && peak.category_bytes[HBM_NCCL] == 0);
    plan_release(&plan);
}

/* NCCL makes a communicator for a group of several ranks, none for a rank alone. */
static void each_group_of_several_ranks_has_a_communicator(void **state)
{
    (void)state;
    struct plan plan = {0};
    struct plan_builder builder;
    plan_begin(&builder, &plan, 8);
    plan_group(&builder, "world", 8, 1);
    plan_group(&builder, "shard", 4, 1);
    plan_group(&builder, "self", 1, 1);
    plan_end(&builder);
    struct exec_peak peak;
    exec_peak(&peak, &plan, &cluster);
    assert_true(peak.category_bytes[HBM_NCCL] == 200);
    assert_true(peak.total_bytes == 1200);
    const struct hw_gpu gpu = {.context_bytes.value = 500, .hbm_capacity.value = 2000};
    peak = exec_peak_on(peak, &gpu, 300);
    assert_true(peak.category_bytes[HBM_NCCL] == 600 && peak.category_bytes[HBM_CONTEXT] == 500);
    assert_true(peak.total_bytes == 1100 && exec_room(&peak) == 900);
    plan_release(&plan);
}

/* Of two stages the second is fuller, which decides for the job. */
static void the_fullest_stage_decides(void **state)
{
    (void)state;
    for (int fuller = 0; fuller < 2; fuller++) {
        struct plan plan = {0};
        struct plan_builder builder;
        struct mesh mesh;
        const char *bad;
        const int size[AXIS_COUNT] = {[AXIS_DP_SHARD] = 2, [AXIS_PP] = 2};
        assert_true(mesh_build(&mesh, size, mesh_order_default, &bad));
        plan_begin_programs(&builder, &plan, &mesh, AXIS_PP);
        plan_keep(&builder, "weight", fuller ? 512 : 2048, HBM_PARAMETERS);
        plan_next_program(&builder);
        plan_keep(&builder, "weight", fuller ? 4096 : 512, HBM_PARAMETERS);
        plan_end(&builder);
        struct exec_peak peak;
        exec_peak(&peak, &plan, &cluster);
        assert_true(peak.category_bytes[HBM_PARAMETERS] == (fuller ? 4096 : 2048));
        assert_true(peak.total_bytes == (fuller ? 4096 : 2048) + 1000);
        plan_release(&plan);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kept_from_the_first_step_is_there_in_the_second),
        cmocka_unit_test(each_group_of_several_ranks_has_a_communicator),
        cmocka_unit_test(the_fullest_stage_decides)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
