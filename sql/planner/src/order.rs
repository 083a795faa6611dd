//! Orders that need no sort: a scan along a table's key or along an index gives its rows in order, in either direction.
//!
//! # Invariants
//! - PLN-5: `Scan::order` is set only where the rows of the whole source come in the requested order: the scan is the leftmost one, and
//!   all joins above it keep the order of their left side.

use super::access::{self, Along};
use super::carried::Named;
use super::cost::{Few, Figures};
use super::covering;
use super::indexes::{term, type_of};
use super::plan::{Access, JoinType, Node, Ranges, Scan, Select, SortKey, TableSlot, conjunction, split};
use super::walk;
use clearway_context::sort_form::can_be_key;
use clearway_context::steering::Way;
use clearway_engine::table::entry::EntryPicker;
use clearway_storage::btree::Direction;
use clearway_values::expr::{Bound, BoundKind};
use std::collections::HashSet;
use std::sync::Arc;

/// A column of an order: its slot, whether it descends, where its nulls stand (none: it has no nulls).
struct OrderedBy {
    slot: usize,
    descending: bool,
    nulls_first: Option<bool>,
}

/// Columns of an order: slot, descending, nulls first.
pub(super) type RowOrder = Vec<(usize, (bool, bool))>;

/// The leftmost scan, and whether a join stands above it.
fn leftmost(node: &mut Node) -> Option<(&mut Scan, bool)> {
    match node {
        Node::Scan(scan) => Some((scan, false)),
        Node::Filter { input, .. } => leftmost(Arc::get_mut(input)?),
        // A merge join relies on the order of its sides already.
        Node::Join(join) if join.kind != JoinType::Full && join.merge.is_none() => {
            leftmost(Arc::get_mut(&mut join.left)?).map(|(scan, _)| (scan, true))
        }
        _ => None,
    }
}

/// The scan whose order a plan relies on.
pub fn relied_on(node: &Node) -> Option<&Scan> {
    match node {
        Node::Scan(scan) => scan.order.is_some().then_some(scan),
        Node::Filter { input, .. } => relied_on(input),
        Node::Join(join) if join.merge.as_ref().is_some_and(|merge| !merge.is_relied_on) => None,
        Node::Join(join) => relied_on(&join.left),
        _ => None,
    }
}

fn key_order(table: &TableSlot) -> impl Iterator<Item = OrderedBy> {
    table.shape.key.iter().map(|c| OrderedBy { slot: table.base + c, descending: false, nulls_first: None })
}

fn index_order(table: &TableSlot, index: usize) -> Vec<OrderedBy> {
    let index = &table.shape.indexes[index];
    let columns = index.columns.iter().zip(&index.key);
    let columns = columns.map(|(c, key)| OrderedBy {
        slot: if *c < table.types.len() { table.base + c } else { OF_EXPRESSION + c },
        descending: key.descending,
        nulls_first: Some(key.nulls_first),
    });
    columns.chain(key_order(table)).collect()
}

/// The columns by which the rows of a source come, from the first one that tells rows apart: slot, descending, nulls first.
pub(super) fn row_order(node: &Node) -> RowOrder {
    match node {
        Node::Scan(scan) if scan.jump.is_none() => row_order_of(&scan.table, &scan.access, scan.order),
        Node::Filter { input, .. } => row_order(input),
        Node::Join(join) if join.kind != JoinType::Full && (join.merge.is_some() || join.hash.is_none()) => {
            row_order(&join.left)
        }
        _ => Vec::new(),
    }
}

/// The same of a scan of a table.
pub(super) fn row_order_of(table: &TableSlot, access: &Access, order: Option<Direction>) -> RowOrder {
    let (by, equal) = match access {
        Access::Full => (key_order(table).collect(), 0),
        Access::KeyRange(range) => (key_order(table).collect(), range.equal.len()),
        Access::Index(place, range) => (index_order(table, *place), range.equal.len()),
        Access::Keys(_) | Access::Ranges(_) | Access::Tids(_) => (Vec::new(), 0),
    };
    let backward = order == Some(Direction::Backward);
    let sorts = |c: &&OrderedBy| {
        let ty = c.slot.checked_sub(table.base).and_then(|column| table.types.get(column));
        ty.is_some_and(|ty| can_be_key(ty.oid))
    };
    let turned = |c: &OrderedBy| (c.slot, (c.descending != backward, c.nulls_first.unwrap_or(false) != backward));
    by.get(equal..).unwrap_or(&[]).iter().take_while(sorts).map(turned).collect()
}

