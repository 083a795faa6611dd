//! A lock owner: one session, across its transactions. Keeps the list of the locks that it holds.
//!
//! # Structure
//! ```text
//! Owner ── held (mutex) ── locks: tag -> HeldLock      in the lock table, too
//!       │               ├─ fast: weak table locks       in this list only (PostgreSQL's fast path)
//!       │               └─ trail: acquisitions in order, for ROLLBACK TO SAVEPOINT
//!       ├─ waiting (mutex) ── the one wait in progress; aside: a request that has stepped aside
//!       └─ blocking: a session has waited behind a lock of this owner since this owner last released all its locks
//! ```
//!
//! # Invariants
//! - LKM-2: a lock of this owner is in `held.locks` exactly if the owner is among the lock's holders; both change under the
//!   shard's mutex, with `held` locked inside it.
//! - LKM-3: a weak table lock enters `held.fast` only while no strong mode is announced. A request that announces a strong mode moves
//!   the entry to the lock table before it checks for conflicts.
//! - LKM-4: `blocking` is set, under the shard's mutex, before the waiter's own search begins; so of two owners that begin to wait
//!   for each other at the same time at least one sees the other.
//! - LKM-11: the lock of a changed row lasts as long as the change. A waiter may enter the lock in the trail late, behind a savepoint that
//!   is younger than the change. So the entry names the change, and a rollback that keeps the change keeps the lock. Each mode has its own
//!   entry, with the first change that implies it: a rollback that undoes a delete and keeps an update of the row keeps the update's mode.
//!   If other transactions wait for the transaction's id because of several changes, the lock of the id lasts until the last of these
//!   changes is undone. The lock of its virtual id lasts until the transaction ends.
//! - LKM-16: the lock of a row lives until its transaction ends, so its memory belongs to the server's account and not to the statement that took it:
//!   the lists and tables, which grow in steps, the holders, and the key. A key that another session books, at the end of a wait, stays where it was
//!   allocated: else each such wait would move memory from one session's account to the other's. A transaction that takes a row's lock or an advisory
//!   lock asks first whether it has many and the server no room for more, also where the next one doubles a table ([`Owner::locks_without_room`]).
//! - LKM-13: a transaction begins without the mutex: `anew` says that `held` has still the statements of the one before. They go before any
//!   thread reads or changes `held`. Only the session sets `anew`, and no transaction of it ends without the mutex; so what a thread clears
//!   under the mutex are the statements of the transaction before the one that runs.
//! - LKM-14: a transaction that runs one statement, of the same text as the one before, clones no reference: the entries of the statement and of
//!   its weak lock are used again.

use foldhash::fast::RandomState;
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};

use clearway_base::memory::{self, Outside};
use clearway_base::sync::{Mutex, MutexGuard};
use clearway_base::waits::clock;
use clearway_storage::ids::TxnId;

use super::history::Facts;
use super::modes::{LockMode, ModeSet};
use super::step_aside::AsideRequest;
use super::tag::{LockTag, VirtualId};
use super::wait::Waiter;

/// An owner with fewer locks, some megabytes, takes more of them though the server's memory is used up: as for statements, the small ones go on.
const LOCKS_FEW: usize = 8_192;

/// How many statements of a transaction a report can name; the first and the latest are kept.
const STATEMENTS_MAX: usize = 64;

/// Position in a transaction: a lock taken at or after a savepoint's mark goes when the savepoint is rolled back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct LockMark {
    pub(super) trail: usize,
    pub(super) changes: u32,
}

impl LockMark {
    /// The mark of a transaction that has made this many changes: a rollback to it leaves the rows locked that were changed before.
    #[must_use]
    pub fn after_changes(self, changes: u32) -> LockMark {
        LockMark { changes, ..self }
    }
}

/// How long a lock is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockScope {
    /// Until the transaction ends or a savepoint before the acquisition is rolled back.
    Transaction,
    /// Until it is released as often as it was acquired, or the session ends.
    Session,
}

/// A statement as a lock remembers it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taker {
    /// Its text.
    pub text: Arc<str>,
    /// The digest of its text, 0 if none was made.
    pub digest: u64,
    /// Its number in the transaction, from 1.
    pub number: u32,
}

