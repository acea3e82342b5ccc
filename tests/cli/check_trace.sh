#!/usr/bin/env bash
# `flopcast calibrate check trace`: a real trace alone and beside a scenario; what is refused. The numbers of the trace are counted by hand
# in tests/import/test_trace.c.
set -euo pipefail
# shellcheck source=/dev/null
. "$FLOPCAST_SOURCE_DIR/tests/cli/lib.bash"
trace=$FLOPCAST_SOURCE_DIR/tests/import/data/kineto/resnet50_2xa100.json.gz
check=("$FLOPCAST" calibrate check trace)

expect 0 "${check[@]}" "$trace"
says out "rank 0 of 2, NVIDIA A100-PG509-200, NCCL 2.17.1" \
    "3 steps, found by ProfilerStep annotations: 219.786 to 224.936 ms, 222.409 ms in the mean" \
    "step                                 222.409     100.0" \
    "kernels run for 17.7 % of the step; for 81.4 % the GPU waits for the host, which launches too slowly" \
    "  exposed communication                0.152       0.1" \
    "  waiting for the host               180.938      81.4" \
    "all_reduce      2   8196000         1    3940.3         2.08         2.08" \
    "void cudnn::ops::nchwToNhwcKernel<float, float, float, false, true, (cudnnKernel  copy            158  4.206"
! grep -q simulated out || fail "a simulation that nobody asked for: $(grep simulated out)"

cp "$trace" here.json.gz
narrow "${check[@]}" here.json.gz --top 3

# The same job simulated: DDP makes the same five buckets and broadcasts the same buffers, to the byte, so that each collective finds its
# own. (The trace's other settings are not known: this is no statement about the prediction.)
cat >resnet.yaml <<YAML
name: resnet
model: $FLOPCAST_SOURCE_DIR/scenarios/models/resnet50.yaml
cluster: {topology: $FLOPCAST_SOURCE_DIR/topologies/clusters/a100-80gb-8x200g.yaml, gpus: 2}
train: {micro_batch: 32, precision: tf32, optimizer: sgd_momentum}
strategy: ddp
run: {steps: 1, warmup_steps: 1}
YAML
expect 0 "${check[@]}" "$trace" --scenario resnet.yaml
[[ ! -s err ]] || fail "warned of: $(<err)"
for bytes in 8196000 31502336 26255360 26550272 9724160; do
    grep -qE "^all_reduce +2 +$bytes +1 +1 " out || fail "the bucket of $bytes B: $(grep all_reduce out)"
done
grep -qE "^broadcast +2 +212480 +1 +1 +30.3 " out || fail "the broadcast of buffers: $(grep broadcast out)"
says out "the step takes 222.4 ms, simulated " "nearly all of it is the first of its parts:" "  1. +180.9 ms: the GPU waits for the host for 180.9 ms, simulated 0.000 ms" \
    "all_reduce, hidden or not, takes 15.6 ms, simulated " "; 5 of them, simulated 5, waiting"
[[ $(grep -n "the step takes" out | cut -d : -f 1) -lt $(grep -n "time of a step" out | cut -d : -f 1) ]] || fail "the verdict is not first: $(<out)"
if grep -qE "[0-9]e[+-][0-9]" out; then fail "digits that nobody reads: $(grep -E "[0-9]e[+-][0-9]" out)"; fi

# Stored, and drawn: the measured step above the simulated one, on one axis. The median of the three steps is the one of 222.499 ms from its
# beginning to the next one's; it has a third of the kernels.
expect 0 "${check[@]}" "$trace" --scenario resnet.yaml --db a.db
[[ $(ask "SELECT printf('%d %.6f %.6f %s', cells ->> 'steps', cells ->> 'step_time_s', cells ->> 'exposed_comm_s', cells ->> 'found') FROM fit_row WHERE part = 'step'") == "3 0.222409 0.000152 annotations" ]] ||
    fail "the step: $(ask "SELECT cells FROM fit_row WHERE part = 'step'")"
