/* Arguments of Megatron-LM (megatron/training/arguments.py) and of Megatron-DeepSpeed beside them.
 *
 * The file is a shell script or a list of arguments (shell.h); launchers take what is theirs
 * (launch.h), all else goes through megatron_rules, names with '_' read as '-'. A script that
 * starts a program of another model is refused, unless --model names one that is trained by the
 * same steps.
 *
 * megatron_finish() settles what several arguments say: precision and optimizer, GPUs, tensor
 * parallelism, recomputation, pipeline, sharding, then either DeepSpeed or Megatron's own defaults,
 * and the model last (megatron_model.c). What is subtle: Megatron-LM has its options off unless
 * they are given, stacks may have them on, so what is not given is put as false (leave_off()). A
 * setting that another one makes void is taken out of the puts again (switch_off()). */
#include "exchange/megatron.h"

#include <stdlib.h>
#include <string.h>

/* ---- what arguments of Megatron-LM (megatron/training/arguments.py) and of Megatron-DeepSpeed become ---- */

#define PAR "parallelism."
#define MEG "megatron."
#define FUSED "the fused kernel is simulated"
const struct rule megatron_rules[] = {
    /* Other jobs than the training of a language model. */
    {"--img-h --img-w --patch-dim --language-model-type --vision-model-type --vision-pretraining "
     "--vision-pretraining-type --disable-vision-class-token --pixel-shuffle --num-image-tiles --use-tiling "
     "--max-num-tiles --classes-fraction --dino-* --mask-type --num-classes --freeze-ViT --freeze-LM",
        RULE_OTHER, NULL, "a model of images"},
    {"--hybrid-layer-pattern --hybrid-override-pattern --hybrid-attention-ratio --hybrid-mlp-ratio "
     "--is-hybrid-model --mamba-*",
        RULE_OTHER, NULL, "a state-space model or a hybrid with one (Mamba)"},
    {"--grpo-* --langrl-* --rl-* --perform-rl-step", RULE_OTHER, NULL,
        "reinforcement learning with its generation of samples"},
    {"--retro-*", RULE_OTHER, NULL, "RETRO"},
    {"--biencoder-* --ict-* --bert-load --titles-data-path", RULE_OTHER, NULL, "a retriever"},
    {"--task", RULE_OTHER, NULL, "an evaluation or a task of fine-tuning"},
    {"--out-seq-length --num-samples --sample-input-file --prompts", RULE_OTHER, NULL, "text generation"},
    {"--encoder-tensor-model-parallel-size --encoder-pipeline-model-parallel-size", RULE_OTHER, NULL,
        "a model with another encoder"},
    /* The model: megatron_model.c. */
    {"--num-layers --encoder-num-layers", RULE_MODEL, "n_layers", NULL},
    {"--hidden-size", RULE_MODEL, "d_model", NULL},
    {"--ffn-hidden-size", RULE_MODEL, "d_ff", NULL},
    {"--num-attention-heads", RULE_MODEL, "n_heads", NULL},
    {"--num-query-groups", RULE_MODEL, "n_kv_heads", NULL},
    {"--position-embedding-type", RULE_SHAPE, NULL, "learned_absolute rope yarn alibi none"},
    {"--normalization", RULE_SHAPE, NULL, "LayerNorm RMSNorm"},
    {"--kv-channels", RULE_MODEL, "d_kv", NULL},
    {"--max-position-embeddings --pad-vocab-size-to --padded-vocab-size --vocab-size "
     "--make-vocab-size-divisible-by --tokenizer-type --use-rotary-position-embeddings "
     "--no-position-embedding --rotary-percent --swiglu --quick-geglu --squared-relu --group-query-attention "
     "--untie-embeddings-and-output-weights --disable-bias-linear --add-qkv-bias --qk-layernorm --embed-layernorm "
     "--hidden-dropout --attention-dropout --num-experts --moe-router-topk --moe-latent-size --moe-ffn-hidden-size "
     "--moe-layer-freq "
     "--moe-shared-expert-intermediate-size --moe-shared-expert-gate --moe-router-score-function "
     "--moe-router-num-groups --moe-router-group-topk --moe-router-topk-scaling-factor --moe-router-pre-softmax "
     "--moe-router-enable-expert-bias --multi-latent-attention --q-lora-rank --kv-lora-rank --qk-head-dim "
     "--qk-pos-emb-head-dim --v-head-dim --window-size --window-attn-skip-freq --use-checkpoint-args "
     "--mtp-num-layers",
        RULE_SHAPE, NULL, NULL},
    {"--experimental-attention-variant --dsa-* --heterogeneous-layers-config-path "
     "--heterogeneous-layers-config-encoded-json --no-rope-freq --qk-l2-norm",
        RULE_REFUSED, NULL, "all layers alike, with attention to all tokens, are simulated"},
    {"--softmax-type --activation-func-clamp-value --glu-linear-offset --apply-layernorm-1p "
     "--attention-output-gate",
        RULE_SLIGHT, NULL, "the plain form is simulated"},
    {"--apply-query-key-layer-scaling --no-query-key-layer-scaling --rotary-base --rotary-scaling-factor "
     "--use-rope-scaling --rope-scaling-factor --rotary-seq-len-interpolation-factor --rotary-interleaved "
     "--mscale --mscale-all-dim --yarn-* --apply-residual-connection-post-layernorm --norm-epsilon "
     "--layernorm-epsilon --init-method-* --original-max-position-embeddings --beta-fast --beta-slow "
     "--embedding-init-method-std --cache-mla-latents --mtp-loss-scaling-factor",
        RULE_ASIDE, NULL, "values, not work"},
    /* Batch and precision. */
    {"--nproc-per-node --nnodes", RULE_FACT, "cluster.gpus", NULL},
    {"--seq-length --encoder-seq-length", RULE_INT, "train.seq_len", NULL},
    {"--decoder-seq-length", RULE_INT, "train.decoder_seq_len", NULL},
    {"--micro-batch-size", RULE_INT, "train.micro_batch", NULL},
    {"--global-batch-size", RULE_INT, "train.global_batch", NULL},
    {"--rampup-batch-size", RULE_ASIDE, NULL, "the batch that it ends at is simulated"},
    {"--bf16", RULE_SET, "train.precision", "bf16_mixed"},
    {"--fp16", RULE_SET, "train.precision", "fp16_mixed"},
    {"--fp8-format", RULE_FACT, "train.precision", "hybrid e4m3"},
    {"--fp4-format", RULE_FACT, "train.precision", "e2m1"},
    {"--fp4-recipe", RULE_HELD, NULL, "nvfp4"},
    {"--fp8-recipe", RULE_WORDS, "train.fp8_recipe", "delayed=delayed tensorwise=delayed mxfp8=mxfp8"},
    {"--fp8-param-gather --fp4-param-gather", RULE_SET, MEG "fp8_param_gather", "true"},
    {"--fp8-amax-* --fp8-margin --fp8-interval", RULE_ASIDE, NULL, "of the scales' values"},
    {"--first-last-layers-bf16 --num-layers-at-start-in-bf16 --num-layers-at-end-in-bf16 --no-fp8-wgrad "
     "--fp8-output-proj --fp32-residual-connection --use-kitchen-quantization --kitchen-*",
        RULE_REFUSED, NULL, "every block's linear layers are in the one precision"},
    {"--optimizer", RULE_WORDS, "train.optimizer", "adam=adam sgd=sgd muon=muon dist_muon=muon"},
    {"--muon-tp-mode", RULE_HELD, NULL, "blockwise"},
    {"--muon-num-ns-steps", RULE_HELD, NULL, "5"},
    {"--main-grads-dtype", RULE_FACT, NULL, "fp32 bf16"},
    {"--main-params-dtype", RULE_HELD, NULL, "fp32"},
    {"--exp-avg-dtype", RULE_WORDS, MEG "exp_avg_dtype", "fp32=fp32 bf16=bf16"},
    {"--exp-avg-sq-dtype", RULE_WORDS, MEG "exp_avg_sq_dtype", "fp32=fp32 bf16=bf16"},
    {"--use-precision-aware-optimizer", RULE_SLIGHT, NULL,
        "master weights are simulated in 4 bytes; of BF16 weights it keeps 2 beside them (store_param_remainders), so "
        "that 2 bytes a parameter less are needed, over the ranks that share the optimizer"},
    {"--reduce-scatter-with-fp32-accumulation --reuse-grad-buf-for-mxfp8-param-ag --optimizer-cpu-offload "
     "--optimizer-offload-fraction "
     "--use-torch-optimizer-for-cpu-offload --fp16-lm-cross-entropy",
        RULE_REFUSED, NULL, "states and gradients in FP32 on the GPU are simulated"},
    {"--cpu-offloading", RULE_ASIDE, NULL, "--cpu-offloading-num-layers says how many"},
    {"--cpu-offloading-num-layers", RULE_INT, "train.cpu_offloading_num_layers", NULL},
    /* Recomputation. */
    {"--recompute-activations", RULE_SET, "train.activation_checkpointing", "core_attn"},
    {"--checkpoint-activations", RULE_SET, "train.activation_checkpointing", "full"},
    {"--recompute-granularity", RULE_FACT, "train.activation_checkpointing", "full selective"},
    {"--recompute-method", RULE_WORDS, "train.recompute_method", "uniform=uniform block=block"},
    {"--recompute-num-layers --checkpoint-num-layers", RULE_INT, "train.recompute_num_layers", NULL},
    {"--recompute-modules", RULE_FACT, "train.recompute_modules", NULL},
    {"--moe-layer-recompute", RULE_SET, "train.recompute_modules", "moe"},
    {"--partition-activations", RULE_FACT, NULL, NULL},
    {"--distribute-saved-activations --fine-grained-activation-offloading --offload-modules", RULE_REFUSED, NULL,
        "each rank keeps what it saves"},
    /* Degrees. */
    {"--tensor-model-parallel-size", RULE_INT, PAR "tensor", NULL},
    {"--pipeline-model-parallel-size", RULE_INT, PAR "pipeline", NULL},
    {"--context-parallel-size", RULE_INT, PAR "context", NULL},
    {"--cp-comm-type", RULE_WORDS, PAR "context_kind", "p2p=p2p all_gather=all_gather a2a=a2a"},
    {"--hierarchical-context-parallel-sizes", RULE_REFUSED, NULL, "one ring, or one exchange, is simulated"},
    {"--expert-model-parallel-size", RULE_INT, PAR "expert", NULL},
    {"--expert-tensor-parallel-size", RULE_INT, PAR "expert_tensor", NULL},
    {"--sequence-parallel", RULE_SET, PAR "sequence", "true"},
    {"--num-layers-per-virtual-pipeline-stage", RULE_FACT, PAR "virtual", NULL},
    {"--num-virtual-stages-per-pipeline-rank", RULE_INT, PAR "virtual", NULL},
    {"--decoder-first-pipeline-num-layers", RULE_INT, PAR "first_layers", NULL},
    {"--decoder-last-pipeline-num-layers", RULE_INT, PAR "last_layers", NULL},
    {"--pipeline-model-parallel-layout --account-for-embedding-in-pipeline-split "
     "--account-for-loss-in-pipeline-split --standalone-embedding-stage --use-tp-pp-dp-mapping "
     "--pipeline-model-parallel-split-rank --microbatch-group-size-per-virtual-pipeline-stage "
     "--defer-embedding-wgrad-compute --variable-seq-lengths",
        RULE_REFUSED, NULL, "stages of equal numbers of blocks, one after the other, are simulated"},
    {"--overlap-p2p-communication", RULE_SET, PAR "overlap_p2p_comm", "true"},
    {"--no-overlap-p2p-communication", RULE_SET, PAR "overlap_p2p_comm", "false"},
    {"--overlap-p2p-communication-warmup-flush --align-grad-reduce --no-align-grad-reduce --align-param-gather",
        RULE_SLIGHT, NULL, "Megatron-LM's default is simulated"},
    {"--scatter-gather-tensors-in-pipeline", RULE_SET, PAR "scatter_gather", "true"},
    {"--no-scatter-gather-tensors-in-pipeline", RULE_SET, PAR "scatter_gather", "false"},
    {"--tp-comm-overlap", RULE_SET, PAR "tensor_overlap", "user_buffers"},
    {"--tp-comm-overlap-* --disable-tp-comm-* --tp-comm-bootstrap-backend", RULE_SLIGHT, NULL,
        "user buffers are simulated as TransformerEngine sets them up by default"},
    {"--no-async-tensor-model-parallel-allreduce", RULE_SET, PAR "tensor_overlap", "none"},
    /* Data parallelism. */
    {"--use-distributed-optimizer", RULE_FACT, MEG "use_distributed_optimizer", NULL},
    {"--overlap-grad-reduce", RULE_SET, MEG "overlap_grad_reduce", "true"},
    {"--overlap-param-gather", RULE_SET, MEG "overlap_param_gather", "true"},
    {"--accumulate-allreduce-grads-in-fp32", RULE_SET, MEG "grad_reduce_in_fp32", "true"},
    {"--grad-reduce-in-bf16", RULE_SET, MEG "grad_reduce_in_fp32", "false"},
    {"--no-check-for-nan-in-loss-and-grad", RULE_SET, MEG "check_for_nan_in_grad", "false"},
    {"--check-for-nan-in-loss-and-grad", RULE_SET, MEG "check_for_nan_in_grad", "true"},
    {"--ddp-average-in-collective", RULE_SET, MEG "average_in_collective", "true"},
    {"--ddp-bucket-size", RULE_INT, MEG "bucket_size", NULL},
    {"--num-distributed-optimizer-instances", RULE_INT, MEG "num_distributed_optimizer_instances", NULL},
    {"--ddp-num-buckets", RULE_HELD, NULL, "1"},
    {"--use-megatron-fsdp --use-custom-fsdp", RULE_SET, MEG "use_megatron_fsdp", "true"},
    {"--data-parallel-sharding-strategy", RULE_WORDS, MEG "data_parallel_sharding_strategy",
        "no_shard=no_shard optim=optim optim_grads=optim_grads optim_grads_params=optim_grads_params"},
    {"--suggested-communication-unit-size", RULE_INT, MEG "suggested_communication_unit_size", NULL},
    {"--fsdp-double-buffer", RULE_SET, MEG "fsdp_double_buffer", "true"},
    {"--outer-dp-sharding-strategy", RULE_WORDS, MEG "outer_dp_sharding_strategy", "no_shard=no_shard optim=optim"},
    {"--megatron-fsdp-main-params-dtype", RULE_HELD, NULL, "fp32"},
    {"--megatron-fsdp-main-grads-dtype", RULE_FACT, NULL, "fp32 bf16"},
    {"--megatron-fsdp-grad-comm-dtype", RULE_WORDS, MEG "grad_reduce_in_fp32", "fp32=true bf16=false"},
    {"--init-model-with-meta-device", RULE_ASIDE, NULL, "of the start"},
    {"--use-nccl-ub --nccl-ub --fsdp-manual-registration", RULE_SLIGHT, NULL,
        "NCCL copies into and out of its buffers, and holds the SMs that it takes for that"},
    {"--use-torch-fsdp2 --overlap-param-gather-with-optimizer-step --use-sharp --sharp-enabled-group "
     "--no-gradient-reduce-div-fusion --megatron-fsdp-* --create-all-gather-group",
        RULE_REFUSED, NULL,
        "Megatron's DDP, its distributed optimizer and Megatron-FSDP are simulated; PyTorch's FSDP is strategy: fsdp"},
    {"--ddp-pad-buckets-for-high-nccl-busbw --gradient-reduce-div-fusion --keep-fp8-transpose-cache "
     "--keep-fp8-transpose-cache-when-using-custom-fsdp",
        RULE_SLIGHT, NULL, "Megatron-LM's default is simulated"},
    /* Kernels. */
    {"--use-flash-attn", RULE_SET, "train.attention", "flash"},
    {"--attention-backend", RULE_WORDS, "train.attention",
        "flash=flash fused=flash auto=flash unfused=naive local=naive"},
    {"--use-fused-rmsnorm --use-fused-rmsnorm-kernel --use-fused-sdpa --use-rotary-v2 --transformer-engine-*",
        RULE_ASIDE, NULL, "simulated so"},
    {"--transformer-impl", RULE_WORDS, "train.fusion", "transformer_engine=transformer_engine local=torchscript"},
    {"--use-te", RULE_SET, "train.fusion", "transformer_engine"},
    {"--cross-entropy-loss-fusion", RULE_SET, "train.cross_entropy", "fused"},
    {"--cross-entropy-fusion-impl", RULE_WORDS, "train.cross_entropy", "native=fused te=te"},
    {"--no-rope-fusion", RULE_SET, "train.rotary", "unfused"},
    {"--no-masked-softmax-fusion --attention-softmax-in-fp32", RULE_FACT, NULL, NULL},
    {"--no-bias-gelu-fusion --no-bias-swiglu-fusion --no-bias-dropout-fusion --bias-swiglu-fusion "
     "--no-persist-layer-norm "
     "--memory-efficient-layer-norm --no-gradient-accumulation-fusion --use-fused-weighted-squared-relu "
     "--moe-router-fusion --moe-use-legacy-grouped-gemm --moe-apply-probs-on-input "
     "--moe-token-dispatcher-padding --mla-down-proj-fusion --use-transformer-engine-op-fuser",
        RULE_SLIGHT, NULL, "kernels are fused as in Megatron-LM's default"},
    {"--enable-cuda-graph --external-cuda-graph", RULE_SET, "train.cuda_graphs", "layer"},
    {"--cuda-graph-impl", RULE_WORDS, "train.cuda_graphs",
        "none=none local=layer transformer_engine=layer full_iteration=full_iteration"},
    {"--cuda-graph-scope", RULE_WORDS, "train.cuda_graphs", "full_iteration=full_iteration full=layer"},
    {"--cuda-graph-* --delay-wgrad-compute --batch-invariant-mode --deterministic-mode --ep-overlap-*", RULE_REFUSED,
        NULL, "kernels are issued one by one, by the host, in the default's order"},
    /* Experts. */
    {"--moe-grouped-gemm", RULE_SET, "train.expert_kernels", "grouped"},
    {"--moe-token-dispatcher-type", RULE_WORDS, "train.moe_token_dispatcher_type",
        "alltoall=alltoall allgather=allgather flex=flex alltoall_seq=alltoall"},
    {"--moe-enable-deepep", RULE_SET, "train.moe_flex_dispatcher_backend", "deepep"},
    {"--moe-flex-dispatcher-backend", RULE_WORDS, "train.moe_flex_dispatcher_backend",
        "deepep=deepep hybridep=hybridep"},
    {"--overlap-moe-expert-parallel-comm", RULE_SET, MEG "overlap_moe_expert_parallel_comm", "true"},
    {"--moe-deepep-num-sms", RULE_INT, "train.moe_deepep_num_sms", NULL},
    {"--moe-hybridep-num-sms", RULE_INT, "train.moe_hybridep_num_sms", NULL},
    {"--moe-permute-fusion", RULE_SET, "train.moe_permute_fusion", "true"},
    {"--moe-expert-capacity-factor", RULE_NUMBER, "train.moe_expert_capacity_factor", NULL},
    {"--moe-pad-expert-input-to-capacity", RULE_SET, "train.moe_pad_expert_input_to_capacity", "true"},
    {"--moe-router-padding-for-quantization", RULE_SET, "train.moe_router_padding_for_quantization", "true"},
    {"--moe-router-padding-for-fp8", RULE_SET, "train.moe_router_padding_for_quantization", "true"},
    {"--moe-shared-expert-overlap", RULE_SET, "train.moe_shared_expert_overlap", "true"},
    {"--moe-router-dtype", RULE_SLIGHT, NULL, "the router's product is simulated in the format of training"},
    {"--moe-extended-tp --moe-upcycling-*", RULE_REFUSED, NULL,
        "experts as --expert-tensor-parallel-size cuts them are simulated"},
    {"--moe-aux-loss-coeff --moe-z-loss-coeff --moe-router-load-balancing-type --moe-router-bias-update-rate "
     "--moe-input-jitter-eps --moe-token-drop-policy --moe-per-layer-logging",
        RULE_ASIDE, NULL, "the router's values; loads are balanced unless train.expert_routing says otherwise"},
    {"--moe-router-force-load-balancing", RULE_SET, "train.expert_routing", "balanced"},
    /* DeepSpeed. */
    {"--merge-file", RULE_FACT, NULL, NULL},
    {"--deepspeed --deepspeed-config", RULE_FACT, NULL, NULL},
    {"--zero-stage", RULE_INT, "deepspeed.zero_optimization.stage", NULL},
    {"--deepspeed-activation-checkpointing", RULE_ASIDE, NULL, "whose function checkpoints"},
    {"--pp-partition-method", RULE_WORDS, PAR "partition_method",
        "uniform=uniform type:transformer=type:transformer type:transformer|embedding=type:transformer|embedding"},
    {"--no-pipeline-parallel", RULE_FACT, NULL, NULL},
    /* A little more work, seldom or once a step. */
    {"--sync-tp-duplicated-parameters --log-num-zeros-in-grad --log-params-norm --calculate-per-token-loss "
     "--check-weight-hash-across-dp-replicas-interval "
     "--empty-unused-memory-level --reset-attention-mask --train-sync-interval --manual-gc-interval --log-energy "
     "--log-max-attention-logit",
        RULE_SLIGHT, NULL, "the pass over gradients, weights or the mask that it adds is not simulated"},
    {"--sft", RULE_SLIGHT, NULL,
        "conversations are packed into sequences, and attention goes on within each; their lengths are not in the "
        "arguments, so a sequence is one document unless train.document_mean or document_lengths says otherwise"},
    /* No part in speed or memory. */
    {"--use-mcore-models --use-legacy-models --no-use-mcore-models", RULE_ASIDE, NULL, "the stack profile says whose"},
    {"--finetune --pretrained-checkpoint --load --save --save-* --load-* --ckpt-* --auto-detect-ckpt-format "
     "--exit-on-missing-checkpoint --no-load-* --no-save-* --async-save --use-dist-ckpt --use-persistent-ckpt-worker "
     "--use-checkpoint-opt_param-scheduler --use-checkpoint-opt-param-scheduler --override-opt-param-scheduler "
     "--override-opt_param-scheduler --dist-ckpt-* --non-persistent-* --no-initialization --perform-initialization "
     "--use-mp-args-from-checkpoint-args --universal-checkpoint --strict-fsdp-dtensor-load --replication "
     "--replication-*",
        RULE_ASIDE, NULL, "loading and saving"},
    {"--adam-* --sgd-momentum --clip-grad --lr --lr-* --min-lr --weight-decay --weight-decay-* --start-weight-decay "
     "--end-weight-decay --warmup --muon-* --decoupled-lr --decoupled-min-lr --loss-scale --loss-scale-window "
     "--initial-loss-scale --min-loss-scale --hysteresis --use-cpu-initialization --seed --data-parallel-random-init "
     "--te-rng-tracker",
        RULE_ASIDE, NULL, "the update's values"},
    {"--train-iters --train-samples --train-tokens --eval-interval --eval-iters --exit-duration-in-mins "
     "--exit-interval --exit-signal-handler --skip-train --iteration --full-validation",
        RULE_ASIDE, NULL, "the run's length"},
    {"--data-* --train-data-path --valid-data-path --test-data-path --train-data --valid-data --test-data --split "
     "--dataloader-type --dataloader-* --train-weighted-split-paths-path --valid-weighted-split-paths-path --mock-data "
     "--num-workers --valid-num-workers --num-dataset-builder-threads --blend-* --per-split-data-args-path "
     "--reset-position-ids --eod-mask-loss --no-create-attention-mask-in-dataloader "
     "--create-attention-mask-in-dataloader --no-mmap-bin-files --mmap-bin-files --packing-* --short-seq-prob "
     "--mask-prob --legacy-tokenizer --vocab-file --vocab-extra-ids --tokenizer-* --tiktoken-* --trust-remote-code "
     "--fim-* --dataset-* --object-storage-cache-path --s3-cache-path --goldfish-loss --sft-*",
        RULE_ASIDE, NULL, "data and tokenizer"},
    {"--log-* --tensorboard-* --wandb-* --codecarbon-dir --timing-log-* --barrier-with-L1-time "
     "--no-barrier-with-L1-time --one-logger-* --enable-one-logger --no-one-logger --record-memory-history "
     "--memory-snapshot-path --profile --profile-* --use-pytorch-profiler --pytorch-profiler-* --nvtx-ranges "
     "--logging-level --straggler-* --disable-straggler-on-startup --app-tag-run-* --config-logger-dir --rerun-mode "
     "--error-injection-*",
        RULE_ASIDE, NULL, "logging"},
    {"--distributed-backend --distributed-timeout-minutes --distributed-timeout-seconds-after-init "
     "--local-rank --local_rank --DDP-impl --abort-on-unmet-fused-kernel-constraints --manual-gc --kill-switch-path "
     "--master-addr --master-port --max-restarts --node-rank --rdzv-backend --rdzv-endpoint --rdzv-id --rdzv-conf "
     "--tee --redirects --role --monitor-interval --use-ring-exchange-p2p --nccl-communicator-config-path "
     "--high-priority-stream-groups --enable-gloo-process-groups --disable-gloo-process-groups --enable-ft-package "
     "--local-addr --local-ranks-filter --logs-specs --numa-binding --signals-to-handle --event-log-handler "
     "--duplicate-stdout-filters --duplicate-stderr-filters --rdzv-* --lazy-mpu-init --enable-experimental --no-python "
     "--start-method --standalone --run-path --include --exclude "
     "--hostfile --launcher --num-gpus --num-nodes --force --master_addr --adlr-autoresume --adlr-autoresume-interval "
     "--heartbeat-* --inprocess-* --calc-ft-timeouts --ft-*",
        RULE_ASIDE, NULL, "of the launcher"},
    {"--nodes --ntasks --ntasks-per-node --gres --gpus-per-node --cpus-per-task --job-name --partition --account "
     "--output --error --time --exclusive --mem --label --kill-on-bad-exit --wait --export --container-* --mpi "
     "--no-container-mount-home --jobid --unbuffered --overlap --dependency --array --comment --qos --constraint "
     "--gpus --ipc --shm-size --ulimit --rm --volume --workdir --network --privileged --env --name --mount --device "
     "--group-add --cap-add --security-opt --gpu-bind --cpu-bind --distribution --parsable --dry-run --help --signal",
        RULE_ASIDE, NULL, "of Slurm, of containers"},
    {"--inference-* --temperature --top_p --top-p --top_k --top-k --prompt-format --max-tokens-to-oom "
     "--use-flash-decode --flash-decode",
        RULE_ASIDE, NULL, "of text generation, not of training"},
};
const int megatron_n_rules = sizeof megatron_rules / sizeof *megatron_rules;

