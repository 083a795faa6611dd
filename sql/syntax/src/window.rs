//! The syntax tree of windows and of grouping sets.

use crate::ast::{Expr, OrderBy};
use crate::error::Pos;

/// What stands behind OVER.
#[derive(Clone, Debug, PartialEq)]
pub enum Over {
    /// The name of a window.
    Name(String, Pos),
    /// A window of its own.
    Spec(WindowSpec),
}

/// `(base PARTITION BY ... ORDER BY ... frame)`.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowSpec {
    /// The window that it builds on.
    pub base: Option<String>,
    /// PARTITION BY.
    pub partition_by: Vec<Expr>,
    /// ORDER BY.
    pub order_by: Vec<OrderBy>,
    /// The frame, where written.
    pub frame: Option<Frame<Expr>>,
    /// Where it begins.
    pub pos: Pos,
}

/// The frame of a window.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame<E> {
    /// What its bounds count.
    pub mode: FrameMode,
    /// Its first row.
    pub start: FrameBound<E>,
    /// Its last row.
    pub end: FrameBound<E>,
    /// The rows that it leaves out.
    pub exclude: Exclude,
    /// Where it begins.
    pub pos: Pos,
}

/// What the bounds of a frame count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameMode {
    /// Rows.
    Rows,
    /// Values of the order.
    Range,
    /// Groups of peers.
    Groups,
}

impl FrameMode {
    /// As SQL writes it.
    pub fn sql(self) -> &'static str {
        match self {
            Self::Rows => "ROWS",
            Self::Range => "RANGE",
            Self::Groups => "GROUPS",
        }
    }
}

/// A bound of a frame.
#[derive(Clone, Debug, PartialEq)]
pub enum FrameBound<E> {
    /// UNBOUNDED PRECEDING.
    UnboundedPreceding,
    /// `n PRECEDING`.
    Preceding(E),
    /// CURRENT ROW.
    CurrentRow,
    /// `n FOLLOWING`.
    Following(E),
    /// UNBOUNDED FOLLOWING.
    UnboundedFollowing,
}

impl<E> FrameBound<E> {
    /// The offset, where there is one.
    pub fn offset(&self) -> Option<&E> {
        match self {
            Self::Preceding(e) | Self::Following(e) => Some(e),
            Self::UnboundedPreceding | Self::CurrentRow | Self::UnboundedFollowing => None,
        }
    }
}

/// The rows that a frame leaves out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exclude {
    /// None.
    NoOthers,
    /// The current row.
    CurrentRow,
    /// The current row and its peers.
    Group,
    /// The peers of the current row.
    Ties,
}

/// An item of GROUP BY.
#[derive(Clone, Debug, PartialEq)]
pub enum GroupItem {
    /// Keys that belong together: one, or those of a list in parentheses; none for `()`.
    Keys(Vec<Expr>),
    /// ROLLUP.
    Rollup(Vec<Vec<Expr>>),
    /// CUBE.
    Cube(Vec<Vec<Expr>>),
    /// GROUPING SETS.
    Sets(Vec<GroupItem>),
}

impl WindowSpec {
    /// Its direct expressions.
    pub fn exprs(&self) -> impl Iterator<Item = &Expr> {
        let bounds = self.frame.iter().flat_map(|f| [&f.start, &f.end]).filter_map(FrameBound::offset);
        self.partition_by.iter().chain(self.order_by.iter().map(|o| &o.expr)).chain(bounds)
    }
}