/// Notes that the order of a source is relied on; false: another plan shares it, and it stays as it is.
pub(super) fn rely_on(node: &mut Arc<Node>) -> bool {
    match Arc::get_mut(node) {
        Some(Node::Scan(scan)) => {
            scan.order.get_or_insert(Direction::Forward);
            true
        }
        Some(Node::Filter { input, .. }) => rely_on(input),
        Some(Node::Join(join)) => {
            join.merge.iter_mut().for_each(|merge| merge.is_relied_on = true);
            rely_on(&mut join.left)
        }
        _ => false,
    }
}

/// Lets a level group its rows as they come, if its source gives the rows of each group one after the other anyway.
pub(super) fn group(select: &mut Select, figures: &Figures<'_>) {
    let Some(grouping) = &mut select.grouping else { return };
    let Some(keys) = grouping.keys.iter().map(walk::slot).collect::<Option<HashSet<usize>>>() else { return };
    let pays = figures.steering.is_unwanted(Way::HashAgg) || is_read_in_order(&select.source);
    if grouping.sets.is_some() || keys.is_empty() || !pays {
        return;
    }
    let first: HashSet<usize> =
        row_order(&select.source).iter().map(|c| c.0).take_while(|s| keys.contains(s)).collect();
    grouping.is_in_order = first == keys && rely_on(&mut select.source);
}

/// Whether a source loses nothing by keeping an order: a scan that looks rows up by the entries of an index does so in the order of the keys
/// otherwise.
fn is_read_in_order(node: &Node) -> bool {
    match node {
        Node::Scan(s) => !matches!(s.access, Access::Index(..)) || s.entries.is_some() || s.order.is_some(),
        Node::Filter { input, .. } => is_read_in_order(input),
        Node::Join(join) => is_read_in_order(&join.left),
        _ => false,
    }
}

/// Marks, in place of a slot, that an index is sorted by an expression; the position of the expression is added (SHP-3).
const OF_EXPRESSION: usize = usize::MAX / 2;

fn slot_of(e: &Bound, table: &TableSlot) -> Option<usize> {
    match e.kind {
        BoundKind::Column { index, level: 0 } => Some(index),
        _ => term(e, table).map(|position| OF_EXPRESSION + position),
    }
}

/// The direction in which rows of one order come in the other. The first `equal` columns hold one value each.
fn direction(table: &TableSlot, by: &[OrderedBy], equal: usize, joined: bool, sort: &[SortKey]) -> Option<Direction> {
    let mut at = equal;
    let mut found: Option<bool> = None;
    for key in sort {
        let slot = slot_of(&key.expr, table)?;
        if by[..at].iter().any(|c| c.slot == slot) {
            continue;
        }
        if at == by.len() {
            // One table's rows are told apart by now; a join may repeat them.
            return if joined || table.shape.key.is_empty() { None } else { direction_of(found) };
        }
        let column = &by[at];
        at += 1;
        let ty = match column.slot.checked_sub(OF_EXPRESSION) {
            Some(position) => type_of(table, position).oid,
            None => table.types.get(column.slot.checked_sub(table.base)?)?.oid,
        };
        let backward = key.descending != column.descending;
        let nulls_fit = column.nulls_first.is_none_or(|first| (first != key.nulls_first) == backward);
        if column.slot != slot || !nulls_fit || !can_be_key(ty) || found.is_some_and(|f| f != backward) {
            return None;
        }
        found = Some(backward);
    }
    direction_of(found)
}

#[allow(clippy::unnecessary_wraps)]
fn direction_of(backward: Option<bool>) -> Option<Direction> {
    Some(if backward == Some(true) { Direction::Backward } else { Direction::Forward })
}

