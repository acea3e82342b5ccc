/* What cannot be done: options of a job that exclude one another, or that its model or its cluster
 * cannot follow. Each rule stands here once, or in check_parallelism.c: of ranks, stages and
 * batches that do not divide.
 *
 * A rule says what is wrong and what to take, at the place of the setting to blame (job_at()). All
 * rules run, so that one run shows all mistakes; only ranks that cannot be laid out end the check,
 * because the other rules are about the mesh. What is not simulated is refused here, never
 * approximated silently. */
#include "strategy/check.h"
#include "strategy/emit.h"

#include <stdio.h>
#include <string.h>

static void strategy_check_batch(const struct job_check *job)
{
    const struct train_options *train = &job->options->train;
    struct batch_plan batch = strategy_batch(train);
    if (train->grad_accum > 1 && train->grad_accum != batch.micro_batches)
        diag_input(job->diag, job_at(job, "train.device_batch"),
            "train.device_batch of %lld makes %lld micro-steps of up to %lld sequences, but "
            "train.grad_accum is %lld; leave one of them out",
            (long long)train->device_batch, (long long)batch.micro_batches,
            (long long)train->micro_batch, (long long)train->grad_accum);
    else if (batch.micro_batches > STRATEGY_MAX_MICRO_STEPS)
        diag_input(job->diag,
            job_at(job, train->device_batch > 0 ? "train.device_batch" : "train.grad_accum"),
            "%lld micro-steps of %lld sequences in an optimizer step, of which at most %d are "
            "simulated; use a larger 'train.micro_batch' or a smaller batch",
            (long long)batch.micro_batches, (long long)train->micro_batch,
            STRATEGY_MAX_MICRO_STEPS);
}

/* A graph cannot hold a wait of the host: for the tokens of each expert. */
static void check_graphs(const struct job_check *job)
{
    const struct train_options *train = &job->options->train;
    if (train->cuda_graphs && job->model && job->model->shape.moe.experts > 0 &&
        !train->moe_pad_expert_input_to_capacity)
        diag_input(job->diag, job_at(job, "train.cuda_graphs"),
            "a CUDA graph of a block cannot hold the host's wait for the tokens of each expert; "
            "give train.moe_expert_capacity_factor and train.moe_pad_expert_input_to_capacity, or "
            "leave it out");
    if (train->cuda_graphs == CUDA_GRAPHS_FULL_ITERATION && job->options->kind != STRATEGY_MEGATRON)
        diag_input(job->diag, job_at(job, "train.cuda_graphs"),
            "full_iteration is Megatron-LM's graph of a step; give strategy megatron, or layer");
}

/* Megatron-LM's moe_layer.py demands it. */
static void check_latent_experts(const struct job_check *job)
{
    if (job->options->train.moe_shared_expert_overlap && job->model &&
        job->model->shape.moe.latent > 0)
        diag_input(job->diag, job_at(job, "train.moe_shared_expert_overlap"),
            "experts of a latent (moe.latent) do not overlap with the shared one in Megatron-LM; "
            "leave it out");
}

/* The setting that moves something to the host; NULL: none does. */
static const char *offload_path(const struct strategy_options *options)
{
    if (options->kind == STRATEGY_FSDP && options->fsdp.cpu_offload)
        return "fsdp.cpu_offload";
    if (options->kind == STRATEGY_DEEPSPEED && options->zero.offload_optimizer)
        return "deepspeed.zero_optimization.offload_optimizer";
    return NULL;
}

/* Of ZeRO only. */
static void check_stage(const struct job_check *job)
{
    const struct strategy_options *options = job->options;
    if (options->kind != STRATEGY_DEEPSPEED || options->zero.stage > 0)
        return;
    if (options->zero.offload_optimizer)
        diag_input(job->diag, job_at(job, "deepspeed.zero_optimization.offload_optimizer"),
            "ZeRO-Offload is of stages 1 to 3; leave it out, or take one of them");
    if (options->train.lora_rank > 0)
        diag_input(job->diag, job_at(job, "train.lora_rank"),
            "adapters are simulated with ZeRO stages 1 to 3; leave it out, or take one of them");
}

/* Whether the parameters of a block are gathered for it alone. */
static bool gathers_by_block(const struct strategy_options *options)
{
    return options->kind == STRATEGY_FSDP || options->kind == STRATEGY_INTERNEVO ||
           (options->kind == STRATEGY_DEEPSPEED && options->zero.stage == 3) ||
           (options->kind == STRATEGY_MEGATRON && options->megatron.use_megatron_fsdp);
}

