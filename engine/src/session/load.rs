//! Many rows into one table by one statement. Where the transaction itself has created the table's tree, and as long as the rows come in the
//! order of their keys, whole leaves are loaded (txn/src/transaction/load.rs). Into any other table without unique indexes beside its key, rows
//! go in runs (txn/src/transaction/run.rs): the first row at once, the later ones gather until there are [`GATHER_ROWS`] of them. All other
//! rows are inserted one by one.
//!
//! # Invariants
//! - LDG-1: an entry of a unique index is inserted together with its row, so that TAB-2 holds for loaded rows, too. Other entries wait in a
//!   batch (BAT-1).
//! - LDG-2: before a row is inserted without being loaded, the load in progress ends. So the insert finds every earlier row (TAB-2).
//! - LDG-3: the statement ends its loading before anything else reads the table.
//! - LDG-4: rows that have gathered are inserted in the order in which they came. So a duplicate key is refused at the same row as if the
//!   rows had been inserted one by one, and [`Loading::failed`] says which row it was.
//! - LDG-5: a row that is given as values where they stand becomes the row that values of its own would become, or is not taken.

use std::ops::Range;

use clearway_storage::btree::{Direction, KeyRange, Tree};
use clearway_txn::transaction::load::Load;
use clearway_txn::transaction::{Basis, Change, RunChange};

use super::{Mark, Session};
use crate::error::EngineError;
use crate::table::batch::EntryBatch;
use crate::table::shape::TableShape;
use crate::table::write;
use crate::value::{Value, ValueRef};

/// Loads that end before they have so many rows cost more than they save.
const WORTHWHILE_ROWS: u32 = 64;
/// So many loads of that kind, and the statement's other rows are inserted one by one.
const POOR_LOADS_MAX: u32 = 8;

/// So many rows gather before they are inserted: those of several leaves, since rows of one run share undo records leaf by leaf.
const GATHER_ROWS: usize = 1_024;
/// So many bytes of them.
const GATHER_BYTES: usize = 1 << 20;

/// The rows of one statement on their way into a table.
#[derive(Default)]
pub struct Loading {
    state: State,
    /// Rows of the open load.
    rows: u32,
    poor_loads: u32,
    gathered: Vec<Gathered>,
    /// Their keys and values.
    bytes: Vec<u8>,
    entries: EntryBatch,
    number: u64,
    failed: Option<Failed>,
}

/// A row that is not inserted yet.
struct Gathered {
    /// Where its key and its value stand among the bytes of all.
    key: Range<usize>,
    value: Range<usize>,
    /// Its values, if there are indexes to enter it into.
    row: Option<Vec<Value>>,
    number: u64,
}

/// The row that could not be inserted.
#[derive(Debug)]
pub struct Failed {
    /// Its values.
    pub row: Vec<Value>,
    /// Its number ([`Loading::set_number`]).
    pub number: u64,
}

#[derive(Default)]
enum State {
    /// Nothing has been asked yet.
    #[default]
    New,
    /// Rows are inserted one by one, or in runs.
    OneByOne,
    /// Rows can be loaded; none has been put in, or the last one was inserted.
    Between,
    Open(Box<Load>),
}

/// Where a row goes that needs no wait.
enum Place {
    /// To those that gather.
    Gather,
    /// Into the open load.
    Load,
}

impl Loading {
    /// For rows whose entries come later.
    pub(super) fn rows_alone() -> Loading {
        Loading { state: State::Between, ..Loading::default() }
    }

    /// The caller's number of the row that it gives next.
    pub fn set_number(&mut self, number: u64) {
        self.number = number;
    }

    /// Whether the rows that gathered are to be inserted.
    fn is_full(&self) -> bool {
        self.gathered.len() >= GATHER_ROWS || self.bytes.len() >= GATHER_BYTES
    }

    /// Where a row goes that is given now, if that needs no wait.
    fn place_now(&mut self, shape: &TableShape) -> Option<Place> {
        if self.bytes.len() >= GATHER_BYTES || shape.indexes.iter().any(|index| index.unique) {
            return None;
        }
        match &self.state {
            State::OneByOne if self.gathered.len() + 1 < GATHER_ROWS => Some(Place::Gather),
            State::Open(_) if !self.entries.is_full() => Some(Place::Load),
            _ => None,
        }
    }

    /// Which of the rows the last error was about, if it was not the one that was given last (LDG-4).
    pub fn failed(&self) -> Option<&Failed> {
        self.failed.as_ref()
    }
}

impl Session {
    /// Notes the last savepoint to which the transaction can go back.
    pub fn note_savepoint(&mut self, last: Option<&Mark>) {
        self.savepoint = last.and_then(|mark| mark.txn);
        self.in_savepoint = last.is_some();
    }

