#!/usr/bin/env bash
# README.md: its size and sentences, its links, and every `flopcast` command in it, run as it stands.
set -euo pipefail
# shellcheck source=/dev/null
. "$FLOPCAST_SOURCE_DIR/tests/cli/lib.bash"
readme=$FLOPCAST_SOURCE_DIR/README.md

[[ $(wc -l <"$readme") -le 100 ]] || fail "README.md has $(wc -l <"$readme") lines, not at most 100"
long=$(awk 'length($0) > 120 { print FNR ": " $0 }' "$readme")
[[ -z $long ]] || fail "lines above 120 characters: $long"
[[ $(grep -c '^!\[' "$readme") == 1 ]] || fail "not one picture"

# Sentences of at most 30 words. Code and headings are none; a cell of a table and an item of a list end as a sentence does.
awk '/^    / || /^#/ || /^!\[/ || /^\|[-|]*$/ { print "."; next }
     /^$/ { print "."; next }
     { gsub(/\]\([^)]*\)/, "]"); gsub(/\|/, " . "); sub(/^\* /, ". "); print }' "$readme" | tr '\n' ' ' | sed 's/[.?!] /\n/g' |
    awk 'NF > 30 { print NF " words: " $0; bad = 1 } END { exit bad }' >sentences || fail "long sentences: $(<sentences)"

# Links and pictures lead to files that exist.
grep -o '](\([^)]*\))' "$readme" | tr -d '()]' | while read -r link; do
    [[ $link == http* || -e $FLOPCAST_SOURCE_DIR/$link ]] || fail "README.md links to $link, which does not exist"
done

# Every command of the code blocks, in their order. `validate --open` in the text takes too long here (tests/cli/validate_open.sh has it).
"$FLOPCAST" collective all_reduce --topology topologies/clusters/h100-8x400g.yaml --gpus 64 --bytes 1M:1G >all_reduce.log
sed -n 's/^    \(flopcast .*\)/\1/p' "$readme" | sed 's/  *# .*//' >commands
[[ $(wc -l <commands) -ge 10 ]] || fail "README.md has fewer than ten commands: $(<commands)"
while read -r command; do
    [[ $command != *FILE* ]] || fail "'$command' cannot be typed as it stands"
    start=$SECONDS
    expect 0 bash -c "flopcast() { \"$FLOPCAST\" \"\$@\"; }; $command"
    [[ -s out ]] || fail "'$command' prints nothing"
    echo "$((SECONDS - start)) s: $command"
done <commands
