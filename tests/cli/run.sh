#!/usr/bin/env bash
# `flopcast run`: formats, overrides, the database, mistakes in files.
set -euo pipefail
# shellcheck source=/dev/null
. "$FLOPCAST_SOURCE_DIR/tests/cli/lib.bash"
scenario a.yaml 'sweep: [{cluster.gpus: [8, 16, 32]}]' 'assumptions: [that this is a test]'
scenario oom.yaml # with 16384 sequences of 128 tokens a GPU, the logits alone (x 1000 words, 2 and 4 bytes) take gigabytes several times
oom=(--set train.micro_batch=16384)

# The table: a head, a row a point, the loss of the curve, the assumptions.
expect 0 "$FLOPCAST" run a.yaml
says out "TFLOPS" "tiny.json DDP, batch 2: loses " " from 8 to 32 GPUs, " "flopcast waterfall a.yaml --from 8 --to 32" "that this is a test"
[[ $(grep -c '^tiny.json  DDP' out) == 3 ]] || fail "not three rows: $(<out)"
[[ ! -s err ]] || fail "chatter on stderr: $(<err)"
if grep -q "no noise" out; then fail "there is noise: $(<out)"; fi
expect 0 "$FLOPCAST" run a.yaml --no-noise
says out "no noise in these jobs, GPUs and networks alike" "by cause: flopcast waterfall a.yaml --from 8 --to 32 --no-noise"

# What is swept gets a column where no other shows it.
scenario b.yaml 'sweep: [{ddp.gradient_as_bucket_view: [true, false]}, {cluster.gpus: [8, 16]}]'
expect 0 "$FLOPCAST" run b.yaml
says out "ddp.gradient_as_bucket_view" "batch 2, ddp.gradient_as_bucket_view false: loses " " from 8 to 16 GPUs"
[[ $(grep -c '^tiny.json  DDP       \(true\|false\) ' out) == 4 ]] || fail "not four rows: $(<out)"

expect 0 "$FLOPCAST" run a.yaml --set cluster.gpus=8 --set "fsdp.sharding_strategy=[FULL_SHARD, SHARD_GRAD_OP]" # DDP reads neither
says out "fastest of 2 (1 more as fast): "
expect 0 "$FLOPCAST" run b.yaml --set cluster.gpus=8 --set ddp.gradient_as_bucket_view=true --set train.micro_batch="[1, 64]"
says out "fastest of 2: "

# One job: its answer in a sentence, then a line a number; the same numbers as in the table, which has the interval in the cell.
expect 0 "$FLOPCAST" run a.yaml --set cluster.gpus=8
head -n 3 out | tr '\n' ' ' | grep -qE '^[0-9,]+ tokens/s a GPU \([0-9,]+ to [0-9,]+\), [0-9.]+ % MFU; limited by [a-z ]+ \([0-9]+ % of the step.*\); fits, [0-9.]+ GiB to spare' ||
    fail "the answer: $(head -n 3 out)"
[[ $(grep -cE '^(model|strategy|batch/GPU|GPUs|TFLOPS/GPU \(90 %\)|step, s|tokens/s/GPU|MFU, %|HBM peak, GiB)  ' out) == 9 ]] || fail "lines: $(<out)"
cell=$(sed -n 's/^TFLOPS\/GPU (90 %)  *//p' out)
expect 0 "$FLOPCAST" run a.yaml
says out "  $cell  " # with its interval, behind GPUs
COLUMNS=80 expect 0 "$FLOPCAST" run a.yaml
says out "  $cell  "

# CSV: the names and their order are a promise; a row a point; the same bytes again.
expect 0 "$FLOPCAST" run a.yaml oom.yaml --format csv "${oom[@]}"
cp out first
expect 0 "$FLOPCAST" run a.yaml oom.yaml --format csv "${oom[@]}"
cmp out first || fail "two runs differ"
expect 0 "$FLOPCAST" run a.yaml --format csv
[[ $(wc -l <out) == 4 ]] || fail "not a head and three rows: $(<out)"
head -n 1 out | grep -q "^scenario,model,strategy,micro_batch,gpus,status,tflops_per_gpu,hw_tflops_per_gpu,published_tflops_per_gpu,step_time_s,tokens_per_s_per_gpu,exposed_comm_s,peak_allocated_bytes,peak_reserved_bytes,hbm_capacity_bytes,required_bytes,shortfall_bytes,oom_category," || fail "columns: $(head -n 1 out)"
sed -n 2p out | grep -q '^a,tiny.json,DDP,2,8,ok,[0-9.]*,[0-9.]*,,[0-9.e-]*,' || fail "row: $(sed -n 2p out)"

