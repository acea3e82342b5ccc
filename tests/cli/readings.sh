#!/usr/bin/env bash
# Where a scenario sweeps what its publication leaves open: the range of the changes of its curves, in the table and in the figure.
set -euo pipefail
# shellcheck source=/dev/null
. "$FLOPCAST_SOURCE_DIR/tests/cli/lib.bash"
quick=(--set "cluster.gpus=[8, 512]" --set train.micro_batch=8 --set run.steps=1)
quick+=(--set noise.gpu_speed_spread=0 --set noise.kernel_jitter=0 --set noise.network_jitter=0 --set noise.host_jitter=0)

# Two precisions answer to one published curve: the range is that of the two lines above it, the published change theirs.
expect 0 "$FLOPCAST" run scenarios/t5_scaling.yaml "${quick[@]}" --db a.db
sed -n 's/.*512 GPUs: simulated.* TFLOPS\/GPU (\(.*\) %); published.*(\(.*\) %)$/\1 \2/p' out |
    awk '{ change[NR] = $1; published[NR] = $2 } END {
        if (NR != 2 || change[1] == change[2] || published[1] != published[2]) exit 1
        low = change[1] < change[2] ? 1 : 2 # the larger loss
        printf "t5-11b, batch 8, 2 readings of the publication: simulated %s to %s %%; published %s %%\n", change[3 - low], change[low], published[1] }' >want ||
    fail "curves: $(<out)"
says out "$(<want)"
[[ $(grep -c 'readings of the publication' out) == 1 ]] || fail "not one range: $(<out)"

if command -v gnuplot >/dev/null; then
    expect 0 "$FLOPCAST" plot t5_scaling --db a.db --out a.svg
    says a.svg "under the other reading" "Band: the two readings of the paper"
fi

# One reading has no range.
expect 0 "$FLOPCAST" run scenarios/t5_scaling.yaml "${quick[@]}" --set train.precision=bf16
says out "512 GPUs: simulated"
! grep -q 'readings of the publication' out || fail "one curve has a range: $(<out)"
