-- The views under MySQL's names that are queries over the others. `@time(x)` stands for a time in picoseconds as sys shows it. The columns' names
-- and types are those of the declaration (`mysql.txt`).

-- performance_schema.events_statements_summary_by_digest
SELECT s.datname, lpad(to_hex(s.queryid), 16, '0'), s.query,
  sum(s.calls), (sum(s.total_ms) * 1e9)::numeric(30,0), (min(s.min_ms) * 1e9)::numeric(30,0),
  (sum(s.total_ms) / greatest(sum(s.calls), 1) * 1e9)::numeric(30,0), (max(s.max_ms) * 1e9)::numeric(30,0),
  (sum(s.lock_ms) * 1e9)::numeric(30,0),
  sum(s.errors), sum(s.warnings),
  sum(CASE WHEN s.query ~* '^(insert|update|delete|merge|copy)' THEN s.rows ELSE 0 END),
  sum(CASE WHEN s.query ~* '^(insert|update|delete|merge|copy)' THEN 0 ELSE s.rows END),
  sum(s.rows_examined), NULL, NULL, NULL, NULL, NULL, NULL, sum(s.full_scans), NULL, NULL, NULL, NULL, sum(s.missed_indexes), NULL,
  (sum(s.cpu_ms) * 1e9)::numeric(30,0), NULL, NULL, 0,
  min(s.first_seen), max(s.last_seen),
  (max(s.p95_ms) * 1e9)::numeric(30,0), (max(s.p99_ms) * 1e9)::numeric(30,0), (max(s.p999_ms) * 1e9)::numeric(30,0),
  min(s.sample) FILTER (WHERE s.is_sample), min(s.sample_seen) FILTER (WHERE s.is_sample),
  (min(s.sample_ms) FILTER (WHERE s.is_sample) * 1e9)::numeric(30,0)
 FROM (SELECT *, sample IS NOT NULL AND row_number() OVER (PARTITION BY datname, queryid, query ORDER BY sample_ms DESC NULLS LAST) = 1 AS is_sample
   FROM clearway_statements) s
 GROUP BY s.datname, s.queryid, s.query

-- performance_schema.data_locks
SELECT 'INNODB', l.pid || ':' || l.object || coalesce(':' || l.key, ''), l.transactionid, l.pid, NULL, a.datname,
  l.object, NULL, NULL, CASE WHEN l.key IS NULL THEN NULL ELSE 'PRIMARY' END, NULL,
  CASE WHEN l.key IS NULL THEN 'TABLE' ELSE 'RECORD' END, l.mode, CASE WHEN l.granted THEN 'GRANTED' ELSE 'WAITING' END, l.key
 FROM clearway_locks l LEFT JOIN pg_stat_activity a ON a.pid = l.pid

-- performance_schema.data_lock_waits
SELECT 'INNODB', t.pid || ':' || t.object || coalesce(':' || t.key, ''), w.transactionid, t.pid, NULL, NULL,
  t.blocked_by || ':' || t.object || coalesce(':' || t.key, ''), b.transactionid, t.blocked_by, NULL, NULL
 FROM clearway_lock_tree t
  LEFT JOIN clearway_transactions w ON w.pid = t.pid
  LEFT JOIN clearway_transactions b ON b.pid = t.blocked_by
 WHERE t.blocked_by IS NOT NULL

-- performance_schema.threads
SELECT a.pid, CASE WHEN a.backend_type = 'client backend' THEN 'thread/sql/one_connection' ELSE 'thread/sql/' || replace(a.backend_type, ' ', '_') END,
  CASE WHEN a.backend_type = 'client backend' THEN 'FOREGROUND' ELSE 'BACKGROUND' END,
  a.pid, a.usename, host(a.client_addr), a.datname,
  CASE a.state WHEN 'active' THEN 'Query' ELSE 'Sleep' END,
  extract(epoch FROM now() - a.state_change)::bigint,
  coalesce(a.wait_event_type || ': ' || a.wait_event, CASE a.state WHEN 'active' THEN 'executing' END),
  CASE WHEN a.state = 'active' THEN a.query END, NULL, NULL, 'YES', 'YES',
  CASE WHEN z.ssl THEN 'SSL/TLS' WHEN a.backend_type = 'client backend' THEN 'TCP/IP' END, a.pid, NULL, 'PRIMARY', NULL, NULL, NULL, NULL, 'NO'
 FROM pg_stat_activity a LEFT JOIN pg_stat_ssl z ON z.pid = a.pid