# The 90 % interval that the table prints is in CSV, JSON and the database.
expect 0 "$FLOPCAST" run a.yaml --format csv --set cluster.gpus=8
tr -d '\r' <out | awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) { at[$i] = i; back[$i] = NF - i } next }
    { t = $at["tflops_per_gpu"]; k = $at["tokens_per_s_per_gpu"]
      low = $(NF - back["tflops_per_gpu_low"]) / t; high = $(NF - back["tflops_per_gpu_high"]) / t
      if (!(low < 1 && high > 1) || ($(NF - back["tokens_per_s_per_gpu_low"]) / k / low - 1) ^ 2 + ($(NF - back["tokens_per_s_per_gpu_high"]) / k / high - 1) ^ 2 > 1e-18) exit 1
      printf "%+.0f to %+.0f %%", 100 * (low - 1), 100 * (high - 1) }' >interval || fail "interval: $(<out)"
expect 0 "$FLOPCAST" run a.yaml --set cluster.gpus=8
says out "how sure: 9 of 10 measured speeds of such jobs lay $(<interval) beside the prediction"
expect 0 "$FLOPCAST" run a.yaml --format json --set cluster.gpus=8
says out '"tokens_per_s_per_gpu_low": '
expect 0 "$FLOPCAST" run a.yaml --set cluster.gpus=8 --db interval.db
[[ $(ask "SELECT printf('%+.0f to %+.0f %%', 100 * (tflops_per_gpu_low / tflops_per_gpu - 1), 100 * (tokens_per_s_per_gpu_high / tokens_per_s_per_gpu - 1)) AS i FROM point" interval.db) == "$(<interval)" ]] ||
    fail "the database has another interval than $(<interval): $(ask 'SELECT * FROM point' interval.db)"

# Published numbers beside simulated ones: the deviation is that of speed, of allocated and of reserved memory.
{ echo 'id,figure,model,strategy,gpus,micro_batch,tflops_per_gpu,peak_allocated_bytes,peak_reserved_bytes,oom,kind,source'; echo '1,f,tiny.json,DDP,8,2,2,1e9,2e9,n,table,t'; } >figures.csv
scenario published.yaml 'published: {file: figures.csv, figure: f}' 'sweep: [{cluster.gpus: [8, 16]}]'
expect 0 "$FLOPCAST" run published.yaml --format csv
tr -d '\r' <out | awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) { at[$i] = i; back[$i] = NF - i } next }
    { printf "%.6f %.6f %.6f\n", $at["tflops_per_gpu"] / 2 - 1, $at["peak_allocated_bytes"] / 1e9 - 1, $at["peak_reserved_bytes"] / 2e9 - 1
      printf "%.6f %.6f %.6f\n", $(NF - back["tflops_deviation"]), $(NF - back["peak_allocated_deviation"]), $(NF - back["peak_reserved_deviation"]); exit }' >deviations
[[ $(sort -u deviations | wc -l) == 1 ]] || fail "deviations: $(<deviations)"
sed -n 3p out | grep -q ',cluster.gpus=16,,,,16' || fail "deviations of what is not published: $(sed -n 3p out)"
expect 0 "$FLOPCAST" run published.yaml --db published.db
[[ $(ask "SELECT printf('%.6f %.6f %.6f', deviation, peak_allocated_deviation, peak_reserved_deviation) AS d FROM v_scaling JOIN v_memory USING (point_id) WHERE v_scaling.gpus = 8" published.db) == "$(head -n 1 deviations)" ]] ||
    fail "deviations in the database: $(ask 'SELECT * FROM v_memory' published.db)"
expect 0 "$FLOPCAST" run published.yaml
says out "published" "% of peak" "% of reserved" "published peaks of memory: the peak beside HBM peak"
[[ $(awk '/^tiny.json  DDP/ { sub(/ \([0-9.]+-[0-9.]+\)/, ""); print $7, $(NF - 2), $NF; exit }' out) == "$(awk '{ printf "%+.1f %+.1f %+.1f", 100 * $1, 100 * $2, 100 * $3; exit }' deviations)" ]] ||
    fail "the table says $(<out), the CSV $(<deviations)"
says out "how sure: 9 of 10 measured speeds of such jobs lay " " are on Volta GPUs, of " ", off by "

