#!/usr/bin/env bash
# The pictures of README.md are those that their commands draw today. They are compared where gnuplot is the version that drew them.
set -euo pipefail
# shellcheck source=/dev/null
. "$FLOPCAST_SOURCE_DIR/tests/cli/lib.bash"
picture=$FLOPCAST_SOURCE_DIR/plots/t5_scaling.svg
command -v gnuplot >/dev/null || exit 77

COLUMNS=80 expect 0 "$FLOPCAST" run scenarios/t5_scaling.yaml --db a.db
# The sentence below the picture is what the answer says: loss, published, all readings.
loss=$(tr '\n' ' ' <out | sed -nE 's/.*batch 8: loses ([0-9.]+) %.* published: loses ([0-9.]+) %.* other readings ([0-9.]+) to ([0-9.]+) %.*batch 16.*/loses \1 % from 8 to 512 A100 (\3 to \4 % by all readings of the paper); published: \2 %./p')
[[ -n $loss ]] || fail "what T5 loses: $(<out)"
grep -qF "$loss" "$FLOPCAST_SOURCE_DIR/README.md" || fail "README.md does not say: $loss"
expect 0 "$FLOPCAST" plot t5_scaling --db a.db --out t5.svg
version() { sed -n 's/.*<desc>\(Produced by GNUPLOT.*\)<\/desc>.*/\1/p' "$1"; }
[[ -n $(version "$picture") ]] || fail "plots/t5_scaling.svg was not drawn by gnuplot"
[[ $(version "$picture") == "$(version t5.svg)" ]] || exit 77
cmp t5.svg "$picture" ||
    fail "plots/t5_scaling.svg is stale; draw it again: scenarios/run t5_scaling && build/release/flopcast plot t5_scaling --db results/flopcast.db --out plots/t5_scaling.svg"

timeline="run gpt2_ddp_v100 --set strategy=megatron --set parallelism.pipeline=4 --set train.global_batch=64 --set cluster.gpus=8 --trace p.json --db p.db"
# shellcheck disable=SC2086 # words
expect 0 "$FLOPCAST" $timeline
expect 0 "$FLOPCAST" plot timeline --db p.db --out timeline.svg
cmp timeline.svg "$FLOPCAST_SOURCE_DIR/plots/timeline.svg" ||
    fail "plots/timeline.svg is stale; draw it again: flopcast $timeline && flopcast plot timeline --db p.db --out plots/timeline.svg"
