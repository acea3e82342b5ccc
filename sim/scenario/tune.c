#include "scenario/tune.h"

#include "scenario/file.h"
#include "strategy/footprint.h"

#include <math.h>
#include <string.h>

const char *const tune_state_names[TUNE_STATE_COUNT + 1] = {
    [TUNE_RAN] = "ran", [TUNE_OOM] = "oom", [TUNE_PRUNED] = "pruned", [TUNE_LEFT_OUT] = "left_out"};

/* tests/law/test_footprint.c holds the closed form to within 1 % of the simulated peak. */
static const double TUNE_SLACK = 0.99;

static int64_t sharding_group(const struct scenario_point *point)
{
    const struct strategy_options *strategy = &point->options.strategy;
    if (strategy->kind == STRATEGY_FSDP && strategy->fsdp.sharding_strategy == HYBRID_SHARD)
        return strategy->fsdp.sharding_group_size;
    if (strategy->kind == STRATEGY_INTERNEVO)
        return internevo_zero1_size(&strategy->internevo, point->options.cluster.gpus);
    return point->options.cluster.gpus;
}

/* A lower bound of what the point takes. Checkpointing of some ops is taken for that of all. */
static double least_bytes(const struct scenario_point *point)
{
    const struct strategy_options *strategy = &point->options.strategy;
    struct footprint_options options = footprint_options_of(strategy, sharding_group(point));
    struct arena scratch = ARENA_INIT;
    if (options.checkpointing != CHECKPOINT_NONE)
        options.checkpointing = CHECKPOINT_FULL;
    struct footprint f = footprint_of(point->model.params, &point->model, &options, &scratch);
    arena_release(&scratch);
    return TUNE_SLACK * (f.weights + f.optimizer + f.tables + fmax(f.gradients, f.activations));
}

static bool can_fit(const struct tune_candidate *candidate)
{
    const struct hw *hw = &candidate->point.hw;
    double room = hw->gpu.hbm_capacity.value - hw->gpu.context_bytes.value - hw->node.nccl_bytes.value;
    return candidate->least_bytes <= room;
}

/* What is searched, out of the way: points that differ in nothing else have the same candidates. */
static struct scenario_point searched(const struct scenario_point *from, const struct tune_options *options)
{
    struct scenario_point point = *from;
    struct strategy_options *strategy = &point.options.strategy, plain = strategy_default_options();
    strategy->kind = STRATEGY_FSDP;
    strategy->fsdp.sharding_strategy = FULL_SHARD;
    strategy->fsdp.sharding_group_size = 0;
    strategy->fsdp.backward_prefetch = plain.fsdp.backward_prefetch;
    strategy->fsdp.forward_prefetch = plain.fsdp.forward_prefetch;
    strategy->zero.stage = plain.zero.stage;
    strategy->train.micro_batch = 1;
    strategy->train.activation_checkpointing = CHECKPOINT_NONE;
    if (options->global_batch)
        strategy->train.grad_accum = 1;
    point.options.exec.noise = (struct noise_options){0};
    point.published.found = false;
    return point;
}

static char *options_text(const struct scenario_point *point)
{
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    BUG_IF(!out, "open_memstream failed");
    config_write_json(out, &scenario_table, &point->options, NULL);
    fclose(out);
    return text;
}

/* What one base point and one step of the search are about. */
struct search {
    struct tune *out;
    const struct tune_options *options;
    const char *file;
};

static void add(const struct search *search, struct scenario_point point)
{
    int64_t per_micro_step = point.options.strategy.train.micro_batch * point.options.cluster.gpus;
    if (search->options->global_batch) {
        if (search->options->global_batch % per_micro_step != 0)
            return;
        point.options.strategy.train.grad_accum = search->options->global_batch / per_micro_step;
    }
    struct diag diag = DIAG_INIT;
    check_point(&point, search->file, &diag);
    if (diag.n_errors)
        return; /* a combination that nobody asked for */
    struct tune_candidate candidate = {.point = point, .state = TUNE_LEFT_OUT, .least_bytes = least_bytes(&point)};
    if (!can_fit(&candidate))
        candidate.state = TUNE_PRUNED;
    vec_push(&search->out->candidates, candidate);
}

static void add_fsdp(const struct search *search, struct scenario_point point, int sharding, int64_t group)
{
    static const struct {
        int backward;
        bool forward;
    } prefetches[] = {{BACKWARD_PRE, false}, {BACKWARD_PRE, true}, {BACKWARD_POST, false}};
    struct fsdp_options *fsdp = &point.options.strategy.fsdp;
    fsdp->sharding_strategy = sharding;
    fsdp->sharding_group_size = group;
    for (size_t i = 0; i < sizeof prefetches / sizeof *prefetches; i++) {
        fsdp->backward_prefetch = prefetches[i].backward;
        fsdp->forward_prefetch = prefetches[i].forward;
        add(search, point);
    }
}