/// One session as the lock manager sees it.
pub struct Owner {
    pub(super) id: u32,
    pid: AtomicI32,
    local: AtomicU64,
    /// The digest of the statement that begins next, and whether it has begun to take locks.
    digest: AtomicU64,
    begins: AtomicBool,
    /// When the transaction began, by the clock of wait events.
    began_ns: AtomicU64,
    /// Since when it has waited for its client within a transaction; 0: it runs.
    idle_since_ns: AtomicU64,
    idle_ns: AtomicU64,
    held: Mutex<Held>,
    /// LKM-13
    anew: AtomicBool,
    pub(super) waiting: Mutex<Option<Arc<Waiter>>>,
    pub(super) aside: Mutex<Option<AsideRequest>>,
    pub(super) blocking: AtomicBool,
    /// See [`Owner::has_turn`].
    pub(super) with_turn: AtomicBool,
}

/// The locks that an owner holds.
#[derive(Default)]
pub(super) struct Held {
    /// The transaction that runs, once it has an id.
    pub(super) txn: Option<TxnId>,
    pub(super) locks: HashMap<LockTag, HeldLock, RandomState>,
    pub(super) fast: Vec<FastLock>,
    /// The last weak lock that was released (LKM-14).
    spare: Option<FastLock>,
    /// The last statement of the transaction before this one (LKM-14).
    spare_taker: Option<Taker>,
    pub(super) trail: Vec<Step>,
    trail_memory: Option<Outside>,
    statement: Option<Taker>,
    /// The statements, each with the number of changes that the transaction had made before; `None` until the statement has opened.
    statements: VecDeque<(Taker, Option<u32>)>,
    statements_left_out: usize,
    /// Who the session is.
    pub(super) who: Arc<Facts>,
    /// How many statements the transaction has run.
    pub(super) number: u32,
}

/// A weak table lock that has no entry in the lock table.
pub(super) struct FastLock {
    pub(super) database: u32,
    pub(super) relation: u64,
    pub(super) modes: ModeSet,
    pub(super) statement: Option<Taker>,
    pub(super) since_ns: u64,
}

/// A lock that stands in the lock table.
#[derive(Default)]
pub(super) struct HeldLock {
    /// Modes kept until the transaction ends.
    pub(super) txn: ModeSet,
    /// Modes kept by the session, with counts.
    pub(super) session: Vec<(LockMode, u32)>,
    pub(super) statement: Option<Taker>,
    pub(super) since_ns: u64,
    /// Of a row's key (LKM-16); none: another session has booked the lock, or it is no row's.
    memory: Option<Outside>,
}

/// Bytes of a key that is shared.
fn key_bytes(key: &[u8]) -> usize {
    (2 * size_of::<usize>() + key.len()).next_multiple_of(size_of::<usize>())
}

/// One acquisition for the transaction.
pub(super) struct Step {
    pub(super) tag: LockTag,
    pub(super) mode: LockMode,
    /// The change that implied the lock; the entry may have been made later (LKM-11).
    pub(super) change: Option<u32>,
}

impl HeldLock {
    /// Every mode held.
    pub(super) fn modes(&self) -> ModeSet {
        self.session.iter().fold(self.txn, |set, (mode, _)| set.with(*mode))
    }
}

impl Held {
    /// Books one acquisition; `now_ns` is kept for the first.
    pub(super) fn add(&mut self, tag: &LockTag, mode: LockMode, scope: LockScope, now_ns: u64) {
        let statement = self.statement.clone();
        if self.locks.len() == self.locks.capacity() {
            memory::uncharged(|| self.locks.reserve(1)); // LKM-16
        }
        let lock = self.locks.entry(tag.clone()).or_insert_with(|| HeldLock {
            statement,
            since_ns: now_ns,
            ..HeldLock::default()
        });
        match scope {
            LockScope::Transaction if lock.txn.contains(mode) => {}
            LockScope::Transaction => {
                lock.txn = lock.txn.with(mode);
                self.push_step(Step { tag: tag.clone(), mode, change: None });
            }
            LockScope::Session => match lock.session.iter_mut().find(|(m, _)| *m == mode) {
                Some((_, count)) => *count += 1,
                None => lock.session.push((mode, 1)),
            },
        }
    }

