//! Reads a table by several ranges of its key and of its indexes.
//!
//! The ranges are computed when the scan begins. The ranges of one key are sorted and do not overlap, so that their rows come in the
//! order of the key and each row once. A row that is found by ranges of several keys is given by the first of them. The whole table is
//! read instead if the snapshot is older than one of the indexes, or if there are so many ranges that reading everything costs less.
//!
//! # Invariants
//! - RGS-1: where the plan relies on the order of the key (`Scan::order`), only a snapshot older than the index makes the whole table be read:
//!   the executor knows of that, and sorts.

use super::Cx;
use super::convert::to_value;
use super::row_batch::Batch;
use super::scan::{Given, TableRows, append_key, key_columns};
use clearway_syntax::error::{Result, SqlError};
use clearway_values::expr::Bound;

use clearway_base::memory::{Held, Kind};
use clearway_engine::codec::key::{KeyColumn, encode_value};
use clearway_engine::table::sieve::Sieve;
use clearway_engine::value::Value;
use clearway_planner::facts::prefix;
use clearway_planner::plan::{KeyValues, RangePart, Ranges, RowEnd, Scan};
use clearway_storage::btree::{Direction, KeyRange};
use clearway_values::types::Datum;
use std::collections::HashSet;
use std::sync::Arc;

/// The byte that begins a present value in a key, and the one behind every present value.
const PRESENT: u8 = 0x01;
const BEHIND: u8 = 0x02;

/// Rows of a union of ranges.
pub struct RangeRows {
    /// What is still to be read, the next at the end.
    left: Vec<(Option<usize>, KeyRange)>,
    current: Option<TableRows>,
    /// Keys of the rows given, where two keys are read.
    given: Option<Given>,
    /// The table is read in whole; rows are judged by what the ranges guarantee.
    whole: bool,
    /// What another index says of the rows (RGS-2).
    sieve: Option<Arc<Sieve>>,
}

