/* The bubble of a pipeline, simulated, against the closed form: equal stages, no host, messages that cost nearly
 * nothing. */
#include "exec/exec.h"
#include "strategy/strategy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../check_and_compile.h"
#include "../near.h"
#include "../point.h"

enum { STAGES = 4, MICRO_BATCHES = 8 };

/* Llama 2 7B on four H100, with 64 words, so that embedding and head are small. */
static void simulate(
    struct exec_result *result, struct arena *arena, const struct parallelism_options *parallelism, int gpus)
{
    struct diag diag = DIAG_INIT;
    struct scenario_set set = {0};
    const struct scenario_override overrides[] = {{"cluster.gpus", "8"}, {"train.attention", "flash"},
        {"train.activation_checkpointing", "none"}, {"train.seq_len", "2048"}, {"train.micro_batch", "8"},
        {"train.global_batch", "64"}};
    if (scenario_load(&set, FLOPCAST_SOURCE_DIR "/scenarios/llama2_7b_h100_fsdp.yaml", OVERRIDES(overrides), arena,
            &diag) != STATUS_OK)
        fail_msg("%s", diag.text);
    struct scenario_point *point = &set.points[0];
    struct strategy_options *options = &point->options.strategy;
    options->host = (struct host_options){0};
    options->kind = STRATEGY_MEGATRON;
    options->parallelism = *parallelism;
    strategy_share_batch(options, gpus);
    point->hw.gpu.step_pause = (struct quantity){0};
    point->hw.node.gpu_bandwidth.value *= 1000;
    point->hw.cluster.nccl_channel_bandwidth = (struct quantity){0};
    struct model_shape shape = point->model.shape;
    shape.vocab = 64;
    struct model model;
    model_build(&model, &shape, arena);
    struct plan plan;
    struct exec_options exec = exec_default_options();
    exec.noise = (struct noise_options){0};
    exec.no_latency = exec.no_contention = exec.no_memory = true;
    if (check_and_compile(&plan, options, &model, &point->hw, gpus, arena, &diag) != STATUS_OK)
        fail_msg("%s", diag.text);
    exec_run(result, &plan, &point->hw, &exec, arena);
    assert_int_equal(result->status, EXEC_OK);
    plan_release(&plan);
}

/* All parts of exposed communication are its sum, of which the bubble is none. */
static void adds_up(const struct exec_breakdown *part)
{
    double sum = 0;
    for (int p = 0; p < PARALLEL_COUNT; p++) {
        sum += part->comm[p].exposed_s;
        assert_true(part->comm[p].exposed_s >= 0 && part->comm[p].moving_s >= 0);
    }
    assert_near(sum, part->exposed_comm_s, 1e-9);
}

/* Of m micro-batches and p stages with v chunks each a stage idles for (p - 1) / v of the m + (p - 1) / v times that a
 * micro-batch takes (Narayanan et al., arXiv 2104.04473, section 2.2). The last stage has 0.8 % more to do than the
 * others, the head, and the optimizer takes 0.3 % of a step. Where the host waits for messages, it is the same bubble.
 */
static void idle_time_is_that_of_the_closed_form(void **state)
{
    (void)state;
    static const struct {
        int schedule, chunks;
        bool overlaps, host_waits;
    } cases[] = {{SCHEDULE_1F1B, 1, false, false}, {SCHEDULE_1F1B, 1, false, true}, {SCHEDULE_GPIPE, 1, false, false},
        {SCHEDULE_GPIPE, 1, false, true}, {SCHEDULE_1F1B, 2, false, false}, {SCHEDULE_1F1B, 2, true, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct arena arena = ARENA_INIT;
        struct exec_result result;
        struct parallelism_options parallelism = strategy_default_options().parallelism;
        parallelism.pipeline = STAGES;
        parallelism.virtual_stages = cases[i].chunks;
        parallelism.schedule = cases[i].schedule;
        parallelism.overlap_p2p_comm = cases[i].overlaps;
        parallelism.batch_p2p_sync = cases[i].host_waits;
        simulate(&result, &arena, &parallelism, STAGES);
        double fill = (STAGES - 1.0) / cases[i].chunks, expected = fill / (MICRO_BATCHES + fill);
        double step_s = result.step_time_s, compute_s = result.breakdown.compute_s;
        assert_near(step_s, compute_s * (MICRO_BATCHES + fill) / MICRO_BATCHES, 0.01 * step_s);
        assert_near(result.breakdown.bubble_s, expected * step_s, 0.005 * step_s);
        assert_near(result.breakdown.host_bound_s, 0, 1e-4 * step_s);
        /* The GPU waits for the network no longer than messages move, which is nearly nothing. */
        assert_true(result.breakdown.exposed_comm_s <= result.breakdown.comm_s);
        assert_near(result.breakdown.comm_s, 0, 0.01 * step_s);
        adds_up(&result.breakdown);
        for (int p = 0; p < STAGES; p++) {
            adds_up(&result.programs[p].breakdown);
            assert_near(result.programs[p].breakdown.bubble_s, expected * step_s, 0.01 * step_s);
        }
        arena_release(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(idle_time_is_that_of_the_closed_form),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
