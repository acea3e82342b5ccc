#!/usr/bin/env bash
# `flopcast scenario import`: configurations as projects publish them become scenarios that run, and what was not understood is named.
#   ds_config_zero3.json                huggingface/transformers tests/deepspeed/ds_config_zero3.json
#   bing_bert_bsz64k_lamb_seq128.json   deepspeedai/DeepSpeedExamples training/bing_bert/deepspeed_bsz64k_lamb_config_seq128.json
#   accelerate_*.yaml                   what `accelerate config` writes
#   llama3_8b.toml                      pytorch/torchtitan torchtitan/models/llama3/train_configs/llama3_8b.toml, 2025
#   train_gpt3_175b_distributed.sh      NVIDIA/Megatron-LM examples/gpt3/train_gpt3_175b_distributed.sh
#   llama3_405b_2025_03.toml            the same of llama3_405b.toml in March 2025: converters = "float8", keys of 2024
#   train_llama3_8b_h100_fp8.sh         NVIDIA/Megatron-LM examples/llama/train_llama3_8b_h100_fp8.sh, 2025
#   DeepSeek-R1.sh                      NVIDIA/Megatron-LM examples/post_training/modelopt/conf/deepseek-ai/DeepSeek-R1.sh
#   ds_config_compress.json             a configuration of DeepSpeedExamples compression/bert
#   automodel_*.yaml, primus_*.yaml     of the kind of NeMo AutoModel's examples/llm_benchmark and AMD-AGI/Primus' examples
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
    "ds_config_zero3.json:47:9: zero_optimization.reduce_bucket_size = auto -> deepspeed.zero_optimization.reduce_bucket_size: 16777216" \
    "not understood: 0" # 16,777,216 = 4,096 squared, of transformers' Trainer
if grep -q '^missing' out; then fail "nothing is missing: $(<out)"; fi
says ds.yaml "stage: 3 # $data/ds_config_zero3.json:35:9 zero_optimization.stage" "micro_batch: 1 # --set"
expect 0 "$FLOPCAST" run ds.yaml "${short[@]}"
says out ZeRO-3

# NeMo AutoModel's and Primus' YAML, known by its keys; models and defaults by name, variables by their defaults.
for kind in automodel_deepseek automodel_lora primus_megatron primus_torchtitan; do
    case $kind in automodel*) topology=h100 ;; *) topology=mi300x ;; esac
    expect 0 import "$data/$kind.yaml" --topology "$topology" --out "$kind.yaml"
    says out "not understood: 0"
done
says automodel_deepseek.yaml "model: \"deepseek-v3\"" "virtual: 7" "gpus: 128" "moe_flex_dispatcher_backend: hybridep" "version: 2"
says automodel_lora.yaml "lora_rank: 16" "optimizer_impl: for_loop" "sequence: true"
says primus_megatron.yaml "model: \"llama3.1-8b\"" "seq_len: 8192" "precision: fp8_mixed" "recompute_num_layers: 4" "cluster.gpus: 8, nodes of eight GPUs"
says primus_torchtitan.yaml "model: \"qwen3-8b\"" "micro_batch: 4" "fusion: inductor"
expect 0 "$FLOPCAST" run automodel_lora.yaml "${short[@]}"
expect 0 "$FLOPCAST" run primus_megatron.yaml "${short[@]}"
expect 0 "$FLOPCAST" run primus_torchtitan.yaml "${short[@]}"
sed 's/llama3.1_8B.yaml/unheard_of_7B.yaml/' "$data/primus_megatron.yaml" >unheard.yaml
expect 1 import unheard.yaml --topology mi300x --out unheard_out.yaml
says err "model: --model CONFIG.JSON, of unheard_of_7B.yaml"
sed 's/train_iters: 50/num_layers: 16/' "$data/primus_megatron.yaml" >layers.yaml
expect 1 import layers.yaml --topology mi300x --out layers_out.yaml
says out "--num-layers = 16 (the model, which is named, has 32; --model takes another)"
sed 's/PRIMUS_TP:1/PRIMUS_TP/' "$data/primus_megatron.yaml" >variable.yaml
expect 1 import variable.yaml --topology mi300x --out variable_out.yaml
says err "parallelism.tensor: --set parallelism.tensor=VALUE; the file does not say what PRIMUS_TP is"
sed 's/llama3.1_8B/diffusion\/flux_535m/' "$data/primus_megatron.yaml" >flux.yaml
expect 2 import flux.yaml --topology mi300x
says err "a diffusion model of images (FLUX), which is not simulated"

