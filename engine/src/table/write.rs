//! Changing rows together with their index entries.
//!
//! # Invariants
//! - TAB-1: for every version of a row there is exactly one entry in each index that existed when the version was written and whose condition
//!   the version meets (TRM-2), with the same transaction's tag. So an index and its table, read at one snapshot, agree.
//! - TAB-2: two live rows never have the same values in a unique index, nulls aside unless the index says that they are not distinct. Whether a row is live is judged by its newest version, not
//!   by a snapshot. A transaction that is about to insert a row with such values waits for every other transaction that is inserting such a row
//!   or changing one.
//! - TAB-3: only a transaction that has just changed a row, or locked it, changes the row's entries. So no two transactions change them at the
//!   same time.
//! - TAB-5: a search for the row in the way that finds a row which another transaction has only replaced, so far with the same values in the unique index, ends there, for a caller that locks
//!   what it finds: whether that transaction commits or not, there is a row, and the caller waits for it in the row's own queue. If the transaction deletes the row after all, the
//!   lock tells that, and the caller searches again. (Where all of them waited for the transaction, its commit woke each of them, and all but one waited anew for the next.)
//! - TAB-6: a row that was found in the way and then locked may have got other values before the lock came. The caller looks ([`is_in_the_way`]), gives the lock back if so, and searches again.
//! - TAB-7: one wait for a transaction that has replaced the row in the way is enough: when it has ended, there was a committed row with the values, so there is a conflict, also
//!   if another one has replaced that row since. (A transaction that keeps its snapshot waits on: whether the row is a conflict or a failure is told by the end of the last change.)
//! - TAB-8: where one transaction has put in or taken away a row with the values, one session waits for its end, and the others wait behind that session (TXN-14).

use std::sync::Arc;

use clearway_storage::btree::{Direction, KeyRange, Tree};
use clearway_storage::ids::{Lsn, TxnId};
use clearway_storage::record::Before;
use clearway_txn::error::TxnError;
use clearway_txn::lockmgr::{IfTaken, Implicit, LockManager, LockMode, LockScope, LockTag, Owner, Request};
use clearway_txn::mvcc::book::Newest;
use clearway_txn::mvcc::record::UndoRecord;
use clearway_txn::mvcc::undo::Fetched;
use clearway_txn::transaction::{Basis, Change, Changed, Transaction};

use super::shape::{Entry, IndexShape, TableShape};
use crate::catalog::Oid;
use crate::error::EngineError;
use crate::value::Value;

/// The outcome of a search for a key of a unique index.
enum Found {
    Nothing,
    /// The entry's key, and the commit of its newest version; zero if every snapshot sees it or if it is the transaction's own.
    Row(Vec<u8>, Lsn),
    Busy(Implicit),
    /// The same of a transaction that has only replaced a live row, which is committed: the row's key comes last.
    Replaced(Implicit, Vec<u8>),
}

/// Inserts a row under `key`, and its entries into the indexes.
///
/// # Errors
/// `ConcurrentDelete` if the transaction's snapshot has a row there; `Duplicate`; part of the row may then be in place, so the caller goes back to a mark.
pub async fn insert(txn: &mut Transaction, shape: &TableShape, key: &[u8], row: &[Value]) -> Result<(), EngineError> {
    insert_row(txn, shape, key, row).await?;
    insert_entries(txn, shape, key, row).await
}

/// The first half of [`insert`].
pub(crate) async fn insert_row(
    txn: &mut Transaction,
    shape: &TableShape,
    key: &[u8],
    row: &[Value],
) -> Result<(), EngineError> {
    insert_value(txn, shape, key, &shape.value_of(row)).await
}

/// The same of an encoded row.
pub(crate) async fn insert_value(
    txn: &mut Transaction,
    shape: &TableShape,
    key: &[u8],
    value: &[u8],
) -> Result<(), EngineError> {
    let tree = shape.rows(txn.all());
    let change = Change::Insert { value };
    match txn.change(tree, key, change, Basis::Locked, IfTaken::Wait).await? {
        Changed::Done => {}
        Changed::Newer => return Err(TxnError::ConcurrentDelete.into()),
        Changed::Exists { .. } | Changed::Again => return Err(duplicate_key(shape)),
    }
    Ok(())
}

