//! Determines which values of its sides a hash join carries: those that an expression on its rows or above it names (PLN-9). The others, such as
//! a text that only the filter of a scan needs, take no room in the hash table and are not copied.
//!
//! Each naming of a slot is counted, in the whole level and then again while the joins are visited from below: a slot that is named more often
//! in the level than in the joins so far is named above them. The joins so far include those to the left of a side, which name no slot of it.

use super::plan::{Body, Carried, Join, JoinType, Node, Query, Subplan};
use super::{rewrite, walk};
use clearway_base::stack;
use clearway_engine::table::pick::Picker;
use clearway_values::expr::Bound;
use std::ops::Range;
use std::sync::Arc;

/// Layouts of more slots are left as they are: the lists would be longer than what they save.
const SLOTS_MAX: usize = 2_000;

/// How often the slots of a level are named.
pub(super) struct Named {
    times: Vec<u32>,
}

impl Named {
    fn add(&mut self, e: &Bound, depth: u16, subplans: &[Subplan]) {
        rewrite::expr_slots(e, depth, subplans, &mut |slot| {
            if let Some(times) = self.times.get_mut(slot) {
                *times += 1;
            }
        });
    }

    /// In all expressions of a level.
    pub fn in_level(query: &Query, width: usize, subplans: &[Subplan]) -> Named {
        let mut all = Named { times: vec![0; width] };
        walk::level_exprs(query, &mut |e, depth| all.add(e, depth, subplans));
        all
    }

    /// How often a slot is named.
    pub fn times(&self, slot: usize) -> usize {
        self.times.get(slot).map_or(0, |times| *times as usize)
    }

    /// Whether a slot is named at all.
    pub fn is_named(&self, slot: usize) -> bool {
        self.times(slot) > 0
    }
}

/// Notes in the hash joins of a level what they carry. Its expressions stay as they are from here on.
pub(super) fn note(query: &mut Query, subplans: &[Subplan]) {
    let Body::Select(select) = &query.body else { return };
    if select.width > SLOTS_MAX || !matches!(&*select.source, Node::Join(_) | Node::Filter { .. }) {
        return;
    }
    let width = select.width;
    let level = Named::in_level(query, width, subplans);
    let Body::Select(select) = &mut query.body else { return };
    let mut below = Named { times: vec![0; width] };
    visit(&mut select.source, 0..width, &mut Visit { level: &level, below: &mut below, subplans });
}

struct Visit<'a> {
    level: &'a Named,
    /// The namings in what has been visited.
    below: &'a mut Named,
    subplans: &'a [Subplan],
}

/// Visits a node; the slots that its rows fill.
fn visit(node: &mut Arc<Node>, slots: Range<usize>, v: &mut Visit<'_>) -> Vec<usize> {
    stack::deeper(|| match Arc::get_mut(node) {
        Some(Node::Join(join)) => visit_join(join, slots, v),
        Some(Node::Filter { input, filter }) => {
            let filled = visit(input, slots, v);
            v.below.add(filter, 0, v.subplans);
            filled
        }
        _ => {
            walk::node_exprs(node, (0, false), &mut |e, depth| v.below.add(e, depth, v.subplans));
            match &**node {
                Node::Scan(scan) => match scan.wanted.as_ref().map(Picker::wanted) {
                    Some(columns) => columns.iter().map(|column| scan.table.base + column).collect(),
                    None => slots.collect(),
                },
                _ => slots.collect(),
            }
        }
    })
}

fn visit_join(join: &mut Join, slots: Range<usize>, v: &mut Visit<'_>) -> Vec<usize> {
    let mut left = visit(&mut join.left, slots.start..join.right_base, v);
    let mut right = visit(&mut join.right, join.right_base..join.end, v);
    if let Some((of_left, of_right)) = &join.hash {
        of_left.iter().chain(of_right).for_each(|e| v.below.add(e, 0, v.subplans));
        if join.merge.is_none() {
            // PLN-9: what is left to name are the join's condition and what stands above.
            let (level, below) = (&v.level.times, &v.below.times);
            left.retain(|slot| level[*slot] > below[*slot]);
            right.retain(|slot| level[*slot] > below[*slot]);
            join.carried = Some(Carried { left: left.as_slice().into(), right: right.as_slice().into() });
        }
    }
    join.on.iter().for_each(|e| v.below.add(e, 0, v.subplans));
    if !matches!(join.kind, JoinType::Semi | JoinType::Anti) {
        left.append(&mut right);
    }
    left
}