    /// How many bytes the table and the trail allocate for the next lock: those that are full double, and have both sizes for a moment.
    fn growth_bytes(&self) -> usize {
        let doubled = |len: usize, room: usize, size: usize| if len == room { 2 * room * size } else { 0 };
        doubled(self.locks.len(), self.locks.capacity(), size_of::<(LockTag, HeldLock)>())
            + doubled(self.trail.len(), self.trail.capacity(), size_of::<Step>())
    }

    /// LKM-16
    fn push_step(&mut self, step: Step) {
        let room = self.trail.capacity();
        self.trail.push(step);
        if self.trail.capacity() != room {
            self.trail_memory = Some(Outside::new(self.trail.capacity() * size_of::<Step>()));
        }
    }

    /// The trail, which then begins anew.
    pub(super) fn take_trail(&mut self) -> Vec<Step> {
        self.trail_memory = None;
        std::mem::take(&mut self.trail)
    }

    /// Books the acquisition of the session that asks, whose key goes to the server's account if it is a row's lock (LKM-16).
    pub(super) fn add_own(&mut self, tag: &LockTag, mode: LockMode, scope: LockScope, now_ns: u64) {
        self.add(tag, mode, scope, now_ns);
        if let LockTag::Row { key, .. } = tag
            && let Some(lock) = self.locks.get_mut(tag)
        {
            lock.memory.get_or_insert_with(|| Outside::new(key_bytes(key)));
        }
    }

    /// Every mode in which a lock is held, in the lock table or not.
    pub(super) fn modes_of(&self, tag: &LockTag) -> ModeSet {
        let fast = self.fast.iter().filter(|f| {
            matches!(tag, LockTag::Relation { database, relation } if f.database == *database && f.relation == *relation)
        });
        let listed = self.locks.get(tag).map_or(ModeSet::EMPTY, HeldLock::modes);
        fast.fold(listed, |set, fast| set.union(fast.modes))
    }

    /// The text of the statement that took a lock.
    pub(super) fn statement_of(&self, tag: &LockTag) -> Option<Arc<str>> {
        self.taker_of(tag).map(|taker| taker.text)
    }

    /// The latest statement of the transaction.
    pub(super) fn latest(&self) -> Option<&Taker> {
        self.statement.as_ref()
    }

    /// The statement that took a lock.
    pub(super) fn taker_of(&self, tag: &LockTag) -> Option<Taker> {
        if let Some(lock) = self.locks.get(tag) {
            return lock.statement.clone();
        }
        let fast = self.fast.iter().find(|f| {
            matches!(tag, LockTag::Relation { database, relation } if f.database == *database && f.relation == *relation)
        });
        fast.and_then(|f| f.statement.clone())
    }

    /// Books a lock that a change of this transaction implies, to the statement that made the change.
    pub(super) fn add_implicit(&mut self, tag: &LockTag, mode: LockMode, change: u32, now_ns: u64) {
        let first = !self.locks.contains_key(tag);
        self.add(tag, mode, LockScope::Transaction, now_ns);
        let before = |from: Option<u32>| from.is_some_and(|from| from <= change);
        let statement = self.statements.iter().rev().find(|(_, from)| before(*from));
        if let (true, Some((taker, _)), Some(lock)) = (first, statement, self.locks.get_mut(tag)) {
            lock.statement = Some(taker.clone());
        }
    }

    /// Books a weak table lock that needs no entry in the lock table.
    pub(super) fn add_fast(&mut self, database: u32, relation: u64, mode: LockMode, now_ns: u64) {
        let at = match self.fast.iter().position(|f| f.relation == relation && f.database == database) {
            Some(at) => at,
            None => {
                let lock = self.new_fast(database, relation, now_ns);
                self.fast.push(lock);
                self.fast.len() - 1
            }
        };
        let Some(lock) = self.fast.get_mut(at) else {
            return;
        };
        if !lock.modes.contains(mode) {
            lock.modes = lock.modes.with(mode);
            self.push_step(Step { tag: LockTag::Relation { database, relation }, mode, change: None });
        }
    }

