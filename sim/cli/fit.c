/* flopcast fit MODEL --gpu G: what fits on a GPU. For each number of GPUs and way to save activations the largest
 * micro-batch, and the fewest GPUs for one sequence. */
#include "base/files.h"
#include "cli/cli.h"
#include "cli/memory.h"
#include "cli/records.h"
#include "cli/words.h"
#include "scenario/fit.h"
#include "strategy/footprint_fit.h"

#include <glob.h>
#include <inttypes.h>
#include <string.h>

/* The GPU counts of the table: the one asked for, or powers of two. */
enum { MOST_COUNTS = 10 };
static const int64_t usual_counts[MOST_COUNTS] = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512};

/* How an answer was found. */
enum basis { BASIS_SIMULATED, BASIS_RETRIES, BASIS_CLOSED_FORM };
static const char *const basis_marks[] = {[BASIS_SIMULATED] = " ", [BASIS_RETRIES] = "*", [BASIS_CLOSED_FORM] = "~"};

struct answer {
    int64_t number;
    enum basis basis;
};

struct fit {
    const struct memory_request *request;
    struct footprint_job job;
    struct hw hw;
    int64_t counts[MOST_COUNTS];
    int n_counts;
    struct answer batches[MOST_COUNTS][CHECKPOINT_COUNT], fewest[CHECKPOINT_COUNT];
    bool used[sizeof basis_marks / sizeof *basis_marks];
    struct diag why; /* the closed form had to do */
};

/* Whole nodes, or part of one. */
static bool takes(const struct hw *hw, int64_t gpus)
{
    int64_t node = hw_gpus_per_node(hw);
    return gpus <= node || (gpus % node == 0 && gpus / node <= (int64_t)hw->cluster.nodes.value);
}

/* The first of flopcast's clusters, by alphabet, that has the GPU and takes that many. */
static bool find_cluster(struct fit *fit, const struct hw_gpu *gpu, struct arena *arena)
{
    glob_t found = {0};
    bool known = false;
    if (glob(files_own(arena, "topologies/clusters/*.yaml"), 0, NULL, &found) != 0)
        return false;
    for (size_t i = 0; i < found.gl_pathc && !known; i++) {
        struct diag diag = DIAG_INIT;
        known = hw_load(&fit->hw, found.gl_pathv[i], arena, &diag) == STATUS_OK &&
                strcmp(fit->hw.gpu.name, gpu->name) == 0 && takes(&fit->hw, fit->counts[0]);
    }
    globfree(&found);
    return known;
}

/* The cluster that the job is tried on. A GPU that is in none is tried in the place of an H100; of one of unknown
 * speed only the memory is its own. */
static enum status choose_cluster(struct fit *fit, struct arena *arena, struct diag *diag)
{
    const struct memory_request *request = fit->request;
    const struct hw_gpu *gpu = &request->gpus[0];
    if (request->cluster_path)
        fit->hw = request->cluster;
    if (request->cluster_path)
        return STATUS_OK;
    if (find_cluster(fit, gpu, arena)) {
        fit->hw.gpu = *gpu; /* a file of one's own may have that name, and --set another memory */
        hw_derive(&fit->hw);
        return STATUS_OK;
    }
    enum status status = hw_load(&fit->hw, files_own(arena, "topologies/clusters/h100-8x400g.yaml"), arena, diag);
    if (request->any_math) {
        fit->hw.gpu.name = gpu->name;
        fit->hw.gpu.hbm_capacity = gpu->hbm_capacity;
        fit->hw.gpu.context_bytes = gpu->context_bytes;
    } else {
        fit->hw.gpu = *gpu;
    }
    hw_derive(&fit->hw);
    return status;
}

/* The job as a point to simulate; false: it cannot be one. */
static bool simulated(struct fit *fit, struct scenario_point *point, const struct footprint_options *options)
{
    struct strategy_options strategy = footprint_strategy_options(options);
    struct diag diag = DIAG_INIT;
    strategy.train.micro_batch = 1;
    if (!footprint_can_run(options))
        diag_input(&diag, (struct source_pos){0}, "nothing that is kept in INT8 is simulated");
    else
        fit_point(point, &fit->hw, &fit->request->model, &strategy, options->gpus, &diag);
    if (diag.n_errors > 0 && fit->why.n_errors == 0)
        fit->why = diag;
    return diag.n_errors == 0;
}

