#!/usr/bin/env bash
# Where a scenario sweeps what its publication leaves open: the range of the changes of its curves, in the table and in the figure.
set -euo pipefail
# shellcheck source=/dev/null
. "$FLOPCAST_SOURCE_DIR/tests/cli/lib.bash"
quick=(--set "cluster.gpus=[8, 512]" --set train.micro_batch=8 --set run.steps=1)
quick+=(--set noise.gpu_speed_spread=0 --set noise.kernel_jitter=0 --set noise.network_jitter=0 --set noise.host_jitter=0)

# The reading that is shown has the cluster file's number, which a new fit changes: then here, too.
fitted=$(sed -nE 's/^nccl_ring_post_latency: \{value: ([^,]+),.*/\1/p' "$FLOPCAST_SOURCE_DIR/topologies/clusters/a100-80gb-roce-2tb.yaml")
shown=$(sed -nE 's/^ *cluster\.nccl_ring_post_latency: \[([^,]+),.*/\1/p' "$FLOPCAST_SOURCE_DIR/scenarios/t5_scaling.yaml")
[[ -n $fitted && $shown == "$fitted" ]] || fail "t5_scaling shows a post of '$shown', its cluster's file has '$fitted'"

# Six readings (two precisions, two protocols, what a second channel costs) answer to one published curve: the range is that of the other readings, of the table and of the curve.
expect 0 "$FLOPCAST" run scenarios/t5_scaling.yaml "${quick[@]}" --format csv
tr -d '\r' <out | awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
    { curve[$at["gpus"], ++n[$at["gpus"]]] = $at["tflops_per_gpu"] }
    END {
        if (n[8] != 6 || n[512] != 6) exit 1
        low = 1e9; high = 0; least = 1e9; most = -1e9
        for (i = 2; i <= 6; i++) {
            low = curve[512, i] < low ? curve[512, i] : low
            high = curve[512, i] > high ? curve[512, i] : high
            loss = 100 * (1 - curve[512, i] / curve[8, i])
            least = loss < least ? loss : least
            most = loss > most ? loss : most
        }
        printf "other readings %.1f to %.1f %%\n%.0f-%.0f\n", least, most, low, high }' >want || fail "points: $(<out)"
COLUMNS=80 expect 0 "$FLOPCAST" run scenarios/t5_scaling.yaml "${quick[@]}" --db a.db
says out "$(head -n 1 want)" "; published: loses 5.8 %" "  $(tail -n 1 want)  " "--wide has a row for each of 12 points"
[[ $(grep -cE '^ *(8|512) +[0-9]+ \(' out) == 2 || $(grep -cE '^ +8 +(8|512) ' out) == 2 ]] || fail "not two rows: $(<out)"
expect 0 "$FLOPCAST" run scenarios/t5_scaling.yaml "${quick[@]}" --wide
[[ $(grep -c '^t5-11b .*GPUs, ' out) -le 6 && $(grep -c '^t5-11b .*FULL_SHARD .*(.*-.*)' out) == 12 ]] || fail "not twelve rows: $(<out)"

# What is no setting of the sweep cannot be left open.
own=$FLOPCAST_SOURCE_DIR/scenarios
sed -e "s,\.\./,$own/../,g" -e "s,model: models,model: $own/models," -e 's/readings: [^}]*/readings: train.optimizer/' "$own/t5_scaling.yaml" >wrong.yaml
expect 2 "$FLOPCAST" run wrong.yaml
says err "published.readings: 'train.optimizer' is not in the file's 'sweep'"

if command -v gnuplot >/dev/null; then
    expect 0 "$FLOPCAST" plot t5_scaling --db a.db --out a.svg
    says a.svg "by all readings" "Band: 6 readings of the paper"
fi

# One reading has no range.
expect 0 "$FLOPCAST" run scenarios/t5_scaling.yaml "${quick[@]}" --set train.precision=bf16 --set cluster.nccl_protocols=no_ll128 --set "cluster.nccl_ring_post_latency=46.33 us"
says out " from 8 to 512 GPUs"
! grep -q 'other readings' out || fail "one curve has a range: $(<out)"

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