# Column swept distinguishes the points of a sweep, whatever is swept.
expect 0 "$FLOPCAST" run oom.yaml --format csv --set "train.optimizer=[adamw, sgd]" --set "cluster.gpus=[8, 16]"
tr -d '\r' <out >swept.csv
# A column's values, counted from the end: names before may have commas.
column() { awk -F, -v name="$1" 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = NF - i } { print $(NF - at[name]) }' swept.csv; }
[[ $(column swept | sort) == $'cluster.gpus=16; train.optimizer=adamw\ncluster.gpus=16; train.optimizer=sgd\ncluster.gpus=8; train.optimizer=adamw\ncluster.gpus=8; train.optimizer=sgd\nswept' ]] ||
    fail "swept: $(column swept)"
# And each swept setting has a column, the last ones; numbers in base SI with the unit in the name, where the file has one.
[[ $(head -n 1 swept.csv) == *,swept,tflops_deviation,peak_allocated_deviation,peak_reserved_deviation,cluster.gpus,train.optimizer ]] ||
    fail "columns: $(head -n 1 swept.csv)"
[[ $(column cluster.gpus | tr '\n' ' ') == "cluster.gpus 8 16 8 16 " && $(column train.optimizer | sort -u | tr '\n' ' ') == "adamw sgd train.optimizer " ]] ||
    fail "columns of what is swept: $(<swept.csv)"
expect 0 "$FLOPCAST" run a.yaml --format csv --set cluster.gpus=8 --set "ddp.gradient_as_bucket_view=[true, false]" --set "host.kernel_issue=[10 us, 5 us]"
tr -d '\r' <out >swept.csv
[[ $(column "host.kernel_issue (s)" | tr '\n' ' ') == "host.kernel_issue (s) 1e-05 5e-06 1e-05 5e-06 " && $(column ddp.gradient_as_bucket_view | tail -n 4 | tr '\n' ' ') == "true true false false " ]] ||
    fail "columns of what is swept: $(<swept.csv)"
expect 0 "$FLOPCAST" run a.yaml b.yaml --format csv # several scenarios: what any of them sweeps
tr -d '\r' <out >swept.csv
[[ $(column cluster.gpus | tr '\n' ' ') == "cluster.gpus 8 16 32 8 16 8 16 " && $(column ddp.gradient_as_bucket_view | sort | uniq -c | tr -s ' \n' ' ') == " 1 ddp.gradient_as_bucket_view 5 false 2 true " ]] ||
    fail "columns of two scenarios: $(<swept.csv)"

# The table's numbers are those of the CSV, in its units; it has their interval, and what that rests on.
expect 0 "$FLOPCAST" run a.yaml --set train.micro_batch=512
awk '/^tiny.json  DDP/ { sub(/ \([0-9.]+-[0-9.]+\)/, ""); $1 = $1; print }' out >table
expect 0 "$FLOPCAST" run a.yaml --set train.micro_batch=512 --format csv
tr -d '\r' <out | awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
    { step = $at["step_time_s"]
      printf "%s %s %s %s %.2f %.4f %.0f %.1f %.1f %.1f %.1f\n", $2, $3, $4, $5, $at["tflops_per_gpu"], step,
          $at["tokens_per_s_per_gpu"], 100 * $at["mfu"], 100 * $at["exposed_comm_s"] / step, $at["peak_allocated_bytes"] / 2 ^ 30,
          $at["peak_reserved_bytes"] / 2 ^ 30 }' >rows
alike rows table || fail "the table says $(<table), the CSV $(<rows)"

# Out of memory is a result: exit status 0, no speed, what it needs.
expect 0 "$FLOPCAST" run oom.yaml --format csv "${oom[@]}"
sed -n 2p out | grep -q '^oom,tiny.json,DDP,16384,8,oom,,,,,,,,,[0-9.]*,[0-9.]*,[0-9.]*,[a-z]*,' || fail "row: $(sed -n 2p out)"
expect 0 "$FLOPCAST" run oom.yaml "${oom[@]}"
says out "OOM" "out of memory: tiny.json DDP, batch 16384, 8 GPUs" "GiB short; first at" "needed: parameters"
grep -qx "what fits: flopcast tune oom.yaml" out || fail "the search of what fits keeps the batch that does not: $(<out)"
head -n 1 out | grep -qE '^does not fit: [0-9.]+ GiB short of [0-9.]+' || fail "the answer: $(head -n 2 out)"
if grep -q "how sure" out; then fail "how sure of nothing: $(<out)"; fi
# A pipeline: which stage ran out, and which others would.
expect 0 "$FLOPCAST" run oom.yaml "${oom[@]}" --set strategy=megatron --set parallelism.pipeline=2
grep -qE "^  stage [01] of 2 \(from 0\) needs [0-9.]+ GiB, has [0-9.]+ GiB: [0-9.]+ GiB short; first at" out || fail "the stage: $(<out)"
grep -qE "^  also short: stage [01] by [0-9.]+ GiB$" out || fail "the other stage: $(<out)"
expect 0 "$FLOPCAST" run oom.yaml "${oom[@]}" --set "cluster.gpus=[8, 16]" # DDP lacks as much on any number
says out "out of memory: tiny.json DDP, batch 16384, on 8, 16 GPUs"
[[ $(grep -c "out of memory" out) == 1 ]] || fail "one reason, reported twice: $(<out)"
# On a screen there are not all of many reasons.
expect 0 env COLUMNS=80 "$FLOPCAST" run oom.yaml --set "train.micro_batch=[16384, 16385, 16386, 16387, 16388, 16389, 16390, 16391]"
[[ $(grep -c "^out of memory: " out) == 6 ]] || fail "reasons: $(grep "out of memory" out)"
says out "out of memory, too, with other numbers: 2 more (--wide: all)"
# Of a model, too, the search of what fits runs as it is printed: at the job's batch.
expect 0 "$FLOPCAST" run tiny.json --topology dgx-1v-ib --gpus 8,16 --strategy ddp --seq-len 128 --precision fp16_mixed --micro-batch 16384 --no-noise
remedy=$(sed -n 's/^what fits: flopcast //p' out)
[[ $remedy == "tune tiny.json --set cluster.topology=dgx-1v-ib"*" --no-noise "*"--global-batch 262144" ]] || fail "the command: $remedy"
eval "expect 0 \"$FLOPCAST\" $remedy"
says out "best by speed"

