#!/usr/bin/env bash
# Words that only insiders of this project would use do not stand where a user reads: help, pages, texts of the program, tables, figures;
# nor in the comments and names of sources, tests, and files of hardware and scenarios.
set -euo pipefail
# shellcheck source=/dev/null
. "$FLOPCAST_SOURCE_DIR/tests/cli/lib.bash"
words='told|so many|hangs? on|of its own|of their own|but for|manieth|afar'

cd "$FLOPCAST_SOURCE_DIR"
# String literals of the program without its comments; what a line's variable is called does not count.
found=$(grep -rnoE '"([^"\\]|\\.)*"' --include='*.c' --include='*.h' sim | grep -wiE "$words" || true)
found+=$(grep -nwiE "$words" README.md ./*/README.md sim/CHANGELOG.md sim/lab/microbench/README.md plots/*.sql plots/*.gp || true)
for command in "" $("$FLOPCAST" --help | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p') "calibrate fit" "calibrate check" "calibrate import" "calibrate show" "topology import"; do
    read -ra typed <<<"$command"
    found+=$("$FLOPCAST" "${typed[@]}" --help | tr -s ' \n' ' ' | grep -owiE "$words" || true)
done
for topic in settings models clusters nodes gpus stacks; do
    found+=$("$FLOPCAST" help $topic | tr -s ' \n' ' ' | grep -owiE "$words" || true)
done
# Whole files, as a phrase in a comment may go over the end of a line. Not what was recorded, nor this list.
mapfile -d '' sources < <(grep -rIlZ '' sim tests topologies scenarios plots results ./*.md CMakeLists.txt --exclude='*.csv' \
    --exclude-dir=notes --exclude=plain_words.sh --exclude-dir=data --exclude='corpus_*')
[[ ${#sources[@]} -gt 100 ]] || fail "${#sources[@]} sources"
found+=$(awk -v words="$words" '
    function look() {
        text = text " "
        while (match(tolower(text), "[^a-z0-9_](" words ")[^a-z0-9_]")) {
            print file ": ..." substr(text, RSTART > 40 ? RSTART - 40 : 1, RLENGTH + 80) "..."
            text = substr(text, RSTART + RLENGTH)
        }
    }
    FNR == 1 { look(); file = FILENAME; text = "" }
    { sub(/^[ \t]*(\/\/|--|\/?\*+|#+)?[ \t]*/, ""); text = text " " $0 }
    END { look() }' "${sources[@]}")
[[ ! $found ]] || fail "plain words, please: $found"
