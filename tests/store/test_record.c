#include "store/record.h"

#include "sample.h"

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
    static const char *const names[] = {"model", "strategy", "micro_batch", "gpus", "status", "tflops_per_gpu",
        "hw_tflops_per_gpu", "published_tflops_per_gpu", "step_time_s", "tokens_per_s_per_gpu", "exposed_comm_s",
        "peak_allocated_bytes", "peak_reserved_bytes"};
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
    assert_int_equal(cell(&record, "peak_allocated_bytes")->kind, RECORD_NULL);
    assert_true(cell(&record, "shortfall_bytes")->real == 20 * 0x1p30); /* 100 - 80 GiB */
    assert_string_equal(cell(&record, "oom_category")->text, hbm_category_names[HBM_ACTIVATIONS]);
    assert_int_equal(cell(&record, "published_oom")->kind, RECORD_NULL); /* nothing was published for it */
}

static void curve_ignores_only_the_gpu_count(void **state)
{
    struct sample sample;
    (void)state;
    sample_init(&sample);
    struct scenario other = sample.points[0].options;
    uint64_t curve = record_curve(&other);
    other.cluster.gpus = 512;
    assert_true(record_curve(&other) == curve);
    other.strategy.fsdp.limit_all_gathers = !other.strategy.fsdp.limit_all_gathers;
    assert_true(record_curve(&other) != curve);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(first_cells_are_these),
        cmocka_unit_test(out_of_memory_has_needs_and_no_speed), cmocka_unit_test(curve_ignores_only_the_gpu_count)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
