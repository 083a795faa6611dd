//! MERGE.
//!
//! # Structure
//! The rows are those of the source beside those of the table: a left join where a clause is for rows without a match, an inner join
//! where none is. A row of the join whose slot of the table's key is null has no match.
//!
//! # Invariants
//! - MRG-1: the clauses for a match are over both sides, those for no match over the source alone.
//! - MRG-2: what the join demands of the table's row is in `on` as a whole, the conditions of policies included: a row that has changed
//!   meanwhile is judged by it again (EXE-2).
//!
//! Source: PostgreSQL 15's src/backend/parser/parse_merge.c.

use super::Planner;
use super::arrange::{Arranged, Rest};
use super::checks::check_count;
use super::dml::given_columns;
use super::from::{Item, Layout, Written, note_reads};
use super::plan::{Action, JoinType, Node, PolicyCheck, Target, conjunction, split};
use super::through::{ChangeTarget, Verb};
use super::{Planned, policies};
use clearway_context::changeable;
use clearway_context::names::Found;
use clearway_engine::catalog::{Object, RelationKind};
use clearway_syntax::ast::{Expr, TableRef};
use clearway_syntax::error::{Result, SqlError, code};
use clearway_syntax::merge::{Merge as Statement, MergeAction, MergeClause};
use clearway_syntax::stmt;
use clearway_txn::lockmgr::LockMode;
use clearway_values::expr::{Bound, Params, Scope};
use clearway_values::types::SqlType;
use std::sync::Arc;

/// MERGE.
#[derive(Clone, Debug)]
pub struct Merge {
    /// The table.
    pub target: Target,
    /// The rows of the join.
    pub source: Arc<Node>,
    /// Slots of the layout.
    pub width: usize,
    /// What is left of the conditions of an inner join and of the source's queries.
    pub filter: Option<Bound>,
    /// What makes a row of the table a match (MRG-2).
    pub on: Option<Bound>,
    /// The clauses for rows with a match, in their order.
    pub matched: Vec<Clause>,
    /// Those for rows without one.
    pub unmatched: Vec<Clause>,
    /// What policies ask.
    pub guard: Option<Box<MergeGuard>>,
}

/// A WHEN clause.
#[derive(Clone, Debug)]
pub struct Clause {
    /// What the row must meet.
    pub condition: Option<Bound>,
    /// What is done with it.
    pub change: Change,
}

/// What a WHEN clause does.
#[derive(Clone, Debug)]
pub enum Change {
    /// DO NOTHING.
    Nothing,
    /// Column and its new value.
    Update(Vec<(usize, Bound)>),
    /// DELETE.
    Delete,
    /// The value of each column; none: NULL.
    Insert(Vec<Option<Bound>>),
}

impl Merge {
    /// Whether no clause changes anything.
    pub fn does_nothing(&self) -> bool {
        self.matched.iter().chain(&self.unmatched).all(|c| matches!(c.change, Change::Nothing))
    }
}

impl Change {
    fn exprs_mut(&mut self) -> Vec<&mut Bound> {
        match self {
            Change::Nothing | Change::Delete => Vec::new(),
            Change::Update(set) => set.iter_mut().map(|(_, e)| e).collect(),
            Change::Insert(values) => values.iter_mut().flatten().collect(),
        }
    }
}

/// What policies ask of the rows that MERGE changes; those that it looks at have to meet conditions of the join.
#[derive(Clone, Debug, Default)]
pub struct MergeGuard {
    /// Of rows that are updated, as they were.
    pub updated_from: Vec<PolicyCheck>,
    /// And as they become.
    pub updated_to: Vec<PolicyCheck>,
    /// Of rows that are deleted.
    pub deleted: Vec<PolicyCheck>,
    /// Of rows that are inserted.
    pub inserted: Vec<PolicyCheck>,
}

/// The clauses that are bound, and the columns that they give values to.
#[derive(Default)]
struct Bounded {
    matched: Vec<Clause>,
    unmatched: Vec<Clause>,
    written: Vec<usize>,
}

impl Bounded {
    /// Whether a clause inserts rows, and whether one updates rows.
    fn writes(&self) -> (bool, bool) {
        let any = |f: fn(&Change) -> bool| self.matched.iter().chain(&self.unmatched).any(|c| f(&c.change));
        (any(|c| matches!(c, Change::Insert(_))), any(|c| matches!(c, Change::Update(_))))
    }
}

/// The rights that the clauses need. A table that none changes has to be readable.
fn privileges(clauses: &[MergeClause]) -> &'static str {
    let any = |f: fn(&MergeAction) -> bool| clauses.iter().any(|c| f(&c.action));
    let (inserts, updates, deletes) = (
        any(|a| matches!(a, MergeAction::Insert(..))),
        any(|a| matches!(a, MergeAction::Update(_))),
        any(|a| matches!(a, MergeAction::Delete)),
    );
    match (inserts, updates, deletes) {
        (false, false, false) => "r",
        (true, false, false) => "a",
        (false, true, false) => "w",
        (false, false, true) => "d",
        (true, true, false) => "aw",
        (true, false, true) => "ad",
        (false, true, true) => "wd",
        (true, true, true) => "awd",
    }
}

