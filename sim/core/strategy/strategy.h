/* Strategies are compilers: model + training options + cluster -> plan. None of them sees the
 * engine. */
#ifndef FLOPCAST_STRATEGY_STRATEGY_H
#define FLOPCAST_STRATEGY_STRATEGY_H

#include "base/settings.h"
#include "config/config.h"
#include "hw/hw.h"
#include "mesh/mesh.h"
#include "model/model.h"
#include "plan/plan.h"
#include "strategy/optimizer.h"
#include "strategy/schedule.h"

enum precision {
    PRECISION_FP32,        /* everything FP32, no tensor cores */
    PRECISION_TF32,        /* FP32 storage, GEMMs in TF32 (torch.backends.cuda.matmul.allow_tf32) */
    PRECISION_BF16_MIXED,  /* FP32 parameters and optimizer; FSDP MixedPrecision(param_dtype=bf16),
                              DDP autocast */
    PRECISION_FP16_MIXED,  /* the same with fp16 and gradient scaling */
    PRECISION_BF16,        /* pure BF16: parameters, gradients, optimizer state */
    PRECISION_BF16_MASTER, /* BF16 parameters and gradients; the optimizer keeps an FP32 copy and
                              steps in FP32 (InternEvo, Megatron) */
    PRECISION_FP8_MIXED,   /* as bf16_mixed, the linear layers of blocks in FP8 (TransformerEngine,
                              torchao) */
    PRECISION_FP4_MIXED, /* as bf16_mixed, the linear layers of blocks in NVFP4 (TransformerEngine)
                          */
    PRECISION_COUNT,
};
extern const char
    *const precision_names[PRECISION_COUNT + 1]; /* "fp32", "tf32", "bf16_mixed", "fp16_mixed",
                                            "bf16", "bf16_master", "fp8_mixed", "fp4_mixed" */

/* What a checkpointed block keeps for its backward pass: everything; its input; that and what
 * model_op.kept says; all but what is made within core attention (Megatron-LM's
 * --recompute-activations). */
enum checkpointing {
    CHECKPOINT_NONE,
    CHECKPOINT_FULL,
    CHECKPOINT_SELECTIVE,
    CHECKPOINT_CORE_ATTN,
    CHECKPOINT_COUNT
};
/* Those of blocks, whatever their attention: what searches go through. */
enum { CHECKPOINT_SEARCHED = CHECKPOINT_CORE_ATTN };
extern const char
    *const checkpointing_names[CHECKPOINT_COUNT + 1]; /* "none", "full", "selective", "core_attn" */

/* Megatron-LM's --recompute-method with --recompute-num-layers N, of full checkpointing. uniform:
 * the blocks of a model chunk in units of N, of which each keeps its input alone and runs again as
 * one before its backward pass. block: the first N blocks of a chunk, each alone; the others keep
 * everything. */
enum recompute_method { RECOMPUTE_UNIFORM, RECOMPUTE_BLOCK, RECOMPUTE_METHOD_COUNT };
/* What of a step is launched as CUDA graphs: nothing; each block (Megatron-LM's --cuda-graph-impl
 * local and transformer_engine with whole layers, before --enable-cuda-graph and
 * --external-cuda-graph; torch.compile's mode reduce-overhead); forward and backward as a whole
 * (its --cuda-graph-impl full_iteration). */
enum cuda_graphs {
    CUDA_GRAPHS_NONE,
    CUDA_GRAPHS_LAYER,
    CUDA_GRAPHS_FULL_ITERATION,
    CUDA_GRAPHS_COUNT
};
extern const char
    *const cuda_graphs_names[CUDA_GRAPHS_COUNT + 1]; /* "none", "layer", "full_iteration" */
extern const char
    *const recompute_method_names[RECOMPUTE_METHOD_COUNT + 1]; /* "uniform", "block" */

/* torch.memory_format of images and of what is made of them; the last: in 16-bit precisions only,
 * as NVIDIA's DeepLearningExamples have it. */
enum image_format {
    IMAGE_CONTIGUOUS,
    IMAGE_CHANNELS_LAST,
    IMAGE_CHANNELS_LAST_AMP,
    IMAGE_FORMAT_COUNT
};
extern const char
    *const image_format_names[IMAGE_FORMAT_COUNT +
                              1]; /* "contiguous", "channels_last", "channels_last_amp" */

