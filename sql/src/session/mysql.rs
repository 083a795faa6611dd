//! USE, CALL, SHOW ENGINE, and UPDATE of performance_schema's switches.
//!
//! SHOW ENGINE INNODB STATUS queries the system views; this module formats the result as MySQL does.

use super::client::Client;
use super::run;
use super::session::Session;
use super::utility::text_row;
use crate::context::core::Core;
use crate::context::instruments::{all, name_of_class, switch};
use crate::context::recorded::Truncated;
use crate::error::{Result, SqlError};
use crate::planner::plan::OutputColumn;
use crate::syntax::ast::{Expr, ExprKind, FromItem, QualName, Query, QueryBody, Select, Target};
use crate::syntax::stmt::{Mysql, Statement, Update};
use crate::types::{Datum, oid};
use clearway_base::sync::classes;
use clearway_base::waits::{self, Instrument};
use std::fmt::Write as _;
use std::sync::Arc;

/// The schemas that USE knows beside those of the user.
const SCHEMAS: &[&str] = &["performance_schema", "sys", "ps_helper", "information_schema"];
/// Rows of a query that are looked at.
const ROWS_MAX: u64 = 10_000;

/// The columns of a statement's result.
pub(super) fn columns(statement: &Mysql) -> Option<Vec<OutputColumn>> {
    let named =
        |name: &&str| OutputColumn { name: (*name).to_owned(), ty: oid::TEXT.into(), origin: (0, 0), shape: None };
    match statement {
        Mysql::Use(_) | Mysql::Setup(_) => None,
        Mysql::Call(..) => Some(["summary"].iter().map(named).collect()),
        Mysql::ShowEngine(_) => Some(["Type", "Name", "Status"].iter().map(named).collect()),
    }
}

/// Runs one; its command tag.
pub(super) async fn run(session: &mut Session, statement: &Mysql, client: &mut dyn Client) -> Result<String> {
    let core = session.core.clone();
    if let Some(columns) = columns(statement) {
        run::describe(&columns, &[], client);
    }
    Ok(match statement {
        Mysql::Use(schema) => {
            use_schema(&core, schema)?;
            "USE".to_owned()
        }
        Mysql::Call(name, args) => {
            truncate_all(&core, name, args, client)?;
            "CALL".to_owned()
        }
        Mysql::ShowEngine(true) => {
            let used = classes().into_iter().filter(|class| class.slow > 0);
            for class in used {
                let name = name_of_class(&class);
                let name = name.rsplit('/').next().unwrap_or("");
                text_row(&["InnoDB", name, &format!("os_waits={}", class.parks)], client);
            }
            "SHOW".to_owned()
        }
        Mysql::ShowEngine(false) => {
            let status = Box::pin(status(&core)).await?;
            text_row(&["InnoDB", "", &status], client);
            "SHOW".to_owned()
        }
        Mysql::Setup(update) => format!("UPDATE {}", Box::pin(setup(&core, update)).await?),
    })
}

/// `USE name`: the schema comes first in the search path.
fn use_schema(core: &Core, schema: &str) -> Result<()> {
    let catalog = core.catalog();
    if !SCHEMAS.contains(&schema) && catalog.schema(core.database, schema).is_none() {
        let message = format!("schema \"{schema}\" does not exist");
        let hint = "Another database is another connection.";
        return Err(SqlError::new("3F000", message).hint(hint));
    }
    let quoted = schema.replace('"', "\"\"");
    core.set("search_path", Some(&format!("\"{quoted}\", public")), false)
}

/// `truncate_all()`: performance_schema counts from now on.
fn truncate_all(core: &Core, name: &QualName, args: &[Expr], client: &mut dyn Client) -> Result<()> {
    may_switch(core, name.name())?;
    if args.len() > 1 {
        return Err(
            SqlError::new("42883", format!("procedure {} takes one argument at most", name.name())).at(name.pos)
        );
    }
    core.backends.statements.reset();
    core.backends.recorded.clear();
    *core.backends.truncated.lock() = Some(Truncated { totals: waits::totals(), classes: classes() });
    text_row(&["Truncated 5 tables"], client);
    Ok(())
}

