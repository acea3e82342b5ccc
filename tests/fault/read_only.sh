#!/usr/bin/env bash
# A database on a medium that is read-only: plot reads it, run refuses it. Needs a separate mount, since root writes everywhere else.
set -euo pipefail
# shellcheck source=/dev/null
. "$FLOPCAST_SOURCE_DIR/tests/cli/lib.bash"
if [[ ${1:-} != inside ]]; then
    unshare --user --map-root-user --mount true 2>/dev/null || exit 77
    exec unshare --user --map-root-user --mount bash "$0" inside
fi
scenario a.yaml
mkdir medium
mount -t tmpfs -o size=4m none medium || exit 77
expect 0 "$FLOPCAST" run a.yaml --db medium/a.db --quiet
mount -o remount,ro medium || exit 77
expect 1 "$FLOPCAST" run a.yaml --db medium/a.db
says err "medium/a.db: error: the database is read-only"
expect 0 "$FLOPCAST" plot memory --db medium/a.db --out memory.png
expect 1 "$FLOPCAST" run a.yaml --db medium/new.db
says err "medium/new.db: error: cannot open the database"
expect 1 "$FLOPCAST" plot memory --db medium/a.db --out medium/memory.png
says err "Read-only file system"

# A disk that is full in earnest: what is there stays, pictures do not come half.
mount -o remount,rw,size=512k medium
cat /dev/zero >medium/ballast 2>/dev/null || true
expect 1 "$FLOPCAST" run a.yaml --db medium/a.db --quiet --seed 2
says err "medium/a.db: error: cannot store the run"
expect 1 "$FLOPCAST" plot memory --db medium/a.db --out medium/memory.png
says err "No space left on device"
[[ ! -e medium/memory.png && $(find medium -type f | wc -l) == 2 ]] || fail "left behind: $(ls medium)"
rm medium/ballast
[[ $(ask 'SELECT count(*) FROM run' medium/a.db) == 1 ]] || fail "the first run is lost"