/* Beyond these a setting is a slip of the pen, not an experiment; they also keep every size within
 * int64. */
enum {
    STRATEGY_MAX_GPUS = 1 << 24,
    SETTING_MAX_TOKENS = 1 << 24, /* of one sequence; the longest contexts so far are near 10^6 */
    SETTING_MAX_BATCH = 1 << 20,
    SETTING_MAX_INTERVAL = 1 << 12,
    SETTING_MAX_RANK = 1 << 16,
    SETTING_MAX_STAGES = 1 << 12,
    SETTING_MAX_LAYERS = 1 << 12,
    SETTING_MAX_IMBALANCE = 1 << 10,
    SETTING_MAX_SPREAD = 10,
    SETTING_MAX_SMS = 1 << 10,
    SETTING_KILO_TOKENS = 1 << 10, /* a context of 8k is one of 8192 */
};

struct train_options {
#define SETTINGS SETTING_MEMBER
#include "strategy/train_settings.h"
    struct document_options documents; /* of which sequences are packed; {0}: each is one */
};

enum sharding_strategy {
    FULL_SHARD,
    SHARD_GRAD_OP,
    NO_SHARD,
    HYBRID_SHARD,
    HYBRID_SHARD_ZERO2,
    SHARDING_COUNT
};
extern const char
    *const sharding_strategy_names[SHARDING_COUNT +
                                   1]; /* as in torch.distributed.fsdp; "_HYBRID_SHARD_ZERO2" */
enum backward_prefetch {
    BACKWARD_PRE,
    BACKWARD_POST,
    BACKWARD_PREFETCH_NONE,
    BACKWARD_PREFETCH_COUNT
};
extern const char *const backward_prefetch_names[BACKWARD_PREFETCH_COUNT +
                                                 1]; /* "BACKWARD_PRE", "BACKWARD_POST", "None" */
enum reduce_dtype { REDUCE_PARAM_DTYPE, REDUCE_FP32, REDUCE_BF16, REDUCE_FP16, REDUCE_DTYPE_COUNT };
extern const char
    *const reduce_dtype_names[REDUCE_DTYPE_COUNT + 1]; /* "param_dtype", "fp32", "bf16", "fp16" */

/* fully_shard's reshard_after_forward, as torchtitan's fsdp_reshard_after_forward says it: always,
 * never, or by default as the sharding strategy has it, and in a pipeline never. */
enum reshard_after_forward { RESHARD_DEFAULT, RESHARD_ALWAYS, RESHARD_NEVER, RESHARD_COUNT };
extern const char
    *const reshard_after_forward_names[RESHARD_COUNT + 1]; /* "default", "always", "never" */

struct fsdp_options {
#define SETTINGS SETTING_MEMBER
#include "strategy/fsdp_settings.h"
};

struct ddp_options {
#define SETTINGS SETTING_MEMBER
#include "strategy/ddp_settings.h"
};

struct host_options {
#define SETTINGS SETTING_MEMBER
#include "strategy/host_settings.h"
};
/* Their places in a list. */
enum {
#define SETTING_HOST_INDEX_AS(kind, key, member, ...) HOST_INDEX_##member,
#define SETTINGS SETTING_HOST_INDEX
#include "strategy/host_settings.h"
    STRATEGY_HOST_COSTS
};

struct zero_options {
#define SETTINGS SETTING_MEMBER
#include "strategy/zero_settings.h"
};
enum stage3_fetch { FETCH_TRACE, FETCH_BLOCKING, FETCH_COUNT };
extern const char
    *const stage3_fetch_names[FETCH_COUNT + 1]; /* "trace" (0.6 and later), "blocking" (before) */
enum overlap_comm { OVERLAP_NULL, OVERLAP_FALSE, OVERLAP_TRUE, OVERLAP_COUNT };
extern const char *const overlap_comm_names[OVERLAP_COUNT + 1]; /* "null", "false", "true" */

struct internevo_options {
#define SETTINGS SETTING_MEMBER
#include "strategy/internevo_settings.h"
};
/* Ranks of a zero1 group in a job. */
static inline int64_t internevo_zero1_size(const struct internevo_options *options, int64_t gpus)
{
    return options->zero1 <= 0 || options->zero1 > gpus ? gpus : options->zero1;
}

