#!/usr/bin/env bash
# How long a start takes after a kill -9 under new orders and payments of TPC-C (in proportion, without think times; not the benchmark).
#
#   tests/restart.sh CLEARWAY [WAREHOUSES [SECONDS [CLIENTS]]]     4 warehouses, 120 s, 16 clients
#
# Prints what was acknowledged, how many MB of log stood behind the checkpoint, the seconds to the first answer, and what the server said of
# its recovery. Fails if the first answer takes longer than the default recovery_target of 10 s, or if something acknowledged is missing.
# Needs psql and pgbench of PostgreSQL 15. Only a release build on a quiet machine gives a figure; that is why CI does not run it.
set -u -o pipefail
here=$(cd "$(dirname "$0")" && pwd)
clearway=${1:?CLEARWAY}
warehouses=${2:-4}
seconds=${3:-120}
clients=${4:-16}
work=$(mktemp -d "${TMPDIR:-/tmp}/clearway-restart.XXXXXX")
# shellcheck source=tests/server.sh
. "$here/server.sh"
server=0

fail() {
    echo "restart: $*; the files are in $work" >&2
    [ "$server" != 0 ] && kill -9 "$server" 2>/dev/null
    echo "0 passed, 1 failed"
    exit 1
}

sql() {
    psql -X -q -A -t -v ON_ERROR_STOP=1 -h 127.0.0.1 -p "$port" -U postgres postgres "$@"
}

start_server "$clearway" "$work/first.log" --data "$work/data"
[ -n "$port" ] || fail "no start: $(tail -3 "$work/first.log")"
sql -v w="$warehouses" -f "$here/restart/schema.sql" >"$work/load.log" 2>&1 || fail "the tables: $(tail -3 "$work/load.log")"
pgbench -n -M prepared -c "$clients" -j 2 -T "$seconds" -s "$warehouses" -D scale="$warehouses" -h 127.0.0.1 -p "$port" -U postgres \
    -f "$here/restart/new-order.sql@1" -f "$here/restart/payment.sql@1" postgres >"$work/bench.log" 2>&1 &
bench=$!
sleep "$((seconds - 2))"
kill -9 "$server"
wait "$server" "$bench" 2>/dev/null
acknowledged=$(sed -n 's/^number of transactions actually processed: \([0-9]*\).*/\1/p' "$work/bench.log")
[ "${acknowledged:-0}" -gt 0 ] || fail "pgbench did nothing: $(tail -3 "$work/bench.log")"
began=$(date +%s%N)
"$clearway" serve --data "$work/data" --listen 127.0.0.1:0 >"$work/second.log" 2>&1 &
server=$!
until grep -qs '^connect with' "$work/second.log"; do
    kill -0 "$server" 2>/dev/null || fail "no start: $(tail -3 "$work/second.log")"
    sleep 0.05
done
port=$(grep -oE -- '-p [0-9]+' "$work/second.log" | head -n 1 | cut -d' ' -f2)
sql -c 'select 1' >/dev/null || fail "no answer"
took=$((($(date +%s%N) - began) / 1000000))
# Beside other programs only this means something; the log is read, and pages are changed, by one thread.
cpu=$(awk '{ sub(/.*\) /, ""); print ($12 + $13) * 10 }' "/proc/$server/stat")
grep -E 'recovery|redo' "$work/second.log"
found=$(sql -c 'select (select count(*) from orders) + (select count(*) from history)') || fail "no answer"
lines=$(sql -c 'select (select 4 * count(*) from orders) = (select count(*) from order_line)
    and (select sum(d_next_o_id - 1) from district) = (select count(*) from orders)
    and (select sum(w_ytd) from warehouse) = (select sum(d_ytd) from district)') || fail "no answer"
echo "$acknowledged transactions acknowledged, $found found, first answer after $took ms, $cpu ms of processor time"
[ "$found" -ge "$acknowledged" ] && [ "$found" -le $((acknowledged + clients)) ] || fail "$acknowledged acknowledged, $found found"
[ "$lines" = t ] || fail "orders, lines and sums do not agree"
[ "$took" -le 10000 ] || fail "the first answer took $took ms"
kill -TERM "$server"
wait "$server" || fail "the server did not stop cleanly"
rm -rf "$work"
echo "1 passed, 0 failed"
