#!/usr/bin/env bash
# The picture of README.md is the one that its scenario draws today. It is compared where gnuplot is the version that drew it.
set -euo pipefail
# shellcheck source=/dev/null
. "$FLOPCAST_SOURCE_DIR/tests/cli/lib.bash"
picture=$FLOPCAST_SOURCE_DIR/plots/t5_scaling.svg
command -v gnuplot >/dev/null || exit 77

expect 0 "$FLOPCAST" run scenarios/t5_scaling.yaml --db a.db --quiet
expect 0 "$FLOPCAST" plot t5_scaling --db a.db --out t5.svg
version() { sed -n 's/.*<desc>\(Produced by GNUPLOT.*\)<\/desc>.*/\1/p' "$1"; }
[[ -n $(version "$picture") ]] || fail "plots/t5_scaling.svg was not drawn by gnuplot"
[[ $(version "$picture") == "$(version t5.svg)" ]] || exit 77
cmp t5.svg "$picture" ||
    fail "plots/t5_scaling.svg is stale; draw it again: scenarios/run t5_scaling && build/release/flopcast plot t5_scaling --db results/flopcast.db --out plots/t5_scaling.svg"
