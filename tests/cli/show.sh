#!/usr/bin/env bash
# `flopcast model`, `topology` and `calibrate fit`: what they print is what the files say.
set -euo pipefail
# shellcheck source=/dev/null
. "$FLOPCAST_SOURCE_DIR/tests/cli/lib.bash"
expect 0 "$FLOPCAST" model "$FLOPCAST_SOURCE_DIR/scenarios/models/t5-11b.yaml"
says out "11,307,321,344"
# GPT-2: 12 blocks of 12 d^2 + 13 d parameters; 24 d^2 + 4 s d flop of a block and 2 d v of the head for each of s tokens.
expect 0 "$FLOPCAST" model "$FLOPCAST_SOURCE_DIR/scenarios/models/gpt2.yaml"
says out "124,439,808" "forward     0.2848 GFLOP a token at length 1024" "    12  transformer.h.0                12          7,087,872          85,054,464"
topologies=$FLOPCAST_SOURCE_DIR/topologies
expect 0 "$FLOPCAST" topology "$topologies/clusters/dgx-1v-ib.yaml"
says out "cluster DGX-1V" "node DGX-1V" "gpu V100"
expect 0 "$FLOPCAST" topology "$topologies/nodes/dgx-1v-like.yaml"
says out "node DGX-1V" "gpu V100"
# What is chosen from a list decides as much as a number.
says out "fabric                      nvlink_mesh"
expect 0 "$FLOPCAST" topology "$topologies/clusters/gcp-a3-high.yaml"
says out "nccl_protocols              simple"
expect 0 "$FLOPCAST" topology "$topologies/gpus/v100-sxm2-32gb.yaml"
says out "gpu V100" "datasheet"
expect 2 "$FLOPCAST" topology "$FLOPCAST_SOURCE_DIR/scenarios/models/gpt2.yaml"
expect 2 "$FLOPCAST" model absent.yaml
says err "absent.yaml:1:1: error: cannot open"
expect 0 "$FLOPCAST" calibrate fit
says out "in the file" "fitted"

# A network by what decides: choices, and what the counts come to; bits written as bytes are asked about.
rail=$topologies/clusters/h100-8x400g-rail.yaml
expect 0 "$FLOPCAST" topology "$rail"
says out "network.wiring              rail" "a leaf has 32 NICs and 32 cables up: 1 : 1 (full bisection)"
sed -e 's#\.\./nodes/#topologies/nodes/#' -e 's/spines: {value: 16/spines: {value: 8/' "$rail" >tapered.yaml
expect 0 "$FLOPCAST" topology tapered.yaml
says out "a leaf has 32 NICs and 16 cables up: 2 : 1 (oversubscribed)"
# A third level and a dragonfly say each of theirs; 4 cores x 8 spines: 32 cables for the 8 x 16 of a pod's leaves. 16 channels x 20 GB/s
# are NCCL's, 8 x 50 GB/s the node's.
number() { echo "$1: {value: $2, kind: assumed, source: t}"; }
{ cat tapered.yaml && printf '  %s\n' "$(number pod_leaves 8)" "$(number cores 4)"; } >three.yaml
expect 0 "$FLOPCAST" topology three.yaml
says out "a pod has 128 cables from its leaves and 32 to cores: 4 : 1 (oversubscribed)" \
    "NCCL's channels carry 353.6 GB/s of the 400 GB/s of a node's NICs"
{
    sed '/^network:/,$d' tapered.yaml
    echo "network: {kind: dragonfly, $(number leaf_ports 16), $(number pod_leaves 16), $(number global_cables 8)}"
} >dragonfly.yaml
expect 0 "$FLOPCAST" topology dragonfly.yaml
says out "a router has 16 NICs and 15 cables in its group: 1.07 : 1" "a group has 256 NICs and 128 cables to others: 2 : 1 (oversubscribed)"
expect 0 "$FLOPCAST" topology "$topologies/clusters/h100-8x400g.yaml"
if grep -q "network\." out; then fail "a network that the cluster does not have: $(grep "network\." out)"; fi
sed -e 's#\.\./gpus/#topologies/gpus/#' -e 's#400 Gb/s#400 GB/s#' "$topologies/nodes/dgx-h100-like.yaml" >bytes.yaml
sed 's#\.\./nodes/dgx-h100-like.yaml#bytes.yaml#' "$rail" >cluster.yaml
expect 0 "$FLOPCAST" topology cluster.yaml
says err "bytes.yaml:8:16: warning: a NIC of 400 GB/s is one of 3200 Gb/s; bytes have a capital B, bits a small one"

# What a network does not read is no input without effect: switches of a pool of NICs, connections that no hash sends apart.
sed 's/kind: fat_tree/kind: pooled/' tapered.yaml >pooled.yaml
expect 2 "$FLOPCAST" topology pooled.yaml
says err "network: a pooled network has no spines; take it out" "network: a pooled network has no wiring, routing or placement"
{ cat tapered.yaml && echo "  connections: {value: 3, kind: assumed, source: t}"; } >adaptive.yaml
expect 2 "$FLOPCAST" topology adaptive.yaml
says err "network: a fat_tree without routing: ecmp has no connections; take it out"
