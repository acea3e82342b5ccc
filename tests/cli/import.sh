#!/usr/bin/env bash
# `flopcast calibrate import`: what is stored, what is noticed, and files that are wrong leave the database as it was.
set -euo pipefail
# shellcheck source=/dev/null
. "$FLOPCAST_SOURCE_DIR/tests/cli/lib.bash"
data=$FLOPCAST_SOURCE_DIR/tests/import/data
import() { "$FLOPCAST" calibrate import "$@"; }

expect 0 import nccl-tests "$data/all_reduce.txt" "$data/all_gather.json" --db a.db
says out "all_reduce.txt: 2 rows: all_reduce, 4 ranks on 2 nodes; 1 of 0 bytes left out" "all_gather.json: 2 rows: all_gather, 2 ranks on 1 node"
gzip -c "$data/trace.json" >trace.pt.trace.json.gz
expect 0 import kineto trace.pt.trace.json.gz --db a.db
says out "1 collective and 1 other kernel"

# 1 MB in 100 us: 10 GB/s, times 2 * 3 / 4 for an all-reduce of 4 ranks
[[ $(ask "SELECT algbw_Bps / 1e9, busbw_Bps / 1e9 FROM v_collective_measurement WHERE bytes = 1000000 AND ranks = 4") == "10.0 15.0" ]] || fail "bandwidths"
# 16 ranks x 2^20 elements x 2 B
[[ $(ask "SELECT bytes, nodes IS NULL FROM v_collective_measurement WHERE ranks = 16") == "33554432 1" ]] || fail "collective of the trace"
[[ $(ask "SELECT name FROM v_kernel_measurement WHERE stream = 7") == sm90_xmma_gemm* ]] || fail "kernel of the trace"
[[ $(ask "SELECT algorithm FROM v_collective_measurement WHERE bytes = 2000000") == Ring ]] || fail "NCCL_ALGO of the JSON"
grep -q not-to-be-stored a.db && fail "the environment was stored"

# The same content is noticed, under another name and compressed too.
cp "$data/all_reduce.txt" again.txt
gunzip -c trace.pt.trace.json.gz >trace.json
for file in again.txt trace.json; do
    format=nccl-tests
    [[ $file == trace.json ]] && format=kineto
    before=$(cksum <a.db)
    expect 0 import $format $file --db a.db
    says out "$file: its content is in the database, imported on"
    [[ $(cksum <a.db) == "$before" ]] || fail "$file was stored twice"
done

# The table of results/measured.
expect 0 import nccl-tests --format csv "$data/all_reduce.txt"
tr -d '\r' <out >table.csv
diff - table.csv <<'CSV' || fail "CSV"
source,gpu,nodes,ranks,network,nccl_version,collective,algorithm,protocol,bytes,time_us_out_of_place,time_us_in_place,kind
made up for the tests: 10 GB/s in algbw at 1 MB,NVIDIA H100 80GB HBM3,2,4,none,2.23.4+cuda12.6,all_reduce,,,8,13.52,13.04,measured
made up for the tests: 10 GB/s in algbw at 1 MB,NVIDIA H100 80GB HBM3,2,4,none,2.23.4+cuda12.6,all_reduce,,,1000000,100,200,measured
CSV