# "auto" everywhere and nothing said about it: a stub, and status 1.
expect 1 import "$data/ds_config_zero3.json" --topology h100-8x400g --out stub.yaml
says err "ds_config_zero3.json: error: the scenario does not run yet; what is missing (5): train.precision: --set train.precision=bf16_mixed"
says stub.yaml "# missing: cluster.gpus: --gpus N" "# missing: train.micro_batch: --set train.micro_batch=VALUE; auto: the trainer"

# An optimizer that is not simulated is no silent AdamW.
bert=("$data/bing_bert_bsz64k_lamb_seq128.json" --model bert-large --topology dgx-1v-ib --gpus 64 --set train.seq_len=128)
expect 1 import "${bert[@]}" --out bert.yaml
says err "json:7:5: error: not understood, and may change speed or memory (1): optimizer.type; the scenario leaves it out"
says bert.yaml "not understood: optimizer.type = Lamb"
expect 0 import "${bert[@]}" --set train.optimizer=adam --out bert.yaml
says out "optimizer.type = Lamb (the command line says it)" "not understood: 0"
expect 0 import --force "$data/bing_bert_bsz64k_lamb_seq128.json" --model bert-large --topology dgx-1v-ib --gpus 64 --set train.seq_len=128 --out bert.yaml
says out "bing_bert_bsz64k_lamb_seq128.json:7:5: optimizer.type = Lamb ('Lamb' has no counterpart; simulated are: Adam AdamW" \
    "train.optimizer: adamw, in place of what is not simulated"
expect 0 "$FLOPCAST" run bert.yaml "${short[@]}" --set train.global_batch=8192
says out ZeRO-0

expect 0 import "$data/ds_config_compress.json" --model bert-large --topology h100-8x400g --gpus 8 --set train.seq_len=128 --out compress.yaml
says out "fp16.enabled = false (off)" "not understood: 0" "compression_training: fake quantization, masks and the teacher are not simulated"

for kind in fsdp deepspeed megatron cp fp8; do
    expect 0 import "$data/accelerate_$kind.yaml" --model llama2-7b --topology h100-8x400g --set train.micro_batch=1 --set train.seq_len=512 --out "$kind.yaml"
    says out "not understood: 0"
    expect 0 "$FLOPCAST" run "$kind.yaml" "${short[@]}"
    case $kind in fsdp | cp) says out FULL_SHARD ;; deepspeed) says out ZeRO-3 ;; megatron) says out "Megatron distributed optimizer" ;; esac
done
says cp.yaml "attention: flash" "context: 8"
# accelerate's accumulate() is no_sync(), without which offloaded gradients could not accumulate.
expect 0 "$FLOPCAST" run fsdp.yaml "${short[@]}" --set train.grad_accum=2 --set fsdp.cpu_offload=true
says fp8.yaml "precision: fp8_mixed" "fp8_recipe: delayed"
if grep -q autocast fp8.yaml; then fail "autocast is not of FP8: $(<fp8.yaml)"; fi

expect 0 import "$data/llama3_8b.toml" --topology h100-8x400g --gpus 64 --seq-len 4096 --micro-batch 3 --out titan.yaml # as of memory, tune, goodput
says titan.yaml "seq_len: 4096" "micro_batch: 3"
says out "llama3_8b.toml:20:1: model.flavor = 8B -> model: llama3.1-8b" "not understood: 0"
expect 0 "$FLOPCAST" run titan.yaml "${short[@]}"
says out llama3.1-8b FULL_SHARD

# FP8 as it was spelled in March 2025, and a model by name and flavor.
expect 0 import "$data/llama3_405b_2025_03.toml" --topology h100-8x400g --gpus 128 --out titan405.yaml
says out "model.converters = float8 -> train.precision: fp8_mixed" "model.flavor = 405B -> model: llama3.1-405b" "not understood: 0"
if grep -q "assumed.*bf16_mixed\|train.precision: bf16_mixed" titan405.yaml out; then fail "BF16 is assumed beside FP8: $(<out)"; fi
expect 0 "$FLOPCAST" run titan405.yaml "${short[@]}"
says out llama3.1-405b

# Array elements that the shell splits later hold the precision; sequence parallelism is off where tensor parallelism is 1.
expect 0 import "$data/train_llama3_8b_h100_fp8.sh" --topology h100-8x400g --out llama8.yaml
says out '--fp8-format = hybrid -> train.precision: fp8_mixed' "--sequence-parallel (Megatron-LM switches it off" "not understood: 0"
expect 0 "$FLOPCAST" model llama8.model.yaml
says out "8,030,261,248" # Llama 3 8B

