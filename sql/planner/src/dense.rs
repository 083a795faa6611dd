//! Numbers the slots of a complete plan anew, so that the rows of a level have the slots that are read and no others.
//!
//! While a level is planned a slot tells its column at once (PLN-1), and a level has a slot for each column of each item of FROM. Rows of
//! such a level would be as wide as all its tables together.
//!
//! # Life of a plan
//! The plan is complete -> from the outermost level inwards, the slots that each level names are noted -> each item of FROM gets slots for these
//! columns alone, in their order -> the level's expressions, and what queries below name of the level, get the new numbers.
//!
//! # Invariants
//! - PLN-10: in a level that has been numbered anew, an item of FROM fills each of its slots; a slot that an expression names is one of them.
//!   A level keeps its numbers if it locks or changes rows: their slots are filled again from newer versions (EXE-2).
//! - PLN-11: an expression gets new numbers once. A subquery or a query in FROM that several levels share is copied where they differ.
//!
//! # Not here
//! EXPLAIN shows the plan as it was before: it finds the names of columns by their slots. What is measured is found by `explain::places`.

use super::carried::Named;
use super::covering::says_all;
use super::gate;
use super::plan::{Access, Action, Body, Derived, Distinct, Join, Node, Plan, Query, Scan, Subplan, SystemScan};
use super::rewrite::{Piece, node_pieces, pieces};
use super::wanted;
use clearway_base::stack;
use clearway_engine::table::pick::Picker;
use clearway_values::expr::{Bound, BoundKind};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

impl Scan {
    /// How many slots it fills.
    #[inline]
    pub fn width(&self) -> usize {
        match (&self.dense, &self.wanted) {
            (Some(_), Some(wanted)) => wanted.wanted().len(),
            _ => self.table.types.len() + 1,
        }
    }

    /// Where a column stands among its slots.
    #[inline]
    pub fn place(&self, column: usize) -> usize {
        self.dense.as_ref().map_or(column, |places| places[column])
    }
}

/// Where a slot goes that no row has any more.
const NOWHERE: usize = usize::MAX;

/// A level, and those around it.
struct Level {
    /// Where its slots have gone, and how many it has now; none: they stay.
    moved: Option<(Box<[usize]>, usize)>,
    around: Levels,
}

/// The levels that an expression sees, its own first.
type Levels = Option<Arc<Level>>;

/// Whether an expression sees the same levels here and there.
fn are_same(a: &Levels, b: &Levels) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => Arc::ptr_eq(a, b),
        (None, None) => true,
        _ => false,
    }
}

/// The new number of a slot of the level that is so many levels outward.
fn place(levels: &Levels, level: u16, slot: usize) -> usize {
    let mut at = levels;
    for _ in 0..level {
        let Some(here) = at else { return slot };
        at = &here.around;
    }
    let Some((places, width)) = at.as_ref().and_then(|here| here.moved.as_ref()) else { return slot };
    match places.get(slot) {
        Some(place) => {
            assert_ne!(*place, NOWHERE, "slot {slot} is named and not filled (PLN-10)");
            *place
        }
        // Behind the slots of the layout stand the values of aggregates and the like (PLN-8).
        None => width + (slot - places.len()),
    }
}

/// A query that several levels share: what it has become where it sees some levels.
struct Shared {
    /// It as it was: no other query gets its address.
    _was: Arc<Query>,
    now: Vec<(Levels, Arc<Query>)>,
}

struct Pass {
    /// The statement's subqueries as they were.
    were: Vec<Subplan>,
    subplans: Vec<Subplan>,
    /// Those that have new numbers, by their ids: the copy for an expression that sees some levels.
    done: HashMap<usize, Vec<(Levels, usize)>>,
    /// Of the subqueries that were added, those of which they are copies.
    copies: Vec<usize>,
    /// Queries in FROM that several levels share, by the addresses that they had.
    shared: HashMap<usize, Shared>,
}

impl Plan {
    /// Numbers its slots anew; the ids of the subqueries of which those are copies that are added behind the others (PLN-11).
    pub fn make_dense(&mut self) -> Vec<usize> {
        let subplans = std::mem::take(&mut self.subqueries);
        let (done, shared) = (HashMap::new(), HashMap::new());
        let mut pass = Pass { were: subplans.clone(), subplans, done, copies: Vec::new(), shared };
        self.changes.iter_mut().for_each(|change| pass.action(&mut change.action));
        pass.action(&mut self.action);
        self.subqueries = pass.subplans;
        pass.copies
    }
}

