/* `flopcast capacity MODEL --gpu G`: for each number of GPUs and way to save activations the
 * largest micro-batch that fits, and the fewest GPUs for one sequence.
 *
 * The searches (study/fit.h) of all cells of the table run in parallel. The fewest GPUs are
 * looked for by doubling, from the smallest number that can hold a copy of the layout, and take
 * what the table knows already. What is subtle: a job that cannot be simulated (memory_check()
 * says why) is judged by the peak of its plan alone, which leaves out fragmentation; such
 * answers are marked with ~, and those where cudaMalloc is tried again with *. */
#include "cli/cli.h"
#include "cli/memory.h"
#include "rows/rows.h"
#include "rows/sure.h"
#include "rows/vary.h"
#include "rows/words.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

COMMAND(cmd_capacity, 22, "capacity", 0,
    "find the largest micro-batch and the fewest GPUs that fit",
    "flopcast capacity llama2-7b --gpu h100 --seq-len 2048");

/* The GPU counts of the table: the one asked for, or powers of two. */
enum { MOST_COUNTS = 10, MOST_BATCH = 1 << 14 };
static const int64_t usual_counts[MOST_COUNTS] = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512};

/* How an answer was found. */
enum basis { BASIS_SIMULATED, BASIS_RETRIES, BASIS_PEAK };
static const char *const basis_marks[] = {
    [BASIS_SIMULATED] = " ", [BASIS_RETRIES] = "*", [BASIS_PEAK] = "~"};

struct answer {
    int64_t number;
    enum basis basis;
};

struct capacity {
    const struct memory_request *request;
    int64_t counts[MOST_COUNTS];
    int n_counts;
    bool one_count; /* asked for: the fewest GPUs are no question */
    struct answer batches[MOST_COUNTS][CHECKPOINT_SEARCHED], fewest[CHECKPOINT_SEARCHED];
    bool used[sizeof basis_marks / sizeof *basis_marks];
    struct diag why; /* the peak had to do */
};

/* One sequence of the job on this number of GPUs. What INT8 optimizers keep beside the model is
 * there all the time, so it counts as context. */
static struct memory_job capacity_job_of(
    const struct capacity *capacity, int64_t gpus, int checkpointing)
{
    struct memory_job job = capacity->request->job;
    job.point.hw.gpu.context_bytes.value +=
        memory_int8_extra(&job); /* is there all the time, too */
    job.point.options.cluster.gpus = gpus;
    job.point.options.strategy.train.activation_checkpointing = checkpointing;
    job.point.options.strategy.train.micro_batch = 1;
    job.point.options.strategy.train.device_batch = 0;
    return job;
}

/* Made into a point to simulate; false: it cannot be one. */
static bool capacity_simulated(struct capacity *capacity, struct memory_job *job)
{
    struct diag diag = capacity->request->why;
    if (diag.n_errors == 0)
        memory_check(job, &diag);
    if (diag.n_errors > 0 && capacity->why.n_errors == 0)
        capacity->why = diag;
    return diag.n_errors == 0;
}

/* The same where it could be. */
static struct memory_job anywhere(struct memory_job job)
{
    memory_unlimited(&job.point.hw);
    return job;
}

static void capacity_show_progress(void *self, int done, int total)
{
    const struct capacity *capacity = self;
    fprintf(stderr, "\rcapacity: %d of %d largest micro-batches%s", done, total,
        done < total          ? ""
        : capacity->one_count ? "\n"
                              : "; the fewest GPUs ...\n");
}

