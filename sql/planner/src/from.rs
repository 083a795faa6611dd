//! Plans FROM: lays out the slots of a level's rows, builds the tree of its joins, and hands conditions down into that tree.

use super::access;
use super::cost::Figures;
use super::joined::join_node;
use super::leaf::{derived_leaf, named, note_origin};
use super::long_lists::as_arrays;
use super::plan::{
    Derived, FunctionScan, JoinType, Node, Scan, Subplan, SystemScan, TableSlot, WorkScan, conjunction, split,
};
use super::sample::{Sampling, sample_node};
use super::{Planner, entries, pushdown, rewrite, system_columns, walk};
use clearway_base::{breath, stack};
use clearway_context::names;
use clearway_context::views::SystemView;
use clearway_engine::catalog::types::row_type;
use clearway_engine::catalog::{Object, Relation, RelationKind};
use clearway_engine::table::shape::TableShape;
use clearway_syntax::ast::{Alias, Expr, FromItem, JoinKind, JoinOn, Locking, TableRef};
use clearway_syntax::error::{Result, SqlError, code};
use clearway_txn::lockmgr::LockMode;
use clearway_values::expr::sets::SetCall;
use clearway_values::expr::{Bound, Params, Reads, Scope, ScopeColumn, WholeRow};
use std::ops::Range;
use std::sync::Arc;

/// An item of FROM before conditions are handed down.
#[derive(Clone)]
pub(super) enum Item {
    Leaf {
        kind: Leaf,
        base: usize,
        end: usize,
        filters: Vec<Bound>,
    },
    /// `by_index`: whether the right side is looked up for each row of the left one; none: not decided yet. `written`: how the text has it.
    Join {
        kind: JoinType,
        left: Box<Item>,
        right: Box<Item>,
        on: Vec<Bound>,
        by_index: Option<bool>,
        written: Written,
    },
}

/// How the text has a join: this decides which joins are ordered together (COL-1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Written {
    /// As JOIN.
    Join,
    /// As two items of a list.
    List,
    /// As the last two items of the list of a query in FROM, which has been taken into the level.
    Query,
}

#[derive(Clone)]
pub(super) enum Leaf {
    One,
    Table(TableSlot),
    Sample(Box<(TableSlot, Sampling)>),
    System(&'static SystemView),
    Work(usize),
    Function { calls: Vec<SetCall>, ordinality: bool },
    Derived { query: Arc<super::plan::Query>, kept: Option<Arc<super::plan::KeptRows>>, lateral: bool },
}

/// The result of laying FROM out.
pub(super) struct Layout {
    pub item: Item,
    pub columns: Vec<ScopeColumn>,
    pub tables: Vec<TableSlot>,
    /// Names of items that are no tables.
    pub others: Vec<String>,
    /// Names of joins.
    pub joins: Vec<String>,
    /// Those that are queries and views, with their first slot: a locking clause locks the rows of the tables inside.
    pub queries: Vec<(String, usize)>,
    pub width: usize,
    /// One of its items is a view of MySQL's.
    pub decimals: bool,
}

/// What an item of FROM came to: the item, and its columns in the order of the text.
pub(super) type Placed = (Item, Vec<ScopeColumn>);

struct FromContext<'s> {
    parent: Option<&'s Scope<'s>>,
    locking: &'s [Locking],
}

impl FromContext<'_> {
    /// The lock on a table that goes by this name, and the rights that the statement needs: only what a locking clause names is locked
    /// for it.
    fn lock(&self, name: &str) -> (LockMode, &'static str) {
        let names = |l: &Locking| l.of.is_empty() || l.of.iter().any(|of| of.name() == name);
        match self.locking.iter().any(names) {
            true => (LockMode::RowShare, "rw"),
            false => (LockMode::AccessShare, "r"),
        }
    }
}