impl Pass {
    /// What changes rows keeps its slots; the queries in it do not.
    fn action(&mut self, action: &mut Action) {
        let mut exprs: Vec<&mut Bound> = Vec::new();
        let source = match action {
            Action::Select(query) | Action::Settings(query) => return self.query(query, &None),
            Action::Insert(insert) => {
                self.query(&mut insert.source, &None);
                exprs.extend(insert.returning.iter_mut().flatten());
                None
            }
            Action::Update(update) => {
                exprs.extend(update.filter.iter_mut().chain(&mut update.recheck));
                exprs.extend(update.set.iter_mut().map(|(_, e)| e).chain(update.returning.iter_mut().flatten()));
                Some(&mut update.source)
            }
            Action::Delete(delete) => {
                exprs.extend(delete.filter.iter_mut().chain(&mut delete.recheck));
                exprs.extend(delete.returning.iter_mut().flatten());
                Some(&mut delete.source)
            }
            Action::Merge(merge) => {
                exprs.extend(merge.filter.iter_mut().chain(&mut merge.on));
                Some(&mut merge.source)
            }
        };
        let here = Some(Arc::new(Level { moved: None, around: None }));
        if let Some(source) = source {
            node_pieces(source, &mut |piece| self.piece(piece, &here, &None));
            gate::set(source);
        }
        exprs.into_iter().for_each(|e| self.expr(e, &here));
    }

    fn piece(&mut self, piece: Piece<'_>, here: &Levels, around: &Levels) {
        match piece {
            Piece::Expr(e) => self.expr(e, here),
            Piece::Side(query) => self.query(query, around),
            Piece::From { query, is_closed: true, .. } => self.query(query, &None),
            Piece::From { query, lateral, .. } => self.query(query, if lateral { here } else { around }),
        }
    }

    fn expr(&mut self, e: &mut Bound, levels: &Levels) {
        match &mut e.kind {
            BoundKind::Column { index, level } => *index = place(levels, *level, *index),
            BoundKind::Subquery { id, .. } => *id = self.subquery(*id, levels),
            _ => {}
        }
        stack::deeper(|| e.children_mut().into_iter().for_each(|child| self.expr(child, levels)));
    }

    /// The number of a subquery where it sees these levels (PLN-11).
    fn subquery(&mut self, id: usize, levels: &Levels) -> usize {
        let Some(Subplan { query, correlated }) = self.were.get(id) else { return id };
        let (mut query, correlated) = (query.clone(), *correlated);
        let levels = if correlated { levels } else { &None };
        let known = self.done.entry(id).or_default();
        if let Some((_, id)) = known.iter().find(|(seen, _)| are_same(seen, levels)) {
            return *id;
        }
        let now = if known.is_empty() { id } else { self.subplans.len() };
        known.push((levels.clone(), now));
        if now == self.subplans.len() {
            self.copies.push(id);
            self.subplans.push(Subplan { query: query.clone(), correlated });
        }
        self.query(&mut query, levels);
        self.subplans[now].query = query;
        now
    }

    fn query(&mut self, query: &mut Arc<Query>, around: &Levels) {
        stack::deeper(|| self.query_here(query, around));
    }

    fn query_here(&mut self, query: &mut Arc<Query>, around: &Levels) {
        let was = (Arc::strong_count(query) > 1).then(|| query.clone());
        if let Some(was) = &was
            && let Some(known) = self.shared.get(&(Arc::as_ptr(was) as usize))
            && let Some((_, now)) = known.now.iter().find(|(seen, _)| are_same(seen, around))
        {
            *query = now.clone();
            return;
        }
        let this = Arc::make_mut(query);
        let moved = self.number(this);
        let here = Some(Arc::new(Level { moved, around: around.clone() }));
        pieces(this, &mut |piece| self.piece(piece, &here, around));
        if let Body::Select(select) = &mut this.body {
            gate::set(&mut select.source);
        }
        #[cfg(debug_assertions)]
        super::filled::check(this, &self.subplans);
        if let Some(was) = was {
            let address = Arc::as_ptr(&was) as usize;
            let shared = self.shared.entry(address).or_insert(Shared { _was: was, now: Vec::new() });
            shared.now.push((around.clone(), query.clone()));
        }
    }

    /// Gives the items of a level's FROM new slots: where the old ones have gone. None: they stay.
    fn number(&self, query: &mut Query) -> Option<(Box<[usize]>, usize)> {
        let Body::Select(select) = &query.body else { return None };
        if !select.locks.is_empty() || select.width == 0 || matches!(&*select.source, Node::One) {
            return None;
        }
        let width = select.width;
        let named = Named::in_level(query, width, &self.were);
        let Body::Select(select) = &mut query.body else { return None };
        let mut slots = Slots { named: &named, places: vec![NOWHERE; width], next: 0 };
        slots.node(&mut select.source, 0..width);
        select.width = slots.next;
        Some((slots.places.into(), slots.next))
    }
}

/// The slots of a level while they are given out.
struct Slots<'a> {
    named: &'a Named,
    places: Vec<usize>,
    next: usize,
}

