//! The part of the fast path ([`super::short`]) for `DELETE FROM table WHERE key = $1`, from a table to which no foreign key refers: the row is found as the
//! statement's snapshot shows it, and becomes a ghost by one edit of its leaf, and so does its entry in each index.
//!
//! # Invariants
//! SHT-1 holds here too. A row that another transaction has, or has changed since the snapshot, is left to the general path, which waits for it and judges
//! it again.

use super::point::{Part, key_parts};
use super::session::Session;
use super::short::{ChangeScratch, Short, ShortChange, begin, close, if_taken};
use crate::planner::plan::{Delete, Node};
use clearway_engine::codec::key::KeyColumn;
use clearway_engine::table::entry_moves::EntryKeys;
use clearway_txn::mvcc::book::View;
use clearway_txn::transaction::{Basis, Changed};

pub(super) struct OneDelete {
    pub(super) key: Box<[(KeyColumn, Part)]>,
    entries: Option<EntryKeys>,
}

impl OneDelete {
    /// None: the plan does not qualify.
    pub(super) fn of(delete: &Delete) -> Option<OneDelete> {
        let Node::Scan(scan) = &*delete.source else { return None };
        let (target, table) = (&delete.target, &delete.target.table);
        let plain = delete.returning.is_none() && delete.filter.is_none() && scan.filter.is_none();
        let free = target.catalog.is_none() && target.referrers.is_empty() && target.uniques.is_empty();
        let same = scan.table.shape.oid == table.shape.oid && scan.table.base == table.base;
        if !plain || !free || !same {
            return None;
        }
        Some(OneDelete { key: key_parts(scan)?, entries: EntryKeys::of(&table.shape, false, |_| true)? })
    }
}

impl Session {
    /// Deletes the row whose key is in the scratch memory, if there is one; none: the statement must take the general path.
    pub(super) fn delete_known_row(
        &mut self,
        short: &Short<'_>,
        (change, delete, has_key): (&ShortChange, &OneDelete, bool),
        began_ns: u64,
    ) -> Option<u64> {
        let statement = begin(&self.core, short, change, began_ns)?;
        let done = if has_key { self.delete_found(change, delete, statement.view) } else { Some(0) };
        self.watch.has_looked_at_rows(close(&self.core, statement)[0]);
        done
    }

    fn delete_found(&mut self, change: &ShortChange, delete: &OneDelete, view: View) -> Option<u64> {
        let (core, shape) = (&*self.core, &*change.shape);
        let if_taken = if_taken(&self.row_turn);
        let ChangeScratch { key, entries, .. } = &mut self.change_scratch;
        let mut engine = core.engine.take();
        let Some(found) = engine.find_now(shape, &view, key)? else { return Some(0) };
        entries.clear();
        if let Some(keys) = &delete.entries {
            entries.go(keys, shape, (key, found)).then_some(())?;
        }
        core.writes_row(shape.oid, key);
        match engine.delete_now(shape, key, (Basis::Read(view), if_taken), entries)? {
            Changed::Done => Some(1),
            Changed::Newer | Changed::Again | Changed::Exists { .. } => None,
        }
    }
}
