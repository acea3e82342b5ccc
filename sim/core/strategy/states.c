#include "strategy/states.h"
#include "strategy/muon.h"

#include <math.h>

double states_optimizer(
    int64_t params, const struct model *model, int optimizer, int64_t element_bytes)
{
    bool factors = optimizer == OPTIMIZER_ADAFACTOR || optimizer == OPTIMIZER_ADAFACTOR_MOMENTUM;
    int64_t side = (int64_t)ceil(sqrt((double)params)), bytes = 0;
    struct optimizer_tensor one =
        factors ? (struct optimizer_tensor){.rows = side, .cols = side} : optimizer_vector(params);
    one.matrices = optimizer == OPTIMIZER_MUON;
    if (!model)
        return (double)optimizer_state_bytes(optimizer, one, element_bytes);
    for (int i = 0; i < model->n_tensors; i++)
        bytes += optimizer_state_bytes(
            optimizer, muon_tensor(model, optimizer, &model->tensors[i]), element_bytes);
    return (double)bytes;
}

static void move_to_host(
    struct states *states, const struct strategy_options *options, double fp32_gradients)
{
    if (options->kind == STRATEGY_FSDP && options->fsdp.cpu_offload) {
        states->host = states->weights + states->gradients + states->optimizer;
        states->weights = states->gradients = states->optimizer = 0;
    } else if (options->kind == STRATEGY_DEEPSPEED && options->zero.offload_optimizer) {
        states->host = states->optimizer + fp32_gradients;
        states->optimizer = 0;
    }
}

struct states states_of(
    int64_t params, const struct strategy_options *options, int64_t gpus, bool int8)
{
    const struct element_bytes one_byte = {1, 1, 1};
    struct element_bytes element =
        int8 ? one_byte : strategy_element_bytes(options->train.precision);
    bool deepspeed = options->kind == STRATEGY_DEEPSPEED,
         lomo = options->train.optimizer == OPTIMIZER_LOMO;
    bool units = options->kind == STRATEGY_MEGATRON && options->megatron.use_megatron_fsdp;
    int64_t stage = options->kind == STRATEGY_FSDP ? 3
                    : deepspeed                    ? options->zero.stage
                    : units ? options->megatron.data_parallel_sharding_strategy
                            : 0;
    bool bf16 = deepspeed && stage == 0 && options->train.precision == PRECISION_BF16_MIXED &&
                !int8; /* zero_off.c */
    int64_t shard = (params + gpus - 1) / gpus, stepped = stage >= 1 || bf16 ? shard : params;
    int64_t kept = deepspeed ? element.param : element.master,
            copy = kept == element.step ? 0 : element.step;
    struct states states = {
        .weights = (double)(kept * (stage >= 3 ? shard : params)),
        .gradients =
            lomo ? 0 : (double)((bf16 ? element.step : kept) * (stage >= 2 ? shard : params)),
        .optimizer = (double)(copy * stepped),
    };
    /* shards are cut from flattened tensors: no rows and columns are left to factor */
    struct optimizer_tensor flat = optimizer_vector(stepped);
    flat.matrices = options->train.optimizer == OPTIMIZER_MUON;
    int64_t moment = optimizer_moment_bytes(options, element.step);
    states.optimizer += stepped < params
                            ? (double)optimizer_state_bytes(options->train.optimizer, flat, moment)
                            : states_optimizer(params, NULL, options->train.optimizer, moment);
    move_to_host(&states, options, (double)(element.step * stepped));
    return states;
}
