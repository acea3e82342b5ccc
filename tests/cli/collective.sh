#!/usr/bin/env bash
# `flopcast collective` prints what our own importer of nccl-tests reads, and `calibrate check` finds no error in it.
set -euo pipefail
# shellcheck source=/dev/null
. "$FLOPCAST_SOURCE_DIR/tests/cli/lib.bash"
h100=$FLOPCAST_SOURCE_DIR/topologies/clusters/h100-8x400g.yaml

for kind in all_reduce all_gather reduce_scatter broadcast reduce all_to_all send_recv; do
    expect 0 "$FLOPCAST" collective "$kind" --topology "$h100" --gpus 16 --bytes 1K:1G:16
    mv out log.txt
    says log.txt "# nThread 1 nGpus 1 minBytes 1024 maxBytes 1073741824" "#  Rank 15 Group  0 Pid     16 on  node-0001 device  7" "H100-SXM5-80GB"
    expect 0 "$FLOPCAST" calibrate check log.txt --topology "$h100"
    says out "$kind, 16 ranks on 2 nodes" "median error over 3 sizes of 1 MiB and more: 0.0 %" "median error over 2 sizes below 64 KiB: 0.0 %"
    expect 0 "$FLOPCAST" calibrate import nccl-tests log.txt --db a.db
    says out "6 rows: $kind, 16 ranks on 2 nodes"
done
# The last line is the mean of the column above it, as far as that is rounded.
awk '$1 ~ /^[0-9]+$/ { sum += $8; n++ } /^# Avg bus bandwidth/ { mean = $6 } END { exit !(n == 6 && mean - sum / n < 0.01 && sum / n - mean < 0.01) }' log.txt ||
    fail "mean: $(<log.txt)"
# A log of what was measured in place only is compared all the same.
awk '$1 ~ /^[0-9]+$/ { $6 = $7 = $8 = $9 = "N/A" } { print }' log.txt >in_place.txt
expect 0 "$FLOPCAST" calibrate check in_place.txt --topology "$h100"
says out "median error over 3 sizes of 1 MiB and more: 0.0 %" "median error over 2 sizes below 64 KiB: 0.0 %"

# A log of another GPU is no error, but it is said.
expect 0 "$FLOPCAST" calibrate check log.txt --topology "$FLOPCAST_SOURCE_DIR/topologies/clusters/a100-80gb-8x200g.yaml"
says out "the log's GPUs are H100-SXM5-80GB, the cluster's A100-SXM4-80GB: is --topology the right one?"

# With a database the comparison can be drawn, and asked.
expect 0 "$FLOPCAST" calibrate check log.txt --topology "$h100" --db check.db
[[ $(sqlite3 check.db "SELECT count(*), min(collective), max(ranks), max(abs(error)) < 1e-3 FROM v_nccl_check") == "6|send_recv|16|1" ]] || fail "stored: $(sqlite3 check.db "SELECT * FROM v_nccl_check")"

# What is forced shows in the log, is read from it, and can be said for the check alone.
expect 0 "$FLOPCAST" collective all_reduce --topology "$h100" --gpus 16 --bytes 1M --algo ring --proto simple
mv out ring.txt
expect 0 "$FLOPCAST" calibrate check ring.txt --topology "$h100" --format csv
[[ $(head -n 1 out) == $'bytes,measured_us,predicted_us,algorithm,protocol\r' ]] || fail "head $(head -n 1 out)"
says out "1048576," ",Ring,Simple"
expect 0 "$FLOPCAST" calibrate check ring.txt --topology "$h100" --algo Tree --proto LL128
says out "Tree       LL128"

# The published order: two nodes of H100 are faster than one rail, and than four (nccl#946).
busbw() { # GPUs
    "$FLOPCAST" collective all_reduce --topology "$h100" --gpus "$1" --bytes 8G | awk '$1 == 8589934592 { print int($8) }'
}
(($(busbw 16) > 400 && $(busbw 16) > $(busbw 32) && $(busbw 32) >= $(busbw 64))) || fail "busbw $(busbw 16) $(busbw 32) $(busbw 64)"

