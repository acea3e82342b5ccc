/* The keys of a scenario: each a field with its place in struct scenario, type, bounds and help.
 *
 * These tables are the only list of settings. Reading, --set, sweeps, JSON, digests, the check of
 * unknown keys and `flopcast help settings` walk them. A field's help is what a user reads of it. A
 * key's alias is what Megatron-LM or torchtitan call it.
 *
 * Subtle: one array has two windows, as a file holds `sweep` and the lists as nodes and a point
 * holds texts. FILE_ONLY and POINT_ONLY count the fields at its ends, so the order of the first and
 * last entries matters. `run` of a stack profile is the last N_LAUNCHER fields of the run table.
 * Bounds keep products of sizes within int64. */
#include "scenario/file.h"

#include <stddef.h>

const char *const flops_formula_names[FLOPS_FORMULA_COUNT + 1] = {
    "model", "hardware", "parameters", NULL};

/* Beyond these a value is a slip of the pen, not an experiment; they also keep every size within
 * int64. */
enum {
    MAX_TOKENS = 1 << 24, /* of one sequence; the longest contexts trained so far are near 10^6 */
    MAX_BATCH = 1 << 20,
    MAX_INTERVAL = 1 << 12,
    MAX_RANK = 1 << 16,
    MAX_STAGES = 1 << 12,
    MAX_LAYERS = 1 << 12,
    MAX_IMBALANCE = 1 << 10,
    MAX_SPREAD = 10,
    MAX_SMS = 1 << 10,
    KILO_TOKENS = 1 << 10, /* a context of 8k is one of 8192 */
};

#define FIELD CONFIG_FIELD
#define TABLE(name, what, list) const struct config_table name = CONFIG_TABLE(what, list)

static const struct config_field cluster_fields[] = {
    {FIELD("topology", FIELD_PATH, struct scenario_cluster_options, topology,
         "cluster file under topologies/clusters, or the name of one, as h100-8x400g"),
        .files = FILES_CLUSTERS},
    {FIELD("gpus", FIELD_INT, struct scenario_cluster_options, gpus,
         "GPUs of the job, whole nodes beyond the first"),
        .min = 1, .max = STRATEGY_MAX_GPUS},
    {FIELD("degraded_links", FIELD_STRING, struct scenario_cluster_options, degraded_links,
        "links that lose capacity: name pattern=share left [at time since the first step, warm-up "
        "too], ...; 0: failed")},
    {FIELD("slow_gpus", FIELD_STRING, struct scenario_cluster_options, slow_gpus,
        "GPUs that compute more slowly: node3.gpu5=80 % of their speed [at time since the first "
        "step], node3=90 % of all GPUs of a node, ...")},
    {FIELD("node", FIELD_OVERRIDES, struct scenario_cluster_options, given.node,
         "every number of the node's file, as in cluster.node.nic_bandwidth=800Gb/s: see 'flopcast "
         "help nodes'"),
        .section = &hw_node_table},
    {FIELD("", FIELD_OVERRIDES, struct scenario_cluster_options, given.cluster,
         "every number of the cluster's file, as in cluster.nccl_channels=32: see 'flopcast help "
         "clusters'"),
        .section = &hw_cluster_table},
};
static TABLE(cluster_table, "'cluster'", cluster_fields);

