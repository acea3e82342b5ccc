/* flopcast memory MODEL: what training takes on one GPU, and which GPUs hold it. A peak is
 * counted from the compiled plan; where the one GPU that is named is nearly full, the simulated
 * allocator has the last word, as in `run`.
 *
 * memory_load() makes the request, memory_need() counts it once, and the same rows of struct
 * memory_row go to the table, CSV and JSON. For each known GPU exec_peak_on() has the peak with
 * that one's CUDA context and communicators. What is subtle: NaN (MEMORY_NOT_GIVEN) is a figure
 * that is not known, for want of a model or a batch. try_allocator() simulates only where between
 * nothing and a quarter of the GPU is spare. Several points, and --savings, are printed elsewhere.
 */
#include "cli/memory.h"

#include "cli/cli.h"
#include "rows/rows.h"
#include "rows/sure.h"
#include "rows/words.h"
#include "rows/vary.h"
#include "config/config.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

COMMAND(cmd_memory, 20, "memory", 0, "estimate the memory that training a model takes",
    "flopcast memory llama2-7b --strategy zero3 --gpus 64 &&\n"
    "flopcast memory llama3.1-8b --gpu h100 --gpus 8 \\\n    --strategy fsdp2 "
    "--seq-len 8k --savings");

static double gib(double bytes)
{
    return bytes / GIB;
}

/* ---- what is modelled ---- */

static void memory_add(
    struct memory_rows *rows, const char *name, double modelled, double largest, const char *note)
{
    vec_push(
        &rows->list, (struct memory_row){"gpu", name, MEMORY_NOT_GIVEN, modelled, largest, note});
}

/* Frameworks that keep FP32 weights in mixed precision, and cast them for use. */
static const char *mixed_note(const struct memory_job *job)
{
    const struct strategy_options *options = &job->point.options.strategy;
    int precision = options->train.precision;
    bool mixed =
        !job->int8 && (precision == PRECISION_BF16_MIXED || precision == PRECISION_FP16_MIXED);
    bool frozen = options->train.lora_rank > 0;
    if (!mixed || frozen)
        return "";
    return options->kind == STRATEGY_SINGLE_DEVICE || options->kind == STRATEGY_DDP
               ? "FP32 in mixed precision: autocast casts copies for use"
           : options->kind == STRATEGY_FSDP
               ? "FP32 shards in mixed precision: FSDP gathers 16-bit copies for use"
               : "";
}

/* In which the job computes and stores; int8 is no precision of a scenario. */
static const char *precision_of(const struct memory_job *job)
{
    return job->int8 ? memory_base_names[MEMORY_BASE_INT8]
                     : precision_names[job->point.options.strategy.train.precision];
}

static const char *weights_note(const struct memory_request *request, struct arena *arena)
{
    const struct memory_job *job = &request->job;
    const struct model_shape *shape = &job->point.model.shape;
    int64_t gpus = job->point.options.cluster.gpus;
    if (!job->has_model || model_table_bytes(shape, gpus) == 0)
        return mixed_note(job);
    return arena_printf(arena,
        "tables of embeddings, shared out over all GPUs: %.3f GiB, their Adagrad %.3f GiB",
        gib((double)model_table_bytes(shape, gpus)),
        gib((double)model_table_state_bytes(shape, gpus)));
}

/* Which of the optimizer's bytes are there for a step alone. */
static const char *optimizer_note(
    const struct memory_request *request, const struct memory_need *need, struct arena *arena)
{
    static const double LEAST = 0.01;
    const struct memory_job *job = &request->job;
    double all = need->peak.category_bytes[HBM_OPTIMIZER], state = need->peak.kept_state_bytes;
    double params = (double)job->params;
    bool foreach = job->point.options.strategy.train.optimizer_impl == OPTIMIZER_FOREACH;
    if (job->point.options.strategy.kind == STRATEGY_DEEPSPEED)
        return "with FP32 weights, as DeepSpeed keeps them";
    if (!need->planned || all - state < LEAST * all)
        return "";
    return arena_printf(arena, "%.3f B/parameter state, %.3f temporaries of the step%s",
        state / params, (all - state) / params,
        foreach ? " (foreach's copies; fused has none)" : "");
}

