/* The search over layouts of Megatron's parallelisms: which there are, and which of them are
 * simulated. Nested loops go over degrees: context, tensor, pipeline, experts, chunks of a stage,
 * micro-batch, checkpointing; each divides what is left of the GPUs, and data parallelism has the
 * rest. Layouts that cut a block alike share the costs of blocks (study/bound.h), which are found
 * once for each such class, classes in parallel, small micro-batches first: where a layout does not
 * fit, the same one with a larger micro-batch is pruned without a bound. layout_run() is branch and
 * bound. Layouts are sorted by their bound for a sequence; a layout is left out when its bound is
 * not below the keep-th best time of its group and, between variants, not below the best time of
 * its base.
 *
 * What is subtle: a bound must never be above the simulated time, or the best layout could be lost.
 * A shard takes every n-th layout of the sorted order, so each has early leaders. */
#include "study/tune_search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum layout_setting {
    LAYOUT_TENSOR,
    LAYOUT_SEQUENCE,
    LAYOUT_CONTEXT,
    LAYOUT_PIPELINE,
    LAYOUT_VIRTUAL,
    LAYOUT_FIRST,
    LAYOUT_LAST,
    LAYOUT_EXPERT,
    LAYOUT_OVERLAP_P2P,
    LAYOUT_DISTRIBUTED,
    LAYOUT_OVERLAP_REDUCE,
    LAYOUT_OVERLAP_GATHER,
    LAYOUT_COUNT
};
const char *const layout_paths[LAYOUT_COUNT + 1] = {
    [LAYOUT_TENSOR] = "parallelism.tensor",
    [LAYOUT_SEQUENCE] = "parallelism.sequence",
    [LAYOUT_CONTEXT] = "parallelism.context",
    [LAYOUT_PIPELINE] = "parallelism.pipeline",
    [LAYOUT_VIRTUAL] = "parallelism.virtual",
    [LAYOUT_FIRST] = "parallelism.first_layers",
    [LAYOUT_LAST] = "parallelism.last_layers",
    [LAYOUT_EXPERT] = "parallelism.expert",
    [LAYOUT_OVERLAP_P2P] = "parallelism.overlap_p2p_comm",
    [LAYOUT_DISTRIBUTED] = "megatron.use_distributed_optimizer",
    [LAYOUT_OVERLAP_REDUCE] = "megatron.overlap_grad_reduce",
    [LAYOUT_OVERLAP_GATHER] = "megatron.overlap_param_gather",
};

/* The scenario's layout is replaced by Megatron's defaults with the distributed optimizer and
 * its overlaps; what --set gave stays. */
void layout_base(struct scenario_point *point, const struct tune_options *options)
{
    struct strategy_options *strategy = &point->options.strategy;
    struct train_options *train = &strategy->train;
    struct scenario plain = scenario_default();
    if (options->global_batch > 0 && !tune_is_set(point, "train.global_batch"))
        train->global_batch = options->global_batch;
    if (train->global_batch == 0)
        train->global_batch =
            strategy_batch(train).samples *
            strategy_data_ranks(&strategy->parallelism, point->options.cluster.gpus);
    if (!tune_is_set(point, "train.grad_accum"))
        train->grad_accum = 1; /* as the global batch says */
    if (!tune_is_set(point, "train.device_batch"))
        train->device_batch = 0;
    plain.strategy.megatron.use_distributed_optimizer = true;
    plain.strategy.megatron.overlap_grad_reduce = plain.strategy.megatron.overlap_param_gather =
        true;
    for (int i = 0; i < LAYOUT_COUNT; i++)
        if (!tune_is_set(point, layout_paths[i]))
            config_copy(&point->options, &plain, layout_paths[i], &scenario_table);
    if (!strategy->megatron.use_distributed_optimizer &&
        !tune_is_set(point, layout_paths[LAYOUT_OVERLAP_GATHER]))
        strategy->megatron.overlap_param_gather = false;
}

/* What one base point is about. */
struct layouts {
    struct tune *out;
    const struct scenario_point *base;
    int base_index, group;
    const struct tune_options *options;
    struct arena *arena;
    bool set[LAYOUT_COUNT], batch_set, checkpointing_set;
};

