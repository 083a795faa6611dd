//! The stages that compute values behind the slots of a level's rows (PLN-8): groups, window functions, set-returning functions.

use super::plan::SortKey;
use clearway_syntax::window::{Frame, FrameBound};
use clearway_values::expr::Bound;
use clearway_values::expr::aggregate::AggregateCall;
use clearway_values::expr::sets::SetCall;
use clearway_values::expr::window::WindowFunction;

/// Window functions whose windows have the same partitions in the same order.
#[derive(Clone, Debug)]
pub struct WindowStage {
    /// PARTITION BY.
    pub partition: Vec<Bound>,
    /// ORDER BY.
    pub order: Vec<SortKey>,
    /// The functions.
    pub calls: Vec<StageCall>,
}

impl WindowStage {
    /// Its expressions.
    pub fn exprs(&self) -> impl Iterator<Item = &Bound> {
        let order = self.order.iter().map(|k| &k.expr);
        self.partition.iter().chain(order).chain(self.calls.iter().flat_map(StageCall::exprs))
    }

    /// Its expressions, to change.
    pub fn exprs_mut(&mut self) -> impl Iterator<Item = &mut Bound> {
        let order = self.order.iter_mut().map(|k| &mut k.expr);
        self.partition.iter_mut().chain(order).chain(self.calls.iter_mut().flat_map(StageCall::exprs_mut))
    }
}

/// A window function.
#[derive(Clone, Debug)]
pub struct StageCall {
    /// What it computes.
    pub function: WindowFunction,
    /// Its arguments, but for an aggregate's.
    pub args: Vec<Bound>,
    /// Its frame, where written.
    pub frame: Option<Frame<Bound>>,
    /// Its place behind the row's slots.
    pub place: usize,
}

impl StageCall {
    /// Its expressions.
    pub fn exprs(&self) -> impl Iterator<Item = &Bound> {
        let aggregate = match &self.function {
            WindowFunction::Aggregate(call) => Some(call),
            _ => None,
        };
        let bounds = self.frame.iter().flat_map(|f| [&f.start, &f.end]).filter_map(FrameBound::offset);
        self.args.iter().chain(aggregate.into_iter().flat_map(|call| call.exprs())).chain(bounds)
    }

    /// Its expressions, to change.
    pub fn exprs_mut(&mut self) -> impl Iterator<Item = &mut Bound> {
        let aggregate = match &mut self.function {
            WindowFunction::Aggregate(call) => Some(call),
            _ => None,
        };
        let bounds = self.frame.iter_mut().flat_map(|f| [&mut f.start, &mut f.end]).filter_map(|b| match b {
            FrameBound::Preceding(e) | FrameBound::Following(e) => Some(e),
            FrameBound::UnboundedPreceding | FrameBound::CurrentRow | FrameBound::UnboundedFollowing => None,
        });
        self.args.iter_mut().chain(aggregate.into_iter().flat_map(|call| call.exprs_mut())).chain(bounds)
    }
}

/// Functions of the select list that give rows: each row is repeated as often as the longest of them gives rows.
#[derive(Clone, Debug)]
pub struct SetStage {
    /// The functions, in turns: arguments of a later turn may hold values of earlier ones. Each with its place behind the row's slots.
    pub turns: Vec<Vec<(SetCall, usize)>>,
    /// Whether the order of the query asks for them.
    pub in_order: bool,
    /// Whether DISTINCT asks for them; else it looks at rows before they go on several times.
    pub in_distinct: bool,
}

/// GROUP BY.
#[derive(Clone, Debug)]
pub struct Grouping {
    /// The keys; none: one group.
    pub keys: Vec<Bound>,
    /// The aggregates.
    pub calls: Vec<AggregateCall>,
    /// HAVING.
    pub having: Option<Bound>,
    /// Grouping sets, each by its keys' places; none: one set of all keys.
    pub sets: Option<Vec<Vec<usize>>>,
    /// An expression above names a slot: each group keeps its first row.
    pub keeps_row: bool,
    /// The source relies on an order (PLN-5) in which the rows of a group come one after the other.
    pub is_in_order: bool,
}

impl Grouping {
    /// Whether all rows are one group.
    pub fn is_one_group(&self) -> bool {
        self.keys.is_empty() && self.sets.is_none()
    }

    /// Whether it gives a row for each of its keys' values, and nothing is computed of the rows of a group.
    pub fn gives_each_key(&self) -> bool {
        !self.keys.is_empty() && self.sets.is_none() && self.calls.is_empty() && self.having.is_none()
    }

    /// Values that it puts behind a row's slots.
    pub fn values(&self) -> usize {
        self.calls.len() + self.keys.len() + usize::from(self.sets.is_some())
    }
}
