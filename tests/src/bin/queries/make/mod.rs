//! Random statements over a schema.
//!
//! # Structure
//! ```text
//! statement   one statement of any kind, for the judges
//! block       SELECT without ORDER BY: plain, grouped, with windows, set operations
//!   source    what FROM names: tables, views, sub-selects, joins
//!   condition conditions, sub-selects in them
//!   scalar    expressions of a given type
//!   total     aggregates and window functions
//! change      INSERT, UPDATE, DELETE, MERGE
//! ```
//!
//! # Invariants
//! - QRY-1: an answer is one of rows that the standard determines, up to the form of equal values. So LIMIT, DISTINCT ON, row numbers and frames of
//!   rows have an order by all that distinguishes rows; arrays and strings are aggregated in the order of their elements; sums of floating point are exact.
//! - QRY-2: a statement is a function of the schema and of its generator's seed.
//! - QRY-3: what a statement visits is bounded: a join, or a sub-select times the rows for which it is evaluated, has an estimate of at most
//!   [`ROWS_MAX`] rows.
//!
//! # Not here
//! - Aggregates over columns of an outer query only, whole rows on the null side of a join, SEARCH and CYCLE, changes in WITH: docs/compat.md has how they differ.
//! - Functions of floating point beyond + and -: their last digit is the C library's.

mod block;
mod change;
mod condition;
mod scalar;
mod source;
mod statement;
mod total;

pub use statement::{Form, Statement};

use crate::schema::{Schema, Table, View};
use crate::types::{self, Ty};
use clearway_base::testkit::Rng;

/// See QRY-3. Of most statements, so that there are many of them.
const ROWS_MOST: u64 = 1_200;
/// Of the others.
const ROWS_MAX: u64 = 10_000;

/// A column that an expression may name.
#[derive(Clone, Debug)]
pub struct Col {
    pub name: String,
    pub ty: Ty,
    pub spread: u64,
}

/// What a FROM clause names.
#[derive(Clone, Debug)]
pub struct Item {
    pub alias: String,
    pub cols: Vec<Col>,
    /// What distinguishes its rows, as far as they can be distinguished.
    pub key: Vec<String>,
    pub rows: u64,
    /// Which table it is.
    pub table: Option<usize>,
    /// No two of its rows are the same in its key.
    pub is_distinct: bool,
}

/// A query whose rows have these columns.
#[derive(Clone, Debug)]
pub struct Block {
    pub sql: String,
    pub cols: Vec<Col>,
    pub rows: u64,
}

/// Makes statements.
pub struct Maker<'s> {
    rng: Rng,
    schema: &'s Schema,
    /// The queries of WITH.
    with: Vec<Item>,
    /// Columns of the queries around.
    outer: Vec<Col>,
    /// How often what is made is evaluated.
    times: u64,
    /// How many rows the FROM at hand gives.
    estimate: u64,
    depth: u32,
    aliases: u32,
    marks: bool,
    /// How many rows the statement may visit.
    most: u64,
}

impl<'s> Maker<'s> {
    /// A maker whose statements depend on the generator and the schema alone (QRY-2).
    pub fn new(mut rng: Rng, schema: &'s Schema) -> Self {
        let most = if schema.is_large || rng.chance(1, 10) { ROWS_MAX } else { ROWS_MOST };
        Maker {
            rng,
            schema,
            with: Vec::new(),
            outer: Vec::new(),
            times: 1,
            estimate: 1,
            depth: 0,
            aliases: 0,
            marks: true,
            most,
        }
    }

    /// A view over the schema.
    pub fn view(mut self, name: &str) -> View {
        self.marks = false;
        self.depth = 1;
        let block = self.block(None);
        View {
            name: name.to_owned(),
            columns: block.cols.into_iter().map(|col| (col.name, col.ty, col.spread)).collect(),
            rows: block.rows,
            sql: types::plain(&block.sql),
        }
    }

    fn alias(&mut self) -> String {
        self.aliases += 1;
        format!("r{}", self.aliases)
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.rng.below(100) < percent
    }

    fn one<'t>(&mut self, items: &[&'t str]) -> &'t str {
        items[self.rng.index(items.len())]
    }

    fn table(&self, item: &Item) -> Option<&'s Table> {
        item.table.map(|number| &self.schema.tables[number])
    }

    /// How many rows what is made may have.
    fn rows_max(&self) -> u64 {
        (self.most / self.times.max(1)).max(4)
    }

    /// A literal of the type, to stand beside something of the type: without a cast as a rule.
    fn literal(&mut self, ty: Ty, spread: u64) -> String {
        let text = match self.rng.below(100) {
            0..3 => return format!("null::{}", ty.name()),
            3..5 => types::extreme(&mut self.rng, ty),
            _ => types::value(&mut self.rng, ty, spread + 1),
        };
        let text = if text.starts_with('-') { format!("({text})") } else { text };
        let text = if self.marks && self.chance(60) { marked(&text, ty) } else { text };
        if self.chance(10) { format!("{text}::{}", ty.name()) } else { text }
    }

    /// A literal that has its type by itself.
    fn typed(&mut self, ty: Ty) -> String {
        let spread = *self.rng.pick(&[3, 8, 20, 60]);
        let text = self.literal(ty, spread);
        if text.ends_with(ty.name()) { text } else { format!("{text}::{}", ty.name()) }
    }

    fn small(&mut self, below: u64) -> String {
        let text = self.rng.below(below).to_string();
        if self.marks && self.chance(40) { types::marked(&text, Ty::Int4) } else { text }
    }

    /// A column of the scope, or sometimes of a query around.
    fn column(&mut self, scope: &[Item], fits: impl Fn(Ty) -> bool) -> Option<Col> {
        let outer = !self.outer.is_empty() && self.chance(15);
        let found: Vec<&Col> = if outer {
            self.outer.iter().filter(|col| fits(col.ty)).collect()
        } else {
            scope.iter().flat_map(|item| &item.cols).filter(|col| fits(col.ty)).collect()
        };
        if found.is_empty() { None } else { Some((*self.rng.pick(&found)).clone()) }
    }

    fn any_column(&mut self, scope: &[Item]) -> Option<Col> {
        self.column(scope, |_| true)
    }

    /// Makes something that is evaluated for each row of the FROM at hand and sees the columns of the scope.
    fn within<T>(&mut self, scope: &[Item], make: impl FnOnce(&mut Self) -> T) -> T {
        let (before, times, estimate) = (self.outer.len(), self.times, self.estimate);
        self.outer.extend(scope.iter().flat_map(|item| item.cols.iter().cloned()));
        self.times = times * estimate.max(1);
        self.estimate = 1;
        self.depth += 1;
        let made = make(self);
        self.depth -= 1;
        (self.times, self.estimate) = (times, estimate);
        self.outer.truncate(before);
        made
    }

    /// Makes something that sees no column of a query around: an aggregate over such a column belongs to that query.
    fn without_outer<T>(&mut self, make: impl FnOnce(&mut Self) -> T) -> T {
        let outer = std::mem::take(&mut self.outer);
        let made = make(self);
        self.outer = outer;
        made
    }
}

/// A literal that may be a parameter; its brackets stay.
fn marked(text: &str, ty: Ty) -> String {
    match text.strip_prefix('(').and_then(|inner| inner.strip_suffix(')')) {
        Some(inner) => format!("({})", types::marked(inner, ty)),
        None => types::marked(text, ty),
    }
}

/// The positions of the first columns.
fn positions(count: usize) -> String {
    (1..=count).map(|n| n.to_string()).collect::<Vec<_>>().join(", ")
}
