//! Estimates about a table's columns from a sample of its rows: the number of distinct values, the common values, and their distribution.
//!
//! The rules are those of PostgreSQL's ANALYZE (src/backend/commands/analyze.c, compute_scalar_stats and analyze_mcv_list): the estimator of
//! Haas and Stokes for the number of distinct values, a list of the values that are clearly more frequent than the others, and a histogram
//! of the rest with equally many values in each bucket.

use std::collections::HashSet;

use crate::catalog::Relation;
use crate::codec::key::{KeyColumn, encode_value};
use crate::table::shape::TableShape;
use crate::value::{Storage, Value};

/// Common values that are kept, and parts of a histogram, where nothing else is said.
pub const TARGET: u16 = 100;
/// Rows in a sample for each of them.
const ROWS: usize = 300;
/// Bytes of a sample at most: a sample of wide rows has fewer of them.
const BYTES_MAX: usize = 8 << 20;
/// A value that is wider is counted but not kept.
const WIDTH_MAX: usize = 1024;

/// What is known of a column, or of an expression of an index.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnStatistics {
    /// How its values were stored: of a column that is stored otherwise by now nothing is known.
    pub storage: Storage,
    /// The share of nulls.
    pub null_fraction: f64,
    /// Bytes of a value, on the average, as PostgreSQL would store it.
    pub width: u32,
    /// Different values: a number, or below zero their share of the rows.
    pub distinct: f64,
    /// Common values with their shares of all rows, the most common first.
    pub common: Vec<(Value, f64)>,
    /// Bounds between equal shares of the values that are not common, in order.
    pub histogram: Vec<Value>,
    /// How far the order of the values follows that of the rows: from -1 to 1.
    pub correlation: Option<f64>,
}

/// What is known of the columns of a table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spread {
    /// The columns by their places; none: nothing is known of one.
    pub columns: Vec<Option<ColumnStatistics>>,
    /// The expressions of its indexes, by their texts.
    pub expressions: Vec<(String, ColumnStatistics)>,
}

impl Spread {
    /// What is known at a position of the shape (SHP-3).
    pub fn at(&self, shape: &TableShape, position: usize) -> Option<&ColumnStatistics> {
        match shape.columns.get(position) {
            Some(column) => self.columns.get(position)?.as_ref().filter(|known| known.storage == column.storage),
            None => {
                let text = shape.expressions.get(position - shape.columns.len())?;
                self.expressions.iter().find(|(known, _)| known == text).map(|(_, known)| known)
            }
        }
    }
}

/// What is to be found out.
#[derive(Clone, Debug)]
pub struct Targets {
    /// How many common values are kept of a column of which nothing else is said.
    pub default: u16,
    /// The columns that are judged; none: all.
    pub only: Option<Vec<usize>>,
}

impl Default for Targets {
    fn default() -> Targets {
        Targets { default: TARGET, only: None }
    }
}

impl Targets {
    /// How many common values are kept of a column; none: it is not judged.
    fn of(&self, relation: &Relation, column: usize) -> Option<usize> {
        let own = relation.columns.get(column).filter(|c| !c.is_dropped())?.statistics;
        let asked = self.only.as_ref().is_none_or(|only| only.contains(&column));
        Some(usize::from(own.unwrap_or(self.default))).filter(|n| asked && *n > 0)
    }

    /// Rows of a sample that is large enough for all of them.
    fn rows(&self, relation: &Relation) -> usize {
        let targets = (0..relation.columns.len()).filter_map(|column| self.of(relation, column));
        ROWS * targets.max().unwrap_or(0).max(usize::from(self.default))
    }
}

/// A row as it stands in its leaf: its key, and behind it its value. The memory is used again by the row that takes its place.
#[derive(Debug)]
struct Stored {
    number: u64,
    key_len: usize,
    bytes: Vec<u8>,
}

impl Stored {
    fn put(&mut self, number: u64, key: &[u8], value: &[u8]) {
        (self.number, self.key_len) = (number, key.len());
        self.bytes.clear();
        self.bytes.reserve_exact(key.len() + value.len());
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
    }
}

/// Rows picked at random while a table is walked, each with equal chance.
#[derive(Debug)]
pub(crate) struct Sample {
    rows: Vec<Stored>,
    capacity: usize,
    bytes: usize,
    seen: u64,
    state: u64,
}

impl Sample {
    /// An empty sample, as large as the targets want it.
    pub fn new(targets: &Targets, relation: &Relation) -> Sample {
        // Any sequence will do, and a fixed one can be replayed.
        let state = 0x9e37_79b9_7f4a_7c15;
        Sample { rows: Vec::new(), capacity: targets.rows(relation), bytes: 0, seen: 0, state }
    }

