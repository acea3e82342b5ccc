/* Which ranks, stages and micro-batches there can be: what does not divide, and what would.
 *
 * The order matters: degrees must divide before a mesh can be built, and groups are looked at in
 * the mesh. A group needs its axes side by side and as many members on each node that it
 * touches. */
#include "strategy/check.h"
#include "strategy/emit.h"

#include <stdio.h>

static bool check_parallelism_check_ranks(const struct job_check *check)
{
    const struct parallelism_options *parallel = &check->options->parallelism;
    int64_t tensor = model_tensor_ranks(&parallel->model),
            context = model_context_ranks(&parallel->model),
            expert = strategy_expert_axis(parallel), of_one = tensor * context * parallel->pipeline;
    const char *key = parallel->pipeline > 1 ? "parallelism.pipeline"
                      : tensor > 1           ? "parallelism.tensor"
                                             : "parallelism.context";
    if (check->gpus % of_one != 0) {
        diag_input(check->diag, job_at(check, key),
            "%lld tensor x %lld context x %lld pipeline ranks are %lld, which does not divide %d "
            "GPUs; a product out of %s does",
            (long long)tensor, (long long)context, (long long)parallel->pipeline, (long long)of_one,
            check->gpus, divisors(check->gpus).text);
        return false;
    }
    if (check->gpus / of_one % expert == 0)
        return true;
    diag_input(check->diag, job_at(check, "parallelism.expert"),
        "%lld ranks of expert parallelism do not divide the %lld of data parallelism; take one of "
        "%s",
        (long long)expert, (long long)(check->gpus / of_one), divisors(check->gpus / of_one).text);
    return false;
}

static bool check_order(const struct job_check *check, struct mesh *mesh)
{
    const char *bad = NULL;
    if (strategy_mesh(mesh, check->options, check->hw, check->gpus, &bad))
        return true;
    if (mesh->folded) {
        diag_input(check->diag, job_at(check, "parallelism.order"),
            "in '%s' stages of %d ranks' experts are not the stages of the rest; put 'pp' last, as "
            "in %s",
            check->options->parallelism.order, mesh->ranks, mesh_order_default);
        return false;
    }
    diag_input(check->diag, job_at(check, "parallelism.order"),
        "'%s' is no order of axes, from '%s' on; write each axis once, neighbours first, as in %s",
        check->options->parallelism.order, bad, mesh_order_default);
    return false;
}

/* Groups that the ranks communicate in: their axes lie side by side, and their members evenly on
 * the nodes. */
static void check_parallelism_check_groups(const struct job_check *check, const struct mesh *mesh)
{
    static const struct {
        unsigned axes;
        const char *what, *key;
    } groups[] = {
        {1U << AXIS_TP, "tensor", "parallelism.tensor"},
        {1U << AXIS_CP, "context", "parallelism.context"},
        {1U << AXIS_EP | AXES_OF_EXPERT_GRID, "expert", "parallelism.expert"},
        {AXES_DENSE, "data", "cluster.gpus"},
    };
    int node = hw_gpus_per_node(check->hw);
    const unsigned of_model = 1U << AXIS_TP | 1U << AXIS_CP | 1U << AXIS_EP | 1U << AXIS_PP;
    bool alone =
        mesh_degree(mesh, of_model) * mesh_degree(mesh, of_model | AXES_OF_EXPERT_GRID) == 1;
    for (size_t i = 0; i < sizeof groups / sizeof *groups && !alone; i++) {
        if (!mesh_axes_are_side_by_side(mesh, groups[i].axes)) {
            diag_input(check->diag, job_at(check, "parallelism.order"),
                "the axes of a group of %s parallelism do not lie side by side in '%s', which is "
                "not simulated; take %s",
                groups[i].what, check->options->parallelism.order, mesh_order_default);
            continue;
        }
        struct mesh_group group = mesh_group(mesh, groups[i].axes);
        if (!mesh_group_lies_evenly(&group, check->gpus, node))
            diag_input(check->diag, job_at(check, groups[i].key),
                "groups of %d GPUs of %s parallelism, %d apart, in nodes of %d: some have more "
                "GPUs on one node than on another, which is not simulated; take degrees that "
                "divide %d, or multiples of it",
                group.size, groups[i].what, group.stride, node, node);
    }
}

