/* Rules of thumb that courses teach, each beside what is modelled. */
#include "cli/memory.h"
#include "strategy/states.h"

#include <inttypes.h>
#include <math.h>

/* Ranks and job sizes that the rows of rules are for when the user names none. */
enum { LORA_RANK = 16, ZERO_GPUS = 64 };

static void add(struct memory_rows *rows, const char *name, double rule, double modelled, const char *note)
{
    vec_push(&rows->list, (struct memory_row){"rule", name, rule, modelled, MEMORY_NOT_GIVEN, note});
}

/* Weights, gradients and optimizer state of one GPU under other options than the user's. */
static double states(const struct memory_request *request, int dtype, int optimizer, int strategy, int64_t gpus)
{
    struct memory_job job = {.dtype = dtype, .strategy = strategy, .point.options = scenario_default()};
    struct strategy_options *options = &job.point.options.strategy;
    options->train.optimizer = optimizer;
    memory_set(&job);
    struct states states = states_of(request->job.params, options, gpus, dtype == MEMORY_INT8);
    return states.weights + states.gradients + states.optimizer;
}

static void add_precision_rules(struct memory_rows *rows, const struct memory_request *request)
{
    double p = (double)request->job.params;
    add(rows, "weights, FP32: 4 P", 4 * p, 4 * p, "1B parameters: 4 GB");
    add(rows, "weights, 16 bit: 2 P", 2 * p, 2 * p, "");
    add(rows, "weights, 8 bit: P", p, p, "");
    add(rows, "training, FP32: 80 P", 80 * p, states(request, PRECISION_FP32, OPTIMIZER_ADAMW, MEMORY_DDP, 1),
        "course rule, 20 x the weights; modelled without activations: its own parts make 24 P");
    add(rows, "training, 16 bit: 40 P", 40 * p, states(request, PRECISION_BF16, OPTIMIZER_ADAMW, MEMORY_DDP, 1),
        "course rule; modelled without activations");
    add(rows, "training, 8 bit: 20 P", 20 * p, states(request, MEMORY_INT8, OPTIMIZER_ADAMW, MEMORY_DDP, 1),
        "course rule; everything in a byte, which nobody trains with: see 8-bit Adam and QLoRA");
    add(rows, "16-bit Adam: 2 P + 2 P + 4 P", 8 * p, states(request, PRECISION_BF16, OPTIMIZER_ADAM, MEMORY_DDP, 1),
        "70B: 140 + 140 + 280 = 560 GB");
}

static void add_optimizer_rules(struct memory_rows *rows, const struct memory_request *request)
{
    const struct model *model = request->job.has_model ? &request->job.point.model : NULL;
    double p = (double)request->job.params;
    const struct {
        const char *name;
        double rule;
        int optimizer, dtype;
        const char *note;
    } rules[] = {
        {"AdamW state, FP32: 8 P", 8 * p, OPTIMIZER_ADAMW, PRECISION_FP32, ""},
        {"AdamW state, 16 bit: 4 P", 4 * p, OPTIMIZER_ADAMW, PRECISION_BF16, ""},
        {"Lion state, FP32: 4 P", 4 * p, OPTIMIZER_LION, PRECISION_FP32, "one moment"},
        {"Lion state, 16 bit: 2 P", 2 * p, OPTIMIZER_LION, PRECISION_BF16, ""},
        {"8-bit Adam state: 2 P", 2 * p, OPTIMIZER_ADAM_8BIT, PRECISION_FP32,
            "with a scale to 256 elements (bitsandbytes)"},
        {"Adafactor state: sqrt P", 4 * sqrt(p), OPTIMIZER_ADAFACTOR, PRECISION_FP32,
            model ? "rows + columns of every matrix" : "as one square matrix; a model file gives its shapes"},
        {"LOMO state, FP32: 2 P", 2 * p, OPTIMIZER_LOMO, PRECISION_FP32, "none in fact: it is SGD fused into backward"},
        {"LOMO state, 16 bit: P", p, OPTIMIZER_LOMO, PRECISION_BF16, ""},
    };
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        add(rows, rules[i].name, rules[i].rule,
            states_optimizer(
                request->job.params, model, rules[i].optimizer, strategy_element_bytes(rules[i].dtype).step),
            rules[i].note);
}

