#!/usr/bin/env bash
# What is given once too often is an error, in every command: the last of two values would win without a word.
set -euo pipefail
# shellcheck source=/dev/null
. "$FLOPCAST_SOURCE_DIR/tests/cli/lib.bash"

# All options of a command as "name argument", from its help.
options() {
    "$FLOPCAST" "$@" --help | sed -nE 's/^ {2,6}(-[a-z], )?--([a-z-]+)(=([^ ]+))?.*/\2 \4/p' | grep -vE '^(help|usage|version) '
}

# Lists. Of KEY=VALUE each key may stand once; another key is another item.
lists=" run.set run.measured tune.measured goodput.measured whatif.measured memory.set capacity.set collective.set run.trace-ranks tune.set tune.price goodput.set goodput.price waterfall.set whatif.set whatif.base whatif.or plot.scenario plot.run validate.measurements validate.by calibrate-fit.measurements sensitivity.set replay.set trace-scale.set trace-scale.sharded trace-scale.fixed scenario-import.set calibrate-check.set calibrate-check-trace.set "
checked=0
for command in run plot waterfall sensitivity validate whatif tune goodput memory capacity collective merge replay "trace scale" "scenario import" "topology import" "calibrate fit" "calibrate import" \
    "calibrate check" "calibrate check trace" "calibrate show"; do
    read -ra words <<<"$command"
    while read -r name argument; do
        if [[ $lists == *" ${command// /-}.$name "* ]]; then continue; fi
        given=("--$name")
        if [[ -n $argument ]]; then given=("--$name" 1); fi
        expect 2 "$FLOPCAST" "${words[@]}" "${given[@]}" x "${given[@]}"
        says err "flopcast ${words[*]}: --$name is given twice"
        says err "Try \`flopcast ${words[*]} --help'"
        [[ ! -s out ]] || fail "$command --$name twice prints: $(<out)"
        checked=$((checked + 1))
    done < <(options "${words[@]}")
done
[[ $checked -ge 50 ]] || fail "only $checked options were found in the help of the commands"

expect 2 "$FLOPCAST" run x.yaml --db=a.db --db b.db # in either spelling, abbreviated too
says err "--db is given twice; it takes one value"
expect 2 "$FLOPCAST" run x.yaml --form csv --format json
says err "--format is given twice"
expect 2 "$FLOPCAST" run -q x.yaml --quiet
says err "--quiet is given twice"
# The last --set of a key holds, as options that wrappers append expect; two variants of whatif are two keys.
for command in run tune waterfall; do
    expect 2 "$FLOPCAST" $command x.yaml --set train.micro_batch=1 --set cluster.gpus=8 --set train.micro_batch=2
    says err "flopcast $command: warning: --set train.micro_batch is given twice; the last holds: 2" "x.yaml:1:1: error: cannot open"
done
expect 2 "$FLOPCAST" run x.yaml --set train.micro_batch=1 --set train.micro_batch_size=2
says err "warning: --set train.micro_batch_size is given twice; the last holds: 2"
scenario last.yaml
last() { # FILE ARGUMENT...: what run says with them
    expect 0 "$FLOPCAST" run last.yaml --set cluster.gpus=8 --format csv "${@:2}"
    sed 's/^[^,]*,//' out >"$1"
}
last one --set train.micro_batch=4
last two --set train.micro_batch=1 --set train.micro_batch=4
last list --set "train.micro_batch=[1, 2]" --set train.micro_batch_size=4
cmp one two || fail "not the last of two values: $(head one two)"
cmp one list || fail "not the value behind a list: $(head one list)"
expect 0 "$FLOPCAST" memory gpt2 --gpu h100 --set gpu.hbm_capacity=10GB --set gpu.hbm_capacity=20GB
says out " of 18.6 GiB"
expect 0 "$FLOPCAST" whatif last.yaml --base cluster.gpus=16 --base cluster.gpus=8 --set train.micro_batch=1 --set train.micro_batch=4
says err "--base cluster.gpus is given twice; the last holds: 8" "--set train.micro_batch is given twice; the last holds: 4"
says out "train.micro_batch=4"

# Lists stay lists: these get as far as the file.
expect 2 "$FLOPCAST" whatif x.yaml --base cluster.gpus=8 --set train.micro_batch=1 --or --set train.micro_batch=2 --or --set cluster.gpus=16
says err "x.yaml:1:1: error: cannot open"
expect 2 "$FLOPCAST" run x.yaml --set train.micro_batch=1 --set train.grad_accum=1 --trace t.json --trace-ranks 0 --trace-ranks 1
says err "x.yaml:1:1: error: cannot open"
expect 2 "$FLOPCAST" run x.yaml --set report=1 -- --db --db # what is behind -- is no option
says err "x.yaml:1:1: error: cannot open"

# One place does it: nothing else calls argp_parse.
if grep -n '\bargp_parse(' "$FLOPCAST_SOURCE_DIR"/sim/*/*/*.c | grep -v '/arguments\.c:'; then fail "argp_parse is called elsewhere"; fi
