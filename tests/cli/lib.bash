# shellcheck shell=bash
# For the tests of the command line: expectations that say what was seen, and small scenarios in the folder where the test stands.
# Sourced by the scripts beside it and in tests/fault.
unset ARGP_HELP_FMT # would change the layout of --help
export FLOPCAST_SILENT_S=3600 # a command says nothing of how far it is, however slow the machine
export ASAN_OPTIONS=detect_leaks=0 # a look at its end takes longer than most commands; cli/leaks.sh has it
export COLUMNS=0    # tables as they are, as --wide has them; tests of the layout say how wide

# The system's, as the shims of a version manager take ten times as long to start.
if [[ -x /usr/bin/python3 ]]; then python3() { /usr/bin/python3 "$@"; }; fi

fail() {
    printf 'FAILED: %s\n' "$*" >&2
    exit 1
}

# expect STATUS COMMAND...: runs it; output in the files out and err.
expect() {
    local want=$1 got=0
    shift
    "$@" >out 2>err || got=$?
    [[ $got == "$want" ]] || fail "exit status $got, not $want, of: $* $(tail -n 5 out err)"
}

# says FILE TEXT...: the file holds each text, a sentence also over several lines.
says() {
    local file=$1 text whole=
    shift
    IFS= read -rd '' whole <"$file" || true
    for text; do
        [[ $whole == *"$text"* ]] || tr -s '\n ' ' ' <<<"$whole" | grep -qF -- "$text" || fail "'$text' is not in $file: $(head -n 20 "$file")"
    done
}

# narrow COMMAND...: on a screen of 80 characters no line is longer; output in the files out and err.
narrow() {
    expect 0 env COLUMNS=80 "$@"
    if grep -E '.{81}' out; then fail "lines of more than 80 characters, of: $*"; fi
}

# alike FILE FILE: the same words, and numbers that differ by 2 % at most: a table rounds them to what their interval lets one read.
alike() {
    awk 'NR == FNR { line[FNR] = $0; n = FNR; next }
        { if (split(line[FNR], other) != NF) bad = 1
          for (i = 1; i <= NF; i++)
              if (other[i] != $i && (other[i] + 0 == 0 || ($i / other[i] - 1) ^ 2 > 0.02 ^ 2)) bad = 1 }
        END { exit bad || FNR != n }' "$1" "$2"
}

# scenario FILE [LINE...]: a GPT of two layers with DDP on 8 to 32 V100, which simulates in no time; the lines are added.
scenario() {
    local file=$1
    shift
    cat >tiny.json <<'JSON'
{"model_type": "gpt2", "n_embd": 256, "n_layer": 2, "n_head": 4, "vocab_size": 1000, "n_positions": 1024}
JSON
    cat >"$file" <<YAML
name: ${file%.yaml}
model: tiny.json
cluster: {topology: $FLOPCAST_SOURCE_DIR/topologies/clusters/dgx-1v-ib.yaml, gpus: 8}
train: {micro_batch: 2, seq_len: 128, precision: fp16_mixed}
strategy: ddp
run: {steps: 1, warmup_steps: 0}
YAML
    printf '%s\n' "$@" >>"$file"
}

# ask SQL [DATABASE]: the values of one query, a row a line, read through a figure made for it (there need not be an sqlite3 here).
ask() {
    mkdir -p figures
    printf -- '-- name: rows\n%s\n' "$1" >figures/ask.sql
    printf 'plot sin(x)\n' >figures/ask.gp
    FLOPCAST_PLOTS=figures expect 0 "$FLOPCAST" plot ask --db "${2:-a.db}" --out ask.svg --keep-script
    # the rows of the data block, without the line of names
    # shellcheck disable=SC2016 # $ is gnuplot's and sed's
    sed -n '/^\$rows << EOD$/,/^EOD$/p' ask.svg.gp | sed '1,2d;$d' | tr -d '"'
}
