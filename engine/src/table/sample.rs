//! What a sample of a table's rows says of its columns: how many values differ, which are common, how they are spread.
//!
//! The rules are those of PostgreSQL's ANALYZE (src/backend/commands/analyze.c, compute_scalar_stats): the estimator of Haas and Stokes for the
//! number of different values, common values that are clearly more frequent than the others, a histogram of equal shares of the rest.

use std::collections::HashMap;

use crate::codec::key::{KeyColumn, encode_value};
use crate::table::shape::TableShape;
use crate::value::Value;

/// Rows in a sample at most.
const ROWS_MAX: usize = 30_000;
/// Bytes of a sample at most: a sample of wide rows has fewer of them.
const BYTES_MAX: usize = 8 << 20;
/// Common values that are kept, and parts of a histogram.
const TARGET: usize = 100;
/// A value that is wider is counted but not kept.
const WIDTH_MAX: usize = 1024;

/// What is known of a column.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ColumnStatistics {
    /// The share of nulls.
    pub null_fraction: f64,
    /// Bytes of a value, on the average.
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

/// A row as it stands in its leaf.
type Stored = (Box<[u8]>, Box<[u8]>);

/// Rows picked at random while a table is walked, each with equal chance.
#[derive(Debug)]
pub(crate) struct Sample {
    rows: Vec<(u64, Stored)>,
    capacity: usize,
    bytes: usize,
    seen: u64,
    state: u64,
}

impl Default for Sample {
    fn default() -> Sample {
        // Any sequence will do, and a fixed one can be replayed.
        Sample { rows: Vec::new(), capacity: ROWS_MAX, bytes: 0, seen: 0, state: 0x9e37_79b9_7f4a_7c15 }
    }
}

impl Sample {
    /// Takes a row in, perhaps.
    pub fn offer(&mut self, key: &[u8], value: &[u8]) {
        self.seen += 1;
        let stored = || (Box::from(key), Box::from(value));
        if self.rows.len() < self.capacity {
            self.bytes += key.len() + value.len();
            self.rows.push((self.seen, stored()));
            if self.bytes > BYTES_MAX {
                self.capacity = self.rows.len();
            }
            return;
        }
        let at = self.random() % self.seen;
        if let Some(place) = usize::try_from(at).ok().and_then(|at| self.rows.get_mut(at)) {
            *place = (self.seen, stored());
        }
    }

    /// xorshift64*.
    fn random(&mut self) -> u64 {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        self.state.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// What the sample of a table of so many rows says of its columns. A row that can't be read is left out.
    pub fn judge(mut self, shape: &TableShape, rows: u64) -> Vec<ColumnStatistics> {
        self.rows.sort_unstable_by_key(|r| r.0);
        let values: Vec<Vec<Value>> = self.rows.iter().filter_map(|(_, (k, v))| shape.row(k, v).ok()).collect();
        let column = |c: usize| {
            let form = KeyColumn::ascending(shape.columns[c].storage);
            column_statistics(values.iter().map(|row| &row[c]), form, rows as f64)
        };
        (0..shape.columns.len()).map(column).collect()
    }
}

fn width_of(value: &Value) -> usize {
    match value {
        Value::Null => 0,
        Value::Bool(_) => 1,
        Value::Int(_) | Value::Float(_) => 8,
        Value::Decimal(d) => 4 + 2 * d.digits.len(),
        Value::Bytes(bytes) => bytes.len(),
    }
}

fn column_statistics<'v>(values: impl Iterator<Item = &'v Value>, form: KeyColumn, rows: f64) -> ColumnStatistics {
    let mut sampled = 0usize;
    let mut width = 0usize;
    // The key form of each value, with its place in the sample: bytes sort as values do.
    let mut keys: Vec<(Vec<u8>, usize, &Value)> = Vec::new();
    for value in values {
        if !value.is_null() {
            width += width_of(value);
            let mut key = Vec::new();
            encode_value(form, value, &mut key);
            keys.push((key, keys.len(), value));
        }
        sampled += 1;
    }
    if sampled == 0 {
        return ColumnStatistics::default();
    }
    let present = keys.len();
    let null_fraction = 1.0 - present as f64 / sampled as f64;
    if present == 0 {
        return ColumnStatistics { null_fraction, distinct: 0.0, ..ColumnStatistics::default() };
    }
    let correlation = correlation(&mut keys);
    // Runs of equal values: where each begins, and how long it is.
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for at in 0..present {
        match runs.last_mut() {
            Some((begin, length)) if keys[*begin].0 == keys[at].0 => *length += 1,
            _ => runs.push((at, 1)),
        }
    }
    let distinct = distinct(&runs, present, rows * (1.0 - null_fraction), rows);
    let common_runs = common(&runs, present, distinct, rows);
    let share = |length: usize| length as f64 / sampled as f64;
    let common = common_runs.iter().map(|(at, n)| (keys[*at].2.clone(), share(*n))).collect();
    let is_common: HashMap<usize, ()> = common_runs.iter().map(|(at, _)| (*at, ())).collect();
    let rest: Vec<&Value> = runs
        .iter()
        .filter(|(at, _)| !is_common.contains_key(at))
        .flat_map(|(at, n)| keys[*at..*at + *n].iter().map(|k| k.2))
        .collect();
    let several = runs.len() - common_runs.len() >= 2;
    let histogram = if several { bounds(&rest) } else { Vec::new() };
    let width = u32::try_from(width / present).unwrap_or(u32::MAX);
    ColumnStatistics { null_fraction, width, distinct, common, histogram, correlation }
}