static void find_batches(struct fit *fit, double room)
{
    struct fit_search *searches = xcalloc((size_t)MOST_COUNTS * CHECKPOINT_COUNT, sizeof *searches);
    struct answer *of[MOST_COUNTS * CHECKPOINT_COUNT];
    struct footprint_job job = fit->job;
    int n = 0;
    for (int i = 0; i < fit->n_counts; i++)
        for (int c = 0; c < CHECKPOINT_COUNT; c++) {
            job.options.gpus = fit->counts[i];
            job.options.checkpointing = c;
            fit->batches[i][c] = (struct answer){footprint_largest_batch(&job, room), BASIS_CLOSED_FORM};
            searches[n] = (struct fit_search){.most = FOOTPRINT_MOST_BATCH};
            of[n] = &fit->batches[i][c];
            n += simulated(fit, &searches[n].point, &job.options);
        }
    fit_largest_batches(searches, n);
    for (int k = 0; k < n; k++)
        *of[k] = (struct answer){searches[k].micro_batch, searches[k].retries ? BASIS_RETRIES : BASIS_SIMULATED};
    free(searches);
}

/* One sequence on a number of GPUs, known from the table where that says so. */
static struct answer try_one(struct fit *fit, int64_t gpus, int checkpointing)
{
    struct footprint_options options = fit->job.options;
    struct scenario_point point;
    for (int i = 0; i < fit->n_counts; i++)
        if (fit->counts[i] == gpus && fit->batches[i][checkpointing].number < 2)
            return fit->batches[i][checkpointing];
    options.gpus = gpus;
    options.checkpointing = checkpointing;
    if (!simulated(fit, &point, &options))
        return (struct answer){0, BASIS_CLOSED_FORM};
    enum fit_verdict verdict = fit_verdict(&point);
    return (struct answer){fit_fits(verdict), verdict == FIT_RETRIES ? BASIS_RETRIES : BASIS_SIMULATED};
}

/* Powers of two, one sequence. From where no such job can be simulated on, the closed form says it. */
static struct answer find_fewest(struct fit *fit, int checkpointing, double room)
{
    struct footprint_job job = fit->job;
    job.options.checkpointing = checkpointing;
    job.options.micro_batch = 1;
    for (int64_t gpus = 1; gpus <= FOOTPRINT_MOST_GPUS; gpus *= 2) {
        struct answer one = try_one(fit, gpus, checkpointing);
        if (one.basis == BASIS_CLOSED_FORM)
            return (struct answer){footprint_fewest_gpus(&job, room), BASIS_CLOSED_FORM};
        if (one.number > 0)
            return (struct answer){gpus, one.basis};
    }
    return (struct answer){0, BASIS_SIMULATED};
}

static void print_head(FILE *out, const struct fit *fit)
{
    const struct hw_gpu *gpu = &fit->request->gpus[0];
    const struct model_shape *shape = &fit->request->model.shape;
    const struct footprint_options *options = &fit->job.options;
    bool naive = shape->n_heads > 0 && options->attention == ATTENTION_NAIVE;
    fprintf(out, "%s on %s: %.1f GB, less %.1f GB of CUDA context and %.1f GB of NCCL's for a communicator\n",
        shape->name, gpu->name, gpu->hbm_capacity.value * 1e-9, gpu->context_bytes.value * 1e-9,
        fit->hw.node.nccl_bytes.value * 1e-9);
    fprintf(out, "%s, %s, %s%s, ", footprint_dtype_names[options->dtype], optimizer_names[options->optimizer],
        footprint_strategy_names[options->strategy], naive ? ", naive attention" : "");
    if (model_sample_tokens(shape) > 0) /* as long as the model makes them */
        fputs(words_counted(shape), out);
    else
        fprintf(out, "samples of %" PRId64 " token%s", options->seq_len, plural(options->seq_len));
    fputs("; the largest micro-batch by activation checkpointing\n\n", out);
}

/* The search ends somewhere, which is no limit of the GPU's. */
static void print_answer(FILE *out, struct fit *fit, int column, struct answer answer, int64_t most)
{
    char text[32];
    bool unmarked = answer.basis == BASIS_SIMULATED, last = column + 1 == CHECKPOINT_COUNT;
    snprintf(text, sizeof text, "%s%" PRId64, answer.number == most ? ">= " : "", answer.number);
    fprintf(out, " %12s%s", text, unmarked && last ? "" : basis_marks[answer.basis]);
    fit->used[answer.basis] = true;
}

static void print_notes(FILE *out, const struct fit *fit)
{
    int length = 0;
    const char *why = diag_first(&fit->why, &length);
    const struct model_shape *shape = &fit->request->model.shape;
    fprintf(out,
        "\n0: none. Each number is the verdict of the simulated allocator, as `flopcast run` comes to it on cluster "
        "'%s'\nwith defaults for all else (--topology takes another cluster).\n",
        fit->hw.cluster.name);
    if (fit->used[BASIS_RETRIES])
        fputs("*: fits, but cudaMalloc fails and is tried again, which takes time. A smaller batch may be "
              "faster.\n",
            out);
    if (fit->used[BASIS_CLOSED_FORM])
        fprintf(out,
            "~: in closed form, which errs both ways and leaves out NCCL's buffers and fragmentation, because\n"
            "   %.*s\n",
            length, why);
    if (shape->n_heads > 0 && fit->job.options.attention == ATTENTION_NAIVE && model_takes_flash(shape))
        fputs("Naive attention keeps the scores of every pair of tokens; --attention flash does not.\n", out);
}

