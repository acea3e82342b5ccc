#!/usr/bin/env bash
# The names that `flopcast files` prints, in a user's own files: a scenario, a cluster, a table of runs and --set may hold them in any folder,
# a file beside them comes first, and a path that leads nowhere is answered with the name that would be right.
set -euo pipefail
# shellcheck source=/dev/null
. "$FLOPCAST_SOURCE_DIR/tests/cli/lib.bash"
mkdir -p mine
cat >mine/a.yaml <<'YAML'
name: a
model: scenarios/models/gpt2.yaml
cluster: {topology: topologies/clusters/dgx-1v-ib.yaml, gpus: 8}
train: {micro_batch: 2, seq_len: 128, precision: fp16_mixed}
strategy: ddp
run: {steps: 1, warmup_steps: 0}
YAML
expect 0 "$FLOPCAST" run mine/a.yaml --format csv
says out "DGX-1V"
expect 0 "$FLOPCAST" run mine/a.yaml --format csv --set model=scenarios/models/gpt2-medium.yaml
says out ",354823168,"
printf 'id,model,topology,gpus,strategy,micro_batch,seq_len,precision,tokens_per_s_per_gpu\n' >mine/runs.csv
printf '1,scenarios/models/gpt2.yaml,topologies/clusters/dgx-1v-ib.yaml,8,ddp,2,128,fp16_mixed,9000\n' >>mine/runs.csv
expect 0 "$FLOPCAST" validate --measurements mine/runs.csv --rows
says out "gpt2"

# A cluster of one's own on a node that came along; the file beside the scenario wins over flopcast's of that name.
sed -e 's#node: .*#node: topologies/nodes/dgx-1v-like.yaml#' -e 's#^name: .*#name: own#' \
    "$FLOPCAST_SOURCE_DIR/topologies/clusters/dgx-1v-ib.yaml" >mine/own.yaml
expect 0 "$FLOPCAST" topology mine/own.yaml
says out "cluster own" "node DGX-1V"
mkdir -p mine/topologies/clusters
cp mine/own.yaml mine/topologies/clusters/dgx-1v-ib.yaml
expect 0 "$FLOPCAST" run mine/a.yaml --format csv
says out ",own,"

# Copies, whose paths lead nowhere, and short names.
cp "$FLOPCAST_SOURCE_DIR/topologies/clusters/dgx-1v-ib.yaml" copy.yaml
expect 2 "$FLOPCAST" topology copy.yaml
says err "copy.yaml:4:7: error: cannot open '../nodes/dgx-1v-like.yaml': No such file or directory; paths are relative to the file that" \
    "flopcast's own is topologies/nodes/dgx-1v-like.yaml"
[[ $(wc -l <err) == 1 ]] || fail "one mistake, several messages: $(<err)"
cp "$FLOPCAST_SOURCE_DIR/scenarios/gpt2_ddp_v100.yaml" copy.yaml
expect 2 "$FLOPCAST" run copy.yaml
says err "cannot open 'models/gpt2.yaml': No such file or directory; paths are relative to the scenario file; flopcast's own is scenarios/models/gpt2.yaml"
expect 2 "$FLOPCAST" run gpt2_ddp_v100.yaml
says err "gpt2_ddp_v100.yaml:1:1: error: cannot open" "flopcast's own is scenarios/gpt2_ddp_v100.yaml"
expect 2 "$FLOPCAST" run nowhere.yaml
says err "name a file that exists and can be read"
if grep -q "own" err; then fail "a namesake of nowhere: $(<err)"; fi

