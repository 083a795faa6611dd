//! The history of lock waits: which session waited for which lock, behind which session, which statement had taken the lock, and how the
//! wait ended.
//!
//! # Life of an entry
//! ```text
//! a wait begins: its direct blocker is noted (Culprit), and the session at the end of the chain (Root)
//!   │  once a second `look_at_waits` follows the chains again and reports long waits to the log
//!   ▼
//! it ends after `min_ns` or more ──► a record of its own, or one more in the count of its group
//! ```
//! Waits form a group (`Fold`) if they have the same lock tag, the same digest of the waiting statement, and the same digest of the statement
//! at the end of the chain. Of each group the first [`SINGLES`] waits in a minute are records of their own, and so is the longest; the
//! others are a count, a sum, a maximum and a histogram.
//!
//! # Invariants
//! - HIS-1: records and groups are bounded: [`RECORDS_MAX`], [`FOLDS_MAX`], [`TEXT_MAX`] bytes of each text.
//! - HIS-2: a wait counts once, in a record or in a group's count. A request that was granted before its session was suspended is no wait, as
//!   in the books.
//!
//! # Latch order
//! `Owner.waiting`, `Owner.held` and `Waiter.root` one at a time; then the history's own mutex. The [`Witness`] is called with none of them
//! held.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use clearway_base::sync::Mutex;
use clearway_base::waits::{HISTOGRAM_BUCKETS, bucket_of, clock};
use clearway_storage::ids::TxnId;
use foldhash::fast::RandomState;

use super::modes::{LockMode, ModeSet};
use super::owner::{Owner, Taker};
use super::queue::Lock;
use super::report::DeadlockReport;
use super::tag::{LockTag, VirtualId};
use super::wait::Waiter;
use super::{LockManager, Request};

/// Records that are kept.
pub const RECORDS_MAX: usize = 2_000;
/// Groups of equal waits that are kept.
pub const FOLDS_MAX: usize = 500;
/// Of equal waits so many in a minute stay records of their own.
pub const SINGLES: u32 = 5;
/// Bytes that are kept of each text.
pub const TEXT_MAX: usize = 2_048;
/// A chain is followed so far.
const CHAIN_MAX: u32 = 1_000;
const MINUTE_NS: u64 = 60_000_000_000;
/// Shorter waits are not remembered, unless the setting says otherwise.
const MIN_NS: u64 = 1_000_000;
/// The log is told of waits that last so long.
const TOLD_NS: u64 = 1_000_000_000;

/// What the layer of sessions knows of one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// `application_name`.
    pub application: String,
    /// The role that logged in.
    pub user: String,
    /// The database.
    pub database: String,
    /// The parameters of the statement that it runs, as SQL text.
    pub parameters: String,
    /// `pg_stat_activity.state`.
    pub state: String,
}

/// What knows the sessions: the SQL layer.
pub trait Witness: Send + Sync {
    /// Who a session is.
    fn facts(&self, pid: i32) -> Facts;
    /// Why a session was interrupted, if it was.
    fn gave_up(&self, pid: i32) -> Option<Outcome>;
    /// A wait that goes on, for the log.
    fn waits_long(&self, record: &WaitRecord);
    /// One that the log has told of has ended.
    fn waited_long(&self, record: &WaitRecord);
    /// PostgreSQL's CONTEXT of the victim's error.
    fn context(&self, report: &DeadlockReport) -> String;
    /// A deadlock, for the log.
    fn deadlock(&self, report: &DeadlockReport);
}

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It goes on.
    Waiting,
    /// The lock was granted.
    Granted,
    /// The session was a deadlock's victim.
    Deadlock,
    /// `lock_timeout` or `statement_timeout` passed.
    Timeout,
    /// A cancel, or the end of the session.
    Cancelled,
    /// The row has changed since the transaction's snapshot: the statement failed without the lock (40001).
    Conflict,
}

impl Outcome {
    /// As the views show it.
    pub fn name(self) -> &'static str {
        match self {
            Outcome::Waiting => "waiting",
            Outcome::Granted => "granted",
            Outcome::Deadlock => "deadlock",
            Outcome::Timeout => "timeout",
            Outcome::Cancelled => "cancelled",
            Outcome::Conflict => "conflict",
        }
    }

    /// The outcome of a name.
    pub fn of_name(name: &str) -> Option<Outcome> {
        use Outcome::{Cancelled, Conflict, Deadlock, Granted, Timeout, Waiting};
        [Waiting, Granted, Deadlock, Timeout, Cancelled, Conflict].into_iter().find(|outcome| outcome.name() == name)
    }
}

