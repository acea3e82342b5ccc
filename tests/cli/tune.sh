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

# What prefetch does not change is one row, so that ten rows are ten choices.
expect 0 "$FLOPCAST" tune a.yaml --max-batch 4 --set strategy=fsdp --set fsdp.sharding_strategy=NO_SHARD
[[ $(grep -c '^V100' out) == 9 ]] || fail "not a row for each of 3 batches and 3 kinds of checkpointing: $(<out)"
says out "BACKWARD_PRE, "
# What the scenario sweeps beside that is not prefetch, however little it changes.
scenario seeds.yaml 'sweep: [{run.seed: [1, 2]}]'
expect 0 "$FLOPCAST" tune seeds.yaml --max-batch 1 --set strategy=fsdp --set fsdp.sharding_strategy=NO_SHARD --set train.activation_checkpointing=none
[[ $(grep -c '^V100' out) == 2 && $(grep -c 'BACKWARD_PRE.*BACKWARD_PRE' out) == 0 ]] || fail "two seeds in a row: $(<out)"
says out "run.seed" # or the two rows would look alike
awk '/^V100/ { seeds[$4]++ } END { exit !(seeds[1] == 1 && seeds[2] == 1) }' out || fail "seeds: $(<out)"
expect 0 "$FLOPCAST" tune seeds.yaml --max-batch 1 --set strategy=ddp --format csv
says out "model,cluster,swept,gpus" ",run.seed=1,8,DDP" ",run.seed=2,8,DDP"
cp first out

# What is recommended runs as is, at the step time of the table's best.
command=$(sed -n 's/^the first: flopcast //p' out)
# shellcheck disable=SC2086 # words
"$FLOPCAST" $command --format csv >ran.csv
"$FLOPCAST" tune a.yaml --max-batch 4 --format csv | tr -d '\r' >all.csv
[[ $(wc -l <all.csv) == 91 ]] || fail "not a head and 90 rows: $(<all.csv)"
speed=$(awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "tokens_per_s_per_gpu") at = i } NR == 2 { printf "%.9g", 8 * $at }' ran.csv)
best=$(awk -F, 'NR > 1 && $(NF - 3) > best { best = $(NF - 3) } END { printf "%.9g", best }' all.csv)
[[ $speed == "$best" ]] || fail "the first runs at $speed tokens/s, the best candidate at $best"

# The table has the CSV's numbers, the fastest first.
expect 0 "$FLOPCAST" tune a.yaml --set strategy=ddp --max-batch 512 --top 100
awk '/^V100/ { print $(NF - 8), $(NF - 7), $(NF - 6), $(NF - 5), $(NF - 4), $(NF - 3), $(NF - 2), $(NF - 1), $NF }' out >shown
"$FLOPCAST" tune a.yaml --set strategy=ddp --max-batch 512 --format csv | tr -d '\r' |
    awk -F, '$(NF - 8) == "ran" { printf "%s %s %s %s %.0f %.1f %.1f %.1f %.2f %.1f\n", $(NF - 3), $(NF - 11), $(NF - 10), $(NF - 9),
        $(NF - 3), $(NF - 4), $(NF - 6) / 2 ^ 30, $(NF - 2), $(NF - 1), $NF }' | sort -s -g -r -k 1,1 | cut -d ' ' -f 2- >meant
[[ $(wc -l <shown) == 30 ]] || fail "not 3 x 10 rows: $(<shown)"
cmp shown meant || fail "the table shows $(<shown), the CSV $(<meant)"

# So it does where the scenario sweeps more than the search does, and where a name needs quotes.
a100=$FLOPCAST_SOURCE_DIR/topologies/clusters/a100-80gb-8x200g.yaml v100=$FLOPCAST_SOURCE_DIR/topologies/clusters/dgx-1v-ib.yaml
cp a.yaml "it's swept.yaml"
expect 0 "$FLOPCAST" tune "it's swept.yaml" --set "cluster.topology=[$v100, $a100]" --max-batch 2
says out "flopcast run 'it'\\''s swept.yaml' --set" "cluster.topology=$a100"
eval "set -- $(sed -n 's/^the first: flopcast //p' out)"
expect 0 "$FLOPCAST" "$@" --format csv
[[ $(wc -l <out) == 2 ]] || fail "one point is recommended: $(<out)"

