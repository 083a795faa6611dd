//! The plan of a join.

use super::plan::Node;
use clearway_values::expr::Bound;
use std::sync::Arc;

/// The kinds of joins that are executed; a right join comes as a left one with its sides exchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinType {
    /// Matching pairs.
    Inner,
    /// And every left row without a match.
    Left,
    /// And every row of either side without a match.
    Full,
    /// Left rows with a match, each once; the right side's slots are null.
    Semi,
    /// Left rows without a match, likewise.
    Anti,
}

/// A join.
#[derive(Clone, Debug)]
pub struct Join {
    /// Its kind.
    pub kind: JoinType,
    /// The side whose rows come first.
    pub left: Arc<Node>,
    /// The other side.
    pub right: Arc<Node>,
    /// The first slot of the right side.
    pub right_base: usize,
    /// Slots up to the end of the right side.
    pub end: usize,
    /// The condition, but for what the sides and `hash` take over.
    pub on: Option<Bound>,
    /// Equal expressions of left and right: the right side is read once into a hash table by them.
    pub hash: Option<(Vec<Bound>, Vec<Bound>)>,
    /// Both sides come in the order of these expressions: they are merged instead.
    pub merge: Option<Merge>,
    /// The hash table has the rows of the left side, and those of the right side are looked up in it: rows come in no order.
    pub builds_left: bool,
    /// What a hash join carries; none: everything.
    pub carried: Option<Carried>,
}

impl Join {
    /// A hash table has one side: its rows that the other side does not meet are given too.
    pub fn keeps_built(&self) -> bool {
        match self.builds_left {
            true => matches!(self.kind, JoinType::Left | JoinType::Anti),
            false => self.kind == JoinType::Full,
        }
    }

    /// Whether the table has to know which of its rows were met.
    pub fn marks_built(&self) -> bool {
        self.keeps_built() || self.builds_left && self.kind == JoinType::Semi
    }

    /// Rows of the side that is looked up are given also if they meet none.
    pub fn keeps_probed(&self) -> bool {
        !self.builds_left && matches!(self.kind, JoinType::Left | JoinType::Full | JoinType::Anti)
    }
}

/// Slots of either side whose values are needed above a hash join or in its condition (PLN-9); the others are null in its rows.
#[derive(Clone, Debug)]
pub struct Carried {
    /// Those of the left side.
    pub left: Box<[usize]>,
    /// Those of the right side.
    pub right: Box<[usize]>,
}

/// How the sides of a join are merged.
#[derive(Clone, Debug)]
pub struct Merge {
    /// Whether each key descends, and whether its nulls stand first.
    pub by: Vec<(bool, bool)>,
    /// What stands above relies on the order of the left side, too (PLN-5).
    pub is_relied_on: bool,
}