/* The batch is shared out here, as it depends on how many ranks of data parallelism are left. */
static void tune_layout_add(const struct layouts *layouts, struct scenario_point point)
{
    struct strategy_options *strategy = &point.options.strategy;
    struct diag diag = DIAG_INIT;
    int64_t device_given = strategy->train.device_batch;
    strategy_share_batch(strategy, point.options.cluster.gpus);
    bool shared = strategy->train.device_batch % strategy->train.micro_batch == 0;
    bool kept =
        !tune_is_set(&point, "train.device_batch") || device_given == strategy->train.device_batch;
    if (!shared || !kept)
        return;
    scenario_check(&point, &diag);
    if (diag.n_errors > 0)
        tune_refuse(layouts->out, &diag, layouts->arena);
    else
        vec_push(&layouts->out->candidates, ((struct tune_candidate){.point = point,
                                                .is_layout = true,
                                                .base = layouts->base_index,
                                                .group = layouts->group,
                                                .represents = -1}));
}

static void add_batches(const struct layouts *layouts, struct scenario_point point)
{
    struct train_options *train = &point.options.strategy.train;
    int given = train->activation_checkpointing;
    bool naive = train->attention == ATTENTION_NAIVE;
    int64_t most = layouts->batch_set ? train->micro_batch : layouts->options->max_batch;
    for (int64_t batch = layouts->batch_set ? most : 1; batch <= most; batch *= 2)
        for (int kind = 0; kind < CHECKPOINT_COUNT; kind++) {
            bool tried = kind == CHECKPOINT_NONE || kind == CHECKPOINT_FULL ||
                         (kind == CHECKPOINT_CORE_ATTN && naive);
            train->micro_batch = batch;
            train->activation_checkpointing = kind;
            if (layouts->checkpointing_set ? kind == given : tried)
                tune_layout_add(layouts, point);
        }
}

/* Blocks to the pipeline's chunks, all alike; where they do not divide, the first and the last
 * chunk have fewer, as they have the model's ends, too, or (of two chunks) the last. What --set
 * gives stays. false: there is no such split. */
static bool split_blocks(
    const struct layouts *layouts, struct parallelism_options *parallel, int64_t blocks)
{
    int64_t places = parallel->pipeline * parallel->virtual_stages,
            each = (blocks + places - 1) / places;
    int64_t *first = &parallel->first_layers, *last = &parallel->last_layers;
    if (layouts->set[LAYOUT_FIRST] || layouts->set[LAYOUT_LAST]) {
        int64_t left = blocks - (*first > 0 ? *first : 0) - (*last > 0 ? *last : 0),
                even = places - (*first >= 0) - (*last >= 0);
        return even >= 1 && left % even == 0;
    }
    *first = *last = -1;
    if (blocks % places == 0 || parallel->partition_method != PARTITION_UNIFORM)
        return true;
    int64_t ends = places > 2 ? blocks - each * (places - 2) : blocks - each;
    *first = places > 2 ? (ends + 1) / 2 : -1;
    *last = places > 2 ? ends / 2 : ends;
    return *last >= 1;
}

/* A schedule in a V has two chunks, schedules without interleaving have one; else as many as a
 * stage has blocks. */
static void add_virtual(const struct layouts *layouts, struct scenario_point point)
{
    struct parallelism_options *parallel = &point.options.strategy.parallelism;
    int64_t given = parallel->virtual_stages, blocks = model_blocks(&point.model);
    bool is_v = schedule_is_v(parallel->schedule) && parallel->pipeline > 1;
    bool schedule_has_one = parallel->schedule != SCHEDULE_1F1B || parallel->pipeline == 1;
    int64_t least = is_v ? SCHEDULE_V_CHUNKS : 1;
    int64_t most = is_v ? least : schedule_has_one ? 1 : blocks / parallel->pipeline;
    if (layouts->set[LAYOUT_VIRTUAL])
        least = most = given;
    for (int64_t chunks = least; chunks <= most; chunks++) {
        parallel->virtual_stages = chunks;
        if (!split_blocks(layouts, parallel, blocks) && !layouts->set[LAYOUT_VIRTUAL] && chunks > 1)
            continue;
        if (!layouts->set[LAYOUT_OVERLAP_P2P])
            parallel->overlap_p2p_comm =
                chunks > 1; /* Megatron-LM has it with interleaved stages only */
        add_batches(layouts, point);
    }
}

/* The next number that divides n, from `from` on; more than n: there is none. */
static int64_t tune_layout_divisor(int64_t n, int64_t from)
{
    while (from <= n && n % from != 0)
        from++;
    return from;
}

