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
    /// Whether the scan's filter asks nothing of an entry but what the range says of it (COV-3).
    pub says_all: bool,
}

/// Ranges of the primary key and of indexes: the rows of their union, each once.
#[derive(Clone, Debug)]
pub struct Ranges {
    /// What gives them.
    pub parts: Vec<RangePart>,
    /// The conditions that they guarantee: rows are judged by them where an index can't be read.
    pub guarantees: Option<Bound>,
    /// What another index says of their rows.
    pub beside: Option<Box<Beside>>,
}

/// Ranges of an index that are read first, to leave out rows that the ranges of another one find alone (RGS-2). The conditions from which they were made
/// stay in the scan's filter.
#[derive(Clone, Debug)]
pub struct Beside {
    /// What gives them.
    pub part: RangePart,
    /// These conditions.
    pub says: Vec<Bound>,
    /// The share of the rows found by the other index that is left.
    pub share: f64,
    /// What reading the entries of both indexes costs.
    pub cost: f64,
}

impl Ranges {
    /// All their parts.
    pub fn all_parts(&self) -> impl Iterator<Item = &RangePart> {
        self.parts.iter().chain(self.beside.iter().map(|beside| &beside.part))
    }

    /// The expressions that give them, and those that they guarantee.
    pub fn exprs(&self) -> impl Iterator<Item = &Bound> {
        let said = self.beside.iter().flat_map(|beside| &beside.says);
        self.all_parts().flat_map(RangePart::exprs).chain(&self.guarantees).chain(said)
    }

    /// The same, to change.
    pub fn each_expr_mut(&mut self, f: &mut dyn FnMut(&mut Bound)) {
        self.parts.iter_mut().flat_map(RangePart::exprs_mut).for_each(&mut *f);
        self.guarantees.iter_mut().for_each(&mut *f);
        if let Some(beside) = &mut self.beside {
            beside.part.exprs_mut().chain(&mut beside.says).for_each(f);
        }
    }
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
    /// The bound below of the next columns together (RWE-1), beside `low` and `high`.
    pub row_low: Option<RowEnd>,
    /// The bound above.
    pub row_high: Option<RowEnd>,
}

/// An end of a range by several columns that follow each other in a key, all ascending or all descending: `(a, b) > (1, 2)`.
#[derive(Clone, Debug)]
pub struct RowEnd {
    /// Their values.
    pub values: Vec<Bound>,
    /// Whether a row with these values belongs to the range.
    pub inclusive: bool,
}

impl RangePart {
    /// The expressions that give it.
    pub fn exprs(&self) -> impl Iterator<Item = &Bound> {
        let rows = self.row_low.iter().chain(&self.row_high).flat_map(|end| &end.values);
        let ends = self.low.iter().chain(&self.high).map(|end| &end.0);
        self.columns.iter().flat_map(KeyValues::exprs).chain(ends).chain(self.pattern.iter().map(|p| &p.1)).chain(rows)
    }

    /// The same, to change.
    pub fn exprs_mut(&mut self) -> impl Iterator<Item = &mut Bound> {
        let rows = self.row_low.iter_mut().chain(&mut self.row_high).flat_map(|end| &mut end.values);
        let ends = self.low.iter_mut().chain(&mut self.high).map(|end| &mut end.0);
        let listed = self.columns.iter_mut().flat_map(KeyValues::exprs_mut);
        listed.chain(ends).chain(self.pattern.iter_mut().map(|p| &mut p.1)).chain(rows)
    }

    /// Whether something is said of the column behind those with known values.
    pub fn is_bounded(&self) -> bool {
        self.low.is_some()
            || self.high.is_some()
            || self.pattern.is_some()
            || self.row_low.is_some()
            || self.row_high.is_some()
    }
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
    /// Each value that the column has, nulls too where it is not bounded: they are found by jumping from one to the next.
    Each(EachValue),
}

/// The values of a column of which a condition says nothing, or bounds them.
#[derive(Clone, Debug)]
pub struct EachValue {
    /// So many are expected.
    pub expected: f64,
    /// The bound below; whether it belongs to the values.
    pub low: Option<(Bound, bool)>,
    /// The bound above.
    pub high: Option<(Bound, bool)>,
}

impl KeyValues {
    /// The expressions that give them.
    pub fn exprs(&self) -> impl Iterator<Item = &Bound> {
        let (listed, ends) = match self {
            KeyValues::One(e) | KeyValues::Array(e) => (std::slice::from_ref(e), None),
            KeyValues::List(list) => (list.as_slice(), None),
            KeyValues::Null => (&[][..], None),
            KeyValues::Each(each) => (&[][..], Some(each.low.iter().chain(&each.high))),
        };
        listed.iter().chain(ends.into_iter().flatten().map(|end| &end.0))
    }

    /// The same, to change.
    pub fn exprs_mut(&mut self) -> impl Iterator<Item = &mut Bound> {
        let (listed, ends) = match self {
            KeyValues::One(e) | KeyValues::Array(e) => (std::slice::from_mut(e), None),
            KeyValues::List(list) => (list.as_mut_slice(), None),
            KeyValues::Null => (&mut [][..], None),
            KeyValues::Each(each) => (&mut [][..], Some(each.low.iter_mut().chain(&mut each.high))),
        };
        listed.iter_mut().chain(ends.into_iter().flatten().map(|end| &mut end.0))
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