impl Slots<'_> {
    /// Gives slots to those of these that follow `base` by so much; the first of them.
    fn give(&mut self, base: usize, columns: impl IntoIterator<Item = usize>) -> usize {
        let first = self.next;
        for column in columns {
            self.places[base + column] = self.next;
            self.next += 1;
        }
        first
    }

    /// The columns, of so many from a slot on, that an expression names.
    fn named(&self, base: usize, columns: usize) -> Vec<usize> {
        (0..columns).filter(|column| self.named.is_named(base + column)).collect()
    }

    /// Gives slots to the items of a node, which has had these.
    fn node(&mut self, node: &mut Arc<Node>, had: Range<usize>) {
        stack::deeper(|| match Arc::make_mut(node) {
            Node::Scan(scan) => self.scan(scan),
            Node::Sample(sample) => self.scan(&mut sample.scan),
            Node::System(scan) => self.system(scan),
            Node::Derived(derived) => self.derived(derived),
            Node::Join(join) => self.join(join, had),
            Node::Filter { input, .. } => self.node(input, had),
            Node::Function(scan) => scan.base = self.give(had.start, 0..had.len()),
            Node::Work(scan) => scan.base = self.give(had.start, 0..had.len()),
            // It fills none.
            Node::One => {}
        });
    }

    fn join(&mut self, join: &mut Join, had: Range<usize>) {
        self.node(&mut join.left, had.start..join.right_base);
        let right_base = self.next;
        self.node(&mut join.right, join.right_base..join.end);
        (join.right_base, join.end) = (right_base, self.next);
        if let Some(carried) = &mut join.carried {
            // What a query in FROM need not give any more is named no more.
            let placed =
                |slots: &[usize]| slots.iter().map(|slot| self.places[*slot]).filter(|p| *p != NOWHERE).collect();
            (carried.left, carried.right) = (placed(&carried.left), placed(&carried.right));
        }
    }

    fn scan(&mut self, scan: &mut Scan) {
        let (base, columns) = (scan.table.base, scan.table.types.len());
        let Some(wanted) = scan.wanted.as_ref().map(Picker::wanted) else {
            scan.table.base = self.give(base, 0..columns + 1);
            return;
        };
        let named: Vec<usize> = wanted.iter().copied().filter(|c| self.named.is_named(base + c)).collect();
        if named.len() < wanted.len() {
            wanted::want(scan, &named, self.named);
        }
        // COV-3: it can be said as long as the filter's slots tell their columns.
        debug_assert!(!matches!(&scan.access, Access::Index(_, r) if r.says_all) || says_all(scan));
        scan.beside = scan.filter.is_some().then(|| wanted::beside(scan, &named, self.named).into());
        let mut places = vec![NOWHERE; columns];
        named.iter().enumerate().for_each(|(place, column)| places[*column] = place);
        scan.table.base = self.give(base, named);
        scan.dense = Some(places.into());
    }

    fn system(&mut self, scan: &mut SystemScan) {
        let columns = scan.view.width();
        if scan.wanted.is_none() {
            scan.base = self.give(scan.base, 0..columns);
            return;
        }
        let named = self.named(scan.base, columns);
        scan.find();
        scan.base = self.give(scan.base, named.iter().copied());
        (scan.wanted, scan.is_dense) = (Some(named.into()), true);
    }

    fn derived(&mut self, derived: &mut Derived) {
        let (base, columns) = (derived.base, derived.query.columns.len());
        let named = self.named(base, columns);
        derived.base = self.give(base, named.iter().copied());
        if named.len() < columns && !leave_out(derived, &named) {
            derived.given = Some(named.into());
        }
    }
}

/// Leaves out the columns of a query in FROM that are not among these; false: it has to compute them, or others read it too.
fn leave_out(derived: &mut Derived, columns: &[usize]) -> bool {
    let Body::Select(select) = &derived.query.body else { return false };
    let is_kept = |at: usize| columns.binary_search(&at).is_ok();
    let has_effects = |(at, e): (usize, &Bound)| !is_kept(at) && e.is_volatile();
    let by_row = matches!(select.distinct, Some(Distinct::Row)) || select.sets.is_some() || derived.query.ties;
    let is_shared = derived.kept.as_ref().is_some_and(|kept| kept.uses.load(Relaxed) > 1);
    let is_kept_with = derived.kept.as_ref().is_some_and(|kept| kept.is_kept());
    if columns.is_empty() || is_shared || is_kept_with || by_row {
        return false;
    }
    if select.targets.iter().enumerate().any(has_effects) {
        return false;
    }
    let query = Arc::make_mut(&mut derived.query);
    let Body::Select(select) = &mut query.body else { return false };
    let mut at = 0..;
    select.targets.retain(|_| at.next().is_some_and(is_kept));
    let mut at = 0..;
    query.columns.retain(|_| at.next().is_some_and(is_kept));
    true
}
