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
sed '/^$/q' out | tr '\n' ' ' | grep -qE '^[A-Z].*, micro-batch [0-9]+, checkpointing [a-z]+ on 8 GPUs: [0-9,]+ tokens/s \([0-9,]+ to [0-9,]+\); (fits|close: fits in [1-9] of 10 such cases) ' || fail "the answer: $(head -n 2 out)"
cp out first
expect 0 "$FLOPCAST" tune a.yaml --max-batch 4 --top 3
cmp out first || fail "two searches differ"
# A setting has one value in the command, also one that was given by another name.
expect 0 "$FLOPCAST" tune a.yaml --set train.micro_batch_size=1 --set train.attention=naive --top 1
[[ $(grep -o 'micro_batch[a-z_]*=1' out) == micro_batch=1 ]] || fail "the micro-batch twice: $(<out)"
says out "--set train.attention=naive"
# A word for a strategy says more than the strategy.
expect 0 "$FLOPCAST" tune a.yaml --strategy fsdp2 --max-batch 1 --limit 1 --top 1
says out "--set fsdp.version=2"
expect 2 "$FLOPCAST" tune a.yaml --strategy fsdp22
says err "--strategy:1:1: error: 'fsdp22' is not one of"

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
speed() { # of the job of 8 GPUs in ran.csv
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "tokens_per_s_per_gpu") at = i } NR == 2 { printf "%.9g", 8 * $at }' ran.csv
}
greatest() { # COLUMN: in all.csv; texts before it may have commas, so columns count from the end
    awk -F, -v name="$1" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) left = NF - i }
        NR > 1 && $(NF - left) > best { best = $(NF - left) } END { printf "%.9g", best }' all.csv
}
[[ $(speed) == "$(greatest tokens_per_s)" ]] || fail "the first runs at $(speed) tokens/s, the best candidate at $(greatest tokens_per_s)"

# The table has the CSV's numbers, the fastest first.
expect 0 "$FLOPCAST" tune a.yaml --set strategy=ddp --max-batch 512 --top 100
awk '/^V100/ { sub(/ \([0-9.]+-[0-9.]+\)/, ""); print $(NF - 8), $(NF - 7), $(NF - 6), $(NF - 5), $(NF - 4), $(NF - 3), $(NF - 2), $(NF - 1), $NF }' out >shown
"$FLOPCAST" tune a.yaml --set strategy=ddp --max-batch 512 --top 100 --format csv | tr -d '\r' |
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) left[$i] = NF - i }
        function of(name) { return $(NF - left[name]) }
        NR > 1 && of("noisy_tokens_per_s") { printf "%s %s %s %s %.0f %.1f %.1f %.1f %.2f %.1f\n", of("tokens_per_s"), of("activation_checkpointing"),
            of("micro_batch"), of("grad_accum"), of("tokens_per_s"), of("tflops_per_gpu"), of("peak_allocated_bytes") / 2 ^ 30,
            of("gpu_hours_per_gtokens"), of("usd_per_gtokens"), of("kwh_per_gtokens") }' | sort -s -g -r -k 1,1 | cut -d ' ' -f 2- >meant
[[ $(wc -l <shown) == 30 ]] || fail "not 3 x 10 rows: $(<shown)"
alike meant shown || fail "the table shows $(<shown), the CSV $(<meant)"

# With noise: finalists are run as `run` runs them and rank by that; what they do without it stands beside.
scenario noisy.yaml 'noise: {gpu_speed_spread: 0.05, kernel_jitter: 0.1}' 'sweep: [{noise.host_jitter: [1, 0]}]'
expect 0 "$FLOPCAST" tune noisy.yaml --set strategy=ddp --max-batch 4 --top 3
says out "no noise" "best without noise (GPUs alike, no jitter) were run with it"
[[ $(awk '/^V100/ { print $4 }' out | sort | uniq -c | tr -s ' ') == " 3 0" ]] || fail "hosts that jitter are no slower: $(<out)"
command=$(sed -n 's/^the first: flopcast //p' out)
# shellcheck disable=SC2086 # words
"$FLOPCAST" $command --format csv >ran.csv
"$FLOPCAST" tune noisy.yaml --set strategy=ddp --max-batch 4 --top 3 --format csv | tr -d '\r' >all.csv
[[ $(speed) == "$(greatest noisy_tokens_per_s)" ]] || fail "the first runs at $(speed) tokens/s, not at $(greatest noisy_tokens_per_s)"

