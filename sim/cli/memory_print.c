#include "base/vec.h"
#include "cli/memory.h"
#include "cli/table.h"
#include "cli/words.h"
#include "config/config.h"
#include "strategy/footprint_fit.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

const char *const memory_format_names[MEMORY_FORMAT_COUNT + 1] = {"table", "csv", "json", NULL};

#define NOT_GIVEN ((double)NAN)

/* Ranks and job sizes that the rows of rules are told for when the user names none. */
enum { LORA_RANK = 16, ZERO_GPUS = 64 };

struct row {
    const char *section; /* "gpu": bytes on one GPU; "rule": a rule of thumb */
    const char *name;
    double rule;     /* bytes; NOT_GIVEN where there is none */
    double modelled; /* bytes; NOT_GIVEN where nothing is modelled */
    const char *note;
};
struct rows {
    VEC(struct row) list;
};

static void add(
    struct rows *rows, const char *section, const char *name, double rule, double modelled, const char *note)
{
    vec_push(&rows->list, (struct row){section, name, rule, modelled, note});
}

/* States (weights, gradients, optimizer) of one GPU under other options than the user's, without activations. */
static double states(const struct memory_request *request, int dtype, int optimizer, int strategy, int64_t gpus)
{
    struct footprint_options options = {.dtype = dtype, .optimizer = optimizer, .strategy = strategy, .gpus = gpus};
    const struct model *model = request->has_model ? &request->model : NULL;
    struct footprint f = footprint_of(request->params, model, &options, NULL);
    return f.weights + f.gradients + f.optimizer;
}

static void add_gpu_rows(struct rows *rows, const struct memory_request *request, const struct footprint *f)
{
    bool activations = request->has_model && request->options.micro_batch > 0;
    int strategy = request->options.strategy, dtype = request->options.dtype;
    bool mixed = footprint_is_mixed(dtype), several = request->options.gpus > 1;
    bool deepspeed = several && strategy >= FOOTPRINT_ZERO1 && strategy <= FOOTPRINT_ZERO3;
    bool gathers = several && (strategy == FOOTPRINT_FSDP || strategy == FOOTPRINT_ZERO3);
    add(rows, "gpu", "weights", NOT_GIVEN, f->weights, "");
    add(rows, "gpu", "gradients", NOT_GIVEN, f->gradients,
        request->options.optimizer == OPTIMIZER_LOMO ? "LOMO: one tensor's at a time" : "");
    add(rows, "gpu", "optimizer", NOT_GIVEN, f->optimizer,
        deepspeed && mixed && request->options.lora_rank == 0 ? "with FP32 weights, as DeepSpeed keeps them" : "");
    add(rows, "gpu", "copies", NOT_GIVEN, f->copies,
        f->copies == 0 && (request->has_model || !gathers) ? ""
        : request->options.lora_rank > 0 && !gathers       ? "adapters (QLoRA: and the FP32 rest) in 16 bit"
        : !gathers                                         ? "16-bit weights that autocast keeps"
        : request->has_model || deepspeed                  ? "weights gathered for use"
                                                           : "units are known to a model file only");
    add(rows, "gpu", "buffers", NOT_GIVEN, f->buffers, f->buffers == 0 ? "" : "buckets");
    if (f->tables > 0)
        add(rows, "gpu", "tables", NOT_GIVEN, f->tables, "embeddings and row-wise Adagrad, shared out over all GPUs");
    add(rows, "gpu", "activations", NOT_GIVEN, activations ? f->activations : NOT_GIVEN,
        activations          ? "at the fullest moment"
        : request->has_model ? "need --micro-batch and, but for images, --seq-len"
                             : "need a model file, --micro-batch and --seq-len");
    if (f->step > 0)
        add(rows, "gpu", "step", NOT_GIVEN, f->step, "what the optimizer's step takes beyond activations and copies");
    if (f->host > 0)
        add(rows, "gpu", "(in host memory)", NOT_GIVEN, f->host, "pinned, for this GPU; no part of the total");
    add(rows, "gpu", "total", NOT_GIVEN, footprint_total(f),
        "each kind at its fullest; without CUDA context, NCCL and fragmentation");
}