/// What is asked of a source that may give its rows in an order.
#[derive(Clone, Copy)]
pub(super) struct Asked<'a> {
    /// How many rows will be read, so that an index that finds no rows but sorts them may be worth its while; none: all.
    pub few: Option<Few>,
    /// The slots of the level that are read, if not whole rows are.
    pub named: Option<&'a Named>,
    /// What is done with rows that do not come in the order.
    pub otherwise: Way,
}

/// Makes a source give its rows in an order, if it can.
pub(super) fn serve(source: &mut Arc<Node>, sort: &[SortKey], asked: Asked<'_>, figures: &Figures<'_>) {
    let Asked { few, named, otherwise } = asked;
    // PLN-5: the leftmost scan alone, below joins that keep its order.
    let Some((scan, joined)) = Arc::get_mut(source).and_then(leftmost) else { return };
    let table = &scan.table;
    let by_key: Vec<OrderedBy> = key_order(table).collect();
    scan.order = match &scan.access {
        Access::Keys(keys) if keys.len() == 1 && !joined => Some(Direction::Forward),
        Access::Keys(keys) if keys.len() == 1 => direction(table, &by_key, by_key.len(), joined, sort),
        Access::Keys(_) | Access::Full | Access::Tids(_) => direction(table, &by_key, 0, joined, sort),
        Access::KeyRange(range) => direction(table, &by_key, range.equal.len(), joined, sort),
        Access::Index(place, range) => direction(table, &index_order(table, *place), range.equal.len(), joined, sort),
        Access::Ranges(ranges) => along_ranges(table, ranges, joined, sort),
    };
    // A scan by its key has given conditions away; the others have all of theirs in their filter, or in what their ranges guarantee.
    let guaranteed = match &scan.access {
        Access::Full | Access::Index(..) => Some(None),
        Access::Ranges(ranges) => ranges.guarantees.clone().map(Some),
        Access::Keys(_) | Access::KeyRange(_) | Access::Tids(_) => None,
    };
    if let (None, Some(guaranteed), false) = (&scan.order, guaranteed, joined)
        && !matches!(scan.filter.as_ref().map(Bound::may_wait), Some(true))
    {
        let all = conjunction(scan.filter.iter().cloned().chain(guaranteed).collect());
        let conditions: Vec<Bound> = all.iter().cloned().flat_map(split).collect();
        let fits = |place: Option<usize>, equal: usize| match place {
            None => direction(table, &by_key, equal, joined, sort),
            Some(place) => direction(table, &index_order(table, place), equal, joined, sort),
        };
        let entry = |place: usize| entry_cost(scan, place, named?, figures);
        let asked = Along { fits: &fits, entry: &entry, few, otherwise: figures.disable_cost(otherwise) };
        if let Some((access, order)) = access::along(table, &conditions, &asked, figures) {
            (scan.access, scan.order, scan.filter) = (access, Some(order), all);
        }
    }
}

/// What reading an entry of an index costs, if the index has every column of the table that is named.
fn entry_cost(scan: &Scan, place: usize, named: &Named, figures: &Figures<'_>) -> Option<f64> {
    let table = &scan.table;
    let columns: Vec<usize> = (0..table.types.len()).filter(|c| named.is_named(table.base + c)).collect();
    let covers = !named.is_named(table.key_slot())
        && !figures.steering.is_unwanted(Way::IndexOnlyScan)
        && EntryPicker::new(&table.shape, place, &columns).is_some();
    covers.then(|| covering::entry_cost(scan, place, figures))
}

/// The direction of a union of ranges: they are read in the order of their one key.
fn along_ranges(table: &TableSlot, ranges: &Ranges, joined: bool, sort: &[SortKey]) -> Option<Direction> {
    let first = ranges.parts.first()?;
    if ranges.parts.iter().any(|p| p.index != first.index) {
        return None;
    }
    let equal = match &ranges.parts[..] {
        [part] => part.columns.iter().take_while(|c| c.one().is_some()).count(),
        _ => 0,
    };
    let by: Vec<OrderedBy> = match first.index {
        None => key_order(table).collect(),
        Some(place) => index_order(table, place),
    };
    direction(table, &by, equal, joined, sort)
}