/// The second half of [`insert`].
pub(crate) async fn insert_entries(
    txn: &mut Transaction,
    shape: &TableShape,
    key: &[u8],
    row: &[Value],
) -> Result<(), EngineError> {
    for index in &shape.indexes {
        insert_entry(txn, (shape, index), key, row).await?;
    }
    Ok(())
}

/// Replaces a row. `basis` says how `old` was read; the new row may have another key. Afterwards `Transaction::over_own` speaks of the row.
///
/// # Errors
/// As [`insert`].
pub async fn update(
    txn: &mut Transaction,
    shape: &TableShape,
    key: &[u8],
    old: &[Value],
    new: &[Value],
    basis: Basis,
) -> Result<Changed, EngineError> {
    assert_eq!(old.len(), new.len(), "a row keeps its columns in an update");
    let new_key = if shape.has_row_id() { key.to_vec() } else { shape.key_of(new) };
    let tree = shape.rows(txn.all());
    if new_key != key {
        let change = Change::Delete { moved_to: Some(&new_key) };
        match txn.change(tree, key, change, basis, IfTaken::Wait).await? {
            Changed::Done => {}
            other => return Ok(other),
        }
        let over_own = txn.over_own();
        for index in &shape.indexes {
            delete_entry(txn, index, key, old).await?;
        }
        insert(txn, shape, &new_key, new).await?;
        txn.set_over_own(over_own);
        return Ok(Changed::Done);
    }
    let strength = if shape.changes_key(old, new) { LockMode::RowUpdate } else { LockMode::RowNoKeyUpdate };
    let value = shape.value_of(new);
    let change = Change::Update { value: &value, strength };
    match txn.change(tree, key, change, basis, IfTaken::Wait).await? {
        Changed::Done => {}
        other => return Ok(other),
    }
    let over_own = txn.over_own();
    for index in &shape.indexes {
        if !index.is_touched(old, new) {
            continue;
        }
        let (before, after) = (index.entry_of(old)?, index.entry_of(new)?);
        if before != after {
            move_entry(txn, (shape, index), key, before, after).await?;
        }
    }
    txn.set_over_own(over_own);
    Ok(Changed::Done)
}

/// Puts the entry of a row's new version in the place of that of the old one.
///
/// # Errors
/// `Duplicate` (TAB-2).
pub(crate) async fn move_entry(
    txn: &mut Transaction,
    (shape, index): (&TableShape, &IndexShape),
    key: &[u8],
    old: Option<Entry>,
    new: Option<Entry>,
) -> Result<(), EngineError> {
    if let Some(old) = old {
        remove_entry(txn, index, &[&old.prefix, key].concat()).await?;
    }
    match new {
        Some(new) => place_entry(txn, (shape, index), key, new).await,
        None => Ok(()),
    }
}

/// Deletes a row.
///
/// # Errors
/// From the transaction.
pub async fn delete(
    txn: &mut Transaction,
    shape: &TableShape,
    key: &[u8],
    old: &[Value],
    basis: Basis,
) -> Result<Changed, EngineError> {
    let tree = shape.rows(txn.all());
    match txn.change(tree, key, Change::Delete { moved_to: None }, basis, IfTaken::Wait).await? {
        Changed::Done => {}
        other => return Ok(other),
    }
    for index in &shape.indexes {
        delete_entry(txn, index, key, old).await?;
    }
    Ok(Changed::Done)
}

pub(crate) fn duplicate_key(shape: &TableShape) -> EngineError {
    let (oid, index) = shape.primary.clone().unwrap_or((shape.oid, format!("{}_pkey", shape.name)));
    EngineError::Duplicate { index, oid, row: Vec::new() }
}

pub(crate) fn duplicate_entry(index: &IndexShape) -> EngineError {
    EngineError::Duplicate { index: index.name.clone(), oid: index.oid, row: Vec::new() }
}

/// Inserts the entry of a row into an index.
///
/// # Errors
/// `Duplicate` (TAB-2).
pub async fn insert_entry(
    txn: &mut Transaction,
    (shape, index): (&TableShape, &IndexShape),
    row_key: &[u8],
    row: &[Value],
) -> Result<(), EngineError> {
    match index.entry_of(row)? {
        Some(entry) => place_entry(txn, (shape, index), row_key, entry).await,
        None => Ok(()),
    }
}

