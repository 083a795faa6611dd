//! Sequences: each value is given out once, also if the transaction that asked for it is rolled back.
//!
//! Values are taken from the stored state 32 at a time, as in PostgreSQL, by a transaction of their own; a crash skips the rest of such a
//! batch. A reply that depends on a value waits until that transaction is durable.
//!
//! # Invariants
//! - SEQ-1: when a reply with a value leaves, the stored state counts that value as taken, and the state is durable.
//! - SEQ-2: a sequence that is restarted, or gets another definition, gets another state, and its catalog object names that state. So a rollback of
//!   the change returns to the old state, which goes on where it was. A value that was given out to another transaction is never given back.

use std::collections::HashMap;
use std::sync::Arc;

use clearway_base::sync::Mutex;
use clearway_storage::ids::Lsn;
use clearway_txn::lockmgr::{IfTaken, LockMode};
use clearway_txn::mvcc::book::View;
use clearway_txn::read::Reading;
use clearway_txn::transaction::{Basis, Change, Transaction};
use clearway_txn::transactions::Transactions;

use crate::catalog::{Oid, SEQUENCE_TREE, Sequence, object_key};
use crate::error::EngineError;

impl Sequence {
    /// The number under which its state stands.
    pub fn state_oid(&self) -> Oid {
        if self.state == 0 { self.oid } else { self.state }
    }

    /// The value with which its state begins.
    pub fn first(&self) -> i64 {
        self.restart.unwrap_or(self.start)
    }
}

/// Values taken from the stored state at once.
const BATCH: i64 = 32;

/// Where a sequence stands in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SequenceState {
    /// The last value given out; if not `called`, the next one.
    last: i64,
    called: bool,
    /// Steps that may still be given out before the tree has to be told.
    left: i64,
    dep_lsn: Lsn,
}

/// What sequences stand at.
#[derive(Debug)]
pub struct Sequences {
    standing: Mutex<HashMap<Oid, SequenceState>>,
}

impl Default for Sequences {
    fn default() -> Self {
        Sequences { standing: Mutex::new("engine/sequence", HashMap::new()) }
    }
}

/// A value and the commit on which it depends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextValue {
    /// The value; `None` when the sequence has come to its end and does not cycle.
    pub value: Option<i64>,
    /// What the reply waits for.
    pub dep_lsn: Lsn,
}

/// Where a sequence stands, for a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shown {
    /// The last value given out; if not `called`, the next one.
    pub last: i64,
    /// Whether one has been given out.
    pub called: bool,
    /// How many more may be given out before the log is told: `log_cnt`.
    pub left: i64,
    /// What the reply waits for.
    pub dep_lsn: Lsn,
}

fn step(sequence: &Sequence, standing: &SequenceState) -> Option<i64> {
    assert!(sequence.increment != 0, "a sequence moves");
    assert!(sequence.min <= sequence.max, "a sequence has a first value and a last");
    if !standing.called {
        return Some(standing.last);
    }
    let inside = |v: &i64| (sequence.min..=sequence.max).contains(v);
    match standing.last.checked_add(sequence.increment).filter(inside) {
        None if sequence.cycle && sequence.increment > 0 => Some(sequence.min),
        None if sequence.cycle => Some(sequence.max),
        next => next,
    }
}

impl Sequences {
    /// The next value.
    ///
    /// # Errors
    /// From the trees.
    pub async fn next(&self, all: &Arc<Transactions>, sequence: &Sequence) -> Result<NextValue, EngineError> {
        loop {
            {
                let mut known = self.standing.lock();
                if let Some(standing) = known.get_mut(&sequence.state_oid()) {
                    let Some(value) = step(sequence, standing) else {
                        return Ok(NextValue { value: None, dep_lsn: standing.dep_lsn });
                    };
                    // Without steps left the tree is asked first.
                    if standing.left > 0 {
                        *standing = SequenceState { last: value, called: true, left: standing.left - 1, ..*standing };
                        return Ok(NextValue { value: Some(value), dep_lsn: standing.dep_lsn });
                    }
                }
            }
            self.take(all, sequence, None).await?;
        }
    }

    /// Sets what `setval` says.
    ///
    /// # Errors
    /// From the trees.
    pub async fn set(
        &self,
        all: &Arc<Transactions>,
        sequence: &Sequence,
        last: i64,
        called: bool,
    ) -> Result<Lsn, EngineError> {
        self.take(all, sequence, Some((last, called))).await
    }

