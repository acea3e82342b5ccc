#!/usr/bin/env bash
# `flopcast plot` of any sweep: axes, conditions, several runs, panels, sizes; and what there is no room for.
set -euo pipefail
# shellcheck source=/dev/null
. "$FLOPCAST_SOURCE_DIR/tests/cli/lib.bash"
scenario a.yaml
quick=(--quiet --set noise.kernel_jitter=0 --set noise.host_jitter=0 --set noise.network_jitter=0 --set noise.gpu_speed_spread=0)
# 2 x 2 x 2 points, one of which goes along with another: the buckets' size shows nothing that the batch does not.
expect 0 "$FLOPCAST" run a.yaml --db a.db "${quick[@]}" --set "cluster.gpus=[8, 16]" --set "train.micro_batch=[2, 4]" \
    --set "train.optimizer=[adamw, sgd]"

# The value of a series of a figure's script: series PICTURE NAME prints its lines, without the names of the columns.
series() { sed -n "/^\\\$$2 << EOD\$/,/^EOD\$/p" "$1.gp" | sed '1,2d;$d' | tr -d '"'; }
draw() { expect 0 "$FLOPCAST" plot "$@" --out f.svg --keep-script; }

# ---- the x axis ----
draw scaling --db a.db
[[ $(series f.svg ticks) == $'8.0 8\n16.0 16' ]] || fail "default axis: $(series f.svg ticks)"
draw scaling --db a.db --x train.micro_batch
[[ $(series f.svg ticks) == $'2.0 2\n4.0 4' ]] || fail "numbers: $(series f.svg ticks)"
[[ $(series f.svg legend | wc -l) == 4 ]] || fail "curves: $(series f.svg legend)"
says f.svg "TFLOPS per GPU over train.micro_batch" "tiny.json DDP, 8 GPUs, optimizer adamw: " "tiny.json DDP, 16 GPUs, optimizer sgd: "
draw scaling --db a.db --x optimizer # by its last name; texts, in the order of the sweep
[[ $(series f.svg ticks) == $'1.0 adamw\n2.0 sgd' ]] || fail "texts: $(series f.svg ticks)"
says f.svg "tiny.json DDP, batch 2, 8 GPUs" "tiny.json DDP, batch 4, 16 GPUs"
# Every point stands where its setting says, with its own value.
draw scaling --db a.db --x micro_batch --where "gpus = 16 AND train.optimizer = 'sgd'"
[[ ! -s err ]] || fail "a condition makes a finished run look unfinished: $(<err)"
[[ $(series f.svg points | awk '{print $4, $5}' | tr '\n' ';') == \
    "$(ask "SELECT printf('%.1f', micro_batch), tflops_per_gpu FROM point WHERE gpus = 16 AND json_extract(config, '\$.train.optimizer.value') = 'sgd' ORDER BY 1" | tr '\n' ';')" ]] ||
    fail "points: $(series f.svg points)"
says f.svg "where gpus = 16 AND train.optimizer = 'sgd'"
# Without sizes of clusters to compare the axis is what differs.
draw scaling --db a.db --where "gpus = 8 AND optimizer = 'adamw'"
says f.svg "TFLOPS per GPU over train.micro_batch"
# What varies together with the axis makes no further curves: strong scaling is one curve.
sed '$a sweep: [{cluster.gpus: [8, 16, 32], train.micro_batch: [8, 4, 2]}]' a.yaml >strong.yaml
expect 0 "$FLOPCAST" run strong.yaml --db strong.db "${quick[@]}"
draw scaling --db strong.db
[[ $(series f.svg legend | wc -l) == 1 ]] || fail "one curve: $(series f.svg legend)"
says f.svg "<text>tiny.json DDP: "
# Sizes keep their units.
expect 0 "$FLOPCAST" run a.yaml --db bucket.db "${quick[@]}" --set "ddp.bucket_cap=[1 MiB, 25 MiB]"
draw scaling --db bucket.db --x ddp.bucket_cap
[[ $(series f.svg ticks) == $'1048576.0 1 MiB\n26214400.0 25 MiB' ]] || fail "units: $(series f.svg ticks)"
for figure in speed memory breakdown; do
    draw $figure --db a.db --x train.micro_batch
    says f.svg "over train.micro_batch" "optimizer adamw" "optimizer sgd"
