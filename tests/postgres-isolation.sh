#!/usr/bin/env bash
# PostgreSQL's own isolation suite (src/test/isolation of Debian's source package postgresql-15) under PostgreSQL's isolationtester,
# against a fresh `clearway serve`. Output is compared byte for byte with expected/SPEC.out or one of its numbered alternatives and
# counted per permutation; the last line is `N passed, N failed`.
#
# tests/postgres-source.sh fetches the suite.
#
# usage: tests/postgres-isolation.sh PATH-TO-clearway [SPEC ...]    those; without a name the specs that tests/postgres-isolation.list claims
#        tests/postgres-isolation.sh PATH-TO-clearway --docs        every spec; rewrites the generated part of docs/compat.md
#        KEEP=DIR: outputs and diffs stay in DIR
#        LIBRARY=1: the server's directory was made by the library
set -u
. "$(dirname "$0")/server.sh"
clearway=$(realpath "$1")
shift
repo=$(realpath "$(dirname "$0")/..")
list=$repo/tests/postgres-isolation.list
tester=/usr/lib/postgresql/15/lib/pgxs/src/test/isolation/isolationtester
scratch=$(mktemp -d)
server=
trap 'stop_server; rm -rf "$scratch"' EXIT
out=${KEEP:-$scratch/out}
mkdir -p "$out"

# It could not be run at all: said loudly, and counted as a failure.
give_up() {
    {
        echo "postgres-isolation: NOT RUN: $*"
        echo "postgres-isolation: PostgreSQL's isolation suite has not been checked."
    } >&2
    echo "0 passed, 1 failed"
    exit 1
}

# A fresh server on a fresh directory, and the database that the suite expects; sets $port.
fresh_server() {
    rm -rf "$scratch/data" "$out/serve.log"
    printf 'serializable = snapshot\nddl_block_window = -1\n' >"$scratch/clearway.conf"
    [ -z "${LIBRARY:-}" ] || library_directory "$clearway" "$scratch/data" || give_up "the library makes no directory"
    start_server "$clearway" "$out/serve.log" --data "$scratch/data" --config "$scratch/clearway.conf"
    [ -n "$port" ] || give_up "clearway serve did not start: $(tail -n 3 "$out/serve.log")"
    PGOPTIONS='' psql -Xq -h 127.0.0.1 -p "$port" -U postgres postgres -c 'CREATE DATABASE isolation_regression' \
        || give_up "no database isolation_regression"
}

stop_server() {
    [ -n "$server" ] && kill "$server" 2>/dev/null && wait "$server" 2>/dev/null
    server=
}

# Prints how many permutations of file $2 are the same in file $1, and how many there are.
permutations() {
    awk '
        FNR == 1 { file++; block = 0 }
        /^starting permutation: / { block++ }
        { text[file, block] = text[file, block] $0 "\n"; if (block > blocks[file]) blocks[file] = block }
        END {
            for (b = 1; b <= blocks[2]; b++) if (text[1, b] == text[2, b]) same++
            print same + 0, blocks[2] + 0
        }' "$1" "$2"
}

# File $2 without the parts whose names match pattern $1, if there is one.
part() {
    if [ -z "$1" ]; then cat "$2"; else "$repo/tests/postgres-isolation-part.py" "$1" "$2"; fi
}

# Runs spec $1; sets $same, $total and $identical. Of a spec that is claimed in part that part is run, but for the page all of it.
run_spec() {
    local spec=$1 expected at_most pattern
    pattern=
    [ -n "$docs" ] || pattern=$(sed -n "s/^$1 *| *claimed without \([^:]*\):.*/\1/p" "$list" | tr ' ' '|')
    part "$pattern" "$cache/specs/$spec.spec" >"$out/$spec.spec"
    PGAPPNAME=isolation/$spec PGDATESTYLE='Postgres, MDY' PGTZ=PST8PDT PGOPTIONS='-c intervalstyle=postgres_verbose' \
        PGISOLATIONTIMEOUT="${PGISOLATIONTIMEOUT:-60}" timeout -k 5 "${SPEC_SECONDS:-300}" \
        "$tester" "host=127.0.0.1 port=$port user=postgres dbname=isolation_regression" \
        <"$out/$spec.spec" >"$out/$spec.out" 2>&1
    same=-1 total=0 identical=no
    for expected in "$cache/expected/$spec.out" "$cache/expected/$spec"_[0-9]*.out; do
        [ -f "$expected" ] || continue
        part "$pattern" "$expected" >"$out/$spec.expected"
        expected=$out/$spec.expected
        read -r at_most all < <(permutations "$out/$spec.out" "$expected")
        [ "$at_most" -gt "$same" ] && same=$at_most total=$all && diff -u "$expected" "$out/$spec.out" >"$out/$spec.diff"
        cmp -s "$expected" "$out/$spec.out" && identical=yes && rm -f "$out/$spec.diff" && break
    done
    # Something outside of the permutations differs.
    [ "$identical" = no ] && [ "$same" = "$total" ] && [ "$same" -gt 0 ] && same=$((same - 1))
    [ "$identical" = yes ]
}

# Why a spec is not claimed; nothing if it is, or is unknown.
reason() { sed -n "s/^$1 *| *//p" "$list" | grep -vx claimed | sed 's/^claimed without [^:]*: //'; }

[ -x "$tester" ] || give_up "no $tester (package postgresql-client-15)"
command -v psql >/dev/null || give_up "no psql"
source=$("$repo/tests/postgres-source.sh") || give_up "the source package postgresql-15 can't be fetched by apt"
cache=$source/isolation
echo "postgres-isolation: suite of postgresql-15 $(cat "$source/version")"

docs=
if [ "${1:-}" = --docs ]; then
    docs=$scratch/compat.part
    set -- $(cd "$cache/specs" && ls | sed 's/\.spec$//')
elif [ $# = 0 ]; then
    set -- $(sed -n 's/^\([^# |]*\) *| *claimed\( without .*\)\?$/\1/p' "$list")
fi
fresh_server
passed=0 failed=0 specs=0 good=0
for spec in "$@"; do
    [ -f "$cache/specs/$spec.spec" ] || give_up "no spec $spec in the suite"
    specs=$((specs + 1))
    if run_spec "$spec"; then
        good=$((good + 1)) passed=$((passed + total))
        echo "postgres-isolation $spec ... ok ($same of $total)"
        [ -n "$docs" ] && echo "$spec|$same|$total|passes" >>"$docs"
        continue
    fi
    passed=$((passed + (same > 0 ? same : 0)))
    failed=$((failed + (total > same ? total - (same > 0 ? same : 0) : 1)))
    echo "postgres-isolation $spec ... FAILED ($same of $total)"
    [ -n "$docs" ] && echo "$spec|$same|$total|$(reason "$spec")" >>"$docs"
    [ -z "$docs" ] && head -n "${DIFF_LINES:-40}" "$out/$spec.diff"
    # What a failed spec left behind is no matter of the next one.
    stop_server
    fresh_server
done
echo "postgres-isolation: $good of $specs specs byte for byte, $passed of $((passed + failed)) permutations"
if [ -n "$docs" ]; then
    "$repo/tests/postgres-isolation-docs.sh" "$docs" "$(cat "$source/version")" "$list" "$repo/docs/compat.md" || exit 1
fi
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
