/* Section train (base/settings.h). */
#define SETTINGS_OF train_options

/* Batches. grad_accum follows from device_batch, and is 1 (not said) or what follows. */
SETTING(INT, micro_batch, 0, "sequences a GPU computes on at once", .alias = "micro_batch_size",
    .min = 1, .max = SETTING_MAX_BATCH)
SETTING(INT, seq_len, 0,
    "tokens of a sequence, 8k: 8192; T5: of the encoder's side; images have their own",
    .kilo = SETTING_KILO_TOKENS, .min = 1, .max = SETTING_MAX_TOKENS)
SETTING(INT, decoder_seq_len, 0, "T5: tokens of the decoder's side; seq_len where not given",
    .kilo = SETTING_KILO_TOKENS, .min = 1, .max = SETTING_MAX_TOKENS)
/* Its members: kernel/documents.h. */
SETTING_IN(NUMBER, "document_mean", documents.mean, 0,
    "sequences are packed of documents, attention goes on within each: their mean length, tokens; "
    "log-normal, drawn anew for each sequence",
    .min = 1, .max = SETTING_MAX_TOKENS)
SETTING_IN(NUMBER, "document_sd", documents.sd, 0,
    "standard deviation of these lengths, tokens; 0: all documents are alike", .min = 0,
    .max = SETTING_MAX_TOKENS)
SETTING_IN(STRING, "document_lengths", documents.lengths, NULL,
    "the same by a list: lengths, and weights other than 1, as in 512=3, 2048=1")
SETTING_IN(ENUM, "document_packing", documents.packing, 0,
    "what micro-batches of documents have alike: tokens, packed to a fixed sum, or the number of "
    "documents, so that tokens differ, and the slowest rank is waited for; memory is that of the "
    "mean",
    .names = document_packing_names)
SETTING(INT, grad_accum, 1, "micro-batches to an optimizer step",
    .alias = "gradient_accumulation_steps", .min = 1, .max = STRATEGY_MAX_MICRO_STEPS)
/* As Composer's device_train_batch_size; 0: micro_batch x grad_accum. */
SETTING(INT, device_batch, 0,
    "sequences of a GPU to an optimizer step, the last micro-batch what is left, none larger; "
    "default: micro_batch x grad_accum",
    .alias = "local_batch_size", .min = 1, .max = SETTING_MAX_BATCH)
/* 0: not said. device_batch follows from it. */
SETTING(INT, global_batch, 0,
    "sequences of all GPUs to an optimizer step; device_batch is its share",
    .alias = "global_batch_size", .min = 1, .max = 0x1p40)
SETTING(ENUM, precision, PRECISION_BF16_MIXED, "number formats of parameters and GEMMs",
    .names = precision_names)
/* FP32 parameters are gathered as such by FSDP (MixedPrecision without param_dtype),
 * activations are as model_workload says. Else the model itself is in low precision
 * (FSDP's param_dtype, Apex's O2, DeepSpeed), its activations all. */
SETTING(
    BOOL, autocast, false, "mixed precision by torch.autocast around FP32 parameters, nothing else")
SETTING(ENUM, optimizer, OPTIMIZER_ADAMW, "optimizer", .names = optimizer_names)
SETTING(ENUM, optimizer_impl, OPTIMIZER_FOREACH, "PyTorch's implementation of it",
    .names = optimizer_impl_names)
/* See strategy/muon.h. */
SETTING(BOOL, muon_distributed, false,
    "muon: each matrix is one rank's to orthogonalise; false: every rank's (Megatron-LM's "
    "dist_muon and muon)",
    .when = "train.optimizer = muon")
/* Added to the gradients. */
SETTING(BOOL, weight_decay, false,
    "SGD decays the weights in a separate pass; AdamW and Lion always do",
    .when = "train.optimizer = sgd | sgd_momentum")
SETTING(ENUM, activation_checkpointing, CHECKPOINT_NONE, "what is recomputed in backward",
    .names = checkpointing_names)
/* See model/recompute.h. */
SETTING(STRING, recompute_modules, NULL,
    "parts of blocks that are recomputed by themselves, out of core_attn, moe, layernorm, moe_act, "
    "mla_up_proj, mlp and shared_experts, as in moe_act,layernorm (Megatron-LM)")