static void add_sharing_rules(struct memory_rows *rows, const struct memory_request *request, struct arena *arena)
{
    int64_t asked = request->job.point.options.cluster.gpus, gpus = asked > 1 ? asked : ZERO_GPUS;
    double whole = 16 * (double)request->job.params; /* 2 + 2 + 12 bytes, arXiv 1910.02054 */
    const char *note =
        arena_printf(arena, "states on one of %" PRId64 " GPUs, mixed precision, Adam: 16 P on one", gpus);
    const struct {
        const char *name;
        double rule;
        int strategy;
    } rules[] = {
        {"ZeRO-1: up to 4 x less", whole / 4, MEMORY_ZERO1},
        {"ZeRO-2: up to 8 x less", whole / 8, MEMORY_ZERO2},
        {"ZeRO-3: N x less", whole / (double)gpus, MEMORY_ZERO3},
    };
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        add(rows, rules[i].name, rules[i].rule,
            states(request, PRECISION_BF16_MIXED, OPTIMIZER_ADAMW, rules[i].strategy, gpus), note);
}

static void add_adapter_rows(struct memory_rows *rows, const struct memory_request *request)
{
    const struct model *model = &request->job.point.model;
    double p = (double)request->job.params;
    struct arena scratch = ARENA_INIT;
    struct model adapted;
    model_adapt(&adapted, model, LORA_RANK, NULL, &scratch);
    double adapters = 16 * (double)adapted.trained; /* FP32: 4 + 4 + 8 bytes each */
    arena_release(&scratch);
    add(rows, "LoRA of rank 16, 16-bit base", 2 * p, 2 * p + adapters,
        "base, adapters on every matrix of the blocks, Adam");
    add(rows, "QLoRA of rank 16, 4-bit base", p / 2, memory_base_bytes(model, MEMORY_BASE_NF4, 2) + adapters,
        "4.127 bits in the blocks' matrices, the rest in 16 bit");
    add(rows, "QLoRA, prepared for training", p / 2, memory_base_bytes(model, MEMORY_BASE_NF4, 4) + adapters,
        "prepare_model_for_kbit_training: the rest in FP32; it turns full checkpointing on, too");
}

/* Keys and values of every layer that generates text, 16 bit. */
static double cache_bytes(const struct memory_request *request)
{
    const struct model *model = &request->job.point.model;
    struct model_workload workload = strategy_workload(&request->job.point.options.strategy, model);
    int64_t bytes = 0;
    workload.storage = DTYPE_BF16;
    for (int l = 0; l < model->n_layers; l++)
        bytes += model_cache_bytes(model, &workload, l);
    return (double)bytes;
}

static void add_batch_rows(struct memory_rows *rows, const struct memory_request *request)
{
    const struct train_options *train = &request->job.point.options.strategy.train;
    const struct model_shape *shape = &request->job.point.model.shape;
    double p = (double)request->job.params, cache = cache_bytes(request);
    const char *note =
        shape->family == MODEL_T5
            ? "generation: 2 x batch x decoder layers x heads x head size x (decoder's + encoder's tokens)"
            : "generation: 2 x batch x layers x KV heads x head size x context";
    static const char all[] = "weights and KV cache; activations of a token are small";
    if (cache > 0) {
        add(rows, "KV cache, 16 bit", cache, cache, note);
        add(rows, "inference, 16 bit: 2 P + cache", 2 * p + cache, 2 * p + cache, all);
        add(rows, "KV cache, 8 bit", cache / 2, cache / 2, note);
        add(rows, "inference, 8 bit: P + cache", p + cache / 2, p + cache / 2, all);
    }
    double noise = 2.0 * (double)strategy_element_bytes(train->precision).param *
                   (double)(train->micro_batch * train->seq_len * shape->d_model);
    if (model_sample_tokens(shape) == 0)
        add(rows, "NEFTune's noise", noise, noise, "in training: noise and noisy embeddings, for a moment");
}

void memory_add_rules(struct memory_rows *rows, const struct memory_request *request, struct arena *arena)
{
    add_precision_rules(rows, request);
    add_optimizer_rules(rows, request);
    add_sharing_rules(rows, request, arena);
    if (request->job.has_model && model_takes_adapters(&request->job.point.model.shape))
        add_adapter_rows(rows, request);
    if (request->job.has_model && request->job.counted)
        add_batch_rows(rows, request);
}
