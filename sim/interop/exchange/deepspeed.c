/* DeepSpeed's configuration: deepspeed/runtime/config.py, deepspeed/runtime/zero/config.py.
 *
 * Rules for single keys, then what several settings say together: precision, the three numbers of
 * the batch, "auto", the optimizer. Its steps run behind those of all other formats,
 * as the batch divides over ranks that a script or accelerate may state. What is subtle: of
 * train_batch_size, micro-batch and accumulation the missing one follows from the others; with
 * all three the number of GPUs follows, or contradicts the file, which is an error as in
 * DeepSpeed. "auto" is what transformers' Trainer makes of the model's hidden size, and is left
 * aside where no model is known.
 *
 * What one key says stands in scenarios/import/deepspeed.yaml, with the order of these steps. */
#include "exchange/rules.h"

#include <string.h>

#define ZERO "zero_optimization."
#define OUR "deepspeed.zero_optimization."
enum status deepspeed_read(struct configuration *config, const char *path, struct diag *diag)
{
    return rules_apply_file(
        config, path, &importer_of(config, CONFIGURATION_DEEPSPEED)->rules, diag);
}

static void finish_precision(struct configuration *config, struct diag *diag)
{
    (void)diag;
    struct configuration_setting *bf16 = setting_find(config, "bf16.enabled");
    struct configuration_setting *fp16 = setting_find(config, "fp16.enabled");
    bf16 = bf16 ? bf16 : setting_find(config, "bfloat16.enabled");
    bool left =
        (bf16 && strcmp(bf16->value, "auto") == 0) || (fp16 && strcmp(fp16->value, "auto") == 0);
    if (bf16 && strcmp(bf16->value, "true") == 0)
        put_setting(config, "train.precision", "bf16_mixed", bf16);
    else if (fp16 && strcmp(fp16->value, "true") == 0)
        put_setting(config, "train.precision", "fp16_mixed", fp16);
    else if (left && !put_find(config, "train.precision"))
        vec_push(&config->missing,
            "train.precision: --set train.precision=bf16_mixed, say; the file says auto");
    else if (!put_find(config, "train.precision"))
        put_assumed(config, "train.precision", "fp32", "as neither bf16 nor fp16 is enabled");
    struct configuration_setting *both[] = {bf16, fp16};
    for (int i = 0; i < 2; i++) {
        if (both[i] && !both[i]->words && strcmp(both[i]->value, "auto") == 0)
            setting_aside(both[i], "auto: see train.precision");
        else if (both[i] && !both[i]->words)
            setting_aside(both[i],
                strcmp(both[i]->value, "false") == 0 ? "off" : "the other format is on, too");
    }
}

/* "auto": what transformers' Trainer and accelerate put there, of the model's hidden size
 * (transformers/integrations/deepspeed.py, trainer_config_finalize). */
static void finish_auto(struct configuration *config, struct diag *diag)
{
    (void)diag;
    int64_t width = model_width(config);
    const struct {
        const char *name, *key, *formula;
        int64_t value;
    } sizes[] = {
        {ZERO "reduce_bucket_size", OUR "reduce_bucket_size", "hidden size squared",
            times(width, width)},
        {ZERO "stage3_prefetch_bucket_size", OUR "stage3_prefetch_bucket_size",
            "0.9 x hidden size squared",
            times(width, width) / 10 * 9 + times(width, width) % 10 * 9 / 10},
        {ZERO "stage3_param_persistence_threshold", OUR "stage3_param_persistence_threshold",
            "10 x hidden size", times(width, 10)},
    };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct configuration_setting *setting = setting_open(config, sizes[i].name);
        if (!setting)
            continue;
        if (width > 0)
            put_setting(config, sizes[i].key, number_text(config, sizes[i].value), setting);
        else if (!put_find(config, "model") && !put_find(config, sizes[i].key))
            setting_aside(setting, "auto: the Trainer works it out of the model, which is missing");
        if (width > 0 && setting->fate == FATE_TAKEN)
            assume(config,
                arena_printf(config->arena, "%s: %s, as transformers' Trainer makes of auto",
                    sizes[i].key, sizes[i].formula));
    }
    struct configuration_setting *steps = setting_find(config, "gradient_accumulation_steps");
    if (steps && strcmp(steps->value, "auto") == 0 && !put_find(config, "train.grad_accum") &&
        !put_find(config, "train.global_batch") && !put_find(config, "train.device_batch"))
        put_assumed(config, "train.grad_accum", "1",
            "the default of transformers' Trainer, as the file says auto");
}

/* train_batch_size = micro-batch x gradient_accumulation_steps x ranks of data parallelism: of
 * these three, DeepSpeed works out what is not there (_set_batch_related_parameters), and so is the
 * number of GPUs known where all are. */
static void deepspeed_finish_batch(struct configuration *config, struct diag *diag)
{
    struct configuration_setting *whole = setting_find(config, "train_batch_size");
    struct configuration_setting *steps = setting_find(config, "gradient_accumulation_steps");
    int64_t batch = setting_int(config, "train_batch_size", 0, diag);
    int64_t accumulated = setting_int(config, "gradient_accumulation_steps", 0, diag);
    int64_t micro = put_int(config, "train.micro_batch", 0),
            gpus = put_int(config, "cluster.gpus", 0);
    int64_t copy = model_ranks(config);
    int64_t data = copy > 0 ? gpus / copy : 0;
    bool all = batch > 0 && micro > 0 && accumulated > 0;
    if (all && gpus == 0 && batch % micro == 0 && batch / micro % accumulated == 0)
        put_setting(config, "cluster.gpus",
            number_text(config, times(batch / micro / accumulated, copy)), whole);
    else if (all &&
             (gpus == 0 || (double)batch != (double)micro * (double)accumulated * (double)data))
        diag_input(diag, whole->value_at,
            "train_batch_size of %lld is not %lld x gradient_accumulation_steps %lld x %lld ranks "
            "of data parallelism; DeepSpeed refuses it, too: give another --gpus, or leave one of "
            "them out",
            (long long)batch, (long long)micro, (long long)accumulated, (long long)data);
    else if (batch > 0 && micro > 0 && !all)
        put_setting(config, "train.global_batch", number_text(config, batch), whole);
    int64_t others = times(data, accumulated > 0 ? accumulated : 1);
    if (batch > 0 && micro == 0 && others > 0 && batch % others == 0)
        put_setting(config, "train.micro_batch", number_text(config, batch / others), whole);
    if (accumulated > 0 && !put_find(config, "train.global_batch"))
        put_setting(config, "train.grad_accum", number_text(config, accumulated), steps);
    setting_aside(whole, "it follows from the others");
    setting_aside(steps, "it follows from the others");
}

/* OneBitAdam is Adam until its freeze_step, and compresses what it communicates from then on
 * (onebit/adam.py): the first part is simulated, and the file says so. ZeroOneAdam compresses from
 * the beginning, Lamb has norms of each tensor. */
static void finish_one_bit(struct configuration *config, struct diag *diag)
{
    (void)diag;
    struct configuration_setting *type = setting_find(config, "optimizer.type");
    type->fate = FATE_TAKEN;
    type->words = "Adam until freeze_step; see assumptions";
}

const struct importer_call deepspeed_calls[] = {{"precision", finish_precision},
    {"batch", deepspeed_finish_batch}, {"auto", finish_auto}, {"one_bit", finish_one_bit}, {0}};
