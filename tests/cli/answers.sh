#!/usr/bin/env bash
# What forty commands answer, byte by byte: tables at 80 columns in tests/golden/answers/NAME.txt, CSV and JSON by their digests.
#   FLOPCAST=... FLOPCAST_SOURCE_DIR=... tests/cli/answers.sh --update     writes them anew, in a folder that it makes
# A change that should move none of them, as of rooms and words of the house, can be bold; one that moves some shows what a user will see.
set -euo pipefail
update=
if [[ ${1:-} == --update ]]; then
    update=1
    scratch=$(mktemp -d)
    trap 'rm -rf -- "$scratch"' EXIT
    cd -- "$scratch"
fi
# shellcheck source=/dev/null
. "$FLOPCAST_SOURCE_DIR/tests/cli/lib.bash"
export COLUMNS=80 DATA=tests # no path on this machine, since lines are broken by the lengths of names
ln -sfn "$FLOPCAST_SOURCE_DIR/tests" tests
golden=$FLOPCAST_SOURCE_DIR/tests/golden/answers

# Nor are other places on this machine a part of an answer, and fingerprints of settings have them in; nor the commit that rows were made by.
plain() { sed -E -e "s|$FLOPCAST_SOURCE_DIR|SOURCE|g" -e "s|$PWD|FOLDER|g" -e 's/\b[0-9a-f]{16}\b/DIGEST/g' -e 's/\b[0-9a-f]{40}\b/COMMIT/g' "$@"; }

: >digests.txt
words=()
commands=0
while read -r name formats command; do
    [[ -n $name && $name != \#* ]] || continue
    commands=$((commands + 1))
    eval "words=($command)"
    for format in ${formats//,/ }; do
        asked=()
        [[ $format == table ]] || asked=(--format "$format")
        status=0
        "$FLOPCAST" "${words[@]}" "${asked[@]}" >out 2>err || status=$?
        { plain err out; echo "status $status"; } >answer
        if [[ $format != table ]]; then
            echo "$name $format $(sha256sum <answer | cut -c1-16)" >>digests.txt
        elif [[ $update ]]; then
            cp answer "$golden/$name.txt"
        else
            diff "$golden/$name.txt" answer >difference || fail "$name: flopcast $command: $(head -n 40 difference)"
        fi
    done
done <"$golden/commands.txt"
[[ $commands -ge 40 ]] || fail "only $commands commands"
if [[ $update ]]; then
    cp digests.txt "$golden/digests.txt"
else
    diff "$golden/digests.txt" digests.txt || fail "CSV or JSON of these commands is another"
fi
