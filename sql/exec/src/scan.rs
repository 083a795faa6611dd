//! Reads one table: by whole keys, by a range of its key or of an index, or completely.

use super::apart::ApartRows;
use super::convert::{borrowed_datum, to_value};
use super::jump::Jumps;
use super::key_range::{Ends, KeyBytes};
use super::ranges::RangeRows;
use super::row_batch::Batch;
use super::sample::Sampler;
use super::{Cx, Row};
use clearway_base::memory::Held;
use clearway_context::errors::from_engine;
use clearway_engine::codec::key::{KeyColumn, encode_value};
use clearway_engine::error::EngineError;
use clearway_engine::table::scan::{IndexScan, TableScan};
use clearway_engine::value::ValueRef;
use clearway_planner::plan::{Access, Range, Scan};
use clearway_planner::system_columns;
use clearway_storage::btree::{Direction, KeyRange};
use clearway_syntax::error::Result;
use clearway_txn::read::ShownEnd;
use clearway_values::expr::Bound;
use clearway_values::types::Datum;
use std::collections::HashSet;

/// So many rows are looked at between two breaths.
pub(super) const BURST: usize = 32;
/// What holds where entries of an index are read.
pub(super) const ENTRIES: &str = "walk_index asks for entries only where the plan has a picker";

pub(super) use super::appended::{append_entry, append_row, append_walked, key_slot};

/// Rows of one scan.
pub enum TableRows {
    /// A key still to be looked up.
    Key(Option<Vec<u8>>),
    /// Several of them.
    Keys(std::vec::IntoIter<Vec<u8>>),
    /// A key at which the view sees two rows (RDV-2): a walk over it; and the keys still to be looked up.
    Both(Box<TableScan>, std::vec::IntoIter<Vec<u8>>),
    /// A walk over the table.
    Table(Box<TableScan>),
    /// The table read in parts, with the help of idle processors.
    Apart(Box<ApartRows>),
    /// The same of a sampled table.
    Sample(Box<TableScan>, Sampler),
    /// A walk by an index.
    Index(Box<IndexScan>),
    /// A walk over the entries of an index, whose rows are not read (COV-1).
    Entries(Box<IndexScan>),
    /// Several walks.
    Ranges(Box<RangeRows>),
    /// A walk that jumps from one value of the leading columns to the next.
    Jumps(Box<Jumps>),
    /// A row that has been found, or none: no filter is left to be met.
    Found(Option<Row>),
}

/// Keys of rows that have been given, where one row may be found twice.
pub(super) type Given = (HashSet<Vec<u8>>, Held);

/// The filter by which rows are judged: none where the range of an index says all of it (COV-3).
pub(super) fn asked_of<'s>(rows: &TableRows, scan: &'s Scan) -> Option<&'s Bound> {
    let filter = scan.filter.as_ref()?;
    let (TableRows::Entries(_) | TableRows::Index(_), Access::Index(_, range)) = (rows, &scan.access) else {
        return Some(filter);
    };
    (!range.says_all).then_some(filter)
}

/// The rows of a walk by an index: its entries alone where they have all that is wanted.
pub(super) fn by_index(scan: &Scan, place: usize, walk: Box<IndexScan>) -> TableRows {
    let alone = scan.entries.as_ref().is_some_and(|entries| entries.picker.index() == place);
    if alone { TableRows::Entries(walk) } else { TableRows::Index(walk) }
}

/// Rows by an index that may come in another order than that of the index, if the scan asks for none.
pub(super) fn in_any_order(scan: &Scan, mut rows: TableRows) -> TableRows {
    if let (TableRows::Index(walk), None) = (&mut rows, scan.order) {
        walk.may_reorder();
    }
    rows
}

/// The columns of a table's key.
pub fn key_columns(scan: &Scan) -> Vec<KeyColumn> {
    let shape = &scan.table.shape;
    shape.key.iter().map(|c| KeyColumn::ascending(shape.columns[*c].storage)).collect()
}

/// Appends the key form of a value; none: no stored value equals it.
pub fn append_key(column: KeyColumn, d: &Datum, out: &mut Vec<u8>) -> Option<()> {
    let v = to_value(d);
    if v.is_null() || !v.fits(column.storage) {
        return None;
    }
    encode_value(column, &v, out);
    Some(())
}

