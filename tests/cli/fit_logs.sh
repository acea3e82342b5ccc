#!/usr/bin/env bash
# `flopcast calibrate fit nccl LOG... --topology FILE`: a cluster's numbers from its own logs, into files, a database and figures.
set -euo pipefail
# shellcheck source=/dev/null
. "$FLOPCAST_SOURCE_DIR/tests/cli/lib.bash"
fit() { "$FLOPCAST" calibrate fit nccl "$@"; }

# A cluster that is slower than its file says, and logs as nccl-tests would print them there.
clusters=$FLOPCAST_SOURCE_DIR/topologies/clusters nodes=$FLOPCAST_SOURCE_DIR/topologies/nodes
sed -e 's/^nccl_efficiency: {value: [0-9.]*/nccl_efficiency: {value: 0.7/' "$nodes/dgx-a100-80gb-like.yaml" >slow-node.yaml
sed -e 's/^nccl_efficiency: {value: [0-9.]*/nccl_efficiency: {value: 0.8/' -e 's/^node:.*/node: slow-node.yaml/' "$clusters/a100-80gb-8x200g.yaml" >slow.yaml
sed -i 's,^gpu: .*,gpu: topologies/gpus/a100-sxm4-80gb.yaml,' slow-node.yaml
"$FLOPCAST" collective all_reduce --topology slow.yaml --gpus 8 --bytes 1K:8G >one.txt
"$FLOPCAST" collective all_gather --topology slow.yaml --gpus 32 --bytes 1K:8G >four.txt

expect 0 fit one.txt four.txt --topology topologies/clusters/a100-80gb-8x200g.yaml --out mine.yaml --db a.db
says out "one.txt: all_reduce, 8 ranks on 1 node" "four.txt: all_gather, 32 ranks on 4 nodes" "cluster  nccl_ring_post_latency"
narrow "$FLOPCAST" calibrate fit nccl one.txt four.txt --topology topologies/clusters/a100-80gb-8x200g.yaml
says out "as filed, because these logs do not determine them"
value() { sed -n "s/^nccl_efficiency: {value: \([0-9.]*\), kind: fitted, std_error.*fit nccl. on one.txt and 1 more: $2\"}\$/\1/p" "$1"; }
awk -v node="$(value mine-node.yaml node)" -v cluster="$(value mine.yaml cluster)" \
    'BEGIN { exit !(node > 0.69 && node < 0.71 && cluster > 0.79 && cluster < 0.81) }' || fail "$(cat out)"
# Nothing else of the files changed, comments neither; of the cluster's file also the path of the node.
[[ $(diff mine.yaml "$clusters/a100-80gb-8x200g.yaml" | grep -c '^<') == "$(grep -c '^ *cluster ' out | awk '{ print $1 + 1 }')" ]] || fail "mine.yaml"
[[ $(diff mine-node.yaml "$nodes/dgx-a100-80gb-like.yaml" | grep -c '^<') == "$(grep -c '^ *node ' out | awk '{ print $1 + 1 }')" ]] || fail "mine-node.yaml"
expect 0 "$FLOPCAST" calibrate check four.txt --topology mine.yaml
awk '/of 1 MiB and more/ { seen = $NF == "%" && $(NF - 1) < 1 } END { exit !seen }' out || fail "$(tail -n 3 out)"
expect 0 "$FLOPCAST" calibrate show --db a.db
says out "nccl_efficiency" "all_gather, 4 x 8  a100-80gb-8x200g"
expect 0 "$FLOPCAST" plot busbw --db a.db --out busbw.svg
says busbw.svg "all_gather, 4 x 8"

# A network at a quarter of what the file says has a warning. (At 0.2 the fit stops at a kink, reports that the number is not determined, and leaves it as filed.)
sed 's/^nccl_efficiency: {value: [0-9.]*/nccl_efficiency: {value: 0.25/' slow.yaml >slower.yaml
"$FLOPCAST" collective all_gather --topology slower.yaml --gpus 32 --bytes 1K:8G >slower.txt
expect 0 fit one.txt slower.txt --topology topologies/clusters/a100-80gb-8x200g.yaml
grep -q '^ *cluster *nccl_efficiency .* 0\.25 .*far from the file' out || fail "$(<out)"

# check says what is wrong before it says how to come nearer; a network that is as its file says agrees.
expect 0 "$FLOPCAST" calibrate check slower.txt --topology topologies/clusters/a100-80gb-8x200g.yaml
says out "calibrate fit nccl LOG... --topology FILE --out" "GPUDirect" "NCCL_IB_HCA"
sed -n 3p out | grep -qE '^reaches [23][0-9] % of the busbw that is predicted' || fail "no verdict first: $(<out)"
expect 0 "$FLOPCAST" calibrate check slower.txt --topology slower.yaml
sed -n 3p out | grep -q '^agrees: median error 0.0 % at sizes' || fail "no verdict first: $(<out)"

