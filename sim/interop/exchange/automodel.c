/* NeMo AutoModel's recipes: FSDP2 around its models (components/models) or those of transformers; what several settings
 * say together. One by one: scenarios/import/automodel.yaml. */
#include "exchange/rules.h"

#include <stdlib.h>
#include <string.h>

#define DIST "distributed."
#define PIPE DIST "pipeline."
#define BACK "model.backend."
#define STEP "step_scheduler."
enum status automodel_read(struct configuration *config, const char *path, struct diag *diag)
{
    return rules_apply_file(config, path, &importer_of(config, CONFIGURATION_AUTOMODEL)->rules, diag);
}

static void finish_model(struct configuration *config)
{
    struct configuration_setting *name = setting_find(config, "model.config.pretrained_model_name_or_path");
    name = name ? name : setting_find(config, "model.pretrained_model_name_or_path");
    if (name)
        put_called(config, name->value, name);
    for (int i = 0; i < config->settings.n; i++) {
        struct configuration_setting *setting = &config->settings.at[i];
        if (strncmp(setting->name, "model.config.", strlen("model.config.")) != 0)
            continue;
        if (put_find(config, "model"))
            setting_aside(setting, "of the model, which is named");
        else
            setting_refuse(setting, "--model takes such keys as a config.json");
    }
}

/* As many stages as blocks over layers_per_stage, rounded to a multiple of the ranks (functional.py of its pipelining).
 */
