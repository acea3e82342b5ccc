A=(--num-layers 4 --hidden-size 64 --num-attention-heads 4 --swiglu --position-embedding-type rope "--vocab-size 512"
  --multi-latent-attention --kv-lora-rank 16 --num-experts 8 --moe-layer-freq '([0]*1+[1]*3)' --moe-router-pre-softmax
  --window-size 7,0 --seq-length $S --no-rope-fusion --tensor-model-parallel-size ${TP:-"1"} --sequence-parallel)
torchrun --nproc_per_node 8 pretrain_gpt.py ${A[@]} --squared-relu --bf16
