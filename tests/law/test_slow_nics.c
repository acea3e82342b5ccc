/* The NIC's speed is no kernel's: kernels lose what collectives take of their GPU while they are
 * resident, SMs, and while they move, HBM. By a NIC of 1 Gb/s instead of 400 they move next to
 * nothing, for long. */
#include "scenario/scenario.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#define SCENARIO FLOPCAST_SOURCE_DIR "/scenarios/llama2_7b_h100_fsdp.yaml"
#define MODEL FLOPCAST_SOURCE_DIR "/scenarios/models/llama3.2-1b.yaml"
#define CLUSTER FLOPCAST_SOURCE_DIR "/topologies/clusters/a100-80gb-8x200g.yaml"

/* Llama 3.2 1B on 8 nodes of one A100 without noise. */
static struct exec_breakdown run(double gbit_per_s, double channels, bool contention)
{
    struct arena arena = ARENA_INIT;
    const struct scenario_override set[] = {{"model", MODEL}, {"cluster.topology", CLUSTER},
        {"cluster.gpus", "8"}, {"fsdp.sharding_strategy", "FULL_SHARD"}, {"train.seq_len", "2048"},
        {"run.steps", "2"}, {"noise.gpu_speed_spread", "0"}, {"noise.kernel_jitter", "0"},
        {"noise.network_jitter", "0"}, {"noise.host_jitter", "0"}};
    struct diag diag = DIAG_INIT;
    struct scenario_set points;
    struct scenario_result result;
    if (scenario_load(&points, SCENARIO, set, (int)(sizeof set / sizeof *set), &arena, &diag) !=
        STATUS_OK)
        fail_msg("%s", diag.text);
    struct scenario_point *point = &points.points[0];
    point->hw.node.gpus.value = point->hw.node.nics.value = 1;
    point->hw.node.nic_bandwidth.value = gbit_per_s * 1e9 / 8;
    point->hw.cluster.nccl_channels =
        (struct quantity){.value = channels, .kind = QUANTITY_ASSUMED};
    point->options.exec.no_contention = !contention;
    assert_int_equal(scenario_simulate(&result, point, &arena, &diag), STATUS_OK);
    arena_release(&arena);
    return result.exec.breakdown;
}

/* On two channels, those of a NIC and a GPU a node: with the slow NIC a collective is resident all
 * the time, and kernels lose 2 of 108 SMs and what starts cost. Waves of tiles cost more than 2 SMs
 * in 108, at most one wave in eight; 5 % holds both. */
static void a_slow_nic_does_not_slow_kernels(void **state)
{
    (void)state;
    double fast_s = run(400, 2, true).compute_s, slow_s = run(1, 2, true).compute_s;
    if (slow_s > 1.05 * fast_s)
        fail_msg(
            "kernels take %g s a step with a NIC of 1 Gb/s, %g s with one of 400", slow_s, fast_s);
}

/* Alone, kernels take the same whatever the NIC; and beside collectives longer. */
static void alone_kernels_know_no_nic(void **state)
{
    (void)state;
    double fast_s = run(400, 2, false).compute_s, slow_s = run(1, 2, false).compute_s;
    if (!(slow_s < 1.000001 * fast_s && fast_s < 1.000001 * slow_s))
        fail_msg("kernels alone take %g s and %g s", slow_s, fast_s);
    assert_true(run(1, 2, true).compute_s > slow_s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slow_nic_does_not_slow_kernels),
        cmocka_unit_test(alone_kernels_know_no_nic),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
