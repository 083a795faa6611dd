//! Plans: what the executor walks. A plan is immutable, and all executions of a statement share it.
//!
//! # Structure
//! A [`Query`] is one level of a query; its source is a tree of [`Node`]s. All nodes of one level share one row layout: each item of FROM
//! owns a range of slots, and a node gives rows that begin with the slots of all items to its left. So an expression names the same slot
//! wherever it is evaluated, and the right side of a nested loop sees the left side's values as a prefix of its own rows.
//!
//! # Invariants
//! - PLN-1: a table of FROM owns one slot per column, dropped columns included, and one more for the row's key (or for the way in which the
//!   row ended, EXE-22). A complete plan that is carried out has only those slots of them that are read (`dense`, PLN-10).
//! - PLN-2: `Column { level: 0 }` in an expression of a level names a slot of that level's layout.
//! - PLN-6: a slot that a scan leaves out (`wanted`) is named by no expression of its level, nor of a query below it.
//! - PLN-8: behind the slots of its layout a row has, in this order: the values of aggregates, the keys of GROUP BY, the number of the
//!   grouping set (if there are several), the values of window functions, the values of set-returning functions.
//!   `BoundKind::Aggregate(n)` names the n-th of them; a complete plan has no `BoundKind::Unplaced`.
//! - PLN-9: a slot that a hash join does not carry (`Carried`) is named by no expression that is evaluated on its rows or above it.

pub use super::conditions::{and, conjunction, split};
use super::gate::Gate;
use super::generated::LateUnique;
pub use super::join::{Carried, Join, JoinType, Merge};
pub use super::passed_over::PassedOver;
pub use super::policies::{InsertGuard, PolicyCheck};
pub use super::ranges::{Beside, EachValue, Entries, Jump, KeyValues, Range, RangePart, Ranges, RowEnd};
pub use super::sought::FoundBy;
pub use super::stages::{Grouping, SetStage, StageCall, WindowStage};
pub use super::with::KeptRows;
use clearway_context::deferred::Timing;
use clearway_context::views::SystemView;
use clearway_engine::table::pick::Picker;
use clearway_engine::table::shape::TableShape;
use clearway_storage::btree::Direction;
use clearway_syntax::ast::{LockStrength, LockWait, SetOp};
use clearway_syntax::error::Pos;
use clearway_txn::lockmgr::LockMode;
use clearway_values::expr::sets::SetCall;
use clearway_values::expr::{Bound, Reads};
use clearway_values::types::{Oid, SqlType};
use std::ops::Range as Slots;
use std::sync::Arc;

/// A column of a result.
#[derive(Clone, Debug)]
pub struct OutputColumn {
    /// Its label.
    pub name: String,
    /// Its type.
    pub ty: SqlType,
    /// The table's oid and the column's number from 1; zeros where it is no column of a table.
    pub origin: (Oid, i16),
    /// The fields of a column of type record, where the query tells them.
    pub shape: Option<Arc<clearway_values::types::datum::RowShape>>,
}

/// One level of a query.
#[derive(Clone, Debug)]
pub struct Query {
    /// Where the rows come from.
    pub body: Body,
    /// ORDER BY.
    pub sort: Vec<SortKey>,
    /// LIMIT.
    pub limit: Option<Bound>,
    /// OFFSET.
    pub offset: Option<Bound>,
    /// WITH TIES (`ties`).
    pub ties: bool,
    /// What it gives.
    pub columns: Vec<OutputColumn>,
}

/// The body of a query.
#[derive(Clone, Debug)]
pub enum Body {
    /// SELECT. Sort keys are over its rows before the target list.
    Select(Box<Select>),
    /// VALUES. Sort keys are over the output.
    Values(Vec<Vec<Bound>>),
    /// UNION, INTERSECT and EXCEPT. Sort keys are over the output.
    SetOp {
        /// Which.
        op: SetOp,
        /// ALL.
        all: bool,
        /// Left side.
        left: Arc<Query>,
        /// Right side.
        right: Arc<Query>,
    },
    /// WITH RECURSIVE. It has no sort keys.
    Recursive {
        /// UNION ALL.
        all: bool,
        /// What it begins with.
        anchor: Arc<Query>,
        /// What each turn makes of the rows of the one before.
        step: Arc<Query>,
        /// Where those rows are found.
        work: usize,
    },
}