-- performance_schema.memory_summary_by_user_by_event_name
SELECT a.usename, 'memory/sql/' || m.kind, NULL, NULL, NULL, NULL, NULL, count(*), NULL, NULL, sum(m.bytes), sum(m.peak_bytes)
 FROM clearway_memory m LEFT JOIN pg_stat_activity a ON a.pid = m.pid
 WHERE m.kind <> 'session'
 GROUP BY 1, 2

-- information_schema.innodb_trx
SELECT coalesce(t.transactionid::text, t.virtualtransaction), CASE WHEN t.waiting THEN 'LOCK WAIT' ELSE 'RUNNING' END, t.xact_start,
  CASE WHEN t.waiting THEN t.pid || ':' || w.object || coalesce(':' || w.key, '') END,
  CASE WHEN t.waiting THEN now() - w.waited_ms * interval '1 millisecond' END,
  t.locks + (t.undo_bytes > 0)::int, t.pid, CASE WHEN t.state = 'active' THEN t.query END, t.state, NULL, NULL, t.locks, NULL, t.locks, NULL, 0,
  upper(m.isolation), 1, 1, NULL, 0, 0, m.read_only::int,
  (m.autocommit AND t.transactionid IS NULL AND t.locks <= 1)::int, NULL, m.read_only::int, t.undo_bytes
 FROM clearway_transactions t
  LEFT JOIN (SELECT DISTINCT ON (pid) pid, object, key, waited_ms FROM clearway_lock_tree WHERE blocked_by IS NOT NULL ORDER BY pid) w ON w.pid = t.pid
  LEFT JOIN clearway_transaction_modes m ON m.pid = t.pid

-- sys.statement_analysis
SELECT CASE WHEN length(query) > 64 THEN left(query, 30) || ' ... ' || right(query, 29) ELSE query END, schema_name,
  CASE WHEN sum_no_index_used > 0 THEN '*' ELSE '' END, count_star, sum_errors, sum_warnings, @time(sum_timer_wait), @time(max_timer_wait),
  @time(avg_timer_wait), @time(sum_lock_time), @time(sum_cpu_time), sum_rows_sent, round(sum_rows_sent / greatest(count_star, 1)), sum_rows_examined,
  round(sum_rows_examined / greatest(count_star, 1)), sum_rows_affected, round(sum_rows_affected / greatest(count_star, 1)),
  NULL, NULL, NULL, NULL, NULL, NULL, digest, first_seen, last_seen, sum_rows_examined, round(sum_rows_examined / greatest(count_star, 1))
 FROM (SELECT *, digest_text AS query FROM performance_schema.events_statements_summary_by_digest) d
 ORDER BY sum_timer_wait DESC

-- sys.x$statement_analysis
SELECT digest_text, schema_name, CASE WHEN sum_no_index_used > 0 THEN '*' ELSE '' END, count_star, sum_errors, sum_warnings, sum_timer_wait,
  max_timer_wait, avg_timer_wait, sum_lock_time, sum_cpu_time, sum_rows_sent, round(sum_rows_sent / greatest(count_star, 1)), sum_rows_examined,
  round(sum_rows_examined / greatest(count_star, 1)), sum_rows_affected, round(sum_rows_affected / greatest(count_star, 1)),
  NULL, NULL, NULL, NULL, NULL, NULL, digest, first_seen, last_seen, sum_rows_examined, round(sum_rows_examined / greatest(count_star, 1))
 FROM performance_schema.events_statements_summary_by_digest
 ORDER BY sum_timer_wait DESC

-- sys.statements_with_full_table_scans
SELECT digest_text, schema_name, count_star, @time(sum_timer_wait), sum_no_index_used, 0,
  round(sum_no_index_used * 100 / greatest(count_star, 1)), sum_rows_sent, sum_rows_examined, round(sum_rows_sent / greatest(count_star, 1)),
  round(sum_rows_examined / greatest(count_star, 1)), first_seen, last_seen, digest
 FROM performance_schema.events_statements_summary_by_digest
 WHERE sum_no_index_used > 0
 ORDER BY sum_no_index_used DESC, sum_timer_wait DESC

-- sys.wait_classes_global_by_latency
SELECT event_class, total_events, @time(total_latency), @time(min_latency), @time(avg_latency), @time(max_latency)
 FROM sys.x$wait_classes_global_by_latency
 ORDER BY total_latency DESC

-- sys.x$wait_classes_global_by_latency
SELECT split_part(event_name, '/', 1) || '/' || split_part(event_name, '/', 2) || '/' || split_part(event_name, '/', 3),
  sum(count_star), sum(sum_timer_wait), min(min_timer_wait), round(sum(sum_timer_wait) / greatest(sum(count_star), 1)), max(max_timer_wait)
 FROM performance_schema.events_waits_summary_global_by_event_name
 WHERE sum_timer_wait > 0 AND event_name <> 'idle'
 GROUP BY 1
 ORDER BY 3 DESC

