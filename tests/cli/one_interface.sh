#!/usr/bin/env bash
# Every command that takes a scenario or a model has the options of a job, by the same names, and each is --set of its setting.
set -euo pipefail
# shellcheck source=/dev/null
. "$FLOPCAST_SOURCE_DIR/tests/cli/lib.bash"
job=(--topology v100-8 --gpus 8 --seq-len 128 --micro-batch 2 --strategy ddp --precision fp16_mixed --no-noise)
[[ -e $FLOPCAST_SOURCE_DIR/topologies/clusters/dgx-1v-ib.yaml ]] || fail "no cluster of V100"
job[1]=dgx-1v-ib

expect 0 "$FLOPCAST" run scenarios/models/gpt2.yaml "${job[@]}" --format csv
cp out options.csv
expect 0 "$FLOPCAST" run scenarios/models/gpt2.yaml --set cluster.topology=dgx-1v-ib --set cluster.gpus=8 --set train.seq_len=128 --set train.micro_batch=2 \
    --set strategy=ddp --set train.precision=fp16_mixed --set noise=off --format csv
cut -d, -f1-8 out | cmp - <(cut -d, -f1-8 options.csv) || fail "options are not --set: $(<out) $(<options.csv)"

# Lists are swept; 0.5k of tokens are 512; --dtype is --precision.
expect 0 "$FLOPCAST" run scenarios/models/gpt2.yaml "${job[@]:0:2}" --gpus 8,16 --seq-len 0.125k --dtype fp16_mixed --strategy ddp,zero2 --no-noise --format csv
[[ $(wc -l <out) == 5 ]] || fail "two lists of two: $(<out)"
says out "DDP" "ZeRO-2"

expect 0 "$FLOPCAST" whatif scenarios/models/gpt2.yaml "${job[@]}" --set strategy=zero1
says out "(1) strategy=zero1"
expect 0 "$FLOPCAST" waterfall scenarios/models/gpt2.yaml "${job[@]:0:2}" --gpus 8,16 "${job[@]:4}"
says out "8 -> 16 GPUs"
expect 0 "$FLOPCAST" sensitivity scenarios/models/gpt2.yaml "${job[@]}"
says out "TFLOPS per GPU"
expect 0 "$FLOPCAST" memory scenarios/models/gpt2.yaml --gpus 8 --seq-len 0.125k --micro-batch 2 --strategy fsdp2 --precision fp16_mixed --gpu v100
says out "micro-batch 2 of 128 tokens"
cp out precision.txt
expect 0 "$FLOPCAST" memory scenarios/models/gpt2.yaml --gpus 8 --seq-len 128 --micro-batch 2 --strategy fsdp2 --dtype fp16_mixed --gpu v100
cmp out precision.txt || fail "--dtype is not --precision"
expect 0 "$FLOPCAST" capacity scenarios/models/gpt2.yaml --gpus 8 --seq-len 128 --strategy zero3 --precision fp16_mixed --gpu v100
says out "zero3"

# What is missing has an option's name where there is no file to write it in.
for command in run tune goodput waterfall sensitivity; do
    expect 2 "$FLOPCAST" "$command" llama3.1-8b --seq-len 128
    says err "'cluster.topology' is not given; say it, as in --topology h100-8x400g"
done
expect 2 "$FLOPCAST" whatif llama3.1-8b --topology h100 --set cluster.gpus=8
says err "'cluster.gpus' is not given; say it, as in --gpus 8"
expect 2 "$FLOPCAST" run llama3.1-8b --topology h100 --gpus 8
says err "'train.seq_len' is not given; say it, as in --seq-len 4096"
expect 2 "$FLOPCAST" run scenarios/models/gpt2.yaml "${job[@]:0:4}" --seq-len 128 --strategy ZeRO3
says err "did you mean 'zero3'?"
