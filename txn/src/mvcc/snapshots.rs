//! Snapshots: each is one LSN. The horizon's bound is the LSN below which no new snapshot begins.
//!
//! # Structure
//! ```text
//! session ── Reader { slot, open snapshots } ──► Slot.read_lsn   the oldest one: one word per session, written by that session only
//!                                             └► Slot.younger    the others, if a session has several: a cursor's beside a statement's
//! pruner  ── refresh: publish bound ──► scan slots ──► Horizon { bound, active }, shared by all readers
//! ```
//!
//! # Life of a snapshot
//! A reader loads the LSN, stores it in the slot, fences, and loads the bound. If the bound has passed the LSN, the reader repeats this. So
//! either the scan that follows the publishing of a bound sees the slot, or the reader sees the bound: Dekker's argument, with a sequentially
//! consistent fence on both sides. The store that closes the snapshot releases: what was read by it was read before. A second snapshot of a
//! session goes the same way over the list of the younger ones. When the oldest one is closed, the next one leaves that list for the slot's
//! word under the list's mutex, and the scan that finds the list not empty reads both under it.
//!
//! A snapshot can be lent: a reader of its own then holds the same LSN (`lend`), and readers of other sessions take the LSN from there (`join`), after
//! the snapshot's first reader has closed it, too. Both store the LSN in a slot while another slot shows it, and under the mutex that the scan holds:
//! a scan sees the old slot or both.
//!
//! # Invariants
//! - SNP-1: the horizon that `refresh` returns lists every open snapshot below its bound, those included that a session has besides an older one:
//!   pruning frees versions between two listed snapshots. No snapshot begins below that bound later.
//! - SNP-2: the bound never falls and never exceeds the durable LSN that it was computed from.
//! - SNP-3: the LSNs of the snapshots that a session begins never decrease, and its first open one is the oldest. One that it joins may be older than
//!   those before it; then no other is open.
//! - SNP-4: a snapshot is joined only while a reader holds it, so the horizon never passes an LSN between its lending and its last reader's end.
//!
//! The cost of beginning a snapshot does not depend on how many transactions are open: no list of them is copied.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use clearway_base::sync::Mutex;
use clearway_base::waits::now_ns;
use clearway_storage::ids::Lsn;

use crate::lockmgr::Owner;
use crate::mutation::{self, Mutation};

const IDLE: u64 = u64::MAX;

#[derive(Debug)]
struct Slot {
    read_lsn: AtomicU64,
    /// How many snapshots there are in `younger`.
    more: AtomicU64,
    /// The session's other open snapshots, each LSN once. A leaf: nothing is locked under it.
    younger: Mutex<Vec<Lsn>>,
    /// When the snapshot in the slot was begun.
    since_ns: AtomicU64,
    owner: Option<Arc<Owner>>,
}

impl Slot {
    fn list(&self, lsn: Lsn) {
        let mut younger = self.younger.lock();
        younger.push(lsn);
        self.more.store(younger.len() as u64, Ordering::SeqCst);
    }

    fn unlist(&self, lsn: Lsn) {
        let mut younger = self.younger.lock();
        younger.retain(|other| *other != lsn);
        self.more.store(younger.len() as u64, Ordering::SeqCst);
    }

    /// The oldest snapshot was closed, and this one is the oldest now.
    fn becomes_oldest(&self, lsn: Lsn) {
        let mut younger = self.younger.lock();
        self.read_lsn.store(lsn.0, Ordering::SeqCst);
        younger.retain(|other| *other != lsn);
        self.more.store(younger.len() as u64, Ordering::SeqCst);
    }

    /// Adds the open snapshots (SNP-1). The count is read first: where it is 0, the word that is read later is that of the only snapshot, or of one
    /// that began after the bound was published.
    fn add_open(&self, open: &mut Vec<Lsn>) {
        let younger = (self.more.load(Ordering::SeqCst) > 0).then(|| self.younger.lock());
        open.push(Lsn(self.read_lsn.load(Ordering::SeqCst)));
        open.extend(younger.iter().flat_map(|younger| younger.iter()));
    }
}