static void check_model_parallel(const struct job_check *check)
{
    const struct strategy_options *options = check->options;
    const struct model_parallel *parallel = &options->parallelism.model;
    bool tensor = parallel->tensor > 1, context = parallel->context > 1,
         expert = parallel->expert > 1;
    const char *key = expert    ? "parallelism.expert"
                      : tensor  ? "parallelism.tensor"
                      : context ? "parallelism.context"
                                : "parallelism.sequence";
    unsigned takes = strategies[options->kind]->takes;
    bool takes_tensor = takes & 1U << PARALLEL_TENSOR,
         takes_context = takes & 1U << PARALLEL_CONTEXT;
    if (!tensor && !context && !expert && !parallel->sequence)
        return;
    if (expert && !(takes & 1U << PARALLEL_EXPERT))
        diag_input(check->diag, job_at(check, key),
            "expert parallelism is simulated with strategy: megatron or fsdp; take one of them");
    if (!takes_tensor || (context && !takes_context))
        diag_input(check->diag, job_at(check, key),
            "%s parallelism is simulated with strategy %s; take one of them",
            tensor && !takes_tensor ? "tensor" : "context",
            context ? "megatron, nanotron, fsdp or ddp"
                    : "megatron, nanotron, fsdp, ddp or deepspeed");
    if (tensor && parallel->tensor_overlap == TENSOR_MICRO_PIPELINE &&
        (!parallel->sequence || parallel->tensor > hw_gpus_per_node(check->hw)))
        diag_input(check->diag, job_at(check, "parallelism.tensor_overlap"),
            "micro_pipeline copies parts of the sequence between the GPUs of a node; take "
            "parallelism.sequence: true and at most %d tensor ranks",
            hw_gpus_per_node(check->hw));
    if (parallel->gather_dim == 1 && parallel->sequence &&
        parallel->tensor_overlap != TENSOR_BLOCKING &&
        parallel->tensor_overlap != TENSOR_MICRO_PIPELINE)
        diag_input(check->diag, job_at(check, "parallelism.gather_dim"),
            "Megatron-LM's overlap '%s' gathers dimension 0; take that, or "
            "parallelism.tensor_overlap: none or "
            "micro_pipeline, which are DTensor's",
            tensor_overlap_names[parallel->tensor_overlap]);
    if (!check->model)
        return;
    struct arena scratch = ARENA_INIT;
    struct model_workload workload = strategy_workload(options, check->model);
    const char *wrong = model_shard_wrong(&check->model->shape, &workload, &scratch);
    if (wrong)
        diag_input(check->diag, job_at(check, key), "%s", wrong);
    arena_release(&scratch);
}

/* FSDP in a pipeline is fully_shard, as torchtitan has it. */
static void check_fully_shard(const struct job_check *check)
{
    const struct strategy_options *options = check->options;
    if (options->fsdp.version != 2)
        diag_input(check->diag, job_at(check, "fsdp.version"),
            "in a pipeline FSDP is simulated as fully_shard; take fsdp.version: 2");
    if (options->train.autocast)
        diag_input(check->diag, job_at(check, "train.autocast"),
            "under autocast weights are cast for each pass, which is not simulated in a pipeline; "
            "leave it out");
    if (options->fsdp.cpu_offload)
        diag_input(check->diag, job_at(check, "fsdp.cpu_offload"),
            "offloading is not simulated in a pipeline; leave it out");
    if (check->model && check->model->shape.tied_embeddings)
        diag_input(check->diag, job_at(check, "parallelism.pipeline"),
            "'%s' has its embeddings tied, which torchtitan does not train in a pipeline; take "
            "strategy: megatron or nanotron",
            check->model->shape.name);
}

