/* The axes of a search, what is tried on each, and the walk over them that makes the candidates.
 *
 * Points of the scenario that differ only in what is searched are one base: base_of() sets all that
 * to defaults and compares digests of the settings. From each base walk() goes down walked[],
 * an axis a level, and puts in each of its values; an axis that --set gave, or that does not count
 * with the strategy so far, has the base's value alone. At the end scenario_check() takes the point
 * or refuses it.
 *
 * What is subtle: values of an axis may follow from the axes above it, so the order of the walk
 * matters; it is also the order of candidates, in which equals rank. Micro-batches of strategies
 * are the outermost loop, over all bases, the largest first; those of layouts are an axis as
 * others. */
#include "base/digest.h"
#include "base/files.h"
#include "study/tune_search.h"

#include <string.h>

struct tune_base {
    struct scenario_point point;
    uint64_t digest; /* of its settings */
    int group;
    bool fixed[TUNE_AXES]; /* its value is the only one */
};

/* One base and one step of the search. */
struct tune_search {
    struct tune *out;
    const struct tune_options *options;
    struct arena *arena;
    const struct tune_base *base;
    int index;                   /* of the base */
    int64_t batch;               /* of strategies */
    struct scenario_point point; /* as far as the walk has come */
};

/* ---- what is tried ---- */

static void add_divisors(struct tune_values *out, int64_t of, int64_t most)
{
    for (int64_t n = of > 0; n > 0 && n <= most; n = next_divisor(of, n))
        vec_push(&out->list, n);
}

static void batches(struct tune_values *out, const struct tune_search *search)
{
    bool layouts = layout_searched(&search->point);
    int64_t most = layouts ? search->options->max_batch : search->batch;
    for (int64_t batch = layouts ? 1 : most; batch <= most; batch *= 2)
        vec_push(&out->list, batch);
}

/* Of layouts attention alone, where it keeps its scores. */
static void checkpointings(struct tune_values *out, const struct tune_search *search)
{
    vec_push(&out->list, CHECKPOINT_NONE);
    vec_push(&out->list, CHECKPOINT_FULL);
    if (!layout_searched(&search->point))
        vec_push(&out->list, CHECKPOINT_SELECTIVE);
    else if (search->point.options.strategy.train.attention == ATTENTION_NAIVE)
        vec_push(&out->list, CHECKPOINT_CORE_ATTN);
}

static void strategies(struct tune_values *out, const struct tune_search *search)
{
    static const int several[] = {STRATEGY_FSDP, STRATEGY_DEEPSPEED, STRATEGY_DDP};
    if (search->point.options.cluster.gpus == 1)
        vec_push(&out->list, STRATEGY_SINGLE_DEVICE);
    for (int i = 0; i < 3 && search->point.options.cluster.gpus > 1; i++)
        vec_push(&out->list, several[i]);
}

static bool shards_in_groups(const struct fsdp_options *fsdp)
{
    return fsdp->sharding_strategy == HYBRID_SHARD || fsdp->sharding_strategy == HYBRID_SHARD_ZERO2;
}

/* Groups are whole nodes, and smaller than the job, since a group as large as the job is
 * FULL_SHARD. A job of one node has them as the scenario says. */
static void sharding_groups(struct tune_values *out, const struct tune_search *search)
{
    const struct fsdp_options *fsdp = &search->point.options.strategy.fsdp;
    int64_t gpus = search->point.options.cluster.gpus, node = hw_gpus_per_node(&search->point.hw);
    if (!shards_in_groups(fsdp) || (search->base->fixed[TUNE_SHARDING] && node >= gpus))
        vec_push(&out->list, fsdp->sharding_group_size);
    else
        for (int64_t group = node; group > 1 && group < gpus; group *= 2)
            vec_push(&out->list, group);
}

/* With BACKWARD_POST it is rare: only where somebody asks for that. */
static void forward_prefetches(struct tune_values *out, const struct tune_search *search)
{
    bool rare = search->point.options.strategy.fsdp.backward_prefetch == BACKWARD_POST;
    for (int forward = 0; forward < (rare && !search->base->fixed[TUNE_BACKWARD] ? 1 : 2);
         forward++)
        vec_push(&out->list, forward);
}

