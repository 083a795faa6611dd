//! Estimates how many rows there are, and which share of them meets a condition.
//!
//! The unit of cost is the cost of reading one row when rows are read in the order of their table's key. What steps cost, and which ways are not
//! wanted, say the settings of the session ([`Steering`]).

use super::facts::{ColumnTest, Fact, fact_of, is_beginning, prefix};
use super::indexes::{condition_of, is_unique_of_all};
use super::plan::{Access, KeyValues, Range, RangePart, Scan, TableSlot, split};
use super::row_ends::RowTest;
use super::select::constant;
use super::tested::{Finder, fails};
use super::tids;
use clearway_context::convert::to_value;
use clearway_context::steering::{Costs, Steering, Way};
use clearway_context::types::NoSession;
use clearway_engine::codec::key::{KeyColumn, encode_value};
use clearway_engine::table::sample::{ColumnStatistics, Spread};
use clearway_engine::table::shape::{IndexShape, TableShape};
use clearway_engine::table::statistics::Statistics;
use clearway_engine::value::Value;
use clearway_values::expr::bound::{Bound, BoundKind};
use clearway_values::expr::operators::Op;
use clearway_values::expr::{Env, nearest};
use clearway_values::types::Datum;
use std::borrow::Cow;
use std::sync::Arc;

/// Rows that an index finds above which another index may be asked, too.
pub const SIFTED_LEAST: f64 = 300.0;
/// Reading a row that a condition on its stored form turns away (GAT-1), as a share of reading one: no value is made of it.
pub const AWAY: f64 = 0.35;
/// Rows of a table of which nothing is known.
const ROWS_UNKNOWN: f64 = 10_000.0;
/// A table below this is read by whatever way fits its conditions.
const SMALL: f64 = 50.0;
/// The share of rows that meets `column = value`, where nothing is known.
const EQUAL: f64 = 0.005;
/// The same of a comparison by order, and of two.
const BELOW: f64 = 0.2;
const WITHIN: f64 = 0.01;
/// The least share that a range is taken for.
const LEAST: f64 = 1e-6;
/// The same of a pattern that begins with text.
const BEGINS: f64 = 0.005;
/// Of the rows whose text begins as a pattern does, the share that fits the rest of it.
const FITS: f64 = 0.25;
/// Values of an array that is not known yet, and rows of a query.
const ARRAY_VALUES: f64 = 10.0;
const QUERY_VALUES: f64 = 30.0;
/// Bytes of a value of any length.
const WIDTH_UNKNOWN: f64 = 16.0;

/// How many of its rows will be read of a query that is not read to its end.
#[derive(Clone, Copy, Debug)]
pub enum Few {
    /// So many.
    Rows(f64),
    /// This share of them.
    Share(f64),
}

impl Few {
    /// The share of so many rows.
    pub fn part_of(self, rows: f64) -> f64 {
        match self {
            Few::Rows(few) => (few / rows).min(1.0),
            Few::Share(share) => share,
        }
    }
}

/// What is known of tables.
#[derive(Clone, Copy)]
pub struct Figures<'a> {
    /// The database's statistics.
    pub statistics: &'a Statistics,
    /// What the settings ask for.
    pub steering: &'a Steering,
}

impl<'a> Figures<'a> {
    /// With the defaults of all settings.
    pub fn of(statistics: &'a Statistics) -> Figures<'a> {
        Figures { statistics, steering: &Steering::DEFAULT }
    }

    /// What steps cost.
    pub fn costs(&self) -> &'a Costs {
        &self.steering.costs
    }

    /// What a way costs beside its work, which is something where it is not wanted.
    pub fn disable_cost(&self, way: Way) -> f64 {
        self.steering.disable_cost(way)
    }

