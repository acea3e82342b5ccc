#include "validate/validation.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
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

/* Every number of a validated row stands under its name; what was not published, or not predicted,
 * is NULL. */
static void every_number_stands_under_its_name(void **state)
{
    (void)state;
    struct validate_row row = {.id = "an id",
        .source = "a source",
        .model = "a model",
        .gpu = "a GPU",
        .strategy = "ddp",
        .used_in_fit = "a file",
        .reason = "a reason",
        .gpus = 77,
        .curve = 78,
        .status = VALIDATE_OOM,
        .measured_oom = true,
        .file = "a table",
        .framework = "a stack",
        .layout = "TP+DP",
        .waiting_share = -1};
    struct validate_figures *m = &row.measured, *p = &row.predicted;
    const struct {
        const char *name;
        double *from;
    } reals[] = {{"measured_tokens_per_s_per_gpu", &m->tokens_per_s_per_gpu},
        {"predicted_tokens_per_s_per_gpu", &p->tokens_per_s_per_gpu},
        {"measured_tflops_per_gpu", &m->tflops_per_gpu},
        {"predicted_tflops_per_gpu", &p->tflops_per_gpu}, {"measured_step_time_s", &m->step_time_s},
        {"predicted_step_time_s", &p->step_time_s},
        {"measured_peak_allocated_bytes", &m->peak_allocated_bytes},
        {"predicted_peak_allocated_bytes", &p->peak_allocated_bytes},
        {"measured_peak_reserved_bytes", &m->peak_reserved_bytes},
        {"predicted_peak_reserved_bytes", &p->peak_reserved_bytes},
        {"measured_peak_bytes", &row.measured_peak_bytes},
        {"predicted_peak_bytes", &row.predicted_peak_bytes}, {"error", &row.error},
        {"measured_ratio", &row.measured_ratio}, {"predicted_ratio", &row.predicted_ratio},
        {"predicted_low", &row.interval.low}, {"predicted_high", &row.interval.high},
        {"waiting_share", &row.waiting_share}};
    static const char *const texts[][2] = {{"id", "an id"}, {"source", "a source"},
        {"model", "a model"}, {"gpu", "a GPU"}, {"strategy", "ddp"}, {"used_in_fit", "a file"},
        {"reason", "a reason"}, {"status", "oom"}, {"table_file", "a table"},
        {"framework", "a stack"}, {"layout", "TP+DP"}};
    static const struct {
        const char *name;
        int value;
    } integers[] = {{"gpus", 77}, {"curve", 78}, {"measured_oom", 1}};
    enum { REALS = sizeof reals / sizeof *reals, TEXTS = sizeof texts / sizeof *texts };
    enum { INTEGERS = sizeof integers / sizeof *integers };
    assert_int_equal(REALS + TEXTS + INTEGERS, VALIDATION_CELLS);
    struct record record = {.n = VALIDATION_CELLS};
    validation_record(record.cells, &row);
    for (int i = 0; i < REALS; i++)
        assert_int_equal(cell(&record, reals[i].name)->kind, RECORD_NULL);
    for (int i = 0; i < REALS; i++)
        *reals[i].from = 1000 + i;
    row.has_error = row.has_ratio = row.interval.known = true;
    validation_record(record.cells, &row);
    for (int i = 0; i < REALS; i++) {
        assert_int_equal(cell(&record, reals[i].name)->kind, RECORD_REAL);
        assert_true(cell(&record, reals[i].name)->real == 1000 + i);
    }
    for (int i = 0; i < TEXTS; i++)
        assert_string_equal(cell(&record, texts[i][0])->text, texts[i][1]);
    for (int i = 0; i < INTEGERS; i++)
        assert_int_equal(cell(&record, integers[i].name)->integer, integers[i].value);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_number_stands_under_its_name)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
