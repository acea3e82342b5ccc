#!/usr/bin/env bash
# --measured, and a scenario's list 'measured': predictions are shifted by what the simulation is off, their intervals are narrower, and what is no measurement is refused.
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
# A database keeps what is simulated, and beside it what was measured and what that makes of it; without any that goes.
expect 0 "$FLOPCAST" run a.yaml --db plain.db --quiet
expect 0 "$FLOPCAST" run a.yaml --db a.db --quiet --measured "cluster.gpus=8: $slow tokens/s"
point='SELECT gpus, tokens_per_s_per_gpu, tokens_per_s_per_gpu_low, tokens_per_s_per_gpu_high FROM point ORDER BY gpus'
[[ $(ask "$point" plain.db) == "$(ask "$point")" ]] || fail "points with a measurement: $(ask "$point")"
given="SELECT gpus, coalesce(round(measured, 3), '-') AS measured, low < middle AND middle < high AND middle < 1 AS ordered
    FROM point LEFT JOIN given ON point.id = point_id ORDER BY gpus"
[[ $(ask "$given" | tr '\n' ' ') == '8 0.9 1 16 - 1 64 - 1 ' ]] || fail "given: $(ask "$given")"
expect 0 "$FLOPCAST" plot scaling --db a.db --out a.svg
says a.svg "Triangle: measured" "given that"
expect 0 "$FLOPCAST" merge a.db --into into.db
[[ $(ask 'SELECT count(*) AS n FROM given' into.db) == 3 ]] || fail "merged without what was measured"
expect 0 "$FLOPCAST" run a.yaml --db a.db --quiet
[[ $(ask 'SELECT count(*) AS n FROM given') == 0 ]] || fail "what was measured stays without a measurement"
expect 0 "$FLOPCAST" plot scaling --db a.db --out a.svg
! grep -q "Triangle" a.svg || fail "a figure without a measurement has one"

# Both sides of a change, given what was measured as it is.
expect 0 "$FLOPCAST" whatif a.yaml --base cluster.gpus=16 --set train.micro_batch=1 --measured "cluster.gpus=8: $slow tokens/s"
says out "given what was measured" "measured: cluster.gpus=8: $slow tokens/s; -10.0 % of what is simulated"
expect 0 "$FLOPCAST" whatif a.yaml --base cluster.gpus=16 --set train.micro_batch=1 --format csv --measured "cluster.gpus=8: $slow tokens/s"
python3 - <<'END' || fail "whatif: $(<out)"
import csv
row = {r["quantity"]: r for r in csv.DictReader(open("out", newline=""))}
plain, given = row["tokens_per_s_per_gpu"], row["tokens_per_s_per_gpu_given"]
assert all(0.88 < float(given[side]) / float(plain[side]) < 0.98 for side in ("as_it_is", "changed"))
END

# The same in the file, of the job as the file has it: settings of the command line are not of what was measured.
{
    cat a.yaml
    printf 'measured:\n  - cluster.gpus=8: %s tokens/s\n' "$slow"
} >b.yaml
expect 0 "$FLOPCAST" run b.yaml --format csv
cmp -s out given || fail "measured in the file: $(<out)"
expect 0 "$FLOPCAST" run b.yaml --set train.micro_batch=1
says out "measured: cluster.gpus=8: $slow tokens/s; -10.0 % of what is simulated"
expect 0 "$FLOPCAST" waterfall b.yaml
says err "b.yaml:10:5: warning: 'measured' shifts what flopcast run, tune, whatif and goodput say; flopcast waterfall says what is simulated"
expect 2 "$FLOPCAST" goodput b.yaml --set cluster.gpus=8 --days 1 --db b.db
says err "b.yaml:10:5: error: what was measured shifts the months that are printed, and --db keeps what is simulated"
[[ ! -e b.db ]] || fail "goodput made a database"
bad() { # LINE REMEDY: of 'measured' in a file
    {
        cat a.yaml
        printf 'measured: %s\n' "$1"
    } >bad.yaml
    expect 2 "$FLOPCAST" run bad.yaml
    says err "$2"
}
bad 'fast' "bad.yaml:9:11: error: 'measured' is a list: lines of '- SETTINGS: VALUE UNIT'"
bad '[[1, 2]]' "bad.yaml:9:12: error: one measurement is '- SETTINGS: VALUE UNIT'"
bad '["7000 tokens/s"]' "bad.yaml:9:12: error: '7000 tokens/s': settings, a colon, and a number with its unit are wanted"
bad '["cluster.gpus=8: 7 l"]' "units: tokens/s, tokens/s/job, s, ms, TFLOPS"
bad '["train.micro_batch=1: 7000 tokens/s"]' "the scenario has 3 points with that; say in it which one was measured"
expect 2 "$FLOPCAST" run a.yaml --plan --measured "cluster.gpus=8: 7000 tokens/s"
