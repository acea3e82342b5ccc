/* Several jobs in one table of `flopcast memory`: the points of a sweep, or one job with each way
 * to save memory.
 *
 * A way to save memory is a change of settings; it is left out where it changes nothing, or cannot
 * be made. Its price is read off two steps, simulated without noise on GPUs with room for all of
 * it, so that a job that does not fit has a price, too: what the allocator loses by trying again is
 * no part of it. */
#include "cli/memory.h"

#include "rows/rows.h"
#include "rows/vary.h"
#include "rows/words.h"

#include <math.h>
#include <string.h>

static void savings_cells(struct rows *rows, const struct exec_peak *peak, bool planned)
{
    const struct {
        int category;
        struct rows_column column;
    } parts[] = {
        {HBM_PARAMETERS, COLUMN("weights_bytes", "weights", "GiB", 1 / 0x1p30, 1)},
        {HBM_GRADIENTS, COLUMN("gradients_bytes", "gradients", "GiB", 1 / 0x1p30, 1)},
        {HBM_OPTIMIZER, COLUMN("optimizer_bytes", "optimizer", "GiB", 1 / 0x1p30, 1)},
        {HBM_ACTIVATIONS, COLUMN("activations_bytes", "activations", "GiB", 1 / 0x1p30, 1)},
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        rows_real(rows, parts[i].column, planned || parts[i].category != HBM_ACTIVATIONS,
            peak->category_bytes[parts[i].category]);
    rows_real(rows, COLUMN("total_bytes", "total", "GiB", 1 / 0x1p30, 1), true, exec_tensors(peak));
    rows_real(rows, COLUMN("host_bytes", .scale = 1 / 0x1p30), true, peak->host_bytes);
    rows_text(rows, COLUMN("fits", "by the", "peak"), exec_room(peak) >= 0 ? "fits" : "too large");
}

enum status memory_print_points(FILE *out, struct memory_request *request, struct diag *diag)
{
    struct arena arena = ARENA_INIT;
    struct vary vary = {0};
    struct rows rows = {0};
    vary_find_unnamed(&vary, &request->set, &arena);
    for (int i = 0; i < request->set.n_points && diag->worst == STATUS_OK; i++) {
        struct memory_job job = request->job;
        struct memory_need need;
        job.point = request->set.points[i];
        job.params = job.point.model.params;
        if (memory_need(&need, &job, diag) != STATUS_OK)
            break;
        rows_next(&rows);
        rows_text(&rows, COLUMN("job", "job"), vary_name(&vary, &job.point, &arena));
        rows_int(&rows, COLUMN("gpus", "GPUs"), job.point.options.cluster.gpus);
        savings_cells(&rows, &need.peak, need.planned);
    }
    if (diag->worst == STATUS_OK)
        rows_print(out, &rows, request->format);
    if (diag->worst == STATUS_OK && request->format == RECORDS_TABLE)
        words_paragraph(out,
            "\non each GPU at its fullest moment, without CUDA context, NCCL and fragmentation, "
            "which flopcast run simulates; copies and buffers are in the total alone");
    rows_free(&rows);
    vec_free(&vary.options);
    arena_release(&arena);
    return diag->worst;
}

/* Seconds of a step where all of it would fit; 0: it cannot be simulated. */
static double savings_step_s(const struct memory_job *job)
{
    static const double ROOM = 1e15;
    struct scenario_point point = job->point;
    struct arena arena = ARENA_INIT;
    struct diag unsaid = DIAG_INIT;
    struct scenario_result result = {0};
    exec_be_quiet(&point.options.exec);
    point.hw.gpu.hbm_capacity.value = ROOM;
    bool ran = scenario_simulate(&result, &point, &arena, &unsaid) == STATUS_OK &&
               result.exec.status == EXEC_OK;
    double step_s = ran ? result.exec.step_time_s : 0;
    arena_release(&arena);
    return step_s;
}

/* By the simulated allocator where the job lies on its own cluster, else by the peak. NULL: no GPU
 * is named. */
static const char *savings_verdict(const struct memory_request *request,
    const struct memory_job *job, const struct exec_peak *peak)
{
    static const char *const verdicts[] = {
        [FIT_OK] = "yes", [FIT_RETRIES] = "just", [FIT_FRAGMENTED] = "no: gaps", [FIT_OOM] = "no"};
    struct scenario_point point = job->point;
    if (!request->named)
        return NULL;
    if (request->anywhere || exec_room(peak) < 0)
        return verdicts[exec_room(peak) < 0 ? FIT_OOM : FIT_OK];
    exec_be_quiet(&point.options.exec);
    point.hw.gpu.context_bytes.value += memory_int8_extra(job);
    return verdicts[fit_verdict(&point)];
}

/* A row: the job as it is (change NULL), or changed. False: the change cannot be made, or changes
 * nothing. */
static bool savings_row(struct rows *rows, const struct memory_request *request,
    const struct memory_change *change, struct exec_peak *as_it_is, double *plain_s,
    struct arena *arena)
{
    struct memory_job job = request->job;
    struct memory_need need;
    struct diag unsaid = DIAG_INIT;
    if (change && memory_apply(&job, change, arena, &unsaid) != STATUS_OK)
        return false;
    if (memory_need(&need, &job, &unsaid) != STATUS_OK)
        return false;
    double step_s = request->anywhere || !need.planned || !job.counted ? 0 : savings_step_s(&job);
    double bytes = exec_tensors(&need.peak), before = change ? exec_tensors(as_it_is) : bytes;
    if (change && bytes >= before)
        return false;
    if (!change) {
        *as_it_is = need.peak;
        *plain_s = step_s;
    }
    rows_next(rows);
    rows_text(rows, COLUMN("change", "change"), change ? memory_said(change, arena) : "as it is");
    rows_real(rows, COLUMN("total_bytes", "total", "GiB", 1 / 0x1p30, 1), true, bytes);
    rows_real(rows, COLUMN("saved_bytes", "saved", "GiB", 1 / 0x1p30, 1), true, before - bytes);
    rows_text(rows, COLUMN("fits", "fits"), savings_verdict(request, &job, &need.peak));
    rows_real(rows, COLUMN("host_bytes", "host", "GiB", 1 / 0x1p30, 1), need.peak.host_bytes > 0,
        need.peak.host_bytes);
    rows_real(rows, COLUMN("step_s", "step", "s", .digits = 3), step_s > 0, step_s);
    bool same_work = job.point.options.strategy.train.micro_batch ==
                     request->job.point.options.strategy.train.micro_batch;
    rows_real(rows, COLUMN("slower", "slower", "%", 100, 1, .sign = true),
        step_s > 0 && *plain_s > 0 && same_work, *plain_s > 0 ? step_s / *plain_s - 1 : 0);
    return true;
}

enum status memory_print_savings(
    FILE *out, const struct memory_request *request, struct arena *arena, struct diag *diag)
{
    struct rows rows = {0};
    struct exec_peak as_it_is = {0};
    double plain_s = 0;
    struct memory_change change;
    if (request->job.int8)
        return diag_input(
            diag, (struct source_pos){.file = "--savings"}, "of int8 states alone are counted");
    if (!savings_row(&rows, request, NULL, &as_it_is, &plain_s, arena))
        return diag_input(diag, (struct source_pos){.file = request->name}, "the job has no plan");
    for (int i = 0; memory_saving(&change, i); i++)
        savings_row(&rows, request, &change, &as_it_is, &plain_s, arena);
    rows_print(out, &rows, request->format);
    if (request->format == RECORDS_TABLE)
        words_paragraph(out,
            plain_s > 0 ? "\nEach change alone. Total: at the fullest moment, without CUDA "
                          "context, NCCL and fragmentation; fits: by the "
                          "simulated allocator (just: it tries again, no: gaps: between tensors); "
                          "step: without noise, with room for all of it"
                        : "\nEach change alone. Total: at the fullest moment, without CUDA "
                          "context, NCCL and fragmentation. Step times need a cluster that takes "
                          "the job, --micro-batch and --seq-len");
    rows_free(&rows);
    return STATUS_OK;
}