    /// Takes a row in, perhaps.
    pub fn offer(&mut self, key: &[u8], value: &[u8]) {
        self.seen += 1;
        if self.rows.len() < self.capacity {
            self.bytes += key.len() + value.len();
            let mut row = Stored { number: 0, key_len: 0, bytes: Vec::new() };
            row.put(self.seen, key, value);
            self.rows.push(row);
            if self.bytes > BYTES_MAX {
                self.capacity = self.rows.len();
            }
            return;
        }
        let at = self.random() % self.seen;
        if let Some(place) = usize::try_from(at).ok().and_then(|at| self.rows.get_mut(at)) {
            place.put(self.seen, key, value);
        }
    }

    /// xorshift64*.
    fn random(&mut self) -> u64 {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        self.state.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// What the sample of a table of so many rows says of its columns and of the expressions of its indexes. A row that can't be read is left
    /// out; so is one for which an expression has no value.
    pub fn judge(mut self, shape: &TableShape, relation: &Relation, targets: &Targets, rows: u64) -> Spread {
        self.rows.sort_unstable_by_key(|row| row.number);
        let read = |row: &Stored| {
            let (key, value) = row.bytes.split_at(row.key_len);
            shape.row(key, value).ok()
        };
        let values: Vec<Vec<Value>> = self.rows.iter().filter_map(read).collect();
        drop(self);
        let column = |c: usize| {
            let target = targets.of(relation, c).filter(|_| !values.is_empty())?;
            let of = Column { form: KeyColumn::ascending(shape.columns[c].storage), target, rows: rows as f64 };
            Some(of.judge(values.iter().map(|row| &row[c])))
        };
        let columns = (0..shape.columns.len()).map(column).collect();
        let expressions = if targets.only.is_some() { Vec::new() } else { judge_terms(shape, targets, &values, rows) };
        Spread { columns, expressions }
    }
}

/// What a sample says of the expressions of a table's indexes.
fn judge_terms(
    shape: &TableShape,
    targets: &Targets,
    sample: &[Vec<Value>],
    rows: u64,
) -> Vec<(String, ColumnStatistics)> {
    let mut out: Vec<(String, ColumnStatistics)> = Vec::new();
    for index in &shape.indexes {
        let Some(terms) = &index.terms else { continue };
        let places =
            index.columns.iter().enumerate().filter_map(|(at, c)| Some((at, c.checked_sub(shape.columns.len())?)));
        let new: Vec<(usize, &String)> = places
            .filter_map(|(at, expression)| Some((at, shape.expressions.get(expression)?)))
            .filter(|(_, text)| !out.iter().any(|(known, _)| known == *text))
            .collect();
        if new.is_empty() || sample.is_empty() || targets.default == 0 {
            continue;
        }
        let computed: Vec<Vec<Value>> = sample.iter().filter_map(|row| terms.values(row).ok().flatten()).collect();
        // A partial index has a part of the rows.
        let of_index = rows as f64 * computed.len() as f64 / (sample.len() as f64).max(1.0);
        for (at, text) in new {
            let form = KeyColumn::ascending(index.key[at].storage);
            let of = Column { form, target: usize::from(targets.default), rows: of_index };
            out.push((text.clone(), of.judge(computed.iter().map(|values| &values[at]))));
        }
    }
    out
}

/// The bytes that PostgreSQL would take for a value of this storage.
fn width_of(value: &Value, storage: Storage) -> usize {
    let of_any_length = |bytes: usize| if bytes < 127 { bytes + 1 } else { bytes + 4 };
    match value {
        Value::Null => 0,
        Value::Decimal(d) => of_any_length(2 + 2 * d.digits.len()),
        Value::Bytes(bytes) => of_any_length(bytes.len()),
        Value::Bool(_) | Value::Int(_) | Value::Float(_) => storage.fixed_width().unwrap_or(8),
    }
}

/// The length of what is kept of a value.
fn kept_bytes(value: &Value) -> usize {
    match value {
        Value::Bytes(bytes) => bytes.len(),
        Value::Decimal(d) => 2 * d.digits.len(),
        _ => 8,
    }
}

/// A column that is judged.
struct Column {
    form: KeyColumn,
    /// How many common values are kept.
    target: usize,
    /// Rows of the table.
    rows: f64,
}

/// Equal values of a sorted sample: where they begin, and how many they are.
type Equals = (usize, usize);

/// The key form of a value, its place in the sample, and the value: bytes sort as values do.
type Keyed<'v> = (Vec<u8>, usize, &'v Value);

