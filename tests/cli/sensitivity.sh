#!/usr/bin/env bash
# `flopcast sensitivity`: the table, the figure, and where it cannot be.
set -euo pipefail
# shellcheck source=/dev/null
. "$FLOPCAST_SOURCE_DIR/tests/cli/lib.bash"

scenario plain.yaml
expect 0 "$FLOPCAST" sensitivity plain.yaml --db a.db --top 3
says out "TFLOPS per GPU" "(--top " "All together, one standard deviation" "change nothing here"
narrow "$FLOPCAST" sensitivity plain.yaml --top 3
# So small a job waits for its host: what that costs comes first, and a fifth more of it takes about a fifth of the speed away.
grep -qE '^host +host\.\* +20\.0 +assumed' out || fail "the host is not there: $(cat out)"
# The numbers for programs are those of the database, with nothing left out.
expect 0 "$FLOPCAST" sensitivity plain.yaml --format csv
[[ $(head -n 1 out) == parameter,kind,spread,low_tflops_per_gpu,high_tflops_per_gpu,source* ]] || fail "columns: $(head -n 1 out)"
# The error is that of the number, as `topology` prints it, also of a share of 1: 0.8478 +- 0.027 is 3.2 %, and not the 21 % of its odds.
awk -F, '$1 == "node.nccl_efficiency" && $3 < 0.1 { found = 1 } END { exit !found }' out || fail "the error of a share: $(<out)"
rows=$(($(wc -l <out) - 1))
[[ $(ask "SELECT count(*) FROM sensitivity_part") == "$rows" ]] || fail "in the database: $(ask "SELECT count(*) FROM sensitivity_part"), not $rows"
# The largest effect first; the independent sum is that of the parts.
[[ $(ask "SELECT count(*) FROM (SELECT effect, lag(effect, 1, 9) OVER (ORDER BY position) AS before FROM (SELECT position, abs(ln(high_tflops_per_gpu / low_tflops_per_gpu)) AS effect FROM sensitivity_part)) WHERE effect > before + 1e-12") == 0 ]] ||
    fail "not in order"
[[ $(ask "SELECT abs(sqrt(sum(pow(ln(high_tflops_per_gpu / low_tflops_per_gpu) / 2, 2))) - independent) < 1e-12 FROM sensitivity_part JOIN sensitivity ON id = sensitivity_id") == 1 ]] ||
    fail "the sum of squares"
expect 0 "$FLOPCAST" sensitivity plain.yaml --format json
says out '"parameter": "host"'
if command -v gnuplot >/dev/null; then
    expect 0 "$FLOPCAST" plot sensitivity --db a.db --out a.svg
    says a.svg "What the prediction depends on" "host (assumed, 20 %)"
    expect 0 "$FLOPCAST" plot sensitivity --db a.db --scenario plain --out b.svg
    cmp a.svg b.svg || fail "another picture of the one scenario"
fi

expect 2 "$FLOPCAST" sensitivity plain.yaml --set "cluster.gpus=[8, 16]"
says err "2 points, but \`flopcast sensitivity\` is of one; set what is swept to one value, as in --set cluster.gpus=8"
FLOPCAST_SILENT_S=0 expect 2 "$FLOPCAST" sensitivity plain.yaml --set train.micro_batch=65536
says err "the point is out of memory"
if grep -E "of [0-9]+ runs" err; then fail "runs of what is out of memory"; fi
expect 2 "$FLOPCAST" plot sensitivity --db a.db --scenario other
says err "there is no run of scenario 'other'; there are: plain"
expect 2 "$FLOPCAST" plot sensitivity --db a.db --run 1
