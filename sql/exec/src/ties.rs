//! FETCH FIRST ... WITH TIES: finds where the rows that sort alike end.

use super::{Cx, Row};
use clearway_planner::plan::{Body, Query};
use clearway_syntax::error::Result;
use clearway_values::types::Datum;
use clearway_values::types::datum::compare;
use std::cmp::Ordering;

/// The keys of the row that was given last.
#[derive(Default)]
pub(super) struct Ties {
    keys: Option<Vec<Datum>>,
}

impl Ties {
    /// Whether a row behind those of the count is to be given; takes the keys off the row. `counted`: the row is one of the count.
    pub(super) async fn takes(&mut self, query: &Query, row: &mut Row, counted: bool, cx: Cx<'_>) -> Result<bool> {
        let keys = match &query.body {
            Body::Select(_) => row.split_off(row.len().saturating_sub(query.sort.len())),
            _ => {
                let mut keys = Vec::new();
                for key in &query.sort {
                    keys.push(cx.value(&key.expr, row).await?);
                }
                keys
            }
        };
        if counted {
            self.keys = Some(keys);
            return Ok(true);
        }
        let alike = |before: &Vec<Datum>| before.iter().zip(&keys).all(|(a, b)| same(a, b));
        let takes = self.keys.as_ref().is_some_and(alike);
        if !takes {
            self.keys = None;
        }
        Ok(takes)
    }

    /// Whether nothing more can come behind the rows of the count.
    pub(super) fn ended(&self) -> bool {
        self.keys.is_none()
    }
}

fn same(a: &Datum, b: &Datum) -> bool {
    a.is_null() == b.is_null() && (a.is_null() || compare(a, b) == Ordering::Equal)
}