# The network counts. Rails of a full fat tree carry what pooled NICs do. 64 nodes of NICs on leaves in turn of 32: with one spine cable
# of 400 Gb/s for each leaf's 32 NICs a ring that stays on its rails crosses two leaves a rail, so one cable carries what a NIC does. To
# all, half of what 32 NICs send crosses it: 16 times too much.
rail=$FLOPCAST_SOURCE_DIR/topologies/clusters/h100-8x400g-rail.yaml
line() { # KIND TOPOLOGY [OPTION...]
    "$FLOPCAST" collective "$1" --topology "$2" --gpus 512 --bytes 1G "${@:3}" | grep '^ *1073741824'
}
for kind in all_reduce all_gather all_to_all; do
    [[ $(line "$kind" "$h100") == "$(line "$kind" "$rail")" ]] || fail "$kind differs on whole rails"
done
{
    grep -v '^node:\|^network:\|^  ' "$rail"
    echo "node: $FLOPCAST_SOURCE_DIR/topologies/nodes/dgx-h100-like.yaml"
    echo 'network: {kind: fat_tree, wiring: rail, leaf_ports: {value: 32, kind: assumed, source: t}, spines: {value: 1, kind: assumed, source: t}}'
} >narrow.yaml
awk -v whole="$(line all_to_all "$rail" | awk '{print $6}')" -v narrow="$(line all_to_all narrow.yaml | awk '{print $6}')" \
    'BEGIN { exit !(narrow > 15 * whole && narrow < 17 * whole) }' || fail "one spine: $(line all_to_all narrow.yaml)"
"$FLOPCAST" collective all_to_all --topology narrow.yaml --gpus 512 --bytes 1G >narrow.txt
expect 0 "$FLOPCAST" calibrate check narrow.txt --topology narrow.yaml
says out "of 1 MiB and more: 0.0 %"
# As do links that have lost some of theirs.
[[ $(line all_to_all "$rail") != "$(line all_to_all "$rail" --degraded-links 'leaf0.up*=25 %')" ]] || fail "a degraded leaf does not show"
# What binds, and which link it is: links that are all alike are none in particular.
grep -q '^# Bound by network, link leaf0.up0 : 1073741824 B: busbw tends to ' narrow.txt || fail "$(tail -n 3 narrow.txt)"
"$FLOPCAST" collective all_to_all --topology "$h100" --gpus 512 --bytes 1G >whole.txt
grep -q '^# Bound by NIC  *: 1073741824 B: busbw tends to ' whole.txt || fail "$(tail -n 3 whole.txt)"
# A ring of 256 H100: hops at first, then NICs as 32 channels of slower ones would use them (by a law of sim/core/coll/coll.h); NICs of 100 Gb/s bind, eight of them
# at 12.5 GB/s and the 91.8 % that NCCL reaches. Each row of a table and of CSV has it too.
expect 0 "$FLOPCAST" collective all_gather --topology "$h100" --gpus 256 --bytes 1M:4G:64
says out "# Bound by latency     : 1048576 to 67108864 B: more than half of the time is hops and steps" \
    "# Bound by NIC         : 4294967296 B: busbw tends to 356.0 GB/s"
