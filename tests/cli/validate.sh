#!/usr/bin/env bash
# `flopcast validate`: the project's own table, picked by SQL, as table, CSV, JSON and rows of the database; a user's table.
set -euo pipefail
# shellcheck source=/dev/null
. "$FLOPCAST_SOURCE_DIR/tests/cli/lib.bash"

where="id IN ('MOS24-059', 'MOS24-016', 'F8-010', 'KF-008')"
expect 0 "$FLOPCAST" validate --where "$where" --format csv --db a.db
for column in id used_in_fit status measured_tokens_per_s_per_gpu predicted_tokens_per_s_per_gpu measured_peak_bytes \
    predicted_peak_bytes reason; do
    head -n 1 out | tr -d '\r' | tr , '\n' | grep -qx "$column" || fail "no column $column in $(head -n 1 out)"
done
[[ $(wc -l <out) == 5 ]] || fail "not four rows: $(<out)"
grep '^F8-010,' out | grep -q 'not_simulated.*batch' || fail "a row that is not simulated must give its reason: $(<out)"
[[ $(ask "SELECT count(*) || ' rows, ' || count(predicted_tokens_per_s_per_gpu) || ' speeds' AS n FROM v_validation") == '4 rows, 2 speeds' ]] ||
    fail "the database holds something else"

expect 0 "$FLOPCAST" validate --where "$where" --rows
says out "MPT benchmarks" "all others" "not simulated:" "the batch is not published: F8-010" "MOS24-059"
# What ran on one node (MOS24-059, not MOS24-016 with 512 GPUs) stands by its stack too, with the row's own error.
error=$(awk '$1 == "MOS24-059" { sub(/^[+]/, "", $9); print $9 }' out)
[[ $(awk '/by stack profile/,/^$/' out | awk '$1 == "composer" { print $2, $3, $4 }') == "yes 1 $error" ]] ||
    fail "the node's error is not $error: $(<out)"
