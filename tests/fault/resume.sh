#!/usr/bin/env bash
# A sweep that is killed with SIGKILL at random moments, ten in all, and started again each time ends with the rows of one that was not, bit for
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
    scenario a.yaml 'sweep: [{train.micro_batch: [1, 2, 4, 4096]}, {ddp.bucket_cap: [1 MiB, 5 MiB, 25 MiB]}, {cluster.gpus: [8, 16, 24, 32]}, {run.seed: [1, 2]}]'
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

began=${EPOCHREALTIME/./}
expect 0 simulate --db whole.db
took=$((${EPOCHREALTIME/./} - began)) # microseconds
cp out whole.csv
rows whole.db >whole.rows
[[ $(wc -l <whole.rows) == "$points" ]] || fail "$(wc -l <whole.rows) rows, not $points"

# Started and killed until a start comes to its end; with further databases until there were ten kills.
RANDOM=18
hits=0
killed_until_done() { # killed_until_done DATABASE
    local status starts=0 microseconds
    : >witnesses
    while :; do
        "$FLOPCAST" run "$file" "${sweep[@]}" --db "$1" --quiet 2>err & # no function: $! must be the program itself
        microseconds=$(((60000 + took * RANDOM / 262144) * (10 + starts) / 10)) # longer each time: a busy machine must come to an end, too
        sleep "$(printf '%d.%06d' $((microseconds / 1000000)) $((microseconds % 1000000)))"
        kill -9 $! 2>/dev/null || true
        status=0
        wait $! 2>/dev/null || status=$?
        starts=$((starts + 1))
        [[ $status != 0 ]] || break
        [[ $status == 137 ]] || fail "exit status $status: $(<err)"
        hits=$((hits + 1))
        ((starts < 200)) || fail "200 starts did not come to an end"
        [[ ! -s $1 ]] || (witness "$1") >>witnesses 2>/dev/null || : # killed before there were tables
    done
    complete "$1"
    witness "$1" | sort >witness.end
    sort -u witnesses >witness.seen
    [[ -z $(comm -13 witness.end witness.seen) ]] || fail "simulated again: $(comm -13 witness.end witness.seen | head -n 3)"
    echo "$1: $starts starts, $(wc -l <witness.seen) of $points points seen between them"
}
for ((round = 1; hits < 10; round++)); do
    ((round <= 10)) || fail "only $hits kills in ten sweeps"
    killed_until_done killed$round.db
done
mv killed1.db killed.db

# All there: nothing is simulated, nothing is written.
sum=$(cksum <killed.db)
expect 0 simulate --db killed.db
cmp out whole.csv || fail "a run that is taken from the database prints other numbers"
says err "$points of $points points are in killed.db already"
[[ $(cksum <killed.db) == "$sum" && ! -e killed.db-wal ]] || fail "the database was changed"

[[ -z ${RESUME_POINTS:-} ]] || exit 0 # the rest does not depend on the size

# Ctrl-C and SIGTERM: what is finished is kept, and the program ends by the signal.
stopped() { # stopped SIGNAL STATUS
    local status kept part
    for part in 3 2 1; do # of the time that a sweep takes; on a busy machine a third of it may pass before the program listens
        rm -f "$1.db" "$1.db-wal" "$1.db-shm"
        status=0
        # --foreground: the signal comes once; else timeout sends it to its group, too, and the second one ends the program at once.
        timeout --foreground --preserve-status -s "$1" "$(printf '%d.%06d' $((took / part / 1000000)) $((took / part % 1000000)))" \
            "$FLOPCAST" run "$file" "${sweep[@]}" --db "$1.db" >out 2>err || status=$?
        if ((status == 0)); then return; fi # it was faster than the first time
        [[ ! -s err ]] || break
    done
    [[ $status == "$2" ]] || fail "exit status $status after SIG$1: $(<err)"
    [[ ! -s out ]] || fail "a part of a sweep was printed: $(<out)"
    says err "ending after the points that are being simulated" "stopped; what is finished is in $1.db, and the same command goes on"
    [[ $(ask 'SELECT count(*) > 0 FROM v_unfinished' "$1.db") == 1 ]] || fail "nothing was kept"
    kept=$(ask 'SELECT finished FROM v_unfinished' "$1.db")
    expect 0 "$FLOPCAST" plot memory --db "$1.db" --out memory.svg
    says err "$1.db: warning: the newest run of 'a' has $kept of $points points; it is under way, or was stopped"
    expect 0 simulate --db "$1.db"
    cmp out whole.csv || fail "after SIG$1 other numbers are printed"
    complete "$1.db"
}
stopped INT 130
stopped TERM 143

expect 0 simulate
cmp out whole.csv || fail "a run that is stored prints other numbers than one that is not"

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