/* What a pipeline cannot be made of. */
static void check_parallelism_check_stages(const struct job_check *check)
{
    const struct strategy_options *options = check->options;
    struct source_pos place = job_at(check, "parallelism.pipeline");
    bool deepspeed = options->kind == STRATEGY_DEEPSPEED, fsdp = options->kind == STRATEGY_FSDP;
    if (!(strategies[options->kind]->takes & 1U << PARALLEL_PIPELINE))
        diag_input(check->diag, place,
            "a pipeline is simulated with strategy: megatron, nanotron, deepspeed or fsdp; take "
            "one of them");
    if (fsdp)
        check_fully_shard(check);
    if (deepspeed && options->zero.stage > 1)
        diag_input(check->diag, job_at(check, "deepspeed.zero_optimization.stage"),
            "DeepSpeed's pipelines take stage 1 at most, not %lld; take 1 or 0, or leave out "
            "'parallelism.pipeline'",
            (long long)options->zero.stage);
    if (deepspeed && options->zero.offload_optimizer)
        diag_input(check->diag, job_at(check, "deepspeed.zero_optimization.offload_optimizer"),
            "this is not simulated in a pipeline; leave it out");
    if (deepspeed && options->parallelism.virtual_stages > 1)
        diag_input(check->diag, job_at(check, "parallelism.virtual"),
            "DeepSpeed's pipelines have one model chunk a stage; leave it out");
    if (options->train.lora_rank > 0 && options->kind != STRATEGY_MEGATRON &&
        options->kind != STRATEGY_FSDP)
        diag_input(check->diag, job_at(check, "train.lora_rank"),
            "adapters in a pipeline are simulated with strategy: megatron or fsdp; take one of "
            "them, or leave them out");
    if (options->train.use_cache)
        diag_input(check->diag, job_at(check, "train.use_cache"),
            "this is not simulated in a pipeline; leave it out");
    if (!check->model)
        return;
    const struct model_shape *shape = &check->model->shape;
    if (shape->n_decoder_layers > 0 || shape->family == MODEL_CONVNET ||
        shape->family == MODEL_DHEN)
        diag_input(check->diag, place,
            "model '%s' is no single stack of transformer blocks, which a pipeline is simulated "
            "for",
            shape->name);
    if (shape->mtp_layers > 0 && options->kind != STRATEGY_MEGATRON)
        diag_input(check->diag, place,
            "multi-token prediction of '%s' is simulated in a pipeline of strategy: megatron only",
            shape->name);
}

/* Blocks as torchtitan splits them. */
static void check_split(const struct job_check *check, int64_t blocks)
{
    const struct parallelism_options *options = &check->options->parallelism;
    int64_t chunks = options->pipeline * options->virtual_stages;
    bool weighted = options->partition_method == PARTITION_WEIGHTED;
    int64_t most = weighted ? (blocks + 2) / 2 : blocks;
    if (options->first_layers >= 0 || options->last_layers >= 0)
        diag_input(check->diag, job_at(check, "parallelism.partition_method"),
            "%s decides what each model chunk has; leave out 'parallelism.first_layers' and "
            "'last_layers', or take uniform",
            partition_method_names[options->partition_method]);
    if (chunks > most)
        diag_input(check->diag, job_at(check, "parallelism.pipeline"),
            "%lld model chunks share %lld blocks%s; take %lld at most", (long long)chunks,
            (long long)blocks, weighted ? ", the embedding and the head" : "", (long long)most);
}

/* Blocks by what they count. */
static void check_costs(const struct job_check *check, int64_t blocks)
{
    const struct parallelism_options *options = &check->options->parallelism;
    struct source_pos place = job_at(check, "parallelism.partition_method");
    if (options->virtual_stages > 1 || options->first_layers >= 0 || options->last_layers >= 0)
        diag_input(check->diag, place,
            "%s decides what each stage has, in one model chunk; leave out 'parallelism.virtual', "
            "'first_layers' and 'last_layers', or take uniform",
            partition_method_names[options->partition_method]);
    if (blocks < options->pipeline)
        diag_input(check->diag, job_at(check, "parallelism.pipeline"),
            "%lld stages share %lld blocks; take %lld at most", (long long)options->pipeline,
            (long long)blocks, (long long)blocks);
}

/* left: blocks that are not said to be of the first or the last chunk; even: chunks that share
 * them. */
