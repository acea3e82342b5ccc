#!/usr/bin/env bash
# `flopcast validate` of several tables: classes and verdicts, --source, results that are kept and printed again, the page, its figure.
set -euo pipefail
# shellcheck source=/dev/null
. "$FLOPCAST_SOURCE_DIR/tests/cli/lib.bash"

scenario tiny.yaml
cluster=$FLOPCAST_SOURCE_DIR/topologies/clusters/dgx-1v-ib.yaml
cat >first.csv <<CSV
id,source,model,topology,gpus,strategy,micro_batch,seq_len,precision,tokens_per_s_per_gpu,peak_reserved_bytes,oom,used_in_fit,not_simulated
a,Lab One,tiny.json,$cluster,8,ddp,2,128,fp16_mixed,100000,1e9,no,,
again,Lab One,tiny.json,$cluster,8,ddp,2,128,fp16_mixed,50000,,no,,
fitted,Lab One,tiny.json,$cluster,32,ddp,2,128,fp16_mixed,50000,,no,a.yaml,
gone,Lab One,tiny.json,$cluster,32,ddp,2,128,fp16_mixed,50000,,no,,nobody says how
CSV
cat >second.csv <<CSV
id,source,model,topology,gpus,strategy,micro_batch,seq_len,precision,tokens_per_s_per_gpu,oom
b,Lab Two,tiny.json,$cluster,1,single_device,2,128,fp16_mixed,100000,
big,Lab Two,tiny.json,$cluster,8,ddp,1000000,128,fp16_mixed,100,no
oom,Lab Two,tiny.json,$cluster,8,ddp,1000000,128,fp16_mixed,,yes
CSV
both=(--measurements first.csv --measurements second.csv)
expect 0 "$FLOPCAST" validate "${both[@]}" --results kept.csv --db all.db
says out "by source" "by framework" "by layout" "by gpus" "by waiting" "one GPU" "simulated out of memory, but ran:" "  Lab Two: big" \
    "nobody says how: gone"
grep -q "simulated to fit" out && fail "no row is simulated to fit that does not"
sed '1,/^by source/d' out >simulated
# Rows, not simulated, speeds; of Lab One a fit rests on one of four.
[[ $(awk '/^by source/ { part = 1 } !NF { part = 0 } part && /^(Lab|all)/ { print $1, $2, $3, $4, $5, $6, $7 }' out) == "Lab One yes 1 0 1"*"Lab One no 3 1 2"*"Lab Two no 3 0 1"* ]] || fail "$(<out)"
[[ $(ask "SELECT group_concat(id || ' ' || table_file || ' ' || layout, ', ') AS n FROM v_validation WHERE layout <> '' AND gpus < 32" all.db) == \
    "a first.csv DP, again first.csv DP, b second.csv one GPU, big second.csv DP, oom second.csv DP" ]] || fail "$(ask "SELECT * FROM v_validation" all.db)"
if command -v gnuplot >/dev/null; then
    expect 0 "$FLOPCAST" plot validation_sources --db all.db --out sources.svg
    says sources.svg "4 runs of 2 sources; 1 simulated out of memory, but ran" "3 runs, median"
fi

# The same again, without a simulation; a part of it.
expect 0 "$FLOPCAST" validate --from kept.csv
says out "Predicted: 7 rows by build " "Stale, because something else would go in today: 0 rows."
[[ ! -s err ]] || fail "nothing is stale: $(<err)"
sed '1,/^by source/d; /^Predicted: /,$d' out | sed '$d' >again
# Of three rows the error of what is found is that of a flat minimum: the last digits that are kept decide it.
flat() { sed 's/ +- [0-9.]*, filed/, filed/' "$1"; }
[[ $(flat simulated) == "$(flat again)" ]] || fail "kept results print otherwise: $(diff simulated again)"
sed 's/"n_layer": 2/"n_layer": 3/' tiny.json >other.json
mv tiny.json whole.json
mv other.json tiny.json
expect 0 "$FLOPCAST" validate --from kept.csv
says out "Stale, because something else would go in today: 6 rows: a, again, fitted, b, big, oom."
says err "first.csv: warning: 3 rows of it would be predicted from other settings, hardware, stack profiles or fitted numbers today (a, again, fitted)"
mv whole.json tiny.json
expect 0 "$FLOPCAST" validate --from kept.csv --source two --by gpus
says out "by gpus" "all others"
grep -q "Lab One\|by layout" out && fail "--source two: $(<out)"
expect 0 "$FLOPCAST" validate "${both[@]}" --source 'FIRST.*' --format csv
[[ $(wc -l <out) == 5 ]] || fail "--source of a table: $(<out)"
expect 2 "$FLOPCAST" validate "${both[@]}" --source none
says err "--source"