#define PAR "parallelism."
#define MEG "megatron."

/* Python's argparse has one name, torchrun takes both spellings. */
static const char *dashed(const char *name, struct arena *arena)
{
    char *text = arena_strdup(arena, name);
    for (char *at = text; *at; at++)
        *at = *at == '_' ? '-' : *at;
    return text;
}

bool megatron_sets(const char *name, struct arena *arena)
{
    const struct rule *rule = rules_find(megatron_rules, megatron_n_rules, dashed(name, arena));
    return rule && rule->kind != RULE_ASIDE;
}

static enum status take_argument(struct configuration *config, const struct shell_argument *argument, struct diag *diag)
{
    struct configuration_setting setting = {.name = dashed(argument->name, config->arena),
        .value = argument->value ? argument->value : "",
        .bare = !argument->value,
        .at = argument->at,
        .value_at = argument->value ? argument->value_at : argument->at};
    setting.unset = argument->unset;
    enum status status = STATUS_OK;
    if (!megatron_launcher(&setting, argument, config->arena))
        status = rules_apply(config, megatron_rules, megatron_n_rules, &setting, diag);
    vec_push(&config->settings, setting);
    return status;
}

/* Programs of Megatron-LM that do not train a GPT: what the arguments would give is another model. A model that is
 * trained by the same steps can be named with --model. */
