#!/usr/bin/env bash
# `flopcast together`: jobs that share a cluster's switches.
set -euo pipefail
# shellcheck source=/dev/null
. "$FLOPCAST_SOURCE_DIR/tests/cli/lib.bash"

# Two nodes of one GPU and one NIC on each leaf, one uplink: 2 : 1. A job with a small batch waits for its gradients.
cat >switched.yaml <<YAML
extends: $FLOPCAST_SOURCE_DIR/topologies/clusters/dgx-1v-ib.yaml
name: two on a leaf
network: {kind: fat_tree, leaf_ports: {value: 8, kind: assumed, source: a test}, spines: {value: 1, kind: assumed, source: a test},
  spine_cables: {value: 4, kind: assumed, source: a test}}
YAML
scenario a.yaml 'noise: {gpu_speed_spread: 0, kernel_jitter: 0, network_jitter: 0, host_jitter: 0}'
two=(a.yaml a.yaml --set cluster.topology=switched.yaml --set cluster.gpus=16)
# column NAME: of the CSV in out, a line a job.
column() {
    python3 -c 'import csv, sys; [print(r[sys.argv[1]]) for r in csv.DictReader(open("out", newline=""))]' "$1"
}

# One leaf each: nothing is shared, and the step is the same to the last digit.
expect 0 "$FLOPCAST" together "${two[@]}" --format csv
[[ $(column nodes) == $'0-1\n2-3' ]] || fail "packed: $(<out)"
[[ $(column ratio) == $'1\n1' ]] || fail "apart: $(<out)"
[[ $(column step_time_s) == "$(column step_time_alone_s)" ]] || fail "apart: $(<out)"

# Across the leaves both go over the same uplinks, by the placement or by nodes that are given.
expect 0 "$FLOPCAST" together "${two[@]}" --format csv --placement interleaved
[[ $(column nodes) == $'0 2\n1 3' ]] || fail "interleaved: $(<out)"
column ratio | python3 -c 'import sys; sys.exit(not all(1.001 < float(r) < 2 for r in sys.stdin))' || fail "shared: $(<out)"
# However long a step takes, a GPU has done its 2 x 128 tokens in it.
python3 -c 'import csv, sys
for r in csv.DictReader(open("out", newline="")):
    assert abs(float(r["tokens_per_s_per_gpu"]) * float(r["step_time_s"]) - 256) < 1e-3, r
    assert float(r["tflops_per_gpu"]) > 0' || fail "speeds: $(<out)"
cp out interleaved
expect 0 "$FLOPCAST" together "${two[@]}" --format csv --nodes 1:0,2 --nodes 2:1,3
cmp out interleaved || fail "the same nodes, given"

# Drawn by run.seed, among more nodes than are needed.
expect 0 "$FLOPCAST" together "${two[@]}" --format csv --placement drawn --cluster-nodes 16
cp out drawn
expect 0 "$FLOPCAST" together "${two[@]}" --format csv --placement drawn --cluster-nodes 16
cmp out drawn || fail "the same seed draws other nodes"
expect 0 "$FLOPCAST" together "${two[@]}" --format csv --placement drawn --cluster-nodes 16 --set run.seed=2
! cmp -s out drawn || fail "another seed draws the same nodes"

expect 0 "$FLOPCAST" together "${two[@]}" --set 2:train.micro_batch=1
says out "2 jobs on 4 nodes of two on a leaf" "batch 2, 16 GPUs" "batch 1, 16 GPUs" "ratio"
expect 0 "$FLOPCAST" together a.yaml a.yaml a.yaml --set cluster.topology=switched.yaml --set 3:cluster.gpus=32 --set 3:train.micro_batch=100000
says out "3 jobs on" "OOM" "job 3 is out of memory and takes no part"

# What is wrong.
expect 2 "$FLOPCAST" together a.yaml
says err "two scenario files or more are wanted"
expect 2 "$FLOPCAST" together a.yaml a.yaml
says err "cluster 'DGX-1V" "has no switches" "h100-8x400g-rail"
expect 2 "$FLOPCAST" together "${two[@]}" --nodes 1:0,1 --nodes 2:1,2
says err "--nodes 2" "node 1 is given twice"
expect 2 "$FLOPCAST" together "${two[@]}" --nodes 1:0-2
says err "--nodes 1" "3 nodes, but the job's 16 GPUs are on 2"
expect 2 "$FLOPCAST" together "${two[@]}" --nodes 1:x
says err "'x' is no list of nodes"
expect 2 "$FLOPCAST" together "${two[@]}" --nodes 1:8-9 --cluster-nodes 8
says err "10 nodes are needed for these jobs, not 8"
expect 2 "$FLOPCAST" together "${two[@]}" --cluster-nodes 3
says err "4 nodes are needed for these jobs, not 3"
expect 2 "$FLOPCAST" together "${two[@]}" --set 3:run.seed=2
says err "there is no job 3, only 2"
expect 2 "$FLOPCAST" together "${two[@]}" --set "2:cluster.network.leaf_ports=4"
says err "the links of job 2 are not those of job 1"
expect 2 "$FLOPCAST" together "${two[@]}" --set cluster.slow_gpus='node0.gpu0=50 %'
says err "cluster.slow_gpus"
expect 2 "$FLOPCAST" together "${two[@]}" --set 1:cluster.gpus='[8, 16]'
says err "a job is one"