# Each reason stands once, with all of its rows, from the first row of the table on.
expect 0 "$FLOPCAST" validate --where "id IN ('MEGH-001', 'F8-009', 'F8-010', 'KF-008')"
[[ $(sed -n '/^not simulated:$/,$p' out) == "not simulated:
  the model's shape is not published: MEGH-001 KF-008
  the batch is not published: F8-009 F8-010" ]] || fail "not simulated: $(<out)"
expect 0 "$FLOPCAST" validate --where "$where" --format json
[[ $(grep -c '"id": "' out) == 4 ]] || fail "not four objects: $(<out)"
expect 0 "$FLOPCAST" validate --where "1 = 0" --format json
[[ $(<out) == '[]' ]] || fail "no rows are an empty array"
expect 0 "$FLOPCAST" validate --where "1 = 0"
says out "training.csv' has no run that fits --where"
expect 2 "$FLOPCAST" validate --source 'no such'
says err "--source: error: no run fits 'no such'; there are the sources "
expect 2 "$FLOPCAST" validate --where '(WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT max(x) FROM c) > 0'
says err "takes too long; write a simpler condition"

# Intervals: by runs of other makers, of three makers at least.
expect 0 "$FLOPCAST" validate --where "id IN ('MOS24-059', 'MOS24-016')" --format csv --db b.db
head -n 1 out | grep -q ',predicted_low,predicted_high,' || fail "columns: $(head -n 1 out)"
cp out first
OMP_NUM_THREADS=1 expect 0 "$FLOPCAST" validate --where "id IN ('MOS24-059', 'MOS24-016')" --format csv
cmp out first || fail "the number of threads changes results"
expect 0 "$FLOPCAST" validate --where "id IN ('MOS24-059', 'KF-001', 'KF-002', 'TTA-001')"
# The last lines of the table are the sums of those above: four rows, of three families.
awk '/^source .* in fit/ { part = "rows" } !NF { part = "" }
    part == "rows" && /A100|H100|H200/ { rows += $(NF - 11); families++ }
    part == "rows" && /^all (that fits|others)/ { all += $(NF - 11) }
    END { exit !(rows == 4 && all == 4 && families == 3) }' out ||
    fail "sums: $(<out)"
expect 2 "$FLOPCAST" validate --where "id IN ('MOS24-059')" --sure new.yaml
says err "--sure: error: intervals need speeds, ratios and peaks of three makers at least"
if command -v gnuplot >/dev/null; then
    expect 0 "$FLOPCAST" plot validation --db b.db --out validation.svg
fi
# The figure's median is the table's, also of an even number of rows.
expect 0 "$FLOPCAST" validate --where "id IN ('MOS24-076', 'MOS24-077')" --db c.db
median=$(awk '$1 == "all" { print $7 }' out)
if command -v gnuplot >/dev/null; then
    expect 0 "$FLOPCAST" plot validation --db c.db --out c.svg
    says c.svg "of those that no fit rests on: $median %"
fi

# A user's own table: a row that makes no scenario is named, the other one runs.
scenario tiny.yaml
cat >runs.csv <<CSV
id,model,topology,gpus,strategy,train.micro_batch,seq_len,precision,tokens_per_s_per_gpu
a,tiny.json,$FLOPCAST_SOURCE_DIR/topologies/clusters/dgx-1v-ib.yaml,8,ddp,2,128,fp16_mixed,100000
b,tiny.json,$FLOPCAST_SOURCE_DIR/topologies/clusters/dgx-1v-ib.yaml,8,ddp,2,128,bf16_mixed,100000
CSV
expect 2 "$FLOPCAST" validate --measurements runs.csv --format csv
says err "runs.csv:3:precision:1:1: error: bf16_mixed multiplies in bf16"
[[ $(grep -c ',ok,' out) == 1 ]] || fail "row a must run: $(<out)"

# A name that means nothing to us is reported, and that no measurement is left then.
sed 's/tokens_per_s_per_gpu/measured/' runs.csv >unmeasured.csv
expect 0 "$FLOPCAST" validate --measurements unmeasured.csv --where "id = 'a'"
says err "unmeasured.csv: warning: column 'measured' is not read" "no column says what was measured, so nothing is compared; add tokens_per_s_per_gpu"
# An own table and an own database.
expect 0 "$FLOPCAST" validate --measurements runs.csv --where "id = 'a'" --db own.db
if command -v gnuplot >/dev/null; then # without a source the model names the points
    expect 0 "$FLOPCAST" plot validation --db own.db --out own.svg
    says own.svg "tiny.json (1)"
fi

# A cell that the row's strategy does not read is reported, and the row runs.
sed 's/,strategy,/,strategy,zero_stage,/; s/,ddp,/,fsdp,2,/' runs.csv >unread.csv
expect 0 "$FLOPCAST" validate --measurements unread.csv --where "id = 'a'"
says err "unread.csv:2:zero_stage:1:1: warning: 'deepspeed.zero_optimization.stage' is not read where 'strategy' is fsdp"

# The default base has one token: a table that says no length would be compared with nonsense.
cut -d, -f1-5,8- runs.csv >short.csv
expect 2 "$FLOPCAST" validate --measurements short.csv --db none.db
[[ ! -e none.db ]] || fail "a table that cannot be read made a database"
says err "short.csv: error: no column 'micro_batch'; add it, or say with --base" "no column 'seq_len'"
expect 0 "$FLOPCAST" validate --measurements short.csv --base tiny.yaml --where "id = 'a'"
# Images have none.
cat >images.csv <<END
id,model,topology,gpus,strategy,precision,optimizer,micro_batch,tokens_per_s_per_gpu
x,$FLOPCAST_SOURCE_DIR/scenarios/models/resnet50.yaml,$FLOPCAST_SOURCE_DIR/topologies/clusters/dgx-1v-ib.yaml,8,ddp,fp32,sgd_momentum,32,300
END
expect 0 "$FLOPCAST" validate --measurements images.csv
# Tables as spreadsheets write them: with a mark before the text; with semicolons, which is reported once.
(printf '\xef\xbb\xbf' && cat runs.csv) >marked.csv
expect 0 "$FLOPCAST" validate --measurements marked.csv --where "id = 'a'"
tr , ';' <runs.csv >semicolons.csv
expect 2 "$FLOPCAST" validate --measurements semicolons.csv
says err "semicolons.csv:1:1: error: one column 'id;model;"
[[ $(wc -l <err) == 1 ]] || fail "one mistake, several messages: $(<err)"

# A fit to one's own runs, in a folder with their table alone.
mkdir -p own
own_runs() { # SPEED...: of four batches
    echo "id,model,topology,gpus,strategy,micro_batch,seq_len,precision,attention,used_in_fit,tokens_per_s_per_gpu"
    local batch
    for batch in 4 8 16 32; do
        echo "$batch,scenarios/models/gpt2.yaml,topologies/clusters/h100-8x400g.yaml,1,single_device,$batch,1024,bf16_mixed,flash,topologies/gpus/h100-sxm5-80gb.yaml,$1"
        shift
    done
}
own_runs 1 1 1 1 >own/training.csv
expect 0 "$FLOPCAST" validate --measurements own/training.csv --format csv
mapfile -t speeds < <(tr -d '\r' <out | awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "predicted_tokens_per_s_per_gpu") at = i; next } { print 0.95 * $at }')
own_runs "${speeds[@]}" >own/training.csv
expect 0 "$FLOPCAST" calibrate fit training --measured own
says out "gemm_sustained " " +- "
# Into a copy of the GPU's file: what was found, and nothing else.
expect 1 "$FLOPCAST" calibrate fit training --measured own --out none
says err "none/h100-sxm5-80gb.yaml: error: cannot write"
mkdir -p found
expect 0 "$FLOPCAST" calibrate fit training --measured own --out found
diff found/h100-sxm5-80gb.yaml "$FLOPCAST_SOURCE_DIR/topologies/gpus/h100-sxm5-80gb.yaml" >diff.txt || true
[[ $(sed -n 's/^< \([a-z_]*\): .*/\1/p' diff.txt | sort | tr '\n' ' ') == *"gemm_sustained "* ]] || fail "$(<diff.txt)"
says diff.txt "kind: fitted, std_error: " "/own/training.csv with used_in_fit: H100"
expect 0 "$FLOPCAST" topology found/h100-sxm5-80gb.yaml
# Of two files with one name the second would replace the first.
mkdir -p two
cp "$FLOPCAST_SOURCE_DIR/topologies/gpus/h100-sxm5-80gb.yaml" two/
sed 's,^gpu: .*,gpu: h100-sxm5-80gb.yaml,' "$FLOPCAST_SOURCE_DIR/topologies/nodes/dgx-h100-like.yaml" >two/node.yaml
sed 's,^node: .*,node: node.yaml,' "$FLOPCAST_SOURCE_DIR/topologies/clusters/h100-8x400g.yaml" >two/cluster.yaml
sed "4,\$s,topologies/clusters/h100-8x400g.yaml,$PWD/two/cluster.yaml," own/training.csv >two/training.csv
expect 2 "$FLOPCAST" calibrate fit training --measured two --out found
says err "two/h100-sxm5-80gb.yaml: error: another file of the same name was written to found/h100-sxm5-80gb.yaml; rename one of the two"
# What is assumed on another card is found, too, where the rows name it. (The largest batch does not fit there.)
sed -i '$d; s,topologies/clusters/h100-8x400g.yaml,topologies/clusters/rtx-4090-1x100g.yaml,; s,topologies/gpus/h100-sxm5-80gb.yaml,rtx-4090-24gb.yaml: gemm_sustained,' own/training.csv
expect 0 "$FLOPCAST" validate --measurements own/training.csv --format csv
mapfile -t speeds < <(tr -d '\r' <out | awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "predicted_tokens_per_s_per_gpu") at = i; next } { print 0.9 * $at }')
awk -F, -v OFS=, -v speeds="${speeds[*]}" 'BEGIN { split(speeds, speed, " ") } NR > 1 { $NF = speed[NR - 1] } { print }' own/training.csv >own/new.csv && mv own/new.csv own/training.csv
expect 0 "$FLOPCAST" calibrate fit training --measured own --out found
[[ $(grep -c . <(sed -n 's/^gemm_sustained: {value: 0\.[4-8][0-9]*, kind: fitted, .*used_in_fit: rtx-4090-24gb.yaml"}$/x/p' found/rtx-4090-24gb.yaml)) == 1 ]] || fail "$(grep gemm_sustained found/rtx-4090-24gb.yaml) $(<out)"
# Names of flopcast's own files work for the table and the base; a base that is not there is reported once, not for every row.
expect 0 "$FLOPCAST" validate --measurements results/measured/training.csv --base results/measured/training.yaml --where "id = 'PTD-019'"
says out "PyTorch DDP benchmark"
expect 2 "$FLOPCAST" validate --measurements runs.csv --base absent.yaml
says err "absent.yaml:1:1: error: cannot open"
[[ $(wc -l <err) == 1 ]] || fail "one mistake, several messages: $(<err)"
expect 2 "$FLOPCAST" validate --where "gpus > AND"
says err "--where: error: 'gpus > AND' is no condition on the columns of the table"
expect 2 "$FLOPCAST" validate --where "1); DROP TABLE row; --"
expect 2 "$FLOPCAST" validate --measurements none.csv
says err "none.csv:1:1: error: cannot open"
expect 2 "$FLOPCAST" validate --format xml
expect 2 "$FLOPCAST" validate runs.csv