static const struct {
    const char *part, *what; /* of the program's name */
    const char *model;       /* may be named; NULL: none */
} others[] = {
    {"pretrain_bert", "a BERT", "bert-large"},
    {"pretrain_t5", "a T5", "t5-11b"},
    {"pretrain_vision", "a model of images", "vit_h_14"},
    {"pretrain_vlm", "a model of images and text", NULL},
    {"pretrain_mamba", "a state-space model", NULL},
    {"pretrain_retro", "a RETRO", NULL},
    {"pretrain_ict", "a retriever", NULL},
    {"pretrain_realm", "a retriever", NULL},
    {"train_rl", "a model by reinforcement learning, whose generation of samples is not simulated", NULL},
    {"text_generation", "nothing: it generates text", NULL},
    {"inference", "nothing: it generates text", NULL},
};

static bool trains_gpt(const char *program)
{
    return strstr(program, "pretrain_gpt") != NULL;
}

/* A script that names a program of these, and none that trains a GPT. */
static enum status check_programs(
    const struct configuration *config, const struct shell_arguments *arguments, struct diag *diag)
{
    for (int p = 0; p < arguments->programs.n; p++)
        if (trains_gpt(arguments->programs.at[p].name))
            return STATUS_OK;
    bool named = config->given && config->given->model;
    for (int p = 0; p < arguments->programs.n; p++)
        for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
            const struct shell_program *program = &arguments->programs.at[p];
            if (!strstr(program->name, others[i].part) || (others[i].model && named))
                continue;
            return others[i].model
                       ? diag_input(diag, program->at,
                             "%s trains %s, and a model is made of these arguments for a GPT only; --model %s, say, "
                             "names it",
                             program->name, others[i].what, others[i].model)
                       : diag_input(diag, program->at, "%s trains %s; only scripts that train a GPT are read",
                             program->name, others[i].what);
        }
    return STATUS_OK;
}

