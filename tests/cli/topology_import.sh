#!/usr/bin/env bash
# `flopcast topology import`: nodes that topology and scenarios load; wrong files leave nothing behind.
set -euo pipefail
# shellcheck source=/dev/null
. "$FLOPCAST_SOURCE_DIR/tests/cli/lib.bash"
data=$FLOPCAST_SOURCE_DIR/tests/import/data/topology
import() { "$FLOPCAST" topology import "$@"; }

# The node is a valid file: topology shows it, and a cluster of it runs.
expect 0 import "$data/dgx-1v.xml" --out node.yaml --name mine
[[ ! -s out ]] || fail "with --out stdout is not empty: $(<out)"
expect 0 "$FLOPCAST" topology node.yaml
says out "node mine" "nvlink_mesh" "120 GB/s" "12.5 GB/s" "gpu V100-SXM2-32GB" "nccl topology XML, NCCL's rule: 6 NVLinks x 20 GB/s"
sed "s|^node:.*|node: node.yaml|" "$FLOPCAST_SOURCE_DIR/topologies/clusters/dgx-1v-ib.yaml" >cluster.yaml
scenario a.yaml
expect 0 "$FLOPCAST" run a.yaml --set cluster.topology=cluster.yaml --format csv
says out "a,"

# The GPU file is named relative where both stand in a topologies folder.
mkdir -p topologies/nodes topologies/gpus
cp "$FLOPCAST_SOURCE_DIR/topologies/gpus/a100-sxm4-80gb.yaml" topologies/gpus
expect 0 import "$data/pcie.xml" --gpu topologies/gpus/a100-sxm4-80gb.yaml --out topologies/nodes/pcie.yaml
says topologies/nodes/pcie.yaml 'gpu: "../gpus/a100-sxm4-80gb.yaml"' "nvlink_bridge: {value: 60 GB/s"
expect 0 "$FLOPCAST" topology topologies/nodes/pcie.yaml
expect 0 import "$data/h100.txt"
says out 'name: "h100"' "fabric: nvswitch" "# Which GPU it is was inferred"

# Else flopcast's own by the name that works everywhere; and what networks differ by most is no silent guess.
says out 'gpu: "topologies/gpus/h100-sxm5-80gb.yaml"' "# Its switches can reduce (NVLS), which no dump says"
says err "warning: it does not say what a NIC carries; 400 Gb/s is assumed: write what yours do under nic_bandwidth"
mv out h100.yaml
expect 0 "$FLOPCAST" topology h100.yaml
expect 0 import "$data/h100.xml"
[[ ! -s err ]] || fail "XML says what NICs carry: $(<err)"

# What a file names itself stays within its comment.
sed 's/mlx5_8/a\&#10;gpus: 1/' "$data/h100.xml" >names.xml
expect 0 import names.xml
says out "# Slower NICs are left out: 2, as a?gpus: 1 with 200 Gb/s."

refused() { # refused TEXT ARGUMENT...
    local text=$1
    shift
    expect 2 import "$@" --out refused.yaml
    says err "$text"
    [[ ! -e refused.yaml ]] || fail "refused.yaml was made"
}
refused "give --gpu FILE" "$data/pcie.txt"
refused "compute capability 7.0" "$data/dgx-1v.xml" --gpu "$FLOPCAST_SOURCE_DIR/topologies/gpus/h100-sxm5-80gb.yaml"
refused "absent.xml:1:1: error: cannot open" absent.xml
head -c 2000 "$data/h100.xml" >cut.xml
refused "cut.xml:" cut.xml
head -c 100000 /dev/urandom >binary
refused "binary:" binary
{ echo "<system>"; head -c 20000000 /dev/zero | tr '\0' ' '; } | gzip >blank.xml.gz
refused "more than 16 MiB" blank.xml.gz
refused "neither XML of NCCL" "$FLOPCAST_SOURCE_DIR/README.md"
expect 1 import "$data/h100.xml" --out no/such/folder.yaml
expect 2 import
says err "a file is missing"
expect 2 import a b
says err "one file at a time; 'b' is a second one"
expect 0 import --help
says out "Usage: flopcast topology import "