fn may_switch(core: &Core, what: &str) -> Result<()> {
    let catalog = core.catalog();
    if core.role(&catalog).is_some_and(|role| role.superuser) {
        return Ok(());
    }
    Err(SqlError::new("42501", format!("permission denied for {what}")))
}

/// The rows of a query within the open transaction.
async fn rows_of(core: &Arc<Core>, statement: &Statement) -> Result<Vec<Vec<Datum>>> {
    let request = run::Request {
        statement,
        text: &Arc::from("SHOW ENGINE INNODB STATUS"),
        params: Arc::from([]),
        types: &[],
        columns: None,
        alone: false,
        transaction_started: core.transaction_started(),
        latest: false,
        system: true,
        measured: false,
        custom: false,
        body: None,
        steering: None,
    };
    let (mut execution, _) = run::begin(core, request, None).await?;
    execution.take(core, ROWS_MAX).await
}

/// The rows of a query that gives texts.
async fn texts(core: &Arc<Core>, sql: &str) -> Result<Vec<Vec<String>>> {
    let parsed = crate::syntax::parse(sql)?;
    let Some(first) = parsed.first() else { return Ok(Vec::new()) };
    let rows = rows_of(core, &first.statement).await?;
    let text = |value: &Datum| value.as_str().unwrap_or("").to_owned();
    Ok(rows.iter().map(|row| row.iter().map(text).collect()).collect())
}

/// UPDATE of setup_instruments or setup_consumers; how many rows.
async fn setup(core: &Arc<Core>, update: &Update) -> Result<usize> {
    may_switch(core, "table setup_instruments")?;
    let unsupported = |what: &str| Err(SqlError::unsupported(what).at(update.table.name.pos));
    if update.with.is_some() || !update.from.is_empty() || !update.returning.is_empty() {
        return unsupported("WITH, FROM or RETURNING in an UPDATE of a table of performance_schema");
    }
    let name = Expr {
        kind: Box::new(ExprKind::Column(QualName { parts: vec!["name".to_owned()], pos: update.table.name.pos })),
        pos: update.table.name.pos,
        height: 1,
    };
    let mut targets = vec![name];
    let mut columns = Vec::new();
    for assignment in &update.set {
        let [(column, pos)] = assignment.columns.as_slice() else {
            return unsupported("SET of several columns at once");
        };
        let is_known = column == "enabled" || (column == "timed" && update.table.name.name() == "setup_instruments");
        if !is_known {
            return Err(SqlError::new("42703", format!("column \"{column}\" can't be changed")).at(*pos));
        }
        columns.push(column.as_str());
        targets.push(assignment.value.clone());
    }
    let height = targets.iter().chain(&update.filter).map(|e| e.height).max().unwrap_or(1);
    let select = Select {
        distinct: None,
        targets: targets.into_iter().map(|expr| Target::Expr { expr, alias: None }).collect(),
        from: vec![FromItem::Table(update.table.clone())],
        filter: update.filter.clone(),
        group_by: Vec::new(),
        group_distinct: false,
        having: None,
        windows: Vec::new(),
    };
    let query = Query {
        with: None,
        body: QueryBody::Select(Box::new(select)),
        order_by: Vec::new(),
        limit: None,
        offset: None,
        ties: false,
        locking: Vec::new(),
        height,
        pos: update.table.name.pos,
    };
    let rows = rows_of(core, &Statement::Query(Box::new(query))).await?;
    let known = all();
    for row in &rows {
        let name = row.first().and_then(Datum::as_str).unwrap_or("");
        let mut to = known.get(name).copied().unwrap_or(Instrument { enabled: true, timed: true });
        for (column, value) in columns.iter().zip(row.iter().skip(1)) {
            let on = yes(column, value)?;
            if *column == "timed" { to.timed = on } else { to.enabled = on }
        }
        let done = match update.table.name.name() {
            "setup_consumers" => core.backends.recorded.switch(name, to.enabled),
            _ => switch(name, to),
        };
        if !done {
            let what = if to.enabled { "on" } else { "off" };
            return Err(SqlError::unsupported(format!("{name} can't be switched {what}: that")));
        }
    }
    Ok(rows.len())
}