static bool is_python(const char *path)
{
    size_t n = strlen(path);
    return n > 3 && strcmp(path + n - 3, ".py") == 0;
}

enum status megatron_read(struct configuration *config, const char *path, struct diag *diag)
{
    struct shell_arguments arguments = {0};
    char *text = NULL;
    size_t n = 0;
    enum status status = config_read_file(&text, &n, FILES_ANY, path, diag);
    if (status == STATUS_OK && is_python(path))
        status = diag_input(diag, (struct source_pos){.file = path},
            "scripts of Python are not read; `flopcast help settings fsdp` has the settings of PyTorch's FSDP "
            "(fully_shard: fsdp.version: 2), and accelerate's YAML can be imported");
    if (status == STATUS_OK)
        status = shell_read(&arguments, path, text, n, config->arena, diag);
    if (status == STATUS_OK && arguments.list.n == 0)
        status = diag_input(diag, (struct source_pos){path, 1, 1},
            "there are no arguments '--name value'; is it a file of DeepSpeed (.json), accelerate (.yaml) or "
            "torchtitan (.toml)? Then --from says so");
    if (status == STATUS_OK)
        status = check_programs(config, &arguments, diag);
    for (int i = 0; i < arguments.list.n; i++) {
        enum status one = take_argument(config, &arguments.list.at[i], diag);
        status = status == STATUS_OK ? one : status;
    }
    shell_free(&arguments);
    free(text);
    return status;
}