#define TRAIN(key_, type_, member, help_) FIELD(key_, type_, struct train_options, member, help_)
static const struct config_field train_fields[] = {
    {TRAIN("micro_batch", FIELD_INT, micro_batch, "sequences a GPU computes on at once"),
        .alias = "micro_batch_size", .min = 1, .max = MAX_BATCH},
    {TRAIN("seq_len", FIELD_INT, seq_len,
         "tokens of a sequence, 8k: 8192; T5: of the encoder's side; images have their own"),
        .kilo = KILO_TOKENS, .min = 1, .max = MAX_TOKENS},
    {TRAIN("decoder_seq_len", FIELD_INT, decoder_seq_len,
         "T5: tokens of the decoder's side; seq_len where not given"),
        .kilo = KILO_TOKENS, .min = 1, .max = MAX_TOKENS},
    {TRAIN("document_mean", FIELD_NUMBER, documents.mean,
         "sequences are packed of documents, attention goes on within each: their mean length, "
         "tokens; log-normal, drawn anew for each sequence"),
        .min = 1, .max = MAX_TOKENS},
    {TRAIN("document_sd", FIELD_NUMBER, documents.sd,
         "standard deviation of these lengths, tokens; 0: all documents are alike"),
        .min = 0, .max = MAX_TOKENS},
    {TRAIN("document_lengths", FIELD_STRING, documents.lengths,
        "the same by a list: lengths, and weights other than 1, as in 512=3, 2048=1")},
    {TRAIN("document_packing", FIELD_ENUM, documents.packing,
         "what micro-batches of documents have alike: tokens, packed to a fixed sum, or the number "
         "of documents, so that tokens differ, and the slowest rank is waited for; memory is that "
         "of the mean"),
        .names = document_packing_names},
    {TRAIN("grad_accum", FIELD_INT, grad_accum, "micro-batches to an optimizer step"),
        .alias = "gradient_accumulation_steps", .min = 1, .max = STRATEGY_MAX_MICRO_STEPS},
    {TRAIN("device_batch", FIELD_INT, device_batch,
         "sequences of a GPU to an optimizer step, the last micro-batch what is left, none larger; "
         "default: micro_batch x grad_accum"),
        .alias = "local_batch_size", .min = 1, .max = MAX_BATCH},
    {TRAIN("global_batch", FIELD_INT, global_batch,
         "sequences of all GPUs to an optimizer step; device_batch is its share"),
        .alias = "global_batch_size", .min = 1, .max = 0x1p40},
    {TRAIN("precision", FIELD_ENUM, precision, "number formats of parameters and GEMMs"),
        .names = precision_names},
    {TRAIN("autocast", FIELD_BOOL, autocast,
        "mixed precision by torch.autocast around FP32 parameters, nothing else")},
    {TRAIN("optimizer", FIELD_ENUM, optimizer, "optimizer"), .names = optimizer_names},
    {TRAIN("optimizer_impl", FIELD_ENUM, optimizer_impl, "PyTorch's implementation of it"),
        .names = optimizer_impl_names},
    {TRAIN("muon_distributed", FIELD_BOOL, muon_distributed,
         "muon: each matrix is one rank's to orthogonalise; false: every rank's (Megatron-LM's "
         "dist_muon and muon)"),
        .when = "train.optimizer = muon"},
    {TRAIN("weight_decay", FIELD_BOOL, weight_decay,
         "SGD decays the weights in a separate pass; AdamW and Lion always do"),
        .when = "train.optimizer = sgd | sgd_momentum"},
    {TRAIN("activation_checkpointing", FIELD_ENUM, activation_checkpointing,
         "what is recomputed in backward"),
        .names = checkpointing_names},
    {TRAIN("recompute_modules", FIELD_STRING, recompute_modules,
        "parts of blocks that are recomputed by themselves, out of core_attn, moe, layernorm, "
        "moe_act, mla_up_proj, mlp and shared_experts, as in moe_act,layernorm (Megatron-LM)")},
    {TRAIN("checkpoint_interval", FIELD_INT, checkpoint_interval,
         "every n-th block is checkpointed; 1: all"),
        .when = "train.activation_checkpointing = full | selective | core_attn",
        .alias = "recompute_every", .min = 1, .max = MAX_INTERVAL},
    {TRAIN("recompute_method", FIELD_ENUM, recompute_method,
         "full checkpointing: all blocks in units of recompute_num_layers, or that many of a model "
         "chunk (Megatron-LM)"),
        .names = recompute_method_names},
    {TRAIN("recompute_num_layers", FIELD_INT, recompute_num_layers,
         "blocks of a unit, or that are checkpointed"),
        .when = "train.activation_checkpointing = full | selective", .min = 1, .max = MAX_LAYERS},
    {TRAIN("checkpoint_early_stop", FIELD_BOOL, checkpoint_early_stop,
        "recomputation ends with the last tensor that backward needs (PyTorch 2.1, "
        "use_reentrant=False)")},
    {TRAIN("attention", FIELD_ENUM, attention,
         "attention kernels; where nothing says it flash from Ampere on, naive on older GPUs, in "
         "fp32 and tf32"),
        .names = attention_kernel_names},
    {TRAIN("cross_entropy", FIELD_ENUM, cross_entropy, "kernels of the loss"),
        .names = cross_entropy_names},
    {TRAIN("fusion", FIELD_ENUM, fusion,
         "torch.compile: inductor; flash_attn: its kernels for norms and rotary positions "
         "(nanotron); transformer_engine: Megatron-Core's"),
        .names = kernel_fusion_names},
    {TRAIN("rotary", FIELD_ENUM, rotary,
         "rotary positions: by rotate_half, or by a product of complex numbers in FP32 "
         "(torchtitan), or unfused where the stack has a kernel (Megatron-LM's --no-rope-fusion)"),
        .names = rotary_names},
    {TRAIN("fp8_recipe", FIELD_ENUM, fp8_recipe,
         "fp8_mixed: TransformerEngine's delayed scaling, or by block on Blackwell (mxfp8), or "
         "torchao's by tensor or by row"),
        .names = fp8_recipe_names},
    {TRAIN("expert_kernels", FIELD_ENUM, expert_kernels,
         "mixture of experts: one kernel for all products, or a loop"),
        .when = "model = experts", .names = expert_kernel_names},
    {TRAIN("moe_token_dispatcher_type", FIELD_ENUM, moe_token_dispatcher_type,
         "expert parallelism: how tokens come to their experts, as in Megatron-LM"),
        .when = "model = shared experts", .names = token_dispatcher_names},
    {TRAIN("expert_routing", FIELD_ENUM, expert_routing,
         "expert parallelism: balanced, as benchmarks force it, or learned: loads of experts are "
         "drawn, block by block, as a trained router has them, unless expert_imbalance or "
         "expert_spread says otherwise"),
        .when = "model = shared experts", .names = expert_routing_names},
    {TRAIN("expert_imbalance", FIELD_NUMBER, expert_imbalance,
         "expert parallelism: tokens of the busiest GPU's experts over the mean; 1: balanced"),
        .when = "model = shared experts", .min = 1, .max = MAX_IMBALANCE},
    {TRAIN("expert_spread", FIELD_NUMBER, expert_spread,
         "expert parallelism: draws it block by block, from log-normal shares of experts with this "
         "log-standard deviation; 0: no draw"),
        .when = "model = shared experts", .min = 0, .max = MAX_SPREAD},
    {TRAIN("expert_seed", FIELD_INT, expert_seed, "of that draw"), .min = 0, .max = MAX_TOKENS},
    {TRAIN("moe_flex_dispatcher_backend", FIELD_ENUM, moe_flex_dispatcher_backend,
         "expert parallelism, dispatcher flex: whose kernels move tokens"),
        .when = "train.moe_token_dispatcher_type = flex", .names = flex_backend_names},
    {TRAIN("moe_deepep_num_sms", FIELD_INT, moe_deepep_num_sms, "SMs of DeepEP's kernels"),
        .min = 1, .max = MAX_SMS},
    {TRAIN("moe_hybridep_num_sms", FIELD_INT, moe_hybridep_num_sms, "SMs of HybridEP's"), .min = 1,
        .max = MAX_SMS},
    {TRAIN("moe_expert_capacity_factor", FIELD_NUMBER, moe_expert_capacity_factor,
         "an expert drops what is more than this times its mean of a GPU's tokens; 0: drops "
         "nothing"),
        .min = 0, .max = MAX_IMBALANCE},
    {TRAIN("moe_pad_expert_input_to_capacity", FIELD_BOOL, moe_pad_expert_input_to_capacity,
         "and takes no fewer, so that GPUs exchange no counts of tokens and hosts wait for none"),
        .when = "train.moe_expert_capacity_factor > 0"},
    {TRAIN("moe_router_padding_for_quantization", FIELD_BOOL, moe_router_padding_for_quantization,
         "experts in FP8 or NVFP4: the router fills up their rows to a multiple of 16; else "
         "TransformerEngine's Fp8Padding copies all of them into place and back, as Megatron-LM "
         "does by default"),
        .when = "train.precision = fp8_mixed | fp4_mixed & model = experts"},
    {TRAIN("moe_shared_expert_overlap", FIELD_BOOL, moe_shared_expert_overlap,
         "expert parallelism: the shared expert runs beside dispatch and combine"),
        .when = "model = shared experts"},
    {TRAIN("moe_permute_fusion", FIELD_BOOL, moe_permute_fusion,
         "grouped experts: TransformerEngine's kernels put rows into the order of experts and "
         "back; else PyTorch's, which take five times as long, as Megatron-LM does by default"),
        .when = "model = experts"},
    {TRAIN("activation_func_fp8_input_store", FIELD_BOOL, activation_func_fp8_input_store,
         "TransformerEngine's SwiGLU keeps its input in FP8 for the backward pass, as "
         "Megatron-LM's option of that name"),
        .when = "train.fusion = transformer_engine"},
    {TRAIN("cpu_offloading_num_layers", FIELD_INT, cpu_offloading_num_layers,
         "activations of the first blocks, as many, are copied to host memory and back, as "
         "TransformerEngine does for Megatron-LM's option of that name"),
        .min = 0, .max = 1 << 20},
    {TRAIN("cuda_graphs", FIELD_ENUM, cuda_graphs,
         "what is a CUDA graph, which costs the host one launch: layer, each pass through a block "
         "(Megatron-LM's --cuda-graph-impl local, transformer_engine, torch.compile's mode "
         "reduce-overhead); full_iteration, forward and backward passes of a step (strategy "
         "megatron)"),
        .names = cuda_graphs_names},
    {TRAIN("moe_aux_loss", FIELD_BOOL, moe_aux_loss,
         "mixture of experts: the loss that balances them, of Megatron-LM's "
         "moe_router_load_balancing_type aux_loss"),
        .when = "model = experts"},
    {TRAIN("memory_format", FIELD_ENUM, memory_format, "layout of images in memory"),
        .when = "model = images", .names = image_format_names},
    {TRAIN("decode_images", FIELD_BOOL, decode_images,
        "the host decodes the images of each batch in the node's image_time (steady after four "
        "warm-up steps); else batches lie ready")},
    {TRAIN("use_cache", FIELD_BOOL, use_cache,
        "Hugging Face's use_cache: decoder keys and values are kept through the step")},
    {TRAIN("neftune", FIELD_BOOL, neftune, "NEFTune: noise is added to the embeddings")},
    {TRAIN("lora_rank", FIELD_INT, lora_rank,
         "rank of LoRA's adapters on a frozen model; 0: everything is trained"),
        .min = 0, .max = MAX_RANK},
    {TRAIN("lora_targets", FIELD_STRING, lora_targets,
        "linear layers that have adapters, as in q_proj,v_proj; all of the blocks where not "
        "given")},
    {TRAIN("qlora", FIELD_BOOL, qlora,
        "the frozen matrices of the blocks lie in 4 bits (NF4), the rest in FP32")},
    {TRAIN("clip_grad_norm", FIELD_BOOL, clip_grad_norm,
         "gradients are clipped by their norm (clip_grad_norm_; DeepSpeed's step does it)"),
        .when = "strategy = fsdp | ddp | single_device"},
    {TRAIN("drop_logits", FIELD_BOOL, drop_logits,
        "the training loop deletes the logits before backward")},
    {TRAIN("compiled", FIELD_ENUM, compiled,
         "fusion inductor: torch.compile of the whole model with its loss, or of each block by "
         "itself"),
        .when = "train.fusion = inductor", .names = compiled_part_names},
};
static TABLE(train_table, "'train'", train_fields);