/* With flash attention alone, and down to TUNE_LEAST_CONTEXT_TOKENS a rank. */
static void contexts(struct tune_values *out, const struct tune_search *search)
{
    const struct train_options *train = &search->point.options.strategy.train;
    int64_t longest = train->seq_len / TUNE_LEAST_CONTEXT_TOKENS;
    add_divisors(out, search->point.options.cluster.gpus,
        train->attention == ATTENTION_FLASH && longest > 1 ? longest : 1);
}

static void tensors(struct tune_values *out, const struct tune_search *search)
{
    add_divisors(out, search->point.options.cluster.gpus, search->point.model.shape.n_heads);
}

static void sequences(struct tune_values *out, const struct tune_search *search)
{
    vec_push(&out->list, search->point.options.strategy.parallelism.model.tensor > 1);
}

static void pipelines(struct tune_values *out, const struct tune_search *search)
{
    const struct model_parallel *cut = &search->point.options.strategy.parallelism.model;
    int64_t ranks = model_tensor_ranks(cut) * model_context_ranks(cut),
            gpus = search->point.options.cluster.gpus;
    if (gpus % ranks == 0)
        add_divisors(out, gpus / ranks, model_blocks(&search->point.model));
}

/* Experts divide over ranks of tensor and data parallelism together. */
static void expert_degrees(struct tune_values *out, const struct tune_search *search)
{
    const struct parallelism_options *parallel = &search->point.options.strategy.parallelism;
    if (search->point.model.shape.moe.experts == 0)
        vec_push(&out->list, parallel->model.expert);
    add_divisors(out, search->point.model.shape.moe.experts,
        strategy_data_ranks(parallel, search->point.options.cluster.gpus) *
            model_tensor_ranks(&parallel->model));
}

/* Blocks to the pipeline's chunks, all alike; where they do not divide, the first and the last
 * chunk have fewer, as they have the model's ends, too, or (of two chunks) the last. What --set
 * gives stays. */
struct split {
    int64_t first, last;
    bool possible;
};

static struct split split_blocks(const struct tune_search *search, int64_t chunks)
{
    const struct parallelism_options *parallel = &search->point.options.strategy.parallelism;
    int64_t blocks = model_blocks(&search->point.model), places = parallel->pipeline * chunks,
            each = (blocks + places - 1) / places;
    struct split split = {parallel->first_layers, parallel->last_layers, true};
    if (search->base->fixed[TUNE_FIRST] || search->base->fixed[TUNE_LAST]) {
        int64_t left = blocks - (split.first > 0 ? split.first : 0) -
                       (split.last > 0 ? split.last : 0),
                even = places - (split.first >= 0) - (split.last >= 0);
        split.possible = even >= 1 && left % even == 0;
        return split;
    }
    if (blocks % places == 0 || parallel->partition_method != PARTITION_UNIFORM)
        return (struct split){-1, -1, true};
    int64_t ends = places > 2 ? blocks - each * (places - 2) : blocks - each;
    split.first = places > 2 ? (ends + 1) / 2 : -1;
    split.last = places > 2 ? ends / 2 : ends;
    split.possible = split.last >= 1;
    return split;
}

/* A schedule in a V has two chunks, schedules without interleaving have one; else as many as a
 * stage has blocks. */
static void stage_chunks(struct tune_values *out, const struct tune_search *search)
{
    const struct parallelism_options *parallel = &search->point.options.strategy.parallelism;
    bool is_v = schedule_is_v(parallel->schedule) && parallel->pipeline > 1;
    bool schedule_has_one = parallel->schedule != SCHEDULE_1F1B || parallel->pipeline == 1;
    int64_t least = is_v ? SCHEDULE_V_CHUNKS : 1;
    int64_t most = is_v               ? least
                   : schedule_has_one ? 1
                                      : model_blocks(&search->point.model) / parallel->pipeline;
    for (int64_t chunks = least; chunks <= most; chunks++)
        if (chunks == 1 || split_blocks(search, chunks).possible)
            vec_push(&out->list, chunks);
}

static void first_layers(struct tune_values *out, const struct tune_search *search)
{
    int64_t chunks = search->point.options.strategy.parallelism.virtual_stages;
    vec_push(&out->list, split_blocks(search, chunks).first);
}