static void finish_recomputation(struct configuration *config)
{
    struct configuration_setting *granularity = setting_find(config, "--recompute-granularity");
    struct configuration_setting *modules = setting_find(config, "--recompute-modules");
    bool selective = granularity && strcmp(granularity->value, "selective") == 0;
    if (modules && selective) { /* core_attn moe -> core_attn,moe */
        char *list = arena_strdup(config->arena, modules->value);
        for (char *at = list; *at; at++)
            *at = *at == ' ' ? ',' : *at;
        put_setting(config, "train.recompute_modules", list, modules);
        setting_aside(granularity, "by --recompute-modules");
    } else if (granularity && !granularity->words) {
        put_setting(config, "train.activation_checkpointing", selective ? "core_attn" : "full", granularity);
    }
    setting_aside(modules, "of --recompute-granularity selective");
}

static void finish_pipeline(struct configuration *config, bool deepspeed, struct diag *diag)
{
    struct configuration_setting *each = setting_find(config, "--num-layers-per-virtual-pipeline-stage");
    int64_t per_chunk = setting_int(config, "--num-layers-per-virtual-pipeline-stage", 0, diag);
    int64_t stages = put_int(config, PAR "pipeline", 1);
    const char *text = put_model_find(config, "n_layers");
    int64_t blocks = text ? strtoll(text, NULL, 10) : 0;
    if (each && per_chunk > 0 && stages > 0 && blocks % times(per_chunk, stages) == 0 && blocks > 0)
        put_setting(config, PAR "virtual", number_text(config, blocks / times(per_chunk, stages)), each);
    if (stages > 1 && put_int(config, PAR "virtual", 1) == 1 && !deepspeed && !put_find(config, PAR "overlap_p2p_comm"))
        put_assumed(config, PAR "overlap_p2p_comm", "false", "Megatron-LM's without virtual stages");
}