mv out bounds.txt
expect 0 "$FLOPCAST" calibrate check bounds.txt --topology "$h100"
expect 0 "$FLOPCAST" collective all_gather --topology "${h100/400g/100g}" --gpus 256 --bytes 4G
says out "# Bound by NIC         : 4294967296 B: busbw tends to 91.8 GB/s"
expect 0 "$FLOPCAST" collective all_gather --topology "$h100" --gpus 256 --bytes 1M:4G:64 --format table
[[ $(awk 'NR > 2 { print $NF }' out | xargs) == "latency latency NIC" ]] || fail "bound by: $(<out)"
expect 0 "$FLOPCAST" collective all_gather --topology "$h100" --gpus 256 --bytes 1M:4G:64 --format csv
[[ $(tr -d '\r' <out | cut -d, -f7,8 | xargs) == "bound_by,link latency, latency, NIC," ]] || fail "bound by: $(<out)"
# NICs twice as fast: behind PCIe 5, and with channels as before, nothing is gained, and it is said what binds.
cluster() { # NODE_LINE...: h100's, its node with these lines instead
    local node=$FLOPCAST_SOURCE_DIR/topologies/nodes/dgx-h100-like.yaml line
    for line in "$@"; do
        printf '%s\n' "$line" >>lines
    done
    { grep -v "^\($(printf '%s\n' "$@" | sed 's/:.*//' | paste -sd '|' | sed 's/|/\\|/g')\|gpu\):" "$node"; cat lines; echo "gpu: $FLOPCAST_SOURCE_DIR/topologies/gpus/h100-sxm5-80gb.yaml"; } >node.yaml
    { grep -v '^node:' "$h100"; echo "node: $PWD/node.yaml"; } >cluster.yaml
    rm lines
}
cluster 'nic_bandwidth: {value: 800 Gb/s, kind: assumed, source: test}'
expect 0 "$FLOPCAST" collective all_gather --topology cluster.yaml --gpus 256 --bytes 4G
says out "# Bound by NIC         : 4294967296 B: busbw tends to 356.0 GB/s"
expect 0 "$FLOPCAST" topology cluster.yaml
says out "NCCL lays 16 channels: its search finds 8 of 48 GB/s, doubled (to it a NIC is 48 GB/s by its PCIe slot, a GPU's links in the node 370.8 GB/s)" \
    "NCCL's channels carry 353.6 GB/s of the 800 GB/s of a node's NICs" "PCIe carries 443.2 GB/s of the 800 GB/s of a node's NICs"
expect 2 "$FLOPCAST" collective all_reduce --topology "$rail" --gpus 16 --bytes 1M --degraded-links 'leaf0.pu0=25 %'
says err "--degraded-links: error: no link is called 'leaf0.pu0'"

expect 2 "$FLOPCAST" collective all_gather --topology "$h100" --gpus 16 --bytes 8:8G --algo tree
says err "--algo: error: all_gather of 16 GPUs of this cluster cannot be done as Tree; the nearest is "
expect 2 "$FLOPCAST" collective all_reduce --topology "$h100" --gpus 16 --bytes 8 --algo NVLSTree --proto LL
says err "--algo, --proto: error:" "cannot be done as NVLSTree with LL; the nearest is NVLSTree with Simple"
[[ ! -s out ]] || fail "something was printed"
# CollNet is for switches that add.
expect 2 "$FLOPCAST" collective all_reduce --topology "$h100" --gpus 16 --bytes 8:8G --algo CollNetDirect
says err "CollNet needs switches that reduce: nccl_collnet_efficiency of the cluster"
expect 0 "$FLOPCAST" collective all_reduce --topology "$FLOPCAST_SOURCE_DIR/topologies/clusters/abci-a-sharp.yaml" --gpus 16 --bytes 1M:8G --algo CollNetChain
says out "# NCCL_ALGO=CollNetChain"
# Names of nccl-tests and its programs, and sizes as it takes them: M, MB and MiB are powers of 1024.
expect 0 "$FLOPCAST" collective all_to_all --topology "$h100" --gpus 64 --bytes 1M:1G
cp out ours.txt
[[ $(grep -c "^#  Rank" out) == 0 && $(head -n 8 out | grep -c "^# n_gpus: 64") == 1 ]] || fail "64 ranks are listed: $(<out)"
for name in alltoall all_to_all_perf alltoall_perf; do
    expect 0 "$FLOPCAST" collective $name --topology "$h100" --gpus 64 --bytes 1MB:1GiB
    cmp out ours.txt || fail "$name is not all_to_all"
done
for name in allreduce all_reduce_perf allgather reducescatter reduce_scatter_perf sendrecv_perf; do
    expect 0 "$FLOPCAST" collective $name --topology "$h100" --gpus 16 --bytes 1m