done
expect 2 "$FLOPCAST" plot scaling --db a.db --x train.micro_bach
says err "--x: error: there is no setting 'train.micro_bach'" "they differ in " "train.micro_batch (2, 4)" "train.optimizer (adamw, sgd)"
expect 2 "$FLOPCAST" plot scaling --db a.db --x seq_len
says err "'train.seq_len' is the same in all 8 points; they differ in"
expect 2 "$FLOPCAST" plot scaling --db a.db --x reduce_bucket_size
says err "'reduce_bucket_size' is the name of several settings; give the whole"
expect 2 "$FLOPCAST" plot memory_timeline --db a.db --x gpus
says err "figure 'memory_timeline' has no setting on its x axis; leave out --x"

# The band of a curve of one point is a bar, and is called so.
draw scaling --db a.db --where "gpus = 8 AND micro_batch = 2 AND optimizer = 'adamw'"
says f.svg "Bar: where 90 %"
draw scaling --db a.db --where "micro_batch = 2 AND optimizer = 'adamw'"
says f.svg "Band: where 90 %"

# ---- conditions ----
count() { draw scaling --db a.db --where "$1" && series f.svg points | wc -l; } # points that fit
[[ $(count 'gpus > 8') == 4 && $(count 'cluster.gpus > 8') == 4 && $(count '"cluster.gpus" > 8') == 4 ]] || fail "a setting"
[[ $(count "train.optimizer IN ('sgd') AND NOT (micro_batch = 4)") == 2 ]] || fail "a list"
[[ $(count "max(gpus, 8 * train.micro_batch) = 16") == 4 ]] || fail "a function: $(series f.svg points)"
[[ $(count "tflops_per_gpu > 0 AND precision = 'fp16_mixed' AND scenario = 'a' AND run = 1") == 8 ]] || fail "results"
[[ $(count "'train.optimizer' = 'train.optimizer' -- gpus") == 8 ]] || fail "a text is no setting"
[[ $(count "cluster.topology = 'dgx-1v-ib'") == 8 ]] || fail "files by their names"
while IFS='|' read -r condition says; do
    expect 2 "$FLOPCAST" plot scaling --db a.db --where "$condition" --out not.svg
    says err "--where: error: " "$says"
done <<'CASES'
gpus > 64|'gpus > 64' is true of no point; they differ in
train.micro_bach = 2|there is no setting or column 'train.micro_bach'; did you mean 'train.micro_batch'?
micro_bach = 2|there is no setting or column 'micro_bach'; did you mean 'micro_batch'?
gpus =|'gpus =' is no condition on points: 
gpus = 8; DROP TABLE run|is no condition on points: 
gpus = 8) ; DROP TABLE run --|is more than one expression; join conditions with AND
"nosuch" = 8|there is no setting or column 'nosuch'
gpus = 'unclosed|is no condition on points: 
(SELECT count(*) FROM pragma_wal_checkpoint) = 0|is no condition on points: 
(WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n) > 0|takes too long; write a simpler condition
length(zeroblob(1000000000)) > 0|is no condition on points: string or blob too big
CASES
[[ ! -e not.svg && $(ask 'SELECT count(*) FROM run') == 1 ]] || fail "a condition did something"
expect 2 "$FLOPCAST" plot gemm --db a.db --where 'gpus = 8'
expect 0 "$FLOPCAST" waterfall a.yaml --db a.db --from 8 --to 16
expect 2 "$FLOPCAST" plot waterfall --db a.db --where 'gpus = 8'
says err "figure 'waterfall' shows no points; leave out --where"

