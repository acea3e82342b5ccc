#!/usr/bin/env bash
# `flopcast goodput`: months of training on top of a simulated step.
set -euo pipefail
# shellcheck source=/dev/null
. "$FLOPCAST_SOURCE_DIR/tests/cli/lib.bash"
scenario a.yaml 'goodput:' '  node_mtbf: 10 h' '  checkpoint_size: 10 GB' '  checkpoint_bandwidth: 100 MB/s'
scenario plain.yaml

# cell FILE NAME: the value of the first row of a CSV.
cell() {
    python3 -c 'import csv, sys; print(next(csv.DictReader(open(sys.argv[1], newline="")))[sys.argv[2]])' "$1" "$2"
}
# holds EXPRESSION: of Python.
holds() {
    python3 -c "import sys; sys.exit(not ($1))" || fail "not so: $1"
}

expect 0 "$FLOPCAST" goodput a.yaml
says out "20 histories" "goodput" "lost work" "host" "training waits 100 s" "Young" "Daly" "in 30 days"
cp out first
expect 0 "$FLOPCAST" goodput a.yaml --jobs 1
cmp out first || fail "the number of threads changes the result"

# Shares are all of the time, and the effective speed is the step's times goodput.
given="goodput.checkpoint_interval=1h"
expect 0 "$FLOPCAST" goodput a.yaml --format csv --set $given
cp out a.csv
holds "abs($(cell a.csv goodput) + $(cell a.csv checkpoint_share) + $(cell a.csv lost_work_share) + $(cell a.csv detection_share) + $(
    cell a.csv waiting_share) + $(cell a.csv restart_share) - 1) < 1e-9"
holds "abs($(cell a.csv effective_tflops_per_gpu) / $(cell a.csv tflops_per_gpu) - $(cell a.csv goodput)) < 1e-9"
holds "$(cell a.csv goodput_p05) < $(cell a.csv goodput) < $(cell a.csv goodput_p95)"
holds "$(cell a.csv node_interruptions) > 50" # 72 are expected

# What should help does; what should not does not.
goodput_with() {
    expect 0 "$FLOPCAST" goodput a.yaml --format csv "$@"
    cp out with.csv
    cell with.csv goodput
}
holds "$(goodput_with --set $given --set goodput.async_checkpoint=true) > $(cell a.csv goodput)"
holds "$(goodput_with --set $given --set goodput.nccl_timeout=3h) < $(cell a.csv goodput)"
holds "$(goodput_with --set $given --set goodput.hot_spares=0 --set goodput.replacement_time=2h) < $(cell a.csv goodput)"
holds "$(goodput_with --set goodput.checkpoint_interval=10h) < $(cell a.csv goodput)"
[[ $(cell with.csv checkpoint_interval_s) == 36000 ]] || fail "the given interval: $(<with.csv)"
holds "$(goodput_with --set $given --set goodput.node_mtbf=20h) > $(cell a.csv goodput)"

# A checkpoint of LoRA has the adapters alone, with their optimizer: of c_attn, c_proj, c_fc and c_proj in two blocks of width 256.
expect 0 "$FLOPCAST" goodput plain.yaml --set train.lora_rank=4 --format csv
holds "$(cell out checkpoint_bytes) == 12 * 4 * 2 * (256 * (1 + 3 + 1 + 1 + 1 + 4 + 4 + 1))" # FP32: weight, two moments

