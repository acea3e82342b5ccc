A=$((2*(3+1)))
B="$A"
x --num-layers $A --hidden-size=${B:-4} --swiglu --normalization RMSNorm --position-embedding-type rope --num-experts 8 --vocab-size 32000 --recompute-granularity selective --recompute-modules core_attn moe --fp8-format hybrid
