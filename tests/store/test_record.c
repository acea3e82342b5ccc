#include "store/record.h"
#include "scenario/identity.h"

#include "sample.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static const struct record_cell *cell(const struct record *record, const char *name)
{
    for (int i = 0; i < record->n; i++)
        if (strcmp(record->cells[i].name, name) == 0)
            return &record->cells[i];
    fail_msg("no cell %s", name);
    return NULL;
}

/* The order is a promise to readers of the CSV. */
static void first_cells_are_these(void **state)
{
    static const char *const names[] = {"model", "strategy", "micro_batch", "gpus", "status",
        "tflops_per_gpu", "hw_tflops_per_gpu", "published_tflops_per_gpu", "step_time_s",
        "tokens_per_s_per_gpu", "exposed_comm_s", "peak_allocated_bytes", "peak_reserved_bytes"};
    struct sample sample;
    struct record record;
    (void)state;
    sample_init(&sample);
    record_fill(&record, &sample.points[0], &sample.results[0]);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_string_equal(record.cells[i].name, names[i]);
    assert_string_equal(cell(&record, "status")->text, "ok");
    assert_int_equal(cell(&record, "gpus")->integer, 8);
    assert_true(cell(&record, "step_time_s")->real == 2);
    assert_int_equal(cell(&record, "required_bytes")->kind, RECORD_NULL);
    assert_string_equal(cell(&record, "digest")->text, "000000000000abc0");
    /* tdp 400 W, busy for 1.5 of 2 s: 0.75 x 0.9 x 400 + 0.25 x 0.4 x 400 */
    sample.points[0].hw.gpu.tdp = (struct quantity){400, 0, QUANTITY_ASSUMED, "test", NULL};
    record_fill(&record, &sample.points[0], &sample.results[0]);
    assert_true(fabs(cell(&record, "gpu_power_w")->real - 310) < 1e-9);
    double at_meter = 310 * 1.2; /* no node */
    sample.results[0].tokens_per_s_per_gpu = 100;
    record_fill(&record, &sample.points[0], &sample.results[0]);
    assert_true(fabs(cell(&record, "energy_per_token_j")->real - at_meter / 100) < 1e-12);
}