/// A session in the waiter's way, as of the moment when the wait began.
#[derive(Clone, Debug)]
pub struct Culprit {
    owner: Arc<Owner>,
    virtual_id: VirtualId,
    txn: Option<TxnId>,
    who: Arc<Facts>,
    holds: ModeSet,
    taker: Option<Taker>,
    ago: u32,
    latest: Option<Taker>,
    began_ns: u64,
    idle_before_ns: u64,
}

impl Culprit {
    /// The first holder that conflicts with a request; else the first of those ahead in the queue.
    pub(super) fn of(lock: &Lock, request: &Request<'_>, position: usize) -> Option<Culprit> {
        let conflicts = request.mode.conflicts();
        let holder = lock.holders.iter().find(|h| h.owner.id != request.owner.id && conflicts.meets(h.modes));
        if let Some(holder) = holder {
            return Some(Culprit::new(&holder.owner, &request.tag, holder.modes));
        }
        let mut ahead = lock.queue.iter().take(position);
        let ahead = ahead.find(|w| w.owner.id != request.owner.id && conflicts.contains(w.mode))?;
        Some(Culprit::new(&ahead.owner, &request.tag, ModeSet::EMPTY))
    }

    /// A session that has the turn at a row for the statement that it runs (LKM-15).
    pub(super) fn running(owner: &Arc<Owner>, mode: LockMode) -> Culprit {
        let taker = owner.held().latest().cloned();
        Culprit::with(owner, taker, ModeSet::EMPTY.with(mode))
    }

    fn new(owner: &Arc<Owner>, tag: &LockTag, holds: ModeSet) -> Culprit {
        let taker = if holds.is_empty() { None } else { owner.held().taker_of(tag) };
        Culprit::with(owner, taker, holds)
    }

    fn with(owner: &Arc<Owner>, taker: Option<Taker>, holds: ModeSet) -> Culprit {
        let (latest, number, txn, who) = {
            let held = owner.held();
            (held.latest().cloned(), held.number, held.txn, held.who.clone())
        };
        Culprit {
            ago: taker.as_ref().map_or(0, |taker| number.saturating_sub(taker.number)),
            taker,
            latest,
            holds,
            txn,
            who,
            virtual_id: owner.virtual_id(),
            began_ns: owner.began_ns(),
            idle_before_ns: owner.idle_ns(),
            owner: owner.clone(),
        }
    }

    fn digest(&self) -> u64 {
        self.taker.as_ref().or(self.latest.as_ref()).map_or(0, |taker| taker.digest)
    }

    pub(super) fn pid(&self) -> i32 {
        self.owner.pid()
    }

    pub(super) fn holds(&self) -> ModeSet {
        self.holds
    }

    pub(super) fn taken_by(&self) -> Option<Arc<str>> {
        self.taker.as_ref().map(|taker| cut(&taker.text))
    }

    /// How many statements ago it took the lock: by now while its transaction goes on, else when the wait began.
    pub(super) fn ago(&self) -> u32 {
        let same = self.owner.virtual_id() == self.virtual_id;
        let taker = self.taker.as_ref().filter(|_| same && self.owner.txn() == self.txn);
        taker.map_or(self.ago, |taker| self.owner.held().number.saturating_sub(taker.number))
    }

    fn party(&self, since_ns: u64, now_ns: u64) -> Party {
        // Its session may have gone on to other transactions meanwhile.
        let waited_ns = now_ns.saturating_sub(since_ns);
        let idle_ns = self.owner.idle_ns().saturating_sub(self.idle_before_ns).min(waited_ns);
        let state = if idle_ns * 2 > waited_ns { "idle in transaction" } else { "active" }.to_owned();
        let facts = Facts { state, ..Facts::clone(&self.who) };
        Party {
            pid: self.pid(),
            virtual_id: self.virtual_id,
            txn: self.txn,
            holds: self.holds,
            taken_by: self.taken_by(),
            ago: self.ago(),
            latest: self.latest.as_ref().map(|taker| cut(&taker.text)),
            age_ns: now_ns.saturating_sub(self.began_ns),
            idle_ns,
            facts,
        }
    }
}

/// The session at the end of a chain, and how many edges lie before it.
#[derive(Clone, Debug)]
pub(super) struct Root {
    /// None: the direct blocker, with which most chains end. A copy of it would raise the reference counts of all that it holds.
    further: Option<Culprit>,
    depth: u32,
}