static const char *activations_note(const struct memory_job *job, const struct memory_need *need)
{
    static const double NONE = 0.01;
    bool planned = need->planned;
    const struct exec_peak *peak = &need->peak;
    if (planned && peak->last == HBM_OPTIMIZER &&
        peak->category_bytes[HBM_ACTIVATIONS] < NONE * peak->largest_category[HBM_ACTIVATIONS])
        return job->counted ? "gone by the fullest moment, the optimizer's step"
                            : "of one token, gone by the fullest moment, the optimizer's step; "
                              "give --micro-batch and --seq-len";
    return job->counted && planned ? ""
           : planned && model_sample_tokens(&job->point.model.shape) > 0
               ? "of one sample; give --micro-batch"
           : planned        ? "of one token; give --micro-batch and --seq-len"
           : job->has_model ? "not modelled in int8"
                            : "need a model file, --micro-batch and --seq-len";
}

static void add_gpu_rows(struct memory_rows *rows, const struct memory_request *request,
    const struct memory_need *need, struct arena *arena)
{
    const struct memory_job *job = &request->job;
    bool planned = need->planned;
    bool lomo = job->point.options.strategy.train.optimizer == OPTIMIZER_LOMO;
    const char *activations = activations_note(job, need);
    const double *bytes = need->peak.category_bytes, *own = need->peak.largest_category;
    const struct {
        const char *name, *note;
        int category;
        bool needs_plan;
    } kinds[] = {
        {"weights", weights_note(request, arena), HBM_PARAMETERS, false},
        {"gradients", lomo ? "LOMO: one tensor's at a time" : "", HBM_GRADIENTS, false},
        {"optimizer", optimizer_note(request, need, arena), HBM_OPTIMIZER, false},
        {"copies", "weights gathered for use, or cast by autocast", HBM_GATHERED, true},
        {"buffers", "buckets", HBM_BUFFERS, true},
        {"activations", activations, HBM_ACTIVATIONS, true},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        int category = kinds[i].category;
        bool known = planned || !kinds[i].needs_plan, none = planned && !(own[category] > 0);
        memory_add(rows, kinds[i].name, known ? bytes[category] : MEMORY_NOT_GIVEN,
            planned ? own[category] : MEMORY_NOT_GIVEN,
            !known ? activations
            : none ? ""
                   : kinds[i].note);
    }
    if (need->peak.host_bytes > 0)
        memory_add(rows, "(in host memory)", need->peak.host_bytes, MEMORY_NOT_GIVEN,
            "pinned, for this GPU; no part of the total");
    bool of_stage = job->point.options.strategy.parallelism.pipeline > 1;
    memory_add(rows, "total", exec_tensors(&need->peak), MEMORY_NOT_GIVEN,
        of_stage ? "of the fullest stage at its fullest moment; without CUDA context, NCCL and "
                   "fragmentation"
        : planned && need->peak.last == HBM_OPTIMIZER
            ? "allocated at the fullest moment, the optimizer's step; without CUDA context, NCCL "
              "and fragmentation"
        : planned ? "allocated at the fullest moment; without CUDA context, NCCL and fragmentation"
                  : "without what needs a model file, CUDA context, NCCL and fragmentation");
}

static void cell_gib(struct table *table, const char *name, double bytes)
{
    table_number(table, name, "", bytes < 1e6 && bytes > 0 ? 6 : 3, gib(bytes));
}

/* ", micro-batch 8 of 512 tokens, naive attention"; an image is as long as its model makes it. */
static void print_batch(FILE *out, const struct memory_request *request)
{
    const struct train_options *o = &request->job.point.options.strategy.train;
    const struct model_shape *shape = &request->job.point.model.shape;
    const char *word = words_counted(shape);
    if (model_sample_tokens(shape) > 0)
        fprintf(out, ", micro-batch %" PRId64 " %.*s", o->micro_batch,
            (int)strlen(word) - (o->micro_batch == 1), word);
    else
        fprintf(out, ", micro-batch %" PRId64 " of %" PRId64 " token%s", o->micro_batch, o->seq_len,
            plural(o->seq_len));
    if (shape->n_heads > 0)
        fprintf(out, ", %s attention", attention_kernel_names[o->attention]);
    fprintf(out, ", %s checkpointing",
        o->activation_checkpointing ? checkpointing_names[o->activation_checkpointing] : "no");
}

/* What the simulated allocator makes of a job whose tensors fit on the one GPU that was named: gaps
 * between them take a tenth and more. NOT_TRIED: there is more room than gaps take, or nothing to
 * simulate. */
enum tried { NOT_TRIED, TRIED_FITS, TRIED_RETRIES, TRIED_GAPS };