    /// As [`Session::insert`], for one of the rows of a statement that then calls [`Session::end_loading`].
    ///
    /// # Errors
    /// As [`Session::insert`].
    pub async fn insert_one_of(
        &mut self,
        loading: &mut Loading,
        shape: &TableShape,
        row: &[Value],
    ) -> Result<Vec<u8>, EngineError> {
        if let State::New = loading.state {
            // A savepoint that was set before the transaction's first change lies before any tree.
            let since = self.savepoint;
            loading.state = match self.txn().may_load(shape.tree, since.as_ref()) {
                true => State::Between,
                false => State::OneByOne,
            };
            // The only row of a statement does not gather.
            if let State::OneByOne = loading.state {
                return self.insert(shape, row).await;
            }
        }
        if let State::OneByOne = loading.state {
            if shape.indexes.iter().any(|index| index.unique) {
                return self.insert(shape, row).await;
            }
            shape.check_fit(row)?;
            let key = self.new_key(shape, row).await?;
            gather(loading, shape, &key, row.to_vec());
            if loading.is_full() {
                self.insert_gathered(loading, shape).await?;
            }
            return Ok(key);
        }
        shape.check_fit(row)?;
        let key = self.new_key(shape, row).await?;
        if let State::Open(load) = &mut loading.state {
            let value = shape.value_of(row);
            if load.takes(&key, value.len()) {
                loading.rows = loading.rows.saturating_add(1);
                self.txn().load_row(load, &key, &value).await?;
                self.enter(loading, shape, &key, row).await?;
                self.counted.note(self.db.statistics(), shape.oid);
                self.used.inserted(shape.oid);
                return Ok(key);
            }
            self.end_load(loading).await?;
            if loading.rows < WORTHWHILE_ROWS {
                loading.poor_loads += 1;
            }
        }
        write::insert_row(self.txn(), shape, &key, row).await?;
        let tree = shape.rows(self.db.transactions());
        if loading.poor_loads > POOR_LOADS_MAX {
            loading.state = State::OneByOne;
        } else if is_last(tree, &key).await? {
            let txn = self.txn.as_mut().expect("a transaction is open");
            loading.state = State::Open(Box::new(txn.begin_load(tree, key.clone())));
            loading.rows = 0;
        } else {
            loading.poor_loads += 1;
        }
        self.enter(loading, shape, &key, row).await?;
        self.counted.note(self.db.statistics(), shape.oid);
        self.used.inserted(shape.oid);
        Ok(key)
    }

    /// LDG-1
    async fn enter(
        &mut self,
        loading: &mut Loading,
        shape: &TableShape,
        key: &[u8],
        row: &[Value],
    ) -> Result<(), EngineError> {
        for (place, index) in shape.indexes.iter().enumerate() {
            match index.unique {
                true => write::insert_entry(self.txn(), (shape, index), key, row).await?,
                false => loading.entries.note(shape, place, key, row, true)?,
            }
        }
        self.make_room(&mut loading.entries, shape).await
    }

    /// As [`Session::insert_one_of`], for a row that needs no wait and whose key no caller asks for: it gathers, or goes into an open load. None:
    /// it has been taken; else the row is given back.
    ///
    /// # Errors
    /// `DoesNotFit`.
    pub fn take_one_of(
        &mut self,
        loading: &mut Loading,
        shape: &TableShape,
        row: Vec<Value>,
    ) -> Result<Option<Vec<Value>>, EngineError> {
        let Some(place) = loading.place_now(shape) else { return Ok(Some(row)) };
        shape.check_fit(&row)?;
        if let Place::Load = place {
            return self.load_now(loading, shape, row);
        }
        if !shape.has_row_id() {
            gather_keyed(loading, shape, row);
            return Ok(None);
        }
        let Some(id) = self.row_ids.next_now(shape.tree) else { return Ok(Some(row)) };
        gather(loading, shape, &id, row);
        Ok(None)
    }

