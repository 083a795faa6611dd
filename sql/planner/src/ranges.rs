//! The part of a plan that reads a table by several ranges.

use clearway_engine::table::entry::EntryPicker;
use clearway_values::expr::Bound;
use clearway_values::expr::operators::Op;

/// A range of a key: leading columns equal, the next one bounded.
#[derive(Clone, Debug, Default)]
pub struct Range {
    /// Values of the leading columns.
    pub equal: Vec<Bound>,
    /// The bound below of the next column; whether it belongs to the range.
    pub low: Option<(Bound, bool)>,
    /// The bound above.
    pub high: Option<(Bound, bool)>,
}

/// Ranges of the primary key and of indexes: the rows of their union, each once.
#[derive(Clone, Debug)]
pub struct Ranges {
    /// What gives them.
    pub parts: Vec<RangePart>,
    /// The conditions that they guarantee: rows are judged by them where an index can't be read.
    pub guarantees: Option<Bound>,
}

/// Ranges of one key.
#[derive(Clone, Debug, Default)]
pub struct RangePart {
    /// The index, by its place among the shape's indexes; none: the primary key.
    pub index: Option<usize>,
    /// Values of the leading columns; each combination is a range.
    pub columns: Vec<KeyValues>,
    /// The bound below of the next column; whether it belongs to the range.
    pub low: Option<(Bound, bool)>,
    /// The bound above.
    pub high: Option<(Bound, bool)>,
    /// The next column fits a pattern, which need not be judged by the beginning of its text alone.
    pub pattern: Option<(Op, Bound)>,
}

/// The values of a column of a key.
#[derive(Clone, Debug)]
pub enum KeyValues {
    /// One.
    One(Bound),
    /// Each of these.
    List(Vec<Bound>),
    /// The elements of an array.
    Array(Bound),
    /// NULL.
    Null,
    /// Each value that the column has, nulls too: they are found by jumping from one to the next. So many are expected.
    Each(f64),
}

impl KeyValues {
    /// The expressions that give them.
    pub fn exprs(&self) -> impl Iterator<Item = &Bound> {
        match self {
            KeyValues::One(e) | KeyValues::Array(e) => std::slice::from_ref(e).iter(),
            KeyValues::List(list) => list.iter(),
            KeyValues::Null | KeyValues::Each(_) => std::slice::Iter::default(),
        }
    }

    /// The same, to change.
    pub fn exprs_mut(&mut self) -> impl Iterator<Item = &mut Bound> {
        match self {
            KeyValues::One(e) | KeyValues::Array(e) => std::slice::from_mut(e).iter_mut(),
            KeyValues::List(list) => list.iter_mut(),
            KeyValues::Null | KeyValues::Each(_) => std::slice::IterMut::default(),
        }
    }

    /// The one value.
    pub fn one(&self) -> Option<&Bound> {
        match self {
            KeyValues::One(e) => Some(e),
            _ => None,
        }
    }
}

/// How a scan jumps over rows.
#[derive(Clone, Copy, Debug)]
pub struct Jump {
    /// How many leading columns tell rows apart.
    pub columns: usize,
    /// So many rows are expected.
    pub rows: f64,
}

/// How a scan reads the entries of an index instead of rows.
#[derive(Clone, Debug)]
pub struct Entries {
    /// Reads the columns of an entry.
    pub picker: EntryPicker,
    /// What reading an entry costs, as a share of reading a row.
    pub each: f64,
    /// Without them the whole table would be read.
    pub of_all: bool,
}