static void last_layers(struct tune_values *out, const struct tune_search *search)
{
    int64_t chunks = search->point.options.strategy.parallelism.virtual_stages;
    vec_push(&out->list, split_blocks(search, chunks).last);
}

/* Megatron-LM has it with interleaved stages only. */
static void overlaps_p2p(struct tune_values *out, const struct tune_search *search)
{
    vec_push(&out->list, search->point.options.strategy.parallelism.virtual_stages > 1);
}

static void overlaps_gather(struct tune_values *out, const struct tune_search *search)
{
    vec_push(&out->list, search->point.options.strategy.megatron.use_distributed_optimizer);
}

/* ---- the axes ---- */

enum {
    OF_FSDP = 1 << STRATEGY_FSDP,
    OF_DEEPSPEED = 1 << STRATEGY_DEEPSPEED,
    OF_INTERNEVO = 1 << STRATEGY_INTERNEVO,
    OF_LAYOUTS = 1 << STRATEGY_MEGATRON,
    OF_OTHERS = (1 << STRATEGY_COUNT) - 1 - OF_LAYOUTS
};

#define AXIS(path_, member, ...)                                                                   \
    {                                                                                              \
        .path = (path_), .offset = offsetof(struct scenario, member),                              \
        .size = sizeof(((struct scenario *)0)->member), __VA_ARGS__                                \
    }
/* Where the key is the member's name, too. */
#define IN(section, key, ...) AXIS(#section "." #key, strategy.section.key, __VA_ARGS__)
#define LAYOUT(key, member, ...)                                                                   \
    AXIS("parallelism." key, strategy.parallelism.member, .of = OF_LAYOUTS, .values = __VA_ARGS__)
const struct tune_axis tune_axes[TUNE_AXES] = {
    [TUNE_VERSION] = IN(fsdp, version, .of = OF_FSDP),
    [TUNE_GPUS] = AXIS("cluster.gpus", cluster.gpus, .label = "GPUs"),
    [TUNE_BATCH] = IN(train, micro_batch, .values = batches, .label = "batch", .unit = "/GPU"),
    [TUNE_ACCUM] = IN(train, grad_accum, .of = 0),
    [TUNE_CHECKPOINTING] =
        IN(train, activation_checkpointing, .values = checkpointings, .label = "checkpoint"),
    [TUNE_STRATEGY] = AXIS("strategy", strategy.kind, .values = strategies),
    [TUNE_DEVICE_BATCH] = IN(train, device_batch, .of = OF_OTHERS),
    [TUNE_GLOBAL_BATCH] = IN(train, global_batch, .of = OF_LAYOUTS),
    [TUNE_SHARDING] = IN(fsdp, sharding_strategy, .of = OF_FSDP, .n = 3,
        .list = {FULL_SHARD, SHARD_GRAD_OP, HYBRID_SHARD}),
    [TUNE_GROUP] = IN(fsdp, sharding_group_size, .of = OF_FSDP, .values = sharding_groups),
    [TUNE_BACKWARD] =
        IN(fsdp, backward_prefetch, .of = OF_FSDP, .n = 2, .list = {BACKWARD_PRE, BACKWARD_POST}),
    [TUNE_FORWARD] = IN(fsdp, forward_prefetch, .of = OF_FSDP, .values = forward_prefetches),
    [TUNE_STAGE] = AXIS("deepspeed.zero_optimization.stage", strategy.zero.stage,
        .of = OF_DEEPSPEED, .n = 3, .list = {1, 2, 3}),
    [TUNE_ZERO1] = IN(internevo, zero1, .of = OF_INTERNEVO),
    [TUNE_TENSOR] = LAYOUT("tensor", model.tensor, tensors, .label = "tp"),
    [TUNE_SEQUENCE] = LAYOUT("sequence", model.sequence, sequences),
    [TUNE_CONTEXT] = LAYOUT("context", model.context, contexts, .label = "cp"),
    [TUNE_PIPELINE] = LAYOUT("pipeline", pipeline, pipelines, .label = "pp"),
    [TUNE_VIRTUAL] = LAYOUT("virtual", virtual_stages, stage_chunks, .label = "vp"),
    [TUNE_FIRST] = LAYOUT("first_layers", first_layers, first_layers),
    [TUNE_LAST] = LAYOUT("last_layers", last_layers, last_layers),
    [TUNE_EXPERT] = LAYOUT("expert", model.expert, expert_degrees, .label = "ep"),
    [TUNE_OVERLAP_P2P] = LAYOUT("overlap_p2p_comm", overlap_p2p_comm, overlaps_p2p),
    [TUNE_DISTRIBUTED] =
        IN(megatron, use_distributed_optimizer, .of = OF_LAYOUTS, .n = 1, .list = {true}),
    [TUNE_OVERLAP_REDUCE] =
        IN(megatron, overlap_grad_reduce, .of = OF_LAYOUTS, .n = 1, .list = {true}),
    [TUNE_OVERLAP_GATHER] =
        IN(megatron, overlap_param_gather, .of = OF_LAYOUTS, .values = overlaps_gather),
};

