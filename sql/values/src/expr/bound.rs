//! Bound expressions: every name is resolved and every type is known.

use super::functions::Function;
use super::host::HostFunction;
use super::operators::Op;
use crate::error::Pos;
use crate::syntax::ast::Truth;
use crate::types::datum::RowShape;
use crate::types::{Datum, SqlType};
use clearway_base::stack;
use std::sync::Arc;

/// A bound expression.
#[derive(Clone, Debug)]
pub struct Bound {
    /// What it is.
    pub kind: BoundKind,
    /// The type of its value.
    pub ty: SqlType,
    /// Where it stands in the text.
    pub pos: Pos,
}

/// How a subquery is used.
#[derive(Clone, Debug)]
pub enum SubqueryUse {
    /// Its one value.
    Scalar,
    /// Whether it has rows.
    Exists,
    /// Its values as an array.
    Array,
    /// `left op ANY/ALL (query)`; the first argument is the left side.
    Quantified {
        /// The operator.
        op: Op,
        /// ALL rather than ANY.
        all: bool,
    },
    /// `(a, b) op (query)` with its one row; the arguments are the left sides.
    Row {
        /// The comparison.
        op: Op,
    },
    /// Its one row, whose fields UPDATE assigns to several columns; a row of nulls if it has none.
    Fields {
        /// The columns by their numbers.
        columns: Arc<[usize]>,
    },
}

/// What the planner replaces before a plan is complete, when it knows where the value will stand in a row.
#[derive(Clone, Debug)]
pub enum Unplaced {
    /// The value of the n-th window function of the query.
    Window(usize),
    /// The value of the n-th function of the select list that gives rows.
    Set(usize),
    /// GROUPING of these keys.
    Grouping(Vec<Bound>),
}

/// The kinds of bound expressions.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum BoundKind {
    Const(Datum),
    /// A column by its slot; `level` counts enclosing queries outward.
    Column {
        index: usize,
        level: u16,
    },
    /// `$n`, from 1.
    Param(u32),
    Binary {
        op: Op,
        left: Box<Bound>,
        right: Box<Bound>,
    },
    Prefix {
        op: Op,
        arg: Box<Bound>,
    },
    And(Vec<Bound>),
    Or(Vec<Bound>),
    Not(Box<Bound>),
    IsNull {
        arg: Box<Bound>,
        negated: bool,
    },
    IsTruth {
        arg: Box<Bound>,
        truth: Truth,
        negated: bool,
    },
    IsDistinct {
        left: Box<Bound>,
        right: Box<Bound>,
        negated: bool,
    },
    /// All of one comparable type.
    InList {
        arg: Box<Bound>,
        list: Vec<Bound>,
        negated: bool,
    },
    /// Over an array.
    Quantified {
        left: Box<Bound>,
        op: Op,
        all: bool,
        array: Box<Bound>,
    },
    Case {
        whens: Vec<(Bound, Bound)>,
        otherwise: Box<Bound>,
    },
    Coalesce(Vec<Bound>),
    MinMax {
        list: Vec<Bound>,
        greatest: bool,
    },
    Cast {
        arg: Box<Bound>,
        explicit: bool,
    },
    Call {
        function: &'static Function,
        args: Vec<Bound>,
    },
    /// A call whose last argument is an array of the arguments that repeat.
    Spread {
        function: &'static Function,
        args: Vec<Bound>,
    },
    /// `a[i:j]`.
    Slice {
        arg: Box<Bound>,
        /// Lower and upper bound of each dimension; a constant NULL of type unknown stands for one that is left out.
        bounds: Vec<Bound>,
    },
    /// A whole row of known shape; NULL where `absent` holds: an outer join has no row of the relation.
    Record {
        items: Vec<Bound>,
        shape: Arc<RowShape>,
        absent: Option<Box<Bound>>,
    },
    Host {
        function: HostFunction,
        args: Vec<Bound>,
    },
    Array(Vec<Bound>),
    Subscript {
        arg: Box<Bound>,
        index: Vec<Bound>,
    },
    Row(Vec<Bound>),
    /// The value of the n-th aggregate of the query.
    Aggregate(usize),
    /// Only while a query is being planned.
    Unplaced(Unplaced),
    Subquery {
        id: usize,
        usage: SubqueryUse,
        args: Vec<Bound>,
        /// It refers to rows of queries around it.
        correlated: bool,
    },
}

impl Bound {
    /// A constant.
    pub fn constant(value: Datum, ty: impl Into<SqlType>, pos: Pos) -> Self {
        Self { kind: BoundKind::Const(value), ty: ty.into(), pos }
    }

