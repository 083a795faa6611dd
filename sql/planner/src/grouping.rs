//! The values that a level appends to its rows (PLN-8): GROUP BY with its grouping sets, window functions, set-returning functions. Their
//! slots are known only once all of them have been collected, so a last pass over the level's expressions fills the slot numbers in.

use super::checks::{GroupCheck, leftmost};
use super::from::Layout;
use super::plan::{Body, Distinct, Grouping, OutputColumn, Query, SetStage, SortKey, StageCall, WindowStage};
use super::rewrite::{self, Rewriter};
use super::{Planner, walk};
use clearway_base::{breath, stack};
use clearway_syntax::ast::{Expr, Select as AstSelect};
use clearway_syntax::error::{Pos, Result, SqlError, code};
use clearway_syntax::window::{FrameBound, GroupItem};
use clearway_values::expr::bound::Unplaced;
use clearway_values::expr::collect::{Collected, Permits};
use clearway_values::expr::sets::SetCall;
use clearway_values::expr::window::{WindowCall, WindowDefinition};
use clearway_values::expr::{Bound, BoundKind, Params, Scope};
use clearway_values::types::datum::Array;
use clearway_values::types::order::need_equality;
use clearway_values::types::{Datum, oid};
use std::collections::HashSet;

/// Grouping sets of a query, as in PostgreSQL.
const SETS_MAX: usize = 4_096;

/// The keys of GROUP BY, and the grouping sets where there are any.
pub(super) struct Keys {
    pub keys: Vec<Bound>,
    pub sets: Option<Vec<Vec<usize>>>,
}

/// The expressions of a level that are evaluated behind its groups.
pub(super) struct Level<'a> {
    pub targets: &'a mut Vec<Bound>,
    pub having: &'a mut Option<Bound>,
    pub sort: &'a mut Vec<SortKey>,
    pub distinct: &'a mut Option<Distinct>,
}

impl Level<'_> {
    pub(super) fn each_mut(&mut self, f: &mut dyn FnMut(&mut Bound) -> Result<()>) -> Result<()> {
        self.targets.iter_mut().chain(self.having.as_mut()).try_for_each(&mut *f)?;
        self.sort.iter_mut().try_for_each(|k| f(&mut k.expr))?;
        match self.distinct {
            Some(Distinct::On(list)) => list.iter_mut().try_for_each(f),
            Some(Distinct::Row) | None => Ok(()),
        }
    }
}

/// What a level has behind its slots.
pub(super) struct LevelStages {
    pub grouping: Option<Grouping>,
    pub windows: Vec<WindowStage>,
    pub sets: Option<SetStage>,
    /// Whether subqueries have put aggregates here.
    pub lifted: bool,
}

/// The slot of the first aggregate that a subquery gives to a level around it, until the level has been laid out: no layout is so wide.
pub(super) const LIFTED_SLOT: usize = 1 << 40;

pub(super) fn is_lifted(index: usize) -> bool {
    (LIFTED_SLOT..2 * LIFTED_SLOT).contains(&index)
}