static void check_recompute_method(const struct job_check *job)
{
    const struct train_options *train = &job->options->train;
    bool block = train->recompute_method == RECOMPUTE_BLOCK;
    struct source_pos place =
        job_at(job, block ? "train.recompute_method" : "train.recompute_num_layers");
    if (!block && train->recompute_num_layers == 1)
        return;
    if (train->checkpoint_interval > 1)
        diag_input(job->diag, place,
            "train.checkpoint_interval says which blocks are checkpointed, too; leave one of them "
            "out");
    if (block || train->activation_checkpointing == CHECKPOINT_NONE)
        return;
    if (train->activation_checkpointing != CHECKPOINT_FULL)
        diag_input(job->diag, place,
            "units of several blocks keep their input alone; take activation_checkpointing: "
            "full, or 1");
    if (gathers_by_block(job->options))
        diag_input(job->diag, place,
            "units of several blocks are not simulated where parameters are gathered block by "
            "block; take 1, or strategy megatron (without use_megatron_fsdp), nanotron, ddp or "
            "deepspeed up to stage 2");
    if (job->model && job->model->shape.mtp_layers > 0)
        diag_input(job->diag, place,
            "the layers of multi-token prediction of '%s' run again each by itself (Megatron-LM "
            "demands it); take 1",
            job->model->shape.name);
    if (job->model &&
        (job->model->shape.n_decoder_layers > 0 || job->model->shape.family == MODEL_CONVNET ||
            job->model->shape.family == MODEL_DHEN))
        diag_input(job->diag, place, "model '%s' is no single stack of transformer blocks; take 1",
            job->model->shape.name);
}

static void check_lomo(const struct job_check *job)
{
    const struct train_options *train = &job->options->train;
    struct source_pos optimizer = job_at(job, "train.optimizer");
    if (train->optimizer != OPTIMIZER_LOMO)
        return;
    if (!strategy_clips_by_option(job->options))
        diag_input(job->diag, optimizer,
            "this strategy's optimizer steps after backward, LOMO within it; take strategy ddp or "
            "fsdp, or another optimizer");
    if (strategy_batch(train).micro_batches > 1)
        diag_input(job->diag, optimizer,
            "LOMO uses a gradient up at once and cannot add several; take train.grad_accum: 1 and "
            "no more in train.device_batch than in train.micro_batch");
    if (train->clip_grad_norm)
        diag_input(job->diag, job_at(job, "train.clip_grad_norm"),
            "LOMO would need a second backward pass to clip gradients by their norm, which is not "
            "simulated; leave it out");
    if (offload_path(job->options))
        diag_input(
            job->diag, optimizer, "LOMO steps on the GPU, inside backward; take another optimizer");
    if (train->lora_rank > 0)
        diag_input(job->diag, optimizer, "LOMO is there to train all parameters; take adamw");
}

/* Activations in host memory. */
static void check_offloading(const struct job_check *job)
{
    const struct strategy_options *options = job->options;
    const struct train_options *train = &options->train;
    struct source_pos place = job_at(job, "train.cpu_offloading_num_layers");
    if (train->cpu_offloading_num_layers == 0)
        return;
    if (train->fusion != FUSION_TRANSFORMER_ENGINE || options->kind != STRATEGY_MEGATRON)
        diag_input(job->diag, place,
            "activations are offloaded by TransformerEngine in Megatron-LM; take strategy: "
            "megatron with train.fusion: transformer_engine, or leave it out");
    if (options->parallelism.pipeline > 1 || train->activation_checkpointing != CHECKPOINT_NONE ||
        train->recompute_modules)
        diag_input(job->diag, place,
            "Megatron-LM does not offload activations in a pipeline or with recomputation; leave "
            "out one of them");
    if (!quantity_is_set(job->hw->node.host_memory))
        diag_input(job->diag, place,
            "node '%s' has no host_memory, which offloading needs; give it", job->hw->node.name);
    if (job->model && train->cpu_offloading_num_layers >= model_blocks(job->model))
        diag_input(job->diag, place,
            "of the %d blocks of '%s' one at least stays on the GPU; take %d at most",
            model_blocks(job->model), job->model->shape.name, model_blocks(job->model) - 1);
    if (job->model && job->model->shape.mtp_layers > 0)
        diag_input(job->diag, place,
            "multi-token prediction is not simulated with offloading; leave out one of them");
}

