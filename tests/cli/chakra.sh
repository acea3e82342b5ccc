#!/usr/bin/env bash
# `flopcast run --chakra` and `flopcast replay`: a decoder made by protoc from the schema reads what was written; a replayed collective is
# `flopcast collective`'s. exchange.chakra has the FLOP and bytes of T5-11B, and traces from elsewhere.
set -euo pipefail
# shellcheck source=/dev/null
. "$FLOPCAST_SOURCE_DIR/tests/cli/lib.bash"
scenario a.yaml "noise: {gpu_speed_spread: 0, kernel_jitter: 0, network_jitter: 0, host_jitter: 0}"

expect 0 "$FLOPCAST" run a.yaml --chakra traces --quiet
for rank in 0 7; do [[ -s traces/a.$rank.et ]] || fail "no trace of rank $rank"; done
[[ ! -e traces/a.8.et ]] || fail "a trace of a rank that is not there"
says traces/comm_groups.json '"1": [0, 1, 2, 3, 4, 5, 6, 7]'
says traces/network.yml "topology: [Switch]" "npus_count: [8]"
says traces/system.json '"all-reduce-implementation": ["ring"]' '"peak-perf": 125'
says traces/memory.json NO_MEMORY_EXPANSION

# A decoder that owes nothing to the program, where protoc and Python's protobuf are installed.
python=/usr/bin/python3
if command -v protoc >/dev/null && $python -c 'import google.protobuf' 2>/dev/null; then
    protoc --proto_path="$FLOPCAST_SOURCE_DIR/sim/interop/exchange" --python_out=. et_def.proto
    cat >decode.py <<'PY'
import sys
import et_def_pb2 as et
from google.protobuf.internal.decoder import _DecodeVarint32 as varint

data, at, nodes = open(sys.argv[1], "rb").read(), 0, []
while at < len(data):
    length, at = varint(data, at)
    message = et.Node() if "head" in globals() else et.GlobalMetadata()
    message.ParseFromString(data[at : at + length])
    at += length
    if isinstance(message, et.GlobalMetadata):
        head = message
    else:
        nodes.append(message)
assert head.version == "1.0.0"
ids = set()
kinds = {}
for node in nodes:
    attr = {a.name: (a.WhichOneof("value"), getattr(a, a.WhichOneof("value"))) for a in node.attr}
    assert node.id not in ids and all(d in ids for d in list(node.ctrl_deps) + list(node.data_deps))
    ids.add(node.id)
    kinds[node.type] = kinds.get(node.type, 0) + 1
    assert attr["is_cpu_op"] == ("bool_val", False)
    if node.type == et.COMP_NODE:
        assert attr["num_ops"][0] == "int64_val" and attr["tensor_size"][0] == "uint64_val"
    if node.type == et.COMM_COLL_NODE:
        assert attr["comm_type"] == ("int64_val", et.ALL_REDUCE) and attr["pg_name"] == ("string_val", "1")
        assert attr["comm_size"][0] == "int64_val"
print(kinds[et.COMP_NODE], kinds[et.COMM_COLL_NODE], len(nodes))
PY
    read -r computes collectives nodes < <($python decode.py traces/a.3.et)
    "$FLOPCAST" run a.yaml --plan >plan
    [[ $collectives == "$(grep -c "all_reduce .* latency " plan)" ]] || fail "$collectives collectives; the plan: $(grep -c all_reduce plan)"
    [[ $nodes == "$((computes + collectives))" && $computes -gt 100 ]] || fail "$computes of $nodes nodes compute"
fi

# The same bytes again; what is replayed is the job without its host.
expect 0 "$FLOPCAST" run a.yaml --chakra again --quiet
cmp traces/a.5.et again/a.5.et || fail "the trace is not deterministic"
expect 0 "$FLOPCAST" replay traces --topology dgx-1v-ib
says out "all_reduce" "Ring"
expect 0 "$FLOPCAST" replay traces --topology dgx-1v-ib --format csv
says out "kind,ranks,bytes,count,time_s" "step,8,"
expect 0 "$FLOPCAST" replay traces --topology dgx-1v-ib --format json --roofline
says out '"kind": "step"'
# An all_reduce in it takes what it does alone.
expect 0 "$FLOPCAST" replay traces --topology dgx-1v-ib --format csv
bytes=$(sed -n 's/^all_reduce,8,\([0-9]*\),.*/\1/p' out | head -n 1)
took=$(sed -n 's/^all_reduce,8,[0-9]*,[0-9]*,\([^,]*\),.*/\1/p' out | head -n 1)
"$FLOPCAST" collective all_reduce --topology dgx-1v-ib --gpus 8 --bytes "$bytes" --format csv >alone
alone=$(sed -n '2s/^[^,]*,\([^,]*\),.*/\1/p' alone)
awk -v a="$took" -v b="$alone" 'BEGIN { exit !(a > 0 && b > 0 && (1e6 * a - b) * (1e6 * a - b) < 1e-12 * b * b) }' || fail "$took s in the step, $alone us alone: $(<alone)"

# A pipeline with tensor parallelism: messages and several groups, of which none waits for ever.
expect 0 "$FLOPCAST" run gpt3_175b --set cluster.gpus=96 --set train.micro_batch=1 --set train.global_batch=4 --chakra pipeline --quiet
expect 0 "$FLOPCAST" replay pipeline --topology a100-80gb-8x200g
# The bubble is no communication; with it the parts are all of the step.
awk '$1 == 96 { n++; step = $4; sum = $5 + $6 + $7; bubble = $7 } /^ranks/ { named = $6 == "exposed" && $8 == "bubble" } END { exit !(n == 1 && named && bubble > 0 && sum > 0.999 * step && sum < 1.001 * step) }' out ||
    fail "parts of a pipeline's step: $(head -n 6 out)"
says out send_recv all_reduce "96"

refused() { # refused STATUS TEXT ARGUMENT...
    local status=$1 text=$2
    shift 2
    expect "$status" "$FLOPCAST" "$@"
    says err "$text"
}
refused 2 "leave out one of them" run a.yaml --chakra x --plan
refused 2 "--chakra writes one" run a.yaml --set "cluster.gpus=[8, 16]" --chakra x
[[ ! -e x ]] || fail "x was made"
refused 1 "cannot make the folder" run a.yaml --chakra no/such/folder
refused 2 "--topology NAME is needed" replay traces
refused 2 "there are no Chakra traces" replay . --topology dgx-1v-ib
refused 2 "a folder of Chakra traces is missing" replay --topology dgx-1v-ib
rm traces/a.2.et
refused 2 "ranks are numbered from 0 on, without gaps" replay traces --topology dgx-1v-ib
