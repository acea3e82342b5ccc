#!/usr/bin/env bash
# flopcast_measure, where there was a CUDA compiler (else skipped), and `flopcast calibrate import measure`. Without a GPU: the sweep
# as a dry run, and the refusal with status 77. With one: the cheapest category is measured and read.
set -euo pipefail
# shellcheck source=/dev/null
. "$FLOPCAST_SOURCE_DIR/tests/cli/lib.bash"
import() { "$FLOPCAST" calibrate import measure "$@"; }

cat >good.csv <<'CSV'
category,kernel,dtype,bytes,flop,time_us_median,time_us_min,time_us_max,sm_clock_MHz,gpu,driver,cuda,date,version,kind
gemm,tn,bf16,100,2e9,10,9,12,1700,H100,550.1,12.4,2026-01-31,0.1.0,measured
CSV
expect 0 import good.csv
says out "good.csv: 1 rows of H100, driver 550.1" "up to 200 TFLOPS"
sed 's/,10,/,10 us,/' good.csv >bad.csv
expect 2 import good.csv bad.csv
says out "good.csv: 1 rows"
says err "bad.csv:2:1: error: column 'time_us_median'"
expect 2 import good.csv --db a.db
[[ ! -e a.db ]] || fail "a database was made"

# The numbers of a GPU: a tiny kernel of 3 us; scale and triad at 2 TB/s in the mean of 3.35 TB/s.
gpu=$FLOPCAST_SOURCE_DIR/topologies/gpus/h100-sxm5-80gb.yaml
cat >fit.csv <<'CSV'
category,kernel,dtype,bytes,flop,time_us_median,time_us_min,time_us_max,sm_clock_MHz,gpu,driver,cuda,date,version,kind
launch,"empty kernels one after the other, GPU and host",,,,3,3,3,,H100,550.1,12.4,2026-01-31,0.1.0,measured
hbm,scale,fp32,1.9e9,,1000,1000,1000,,H100,550.1,12.4,2026-01-31,0.1.0,measured
hbm,triad,fp32,2.1e9,,1000,1000,1000,,H100,550.1,12.4,2026-01-31,0.1.0,measured
CSV
expect 0 "$FLOPCAST" calibrate fit measure fit.csv --gpu "$gpu"
awk '$1 == "kernel_floor" && $4 == 3 && $5 == "us" { floor = 1 } $1 == "hbm_efficiency" && int($3 * 1000) == 597 { hbm = 1 }
    END { exit !(floor && hbm) }' out || fail "numbers of fit.csv: $(cat out)"
expect 2 "$FLOPCAST" calibrate fit measure fit.csv
says err "--gpu FILE go together"
expect 2 "$FLOPCAST" calibrate fit --gpu "$gpu"
expect 2 "$FLOPCAST" calibrate fit measure bad.csv --gpu "$gpu"
says err "bad.csv:2:1: error: column 'time_us_median'"
expect 2 "$FLOPCAST" calibrate fit measure fit.csv --gpu fit.csv

[[ -n ${FLOPCAST_MEASURE:-} ]] || exit 77
expect 0 "$FLOPCAST_MEASURE" --help
expect 0 "$FLOPCAST_MEASURE" --list
expect 2 "$FLOPCAST_MEASURE" --only gemms --dry-run
says err "there is no such category"
expect 2 "$FLOPCAST_MEASURE"
says err "--date is missing"
expect 2 "$FLOPCAST_MEASURE" --date yesterday

# Each category of the list has its rows in the sweep (nccl needs the library), and the reader knows the columns but not a plan.
"$FLOPCAST_MEASURE" --list >list
while read -r category _; do
    expect 0 "$FLOPCAST_MEASURE" --dry-run --only "$category" --out "$category.csv"
    grep -q "left out" err || grep -q "^$category,.*,planned$" "$category.csv" || fail "no row of $category"
done <list
grep -q '^gemm,tn; t5-11b ff in,bf16,8192,65536,1024,1,' gemm.csv || fail "T5-11B's feed-forward product"
# 2 m n k
grep -q ',1.099511628e+12,' gemm.csv || fail "its flop"
expect 2 import launch.csv
says err "launch.csv:2:1: error: a row of a dry run"

status=0
"$FLOPCAST_MEASURE" --date 2026-01-31 --only launch --out launch.csv 2>err || status=$?
if [[ $status == 77 ]]; then
    says err "no GPU here"
    [[ $(wc -l <err) == 1 ]] || fail "more than one line"
else
    [[ $status == 0 ]] || fail "exit status $status: $(cat err)"
    expect 0 import launch.csv
    says out "7 rows"
fi