/// What can be said of the statement before its names are known.
///
/// # Errors
/// 0A000, 42601.
pub(super) fn check(s: &Statement) -> Result<()> {
    if s.with.as_ref().is_some_and(|with| with.recursive) {
        return Err(SqlError::new(code::SYNTAX_ERROR, "WITH RECURSIVE is not supported for MERGE statement"));
    }
    let mut ended = [false; 2];
    for clause in &s.clauses {
        if ended[usize::from(clause.matched)] {
            let message = "unreachable WHEN clause specified after unconditional WHEN clause";
            return Err(SqlError::new(code::SYNTAX_ERROR, message));
        }
        ended[usize::from(clause.matched)] |= clause.condition.is_none();
    }
    Ok(())
}

fn refused(name: &str, detail: String) -> SqlError {
    SqlError::new(code::FEATURE_NOT_SUPPORTED, format!("cannot execute MERGE on relation \"{name}\"")).detail(detail)
}

impl Planner<'_> {
    /// The table that is merged into, with its lock noted.
    fn merged(&mut self, t: &TableRef, privileges: &'static str) -> Result<ChangeTarget> {
        let object = match self.env.lookup(&t.name)? {
            Found::Object(object) => object,
            Found::System(v) => {
                self.may_change_system(v, "MERGE")?;
                return Err(changeable::refusal("MERGE", None, v.name));
            }
        };
        let relation = match &**object {
            Object::Relation(relation) => relation,
            Object::Sequence(s) => {
                return Err(refused(&s.name, "This operation is not supported for sequences.".to_owned()));
            }
            other => {
                let message = format!("\"{}\" is an {}", other.name(), other.kind());
                return Err(SqlError::new(code::WRONG_OBJECT_TYPE, message).at(t.name.pos));
            }
        };
        let used = self.lock(relation, LockMode::RowExclusive, privileges, t.name.pos);
        if relation.kind != RelationKind::Table {
            let kind = relation.kind.name();
            return Err(refused(&relation.name, format!("This operation is not supported for {kind}s.")));
        }
        if !relation.insert_nothing_rules.is_empty() {
            return Err(refused(&relation.name, "MERGE is not supported for relations with rules.".to_owned()));
        }
        Ok(ChangeTarget { relation: relation.clone(), used, verb: Verb::of("UPDATE"), through: None, catalog: None })
    }

    pub(super) fn merge(&mut self, s: &Statement, params: &mut Params) -> Result<Planned> {
        let face = self.merged(&s.table, privileges(&s.clauses))?;
        let alias = s.table.alias.as_ref().map_or(s.table.name.name(), |a| &a.name);
        let barred = super::leaf::table_columns(&face.relation, alias, 0);
        let around = Scope { barred, ..Scope::default() };
        let mut layout = Layout::empty();
        self.add_items(&mut layout, std::slice::from_ref(&s.source), Some(&around), params)?;
        if layout.columns.iter().any(|c| c.relation.as_deref() == Some(alias)) {
            return Err(SqlError::new("42712", format!("name \"{alias}\" specified more than once"))
                .detail("The name is used both as MERGE target table and data source."));
        }
        let of_source = layout.columns.clone();
        let (table, mut columns) =
            self.table_leaf(&mut layout, &face.relation, s.table.alias.as_ref(), s.table.name.name())?;
        let base = table.base();
        note_reads(&mut columns, base, &face.used.reads);
        let without = Scope { barred: columns.clone(), ..Scope::over(of_source, None) };
        layout.columns.extend(columns);
        let both = Scope::over(layout.columns.clone(), None);
        let mut on = split(self.join_condition(&s.on, &both, params)?);
        let mut clauses = self.merge_clauses(s, &face, (&both, &without), params)?;
        let guard = self.merge_guard(&face, &mut on, base)?;
        let mut target = self.target(&face.relation)?;
        let mut recheck = conjunction(on.clone());
        let (kind, on, conditions) = match clauses.unmatched.is_empty() {
            true => (JoinType::Inner, Vec::new(), on),
            false => (JoinType::Left, on, Vec::new()),
        };
        let first = std::mem::replace(&mut layout.item, Item::one());
        let (left, right) = (Box::new(first), Box::new(table));
        layout.item = Item::Join { kind, left, right, on, by_index: None, written: Written::Join };
        let all = clauses.matched.iter_mut().chain(&mut clauses.unmatched);
        let exprs = all.flat_map(|c| c.condition.iter_mut().chain(c.change.exprs_mut())).chain(&mut recheck).collect();
        let arranged = self.arrange(layout, conditions, Rest { exprs, is_change: true, ..Rest::default() });
        target.table.base = arranged.place(base);
        target.table.name = alias.to_owned();
        let (inserts, updates) = clauses.writes();
        if inserts || updates {
            self.writes(&mut target, clauses.written.into_iter(), inserts)?;
        }
        let Arranged { source, filter, width, .. } = arranged;
        let Bounded { matched, unmatched, .. } = clauses;
        let merge = Merge { target, source, width, filter, on: recheck, matched, unmatched, guard };
        Ok((Action::Merge(Box::new(merge)), None))
    }

    /// Binds the clauses (MRG-1).
    fn merge_clauses(
        &mut self,
        s: &Statement,
        face: &ChangeTarget,
        (both, without): (&Scope<'_>, &Scope<'_>),
        params: &mut Params,
    ) -> Result<Bounded> {
        let mut out = Bounded::default();
        for clause in &s.clauses {
            let scope = if clause.matched { both } else { without };
            let condition = match &clause.condition {
                None => None,
                Some(e) => {
                    let place = "MERGE WHEN conditions";
                    let bound = self.bind(scope, params, place, None, |b| b.bind_condition(e, "WHEN"))?;
                    self.note(&bound);
                    Some(bound)
                }
            };
            let change = match &clause.action {
                MergeAction::Nothing => Change::Nothing,
                MergeAction::Delete => Change::Delete,
                MergeAction::Update(set) => {
                    let set = self.assignments(set, &face.relation, scope, params)?;
                    set.iter().for_each(|(column, _)| face.used.updates.note(*column));
                    out.written.extend(set.iter().map(|(column, _)| *column));
                    Change::Update(set)
                }
                MergeAction::Insert(insert, values) => {
                    let given = given_columns(&face.relation, insert)?;
                    let values = values.as_deref().unwrap_or(&[]);
                    let values = self.merge_insert(face, (insert, &given, values), scope, params, &mut out.written)?;
                    Change::Insert(values)
                }
            };
            let list = if clause.matched { &mut out.matched } else { &mut out.unmatched };
            list.push(Clause { condition, change });
        }
        Ok(out)
    }

    /// The values of the columns of a row that a clause inserts.
    fn merge_insert(
        &mut self,
        face: &ChangeTarget,
        (insert, given, list): (&stmt::Insert, &[usize], &[Expr]),
        scope: &Scope<'_>,
        params: &mut Params,
        written: &mut Vec<usize>,
    ) -> Result<Vec<Option<Bound>>> {
        let relation = &face.relation;
        let mut values: Vec<Option<Bound>> = vec![None; relation.columns.len()];
        if !list.is_empty() {
            check_count(given.len(), list.len(), insert, |i| list[i].pos)?;
        }
        params.begin_list();
        for (e, column) in list.iter().zip(given) {
            let c = &relation.columns[*column];
            self.check_identity(relation, *column, e, insert)?;
            let ty = SqlType { oid: c.type_oid, modifier: c.type_mod };
            let value = self.assigned(relation, *column, ty, e, scope, params, "VALUES")?;
            // OVERRIDING USER VALUE: the sequence's value, whatever is given.
            values[*column] = (!super::generated::is_overridden(c, insert)).then_some(value);
            face.used.inserts.note(*column);
            written.push(*column);
        }
        for (column, value) in values.iter_mut().enumerate() {
            if value.is_none() && !relation.columns[column].is_dropped() {
                *value = self.default_of(relation, column)?;
                value.iter().for_each(|e| self.note(e));
            }
        }
        Ok(values)
    }

    /// What policies ask. What they ask of the rows that the statement looks at becomes part of `on`, whose slots of the table begin at `base`.
    fn merge_guard(
        &mut self,
        face: &ChangeTarget,
        on: &mut Vec<Bound>,
        base: usize,
    ) -> Result<Option<Box<MergeGuard>>> {
        let (table, owner) = (face.table().clone(), face.owner());
        if !self.is_guarded(&table, owner)? {
            return Ok(None);
        }
        let reads = face.used.reads.columns().next().is_some();
        let mut guard = MergeGuard::default();
        if reads {
            let mut rows = self.visible_rows(&table, owner, 'r')?;
            rows.iter_mut().for_each(|e| policies::shift(e, base));
            policies::put_before(rows, on);
            self.writable_rows(&table, owner, 'r', true, &mut guard.updated_to)?;
        }
        self.writable_rows(&table, owner, 'w', true, &mut guard.updated_from)?;
        self.writable_rows(&table, owner, 'w', false, &mut guard.updated_to)?;
        self.writable_rows(&table, owner, 'd', true, &mut guard.deleted)?;
        self.writable_rows(&table, owner, 'a', false, &mut guard.inserted)?;
        Ok(Some(Box::new(guard)))
    }
}
