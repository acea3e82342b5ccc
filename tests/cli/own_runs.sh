#!/usr/bin/env bash
# run --measured: predictions are shifted by what the simulation is off, their intervals are narrower, and what is no measurement is refused.
set -euo pipefail
# shellcheck source=/dev/null
. "$FLOPCAST_SOURCE_DIR/tests/cli/lib.bash"
scenario a.yaml 'noise: {gpu_speed_spread: 0, kernel_jitter: 0, network_jitter: 0, host_jitter: 0}' 'sweep: [{cluster.gpus: [8, 16, 64]}]'

column() { python3 -c "
import csv, sys
rows = list(csv.DictReader(open('$1', newline='')))
print(*(row['$2'] for row in rows))"; }

expect 0 "$FLOPCAST" run a.yaml --format csv
cp out plain
read -r eight _ < <(column plain tokens_per_s_per_gpu)
slow=$(awk "BEGIN { printf \"%.1f\", 0.9 * $eight }")
expect 0 "$FLOPCAST" run a.yaml --format csv --measured "cluster.gpus=8: $slow tokens/s"
cp out given
# What is simulated stays; intervals go down and are narrower, the nearer the more.
[[ $(column plain tokens_per_s_per_gpu) == "$(column given tokens_per_s_per_gpu)" ]] || fail "the simulation changed"
for end in low high; do
    paste <(column plain tokens_per_s_per_gpu_$end | tr ' ' '\n') <(column given tokens_per_s_per_gpu_$end | tr ' ' '\n') >$end
done
paste low high | awk '{ width = ($4 - $2) / ($3 - $1); bad += $4 >= $3 || width >= 1 || width < before; before = width }
    END { exit bad || NR != 3 }' || fail "intervals: $(paste low high)"
# The same speed as a step and of all GPUs.
expect 0 "$FLOPCAST" run a.yaml --format csv --measured "cluster.gpus=8: $(awk "BEGIN { printf \"%.3f\", 8 * $slow }") tokens/s/job"
[[ $(column out tokens_per_s_per_gpu_low | cut -c1-6) == "$(column given tokens_per_s_per_gpu_low | cut -c1-6)" ]] || fail "of the job: $(<out)"
expect 0 "$FLOPCAST" run a.yaml --measured "cluster.gpus=8: $slow tokens/s" --measured "cluster.gpus=16: $slow tokens/s"
says out "given what was measured" "simulated" "measured: cluster.gpus=8: $slow tokens/s; -10.0 % of what is simulated"
expect 0 "$FLOPCAST" run a.yaml --measured "cluster.gpus=8: $(awk "BEGIN { print 0.2 * $eight }") tokens/s"
says out "-80.0 % of what is simulated" "which is below 19 of 20 such jobs" "calibrate check trace"

expect 2 "$FLOPCAST" run a.yaml --measured "cluster.gpus=8: $(awk "BEGIN { print 8 * $eight }") tokens/s"
says err "of all GPUs it is tokens/s/job"
# A search shows what each of its best would do, given that.
expect 0 "$FLOPCAST" tune a.yaml --max-batch 2 --set cluster.gpus=8 --measured "cluster.gpus=8: $slow tokens/s"
says out "given what was measured" "measured: cluster.gpus=8: $slow tokens/s; "

# Months of a step that is as much slower.
expect 0 "$FLOPCAST" goodput a.yaml --set cluster.gpus=8 --days 1 --format csv
read -r step < <(column out step_time_s)
expect 0 "$FLOPCAST" goodput a.yaml --set cluster.gpus=8 --days 1 --format csv --measured "cluster.gpus=8: $slow tokens/s"
read -r given < <(column out step_time_s)
awk "BEGIN { exit !($given > 1.08 * $step && $given < 1.12 * $step) }" || fail "months of $step s given 10 % less speed: $given"
expect 0 "$FLOPCAST" goodput a.yaml --set cluster.gpus=8 --days 1 --measured "cluster.gpus=8: $slow tokens/s"
says out "given what was measured" "measured: cluster.gpus=8: $slow tokens/s; -10.0 % of what is simulated"

expect 2 "$FLOPCAST" run a.yaml --measured "7000 tokens/s"
says err "settings, a colon, and a number with its unit are wanted"
expect 2 "$FLOPCAST" run a.yaml --measured "cluster.gpus=8: fast tokens/s"
says err "units: tokens/s, tokens/s/job, s, ms, TFLOPS"
expect 2 "$FLOPCAST" run a.yaml --measured "cluster.gpus=8: 700 images/s"
says err "this model counts tokens; write tokens/s, s, ms or TFLOPS"
expect 2 "$FLOPCAST" run a.yaml --measured "train.micro_batch=1: 7000 tokens/s"
says err "the scenario has 3 points with that; say in it which one was measured"
expect 2 "$FLOPCAST" run a.yaml --measured "cluster.gpu=8: 7000 tokens/s"
says err "did you mean"
expect 2 "$FLOPCAST" run a.yaml --measured "eight: 7000 tokens/s"
says err "'eight' is no setting; KEY=VALUE is wanted"
expect 2 "$FLOPCAST" run a.yaml --measured "cluster.gpus=8 train.micro_batch=1000000: 7000 tokens/s"
says err "simulated, this is out of memory, so there is no speed to compare"
for command in run goodput; do
    expect 2 "$FLOPCAST" "$command" a.yaml --db a.db --measured "cluster.gpus=8: 7000 tokens/s"
    says err "--db keeps what is simulated"
    [[ ! -e a.db ]] || fail "$command made a database"
done
expect 2 "$FLOPCAST" run a.yaml --plan --measured "cluster.gpus=8: 7000 tokens/s"
