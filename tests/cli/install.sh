#!/usr/bin/env bash
# An installed program finds its files beside itself, whatever became of the source, and from everywhere.
set -euo pipefail
# shellcheck source=/dev/null
. "$FLOPCAST_SOURCE_DIR/tests/cli/lib.bash"

build=$(dirname -- "$FLOPCAST")
cmake --install "$build" --prefix "$PWD/first" >log 2>&1 || fail "cmake --install: $(tail -n 5 log)"
mv first "moved to" # what was compiled in would not be found any more
installed="$PWD/moved to/bin/flopcast"
share="$PWD/moved to/share/flopcast"
[[ -x $installed && ! -e $share/scenarios/run && ! -e $share/plots/out ]] || fail "installed: $(find "$PWD/moved to" | head -n 30)"
mkdir elsewhere
cd elsewhere

# Every file that comes along is listed, each with its first sentence.
expect 0 "$installed" files
says out "in $share" "scenarios/t5_scaling.yaml"
grep -q "^topologies/gpus/h100-sxm5-80gb.yaml  *h100, h100-sxm, h100-sxm5  *H100-SXM5-80GB$" out || fail "the first sentence is missing: $(grep h100 out)"
listed=$(grep -c '\.yaml ' out)
there=$(cd "$share" && { # of models, those that share a file one by one
    find scenarios topologies/clusters topologies/nodes topologies/gpus -name '*.yaml' -not -path '*/models/*' -not -path '*/huggingface/*' -not -path '*/import/*'
    grep -hE '^(name:|  [^ ]+: \{.*\} # )' scenarios/models/*.yaml
} | wc -l)
[[ $listed == "$there" ]] || fail "$listed files are listed, $there are there"
if grep '^[^ ]*\.yaml *$' out; then fail "a file does not say what it is"; fi
expect 0 "$installed" files gpus
if grep -q scenarios out; then fail "gpus lists scenarios"; fi
says out "topologies/gpus/a100-sxm4-80gb.yaml"
expect 2 "$installed" files cards
says err "there is no group 'cards'; there are: scenarios, models"
expect 2 "$installed" files gpus nodes

# Their names work from everywhere, in every command; short ones, too, and what aliases.txt says.
expect 0 "$installed" memory llama2-7b --gpu h100
expect 0 "$installed" run scenarios/gpt2_ddp_v100.yaml --db a.db --set run.steps=1
expect 0 "$installed" plot scaling --db a.db --out a.svg
expect 0 "$installed" report --db a.db --out a.html
says a.html "9 of 10 measured speeds of such jobs lay "
expect 0 "$installed" run scenarios/gpt2_ddp_v100.yaml --set cluster.gpus=8 --set run.steps=1 --samples 2
expect 0 "$installed" waterfall scenarios/gpt2_ddp_v100.yaml --to 16
expect 0 "$installed" whatif scenarios/gpt2_ddp_v100.yaml --base cluster.gpus=8 --set host.kernel_issue=5us
expect 0 "$installed" tune scenarios/gpt2_ddp_v100.yaml --set cluster.gpus=8 --limit 1
expect 0 "$installed" model scenarios/models/gpt2.yaml
expect 0 "$installed" memory scenarios/models/gpt2.yaml --gpu topologies/gpus/t4-16gb.yaml --dtype fp16_mixed
expect 0 "$installed" memory 1B
says out "known GPUs" A100-SXM4-80GB
expect 0 "$installed" topology topologies/clusters/dgx-1v-ib.yaml
expect 0 "$installed" collective all_reduce --topology topologies/clusters/dgx-1v-ib.yaml --gpus 16 --bytes 1M
expect 0 "$installed" validate --where "id = 'PTD-002'" --rows
says out PTD-002
expect 0 "$installed" calibrate fit
says out h100-sxm5-80gb

# A file of that name where one is goes first; one that is nowhere is reported by the name that was given.
mkdir -p scenarios/models
cp "$share/scenarios/models/gpt2.yaml" scenarios/models/gpt2-medium.yaml
expect 0 "$installed" model scenarios/models/gpt2-medium.yaml
says out "124,439,808"
expect 2 "$installed" model scenarios/models/absent.yaml
says err "scenarios/models/absent.yaml:1:1: error"
if grep -qF "$share" err; then fail "it looks for a missing file where the user did not: $(<err)"; fi

# FLOPCAST_DATA goes before all that.
mkdir -p mine/topologies/gpus
expect 0 env FLOPCAST_DATA="$FLOPCAST_SOURCE_DIR" "$installed" files nodes
says out "in $FLOPCAST_SOURCE_DIR"
expect 1 env FLOPCAST_DATA=mine "$installed" files
says err "mine: error: none of flopcast's files is here; FLOPCAST_DATA names the folder"
expect 1 env FLOPCAST_DATA=mine "$installed" memory 1B
says err "there is no GPU here; FLOPCAST_DATA names the folder with flopcast's files"