static double spare_of(const struct memory_need *need, const struct memory_gpu *gpu)
{
    struct exec_peak peak = exec_peak_on(need->peak, &gpu->gpu, gpu->nccl_bytes);
    return exec_room(&peak);
}

static enum tried try_allocator(
    const struct memory_request *request, const struct memory_need *need)
{
    static const double GAPS = 0.25; /* of the GPU: more than they take of any job of scenarios/ */
    double spare = request->named ? spare_of(need, &request->gpus[0]) : 0;
    if (!request->named || request->anywhere || !need->planned || !request->job.counted ||
        spare < 0 || spare > GAPS * request->gpus[0].gpu.hbm_capacity.value)
        return NOT_TRIED;
    struct diag diag = DIAG_INIT;
    struct memory_job job = request->job;
    job.point.hw.gpu.context_bytes.value += memory_int8_extra(&job);
    if (memory_check(&job, &diag) != STATUS_OK)
        return NOT_TRIED;
    exec_be_quiet(&job.point.options.exec);
    enum fit_verdict verdict = fit_verdict(&job.point);
    return verdict == FIT_OK ? TRIED_FITS : verdict == FIT_RETRIES ? TRIED_RETRIES : TRIED_GAPS;
}

/* The one GPU that was named. */
static void memory_print_fit(FILE *out, const struct memory_request *request,
    const struct memory_need *need, enum tried tried, struct arena *arena)
{
    const struct memory_gpu *gpu = &request->gpus[0];
    struct exec_peak peak = exec_peak_on(need->peak, &gpu->gpu, gpu->nccl_bytes);
    double capacity = peak.capacity_bytes, spare = exec_room(&peak);
    struct sure sure = {0};
    struct memory_job changed;
    words_paragraph_of(out,
        "%s: %s; %.1f GiB of %.1f GiB, %.1f GiB of them CUDA context%s, %.1f GiB %s", gpu->gpu.name,
        spare < 0 || tried == TRIED_GAPS ? "does not fit"
        : tried == TRIED_RETRIES         ? "just fits"
        : need->planned ? sure_said_to_fit(arena, &sure, peak.total_bytes, capacity)
                        : "fits",
        gib(peak.total_bytes), gib(capacity), gib(peak.total_bytes - exec_tensors(&peak)),
        request->job.point.options.cluster.gpus > 1 ? " and NCCL" : "", gib(fabs(spare)),
        spare < 0             ? "too much"
        : tried == TRIED_GAPS ? "left, but in gaps between tensors"
                              : "to spare");
    sure_end(&sure);
    if (spare >= 0 && need->planned)
        words_paragraph(out,
            tried == TRIED_FITS
                ? "(with the allocator's fragmentation, as flopcast run simulates it)"
            : tried == TRIED_RETRIES
                ? "(by the simulated allocator: cudaMalloc fails and is tried again, which takes "
                  "time)"
            : tried == TRIED_GAPS
                ? "(by the simulated allocator, as flopcast run has it; what fits: flopcast "
                  "capacity)"
                : "(without the allocator's fragmentation, which flopcast run simulates)");
    if (spare >= 0)
        return;
    struct memory_change remedy;
    const char *change =
        memory_remedy(&remedy, &changed, &request->job, arena) ? memory_said(&remedy, arena) : NULL;
    int64_t rank = request->job.point.options.strategy.train.lora_rank;
    if (change && rank == 0 && changed.point.options.strategy.train.lora_rank > 0)
        fprintf(out,
            "no change of memory's makes this training fit (flopcast tune searches more layouts); "
            "another training does: %s\n",
            change);
    else
        fprintf(
            out, "cheapest change that makes it fit: %s\n", change ? change : "none that is known");
    words_paragraph(out,
        "(tried from cheap to dear: faster kernels, recomputation, smaller batches, sharding, "
        "less optimizer state, host memory, more GPUs, adapters)");
}

