#!/usr/bin/env bash
# scenarios/README.md: every command of the tutorial does what the page says, and prints what it shows.
set -euo pipefail
page=$FLOPCAST_SOURCE_DIR/scenarios/README.md
bash "$FLOPCAST_SOURCE_DIR/tests/cli/document.bash" "$page"

# What makes it stale is found: a digit that is not printed, a command that fails, one that would not be run.
refused() { # SED-SCRIPT MESSAGE: of a page with one command
    printf '# Page\n\n    $ flopcast model gpt2\n    model       gpt2\n    ...\n' | sed "$1" >page.md
    if bash "$FLOPCAST_SOURCE_DIR/tests/cli/document.bash" page.md >out 2>&1; then
        echo "FAILED: a page passes with $1" >&2
        exit 1
    fi
    grep -qF -- "$2" out || { cat out; exit 1; }
}
refused 's/    model  /    modal  /' "shows what is not printed"
refused 's/model gpt2$/model gpt9/' "exit status 2"
refused 's/\$ flopcast/flopcast/' "is not run"
refused '/flopcast/d' "no command in it"