/* Experts divide over ranks of tensor and data parallelism together. */
static void add_experts(const struct layouts *layouts, struct scenario_point point)
{
    int64_t *expert = &point.options.strategy.parallelism.model.expert,
            experts = point.model.shape.moe.experts;
    int64_t data =
        strategy_data_ranks(&point.options.strategy.parallelism, point.options.cluster.gpus) *
        model_tensor_ranks(&point.options.strategy.parallelism.model);
    if (layouts->set[LAYOUT_EXPERT] || experts == 0) {
        add_virtual(layouts, point);
        return;
    }
    for (int64_t ranks = 1; ranks <= experts && ranks <= data;
         ranks = tune_layout_divisor(experts, ranks + 1)) {
        *expert = ranks;
        add_virtual(layouts, point);
    }
}

static void add_pipelines(const struct layouts *layouts, struct scenario_point point)
{
    struct parallelism_options *parallel = &point.options.strategy.parallelism;
    int64_t ranks = model_tensor_ranks(&parallel->model) * model_context_ranks(&parallel->model);
    int64_t gpus = point.options.cluster.gpus, blocks = model_blocks(&point.model);
    if (layouts->set[LAYOUT_PIPELINE]) {
        add_experts(layouts, point);
        return;
    }
    for (int64_t stages = 1; gpus % ranks == 0 && stages <= gpus / ranks && stages <= blocks;
         stages = tune_layout_divisor(gpus / ranks, stages + 1)) {
        parallel->pipeline = stages;
        add_experts(layouts, point);
    }
}

static void add_tensors(const struct layouts *layouts, struct scenario_point point)
{
    struct model_parallel *model = &point.options.strategy.parallelism.model;
    int64_t gpus = point.options.cluster.gpus, given = model->tensor;
    int64_t most = layouts->set[LAYOUT_TENSOR] ? given : point.model.shape.n_heads;
    for (int64_t ranks = layouts->set[LAYOUT_TENSOR] ? given : 1; ranks <= most && ranks <= gpus;
         ranks = tune_layout_divisor(gpus, ranks + 1)) {
        model->tensor = ranks;
        if (!layouts->set[LAYOUT_SEQUENCE])
            model->sequence = ranks > 1;
        add_pipelines(layouts, point);
    }
}

/* of: a degree that the options give, 0: they do not. */
static void keep_alone(struct layouts *layouts, int which, int64_t *degree, int64_t of)
{
    layouts->set[which] = layouts->set[which] || of > 0;
    *degree = of > 0 ? of : *degree;
}

/* Context parallelism is the outermost loop: it is tried with flash attention alone, and down to
 * TUNE_LEAST_CONTEXT_TOKENS a rank. */
void layout_candidates(struct tune *out, const struct scenario_point *base, int base_index,
    int group, const struct tune_options *options, struct arena *arena)
{
    struct layouts layouts = {.out = out,
        .base = base,
        .base_index = base_index,
        .group = group,
        .options = options,
        .arena = arena,
        .batch_set = tune_is_set(base, "train.micro_batch"),
        .checkpointing_set = tune_is_set(base, "train.activation_checkpointing")};
    struct scenario_point point = *base;
    int64_t *context = &point.options.strategy.parallelism.model.context;
    for (int i = 0; i < LAYOUT_COUNT; i++)
        layouts.set[i] = tune_is_set(base, layout_paths[i]);
    keep_alone(
        &layouts, LAYOUT_PIPELINE, &point.options.strategy.parallelism.pipeline, options->pipeline);
    keep_alone(&layouts, LAYOUT_VIRTUAL, &point.options.strategy.parallelism.virtual_stages,
        options->virtual_stages);
    if (options->global_batch > 0 &&
        options->global_batch != base->options.strategy.train.global_batch)
        return; /* --set says another */
    if (layouts.set[LAYOUT_CONTEXT]) {
        add_tensors(&layouts, point);
        return;
    }
    int64_t longest = base->options.strategy.train.seq_len / TUNE_LEAST_CONTEXT_TOKENS,
            gpus = base->options.cluster.gpus;
    bool flash = base->options.strategy.train.attention == ATTENTION_FLASH;
    for (int64_t ranks = 1; ranks == 1 || (flash && ranks <= longest && ranks <= gpus);
         ranks = tune_layout_divisor(gpus, ranks + 1)) {
        *context = ranks;
        add_tensors(&layouts, point);
    }
}

/* ---- bounds ---- */

/* Layouts with the same costs of blocks, in the order of candidates. */
struct alike {
    VEC(int) list;
    struct bound_costs costs;
    struct arena arena;
};

static bool has_costs_of(const struct tune *tune, const struct alike *alike, int i)
{
    const struct tune_candidate *own = &tune->candidates.at[i],
                                *other = &tune->candidates.at[alike->list.at[0]];
    return other->base == own->base && bound_same_costs(&other->point, &own->point);
}