# Tokens: dollars and energy.
expect 0 "$FLOPCAST" goodput a.yaml --set $given --tokens 1B --price v100=2 --format csv
holds "$(cell out training_days) > 1e9 / ($(cell out effective_tokens_per_s) * 86400) * 0.999"
holds "abs($(cell out cost_usd) / ($(cell out training_days) * 24 * 2 * 8) - 1) < 1e-9" # no spare of so few nodes
holds "$(cell out spare_gpus) == 0"
# tune says the same of the job, without what failures take.
same=(--tokens 1B --price v100=2 --format csv --set=noise.{gpu_speed_spread,kernel_jitter,network_jitter,host_jitter,straggler_share}"=0")
expect 0 "$FLOPCAST" goodput a.yaml --set $given "${same[@]}"
usd="$(cell out cost_usd) * $(cell out goodput)"
expect 0 "$FLOPCAST" tune a.yaml --max-batch 2 "${same[@]}"
holds "any(abs(float(r['usd'] or 0) / ($usd) - 1) < 1e-6 for r in __import__('csv').DictReader(open('out', newline='')) if r['strategy'] == 'DDP')"
expect 0 "$FLOPCAST" goodput a.yaml --set $given --tokens 1B --price v100=2 --set goodput.hot_spares=4 --format csv
holds "abs($(cell out cost_usd) / ($(cell out training_days) * 24 * 2 * (8 + 4 * 8)) - 1) < 1e-9" # 4 spares of 8 GPUs
holds "$(cell out energy_kwh) > 0"
# What is paid for draws power: 8 GPUs in steps or waiting, 32 that idle. All do so between idle and the limit, 0.12 and 0.9
# of 300 W; a GPU has 150 W of the host and some of NICs and ports; PUE is 1.2.
hours="$(cell out training_days) * 24 * (8 + 4 * 8)"
holds "1.2 * (36 + 150) < $(cell out energy_kwh) * 1e3 / ($hours) < 1.2 * (36 + 150 + 100) + 1.2 * 234 * 8 / 40"
# Where nothing fails and no checkpoint is written, it is the energy of the steps.
never=(--set=goodput.{gpu,node,link,software}_mtbf='0 s' --set goodput.hot_spares=0 --set goodput.checkpoint_interval=720h)
expect 0 "$FLOPCAST" goodput a.yaml "${never[@]}" --tokens 1B --format csv
cp out never.csv
expect 0 "$FLOPCAST" run a.yaml --format csv
holds "$(cell never.csv goodput) > 1 - 1e-5" # a history counts whole nanoseconds
holds "abs($(cell never.csv energy_kwh) * 3.6e6 / (1e9 * $(cell out energy_per_token_j)) - 1) < 1e-5"
# What does not train waits, which draws less than a step and more than nothing.
expect 0 "$FLOPCAST" goodput a.yaml --set $given --set goodput.hot_spares=0 --tokens 1B --days 30 --format csv
holds "$(cell never.csv energy_kwh) * 1.000001 < $(cell out energy_kwh) < $(cell never.csv energy_kwh) / $(cell out goodput)"
expect 0 "$FLOPCAST" goodput a.yaml --set $given --tokens 1B --price v100=2
says out "1B tokens" "cost" "energy" "GPUs paid: 8 + 0 spare" "by failures"
# A scenario carries its days; --days overrides them.
expect 0 "$FLOPCAST" goodput a.yaml --set $given --set goodput.days=54
says out "20 histories of 54 days" "in 54 days"
expect 0 "$FLOPCAST" goodput a.yaml --set $given --set goodput.days=54 --days 3
says out "20 histories of 3 days" "in 3 days"

# The answer comes first, and no line is longer than the screen is wide.
expect 0 env COLUMNS=80 "$FLOPCAST" goodput a.yaml --set $given --tokens 1B --price v100=2
head -n 2 out | tr '\n' ' ' >answer
says answer "1B tokens take" " on 8 GPUs, and $" "MWh; " "% of the time trains (goodput; "
if grep -E '.{81}' out; then fail "lines of more than 80 characters"; fi
says out "a host is a node of 8 GPUs"
expect 0 "$FLOPCAST" goodput plain.yaml --set cluster.topology=gb200-nvl72 --set cluster.gpus=72 --set train.precision=bf16_mixed
says out "% of 30 days trains (goodput; " "a host is a compute tray of 4 GPUs; a rack of 72 GPUs (GB200 NVL72) has 18" "72 + 8 spare"
# Dollars and energy have the interval of days.
expect 0 "$FLOPCAST" goodput a.yaml --set $given --tokens 1B --price v100=2 --format csv
for total in cost_usd energy_kwh; do for end in p05 p95; do
    holds "abs($(cell out ${total}_$end) / $(cell out training_days_$end) / ($(cell out $total) / $(cell out training_days)) - 1) < 1e-9"
done; done
# So few tokens that nothing fails: in words, and no share is below 0.
expect 0 "$FLOPCAST" goodput plain.yaml --tokens 100K
says out "Next to nothing takes other time in " "the job fails every"
if grep -E -e "-0\.0|e-[0-9]" out; then fail "numbers that are none"; fi

