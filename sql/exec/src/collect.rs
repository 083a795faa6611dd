//! Gives all rows of a level before its target list: grouped, with the values of window functions, expanded where the order asks for that,
//! sorted.

use super::Cx;
use super::expand::Expansion;
use super::group::groups;
use super::group_sink::Sink;
use super::measure::place;
use super::nodes::Rows;
use super::row_batch::{Batch, ROWS};
use super::sort::{SortedRows, Sorter};
use super::window::{computed, sort_keys};
use clearway_base::memory::{Held, Kind};
use clearway_planner::explain::Step;
use clearway_planner::plan::{Select, SortKey};
use clearway_syntax::error::Result;
use clearway_values::expr::{Bound, BoundKind};

/// Rows before the target list: grouped, with the values of window functions, expanded where the order asks for that, sorted.
pub(super) async fn collect(
    source: Rows,
    select: &Select,
    sort: &[SortKey],
    first: Option<usize>,
    cx: Cx<'_>,
    held: &mut Held,
) -> Result<SortedRows> {
    let expanded = select.sets.as_ref().filter(|s| s.in_order);
    let width = Some(select.width);
    if select.grouping.is_none() && select.windows.is_empty() && expanded.is_none() {
        return plain(source, select, (sort, first), None, cx, held).await;
    }
    if let (Some(grouping), true, None) = (&select.grouping, select.windows.is_empty(), expanded) {
        let mut sorter = Sorter::new(sort, width, first, cx).shown_as(select, 0);
        let (mut sort_held, began) = (Held::new(Kind::Sort), cx.step_begins());
        groups(source, select, grouping, cx, held, &mut Sink(&mut sorter, &mut sort_held)).await?;
        cx.note_step(place(select, Step::Groups), began, sorter.taken());
        *held = sort_held;
        let rows = sorter.finish(cx, held).await?;
        held.measure();
        return Ok(rows);
    }
    // Rows go from one sort to the next: each stage of windows has its order, functions that give rows take them as they come.
    let stages: Vec<Vec<SortKey>> = select.windows.iter().map(sort_keys).collect();
    let mut sorter = Sorter::new(stages.first().map_or(&[], |keys| &keys[..]), width, None, cx).shown_as(select, 0);
    let (mut sort_held, began) = (Held::new(Kind::Sort), cx.step_begins());
    match &select.grouping {
        Some(grouping) => {
            groups(source, select, grouping, cx, held, &mut Sink(&mut sorter, &mut sort_held)).await?;
            cx.note_step(place(select, Step::Groups), began, sorter.taken());
        }
        None => {
            filtered(source, select, cx, (&mut sorter, &mut sort_held)).await?;
        }
    }
    for (at, stage) in select.windows.iter().enumerate() {
        let taken = sorter.taken();
        let rows = sorter.finish_keyed(cx, &mut sort_held).await?;
        cx.note_step(place(select, Step::Sort(at)), began, taken);
        let (keys, first) = match stages.get(at + 1) {
            Some(keys) => (&keys[..], None),
            None if expanded.is_some() => (&[][..], None),
            None => (sort, first),
        };
        sorter = Sorter::new(keys, width, first, cx).shown_as(select, at + 1);
        let mut next_held = Held::new(Kind::Sort);
        computed(stage, rows, select.width, (&mut sorter, &mut next_held), cx).await?;
        cx.note_step(place(select, Step::Window(at)), began, sorter.taken());
        sort_held = next_held;
    }
    if let Some(stage) = expanded {
        let mut rows = sorter.finish(cx, &mut sort_held).await?;
        sorter = Sorter::new(sort, width, None, cx).shown_as(select, select.windows.len());
        let mut next_held = Held::new(Kind::Sort);
        let mut expansion = Expansion::default();
        while let Some(row) = rows.next().await? {
            expansion.start(stage, row, select.width, cx).await?;
            while let Some(row) = expansion.next(stage, select.width, cx).await? {
                sorter.push(row, cx, &mut next_held).await?;
            }
        }
        sort_held = next_held;
    }
    *held = sort_held;
    let rows = sorter.finish(cx, held).await?;
    held.measure();
    Ok(rows)
}

/// The slots of its rows that a level gives, if it gives nothing else: a sort keeps only these.
pub(super) fn columns_given(select: &Select) -> Option<Vec<usize>> {
    let plain = select.grouping.is_none() && select.windows.is_empty() && select.sets.is_none();
    if !plain || !select.locks.is_empty() || select.distinct.is_some() {
        return None;
    }
    let slot = |e: &Bound| match e.kind {
        BoundKind::Column { index, level: 0 } => Some(index),
        _ => None,
    };
    select.targets.iter().map(slot).collect()
}

/// The rows of a source that meet the condition of a level, sorted; `given`: only these slots of them.
pub(super) async fn plain(
    mut source: Rows,
    select: &Select,
    (sort, first): (&[SortKey], Option<usize>),
    given: Option<&[usize]>,
    cx: Cx<'_>,
    held: &mut Held,
) -> Result<SortedRows> {
    let mut sorter = Sorter::new(sort, Some(select.width), first, cx).shown_as(select, 0);
    let waits = select.filter.as_ref().is_some_and(Bound::may_wait);
    let (mut batch, mut more) = (Batch::default(), true);
    while more {
        batch.clear();
        more = source.fill(cx, ROWS, &mut batch).await?;
        cx.breathe_for(batch.len()).await?;
        for at in 0..batch.len() {
            if select.filter.is_none() && sorter.passes_over(batch.row(at)) {
                continue;
            }
            if cx.judge(select.filter.as_ref(), waits, batch.row(at)).await? {
                sorter.push_of(&mut batch, at, given, cx, held).await?;
            } else {
                cx.note_removed(select.filter.as_ref(), 1);
            }
        }
    }
    let rows = sorter.finish(cx, held).await?;
    held.measure();
    Ok(rows)
}

/// Gives the rows of a source that meet the condition of a level to a sorter.
async fn filtered(
    mut source: Rows,
    select: &Select,
    cx: Cx<'_>,
    (sorter, held): (&mut Sorter<'_>, &mut Held),
) -> Result<()> {
    while let Some(row) = source.pull(cx).await? {
        cx.breathe().await?;
        if cx.holds(select.filter.as_ref(), &row).await? {
            sorter.push(row, cx, held).await?;
        } else {
            cx.note_removed(select.filter.as_ref(), 1);
        }
    }
    Ok(())
}