# What else --set gave is part of what is recommended.
expect 0 "$FLOPCAST" tune a.yaml --max-batch 2 --set strategy=ddp --set train.seq_len=256 --set noise.kernel_jitter=0
says out "flopcast run a.yaml --set train.seq_len=256 --set noise.kernel_jitter=0 --set cluster.gpus=8"

# A device's batch: no more of it is a micro-batch than all, micro-steps are counted, a global batch is shared out as it.
batches() { # OPTION...: micro-batch and micro-steps of the candidates
    "$FLOPCAST" tune a.yaml --set strategy=ddp --set train.activation_checkpointing=none --max-batch 32 --format csv "$@" |
        awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) left[$i] = NF - i } # names before have commas
            NR > 1 { printf "%sx%s ", $(NF - left["micro_batch"]), $(NF - left["grad_accum"]) }'
}
[[ $(batches --set train.device_batch=6) == "6x1 4x2 2x3 1x6 " ]] || fail "a batch of 6: $(batches --set train.device_batch=6)"
[[ $(batches --set train.device_batch=4) == "4x1 2x2 1x4 " ]] || fail "a batch of 4: $(batches --set train.device_batch=4)"
[[ -z $(batches --set train.device_batch=6 --global-batch 24 2>/dev/null) ]] || fail "6 sequences on each of 8 GPUs are not 24"
sed -i 's/micro_batch: 2/micro_batch: 2, device_batch: 6/' a.yaml
[[ $(batches --global-batch 24) == "3x1 2x2 1x3 " ]] || fail "24 sequences on 8 GPUs: $(batches --global-batch 24)"
expect 0 "$FLOPCAST" tune a.yaml --set strategy=ddp --max-batch 2 --global-batch 24
says out "--set train.grad_accum=1 " "--set train.device_batch=3"
scenario a.yaml 'noise: {gpu_speed_spread: 0, kernel_jitter: 0, network_jitter: 0, host_jitter: 0}'

expect 0 "$FLOPCAST" tune a.yaml --max-batch 4 --limit 10 --by cost
says out "best by cost" "90 candidates: 10 ran" "80 left out by --limit"
# Nothing to show is said, with what would help.
expect 0 "$FLOPCAST" tune a.yaml --set train.seq_len=1024 --set train.micro_batch=1 --max-batch 1 --set cluster.gpus=1 --set model=huge.json
says out "nothing fits: take more or larger GPUs" "candidates: 0 ran"
# None of those tried fits, which says nothing about those that were not.
echo '{"model_type": "gpt2", "n_embd": 1792, "n_layer": 44, "n_head": 28, "vocab_size": 1000}' >full.json
expect 0 "$FLOPCAST" tune a.yaml --set model=full.json --set strategy=ddp --set train.activation_checkpointing=none --max-batch 2 --limit 1
says out "none of the 1 tried fits; 1 left out by --limit: take a larger one, or a smaller --max-batch"
# What --set says of the options searched stays; what the strategy refuses is counted, or told when nothing else is left.
expect 0 "$FLOPCAST" tune a.yaml --max-batch 4 --set strategy=ddp
says out "9 candidates: 9 ran" "--set strategy=ddp" "speeds are without noise"
expect 0 "$FLOPCAST" tune "$FLOPCAST_SOURCE_DIR/scenarios/internevo_zero1.yaml" --set cluster.gpus=8 --max-batch 1
says out "more are not possible: DeepSpeed keeps FP32 master weights of its own"
expect 2 "$FLOPCAST" tune a.yaml --set strategy=ddp --set train.activation_checkpointing=full --set train.micro_batch=99999999
expect 2 "$FLOPCAST" tune a.yaml --global-batch 7
says err "accumulates to a global batch of 7 on these GPUs" "a multiple of cluster.gpus"
expect 2 "$FLOPCAST" tune a.yaml --by price
says err "--by price: speed or cost is wanted"
expect 2 "$FLOPCAST" tune a.yaml --limit 0
expect 2 "$FLOPCAST" tune

# What no candidate reads makes no more of them: InternEvo's groups are swept there, and InternEvo is not searched.
count() { # OPTION...
    "$FLOPCAST" tune "$FLOPCAST_SOURCE_DIR/scenarios/internevo_zero1.yaml" --set cluster.gpus=16 --max-batch 1 --limit 1 "$@" |
        sed -n 's/^\([0-9]*\) candidates.*/\1/p'
}
[[ -n $(count) && $(count) == "$(count --set internevo.zero1=8)" ]] || fail "candidates: $(count), one group size: $(count --set internevo.zero1=8)"