static void find_batches(struct capacity *capacity)
{
    struct fit_search *searches =
        xcalloc((size_t)MOST_COUNTS * CHECKPOINT_SEARCHED, sizeof *searches);
    struct answer *of[MOST_COUNTS * CHECKPOINT_SEARCHED];
    int n = 0;
    for (int i = 0; i < capacity->n_counts; i++)
        for (int c = 0; c < CHECKPOINT_SEARCHED; c++) {
            struct memory_job job = capacity_job_of(capacity, capacity->counts[i], c);
            struct answer *answer = &capacity->batches[i][c];
            if (capacity_simulated(capacity, &job)) {
                searches[n] = (struct fit_search){.point = job.point, .most = MOST_BATCH};
                of[n++] = answer;
                continue;
            }
            job = anywhere(job);
            *answer = (struct answer){fit_largest_by_peak(&job.point, MOST_BATCH), BASIS_PEAK};
        }
    fit_largest_batches(
        searches, n, isatty(STDERR_FILENO) ? capacity_show_progress : NULL, capacity);
    for (int k = 0; k < n; k++)
        *of[k] = (struct answer){
            searches[k].micro_batch, searches[k].retries ? BASIS_RETRIES : BASIS_SIMULATED};
    free(searches);
}

/* One sequence on a number of GPUs, known from the table where that says so. A largest
 * micro-batch of 0 or 1 in the table is the answer for one sequence. */
static struct answer try_one(struct capacity *capacity, int64_t gpus, int checkpointing)
{
    struct memory_job job = capacity_job_of(capacity, gpus, checkpointing);
    for (int i = 0; i < capacity->n_counts; i++)
        if (capacity->counts[i] == gpus && capacity->batches[i][checkpointing].number < 2)
            return capacity->batches[i][checkpointing];
    if (!capacity_simulated(capacity, &job)) {
        job = anywhere(job);
        return (struct answer){memory_fits(&job), BASIS_PEAK};
    }
    enum fit_verdict verdict = fit_verdict(&job.point);
    return (struct answer){
        fit_fits(verdict), verdict == FIT_RETRIES ? BASIS_RETRIES : BASIS_SIMULATED};
}

/* Powers of two, one sequence. */
static struct answer find_fewest(struct capacity *capacity, int checkpointing)
{
    struct answer one = {0};
    int64_t copy = memory_copy_gpus(&capacity->request->job.point.options.strategy.parallelism);
    for (int64_t gpus = copy; gpus <= MEMORY_MOST_GPUS; gpus *= 2) {
        one = try_one(capacity, gpus, checkpointing);
        if (one.number > 0)
            return (struct answer){gpus, one.basis};
    }
    return one;
}

/* "8 without activation checkpointing, 2 with full, 4 with selective": those that there are, or how
 * those are that are not there ("without activation checkpointing or with full"). */
static const char *said_of(const struct capacity *capacity, bool there, struct arena *arena)
{
    const char *text = "";
    for (int c = 0; c < CHECKPOINT_SEARCHED; c++) {
        int64_t number =
            capacity->one_count ? capacity->batches[0][c].number : capacity->fewest[c].number;
        const char *how = c == CHECKPOINT_NONE
                              ? "without activation checkpointing"
                              : arena_printf(arena, "with %s", checkpointing_names[c]);
        if ((number > 0) != there)
            continue;
        const char *one =
            there ? arena_printf(arena, "%s %s", words_count(arena, (double)number), how) : how;
        text = arena_printf(arena, "%s%s%s", text, !*text ? "" : there ? ", " : " or ", one);
    }
    return text;
}

/* The fewest GPUs, or the largest micro-batches on those asked for. */
static void capacity_print_said(FILE *out, const struct capacity *capacity)
{
    struct arena arena = ARENA_INIT;
    const char *some = said_of(capacity, true, &arena), *none = said_of(capacity, false, &arena),
               *name = capacity->request->job.point.model.shape.name, *not_even = "";
    const char *on = capacity->one_count ? arena_printf(&arena, "%" PRId64 " GPU%s",
                                               capacity->counts[0], plural(capacity->counts[0]))
                                         : "any number of GPUs";
    if (*some && *none)
        not_even = arena_printf(&arena, "; %s not even 1 does", none);
    if (!*some)
        words_paragraph_of(
            out, "%s: not even a micro-batch of 1 fits on %s, whatever is recomputed", name, on);
    else if (capacity->one_count)
        words_paragraph_of(out, "%s: micro-batches up to %s fit on %s%s", name, some, on, not_even);
    else
        words_paragraph_of(out, "%s: the fewest GPUs that hold one sequence: %s%s%s", name, some,
            *none ? "; no number does " : "", none);
    fputc('\n', out);
    arena_release(&arena);
}

