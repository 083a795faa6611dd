//! What transactions of the library work with, kept from one to the next: sessions, tables as they were looked up last, memory for rows.
//!
//! # Structure
//! Seats that nothing uses lie in shards; a thread uses the shard of its number, so that two threads do not change the same memory. Where that shard
//! has none, a seat of another one is taken: a future may begin on one thread and end on another.
//!
//! # Invariants
//! - SEA-1: a transaction is counted in its shard before it looks whether the database is closing, and closing is announced before the shards are
//!   added up. So either the transaction is refused, or closing waits for it (EMB-6).
//! - SEA-2: a table as it was looked up is used while the catalog has the version that was read before the look-up. Replies depend on the commit that
//!   published that version (SES-6).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use clearway_base::sync::{Mutex, thread_number};
use clearway_storage::ids::Lsn;
use clearway_storage::sync::Bell;
use clearway_storage::wal::Wal;
use clearway_txn::lockmgr::LockTag;

use super::columns::{Columns, Key};
use super::error::Error;
use super::table::Table;
use crate::codec::places::Places;
use crate::session::few::{FewRows, Walk};
use crate::session::{Session, Statement};
use crate::table::entry_moves::EntryMoves;
use crate::table::shape::TableShape;
use crate::value::Value;

const SHARDS: usize = 16;
/// Tables that a seat remembers.
const KNOWN_MAX: usize = 16;

/// A session and what it keeps.
pub(super) struct Seat {
    pub(super) session: Session,
    pub(super) kept: Kept,
}

impl Seat {
    pub(super) fn new(session: Session) -> Box<Seat> {
        Box::new(Seat { session, kept: Kept::default() })
    }
}

/// See the head of this module.
#[derive(Default)]
pub(super) struct Kept {
    pub(super) known: Vec<Known>,
    pub(super) key: KeyMemory,
    pub(super) new: NewRow,
    pub(super) walk: Walk,
    /// So many rows the last walk gave.
    pub(super) walked: usize,
    pub(super) few: FewRows,
}

/// Memory for the key of a row.
#[derive(Default)]
pub(super) struct KeyMemory {
    values: Vec<Value>,
    bytes: Vec<u8>,
}

impl KeyMemory {
    pub(super) fn write<K: Key>(&mut self, shape: &TableShape, key: &K) -> &[u8] {
        self.values.clear();
        self.bytes.clear();
        key.write(&mut self.values);
        shape.append_prefix(&self.values, &mut self.bytes);
        &self.bytes
    }

    /// The key that was written last.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// Memory for a row that is to be inserted.
#[derive(Default)]
pub(super) struct NewRow {
    values: Vec<Value>,
    pub(super) key: Vec<u8>,
    pub(super) value: Vec<u8>,
    pub(super) entries: EntryMoves,
}

impl NewRow {
    /// Writes a row down as its table stores it; false: a value does not fit its column.
    pub(super) fn write<K: Key, V: Columns>(
        &mut self,
        table: &Table<K, V>,
        shape: &TableShape,
        key: &K,
        value: &V,
    ) -> bool {
        self.values.clear();
        table.row_into(shape, (key, value), &mut self.values);
        if shape.check_fit(&self.values).is_err() {
            return false;
        }
        self.key.clear();
        self.value.clear();
        shape.key_into(&self.values, &mut self.key);
        shape.value_into(&self.values, &mut self.value);
        true
    }
}

/// A table as it was looked up.
pub(super) struct Known {
    table: u64,
    /// The last `put` into it inserted a row.
    inserts: bool,
    /// Of the catalog.
    pub(super) version: u64,
    /// When that version was committed.
    pub(super) lsn: Lsn,
    pub(super) shape: Arc<TableShape>,
    /// Where the value's columns are in rows without a null; none: that depends on the row.
    places: Option<Places>,
    pub(super) tag: LockTag,
}

impl Known {
    pub(super) fn columns(&self) -> (&TableShape, Option<&Places>) {
        (&self.shape, self.places.as_ref())
    }
}

impl Kept {
    /// Looks a table up; its place for [`Kept::at`].
    ///
    /// # Errors
    /// The table is not there, or not as its types say.
    pub(super) fn look_up<K: Key, V: Columns>(
        &mut self,
        table: &Table<K, V>,
        session: &Session,
    ) -> Result<usize, Error> {
        let version = session.db().catalog_version(); // SEA-2: before the catalog
        let place = self.known.iter().position(|known| known.table == table.id());
        match place {
            Some(at) if self.known[at].version == version => Ok(at),
            _ => self.look_up_anew(table, session, version),
        }
    }

