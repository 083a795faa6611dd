//! Many rows into one table by one statement. Where the transaction itself has created the table's tree, and as long as the rows come in the
//! order of their keys, whole leaves are loaded (txn/src/transaction/load.rs); all other rows are inserted one by one.
//!
//! # Invariants
//! - LDG-1: entries of secondary indexes are inserted one by one with their row, so that TAB-2 holds for loaded rows, too.
//! - LDG-2: a row that is not loaded is inserted after the load before it has ended, so that it meets every row before it (TAB-2).
//! - LDG-3: the statement ends its loading before anything else reads the table.

use clearway_storage::btree::{Direction, KeyRange, Tree};
use clearway_txn::transaction::load::Load;

use super::{Mark, Session};
use crate::error::EngineError;
use crate::table::shape::TableShape;
use crate::table::write;
use crate::value::Value;

/// Loads that end before they have so many rows cost more than they save.
const WORTHWHILE_ROWS: u32 = 64;
/// So many loads of that kind, and the statement's other rows are inserted one by one.
const POOR_LOADS_MAX: u32 = 8;

/// The rows of one statement on their way into a table.
#[derive(Default)]
pub struct Loading {
    state: State,
    /// Rows of the open load.
    rows: u32,
    poor_loads: u32,
}

#[derive(Default)]
enum State {
    /// Nothing has been asked yet.
    #[default]
    New,
    /// Rows are inserted one by one.
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
}

impl Session {
    /// Notes the last savepoint to which the transaction can go back.
    pub fn note_savepoint(&mut self, last: Option<&Mark>) {
        self.savepoint = last.and_then(|mark| mark.txn);
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
        }
        if let State::OneByOne = loading.state {
            return self.insert(shape, row).await;
        }
        shape.check_fit(row)?;
        let key = self.new_key(shape, row).await?;
        if let State::Open(load) = &mut loading.state {
            let value = shape.value_of(row);
            if load.takes(&key, value.len()) {
                loading.rows = loading.rows.saturating_add(1);
                self.txn().load_row(load, &key, &value).await?;
                // LDG-1
                write::insert_entries(self.txn(), shape, &key, row).await?;
                self.counted.note(self.db.statistics(), shape.oid);
                self.used.inserted(shape.oid);
                return Ok(key);
            }
            self.end_loading(loading).await?;
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
        write::insert_entries(self.txn(), shape, &key, row).await?;
        self.counted.note(self.db.statistics(), shape.oid);
        self.used.inserted(shape.oid);
        Ok(key)
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
            self.end_loading(loading).await?;
        }
        write::insert_value(self.txn(), shape, &key, &value).await?;
        let tree = shape.rows(self.db.transactions());
        let txn = self.txn.as_mut().expect("a transaction is open");
        loading.state = State::Open(Box::new(txn.begin_load(tree, key)));
        Ok(true)
    }

    /// Puts in what has been given to a load so far.
    ///
    /// # Errors
    /// From the trees.
    pub async fn end_loading(&mut self, loading: &mut Loading) -> Result<(), EngineError> {
        if let State::Open(load) = std::mem::replace(&mut loading.state, State::Between) {
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