impl FromContext<'_> {
    /// The locking clauses that lock the rows inside of a query or view of this name.
    fn locking_of(&self, name: &str) -> Vec<Locking> {
        let names = |l: &&Locking| l.of.is_empty() || l.of.iter().any(|of| of.name() == name);
        self.locking
            .iter()
            .filter(names)
            .map(|l| Locking { of: Vec::new(), is_handed_down: true, ..l.clone() })
            .collect()
    }

    fn inside(&self, t: &TableRef) -> Vec<Locking> {
        self.locking_of(t.alias.as_ref().map_or(t.name.name(), |a| &a.name))
    }
}

impl Item {
    /// The item of a level without FROM.
    pub(super) fn one() -> Item {
        one(0)
    }

    pub(super) fn base(&self) -> usize {
        match self {
            Item::Leaf { base, .. } => *base,
            Item::Join { left, .. } => left.base(),
        }
    }
    pub(super) fn end(&self) -> usize {
        match self {
            Item::Leaf { end, .. } => *end,
            Item::Join { right, .. } => right.end(),
        }
    }

    /// Whether its rows depend on the rows to its left: an expression in it names their slots, itself or in a subquery, or it has a lateral query.
    pub(super) fn depends(&self, subplans: &[Subplan]) -> bool {
        let (base, mut outside) = (self.base(), false);
        rewrite::item_slots(self, subplans, &mut |slot| outside |= slot < base);
        self.leaves(&mut |kind, _, _| outside |= matches!(kind, Leaf::Derived { lateral: true, .. }));
        outside
    }

    /// Takes over a condition of WHERE, or gives it back (PLN-3).
    pub(super) fn take(&mut self, e: Bound) -> Option<Bound> {
        let Some((low, high)) = walk::slots(&e) else { return Some(e) };
        match self {
            Item::Leaf { base, filters, .. } => {
                if low >= *base {
                    filters.push(e);
                    return None;
                }
                Some(e)
            }
            Item::Join { kind, left, right, on, .. } => match kind {
                JoinType::Full => Some(e),
                _ if high < right.base() => stack::deeper(|| left.take(e)),
                JoinType::Left | JoinType::Semi | JoinType::Anti => Some(e),
                JoinType::Inner if low >= right.base() => stack::deeper(|| right.take(e)),
                JoinType::Inner => {
                    on.push(e);
                    None
                }
            },
        }
    }

    /// The slots of the outermost side with this slot whose rows an outer join may replace by nulls.
    pub(super) fn nullable_side(&self, slot: usize) -> Option<Range<usize>> {
        let Item::Join { kind, left, right, .. } = self else { return None };
        let (side, nullable) =
            if slot < right.base() { (left, *kind == JoinType::Full) } else { (right, *kind != JoinType::Inner) };
        if nullable { Some(side.base()..side.end()) } else { side.nullable_side(slot) }
    }

    /// The conditions of joins that are inner all the way up, and those of tables' policies: with WHERE, what a row must meet.
    pub(super) fn inner_conditions(&self, out: &mut Vec<Bound>) {
        match self {
            Item::Leaf { filters, .. } => out.extend(filters.iter().cloned()),
            Item::Join { kind: JoinType::Inner, left, right, on, .. } => {
                left.inner_conditions(out);
                right.inner_conditions(out);
                out.extend(on.iter().cloned());
            }
            Item::Join { kind: JoinType::Left, left, .. } => left.inner_conditions(out),
            Item::Join { .. } => {}
        }
    }

    /// What a row must meet: the conditions of policies first (RLS-1), those of WHERE last.
    pub(super) fn conditions_with(&self, of_where: &[Bound]) -> Vec<Bound> {
        let mut all = Vec::new();
        self.inner_conditions(&mut all);
        all.extend_from_slice(of_where);
        all
    }

    /// The executable tree.
    pub(super) fn into_node(self, figures: &Figures<'_>, subplans: &[Subplan]) -> Node {
        match self {
            Item::Leaf { kind, base, filters, .. } => leaf_node(kind, base, filters, figures),
            Item::Join { kind, left, right, on, by_index, .. } => {
                stack::deeper(|| join_node((kind, by_index), (*left, *right), on, figures, subplans))
            }
        }
    }
}

