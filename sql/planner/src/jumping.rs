//! Jumps: where a level asks only which values there are, one row is read of those that have the same values in the leading columns of a key
//! or an index.
//!
//! # Invariants
//! - COV-2: a scan jumps only where its level gives the same without the rows that are jumped over: their wanted columns are all among the leading
//!   ones, and the level does not count rows; or a wanted column behind them goes into MIN alone (or into MAX), and the row that is read has
//!   the group's least value (the greatest), because nulls come after it; or the level is DISTINCT ON the leading ones, its rows come in the order
//!   that it asks for, and its conditions name leading ones alone, so that the row that is read is the one that it gives.

use super::access;
use super::cost::Figures;
use super::plan::{Access, Body, Distinct, Entries, Jump, Node, Query, Scan, split};
use super::walk;
use clearway_context::sort_form::can_be_key;
use clearway_context::steering::Way;
use clearway_engine::codec::key::KeyColumn;
use clearway_engine::table::entry::EntryPicker;
use clearway_engine::table::pick::Picker;
use clearway_storage::btree::Direction;
use clearway_values::expr::aggregate::{AggregateCall, Kind};
use clearway_values::expr::{Bound, BoundKind};

/// What a level that does not count rows asks of them.
pub(super) struct LevelNeed {
    /// The slot of which it asks the least value of each group alone, or the greatest.
    extreme: Option<(usize, bool)>,
    /// The slots of DISTINCT ON, where that is what it asks.
    firsts: Option<Vec<usize>>,
}

/// What a level asks of the rows of its one scan; none: it counts them, or expressions may have another value for each row.
pub(super) fn need(query: &Query) -> Option<LevelNeed> {
    let Body::Select(select) = &query.body else { return None };
    if !matches!(&*select.source, Node::Scan(_)) {
        return None;
    }
    let extreme = match &select.grouping {
        Some(grouping) if grouping.calls.iter().all(ignores_copies) => extreme_of(&grouping.calls),
        Some(_) => return None,
        None if select.distinct.is_some() && select.windows.is_empty() && select.sets.is_none() => None,
        None => return None,
    };
    let (mut fixed, mut uses) = (true, 0);
    walk::level_exprs(query, &mut |e, _| {
        fixed &= !e.is_volatile();
        walk::each(e, &mut |e| {
            let slot = walk::slot(e);
            uses += usize::from(slot.is_some() && slot == extreme.map(|(slot, _)| slot));
        });
    });
    // Groups and conditions that name the column ask for more than its least value.
    let calls = select.grouping.as_ref().map_or(0, |grouping| grouping.calls.len());
    let firsts = match &select.distinct {
        Some(Distinct::On(keys)) => keys.iter().map(walk::slot).collect(),
        _ => None,
    };
    fixed.then_some(LevelNeed { extreme: extreme.filter(|_| uses == calls), firsts })
}

/// Whether an aggregate gives the same if a row comes several times.
fn ignores_copies(call: &AggregateCall) -> bool {
    use Kind as K;
    call.distinct || matches!(call.kind, K::Min | K::Max | K::BoolAnd | K::BoolOr | K::BitAnd | K::BitOr)
}

/// The slot of the column of which all calls ask the least value; or the greatest, which is told by `true`.
fn extreme_of(calls: &[AggregateCall]) -> Option<(usize, bool)> {
    let one = |call: &AggregateCall| match (call.kind, call.args.as_slice(), &call.filter) {
        (Kind::Min | Kind::Max, [Bound { kind: BoundKind::Column { index, level: 0 }, .. }], None) => {
            Some((*index, call.kind == Kind::Max))
        }
        _ => None,
    };
    let first = one(calls.first()?)?;
    calls.iter().all(|call| one(call) == Some(first)).then_some(first)
}

/// A way to jump.
struct JumpPlan {
    access: Access,
    picker: Option<EntryPicker>,
    jump: Jump,
    direction: Option<Direction>,
}

/// Lets a scan jump if that costs less than reading all rows that it finds.
pub(super) fn jump(scan: &mut Scan, need: &LevelNeed, figures: &Figures<'_>) {
    let Some(wanted) = scan.wanted.as_ref().map(Picker::wanted) else { return };
    if figures.steering.is_unwanted(Way::IndexOnlyScan) {
        return; // A jump is shown as one.
    }
    let (found, cost) = figures.read(scan);
    let by_entries = |entries: &Entries| found * entries.each + figures.disable_cost_of(&scan.access);
    let mut least = scan.entries.as_deref().map_or(cost, by_entries);
    let mut best = None;
    for (place, access) in jump_ranges(scan, figures) {
        let picker = match place.map(|place| EntryPicker::new(&scan.table.shape, place, wanted)) {
            None => None,
            Some(Some(picker)) => Some(picker),
            Some(None) => continue,
        };
        let Some((jump, direction)) = leading(scan, place, &access, need, figures) else { continue };
        let jumping = jump.rows * figures.costs().jump + figures.disable_cost(Way::IndexScan);
        if jumping < least {
            least = jumping;
            best = Some(JumpPlan { access, picker, jump, direction });
        }
    }
    if let Some(JumpPlan { access, picker, jump, direction }) = best {
        let of_all = matches!(scan.access, Access::Full);
        // A jump reads one entry: `each` is no figure of it.
        scan.entries = picker.map(|picker| Box::new(Entries { picker, each: 1.0, of_all }));
        (scan.access, scan.jump) = (access, Some(jump));
        scan.order = scan.order.or(direction);
    }
}

