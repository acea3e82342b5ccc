#!/usr/bin/env bash
# `flopcast model`: what a rank holds of a model that is cut.
set -euo pipefail
# shellcheck source=/dev/null
. "$FLOPCAST_SOURCE_DIR/tests/cli/lib.bash"

# Llama-3.1-70B over 8 tensor ranks: of a block 2 x 1024 x 8192 (q, o) + 2 x 128 x 8192 (k, v) + 3 x 3584 x 8192 (gate, up,
# down) + 2 x 8192 (norms) = 106,971,136; 20 blocks a stage of four. Of the vocabulary of 128,256 a rank has
# 129,024 / 8 = 16,128 rows (multiples of 128 each): 132,120,576; the last stage has the last norm, too.
"$FLOPCAST" model llama3.1-70b --tensor 8 --pipeline 4 >out
grep -q '^llama3.1-70b: 70553706496 parameters; a copy on 32 GPUs, tensor 8, pipeline 4$' out
grep -Eq '^ +0  0 to 19 +embedding +2271543296 ' out
grep -Eq '^ +1  20 to 39 +- +2139422720 ' out
grep -Eq '^ +3  60 to 79 +head, loss +2271551488 ' out

# Model chunks of a stage; experts: 8 over 4 ranks, each half: 2 x 3 x 7168 x 4096 a block, 16 blocks.
"$FLOPCAST" model mixtral-8x7b --tensor 2 --expert 4 --pipeline 2 --virtual 2 >out
grep -Eq '^ +0  0 to 7, 16 to 23 +embedding .* 2818572288 ' out
"$FLOPCAST" model mixtral-8x7b --tensor 2 --expert 4 --expert-tensor 1 >out
grep -Eq ' 11274289152 ' out # 2 whole experts on a rank in each of 32 blocks: 2 x 3 x 14336 x 4096 x 32

# What a config.json says and no shape can is an error, unless --force drops it; a scenario has the key `force`.
cat >config.json <<'END'
{"model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
 "num_attention_heads": 4, "vocab_size": 256, "moe_latent_size": 32}
END
status=0
"$FLOPCAST" model config.json >out 2>err || status=$?
[ "$status" -eq 2 ]
grep -q '^config.json:2:66: error: moe_latent_size 32 is not known for model_type .llama., and its name says' err
grep -q -- '--force' err
"$FLOPCAST" model config.json --force >out 2>err
grep -q '^config.json:2:66: warning: moe_latent_size 32' err
grep -q '^parameters  ' out
"$FLOPCAST" memory config.json --force >/dev/null 2>&1
"$FLOPCAST" run config.json --set force=true --set cluster.gpus=1 --set cluster.topology=h100 --set train.seq_len=64 >out 2>err

# Rows: the tensors of all stages, each kind of block once.
"$FLOPCAST" model llama3.1-70b --tensor 8 --pipeline 4 --format csv >rows.csv
[ "$(tail -n +2 rows.csv | cut -d, -f3 | sort -u | tr '\n' ' ')" = "0 1 2 3 " ]
grep -q 'self_attn.q_proj.weight,tensor,1024,8192,8388608,167772160' rows.csv

refused() { # message, arguments
    local message=$1
    shift
    status=0
    "$FLOPCAST" model "$@" 2>err || status=$?
    if [ "$status" -eq 0 ] || ! grep -q -- "$message" err; then
        cat err
        exit 1
    fi
}
refused '^--expert:1:1: error: 8 experts of mixtral-8x7b are not divisible by 3 ranks' mixtral-8x7b --expert 3
refused '^--pipeline:1:1: error: 32 blocks do not divide over 3 model chunks' mixtral-8x7b --pipeline 3
refused '^--tensor:1:1: error: ' resnet50 --tensor 2
refused 'unrecognized option' llama3.1-70b --lora 8
