#!/usr/bin/env bash
# `flopcast run --samples`: in the table, as CSV and JSON, in the database, as a band in a figure; spans of --trace as a timeline.
set -euo pipefail
# shellcheck source=/dev/null
. "$FLOPCAST_SOURCE_DIR/tests/cli/lib.bash"
scenario t5_scaling.yaml 'sweep: [{cluster.gpus: [8, 16]}]' # the name that the figure asks for

expect 0 "$FLOPCAST" run t5_scaling.yaml --samples 5 --db a.db
says out "spread of inputs" "median of 5 samples" "the 90 % beside TFLOPS, which measured runs give, have it"
[[ $(grep -c "90 %" out) -ge 1 && $(tr '\n' ' ' <out | grep -o "90 %" | wc -l) == 2 ]] || fail "two intervals are called 90 %: $(<out)"
# Along the curve, in per cent: 90 % lie around the median.
sed '/^$/q' out | tr '\n' ' ' | sed -n 's/.* median of 5 samples \(.*\) %, spread of inputs \(.*\) to \(.*\) % by cause:.*$/\1 \2 \3\n/p' |
    awk '{ n++; bad += $2 > $1 || $1 > $3 } END { exit n != 1 || bad }' || fail "bands of the curve: $(grep 'median of' out)"
[[ $(ask "SELECT count(*) || ' bands of ' || min(samples) AS n FROM v_band WHERE tflops_per_gpu_p05 <= tflops_per_gpu_p50 AND tflops_per_gpu_p50 <= tflops_per_gpu_p95") == '2 bands of 5' ]] ||
    fail "bands in the database: $(ask 'SELECT * FROM band')"
if command -v gnuplot >/dev/null; then
    expect 0 "$FLOPCAST" plot t5_scaling --db a.db --out a.svg
    says a.svg "90 % of the samples (errors of numbers and noise alone)"
fi

# Columns behind those of a plain run, whose values stay; the same again.
expect 0 "$FLOPCAST" run t5_scaling.yaml --format csv
cp out plain
expect 0 "$FLOPCAST" run t5_scaling.yaml --format csv --samples 5
cp out first
head -n 1 out | grep -q ',digest,.*,swept,.*,samples,tflops_per_gpu_p05,tflops_per_gpu_p50,tflops_per_gpu_p95,step_time_s_p05,' || fail "columns: $(head -n 1 out)"
columns=$(head -n 1 plain | tr ',' '\n' | wc -l)
if command -v python3 >/dev/null; then
    python3 -c "
import csv, sys
plain, sampled = (list(csv.reader(open(name, newline=''))) for name in ('plain', 'first'))
sys.exit([row[:$columns] for row in sampled] != plain)" || fail "a plain run has other values"
fi
OMP_NUM_THREADS=1 expect 0 "$FLOPCAST" run t5_scaling.yaml --format csv --samples 5
cmp out first || fail "the number of threads changes samples"
expect 0 "$FLOPCAST" run t5_scaling.yaml --format json --samples 3
says out '"samples": 3' '"step_time_s_p95": '
# Out of memory has no band.
expect 0 "$FLOPCAST" run t5_scaling.yaml --format csv --samples 2 --set cluster.gpus=8 --set train.micro_batch=16384 --db a.db
sed -n 2p out | tr -d '\r' | grep -q ',0,,,,,,,,,$' || fail "row: $(sed -n 2p out)"

expect 2 "$FLOPCAST" run t5_scaling.yaml --samples 0
says err "--samples 0: a number from 2"
expect 2 "$FLOPCAST" run t5_scaling.yaml --samples 1
expect 2 "$FLOPCAST" run t5_scaling.yaml --samples 2 --plan
# 22,000 x 100,000 are more than 2^31: said before anything is simulated.
expect 2 timeout 100 "$FLOPCAST" run t5_scaling.yaml --set "run.seed=[$(seq -s, 0 21999)]" --set cluster.gpus=8 --samples 100000
says err "t5_scaling.yaml: error: 22000 points of 100000 samples each are more than 2147483647 simulations"

# The timeline: spans of the traced rank alone, none of a run without --trace.
expect 0 "$FLOPCAST" run t5_scaling.yaml --set cluster.gpus=8 --trace t.json --db b.db
[[ $(ask "SELECT count(*) > 10 AND min(rank) = 0 AND max(rank) = 0 AND sum(is_collective) > 0 AND min(end_s - start_s) >= 0 AS n FROM span" b.db) == 1 ]] ||
    fail "spans: $(ask 'SELECT count(*), min(rank), max(rank), sum(is_collective) FROM span' b.db)"
if command -v gnuplot >/dev/null; then
    expect 0 "$FLOPCAST" plot timeline --db b.db --out b.svg
    says b.svg "rank 0 compute" "rank 0 comm" "collective"
fi