/// SELECT.
#[derive(Clone, Debug)]
pub struct Select {
    /// FROM and what of WHERE it takes over.
    pub source: Arc<Node>,
    /// Slots of the layout.
    pub width: usize,
    /// What is left of WHERE.
    pub filter: Option<Bound>,
    /// GROUP BY and aggregates.
    pub grouping: Option<Grouping>,
    /// Window functions, in the order in which they are computed.
    pub windows: Vec<WindowStage>,
    /// Functions of the select list that give rows.
    pub sets: Option<SetStage>,
    /// FOR UPDATE, FOR SHARE and the other locking clauses.
    pub locks: Vec<RowLock>,
    /// The whole of WHERE and of inner joins' conditions: looked at again when a row to be locked has changed. None where it is not needed: a
    /// query that locks nothing and is no subquery.
    pub recheck: Option<Bound>,
    /// Of each outer join of a query that locks rows the condition, and the slots that become null where a changed row does not meet it (EXE-6);
    /// joins inside of others come first.
    pub outer: Vec<(Bound, Slots<usize>)>,
    /// The target list.
    pub targets: Vec<Bound>,
    /// DISTINCT.
    pub distinct: Option<Distinct>,
    /// Conditions of the levels around it may tell nothing of the rows that its own hide (RLS-1).
    pub barrier: bool,
    /// Its rows are the distinct keys of a side of a semi join (SEM-2).
    pub is_side: bool,
}

impl Select {
    /// Whether its rows are made of several rows of the source, or look at several.
    pub fn makes_groups(&self) -> bool {
        self.grouping.is_some() || !self.windows.is_empty()
    }

    /// Targets over a source.
    pub fn plain(source: Arc<Node>, width: usize, targets: Vec<Bound>) -> Self {
        Self {
            source,
            width,
            filter: None,
            grouping: None,
            windows: Vec::new(),
            sets: None,
            locks: Vec::new(),
            recheck: None,
            outer: Vec::new(),
            targets,
            distinct: None,
            barrier: false,
            is_side: false,
        }
    }
}

/// DISTINCT.
#[derive(Clone, Debug)]
pub enum Distinct {
    /// By the whole output row.
    Row,
    /// ON these, over the rows before the target list.
    On(Vec<Bound>),
}

/// A sort key.
#[derive(Clone, Debug)]
pub struct SortKey {
    /// The key.
    pub expr: Bound,
    /// DESC.
    pub descending: bool,
    /// NULLS FIRST.
    pub nulls_first: bool,
}

/// A row lock of a query's FOR clause.
#[derive(Clone, Debug)]
pub struct RowLock {
    /// The table.
    pub table: TableSlot,
    /// The strength.
    pub strength: LockStrength,
    /// What to do where the row is locked.
    pub wait: LockWait,
}

/// A table in a level's layout.
#[derive(Clone, Debug)]
pub struct TableSlot {
    /// The table.
    pub shape: Arc<TableShape>,
    /// Its column types.
    pub types: Arc<[SqlType]>,
    /// Its first slot; the key's slot is `base + types.len()`.
    pub base: usize,
    /// Its alias or name.
    pub name: String,
}

impl TableSlot {
    /// The slot of the row's key.
    pub fn key_slot(&self) -> usize {
        self.base + self.types.len()
    }
}

/// A source of rows.
#[derive(Clone, Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "nearly every plan is a scan: a box would cost the short statements an allocation"
)]
pub enum Node {
    /// One row: the prefix.
    One,
    /// Rows of a table.
    Scan(Scan),
    /// Rows of a sampled table.
    Sample(Box<super::sample::SampleScan>),
    /// Rows of a system view.
    System(SystemScan),
    /// Set-returning functions.
    Function(FunctionScan),
    /// A query in FROM.
    Derived(Derived),
    /// The rows that the last turn of a recursive query gave.
    Work(WorkScan),
    /// A join.
    Join(Join),
    /// Only rows that meet a condition.
    Filter {
        /// The rows.
        input: Arc<Node>,
        /// The condition.
        filter: Bound,
    },
}

