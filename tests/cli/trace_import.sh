#!/usr/bin/env bash
# `flopcast trace import`: operators of a run without a GPU, as scenarios/fake_step.py writes them, on a cluster; and files that are none.
set -euo pipefail
# shellcheck source=/dev/null
. "$FLOPCAST_SOURCE_DIR/tests/cli/lib.bash"
cp "$FLOPCAST_SOURCE_DIR/tests/fuzz/corpus_ops/step.jsonl" .

expect 0 "$FLOPCAST" trace import step.jsonl --gpu h100 --out step.json.gz
says out "5 kernels" "on H100-SXM5-80GB; 1 collectives, of 8 ranks; 1 views"
expect 0 "$FLOPCAST" trace scale step.json.gz --topology h100-8x400g --gpus 8,64 --quiet
says out "on 8 GPUs H100-SXM5-80GB" "1 collectives, of them 1 over groups that grow" "all_reduce     64  33554432"

# A slower host, compressed operators.
gzip -k step.jsonl
expect 0 "$FLOPCAST" trace import step.jsonl.gz --gpu h100 --issue 5ms --out slow.json
expect 0 "$FLOPCAST" trace scale slow.json --topology h100-8x400g --quiet --format csv
awk -F, 'NR == 2 { exit !($2 > 0.025 && $2 < 0.035) }' out || fail "six launches of 5 ms: $(<out)"

# What cannot be: nothing is left behind.
expect 2 "$FLOPCAST" trace import step.jsonl --gpu h100 --out step.txt
says err "--out FILE.json or FILE.json.gz is needed"
expect 2 "$FLOPCAST" trace import step.jsonl --out step.json
says err "--gpu NAME is needed"
expect 2 "$FLOPCAST" trace import step.jsonl --gpu h100 --issue 5 --out a.json
expect 2 "$FLOPCAST" trace import "$FLOPCAST_SOURCE_DIR/tests/fuzz/corpus_ops/cut.jsonl" --gpu h100 --out cut.json
says err "cut.jsonl:1:"
[[ ! -e cut.json ]] || fail "half a trace"
expect 2 "$FLOPCAST" trace import absent.jsonl --gpu h100 --out a.json

# The script is Python; it needs PyTorch to run.
! command -v python3 >/dev/null || python3 -c 'import ast, sys; ast.parse(open(sys.argv[1]).read())' "$FLOPCAST_SOURCE_DIR/scenarios/fake_step.py" ||
    fail "scenarios/fake_step.py"