/* All that are searched, as the walk goes down. */
static const enum tune_axis_index walked[] = {TUNE_DISTRIBUTED, TUNE_OVERLAP_REDUCE,
    TUNE_OVERLAP_GATHER, TUNE_CONTEXT, TUNE_TENSOR, TUNE_SEQUENCE, TUNE_PIPELINE, TUNE_EXPERT,
    TUNE_VIRTUAL, TUNE_FIRST, TUNE_LAST, TUNE_OVERLAP_P2P, TUNE_BATCH, TUNE_CHECKPOINTING,
    TUNE_STRATEGY, TUNE_SHARDING, TUNE_GROUP, TUNE_BACKWARD, TUNE_FORWARD, TUNE_STAGE};
enum { WALKED = sizeof walked / sizeof *walked };

int64_t tune_axis_value(enum tune_axis_index index, const struct scenario_point *point)
{
    const struct tune_axis *axis = &tune_axes[index];
    const void *at = (const char *)&point->options + axis->offset;
    if (axis->size == sizeof(bool))
        return *(const bool *)at;
    return axis->size == sizeof(int) ? *(const int *)at : *(const int64_t *)at;
}

static void axis_put(enum tune_axis_index index, struct scenario_point *point, int64_t value)
{
    const struct tune_axis *axis = &tune_axes[index];
    void *at = (char *)&point->options + axis->offset;
    if (axis->size == sizeof(bool))
        *(bool *)at = value != 0;
    else if (axis->size == sizeof(int))
        *(int *)at = (int)value;
    else
        *(int64_t *)at = value;
}

const char *tune_axis_text(
    enum tune_axis_index index, const struct scenario_point *point, struct arena *arena)
{
    size_t at = 0;
    const struct config_field *field = config_field_at(&scenario_table, tune_axes[index].path, &at);
    return config_value_text(field, (const char *)&point->options + at, arena);
}

bool tune_axes_differ(
    const struct scenario_point *a, const struct scenario_point *b, unsigned except)
{
    for (int i = 0; i < WALKED; i++)
        if (!(except >> walked[i] & 1) &&
            tune_axis_value(walked[i], a) != tune_axis_value(walked[i], b))
            return true;
    return false;
}

/* Whether --set gave it. */
static bool axis_is_set(enum tune_axis_index index, const struct scenario_point *point)
{
    return scenario_origin(point, tune_axes[index].path).kind == ORIGIN_COMMAND_LINE;
}

/* Values are read from the candidate's point by the paths of settings, so what is printed as a
 * command is what was simulated. */
struct tune_settings tune_settings(const struct tune_candidate *candidate, struct arena *arena)
{
    const struct scenario_point *point = &candidate->point;
    struct tune_settings all = {.n = 0};
    if (point->options.stack_path && scenario_origin(point, "stack").kind == ORIGIN_COMMAND_LINE)
        all.list[all.n++] = (struct scenario_override){
            "stack", files_name_from(arena, NULL, point->options.stack_path)};
    for (enum tune_axis_index i = 0; i < TUNE_AXES; i++) {
        bool unsaid = (i == TUNE_VERSION && !axis_is_set(i, point)) || /* fsdp2 says it */
                      (i == TUNE_DEVICE_BATCH && tune_axis_value(i, point) == 0);
        if (tune_axis_counts(i, point) && !unsaid)
            all.list[all.n++] =
                (struct scenario_override){tune_axes[i].path, tune_axis_text(i, point, arena)};
    }
    return all;
}

