//! Answers what the lock manager asks about sessions: which session an owner is. Writes long lock waits and deadlocks to the log.

use std::sync::{Arc, Weak};

use clearway_engine::catalog::Catalog;
use clearway_engine::db::Db;
use clearway_txn::lockmgr::LockTag;
use clearway_txn::lockmgr::history::{Facts, Outcome, Party, TEXT_MAX, WaitRecord, Witness};
use clearway_txn::lockmgr::report::DeadlockReport;

use super::backend::Backends;
use super::errors;
use super::interrupt::Reason;
use super::log_line::{Line, Severity};
use super::obstacle;
use clearway_values::types::datetime::Format;
use clearway_values::types::text::{self, Conversion, NoNames};
use clearway_values::types::{Datum, SqlType, oid};

/// So many of those that wait for a lock are named in a line of the log.
const QUEUE_SHOWN: usize = 50;

struct Sessions {
    db: Weak<Db>,
    backends: Arc<Backends>,
}

/// Has the lock manager of a database ask the sessions of `backends`.
pub fn install(db: &Arc<Db>, backends: &Arc<Backends>) {
    let (db_of, backends) = (Arc::downgrade(db), backends.clone());
    db.transactions().locks().history().witnessed_by(|| Box::new(Sessions { db: db_of, backends }));
}

/// Parameters as PostgreSQL's log shows them: `$1 = '7', $2 = NULL`.
pub fn parameters(params: &[Datum]) -> String {
    let format = Format::default();
    let conversion = Conversion { format: &format, now: 0, names: &NoNames };
    let mut out = String::new();
    for (i, value) in params.iter().enumerate() {
        if out.len() > TEXT_MAX {
            out.push_str(", ...");
            break;
        }
        let comma = if i == 0 { "" } else { ", " };
        if value.is_null() {
            out.push_str(&format!("{comma}${} = NULL", i + 1));
            continue;
        }
        let mut shown = text::output(SqlType::new(oid::TEXT), value, &conversion);
        if let Some((end, _)) = shown.char_indices().nth(200) {
            shown.truncate(end);
            shown.push_str("...");
        }
        out.push_str(&format!("{comma}${} = '{}'", i + 1, shown.replace('\'', "''")));
    }
    out
}

/// A wait as PostgreSQL names it: rows and keys are waited for as the transaction that has them.
fn awaited(record: &WaitRecord) -> (&'static str, String) {
    match &record.tag {
        LockTag::Row { .. } | LockTag::UniqueKey { .. } | LockTag::Place { .. } => {
            let txn = record.blocker.as_ref().and_then(|blocker| blocker.txn);
            ("ShareLock", format!("transaction {}", txn.map_or(0, |txn| txn.0)))
        }
        LockTag::Relation { database, relation } => {
            (record.mode.name(), format!("relation {relation} of database {database}"))
        }
        other => (record.mode.name(), obstacle::plain_name(other)),
    }
}

/// `while updating tuple in relation "t"`: there are no tuples' places here, so none is named.
fn context(catalog: &Catalog, tag: &LockTag, statement: &str) -> Option<String> {
    let name = obstacle::relation_of(catalog, tag)?;
    let first = statement.trim_start().get(..6).unwrap_or("").to_ascii_lowercase();
    let what = match (tag, &*first) {
        (LockTag::UniqueKey { .. } | LockTag::Place { .. }, _) => "inserting index tuple",
        (LockTag::Row { .. }, "update" | "insert") => "updating tuple",
        (LockTag::Row { .. }, "delete") => "deleting tuple",
        (LockTag::Row { .. }, _) => "locking tuple",
        _ => return None,
    };
    Some(format!("while {what} in relation \"{name}\""))
}

impl Sessions {
    fn line(&self, severity: Severity, code: &'static str, message: String, pid: i32) -> Line {
        let mut line = Line::new(severity, code, message);
        if let Some(backend) = self.backends.get(pid) {
            line = line.of(&backend);
        }
        line
    }

    fn tell_wait(&self, record: &WaitRecord, how: &str) {
        if !self.backends.logs(Severity::Log, true) {
            return;
        }
        let Some(db) = self.db.upgrade() else { return };
        let pid = record.waiter.pid;
        let (mode, what) = awaited(record);
        let ms = record.waited_ns as f64 / 1e6;
        let message = format!("process {pid} {how} {mode} on {what} after {ms:.3} ms");
        let catalog = db.catalog();
        let mut line = self.line(Severity::Log, "00000", message, pid);
        line.lock_wait = true;
        if how == "still waiting for" {
            line.detail = self.holders(&db, record);
        }
        let text = record.waiter.latest.as_deref().unwrap_or("");
        line.context = context(&catalog, &record.tag, text).unwrap_or_default();
        line.statement = text.to_owned();
        self.backends.log_line(line);
    }

