//! Computes which rows recovery must and must not leave, and compares.

use super::txns::Book;
use super::workload::{History, Rows};
use clearway_storage::btree::{Direction, KeyRange};
use clearway_storage::error::StorageError;
use clearway_storage::ids::{Lsn, PageId, TreeId};
use clearway_storage::seams::Versions;
use clearway_storage::store::Store;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What is wrong.
pub type Wrong = String;

/// SWP-1: the rows that the end of the log implies.
pub fn expected(history: &History, visible: Lsn) -> Result<Rows, Wrong> {
    for (task, committed) in history.tasks.iter().enumerate() {
        if committed.acknowledged > visible {
            let acknowledged = committed.acknowledged;
            return Err(format!("task {task}: commit {acknowledged} was acknowledged, the log ends at {visible}"));
        }
    }
    Ok(state_at(history, visible))
}

/// The rows at a position of the log.
pub fn state_at(history: &History, visible: Lsn) -> Rows {
    let mut rows = Rows::new();
    for committed in &history.tasks {
        if let Some((_, state)) = committed.states.iter().rev().find(|(lsn, _)| *lsn <= visible) {
            rows.extend(state.clone());
        }
    }
    rows
}

/// The rows that are there; a tree shows as a row with an empty key.
async fn found(store: &Arc<Store>, book: &Book) -> Result<Result<Rows, Wrong>, StorageError> {
    let mut rows = Rows::new();
    for entry in store.space().trees() {
        rows.insert((entry.tree, Vec::new()), Vec::new());
        let mut cursor = store.tree(entry.tree).cursor(KeyRange::all(), Direction::Forward);
        while let Some(leaf) = cursor.next_leaf().await? {
            for (key, row) in leaf.iter() {
                if !book.is_settled(row.tag) {
                    return Ok(Err(format!("tree {}, key {key:?} has the tag {} of a loser", entry.tree, row.tag)));
                }
                if !row.ghost {
                    let value = match row.overflow {
                        true => store.tree(entry.tree).read_chain(row.value).await?,
                        false => row.value.to_vec(),
                    };
                    rows.insert((entry.tree, key.to_vec()), value);
                }
            }
        }
    }
    Ok(Ok(rows))
}

fn difference(expected: &Rows, found: &Rows) -> Option<Wrong> {
    let show = |key: &(TreeId, Vec<u8>)| format!("tree {}, key {}", key.0, String::from_utf8_lossy(&key.1));
    let missing = expected.iter().find(|(key, value)| found.get(*key) != Some(value));
    if let Some((key, value)) = missing {
        let there = found.get(key).map_or("nothing".to_owned(), |other| format!("another value of {}", other.len()));
        return Some(format!("SWP-1: {}: expected {} bytes, found {there}", show(key), value.len()));
    }
    let extra = found.keys().find(|key| !expected.contains_key(*key));
    extra.map(|key| format!("SWP-1: {}: expected nothing, found a row", show(key)))
}

/// SWP-2: nothing waits to be freed any more, and allocated pages against those that are referred to.
async fn leaks(store: &Arc<Store>) -> Result<Option<Wrong>, StorageError> {
    let (drops, chains) = (store.pending_drops().len(), store.pending_chains());
    if drops + chains > 0 {
        return Ok(Some(format!("SWP-2: {drops} trees and {chains} chains are still to be freed")));
    }
    let mut owners: BTreeMap<PageId, String> =
        store.space().own_pages().into_iter().map(|page| (page, "space".to_owned())).collect();
    for entry in store.space().trees() {
        for page in store.tree(entry.tree).check().await?.pages {
            let owner = format!("tree {}", entry.tree);
            if let Some(other) = owners.insert(page, owner.clone()) {
                return Ok(Some(format!("SWP-2: page {page} belongs to {other} and to {owner}")));
            }
        }
    }
    let allocated: BTreeSet<PageId> = store.space().allocated().into_iter().collect();
    let owned: BTreeSet<PageId> = owners.keys().copied().collect();
    if let Some(page) = allocated.difference(&owned).next() {
        return Ok(Some(format!("SWP-2: page {page} is allocated and belongs to nobody")));
    }
    let unallocated = owned.difference(&allocated).next();
    Ok(unallocated.map(|page| format!("SWP-2: page {page} of {} is not allocated", owners[page])))
}

/// Compares everything.
///
/// # Errors
/// As storage; the inner result says what is wrong.
pub async fn check(store: &Arc<Store>, book: &Book, expected: &Rows) -> Result<Result<(), Wrong>, StorageError> {
    while store.drop_step().await? {}
    // A tree that the tidier changes meanwhile may be called damaged.
    let _at_rest = store.trees_at_rest().await;
    let rows = match found(store, book).await? {
        Ok(rows) => rows,
        Err(wrong) => return Ok(Err(wrong)),
    };
    if let Some(wrong) = difference(expected, &rows) {
        return Ok(Err(wrong));
    }
    Ok(leaks(store).await?.map_or(Ok(()), Err))
}