/* What Megatron-FSDP is not simulated with. */
static void check_megatron_fsdp(const struct job_check *job)
{
    const struct strategy_options *options = job->options;
    const struct megatron_options *megatron = &options->megatron;
    struct source_pos place = job_at(job, "megatron.use_megatron_fsdp");
    if (options->kind != STRATEGY_MEGATRON)
        return;
    bool cuts = megatron->use_megatron_fsdp &&
                megatron->data_parallel_sharding_strategy >= SHARD_OPTIM_GRADS;
    if (megatron->num_distributed_optimizer_instances > 1 && !cuts)
        diag_input(job->diag, job_at(job, "megatron.num_distributed_optimizer_instances"),
            "several instances are simulated of Megatron-FSDP; take megatron.use_megatron_fsdp: "
            "true and data_parallel_sharding_strategy optim_grads or optim_grads_params, or 1");
    if (!megatron->use_megatron_fsdp)
        return;
    if (megatron->outer_dp_sharding_strategy == SHARD_OPTIM && megatron_instances(options) > 1 &&
        megatron->data_parallel_sharding_strategy != SHARD_OPTIM_GRADS_PARAMS)
        diag_input(job->diag, job_at(job, "megatron.outer_dp_sharding_strategy"),
            "what is sharded over instances is sharded wholly within them; take "
            "megatron.data_parallel_sharding_strategy: optim_grads_params, or no_shard");
    if (options->parallelism.pipeline > 1)
        diag_input(job->diag, place,
            "Megatron-FSDP is not simulated in a pipeline; leave out 'parallelism.pipeline', or "
            "this");
    if (options->train.lora_rank > 0)
        diag_input(job->diag, job_at(job, "train.lora_rank"),
            "adapters are not simulated with Megatron-FSDP; leave out one of them");
    if (options->train.precision == PRECISION_FP4_MIXED && megatron->fp8_param_gather)
        diag_input(job->diag, job_at(job, "megatron.fp8_param_gather"),
            "Megatron-FSDP keeps weights of NVFP4 in 16 bits; leave it out");
}

/* Two micro-batches in turns, as far as Megatron-LM takes it (transformer_config.py) and this
 * follows. */
static void check_merged_passes(const struct job_check *job)
{
    const struct strategy_options *options = job->options;
    const struct parallelism_options *parallel = &options->parallelism;
    const struct train_options *train = &options->train;
    const struct {
        bool is;
        const char *why;
    } lacks[] = {
        {parallel->model.expert <= 1, "without expert parallelism nothing is exchanged; take "
                                      "'parallelism.expert' of 2 and more"},
        {train->moe_token_dispatcher_type == DISPATCHER_ALLGATHER,
            "it overlaps all_to_alls; take train.moe_token_dispatcher_type alltoall or flex"},
        {train->moe_shared_expert_overlap, "Megatron-LM gives shared experts no stream beside it; "
                                           "leave out train.moe_shared_expert_overlap"},
        {train->activation_checkpointing == CHECKPOINT_FULL ||
                train->activation_checkpointing == CHECKPOINT_SELECTIVE,
            "blocks cannot run again in turns with others; take train.activation_checkpointing "
            "none and train.recompute_modules"},
        {parallel->pipeline > 1 && parallel->schedule != SCHEDULE_DUALPIPEV &&
                (parallel->virtual_stages < 2 || parallel->schedule != SCHEDULE_1F1B),
            "in a pipeline it is interleaved 1F1B, or DualPipeV; take parallelism.virtual of 2 and "
            "more"},
        {options->megatron.use_megatron_fsdp,
            "it is not simulated with Megatron-FSDP; leave out one of them"},
        {train->cpu_offloading_num_layers > 0,
            "it is not simulated with offloading; leave out one of them"},
    };
    if (options->kind != STRATEGY_MEGATRON || !options->megatron.overlap_moe_expert_parallel_comm)
        return;
    for (size_t i = 0; i < sizeof lacks / sizeof *lacks; i++)
        if (lacks[i].is)
            diag_input(job->diag, job_at(job, "megatron.overlap_moe_expert_parallel_comm"), "%s",
                lacks[i].why);
}

