#!/bin/bash
# The C library: builds it, compiles its example and its tests with every warning an error, and runs both; the tests under valgrind where it is installed.
# usage: tests/c.sh   The last line is `N passed, N failed`.
set -u
cd "$(dirname "$0")/.." || exit 1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed() { echo "$1"; echo "0 passed, 1 failed"; exit 1; }

# One function more, which panics.
cargo build --quiet --package clearway-c --features planted || failed "the library could not be built"
lib=$(realpath "${CARGO_TARGET_DIR:-target}/debug")
flags=(-std=c11 -DCLEARWAY_PLANTED -Wall -Wextra -Werror -pthread -I embedded/c/include -L "$lib" -Wl,-rpath,"$lib")
for program in examples/visits tests/api; do
    cc "${flags[@]}" "embedded/c/$program.c" -lclearway_c -o "$work/$(basename $program)" || failed "$program.c does not compile"
done
[ "$("$work/visits" "$work/db")" = $'/ 2\n/about 1' ] || failed "the example's output is another one"
run=()
command -v valgrind >/dev/null && [ -z "${NO_VALGRIND:-}" ] && run=(valgrind --quiet --error-exitcode=9 --errors-for-leak-kinds=none)
timeout 280 "${run[@]}" "$work/api" "$work/api-db" >"$work/out" 2>"$work/err"
code=$?
[ "$code" = 0 ] || { cat "$work/err"; tail -30 "$work/out"; }
if [ "$code" = 0 ] || [ "$code" = 1 ]; then
    tail -1 "$work/out"
else
    failed "the tests ended with code $code"
fi