impl Cx<'_> {
    /// Begins a scan; `prefix` holds the slots to its left.
    pub async fn open_scan(self, scan: &Scan, prefix: &[Datum]) -> Result<TableRows> {
        match &scan.access {
            Access::Full if scan.jump.is_some() => Ok(self.jumps(scan, None, KeyRange::all())),
            Access::Full => {
                if let Some(apart) = self.open_apart(scan) {
                    return Ok(apart);
                }
                let mut walk = self.walk(scan, KeyRange::all());
                if let (TableRows::Table(walk), Some(_)) = (&mut walk, &scan.filter) {
                    walk.seeks();
                }
                Ok(walk)
            }
            Access::Keys(keys) => {
                if let [key] = keys.as_slice() {
                    return Ok(TableRows::Key(self.key_bytes(scan, key, prefix).await?));
                }
                let mut out: Vec<Vec<u8>> = Vec::with_capacity(keys.len());
                for key in keys {
                    out.extend(self.key_bytes(scan, key, prefix).await?);
                }
                Ok(keys_in_order(scan, out))
            }
            Access::Tids(tids) => {
                let mut out = Vec::new();
                for ctid in self.listed(tids, prefix).await? {
                    self.breathe().await?;
                    out.extend(system_columns::key_of(&scan.table.shape, &ctid));
                }
                Ok(keys_in_order(scan, out))
            }
            Access::KeyRange(range) => Ok(match self.range(range, &key_columns(scan), prefix).await? {
                Some(range) if scan.jump.is_some() => self.jumps(scan, None, range),
                Some(range) => self.walk(scan, range),
                None => TableRows::Keys(Vec::new().into_iter()),
            }),
            Access::Ranges(ranges) => Box::pin(self.open_ranges(scan, ranges, prefix)).await,
            Access::Index(place, range) => {
                let shape = &scan.table.shape;
                let Some(range) = self.range(range, &shape.indexes[*place].key, prefix).await? else {
                    return Ok(TableRows::Keys(Vec::new().into_iter()));
                };
                let index = &shape.indexes[*place];
                if index.valid_from_lsn > self.run.view.read_lsn.0 {
                    // The index is younger than the snapshot: the whole table, and the filter of the scan's caller.
                    return Ok(self.walk(scan, KeyRange::all()));
                }
                if scan.jump.is_some() {
                    return Ok(self.jumps(scan, Some(*place), range));
                }
                Ok(in_any_order(scan, self.walk_index(scan, *place, range)))
            }
        }
    }

    /// A walk by an index: over its entries alone where they have all that is wanted.
    pub(super) fn walk_index(self, scan: &Scan, place: usize, range: KeyRange) -> TableRows {
        let (session, direction) = (self.run.core.engine.take(), scan.order.unwrap_or(Direction::Forward));
        let walk = Box::new(session.index_scan(&scan.table.shape, place, range, direction, &self.run.view));
        by_index(scan, place, walk)
    }

    /// The bytes of a whole key; none: no row can have it.
    async fn key_bytes(self, scan: &Scan, key: &[Bound], prefix: &[Datum]) -> Result<Option<Vec<u8>>> {
        let shape = &scan.table.shape;
        let mut bytes = Vec::with_capacity(9 * key.len());
        for (e, column) in key.iter().zip(&shape.key) {
            let column = KeyColumn::ascending(shape.columns[*column].storage);
            if append_key(column, &self.value(e, prefix).await?, &mut bytes).is_none() {
                return Ok(None);
            }
        }
        Ok(Some(bytes))
    }

    /// The row that a scan by one whole key finds, if that needs no wait; none: it does.
    pub fn point_now(self, scan: &Scan, prefix: &[Datum]) -> Option<Result<Option<Row>>> {
        let Access::Keys(keys) = &scan.access else { return None };
        let [key] = keys.as_slice() else { return None };
        if key.iter().chain(&scan.filter).any(Bound::may_wait) {
            return None;
        }
        let found = self.point_row(scan, key, prefix).transpose()?;
        Some(found.and_then(|row| match row {
            Some(row) => Ok(self.holds_now(scan.filter.as_ref(), &row)?.then_some(row)),
            None => Ok(None),
        }))
    }

    /// The inner `None`: there is no such row. The outer one: a wait is needed.
    fn point_row(self, scan: &Scan, key: &[Bound], prefix: &[Datum]) -> Result<Option<Option<Row>>> {
        let shape = &scan.table.shape;
        let mut bytes = Vec::with_capacity(9 * key.len());
        for (e, column) in key.iter().zip(&shape.key) {
            let column = KeyColumn::ascending(shape.columns[*column].storage);
            if append_key(column, &self.value_now(e, prefix)?, &mut bytes).is_none() {
                return Ok(Some(None));
            }
        }
        let mut session = self.run.core.engine.take();
        match session.find_now(shape, &self.run.view, &bytes) {
            None => Ok(None),
            Some(None) => Ok(Some(None)),
            Some(Some(value)) => row_of(scan, &bytes, value, prefix).map(|row| Some(Some(row))),
        }
    }

    pub(super) fn walk(self, scan: &Scan, range: KeyRange) -> TableRows {
        let session = self.run.core.engine.take();
        let walk = session.scan(&scan.table.shape, range, scan.order.unwrap_or(Direction::Forward), &self.run.view);
        TableRows::Table(Box::new(walk))
    }

    /// The bytes of a range; none: it is empty.
    async fn range(self, range: &Range, columns: &[KeyColumn], prefix: &[Datum]) -> Result<Option<KeyRange>> {
        let mut bytes = KeyBytes::default();
        Ok(self.put_range(range, columns, prefix, &mut Vec::new(), &mut bytes).await?.then(|| bytes.into()))
    }

    /// Puts the bytes of a range into `bytes`; false: it is empty. `equal` is memory for values.
    pub(super) async fn put_range(
        self,
        range: &Range,
        columns: &[KeyColumn],
        prefix: &[Datum],
        equal: &mut Vec<Datum>,
        bytes: &mut KeyBytes,
    ) -> Result<bool> {
        equal.clear();
        for e in &range.equal {
            equal.push(self.value(e, prefix).await?);
        }
        let low = self.bound(range.low.as_ref(), prefix).await?;
        let high = self.bound(range.high.as_ref(), prefix).await?;
        let ends = Ends {
            equal: &mut equal.iter(),
            low: low.as_ref().map(|(value, inclusive)| (value, *inclusive)),
            high: high.as_ref().map(|(value, inclusive)| (value, *inclusive)),
        };
        Ok(bytes.put(&mut columns.iter().copied(), ends))
    }

    async fn bound(self, bound: Option<&(Bound, bool)>, prefix: &[Datum]) -> Result<Option<(Datum, bool)>> {
        Ok(match bound {
            Some((e, inclusive)) => Some((self.value(e, prefix).await?, *inclusive)),
            None => None,
        })
    }

    /// Appends some `want` rows that meet the scan's filter; false: there are no more.
    pub(super) async fn read_rows(
        self,
        rows: &mut TableRows,
        scan: &Scan,
        prefix: &[Datum],
        want: usize,
        out: &mut Batch,
    ) -> Result<bool> {
        if let TableRows::Found(row) = rows {
            if let Some(row) = row.take() {
                out.push(&row, &[]);
            }
            return Ok(false);
        }
        let (filter, enough) = (asked_of(rows, scan), out.len() + want);
        let mut waits = filter.is_some_and(Bound::may_wait);
        let mut known = None;
        while out.len() < enough {
            if waits && let Some(found) = filter.and_then(|filter| self.known(filter)) {
                known = Some(found);
                waits = false;
            }
            let filter = known.as_ref().or(filter);
            let ahead = match rows {
                _ if waits => None,
                TableRows::Ranges(ranges) => {
                    Box::pin(self.ranges_ahead(ranges, (scan, filter), prefix, enough, out)).await?
                }
                _ => self.read_ahead((rows, None), (scan, filter), prefix, enough, out).await?,
            };
            if let Some(more) = ahead {
                if !more {
                    return Ok(false);
                }
                continue;
            }
            let there = match rows {
                TableRows::Apart(_) => {
                    if !Box::pin(self.read_apart(rows, scan, prefix, enough, out)).await? {
                        return Ok(false);
                    }
                    continue;
                }
                TableRows::Ranges(ranges) => self.next_of_ranges(ranges, scan, prefix, out).await?,
                TableRows::Jumps(jumps) => Box::pin(self.next_jump(jumps, scan, prefix, out)).await?,
                TableRows::Sample(walk, sampler) => self.next_sampled((walk, sampler), scan, prefix, out).await?,
                _ => self.next_row(rows, scan, prefix, None, out).await?,
            };
            if !there {
                return Ok(false);
            }
            if filter.is_none() {
                continue;
            }
            let judged = self.judge(filter, waits, out.last()).await;
            if !matches!(judged, Ok(true)) {
                out.truncate(out.len() - 1);
                self.note_judged(scan, 1, 0);
            }
            judged?;
        }
        Ok(true)
    }

    /// Appends rows of a walk over a table, or over entries, that meet the filter, which can't wait; false: there are no more. None: the scan is of
    /// another kind.
    pub(super) async fn read_ahead(
        self,
        (rows, given): (&mut TableRows, Option<&mut Given>),
        (scan, filter): (&Scan, Option<&Bound>),
        prefix: &[Datum],
        enough: usize,
        out: &mut Batch,
    ) -> Result<Option<bool>> {
        let seen = match rows {
            TableRows::Table(walk) => self.walked_now((&mut **walk, given), (scan, filter), prefix, enough, out)?,
            TableRows::Index(walk) => self.walked_now((&mut **walk, given), (scan, filter), prefix, enough, out)?,
            TableRows::Entries(walk) => {
                let picker = &scan.entries.as_ref().expect(ENTRIES).picker;
                let (mut seen, before) = (0, out.len());
                while seen < BURST && out.len() < enough {
                    let Some(entry) = walk.buffered_entry() else { break };
                    seen += 1;
                    let slots = slots_of(scan, prefix, out);
                    fill(scan, &mut slots[prefix.len()..], |put| picker.read(&scan.table.shape, entry, put))?;
                    if self.holds_now(filter, slots)? {
                        out.add();
                    }
                }
                self.note_judged(scan, seen - (out.len() - before), 0);
                seen
            }
            _ => return Ok(None),
        };
        self.breathe_for(seen).await?;
        if seen > 0 {
            return Ok(Some(true));
        }
        let mut session = self.run.core.engine.take();
        let more = match rows {
            TableRows::Table(walk) => session.fill(walk).await,
            // Rows that can't be found without waiting are read one at a time.
            TableRows::Index(walk) => {
                walk.expect(enough - out.len());
                let read = session.fill_by_index(walk, enough - out.len()).await.map_err(from_engine)?;
                drop(session);
                if !read {
                    return Ok(walk.has_ended().then_some(false));
                }
                // A sieve may have held many entries back.
                self.breathe_for(BURST / 4).await?;
                return Ok(Some(true));
            }
            TableRows::Entries(walk) => {
                walk.expect(enough - out.len());
                session.fill_entries(walk).await
            }
            _ => Ok(false),
        };
        more.map(Some).map_err(from_engine)
    }

    /// Appends the next row of a scan whose key has not been given, behind `prefix`, its key last (PLN-1); false: there is none.
    pub(super) async fn next_row(
        self,
        rows: &mut TableRows,
        scan: &Scan,
        prefix: &[Datum],
        mut given: Option<&mut Given>,
        out: &mut Batch,
    ) -> Result<bool> {
        let shape = &scan.table.shape;
        loop {
            self.breathe().await?;
            match rows {
                TableRows::Table(walk) | TableRows::Both(walk, _) => {
                    let shown = walk.next_shown();
                    if let Some((key, value)) = walk.buffered() {
                        if !is_new(given.as_deref_mut(), key, shown)? {
                            continue;
                        }
                        append_walked(scan, (key, value, shown), prefix, out.begin())?;
                        break;
                    }
                    if !self.run.core.engine.take().fill(walk).await.map_err(from_engine)? {
                        let TableRows::Both(_, rest) = rows else { return Ok(false) };
                        *rows = TableRows::Keys(std::mem::take(rest));
                    }
                }
                TableRows::Index(walk) => {
                    if !self.run.core.engine.take().advance(walk).await.map_err(from_engine)? {
                        return Ok(false);
                    }
                    let ((key, value), shown) = (walk.current(), walk.shown());
                    if is_new(given.as_deref_mut(), key, shown)? {
                        append_walked(scan, (key, value, shown), prefix, out.begin())?;
                        break;
                    }
                }
                TableRows::Entries(walk) => {
                    if let Some(entry) = walk.buffered_entry() {
                        append_entry(scan, entry, prefix, out.begin())?;
                        break;
                    }
                    if !self.run.core.engine.take().fill_entries(walk).await.map_err(from_engine)? {
                        return Ok(false);
                    }
                }
                TableRows::Key(_) | TableRows::Keys(_) => {
                    let key = match rows {
                        TableRows::Key(key) => key.take(),
                        TableRows::Keys(keys) => keys.next(),
                        _ => None,
                    };
                    let Some(key) = key else { return Ok(false) };
                    let mut session = self.run.core.engine.take();
                    let found = session.find(shape, &self.run.view, &key).await.map_err(from_engine)?.is_some();
                    if session.found_shown() {
                        let walk = session.scan(shape, KeyRange::prefix(&key), Direction::Forward, &self.run.view);
                        rows.walk_first(walk);
                    } else if found {
                        append_row(scan, &key, session.found(), prefix, out.begin())?;
                        break;
                    }
                }
                TableRows::Ranges(_) | TableRows::Jumps(_) | TableRows::Sample(..) => return Ok(false),
                TableRows::Found(_) | TableRows::Apart(_) => return Ok(false),
            }
        }
        out.end();
        Ok(true)
    }
}