static bool same_but_batch(const struct tune_candidate *one, const struct tune_candidate *two)
{
    const struct parallelism_options *a = &one->point.options.strategy.parallelism,
                                     *b = &two->point.options.strategy.parallelism;
    return one->base == two->base && a->model.tensor == b->model.tensor &&
           a->model.context == b->model.context && a->model.expert == b->model.expert &&
           a->pipeline == b->pipeline && a->virtual_stages == b->virtual_stages &&
           one->point.options.strategy.train.activation_checkpointing ==
               two->point.options.strategy.train.activation_checkpointing;
}

/* A larger micro-batch takes no less memory: samples in flight are no fewer. */
static bool fits_smaller(const struct tune *tune, int i)
{
    const struct tune_candidate *own = &tune->candidates.at[i];
    int64_t batch = own->point.options.strategy.train.micro_batch;
    for (int k = i - 1; k >= 0; k--) { /* the same layout's lie side by side */
        const struct tune_candidate *at = &tune->candidates.at[k];
        if (!at->is_layout || at->base != own->base)
            return true;
        if (same_but_batch(own, at) && at->point.options.strategy.train.micro_batch < batch)
            return at->state != TUNE_PRUNED;
        if (at->point.options.strategy.parallelism.virtual_stages !=
            own->point.options.strategy.parallelism.virtual_stages)
            return true;
    }
    return true;
}

static void bound_one(struct tune_candidate *candidate, const struct bound_costs *costs)
{
    const struct hw_gpu *gpu = &candidate->point.hw.gpu;
    candidate->bound = bound_layout(costs, &candidate->point);
    candidate->least_bytes = candidate->bound.bytes - gpu->context_bytes.value;
    candidate->state =
        candidate->bound.bytes <= gpu->hbm_capacity.value ? TUNE_LEFT_OUT : TUNE_PRUNED;
}

/* The diag cannot have errors: scenario_check() has passed the point before. */
static void bound_alike(struct tune *tune, struct alike *alike)
{
    int n = 0;
    for (int k = 0; k < alike->list.n; k++) {
        if (fits_smaller(tune, alike->list.at[k]))
            alike->list.at[n++] = alike->list.at[k];
        else
            tune->candidates.at[alike->list.at[k]].state = TUNE_PRUNED;
    }
    alike->list.n = n;
    if (n == 0)
        return;
    struct diag diag = DIAG_INIT;
    enum status status = bound_costs(
        &alike->costs, &tune->candidates.at[alike->list.at[0]].point, &alike->arena, &diag);
    BUG_IF(status != STATUS_OK, "%s", diag.text);
    for (int k = 0; k < n; k++)
        bound_one(&tune->candidates.at[alike->list.at[k]], &alike->costs);
    arena_release(&alike->arena);
}

/* Those of one micro-batch after those of all smaller ones. */
void layout_bounds(struct tune *tune)
{
    VEC(struct alike) all = {0};
    int64_t most = 0;
    for (int i = 0; i < tune->candidates.n; i++) {
        int k = 0;
        if (!tune->candidates.at[i].is_layout)
            continue;
        while (k < all.n && !has_costs_of(tune, &all.at[k], i))
            k++;
        if (k == all.n)
            vec_push(&all, (struct alike){0});
        vec_push(&all.at[k].list, i);
        int64_t batch = tune->candidates.at[i].point.options.strategy.train.micro_batch;
        most = batch > most ? batch : most;
    }
    for (int64_t batch = 1, least = 0; least < most; least = batch, batch *= 2) {
#ifdef _OPENMP
#pragma omp parallel for schedule(dynamic)
#endif
        for (int k = 0; k < all.n; k++) {
            int64_t own =
                tune->candidates.at[all.at[k].list.at[0]].point.options.strategy.train.micro_batch;
            if (own > least && own <= batch)
                bound_alike(tune, &all.at[k]);
        }
    }
    for (int k = 0; k < all.n; k++)
        vec_free(&all.at[k].list);
    vec_free(&all);
}

/* ---- branch and bound ---- */

struct bounded {
    double promise;
    int group, index;
};

static int by_bound(const void *a, const void *b)
{
    const struct bounded *one = a, *two = b;
    if (one->group != two->group)
        return one->group < two->group ? -1 : 1;
    if (one->promise != two->promise)
        return one->promise < two->promise ? -1 : 1;
    return one->index < two->index ? -1 : one->index > two->index;
}

