#!/usr/bin/env bash
# The ledger of claims: what `flopcast validate --page` has written into README.md and results/README.md, counted anew by other means (SQL, awk).
set -euo pipefail
# shellcheck source=/dev/null
. "$FLOPCAST_SOURCE_DIR/tests/cli/lib.bash"
readme=$FLOPCAST_SOURCE_DIR/README.md evidence=$FLOPCAST_SOURCE_DIR/results/README.md measured=$FLOPCAST_SOURCE_DIR/results/measured

# Numbers, one a line: how many, their median and 90th percentile (between neighbours, as GSL has it).
summary() {
    sort -g | awk '{ v[NR] = $1 } function at(q, x, i) { x = 1 + q * (NR - 1); i = int(x); return i == NR ? v[NR] : v[i] + (x - i) * (v[i + 1] - v[i]) }
        END { printf "%d %.1f %.1f\n", NR, at(0.5), at(0.9) }'
}

# First sight: what the committed predictions say of the committed measurements, without any simulation. All of unseen.csv; DeepSpeed's median.
cells() { # FILE COLUMN...: the id and these columns of a table of runs, tab-separated; no cell of those asked for has a quote
    awk -v names="$(IFS=,; echo "${*:2}")" 'BEGIN { n = split(names, want, ",") }
        /^#/ { next }
        { m = 0; rest = $0 ","
          while (rest != "") {
              if (substr(rest, 1, 1) == "\"") { match(rest, /^"([^"]|"")*",/) } else { match(rest, /^[^,]*,/) }
              cell[++m] = substr(rest, 1, RLENGTH - 1); rest = substr(rest, RLENGTH + 1) } }
        !column["id"] { for (i = 1; i <= m; i++) column[cell[i]] = i; next }
        { line = cell[column["id"]]; for (i = 1; i <= n; i++) line = line "|" cell[column[want[i]]]; print line }' "$1"
}
cells "$measured/unseen.csv" tokens_per_s_per_gpu tflops_per_gpu | sort >seen.rows
cells "$measured/../predictions/2026_11_22.csv" tokens_per_s_per_gpu tflops_per_gpu | sort >predicted.rows
join -t '|' seen.rows predicted.rows | awk -F '|' '{ e = 100 * ($2 != "" ? $4 / $2 : $5 / $3) - 100; print $1, (e < 0 ? -e : e) }' >errors
read -r n median p90 <<<"$(awk '{ print $2 }' errors | summary)"
[[ $n == 49 ]] || fail "$n runs at first sight"
read -r n median _ <<<"$(awk '/^DSA/ { print $2 }' errors | summary)"
grep -qE "^\| DeepSpeed on Azure[^|]*\|.*\| $n: $median \|" "$evidence" || fail "first sight of DeepSpeed: $n $median"

# README's table of accuracy: a group's runs, median and 90th percentile, of what results/validated.csv says is predicted.
expect 0 "$FLOPCAST" validate --from "$FLOPCAST_SOURCE_DIR/results/validated.csv" --db all.db
claims=0
whole() { sed -E ':a; s/([0-9])([0-9]{3})($|,)/\1,\2\3/; ta' <<<"$1"; } # 2217: 2,217
claim() { # WORDS-OF-README SQL
    local n median p90 cells
    claims=$((claims + 1))
    read -r n median p90 <<<"$(ask "SELECT abs(100 * error) AS e FROM v_validation WHERE error IS NOT NULL AND ($2)" all.db | summary)"
    cells="$(whole "$n") \| $median % \| $p90 %"
    ((n > 0)) || cells="- \| - \| -" # none of them is predicted today: stale
    grep -F "| $1" "$readme" | grep -qE "\| $cells \|$" ||
        fail "README says of '$1' other than $n runs, $median %, $p90 %: $(grep -F "| $1" "$readme")"
}
fitted="coalesce(used_in_fit, '') <> ''"
claim "MosaicML on A100 and H100, models of the fit" "source LIKE 'MosaicML%' AND $fitted"
claim "MosaicML, other models" "source LIKE 'MosaicML%' AND NOT $fitted"
others=
for source in 'arXiv 2304.11277' torchtitan PyTorch/IBM InternEvo 'DeepSpeed on Azure' 'NVIDIA DeepLearningExamples' 'PyTorch DDP' fms-fsdp KempnerForge; do
    others+="${others:+ OR }source LIKE '$source%'"
done
claim "FSDP paper, torchtitan, IBM, DeepSpeed, ResNet, BERT" "($others) AND NOT $fitted"
claim "Megatron-LM, 1.7B to 1T" "(source LIKE 'Megatron-LM SC21%' OR source LIKE 'Korthikanti%') AND NOT $fitted"
claim "BLOOM's topology search" "source LIKE 'BigScience%' AND NOT $fitted"
claim "NVIDIA's recipes, BF16 and FP8, 8 to 2,048 H100" "source LIKE 'NVIDIA DGX Cloud%' AND gpu LIKE 'H100%' AND NOT $fitted"
claim "vTrain's runs" "source LIKE 'vTrain%' AND NOT $fitted"
claim "nanotron's sweep" "source LIKE 'Ultra-Scale%' AND NOT $fitted"
claim "mixtures of experts on H100 and GB200" "(source LIKE 'MoE Parallel Folding%' OR source LIKE 'Megatron MoE%') AND NOT $fitted"
claim "GPT-2 and Llama by Hugging Face, one H100, measured by us" "source LIKE 'Hugging Face transformers%' AND NOT $fitted"
claim "B200, GB200, B300 and GB300, all sources" "(gpu LIKE 'B_00%' OR gpu LIKE 'GB_00%') AND NOT $fitted"
[[ $(grep -cE '^\| .* \| ([0-9.]+ % \| [0-9.]+ %|- \| - \| -) \|$' "$readme") == "$claims" ]] || fail "README has other rows than these $claims"

# What its text says of them, and of all.
text=$(tr '\n' ' ' <"$readme")
read -r n median _ <<<"$(ask "SELECT abs(100 * error) AS e FROM v_validation WHERE error IS NOT NULL AND NOT $fitted" all.db | summary)"
[[ $text == *"Today $(whole "$n") that no fit rests on are at $median %,"* ]] || fail "README of all: $n runs, $median %"
# Rows that wait for their measurement have no verdict.
waits="measured_oom = 0 AND coalesce(measured_tokens_per_s_per_gpu, measured_tflops_per_gpu, measured_step_time_s, measured_peak_bytes) IS NULL"
read -r right n <<<"$(ask "SELECT printf('%.0f %d', 100.0 * sum((status = 'oom') = coalesce(measured_oom, 0)) / count(*), count(*)) AS v FROM v_validation WHERE status IN ('ok', 'oom') AND NOT ($waits)" all.db)"
[[ $text == *"right for $right % of $(whole "$n") runs"* ]] || fail "README of verdicts: $right % of $n"