    /// The same of a way of access.
    pub fn disable_cost_of(&self, access: &Access) -> f64 {
        match access {
            Access::Full => self.disable_cost(Way::SeqScan),
            Access::Tids(_) => self.disable_cost(Way::TidScan),
            Access::Keys(_) | Access::KeyRange(_) | Access::Index(..) => self.disable_cost(Way::IndexScan),
            Access::Ranges(ranges) if ranges.beside.is_some() || ranges.parts.len() > 1 => {
                self.disable_cost_of_several()
            }
            Access::Ranges(_) => self.disable_cost(Way::IndexScan),
        }
    }

    /// The same of several ranges, and of two indexes together.
    pub fn disable_cost_of_several(&self) -> f64 {
        self.disable_cost(Way::IndexScan).max(self.disable_cost(Way::BitmapScan))
    }

    /// What the work of sorting so many rows costs.
    pub fn sorting(&self, rows: f64) -> f64 {
        rows * (rows + 2.0).log2() * self.costs().sort
    }

    /// Rows of a table.
    pub fn rows(&self, table: &TableSlot) -> f64 {
        self.statistics.of(table.shape.oid).map_or(ROWS_UNKNOWN, |s| (s.rows as f64).max(1.0))
    }

    /// The cost of reading one row that an index leads to. It is lower the more closely the order of the index's first column follows the order
    /// of the rows: between the two costs the square of the correlation decides, as in PostgreSQL's `cost_index`.
    pub fn index_row(&self, table: &TableSlot, place: usize) -> f64 {
        let first = table.shape.indexes[place].columns.first();
        let known = first.and_then(|column| self.column(table, *column)?.get().correlation);
        let Costs { index_row, index_row_near, .. } = *self.costs();
        index_row - (index_row - index_row_near) * known.map_or(0.0, |c| c * c)
    }

    /// Whether its rows have been counted.
    pub fn is_known(&self, table: &TableSlot) -> bool {
        self.statistics.of(table.shape.oid).is_some()
    }

    /// Rows below which no way of access is refused for its cost.
    pub fn small(&self) -> f64 {
        SMALL
    }

    /// What is known of a column.
    fn column(&self, table: &TableSlot, column: usize) -> Option<Column> {
        let spread = self.statistics.spread(table.shape.oid)?;
        let form = KeyColumn::ascending(spread.at(&table.shape, column)?.storage);
        Some(Column { spread, shape: table.shape.clone(), at: column, form })
    }

    /// Different values of a column; none: not known.
    pub fn distinct(&self, table: &TableSlot, column: usize) -> Option<f64> {
        let alone = |columns: &[usize]| columns == [column];
        if table.shape.indexes.iter().any(|i| is_unique_of_all(i) && alone(&i.columns)) || alone(&table.shape.key) {
            return Some(self.rows(table));
        }
        let known = self.column(table, column)?;
        let n = known.get().distinct;
        Some(if n < 0.0 { -n * self.rows(table) } else { n.max(1.0) })
    }

    /// Bytes of a column's values, on the average.
    pub fn width(&self, table: &TableSlot, column: usize) -> f64 {
        let storage = |c: usize| table.shape.columns.get(c).map(|c| c.storage.fixed_width());
        match (storage(column), self.column(table, column)) {
            (Some(Some(fixed)), _) => fixed as f64,
            (_, Some(known)) => f64::from(known.get().width).max(1.0),
            _ => WIDTH_UNKNOWN,
        }
    }

    /// The share of rows with a value in a column, which may be known.
    pub fn equal(&self, table: &TableSlot, column: usize, value: Option<&Bound>) -> f64 {
        let Some(distinct) = self.distinct(table, column) else { return EQUAL };
        let Some(known) = self.column(table, column) else { return 1.0 / distinct.max(1.0) };
        let present = 1.0 - known.get().null_fraction;
        let Some(value) = value.and_then(known_value) else { return present / distinct.max(1.0) };
        known.equal(&to_value(&value), distinct)
    }

