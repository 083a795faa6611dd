//! Locks that transactions own: modes, queues, hand-off and deadlocks.
//!
//! # Structure
//! ```text
//! acquire ──► fast path: a weak table mode, no strong mode announced ──► Owner.held.fast
//!    │
//!    ╰─► shard (mutex) ── tag -> Lock { holders, queue }
//!           ├─ granted ──► Owner.held.locks
//!           ╰─ queued  ──► Owner.waiting ──► search for a deadlock (detect.rs, deadlock.rs) ──► WaitFuture
//! release_* ──► Owner.held taken out ──► each lock: next compatible waiters granted, woken after the shard's mutex
//! ```
//! A row that a transaction changed is locked by the row's tag alone, and a transaction's id by its state. Neither has an entry in the lock
//! table until a session must wait for it. The waiter then enters the holder into the lock table (`Implicit`), and the holder's release
//! finds the entry.
//!
//! # Latch order
//! shard (ascending by index) -> `Owner.held` or `Owner.waiting` or a waiter's waker. No other latch is taken inside.
//!
//! # Invariants
//! LKM-1 in modes.rs, LKM-2 to 4, 11 and 16 in owner.rs, LKM-5 to 7 and 12 in queue.rs, LKM-8 in wait.rs, LKM-10 in line.rs, POL-1 in step_aside.rs, LKM-15 in in_turn.rs, LKM-17 and 18 in brief.rs, and
//! - LKM-9: an implicit holder is entered only while its transaction has not begun to release its locks. The release clears `Held.txn` under
//!   `Owner.held` and then takes the list of locks. So an entry is either made before that and released, or not made.

pub mod blockers;
mod brief;
pub mod deadlock;
mod detect;
pub mod history;
mod in_turn;
mod line;
pub mod live;
pub mod modes;
mod owner;
mod queue;
mod release;
pub mod report;
pub mod step_aside;
pub mod tag;
pub mod view;
mod wait;

use foldhash::fast::RandomState;
use std::collections::HashMap;
use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use clearway_base::memory;
use clearway_base::sync::{Mutex, MutexGuard};
use clearway_base::waits::{self, WaitEvent, clock};
use clearway_storage::ids::{Lsn, TxnId};

pub use brief::IfTaken;
use history::{Culprit, History};
pub use modes::{LockMode, ModeSet};
pub use owner::{LockMark, LockScope, Owner, Taker};
use queue::{Decision, Lock};
use report::{Archive, DeadlockReport};
pub use tag::{AdvisoryKey, LockTag, VirtualId};
use wait::{WaitFuture, Waiter};

const SHARDS: usize = 128;
/// Announcements of strong table locks are counted per hash of the relation, as in PostgreSQL's `FastPathStrongRelationLocks`.
const STRONG_SLOTS: usize = 1024;

/// Why a lock was not granted.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// The request would have had to wait and was told not to (SQLSTATE 55P03).
    #[error("could not obtain lock")]
    NotAvailable,
    /// Waiting for the lock closed a cycle in the waits-for graph (SQLSTATE 40P01).
    #[error("deadlock detected")]
    Deadlock(Option<Arc<DeadlockReport>>),
    /// The session itself gave the wait up.
    #[error("the wait was abandoned")]
    Abandoned,
}

/// A holder that has no entry in the lock table yet: the writer that a row's tag names, or a transaction that has an id.
#[derive(Clone, Debug)]
pub struct Implicit {
    /// The session of the transaction.
    pub owner: Arc<Owner>,
    /// The transaction; if it no longer runs, there is no holder.
    pub txn: TxnId,
    /// The lock mode that its change implies.
    pub mode: LockMode,
    /// The position, from 0, of the first change that makes the transaction a holder in this mode. It tells which statement took the lock,
    /// and whether a rollback to a savepoint leaves the lock.
    pub change: u32,
    /// A weaker mode that an earlier change of the row implies, and the position of that change: a rollback that undoes the stronger change
    /// leaves it.
    pub earlier: Option<(LockMode, u32)>,
}

