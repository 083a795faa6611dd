//! Estimates how many different values an expression has among the rows of a source, and with that how many rows a semi join lets through.
//!
//! # Invariants
//! - SEM-1: a semi join is estimated by the different values of its keys, as PostgreSQL's `eqjoinsel_semi` does: as many of the left
//!   side's different values are met as the right side has different values; an anti join lets the other rows through. Where nothing is known of
//!   one of them, half of the rows are met.

use super::estimate::SOME;
use super::from::{Item, Leaf};
use super::joins::Joins;
use super::plan::{Access, Body, Grouping, Join, Node, Query, Range, Scan, TableSlot, split};
use super::walk;
use clearway_values::expr::operators::Op;
use clearway_values::expr::{Bound, BoundKind};
use std::ops;
use std::sync::Arc;

/// The share of rows that a key meets of which nothing is known.
const HALF: f64 = 0.5;

/// Where slots get their values from.
enum Origin<'a> {
    Table(&'a TableSlot),
    Scan(&'a Scan),
    Query(&'a Arc<Query>),
}

impl<'a> Origin<'a> {
    /// The column behind the slot at this place; of a complete plan, whose scans have slots for what is read alone (PLN-10), too.
    fn column(&self, place: usize) -> Option<(&'a TableSlot, usize)> {
        match self {
            Origin::Table(table) => Some((table, place)),
            Origin::Scan(scan) => match &scan.dense {
                Some(places) => Some((&scan.table, places.iter().position(|p| *p == place)?)),
                None => Some((&scan.table, place)),
            },
            Origin::Query(_) => None,
        }
    }
}

/// The slots of a source of which something may be known.
#[derive(Default)]
pub(super) struct Columns<'a>(Vec<(ops::Range<usize>, Origin<'a>)>);

/// What is known of an expression's values.
#[derive(Clone, Copy)]
pub(super) struct Differing {
    /// How many there are.
    pub values: f64,
    /// Among so many rows.
    pub among: f64,
    /// The share of nulls.
    pub nulls: f64,
    /// Whether that rests on statistics.
    pub is_known: bool,
}

impl<'a> Columns<'a> {
    /// Those of items.
    pub fn of_items(items: impl Iterator<Item = &'a Item>) -> Columns<'a> {
        let mut out = Columns::default();
        for item in items {
            item.leaves(&mut |leaf, base, end| match leaf {
                Leaf::Table(table) => out.0.push((base..end, Origin::Table(table))),
                Leaf::Derived { query, .. } => out.0.push((base..end, Origin::Query(query))),
                _ => {}
            });
        }
        out
    }

    /// Those of a node.
    pub fn of_node(node: &'a Node) -> Columns<'a> {
        let mut out = Columns::default();
        out.add(node);
        out
    }

    fn add(&mut self, node: &'a Node) {
        match node {
            Node::Scan(s) => self.0.push((s.table.base..s.table.base + s.width(), Origin::Scan(s))),
            Node::Derived(d) => self.0.push((d.base..d.base + d.query.columns.len(), Origin::Query(&d.query))),
            Node::Filter { input, .. } => self.add(input),
            Node::Join(j) => clearway_base::stack::deeper(|| {
                self.add(&j.left);
                self.add(&j.right);
            }),
            _ => {}
        }
    }
}

impl Joins<'_> {
    /// What is known of the values of an expression; none: nothing.
    pub fn differing(&self, columns: &Columns<'_>, e: &Bound) -> Option<Differing> {
        let slot = match &e.kind {
            BoundKind::Column { index, level: 0 } => *index,
            BoundKind::Cast { arg, .. } => return self.differing(columns, arg),
            _ => return None,
        };
        let (slots, origin) = columns.0.iter().find(|(slots, _)| slots.contains(&slot))?;
        Some(match origin {
            Origin::Table(_) | Origin::Scan(_) => {
                let (table, column) = origin.column(slot - slots.start)?;
                let known = (column < table.types.len()).then(|| self.figures.distinct(table, column)).flatten();
                let nulls = if column < table.types.len() { self.figures.null(table, column) } else { 0.0 };
                let values = known.unwrap_or_else(|| self.figures.rows(table).min(super::joins::DISTINCT));
                Differing { values, among: self.figures.rows(table), nulls, is_known: known.is_some() }
            }
            Origin::Query(query) => {
                let rows = self.shared(query).rows;
                Differing { values: rows, among: rows, nulls: 0.0, is_known: true }
            }
        })
    }

    /// The bytes of an expression's values on average; none: nothing is known.
    pub fn bytes(&self, columns: &Columns<'_>, e: &Bound) -> Option<f64> {
        let BoundKind::Column { index, level: 0 } = e.kind else { return None };
        let (slots, origin) = columns.0.iter().find(|(slots, _)| slots.contains(&index))?;
        match origin {
            Origin::Query(_) => None,
            origin => {
                let (table, column) = origin.column(index - slots.start)?;
                (column < table.types.len()).then(|| self.figures.width(table, column))
            }
        }
    }

    /// The rows of a source with different values of these expressions, of so many rows.
    pub fn different_rows(&self, columns: &Columns<'_>, keys: &[Bound], rows: f64) -> f64 {
        let met = |key: &Bound| {
            let Some(found) = self.differing(columns, key) else { return super::joins::DISTINCT };
            // As PostgreSQL's `estimate_num_groups`: each row of the table is among these with the same chance.
            let left_out = (1.0 - rows / found.among.max(1.0)).max(0.0);
            let values = found.values.max(1.0);
            values * (1.0 - left_out.powf(found.among.max(1.0) / values))
        };
        keys.iter().map(met).product::<f64>().min(rows).max(1.0)
    }

    /// How many groups so many rows have.
    pub fn groups(&self, columns: &Columns<'_>, grouping: &Grouping, rows: f64) -> f64 {
        let of = |keys: &[Bound]| self.different_rows(columns, keys, rows);
        let Some(sets) = &grouping.sets else { return of(&grouping.keys) };
        let keys = |set: &[usize]| set.iter().map(|at| grouping.keys[*at].clone()).collect::<Vec<_>>();
        sets.iter().map(|set| of(&keys(set))).sum()
    }

    /// The share of the rows of the left side that a condition of a semi join lets through, whose right side has so many rows.
    fn let_through(&self, (lefts, rights): (&Columns<'_>, &Columns<'_>), right_rows: f64, e: &Bound) -> f64 {
        match &e.kind {
            BoundKind::Binary { op: Op::Eq, left, right } => {
                let pair = |l: &Bound, r: &Bound| Some((self.differing(lefts, l)?, self.differing(rights, r)?));
                match pair(left, right).or_else(|| pair(right, left)) {
                    Some((l, r)) if l.is_known && r.is_known => {
                        let met = (r.values.min(right_rows) / l.values.max(1.0)).min(1.0);
                        // An inner join of the same sides has no fewer rows.
                        (1.0 - l.nulls) * met.min(right_rows * (1.0 - r.nulls) / l.values.max(r.values).max(1.0))
                    }
                    _ => HALF,
                }
            }
            BoundKind::Binary { op: Op::Ne, .. } => 1.0,
            _ => SOME,
        }
    }

    /// The share of the rows of the left side that meet a row of the right side (SEM-1).
    pub fn met<'e>(
        &self,
        sides: (&Columns<'_>, &Columns<'_>),
        right_rows: f64,
        conditions: impl Iterator<Item = &'e Bound>,
    ) -> f64 {
        conditions.map(|e| self.let_through(sides, right_rows, e)).product()
    }