    /// The direct children, in order of evaluation.
    pub fn children(&self) -> Vec<&Bound> {
        use BoundKind as K;
        match &self.kind {
            K::Const(_) | K::Column { .. } | K::Param(_) | K::Aggregate(_) => Vec::new(),
            K::Unplaced(Unplaced::Window(_) | Unplaced::Set(_)) => Vec::new(),
            K::Unplaced(Unplaced::Grouping(list)) => list.iter().collect(),
            K::Binary { op: _, left, right } | K::IsDistinct { left, right, negated: _ } => vec![left, right],
            K::Prefix { op: _, arg } | K::Not(arg) | K::IsNull { arg, negated: _ } => vec![arg],
            K::IsTruth { arg, .. } | K::Cast { arg, explicit: _ } => vec![arg],
            K::And(list) | K::Or(list) | K::Coalesce(list) | K::Array(list) | K::Row(list) => list.iter().collect(),
            K::MinMax { list, greatest: _ } => list.iter().collect(),
            K::InList { arg, list, negated: _ } => std::iter::once(&**arg).chain(list).collect(),
            K::Quantified { left, array, .. } => vec![left, array],
            K::Case { whens, otherwise } => {
                whens.iter().flat_map(|(a, b)| [a, b]).chain(std::iter::once(&**otherwise)).collect()
            }
            K::Call { args, .. } | K::Host { args, .. } | K::Subquery { args, .. } => args.iter().collect(),
            K::Spread { args, .. } => args.iter().collect(),
            K::Record { items, absent, .. } => items.iter().chain(absent.as_deref()).collect(),
            K::Slice { arg, bounds } => std::iter::once(&**arg).chain(bounds).collect(),
            K::Subscript { arg, index } => std::iter::once(&**arg).chain(index).collect(),
        }
    }

    /// The same, to change.
    pub fn children_mut(&mut self) -> Vec<&mut Bound> {
        use BoundKind as K;
        match &mut self.kind {
            K::Const(_) | K::Column { .. } | K::Param(_) | K::Aggregate(_) => Vec::new(),
            K::Unplaced(Unplaced::Window(_) | Unplaced::Set(_)) => Vec::new(),
            K::Unplaced(Unplaced::Grouping(list)) => list.iter_mut().collect(),
            K::Binary { op: _, left, right } | K::IsDistinct { left, right, negated: _ } => vec![left, right],
            K::Prefix { op: _, arg } | K::Not(arg) | K::IsNull { arg, negated: _ } => vec![arg],
            K::IsTruth { arg, .. } | K::Cast { arg, explicit: _ } => vec![arg],
            K::And(list) | K::Or(list) | K::Coalesce(list) | K::Array(list) | K::Row(list) => list.iter_mut().collect(),
            K::MinMax { list, greatest: _ } => list.iter_mut().collect(),
            K::InList { arg, list, negated: _ } => std::iter::once(&mut **arg).chain(list).collect(),
            K::Quantified { left, array, .. } => vec![left, array],
            K::Case { whens, otherwise } => {
                whens.iter_mut().flat_map(|(a, b)| [a, b]).chain(std::iter::once(&mut **otherwise)).collect()
            }
            K::Call { args, .. } | K::Host { args, .. } | K::Subquery { args, .. } => args.iter_mut().collect(),
            K::Spread { args, .. } => args.iter_mut().collect(),
            K::Record { items, absent, .. } => items.iter_mut().chain(absent.as_deref_mut()).collect(),
            K::Slice { arg, bounds } => std::iter::once(&mut **arg).chain(bounds).collect(),
            K::Subscript { arg, index } => std::iter::once(&mut **arg).chain(index).collect(),
        }
    }

    /// Whether any node satisfies `f`.
    pub fn any(&self, f: &impl Fn(&Bound) -> bool) -> bool {
        if f(self) {
            return true;
        }
        if matches!(self.kind, BoundKind::Const(_) | BoundKind::Column { .. } | BoundKind::Param(_)) {
            return false;
        }
        // As `children`, without a list: this runs for every row.
        stack::deeper(|| self.any_below(f))
    }

    fn any_below(&self, f: &impl Fn(&Bound) -> bool) -> bool {
        use BoundKind as K;
        match &self.kind {
            K::Const(_) | K::Column { .. } | K::Param(_) | K::Aggregate(_) => false,
            K::Binary { left, right, .. } | K::IsDistinct { left, right, .. } => left.any(f) || right.any(f),
            K::Prefix { arg, .. } | K::Not(arg) | K::IsNull { arg, .. } => arg.any(f),
            K::IsTruth { arg, .. } | K::Cast { arg, .. } => arg.any(f),
            K::And(list) | K::Or(list) | K::Coalesce(list) | K::Array(list) | K::Row(list) => {
                list.iter().any(|e| e.any(f))
            }
            K::Call { args: list, .. } | K::MinMax { list, .. } => list.iter().any(|e| e.any(f)),
            K::InList { arg, list, .. } | K::Subscript { arg, index: list } => {
                arg.any(f) || list.iter().any(|e| e.any(f))
            }
            K::Quantified { left, array, .. } => left.any(f) || array.any(f),
            K::Spread { args: list, .. } => list.iter().any(|e| e.any(f)),
            K::Record { items, absent, .. } => items.iter().chain(absent.as_deref()).any(|e| e.any(f)),
            K::Slice { arg, bounds } => arg.any(f) || bounds.iter().any(|e| e.any(f)),
            K::Unplaced(_) | K::Case { .. } | K::Host { .. } | K::Subquery { .. } => {
                self.children().into_iter().any(|c| c.any(f))
            }
        }
    }

