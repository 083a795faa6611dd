#!/bin/bash
# Counts the instructions that a session's own task takes per transaction, by callgrind. They do not depend on what else the machine does.
#
# usage: [ALL_THREADS=1] [OPTIONS="-c recorders=none ..."] bench/hot/instructions.sh BINARY PORT [CASE ...]      cases: select update insert tpcb simple
#
# Counted is what runs in the task of the connection (`serve`): not the flusher's thread and not background work. (For a select the two are about
# the same, and callgrind sometimes loses the beginning of a poll that ends without a wait: count it with ALL_THREADS=1.) Each figure is the
# difference of two runs of different length in one connection each, so that the start of a connection falls out. The tables are warmed by a
# run without callgrind: a page that is full of rows is rebuilt at its first change, which costs more than a hundred changes do. OPTIONS go to
# the server.
set -eu
binary=$1 port=$2
shift 2
cases=${*:-select update insert tpcb simple}
export PGUSER=postgres PGDATABASE=clearway PGHOST=127.0.0.1 PGPORT=$port
scratch=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill -TERM "$server"; wait; rm -rf "$scratch"' EXIT
printf '%s\n' '\set aid random(1, 100000)' 'UPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid = :aid;' >"$scratch/update.sql"
printf '%s\n' '\set aid random(1, 100000)' \
    'INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (1, 1, :aid, 5, CURRENT_TIMESTAMP);' >"$scratch/insert.sql"
ready() { for _ in $(seq 240); do psql -qc 'select 1' >/dev/null 2>&1 && return; sleep 0.5; done; exit 1; }
count() { # pgbench's options, the number of transactions last
    callgrind_control -z "$server" >/dev/null
    pgbench -n -c 1 "${@:1:$#-1}" -t "${!#}" >/dev/null 2>&1
    callgrind_control -d "$server" >/dev/null
    grep -h '^summary\|^totals' "$(ls -v "$scratch"/out.* | tail -1)" | tail -1 | awk '{print $2}'
}

"$binary" serve --data "$scratch/data" --listen "127.0.0.1:$port" ${OPTIONS:-} >/dev/null & server=$!
ready
pgbench -i -q -s 1 >/dev/null 2>&1
pgbench -n -c 8 -j 2 -T 12 -f "$scratch/update.sql" -M prepared >/dev/null 2>&1
pgbench -n -c 8 -j 2 -T 4 -M prepared >/dev/null 2>&1
kill -TERM "$server"; wait "$server" || true
where=(--toggle-collect='clearway_server::connection::serve::*')
[ -z "${ALL_THREADS:-}" ] || where=()
valgrind --tool=callgrind --callgrind-out-file="$scratch/out" "${where[@]}" \
    "$binary" serve --data "$scratch/data" --listen "127.0.0.1:$port" ${OPTIONS:-} >/dev/null 2>&1 & server=$!
ready
for case in $cases; do
    case $case in
    select) options=(-S -M prepared) ;;
    update) options=(-f "$scratch/update.sql" -M prepared) ;;
    insert) options=(-f "$scratch/insert.sql" -M prepared) ;;
    tpcb) options=(-M prepared) ;;
    simple) options=() ;;
    *) echo "unknown case $case"; exit 2 ;;
    esac
    pgbench -n -c 1 "${options[@]}" -t 300 >/dev/null 2>&1
    few=$(count "${options[@]}" 500) many=$(count "${options[@]}" 1500)
    echo "$case: $(((many - few) / 1000)) instructions per transaction"
done
