/* Rules of thumb that courses teach for `flopcast memory --teach`, each beside what is modelled: of
 * weights, gradients and optimizer state by their bytes a parameter (strategy/states.h), of
 * adapters and of what generates text by the model's tensors. */
#include "study/memory_job.h"
#include "strategy/states.h"

#include <inttypes.h>
#include <math.h>

/* Ranks and job sizes that the rows of rules are for when the user names none. */
enum { LORA_RANK = 16, ZERO_GPUS = 64 };
/* A byte for everything, beside the precisions. */
enum { INT8 = -1 };

static void rules_add(
    struct memory_rows *rows, const char *name, double rule, double modelled, const char *note)
{
    vec_push(
        &rows->list, (struct memory_row){"rule", name, rule, modelled, MEMORY_NOT_GIVEN, note});
}

/* Weights, gradients and optimizer state of one GPU under other options than the user's. */
static double rules_states(
    const struct memory_job *job, int dtype, int optimizer, int stage, int64_t gpus)
{
    struct strategy_options options = strategy_default_options();
    options.kind = stage == 0 ? STRATEGY_DDP : STRATEGY_DEEPSPEED;
    options.zero.stage = stage;
    options.train.optimizer = optimizer;
    options.train.precision = dtype == INT8 ? PRECISION_BF16 : dtype;
    struct states states = states_of(job->params, &options, gpus, dtype == INT8);
    return states.weights + states.gradients + states.optimizer;
}

/* What the modelled number of a rule is. */
enum of_rule { RULE_ITSELF, RULE_STATES, RULE_OPTIMIZER, RULE_SHARED };
static const struct rule {
    const char *name;
    double factor; /* of P; 0: of its root */
    enum of_rule of;
    int dtype, optimizer;
    int stage; /* of ZeRO; 0: DDP */
    const char *note;
} usual[] = {
    {"weights, FP32: 4 P", 4, RULE_ITSELF, 0, 0, 0, "1B parameters: 4e9 bytes, 3.73 GiB"},
    {"weights, 16 bit: 2 P", 2, RULE_ITSELF, 0, 0, 0, ""},
    {"weights, 8 bit: P", 1, RULE_ITSELF, 0, 0, 0, ""},
    {"training, FP32: 80 P", 80, RULE_STATES, PRECISION_FP32, OPTIMIZER_ADAMW, 0,
        "course rule, 20 x the weights; modelled without activations: its own parts make 24 P"},
    {"training, 16 bit: 40 P", 40, RULE_STATES, PRECISION_BF16, OPTIMIZER_ADAMW, 0,
        "course rule; modelled without activations"},
    {"training, 8 bit: 20 P", 20, RULE_STATES, INT8, OPTIMIZER_ADAMW, 0,
        "course rule; everything in a byte, which nobody trains with: see 8-bit Adam and QLoRA"},
    {"16-bit Adam: 2 P + 2 P + 4 P", 8, RULE_STATES, PRECISION_BF16, OPTIMIZER_ADAM, 0,
        "70B: 130 + 130 + 261 = 522 GiB"},
    {"AdamW state, FP32: 8 P", 8, RULE_OPTIMIZER, PRECISION_FP32, OPTIMIZER_ADAMW, 0, ""},
    {"AdamW state, 16 bit: 4 P", 4, RULE_OPTIMIZER, PRECISION_BF16, OPTIMIZER_ADAMW, 0, ""},
    {"Lion state, FP32: 4 P", 4, RULE_OPTIMIZER, PRECISION_FP32, OPTIMIZER_LION, 0, "one moment"},
    {"Lion state, 16 bit: 2 P", 2, RULE_OPTIMIZER, PRECISION_BF16, OPTIMIZER_LION, 0, ""},
    {"8-bit Adam state: 2 P", 2, RULE_OPTIMIZER, PRECISION_FP32, OPTIMIZER_ADAM_8BIT, 0,
        "with a scale to 256 elements (bitsandbytes)"},
    {"Adafactor state: sqrt P", 0, RULE_OPTIMIZER, PRECISION_FP32, OPTIMIZER_ADAFACTOR, 0, NULL},
    {"LOMO state, FP32: 2 P", 2, RULE_OPTIMIZER, PRECISION_FP32, OPTIMIZER_LOMO, 0,
        "none in fact: it is SGD fused into backward"},
    {"LOMO state, 16 bit: P", 1, RULE_OPTIMIZER, PRECISION_BF16, OPTIMIZER_LOMO, 0, ""},
    /* 2 + 2 + 12 bytes, arXiv 1910.02054 */
    {"ZeRO-1: up to 4 x less", 4, RULE_SHARED, PRECISION_BF16_MIXED, OPTIMIZER_ADAMW, 1, NULL},
    {"ZeRO-2: up to 8 x less", 2, RULE_SHARED, PRECISION_BF16_MIXED, OPTIMIZER_ADAMW, 2, NULL},
    {"ZeRO-3: N x less", 16, RULE_SHARED, PRECISION_BF16_MIXED, OPTIMIZER_ADAMW, 3, NULL},
};

