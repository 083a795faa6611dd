//! The page of one statement: its figures, its waits, the distribution of its durations, its trend, its plan. The page names what the
//! server does not record.
//!
//! # Invariants
//! - STP-1: the recorded text of a statement is only explained, never executed. It is sent as one statement behind EXPLAIN, by a protocol
//!   that accepts one statement only, in a session that is read only (CON-1).

use crate::link::{Link, LinkError, Table};
use crate::sample::History;
use crate::source::Kind;
use crate::trend::Trends;
use serde_json::{Value, json};

/// Rows of a part.
const ROWS_MAX: usize = 200;
/// Parameters of a statement that is explained.
const PARAMETERS_MAX: usize = 1000;

/// The number of a statement as servers give it: a whole number, or hexadecimal digits.
pub(crate) fn is_id(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    (1..=64).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// What a part is read with: a statement, with `{id}` for the number; else why there is none.
type Sql = Result<&'static str, &'static str>;

struct Parts {
    figures: &'static str,
    waits: Sql,
    times: Sql,
}

const OF_CLEARWAY: Parts = Parts {
    figures: "SELECT query, datname, application_name, usename, calls, errors, rows, total_ms, mean_ms, p50_ms, p95_ms, p99_ms, max_ms, wait_ms, \
              rows_examined, full_scans, missed_indexes, n_plus_one_calls, first_seen, tags
FROM clearway_statements WHERE queryid = {id} ORDER BY clearway_statements.total_ms DESC LIMIT 200",
    waits: Ok("SELECT wait_event_type, wait_event, sum(waits) AS waits, round(sum(total_ms)::numeric, 1) AS total_ms
FROM clearway_statement_waits WHERE queryid = {id} GROUP BY 1, 2 ORDER BY 4 DESC LIMIT 200"),
    times: Ok("SELECT from_ms, to_ms, sum(executions) AS executions
FROM clearway_statement_times WHERE queryid = {id} GROUP BY 1, 2 ORDER BY 1 LIMIT 200"),
};

const SAMPLED: &str =
    "This server does not record what a statement waits for; below is what the console has sampled in the last hour.";

const NO_WAITS_MYSQL: &str = "This server does not record what a statement waits for, and tells the digest of a statement only when it has ended: what the console samples can't be assigned.";

const OF_POSTGRESQL: Parts = Parts {
    figures: "SELECT s.query, d.datname, pg_get_userbyid(s.userid) AS usename, s.calls, s.rows, s.total_exec_time AS total_ms, s.mean_exec_time AS mean_ms,
  s.min_exec_time AS min_ms, s.max_exec_time AS max_ms, s.stddev_exec_time AS deviation_ms, s.shared_blks_hit, s.shared_blks_read,
  s.shared_blks_dirtied, s.temp_blks_read, s.temp_blks_written, s.wal_bytes
FROM pg_stat_statements s LEFT JOIN pg_database d ON d.oid = s.dbid WHERE s.queryid = {id} ORDER BY s.total_exec_time DESC LIMIT 200",
    waits: Err(SAMPLED),
    times: Err("PostgreSQL does not record how the times of a statement are spread: only the shortest, the mean, the longest and the deviation, above."),
};

const OF_MYSQL: Parts = Parts {
    figures: "SELECT digest_text AS query, schema_name AS datname, count_star AS calls, sum_errors AS errors, sum_rows_sent AS `rows`, round(sum_timer_wait / 1e9, 3) AS total_ms,
  round(min_timer_wait / 1e9, 3) AS min_ms, round(avg_timer_wait / 1e9, 3) AS mean_ms, round(max_timer_wait / 1e9, 3) AS max_ms, round(sum_lock_time / 1e9, 3) AS table_lock_ms,
  sum_rows_examined AS rows_examined, sum_rows_affected AS rows_changed, sum_created_tmp_disk_tables AS temporary_tables_on_disk,
  sum_sort_rows AS rows_sorted, sum_no_index_used AS without_index, first_seen, last_seen
FROM performance_schema.events_statements_summary_by_digest WHERE digest = '{id}' ORDER BY sum_timer_wait DESC LIMIT 200",
    waits: Err(NO_WAITS_MYSQL),
    times: Err("This server does not record how the times of a statement are spread: only the shortest, the mean and the longest, above."),
};

fn parts(kind: Kind) -> &'static Parts {
    match kind {
        Kind::Clearway => &OF_CLEARWAY,
        Kind::PostgreSql => &OF_POSTGRESQL,
        Kind::MariaDb | Kind::MySql => &OF_MYSQL,
    }
}

/// The page.
pub(crate) async fn page(link: &mut Link, kind: Kind, id: &str, history: &History, trends: &Trends) -> Value {
    let parts = parts(kind);
    let sql = parts.figures.replace("{id}", id);
    let figures = match link.table(&sql, ROWS_MAX).await {
        Ok(table) => table,
        Err(error) => return json!({"error": error.text, "sql": sql}),
    };
    let Some(row) = figures.rows.first() else {
        return json!({"error": "the server has no statement of this number (any more)", "sql": sql});
    };
    let field = |name: &str| {
        let at = figures.columns.iter().position(|column| column == name)?;
        row.get(at).cloned().flatten()
    };
    let (text, database) = (field("query").unwrap_or_default(), field("datname"));
    let mut waits = part(link, parts.waits, id).await;
    if kind == Kind::PostgreSql {
        let sampled = history.of_statement(id);
        (waits["columns"], waits["rows"]) = (json!(sampled.columns), json!(sampled.rows));
    }
    let times = part(link, parts.times, id).await;
    let plan = plan(link, kind, id, &text, database.as_deref()).await;
    let of_figures = json!({"columns": figures.columns, "rows": figures.rows, "sql": sql});
    json!({"query": text, "figures": of_figures, "waits": waits, "times": times, "trend": trends.of(id), "plan": plan})
}

async fn part(link: &mut Link, sql: Sql, id: &str) -> Value {
    let sql = match sql {
        Ok(sql) => sql.replace("{id}", id),
        Err(why) => return json!({"missing": why}),
    };
    match link.table(&sql, ROWS_MAX).await {
        Ok(Table { columns, rows }) => json!({"columns": columns, "rows": rows, "sql": sql}),
        Err(error) => json!({"missing": error.text, "sql": sql}),
    }
}

/// The plan for any constants, as lines; or why there is none.
async fn plan(link: &mut Link, kind: Kind, id: &str, text: &str, database: Option<&str>) -> Value {
    let planned = match kind {
        Kind::Clearway => of_clearway(link, text).await,
        Kind::PostgreSql => of_postgresql(link, text, database).await,
        Kind::MariaDb | Kind::MySql => of_mysql(link, id).await,
    };
    match planned {
        Ok(planned) => planned,
        Err(error) => json!({"missing": format!("There is no plan: {}", error.text)}),
    }
}

fn told(text: impl Into<String>) -> LinkError {
    LinkError { text: text.into(), code: None }
}

async fn of_clearway(link: &mut Link, text: &str) -> Result<Value, LinkError> {
    let sql = format!("EXPLAIN (GENERIC_PLAN) {text}");
    // STP-1
    let lines = link.one_statement(&sql).await?;
    Ok(json!({"lines": lines, "sql": sql}))
}

/// PostgreSQL 16 has EXPLAIN (GENERIC_PLAN); a prepared statement gives the same from 13 on.
async fn of_postgresql(link: &mut Link, text: &str, database: Option<&str>) -> Result<Value, LinkError> {
    let here = link.field("SELECT current_database()").await?;
    if database.is_some() && here.as_deref() != database {
        let database = database.unwrap_or_default();
        return Err(told(format!("the statement ran in database \"{database}\", and the console is in another one")));
    }
    link.table("SET plan_cache_mode = force_generic_plan", 0).await?;
    let prepare = format!("PREPARE clearway_plan AS {text}");
    // STP-1
    link.one_statement(&prepare).await?;
    let count = "SELECT cardinality(parameter_types) FROM pg_prepared_statements WHERE name = 'clearway_plan'";
    let count = link.field(count).await?.and_then(|count| count.parse().ok()).unwrap_or(0_usize);
    if count > PARAMETERS_MAX {
        return Err(told(format!("it has {count} parameters")));
    }
    let nulls = vec!["NULL"; count].join(", ");
    let sql = if count == 0 {
        "EXPLAIN EXECUTE clearway_plan".to_owned()
    } else {
        format!("EXPLAIN EXECUTE clearway_plan({nulls})")
    };
    let lines = link.table(&sql, ROWS_MAX).await?.rows;
    let lines: Vec<String> = lines.into_iter().filter_map(|row| row.into_iter().next().flatten()).collect();
    Ok(json!({"lines": lines, "sql": format!("SET plan_cache_mode = force_generic_plan;\n{prepare};\n{sql}")}))
}

/// Of the latest execution whose text the server still has.
async fn of_mysql(link: &mut Link, id: &str) -> Result<Value, LinkError> {
    let of = |table: &str| {
        format!(
            "SELECT current_schema, sql_text, timer_start FROM performance_schema.{table} WHERE digest = '{id}' AND sql_text IS NOT NULL"
        )
    };
    let sql = format!(
        "{} UNION ALL {} UNION ALL {} ORDER BY timer_start DESC LIMIT 1",
        of("events_statements_current"),
        of("events_statements_history"),
        of("events_statements_history_long")
    );
    let found = link.table(&sql, 1).await?;
    let mut row = found.rows.into_iter().next().unwrap_or_default().into_iter();
    let (schema, text) = (row.next().flatten(), row.next().flatten());
    let Some(text) = text else {
        return Err(told(
            "the server keeps a digest without constants; the text of an execution is in events_statements_history only if that consumer is on, and for a while",
        ));
    };
    let begins = |word: &str| text.get(..word.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(word));
    if !["select", "with", "("].into_iter().any(begins) {
        return Err(told(
            "this server explains a change only in a session that may change something, and the console's may not",
        ));
    }
    if let Some(schema) = schema {
        link.table(&format!("USE `{}`", schema.replace('`', "``")), 0).await?;
    }
    let sql = format!("EXPLAIN {text}");
    // STP-1: this client never asks for several statements in one message.
    let table = link.table(&sql, ROWS_MAX).await?;
    Ok(json!({"columns": table.columns, "rows": table.rows, "sql": sql}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_statements() {
        for good in ["1", "-8952278593609390195", "a0ff", &"f".repeat(64)] {
            assert!(is_id(good), "{good}");
        }
        for bad in ["", "-", "1 or 1=1", "'", "1;", "--", &"1".repeat(65)] {
            assert!(!is_id(bad), "{bad}");
        }
    }
}