/// A request for a lock.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// The session that asks.
    pub owner: &'a Arc<Owner>,
    /// What is to be locked.
    pub tag: LockTag,
    /// The lock mode.
    pub mode: LockMode,
    /// How long the lock is kept.
    pub scope: LockScope,
    /// What to do when the lock is not free.
    pub if_taken: IfTaken,
    /// A holder that only the caller knows; it is entered first.
    pub implicit: Option<Implicit>,
    /// A commit of a holder may settle the request without a grant: the waiter looks at the row again (see [`PendingLock::next`]).
    pub looks: bool,
}

/// A granted lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Granted {
    /// The commit LSN that the reply must wait for: the highest of the transactions that gave up a conflicting mode (LKM-12).
    pub dep_lsn: Lsn,
    /// Whether the request had to wait.
    pub waited: bool,
}

#[derive(Default)]
struct Shard {
    locks: HashMap<LockTag, Lock, RandomState>,
}

type ShardGuard<'a> = MutexGuard<'a, Shard>;

/// The lock table.
pub struct LockManager {
    shards: Box<[Mutex<Shard>]>,
    strong: Box<[AtomicU32]>,
    hasher: RandomState,
    owners: Mutex<Vec<Option<Arc<Owner>>>>,
    archive: Archive,
    history: History,
}

impl Default for LockManager {
    fn default() -> Self {
        Self::new()
    }
}

impl LockManager {
    /// An empty lock table.
    pub fn new() -> LockManager {
        LockManager {
            shards: (0..SHARDS).map(|_| Mutex::new("txn/lockmgr/shard", Shard::default())).collect(),
            strong: (0..STRONG_SLOTS).map(|_| AtomicU32::new(0)).collect(),
            hasher: RandomState::default(),
            owners: Mutex::new("txn/lockmgr/owners", Vec::new()),
            archive: Archive::new(),
            history: History::default(),
        }
    }

    /// Deadlocks and how they were resolved.
    pub fn archive(&self) -> &Archive {
        &self.archive
    }

    /// Waits for locks that were worth remembering.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// A session begins; its slot number is the lowest free one.
    pub fn register(&self, pid: i32) -> Arc<Owner> {
        let mut owners = self.owners.lock();
        let free = owners.iter().position(Option::is_none);
        let at = free.unwrap_or_else(|| {
            owners.push(None);
            owners.len() - 1
        });
        let owner = Owner::new(u32::try_from(at + 1).expect("fewer than 2^32 sessions"), pid);
        owners[at] = Some(owner.clone());
        owner
    }

    /// Ends a session and releases all that it still holds.
    pub fn unregister(&self, owner: &Arc<Owner>) {
        self.release_transaction(owner, Lsn::ZERO);
        self.release_session(owner);
        let left = self.owners.lock()[owner.id as usize - 1].take();
        assert!(left.is_some_and(|left| Arc::ptr_eq(&left, owner)), "a session is unregistered once, by itself");
    }

    /// Every session that is registered.
    pub fn owners(&self) -> Vec<Arc<Owner>> {
        self.owners.lock().iter().flatten().cloned().collect()
    }

    fn shard_index(&self, tag: &LockTag) -> usize {
        self.hasher.hash_one(tag) as usize % SHARDS
    }

    fn shard_of(&self, tag: &LockTag) -> &Mutex<Shard> {
        &self.shards[self.shard_index(tag)]
    }

    fn strong_count(&self, database: u32, relation: u64) -> &AtomicU32 {
        &self.strong[self.hasher.hash_one((database, relation)) as usize % STRONG_SLOTS]
    }

