#!/bin/bash

if [ -z ${HF_MODEL_CKPT} ]; then
    HF_MODEL_CKPT=deepseek-ai/DeepSeek-R1
    TOKENIZER_MODEL=deepseek-ai/DeepSeek-R1
else
    TOKENIZER_MODEL=${HF_MODEL_CKPT}
fi

MODEL_ARGS=" \
    --save-interval 100000 \
    --micro-batch-size 1 \
    --moe-token-dispatcher-type alltoall \
    --moe-router-num-groups 8 \
    --moe-router-group-topk 4 \
    --moe-layer-freq ([0]*3+[1]*58) \
    --num-experts 256 \
    --moe-router-topk 8 \
    --moe-router-topk-scaling-factor 2.5 \
    --moe-router-score-function sigmoid \
    --moe-router-enable-expert-bias \
    --moe-router-bias-update-rate 1e-3 \
    --moe-router-dtype fp32 \
    --moe-aux-loss-coeff 1e-4 \
    --moe-ffn-hidden-size 2048 \
    --moe-shared-expert-intermediate-size 2048 \
    --moe-grouped-gemm \
    --attention-softmax-in-fp32 \
    --no-masked-softmax-fusion \
    --no-rope-fusion \
    --multi-latent-attention \
    --qk-layernorm \
    --q-lora-rank 1536 \
    --kv-lora-rank 512 \
    --qk-head-dim 128 \
    --qk-pos-emb-head-dim 64 \
    --v-head-dim 128 \
    --mscale 1.0 \
    --mscale-all-dim 1.0 \
    --rotary-scaling-factor 40 \
    --disable-bias-linear \
    --swiglu \
    --untie-embeddings-and-output-weights \
    --position-embedding-type rope \
    --normalization RMSNorm \
    --norm-epsilon 1e-6 \
    --num-layers 61 \
    --hidden-size 7168 \
    --ffn-hidden-size 18432 \
    --num-attention-heads 128 \
    --kv-channels 128 \
    --rotary-base 10000 \
    --rotary-percent 1.0 \
    --use-mcore-models \
    --tokenizer-type HuggingFaceTokenizer \
    --make-vocab-size-divisible-by 1 \
    --padded-vocab-size 129280 \
    --attention-dropout 0.0 \
    --hidden-dropout 0.0 \
    --bf16 \
    --seq-length 4096 \
    --max-position-embeddings 163840 \
"