impl Root {
    fn culprit<'a>(&'a self, waiter: &'a Waiter) -> Option<&'a Culprit> {
        self.further.as_ref().or(waiter.before.as_ref())
    }
}

impl Waiter {
    /// Follows the chain of waits from here and notes where it ends. Takes one mutex of each session on the way.
    pub(super) fn find_root(&self) {
        let Some(before) = &self.before else { return };
        let (mut further, mut depth) = (None::<Culprit>, 1);
        let is_own = |culprit: &Culprit| culprit.owner.id == self.owner.id;
        while depth < CHAIN_MAX && !is_own(further.as_ref().unwrap_or(before)) {
            let next = further.as_ref().unwrap_or(before).owner.waiting.lock().clone();
            match next.filter(|next| next.is_queued()).and_then(|next| next.before.clone()) {
                Some(before) => further = Some(before),
                None => break,
            }
            depth += 1;
        }
        if is_own(further.as_ref().unwrap_or(before)) {
            return; // a ring has no root
        }
        let mut root = self.root.lock();
        if root.as_ref().is_none_or(|known| depth > known.depth) {
            *root = Some(Root { further, depth });
        }
    }
}

/// One of the sessions of a wait.
#[derive(Clone, Debug, Default)]
pub struct Party {
    /// Its session.
    pub pid: i32,
    /// Its transaction.
    pub virtual_id: VirtualId,
    /// That transaction's id, if it had one.
    pub txn: Option<TxnId>,
    /// What it held; empty for one that only stood ahead in the queue.
    pub holds: ModeSet,
    /// The statement that had taken that.
    pub taken_by: Option<Arc<str>>,
    /// How many statements ago that was.
    pub ago: u32,
    /// Its latest statement when the wait began.
    pub latest: Option<Arc<str>>,
    /// The age of its transaction at the end of the wait.
    pub age_ns: u64,
    /// For how much of the wait it stood idle in a transaction, waiting for its client.
    pub idle_ns: u64,
    /// The session.
    pub facts: Facts,
}

/// One wait, or a group of equal ones with the longest of them.
#[derive(Clone, Debug)]
pub struct WaitRecord {
    /// Counts the records.
    pub number: u64,
    /// When it began: wall clock, microseconds since 1970.
    pub began_us: i64,
    /// How long it was, or has been so far.
    pub waited_ns: u64,
    /// How it ended.
    pub outcome: Outcome,
    /// What was wanted.
    pub tag: LockTag,
    /// How.
    pub mode: LockMode,
    /// The waiter; its `latest` is the statement that waited.
    pub waiter: Party,
    /// The session in the way.
    pub blocker: Option<Party>,
    /// The session at the end of the chain.
    pub root: Option<Party>,
    /// How many edges the chain had.
    pub depth: u32,
    /// How many waits this stands for.
    pub count: u64,
    /// How long they were together.
    pub total_ns: u64,
    /// How many of them fell into each power of two nanoseconds.
    pub histogram: Box<[u64]>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct FoldKey(LockTag, u64, u64);

/// Equal waits.
struct Fold {
    minute: u64,
    singles: u32,
    count: u64,
    total_ns: u64,
    longest_ns: u64,
    histogram: [u64; HISTOGRAM_BUCKETS],
    longest: Option<WaitRecord>,
    last_ns: u64,
}

impl Fold {
    fn new(minute: u64) -> Fold {
        let histogram = [0; HISTOGRAM_BUCKETS];
        Fold { minute, singles: 0, count: 0, total_ns: 0, longest_ns: 0, histogram, longest: None, last_ns: 0 }
    }
}

#[derive(Default)]
struct Inner {
    records: VecDeque<Arc<WaitRecord>>,
    folds: HashMap<FoldKey, Fold, RandomState>,
    /// Groups of an earlier run.
    earlier: Vec<Arc<WaitRecord>>,
}

/// The history of lock waits.
pub struct History {
    min_ns: AtomicU64,
    numbers: AtomicU64,
    changed: AtomicBool,
    urgent: AtomicBool,
    inner: Mutex<Inner>,
    witness: OnceLock<Box<dyn Witness>>,
}

impl Default for History {
    fn default() -> Self {
        History {
            min_ns: AtomicU64::new(MIN_NS),
            numbers: AtomicU64::new(0),
            changed: AtomicBool::new(false),
            urgent: AtomicBool::new(false),
            inner: Mutex::new("txn/lockmgr/history", Inner::default()),
            witness: OnceLock::new(),
        }
    }
}

/// What of a wait becomes of it.
#[derive(PartialEq, Eq)]
enum Kept {
    Single,
    Longest,
    Counted,
}

impl History {
    /// Sets the wait from which on one is remembered.
    pub fn remember_from(&self, ns: u64) {
        self.min_ns.store(ns, Ordering::Relaxed);
    }