#define PARALLEL(key_, type_, member, help_)                                                       \
    FIELD(key_, type_, struct parallelism_options, member, help_)
static const struct config_field parallelism_fields[] = {
    {PARALLEL("tensor", FIELD_INT, model.tensor,
         "ranks that share the heads, feed-forward layers and vocabulary"),
        .alias = "tensor_model_parallel_size", .min = 1, .max = MAX_STAGES},
    {PARALLEL("sequence", FIELD_BOOL, model.sequence,
         "norms, dropout and residuals are shared by the tensor ranks, too, each has its part of "
         "the sequence"),
        .alias = "sequence_parallel"},
    {PARALLEL("tensor_overlap", FIELD_ENUM, model.tensor_overlap,
         "async: collectives of tensor parallelism run beside products in backward (Megatron-LM); "
         "user_buffers, micro_pipeline: others in pieces, too (TransformerEngine's "
         "tp_comm_overlap; torch.compile's async TP)"),
        .names = tensor_overlap_names},
    {PARALLEL("context", FIELD_INT, model.context, "ranks that share each sequence"),
        .alias = "context_parallel_size", .min = 1, .max = MAX_STAGES},
    {PARALLEL("context_kind", FIELD_ENUM, model.context_kind,
         "how attention sees all of it: a ring, gathered keys and values, or all_to_all (Ulysses); "
         "ring_allgather and ring_alltoall: PyTorch's context_parallel(), by its rotate method"),
        .alias = "cp_comm_type", .names = context_parallel_names},
    {PARALLEL("pipeline", FIELD_INT, pipeline,
         "stages of a pipeline, each of some blocks (strategies megatron, nanotron, deepspeed and "
         "fsdp)"),
        .alias = "pipeline_model_parallel_size", .min = 1, .max = MAX_STAGES},
    {PARALLEL("virtual", FIELD_INT, virtual_stages,
         "model chunks of a stage, whose 1F1B is interleaved; of schedules in a V 2"),
        .min = 1, .max = MAX_STAGES},
    {PARALLEL("schedule", FIELD_ENUM, schedule, "order of a stage's micro-batches"),
        .when = "parallelism.pipeline > 1", .names = pipeline_schedule_names},
    {PARALLEL("first_layers", FIELD_INT, first_layers,
         "blocks of the pipeline's first model chunk; -1: as many as of others"),
        .alias = "decoder_first_pipeline_num_layers", .min = -1, .max = MAX_LAYERS},
    {PARALLEL("last_layers", FIELD_INT, last_layers,
         "blocks of its last model chunk; -1: as many as of others"),
        .alias = "decoder_last_pipeline_num_layers", .min = -1, .max = MAX_LAYERS},
    {PARALLEL("partition_method", FIELD_ENUM, partition_method,
         "how blocks go to the stages of a pipeline: evenly, by their cost and the head's "
         "(nanotron), filled up (DeepSpeed), or as torchtitan splits them, to mid 2025 and after"),
        .names = partition_method_names},
    {PARALLEL("p2p_metadata", FIELD_BOOL, p2p_metadata,
        "what a stage sends is described by two messages before it, for which the host waits "
        "(nanotron)")},
    {PARALLEL("pipe_partitioned", FIELD_BOOL, pipe_partitioned,
        "each tensor rank sends a part, of what it made it keeps no more, and both sides gather it "
        "again (DeepSpeed)")},
    {PARALLEL("p2p_poll", FIELD_NUMBER, p2p_poll_s,
         "for each of these the host sleeps this long between looks (nanotron until December 2024: "
         "100 ms)"),
        .dimension = DIM_SECONDS, .min = 0, .max = 3600},
    {PARALLEL("overlap_p2p_comm", FIELD_BOOL, overlap_p2p_comm,
        "messages between stages run beside kernels, as in a V they always do; else a stage stops "
        "for each")},
    {PARALLEL("batch_p2p_sync", FIELD_BOOL, batch_p2p_sync,
        "without overlap_p2p_comm the host waits for each message, too (Megatron's default)")},
    {PARALLEL(
         "expert", FIELD_INT, model.expert, "ranks of data parallelism that share the experts"),
        .alias = "expert_model_parallel_size", .min = 1, .max = MAX_STAGES},
    {PARALLEL("expert_tensor", FIELD_INT, model.expert_tensor,
         "ranks that share each expert; 0: the tensor ranks"),
        .alias = "expert_tensor_parallel_size", .min = 0, .max = MAX_STAGES},
    {PARALLEL("scatter_gather", FIELD_BOOL, scatter_gather,
         "without sequence each tensor rank sends a part of what the next stage gathers "
         "(Megatron-LM in 2021)"),
        .alias = "scatter_gather_tensors_in_pipeline"},
    {PARALLEL("order", FIELD_STRING, order,
        "axes of the ranks, neighbours first, as in tp-cp-ep-dp-pp (Megatron) or tp-cp-ep-pp-dp")},
    {PARALLEL("merge_outputs", FIELD_BOOL, merge_outputs,
         "the last stage of a pipeline keeps the logits of all micro-batches and joins them at the "
         "end of a step (torch.distributed.pipelining)"),
        .when = "parallelism.pipeline > 1"},
    {PARALLEL("gather_dim", FIELD_INT, model.gather_dim,
         "sequence: the dimension that tensor ranks gather and reduce-scatter; 1: samples come "
         "first (DTensor's Shard(1)), so that each has a copy beside it"),
        .when = "parallelism.sequence = true", .min = 0, .max = 1},
    {PARALLEL("context_sequential", FIELD_BOOL, model.context_sequential,
         "ring_allgather, ring_alltoall: GPUs have parts of the sequence in order "
         "(enable_load_balance off), so that the last one has most of a causal mask; else all have "
         "as much"),
        .when = "parallelism.context_kind = ring_allgather | ring_alltoall"},
};
static TABLE(parallelism_table, "'parallelism'", parallelism_fields);

