#!/usr/bin/env bash
# A sweep that is killed with SIGKILL at ten random moments and started again each time ends with the rows of one that was not, bit for
# bit, and no stored point is simulated again. The same for Ctrl-C and SIGTERM, for a full disk, and for two programs at one sweep.
# RESUME_POINTS=1008: a sweep of Llama-2 7B on H100 instead of a tiny model's.
set -euo pipefail
# shellcheck source=/dev/null
. "$FLOPCAST_SOURCE_DIR/tests/cli/lib.bash"

if [[ ${RESUME_POINTS:-} == 1008 ]]; then
    points=1008 # 7 numbers of GPUs x 4 x 3 x 3 x 2 x 2
    file=$FLOPCAST_SOURCE_DIR/scenarios/llama2_7b_h100_fsdp.yaml
    sweep=(--set "fsdp.sharding_strategy=[FULL_SHARD, SHARD_GRAD_OP, HYBRID_SHARD, NO_SHARD]" --set "train.micro_batch=[1, 2, 4]"
        --set "train.activation_checkpointing=[none, full, selective]" --set "fsdp.backward_prefetch=[BACKWARD_PRE, BACKWARD_POST]"
        --set "fsdp.limit_all_gathers=[true, false]")
else
    points=96
    file=a.yaml
    scenario a.yaml 'sweep: [{train.micro_batch: [1, 2, 4, 4096]}, {ddp.bucket_cap: [1 MiB, 5 MiB, 25 MiB]}, {cluster.gpus: [8, 64, 256, 512]}, {run.seed: [1, 2]}]'
    sweep=()
fi
simulate() { "$FLOPCAST" run "$file" "${sweep[@]}" --format csv "$@"; } # simulate [OPTION...]

rows() { # rows DATABASE: all that a point's row says about its settings and results, exactly (quote() writes what reads back alike)
    local columns
    columns=$(ask "SELECT group_concat('quote(' || name || ')', ' || '' '' || ') FROM pragma_table_info('point')
        WHERE name NOT IN ('id', 'run_id', 'wall_s', 'hardware_id', 'model_id', 'config')" "$1")
    ask "SELECT $columns || ' ' || length(config) || ' ' || (SELECT group_concat(quote(coalesce(peak_bytes, required_bytes)))
        FROM memory WHERE point_id = point.id) || ' ' || (SELECT count(*) || quote(sum(reserved_bytes * time_s)) FROM timeline
        WHERE point_id = point.id) FROM point WHERE run_id = (SELECT max(id) FROM run) ORDER BY position" "$1"
}
witness() { ask 'SELECT id, position, quote(wall_s) FROM point ORDER BY id' "$1"; } # wall_s, real time, is never the same twice
complete() { # complete DATABASE: one run with all points, each simulated once
    [[ $(ask 'SELECT * FROM pragma_integrity_check' "$1") == ok ]] || fail "$1 is damaged"
    local seen
    seen=$(ask 'SELECT (SELECT count(*) FROM run), (SELECT points FROM run), count(*), count(DISTINCT identity), count(simulated_id) FROM point' "$1")
    [[ $seen == "1 $points $points $points 0" ]] || fail "runs, points, rows, distinct points, taken ones of $1: $seen"
    rows "$1" >killed.rows
    cmp whole.rows killed.rows || fail "the rows of $1 differ from those of a run that was not stopped"
}

expect 0 simulate
cp out whole.csv
began=${EPOCHREALTIME/./}
expect 0 simulate --db whole.db
took=$((${EPOCHREALTIME/./} - began)) # microseconds
cmp out whole.csv || fail "a run that is stored prints other numbers"
rows whole.db >whole.rows
[[ $(wc -l <whole.rows) == "$points" ]] || fail "$(wc -l <whole.rows) rows, not $points"