-- sys.waits_global_by_latency
SELECT event_name, count_star, @time(sum_timer_wait), @time(avg_timer_wait), @time(max_timer_wait)
 FROM performance_schema.events_waits_summary_global_by_event_name
 WHERE event_name <> 'idle' AND sum_timer_wait > 0
 ORDER BY sum_timer_wait DESC

-- sys.innodb_lock_waits
SELECT now() - t.waited_ms * interval '1 millisecond', floor(t.waited_ms / 1000) * interval '1 second', floor(t.waited_ms / 1000),
  t.object, t.datname, t.object, NULL, NULL, CASE WHEN t.key IS NULL THEN NULL ELSE 'PRIMARY' END, t.locktype,
  w.transactionid, w.xact_start, now() - w.xact_start, w.locks, NULL, t.pid, t.query, t.pid || ':' || t.object || coalesce(':' || t.key, ''), t.mode,
  b.transactionid, t.blocked_by, r.query, t.blocked_by || ':' || t.object || coalesce(':' || t.key, ''), NULL, b.xact_start, now() - b.xact_start, b.locks, NULL,
  'KILL QUERY ' || t.blocked_by, 'KILL ' || t.blocked_by, t.key, h.taken_by, h.taken_ago
 FROM clearway_lock_tree t
  LEFT JOIN clearway_transactions w ON w.pid = t.pid
  LEFT JOIN clearway_transactions b ON b.pid = t.blocked_by
  LEFT JOIN pg_stat_activity r ON r.pid = t.blocked_by
  LEFT JOIN (SELECT DISTINCT ON (pid) pid, blocked_by, taken_by, taken_ago FROM clearway_lock_waits WHERE outcome = 'waiting' ORDER BY pid) h
   ON h.pid = t.pid AND h.blocked_by = t.blocked_by
 WHERE t.blocked_by IS NOT NULL
 ORDER BY t.waited_ms DESC

-- sys.schema_unused_indexes
SELECT s.schemaname, s.relname, s.indexrelname
 FROM pg_stat_user_indexes s JOIN pg_index i ON i.indexrelid = s.indexrelid
 WHERE s.idx_scan = 0 AND NOT i.indisunique
 ORDER BY 1, 2


-- sys.findings
SELECT 'Idle blocker', 'session ' || pid || coalesce(' of ' || application_name, ''),
  'does nothing in its transaction and blocks ' || blocks || ' sessions; it took the lock by: '
    || coalesce(left(taken_by, 300), 'a statement that is not known'), NULL::bigint,
  'Commit before the program waits for a user or another server. To end it now: SELECT pg_terminate_backend(' || pid || ')'
 FROM clearway_lock_tree WHERE depth = 0 AND blocks > 0 AND state LIKE 'idle in transaction%'
UNION ALL
SELECT 'Transaction left open', 'session ' || pid || coalesce(' of ' || application_name, ''),
  'open for ' || round(age_ms::numeric / 1000) || ' s and idle for ' || round(in_state_ms::numeric / 1000) || ' s, with ' || locks || ' locks', NULL::bigint,
  'Commit or roll back in every path of the program; idle_in_transaction_session_timeout ends such sessions'
 FROM clearway_transactions WHERE state LIKE 'idle in transaction%' AND in_state_ms > 60000
UNION ALL
SELECT 'Large transaction', 'session ' || t.pid || coalesce(' of ' || t.application_name, ''),
  'holds ' || pg_size_pretty(t.undo_bytes) || ' of old versions, more than 10,000 changed rows have; an abort has to undo them, and others wait for its rows', NULL::bigint,
  'Commit every few thousand rows where the work can be divided'
 FROM clearway_transactions t WHERE t.undo_bytes > 2000000
UNION ALL
SELECT 'Commit per row', coalesce(s.application_name, ''),
  s.n_plus_one_calls || ' executions in ' || s.n_plus_one_series || ' loops, each a transaction of its own that waits for the disk: ' || left(s.query, 300), NULL::bigint,
  'Put a loop into one transaction, of some hundreds to thousands of rows; or give all rows to one statement'
 FROM clearway_statements s
  JOIN (SELECT queryid, application_name, sum(waits) AS waits FROM clearway_statement_waits
    WHERE wait_event IN ('CommitDurable', 'WALSync', 'ReplyDurable', 'WALFlush', 'RowGroupUpdate') GROUP BY 1, 2) w
   ON w.queryid = s.queryid AND w.application_name = s.application_name
 WHERE s.n_plus_one_calls >= 100 AND s.query ~* '^\s*(insert|update|delete|merge)' AND w.waits >= s.calls / 2
