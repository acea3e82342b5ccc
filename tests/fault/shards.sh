#!/usr/bin/env bash
# The rows of a sweep are the same, bit for bit, whoever does it: one thread or two, four shards that are merged, one or four ranks of MPI;
# also when a rank is killed with SIGKILL on the way, and when a merge is. A shard that is missing is named.
set -euo pipefail
# shellcheck source=/dev/null
. "$FLOPCAST_SOURCE_DIR/tests/cli/lib.bash"
if ! command -v sqlite3 >/dev/null; then
    echo "skipped: sqlite3 is not here"
    exit 77
fi

points=64
scenario a.yaml 'sweep: [{train.micro_batch: [1, 2, 4, 4096]}, {ddp.bucket_cap: [1 MiB, 25 MiB]}, {cluster.gpus: [8, 16, 24, 32]}, {run.seed: [1, 2]}]'
simulate() { "$FLOPCAST" run a.yaml --samples 2 --format csv "$@"; } # simulate [OPTION...]

# dump DATABASE: every row of a run and its samples, exactly, except when it was, how long it took, and the numbers of rows.
dump() {
    local table
    exact() { # exact TABLE: its columns
        sqlite3 "$1" "SELECT group_concat('quote(' || name || ')', ' || '' '' || ') FROM pragma_table_info('$2') WHERE name NOT IN
            ('id', 'run_id', 'point_id', 'created_utc', 'wall_s', 'hardware_id', 'model_id', 'simulated_id')"
    }
    sqlite3 "$1" "SELECT $(exact "$1" run) FROM run ORDER BY id"
    sqlite3 "$1" "SELECT $(exact "$1" point), (SELECT json FROM document WHERE id = hardware_id), (SELECT json FROM document WHERE id = model_id)
        FROM point ORDER BY run_id, position"
    for table in memory timeline program band span; do
        sqlite3 "$1" "SELECT '$table', point.run_id, point.position, $(exact "$1" $table) FROM $table JOIN
            (SELECT id, run_id, position FROM point) AS point ON point.id = point_id ORDER BY 2, 3, 4"
    done
    sqlite3 "$1" "SELECT $(exact "$1" sample) FROM sample ORDER BY 1"
}
same() { # same DATABASE
    [[ $(sqlite3 "$1" 'PRAGMA integrity_check') == ok ]] || fail "$1 is damaged"
    dump "$1" >other.rows
    cmp whole.rows other.rows || fail "the rows of $1 differ from those of one thread"
}

expect 0 simulate --jobs 1 --db whole.db
cp out whole.csv
dump whole.db >whole.rows
[[ $(grep -c '^timeline' whole.rows) -gt 1000 && $(grep -c '^band' whole.rows) == "$points" ]] || fail "rows are missing: $(cut -c 1-80 whole.rows | head)"

expect 0 simulate --jobs 2 --db two.db
cmp out whole.csv || fail "two threads print other numbers"
same two.db
expect 0 simulate --jobs 3
cmp out whole.csv || fail "three threads print other numbers without a database"

# ---- shards ----
for i in 1 2 3 4; do
    expect 0 simulate --shard $i/4 --db part$i.db
    says out "a: shard $i/4, its 16 of $points points are in part$i.db"
done
expect 1 "$FLOPCAST" merge part1.db part2.db part4.db --into merged.db
says out "merged.db: 1 run, 48 points, 96 samples and 0 outcomes added"
says err "merged.db: error: 'a' has 48 of 64 points; missing: shard 3/4; run it, then merge again"
expect 0 "$FLOPCAST" merge part3.db --into merged.db
same merged.db
sum=$(sqlite3 merged.db .dump | cksum)
expect 0 "$FLOPCAST" merge part1.db part2.db part3.db part4.db --into merged.db
says out "0 runs, 0 points, 0 samples and 0 outcomes added"
[[ $(sqlite3 merged.db .dump | cksum) == "$sum" ]] || fail "merging twice changed something"
expect 0 simulate --db merged.db
cmp out whole.csv || fail "the merged run prints other numbers"
says err "a: 64 of 64 points are in merged.db already" "a: 128 of 128 samples are in merged.db already"