    /// An entry of a weak lock in no mode; that of the last one if it is the same lock of a statement of the same text (LKM-14).
    fn new_fast(&mut self, database: u32, relation: u64, now_ns: u64) -> FastLock {
        if let Some(mut lock) = self.spare.take()
            && (lock.relation, lock.database) == (relation, database)
            && let (Some(then), Some(now)) = (&mut lock.statement, &self.statement)
            && Arc::ptr_eq(&then.text, &now.text)
        {
            (then.digest, then.number) = (now.digest, now.number);
            return FastLock { modes: ModeSet::EMPTY, since_ns: now_ns, ..lock };
        }
        FastLock { database, relation, modes: ModeSet::EMPTY, statement: self.statement.clone(), since_ns: now_ns }
    }

    /// All weak locks are released.
    pub(super) fn release_fast(&mut self) {
        if let Some(lock) = self.fast.pop() {
            self.spare = Some(lock); // LKM-14
            self.fast.clear();
        }
    }

    /// A transaction has begun.
    fn begins(&mut self) {
        self.spare_taker = self.statements.pop_back().map(|(taker, _)| taker); // LKM-14
        self.statements.clear();
        self.number = 0;
        self.statements_left_out = 0;
    }

    /// A statement begins.
    fn begins_statement(&mut self, text: &Arc<str>, digest: u64) {
        self.number += 1;
        // LKM-14
        let of_text = |known: Option<Taker>, number| match known {
            Some(known) if Arc::ptr_eq(&known.text, text) => Taker { digest, number, ..known },
            _ => Taker { text: text.clone(), digest, number },
        };
        let mut spare = self.spare_taker.take();
        if self.statements.len() == STATEMENTS_MAX {
            // The first one stays, the second goes.
            if let (Some(first), Some(second)) = (self.statements.pop_front(), self.statements.front_mut()) {
                spare = Some(std::mem::replace(second, first).0);
            }
            self.statements_left_out += 1;
        }
        let taker = of_text(spare, self.number);
        self.statement = Some(of_text(self.statement.take(), self.number));
        self.statements.push_back((taker, None));
        assert!(self.statements.len() <= STATEMENTS_MAX, "the statements of a transaction that are kept have a limit");
    }

    /// The statement opens, when the transaction has made so many changes.
    pub(super) fn opens_statement(&mut self, changes: u32) {
        if let Some((_, from)) = self.statements.back_mut() {
            from.get_or_insert(changes);
        }
    }

    /// The statements of the transaction, oldest first; a line says how many were left out.
    pub(super) fn statements(&self) -> Vec<Arc<str>> {
        let mut all: Vec<Arc<str>> = self.statements.iter().map(|(taker, _)| taker.text.clone()).collect();
        if self.statements_left_out > 0 {
            all.insert(1, format!("... {} statements ...", self.statements_left_out).into());
        }
        all
    }
}

impl Owner {
    pub(super) fn new(id: u32, pid: i32) -> Arc<Owner> {
        Arc::new(Owner {
            id,
            pid: AtomicI32::new(pid),
            local: AtomicU64::new(0),
            digest: AtomicU64::new(0),
            begins: AtomicBool::new(false),
            began_ns: AtomicU64::new(0),
            idle_since_ns: AtomicU64::new(0),
            idle_ns: AtomicU64::new(0),
            held: Mutex::new("txn/lockmgr/owner", Held::default()),
            anew: AtomicBool::new(false),
            waiting: Mutex::new("txn/lockmgr/waiting", None),
            aside: Mutex::new("txn/lockmgr/aside", None),
            blocking: AtomicBool::new(false),
            with_turn: AtomicBool::new(false),
        })
    }

    /// If it has many locks and the server's memory has no room for another one (LKM-16): how many it has.
    pub fn locks_without_room(&self) -> Option<usize> {
        let held = self.held();
        let locks = held.locks.len();
        (locks >= LOCKS_FEW && !memory::server_has_room(held.growth_bytes())).then_some(locks)
    }

    /// Whether it holds any lock, of its transaction or of its session.
    pub fn holds_locks(&self) -> bool {
        let held = self.held();
        !held.locks.is_empty() || !held.fast.is_empty()
    }

