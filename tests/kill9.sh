#!/usr/bin/env bash
# Kills the server with SIGKILL under pgbench's TPC-B and a load of sysbench at the same time, N times, and looks after each restart: no
# acknowledged transaction of either is lost, nothing half done shows (pgbench: the balances of accounts, tellers and branches equal the
# sum of the history; sysbench: the hot rows equal the number of rows written), and at the end `clearway check` finds no damage.
#
#   tests/kill9.sh [ROUNDS [CLIENTS [CLEARWAY]]]     3 rounds, 8 clients each, the clearway of the last debug build
#
#   LIBRARY=1: the directory was made by the library, which opens it again at the end, after the last kill
#
# Needs pgbench and psql of PostgreSQL 15, and sysbench with its pgsql driver.
set -u -o pipefail
rounds=${1:-3}
clients=${2:-8}
clearway=${3:-${CARGO_TARGET_DIR:-target}/debug/clearway}
here=$(cd "$(dirname "$0")" && pwd)
. "$here/server.sh"
work=$(mktemp -d "${TMPDIR:-/tmp}/clearway-kill9.XXXXXX")
server=0
port=0
round=1

fail() {
    echo "kill9: $*; the files are in $work" >&2
    echo "$((round - 1)) passed, 1 failed"
    [ "$server" != 0 ] && kill -9 "$server" 2>/dev/null
    exit 1
}

start() {
    # What the server before this one said must not pass for this one's words: the shell empties the file only as it starts it.
    rm -f "$work/server.log"
    "$clearway" serve --data "$work/data" --listen 127.0.0.1:0 >"$work/server.log" 2>&1 &
    server=$!
    for _ in $(seq 600); do
        # The port's line stands before this one: looked for afterwards, it is there.
        if grep -qs '^connect with' "$work/server.log"; then
            port=$(sed -n 's/^listening at 127\.0\.0\.1:\([0-9]*\)$/\1/p' "$work/server.log")
            return
        fi
        kill -0 "$server" 2>/dev/null || fail "the server did not start: $(tail -3 "$work/server.log")"
        sleep 0.1
    done
    fail "the server did not start in time"
}

sql() {
    psql -X -q -A -t -v ON_ERROR_STOP=1 -h 127.0.0.1 -p "$port" -U postgres postgres -c "$1" 2>&1
}

[ -z "${LIBRARY:-}" ] || library_directory "$clearway" "$work/data" || fail "the library makes no directory"
start
pgbench -q -i -s 1 -h 127.0.0.1 -p "$port" -U postgres postgres >"$work/init.log" 2>&1 || fail "pgbench -i: $(tail -2 "$work/init.log")"
sql 'create table hot (id int primary key, n int not null); insert into hot select id, 0 from generate_series(1, 10) id;
    create table written (thread int, number int, primary key (thread, number))' >"$work/init.log" || fail "tables: $(cat "$work/init.log")"
mkdir "$work/ack"
acknowledged=0
written_before=0
for round in $(seq "$rounds"); do
    pgbench -n -c "$clients" -j 2 -T 60 -h 127.0.0.1 -p "$port" -U postgres postgres >"$work/bench.$round.log" 2>&1 &
    bench=$!
    sysbench --db-driver=pgsql --pgsql-host=127.0.0.1 --pgsql-port="$port" --pgsql-user=postgres --pgsql-db=postgres --ack-dir="$work/ack" \
        --threads="$clients" --time=60 "$here/acknowledged.lua" run >"$work/sysbench.$round.log" 2>&1 &
    sysbench=$!
    # Between 1.0 and 3.0 seconds: the first checkpoints fall into some of the rounds.
    sleep "$((1 + RANDOM % 2)).$((RANDOM % 10))"
    kill -9 "$server"
    wait "$server" 2>/dev/null
    wait "$bench" "$sysbench" 2>/dev/null
    done_now=$(sed -n 's/^number of transactions actually processed: \([0-9]*\).*/\1/p' "$work/bench.$round.log")
    [ "${done_now:-0}" -gt 0 ] || fail "round $round: pgbench did nothing: $(tail -3 "$work/bench.$round.log")"
    before=$acknowledged
    acknowledged=$((acknowledged + done_now))
    start
    found=$(sql 'select count(*) from pgbench_history') || fail "round $round: $found"
    [ "$found" -ge "$acknowledged" ] || fail "round $round: $acknowledged transactions were acknowledged, $found are there"
    [ "$found" -le $((before + done_now + clients)) ] || fail "round $round: $found transactions are there, $acknowledged were acknowledged"
    sums=$(sql 'select (select sum(abalance) from pgbench_accounts), (select sum(tbalance) from pgbench_tellers),
        (select sum(bbalance) from pgbench_branches), (select sum(delta) from pgbench_history)') || fail "round $round: $sums"
    [ "$(tr '|' '\n' <<<"$sums" | sort -u | wc -l)" = 1 ] || fail "round $round: balances differ: $sums"
    written=$(sql 'select count(*) from written') || fail "round $round: $written"
    rows=$(sql "select t || ' ' || count(thread) || ' ' || coalesce(max(number), 0)
        from generate_series(0, $((clients - 1))) t left join written on thread = t group by t") || fail "round $round: $rows"
    while read -r thread count highest; do
        known=$(tail -1 "$work/ack/$thread")
        [ "$count" = "$highest" ] && [ "$count" -ge "$known" ] && [ "$count" -le $((known + 1)) ] ||
            fail "round $round: sysbench's thread $thread was told $known, $count are there and the highest is $highest"
    done <<<"$rows"
    hot=$(sql 'select sum(n) from hot') || fail "round $round: $hot"
    [ "$hot" = "$written" ] || fail "round $round: the hot rows sum up to $hot, $written transactions are there"
    [ "$written" -gt "$written_before" ] || fail "round $round: sysbench did nothing: $(tail -3 "$work/sysbench.$round.log")"
    written_before=$written
    # What was in flight counts from now on.
    acknowledged=$found
    echo "round $round: $done_now acknowledged, $found in all, balances agree (${sums%%|*}); sysbench $written"
done
if [ -n "${LIBRARY:-}" ]; then
    sql 'insert into hot values (11, 11)' >"$work/init.log" || fail "$(cat "$work/init.log")"
    kill -9 "$server"
    wait "$server" 2>/dev/null
    server=0
    library_directory "$clearway" "$work/data" || fail "the library does not open what a killed server left"
    start
    [ "$(sql 'select n from hot where id = 11')" = 11 ] || fail "a row is lost between server and library"
fi
kill -TERM "$server"
wait "$server" || fail "the server did not stop cleanly: $(tail -2 "$work/server.log")"
server=0
"$clearway" check "$work/data" >"$work/check.log" 2>&1 || fail "check: $(tail -2 "$work/check.log")"
tail -1 "$work/check.log"
rm -rf "$work"
echo "$rounds passed, 0 failed"
