/* Energy of a step: by hand, and its laws on simulated points. */
#include "scenario/energy.h"

#include "workspace.h"

#include "../near.h"
#include "hw/power.h"

#include <math.h>

#define NUMBER(value) ((struct quantity){(value), 0, QUANTITY_ASSUMED, "test", NULL})

/* A node of 8 GPUs of 400 W: 0.9 of it while busy, 0.4 while waiting; a host of 1,600 W, no NIC;
 * PUE 1.25. A step of 2 s, 1.5 s of it computing: 1.5 x 360 + 0.5 x 160 = 620 J of a GPU, 310 W. At
 * the meter (310 + 200) x 1.25 = 637.5 W. At 5,000 tokens/s a GPU: 0.1275 J a token. */
static void by_hand(void **state)
{
    (void)state;
    struct scenario_point point = {
        .hw = {.gpu = {.tdp = NUMBER(400), .power = {NUMBER(50), NUMBER(0.9), NUMBER(0.4)}},
            .node = {.gpus = NUMBER(8), .host_power = NUMBER(1600)},
            .cluster = {.pue = NUMBER(1.25)}}};
    struct scenario_result result = {.exec = {.step_time_s = 2,
                                         .breakdown = {.compute_s = 1.5,
                                             .exposed_comm_s = 0.25,
                                             .host_bound_s = 0.125,
                                             .other_idle_s = 0.125}},
        .tokens_per_s_per_gpu = 5000};
    struct scenario_energy energy = scenario_energy(&point, &result);
    assert_near(energy.gpu_power_w, 310, 1e-9);
    assert_near(energy.power_w, 637.5, 1e-9);
    assert_near(energy.per_token_j, 0.1275, 1e-12);
    assert_near(energy.waiting_power_w, (160 + 200) * 1.25, 1e-9);
    assert_near(energy.idle_power_w, (50 + 200) * 1.25, 1e-9);
    result.exec.status = EXEC_OOM;
    assert_true(scenario_energy(&point, &result).per_token_j == 0);
}

/* On one node, on two that wait for each other, and with a host that the GPU waits for: between
 * idle and the limit, of a step that waits more less power; PUE and all watts change no time. */
static void laws(void **state)
{
    (void)state;
    static const struct scenario_override overrides[] = {
        {"cluster.gpus", "[8, 16, 32]"}, {"host.kernel_issue", "[1us, 100us]"}};
    struct loaded *loaded = load_text(BASE, overrides, 2);
    assert_int_equal(loaded->status, STATUS_OK);
    assert_int_equal(loaded->set.n_points, 6);
    for (int i = 0; i < loaded->set.n_points; i++) {
        struct scenario_point *point = &loaded->set.points[i];
        struct scenario_result result, other;
        assert_int_equal(
            scenario_simulate(&result, point, &loaded->arena, &loaded->diag), STATUS_OK);
        struct hw_power power = hw_power_of(&point->hw);
        struct scenario_energy energy = scenario_energy(point, &result);
        double busy = result.exec.breakdown.compute_s / result.exec.step_time_s;
        assert_true(busy > 0 && busy < 1);
        assert_true(energy.gpu_power_w > power.waiting_w && energy.gpu_power_w < power.busy_w);
        /* Of the default shares: 300 W x (0.4 + 0.5 busy). */
        assert_near(energy.gpu_power_w, 300 * (0.4 + 0.5 * busy), 1e-9);
        point->hw.cluster.pue = NUMBER(1);
        double in_the_hall = scenario_energy(point, &result).per_token_j;
        assert_near(energy.per_token_j, 1.2 * in_the_hall, 1e-9 * in_the_hall);
        point->hw.gpu.power = (struct hw_gpu_power){NUMBER(10), NUMBER(0.5), NUMBER(0.1)};
        point->hw.node.host_power = NUMBER(0);
        assert_int_equal(
            scenario_simulate(&other, point, &loaded->arena, &loaded->diag), STATUS_OK);
        assert_true(other.exec.digest == result.exec.digest);
        assert_true(scenario_energy(point, &other).per_token_j < in_the_hall);
    }
    unload(loaded);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(by_hand), cmocka_unit_test(laws)};
    return cmocka_run_group_tests(tests, enter_workspace, leave_workspace);
}
