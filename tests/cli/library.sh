#!/usr/bin/env bash
# libflopcast.so: what it exports; the digits of `flopcast run --format json` through C; installed.
set -euo pipefail
# shellcheck source=/dev/null
. "$FLOPCAST_SOURCE_DIR/tests/cli/lib.bash"

# Nothing but its own functions is visible, each of the header.
nm -D --defined-only "$FLOPCAST_LIBRARY" | awk '{ print $3 }' | sort >exported
grep -o '\bflopcast_[a-z]*(' "$FLOPCAST_SOURCE_DIR/sim/flopcast/library/flopcast.h" | tr -d '(' | sort -u >declared
diff -u declared exported || fail "exported is not what is declared"
objdump -p "$FLOPCAST_LIBRARY" >headers
grep -q 'SONAME *libflopcast.so.0$' headers || fail "no SONAME"

# T5's first point, as the program has it.
expect 0 "$FLOPCAST" run t5_scaling --format json --set cluster.gpus=8 --set train.micro_batch=8 --set train.precision=bf16_mixed --set cluster.nccl_protocols=all --set "cluster.nccl_ring_post_latency=46.33 us"
columns="tflops_per_gpu step_time_s gpus status required_bytes peak_allocated_bytes model tflops_deviation digest"
for column in $columns; do
    sed -n "s/^ *\"$column\": \"*\([^\",]*\)\"*,*$/\1/p" out | head -n 1
done >want
[[ $(wc -l <want) == 9 && $(sed -n 4p want) == ok ]] || fail "run --format json: $(<want)"
# shellcheck disable=SC2086 # a word each
expect 0 "$FLOPCAST_LIBRARY_EXAMPLE" t5_scaling $columns cluster.gpus=8 train.micro_batch=8 train.precision=bf16_mixed cluster.nccl_protocols=all "cluster.nccl_ring_post_latency=46.33 us"
diff -u want out || fail "in C other digits"

# A mistake has its place, and is no abort.
scenario a.yaml
expect 2 "$FLOPCAST_LIBRARY_EXAMPLE" a.yaml gpus train.micro_bach=8
says err "--set train.micro_bach: error" "did you mean"
sed -i 's/micro_batch: 2/micro_batch: two/' a.yaml
expect 2 "$FLOPCAST_LIBRARY_EXAMPLE" a.yaml gpus
says err "a.yaml:4:22: error"
expect 2 "$FLOPCAST_LIBRARY_EXAMPLE" absent.yaml gpus
says err "absent.yaml"

# Installed, and moved.
cmake --install "$(dirname -- "$FLOPCAST")" --prefix "$PWD/first" >log 2>&1 || fail "cmake --install: $(tail -n 5 log)"
mv first moved
[[ -s moved/include/flopcast.h && -L moved/lib/libflopcast.so && -L moved/lib/libflopcast.so.0 ]] || fail "$(find moved/lib moved/include)"
if command -v pkg-config >/dev/null; then
    PKG_CONFIG_PATH=moved/lib/pkgconfig expect 0 pkg-config --cflags --libs flopcast
    says out "moved/lib/pkgconfig/../../include" "-lflopcast"
    [[ $(PKG_CONFIG_PATH=moved/lib/pkgconfig pkg-config --modversion flopcast) == "$(<"$FLOPCAST_SOURCE_DIR/sim/VERSION")" ]] || fail "its version"
fi
