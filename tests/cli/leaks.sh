#!/usr/bin/env bash
# No command leaves memory behind that nothing points to, when it ends. Without sanitizers it proves nothing more than others do.
set -euo pipefail
# shellcheck source=/dev/null
. "$FLOPCAST_SOURCE_DIR/tests/cli/lib.bash"
export ASAN_OPTIONS=detect_leaks=1
DATA=$FLOPCAST_SOURCE_DIR/tests # of the lines
export DATA

ran=0
while read -r name _ command; do
    [[ $name && $name != \#* ]] || continue
    eval "words=($command)"
    status=$(sed -n "\$s/^status //p" "$FLOPCAST_SOURCE_DIR/tests/golden/answers/$name.txt")
    expect "$status" "$FLOPCAST" "${words[@]}"
    ran=$((ran + 1))
done <"$FLOPCAST_SOURCE_DIR/tests/golden/answers/commands.txt"
[[ $ran -ge 40 ]] || fail "only $ran commands"

scenario a.yaml "sweep:" "  - cluster.gpus: [8, 16]"
expect 0 "$FLOPCAST" run a.yaml --db a.db
for command in "plot scaling --db a.db --out a.svg" "report --db a.db --out a.html" "merge a.db --into b.db" "files models" "help models"; do
    read -ra words <<<"$command"
    expect 0 "$FLOPCAST" "${words[@]}"
done
expect 2 "$FLOPCAST" run a.yaml --set no.such=1
