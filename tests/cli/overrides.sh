#!/usr/bin/env bash
# Numbers of the cluster, its node and its GPU set for a run: in every command that takes --set, in a scenario's file, swept, stored.
set -euo pipefail
# shellcheck source=/dev/null
. "$FLOPCAST_SOURCE_DIR/tests/cli/lib.bash"
scenario a.yaml
scenario slow.yaml 'sweep: [{cluster.node.nic_bandwidth: [1 Gb/s, 100 Gb/s]}, {cluster.gpus: [8, 16]}]'

column() { # column NAME: of the CSV in out
    tr -d '\r' <out | awk -F, -v name="$1" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) at = i } NR > 1 { print $at }'
}

# One node has no use for NICs; between two a hundredth of their rate is a longer step; 100 Gb/s are what the node's file says.
expect 0 "$FLOPCAST" run slow.yaml --format csv
mapfile -t steps < <(column step_time_s)
expect 0 "$FLOPCAST" run a.yaml --set cluster.gpus=16 --format csv
filed=$(column step_time_s)
[[ ${#steps[@]} == 4 && ${steps[0]} == "${steps[2]}" && ${steps[3]} == "$filed" ]] || fail "steps ${steps[*]}, by the file $filed"
awk -v slow="${steps[1]}" -v fast="${steps[3]}" 'BEGIN { exit !(slow > 2 * fast) }' || fail "steps ${steps[*]}"
# The same from the command line; a column distinguishes the points, and so do the names of curves.
expect 0 "$FLOPCAST" run a.yaml --set cluster.gpus=16 --set 'node.nic_bandwidth=[1Gb/s, 100Gb/s]' --db a.db
says out "cluster.node.nic_bandwidth" "125 MB/s" "12.5 GB/s"
[[ $(ask 'SELECT count(*), count(DISTINCT varied) FROM v_varied' | tr '\t' ' ') == "2 2" ]] || fail "v_varied: $(ask 'SELECT * FROM v_varied')"
origin=$(ask "SELECT config ->> '$.cluster.node.nic_bandwidth.origin' || ', ' || (json ->> '$.node.nic_bandwidth.source') AS seen
    FROM point JOIN document ON document.id = hardware_id ORDER BY position LIMIT 1")
[[ $origin == "--set node.nic_bandwidth:1:2, --set node.nic_bandwidth" ]] || fail "origin in the database: $origin"
expect 0 "$FLOPCAST" run a.yaml --set gpu.hbm_capacity=3GiB --format json
says out '"hbm_capacity": {"value": 3221225472, "unit": "B", "kind": "assumed", "source": "--set gpu.hbm_capacity"'
expect 0 "$FLOPCAST" run a.yaml --set gpu.hbm_capacity=0.5GiB
says out "out of memory" "has 0.5 GiB"

# whatif, tune and waterfall know them, too.
expect 0 "$FLOPCAST" whatif a.yaml --base cluster.gpus=16 --set cluster.node.nic_bandwidth=1Gb/s --format csv
awk -F, '/step_time_s/ { exit !($(NF - 2) > 2 * $(NF - 3)) }' out || fail "$(<out)"
expect 0 "$FLOPCAST" tune a.yaml --set cluster.gpus=16 --set train.micro_batch=2 --set 'cluster.node.nic_bandwidth=[1Gb/s, 100Gb/s]'
says out "cluster.node.nic_bandwidth" "12.5 GB/s"
expect 0 "$FLOPCAST" waterfall a.yaml --set cluster.node.nic_bandwidth=1Gb/s --from 8 --to 16
says out "bandwidth"

# Wrong names, units and values; what does not go with the rest of the file.
wrong() { # wrong KEY=VALUE TEXT: --set and whatif refuse it, and say TEXT
    expect 2 "$FLOPCAST" run a.yaml --set "$1"
    says err "$2"
    expect 2 "$FLOPCAST" whatif a.yaml --set "$1"
    says err "$2"
}
wrong cluster.node.nic_bandwith=1GB/s "unknown key 'nic_bandwith' in a node; did you mean 'nic_bandwidth'?"
wrong nic_bandwidth=1GB/s "unknown key 'nic_bandwidth' in a scenario; did you mean 'cluster.node.nic_bandwidth'?"
wrong cluster.node.nic_bandwidth=400 "'400' has no unit; a bandwidth needs one (examples: 450 GB/s, 200 Gb/s (bits))"
wrong gpu.hbm_capacity=96Gb "'96Gb' is not a size"
wrong gpu.hbm_capacity= "no value"
wrong gpu.memory_sms=100 "memory_sms is 100 of 80 SMs"
wrong gpu.name=B200 "'name' of a GPU cannot be set"
expect 0 "$FLOPCAST" run a.yaml --set node.nics=1 --set cluster.node.nics=2
says err "--set cluster.node.nics is given twice; the last holds: 2"
expect 0 "$FLOPCAST" run a.yaml --set cluster.node.nic_bandwidth=800GB/s
says err "warning: a NIC of 800 GB/s is one of 6400 Gb/s; bytes have a capital B, bits a small one"

expect 0 "$FLOPCAST" help settings
says out "cluster.KEY: -" "cluster.node.KEY: -" "gpu.KEY: -" "as in cluster.node.nic_bandwidth=800Gb/s: see 'flopcast help nodes'"

# Commands without a scenario.
fast() { # fast KEY=VALUE...: the last time of a large all_reduce on 16 GPUs, us
    local set=()
    for key; do set+=(--set "$key"); done
    expect 0 "$FLOPCAST" collective all_reduce --topology dgx-1v-ib --gpus 16 --bytes 1G --format csv "${set[@]}"
    tr -d '\r' <out | awk -F, 'NR == 2 { print $2 }'
}
as_is=$(fast) slow=$(fast cluster.node.nic_bandwidth=10Gb/s) same=$(fast node.nic_bandwidth=100Gb/s)
[[ $same == "$as_is" ]] || fail "with what the file says: $same, not $as_is us"
awk -v slow="$slow" -v fast="$as_is" 'BEGIN { exit !(slow > 5 * fast) }' || fail "with a tenth of the NICs $slow, else $as_is us"
expect 2 "$FLOPCAST" collective all_reduce --topology dgx-1v-ib --gpus 16 --bytes 1G --set cluster.node.nic_bandwith=1Gb/s
says err "did you mean 'nic_bandwidth'?"
expect 2 "$FLOPCAST" collective all_reduce --topology dgx-1v-ib --gpus 16 --bytes 1G --set train.seq_len=4
says err "--set train.seq_len: error: unknown key 'train' in the hardware"
expect 2 "$FLOPCAST" collective all_reduce --topology dgx-1v-ib --gpus 16 --bytes 1G --set 'node.nics=[1, 2]'
says err "'nics' is a list; a number is wanted"
expect 2 "$FLOPCAST" collective all_reduce --topology dgx-1v-ib --gpus 16 --bytes 1G --set node.nics=
says err "no value"
expect 0 "$FLOPCAST" memory 7B --gpu h100 --set gpu.hbm_capacity=120GiB
says out "H100-SXM5-80GB"
expect 2 "$FLOPCAST" memory 7B --set gpu.hbm_capacity=120GiB
says err "--set gpu.hbm_capacity is for one GPU; name it by --gpu"
expect 2 "$FLOPCAST" memory 7B --gpu 24GiB --set gpu.sms=4
says err "of a card of 24GiB only the memory is known"
expect 2 "$FLOPCAST" memory 7B --gpu h100 --set gpu.memory_sms=200
says err "--set gpu.memory_sms:1:1: error: memory_sms is 200 of 132 SMs"
batch() { # batch ARGUMENT...: the largest micro-batch of GPT-2 on one V100 without checkpointing
    expect 0 "$FLOPCAST" capacity gpt2 --seq-len 512 --dtype fp16_mixed --gpus 1 "$@"
    awk '$1 == "1" { print $2 + 0; exit }' out
}
full=$(batch --gpu v100) half=$(batch --gpu v100 --set gpu.hbm_capacity=16GiB) cluster=$(batch --topology dgx-1v-ib --set gpu.hbm_capacity=16GiB)
[[ $half -gt 0 && $half -lt $full && $half == "$cluster" ]] || fail "fit: $full with 32 GB, $half and $cluster with half of it"
# A policy that NCCL's version does not have.
expect 2 "$FLOPCAST" collective all_gather --topology h100-8x400g --gpus 8 --bytes 1G --set cluster.nccl_cta_policy=zero --set cluster.nccl_version=2.27
says err "NCCL 2.27 has no zero-CTA policy; take nccl_version 2.28 or later"
expect 0 "$FLOPCAST" collective all_gather --topology h100-8x400g --gpus 8 --bytes 1G --set cluster.nccl_cta_policy=zero --set cluster.nccl_version=2.28