static void finish_stages(struct configuration *config, int64_t ranks, struct diag *diag)
{
    struct configuration_setting *layers = setting_find(config, PIPE "layers_per_stage");
    struct configuration_setting *rounding = setting_find(config, PIPE "round_virtual_stages_to_pp_multiple");
    int64_t each = layers ? setting_int(config, layers->name, 0, diag) : 0, blocks = model_blocks_named(config);
    if (ranks > 1 && each > 0 && blocks > 0) {
        int64_t stages = (blocks + each - 1) / each,
                up = rounding && strcmp(rounding->value, "up") == 0 ? ranks - 1 : 0;
        int64_t chunks = (stages + up) / ranks;
        if (chunks > 1 && times(chunks, ranks) > (blocks + 2) / 2) { /* what weighted stages can be cut into */
            chunks--;
            assume(config, "distributed.pipeline.layers_per_stage: rounded down, so that no stage has a block alone");
        }
        put_setting(config, "parallelism.virtual", number_text(config, chunks > 1 ? chunks : 1), layers);
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
    int64_t local = put_int(config, "train.device_batch", 1), gpus = put_int(config, "cluster.gpus", 0);
    if (stages == 1 || !whole)
        return;
    bool one = copy > 0 && gpus > 0 && all <= times(local, gpus / copy);
    put_remove(config, "train.global_batch");
    whole->fate = FATE_ASIDE;
    whole->key = NULL;
    whole->words = one ? "that of one local batch a rank" : "of several passes of the pipeline; see what is assumed";
    if (!one)
        assume(config, "step_scheduler.global_batch_size: of the passes of the pipeline to a step, each of a local "
                       "batch, one is simulated, with the optimizer's step behind it");
}

static void finish_batch(struct configuration *config, struct diag *diag)
{
    struct configuration_setting *local = setting_find(config, STEP "local_batch_size");
    struct configuration_setting *piece = setting_find(config, PIPE "pp_microbatch_size");
    piece = piece ? piece : setting_find(config, PIPE "pp_batch_size");
    int64_t stages = put_int(config, "parallelism.pipeline", 1);
    const char *key = stages > 1 ? "train.device_batch" : "train.micro_batch";
    if (local)
        put_setting(config, key, number_text(config, setting_int(config, local->name, 1, diag)), local);
    if (stages > 1 && piece)
        put_setting(config, "train.micro_batch", number_text(config, setting_int(config, piece->name, 1, diag)), piece);
    else if (stages > 1)
        put_assumed(config, "train.micro_batch", "1", "AutoModel's default in a pipeline");
    else
        put_remove(config, "parallelism.schedule");
    setting_aside(piece, "of pipelines");
    finish_stages(config, stages, diag);
    finish_passes(config, stages, diag);
    if (!put_find(config, "train.seq_len"))
        put_assumed(config, "train.seq_len", "4096", "that of AutoModel's benchmarks");
}

/* --nproc-per-node is an argument of the launcher; a node of GB200 has four GPUs. */
static void finish_gpus(struct configuration *config, struct diag *diag)
{
    enum { GPUS = 8, GPUS_OF_GB200 = 4 };
    struct configuration_setting *nodes = setting_find(config, "benchmark.num_nodes");
    struct configuration_setting *tested = setting_find(config, "ci.nodes");
    struct configuration_setting *tag = setting_find(config, "ci.cluster_tag");
    bool small = tag && strstr(tag->value, "gb200");
    int64_t each = small ? GPUS_OF_GB200 : GPUS, n = nodes ? setting_int(config, nodes->name, 1, diag) : 0;
    int64_t experts = put_int(config, "parallelism.expert", 1), copy = model_ranks(config);
    bool few = times(n, each) < experts || times(n, each) < copy; /* a placeholder */
    if (tested && few)
        setting_aside(nodes, "ci.nodes says it"), nodes = tested, n = setting_int(config, tested->name, 1, diag);
    if (put_find(config, "cluster.gpus") || n < 1) {
        setting_aside(nodes, "the command line says it");
        setting_aside(tested, "the command line says it");
        return;
    }
    put_setting(config, "cluster.gpus", number_text(config, times(n, each)), nodes);
    setting_aside(tested, "benchmark.num_nodes says it");
    assume(config, arena_printf(config->arena, "benchmark.num_nodes: nodes of %d GPUs", (int)each));
}

static void finish_experts(struct configuration *config, struct diag *diag)
{
    struct configuration_setting *way = setting_find(config, BACK "dispatcher");
    struct configuration_setting *sms = setting_find(config, BACK "dispatcher_num_sms");
    struct configuration_setting *balanced = setting_find(config, BACK "fake_balanced_gate");
    bool torch = way && strcmp(way->value, "torch") == 0, across = put_int(config, "parallelism.expert", 1) > 1;
    bool hybrid = way && strcmp(way->value, "hybridep") == 0;
    if (way && !way->words && across) {
        put_setting(config, "train.moe_token_dispatcher_type", torch ? "allgather" : "flex", way);
        if (!torch)
            put_setting(config, "train.moe_flex_dispatcher_backend", way->value, way);
        if (sms && !torch)
            put_setting(config, hybrid ? "train.moe_hybridep_num_sms" : "train.moe_deepep_num_sms",
                number_text(config, setting_int(config, sms->name, 20, diag)), sms);
    }
    if (!way || !way->words)
        setting_aside(way, "of expert parallelism");
    if (across && !put_find(config, "fsdp.reshard_after_forward"))
        put_assumed(
            config, "fsdp.reshard_after_forward", "never", "AutoModel's default of mixtures of experts, recalled");
    setting_aside(sms, "of expert parallelism");
    if (balanced && strcmp(balanced->value, "false") == 0)
        assume(config, "model.backend.fake_balanced_gate: the router's loads are simulated balanced; "
                       "train.expert_routing=learned has those of a trained one");
    if (balanced && strcmp(balanced->value, "true") == 0)
        put_setting(config, "train.expert_routing", "balanced", balanced);
    setting_aside(balanced, "loads are balanced, unless train.expert_routing says otherwise");
}

static void finish_precision(struct configuration *config)
{
    struct configuration_setting *fp8 = setting_find(config, BACK "te_fp8.recipe");
    struct configuration_setting *norm = setting_find(config, BACK "rms_norm");
    struct configuration_setting *loss = setting_find(config, "loss_fn._target_");
    struct configuration_setting *upcast = setting_find(config, "loss_fn.fp32_upcast");
    if (fp8 && !fp8->words) {
        put_setting(config, "train.precision", "fp8_mixed", fp8);
        put_setting(config, "train.fp8_recipe", "tensorwise", fp8);
        assume(config, arena_printf(config->arena,
                           "model.backend.te_fp8.recipe: TransformerEngine's %s is simulated as torchao's scales by "
                           "tensor, as weights that FSDP gathers are cast by each layer",
                           fp8->value));
    }
    if (!put_find(config, "train.precision"))
        put_assumed(config, "train.precision", "bf16", "torch_dtype of AutoModel's from_config");
    if (norm && !norm->words && strncmp(norm->value, "torch", strlen("torch")) != 0)
        assume(config, "model.backend.rms_norm: norms are simulated as PyTorch's kernels");
    if (!norm || !norm->words)
        setting_aside(norm, "nearly none; see what is assumed");
    struct configuration_setting *rope[] = {
        setting_find(config, BACK "rope"), setting_find(config, BACK "rope_fusion")};
    for (int i = 0; i < 2; i++)
        if (rope[i] && !rope[i]->words) {
            if (strcmp(rope[i]->value, "true") == 0 || strcmp(rope[i]->value, "quack") == 0)
                assume(config, "model.backend.rope: rotary positions are simulated as PyTorch's kernels");
            setting_aside(rope[i], "nearly none; see what is assumed");
        }
    bool linear = loss && strstr(loss->value, "FusedLinearCrossEntropy");
    if (linear)
        put_setting(config, "train.cross_entropy", "fused", loss);
    if (linear)
        assume(
            config, "loss_fn: FusedLinearCrossEntropy is simulated as a fused kernel on whole logits; it keeps none");
    setting_aside(loss, "a cross entropy in PyTorch's kernels");
    setting_aside(upcast, "values of the loss");
}

static void finish_optimizer(struct configuration *config)
{
    struct configuration_setting *target = setting_find(config, "optimizer._target_");
    struct configuration_setting *each = setting_find(config, "optimizer.foreach");
    struct configuration_setting *fused = setting_find(config, "optimizer.fused");
    const char *leaf = target ? strrchr(target->value, '.') : NULL;
    if (leaf && strcmp(leaf, ".AdamW") == 0)
        put_setting(config, "train.optimizer", "adamw", target);
    else if (leaf && (strcmp(leaf, ".Adam") == 0 || strcmp(leaf, ".FusedAdam") == 0))
        put_setting(config, "train.optimizer", "adam", target);
    else if (leaf && strcmp(leaf, ".SGD") == 0)
        put_setting(config, "train.optimizer", "sgd", target);
    setting_refuse(target, "known are Adam, AdamW, FusedAdam and SGD");
    bool one = fused && strcmp(fused->value, "true") == 0;
    if (one)
        put_setting(config, "train.optimizer_impl", "fused", fused);
    else if (each && strcmp(each->value, "false") == 0)
        put_setting(config, "train.optimizer_impl", "for_loop", each);
    setting_aside(each, "PyTorch's default");
    setting_aside(fused, "PyTorch's default");
}

static void finish_tensor(struct configuration *config)
{
    struct configuration_setting *sequence = setting_find(config, DIST "sequence_parallel");
    struct configuration_setting *overlap = setting_find(config, DIST "enable_async_tensor_parallel");
    bool tensor = put_int(config, "parallelism.tensor", 1) > 1;
    if (tensor && sequence && !sequence->words)
        put_setting(config, "parallelism.sequence", sequence->value, sequence);
    if (tensor && overlap && strcmp(overlap->value, "true") == 0)
        put_setting(config, "parallelism.tensor_overlap", "micro_pipeline", overlap);
    setting_aside(sequence, "of tensor parallelism");
    setting_aside(overlap, tensor ? "off" : "of tensor parallelism");
}

static void finish_adapters(struct configuration *config)
{
    struct configuration_setting *targets = setting_find(config, "peft.target_modules");
    if (!targets)
        return;
    bool all =
        strcmp(targets->value, "*_proj") == 0 || strcmp(targets->value, "[*]") == 0 || strcmp(targets->value, "*") == 0;
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

void automodel_finish(struct configuration *config, struct diag *diag)
{
    finish_model(config);
    const char *strategy = put_find(config, "strategy");
    if (!strategy)
        put_assumed(config, "strategy", "fsdp", "AutoModel's default, FSDP2");
    if (strcmp(put_find(config, "strategy"), "fsdp") == 0)
        put_assumed(config, "fsdp.version", "2", NULL);
    finish_tensor(config);
    finish_gpus(config, diag);
    finish_batch(config, diag);
    finish_experts(config, diag);
    finish_precision(config);
    finish_optimizer(config);
    finish_adapters(config);
    if (!put_find(config, "train.attention"))
        put_assumed(config, "train.attention", "flash", "scaled_dot_product_attention");
    put_assumed(config, "stack", "pytorch-2.11", "the version is not in the file");
}
