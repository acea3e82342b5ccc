#!/usr/bin/env bash
# Where a scenario sweeps what its publication leaves open: the range of the changes of its curves, in the table and in the figure.
set -euo pipefail
# shellcheck source=/dev/null
. "$FLOPCAST_SOURCE_DIR/tests/cli/lib.bash"
quick=(--set "cluster.gpus=[8, 512]" --set train.micro_batch=8 --set run.steps=1)
quick+=(--set noise.gpu_speed_spread=0 --set noise.kernel_jitter=0 --set noise.network_jitter=0 --set noise.host_jitter=0)

# Two precisions with two protocols answer to one published curve: the range is that of the lines above it, the published change theirs.
expect 0 "$FLOPCAST" run scenarios/t5_scaling.yaml "${quick[@]}" --db a.db
sed -n 's/.*512 GPUs: simulated.* TFLOPS\/GPU (\(.*\) %); published.*(\(.*\) %)$/\1 \2/p' out |
    awk '{ change[NR] = $1; published[NR] = $2 } END {
        if (NR != 4) exit 1
        low = high = 1
        for (i = 2; i <= NR; i++) {
            if (published[i] != published[1]) exit 1
            if (change[i] + 0 < change[low] + 0) low = i # the larger loss
            if (change[i] + 0 > change[high] + 0) high = i
        }
        if (change[low] == change[high]) exit 1
        printf "t5-11b, batch 8, 4 readings of the publication: simulated %s to %s %%; published %s %%\n", change[high], change[low], published[1] }' >want ||
    fail "curves: $(<out)"
says out "$(<want)"
[[ $(grep -c 'readings of the publication' out) == 1 ]] || fail "not one range: $(<out)"

if command -v gnuplot >/dev/null; then
    expect 0 "$FLOPCAST" plot t5_scaling --db a.db --out a.svg
    says a.svg "by all readings" "Band: 4 readings of the paper"
fi

# One reading has no range.
expect 0 "$FLOPCAST" run scenarios/t5_scaling.yaml "${quick[@]}" --set train.precision=bf16 --set cluster.nccl_protocols=no_ll128
says out "512 GPUs: simulated"
! grep -q 'readings of the publication' out || fail "one curve has a range: $(<out)"

# What was published is of the run that the file states: not of another cluster, length or optimizer; the value that the file has, a reading that
# it sweeps and another seed change nothing.
one=(--gpus 8 --micro-batch 8 --no-noise)
expect 0 "$FLOPCAST" run t5_scaling "${one[@]}" --topology h100-8x400g --seq-len 256
says out "(other here: cluster.topology, train.seq_len)" "published figures left out: cluster.topology, train.seq_len differ"
! grep -qE 'deviation|149.76|assumed, where' out || fail "published of another run: $(<out)"
expect 0 "$FLOPCAST" run t5_scaling "${one[@]}" --topology h100-8x400g --format csv
! grep -q '149.76' out || fail "published of another run: $(<out)"
expect 0 "$FLOPCAST" run t5_scaling "${one[@]}" --seq-len 0.5k --set train.precision=bf16 --seed 3 --strategy FULL_SHARD
says out "deviation" "149.76" "assumed, where"
! grep -q 'left out' out || fail "the same run: $(<out)"
