#!/usr/bin/env bash
# Out of memory with more than enough in all: the text says so instead of a negative shortfall, and what it advises helps.
set -euo pipefail
# shellcheck source=/dev/null
. "$FLOPCAST_SOURCE_DIR/tests/cli/lib.bash"
hw=$FLOPCAST_SOURCE_DIR/topologies
# gpt2 with 4 sequences takes 10.4 GiB at its fullest; PyTorch's segments keep more than 0.4 GiB of a card of 10.8 apart.
sed 's#^hbm_capacity: {value: [^,]*#hbm_capacity: {value: 10.8 GiB#' "$hw/gpus/v100-sxm2-32gb.yaml" >gpu.yaml
sed 's#^gpu: .*#gpu: gpu.yaml#' "$hw/nodes/dgx-1v-like.yaml" >node.yaml
sed 's#^node: .*#node: node.yaml#' "$hw/clusters/dgx-1v-ib.yaml" >cluster.yaml
small=(run "$FLOPCAST_SOURCE_DIR/scenarios/gpt2_ddp_v100.yaml" --set cluster.topology=cluster.yaml --set cluster.gpus=8 --set train.micro_batch=4)
expect 0 "$FLOPCAST" "${small[@]}"
says out "OOM" "needs 10.4 GiB, has 10.8 GiB: what is free lies in gaps between tensors" "run.expandable_segments: true"
expect 0 "$FLOPCAST" "${small[@]}" --set run.expandable_segments=true
! grep -q OOM out || fail "expandable segments do not help: $(<out)"
