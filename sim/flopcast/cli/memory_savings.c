/* Several jobs in one table of `flopcast memory`: the points of a sweep, or one job with each way
 * to save memory.
 *
 * A way to save memory is a change of settings; it is left out where it changes nothing, or cannot
 * be made. Its price is read off two steps, simulated without noise on GPUs with room for all of
 * it, so that a job that does not fit has a price, too: what the allocator loses by trying again is
 * no part of it. */
#include "cli/memory.h"

#include "options/waiting.h"
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
    int fit = 0, largest = 0;
    double most = 0;
    vary_find_unnamed(&vary, &request->set, &arena);
    for (int i = 0; i < request->set.n_points && diag->worst == STATUS_OK; i++) {
        struct memory_job job = request->job;
        struct memory_need need;
        job.point = request->set.points[i];
        job.params = job.point.model.params;
        if (memory_need(&need, &job, diag) != STATUS_OK)
            break;
        fit += exec_room(&need.peak) >= 0;
        if (exec_tensors(&need.peak) > most) {
            most = exec_tensors(&need.peak);
            largest = i;
        }
        rows_next(&rows);
        rows_text(&rows, COLUMN("job", "job"), vary_name(&vary, &job.point, &arena));
        rows_int(&rows, COLUMN("gpus", "GPUs"), job.point.options.cluster.gpus);
        savings_cells(&rows, &need.peak, need.planned);
    }
    if (diag->worst == STATUS_OK && request->format == RECORDS_TABLE) {
        words_paragraph_of(out, "%d of %d points fit by the peak; the largest takes %.1f GiB: %s",
            fit, request->set.n_points, most / GIB,
            words_point(&request->set.points[largest], &arena));
        fputc('\n', out);
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

/* The table in the making: the job as it is comes first, what is said of the others is beside it.
 */
struct savings {
    const struct memory_request *request;
    struct rows rows;
    struct arena *arena;
    double plain_bytes, plain_s; /* as it is; 0 s: no step was simulated */
    const char *plain_verdict;
    int changes, fit; /* that save something; of these those that fit */
    double most_bytes,
        longer; /* of what saves most without adapters; longer: NAN where not known */
    const char *most;
};

/* A row: the job as it is (change NULL), or changed. False: the change cannot be made, or saves
 * nothing. */
static bool savings_row(struct savings *savings, const struct memory_change *change)
{
    const struct memory_request *request = savings->request;
    struct memory_job job = request->job;
    struct memory_need need;
    struct diag unsaid = DIAG_INIT;
    struct rows *rows = &savings->rows;
    if (change && memory_apply(&job, change, savings->arena, &unsaid) != STATUS_OK)
        return false;
    if (memory_need(&need, &job, &unsaid) != STATUS_OK)
        return false;
    double bytes = exec_tensors(&need.peak);
    if (change && bytes >= savings->plain_bytes)
        return false;
    double step_s = request->anywhere || !need.planned || !job.counted ? 0 : savings_step_s(&job);
    const char *verdict = savings_verdict(request, &job, &need.peak);
    const char *said = change ? memory_said(change, savings->arena) : "as it is";
    if (!change) {
        savings->plain_bytes = bytes;
        savings->plain_s = step_s;
        savings->plain_verdict = verdict;
    }
    double saved = savings->plain_bytes - bytes;
    bool same_work = job.point.options.strategy.train.micro_batch ==
                     request->job.point.options.strategy.train.micro_batch;
    bool compares = step_s > 0 && savings->plain_s > 0 && same_work;
    double longer = compares ? step_s / savings->plain_s - 1 : (double)NAN;
    if (change) {
        savings->changes++;
        savings->fit += verdict && *verdict != 'n';
    }
    bool same_training = job.point.options.strategy.train.lora_rank ==
                         request->job.point.options.strategy.train.lora_rank;
    if (change && same_training && saved > savings->most_bytes) {
        savings->most_bytes = saved;
        savings->most = said;
        savings->longer = longer;
    }
    rows_next(rows);
    rows_text(rows, COLUMN("change", "change"), said);
    rows_real(rows, COLUMN("total_bytes", "total", "GiB", 1 / 0x1p30, 1), true, bytes);
    rows_real(rows, COLUMN("saved_bytes", "saved", "GiB", 1 / 0x1p30, 1), true, saved);
    rows_text(rows, COLUMN("fits", "fits"), verdict);
    rows_real(rows, COLUMN("host_bytes", "host", "GiB", 1 / 0x1p30, 1), need.peak.host_bytes > 0,
        need.peak.host_bytes);
    rows_real(rows, COLUMN("step_s", "step", "s", .digits = 3), step_s > 0, step_s);
    rows_real(rows, COLUMN("slower", "slower", "%", 100, 1, .sign = true), compares, longer);
    return true;
}

/* "59.1 GiB of each GPU as it is, which fits; --checkpointing full saves most, 43.5 GiB for 24.7 %
 * of the step; 10 of 10 changes fit". */
static void savings_print_answer(FILE *out, const struct savings *savings)
{
    struct arena *arena = savings->arena;
    const char *verdict = savings->plain_verdict, *fits = "", *fit = "", *price = "";
    if (verdict)
        fits = *verdict == 'n' ? ", which does not fit" : ", which fits";
    if (verdict && savings->changes > 0)
        fit = arena_printf(arena, "; %d of %d changes fit", savings->fit, savings->changes);
    if (savings->most && !isnan(savings->longer))
        price = arena_printf(
            arena, " for %s %% of the step", words_number(arena, 100 * savings->longer, 1, true));
    const char *most = savings->most ? arena_printf(arena, "; %s saves most, %.1f GiB%s",
                                           savings->most, savings->most_bytes / GIB, price)
                                     : "; no change that is known saves anything";
    words_paragraph_of(
        out, "%.1f GiB of each GPU as it is%s%s%s", savings->plain_bytes / GIB, fits, most, fit);
    fputc('\n', out);
}

enum status memory_print_savings(
    FILE *out, struct memory_request *request, struct arena *arena, struct diag *diag)
{
    struct savings savings = {.request = request, .arena = arena};
    struct memory_change change;
    int n = 0;
    if (request->job.int8)
        return diag_input(
            diag, (struct source_pos){.file = "--savings"}, "of int8 states alone are counted");
    while (memory_saving(&change, n))
        n++;
    struct waiting *waiting = waiting_begin("memory", request->name, "jobs", NULL, false);
    bool planned = savings_row(&savings, NULL);
    for (int i = 0; planned && memory_saving(&change, i); i++) {
        waiting_count(waiting, i + 1, n + 1);
        savings_row(&savings, &change);
    }
    waiting_end(waiting);
    if (!planned)
        return diag_input(diag, (struct source_pos){.file = request->name}, "the job has no plan");
    if (request->format == RECORDS_TABLE)
        savings_print_answer(out, &savings);
    rows_finish(out, &savings.rows, request->format);
    if (request->format != RECORDS_TABLE)
        return STATUS_OK;
    words_paragraph(out, "\nEach change alone. Total: at the fullest moment, without CUDA context, "
                         "NCCL and fragmentation.");
    words_paragraph(out,
        savings.plain_s > 0
            ? "Fits: by the simulated allocator (just: it tries again; no: gaps: between tensors). "
              "Step: without noise, with room for all of it."
            : "Step times need a cluster that takes the job, --micro-batch and --seq-len.");
    return STATUS_OK;
}
