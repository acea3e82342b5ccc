#!/usr/bin/env bash
# `flopcast capacity` against `flopcast run`: what the one says fits, the other runs, and a larger micro-batch is out of memory there.
# FIT_CELLS=all: every cell, a minute or two of the release build; else a sample. FIT_BEYOND: how many larger micro-batches are tried (2).
set -euo pipefail
# shellcheck source=/dev/null
. "$FLOPCAST_SOURCE_DIR/tests/cli/lib.bash"

# cells MODEL CLUSTER STRATEGY GPUS: the three kinds of checkpointing. A line each into cells.txt: how many steps of micro-batch
# fit is too careful at least (0, 1, 2: so large a batch more runs, too), or "wrong" where run finds it out of memory.
beyond=${FIT_BEYOND:-2}
cells() {
    local model=$1 cluster=$2 strategy=$3 gpus=$4 length=1024 attention=naive precision=bf16_mixed
    case $model in
    llama* | mpt*) length=2048 attention=flash ;;
    t5* | bert*) length=512 ;;
    vit* | resnet*) length=0 ;;
    esac
    case $cluster in dgx-1v*) precision=fp16_mixed ;; esac
    local options=(--topology "topologies/clusters/$cluster.yaml" --gpus "$gpus" --strategy "$strategy" --dtype "$precision" --attention "$attention")
    local train="precision: $precision, attention: $attention"
    ((length == 0)) || { options+=(--seq-len "$length") train+=", seq_len: $length"; }
    expect 0 "$FLOPCAST" capacity "$FLOPCAST_SOURCE_DIR/scenarios/models/$model.yaml" "${options[@]}"
    local fitted kinds=(none full selective) kind batch more checkpointing=() batches=()
    read -r -a fitted < <(awk -v gpus="$gpus" '$1 == gpus && NF == 4 { gsub(/[*]/, ""); print $2, $3, $4 }' out)
    ((${#fitted[@]} == 3)) || fail "no row of $gpus GPUs: $(<out)"
    for kind in 0 1 2; do
        batch=${fitted[kind]}
        for ((more = batch > 0 ? 0 : 1; more <= beyond; more++)); do
            checkpointing+=("${kinds[kind]}") batches+=($((batch + more)))
        done
    done
    local stage=
    case $strategy in zero*) stage="deepspeed: {zero_optimization: {stage: ${strategy#zero}}}" strategy=deepspeed ;; esac
    cat >cell.yaml <<YAML
name: cell
model: $FLOPCAST_SOURCE_DIR/scenarios/models/$model.yaml
cluster: {topology: $FLOPCAST_SOURCE_DIR/topologies/clusters/$cluster.yaml, gpus: $gpus}
train: {micro_batch: 1, $train}
strategy: $strategy
$stage
sweep: [{train.activation_checkpointing: [$(IFS=, && echo "${checkpointing[*]}")], train.micro_batch: [$(IFS=, && echo "${batches[*]}")]}]
YAML
    expect 0 "$FLOPCAST" run cell.yaml --format csv
    awk -F, -v fitted="${fitted[*]}" -v cell="$model, $cluster, $4 x $3" '
        NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; split(fitted, fit, " "); for (k = 1; k <= 3; k++) ok[k] = fit[k] == 0; next }
        { kind = $0 ~ /checkpointing=none/ ? 1 : $0 ~ /checkpointing=full/ ? 2 : 3; more = $at["micro_batch"] - fit[kind]
          if ($at["status"] == "ok" && more == 0) ok[kind] = 1
          if ($at["status"] == "ok" && more > careful[kind]) careful[kind] = more }
        END { for (k = 1; k <= 3; k++) print ok[k] ? careful[k] + 0 : "wrong", cell, k, fit[k] }' out >>cells.txt
}

if [[ ${FIT_CELLS:-} == all ]]; then
    counts=(1 2 4 8 16 64) n=0
    for model in gpt2-xl llama3.2-1b llama2-7b mpt-3b t5-large bert-large vit_h_14 resnet50; do
        for cluster in h100-8x400g a100-40gb-8x200g rtx-4090-1x100g dgx-1v-ib; do
            for strategy in ddp zero1 zero2 zero3 fsdp; do
                cells "$model" "$cluster" "$strategy" "${counts[n % ${#counts[@]}]}"
                n=$((n + 1))
            done
            n=$((n + 1)) # so that a strategy meets every number of GPUs
        done
    done
    for strategy in ddp zero1 zero3 fsdp; do
        cells llama3.2-1b h100-8x400g "$strategy" 512
    done
