#!/usr/bin/env bash
# The ledger of claims: README's and results/README's figures are those that the program prints. What takes minutes (`validate` on all
# rows, T5's intervals) is compared where FLOPCAST_LEDGER is set, with a release build, say: after a refit, before a release.
set -euo pipefail
# shellcheck source=/dev/null
. "$FLOPCAST_SOURCE_DIR/tests/cli/lib.bash"
readme=$FLOPCAST_SOURCE_DIR/README.md evidence=$FLOPCAST_SOURCE_DIR/results/README.md measured=$FLOPCAST_SOURCE_DIR/results/measured

# Numbers, one a line: how many, their median and 90th percentile (between neighbours, as GSL has it).
summary() {
    sort -g | awk '{ v[NR] = $1 } function at(q, x, i) { x = 1 + q * (NR - 1); i = int(x); return i == NR ? v[NR] : v[i] + (x - i) * (v[i + 1] - v[i]) }
        END { printf "%d %.1f %.1f\n", NR, at(0.5), at(0.9) }'
}

# First sight: what the committed predictions say of the committed measurements, without any simulation. All, then DeepSpeed's.
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
cells "$measured/predictions_2026_11_22.csv" tokens_per_s_per_gpu tflops_per_gpu | sort >predicted.rows
join -t '|' seen.rows predicted.rows | awk -F '|' '{ e = 100 * ($2 != "" ? $4 / $2 : $5 / $3) - 100; print $1, (e < 0 ? -e : e) }' >errors
read -r n median p90 <<<"$(awk '{ print $2 }' errors | summary)"
[[ $n == 49 ]] || fail "$n runs at first sight"
grep -qE "^\| all \| $n \|[^|]*\| $median % \| $p90 % \|" "$evidence" || fail "first sight of all: $n $median $p90"
read -r n median p90 <<<"$(awk '/^DSA/ { print $2 }' errors | summary)"
grep -qE "^\| DeepSpeed 175B[^|]*\| $n \|[^|]*\| $median % \| $p90 % \|" "$evidence" || fail "first sight of DeepSpeed: $n $median $p90"

[[ ${FLOPCAST_LEDGER:-} ]] || exit 0

# README's table of accuracy: a group's runs, median, 90th percentile, the latter without a decimal where README leaves it out.
expect 0 "$FLOPCAST" validate --db all.db
skill=$(tr '\n' ' ' <out | sed -n 's/.*a loss of \([.0-9]*\) % with each doubling.* is \([.0-9]*\) points off.*predictions \([.0-9]*\): .*/\1 \2 \3/p')
read -r loss rule mean <<<"$skill"
tr '\n' ' ' <"$readme" | grep -qF -- "$mean points off in the mean, a loss of $loss % a doubling $rule" || fail "skill: $skill"
claim() { # WORDS-OF-README SQL
    local n median p90
    read -r n median p90 <<<"$(ask "SELECT abs(100 * error) AS e FROM v_validation WHERE error IS NOT NULL AND ($2)" all.db | summary)"
    grep -E "^\| $1" "$readme" | grep -qE "\| $n \| $median % \| ($p90|$(printf '%.0f' "$p90")) % \|$" ||
        fail "README says of '$1' other than $n runs, $median %, $p90 %: $(grep -E "^\| $1" "$readme")"
}
fitted="coalesce(used_in_fit, '') <> ''"
claim "MosaicML 2023 and 2024: models that the fit uses" "source LIKE 'MosaicML%' AND $fitted"
claim "MosaicML 2024: models left out" "source LIKE 'MosaicML llm-foundry MPT%' AND NOT $fitted"
claim "MosaicML 2023: models left out" "source LIKE 'MosaicML%MosaicGPT%' AND NOT $fitted"
claim "FSDP paper, torchtitan, IBM, Megatron, InternEvo" "(source LIKE 'arXiv 2304.11277%' OR source LIKE 'torchtitan%' OR source LIKE 'PyTorch/IBM%' OR source LIKE 'Megatron%' OR source LIKE 'InternEvo%') AND NOT $fitted"
claim "DeepSpeed 175B" "source LIKE 'DeepSpeed%' AND NOT $fitted"
claim "ResNet, torch.compile, BERT" "(source LIKE 'NVIDIA%' OR source LIKE 'PyTorch DDP%' OR source LIKE 'fms-fsdp%' OR source LIKE 'KempnerForge%') AND NOT $fitted"

# T5's intervals, as scenarios/run prints them.
expect 0 "$FLOPCAST" run scenarios/t5_scaling.yaml --set "cluster.gpus=[8, 512]" --set train.micro_batch=8 --samples 20
sed -n 's/.*train.precision \([a-z0-9_]*\), 8 -> 512 GPUs: simulated.*GPU (\([-+.0-9]*\) %);.*90 % between \([-+.0-9]*\) and \([-+.0-9]*\) %, .*between \([-+.0-9]*\) and \([-+.0-9]*\) %; published.*/\1: \2 %, \3 to \4 %, \5 to \6 %/p' out >claims
[[ $(wc -l <claims) == 2 ]] || fail "no intervals: $(<out)"
while read -r claim; do
    grep -qF -- "$claim" "$readme" || fail "README does not say: $claim"
done <claims
