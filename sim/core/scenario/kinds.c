/* Jobs on nodes of two kinds: checks, the split of samples, and two plans joined to one.
 *
 * Each kind is compiled as if all GPUs were of it, with its samples a GPU; plan_join() then takes
 * the ranks before second_from from the first plan and the others from the second. That needs plans
 * with the same collectives in the same order, which is what the checks are for: as many GPUs and
 * NICs in a node, whole replicas on one kind, no stages.
 *
 * by_speed compiles both plans once with the given batch, adds up the durations of their kernels,
 * and takes the split of whole samples with the shortest slower kind; then it compiles both again.
 * Time is taken to be linear in samples. */
#include "scenario/kinds.h"

#include "scenario/file.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

const char *const batch_split_names[] = {"equal", "by_speed", NULL};

enum { FIRST, SECOND, KINDS = SCENARIO_KINDS };

/* ---- checks ---- */

static struct source_pos at(const struct scenario_point *point, const char *key)
{
    return scenario_origin(point, key).at;
}

/* The keys belong together. */
static bool are_given(const struct scenario_point *point, struct diag *diag)
{
    const struct scenario_cluster_options *cluster = &point->options.cluster;
    if (!cluster->second_node && (cluster->second_gpus > 0 || cluster->batch_split != SPLIT_EQUAL)) {
        const char *key = cluster->second_gpus > 0 ? "cluster.second_gpus" : "cluster.batch_split";
        diag_input(diag, at(point, key), "'%s' is about nodes of a second kind; give cluster.second_node too", key);
    } else if (cluster->second_node && cluster->second_gpus == 0)
        diag_input(diag, at(point, "cluster.second_node"),
            "how many of the GPUs are on nodes of the second kind is not given; give cluster.second_gpus");
    return cluster->second_node && cluster->second_gpus > 0;
}

static void check_nodes(const struct scenario_point *point, struct diag *diag)
{
    const struct scenario_cluster_options *cluster = &point->options.cluster;
    const struct hw_node *first = &point->hw.node, *second = &point->hw.second_node;
    const char *archs[] = {point->hw.gpu.arch, point->hw.second_gpu.arch};
    struct hw of_second = hw_of_second(&point->hw);
    int hosts[] = {hw_hosts_per_node(&point->hw), hw_hosts_per_node(&of_second)};
    int64_t node = hw_gpus_per_node(&point->hw);
    if ((strcmp(archs[0], "CDNA") == 0) != (strcmp(archs[1], "CDNA") == 0))
        diag_input(diag, at(point, "cluster.second_node"),
            "'%s' has GPUs of %s and '%s' of %s: no library of collectives (NCCL, RCCL) joins GPUs of two makers in "
            "one job; take two kinds of node of one maker",
            second->name, archs[1], first->name, archs[0]);
    else if ((int64_t)second->gpus.value != node || (int64_t)second->nics.value != (int64_t)first->nics.value)
        diag_input(diag, at(point, "cluster.second_node"),
            "'%s' has %g GPU%s and %g NIC%s, and '%s' %g and %g; take two kinds of node with as many of each",
            second->name, second->gpus.value, plural((long long)second->gpus.value), second->nics.value,
            plural((long long)second->nics.value), first->name, first->gpus.value, first->nics.value);
    else if (hosts[0] != hosts[1])
        diag_input(diag, at(point, "cluster.second_node"),
            "a node '%s' is %d hosts, and '%s' %d; take two kinds of node with as many", second->name, hosts[1],
            first->name, hosts[0]);
    else if (cluster->second_gpus >= cluster->gpus)
        diag_input(diag, at(point, "cluster.second_gpus"),
            "%" PRId64 " of %" PRId64 " GPUs; leave some on nodes of '%s', or take a cluster of the second kind alone",
            cluster->second_gpus, cluster->gpus, point->hw.cluster.name);
    else if (cluster->second_gpus % node != 0)
        diag_input(diag, at(point, "cluster.second_gpus"),
            "%" PRId64 " GPUs are not whole nodes of %" PRId64 "; take a multiple", cluster->second_gpus, node);
}

/* Replicas are whole on one kind of node: what they exchange inside is of one kind. */
static void check_layout(const struct scenario_point *point, struct diag *diag)
{
    const struct parallelism_options *parallelism = &point->options.strategy.parallelism;
    int64_t inner = model_tensor_ranks(&parallelism->model) * model_context_ranks(&parallelism->model);
    if (parallelism->pipeline > 1)
        diag_input(diag, at(point, "parallelism.pipeline"),
            "stages on two kinds of node are not simulated; take parallelism.pipeline=1");
    else if (parallelism->order || parallelism->model.expert > 1)
        diag_input(diag, at(point, parallelism->order ? "parallelism.order" : "parallelism.expert"),
            "this is not simulated on two kinds of node; leave it out");
    else if (point->options.cluster.second_gpus % inner != 0)
        diag_input(diag, at(point, "cluster.second_gpus"),
            "a replica of %" PRId64 " GPUs would be on both kinds of node; take a multiple", inner);
}

static void check_split(const struct scenario_point *point, struct diag *diag)
{
    const struct train_options *train = &point->options.strategy.train;
    if (point->options.cluster.batch_split == SPLIT_BY_SPEED && strategy_batch(train).last != train->micro_batch)
        diag_input(diag, at(point, "cluster.batch_split"),
            "the last micro-batch of a step is smaller than the others; take a batch that train.micro_batch divides");
}

