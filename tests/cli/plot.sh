#!/usr/bin/env bash
# `flopcast plot`: pictures, the figures that there are, mistakes.
set -euo pipefail
# shellcheck source=/dev/null
. "$FLOPCAST_SOURCE_DIR/tests/cli/lib.bash"
scenario a.yaml 'sweep: [{cluster.gpus: [8, 16]}]'
expect 0 "$FLOPCAST" run a.yaml --db a.db --quiet

for figure in memory breakdown scaling; do
    expect 0 "$FLOPCAST" plot $figure --db a.db
    [[ $(cat out) == "wrote $figure.png" ]] || fail "what it is called: $(cat out)"
    [[ $(head -c 8 $figure.png | od -An -tx1 | tr -d ' \n') == 89504e470d0a1a0a ]] || fail "$figure.png is no PNG"
done
expect 0 "$FLOPCAST" plot memory --db a.db --out - # in characters
says out "parameters" "GiB"

# What a figure shows is the first line of its SQL, whole, which messages quote.
for sql in "$FLOPCAST_SOURCE_DIR"/plots/*.sql; do
    head -n 1 "$sql" | grep -qE '^-- .{1,250}\.$' || fail "$sql: what it shows does not end in its first line"
done
expect 2 "$FLOPCAST" plot t5_scaling --db a.db --out t5.png
says err "which shows: TFLOPS per GPU" "flopcast plot scaling"
expect 0 "$FLOPCAST" run a.yaml --db b.db --quiet --samples 2 --set "train.micro_batch=[2, 4]" --set "train.seq_len=[128, 256]" \
    --set "train.precision=[fp16_mixed, fp32]"
expect 0 "$FLOPCAST" plot scaling --db b.db --out scaling.svg
[[ ! -s out ]] || fail "what was asked for is no news: $(cat out)"
says scaling.svg "tiny.json DDP, batch 2, 128 tokens, fp16_mixed: " "tiny.json DDP, batch 4, 256 tokens, fp32: " "Bands: 90 %"
# Pictures are as high as what they name needs: with 8 curves 92 above, 568 of panel, 84 below and 8 lines of 26; 16 bars of two lines
# 220 + 18 x 16 x 2.3 (breakdown 60 more, for its sentence), 2 bars no less than their legend, 280 and 220.
says scaling.svg 'viewBox="0 0 1200 952"'
# The locale changes nothing: gnuplot would complain in C that it cannot convert the degree sign.
LC_ALL=C expect 0 "$FLOPCAST" plot scaling --db b.db --out c.svg
[[ ! -s err ]] || fail "in locale C: $(<err)"
cmp scaling.svg c.svg || fail "in locale C another picture"
for figure in memory breakdown; do
    more=$([[ $figure == breakdown ]] && echo 60 || echo 0)
    expect 0 "$FLOPCAST" plot $figure --db b.db --out $figure.svg
    says $figure.svg "viewBox=\"0 0 1200 $((882 + more))\""
    expect 0 "$FLOPCAST" plot $figure --db a.db --out $figure.svg
    says $figure.svg "viewBox=\"0 0 1200 500\""
done
# Settings beside each other on as many GPUs: a bar each, also of points out of memory, be it all of them.
expect 0 "$FLOPCAST" plot speed --db b.db --out speed.svg
says speed.svg "tokens/s per GPU" ", MFU " "Lines: 90 % of the samples" "256 tokens, fp16_mixed"
expect 0 "$FLOPCAST" run a.yaml --db oom.db --quiet --set train.micro_batch=65536 --set cluster.gpus=8
expect 0 "$FLOPCAST" plot speed --db oom.db --out speed.svg
says speed.svg "OOM"
expect 0 "$FLOPCAST" plot memory_timeline --db b.db --out memory_timeline.svg
says memory_timeline.svg "ms since the host issued the first op of the step" "activations"
# The host runs ahead of the GPU and issues a step before the GPU has begun it; the axis starts at 0 all the same.
expect 0 "$FLOPCAST" run a.yaml --db ahead.db --quiet --set train.precision=fp32 --set train.micro_batch=128 --set run.warmup_steps=2 \
    --set cluster.gpus=8
[[ $(ask "SELECT time_s < 0 FROM timeline WHERE sample = 0" ahead.db) == 1 ]] || fail "the host does not run ahead here"
expect 0 "$FLOPCAST" plot memory_timeline --db ahead.db --out memory_timeline.svg --keep-script
# shellcheck disable=SC2016 # gnuplot's
sed -n '/^$use << /,/^EOD/p' memory_timeline.svg.gp | awk 'NR > 2 && NF > 2 { if (NR == 3 && $1 != 0 || $1 < last) exit 1; last = $1 } END { print last }' >lasts ||
    fail "times that do not begin at 0 and grow"
[[ $(ask "SELECT abs(1000 * (max(time_s) - min(time_s)) - $(<lasts)) < 1e-6 FROM timeline" ahead.db) == 1 ]] || fail "the axis is no time"
# What a sweep varies distinguishes curves and bars, whatever it is; files by their names.
sed 's/^name: .*/name: another/' "$FLOPCAST_SOURCE_DIR/topologies/clusters/dgx-1v-ib.yaml" | sed 's#\.\./nodes#topologies/nodes#' >another.yaml
expect 0 "$FLOPCAST" run a.yaml --db c.db --quiet --set "train.optimizer=[adamw, sgd]" --set train.lora_rank=2 \
    --set "cluster.topology=[topologies/clusters/dgx-1v-ib.yaml, another.yaml]"