[[ $(ask "SELECT printf('%d %.1f %d', cells ->> 'bytes', 1e6 * (cells ->> 'time_s') / (cells ->> 'count'), cells ->> 'simulated_count') FROM fit_row WHERE part = 'collective' AND cells ->> 'bytes' = 8196000") == "8196000 3940.3 1" ]] ||
    fail "a bucket: $(ask "SELECT cells FROM fit_row WHERE part = 'collective'")"
[[ $(ask "SELECT printf('%d %.3f', cells ->> 'count', 1e3 * (cells ->> 'time_s')) FROM fit_row WHERE part = 'class' AND cells ->> 'class' = 'gemm'") == "204 13.278" ]] || fail "a class"
[[ $(ask "SELECT count(*), max(cells ->> 'bytes') FROM fit_row WHERE part = 'span' AND cells ->> 'class' = 'collective'") == "7 31502336.0" ]] || fail "the spans"
# autograd launches backward from its own thread, and Optimizer.step is annotated
[[ $(ask "SELECT group_concat(DISTINCT phase) FROM (SELECT cells ->> 'phase' AS phase FROM fit_row WHERE part = 'span' AND cells ->> 'class' <> 'collective' ORDER BY cells ->> 'start_s')") == forward,backward,optimizer ]] ||
    fail "phases: $(ask "SELECT DISTINCT cells ->> 'phase' FROM fit_row WHERE part = 'span'")"
expect 0 "$FLOPCAST" plot timeline --db a.db --out timeline.svg
says timeline.svg "measured stream 7" "measured stream 40" "simulated host" "simulated compute" "simulated comm" ", measured 0.2224 s"
order=$(grep -oE "(measured stream [0-9]+|simulated [a-z]+)" timeline.svg | tr '\n' ',')
[[ $order == "measured stream 7,measured stream 40,simulated host,simulated compute,simulated comm," ]] || fail "rows: $order"
refused_db=$("${check[@]}" "$trace" --db a.db 2>&1) && fail "stored half of it"
[[ $refused_db == *"--db is for --scenario FILE"* ]] || fail "said: $refused_db"

# Half the bytes on one side: nothing fits, and each stands alone.
expect 0 "${check[@]}" "$trace" --scenario resnet.yaml --set train.precision=bf16
grep -qE "^all_reduce +2 +31502336 +1 +- +3693.8 +- " out || fail "a bucket that is not simulated: $(grep all_reduce out)"
grep -qE "^all_reduce +2 +[0-9]+ +- +1 +- +[0-9.]+ " out || fail "a bucket that was not measured: $(grep all_reduce out)"

# For programs: a row a part, class and collective; without a scenario that side is empty.
expect 0 "${check[@]}" "$trace" --format csv
tr -d '\r' <out >rows
[[ $(head -n 1 rows) == "of,name,ranks,bytes,bus_bytes,count,time_s,simulated_count,simulated_time_s" ]] || fail "head: $(head -n 1 rows)"
grep -qE '^step,exposed_comm,,,,,0.00015156[0-9]*,,$' rows || fail "exposed: $(grep exposed rows)"
grep -qE '^class,gemm,,,,204,0.0132776[0-9]*,,$' rows || fail "products: $(grep gemm rows)"
grep -qE '^collective,all_reduce,2,8196000,8196000,1,0.0039403[0-9]*,,$' rows || fail "a bucket: $(grep all_reduce rows)"
expect 0 "${check[@]}" "$trace" --scenario resnet.yaml --format json
says out '"of": "collective", "name": "all_reduce", "ranks": 2, "bytes": 8196000, "bus_bytes": 8196000, "count": 1, "time_s": 0.0039403' '"simulated_count": 1'