# Latent attention, shared experts, blocks without experts: the parameters of DeepSeek-R1's config.json.
expect 0 import "$data/DeepSeek-R1.sh" --topology h100-8x400g --gpus 256 --set parallelism.expert=64 --set train.global_batch=256 --out r1.yaml
says out "--no-rope-fusion -> train.rotary: unfused" "--moe-layer-freq = ([0]*3+[1]*58) -> moe.dense_layers: 3" "not understood: 0"
expect 0 "$FLOPCAST" model r1.model.yaml
says out 671,026,419,200 37,552,297,472

# Conversations are packed into sequences; how long they are no argument says.
echo 'torchrun pretrain_gpt.py --sft --bf16 --seq-length 4096' >sft.sh
expect 1 import sft.sh --out sft.yaml
says sft.yaml "--sft: conversations are packed into sequences" "unless train.document_mean or document_lengths says otherwise"

# The script of Megatron-LM says one node, which holds no copy of the model.
expect 1 import "$data/train_gpt3_175b_distributed.sh" --topology h100-8x400g --out gpt3.yaml
says out "missing: 1" "cluster.gpus: --gpus N, a multiple of the 128 that hold a copy of the model; the files say 8"
expect 0 import "$data/train_gpt3_175b_distributed.sh" --topology h100-8x400g --gpus 128 --out gpt3.yaml
says out "train_gpt3_175b_distributed.sh:57:2: --pipeline-model-parallel-size = 16 -> parallelism.pipeline: 16" "not understood: 0"
expect 0 "$FLOPCAST" model gpt3.model.yaml
says out 174,615,846,912 # of arXiv 2104.04473's GPT-3
expect 0 "$FLOPCAST" run gpt3.yaml "${short[@]}" --set train.global_batch=2
says out "Megatron DDP"

# BLOOM: the settings are those of flopcast's own scenario of it. What the simulation takes depends on steps and noise, too.
# Its head for Slurm says how many nodes there are.
expect 0 import --force "$data/tr11-176B-ml.slurm" --topology jean-zay-a100 --model bloom-176b --out bloom.yaml
says out "tr11-176B-ml.slurm:96:5: --sync-tp-duplicated-parameters" "--deepspeed-config (name that file, too)" \
    "tr11-176B-ml.slurm:6:9: #SBATCH --nodes = 48 (of the launcher)" "--nproc-per-node = 8 -> cluster.gpus: 384" \
    "tr11-176B-ml.slurm:150:5: --nnodes = 48 (with --nproc-per-node)"
# What --model and --gpus say is not what was taken of the file.
says out "--num-layers = 70 (the command line says it)"
if grep -q 'n_layers: 70' out; then fail "the shape was taken, and --model given"; fi
expect 1 import "$data/accelerate_fsdp.yaml" --gpus 64
says err "num_processes = 16 (the command line says it)"
[[ ! -e bloom.model.yaml ]] || fail "--model was given, and a model was written"
job=(--set cluster.gpus=384 --set train.global_batch=64 --set cluster.nccl_version=2.10 --plan)
expect 0 "$FLOPCAST" run bloom.yaml "${job[@]}"
tail -n +2 out >imported
expect 0 "$FLOPCAST" run bloom_176b "${job[@]}" --set train.device_batch=8
tail -n +2 out >own
cmp imported own || fail "the plans differ: $(diff imported own | head -n 5)"
expect 0 import --force "$data/tr11-176B-ml.slurm" --topology jean-zay-a100 --gpus 384 --out bloom.yaml
expect 0 "$FLOPCAST" model bloom.model.yaml
says out 176,247,271,424 # of huggingface.co/bigscience/bloom

# To stdout, with the lists on stderr; nothing is written beside it.
expect 1 import "$data/train_gpt3_175b_distributed.sh"
says out "pipeline: 16"
says err "missing: " "model: --out FILE, so that it can be written beside the scenario, or --model NAME"

# What the script leaves to its environment is missing, and what may matter is not left out without a word.
cat >mine.sh <<'SH'
torchrun --nproc_per_node 8 --nnodes ${SLURM_NNODES:-"1"} pretrain_gpt.py --num-layers 4 --hidden-size 512 --num-attention-heads 8 \
    --squared-relu --position-embedding-type rope --tensor-model-parallel-size $TP --seq-length 512 --max-position-embeddings 512 \
    --micro-batch-size 1 --tokenizer-type GPT2BPETokenizer --bf16 --sequence-parallel --foo-bar 3
SH
expect 1 import mine.sh --topology h100-8x400g --out mine.yaml
says err "mine.sh: error: the scenario does not run yet; what is missing (1): parallelism.tensor: --set parallelism.tensor=VALUE; the file does not say what \$TP is" \
    "mine.sh:3:87: error: not understood, and may change speed or memory (1): --foo-bar"