static void rules_add_usual(struct memory_rows *rows, const struct memory_job *job,
    const struct rule *rule, struct arena *arena)
{
    const struct model *model = job->has_model ? &job->point.model : NULL;
    int64_t params = job->params, asked = job->point.options.cluster.gpus;
    int64_t gpus = rule->of != RULE_SHARED ? 1 : asked > 1 ? asked : ZERO_GPUS;
    double bytes = rule->factor > 0 ? rule->factor * (double)params : 4 * sqrt((double)params);
    double share = rule->stage == 3 ? bytes / (double)gpus : bytes;
    double modelled = rule->of == RULE_ITSELF ? bytes
                      : rule->of == RULE_OPTIMIZER
                          ? states_optimizer(params, model, rule->optimizer,
                                strategy_element_bytes(rule->dtype).step)
                          : rules_states(job, rule->dtype, rule->optimizer, rule->stage, gpus);
    const char *note =
        rule->of == RULE_SHARED
            ? arena_printf(arena,
                  "states on one of %" PRId64 " GPUs, mixed precision, Adam: 16 P on one", gpus)
        : rule->note ? rule->note
        : model      ? "rows + columns of every matrix"
                     : "as one square matrix; a model file gives its shapes";
    rules_add(rows, rule->name, share, modelled, note);
}

static void rules_add_adapters(struct memory_rows *rows, const struct memory_job *job)
{
    const struct model *model = &job->point.model;
    double p = (double)job->params;
    struct arena scratch = ARENA_INIT;
    struct model adapted;
    model_adapt(&adapted, model, LORA_RANK, NULL, &scratch);
    double adapters = 16 * (double)adapted.trained; /* FP32: 4 + 4 + 8 bytes each */
    arena_release(&scratch);
    rules_add(rows, "LoRA of rank 16, 16-bit base", 2 * p, 2 * p + adapters,
        "base, adapters on every matrix of the blocks, Adam");
    rules_add(rows, "QLoRA of rank 16, 4-bit base", p / 2,
        memory_base_bytes(model, MEMORY_BASE_NF4, 2) + adapters,
        "4.127 bits in the blocks' matrices, the rest in 16 bit");
    rules_add(rows, "QLoRA, prepared for training", p / 2,
        memory_base_bytes(model, MEMORY_BASE_NF4, 4) + adapters,
        "prepare_model_for_kbit_training: the rest in FP32; it turns full checkpointing on, too");
}

/* Keys and values of every layer that generates text, 16 bit. */
static double rules_cache_bytes(const struct memory_job *job)
{
    const struct model *model = &job->point.model;
    struct model_workload workload = strategy_workload(&job->point.options.strategy, model);
    int64_t bytes = 0;
    workload.storage = DTYPE_BF16;
    for (int l = 0; l < model->n_layers; l++)
        bytes += model_cache_bytes(model, &workload, l);
    return (double)bytes;
}

static void rules_add_batch(struct memory_rows *rows, const struct memory_job *job)
{
    const struct train_options *train = &job->point.options.strategy.train;
    const struct model_shape *shape = &job->point.model.shape;
    double p = (double)job->params, cache = rules_cache_bytes(job);
    const char *note = shape->family == MODEL_T5
                           ? "generation: 2 x batch x decoder layers x heads x head size x "
                             "(decoder's + encoder's tokens)"
                           : "generation: 2 x batch x layers x KV heads x head size x context";
    static const char all[] = "weights and KV cache; activations of a token are small";
    if (cache > 0) {
        rules_add(rows, "KV cache, 16 bit", cache, cache, note);
        rules_add(rows, "inference, 16 bit: 2 P + cache", 2 * p + cache, 2 * p + cache, all);
        rules_add(rows, "KV cache, 8 bit", cache / 2, cache / 2, note);
        rules_add(rows, "inference, 8 bit: P + cache", p + cache / 2, p + cache / 2, all);
    }
    double noise = 2.0 * (double)strategy_element_bytes(train->precision).param *
                   (double)(train->micro_batch * train->seq_len * shape->d_model);
    if (model_sample_tokens(shape) == 0)
        rules_add(rows, "NEFTune's noise", noise, noise,
            "in training: noise and noisy embeddings, for a moment");
}

void memory_add_rules(struct memory_rows *rows, const struct memory_job *job, struct arena *arena)
{
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        rules_add_usual(rows, job, &usual[i], arena);
    if (job->has_model && model_takes_adapters(&job->point.model.shape))
        rules_add_adapters(rows, job);
    if (job->has_model && job->counted)
        rules_add_batch(rows, job);
}