    /// The share of rows with NULL in a column.
    pub fn null(&self, table: &TableSlot, column: usize) -> f64 {
        match self.column(table, column) {
            _ if table.shape.columns.get(column).is_some_and(|c| c.not_null) => 0.0,
            Some(known) => known.get().null_fraction,
            None => EQUAL,
        }
    }

    /// The share of rows between two values.
    pub fn between(&self, table: &TableSlot, column: usize, low: Option<&Bound>, high: Option<&Bound>) -> f64 {
        let unknown = if low.is_some() && high.is_some() { WITHIN } else { BELOW };
        let Some(known) = self.column(table, column) else { return unknown };
        let value = |e: Option<&Bound>| match e {
            None => Some(None),
            Some(e) => known_value(e).map(|v| Some(to_value(&v))),
        };
        let (Some(low), Some(high)) = (value(low), value(high)) else { return unknown };
        known.between(low.as_ref(), high.as_ref()).unwrap_or(unknown)
    }

    /// The share of rows whose columns lie between values, the first of them deciding; an empty list is an open end.
    pub fn between_rows(&self, table: &TableSlot, columns: &[usize], low: &[Bound], high: &[Bound]) -> f64 {
        let Some((column, behind)) = columns.split_first() else { return 1.0 };
        match (low.split_first(), high.split_first()) {
            (Some((l, low)), Some((h, high))) if super::walk::same(l, h) => {
                self.equal(table, *column, Some(l)) * self.between_rows(table, behind, low, high)
            }
            (None, None) => 1.0,
            _ => self.between(table, *column, low.first(), high.first()),
        }
    }

    /// The share of rows whose text begins as everything does that fits a pattern.
    pub fn begins(&self, table: &TableSlot, column: usize, op: Op, pattern: &Bound) -> f64 {
        let text = constant(pattern).and_then(|value| value.as_str()).map(|pattern| prefix(op, pattern));
        let (Some(text), Some(known)) = (text.filter(|text| !text.is_empty()), self.column(table, column)) else {
            return BEGINS;
        };
        let behind: String = text.chars().chain([char::MAX]).collect();
        let bytes = |text: &str| Value::Bytes(text.as_bytes().into());
        known.between(Some(&bytes(&text)), Some(&bytes(&behind))).unwrap_or(BEGINS)
    }

    /// What reading a whole table costs, where each of its rows is judged on values.
    pub fn all(&self, table: &TableSlot) -> f64 {
        self.rows(table) * self.costs().row + self.disable_cost(Way::SeqScan)
    }

