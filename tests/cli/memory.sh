#!/usr/bin/env bash
# flopcast memory and capacity: the figures that courses teach come out, in every format; wrong usage ends with exit status 2.
set -euo pipefail
export COLUMNS=0 # tables as they are
failed=0
models=$FLOPCAST_SOURCE_DIR/scenarios/models

# row NAME RULE MODELLED ARGUMENT...: the row of rules has these figures, given in 10^9 bytes and printed in GiB
row() {
    local name=$1 rule=$2 modelled=$3
    shift 3
    "$FLOPCAST" memory --teach "$@" >out
    awk -v name="$name" -v rule="$rule" -v modelled="$modelled" '
        function is(printed, e9) { e9 -= printed * 2 ^ 30 / 1e9; return e9 * e9 <= 0.0011 ^ 2 }
        index($0, name " ") == 1 { rest = substr($0, length(name) + 1); split(rest, f, " "); found = is(f[1], rule) && is(f[2], modelled) }
        END { exit !found }' out || { echo "memory $*: '$name' is not $rule $modelled:"; cat out; failed=1; }
}
row "weights, FP32: 4 P" 4.000 4.000 1B
row "training, FP32: 80 P" 80.000 16.000 1B
row "training, 16 bit: 40 P" 40.000 8.000 1B
row "training, 8 bit: 20 P" 20.000 4.000 1B
row "16-bit Adam: 2 P + 2 P + 4 P" 560.000 560.000 70B
row "AdamW state, FP32: 8 P" 8.000 8.000 1e9
row "ZeRO-3: N x less" 1.875 1.875 7.5B --gpus 64 # arXiv 1910.02054, Figure 1
row "weights, 16 bit: 2 P" 22.615 22.615 "$models/t5-11b.yaml"
# Keys and values of 32 layers of 4096, 8 x 4096 tokens; beside 6.738416e9 parameters.
row "KV cache, 16 bit" 17.180 17.180 "$models/llama2-7b.yaml" --micro-batch 8 --seq-len 4096
row "KV cache, 8 bit" 8.590 8.590 "$models/llama2-7b.yaml" --micro-batch 8 --seq-len 4096
row "inference, 16 bit: 2 P + cache" 30.657 30.657 "$models/llama2-7b.yaml" --micro-batch 8 --seq-len 4096
row "inference, 8 bit: P + cache" 15.328 15.328 "$models/llama2-7b.yaml" --micro-batch 8 --seq-len 4096