impl Column {
    fn judge<'v>(&self, values: impl Iterator<Item = &'v Value>) -> ColumnStatistics {
        let (mut sampled, mut present, mut width, mut wide) = (0usize, 0usize, 0usize, 0usize);
        let mut keys: Vec<Keyed<'v>> = Vec::new();
        for value in values {
            sampled += 1;
            if value.is_null() {
                continue;
            }
            present += 1;
            width += width_of(value, self.form.storage);
            if kept_bytes(value) > WIDTH_MAX {
                wide += 1;
                continue;
            }
            let mut key = Vec::new();
            encode_value(self.form, value, &mut key);
            keys.push((key, keys.len(), value));
        }
        let null_fraction = if sampled == 0 { 0.0 } else { 1.0 - present as f64 / sampled as f64 };
        let width = width.checked_div(present).unwrap_or(0);
        let mut out = ColumnStatistics {
            storage: self.form.storage,
            null_fraction,
            width: u32::try_from(width).unwrap_or(u32::MAX),
            distinct: if present == 0 { 0.0 } else { null_fraction - 1.0 },
            common: Vec::new(),
            histogram: Vec::new(),
            correlation: None,
        };
        if keys.is_empty() {
            return out;
        }
        out.correlation = correlation(&mut keys);
        let mut equals: Vec<Equals> = Vec::new();
        for at in 0..keys.len() {
            match equals.last_mut() {
                Some((begin, count)) if keys[*begin].0 == keys[at].0 => *count += 1,
                _ => equals.push((at, 1)),
            }
        }
        out.distinct = self.distinct(&equals, (sampled, present, wide), null_fraction);
        let common = self.common(&equals, sampled, wide, &out);
        out.common = common.iter().map(|(at, n)| (keys[*at].2.clone(), *n as f64 / sampled as f64)).collect();
        let is_common: HashSet<usize> = common.iter().map(|(at, _)| *at).collect();
        let others = equals.iter().filter(|(at, _)| !is_common.contains(at));
        let rest: Vec<&Value> = others.flat_map(|(at, n)| keys[*at..*at + *n].iter().map(|k| k.2)).collect();
        out.histogram = bounds(&rest, (equals.len() - common.len()).min(self.target + 1));
        out
    }

    /// How many values differ, as PostgreSQL keeps it.
    fn distinct(&self, equals: &[Equals], (sampled, present, wide): (usize, usize, usize), null_fraction: f64) -> f64 {
        let several = equals.iter().filter(|r| r.1 > 1).count();
        if several == 0 {
            // No value came twice: all rows differ.
            return null_fraction - 1.0;
        }
        if wide == 0 && several == equals.len() {
            return self.as_share(several as f64);
        }
        let once = (equals.len() - several + wide) as f64;
        let (d, n) = (once + several as f64, present as f64);
        let of_table = self.rows * (1.0 - null_fraction);
        // A sample of all rows misses none.
        let of_table = if sampled as f64 >= self.rows { n } else { of_table };
        let estimate = if of_table > 0.0 { (n * d) / ((n - once) + once * n / of_table) } else { 0.0 };
        self.as_share((estimate.clamp(d, of_table.max(d)) + 0.5).floor())
    }

    /// More than a tenth of the rows: the number grows with the table.
    fn as_share(&self, distinct: f64) -> f64 {
        if distinct > 0.1 * self.rows { -(distinct / self.rows.max(1.0)).min(1.0) } else { distinct }
    }

    /// The common values, the most common first.
    fn common(&self, equals: &[Equals], sampled: usize, wide: usize, known: &ColumnStatistics) -> Vec<Equals> {
        let mut list: Vec<Equals> = equals.iter().filter(|r| r.1 > 1).copied().collect();
        let all = list.len() == equals.len() && wide == 0 && known.distinct > 0.0 && list.len() <= self.target;
        list.sort_by_key(|r| (std::cmp::Reverse(r.1), r.0));
        list.truncate(self.target);
        if !all {
            list.truncate(self.clearly_common(&list, sampled as f64, known));
        }
        list
    }

    /// How many of the most common values are more frequent than the others would be by chance (PostgreSQL's analyze_mcv_list).
    fn clearly_common(&self, list: &[Equals], n: f64, known: &ColumnStatistics) -> usize {
        let total = self.rows;
        if n >= total || total <= 1.0 {
            return list.len();
        }
        let distinct = if known.distinct < 0.0 { -known.distinct * total } else { known.distinct };
        let mut kept = list.len();
        let mut before: f64 = list.iter().rev().skip(1).map(|r| r.1 as f64).sum();
        while kept > 0 {
            let rest = (1.0 - before / n - known.null_fraction).clamp(0.0, 1.0);
            let others = distinct - (kept - 1) as f64;
            let expected = if others > 1.0 { rest / others } else { rest };
            let count = list[kept - 1].1 as f64;
            let k = total * count / n;
            let variance = n * k * (total - k) * (total - n) / (total * total * (total - 1.0));
            if count > expected * n + 2.0 * variance.max(0.0).sqrt() + 0.5 {
                break;
            }
            kept -= 1;
            if kept > 0 {
                before -= list[kept - 1].1 as f64;
            }
        }
        kept
    }
}