static void check_chunks(const struct job_check *check, int64_t left, int64_t even)
{
    const struct parallelism_options *options = &check->options->parallelism;
    struct source_pos place =
        job_at(check, options->virtual_stages > 1 ? "parallelism.virtual" : "parallelism.pipeline");
    if (even < 0 || (even == 0 && left != 0))
        diag_input(check->diag, place,
            "'first_layers' and 'last_layers' leave %lld blocks for no model chunk; have them hold "
            "all, or take more stages",
            (long long)left);
    else if (left < even || (even > 0 && left % even != 0))
        diag_input(check->diag, place,
            "%lld blocks do not divide over %lld model chunks (%lld stages of %lld)%s; take a "
            "number of chunks out of %s, or say how many the first and the last one have "
            "(parallelism.first_layers, last_layers)",
            (long long)left, (long long)even, (long long)options->pipeline,
            (long long)options->virtual_stages,
            even < options->pipeline * options->virtual_stages ? " beside the first and the last"
                                                               : "",
            divisors(left).text);
}

static void check_layers(const struct job_check *check)
{
    const struct parallelism_options *options = &check->options->parallelism;
    int64_t chunks = options->pipeline * options->virtual_stages, first = options->first_layers,
            last = options->last_layers, blocks = check->model ? model_blocks(check->model) : 0;
    int64_t even = chunks - (first >= 0) - (last >= 0);
    int64_t left = blocks - (first > 0 ? first : 0) - (last > 0 ? last : 0);
    if (!check->model)
        return;
    if (options->virtual_stages == 1 && (first == 0 || last == 0))
        diag_input(check->diag,
            job_at(check, first == 0 ? "parallelism.first_layers" : "parallelism.last_layers"),
            "a stage of one model chunk has a block at least; take 1 or more, or "
            "parallelism.virtual");
    bool splits = options->partition_method == PARTITION_SPLIT_POINTS ||
                  options->partition_method == PARTITION_WEIGHTED;
    if (options->partition_method != PARTITION_UNIFORM) {
        (splits ? check_split : check_costs)(check, blocks);
        return;
    }
    check_chunks(check, left, even);
}

/* Two chunks of each stage in a V. */
static void check_v(const struct job_check *check, int64_t micro_batches)
{
    const struct parallelism_options *options = &check->options->parallelism;
    const char *name = pipeline_schedule_names[options->schedule];
    int64_t least = schedule_least_micro_batches(options->schedule, (int)options->pipeline);
    int kind = check->options->kind;
    if (kind != STRATEGY_FSDP && kind != STRATEGY_MEGATRON)
        diag_input(check->diag, job_at(check, "parallelism.schedule"),
            "schedule %s is simulated with strategy fsdp, as torchtitan has it, or megatron; take "
            "one of them",
            name);
    if (options->virtual_stages != SCHEDULE_V_CHUNKS)
        diag_input(check->diag, job_at(check, "parallelism.virtual"),
            "schedule %s has two model chunks a stage, which lie in a V; take 2, not %lld", name,
            (long long)options->virtual_stages);
    if (micro_batches < least)
        diag_input(check->diag, job_at(check, "parallelism.schedule"),
            "schedule %s takes %lld micro-batches a step at least, two for each stage, not %lld; "
            "take another batch, or ZBVZeroBubble",
            name, (long long)least, (long long)micro_batches);
}

static void check_schedule(const struct job_check *check)
{
    const struct parallelism_options *options = &check->options->parallelism;
    struct batch_plan batch = strategy_batch(&check->options->train);
    struct source_pos place = job_at(check, "parallelism.virtual");
    if (schedule_is_v(options->schedule) && options->pipeline > 1)
        check_v(check, batch.micro_batches);
    else if (options->virtual_stages > 1 && options->pipeline == 1)
        diag_input(check->diag, place,
            "one stage has one model chunk; leave it out, or take 'parallelism.pipeline'");
    else if (options->virtual_stages > 1 && options->schedule != SCHEDULE_1F1B)
        diag_input(check->diag, place,
            "schedule %s has one model chunk a stage; take 1F1B, which is interleaved then, or "
            "ZBVZeroBubble",
            pipeline_schedule_names[options->schedule]);
    else if (options->virtual_stages > 1 && batch.micro_batches % options->pipeline != 0)
        diag_input(check->diag, place,
            "interleaved stages take micro-batches in groups of %lld, which do not divide the %lld "
            "of a step; take another batch",
            (long long)options->pipeline, (long long)batch.micro_batches);
    if (batch.last != check->options->train.micro_batch)
        diag_input(check->diag, job_at(check, "train.micro_batch"),
            "micro-batches of %lld leave %lld sequences over, which a pipeline cannot; take a "
            "divisor of %lld",
            (long long)check->options->train.micro_batch, (long long)batch.last,
            (long long)batch.samples);
}

