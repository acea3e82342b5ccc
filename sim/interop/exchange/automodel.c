/* NeMo AutoModel's recipes (nemo_automodel/recipes, components/distributed/config.py): FSDP2
 * around its models (components/models) or those of transformers. Keys by the recipes of its
 * examples/llm_benchmark in 2025 and 2026.
 *
 * Rules put what one key says; the steps settle the rest, GPUs before the batch,
 * which asks for them. What is subtle: the number of virtual stages follows from
 * layers_per_stage and the model's blocks, so it needs a model that is known. A step of several
 * passes of the pipeline is simulated as one pass, which the assumptions say. The number of GPUs
 * of a node is no key: eight, of GB200 four.
 *
 * What one key says stands in scenarios/import/automodel.yaml, with the order of these steps. */
#include "exchange/rules.h"

#include <stdlib.h>
#include <string.h>

#define DIST "distributed."
#define PIPE DIST "pipeline."
#define BACK "model.backend."
#define STEP "step_scheduler."
enum status automodel_read(struct configuration *config, const char *path, struct diag *diag)
{
    return rules_apply_file(
        config, path, &importer_of(config, CONFIGURATION_AUTOMODEL)->rules, diag);
}

static void automodel_finish_model(struct configuration *config, struct diag *diag)
{
    (void)diag;
    struct configuration_setting *name =
        setting_find(config, "model.config.pretrained_model_name_or_path");
    name = name ? name : setting_find(config, "model.pretrained_model_name_or_path");
    if (name)
        put_called(config, name->value, name);
}

/* As many stages as blocks over layers_per_stage, rounded to a multiple of the ranks (functional.py
 * of its pipelining). */
static void automodel_finish_stages(struct configuration *config, int64_t ranks, struct diag *diag)
{
    struct configuration_setting *layers = setting_find(config, PIPE "layers_per_stage");
    struct configuration_setting *rounding =
        setting_find(config, PIPE "round_virtual_stages_to_pp_multiple");
    int64_t each = layers ? setting_int(config, layers->name, 0, diag) : 0,
            blocks = model_blocks_named(config);
    if (ranks > 1 && each > 0 && blocks > 0) {
        int64_t stages = (blocks + each - 1) / each,
                up = rounding && strcmp(rounding->value, "up") == 0 ? ranks - 1 : 0;
        int64_t chunks = (stages + up) / ranks;
        if (chunks > 1 &&
            times(chunks, ranks) > (blocks + 2) / 2) { /* what weighted stages can be cut into */
            chunks--;
            assume(config, "distributed.pipeline.layers_per_stage: rounded down, so that no stage "
                           "has a block alone");
        }
        put_setting(
            config, "parallelism.virtual", number_text(config, chunks > 1 ? chunks : 1), layers);
        put_assumed(config, "parallelism.partition_method", "weighted", NULL);
    }
    setting_aside(layers, ranks > 1 ? "of the model, which is not known" : "of pipelines");
    setting_aside(rounding, ranks > 1 ? "with layers_per_stage" : "of pipelines");
}

/* A pipeline takes a local batch, as torchtitan's does, and is empty before the next one. */
static void finish_passes(struct configuration *config, int64_t stages, struct diag *diag)
{
    struct configuration_setting *whole = setting_find(config, STEP "global_batch_size");
    int64_t all = whole ? setting_int(config, whole->name, 0, diag) : 0, copy = model_ranks(config);
    int64_t local = put_int(config, "train.device_batch", 1),
            gpus = put_int(config, "cluster.gpus", 0);
    if (stages == 1 || !whole)
        return;
    bool one = copy > 0 && gpus > 0 && all <= times(local, gpus / copy);
    put_remove(config, "train.global_batch");
    whole->fate = FATE_ASIDE;
    whole->key = NULL;
    whole->words = one ? "that of one local batch a rank"
                       : "of several passes of the pipeline; see what is assumed";
    if (!one)
        assume(config,
            "step_scheduler.global_batch_size: of the passes of the pipeline to a step, "
            "each of a local batch, one is simulated, with the optimizer's step behind it");
}