#define HOST(key_, member, dimension_, most, help_)                                                \
    {FIELD(key_, FIELD_NUMBER, struct host_options, member, help_), .dimension = dimension_,       \
        .min = 0, .max = most},
static const struct config_field scenario_host_fields[] = {HOST_COSTS(HOST)};
TABLE(scenario_host_table, "'host'", scenario_host_fields);

#define NOISE(key_, help_)                                                                         \
    {                                                                                              \
        FIELD(#key_, FIELD_NUMBER, struct noise_options, key_,                                     \
            help_ "; the cluster's where not given"),                                              \
            .dimension = DIM_FRACTION, .min = 0, .max = 1                                          \
    }
#define PAUSE(key_, member_, help_)                                                                \
    {                                                                                              \
        FIELD(key_, FIELD_NUMBER, struct noise_options, member_, help_), .dimension = DIM_SECONDS, \
                                                                         .min = 0, .max = 1e6      \
    }
static const struct config_field noise_fields[] = {
    NOISE(gpu_speed_spread, "persistent, per GPU: relative standard deviation of speed at the "
                            "power limit; 0: GPUs are alike"),
    NOISE(gpu_speed_spread_below, "the same of compute below the power limit"),
    NOISE(kernel_jitter, "per kernel: log-standard deviation of its duration"),
    NOISE(network_jitter, "per collective and link between nodes: log-standard deviation of its "
                          "duration; the slowest link decides"),
    NOISE(host_jitter, "of a host burst of 1 ms: log-standard deviation"),
    NOISE(straggler_share,
        "probability that a host is slow (a node; of a rack a tray), where GPUs differ at all "
        "(gpu_speed_spread); a point is the mean"),
    NOISE(straggler_slowdown, "by how much longer kernels take on a slow host"),
    PAUSE("host_pause", host_pause_s,
        "garbage collection in Python: how long a rank's host thread stands still"),
    PAUSE("host_pause_interval", host_pause_interval_s,
        "time between two such pauses of a rank, in the mean"),
    {FIELD("drawn_speeds", FIELD_BOOL, struct noise_options, drawn_speeds,
        "speeds of GPUs are drawn one by one, not those of the typical cluster")},
};
static TABLE(noise_table, "'noise'", noise_fields);

