#!/usr/bin/env bash
# The statements that MySQL's people have in their fingers, as they type them: performance_schema, sys, ps_helper, SHOW ENGINE. The last line is
# `N passed, N failed`.
#
# usage: tests/mysql-names.sh PATH-TO-clearway
set -u
. "$(dirname "$0")/server.sh"
scratch=$(mktemp -d)
server=
trap '[ -n "$server" ] && kill $server 2>/dev/null; wait 2>/dev/null; rm -rf "$scratch"' EXIT
start_server "$(realpath "$1")" "$scratch/serve.log" --data "$scratch/data" -c log_destination=slowlog,jsonlog -c "log_directory=$scratch/log"
[ -z "$port" ] && { cat "$scratch/serve.log"; echo "0 passed, 1 failed"; exit 1; }
export PGHOST=127.0.0.1 PGPORT=$port PGUSER=postgres PGDATABASE=postgres
sql() { psql -XAtq -c "$1" 2>&1; }
passed=0 failed=0
# is NAME COMMAND'S-OUTPUT PATTERN
is() {
    if [[ $2 =~ $3 ]]; then passed=$((passed + 1)) verdict=ok; else failed=$((failed + 1)) verdict="FAILED
$2"; fi
    echo "mysql-names $1 ... $verdict"
}

sql 'create table t (id int primary key, v int, w text); insert into t select g, g % 100, repeat($$w$$, 200) from generate_series(1, 5000) g;
     create index t_v on t (v); create index t_unused on t (v, id)' >/dev/null
# A client that asks row by row; a full scan; an error.
for n in $(seq 239); do echo "SELECT w FROM t WHERE id = $n;"; done | psql -XAtq >/dev/null
for list in 1,2,3 4,5 6,7,8,9; do sql "SELECT id FROM t WHERE id IN ($list)" >/dev/null; done
sql "SELECT count(*) FROM t WHERE w = 'none'" >/dev/null
sql "SELECT 1/0 FROM t" >/dev/null
# Sessions that contend for one row.
for client in 1 2 3 4; do for n in $(seq 50); do echo "UPDATE t SET v = v + 1 WHERE id = 1;"; done | psql -XAtq & clients+=($!); done
wait "${clients[@]}"

is "P10: instruments are shown" "$(sql "SELECT NAME, ENABLED, TIMED FROM performance_schema.setup_instruments WHERE NAME LIKE 'wait/io/file/innodb/innodb_log%'")" '^wait/io/file/innodb/innodb_log_file\|YES\|YES$'
is "P10: and switched" "$(sql "UPDATE performance_schema.setup_instruments SET ENABLED = 'NO', TIMED = 'NO' WHERE NAME = 'wait/io/file/sql/FileRemove';
    SELECT * FROM performance_schema.setup_instruments WHERE NAME = 'wait/io/file/sql/FileRemove'")" '^wait/io/file/sql/FileRemove\|NO\|NO\|'
is "P10: the whole of them" "$(sql "UPDATE performance_schema.setup_instruments SET ENABLED = 'YES', TIMED = 'YES' WHERE NAME LIKE 'wait/%';
    SELECT count(*) FROM performance_schema.setup_instruments WHERE ENABLED <> 'YES'")" '^0$'
is "P10: mutexes" "$(sql "UPDATE performance_schema.setup_instruments SET ENABLED='YES', TIMED='YES' WHERE NAME LIKE 'wait/synch/mutex/innodb/%'")" '^$'
is "P10: a mutex can't be switched off" "$(sql "UPDATE performance_schema.setup_instruments SET ENABLED='NO' WHERE NAME LIKE 'wait/synch/mutex/innodb/%'")" "can't be switched off"
is "P10: consumers" "$(sql "UPDATE performance_schema.setup_consumers SET ENABLED = 'YES' WHERE NAME = 'events_statements_history_long';
    SELECT ENABLED FROM performance_schema.setup_consumers WHERE NAME LIKE '%statements_history_long'")" '^YES$'
sql "SELECT 'seen by the history'" >/dev/null
is "the history of statements" "$(sql "SELECT SQL_TEXT, ROWS_SENT FROM performance_schema.events_statements_history_long WHERE SQL_TEXT LIKE '%seen by the history%' LIMIT 1")" "^SELECT 'seen by the history'\|1$"
is "P10: waits, in milliseconds with four decimals" "$(sql "SELECT EVENT_NAME, SUM_TIMER_WAIT/1000000000 WAIT_MS, COUNT_STAR FROM performance_schema.events_waits_summary_global_by_event_name
    WHERE SUM_TIMER_WAIT > 0 AND EVENT_NAME LIKE 'wait/io/file/innodb/innodb_log_file' ORDER BY SUM_TIMER_WAIT DESC, COUNT_STAR DESC")" '^wait/io/file/innodb/innodb_log_file\|[0-9]+\.[0-9]{4}\|[1-9][0-9]*$'