static void automodel_finish_batch(struct configuration *config, struct diag *diag)
{
    struct configuration_setting *local = setting_find(config, STEP "local_batch_size");
    struct configuration_setting *piece = setting_find(config, PIPE "pp_microbatch_size");
    piece = piece ? piece : setting_find(config, PIPE "pp_batch_size");
    int64_t stages = put_int(config, "parallelism.pipeline", 1);
    const char *key = stages > 1 ? "train.device_batch" : "train.micro_batch";
    if (local)
        put_setting(
            config, key, number_text(config, setting_int(config, local->name, 1, diag)), local);
    if (stages > 1 && piece)
        put_setting(config, "train.micro_batch",
            number_text(config, setting_int(config, piece->name, 1, diag)), piece);
    else if (stages > 1)
        put_assumed(config, "train.micro_batch", "1", "AutoModel's default in a pipeline");
    else
        put_remove(config, "parallelism.schedule");
    setting_aside(piece, "of pipelines");
    automodel_finish_stages(config, stages, diag);
    finish_passes(config, stages, diag);
    if (!put_find(config, "train.seq_len"))
        put_assumed(config, "train.seq_len", "4096", "that of AutoModel's benchmarks");
}

/* --nproc-per-node is an argument of the launcher; a node of GB200 has four GPUs. */
static void automodel_finish_gpus(struct configuration *config, struct diag *diag)
{
    enum { GPUS = 8, GPUS_OF_GB200 = 4 };
    struct configuration_setting *nodes = setting_find(config, "benchmark.num_nodes");
    struct configuration_setting *tested = setting_find(config, "ci.nodes");
    struct configuration_setting *tag = setting_find(config, "ci.cluster_tag");
    bool small = tag && strstr(tag->value, "gb200");
    int64_t each = small ? GPUS_OF_GB200 : GPUS,
            n = nodes ? setting_int(config, nodes->name, 1, diag) : 0;
    int64_t experts = put_int(config, "parallelism.expert", 1), copy = model_ranks(config);
    bool few = times(n, each) < experts || times(n, each) < copy; /* a placeholder */
    if (tested && few)
        setting_aside(nodes, "ci.nodes says it"), nodes = tested,
                                                  n = setting_int(config, tested->name, 1, diag);
    if (put_find(config, "cluster.gpus") || n < 1) {
        setting_aside(nodes, "the command line says it");
        setting_aside(tested, "the command line says it");
        return;
    }
    put_setting(config, "cluster.gpus", number_text(config, times(n, each)), nodes);
    setting_aside(tested, "benchmark.num_nodes says it");
    assume(config, arena_printf(config->arena, "benchmark.num_nodes: nodes of %d GPUs", (int)each));
}

static void finish_adapters(struct configuration *config, struct diag *diag)
{
    (void)diag;
    struct configuration_setting *targets = setting_find(config, "peft.target_modules");
    if (!targets)
        return;
    bool all = strcmp(targets->value, "*_proj") == 0 || strcmp(targets->value, "[*]") == 0 ||
               strcmp(targets->value, "*") == 0;
    if (all) {
        setting_aside(targets, "all linear layers of the blocks");
        return;
    }
    char *list = arena_strdup(config->arena, targets->value), *to = list;
    for (const char *at = list; *at; at++)
        if (*at != '[' && *at != ']' && *at != '*' && *at != '.')
            *to++ = *at;
    *to = '\0';
    put_setting(config, "train.lora_targets", list, targets);
}

const struct importer_call automodel_calls[] = {{"model", automodel_finish_model},
    {"gpus", automodel_finish_gpus}, {"batch", automodel_finish_batch},
    {"adapters", finish_adapters}, {0}};