    /// Takes a lock, waiting for it if need be.
    ///
    /// # Errors
    /// `NotAvailable` where the request says `Fail`; `Deadlock` if the wait closes a cycle. Dropping the future gives up the wait and
    /// a lock that was just granted to it.
    pub async fn acquire(&self, request: Request<'_>) -> Result<Granted, LockError> {
        match self.begin(&request)? {
            RequestState::Granted(granted) => Ok(granted),
            RequestState::Queued(pending) => pending.wait().await,
        }
    }

    /// Takes a lock or a place in its queue, in one step and without waiting. A writer calls this while it has the row's page
    /// latched, so the row cannot change between the writer's look at it and the request.
    ///
    /// # Errors
    /// `NotAvailable` where the request says `Fail` and the lock is taken.
    pub fn begin(&self, request: &Request<'_>) -> Result<RequestState<'_>, LockError> {
        if self.try_fast(request) {
            return Ok(RequestState::Granted(Granted { dep_lsn: Lsn::ZERO, waited: false }));
        }
        let mut announced = self.announce(request);
        match self.enter(request) {
            EntryOutcome::Granted(dep_lsn, anew) => {
                if anew {
                    announced.keep();
                }
                Ok(RequestState::Granted(Granted { dep_lsn, waited: false }))
            }
            EntryOutcome::Refused => Err(LockError::NotAvailable),
            EntryOutcome::Queued(waiter, behind) => {
                let wait = WaitFuture { manager: self, waiter, done: false };
                Ok(RequestState::Queued(PendingLock { wait, announced, behind }))
            }
        }
    }

    /// Takes a weak table lock by the fast path if no strong mode is announced (LKM-3); false: nothing was taken.
    fn try_fast(&self, request: &Request<'_>) -> bool {
        let LockTag::Relation { database, relation } = request.tag else {
            return false;
        };
        if !request.mode.is_weak_table_mode() || request.scope != LockScope::Transaction {
            return false;
        }
        self.add_weak(&mut request.owner.held(), (database, relation), request.mode, clock::now_ns())
    }

    /// Begins and opens a statement, as [`Owner::statement`] and [`Owner::statement_opens`] do, and takes a weak mode of its only table's lock
    /// unless a strong mode is announced. False: the lock is not taken.
    pub fn begin_weak(
        &self,
        owner: &Owner,
        (text, changes): (&Arc<str>, u32),
        tag: &LockTag,
        mode: LockMode,
        now_ns: u64,
    ) -> bool {
        let mut held = owner.held();
        owner.begins_statement(&mut held, text);
        held.opens_statement(changes);
        match *tag {
            LockTag::Relation { database, relation } if mode.is_weak_table_mode() => {
                self.add_weak(&mut held, (database, relation), mode, now_ns)
            }
            _ => false,
        }
    }

    /// Whether an owner holds or wants a strong mode of this table's lock, or of another's with the same hash (LKM-3). True for what is no table.
    #[inline]
    pub fn has_strong(&self, tag: &LockTag) -> bool {
        match *tag {
            LockTag::Relation { database, relation } => {
                self.strong_count(database, relation).load(Ordering::SeqCst) != 0
            }
            _ => true,
        }
    }

    fn add_weak(&self, held: &mut owner::Held, (database, relation): (u32, u64), mode: LockMode, now_ns: u64) -> bool {
        // LKM-3: under the owner's mutex.
        if self.strong_count(database, relation).load(Ordering::SeqCst) != 0 {
            return false;
        }
        held.add_fast(database, relation, mode, now_ns);
        true
    }

    /// Announces a strong mode and moves all owners' weak locks on the relation to the lock table (LKM-3).
    fn announce<'m>(&'m self, request: &Request<'_>) -> Announced<'m> {
        let LockTag::Relation { database, relation } = request.tag else {
            return Announced(None);
        };
        if !request.mode.is_strong_table_mode() {
            return Announced(None);
        }
        let count = self.strong_count(database, relation);
        count.fetch_add(1, Ordering::SeqCst);
        let mut shard = self.shard_of(&request.tag).lock();
        for owner in self.owners() {
            let mut held = owner.held();
            if let Some(at) = held.fast.iter().position(|f| f.database == database && f.relation == relation) {
                let fast = held.fast.swap_remove(at);
                let lock = shard.locks.entry(request.tag.clone()).or_default();
                for mode in fast.modes.iter() {
                    lock.grant(&owner, mode);
                }
                let entry = held.locks.entry(request.tag.clone()).or_default();
                entry.txn = entry.txn.union(fast.modes);
                entry.statement = fast.statement;
                entry.since_ns = fast.since_ns;
            }
        }
        Announced(Some(count))
    }

    /// Grants or queues, in one step.
    fn enter(&self, request: &Request<'_>) -> EntryOutcome {
        let mut guard = self.shard_of(&request.tag).lock();
        let now_ns = clock::now_ns();
        if guard.locks.len() == guard.locks.capacity() {
            memory::uncharged(|| guard.locks.reserve(1)); // LKM-16
        }
        let lock = guard.locks.entry(request.tag.clone()).or_default();
        if let Some(implicit) = &request.implicit {
            enter_implicit(lock, &request.tag, implicit, now_ns);
        }
        // As in PostgreSQL, NOWAIT is refused where a waiter's mode conflicts, also to a caller that would go ahead of that waiter (LKM-6).
        let refused = request.if_taken.fails()
            && !request.mode.is_row_strength()
            && request.mode.conflicts().meets(lock.queue.modes())
            && !lock.held_by(request.owner).contains(request.mode);
        let entered = match lock.decide(request.owner, request.mode, request.if_taken.is_brief()) {
            _ if refused => EntryOutcome::Refused,
            Decision::Grant => {
                let anew = !lock.held_by(request.owner).contains(request.mode);
                lock.grant(request.owner, request.mode);
                if !lock.queue.is_empty() {
                    // LKM-4: the request may have overtaken a waiter, which now waits for this owner, too.
                    request.owner.blocking.store(true, Ordering::SeqCst);
                }
                request.owner.held().add_own(&request.tag, request.mode, request.scope, now_ns);
                EntryOutcome::Granted(lock.dep_lsn(request.mode), anew)
            }
            Decision::Wait(_) if request.if_taken.fails() => EntryOutcome::Refused,
            Decision::Wait(position) => {
                let conflicts = request.mode.conflicts();
                let before = Culprit::of(lock, request, position);
                let waiter = Waiter::new(request, now_ns, before);
                for holder in lock.holders.iter().filter(|h| conflicts.meets(h.modes)) {
                    holder.owner.blocking.store(true, Ordering::SeqCst);
                }
                if position < lock.queue.len() {
                    // The waiters that it overtakes wait for this owner from now on.
                    request.owner.blocking.store(true, Ordering::SeqCst);
                }
                let behind = lock.holders.iter().find(|h| conflicts.meets(h.modes)).map_or(0, |h| h.owner.id);
                lock.queue.insert(position, waiter.clone());
                lock.version += 1;
                *request.owner.waiting.lock() = Some(waiter.clone());
                EntryOutcome::Queued(waiter, behind)
            }
        };
        if lock.is_idle() {
            guard.locks.remove(&request.tag);
        }
        entered
    }

    /// Grants the lock to the next waiters, books it to each, calls brief ones (LKM-17), and returns them all. The caller wakes them after the
    /// shard's mutex.
    fn admit(&self, lock: &mut Lock) -> Vec<Arc<Waiter>> {
        let (mut wake, called) = lock.admit();
        wake.iter().for_each(|waiter| self.book(lock, waiter));
        wake.extend(called);
        wake
    }

    /// Books a lock to a waiter that has become its holder.
    fn book(&self, lock: &Lock, waiter: &Waiter) {
        waiter.owner.held().add(&waiter.tag, waiter.mode, waiter.scope, waiter.since_ns);
        if !lock.queue.is_empty() {
            waiter.owner.blocking.store(true, Ordering::SeqCst);
        }
        waiter.granted(lock.dep_lsn(waiter.mode));
    }

    /// Clears the owner's wait, however it ended.
    fn wait_over(&self, waiter: &Arc<Waiter>) {
        let mut waiting = waiter.owner.waiting.lock();
        if waiting.as_ref().is_some_and(|w| Arc::ptr_eq(w, waiter)) {
            *waiting = None;
        }
        drop(waiting);
        // A request that steps aside tells of all its rounds at once.
        if let Some(aside) = &mut *waiter.owner.aside.lock() {
            aside.waiter = Some(waiter.clone());
            return;
        }
        self.history.ended(waiter, waiter.since_ns);
    }

    /// Gives up a wait, and the lock if it was granted meanwhile (LKM-8).
    fn abandon(&self, waiter: &Arc<Waiter>) {
        let mut guard = self.shard_of(&waiter.tag).lock();
        let mut wake = Vec::new();
        if waiter.left() {
            if let Some(lock) = guard.locks.get_mut(&waiter.tag) {
                lock.queue.leave(waiter);
                lock.version += 1;
                wake = self.admit(lock);
                if lock.is_idle() {
                    guard.locks.remove(&waiter.tag); // a lock for which it had been called
                }
            }
        } else if waiter.was_granted() {
            let kept = {
                let mut held = waiter.owner.held();
                forget(&mut held, &waiter.tag, waiter.mode, waiter.scope)
            };
            wake = self.reduce(&mut guard, &waiter.tag, &waiter.owner, kept, Lsn::ZERO);
        }
        drop(guard);
        wake.iter().for_each(|w| w.wake());
    }

    /// Leaves `owner` only the modes `kept` of a lock and grants it to the next waiters.
    fn reduce(
        &self,
        shard: &mut Shard,
        tag: &LockTag,
        owner: &Owner,
        kept: ModeSet,
        commit_lsn: Lsn,
    ) -> Vec<Arc<Waiter>> {
        let Some(lock) = shard.locks.get_mut(tag) else {
            return Vec::new();
        };
        lock.keep(owner, kept, commit_lsn);
        let mut wake = self.admit(lock);
        if commit_lsn != Lsn::ZERO {
            wake.extend(lock.queue.lookers().inspect(|waiter| waiter.let_look()).cloned());
        }
        if lock.is_idle() {
            shard.locks.remove(tag);
        }
        wake
    }
}

/// The outcome of a request.
pub enum RequestState<'m> {
    /// The lock is held.
    Granted(Granted),
    /// The request stands in the queue.
    Queued(PendingLock<'m>),
}

/// A place in a queue. Dropping it gives the place up.
pub struct PendingLock<'m> {
    wait: WaitFuture<'m>,
    announced: Announced<'m>,
    behind: u32,
}