/// A scan of a table.
#[derive(Clone, Debug)]
pub struct Scan {
    /// The table.
    pub table: TableSlot,
    /// How to get at the rows.
    pub access: Access,
    /// What rows must meet; conditions that `access` guarantees are left out.
    pub filter: Option<Bound>,
    /// The way it must be read because another node relies on its order; none: no node does.
    pub order: Option<Direction>,
    /// The columns that an expression names: the other slots, and the key's, stay null. None: all columns, and the key.
    pub wanted: Option<Picker>,
    /// The columns of `wanted`, or all, that the filter names, and the others: of a row that the filter rejects, the others are not read.
    pub judged_first: Option<Box<(Picker, Picker)>>,
    /// The entries of the index of `access` are read instead of rows (COV-1).
    pub entries: Option<Box<Entries>>,
    /// Of rows with the same values in the leading columns of the key or index, the first is enough (COV-2).
    pub jump: Option<Jump>,
    /// Its slots are those of the wanted columns alone: for each column of the table, its place among them (PLN-10). None: PLN-1.
    pub dense: Option<Box<[usize]>>,
    /// The wanted columns that something else than the filter names, where that is known.
    pub beside: Option<Box<[usize]>>,
    /// The conditions of the filter that are judged on stored rows (GAT-1).
    pub gate: Option<Arc<Gate>>,
}

/// How to get at the rows of a table.
#[derive(Clone, Debug)]
pub enum Access {
    /// All of them, in the order of the key.
    Full,
    /// The rows whose primary key equals one of these; one value per column of the key in each.
    Keys(Vec<Vec<Bound>>),
    /// A range of the primary key.
    KeyRange(Range),
    /// A range of an index, by its place among the shape's indexes.
    Index(usize, Range),
    /// Several ranges.
    Ranges(Box<Ranges>),
    /// The rows that have these ctids.
    Tids(Box<KeyValues>),
}

/// A scan of a system view.
#[derive(Clone, Debug)]
pub struct SystemScan {
    /// The view.
    pub view: &'static SystemView,
    /// Its first slot.
    pub base: usize,
    /// What rows must meet.
    pub filter: Option<Bound>,
    /// The columns that the level reads; none: all.
    pub wanted: Option<Box<[usize]>>,
    /// Its slots are those of the wanted columns alone (PLN-10).
    pub is_dense: bool,
    /// What its conditions find rows by, once that is known.
    pub found: Option<FoundBy>,
}

/// A scan of a recursive query's working table.
#[derive(Clone, Debug)]
pub struct WorkScan {
    /// Which.
    pub id: usize,
    /// Its first slot.
    pub base: usize,
    /// What rows must meet.
    pub filter: Option<Bound>,
}

/// Functions in FROM: their rows side by side, nulls where one has given all of its own.
#[derive(Clone, Debug)]
pub struct FunctionScan {
    /// The functions.
    pub calls: Vec<SetCall>,
    /// The first slot.
    pub base: usize,
    /// WITH ORDINALITY.
    pub ordinality: bool,
}

/// A query in FROM.
#[derive(Clone, Debug)]
pub struct Derived {
    /// The query.
    pub query: Arc<Query>,
    /// Its first slot.
    pub base: usize,
    /// Whether it sees the items to its left (as its nearest outer row).
    pub lateral: bool,
    /// An expression of WITH: its rows may be kept for other references.
    pub kept: Option<Arc<KeptRows>>,
    /// What rows must meet.
    pub filter: Option<Bound>,
    /// The columns of the query that have slots, in their order; none: all.
    pub given: Option<Box<[usize]>>,
}

/// A statement in WITH that changes rows.
#[derive(Clone, Debug)]
pub struct WithChange {
    /// Its name.
    pub name: String,
    /// INSERT, UPDATE or DELETE.
    pub action: Action,
    /// Where the rows of its RETURNING are put.
    pub work: usize,
}

