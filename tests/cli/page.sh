#!/usr/bin/env bash
# README.md and results/README.md hold the tables that `flopcast validate --page` makes of results/validated.csv, and that has all rows of all
# tables of results/measured as they are today: what goes into a row is loaded anew and compared by digest. Rows of which something else would
# go in today are stale: the pages must say how many. Where this fails: scenarios/run validate. No figure of accuracy is typed into README.md.
set -euo pipefail
# shellcheck source=/dev/null
. "$FLOPCAST_SOURCE_DIR/tests/cli/lib.bash"

for page in results/README.md README.md; do
    cp "$FLOPCAST_SOURCE_DIR/$page" page.md
    chmod u+w page.md
    expect 0 "$FLOPCAST" validate --from "$FLOPCAST_SOURCE_DIR/results/validated.csv" --page page.md
    others=$(grep -vE "warning: (0 rows not in .*, [0-9]+ with other settings there|[0-9,]+ rows? of it (stand in the file of results without a digest|would be predicted from other settings))" err || true)
    [[ ! $others ]] || fail "results/validated.csv lacks rows; scenarios/run validate makes it again: $others"
    [[ ! -s err ]] || grep -qE "[0-9,]+ (rows )?are stale|^Stale, because something else would go in today: [0-9]+ rows" page.md ||
        fail "$page does not say that rows are stale: $(<err)"
    cmp page.md "$FLOPCAST_SOURCE_DIR/$page" || fail "$page is not what the command writes; scenarios/run validate writes it: $(diff page.md "$FLOPCAST_SOURCE_DIR/$page" | head)"
done

# Outside of what is generated, and of what commands print (cli.readme compares that) or another test compares: no percentage, and no count of runs beside the words of accuracy.
typed() { sed '/^<!-- begin/,/^<!-- end -->/d; /^<!-- compared by/,/^<!-- .compared -->/d; /^    /d' "$1" | grep -nE '[0-9] ?%|[Mm]edian|p90|percentile|[0-9] (published )?runs' || true; }
[[ -z $(typed "$FLOPCAST_SOURCE_DIR/README.md") ]] || fail "figures of accuracy are typed into README.md: $(typed "$FLOPCAST_SOURCE_DIR/README.md")"
for part in summary accuracy "other simulators"; do
    sed "/^<!-- begin $part:/,/^<!-- end -->/{/^<!--/d}" "$FLOPCAST_SOURCE_DIR/README.md" >typed.md # without its markers it counts as typed
    [[ -n $(typed typed.md) ]] || fail "a typed figure of the part '$part' is not found"
done

# One rule of noise: the base scenario's. A table that turned it off for some sources would choose which errors are shown.
for table in "$FLOPCAST_SOURCE_DIR"/results/measured/*.csv; do
    ! grep -v '^#' "$table" | head -n 1 | grep -E '(^|,)(noise\.|run\.(fold|seed))' || fail "$table has columns of noise, fold or seed; all rows have those of training.yaml"
done

# How sure predictions are is made of the rows as they are today.
expect 0 "$FLOPCAST" validate --from "$FLOPCAST_SOURCE_DIR/results/validated.csv" --sure new.yaml
diff "$FLOPCAST_SOURCE_DIR/topologies/fitted/sure.yaml" new.yaml || fail "topologies/fitted/sure.yaml is not what the command writes; scenarios/run validate writes it"
