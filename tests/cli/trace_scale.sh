#!/usr/bin/env bash
# `flopcast trace scale`: a step that was traced, on more GPUs; and traces that it cannot use. (law.trace_scale has how exact it is.)
set -euo pipefail
# shellcheck source=/dev/null
. "$FLOPCAST_SOURCE_DIR/tests/cli/lib.bash"
scenario a.yaml "noise: {gpu_speed_spread: 0, kernel_jitter: 0, network_jitter: 0, host_jitter: 0}"

expect 0 "$FLOPCAST" run a.yaml --set run.warmup_steps=4 --trace r0.json --db a.db
scale() { expect 0 "$FLOPCAST" trace scale "$@"; }
topology=dgx-1v-ib

# On as many GPUs as the trace is of it takes what it took.
scale r0.json --topology "$topology" --quiet --format csv
step=$(awk -F, 'NR == 2 { printf "%.5f", 1e3 * $2 }' out)
direct=$(ask "SELECT printf('%.5f', 1e3 * step_time_s) FROM point")
awk -v a="$step" -v b="$direct" 'BEGIN { exit !(a > 0 && a / b - 1 < 2e-3 && b / a - 1 < 2e-3) }' || fail "$step ms, not $direct"

# Collectives that take the time that they took: the same.
scale r0.json --topology "$topology" --quiet --recorded --format csv
awk -F, -v b="$direct" 'NR == 2 { a = 1e3 * $2; exit !(a / b - 1 < 2e-3 && b / a - 1 < 2e-3) }' out || fail "recorded: $(<out)"

# More of them, with what varies; the same again with the same seed.
scale r0.json --topology "$topology" --gpus 8,16,32
says out "on 8 GPUs" "of them 0 on shards" "collectives of a rank in the last line"
cp out first
scale r0.json --topology "$topology" --gpus 8,16,32
cmp first out || fail "not deterministic"
scale r0.json --topology "$topology" --gpus 8,16 --quiet --format json
says out '"gpus": 16' '"traced_gpus": 8'

# Kept, with its interval, as the table has it.
scale r0.json --topology "$topology" --gpus 8,16 --samples 3 --db s.db --format csv
cp out s.csv
kept=$(ask "SELECT group_concat(printf('%d %.9f %d', gpus, step_time_s, step_time_low_s <= step_time_high_s)) FROM trace_scale_point" s.db)
[[ $kept == "$(awk -F, 'NR > 1 { printf "%s%d %.9f 1", (NR > 2 ? "," : ""), $1, $2 }' s.csv)" ]] || fail "$kept"

# Another GPU: what its files say of both.
scale r0.json --topology "$topology" --quiet --gpu h100-sxm5-80gb --traced-gpu v100-sxm2-32gb
says out "kernels of V100-SXM2-32GB on H100-SXM5-80GB take: GEMM x 0." "+-" "copies from and to the host x 1.000"
[[ ! -s err ]] || fail "warned of the GPU that was named: $(<err)"
scale r0.json --topology h100-8x400g --quiet
says err "r0.json: warning: it is of V100-SXM2-32GB, but H100-SXM5-80GB is taken for the GPU that was traced" "--traced-gpu FILE"