# ---- several runs in one figure ----
scenario other.yaml
expect 0 "$FLOPCAST" run other.yaml --db a.db "${quick[@]}" --set "cluster.gpus=[8, 16]" --set train.micro_batch=8
draw scaling --db a.db --scenario a --scenario other --where "micro_batch > 2"
says f.svg "a, tiny.json DDP, batch 4, optimizer adamw: " "other, tiny.json DDP, batch 8, optimizer adamw: "
[[ $(series f.svg legend | wc -l) == 3 ]] || fail "curves of two scenarios: $(series f.svg legend)"
draw scaling --db a.db --run 2 --run 1 --where "optimizer = 'adamw' AND gpus = 8" --x scenario
[[ $(series f.svg ticks) == $'1.0 other\n2.0 a' ]] || fail "scenarios as the axis: $(series f.svg ticks)"
expect 0 "$FLOPCAST" run other.yaml --db a.db "${quick[@]}" --set "cluster.gpus=[8, 16]" --set train.micro_batch=8 --set run.steps=2
draw scaling --db a.db --run 2 --run 3
says f.svg "run 2, tiny.json DDP, batch 8: " "run 3, tiny.json DDP, batch 8: "
draw breakdown --db a.db --run 2
[[ $(series f.svg bars | wc -l) == 2 ]] || fail "bars of one run"
expect 2 "$FLOPCAST" plot scaling --db a.db --run 99
says err "a.db: error: there is no run 99; the newest are: 3 (other of " "2 points), 2 (other of " "8 points)"
expect 2 "$FLOPCAST" plot scaling --db a.db --run x
says err "--run x: give the number of a run"
expect 2 "$FLOPCAST" plot waterfall --db a.db --run 1
says err "figure 'waterfall' shows no runs; leave out --run"

# ---- panels ----
expect 0 "$FLOPCAST" run a.yaml --db many.db "${quick[@]}" --set "train.micro_batch=[1, 2, 4, 8]" --set "train.seq_len=[64, 128, 256]" \
    --set "train.precision=[fp16_mixed, fp32]" --set "cluster.gpus=[8, 16]"
draw scaling --db many.db # 24 curves: the fewest panels with at most 12 each are two
[[ $(series f.svg panels) == $'1 fp16_mixed\n2 fp32' && $(series f.svg legend | wc -l) == 12 ]] || fail "panels: $(series f.svg panels)"
says f.svg "DGX-1V, 4 x 100 Gb/s InfiniBand, tiny.json DDP" "<text>batch 1, 64 tokens<"
draw scaling --db many.db --facet micro_batch
[[ $(series f.svg panels | wc -l) == 4 && $(series f.svg legend | wc -l) == 6 ]] || fail "panels that were asked for: $(series f.svg panels)"
expect 2 "$FLOPCAST" plot scaling --db many.db --facet train.optimizer
says err "--facet: error: 'train.optimizer' is the same in all 48 points"
expect 2 "$FLOPCAST" plot breakdown --db many.db --x cluster.gpus --where 'seq_len < 256 OR gpus > 0' --facet gpus --out not.svg
says err "figure 'breakdown'" "--facet"

# ---- sizes and kinds of pictures ----
draw scaling --db a.db --size 16x10cm # 16 / 2.54 x 96 = 604.724 pixels; the canvas is 1200 wide
says f.svg 'width="604.724" height="377.953"' 'viewBox="0 0 1200 750"'
expect 0 "$FLOPCAST" plot scaling --db a.db --size 640x400 --out f.png
[[ $(head -c 24 f.png | tail -c 8 | od -An -tx1 | tr -d ' \n') == 0000028000000190 ]] || fail "640 x 400 in the PNG's header"
expect 0 "$FLOPCAST" plot scaling --db a.db --out f.pdf
grep -qa "MediaBox \[ 0 0 468 " f.pdf || fail "6.5 inches are 468 points: $(grep -a MediaBox f.pdf)"
expect 0 "$FLOPCAST" plot scaling --db a.db --size 6x4in --out f.pdf
[[ $(head -c 5 f.pdf) == %PDF- ]] || fail "no PDF"
grep -qa "MediaBox \[ 0 0 432 288 \]" f.pdf || fail "6 x 4 inches are 432 x 288 points: $(grep -a MediaBox f.pdf)"
for size in 16 16x 16x9m 1x1 99999x1 axb; do
    expect 2 "$FLOPCAST" plot scaling --db a.db --size $size
    says err "--size $size: give width x height"
done
# In characters a figure is as wide as the terminal.
for columns in 80 100; do
    for figure in scaling speed memory breakdown; do
        COLUMNS=$columns expect 0 "$FLOPCAST" plot $figure --db a.db --out -
        (($(wc -L <out) <= columns && $(wc -L <out) > columns - 12)) || fail "$figure in $columns columns has $(wc -L <out)"
    done
done
COLUMNS=80 expect 0 "$FLOPCAST" plot scaling --db a.db --out - --size 70x30
(($(wc -L <out) == 70 && $(wc -l <out) >= 29)) || fail "70 x 30 characters: $(wc -L -l <out)"