/* What a sequence took, as tune_promise() has it. */
static double time_of(const struct tune_candidate *at)
{
    return tune_promise(at) / at->bound.step_s * at->quiet.step_time_s;
}

/* The keep shortest times of a group so far, shortest first. */
struct leaders {
    double *step_s;
    int n, keep;
};

/* An insertion into the sorted list; what comes behind a full list is dropped. */
static void lead(struct leaders *leaders, double step_s)
{
    int at = leaders->n < leaders->keep ? leaders->n++ : leaders->keep;
    if (at == leaders->keep && leaders->step_s[--at] <= step_s)
        return;
    for (; at > 0 && leaders->step_s[at - 1] > step_s; at--)
        leaders->step_s[at] = leaders->step_s[at - 1];
    leaders->step_s[at] = step_s;
}

static bool could_lead(const struct leaders *leaders, double least_s)
{
    return leaders->n < leaders->keep || least_s < leaders->step_s[leaders->keep - 1];
}

/* The shortest time of each base so far, none. For free(). */
static double *best_of_bases(const struct tune *tune)
{
    int n = 0;
    for (int i = 0; i < tune->candidates.n; i++)
        n = tune->candidates.at[i].base >= n ? tune->candidates.at[i].base + 1 : n;
    double *best = xcalloc((size_t)n + 1, sizeof *best);
    for (int b = 0; b < n; b++)
        best[b] = HUGE_VAL;
    return best;
}

/* Every n-th, so that each of n shards has layouts of all bounds. */
static void keep_own(struct bounded **order, int *n, struct tune *tune)
{
    int kept = 0;
    for (int k = 0; k < *n; k++) {
        if (k % tune->share->shards == tune->share->shard - 1)
            (*order)[kept++] = (*order)[k];
        else
            tune->left++;
    }
    *n = kept;
}

/* Simulations run in groups of 2, 4 and then 8, whatever the number of threads, so the same
 * layouts are simulated on every machine. */
enum status layout_run(struct tune *tune, const struct tune_options *options,
    scenario_progress progress, void *self, struct diag *diag)
{
    enum {
        AT_ONCE = 8,
        FIRST = 2
    }; /* simulations between two looks at who leads, however many threads there are */
    int at_once = FIRST; /* twice as many each time: an early leader saves most */
    VEC(struct bounded) order = {0};
    struct leaders leaders = {.keep = options->keep > 0 ? options->keep : 1};
    leaders.step_s = xcalloc((size_t)leaders.keep, sizeof *leaders.step_s);
    double *of_base = best_of_bases(tune);
    for (int i = 0; i < tune->candidates.n; i++) {
        const struct tune_candidate *at = &tune->candidates.at[i];
        if ((at->is_layout || tune->bounded) && at->state == TUNE_LEFT_OUT)
            vec_push(&order, ((struct bounded){tune_promise(at), at->group, i}));
    }
    if (order.n > 0)
        qsort(order.at, (size_t)order.n, sizeof *order.at, by_bound);
    if (tune->share && tune->share->shards > 0)
        keep_own(&order.at, &order.n, tune);
    enum status status = STATUS_OK;
    for (int next = 0, ran = 0; next < order.n && status == STATUS_OK && !tune->stopped;) {
        int chosen[AT_ONCE], n = 0, group = order.at[next].group;
        if (next > 0 && order.at[next - 1].group != group)
            leaders.n = 0;
        for (; next < order.n && order.at[next].group == group && n < at_once; next++) {
            const struct tune_candidate *at = &tune->candidates.at[order.at[next].index];
            if (!could_lead(&leaders, order.at[next].promise) &&
                !(tune->bounded && order.at[next].promise < of_base[at->base]))
                tune->candidates.at[order.at[next].index].state = TUNE_SLOWER;
            else if (ran + n < options->max_simulations)
                chosen[n++] = order.at[next].index;
        }
        status = tune_simulate(tune, chosen, n, false, false, NULL, NULL, diag);
        ran += n;
        at_once = at_once < AT_ONCE ? 2 * at_once : AT_ONCE;
        for (int k = 0; k < n; k++)
            if (tune->candidates.at[chosen[k]].state == TUNE_RAN) {
                const struct tune_candidate *at = &tune->candidates.at[chosen[k]];
                lead(&leaders, time_of(at));
                of_base[at->base] = fmin(of_base[at->base], time_of(at));
            }
        if (progress && n > 0)
            progress(self, next, order.n);
    }
    free(leaders.step_s);
    free(of_base);
    vec_free(&order);
    return status;
}