/* The setting, where there is one, is put aside with these words, and its key is as if it had not been given. */
static void switch_off(
    struct configuration *config, struct configuration_setting *setting, const char *key, const char *words)
{
    if (!setting || !put_find(config, key))
        return;
    put_remove(config, key);
    *setting = (struct configuration_setting){
        .name = setting->name, .value = "", .bare = true, .at = setting->at, .fate = FATE_ASIDE, .words = words};
}

/* Without tensor parallelism Megatron-LM switches sequence parallelism off, and has nothing to overlap
 * (validate_args). */
static void finish_tensor(struct configuration *config)
{
    struct configuration_setting *sequence = setting_find(config, "--sequence-parallel");
    struct configuration_setting *overlap = setting_find(config, "--tp-comm-overlap");
    if (put_int(config, PAR "tensor", 1) > 1 || setting_open(config, "--tensor-model-parallel-size"))
        return;
    switch_off(config, sequence, PAR "sequence", "Megatron-LM switches it off where tensor parallelism is 1");
    switch_off(config, overlap, PAR "tensor_overlap", "of tensor parallelism, which is 1");
}

/* Options of the softmax between two GEMMs, which fused attention does not have; its softmax is in FP32. */
static void finish_softmax(struct configuration *config, bool gpt)
{
    struct configuration_setting *unfused = setting_find(config, "--no-masked-softmax-fusion");
    struct configuration_setting *wide = setting_find(config, "--attention-softmax-in-fp32");
    const char *attention = put_find(config, "train.attention");
    bool naive = attention && strcmp(attention, "naive") == 0;
    if (!naive || !gpt)
        setting_aside(unfused, naive ? "simulated so" : "of attention in separate kernels");
    if (naive && gpt && unfused)
        setting_refuse(wide, "without fusion the softmax is simulated in the format of training");
    else
        setting_aside(wide, "flash attention and the fused softmax have it in FP32");
}