/* Of all known GPUs those that hold it. */
static void print_holders(FILE *out, const struct memory_request *request,
    const struct memory_need *need, struct arena *arena)
{
    const struct memory_gpu *least = NULL;
    int n = 0;
    for (int i = 0; i < request->n_gpus; i++) {
        const struct memory_gpu *at = &request->gpus[i];
        if (!memory_supported(&request->job, &at->gpu) || spare_of(need, at) < 0)
            continue;
        n++;
        if (!least || at->gpu.hbm_capacity.value < least->gpu.hbm_capacity.value)
            least = at;
    }
    const char *hold = n == 0 ? "none holds it"
                              : arena_printf(arena, "%d hold it, the smallest %s with %.1f GiB", n,
                                    least->gpu.name, gib(least->gpu.hbm_capacity.value));
    words_paragraph_of(out, "%.1f GiB of %s%s; of %d known GPUs %s", gib(exec_tensors(&need->peak)),
        request->job.point.options.strategy.parallelism.pipeline > 1 ? "a GPU of the fullest stage"
                                                                     : "each GPU",
        need->planned ? "" : " for weights, gradients and optimizer state", request->n_gpus, hold);
}

static void print_fits(
    FILE *out, const struct memory_request *request, const struct memory_need *need)
{
    static const double GAPS =
        0.1; /* of the GPU: what the allocator loses between tensors as a rule */
    struct table table = {0};
    for (int i = 0; i < request->n_gpus; i++) {
        const struct hw_gpu *gpu = &request->gpus[i].gpu;
        double room = spare_of(need, &request->gpus[i]);
        bool can = memory_supported(&request->job, gpu); /* with --gpu it would be an error */
        table_row(&table);
        table_text(&table, "known GPUs", "", gpu->name);
        table_number(&table, "HBM, GiB", "", 1, gib(gpu->hbm_capacity.value));
        table_text(&table, "", "",
            !can ? arena_printf(&table.numbers, "no matrix products in %s",
                       dtype_names[strategy_math(&request->job.point.options.strategy.train)])
                 : arena_printf(&table.numbers, "%s by %.1f GiB%s",
                       room >= 0 ? "fits" : "too small", gib(fabs(room)),
                       need->planned && room >= 0 && room < GAPS * gpu->hbm_capacity.value
                           ? ", without gaps"
                           : ""));
    }
    table_finish(out, &table);
}

static void memory_print_rows(
    FILE *out, const struct memory_request *request, const struct memory_rows *rows, bool rules)
{
    bool of_stage = request->job.point.options.strategy.parallelism.pipeline > 1;
    struct table table = {0};
    for (int i = 0; i < rows->list.n; i++) {
        const struct memory_row *row = &rows->list.at[i];
        if (strcmp(row->section, rules ? "rule" : "gpu") != 0)
            continue;
        table_row(&table);
        table_text(&table,
            rules      ? "rules of thumb"
            : of_stage ? "fullest stage"
                       : "on each GPU",
            "", row->name);
        if (rules) {
            cell_gib(&table, "rule, GiB", row->rule);
            cell_gib(&table, "modelled, GiB", row->modelled);
        } else {
            cell_gib(&table, "GiB", row->modelled);
            table_number(&table, "B/parameter", "", 3, row->modelled / (double)request->job.params);
            cell_gib(&table, "own peak, GiB", row->largest);
        }
        table_text(&table, "", "", row->note);
    }
    table_finish(out, &table);
}

/* Each stage of a pipeline, at its own fullest moment. */
static void memory_print_stages(FILE *out, const struct fit_stage *stages, int n)
{
    struct table table = {0};
    for (int s = 0; s < n; s++) {
        const double *bytes = stages[s].peak.category_bytes;
        table_row(&table);
        table_number(&table, "stage", "", 0, s);
        table_number(&table, "blocks", "", 0, (double)stages[s].blocks);
        table_number_as(&table, "parameters", "of a rank",
            words_count(&table.numbers, (double)stages[s].params));
        table_number(&table, "weights", "GiB", 3, gib(bytes[HBM_PARAMETERS]));
        table_number(&table, "gradients", "GiB", 3, gib(bytes[HBM_GRADIENTS]));
        table_number(&table, "optimizer", "GiB", 3, gib(bytes[HBM_OPTIMIZER]));
        table_number(&table, "activations", "GiB", 3, gib(bytes[HBM_ACTIVATIONS]));
        table_number(&table, "other", "GiB", 3, gib(bytes[HBM_GATHERED] + bytes[HBM_BUFFERS]));
        table_number(&table, "total", "GiB", 3, gib(exec_tensors(&stages[s].peak)));
    }
    fputc('\n', out);
    table_finish(out, &table);
}

/* The same as rows. */
static void add_stage_rows(
    struct memory_rows *rows, const struct fit_stage *stages, int n, struct arena *arena)
{
    for (int s = 0; s < n; s++)
        vec_push(
            &rows->list, (struct memory_row){"stage", arena_printf(arena, "%d", s),
                             MEMORY_NOT_GIVEN, exec_tensors(&stages[s].peak), MEMORY_NOT_GIVEN,
                             arena_printf(arena, "%" PRId64 " parameters in %" PRId64 " blocks",
                                 stages[s].params, stages[s].blocks)});
}