UNION ALL
SELECT 'N+1 queries', coalesce(application_name, ''),
  n_plus_one_calls || ' executions in ' || n_plus_one_series || ' series of one statement for one row each: ' || left(query, 300), NULL::bigint,
  'Ask for all rows at once: WHERE key = ANY ($1), or a join'
 FROM clearway_statements
 WHERE n_plus_one_calls >= 20 AND query ~* '^\s*(select|with|table|values)' AND application_name IS DISTINCT FROM 'clearway watch'
UNION ALL
SELECT 'Missing index', coalesce(application_name, ''),
  missed_indexes || ' of ' || calls || ' executions read a whole table for few rows, ' || rows_examined || ' rows in all: ' || left(query, 300), NULL::bigint,
  'CREATE INDEX on the columns of its WHERE; look at EXPLAIN before and after'
 FROM clearway_statements WHERE missed_indexes > 0 AND rows_examined > 10000 AND application_name IS DISTINCT FROM 'clearway watch'
UNION ALL
SELECT 'Missing index', k.conrelid::regclass || ' (' || k.columns || ')',
  'the foreign key ' || quote_ident(k.conname) || ' has no index: each DELETE, and each change of the key, in ' || k.confrelid::regclass || ' reads the whole table', NULL::bigint,
  'CREATE INDEX ON ' || k.conrelid::regclass || ' (' || k.columns || ')'
 FROM (SELECT c.conname, c.conrelid, c.confrelid, array_to_string(c.conkey, ' ') AS numbers,
    (SELECT string_agg(quote_ident(a.attname), ', ' ORDER BY n.place) FROM unnest(c.conkey) WITH ORDINALITY n (attnum, place)
      JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = n.attnum) AS columns
   FROM pg_constraint c WHERE c.contype = 'f') k
 WHERE NOT EXISTS (SELECT 1 FROM pg_index i WHERE i.indrelid = k.conrelid AND i.indpred IS NULL AND i.indkey::text || ' ' LIKE k.numbers || ' %')
UNION ALL
SELECT 'Unused index', quote_ident(s.schemaname) || '.' || quote_ident(s.indexrelname),
  'no query has used it, and its table has been read 1,000 times and more since the statistics began; each write to ' || s.relname || ' maintains it', pg_relation_size(s.indexrelid),
  'If that holds over a whole business cycle: DROP INDEX ' || quote_ident(s.schemaname) || '.' || quote_ident(s.indexrelname)
 FROM pg_stat_user_indexes s JOIN pg_index i ON i.indexrelid = s.indexrelid JOIN pg_stat_user_tables t ON t.relid = s.relid
 WHERE s.idx_scan = 0 AND t.seq_scan + (SELECT coalesce(sum(r.idx_scan), 0) FROM pg_stat_user_indexes r WHERE r.relid = s.relid
    AND NOT EXISTS (SELECT 1 FROM pg_constraint c WHERE c.contype = 'f' AND c.conindid = r.indexrelid)) >= 1000 AND NOT i.indisunique
  AND NOT EXISTS (SELECT 1 FROM pg_constraint c
    WHERE c.contype = 'f' AND c.conrelid = i.indrelid AND i.indkey::text || ' ' LIKE array_to_string(c.conkey, ' ') || ' %')
UNION ALL
SELECT 'Duplicate index', a.indexrelid::regclass::text,
  'its columns are the first columns of ' || b.indexrelid::regclass || ', which answers the same queries', pg_relation_size(a.indexrelid),
  'DROP INDEX ' || a.indexrelid::regclass
 FROM pg_index a JOIN pg_index b ON a.indrelid = b.indrelid AND a.indexrelid <> b.indexrelid JOIN pg_class c ON c.oid = a.indrelid
 WHERE a.indpred IS NULL AND b.indpred IS NULL AND a.indexprs IS NULL AND b.indexprs IS NULL AND NOT a.indisunique
  AND (b.indkey::text LIKE a.indkey::text || ' %'
    OR b.indkey::text = a.indkey::text AND (b.indisunique OR a.indexrelid > b.indexrelid))
UNION ALL
SELECT 'No primary key', c.oid::regclass::text,
  'rows can be named by no key: an UPDATE or DELETE of one row reads the table, and so does a replica', NULL::bigint,
  'ALTER TABLE ' || c.oid::regclass || ' ADD PRIMARY KEY (...); without a column that can serve: ADD COLUMN id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY'
 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE c.relkind = 'r' AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname NOT LIKE 'pg_%'
  AND NOT EXISTS (SELECT 1 FROM pg_index i WHERE i.indrelid = c.oid AND i.indisprimary)
