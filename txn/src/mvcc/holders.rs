//! The holders of undo: open snapshots that can read old versions, and running transactions that may have to roll back.
//!
//! # Not here
//! Ending a holder. The server never does so by itself; `pg_terminate_backend` does.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::Ordering;
use std::time::Duration;

use clearway_base::waits::{now_ns, wall_us};
use clearway_storage::ids::{Lsn, TxnId};

use super::book::VersionBook;
use super::record::{UndoRecord, Writer};
use super::snapshots::{Horizon, OpenSnapshot};
use super::state::{Status, TxnState};

/// How many alarms are kept for views.
const ALARMS_KEPT: usize = 16;
/// An alarm is not repeated before this has passed.
const ALARM_PAUSE: Duration = Duration::from_secs(10);

/// A snapshot is named beside the greatest holder from this age on.
const OLD: Duration = Duration::from_secs(1);

/// What makes a session a holder of undo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HoldKind {
    /// An open snapshot that can read replaced versions.
    Snapshot,
    /// A transaction with changes that has not ended.
    Transaction,
}

/// A snapshot or a transaction that holds undo.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Snapshot or transaction.
    pub kind: HoldKind,
    /// The session's number, 0 for none.
    pub pid: i32,
    /// The transaction, if it has changed something.
    pub txn: Option<TxnId>,
    /// Where the snapshot reads.
    pub read_lsn: Option<Lsn>,
    /// Age of the snapshot or transaction, in nanoseconds.
    pub age_ns: u64,
    /// Bytes of undo that it holds, in memory and in the spill file.
    pub bytes: u64,
    /// The session's latest statement.
    pub statement: Option<Arc<str>>,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            HoldKind::Snapshot => "snapshot",
            HoldKind::Transaction => "transaction",
        };
        if self.bytes > 0 {
            write!(f, "{} bytes by the ", self.bytes)?;
        }
        write!(f, "{kind} of process {}", self.pid)?;
        if let Some(txn) = self.txn {
            write!(f, ", transaction {txn}")?;
        }
        write!(f, ", for {} s", self.age_ns / 1_000_000_000)?;
        match &self.statement {
            Some(text) => write!(f, ", in: {text}"),
            None => Ok(()),
        }
    }
}

/// Undo has exceeded its memory.
#[derive(Clone, Debug)]
pub struct Alarm {
    /// When, by the wall clock, in microseconds since 1970.
    pub at_us: i64,
    /// When, by the clock of wait events.
    pub at_ns: u64,
    /// The budget in bytes.
    pub budget: u64,
    /// Bytes in the spill file before.
    pub spilled: u64,
    /// The greatest holder.
    pub holder: Option<Holder>,
    /// The oldest snapshot of another session: whatever is committed after it stays in the undo memory as long as it is open, what a
    /// transaction that runs now has changed too.
    pub oldest: Option<Holder>,
}

impl fmt::Display for Alarm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "undo fills its memory of {} bytes and goes to disk ({} bytes so far)", self.budget, self.spilled)?;
        match &self.holder {
            Some(holder) => write!(f, "; most is held: {holder}")?,
            None => f.write_str("; no snapshot and no transaction holds it: the log is behind")?,
        }
        match &self.oldest {
            Some(oldest) => write!(f, "; the oldest snapshot keeps all that is replaced since: {oldest}"),
            None => Ok(()),
        }
    }
}

/// A callback for alarms.
type Listener = Box<dyn Fn(&Alarm) + Send + Sync>;

/// The callback for alarms, once one is set.
#[derive(Default)]
pub(super) struct Listeners(OnceLock<Listener>);

impl fmt::Debug for Listeners {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Listeners")
    }
}

/// What undo takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UndoUsage {
    /// Bytes in memory.
    pub memory_bytes: u64,
    /// The memory budget, in bytes.
    pub budget_bytes: u64,
    /// Bytes of the spill file, holes included.
    pub file_bytes: u64,
    /// Bytes ever written to it.
    pub written_bytes: u64,
    /// Spans in it.
    pub spans: u64,
    /// Alarms raised since the start.
    pub alarms: u64,
}

impl VersionBook {
    /// What undo takes.
    pub fn usage(&self) -> UndoUsage {
        UndoUsage {
            memory_bytes: self.undo.bytes() + self.pruner.bytes(),
            budget_bytes: self.undo.ceiling(),
            file_bytes: self.spill_file().map_or(0, |file| file.bytes()),
            written_bytes: self.spill_file().map_or(0, |file| file.written_bytes()),
            spans: self.undo.spans().len() as u64,
            alarms: self.budget.alarms_total.load(Ordering::Relaxed),
        }
    }

