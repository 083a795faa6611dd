//! GROUP BY over set-returning functions (`GROUP BY unnest(tags)`): their rows are made below the groups, as if the functions stood side by side
//! at the end of FROM. A function of the select list that no key names gives its rows above the groups.

use super::from::{Item, Layout, Leaf};
use super::grouping::{Keys, Level};
use super::plan::JoinType;
use super::{Planner, walk};
use crate::error::{Pos, Result, SqlError, code};
use crate::expr::bound::Unplaced;
use crate::expr::collect::Collected;
use crate::expr::sets::{SetCall, holds_set};
use crate::expr::{Bound, BoundKind};
use clearway_base::stack;

const WHAT: &str = "a set-returning function of rows, or in an argument of another one, in GROUP BY";

impl Planner<'_> {
    /// Moves the set-returning functions of the keys into FROM.
    ///
    /// # Errors
    /// 0A000 for those whose rows have several columns, and for those with others in their arguments.
    pub(super) fn move_set_keys(
        &mut self,
        keys: &mut Keys,
        level: &mut Level<'_>,
        collected: &mut Collected,
        layout: &mut Layout,
    ) -> Result<()> {
        let mut moved: Vec<usize> = Vec::new();
        for key in &keys.keys {
            walk::each(key, &mut |e| {
                if let BoundKind::Unplaced(Unplaced::Set(at)) = e.kind
                    && !moved.contains(&at)
                {
                    moved.push(at);
                }
            });
        }
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
            if call.shape().is_some() || call.args.iter().any(holds_set) {
                return Err(SqlError::unsupported(WHAT).at(keys.keys[0].pos));
            }
            call.args.iter().for_each(|e| self.note(e));
            calls.push(call.clone());
        }
        let base = layout.width;
        layout.width += calls.len();
        let end = layout.width;
        let functions =
            Item::Leaf { kind: Leaf::Function { calls, ordinality: false }, base, end, filters: Vec::new() };
        let first = std::mem::replace(&mut layout.item, Item::one());
        layout.item = if base == 0 {
            functions
        } else {
            let (left, right) = (Box::new(first), Box::new(functions));
            Item::Join { kind: JoinType::Inner, left, right, on: Vec::new(), by_index: None }
        };
        // The functions that stay get new numbers.
        let mut places = vec![Place::Slot(0); collected.sets.len()];
        let mut kept = Vec::new();
        for (at, call) in std::mem::take(&mut collected.sets).into_iter().enumerate() {
            places[at] = match moved.iter().position(|m| *m == at) {
                Some(column) => Place::Slot(base + column),
                None => {
                    kept.push(call);
                    Place::Call(kept.len() - 1)
                }
            };
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
#[derive(Clone, Copy)]
enum Place {
    /// In a slot of FROM.
    Slot(usize),
    /// It is still one of the level's functions, by its number.
    Call(usize),
}

fn replace(e: &mut Bound, places: &[Place]) -> Result<()> {
    if let BoundKind::Unplaced(Unplaced::Set(at)) = e.kind {
        e.kind = match places[at] {
            Place::Slot(index) => BoundKind::Column { index, level: 0 },
            Place::Call(at) => BoundKind::Unplaced(Unplaced::Set(at)),
        };
        return Ok(());
    }
    stack::deeper(|| e.children_mut().into_iter().try_for_each(|c| replace(c, places)))
}
