#!/usr/bin/env bash
# `flopcast tune MODEL`: all strategies with their stacks by one command; limit, stop, CSV order, what was held.
set -euo pipefail
# shellcheck source=/dev/null
. "$FLOPCAST_SOURCE_DIR/tests/cli/lib.bash"
mkdir -p small
cat >small/config.json <<'EOM'
{"model_type": "llama", "hidden_size": 1024, "intermediate_size": 2816, "num_hidden_layers": 4, "num_attention_heads": 8,
 "num_key_value_heads": 8, "vocab_size": 8000, "tie_word_embeddings": false}
EOM
job=(--topology h100-8x400g --gpus 8 --seq-len 512 --global-batch 16 --max-batch 1)

# A folder with config.json; the file; strategies beside each other, each with its stack; what was held and left out.
expect 0 "$FLOPCAST" tune small "${job[@]}" --top 2
says out "best by speed" "the best of each strategy and stack" "megatron-core" "torch-compile" "torchtitan" "held: " "not searched: "
cp out first
expect 0 "$FLOPCAST" tune small/config.json "${job[@]}" --top 2
cmp <(sed 's/config.json//; /^the first/d' out) <(sed '/^the first/d' first) || fail "a folder and its file differ: $(<out)"

# The best of all, and of each strategy and stack, is what simulating all finds. CSV rows come in the table's order.
"$FLOPCAST" tune small "${job[@]}" --top 2 --format csv | tr -d '\r' >some.csv
"$FLOPCAST" tune small "${job[@]}" --top 100000 --format csv | tr -d '\r' >all.csv
if grep -q ",slower," all.csv; then fail "not all were simulated"; fi
grep -q ",slower," some.csv || fail "nothing was cut by its bound"
fastest() { # FILE: by strategy and stack the most tokens/s; names before have commas
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) left[$i] = NF - i; next }
        { what = $(NF - left["stack"]) ($(NF - left["tensor"]) != "" ? "layout" : substr($(NF - left["strategy"]), 1, 4))
          speed = $(NF - left["tokens_per_s"]) + 0; if (speed > best[what]) best[what] = speed; if (speed > best["all"]) best["all"] = speed }
        END { for (w in best) print w, best[w] }' "$1" | sort
}
[[ $(fastest some.csv | grep ^all) == "$(fastest all.csv | grep ^all)" ]] || fail "best: $(fastest some.csv), of all: $(fastest all.csv)"
awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) left[$i] = NF - i; next }
    { speed = $(NF - left["tokens_per_s"]) + 0; if (NR > 2 && speed > last) exit 1; last = speed }' all.csv || fail "rows are not in the order of speed"

# Bounds are bounds.
awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) left[$i] = NF - i; next }
    $(NF - left["step_time_s"]) != "" && $(NF - left["bound_step_s"]) > $(NF - left["step_time_s"]) { print; bad = 1 }
    END { exit bad || NR < 20 }' all.csv || fail "a step is shorter than its bound"

# The most promising first, and the head says that not all were tried.
expect 0 "$FLOPCAST" tune small "${job[@]}" --limit 1 --no-noise
says out "best of the 1 tried, by speed" "left out by --limit" " --no-noise"
expect 0 "$FLOPCAST" tune small "${job[@]}" --strategy fsdp --top 1
if grep -q Megatron out; then fail "--strategy fsdp: $(<out)"; fi
expect 2 "$FLOPCAST" tune small --topology h100-8x400g --gpus 8 --seq-len 512
says err "give --global-batch N"

# A stop prints the best so far: within two seconds, and by sanitizers on a machine that does other things within twenty; not stopped it takes minutes.
FLOPCAST_SILENT_S=2 "$FLOPCAST" tune llama3.1-8b --topology h100-8x400g --gpus 64 --seq-len 4096 --global-batch 256 --strategy megatron --tensor 2 --top 1000 >stopped 2>stopped.err &
pid=$!
for ((i = 0; i < 1500; i++)); do
    grep -q "so far" stopped.err && break
    kill -0 $pid 2>/dev/null || break
    sleep 0.1
done
if kill -TERM $pid 2>/dev/null; then
    begin=$SECONDS status=0
    wait $pid || status=$?
    ((SECONDS - begin <= 20)) || fail "it took $((SECONDS - begin)) s to stop"
    [[ $status == 143 || $status == 0 ]] || fail "exit status $status"
fi
says stopped "tried, by speed" "held: "

# While candidates are still listed, there is nothing to print: a sentence says so. A start may take seconds, and the list tens of them.
for wait in 1 3 9; do
    "$FLOPCAST" tune deepseek-v3 --topology h100-8x400g --gpus 2048 --seq-len 4096 --global-batch 15360 >listed 2>listed.err &
    pid=$! status=0
    sleep $wait
    kill -TERM $pid
    wait $pid || status=$?
    [[ $status == 143 && ! -s listed ]] || fail "exit status $status: $(<listed)"
    ! grep -q "before a candidate was ranked" listed.err || break
done
says listed.err "flopcast: stopped before a candidate was ranked"
