//! Walks over a plan, for EXPLAIN.

use crate::plan::{Action, Node, Plan, TableSlot};
use crate::walk;
use clearway_values::expr::Bound;
use clearway_values::expr::bound::{BoundKind, SubqueryUse};

pub(super) fn leaves(node: &Node, f: &mut dyn FnMut(&Node)) {
    match node {
        Node::Join(j) => {
            leaves(&j.left, f);
            leaves(&j.right, f);
        }
        Node::Filter { input, .. } => leaves(input, f),
        leaf => f(leaf),
    }
}

/// The names of the slots of a table: each with that of the table (PLN-1).
pub(super) fn table_slots(table: &TableSlot) -> Vec<(String, String)> {
    let columns = table.shape.columns.iter().map(|c| c.name.as_str()).chain(["ctid"]);
    columns.map(|column| (table.name.clone(), column.to_owned())).collect()
}

pub(super) fn subqueries(e: &Bound, out: &mut Vec<usize>) {
    walk::each(e, &mut |e| {
        if let BoundKind::Subquery { id, .. } = e.kind
            && !out.contains(&id)
        {
            out.push(id);
        }
    });
}

/// The subqueries that a source names, not those inside of queries in FROM.
pub(super) fn node_subqueries(node: &Node, out: &mut Vec<usize>) {
    match node {
        Node::Join(j) => {
            node_subqueries(&j.left, out);
            node_subqueries(&j.right, out);
            j.on.iter().for_each(|e| subqueries(e, out));
        }
        Node::Filter { input, filter } => {
            node_subqueries(input, out);
            subqueries(filter, out);
        }
        Node::Scan(s) => {
            s.filter.iter().for_each(|e| subqueries(e, out));
            walk::access_exprs(&s.access, &mut |e| subqueries(e, out));
        }
        _ => {}
    }
}

/// Whether a subquery is used for its one value.
pub(super) fn is_scalar(plan: &Plan, id: usize) -> bool {
    let mut scalar = false;
    let mut look = |e: &Bound| {
        walk::each(e, &mut |e| {
            if let BoundKind::Subquery { id: other, usage, .. } = &e.kind {
                scalar |= *other == id && !matches!(usage, SubqueryUse::Array | SubqueryUse::Quantified { .. });
            }
        });
    };
    for sub in &plan.subqueries {
        walk::query_exprs(&sub.query, 0, &mut |e, _| look(e));
    }
    match &plan.action {
        Action::Select(q) | Action::Settings(q) => walk::query_exprs(q, 0, &mut |e, _| look(e)),
        Action::Insert(i) => walk::query_exprs(&i.source, 0, &mut |e, _| look(e)),
        Action::Update(u) => u.filter.iter().chain(u.set.iter().map(|s| &s.1)).for_each(&mut look),
        Action::Delete(d) => d.filter.iter().for_each(&mut look),
        Action::Merge(m) => m.filter.iter().for_each(&mut look),
    }
    scalar
}