static void add_precision_rules(struct rows *rows, const struct memory_request *request)
{
    double p = (double)request->params;
    add(rows, "rule", "weights, FP32: 4 P", 4 * p, 4 * p, "1B parameters: 4 GB");
    add(rows, "rule", "weights, 16 bit: 2 P", 2 * p, 2 * p, "");
    add(rows, "rule", "weights, 8 bit: P", p, p, "");
    add(rows, "rule", "training, FP32: 80 P", 80 * p,
        states(request, FOOTPRINT_FP32, OPTIMIZER_ADAMW, FOOTPRINT_DDP, 1),
        "course rule, 20 x the weights; modelled without activations: its own parts make 24 P");
    add(rows, "rule", "training, 16 bit: 40 P", 40 * p,
        states(request, FOOTPRINT_BF16, OPTIMIZER_ADAMW, FOOTPRINT_DDP, 1),
        "course rule; modelled without activations");
    add(rows, "rule", "training, 8 bit: 20 P", 20 * p,
        states(request, FOOTPRINT_INT8, OPTIMIZER_ADAMW, FOOTPRINT_DDP, 1),
        "course rule; everything in a byte, which nobody trains with: see 8-bit Adam and QLoRA");
    add(rows, "rule", "16-bit Adam: 2 P + 2 P + 4 P", 8 * p,
        states(request, FOOTPRINT_BF16, OPTIMIZER_ADAM, FOOTPRINT_DDP, 1), "70B: 140 + 140 + 280 = 560 GB");
}

static void add_optimizer_rules(struct rows *rows, const struct memory_request *request)
{
    const struct model *model = request->has_model ? &request->model : NULL;
    double p = (double)request->params;
    const struct {
        const char *name;
        double rule;
        int optimizer, dtype;
        const char *note;
    } rules[] = {
        {"AdamW state, FP32: 8 P", 8 * p, OPTIMIZER_ADAMW, FOOTPRINT_FP32, ""},
        {"AdamW state, 16 bit: 4 P", 4 * p, OPTIMIZER_ADAMW, FOOTPRINT_BF16, ""},
        {"Lion state, FP32: 4 P", 4 * p, OPTIMIZER_LION, FOOTPRINT_FP32, "one moment"},
        {"Lion state, 16 bit: 2 P", 2 * p, OPTIMIZER_LION, FOOTPRINT_BF16, ""},
        {"8-bit Adam state: 2 P", 2 * p, OPTIMIZER_ADAM_8BIT, FOOTPRINT_FP32,
            "with a scale to 256 elements (bitsandbytes)"},
        {"Adafactor state: sqrt P", 4 * sqrt(p), OPTIMIZER_ADAFACTOR, FOOTPRINT_FP32,
            model ? "rows + columns of every matrix" : "as one square matrix; a model file gives its shapes"},
        {"LOMO state, FP32: 2 P", 2 * p, OPTIMIZER_LOMO, FOOTPRINT_FP32, "none in fact: it is SGD fused into backward"},
        {"LOMO state, 16 bit: P", p, OPTIMIZER_LOMO, FOOTPRINT_BF16, ""},
    };
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        add(rows, "rule", rules[i].name, rules[i].rule,
            footprint_optimizer_state(request->params, model, rules[i].optimizer, rules[i].dtype), rules[i].note);
}

static void add_sharing_rules(struct rows *rows, const struct memory_request *request, struct arena *arena)
{
    int64_t gpus = request->options.gpus > 1 ? request->options.gpus : ZERO_GPUS;
    double whole = 16 * (double)request->params; /* 2 + 2 + 12 bytes, arXiv 1910.02054 */
    const char *note =
        arena_printf(arena, "states on one of %" PRId64 " GPUs, mixed precision, Adam: 16 P on one", gpus);
    const struct {
        const char *name;
        double rule;
        int strategy;
    } rules[] = {
        {"ZeRO-1: up to 4 x less", whole / 4, FOOTPRINT_ZERO1},
        {"ZeRO-2: up to 8 x less", whole / 8, FOOTPRINT_ZERO2},
        {"ZeRO-3: N x less", whole / (double)gpus, FOOTPRINT_ZERO3},
    };
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        add(rows, "rule", rules[i].name, rules[i].rule,
            states(request, FOOTPRINT_BF16_MIXED, OPTIMIZER_ADAMW, rules[i].strategy, gpus), note);
}

