#!/usr/bin/env bash
# flopcast.py, installed and moved: it finds the library in its prefix; the digits of `flopcast run --format json`; what is wrong is raised.
set -euo pipefail
# shellcheck source=/dev/null
. "$FLOPCAST_SOURCE_DIR/tests/cli/lib.bash"
if ! command -v python3 >/dev/null || ! python3 -c "import ctypes" 2>/dev/null; then
    echo "skipped: no python3 with ctypes here"
    exit 77
fi
# A sanitized library needs its sanitizer in the process first, which python3 has not: gcc's is preloaded, clang's is no library.
nm -D "$FLOPCAST_LIBRARY" >symbols
sanitizer=$(ldd "$FLOPCAST_LIBRARY" | awk '/libasan/ { print $3 }')
if [[ ! $sanitizer ]] && grep -q __asan_init symbols; then
    echo "skipped: the library has clang's sanitizer"
    exit 77
fi
cmake --install "$(dirname -- "$FLOPCAST")" --prefix "$PWD/first" >log 2>&1 || fail "cmake --install: $(tail -n 5 log)"
mv first "moved to"
unset LD_LIBRARY_PATH
module="$PWD/moved to/lib/python3/dist-packages"
python() { env ${sanitizer:+LD_PRELOAD="$sanitizer"} PYTHONPATH="${path:-$module}" python3 -B "$@"; }

# T5's first point, as the installed program has it: every column ('curve' is a digest of paths, too).
expect 0 "$PWD/moved to/bin/flopcast" run t5_scaling --format json --set cluster.gpus=8 --set train.micro_batch=8 --set train.precision=bf16_mixed --set cluster.nccl_protocols=all --set "cluster.nccl_ring_post_latency=46.33 us"
mv out run.json
cat >point.py <<'PYTHON'
import json
import flopcast

with flopcast.Scenario("t5_scaling", {"cluster.gpus": 8, "train.micro_batch": 8, "train.precision": "bf16_mixed", "cluster.nccl_protocols": "all", "cluster.nccl_ring_post_latency": "46.33 us"}) as scenario:
    row = scenario.run()
    assert len(scenario) == 1 and "all_gather" in scenario.plan()
    try:
        scenario.run(1)
        raise SystemExit("there is no point 1")
    except flopcast.Error as error:
        assert "there is no point 1; give 0 to 0" in str(error), error
with open("run.json") as file:
    text = file.read()
want = json.loads(text)
want = want[0] if isinstance(want, list) else want
assert len(row) > 40 and row["status"] == "ok" and row["tflops_per_gpu"] > 0, row
differ = [name for name, value in row.items() if name in want and want[name] != value]
assert not differ and set(row) & set(want) >= {"gpus", "tflops_per_gpu", "digest"}, [(n, row[n], want[n]) for n in differ]
assert 0 < row["tokens_per_s_per_gpu_low"] < row["tokens_per_s_per_gpu"] < row["tokens_per_s_per_gpu_high"], row
assert flopcast.__version__ in open(flopcast._library._name, "rb").read().decode("latin-1")
for wrong, sentence in ((("nosuch", {}), "nosuch"), (("t5_scaling", {"train.micro_bach": 1}), "did you mean 'micro_batch'")):
    try:
        flopcast.Scenario(*wrong)
        raise SystemExit(f"{wrong} is taken")
    except flopcast.Error as error:
        assert sentence in str(error), error
print(flopcast._library._name)
PYTHON
expect 0 python point.py
says out "moved to/lib/"

# Without the library beside it: the loader's, else a sentence that says where it was looked for.
mkdir -p alone/lib/python3/dist-packages
cp "$module/flopcast.py" alone/lib/python3/dist-packages
path=$PWD/alone/lib/python3/dist-packages expect 1 python -c "import flopcast"
says err "ImportError: libflopcast.so.0 is neither in $PWD/alone/lib nor known to the loader (LD_LIBRARY_PATH, ldconfig): "
export LD_LIBRARY_PATH="$PWD/moved to/lib"
path=$PWD/alone/lib/python3/dist-packages expect 0 python -c "import flopcast; print(flopcast.__version__)"
says out "$(<"$FLOPCAST_SOURCE_DIR/sim/VERSION")"