refused() { # refused TEXT ARGUMENT...
    local text=$1
    shift
    expect 2 "$FLOPCAST" trace scale "$@" --topology "$topology"
    says err "$text"
}
event() { # event CATEGORY NAME THREAD START DURATION [ARGUMENTS]
    echo "{\"ph\": \"X\", \"cat\": \"$1\", \"name\": \"$2\", \"pid\": 0, \"tid\": $3, \"ts\": $4, \"dur\": $5, \"args\": {${6-}}}"
}
trace() { # trace FILE EVENT...
    local file=$1 IFS=,
    shift
    echo "{\"distributedInfo\": {\"rank\": 0, \"world_size\": 8}, \"traceEvents\": [
$*]}" >"$file"
}
step1=$(event user_annotation ProfilerStep#1 1 0 1000)
step2=$(event user_annotation ProfilerStep#2 1 1000 1000)
launches="$(event cuda_runtime cudaLaunchKernel 1 10 5 '"correlation": 1'),$(event cuda_runtime cudaLaunchKernel 1 20 5 '"correlation": 2')"
gemm=$(event kernel gemm 7 30 500 '"stream": 7, "correlation": 1')
nccl=$(event kernel ncclKernel_AllReduce_RING_LL_Sum_float 20 535 100 '"stream": 20, "correlation": 2')
arguments='"stream": 20, "correlation": 2, "Collective name": "allreduce", "In msg nelems": 1000, "Out msg nelems": 1000, "dtype": "Float", "Group size"'
whole=$(event kernel ncclDevKernel_AllReduce 20 535 100 "$arguments: 8")
part=$(event kernel ncclDevKernel_AllReduce 20 535 100 "$arguments: 4")
uneven=$(event kernel ncclDevKernel_AllReduce 20 535 100 "$arguments: 4, \"Process Group Name\": \"1\", \"Process Group Ranks\": \"[0, 1, 2, 5]\"")
neighbours=$(event kernel ncclDevKernel_AllReduce 20 535 100 "$arguments: 4, \"Process Group Name\": \"1\", \"Process Group Ranks\": \"[0, 1, 2, 3]\"")

# Without NCCL's arguments: named by file and line, with what would help; the step is still what it was.
trace no_arguments.json "$step1" "$launches" "$gemm" "$nccl"
refused "no_arguments.json:2:1: error: collective ncclKernel_AllReduce_RING_LL_Sum_float at 0.535 ms of the step: its kind, size or group is not in the trace" no_arguments.json
scale no_arguments.json --topology "$topology" --quiet --recorded --format csv
[[ $(awk -F, 'NR == 2 { printf "%.3f", 1e3 * $2 }' out) == 1.000 ]] || fail "$(<out)" # the host's millisecond
refused "are those of 8 GPUs, not of 16" no_arguments.json --recorded --gpus 16

# Without a step, with two of them, with one that is not there.
trace no_step.json "$launches" "$gemm"
refused "no_step.json: error: no step in it" no_step.json
trace two_steps.json "$step1" "$step2" "$launches" "$gemm" "$whole"
refused "two_steps.json: error: 2 steps in it, numbers 1 to 2; choose one with --step N" two_steps.json
scale two_steps.json --topology "$topology" --step 1
refused "no step 7 in it; there are 1 to 2" two_steps.json --step 7

# Cut in the middle, as text and compressed; no trace at all.
head -c 700 two_steps.json >cut.json
refused "cut.json:" cut.json
says err "a whole file of JSON is wanted"
gzip -c r0.json | head -c 2000 >cut.json.gz
refused "the gzip data are damaged or cut" cut.json.gz
echo '{"traceEvents": []}' >empty.json
refused "no GPU kernels in it" empty.json

# Groups: not said, not evenly apart, such that stay.
trace whole.json "$step1" "$launches" "$gemm" "$whole"
scale whole.json --topology "$topology" --gpus 16
says out "1 collectives, of them 1 over groups that grow"
trace part.json "$step1" "$launches" "$gemm" "$part"
refused "which ranks are in its group is not said, and it is not all of them" part.json
trace uneven.json "$step1" "$launches" "$gemm" "$uneven"
refused "not evenly apart" uneven.json
trace neighbours.json "$step1" "$launches" "$gemm" "$neighbours"
scale neighbours.json --topology "$topology" --gpus 32
says out "1 collectives, of them 0 over groups that grow"

refused "of which 12 are no multiple" r0.json --gpus 12
refused "numbers of GPUs are wanted, as in 8,64,512" r0.json --gpus 8,
refused "a trace is missing"
expect 2 "$FLOPCAST" trace scale r0.json
says err "--topology NAME is needed"
expect 2 "$FLOPCAST" trace shrink r0.json
says err "'shrink' is nothing to do; there are: scale, import"