done
expect 2 "$FLOPCAST" collective all_reduces --topology "$h100" --gpus 16 --bytes 1M
says err "'all_reduces' is no collective; there are: all_reduce"
expect 2 "$FLOPCAST" collective all_reduce --topology "$h100" --gpus 16 --bytes 1MX
# As many ranks on each of the nodes that are asked for, as few nodes as hold them otherwise.
expect 0 "$FLOPCAST" collective all_reduce --topology "$h100" --gpus 4 --nodes 2 --bytes 1M
says out "#  Rank  3 Group  0 Pid      4 on  node-0001 device  4"
mv out log2.txt
expect 0 "$FLOPCAST" calibrate check log2.txt --topology "$h100"
says out "all_reduce, 4 ranks on 2 nodes" "median error over 1 size of 1 MiB and more: 0.0 %"
expect 0 "$FLOPCAST" collective all_reduce --topology "$h100" --gpus 12 --bytes 1M
says out "#  Rank 11 Group  0 Pid     12 on  node-0001 device  5"
expect 2 "$FLOPCAST" collective all_reduce --topology "$h100" --gpus 16 --nodes 3 --bytes 8
says err "--gpus, --nodes: error: 16 ranks on 3 nodes of 8 GPUs are not as many on each" "a multiple of the nodes up to 8 times their number"
expect 2 "$FLOPCAST" collective all_reduce --topology "$h100" --gpus 20000 --bytes 8
says err "but the cluster has 2048 of 8 GPUs"
expect 2 "$FLOPCAST" collective all_reduce --topology "$h100" --gpus 1 --bytes 8
says err "a collective takes two"
expect 2 "$FLOPCAST" collective all_reduce --topology absent.yaml --gpus 8 --bytes 8
for wrong in 0 8:4 8:8G:1 8x 8:8G:2:3 nan 1:1T:1.0001; do
    expect 2 "$FLOPCAST" collective all_reduce --topology "$h100" --gpus 8 --bytes "$wrong"
    says err "MIN[:MAX[:FACTOR]] is wanted"
done
expect 2 "$FLOPCAST" collective gossip --topology "$h100" --gpus 8 --bytes 8
expect 2 "$FLOPCAST" collective all_reduce --topology "$h100" --gpus 8 --bytes 8 --algo Tre
says err "there is no such; did you mean 'Tree'?"
expect 2 "$FLOPCAST" collective all_reduce --topology "$h100" --gpus 8 --bytes 8 --algo Sharp
says err "CollNetDirect, CollNetChain, PAT"
expect 2 "$FLOPCAST" collective all_reduce all_gather --topology "$h100" --gpus 8 --bytes 8
says err "one collective at a time; 'all_gather' is a second one"
expect 2 "$FLOPCAST" collective all_reduce
expect 2 "$FLOPCAST" calibrate check log.txt
expect 2 "$FLOPCAST" calibrate check absent.txt --topology "$h100"
expect 2 "$FLOPCAST" calibrate check log.txt --topology "$h100" --nodes 3
says err "--nodes, --ranks: error: 16 ranks on 3 nodes of 8 GPUs are not as many on each"

# Of a thousand GPUs the log says how many there are instead of listing them, and is read all the same; a table says what NCCL takes.
expect 0 "$FLOPCAST" collective all_reduce --topology "$h100" --gpus 1024 --bytes 1K:1G:1024
[[ $(wc -l <out) -lt 20 ]] || fail "$(wc -l <out) lines of a log of 3 sizes"
mv out large.txt
expect 0 "$FLOPCAST" calibrate check large.txt --topology "$h100"
says out "all_reduce, 1024 ranks on 128 nodes" "busbw, GB/s" "median error over 2 sizes of 1 MiB and more: 0.0 %"
expect 0 "$FLOPCAST" collective all_reduce --topology "$h100" --gpus 16 --bytes 256K --format table
says out "algorithm" "busbw" "Tree       LL128"
expect 0 "$FLOPCAST" collective all_reduce --topology "$h100" --gpus 16 --bytes 256K --format csv
says out "bytes,time_us,algbw_GBps,busbw_GBps,algorithm,protocol,bound_by,link" "262144," ",Tree,LL128,latency,"
expect 2 "$FLOPCAST" collective all_reduce --topology "$h100" --gpus 16 --bytes 1M --format xml

