#!/usr/bin/env bash
# `flopcast calibrate fit nccl --db`, `calibrate show` and the figures of it.
set -euo pipefail
# shellcheck source=/dev/null
. "$FLOPCAST_SOURCE_DIR/tests/cli/lib.bash"
expect 0 "$FLOPCAST" calibrate fit nccl --db a.db
says out "left_out" "nccl_ring_post_latency" "in the file" "+-"
says out "nvls_efficiency" "left_out all_reduce"
# Of the hardware of B300 and GB300 (compute capability 10.3), and of nodes of one and four GPUs on these networks, no table is fitted; of all other tables one is.
unseen=$(grep -c '^left_out.* unseen ' out) || true
[[ $unseen == 27 && $unseen == "$(grep -c '^left_out.* unseen .*\(GB300\|b300-8x800g\|gb300-nvl72\|perlmutter-a100\|vista-gh200\)' out)" ]] || fail "$unseen tables of hardware that was not seen"
says out "of those whose hardware a fitted table has: "
large=$(sed -n 's/^left out, >= 1 MiB: \([0-9]* of [0-9]*\) tables within 10 %$/\1/p' out)
[[ $large == "$(ask "SELECT sum(large_error <= 0.1) || ' of ' || count(large_error) FROM v_nccl_table WHERE use = 'left_out'")" ]] || fail "summary $large"
expect 0 "$FLOPCAST" calibrate show --db a.db
says out "rests on tables" "nccl_channel_bandwidth  nvl72-racks"

# For programs in base SI, with the unit beside.
sed '/^correlations of filed numbers/,$d' out >table
expect 0 "$FLOPCAST" calibrate show --db a.db --format csv
[[ $(head -n 1 out) == $'parameter,family,value,std_error,unit,sizes,rests_on_tables\r' ]] || fail "CSV: $(head -n 1 out)"
[[ $(awk '/^nccl_|^nvls_/' table | wc -l) == $(($(wc -l <out) - 1)) ]] || fail "as many rows as the table: $(<out)"
grep -qE '^nccl_ring_post_latency,rings-tcpxo,[1-9][.0-9]*e-05,[1-9][.0-9]*e-0[67],s,' out || fail "a latency in seconds: $(<out)"
expect 0 "$FLOPCAST" calibrate show --db a.db --format json
says out '"parameter": "nccl_ring_post_latency"'
cp table out

# The reviewed file has the same parameters, resting on the same tables (their numbers: tests/calibrate/test_nccl_fit.c).
parameters() { awk '/^nccl_|^nvls_/ { print $1, $NF }' "$1"; }
diff <(parameters "$FLOPCAST_SOURCE_DIR/topologies/fitted/nccl.txt") <(parameters out) || fail "topologies/fitted/nccl.txt is old"

