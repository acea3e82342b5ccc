#!/usr/bin/env bash
# `flopcast whatif`: a scenario and changed ones, side by side.
set -euo pipefail
# shellcheck source=/dev/null
. "$FLOPCAST_SOURCE_DIR/tests/cli/lib.bash"
scenario a.yaml 'noise: {gpu_speed_spread: 0, kernel_jitter: 0, network_jitter: 0, host_jitter: 0}'
scenario swept.yaml 'sweep: [{cluster.gpus: [8, 16]}]'

# Both columns are what `run` says of either; difference and ratio follow.
expect 0 "$FLOPCAST" whatif a.yaml --set train.micro_batch=4 --or --set cluster.gpus=16 --set run.seed=2 --format csv
tr -d '\r' <out >table
cell() { # cell CHANGE QUANTITY COLUMN
    awk -F, -v change="$1" -v quantity="$2" -v column="$3" '{ n = NF } $(n - 6) ~ change && $(n - 4) == quantity { print $(n - column) }' table
}
run_says() { # run_says COLUMN ARGUMENT...: of the CSV of run
    local column=$1
    shift
    "$FLOPCAST" run a.yaml --format csv "$@" | tr -d '\r' | awk -F, -v name="$column" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) at = i } NR == 2 { print $at }'
}
for quantity in step_time_s tflops_per_gpu peak_allocated_bytes exposed_comm_s; do
    before=$(run_says $quantity) after=$(run_says $quantity --set train.micro_batch=4)
    [[ $(cell micro_batch $quantity 3) == "$before" ]] || fail "$quantity as it is: $(cell micro_batch $quantity 3), not $before"
    [[ $(cell micro_batch $quantity 2) == "$after" ]] || fail "$quantity changed: $(cell micro_batch $quantity 2), not $after"
    awk -v a="$before" -v b="$after" -v difference="$(cell micro_batch $quantity 1)" -v ratio="$(cell micro_batch $quantity 0)" \
        'BEGIN { exit !((b - a - difference) ^ 2 <= (1e-9 * b) ^ 2 && (b / a - ratio) ^ 2 <= 1e-18) }' || fail "$quantity: $(<table)"
done
[[ $(cell cluster.gpus=16 step_time_s 2) == $(run_says step_time_s --set cluster.gpus=16) ]] || fail "the second change: $(<table)"

# The table has the CSV's numbers in units for people.
expect 0 "$FLOPCAST" whatif a.yaml --set train.micro_batch=512
awk '/ as it is / && !table { table = on = 1; next } !NF { on = 0 } on { print $(NF - 3), $(NF - 2), $NF }' out >shown
expect 0 "$FLOPCAST" whatif a.yaml --set train.micro_batch=512 --format csv
tr -d '\r' <out | awk -F, 'BEGIN { n = split("1 1 1 100 1e3 1e3 1e3 GiB GiB", scale, " "); split("4 2 0 2 1 1 1 2 2", digits, " ") }
    NR > n + 1 { scale[NR - 1] = 1e3; digits[NR - 1] = 1 } # times of collectives
    NR > 1 { by = scale[NR - 1] == "GiB" ? 2 ^ -30 : scale[NR - 1]; form = "%." digits[NR - 1] "f "
        printf form form "%.3f\n", by * $(NF - 3), by * $(NF - 2), $NF } END { exit NR < n + 3 }' >meant
cmp shown meant || fail "the table shows $(<shown), the CSV $(<meant)"

# What binds the collectives of each side. Two nodes with 4 NICs, 100 Gb/s of each behind a PCIe slot of 12 GB/s: at 4 Gb/s NICs bind and
# twice as fast ones shorten collectives to about half, until PCIe does, which 800 Gb/s then leave as it is. The parts add up to all.
# (NCCL 2.4: its choice is not known, the fastest is taken, rings; later ones take a tree, whose unfilled pipeline counts as latency.)
expect 0 "$FLOPCAST" whatif a.yaml --base cluster.gpus=16 --base train.micro_batch=64 --base cluster.nccl_version=2.4 --base cluster.node.nic_bandwidth=4Gb/s \
    --set cluster.node.nic_bandwidth=8Gb/s --or --set cluster.node.nic_bandwidth=800Gb/s