static void capacity_print_head(FILE *out, const struct capacity *capacity)
{
    const struct memory_job *job = &capacity->request->job;
    const struct hw_gpu *gpu = &job->point.hw.gpu;
    const struct model_shape *shape = &job->point.model.shape;
    const struct train_options *options = &job->point.options.strategy.train;
    capacity_print_said(out, capacity);
    bool naive = shape->n_heads > 0 && options->attention == ATTENTION_NAIVE;
    words_paragraph_of(out,
        "%s on %s: %.1f GiB, less %.1f GiB of CUDA context and %.1f GiB of NCCL's for a "
        "communicator",
        shape->name, gpu->name, gpu->hbm_capacity.value / GIB, gpu->context_bytes.value / GIB,
        job->point.hw.node.nccl_bytes.value / GIB);
    char *text = NULL;
    size_t n = 0;
    FILE *memory = xmemstream(&text, &n);
    fprintf(memory, "%s, %s, %s", precision_names[options->precision],
        optimizer_names[options->optimizer], memory_strategy(&job->point.options.strategy));
    memory_print_degrees(memory, job);
    fputs(naive ? ", naive attention, " : ", ", memory);
    if (model_sample_tokens(shape) > 0) /* as long as the model makes them */
        fputs(words_counted(shape), memory);
    else
        fprintf(
            memory, "samples of %" PRId64 " token%s", options->seq_len, plural(options->seq_len));
    fputs("; the largest micro-batch by activation checkpointing:", memory);
    fclose(memory);
    words_paragraph(out, text);
    fputc('\n', out);
    free(text);
}

/* The search ends somewhere, which is no limit of the GPU's. */
static void capacity_print_answer(
    FILE *out, struct capacity *capacity, int column, struct answer answer, int64_t most)
{
    char text[32];
    bool unmarked = answer.basis == BASIS_SIMULATED, last = column + 1 == CHECKPOINT_SEARCHED;
    snprintf(text, sizeof text, "%s%" PRId64, answer.number == most ? ">= " : "", answer.number);
    fprintf(out, " %12s%s", text, unmarked && last ? "" : basis_marks[answer.basis]);
    capacity->used[answer.basis] = true;
}

static void capacity_print_notes(FILE *out, const struct capacity *capacity)
{
    int length = 0;
    const char *why = diag_first(&capacity->why, &length);
    const struct scenario_point *point = &capacity->request->job.point;
    fputc('\n', out);
    words_paragraph_of(out,
        "0: none. Each number is the verdict of the simulated allocator, as `flopcast run` comes "
        "to it on cluster '%s' with defaults for all else (--topology takes another cluster).",
        point->hw.cluster.name);
    if (capacity->used[BASIS_RETRIES])
        words_paragraph(out, "*: fits, but cudaMalloc fails and is tried again, which takes time. "
                             "A smaller batch may be faster.");
    if (capacity->used[BASIS_PEAK])
        words_paragraph_of(out,
            "~: by the peak of a step, which leaves out fragmentation (fewer may fit), because "
            "%.*s",
            length, why);
    const struct model_shape *shape = &point->model.shape;
    if (shape->n_heads > 0 && point->options.strategy.train.attention == ATTENTION_NAIVE &&
        model_takes_flash(shape))
        words_paragraph(out, "Naive attention keeps the scores of every pair of tokens; "
                             "--attention flash does not.");
}

static void print_sure(FILE *out)
{
    struct sure sure = {0};
    sure_of_peak(&sure);
    sure_print(out, &sure);
    sure_end(&sure);
}