/* Matrices that a rank has whole, or can gather. */
static void check_muon(const struct job_check *job)
{
    const struct strategy_options *options = job->options;
    struct source_pos optimizer = job_at(job, "train.optimizer");
    int kind = options->kind;
    if (options->train.optimizer != OPTIMIZER_MUON)
        return;
    if (kind == STRATEGY_DEEPSPEED || kind == STRATEGY_NANOTRON || kind == STRATEGY_INTERNEVO)
        diag_input(job->diag, optimizer,
            "muon is simulated with strategy ddp, fsdp, megatron and single_device; take one of "
            "them, or another optimizer");
    if (kind == STRATEGY_MEGATRON && options->megatron.use_megatron_fsdp)
        diag_input(job->diag, job_at(job, "megatron.use_megatron_fsdp"),
            "muon is not simulated with Megatron-FSDP; take train.muon_distributed: true in its "
            "place");
    else if (kind == STRATEGY_MEGATRON && options->megatron.use_distributed_optimizer)
        diag_input(job->diag, job_at(job, "megatron.use_distributed_optimizer"),
            "Megatron-LM's distributed optimizer cuts matrices, which muon needs whole; take "
            "train.muon_distributed: true in its place");
    if (offload_path(options))
        diag_input(job->diag, optimizer,
            "muon steps on the GPU; take another optimizer, or no offloading");
    if (!kernel_supported(&job->hw->gpu, DTYPE_BF16))
        diag_input(job->diag, optimizer,
            "muon multiplies in BF16, which GPU '%s' cannot; take another optimizer",
            job->hw->gpu.name);
}

static bool multiplies_in_16_bits(const struct train_options *train)
{
    return train->precision == PRECISION_BF16_MIXED || train->precision == PRECISION_FP16_MIXED;
}

/* A window, a chunk or an indexer leaves a position fewer keys than those before it. */
static bool sees_less(const struct model *model, int64_t seq_len)
{
    bool less = model->shape.mla.index_heads > 0;
    for (int layer = 0; layer < model->n_layers; layer++) {
        int64_t window = model_window(&model->shape, layer),
                chunk = model_chunk(&model->shape, layer);
        less |= (window > 0 && window < seq_len) || (chunk > 0 && chunk < seq_len);
    }
    return less;
}

/* TransformerEngine's FusedAdam alone keeps moments in other formats than it computes in. */
static void check_moments(const struct job_check *job)
{
    const struct megatron_options *megatron = &job->options->megatron;
    const struct train_options *train = &job->options->train;
    bool adam = train->optimizer == OPTIMIZER_ADAM || train->optimizer == OPTIMIZER_ADAMW;
    bool narrow =
        megatron->exp_avg_dtype != MOMENT_FP32 || megatron->exp_avg_sq_dtype != MOMENT_FP32;
    if (job->options->kind != STRATEGY_MEGATRON || !narrow ||
        (adam && train->optimizer_impl == OPTIMIZER_FUSED))
        return;
    const char *key = megatron->exp_avg_dtype != MOMENT_FP32 ? "megatron.exp_avg_dtype"
                                                             : "megatron.exp_avg_sq_dtype";
    diag_input(job->diag, job_at(job, key),
        "moments in BF16 are those of TransformerEngine's FusedAdam; take train.optimizer: adam "
        "and train.optimizer_impl: fused, as stack megatron-core has it");
}

static void check_documents_of(const struct job_check *job, struct source_pos place)
{
    const struct model_shape *shape = &job->model->shape;
    if (shape->n_decoder_layers > 0 || model_sample_tokens(shape) > 0)
        diag_input(job->diag, place,
            "documents are packed for models with one stack of tokens, not for '%s'; leave it out",
            shape->name);
    if (sees_less(job->model, job->options->train.seq_len))
        diag_input(job->diag, place,
            "'%s' attends by windows, chunks or an indexer, which is not simulated within "
            "documents; leave it out, or take sequences that are no longer than a window",
            shape->name);
}