tr '\n' ' ' <out | tr -s ' ' >line
says line "They are bound by NIC (4 x 500 MB/s, assumed)" "They are bound by NIC (4 x 1 GB/s, assumed)" "of rank 0's last step of" \
    "(1) cluster.node.nic_bandwidth=8Gb/s shortens the step (-" "What binds most of that time is NIC before and after" \
    "(2) cluster.node.nic_bandwidth=800Gb/s shortens the step (-" "What binds most of that time is NIC before, " "bound by"
expect 0 "$FLOPCAST" whatif a.yaml --base cluster.gpus=16 --base train.micro_batch=64 --base cluster.nccl_version=2.4 --base cluster.node.nic_bandwidth=4Gb/s \
    --set cluster.node.nic_bandwidth=8Gb/s --format csv
tr -d '\r' <out | awk -F, '$(NF - 4) == "collectives_s" { all = $(NF - 3); ratio = $NF } $(NF - 4) ~ /^bound_by_/ { sum += $(NF - 3) }
    $(NF - 4) == "bound_by_NIC_s" { nic = $(NF - 3) } END { exit !((all - sum) ^ 2 < 1e-18 && nic > all / 2 && ratio > 0.45 && ratio < 0.67) }' ||
    fail "times by bounds: $(<out)"
# The NIC of 256 H100 twice as fast, under FSDP and DDP: what binds before and after, and why little is gained. An all_gather of 386 MiB
# sends 255/256 of it by LL128 at 92 % of 353.6 GB/s, 1.24 of its 2.15 ms: 42 % are hops and steps.
h100=$FLOPCAST_SOURCE_DIR/scenarios/llama2_7b_h100_fsdp.yaml
expect 0 "$FLOPCAST" whatif "$h100" --base cluster.gpus=256 --base fsdp.sharding_strategy=FULL_SHARD --base run.steps=1 --set cluster.node.nic_bandwidth=800Gb/s
tr '\n' ' ' <out | tr -s ' ' >line
says out "all_gather of 386 MiB on 256"
says line "They are bound by channels (16 x 22.1 GB/s, assumed) 100 %; hops and steps are 42 % of their time." "Across nodes NCCL lays 16 channels: its search finds 8 of 48 GB/s, doubled" \
    "Each carries at most 22.1 GB/s, assumed: what is said of faster NICs rests on this one number." \
    "(1) cluster.node.nic_bandwidth=800Gb/s leaves the step as it is: its collectives take 0.7 % less time, and" "hidden behind compute already. What binds most of that time is channels before and after."
# More channels make this job slower, so they are not advised.
if grep -q -e NCCL_MIN_CTAS -e nccl_channels line; then fail "advises channels: $(<out)"; fi
expect 0 "$FLOPCAST" whatif "$h100" --base cluster.gpus=256 --base strategy=ddp --base "model=$FLOPCAST_SOURCE_DIR/scenarios/models/gpt2-xl.yaml" \
    --base train.seq_len=1024 --base fsdp.sharding_strategy=FULL_SHARD --base run.steps=1 --set cluster.node.nic_bandwidth=800Gb/s
tr '\n' ' ' <out | tr -s ' ' >line
says line "They are bound by latency 98 %, NIC (8 x 50 GB/s, datasheet) 2 %; hops and steps are " \
    "(1) cluster.node.nic_bandwidth=800Gb/s shortens the step (-4" "What binds most of that time is latency before and after."
# One GPU has no collectives, which needs no words.
expect 0 "$FLOPCAST" whatif a.yaml --base cluster.gpus=1 --set train.micro_batch=4
if grep -q collectives out; then fail "collectives of one GPU: $(<out)"; fi