# JSON: one array over all files.
expect 0 "$FLOPCAST" run a.yaml oom.yaml --format json "${oom[@]}"
[[ $(grep -c '"scenario": ' out) == 4 && $(head -n 1 out) == '[' && $(tail -n 1 out) == ']' ]] || fail "JSON: $(<out)"
says out '"config": {' '"origin": "--set train.micro_batch'
if command -v python3 >/dev/null; then python3 -m json.tool out >/dev/null || fail "python3 cannot read the JSON"; fi

# A swept cluster is named by its file's last two names, and the heading does not name the first for all.
clusters=$FLOPCAST_SOURCE_DIR/topologies/clusters
expect 0 "$FLOPCAST" run a.yaml --set "cluster.topology=[$clusters/dgx-1v-ib.yaml, $clusters/a100-80gb-8x200g.yaml]" --set cluster.gpus=8
grep -qx "several clusters" out || fail "heading: $(<out)"
says out " clusters/dgx-1v-ib.yaml " " clusters/a100-80gb-8x200g.yaml "
# --seed is --set run.seed.
expect 0 "$FLOPCAST" run a.yaml --format csv --seed 7
cp out seed
expect 0 "$FLOPCAST" run a.yaml --format csv --set run.seed=7
cmp out seed || fail "--seed 7 is not --set run.seed=7"

# --plan prints plans and runs nothing; --quiet prints nothing.
expect 0 "$FLOPCAST" run a.yaml --plan
# Each collective says what binds it, and those that are alike are listed once: two buckets a step.
[[ $(grep -c 'all_reduce .* latency .*, bound by ' out) == "$(grep -c ' x all_reduce .* on world of .* each, busbw .*, bound by ' out)" ]] || fail "$(<out)"
says out "collectives of the step, alone on their links:"
if grep -qE "[0-9] [kMG]B([^/]|$)" out; then fail "bytes in two kinds of units: $(grep -E "[0-9] [kMG]B([^/]|$)" out | head -n 1)"; fi
says out "a: tiny.json DDP, batch 2, 8 GPUs" "all_reduce"
expect 0 "$FLOPCAST" run a.yaml --quiet
[[ ! -s out ]] || fail "--quiet prints: $(<out)"

# Any mistake in any file: all mistakes are reported, nothing runs, no database is made.
scenario bad.yaml 'nosuch: 1' 'noise: {gpu_speed_spread: 5}'
scenario worse.yaml 'report: none'
expect 2 "$FLOPCAST" run a.yaml bad.yaml worse.yaml --db new.db
says err "bad.yaml:7:1: error:" "bad.yaml:8:27: error:" "worse.yaml:7:"
[[ ! -s out ]] || fail "something ran: $(<out)"
[[ ! -e new.db ]] || fail "a database was made"
expect 2 "$FLOPCAST" run a.yaml --set train.micro_bath=3 --db new.db
says err "did you mean 'micro_batch'?"
[[ ! -e new.db ]] || fail "a database was made"

expect 2 "$FLOPCAST" run a.yaml --set 'cluster.degraded_links=*=50 %'
says err "a text that begins with '*' is quoted twice, for the shell and for YAML: 'cluster.degraded_links=\"*=50 %\"'"
expect 0 "$FLOPCAST" run a.yaml --set 'cluster.degraded_links="*=50 %"'

