//! Look-up by a secondary index, and savepoints.
//!
//! # Invariants
//! - EMB-7: a rollback to a savepoint releases the locks taken since, table locks included, and removes these tables from the transaction's
//!   list of locked tables. So the next operation on such a table locks it again.

use std::ops::ControlFlow;

use clearway_storage::btree::{Direction, KeyRange};
use clearway_txn::error::TxnError;

use super::columns::{Columns, Key};
use super::error::Error;
use super::table::Table;
use super::transaction::AsyncTxn;
use crate::catalog::IndexState;
use crate::codec::key::prefix_end;
use crate::table::shape::TableShape;
use crate::value::ValueRef;

impl AsyncTxn<'_> {
    /// Passes the rows whose first columns of an index have these values to `f`, in the order of the index, until `f` breaks off.
    ///
    /// # Errors
    /// `Mismatch` if the table has no such index, or not of these types; the transaction goes on then. From the engine; `Value`.
    pub async fn scan_index<K: Key, V: Columns, I: Columns>(
        &mut self,
        table: &Table<K, V>,
        index: &str,
        values: &I,
        mut f: impl FnMut(K, V) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        let mut each = |key, row: &[ValueRef<'_>]| V::read_copied(row).map(|value| f(key, value));
        if self.scan_index_now(table, index, values, &mut each)? {
            return Ok(());
        }
        self.scan_index_waiting(table, index, values, f).await
    }

    pub(super) async fn scan_index_waiting<K: Key, V: Columns, I: Columns>(
        &mut self,
        table: &Table<K, V>,
        index: &str,
        values: &I,
        mut f: impl FnMut(K, V) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        let shape = self.enter(table, false).await?;
        let at = find::<I>(&shape, index)?;
        let mut given = Vec::new();
        values.write(&mut given);
        let prefix = shape.indexes[at].prefix(&given);
        let view = self.open(false);
        if shape.indexes[at].valid_from_lsn > view.read_lsn.0 {
            // The index is younger than the transaction's snapshot; the next attempt has a newer one.
            self.close();
            return self.judge(Err(TxnError::ConcurrentUpdate.into()));
        }
        let range = KeyRange::new(prefix.clone(), prefix_end(&prefix));
        let mut scan = self.session.index_scan(&shape, at, range, Direction::Forward, &view);
        let walked = loop {
            match self.session.next_by_index(&mut scan).await {
                Err(error) => break Err(Error::from(error)),
                Ok(None) => break Ok(()),
                Ok(Some(found)) => match (table.key_of(&found.row), table.value_of(&found.row)) {
                    (Ok(key), Ok(value)) => {
                        if f(key, value).is_break() {
                            break Ok(());
                        }
                    }
                    (Err(error), _) | (_, Err(error)) => break Err(error),
                },
            }
        };
        self.close();
        self.judge(walked)
    }

    /// Sets a savepoint. Savepoints nest.
    pub fn set_savepoint(&mut self) {
        self.end_unfinished();
        // A conflict fails the transaction.
        let _ = self.begin_due();
        let mark = self.session.mark();
        self.session.note_savepoint(Some(&mark));
        self.savepoints.push((mark, self.locked.len()));
    }

    /// Ends the innermost savepoint; `keep`: with what was done since, else without. A transaction that has failed stays as it is: it can only
    /// end. Nothing happens where no savepoint is set.
    ///
    /// # Errors
    /// From the engine.
    pub async fn end_savepoint(&mut self, keep: bool) -> Result<(), Error> {
        self.end_unfinished();
        let Some((mark, locked)) = self.savepoints.pop() else { return Ok(()) };
        self.session.note_savepoint(self.savepoints.last().map(|(mark, _)| mark));
        if keep || self.failed() {
            return Ok(());
        }
        let undone = self.session.roll_back_to(&mark).await;
        self.locked.truncate(locked); // EMB-7
        self.judge(undone.map_err(Error::from))
    }
}

/// The place of an index whose first columns have these types.
pub(super) fn find<I: Columns>(shape: &TableShape, name: &str) -> Result<usize, Error> {
    let mismatch = |what: String| Error::Mismatch { table: shape.name.clone(), what };
    let Some(at) = shape.indexes.iter().position(|index| index.name == name) else {
        return Err(mismatch(format!("it has no index \"{name}\" beside its primary key")));
    };
    let index = &shape.indexes[at];
    if !index.is_plain() || index.state != IndexState::Public {
        return Err(mismatch(format!("index \"{name}\" does not have every row by its columns")));
    }
    let kinds = I::kinds();
    let fits = kinds.len() <= index.columns.len()
        && kinds.iter().zip(&index.columns).all(|(kind, column)| shape.columns[*column].storage == kind.storage);
    if !fits {
        return Err(mismatch(format!("the first columns of index \"{name}\" are of other types")));
    }
    Ok(at)
}