# What is forced and cannot be is said, as `collective` says it.
expect 0 "$FLOPCAST" calibrate check slower.txt --topology slower.yaml --algo NVLSTree
says err "--algo, --proto: warning: 24 of 24 sizes cannot be done so, and are predicted as the nearest, Ring with Simple at the last"
expect 0 "$FLOPCAST" calibrate check slower.txt --topology slower.yaml --algo Ring
[[ ! -s err ]] || fail "$(<err)"

# A healthy network with NVLS off: two nodes reach 382 GB/s as a Ring, where NVLSTree reaches more. That is said, and does not become a
# network that is half as fast for all algorithms.
ring=$FLOPCAST_SOURCE_DIR/tests/import/data/all_reduce_ring_2x8.txt
expect 0 "$FLOPCAST" calibrate check "$ring" --topology h100-8x400g
tr '\n' ' ' <out >line
says line "agrees as Ring within" "Is NVLSTree off (NCCL_NVLS_ENABLE=0, NCCL_ALGO)?"
expect 0 fit "$ring" --topology h100-8x400g --out healthy.yaml
says err "agrees as Ring within" "fitted as Ring" "logs of two nodes only"
busbw() { "$FLOPCAST" collective all_reduce --gpus 64 --bytes 1G --topology "$1" --format csv | tail -n 1 | cut -d, -f4; }
awk -v before="$(busbw h100-8x400g)" -v now="$(busbw healthy.yaml)" 'BEGIN { exit !(now > 0.95 * before && now < 1.15 * before) }' ||
    fail "64 GPUs reach $(busbw healthy.yaml) GB/s, $(busbw h100-8x400g) by the file"
# Rows that stand twice are no second observation: the errors stay.
sed -n 's/.* +- //p' out >once
awk '{ print } $1 ~ /^[0-9]+$/ { print }' "$ring" >twice.txt
expect 0 fit twice.txt --topology h100-8x400g
sed -n 's/.* +- //p' out | paste -d' ' once - | awk '{ n++ } $1 > 1.1 * $3 || $3 > 1.1 * $1 { exit 1 } END { exit n < 1 }' || fail "errors: $(<out)"
# At 38 % no algorithm explains it: what to look at, and a warning beside the fit.
awk '$1 ~ /^[0-9]+$/ { $6 *= 2.6; $7 /= 2.6; $8 /= 2.6 } { print }' "$ring" >sick.txt
expect 0 "$FLOPCAST" calibrate check sick.txt --topology h100-8x400g
tr '\n' ' ' <out >line
says line "reaches 33 % of the busbw that is predicted of sizes of 1 MiB and more: the network is slow; look at GPUDirect RDMA"
expect 0 fit sick.txt --topology h100-8x400g
says err "nccl_efficiency of the cluster becomes 0." "healthy networks reach 0.9 and more"
# 16 H100 at half the busbw of NVLSTree (nccl#2409), where a hierarchical all_reduce would take as long: NCCL has none, so the network is slow.
{
    echo '#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong'
    echo '  1073741824     268435456     float     sum      -1  9299.0  115.47  216.50      0  9299.0  115.47  216.50      0'
    echo '  8589934592    2147483648     float     sum      -1 69724.0  123.20  231.00      0 69724.0  123.20  231.00      0'
} >half.txt
half=(half.txt --topology h100-8x400g --collective all_reduce --ranks 16 --nodes 2)
expect 0 "$FLOPCAST" calibrate check "${half[@]}"
says out "reaches 50 % of the busbw that is predicted of sizes of 1 MiB and more: the network is slow; look at GPUDirect RDMA"
if grep -q "agrees as\|Hierarchical" out; then fail "$(<out)"; fi
expect 0 fit "${half[@]}"
if grep -q "agrees as\|fitted as" out err; then fail "$(<out) $(<err)"; fi
# More than links carry is no matter of channels; more GPUs than any table that is fitted says nothing of the network.
sed 's/9299.0  115.47  216.50/1299.0  826.59  1549.86/g; s/69724.0  123.20  231.00/9724.0  883.37  1656.32/g' half.txt >much.txt
expect 0 "$FLOPCAST" calibrate check much.txt "${half[@]:1}"
tr '\n' ' ' <out >line
says line "No number of channels gives that: are these 2 nodes, and is the topology the right one?"
{
    head -n 1 half.txt
    printf '  %s %s float sum -1 %s %s %s 0 %s %s %s 0\n' 4294967296 1073741824 24782 173.31 346.38 24782 173.31 346.38
    printf '  %s %s float sum -1 %s %s %s 0 %s %s %s 0\n' 17179869184 4294967296 84625 203.01 405.74 84625 203.01 405.74
} >racks.txt
expect 0 "$FLOPCAST" calibrate check racks.txt --topology gb200-nvl72 --collective all_reduce --ranks 1440 --nodes 20
tr '\n' ' ' <out >line
says line "which says nothing of the network: no fit rests on a table of more than 1024 GPUs"
# GPUs of another model are reported; so is a file that cannot be written, and no half of it is left.
sed '1i# gpu: H100' one.txt >other.txt
expect 0 fit other.txt --topology topologies/clusters/a100-80gb-8x200g.yaml
says err "other.txt: warning: the log's GPUs are H100, the cluster's A100-SXM4-80GB: is --topology the right one?"
# Wrong results are not fitted to, nor compared; that there were some is reported.
awk '$1 == 1024 { $9 = 3 } { print }' one.txt >wrong.txt
expect 0 fit wrong.txt --topology slow.yaml
says err "wrong.txt: warning: 1 row with wrong results left out"
expect 0 "$FLOPCAST" calibrate check wrong.txt --topology slow.yaml
says err "wrong.txt: warning: 1 row with wrong results left out"
expect 1 fit one.txt --topology slow.yaml --out none/mine.yaml
says err "none/mine.yaml: error: cannot write"