# A sweep: a row a point, and no causes.
expect 0 "$FLOPCAST" goodput a.yaml --set $given --set cluster.gpus='[8, 16]' --set goodput.hot_spares='[0, 2]'
says out "Where the rest of the time goes" "16"
head -n 3 out | tr '\n' ' ' >answer
says answer "Of 4 jobs " "16 GPUs, trains most, " " billion tokens a day"
# Not the larger share of the time, but what trains more in all; what differs by less than histories do is a tie.
expect 0 "$FLOPCAST" goodput plain.yaml --no-noise --set train.micro_batch='[1, 8]'
head -n 3 out | tr '\n' ' ' >answer
says answer "batch 8, 8 GPUs, trains most, "
if grep -q "a tie" answer; then fail "a tie of two batches: $(<answer)"; fi
expect 0 "$FLOPCAST" goodput plain.yaml --no-noise --set run.steps='[1, 2]'
says out "(a tie, as histories differ: "
expect 0 "$FLOPCAST" goodput a.yaml --set $given --set cluster.gpus='[8, 16]' --format json
python3 -c 'import json; rows = json.load(open("out")); assert [r["gpus"] for r in rows] == [8, 16], rows; assert rows[1]["mtbf_s"] < rows[0]["mtbf_s"]'

# A step does not read the section: run finds nothing wrong with it and gives the same.
expect 0 "$FLOPCAST" run plain.yaml --format csv
cut -d, -f2-20 out >plain.out
expect 0 "$FLOPCAST" run a.yaml --format csv
cut -d, -f2-20 out | cmp - plain.out || fail "the section changes a step"

# A node of two hosts fails as two nodes of one: as many failures of hosts and software, checkpoints as fast, as many spares paid for.
cluster() {
    printf '%s\n' "extends: $FLOPCAST_SOURCE_DIR/topologies/nodes/dgx-1v-like.yaml" "gpus: {value: $2, kind: assumed, source: test}" \
        "nics: {value: $3, kind: assumed, source: test}" "hosts: {value: $4, kind: assumed, source: test}" >"$1_node.yaml"
    printf '%s\n' "extends: $FLOPCAST_SOURCE_DIR/topologies/clusters/dgx-1v-ib.yaml" "node: $1_node.yaml" >"$1.yaml"
}
cluster flat 8 4 1
cluster rack 32 16 4
columns="checkpoint_stall_s node_interruptions software_interruptions gpu_interruptions link_interruptions mtbf_s spare_gpus"
for of in flat rack; do
    expect 0 "$FLOPCAST" goodput plain.yaml --set cluster.topology=$of.yaml --set cluster.gpus=64 --set goodput.hot_spares=3 --set goodput.node_mtbf=900h \
        --set goodput.checkpoint_size=1TB --set goodput.checkpoint_interval=1h --format csv
    cp out $of.csv
done
for column in $columns; do
    [[ $(cell flat.csv "$column") == "$(cell rack.csv "$column")" ]] || fail "$column: $(cell flat.csv "$column") of nodes, $(cell rack.csv "$column") of hosts"
done
holds "$(cell rack.csv node_interruptions) > 3 and $(cell rack.csv spare_gpus) == 24"
# Of a rack that the job has a part of, the hosts that it is on.
expect 0 "$FLOPCAST" goodput plain.yaml --set cluster.topology=rack.yaml --set cluster.gpus=12 --set=goodput.{gpu,link,software}_mtbf="0 s" --set goodput.node_mtbf=900h --format csv
holds "abs($(cell out mtbf_s) / (900 * 3600 / 2) - 1) < 1e-9"

expect 0 "$FLOPCAST" goodput --sources
says out "goodput.gpu_mtbf" "measured" "assumed" "Llama 3" "gpu.power.busy" "cluster.pue"