/// The correlation of the values' order with that of the rows; sorts by value.
fn correlation(keys: &mut [(Vec<u8>, usize, &Value)]) -> Option<f64> {
    keys.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.cmp(&b.1)));
    let n = keys.len() as f64;
    if keys.len() < 2 || keys.first().map(|k| &k.0) == keys.last().map(|k| &k.0) {
        return None;
    }
    let products: f64 = keys.iter().enumerate().map(|(value, key)| value as f64 * key.1 as f64).sum();
    let (sum, squares) = (n * (n - 1.0) / 2.0, (n - 1.0) * n * (2.0 * n - 1.0) / 6.0);
    Some((n * products - sum * sum) / (n * squares - sum * sum))
}

/// How many values differ, as PostgreSQL keeps it.
fn distinct(runs: &[(usize, usize)], present: usize, present_rows: f64, rows: f64) -> f64 {
    let (d, n) = (runs.len() as f64, present as f64);
    let once = runs.iter().filter(|r| r.1 == 1).count() as f64;
    let estimate = if once >= d && d >= n {
        // No value came twice: all rows differ.
        present_rows
    } else if once == 0.0 {
        d
    } else {
        let least = (n * d) / ((n - once) + once * n / present_rows.max(1.0));
        least.clamp(d, present_rows.max(d))
    };
    let estimate = (estimate + 0.5).floor();
    if estimate > 0.1 * rows { -(estimate / rows.max(1.0)).min(1.0) } else { estimate }
}

/// The runs of common values, the longest first.
fn common(runs: &[(usize, usize)], present: usize, distinct: f64, rows: f64) -> Vec<(usize, usize)> {
    let different = if distinct < 0.0 { -distinct * rows } else { distinct };
    let complete = present as f64 >= rows && runs.len() <= TARGET;
    let average = present as f64 / different.max(1.0);
    let mut list: Vec<(usize, usize)> =
        runs.iter().filter(|r| r.1 > 1 && (complete || r.1 as f64 > 1.25 * average)).copied().collect();
    if runs.len() <= TARGET && distinct > 0.0 {
        list = runs.iter().filter(|r| r.1 > 1 || complete).copied().collect();
    }
    list.sort_by_key(|r| (std::cmp::Reverse(r.1), r.0));
    list.truncate(TARGET);
    list
}

/// Bounds of equal shares.
fn bounds(sorted: &[&Value]) -> Vec<Value> {
    let parts = TARGET.min(sorted.len().saturating_sub(1));
    if parts == 0 || sorted.iter().any(|v| width_of(v) > WIDTH_MAX) {
        return Vec::new();
    }
    (0..=parts).map(|i| sorted[i * (sorted.len() - 1) / parts].clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Storage;

    fn of(values: &[Value], rows: f64) -> ColumnStatistics {
        column_statistics(values.iter(), KeyColumn::ascending(Storage::Int(8)), rows)
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
        assert!((told.common.iter().map(|c| c.1).sum::<f64>() - 0.9).abs() < 1e-9);
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