void memory_print_degrees(FILE *out, const struct memory_job *job)
{
    const struct parallelism_options *parallelism = &job->point.options.strategy.parallelism;
    const struct {
        const char *name;
        int64_t degree;
    } degrees[] = {{"tensor", parallelism->model.tensor}, {"context", parallelism->model.context},
        {"expert", parallelism->model.expert}, {"pipeline", parallelism->pipeline}};
    for (size_t i = 0; i < sizeof degrees / sizeof *degrees; i++)
        if (degrees[i].degree > 1)
            fprintf(out, ", %s %" PRId64, degrees[i].name, degrees[i].degree);
    int64_t rank = job->point.options.strategy.train.lora_rank;
    if (rank > 0)
        fprintf(out, ", LoRA of rank %" PRId64 " on a base in %s", rank,
            memory_base_names[job->int8_base                            ? MEMORY_BASE_INT8
                              : job->point.options.strategy.train.qlora ? MEMORY_BASE_NF4
                                                                        : MEMORY_BASE_HALF]);
}

/* " (1F1B, 8 micro-batches)" */
static void print_schedule(FILE *out, const struct memory_job *job)
{
    const struct parallelism_options *parallelism = &job->point.options.strategy.parallelism;
    if (parallelism->pipeline > 1)
        fprintf(out, " (%s%s, %" PRId64 " micro-batches)",
            parallelism->virtual_stages > 1 && !schedule_is_v(parallelism->schedule)
                ? "interleaved "
                : "",
            pipeline_schedule_names[parallelism->schedule],
            job->point.options.strategy.train.grad_accum);
}

static void memory_print_table(FILE *out, const struct memory_request *request,
    const struct memory_rows *rows, const struct memory_need *need, enum tried tried,
    const struct fit_stage *stages, int n_stages, struct arena *arena)
{
    const struct memory_job *job = &request->job;
    const struct train_options *train = &job->point.options.strategy.train;
    int64_t gpus = job->point.options.cluster.gpus;
    if (request->named)
        memory_print_fit(out, request, need, tried, arena);
    else
        print_holders(out, request, need, arena);
    fprintf(out, "\n%s: %s parameters (P)\n",
        job->has_model ? job->point.model.shape.name : request->name,
        words_count(arena, (double)job->params));
    char *text = NULL;
    size_t n = 0;
    FILE *memory = xmemstream(&text, &n);
    fprintf(memory, "%s, %s, %s over %" PRId64 " GPU%s", precision_of(job),
        optimizer_names[train->optimizer], memory_strategy(&job->point.options.strategy), gpus,
        plural(gpus));
    memory_print_degrees(memory, job);
    print_schedule(memory, job);
    if (job->counted)
        print_batch(memory, request);
    fclose(memory);
    words_paragraph(out, text);
    fputc('\n', out);
    free(text);
    memory_print_rows(out, request, rows, false);
    if (n_stages > 0)
        memory_print_stages(out, stages, n_stages);
    words_paragraph(out, need->planned ? "own peak: of the row alone, at its own fullest moment; "
                                         "B/parameter: bytes over all P, on this GPU or not"
                                       : "");
    if (!request->named) {
        fputc('\n', out);
        print_fits(out, request, need);
    }
    if (!request->teach)
        return;
    fputc('\n', out);
    memory_print_rows(out, request, rows, true);
}

static void memory_print_records(
    FILE *out, const struct memory_rows *rows, enum records_format format)
{
    struct rows cells = {0};
    for (int i = 0; i < rows->list.n; i++) {
        const struct memory_row *row = &rows->list.at[i];
        ROWS_CELLS(&cells, cell_text("section", row->section), cell_text("name", row->name),
            cell_real("rule_bytes", !isnan(row->rule), row->rule),
            cell_real("modelled_bytes", !isnan(row->modelled), row->modelled),
            cell_text("note", row->note),
            cell_real("largest_bytes", !isnan(row->largest), row->largest));
    }
    rows_finish(out, &cells, format);
}

