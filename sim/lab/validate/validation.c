#include "validate/validation.h"

#include "store/answer.h"

void validation_record(struct record_cell cells[VALIDATION_CELLS], const struct validate_row *row)
{
    const struct validate_figures *m = &row->measured, *p = &row->predicted;
    const struct validate_interval *in = &row->interval;
    const struct record_cell all[VALIDATION_CELLS] = {
        cell_text("id", row->id),
        cell_text("source", row->source),
        cell_text("model", row->model),
        cell_text("gpu", row->gpu),
        cell_text("strategy", row->strategy),
        cell_int("gpus", row->gpus),
        cell_int("curve", row->curve),
        cell_text("used_in_fit", row->used_in_fit),
        cell_text("status", validate_status_names[row->status]),
        cell_text("reason", row->reason),
        cell_int("measured_oom", row->measured_oom),
        cell_real(
            "measured_tokens_per_s_per_gpu", m->tokens_per_s_per_gpu > 0, m->tokens_per_s_per_gpu),
        cell_real(
            "predicted_tokens_per_s_per_gpu", p->tokens_per_s_per_gpu > 0, p->tokens_per_s_per_gpu),
        cell_real("measured_tflops_per_gpu", m->tflops_per_gpu > 0, m->tflops_per_gpu),
        cell_real("predicted_tflops_per_gpu", p->tflops_per_gpu > 0, p->tflops_per_gpu),
        cell_real("measured_step_time_s", m->step_time_s > 0, m->step_time_s),
        cell_real("predicted_step_time_s", p->step_time_s > 0, p->step_time_s),
        cell_real(
            "measured_peak_allocated_bytes", m->peak_allocated_bytes > 0, m->peak_allocated_bytes),
        cell_real(
            "predicted_peak_allocated_bytes", p->peak_allocated_bytes > 0, p->peak_allocated_bytes),
        cell_real(
            "measured_peak_reserved_bytes", m->peak_reserved_bytes > 0, m->peak_reserved_bytes),
        cell_real(
            "predicted_peak_reserved_bytes", p->peak_reserved_bytes > 0, p->peak_reserved_bytes),
        cell_real("measured_peak_bytes", row->measured_peak_bytes > 0, row->measured_peak_bytes),
        cell_real("predicted_peak_bytes", row->predicted_peak_bytes > 0, row->predicted_peak_bytes),
        cell_real("error", row->has_error, row->error),
        cell_real("measured_ratio", row->has_ratio, row->measured_ratio),
        cell_real("predicted_ratio", row->has_ratio, row->predicted_ratio),
        cell_real("predicted_low", in->known, in->low),
        cell_real("predicted_high", in->known, in->high),
        cell_text("table_file", row->file),
        cell_text("framework", row->framework),
        cell_text("layout", row->layout),
        cell_real("waiting_share", row->waiting_share >= 0, row->waiting_share),
    };
    for (int i = 0; i < VALIDATION_CELLS; i++)
        cells[i] = all[i];
}

enum status validation_put(
    struct store *store, const struct validate_table *table, const char *file, struct diag *diag)
{
    struct record_cell cells[VALIDATION_CELLS];
    struct store_answer answer;
    enum status status = store_answer_begin(
        &answer, store, "validation", RECORD_CELLS(cell_text("file", file)), diag);
    if (status != STATUS_OK)
        return status;
    for (int i = 0; i < table->rows.n && status == STATUS_OK; i++) {
        validation_record(cells, &table->rows.at[i]);
        status = store_answer_put(&answer, "row", cells, VALIDATION_CELLS, diag);
    }
    return store_answer_end(&answer, status, diag);
}
