#!/usr/bin/env bash
# psql against `clearway serve`. The output of tests/psql/compared.sql, commands that describe objects, is what PostgreSQL 15 gives for the same
# objects (recorded in compared.out), that of tests/psql/values/*.sql what it gives for the same values; tests/psql/silent.sql, whose output
# tells of sizes, owners and texts that differ, runs without an error. The last line is `N passed, N failed`.
#
# usage: tests/psql.sh PATH-TO-clearway
#        tests/psql.sh --record HOST PORT     writes compared.out and values/*.out by the PostgreSQL there (superuser postgres)
set -u
. "$(dirname "$0")/server.sh"
home=$(realpath "$(dirname "$0")")/psql
scratch=$(mktemp -d)
server=
trap '[ -n "$server" ] && kill $server 2>/dev/null; wait 2>/dev/null; rm -rf "$scratch"' EXIT

# Makes the objects in a database of their own and runs a file of commands there.
describe() {
    (cd "$home" && PGHOST=$1 PGPORT=$2 PGUSER=postgres psql -X -q -d psql_describe -f "$3" 2>&1)
}
prepare() {
    PGHOST=$1 PGPORT=$2 PGUSER=postgres psql -X -q -d postgres -c 'CREATE DATABASE psql_describe' || return 1
    describe "$1" "$2" setup.sql
}

if [ "$1" = --record ]; then
    prepare "$2" "$3" && describe "$2" "$3" compared.sql >"$home/compared.out"
    for file in "$home"/values/*.sql; do
        describe "$2" "$3" "values/$(basename "$file")" >"${file%.sql}.out"
    done
    exit
fi
start_server "$(realpath "$1")" "$scratch/serve.log" --data "$scratch/data"
passed=0 failed=0
verdict() {
    if [ "$1" = 0 ]; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
    echo "psql $2 ... $([ "$1" = 0 ] && echo ok || echo FAILED)"
}
if [ -z "$port" ] || ! prepare 127.0.0.1 "$port"; then
    cat "$scratch/serve.log"
    echo "0 passed, 1 failed"
    exit 1
fi
describe 127.0.0.1 "$port" compared.sql >"$scratch/compared.out"
diff -u "$home/compared.out" "$scratch/compared.out" | head -n 60
cmp -s "$home/compared.out" "$scratch/compared.out"
verdict $? "commands whose output is PostgreSQL's"
for file in "$home"/values/*.sql; do
    name=$(basename "$file" .sql)
    describe 127.0.0.1 "$port" "values/$name.sql" >"$scratch/$name.out"
    diff -u "${file%.sql}.out" "$scratch/$name.out" | head -n 60
    cmp -s "${file%.sql}.out" "$scratch/$name.out"
    verdict $? "values and functions that are PostgreSQL's: $name"
done
describe 127.0.0.1 "$port" silent.sql >"$scratch/silent.out"
grep ERROR "$scratch/silent.out"
[ $? = 1 ] && [ -s "$scratch/silent.out" ]
verdict $? "commands without an error"
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