# Slow GPUs: a list of lists is a sweep; a name of the cluster that no job here has is no mistake, but warned of.
expect 0 "$FLOPCAST" run a.yaml --set cluster.gpus=16 --set 'cluster.slow_gpus=["node1.gpu5=100 %", "node1.gpu5=50 %, node0=90 %"]'
says out "node1.gpu5=50 %, node0=90 %"
[[ ! -s err ]] || fail "warned of: $(<err)"
expect 0 "$FLOPCAST" run a.yaml --set cluster.gpus=16 --set 'cluster.slow_gpus=node2.gpu0=50 %'
says err "warning: the job has none of the GPUs 'node2.gpu0=50 %': its 16 are on node0 to node1"
expect 0 "$FLOPCAST" run a.yaml --set 'cluster.gpus=[16, 32]' --set 'cluster.slow_gpus=node2.gpu0=50 %'
[[ ! -s err ]] || fail "warned of what a point has: $(<err)"

# A step of months is a mistake in the file, whether the host or a link is so slow.
for slow in 'host.kernel_issue=1 h' 'cluster.degraded_links="node0.nics.out=1e-300"'; do
    expect 2 "$FLOPCAST" run a.yaml --set cluster.gpus=16 --set run.steps=100 --set "$slow"
    says err "the run would take more than 46 days; look for"
done

# The database: runs add up, figures show the newest.
expect 0 "$FLOPCAST" run a.yaml oom.yaml --db a.db "${oom[@]}"
expect 0 "$FLOPCAST" run a.yaml --db a.db
[[ $(ask 'SELECT count(*) FROM run') == 3 ]] || fail "runs: $(ask 'SELECT count(*) FROM run')"
[[ $(ask 'SELECT gpus, status FROM v_scaling ORDER BY scenario, gpus') == $'8 ok\n16 ok\n32 ok\n8 oom' ]] ||
    fail "points: $(ask 'SELECT gpus, status FROM v_scaling ORDER BY scenario, gpus')"
[[ $(ask "SELECT json_extract(config, '\$.train.micro_batch.origin') FROM point WHERE status = 'oom'") == --set* ]] ||
    fail "the origin of a value is lost"

# A column only for what no other column shows: ZeRO's stage is in the strategy's name.
expect 0 "$FLOPCAST" run a.yaml --set strategy=deepspeed --set "deepspeed.zero_optimization.stage=[1, 2]"
says out "ZeRO-1" "ZeRO-2"
if grep -q "deepspeed.zero_optimization.stage " out; then
    fail "a column of the stage: $(<out)"
fi

# torchtitan's selective checkpointing makes products of all experts again: Qwen3-30B-A3B on 8 B200 fits, in 141.8 GiB as measured (pith-train#79).
cat >experts.yaml <<'YAML'
name: experts
model: qwen3-30b-a3b
cluster: {topology: b200-8x400g, gpus: 8}
stack: torchtitan-2024
train: {micro_batch: 8, seq_len: 8192, precision: bf16_mixed, activation_checkpointing: selective, cross_entropy: fused}
strategy: fsdp
YAML
expect 0 "$FLOPCAST" run experts.yaml --no-noise --format csv
awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) c[$i] = i }
    NR == 2 { peak = $c["peak_allocated_bytes"] / 2 ^ 30 / 141.8; exit !($c["status"] == "ok" && peak > 0.95 && peak < 1.05) }' out || fail "experts: $(<out)"

# --jobs says how many threads simulate; what comes out is the same.
expect 0 "$FLOPCAST" run a.yaml --format csv --jobs 1
cp out one
expect 0 "$FLOPCAST" run a.yaml --format csv -j 3
cmp out one || fail "three jobs print other numbers than one"
expect 2 "$FLOPCAST" run a.yaml --jobs 0
says err "--jobs 0: a number from 1 to 1024 is wanted"
threads() { # threads N: the most threads that a sweep with --jobs N has at any time
    local most=0 now
    "$FLOPCAST" run a.yaml --quiet --jobs "$1" --set "run.seed=[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]" --set cluster.gpus=512 &
    while now=$(find "/proc/$!/task" -mindepth 1 -maxdepth 1 2>/dev/null | wc -l) && ((now > 0)); do
        ((now <= most)) || most=$now
    done
    wait $!
    echo "$most"
}
if [[ -d /proc/$$/task ]]; then
    [[ $(threads 1) == 1 && $(threads 5) == 5 ]] || fail "threads of --jobs 1 and 5: $(threads 1), $(threads 5)"
fi