/* Attention by the documents of a packed sequence. */
static void check_documents(const struct job_check *job)
{
    const struct strategy_options *options = job->options;
    const struct train_options *train = &options->train;
    struct source_pos place =
        job_at(job, train->documents.lengths ? "train.document_lengths" : "train.document_mean");
    struct arena scratch = ARENA_INIT;
    struct documents documents;
    char why[DOCUMENTS_WHY];
    if (!documents_read(&documents, &train->documents, train->seq_len, &scratch, why))
        diag_input(job->diag, place, "%s", why);
    bool packed = documents.n > 0;
    arena_release(&scratch);
    if (train->documents.sd > 0 && !(train->documents.mean > 0))
        diag_input(job->diag, job_at(job, "train.document_sd"),
            "a standard deviation of documents without their mean length; give "
            "train.document_mean");
    if (train->documents.packing == DOCUMENTS_FIXED_NUMBER &&
        !document_options_vary(&train->documents))
        diag_input(job->diag, job_at(job, "train.document_packing"),
            "documents that are alike in number need lengths that differ; give train.document_mean "
            "and document_sd, or document_lengths");
    if (!packed)
        return;
    if (train->attention != ATTENTION_FLASH)
        diag_input(job->diag, place,
            "naive attention multiplies all pairs of positions, of other documents too; take "
            "train.attention: flash");
    if (context_is_pytorch(options->parallelism.model.context_kind) &&
        options->parallelism.model.context > 1)
        diag_input(job->diag, place,
            "PyTorch's context_parallel() knows no documents; take parallelism.context_kind p2p, "
            "all_gather or a2a");
    if (job->model)
        check_documents_of(job, place);
}

/* The GPU has matrix products in the precision. */
static void check_math(const struct job_check *job)
{
    const struct train_options *train = &job->options->train;
    const struct hw_gpu *gpu = &job->hw->gpu;
    enum dtype math = strategy_math(train);
    if (kernel_supported(gpu, math))
        return;
    char known[128] = "";
    size_t used = 0;
    for (int i = 0; i < DTYPE_COUNT; i++)
        if (kernel_supported(gpu, (enum dtype)i) && used < sizeof known)
            used += (size_t)snprintf(
                known + used, sizeof known - used, "%s%s", used ? ", " : "", dtype_names[i]);
    diag_input(job->diag, job_at(job, "train.precision"),
        "%s multiplies in %s, which GPU '%s' cannot; it can in %s",
        precision_names[train->precision], dtype_names[math], gpu->name, known);
}

static void check_precision(const struct job_check *job)
{
    const struct train_options *train = &job->options->train;
    int kind = job->options->kind, precision = train->precision;
    struct source_pos place = job_at(job, "train.precision"),
                      autocast = job_at(job, "train.autocast");
    check_math(job);
    const char *name = strategies[kind]->copies_as;
    if (name && (precision == PRECISION_BF16 || precision == PRECISION_BF16_MASTER))
        diag_input(job->diag, place,
            "%s keeps 16-bit weights and FP32 copies of them; take bf16_mixed", name);
    bool fp8 = precision == PRECISION_FP8_MIXED, fp4 = precision == PRECISION_FP4_MIXED;
    if (kind == STRATEGY_INTERNEVO && (multiplies_in_16_bits(train) || fp8 || fp4))
        diag_input(job->diag, place,
            "InternEvo keeps 16-bit weights and gradients, and FP32 copies with the optimizer; "
            "take bf16_master");
    if (fp4 && train->fusion != FUSION_TRANSFORMER_ENGINE)
        diag_input(job->diag, place,
            "products in NVFP4 are TransformerEngine's; take train.fusion: transformer_engine");
    if ((fp8 || fp4) && train->fusion == FUSION_TRANSFORMER_ENGINE && kind != STRATEGY_MEGATRON)
        diag_input(job->diag, job_at(job, "train.fusion"),
            "with transformer_engine weights lie in FP8 for a step, which is simulated with "
            "strategy: megatron; take that, or another train.fusion");
    bool by_engine = train->fusion == FUSION_TRANSFORMER_ENGINE,
         mxfp8 = train->fp8_recipe == FP8_MXFP8;
    if (train->fp8_recipe != FP8_DELAYED && !mxfp8 && by_engine)
        diag_input(job->diag, job_at(job, "train.fp8_recipe"),
            "%s is a recipe of torchao, transformer_engine scales by earlier steps or by block; "
            "take delayed or mxfp8, or another train.fusion",
            fp8_recipe_names[train->fp8_recipe]);
    if (mxfp8 && !by_engine)
        diag_input(job->diag, job_at(job, "train.fp8_recipe"),
            "mxfp8 is TransformerEngine's; take train.fusion: transformer_engine, or another "
            "recipe");
    if (train->fp8_recipe != FP8_DELAYED && !fp8)
        diag_input(job->diag, job_at(job, "train.fp8_recipe"),
            "%s is a recipe of FP8; take train.precision: fp8_mixed",
            fp8_recipe_names[train->fp8_recipe]);
    if (kind == STRATEGY_FSDP && job->options->fsdp.float8_all_gather &&
        (job->options->fsdp.version != 2 || train->fp8_recipe != FP8_TENSORWISE ||
            train->lora_rank > 0))
        diag_input(job->diag, job_at(job, "fsdp.float8_all_gather"),
            "FP8 is gathered by fully_shard where each matrix has one scale; take fsdp.version: 2 "
            "and train.fp8_recipe: tensorwise, without adapters");
    if (train->lora_rank > 0 && train->qlora && !multiplies_in_16_bits(train))
        diag_input(job->diag, place,
            "QLoRA multiplies in 16 bits and trains its adapters in FP32; take bf16_mixed or "
            "fp16_mixed");
    if (!train->autocast)
        return;
    if (!multiplies_in_16_bits(train))
        diag_input(job->diag, autocast,
            "train.autocast is of bf16_mixed and fp16_mixed; take one of them as train.precision");
    if (name)
        diag_input(
            job->diag, autocast, "%s casts the model itself; leave train.autocast out", name);
    if (job->model && model_sample_tokens(&job->model->shape) > 0)
        diag_input(
            job->diag, autocast, "train.autocast is simulated for models of tokens; leave it out");
}