# Rules of thumb are for those who ask for them.
"$FLOPCAST" memory 70B >out 2>err
[[ ! -s err ]] || { cat err; failed=1; } # no file of the list warns of itself
if grep -q "rules of thumb\|ZeRO-3" out; then cat out; failed=1; fi
cards=("$FLOPCAST_SOURCE_DIR"/topologies/gpus/*.yaml)
[[ $(wc -l <out) -le $((${#cards[@]} + 16)) ]] || { cat out; failed=1; } # a line a GPU that is known
"$FLOPCAST" memory 70B --format csv >out
if grep -q "^rule" out; then cat out; failed=1; fi
"$FLOPCAST" memory 70B --format csv --teach >out
[[ $(grep -c "^rule," out) -ge 15 ]] || { cat out; failed=1; }

# What is allocated at the fullest moment is what a run allocates.
"$FLOPCAST" memory "$models/llama2-7b.yaml" --strategy fsdp --gpus 8 --micro-batch 2 --seq-len 2048 --attention flash --format csv >rows.csv
cat >same.yaml <<YAML
name: same
model: $models/llama2-7b.yaml
cluster: {topology: $FLOPCAST_SOURCE_DIR/topologies/clusters/h100-8x400g.yaml, gpus: 8}
train: {micro_batch: 2, seq_len: 2048, precision: bf16_mixed, attention: flash}
strategy: fsdp
YAML
# Where segments expand; else PyTorch hands out blocks whole that leave up to 1 MiB.
"$FLOPCAST" run same.yaml --set run.expandable_segments=true --format csv >ran.csv
allocated=$(tr -d '\r' <ran.csv | awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "peak_allocated_bytes") at = i } NR == 2 { print $at }')
grep -q "^gpu,total,,$allocated," rows.csv || { echo "run: $allocated"; cat rows.csv; failed=1; }
# The same of the scenario itself, in the same words.
"$FLOPCAST" memory same.yaml --set run.expandable_segments=true --format csv >rows.csv
grep -q "^gpu,total,,$allocated," rows.csv || { echo "run of same.yaml: $allocated"; cat rows.csv; failed=1; }
# Several points are a row each, with what `run` allocates of each.
"$FLOPCAST" run same.yaml --gpus 8,16 --set run.expandable_segments=true --format csv >ran.csv
"$FLOPCAST" memory same.yaml --gpus 8,16 --format csv >rows.csv
column() { tr -d '\r' <"$1" | sed 's/"[^"]*"//g' | awk -F, -v name="$2" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) at = i } NR > 1 { print $at }'; }
[[ $(column rows.csv total_bytes) == "$(column ran.csv peak_allocated_bytes)" && $(column rows.csv gpus) == $'8\n16' ]] ||
    { cat rows.csv ran.csv; failed=1; }
# The answer comes first.
"$FLOPCAST" memory same.yaml --gpus 8,16 >out
tr '\n' ' ' <out | grep -qE "^2 of 2 points fit by the peak; the largest takes [0-9.]+ GiB: llama2-7b FULL_SHARD, batch 2, 8 GPUs " || { cat out; failed=1; }
"$FLOPCAST" memory same.yaml --savings >out
tr '\n' ' ' <out | grep -qE "^[0-9.]+ GiB of each GPU as it is, which fits; --checkpointing full saves most, [0-9.]+ GiB for \+[0-9.]+ % of the step; ([0-9]+) of \1 changes fit " ||
    { cat out; failed=1; }
# On a card that is named, and by the usual strategy of several GPUs.
"$FLOPCAST" memory "$models/llama2-7b.yaml" --gpus 8,16 --gpu 8GiB --format csv >rows.csv
[[ $(column rows.csv fits) == $'too large\ntoo large' && $(column rows.csv total_bytes | sort -u | wc -l) == 1 ]] || { cat rows.csv; failed=1; }
# What each way to save memory gives and costs: full checkpointing recomputes a forward pass, so a step takes up to a third longer; what is
# saved is what is no longer there.
"$FLOPCAST" memory same.yaml --savings --format csv | tr -d '\r' >rows.csv
awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
    NR == 2 { whole = $at["total_bytes"]; step = $at["step_s"]; plain = $1 == "as it is" && $at["slower"] == 0 }
    $1 == "--checkpointing full" { full = $at["slower"] > 0.15 && $at["slower"] < 1 / 3. && $at["slower"] - ($at["step_s"] / step - 1) < 1e-6 }
    { wrong += $at["saved_bytes"] < 0 || $at["total_bytes"] + $at["saved_bytes"] != whole }
    END { exit !(plain && full && !wrong && NR > 6) }' rows.csv || { cat rows.csv; failed=1; }

# An INT8 base takes a byte an element and 4 a row, where NF4 takes 4.127 bits: 32 blocks of 4 d^2 and 3 x 11,008 d with
# d = 4,096 are 6.476e9 elements, of 32 (4 x 4,096 + 2 x 11,008 + 4,096) = 1.360e6 rows.
weights() { "$FLOPCAST" memory "$models/llama2-7b.yaml" --lora 16 --lora-base "$1" --format csv | awk -F, '$2 == "weights" { print $4 }'; }
awk -v int8="$(weights int8)" -v nf4="$(weights nf4)" 'BEGIN { more = 6476005376 * (1 - 4.127 / 8) + 4 * 1359872 - (int8 - nf4); exit !(more * more < 1) }' ||
    { echo "INT8: $(weights int8), NF4: $(weights nf4)"; failed=1; }
# Without a batch one token says what the rest takes: FP32 weights, gradients and moments and foreach's list are 20 bytes.
"$FLOPCAST" memory "$models/t5-11b.yaml" >out
grep -qE "^total +210.615 +20.000 " out || { cat out; failed=1; }
grep -q "of one token, gone by the fullest moment, the optimizer's step; give --micro-batch and --seq-len" out || { cat out; failed=1; }
grep -qE "^weights +[0-9.]+ +4\.000 .* FP32 in mixed precision: autocast casts copies for use$" out || { cat out; failed=1; }
grep -qE "^optimizer .* 8\.000 B/parameter state, 4\.000 temporaries of the step \(foreach's copies; fused has none\)$" out || { cat out; failed=1; }
grep -qE "^total .* allocated at the fullest moment, the optimizer's step; " out || { cat out; failed=1; }
grep -qE "^[0-9.]+ GiB of each GPU; of [0-9]+ known GPUs [0-9]+ hold it, the smallest [^ ]+ with [0-9.]+ GiB$" out || { cat out; failed=1; }
COLUMNS=80 "$FLOPCAST" memory "$models/llama2-7b.yaml" >out # no note is cut, and none is longer than the screen
if grep -q '\.\.' out || grep -q '.\{81\}' out; then cat out; failed=1; fi
tr -s '\n ' ' ' <out | grep -q "6,738,415,616 parameters (P)" || { cat out; failed=1; }

# In GiB, as `run` counts, and in nothing else: 560e9 / 2^30.
"$FLOPCAST" memory 70B --dtype bf16 --teach >out
grep -qE "^total +521\.541 +8\.000 " out || { cat out; failed=1; }
if grep -wv "^[A-Z].*GB  .*" out | grep -w GB; then failed=1; fi # but in names of GPUs
# The same bytes in CSV and JSON.
"$FLOPCAST" memory 70B --dtype bf16 --format csv >rows.csv
grep -qxF $'gpu,total,,560000000000,"without what needs a model file, CUDA context, NCCL and fragmentation",\r' rows.csv || { cat rows.csv; failed=1; }
"$FLOPCAST" memory 70B --dtype bf16 --format json >rows.json
grep -qF '"name": "total", "rule_bytes": null, "modelled_bytes": 560000000000' rows.json || { cat rows.json; failed=1; }

# Whether it fits is said when the GPU is named.
gpu=$FLOPCAST_SOURCE_DIR/topologies/gpus/a100-sxm4-80gb.yaml
"$FLOPCAST" memory 70B --dtype bf16 --gpu "$gpu" | grep -q "A100-SXM4-80GB: does not fit" || failed=1
"$FLOPCAST" memory 1B --gpu "$gpu" | grep -q "A100-SXM4-80GB: fits" || failed=1

"$FLOPCAST" memory 70B --dtype bf16 --gpu "$gpu" >out
grep -qxF "cheapest change that makes it fit: --strategy fsdp --gpus 8" out || { cat out; failed=1; }
# What run finds out of memory by gaps between tensors does not fit here either; where there is room it is said what was left out.
gaps=(llama3.1-8b --gpus 16 --strategy fsdp --seq-len 8k --micro-batch 1 --gpu h100)
"$FLOPCAST" memory "${gaps[@]}" >out
tr '\n' ' ' <out | grep -qE "^H100-SXM5-80GB: does not fit; .* GiB left, but in gaps between tensors \(by" || { cat out; failed=1; }
"$FLOPCAST" memory "${gaps[@]}" --format json | grep -q '"fits": false' || failed=1
"$FLOPCAST" memory "${gaps[@]}" --checkpointing full >out
grep -qxF "(without the allocator's fragmentation, which flopcast run simulates)" out || { cat out; failed=1; }
"$FLOPCAST" memory "${gaps[@]}" --set gpu.hbm_capacity=90GiB >out
grep -qxF "(with the allocator's fragmentation, as flopcast run simulates it)" out || { cat out; failed=1; }
# Of a pipeline it is the fullest stage.
"$FLOPCAST" memory llama2-7b --strategy megatron --gpus 8 --pipeline 4 >out
if ! { grep -qE "^[0-9.]+ GiB of a GPU of the fullest stage; " out && grep -q "^fullest stage  " out; }; then
    cat out
    failed=1
fi
# Without --gpu, all known GPUs are listed.
"$FLOPCAST" memory 70B >out
grep -q "^H200-SXM-141GB .* too small by" out || { cat out; failed=1; }
"$FLOPCAST" memory 70B --format json >out
grep -q '"gpu": "H200-SXM-141GB", .*"fits": false}' out || { cat out; failed=1; }

# Several GPUs have a communicator, of the node that has the GPU: 0.5 + 0.2 GB, 0.6 + 0.9 GB; one has none.
"$FLOPCAST" memory 1B --gpus 8 --gpu rtx-4090-24gb | grep -q ", 0.7 GiB of them CUDA context and NCCL, 8.1 GiB to spare" || failed=1
"$FLOPCAST" memory 1B --gpus 8 --gpu h100-sxm5-80gb | grep -q ", 1.4 GiB of them CUDA context and NCCL, 62.8 GiB to spare" || failed=1
"$FLOPCAST" memory 1B --gpu h100-sxm5-80gb | grep -q ", 0.6 GiB of them CUDA context, 63.6 GiB to spare" || failed=1
# Each process group has one: of tensor and of data parallelism 0.6 + 2 x 0.9 GB.
"$FLOPCAST" memory "$models/gpt2.yaml" --strategy megatron --gpus 8 --tensor 2 --gpu h100-sxm5-80gb >out
grep -q ", 2.3 GiB of them CUDA context and NCCL, " out || { cat out; failed=1; }
"$FLOPCAST" memory "$models/gpt2.yaml" --dtype fp16_mixed --gpu v100-sxm2-32gb >out
grep -q "^V100-SXM2-32GB: fits" out || { cat out; failed=1; }
# Micro-batches that fit on 24 GiB: a base in 4 bits leaves room for more than one in 8, that for more than one in 16.
largest() { for gpu in "--gpu h100" "--topology h100"; do # the same words as capacity, tune and goodput
    # shellcheck disable=SC2086 # words
    "$FLOPCAST" memory 1B --gpus 8 $gpu >"out ${gpu%% *}" || failed=1
done
cmp "out --gpu" "out --topology" || failed=1
"$FLOPCAST" memory 1B --gpus 8 --topology h100 --set cluster.node.nccl_bytes=3GiB | grep -q ", 3.6 GiB of them CUDA context and NCCL" || failed=1
"$FLOPCAST" capacity "$models/llama2-7b.yaml" --lora 16 --lora-base "$1" --strategy ddp --gpus 1 --seq-len 2048 --attention flash --gpu 24GiB |
    awk '$1 == 1 { gsub(/[*]/, ""); print $3 }'; }
(($(largest nf4) > $(largest int8) && $(largest int8) > $(largest 16bit))) || { echo "LoRA on 24 GiB"; failed=1; }

# Adapters: 7B in 4 bits, on a card of 16 GB.
"$FLOPCAST" memory "$models/llama2-7b.yaml" --lora 16 --qlora --set train.lora_targets=q_proj,v_proj --micro-batch 1 --seq-len 2048 \
    --attention flash --dtype fp16_mixed >out
grep -q "^V100-SXM2-16GB .* fits by" out || { cat out; failed=1; }
# What a GPU of the list cannot multiply in, it cannot train in.
"$FLOPCAST" memory 1B >out
grep -q "^V100-SXM2-16GB .* no matrix products in bf16" out || { cat out; failed=1; }
"$FLOPCAST" memory 1B --dtype fp32 >out
if grep -q "no matrix products" out; then cat out; failed=1; fi
# Sharding that the strategy refuses is no remedy: ZeRO has no pure 16 bit.
"$FLOPCAST" memory 13B --dtype bf16 --gpus 8 --gpu "$gpu" >out
grep -q "makes it fit: --strategy fsdp" out || { cat out; failed=1; }

# Units of FSDP that no number of GPUs makes smaller: experts are shared out. LoRA is another training, and comes last.
"$FLOPCAST" memory grok1-314b --gpus 512 --strategy fsdp --gpu 40GiB >out
grep -q "^cheapest change that makes it fit: --strategy megatron --set megatron.use_distributed_optimizer=true --expert 8 --pipeline 16" out || { cat out; failed=1; }
"$FLOPCAST" memory grok1-314b --gpus 512 --strategy megatron --set megatron.use_distributed_optimizer=true --expert 8 --pipeline 16 --gpu 40GiB >out
grep -q "40GiB: \(close: \)\?fits" out || { cat out; failed=1; }
"$FLOPCAST" memory deepseek-v3 --gpus 256 --strategy fsdp --gpu h100 >out
grep -q "^no change of memory's makes this training fit .*; another training does: --lora 16" out || { cat out; failed=1; }

# Tables of embeddings are no parameters: 550B of 2 bytes, and of Adagrad a float a row of 128, over 64 GPUs; images have no KV cache.
"$FLOPCAST" memory "$models/dhen-550m.yaml" --strategy fsdp --gpus 64 --micro-batch 1024 --teach >out
grep -q "^weights .*tables of embeddings, shared out over all GPUs: 16.007 GiB, their Adagrad 0.250 GiB" out || { cat out; failed=1; }
grep -q "^training, FP32: 80 P  *41.037  *8.207 " out || { cat out; failed=1; }
"$FLOPCAST" memory "$models/vit_b_16.yaml" --micro-batch 4 --teach >out
grep -q ", micro-batch 4 images, flash attention, no checkpointing" out || { cat out; failed=1; }
if grep -q "KV cache\|NEFTune" out; then cat out; failed=1; fi
"$FLOPCAST" memory "$models/resnet50.yaml" --micro-batch 1 >out
grep -q ", micro-batch 1 image, no checkpointing" out || { cat out; failed=1; }
"$FLOPCAST" capacity "$models/resnet50.yaml" --gpu "$gpu" --gpus 1 >out
grep -q ", fsdp, images; the largest" out || { cat out; failed=1; }
"$FLOPCAST" capacity "$models/gpt2.yaml" --gpu "$gpu" --gpus 512 --seq-len 1 >out
grep -q "^ *512 .*>= 16384" out || { cat out; failed=1; }

# flopcast capacity, beside tests/cli/capacity.sh: 7B has room for one sequence on two GPUs at least, with 16 bytes a parameter.
"$FLOPCAST" capacity "$models/llama2-7b.yaml" --gpu "$gpu" --seq-len 2048 --attention flash --gpus 2 >out || failed=1
if grep -q -i "naive" out; then cat out; failed=1; fi
awk '{ gsub(/[*~]/, "") } $1 == 2 { row = $2 > 0 && $3 > $4 && $4 > $2 } /fewest GPUs/ { few = 1 } END { exit !(row && !few) }' out ||
    { cat out; failed=1; } # the fewest GPUs are a question only where none are named
"$FLOPCAST" capacity "$models/gpt2.yaml" --gpu "$gpu" --seq-len 1024 >out
grep -q "fewest GPUs  *1  *1  *1$" out || { cat out; failed=1; }
"$FLOPCAST" capacity "$models/llama2-7b.yaml" --gpu "$gpu" --seq-len 2048 --gpus 12 >out
if grep -q naive out; then cat out; failed=1; fi # flash from Ampere on
"$FLOPCAST" capacity "$models/llama2-7b.yaml" --gpu v100 --dtype fp16_mixed --seq-len 2048 --gpus 16 >out
grep -q "^ *16  " out || { cat out; failed=1; }
grep -q ", naive attention, samples of 2048 tokens" out || { cat out; failed=1; }
grep -q -e "--attention flash does not" out || { cat out; failed=1; }
"$FLOPCAST" capacity "$models/t5-11b.yaml" --gpu "$gpu" --seq-len 512 --gpus 64 >out
if ! grep -q ", naive attention, samples" out || grep -q "flash" out; then cat out; failed=1; fi

"$FLOPCAST" capacity "$models/llama2-7b.yaml" --gpu "$gpu" --seq-len 2048 --gpus 1 >out
[[ $(grep -c '^  *[0-9]' out) == 1 ]] || { cat out; failed=1; }
"$FLOPCAST" capacity --help >out
if grep -q -e --micro-batch -e --checkpointing= out; then cat out; failed=1; fi

# refused EXPECTED ARGUMENT...: exit status 2 and the words on stderr
refused() {
    local expected=$1 status=0
    shift
    "$FLOPCAST" "${command:-memory}" "$@" >out 2>err || status=$?
    if ((status != 2)) || ! grep -qF -- "$expected" err || [[ -s out ]]; then
        echo "memory $*: exit status $status, expected 2 and '$expected':"
        cat out err
        failed=1
    fi
}
refused "MODEL is missing"
refused "adamw, adam, sgd" 1B --optimizer adamv
refused "'0' is too small; the least allowed is 1" 1B --gpus 0
refused "'8x' is not a whole number" 1B --gpus 8x
refused "'train.seq_len' is not given; say it, as in --seq-len 4096" "$models/gpt2.yaml" --micro-batch 8
refused "1024 learned positions" "$models/gpt2.yaml" --micro-batch 8 --seq-len 2048
refused "--attention:1:1: error: model 't5-11b' adds a position bias to its scores, which flash attention cannot" "$models/t5-11b.yaml" --attention flash
refused "as in 11.3B" 70
refused "MODEL is a model file, as scenarios/models/t5-11b.yaml, its name, as t5-11b, a scenario, or a number" 5Q
refused "one MODEL at a time" 1B 2B
refused "--lora RANK, which is missing" 1B --qlora
refused "16bit, int8 or nf4" "$models/llama2-7b.yaml" --lora 8 --lora-base fp8
refused "give a model file" 1B --lora 16
refused "--set train.lora_targets:1:1: error: no linear layer of a block of 'llama2-7b' is called 'q'" "$models/llama2-7b.yaml" --lora 16 --set train.lora_targets=q
refused "no linear layer of a block of 'llama2-7b' is called 'w'" "$models/llama2-7b.yaml" --lora 16 --set train.lora_targets=q_proj,w
refused "--lora:1:1: error: adapters go beside linear layers, and model 'resnet50' has convolutions" "$models/resnet50.yaml" --lora 16
refused "--optimizer:1:1: error: LOMO is there to train all" "$models/llama2-7b.yaml" --lora 16 --optimizer lomo
refused "strategy 'single_device' is a model on one GPU, not on 2" 1B --strategy single_device --gpus 2
refused "adapters are not trained in int8" "$models/llama2-7b.yaml" --lora 16 --dtype int8
refused "INT8 matrices cannot be sharded" "$models/llama2-7b.yaml" --lora 16 --lora-base int8 --strategy zero3 --gpus 8
refused "--set train.decoder_seq_len:1:1: error: model 'gpt2' has no second stack" "$models/gpt2.yaml" --micro-batch 1 --seq-len 8 --set train.decoder_seq_len=8
refused "--seq-len:1:1: error: model 'vit_b_16' makes 197 tokens of a sample" "$models/vit_b_16.yaml" --micro-batch 1 --seq-len 8
refused "--micro-batch:1:1: error: 1048576 sequences of 1048576 tokens make a tensor of" "$models/llama2-7b.yaml" --micro-batch 1048576 --seq-len 1048576
# What `run` refuses.
refused "--optimizer:1:1: error: this strategy's optimizer steps after backward" 1B --strategy zero2 --optimizer lomo --gpus 8
refused "--set train.precision:1:1: error: DeepSpeed keeps 16-bit weights" 1B --strategy zero1 --dtype bf16 --gpus 8
refused "fp8_mixed multiplies in fp8, which GPU 'T4-16GB' cannot; it can in" "$models/gpt2.yaml" --dtype fp8_mixed \
    --gpu "$FLOPCAST_SOURCE_DIR/topologies/gpus/t4-16gb.yaml"
refused "LOMO steps on the GPU" 1B --strategy fsdp --optimizer lomo --set fsdp.cpu_offload=true
command=capacity
refused "bf16_mixed multiplies in bf16" "$models/gpt2.yaml" --gpu "$FLOPCAST_SOURCE_DIR/topologies/gpus/v100-sxm2-32gb.yaml" --seq-len 128
refused "--gpu: error: missing; name a file" "$models/llama2-7b.yaml" --seq-len 2048
refused "leave --checkpointing out" "$models/llama2-7b.yaml" --gpu "$gpu" --seq-len 2048 --checkpointing full
refused "'24' is no file and no size of memory; write one as 24GiB" "$models/llama2-7b.yaml" --gpu 24 --seq-len 2048
refused "nobody trains in int8" "$models/llama2-7b.yaml" --gpu "$gpu" --seq-len 2048 --dtype int8
refused "strategy 'single_device' is a model on one GPU" "$models/llama2-7b.yaml" --gpus 2 --gpu "$gpu" --seq-len 2048 --strategy single_device
refused "unrecognized option" "$models/llama2-7b.yaml" --gpu "$gpu" --seq-len 2048 --teach
refused "say it, as in --seq-len 4096" "$models/llama2-7b.yaml" --gpu "$gpu"
refused "give a model file" 1B --gpu "$gpu" --seq-len 2048
# Tensor and pipeline parallelism: a block of Llama 3.1 70B has 2 x 8192^2 (q, o) + 2 x 8192 x 1024 (k, v) + 3 x 8192 x 28672 elements, of which
# each of 8 ranks has an eighth, and 2 x 8192 of norms, which all have: 106971136, 20 of them on a stage of 4. The ends have more. Under 1F1B stage
# i holds the activations of 4 - i micro-batches when it is fullest.
"$FLOPCAST" memory llama3.1-70b --tensor 8 --set parallelism.sequence=true --pipeline 4 --gpus 64 --set megatron.use_distributed_optimizer=true --micro-batch 1 --seq-len 8192 --attention flash --wide >out || failed=1
tr '\n' ' ' <out | grep -qF "megatron over 64 GPUs, tensor 8, pipeline 4 (1F1B, 8 micro-batches), micro-batch 1 of 8192 tokens" || { cat out; failed=1; }
awk '$1 ~ /^[0-3]$/ && $2 == 20 { n++; gsub(/,/, "", $3); params[$1] = $3; activations[$1] = $7; total[$1] = $9 } /^total/ { fullest = $2 }
    END { one = activations[1] - activations[2]; off = activations[0] - activations[1] - one
        exit n != 4 || params[1] != 20 * 106971136 || params[2] != params[1] || params[0] <= params[1] || off > 0.01 * one || off < -0.01 * one ||
            activations[1] < 3 * one || activations[1] > 3.2 * one || total[0] != fullest }' out || { cat out; failed=1; }
"$FLOPCAST" memory gpt2 --pipeline 4 --micro-batch 1 --seq-len 1024 --format csv >rows.csv || failed=1
[[ $(grep -c '^stage,[0-3],.* parameters in 3 blocks,' rows.csv) == 4 ]] || { cat rows.csv; failed=1; }
command=memory
refused "cut depends on the shape of the model; give a model file" 70B --tensor 4
refused "--tensor:1:1: error: 12 attention heads of gpt2 are not divisible by 5 ranks" gpt2 --tensor 5
"$FLOPCAST" capacity gpt2 --pipeline 4 --gpus 8 --gpu 16GiB --seq-len 1024 >out || failed=1
tr '\n' ' ' <out | grep -qF "bf16_mixed, adamw, megatron, pipeline 4, samples of 1024 tokens" || { cat out; failed=1; }
grep -qE "^ +8 +[1-9]" out || { cat out; failed=1; }
# Any card by its memory: what QLoRA is for. It multiplies in what it is asked to.
"$FLOPCAST" memory "$models/llama2-7b.yaml" --lora 16 --qlora --micro-batch 4 --seq-len 2048 --attention flash --gpu 24GiB >out ||
    failed=1
grep -qF "a card of 24GiB: fits; 11.1 GiB of 24.0 GiB, 0.5 GiB of them CUDA context, 12.9 GiB to spare" out || failed=1
"$FLOPCAST" capacity "$models/llama2-7b.yaml" --lora 16 --qlora --seq-len 2048 --gpu "24 GB" --gpus 1 >out || failed=1
grep -qF "llama2-7b on a card of 24 GB: 22.4 GiB, less 0.5 GiB" out || failed=1
exit $failed