    /// The rows of a finished inner join of which one side gives each row once, as the side of a semi join does (SEM-1); none: it is another join.
    pub fn by_side(&self, join: &Join, (left_rows, right_rows): (f64, f64)) -> Option<f64> {
        let is_side = |node: &Node| matches!(node, Node::Derived(derived) if matches!(&derived.query.body, Body::Select(select) if select.is_side));
        let (lefts, rights) = (Columns::of_node(&join.left), Columns::of_node(&join.right));
        let conditions = hashed_equalities(join);
        match (is_side(&join.left), is_side(&join.right)) {
            (_, true) => Some(left_rows * self.met((&lefts, &rights), right_rows, conditions.iter())),
            (true, _) => Some(right_rows * self.met((&rights, &lefts), left_rows, conditions.iter())),
            _ => None,
        }
    }

    /// The share of the rows of a finished join's left side that meet one of the right side, which has so many rows.
    pub fn met_by(&self, join: &Join, right_rows: f64) -> f64 {
        let (lefts, rights) = (Columns::of_node(&join.left), Columns::of_node(&join.right));
        let mut conditions: Vec<Bound> = join.on.iter().cloned().flat_map(split).collect();
        conditions.extend(hashed_equalities(join));
        let mut rows = right_rows;
        if let (None, Node::Scan(scan)) = (&join.hash, &*join.right) {
            // The conditions of the join are those of the scan: `right_rows` are those of one row of the left side.
            let outside = |e: &Bound| walk::slots(e).is_some_and(|(low, _)| low < join.right_base);
            let filters: Vec<Bound> = scan.filter.iter().cloned().flat_map(split).collect();
            let (of_join, own): (Vec<Bound>, Vec<Bound>) = filters.into_iter().partition(outside);
            rows = (self.figures.rows(&scan.table) * self.figures.share_of_all(&scan.table, &own)).max(1.0);
            conditions.extend(
                equalities(&scan.table, &scan.access)
                    .into_iter()
                    .filter(|e| outside(e) && !of_join.iter().any(|known| walk::same(known, e))),
            );
            conditions.extend(of_join);
        }
        self.met((&lefts, &rights), rows, conditions.iter())
    }
}

/// The equalities of a hash join.
fn hashed_equalities(join: &Join) -> Vec<Bound> {
    let pairs = join.hash.iter().flat_map(|(l, r)| l.iter().zip(r));
    pairs.map(|(l, r)| super::implied::equality(l.clone(), r.clone())).collect()
}

/// What an access by a key says of columns of the table.
fn equalities(table: &TableSlot, access: &Access) -> Vec<Bound> {
    let pair = |(value, column): (&Bound, &usize)| {
        let ty = *table.types.get(*column)?;
        let kind = BoundKind::Column { index: table.base + column, level: 0 };
        Some(super::implied::equality(Bound { kind, ty, pos: value.pos }, value.clone()))
    };
    let all = |values: &[Bound], columns: &[usize]| values.iter().zip(columns).filter_map(pair).collect();
    let range = |r: &Range, columns: &[usize]| all(&r.equal, columns);
    match access {
        Access::Keys(keys) => keys.first().map_or_else(Vec::new, |key| all(key, &table.shape.key)),
        Access::KeyRange(r) => range(r, &table.shape.key),
        Access::Index(place, r) => range(r, &table.shape.indexes[*place].columns),
        Access::Full | Access::Ranges(_) | Access::Tids(_) => Vec::new(),
    }
}