fn yes(column: &str, value: &Datum) -> Result<bool> {
    match value.as_str().map(str::to_ascii_uppercase).as_deref() {
        Some("YES") => Ok(true),
        Some("NO") => Ok(false),
        _ => Err(SqlError::new("22023", format!("\"{column}\" is either 'YES' or 'NO'"))),
    }
}

const DEADLOCK: &str = "SELECT happened::text, number::text, pid::text, coalesce(application_name, ''), coalesce(usename, ''), \
    coalesce(statements, ''), coalesce(wants, ''), coalesce(wants_mode, ''), coalesce(holds, ''), coalesce(holds_modes, ''), \
    coalesce(held_by_statement, ''), victim::text, place::text FROM clearway_deadlocks \
    WHERE number = (SELECT max(number) FROM clearway_deadlocks) ORDER BY place";
const TRANSACTIONS: &str = "SELECT coalesce(t.transactionid::text, t.virtualtransaction), t.state, floor(t.age_ms / 1000)::bigint::text, \
    t.locks::text, t.undo_bytes::text, t.pid::text, t.usename, t.datname, t.query, coalesce(floor(w.waited_ms / 1000)::bigint::text, ''), \
    coalesce(w.object, ''), coalesce(w.key, ''), coalesce(w.mode, ''), coalesce(w.blocked_by::text, '') \
    FROM clearway_transactions t LEFT JOIN (SELECT DISTINCT ON (pid) * FROM clearway_lock_tree WHERE blocked_by IS NOT NULL ORDER BY pid) w \
    ON w.pid = t.pid WHERE t.pid <> pg_backend_pid()";
const FILES: &str = "SELECT event_name, count_read::text, count_write::text, count_misc::text, sum_number_of_bytes_read::text, \
    sum_number_of_bytes_write::text FROM performance_schema.file_summary_by_event_name WHERE count_star > 0 ORDER BY 1";
const LOG: &str = "SELECT end_lsn::text, durable_lsn::text, flushes::text FROM clearway_log";
const ROWS: &str = "SELECT coalesce(sum(tup_inserted), 0)::text, coalesce(sum(tup_updated), 0)::text, coalesce(sum(tup_deleted), 0)::text, \
    coalesce(sum(tup_returned), 0)::text, coalesce(sum(blks_read), 0)::text, coalesce(sum(blks_hit), 0)::text FROM pg_stat_database";

/// SHOW ENGINE INNODB STATUS.
async fn status(core: &Arc<Core>) -> Result<String> {
    let mut out = String::new();
    let rule = "=====================================";
    let now = texts(core, "SELECT to_char(now(), 'YYYY-MM-DD HH24:MI:SS')").await?;
    let now = now.first().and_then(|row| row.first()).cloned().unwrap_or_default();
    let _ = writeln!(out, "{rule}\n{now} INNODB MONITOR OUTPUT\n{rule}");
    semaphores(&mut out);
    deadlock(&mut out, &texts(core, DEADLOCK).await?);
    transactions(&mut out, &texts(core, TRANSACTIONS).await?);
    section(&mut out, "FILE I/O");
    for row in texts(core, FILES).await? {
        let _ = writeln!(
            out,
            "{}: {} reads ({} bytes), {} writes ({} bytes), {} fsyncs and others",
            row[0], row[1], row[4], row[2], row[5], row[3]
        );
    }
    section(&mut out, "LOG");
    for row in texts(core, LOG).await? {
        let _ = writeln!(
            out,
            "Log sequence number          {}\nLog flushed up to            {}\n{} log flushes done",
            row[0], row[1], row[2]
        );
    }
    for row in texts(core, ROWS).await? {
        section(&mut out, "BUFFER POOL AND MEMORY");
        let _ = writeln!(out, "Leaves read from disk {}, found in memory {}", row[4], row[5]);
        section(&mut out, "ROW OPERATIONS");
        let _ = writeln!(
            out,
            "Number of rows inserted {}, updated {}, deleted {}, read {}",
            row[0], row[1], row[2], row[3]
        );
    }
    let _ = writeln!(out, "----------------------------\nEND OF INNODB MONITOR OUTPUT\n============================");
    Ok(out)
}

