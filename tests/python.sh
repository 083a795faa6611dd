#!/bin/bash
# The Python package: builds its wheel, installs it in a fresh environment, and runs its tests there.
# usage: tests/python.sh [WHEEL-DIRECTORY]   The last line is `N passed, N failed`.
set -u
cd "$(dirname "$0")/.." || exit 1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
wheels=${1:-$work/wheels}
failed() { echo "$1"; echo "0 passed, 1 failed"; exit 1; }

python3 -m venv "$work/venv" || failed "python3 -m venv does not work: install python3-venv"
"$work/venv/bin/pip" install --quiet 'maturin>=1.7,<2' pytest 'sqlalchemy>=2,<3' pandas pyarrow \
    || failed "maturin, pytest, sqlalchemy, pandas and pyarrow could not be installed"
# The profile of the other tests: what they have built is used again.
"$work/venv/bin/maturin" build --quiet --profile dev --features shared-build --manifest-path embedded/python/Cargo.toml --out "$wheels" \
    || failed "the wheel could not be built"
"$work/venv/bin/pip" install --quiet "$wheels"/clearway-*.whl || failed "the wheel could not be installed"
# From another directory, so that the installed package is tested and not the sources.
tests=$PWD/embedded/python/tests
(cd "$work" && timeout 240 "$work/venv/bin/pytest" -q -p no:cacheprovider "$tests") | tee "$work/out"
passed=$(grep -oE '[0-9]+ passed' "$work/out" | tail -1 | cut -d' ' -f1)
broken=$(grep -oE '[0-9]+ (failed|error)' "$work/out" | awk '{n += $1} END {print n + 0}')
[ -n "$passed" ] || broken=$((broken + 1))
# A part of SQLAlchemy's suite; the whole of it: `tests/python-sqlalchemy.py`.
timeout 300 tests/python-sqlalchemy.py --python "$work/venv/bin/python" --short --seconds 280 | tee "$work/out" | sed '$d'
read -r more wrong < <(tail -1 "$work/out" | awk '$2 == "passed," && $4 == "failed" {print $1, $3}')
passed=$((${passed:-0} + ${more:-0})) broken=$((broken + ${wrong:-1}))
echo "${passed:-0} passed, $broken failed"
[ "$broken" = 0 ]