expect 1 import mine.sh --topology h100-8x400g --out mine.yaml --set parallelism.tensor=2
says mine.yaml '"not understood: --foo-bar = 3"' "gpus: 8" "--squared-relu: simulated as GELU"
expect 0 import mine.sh --topology h100-8x400g --out mine.yaml --set parallelism.tensor=2 --force
expect 0 "$FLOPCAST" run mine.yaml "${short[@]}"
says out "not understood: --foo-bar = 3"

# A scheduler's head, launchers and the environment say what is theirs. One string holds the whole command.
model="--num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336 --num-attention-heads 32 --seq-length 8192 \
--max-position-embeddings 8192 --position-embedding-type rope --swiglu --normalization RMSNorm --disable-bias-linear \
--untie-embeddings-and-output-weights --vocab-size 131072 --micro-batch-size 1 --global-batch-size 256 --bf16 \
--use-distributed-optimizer --attention-dropout 0 --hidden-dropout 0"
cat >alps.sh <<SH
#!/bin/bash
#SBATCH --nodes=16
#SBATCH --gpus-per-node=4
export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True,max_split_size_mb:256
CMD="numactl --membind=0-3 torchrun --nnodes \$SLURM_NNODES --nproc-per-node \$SLURM_GPUS_PER_NODE pretrain_gpt.py $model \
  --use-precision-aware-optimizer --main-grads-dtype bf16"
srun bash -c "\$CMD"
SH
expect 0 import alps.sh --topology alps-gh200 --out alps.yaml
says alps.yaml "gpus: 64" "grad_reduce_in_fp32: false" "expandable_segments: true" "max_split_size_mb: 256" \
    "--use-precision-aware-optimizer: master weights are simulated in 4 bytes"
says out "numactl --membind = 0-3 (of the launcher)" "not understood: 0"
# Without torchrun each process has a GPU; what no known launcher takes is not left out in silence.
gpus() { # gpus NUMBER COMMAND [HEAD]
    # shellcheck disable=SC2016 # the script expands it
    printf '#!/bin/bash\n%s\nARGS=(%s)\n%s ${ARGS[@]}\n' "${3-}" "$model" "$2" >launch.sh
    expect 0 import launch.sh --topology h100 --out launch.yaml
    says launch.yaml "gpus: $1 "
}
gpus 32 "srun -N 4 --ntasks-per-node 8 --cpu-bind=none ./bind.sh --verbose python -u pretrain_gpt.py"
gpus 64 "mpirun -np 64 -N 8 -x NCCL_DEBUG=INFO --map-by slot nsys profile --trace cuda,nvtx python3 pretrain_gpt.py"
gpus 16 "srun apptainer exec --nv image.sif python pretrain_gpt.py" "#SBATCH -N 2 --gres=gpu:h100:8"
gpus 32 "env OMP_NUM_THREADS=4 taskset -c 0-31 python -m torch.distributed.run --nproc-per-node gpu --nnodes \$SLURM_JOB_NUM_NODES \
pretrain_gpt.py" "#SBATCH --nodes 4 --gpus-per-node=8"
gpus 8 "accelerate launch --num_processes 8 pretrain_gpt.py"
gpus 16 "deepspeed --num_nodes 2 --num_gpus 8 pretrain_gpt.py"
gpus 32 "mpiexec --hostfile hosts python pretrain_gpt.py" "#PBS -l select=4:ncpus=64:ngpus=8:mpiprocs=8"
gpus 16 "jsrun --smpiargs=-gpu python pretrain_gpt.py" "#BSUB -nnodes 4 -gpu num=4"
printf 'PYTORCH_ALLOC_CONF=backend:cudaMallocAsync python pretrain_gpt.py %s\n' "$model" >launch.sh
expect 1 import launch.sh --topology h100 --gpus 8 --out launch.yaml
says out "PYTORCH_ALLOC_CONF = backend:cudaMallocAsync (of backend PyTorch's default is simulated)"
printf 'torchrun --nproc-per-node 8 pretrain_gpt.py %s --exp-avg-dtype bf16 --exp-avg-sq-dtype fp8\n' "$model" >launch.sh
expect 1 import launch.sh --topology h100 --out launch.yaml
says out "--exp-avg-dtype = bf16 -> megatron.exp_avg_dtype: bf16" "--exp-avg-sq-dtype = fp8 ('fp8' has no counterpart; simulated are: fp32 bf16)"
# Experts of a latent, as Nemotron 3's.
printf 'torchrun --nproc-per-node 8 pretrain_gpt.py %s --num-experts 8 --moe-latent-size 1024\n' "$model" >latent.sh
expect 0 import latent.sh --topology h100 --out latent.yaml
says latent.model.yaml "latent: 1024"