    /// `Process holding the lock: 1. Wait queue: 2, 3.`, and what PostgreSQL does not know.
    fn holders(&self, db: &Db, record: &WaitRecord) -> String {
        let locks = db.transactions().locks();
        let pids = |pids: &[i32]| pids.iter().map(i32::to_string).collect::<Vec<_>>().join(", ");
        let holders: Vec<i32> = locks.holders_of(&record.tag).iter().map(|(owner, _)| owner.pid()).collect();
        let queue: Vec<i32> = locks.queue_of(&record.tag, QUEUE_SHOWN).iter().map(|(pid, _)| *pid).collect();
        let plural = if holders.len() == 1 { "Process" } else { "Processes" };
        let mut out = format!("{plural} holding the lock: {}. Wait queue: {}.", pids(&holders), pids(&queue));
        let mut tell = |who: &str, party: &Party| {
            let Some(taken) = &party.taken_by else { return };
            let when = match party.ago {
                0 => "by its latest statement".to_owned(),
                1 => "one statement ago".to_owned(),
                ago => format!("{ago} statements ago"),
            };
            out.push_str(&format!(
                "\n{who} {} has been {} and took the lock {when}: {taken}",
                party.pid, party.facts.state
            ));
        };
        match (&record.blocker, &record.root) {
            (Some(blocker), Some(root)) if root.pid != blocker.pid => {
                tell("Process", blocker);
                tell("At the root of the chain process", root);
            }
            (Some(blocker), _) => tell("Process", blocker),
            _ => {}
        }
        out
    }
}

impl Witness for Sessions {
    fn facts(&self, pid: i32) -> Facts {
        let Some(backend) = self.backends.get(pid) else { return Facts::default() };
        let activity = backend.activity.lock().clone();
        Facts {
            application: activity.application_name,
            user: backend.user.clone(),
            database: backend.database.clone(),
            parameters: activity.parameters.as_deref().map(parameters).unwrap_or_default(),
            state: activity.state.name().to_owned(),
        }
    }

    fn gave_up(&self, pid: i32) -> Option<Outcome> {
        let last = self.backends.get(pid).and_then(|backend| backend.interrupt.last());
        match last {
            Some(Reason::LockTimeout | Reason::StatementTimeout) => Some(Outcome::Timeout),
            other => other.map(|_| Outcome::Cancelled),
        }
    }

    fn waits_long(&self, record: &WaitRecord) {
        self.tell_wait(record, "still waiting for");
    }

    fn waited_long(&self, record: &WaitRecord) {
        let how = match record.outcome {
            Outcome::Granted => "acquired",
            Outcome::Deadlock => return,
            Outcome::Timeout => "timed out waiting for",
            _ => "gave up waiting for",
        };
        self.tell_wait(record, how);
    }

    fn context(&self, report: &DeadlockReport) -> String {
        let Some((db, victim)) = self.db.upgrade().zip(report.participants.first()) else { return String::new() };
        let text = victim.statements.last().map_or("", |text| text);
        context(&db.catalog(), &victim.wanted, text).unwrap_or_default()
    }

    fn deadlock(&self, report: &DeadlockReport) {
        let Some(victim) = report.participants.first() else { return };
        let error = errors::deadlock(Some(report));
        let mut line = self.line(Severity::Error, "40P01", error.message().to_owned(), victim.pid);
        let mut detail = error.fields().detail.clone().unwrap_or_default();
        for participant in &report.participants {
            let last = participant.statements.last().map_or("", |text| text);
            detail.push_str(&format!("\nProcess {}: {last}", participant.pid));
            if let Some(taken) = &participant.held_by_statement {
                detail.push_str(&format!("\nProcess {} holds what is waited for since: {taken}", participant.pid));
            }
        }
        line.detail = detail;
        line.hint = "See server log for query details.".to_owned();
        line.context = report.context.clone();
        line.statement = victim.statements.last().map_or("", |text| text).to_owned();
        self.backends.log_line(line);
    }
}
