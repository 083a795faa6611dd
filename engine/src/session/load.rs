//! Many rows into one table by one statement. Where the transaction itself has created the table's tree, and as long as the rows come in the
//! order of their keys, whole leaves are loaded (txn/src/transaction/load.rs). Into any other table without unique indexes beside its key, rows
//! go in runs (txn/src/transaction/run.rs): the first row at once, the later ones gather until there are [`GATHER_ROWS`] of them. All other
//! rows are inserted one by one.
//!
//! # Invariants
//! - LDG-1: an entry of a unique index is inserted together with its row, so that TAB-2 holds for loaded rows, too. Other entries wait in a
//!   batch (BAT-1).
//! - LDG-2: a row that is not loaded is inserted after the load before it has ended, so that it meets every row before it (TAB-2).
//! - LDG-3: the statement ends its loading before anything else reads the table.
//! - LDG-4: rows that have gathered are inserted in the order in which they came. So a row whose key is there is refused as if they had been
//!   inserted one by one, and [`Loading::failed`] says which row it was.

use clearway_storage::btree::{Direction, KeyRange, Tree};
use clearway_txn::transaction::load::Load;
use clearway_txn::transaction::{Basis, Change, RunChange};

use super::{Mark, Session};
use crate::error::EngineError;
use crate::table::batch::EntryBatch;
use crate::table::shape::TableShape;
use crate::table::write;
use crate::value::Value;

/// Loads that end before they have so many rows cost more than they save.
const WORTHWHILE_ROWS: u32 = 64;
/// So many loads of that kind, and the statement's other rows are inserted one by one.
const POOR_LOADS_MAX: u32 = 8;

/// So many rows gather before they are inserted.
const GATHER_ROWS: usize = 256;
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
    gathered_bytes: usize,
    entries: EntryBatch,
    number: u64,
    failed: Option<Failed>,
}

/// A row that is not inserted yet.
struct Gathered {
    key: Vec<u8>,
    value: Vec<u8>,
    row: Vec<Value>,
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

impl Loading {
    /// For rows whose entries come later.
    pub(super) fn rows_alone() -> Loading {
        Loading { state: State::Between, ..Loading::default() }
    }

    /// The caller's number of the row that it gives next.
    pub fn set_number(&mut self, number: u64) {
        self.number = number;
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
            return self.gather(loading, shape, row).await;
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
                false => loading.entries.note(shape, place, key, row, true),
            }
        }
        if loading.entries.is_full() {
            loading.entries.apply(self.txn(), shape).await?;
        }
        Ok(())
    }

    async fn gather(
        &mut self,
        loading: &mut Loading,
        shape: &TableShape,
        row: &[Value],
    ) -> Result<Vec<u8>, EngineError> {
        if shape.indexes.iter().any(|index| index.unique) {
            return self.insert(shape, row).await;
        }
        shape.check_fit(row)?;
        let (key, value) = (self.new_key(shape, row).await?, shape.value_of(row));
        loading.gathered_bytes += key.len() + value.len();
        loading.gathered.push(Gathered { key: key.clone(), value, row: row.to_vec(), number: loading.number });
        if loading.gathered.len() >= GATHER_ROWS || loading.gathered_bytes >= GATHER_BYTES {
            self.insert_gathered(loading, shape).await?;
        }
        Ok(key)
    }

    async fn insert_gathered(&mut self, loading: &mut Loading, shape: &TableShape) -> Result<(), EngineError> {
        let mut rows = std::mem::take(&mut loading.gathered);
        loading.gathered_bytes = 0;
        let changes: Vec<RunChange<'_>> =
            rows.iter().map(|row| RunChange { key: &row.key, change: Change::Insert { value: &row.value } }).collect();
        let (tree, mut done) = (shape.rows(self.db.transactions()), 0);
        let txn = self.txn.as_mut().expect("a transaction is open");
        let mut failed = None;
        while done < changes.len() {
            done += txn.change_run(tree, &changes[done..], Basis::Locked, true).await?;
            if let Some(row) = rows.get(done) {
                if let Err(error) = write::insert_value(txn, shape, &row.key, &row.value).await {
                    failed = Some(error);
                    break;
                }
                done += 1;
            }
        }
        drop(changes);
        if let Some(error) = failed {
            let Gathered { row, number, .. } = rows.swap_remove(done);
            loading.failed = Some(Failed { row, number });
            return Err(error);
        }
        for Gathered { key, row, .. } in &rows {
            self.enter(loading, shape, key, row).await?;
            self.counted.note(self.db.statistics(), shape.oid);
            self.used.inserted(shape.oid);
        }
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
        let (key, value) = (self.new_key(shape, row).await?, shape.value_of(row));
        if let State::Open(load) = &mut loading.state {
            if load.takes(&key, value.len()) {
                self.txn().load_row(load, &key, &value).await?;
                return Ok(true);
            }
            if !load.is_behind(&key) {
                return Ok(false);
            }
            self.end_load(loading).await?;
        }
        write::insert_value(self.txn(), shape, &key, &value).await?;
        let tree = shape.rows(self.db.transactions());
        let txn = self.txn.as_mut().expect("a transaction is open");
        loading.state = State::Open(Box::new(txn.begin_load(tree, key)));
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
