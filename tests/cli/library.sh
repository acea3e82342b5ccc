#!/usr/bin/env bash
# libflopcast.so: what it exports; the digits of `flopcast run --format json` through C and through Python's ctypes; installed.
set -euo pipefail
# shellcheck source=/dev/null
. "$FLOPCAST_SOURCE_DIR/tests/cli/lib.bash"

# Nothing but its own functions is visible, each of the header.
nm -D --defined-only "$FLOPCAST_LIBRARY" | awk '{ print $3 }' | sort >exported
grep -o '\bflopcast_[a-z]*(' "$FLOPCAST_SOURCE_DIR/sim/library/flopcast.h" | tr -d '(' | sort -u >declared
diff -u declared exported || fail "exported is not what is declared"
objdump -p "$FLOPCAST_LIBRARY" >headers
grep -q 'SONAME *libflopcast.so.0$' headers || fail "no SONAME"

# T5's first point, as the program has it.
expect 0 "$FLOPCAST" run t5_scaling --format json --set cluster.gpus=8 --set train.micro_batch=8 --set train.precision=bf16_mixed
columns="tflops_per_gpu step_time_s gpus status required_bytes peak_allocated_bytes model tflops_deviation digest"
for column in $columns; do
    sed -n "s/^ *\"$column\": \"*\([^\",]*\)\"*,*$/\1/p" out | head -n 1
done >want
[[ $(wc -l <want) == 9 && $(sed -n 4p want) == ok ]] || fail "run --format json: $(<want)"
# shellcheck disable=SC2086 # a word each
expect 0 "$FLOPCAST_LIBRARY_EXAMPLE" t5_scaling $columns cluster.gpus=8 train.micro_batch=8 train.precision=bf16_mixed
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

# From Python; a sanitized library needs its sanitizer in the process first, which python3 has not: gcc's is preloaded, clang's is no library.
nm -D "$FLOPCAST_LIBRARY" >symbols
sanitizer=$(ldd "$FLOPCAST_LIBRARY" | awk '/libasan/ { print $3 }')
if ! command -v python3 >/dev/null || { grep -q __asan_init symbols && [[ ! $sanitizer ]]; }; then
    echo "skipped: Python, as it is not here or the library has clang's sanitizer"
    exit 0
fi
cat >point.py <<'PYTHON'
import ctypes
import sys

flopcast = ctypes.CDLL(sys.argv[1])
for name, result, *arguments in (
    ("new", ctypes.c_void_p),
    ("free", None, ctypes.c_void_p),
    ("set", ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p),
    ("open", ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p),
    ("points", ctypes.c_int, ctypes.c_void_p),
    ("run", ctypes.c_int, ctypes.c_void_p, ctypes.c_int),
    ("text", ctypes.c_char_p, ctypes.c_void_p, ctypes.c_char_p),
    ("number", ctypes.c_double, ctypes.c_void_p, ctypes.c_char_p),
    ("plan", ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int),
    ("messages", ctypes.c_char_p, ctypes.c_void_p),
):
    function = getattr(flopcast, "flopcast_" + name)
    function.restype, function.argtypes = result, arguments

f = flopcast.flopcast_new()
for key, value in ("cluster.gpus", "8"), ("train.micro_batch", "8"), ("train.precision", "bf16_mixed"):
    flopcast.flopcast_set(f, key.encode(), value.encode())
if flopcast.flopcast_open(f, b"t5_scaling") or flopcast.flopcast_run(f, 0):
    sys.exit(flopcast.flopcast_messages(f).decode())
for column in sys.argv[2:]:
    print((flopcast.flopcast_text(f, column.encode()) or b"null").decode())
assert flopcast.flopcast_points(f) == 1
assert "%.15g" % flopcast.flopcast_number(f, b"tflops_per_gpu") == flopcast.flopcast_text(f, b"tflops_per_gpu").decode()
assert flopcast.flopcast_text(f, b"no_such_column") is None
assert b"all_gather" in flopcast.flopcast_plan(f, 0)
assert flopcast.flopcast_run(f, 1) == 2 and b"there is no point 1; give 0 to 0" in flopcast.flopcast_messages(f)
assert flopcast.flopcast_text(f, b"tflops_per_gpu") is None
assert flopcast.flopcast_open(f, b"nosuch") == 2 and flopcast.flopcast_points(f) == 0
flopcast.flopcast_free(f)
PYTHON
# shellcheck disable=SC2086
expect 0 env ${sanitizer:+LD_PRELOAD="$sanitizer" ASAN_OPTIONS=detect_leaks=0} python3 point.py moved/lib/libflopcast.so $columns
diff -u want out || fail "in Python other digits"