struct megatron_options {
#define SETTINGS SETTING_MEMBER
#include "strategy/megatron_settings.h"
};
enum moment_dtype { MOMENT_FP32, MOMENT_BF16, MOMENT_DTYPE_COUNT };
extern const char *const moment_dtype_names[MOMENT_DTYPE_COUNT + 1]; /* "fp32", "bf16" */
/* Each shards what those before it do, too. */
enum megatron_sharding { SHARD_NOTHING, SHARD_OPTIM, SHARD_OPTIM_GRADS, SHARD_OPTIM_GRADS_PARAMS };
extern const char *const megatron_outer_names[]; /* "no_shard", "optim" */
extern const char
    *const megatron_sharding_names[]; /* "no_shard", "optim", "optim_grads", "optim_grads_params" */

struct nanotron_options {
#define SETTINGS SETTING_MEMBER
#include "strategy/nanotron_settings.h"
};

/* One line a strategy: its kind, its name in scenarios, its hooks (strategy/emit.h). single_device:
 * a module that nothing wraps, on one GPU; PyTorch Lightning's name. */
#define STRATEGIES(X)                                                                              \
    X(STRATEGY_FSDP, "fsdp", fsdp_hooks)                                                           \
    X(STRATEGY_DDP, "ddp", ddp_hooks)                                                              \
    X(STRATEGY_DEEPSPEED, "deepspeed", zero_hooks)                                                 \
    X(STRATEGY_INTERNEVO, "internevo", internevo_hooks)                                            \
    X(STRATEGY_SINGLE_DEVICE, "single_device", single_device_hooks)                                \
    X(STRATEGY_MEGATRON, "megatron", megatron_hooks)                                               \
    X(STRATEGY_NANOTRON, "nanotron", nanotron_hooks)

#define STRATEGY_KIND(kind, name, hooks) kind,
enum strategy_kind { STRATEGIES(STRATEGY_KIND) STRATEGY_COUNT };
extern const char *const strategy_kind_names[STRATEGY_COUNT + 1];

/* What people call a strategy by a setting: the word, the strategy, the setting, its value. */
#define STRATEGY_WORDS(X)                                                                          \
    X("zero1", STRATEGY_DEEPSPEED, "deepspeed.zero_optimization.stage", "1")                       \
    X("zero2", STRATEGY_DEEPSPEED, "deepspeed.zero_optimization.stage", "2")                       \
    X("zero3", STRATEGY_DEEPSPEED, "deepspeed.zero_optimization.stage", "3")                       \
    X("fsdp1", STRATEGY_FSDP, "fsdp.version", "1")                                                 \
    X("fsdp2", STRATEGY_FSDP, "fsdp.version", "2")                                                 \
    X("FULL_SHARD", STRATEGY_FSDP, "fsdp.sharding_strategy", "FULL_SHARD")                         \
    X("SHARD_GRAD_OP", STRATEGY_FSDP, "fsdp.sharding_strategy", "SHARD_GRAD_OP")                   \
    X("HYBRID_SHARD", STRATEGY_FSDP, "fsdp.sharding_strategy", "HYBRID_SHARD")                     \
    X("NO_SHARD", STRATEGY_FSDP, "fsdp.sharding_strategy", "NO_SHARD")
struct strategy_word {
    const char *word;
    enum strategy_kind kind;
    const char *path, *value;
};
#define STRATEGY_ONE_WORD(word, kind, path, value) +1
enum { STRATEGY_WORD_COUNT = STRATEGY_WORDS(STRATEGY_ONE_WORD) };
extern const struct strategy_word strategy_words[STRATEGY_WORD_COUNT];
/* What setting 'strategy' takes: the kinds, then the words. A loaded point has a kind
 * (scenario/file.h). */
extern const char *const strategy_names[STRATEGY_COUNT + STRATEGY_WORD_COUNT + 1];
/* The word of that name; NULL: there is none, it may be a kind. */
const struct strategy_word *strategy_word(const char *name);