async fn place_entry(
    txn: &mut Transaction,
    (shape, index): (&TableShape, &IndexShape),
    row_key: &[u8],
    entry: Entry,
) -> Result<(), EngineError> {
    let Entry { mut prefix, constrained } = entry;
    if constrained {
        return insert_unique(txn, (shape, index), prefix, row_key).await;
    }
    prefix.extend_from_slice(row_key);
    put_entry(txn, index, &prefix).await
}

/// Inserts an entry that no unique index constrains.
pub(super) async fn put_entry(txn: &mut Transaction, index: &IndexShape, entry: &[u8]) -> Result<(), EngineError> {
    let tree = index.entries(txn.all());
    match txn.change(tree, entry, Change::Insert { value: &[] }, Basis::Locked, IfTaken::Wait).await? {
        // The entry of the same row exists already if the index is being built and the builder made it first.
        Changed::Done | Changed::Exists { .. } => Ok(()),
        Changed::Newer | Changed::Again => Err(TxnError::ConcurrentUpdate.into()),
    }
}

/// TAB-2: one inserter of a key at a time searches all entries of the key and inserts its own; from then on the tag of its entry takes the place
/// of the lock on the key. A transaction that is changing a row with the key is waited for, whatever it changes: it may still change the key.
async fn insert_unique(
    txn: &mut Transaction,
    (shape, index): (&TableShape, &IndexShape),
    prefix: Vec<u8>,
    row_key: &[u8],
) -> Result<(), EngineError> {
    txn.assign()?;
    let locks = txn.all().locks().clone();
    let owner = txn.owner().clone();
    let tag = LockTag::UniqueKey { tree: index.tree, key: prefix.as_slice().into() };
    let (mut place, mut waited) = (None, false);
    loop {
        let turn = take_turn(txn, &locks, &owner, &tag).await?;
        let tree = index.entries(txn.all());
        match search(txn, tree, &prefix, Some(row_key)).await? {
            Found::Row(found, _) => match search(txn, shape.rows(txn.all()), index.row_key(&found)?, None).await? {
                Found::Row(..) | Found::Nothing => return Err(duplicate_entry(index)),
                Found::Replaced(..) if waited => return Err(duplicate_entry(index)), // TAB-7
                Found::Busy(writer) | Found::Replaced(writer, _) => {
                    drop((turn, place.take())); // TXN-15
                    txn.wait_for(writer).await?;
                }
            },
            Found::Nothing => {
                let mut entry = prefix;
                entry.extend_from_slice(row_key);
                return put_entry(txn, index, &entry).await;
            }
            Found::Busy(writer) | Found::Replaced(writer, _) => {
                drop(turn);
                txn.wait_at((index.tree, &prefix), &mut place, writer).await?; // TAB-8
            }
        }
        waited = true;
    }
}

/// The key of a row that has the same values as `row` in a unique index; see `Session::conflicting`. A row that is only locked is a conflict; a
/// row that another transaction is changing is waited for, by the caller if it locks the row in the way (TAB-5).
///
/// # Errors
/// `Deadlock`; from the trees.
pub async fn conflicting(
    txn: &mut Transaction,
    shape: &TableShape,
    (named, locks): (&[Oid], bool),
    row: &[Value],
) -> Result<Option<Vec<u8>>, EngineError> {
    txn.assign()?;
    let settled = |txn: &Transaction, waited: bool| locks || waited && !txn.keeps_snapshot(); // TAB-5, TAB-7
    if shape.primary.as_ref().is_some_and(|(oid, _)| is_named(named, *oid)) {
        let key = shape.key_of(row);
        let (mut place, mut waited) = (None, false);
        loop {
            match search(txn, shape.rows(txn.all()), &key, None).await? {
                Found::Nothing => break,
                Found::Row(found, _) => return Ok(Some(found)),
                Found::Replaced(_, found) if settled(txn, waited) => return Ok(Some(found)),
                Found::Replaced(writer, _) => {
                    place = None; // TXN-15
                    txn.wait_for(writer).await?;
                }
                Found::Busy(writer) => txn.wait_at((shape.tree, &key), &mut place, writer).await?, // TAB-8
            }
            waited = true;
        }
    }
    for index in shape.indexes.iter().filter(|i| i.unique && is_named(named, i.oid)) {
        let Some(own) = index.entry_of(row)?.filter(|entry| entry.constrained) else { continue };
        let (mut place, mut waited) = (None, false);
        loop {
            match search(txn, index.entries(txn.all()), &own.prefix, None).await? {
                Found::Nothing => break,
                Found::Busy(writer) | Found::Replaced(writer, _) => {
                    txn.wait_at((index.tree, &own.prefix), &mut place, writer).await?; // TAB-8
                }
                Found::Row(entry, _) => {
                    let key = index.row_key(&entry)?;
                    match search(txn, shape.rows(txn.all()), key, None).await? {
                        Found::Row(..) | Found::Nothing => return Ok(Some(key.to_vec())),
                        Found::Replaced(..) if settled(txn, waited) => return Ok(Some(key.to_vec())),
                        Found::Busy(writer) | Found::Replaced(writer, _) => {
                            place = None; // TXN-15
                            txn.wait_for(writer).await?;
                        }
                    }
                }
            }
            waited = true;
        }
    }
    Ok(None)
}

