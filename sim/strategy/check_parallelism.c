/* Which ranks, stages and micro-batches there can be: what does not divide, and what would. */
#include "strategy/strategy.h"

#include <stdio.h>

struct layout_check {
    const struct strategy_options *options;
    const struct model *model; /* NULL: not known */
    int gpus;
    const struct strategy_places *places;
    struct diag *diag;
};

static struct source_pos at(const struct layout_check *check, const char *path)
{
    return check->places->at(check->places->self, path);
}

/* "1, 2, 4, 8": the divisors of n. */
static void divisors(char *out, size_t size, int64_t n)
{
    size_t used = 0;
    out[0] = '\0';
    for (int64_t d = 1; d <= n && used < size; d++)
        if (n % d == 0)
            used += (size_t)snprintf(out + used, size - used, "%s%lld", used ? ", " : "", (long long)d);
}

static bool check_ranks(const struct layout_check *check)
{
    int64_t stages = check->options->parallelism.pipeline;
    char would[256];
    divisors(would, sizeof would, check->gpus);
    if (check->gpus % stages == 0)
        return true;
    diag_input(check->diag, at(check, "parallelism.pipeline"),
        "%lld stages do not divide %d GPUs; take one of %s, or another number of GPUs", (long long)stages, check->gpus,
        would);
    return false;
}

static bool check_order(const struct layout_check *check)
{
    const char *order = check->options->parallelism.order, *bad = NULL;
    const int size[AXIS_COUNT] = {[AXIS_DP_SHARD] = 2, [AXIS_PP] = (int)check->options->parallelism.pipeline};
    struct mesh mesh;
    if (!order || mesh_build(&mesh, size, order, &bad))
        return true;
    diag_input(check->diag, at(check, "parallelism.order"),
        "'%s' is no order of axes, from '%s' on; write each axis once, neighbours first, as in %s", order, bad,
        mesh_order_default);
    return false;
}

/* What a pipeline cannot be made of. */
static void check_stages(const struct layout_check *check)
{
    const struct strategy_options *options = check->options;
    struct source_pos place = at(check, "parallelism.pipeline");
    if (options->kind != STRATEGY_MEGATRON)
        diag_input(check->diag, place, "a pipeline is simulated with strategy: megatron; take that");
    if (options->train.lora_rank > 0 || options->train.use_cache)
        diag_input(check->diag, at(check, options->train.use_cache ? "train.use_cache" : "train.lora_rank"),
            "this is not simulated in a pipeline; leave it out");
    if (!check->model)
        return;
    const struct model_shape *shape = &check->model->shape;
    if (shape->n_decoder_layers > 0 || shape->family == MODEL_CONVNET || shape->family == MODEL_DHEN)
        diag_input(check->diag, place,
            "model '%s' is no single stack of transformer blocks, which a pipeline is simulated for", shape->name);
}

static void check_layers(const struct layout_check *check)
{
    const struct parallelism_options *options = &check->options->parallelism;
    int64_t chunks = options->pipeline * options->virtual_stages, first = options->first_layers,
            last = options->last_layers, blocks = check->model ? check->model->n_layers - 1 : 0;
    int64_t even = chunks - (first > 0) - (last > 0), left = blocks - first - last;
    char would[256];
    divisors(would, sizeof would, left);
    if (!check->model)
        return;
    if (left < even || even < 1 || left % even != 0)
        diag_input(check->diag,
            at(check, options->virtual_stages > 1 ? "parallelism.virtual" : "parallelism.pipeline"),
            "%lld blocks do not divide over %lld model chunks (%lld stages of %lld)%s; take a number of chunks out of "
            "%s, or say how many the first and the last one have (parallelism.first_layers, last_layers)",
            (long long)left, (long long)even, (long long)options->pipeline, (long long)options->virtual_stages,
            first + last > 0 ? " beside the first and the last" : "", would);
}

static void check_schedule(const struct layout_check *check)
{
    const struct parallelism_options *options = &check->options->parallelism;
    struct batch_plan batch = strategy_batch(&check->options->train);
    struct source_pos place = at(check, "parallelism.virtual");
    if (options->virtual_stages > 1 && options->pipeline == 1)
        diag_input(check->diag, place, "one stage has one model chunk; leave it out, or take 'parallelism.pipeline'");
    else if (options->virtual_stages > 1 && options->schedule != SCHEDULE_1F1B)
        diag_input(check->diag, place, "schedule %s has one model chunk a stage; take 1F1B, which is interleaved then",
            pipeline_schedule_names[options->schedule]);
    else if (options->virtual_stages > 1 && batch.micro_batches % options->pipeline != 0)
        diag_input(check->diag, place,
            "interleaved stages take micro-batches in groups of %lld, which do not divide the %lld of a step; take "
            "another batch",
            (long long)options->pipeline, (long long)batch.micro_batches);
    if (batch.last != check->options->train.micro_batch)
        diag_input(check->diag, at(check, "train.micro_batch"),
            "micro-batches of %lld leave %lld sequences over, which a pipeline cannot; take a divisor of %lld",
            (long long)check->options->train.micro_batch, (long long)batch.last, (long long)batch.samples);
}

static void check_global_batch(const struct layout_check *check)
{
    const struct train_options *train = &check->options->train;
    int64_t ranks = strategy_data_ranks(&check->options->parallelism, check->gpus);
    if (train->global_batch % ranks != 0)
        diag_input(check->diag, at(check, "train.global_batch"),
            "%lld sequences do not divide over %lld ranks of data parallelism; take %lld or %lld",
            (long long)train->global_batch, (long long)ranks, (long long)(train->global_batch / ranks * ranks),
            (long long)((train->global_batch / ranks + 1) * ranks));
}

bool strategy_check_parallelism(const struct strategy_options *options, const struct model *model, int gpus,
    const struct strategy_places *places, struct diag *diag)
{
    const struct layout_check check = {options, model, gpus, places, diag};
    if (!check_ranks(&check) || !check_order(&check))
        return false;
    check_global_batch(&check);
    if (options->parallelism.pipeline > 1) {
        check_stages(&check);
        check_layers(&check);
    }
    if (options->parallelism.pipeline > 1 || options->parallelism.virtual_stages > 1)
        check_schedule(&check);
    return true;
}