static void check_recompute_modules(const struct job_check *job)
{
    const struct train_options *train = &job->options->train;
    struct source_pos place = job_at(job, "train.recompute_modules");
    const char *unknown;
    unsigned parts = strategy_recomputed_parts(train, &unknown);
    int kind = train->activation_checkpointing;
    if (unknown)
        diag_input(job->diag, place,
            "'%s' begins with no part of a block that is recomputed by itself; take some of "
            "core_attn, moe, layernorm, moe_act, mla_up_proj, mlp and shared_experts, with a comma "
            "between",
            unknown);
    if (!train->recompute_modules)
        return;
    if (kind == CHECKPOINT_FULL || kind == CHECKPOINT_SELECTIVE)
        diag_input(job->diag, place,
            "activation_checkpointing: %s recomputes whole blocks; leave one of both out",
            checkpointing_names[kind]);
    if (train->fusion == FUSION_INDUCTOR)
        diag_input(job->diag, place,
            "torch.compile's kernels reach over parts of a block; take another train.fusion");
    if (job->model && job->model->shape.family != MODEL_LLAMA &&
        parts & ~(1U << RECOMPUTE_CORE_ATTN))
        diag_input(job->diag, place, "of '%s' only core_attn is recomputed by itself; take that",
            job->model->shape.name);
}

static void strategy_check_adapters(const struct job_check *job)
{
    const struct train_options *train = &job->options->train;
    struct source_pos rank = job_at(job, "train.lora_rank");
    if (train->lora_rank == 0)
        return;
    struct arena scratch = ARENA_INIT;
    const char *unknown = model_unknown_target(job->model, train->lora_targets, &scratch);
    if (unknown)
        diag_input(job->diag, job_at(job, "train.lora_targets"),
            "no linear layer of a block of '%s' is called '%s'; see `flopcast model`",
            job->model->shape.name, unknown);
    arena_release(&scratch);
    if (!model_takes_adapters(&job->model->shape))
        diag_input(job->diag, rank,
            "adapters go beside linear layers, and model '%s' has convolutions; leave it out",
            job->model->shape.name);
    if (job->options->kind == STRATEGY_INTERNEVO)
        diag_input(job->diag, rank,
            "adapters under InternEvo are not simulated; take 'strategy: ddp', 'fsdp' or "
            "'deepspeed'");
}

