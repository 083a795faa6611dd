//! GROUP BY and aggregates: rows are assigned to groups by a hash of their keys, once for each grouping set.
//!
//! When the groups exceed their memory (`Cx::hash_bytes`), the groups in memory continue to take rows. Rows of other groups are put aside in files chosen by
//! their hash, and each file is grouped when the input has ended. Of a row in a file only the slots are there that the keys and the
//! aggregates name, unless groups keep their first row. The values that one aggregate with DISTINCT or ORDER BY collects for one group
//! are not divided among files.
//!
//! Where the rows come in the order of the keys (`Grouping::is_in_order`) a group is complete when a row of another one comes: no hash is
//! computed, and few groups are in memory at a time.
//!
//! A group's row has the slots of the group's first row and behind them the values of its aggregates, its keys (null for keys that are
//! not in its grouping set), and the number of its set from 1, if there are sets (PLN-8).

use super::chains::Chains;
use super::group_sink::Sink;
use super::group_slots::slots_aside;
use super::keys::{AHEAD, KeyTable, columns_of, hash_in, hash_of, look_ahead};
use super::measure::place;
use super::nodes::Rows;
use super::parts::{PARTS, parts_for};
use super::query::in_order;
use super::row_batch::{Batch, ROWS};
use super::sort::{sort_in_pieces, sort_keyed};
use super::spill::Spilled;
use super::{Cx, Row};
use clearway_base::breath;
use clearway_base::memory::Held;
use clearway_planner::explain::{Method, Step};
use clearway_planner::plan::{Grouping, Select};
use clearway_syntax::error::Result;
use clearway_values::expr::accumulate::Accumulator;
use clearway_values::expr::aggregate::{AggregateCall, Kind};
use clearway_values::expr::{Bound, BoundKind};
use clearway_values::types::Datum;

/// One group.
struct Group {
    /// The first row of the group; empty if no expression reads one.
    row: Row,
    key: Row,
    set: usize,
    running: Box<[Accumulator]>,
    /// Rows of aggregates that want an order: sort values, arguments. Empty if no aggregate wants one.
    ordered: Vec<Vec<(Row, Row)>>,
}

pub(super) struct Groups<'a> {
    pub(super) select: &'a Select,
    pub(super) grouping: &'a Grouping,
    pub(super) cx: Cx<'a>,
    groups: Vec<Group>,
    /// One for each grouping set.
    tables: Vec<KeyTable>,
    /// No expression over the rows can wait.
    prompt: bool,
    /// Nothing is asked of the rows but how many there are.
    counts_rows: bool,
    /// The columns that the keys are, if the keys are columns.
    columns: Option<Box<[usize]>>,
    wants_order: bool,
    /// The rows of a group come one after the other.
    streams: bool,
    /// The keys of the row at hand, and its arguments.
    key: Row,
    masked: Row,
    args: Row,
    /// How often the rows were divided before.
    level: u32,
    /// No room is left for new groups: the sets and the hashes of the row at hand whose groups are not here.
    full: bool,
    elsewhere: Vec<(usize, u64)>,
    /// Rows of groups that are not here, by their hash.
    parts: Vec<Spilled>,
    /// How many rows there are, if they come from a file, and how many were read.
    of_file: Option<(u64, u64)>,
    /// The slots of a row that are put there.
    slots: Box<[usize]>,
}

/// So many rows are taken between two breaths.
const BURST: usize = 16;
/// So many groups are complete before they are put out, where the rows of a group come one after the other.
const STREAMED: usize = 64;
/// Groups that are kept at least.
const GROUPS_MIN: usize = 64;
/// Rows are divided at most so often: what is left then has the same hash, or the sum of a group is too long.
const LEVELS_MAX: u32 = 8;

