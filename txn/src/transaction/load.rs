//! Loading: rows in the order of their keys, as whole leaves, into a tree that the transaction has created.
//!
//! # Life of a load
//! a first row is inserted by an ordinary change -> `begin_load`: later rows take its tag -> `load_row`, in the order of the keys -> `end_load`
//!
//! # Invariants
//! - LOD-1: rows are loaded only into a tree that this transaction has created, after every savepoint that it can still go back to. So a
//!   rollback that takes loaded rows away drops their tree, and no other transaction sees the tree before the commit.
//! - LOD-2: loaded rows carry the tag of the first row. Its undo record gives every view the right answer for all of them: no row was there
//!   before, and one transaction wrote all of them, at one position.
//! - LOD-3: a transaction that was rolled back to a point between the creation of a tree and a load into it does not commit: the loaded rows
//!   are still in the tree, and the undo record of their tag is gone.
//! - LOD-4: a row with an overflow chain is not loaded: its chain has undo of its own, and the drop of a tree frees the chains of its rows.
//!
//! # Crash safety
//! A page of loaded rows is one structure record. The record of the first row names the tag, so no tag is given out twice after a restart.
//! A crash before the commit leaves a tree that the undo of its creation drops.

use clearway_storage::btree::{BulkLoad, KEY_BYTES_MAX, Tree};
use clearway_storage::ids::TreeId;
use clearway_storage::space::TreeKind;

use super::{Basis, Change, Changed, IfTaken, Mark, Transaction, keep_undo};
use crate::error::TxnError;

/// A load in progress. The rows that were given to it last stand in no tree before [`Transaction::end_load`].
pub struct Load {
    tree: Tree,
    bulk: BulkLoad,
    last: Vec<u8>,
}

impl Load {
    /// Whether a key stands behind those of all rows before it.
    pub fn is_behind(&self, key: &[u8]) -> bool {
        key > &self.last[..]
    }

    /// Whether a row can be loaded behind those before it.
    pub fn takes(&self, key: &[u8], value_len: usize) -> bool {
        // LOD-4
        self.is_behind(key) && key.len() <= KEY_BYTES_MAX && value_len <= Tree::inline_max(key.len())
    }

    /// The next row; false: the load does not take it ([`Load::takes`]), or it may have to wait, and [`Transaction::load_row`] takes the row.
    ///
    /// # Errors
    /// From the tree.
    #[inline]
    pub fn load_now(&mut self, key: &[u8], value: &[u8]) -> Result<bool, TxnError> {
        if !self.takes(key, value.len()) || !self.bulk.push_now(key, value)? {
            return Ok(false);
        }
        self.last.clear();
        self.last.extend_from_slice(key);
        Ok(true)
    }
}

impl Transaction {
    /// Creates an empty tree. A rollback of the transaction removes the tree.
    ///
    /// # Errors
    /// From the store.
    pub async fn create_tree(&mut self) -> Result<TreeId, TxnError> {
        let state = self.assign()?;
        let changes = state.changes();
        let store = self.all.store().clone();
        let (tree, entry) = store.create_tree(&mut self.log, TreeKind::Logged).await?;
        keep_undo(&self.all, &state, entry);
        state.moved(&self.log);
        self.created.add(tree, changes);
        Ok(tree)
    }

    /// LOD-1: whether the transaction has created this tree after `since`, the last savepoint to which it can go back.
    pub fn may_load(&self, tree: TreeId, since: Option<&Mark>) -> bool {
        self.created.has(tree, since.map_or(0, |mark| mark.changes))
    }

    /// Begins to load rows behind the row with key `last`, which the transaction has just put into the tree and which is the last one there.
    ///
    /// # Panics
    /// If the transaction has not created the tree, or has changed nothing.
    pub fn begin_load(&mut self, tree: &Tree, last: Vec<u8>) -> Load {
        let state = self.state.as_ref().expect("a row was put in");
        let tag = state.last_change().expect("a row was put in");
        assert!(!tag.is_settled(), "LOD-2: loaded rows carry a tag");
        self.created.loaded(tree.id(), state.changes());
        Load { tree: tree.clone(), bulk: tree.bulk_load_as(tag), last }
    }

    /// The next row, which [`Load::takes`].
    ///
    /// # Errors
    /// From the tree.
    pub async fn load_row(&mut self, load: &mut Load, key: &[u8], value: &[u8]) -> Result<(), TxnError> {
        assert!(load.takes(key, value.len()), "LOD-4: rows in the order of their keys, without chains");
        load.last.clear();
        load.last.extend_from_slice(key);
        Ok(load.bulk.push(key, value).await?)
    }

    /// Ends a load. Rows that do not fill a leaf are put in as any change is.
    ///
    /// # Errors
    /// From the tree.
    pub async fn end_load(&mut self, load: Load) -> Result<(), TxnError> {
        for (key, value) in load.bulk.into_rest() {
            let change = Change::Insert { value: &value };
            let done = self.change(&load.tree, &key, change, Basis::Locked, IfTaken::Wait).await?;
            assert_eq!(done, Changed::Done, "LOD-1: behind all rows of a tree of its own");
        }
        Ok(())
    }
}
