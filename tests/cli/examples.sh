#!/usr/bin/env bash
# The example that each --help opens with: there is one, it calls the command, and it works as it stands. A machine's own programs,
# nvidia-smi and nccl-tests, are played by files of tests/import and by flopcast; a configuration of DeepSpeed is one of tests/exchange.
set -euo pipefail
# shellcheck source=/dev/null
. "$FLOPCAST_SOURCE_DIR/tests/cli/lib.bash"

mkdir programs
cat >programs/nvidia-smi <<SH
#!/bin/sh
[ "\$*" = "topo -m" ] && exec cat "$FLOPCAST_SOURCE_DIR/tests/import/data/topology/h100.txt"
SH
cat >programs/all_reduce_perf <<SH
#!/bin/sh
exec "$FLOPCAST" collective all_reduce --topology h100-8x400g --gpus 8 --bytes 1M:1G
SH
chmod +x programs/*
PATH=$PWD/programs:$(dirname -- "$FLOPCAST"):$PATH
have_gnuplot=$(command -v gnuplot || true)

example() { # COMMAND...: its example, which follows the usage and ends with an empty line
    flopcast "$@" --help | sed '1,/^Example: /{/^Example: /!{/^Usage: \|^  or: \|^            /d}}; /^$/,$d' >lines
    sed 's/^Example: //; s/^         //' lines
}
names=("")
for command in $(flopcast --help | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p'); do names+=("$command"); done
names+=("topology import" "scenario import" "trace scale" "calibrate fit" "calibrate import" "calibrate check" "calibrate check trace" "calibrate show")
((${#names[@]} > 20)) || fail "only these commands: ${names[*]}"
for name in "${names[@]}"; do
    read -ra words <<<"$name"
    example "${words[@]}" >typed
    [[ $(head -c 9 lines) == "Example: " ]] || fail "flopcast $name --help does not open with an example: $(<lines)"
    grep -q "flopcast ${words[*]}" typed || fail "the example of '$name' is of another command: $(<typed)"
    mkdir -p work && cd work
    cp "$FLOPCAST_SOURCE_DIR/tests/exchange/data/llama3_8b.toml" .
    start=$SECONDS status=0
    if [[ ! $have_gnuplot && $name =~ ^(plot|report)$ ]]; then
        echo "not run, as gnuplot is not here: $name"
    else
        bash -e ../typed >../out 2>../err || status=$?
        [[ $status == 0 ]] || fail "exit status $status of the example of '$name': $(<../typed): $(tail -n 5 ../err)"
        [[ -s ../out || $name == plot || $name == report ]] || fail "the example of '$name' prints nothing"
        echo "$((SECONDS - start)) s: flopcast $name"
    fi
    cd ..
    rm -rf work
done

# Every file of scenarios/ is one that compiles, and has nothing that its job does not read. As text the plans are 11 GB.
expect 0 "$FLOPCAST" run "$FLOPCAST_SOURCE_DIR"/scenarios/*.yaml --plan --quiet
[[ ! -s err && ! -s out ]] || fail "run scenarios/*.yaml --plan --quiet: $(head -n 5 out err)"
