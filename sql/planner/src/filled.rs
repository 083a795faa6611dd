//! Checks a level of a complete plan: no expression names a slot that the rows on which it is evaluated do not fill (PLN-6, PLN-9, PLN-10).
//! Debug builds check each level that is carried out.

use super::plan::{Body, Join, Node, Query, Scan, Subplan};
use super::{rewrite, walk};
use clearway_base::stack;
use clearway_engine::table::pick::Picker;
use clearway_values::expr::Bound;

/// Which slots of a row are filled.
type Filled = Vec<bool>;

struct Check<'a> {
    subplans: &'a [Subplan],
    /// Slots of the layout: behind them stand values that stages compute (PLN-8).
    width: usize,
}

/// Checks a level.
///
/// # Panics
/// If an expression names a slot that is not filled.
pub(super) fn check(query: &Query, subplans: &[Subplan]) {
    let Body::Select(select) = &query.body else { return };
    // A level whose condition is never met reads nothing: its expressions keep slots in which nothing ever stands.
    if matches!(&*select.source, Node::One) {
        return;
    }
    let check = Check { subplans, width: select.width };
    let filled = check.node(&select.source, Filled::new(), select.width);
    walk::exprs_above(select, &mut |e| check.expr(e, 0, &filled));
    query.sort.iter().for_each(|key| check.expr(&key.expr, 0, &filled));
}

impl Check<'_> {
    fn expr(&self, e: &Bound, depth: u16, filled: &Filled) {
        rewrite::expr_slots(e, depth, self.subplans, &mut |slot| {
            let is_there = slot >= self.width || filled.get(slot).is_some_and(|filled| *filled);
            assert!(is_there, "slot {slot} of {} is named and not filled: {e:?}", self.width);
        });
    }

    /// The slots that the rows of a node fill; `filled`: those to its left, `end`: where its own end.
    fn node(&self, node: &Node, mut filled: Filled, end: usize) -> Filled {
        stack::deeper(|| {
            match node {
                Node::Join(join) => return self.join(join, filled),
                Node::Filter { input, filter } => {
                    let filled = self.node(input, filled, end);
                    self.expr(filter, 0, &filled);
                    return filled;
                }
                Node::One => return filled,
                Node::Scan(scan) => fill_scan(scan, &mut filled),
                Node::Sample(sample) => fill_scan(&sample.scan, &mut filled),
                Node::System(scan) => match (&scan.wanted, scan.is_dense) {
                    (Some(wanted), true) => filled.resize(filled.len() + wanted.len(), true),
                    (wanted, _) => {
                        let wants = |at: usize| wanted.as_ref().is_none_or(|wanted| wanted.contains(&at));
                        filled.extend((0..scan.view.width()).map(wants));
                    }
                },
                Node::Derived(derived) => {
                    let columns = derived.given.as_ref().map_or(derived.query.columns.len(), |given| given.len());
                    filled.resize(filled.len() + columns, true);
                }
                Node::Function(scan) => {
                    let columns: usize = scan.calls.iter().map(|call| call.columns.len()).sum();
                    filled.resize(filled.len() + columns + usize::from(scan.ordinality), true);
                }
                Node::Work(_) => filled.resize(end, true),
            }
            walk::node_exprs(node, (0, false), &mut |e, depth| self.expr(e, depth, &filled));
            filled
        })
    }

    fn join(&self, join: &Join, filled: Filled) -> Filled {
        let before = filled.len();
        let left = self.node(&join.left, filled, join.right_base);
        let is_nested = join.hash.is_none();
        let for_right = if is_nested { left.clone() } else { vec![false; left.len()] };
        let right = self.node(&join.right, for_right, join.end);
        if let Some((of_left, of_right)) = &join.hash {
            of_left.iter().for_each(|e| self.expr(e, 0, &left));
            of_right.iter().for_each(|e| self.expr(e, 0, &right));
        }
        let mut filled: Filled = left.iter().copied().chain(right.iter().copied().skip(left.len())).collect();
        if let (Some(carried), None) = (&join.carried, &join.merge) {
            filled[before..].fill(false);
            carried.left.iter().chain(&carried.right).for_each(|slot| filled[*slot] = true);
        }
        join.on.iter().for_each(|e| self.expr(e, 0, &filled));
        filled
    }
}

fn fill_scan(scan: &Scan, filled: &mut Filled) {
    match (&scan.wanted, &scan.dense) {
        (Some(_), Some(_)) => filled.resize(filled.len() + scan.width(), true),
        (Some(wanted), None) => {
            let wanted = Picker::wanted(wanted);
            filled.extend((0..=scan.table.types.len()).map(|column| wanted.contains(&column)));
        }
        (None, _) => filled.resize(filled.len() + scan.table.types.len() + 1, true),
    }
}