    /// What reading a whole table costs under conditions, some of which may be judged on stored rows (GAT-1, GAT-2).
    pub fn whole<'b>(&self, table: &TableSlot, conditions: impl IntoIterator<Item = &'b Bound>) -> f64 {
        let rows = self.rows(table);
        if rows <= SMALL {
            return self.all(table);
        }
        let finder = Finder::of_table(table);
        let mut tested = Vec::new();
        for e in conditions {
            if finder.test(e).is_some() {
                tested.push(e);
            } else if e.any(&fails) {
                break;
            }
        }
        if tested.is_empty() {
            return self.all(table);
        }
        let judged = AWAY + (1.0 - AWAY) * self.share_of_all(table, tested);
        rows * self.costs().row * judged + self.disable_cost(Way::SeqScan)
    }

    /// Rows that the access of a scan finds, and the cost of reading them.
    pub fn read(&self, scan: &Scan) -> (f64, f64) {
        match &scan.access {
            Access::Full => {
                let conditions: Vec<Bound> = scan.filter.iter().cloned().flat_map(split).collect();
                (self.rows(&scan.table), self.whole(&scan.table, &conditions))
            }
            access => self.found(&scan.table, access),
        }
    }

    /// Rows that a way of access finds, and its cost where they are all judged on values.
    pub fn found(&self, table: &TableSlot, access: &Access) -> (f64, f64) {
        let (found, work) = self.work(table, access);
        (found, work + self.disable_cost_of(access))
    }

    fn work(&self, table: &TableSlot, access: &Access) -> (f64, f64) {
        let rows = self.rows(table);
        let Costs { row, probe, .. } = *self.costs();
        let range = |r: &Range, columns: &[usize], each: f64| {
            let equal: f64 = r.equal.iter().zip(columns).map(|(e, c)| self.equal(table, *c, Some(e))).product();
            let bounded = columns.get(r.equal.len()).filter(|_| r.low.is_some() || r.high.is_some());
            let between =
                |c: &usize| self.between(table, *c, r.low.as_ref().map(|l| &l.0), r.high.as_ref().map(|h| &h.0));
            let found = (rows * equal * bounded.map_or(1.0, between)).max(1.0);
            (found, probe + found * each)
        };
        match access {
            Access::Full => (rows, rows * row),
            Access::Keys(keys) => (keys.len() as f64, probe * keys.len() as f64),
            Access::Tids(tids) => (self.values(tids), probe * self.values(tids)),
            Access::KeyRange(r) => range(r, &table.shape.key, row),
            Access::Index(place, r) => {
                let index = &table.shape.indexes[*place];
                let each = self.index_row(table, *place);
                let (mut found, cost) = range(r, &index.columns, each);
                found = (found * self.part(table, index)).max(1.0);
                if index.unique && r.equal.len() == index.columns.len() {
                    found = 1.0;
                }
                (found, cost.min(probe + found * each))
            }
            Access::Ranges(ranges) => {
                let finding: f64 = ranges.parts.iter().map(|part| self.finding(part)).sum();
                let share = ranges.guarantees.iter().cloned().flat_map(split).map(|e| self.share(table, &e));
                let found = (rows * share.product::<f64>()).max(1.0);
                let each = |part: &RangePart| part.index.map_or(row, |place| self.index_row(table, place));
                let most = ranges.parts.iter().map(each).fold(0.0, f64::max);
                if let Some(beside) = &ranges.beside {
                    let left = (found * beside.share).max(1.0);
                    return (left, finding + beside.cost + left * most);
                }
                (found, finding + found * most)
            }
        }
    }

    /// What it costs to find where the ranges of a part begin.
    fn finding(&self, part: &RangePart) -> f64 {
        let (mut ranges, mut jumps) = (1.0f64, 0.0);
        for values in &part.columns {
            ranges *= self.values(values).max(1.0);
            if let KeyValues::Each(_) = values {
                jumps += ranges;
            }
        }
        ranges * self.costs().probe + jumps * self.costs().jump
    }

    /// The share of a table's rows that an index has.
    pub fn part(&self, table: &TableSlot, index: &IndexShape) -> f64 {
        let list = if index.is_plain() { None } else { condition_of(table, index) };
        list.map_or(1.0, |list| list.iter().map(|e| self.share(table, e)).product::<f64>().max(LEAST))
    }

    /// How many values are listed.
    pub fn values(&self, values: &KeyValues) -> f64 {
        match values {
            KeyValues::One(_) | KeyValues::Null => 1.0,
            KeyValues::Each(values) => values.expected,
            KeyValues::List(list) => list.len() as f64,
            KeyValues::Array(e) => match &e.kind {
                BoundKind::Array(list) => list.len() as f64,
                BoundKind::Const(clearway_values::types::Datum::Array(a)) => a.values.len() as f64,
                BoundKind::Subquery { .. } => QUERY_VALUES,
                _ => ARRAY_VALUES,
            },
        }
    }

    /// The share of a table's rows that meets a condition.
    pub fn share(&self, table: &TableSlot, e: &Bound) -> f64 {
        if let Some(fact) = fact_of(table, e, 0) {
            return self.share_of(table, &fact);
        }
        if let Some(tids) = tids::of_condition(table, e) {
            return (self.values(&tids) / self.rows(table)).min(1.0);
        }
        match &e.kind {
            BoundKind::And(list) => self.share_of_all(table, list),
            BoundKind::Or(list) => 1.0 - list.iter().map(|e| 1.0 - self.share(table, e)).product::<f64>(),
            BoundKind::Not(arg) => 1.0 - self.share(table, arg),
            BoundKind::IsNull { negated: true, .. } => 1.0 - EQUAL,
            BoundKind::Binary { op: Op::Ne | Op::NotLike | Op::NotMatch, .. } => 1.0 - EQUAL,
            BoundKind::Binary { op: Op::Eq, .. } => EQUAL,
            _ => 1.0 / 3.0,
        }
    }

    /// The share of rows that meets all of these conditions. The bounds of one column say together how much of it is left.
    pub fn share_of_all<'b>(&self, table: &TableSlot, conditions: impl IntoIterator<Item = &'b Bound>) -> f64 {
        let mut bounds: Vec<(usize, [Option<Cow<'b, Bound>>; 2])> = Vec::new();
        let (mut share, mut rows) = (1.0, Vec::new());
        for e in conditions {
            let fact = fact_of(table, e, 0).filter(|f| !matches!(f.test, ColumnTest::Compared(Op::Eq, _)));
            let (column, op, value) = match fact {
                Some(Fact { column, test: ColumnTest::Compared(op, value), .. }) => (column, op, value),
                Some(Fact { test: ColumnTest::Row(test), .. }) => {
                    rows.push(test);
                    continue;
                }
                _ => {
                    share *= self.share(table, e);
                    continue;
                }
            };
            let place = bounds.iter().position(|b| b.0 == column).unwrap_or_else(|| {
                bounds.push((column, [None, None]));
                bounds.len() - 1
            });
            bounds[place].1[usize::from(matches!(op, Op::Lt | Op::Le))].get_or_insert(value);
        }
        let between = |(column, [low, high]): &(usize, [Option<Cow<'b, Bound>>; 2])| {
            self.between(table, *column, low.as_deref(), high.as_deref())
        };
        share * bounds.iter().map(between).product::<f64>() * self.share_of_rows(table, &rows)
    }

    /// The share of rows between ends by several columns; the first of them decide.
    fn share_of_rows(&self, table: &TableSlot, tests: &[RowTest<'_>]) -> f64 {
        let Some(first) = tests.first() else { return 1.0 };
        let columns: Vec<usize> = first.columns.iter().map(|c| c.0).collect();
        let of_same = |low: bool| {
            tests
                .iter()
                .find(|t| t.is_low == low && t.columns[0].0 == columns[0])
                .map_or_else(Vec::new, RowTest::values)
        };
        self.between_rows(table, &columns, &of_same(true), &of_same(false))
    }

    fn share_of(&self, table: &TableSlot, fact: &Fact<'_>) -> f64 {
        let column = fact.column;
        let among = |n: f64| (n * self.equal(table, column, None)).min(1.0);
        match &fact.test {
            ColumnTest::Compared(Op::Eq, value) => self.equal(table, column, Some(value)),
            ColumnTest::Compared(Op::Lt | Op::Le, value) => self.between(table, column, None, Some(value)),
            ColumnTest::Compared(_, value) => self.between(table, column, Some(value), None),
            ColumnTest::Among(list) => among(list.len() as f64),
            ColumnTest::InArray(e) => among(self.values(&KeyValues::Array((*e).clone()))),
            ColumnTest::InRows(_) => among(QUERY_VALUES),
            ColumnTest::Null => self.null(table, column),
            ColumnTest::Begins(op, pattern) if is_beginning(*op, pattern) => self.begins(table, column, *op, pattern),
            ColumnTest::Begins(op, pattern) => self.begins(table, column, *op, pattern) * FITS,
            ColumnTest::Row(test) => self.share_of_rows(table, std::slice::from_ref(test)),
        }
    }
}

/// The value of an expression that has the same value in every execution.
fn known_value(e: &Bound) -> Option<Cow<'_, Datum>> {
    match nearest::of(e) {
        None => constant(e).map(Cow::Borrowed),
        Some((nearest, of)) => {
            let env = Env { row: &[], outer: &[], params: &[], aggregates: &[], session: &NoSession };
            match constant(of)? {
                Datum::Null => None,
                value => nearest(std::slice::from_ref(value), &env).ok().map(Cow::Owned),
            }
        }
    }
}

/// What is known of one column.
struct Column {
    spread: Arc<Spread>,
    shape: Arc<TableShape>,
    at: usize,
    form: KeyColumn,
}

impl Column {
    fn get(&self) -> &ColumnStatistics {
        self.spread.at(&self.shape, self.at).expect("Figures::column found it")
    }

    /// The bytes by which a value is compared; none: no value of the column equals it.
    fn bytes(&self, value: &Value) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        if value.is_null() || !value.fits(self.form.storage) {
            return None;
        }
        encode_value(self.form, value, &mut out);
        Some(out)
    }

    /// The share of rows with a value.
    fn equal(&self, value: &Value, distinct: f64) -> f64 {
        let known = self.get();
        if let Some((_, share)) = known.common.iter().find(|c| c.0 == *value) {
            return *share;
        }
        let common: f64 = known.common.iter().map(|c| c.1).sum();
        let others = (distinct - known.common.len() as f64).max(1.0);
        let rest = (1.0 - known.null_fraction - common).max(0.0);
        // No value is more common than the common ones.
        let most = known.common.last().map_or(1.0, |c| c.1);
        (rest / others).min(most)
    }

    /// The share of rows between two values; none: nothing is known of their spread.
    fn between(&self, low: Option<&Value>, high: Option<&Value>) -> Option<f64> {
        let known = self.get();
        let (low, high) = (low.map(|v| self.bytes(v)), high.map(|v| self.bytes(v)));
        let (Some(low), Some(high)) =
            (low.map_or(Some(None), |b| b.map(Some)), high.map_or(Some(None), |b| b.map(Some)))
        else {
            return None;
        };
        let inside = |bytes: &[u8]| {
            low.as_ref().is_none_or(|l| bytes >= &l[..]) && high.as_ref().is_none_or(|h| bytes <= &h[..])
        };
        let common_in = known.common.iter().filter(|c| self.bytes(&c.0).is_some_and(|b| inside(&b)));
        let common: f64 = common_in.map(|c| c.1).sum();
        let all: f64 = known.common.iter().map(|c| c.1).sum();
        let rest = (1.0 - known.null_fraction - all).max(0.0);
        if known.histogram.len() < 2 {
            return (!known.common.is_empty()).then_some(common.max(LEAST));
        }
        let bounds: Vec<Vec<u8>> = known.histogram.iter().filter_map(|v| self.bytes(v)).collect();
        let place = |bytes: &[u8]| {
            let parts = (bounds.len() - 1) as f64;
            let at = bounds.partition_point(|b| &b[..] < bytes);
            match at {
                0 => 0.0,
                at if at == bounds.len() => 1.0,
                at => (at as f64 - 1.0 + within(&bounds[at - 1], &bounds[at], bytes)) / parts,
            }
        };
        let from = low.as_ref().map_or(0.0, |b| place(b));
        let to = high.as_ref().map_or(1.0, |b| place(b));
        Some((common + rest * (to - from).max(0.0)).clamp(LEAST, 1.0))
    }
}

/// Where bytes stand between two others, as a share, by the eight bytes behind what all of them begin with.
fn within(low: &[u8], high: &[u8], bytes: &[u8]) -> f64 {
    let same = low.iter().zip(high).take_while(|(a, b)| a == b).count();
    let number = |b: &[u8]| (0..8).fold(0.0, |n, i| n * 256.0 + f64::from(b.get(same + i).copied().unwrap_or(0)));
    let (low, high, at) = (number(low), number(high), number(bytes));
    if high > low { ((at - low) / (high - low)).clamp(0.0, 1.0) } else { 0.5 }
}
