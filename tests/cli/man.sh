#!/usr/bin/env bash
# Manual pages: one of each command and action, with every option of its --help; groff has nothing to say about them.
set -euo pipefail
# shellcheck source=/dev/null
. "$FLOPCAST_SOURCE_DIR/tests/cli/lib.bash"

expect 0 "$FLOPCAST" __man
mv out pages
for command in $("$FLOPCAST" --help | sed -n 's/^  \([a-z]*\)  .*/\1/p'); do
    case $command in
    help | calibrate | scenario | trace) ;; # of its actions
    *) grep -qx "flopcast-$command.1" pages || fail "no page of $command" ;;
    esac
done
while read -r page; do
    expect 0 "$FLOPCAST" __man "$page" 2026-11-23
    mv out "$page"
    name=${page%.*}
    [[ $page == *.5 || $name == flopcast ]] && continue
    read -ra words <<<"${name//-/ }"
    for option in $("$FLOPCAST" "${words[@]:1}" --help | grep -o '^ *\(-[a-z], \|    \)--[a-z-]*' | grep -o -- '--.*'); do
        grep -qF -- "${option//-/\\-}\\fR" "$page" || [[ $option == --help || $option == --version || $option == --usage ]] ||
            fail "$page has no $option"
    done
done <pages
grep -qF '\fBparallelism.tensor\fR' flopcast-scenario.5 || fail "no settings in flopcast-scenario.5"
grep -qF '\fBhbm_capacity' flopcast-topology.5 || fail "no numbers of a GPU in flopcast-topology.5"
expect 2 "$FLOPCAST" __man flopcast-nothing.1
if command -v mandoc >/dev/null; then
    mandoc -T lint -W warning flopcast*.[15] >warnings || fail "$(head -n 5 warnings)"
fi
if command -v groff >/dev/null; then
    for page in flopcast*.[15]; do
        groff -ww -man -Tutf8 "$page" >text 2>warnings
        [[ ! -s warnings ]] || fail "$page: $(head -n 5 warnings)"
    done
fi