# Predictions before measurements: two runs of which nothing is measured are predicted; then one is measured 10 % faster than predicted, the other is not.
cat >unseen.csv <<'EOF'
id,source,model,topology,gpus,strategy,micro_batch,seq_len,tokens_per_s_per_gpu,first_sight,notes
seen,lab,gpt2,a100-80gb-8x200g,8,ddp,2,512,10000,,"measured, already"
a,lab,gpt2,a100-80gb-8x200g,1,single_device,2,512,,,"a note, with a comma"
b,lab,gpt2,a100-80gb-8x200g,8,ddp,2,512,,,
EOF
# As built from a commit, from one with changes, and from none that is known. The commit is no part of a program's digest.
commit=0123456789abcdef0123456789abcdef01234567
for build in "$commit" "$commit-dirty" unknown; do
    printf '%-48s' "$build" >commit.txt
    mkdir "${build/$commit/built}"
    cp "$FLOPCAST" "${build/$commit/built}"
    objcopy --update-section flopcast_commit=commit.txt "$(dirname -- "$FLOPCAST")/flopcast-lab" "${build/$commit/built}/flopcast-lab"
done
expect 2 built-dirty/flopcast validate --measurements unseen.csv --predict predicted.csv
says err "predicted.csv: error: this program was built with uncommitted changes ($commit-dirty)" "commit first and build again"
expect 2 unknown/flopcast validate --measurements unseen.csv --predict predicted.csv
says err "predicted.csv: error: of which commit this program was built is unknown" "commit first and build again"
[[ ! -e predicted.csv ]] || fail "predictions that nobody can make again"
expect 2 built/flopcast validate --measurements unseen.csv --uncommitted
says err "--uncommitted is for --predict FILE.csv"
# A trial says what it is, and is no first sight.
expect 0 unknown/flopcast validate --measurements unseen.csv --predict trial.csv --uncommitted
grep -qx '# commit unknown with uncommitted changes: no first sight' trial.csv || fail "no word of it: $(<trial.csv)"
sed 's/^a,lab.*/a,lab,gpt2,a100-80gb-8x200g,1,single_device,2,512,10000,trial.csv,/' unseen.csv >tried.csv
expect 2 "$FLOPCAST" validate --measurements tried.csv
says err "tried.csv:3" "'trial.csv' was predicted with uncommitted changes, so it is no first sight; leave first_sight empty"
expect 0 built/flopcast validate --measurements unseen.csv --predict predicted.csv
grep -qx "# commit $commit" predicted.csv || fail "no commit: $(<predicted.csv)"
says out "2 predictions in 'predicted.csv'"
[[ $(grep -v '^#' predicted.csv | head -1) == id,tokens_per_s_per_gpu,tflops_per_gpu,step_time_s,peak_allocated_bytes,peak_reserved_bytes,oom,predicted_by,inputs ]] ||
    fail "more than ids and predictions: $(<predicted.csv)"