/* How blocks go to the model chunks of a pipeline. uniform: evenly. compute_costs (nanotron's
 * get_block_compute_costs()): a stage ends with the block whose cost passes its share of the sum,
 * where a block costs the elements of its matrices, and the head costs those of its matrix. So late
 * stages may have no block, and hand on what they get; differs: the head is the last stage's
 * wherever its cost would put it (nanotron then sends logits on), and there are no more stages than
 * blocks. type:transformer, type:transformer|embedding (DeepSpeed's PipelineModule): a block counts
 * 1, and with the second the table at either end, too; each stage is filled up to the least number
 * that stages can have at most (partition_balanced). There every stage has a block (differs). These
 * three: one model chunk a stage. split_points (torchtitan's generate_split_points(), to mid 2025):
 * evenly, what is left over goes one each to the chunks behind the first. weighted (its
 * generate_llm_fqn_per_model_part(), after that): embedding and head count as a block each, what is
 * left over goes one each to the first chunks. */
enum partition_method {
    PARTITION_UNIFORM,
    PARTITION_COMPUTE_COSTS,
    PARTITION_TRANSFORMER,
    PARTITION_TRANSFORMER_EMBEDDING,
    PARTITION_SPLIT_POINTS,
    PARTITION_WEIGHTED,
    PARTITION_METHOD_COUNT
};
extern const char
    *const partition_method_names[PARTITION_METHOD_COUNT + 1]; /* "uniform", "compute_costs",
                   "type:transformer", "type:transformer|embedding", "split_points", "weighted" */

struct parallelism_options {
#define SETTINGS SETTING_MEMBER
#include "strategy/parallelism_settings.h"
    struct model_parallel model; /* tensor, sequence, context, expert */
};

/* A section of settings that some strategy reads: its key, NAME of struct NAME_options, and what it
 * is. The strategy's file has its table, NAME_table, and its defaults, NAME_defaults. */
#define STRATEGY_SECTIONS(X)                                                                       \
    X("deepspeed", zero, "DeepSpeed")                                                              \
    X("internevo", internevo, "parallel.zero1 and hybrid_zero_optimizer of InternEvo")             \
    X("megatron", megatron, "data parallelism of Megatron-LM")                                     \
    X("nanotron", nanotron, "data parallelism and optimizer of nanotron")                          \
    X("fsdp", fsdp, "options of FSDP")                                                             \
    X("ddp", ddp, "options of DDP")
#define STRATEGY_MEMBER(key, name, help) struct name##_options name;
#define STRATEGY_SECTION_DECLARATION(key, name, help)                                              \
    extern const struct config_table name##_table;                                                 \
    extern const struct name##_options name##_defaults;
STRATEGY_SECTIONS(STRATEGY_SECTION_DECLARATION)

struct strategy_options {
    int kind; /* enum strategy_kind */
    struct parallelism_options parallelism;
    struct train_options train;
    STRATEGY_SECTIONS(STRATEGY_MEMBER)
    struct host_options host;
};

/* PyTorch's defaults. What a job is has none: micro_batch and lengths are 0. */
struct strategy_options strategy_default_options(void);
/* Whether the job's strategy reads this section. */
bool strategy_reads_section(const struct strategy_options *options, const char *section);
const char *strategy_label(
    const struct strategy_options *options); /* "FULL_SHARD", "DDP", "ZeRO-2" ... */

/* Experts take in ranks of data parallelism: those must be a multiple of it. */
int strategy_expert_axis(const struct parallelism_options *options);
/* The ranks as a mesh; *bad as mesh_build(). Only what check_parallelism.c lets through divides. */
bool strategy_mesh(struct mesh *out, const struct strategy_options *options, const struct hw *hw,
    int gpus, const char **bad);
/* Which parts of a block are recomputed by themselves, as bits; of core attention
 * activation_checkpointing can say so, too. The first name of the list that is no part's goes to
 * *unknown, NULL: none. */
unsigned strategy_recomputed_parts(const struct train_options *train, const char **unknown);
/* How many of a job's ranks are to share one copy of what is sharded. It may be more than there
 * are, or not divide them: strategy_check() refuses that. */
int strategy_shard_ranks(const struct strategy_options *options, const struct hw *hw, int ranks);
/* Whether train.clip_grad_norm decides, as with torch.nn.utils.clip_grad_norm_; else the strategy
 * always computes the norm. */
bool strategy_clips_by_option(const struct strategy_options *options);

/* Bytes of an element by precision: of parameters and gradients as they are kept, of what the
 * optimizer steps on and of its moments, of parameters as kernels see them. DeepSpeed keeps
 * param's, and step's beside them (arXiv 1910.02054). */