/* Megatron-FSDP says by its strategy what is sharded. */
static void finish_sharding(struct configuration *config)
{
    struct configuration_setting *shards = setting_find(config, "--use-distributed-optimizer");
    if (put_find(config, MEG "use_megatron_fsdp"))
        setting_aside(shards, "--data-parallel-sharding-strategy says what is sharded");
    else if (shards)
        put_setting(config, MEG "use_distributed_optimizer", "true", shards);
}

/* Gradients are kept in the format that they travel in: validate_args takes --main-grads-dtype bf16 for
 * --grad-reduce-in-bf16, and refuses it beside --accumulate-allreduce-grads-in-fp32. */
static void finish_main_gradients(struct configuration *config)
{
    struct configuration_setting *kept = setting_find(config, "--main-grads-dtype");
    if (!kept || kept->words)
        return;
    if (strcmp(kept->value, "bf16") != 0)
        setting_aside(kept, "simulated so, unless gradients are reduced in BF16");
    else if (setting_find(config, "--accumulate-allreduce-grads-in-fp32"))
        setting_refuse(kept, "Megatron-LM refuses it beside --accumulate-allreduce-grads-in-fp32");
    else
        put_setting(config, MEG "grad_reduce_in_fp32", "false", kept);
}

/* Megatron-FSDP's gradients, as they are kept and as they travel. */
static void finish_gradients(struct configuration *config)
{
    finish_main_gradients(config);
    struct configuration_setting *kept = setting_find(config, "--megatron-fsdp-main-grads-dtype");
    const char *wide = put_find(config, MEG "grad_reduce_in_fp32");
    if (!kept)
        return;
    const char *own = setting_is(config, "--megatron-fsdp-main-grads-dtype", "fp32") ? "true" : "false";
    if (wide && strcmp(wide, own) != 0)
        setting_refuse(kept, "gradients are kept in the format that they travel in");
    else
        put_setting(config, MEG "grad_reduce_in_fp32", own, kept);
}