/// A statement with all it needs.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What its WITH changes first; the rest of the statement does not see that but by RETURNING.
    pub changes: Vec<WithChange>,
    /// What to do.
    pub action: Action,
    /// Subqueries of expressions, by id.
    pub subqueries: Vec<Subplan>,
    /// Tables to lock first, with their mode; in order of appearance.
    pub locks: Vec<TableLock>,
    /// Types of the parameters.
    pub params: Vec<Oid>,
    /// The result's columns; none: no rows are given.
    pub columns: Option<Vec<OutputColumn>>,
    /// It changes nothing, takes no lock and calls nothing that does.
    pub read_only: bool,
    /// What its executions have passed over with SKIP LOCKED.
    pub passed_over: PassedOver,
}

/// A subquery of an expression.
#[derive(Clone, Debug)]
pub struct Subplan {
    /// Its plan.
    pub query: Arc<Query>,
    /// Whether it refers to rows of queries around it.
    pub correlated: bool,
}

/// A lock on a table that a statement takes before it looks at it.
#[derive(Clone, Debug)]
pub struct TableLock {
    /// The table.
    pub oid: Oid,
    /// The mode.
    pub mode: LockMode,
    /// Its name, for errors.
    pub name: String,
    /// What the statement does with it, in the catalog's privilege letters.
    pub privileges: &'static str,
    /// Where it is named.
    pub pos: Pos,
    /// The owner of the view that names it: the owner's rights count.
    pub owner: Option<Oid>,
    /// The columns that it reads, and those that it writes.
    pub columns: Columns,
}

/// The columns of a table that a statement reads and writes.
#[derive(Clone, Debug)]
pub struct Columns {
    /// Read, by any expression.
    pub reads: Arc<Reads>,
    /// Given by INSERT.
    pub inserts: Arc<Reads>,
    /// Assigned by UPDATE.
    pub updates: Arc<Reads>,
}

/// What a planned statement does.
#[derive(Clone, Debug)]
pub enum Action {
    /// Gives rows.
    Select(Arc<Query>),
    /// INSERT.
    Insert(Box<Insert>),
    /// UPDATE.
    Update(Box<Update>),
    /// DELETE.
    Delete(Box<Delete>),
    /// MERGE.
    Merge(Box<super::merge::Merge>),
    /// UPDATE of pg_settings: the query that it stands for.
    Settings(Arc<Query>),
}

impl Action {
    /// The table that it changes.
    pub fn target(&self) -> Option<&Target> {
        match self {
            Action::Select(_) | Action::Settings(_) => None,
            Action::Insert(insert) => Some(&insert.target),
            Action::Update(update) => Some(&update.target),
            Action::Delete(delete) => Some(&delete.target),
            Action::Merge(merge) => Some(&merge.target),
        }
    }
}

/// A table to be changed.
#[derive(Clone, Debug)]
pub struct Target {
    /// It is this catalog: its rows are changed as `clearway_context::changeable` says.
    pub catalog: Option<&'static SystemView>,
    /// The table in the layout.
    pub table: TableSlot,
    /// Conditions of every row: name and expression over the table's columns from slot 0.
    pub checks: Arc<[(String, Bound)]>,
    /// Whether one of them calls a function that may wait.
    pub checks_wait: bool,
    /// Foreign keys that leave it.
    pub references: Arc<[Reference]>,
    /// Foreign keys of other tables that lead to it.
    pub referrers: Arc<[Referrer]>,
    /// Unique constraints that are checked after the statement or later.
    pub uniques: Arc<[LateUnique]>,
    /// Generated columns: place and expression over the table's columns from slot 0.
    pub generated: Arc<[(usize, Bound)]>,
    /// The columns to which the statement itself gives values.
    pub written: Arc<[usize]>,
}

/// A foreign key, from the side that refers.
#[derive(Clone, Debug)]
pub struct Reference {
    /// The constraint.
    pub name: String,
    /// The referring columns.
    pub columns: Vec<usize>,
    /// The table referred to.
    pub parent: TableSlot,
    /// Its columns.
    pub parent_columns: Vec<usize>,
    /// Where the parent's key is found: none: by its primary key; else by this index.
    pub index: Option<usize>,
    /// For a primary key: which referring column gives each key column.
    pub key_order: Vec<usize>,
    /// When it is checked.
    pub timing: Timing,
    /// MATCH FULL: all referring columns are null, or none.
    pub full: bool,
}