    /// The holders of undo, the greatest first. Reads every record in memory. A span counts for the oldest snapshot that may need it.
    pub fn holders(&self) -> Vec<Holder> {
        let horizon = self.snapshots.horizon();
        let mut tally = Tally::default();
        self.undo.for_each(|record| tally.add(record, &horizon));
        for (_, span) in self.undo.spans() {
            let reader = horizon.active().first().copied().filter(|lsn| *lsn < span.through());
            match span.writer() {
                Some(txn) => tally.transaction(txn, span.live_bytes() as u64),
                None => _ = reader.map(|lsn| *tally.snapshots.entry(lsn).or_default() += span.live_bytes() as u64),
            }
        }
        let now = now_ns();
        let mut holders: Vec<Holder> =
            tally.transactions.values().map(|(txn, bytes)| of_transaction(txn, *bytes)).collect();
        for snapshot in self.snapshots.open() {
            // Of several snapshots at one LSN, the oldest is charged with all bytes.
            if let Some(bytes) = tally.snapshots.remove(&snapshot.read_lsn) {
                holders.push(of_snapshot(&snapshot, bytes, now));
            }
        }
        holders.sort_by(|a, b| b.bytes.cmp(&a.bytes).then(b.age_ns.cmp(&a.age_ns)));
        holders
    }

    /// The latest alarms, oldest first.
    pub fn alarms(&self) -> Vec<Alarm> {
        self.budget.alarms.lock().iter().cloned().collect()
    }

    /// Sets the callback for alarms. Only the first call has an effect.
    pub fn on_alarm(&self, listener: impl Fn(&Alarm) + Send + Sync + 'static) {
        let _ = self.budget.listeners.0.set(Box::new(listener));
    }

    /// The oldest snapshot that is old enough to be told of, unless it is the greatest holder's own.
    fn oldest_beside(&self, holder: Option<&Holder>, now: u64) -> Option<Holder> {
        let open = self.snapshots.open();
        let oldest = open.iter().min_by_key(|snapshot| snapshot.read_lsn)?;
        let told = of_snapshot(oldest, 0, now);
        let is_old = told.age_ns >= OLD.as_nanos() as u64;
        (is_old && holder.is_none_or(|holder| holder.pid != told.pid)).then_some(told)
    }

    pub(super) fn raise_alarm(&self) {
        let now = now_ns();
        let last = self.budget.alarms.lock().back().map(|alarm| alarm.at_ns);
        if last.is_some_and(|at| now.saturating_sub(at) < ALARM_PAUSE.as_nanos() as u64) {
            return;
        }
        let holder = self.holders().into_iter().next();
        let alarm = Alarm {
            at_us: wall_us(),
            at_ns: now,
            budget: self.undo.ceiling(),
            spilled: self.spill_file().map_or(0, |file| file.bytes()),
            oldest: self.oldest_beside(holder.as_ref(), now),
            holder,
        };
        if let Some(listener) = self.budget.listeners.0.get() {
            listener(&alarm);
        }
        self.budget.alarms_total.fetch_add(1, Ordering::Relaxed);
        let mut alarms = self.budget.alarms.lock();
        if alarms.len() == ALARMS_KEPT {
            alarms.pop_front();
        }
        alarms.push_back(alarm);
    }
}

/// Bytes by holder.
#[derive(Default)]
struct Tally {
    snapshots: HashMap<Lsn, u64>,
    transactions: HashMap<TxnId, (Arc<TxnState>, u64)>,
}

impl Tally {
    fn transaction(&mut self, txn: &Arc<TxnState>, bytes: u64) {
        self.transactions.entry(txn.id()).or_insert_with(|| (txn.clone(), 0)).1 += bytes;
    }

    fn add(&mut self, record: &UndoRecord, horizon: &Horizon) {
        let bytes = record.bytes() as u64;
        match (record.status(), &record.writer) {
            (Status::Active, Writer::Live(txn)) => self.transaction(txn, bytes),
            (Status::Committed(commit), _) => {
                let from = if record.dropped { Lsn::ZERO } else { record.before_lsn };
                if let Some(lsn) = horizon.reader(from, commit) {
                    *self.snapshots.entry(lsn).or_default() += bytes;
                }
            }
            _ => {}
        }
    }
}

fn of_transaction(txn: &Arc<TxnState>, bytes: u64) -> Holder {
    let owner = txn.owner();
    Holder {
        kind: HoldKind::Transaction,
        pid: owner.pid(),
        txn: Some(txn.id()),
        read_lsn: None,
        age_ns: now_ns().saturating_sub(txn.since_ns()),
        bytes,
        statement: owner.current_statement(),
    }
}

fn of_snapshot(snapshot: &OpenSnapshot, bytes: u64, now: u64) -> Holder {
    let owner = snapshot.owner.as_ref();
    Holder {
        kind: HoldKind::Snapshot,
        pid: owner.map_or(0, |owner| owner.pid()),
        txn: owner.and_then(|owner| owner.txn()),
        read_lsn: Some(snapshot.read_lsn),
        age_ns: now.saturating_sub(snapshot.since_ns),
        bytes,
        statement: owner.and_then(|owner| owner.current_statement()),
    }
}
