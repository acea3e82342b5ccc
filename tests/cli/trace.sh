#!/usr/bin/env bash
# `flopcast run --trace`: valid JSON that our own reader of PyTorch's traces takes, with the times that the run reports.
set -euo pipefail
# shellcheck source=/dev/null
. "$FLOPCAST_SOURCE_DIR/tests/cli/lib.bash"
scenario a.yaml "noise: {gpu_speed_spread: 0, kernel_jitter: 0, network_jitter: 0, host_jitter: 0}"

expect 0 "$FLOPCAST" run a.yaml --trace t.json.gz --trace-ranks 0,5 --db a.db --format csv
# The optimizer's step is what its kernels take.
expect 0 "$FLOPCAST" run gpt2 --topology h100 --gpus 8 --strategy ddp --seq-len 512 --no-noise --trace step.json --db step.db --quiet
[[ $(ask "SELECT abs(optimizer_s - (SELECT sum(end_s - start_s) FROM span WHERE phase = 'optimizer' AND stream = 'compute')) < 1e-12 AND optimizer_s > 0 FROM point" step.db) == 1 ]] ||
    fail "optimizer_s: $(ask "SELECT optimizer_s FROM point" step.db)"
expect 0 "$FLOPCAST" calibrate import kineto t.json.gz --db b.db # reads the JSON whole, so it is valid

# Both ranks have the collectives of the plan, as many, of as many bytes.
"$FLOPCAST" run a.yaml --plan >plan
collectives=$(grep -c "all_reduce .* latency " plan) # one op a line; then those that are alike together
((collectives > 0)) || fail "no collective in the plan: $(head plan)"
says out "$((2 * collectives)) collectives"
[[ $(ask "SELECT count(*), min(ranks), max(ranks) FROM v_collective_measurement WHERE collective = 'all_reduce'" b.db) == "$((2 * collectives)) 8 8" ]] ||
    fail "collectives"

# Each of them read back alone is the step that was simulated (law.trace has it to the nanosecond).
step=$(ask "SELECT printf('%.3f', 1e3 * step_time_s) FROM point")
for gpu in 0 5; do
    expect 0 "$FLOPCAST" calibrate check trace t.json.gz --device $gpu
    says out "GPU $gpu of 2 in the file" "1 step, found by ProfilerStep annotations"
    grep -qE "^step +$step +100.0$" out || fail "GPU $gpu: $(grep ^step out), not $step"
done

gunzip -c t.json.gz >t.json
says t.json '"name": "rank 5 / node 0 GPU 5 (V100-SXM2-32GB)"' '"name": "stream 20 comm"' '"name": "HBM (GiB)"' \
    '"Collective name": "allreduce"' '"name": "ProfilerStep#0"' '"world_size": 8'

# The host thread: the step, what it issues and where it blocks; an arrow from each launch to what it launched, of both ranks. (A measured step
# gets no memory from CUDA.)
says t.json '"name": "host thread"' '"cat": "user_annotation"' '"cat": "gpu_user_annotation"'
count() { grep -cE "$1" t.json || true; }
launched=$(count '"ph": "X".*"correlation": [0-9]+, "op"')
((launched > 100 && $(count '"ph": "X".*"name": "(cudaLaunchKernel|cudaMemcpyAsync)".*"correlation": ') == launched &&
    $(count '"ph": "s".*"cat": "ac2g"') == launched && $(count '"ph": "f".*"cat": "ac2g".*"bp": "e"') == launched)) ||
    fail "$launched kernels and collectives, but $(count ac2g) ends of arrows"
[[ $(count '"ph": "s".*"cat": "wait"') -gt 0 && $(count '"ph": "s".*"cat": "wait"') == $(count '"ph": "f".*"cat": "wait"') ]] ||
    fail "arrows of waits: $(count '"cat": "wait"') ends"
# an id is that of one arrow, and its kernel does not begin before its launch
awk '/"ph": "[sf]".*"cat": / {
    match($0, /"id": [0-9]+/); id = substr($0, RSTART + 6, RLENGTH - 6)
    match($0, /"ts": [0-9.]+/); ts = substr($0, RSTART + 6, RLENGTH - 6)
    if ($0 ~ /"ph": "s"/) { if (id in from) { print "twice: " $0; exit 1 } from[id] = ts }
    else if (!(id in from) || ts + 0 < from[id] + 0) { print "backwards: " $0; exit 1 } else n++
} END { if (n < 100) { print n " arrows"; exit 1 } }' t.json >arrows || fail "$(<arrows)"