    #[cold]
    fn look_up_anew<K: Key, V: Columns>(
        &mut self,
        table: &Table<K, V>,
        session: &Session,
        version: u64,
    ) -> Result<usize, Error> {
        self.known.retain(|known| known.table != table.id());
        let catalog = session.db().catalog();
        let shape = table.shape(&catalog)?;
        if self.known.len() == KNOWN_MAX {
            self.known.remove(0);
        }
        let tag = LockTag::Relation { database: table.database(), relation: u64::from(table.oid()) };
        let places = shape.places(table.value_columns());
        let (table, lsn) = (table.id(), catalog.lsn);
        self.known.push(Known { table, inserts: false, version, lsn, shape, places, tag });
        Ok(self.known.len() - 1)
    }

    pub(super) fn at(&self, place: usize) -> &Known {
        &self.known[place]
    }

    /// Whether the last `put` into a table inserted a row.
    pub(super) fn inserts<K: Key, V: Columns>(&self, table: &Table<K, V>) -> bool {
        self.known.iter().any(|known| known.table == table.id() && known.inserts)
    }

    /// A `put` has inserted a row, or replaced one.
    pub(super) fn note_put<K: Key, V: Columns>(&mut self, table: &Table<K, V>, inserted: bool) {
        if let Some(known) = self.known.iter_mut().find(|known| known.table == table.id()) {
            known.inserts = inserted;
        }
    }
}

/// The statement of a transaction that is not begun (EMB-8).
pub(super) struct Alone {
    pub(super) statement: Statement,
    /// Its table among those that the seat knows.
    pub(super) place: usize,
}

/// The seats that nothing uses, and how many transactions are open.
pub(super) struct Seats {
    shards: [Shard; SHARDS],
    closing: AtomicBool,
    all_ended: Bell,
}

#[repr(align(64))]
struct Shard {
    #[expect(clippy::vec_box, reason = "a seat is large, and is moved in and out for each transaction")]
    idle: Mutex<Vec<Box<Seat>>>,
    open: AtomicUsize,
}

impl Seats {
    pub(super) fn new() -> Seats {
        let shard = || Shard { idle: Mutex::new("engine/idle_sessions", Vec::new()), open: AtomicUsize::new(0) };
        Seats {
            shards: std::array::from_fn(|_| shard()),
            closing: AtomicBool::new(false),
            all_ended: Bell::new("engine/all_ended"),
        }
    }

    fn own(&self) -> usize {
        thread_number() % SHARDS
    }

    /// A seat that nothing uses.
    pub(super) fn take(&self) -> Option<Box<Seat>> {
        let own = self.own();
        let pop = |shard: &Shard| shard.idle.lock().pop();
        pop(&self.shards[own]).or_else(|| (1..SHARDS).find_map(|far| pop(&self.shards[(own + far) % SHARDS])))
    }

    pub(super) fn give_back(&self, seat: Box<Seat>) {
        self.shards[self.own()].idle.lock().push(seat);
    }

    /// Counts a transaction as open until the guard is dropped.
    ///
    /// # Errors
    /// `Closed` (EMB-6).
    pub(super) fn open<'a>(&'a self, wal: &'a Wal) -> Result<Open<'a>, Error> {
        let shard = &self.shards[self.own()];
        shard.open.fetch_add(1, Ordering::SeqCst);
        let open = Open { seats: self, shard, wal, works: AtomicBool::new(false) };
        // SEA-1. If the database is closing, dropping the guard takes the count back.
        if self.closing.load(Ordering::SeqCst) { Err(Error::Closed) } else { Ok(open) }
    }

    /// Refuses transactions from now on, waits for those that are open, and forgets the seats.
    pub(super) async fn close(&self) {
        self.closing.store(true, Ordering::SeqCst);
        // SEA-1
        self.all_ended.wait_until(|| self.shards.iter().all(|shard| shard.open.load(Ordering::SeqCst) == 0)).await;
        self.shards.iter().for_each(|shard| shard.idle.lock().clear());
    }
}

/// See [`Seats::open`].
pub(super) struct Open<'a> {
    seats: &'a Seats,
    shard: &'a Shard,
    wal: &'a Wal,
    works: AtomicBool,
}

impl Open<'_> {
    /// The log counts the session as one at work, from now on: it uses the count to tell whether a committing session is alone. A read that begins no
    /// transaction is not counted.
    pub(super) fn works(&self) {
        if !self.works.swap(true, Ordering::Relaxed) {
            self.wal.session_busy(true);
        }
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        if self.works.load(Ordering::Relaxed) {
            self.wal.session_busy(false);
        }
        self.shard.open.fetch_sub(1, Ordering::SeqCst);
        // SEA-1: closing was announced before the shards were added up.
        if self.seats.closing.load(Ordering::SeqCst) {
            self.seats.all_ended.ring();
        }
    }
}