is "P9: the query of the metric" "$(sql "SELECT EVENT_NAME as mutex, COUNT_STAR as calls, SUM_TIMER_WAIT as timer_wait FROM performance_schema.events_waits_summary_global_by_event_name WHERE EVENT_NAME LIKE 'wait/synch/%/innodb/%' ORDER BY 2 DESC LIMIT 1")" '^wait/synch/(mutex|rwlock)/innodb/[a-z_]+\|[0-9]+\|[0-9]+$'
is "backquotes and upper case" "$(sql 'SELECT `T`.`COUNT_STAR` > 0 FROM `PERFORMANCE_SCHEMA`.`events_waits_summary_global_by_event_name` AS `T` WHERE `EVENT_NAME` = '"'wait/io/file/innodb/innodb_data_file'")" '^[tf]$'
is "P20: classes of waits" "$(sql 'SELECT event_class, total_events, total_latency, avg_latency FROM sys.wait_classes_global_by_latency')" 'wait/io/file\|[0-9]+\|[0-9.]+ (ps|ns|us|ms|s|m)\|[0-9.]+ (ps|ns|us|ms|s|m)'
is "P20: files joined with waits" "$(sql "SELECT f.EVENT_NAME, f.SUM_NUMBER_OF_BYTES_WRITE > 0, w.SUM_TIMER_WAIT = f.SUM_TIMER_WAIT FROM performance_schema.file_summary_by_event_name f
    JOIN performance_schema.events_waits_summary_global_by_event_name w USING (EVENT_NAME) WHERE EVENT_NAME LIKE '%innodb_log_file'")" '^wait/io/file/innodb/innodb_log_file\|t\|[tf]$'
is "P23: the statements of a loop" "$(sql "USE ps_helper; SELECT query, db, exec_count, rows_sent, rows_sent_avg, rows_scanned FROM statement_analysis WHERE query LIKE 'select w from t where id%'")" '^select w from t where id = [^|]*\|postgres\|239\|239\|1\|239$'
is "P23: lists of any length share a digest" "$(sql "SELECT exec_count, rows_sent FROM sys.statement_analysis WHERE query LIKE 'select id from t where id in%'")" '^3\|9$'
is "P23: N+1 is named" "$(sql "select n_plus_one_calls >= 100, n_plus_one_series > 0 from clearway_statements where query like 'select w from t where id%'")" '^t\|t$'
is "P24: full scans" "$(sql "SELECT full_scan, exec_count FROM sys.statement_analysis WHERE query LIKE 'select count% from t where w%'; SELECT count(*) FROM sys.statements_with_full_table_scans WHERE query LIKE 'select count% from t where w%'")" '^\*\|1
1$'
is "errors are counted" "$(sql "SELECT err_count FROM ps_helper.statement_analysis WHERE query LIKE 'select % / % from t' OR query LIKE 'select %/% from t'")" '^1$'
is "P24: unused indexes" "$(sql 'SELECT object_name, index_name FROM sys.schema_unused_indexes')" 't\|t_unused'
is "digests" "$(sql "SELECT SCHEMA_NAME, COUNT_STAR, SUM_ROWS_EXAMINED, SUM_NO_INDEX_USED FROM performance_schema.events_statements_summary_by_digest WHERE DIGEST_TEXT LIKE 'select count% from t where w%'")" '^postgres\|1\|5000\|1$'
is "digests: the latest execution and a sample" "$(sql "SELECT LAST_SEEN >= FIRST_SEEN, LAST_SEEN > now() - interval '10 minutes', QUERY_SAMPLE_SEEN BETWEEN FIRST_SEEN AND LAST_SEEN + interval '1 second',
    QUERY_SAMPLE_TIMER_WAIT BETWEEN MIN_TIMER_WAIT AND MAX_TIMER_WAIT, QUANTILE_999 >= QUANTILE_99, QUERY_SAMPLE_TEXT FROM performance_schema.events_statements_summary_by_digest WHERE DIGEST_TEXT LIKE 'select w from t where id%'")" '^t\|t\|t\|t\|t\|SELECT w FROM t WHERE id = [0-9]+;?$'
psql -XAtqc COMMIT -c COMMIT >/dev/null 2>&1
is "digests: warnings" "$(sql "SELECT SUM_WARNINGS, SUM_ERRORS FROM performance_schema.events_statements_summary_by_digest WHERE DIGEST_TEXT ILIKE 'commit'; SELECT warn_count FROM sys.statement_analysis WHERE query ILIKE 'commit'")" '^2\|0
2$'
sql "create role keeper password 'secret-of-keeper'" >/dev/null
is "digests: no password is kept" "$(sql "SELECT count(*) FROM performance_schema.events_statements_summary_by_digest WHERE QUERY_SAMPLE_TEXT LIKE '%secret-of-keep_r%' AND DIGEST_TEXT ILIKE 'create role%'")" '^0$'
is "SHOW ENGINE INNODB MUTEX" "$(psql -XAq -c 'SHOW ENGINE INNODB MUTEX' | head -1)" '^Type\|Name\|Status$'
is "threads" "$(sql "SELECT TYPE, PROCESSLIST_USER, PROCESSLIST_COMMAND FROM performance_schema.threads WHERE PROCESSLIST_ID = pg_backend_pid()")" '^FOREGROUND\|postgres\|Query$'
is "memory by user" "$(sql "SELECT count(*) > 0 FROM performance_schema.memory_summary_by_user_by_event_name WHERE USER = 'postgres'")" '^t$'

