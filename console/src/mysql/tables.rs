//! The page's tables, from the views of MariaDB and MySQL.

/// Digests have no comments: what reads these schemas is the console, or another monitor.
pub(crate) const STATEMENTS: &str = "\
SELECT digest AS queryid, count_star AS calls, round(sum_timer_wait / 1e9, 1) AS total_ms, round(avg_timer_wait / 1e9, 3) AS mean_ms,
  round(max_timer_wait / 1e9, 3) AS max_ms, round(sum_lock_time / 1e9, 1) AS table_lock_ms, sum_rows_examined AS rows_examined, sum_errors AS errors,
  sum_no_index_used AS without_index, schema_name, left(digest_text, 300) AS query
FROM performance_schema.events_statements_summary_by_digest WHERE digest_text NOT LIKE '%performance_schema%' AND digest_text NOT LIKE '%information_schema%'
ORDER BY sum_timer_wait DESC LIMIT 25";

pub(crate) const TRANSACTIONS: &str = "\
SELECT x.trx_mysql_thread_id AS pid, p.user, p.command AS state, timestampdiff(SECOND, x.trx_started, now()) AS age_s, x.trx_rows_locked AS locks,
  x.trx_rows_modified AS rows_changed, left(coalesce(p.info, s.sql_text), 300) AS latest_statement
FROM information_schema.innodb_trx x LEFT JOIN information_schema.processlist p ON p.id = x.trx_mysql_thread_id
  LEFT JOIN performance_schema.threads t ON t.processlist_id = p.id
  LEFT JOIN performance_schema.events_statements_current s ON s.thread_id = t.thread_id AND s.nesting_event_id IS NULL
ORDER BY x.trx_started LIMIT 25";

/// Its text is read by `status`.
pub(crate) const DEADLOCKS: &str = "SHOW ENGINE INNODB STATUS";

pub(crate) const NO_LOCK_HISTORY: &str = "This server keeps no history of waits for locks. These were sampled each second by the console; a wait between two samples is not seen. root_statement is the root's latest statement when the wait was first seen, if the consumer events_statements_current is on: the server does not record which one took the lock.";

pub(crate) const WAITS: &str = "\
SELECT event_name AS wait_event, count_star AS waits, round(sum_timer_wait / 1e9, 1) AS total_ms, round(avg_timer_wait / 1e9, 3) AS mean_ms,
  round(max_timer_wait / 1e9, 1) AS max_ms
FROM performance_schema.events_waits_summary_global_by_event_name
WHERE count_star > 0 AND event_name <> 'idle' AND event_name NOT LIKE 'wait/synch/%' ORDER BY sum_timer_wait DESC LIMIT 25";

pub(crate) const LATCHES: &str = "\
SELECT event_name AS name, count_star AS waits, round(sum_timer_wait / 1e9, 1) AS total_ms, round(max_timer_wait / 1e9, 3) AS max_ms
FROM performance_schema.events_waits_summary_global_by_event_name
WHERE count_star > 0 AND event_name LIKE 'wait/synch/%' ORDER BY sum_timer_wait DESC LIMIT 15";

pub(crate) const TABLES: &str = "\
SELECT concat(t.table_schema, '.', t.table_name) AS `table`, t.data_length + t.index_length AS bytes, t.table_rows AS estimated_rows,
  w.count_read AS rows_read, w.count_insert AS inserted, w.count_update AS updated, w.count_delete AS deleted, round(w.sum_timer_wait / 1e9, 1) AS wait_ms
FROM information_schema.tables t LEFT JOIN performance_schema.table_io_waits_summary_by_table w
  ON w.object_schema = t.table_schema AND w.object_name = t.table_name
WHERE t.table_type = 'BASE TABLE' AND t.table_schema NOT IN ('mysql', 'sys', 'information_schema', 'performance_schema')
ORDER BY bytes DESC LIMIT 25";

pub(crate) const INDEXES: &str = "\
SELECT concat(object_schema, '.', object_name) AS `table`, index_name, count_fetch AS rows_read, count_insert AS inserted, count_update AS updated,
  round(sum_timer_wait / 1e9, 1) AS wait_ms
FROM performance_schema.table_io_waits_summary_by_index_usage
WHERE index_name IS NOT NULL AND object_schema NOT IN ('mysql', 'sys', 'performance_schema') ORDER BY sum_timer_wait DESC LIMIT 25";

pub(crate) const FILES: &str = "\
SELECT event_name AS file, count_read AS read_calls, sum_number_of_bytes_read AS bytes_read, round(sum_timer_read / 1e9, 1) AS read_ms, count_write AS write_calls,
  sum_number_of_bytes_write AS bytes_written, round(sum_timer_write / 1e9, 1) AS write_ms, count_misc AS syncs_and_others,
  round(sum_timer_misc / 1e9, 1) AS other_ms
FROM performance_schema.file_summary_by_event_name WHERE count_star > 0 ORDER BY sum_timer_wait DESC LIMIT 25";

/// What sessions and statements tell, of both kinds of server.
macro_rules! live_findings {
    () => {
        "\
SELECT 'Transaction left open' AS finding, concat('session ', x.trx_mysql_thread_id) AS object,
  concat('idle in its transaction for ', p.time, ' s') AS evidence, NULL AS bytes_saved,
  concat('Commit or roll back in every path of the program. To end it now: KILL ', p.id) AS what_to_do
FROM information_schema.innodb_trx x JOIN information_schema.processlist p ON p.id = x.trx_mysql_thread_id WHERE p.command = 'Sleep' AND p.time > 60
UNION ALL
SELECT 'Large transaction', concat('session ', trx_mysql_thread_id), concat(trx_rows_modified, ' rows changed in one transaction'), NULL,
  'Change fewer rows in one transaction: its undo keeps old versions of rows for everybody, and its end by an error takes as long as it has run'
FROM information_schema.innodb_trx WHERE trx_rows_modified > 10000
UNION ALL
SELECT 'Full scans', coalesce(schema_name, ''), concat(sum_no_index_used, ' executions without an index looked at ', sum_rows_examined, ' rows: ', left(digest_text, 200)),
  NULL, 'Look at its plan with EXPLAIN: an index on the columns of its WHERE may be missing'
FROM performance_schema.events_statements_summary_by_digest WHERE sum_no_index_used > 100 AND sum_rows_examined / count_star > 10000
UNION ALL
"
    };
}