impl PendingLock<'_> {
    /// Waits until the lock is handed over. The search for a deadlock comes first.
    ///
    /// # Errors
    /// `Deadlock` if this wait closed a ring.
    pub async fn wait(mut self) -> Result<Granted, LockError> {
        loop {
            if let Some(granted) = self.next().await? {
                return Ok(granted);
            }
        }
    }

    /// As `wait`; `None`, for a request that `looks`: a holder has committed and the request still waits, at its place in the queue.
    ///
    /// # Errors
    /// `Deadlock` if this wait closed a ring.
    pub async fn next(&mut self) -> Result<Option<Granted>, LockError> {
        let waiter = self.wait.waiter.clone();
        waiter.find_root();
        // LKM-4: no cycle goes through an owner that no session waits for.
        if waiter.owner.blocking.load(Ordering::SeqCst) {
            self.wait.manager.resolve_deadlock(&waiter, false);
        }
        let (event, object) = wait_event(&waiter.tag);
        let Some(dep_lsn) = waits::in_wait(event, object, &mut self.wait).behind(u64::from(self.behind)).await? else {
            return Ok(None);
        };
        self.announced.keep();
        Ok(Some(Granted { dep_lsn, waited: true }))
    }
}

enum EntryOutcome {
    /// Granted: the LSN to depend on, and whether the owner did not hold the mode before.
    Granted(Lsn, bool),
    Refused,
    Queued(Arc<Waiter>, u32),
}

