#!/usr/bin/env bash
# Every mistake in a scenario ends with exit status 2 and "file:line:column: error: ..." on stderr; nothing is simulated, printed or
# stored. The first line of each part of bad.txt says what is expected: "# expect LINE:COLUMN: error: the words".
set -euo pipefail
failed=0
fail() {
    echo "$1"
    failed=1
}
"$FLOPCAST_SOURCE_DIR/tests/split" "$FLOPCAST_SOURCE_DIR/tests/cli/bad.txt" tests/cli/bad
ln -s "$FLOPCAST_SOURCE_DIR/scenarios" "$FLOPCAST_SOURCE_DIR/topologies" .
for file in tests/cli/bad/*.yaml; do
    expected=$(sed -n '1s/^# expect //p' "$file")
    [[ $expected == *:*": error: "* ]] || fail "$file: its first line does not say what is expected"
    status=0
    "$FLOPCAST" run "$file" --db results.db >out 2>err || status=$?
    ((status == 2)) || fail "$file: exit status $status instead of 2"
    [[ $(cat err) == "$file:$expected"* ]] || fail "$file: expected '$expected', got: $(cat err)"
    (($(wc -l <err) == 1)) || fail "$file: one mistake, several messages: $(cat err)"
    [[ ! -s out ]] || fail "$file: printed something on stdout"
    [[ ! -e results.db ]] || fail "$file: made a database"
    rm -f results.db
done
exit $failed