# Mistakes.
expect 2 "$FLOPCAST" goodput
says err "a scenario file is missing"
expect 2 "$FLOPCAST" goodput a.yaml --days 0
says err "--days 0: a number of days up to 36500 is wanted"
expect 2 "$FLOPCAST" goodput a.yaml --set goodput.gpu_mtbf=5
says err "goodput.gpu_mtbf" "needs one"
expect 2 "$FLOPCAST" goodput a.yaml --set goodput.gpu_mtbf=1us
says err "the job would fail every" "give longer goodput.*_mtbf"
expect 2 "$FLOPCAST" goodput a.yaml --set goodput.gpu_mtbf=1min
says err "the job would fail every 7.5 s, and a restart takes 554 s: of 10000 restarts less than one ends"
expect 2 "$FLOPCAST" goodput a.yaml --tokens 1K
says err "--tokens 1K: error: one step of the job takes 2048; months of training are meant, as in 15T"
expect 2 "$FLOPCAST" goodput a.yaml --set goodput.checkpoint_interval=1us --days 36500
says err "hold more than" "give a longer interval"
expect 2 "$FLOPCAST" goodput a.yaml --set goodput.hang_share=1.5
says err "hang_share"
expect 2 "$FLOPCAST" goodput a.yaml --set goodput.hot_spare=1
says err "did you mean"
expect 0 "$FLOPCAST" goodput a.yaml --days 1 --seeds 2 --price h200=3
says err "--price h200=3: warning: no GPU here is called so; there is V100"

# In the database, and drawn: over GPUs, or over the interval where several are given. Shares of a point add up to all of the time.
scenario months.yaml 'goodput: {gpu_mtbf: 20h, checkpoint_size: 100GB}'
expect 0 "$FLOPCAST" goodput months.yaml --set "cluster.gpus=[8, 16, 32]" --days 5 --seeds 3 --db m.db
says out "of one point (--set takes away the others) this is also by cause"
[[ $(ask "SELECT group_concat(gpus), min(searched), max(abs(goodput + checkpoint_share + lost_work_share + detection_share + waiting_share + restart_share + shrunk_share + slowed_share - 1)) < 1e-9 FROM goodput_point" m.db) == "8,16,32 1 1" ]] ||
    fail "in the database: $(ask "SELECT * FROM goodput_point" m.db)"
expect 0 "$FLOPCAST" goodput months.yaml --set cluster.gpus=32 --set goodput.elastic_nodes=1 --set goodput.hot_spares=0 --set goodput.replacement_time=4h --days 20 --seeds 3 --db m.db
[[ $(ask "SELECT max(abs(goodput + checkpoint_share + lost_work_share + detection_share + waiting_share + restart_share + shrunk_share + slowed_share - 1)) < 1e-9, min(shrunk_share) > 0 FROM goodput_point WHERE goodput_id = 2" m.db) == "1 1" ]] ||
    fail "an elastic job in the database: $(ask "SELECT * FROM goodput_point" m.db)"
expect 0 "$FLOPCAST" goodput months.yaml --set cluster.gpus=32 --set goodput.slow_node_mtbf=200h --days 20 --seeds 3 --db m.db
says out "slow hosts" "slow host"
[[ $(ask "SELECT max(abs(goodput + checkpoint_share + lost_work_share + detection_share + waiting_share + restart_share + shrunk_share + slowed_share - 1)) < 1e-9, min(slowed_share) > 0 FROM goodput_point WHERE goodput_id = 3" m.db) == "1 1" ]] ||
    fail "slow nodes in the database: $(ask "SELECT * FROM goodput_point" m.db)"
if command -v gnuplot >/dev/null; then
    expect 0 "$FLOPCAST" plot goodput --db m.db --out m.svg
    says m.svg "Time that trains, by number of GPUs" "lost work"
    [[ ! -s err ]] || fail "gnuplot says: $(<err)"
    expect 0 "$FLOPCAST" goodput months.yaml --set "goodput.checkpoint_interval=[10min, 40min]" --days 5 --seeds 3 --db m.db
    expect 0 "$FLOPCAST" plot goodput --db m.db --out m.svg
    says m.svg "Time that trains, by checkpoint interval" "minutes between checkpoints"
    expect 0 "$FLOPCAST" goodput months.yaml --days 5 --seeds 3 --db m.db
    expect 0 "$FLOPCAST" plot goodput --db m.db --scenario months --out m.svg
    [[ ! -s err ]] || fail "gnuplot says of one point: $(<err)"
fi
expect 0 "$FLOPCAST" goodput months.yaml --set train.micro_batch=65536 --days 5 --db oom.db
expect 2 "$FLOPCAST" plot goodput --db oom.db
says err "nothing in this database is for figure 'goodput'"
