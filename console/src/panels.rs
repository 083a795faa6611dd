//! The tables of the page, each with its SQL, which the page shows beside the result.

use crate::link::Link;
use crate::mysql::{status, tables as mysql};
use crate::sample::{self, History};
use crate::source::Kind;
use serde_json::{Value, json};

/// Rows that a table may have at most.
const ROWS_MAX: usize = 1000;

/// A table of the page.
pub(crate) struct Panel {
    pub(crate) name: &'static str,
    clearway: Sql,
    postgresql: Sql,
    /// MariaDB's and MySQL's.
    mysql: Sql,
}

/// The findings of a MariaDB's page; MySQL's are fewer.
const FINDINGS_PANEL: &str = "findings";

/// What a table is read with.
enum Sql {
    /// A statement; `{from}` and `{to}` stand for seconds since 1970.
    Query(&'static str),
    /// The server does not record it; the console has sampled it.
    Sampled(&'static str),
    /// The server does not record it.
    Missing(&'static str),
}

use Sql::{Missing, Query, Sampled};

/// What gives a table.
#[derive(Debug)]
pub(crate) enum PanelAnswer {
    /// The server.
    Query(String),
    /// The console's own samples, and what is to be known of them.
    Sampled(Samples, &'static str),
    /// Neither: why.
    Missing(&'static str),
}

/// A table of what was sampled.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Samples {
    Deadlocks,
    /// From one moment to another, in microseconds since 1970.
    LockWaits(i64, i64),
}

/// All tables.
pub(crate) static PANELS: &[Panel] = &[
    Panel {
        name: "statements",
        clearway: Query(STATEMENTS),
        postgresql: Query(STATEMENTS_POSTGRESQL),
        mysql: Query(mysql::STATEMENTS),
    },
    Panel {
        name: "transactions",
        clearway: Query(TRANSACTIONS),
        postgresql: Query(TRANSACTIONS_POSTGRESQL),
        mysql: Query(mysql::TRANSACTIONS),
    },
    Panel {
        name: FINDINGS_PANEL,
        clearway: Query(FINDINGS),
        postgresql: Query(FINDINGS_POSTGRESQL),
        mysql: Query(mysql::FINDINGS),
    },
    Panel {
        name: "deadlocks",
        clearway: Query(DEADLOCKS),
        postgresql: Sampled(
            "PostgreSQL counts deadlocks (pg_stat_database) and writes them to its log; it has no table of them. These are the rings that the console has seen: sessions that waited for each other, each with its latest statement. Which one was the victim is not seen, nor a ring that lasts less than 0.4 s (deadlock_timeout is 1 s by default).",
        ),
        mysql: Query(mysql::DEADLOCKS),
    },
    Panel {
        name: "lock_waits",
        clearway: Query(LOCK_WAITS),
        postgresql: Sampled(
            "PostgreSQL keeps no history of waits for locks. These were sampled each second by the console; a wait between two samples is not seen. root_statement is the root's latest statement when the wait was first seen: PostgreSQL does not record which one took the lock.",
        ),
        mysql: Sampled(mysql::NO_LOCK_HISTORY),
    },
    Panel {
        name: "waits",
        clearway: Query(WAITS),
        postgresql: Missing("PostgreSQL does not measure its waits; the chart above counts sampled seconds."),
        mysql: Query(mysql::WAITS),
    },
    Panel {
        name: "latches",
        clearway: Query(LATCHES),
        postgresql: Missing("PostgreSQL does not record its latches' waits."),
        mysql: Query(mysql::LATCHES),
    },
    Panel { name: "tables", clearway: Query(TABLES), postgresql: Query(TABLES), mysql: Query(mysql::TABLES) },
    Panel { name: "indexes", clearway: Query(INDEXES), postgresql: Query(INDEXES), mysql: Query(mysql::INDEXES) },
    Panel {
        name: "files",
        clearway: Query(FILES),
        postgresql: Missing("PostgreSQL 15 does not count its I/O by kind of file."),
        mysql: Query(mysql::FILES),
    },
];

const STATEMENTS: &str = "\
SELECT queryid, calls, round(total_ms::numeric, 1) AS total_ms, round(mean_ms::numeric, 3) AS mean_ms, round(p99_ms::numeric, 3) AS p99_ms,
  round(max_ms::numeric, 3) AS max_ms, round(wait_ms::numeric, 1) AS wait_ms, waits, errors, application_name, left(query, 300) AS query
FROM clearway_statements WHERE application_name IS DISTINCT FROM 'clearway watch'
ORDER BY clearway_statements.total_ms DESC LIMIT 25";

const STATEMENTS_POSTGRESQL: &str = "\
SELECT queryid, calls, round(total_exec_time::numeric, 1) AS total_ms, round(mean_exec_time::numeric, 3) AS mean_ms,
  round(max_exec_time::numeric, 3) AS max_ms, rows, left(query, 300) AS query
FROM pg_stat_statements ORDER BY total_exec_time DESC LIMIT 25";

const TRANSACTIONS: &str = "\
SELECT pid, application_name, usename, state, round(age_ms::numeric / 1000, 1) AS age_s, round(in_state_ms::numeric / 1000, 1) AS in_state_s,
  locks, undo_bytes, left(statements, 600) AS statements
FROM clearway_transactions WHERE application_name IS DISTINCT FROM 'clearway watch'
ORDER BY age_ms DESC LIMIT 25";

const TRANSACTIONS_POSTGRESQL: &str = "\
SELECT pid, application_name, usename, state, round(extract(epoch FROM clock_timestamp() - xact_start)::numeric, 1) AS age_s,
  round(extract(epoch FROM clock_timestamp() - state_change)::numeric, 1) AS in_state_s, left(query, 300) AS latest_statement
FROM pg_stat_activity WHERE xact_start IS NOT NULL AND application_name <> 'clearway watch' ORDER BY xact_start LIMIT 25";

const DEADLOCKS: &str = "\
SELECT number, happened, place, victim, pid, application_name, usename, wants, wants_mode, waits_for, holds, held_by_statement,
  left(statements, 1000) AS statements
FROM clearway_deadlocks ORDER BY number DESC, place LIMIT 200";

const LOCK_WAITS: &str = "\
SELECT began, round(waited_ms::numeric, 1) AS waited_ms, outcome, waits, object, key, mode, pid, application_name, left(query, 300) AS query,
  blocked_by, left(taken_by, 300) AS taken_by, taken_ago, depth, root_pid, root_application, left(root_taken_by, 300) AS root_taken_by,
  root_state, round(root_idle_ms::numeric, 1) AS root_idle_ms
FROM clearway_lock_waits WHERE began <= to_timestamp({to}) AND ended >= to_timestamp({from})
ORDER BY clearway_lock_waits.waited_ms DESC LIMIT 50";

const WAITS: &str = "\
SELECT wait_event_type, wait_event, waits, round(total_ms::numeric, 1) AS total_ms, round(mean_ms::numeric, 3) AS mean_ms,
  round(p99_ms::numeric, 3) AS p99_ms, round(max_ms::numeric, 1) AS max_ms, description
FROM clearway_waits WHERE wait_event_type NOT IN ('Activity', 'Client') ORDER BY clearway_waits.total_ms DESC LIMIT 25";

const LATCHES: &str = "\
SELECT name, waits, round(spin_ms::numeric, 1) AS spin_ms, round(park_ms::numeric, 1) AS park_ms, round(max_ms::numeric, 2) AS max_ms, waiting,
  holder, taken_at
FROM clearway_latches ORDER BY clearway_latches.spin_ms + clearway_latches.park_ms DESC LIMIT 15";

const TABLES: &str = "\
SELECT schemaname || '.' || relname AS \"table\", pg_size_pretty(pg_total_relation_size(relid)) AS size, seq_scan AS full_scans,
  seq_tup_read AS rows_by_full_scans, idx_scan AS index_scans, n_tup_ins AS inserted, n_tup_upd AS updated, n_tup_del AS deleted
FROM pg_stat_user_tables ORDER BY pg_total_relation_size(relid) DESC LIMIT 25";

const INDEXES: &str = "\
SELECT schemaname || '.' || indexrelname AS index, relname AS \"table\", pg_size_pretty(pg_relation_size(indexrelid)) AS size,
  idx_scan AS scans, idx_tup_read AS rows_read
FROM pg_stat_user_indexes ORDER BY pg_relation_size(indexrelid) DESC LIMIT 25";

const FILES: &str = "\
SELECT event_name AS file, count_read AS reads, sum_number_of_bytes_read AS bytes_read, round(sum_timer_read / 1e9, 1) AS read_ms,
  count_write AS writes, sum_number_of_bytes_write AS bytes_written, round(sum_timer_write / 1e9, 1) AS write_ms,
  count_misc AS syncs_and_others, round(sum_timer_misc / 1e9, 1) AS other_ms, round(max_timer_misc / 1e9, 1) AS longest_other_ms
FROM performance_schema.file_summary_by_event_name WHERE count_star > 0 ORDER BY sum_timer_wait DESC LIMIT 25";

/// What a PostgreSQL's catalog tells of a schema; a Clearway has it in `sys.findings`.
macro_rules! schema_findings {
    () => {
        "SELECT 'Unused index' AS finding, s.schemaname || '.' || s.indexrelname AS object,
  'no query has used it, and its table has been read 1,000 times and more since the statistics began; each write to ' || s.relname || ' maintains it' AS evidence,
  pg_relation_size(s.indexrelid) AS bytes_saved,
  'If that holds over a whole business cycle: DROP INDEX ' || quote_ident(s.schemaname) || '.' || quote_ident(s.indexrelname) AS what_to_do
FROM pg_stat_user_indexes s JOIN pg_index i ON i.indexrelid = s.indexrelid JOIN pg_stat_user_tables t ON t.relid = s.relid
WHERE s.idx_scan = 0 AND t.seq_scan + (SELECT coalesce(sum(r.idx_scan), 0) FROM pg_stat_user_indexes r WHERE r.relid = s.relid
    AND NOT EXISTS (SELECT 1 FROM pg_constraint c WHERE c.contype = 'f' AND c.conindid = r.indexrelid)) >= 1000 AND NOT i.indisunique AND NOT i.indisprimary
  AND NOT EXISTS (SELECT 1 FROM pg_constraint c
    WHERE c.contype = 'f' AND c.conrelid = i.indrelid AND i.indkey::text || ' ' LIKE array_to_string(c.conkey, ' ') || ' %')
UNION ALL
SELECT 'Duplicate index', a.indexrelid::regclass::text,
  'its columns are the first columns of ' || b.indexrelid::regclass::text || ', which answers the same queries', pg_relation_size(a.indexrelid),
  'DROP INDEX ' || a.indexrelid::regclass::text
FROM pg_index a JOIN pg_index b ON a.indrelid = b.indrelid AND a.indexrelid <> b.indexrelid
WHERE a.indpred IS NULL AND b.indpred IS NULL AND a.indexprs IS NULL AND b.indexprs IS NULL AND NOT a.indisunique
  AND a.indrelid >= 16384
  AND (b.indkey::text LIKE a.indkey::text || ' %'
    OR b.indkey::text = a.indkey::text AND (b.indisunique OR a.indexrelid > b.indexrelid))
UNION ALL
SELECT 'Missing index', k.conrelid::regclass::text || ' (' || k.columns || ')',
  'the foreign key ' || quote_ident(k.conname) || ' has no index: each DELETE, and each change of the key, in ' || k.confrelid::regclass::text
    || ' reads the whole table', NULL::bigint,
  'CREATE INDEX ON ' || k.conrelid::regclass::text || ' (' || k.columns || ')'
FROM (SELECT c.conname, c.conrelid, c.confrelid, array_to_string(c.conkey, ' ') AS numbers,
   (SELECT string_agg(quote_ident(a.attname), ', ' ORDER BY n.place) FROM unnest(c.conkey) WITH ORDINALITY n (attnum, place)
     JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = n.attnum) AS columns
  FROM pg_constraint c WHERE c.contype = 'f') k
WHERE NOT EXISTS (SELECT 1 FROM pg_index i WHERE i.indrelid = k.conrelid AND i.indpred IS NULL AND i.indkey::text || ' ' LIKE k.numbers || ' %')
UNION ALL
SELECT 'No primary key', c.oid::regclass::text, 'rows can be named by no key: an UPDATE or DELETE of one row reads the table, and so does a replica',
  NULL::bigint, 'ALTER TABLE ' || c.oid::regclass::text
    || ' ADD PRIMARY KEY (...); without a column that can serve: ADD COLUMN id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY'
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind = 'r' AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname NOT LIKE 'pg_%'
  AND NOT EXISTS (SELECT 1 FROM pg_index i WHERE i.indrelid = c.oid AND i.indisprimary)
LIMIT 200"
    };
}

/// The findings for which a server's catalog suffices.
pub(crate) fn schema_findings(kind: Kind) -> &'static str {
    match kind {
        Kind::Clearway => FINDINGS_OF_SCHEMA,
        Kind::PostgreSql => schema_findings!(),
        Kind::MariaDb | Kind::MySql => mysql::FINDINGS_OF_SCHEMA,
    }
}

const FINDINGS_OF_SCHEMA: &str = "SELECT finding, object, evidence, bytes_saved, what_to_do FROM sys.findings \
     WHERE finding IN ('Unused index', 'Duplicate index', 'No primary key') OR finding = 'Missing index' AND evidence LIKE 'the foreign key %'";

const FINDINGS: &str = "SELECT * FROM sys.findings LIMIT 200";

const FINDINGS_POSTGRESQL: &str = concat!(
    "SELECT 'Idle blocker' AS finding, 'session ' || pid || coalesce(' of ' || application_name, '') AS object,
  'does nothing in its transaction and blocks others; it ran last: ' || left(query, 300) AS evidence, NULL::bigint AS bytes_saved,
  'Commit before the program waits for a user or another server. To end it now: SELECT pg_terminate_backend(' || pid || ')' AS what_to_do
FROM pg_stat_activity b WHERE state LIKE 'idle in transaction%'
  AND EXISTS (SELECT FROM pg_stat_activity w WHERE w.wait_event_type = 'Lock' AND b.pid = ANY (pg_blocking_pids(w.pid)))
UNION ALL
SELECT 'Transaction left open', 'session ' || pid || coalesce(' of ' || application_name, ''),
  'idle in its transaction for ' || round(extract(epoch FROM clock_timestamp() - state_change)) || ' s',
  NULL, 'Commit or roll back in every path of the program; idle_in_transaction_session_timeout ends such sessions'
FROM pg_stat_activity WHERE state LIKE 'idle in transaction%' AND clock_timestamp() - state_change > interval '1 minute'
UNION ALL
SELECT 'Full scans', schemaname || '.' || relname, seq_scan || ' scans have read ' || seq_tup_read || ' rows',
  NULL, 'Find the statement in pg_stat_statements and look at its plan with EXPLAIN: an index on the columns of its WHERE may be missing'
FROM pg_stat_user_tables WHERE seq_scan > 100 AND seq_tup_read / seq_scan > 10000
UNION ALL
",
    schema_findings!()
);

/// The statement of a table, or why there is none; `None`: no such table.
pub(crate) fn statement(name: &str, kind: Kind, at_us: Option<i64>, now_us: i64) -> Option<PanelAnswer> {
    let panel = PANELS.iter().find(|panel| panel.name == name)?;
    let sql = match kind {
        Kind::Clearway => &panel.clearway,
        Kind::PostgreSql => &panel.postgresql,
        Kind::MariaDb if name == FINDINGS_PANEL => &Query(mysql::FINDINGS_MARIADB),
        Kind::MariaDb | Kind::MySql => &panel.mysql,
    };
    // A moment's surroundings, or the last hour.
    let (from_us, to_us) = match at_us {
        Some(at) => (at.saturating_sub(30_000_000), at.saturating_add(30_000_000)),
        None => (now_us.saturating_sub(3_600_000_000), now_us.saturating_add(60_000_000)),
    };
    Some(match sql {
        Missing(why) => PanelAnswer::Missing(why),
        Sampled(note) if panel.name == "deadlocks" => PanelAnswer::Sampled(Samples::Deadlocks, note),
        Sampled(note) => PanelAnswer::Sampled(Samples::LockWaits(from_us, to_us), note),
        Query(sql) => PanelAnswer::Query(
            sql.replace("{from}", &(from_us / 1_000_000).to_string())
                .replace("{to}", &(to_us / 1_000_000 + 1).to_string()),
        ),
    })
}

/// A table of what was sampled, with the statement that the samples come from.
pub(crate) fn of_samples(history: &History, kind: Kind, what: Samples, note: &str) -> Value {
    let table = match what {
        Samples::Deadlocks => history.deadlocks(),
        Samples::LockWaits(from_us, to_us) => history.lock_waits(from_us, to_us),
    };
    json!({"columns": table.columns, "rows": table.rows, "note": note, "sql": sample::of_sessions(kind)})
}

/// A table for the page: the columns' names and the rows as texts.
pub(crate) async fn ask(link: &mut Link, sql: &str) -> Result<Value, String> {
    let mut table = link.table(sql, ROWS_MAX).await.map_err(|error| error.text)?;
    if sql == mysql::DEADLOCKS {
        table = status::deadlocks(&table);
    }
    Ok(json!({"columns": table.columns, "rows": table.rows, "sql": sql}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_stands_in_the_statement() {
        let Some(PanelAnswer::Query(sql)) = statement("lock_waits", Kind::Clearway, Some(100_000_000), 0) else {
            panic!()
        };
        assert!(sql.contains("to_timestamp(131)") && sql.contains("to_timestamp(70)"), "{sql}");
        for kind in [Kind::PostgreSql, Kind::MariaDb] {
            let asked = statement("lock_waits", kind, Some(100_000_000), 0);
            assert!(
                matches!(asked, Some(PanelAnswer::Sampled(Samples::LockWaits(70_000_000, 130_000_000), _))),
                "{asked:?}"
            );
        }
        assert!(matches!(statement("waits", Kind::PostgreSql, None, 0), Some(PanelAnswer::Missing(_))));
        assert!(statement("nothing", Kind::Clearway, None, 0).is_none());
    }
}
