#!/usr/bin/env bash
# `flopcast run --db`: what is taken from the database, and what is simulated all the same.
set -euo pipefail
# shellcheck source=/dev/null
. "$FLOPCAST_SOURCE_DIR/tests/cli/lib.bash"
scenario a.yaml 'sweep: [{cluster.gpus: [8, 16, 32]}]'

absent() { if grep -q "$1" err; then return 1; fi; } # absent TEXT: not in the file err
taken() { # taken N OF OPTION...: run a.yaml takes N of OF points from a.db and prints what a run without a database prints
    local n=$1 of=$2
    shift 2
    expect 0 "$FLOPCAST" run a.yaml --format csv "$@"
    mv out plain
    expect 0 "$FLOPCAST" run a.yaml --format csv --db a.db "$@"
    cmp out plain || fail "other numbers with a database: $*"
    if ((n == 0)); then
        absent "are in a.db already" || fail "taken from the database: $(<err)"
    else
        says err "a: $n of $of points are in a.db already and are not simulated again (--again does)"
    fi
}
count() { ask "SELECT count(*) FROM $1"; }

taken 0 3
taken 3 3
[[ $(count run) == 1 ]] || fail "a run of the same points was added: $(count run)"
# Settings, seed and content of files count; so each of these simulates.
taken 0 3 --set train.micro_batch=4
taken 0 3 --seed 2
taken 0 3 --set noise.host_jitter=0.01
taken 0 3 --set report.flops_formula=hardware
taken 0 3 --set "ddp.bucket_cap=7 MiB"
sed -i 's/"n_layer": 2/"n_layer": 3/' tiny.json
taken 0 3
cp -r "$FLOPCAST_SOURCE_DIR/topologies" .
sed -i "s|$FLOPCAST_SOURCE_DIR/topologies|topologies|" a.yaml
taken 3 3 # another name of files with the same content
for change in 'clusters/dgx-1v-ib.yaml oversubscription 2' 'nodes/dgx-1v-like.yaml nic_bandwidth 77' 'gpus/v100-sxm2-32gb.yaml hbm_efficiency 0.7'; do
    read -r where key value <<<"$change"
    sed -i "s/^$key: {value: [0-9.]*/$key: {value: $value/" "topologies/$where"
    taken 0 3
done

# A larger sweep takes what it has in common with an earlier one; the views see all of its points, and each says where it is from.
taken 3 4 --set "cluster.gpus=[8, 16, 32, 64]"
[[ $(count v_scaling) == 4 ]] || fail "points of the newest run: $(count v_scaling)"
[[ $(ask 'SELECT gpus, simulated_id IS NULL FROM point WHERE run_id = (SELECT max(id) FROM run) ORDER BY gpus') == $'8 0\n16 0\n32 0\n64 1' ]] ||
    fail "what was simulated: $(ask 'SELECT gpus, simulated_id FROM point')"
[[ $(ask 'SELECT count(DISTINCT curve), count(DISTINCT n) FROM v_scaling JOIN (SELECT point_id, count(*) AS n FROM timeline GROUP BY point_id) USING (point_id)') == "1 1" ]] ||
    fail "the timelines of points that were taken"
# An earlier sweep again is the newest again, with no point simulated.
taken 3 3
[[ $(count v_scaling) == 3 ]] || fail "points of the newest run: $(count v_scaling)"

# Name, description and assumptions are no part of a result; another scenario shows its own.
sed 's/^name: .*/name: b\ndescription: another/' a.yaml >b.yaml
expect 0 "$FLOPCAST" run a.yaml b.yaml --format csv --db a.db
says err "a: 3 of 3 points are in a.db already" "b: 3 of 3 points are in a.db already"
[[ $(grep -c '^b,tiny.json,DDP' out) == 3 ]] || fail "rows: $(<out)"
[[ $(ask "SELECT DISTINCT json_extract(config, '\$.name.value') FROM point JOIN run ON run.id = run_id WHERE scenario = 'b'") == b ]] ||
    fail "the name of a point that was taken"

# --again simulates all, in a separate run.
before=$(count run)
expect 0 "$FLOPCAST" run a.yaml --db a.db --again
[[ $(count run) == $((before + 1)) && $(ask 'SELECT count(*) FROM point WHERE run_id = (SELECT max(id) FROM run) AND simulated_id IS NULL') == 3 ]] ||
    fail "--again took points"
absent already || fail "--again: $(<err)"
expect 2 "$FLOPCAST" run a.yaml --again
says err "--again is for --db PATH"

# Samples: points are taken, and each sample that is there; more samples are those and the missing ones.
expect 0 "$FLOPCAST" run a.yaml --format csv --samples 3
cp out sampled3
expect 0 "$FLOPCAST" run a.yaml --format csv --samples 5
cp out sampled5
expect 0 "$FLOPCAST" run a.yaml --format csv --samples 3 --db a.db
cmp out sampled3 || fail "samples with a database differ"
says err "a: 3 of 3 points are in a.db already"
absent samples || fail "samples were there before: $(<err)"
expect 0 "$FLOPCAST" run a.yaml --format csv --samples 5 --db a.db
cmp out sampled5 || fail "samples that were taken differ"
says err "a: 9 of 15 samples are in a.db already"
[[ $(ask 'SELECT group_concat(samples) FROM v_band') == 5,5,5 ]] || fail "bands: $(ask 'SELECT * FROM v_band')"
expect 0 "$FLOPCAST" run a.yaml --samples 5 --db a.db
says err "a: 15 of 15 samples are in a.db already"
# What the scenario sets is not drawn: other samples of the same point.
expect 0 "$FLOPCAST" run a.yaml --samples 5 --db a.db --set host.view="$("$FLOPCAST" help settings | sed -n 's/^host.view: //p')"
says err "a: 3 of 3 points are in a.db already"
absent samples || fail "samples of other draws were taken: $(<err)"

# A traced point is simulated: the database does not hold all that a trace shows.
expect 0 "$FLOPCAST" run a.yaml --set cluster.gpus=8 --trace t.json --db a.db
absent already || fail "a traced point was taken: $(<err)"
[[ -s t.json && $(ask 'SELECT count(*) > 0 FROM span') == 1 ]] || fail "no trace"

# A mistake that only simulating shows: the other points are stored all the same.
expect 2 "$FLOPCAST" run a.yaml --set cluster.gpus=8 --set "host.kernel_issue=[5us, 1h]" --set run.steps=100 --db slow.db
says err "the run would take more than 46 days"
[[ $(ask 'SELECT count(*) FROM point' slow.db) == 1 ]] || fail "points: $(ask 'SELECT count(*) FROM point' slow.db)"