# Whose file it is that is not read.
printf 'base_model: a\nsequence_len: 1\nmicro_batch_size: 1\ndatasets: []\n' >other.yaml
expect 2 import other.yaml
says err "other.yaml:1:1: error: this is axolotl's configuration, which is not read yet"
printf 'model_name_or_path: a\nstage: sft\nfinetuning_type: full\n' >other.yaml
expect 2 import other.yaml
says err "this is LLaMA-Factory's"
printf 'work_group: a\nmodules: {pre_trainer: {framework: maxtext}}\n' >other.yaml
expect 2 import other.yaml
says err "other.yaml:2:36: error: modules of the framework 'maxtext' are not read; those of megatron and torchtitan are"
rm other.yaml
printf 'parser.add_argument("--lr")\n' >train.py
expect 2 import train.py
says err "train.py: error: scripts of Python are not read" "help settings"

# Paths are those of the working folder; the scenario in another one finds them. A config.json is called as its folder.
mkdir -p there given tiny
cp "$FLOPCAST_SOURCE_DIR/topologies/clusters/h100-8x400g.yaml" given/cluster.yaml
sed -i "s|^node: \.\.|node: $FLOPCAST_SOURCE_DIR/topologies|" given/cluster.yaml
printf '{"model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
 "vocab_size": 256, "moe_latent_size": 8}' >tiny/config.json
job=(--topology given/cluster.yaml --gpus 8 --seq-len 64 --micro-batch 1 --out there/job.yaml)
expect 2 import "$data/accelerate_fsdp.yaml" --model tiny/config.json "${job[@]}"
says err "moe_latent_size 8 is not known for model_type 'llama'"
expect 0 import "$data/accelerate_fsdp.yaml" --model tiny/config.json --force "${job[@]}"
says there/job.yaml 'model: "../tiny/config.json"' 'topology: "../given/cluster.yaml"' 'force: true'
expect 0 "$FLOPCAST" run there/job.yaml "${short[@]}"
says out "tiny"

# Jobs of another sort: no GPT is made of them.
other() { # other ARGUMENTS TEXT
    printf '%s\n' "$1" >other.sh
    expect 2 import other.sh --topology h100-8x400g --out other.yaml
    says err "$2"
    [[ ! -e other.yaml ]] || fail "other.yaml was made"
}
gpt="--num-layers 24 --hidden-size 1024 --num-attention-heads 16 --seq-length 512 --micro-batch-size 4 --fp16"
other "torchrun pretrain_bert.py $gpt" "other.sh:1:10: error: pretrain_bert.py trains a BERT"
other "torchrun pretrain_t5.py $gpt" "pretrain_t5.py trains a T5"
other "torchrun pretrain_vision_classify.py $gpt" "pretrain_vision_classify.py trains a model of images"
other "torchrun train.py $gpt --img-h 224" "--img-h is of a model of images"
other "torchrun pretrain_gpt.py $gpt --hybrid-layer-pattern M-M-" "--hybrid-layer-pattern is of a state-space model"
other "torchrun train_rl.py $gpt --grpo-iterations 1" "--grpo-iterations is of reinforcement learning"
other "torchrun pretrain_gpt.py $gpt --num-experts 8" "--num-experts: experts and latent attention are simulated with gated layers"
expect 0 import "$data/llama3_8b.toml" --model llama2-7b --topology h100-8x400g --gpus 8 --out named.yaml
says out "model.flavor = 8B (the command line says it)"
printf '[model]\nname = "llama4"\nflavor = "17bx16e"\n' >l4.toml
expect 2 import l4.toml
says err "l4.toml:3:10: error: flopcast has no model for torchtitan's llama4 17bx16e; --model NAME"

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

# What `tune` emits is read again (cli.tune_emit has ten winners, and to the bit).
for emits in "torchtitan toml fsdp2" "automodel yaml fsdp2" "megatron sh megatron"; do
    read -r trainer ending strategy <<<"$emits"
    expect 0 "$FLOPCAST" tune llama3.2-1b --topology h100 --gpus 8 --seq-len 512 --global-batch 16 \
        --max-batch 1 --limit 1 --top 1 --no-noise --strategy "$strategy" --emit "$trainer" --out "emitted.$ending"
    expect 0 "$FLOPCAST" scenario import "emitted.$ending" --out imported.yaml
    says out "not understood: 0"
done