    /// Whether two expressions are the same but for where they stand.
    pub fn same(&self, other: &Bound) -> bool {
        use BoundKind as K;
        if self.ty.oid != other.ty.oid {
            return false;
        }
        let alike = match (&self.kind, &other.kind) {
            // Texts of which case or blanks do not count may be equal and not the same.
            (K::Const(x), K::Const(y)) => x.is_null() == y.is_null() && x == y && x.as_str() == y.as_str(),
            (K::Column { index: i, level: l }, K::Column { index: j, level: m }) => i == j && l == m,
            (K::Param(i), K::Param(j)) => i == j,
            (K::Aggregate(i), K::Aggregate(j)) => i == j,
            (K::Unplaced(Unplaced::Window(i)), K::Unplaced(Unplaced::Window(j))) => i == j,
            (K::Unplaced(Unplaced::Set(i)), K::Unplaced(Unplaced::Set(j))) => i == j,
            (K::Unplaced(Unplaced::Grouping(_)), K::Unplaced(Unplaced::Grouping(_))) => true,
            (K::Binary { op: x, .. }, K::Binary { op: y, .. }) => x == y,
            (K::Prefix { op: x, .. }, K::Prefix { op: y, .. }) => x == y,
            (K::Quantified { op: x, all: a, .. }, K::Quantified { op: y, all: b, .. }) => x == y && a == b,
            (K::Call { function: x, .. }, K::Call { function: y, .. })
            | (K::Spread { function: x, .. }, K::Spread { function: y, .. }) => std::ptr::eq(*x, *y),
            (K::Host { function: x, .. }, K::Host { function: y, .. }) => x == y,
            (K::Subquery { id: x, .. }, K::Subquery { id: y, .. }) => x == y,
            (K::IsNull { negated: x, .. }, K::IsNull { negated: y, .. })
            | (K::InList { negated: x, .. }, K::InList { negated: y, .. })
            | (K::IsDistinct { negated: x, .. }, K::IsDistinct { negated: y, .. }) => x == y,
            (K::IsTruth { truth: t, negated: x, .. }, K::IsTruth { truth: u, negated: y, .. }) => t == u && x == y,
            (K::MinMax { greatest: x, .. }, K::MinMax { greatest: y, .. }) => x == y,
            (K::And(_), K::And(_))
            | (K::Or(_), K::Or(_))
            | (K::Not(_), K::Not(_))
            | (K::Case { .. }, K::Case { .. })
            | (K::Coalesce(_), K::Coalesce(_))
            | (K::Cast { .. }, K::Cast { .. })
            | (K::Array(_), K::Array(_))
            | (K::Subscript { .. }, K::Subscript { .. })
            | (K::Row(_), K::Row(_))
            | (K::Record { .. }, K::Record { .. }) => true,
            _ => false,
        };
        let (x, y) = (self.children(), other.children());
        alike && x.len() == y.len() && stack::deeper(|| x.iter().zip(y).all(|(x, y)| x.same(y)))
    }

    /// The lowest level whose columns it names, as levels count outward; none: it names no column. What subqueries name does not count.
    pub fn lowest_level(&self) -> Option<u16> {
        if let BoundKind::Column { level, .. } = self.kind {
            return Some(level);
        }
        stack::deeper(|| self.children().into_iter().filter_map(Bound::lowest_level).min())
    }

    /// Where its text begins.
    pub fn leftmost(&self) -> Pos {
        let below = stack::deeper(|| self.children().into_iter().map(Bound::leftmost).filter(|pos| *pos > 0).min());
        below.map_or(self.pos, |pos| pos.min(self.pos))
    }

    /// Moves it so many levels outward.
    pub fn lift(&mut self, levels: u16) {
        if let BoundKind::Column { level, .. } = &mut self.kind {
            *level -= levels;
        }
        stack::deeper(|| self.children_mut().into_iter().for_each(|c| c.lift(levels)));
    }

    /// Moves it so many levels inward.
    pub fn sink(&mut self, levels: u16) {
        if let BoundKind::Column { level, .. } = &mut self.kind {
            *level += levels;
        }
        stack::deeper(|| self.children_mut().into_iter().for_each(|c| c.sink(levels)));
    }

    /// Whether it may have another value for each row though it names no column: it calls a volatile function, or the session.
    pub fn is_volatile(&self) -> bool {
        self.any(&|e| match &e.kind {
            BoundKind::Call { function, .. } | BoundKind::Spread { function, .. } => function.volatile,
            BoundKind::Host { .. } | BoundKind::Subquery { .. } => true,
            _ => false,
        })
    }

    /// Whether it must be evaluated by [`super::eval_async`] (EXP-2).
    pub fn may_wait(&self) -> bool {
        self.any(&|e| matches!(e.kind, BoundKind::Host { .. } | BoundKind::Subquery { .. }))
    }
}