# Events of a stream do not overlap, in whole nanoseconds (times are written as 12.345), and those of the compute stream
# take as long as the run says.
awk -F'"' '/"ph": "X"/ {
    match($0, /"pid": [0-9]+/); pid = substr($0, RSTART + 7, RLENGTH - 7)
    match($0, /"tid": [0-9]+/); tid = substr($0, RSTART + 7, RLENGTH - 7)
    match($0, /"ts": [0-9.]+/); ts = substr($0, RSTART + 6, RLENGTH - 6); sub(/\./, "", ts)
    match($0, /"dur": [0-9.]+/); dur = substr($0, RSTART + 7, RLENGTH - 7); sub(/\./, "", dur)
    if (tid < 7) next # the step, and the host thread, whose events lie in each other
    key = pid " " tid; n++
    if (ts + 0 < ends[key] + 0) { print "overlap: " $0; exit 1 }
    ends[key] = ts + dur
    if (key == "5 7") busy += dur
} END { if (n < 50) { print n " events"; exit 1 } printf "%.9f\n", busy * 1e-9 }' t.json >busy || fail "events overlap: $(<busy)"
computed=$(ask "SELECT compute_s FROM point")
awk -v a="$(<busy)" -v b="$computed" 'BEGIN { exit !(a > 0 && a - b < 1e-6 && b - a < 1e-6) }' || fail "busy for $(<busy) s of $computed"

# The host thread in the database, too: it does one thing after the other.
[[ $(ask "SELECT group_concat(DISTINCT host) FROM (SELECT host FROM span WHERE stream = 'host' ORDER BY host)") == issues,* ]] || fail "the host's spans"
[[ $(ask "SELECT count(*) FROM span AS a JOIN span AS b ON a.host IS NOT NULL AND b.host IS NOT NULL AND a.rank = b.rank AND a.span < b.span
    AND a.end_s > b.start_s + 1e-12") == 0 ]] || fail "the host does two things at once"

# The same trace again; and a run without it is the same run.
# A host that is far ahead of its GPU: its trace is read back.
expect 0 "$FLOPCAST" run a.yaml --set strategy=megatron --set megatron.use_distributed_optimizer=true --set megatron.overlap_grad_reduce=true \
    --set megatron.overlap_param_gather=true --set train.precision=fp32 --set train.seq_len=512 --set train.micro_batch=64 --set train.grad_accum=4 \
    --set run.warmup_steps=1 --trace ahead.json
expect 0 "$FLOPCAST" calibrate import kineto ahead.json --db ahead.db

expect 0 "$FLOPCAST" run a.yaml --trace again.json --trace-ranks 0,5
cmp t.json again.json || fail "the trace is not deterministic"

# Out of memory is a result, also here.
expect 0 "$FLOPCAST" run a.yaml --set train.micro_batch=100000 --trace oom.json
says oom.json '"name": "out of memory: '

refused() { # refused STATUS TEXT ARGUMENT...
    local status=$1 text=$2
    shift 2
    expect "$status" "$FLOPCAST" run "$@"
    says err "$text"
}
refused 2 "there is no rank 8 among 8 GPUs" a.yaml --trace x.json --trace-ranks 8
refused 2 "numbers of ranks are wanted" a.yaml --trace x.json --trace-ranks 0,
refused 2 "numbers of ranks are wanted" a.yaml --trace x.json --trace-ranks -1
refused 2 "rank 3 is there twice" a.yaml --trace x.json --trace-ranks 3,3
refused 2 "--trace-ranks is for --trace FILE" a.yaml --trace-ranks 3
refused 2 "leave out one of them" a.yaml --trace x.json --plan
refused 2 "give one scenario, not 2" a.yaml a.yaml --trace x.json
refused 2 "2 points, but --trace shows one; set what is swept to one value, as in --set cluster.gpus=8" a.yaml --trace x.json --set "cluster.gpus=[8, 16]"
refused 2 "must end in .json or .json.gz" a.yaml --trace -
refused 1 "cannot write" a.yaml --trace no/such/folder.json
[[ ! -e x.json ]] || fail "x.json was made"
if [[ -e /dev/full ]]; then # a disk without room: the device stays where it is, a link to it too
    ln -s /dev/full full.json
    ln -s /dev/full full.json.gz
    refused 1 "cannot write" a.yaml --trace full.json
    refused 1 "cannot write" a.yaml --trace full.json.gz
    [[ -L full.json && -L full.json.gz && -c /dev/full ]] || fail "what is no file was removed"
fi
