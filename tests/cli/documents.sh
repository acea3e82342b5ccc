#!/usr/bin/env bash
# The commands of topologies/README.md and plots/README.md do what the pages say; their links, and those of all pages, lead somewhere.
set -euo pipefail
# shellcheck source=/dev/null
. "$FLOPCAST_SOURCE_DIR/tests/cli/lib.bash"

for page in topologies plots; do
    bash "$FLOPCAST_SOURCE_DIR/tests/cli/document.bash" "$FLOPCAST_SOURCE_DIR/$page/README.md"
done

# Every figure is in the table of plots/README.md.
for figure in "$FLOPCAST_SOURCE_DIR"/plots/*.sql; do
    name=$(basename "$figure" .sql)
    grep -qE "^\|.*\`$name\`" "$FLOPCAST_SOURCE_DIR/plots/README.md" || fail "plots/README.md does not name $name"
done

checked=0
for page in "$FLOPCAST_SOURCE_DIR"/*/README.md "$FLOPCAST_SOURCE_DIR"/sim/*.md "$FLOPCAST_SOURCE_DIR"/sim/lab/microbench/README.md; do
    while read -r link; do
        [[ $link == http* || $link == \#* || -e $(dirname "$page")/${link%%#*} ]] || fail "$page links to $link, which does not exist"
        checked=$((checked + 1))
    done < <(grep -v '^    ' "$page" | grep -o '](\([^) ]*\))' | tr -d '()]')
done
((checked > 20)) || fail "only $checked links were found"
