//! Chooses how a table is read: by whole keys, by ctids, by ranges of its key or of an index, or completely; whichever has the lowest estimated
//! cost.
//!
//! # Structure
//! `facts` says what the conditions say about single columns. This module matches these facts with the columns of the key and of each
//! index. An OR is matched arm by arm: if each arm gives a range, the table is read by the union of these ranges.
//!
//! # Invariants
//! - PTH-1: a range finds every row that meets the conditions from which it was made. A condition that is listed as `covered` holds for
//!   every row that the range finds, so it is not evaluated again; except when the snapshot is older than the index, and the table is
//!   read instead.

use super::cost::{AWAY, Few, Figures, SIFTED_LEAST};
use super::facts::{ColumnTest, Fact, fact_of, is_beginning};
use super::indexes::is_usable;
use super::plan::{
    Access, Beside, EachValue, KeyValues, Range, RangePart, Ranges, RowEnd, TableSlot, conjunction, split,
};
use super::tids;
use clearway_context::steering::{Costs, UNWANTED, Way};
use clearway_engine::catalog::IndexState;
use clearway_storage::btree::Direction;
use clearway_values::expr::Bound;
use clearway_values::expr::bound::BoundKind;
use clearway_values::expr::operators::Op;

/// Arms of an OR above which the table is read in whole: each arm is planned by itself.
const ARMS_MAX: usize = 2_000;

/// What was chosen.
pub struct Chosen {
    /// The access.
    pub access: Access,
    /// Places of the conditions that hold for every row that it finds (PTH-1).
    pub covered: Vec<usize>,
    /// How many columns it finds by equality.
    pub equal: usize,
    /// Estimated cost, in rows read one after the other, with what unwanted ways cost.
    pub cost: f64,
}

/// Which conditions the columns of one key or index cover, and what reading by them costs.
#[derive(Default)]
struct KeyConditions {
    part: RangePart,
    covered: Vec<usize>,
    /// Places of the conditions that bound the ranges and are evaluated again (RWE-1).
    bounding: Vec<usize>,
    /// The share of the table's rows that is in the ranges.
    share: f64,
    /// How many ranges there are.
    ranges: f64,
    /// How many jumps find the values of the columns that are skipped.
    jumps: f64,
    /// Rows that one range finds at most.
    rows_max: f64,
    /// What reading a row costs.
    each: f64,
    /// Whether the index has a part of the rows alone.
    is_partial: bool,
}

fn one<'f, 'b>(list: &'f [Fact<'b>], column: usize) -> Option<&'f Fact<'b>> {
    list.iter().find(|f| f.column == column && matches!(f.test, ColumnTest::Compared(Op::Eq, _)))
}

/// Values of one column out of a fact that names several or NULL.
fn several(fact: &Fact<'_>) -> Option<KeyValues> {
    Some(match &fact.test {
        ColumnTest::Among(list) => KeyValues::List(list.to_vec()),
        ColumnTest::InArray(array) => KeyValues::Array((**array).clone()),
        ColumnTest::InRows(rows) => KeyValues::Array((**rows).clone()),
        ColumnTest::Null => KeyValues::Null,
        ColumnTest::Compared(..) | ColumnTest::Begins(..) | ColumnTest::Row(_) => return None,
    })
}

