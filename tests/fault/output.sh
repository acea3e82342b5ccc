#!/usr/bin/env bash
# Output that cannot be written is a failure with a sentence.
set -euo pipefail
# shellcheck source=/dev/null
. "$FLOPCAST_SOURCE_DIR/tests/cli/lib.bash"
[[ -w /dev/full ]] || exit 77
scenario a.yaml
to_full() { "$FLOPCAST" "$@" >/dev/full; }
for arguments in 'run a.yaml' 'run a.yaml --format csv' 'run a.yaml --format json' 'run a.yaml --plan' '--help' '--version' 'run --help' \
    "model tiny.json"; do
    # shellcheck disable=SC2086 # words are meant to be split
    expect 1 to_full $arguments
    says err "cannot write the output"
done
# A database that can be written is written, whatever becomes of the table.
expect 1 to_full run a.yaml --db a.db
[[ $(ask 'SELECT count(*) FROM run') == 1 ]] || fail "the run is lost"
expect 1 to_full plot memory --db a.db --out -
expect 1 "$FLOPCAST" plot memory --db a.db --out no/such/folder/a.png
says err "no/such/folder/a.png: error: cannot write"