/// Puts the rows of the groups that HAVING keeps into a sink.
pub async fn groups(
    mut source: Rows,
    select: &Select,
    grouping: &Grouping,
    cx: Cx<'_>,
    held: &mut Held,
    sink: &mut Sink<'_, '_>,
) -> Result<()> {
    let mut all = Groups::new(select, grouping, cx, 0);
    let hash_bytes = cx.hash_bytes() as i64;
    // The first value in the order of a lone min or max is the answer.
    let comes_in_order = in_order(&select.source, cx);
    let first_wins = grouping.is_one_group() && comes_in_order;
    all.streams = grouping.is_in_order && comes_in_order;
    if !first_wins && let Some(rest) = all.take_apart((&source, &mut *held), hash_bytes).await? {
        source = rest;
    }
    let (mut batch, mut more) = (Batch::default(), true);
    let want = if first_wins { 1 } else { ROWS };
    while more {
        batch.clear();
        more = source.fill(cx, want, &mut batch).await?;
        if all.counts_rows {
            all.count_rows(&batch).await?;
            continue;
        }
        for at in 0..batch.len() {
            if at % BURST == 0 {
                cx.breathe_for(BURST.min(batch.len() - at)).await?;
            }
            if at % AHEAD == 0 {
                all.look_ahead((at..batch.len()).map(|at| batch.row(at)));
            }
            let row = batch.row(at);
            let filter = select.filter.as_ref();
            if !(if all.prompt { cx.holds_now(filter, row)? } else { cx.holds(filter, row).await? }) {
                cx.note_removed(filter, 1);
                continue;
            }
            match all.prompt {
                true => all.take(row, None)?,
                false => all.take_slowly(row, None).await?,
            }
            held.grow()?;
            if all.streams {
                if all.groups.len() > STREAMED {
                    all.put_complete(sink).await?;
                    held.measure();
                }
            } else if all.lacks_room(held, hash_bytes) {
                all.make_room(row).await?;
            }
            if first_wins && all.groups.first().is_some_and(|g| g.running.iter().all(Accumulator::has_value)) {
                return all.finished(sink).await;
            }
        }
    }
    all.rest(held, sink).await
}

/// The groups of rows that were put aside; gives those that were put aside again.
async fn part_groups(
    mut part: Spilled,
    (select, grouping, level): (&Select, &Grouping, u32),
    cx: Cx<'_>,
    held: &mut Held,
    sink: &mut Sink<'_, '_>,
) -> Result<Vec<Spilled>> {
    let mut all = Groups::new(select, grouping, cx, level);
    let (hash_bytes, count, mut read) = (cx.hash_bytes(), part.rows(), 0);
    let end = part.end();
    let mut rows = part.reader(0..end, hash_bytes / PARTS).await?;
    let slots = slots_aside(select, grouping);
    let mut row = vec![Datum::Null; slots.last().map_or(0, |last| last + 1).max(select.width)];
    let mut values = Row::new();
    while rows.append_next(&mut values).await? {
        cx.breathe().await?;
        (read, all.of_file) = (read + 1, Some((count, read + 1)));
        let set = values.pop().and_then(|set| set.as_i64()).unwrap_or(0) as usize;
        assert_eq!(values.len(), slots.len(), "a row in a file of groups has the slots that were put aside");
        slots.iter().zip(values.drain(..)).for_each(|(slot, value)| row[*slot] = value);
        if all.prompt {
            all.take(&row, Some(set))?;
        } else {
            all.take_slowly(&row, Some(set)).await?;
        }
        held.grow()?;
        if all.lacks_room(held, hash_bytes as i64) {
            all.make_room(&row).await?;
        }
    }
    let parts = std::mem::take(&mut all.parts);
    all.finished(sink).await?;
    sink.take_over(held);
    Ok(parts)
}