# One meaning of exposed communication: what the engine says of a job is what its trace is summed up to; and where its network has a quarter, that is
# what is said first.
scenario gpt.yaml "noise: {gpu_speed_spread: 0, kernel_jitter: 0, network_jitter: 0, host_jitter: 0}"
expect 0 "$FLOPCAST" run gpt.yaml --set run.warmup_steps=4 --set cluster.gpus=16 --trace gpt.json --db gpt.db
expect 0 "${check[@]}" gpt.json --format csv
cp out gpt.csv
awk -F, -v want="$(ask "SELECT printf('%.9f %.9f %.9f', step_time_s, exposed_comm_s, host_bound_s) FROM point" gpt.db)" '
    BEGIN { split(want, w, " ") }
    $1 == "step" { got[$2] = $7 }
    END { for (i = 2; i <= 3; i++) { by = got[i == 2 ? "exposed_comm" : "host_bound"] - w[i]; bad = bad || by > 0.01 * w[1] || by < -0.01 * w[1] }
          exit bad || w[2] <= 0 }' gpt.csv || fail "exposed: $(grep ^step gpt.csv), not $(ask "SELECT step_time_s, exposed_comm_s, host_bound_s FROM point" gpt.db)"
expect 0 "${check[@]}" gpt.json --scenario gpt.yaml --set cluster.gpus=16 --set cluster.node.nic_bandwidth=400Gb/s
says out "exposed communication takes " "; collectives reach " " GB/s predicted"

# What speaks against the scenario is warned of.
expect 0 "${check[@]}" "$trace" --scenario resnet.yaml --set cluster.gpus=8 \
    --set "cluster.topology=$FLOPCAST_SOURCE_DIR/topologies/clusters/dgx-1v-ib.yaml" --set train.precision=fp32
says err "the trace's GPU is NVIDIA A100-PG509-200, the scenario's V100" "is --scenario the right one?" \
    "the trace is of 2 ranks, the scenario of 8: --set cluster.gpus=2"

# A step of no time has no shares.
printf '{"traceEvents": [{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1", "ts": 5, "dur": 0},
    {"ph": "X", "cat": "kernel", "name": "k", "ts": 5, "dur": 0}]}' >nothing.json
expect 0 "${check[@]}" nothing.json
grep -qE "^step +0.000 +-$" out || fail "shares of nothing: $(<out)"

# A profile of Nsight Systems, of two GPUs: four loops of two products of 30 us and a reduction beside the second of them, 100 us apart, so
# that 10 us of every step are exposed; times are nanoseconds, and no steps are marked. The rarest kernel begins them: three are whole.
sqlite3 nsys.sqlite <<'SQL'
CREATE TABLE StringIds (id INTEGER, value TEXT);
INSERT INTO StringIds VALUES (1, 'sm80_xmma_gemm'), (2, 'ncclDevKernel_AllReduce_Sum_f32_RING_LL'), (3, 'multi_tensor_apply_kernel');
CREATE TABLE TARGET_INFO_GPU (name TEXT);
INSERT INTO TARGET_INFO_GPU VALUES ('NVIDIA A100-SXM4-80GB');
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER, shortName INTEGER);
WITH RECURSIVE loop(t) AS (SELECT 1000000 UNION ALL SELECT t + 100000 FROM loop WHERE t < 1300000), device(d) AS (VALUES (0), (1))
INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL
  SELECT t, t + 30000, d, 7, 0, (1 + d) << 24, 1 FROM loop, device
  UNION ALL SELECT t + 30000, t + 60000, d, 7, 0, (1 + d) << 24, 1 FROM loop, device
  UNION ALL SELECT t + 40000, t + 70000, d, 20, 0, (1 + d) << 24, 2 FROM loop, device
  UNION ALL SELECT t + 70000, t + 80000, d, 7, 0, (1 + d) << 24, 3 FROM loop, device;
SQL
expect 0 "${check[@]}" nsys.sqlite --device 1
says out "nsys.sqlite: NVIDIA A100-SXM4-80GB, GPU 1 of 2 in the file" "copies by memcpy and memset are not read" \
    "3 steps, found by repetition: every 3 kernels, 100.0 % of them alike: 0.100 to 0.100 ms"
grep -qE "^gemm +2 +0.060$" out || fail "products: $(<out)"
grep -qE "^  exposed communication +0.010 " out || fail "exposed: $(<out)"
grep -qE "^all_reduce +- +- +1 +30.0 +- +-$" out || fail "sizes that the profile does not have: $(grep all_reduce out)"