# Every fitted number in the files says which parameter it is, and a parameter has one value wherever it stands.
files=("$FLOPCAST_SOURCE_DIR"/topologies/{gpus,nodes,clusters,fitted}/*.yaml "$FLOPCAST_SOURCE_DIR"/scenarios/stacks/*.yaml)
[[ $(cat "${files[@]}" | grep -c 'kind: fitted, ') -gt 150 ]] || fail "few fitted numbers"
if grep -Hn 'kind: fitted, ' "${files[@]}" | grep -v ', fit: [a-z0-9/-]*, '; then fail "a fitted number without an id"; fi
twice=$(grep -ohE '[a-z_]+: \{value: [^,]*, kind: fitted, std_error: [^,]*, fit: [^,]*' "${files[@]}" |
    sed -E 's/^([a-z_]+): \{value: (.*), kind: fitted, (std_error: .*), fit: (.*)$/\1 \4|\2 \3/' | sort -u | cut -d '|' -f 1 | uniq -d)
[[ -z $twice ]] || fail "parameters of several values: $twice"

# Every parameter has a standard error, a covariance with itself that is its square, and rests on a fitted table.
[[ $(ask "SELECT count(*) > 20, min(std_error) > 0, min(tables) > 0 FROM v_nccl_parameter") == "1 1 1" ]] || fail "parameters"
[[ $(ask "SELECT max(abs(sqrt(cells ->> 'covariance') * value / std_error - 1)) < 1e-9 FROM v_fit_row JOIN v_nccl_parameter ON parameter = cells ->> 'parameter' WHERE part = 'covariance' AND cells ->> 'other' = parameter") == 1 ]] || fail "covariance"
[[ $(ask "SELECT count(*) FROM v_fit_row JOIN v_nccl_table ON place = cells ->> 'place' WHERE part = 'rest' AND use <> 'fit'") == 0 ]] || fail "rests on a table that was not fitted"
# One of the network does not rest on tables of one node.
[[ $(ask "SELECT min(nodes) FROM v_nccl_parameter AS p JOIN v_fit_row AS r ON r.part = 'rest' AND r.cells ->> 'parameter' = p.parameter JOIN v_nccl_table AS t ON t.place = r.cells ->> 'place' WHERE p.key = 'nccl_ring_post_latency'") == 2 ]] || fail "network"
# The error of a table is that of its points: the median of an odd number is one of them.
[[ $(ask "SELECT count(*) FROM v_nccl_table AS t WHERE use <> 'bad' AND large_error IS NOT NULL AND (SELECT count(*) % 2 FROM v_nccl_point AS p WHERE p.place = t.place AND bytes >= 1048576) AND NOT EXISTS (SELECT 1 FROM v_nccl_point AS p WHERE p.place = t.place AND abs(abs(p.error) - large_error) < 1e-12)") == 0 ]] || fail "errors"

for figure in busbw residuals; do
    expect 0 "$FLOPCAST" plot $figure --db a.db
    [[ $(head -c 8 $figure.png | od -An -tx1 | tr -d ' \n') == 89504e470d0a1a0a ]] || fail "$figure.png is no PNG"
done

scenario a.yaml
expect 0 "$FLOPCAST" run a.yaml --db b.db --quiet
expect 1 "$FLOPCAST" calibrate show --db none.db
says err "none.db: error: cannot open the database: No such file or directory; make one with: flopcast calibrate fit nccl"
expect 2 "$FLOPCAST" plot busbw --db b.db
says err "b.db: error: nothing in this database is for figure 'busbw', which shows: Bus bandwidth" "calibrate fit nccl --db"
expect 2 "$FLOPCAST" calibrate show --db b.db
says err "the database holds no fit; make one with: flopcast calibrate fit nccl --db FILE"
expect 2 "$FLOPCAST" calibrate fit training --db b.db
says err "--db is for: calibrate fit nccl, calibrate fit"

# The GEMM model: what the report prints is what is stored and drawn.
expect 0 "$FLOPCAST" calibrate fit --db a.db
says out "products of v100-sxm2-16gb" "  fp16                   held out"
p90=$(sed -n 's/^  fp32  *held out .* \([0-9.]*\) %$/\1/p' out)
[[ $(ask "SELECT count(*) FROM v_gemm_row") == $(grep -c ',measured,' "$FLOPCAST_SOURCE_DIR/results/measured/gemm.csv") ]] || fail "rows"
worse=$(ask "SELECT 10 * sum(100 * abs(error) > $p90 + 0.05) BETWEEN count(*) - 10 AND count(*) + 10 FROM v_gemm_row WHERE gpu LIKE 'v100%' AND dtype = 'fp32' AND use = 'held out'")
[[ $worse == 1 ]] || fail "not a tenth is worse than the 90th percentile, $p90 %"
expect 0 "$FLOPCAST" plot gemm --db a.db
[[ $(head -c 8 gemm.png | od -An -tx1 | tr -d ' \n') == 89504e470d0a1a0a ]] || fail "gemm.png is no PNG"

# How filed numbers go together: the closest pair of the file is the first, and each above 0.95 is warned of.
expect 0 "$FLOPCAST" calibrate show --db a.db
most=$(sed -n '/^ *- \[/p' "$FLOPCAST_SOURCE_DIR/topologies/fitted/correlations.yaml" | tr -d 'a-z[],-' | tr ' ' '\n' | sort -g | tail -n 1)
first=$(sed -n '/^correlations of filed numbers/,$p' out | awk 'NR == 3 { print $5 }')
[[ ${first#-} == "$most" ]] || fail "the closest pair is $first, not $most"
warned=$(sed -n '/^ *- \[/p' "$FLOPCAST_SOURCE_DIR/topologies/fitted/correlations.yaml" | tr -d 'a-z[],-' | tr ' ' '\n' | awk '$1 > 0.95' | wc -l)
[[ $(grep -c 'warning: .* have a correlation of ' err || true) == "$warned" ]] || fail "$warned pairs are to be warned of: $(<err)"
[[ $(sed -n '/^correlations of filed numbers/,$p' out | awk 'NR > 2 { v = $5 < 0 ? -$5 : $5; if (v < 0.5 || v > last + 0.01 && NR > 3) exit 1; last = v }' && echo sorted) == sorted ]] || fail "order: $(<out)"

# host_jitter is the median of what each trace says, of which each is the median over lengths of bursts.
of_traces=$(grep -v '^#' "$FLOPCAST_SOURCE_DIR/results/measured/host_jitter.csv" | cut -d, -f1,7 | tail -n +2 | sort -t, -k1,1 -k2,2n |
    awk -F, '{ all[$1] = all[$1] " " $2; n[$1]++ } END { for (t in all) { split(all[t], v, " "); print v[int((n[t] + 1) / 2)] } }' | sort -n | sed -n 2p)
filed=$(sed -n 's/^host_jitter: {value: \([0-9.]*\) %.*/\1/p' "$FLOPCAST_SOURCE_DIR/topologies/noise.yaml")
awk -v a="$of_traces" -v b="$filed" 'BEGIN { exit !(a > 0 && 100 * a - b < 0.1 && b - 100 * a < 0.1) }' || fail "host_jitter: filed $filed %, traces $of_traces"
