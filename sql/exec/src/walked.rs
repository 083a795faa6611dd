//! Takes the rows that a walk has read ahead: those that the gate of the scan turns away cost nothing more (GAT-1), of the others the columns are read that the
//! filter names, and of those that meet it the others.

use super::Cx;
use super::appended::key_slot;
use super::row_batch::Batch;
use super::scan::{BURST, Given, Put, fill, is_new, slots_of};
use clearway_engine::table::pick::Picker;
use clearway_engine::table::scan::{IndexScan, TableScan};
use clearway_planner::gate::Verdict;
use clearway_planner::plan::Scan;
use clearway_syntax::error::Result;
use clearway_txn::read::ShownEnd;
use clearway_values::expr::Bound;
use clearway_values::types::Datum;

/// So many rows that are turned away count as one that is read.
const AWAY: usize = 8;

/// A walk that reads rows ahead.
pub(super) trait Walk {
    /// Key and value part of the next row that has been read ahead.
    fn buffered(&mut self) -> Option<(&[u8], &[u8])>;
    /// If that row is one that only the snapshot shows: how it ended.
    fn next_shown(&self) -> Option<ShownEnd>;
}

impl Walk for TableScan {
    #[inline]
    fn buffered(&mut self) -> Option<(&[u8], &[u8])> {
        TableScan::buffered(self)
    }
    #[inline]
    fn next_shown(&self) -> Option<ShownEnd> {
        TableScan::next_shown(self)
    }
}

impl Walk for IndexScan {
    #[inline]
    fn buffered(&mut self) -> Option<(&[u8], &[u8])> {
        self.buffered_row()
    }
    /// Such rows are read one at a time (`clearway_txn::read::Picked`).
    #[inline]
    fn next_shown(&self) -> Option<ShownEnd> {
        None
    }
}

/// What is done for a row: the columns that are read first, the condition, and the columns that are read then.
type Steps<'s> = (Option<&'s Picker>, Option<&'s Bound>, Option<&'s Picker>);

impl Cx<'_> {
    /// Appends rows of a walk that have been read ahead, have not been given and meet the filter, which can't wait; how much was looked at, in rows.
    pub(super) fn walked_now(
        self,
        (walk, mut given): (&mut impl Walk, Option<&mut Given>),
        (scan, filter): (&Scan, Option<&Bound>),
        prefix: &[Datum],
        enough: usize,
        out: &mut Batch,
    ) -> Result<usize> {
        let split = scan.judged_first.as_deref();
        let (first, others) = (split.map(|split| &split.0).or(scan.wanted.as_ref()), split.map(|split| &split.1));
        let all: Steps<'_> = (first, filter, others);
        let gate = scan.gate.as_deref().filter(|gate| filter.is_some() || gate.has_keys());
        let passed: Steps<'_> = match gate.and_then(|gate| gate.rest.as_ref()) {
            Some(rest) => (Some(&rest.first), rest.filter.as_ref(), rest.others.as_ref()),
            None => all,
        };
        let shape = &scan.table.shape;
        let read = |picker: Option<&Picker>, (key, value): (&[u8], &[u8]), put: Put<'_>| match picker {
            Some(picker) => picker.read(shape, key, value, put),
            None => shape.read(key, value, put),
        };
        let key_at = prefix.len() + scan.table.types.len();
        let (mut seen, mut away, mut unmet, before, mut known) = (0, 0, 0, out.len(), 0);
        while seen + away / AWAY < BURST && out.len() < enough {
            let shown = walk.next_shown();
            let Some(row) = walk.buffered() else { break };
            let (first, filter, others) = match gate.map(|gate| gate.judge(row, self.run.params)) {
                Some(Verdict::Away) => {
                    away += 1;
                    continue;
                }
                Some(Verdict::Unmet) => {
                    away += 1;
                    unmet += 1;
                    continue;
                }
                Some(Verdict::Passes) => passed,
                Some(Verdict::Unknown) | None => all,
            };
            seen += 1;
            if given.is_some() && !is_new(given.as_deref_mut(), row.0, shown)? {
                known += 1;
                continue;
            }
            let slots = slots_of(scan, prefix, out);
            fill(scan, &mut slots[prefix.len()..], |put| read(first, row, put))?;
            if scan.wanted.is_none() && others.is_none() {
                slots[key_at] = key_slot(row.0, shown);
            }
            if !self.holds_now(filter, slots)? {
                continue;
            }
            if others.is_some() {
                fill(scan, &mut slots[prefix.len()..], |put| read(others, row, put))?;
                if scan.wanted.is_none() {
                    slots[key_at] = key_slot(row.0, shown);
                }
            }
            out.add();
        }
        gate.inspect(|gate| gate.note(seen + away, seen));
        self.note_judged(scan, seen + away - unmet - known - (out.len() - before), unmet);
        Ok(seen + away.div_ceil(AWAY))
    }
}
