//! The outline of a plan: in which order, by which joins and by which ways of access it reads its tables; without expressions and estimates.
//!
//! Two plans of one statement with the same outline do the same work for the same values of the parameters, but for parts of conditions that
//! constants have decided. It is kept as a number; that two outlines have the same number by chance is possible, and leads to no wrong rows.

use super::plan::{Access, Action, Body, Node, Plan, Query, Range};
use clearway_base::stack;
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::mem::discriminant;
use std::sync::Arc;

/// The outline of a plan, as a number.
pub fn outline(plan: &Plan) -> u64 {
    let mut out = Outline::default();
    plan.changes.iter().for_each(|change| out.action(&change.action));
    out.action(&plan.action);
    plan.subqueries.iter().for_each(|sub| out.query(&sub.query));
    out.hasher.finish()
}

#[derive(Default)]
struct Outline {
    hasher: DefaultHasher,
    /// Queries that several places refer to are walked once.
    seen: HashSet<*const Query>,
}

impl Outline {
    fn add(&mut self, part: impl Hash) {
        part.hash(&mut self.hasher);
    }

    fn action(&mut self, action: &Action) {
        self.add(discriminant(action));
        match action {
            Action::Select(query) | Action::Settings(query) => self.query(query),
            Action::Insert(insert) => self.query(&insert.source),
            Action::Update(update) => self.node(&update.source),
            Action::Delete(delete) => self.node(&delete.source),
            Action::Merge(merge) => self.node(&merge.source),
        }
    }

    fn query(&mut self, query: &Arc<Query>) {
        if !self.seen.insert(Arc::as_ptr(query)) {
            return;
        }
        self.add((discriminant(&query.body), query.sort.len()));
        stack::deeper(|| match &query.body {
            Body::Select(select) => {
                self.add((select.filter.is_some(), select.grouping.is_some(), select.is_side));
                self.node(&select.source);
            }
            Body::Values(rows) => self.add(rows.len()),
            Body::SetOp { left, right, .. } => {
                self.query(left);
                self.query(right);
            }
            Body::Recursive { anchor, step, .. } => {
                self.query(anchor);
                self.query(step);
            }
        });
    }

    fn node(&mut self, node: &Node) {
        self.add(discriminant(node));
        stack::deeper(|| match node {
            Node::One | Node::Function(_) | Node::Work(_) | Node::Sample(_) => {}
            Node::Scan(scan) => {
                self.add((scan.table.shape.oid, scan.filter.is_some(), scan.entries.is_some(), scan.jump.is_some()));
                self.access(&scan.access);
            }
            Node::System(scan) => self.add((scan.view.name, scan.found.is_some())),
            Node::Derived(derived) => self.query(&derived.query),
            Node::Filter { input, .. } => self.node(input),
            Node::Join(join) => {
                self.add((join.kind as u8, join.hash.is_some(), join.merge.is_some(), join.builds_left));
                self.node(&join.left);
                self.node(&join.right);
            }
        });
    }

    fn access(&mut self, access: &Access) {
        self.add(discriminant(access));
        let range = |r: &Range| (r.equal.len(), r.low.is_some(), r.high.is_some());
        match access {
            Access::Full | Access::Tids(_) => {}
            Access::Keys(keys) => self.add(keys.len()),
            Access::KeyRange(r) => self.add(range(r)),
            Access::Index(place, r) => self.add((place, range(r))),
            Access::Ranges(ranges) => {
                for part in ranges.all_parts() {
                    self.add((part.index, part.columns.len(), part.low.is_some(), part.high.is_some()));
                }
            }
        }
    }
}
