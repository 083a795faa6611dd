//! MIN and MAX of a column for each group of a table: where an index has the rows of a group in the order of that column, the first and the last of
//! them are read, and none between.
//!
//! # Invariants
//! - GRE-1: a level whose aggregates are all MIN or MAX of one column gives the same if it reads, instead of the rows, the groups with the
//!   least value of each followed by the groups with the greatest: both are values of the group's rows, and a group without a value comes with
//!   null in both. Nothing above the groups names another slot of the rows.
//! - GRE-2: it does so only if both parts jump (COV-2), and costs less.

use super::cost::Figures;
use super::extremes::is_closed;
use super::plan::{Body, Derived, Grouping, Node, OutputColumn, Query, Scan, Select};
use super::{Planner, walk, wanted};
use clearway_context::steering::Way;
use clearway_syntax::ast::SetOp;
use clearway_values::expr::aggregate::{AggregateCall, Kind};
use clearway_values::expr::{Bound, BoundKind};
use std::sync::Arc;

/// What it costs to read an index's entries instead of rows, as a share.
const ALL_BY_ENTRIES: f64 = 0.25;

/// The slot of the column of which all calls ask the least or the greatest value, some the one and some the other.
fn both_ends(calls: &[AggregateCall]) -> Option<usize> {
    let of_column = |call: &AggregateCall| match (call.kind, call.args.as_slice(), &call.filter) {
        (Kind::Min | Kind::Max, [arg], None) => walk::slot(arg),
        _ => None,
    };
    let slot = of_column(calls.first()?)?;
    let has = |kind: Kind| calls.iter().any(|call| call.kind == kind);
    (has(Kind::Min) && has(Kind::Max) && calls.iter().all(|call| of_column(call) == Some(slot))).then_some(slot)
}

/// Whether both parts may evaluate an expression, each for its own rows.
fn is_plain(e: &Bound) -> bool {
    !e.is_volatile() && is_closed(e)
}

/// The one scan of a level, and its groups, if GRE-1 holds for it.
fn of_ends(query: &Query) -> Option<(&Select, &Scan, &Grouping)> {
    let Body::Select(select) = &query.body else { return None };
    let (Node::Scan(scan), Some(grouping)) = (&*select.source, &select.grouping) else { return None };
    let slot = both_ends(&grouping.calls)?;
    let has_keys = grouping.sets.is_none() && !grouping.keys.is_empty();
    let are_columns = grouping.keys.iter().all(|key| walk::slot(key).is_some_and(|key| key != slot));
    let mut plain = scan.order.is_none() && select.filter.is_none() && scan.filter.iter().all(is_plain);
    walk::access_exprs(&scan.access, &mut |e| plain &= is_plain(e));
    (has_keys && are_columns && plain).then_some((select, scan, grouping))
}

impl Planner<'_> {
    /// Has a level read the ends of its groups, if it asks for nothing else and an index has them.
    pub(super) fn read_ends(&self, query: &mut Query, figures: &Figures<'_>) {
        if wanted::names_row(query, &self.subplans) {
            return;
        }
        let Some((select, scan, grouping)) = of_ends(query) else { return };
        let end = |kind: Kind| {
            let call = grouping.calls.iter().find(|call| call.kind == kind)?;
            self.groups_with(scan, (select.width, &grouping.keys, call), figures)
        };
        let (Some((least, left)), Some((greatest, right))) = (end(Kind::Min), end(Kind::Max)) else { return };
        // GRE-2
        let (_, all) = figures.read(scan);
        if left + right > figures.steering.of_part(all, ALL_BY_ENTRIES) {
            return;
        }
        let columns = least.columns.clone();
        let (left, right) = (Arc::new(least), Arc::new(greatest));
        let ends = Query {
            body: Body::SetOp { op: SetOp::Union, all: true, left, right },
            sort: Vec::new(),
            limit: None,
            offset: None,
            ties: false,
            columns,
        };
        let Body::Select(select) = &mut query.body else { return };
        let Some(grouping) = &mut select.grouping else { return };
        for (at, key) in grouping.keys.iter_mut().enumerate() {
            key.kind = BoundKind::Column { index: at, level: 0 };
        }
        let value = grouping.keys.len();
        for arg in grouping.calls.iter_mut().flat_map(|call| &mut call.args) {
            arg.kind = BoundKind::Column { index: value, level: 0 };
        }
        let (query, base, lateral) = (Arc::new(ends), 0, false);
        select.source =
            Arc::new(Node::Derived(Derived { query, base, lateral, kept: None, filter: None, given: None }));
        (select.width, select.recheck) = (value + 1, None);
    }

    /// The groups of a scan, each with one end, and what reading them costs; none: they can't be jumped through.
    fn groups_with(
        &self,
        scan: &Scan,
        (width, keys, call): (usize, &[Bound], &AggregateCall),
        figures: &Figures<'_>,
    ) -> Option<(Query, f64)> {
        let at = |n: usize, ty| Bound { kind: BoundKind::Aggregate(n), ty, pos: 0 };
        let mut targets: Vec<Bound> = keys.iter().enumerate().map(|(i, key)| at(1 + i, key.ty)).collect();
        targets.push(at(0, call.ty));
        let label = |(e, of): (&Bound, &Bound)| {
            let column =
                walk::slot(of).and_then(|slot| scan.table.shape.columns.get(slot.checked_sub(scan.table.base)?));
            let name = column.map_or_else(String::new, |column| column.name.clone());
            OutputColumn { name, ty: e.ty, origin: (0, 0), shape: None }
        };
        let columns: Vec<OutputColumn> = targets.iter().zip(keys.iter().chain(&call.args)).map(label).collect();
        let (keys, calls) = (keys.to_vec(), vec![call.clone()]);
        let grouping = Grouping { keys, calls, having: None, sets: None, keeps_row: false, is_in_order: false };
        let source = Arc::new(Node::Scan(scan.clone()));
        let select = Select { grouping: Some(grouping), ..Select::plain(source, width, targets) };
        let body = Body::Select(Box::new(select));
        let mut query = Query { body, sort: Vec::new(), limit: None, offset: None, ties: false, columns };
        wanted::narrow(&mut query, &self.subplans, figures);
        let Body::Select(select) = &query.body else { return None };
        let Node::Scan(scan) = &*select.source else { return None };
        let cost = scan.jump.as_ref()?.rows * figures.costs().jump + figures.disable_cost(Way::IndexScan);
        Some((query, cost))
    }
}
