#!/usr/bin/env bash
# flopcast and the two programs that it starts: one version, the libraries of the outside world where they belong, exit statuses that come
# through, and what is said where a program is missing.
set -euo pipefail
# shellcheck source=/dev/null
. "$FLOPCAST_SOURCE_DIR/tests/cli/lib.bash"
folder=$(dirname -- "$FLOPCAST")

for program in flopcast-lab flopcast-interop; do
    [[ $("$folder/$program" --version) == "$("$FLOPCAST" --version)" ]] || fail "$program is $("$folder/$program" --version)"
    expect 2 "$folder/$program"
    says err "this program is started by flopcast; its commands: flopcast "
done
needed=$(readelf -d "$FLOPCAST")
for library in yajl libz expat protobuf; do
    [[ $needed != *"$library"* ]] || fail "flopcast is linked to $library"
done

# Theirs is the exit status, also of usage errors; help and arguments go through as they are.
expect 2 "$FLOPCAST" validate --where "no such ' column"
expect 2 "$FLOPCAST" calibrate check trace
expect 2 "$FLOPCAST" topology import absent.txt
says err "absent.txt"
expect 0 "$FLOPCAST" help validate
says out "Usage: flopcast validate" "flopcast validate --source InternEvo"

# One that lies alone simulates; it says what it cannot do, and has no page of it.
mkdir alone
cp "$FLOPCAST" alone/flopcast
export FLOPCAST_DATA=$FLOPCAST_SOURCE_DIR
expect 0 alone/flopcast run gpt2_ddp_v100 --set cluster.gpus=8 --trace t.json
for command in "validate" "calibrate fit" "scenario import a.toml" "replay traces"; do
    read -ra words <<<"$command"
    expect 1 alone/flopcast "${words[@]}"
    says err "a part of flopcast that does this, is neither beside flopcast nor in ../lib/flopcast"
done
expect 1 alone/flopcast run gpt2_ddp_v100 --set cluster.gpus=8 --chakra traces --quiet
says err "flopcast-interop, a part of flopcast"
expect 1 alone/flopcast run gpt2_ddp_v100 --set cluster.gpus=8 --trace t.json.gz --quiet
says err "t.json.gz: error: cannot write: Package not installed"
expect 0 alone/flopcast __man
says out flopcast-run.1
if grep -E 'validate|calibrate|replay' out; then fail "a page of what is not there"; fi

# ../lib/flopcast is as good as beside.
mkdir -p installed/bin installed/lib/flopcast
cp "$FLOPCAST" installed/bin
cp "$folder/flopcast-lab" installed/lib/flopcast
expect 0 installed/bin/flopcast calibrate fit --help