    /// The locks that it holds.
    #[inline]
    pub(super) fn held(&self) -> MutexGuard<'_, Held> {
        let mut held = self.held.lock();
        // LKM-13
        if self.anew.load(Ordering::Relaxed) {
            self.anew.store(false, Ordering::Relaxed);
            held.begins();
        }
        held
    }

    /// The slot number, from 1; reused after the session ended.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// The number that `pg_stat_activity` calls pid.
    pub fn pid(&self) -> i32 {
        self.pid.load(Ordering::Relaxed)
    }

    /// The virtual id of the transaction that runs.
    pub fn virtual_id(&self) -> VirtualId {
        VirtualId { session: self.id, local: self.local.load(Ordering::Relaxed) }
    }

    /// A new transaction begins: it has a new virtual id and no statements.
    pub fn begin(&self) -> VirtualId {
        self.begin_at(clock::now_ns())
    }

    /// The same at this moment of the clock of wait events.
    pub fn begin_at(&self, now_ns: u64) -> VirtualId {
        // Only the session writes it.
        self.local.store(self.local.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        self.began_ns.store(now_ns, Ordering::Relaxed);
        self.anew.store(true, Ordering::Relaxed); // LKM-13
        self.virtual_id()
    }

    /// Sets the transaction's id. From now on other sessions may wait for the transaction, or for rows that carry its tags.
    pub fn set_txn(&self, txn: TxnId) {
        self.held().txn = Some(txn);
    }

    /// The transaction's id, if it has one and has not ended.
    pub fn txn(&self) -> Option<TxnId> {
        self.held().txn
    }

    /// Says who the session is.
    pub fn known_as(&self, who: Facts) {
        self.held().who = Arc::new(who);
    }

    /// A statement of this digest comes next, also if its text is that of the one before.
    #[inline]
    pub fn statement_begins(&self, digest: u64) {
        self.digest.store(digest, Ordering::Relaxed);
        self.begins.store(true, Ordering::Relaxed);
    }

    /// Begins a statement; the locks that it takes are booked to it.
    pub fn statement(&self, text: &Arc<str>) {
        self.begins_statement(&mut self.held(), text);
    }

    #[inline]
    pub(super) fn begins_statement(&self, held: &mut Held, text: &Arc<str>) {
        let begins = self.begins.load(Ordering::Relaxed);
        if !begins && held.statements.back().is_some_and(|(last, _)| Arc::ptr_eq(&last.text, text)) {
            return;
        }
        self.begins.store(false, Ordering::Relaxed);
        held.begins_statement(text, self.digest.load(Ordering::Relaxed));
    }

    /// The transaction waits for its client from this moment of the clock of wait events on.
    #[inline]
    pub fn idles(&self, now_ns: u64) {
        self.idle_since_ns.store(now_ns, Ordering::Relaxed);
    }

    /// Its client had sent something at this moment.
    #[inline]
    pub fn runs(&self, now_ns: u64) {
        let since_ns = self.idle_since_ns.load(Ordering::Relaxed);
        if since_ns != 0 {
            let idle_ns = self.idle_ns.load(Ordering::Relaxed) + now_ns.saturating_sub(since_ns);
            self.idle_ns.store(idle_ns, Ordering::Relaxed);
            self.idle_since_ns.store(0, Ordering::Relaxed);
        }
    }

    /// For how long all its transactions so far have waited for their client, in nanoseconds.
    pub fn idle_ns(&self) -> u64 {
        let since_ns = self.idle_since_ns.load(Ordering::Relaxed);
        let now = if since_ns == 0 { 0 } else { clock::now_ns().saturating_sub(since_ns) };
        self.idle_ns.load(Ordering::Relaxed) + now
    }

    /// When its transaction began, by the clock of wait events; 0: none has.
    pub fn began_ns(&self) -> u64 {
        self.began_ns.load(Ordering::Relaxed)
    }

    /// The statements of the transaction, oldest first, with a line for those that are left out.
    pub fn statements(&self) -> Vec<Arc<str>> {
        self.held().statements()
    }

    /// Opens the statement: the transaction's changes from now on belong to it, until the next statement opens.
    pub fn statement_opens(&self, changes: u32) {
        self.held().opens_statement(changes);
    }

    /// The latest statement.
    pub fn current_statement(&self) -> Option<Arc<str>> {
        self.held().statement.as_ref().map(|taker| taker.text.clone())
    }

    /// The current position in the transaction, for a savepoint.
    pub fn mark(&self) -> LockMark {
        LockMark { trail: self.held().trail.len(), changes: 0 }
    }
}

impl fmt::Debug for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "owner {} (pid {})", self.id, self.pid())
    }
}