static const struct config_field run_fields[] = {
    {FIELD("steps", FIELD_INT, struct exec_options, steps, "measured steps"), .min = 1,
        .max = EXEC_MAX_STEPS},
    {FIELD("warmup_steps", FIELD_INT, struct exec_options, warmup_steps,
         "steps run before, not measured; noise begins three quarters through the last"),
        .min = 0, .max = EXEC_MAX_STEPS},
    {FIELD("seed", FIELD_INT, struct exec_options, seed, "of all random streams"), .min = 0,
        .max = 0x1p62},
    {FIELD("fold", FIELD_ENUM, struct exec_options, fold,
         "simulate one rank for all where they are alike, and of a large job with noise the nodes "
         "of the slowest GPUs; slowest: those of any with noise"),
        .names = exec_fold_names},
    {FIELD("expandable_segments", FIELD_BOOL, struct exec_options, allocator.expandable_segments,
        "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True")},
    {FIELD("max_split_size_mb", FIELD_INT, struct exec_options, allocator.max_split_size_mb,
         "PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:N, MiB above 20; 0: not set"),
        .min = 0, .max = 0x1p30},
    {FIELD("garbage_collection_threshold", FIELD_NUMBER, struct exec_options,
         allocator.garbage_collection_threshold,
         "PYTORCH_CUDA_ALLOC_CONF=garbage_collection_threshold:X; 0: not set. It needs "
         "memory_fraction"),
        .when = "run.memory_fraction > 0", .dimension = DIM_FRACTION, .min = 0, .max = 1},
    {FIELD("memory_fraction", FIELD_NUMBER, struct exec_options, allocator.memory_fraction,
         "torch.cuda.set_per_process_memory_fraction; 0: not set"),
        .dimension = DIM_FRACTION, .min = 0, .max = 1},
};
static TABLE(run_table, "'run'", run_fields);
/* What a framework's launcher decides: PyTorch's allocator, the last of them. */
enum { N_RUN = sizeof run_fields / sizeof *run_fields, N_LAUNCHER = 4 };
static const struct config_table launcher_table = {
    .what = "'run' of a stack", .fields = run_fields + N_RUN - N_LAUNCHER, .n_fields = N_LAUNCHER};