# A shard that was stopped is named as such, and goes on.
cp part2.db stopped.db
sqlite3 stopped.db 'PRAGMA foreign_keys = 1; DELETE FROM point WHERE id > 10; UPDATE shard SET finished = 0'
expect 1 "$FLOPCAST" merge part1.db stopped.db part3.db --into stopped_merged.db
says err "'a' has 42 of 64 points; missing: shard 4/4; stopped before its end: shard 2/4; run them, then merge again"
expect 0 simulate --shard 2/4 --db stopped.db
expect 0 "$FLOPCAST" merge stopped.db part4.db --into stopped_merged.db
same stopped_merged.db

# Another run of the same scenario is another run; results that cannot be are refused, and then nothing is merged.
expect 0 "$FLOPCAST" run a.yaml --quiet --set cluster.gpus=8 --db other.db
expect 0 "$FLOPCAST" merge other.db --into merged.db
says out "1 run, 16 points"
cp part1.db wrong.db
sqlite3 wrong.db 'UPDATE point SET step_time_s = step_time_s + 1e-12 WHERE id = 10'
sum=$(sqlite3 merged.db .dump | cksum)
expect 2 "$FLOPCAST" merge wrong.db --into merged.db
says err "wrong.db: error: point " "differs in 'step_time_s' from the same point of 'merged.db'"
[[ $(sqlite3 merged.db .dump | cksum) == "$sum" ]] || fail "a part of a wrong database was merged"
sqlite3 wrong.db 'PRAGMA user_version = 1000'
expect 1 "$FLOPCAST" merge wrong.db --into merged.db
says err "of another version of flopcast (schema 1000;"
expect 1 "$FLOPCAST" merge absent.db --into merged.db
expect 2 "$FLOPCAST" merge part1.db --into part1.db
expect 2 "$FLOPCAST" merge part1.db
says err "--into C.db is missing"
for bad in 0/4 5/4 1/0 x 1/4x 2; do
    expect 2 simulate --shard $bad --db bad.db
    says err "I/N is wanted"
done
expect 2 simulate --shard 1/4
says err "--shard is for --db PATH"

# A merge that is killed loses nothing: each source is there or not, and the same merge goes on.
RANDOM=24
for ((kills = 0, tries = 0; kills < 5 && tries < 50; tries++)); do
    "$FLOPCAST" merge part1.db part2.db part3.db part4.db --into killed.db >/dev/null 2>&1 &
    sleep "0.0$((RANDOM % 90 + 10))"
    kill -9 $! 2>/dev/null || true
    if wait $! 2>/dev/null; then
        [[ $kills == 0 ]] || break
        rm -f killed.db*
    else
        kills=$((kills + 1))
    fi
    [[ ! -s killed.db || $(sqlite3 killed.db 'PRAGMA integrity_check') == ok ]] || fail "killed.db is damaged"
    [[ ! -s killed.db || $(sqlite3 killed.db 'SELECT count(*) % 16 FROM point' 2>/dev/null || echo 0) == 0 ]] || fail "a part of a source"
done
expect 0 "$FLOPCAST" merge part1.db part2.db part3.db part4.db --into killed.db
same killed.db

# children PID: its child processes.
children() { cat "/proc/$1/task/$1/children" 2>/dev/null || true; }

# ---- MPI ----
if ! command -v mpirun >/dev/null || [[ ! -e $(dirname -- "$FLOPCAST")/flopcast-mpi.so ]]; then
    echo "without MPI: mpirun or flopcast-mpi.so is not here"
    exit 0
fi
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
for ranks in 1 4; do
    expect 0 mpirun -n $ranks "$FLOPCAST" run a.yaml --samples 2 --format csv --db mpi$ranks.db
    cmp out whole.csv || fail "$ranks ranks print other numbers"
    same mpi$ranks.db