# A card without a price is no cheapest: it stands apart. --price gives one; the dollars of a training follow.
sed 's/^price: .*//; s/^name: .*/name: V100-NEW/' "$FLOPCAST_SOURCE_DIR/topologies/gpus/v100-sxm2-32gb.yaml" >new-gpu.yaml
sed 's,^gpu: .*,gpu: new-gpu.yaml,' "$FLOPCAST_SOURCE_DIR/topologies/nodes/dgx-2.yaml" >new-node.yaml
sed 's,^node: .*,node: new-node.yaml,' "$FLOPCAST_SOURCE_DIR/topologies/clusters/dgx-2-ib.yaml" >new.yaml
both=(tune a.yaml --set "cluster.topology=[$FLOPCAST_SOURCE_DIR/topologies/clusters/dgx-1v-ib.yaml, new.yaml]" --set strategy=ddp --max-batch 2 --by cost --top 2)
expect 0 "$FLOPCAST" "${both[@]}"
says out "no price, so by GPU-hours: V100-NEW" "no price: V100-NEW; --price NAME=DOLLARS an hour gives one" "price: V100-SXM2-32GB 1.2 \$/h: "
awk '/^best by cost/ { part = "priced" } /^no price, so/ { part = "apart" } /^V100-SXM2/ && part == "priced" { old++ } /^V100-NEW/ && part == "apart" { new++ }
    END { exit !(old == 2 && new == 2) }' out || fail "not two and two: $(<out)"
expect 0 "$FLOPCAST" "${both[@]}" --price new=0.5 --price "v100-sxm2=1.5 \$/h"
says out "price: V100-NEW 0.5 \$/h: --price new=0.5" "price: V100-SXM2-32GB 1.5 \$/h: --price"
awk '/^best by cost/ { part = 1 } /^V100/ && part { exit $1 != "V100-NEW" }' out || fail "a third of the price is not the cheapest: $(<out)"
if grep -q "no price" out; then fail "there is no price: $(<out)"; fi
# 2 T tokens at s tokens/s are 2e12 / s / 86400 days; on 8 GPUs at 1.5 dollars an hour 24 x 8 x 1.5 dollars each.
expect 0 "$FLOPCAST" tune a.yaml --set strategy=ddp --max-batch 2 --top 1 --tokens 2T --price v100=1.5
says out "best by speed, for 2T tokens"
awk '/^V100/ { sub(/ \([0-9.]+-[0-9.]+\)/, ""); days = 2e12 / $(NF - 6) / 86400; usd = days * 24 * 8 * 1.5
    exit !(($(NF - 3) / days - 1) ^ 2 < 4e-4 && ($(NF - 2) / (days * 192) - 1) ^ 2 < 4e-4 && ($(NF - 1) / usd - 1) ^ 2 < 4e-4) }' out || fail "days or dollars: $(<out)"
"$FLOPCAST" tune a.yaml --set strategy=ddp --max-batch 1 --tokens 2e12 --price v100=1.5 --format csv | tr -d '\r' >all.csv
awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) left[$i] = NF - i }
    NR > 1 && (2e12 / $(NF - left["tokens_per_s"]) / 86400 * 288 / $(NF - left["usd"]) - 1) ^ 2 > 1e-9 { bad = 1 } END { exit bad || NR != 4 }' all.csv || fail "$(<all.csv)"
expect 0 "$FLOPCAST" "${both[@]}" --price h100=3
says err "--price h100=3: warning: no GPU here is called so; there are V100-SXM2-32GB, V100-NEW"
expect 2 "$FLOPCAST" "${both[@]}" --price v100=3
says err "several GPUs of this search are called so: V100-SXM2-32GB, V100-NEW; give more of the name"
for price in v100 v100= =3 v100=-1 v100=0 v100=x "v100=3 GB"; do
    expect 2 "$FLOPCAST" tune a.yaml --price "$price"
    says err "NAME=DOLLARS an hour is wanted"
done
for tokens in 0 -3 15Q 1e999 0x10 T; do
    expect 2 "$FLOPCAST" tune a.yaml --tokens "$tokens"
    says err "a number of tokens is wanted, as in 15T"
done

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
says out "best of the 10 tried, by cost" "90 candidates: 10 ran" "80 left out by --limit"
# Nothing to show is said, with what would help.
expect 0 "$FLOPCAST" tune a.yaml --set train.seq_len=1024 --set train.micro_batch=1 --max-batch 1 --set cluster.gpus=1 --set model=huge.json
says out "nothing fits: take more or larger GPUs" "candidates: 0 ran"
# None of those tried fits, which says nothing about those that were not. 0.4 GB of context, 0.4 GB of NCCL's and 50.6 MB of
# tensors are 850.6 MB; the allocator reserves 65.0 MB for them.
expect 0 "$FLOPCAST" tune a.yaml --set strategy=ddp --set train.activation_checkpointing=none --max-batch 2 --limit 1 \
    --set cluster.node.gpu.hbm_capacity=859MB
says out "none of the 1 tried fits; 1 left out by --limit: take a larger one, or a smaller --max-batch"
# What --set says of the options searched stays; what the strategy refuses is counted, or reported when nothing else is left.
expect 0 "$FLOPCAST" tune a.yaml --max-batch 4 --set strategy=ddp
says out "9 candidates: 9 ran" "--set strategy=ddp"
expect 0 "$FLOPCAST" tune "$FLOPCAST_SOURCE_DIR/scenarios/internevo_zero1.yaml" --set cluster.gpus=8 --max-batch 1
says out "more are not possible: DeepSpeed keeps 16-bit weights and FP32 copies"
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