/// The correlation of the values' order with that of the rows; sorts by value.
fn correlation(keys: &mut [Keyed<'_>]) -> Option<f64> {
    keys.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.cmp(&b.1)));
    let n = keys.len() as f64;
    if keys.len() < 2 {
        return None;
    }
    let products: f64 = keys.iter().enumerate().map(|(value, key)| value as f64 * key.1 as f64).sum();
    let (sum, squares) = (n * (n - 1.0) / 2.0, (n - 1.0) * n * (2.0 * n - 1.0) / 6.0);
    Some((n * products - sum * sum) / (n * squares - sum * sum))
}

/// So many bounds of equal shares.
fn bounds(sorted: &[&Value], count: usize) -> Vec<Value> {
    if count < 2 || sorted.len() < count {
        return Vec::new();
    }
    (0..count).map(|i| sorted[i * (sorted.len() - 1) / (count - 1)].clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[Value], rows: f64) -> ColumnStatistics {
        let form = KeyColumn::ascending(Storage::Int(8));
        Column { form, target: usize::from(TARGET), rows }.judge(values.iter())
    }

    #[test]
    fn a_key_has_no_common_values_and_follows_the_rows() {
        let values: Vec<Value> = (0..1000).map(Value::Int).collect();
        let told = of(&values, 1000.0);
        assert_eq!((told.distinct, told.common.len(), told.histogram.len()), (-1.0, 0, 101));
        assert_eq!(told.histogram.first(), Some(&Value::Int(0)));
        assert_eq!(told.histogram.last(), Some(&Value::Int(999)));
        assert!(told.correlation.is_some_and(|c| c > 0.999));
        let down: Vec<Value> = (0..1000).rev().map(Value::Int).collect();
        assert!(of(&down, 1000.0).correlation.is_some_and(|c| c < -0.999));
    }

    #[test]
    fn few_values_are_all_common_with_their_shares() {
        let values: Vec<Value> =
            (0..1000).map(|i| if i % 10 == 0 { Value::Null } else { Value::Int(i % 10 % 3) }).collect();
        let told = of(&values, 1_000_000.0);
        assert!((told.null_fraction - 0.1).abs() < 1e-9);
        assert_eq!((told.distinct, told.common.len(), told.histogram.len()), (3.0, 3, 0));
        assert_eq!(told.width, 8);
        assert!((told.common.iter().map(|c| c.1).sum::<f64>() - 0.9).abs() < 1e-9);
    }

    #[test]
    fn a_value_is_common_only_where_chance_does_not_explain_it() {
        // 7 comes in a tenth of the rows; each other value about three times of 30,000 rows out of a million.
        let mut state = 1u64;
        let mut next = |i: i64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            Value::Int(if i % 10 == 0 { 7 } else { 1000 + ((state >> 33) % 9_000) as i64 })
        };
        let values: Vec<Value> = (0..30_000).map(&mut next).collect();
        let told = of(&values, 1_000_000.0);
        assert_eq!(told.common.first().map(|c| c.0.clone()), Some(Value::Int(7)));
        assert!(told.common.len() < 70, "{:?}", told.common);
        assert_eq!(told.histogram.len(), 101);
        // The same of a whole table: what is more frequent is known, not guessed.
        assert_eq!(of(&values, 30_000.0).common.len(), 100);
    }

    #[test]
    fn wide_values_are_counted_and_not_kept() {
        let wide = |i: i64| Value::bytes(&[(i % 200) as u8; 2000]);
        let values: Vec<Value> = (0..100).map(wide).collect();
        let form = KeyColumn::ascending(Storage::Bytes);
        let told = Column { form, target: 100, rows: 100.0 }.judge(values.iter());
        assert_eq!((told.common.len(), told.histogram.len(), told.width, told.distinct), (0, 0, 2004, -1.0));
    }

    #[test]
    fn the_number_of_values_is_extrapolated() {
        // 30,000 of a million rows with 200,000 values: a sample sees most values once.
        let mut state = 1u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            Value::Int(((state >> 33) % 200_000) as i64)
        };
        let values: Vec<Value> = (0..30_000).map(|_| next()).collect();
        let told = of(&values, 1_000_000.0);
        let estimate = if told.distinct < 0.0 { -told.distinct * 1e6 } else { told.distinct };
        assert!((100_000.0..400_000.0).contains(&estimate), "{estimate}");
    }
}