/// A foreign key, from the side referred to.
#[derive(Clone, Debug)]
pub struct Referrer {
    /// The constraint.
    pub name: String,
    /// The referring table.
    pub child: Oid,
    /// Its name.
    pub child_name: String,
    /// The referring columns.
    pub child_columns: Vec<usize>,
    /// The columns referred to.
    pub columns: Vec<usize>,
    /// On DELETE.
    pub on_delete: clearway_engine::catalog::ReferentialAction,
    /// The referring columns that ON DELETE SET NULL or SET DEFAULT sets; empty: all.
    pub delete_columns: Vec<usize>,
    /// On UPDATE.
    pub on_update: clearway_engine::catalog::ReferentialAction,
    /// When NO ACTION is checked.
    pub timing: Timing,
}

/// INSERT.
#[derive(Clone, Debug)]
pub struct Insert {
    /// The table, at slot 0.
    pub target: Target,
    /// The rows, of the named columns.
    pub source: Arc<Query>,
    /// For each column of the table: where its value comes from.
    pub values: Vec<InsertValue>,
    /// ON CONFLICT.
    pub conflict: Option<Conflict>,
    /// RETURNING, over the new row at slot 0.
    pub returning: Option<Vec<Bound>>,
    /// What the new row at slot 0 has to meet because of views' check options (VIE-4).
    pub view_checks: Vec<(String, Bound)>,
    /// A rule makes it do nothing.
    pub nothing: bool,
    /// What policies ask of its rows.
    pub guard: Option<Box<InsertGuard>>,
}

/// Where the value of a column comes from.
#[derive(Clone, Debug)]
pub enum InsertValue {
    /// The n-th column of the source, converted already.
    Source(usize),
    /// An expression.
    Default(Bound),
    /// NULL.
    Null,
}

/// ON CONFLICT.
#[derive(Clone, Debug)]
pub struct Conflict {
    /// Oids of the unique indexes that arbitrate; empty: any.
    pub arbiters: Vec<Oid>,
    /// A unique constraint that is checked late, and so can't arbitrate: an error for a row that conflicts by none of `arbiters`, which may then be empty.
    pub late: Option<String>,
    /// DO UPDATE: assignments over the existing row at slot 0 and the excluded one behind its key; and its WHERE.
    pub update: Option<ConflictUpdate>,
    /// DO UPDATE through views: what the existing row must meet to be seen through them, by the views' names.
    pub visible: Vec<(String, Bound)>,
}

/// Columns with their new values, and the condition.
pub type ConflictUpdate = (Vec<(usize, Bound)>, Option<Bound>);

/// UPDATE.
#[derive(Clone, Debug)]
pub struct Update {
    /// The table.
    pub target: Target,
    /// The rows: the target's slots first.
    pub source: Arc<Node>,
    /// Slots of the layout.
    pub width: usize,
    /// What is left of WHERE.
    pub filter: Option<Bound>,
    /// All of WHERE, for rows that have changed meanwhile.
    pub recheck: Option<Bound>,
    /// Column and its new value.
    pub set: Vec<(usize, Bound)>,
    /// What policies ask of the new rows.
    pub guard: Arc<[PolicyCheck]>,
    /// RETURNING, over the layout with the new row in the target's slots.
    pub returning: Option<Vec<Bound>>,
    /// What the same has to meet because of views' check options (VIE-4).
    pub view_checks: Vec<(String, Bound)>,
}

/// DELETE.
#[derive(Clone, Debug)]
pub struct Delete {
    /// The table.
    pub target: Target,
    /// The rows: the target's slots first.
    pub source: Arc<Node>,
    /// Slots of the layout.
    pub width: usize,
    /// What is left of WHERE.
    pub filter: Option<Bound>,
    /// All of WHERE.
    pub recheck: Option<Bound>,
    /// RETURNING, over the layout.
    pub returning: Option<Vec<Bound>>,
}