done
expect 0 mpirun -n 2 "$FLOPCAST" run a.yaml --samples 2 --format csv --jobs 2
cmp out whole.csv || fail "2 ranks with 2 threads each print other numbers"
# The table has more of a result than CSV; rounds, as many points a rank as are worth them.
expect 0 "$FLOPCAST" run a.yaml
cp out whole.txt
grep -q "slow nodes: " whole.txt || fail "no cluster has a slow node: $(<whole.txt)"
for ranks in 2 3; do
    expect 0 mpirun -n $ranks "$FLOPCAST" run a.yaml
    cmp out whole.txt || fail "$ranks ranks print another table: $(diff out whole.txt | head -n 5)"
done
# Ranks in separate folders, each with the scenario: only the first has the database.
for folder in first second; do
    mkdir $folder
    cp a.yaml tiny.json $folder
done
expect 0 mpirun -n 1 -wdir first "$FLOPCAST" run a.yaml --samples 2 --format csv --db own.db : -n 2 -wdir second "$FLOPCAST" run a.yaml --samples 2 --format csv --db own.db
cmp out whole.csv || fail "ranks without a common folder print other numbers"
same first/own.db
[[ ! -e second/own.db ]] || fail "another rank has made a database"
[[ $(sqlite3 first/own.db 'SELECT count(*) FROM shard') == 0 ]] || fail "parts of ranks are taken for shards"
expect 0 mpirun -n 2 "$FLOPCAST" run a.yaml --samples 2 --format csv --db mpi4.db
cmp out whole.csv || fail "a run that is taken from the database prints other numbers"

# A rank is killed, and mpirun ends all: what rank 0 has stored is there, and the same command goes on.
mpirun -n 4 "$FLOPCAST" run a.yaml --samples 2 --quiet --db rank.db >out 2>err &
program=$!
for ((tries = 0; tries < 3000; tries++)); do
    read -r _ victim _ <<<"$(children $program)" || true
    stored=$(sqlite3 rank.db 'SELECT count(*) FROM point' 2>/dev/null) || stored=0
    if [[ -n ${victim:-} && ${stored:-0} -gt 0 ]]; then
        kill -9 "$victim" 2>/dev/null || true
        break
    fi
    sleep 0.01
done
status=0
wait $program || status=$?
[[ $status != 0 ]] || echo "the ranks were faster than the one that kills"
expect 0 mpirun -n 4 "$FLOPCAST" run a.yaml --samples 2 --format csv --db rank.db
cmp out whole.csv || fail "after a rank was killed other numbers are printed"
same rank.db

# A run that is made again is one run more, with the same points.
expect 0 mpirun -n 2 "$FLOPCAST" run a.yaml --quiet --again --db mpi1.db
[[ $(sqlite3 mpi1.db 'SELECT group_concat(n) FROM (SELECT count(*) AS n FROM point GROUP BY run_id)') == "$points,$points" ]] || fail "not made again"

# What fails before the work fails once, on rank 0, and nobody waits for ever.
expect 2 timeout 60 mpirun -n 4 "$FLOPCAST" run absent.yaml
[[ $(grep -c 'absent.yaml' err) == 1 ]] || fail "not said once: $(<err)"
expect 1 timeout 60 mpirun -n 4 "$FLOPCAST" run a.yaml --db no/such/folder.db
mkdir alone
cp "$FLOPCAST" alone/flopcast
expect 2 timeout 60 mpirun -n 2 "$FLOPCAST" run a.yaml --shard 1/2 --db part1.db
says err "share the work by themselves; leave --shard out"
FLOPCAST_DATA=$FLOPCAST_SOURCE_DIR expect 1 timeout 60 mpirun -n 2 alone/flopcast run a.yaml
says err "flopcast-mpi.so, which lets them work together, is not found"
