#!/usr/bin/env bash
# `flopcast validate --open`: the rows that are off and not explained, by suspected cause.
set -euo pipefail
# shellcheck source=/dev/null
. "$FLOPCAST_SOURCE_DIR/tests/cli/lib.bash"

scenario tiny.yaml
cluster=$FLOPCAST_SOURCE_DIR/topologies/clusters/dgx-1v-ib.yaml
cat >runs.csv <<CSV
id,model,topology,gpus,strategy,micro_batch,seq_len,precision,tokens_per_s_per_gpu,status,suspected_cause
small,tiny.json,$cluster,8,ddp,2,128,fp16_mixed,100000,,
large,tiny.json,$cluster,32,ddp,2,128,fp16_mixed,50000,open,the network is not known
other,tiny.json,$cluster,8,ddp,4,128,fp16_mixed,50000,open,the network is not known
alone,tiny.json,$cluster,16,ddp,8,128,fp16_mixed,50000,open,
good,tiny.json,$cluster,8,ddp,16,128,fp16_mixed,100000,,
CSV
expect 0 "$FLOPCAST" validate --measurements runs.csv --rows --where "id IN ('small', 'large')"
ratio=$(awk '$1 == "large" { print $(NF - 3) }' out)
[[ $ratio == [+-]* ]] || fail "no ratio in $(<out)"
# Open rows alone, a cause once above its rows; the ratio is still the one to the smallest cluster, whose row is not open.
expect 0 "$FLOPCAST" validate --measurements runs.csv --open
says out "3 runs whose prediction is off" "No cause is suspected."
[[ $(grep -c '^the network is not known$' out) == 1 ]] || fail "the cause: $(<out)"
[[ $(awk '$1 ~ /^(small|large|other|alone|good)$/ { print $1 }' out | sort | tr '\n' ' ') == "alone large other " ]] || fail "rows: $(<out)"
[[ $(awk '$1 == "large" { print $(NF - 1) }' out) == "$ratio" ]] || fail "ratio is not $ratio: $(<out)"
expect 0 "$FLOPCAST" validate --measurements runs.csv --open --where "id = 'other'"
[[ $(grep -c ' DDP ' out) == 1 ]] || fail "--where beside --open: $(<out)"

sed 's/,open,$/,closed,/' runs.csv >bad.csv
expect 2 "$FLOPCAST" validate --measurements bad.csv --open
says err "bad.csv:5:1: error: status is 'closed'; write open, or nothing"
sed 's/,open,the/,,the/' runs.csv >bad.csv
expect 2 "$FLOPCAST" validate --measurements bad.csv
says err "bad.csv:3:1: error: a suspected_cause, but status is not open"

# The project's own table, and its tables of collectives: each that is open has a cause (one source, to be quick).
expect 0 "$FLOPCAST" validate --open --where "id LIKE 'PTD%'"
says out "ResNeXt on 8 and 16 V100 loses 2 % more than here" "PTD-023"
! grep -q 'No cause is suspected' out || fail "$(<out)"
for file in training nccl_tables; do
    awk -F, '/^#/ { next } /,open,$/ { print; bad = 1 } END { exit bad }' "$FLOPCAST_SOURCE_DIR/results/measured/$file.csv" || fail "open without a cause in $file.csv"
done
