#!/usr/bin/env bash
# `flopcast tune` and `flopcast validate` print the same, whoever simulates: one thread or two, three shards whose databases are merged, ranks
# of MPI; stopped and killed they go on with what is missing.
set -euo pipefail
# shellcheck source=/dev/null
. "$FLOPCAST_SOURCE_DIR/tests/cli/lib.bash"

mpi=false
if command -v mpirun >/dev/null && [[ -e $(dirname -- "$FLOPCAST")/flopcast-mpi.so ]]; then
    mpi=true
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
fi

# same NAME COMMAND...: it prints what one thread did, whoever does it. What shards do is left in NAME.db.
same() {
    local name=$1 i
    shift
    expect 0 "$@" --jobs 1
    cp out "$name.whole"
    [[ $(wc -l <"$name.whole") -gt 5 ]] || fail "nothing to compare: $(<out)"
    expect 0 "$@" --jobs 2
    cmp out "$name.whole" || fail "$name: two threads print something else"
    for i in 1 2 3; do
        expect 0 "$@" --db "$name$i.db" --shard $i/3
        says out "shard $i/3: " " simulations are in $name$i.db"
    done
    expect 0 "$FLOPCAST" merge "$name"[123].db --into "$name.db"
    says out "0 runs, 0 points"
    expect 0 "$@" --db "$name.db"
    cmp out "$name.whole" || fail "$name: the merged shards print something else"
    expect 0 "$@" --db "$name.db"
    cmp out "$name.whole" || fail "$name: from the database something else is printed"
    read -r _ known of <<<"$(sed -n 's/ of / /; s/ simulations .* already$//p' err)"
    [[ -n $known && $known == "$of" ]] || fail "$name: not all simulations were taken from the database: $(<err)"
    if $mpi; then
        expect 0 mpirun -n 3 "$@" --db "$name.mpi.db"
        cmp out "$name.whole" || fail "$name: three ranks print something else"
        expect 0 mpirun -n 3 "$@" --db "$name.mpi.db" # what rank 0 alone knows
        cmp out "$name.whole" || fail "$name: three ranks with a database print something else"
    fi
    # killed on the way: what was finished is taken
    rm -f "$name.killed.db"*
    "$@" --db "$name.killed.db" --jobs 2 >/dev/null 2>&1 &
    sleep 0.7
    kill -9 $! 2>/dev/null || true
    wait $! 2>/dev/null || true
    expect 0 "$@" --db "$name.killed.db"
    cmp out "$name.whole" || fail "$name: after kill -9 something else is printed"
}

# A search with noise: candidates, then finalists.
scenario a.yaml
sed -i '/^strategy/d' a.yaml
same tune "$FLOPCAST" tune a.yaml --set cluster.gpus=16 --format csv --top 3 --max-batch 4

# A search of layouts, which ends by their bounds.
cat >layouts.yaml <<YAML
name: layouts
model: small.json
cluster: {topology: $FLOPCAST_SOURCE_DIR/topologies/clusters/h100-8x400g.yaml, gpus: 16}
train: {micro_batch: 1, global_batch: 32, seq_len: 512, precision: bf16_mixed}
strategy: megatron
run: {steps: 1, warmup_steps: 0}
YAML
cat >small.json <<'JSON'
{"model_type": "gpt2", "n_embd": 512, "n_layer": 4, "n_head": 8, "vocab_size": 1024, "n_positions": 1024}
JSON
same layouts "$FLOPCAST" tune layouts.yaml --format csv --top 2 --max-batch 2

# Published runs, with intervals.
cat >runs.csv <<CSV
id,source,model,topology,gpus,micro_batch,seq_len,precision,strategy,tokens_per_s_per_gpu
$(for gpus in 8 16 32 64; do for batch in 1 2 4; do
    echo "r$gpus-$batch,me,tiny.json,$FLOPCAST_SOURCE_DIR/topologies/clusters/dgx-1v-ib.yaml,$gpus,$batch,128,fp16_mixed,ddp,$((10000 * batch))"
done; done)
CSV
same validate "$FLOPCAST" validate --measurements runs.csv --format csv

expect 2 "$FLOPCAST" tune a.yaml --shard 1/2
says err "--shard is for --db PATH"
expect 2 "$FLOPCAST" validate --shard 1/2
says err "--shard is for --db PATH"
if $mpi; then
    expect 2 timeout 60 mpirun -n 2 "$FLOPCAST" waterfall a.yaml
    says err "its work cannot be shared"
fi
