/* Settings that somebody gave and that the job does not read: those of another strategy, a sharding
 * group where nothing is sharded in groups ... One warning for each kind of them.
 *
 * A rule has a prefix of paths and a function that says whether a point reads them. A warning comes
 * only if no point of the set reads the setting and somebody gave it in the same place as what
 * decides (the file both, or the command line): a file's settings of FSDP are no mistake where
 * --set names another strategy for once. Values that are the default count as read, because writing
 * out a default is harmless; each function says so for its key. */
#include "scenario/file.h"

#include <string.h>

static bool clips(const struct scenario_point *point)
{
    const struct strategy_options *strategy = &point->options.strategy;
    return strategy_clips_by_option(strategy) || !strategy->train.clip_grad_norm;
}

static bool is_muon(const struct scenario_point *point)
{
    return point->options.strategy.train.optimizer == OPTIMIZER_MUON;
}

static bool may_decay(const struct scenario_point *point)
{
    int optimizer = point->options.strategy.train.optimizer;
    return optimizer == OPTIMIZER_SGD || optimizer == OPTIMIZER_SGD_MOMENTUM;
}

static bool has_stages(const struct scenario_point *point)
{
    const struct parallelism_options *options = &point->options.strategy.parallelism;
    return options->pipeline > 1 || options->schedule == SCHEDULE_1F1B;
}

static bool is_checkpointed(const struct scenario_point *point)
{
    const struct train_options *train = &point->options.strategy.train;
    return train->activation_checkpointing != CHECKPOINT_NONE || train->checkpoint_interval == 1;
}

static bool is_recomputed(const struct scenario_point *point)
{
    const struct train_options *train = &point->options.strategy.train;
    return train->activation_checkpointing == CHECKPOINT_FULL ||
           train->activation_checkpointing == CHECKPOINT_SELECTIVE ||
           (train->recompute_num_layers == 1 && train->recompute_method == RECOMPUTE_UNIFORM);
}

static bool is_image(const struct scenario_point *point)
{
    return point->model.shape.image_size > 0 || point->options.strategy.train.memory_format == IMAGE_CONTIGUOUS;
}

static bool has_experts(const struct scenario_point *point)
{
    return point->model.shape.moe.experts > 0 || point->options.strategy.train.expert_kernels == EXPERTS_GROUPED;
}

static bool shares_experts(const struct scenario_point *point)
{
    return point->options.strategy.parallelism.model.expert > 1;
}

static bool may_dispatch(const struct scenario_point *point)
{
    return shares_experts(point) || point->options.strategy.train.moe_token_dispatcher_type == DISPATCHER_ALLTOALL;
}

static bool may_be_imbalanced(const struct scenario_point *point)
{
    return shares_experts(point) || !(point->options.strategy.train.expert_imbalance > 1);
}

static bool may_be_routed(const struct scenario_point *point)
{
    return shares_experts(point) || point->options.strategy.train.expert_routing == ROUTING_BALANCED;
}

static bool may_spread(const struct scenario_point *point)
{
    return shares_experts(point) || !(point->options.strategy.train.expert_spread > 0);
}

static bool may_flex(const struct scenario_point *point)
{
    const struct train_options *train = &point->options.strategy.train;
    return train->moe_token_dispatcher_type == DISPATCHER_FLEX || train->moe_flex_dispatcher_backend == FLEX_DEEPEP;
}

static bool may_pad(const struct scenario_point *point)
{
    const struct train_options *train = &point->options.strategy.train;
    return train->moe_expert_capacity_factor > 0 || !train->moe_pad_expert_input_to_capacity;
}

static bool may_overlap_shared(const struct scenario_point *point)
{
    return shares_experts(point) || !point->options.strategy.train.moe_shared_expert_overlap;
}

static bool is_pytorch_context(const struct scenario_point *point)
{
    const struct model_parallel *parallel = &point->options.strategy.parallelism.model;
    return context_is_pytorch(parallel->context_kind) || !parallel->context_sequential;
}

static bool may_merge(const struct scenario_point *point)
{
    const struct parallelism_options *options = &point->options.strategy.parallelism;
    return options->pipeline > 1 || !options->merge_outputs;
}