expect 2 fit one.txt
says err "--topology FILE go together"
expect 2 fit --topology slow.yaml
expect 2 fit --out a.yaml
says err "--out is for"
expect 2 fit none.txt --topology slow.yaml
says err "none.txt"
expect 2 fit one.txt --topology none.yaml
says err "none.yaml:1:1: error: cannot open"
expect 2 fit one.txt --topology slow.yaml --correlations
says err "--correlations is for"
expect 2 fit --nodes 2
says err "--nodes are for: calibrate fit nccl LOG..."
# What a log does not say is asked for, and can be said.
sed '1d' one.txt >bare.txt
expect 2 fit bare.txt --topology slow.yaml
says err "bare.txt:" "say it with --collective"
expect 0 fit bare.txt --topology slow.yaml --collective all_reduce --ranks 8
says out "bare.txt: all_reduce, 8 ranks on 1 node"

# Trays of a rack are no nodes of its cluster.
"$FLOPCAST" collective all_reduce --topology topologies/clusters/gb200-nvl72.yaml --gpus 72 --bytes 1K:8G >rack.txt
sed 's,^# n_nodes: 1$,# n_nodes: 18,' rack.txt >trays.txt
expect 0 "$FLOPCAST" calibrate check trays.txt --topology topologies/clusters/gb200-nvl72.yaml
says out "all_reduce, 72 ranks on 1 node (the log's 18 are hosts)" "agrees: median error 0.0 %"
[[ ! -s err ]] || fail "$(<err)"
expect 0 fit trays.txt --topology topologies/clusters/gb200-nvl72.yaml
says out "trays.txt: all_reduce, 72 ranks on 1 node"

# Of a healthy log small, middle and large sizes are judged apart, and no hardware is suspected where the large ones are as predicted.
h100=topologies/clusters/h100-8x400g.yaml
"$FLOPCAST" collective all_reduce --topology $h100 --gpus 64 --bytes 1K:8G >as_filed.txt
changed() { awk -v f="$1" '$1 ~ /^[0-9]+$/ { b = $1; x = 1; '"$2"'; $6 = $10 = $6 * x; $7 = $11 = $7 / x; $8 = $12 = $8 / x } { print }' as_filed.txt >changed.txt; }
verdict() {
    expect 0 "$FLOPCAST" calibrate check "$@"
    sed -n '3,/^$/p' out | tr '\n' ' ' >verdict
}
changed 1 'if (b >= 2^20 && b < 2^29) x = 1.5'
verdict changed.txt --topology $h100
says verdict "the largest sizes meet the prediction (100 % of its busbw): the links are whole." "reaches 67 %: latency"
! grep -qE 'GPUDirect|NICs' verdict || fail "$(<verdict)"
# With 24 channels instead of NCCL's 16; and the prediction can be given them, too.
"$FLOPCAST" collective all_reduce --topology $h100 --gpus 64 --bytes 1M:8G --set cluster.nccl_channels=24 --algo Ring |
    sed '/NCCL_ALGO/d' | awk '$1 ~ /^[0-9]+$/ && $1 < 2^29 { $6 *= 2; $7 /= 2; $8 /= 2; $10 = $6; $11 = $7; $12 = $8 } { print }' >many.txt