grep -qE '^a,.*,no,flopcast [0-9.]+ [0-9a-f]{16},[0-9a-f]{32}$' predicted.csv || fail "no version and digests: $(<predicted.csv)"
expect 2 built/flopcast validate --measurements unseen.csv --predict predicted.csv
says err "there already"
expect 2 built/flopcast validate --measurements unseen.csv --where "id = 'seen'" --predict none.csv
says err "every row is measured already"
[[ ! -e none.csv ]] || fail "a file of no prediction"
speed=$(grep '^a,' predicted.csv | awk -F, '{ print $(NF - 7) }')
mkdir -p elsewhere
awk -v speed="$speed" 'BEGIN { FS = OFS = "," } $1 == "a" { $9 = speed * 1.1; $10 = "predicted.csv" } { print }' unseen.csv >elsewhere/measured.csv
cp predicted.csv elsewhere/
# Another optimizer stands for the program of another day. 1 / 1.1 - 1 = -9.1 %.
printf 'name: today\ncluster: {gpus: 8}\nrun: {steps: 1, warmup_steps: 1, seed: 1}\ntrain: {optimizer: sgd}\n' >today.yaml
expect 0 "$FLOPCAST" validate --measurements elsewhere/measured.csv --base today.yaml
[[ $(awk '/^first: errors of predictions/ { part = 1 } !NF { part = 0 } part && $1 == "lab" { print $2, $3, ($6 > -9.0) }' out) == "1 -9.1 1" ]] ||
    fail "first sight: $(<out)"
sed 's/^a,lab/c,lab/' elsewhere/measured.csv >elsewhere/other.csv
expect 2 "$FLOPCAST" validate --measurements elsewhere/other.csv
says err "other.csv:3" "'predicted.csv' has no prediction of 'c'"
