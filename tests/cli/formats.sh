#!/usr/bin/env bash
# --format csv and json of every command that prints a table: CSV with one head and rows of its length, JSON that another reader
# takes, the same values in both; and what single commands say there.
set -euo pipefail
# shellcheck source=/dev/null
. "$FLOPCAST_SOURCE_DIR/tests/cli/lib.bash"
scenario a.yaml 'sweep: [{cluster.gpus: [8, 16]}]'
h100=topologies/clusters/h100-8x400g.yaml
cat >ring.txt <<'LOG'
# nThread 1 nGpus 8 minBytes 1048576 maxBytes 2097152 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0
#
# Collective test starting: all_reduce_perf
#  Rank  0 Group  0 Pid 1 on  host device  0 [0x00] NVIDIA H100 80GB HBM3
#  Rank  1 Group  0 Pid 2 on  host device  1 [0x01] NVIDIA H100 80GB HBM3
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
     1048576        262144     float     sum      -1    40.00   26.21   26.21      0    40.00   26.21   26.21      0
     2097152        524288     float     sum      -1    50.00   41.94   41.94      0    50.00   41.94   41.94      0
LOG

# A JSON document has as many objects with as many values as the CSV has rows and columns, and the same values (where a comparison is
# possible: Python is no dependency of the project).
same() {
    command -v python3 >/dev/null || return 0
    python3 - "$@" <<'PYTHON' || fail "$*: CSV and JSON differ: $(head -n 5 csv) $(head -n 5 json)"
import csv, json, sys
rows = list(csv.DictReader(open('csv', newline='')))
objects = json.load(open('json'))
assert len(rows) == len(objects) > 0, (len(rows), len(objects))
for row, object in zip(rows, objects):
    for name, text in row.items():
        if name not in object:
            assert name in ('swept',) or '.' in name, name # run: JSON has all settings in config
            continue
        value = object[name]
        assert (text == '' and value in (None, '')) or text == str(value) or float(text) == float(value), (name, text, value)
PYTHON
}

# both COMMAND...: its CSV in the file csv, its JSON in json.
both() {
    expect 0 "$FLOPCAST" "$@" --format csv
    cp out csv
    [[ $(head -n 1 csv) == *$'\r' && $(wc -l <csv) -ge 2 ]] || fail "$*: no CSV with a head: $(head -n 3 csv)"
    expect 0 "$FLOPCAST" "$@" --format json
    cp out json
    [[ $(head -c 1 json) == "[" ]] || fail "$*: no array: $(head -n 3 json)"
    same "$@"
}

# has FILE NAME...: columns of the CSV, that name their unit.
has() {
    local name
    for name; do head -n 1 csv | tr -d '\r"' | tr ',' '\n' | grep -qxF "$name" || fail "no column $name: $(head -n 1 csv)"; done
}

both run a.yaml
has step_time_s peak_allocated_bytes cluster.gpus tflops_deviation
both whatif a.yaml --set train.micro_batch=4
has point quantity as_it_is changed ratio
both tune a.yaml --set strategy=ddp --set run.seed='[1, 2]' --max-batch 2 --top 2
has model swept gpus least_bytes step_time_s noisy_step_time_s run.seed
both validate --where "id = 'FSDP-7C-001' OR gpus = 8 AND model LIKE '%t5-11b%'"
both files
has file what_it_is
grep -q "scenarios/t5_scaling.yaml," csv || fail "files: $(head -n 3 csv)"
both model scenarios/models/gpt2.yaml
has layer layers tensor rows columns params params_of_all_layers
# All tensors of all layers are the model: 124,439,808.
[[ $(tr -d '\r' <csv | awk -F, 'NR > 1 { sum += $NF } END { printf "%d", sum }') == 124439808 ]] || fail "parameters: $(<csv)"
both topology $h100
has part key value unit kind std_error source
grep -q '^cluster,[^"]*\|^cluster,"' csv || fail "no cluster"
tr -d '\r' <csv | grep -q ',hbm_bandwidth,.*,B/s,datasheet,' || fail "HBM: $(grep hbm_bandwidth csv)"
both topology topologies/gpus/v100-sxm2-32gb.yaml
[[ $(cut -d, -f1 csv | tail -n +2 | sort -u) == gpu ]] || fail "of a GPU's file: $(cut -d, -f1 csv | sort -u)"
both collective all_reduce --topology $h100 --gpus 16 --bytes 1M:8M
has bytes time_us busbw_GBps algorithm bound_by
both calibrate check ring.txt --topology $h100
has bytes measured_us predicted_us
both waterfall a.yaml
has curve small_gpus large_gpus table item change_tflops_per_gpu time_s
# The causes add up to the sum.
tr -d '\r' <csv | awk -F, '{ n = NF } /,waterfall,/ { value = $(n - 5); if (/,sum,/) total = value; else sum += value } END { d = sum - total; exit !(d < 1e-9 && d > -1e-9 && total != 0) }' ||
    fail "waterfall: $(<csv)"
both capacity scenarios/models/gpt2.yaml --gpu topologies/gpus/v100-sxm2-16gb.yaml --dtype fp16_mixed --seq-len 128 --gpus 1 --strategy ddp
has gpus activation_checkpointing largest_micro_batch basis fewest_gpus
for memory in "1B --teach" "a.yaml --set cluster.gpus=8 --savings"; do
    read -ra words <<<"$memory"
    expect 0 "$FLOPCAST" memory "${words[@]}" --format json
    if command -v python3 >/dev/null; then python3 -m json.tool <out >/dev/null || fail "memory $memory: no JSON"; fi
done

for command in "run a.yaml" "whatif a.yaml --set train.micro_batch=4" files "model x" "topology x" "waterfall a.yaml" "calibrate show"; do
    read -ra words <<<"$command"
    expect 2 "$FLOPCAST" "${words[@]}" --format xml
    says err "--format xml: table, csv or json is wanted"
done