fn is_named(named: &[Oid], oid: Oid) -> bool {
    named.is_empty() || named.contains(&oid)
}

/// Whether a row, as it stands now, has the same values as `row` in one of the unique indexes that are named (TAB-6); `key` is that of its place.
///
/// # Errors
/// From the expressions of an index.
pub fn is_in_the_way(
    shape: &TableShape,
    named: &[Oid],
    row: &[Value],
    (key, found): (&[u8], &[Value]),
) -> Result<bool, EngineError> {
    if shape.primary.as_ref().is_some_and(|(oid, _)| is_named(named, *oid)) && shape.key_of(row) == key {
        return Ok(true);
    }
    for index in shape.indexes.iter().filter(|i| i.unique && is_named(named, i.oid)) {
        let own = index.entry_of(row)?.filter(|entry| entry.constrained);
        if let (Some(own), Some(found)) = (own, index.entry_of(found)?)
            && own.prefix == found.prefix
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The key of the live row or entry that begins with `key`, and the commit of its newest version; waits until no transaction is changing such a
/// row.
pub async fn occupant(
    txn: &mut Transaction,
    tree: &Tree,
    prefix: &[u8],
) -> Result<Option<(Vec<u8>, Lsn)>, EngineError> {
    loop {
        match search(txn, tree, prefix, None).await? {
            Found::Nothing => return Ok(None),
            Found::Row(key, commit) => return Ok(Some((key, commit))),
            Found::Busy(writer) | Found::Replaced(writer, _) => txn.wait_for(writer).await?,
        }
    }
}

/// Inserts the entry of a row into an index that is being built, unless it is there already. A transaction that is changing another row of the
/// same key is returned instead of waited for.
///
/// # Errors
/// `Duplicate` (TAB-2).
pub(crate) async fn build_entry(
    txn: &mut Transaction,
    index: &IndexShape,
    row_key: &[u8],
    row: &[Value],
) -> Result<Option<Implicit>, EngineError> {
    let Some(Entry { prefix: mut entry, constrained }) = index.entry_of(row)? else { return Ok(None) };
    if !constrained {
        entry.extend_from_slice(row_key);
        return put_entry(txn, index, &entry).await.map(|()| None);
    }
    txn.assign()?;
    let (locks, owner) = (txn.all().locks().clone(), txn.owner().clone());
    let tag = LockTag::UniqueKey { tree: index.tree, key: entry.as_slice().into() };
    let _turn = take_turn(txn, &locks, &owner, &tag).await?;
    let tree = txn.all().store().tree(index.tree);
    match search(txn, &tree, &entry, Some(row_key)).await? {
        Found::Row(..) => Err(duplicate_entry(index).of_row(row)),
        Found::Busy(writer) | Found::Replaced(writer, _) => Ok(Some(writer)),
        Found::Nothing => {
            entry.extend_from_slice(row_key);
            put_entry(txn, index, &entry).await.map(|()| None)
        }
    }
}

/// Waits for the right to decide about a key (TAB-2).
async fn take_turn<'a>(
    txn: &mut Transaction,
    locks: &'a LockManager,
    owner: &'a Arc<Owner>,
    tag: &'a LockTag,
) -> Result<Turn<'a>, EngineError> {
    // The lock has session scope, so that it can be released before the transaction ends; a rollback in between drops the future, and the lock
    // with it.
    let turn = Request {
        owner,
        tag: tag.clone(),
        mode: LockMode::Exclusive,
        scope: LockScope::Session,
        if_taken: IfTaken::Wait,
        implicit: None,
        looks: false,
    };
    let granted = locks.acquire(turn).await.map_err(TxnError::from)?;
    txn.depends_on(granted.dep_lsn);
    Ok(Turn { locks, owner, tag })
}