# Far off, on the right GPUs: which numbers of the files decide.
awk '$1 ~ /^[0-9]+$/ { $6 *= 2; $7 /= 2; $8 /= 2; $10 *= 2; $11 /= 2; $12 /= 2 } { print }' large.txt >slow.txt
expect 0 "$FLOPCAST" calibrate check slow.txt --topology "$h100"
says out "median error over 2 sizes of 1 MiB and more: 50.0 %" "calibrate fit nccl LOG... --topology FILE --out MINE.yaml"

# Two of four A100 in a mesh of NVLinks have a third of a GPU's links, 80 of 240 GB/s: about 72 measured (nccl-tests#331), as an all_to_all of two.
perlmutter() { "$FLOPCAST" collective "$1" --topology perlmutter-a100 --gpus 2 --bytes 1G --format csv | tail -n 1 | cut -d, -f4; }
awk -v pair="$(perlmutter send_recv)" -v two="$(perlmutter all_to_all)" 'BEGIN { exit !(pair > 60 && pair < 80 && pair < 1.05 * two && two < 1.05 * pair) }' ||
    fail "a pair of a mesh: $(perlmutter send_recv) GB/s, all_to_all $(perlmutter all_to_all)"

# Groups of a mesh, all at once. Those that share no link are as fast as one alone: 8 neighbours on one node. Eight groups of one
# GPU a node share the node's one NIC: each has an eighth of the busbw that one alone has, at 1 GiB, where latency is below 1 %.
busbw() { # arguments of flopcast collective all_reduce
    "$FLOPCAST" collective all_reduce --bytes 1G --format csv "$@" | tail -n 1 | cut -d, -f4
}
[[ $(busbw --topology "$h100" --mesh tp=8,dp=4 --group tp) == "$(busbw --topology "$h100" --gpus 8)" ]] || fail "groups of a node"
one_nic=topologies/clusters/rtx-3090-1x100g.yaml
alone=$(busbw --topology $one_nic --gpus 4 --nodes 4)
eight=$(busbw --topology $one_nic --mesh tp=8,dp=4 --group dp)
awk -v alone="$alone" -v eight="$eight" 'BEGIN { exit !(alone > 1 && eight > 0.99 * alone / 8 && eight < 1.01 * alone / 8) }' ||
    fail "alone $alone GB/s, eight at once $eight each"
expect 0 "$FLOPCAST" collective all_gather --topology "$h100" --mesh tp=4,cp=2,dp=2 --group tp --bytes 1M
says out "#  Rank  0 Group  1 Pid      5 on  node-0000 device  4" "# 4 groups of 4 GPUs, 1 apart, all at the same time"
refuse_mesh() { # message, arguments
    local message=$1
    shift
    expect 2 "$FLOPCAST" collective all_reduce --topology "$h100" --bytes 1M "$@"
    says err "$message"
}
refuse_mesh "--mesh tp=2,dq=8: axes and their sizes are wanted" --mesh tp=2,dq=8 --group dp
refuse_mesh "--mesh tp=2,tp=8: axes and their sizes are wanted" --mesh tp=2,tp=8 --group tp
refuse_mesh "belong together" --mesh tp=2,dp=8
refuse_mesh "--group x: axes of --mesh are wanted" --mesh tp=2,dp=8 --group x
refuse_mesh "do not lie side by side" --mesh tp=2,cp=2,dp=4 --group tp+dp
refuse_mesh "--group pp: has one rank in --mesh" --mesh tp=2,dp=8 --group pp
refuse_mesh "leave --gpus" --mesh tp=2,dp=8 --group dp --gpus 16
refuse_mesh "groups of 8 GPUs, 3 apart, in nodes of 8" --mesh tp=3,dp=8 --group dp