/* torchtitan's selective "2". */
SETTING(INT, checkpoint_interval, 1, "every n-th block is checkpointed; 1: all",
    .when = "train.activation_checkpointing = full | selective | core_attn",
    .alias = "recompute_every", .min = 1, .max = SETTING_MAX_INTERVAL)
SETTING(ENUM, recompute_method, 0,
    "full checkpointing: all blocks in units of recompute_num_layers, or that many of a model "
    "chunk (Megatron-LM)",
    .names = recompute_method_names)
SETTING(INT, recompute_num_layers, 1, "blocks of a unit, or that are checkpointed",
    .when = "train.activation_checkpointing = full | selective", .min = 1,
    .max = SETTING_MAX_LAYERS)
/* Before, and with use_reentrant=True, all of it is run. */
SETTING(BOOL, checkpoint_early_stop, true,
    "recomputation ends with the last tensor that backward needs (PyTorch 2.1, "
    "use_reentrant=False)")
SETTING(ENUM, attention, ATTENTION_NAIVE,
    "attention kernels; where nothing says it flash from Ampere on, naive on older GPUs, in fp32 "
    "and tf32",
    .names = attention_kernel_names)
SETTING(ENUM, cross_entropy, 0, "kernels of the loss", .names = cross_entropy_names)
SETTING(ENUM, fusion, 0,
    "torch.compile: inductor; flash_attn: its kernels for norms and rotary positions (nanotron); "
    "transformer_engine: Megatron-Core's",
    .names = kernel_fusion_names)
SETTING(ENUM, rotary, 0,
    "rotary positions: by rotate_half, or by a product of complex numbers in FP32 (torchtitan), or "
    "unfused where the stack has a kernel (Megatron-LM's --no-rope-fusion)",
    .names = rotary_names)
SETTING(ENUM, fp8_recipe, 0,
    "fp8_mixed: TransformerEngine's delayed scaling, or by block on Blackwell (mxfp8), or "
    "torchao's by tensor or by row",
    .names = fp8_recipe_names)
/* Of a mixture of experts, see model_workload. */
SETTING(ENUM, expert_kernels, 0, "mixture of experts: one kernel for all products, or a loop",
    .when = "model = experts", .names = expert_kernel_names)
SETTING(ENUM, moe_token_dispatcher_type, 0,
    "expert parallelism: how tokens come to their experts, as in Megatron-LM",
    .when = "model = shared experts", .names = token_dispatcher_names)
SETTING(ENUM, expert_routing, 0,
    "expert parallelism: balanced, as benchmarks force it, or learned: loads of experts are drawn, "
    "block by block, as a trained router has them, unless expert_imbalance or expert_spread says "
    "otherwise",
    .when = "model = shared experts", .names = expert_routing_names)
SETTING(NUMBER, expert_imbalance, 1,
    "expert parallelism: tokens of the busiest GPU's experts over the mean; 1: balanced",
    .when = "model = shared experts", .min = 1, .max = SETTING_MAX_IMBALANCE)
SETTING(NUMBER, expert_spread, 0,
    "expert parallelism: draws it block by block, from log-normal shares of experts with this "
    "log-standard deviation; 0: no draw",
    .when = "model = shared experts", .min = 0, .max = SETTING_MAX_SPREAD)
SETTING(INT, expert_seed, 1, "of that draw", .min = 0, .max = SETTING_MAX_TOKENS)
SETTING(ENUM, moe_flex_dispatcher_backend, 0,
    "expert parallelism, dispatcher flex: whose kernels move tokens",
    .when = "train.moe_token_dispatcher_type = flex", .names = flex_backend_names)
SETTING(INT, moe_deepep_num_sms, 20, "SMs of DeepEP's kernels", .min = 1, .max = SETTING_MAX_SMS)
SETTING(INT, moe_hybridep_num_sms, 16, "SMs of HybridEP's", .min = 1, .max = SETTING_MAX_SMS)
SETTING(NUMBER, moe_expert_capacity_factor, 0,
    "an expert drops what is more than this times its mean of a GPU's tokens; 0: drops nothing",
    .min = 0, .max = SETTING_MAX_IMBALANCE)
SETTING(BOOL, moe_pad_expert_input_to_capacity, false,
    "and takes no fewer, so that GPUs exchange no counts of tokens and hosts wait for none",
    .when = "train.moe_expert_capacity_factor > 0")
