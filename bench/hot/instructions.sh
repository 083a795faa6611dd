#!/bin/bash
# Counts the instructions that a session's own task takes per transaction, by callgrind. They do not depend on what else the machine does.
#
# usage: [ALL_THREADS=1] [KEEP=DIR] [OPTIONS="-c recorders=none ..."] bench/hot/instructions.sh BINARY PORT [CASE ...]
# cases: select update insert tpcb simple, and those of sysbench by their names (oltp_delete ...)
#
# Counted is what runs in the task of the connection (`serve`): not the flusher's thread and not background work. (For a select the two are about
# the same, and callgrind sometimes loses the beginning of a poll that ends without a wait: count it with ALL_THREADS=1.) Each figure is the
# difference of two runs of different length in one connection each, so that the start of a connection falls out. The tables are warmed by a
# run without callgrind: a page that is full of rows is rebuilt at its first change, which costs more than a hundred changes do. OPTIONS go to
# the server. With KEEP callgrind's files of the two runs stay in that directory as CASE.few and CASE.many. The keys of sysbench's cases are uniform,
# since its usual ones soon delete nothing: most of them are among a hundredth of the table's rows.
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
of_sysbench() { # case, options, what to do
    sysbench --db-driver=pgsql --pgsql-host=127.0.0.1 --pgsql-port="$port" --pgsql-user=postgres --pgsql-password=x --pgsql-db=clearway --tables=1 \
        --table-size=100000 --rand-type=uniform --time=0 "$@" >/dev/null
}
transactions() { # options, the number of transactions last
    case $1 in
    oltp_*) of_sysbench "${@:1:$#-1}" --threads=1 --events="${!#}" --rand-seed="${!#}" run ;;
    *) pgbench -n -c 1 "${@:1:$#-1}" -t "${!#}" >/dev/null 2>&1 ;;
    esac
}
count() { # name of the run, options, the number of transactions last
    callgrind_control -z "$server" >/dev/null 2>&1
    transactions "${@:2}"
    callgrind_control -d "$server" >/dev/null 2>&1
    local out; out=$(ls -v "$scratch"/out.* | tail -1)
    [ -z "${KEEP:-}" ] || cp "$out" "$KEEP/$1"
    grep -h '^summary\|^totals' "$out" | tail -1 | awk '{print $2}'
}

"$binary" serve --data "$scratch/data" --listen "127.0.0.1:$port" ${OPTIONS:-} >/dev/null & server=$!
ready
pgbench -i -q -s 1 >/dev/null 2>&1
pgbench -n -c 8 -j 2 -t 40000 -f "$scratch/update.sql" -M prepared >/dev/null 2>&1
pgbench -n -c 8 -j 2 -t 5000 -M prepared >/dev/null 2>&1
case $cases in *oltp_*)
    of_sysbench oltp_write_only prepare
    of_sysbench oltp_write_only --threads=1 --events=30000 run ;;
esac
kill -TERM "$server"; wait "$server" || true
where=(--toggle-collect='clearway_server::connection::serve::*')
[ -z "${ALL_THREADS:-}" ] || where=()
[ -z "${KEEP:-}" ] || where+=(--compress-strings=no) # else only the first file has the names
valgrind --tool=callgrind --callgrind-out-file="$scratch/out" "${where[@]}" \
    "$binary" serve --data "$scratch/data" --listen "127.0.0.1:$port" ${OPTIONS:-} >/dev/null 2>&1 & server=$!
ready
# What the runs read is in memory.
for table in pgbench_accounts pgbench_history sbtest1; do psql -qc "select * from $table" >/dev/null 2>&1 || true; done
for case in $cases; do
    case $case in
    select) options=(-S -M prepared) ;;
    update) options=(-f "$scratch/update.sql" -M prepared) ;;
    insert) options=(-f "$scratch/insert.sql" -M prepared) ;;
    tpcb) options=(-M prepared) ;;
    simple) options=() ;;
    oltp_*) options=("$case") ;;
    *) echo "unknown case $case"; exit 2 ;;
    esac
    transactions "${options[@]}" 2000
    few=$(count "$case.few" "${options[@]}" 500) many=$(count "$case.many" "${options[@]}" 1500)
    echo "$case: $(((many - few) / 1000)) instructions per transaction"
done
