#!/usr/bin/env bash
# The Debian package: what it holds, that it names the libraries, that the program in it finds its files. Where dpkg's tools are.
set -euo pipefail
# shellcheck source=/dev/null
. "$FLOPCAST_SOURCE_DIR/tests/cli/lib.bash"

if ! command -v dpkg-deb >/dev/null || ! command -v dpkg-shlibdeps >/dev/null || ! command -v cpack >/dev/null; then
    echo "skipped: dpkg-deb, dpkg-shlibdeps or cpack are not here"
    exit 0
fi
build=$(dirname -- "$FLOPCAST")
cpack --config "$build/CPackConfig.cmake" -B "$PWD/package" >log 2>&1 || fail "cpack: $(tail -n 5 log)"
deb=$(ls package/*.deb)
[[ $deb == package/flopcast_$(<"$FLOPCAST_SOURCE_DIR/sim/VERSION")_*.deb ]] || fail "it is called $deb"
dpkg-deb -f "$deb" >control
grep -q '^Depends: .*libgsl27.*libsqlite3-0' control || grep -q '^Depends: .*libsqlite3-0.*libgsl' control || fail "$(<control)"
grep -q '^Depends: .*libprotobuf-c1' control || fail "$(<control)"
dpkg-deb -x "$deb" "$PWD/root"
for file in bin/flopcast lib/flopcast/flopcast-lab lib/flopcast/flopcast-interop share/flopcast/scenarios/t5_scaling.yaml share/man/man1/flopcast-run.1.gz share/man/man5/flopcast-scenario.5.gz \
    share/bash-completion/completions/flopcast lib/libflopcast.so.0 lib/pkgconfig/flopcast.pc include/flopcast.h \
    lib/python3/dist-packages/flopcast.py; do
    [[ -s root/usr/$file ]] || fail "$file is not in it"
done
[[ $(find root/usr/share/man -name '*.gz' | wc -l) == "$("$FLOPCAST" __man | wc -l)" ]] || fail "not the pages of this program: $(find root/usr/share/man)"
mkdir elsewhere
cd elsewhere
expect 0 "$PWD/../root/usr/bin/flopcast" run t5_scaling --set cluster.gpus=8 --set run.steps=1
says out "t5-11b"