static bool has_sequence(const struct scenario_point *point)
{
    const struct model_parallel *parallel = &point->options.strategy.parallelism.model;
    return parallel->sequence || parallel->gather_dim == 0;
}

static bool is_compiled(const struct scenario_point *point)
{
    const struct train_options *train = &point->options.strategy.train;
    return train->fusion == FUSION_INDUCTOR || train->compiled == COMPILED_MODEL;
}

static bool may_balance(const struct scenario_point *point)
{
    return point->model.shape.moe.experts > 0 || !point->options.strategy.train.moe_aux_loss;
}

static bool may_permute(const struct scenario_point *point)
{
    return point->model.shape.moe.experts > 0 || point->options.strategy.train.moe_permute_fusion;
}

static bool may_pad_for_fp8(const struct scenario_point *point)
{
    const int precision = point->options.strategy.train.precision;
    return point->model.shape.moe.experts > 0 && (precision == PRECISION_FP8_MIXED || precision == PRECISION_FP4_MIXED);
}

static bool has_fused_swiglu(const struct scenario_point *point)
{
    return point->options.strategy.train.fusion == FUSION_TRANSFORMER_ENGINE;
}

static const char *value_of(const struct scenario_point *point, const char *decider, struct arena *arena)
{
    size_t at = 0;
    const struct config_field *field = config_field_at(&scenario_table, decider, &at);
    return field->type == FIELD_PATH ? point->model.shape.name
                                     : config_value_text(field, (const char *)&point->options + at, arena);
}

static bool has_memory_fraction(const struct scenario_point *point)
{
    const struct hbm_options *allocator = &point->options.exec.allocator;
    return allocator->memory_fraction > 0 || allocator->garbage_collection_threshold == 0;
}

#define EXPERT_PARALLELISM "a mixture of experts that GPUs share"

/* A section is read where the strategy does. */
#define SECTION_RULE(key, name, help) {key ".", NULL, "strategy", key},

/* What begins with prefix is read where `reads` says so, or where it has its default; what decides it, and what would.
 * A strategy says itself which settings of its section it reads. */
static const struct rule {
    const char *prefix;
    bool (*reads)(const struct scenario_point *point);
    const char *decider, *remedy;
} rules[] = {
    STRATEGY_SECTIONS(SECTION_RULE) /* of all strategies */
    {"parallelism.merge_outputs", may_merge, "parallelism.pipeline", "2 or more"},
    {"parallelism.gather_dim", has_sequence, "parallelism.sequence", "true"},
    {"parallelism.context_sequential", is_pytorch_context, "parallelism.context_kind", "ring_allgather"},
    {"parallelism.schedule", has_stages, "parallelism.pipeline", "2 or more"},
    {"train.checkpoint_interval", is_checkpointed, "train.activation_checkpointing", "full or selective"},
    {"train.recompute_num_layers", is_recomputed, "train.activation_checkpointing", "full or selective"},
    {"train.clip_grad_norm", clips, "strategy", "fsdp, ddp or single_device"},
    {"train.muon_distributed", is_muon, "train.optimizer", "muon"},
    {"train.weight_decay", may_decay, "train.optimizer", "sgd or sgd_momentum"},
    {"train.expert_kernels", has_experts, "model", "a mixture of experts"},
    {"train.moe_token_dispatcher_type", may_dispatch, "model", EXPERT_PARALLELISM},
    {"train.expert_routing", may_be_routed, "model", EXPERT_PARALLELISM},
    {"train.expert_imbalance", may_be_imbalanced, "model", EXPERT_PARALLELISM},
    {"train.expert_spread", may_spread, "model", EXPERT_PARALLELISM},
    {"train.moe_flex_dispatcher_backend", may_flex, "train.moe_token_dispatcher_type", "flex"},
    {"train.moe_pad_expert_input_to_capacity", may_pad, "train.moe_expert_capacity_factor", "1 or more"},
    {"train.moe_router_padding_for_quantization", may_pad_for_fp8, "train.precision",
        "fp8_mixed or fp4_mixed, of a mixture of experts"},
    {"train.moe_shared_expert_overlap", may_overlap_shared, "model", EXPERT_PARALLELISM},
    {"train.compiled", is_compiled, "train.fusion", "inductor"},
    {"train.activation_func_fp8_input_store", has_fused_swiglu, "train.fusion", "transformer_engine"},
    {"train.moe_aux_loss", may_balance, "model", "a mixture of experts"},
    {"train.moe_permute_fusion", may_permute, "model", "a mixture of experts"},
    {"train.memory_format", is_image, "model", "a model of images"},
    {"run.garbage_collection_threshold", has_memory_fraction, "run.memory_fraction", "a share, as 0.9"},
};
enum { N_RULES = sizeof rules / sizeof *rules };

