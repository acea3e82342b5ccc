#!/usr/bin/env bash
# `flopcast tune`: the best first, in a table and as CSV; a run of what it recommends.
set -euo pipefail
# shellcheck source=/dev/null
. "$FLOPCAST_SOURCE_DIR/tests/cli/lib.bash"
echo '{"model_type": "gpt2", "n_embd": 8192, "n_layer": 96, "n_head": 64}' >huge.json
scenario a.yaml 'noise: {gpu_speed_spread: 0, kernel_jitter: 0, network_jitter: 0, host_jitter: 0}'

expect 0 "$FLOPCAST" tune a.yaml --max-batch 4 --top 3
says out "best by speed" "90 candidates: " "the first: flopcast run a.yaml --set " "price: "
[[ $(grep -c '^V100' out) == 3 ]] || fail "not three rows: $(<out)"
cp out first
expect 0 "$FLOPCAST" tune a.yaml --max-batch 4 --top 3
cmp out first || fail "two searches differ"

# What is recommended runs as is, at the step time of the table's best.
command=$(sed -n 's/^the first: flopcast //p' out)
# shellcheck disable=SC2086 # words
"$FLOPCAST" $command --format csv >ran.csv
"$FLOPCAST" tune a.yaml --max-batch 4 --format csv | tr -d '\r' >all.csv
[[ $(wc -l <all.csv) == 91 ]] || fail "not a head and 90 rows: $(<all.csv)"
speed=$(awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "tokens_per_s_per_gpu") at = i } NR == 2 { printf "%.9g", 8 * $at }' ran.csv)
best=$(awk -F, 'NR > 1 && $(NF - 3) > best { best = $(NF - 3) } END { printf "%.9g", best }' all.csv)
[[ $speed == "$best" ]] || fail "the first runs at $speed tokens/s, the best candidate at $best"

# So it does where the scenario sweeps more than the search does, and where a name needs quotes.
a100=$FLOPCAST_SOURCE_DIR/topologies/clusters/a100-80gb-8x200g.yaml v100=$FLOPCAST_SOURCE_DIR/topologies/clusters/dgx-1v-ib.yaml
cp a.yaml "it's swept.yaml"
expect 0 "$FLOPCAST" tune "it's swept.yaml" --set "cluster.topology=[$v100, $a100]" --max-batch 2
says out "flopcast run 'it'\\''s swept.yaml' --set" "cluster.topology=$a100"
eval "set -- $(sed -n 's/^the first: flopcast //p' out)"
expect 0 "$FLOPCAST" "$@" --format csv
[[ $(wc -l <out) == 2 ]] || fail "one point is recommended: $(<out)"

expect 0 "$FLOPCAST" tune a.yaml --max-batch 4 --limit 10 --by cost
says out "best by cost" "90 candidates: 10 ran" "80 left out by --limit"
# Nothing to show is said, with what would help.
expect 0 "$FLOPCAST" tune a.yaml --set train.seq_len=1024 --set train.micro_batch=1 --max-batch 1 --set cluster.gpus=1 --set model=huge.json
says out "nothing fits: take more or larger GPUs" "candidates: 0 ran"
expect 2 "$FLOPCAST" tune a.yaml --global-batch 7
says err "accumulates to a global batch of 7 on these GPUs" "a multiple of cluster.gpus"
expect 2 "$FLOPCAST" tune a.yaml --by price
says err "--by price: speed or cost is wanted"
expect 2 "$FLOPCAST" tune a.yaml --limit 0
expect 2 "$FLOPCAST" tune