bool tune_sets(const struct tune_settings *settings, const char *path)
{
    for (int i = 0; i < settings->n; i++)
        if (strcmp(settings->list[i].key, path) == 0)
            return true;
    return false;
}

/* ---- the walk ---- */

void tune_refuse(struct tune *tune, const struct diag *diag, struct arena *arena)
{
    if (tune->n_refused++ > 0)
        return;
    int length = 0;
    const char *reason = diag_first(diag, &length);
    tune->refusal = arena_printf(arena, "%.*s", length, reason);
}

/* The batch of a step, where one is asked for, by what the scenario accumulates by. false: not with
 * this micro-batch. Layouts share it out over the ranks of data parallelism that are left. Others
 * have train.device_batch, of which a micro-batch is a part; or without it the number of
 * micro-steps makes up the global batch. */
static bool share_batch(const struct tune_search *search, struct scenario_point *point)
{
    struct train_options *train = &point->options.strategy.train;
    const bool *fixed = search->base->fixed;
    int64_t gpus = point->options.cluster.gpus, given = train->device_batch,
            global = search->options->global_batch, per_micro_step = train->micro_batch * gpus;
    if (layout_searched(point)) {
        strategy_share_batch(&point->options.strategy, gpus);
        return train->device_batch % train->micro_batch == 0 &&
               (!fixed[TUNE_DEVICE_BATCH] || train->device_batch == given);
    }
    if (given == 0) {
        if (global == 0)
            return true;
        if (global % per_micro_step ||
            (fixed[TUNE_ACCUM] && train->grad_accum != global / per_micro_step))
            return false;
        train->grad_accum = global / per_micro_step;
        return true;
    }
    if (global && (global % gpus || (fixed[TUNE_DEVICE_BATCH] && given != global / gpus)))
        return false;
    if (global)
        train->device_batch = global / gpus;
    /* A larger micro-batch is the device's batch, once. */
    if (!fixed[TUNE_BATCH] && train->micro_batch / 2 >= train->device_batch)
        return false;
    strategy_fit_micro_batch(train);
    if (!fixed[TUNE_ACCUM])
        train->grad_accum = 1;
    return true;
}

/* Batch first, as checks need it; a refusal is counted, and only the first one is kept in words. */
static void add_candidate(const struct tune_search *search, struct scenario_point point)
{
    struct diag diag = DIAG_INIT;
    struct strategy_options *strategy = &point.options.strategy;
    if (strategy->kind == STRATEGY_FSDP && !shards_in_groups(&strategy->fsdp))
        strategy->fsdp.sharding_group_size = 0;
    if (!share_batch(search, &point))
        return;
    scenario_check(&point, &diag);
    if (diag.n_errors > 0)
        tune_refuse(search->out, &diag, search->arena);
    else
        vec_push(&search->out->candidates, ((struct tune_candidate){.point = point,
                                               .is_layout = layout_searched(&point),
                                               .base = search->index,
                                               .group = search->base->group,
                                               .represents = -1}));
}

/* All that lies below this level of the walk; the point comes back as it was. */
static void walk(struct tune_search *search, int level)
{
    struct scenario_point *point = &search->point;
    if (level == WALKED) {
        add_candidate(search, *point);
        return;
    }
    const struct tune_axis *axis = &tune_axes[walked[level]];
    if (search->base->fixed[walked[level]] || !tune_axis_counts(walked[level], point)) {
        walk(search, level + 1);
        return;
    }
    struct tune_values values = {0};
    int64_t own = tune_axis_value(walked[level], point);
    for (int i = 0; i < axis->n; i++)
        vec_push(&values.list, axis->list[i]);
    if (axis->values)
        axis->values(&values, search);
    for (int i = 0; i < values.list.n; i++) {
        axis_put(walked[level], point, values.list.at[i]);
        walk(search, level + 1);
    }
    axis_put(walked[level], point, own);
    vec_free(&values.list);
}

/* ---- bases ---- */