/// An open snapshot, for views of what holds old versions.
#[derive(Clone, Debug)]
pub struct OpenSnapshot {
    /// Commits at or below this are seen.
    pub read_lsn: Lsn,
    /// When it was begun, by the clock of wait events.
    pub since_ns: u64,
    /// Its session, if it belongs to one.
    pub owner: Option<Arc<Owner>>,
}

/// What may be pruned: everything that no snapshot in `active` and none at or above `bound` can see.
#[derive(Debug)]
pub struct Horizon {
    bound: Lsn,
    active: Box<[Lsn]>,
}

impl Horizon {
    /// Whether every snapshot that is or will be open sees a change that was committed at `commit`, and it is durable.
    pub fn covers(&self, commit: Lsn) -> bool {
        commit <= self.oldest()
    }

    /// The oldest LSN at which a snapshot may read.
    pub fn oldest(&self) -> Lsn {
        self.active.first().copied().unwrap_or(self.bound).min(self.bound)
    }

    /// Whether a commit at this LSN is durable, and no snapshot that begins from now on can miss it.
    pub fn reaches(&self, commit: Lsn) -> bool {
        commit <= self.bound
    }

    /// The snapshots that were open below the bound, oldest first.
    pub fn active(&self) -> &[Lsn] {
        &self.active
    }

    /// The oldest snapshot that can read a version which was current from `from` until `until`.
    pub fn reader(&self, from: Lsn, until: Lsn) -> Option<Lsn> {
        let first = self.active.partition_point(|s| *s < from);
        self.active.get(first).copied().filter(|s| *s < until)
    }

    /// Whether any present or future snapshot can read a version that was current from `from` until `until` (commit LSNs).
    pub fn needs(&self, from: Lsn, until: Lsn) -> bool {
        if until > self.bound {
            return true;
        }
        self.reader(from, until).is_some()
    }
}

/// All sessions' snapshots.
#[derive(Debug)]
pub struct Snapshots {
    bound: AtomicU64,
    slots: Mutex<Vec<Arc<Slot>>>,
    /// How many slots there are.
    readers: AtomicU64,
    horizon: Mutex<Arc<Horizon>>,
}

impl Default for Snapshots {
    fn default() -> Self {
        Self::new()
    }
}

impl Snapshots {
    /// No snapshot, nothing prunable.
    pub fn new() -> Snapshots {
        Snapshots {
            bound: AtomicU64::new(0),
            slots: Mutex::new("txn/mvcc/slots", Vec::new()),
            readers: AtomicU64::new(0),
            horizon: Mutex::new("txn/mvcc/horizon", Arc::new(Horizon { bound: Lsn::ZERO, active: Box::new([]) })),
        }
    }

    /// A reader that belongs to no session.
    pub fn reader(self: &Arc<Self>) -> Reader {
        self.reader_of(None)
    }

    /// A reader for a session.
    pub fn reader_of(self: &Arc<Self>, owner: Option<Arc<Owner>>) -> Reader {
        let slot = Arc::new(Slot {
            read_lsn: AtomicU64::new(IDLE),
            more: AtomicU64::new(0),
            younger: Mutex::new("txn/mvcc/younger", Vec::new()),
            since_ns: AtomicU64::new(0),
            owner,
        });
        self.slots.lock().push(slot.clone());
        self.readers.fetch_add(1, Ordering::Relaxed);
        Reader { all: self.clone(), slot, open: Vec::new(), latest: Lsn::ZERO }
    }

    /// How many readers there are.
    pub fn readers(&self) -> u64 {
        self.readers.load(Ordering::Relaxed)
    }