pub(super) fn leaf_node(kind: Leaf, base: usize, mut filters: Vec<Bound>, figures: &Figures<'_>) -> Node {
    match kind {
        Leaf::One => match conjunction(filters) {
            Some(filter) => Node::Filter { input: Arc::new(Node::One), filter },
            None => Node::One,
        },
        Leaf::Table(table) => {
            let chosen = access::choose(&table, &filters, figures);
            let mut at = 0;
            // An index may be younger than a snapshot, which then reads the whole table: its conditions stay.
            let by_key = !matches!(chosen.access, super::plan::Access::Index(..));
            filters.retain(|_| {
                at += 1;
                !(by_key && chosen.covered.contains(&(at - 1)))
            });
            filters.iter_mut().for_each(as_arrays);
            let (access, filter) = (chosen.access, conjunction(filters));
            Node::Scan(Scan {
                table,
                access,
                filter,
                order: None,
                wanted: None,
                judged_first: None,
                entries: None,
                jump: None,
                dense: None,
                beside: None,
                gate: None,
            })
        }
        Leaf::Sample(sampled) => sample_node(*sampled, conjunction(filters)),
        Leaf::System(view) => Node::System(SystemScan {
            view,
            base,
            filter: conjunction(filters),
            wanted: None,
            is_dense: false,
            found: None,
        }),
        Leaf::Work(id) => Node::Work(WorkScan { id, base, filter: conjunction(filters) }),
        Leaf::Function { calls, ordinality } => {
            let node = Node::Function(FunctionScan { calls, base, ordinality });
            match conjunction(filters) {
                Some(filter) => Node::Filter { input: Arc::new(node), filter },
                None => node,
            }
        }
        Leaf::Derived { mut query, kept, lateral } => {
            if kept.is_none() && !lateral {
                stack::deeper(|| pushdown::into_locked(&mut query, base, &mut filters, figures));
            }
            Node::Derived(Derived { query, base, kept, lateral, filter: conjunction(filters), given: None })
        }
    }
}

impl Layout {
    /// That of a level without FROM.
    pub(super) fn empty() -> Layout {
        let (tables, others, queries, joins) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Layout { item: one(0), columns: Vec::new(), tables, others, joins, queries, width: 0, decimals: false }
    }
}

/// From now on whatever expressions read of an item's columns is noted.
pub(super) fn note_reads(columns: &mut [ScopeColumn], base: usize, reads: &Arc<Reads>) {
    columns.iter_mut().for_each(|c| c.reads = Some((reads.clone(), c.index - base)));
}

