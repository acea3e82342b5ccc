/* flopcast fit MODEL --gpu G: what fits on a GPU. For each number of GPUs and way to save activations the largest
 * micro-batch, and the fewest GPUs for one sequence. */
#include "cli/cli.h"
#include "cli/memory.h"
#include "cli/words.h"
#include "strategy/footprint_fit.h"

#include <inttypes.h>

/* The GPU counts of the table: the one asked for, or powers of two. */
enum { MOST_COUNTS = 10 };
static int gpu_counts(const struct memory_request *request, int64_t counts[MOST_COUNTS])
{
    static const int64_t usual[MOST_COUNTS] = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512};
    for (int i = 0; i < MOST_COUNTS; i++)
        counts[i] = usual[i];
    if (request->options.gpus == 0)
        return MOST_COUNTS;
    counts[0] = request->options.gpus;
    return 1;
}

/* The search ends somewhere, which is no limit of the GPU's. */
static const char *batch_text(char *text, size_t n, int64_t batch)
{
    snprintf(text, n, "%s%" PRId64, batch == FOOTPRINT_MOST_BATCH ? ">= " : "", batch);
    return text;
}

static void print(FILE *out, const struct memory_request *request)
{
    char text[32];
    const struct hw_gpu *gpu = &request->gpus[0];
    double room = memory_room(gpu);
    struct footprint_job job = {request->params, &request->model, request->options};
    int64_t counts[MOST_COUNTS];
    int n = gpu_counts(request, counts);
    const struct model_shape *shape = &request->model.shape;
    bool naive = shape->n_heads > 0 && job.options.attention == ATTENTION_NAIVE;
    fprintf(out, "%s on %s: %.1f GB, less %.1f GB of CUDA context\n", request->model.shape.name, gpu->name,
        gpu->hbm_capacity.value * 1e-9, gpu->context_bytes.value * 1e-9);
    fprintf(out, "%s, %s, %s%s, ", footprint_dtype_names[job.options.dtype], optimizer_names[job.options.optimizer],
        footprint_strategy_names[job.options.strategy], naive ? ", naive attention" : "");
    if (model_sample_tokens(shape) > 0) /* as long as the model makes them */
        fputs(words_counted(shape), out);
    else
        fprintf(out, "samples of %" PRId64 " token%s", job.options.seq_len, plural(job.options.seq_len));
    fputs("; the largest micro-batch by activation checkpointing\n\n", out);
    fprintf(out, "%12s", "GPUs");
    for (int c = 0; c < CHECKPOINT_COUNT; c++)
        fprintf(out, "  %12s", checkpointing_names[c]);
    fputc('\n', out);
    for (int i = 0; i < n; i++) {
        fprintf(out, "%12" PRId64, counts[i]);
        for (job.options.checkpointing = 0; job.options.checkpointing < CHECKPOINT_COUNT; job.options.checkpointing++) {
            job.options.gpus = counts[i];
            int64_t batch = footprint_largest_batch(&job, room);
            fprintf(out, "  %12s", batch_text(text, sizeof text, batch));
        }
        fputc('\n', out);
    }
    fprintf(out, "%12s", "fewest GPUs");
    job.options.micro_batch = 1;
    for (job.options.checkpointing = 0; job.options.checkpointing < CHECKPOINT_COUNT; job.options.checkpointing++)
        fprintf(out, "  %12" PRId64, footprint_fewest_gpus(&job, room));
    fputs("\n\n0: none. In closed form, which errs both ways: kinds of tensors are added up each at its fullest, which "
          "is more\n"
          "than a run has at one time; NCCL's buffers and fragmentation, some GB, are left out. See 'flopcast run'.\n",
        out);
    if (naive && model_takes_flash(shape))
        fputs("Naive attention keeps the scores of every pair of tokens; --attention flash does not.\n", out);
}

int cmd_fit(int argc, char **argv)
{
    struct memory_request request = {
        .options = {.dtype = FOOTPRINT_BF16_MIXED, .strategy = FOOTPRINT_FSDP}, .fit = true};
    memory_parse(&request, argc, argv,
        "The largest micro-batch of MODEL that fits on a GPU, by number of GPUs (--gpus N: for that one) and by "
        "activation checkpointing, and the fewest GPUs, powers of two, that hold one sequence.");
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    if (memory_load(&request, &arena, &diag) == STATUS_OK) {
        if (request.has_model)
            print(stdout, &request);
        else
            diag_input(&diag, (struct source_pos){.file = request.name},
                "activations depend on the shape of the model; give a model file instead of a number of parameters");
    }
    arena_release(&arena);
    return cli_report(&diag);
}