/* point: with its micro-batch and checkpointing. */
static void add_strategies(const struct search *search, struct scenario_point point)
{
    int64_t gpus = point.options.cluster.gpus, node = hw_gpus_per_node(&point.hw);
    if (gpus > 1) {
        add_fsdp(search, point, FULL_SHARD, 0);
        add_fsdp(search, point, SHARD_GRAD_OP, 0);
        for (int64_t group = node; group > 1 && group < gpus; group *= 2)
            add_fsdp(search, point, HYBRID_SHARD, group);
        point.options.strategy.kind = STRATEGY_DEEPSPEED;
        for (int64_t stage = 1; stage <= 3; stage++) {
            point.options.strategy.zero.stage = stage;
            add(search, point);
        }
    }
    point.options.strategy.kind = gpus > 1 ? STRATEGY_DDP : STRATEGY_SINGLE_DEVICE;
    add(search, point);
}

void tune_candidates(
    struct tune *out, const struct scenario_set *set, const struct tune_options *options, struct arena *arena)
{
    *out = (struct tune){0};
    struct search search = {out, options, set->file};
    VEC(struct scenario_point) bases = {0};
    VEC(const char *) texts = {0};
    for (int i = 0; i < set->n_points; i++) {
        struct scenario_point base = searched(&set->points[i], options);
        char *text = options_text(&base);
        bool known = false;
        for (int j = 0; j < texts.n && !known; j++)
            known = strcmp(texts.at[j], text) == 0;
        if (!known) {
            vec_push(&bases, base);
            vec_push(&texts, arena_strdup(arena, text));
        }
        free(text);
    }
    int64_t largest = 1;
    while (2 * largest <= options->max_batch)
        largest *= 2;
    for (int64_t batch = largest; batch >= 1; batch /= 2)
        for (int i = 0; i < bases.n; i++)
            for (int checkpointing = 0; checkpointing < CHECKPOINT_COUNT; checkpointing++) {
                struct scenario_point point = bases.at[i];
                point.options.strategy.train.micro_batch = batch;
                point.options.strategy.train.activation_checkpointing = checkpointing;
                add_strategies(&search, point);
            }
    vec_free(&bases);
    vec_free(&texts);
}

static void take_result(struct tune_candidate *candidate, const struct scenario_result *result)
{
    static const double GTOKENS = 1e9, SECONDS_PER_HOUR = 3600, WATTS_PER_KILOWATT = 1e3;
    const struct hw_gpu *gpu = &candidate->point.hw.gpu;
    if (result->exec.status != EXEC_OK) {
        candidate->state = TUNE_OOM;
        return;
    }
    candidate->state = TUNE_RAN;
    candidate->peak_bytes = result->exec.memory.peak_allocated_bytes;
    candidate->step_time_s = result->exec.step_time_s;
    candidate->tflops_per_gpu = result->tflops_per_gpu;
    candidate->tokens_per_s = result->tokens_per_s_per_gpu * (double)candidate->point.options.cluster.gpus;
    candidate->gpu_hours_per_gtokens = GTOKENS / result->tokens_per_s_per_gpu / SECONDS_PER_HOUR;
    candidate->usd_per_gtokens = candidate->gpu_hours_per_gtokens * gpu->price.value;
    candidate->kwh_per_gtokens = candidate->gpu_hours_per_gtokens * gpu->tdp.value / WATTS_PER_KILOWATT;
}

enum status tune_run(
    struct tune *tune, const struct tune_options *options, scenario_progress progress, void *self, struct diag *diag)
{
    struct scenario_set set = {0};
    VEC(int) chosen = {0};
    for (int i = 0; i < tune->candidates.n && chosen.n < options->max_simulations; i++)
        if (tune->candidates.at[i].state == TUNE_LEFT_OUT)
            vec_push(&chosen, i);
    set.n_points = chosen.n;
    set.points = xcalloc((size_t)chosen.n + 1, sizeof *set.points);
    for (int i = 0; i < chosen.n; i++)
        set.points[i] = tune->candidates.at[chosen.at[i]].point;
    struct scenario_result *results = xcalloc((size_t)chosen.n + 1, sizeof *results);
    struct arena *arenas = xcalloc((size_t)chosen.n + 1, sizeof *arenas);
    enum status status = scenario_simulate_all(results, arenas, &set, progress, self, diag);
    for (int i = 0; i < chosen.n; i++) {
        if (status == STATUS_OK)
            take_result(&tune->candidates.at[chosen.at[i]], &results[i]);
        arena_release(&arenas[i]);
    }
    for (int i = 0; i < tune->candidates.n; i++)
        tune->count[tune->candidates.at[i].state]++;
    free(arenas);
    free(results);
    free(set.points);
    vec_free(&chosen);
    return status;
}
