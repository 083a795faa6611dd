#!/bin/bash
# The C library: builds and installs it, compiles its example as a newcomer does (pkg-config, every warning an error) and its tests, and runs both
# under valgrind: a read or write of memory that is not the program's, or memory that nothing points to any more, is a failure.
# usage: tests/c.sh   NO_VALGRIND=1 leaves valgrind out. The last line is `N passed, N failed`.
set -u
cd "$(dirname "$0")/.." || exit 1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed() { echo "$1"; echo "0 passed, 1 failed"; exit 1; }

# One function more, which panics; and what a build of the workspace has made is used again.
cargo build --quiet --package clearway-c --features planted,shared-build || failed "the library could not be built"
lib=$(realpath "${CARGO_TARGET_DIR:-target}/debug")
embedded/c/install.sh "$work/installed" "$lib/libclearway_c.so" || failed "the library could not be installed"
export PKG_CONFIG_PATH="$work/installed/lib/pkgconfig"
read -ra found < <(pkg-config --cflags --libs clearway) || failed "pkg-config does not find the library"
[ "$(sed -n 's/^Version: //p' "$PKG_CONFIG_PATH/clearway.pc")" = "$(pkg-config --modversion clearway)" ] || failed "clearway.pc has no version"
flags=(-std=c11 -Wall -Wextra -Werror)
cc "${flags[@]}" embedded/c/examples/visits.c "${found[@]}" -Wl,-rpath,"$work/installed/lib" -o "$work/visits" || failed "visits.c does not compile"
cc "${flags[@]}" -DCLEARWAY_PLANTED -pthread embedded/c/tests/api.c "${found[@]}" -Wl,-rpath,"$work/installed/lib" -o "$work/api" \
    || failed "api.c does not compile"
run=()
if [ -z "${NO_VALGRIND:-}" ]; then
    command -v valgrind >/dev/null || failed "install valgrind, or set NO_VALGRIND=1"
    run=(valgrind --quiet --error-exitcode=9 --leak-check=full --errors-for-leak-kinds=definite --show-leak-kinds=definite --num-callers=20)
fi
# Twice: the second run finds the directory of the first.
for want in $'/ 2\n/about 1' $'/ 4\n/about 2'; do
    out=$(timeout 120 "${run[@]}" "$work/visits" "$work/db" 2>"$work/err")
    code=$?
    [ "$code" = 0 ] || { cat "$work/err"; failed "the example ended with code $code"; }
    [ "$out" = "$want" ] || failed "the example's output is another one: $out"
done
timeout 400 "${run[@]}" "$work/api" "$work/api-db" >"$work/out" 2>"$work/err"
code=$?
[ "$code" = 0 ] || { cat "$work/err"; tail -30 "$work/out"; }
if [ "$code" = 0 ] || [ "$code" = 1 ]; then
    tail -1 "$work/out"
else
    failed "the tests ended with code $code"
fi