impl<'a> Groups<'a> {
    pub(super) fn new(select: &'a Select, grouping: &'a Grouping, cx: Cx<'a>, level: u32) -> Self {
        let exprs =
            grouping.keys.iter().chain(grouping.calls.iter().flat_map(AggregateCall::exprs)).chain(&select.filter);
        let prompt = !exprs.into_iter().any(Bound::may_wait);
        let wants_order = grouping.calls.iter().any(|c| !c.order_by.is_empty());
        let tables = grouping.sets.as_ref().map_or(1, Vec::len);
        Self {
            select,
            grouping,
            cx,
            groups: Vec::new(),
            tables: (0..tables).map(|_| KeyTable::default()).collect(),
            prompt,
            counts_rows: select.filter.is_none() && grouping.is_one_group() && grouping.calls.iter().all(is_row_count),
            columns: columns_of(&grouping.keys).filter(|_| grouping.sets.is_none()),
            wants_order,
            streams: false,
            key: Row::new(),
            masked: Row::new(),
            args: Row::new(),
            level,
            full: false,
            elsewhere: Vec::new(),
            parts: Vec::new(),
            of_file: None,
            slots: Box::default(),
        }
    }

    /// Whether there is no room for more groups.
    #[inline]
    pub(super) fn lacks_room(&self, held: &Held, hash_bytes: i64) -> bool {
        self.full || self.groups.len() >= GROUPS_MIN && self.level < LEVELS_MAX && held.exceeds(hash_bytes)
    }

    /// Where there is no room for more groups: puts the row at hand aside if its group is not here.
    async fn make_room(&mut self, row: &[Datum]) -> Result<()> {
        if !self.full {
            for _ in 0..self.of_file.map_or(PARTS, |(rows, read)| parts_for(rows, read)) {
                self.parts.push(Spilled::create_among(self.cx.temp_files(), PARTS, self.cx.hash_bytes()).await?);
            }
            self.slots = slots_aside(self.select, self.grouping);
            self.full = true;
        }
        for (set, hash) in self.elsewhere.drain(..) {
            let part = (hash >> (28 - 4 * self.level.min(7))) as usize % self.parts.len();
            self.parts[part].append_slots(row, &self.slots, &Datum::Int4(set as i32)).await?;
        }
        Ok(())
    }