static void add_adapter_rows(struct rows *rows, const struct memory_request *request)
{
    const struct model *model = &request->model;
    double p = (double)request->params;
    double adapters = 16 * (double)footprint_lora_params(model, LORA_RANK, NULL); /* FP32: 4 + 4 + 8 bytes each */
    add(rows, "rule", "LoRA of rank 16, 16-bit base", 2 * p, 2 * p + adapters,
        "base, adapters on every matrix of the blocks, Adam");
    add(rows, "rule", "QLoRA of rank 16, 4-bit base", p / 2, footprint_quantised_base(model, BASE_NF4, 2) + adapters,
        "4.127 bits in the blocks' matrices, the rest in 16 bit");
    add(rows, "rule", "QLoRA, prepared for training", p / 2, footprint_quantised_base(model, BASE_NF4, 4) + adapters,
        "prepare_model_for_kbit_training: the rest in FP32; it turns full checkpointing on, too");
}

static void add_batch_rows(struct rows *rows, const struct memory_request *request)
{
    const struct footprint_options *options = &request->options;
    const struct model_shape *shape = &request->model.shape;
    bool t5 = shape->family == MODEL_T5;
    int64_t context = t5 ? options->decoder_seq_len : options->seq_len;
    static const struct {
        const char *cache, *inference;
        int element_bytes;
    } formats[] = {{"KV cache, 16 bit", "inference, 16 bit: 2 P + cache", 2},
        {"KV cache, 8 bit", "inference, 8 bit: P + cache", 1}};
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        int bytes = formats[i].element_bytes;
        double cache = footprint_kv_cache(shape, options->micro_batch, context, options->seq_len, bytes);
        if (!(cache > 0))
            break;
        double all = (double)request->params * bytes + cache;
        add(rows, "rule", formats[i].cache, cache, cache,
            t5 ? "generation: 2 x batch x decoder layers x heads x head size x (decoder's + encoder's tokens)"
               : "generation: 2 x batch x layers x KV heads x head size x context");
        add(rows, "rule", formats[i].inference, all, all, "weights and KV cache; activations of a token are small");
    }
    double noise = footprint_neftune(&request->model, options);
    if (model_sample_tokens(shape) == 0)
        add(rows, "rule", "NEFTune's noise", noise, noise, "in training: noise and noisy embeddings, for a moment");
}

static void cell_bytes(struct table *table, double bytes, struct arena *arena)
{
    table_cell(
        table, isnan(bytes) ? "-" : arena_printf(arena, bytes < 1e6 && bytes > 0 ? "%.6f" : "%.3f", bytes * 1e-9));
}

static void add_rules(struct rows *rows, const struct memory_request *request, struct arena *arena)
{
    add_precision_rules(rows, request);
    add_optimizer_rules(rows, request);
    add_sharing_rules(rows, request, arena);
    if (request->has_model && model_takes_adapters(&request->model.shape))
        add_adapter_rows(rows, request);
    if (request->has_model && request->options.micro_batch > 0)
        add_batch_rows(rows, request);
}

double memory_room(const struct hw_gpu *gpu)
{
    return gpu->hbm_capacity.value - gpu->context_bytes.value;
}

const struct model *memory_model(const struct memory_request *request)
{
    return request->has_model ? &request->model : NULL;
}

/* ", micro-batch 8 of 512 tokens, naive attention"; an image is as long as its model makes it. */
static void print_batch(FILE *out, const struct memory_request *request)
{
    const struct footprint_options *o = &request->options;
    const struct model_shape *shape = &request->model.shape;
    const char *word = words_counted(shape);
    if (model_sample_tokens(shape) > 0)
        fprintf(out, ", micro-batch %" PRId64 " %.*s", o->micro_batch, (int)strlen(word) - (o->micro_batch == 1), word);
    else
        fprintf(
            out, ", micro-batch %" PRId64 " of %" PRId64 " token%s", o->micro_batch, o->seq_len, plural(o->seq_len));
    if (shape->n_heads > 0)
        fprintf(out, ", %s attention", attention_kernel_names[o->attention]);
    fprintf(out, ", %s checkpointing", o->checkpointing ? checkpointing_names[o->checkpointing] : "no");
}

