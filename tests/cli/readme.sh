#!/usr/bin/env bash
# README.md: its size and sentences, its links, every command in it, run as it stands, and its matrix of what is modelled.
set -euo pipefail
# shellcheck source=/dev/null
. "$FLOPCAST_SOURCE_DIR/tests/cli/lib.bash"
readme=$FLOPCAST_SOURCE_DIR/README.md

lines=$(grep -vc '^<!-- ' "$readme") # markers of what `flopcast validate --page` writes are not seen
[[ $lines -le 100 ]] || fail "README.md has $lines lines, not at most 100"
long=$(awk 'length($0) > 120 { print FNR ": " $0 }' "$readme")
[[ -z $long ]] || fail "lines above 120 characters: $long"
[[ $(grep -c '^!\[' "$readme") == 2 ]] || fail "not two pictures"

# Sentences of at most 30 words. Code and headings are none; a cell of a table and an item of a list end as a sentence does.
awk '/^    / || /^#/ || /^<!--/ || /^!\[/ || /^\|[-|]*$/ { print "."; next }
     /^$/ { print "."; next }
     { gsub(/\]\([^)]*\)/, "]"); gsub(/\|/, " . "); sub(/^\* /, ". "); print }' "$readme" | tr '\n' ' ' | sed 's/[.?!] /\n/g' |
    awk 'NF > 30 { print NF " words: " $0; bad = 1 } END { exit bad }' >sentences || fail "long sentences: $(<sentences)"

# Links and pictures lead to files that exist.
grep -o '](\([^)]*\))' "$readme" | tr -d '()]' | while read -r link; do
    [[ $link == http* || -e $FLOPCAST_SOURCE_DIR/$link ]] || fail "README.md links to $link, which does not exist"
done

# Every command of the code blocks, in their order. scenarios/run is what .ci/run begins with, and this is part of tests/run.
# `validate --open` in the text takes too long here (tests/cli/validate_open.sh has it).
export HOME=$PWD SLURM_ARRAY_TASK_ID=1 SLURM_ARRAY_TASK_COUNT=1
cmake=$(sed -n 's/^    \(cmake .*\)/\1/p' "$readme" | sed 's/  *# .*//')
[[ $cmake == 'cmake --install build/release --prefix ~/.local' ]] || fail "'$cmake' is not run here"
expect 0 bash -c "${cmake/build\/release/\"$(dirname -- "$FLOPCAST")\"}"
[[ $("$HOME/.local/bin/flopcast" --version) == "flopcast "* && -e $HOME/.local/share/man/man1/flopcast.1 || -e $HOME/.local/share/man/man1/flopcast.1.gz ]] ||
    fail "not installed: $(find "$HOME/.local" | head)"
others=$(grep '^    [a-z./]' "$readme" | grep -vE '^    (flopcast|cmake|scenarios/run)|^    [a-z].*; (limited|fits|close)' || true)
[[ ! $others ]] || fail "commands that nothing runs: $others"
"$FLOPCAST" collective all_reduce --topology topologies/clusters/h100-8x400g.yaml --gpus 64 --bytes 1M:1G >all_reduce.log
cp "$FLOPCAST_SOURCE_DIR/tests/exchange/data/llama3_8b.toml" .
sed -e :a -e '/\\$/{N;s/\\\n *//;ba' -e '}' "$readme" | sed -n 's/^    \(flopcast .*\)/\1/p' | sed 's/  *# .*//' >commands
[[ $(wc -l <commands) -ge 10 ]] || fail "README.md has fewer than ten commands: $(<commands)"
while read -r command; do
    [[ $command != *FILE* ]] || fail "'$command' cannot be typed as it stands"
    start=$SECONDS
    expect 0 bash -c "flopcast() { \"$FLOPCAST\" \"\$@\"; }; $command"
    [[ -s out ]] || fail "'$command' prints nothing"
    echo "$((SECONDS - start)) s: $command"
done <commands

# What is shown of a command, behind '$', is what it begins with at 80 columns.
sed -n '/^    \$ flopcast/,/^$/p' "$readme" | sed 's/^    //' >shown
COLUMNS=80 expect 0 bash -c "flopcast() { \"$FLOPCAST\" \"\$@\"; }; $(sed -n 's/^\$ //p' shown)"
diff <(sed -e 1d -e '/^$/d' shown) <(sed '/^$/Q' out) || fail "README.md shows another answer"

# The matrix of parallelism: each cell as the program has it.
printf 'name: m\nmodel: llama3.1-8b\ncluster: {topology: h100-8x400g, gpus: 16}\nstrategy: ddp\n' >dense.yaml
echo 'train: {micro_batch: 1, seq_len: 1024, precision: bf16_mixed, attention: flash}' >>dense.yaml
sed 's/llama3.1-8b/mixtral-8x7b/' dense.yaml >experts.yaml
pipeline="--set parallelism.pipeline=2 --set train.global_batch=32"
row() { # ROW-OF-THE-MATRIX FILE OPTIONS...: a cell a strategy
    local cells column=2 strategies=(ddp "fsdp --set fsdp.version=2" deepspeed megatron nanotron "internevo --set train.precision=bf16_master") cell status
    IFS='|' read -ra cells < <(grep -F "| $1 |" "$readme") || fail "no row '$1'"
    for strategy in "${strategies[@]}"; do
        cell=${cells[column]// /} status=0 column=$((column + 1))
        # shellcheck disable=SC2086 # options
        "$FLOPCAST" run "$2" ${3} --set strategy=$strategy --plan >/dev/null 2>err || status=$?
        [[ $cell$status == yes0 || $cell$status == -2 ]] || fail "'$1' with $strategy is '$cell'; run ends with $status: $(head -n 3 err)"
    done
}
[[ $(grep -E '^\| parallelism \|' "$readme") == '| parallelism | DDP | FSDP | DeepSpeed ZeRO | Megatron | nanotron | InternEvo |' ]] || fail "the head of the matrix"
row "tensor, sequence" dense.yaml "--set parallelism.tensor=2 --set parallelism.sequence=true"
row "context" dense.yaml "--set parallelism.context=2"
for schedule in GPipe 1F1B ZBH1; do row "pipeline: GPipe, 1F1B, ZB-H1" dense.yaml "$pipeline --set parallelism.schedule=$schedule"; done
row "pipeline, interleaved" dense.yaml "$pipeline --set parallelism.virtual=2"
for schedule in ZBVZeroBubble DualPipeV; do
    for strategy in "fsdp --set fsdp.version=2" megatron; do # as the sentence below the matrix says
        # shellcheck disable=SC2086 # options
        expect 0 "$FLOPCAST" run dense.yaml $pipeline --set parallelism.virtual=2 --set parallelism.schedule=$schedule --set strategy=$strategy --plan
    done
done
row "expert" experts.yaml "--set parallelism.expert=2"