static void capacity_print(FILE *out, struct capacity *capacity)
{
    capacity_print_head(out, capacity);
    fprintf(out, "%12s", "GPUs");
    for (int c = 0; c < CHECKPOINT_SEARCHED; c++)
        fprintf(out, " %12s%s", checkpointing_names[c], c + 1 < CHECKPOINT_SEARCHED ? " " : "");
    fputc('\n', out);
    for (int i = 0; i < capacity->n_counts; i++) {
        fprintf(out, "%12" PRId64, capacity->counts[i]);
        for (int c = 0; c < CHECKPOINT_SEARCHED; c++)
            capacity_print_answer(out, capacity, c, capacity->batches[i][c], MOST_BATCH);
        fputc('\n', out);
    }
    if (!capacity->one_count)
        fprintf(out, "%12s", "fewest GPUs");
    for (int c = 0; c < CHECKPOINT_SEARCHED && !capacity->one_count; c++)
        capacity_print_answer(out, capacity, c, capacity->fewest[c], -1);
    fputs(capacity->one_count ? "" : "\n", out);
    capacity_print_notes(out, capacity);
    print_sure(out);
}

/* A row a number of GPUs and kind of checkpointing. */
static void capacity_print_records(
    FILE *out, const struct capacity *capacity, enum records_format format)
{
    static const char *const names[] = {
        [BASIS_SIMULATED] = "simulated", [BASIS_RETRIES] = "retries", [BASIS_PEAK] = "peak"};
    struct rows rows = {0};
    for (int i = 0; i < capacity->n_counts; i++)
        for (int c = 0; c < CHECKPOINT_SEARCHED; c++) {
            struct answer batch = capacity->batches[i][c], fewest = capacity->fewest[c];
            ROWS_CELLS(&rows, cell_text("model", capacity->request->job.point.model.shape.name),
                cell_text("gpu", capacity->request->job.point.hw.gpu.name),
                cell_int("gpus", capacity->counts[i]),
                cell_text("activation_checkpointing", checkpointing_names[c]),
                cell_int("largest_micro_batch", batch.number),
                cell_text("or_larger", batch.number == MOST_BATCH ? "true" : "false"),
                cell_text("basis", names[batch.basis]),
                cell_real("fewest_gpus", !capacity->one_count, (double)fewest.number),
                cell_text("fewest_gpus_basis", capacity->one_count ? NULL : names[fewest.basis]));
        }
    rows_finish(out, &rows, format);
}

static void find_all(struct capacity *capacity)
{
    int64_t asked = capacity->request->gpus_asked;
    int64_t copy = /* fewer or others cannot hold it */
        memory_copy_gpus(&capacity->request->job.point.options.strategy.parallelism);
    for (int i = 0; i < MOST_COUNTS; i++)
        if (usual_counts[i] % copy == 0)
            capacity->counts[capacity->n_counts++] = usual_counts[i];
    if (asked > 0 || capacity->n_counts == 0) {
        capacity->n_counts = 1;
        capacity->counts[0] = asked > 0 ? asked : copy;
    }
    capacity->one_count = asked > 0;
    find_batches(capacity);
    for (int c = 0; c < CHECKPOINT_SEARCHED && !capacity->one_count; c++)
        capacity->fewest[c] = find_fewest(capacity, c);
}

int cmd_capacity(int argc, char **argv)
{
    struct memory_request request = {.capacity = true};
    memory_parse(&request, argc, argv,
        "The largest micro-batch of MODEL, a model or scenario, that fits on a GPU, by number of "
        "GPUs (--gpus N: for that one) and by activation checkpointing, and without --gpus the "
        "fewest GPUs, powers of two, that hold one sequence. The simulated allocator decides, as "
        "in `flopcast run`.");
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    if (memory_load(&request, &arena, &diag) == STATUS_OK &&
        vary_refuse_several(&request.set, "flopcast capacity looks at one", &arena, &diag) ==
            STATUS_OK) {
        struct capacity *capacity = ARENA_NEW(&arena, struct capacity);
        capacity->request = &request;
        find_all(capacity);
        if (request.format != RECORDS_TABLE)
            capacity_print_records(stdout, capacity, request.format);
        else
            capacity_print(stdout, capacity);
    }
    memory_free(&request);
    arena_release(&arena);
    return cli_report(&diag);
}
