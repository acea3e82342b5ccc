#!/usr/bin/env bash
# The commands of a page, run in their order in an empty folder, and what they print compared with what the page shows.
#   tests/cli/document.bash [--update] PAGE.md      --update: write what they print into the page
# $FLOPCAST is the program (build/release/flopcast), $FLOPCAST_LIBRARY its library.
#
# In blocks that are indented by four blanks
#   - '$ COMMAND', on several lines where they end in '\', is run by bash; it must end well.
#   - what follows it is its output, stderr too; a line '...' stands for all lines left out. Nothing follows: nothing is compared.
#   - a block behind a line that ends in "`NAME`:" is a file of that name, which is written.
#   - any other line is not looked at, but a command of flopcast without '$' is a mistake: it would never be tried.
set -euo pipefail
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd -P)
update=
if [[ ${1:-} == --update ]]; then
    update=1
    shift
fi
page=$(realpath -- "${1:?a page is missing}")
FLOPCAST=$(realpath -- "${FLOPCAST:-$root/build/release/flopcast}")
build=$(dirname -- "$FLOPCAST")
library=$(realpath -- "${FLOPCAST_LIBRARY:-$build/libflopcast.so}")
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
prefix=$work/home/.local # as README's install makes it
mkdir -p "$work/folder" "$prefix/lib/python3/dist-packages"
ln -s "$library" "$prefix/lib/libflopcast.so.0"
cp "$root/sim/flopcast/library/flopcast.py" "$prefix/lib/python3/dist-packages"
export PATH=$build:$PATH HOME=$work/home LC_ALL=C.UTF-8 FLOPCAST_SILENT_S=3600 # how far it is, it says on a slow machine alone
unset COLUMNS
# A sanitized library needs its sanitizer in the process first, which python3 has not.
preload=$(ldd "$library" | awk '/libasan/ { print $3 }')

mistake() { # LINE-NUMBER TEXT
    echo "${page#"$root"/}:$1: error: $2" >&2
    exit 1
}

# What a command prints, into the file `printed`.
try() { # LINE-NUMBER COMMAND
    local status=0 first=
    [[ $2 != *python3\ * ]] || first="${preload:+LD_PRELOAD=$preload ASAN_OPTIONS=detect_leaks=0} "
    (cd "$work/folder" && bash -c "set -euo pipefail; $first$2") </dev/null >"$work/printed" 2>&1 || status=$?
    [[ $status == 0 ]] || mistake "$1" "exit status $status of: $2
$(tail -n 20 "$work/printed")"
    sed -i -e :a -e '/^ *\n*$/{$d;N;ba' -e '}' "$work/printed" # no empty lines at the end
}

# Of the lines printed those that the page shows: all, or those before and behind '...'.
shown() { # LINES-SHOWN...
    local -a lines
    local before=0
    mapfile -t lines <"$work/printed"
    while ((before < $#)) && [[ ${*:before + 1:1} != ... ]]; do before=$((before + 1)); done
    local behind=$(($# - before - 1)) number=${#lines[@]}
    if ((behind < 0 || before + behind >= number)); then
        printf '%s\n' "${lines[@]}"
    else
        ((before == 0)) || printf '%s\n' "${lines[@]:0:before}"
        echo ...
        ((behind == 0)) || printf '%s\n' "${lines[@]:number - behind}"
    fi
}

# Whether a line, of an empty one the next, goes on with a file or with what is printed.
within() { [[ $1 == '    '* && $1 != '    $ '* ]]; }

# What a command needs beside flopcast: where it is not here the command is not run, and what the page shows stays.
needs() { # COMMAND
    case $1 in
    *python3\ *) echo python3 ;;
    *flopcast\ plot\ * | *flopcast\ report\ *) echo gnuplot ;;
    *) echo bash ;;
    esac
}

mapfile -t text <"$page"
commands=0 file='' prose=''
exec 3>"$work/page"
for ((i = 0; i < ${#text[@]}; )); do
    line=${text[i]}
    # A block begins: is it a file?
    if [[ $line == '    '* && $line != '    $ '* && -z ${text[i - 1]:-} && $prose =~ \`([A-Za-z0-9_./-]+\.[a-z]+)\`:$ ]]; then
        file=$work/folder/${BASH_REMATCH[1]}
        mkdir -p "$(dirname -- "$file")"
        for (( ; i < ${#text[@]}; i++)); do
            within "${text[i]:-${text[i + 1]:-}}" || break
            echo "${text[i]:4}" >>"$file.new"
            echo "${text[i]}" >&3
        done
        mv "$file.new" "$file"
        prose=
        continue
    fi
    i=$((i + 1))
    echo "$line" >&3
    [[ $line != '    flopcast '* ]] || mistake $i "this command is not run; write '\$ ' before it"
    if [[ $line != '    $ '* ]]; then
        [[ -z $line || $line == '    '* ]] || prose=$line
        continue
    fi
    command=${line:6} at=$i
    while [[ $command == *\\ ]]; do
        echo "${text[i]}" >&3
        command=${command%\\}${text[i]}
        i=$((i + 1))
    done
    wanted=()
    while within "${text[i]:-${text[i + 1]:-}}"; do
        wanted+=("${text[i]:4}")
        i=$((i + 1))
    done
    start=$SECONDS commands=$((commands + 1))
    if ! command -v "$(needs "$command")" >/dev/null; then
        echo "not run, as $(needs "$command") is not here: $command"
        ((${#wanted[@]} == 0)) || printf '    %s\n' "${wanted[@]}" >&3
        continue
    fi
    try $at "$command"
    echo "$((SECONDS - start)) s: $command"
    ((${#wanted[@]} == 0)) || shown "${wanted[@]}" | sed 's/^\(.\)/    \1/; s/  *$//' >&3
done
exec 3>&-
((commands > 0)) || mistake 1 "no command in it"
if [[ $update ]]; then
    cmp -s "$page" "$work/page" || cp "$work/page" "$page"
elif ! diff -u --label "${page#"$root"/}" --label printed "$page" "$work/page"; then
    mistake 1 "shows what is not printed any more; tests/cli/document.bash --update ${page#"$root"/} writes it anew"
fi