impl Planner<'_> {
    /// Lays out the items of FROM.
    pub(super) fn from(
        &mut self,
        items: &[FromItem],
        parent: Option<&Scope<'_>>,
        params: &mut Params,
        locking: &[Locking],
    ) -> Result<Layout> {
        let context = FromContext { parent, locking };
        let mut out = Layout::empty();
        for (at, item) in items.iter().enumerate() {
            self.add_item(&mut out, item, &context, params).map_err(|e| entries::beside(e, item, &items[..at]))?;
        }
        Ok(out)
    }

    /// Lays out a table to be changed, at slot 0.
    pub(super) fn target_table(&mut self, table: &TableRef, relation: &Relation) -> Result<Layout> {
        let mut out = Layout::empty();
        let (item, mut columns) = self.table_leaf(&mut out, relation, table.alias.as_ref(), table.name.name())?;
        note_origin(&mut columns, relation.oid, relation.columns.len(), 0);
        out.item = item;
        out.columns = columns;
        Ok(out)
    }

    /// Adds an item of FROM or USING by an inner join without a condition.
    pub(super) fn add_items(
        &mut self,
        out: &mut Layout,
        items: &[FromItem],
        parent: Option<&Scope<'_>>,
        params: &mut Params,
    ) -> Result<()> {
        let context = FromContext { parent, locking: &[] };
        items.iter().try_for_each(|item| self.add_item(out, item, &context, params))
    }

    fn add_item(
        &mut self,
        out: &mut Layout,
        item: &FromItem,
        context: &FromContext<'_>,
        params: &mut Params,
    ) -> Result<()> {
        breath::step(16 * breath::ROW)?;
        let left = out.columns.clone();
        let (placed, columns) = self.item(out, item, &left, context, params)?;
        for c in &columns {
            if let Some(relation) = &c.relation
                && left.iter().any(|l| l.relation.as_ref() == Some(relation))
            {
                let message = format!("table name \"{relation}\" specified more than once");
                return Err(SqlError::new("42712", message));
            }
        }
        let first = std::mem::replace(&mut out.item, one(0));
        out.item = if first.end() == 0 && placed.base() == 0 {
            placed
        } else {
            Item::Join {
                kind: JoinType::Inner,
                left: Box::new(first),
                right: Box::new(placed),
                on: Vec::new(),
                by_index: None,
                written: Written::List,
            }
        };
        out.columns.extend(columns);
        Ok(())
    }

    fn item(
        &mut self,
        out: &mut Layout,
        item: &FromItem,
        left: &[ScopeColumn],
        context: &FromContext<'_>,
        params: &mut Params,
    ) -> Result<Placed> {
        match item {
            FromItem::Table(table) => self.table(out, table, context, params),
            FromItem::Sample(s) => {
                let placed = self.table(out, &s.table, context, params)?;
                self.sampled(placed, s, (left, context.parent), params)
            }
            FromItem::Subquery { query, lateral, alias, pos } => {
                let scope = Scope::over(left.to_vec(), context.parent);
                let parent = if *lateral { Some(&scope) } else { context.parent };
                let locking = context.locking_of(alias.as_ref().map_or("", |a| &a.name));
                let plan = self.locked_query(query, locking, parent, params)?;
                let Some(alias) = alias else {
                    return Err(SqlError::new(code::SYNTAX_ERROR, "subquery in FROM must have an alias")
                        .hint("For example, FROM (SELECT ...) [AS] foo.")
                        .at(*pos));
                };
                let lateral = *lateral && walk::is_correlated(&plan, &self.subplans);
                out.queries.push((alias.name.clone(), out.width));
                derived_leaf(out, plan, Some(alias), &alias.name, None, lateral)
            }
            FromItem::Function { calls, lateral: _, ordinality, alias, .. } => {
                let scope = Scope::over(left.to_vec(), context.parent);
                self.functions(out, calls, *ordinality, alias.as_ref(), &scope, params)
            }
            FromItem::Join { kind, left: l, right: r, on, alias, .. } => {
                let (item, columns) = self.join(out, (*kind, l, r, on), left, context, params)?;
                let of_using = if let JoinOn::Using(_, alias) = on { alias.as_ref() } else { None };
                out.joins.extend(alias.as_ref().map(|a| &a.name).or(of_using).cloned());
                Ok((item, if let Some(alias) = alias { of_join(columns, alias)? } else { columns }))
            }
        }
    }

    fn table(
        &mut self,
        out: &mut Layout,
        t: &TableRef,
        context: &FromContext<'_>,
        params: &mut Params,
    ) -> Result<Placed> {
        if t.name.parts.len() == 1
            && let Some(at) = self.ctes.iter().rposition(|c| c.cte.name == t.name.name())
        {
            return self.cte(out, at, t, context.parent, params);
        }
        let found = match self.meaning.find(&t.name, self.env.catalog) {
            Some(found) => found,
            None if self.meaning.system => self.env.lookup_system(&t.name)?,
            None => self.env.lookup(&t.name)?,
        };
        self.meaning.note(t, &found);
        match found {
            names::Found::System(view) => self.system(out, view, t.name.pos, t.alias.as_ref()),
            names::Found::Object(object) => match &**object {
                Object::Relation(r) => {
                    let (mode, privileges) = context.lock(t.alias.as_ref().map_or(t.name.name(), |a| &a.name));
                    let used = self.lock(r, mode, privileges, t.name.pos);
                    let (item, mut columns) = match r.kind {
                        RelationKind::View => self.view(out, r, t, context.inside(t)),
                        RelationKind::MaterializedView if !r.populated => {
                            let message = format!("materialized view \"{}\" has not been populated", r.name);
                            Err(SqlError::new("55000", message).hint("Use the REFRESH MATERIALIZED VIEW command."))
                        }
                        RelationKind::Table => self.guarded_leaf(out, r, t, context.inside(t)),
                        RelationKind::MaterializedView => self.table_leaf(out, r, t.alias.as_ref(), t.name.name()),
                    }?;
                    if !matches!(item, Item::Leaf { kind: Leaf::Table(_), .. }) {
                        WholeRow::note(row_type(r.oid), None, &mut columns);
                    }
                    note_origin(&mut columns, r.oid, r.columns.len(), item.base());
                    let aliased = t.alias.as_ref().map_or(0, |a| a.columns.len());
                    self.meaning.columns(r, item.base(), aliased, &mut columns);
                    note_reads(&mut columns, item.base(), &used.reads);
                    Ok((item, columns))
                }
                Object::Sequence(s) => self.sequence(out, s.oid, t),
                other => {
                    let message = format!("cannot open relation \"{}\"", other.name());
                    Err(SqlError::new(code::WRONG_OBJECT_TYPE, message)
                        .detail("This operation is not supported for indexes.")
                        .at(t.name.pos))
                }
            },
        }
    }

    pub(super) fn table_leaf(
        &mut self,
        out: &mut Layout,
        r: &Relation,
        alias: Option<&Alias>,
        name: &str,
    ) -> Result<Placed> {
        let shape = TableShape::new(self.env.catalog, r.oid).map_err(clearway_context::errors::from_engine)?;
        let types = names::column_types(r);
        let base = out.width;
        let name = alias.map_or(name, |a| &a.name).to_owned();
        let table = TableSlot { shape, types, base, name: name.clone() };
        let live = r.columns.iter().enumerate().filter(|(_, c)| !c.is_dropped());
        let columns = live.map(|(i, c)| (c.name.as_str(), table.types[i], base + i)).collect();
        let mut columns = named(columns, &name, alias)?;
        WholeRow::note(row_type(r.oid), Some(system_columns::of_table(&table, None)), &mut columns);
        out.width = table.key_slot() + 1;
        out.tables.push(table.clone());
        Ok((Item::Leaf { kind: Leaf::Table(table), base, end: out.width, filters: Vec::new() }, columns))
    }

    /// The sides of a join, that whose rows all come first.
    fn join_sides(
        &mut self,
        out: &mut Layout,
        (kind, l, r): (JoinKind, &FromItem, &FromItem),
        left: &[ScopeColumn],
        context: &FromContext<'_>,
        params: &mut Params,
    ) -> Result<(Placed, Placed)> {
        // The columns of the items to the left are copied for each join.
        breath::step(16 * breath::ROW)?;
        let (one, other) = if kind == JoinKind::Right { (r, l) } else { (l, r) };
        let barred = |e| entries::beside_barred(e, r, l);
        let placed = stack::deeper(|| self.item(out, one, left, context, params));
        let first = if kind == JoinKind::Right { placed.map_err(barred)? } else { placed? };
        // The right side sees the left one where each of its rows is for a row of the left one; the left side never sees the right one.
        let mut seen = left.to_vec();
        if !matches!(kind, JoinKind::Full | JoinKind::Right) {
            seen.extend(first.1.iter().cloned());
        }
        let placed = stack::deeper(|| self.item(out, other, &seen, context, params));
        let second = placed.map_err(|e| match kind {
            JoinKind::Right => e,
            JoinKind::Full => barred(e),
            _ => entries::beside(e, r, [l]),
        })?;
        Ok((first, second))
    }

    fn join(
        &mut self,
        out: &mut Layout,
        (kind, l, r, on): (JoinKind, &FromItem, &FromItem, &JoinOn),
        left: &[ScopeColumn],
        context: &FromContext<'_>,
        params: &mut Params,
    ) -> Result<Placed> {
        let ((first, mut first_columns), (second, mut second_columns)) =
            self.join_sides(out, (kind, l, r), left, context, params)?;
        let nullable_first = first_columns.iter_mut().filter(|_| kind == JoinKind::Full);
        let nullable_second = second_columns.iter_mut().filter(|_| !matches!(kind, JoinKind::Inner | JoinKind::Cross));
        nullable_first.chain(nullable_second).for_each(|c| c.nullable = true);
        let (l_columns, r_columns) =
            if kind == JoinKind::Right { (second_columns, first_columns) } else { (first_columns, second_columns) };
        let join_type = match kind {
            JoinKind::Inner | JoinKind::Cross => JoinType::Inner,
            JoinKind::Left | JoinKind::Right => JoinType::Left,
            JoinKind::Full => JoinType::Full,
        };
        let (conditions, columns) = match on {
            JoinOn::Nothing => (Vec::new(), l_columns.into_iter().chain(r_columns).collect()),
            JoinOn::On(e) => {
                let columns: Vec<ScopeColumn> = l_columns.into_iter().chain(r_columns).collect();
                let scope = Scope::over(columns, context.parent);
                let bound = self.join_condition(e, &scope, params).map_err(|e| entries::of_join(e, left, [l, r]))?;
                (split(bound), scope.columns)
            }
            JoinOn::Using(list, alias) => {
                let (on, mut columns) = self.using(kind, list, l_columns, r_columns, params)?;
                let shared: Vec<ScopeColumn> = columns[..list.len()].to_vec();
                for (column, alias) in shared.into_iter().flat_map(|c| alias.clone().map(|alias| (c, alias))) {
                    columns.push(ScopeColumn {
                        relation: Some(alias),
                        hidden: true,
                        nullable: false,
                        row: None,
                        shape: None,
                        ..column
                    });
                }
                (on, columns)
            }
            JoinOn::Natural => {
                let shared =
                    l_columns.iter().filter(|c| !c.hidden && r_columns.iter().any(|r| !r.hidden && r.name == c.name));
                let list: Vec<String> = shared.map(|c| c.name.clone()).collect();
                self.using(kind, &list, l_columns, r_columns, params)?
            }
        };
        Ok((
            Item::Join {
                kind: join_type,
                left: Box::new(first),
                right: Box::new(second),
                on: conditions,
                by_index: None,
                written: Written::Join,
            },
            columns,
        ))
    }

    /// Binds the condition of a join.
    pub(super) fn join_condition(&mut self, e: &Expr, scope: &Scope<'_>, params: &mut Params) -> Result<Bound> {
        let bound = self.bind(scope, params, "JOIN conditions", None, |b| b.bind_condition(e, "JOIN/ON"))?;
        self.note(&bound);
        Ok(bound)
    }
}

/// The columns of a join in parentheses under its alias; the names inside are seen no more.
fn of_join(columns: Vec<ScopeColumn>, alias: &Alias) -> Result<Vec<ScopeColumn>> {
    let mut columns: Vec<ScopeColumn> = columns.into_iter().filter(|c| !c.hidden).collect();
    if alias.columns.len() > columns.len() {
        let (name, has, given) = (&alias.name, columns.len(), alias.columns.len());
        let message = format!("join expression \"{name}\" has {has} columns available but {given} columns specified");
        return Err(SqlError::new(code::INVALID_COLUMN_REFERENCE, message));
    }
    for (at, column) in columns.iter_mut().enumerate() {
        (column.relation, column.row) = (Some(alias.name.clone()), None);
        column.name = alias.columns.get(at).unwrap_or(&column.name).clone();
    }
    Ok(columns)
}

fn one(at: usize) -> Item {
    Item::Leaf { kind: Leaf::One, base: at, end: at, filters: Vec::new() }
}
