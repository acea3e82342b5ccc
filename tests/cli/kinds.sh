#!/usr/bin/env bash
# Jobs on nodes of two kinds: tables, records, database, traces, plans, and what is refused.
set -euo pipefail
export COLUMNS=0 # tables as they are
fail() { echo "$*" >&2; exit 1; }

cat >two.yaml <<'YAML'
name: two
model: gpt2-xl
cluster: {topology: h100-8x400g, gpus: 16, second_node: dgx-a100-80gb-like, second_gpus: 8}
train: {micro_batch: 4, seq_len: 1024, precision: bf16_mixed, attention: naive}
strategy: fsdp
noise: {gpu_speed_spread: 0, kernel_jitter: 0, network_jitter: 0, host_jitter: 0, straggler_share: 0}
run: {steps: 1, warmup_steps: 1}
YAML
both=(--set "cluster.batch_split=[equal, by_speed]")

"$FLOPCAST" run two.yaml "${both[@]}" --db two.db >out
grep -qx "H100-80GB, 8 x 400 Gb/s, and nodes of a second kind: DGX-A100-80GB-like" out || fail "heading: $(<out)"
grep -q "^by kind of GPU:" out || fail "parts: $(<out)"
grep -q "^16 GPUs, .*batch_split by_speed  H100-SXM5-80GB (fullest)      5 " out || fail "5 samples on H100: $(<out)"
grep -q "^16 GPUs, .*batch_split by_speed  A100-SXM4-80GB                3 " out || fail "3 samples on A100: $(<out)"

# The same from the database, where nothing is simulated anew.
"$FLOPCAST" run two.yaml "${both[@]}" --db two.db >again
diff <(grep -v "taken from\|were simulated" out) <(grep -v "taken from\|were simulated" again) || fail "from the database"
[[ $(sqlite3 two.db "SELECT second_gpu, first_micro_batch, second_micro_batch FROM point ORDER BY 2") == \
    $'A100-SXM4-80GB|4|4\nA100-SXM4-80GB|5|3' ]] || fail "columns of the database"
[[ $(sqlite3 two.db "SELECT count(DISTINCT json_extract(json, '$.second_gpu.name')) FROM document") == 1 ]] || fail "the second GPU's numbers are not stored"
[[ $(sqlite3 two.db "SELECT count(*) FROM program") == 4 ]] || fail "a row of each kind"

"$FLOPCAST" run two.yaml --format csv --set cluster.batch_split=by_speed >two.csv
head -1 two.csv | grep -q ",second_gpu,first_micro_batch,second_micro_batch," || fail "$(head -1 two.csv)"
tail -1 two.csv | grep -q ",A100-SXM4-80GB,5,3," || fail "$(tail -1 two.csv)"

"$FLOPCAST" run two.yaml --trace two.json --trace-ranks 0,8 >/dev/null
grep -q "rank 0 / node 0 GPU 0 (H100-SXM5-80GB)" two.json || fail "rank 0's GPU"
grep -q "rank 8 / node 1 GPU 0 (A100-SXM4-80GB)" two.json || fail "rank 8's GPU"
"$FLOPCAST" run two.yaml --trace two.json --trace-ranks 0,8 --db trace.db >/dev/null
[[ $(sqlite3 trace.db "SELECT count(DISTINCT rank), count(program) FROM span") == "2|0" ]] || fail "kinds are no stages of a pipeline"
"$FLOPCAST" run two.yaml --plan >plan
grep -q "^program 1, for each of 8 ranks: " plan || fail "plan: $(head -2 plan)"

# A GPU of the second kind runs out of memory first where it has less.
"$FLOPCAST" run two.yaml --set cluster.second_node=dgx-a100-40gb-like >out
grep -q "^  a GPU of kind 2 of 2 needs .*, has 39.4 GiB: " out || fail "too small: $(<out)"

"$FLOPCAST" run two.yaml --samples 3 --format csv >/dev/null
"$FLOPCAST" whatif two.yaml --set cluster.batch_split=by_speed >/dev/null
"$FLOPCAST" sensitivity two.yaml >out
grep -q "second_gpu.gemm_sustained" out || fail "its numbers are not varied: $(<out)"

# Dollars are of both kinds: 8 x 4 + 8 x 2 $/h are 1152 $ a day.
"$FLOPCAST" goodput two.yaml --set goodput.hot_spares=0 --price h100=4 --price a100=2 --seeds 2 --tokens 1T --format csv >goodput.csv
awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i }
    NR == 2 { a_day = $at["cost_usd"] / $at["training_days"]; exit !(a_day > 1151.9 && a_day < 1152.1) }' goodput.csv || fail "dollars: $(<goodput.csv)"

refuse() { # EXPECTED COMMAND...
    local expected=$1
    shift
    if "$FLOPCAST" "$@" >out 2>err; then fail "$* ran"; fi
    grep -qF "$expected" err || fail "$*: $(<err)"
}
refuse "12 GPUs are not whole nodes of 8" run two.yaml --set cluster.second_gpus=12
refuse "16 of 16 GPUs" run two.yaml --set cluster.second_gpus=16
refuse "'Vista GH200' has 1 GPU and 1 NIC, and 'DGX-H100-like' 8 and 8" run two.yaml --set cluster.second_node=vista-gh200
refuse "cluster.second_node:1:1: error: '8 x MI300X, 400 Gb/s' has GPUs of CDNA and 'DGX-H100-like' of Hopper" run two.yaml --set cluster.second_node=8x-mi300x
refuse "take parallelism.pipeline=1" run two.yaml --set strategy=megatron --set parallelism.pipeline=2
refuse "which GPU 'A100-SXM4-80GB' cannot" run two.yaml --set train.precision=fp8_mixed
refuse "the last micro-batch of a step is smaller" run two.yaml --set cluster.batch_split=by_speed --set train.device_batch=7
refuse "\`flopcast tune\` takes jobs on one kind of node" tune two.yaml
sed 's/, second_node.*}/}/' two.yaml >one.yaml
refuse "give cluster.second_node too" run one.yaml --set cluster.second_gpus=8
refuse "give cluster.second_node too" run one.yaml --set cluster.batch_split=by_speed
refuse "give cluster.second_gpus" run one.yaml --set cluster.second_node=dgx-a100-80gb-like
