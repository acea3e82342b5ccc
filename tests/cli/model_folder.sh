#!/usr/bin/env bash
# A folder with a config.json, as Hugging Face's tools write models, is a model wherever one is asked for.
set -euo pipefail
# shellcheck source=/dev/null
. "$FLOPCAST_SOURCE_DIR/tests/cli/lib.bash"
mkdir tiny empty
cat >tiny/config.json <<'JSON'
{"model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 256}
JSON
expect 0 "$FLOPCAST" model tiny/config.json
cp out file
for folder in tiny ./tiny tiny/ "$PWD/tiny"; do
    expect 0 "$FLOPCAST" model "$folder"
    says out "$(grep ^parameters file)"
done
printf 'name: a\nmodel: tiny\ncluster: {topology: h100-8x400g, gpus: 8}\ntrain: {micro_batch: 1, seq_len: 64}\nstrategy: ddp\n' >a.yaml
expect 0 "$FLOPCAST" run a.yaml --set run.steps=1
expect 0 "$FLOPCAST" memory tiny --gpu h100-sxm
# What decides the size and the file does not say is named.
mkdir short
echo '{"model_type": "llama", "hidden_size": 2048, "num_attention_heads": 16}' >short/config.json
expect 0 "$FLOPCAST" model short
says err "warning: the file does not say num_hidden_layers 32, intermediate_size 11008, vocab_size 32000: transformers' defaults are taken"
expect 0 "$FLOPCAST" model tiny
[[ ! -s err ]] || fail "nothing is assumed: $(<err)"
if grep -qE "^(experts|latent|mixer)" out; then fail "tiny has none of these: $(<out)"; fi
expect 2 "$FLOPCAST" model ./empty
says err "name a file in it, as it has no config.json"
expect 2 "$FLOPCAST" capacity no-such-model --gpu h100-sxm
says err "of any other model, put the config.json of Hugging Face into a folder 'no-such-model' here"
# A shared expert of no width is none.
mkdir moe
cat >moe/config.json <<'JSON'
{"model_type": "qwen2_moe", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
 "num_key_value_heads": 4, "vocab_size": 256, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32,
 "shared_expert_intermediate_size": 0}
JSON
expect 0 "$FLOPCAST" model moe
if grep -q 'shared' out; then fail "a shared expert: $(<out)"; fi
