//! Checks that the indexes of a table agree with its rows, for the check of a directory.
//!
//! # Invariants
//! - VFY-1: the comparison is made at one snapshot: each row that meets a public index's condition has its entry there, and the index has as
//!   many entries as the table has such rows. So each entry belongs to a row with the entry's values.

use clearway_base::sync::yield_now;
use clearway_storage::btree::{Direction, KeyRange};
use clearway_storage::ids::Lsn;
use clearway_txn::mvcc::book::View;
use clearway_txn::read::{Reading, RowBatch, Scan};
use clearway_txn::transactions::Transactions;

use super::scan::TableScan;
use super::shape::{IndexShape, TableShape};
use crate::catalog::{Catalog, IndexState, Oid};
use crate::error::EngineError;

/// How many rows the check reads before it yields to other tasks.
const BREATH_ROWS: u64 = 256;

/// A disagreement between a table and one of its indexes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disagreement {
    /// The table.
    pub table: String,
    /// The index.
    pub index: String,
    /// Rows of the table that meet the index's condition.
    pub rows: u64,
    /// Entries of the index.
    pub entries: u64,
    /// Rows of the table that have no entry in the index.
    pub without_entry: u64,
}

impl std::fmt::Display for Disagreement {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Disagreement { table, index, rows, entries, without_entry } = self;
        let astray = entries.saturating_sub(rows - without_entry);
        write!(
            f,
            "index {index} disagrees with table {table}: of {rows} rows {without_entry} have no entry, of {entries} entries {astray} \
             lead to no such row; REINDEX INDEX {index} builds it anew"
        )
    }
}

/// Compares a table's indexes with its rows.
///
/// # Errors
/// From the catalog and the trees; `BadRow`.
pub async fn verify(all: &Transactions, catalog: &Catalog, table: Oid) -> Result<Vec<Disagreement>, EngineError> {
    let shape = TableShape::new(catalog, table)?;
    let mut reader = all.book().snapshots().reader();
    let snapshot = reader.begin(|| all.visible_lsn());
    let view = View { read_lsn: snapshot.read_lsn, ..View::default() };
    let compared = compare(all, &shape, view).await;
    reader.end(snapshot);
    compared
}

async fn compare(
    all: &Transactions,
    shape: &std::sync::Arc<TableShape>,
    view: View,
) -> Result<Vec<Disagreement>, EngineError> {
    let public: Vec<&IndexShape> = shape.indexes.iter().filter(|i| i.state == IndexState::Public).collect();
    let (mut without, mut of_index) = (vec![0; public.len()], vec![0; public.len()]);
    let (mut rows, mut dep, mut reading) = (0, Lsn::default(), Reading::default());
    let mut scan = TableScan::new(all, shape, KeyRange::all(), Direction::Forward, view);
    while let Some(found) = scan.next(all, &mut dep).await? {
        for ((index, missing), met) in public.iter().zip(&mut without).zip(&mut of_index) {
            let Some(entry) = index.entry_of(&found.row)? else { continue };
            *met += 1;
            let entry = [&entry.prefix, &found.key[..]].concat();
            let there = reading.get(all.book(), index.entries(all), &entry, &view, &mut dep).await?;
            *missing += u64::from(!there);
        }
        rows += 1;
        if rows % BREATH_ROWS == 0 {
            yield_now().await;
        }
    }
    let mut out = Vec::new();
    for ((index, without_entry), rows) in public.into_iter().zip(without).zip(of_index) {
        let entries = count(all, index, view).await?;
        // VFY-1
        if entries != rows || without_entry > 0 {
            let (table, index) = (shape.name.clone(), index.name.clone());
            out.push(Disagreement { table, index, rows, entries, without_entry });
        }
    }
    Ok(out)
}

async fn count(all: &Transactions, index: &IndexShape, view: View) -> Result<u64, EngineError> {
    let mut scan = Scan::new(index.entries(all), KeyRange::all(), Direction::Forward, view);
    let (mut batch, mut dep, mut entries) = (RowBatch::default(), Lsn::default(), 0);
    while scan.next(all.book(), &mut dep, &mut batch).await? {
        entries += batch.len() as u64;
        yield_now().await;
    }
    Ok(entries)
}
