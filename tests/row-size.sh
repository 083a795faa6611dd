#!/usr/bin/env bash
# Bytes a row on disk, through SQL: a bigint primary key and five smallints (18 bytes of data), loaded by COPY in key order and at
# random keys over the whole range of bigint, right after loading and once the background has packed what is at rest. All pages of
# the table's tree count. The last line is `N passed, N failed`: at rest a row may take 6 bytes beside its data.
#
# usage: tests/row-size.sh PATH-TO-clearway [ROWS]
set -u
. "$(dirname "$0")/server.sh"
rows=${2:-500000}
scratch=$(mktemp -d)
server=
trap '[ -n "$server" ] && kill $server 2>/dev/null; wait 2>/dev/null; rm -rf "$scratch"' EXIT
start_server "$(realpath "$1")" "$scratch/serve.log" --data "$scratch/data"
sql() { PGHOST=127.0.0.1 PGPORT=$port PGUSER=postgres psql -X -q -A -t -d postgres -v ON_ERROR_STOP=1 "$@"; }
bytes() { sql -c "SELECT round(pg_relation_size('$1') / $rows.0, 2)"; }

# A permutation of 64-bit numbers (splitmix64), as signed ones.
keys() {
    python3 - "$1" "$rows" <<'PYTHON'
import sys
def scatter(i):
    x = (i + 0x9e3779b97f4a7c15) & (2**64 - 1)
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9 & (2**64 - 1)
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb & (2**64 - 1)
    return x ^ (x >> 31)
for i in range(int(sys.argv[2])):
    key = i if sys.argv[1] == "ordered" else scatter(i) - 2**63
    print(key, i % 7, i % 100, i % 1000, i % 32000, -1, sep="\t")
PYTHON
}

passed=0 failed=0
for order in ordered random; do
    sql -c "CREATE TABLE $order (id bigint PRIMARY KEY, a smallint, b smallint, c smallint, d smallint, e smallint)" || exit 1
    keys $order | split -l 20000 - "$scratch/$order."
    for part in "$scratch/$order".*; do
        sql -c "\\copy $order FROM '$part'" || exit 1
    done
    loaded=$(bytes $order)
    started=$SECONDS now=$loaded same=0
    while [ $same -lt 5 ] && [ $((SECONDS - started)) -lt 120 ]; do
        sleep 2
        before=$now now=$(bytes $order)
        [ "$before" = "$now" ] && same=$((same + 1)) || same=0
    done
    over=$(awk "BEGIN {print $now - 18}")
    echo "row size, $rows rows, $order: $loaded bytes a row when loaded, $now at rest after $((SECONDS - started)) s, $over beside the data"
    if awk "BEGIN {exit !($over <= 6)}"; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