# Ten kills, spread over what is left each time. The next start says how many points it found.
RANDOM=18
kills=0
hits=0
while ((kills < 10)); do
    "$FLOPCAST" run "$file" "${sweep[@]}" --db killed.db --quiet 2>err & # no function: $! must be the program itself
    # between a fortieth and a ninth of the whole time, and the time that the program needs to begin
    microseconds=$((took / 40 + (took / 12) * RANDOM / 32768 + 30000))
    sleep "$(printf '%d.%06d' $((microseconds / 1000000)) $((microseconds % 1000000)))"
    kill -9 $! 2>/dev/null && hits=$((hits + 1))
    wait $! 2>/dev/null || true
    kills=$((kills + 1))
    : >"witness.$kills"
    [[ ! -s killed.db ]] || (witness killed.db) >"witness.$kills" 2>/dev/null || : # killed before there were tables
done
known=$(wc -l <witness.10)
expect 0 simulate --db killed.db
cmp out whole.csv || fail "a run that was stopped ten times prints other numbers"
((known == 0)) || says err "$known of $points points are in killed.db already and are not simulated again"
complete killed.db
witness killed.db >witness.end
for seen in witness.*; do
    [[ -z $(comm -13 <(sort witness.end) <(sort "$seen")) ]] || fail "points of $seen were simulated again: $(comm -13 <(sort witness.end) <(sort "$seen"))"
done
echo "killed $hits times; $known of $points points were stored before the last start"

# All there: nothing is simulated, nothing is written.
sum=$(cksum <killed.db)
expect 0 simulate --db killed.db
cmp out whole.csv || fail "a run that is taken from the database prints other numbers"
says err "$points of $points points are in killed.db already"
[[ $(cksum <killed.db) == "$sum" && ! -e killed.db-wal ]] || fail "the database was changed"

# Ctrl-C and SIGTERM: what is finished is kept, and the program ends by the signal.
stopped() { # stopped SIGNAL STATUS
    local status=0
    timeout --preserve-status -s "$1" "$(printf '%d.%06d' $((took / 3 / 1000000)) $((took / 3 % 1000000)))" \
        "$FLOPCAST" run "$file" "${sweep[@]}" --db "$1.db" >out 2>err || status=$?
    if ((status == 0)); then return; fi # it was faster than the first time
    [[ $status == "$2" ]] || fail "exit status $status after SIG$1: $(<err)"
    [[ ! -s out ]] || fail "a part of a sweep was printed: $(<out)"
    says err "ending after the points that are being simulated" "stopped; what is finished is in $1.db, and the same command goes on"
    [[ $(ask 'SELECT count(*) > 0 FROM v_unfinished' "$1.db") == 1 ]] || fail "nothing was kept"
    expect 0 simulate --db "$1.db"
    cmp out whole.csv || fail "after SIG$1 other numbers are printed"
    complete "$1.db"
}
stopped INT 130
[[ -z ${RESUME_POINTS:-} ]] || exit 0 # the rest does not depend on the size
stopped TERM 143

# A full disk (a limit on the size of files, which root cannot pass either) ends the sweep at the first point that it cannot store.
expect 0 simulate --db full.db --set cluster.gpus=8
limited() { (
    trap '' XFSZ
    ulimit -f $(($(stat -c %s full.db) / 1024 + 4))
    exec "$FLOPCAST" run "$file" --db full.db --quiet
); }
expect 1 limited
says err "full.db: error: cannot store the run" "free space on the disk"
[[ $(ask 'SELECT * FROM pragma_integrity_check' full.db) == ok ]] || fail "full.db is damaged"
expect 0 simulate --db full.db
cmp out whole.csv || fail "after a full disk other numbers are printed"

# Two programs at the same sweep and database: both print it whole, and it is stored once.
simulate --db two.db >one.csv 2>one.err &
first=$!
simulate --db two.db >two.csv 2>two.err || fail "the second of two: $(<two.err)"
wait $first || fail "the first of two: $(<one.err)"
cmp one.csv whole.csv || fail "the first of two prints other numbers"
cmp two.csv whole.csv || fail "the second of two prints other numbers"
complete two.db
[[ ! -e two.db-wal ]] || fail "the last one to end left the log of the database behind"