/* Neither a default nor the cluster's or the stack's. */
static bool is_said(enum origin_kind kind)
{
    return kind == ORIGIN_FILE || kind == ORIGIN_COMMAND_LINE || kind == ORIGIN_TABLE;
}

/* Said together with what decides: a file's settings are meant for the strategy that the file itself names, not for one
 * from the command line. */
static bool is_meant(const struct scenario_point *point, enum origin_kind kind, const char *decider)
{
    enum origin_kind decided = scenario_origin(point, decider).kind;
    return is_said(kind) && (kind == ORIGIN_COMMAND_LINE || !is_said(decided) || decided == kind);
}

/* A list of GPUs none of which any point's job has; the list of a point may differ from another's. */
static void warn_no_slow_gpu(const struct scenario_point *points, int n, struct diag *diag)
{
    const struct scenario_point *given = NULL;
    for (int i = 0; i < n; i++) {
        const struct scenario_cluster_options *cluster = &points[i].options.cluster;
        if (!cluster->slow_gpus || !*cluster->slow_gpus)
            continue;
        if (points[i].options.exec.gpu_events.n > 0)
            return;
        given = &points[i];
    }
    if (given)
        diag_warn(diag, scenario_origin(given, "cluster.slow_gpus").at,
            "the job has none of the GPUs '%s': its %lld are on node0 to node%lld", given->options.cluster.slow_gpus,
            (long long)given->options.cluster.gpus,
            (long long)(given->options.cluster.gpus - 1) / hw_gpus_per_node(&given->hw));
}

static bool is_read(const struct rule *rule, const struct scenario_point *point)
{
    return rule->reads ? rule->reads(point) : strategy_reads_section(&point->options.strategy, rule->remedy);
}

/* own: of a strategy of this kind, which reads rule->prefix by it. */
static void warn_by(const struct rule *rule, const struct strategy_reads *own, int kind,
    const struct scenario_point *points, int n, struct diag *diag)
{
    const struct config_origin *given = NULL;
    for (int i = 0; i < n; i++) {
        const struct strategy_options *options = &points[i].options.strategy;
        if (own ? options->kind != kind || own->reads(options) : is_read(rule, &points[i]))
            return;
        for (int o = 0; o < points[i].origins.list.n && !given; o++) {
            const struct config_origin *origin = &points[i].origins.list.at[o];
            if (strncmp(origin->path, rule->prefix, strlen(rule->prefix)) == 0 &&
                is_meant(&points[i], origin->kind, rule->decider))
                given = origin;
        }
    }
    struct arena scratch = ARENA_INIT;
    if (given)
        diag_warn(diag, given->at, "'%s' is not read where '%s' is %s; leave it out, or take %s", given->path,
            rule->decider, value_of(&points[0], rule->decider, &scratch), rule->remedy);
    arena_release(&scratch);
}

void warn_unread(const struct scenario_point *points, int n, struct diag *diag)
{
    warn_no_slow_gpu(points, n, diag);
    for (int kind = 0; kind < STRATEGY_COUNT; kind++)
        for (const struct strategy_reads *own = strategy_reads(kind); own && own->path; own++)
            warn_by(&(struct rule){own->path, NULL, own->decider, own->remedy}, own, kind, points, n, diag);
    for (int r = 0; r < N_RULES; r++)
        warn_by(&rules[r], NULL, 0, points, n, diag);
}
