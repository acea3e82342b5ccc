#!/usr/bin/env bash
# On a terminal all that is printed fits its width and has colour; in a pipe it fits 80 characters.
set -euo pipefail
# shellcheck source=/dev/null
. "$FLOPCAST_SOURCE_DIR/tests/cli/lib.bash"
command -v script >/dev/null || { echo "skipped: no script (bsdutils)"; exit 77; }
script -qec true /dev/null </dev/null >/dev/null 2>&1 || { echo "skipped: no terminal can be opened (is /dev/pts mounted?)"; exit 77; }
unset COLUMNS NO_COLOR
export TERM=xterm

# on COLUMNS COMMAND...: runs it on a terminal that is so wide; what it prints, in the file out without carriage returns.
on() {
    local columns=$1
    shift
    script -qec "stty cols $columns; $(printf '%q ' "$@")" /dev/null </dev/null >typescript || true
    tr -d '\r' <typescript >out
}

# No line is longer than the terminal is wide.
fits() {
    local columns=$1
    sed $'s/\033\\[[0-9]*m//g' out >plain
    awk -v most="$columns" 'length > most && !/^[^ ]*: / { print; bad = 1 } END { exit bad }' plain ||
        fail "longer than $columns"
}

scenario a.yaml 'sweep: [{train.micro_batch: [2, 16384]}, {ddp.gradient_as_bucket_view: [true, false]}]'
sed -i '/micro_batch: 2/s/micro_batch: 2, //' a.yaml
expect 0 "$FLOPCAST" run a.yaml --wide
cp out whole
for columns in 60 80 100 120; do
    on $columns bash -c "'$FLOPCAST' run a.yaml 2>err"
    fits $columns
done
on 80 bash -c "'$FLOPCAST' run a.yaml 2>err"
says out "not shown, for want of room (--wide): " $'\033[31mOOM\033[0m' "exposed comm (% of step)"
sed -n '/^not shown/,$p' out >hidden
if grep -E "tokens/s|MFU" hidden; then fail "what is asked for most is hidden first"; fi
for wide in "'$FLOPCAST' run a.yaml --wide" "COLUMNS=0 '$FLOPCAST' run a.yaml" "COLUMNS=1000 '$FLOPCAST' run a.yaml"; do
    on 80 bash -c "$wide 2>err"
    sed $'s/\033\\[[0-9]*m//g' out | cmp - whole || fail "$wide is not what a pipe gets"
done
on 200 bash -c "COLUMNS=80 '$FLOPCAST' run a.yaml 2>err" # COLUMNS before what the terminal says
says out "not shown, for want of room"
for plain in NO_COLOR=1 TERM=dumb TERM=; do
    on 80 bash -c "$plain '$FLOPCAST' run a.yaml 2>err"
    says out OOM
    if grep -q $'\033' out; then fail "$plain has colours"; fi
done
expect 0 env COLUMNS=120 "$FLOPCAST" run a.yaml # no terminal: what COLUMNS says, else 80
fits 120
expect 0 "$FLOPCAST" run a.yaml
fits 80
says out "not shown, for want of room (--wide): "
expect 0 env COLUMNS=80 "$FLOPCAST" run a.yaml --wide
cmp out whole

# Messages: the word that says how bad it is.
on 80 "$FLOPCAST" run absent.yaml
says out $'absent.yaml:1:1:\033[31m error: \033[0mcannot open'
on 80 env NO_COLOR=1 "$FLOPCAST" run absent.yaml
says out "absent.yaml:1:1: error: cannot open"
on 80 "$FLOPCAST" run a.yaml --set fsdp.sharding_group_size=8
says out $':\033[33m warning: \033[0m'

# Other tables.
for columns in 80 120; do
    on $columns "$FLOPCAST" topology topologies/clusters/h100-8x400g.yaml
    sed -i '/^collectives across nodes/,$d' out # sentences
    fits $columns
    says out "  hbm_bandwidth " "datasheet"
    on $columns "$FLOPCAST" model scenarios/models/gpt2.yaml
    sed -i '/^[a-z]/d' out # what it is, in words
    fits $columns
    on $columns "$FLOPCAST" memory 70B --teach
    fits $columns
    on $columns "$FLOPCAST" files
    fits $columns
    on $columns "$FLOPCAST" whatif a.yaml --base train.micro_batch=2 --base ddp.gradient_as_bucket_view=true --set cluster.gpus=16 --or --set cluster.gpus=32
    fits $columns
    on $columns "$FLOPCAST" collective all_reduce --topology topologies/clusters/h100-8x400g.yaml --gpus 16 --bytes 1M:8M --format table
    fits $columns
done

# How far a search is: one line, which goes away, and its answer begins a line.
scenario search.yaml
on 50 "$FLOPCAST" tune search.yaml --max-batch 2
tr '\r' '\n' <typescript | sed $'s/\033\\[K//' >pieces
grep -qE '^tune: [0-9]+ of [0-9]+ candidates$' pieces || fail "how far it is: $(cat -v typescript)"
grep -qE '^[A-Za-z_0-9-]+, micro-batch 2, ' pieces || fail "the answer: $(<pieces)"
if grep -E '^tune: .{44}' pieces; then fail "longer than 50"; fi
