#!/usr/bin/env bash
# `flopcast waterfall`: the waterfall of a scenario, its picture, and mistakes.
set -euo pipefail
# shellcheck source=/dev/null
. "$FLOPCAST_SOURCE_DIR/tests/cli/lib.bash"
scenario a.yaml 'sweep: [{cluster.gpus: [8, 16, 32]}, {train.micro_batch: [32, 64]}]'

# Two curves, each from its smallest to its largest cluster; parts and their sum in the database.
expect 0 "$FLOPCAST" waterfall a.yaml --db a.db
says out "tiny.json DDP, batch 32, 8 -> 32 GPUs" "tiny.json DDP, batch 64, 8 -> 32 GPUs" allocator stragglers latency bandwidth contention host \
    rest sum "the last step on 32 GPUs" "transformer.h.#/mlp.c_fc"
cp out printed
[[ $(grep -c '^sum ' out) == 2 ]] || fail "not two waterfalls: $(<out)"
# The parts printed add up to the change in the heading, and are per cent of its first number; so are items of the step's length.
awk 'function off(a, b, by) { return a - b > by || b - a > by }
    / -> .* TFLOPS\/GPU$/ { from = $(NF - 3); to = $(NF - 1); sum = 0 }
    /^(allocator|stragglers|latency|bandwidth|contention|host|rest) / { sum += $2; bad += off(100 * $2 / from, $3, 0.06) }
    /^sum / { n++; bad += off(sum, $2, 0.004) + off(to - from, $2, 0.011) + off(100 * $2 / from, $3, 0.06) }
    /^the last step on/ { step_ms = 1000 * $(NF - 1) }
    /^(transformer|waits)/ { items++; bad += off(100 * $(NF - 2) / step_ms, $(NF - 1), 0.06 + 0.5 / step_ms + 0.02 * $(NF - 1)) } # times have two decimals
    END { exit bad || n != 2 || items < 10 }' out || fail "sums and shares: $(<out)"
expect 0 "$FLOPCAST" waterfall a.yaml --set train.micro_batch=32 --format csv
tr -d '\r' <out | awk -F, 'NR == 1 { head = $(NF - 5) $(NF - 1) $NF } /,collectives,/ { n++; bad += $NF !~ /^(latency|NIC|NVLink|channels)$/ || !($(NF - 5) > 0) || !($(NF - 1) > 0) }
    END { exit bad || n < 1 || head != "time_sbusbw_Bpsbound_by" }' || fail "collectives as CSV: $(<out)"
expect 0 "$FLOPCAST" waterfall a.yaml --db b.db
# The collectives of the large end, and what binds them; each's time is part of the step.
says out "not explained: measured curves of DDP and FSDP lose" "No cause above has it"
says out "its collectives, from when the last member has arrived:" "all_reduce of" "bound by" "hidden behind compute. They are bound by"
awk '/^the last step on/ { step_ms = 1000 * $(NF - 1) } /^all_reduce of/ { n++; off = 100 * $(7) * $(8) / step_ms - $(9); bad += off > 0.1 || off < -0.1 }
    END { exit bad || n < 2 }' out || fail "collectives: $(<out)"