static const struct config_field report_fields[] = {
    {FIELD("flops_formula", FIELD_ENUM, struct scenario, flops_formula,
         "which flop count tflops_per_gpu uses"),
        .names = flops_formula_names},
    {FIELD("attention_flop", FIELD_ENUM, struct scenario, attention_flop,
         "which pairs of causal attention TFLOPS count: what the mask leaves, or all; MFU and HFU "
         "count causal"),
        .names = attention_flop_names},
};
static TABLE(report_table, "'report'", report_fields);

static const struct config_field published_fields[] = {
    {FIELD(
        "file", FIELD_PATH, struct scenario_published_options, file, "CSV of published figures")},
    {FIELD("figure", FIELD_STRING, struct scenario_published_options, figure,
        "its rows with this value in column 'figure'")},
    {FIELD("readings", FIELD_STRING, struct scenario_published_options, readings,
        "swept settings that the publication leaves open, as 'train.precision, train.optimizer': a "
        "table of `flopcast run` has the points of their first values, and of the others the "
        "range")},
};
static TABLE(published_table, "'published'", published_fields);

#define SECTION(key_, member, table, help_)                                                        \
    {                                                                                              \
        FIELD(key_, FIELD_SECTION, struct scenario, member, help_), .section = &(table)            \
    }