/// The ranges through which a scan may jump: of its key (none), and of indexes.
fn jump_ranges(scan: &Scan, figures: &Figures<'_>) -> Vec<(Option<usize>, Access)> {
    let mut out = Vec::new();
    match &scan.access {
        Access::Index(place, _) => out.push((Some(*place), scan.access.clone())),
        Access::Full | Access::KeyRange(_) => out.push((None, scan.access.clone())),
        Access::Keys(_) | Access::Ranges(_) | Access::Tids(_) => return out,
    }
    // A range of the key has taken its conditions away.
    if scan.order.is_some() || matches!(scan.access, Access::KeyRange(_)) {
        return out;
    }
    let conditions: Vec<Bound> = scan.filter.iter().cloned().flat_map(split).collect();
    for place in 0..scan.table.shape.indexes.len() {
        let found = access::by_entries(&scan.table, place, &conditions, 1.0, figures);
        if let Some((access @ Access::Index(..), _)) = found {
            out.push((Some(place), access));
        }
    }
    out
}

/// By how many leading columns the rows are to be told apart, and in which direction they must be read (none: in any).
fn leading(
    scan: &Scan,
    place: Option<usize>,
    access: &Access,
    need: &LevelNeed,
    figures: &Figures<'_>,
) -> Option<(Jump, Option<Direction>)> {
    let (table, wanted) = (&scan.table, scan.wanted.as_ref()?.wanted());
    let columns: &[usize] = place.map_or(&table.shape.key, |place| &table.shape.indexes[place].columns);
    let at = |column: &usize| columns.iter().position(|c| c == column);
    let places: Vec<usize> = wanted.iter().map(at).collect::<Option<_>>()?;
    let equal = match access {
        Access::Index(_, range) | Access::KeyRange(range) => range.equal.len(),
        _ => 0,
    };
    let (found, _) = figures.found(table, access);
    let jump = |n: usize| {
        let values = |c: &usize| figures.distinct(table, *c);
        let all = columns.get(equal..n)?.iter().map(values).product::<Option<f64>>()?;
        Some(Jump { columns: n, rows: all.min(found) })
    };
    let firsts = need.firsts.as_deref().and_then(|firsts| first_of_each(scan, columns, firsts, equal));
    if let Some(found) = firsts.and_then(jump) {
        return Some((found, None));
    }
    let last = *places.iter().max()?;
    let by_values = jump(last + 1).map(|jump| (jump, None));
    let by_extreme = need.extreme.and_then(|(slot, greatest)| {
        let column = slot.checked_sub(table.base)?;
        let alone = places.iter().filter(|place| **place == last).count() == 1;
        let fits = alone && last >= equal.max(1) && at(&column) == Some(last) && scan.order.is_none();
        let direction = fits.then(|| first_in(scan, place, last, greatest)).flatten()?;
        Some((jump(last)?, Some(direction)))
    });
    match (by_values, by_extreme) {
        (Some(values), Some(extreme)) if extreme.0.rows < values.0.rows => Some(extreme),
        (None, extreme) => extreme,
        (values, _) => values,
    }
}

/// How many leading columns of a key the columns of DISTINCT ON are, of which `equal` have one value each; none: they are not, or the first row of
/// each group is not the row that is wanted.
fn first_of_each(scan: &Scan, columns: &[usize], firsts: &[usize], equal: usize) -> Option<usize> {
    scan.order?;
    let own = |slot: &usize| slot.checked_sub(scan.table.base);
    let firsts: Vec<usize> = firsts.iter().map(own).collect::<Option<_>>()?;
    let behind = columns.iter().skip(equal).take_while(|column| firsts.contains(column)).count();
    let leading = columns.get(..equal + behind)?;
    let mut fits = firsts.iter().all(|column| leading.contains(column));
    let named = scan.filter.as_ref().map(|filter| walk::columns(filter, scan.table.base)).unwrap_or_default();
    fits &= named.iter().all(|column| leading.contains(column));
    (fits && behind > 0).then_some(leading.len())
}

/// The direction in which the first row of a group has the least value of the column at this place of the key, or the greatest; none: neither
/// direction.
fn first_in(scan: &Scan, place: Option<usize>, at: usize, greatest: bool) -> Option<Direction> {
    let shape = &scan.table.shape;
    let key: Option<KeyColumn> = place.map(|place| shape.indexes[place].key[at]);
    let column = place.map_or(&shape.key, |place| &shape.indexes[place].columns)[at];
    let (descending, nulls_first) = key.map_or((false, false), |key| (key.descending, key.nulls_first));
    let backward = greatest != descending;
    let has_nulls = place.is_some() && shape.columns.get(column).is_none_or(|c| !c.not_null);
    // Backward the order of the nulls is turned round.
    let nulls_come = has_nulls && nulls_first != backward;
    let sorted = scan.table.types.get(column).is_some_and(|ty| can_be_key(ty.oid));
    (sorted && !nulls_come).then_some(if backward { Direction::Backward } else { Direction::Forward })
}