impl Cx<'_> {
    /// Begins to read a union of ranges.
    pub(super) async fn open_ranges(self, scan: &Scan, ranges: &Ranges, outer: &[Datum]) -> Result<TableRows> {
        let shape = &scan.table.shape;
        let too_young = |i: usize| shape.indexes[i].valid_from_lsn > self.run.view.read_lsn.0;
        let mut all: Vec<(Option<usize>, KeyRange)> = Vec::new();
        let mut whole = ranges.parts.iter().any(|p| p.index.is_some_and(too_young));
        for part in ranges.parts.iter().filter(|_| !whole) {
            let Some(found) = self.part_ranges(scan, part, outer).await? else {
                whole = true;
                break;
            };
            all.extend(found.into_iter().map(|range| (part.index, range)));
        }
        // What a sub-select gave may be so much that finding it bit by bit costs more than reading everything.
        let rows = self.run.core.db.statistics().of(shape.oid).map_or(u64::MAX, |s| s.rows);
        whole |= scan.order.is_none() && all.len() > 100 && all.len() as u64 > rows / 4;
        if whole {
            let walk = self.walk(scan, KeyRange::all());
            return Ok(TableRows::Ranges(Box::new(RangeRows {
                left: Vec::new(),
                current: Some(walk),
                given: None,
                whole,
                sieve: None,
            })));
        }
        // The next one stands at the end.
        all.sort_unstable_by(|a, b| (b.0, &b.1.from).cmp(&(a.0, &a.1.from)));
        let mut left: Vec<(Option<usize>, KeyRange)> = Vec::with_capacity(all.len());
        while let Some((index, range)) = all.pop() {
            self.breathe().await?;
            match left.last_mut() {
                Some((last, before)) if *last == index && before.to.as_ref().is_none_or(|to| range.from <= *to) => {
                    let further = match (&before.to, &range.to) {
                        (Some(to), Some(end)) => end > to,
                        (Some(_), None) => true,
                        (None, _) => false,
                    };
                    if further {
                        before.to = range.to;
                    }
                }
                _ => left.push((index, range)),
            }
        }
        let several = left.first().map(|l| l.0) != left.last().map(|l| l.0);
        if scan.order != Some(Direction::Backward) {
            left.reverse();
        }
        let given = several.then(|| (HashSet::new(), Held::new(Kind::Distinct)));
        let sieve = match &ranges.beside {
            Some(beside) => Box::pin(self.sieve(scan, beside, outer)).await?,
            None => None,
        };
        if sieve.as_ref().is_some_and(|sieve| sieve.keys() == 0) {
            left.clear();
        }
        Ok(TableRows::Ranges(Box::new(RangeRows { left, current: None, given, whole, sieve })))
    }

    /// The ranges of one part; none: it says nothing after all.
    pub(super) async fn part_ranges(self, scan: &Scan, part: &RangePart, outer: &[Datum]) -> Result<PartRanges> {
        let own;
        let columns: &[KeyColumn] = match part.index {
            Some(i) => &scan.table.shape.indexes[i].key,
            None => {
                own = key_columns(scan);
                &own
            }
        };
        let mut starts: Vec<Vec<u8>> = vec![Vec::new()];
        for (place, (values, column)) in part.columns.iter().zip(columns).enumerate() {
            if let KeyValues::Each(each) = values {
                let Some(within) = self.ends([each.low.as_ref(), each.high.as_ref()], *column, outer).await? else {
                    return Ok(Some(Vec::new()));
                };
                if within.0.is_some() && within.0 >= within.1 {
                    return Ok(Some(Vec::new()));
                }
                let ranges = starts.iter().map(|start| between(start, &within)).collect();
                match self.each_value(scan, part.index, (place + 1, each.expected), ranges).await? {
                    Some(longer) => starts = longer,
                    None => return Ok(None),
                }
                continue;
            }
            let ends = self.encoded(values, *column, outer).await?;
            let mut longer = Vec::with_capacity(starts.len() * ends.len());
            for start in &starts {
                for end in &ends {
                    self.breathe().await?;
                    longer.push([&start[..], end].concat());
                }
            }
            starts = longer;
        }
        let Some(next) = columns.get(part.columns.len()) else {
            return Ok(Some(starts.iter().map(|s| KeyRange::prefix(s)).collect()));
        };
        if let Some((op, pattern)) = &part.pattern {
            let text = match self.value(pattern, outer).await? {
                Datum::Text(pattern) => prefix(*op, &pattern),
                _ => return Ok(Some(Vec::new())),
            };
            if !text.is_empty() {
                let begins = beginning(*next, &text);
                let range = |s: &Vec<u8>| KeyRange::prefix(&[&s[..], &begins].concat());
                return Ok(Some(starts.iter().map(range).collect()));
            }
            if part.columns.is_empty() && scan.order.is_none() {
                return Ok(None);
            }
        }
        let Some(ends) = self.ends([part.low.as_ref(), part.high.as_ref()], *next, outer).await? else {
            return Ok(Some(Vec::new()));
        };
        let Some((mut low, mut high)) = self.row_ends(part, &columns[part.columns.len()..], outer, ends).await? else {
            return Ok(Some(Vec::new()));
        };
        if low.is_some() || high.is_some() {
            // A bound on one side leaves nulls out on the other.
            low.get_or_insert_with(|| vec![PRESENT]);
            high.get_or_insert_with(|| vec![BEHIND]);
        }
        if low.is_some() && low >= high {
            return Ok(Some(Vec::new()));
        }
        Ok(Some(starts.iter().map(|start| between(start, &(low.clone(), high.clone()))).collect()))
    }

    /// The values of a list.
    pub(super) async fn listed(self, values: &KeyValues, outer: &[Datum]) -> Result<Vec<Datum>> {
        let mut list: Vec<Datum> = Vec::new();
        match values {
            KeyValues::One(e) => list.push(self.value(e, outer).await?),
            KeyValues::List(all) => {
                for e in all {
                    list.push(self.value(e, outer).await?);
                }
            }
            KeyValues::Array(e) => {
                if let Datum::Array(array) = self.value(e, outer).await? {
                    list.extend_from_slice(&array.values);
                }
            }
            KeyValues::Null => list.push(Datum::Null),
            // Which values there are, the index itself tells.
            KeyValues::Each(_) => return Err(SqlError::internal("the values of a column that is skipped")),
        }
        Ok(list)
    }

    /// The key forms of a column's values, each once.
    async fn encoded(self, values: &KeyValues, column: KeyColumn, outer: &[Datum]) -> Result<Vec<Vec<u8>>> {
        if let KeyValues::Null = values {
            let mut null = Vec::new();
            encode_value(column, &Value::Null, &mut null);
            return Ok(vec![null]);
        }
        let list = self.listed(values, outer).await?;
        let mut out = Vec::with_capacity(list.len());
        for value in &list {
            self.breathe().await?;
            let mut bytes = Vec::new();
            if append_key(column, value, &mut bytes).is_some() {
                out.push(bytes);
            }
        }
        if out.len() > 1 {
            out.sort_unstable();
            out.dedup();
        }
        Ok(out)
    }

    /// Where the ranges begin and end behind the known columns, as bytes; none: nowhere, they are empty.
    async fn ends(
        self,
        [below, above]: [Option<&(Bound, bool)>; 2],
        column: KeyColumn,
        outer: &[Datum],
    ) -> Result<Option<Ends>> {
        let low = self.edge(below, column, outer, true).await?;
        let high = self.edge(above, column, outer, false).await?;
        let (Some(low), Some(high)) = (low, high) else { return Ok(None) };
        let (mut from, mut to) = if column.descending { (high, low) } else { (low, high) };
        if below.is_some() || above.is_some() {
            // A bound on one side leaves nulls out on the other.
            from.get_or_insert_with(|| vec![PRESENT]);
            to.get_or_insert_with(|| vec![BEHIND]);
        }
        Ok(Some((from, to)))
    }

    /// One bound as bytes: the outer none: nothing meets it; the inner one: everything does.
    async fn edge(
        self,
        bound: Option<&(Bound, bool)>,
        column: KeyColumn,
        outer: &[Datum],
        low: bool,
    ) -> Result<Option<Option<Vec<u8>>>> {
        let Some((e, inclusive)) = bound else { return Ok(Some(None)) };
        let value = to_value(&self.value(e, outer).await?);
        if value.is_null() {
            return Ok(None);
        }
        if !value.fits(column.storage) {
            // A bound beyond what the column can hold lies above everything or below it.
            let above = matches!(value, Value::Int(i) if i > 0);
            return Ok(if above == low { None } else { Some(None) });
        }
        let mut bytes = Vec::new();
        encode_value(column, &value, &mut bytes);
        // In bytes the bound is a beginning or an end; a beginning is inclusive, an end exclusive.
        let begins = low != column.descending;
        if begins != *inclusive {
            return Ok(Some(KeyRange::prefix(&bytes).to));
        }
        Ok(Some(Some(bytes)))
    }

    /// These ends, or closer ones by the values of several columns; none: nothing lies between them.
    async fn row_ends(
        self,
        part: &RangePart,
        columns: &[KeyColumn],
        outer: &[Datum],
        (mut low, mut high): Ends,
    ) -> Result<Option<Ends>> {
        for (end, is_low) in [(&part.row_low, true), (&part.row_high, false)] {
            let Some(end) = end else { continue };
            match self.row_edge(end, columns, outer, is_low).await? {
                RowEdge::Nothing => return Ok(None),
                RowEdge::Begins(bytes) => low = low.max(Some(bytes)),
                RowEdge::Ends(None) => {}
                RowEdge::Ends(Some(bytes)) => high = Some(high.map_or(bytes.clone(), |high| high.min(bytes))),
            }
        }
        Ok(Some((low, high)))
    }

    /// Where ranges begin or end by the values of several columns (RWE-1).
    async fn row_edge(self, end: &RowEnd, columns: &[KeyColumn], outer: &[Datum], low: bool) -> Result<RowEdge> {
        let mut bytes = Vec::new();
        let mut inclusive = end.inclusive;
        let begins = low != columns.first().is_some_and(|c| c.descending);
        for (at, (e, column)) in end.values.iter().zip(columns).enumerate() {
            let value = to_value(&self.value(e, outer).await?);
            if !value.is_null() && value.fits(column.storage) {
                encode_value(*column, &value, &mut bytes);
                continue;
            }
            // Above everything that the column can hold, or below it; or NULL, with which the comparison is not true where the columns before
            // this one are equal.
            let above = matches!(value, Value::Int(i) if i > 0);
            inclusive = !value.is_null() && above != low;
            if at == 0 {
                return Ok(match (inclusive, begins) {
                    (false, _) => RowEdge::Nothing,
                    (true, true) => RowEdge::Begins(vec![PRESENT]),
                    (true, false) => RowEdge::Ends(Some(vec![BEHIND])),
                });
            }
            break;
        }
        // In bytes a beginning is inclusive, an end exclusive.
        let bytes = if begins == inclusive { Some(bytes) } else { KeyRange::prefix(&bytes).to };
        Ok(match (begins, bytes) {
            (true, None) => RowEdge::Nothing,
            (true, Some(bytes)) => RowEdge::Begins(bytes),
            (false, bytes) => RowEdge::Ends(bytes),
        })
    }

    /// Begins to read the next range; false: there is none.
    fn next_range(self, rows: &mut RangeRows, scan: &Scan) -> bool {
        let Some((index, range)) = rows.left.pop() else { return false };
        let Some(place) = index else {
            rows.current = Some(self.walk(scan, range));
            return true;
        };
        let mut walk = self.walk_index(scan, place, range);
        if let TableRows::Index(walk) | TableRows::Entries(walk) = &mut walk
            && scan.order.is_none()
        {
            // Those of the same index are one walk.
            let first = rows.left.iter().rposition(|(other, _)| *other != index).map_or(0, |at| at + 1);
            let more: Vec<KeyRange> = rows.left.drain(first..).map(|(_, range)| range).collect();
            if !more.is_empty() {
                walk.go_on_with(more);
            }
        }
        if let TableRows::Index(walk) = &mut walk {
            if scan.order.is_none() {
                walk.may_reorder();
            }
            rows.sieve.iter().for_each(|sieve| walk.sift(sieve.clone()));
        }
        rows.current = Some(walk);
        true
    }

    /// Appends rows of a union of ranges that meet the filter, which can't wait, as `read_ahead` does; false: there are no more. None:
    /// [`Self::next_of_ranges`] gives the next row.
    pub(super) async fn ranges_ahead(
        self,
        rows: &mut RangeRows,
        (scan, filter): (&Scan, Option<&Bound>),
        prefix: &[Datum],
        enough: usize,
        out: &mut Batch,
    ) -> Result<Option<bool>> {
        if rows.whole {
            return Ok(None);
        }
        while out.len() < enough {
            if rows.current.is_none() && !self.next_range(rows, scan) {
                return Ok(Some(false));
            }
            let Some(current) = &mut rows.current else { return Ok(None) };
            match self.read_ahead((current, rows.given.as_mut()), (scan, filter), prefix, enough, out).await? {
                Some(true) => {}
                Some(false) => rows.current = None,
                None => return Ok(None),
            }
        }
        Ok(Some(true))
    }

    /// Appends the next row of a union of ranges; false: there is none.
    pub(super) async fn next_of_ranges(
        self,
        rows: &mut RangeRows,
        scan: &Scan,
        outer: &[Datum],
        out: &mut Batch,
    ) -> Result<bool> {
        loop {
            let Some(current) = &mut rows.current else {
                if !self.next_range(rows, scan) {
                    return Ok(false);
                }
                continue;
            };
            if !self.next_row(current, scan, outer, rows.given.as_mut(), out).await? {
                rows.current = None;
                if rows.left.is_empty() {
                    return Ok(false);
                }
                continue;
            }
            if rows.whole
                && let clearway_planner::plan::Access::Ranges(ranges) = &scan.access
            {
                let judged = self.holds(ranges.guarantees.as_ref(), out.last()).await;
                if !matches!(judged, Ok(true)) {
                    out.truncate(out.len() - 1);
                }
                if !judged? {
                    continue;
                }
            }
            return Ok(true);
        }
    }
}

/// What values of several columns say of a range: it is empty, or it begins or ends there.
enum RowEdge {
    Nothing,
    Begins(Vec<u8>),
    Ends(Option<Vec<u8>>),
}

/// The ranges of one part; none: it says nothing after all.
type PartRanges = Option<Vec<KeyRange>>;

/// The beginning and the end of a range; none: open.
type Ends = (Option<Vec<u8>>, Option<Vec<u8>>);

/// The keys that begin with these bytes, and go on between two ends.
fn between(start: &[u8], (low, high): &Ends) -> KeyRange {
    match (low, high) {
        (Some(low), Some(high)) => KeyRange::new([start, low].concat(), Some([start, high].concat())),
        _ => KeyRange::prefix(start),
    }
}

/// The bytes with which the key form of every text begins that begins with this one.
fn beginning(column: KeyColumn, text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_value(column, &Value::Bytes(text.as_bytes().into()), &mut bytes);
    // Without the terminator.
    bytes.truncate(bytes.len().saturating_sub(2));
    bytes
}