else
    cells gpt2 dgx-1v-ib ddp 8
    cells gpt2-medium rtx-4090-1x100g zero3 16
    cells bert-large a100-40gb-8x200g zero1 2
    cells llama2-7b h100-8x400g fsdp 8
fi
awk '{ n[$1]++; careful += $1 > 1 } END { for (k in n) printf "%d cells: %s\n", n[k], k; exit !(careful <= 0.05 * NR && !n["wrong"]) }' cells.txt ||
    fail "$(grep -v '^[01] ' cells.txt)"

# Of a GPU, the cluster that a short name means ('topology: h100'), else flopcast's first that has it and takes that many: 12 are three nodes of 4.
capacity() { expect 0 "$FLOPCAST" capacity gpt2.json --gpu "topologies/gpus/$1.yaml" --seq-len 1024 "${@:2}"; }
echo '{"model_type": "gpt2", "n_embd": 256, "n_layer": 2, "n_head": 4, "n_positions": 1024}' >gpt2.json
# More memory than any GPU has.
expect 0 "$FLOPCAST" capacity gpt2.json --gpu 3TiB --seq-len 1024 --gpus 8
says out ": micro-batches up to " "fit on 8 GPUs"
capacity h100-sxm5-80gb
says out "on cluster 'H100-80GB, 8 x 400 Gb/s'"
[[ $(grep -c '^  *[0-9][0-9]*  ' out) == 10 ]] || fail "not 1 to 512 GPUs: $(<out)"
capacity h100-sxm5-80gb --gpus 16
says out "on cluster 'H100-80GB, 8 x 400 Gb/s'"
for name in h100 a100 a100-40gb h200; do # one name, one default
    expect 0 "$FLOPCAST" capacity gpt2.json --gpu $name --seq-len 1024 --gpus 8
    cp out by_gpu
    expect 0 "$FLOPCAST" capacity gpt2.json --topology $name --seq-len 1024 --gpus 8
    cmp out by_gpu || fail "--gpu $name is another cluster than --topology $name: $(diff out by_gpu)"
done
capacity h100-sxm5-80gb --gpus 12
says out "on cluster '4 x H100, 2 x 200 Gb/s Slingshot'"
# The job is named in full.
expect 0 "$FLOPCAST" capacity llama3.1-8b --gpu h100 --seq-len 1024 --gpus 1 --strategy single_device --lora 16 --qlora
says out "bf16_mixed, adamw, single_device, LoRA of rank 16 on a base in nf4, samples of 1024 tokens"
capacity h100-sxm5-80gb --gpus 8 --tensor 2
says out "megatron, tensor 2, samples of 1024 tokens"
# Where no cluster is known: a card by its memory stands in the place of an H100.
capacity a100-pcie-80gb --gpus 3
says out "on cluster 'A100 PCIe, 1 x 200 Gb/s InfiniBand'"
expect 0 "$FLOPCAST" capacity gpt2.json --gpu 24GiB --seq-len 1024 --gpus 8
says out "gpt2.json on a card of 24GiB: 24.0 GiB, less 0.5 GiB of CUDA context and 0.8 GiB of NCCL's" "on cluster 'H100-80GB, 8 x 400 Gb/s'"
# What run refuses is answered by the peak of a step, and says why.
capacity h100-sxm5-80gb --gpus 9
says out "~: by the peak of a step, which leaves out fragmentation" "9 GPUs leave a node of"
expect 2 "$FLOPCAST" capacity gpt2.json --gpu 24GiB --topology topologies/clusters/dgx-1v-ib.yaml --seq-len 1024
says err "leave --gpu out"
expect 2 "$FLOPCAST" capacity gpt2.json --topology none.yaml --seq-len 1024
says err "--topology:1:1: error: cannot open 'none.yaml'"
expect 2 "$FLOPCAST" capacity gpt2.json --topology topologies/clusters/dgx-1v-ib.yaml --seq-len 1024
says err "bf16_mixed multiplies in bf16, which GPU 'V100-SXM2-32GB' cannot"
expect 2 "$FLOPCAST" memory gpt2.json --gpu 24GiB --topology topologies/clusters/dgx-1v-ib.yaml
says err "leave --gpu out"

# In words: what fits, and what does not.
expect 0 "$FLOPCAST" capacity llama3.1-70b --gpu h100 --seq-len 8k --gpus 64
says out "micro-batches up to 1 with full fit on 64 GPUs; without activation checkpointing or with selective not even 1 does"
expect 0 "$FLOPCAST" capacity llama3.1-70b --gpu h100 --seq-len 8k --gpus 2
says out "llama3.1-70b: not even a micro-batch of 1 fits on 2 GPUs, whatever is recomputed"
