#!/usr/bin/env bash
# The page for browsers, build/page/flopcast.html, in headless Chromium (page.mjs). Skipped where sim/flopcast/page/build has not been started, which
# installs emscripten and Chromium; what has changed since then is built anew.
set -euo pipefail
build=$FLOPCAST_SOURCE_DIR/build/page
if [[ ! -e $build/build.ninja ]] || ! command -v emcc chromium node >/dev/null; then
    echo "skipped: no page here; sim/flopcast/page/build makes it" >&2
    exit 77
fi
"$FLOPCAST_SOURCE_DIR/sim/flopcast/page/build" >build.log 2>&1 || { cat build.log >&2 && exit 1; }
node "$FLOPCAST_SOURCE_DIR/tests/page/page.mjs" "$build/flopcast.html" "$FLOPCAST" "$FLOPCAST_SOURCE_DIR" "$PWD"
