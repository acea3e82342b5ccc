#!/usr/bin/env bash
# --help, --version and mistakes of usage.
set -euo pipefail
# shellcheck source=/dev/null
. "$FLOPCAST_SOURCE_DIR/tests/cli/lib.bash"

expect 0 "$FLOPCAST" --version
[[ $(<out) =~ ^"flopcast $(<"$FLOPCAST_SOURCE_DIR/sim/VERSION") (commit "([0-9a-f]{40}(-dirty)?|unknown)")"$ ]] || fail "--version says $(<out)"
if [[ -e $FLOPCAST_SOURCE_DIR/.git ]] && grep unknown out; then fail "--version does not know the commit of a checkout"; fi

expect 0 "$FLOPCAST" --help
diff -u "$FLOPCAST_SOURCE_DIR/tests/cli/help.txt" out || fail "--help has changed; if it is meant, change tests/cli/help.txt"

# Every command of --help has its own help, which names it.
commands=$(sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p' out)
[[ $(wc -w <<<"$commands") -ge 6 ]] || fail "--help lists only: $commands"
for command in $commands; do
    expect 0 "$FLOPCAST" "$command" --help
    says out "Usage: flopcast $command "
done

# help is --help.
"$FLOPCAST" run --help >want
expect 0 "$FLOPCAST" help run
cmp out want || fail "help run is not run --help"
expect 0 "$FLOPCAST" help
diff -u "$FLOPCAST_SOURCE_DIR/tests/cli/help.txt" out || fail "help is not --help"
expect 2 "$FLOPCAST" help rum
says err "there is no command 'rum'; did you mean 'run'?"
expect 2 "$FLOPCAST" help calibrate fit
says err "see 'flopcast calibrate fit --help'"

# Every setting with default, sentence and range.
expect 0 "$FLOPCAST" help settings
says out "train.micro_batch: -" "sequences a GPU computes on at once (whole number, 1 to 1048576)" "host.kernel_issue: 10 us" \
    "fsdp.sharding_strategy: FULL_SHARD" "(FULL_SHARD, SHARD_GRAD_OP, NO_SHARD, HYBRID_SHARD, _HYBRID_SHARD_ZERO2)"
sed -n '/^    name: mine/,/^$/p' out | sed 's/^    //' >mine.yaml # the example is a scenario
expect 0 "$FLOPCAST" run mine.yaml --plan
[[ $(grep -c FULL_SHARD out) -ge 1 && $(wc -l <mine.yaml) -ge 8 ]] || fail "the example: $(<mine.yaml)"
expect 0 "$FLOPCAST" help settings
if grep -q '(null)' out; then fail "a setting has no sentence: $(grep -B 1 '(null)' out)"; fi
# Any other word is looked up: terms, commands, settings, numbers of hardware, columns.
look_up() { # look_up WORD SENTENCE...
    expect 0 "$FLOPCAST" help "$1"
    says out "${@:2}"
}
look_up kv "KV cache" "keys and values of the tokens so far"
look_up mfu "MFU" "columns of results" "mfu: MFU, %"
look_up neftune "settings of a scenario, and of --set:" "train.neftune: false"
look_up train.neftune "train.neftune: false"
look_up Checkpointing "train.activation_checkpointing: none"
look_up nic_bandwidth "cluster.node.nic_bandwidth:"
expect 0 "$FLOPCAST" help settings neftune
says out "train.neftune: false"
expect 2 "$FLOPCAST" help settings xyzzy
says err "no setting says anything of 'xyzzy'"
# A file where a command is wanted.
expect 2 "$FLOPCAST" t5_scaling
says err "'t5_scaling' is no command but a file; flopcast run t5_scaling"
# And all that files of hardware hold.
for group in clusters nodes gpus; do
    expect 0 "$FLOPCAST" help "$group"
    says out "Every number says where it is from" "name: needed"
    if grep -q '(null)' out; then fail "a field has no sentence: $(grep -B 1 '(null)' out)"; fi
done
expect 0 "$FLOPCAST" help clusters
says out "network.wiring: plain" "Which leaf each NIC of a node is on. (plain, rail)" "Leaf uplinks: 1 is full bisection, 2 half. (1 to 64)"
expect 2 "$FLOPCAST" help xyzzy
says err "there is no command 'xyzzy'; \`flopcast --help\` lists them"
expect 2 "$FLOPCAST" help setting
says err "did you mean 'settings'?"
expect 0 "$FLOPCAST" help stacks
says out "(\`flopcast files stacks\`)" "rates.Ada.gemm_sustained: -" "settings.train.fusion: eager" "settings.fsdp.version: 1"
expect 2 "$FLOPCAST" help clusters nodes
says err "'clusters' stands alone, without 'nodes'"

expect 2 "$FLOPCAST"
says err "a command is missing"
expect 2 "$FLOPCAST" plott
says err "there is no command 'plott'; did you mean 'plot'?"
expect 2 "$FLOPCAST" --nosuch
expect 2 "$FLOPCAST" run
says err "flopcast run: a scenario file is missing"
expect 2 "$FLOPCAST" run --nosuch
expect 2 "$FLOPCAST" run x.yaml --format xml
says err "table, csv or json is wanted"
expect 2 "$FLOPCAST" run x.yaml --set train.micro_batch
says err "KEY=VALUE is wanted"
expect 2 "$FLOPCAST" run x.yaml --plan --db a.db
expect 2 "$FLOPCAST" plot
says err "a figure is missing"
expect 2 "$FLOPCAST" plot one two
expect 2 "$FLOPCAST" calibrate guess
expect 2 "$FLOPCAST" calibrate fit guess
says err "'guess' is nothing to fit; 'nccl', 'training', 'cluster', 'kernels', 'overlap', 'direct', 'measure FILE', or nothing for the GPUs"
expect 2 "$FLOPCAST" calibrate fit --correlations
says err "--correlations is for: calibrate fit nccl, and training"
expect 2 "$FLOPCAST" calibrate fit nccl --cross-validate
says err "--cross-validate is for: calibrate fit training, alone"
expect 2 "$FLOPCAST" model
[[ ! -e a.db ]] || fail "a database was made"