SETTING(BOOL, moe_router_padding_for_quantization, false,
    "experts in FP8 or NVFP4: the router fills up their rows to a multiple of 16; else "
    "TransformerEngine's Fp8Padding copies all of them into place and back, as Megatron-LM does by "
    "default",
    .when = "train.precision = fp8_mixed | fp4_mixed & model = experts")
SETTING(BOOL, moe_shared_expert_overlap, false,
    "expert parallelism: the shared expert runs beside dispatch and combine",
    .when = "model = shared experts")
SETTING(BOOL, moe_permute_fusion, true,
    "grouped experts: TransformerEngine's kernels put rows into the order of experts and back; "
    "else PyTorch's, which take five times as long, as Megatron-LM does by default",
    .when = "model = experts")
SETTING(BOOL, activation_func_fp8_input_store, false,
    "TransformerEngine's SwiGLU keeps its input in FP8 for the backward pass, as Megatron-LM's "
    "option of that name",
    .when = "train.fusion = transformer_engine")
/* See strategy/offload.c. */
SETTING(INT, cpu_offloading_num_layers, 0,
    "activations of the first blocks, as many, are copied to host memory and back, as "
    "TransformerEngine does for Megatron-LM's option of that name",
    .min = 0, .max = 1 << 20)
/* The first op of a graph costs the host what it costs in any case, as a module of Python
 * that replays the graph; the others, collectives too, nothing. layer: each pass through a
 * block (forward, recomputation, backward) is one; what a strategy adds beside the model's
 * ops is launched as ever. full_iteration: forward and backward passes of all micro-
 * batches with all that is communicated in them are one, in which the host waits for
 * nothing (strategy megatron); the optimizer is launched as ever. The model's kernels
 * follow each other sooner (kernel_work.graphed). Ignored: copies into the graphs' inputs,
 * their memory, a longer launch of many nodes. */
SETTING(ENUM, cuda_graphs, 0,
    "what is a CUDA graph, which costs the host one launch: layer, each pass through a block "
    "(Megatron-LM's --cuda-graph-impl local, transformer_engine, torch.compile's mode "
    "reduce-overhead); full_iteration, forward and backward passes of a step (strategy megatron)",
    .names = cuda_graphs_names)
SETTING(BOOL, moe_aux_loss, false,
    "mixture of experts: the loss that balances them, of Megatron-LM's "
    "moe_router_load_balancing_type aux_loss",
    .when = "model = experts")
SETTING(ENUM, memory_format, 0, "layout of images in memory", .when = "model = images",
    .names = image_format_names)
/* While the GPU works on the one before (DALI, a DataLoader with workers). */
SETTING(BOOL, decode_images, false,
    "the host decodes the images of each batch in the node's image_time (steady after four warm-up "
    "steps); else batches lie ready")
/* config.use_cache: they are handed out and outlive the step. */
SETTING(BOOL, use_cache, false,
    "Hugging Face's use_cache: decoder keys and values are kept through the step")
/* See model_workload, as of drop_logits. */
SETTING(BOOL, neftune, false, "NEFTune: noise is added to the embeddings")
/* Low-rank adapters (model_adapt). The frozen model is kept as kernels see it (16 bit in
 * mixed precision), adapters as trained parameters are. */
SETTING(INT, lora_rank, 0, "rank of LoRA's adapters on a frozen model; 0: everything is trained",
    .min = 0, .max = SETTING_MAX_RANK)
SETTING(STRING, lora_targets, NULL,
    "linear layers that have adapters, as in q_proj,v_proj; all of the blocks where not given")
/* The rest as prepare_model_for_kbit_training leaves it (arXiv 2305.14314;
 * peft/utils/other.py). */
SETTING(
    BOOL, qlora, false, "the frozen matrices of the blocks lie in 4 bits (NF4), the rest in FP32")
/* FSDP has its own; DeepSpeed and InternEvo compute the norm in any case. */
SETTING(BOOL, clip_grad_norm, false,
    "gradients are clipped by their norm (clip_grad_norm_; DeepSpeed's step does it)",
    .when = "strategy = fsdp | ddp | single_device")
SETTING(BOOL, drop_logits, false, "the training loop deletes the logits before backward")
SETTING(ENUM, compiled, 0,
    "fusion inductor: torch.compile of the whole model with its loss, or of each block by itself",
    .when = "train.fusion = inductor", .names = compiled_part_names)

#undef SETTINGS
#undef SETTINGS_OF
