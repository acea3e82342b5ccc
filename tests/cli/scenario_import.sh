#!/usr/bin/env bash
# `flopcast scenario import`: configurations as projects publish them become scenarios that run, and what was not understood is named.
#   ds_config_zero3.json                huggingface/transformers tests/deepspeed/ds_config_zero3.json
#   bing_bert_bsz64k_lamb_seq128.json   deepspeedai/DeepSpeedExamples training/bing_bert/deepspeed_bsz64k_lamb_config_seq128.json
#   accelerate_*.yaml                   what `accelerate config` writes
#   llama3_8b.toml                      pytorch/torchtitan torchtitan/models/llama3/train_configs/llama3_8b.toml, 2025
#   train_gpt3_175b_distributed.sh      NVIDIA/Megatron-LM examples/gpt3/train_gpt3_175b_distributed.sh
#   tr11-176B-ml.slurm                  bigscience-workshop/bigscience train/tr11-176B-ml/tr11-176B-ml.slurm (BLOOM)
# They were written after these files from memory, and not compared with the repositories: settings and lines may differ.
set -euo pipefail
# shellcheck source=/dev/null
. "$FLOPCAST_SOURCE_DIR/tests/cli/lib.bash"
data=$FLOPCAST_SOURCE_DIR/tests/exchange/data
import() { "$FLOPCAST" scenario import "$@"; }
short=(--set run.steps=1 --set run.warmup_steps=0)

# DeepSpeed's JSON with Hugging Face's "auto".
expect 0 import "$data/ds_config_zero3.json" --model llama2-7b --topology h100-8x400g --gpus 64 --set train.micro_batch=1 \
    --set train.seq_len=1024 --set train.precision=bf16_mixed --out ds.yaml
says out "ds_config_zero3.json:35:9: zero_optimization.stage = 3 -> deepspeed.zero_optimization.stage: 3" \
    "ds_config_zero3.json:46:9: zero_optimization.sub_group_size = 1e9" \
    "ds_config_zero3.json:47:9: zero_optimization.reduce_bucket_size = auto (auto: the trainer"
if grep -q '^missing' out; then fail "nothing is missing: $(<out)"; fi
says ds.yaml "stage: 3 # $data/ds_config_zero3.json:35:9 zero_optimization.stage" "micro_batch: 1 # --set"
expect 0 "$FLOPCAST" run ds.yaml "${short[@]}"
says out ZeRO-3

# An optimizer that is not simulated is no silent AdamW.
expect 0 import "$data/bing_bert_bsz64k_lamb_seq128.json" --model bert-large --topology dgx-1v-ib --gpus 64 --set train.seq_len=128 --out bert.yaml
says out "bing_bert_bsz64k_lamb_seq128.json:7:5: optimizer.type = Lamb ('Lamb' has no counterpart; simulated are: Adam AdamW" \
    "train.optimizer: adamw, in place of what is not simulated"
expect 0 "$FLOPCAST" run bert.yaml "${short[@]}" --set train.global_batch=8192
says out ZeRO-0

for kind in fsdp deepspeed; do
    expect 0 import "$data/accelerate_$kind.yaml" --model llama2-7b --topology h100-8x400g --set train.micro_batch=1 --set train.seq_len=512 --out "$kind.yaml"
    says out "not understood: 0"
    expect 0 "$FLOPCAST" run "$kind.yaml" "${short[@]}"
done
says out ZeRO-3

expect 0 import "$data/llama3_8b.toml" --topology h100-8x400g --gpus 64 --out titan.yaml
says out "llama3_8b.toml:20:1: model.flavor = 8B -> model: llama3.1-8b" "not understood: 0"
expect 0 "$FLOPCAST" run titan.yaml "${short[@]}"
says out llama3.1-8b FULL_SHARD

# The script of Megatron-LM says one node, which holds no copy of the model.
expect 0 import "$data/train_gpt3_175b_distributed.sh" --topology h100-8x400g --out gpt3.yaml
says out "missing: 1" "cluster.gpus: --gpus N, a multiple of the 128 that hold a copy of the model; the files say 8"
expect 0 import "$data/train_gpt3_175b_distributed.sh" --topology h100-8x400g --gpus 128 --out gpt3.yaml
says out "train_gpt3_175b_distributed.sh:57:2: --pipeline-model-parallel-size = 16 -> parallelism.pipeline: 16" "not understood: 0"
expect 0 "$FLOPCAST" model gpt3.model.yaml
says out 174,615,846,912 # of arXiv 2104.04473's GPT-3
expect 0 "$FLOPCAST" run gpt3.yaml "${short[@]}" --set train.global_batch=2
says out "Megatron DDP"

# BLOOM: the settings are those of flopcast's own scenario of it. What the simulation takes depends on steps and noise, too.
expect 0 import "$data/tr11-176B-ml.slurm" --topology jean-zay-a100 --gpus 384 --model bloom-176b --out bloom.yaml
says out "tr11-176B-ml.slurm:96:5: --sync-tp-duplicated-parameters" \
    "tr11-176B-ml.slurm:150:5: --nnodes (the file does not say what \$SLURM_NNODES is)"
[[ ! -e bloom.model.yaml ]] || fail "--model was given, and a model was written"
job=(--set cluster.gpus=384 --set train.global_batch=64 --set cluster.nccl_version=2.10 --plan)
expect 0 "$FLOPCAST" run bloom.yaml "${job[@]}"
tail -n +2 out | grep -v '^memory of this machine' >imported
expect 0 "$FLOPCAST" run bloom_176b "${job[@]}" --set train.device_batch=8
tail -n +2 out | grep -v '^memory of this machine' >own
cmp imported own || fail "the plans differ: $(diff imported own | head -n 5)"
expect 0 import "$data/tr11-176B-ml.slurm" --topology jean-zay-a100 --gpus 384 --out bloom.yaml
expect 0 "$FLOPCAST" model bloom.model.yaml
says out 176,247,271,424 # of huggingface.co/bigscience/bloom

# To stdout, with the lists on stderr; nothing is written beside it.
expect 0 import "$data/train_gpt3_175b_distributed.sh"
says out "pipeline: 16"
says err "missing: " "model: --out FILE, so that it can be written beside the scenario, or --model NAME"

# Mistakes: what is wrong, where, and nothing is written.
printf '{"zero_optimization": {"stage": 4}}' >bad.json
expect 2 import bad.json --out refused.yaml
says err "bad.json:1:33: error: zero_optimization.stage is 4; deepspeed.zero_optimization.stage is from 0 to 3"
[[ ! -e refused.yaml ]] || fail "refused.yaml was made"
printf '{"train_micro_batch_size_per_gpu": 4,}}' >bad.json
expect 2 import bad.json
says err "bad.json:1:39: error"
expect 2 import absent.json
says err "absent.json:1:1: error: cannot open"
expect 2 import "$data/llama3_8b.toml" --from deepspeed
says err "llama3_8b.toml:"
expect 2 import
says err "a file is missing"
expect 1 import "$data/accelerate_fsdp.yaml" --out no/such/folder.yaml
says err "cannot write"
# What does not go together is reported where it stands in the scenario.
expect 2 import "$data/llama3_8b.toml" --topology h100-8x400g --gpus 12 --out odd.yaml
says err "odd.yaml:"
expect 2 "$FLOPCAST" scenario export
says err "'export' is nothing to do; there is: import"
