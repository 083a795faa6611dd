-- The views under MySQL's names that are queries over the others. `@time(x)` stands for a time in picoseconds as sys shows it. The columns' names
-- and types are those of the declaration (`mysql.txt`).

-- performance_schema.events_statements_summary_by_digest
SELECT s.datname, lpad(to_hex(s.queryid), 16, '0'), s.query,
  sum(s.calls), (sum(s.total_ms) * 1e9)::numeric(30,0), 0,
  (sum(s.total_ms) / greatest(sum(s.calls), 1) * 1e9)::numeric(30,0), (max(s.max_ms) * 1e9)::numeric(30,0),
  (coalesce(max(l.lock_ms), 0) * 1e9)::numeric(30,0),
  sum(s.errors), 0,
  sum(CASE WHEN s.query ~* '^(insert|update|delete|merge|copy)' THEN s.rows ELSE 0 END),
  sum(CASE WHEN s.query ~* '^(insert|update|delete|merge|copy)' THEN 0 ELSE s.rows END),
  sum(s.rows_examined), sum(s.full_scans), sum(s.missed_indexes),
  min(s.first_seen), NULL,
  (max(s.p95_ms) * 1e9)::numeric(30,0), (max(s.p99_ms) * 1e9)::numeric(30,0), s.query
 FROM clearway_statements s
  LEFT JOIN (SELECT queryid, sum(total_ms) AS lock_ms FROM clearway_statement_waits WHERE wait_event_type = 'Lock' GROUP BY 1) l
   ON l.queryid = s.queryid
 GROUP BY s.datname, s.queryid, s.query

-- performance_schema.data_locks
SELECT 'INNODB', l.pid || ':' || l.object || coalesce(':' || l.key, ''), l.transactionid, l.pid, a.datname,
  l.object, CASE WHEN l.key IS NULL THEN NULL ELSE 'PRIMARY' END,
  CASE WHEN l.key IS NULL THEN 'TABLE' ELSE 'RECORD' END, l.mode, CASE WHEN l.granted THEN 'GRANTED' ELSE 'WAITING' END, l.key
 FROM clearway_locks l LEFT JOIN pg_stat_activity a ON a.pid = l.pid

-- performance_schema.data_lock_waits
SELECT 'INNODB', t.pid || ':' || t.object || coalesce(':' || t.key, ''), w.transactionid, t.pid,
  t.blocked_by || ':' || t.object || coalesce(':' || t.key, ''), b.transactionid, t.blocked_by
 FROM clearway_lock_tree t
  LEFT JOIN clearway_transactions w ON w.pid = t.pid
  LEFT JOIN clearway_transactions b ON b.pid = t.blocked_by
 WHERE t.blocked_by IS NOT NULL

-- performance_schema.threads
SELECT a.pid, CASE WHEN a.backend_type = 'client backend' THEN 'thread/sql/one_connection' ELSE 'thread/sql/' || replace(a.backend_type, ' ', '_') END,
  CASE WHEN a.backend_type = 'client backend' THEN 'FOREGROUND' ELSE 'BACKGROUND' END,
  a.pid, a.usename, a.client_addr, a.datname,
  CASE a.state WHEN 'active' THEN 'Query' ELSE 'Sleep' END,
  extract(epoch FROM now() - a.state_change)::bigint,
  coalesce(a.wait_event_type || ': ' || a.wait_event, CASE a.state WHEN 'active' THEN 'executing' END),
  CASE WHEN a.state = 'active' THEN a.query END, 'YES', 'YES', a.pid
 FROM pg_stat_activity a

-- performance_schema.memory_summary_by_user_by_event_name
SELECT a.usename, 'memory/sql/' || m.kind, sum(m.bytes), sum(m.peak_bytes), count(*)
 FROM clearway_memory m LEFT JOIN pg_stat_activity a ON a.pid = m.pid
 WHERE m.kind <> 'session'
 GROUP BY 1, 2

-- information_schema.innodb_trx
SELECT coalesce(t.transactionid::text, t.virtualtransaction), CASE WHEN t.waiting THEN 'LOCK WAIT' ELSE 'RUNNING' END, t.xact_start,
  CASE WHEN t.waiting THEN t.pid || ':' || w.object || coalesce(':' || w.key, '') END,
  CASE WHEN t.waiting THEN now() - w.waited_ms * interval '1 millisecond' END,
  t.locks + (t.undo_bytes > 0)::int, t.pid, CASE WHEN t.state = 'active' THEN t.query END, t.state, t.locks, t.undo_bytes,
  upper(m.isolation), m.read_only::int, m.read_only::int,
  (m.autocommit AND t.transactionid IS NULL AND t.locks <= 1)::int
 FROM clearway_transactions t
  LEFT JOIN (SELECT DISTINCT ON (pid) pid, object, key, waited_ms FROM clearway_lock_tree WHERE blocked_by IS NOT NULL ORDER BY pid) w ON w.pid = t.pid
  LEFT JOIN clearway_transaction_modes m ON m.pid = t.pid

-- sys.statement_analysis
SELECT CASE WHEN length(query) > 64 THEN left(query, 30) || ' ... ' || right(query, 29) ELSE query END, schema_name,
  CASE WHEN sum_no_index_used > 0 THEN '*' ELSE '' END, count_star, sum_errors, sum_warnings, @time(sum_timer_wait), @time(max_timer_wait),
  @time(avg_timer_wait), @time(sum_lock_time), sum_rows_sent, round(sum_rows_sent / greatest(count_star, 1)), sum_rows_examined,
  round(sum_rows_examined / greatest(count_star, 1)), sum_rows_affected, round(sum_rows_affected / greatest(count_star, 1)),
  digest, first_seen, last_seen
 FROM (SELECT *, digest_text AS query FROM performance_schema.events_statements_summary_by_digest) d
 ORDER BY sum_timer_wait DESC

-- sys.x$statement_analysis
SELECT digest_text, schema_name, CASE WHEN sum_no_index_used > 0 THEN '*' ELSE '' END, count_star, sum_errors, sum_warnings, sum_timer_wait,
  max_timer_wait, avg_timer_wait, sum_lock_time, sum_rows_sent, round(sum_rows_sent / greatest(count_star, 1)), sum_rows_examined,
  round(sum_rows_examined / greatest(count_star, 1)), sum_rows_affected, round(sum_rows_affected / greatest(count_star, 1)),
  digest, first_seen, last_seen
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
  t.object, t.key, t.locktype, w.transactionid, w.xact_start, t.pid, t.query, t.mode,
  b.transactionid, t.blocked_by, r.query, h.taken_by, h.taken_ago, b.xact_start,
  'KILL QUERY ' || t.blocked_by, 'KILL ' || t.blocked_by
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