fn section(out: &mut String, title: &str) {
    let rule = "-".repeat(title.len());
    let _ = writeln!(out, "{rule}\n{title}\n{rule}");
}

/// The sessions that wait for a mutex or latch, for how long, and where it was taken.
fn semaphores(out: &mut String) {
    section(out, "SEMAPHORES");
    let now_ns = waits::now_ns();
    let all = classes();
    let _ = writeln!(
        out,
        "OS WAIT ARRAY INFO: reservation count {}, signal count {}",
        all.iter().map(|class| class.slow).sum::<u64>(),
        all.iter().map(|class| class.parks).sum::<u64>()
    );
    for class in all.iter().filter(|class| class.waiting > 0) {
        let _ = writeln!(out, "--{} thread(s) wait for {}", class.waiting, name_of_class(class));
        if let Some(holder) = &class.holder {
            let seconds = now_ns.saturating_sub(holder.since_ns) as f64 / 1e9;
            let _ = writeln!(
                out,
                "a writer (thread id {}) has reserved it for {seconds:.2} seconds, last time write locked in {}",
                holder.session, holder.site
            );
        }
    }
    for session in waits::sessions() {
        let Some(wait) = session.current().filter(|wait| wait.event.class() == waits::WaitClass::LwLock) else {
            continue;
        };
        let seconds = now_ns.saturating_sub(wait.since_ns) as f64 / 1e9;
        let _ = writeln!(
            out,
            "--Thread {} has waited for {seconds:.2} seconds the semaphore: {}",
            session.id(),
            wait.event.name()
        );
    }
}

fn deadlock(out: &mut String, rows: &[Vec<String>]) {
    let Some(first) = rows.first() else { return };
    section(out, "LATEST DETECTED DEADLOCK");
    let _ = writeln!(out, "{}", first[0]);
    for (n, row) in rows.iter().enumerate() {
        let n = n + 1;
        let _ = writeln!(out, "*** ({n}) TRANSACTION:\nMySQL thread id {}, {} {}\n{}", row[2], row[4], row[3], row[5]);
        let _ = writeln!(out, "*** ({n}) HOLDS THE LOCK(S):\n{} {}, taken by: {}", row[8], row[9], row[10]);
        let _ = writeln!(out, "*** ({n}) WAITING FOR THIS LOCK TO BE GRANTED:\n{} {}", row[6], row[7]);
    }
    if let Some(victim) = rows.iter().position(|row| row[11] == "true" || row[11] == "t") {
        let _ = writeln!(out, "*** WE ROLL BACK TRANSACTION ({})", victim + 1);
    }
}

fn transactions(out: &mut String, rows: &[Vec<String>]) {
    section(out, "TRANSACTIONS");
    for row in rows {
        let state = if row[1] == "active" { "ACTIVE" } else { "ACTIVE (idle)" };
        let waits = if row[9].is_empty() { "" } else { "LOCK WAIT " };
        let _ = writeln!(
            out,
            "---TRANSACTION {}, {state} {} sec\n{waits}{} lock(s), undo {} bytes",
            row[0], row[2], row[3], row[4]
        );
        let _ = writeln!(out, "MySQL thread id {}, {} {}\n{}", row[5], row[6], row[7], row[8]);
        if !row[9].is_empty() {
            let key = if row[11].is_empty() { String::new() } else { format!(" key {}", row[11]) };
            let _ = writeln!(
                out,
                "------- TRX HAS BEEN WAITING {} SEC FOR THIS LOCK TO BE GRANTED:\n{}{key} lock mode {}, held by thread {}\n------------------",
                row[9], row[10], row[12], row[13]
            );
        }
    }
}