static void print_json(FILE *out, const struct memory_request *request,
    const struct memory_rows *rows, const struct memory_need *need, enum tried tried)
{
    const struct memory_job *job = &request->job;
    const struct train_options *train = &job->point.options.strategy.train;
    fputs("{\"model\": ", out);
    json_write_string(out, job->has_model ? job->point.model.shape.name : request->name);
    fprintf(out,
        ", \"parameters\": %" PRId64
        ", \"dtype\": \"%s\", \"optimizer\": \"%s\", \"strategy\": \"%s\", \"gpus\": %" PRId64
        ", \"micro_batch\": %" PRId64 ", \"seq_len\": %" PRId64 ", \"fits\": [",
        job->params, precision_of(job), optimizer_names[train->optimizer],
        memory_strategy(&job->point.options.strategy), job->point.options.cluster.gpus,
        job->counted ? train->micro_batch : 0, job->counted ? train->seq_len : 0);
    for (int i = 0; i < request->n_gpus; i++) {
        const struct hw_gpu *gpu = &request->gpus[i].gpu;
        bool can = memory_supported(job, gpu);
        fprintf(out, "%s\n  {\"gpu\": ", i ? "," : "");
        json_write_string(out, gpu->name);
        fprintf(out,
            ", \"capacity_bytes\": %.17g, \"context_bytes\": %.17g, \"supported\": %s, \"fits\": "
            "%s}",
            gpu->hbm_capacity.value, gpu->context_bytes.value, can ? "true" : "false",
            can && tried != TRIED_GAPS && spare_of(need, &request->gpus[i]) >= 0 ? "true"
                                                                                 : "false");
    }
    fputs("], \"rows\": ", out);
    memory_print_records(out, rows, RECORDS_JSON);
    fputs("}\n", out);
}

static enum status memory_print(
    FILE *out, const struct memory_request *request, struct arena *arena, struct diag *diag)
{
    struct memory_rows rows = {0};
    struct memory_need need;
    struct fit_stage *stages = NULL;
    int n_stages = 0;
    if (memory_need(&need, &request->job, diag) != STATUS_OK)
        return STATUS_INPUT;
    if (request->job.point.options.strategy.parallelism.pipeline > 1)
        fit_stages(&stages, &n_stages, &request->job.point, arena, diag);
    enum tried tried = request->format == RECORDS_CSV ? NOT_TRIED : try_allocator(request, &need);
    add_gpu_rows(&rows, request, &need, arena);
    add_stage_rows(&rows, stages, n_stages, arena);
    if (request->teach)
        memory_add_rules(&rows, &request->job, arena);
    if (request->format == RECORDS_CSV)
        memory_print_records(out, &rows, RECORDS_CSV);
    else if (request->format == RECORDS_JSON)
        print_json(out, request, &rows, &need, tried);
    else
        memory_print_table(out, request, &rows, &need, tried, stages, n_stages, arena);
    vec_free(&rows.list);
    return STATUS_OK;
}

int cmd_memory(int argc, char **argv)
{
    struct memory_request request = {0};
    memory_parse(&request, argc, argv,
        "What training MODEL takes on one GPU at its fullest moment, and which GPUs hold it. MODEL "
        "is a scenario, a model (scenarios/models/t5-11b.yaml, a Hugging Face config.json) or a "
        "number of parameters (1B, 11.3B, 124M).\vA step is laid out as `run` does, and what it "
        "allocates is counted; of a model alone, of one token (image, sample) where neither "
        "--micro-batch nor --seq-len is given. Several points (--gpus 8,64) are a row each. Of a "
        "number of parameters only weights, gradients and optimizer "
        "state are counted. What the allocator reserves beyond that (fragmentation) is left out, "
        "except of a --gpu that it could be too much for: there the allocator is simulated, as in "
        "'flopcast run'. GiB, in which PyTorch and nvidia-smi count, are 2^30 bytes.");
    struct arena arena = ARENA_INIT;
    struct diag diag = DIAG_INIT;
    enum status status = memory_load(&request, &arena, &diag);
    if (status == STATUS_OK && request.set.n_points > 1 && (request.teach || request.savings))
        status =
            vary_refuse_several(&request.set, "--teach and --savings look at one", &arena, &diag);
    if (status == STATUS_OK && request.set.n_points > 1)
        memory_print_points(stdout, &request, &diag);
    else if (status == STATUS_OK && request.savings)
        memory_print_savings(stdout, &request, &arena, &diag);
    else if (status == STATUS_OK)
        memory_print(stdout, &request, &arena, &diag);
    memory_free(&request);
    arena_release(&arena);
    return cli_report(&diag);
}
