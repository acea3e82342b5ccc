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

# Each GPU in a file is a rank, unless one is chosen; alike ranks say what one of them does.
expect 0 "$FLOPCAST" run a.yaml --set run.warmup_steps=4 --trace r01.json --trace-ranks 0,1
for trace in "r01.json" "r01.json --device 1" "r0.json"; do
    # shellcheck disable=SC2086
    scale $trace --topology "$topology" --quiet --gpus 16 --format csv
    cmp out one.csv 2>/dev/null || [[ ! -e one.csv ]] || fail "$trace: $(<out)"
    cp out one.csv
done
scale r01.json --topology "$topology" --gpus 16
says out "2 ranks of it, of 1 stage; a rank is the number of its GPU"

# More of them, with what varies; the same again with the same seed.
scale r0.json --topology "$topology" --gpus 8,16,32
says out "on 8 GPUs" "of them 0 on shards" "collectives of a rank in the last line"
cp out first
narrow "$FLOPCAST" trace scale r0.json --topology "$topology" --gpus 8
scale r0.json --topology "$topology" --gpus 8,16,32
cmp first out || fail "not deterministic"
scale r0.json --topology "$topology" --gpus 8,16 --quiet --format json
says out '"gpus": 16' '"traced_gpus": 8'

# Kept, with its interval, as the table has it.
scale r0.json --topology "$topology" --gpus 8,16 --samples 10 --db s.db --format csv
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
    echo "{\"distributedInfo\": {${distributed:-\"rank\": 0, \"world_size\": 8}}, \"traceEvents\": [
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

# Two stages of a pipeline. In the trace the second stood in its receive for 500 us, and the first in its own for the rest of the step: they wait for
# each other anew, so what is replayed is two GEMMs of 500 us one after the other, and two messages.
message() { # message KIND CORRELATION START DURATION PEER ELEMENTS
    event kernel ncclDevKernel_SendRecv 20 "$3" "$4" "\"stream\": 20, \"correlation\": $2, \"Collective name\": \"$1\", \"In msg nelems\": $6, \"Out msg nelems\": $6,
        \"dtype\": \"Float\", \"Group size\": 2, \"Process Group Name\": \"3\", \"Process Group Description\": \"pipeline\", \"Process Group Ranks\": \"[0, 1]\", $5"
}
launch() { event cuda_runtime cudaLaunchKernel 1 "$2" 2 "\"correlation\": $1"; } # launch CORRELATION START
step=$(event user_annotation ProfilerStep#1 1 0 40)
three="$(launch 1 10),$(launch 2 12),$(launch 3 14)"
first_gemm=$(event kernel gemm 7 30 500 '"stream": 7, "correlation": 1')
distributed='"rank": 0, "world_size": 2' trace stage0.json "$step" "$three" "$first_gemm" "$(message send 2 532 20 '"Dst Rank": 1' 1000)" \
    "$(message recv 3 552 600 '"Src Rank": 1' 1000)" "$(launch 4 16)" "$(event kernel adam 7 1154 20 '"stream": 7, "correlation": 4')"
second() { # second FILE RANKS RECEIVED ARGUMENT: of rank 1
    distributed=$2 trace "$1" "$step" "$three" "$3" "$(event kernel gemm 7 554 500 '"stream": 7, "correlation": 2')" "$(message send 3 1056 20 "$4" 1000)"
}
received=$(message recv 1 40 510 '"Src Rank": 0' 1000)
second stage1.json '"rank": 1, "world_size": 2' "$received" '"Dst Rank": 0'
scale stage1.json stage0.json --topology "$topology" --quiet
says out "2 ranks of it, of 2 stages" "bubble"
scale stage1.json stage0.json --topology "$topology" --quiet --format csv
awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) c[$i] = i }
    NR == 2 { exit !($c["step_time_s"] > 1e-3 && $c["step_time_s"] < 1.1e-3 && $c["bubble_s"] > 4e-4) }' out || fail "stages: $(<out)"
scale stage0.json stage1.json --topology "$topology" --quiet --gpus 8
says out "no collective is over groups that grow"

