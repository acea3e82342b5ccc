#!/usr/bin/env bash
# The version of sim/VERSION heads sim/CHANGELOG.md, is that of CITATION.cff, and stands in every run, fit, check and validation that a database holds.
set -euo pipefail
# shellcheck source=/dev/null
. "$FLOPCAST_SOURCE_DIR/tests/cli/lib.bash"

version=$(<"$FLOPCAST_SOURCE_DIR/sim/VERSION")
first=$(sed -n 's/^## //p' "$FLOPCAST_SOURCE_DIR/sim/CHANGELOG.md" | head -n 1)
[[ $first == "$version" ]] || fail "sim/CHANGELOG.md begins with $first, sim/VERSION is $version"

grep -qx "version: $version" "$FLOPCAST_SOURCE_DIR/CITATION.cff" || fail "CITATION.cff is of another version than sim/VERSION, $version"

scenario a.yaml 'sweep: [{cluster.gpus: [8, 16]}]'
expect 0 "$FLOPCAST" run a.yaml --db a.db --quiet
expect 0 "$FLOPCAST" waterfall a.yaml --db a.db
expect 0 "$FLOPCAST" run a.yaml --set cluster.gpus=8 --trace rank0.json --quiet
expect 0 "$FLOPCAST" calibrate check trace rank0.json --scenario a.yaml --set cluster.gpus=8 --db a.db
expect 0 "$FLOPCAST" collective all_reduce --topology dgx-1v-ib --gpus 8 --bytes 1M:4M
mv out log
expect 0 "$FLOPCAST" calibrate check log --topology dgx-1v-ib --db a.db
printf 'id,model,topology,gpus,strategy,micro_batch,seq_len,precision,tokens_per_s_per_gpu\n1,tiny.json,dgx-1v-ib,8,ddp,2,128,fp16_mixed,9000\n' >runs.csv
expect 0 "$FLOPCAST" validate --measurements runs.csv --db a.db
tables=0
for table in $(ask "SELECT m.name FROM sqlite_master AS m JOIN pragma_table_info(m.name) AS c ON c.name = 'version' WHERE m.type = 'table'"); do
    tables=$((tables + 1))
    others=$(ask "SELECT count(*) FROM $table WHERE version IS NOT '$version'")
    [[ $others == 0 ]] || fail "$others rows of $table are of another version"
done
((tables >= 2)) || fail "only $tables tables have a version"
for table in run explanation fit validation; do
    [[ $(ask "SELECT count(*) > 0 FROM $table WHERE version = '$version'") == 1 ]] || fail "no row of $table has the version"
done
# Every point is of such a run.
[[ $(ask "SELECT count(*) FROM point LEFT JOIN run ON run.id = run_id WHERE version IS NULL") == 0 ]] || fail "points without a version"