static void strategy_check_model(const struct job_check *job)
{
    const struct train_options *train = &job->options->train;
    const struct model_shape *shape = &job->model->shape;
    struct source_pos images = job_at(job, "train.decode_images");
    if (train->attention == ATTENTION_FLASH && !model_takes_flash(shape))
        diag_input(job->diag, job_at(job, "train.attention"),
            "model '%s' %s, which flash attention cannot; use naive", shape->name,
            shape->mixes_heads ? "mixes the scores of its heads"
                               : "adds a position bias to its scores");
    if (train->decode_images && shape->image_size == 0)
        diag_input(
            job->diag, images, "'%s' takes no images; leave out train.decode_images", shape->name);
    else if (train->decode_images && job->hw->gpu.host_image_s <= 0)
        diag_input(job->diag, images,
            "node '%s' has no image_time, which train.decode_images needs; give it",
            job->hw->node.name);
}

static void strategy_check_host(const struct job_check *job)
{
    const struct strategy_options *options = job->options;
    const struct hw_node *node = &job->hw->node;
    const char *path = offload_path(options);
    if (!path)
        return;
    if (options->kind == STRATEGY_FSDP && strategy_batch(&options->train).micro_batches > 1 &&
        !options->fsdp.no_sync)
        diag_input(job->diag, job_at(job, path),
            "FSDP with cpu_offload cannot accumulate reduced gradients; take fsdp.no_sync: true");
    if (!quantity_is_set(node->host_bandwidth) || !quantity_is_set(node->host_memory))
        diag_input(job->diag, job_at(job, path),
            "node '%s' has no host_memory and host_bandwidth, which offloading needs; give both",
            node->name);
}

/* Ranks that share one copy of what is sharded: groups of as many. */
static void strategy_check_groups(const struct job_check *job)
{
    const struct strategy_options *options = job->options;
    bool internevo = options->kind == STRATEGY_INTERNEVO;
    int data = (int)strategy_data_ranks(&options->parallelism, job->gpus);
    bool given = internevo || options->fsdp.sharding_group_size > 0;
    int64_t group = strategy_shard_ranks(options, job->hw, data), node = hw_gpus_per_node(job->hw);
    const char *label = strategy_label(options);
    bool apart = group == data &&
                 data < job->gpus; /* by tensor or pipeline ranks: see check_parallelism.c */
    struct source_pos place = job_at(job, internevo ? "internevo.zero1"
                                          : given   ? "fsdp.sharding_group_size"
                                                    : "cluster.gpus");
    if (options->kind == STRATEGY_SINGLE_DEVICE && job->gpus > 1)
        diag_input(job->diag, job_at(job, "strategy"),
            "strategy 'single_device' is a model on one GPU, not on %d; take strategy: ddp, or "
            "cluster.gpus: 1",
            job->gpus);
    else if (data < group)
        diag_input(job->diag, place,
            "%s shards over %lld GPUs%s, but the job has %d; use more GPUs, a smaller "
            "'fsdp.sharding_group_size' or FULL_SHARD",
            label, (long long)group, given ? "" : " (a node)", job->gpus);
    else if (data % group != 0)
        diag_input(job->diag, place,
            "%s shards over %lld GPUs, which does not divide the job's %d; use a divisor", label,
            (long long)group, job->gpus);
    else if (!apart && group > 1 && group < job->gpus && job->gpus > node && node % group != 0 &&
             group % node != 0)
        diag_input(job->diag, place,
            "groups of %lld GPUs in nodes of %lld: some lie on more nodes than others, or have "
            "more GPUs on one node than on another, which is not simulated; take a divisor or a "
            "multiple of %lld",
            (long long)group, (long long)node, (long long)node);
}

enum status strategy_check(const struct strategy_options *options, const struct model *model,
    const struct hw *hw, int gpus, const struct strategy_places *places, struct diag *diag)
{
    const struct job_check job = {options, model, hw, gpus, places, diag};
    int before = diag->n_errors;
    if (!strategy_check_parallelism(options, model, hw, gpus, places, diag))
        return STATUS_INPUT; /* the job's mesh cannot be laid out, which the rest is about */
    strategy_check_groups(&job);
    if (model) {
        strategy_check_model(&job);
        check_recompute_modules(&job);
        strategy_check_adapters(&job);
    }
    check_precision(&job);
    check_stage(&job);
    check_recompute_method(&job);
    check_lomo(&job);
    check_offloading(&job);
    check_megatron_fsdp(&job);
    check_merged_passes(&job);
    check_muon(&job);
    check_moments(&job);
    strategy_check_batch(&job);
    check_documents(&job);
    check_graphs(&job);
    check_latent_experts(&job);
    strategy_check_host(&job);
    return diag->n_errors > before ? STATUS_INPUT : STATUS_OK;
}