/// What the catalog and the counters of indexes tell.
macro_rules! schema_findings {
    () => {
        "\
SELECT 'Duplicate index' AS finding, concat(a.table_schema, '.', a.table_name, '.', a.index_name) AS object,
  concat('its columns are the first columns of ', b.index_name, ', which answers the same queries') AS evidence, NULL AS bytes_saved,
  concat('ALTER TABLE `', a.table_schema, '`.`', a.table_name, '` DROP INDEX `', a.index_name, '`') AS what_to_do
FROM (SELECT table_schema, table_name, index_name, min(non_unique) AS non_unique, max(coalesce(sub_part, 0)) AS part, max(index_type) AS kind,
    group_concat(column_name ORDER BY seq_in_index) AS columns FROM information_schema.statistics GROUP BY 1, 2, 3) a
  JOIN (SELECT table_schema, table_name, index_name, min(non_unique) AS non_unique, max(coalesce(sub_part, 0)) AS part, max(index_type) AS kind,
    group_concat(column_name ORDER BY seq_in_index) AS columns FROM information_schema.statistics GROUP BY 1, 2, 3) b
    ON b.table_schema = a.table_schema AND b.table_name = a.table_name AND b.index_name <> a.index_name
WHERE a.non_unique = 1 AND a.part = 0 AND b.part = 0 AND a.kind = 'BTREE' AND b.kind = 'BTREE'
  AND (left(b.columns, length(a.columns) + 1) = concat(a.columns, ',')
    OR b.columns = a.columns AND (b.non_unique = 0 OR a.index_name > b.index_name))
  AND a.table_schema NOT IN ('mysql', 'sys', 'information_schema', 'performance_schema')
UNION ALL
SELECT 'No primary key', concat(t.table_schema, '.', t.table_name), 'rows can be named by no key; InnoDB makes one that nobody can use', NULL,
  concat('ALTER TABLE `', t.table_schema, '`.`', t.table_name, '` ADD PRIMARY KEY (...)')
FROM information_schema.tables t LEFT JOIN information_schema.table_constraints c
  ON c.table_schema = t.table_schema AND c.table_name = t.table_name AND c.constraint_type = 'PRIMARY KEY'
WHERE t.table_type = 'BASE TABLE' AND c.constraint_name IS NULL AND t.table_schema NOT IN ('mysql', 'sys', 'information_schema', 'performance_schema')
UNION ALL
SELECT 'Unused index', concat(u.object_schema, '.', u.object_name, '.', u.index_name), concat('none of ', w.count_fetch, ' rows read since the server started came by it'), NULL,
  concat('If that holds over a whole business cycle: ALTER TABLE `', u.object_schema, '`.`', u.object_name, '` DROP INDEX `', u.index_name, '`')
FROM performance_schema.table_io_waits_summary_by_index_usage u JOIN information_schema.statistics s
  ON s.table_schema = u.object_schema AND s.table_name = u.object_name AND s.index_name = u.index_name AND s.seq_in_index = 1
  JOIN performance_schema.table_io_waits_summary_by_table w ON w.object_schema = u.object_schema AND w.object_name = u.object_name
WHERE u.index_name <> 'PRIMARY' AND u.count_fetch = 0 AND w.count_fetch >= 1000 AND s.non_unique = 1 AND u.object_schema NOT IN ('mysql', 'sys', 'performance_schema')
  AND NOT EXISTS (SELECT 1 FROM information_schema.key_column_usage k WHERE k.referenced_table_name IS NOT NULL AND k.ordinal_position = 1
    AND (k.table_schema = u.object_schema AND k.table_name = u.object_name AND k.column_name = s.column_name
      OR k.referenced_table_schema = u.object_schema AND k.referenced_table_name = u.object_name AND k.referenced_column_name = s.column_name))
LIMIT 200"
    };
}

/// MariaDB's; MySQL 8 has the blocker of a session elsewhere.
pub(crate) const FINDINGS_MARIADB: &str = concat!(
    "SELECT DISTINCT 'Idle blocker' AS finding, concat('session ', p.id) AS object,
  concat('does nothing in its transaction and blocks others; it ran last: ', left(coalesce(s.sql_text, ''), 300)) AS evidence, NULL AS bytes_saved,
  concat('Commit before the program waits for a user or another server. To end it now: KILL ', p.id) AS what_to_do
FROM information_schema.innodb_lock_waits v JOIN information_schema.innodb_trx h ON h.trx_id = v.blocking_trx_id
  JOIN information_schema.processlist p ON p.id = h.trx_mysql_thread_id AND p.command = 'Sleep'
  LEFT JOIN performance_schema.threads t ON t.processlist_id = p.id
  LEFT JOIN performance_schema.events_statements_current s ON s.thread_id = t.thread_id AND s.nesting_event_id IS NULL
UNION ALL
",
    live_findings!(),
    schema_findings!()
);

pub(crate) const FINDINGS: &str = concat!(live_findings!(), schema_findings!());

/// Those for which the catalog suffices.
pub(crate) const FINDINGS_OF_SCHEMA: &str = schema_findings!();
