#!/usr/bin/env bash
# `flopcast tune` over layouts: strategy: megatron. A table with degrees and a reason, a command that gives it back.
set -euo pipefail
# shellcheck source=/dev/null
. "$FLOPCAST_SOURCE_DIR/tests/cli/lib.bash"
cat >wide.json <<'EOF'
{"model_type": "llama", "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 4, "num_attention_heads": 32,
 "num_key_value_heads": 8, "vocab_size": 32000, "tie_word_embeddings": false}
EOF
cat >a.yaml <<'EOF'
name: layouts
model: wide.json
cluster: {topology: h100-8x400g, gpus: 16}
train: {micro_batch: 1, seq_len: 2048, global_batch: 32, attention: flash}
strategy: megatron
run: {steps: 1, warmup_steps: 1}
EOF

expect 0 "$FLOPCAST" tune a.yaml --max-batch 2 --top 3
says out "best by speed" " tp " " cp " " pp " " vp " " ep " " dp " "fill, drain" "why: of its step, kernels " "the next that differ in more than vp" \
    "slower by their bounds" "without noise"
[[ $(grep -c '^H100' out) == 3 ]] || fail "not three rows: $(<out)"
cp out first
expect 0 env OMP_NUM_THREADS=1 "$FLOPCAST" tune a.yaml --max-batch 2 --top 3
cmp out first || fail "the answer depends on the number of threads"

# What is recommended runs as is, at the step time of the table's best: TFLOPS alike. It is what a search that simulates
# all finds.
command=$(sed -n 's/^the first: flopcast //p' out)
# shellcheck disable=SC2086 # words
"$FLOPCAST" $command --set noise.gpu_speed_spread=0 --set noise.kernel_jitter=0 --set noise.network_jitter=0 --set noise.host_jitter=0 \
    --format csv | tr -d '\r' >ran.csv
"$FLOPCAST" tune a.yaml --max-batch 2 --top 1000 --format csv | tr -d '\r' >all.csv
ran=$(awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "tflops_per_gpu") at = i } NR == 2 { printf "%.9g", $at }' ran.csv)
best=$(awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "tflops_per_gpu") left = NF - i } # names before have commas
    NR > 1 && $(NF - left) > best { best = $(NF - left) } END { printf "%.9g", best }' all.csv)
[[ $ran == "$best" ]] || fail "the first runs at $ran TFLOPS, the best of all at $best"
if grep -q ",slower," all.csv; then fail "layouts were left out though all are to be shown"; fi

# Collectives of tensor, context and expert groups take no less than nothing.
expect 0 "$FLOPCAST" tune a.yaml --max-batch 1 --top 30 --set parallelism.tensor=1
if grep -- ' -0\.0 ' out; then fail "a part of a step is below 0"; fi

# What --set says stays; another --global-batch is taken, but not against --set.
expect 0 "$FLOPCAST" tune a.yaml --max-batch 1 --top 1 --set parallelism.tensor=4 --set parallelism.pipeline=2 --global-batch 64
says out "--set parallelism.tensor=4" "--set parallelism.pipeline=2" "--set train.global_batch=64"
expect 2 "$FLOPCAST" tune a.yaml --max-batch 1 --set train.global_batch=32 --global-batch 64
says err "accumulates to a global batch of 64 on these GPUs"
# What cannot be is said.
expect 2 "$FLOPCAST" tune a.yaml --max-batch 1 --set parallelism.tensor=1 --set parallelism.context=1 --set parallelism.pipeline=2 --set parallelism.virtual=2 --global-batch 8
says err "none of 2 combinations is possible; the first: " "interleaved stages take micro-batches in groups of 2"
expect 2 "$FLOPCAST" tune a.yaml --set parallelism.tensor=3
says err "which does not divide 16 GPUs"
expect 0 "$FLOPCAST" tune a.yaml --max-batch 1 --set cluster.node.gpu.hbm_capacity=2GB
says out "nothing fits: take more or larger GPUs" "cannot fit"
# Beside strategies of data parallelism alone, all without noise.
expect 0 "$FLOPCAST" tune a.yaml --max-batch 1 --top 50 --global-batch 32 --set "strategy=[ddp, megatron]" --set train.activation_checkpointing=none
says out "Megatron distributed optimizer" "DDP"

# Stages that are given stand, though the scenario's own split has no place for 32 blocks on 5 of them, or its batch for chunks of 2.
expect 0 "$FLOPCAST" tune llama3.1-8b --topology h100-8x400g --gpus 40 --seq-len 4096 --global-batch 40 --strategy megatron --pipeline 5 --virtual 2 \
    --tensor 8 --limit 1 --top 1 --format csv
[[ $(tail -n +2 out | cut -d, -f16,18,19 | sort -u) == 8,5,2 ]] || fail "other degrees than --tensor 8 --pipeline 5 --virtual 2"