    /// Installs what knows the sessions; the first stays.
    pub fn witnessed_by(&self, witness: impl FnOnce() -> Box<dyn Witness>) {
        self.witness.get_or_init(witness);
    }

    pub(super) fn witness(&self) -> Option<&dyn Witness> {
        self.witness.get().map(|witness| &**witness)
    }

    pub(super) fn deadlock(&self, report: &DeadlockReport) {
        self.changed.store(true, Ordering::Relaxed);
        self.urgent.store(true, Ordering::Relaxed);
        if let Some(witness) = self.witness() {
            witness.deadlock(report);
        }
    }

    /// Whether something has come since the last call, and whether it should be saved soon.
    pub fn take_changed(&self) -> (bool, bool) {
        (self.changed.swap(false, Ordering::Relaxed), self.urgent.swap(false, Ordering::Relaxed))
    }

    /// A wait has ended, which began at `since_ns`.
    pub(super) fn ended(&self, waiter: &Arc<Waiter>, since_ns: u64) {
        let now_ns = clock::now_ns();
        let waited_ns = now_ns.saturating_sub(since_ns);
        let told = waiter.told.load(Ordering::Relaxed);
        let counts = waiter.has_paused() && waited_ns >= self.min_ns.load(Ordering::Relaxed);
        if !counts && !waiter.was_killed() && !told {
            return;
        }
        let outcome = match (waiter.was_granted(), waiter.was_killed()) {
            (true, _) => Outcome::Granted,
            (_, true) => Outcome::Deadlock,
            _ => {
                let reason = self.witness().and_then(|witness| witness.gave_up(waiter.owner.pid()));
                reason.unwrap_or(if waiter.looks { Outcome::Conflict } else { Outcome::Cancelled })
            }
        };
        let root = waiter.root.lock().as_ref().and_then(|root| root.culprit(waiter).map(Culprit::digest)).unwrap_or(0);
        let digest = waiter.owner.held().latest().map_or(0, |taker| taker.digest);
        let key = FoldKey(waiter.tag.clone(), digest, root);
        let plain = outcome == Outcome::Granted && !told;
        let keep = self.book(&key, waited_ns, now_ns, plain);
        if keep == Kept::Counted {
            return;
        }
        let record = self.record(waiter, since_ns, now_ns, outcome);
        if told && let Some(witness) = self.witness() {
            witness.waited_long(&record);
        }
        let mut inner = self.inner.lock();
        if keep == Kept::Longest {
            // A longer one may have come between.
            let fold = inner.folds.get_mut(&key);
            let longer =
                |fold: &&mut Fold| fold.longest.as_ref().is_none_or(|other| other.waited_ns <= record.waited_ns);
            if let Some(fold) = fold.filter(longer) {
                fold.longest = Some(record);
            }
            return;
        }
        if inner.records.len() >= RECORDS_MAX {
            inner.records.pop_front(); // HIS-1
        }
        inner.records.push_back(Arc::new(record));
    }

    /// HIS-2. Waits that did not end well, and those that the log has told of, are records of their own.
    fn book(&self, key: &FoldKey, waited_ns: u64, now_ns: u64, plain: bool) -> Kept {
        // Read first: all sessions that wait share it.
        if !self.changed.load(Ordering::Relaxed) {
            self.changed.store(true, Ordering::Relaxed);
        }
        let mut inner = self.inner.lock();
        let minute = now_ns / MINUTE_NS;
        if !inner.folds.contains_key(key) {
            if inner.folds.len() >= FOLDS_MAX {
                let oldest = inner.folds.iter().min_by_key(|(_, fold)| fold.last_ns).map(|(key, _)| key.clone());
                oldest.map(|oldest| inner.folds.remove(&oldest)); // HIS-1
            }
            inner.folds.insert(key.clone(), Fold::new(minute));
        }
        let Some(fold) = inner.folds.get_mut(key) else { return Kept::Single };
        fold.last_ns = now_ns;
        if fold.minute != minute {
            (fold.minute, fold.singles) = (minute, 0);
        }
        if !plain || fold.singles < SINGLES {
            fold.singles += u32::from(plain);
            return Kept::Single;
        }
        fold.count += 1;
        fold.total_ns += waited_ns;
        fold.histogram[bucket_of(waited_ns)] += 1;
        if waited_ns > fold.longest_ns {
            fold.longest_ns = waited_ns;
            return Kept::Longest;
        }
        Kept::Counted
    }