/* Layouts have one batch of a step of the job, as the options or the scenario say. */
static void share_one_batch(
    struct scenario_point *point, const bool *fixed, const struct tune_options *options)
{
    struct strategy_options *strategy = &point->options.strategy;
    struct train_options *train = &strategy->train;
    if (options->global_batch > 0 && !fixed[TUNE_GLOBAL_BATCH])
        train->global_batch = options->global_batch;
    if (train->global_batch == 0)
        train->global_batch =
            strategy_batch(train).samples *
            strategy_data_ranks(&strategy->parallelism, point->options.cluster.gpus);
    if (!fixed[TUNE_ACCUM])
        train->grad_accum = 1; /* as the global batch says */
    if (!fixed[TUNE_DEVICE_BATCH])
        train->device_batch = 0;
}

/* What is searched, out of the way: points that differ in nothing else have the same candidates. */
static struct tune_base base_of(
    const struct scenario_point *from, const struct tune_options *options)
{
    struct tune_base base = {.point = *from};
    struct scenario *own = &base.point.options, plain = scenario_default();
    bool layouts = layout_searched(from);
    for (enum tune_axis_index i = 0; i < TUNE_AXES; i++)
        base.fixed[i] = axis_is_set(i, from);
    bool internevo = base.fixed[TUNE_STRATEGY]; /* else it is not searched */
    base.fixed[TUNE_STRATEGY] = base.fixed[TUNE_STRATEGY] || layouts;
    if (layouts)
        share_one_batch(&base.point, base.fixed, options);
    plain.strategy.train.micro_batch = 1;
    for (int i = 0; i < WALKED; i++)
        if (!base.fixed[walked[i]] && (layouts || tune_axes[walked[i]].of != OF_LAYOUTS))
            config_copy(own, &plain, tune_axes[walked[i]].path, &scenario_table);
    if (!internevo)
        own->strategy.internevo = plain.strategy.internevo;
    if (options->global_batch && !base.fixed[TUNE_ACCUM])
        own->strategy.train.grad_accum = 1;
    base.point.published.found = false;
    if (layouts && options->pipeline > 0) {
        base.fixed[TUNE_PIPELINE] = true;
        own->strategy.parallelism.pipeline = options->pipeline;
    }
    if (layouts && options->virtual_stages > 0) {
        base.fixed[TUNE_VIRTUAL] = true;
        own->strategy.parallelism.virtual_stages = options->virtual_stages;
    }
    if (options->variants > 1)
        base.fixed[TUNE_BACKWARD] = base.fixed[TUNE_FORWARD] = true;
    base.digest = config_digest(DIGEST_INIT, &scenario_table, own);
    return base;
}

/* What one base has with this micro-batch. Of one whose micro-batches are no loop, and of layouts,
 * all candidates come with the last. */
static void add_base(struct tune_search *search, const struct tune_base *base)
{
    bool layouts = layout_searched(&base->point);
    int64_t global = search->options->global_batch;
    bool other = layouts && global > 0 &&
                 global != base->point.options.strategy.train.global_batch; /* by --set */
    if (other || ((layouts || base->fixed[TUNE_BATCH]) && search->batch > 1))
        return;
    search->base = base;
    search->point = base->point;
    walk(search, 0);
}

/* Several variants of one job (tune_options.variants) stand one behind the other in the set, so
 * point i is job i % jobs. */
void tune_candidates(struct tune *out, const struct scenario_set *set,
    const struct tune_options *options, struct arena *arena)
{
    *out = (struct tune){0};
    struct tune_search search = {.out = out, .options = options, .arena = arena, .batch = 1};
    VEC(struct tune_base) bases = {0};
    int jobs = options->variants > 1 ? set->n_points / options->variants : 0;
    out->bounded = out->quiet_only = options->variants > 1;
    for (int i = 0; i < set->n_points; i++) {
        struct tune_base base = base_of(&set->points[i], options);
        bool known = false;
        for (int j = 0; j < bases.n && !known; j++)
            known = bases.at[j].digest == base.digest;
        base.group = jobs > 0 ? i % jobs : bases.n;
        if (!known)
            vec_push(&bases, base);
        out->quiet_only = out->quiet_only || layout_searched(&base.point);
    }
    while (2 * search.batch <= options->max_batch)
        search.batch *= 2;
    for (; search.batch >= 1; search.batch /= 2)
        for (search.index = 0; search.index < bases.n; search.index++)
            add_base(&search, &bases.at[search.index]);
    out->n_bases = bases.n;
    tune_find_bounds(out, arena);
    vec_free(&bases);
}
