//! The statements by which the console reads MariaDB and MySQL, and the meaning of their results.
//!
//! # Structure
//! Here: sessions and the session that each waits for, in the columns of `sample`, and the locks that they wait for. `tables`: the page's
//! tables. `status`: the text of SHOW ENGINE INNODB STATUS, the only source of deadlocks.
//!
//! # Invariants
//! - MYS-1: A wait for a row is told by InnoDB's tables alone (that there is one, its statement, the session that it waits for). These are of one moment, up to 0.1 s
//!   before that of the list of processes, which may have the session's statement before or behind it.
//!
//! # Not here
//! The statement that took a lock, a history of lock waits, and more than the latest deadlock: these servers do not record them.

pub(crate) mod status;
pub(crate) mod tables;

use crate::link::Link;

/// The parts that both kinds of server share: the session that another waits for comes from `{blockers}`.
macro_rules! sessions {
    ($blockers:literal, $trx:literal) => {
        concat!(
            "SELECT /* clearway watch */ p.id, p.user, coalesce(p.db, ''), coalesce(a.attr_value, substring_index(p.host, ':', 1), ''),
  if(p.command = 'Sleep' AND coalesce(x.trx_state, '') <> 'LOCK WAIT', 'idle in transaction', 'active'),
  CASE WHEN x.trx_state = 'LOCK WAIT' OR p.state LIKE 'Waiting for%lock%' THEN 'Lock' WHEN p.command = 'Sleep' THEN 'Client'
    WHEN w.event_name LIKE 'wait/synch/%' THEN 'LWLock' WHEN w.event_name LIKE 'wait/io/table/%' THEN '' WHEN w.event_name LIKE 'wait/io/%' THEN 'IO'
    WHEN p.state LIKE 'User sleep%' THEN 'Timeout' ELSE '' END,
  CASE WHEN x.trx_state = 'LOCK WAIT' THEN 'row' WHEN p.state LIKE 'Waiting for%lock%' THEN p.state ELSE coalesce(w.event_name, '') END,
  timestampdiff(MICROSECOND, x.trx_started, now(6)) / 1e6, ",
            $trx,
            ", left(coalesce(if(x.trx_state = 'LOCK WAIT', nullif(x.trx_query, ''), NULL), p.info, s.sql_text, ''), 1000),
  if(x.trx_state = 'LOCK WAIT' OR p.state LIKE 'Waiting for%lock%', coalesce(k.blockers, ''), '')
FROM information_schema.processlist p
  LEFT JOIN information_schema.innodb_trx x ON x.trx_mysql_thread_id = p.id
  LEFT JOIN performance_schema.threads t ON t.processlist_id = p.id
  LEFT JOIN performance_schema.events_statements_current s ON s.thread_id = t.thread_id AND s.nesting_event_id IS NULL
  LEFT JOIN (SELECT thread_id, max(event_name) AS event_name FROM performance_schema.events_waits_current
    WHERE end_event_id IS NULL GROUP BY thread_id) w ON w.thread_id = t.thread_id
  LEFT JOIN performance_schema.session_connect_attrs a ON a.processlist_id = p.id AND a.attr_name = 'program_name'
  LEFT JOIN (SELECT waiter, group_concat(DISTINCT blocker ORDER BY blocker) AS blockers FROM (",
            $blockers,
            " UNION ALL SELECT wt.processlist_id, gt.processlist_id FROM performance_schema.metadata_locks m
      JOIN performance_schema.metadata_locks g ON g.object_type = m.object_type AND g.object_schema <=> m.object_schema
        AND g.object_name <=> m.object_name AND g.lock_status = 'GRANTED' AND g.owner_thread_id <> m.owner_thread_id
      JOIN performance_schema.threads wt ON wt.thread_id = m.owner_thread_id
      JOIN performance_schema.threads gt ON gt.thread_id = g.owner_thread_id
      WHERE m.lock_status = 'PENDING') b GROUP BY waiter) k ON k.waiter = p.id
WHERE p.id <> connection_id() AND coalesce(a.attr_value, '') <> 'clearway watch'
  AND (x.trx_id IS NOT NULL OR p.command NOT IN ('Daemon', 'Binlog Dump', 'Connect', 'Quit') AND p.user <> 'system user')
  AND (p.command <> 'Sleep' OR x.trx_id IS NOT NULL OR k.blockers IS NOT NULL) AND coalesce(p.info, '') NOT LIKE '%/* clearway watch */%'"
        )
    };
}

/// Sessions of MariaDB, in the columns of `sample`.
pub(crate) const SESSIONS_MARIADB: &str = sessions!(
    "SELECT r.trx_mysql_thread_id AS waiter, h.trx_mysql_thread_id AS blocker FROM information_schema.innodb_lock_waits v
      JOIN information_schema.innodb_trx r ON r.trx_id = v.requesting_trx_id JOIN information_schema.innodb_trx h ON h.trx_id = v.blocking_trx_id",
    "p.time_ms / 1e3"
);

/// The same of MySQL 8.
pub(crate) const SESSIONS_MYSQL: &str = sessions!(
    "SELECT rt.processlist_id AS waiter, ht.processlist_id AS blocker FROM performance_schema.data_lock_waits v
      JOIN performance_schema.threads rt ON rt.thread_id = v.requesting_thread_id
      JOIN performance_schema.threads ht ON ht.thread_id = v.blocking_thread_id",
    "p.time"
);

/// The locks that sessions of MariaDB wait for. What took a lock that others wait for is not recorded.
pub(crate) const LOCKS_MARIADB: &str = "SELECT /* clearway watch */ x.trx_mysql_thread_id, replace(l.lock_table, '`', ''),
  concat(coalesce(l.lock_index, ''), ' ', coalesce(l.lock_data, '')), l.lock_mode, timestampdiff(MICROSECOND, x.trx_wait_started, now(6)) / 1e3, '', 0
FROM information_schema.innodb_trx x JOIN information_schema.innodb_locks l ON l.lock_id = x.trx_requested_lock_id";

/// The same of MySQL 8.
pub(crate) const LOCKS_MYSQL: &str = "SELECT /* clearway watch */ t.processlist_id, concat(l.object_schema, '.', l.object_name),
  concat(coalesce(l.index_name, ''), ' ', coalesce(l.lock_data, '')), l.lock_mode, 0, '', 0
FROM performance_schema.data_locks l JOIN performance_schema.threads t ON t.thread_id = l.thread_id WHERE l.lock_status = 'WAITING'";

/// Kills a session's statement, or the session where it is idle. Its state before that; none: it has ended already.
pub(crate) async fn end(link: &mut Link, pid: i32) -> Result<Option<String>, String> {
    let of_session = format!("SELECT command FROM information_schema.processlist WHERE id = {pid}");
    let Some(command) = link.field(&of_session).await.map_err(|error| error.text)? else { return Ok(None) };
    let (what, state) = if command == "Sleep" { ("CONNECTION", "idle") } else { ("QUERY", "active") };
    match link.table(&format!("KILL {what} {pid}"), 0).await {
        Ok(_) => Ok(Some(state.to_owned())),
        Err(error) => Err(error.text),
    }
}
