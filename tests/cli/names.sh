#!/usr/bin/env bash
# The names that `flopcast files` prints, in a user's own files: a scenario, a cluster, a table of runs and --set may hold them in any folder,
# a file beside them comes first, and a path that leads nowhere is answered with the name that would be right.
set -euo pipefail
# shellcheck source=/dev/null
. "$FLOPCAST_SOURCE_DIR/tests/cli/lib.bash"
mkdir -p mine
cat >mine/a.yaml <<'YAML'
name: a
model: scenarios/models/gpt2.yaml
cluster: {topology: topologies/clusters/dgx-1v-ib.yaml, gpus: 8}
train: {micro_batch: 2, seq_len: 128, precision: fp16_mixed}
strategy: ddp
run: {steps: 1, warmup_steps: 0}
YAML
expect 0 "$FLOPCAST" run mine/a.yaml --format csv
says out "DGX-1V"
expect 0 "$FLOPCAST" run mine/a.yaml --format csv --set model=scenarios/models/gpt2-medium.yaml
says out ",354823168,"
printf 'id,model,topology,gpus,strategy,micro_batch,seq_len,precision,tokens_per_s_per_gpu\n' >mine/runs.csv
printf '1,scenarios/models/gpt2.yaml,topologies/clusters/dgx-1v-ib.yaml,8,ddp,2,128,fp16_mixed,9000\n' >>mine/runs.csv
expect 0 "$FLOPCAST" validate --measurements mine/runs.csv --rows
says out "gpt2"

# A cluster of one's own on a node that came along; the file beside the scenario wins over flopcast's of that name.
sed -e 's#node: .*#node: topologies/nodes/dgx-1v-like.yaml#' -e 's#^name: .*#name: own#' \
    "$FLOPCAST_SOURCE_DIR/topologies/clusters/dgx-1v-ib.yaml" >mine/own.yaml
expect 0 "$FLOPCAST" topology mine/own.yaml
says out "cluster own" "node DGX-1V"
mkdir -p mine/topologies/clusters
cp mine/own.yaml mine/topologies/clusters/dgx-1v-ib.yaml
expect 0 "$FLOPCAST" run mine/a.yaml --format csv
says out ",own,"

# Copies, whose paths lead nowhere, and short names.
cp "$FLOPCAST_SOURCE_DIR/topologies/clusters/dgx-1v-ib.yaml" copy.yaml
expect 2 "$FLOPCAST" topology copy.yaml
says err "copy.yaml:3:7: error: cannot open '../nodes/dgx-1v-like.yaml': No such file or directory; paths are relative to the file that" \
    "flopcast's own is topologies/nodes/dgx-1v-like.yaml"
[[ $(wc -l <err) == 1 ]] || fail "one mistake, several messages: $(<err)"
cp "$FLOPCAST_SOURCE_DIR/scenarios/gpt2_ddp_v100.yaml" copy.yaml
expect 2 "$FLOPCAST" run copy.yaml
says err "cannot open 'models/gpt2.yaml': No such file or directory; paths are relative to the scenario file; flopcast's own is scenarios/models/gpt2.yaml"
expect 2 "$FLOPCAST" run gpt2_ddp_v100
says err "gpt2_ddp_v100:1:1: error: cannot open" "flopcast's own, scenarios/gpt2_ddp_v100.yaml"
expect 2 "$FLOPCAST" memory gpt2-xl
says err "MODEL is a model file, as scenarios/models/gpt2-xl.yaml"
expect 2 "$FLOPCAST" run nowhere.yaml
says err "name a file that exists and can be read"
if grep -q "own" err; then fail "a namesake of nowhere: $(<err)"; fi