expect 0 "$FLOPCAST" plot scaling --db c.db --out scaling.svg
says scaling.svg "tiny.json DDP, batch 2, topology dgx-1v-ib, optimizer adamw: " "tiny.json DDP, batch 2, topology another, optimizer sgd: "
if grep -q lora scaling.svg; then fail "what all curves have in common is in their names"; fi
for figure in memory breakdown; do
    expect 0 "$FLOPCAST" plot $figure --db c.db --out $figure.svg
    says $figure.svg "tiny.json DDP, batch 2, 8 GPUs" "topology another, optimizer sgd" "several clusters"
done
expect 2 "$FLOPCAST" plot nosuch --db a.db
says err "there is no figure 'nosuch'; there are: breakdown busbw check gemm goodput memory"
expect 2 "$FLOPCAST" plot memory --db a.db --out memory.gif
says err "must end in .png, .svg or .pdf"
expect 1 "$FLOPCAST" plot memory --db absent.db
says err "absent.db: error: cannot open the database: No such file" "figure 'memory' shows: HBM of a GPU by category" "flopcast run SCENARIO --db" "Store that first, with --db absent.db"
expect 1 "$FLOPCAST" plot check --db absent.db
says err "flopcast calibrate check LOG --topology T --db"
[[ ! -e absent.db && ! -e t5.png ]] || fail "something was made"
mkdir mine
FLOPCAST_PLOTS=mine expect 0 "$FLOPCAST" plot memory --db a.db # what the folder lacks is flopcast's
expect 2 "$FLOPCAST" plot memory --db ''
says err "--db '': the database needs a name"
printf -- '-- name: a\nSELECT gpus, step_time_s FROM point\n' >mine/own.sql
# shellcheck disable=SC2016 # $a is gnuplot's
printf 'plot $a using 1:2\n' >mine/own.gp
FLOPCAST_PLOTS=mine expect 0 "$FLOPCAST" plot own --db a.db
FLOPCAST_PLOTS=mine expect 2 "$FLOPCAST" plot nosuch --db a.db
says err "mine/nosuch.sql: error: there is no figure 'nosuch'; there are: own breakdown"
mkdir none
FLOPCAST_DATA=none expect 2 "$FLOPCAST" plot memory --db a.db
says err "there is no figure 'memory'; the folder holds none; FLOPCAST_PLOTS names another"

# Of several scenarios in a database any can be drawn.
scenario other.yaml
expect 0 "$FLOPCAST" run other.yaml --db a.db --quiet
expect 0 "$FLOPCAST" plot scaling --db a.db --out newest.svg
says newest.svg "other: DGX-1V"
expect 0 "$FLOPCAST" plot scaling --db a.db --scenario a --out older.svg
says older.svg "a: DGX-1V"
expect 2 "$FLOPCAST" plot scaling --db a.db --scenario nosuch
says err "a.db: error: there is no run of scenario 'nosuch'; there are: a, other"
# Also where figures are not made of points: the trace and the explanation of a scenario that is not the newest.
for name in a other; do
    expect 0 "$FLOPCAST" run $name.yaml --db d.db --quiet --trace $name.json --set cluster.gpus=8
    expect 0 "$FLOPCAST" waterfall $name.yaml --db e.db --from 8 --to 16