# Four steps of eight equal layers, 1 ms apart: the kernels repeat by layers, and only NVTX ranges on the host say what a step is. A kernel
# belongs to the step in which it was launched; the last two of each run after the host has left it. Of nested ranges the outermost counts.
sqlite3 marked.sqlite <<'SQL'
CREATE TABLE StringIds (id INTEGER, value TEXT);
INSERT INTO StringIds VALUES (1, 'sm80_xmma_gemm'), (2, 'layer_norm_kernel'), (3, 'layer');
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER, shortName INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, globalTid INTEGER, correlationId INTEGER);
CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, text TEXT, globalTid INTEGER, textId INTEGER);
WITH RECURSIVE i(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM i WHERE n < 63)
INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME SELECT 5000000 + n / 16 * 1000000 + n % 16 * 50000, 0, 1 << 24 | 7, n FROM i;
INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL SELECT start + 100000, start + 140000, 0, 7, correlationId, 1 << 24, 1 + correlationId % 2
  FROM CUPTI_ACTIVITY_KIND_RUNTIME;
WITH RECURSIVE i(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM i WHERE n < 3)
INSERT INTO NVTX_EVENTS SELECT 5000000 + n * 1000000, 5800000 + n * 1000000, 59, 'step ' || (n + 11), 1 << 24 | 7, NULL FROM i
  UNION ALL SELECT 5100000 + n * 1000000, 5200000 + n * 1000000, 59, NULL, 1 << 24 | 7, 3 FROM i
  UNION ALL SELECT 5300000 + n * 1000000, 5400000 + n * 1000000, 59, 'step of the optimizer 1', 1 << 24 | 7, NULL FROM i;
SQL
expect 0 "${check[@]}" marked.sqlite
says out "found by repetition"
if grep -q "^4 steps" out; then fail "layers say nothing of steps: $(<out)"; fi
expect 0 "${check[@]}" marked.sqlite --steps '^step'
says out "4 steps, found by NVTX ranges: 0.890 to 1.000 ms"
grep -qE "^gemm +8 +0.320$" out || fail "kernels of a step: $(<out)"

refused() { # refused TEXT ARGUMENT...
    local text=$1
    shift
    expect 2 "${check[@]}" "$@"
    says err "$text"
}
refused "a trace is missing"
refused "one trace at a time; 'b' is a second one" a b
refused "no.json:1:1: error: cannot open" no.json
refused "--set is for --scenario FILE" "$trace" --set cluster.gpus=2
refused "--scenario is given twice" "$trace" --scenario a.yaml --scenario b.yaml
refused "no kernel of GPU 1 in it" "$trace" --device 1
refused "'(' is no regular expression" marked.sqlite --steps '('
refused "no NVTX range is called 'stage'; there is 'step 11'" marked.sqlite --steps stage
refused "no NVTX ranges in it; profile with" nsys.sqlite --steps step
refused "steps by name are of NVTX ranges in a profile of Nsight Systems" "$trace" --steps step
refused "the number of a GPU is wanted" "$trace" --device x
refused "2 points, but a trace is of one; set what is swept to one value, as in --set cluster.gpus=2" "$trace" \
    --scenario resnet.yaml --set "cluster.gpus=[2, 4]"
refused "out of memory when it is simulated" "$trace" --scenario resnet.yaml --set train.micro_batch=100000
# A log is read by another command, and says so; a trace that is given to that one, too.
echo "#       size         count      type   redop    root     time" >a.log
refused "a.log: error: no trace: that is JSON or, of Nsight Systems, SQLite, and this begins with '#'; a log of nccl-tests is for \`flopcast calibrate check FILE\`" a.log
expect 2 "$FLOPCAST" calibrate check gpt.json --topology h100
says err "no figures of nccl-tests in it; a trace of PyTorch's profiler is for \`flopcast calibrate check trace FILE\`"
echo '{"traceEvents": []}' >empty.json
refused "empty.json: error: no GPU kernels in it" empty.json
printf 'SQLite format 3' >cut.sqlite
refused "cut.sqlite: error: cannot read it as a Nsight Systems profile" cut.sqlite
