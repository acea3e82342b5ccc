#!/usr/bin/env bash
# `flopcast tune --emit`: ten winners as the options of three trainers; imported again they give the same step and memory, to the bit.
set -euo pipefail
# shellcheck source=/dev/null
. "$FLOPCAST_SOURCE_DIR/tests/cli/lib.bash"
mkdir -p small
cat >small/config.json <<'EOM'
{"model_type": "llama", "hidden_size": 1024, "intermediate_size": 2816, "num_hidden_layers": 4, "num_attention_heads": 8,
 "num_key_value_heads": 8, "vocab_size": 8000, "tie_word_embeddings": false}
EOM
mkdir -p experts
cat >experts/config.json <<'EOM'
{"model_type": "mixtral", "hidden_size": 1024, "intermediate_size": 1792, "num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 8,
 "vocab_size": 8000, "num_local_experts": 8, "num_experts_per_tok": 2, "tie_word_embeddings": false}
EOM
cat >own.yaml <<'EOM'
name: own
model: small/config.json
cluster: {topology: h100-8x400g, gpus: 16, node: {nic_bandwidth: 200 Gb/s}}
train: {micro_batch: 1, seq_len: 1024, global_batch: 64, attention: flash, clip_grad_norm: true}
EOM
job=(--limit 2 --top 1 --no-noise)

# The numbers of a step, without names and origins.
step() {
    "$FLOPCAST" "$@" --format json | tr -d '\r' | grep -E '"(step_time_s|tflops_per_gpu|peak_allocated_bytes|peak_reserved_bytes)"' || fail "no step: $*"
}
emit() { # TRAINER ARGUMENT...: the winner's file, its import, and the steps of both
    local trainer=$1 strategy=fsdp2 ending
    shift
    case $trainer in megatron) strategy=megatron ending=sh ;; torchtitan) ending=toml ;; automodel) ending=yaml ;; esac
    expect 0 "$FLOPCAST" tune "$@" "${job[@]}" --strategy $strategy --emit "$trainer" --out "emitted.$ending"
    if grep -q "are not this trainer's" "emitted.$ending"; then fail "not the winner: $(<"emitted.$ending")"; fi
    local first
    first=$(sed -n 's/^the first: flopcast //p' out)
    expect 0 "$FLOPCAST" scenario import "emitted.$ending" --out imported.yaml
    says out "not understood: 0"
    # shellcheck disable=SC2086 # words
    step $first >tuned 2>warnings
    step run imported.yaml >again 2>warnings
    cmp tuned again || fail "$trainer of $*: $(<tuned) and $(<again) of $(<"emitted.$ending")"
    # What makes the layout is said by options.
    if grep -E '^# flopcast: (strategy|parallelism\.(tensor|context|pipeline|virtual|expert)|train\.(micro_batch|seq_len|global_batch|activation_checkpointing)|cluster.gpus)=' \
        "emitted.$ending"; then fail "a comment makes the layout: $(<"emitted.$ending")"; fi
}
n=0
while read -r model gpus length batch others; do
    for trainer in torchtitan automodel megatron; do
        # shellcheck disable=SC2086 # words
        case $model in
        *.yaml) emit $trainer "$model" ;;
        *) emit $trainer "$model" --topology h100-8x400g --gpus "$gpus" --seq-len "$length" --global-batch "$batch" $others ;;
        esac
    done
    n=$((n + 1))
done <<'EOM'
small 8 512 16
own.yaml
qwen3-0.6b 16 4096 64
llama3.2-1b 8 4096 64 --set train.clip_grad_norm=true
qwen3-4b 16 4096 64 --set train.activation_checkpointing=full
llama2-7b 16 4096 64 --set train.precision=fp8_mixed
llama3.1-8b 32 8192 64
llama3.1-8b 16 8192 64 --tensor 2
experts 16 2048 64 --expert 4
mistral-7b 32 4096 128 --max-batch 2
EOM
[[ $n == 10 ]] || fail "$n winners"

# Of one that is known by name, its name; of Megatron-LM the arguments that give its shape, by which it is the model.
says emitted.sh "--num-layers 32" "--swiglu" "--window-size 4095,0" "--normalization RMSNorm" "--num-query-groups 8"
sed '/^# flopcast: model=/d' emitted.sh >shape.sh
expect 0 "$FLOPCAST" scenario import shape.sh --out shape.yaml
step run shape.yaml >again
cmp tuned again || fail "the arguments give another shape"
says shape.model.yaml "family: llama" "d_model: 4096" "n_layers: 32" "vocab: 32000"

# By default it stands on the standard output, and the answer on the standard error; a comment that is none is an error with its place.
expect 0 "$FLOPCAST" tune small --topology h100-8x400g --gpus 8 --seq-len 512 --global-batch 16 "${job[@]}" --strategy fsdp2 --emit torchtitan
says out "[parallelism]" "# flopcast: model="
says err "best of the"
sed 's/^# flopcast: cluster.topology=.*/# flopcast: cluster.topologie=h100/' emitted.sh >wrong.sh
expect 2 "$FLOPCAST" scenario import wrong.sh --out wrong.yaml
says err "wrong.sh:5:1: " "topologie"
expect 2 "$FLOPCAST" tune small --topology h100-8x400g --gpus 8 --seq-len 512 --global-batch 16 "${job[@]}" --strategy ddp --emit megatron
says err "nothing that ran is megatron's"
expect 2 "$FLOPCAST" tune small --out x.sh
says err "--out is where --emit TRAINER writes"

# Drafts lie in $TMPDIR, of which nothing is left; where they cannot, that is said.
mkdir drafts
emits=("$FLOPCAST" tune small --topology h100-8x400g --gpus 8 --seq-len 512 --global-batch 16 "${job[@]}" --strategy fsdp2 --emit torchtitan)
expect 0 env TMPDIR="$PWD/drafts" "${emits[@]}"
says out "[parallelism]"
[[ -z $(ls -A drafts) ]] || fail "a draft is left: $(ls -A drafts)"
expect 1 env TMPDIR="$PWD/nowhere" "${emits[@]}"
says err "nowhere: error: cannot write a draft there: No such file or directory; set TMPDIR"
