A=$((2*(4ˆˆˆˆ+1)))
B="$A"
x --num-layers $A --hidden-size=${B:-4} --swiglu ctive --recompute-modules core_attn moe --fp8-format hybrid