is "shortest and longest execution, processor time" "$(sql "SELECT min_timer_wait > 0 AND min_timer_wait <= avg_timer_wait AND avg_timer_wait <= max_timer_wait AND sum_cpu_time > 0 FROM performance_schema.events_statements_summary_by_digest WHERE DIGEST_TEXT LIKE 'select w from t where id%'")" '^t$'
# The columns of MySQL 8's reference manual, in its order; Clearway's own stand behind them.
while read -r view columns; do
    is "columns of $view" "|$(psql -XAq -c "SELECT * FROM $view LIMIT 0" | head -1)|" "^\\|${columns//|/\\|}\\|"
done <"$(dirname "$0")/mysql-columns.txt"

# A session waits for another's row.
mkfifo "$scratch/holder"
psql -XAtq <"$scratch/holder" >/dev/null 2>&1 & holder=$!
exec 7>"$scratch/holder"
echo "begin; update t set v = 0 where id = 2; select 'later';" >&7
until [ "$(sql "select count(*) from clearway_transactions where state = 'idle in transaction'")" = 1 ]; do sleep 0.05; done
sql "update t set v = 1 where id = 2" >/dev/null & waiter=$!
until [ "$(sql "select count(*) from pg_stat_activity where wait_event_type = 'Lock'")" = 1 ]; do sleep 0.05; done
is "innodb_trx" "$(sql "SELECT trx_state, trx_read_only, trx_autocommit_non_locking FROM information_schema.innodb_trx WHERE trx_query LIKE 'update t%'")" '^LOCK WAIT\|0\|0$'
is "sys.innodb_lock_waits names the statement that took the lock" "$(sql "SELECT locked_table, locked_key, blocking_taken_by, blocking_taken_ago FROM sys.innodb_lock_waits")" 't\|\(id\)=\(2\)\|update t set v = 0 where id = 2\|1'
is "data_locks, data_lock_waits" "$(sql "SELECT count(*) > 0 FROM performance_schema.data_locks WHERE LOCK_TYPE = 'RECORD'; SELECT count(*) FROM performance_schema.data_lock_waits")" '^t
1$'
is "SHOW ENGINE INNODB STATUS" "$(sql 'SHOW ENGINE INNODB STATUS')" 'SEMAPHORES.*TRANSACTIONS.*---TRANSACTION .*LOCK WAIT.*HAS BEEN WAITING'
echo "commit;" >&7
exec 7>&-
wait $holder $waiter
is "a read-only transaction" "$(sql "START TRANSACTION READ ONLY; SELECT count(*) FROM t; SELECT trx_is_read_only FROM information_schema.innodb_trx WHERE trx_mysql_thread_id = pg_backend_pid(); COMMIT")" '5000
1$'

# The slow log.
sql "select record_slow('1500 ms', '1 hour', 100000)" >/dev/null
sql "select pg_sleep(1.6) /* slow one */" >/dev/null
sql "select 'a quick one'" >/dev/null
for _ in $(seq 600); do grep -q 'slow one' "$scratch/log/clearway-slow.log" 2>/dev/null && grep -q 'slow one' "$scratch/log/clearway.json" 2>/dev/null && break; sleep 0.1; done
slow=$(cat "$scratch/log/clearway-slow.log")
is "record_slow takes effect in all sessions" "$slow" '# Query_time: [1-9][0-9]*\.[0-9]+  Lock_time: 0\.000000  Rows_sent: 1 .*SET timestamp=[0-9]+;.*pg_sleep\(1\.6\)'
is "nothing quick is in it" "$(grep -c 'a quick one' "$scratch/log/clearway-slow.log")" '^0$'
is "record_slow as JSON" "$(grep 'slow one' "$scratch/log/clearway.json")" '"message":"duration: [0-9.]+ ms  statement: select pg_sleep\(1.6\) /\* slow one \*/".*"query_id":-?[1-9]'
is "record_slow as a table, with the digest" "$(sql "SELECT SQL_TEXT, s.DIGEST_TEXT FROM performance_schema.events_statements_history_long h JOIN performance_schema.events_statements_summary_by_digest s USING (DIGEST)
    WHERE SQL_TEXT LIKE 'select pg_sleep(1.6) /* slow one%' LIMIT 1")" '^select pg_sleep\(1\.6\) /\* slow one \*/\|select pg_sleep ?\(\$1\)'
is "truncate_all" "$(sql "USE ps_helper; CALL truncate_all(); SELECT sum(count_star) < 100 FROM performance_schema.events_waits_summary_global_by_event_name WHERE event_name = 'wait/io/file/innodb/innodb_log_file'")" 't$'
is "and with its schema" "$(sql "CALL ps_helper.truncate_all()")" 'Truncated'
is "a schema of the user's own comes first" "$(sql "create schema sys; create table sys.statement_analysis (mine int); insert into sys.statement_analysis values (42); select * from sys.statement_analysis")" '^42$'
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