struct element_bytes {
    int64_t master, step, param;
};
struct element_bytes strategy_element_bytes(int precision);

/* What matrix products are in, those of linear layers where that differs (FP8). */
enum dtype strategy_math(const struct train_options *train);

/* Where each setting of a job stands, for messages: at(self, "train.precision"). */
struct strategy_places {
    struct source_pos (*at)(const void *self, const char *path);
    const void *self;
};

/* What cannot be done: options that exclude one another, or that the model or the hardware cannot
 * follow (a precision that the GPU lacks, a sharding group that does not divide the ranks, offload
 * in a node whose host memory nobody knows ...). Every mistake is reported, where it stands. model
 * NULL: what depends on it is left out. */
enum status strategy_check(const struct strategy_options *options, const struct model *model,
    const struct hw *hw, int gpus, const struct strategy_places *places, struct diag *diag);

/* The part of it about stages and ranks (strategy/check_parallelism.c). False: not even the ranks
 * can be laid out. */
bool strategy_check_parallelism(const struct strategy_options *options, const struct model *model,
    const struct hw *hw, int gpus, const struct strategy_places *places, struct diag *diag);

/* The batch of an optimizer step on a GPU: micro-batches of train.micro_batch sequences, the last
 * one of what is left. */
struct batch_plan {
    int64_t samples, micro_batches, last; /* sequences; their number; sequences of the last one */
};
struct batch_plan strategy_batch(const struct train_options *train);
/* How many there may be: each is a part of the plan, some 10^4 ops for a large model. */
enum { STRATEGY_MAX_MICRO_STEPS = 2048 };

/* Copies of what Megatron-FSDP shards. */
static inline int megatron_instances(const struct strategy_options *options)
{
    int64_t given = options->megatron.num_distributed_optimizer_instances;
    return given > 1 ? (int)given : 1;
}

/* Ranks that train on different samples. */
int64_t strategy_data_ranks(const struct parallelism_options *options, int64_t gpus);
/* device_batch of a given global_batch; where it does not divide, as strategy_check() says, it is
 * rounded up. */
void strategy_share_batch(struct strategy_options *options, int64_t gpus);

/* A micro-batch larger than the device's batch is that batch, as in
 * llmfoundry/utils/config_utils.py; whether it was. */
bool strategy_fit_micro_batch(struct train_options *train);

/* Whether loads of experts are drawn, block by block. */
bool strategy_draws_experts(const struct strategy_options *options);

/* The workload of a micro-batch (lengths, formats, how the model is cut). model may be NULL. */
struct model_workload strategy_workload(
    const struct strategy_options *options, const struct model *model);

/* A job, worked out: what options mean for a model on some ranks of the hardware. Options, model
 * and hardware are borrowed. */
struct job {
    const struct strategy_options *options;
    const struct model *model;
    const struct hw *hw;
    struct mesh mesh; /* AXIS_DP_SHARD: ranks that share one copy of what is sharded */
    struct batch_plan batch;
    struct model_workload workload; /* its math is what model FLOP/s are compared with */
    struct element_bytes element;
    bool folds; /* its plan is for exec alone: alike cells are held once (plan/fold.h) */
};

/* After strategy_check(). */
struct job strategy_job(const struct strategy_options *options, const struct model *model,
    const struct hw *hw, int gpus);

/* A pipeline: which blocks and ends a stage has. Blocks go to chunks by partition_method, where
 * that is uniform evenly but those that first_layers and last_layers say; which of the model's
 * chunks a stage has says schedule_place(). The array is in arena. */
struct model_stage strategy_stage(const struct job *job, int stage, struct arena *arena);
struct schedule strategy_schedule(const struct job *job, int stage);
/* What a rank of a stage (without a pipeline: 0) holds of the job's model: its blocks, and of these
 * its share of what tensor and expert parallelism cut; with the adapters. It may be the job's own;
 * else in arena. */
const struct model *strategy_rank_model(const struct job *job, int stage, struct arena *arena);

/* Compile one step of the job. Only here is known whether what is offloaded fits into host memory;
 * else it is the fault of gpus_at. */
enum status strategy_compile(struct plan *out, const struct job *job, struct source_pos gpus_at,
    struct arena *arena, struct diag *diag);

#endif
