#!/usr/bin/env bash
# Databases that cannot be used are refused with a sentence, unchanged; kill -9 leaves whole points (resume.sh has more of both).
set -euo pipefail
# shellcheck source=/dev/null
. "$FLOPCAST_SOURCE_DIR/tests/cli/lib.bash"
scenario a.yaml 'sweep: [{cluster.gpus: [8, 16, 32]}]'

refused() { # refused DATABASE TEXT...: run and plot fail, and the file stays as it is
    local before
    before=$(cksum <"$1")
    expect 1 "$FLOPCAST" run a.yaml --db "$1"
    says err "$@"
    [[ ! -s out ]] || fail "it simulated before looking at the database"
    expect 1 "$FLOPCAST" plot memory --db "$1"
    says err "$1: error:"
    [[ $(cksum <"$1") == "$before" ]] || fail "$1 was changed"
}
poke() { printf '%b' "$3" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none; } # poke FILE OFFSET BYTES

expect 0 "$FLOPCAST" run a.yaml --db good.db --quiet
whole() { # only whole points in a sound file
    [[ $(ask 'SELECT * FROM pragma_integrity_check' "$1") == ok ]] || fail "$1 is damaged"
    [[ $(ask 'SELECT count(*) FROM point WHERE (SELECT count(*) FROM memory WHERE point_id = point.id) <> 8' "$1") == 0 ]] || fail "half a point in $1"
    [[ $(ask 'SELECT count(*) FROM run WHERE (SELECT count(*) FROM point WHERE run_id = run.id) NOT BETWEEN 1 AND points' "$1") == 0 ]] || fail "a run without points in $1"
}

cp good.db newer.db
poke newer.db 63 '\x63' # user_version, byte 60 to 63 of the header
refused newer.db "of another version of flopcast (schema 99;"
cp good.db foreign.db
poke foreign.db 68 'abcd' # application_id
refused foreign.db "database of another program"
cp good.db header.db
poke header.db 0 'garbage'
refused header.db "is not a database"
cp good.db torn.db
poke torn.db 100 '\x00\xff\xff\xff\xff\xff\xff\xff' # the root page of the schema
refused torn.db "damaged"
seq 1000 >text.db
refused text.db "is not a database"
mkdir folder.db
expect 1 "$FLOPCAST" run a.yaml --db folder.db
says err "folder.db: error: cannot open the database"
expect 1 "$FLOPCAST" run a.yaml --db no/such/folder/a.db
says err "in a folder that exists"

# kill -9 at any time. The first trials hit the start of the program, the later ones its writing.
for pause in 0.002 0.005 0.01 0.02 0.03 0.04 0.05 0.06 0.08 0.1; do
    "$FLOPCAST" run a.yaml --db killed.db --quiet 2>/dev/null &
    sleep $pause
    kill -9 $! 2>/dev/null || true
    wait $! 2>/dev/null || true
done
expect 0 "$FLOPCAST" run a.yaml --db killed.db --quiet
whole killed.db
[[ $(ask 'SELECT count(*) FROM v_scaling' killed.db) == 3 && $(ask 'SELECT count(*) FROM v_unfinished' killed.db) == 0 ]] || fail "points are missing"
