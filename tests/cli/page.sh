#!/usr/bin/env bash
# results/README.md holds the tables that `flopcast validate --page` makes of results/validated.csv, and that has all rows of all tables of
# results/measured as they are today. Where this fails: scenarios/run validate.
set -euo pipefail
# shellcheck source=/dev/null
. "$FLOPCAST_SOURCE_DIR/tests/cli/lib.bash"

cp "$FLOPCAST_SOURCE_DIR/results/README.md" page.md
chmod u+w page.md
expect 0 "$FLOPCAST" validate --from "$FLOPCAST_SOURCE_DIR/results/validated.csv" --page page.md
[[ ! -s err ]] || fail "results/validated.csv is older than the tables; scenarios/run validate makes it again: $(<err)"
cmp page.md "$FLOPCAST_SOURCE_DIR/results/README.md" || fail "results/README.md is not what the command writes; scenarios/run validate writes it: $(diff page.md "$FLOPCAST_SOURCE_DIR/results/README.md" | head)"
