//! The part of the fast path ([`super::short`]) for `DELETE FROM table WHERE key = $1`, from a table without indexes beside its primary key to which no
//! foreign key refers: the row is found as the statement's snapshot shows it, and becomes a ghost by one edit of its leaf.
//!
//! # Invariants
//! SHT-1 holds here too. A row that another transaction has, or has changed since the snapshot, is left to the general path, which waits for it and judges
//! it again.

use super::point::{Part, key_parts};
use super::session::Session;
use super::short::{Short, ShortChange, begin, close};
use crate::planner::plan::{Delete, Node};
use clearway_engine::codec::key::KeyColumn;
use clearway_txn::mvcc::book::View;
use clearway_txn::transaction::{Basis, Changed};

pub(super) struct OneDelete {
    pub(super) key: Box<[(KeyColumn, Part)]>,
}

impl OneDelete {
    /// None: the plan does not qualify.
    pub(super) fn of(delete: &Delete) -> Option<OneDelete> {
        let Node::Scan(scan) = &*delete.source else { return None };
        let (target, table) = (&delete.target, &delete.target.table);
        let plain = delete.returning.is_none() && delete.filter.is_none() && scan.filter.is_none();
        let free = target.catalog.is_none() && target.referrers.is_empty() && target.uniques.is_empty();
        let same = scan.table.shape.oid == table.shape.oid && scan.table.base == table.base;
        let fits = plain && free && same && table.shape.indexes.is_empty();
        if fits { Some(OneDelete { key: key_parts(scan)? }) } else { None }
    }
}

impl Session {
    /// Deletes the row whose key is in the scratch memory, if there is one; none: the statement must take the general path.
    pub(super) fn delete_known_row(
        &mut self,
        short: &Short<'_>,
        change: &ShortChange,
        has_key: bool,
        began_ns: u64,
    ) -> Option<u64> {
        let statement = begin(&self.core, short, change, began_ns)?;
        let done = if has_key { self.delete_found(change, statement.view) } else { Some(0) };
        self.watch.has_looked_at_rows(close(&self.core, statement)[0]);
        done
    }

    fn delete_found(&mut self, change: &ShortChange, view: View) -> Option<u64> {
        let (core, shape, key) = (&*self.core, &*change.shape, &self.change_scratch.key);
        let mut engine = core.engine.take();
        if engine.find_now(shape, &view, key)?.is_none() {
            return Some(0);
        }
        core.writes_row(shape.oid, key);
        match engine.delete_now(shape, key, Basis::Read(view))? {
            Changed::Done => Some(1),
            Changed::Newer | Changed::Again | Changed::Exists { .. } => None,
        }
    }
}
