//! Sorting, with breaths: pieces that are short enough are sorted by the library, then merged two by two.

use super::{Cx, Row};
use crate::error::Result;
use crate::planner::plan::SortKey;
use crate::types::datum::compare;
use clearway_base::breath;
use std::cmp::Ordering;

/// Rows of a piece: some ten comparisons each.
const PIECE: usize = 256;

/// The order of two lists of sort values; (descending, nulls first) per key.
pub fn order_of(a: &[crate::types::Datum], b: &[crate::types::Datum], by: &[(bool, bool)]) -> Ordering {
    for ((x, y), (descending, nulls_first)) in a.iter().zip(b).zip(by) {
        let order = match (x.is_null(), y.is_null()) {
            (true, true) => Ordering::Equal,
            (true, false) if *nulls_first => Ordering::Less,
            (true, false) => Ordering::Greater,
            (false, true) if *nulls_first => Ordering::Greater,
            (false, true) => Ordering::Less,
            (false, false) if *descending => compare(y, x),
            (false, false) => compare(x, y),
        };
        if order.is_ne() {
            return order;
        }
    }
    Ordering::Equal
}

/// Sorts rows by the values before them, stably.
///
/// # Errors
/// The reason for which the statement must end.
pub async fn sort_keyed(mut rows: Vec<(Row, Row)>, by: &[(bool, bool)]) -> Result<Vec<(Row, Row)>> {
    let order = |a: &(Row, Row), b: &(Row, Row)| order_of(&a.0, &b.0, by);
    for piece in rows.chunks_mut(PIECE) {
        breath::breathe(piece.len() as u32 * breath::ROW).await?;
        piece.sort_by(order);
    }
    let mut width = PIECE;
    while width < rows.len() {
        let mut merged = Vec::with_capacity(rows.len());
        let mut rest = rows.into_iter();
        while rest.len() > 0 {
            let mut left = rest.by_ref().take(width).collect::<Vec<_>>().into_iter().peekable();
            let mut right = rest.by_ref().take(width).collect::<Vec<_>>().into_iter().peekable();
            loop {
                breath::breathe(breath::ROW / 2).await?;
                let from_right = match (left.peek(), right.peek()) {
                    (Some(l), Some(r)) => order(l, r).is_gt(),
                    (None, Some(_)) => true,
                    (Some(_), None) => false,
                    (None, None) => break,
                };
                merged.extend(if from_right { right.next() } else { left.next() });
            }
        }
        rows = merged;
        width *= 2;
    }
    Ok(rows)
}

/// Rows in the order of sort keys; from `width` on (0: nowhere) a row has the values of aggregates.
///
/// # Errors
/// A key's.
pub async fn sorted(rows: Vec<Row>, sort: &[SortKey], width: usize, cx: Cx<'_>) -> Result<Vec<Row>> {
    if sort.is_empty() {
        return Ok(rows);
    }
    let by: Vec<(bool, bool)> = sort.iter().map(|k| (k.descending, k.nulls_first)).collect();
    let mut keyed = Vec::with_capacity(rows.len());
    for row in rows {
        cx.breathe().await?;
        let mut key = Row::with_capacity(sort.len());
        for k in sort {
            let aggregates = if width > 0 { row.get(width..).unwrap_or(&[]) } else { &[] };
            key.push(cx.value_with(&k.expr, &row, aggregates).await?);
        }
        keyed.push((key, row));
    }
    Ok(sort_keyed(keyed, &by).await?.into_iter().map(|(_, row)| row).collect())
}