/// An announced strong mode; the drop takes the announcement back when the request fails.
struct Announced<'m>(Option<&'m AtomicU32>);

impl Announced<'_> {
    /// The lock is held; its release takes the announcement back.
    fn keep(&mut self) {
        self.0 = None;
    }
}

impl Drop for Announced<'_> {
    fn drop(&mut self) {
        if let Some(count) = self.0 {
            count.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

/// Enters a holder on its behalf, in each mode that its changes imply, unless its transaction has begun to release (LKM-9).
fn enter_implicit(lock: &mut Lock, tag: &LockTag, implicit: &Implicit, now_ns: u64) {
    let mut held = implicit.owner.held();
    if held.txn != Some(implicit.txn) {
        return;
    }
    for (mode, change) in implicit.earlier.into_iter().chain([(implicit.mode, implicit.change)]) {
        if !lock.held_by(&implicit.owner).contains(mode) {
            held.add_implicit(tag, mode, change, now_ns);
            lock.enter(&implicit.owner, mode);
            debug_assert!(matches!(tag, LockTag::Transaction(_)) || lock.holders_agree(), "LKM-5 {tag:?}");
        }
        // LKM-11. This holds also if the transaction itself locked the row after the change.
        if let Some(step) = held.trail.iter_mut().rev().find(|s| s.mode == mode && s.tag == *tag) {
            let known = step.change;
            step.change = match tag {
                LockTag::Row { .. } => Some(known.map_or(change, |c| c.min(change))),
                LockTag::Transaction(_) => Some(known.map_or(change, |c| c.max(change))),
                _ => known,
            };
        }
    }
}

/// Takes one acquisition out of the owner's list; returns what is left of the lock.
fn forget(held: &mut owner::Held, tag: &LockTag, mode: LockMode, scope: LockScope) -> ModeSet {
    let Some(lock) = held.locks.get_mut(tag) else {
        return ModeSet::EMPTY;
    };
    match scope {
        LockScope::Transaction => lock.txn = lock.txn.without(mode),
        LockScope::Session => {
            if let Some((_, count)) = lock.session.iter_mut().find(|(m, _)| *m == mode) {
                *count -= 1;
            }
            lock.session.retain(|(_, count)| *count > 0);
        }
    }
    let kept = lock.modes();
    if kept.is_empty() {
        held.locks.remove(tag);
    }
    if scope == LockScope::Transaction {
        held.trail.retain(|s| !(s.mode == mode && s.tag == *tag));
    }
    kept
}

/// Under which event a wait for `tag` is booked.
fn wait_event(tag: &LockTag) -> (WaitEvent, waits::Object) {
    use waits::Object;
    match tag {
        LockTag::Relation { database, relation } => {
            (WaitEvent::LockRelation, Object::new(u64::from(*database), *relation))
        }
        LockTag::Row { tree, .. } => (WaitEvent::LockTuple, Object::new(tree.0, 0)),
        LockTag::UniqueKey { tree, .. } | LockTag::Place { tree, .. } => {
            (WaitEvent::LockTransactionid, Object::new(tree.0, 0))
        }
        LockTag::Transaction(txn) => (WaitEvent::LockTransactionid, Object::new(0, txn.0)),
        LockTag::VirtualTransaction(id) => (WaitEvent::LockVirtualxid, Object::new(u64::from(id.session), id.local)),
        LockTag::Object { class, object, .. } => (WaitEvent::LockObject, Object::new(u64::from(*class), *object)),
        LockTag::Advisory { database, .. } => (WaitEvent::LockAdvisory, Object::new(u64::from(*database), 0)),
    }
}

#[cfg(test)]
mod tests;
