/* What must hold of a point before it is simulated, and what does not belong to a strategy
 * (strategy/check.c).
 *
 * check_given() comes first, before any file is loaded: without model, topology, batch and number
 * of GPUs nothing else can be read. scenario_check() comes last, with model and hardware at hand.
 * Each check reports all it finds and goes on; the caller looks at the number of errors.
 *
 * An error stands at the place that gave the value: a line of the file, --set, a cell of a table.
 * Where nobody gave it and it is wrong as a default, the strategy's name is what was written
 * (check_place_of). */
#include "scenario/file.h"

#include <inttypes.h>
#include <string.h>

/* Where a value that a message is about was set. */
static struct source_pos scenario_check_at(const struct scenario_point *point, const char *path)
{
    return scenario_origin(point, path).at;
}

/* A model alone has no file to write it in. */
static void say_missing(const struct scenario_point *point, struct source_pos at, const char *key,
    const char *example, const char *option, struct diag *diag)
{
    const char *model = point->options.model_path;
    if (model && strcmp(model, point->file) == 0)
        diag_input(diag, at, "'%s' is not given; say it, as in %s", key, option);
    else
        diag_input(diag, at,
            "'%s' is not given; write it in the file, sweep it or use --set (as in '%s')", key,
            example);
}

void check_given(const struct scenario_point *point, struct diag *diag)
{
    const struct scenario *options = &point->options;
    const struct {
        const char *key, *example, *option;
        bool given;
    } needed[] = {
        {"model", "model: models/t5-11b.yaml", "", options->model_path != NULL},
        {"cluster.topology", "cluster: {topology: ../topologies/clusters/a100-80gb-roce-2tb.yaml}",
            "--topology h100-8x400g", options->cluster.topology != NULL},
        {"cluster.gpus", "cluster: {gpus: 8}", "--gpus 8", options->cluster.gpus > 0},
        {"train.micro_batch", "train: {micro_batch: 8}", "--micro-batch 8",
            options->strategy.train.micro_batch > 0},
    };
    struct source_pos whole = {.file = point->file};
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        if (!needed[i].given)
            say_missing(point, whole, needed[i].key, needed[i].example, needed[i].option, diag);
    const struct scenario_published_options *published = &options->published;
    if (!published->file != !published->figure)
        diag_input(diag,
            scenario_check_at(point, published->file ? "published.file" : "published.figure"),
            "'published' needs both 'file' and 'figure'");
}

static void scenario_check_gpus(const struct scenario_point *point, struct diag *diag)
{
    const struct hw *hw = &point->hw;
    int64_t gpus = point->options.cluster.gpus, node = hw_gpus_per_node(hw);
    int64_t nodes = (int64_t)hw->cluster.nodes.value;
    if (gpus > nodes * node)
        diag_input(diag, point->gpus_at,
            "%" PRId64 " GPUs, but cluster '%s' has %" PRId64 " (%" PRId64 " nodes of %" PRId64
            "); use at most that many",
            gpus, hw->cluster.name, nodes * node, nodes, node);
    else if (gpus > node && gpus % node != 0)
        diag_input(diag, point->gpus_at,
            "%" PRId64 " GPUs leave a node of '%s' partly used; use a multiple of its %" PRId64
            " GPUs, as in %" PRId64,
            gpus, hw->cluster.name, node, gpus / node * node);
}

/* An image and a sample of features have the tokens that their model makes of them; a text as many
 * as the scenario says. */
static void check_sequence(const struct scenario_point *point, struct diag *diag)
{
    const struct model_shape *shape = &point->model.shape;
    int64_t given = point->options.strategy.train.seq_len, of_sample = model_sample_tokens(shape);
    if (of_sample > 0 && given != of_sample)
        diag_input(diag, scenario_check_at(point, "train.seq_len"),
            "model '%s' makes %" PRId64 " tokens of a sample; leave 'seq_len' out", shape->name,
            of_sample);
    else if (given == 0)
        say_missing(point, (struct source_pos){.file = point->file}, "train.seq_len",
            "train: {seq_len: 512}", "--seq-len 4096", diag);
    if (of_sample > 0 && point->options.flops_formula == FLOPS_PARAMETERS)
        diag_input(diag, scenario_check_at(point, "report.flops_formula"),
            "6 x parameters x tokens does not hold for model '%s', whose samples are no texts; use "
            "model or hardware",
            shape->name);
}

