#!/usr/bin/env bash
# Hardware files that extend others: what they say, where each number stands, and fits that write into them.
set -euo pipefail
# shellcheck source=/dev/null
. "$FLOPCAST_SOURCE_DIR/tests/cli/lib.bash"
mkdir -p mine/fitted
cat >mine/gpu.yaml <<'YAML'
# our card
extends: topologies/gpus/v100-sxm2-32gb.yaml
name: V100-ours
hbm_capacity: {value: 1 GiB, kind: assumed, source: ours}
YAML
cat >mine/node.yaml <<'YAML'
extends: topologies/nodes/dgx-1v-like.yaml
gpu: gpu.yaml
YAML
cat >mine/cluster.yaml <<'YAML'
extends: topologies/clusters/dgx-1v-ib.yaml
name: ours
node: node.yaml
YAML
expect 0 "$FLOPCAST" topology mine/cluster.yaml
says out "cluster ours, extends " "node DGX-1V" "gpu V100-ours (Volta, GV100), extends " "topologies/gpus/v100-sxm2-32gb.yaml" \
    "ours  [mine/gpu.yaml:4]" "/topologies/nodes/dgx-1v-like.yaml:"
expect 0 "$FLOPCAST" topology mine/node.yaml
says out "node DGX-1V" "gpu V100-ours"
expect 0 "$FLOPCAST" topology mine/gpu.yaml
[[ $(grep -c '\[.*\.yaml:[0-9]*\]$' out) == $(($(wc -l <out) - 1)) ]] || fail "numbers without a place: $(<out)"
# A file that extends nothing is shown as it was.
expect 0 "$FLOPCAST" topology "$FLOPCAST_SOURCE_DIR/topologies/gpus/v100-sxm2-32gb.yaml"
if grep -q '\.yaml:[0-9]*\]$' out; then fail "places in a file that extends nothing: $(<out)"; fi

# 'h100' is a cluster and a GPU; the keys say which is meant.
printf 'extends: h100\nhbm_capacity: {value: 94 GiB, kind: assumed, source: ours}\n' >mine/short.yaml
expect 0 "$FLOPCAST" topology mine/short.yaml
says out "gpu H100-SXM5-80GB (Hopper, GH100), extends " "ours  [mine/short.yaml:2]"

# A run has the card's memory, and the rest of the file that it extends.
scenario a.yaml 'stack: stack.yaml'
printf 'name: none\n' >stack.yaml
expect 0 "$FLOPCAST" run a.yaml --set cluster.topology=mine/cluster.yaml --format csv
says out "V100-ours"
tr -d '\r' <out | awk -F, 'NR == 2 { exit !($15 == 2 ^ 30) }' || fail "$(<out)"

# What a fit finds goes into a copy of the file that extends, which may lie elsewhere.
cat >fit.csv <<'CSV'
category,kernel,dtype,bytes,flop,time_us_median,time_us_min,time_us_max,sm_clock_MHz,gpu,driver,cuda,date,version,kind
launch,"empty kernels one after the other, GPU and host",,,,3,3,3,,V100,550.1,12.4,2026-01-31,0.1.0,measured
CSV
expect 0 "$FLOPCAST" calibrate fit measure fit.csv --gpu mine/gpu.yaml --out mine/fitted/gpu.yaml
[[ $(wc -l <mine/fitted/gpu.yaml) == 5 ]] || fail "$(<mine/fitted/gpu.yaml)"
says mine/fitted/gpu.yaml "# our card" "kernel_floor: {value: 3 us, kind: measured"
cp mine/gpu.yaml mine/base.yaml
printf 'extends: base.yaml\n' >mine/gpu.yaml
expect 0 "$FLOPCAST" calibrate fit measure fit.csv --gpu mine/gpu.yaml --out mine/fitted/gpu.yaml
says mine/fitted/gpu.yaml 'extends: "../base.yaml"'
expect 0 "$FLOPCAST" topology mine/fitted/gpu.yaml
says out "gpu V100-ours" "[mine/fitted/gpu.yaml:2]"

# A mistake is reported in the file where it stands.
printf 'extends: gpu.yaml\n' >mine/base.yaml
expect 2 "$FLOPCAST" topology mine/gpu.yaml
says err "mine/base.yaml:1:10: error: 'extends' leads back to 'mine/gpu.yaml'; name a file that does not extend 'mine/base.yaml'"
[[ $(wc -l <err) == 1 ]] || fail "one mistake, several messages: $(<err)"
printf 'extends: nowhere.yaml\n' >mine/base.yaml
expect 2 "$FLOPCAST" run a.yaml --set cluster.topology=mine/cluster.yaml
says err "mine/base.yaml:1:10: error: cannot open 'mine/nowhere.yaml'"
expect 0 "$FLOPCAST" help gpus
says out "extends: -"