/* Every number of a run stands under its own name: each field has a value that no other has. */
static void every_number_stands_under_its_name(void **state)
{
    (void)state;
    struct sample sample;
    struct record record;
    sample_init(&sample);
    struct scenario_point *point = &sample.points[0];
    struct scenario_result *result = &sample.results[0];
    point->options.exec.seed = 77;
    point->options.strategy.train.seq_len = 78;
    point->options.strategy.train.grad_accum = 79;
    point->hw.node.gpus.value = 80;
    point->published.peak_allocated_bytes = 81;
    point->published.peak_reserved_bytes = 82;
    result->exec.ranks_simulated = 83;
    result->exec.n_programs = 2; /* one has no bubble */
    const struct {
        const char *name;
        double *from;
    } reals[] = {{"tflops_per_gpu", &result->tflops_per_gpu},
        {"hw_tflops_per_gpu", &result->hw_tflops_per_gpu},
        {"published_tflops_per_gpu", &point->published.tflops_per_gpu},
        {"step_time_s", &result->exec.step_time_s},
        {"tokens_per_s_per_gpu", &result->tokens_per_s_per_gpu},
        {"exposed_comm_s", &result->exec.breakdown.exposed_comm_s},
        {"peak_allocated_bytes", &result->exec.memory.peak_allocated_bytes},
        {"peak_reserved_bytes", &result->exec.memory.peak_reserved_bytes},
        {"hbm_capacity_bytes", &result->exec.memory.capacity_bytes},
        {"alloc_retries", &result->exec.memory.alloc_retries},
        {"alloc_retries_a_step", &result->exec.memory.alloc_retries_a_step},
        {"alloc_stall_s", &result->exec.memory.alloc_stall_s},
        {"compute_s", &result->exec.breakdown.compute_s},
        {"contention_s", &result->exec.breakdown.contention_s},
        {"host_bound_s", &result->exec.breakdown.host_bound_s},
        {"other_idle_s", &result->exec.breakdown.other_idle_s},
        {"comm_s", &result->exec.breakdown.comm_s},
        {"comm_latency_s", &result->exec.breakdown.comm_latency_s},
        {"comm_wait_s", &result->exec.breakdown.comm_wait_s},
        {"bubble_s", &result->exec.breakdown.bubble_s},
        {"stage_wait_s", &result->exec.breakdown.stage_wait_s},
        {"step_time_sd_s", &result->exec.step_time_sd_s},
        {"step_time_p05_s", &result->exec.step_time_p05_s},
        {"step_time_p95_s", &result->exec.step_time_p95_s},
        {"model_tflops_per_gpu", &result->model_tflops_per_gpu}, {"mfu", &result->mfu},
        {"hfu", &result->hfu}, {"samples_per_s", &result->samples_per_s},
        {"nvlink_utilisation", &result->exec.nvlink_utilisation},
        {"nic_utilisation", &result->exec.nic_utilisation}, {"events", &result->exec.events},
        {"plan_ops", &result->plan_ops}};
    enum { REALS = sizeof reals / sizeof *reals };
    for (int i = 0; i < REALS; i++)
        *reals[i].from = 1000 + i;
    record_fill(&record, point, result);
    for (int i = 0; i < REALS; i++) {
        assert_int_equal(cell(&record, reals[i].name)->kind, RECORD_REAL);
        assert_true(cell(&record, reals[i].name)->real == 1000 + i);
    }
    assert_int_equal(cell(&record, "micro_batch")->integer, 8);
    assert_int_equal(cell(&record, "model_params")->integer, 1000);
    assert_int_equal(cell(&record, "seed")->integer, 77);
    assert_int_equal(cell(&record, "seq_len")->integer, 78);
    assert_int_equal(cell(&record, "grad_accum")->integer, 79);
    assert_int_equal(cell(&record, "gpus_per_node")->integer, 80);
    assert_true(cell(&record, "published_peak_allocated_bytes")->real == 81);
    assert_true(cell(&record, "published_peak_reserved_bytes")->real == 82);
    assert_int_equal(cell(&record, "ranks_simulated")->integer, 83);
    assert_int_equal(cell(&record, "published_oom")->integer, 0);
    assert_string_equal(cell(&record, "published_id")->text, "P");
    assert_string_equal(cell(&record, "published_source")->text, "a paper");
    assert_string_equal(cell(&record, "cluster")->text, "a cluster");
    assert_string_equal(cell(&record, "gpu")->text, "a GPU");
}

static void out_of_memory_has_needs_and_no_speed(void **state)
{
    struct sample sample;
    struct record record;
    (void)state;
    sample_init(&sample);
    record_fill(&record, &sample.points[SAMPLE_OOM], &sample.results[SAMPLE_OOM]);
    assert_string_equal(cell(&record, "status")->text, "oom");
    assert_int_equal(cell(&record, "tflops_per_gpu")->kind, RECORD_NULL);
    assert_int_equal(cell(&record, "energy_per_token_j")->kind, RECORD_NULL);
    assert_int_equal(cell(&record, "peak_allocated_bytes")->kind, RECORD_NULL);
    assert_true(cell(&record, "shortfall_bytes")->real == 20 * 0x1p30); /* 100 - 80 GiB */
    assert_string_equal(cell(&record, "oom_category")->text, hbm_category_names[HBM_ACTIVATIONS]);
    assert_int_equal(
        cell(&record, "published_oom")->kind, RECORD_NULL); /* nothing was published for it */
}

static void curve_ignores_only_the_gpu_count(void **state)
{
    struct sample sample;
    (void)state;
    sample_init(&sample);
    struct scenario other = sample.points[0].options;
    uint64_t curve = scenario_curve(&other);
    other.cluster.gpus = 512;
    assert_true(scenario_curve(&other) == curve);
    other.strategy.train.global_batch = 1024; /* shared out over the GPUs */
    other.strategy.train.device_batch = 2;
    curve = scenario_curve(&other);
    other.strategy.train.device_batch = 4;
    assert_true(scenario_curve(&other) == curve);
    other.strategy.fsdp.limit_all_gathers = !other.strategy.fsdp.limit_all_gathers;
    assert_true(scenario_curve(&other) != curve);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(first_cells_are_these),
        cmocka_unit_test(every_number_stands_under_its_name),
        cmocka_unit_test(out_of_memory_has_needs_and_no_speed),
        cmocka_unit_test(curve_ignores_only_the_gpu_count)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