impl Planner<'_> {
    /// Binds the items of GROUP BY.
    pub(super) fn group_keys(
        &mut self,
        s: &AstSelect,
        targets: &[Bound],
        columns: &[OutputColumn],
        scope: &Scope<'_>,
        params: &mut Params,
        collected: &mut Collected,
    ) -> Result<Keys> {
        collected.permits = Permits { windows: false, sets: true, is_key: true };
        let mut keys: Vec<Bound> = Vec::new();
        let mut key = |e: &Expr| -> Result<usize> {
            let bound = self.group_key(e, (&s.targets, targets), columns, scope, params, collected)?;
            self.refuse_stages(&bound)?;
            need_equality(bound.ty, leftmost(e))?;
            if let Some(at) = keys.iter().position(|k| walk::same(k, &bound)) {
                return Ok(at);
            }
            keys.push(bound);
            Ok(keys.len() - 1)
        };
        let plain = s.group_by.iter().all(|item| matches!(item, GroupItem::Keys(list) if !list.is_empty()));
        let mut sets: Vec<Vec<usize>> = vec![Vec::new()];
        for item in &s.group_by {
            let more = expanded(item, &mut key)?;
            if sets.len().saturating_mul(more.len()) > SETS_MAX {
                return Err(too_many_sets());
            }
            let product = sets.iter().flat_map(|a| more.iter().map(move |b| [a.as_slice(), b].concat()));
            sets = product.collect();
        }
        for set in &mut sets {
            set.sort_unstable();
            set.dedup();
        }
        if s.group_distinct {
            let mut seen = std::collections::HashSet::new();
            sets.retain(|set| seen.insert(set.clone()));
        }
        Ok(Keys { keys, sets: (!plain).then_some(sets) })
    }

    /// A key that names an item of the target list may be one that is computed of the groups.
    fn refuse_stages(&self, key: &Bound) -> Result<()> {
        let mut found = None;
        walk::each(key, &mut |e| {
            let refused = match e.kind {
                BoundKind::Aggregate(_) | BoundKind::Unplaced(Unplaced::Grouping(_)) => ("42803", "aggregate"),
                BoundKind::Unplaced(Unplaced::Window(_)) => ("42P20", "window"),
                _ => return,
            };
            found.get_or_insert((refused, e.pos));
        });
        let mut lifted = false;
        rewrite::expr_slots(key, 0, &self.subplans, &mut |slot| lifted |= is_lifted(slot));
        let Some(((state, what), pos)) = found.or(lifted.then_some((("42803", "aggregate"), key.pos))) else {
            return Ok(());
        };
        Err(SqlError::new(state, format!("{what} functions are not allowed in GROUP BY")).at(pos))
    }

    /// Binds the windows of a WINDOW clause for their errors: a call may look through none of them.
    pub(super) fn check_windows(
        &mut self,
        s: &AstSelect,
        scope: &Scope<'_>,
        params: &mut Params,
        collected: &mut Collected,
    ) -> Result<()> {
        for (at, (name, spec)) in s.windows.iter().enumerate() {
            if s.windows[..at].iter().any(|w| w.0 == *name) {
                let message = format!("window \"{name}\" is already defined");
                return Err(SqlError::new(code::WINDOWING_ERROR, message).at(spec.pos));
            }
            collected.in_window = true;
            let bound = self.bind(scope, params, "WINDOW", Some(collected), |b| b.check_window(spec));
            collected.in_window = false;
            bound?;
        }
        Ok(())
    }

    /// Puts the places of aggregates that subqueries gave to a level into those subqueries.
    pub(super) fn place_lifted(&mut self, query: &mut Query, lifted: bool) {
        let Body::Select(select) = &query.body else { return };
        let width = select.width;
        if !lifted {
            return;
        }
        let mut change = |e: &mut Bound, depth: u16| {
            if let BoundKind::Column { index, level } = &mut e.kind
                && *level == depth
                && is_lifted(*index)
            {
                *index = width + (*index - LIFTED_SLOT);
            }
        };
        let (subplans, seen) = (&mut self.subplans, HashSet::new());
        let mut rewriter = Rewriter { subplans, as_they_were: &[], raws: None, seen, change: &mut change };
        rewriter.query(query, 0);
    }

    /// Refuses a frame whose offset names a column in a subquery.
    fn check_frame(&self, window: &WindowDefinition) -> Result<()> {
        let Some(frame) = &window.frame else { return Ok(()) };
        for bound in [&frame.start, &frame.end] {
            let (FrameBound::Preceding(e) | FrameBound::Following(e)) = bound else { continue };
            rewrite::without_columns(e, frame.mode.sql(), &self.subplans)?;
        }
        Ok(())
    }

    /// Checks the expressions of a level against its groups, and puts places into them.
    pub(super) fn settle_level(
        &mut self,
        mut collected: Collected,
        keys: Keys,
        mut level: Level<'_>,
        layout: &Layout,
    ) -> Result<LevelStages> {
        let calls = collected.aggregates.take();
        let asked = level.having.is_some();
        let grouped = !keys.keys.is_empty() || keys.sets.is_some() || !calls.is_empty() || asked;
        for e in calls.iter().flat_map(|c| c.exprs()) {
            self.note(e);
        }
        let mut windows = std::mem::take(&mut collected.windows);
        let mut window_calls = std::mem::take(&mut collected.window_calls);
        let mut sets = std::mem::take(&mut collected.sets);
        let of = |(keys, sets)| Grouping { keys, calls, having: None, sets, keeps_row: true, is_in_order: false };
        let grouping = grouped.then_some((keys.keys, keys.sets)).map(of);
        let every = |f: &mut dyn FnMut(&mut Bound) -> Result<()>,
                     windows: &mut Vec<WindowDefinition>,
                     window_calls: &mut Vec<WindowCall>,
                     sets: &mut Vec<SetCall>|
         -> Result<()> {
            windows.iter_mut().flat_map(|w| w.exprs_mut()).try_for_each(&mut *f)?;
            window_calls.iter_mut().flat_map(|c| c.exprs_mut()).try_for_each(&mut *f)?;
            sets.iter_mut().flat_map(|s| &mut s.args).try_for_each(f)
        };
        windows.iter().try_for_each(|w| self.check_frame(w))?;
        let mut check = |e: &mut Bound| {
            self.note(e);
            match &grouping {
                Some(grouping) => GroupCheck { grouping, layout, subplans: &self.subplans }.check(e),
                None => Ok(()),
            }
        };
        level.each_mut(&mut check)?;
        every(&mut check, &mut windows, &mut window_calls, &mut sets)?;
        if let Some(g) = &grouping {
            let detail = "Direct arguments of an ordered-set aggregate must use only grouped columns.";
            let direct = g.calls.iter().flat_map(|c| &c.direct);
            let grouped = GroupCheck { grouping: g, layout, subplans: &self.subplans };
            let detailed = |e: SqlError| if e.message().starts_with("column") { e.detail(detail) } else { e };
            direct.into_iter().try_for_each(|e| grouped.check(e).map_err(detailed))?;
        }
        let first_window = grouping.as_ref().map_or(0, Grouping::values);
        let places = Places { grouping: grouping.as_ref(), first_window, first_set: first_window + window_calls.len() };
        let order = WindowOrder::of(&level, &grouping);
        level.each_mut(&mut |e| places.settle(e))?;
        every(&mut |e| places.settle(e), &mut windows, &mut window_calls, &mut sets)?;
        let in_order = level.sort.iter().any(|k| names_set(&k.expr, &places, sets.len()));
        let in_distinct = match &*level.distinct {
            Some(Distinct::On(keys)) => keys.iter().any(|k| names_set(k, &places, sets.len())),
            Some(Distinct::Row) => true,
            None => false,
        };
        let stages = stages(windows, window_calls, first_window, order);
        let sets = set_stage(sets, &places, (in_order, in_distinct));
        let mut lifted = false;
        level.each_mut(&mut |e| {
            rewrite::expr_slots(e, 0, &self.subplans, &mut |slot| lifted |= is_lifted(slot));
            Ok(())
        })?;
        let exprs = stages.iter().flat_map(WindowStage::exprs);
        exprs.for_each(|e| rewrite::expr_slots(e, 0, &self.subplans, &mut |slot| lifted |= is_lifted(slot)));
        Ok(LevelStages { grouping, windows: stages, sets, lifted })
    }
}