    /// Raises the bound to `durable` and lists the snapshots that are open below it (SNP-1, SNP-2).
    pub fn refresh(&self, durable: Lsn) -> Arc<Horizon> {
        let slots = self.slots.lock();
        let bound = match mutation::active(Mutation::PurgeBeforeDurable) {
            // Not published: a reader at the durable LSN would begin its snapshot again and again.
            true => durable.0,
            false => self.bound.fetch_max(durable.0, Ordering::SeqCst).max(durable.0),
        };
        fence(Ordering::SeqCst);
        let mut active = Vec::new();
        slots.iter().for_each(|slot| slot.add_open(&mut active));
        active.retain(|lsn| lsn.0 < bound);
        active.sort_unstable();
        active.dedup();
        let horizon = Arc::new(Horizon { bound: Lsn(bound), active: active.into() });
        *self.horizon.lock() = horizon.clone();
        horizon
    }

    /// The result of the latest `refresh`. If it is out of date, versions are kept longer than needed, never freed too early.
    pub fn horizon(&self) -> Arc<Horizon> {
        self.horizon.lock().clone()
    }

    /// The oldest snapshot of each session that has one, oldest first.
    pub fn open(&self) -> Vec<OpenSnapshot> {
        let slots = self.slots.lock();
        let shown = |slot: &Arc<Slot>| OpenSnapshot {
            read_lsn: Lsn(slot.read_lsn.load(Ordering::Relaxed)),
            since_ns: slot.since_ns.load(Ordering::Relaxed),
            owner: slot.owner.clone(),
        };
        let mut open: Vec<OpenSnapshot> = slots.iter().map(shown).filter(|s| s.read_lsn.0 != IDLE).collect();
        drop(slots);
        open.sort_by_key(|s| (s.read_lsn, s.since_ns));
        open
    }
}

/// An open snapshot; the `Reader` that opened it closes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Commits at or below this are seen.
    pub read_lsn: Lsn,
}

/// A session's place among the readers.
#[derive(Debug)]
pub struct Reader {
    all: Arc<Snapshots>,
    slot: Arc<Slot>,
    /// Open snapshots, oldest first. The slot shows each.
    open: Vec<Lsn>,
    latest: Lsn,
}

impl Reader {
    /// Opens a snapshot at the LSN that `lsn` returns. If the bound passed that LSN in between, `lsn` is called again.
    pub fn begin(&mut self, lsn: impl Fn() -> Lsn) -> Snapshot {
        self.begin_at(now_ns(), lsn)
    }

    /// The same at this moment of the clock of wait events.
    pub fn begin_at(&mut self, now_ns: u64, lsn: impl Fn() -> Lsn) -> Snapshot {
        loop {
            // SNP-3: never below the session's previous snapshot.
            let read_lsn = lsn().max(self.latest);
            assert!(read_lsn.0 != IDLE, "SNP-1: the mark of an idle slot is no snapshot");
            let last = self.open.last().copied();
            assert!(last.is_none_or(|before| before <= read_lsn), "SNP-3: the first open snapshot is the oldest");
            match last {
                None => {
                    self.slot.since_ns.store(now_ns, Ordering::Relaxed);
                    self.slot.read_lsn.store(read_lsn.0, Ordering::Relaxed);
                }
                Some(before) if before == read_lsn => {}
                Some(_) => self.slot.list(read_lsn),
            }
            if last != Some(read_lsn) {
                fence(Ordering::SeqCst); // SNP-1
                if self.all.bound.load(Ordering::SeqCst) > read_lsn.0 {
                    if last.is_some() {
                        self.slot.unlist(read_lsn);
                    }
                    continue;
                }
            }
            self.latest = read_lsn;
            self.open.push(read_lsn);
            return Snapshot { read_lsn };
        }
    }

    /// Opens once more a snapshot that is open; none: it is not.
    pub fn again(&mut self, read_lsn: Lsn) -> Option<Snapshot> {
        let at = self.open.iter().position(|open| *open == read_lsn)?;
        // SNP-3: the order stays. The slot shows this LSN already.
        self.open.insert(at, read_lsn);
        Some(Snapshot { read_lsn })
    }