# Wrong files: exit status 2, the place, and no change, though a good file stands before them.
sed 's/node-a/node-c/' "$data/all_reduce.txt" >good.txt
refused() { # refused FORMAT FILE TEXT...
    local format=$1 file=$2 before
    shift 2
    before=$(cksum <a.db)
    if [[ $format == nccl-tests ]]; then
        expect 2 import "$format" good.txt "$file" --db a.db
    else
        expect 2 import "$format" "$file" --db a.db
    fi
    says err "$@"
    [[ $(cksum <a.db) == "$before" ]] || fail "$file changed the database"
}
head -n 18 good.txt | head -c -40 >cut.txt
refused nccl-tests cut.txt "cut.txt:18:1: error: " "is the row"
head -c 100000 /dev/urandom >binary.txt
refused nccl-tests binary.txt "binary.txt"
refused kineto binary.txt "binary.txt:"
refused nsys binary.txt "binary.txt: error: cannot read it as a Nsight Systems profile"
head -c 300 trace.pt.trace.json.gz >cut.json.gz
refused kineto cut.json.gz "cut.json.gz: error: the gzip data are damaged or cut"
head -n 9 trace.json >cut.json
refused kineto cut.json "cut.json:10:" "premature EOF; a whole file of JSON is wanted"
head -n 9 "$data/all_gather.json" >cut_gather.json
refused nccl-tests cut_gather.json "cut_gather.json:10:" "premature EOF"
head -c 50000000 /dev/zero | tr '\0' 'x' | gzip >huge.gz
refused nccl-tests huge.gz "huge.gz:1:1: error: a line of more than"
refused kineto huge.gz "huge.gz:1:"
refused nsys a.db "a.db: error: no GPU kernels in it"
refused nccl-tests absent.txt "absent.txt:1:1: error: cannot open"
mkdir folder
refused nccl-tests folder "folder:1:1: error: cannot read"
expect 0 import nccl-tests good.txt --db a.db

# What a database held stays.
scenario a.yaml
expect 0 "$FLOPCAST" run a.yaml --db both.db --quiet
expect 0 import nccl-tests good.txt --db both.db
[[ $(ask "SELECT (SELECT count(*) FROM point), (SELECT count(*) FROM collective_measurement)" both.db) == "1 2" ]] || fail "both.db"

expect 2 import
says err "what to import is missing"
expect 2 import nccl
expect 2 import nccl-tests
says err "a file is missing"
expect 2 import nsys one two
expect 2 import kineto --ranks 8 x
expect 2 import nccl-tests --ranks 0 x
expect 2 import nccl-tests --collective all_reduces x
expect 2 import nccl-tests --format xml x
expect 2 import nccl-tests --format csv --db a.db x

# Kernels measured alone: rows that a rule takes, in the form of results/measured/direct.csv. 4096 x 4096 x 4096 is one of the shapes that stay or go
# together in all tables; another program, and a side below 128, never stay.
cat >casts.csv <<'CSV'
source,gpu,software,op,m,k,dtype,value,unit,gbps,note
a,h100-sxm5-80gb,TRTLLM 1.3.0rc20,scale_matrix,128,32,fp8,1.1,us,1,
a,h100-sxm5-80gb,TRTLLM 1.3.0rc20,scale_matrix,128,64,fp8,1.2,us,1,
a,h100-sxm5-80gb,TRTLLM 1.3.0rc20,scale_matrix,128,128,fp8,1.3,us,1,
a,h100-sxm5-80gb,TRTLLM 1.3.0rc20,scale_matrix,128,256,fp8,1.4,us,1,
a,h100-sxm5-80gb,TRTLLM 1.3.0rc20,scale_matrix,128,512,fp8,1.5,us,1,
a,h100-sxm5-80gb,TRTLLM 1.3.0rc20,scale_matrix,128,768,fp8,1.6,us,1,
a,h100-sxm5-80gb,another,scale_matrix,128,768,fp8,1.6,us,1,
CSV
expect 0 import direct casts.csv
says out "class,gpu,software,dtype,regime,m,n,k"
kept=$(grep -c ^scale_matrix out)
((kept > 0 && kept < 6)) || fail "$kept of six casts, one in three of which stays"
grep '^[^#c]' out | while read -r row; do
    grep -qxF "$row" "$FLOPCAST_SOURCE_DIR/results/measured/direct.csv" || [[ $row == *,1.[1-6], ]] || fail "another form: $row"
done
printf 'a,b\n1,2\n' >none.csv
expect 2 import direct none.csv
says err "none.csv:2:1: error: none of the tables that are known"
sed 's/,64,fp8/,x,fp8/' casts.csv >bad.csv
expect 2 import direct bad.csv
says err "bad.csv:3:"
expect 2 import direct casts.csv --db a.db