static void leave_off(struct configuration *config, const char *path)
{
    if (!put_find(config, path))
        put_assumed(config, path, "false", NULL);
}

/* What Megatron-LM does only when it is asked to; stacks have it the other way. */
static void finish_switches(struct configuration *config)
{
    leave_off(config, MEG "overlap_grad_reduce");
    leave_off(config, MEG "overlap_param_gather");
    if (!put_find(config, MEG "use_megatron_fsdp"))
        leave_off(config, MEG "use_distributed_optimizer");
    finish_gradients(config);
    if (!put_find(config, MEG "grad_reduce_in_fp32"))
        put_assumed(config, MEG "grad_reduce_in_fp32", setting_find(config, "--bf16") ? "true" : "false",
            "Megatron-LM's default with this precision");
    if (!put_find(config, "train.attention") && setting_find(config, "--checkpoint-activations"))
        put_assumed(config, "train.attention", "naive", "as when --checkpoint-activations was an argument");
}

void megatron_finish(struct configuration *config, struct diag *diag)
{
    struct configuration_setting *deepspeed = setting_find(config, "--deepspeed");
    struct configuration_setting *file = setting_find(config, "--deepspeed-config");
    struct configuration_setting *fp8 = setting_find(config, "--fp8-format");
    if (fp8 && !fp8->words)
        put_setting(config, "train.precision", "fp8_mixed", fp8);
    if (setting_is(config, "--fp8-recipe", "tensorwise"))
        assume(
            config, "--fp8-recipe: current scaling is simulated as delayed scaling, without a pass for largest values");
    struct configuration_setting *fp4 = setting_find(config, "--fp4-format");
    if (fp4 && !fp4->words)
        put_setting(config, "train.precision", "fp4_mixed", fp4);
    if (!put_find(config, "train.precision"))
        put_assumed(config, "train.precision", "fp32", "neither --bf16 nor --fp16 is given");
    if (!put_find(config, "train.optimizer"))
        put_assumed(config, "train.optimizer", "adam", "Megatron-LM's default");
    if (setting_is(config, "--optimizer", "dist_muon"))
        put_setting(config, "train.muon_distributed", "true", setting_find(config, "--optimizer"));
    megatron_gpus(config, diag);
    megatron_allocator(config);
    finish_tensor(config);
    finish_recomputation(config);
    finish_pipeline(config, deepspeed != NULL, diag);
    finish_sharding(config);
    if (deepspeed) {
        put_setting(config, "strategy", "deepspeed", deepspeed);
        put_assumed(config, "stack", "megatron-deepspeed-2022", "the version is not in the file");
        if (!put_find(config, "deepspeed.zero_optimization.stage"))
            put_assumed(config, "deepspeed.zero_optimization.stage", "1", "Megatron-DeepSpeed's default");
    } else {
        bool old = setting_find(config, "--checkpoint-activations") || setting_find(config, "--DDP-impl");
        put_assumed(config, "strategy", "megatron", NULL);
        put_assumed(config, "stack", old ? "megatron-2021" : "megatron-core", "the version is not in the file");
        finish_switches(config);
    }
    struct configuration_setting *pipeline = setting_find(config, "--no-pipeline-parallel");
    setting_aside(pipeline, "one stage");
    struct configuration_setting *partition = setting_find(config, "--partition-activations");
    if (put_int(config, PAR "tensor", 1) == 1)
        setting_aside(partition, "of tensor parallelism");
    setting_refuse(partition, "each rank of tensor parallelism keeps whole inputs of blocks");
    if (file && config->has[CONFIGURATION_DEEPSPEED])
        setting_aside(file, "read");
    setting_refuse(file, "name that file, too");
    megatron_model(config, diag);
    const char *family = put_model_find(config, "family");
    finish_softmax(config, family && strcmp(family, "gpt") == 0);
}