    /// A reader of its own that holds one of the open snapshots until it is dropped; none: it is not open.
    pub fn lend(&self, read_lsn: Lsn) -> Option<Reader> {
        if !self.open.contains(&read_lsn) {
            return None;
        }
        let slot = Arc::new(Slot {
            read_lsn: AtomicU64::new(read_lsn.0),
            more: AtomicU64::new(0),
            younger: Mutex::new("txn/mvcc/younger", Vec::new()),
            since_ns: AtomicU64::new(self.slot.since_ns.load(Ordering::Relaxed)),
            owner: self.slot.owner.clone(),
        });
        // SNP-4: this reader's slot shows the LSN until after the new one is in the list.
        self.all.slots.lock().push(slot.clone());
        self.all.readers.fetch_add(1, Ordering::Relaxed);
        Some(Reader { all: self.all.clone(), slot, open: vec![read_lsn], latest: read_lsn })
    }

    /// Opens the snapshot that another reader holds; none: that reader has none open, or this one has.
    pub fn join(&mut self, lender: &Reader) -> Option<Snapshot> {
        assert!(Arc::ptr_eq(&self.all, &lender.all), "SNP-4: a horizon knows the snapshots of one database");
        let read_lsn = *lender.open.first()?;
        if !self.open.is_empty() {
            return None; // SNP-3
        }
        // SNP-4: no scan goes on, and the next one sees this slot.
        let _scan = self.all.slots.lock();
        self.slot.since_ns.store(lender.slot.since_ns.load(Ordering::Relaxed), Ordering::Relaxed);
        self.slot.read_lsn.store(read_lsn.0, Ordering::SeqCst);
        self.latest = self.latest.max(read_lsn);
        self.open.push(read_lsn);
        Some(Snapshot { read_lsn })
    }

    /// Closes a snapshot.
    pub fn end(&mut self, snapshot: Snapshot) {
        let at = self
            .open
            .iter()
            .position(|l| *l == snapshot.read_lsn)
            .expect("a snapshot is closed by the session that opened it");
        self.open.remove(at);
        match self.open.first() {
            None => self.slot.read_lsn.store(IDLE, Ordering::Release),
            Some(_) if self.open.get(at) == Some(&snapshot.read_lsn) => {} // opened once more
            Some(next) if at == 0 => self.slot.becomes_oldest(*next),
            Some(_) => self.slot.unlist(snapshot.read_lsn),
        }
    }