# The page: what stands between the markers is written anew, the rest stays; writing it twice changes nothing.
printf 'Before.\n\n<!-- begin: written by flopcast validate --page -->\nold\n<!-- end -->\n\nAfter.\n' >page.md
expect 0 "$FLOPCAST" validate --from kept.csv --page page.md
[[ $(head -n 1 page.md) == "Before." && $(tail -n 1 page.md) == "After." && $(grep -c '^old' page.md) == 0 ]] || fail "$(<page.md)"
says page.md "| Lab One (in fits) | 1 | 0 | 1 |" "| Lab One | 3 | 1 | 2 |" "| all others | 6 | 1 | 3 |" "| vTrain |"
cp page.md once.md
expect 0 "$FLOPCAST" validate --from kept.csv --page page.md
cmp page.md once.md
printf 'One.\n<!-- begin summary: written by flopcast validate --page -->\n<!-- end -->\nTwo.\n<!-- begin accuracy: written by flopcast validate --page -->\n<!-- end -->\n<!-- begin peers: written by flopcast validate --page -->\n<!-- end -->\n' >parts.md
expect 0 "$FLOPCAST" validate --from kept.csv --page parts.md
says parts.md "No published run was predicted blind." "Today 3 that no fit rests on are at " "| MosaicML, other models: left out | - | - | - | - | - | - |" \
    "Verdicts fits / out of memory are right for " "1 of 1 that ran out of memory" "| SimuMax, B200 | SimuMax 4dcaae5 (v1.2) | - |"
[[ $(head -n 1 parts.md) == One. && $(grep -c '^Two' parts.md) == 1 ]] || fail "$(<parts.md)"
# Of rows that a peer predicts, whose ratios are to rows of the whole table.
{
    head -n 2 first.csv
    for id in $(seq 40); do sed -n "2s/^a,Lab One/f$id,Lab $id/p" first.csv; done
    sed -n '2s/^a,Lab One/SMX-001,Peers/p' first.csv
    sed -n '2s/^a,Lab One,tiny.json,\([^,]*\),8/SMX-005,Peers,tiny.json,\1,16/p' first.csv
} >third.csv
expect 0 "$FLOPCAST" validate --measurements third.csv --page parts.md
grep -qE '^\| SimuMax, B200 \| SimuMax 4dcaae5 \(v1.2\) \| - \| \| \| [0-9.]+ / [0-9.]+ \| [0-9.]+ / [0-9.]+ \| [0-2] of 2 \|$' parts.md || fail "peers: $(grep SimuMax parts.md)"
# Any table of the page alone, by its name.
printf '<!-- begin framework: written by flopcast validate --page -->\n<!-- end -->\n' >one.md
expect 0 "$FLOPCAST" validate --from kept.csv --page one.md
says one.md "### By framework" "| no stack profile | 6 | 1 | 3 |"
sed 's/begin peers/begin pears/' parts.md >unknown.md
expect 2 "$FLOPCAST" validate --from kept.csv --page unknown.md
printf 'no markers\n' >bare.md
expect 2 "$FLOPCAST" validate --from kept.csv --page bare.md
says err "bare.md: error: has no lines '<!-- begin: written by flopcast validate --page -->' and '<!-- end -->'"
[[ $(<bare.md) == "no markers" ]] || fail "a page without markers was changed"

# A table that has changed since is reported.
sed -i 's/^b,Lab Two\(.*\),2,128/b,Lab Two\1,4,128/' second.csv
expect 0 "$FLOPCAST" validate --from kept.csv
says err "second.csv: warning: 0 rows not in 'kept.csv', 1 with other settings there"
says out "its settings have changed since: b"

expect 2 "$FLOPCAST" validate --all --measurements first.csv
expect 2 "$FLOPCAST" validate "${both[@]}" --predict predicted.csv
expect 2 "$FLOPCAST" validate --from kept.csv --all
expect 2 "$FLOPCAST" validate --from first.csv
says err "first.csv: error: no column 'file'; this is no file that"
expect 2 "$FLOPCAST" validate --by colour
expect 2 "$FLOPCAST" validate --measurements first.csv --measurements none.csv
says err "none.csv:1:1: error: cannot open"