fn too_many_sets() -> SqlError {
    let message = format!("too many grouping sets present (maximum {SETS_MAX})");
    SqlError::new(code::STATEMENT_TOO_COMPLEX, message)
}

/// The sets that an item of GROUP BY stands for.
fn expanded(item: &GroupItem, key: &mut dyn FnMut(&Expr) -> Result<usize>) -> Result<Vec<Vec<usize>>> {
    let mut keys_of = |list: &[Expr]| list.iter().map(&mut *key).collect::<Result<Vec<usize>>>();
    Ok(match item {
        GroupItem::Keys(list) => vec![keys_of(list)?],
        GroupItem::Rollup(lists) => {
            let parts = lists.iter().map(|l| keys_of(l)).collect::<Result<Vec<_>>>()?;
            (0..=parts.len()).rev().map(|n| parts[..n].concat()).collect()
        }
        GroupItem::Cube(lists) => {
            let parts = lists.iter().map(|l| keys_of(l)).collect::<Result<Vec<_>>>()?;
            let n = parts.len();
            let subset = |mask: usize| {
                (0..n).filter(|i| mask >> (n - 1 - i) & 1 == 1).flat_map(|i| parts[i].iter().copied()).collect()
            };
            (0..1usize << n).rev().map(subset).collect()
        }
        GroupItem::Sets(items) => {
            let mut out = Vec::new();
            for item in items {
                breath::step(breath::ROW)?;
                out.extend(stack::deeper(|| expanded(item, key))?);
                if out.len() > SETS_MAX {
                    return Err(too_many_sets());
                }
            }
            out
        }
    })
}

