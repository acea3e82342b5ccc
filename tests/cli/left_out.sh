#!/usr/bin/env bash
# The page for browsers has no SQLite: each of its functions that the page's wings call stands in left_out.js, else emscripten cannot link the page.
set -euo pipefail
# shellcheck source=/dev/null
. "$FLOPCAST_SOURCE_DIR/tests/cli/lib.bash"
cd -- "$FLOPCAST_SOURCE_DIR"
called=$(grep -rhoE --include='*.c' 'sqlite3_[a-z0-9_]+\(' sim/core sim/answers sim/flopcast | tr -d '(' | sort -u)
(($(wc -l <<<"$called") > 30)) || fail "only these are called: $called"
missing=$(comm -23 <(echo "$called") <(grep -oE 'sqlite3_[a-z0-9_]+' sim/flopcast/page/left_out.js | sort -u))
[[ ! $missing ]] || fail "sim/flopcast/page/left_out.js lacks: $missing"
