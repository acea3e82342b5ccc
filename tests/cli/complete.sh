#!/usr/bin/env bash
# What a word on the command line may become, and bash's completion that asks for it.
set -euo pipefail
# shellcheck source=/dev/null
. "$FLOPCAST_SOURCE_DIR/tests/cli/lib.bash"

offers() { # words that are offered, --, the words so far
    local -a wanted=()
    while [[ $1 != -- ]]; do
        wanted+=("$1")
        shift
    done
    shift
    expect 0 "$FLOPCAST" __complete "$@"
    for word in "${wanted[@]}"; do
        cut -f1 out | grep -qx -- "$word" || fail "after '$*' there is no '$word': $(<out)"
    done
}
offers run memory calibrate -- ""
offers memory model -- m
offers t5_scaling t5_model_scale -- run t5
offers llama2-7b -- memory llama2
offers fp32 fp8_mixed -- memory llama2-7b --dtype f
offers --precision -- memory --prec
offers bf16 bf16_mixed -- run gpt2 --precision b
offers zero3 -- run gpt2 --strategy z
offers zero3 -- memory gpt2 --strategy z
offers h100-8x400g -- run gpt2 --topology h100
offers h200-sxm-141gb -- memory --gpu h2
offers train.micro_batch= -- run t5_scaling --set train.mi
offers strategy=fsdp -- run t5_scaling --set strategy=f
offers fit import check show -- calibrate ""
offers --db -- calibrate show --d
offers scaling validation -- plot ""
offers settings collective -- help ""
expect 0 "$FLOPCAST" __complete nothing ""
[[ ! -s out ]] || fail "of an unknown command: $(<out)"

PATH=${FLOPCAST%/*}:$PATH
# Bash: readline has the part behind '=' for a word.
# shellcheck source=/dev/null
. "$FLOPCAST_SOURCE_DIR/sim/flopcast/cli/completion/flopcast.bash"
in_bash() { # line: its completions
    COMP_LINE=$1 COMP_POINT=${#1} _flopcast
    printf '%s\n' "${COMPREPLY[@]}"
}
[[ $(in_bash "flopcast mem") == memory ]] || fail "bash: $(in_bash "flopcast mem")"
[[ $(in_bash "flopcast run t5_scaling --set parallelism.schedule=") == $'1F1B\nGPipe\nZBH1\nZBVZeroBubble\nDualPipeV' ]] ||
    fail "bash: $(in_bash "flopcast run t5_scaling --set parallelism.schedule=")"
[[ $(in_bash "flopcast run t5_s") == t5_scaling ]] || fail "bash: $(in_bash "flopcast run t5_s")"

# The other shells read their scripts.
for shell in zsh fish; do
    script=$FLOPCAST_SOURCE_DIR/sim/flopcast/cli/completion/$([[ $shell == zsh ]] && echo _flopcast || echo flopcast.fish)
    if command -v $shell >/dev/null; then expect 0 $shell -n "$script"; fi
done