/// Where values stand behind a row's slots.
struct Places<'a> {
    grouping: Option<&'a Grouping>,
    first_window: usize,
    first_set: usize,
}

impl Places<'_> {
    /// Puts places into an expression.
    fn settle(&self, e: &mut Bound) -> Result<()> {
        if let Some(g) = self.grouping
            && let Some(at) = g.keys.iter().position(|k| walk::same(k, e))
        {
            e.kind = BoundKind::Aggregate(g.calls.len() + at);
            return Ok(());
        }
        match &mut e.kind {
            BoundKind::Unplaced(Unplaced::Window(at)) => e.kind = BoundKind::Aggregate(self.first_window + *at),
            BoundKind::Unplaced(Unplaced::Set(at)) => e.kind = BoundKind::Aggregate(self.first_set + *at),
            BoundKind::Unplaced(Unplaced::Grouping(list)) => {
                let list = std::mem::take(list);
                e.kind = self.grouping_value(&list, e.pos)?;
            }
            _ => return stack::deeper(|| e.children_mut().into_iter().try_for_each(|c| self.settle(c))),
        }
        Ok(())
    }

    /// GROUPING: one bit for each key that is not in the row's set.
    fn grouping_value(&self, list: &[Bound], pos: Pos) -> Result<BoundKind> {
        let place = |e: &Bound| self.grouping.and_then(|g| g.keys.iter().position(|k| walk::same(k, e)));
        let keys: Option<Vec<usize>> = list.iter().map(place).collect();
        let (Some(keys), Some(g)) = (keys, self.grouping) else {
            let message = "arguments to GROUPING must be grouping expressions of the associated query level";
            let at = list.first().map_or(pos, |e| e.pos);
            return Err(SqlError::new(code::GROUPING_ERROR, message).at(at));
        };
        let Some(sets) = &g.sets else { return Ok(BoundKind::Const(Datum::Int4(0))) };
        let mask = |set: &Vec<usize>| keys.iter().fold(0, |mask, k| mask << 1 | i32::from(!set.contains(k)));
        let masks = sets.iter().map(|set| Datum::Int4(mask(set))).collect();
        let array_type = clearway_values::types::array_of(oid::INT4).unwrap_or(oid::INT4);
        let masks = Datum::Array(Array::one_dimensional(oid::INT4, masks).into());
        let number = BoundKind::Aggregate(g.calls.len() + g.keys.len());
        Ok(BoundKind::Subscript {
            arg: Box::new(Bound::constant(masks, array_type, pos)),
            index: vec![Bound { kind: number, ty: oid::INT4.into(), pos }],
        })
    }
}

