/* Section parallelism (base/settings.h): Megatron's and torchtitan's degrees. Ranks = tensor x
 * context x pipeline x data; experts are over ranks of data parallelism, which hold different
 * samples and different experts. */
#define SETTINGS_OF parallelism_options

/* Members of struct model_parallel: model/model.h. */
SETTING_IN(INT, "tensor", model.tensor, 1,
    "ranks that share the heads, feed-forward layers and vocabulary",
    .alias = "tensor_model_parallel_size", .min = 1, .max = SETTING_MAX_STAGES)
SETTING_IN(BOOL, "sequence", model.sequence, false,
    "norms, dropout and residuals are shared by the tensor ranks, too, each has its part of the "
    "sequence",
    .alias = "sequence_parallel")
SETTING_IN(ENUM, "tensor_overlap", model.tensor_overlap, TENSOR_ASYNC,
    "async: collectives of tensor parallelism run beside products in backward (Megatron-LM); "
    "user_buffers, micro_pipeline: others in pieces, too (TransformerEngine's tp_comm_overlap; "
    "torch.compile's async TP)",
    .names = tensor_overlap_names)
SETTING_IN(INT, "context", model.context, 1, "ranks that share each sequence",
    .alias = "context_parallel_size", .min = 1, .max = SETTING_MAX_STAGES)
SETTING_IN(ENUM, "context_kind", model.context_kind, 0,
    "how attention sees all of it: a ring, gathered keys and values, or all_to_all (Ulysses); "
    "ring_allgather and ring_alltoall: PyTorch's context_parallel(), by its rotate method",
    .alias = "cp_comm_type", .names = context_parallel_names)
SETTING(INT, pipeline, 1,
    "stages of a pipeline, each of some blocks (strategies megatron, nanotron, deepspeed and fsdp)",
    .alias = "pipeline_model_parallel_size", .min = 1, .max = SETTING_MAX_STAGES)
SETTING_AS(INT, "virtual", virtual_stages, 1,
    "model chunks of a stage, whose 1F1B is interleaved; of schedules in a V 2", .min = 1,
    .max = SETTING_MAX_STAGES)
SETTING(ENUM, schedule, 0, "order of a stage's micro-batches", .when = "parallelism.pipeline > 1",
    .names = pipeline_schedule_names)
SETTING(INT, first_layers, -1,
    "blocks of the pipeline's first model chunk; -1: as many as of others",
    .alias = "decoder_first_pipeline_num_layers", .min = -1, .max = SETTING_MAX_LAYERS)
SETTING(INT, last_layers, -1, "blocks of its last model chunk; -1: as many as of others",
    .alias = "decoder_last_pipeline_num_layers", .min = -1, .max = SETTING_MAX_LAYERS)
SETTING(ENUM, partition_method, 0,
    "how blocks go to the stages of a pipeline: evenly, by their cost and the head's (nanotron), "
    "filled up (DeepSpeed), or as torchtitan splits them, to mid 2025 and after",
    .names = partition_method_names)
/* This and what follows to batch_p2p_sync: see strategy/pipeline.h. */
SETTING(BOOL, p2p_metadata, false,
    "what a stage sends is described by two messages before it, for which the host waits "
    "(nanotron)")
SETTING(BOOL, pipe_partitioned, false,
    "each tensor rank sends a part, of what it made it keeps no more, and both sides gather it "
    "again (DeepSpeed)")
SETTING_AS(NUMBER, "p2p_poll", p2p_poll_s, 0,
    "for each of these the host sleeps this long between looks (nanotron until December 2024: 100 "
    "ms)",
    .dimension = DIM_SECONDS, .min = 0, .max = 3600)
SETTING(BOOL, overlap_p2p_comm, false,
    "messages between stages run beside kernels, as in a V they always do; else a stage stops for "
    "each")
SETTING(BOOL, batch_p2p_sync, true,
    "without overlap_p2p_comm the host waits for each message, too (Megatron's default)")
SETTING_IN(INT, "expert", model.expert, 1, "ranks of data parallelism that share the experts",
    .alias = "expert_model_parallel_size", .min = 1, .max = SETTING_MAX_STAGES)
SETTING_IN(INT, "expert_tensor", model.expert_tensor, 0,
    "ranks that share each expert; 0: the tensor ranks", .alias = "expert_tensor_parallel_size",
    .min = 0, .max = SETTING_MAX_STAGES)
/* scatter_gather_tensors_in_pipeline of the paper of Megatron-LM of 2021. */
SETTING(BOOL, scatter_gather, false,
    "without sequence each tensor rank sends a part of what the next stage gathers (Megatron-LM in "
    "2021)",
    .alias = "scatter_gather_tensors_in_pipeline")
/* See mesh/mesh.h; NULL: mesh_order_default. */
SETTING(STRING, order, NULL,
    "axes of the ranks, neighbours first, as in tp-cp-ep-dp-pp (Megatron) or tp-cp-ep-pp-dp")
/* See strategy/pipeline.h. */
SETTING(BOOL, merge_outputs, false,
    "the last stage of a pipeline keeps the logits of all micro-batches and joins them at the end "
    "of a step (torch.distributed.pipelining)",
    .when = "parallelism.pipeline > 1")
SETTING_IN(INT, "gather_dim", model.gather_dim, 0,
    "sequence: the dimension that tensor ranks gather and reduce-scatter; 1: samples come first "
    "(DTensor's Shard(1)), so that each has a copy beside it",
    .when = "parallelism.sequence = true", .min = 0, .max = 1)
SETTING_IN(BOOL, "context_sequential", model.context_sequential, false,
    "ring_allgather, ring_alltoall: GPUs have parts of the sequence in order (enable_load_balance "
    "off), so that the last one has most of a causal mask; else all have as much",
    .when = "parallelism.context_kind = ring_allgather | ring_alltoall")

#undef SETTINGS
#undef SETTINGS_OF