/// The right to decide about a key (TAB-2); released when dropped.
struct Turn<'a> {
    locks: &'a LockManager,
    owner: &'a Arc<Owner>,
    tag: &'a LockTag,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.locks.release_one(self.owner, self.tag, LockMode::Exclusive);
    }
}

/// Examines the newest version of every entry with the prefix, except the row's own entry.
async fn search(
    txn: &mut Transaction,
    tree: &Tree,
    prefix: &[u8],
    own_row: Option<&[u8]>,
) -> Result<Found, EngineError> {
    let me = txn.id().unwrap_or(TxnId::NONE);
    let book = txn.all().book().clone();
    let mut fetched = Fetched::default();
    let is_own = |key: &[u8]| own_row.is_some() && key.get(prefix.len()..) == own_row;
    'again: loop {
        let mut cursor = tree.cursor(KeyRange::prefix(prefix), Direction::Forward);
        let mut found = Found::Nothing;
        let mut dep = Lsn::ZERO;
        while let Some(leaf) = cursor.next_leaf().await? {
            let mut spilled = Vec::new();
            for (key, row) in leaf.iter() {
                match book.newest(row.tag, me, &fetched) {
                    Newest::Spilled => spilled.push(row.tag),
                    Newest::Busy(record) if !is_own(key) => {
                        let writer = Implicit {
                            owner: record.live().owner().clone(),
                            txn: record.live().id(),
                            mode: LockMode::Exclusive,
                            change: record.position,
                            earlier: None,
                        };
                        match book.first_of(&record, &fetched) {
                            Err(tag) => spilled.push(tag),
                            Ok(first) => found = busy(writer, (key, row.ghost), &first, &mut dep),
                        }
                    }
                    // The row's own entry exists already if the index is being built and the row's writer made it first.
                    _ if is_own(key) => {}
                    newest if !row.ghost => {
                        let commit = if let Newest::Committed(lsn) = newest { lsn } else { Lsn::ZERO };
                        dep = dep.max(commit);
                        found = Found::Row(key.to_vec(), commit);
                    }
                    Newest::Committed(lsn) => dep = dep.max(lsn),
                    _ => {}
                }
                if !matches!(found, Found::Nothing) {
                    break;
                }
            }
            let seen = leaf.seen();
            if !tree.still(&seen) || !spilled.is_empty() {
                for tag in spilled {
                    book.fetch(tag, &mut fetched).await.map_err(TxnError::from)?;
                }
                continue 'again;
            }
            if !matches!(found, Found::Nothing) {
                break;
            }
        }
        // An error depends on the commits that the search saw, and so does the absence of an error.
        txn.depends_on(dep);
        return Ok(found);
    }
}

/// What a row is that a transaction is changing; `first`: its first change of the row.
fn busy(writer: Implicit, (key, ghost): (&[u8], bool), first: &UndoRecord, dep: &mut Lsn) -> Found {
    match first.before_of(key) {
        Before::Row { ghost: false, .. } if !ghost => {
            *dep = first.before_lsn.max(*dep);
            Found::Replaced(writer, key.to_vec())
        }
        _ => Found::Busy(writer),
    }
}

async fn delete_entry(
    txn: &mut Transaction,
    index: &IndexShape,
    row_key: &[u8],
    row: &[Value],
) -> Result<(), EngineError> {
    match index.entry_of(row)? {
        Some(entry) => remove_entry(txn, index, &[&entry.prefix, row_key].concat()).await,
        None => Ok(()),
    }
}

/// Deletes an entry.
pub(super) async fn remove_entry(txn: &mut Transaction, index: &IndexShape, entry: &[u8]) -> Result<(), EngineError> {
    let tree = index.entries(txn.all());
    // TAB-3: `Newer` would mean that there is no live entry: the index is being built and the builder has not reached this row yet.
    txn.change(tree, entry, Change::Delete { moved_to: None }, Basis::Locked, IfTaken::Wait).await?;
    Ok(())
}