/// Whether an expression names one of the functions that give rows.
fn names_set(e: &Bound, places: &Places<'_>, sets: usize) -> bool {
    let range = places.first_set..places.first_set + sets;
    e.any(&|e| matches!(e.kind, BoundKind::Aggregate(n) if range.contains(&n)))
}

/// The order in which PostgreSQL numbers the expressions that it sorts by: ORDER BY's, GROUP BY's, those of windows.
struct WindowOrder(Vec<Bound>);

impl WindowOrder {
    fn of(level: &Level<'_>, grouping: &Option<Grouping>) -> Self {
        let keys = grouping.iter().flat_map(|g| &g.keys);
        Self(level.sort.iter().map(|k| &k.expr).chain(keys).cloned().collect())
    }

    fn number(&mut self, e: &Bound) -> usize {
        if let Some(at) = self.0.iter().position(|k| walk::same(k, e)) {
            return at;
        }
        self.0.push(e.clone());
        self.0.len() - 1
    }
}

/// The stages in PostgreSQL's order: windows with more keys first, those with a common beginning beside each other.
fn stages(
    windows: Vec<WindowDefinition>,
    calls: Vec<WindowCall>,
    first: usize,
    mut order: WindowOrder,
) -> Vec<WindowStage> {
    let mut numbered = Vec::new();
    for (at, w) in windows.iter().enumerate() {
        let mut by_order: Vec<usize> = w.order.iter().map(|o| order.number(&o.0)).collect();
        let mut numbers: Vec<usize> = w.partition.iter().map(|e| order.number(e)).collect();
        numbers.append(&mut by_order);
        numbered.push((numbers, at));
    }
    // Higher numbers first; of two where one begins the other, the longer one.
    numbered.sort_by(|(a, _), (b, _)| b.cmp(a));
    let mut out: Vec<(usize, WindowStage)> = Vec::new();
    for (_, at) in numbered {
        let window = &windows[at];
        let stage = match out.iter().position(|(other, _)| windows[*other].same_order(window)) {
            Some(found) => &mut out[found].1,
            None => {
                let key = |(expr, descending, nulls_first): &(Bound, bool, bool)| SortKey {
                    expr: expr.clone(),
                    descending: *descending,
                    nulls_first: *nulls_first,
                };
                let order = window.order.iter().map(key).collect();
                out.push((at, WindowStage { partition: window.partition.clone(), order, calls: Vec::new() }));
                let last = out.len() - 1;
                &mut out[last].1
            }
        };
        for (place, call) in calls.iter().enumerate().filter(|(_, c)| c.window == at) {
            stage.calls.push(StageCall {
                function: call.function.clone(),
                args: call.args.clone(),
                frame: window.frame.clone(),
                place: first + place,
            });
        }
    }
    out.into_iter().map(|(_, stage)| stage).filter(|s| !s.calls.is_empty()).collect()
}

/// The functions that give rows, those in arguments of others first.
fn set_stage(sets: Vec<SetCall>, places: &Places<'_>, (in_order, in_distinct): (bool, bool)) -> Option<SetStage> {
    if sets.is_empty() {
        return None;
    }
    let mut turn_of: Vec<usize> = Vec::new();
    let mut turns: Vec<Vec<(SetCall, usize)>> = Vec::new();
    for (i, call) in sets.into_iter().enumerate() {
        let mut turn = 0;
        for e in &call.args {
            walk::each(e, &mut |e| {
                if let BoundKind::Aggregate(n) = e.kind
                    && let Some(inner) = n.checked_sub(places.first_set).and_then(|at| turn_of.get(at))
                {
                    turn = turn.max(inner + 1);
                }
            });
        }
        turn_of.push(turn);
        if turns.len() <= turn {
            turns.resize_with(turn + 1, Vec::new);
        }
        turns[turn].push((call, places.first_set + i));
    }
    Some(SetStage { turns, in_order, in_distinct })
}