static void check_lengths(const struct scenario_point *point, struct diag *diag)
{
    const struct model_shape *shape = &point->model.shape;
    const struct train_options *train = &point->options.strategy.train;
    check_sequence(point, diag);
    if (shape->max_positions > 0 && train->seq_len > shape->max_positions)
        diag_input(diag, scenario_check_at(point, "train.seq_len"),
            "%" PRId64 " tokens, but model '%s' has %" PRId64
            " learned positions; use at most that many or give max_positions",
            train->seq_len, shape->name, shape->max_positions);
    if (shape->max_positions == 0 && point->options.max_positions > 0)
        diag_input(diag, scenario_check_at(point, "max_positions"),
            "model '%s' has no learned positions; leave it out", shape->name);
    if (shape->family != MODEL_T5 && train->decoder_seq_len != 0)
        diag_input(diag, scenario_check_at(point, "train.decoder_seq_len"),
            "model '%s' has no second stack for decoder tokens; leave 'decoder_seq_len' out",
            shape->name);
    double bytes = model_largest_tensor_bytes(
        shape, train->micro_batch, train->seq_len, train->decoder_seq_len);
    if (bytes > MODEL_MAX_TENSOR_BYTES)
        diag_input(diag, scenario_check_at(point, "train.micro_batch"),
            "%" PRId64 " sequences of %" PRId64
            " tokens make a tensor of %.1e bytes; use a smaller batch or shorter sequences",
            train->micro_batch, train->seq_len, bytes);
}

/* A rank of 0 that is given may be one value of a sweep; one that is not was forgotten. */
static void scenario_check_adapters(const struct scenario_point *point, struct diag *diag)
{
    const struct train_options *train = &point->options.strategy.train;
    const char *key = train->qlora ? "train.qlora" : "train.lora_targets";
    bool rank =
        train->lora_rank > 0 || scenario_origin(point, "train.lora_rank").kind != ORIGIN_DEFAULT;
    if (!rank && (train->qlora || train->lora_targets))
        diag_input(diag, scenario_check_at(point, key),
            "'%s' says more about 'train.lora_rank', which is not given; give it", key);
}

static void check_steps(const struct scenario_point *point, struct diag *diag)
{
    const struct exec_options *exec = &point->options.exec;
    if (exec->steps + exec->warmup_steps > EXEC_MAX_STEPS)
        diag_input(diag, scenario_check_at(point, "run.steps"),
            "%" PRId64 " steps and %" PRId64 " before them; use at most %d in all", exec->steps,
            exec->warmup_steps, EXEC_MAX_STEPS);
}

static void check_pauses(const struct scenario_point *point, struct diag *diag)
{
    const struct noise_options *noise = &point->options.exec.noise;
    if ((noise->host_pause_s > 0) != (noise->host_pause_interval_s > 0))
        diag_input(diag,
            scenario_check_at(
                point, noise->host_pause_s > 0 ? "noise.host_pause" : "noise.host_pause_interval"),
            "pauses of the host have a length and an interval; give both 'noise.host_pause' and "
            "'noise.host_pause_interval'");
}

/* CUDAAllocatorConfig::parseMaxSplitSize refuses what is not larger than its large buffers. */
static void check_allocator(const struct scenario_point *point, struct diag *diag)
{
    int64_t size = point->options.exec.allocator.max_split_size_mb;
    if (size > 0 && size <= HBM_LARGE_BUFFER_MIB)
        diag_input(diag, scenario_check_at(point, "run.max_split_size_mb"),
            "%" PRId64 " MiB, but PyTorch takes more than %d only; use that, or 0 for none", size,
            HBM_LARGE_BUFFER_MIB);
}

/* What nobody set is wrong for this strategy: then its name is what was written. */
struct source_pos check_place_of(const void *self, const char *path)
{
    const struct scenario_point *point = self;
    struct config_origin found = scenario_origin(point, path);
    bool written = found.at.line > 0 || found.kind == ORIGIN_COMMAND_LINE;
    return written ? found.at : scenario_check_at(point, "strategy");
}

void scenario_check(const struct scenario_point *point, struct diag *diag)
{
    const struct strategy_places places = {check_place_of, point};
    scenario_check_gpus(point, diag);
    check_lengths(point, diag);
    scenario_check_adapters(point, diag);
    strategy_check(&point->options.strategy, &point->model, &point->hw,
        (int)point->options.cluster.gpus, &places, diag);
    needs_check(point, diag);
    check_steps(point, diag);
    check_pauses(point, diag);
    check_allocator(point, diag);
}

/* Only for a number of GPUs that there is: the links and GPUs of a job are laid out to be looked
 * at. The texts are read here and not with the file, because names of links follow from the number
 * of GPUs. */
void load_events(struct scenario_point *point, struct arena *arena, struct diag *diag)
{
    const struct scenario_cluster_options *cluster = &point->options.cluster;
    struct exec_options *exec = &point->options.exec;
    int ranks = (int)cluster->gpus;
    if (cluster->gpus > (int64_t)point->hw.cluster.nodes.value * hw_gpus_per_node(&point->hw))
        return;
    degrade_links(&exec->link_events, &point->hw, ranks, cluster->degraded_links,
        scenario_check_at(point, "cluster.degraded_links"), arena, diag);
    degrade_gpus(&exec->gpu_events, &point->hw, ranks, cluster->slow_gpus,
        scenario_check_at(point, "cluster.slow_gpus"), arena, diag);
}
