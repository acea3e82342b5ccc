#include "scenario/tune.h"

#include <inttypes.h>

const char *const tune_order_names[TUNE_ORDER_COUNT + 1] = {[TUNE_BY_SPEED] = "speed", [TUNE_BY_COST] = "cost"};

/* The less the better. */
static double badness(const struct tune_candidate *candidate, enum tune_order by, bool priced)
{
    if (by == TUNE_BY_SPEED)
        return -candidate->tokens_per_s;
    return priced ? candidate->usd_per_gtokens : candidate->gpu_hours_per_gtokens;
}

int tune_rank(int *order, const struct tune *tune, enum tune_order by)
{
    int n = 0;
    bool priced = true;
    for (int i = 0; i < tune->candidates.n; i++)
        if (tune->candidates.at[i].state == TUNE_RAN)
            priced = priced && tune->candidates.at[i].usd_per_gtokens > 0;
    for (int i = 0; i < tune->candidates.n; i++) { /* by insertion: a few hundred, and equals stay in order */
        const struct tune_candidate *candidate = &tune->candidates.at[i];
        if (candidate->state != TUNE_RAN)
            continue;
        int at = n++;
        for (; at > 0; at--) {
            if (badness(&tune->candidates.at[order[at - 1]], by, priced) <= badness(candidate, by, priced))
                break;
            order[at] = order[at - 1];
        }
        order[at] = i;
    }
    return n;
}

const char *tune_settings(const struct tune_candidate *candidate, struct arena *arena)
{
    const struct scenario *options = &candidate->point.options;
    const struct strategy_options *strategy = &options->strategy;
    const char *text = arena_printf(arena,
        "--set cluster.gpus=%" PRId64 " --set train.micro_batch=%" PRId64 " --set train.grad_accum=%" PRId64
        " --set train.activation_checkpointing=%s --set strategy=%s",
        options->cluster.gpus, strategy->train.micro_batch, strategy->train.grad_accum,
        checkpointing_names[strategy->train.activation_checkpointing], strategy_kind_names[strategy->kind]);
    if (strategy->train.device_batch > 0)
        text = arena_printf(arena, "%s --set train.device_batch=%" PRId64, text, strategy->train.device_batch);
    if (strategy->kind == STRATEGY_DEEPSPEED)
        return arena_printf(arena, "%s --set deepspeed.zero_optimization.stage=%" PRId64, text, strategy->zero.stage);
    if (strategy->kind == STRATEGY_INTERNEVO)
        return arena_printf(arena, "%s --set internevo.zero1=%" PRId64, text, strategy->internevo.zero1);
    if (strategy->kind != STRATEGY_FSDP)
        return text;
    return arena_printf(arena,
        "%s --set fsdp.sharding_strategy=%s --set fsdp.sharding_group_size=%" PRId64
        " --set fsdp.backward_prefetch=%s --set fsdp.forward_prefetch=%s",
        text, sharding_strategy_names[strategy->fsdp.sharding_strategy], strategy->fsdp.sharding_group_size,
        backward_prefetch_names[strategy->fsdp.backward_prefetch], strategy->fsdp.forward_prefetch ? "true" : "false");
}