# What does not fit together is said of the file.
refused "stage0.json: error: its messages are of a pipeline of 2 stages, and no trace is of a rank of stage 1, as rank 1 is" stage0.json
refused "stage0.json: error: it is of rank 0, as stage0.json is" stage0.json stage0.json
second unsaid.json '"world_size": 2' "$received" '"Dst Rank": 0'
scale stage0.json unsaid.json --topology "$topology" --quiet
says out "where files do not say their ranks, they are in that order"
second lost.json '"rank": 1, "world_size": 2' "$(event kernel copy 7 40 510 '"stream": 7, "correlation": 1')" '"Dst Rank": 0'
refused "stage0.json: error: the traces do not fit together: op 1 (ncclDevKernel_SendRecv) of stage0.json (rank 0) is send number 1 there, and lost.json (rank 1) has no counterpart" stage0.json lost.json
second short.json '"rank": 1, "world_size": 2' "$(message recv 1 40 510 '"Src Rank": 0' 999)" '"Dst Rank": 0'
refused "send of 4000 bytes, meets op 0 (ncclDevKernel_SendRecv) of short.json (rank 1), recv of 3996" stage0.json short.json
second nobody.json '"rank": 1, "world_size": 2' "$received" '"no": 0'
refused "nobody.json:4:1: error: collective ncclDevKernel_SendRecv at 1.056 ms of the step: a message whose size or other end is not in the trace" stage0.json nobody.json
second other.json '"rank": 1, "world_size": 4' "$received" '"Dst Rank": 0'
refused "other.json: error: it is of a job of 4 ranks, stage0.json is of one of 2" stage0.json other.json
step=$step2 second later.json '"rank": 1, "world_size": 2' "$received" '"Dst Rank": 0'
sed -i 's/"ts": 1000, "dur": 1000/"ts": 0, "dur": 40/' later.json
refused "later.json: error: its step is number 2, that of stage0.json number 1" stage0.json later.json
four='"Process Group Name": "1", "Process Group Ranks": "[0, 1, 2, 3]"' eight='"Process Group Name": "1", "Process Group Ranks": "[0, 1, 2, 3, 4, 5, 6, 7]"'
trace rank0.json "$step1" "$launches" "$gemm" "$(event kernel ncclDevKernel_AllReduce 20 535 100 "$arguments: 8, $eight")"
distributed='"rank": 1, "world_size": 8' trace rank1.json "$step1" "$launches" "$gemm" "$(event kernel ncclDevKernel_AllReduce 20 535 100 "$arguments: 4, $four")"
refused "rank1.json: error: its process group '1' is of 4 ranks, 1 apart, that of rank0.json of 8, 1 apart" rank0.json rank1.json
distributed='"rank": 6, "world_size": 8' trace rank6.json "$step1" "$launches" "$gemm" "$(event kernel ncclDevKernel_AllReduce 20 535 100 "$arguments: 4, $four")"
refused "rank6.json: error: it is taken to be rank 6, which is not in its process group '1' of ranks 0, 1 ..." part.json rank6.json

# Ranks of a group meet: one that comes later holds up the other. Two of eight say what four times two do.
distributed='"rank": 1, "world_size": 8' trace late.json "$step1" "$launches" "$(event kernel gemm 7 30 800 '"stream": 7, "correlation": 1')" \
    "$(event kernel ncclDevKernel_AllReduce 20 832 100 "$arguments: 8, $eight")"
scale rank0.json late.json --topology "$topology" --quiet --gpus 8,16 --format csv
awk -F, 'NR == 2 { exit !($2 > 9e-4) }' out || fail "late: $(<out)"
cp out pair.csv
scale rank0.json late.json --topology "$topology" --gpus 16
says out "2 ranks of it, of 1 stage"
distributed='"rank": 3, "world_size": 8' trace odd.json "$step1" "$launches" "$gemm" "$(event kernel ncclDevKernel_AllReduce 20 535 100 "$arguments: 8, $eight")"
refused "the 2 traced ranks are not the first ones at an even distance, 0 and 3 being the first two" rank0.json odd.json

# batch_isend_irecv: one kernel of which its arguments say nothing, but the calls before its launch do. Both ranks send first: one after the other they
# would wait for each other for ever.
call() { # call KIND PEER START
    event cpu_op record_param_comms 1 "$3" 1 "\"Collective name\": \"$1\", \"In msg nelems\": 1000, \"Out msg nelems\": 1000, \"dtype\": \"Float\", \"Group size\": 2, $2"
}
for rank in 0 1; do
    peer=$((1 - rank))
    distributed="\"rank\": $rank, \"world_size\": 2" trace "batch$rank.json" "$step1" "$(launch 1 10),$(call send "\"Dst Rank\": $peer" 12),$(call recv "\"Src Rank\": $peer" 14),$(launch 2 20)" \
        "$gemm" "$(event kernel ncclDevKernel_SendRecv 20 535 100 '"stream": 20, "correlation": 2')"
done
scale batch0.json batch1.json --topology "$topology" --quiet
says out "2 ranks of it, of 2 stages" "send_recv"

refused "of which 12 are no multiple" r0.json --gpus 12
refused "--samples 3: 10 at least are wanted" r0.json --samples 3
refused "numbers of GPUs are wanted, as in 8,64,512" r0.json --gpus 8,
refused "a trace is missing"
expect 2 "$FLOPCAST" trace scale r0.json
says err "--topology NAME is needed"
expect 2 "$FLOPCAST" trace shrink r0.json
says err "'shrink' is nothing to do; there is: scale"