    /// Reads what will be read of the groups of these rows.
    fn look_ahead<'r>(&self, rows: impl Iterator<Item = &'r [Datum]>) {
        let Some(columns) = self.columns.as_ref().filter(|_| !self.streams) else { return };
        let group = |n: usize| self.groups[n].key.len();
        let values = |n: usize| {
            let Group { key, running, .. } = &self.groups[n];
            usize::from(key[0].is_null()) + running.first().map_or(0, |running| usize::from(running.has_value()))
        };
        look_ahead(&self.tables[0], columns, rows, &[&group, &values]);
    }

    /// Takes a row, for one grouping set or for all; nothing about it can wait.
    pub(super) fn take(&mut self, row: &[Datum], only: Option<usize>) -> Result<()> {
        let columns = self.columns.as_deref().and_then(|columns| hash_in(row, columns));
        if columns.is_none() {
            self.key.clear();
            for e in &self.grouping.keys {
                self.key.push(self.cx.value_now(e, row)?);
            }
        }
        for set in only.map_or(0..self.tables.len(), |set| set..set + 1) {
            let at = match columns {
                Some(hash) => self.place_by_columns(hash, row),
                None => self.place(set, row),
            };
            let Some(at) = at else { continue };
            for (i, call) in self.grouping.calls.iter().enumerate() {
                if call.filter.is_some() && !self.cx.holds_now(call.filter.as_ref(), row)? {
                    continue;
                }
                let args = match call.args.as_slice() {
                    [Bound { kind: BoundKind::Column { index, level: 0 }, .. }] if *index < row.len() => {
                        std::slice::from_ref(&row[*index])
                    }
                    all => {
                        self.args.clear();
                        for e in all {
                            self.args.push(self.cx.value_now(e, row)?);
                        }
                        &self.args[..]
                    }
                };
                let group = &mut self.groups[at];
                if call.order_by.is_empty() {
                    group.running[i].add(args, &super::host::CxHost { cx: self.cx })?;
                } else {
                    let mut order = Row::with_capacity(call.order_by.len());
                    for (e, _, _) in &call.order_by {
                        order.push(self.cx.value_now(e, row)?);
                    }
                    group.ordered[i].push((order, args.to_vec()));
                }
            }
        }
        Ok(())
    }

    /// Takes the rows of a batch, of which nothing is asked but how many there are.
    async fn count_rows(&mut self, batch: &Batch) -> Result<()> {
        self.cx.breathe_for(batch.len()).await?;
        if self.groups.is_empty() && batch.len() > 0 {
            self.groups.push(new_group(batch.row(0), Row::new(), 0, self.grouping, self.wants_order));
        }
        let running = self.groups.iter_mut().flat_map(|group| &mut group.running);
        running.for_each(|running| running.count_rows(batch.len()));
        Ok(())
    }

    /// Takes a row; its expressions may wait.
    async fn take_slowly(&mut self, row: &[Datum], only: Option<usize>) -> Result<()> {
        let cx = self.cx;
        self.key = cx.values(&self.grouping.keys, row, &[]).await?;
        let mut arguments = Vec::with_capacity(self.grouping.calls.len());
        for call in &self.grouping.calls {
            if !cx.holds(call.filter.as_ref(), row).await? {
                arguments.push(None);
                continue;
            }
            let args = cx.values(&call.args, row, &[]).await?;
            let mut order = Row::new();
            for (e, _, _) in &call.order_by {
                order.push(cx.value(e, row).await?);
            }
            arguments.push(Some((order, args)));
        }
        for set in only.map_or(0..self.tables.len(), |set| set..set + 1) {
            let Some(at) = self.place(set, row) else { continue };
            let group = &mut self.groups[at];
            for (i, taken) in arguments.iter().enumerate() {
                let Some((order, args)) = taken else { continue };
                if self.grouping.calls[i].order_by.is_empty() {
                    group.running[i].add(args, &super::host::CxHost { cx })?;
                } else {
                    group.ordered[i].push((order.clone(), args.clone()));
                }
            }
        }
        Ok(())
    }

    /// As [`Self::place`], where the keys are columns: they are copied for a new group only.
    fn place_by_columns(&mut self, hash: u64, row: &[Datum]) -> Option<usize> {
        let columns = self.columns.as_deref().unwrap_or_default();
        let is_key = |group: &Group| columns.iter().zip(&group.key).all(|(column, value)| row[*column] == *value);
        let found = match self.streams {
            true => self.groups.last().filter(|last| is_key(last)).map(|_| self.groups.len() - 1),
            false => self.tables[0].find(hash, |n| is_key(&self.groups[n])),
        };
        if found.is_some() {
            return found;
        }
        let at = self.groups.len();
        if !self.streams {
            if self.full {
                self.elsewhere.push((0, hash));
                return None;
            }
            let groups = &self.groups;
            self.tables[0].add(hash, at, |n| hash_of(&groups[n].key));
        }
        let key = columns.iter().map(|column| row[*column].clone()).collect();
        self.groups.push(new_group(row, key, 0, self.grouping, self.wants_order));
        Some(at)
    }

    /// The group of the row at hand in a grouping set; none: it is not here, and there is no room for it.
    fn place(&mut self, set: usize, row: &[Datum]) -> Option<usize> {
        let key = match &self.grouping.sets {
            None => &self.key,
            Some(sets) => {
                self.masked.clear();
                let kept = |i: usize| if sets[set].contains(&i) { self.key[i].clone() } else { Datum::Null };
                self.masked.extend((0..self.key.len()).map(kept));
                &self.masked
            }
        };
        if key.is_empty() && self.tables.len() == 1 {
            if self.groups.is_empty() {
                self.groups.push(new_group(row, Row::new(), set, self.grouping, self.wants_order));
            }
            return Some(0);
        }
        if self.streams {
            if self.groups.last().is_none_or(|last| last.key != *key) {
                self.groups.push(new_group(row, key.clone(), set, self.grouping, self.wants_order));
            }
            return Some(self.groups.len() - 1);
        }
        let hash = hash_of(key);
        let groups = &self.groups;
        let found = self.tables[set].find(hash, |n| groups[n].key == *key);
        if found.is_some() {
            return found;
        }
        if self.full {
            self.elsewhere.push((set, hash));
            return None;
        }
        let at = self.groups.len();
        self.tables[set].add(hash, at, |n| hash_of(&groups[n].key));
        let group = new_group(row, key.clone(), set, self.grouping, self.wants_order);
        self.groups.push(group);
        Some(at)
    }

    /// How many groups there are.
    pub(super) fn count(&self) -> usize {
        self.groups.len()
    }

    /// Takes the groups of rows that come behind those taken so far.
    pub(super) fn absorb(&mut self, part: Groups<'_>) -> Result<()> {
        let host = super::host::CxHost { cx: self.cx };
        for group in part.groups {
            breath::step(breath::ROW)?;
            let one = group.key.is_empty() && self.tables.len() == 1;
            let hash = if one { 0 } else { hash_of(&group.key) };
            let groups = &self.groups;
            let found = match one {
                true => (!groups.is_empty()).then_some(0),
                false => self.tables[group.set].find(hash, |n| groups[n].key == group.key),
            };
            if let Some(found) = found {
                for (running, later) in self.groups[found].running.iter_mut().zip(&group.running) {
                    running.join(later, &host)?;
                }
                continue;
            }
            if !one {
                self.tables[group.set].add(hash, self.groups.len(), |n| hash_of(&groups[n].key));
            }
            self.groups.push(group);
        }
        Ok(())
    }

    /// Puts out all groups, and then those of the rows that were put aside, file by file.
    async fn rest(mut self, held: &mut Held, sink: &mut Sink<'_, '_>) -> Result<()> {
        let (select, grouping, cx) = (self.select, self.grouping, self.cx);
        let (mut parts, mut level) = (std::mem::take(&mut self.parts), 1);
        let (bytes, is_hashed) = (held.bytes().max(0) as u64, !self.streams && !grouping.is_one_group());
        let (mut batches, mut disk_bytes) = (1, 0);
        self.finished(sink).await?;
        sink.take_over(held);
        let mut left: Vec<(Spilled, u32)> = Vec::new();
        loop {
            for mut part in parts.drain(..).filter(|part| part.rows() > 0) {
                part.end_writing().await?;
                (batches, disk_bytes) = (batches + 1, disk_bytes + part.end());
                left.push((part, level));
            }
            held.measure();
            let Some((part, at)) = left.pop() else { break };
            (parts, level) = (part_groups(part, (select, grouping, at), cx, held, sink).await?, at + 1);
        }
        if is_hashed {
            cx.note_method(place(select, Step::Groups), || Method::Groups { batches, bytes, disk_bytes });
        }
        Ok(())
    }

    /// Puts out the row of each group that HAVING keeps.
    async fn finished(mut self, sink: &mut Sink<'_, '_>) -> Result<()> {
        if self.level == 0 {
            self.add_empty_groups();
        }
        self.order_sets().await?;
        let groups = std::mem::take(&mut self.groups);
        self.put_out(groups, sink).await
    }

    /// Puts out all groups but the last, whose rows may not all have come.
    async fn put_complete(&mut self, sink: &mut Sink<'_, '_>) -> Result<()> {
        let last = self.groups.pop();
        let complete = std::mem::take(&mut self.groups);
        self.groups.extend(last);
        self.put_out(complete, sink).await
    }

    async fn put_out(&self, groups: Vec<Group>, sink: &mut Sink<'_, '_>) -> Result<()> {
        let (select, grouping, cx) = (self.select, self.grouping, self.cx);
        for mut group in groups {
            cx.breathe().await?;
            for (i, list) in std::mem::take(&mut group.ordered).into_iter().enumerate() {
                let by: Vec<(bool, bool)> = grouping.calls[i].order_by.iter().map(|o| (o.1, o.2)).collect();
                let list = sort_keyed(list, &by).await?;
                let host = super::host::CxHost { cx };
                for (_, args) in list {
                    breath::step(breath::ROW)?;
                    group.running[i].add(&args, &host)?;
                }
            }
            let row = self.row_of(group).await?;
            if let Some(having) = &grouping.having
                && cx.value_with(having, &row, &row[select.width..]).await?.as_bool() != Some(true)
            {
                cx.note_removed(Some(having), 1);
                continue;
            }
            sink.put(row, cx).await?;
        }
        Ok(())
    }

    /// A set without keys has one group, though no row came.
    fn add_empty_groups(&mut self) {
        let width = self.select.width;
        let keys = self.grouping.keys.len();
        let lacks = |set: usize| self.groups.iter().all(|g| g.set != set);
        let empty: Vec<usize> = match &self.grouping.sets {
            None if keys == 0 && self.groups.is_empty() => vec![0],
            None => Vec::new(),
            Some(sets) => (0..sets.len()).filter(|s| sets[*s].is_empty() && lacks(*s)).collect(),
        };
        for set in empty {
            let (row, key) = (vec![Datum::Null; width], vec![Datum::Null; keys]);
            self.groups.push(new_group(&row, key, set, self.grouping, self.wants_order));
        }
    }

    /// Groups of several sets in the order that they have in PostgreSQL where it sorts: sets that contain each other form a chain, and in a
    /// chain a total follows what it is the total of.
    async fn order_sets(&mut self) -> Result<()> {
        let Some(sets) = self.grouping.sets.as_ref().filter(|s| s.len() > 1) else { return Ok(()) };
        let chains = Chains::of(sets);
        let of = |place: &u32| &self.groups[*place as usize];
        // Numbers are sorted, and the groups are moved to their places afterwards: keys beside groups that fill their memory would take as much again.
        let order = |a: &u32, b: &u32| chains.order(sets, (of(a).set, &of(a).key), (of(b).set, &of(b).key));
        assert!(u32::try_from(self.groups.len()).is_ok(), "{} groups in memory", self.groups.len());
        let mut places = sort_in_pieces((0..self.groups.len() as u32).collect(), order).await?;
        for at in 0..places.len() {
            breath::step(16)?;
            // What has stood at a place that is done has gone where that place's group came from.
            let mut from = places[at] as usize;
            while from < at {
                from = places[from] as usize;
            }
            places[at] = from as u32;
            self.groups.swap(at, from);
        }
        Ok(())
    }

    /// The row of a group: slots, aggregates, keys, the number of its set.
    async fn row_of(&self, group: Group) -> Result<Row> {
        let (grouping, width) = (self.grouping, self.select.width);
        let mut row = group.row;
        row.resize(width, Datum::Null);
        if let Some(sets) = &grouping.sets {
            for (i, key) in grouping.keys.iter().enumerate() {
                if let BoundKind::Column { index, level: 0 } = key.kind
                    && !sets[group.set].contains(&i)
                {
                    row[index] = Datum::Null;
                }
            }
        }
        row.reserve_exact(grouping.values());
        for (call, running) in grouping.calls.iter().zip(&group.running) {
            let value = if call.direct.is_empty() {
                running.finish(&[])?
            } else {
                let direct = self.cx.values(&call.direct, &row[..width], &[]).await?;
                running.finish(&direct)?
            };
            row.push(value);
        }
        row.extend(group.key);
        row.resize(width + grouping.calls.len() + grouping.keys.len(), Datum::Null);
        if grouping.sets.is_some() {
            row.push(Datum::Int4(group.set as i32 + 1));
        }
        Ok(row)
    }
}

fn is_row_count(call: &AggregateCall) -> bool {
    matches!(call.kind, Kind::CountStar) && call.filter.is_none() && call.order_by.is_empty()
}

fn new_group(row: &[Datum], key: Row, set: usize, grouping: &Grouping, wants_order: bool) -> Group {
    let calls = &grouping.calls;
    let running = calls.iter().map(Accumulator::new).collect();
    let ordered = if wants_order { calls.iter().map(|_| Vec::new()).collect() } else { Vec::new() };
    let row = if grouping.keeps_row { row.to_vec() } else { Row::new() };
    Group { row, key, set, running, ordered }
}