/* The cheapest change that makes a job fit that does not. */
static const char *remedy(const struct memory_request *request, const struct hw_gpu *gpu, struct arena *arena)
{
    struct footprint_job job = {request->params, memory_model(request), request->options}, changed;
    return footprint_remedy(&changed, &job, memory_room(gpu), arena);
}

/* The one GPU that was named. */
static void print_fit(
    FILE *out, const struct memory_request *request, const struct hw_gpu *gpu, double total, struct arena *arena)
{
    double context = gpu->context_bytes.value, room = memory_room(gpu) - total;
    fprintf(out, "%s: %s; %.1f GB of %.1f GB, %.1f GB of them CUDA context, %.1f GB %s\n", gpu->name,
        room >= 0 ? "fits" : "does not fit", (total + context) * 1e-9, gpu->hbm_capacity.value * 1e-9, context * 1e-9,
        fabs(room) * 1e-9, room >= 0 ? "to spare" : "too much");
    if (room >= 0)
        return;
    const char *change = remedy(request, gpu, arena);
    fprintf(out, "cheapest change that makes it fit: %s\n", change ? change : "none that is known");
}

static void print_fits(FILE *out, const struct memory_request *request, double total, struct arena *arena)
{
    struct table table = {0};
    table_column(&table, "known GPUs", "", true);
    table_column(&table, "HBM, GB", "", false);
    table_column(&table, "", "", true);
    for (int i = 0; i < request->n_gpus; i++) {
        const struct hw_gpu *gpu = &request->gpus[i];
        double room = memory_room(gpu) - total;
        bool can = memory_supported(request, gpu); /* with --gpu it would be an error */
        table_cell(&table, gpu->name);
        table_cell(&table, arena_printf(arena, "%.1f", gpu->hbm_capacity.value * 1e-9));
        table_cell(
            &table, !can ? arena_printf(arena, "no matrix products in %s", dtype_names[memory_math(request)])
                         : arena_printf(arena, "%s by %.1f GB", room >= 0 ? "fits" : "too small", fabs(room) * 1e-9));
    }
    table_print(out, &table);
    table_free(&table);
}

static void print_gpu_rows(
    FILE *out, const struct memory_request *request, const struct rows *rows, struct arena *arena)
{
    struct table table = {0};
    table_column(&table, "on each GPU", "", true);
    table_column(&table, "GB", "", false);
    table_column(&table, "GiB", "", false);
    table_column(&table, "B/parameter", "", false);
    table_column(&table, "", "", true);
    for (int i = 0; i < rows->list.n; i++) {
        const struct row *row = &rows->list.at[i];
        if (*row->section == 'r')
            continue;
        table_cell(&table, row->name);
        cell_bytes(&table, row->modelled, arena);
        cell_bytes(&table, row->modelled * 1e9 / 0x1p30, arena);
        cell_bytes(&table, row->modelled / (double)request->params * 1e9, arena);
        table_cell(&table, row->note);
    }
    table_print(out, &table);
    table_free(&table);
}

static void print_rules(FILE *out, const struct rows *rows, struct arena *arena)
{
    struct table table = {0};
    table_column(&table, "rules of thumb", "", true);
    table_column(&table, "rule, GB", "", false);
    table_column(&table, "modelled, GB", "", false);
    table_column(&table, "", "", true);
    for (int i = 0; i < rows->list.n; i++) {
        const struct row *row = &rows->list.at[i];
        if (*row->section != 'r')
            continue;
        table_cell(&table, row->name);
        cell_bytes(&table, row->rule, arena);
        cell_bytes(&table, row->modelled, arena);
        table_cell(&table, row->note);
    }
    table_print(out, &table);
    table_free(&table);
}

