#!/usr/bin/env bash
# Traces of several runtimes and of PyTorch 2.8: who waits for what must not follow from a vendor's names, from how far the host is ahead, or from a
# stream's number.
set -euo pipefail
# shellcheck source=/dev/null
. "$FLOPCAST_SOURCE_DIR/tests/cli/lib.bash"

# make FILE KEY=VALUE...: 4 steps of `period` us. In each the host launches n kernels of `kernel` us, `gap` us apart by calls of `call` us, and an
# all_reduce on stream `comm` that takes `reduce` us; then it waits in `sync`, `sync_us` long. The GPU is `late` us behind the host. From launch `from`
# on a call takes `slow` us.
make() {
    local file=$1 given=()
    shift
    for word in "$@"; do given+=(-v "$word"); done
    awk -v period=14000 -v n=200 -v gap=10 -v call=3 -v kernel=50 -v reduce=3900 -v late=10 -v comm=20 -v launch=cudaLaunchKernel -v sync= -v sync_us=0 \
        -v nccl=ncclDevKernel_AllReduce_Sum_f32_RING_LL -v elements=100000000 -v from=-1 -v slow=0 "${given[@]}" '
    function put(cat, name, ts, dur, args) {
        printf "%s{\"ph\": \"X\", \"cat\": \"%s\", \"name\": \"%s\", \"pid\": 1, \"tid\": 1, \"ts\": %.3f, \"dur\": %.3f, \"args\": {%s}}\n", comma, cat, name, ts, dur, args
        comma = ","
    }
    BEGIN {
        print "{\"distributedInfo\": {\"rank\": 0, \"world_size\": 8}, \"traceEvents\": ["
        for (s = 0; s < 4; s++) {
            put("user_annotation", "ProfilerStep#" s, s * period, period - 1, "")
            at = s * period
            for (i = 0; i <= n; i++) {
                took = from >= 0 && i >= from ? slow : call
                put("cuda_runtime", launch, at, took, "\"correlation\": " ++c)
                reduces = i == n
                args = "\"correlation\": " c ", \"stream\": " (reduces ? comm : 7)
                if (reduces)
                    args = args ", \"Collective name\": \"allreduce\", \"In msg nelems\": " elements ", \"Out msg nelems\": " elements \
                        ", \"Group size\": 8, \"dtype\": \"Float\", \"Process Group Name\": \"0\", \"Process Group Ranks\": \"[0, 1, 2, 3, 4, 5, 6, 7]\""
                put("kernel", reduces ? nccl : "elementwise_kernel", s * period + late + kernel * i, reduces ? reduce : kernel, args)
                at += gap + took - call
            }
            if (sync != "")
                put("cuda_runtime", sync, at, sync_us, "\"correlation\": " ++c)
        }
        print "]}"
    }' >"$file"
}
steps() { # steps FILE ARGUMENT...: ms of step 2 on each number of GPUs
    local file=$1
    shift
    expect 0 "$FLOPCAST" trace scale "$file" --step 2 --topology h100 --quiet --format csv "$@"
    awk -F, 'NR > 1 { printf "%s%.3f", (NR > 2 ? " " : ""), 1e3 * $2 }' out
}

# The host waits for the device, by whatever name: 8 GPUs are faster than in the trace, and the more there are the longer the all_reduce takes.
make cuda.json sync=cudaDeviceSynchronize sync_us=11900
cuda=$(steps cuda.json --gpus 8,64,512)
# What the device is waited for is an all_reduce: its time is exposed.
awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) c[$i] = i }
    NR == 2 { exit !($c["exposed_comm_s"] > 1.6e-3 && $c["host_bound_s"] < 0.2e-3) }' out || fail "exposed: $(<out)"
read -r few more most <<<"$cuda"
awk -v a="$few" -v b="$more" -v c="$most" 'BEGIN { exit !(10.1 < a && a < b && b < c && c < 13.9) }' || fail "cuda: $cuda"
for names in hipLaunchKernel:hipDeviceSynchronize hipModuleLaunchKernel:hipStreamSynchronize hipExtModuleLaunchKernel:hipDeviceSynchronize cuLaunchKernel:cuCtxSynchronize \
    cudaLaunchKernelExC:cudaDeviceSynchronize cuLaunchKernelEx:cuStreamSynchronize cudaLaunchKernel_ptsz:cudaStreamSynchronize_ptsz hipLaunchKernel:hipFree; do
    make names.json launch="${names%:*}" sync="${names#*:}" sync_us=11900
    [[ $(steps names.json --gpus 8,64,512) == "$cuda" ]] || fail "$names: $(steps names.json --gpus 8,64,512), not $cuda"
done
for kernel in 'ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)' rccl_main_kernel 'void mscclKernel_Sum_float_LL<false>' ncclSymkDevKernel_AllReduce_AGxLL_R; do
    make kernels.json launch=hipLaunchKernel sync=hipDeviceSynchronize sync_us=11900 nccl="$kernel"
    [[ $(steps kernels.json --gpus 8,64,512) == "$cuda" ]] || fail "$kernel: $(steps kernels.json --gpus 8,64,512), not $cuda"
done

# A collective on the compute stream, as PyTorch 2.8 and later launch it with async_op=False: the stream goes on after it, so the step is 10 ms of
# kernels and it. Alone on 8 GPUs the step is the same as beside nothing on a separate stream.
make same.json sync=cudaDeviceSynchronize sync_us=11900 comm=7
[[ $(steps same.json --gpus 8,64,512) == "$cuda" ]] || fail "compute stream: $(steps same.json --gpus 8,64,512), not $cuda"
expect 0 "$FLOPCAST" trace scale same.json --step 2 --topology h100 --quiet --recorded --format csv
awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) c[$i] = i }
    NR == 2 { exit !($c["exposed_comm_s"] > 3.89e-3 && $c["exposed_comm_s"] < 3.91e-3 && $c["compute_s"] > 9.99e-3 && $c["compute_s"] < 10.01e-3) }' out || fail "recorded: $(<out)"

# However far the GPU is behind, calls of 3 us do not block: the host's 15 ms a step.
for late in 0 10000 20000 28000 31000 40000; do
    make ahead.json period=15000 n=499 gap=30 kernel=10 reduce=9900 late=$((late + 5)) elements=1000000
    [[ $(steps ahead.json) == 15.000 ]] || fail "$late us behind: $(steps ahead.json)"

done

# Blocked it is where a call takes long and a thousand launches are on their way. The GPU works for 72 ms a step, the host for 15 of them (1,200 x
# (7 + 5) us) and is blocked for the rest: a GPU that streams 2.4 times as fast shows it.
make blocked.json period=72000 n=1199 kernel=60 reduce=60 late=61440 from=0 slow=53
recorded=$(steps blocked.json --recorded)
awk -v a="$recorded" 'BEGIN { exit !(a > 71.9 && a < 72.1) }' || fail "blocked: $recorded"
faster=$(steps blocked.json --gpu b200 --traced-gpu h100)
awk -v a="$faster" 'BEGIN { exit !(a > 20 && a < 40) }' || fail "on a faster GPU: $faster"
