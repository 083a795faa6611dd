//! Set-returning functions in GROUP BY (`GROUP BY unnest(tags)`) and in windows (`OVER (PARTITION BY unnest(tags))`): their rows are made below the
//! groups and windows, as if the functions stood side by side at the end of FROM. A function of the select list that no key names gives its rows
//! above them.

use super::from::{Item, Layout, Leaf, Written};
use super::grouping::{Keys, Level};
use super::plan::JoinType;
use super::{Planner, walk};
use clearway_base::stack;
use clearway_syntax::error::{Pos, Result, SqlError, code};
use clearway_values::expr::bound::Unplaced;
use clearway_values::expr::collect::Collected;
use clearway_values::expr::sets::{SetCall, holds_set};
use clearway_values::expr::{Bound, BoundKind};
use clearway_values::types::datum::RowShape;
use clearway_values::types::{SqlType, oid, user};
use std::sync::Arc;

const WHAT: &str = "a set-returning function in an argument of another one in GROUP BY or in a window";
const OF_GROUPS: &str = "a set-returning function in a window over groups";

impl Planner<'_> {
    /// Moves the set-returning functions of the keys, and of the windows of a level without groups, into FROM.
    ///
    /// # Errors
    /// 0A000 for those with others in their arguments, and for those of windows over groups that are no keys of these.
    pub(super) fn move_set_keys(
        &mut self,
        keys: &mut Keys,
        level: &mut Level<'_>,
        collected: &mut Collected,
        layout: &mut Layout,
    ) -> Result<()> {
        let moved = to_move(keys, collected)?;
        if moved.is_empty() {
            return Ok(());
        }
        let mut calls: Vec<SetCall> = Vec::new();
        for call in moved.iter().map(|at| &collected.sets[*at]) {
            for e in &call.args {
                if let Some(pos) = aggregate_in(e) {
                    let message = "aggregate functions are not allowed in GROUP BY";
                    return Err(SqlError::new(code::GROUPING_ERROR, message).at(pos));
                }
            }
            if let Some(e) = call.args.iter().find(|e| holds_set(e)) {
                return Err(SqlError::unsupported(WHAT).at(e.pos));
            }
            call.args.iter().for_each(|e| self.note(e));
            calls.push(call.clone());
        }
        let base = layout.width;
        let mut slots = Vec::with_capacity(calls.len());
        for call in &calls {
            slots.push(match call.shape() {
                Some(shape) => Place::Row(layout.width, shape),
                None => Place::Slot(layout.width),
            });
            layout.width += call.columns.len();
        }
        let end = layout.width;
        let functions =
            Item::Leaf { kind: Leaf::Function { calls, ordinality: false }, base, end, filters: Vec::new() };
        let first = std::mem::replace(&mut layout.item, Item::one());
        layout.item = if base == 0 {
            functions
        } else {
            let (left, right) = (Box::new(first), Box::new(functions));
            Item::Join { kind: JoinType::Inner, left, right, on: Vec::new(), by_index: None, written: Written::List }
        };
        // The functions that stay get new numbers.
        let mut places = Vec::with_capacity(collected.sets.len());
        let mut kept = Vec::new();
        for (at, call) in std::mem::take(&mut collected.sets).into_iter().enumerate() {
            places.push(match moved.iter().position(|m| *m == at) {
                Some(place) => slots[place].clone(),
                None => {
                    kept.push(call);
                    Place::Call(kept.len() - 1)
                }
            });
        }
        collected.sets = kept;
        let mut put = |e: &mut Bound| replace(e, &places);
        keys.keys.iter_mut().try_for_each(&mut put)?;
        level.each_mut(&mut put)?;
        collected.windows.iter_mut().flat_map(|w| w.exprs_mut()).try_for_each(&mut put)?;
        collected.window_calls.iter_mut().flat_map(|c| c.exprs_mut()).try_for_each(&mut put)?;
        collected.sets.iter_mut().flat_map(|s| &mut s.args).try_for_each(&mut put)
    }
}

/// The functions that are to be moved, by their numbers.
fn to_move(keys: &Keys, collected: &mut Collected) -> Result<Vec<usize>> {
    let mut moved: Vec<usize> = Vec::new();
    keys.keys.iter().for_each(|key| note_sets(key, &mut moved));
    let (of_keys, has_groups) = (moved.len(), !keys.keys.is_empty() || !collected.aggregates.borrow().is_empty());
    for e in collected.windows.iter_mut().flat_map(|w| w.exprs_mut()) {
        note_sets(e, &mut moved);
        if has_groups && moved.len() > of_keys {
            return Err(SqlError::unsupported(OF_GROUPS).at(e.pos));
        }
    }
    Ok(moved)
}

/// Notes the set-returning functions of an expression, each once.
fn note_sets(e: &Bound, out: &mut Vec<usize>) {
    walk::each(e, &mut |e| {
        if let BoundKind::Unplaced(Unplaced::Set(at)) = e.kind
            && !out.contains(&at)
        {
            out.push(at);
        }
    });
}

/// A row of a function, NULL where the function has given all of its rows and another one has not.
fn row(first: usize, shape: &Arc<RowShape>, pos: Pos) -> BoundKind {
    let column = |(at, ty): (usize, &SqlType)| Bound {
        kind: BoundKind::Column { index: first + at, level: 0 },
        ty: user::base(*ty),
        pos,
    };
    let items: Vec<Bound> = shape.types.iter().enumerate().map(column).collect();
    let is_null = |arg: &Bound| Bound {
        kind: BoundKind::IsNull { arg: Box::new(arg.clone()), negated: false },
        ty: oid::BOOL.into(),
        pos,
    };
    let absent = Bound { kind: BoundKind::And(items.iter().map(is_null).collect()), ty: oid::BOOL.into(), pos };
    BoundKind::Record { items, shape: shape.clone(), absent: Some(Box::new(absent)) }
}

/// Where an aggregate stands in an expression.
fn aggregate_in(e: &Bound) -> Option<Pos> {
    let mut found = None;
    walk::each(e, &mut |e| {
        if let BoundKind::Aggregate(_) = e.kind {
            found.get_or_insert(e.pos);
        }
    });
    found
}

/// Where the value of a set-returning function is now.
#[derive(Clone)]
enum Place {
    /// In a slot of FROM.
    Slot(usize),
    /// A row of these columns, in slots of FROM from this one on.
    Row(usize, Arc<RowShape>),
    /// It is still one of the level's functions, by its number.
    Call(usize),
}

fn replace(e: &mut Bound, places: &[Place]) -> Result<()> {
    if let BoundKind::Unplaced(Unplaced::Set(at)) = e.kind {
        e.kind = match &places[at] {
            Place::Slot(index) => BoundKind::Column { index: *index, level: 0 },
            Place::Row(first, shape) => row(*first, shape, e.pos),
            Place::Call(at) => BoundKind::Unplaced(Unplaced::Set(*at)),
        };
        return Ok(());
    }
    stack::deeper(|| e.children_mut().into_iter().try_for_each(|c| replace(c, places)))
}