void kinds_check(const struct scenario_point *point, struct diag *diag)
{
    if (!are_given(point, diag) || diag->n_errors > 0)
        return;
    check_nodes(point, diag);
    check_layout(point, diag);
    check_split(point, diag);
    if (diag->n_errors > 0)
        return;
    struct hw second = hw_of_second(&point->hw);
    const struct strategy_places places = {check_place_of, point};
    strategy_check(&point->options.strategy, &point->model, &second, (int)point->options.cluster.gpus, &places, diag);
}

enum status kinds_refuse(const struct scenario_point *points, int n, const char *what, struct diag *diag)
{
    for (int i = 0; i < n; i++)
        if (points[i].hw.second_from > 0)
            return diag_input(diag, at(&points[i], "cluster.second_node"),
                "`%s` takes jobs on one kind of node; leave cluster.second_node out", what);
    return STATUS_OK;
}

double kinds_mean(const struct scenario_point *point, double first, double second)
{
    double of_first = (double)point->hw.second_from / (double)point->options.cluster.gpus;
    return point->hw.second_from > 0 ? first * of_first + second * (1 - of_first) : first;
}

/* ---- plans ---- */

struct kind {
    struct hw hw;
    struct strategy_options options;
    int64_t gpus, micro_batch;
    struct plan plan;
};

static enum status compile(
    struct kind *kind, const struct scenario_point *point, struct arena *arena, struct diag *diag)
{
    struct train_options *train = &kind->options.train;
    int64_t micro_batches = strategy_batch(&point->options.strategy.train).micro_batches;
    if (kind->micro_batch != train->micro_batch && train->device_batch > 0)
        train->device_batch = micro_batches * kind->micro_batch;
    train->micro_batch = kind->micro_batch;
    struct job job = strategy_job(&kind->options, &point->model, &kind->hw, (int)point->options.cluster.gpus);
    return strategy_compile(&kind->plan, &job, point->gpus_at, arena, diag);
}

/* Of the compute stream, alone. */
static double kernels_s(const struct kind *kind)
{
    const struct plan_program *program = &kind->plan.programs[0];
    const struct hw_gpu *gpu = &kind->hw.gpu;
    double sum = 0;
    for (int i = 0; i < program->ops.n; i++) {
        const struct plan_op *op = &program->ops.at[i];
        if (op->kind == OP_KERNEL && op->stream == STREAM_COMPUTE)
            sum += kernel_duration_s(&kind->plan.kernels.at[op->index], gpu, kernel_whole_gpu(gpu));
    }
    return sum;
}

/* Samples a GPU of both kinds, by the time of the plans that are there; the fewest of the second kind where several are
 * as good. Tries every number of samples of the second kind, as a step is far longer to simulate
 * than this loop. */
static void split(struct kind kinds[KINDS])
{
    int64_t micro_batch = kinds[FIRST].micro_batch, first = kinds[FIRST].gpus, second = kinds[SECOND].gpus;
    int64_t samples = micro_batch * (first + second);
    double first_s = kernels_s(&kinds[FIRST]), second_s = kernels_s(&kinds[SECOND]), least = HUGE_VAL;
    for (int64_t b = 1; second * b < samples; b++) {
        int64_t left = samples - second * b;
        double slower = fmax(second_s * (double)b, first_s * (double)left / (double)first);
        if (left % first != 0 || slower >= least)
            continue;
        least = slower;
        kinds[SECOND].micro_batch = b;
        kinds[FIRST].micro_batch = left / first;
    }
}

static enum status compile_both(
    struct kind kinds[KINDS], const struct scenario_point *point, struct arena *arena, struct diag *diag)
{
    enum status status = compile(&kinds[FIRST], point, arena, diag);
    return status == STATUS_OK ? compile(&kinds[SECOND], point, arena, diag) : status;
}

static void release_both(struct kind kinds[KINDS])
{
    plan_release(&kinds[FIRST].plan);
    plan_release(&kinds[SECOND].plan);
}

enum status kinds_compile(struct plan *out, double micro_batch[KINDS], const struct scenario_point *point,
    struct arena *arena, struct diag *diag)
{
    const struct strategy_options *options = &point->options.strategy;
    int64_t gpus = point->options.cluster.gpus, given = options->train.micro_batch;
    struct kind kinds[KINDS] = {
        {.hw = point->hw, .options = *options, .gpus = point->hw.second_from, .micro_batch = given},
        {.hw = hw_of_second(&point->hw),
            .options = *options,
            .gpus = gpus - point->hw.second_from,
            .micro_batch = given}};
    enum status status = compile_both(kinds, point, arena, diag);
    if (status == STATUS_OK && point->options.cluster.batch_split == SPLIT_BY_SPEED) {
        split(kinds);
        release_both(kinds);
        status = compile_both(kinds, point, arena, diag);
    }
    if (status != STATUS_OK) {
        release_both(kinds);
        return status;
    }
    for (int k = 0; k < KINDS; k++)
        micro_batch[k] = (double)kinds[k].micro_batch;
    plan_join(&kinds[FIRST].plan, &kinds[SECOND].plan, point->hw.second_from);
    *out = kinds[FIRST].plan;
    return STATUS_OK;
}