/// Keys that are to be looked up in the order of the scan, each once.
fn keys_in_order(scan: &Scan, mut keys: Vec<Vec<u8>>) -> TableRows {
    if keys.len() > 1 {
        keys.sort_unstable();
        keys.dedup();
    }
    if scan.order == Some(Direction::Backward) {
        keys.reverse();
    }
    TableRows::Keys(keys.into_iter())
}

/// What takes a column's value.
pub(super) type Put<'p> = &'p mut dyn FnMut(usize, ValueRef<'_>);

/// The slots of a new row of a scan, those of `prefix` filled.
#[inline]
pub(super) fn slots_of<'o>(scan: &Scan, prefix: &[Datum], out: &'o mut Batch) -> &'o mut [Datum] {
    let width = prefix.len() + scan.width();
    let slots = out.slots(width, std::ptr::from_ref(scan) as usize);
    slots[..prefix.len()].clone_from_slice(prefix);
    slots
}

/// Fills a table's slots with the columns that `read` gives.
#[inline]
pub(super) fn fill(
    scan: &Scan,
    slots: &mut [Datum],
    read: impl FnOnce(Put<'_>) -> std::result::Result<(), EngineError>,
) -> Result<()> {
    let mut damage = Ok(());
    let put = &mut |column: usize, value: ValueRef<'_>| match borrowed_datum(value, scan.table.types[column]) {
        Ok(value) => slots[scan.place(column)] = value,
        Err(e) => damage = Err(e),
    };
    read(put).map_err(from_engine)?;
    damage
}

impl TableRows {
    /// Puts a walk over a key at which there are two rows before the keys that are still to be looked up.
    fn walk_first(&mut self, walk: TableScan) {
        let rest = if let TableRows::Keys(keys) = self { std::mem::take(keys) } else { Vec::new().into_iter() };
        *self = TableRows::Both(Box::new(walk), rest);
    }
}

/// Whether a row has not been given, and it is now. No key begins with another one, so that one more byte tells the two rows at a key apart.
pub(super) fn is_new(given: Option<&mut Given>, key: &[u8], shown: Option<ShownEnd>) -> Result<bool> {
    let Some((given, held)) = given else { return Ok(true) };
    let mut row = key.to_vec();
    row.extend(shown.map(|_| 0));
    let is_new = given.insert(row);
    held.grow()?;
    Ok(is_new)
}

/// A row behind `prefix`, as far as the plan wants it; its key last (PLN-1).
fn row_of(scan: &Scan, key: &[u8], value: &[u8], prefix: &[Datum]) -> Result<Row> {
    let mut row = Vec::with_capacity(prefix.len() + scan.width());
    append_row(scan, key, value, prefix, &mut row)?;
    Ok(row)
}