verdict many.txt --topology $h100
says verdict "above the prediction from" "More channels than 16 (NCCL_MIN_CTAS"
! grep -qE 'GPUDirect|NICs' verdict || fail "$(<verdict)"
verdict many.txt --topology $h100 --set cluster.nccl_channels=24
! grep -q 'More channels' verdict || fail "$(<verdict)"
expect 2 "$FLOPCAST" calibrate check many.txt --topology $h100 --set cluster.nccl_chanels=24
says err "nccl_chanels"
# So do lines of NCCL's own, in the log or beside it; what contradicts the file is said. --set has the last word.
sed '1i# env: NCCL_MIN_CTAS=24 NCCL_ALGO=Ring' many.txt >said.txt
verdict said.txt --topology $h100
says out "predicted with what NCCL says: 24 channels instead of 16"
grep -q '8589934592 .* 0\.0 .*Ring' out || fail "$(<out)"
cat >debug.txt <<'LINES'
NCCL version 2.20.5+cuda12.4
n:1:9 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE [1]mlx5_1:1/RoCE [RO]; OOB eth0:10.0.0.1<0>
n:1:9 [0] NCCL INFO Channel 00/0 : 7[7] -> 8[0] [send] via NET/IB/0
n:1:9 [0] NCCL INFO 24 coll channels, 0 nvls channels, 32 p2p channels, 2 p2p channels per peer
LINES
verdict many.txt --topology $h100 --nccl-debug debug.txt
says out "predicted with what NCCL says: NCCL 2.20 instead of 2.27, NVLS off, 24 channels"
says err "debug.txt: warning: NCCL has no GPUDirect RDMA" "NCCL uses 2 NICs of a host, the cluster file has 8; try --set cluster.node.nics=2"
verdict many.txt --topology $h100 --nccl-debug debug.txt --set cluster.nccl_channels=16
says verdict "predicted with what NCCL says"
expect 2 "$FLOPCAST" calibrate check many.txt --topology $h100 --nccl-debug as_filed.csv
: >empty.txt
expect 2 "$FLOPCAST" calibrate check many.txt --topology $h100 --nccl-debug empty.txt
says err "empty.txt: error: no line of NCCL's in it"
# The fit of such a log does not explain the channels by others: the files' numbers stay as they are.
"$FLOPCAST" collective all_reduce --topology $h100 --gpus 64 --bytes 1K:8G --set cluster.nccl_channels=24 --algo Ring >ring24.txt
sed '1i# env: NCCL_MIN_CTAS=24' ring24.txt >said24.txt
expect 0 fit said24.txt --topology $h100
says out "of 1 MiB and more: 0.0 % by the files"
expect 0 fit ring24.txt --topology $h100
! grep -q 'of 1 MiB and more: 0.0 % by the files' out || fail "$(<out)"
# Slow at all sizes is the network; at a fiftieth TCP. A log may come by a pipe.
changed 1 'x = 2'
verdict - --topology $h100 <changed.txt
says verdict "the network is slow; look at GPUDirect RDMA"
changed 1 'x = 40'
verdict changed.txt --topology $h100
says verdict "looks like sockets (TCP): NET/Socket in NCCL_DEBUG=INFO?"
# One process for all GPUs adds a constant to small sizes.
"$FLOPCAST" collective all_reduce --topology $h100 --gpus 8 --bytes 1K:8G |
    awk '$1 ~ /^[0-9]+$/ { t = $6; $6 = $10 = t < 87 ? 87 : t; k = t / $6; $7 = $11 = $7 * k; $8 = $12 = $8 * k } { print }' >one_process.txt
verdict one_process.txt --topology $h100
says verdict "one process for all GPUs of a node"

# A GPU's file with what flopcast_measure timed: a tiny kernel of 3 us.
cat >fit.csv <<'CSV'
category,kernel,dtype,bytes,flop,time_us_median,time_us_min,time_us_max,sm_clock_MHz,gpu,driver,cuda,date,version,kind
launch,"empty kernels one after the other, GPU and host",,,,3,3,3,,H100,550.1,12.4,2026-01-31,0.1.0,measured
CSV
expect 0 "$FLOPCAST" calibrate fit measure fit.csv --gpu topologies/gpus/h100-sxm5-80gb.yaml --out h100.yaml
diff h100.yaml "$FLOPCAST_SOURCE_DIR/topologies/gpus/h100-sxm5-80gb.yaml" >diff.txt || true
[[ $(grep -c '^[<>]' diff.txt) == 2 ]] || fail "$(cat diff.txt)"
says diff.txt "< kernel_floor: {value: 3 us, kind: measured, source:" "timed on H100, driver 550.1, CUDA 12.4, on 2026-01-31"
expect 0 "$FLOPCAST" topology h100.yaml