static void print(FILE *out, struct fit *fit)
{
    print_head(out, fit);
    fprintf(out, "%12s", "GPUs");
    for (int c = 0; c < CHECKPOINT_COUNT; c++)
        fprintf(out, " %12s%s", checkpointing_names[c], c + 1 < CHECKPOINT_COUNT ? " " : "");
    fputc('\n', out);
    for (int i = 0; i < fit->n_counts; i++) {
        fprintf(out, "%12" PRId64, fit->counts[i]);
        for (int c = 0; c < CHECKPOINT_COUNT; c++)
            print_answer(out, fit, c, fit->batches[i][c], FOOTPRINT_MOST_BATCH);
        fputc('\n', out);
    }
    fprintf(out, "%12s", "fewest GPUs");
    for (int c = 0; c < CHECKPOINT_COUNT; c++)
        print_answer(out, fit, c, fit->fewest[c], -1);
    fputc('\n', out);
    print_notes(out, fit);
}

/* A row a number of GPUs and kind of checkpointing. */
static void print_records(FILE *out, const struct fit *fit, enum records_format format)
{
    static const char *const names[] = {
        [BASIS_SIMULATED] = "simulated", [BASIS_RETRIES] = "retries", [BASIS_CLOSED_FORM] = "closed_form"};
    struct records records = records_begin(out, format);
    for (int i = 0; i < fit->n_counts; i++)
        for (int c = 0; c < CHECKPOINT_COUNT; c++) {
            struct answer batch = fit->batches[i][c], fewest = fit->fewest[c];
            RECORDS_ROW(&records, cell_text("model", fit->request->model.shape.name),
                cell_text("gpu", fit->request->gpus[0].name), cell_int("gpus", fit->counts[i]),
                cell_text("activation_checkpointing", checkpointing_names[c]),
                cell_int("largest_micro_batch", batch.number),
                cell_text("or_larger", batch.number == FOOTPRINT_MOST_BATCH ? "true" : "false"),
                cell_text("basis", names[batch.basis]), cell_int("fewest_gpus", fewest.number),
                cell_text("fewest_gpus_basis", names[fewest.basis]));
        }
    records_end(&records);
}

static enum status find_all(struct fit *fit, struct arena *arena, struct diag *diag)
{
    const struct memory_request *request = fit->request;
    double room = memory_room(&request->gpus[0]);
    memcpy(fit->counts, usual_counts, sizeof usual_counts);
    fit->n_counts = MOST_COUNTS;
    if (request->options.gpus > 0) {
        fit->counts[0] = request->options.gpus;
        fit->n_counts = 1;
    }
    fit->job = (struct footprint_job){request->params, &request->model, request->options};
    if (choose_cluster(fit, arena, diag) != STATUS_OK)
        return diag->worst;
    find_batches(fit, room);
    for (int c = 0; c < CHECKPOINT_COUNT; c++)
        fit->fewest[c] = find_fewest(fit, c, room);
    return STATUS_OK;
}

int cmd_fit(int argc, char **argv)
{
    struct memory_request request = {
        .options = {.dtype = FOOTPRINT_BF16_MIXED, .strategy = FOOTPRINT_FSDP}, .fit = true};
    memory_parse(&request, argc, argv,
        "The largest micro-batch of MODEL that fits on a GPU, by number of GPUs (--gpus N: for that one) and by "
        "activation checkpointing, and the fewest GPUs, powers of two, that hold one sequence. The simulated "
        "allocator decides, as in `flopcast run`.");
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    if (memory_load(&request, &arena, &diag) == STATUS_OK) {
        struct fit *fit = ARENA_NEW(&arena, struct fit);
        fit->request = &request;
        if (!request.has_model)
            diag_input(&diag, (struct source_pos){.file = request.name},
                "activations depend on the shape of the model; give a model file instead of a number of parameters");
        else if (find_all(fit, &arena, &diag) == STATUS_OK && request.format != MEMORY_TABLE)
            print_records(stdout, fit, request.format == MEMORY_CSV ? RECORDS_CSV : RECORDS_JSON);
        else if (diag.worst == STATUS_OK)
            print(stdout, fit);
    }
    memory_free(&request);
    arena_release(&arena);
    return cli_report(&diag);
}