# The table names the changes; every point of a sweep has its own.
expect 0 "$FLOPCAST" whatif swept.yaml --set train.micro_batch=4 --or --set train.micro_batch=8
says out "(1) train.micro_batch=4" "(2) train.micro_batch=8" "batch 2, 8 GPUs" "batch 2, 16 GPUs" "exposed comm" "HBM peak" "collectives of rank 0's last step (above: means of all ranks and steps):"
# Its first lines are a verdict over all points.
tr '\n' ' ' <out | tr -s ' ' >line
grep -qE '^\(1\) train.micro_batch=4: tokens/s change by [-+][0-9.]+ % in the median of 2 points, from [-+][0-9.]+ % \([^)]*\) to [-+][0-9.]+ % \([^)]*\)\. \(2\) train' line ||
    fail "no verdict first: $(head -n 6 out)"
expect 0 "$FLOPCAST" whatif swept.yaml --set cluster.node.nic_bandwidth=10Gb/s
says out "(1) cluster.node.nic_bandwidth=10Gb/s: the step changes by +"
# Steps with more tokens are compared by speed, on top and in words; what changes nothing is one line.
expect 0 "$FLOPCAST" whatif a.yaml --set train.micro_batch=4
tr '\n' ' ' <out | tr -s ' ' >line
grep -qE '^\(1\) train.micro_batch=4: trains [0-9.]+ % more tokens/s \(a step has 2 times the tokens and takes [0-9.]+ % longer\)\.' line ||
    fail "no speed on top: $(head -n 3 out)"
says line "(1) train.micro_batch=4 trains "
! grep -q 'lengthens the step' out || fail "a longer step of more tokens: $(<out)"
expect 0 "$FLOPCAST" whatif a.yaml --set train.micro_batch=2
[[ $(<out) == "nothing changed: the scenario has that already" ]] || fail "nothing changed: $(<out)"
expect 0 "$FLOPCAST" whatif a.yaml --set train.micro_batch=2 --or --set train.micro_batch=4
says out "(1) train.micro_batch=2: nothing changed, the scenario has that already." "(2) train.micro_batch=4: trains "
# Out of memory has no speed, but says what it would need.
expect 0 "$FLOPCAST" whatif a.yaml --set train.micro_batch=16384
says out OOM "out of memory with train.micro_batch=16384:" "GiB short; first at" "  needed: parameters"
narrow "$FLOPCAST" whatif a.yaml --set train.micro_batch=16384
# What rounds to nothing has no sign.
expect 0 "$FLOPCAST" whatif a.yaml --set fsdp.no_sync=true
if grep -q -e '[-+]0[.]*0* ' out; then fail "a signed zero: $(<out)"; fi
# Images are no tokens.
expect 0 "$FLOPCAST" whatif a.yaml --base "model=$FLOPCAST_SOURCE_DIR/scenarios/models/resnet50.yaml" --base train.seq_len=1 --set train.micro_batch=4
says out "images/s/GPU"
expect 0 "$FLOPCAST" whatif a.yaml --base cluster.gpus=1 --set train.micro_batch=4
grep -q ", 1 GPU$" out || fail "$(<out)"
expect 0 "$FLOPCAST" whatif swept.yaml --base cluster.gpus=8 --set cluster.gpus=16
expect 2 "$FLOPCAST" whatif swept.yaml --set cluster.gpus=8
says err "swept.yaml: error: 2 points, but 1 with cluster.gpus=8; give cluster.gpus one value with --base"
expect 2 "$FLOPCAST" whatif a.yaml --set cluster.gpus='[8, 16]'
says err "1 point, but 2 with cluster.gpus=[8, 16], which sweeps cluster.gpus; give it one value"
expect 2 "$FLOPCAST" whatif a.yaml
says err "a change is missing"
expect 2 "$FLOPCAST" whatif a.yaml --set train.micro_batch=4 --or
expect 2 "$FLOPCAST" whatif a.yaml --set gpus=16
says err "did you mean 'cluster.gpus'?"
expect 2 "$FLOPCAST" whatif --set train.micro_batch=4