done
expect 0 "$FLOPCAST" plot timeline --db d.db --scenario a --out timeline.svg
says timeline.svg "a: tiny.json, DDP, batch 2, 8 GPUs"
expect 0 "$FLOPCAST" plot waterfall --db e.db --scenario a --out waterfall.svg
says waterfall.svg "a; axes do not start at 0" "tiny.json DDP"
# A part of a step: rows without anything in it are left out, and so are names that nothing drawn has.
says timeline.svg "rank 0 host" "rank 0 compute" "rank 0 comm" "<text>forward<" "<text>backward<" "<text>collective<"
! grep -q measured timeline.svg || fail "a measurement that nobody made"
! grep -q recompute timeline.svg || fail "the legend names what is not drawn"
step=$(ask "SELECT 1e6 * max(start_s) FROM span WHERE phase = 'forward' AND point_id = 1" d.db) # the last kernel of forward: no collective yet
expect 0 "$FLOPCAST" plot timeline --db d.db --scenario a --from 0s --to "${step}us" --out cut.svg
says cut.svg "rank 0 compute" "<text>forward<" "a part of it"
! grep -q "comm<\|collective" cut.svg || fail "an empty row, or what lies beyond the cut"
# A pipeline: a row a stage, and in it a box for each pass of each micro-batch, with its number, of a rank of each stage.
expect 0 "$FLOPCAST" run a.yaml --db p.db --quiet --trace p.json --set cluster.gpus=8 --set strategy=megatron --set parallelism.pipeline=2 --set train.grad_accum=4
[[ $(ask "SELECT group_concat(DISTINCT rank) FROM span" p.db) == 0,4 ]] || fail "ranks of the trace"
# 1F1B: the first stage has two micro-batches under way, the last one does one after the other.
order="SELECT group_concat(substr(pass, 1, 1) || number, ' ') FROM (SELECT * FROM v_cell WHERE number IS NOT NULL ORDER BY start_s) GROUP BY stage ORDER BY stage"
[[ $(ask "$order" p.db) == 'f1 f2 b1 f3 b2 f4 b3 b4
f1 b1 f2 b2 f3 b3 f4 b4' ]] || fail "cells: $(ask "$order" p.db)"
expect 0 "$FLOPCAST" plot timeline --db p.db --out p.svg
says p.svg "One step, stage by stage" "<text>stage 0<" "<text>stage 1<" "<text>4<" "<text>forward<" "<text>backward<"
! grep -q "rank 0\|chunks" p.svg || fail "rows of streams, or chunks"
expect 0 "$FLOPCAST" run a.yaml --db p.db --quiet --trace p.json --trace-ranks 4 --set cluster.gpus=8 --set strategy=megatron --set parallelism.pipeline=2 --set train.grad_accum=4
expect 0 "$FLOPCAST" plot timeline --db p.db --out p.svg
says p.svg "One step, stream by stream" "rank 4 compute" "rank 4 pp.recv_prev"
expect 2 "$FLOPCAST" plot timeline --db d.db --from 100s --out not.svg
says err "figure 'timeline' has nothing between --from and --to"
expect 2 "$FLOPCAST" plot timeline --db d.db --from 2ms --to 1ms --out not.svg
says err "--to must be later than --from"
expect 2 "$FLOPCAST" plot timeline --db d.db --from 2 --out not.svg
says err "--from: '2' has no unit"
expect 2 "$FLOPCAST" plot memory --db d.db --from 2ms --out not.svg
says err "figure 'memory' cannot be cut; leave out --from and --to"
expect 2 "$FLOPCAST" plot waterfall --db e.db --scenario nosuch
says err "there is no run of scenario 'nosuch'; there are: a, other"
# A figure of what belongs to no scenario is not drawn as if it were one's.
expect 0 "$FLOPCAST" calibrate fit --db e.db
expect 0 "$FLOPCAST" plot gemm --db e.db --out gemm.svg
expect 2 "$FLOPCAST" plot gemm --db e.db --scenario a --out not.svg
says err "error: figure 'gemm' shows no scenario's runs; leave out --scenario a"
[[ ! -e not.svg ]] || fail "drawn all the same"
# The names of scenarios stand in titles as they are.
expect 0 "$FLOPCAST" run a.yaml --db named.db --quiet --set "name=From 8 to 1,024 GPUs"
for figure in scaling speed memory breakdown; do
    expect 0 "$FLOPCAST" plot $figure --db named.db --out named.svg
    says named.svg "From 8 to 1,024 GPUs: "
done
# Of more than 16 points figures of bars show the ends of each curve, and say so.
expect 0 "$FLOPCAST" run a.yaml --db ends.db --quiet --set "train.micro_batch=[1, 2, 3, 4, 5, 6]" --set "cluster.gpus=[8, 16, 32]" --set train.seq_len=64
for figure in speed breakdown memory; do
    expect 0 "$FLOPCAST" plot $figure --db ends.db --out $figure.svg
    says $figure.svg "of each curve its ends" "batch 6, 8 GPUs" "batch 1, 32 GPUs"
    if grep -q "16 GPUs" $figure.svg; then fail "$figure: a bar that is no end"; fi
done