    /// What a SELECT from the sequence shows.
    ///
    /// # Errors
    /// From the trees.
    pub async fn show(&self, all: &Arc<Transactions>, sequence: &Sequence) -> Result<Shown, EngineError> {
        loop {
            let standing = self.standing.lock().get(&sequence.state_oid()).copied();
            if let Some(SequenceState { last, called, left, dep_lsn }) = standing {
                return Ok(Shown { last, called, left, dep_lsn });
            }
            let stored = read(all, sequence).await?;
            let (last, called) = stored.unwrap_or((sequence.first(), false));
            let standing = SequenceState { last, called, left: 0, dep_lsn: Lsn::ZERO };
            self.standing.lock().entry(sequence.state_oid()).or_insert(standing);
        }
    }

    /// Forgets a sequence that was dropped or whose definition was rolled back.
    pub fn forget(&self, sequence: Oid) {
        self.standing.lock().remove(&sequence);
    }

    /// Tells the tree that a batch was taken, or what was set; SEQ-1.
    async fn take(
        &self,
        all: &Arc<Transactions>,
        sequence: &Sequence,
        set: Option<(i64, bool)>,
    ) -> Result<Lsn, EngineError> {
        let owner = all.locks().register(0);
        let mut txn = Transaction::begin(all.clone(), owner.clone(), false);
        let taken = store_batch(all, sequence, set, &mut txn).await;
        let ended = match taken {
            Ok(next) => {
                // Before the row's lock goes, so that batches are taken up in the order of their commits.
                let publish = |lsn| {
                    self.standing.lock().insert(sequence.state_oid(), SequenceState { dep_lsn: lsn, ..next });
                };
                txn.commit(&[], publish).await.map(|lsn| lsn.unwrap_or(Lsn::ZERO)).map_err(EngineError::from)
            }
            Err(error) => txn.roll_back().await.map_err(EngineError::from).and(Err(error)),
        };
        all.locks().unregister(&owner);
        ended
    }
}

/// Takes the next batch, or sets a state, in the tree. What stands there is the last value that may have been given out.
async fn store_batch(
    all: &Arc<Transactions>,
    sequence: &Sequence,
    set: Option<(i64, bool)>,
    txn: &mut Transaction,
) -> Result<SequenceState, EngineError> {
    let tree = all.store().tree(SEQUENCE_TREE);
    let key = object_key(sequence.state_oid());
    // One at a time: a state row that is not there yet is made first, then locked.
    let fresh = encode(sequence.first(), false);
    txn.change(&tree, &key, Change::Insert { value: &fresh }, Basis::Locked, IfTaken::Wait).await?;
    let locked = txn.lock_row(&tree, &key, LockMode::RowNoKeyUpdate, IfTaken::Wait, None).await?;
    let (last, called) = locked.and_then(|row| decode(&row.value)).unwrap_or((sequence.first(), false));
    let mut next = SequenceState { last, called, left: 0, dep_lsn: Lsn::ZERO };
    let mut ahead = next;
    match set {
        Some((last, called)) => (next.last, next.called, ahead.last, ahead.called) = (last, called, last, called),
        None => {
            while next.left < BATCH {
                let Some(value) = step(sequence, &ahead) else {
                    break;
                };
                (ahead.last, ahead.called) = (value, true);
                next.left += 1;
            }
        }
    }
    assert!((0..=BATCH).contains(&next.left), "SEQ-1: no more values are given out than are logged");
    assert!(next.left == 0 || ahead.called, "SEQ-1: what the tree says is at or behind every value of the batch");
    let value = encode(ahead.last, ahead.called);
    let change = Change::Update { value: &value, strength: LockMode::RowNoKeyUpdate };
    txn.change(&tree, &key, change, Basis::Locked, IfTaken::Wait).await?;
    Ok(next)
}

async fn read(all: &Arc<Transactions>, sequence: &Sequence) -> Result<Option<(i64, bool)>, EngineError> {
    let view = View { read_lsn: all.visible_lsn(), ..View::default() };
    let (mut reading, mut dep) = (Reading::default(), Lsn::ZERO);
    let tree = all.store().tree(SEQUENCE_TREE);
    let found = reading.get(all.book(), &tree, &object_key(sequence.state_oid()), &view, &mut dep).await?;
    Ok(if found { decode(reading.value()) } else { None })
}

fn encode(last: i64, called: bool) -> [u8; 9] {
    let mut out = [u8::from(called); 9];
    out[..8].copy_from_slice(&last.to_le_bytes());
    out
}

fn decode(bytes: &[u8]) -> Option<(i64, bool)> {
    let (last, [called]) = bytes.split_first_chunk::<8>()? else {
        return None;
    };
    Some((i64::from_le_bytes(*last), *called != 0))
}