# A short name is enough where a file of one kind is asked for: all of it, what no other begins with, or an alias; in any case of letters.
expect 0 "$FLOPCAST" run gpt2_ddp_v100 --set cluster.gpus=8 --set model=GPT2-medium --set cluster.topology=dgx-1v --set stack=torchtitan --format csv
says out ",354823168," "DGX-1V"
sed -e 's#scenarios/models/gpt2.yaml#gpt2#; s#topologies/clusters/dgx-1v-ib.yaml#dgx-1v-ib#' mine/a.yaml >mine/short.yaml
rm -r mine/topologies
expect 0 "$FLOPCAST" run mine/short.yaml --format csv
says out "DGX-1V"
printf 'extends: dgx-1v-ib\nname: own\nnode: dgx-2\n' >mine/own.yaml
expect 0 "$FLOPCAST" topology mine/own.yaml
says out "cluster own, extends $FLOPCAST_SOURCE_DIR/topologies/clusters/dgx-1v-ib.yaml" "node DGX-2"
expect 0 "$FLOPCAST" topology dgx-1v-ib
says out "cluster DGX-1V"
expect 0 "$FLOPCAST" topology dgx-h100
says out "node DGX-H100-like"
expect 0 "$FLOPCAST" model llama3.1-8b
says out "llama3.1-8b"
expect 0 "$FLOPCAST" memory gpt2-xl
expect 0 "$FLOPCAST" collective all_reduce --topology h100-8x400g --gpus 16 --bytes 1M
expect 0 "$FLOPCAST" capacity gpt2 --gpu V100 --seq-len 512 --dtype fp16_mixed --gpus 8
says out "V100-SXM2-32GB"
for gpu in h100:H100-SXM5-80GB h200:H200-SXM-141GB a100:A100-SXM4-80GB a100-40gb:A100-SXM4-40GB 4090:RTX-4090-24GB; do
    expect 0 "$FLOPCAST" topology "$FLOPCAST_SOURCE_DIR/topologies/gpus/$(basename "$("$FLOPCAST" files gpus | awk -v name="${gpu%:*}" '
        { for (i = 2; i <= NF; i++) if ($i == name || $i == name ",") file = $1 } $1 ~ "/" name "-" { any = $1 } END { print file ? file : any }')")"
    says out "gpu ${gpu#*:} ("
    expect 0 "$FLOPCAST" memory 1B --gpu "${gpu%:*}"
done

# What several files begin with is none of them unless an alias says so; a number is not cut in two; a folder is not a file.
expect 2 "$FLOPCAST" model llama2
says err "llama2:1:1: error: cannot open" "; 'llama2' could be llama2-13b, llama2-70b, llama2-7b; write one of them"
expect 2 "$FLOPCAST" model llama3.1-7
says err "did you mean 'llama3.1-70b'?"
expect 2 "$FLOPCAST" memory 1B --gpu h10
says err "h10:1:1: error: cannot open" "'h10' could be h100-sxm5-80gb, h100-sxm5-96gb-hbm2e; write one of them"
expect 2 "$FLOPCAST" run t5_scalin
says err "did you mean 't5_scaling'?"
expect 2 "$FLOPCAST" run mine/short.yaml --set model=lama2-7b --set cluster.topology=h100-8x40g --set stack=torchtian
says err "--set model:1:1: error: cannot open 'lama2-7b'" "did you mean 'llama2-7b'?" "did you mean 'h100-8x400g'?" "did you mean 'torchtitan'?"
expect 2 "$FLOPCAST" run mine/short.yaml --set model=h100-8x400g
says err "cannot open 'h100-8x400g'" "flopcast's own is topologies/clusters/h100-8x400g.yaml"
expect 2 "$FLOPCAST" run mine/short.yaml --set model=xyz
says err "\`flopcast files models\` lists the names that come along"
printf 'extends: h100-8x400\n' >mine/own.yaml
expect 2 "$FLOPCAST" topology mine/own.yaml
says err "mine/own.yaml:1:10: error: cannot open 'mine/h100-8x400'" "'h100-8x400' could be h100-8x400g-rail, h100-8x400g"
mkdir gpt2 t5_scaling
expect 0 "$FLOPCAST" model gpt2
expect 2 "$FLOPCAST" model llama2-7b.yaml
says err "flopcast's own is scenarios/models/llama2-7b.yaml"

expect 0 "$FLOPCAST" files gpus
says out "h100, h100-sxm, h100-sxm5"
expect 0 "$FLOPCAST" help models
says out "llama3.1-8b" "8030261248" "family: needed" "n_heads: -" "of model_type"
[[ $(grep -cE '^[a-z0-9_.-]+ +(t5|gpt|llama|neox|bert|vit|convnet|dhen) ' out) == $("$FLOPCAST" files models --format csv | grep -c '^scenarios/models/') ]] \
    || fail "not every model: $(<out)"

# Those that only rows of a table ran come after all others.
expect 0 "$FLOPCAST" files models
awk '/ of measured\// { last = 1 } /vtrain-gpt-h1024-l12|bloom-search/ { some += last } /llama3.1-8b|vit_l_16/ { early += !last } END { exit !(some > 2 && early == 2) }' out \
    || fail "models of a table do not come last: $(<out)"

# Models that share a file.
expect 0 "$FLOPCAST" model vtrain-gpt-h1024-l12
says out "204,634,112"
expect 2 "$FLOPCAST" model vtrain-gpt-h1024-l13
says err "did you mean 'vtrain-gpt-h1024-l12'?"
expect 2 "$FLOPCAST" model scenarios/models/vtrain-gpt.yaml
says err "several models stand in this file; name one of them, as vtrain-gpt-h1024-l12"
mkdir sized
printf 'family: gpt\nname: one\nsource: mine\nd_model: 64\nd_ff: 256\nn_heads: 2\nn_layers: 2\nvocab: 100\nmax_positions: 0\nsizes:\n  one-wide: {d_model: 128}\n  one-odd: {d_mode: 128}\n' >sized/one.yaml
expect 0 "$FLOPCAST" model sized/one.yaml
says out "one"
expect 0 "$FLOPCAST" model sized/one-wide.yaml
says out "one-wide" "128"
expect 2 "$FLOPCAST" model sized/one-odd.yaml
says err "sized/one.yaml:12:13" "did you mean 'd_model'?"
expect 2 "$FLOPCAST" model sized/one-two.yaml
says err "cannot open"
printf 'sizes:\n  no {\n' >sized/bad.yaml
expect 2 "$FLOPCAST" model sized/bad.yaml
says err "sized/bad.yaml:2:3" "a model of 'sizes' is a line 'NAME: {key: value, ...}'"

# Names that people write for others: by letters left out, by another name of the file, written out.
guess() { expect 2 "$FLOPCAST" "${@:2}" && says err "did you mean '$1'?"; }
guess llama3.1-8b run gpt2_ddp_v100 --set model=llama3-8b
guess h100 memory gpt2 --gpu h100x
guess h100 run gpt2_ddp_v100 --set cluster.topology=h100x
guess bf16 run gpt2_ddp_v100 --set train.precision=bfloat16
guess bf16 memory gpt2 --dtype bfloat16
guess flash run gpt2_ddp_v100 --set train.attention=flash_attention_2
expect 2 "$FLOPCAST" topology h20 # a cluster and its node have one name
says err "'h20' could be h200-4x400g, h200-8x400g, h200-sxm-141gb; write one of them"
guess run rnu

# A message names a file without the detours by which others name it; behind a link they are none.
expect 0 "$FLOPCAST" run gpt2_ddp_v100 --set cluster.topology=mi300x-8x400g --set cluster.gpus=8 --set train.precision=bf16_mixed
grep -q "topologies/gpus/mi300x-192gb.yaml:[0-9]*:[0-9]*: warning: no run of this GPU is at hand" err || fail "warned of: $(<err)"
if grep -F /../ err; then fail "a detour"; fi
mkdir -p there/deep
ln -s there/deep link
printf 'name: wrong\n' >there/wrong.yaml
expect 2 "$FLOPCAST" run link/../wrong.yaml
says err "link/../wrong.yaml: error: "