#define STRATEGY_SECTION(key_, name, help_) SECTION(key_, strategy.name, name##_table, help_),

/* What a framework decides. */
#define FRAMEWORK_FIELDS                                                                           \
    SECTION("train", strategy.train, train_table, "batch, lengths, precision, optimizer"),         \
        SECTION("parallelism", strategy.parallelism, parallelism_table,                            \
            "degrees of parallelism other than of data"),                                          \
        {FIELD("strategy", FIELD_ENUM, struct scenario, strategy.kind,                             \
             "parallel strategy; zero1 to zero3: deepspeed of that stage, fsdp2: fsdp of version " \
             "2, FULL_SHARD and "                                                                  \
             "such: fsdp with that sharding_strategy"),                                            \
            .names = strategy_names},                                                              \
        STRATEGY_SECTIONS(STRATEGY_SECTION) /* of all strategies */                                \
        SECTION("host", strategy.host, scenario_host_table, "costs of the host thread")

/* One array, two windows on it. A file holds 'sweep' and the lists 'measured' and 'assumptions' as
 * nodes; a point has put the sweep's values in and keeps the assumptions as one text; what was
 * measured is the set's. */
static const struct config_field scenario_fields[] = {
    {FIELD("sweep", FIELD_NODE, struct scenario_file, sweep,
        "axes, crossed; keys of one axis go together")},
    {FIELD("measured", FIELD_NODE, struct scenario_file, measured,
        "what you measured of this job, as in - cluster.gpus=8: 9250 tokens/s (--measured of "
        "'flopcast run')")},
    {FIELD("assumptions", FIELD_NODE, struct scenario_file, assumptions,
        "what the source leaves open, in words")},
    {FIELD("name", FIELD_STRING, struct scenario, name, "of the scenario"), .required = true},
    {FIELD("description", FIELD_STRING, struct scenario, description, "what it is for")},
    {FIELD("model", FIELD_PATH, struct scenario, model_path,
         "model file, or the name of one of scenarios/models, as llama3.1-8b, or Hugging Face "
         "config.json"),
        .files = FILES_MODELS},
    {FIELD("max_positions", FIELD_INT, struct scenario, max_positions,
         "rows of learned positions, in place of the model file's"),
        .min = 1, .max = 1 << 20},
    {FIELD("force", FIELD_BOOL, struct scenario, force,
        "read a config.json of Hugging Face although it has keys that change the model and are not "
        "known here")},
    {FIELD("stack", FIELD_PATH, struct scenario, stack_path,
         "stack profile of the framework, under scenarios/stacks, or the name of one, as "
         "torchtitan"),
        .files = FILES_STACKS},
    SECTION("cluster", cluster, cluster_table, "hardware"),
    {FIELD("gpu", FIELD_OVERRIDES, struct scenario, cluster.given.gpu,
         "every number of the GPU's file, as in gpu.hbm_capacity=96GiB: see 'flopcast help gpus'"),
        .section = &hw_gpu_table},
    FRAMEWORK_FIELDS,
    SECTION("noise", exec.noise, noise_table, "variation; the cluster's own where not given"),
    SECTION("run", exec, run_table, "steps, seed"),
    SECTION("goodput", goodput, goodput_table,
        "failures, checkpoints and restarts, for `flopcast goodput`"),
    {FIELD("report", FIELD_SECTION, struct scenario, name, "how results are counted"),
        .section = &report_table},
    SECTION("published", published, published_table, "figures to compare with"),
    {FIELD("assumptions", FIELD_STRING, struct scenario, assumptions,
        "what the source leaves open, in words")},
};
enum { N_FIELDS = sizeof scenario_fields / sizeof *scenario_fields, FILE_ONLY = 3, POINT_ONLY = 1 };
_Static_assert(offsetof(struct scenario_file, options) == 0,
    "both tables use offsets from the start of struct scenario");
_Static_assert(
    offsetof(struct scenario, name) == 0, "'report' has its field in struct scenario itself");

const struct config_table scenario_file_table = {
    "a scenario", scenario_fields, N_FIELDS - POINT_ONLY, .unmodelled = parallelism_elsewhere};
const struct config_table scenario_table = {"a scenario", scenario_fields + FILE_ONLY,
    N_FIELDS - FILE_ONLY, .unmodelled = parallelism_elsewhere};

static const struct config_field framework_fields[] = {
    FRAMEWORK_FIELDS,
    SECTION("run", exec, launcher_table, "what its launcher sets: PyTorch's allocator"),
};
const struct config_table scenario_framework_table = {"the settings of a stack", framework_fields,
    sizeof framework_fields / sizeof *framework_fields, .unmodelled = parallelism_elsewhere};

const char *scenario_key_path(const char *path, struct arena *arena)
{
    return config_key_path(&scenario_table, hw_override_path(path, arena), arena);
}
