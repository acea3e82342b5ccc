#!/usr/bin/env bash
# Whoever waits hears: how far a command is, how long the rest takes and what is sooner; not where it is short, and not with --quiet.
set -euo pipefail
# shellcheck source=/dev/null
. "$FLOPCAST_SOURCE_DIR/tests/cli/lib.bash"

scenario one.yaml 'sweep: [{cluster.gpus: [64]}]'
# From the first moment on, when nothing may be known yet: what else takes some seconds.
export FLOPCAST_SILENT_S=0
expect 0 "$FLOPCAST" run one.yaml --set run.steps=40
cp out heard
grep -qE '^run one: [0-9]+ s(, [0-9]+ % of its steps.*)?; sooner: --fold slowest \(run.fold=slowest\), or --no-noise$' err || fail "run: $(<err)"
# The answer is the same, whoever hears it.
FLOPCAST_SILENT_S=3600 expect 0 "$FLOPCAST" run one.yaml --set run.steps=40
[[ ! -s err ]] || fail "a short command says something: $(<err)"
cmp out heard || fail "another answer"
expect 0 "$FLOPCAST" run one.yaml --set run.steps=40 --quiet
[[ ! -s err ]] || fail "--quiet: $(<err)"
# What would be sooner is not said of what is so already.
for short in --no-noise "--fold slowest"; do
    # shellcheck disable=SC2086 # two words
    expect 0 "$FLOPCAST" run one.yaml --set run.steps=40 $short
    if grep -q sooner err; then fail "$short: $(<err)"; fi
done
# Of several jobs how many are done; other commands, too.
expect 0 "$FLOPCAST" run one.yaml --samples 100
grep -qE '^run one: [0-9]+ s, ' err || fail "samples: $(<err)"
expect 0 "$FLOPCAST" sensitivity one.yaml
grep -qE '^sensitivity one: [0-9]+ s, ' err || fail "sensitivity: $(<err)"
expect 0 "$FLOPCAST" whatif one.yaml --base run.steps=40 --set host.kernel_issue=7us
grep -qE '^whatif one: [0-9]+ s, [01] of 2 points' err || fail "whatif: $(<err)"
expect 0 "$FLOPCAST" goodput one.yaml --set run.steps=40
grep -qE '^goodput one: [0-9]+ s' err || fail "goodput: $(<err)"
expect 0 "$FLOPCAST" waterfall one.yaml --from 8 --to 64 --set run.steps=100
grep -qE '^waterfall one: [0-9]+ s, under way$' err || fail "waterfall: $(<err)"
if command -v gnuplot >/dev/null; then
    expect 0 "$FLOPCAST" run one.yaml --db a.db --quiet
    expect 0 "$FLOPCAST" plot scaling --db a.db
    grep -qE '^plot scaling: [0-9]+ s, under way' err || fail "plot: $(<err)"
    expect 0 "$FLOPCAST" report --db a.db
    grep -qE '^report: [0-9]+ s, pictures are under way' err || fail "report: $(<err)"
fi
# A shard counts what it does itself.
scenario many.yaml 'sweep: [{cluster.gpus: [8, 16, 64]}]'
expect 0 "$FLOPCAST" run many.yaml --set run.steps=40 --db s.db --shard 1/3
grep -qE "^run many: [0-9]+ s" err || fail "a shard: $(<err)"
if grep -E "of 3 points" err; then fail "points of other shards"; fi
# On a terminal one line that is never longer than it, also where $COLUMNS is: nothing is counted without a number.
script -qec true /dev/null </dev/null >/dev/null 2>&1 || exit 0
for columns in 40 80; do
    TERM=xterm script -qec "stty cols $columns; COLUMNS=0 '$FLOPCAST' run one.yaml --set run.steps=200" /dev/null </dev/null >typescript
    tr '\r' '\n' <typescript | sed -n $'s/\033\\[K$//; /^run[^:]*: [0-9]/p' >lines
    grep -qE '^run[^:]*: [0-9]+ s, [0-9]+ % of its steps(,|;|$)' lines || fail "on a terminal: $(<typescript)"
    if grep -E ".{$columns}|points" lines; then fail "on $columns columns"; fi
done
grep -q "; sooner: --no-noise$" lines || fail "what is sooner, where there is room: $(<lines)"
