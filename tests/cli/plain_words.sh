#!/usr/bin/env bash
# Words that only insiders of this project would use do not stand where a user reads: help, pages, texts of the program, tables, figures.
set -euo pipefail
# shellcheck source=/dev/null
. "$FLOPCAST_SOURCE_DIR/tests/cli/lib.bash"
words='told|so many|hangs? on|of its own|but for|manieth|afar'

cd "$FLOPCAST_SOURCE_DIR"
# String literals of the program without its comments; what a line's variable is called does not count.
found=$(grep -rnoE '"([^"\\]|\\.)*"' --include='*.c' --include='*.h' sim | grep -wiE "$words" || true)
found+=$(grep -nwiE "$words" README.md ./*/README.md sim/CHANGELOG.md sim/microbench/README.md plots/*.sql plots/*.gp || true)
for command in "" $("$FLOPCAST" --help | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p') "calibrate fit" "calibrate check" "calibrate import" "calibrate show" "topology import"; do
    read -ra typed <<<"$command"
    found+=$("$FLOPCAST" "${typed[@]}" --help | tr -s ' \n' ' ' | grep -owiE "$words" || true)
done
for topic in settings models clusters nodes gpus stacks; do
    found+=$("$FLOPCAST" help $topic | tr -s ' \n' ' ' | grep -owiE "$words" || true)
done
[[ ! $found ]] || fail "plain words, please: $found"
