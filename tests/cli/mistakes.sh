#!/usr/bin/env bash
# Slips that people make with words and files of other programs: what is wrong, and what would be right.
set -euo pipefail
# shellcheck source=/dev/null
. "$FLOPCAST_SOURCE_DIR/tests/cli/lib.bash"
scenario a.yaml

# Files that are no scenario.
gzip -c a.yaml >a.yaml.gz
expect 2 "$FLOPCAST" run a.yaml.gz
says err "a.yaml.gz: error: this is compressed by gzip; unpack it by gunzip"
expect 0 "$FLOPCAST" run a.yaml --plan -q
printf 'SQLite format 3\0' >a.db
expect 2 "$FLOPCAST" run a.db
says err "this is a database; "
expect 2 "$FLOPCAST" run nosuch.yaml
says err "name a file that exists and can be read; \`flopcast files\` lists those that come along"

# Words of other frameworks, in a file and by --set.
word() { # word KEY SENTENCE
    expect 2 "$FLOPCAST" run a.yaml --set "$1=4"
    says err "'${1##*.}': $2"
}
word batch_size "sequences that a GPU computes on at once are train.micro_batch here"
word train.per_device_train_batch_size "sequences that a GPU computes on at once are train.micro_batch here"
word max_seq_length "tokens of a sequence are train.seq_len here"
word gradient_checkpointing "recomputation is train.activation_checkpointing here"
word mixed_precision "number formats are train.precision here"
word num_gpus "GPUs of the whole job, all nodes together, are cluster.gpus here"
word tp "tensor parallelism is 'tensor'"
for yes in true True on; do
    expect 2 "$FLOPCAST" run a.yaml --set train.activation_checkpointing=$yes
    says err "did you mean 'full'?"
done
expect 2 "$FLOPCAST" run a.yaml --set train.activation_checkpointing=false
says err "did you mean 'none'?"

# Numbers of parameters that are none.
for count in 0 12 1000T 7.5; do
    expect 2 "$FLOPCAST" memory "$count"
    says err "a number of parameters is whole, from 1000 to 10^15, as in 11.3B"
done

# A list of prices may have GPUs that are not there.
expect 0 "$FLOPCAST" goodput a.yaml --days 1 --seeds 2 --no-noise --price h100=3 --price v100=1 --tokens 1B
says err "--price h100=3: warning: no GPU here is called so; there is V100"
expect 0 "$FLOPCAST" files scenario
says out "scenarios/t5_scaling.yaml"

# A value of an option is wrong by the option's name, of --set by its key.
expect 2 "$FLOPCAST" run a.yaml --micro-batch 0 --gpus 8,0 --set train.seq_len=0
says err "--micro-batch:1:1: error: '0' is too small" "--gpus:1:4: error: '0' is too small" "--set train.seq_len:1:1: error: "
for command in sensitivity "whatif --set train.seq_len=64" waterfall goodput tune memory; do
    # shellcheck disable=SC2086 # words
    expect 2 "$FLOPCAST" $command a.yaml --micro-batch x
    says err "--micro-batch:1:1: error: 'x' is not a whole number"
done