static void print_table(
    FILE *out, const struct memory_request *request, const struct rows *rows, double total, struct arena *arena)
{
    const struct footprint_options *o = &request->options;
    fprintf(out, "%s: %" PRId64 " parameters (P)\n", request->has_model ? request->model.shape.name : request->name,
        request->params);
    fprintf(out, "%s, %s, %s over %" PRId64 " GPU%s", footprint_dtype_names[o->dtype], optimizer_names[o->optimizer],
        footprint_strategy_names[o->strategy], o->gpus, plural(o->gpus));
    if (o->micro_batch > 0)
        print_batch(out, request);
    if (o->lora_rank > 0)
        fprintf(out, ", LoRA of rank %" PRId64 " on a base in %s", o->lora_rank, footprint_base_names[o->base]);
    fputs("\n\n", out);
    print_gpu_rows(out, request, rows, arena);
    fputc('\n', out);
    if (request->gpu_path)
        print_fit(out, request, &request->gpus[0], total, arena);
    else
        print_fits(out, request, total, arena);
    if (!request->teach)
        return;
    fputc('\n', out);
    print_rules(out, rows, arena);
}

static void print_csv_number(FILE *out, double value)
{
    if (!isnan(value))
        fprintf(out, "%.17g", value);
}

static void print_csv(FILE *out, const struct rows *rows)
{
    fputs("section,name,rule_bytes,modelled_bytes,note\r\n", out);
    for (int i = 0; i < rows->list.n; i++) {
        const struct row *row = &rows->list.at[i];
        fprintf(out, "%s,\"%s\",", row->section, row->name);
        print_csv_number(out, row->rule);
        fputc(',', out);
        print_csv_number(out, row->modelled);
        fprintf(out, ",\"%s\"\r\n", row->note);
    }
}

static void print_json_number(FILE *out, double value)
{
    if (isnan(value))
        fputs("null", out);
    else
        fprintf(out, "%.17g", value);
}

static void print_json(FILE *out, const struct memory_request *request, const struct rows *rows, double total)
{
    fputs("{\"model\": ", out);
    json_write_string(out, request->has_model ? request->model.shape.name : request->name);
    fprintf(out,
        ", \"parameters\": %" PRId64
        ", \"dtype\": \"%s\", \"optimizer\": \"%s\", \"strategy\": \"%s\", \"gpus\": %" PRId64
        ", \"micro_batch\": %" PRId64 ", \"seq_len\": %" PRId64,
        request->params, footprint_dtype_names[request->options.dtype], optimizer_names[request->options.optimizer],
        footprint_strategy_names[request->options.strategy], request->options.gpus, request->options.micro_batch,
        request->options.seq_len);
    fputs(", \"fits\": [", out);
    for (int i = 0; i < request->n_gpus; i++) {
        const struct hw_gpu *gpu = &request->gpus[i];
        fprintf(out, "%s\n  {\"gpu\": ", i ? "," : "");
        json_write_string(out, gpu->name);
        fprintf(out, ", \"capacity_bytes\": %.17g, \"context_bytes\": %.17g, \"supported\": %s, \"fits\": %s}",
            gpu->hbm_capacity.value, gpu->context_bytes.value, memory_supported(request, gpu) ? "true" : "false",
            memory_supported(request, gpu) && total <= memory_room(gpu) ? "true" : "false");
    }
    fputs("]", out);
    fputs(", \"rows\": [", out);
    for (int i = 0; i < rows->list.n; i++) {
        const struct row *row = &rows->list.at[i];
        fprintf(out, "%s\n  {\"section\": \"%s\", \"name\": \"%s\", \"rule_bytes\": ", i ? "," : "", row->section,
            row->name);
        print_json_number(out, row->rule);
        fputs(", \"modelled_bytes\": ", out);
        print_json_number(out, row->modelled);
        fputs(", \"note\": ", out);
        json_write_string(out, row->note);
        fputc('}', out);
    }
    fputs("\n]}\n", out);
}

void memory_print(FILE *out, const struct memory_request *request, struct arena *arena)
{
    struct rows rows = {0};
    struct footprint f =
        footprint_of(request->params, request->has_model ? &request->model : NULL, &request->options, arena);
    add_gpu_rows(&rows, request, &f);
    if (request->teach)
        add_rules(&rows, request, arena);
    if (request->format == MEMORY_CSV)
        print_csv(out, &rows);
    else if (request->format == MEMORY_JSON)
        print_json(out, request, &rows, footprint_total(&f));
    else
        print_table(out, request, &rows, footprint_total(&f), arena);
    vec_free(&rows.list);
}