    pub(super) fn record(&self, waiter: &Waiter, since_ns: u64, now_ns: u64, outcome: Outcome) -> WaitRecord {
        let waited_ns = now_ns.saturating_sub(since_ns);
        let root = waiter.root.lock().clone();
        let party = |culprit: &Culprit| culprit.party(since_ns, now_ns);
        let me = Culprit::new(&waiter.owner, &waiter.tag, ModeSet::EMPTY);
        // What it runs now has parameters; of the others the taking statement is long past.
        let facts = self.witness().map(|witness| witness.facts(waiter.owner.pid()));
        let facts = facts.unwrap_or_else(|| Facts::clone(&me.who));
        let mut histogram = vec![0; HISTOGRAM_BUCKETS].into_boxed_slice();
        histogram[bucket_of(waited_ns)] = 1;
        WaitRecord {
            number: self.numbers.fetch_add(1, Ordering::Relaxed) + 1,
            began_us: clock::wall_us() - (waited_ns / 1_000) as i64,
            waited_ns,
            outcome,
            tag: waiter.tag.clone(),
            mode: waiter.mode,
            waiter: Party { idle_ns: 0, facts, ..party(&me) },
            blocker: waiter.before.as_ref().map(party),
            root: root.as_ref().and_then(|root| root.culprit(waiter)).map(party),
            depth: root.map_or(0, |root| root.depth),
            count: 1,
            total_ns: waited_ns,
            histogram,
        }
    }

    /// Records and groups, oldest first; what an earlier run left comes before.
    pub fn records(&self) -> Vec<Arc<WaitRecord>> {
        let inner = self.inner.lock();
        let mut all: Vec<Arc<WaitRecord>> = inner.earlier.clone();
        all.extend(inner.folds.values().filter_map(|fold| {
            let longest = fold.longest.clone()?;
            let histogram = fold.histogram.to_vec().into_boxed_slice();
            let (count, total_ns) = (fold.count, fold.total_ns);
            Some(Arc::new(WaitRecord { count, total_ns, histogram, ..longest }))
        }));
        all.extend(inner.records.iter().cloned());
        all.sort_by_key(|record| record.number);
        all
    }

    /// Takes in what an earlier run has left.
    pub fn restore(&self, earlier: Vec<WaitRecord>) {
        let last = earlier.iter().map(|record| record.number).max().unwrap_or(0);
        self.numbers.fetch_max(last, Ordering::Relaxed);
        let mut inner = self.inner.lock();
        let skip = earlier.len().saturating_sub(RECORDS_MAX + FOLDS_MAX);
        for record in earlier.into_iter().skip(skip).map(Arc::new) {
            match record.count {
                1 if inner.records.len() < RECORDS_MAX => inner.records.push_back(record),
                _ if inner.earlier.len() < FOLDS_MAX => inner.earlier.push(record),
                _ => {}
            }
        }
    }

    /// Forgets everything.
    pub fn clear(&self) {
        *self.inner.lock() = Inner::default();
        self.changed.store(true, Ordering::Relaxed);
    }
}

impl LockManager {
    /// Once a second: follows the chains of waits again, and reports long waits to the log.
    pub(super) fn look_at_waits(&self, now_ns: u64) {
        for owner in self.owners() {
            let aside_since_ns = owner.aside.lock().as_ref().map(|aside| aside.since_ns);
            let Some(waiter) = owner.waiting.lock().clone().filter(|waiter| waiter.is_queued()) else { continue };
            waiter.find_root();
            let waited_ns = now_ns.saturating_sub(aside_since_ns.unwrap_or(waiter.since_ns));
            if waited_ns < TOLD_NS || aside_since_ns.is_some() || waiter.told.swap(true, Ordering::Relaxed) {
                continue;
            }
            if let Some(witness) = self.history.witness() {
                witness.waits_long(&self.history.record(&waiter, waiter.since_ns, now_ns, Outcome::Waiting));
            }
        }
    }
}

/// HIS-1
fn cut(text: &Arc<str>) -> Arc<str> {
    if text.len() <= TEXT_MAX {
        return text.clone();
    }
    let end = (0..=TEXT_MAX).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    format!("{}...", &text[..end]).into()
}

#[cfg(test)]
#[path = "history_tests.rs"]
mod tests;