static void check_global_batch(const struct job_check *check)
{
    const struct train_options *train = &check->options->train;
    int64_t ranks = strategy_data_ranks(&check->options->parallelism, check->gpus);
    int64_t below = train->global_batch / ranks * ranks, above = below + ranks;
    char less[32] = "";
    if (below > 0)
        snprintf(less, sizeof less, "%lld or ", (long long)below);
    if (train->global_batch % ranks != 0)
        diag_input(check->diag, job_at(check, "train.global_batch"),
            "%lld sequences do not divide over %lld ranks of data parallelism; take %s%lld",
            (long long)train->global_batch, (long long)ranks, less, (long long)above);
}

/* Ranks of experts take their part of those that shards are over. */
static bool check_shards(const struct job_check *check, int data)
{
    int copies = data / strategy_expert_axis(&check->options->parallelism);
    int shard = strategy_shard_ranks(check->options, check->hw, copies);
    if (shard >= 1 && copies % shard == 0)
        return true;
    diag_input(check->diag, job_at(check, "parallelism.expert"),
        "%lld expert ranks leave %d of data parallelism beside each other, which do not divide "
        "into shards of %d; take fewer expert ranks, or another fsdp.sharding_group_size",
        (long long)check->options->parallelism.model.expert, copies, shard);
    return false;
}

/* Instances of what is sharded have as many ranks each, of experts, too. */
static bool check_instances(const struct job_check *check, int data)
{
    const struct parallelism_options *parallel = &check->options->parallelism;
    int instances = megatron_instances(check->options);
    struct model_parallel cut = strategy_workload(check->options, check->model).parallel;
    int copies = data / strategy_expert_axis(parallel), before = check->diag->n_errors;
    if (check->options->kind != STRATEGY_MEGATRON || instances == 1)
        return true;
    struct source_pos place = job_at(check, "megatron.num_distributed_optimizer_instances");
    if (copies % instances != 0)
        diag_input(check->diag, place,
            "%d instances do not divide the %d ranks that hold the same parameters; take one of %s",
            instances, copies, divisors(copies).text);
    else if (model_expert_folds(&cut))
        diag_input(check->diag, place,
            "several instances are not simulated where experts are cut otherwise than the rest; "
            "take 1, or parallelism.expert_tensor as parallelism.tensor");
    return check->diag->n_errors == before;
}

bool strategy_check_parallelism(const struct strategy_options *options, const struct model *model,
    const struct hw *hw, int gpus, const struct strategy_places *places, struct diag *diag)
{
    const struct job_check check = {options, model, hw, gpus, places, diag};
    struct mesh mesh;
    if (!check_parallelism_check_ranks(&check))
        return false;
    int data = (int)strategy_data_ranks(&options->parallelism, gpus);
    if (!check_instances(&check, data))
        return false;
    int shard = strategy_shard_ranks(options, hw, data);
    if (shard < 1 || data % shard != 0) /* strategy_check() says so */
        return true;
    if (!check_shards(&check, data) || !check_order(&check, &mesh))
        return false;
    check_parallelism_check_groups(&check, &mesh);
    check_model_parallel(&check);
    check_global_batch(&check);
    if (options->parallelism.pipeline > 1) {
        check_parallelism_check_stages(&check);
        check_layers(&check);
    }
    if (options->parallelism.pipeline > 1 || options->parallelism.virtual_stages > 1)
        check_schedule(&check);
    return true;
}