    /// How many snapshots are open.
    pub fn open(&self) -> usize {
        self.open.len()
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.all.slots.lock().retain(|s| !Arc::ptr_eq(s, &self.slot));
        self.all.readers.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_between_two_snapshots_is_not_needed() {
        let all = Arc::new(Snapshots::new());
        let (mut old, mut new) = (all.reader(), all.reader());
        let a = old.begin(|| Lsn(10));
        let _b = new.begin(|| Lsn(50));
        let horizon = all.refresh(Lsn(100));
        assert_eq!(horizon.oldest(), Lsn(10));
        assert!(horizon.needs(Lsn(5), Lsn(20)), "read at 10");
        assert!(horizon.needs(Lsn(10), Lsn(20)), "a commit at 10 is seen at 10");
        assert!(!horizon.needs(Lsn(11), Lsn(50)), "between 10 and 50");
        assert!(!horizon.needs(Lsn(51), Lsn(100)));
        assert!(horizon.needs(Lsn(60), Lsn(101)), "not durable yet");
        old.end(a);
        assert_eq!(all.refresh(Lsn(100)).oldest(), Lsn(50));
    }

    #[test]
    fn a_snapshot_that_the_bound_has_passed_begins_again() {
        let all = Arc::new(Snapshots::new());
        all.refresh(Lsn(30));
        let asked = AtomicU64::new(0);
        let mut reader = all.reader();
        // The first answer is stale, as if the beginner had been interrupted between load and store.
        let snapshot = reader.begin(|| if asked.fetch_add(1, Ordering::Relaxed) == 0 { Lsn(20) } else { Lsn(40) });
        assert_eq!((snapshot.read_lsn, asked.into_inner()), (Lsn(40), 2));
    }

    #[test]
    fn the_horizon_lists_each_snapshot_of_a_session() {
        let all = Arc::new(Snapshots::new());
        let mut reader = all.reader();
        let cursor = reader.begin(|| Lsn(10));
        let statement = reader.begin(|| Lsn(20));
        let again = reader.again(Lsn(20)).expect("it is open");
        assert!(all.refresh(Lsn(100)).needs(Lsn(15), Lsn(30)), "SNP-1: read at 20");
        reader.end(statement);
        assert_eq!(all.refresh(Lsn(100)).active(), [Lsn(10), Lsn(20)], "it was opened twice");
        reader.end(cursor);
        assert_eq!(all.refresh(Lsn(100)).active(), [Lsn(20)]);
        let (newest, asked) = (AtomicU64::new(50), AtomicU64::new(0));
        let look = || {
            asked.fetch_add(1, Ordering::Relaxed);
            Lsn(newest.swap(120, Ordering::Relaxed))
        };
        let second = reader.begin(look);
        assert_eq!((second.read_lsn, asked.into_inner()), (Lsn(120), 2), "no snapshot begins below the bound");
        assert_eq!(all.refresh(Lsn(200)).active(), [Lsn(20), Lsn(120)]);
        reader.end(second);
        reader.end(again);
        assert!(all.refresh(Lsn(200)).active().is_empty());
    }

    #[test]
    fn an_older_snapshot_of_the_session_keeps_holding() {
        let all = Arc::new(Snapshots::new());
        let mut reader = all.reader();
        let cursor = reader.begin(|| Lsn(10));
        let statement = reader.begin(|| Lsn(20));
        reader.end(statement);
        let statement = reader.begin(|| Lsn(15));
        assert_eq!(statement.read_lsn, Lsn(20), "SNP-3");
        assert_eq!(all.refresh(Lsn(99)).oldest(), Lsn(10));
        reader.end(cursor);
        assert_eq!(all.refresh(Lsn(99)).oldest(), Lsn(20));
        reader.end(statement);
    }

    #[test]
    fn a_snapshot_that_was_lent_holds_until_its_last_reader_ends() {
        // SNP-4
        let all = Arc::new(Snapshots::new());
        let (mut first, mut other) = (all.reader(), all.reader());
        let begun = first.begin(|| Lsn(10));
        assert!(first.lend(Lsn(9)).is_none(), "it is not open");
        let lent = first.lend(begun.read_lsn).expect("it is open");
        first.end(begun);
        assert_eq!(all.refresh(Lsn(100)).active(), [Lsn(10)], "the lent one holds it");
        // SNP-3: below what the session has read before.
        let before = other.begin(|| Lsn(150));
        assert!(other.join(&lent).is_none(), "another one is open");
        other.end(before);
        let joined = other.join(&lent).expect("nothing is open");
        assert_eq!(joined.read_lsn, Lsn(10));
        drop(lent);
        assert_eq!(all.readers(), 2);
        let horizon = all.refresh(Lsn(200));
        assert_eq!(horizon.active(), [Lsn(10)], "who joined it holds it");
        assert!(horizon.needs(Lsn(5), Lsn(20)));
        let second = other.begin(|| Lsn(220));
        assert_eq!(all.refresh(Lsn(300)).active(), [Lsn(10), Lsn(220)]);
        other.end(joined);
        assert_eq!(all.refresh(Lsn(300)).active(), [Lsn(220)]);
        other.end(second);
        assert!(all.refresh(Lsn(300)).active().is_empty());
    }
}
