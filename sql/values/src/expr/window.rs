//! Window functions: which exist, and a bound call with its window.

use super::aggregate::AggregateCall;
use super::bound::Bound;
use crate::syntax::window::{Exclude, Frame, FrameBound};
use crate::types::SqlType;

/// What a call with OVER computes.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum WindowFunction {
    RowNumber,
    Rank,
    DenseRank,
    PercentRank,
    CumeDist,
    Ntile,
    /// The value so many rows before (false) or behind (true).
    Shifted(bool),
    FirstValue,
    LastValue,
    NthValue,
    Aggregate(Box<AggregateCall>),
}

/// The functions that only windows have: name, what they compute, how many arguments they take at least and at most.
static FUNCTIONS: &[(&str, WindowFunction, usize, usize)] = &[
    ("row_number", WindowFunction::RowNumber, 0, 0),
    ("rank", WindowFunction::Rank, 0, 0),
    ("dense_rank", WindowFunction::DenseRank, 0, 0),
    ("percent_rank", WindowFunction::PercentRank, 0, 0),
    ("cume_dist", WindowFunction::CumeDist, 0, 0),
    ("ntile", WindowFunction::Ntile, 1, 1),
    ("lag", WindowFunction::Shifted(false), 1, 3),
    ("lead", WindowFunction::Shifted(true), 1, 3),
    ("first_value", WindowFunction::FirstValue, 1, 1),
    ("last_value", WindowFunction::LastValue, 1, 1),
    ("nth_value", WindowFunction::NthValue, 2, 2),
];

/// Whether a name is that of a function that only windows have.
pub fn is_window_function(name: &str) -> bool {
    FUNCTIONS.iter().any(|f| f.0 == name)
}

/// The function of a name with so many arguments.
pub fn window_function(name: &str, args: usize) -> Option<WindowFunction> {
    FUNCTIONS.iter().find(|f| f.0 == name && (f.2..=f.3).contains(&args)).map(|f| f.1.clone())
}

/// A call with OVER.
#[derive(Clone, Debug)]
pub struct WindowCall {
    /// What it computes; an aggregate has its arguments and its filter itself.
    pub function: WindowFunction,
    /// The arguments of any other function.
    pub args: Vec<Bound>,
    /// Its window among those of the level.
    pub window: usize,
    /// The type of its result.
    pub ty: SqlType,
}

impl WindowCall {
    fn exprs(&self) -> impl Iterator<Item = &Bound> {
        let aggregate = match &self.function {
            WindowFunction::Aggregate(call) => Some(call),
            _ => None,
        };
        self.args.iter().chain(aggregate.into_iter().flat_map(|a| a.exprs()))
    }

    /// Its expressions, to change.
    pub fn exprs_mut(&mut self) -> Vec<&mut Bound> {
        let mut out: Vec<&mut Bound> = self.args.iter_mut().collect();
        if let WindowFunction::Aggregate(call) = &mut self.function {
            out.extend(call.exprs_mut());
        }
        out
    }

    /// Calls `f` for each of its expressions.
    pub fn each(&self, f: &mut dyn FnMut(&Bound)) {
        self.exprs().for_each(f);
    }

    pub(super) fn is_volatile(&self) -> bool {
        self.exprs().any(Bound::is_volatile)
    }

    pub(super) fn same(&self, other: &WindowCall) -> bool {
        let alike = match (&self.function, &other.function) {
            (WindowFunction::Aggregate(a), WindowFunction::Aggregate(b)) => a.same(b),
            (WindowFunction::Shifted(a), WindowFunction::Shifted(b)) => a == b,
            (a, b) => std::mem::discriminant(a) == std::mem::discriminant(b),
        };
        let args = self.args.len() == other.args.len() && self.args.iter().zip(&other.args).all(|(a, b)| a.same(b));
        alike && args && self.window == other.window
    }
}

/// A window.
#[derive(Clone, Debug)]
pub struct WindowDefinition {
    /// PARTITION BY.
    pub partition: Vec<Bound>,
    /// ORDER BY: key, descending, nulls first.
    pub order: Vec<(Bound, bool, bool)>,
    /// The frame; none: from the first row to the last peer of the current one.
    pub frame: Option<Frame<Bound>>,
}

impl WindowDefinition {
    /// Its expressions, to change.
    pub fn exprs_mut(&mut self) -> Vec<&mut Bound> {
        let mut out: Vec<&mut Bound> = self.partition.iter_mut().collect();
        out.extend(self.order.iter_mut().map(|o| &mut o.0));
        if let Some(frame) = &mut self.frame {
            for bound in [&mut frame.start, &mut frame.end] {
                if let FrameBound::Preceding(e) | FrameBound::Following(e) = bound {
                    out.push(e);
                }
            }
        }
        out
    }

    /// Calls `f` for each of its expressions.
    pub fn each(&self, f: &mut dyn FnMut(&Bound)) {
        let bounds = self.frame.iter().flat_map(|f| [&f.start, &f.end]).filter_map(FrameBound::offset);
        self.partition.iter().chain(self.order.iter().map(|o| &o.0)).chain(bounds).for_each(f);
    }

    /// Whether two windows have the same partitions in the same order.
    pub fn same_order(&self, other: &WindowDefinition) -> bool {
        self.partition.len() == other.partition.len()
            && self.order.len() == other.order.len()
            && self.partition.iter().zip(&other.partition).all(|(a, b)| a.same(b))
            && self.order.iter().zip(&other.order).all(|(a, b)| a.0.same(&b.0) && (a.1, a.2) == (b.1, b.2))
    }

    pub(super) fn same(&self, other: &WindowDefinition) -> bool {
        let bound = |a: &FrameBound<Bound>, b: &FrameBound<Bound>| {
            std::mem::discriminant(a) == std::mem::discriminant(b)
                && match (a.offset(), b.offset()) {
                    (Some(a), Some(b)) => a.same(b),
                    _ => true,
                }
        };
        let frames = match (&self.frame, &other.frame) {
            (None, None) => true,
            (Some(a), Some(b)) => {
                a.mode == b.mode && a.exclude == b.exclude && bound(&a.start, &b.start) && bound(&a.end, &b.end)
            }
            _ => false,
        };
        frames && self.same_order(other)
    }

    /// The rows that the frame leaves out.
    pub fn exclude(&self) -> Exclude {
        self.frame.as_ref().map_or(Exclude::NoOthers, |f| f.exclude)
    }
}