sums=$(ask "SELECT count(*) || ' explanations off by ' || max(abs(lost - small_tflops_per_gpu + large_tflops_per_gpu) > 1e-9) AS n
  FROM (SELECT sum(lost_tflops_per_gpu) AS lost, small_tflops_per_gpu, large_tflops_per_gpu
    FROM explanation_part JOIN explanation ON id = explanation_id GROUP BY id)")
[[ $sums == '2 explanations off by 0' ]] || fail "in the database: $sums"
if command -v gnuplot >/dev/null; then
    expect 0 "$FLOPCAST" plot waterfall --db a.db --out a.svg
    says a.svg stragglers "32 GPUs" "batch 32" "batch 64"
    # Below the figure stands what was printed, of the curve that loses the larger share.
    sentence() { sed 's/<[^>]*>//g' "$1" | tr -s ' \n\t' ' ' | grep -o "$2" | head -n 1; } # FIGURE PATTERN
    printed() { [[ $1 && $(tr -s '\n' ' ' <printed) == *"$1"* ]] || fail "the figure says something else: $1"; }
    printed "$(sentence a.svg 'From 8 to 32 GPUs a GPU loses .* go to [^.]*\.')"
    # And breakdown says of a point what explain says of it, in the same words.
    expect 0 "$FLOPCAST" run a.yaml --db b.db --quiet --set cluster.gpus=32 --set train.micro_batch=32
    expect 0 "$FLOPCAST" plot breakdown --db b.db --out b.svg
    printed "$(sentence b.svg 'tiny.json DDP, batch 32, 32 GPUs: kernels alone take .* go to [^.]*\.')"
    says b.svg "<text>latency<" "<text>stragglers<" "<text>bandwidth and contention<"
    # All curves of the newest command and no older one's, each with what distinguishes it from the others.
    expect 0 "$FLOPCAST" waterfall a.yaml --set train.micro_batch=32 --set "train.seq_len=[128, 64]" --from 8 --to 16 --db a.db
    says out "batch 32, train.seq_len 128, 8 -> 16 GPUs" "batch 32, train.seq_len 64, 8 -> 16 GPUs"
    expect 0 "$FLOPCAST" plot waterfall --db a.db --out a.svg
    says a.svg "16 GPUs" "batch 32, train.seq_len 128" "batch 32, train.seq_len 64"
    ! grep -q "batch 64" a.svg || fail "a curve of an older explanation"
fi

expect 0 "$FLOPCAST" waterfall a.yaml --from 8 --to 16 --set train.micro_batch=32 --top 3
says out "8 -> 16 GPUs"
expect 2 "$FLOPCAST" waterfall a.yaml --set cluster.gpus=8
says err "a.yaml: error: no two sizes of the cluster to compare"
expect 0 "$FLOPCAST" waterfall a.yaml --from 16 # the scenario's own largest
says out "batch 32, 16 -> 32 GPUs"
# Without GradScaler, for which the host waits in every step.
expect 0 "$FLOPCAST" waterfall a.yaml --to 16 --set train.micro_batch=128 --set train.precision=fp32 --set run.warmup_steps=4
says out "batch 128, 8 -> 16 GPUs"
# Changes, as the heading says: a loss is below 0, and nothing has no sign.
says out "cause" "change"
grep -qE '^allocator  *-?0\.00[01]  *-?0\.0[0-2] ' out || fail "a steady step allocates nothing: $(<out)"
grep -q '^host  *0.000  *0.00 ' out || fail "host issues ahead here, so it takes nothing: $(<out)"
expect 2 "$FLOPCAST" waterfall a.yaml --from 32
says err "no two sizes of the cluster to compare; give --from and --to that differ"
expect 2 "$FLOPCAST" waterfall a.yaml --from 8 --to 12
says err "--from, --to:1:5: error: 12 GPUs leave a node"
expect 2 "$FLOPCAST" waterfall
expect 2 "$FLOPCAST" waterfall a.yaml --top many

# A curve that does not fit is left out; when none fits that is the error.
expect 0 "$FLOPCAST" waterfall a.yaml --from 8 --to 16 --set "train.micro_batch=[32, 16384]"
says out "batch 32, 8 -> 16 GPUs"
says err "warning: tiny.json DDP, batch 16384: out of memory on 8 GPUs; there is no speed to explain: compare larger clusters"
expect 2 "$FLOPCAST" waterfall a.yaml --from 8 --to 16 --set train.micro_batch=16384
says err "error: out of memory on 8 GPUs"

# A pipeline: its bubble is a cause, and what parallelism costs is said by what communicates; a job without one has no word of it.
! grep -q "bubble\|parallelism" printed || fail "a bubble without a pipeline"
expect 0 "$FLOPCAST" waterfall a.yaml --from 8 --to 16 --set strategy=megatron --set parallelism.pipeline=2 --set parallelism.tensor=2 \
    --set train.micro_batch=2 --set train.global_batch=32
says out "batch 2, 8 -> 16 GPUs" "what parallelism costs, mean over ranks:" "Stages wait for one another for" "(the bubble)"
cp out printed
awk '/^the last step on/ { exit } /^(bubble|tensor|pipeline|data) .* [0-9.]+ +[0-9.]+$/ { n++; sum += $NF } END { exit n != 4 || sum <= 0 || sum >= 100 }' out ||
    fail "what parallelism costs: $(<out)"
expect 0 "$FLOPCAST" waterfall a.yaml --from 8 --to 16 --set strategy=megatron --set parallelism.pipeline=2 --set parallelism.tensor=2 \
    --set train.micro_batch=2 --set train.global_batch=32 --db p.db --format csv
# The waterfall, the table and the database have the same; 4 and 2 micro-batches of 2 stages: a larger cluster has more bubble.
tr -d '\r' <out | grep -qE ',waterfall,bubble,-[0-9]' || fail "the bubble's part: $(grep bubble out)"
[[ $(ask "SELECT count(*) FROM explanation_part WHERE cause = 'bubble' AND lost_tflops_per_gpu > 0" p.db) == 1 ]] || fail "the bubble in the database"