    /// As [`Session::take_one_of`], of a row's values where they stand (LDG-5); false: it has not been taken.
    ///
    /// # Errors
    /// `DoesNotFit`.
    pub fn take_refs(
        &mut self,
        loading: &mut Loading,
        shape: &TableShape,
        row: &[ValueRef<'_>],
    ) -> Result<bool, EngineError> {
        let Some(place) = loading.place_now(shape) else { return Ok(false) };
        shape.check_refs(row)?;
        let from = loading.bytes.len();
        match shape.has_row_id() {
            true => {
                if self.row_ids.peek(shape.tree).is_none() {
                    self.db.row_ids().refill_now(&mut self.row_ids, shape.tree);
                }
                match self.row_ids.peek(shape.tree) {
                    Some(id) => loading.bytes.extend_from_slice(&id),
                    None => return Ok(false),
                }
            }
            false => shape.key_of_refs(row, &mut loading.bytes),
        }
        let middle = loading.bytes.len();
        shape.value_of_refs(row, &mut loading.bytes);
        // What enters the row into indexes reads its values.
        let values = || row.iter().map(|value| Value::from(*value)).collect::<Vec<_>>();
        match place {
            Place::Gather => {
                let (key, value) = (from..middle, middle..loading.bytes.len());
                let row = (!shape.indexes.is_empty()).then(values);
                loading.gathered.push(Gathered { key, value, row, number: loading.number });
            }
            Place::Load => {
                let (key, value) = loading.bytes[from..].split_at(middle - from);
                let taken = match &mut loading.state {
                    State::Open(load) => load.load_now(key, value)?,
                    _ => false,
                };
                if taken {
                    self.loaded(loading, shape, from..middle, &values)?;
                }
                loading.bytes.truncate(from);
                if !taken {
                    return Ok(false);
                }
            }
        }
        if shape.has_row_id() {
            self.row_ids.next_now(shape.tree);
        }
        Ok(true)
    }

    /// An open load has taken a row, whose key stands there among the bytes.
    fn loaded(
        &mut self,
        loading: &mut Loading,
        shape: &TableShape,
        key: Range<usize>,
        values: &dyn Fn() -> Vec<Value>,
    ) -> Result<(), EngineError> {
        loading.rows = loading.rows.saturating_add(1);
        if !shape.indexes.is_empty() {
            let row = values();
            for place in 0..shape.indexes.len() {
                loading.entries.note(shape, place, &loading.bytes[key.clone()], &row, true)?;
            }
        }
        self.counted.note(self.db.statistics(), shape.oid);
        self.used.inserted(shape.oid);
        Ok(())
    }

    /// Gives a row to an open load that has room for it.
    fn load_now(
        &mut self,
        loading: &mut Loading,
        shape: &TableShape,
        row: Vec<Value>,
    ) -> Result<Option<Vec<Value>>, EngineError> {
        let State::Open(load) = &mut loading.state else { return Ok(Some(row)) };
        let value = shape.value_of(&row);
        let key = match shape.has_row_id() {
            true => match self.row_ids.peek(shape.tree) {
                Some(id) => id.to_vec(),
                None => return Ok(Some(row)),
            },
            false => shape.key_of(&row),
        };
        if !load.load_now(&key, &value)? {
            return Ok(Some(row));
        }
        if shape.has_row_id() {
            self.row_ids.next_now(shape.tree);
        }
        loading.rows = loading.rows.saturating_add(1);
        for place in 0..shape.indexes.len() {
            loading.entries.note(shape, place, &key, &row, true)?;
        }
        self.counted.note(self.db.statistics(), shape.oid);
        self.used.inserted(shape.oid);
        Ok(None)
    }

    async fn insert_gathered(&mut self, loading: &mut Loading, shape: &TableShape) -> Result<(), EngineError> {
        let (mut rows, mut bytes) = (std::mem::take(&mut loading.gathered), std::mem::take(&mut loading.bytes));
        let change = |row: &Gathered| RunChange {
            key: &bytes[row.key.clone()],
            change: Change::Insert { value: &bytes[row.value.clone()] },
        };
        let changes: Vec<RunChange<'_>> = rows.iter().map(change).collect();
        let (tree, mut done) = (shape.rows(self.db.transactions()), 0);
        let txn = self.txn.as_mut().expect("a transaction is open");
        while done < changes.len() {
            done += txn.change_run(tree, &changes[done..], Basis::Locked, true).await?;
            assert!(done <= changes.len(), "each row is inserted once");
            if let Some(row) = rows.get(done) {
                let (key, value) = (&bytes[row.key.clone()], &bytes[row.value.clone()]);
                if let Err(error) = write::insert_value(txn, shape, key, value).await {
                    let number = row.number;
                    let row = match &row.row {
                        Some(values) => values.clone(),
                        None => shape.row(key, value)?,
                    };
                    loading.failed = Some(Failed { row, number });
                    return Err(error);
                }
                done += 1;
            }
        }
        drop(changes);
        let inserted = rows.len() as u32;
        for Gathered { key, row, .. } in rows.drain(..) {
            if let Some(row) = row {
                self.enter(loading, shape, &bytes[key], &row).await?;
            }
        }
        self.counted.note_many(self.db.statistics(), shape.oid, u64::from(inserted));
        self.used.inserted_many(shape.oid, inserted);
        bytes.clear();
        (loading.gathered, loading.bytes) = (rows, bytes);
        Ok(())
    }

    /// Puts a row without its entries behind all rows before it, into a tree of this transaction; false: its key is not above theirs, and
    /// nothing was done.
    pub(super) async fn insert_in_order(
        &mut self,
        loading: &mut Loading,
        shape: &TableShape,
        row: &[Value],
    ) -> Result<bool, EngineError> {
        let mut bytes = std::mem::take(&mut loading.bytes);
        bytes.clear();
        match shape.has_row_id() {
            true => bytes.extend_from_slice(&self.new_key(shape, row).await?),
            false => shape.key_into(row, &mut bytes),
        }
        let middle = bytes.len();
        shape.value_into(row, &mut bytes);
        let (key, value) = bytes.split_at(middle);
        let in_order = self.load_behind(loading, shape, key, value).await?;
        loading.bytes = bytes;
        Ok(in_order)
    }

    /// Whether an open load has taken a row, without its entries, at once.
    ///
    /// # Errors
    /// From the tree.
    #[inline]
    pub(super) fn load_at_once(loading: &mut Loading, key: &[u8], value: &[u8]) -> Result<bool, EngineError> {
        match &mut loading.state {
            State::Open(load) => Ok(load.load_now(key, value)?),
            _ => Ok(false),
        }
    }

    /// As [`Session::insert_in_order`], of a row's key and value.
    pub(super) async fn load_behind(
        &mut self,
        loading: &mut Loading,
        shape: &TableShape,
        key: &[u8],
        value: &[u8],
    ) -> Result<bool, EngineError> {
        if let State::Open(load) = &mut loading.state {
            if load.load_now(key, value)? {
                return Ok(true);
            }
            if load.takes(key, value.len()) {
                self.txn().load_row(load, key, value).await?;
                return Ok(true);
            }
            if !load.is_behind(key) {
                return Ok(false);
            }
            self.end_load(loading).await?;
        }
        write::insert_value(self.txn(), shape, key, value).await?;
        let tree = shape.rows(self.db.transactions());
        let txn = self.txn.as_mut().expect("a transaction is open");
        loading.state = State::Open(Box::new(txn.begin_load(tree, key.to_vec())));
        Ok(true)
    }

    /// Puts in what has been given to a load so far, and what has gathered, with all entries.
    ///
    /// # Errors
    /// As [`Session::insert`], for a row that has gathered ([`Loading::failed`]).
    pub async fn end_loading(&mut self, loading: &mut Loading, shape: &TableShape) -> Result<(), EngineError> {
        self.end_load(loading).await?;
        if !loading.gathered.is_empty() {
            self.insert_gathered(loading, shape).await?;
        }
        self.apply_entries(&mut loading.entries, shape).await
    }

    async fn end_load(&mut self, loading: &mut Loading) -> Result<(), EngineError> {
        if let State::Open(_) = &loading.state
            && let State::Open(load) = std::mem::replace(&mut loading.state, State::Between)
        {
            self.txn().end_load(*load).await?;
        }
        Ok(())
    }
}

/// A row gathers under its key.
fn gather(loading: &mut Loading, shape: &TableShape, key: &[u8], row: Vec<Value>) {
    let from = loading.bytes.len();
    loading.bytes.extend_from_slice(key);
    gather_value(loading, shape, from, row);
}

/// A row gathers under the key that its columns make.
fn gather_keyed(loading: &mut Loading, shape: &TableShape, row: Vec<Value>) {
    let from = loading.bytes.len();
    shape.key_into(&row, &mut loading.bytes);
    gather_value(loading, shape, from, row);
}

fn gather_value(loading: &mut Loading, shape: &TableShape, from: usize, row: Vec<Value>) {
    let middle = loading.bytes.len();
    shape.value_into(&row, &mut loading.bytes);
    let row = (!shape.indexes.is_empty()).then_some(row);
    let (key, value) = (from..middle, middle..loading.bytes.len());
    loading.gathered.push(Gathered { key, value, row, number: loading.number });
}

/// Whether no row stands behind this key.
async fn is_last(tree: &Tree, key: &[u8]) -> Result<bool, EngineError> {
    let behind = [key, &[0]].concat();
    let mut cursor = tree.cursor(KeyRange::new(behind, None), Direction::Forward);
    while let Some(leaf) = cursor.next_leaf().await? {
        if leaf.iter().next().is_some() {
            return Ok(false);
        }
    }
    Ok(true)
}
