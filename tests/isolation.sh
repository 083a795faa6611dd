#!/usr/bin/env bash
# PostgreSQL's isolationtester on the session specs, against `clearway serve`; compares byte for byte with what a real
# PostgreSQL 15 printed. The last line is `N passed, N failed`.
#
# usage: tests/isolation.sh PATH-TO-clearway [DIRECTORY-WITH-specs-AND-expected] [SPEC ...]
#        LIBRARY=1: the server's directory was made by the library
set -u
. "$(dirname "$0")/server.sh"
clearway=$(realpath "$1")
home=$(realpath -m "${2:-$(dirname "$0")/../../shared/isolation}")
shift; shift 2>/dev/null
tester=/usr/lib/postgresql/15/lib/pgxs/src/test/isolation/isolationtester
if [ ! -d "$home/specs" ] || [ ! -x "$tester" ]; then
    echo "isolation: no specs in $home, or no $tester (package postgresql-client-15)" >&2
    echo "0 passed, 1 failed"
    exit 1
fi
scratch=$(mktemp -d)
# PostgreSQL's DDL does not step aside.
printf 'ddl_block_window = -1\n' >"$scratch/clearway.conf"
[ -z "${LIBRARY:-}" ] || library_directory "$clearway" "$scratch/data" || { echo "0 passed, 1 failed"; exit 1; }
start_server "$clearway" "$scratch/serve.log" --data "$scratch/data" --config "$scratch/clearway.conf"
trap 'kill $server 2>/dev/null; wait $server 2>/dev/null; rm -rf "$scratch"' EXIT
passed=0
failed=0
for spec in "${@:-all}"; do
    [ "$spec" = all ] && set -- $(cd "$home/specs" && ls | sed 's/\.spec$//')
    break
done
for spec in "$@"; do
    psql -Xq -h 127.0.0.1 -p "$port" -U postgres postgres -c "CREATE DATABASE \"i_$spec\"" >/dev/null
    PGAPPNAME=isolation/$spec timeout 60 "$tester" "host=127.0.0.1 port=$port user=postgres dbname=i_$spec" \
        <"$home/specs/$spec.spec" >"$scratch/$spec.out" 2>&1
    if diff -u "$home/expected/$spec.out" "$scratch/$spec.out" >"$scratch/$spec.diff"; then
        passed=$((passed + 1))
        echo "isolation $spec ... ok"
    else
        failed=$((failed + 1))
        echo "isolation $spec ... FAILED"
        head -n 40 "$scratch/$spec.diff"
    fi
done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