/// The values of a column that no condition fixes, in the ranges found so far, the share of the rows that have them, and the places of the conditions
/// that bound them; none: how many there are is not known, or the columns behind it have no condition.
fn skipped(
    table: &TableSlot,
    columns: &[usize],
    list: &[Fact<'_>],
    key: &KeyConditions,
    figures: &Figures<'_>,
) -> Option<(EachValue, f64, Vec<usize>)> {
    let (column, behind) = columns.split_first()?;
    let of = |c: usize| list.iter().filter(move |f| f.column == c);
    let is_end = |f: &Fact<'_>| matches!(&f.test, ColumnTest::Compared(op, _) if *op != Op::Eq);
    if !of(*column).all(is_end) || !behind.iter().any(|c| of(*c).next().is_some()) {
        return None;
    }
    let ([low, high], covered) = ends(list, *column);
    let between = || figures.between(table, *column, low.as_ref().map(|l| &l.0), high.as_ref().map(|h| &h.0));
    let share = if covered.is_empty() { 1.0 } else { between() };
    let values = figures.distinct(table, *column)? * share + 1.0;
    let expected = values.min((figures.rows(table) * key.share * share / key.ranges).max(1.0));
    Some((EachValue { expected, low, high }, share, covered))
}

/// What bounds a column below and above, and the places of these conditions.
fn ends(list: &[Fact<'_>], column: usize) -> ([Option<(Bound, bool)>; 2], Vec<usize>) {
    let (mut ends, mut covered) = ([None, None], Vec::new());
    for fact in list.iter().filter(|f| f.column == column) {
        let ColumnTest::Compared(op, value) = &fact.test else { continue };
        let end = &mut ends[usize::from(matches!(op, Op::Lt | Op::Le))];
        if *op != Op::Eq && end.is_none() {
            *end = Some((value.clone().into_owned(), matches!(op, Op::Ge | Op::Le)));
            covered.push(fact.at);
        }
    }
    (ends, covered)
}

/// Matches facts with the columns of a key, from the first column on. With `skips` a column without a condition has a range for each of its
/// values.
fn key_conditions(
    table: &TableSlot,
    (columns, index): (&[usize], Option<usize>),
    list: &[Fact<'_>],
    skips: bool,
    figures: &Figures<'_>,
) -> KeyConditions {
    let each = index.map_or(figures.costs().row, |place| figures.index_row(table, place));
    let mut key = KeyConditions { share: 1.0, ranges: 1.0, rows_max: f64::MAX, each, ..KeyConditions::default() };
    key.part.index = index;
    for (at, column) in columns.iter().enumerate() {
        if let Some(fact) = one(list, *column) {
            let ColumnTest::Compared(_, value) = &fact.test else { break };
            key.part.columns.push(KeyValues::One(value.clone().into_owned()));
            key.covered.push(fact.at);
            key.share *= figures.equal(table, *column, Some(value));
            continue;
        }
        let many = list.iter().filter(|f| f.column == *column).find_map(|f| Some((f, several(f)?)));
        // The values of several columns multiply: two lists are enough.
        if let Some((fact, values)) = many
            && key.part.columns.iter().filter(|c| !matches!(c, KeyValues::One(_))).count() < 2
        {
            key.ranges *= figures.values(&values);
            key.share *= match &values {
                KeyValues::Null => figures.null(table, *column),
                _ => (figures.values(&values) * figures.equal(table, *column, None)).min(1.0),
            };
            key.part.columns.push(values);
            key.covered.push(fact.at);
            continue;
        }
        if skips && let Some((each, share, covered)) = skipped(table, &columns[at..], list, &key, figures) {
            key.ranges *= each.expected;
            key.jumps += key.ranges;
            key.share *= share;
            key.covered.extend(covered);
            key.part.columns.push(KeyValues::Each(each));
            continue;
        }
        bound(table, *column, list, &mut key, figures);
        if list.iter().any(|fact| matches!(fact.test, ColumnTest::Row(_))) {
            let descends = |at: usize| index.is_some_and(|place| table.shape.indexes[place].key[at].descending);
            let next: Vec<(usize, bool)> = (at..columns.len()).map(|at| (columns[at], descends(at))).collect();
            bound_row(table, &next, list, &mut key, figures);
        }
        break;
    }
    key
}

/// Bounds the columns behind those with known values together; `next` are these columns, and whether they descend.
fn bound_row(
    table: &TableSlot,
    next: &[(usize, bool)],
    list: &[Fact<'_>],
    key: &mut KeyConditions,
    figures: &Figures<'_>,
) {
    for fact in list {
        let ColumnTest::Row(test) = &fact.test else { continue };
        let Some(end) = test.end(next) else { continue };
        let place = if test.is_low { &mut key.part.row_low } else { &mut key.part.row_high };
        if place.is_none() {
            *place = Some(end);
            key.bounding.push(fact.at);
        }
    }
    if key.part.low.is_some() || key.part.high.is_some() {
        return;
    }
    let values = |end: &Option<RowEnd>| end.as_ref().map(|end| end.values.clone()).unwrap_or_default();
    let columns: Vec<usize> = next.iter().map(|(column, _)| *column).collect();
    key.share *= figures.between_rows(table, &columns, &values(&key.part.row_low), &values(&key.part.row_high));
}

/// Bounds the column behind those with known values.
fn bound(table: &TableSlot, column: usize, list: &[Fact<'_>], key: &mut KeyConditions, figures: &Figures<'_>) {
    let ([low, high], covered) = ends(list, column);
    key.covered.extend(covered);
    let pattern = list.iter().filter(|f| f.column == column).find_map(|fact| match &fact.test {
        ColumnTest::Begins(op, pattern) => Some((fact.at, *op, *pattern)),
        _ => None,
    });
    if low.is_some() || high.is_some() {
        key.share *= figures.between(table, column, low.as_ref().map(|l| &l.0), high.as_ref().map(|h| &h.0));
    } else if let Some((at, op, pattern)) = pattern {
        key.share *= figures.begins(table, column, op, pattern);
        key.part.pattern = Some((op, pattern.clone()));
        key.covered.extend(is_beginning(op, pattern).then_some(at));
    }
    (key.part.low, key.part.high) = (low, high);
}

impl KeyConditions {
    fn is_useful(&self) -> bool {
        self.is_partial || !self.part.columns.is_empty() || self.part.is_bounded()
    }

    fn equal(&self) -> usize {
        self.part.columns.iter().filter(|c| matches!(c, KeyValues::One(_))).count()
    }

    /// The work of reading its rows out of a table of so many.
    fn work(&self, rows: f64, costs: &Costs) -> f64 {
        self.work_by_entries(rows, self.each, costs)
    }

    /// The same where its entries are read without their rows, of which each costs `each`.
    fn work_by_entries(&self, rows: f64, each: f64, costs: &Costs) -> f64 {
        let found = (rows * self.share).min(self.ranges * self.rows_max);
        self.jumps * costs.jump + self.ranges * costs.probe + found * each
    }

    /// Whether it skips a column, and bounds one behind that.
    fn skips(&self) -> bool {
        let is_each = |values: &KeyValues| matches!(values, KeyValues::Each(_));
        self.part.columns.iter().any(is_each)
            && (self.part.is_bounded() || !self.part.columns.last().is_some_and(is_each))
    }

    /// Whether a plain range says all of it.
    fn is_plain(&self, table: &TableSlot) -> bool {
        let bounded = self.part.low.is_some() || self.part.high.is_some();
        let backward = |i: usize| table.shape.indexes[i].key.get(self.part.columns.len()).is_some_and(|k| k.descending);
        let rows = self.part.row_low.is_some() || self.part.row_high.is_some();
        self.part.pattern.is_none()
            && !rows
            && self.part.columns.iter().all(|c| matches!(c, KeyValues::One(_)))
            && !(bounded && self.part.index.is_some_and(backward))
    }

    fn into_range(self) -> Range {
        let equal = self.part.columns.into_iter().filter_map(|c| match c {
            KeyValues::One(e) => Some(e),
            _ => None,
        });
        Range { equal: equal.collect(), low: self.part.low, high: self.part.high, says_all: false }
    }
}

/// Conditions laid over an index; none: it may not be read under them.
fn index_conditions(
    table: &TableSlot,
    place: usize,
    list: &[Fact<'_>],
    conditions: &[Bound],
    skips: bool,
    figures: &Figures<'_>,
) -> Option<KeyConditions> {
    let index = &table.shape.indexes[place];
    if index.state != IndexState::Public || !is_usable(table, index, conditions) {
        return None;
    }
    let mut key = key_conditions(table, (&index.columns, Some(place)), list, skips, figures);
    let part = figures.part(table, index);
    (key.is_partial, key.share) = (part < 1.0, key.share * part);
    let no_null = key.part.columns.iter().all(|c| !matches!(c, KeyValues::Null | KeyValues::Each(_)));
    if index.unique && no_null && key.part.columns.len() == index.columns.len() {
        key.rows_max = 1.0;
    }
    Some(key)
}

/// The best way by one key for conditions that are all facts about columns, which follow from `conditions`.
fn best(table: &TableSlot, list: &[Fact<'_>], conditions: &[Bound], figures: &Figures<'_>) -> Option<KeyConditions> {
    let rows = figures.rows(table);
    let shape = &table.shape;
    let mut found: Option<KeyConditions> = None;
    let mut offer = |key: KeyConditions| {
        // Of equal cost is the one that says more.
        let cost = |l: &KeyConditions| (l.work(rows, figures.costs()), std::cmp::Reverse(l.covered.len()));
        if key.is_useful() && found.as_ref().is_none_or(|f| cost(&key) < cost(f)) {
            found = Some(key);
        }
    };
    for skips in [false, true].into_iter().take(1 + list.len()) {
        let mut by_key = key_conditions(table, (&shape.key, None), list, skips, figures);
        if !shape.key.is_empty() && by_key.part.columns.len() == shape.key.len() {
            by_key.rows_max = 1.0;
        }
        let by_index = |place: usize| index_conditions(table, place, list, conditions, skips, figures);
        let all = std::iter::once(by_key).chain((0..shape.indexes.len()).filter_map(by_index));
        // Skipping has to pay even in a small table.
        let pays = |key: &KeyConditions| {
            key.work(rows, figures.costs()) + figures.disable_cost(Way::IndexScan) < figures.all(table)
        };
        all.filter(|key| !skips || key.skips() && pays(key)).for_each(&mut offer);
    }
    found
}

/// The arms of an OR as ranges.
struct Union {
    parts: Vec<KeyConditions>,
    /// The work of reading them.
    cost: f64,
    /// Whether each row of the ranges meets the whole of an arm.
    is_exact: bool,
}

/// The arms of an OR, each with the other conditions, as ranges; none: an arm finds its rows by none.
fn union(table: &TableSlot, arms: &[Bound], conditions: &[Bound], figures: &Figures<'_>) -> Option<Union> {
    if arms.len() > ARMS_MAX {
        return None;
    }
    let rows = figures.rows(table);
    let mut out = Union { parts: Vec::new(), cost: 0.0, is_exact: true };
    for arm in arms {
        let own = split(arm.clone());
        // A range has to be found by the arm itself; the conditions beside the OR may narrow it.
        let mut list: Vec<Fact<'_>> = own.iter().enumerate().filter_map(|(at, e)| fact_of(table, e, at)).collect();
        let nested = own.iter().find_map(|e| match &e.kind {
            BoundKind::Or(inner) if list.is_empty() => union(table, inner, conditions, figures),
            _ => None,
        });
        if let Some(nested) = nested {
            out.parts.extend(nested.parts);
            out.cost += nested.cost;
            out.is_exact &= nested.is_exact && own.len() == 1;
            continue;
        }
        let by_itself = best(table, &list, &own, figures)?;
        list.extend(conditions.iter().filter_map(|e| fact_of(table, e, usize::MAX)));
        let key = best(table, &list, &own, figures).unwrap_or(by_itself);
        out.cost += key.work(rows, figures.costs());
        out.is_exact &= (0..own.len()).all(|at| key.covered.contains(&at));
        out.parts.push(key);
    }
    (!out.parts.is_empty() && out.parts.len() <= ARMS_MAX).then_some(out)
}

/// Chooses how to read a table under conditions that must all hold.
pub fn choose(table: &TableSlot, conditions: &[Bound], figures: &Figures<'_>) -> Chosen {
    let list: Vec<Fact<'_>> = conditions.iter().enumerate().filter_map(|(at, e)| fact_of(table, e, at)).collect();
    let (costs, steering) = (figures.costs(), figures.steering);
    let is_wanted = |way: Way| !steering.is_unwanted(way) || steering.is_unwanted(Way::SeqScan);
    // A whole key needs no figures.
    let by_key: Option<Vec<&Fact<'_>>> = table.shape.key.iter().map(|c| one(&list, *c)).collect();
    if let Some(facts) = by_key.filter(|facts| !facts.is_empty() && is_wanted(Way::IndexScan)) {
        let value = |f: &&Fact<'_>| match &f.test {
            ColumnTest::Compared(_, value) => Some(value.clone().into_owned()),
            _ => None,
        };
        let covered = facts.iter().map(|f| f.at).collect();
        let key: Vec<Bound> = facts.iter().filter_map(value).collect();
        let cost = costs.probe + figures.disable_cost(Way::IndexScan);
        return Chosen { equal: key.len(), access: Access::Keys(vec![key]), covered, cost };
    }
    let by_tid = |(at, e)| Some((at, tids::of_condition(table, e)?));
    if let Some((at, tids)) = conditions.iter().enumerate().find_map(by_tid).filter(|_| is_wanted(Way::TidScan)) {
        let equal = usize::from(tids.one().is_some());
        let cost = costs.probe * figures.values(&tids) + figures.disable_cost(Way::TidScan);
        return Chosen { equal, access: Access::Tids(Box::new(tids)), covered: vec![at], cost };
    }
    let rows = figures.rows(table);
    let found = best(table, &list, conditions, figures);
    let mut cheapest = found.as_ref().map_or(f64::MAX, |l| l.work(rows, costs) + figures.disable_cost(Way::IndexScan));
    let mut union_of: Option<(usize, Union)> = None;
    for (at, e) in conditions.iter().enumerate() {
        if let BoundKind::Or(arms) = &e.kind
            && let Some(union) = union(table, arms, conditions, figures)
            && union.cost + figures.disable_cost_of_several() < cheapest
        {
            cheapest = union.cost + figures.disable_cost_of_several();
            union_of = Some((at, union));
        }
    }
    let least = AWAY * rows * costs.row + figures.disable_cost(Way::SeqScan);
    let whole = if cheapest < least { figures.all(table) } else { figures.whole(table, conditions) };
    let both = together(table, &list, conditions, cheapest.min(whole), figures);
    if let Some((main, beside, cost)) = both {
        let (equal, covered) = (main.equal(), main.covered.clone());
        return Chosen { access: one_part(main, conditions, Some(beside)), covered, equal, cost };
    }
    let whole = Chosen { access: Access::Full, covered: Vec::new(), equal: 0, cost: whole };
    let is_decided = figures.is_known(table) && rows > figures.small() || cheapest >= UNWANTED;
    if cheapest >= whole.cost && is_decided {
        return whole;
    }
    if let Some((at, union)) = union_of {
        let covered = if union.is_exact { vec![at] } else { Vec::new() };
        let parts = union.parts.into_iter().map(|l| l.part).collect();
        let guarantees = Some(conditions[at].clone());
        let access = Access::Ranges(Box::new(Ranges { parts, guarantees, beside: None }));
        return Chosen { access, covered, equal: 0, cost: cheapest };
    }
    let Some(key) = found else { return whole };
    let (equal, covered) = (key.equal(), key.covered.clone());
    let access = match (key.is_plain(table), key.part.index) {
        (true, None) => Access::KeyRange(key.into_range()),
        (true, Some(place)) => Access::Index(place, key.into_range()),
        (false, _) => ranges(key, conditions),
    };
    Chosen { access, covered, equal, cost: cheapest }
}

fn ranges(key: KeyConditions, conditions: &[Bound]) -> Access {
    if let (None, true, [KeyValues::List(list)]) = (key.part.index, key.rows_max <= 1.0, &key.part.columns[..]) {
        return Access::Keys(list.iter().map(|v| vec![v.clone()]).collect());
    }
    one_part(key, conditions, None)
}

/// Two indexes whose entries together lead to few rows, if reading these costs less than `most`: the one that finds more rows, what the other one says
/// of them, and the cost.
fn together(
    table: &TableSlot,
    list: &[Fact<'_>],
    conditions: &[Bound],
    most: f64,
    figures: &Figures<'_>,
) -> Option<(KeyConditions, Beside, f64)> {
    let (costs, disable_cost) = (figures.costs(), figures.disable_cost_of_several());
    let least = most - disable_cost;
    if least < SIFTED_LEAST || table.shape.indexes.len() < 2 || list.len() < 2 || !figures.is_known(table) {
        return None;
    }
    let rows = figures.rows(table);
    let of = |place: usize| index_conditions(table, place, list, conditions, false, figures);
    let mut keys: Vec<KeyConditions> = (0..table.shape.indexes.len()).filter_map(of).collect();
    keys.retain(|key| !key.covered.is_empty() && key.bounding.is_empty() && key.rows_max > 1.0);
    let sifting = |a: &KeyConditions, b: &KeyConditions| {
        (a.ranges + b.ranges) * costs.probe + rows * (a.share + b.share) * costs.sift
    };
    let cost = |main: &KeyConditions, beside: &KeyConditions| {
        sifting(main, beside) + (rows * main.share * beside.share).max(1.0) * main.each
    };
    let mut found: Option<(usize, usize, f64)> = None;
    for (at, main) in keys.iter().enumerate() {
        for (other, beside) in keys.iter().enumerate() {
            let is_apart = at != other && !main.covered.iter().any(|c| beside.covered.contains(c));
            if is_apart && main.share >= beside.share && cost(main, beside) < found.map_or(least, |f| f.2) {
                found = Some((at, other, cost(main, beside)));
            }
        }
    }
    let (at, other, cost) = found?;
    let (main, beside) = (&keys[at], &keys[other]);
    let says = beside.covered.iter().map(|at| conditions[*at].clone()).collect();
    let beside = Beside { part: beside.part.clone(), says, share: beside.share, cost: sifting(main, beside) };
    Some((keys.swap_remove(at), beside, cost + disable_cost))
}

/// What is asked of a way that gives rows in an order.
pub struct Along<'a> {
    /// Whether the key (none) or an index has that order behind so many columns of one value each, and in which direction.
    pub fits: &'a dyn Fn(Option<usize>, usize) -> Option<Direction>,
    /// What reading an entry of an index costs, if it has all columns that are read; none: it leads to rows.
    pub entry: &'a dyn Fn(usize) -> Option<f64>,
    /// How many rows will be read; none: all.
    pub few: Option<Few>,
    /// What it costs more not to have the order, beside a sort.
    pub otherwise: f64,
}

/// The cheapest way along the key or an index whose order is wanted. None: no way costs less than sorting.
pub fn along(
    table: &TableSlot,
    conditions: &[Bound],
    asked: &Along<'_>,
    figures: &Figures<'_>,
) -> Option<(Access, Direction)> {
    let list: Vec<Fact<'_>> = conditions.iter().enumerate().filter_map(|(at, e)| fact_of(table, e, at)).collect();
    let rows = figures.rows(table);
    let met = (rows * figures.share_of_all(table, conditions)).max(1.0);
    let read = asked.few.map_or(1.0, |few| few.part_of(met));
    let mut least =
        choose(table, conditions, figures).cost.min(figures.all(table)) + figures.sorting(met) + asked.otherwise;
    let mut found = None;
    for place in std::iter::once(None).chain((0..table.shape.indexes.len()).map(Some)) {
        let key = match place {
            None => Some(key_conditions(table, (&table.shape.key, None), &list, false, figures)),
            Some(place) => index_conditions(table, place, &list, conditions, false, figures),
        };
        let Some(key) = key else { continue };
        let equal = key.part.columns.iter().take_while(|c| c.one().is_some()).count();
        let by_index = figures.disable_cost(Way::IndexScan);
        let cost = match place.and_then(|place| (asked.entry)(place)) {
            Some(each) => key.work_by_entries(rows, each, figures.costs()) + by_index,
            None if place.is_none() && !key.is_useful() => figures.whole(table, conditions),
            None => key.work(rows, figures.costs()) + by_index,
        };
        let cost = figures.steering.of_part(cost, read);
        if cost < least
            && let Some(direction) = (asked.fits)(place, equal)
        {
            least = cost;
            let access = match (place, key.is_plain(table)) {
                (None, true) if !key.is_useful() => Access::Full,
                (None, true) => Access::KeyRange(key.into_range()),
                (Some(place), true) => Access::Index(place, key.into_range()),
                (_, false) => one_part(key, conditions, None),
            };
            found = Some((access, direction));
        }
    }
    found
}

/// The ranges of an index, all of it where the conditions say nothing of its columns, and what it costs to read its entries without their rows,
/// of which each costs `each`. None: the index lacks rows that may meet the conditions.
pub fn by_entries(
    table: &TableSlot,
    place: usize,
    conditions: &[Bound],
    each: f64,
    figures: &Figures<'_>,
) -> Option<(Access, f64)> {
    let list: Vec<Fact<'_>> = conditions.iter().enumerate().filter_map(|(at, e)| fact_of(table, e, at)).collect();
    let cost = |key: &KeyConditions| {
        key.work_by_entries(figures.rows(table), each, figures.costs()) + figures.disable_cost(Way::IndexScan)
    };
    let mut key = index_conditions(table, place, &list, conditions, false, figures)?;
    let skipping = index_conditions(table, place, &list, conditions, true, figures).filter(KeyConditions::skips);
    if let Some(skipping) = skipping.filter(|skipping| cost(skipping) < cost(&key)) {
        key = skipping;
    }
    let cost = cost(&key);
    let plain = key.is_plain(table);
    Some((if plain { Access::Index(place, key.into_range()) } else { one_part(key, conditions, None) }, cost))
}

fn one_part(key: KeyConditions, conditions: &[Bound], beside: Option<Beside>) -> Access {
    let guarantees = conjunction(key.covered.iter().chain(&key.bounding).map(|at| conditions[*at].clone()).collect());
    Access::Ranges(Box::new(Ranges { parts: vec![key.part], guarantees, beside: beside.map(Box::new) }))
}
