//! The fast path of statements that change one row: `UPDATE table SET column = value WHERE key = $1` where neither a key nor a unique index
//! changes, `INSERT` ([`super::short_insert`]) and `DELETE` ([`super::short_delete`]). Entries of indexes that have an expression or a condition are not
//! changed here. Of tables with check constraints, generated columns or foreign keys to other tables rows are only deleted here.
//!
//! Whether a statement qualifies is determined once, when it is planned. An execution takes its table lock, reads the columns that its
//! expressions name, overwrites the assigned columns in a copy of the stored row and makes one edit of a leaf, and one or two for each index. It creates no executor
//! node and no future, and turns the row into values only where an assigned column has no fixed width. In any unusual case the general path
//! runs the statement and gives the same answer or the error: another transaction has the row or has changed it since the snapshot, a page
//! is not in memory, the new row is long, an expression fails.
//!
//! # Invariants
//! - SHT-1: when the fast path gives up, no row has been changed, or the engine notes half a change (HLF-1), which the general path undoes before it
//!   begins the statement. (PNT-1 and PNT-2 hold here too.)
//! - SHT-2: an expression that is evaluated here costs no more than a few times the size of its operands, calls nothing volatile and
//!   can't wait. So it may be evaluated again on the general path, and needs no breath.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use super::alone::Reading;
use super::client::Client;
use super::form::Told;
use super::fresh::is_short_of_session;
use super::point::{Part, Point, key_bytes, key_parts};
use super::range::RangeRead;
use super::run::Cached;
use super::session::{Block, Session};
use super::short_delete::OneDelete;
use super::short_insert::OneInsert;
use crate::context::convert::{borrowed_datum, to_value};
use crate::context::core::{Core, now, row_digest};
use crate::context::names::CatalogNames;
use crate::context::statements::Digest;
use crate::exec::{Cx, Row, Run, RunState};
use crate::expr::Bound;
use crate::expr::bound::BoundKind;
use crate::expr::operators::Op;
use crate::planner::plan::{Action, Node, Plan, Target, Update};
use crate::types::{Datum, SqlType, oid, user};
use crate::views::SystemViews;
use clearway_base::waits;
use clearway_engine::codec::key::KeyColumn;
use clearway_engine::row_turn::RowTurn;
use clearway_engine::session::at_once::NotNow;
use clearway_engine::session::{Isolation, StatementMode};
use clearway_engine::table::entry_moves::{EntryKeys, EntryMoves};
use clearway_engine::table::patch::{Patcher, put_together};
use clearway_engine::table::pick::Picker;
use clearway_engine::table::shape::TableShape;
use clearway_engine::value::{Value, ValueRef};
use clearway_txn::lockmgr::{IfTaken, LockMode, LockTag};
use clearway_txn::mvcc::book::View;
use clearway_txn::transaction::{Basis, Changed};

/// The highest expression that is evaluated here.
pub(super) const HEIGHT_MAX: usize = 8;

/// A statement on its way.
#[derive(Clone, Copy)]
pub(super) struct Short<'a> {
    pub(super) cached: &'a Cached,
    pub(super) text: &'a Arc<str>,
    pub(super) digest: &'a Arc<Digest>,
    pub(super) params: &'a [Datum],
    /// The forms of the result's columns.
    pub(super) formats: &'a [i16],
    /// Its portal, by the extended protocol.
    pub(super) portal: Option<&'a str>,
    /// The columns, where the client is told of them before the rows.
    pub(super) told: Option<Told<'a>>,
}

/// The fast path of a statement.
pub enum Fast {
    /// It reads a row.
    Point(Point),
    /// It reads few neighbouring rows.
    Range(Box<RangeRead>),
    /// It changes a row.
    Change(ShortChange),
}

impl Fast {
    /// The fast path of a plan; none: the plan does not qualify.
    pub fn of(plan: &Plan, database: u32) -> Option<Fast> {
        let point = || Point::of(plan, database).map(Fast::Point);
        let range = || RangeRead::of(plan, database).map(|range| Fast::Range(Box::new(range)));
        point().or_else(range).or_else(|| ShortChange::of(plan, database).map(Fast::Change))
    }
}

/// A statement that changes one row and can take the fast path.
pub struct ShortChange {
    pub(super) shape: Arc<TableShape>,
    lock: LockTag,
    pub(super) kind: Kind,
}

pub(super) enum Kind {
    Update(OneUpdate),
    Insert(OneInsert),
    Delete(OneDelete),
}

pub(super) struct OneUpdate {
    pub(super) key: Box<[(KeyColumn, Part)]>,
    /// What the expressions read; none: nothing of the row.
    reads: Option<Picker>,
    /// What overwrites the assigned columns in a stored row; none: one of them has no fixed width, and the row is put together anew.
    patcher: Option<Patcher>,
    /// The assigned columns, in the order of the values.
    set: Box<[usize]>,
    /// The indexes on which one of them may act.
    entries: Option<EntryKeys>,
}

/// Memory that executions use one after the other.
#[derive(Default)]
pub(super) struct ChangeScratch {
    pub(super) key: Vec<u8>,
    row: Row,
    pub(super) value: Vec<u8>,
    pub(super) values: Vec<Value>,
    pub(super) entries: EntryMoves,
    /// The latest update was given up because another transaction had the row.
    pub(super) taken: bool,
}

impl ShortChange {
    /// The fast path of a plan; none: the plan does not qualify.
    pub fn of(plan: &Plan, database: u32) -> Option<ShortChange> {
        let [lock] = plan.locks.as_slice() else { return None };
        let alone = plan.changes.is_empty() && plan.subqueries.is_empty() && plan.columns.is_none();
        let (target, kind) = match &plan.action {
            Action::Update(update) if alone => (&update.target, Kind::Update(OneUpdate::of(update)?)),
            Action::Delete(delete) if alone => (&delete.target, Kind::Delete(OneDelete::of(delete)?)),
            Action::Insert(insert) if alone => (&insert.target, Kind::Insert(OneInsert::of(insert)?)),
            _ => return None,
        };
        let shape = target.table.shape.clone();
        let unchecked = target.checks.is_empty() && target.generated.is_empty() && target.references.is_empty();
        let is_of_users = shape.oid >= clearway_engine::catalog::FIRST_USER_OID;
        let unchecked = unchecked && target.table.types.iter().all(|ty| ty.oid < user::FIRST_OID);
        // What is deleted is checked by nothing of its own table.
        let unchecked = unchecked || matches!(kind, Kind::Delete(_));
        if !unchecked || !is_of_users || lock.oid != shape.oid || lock.mode != LockMode::RowExclusive {
            return None;
        }
        let lock = LockTag::Relation { database, relation: u64::from(shape.oid) };
        Some(ShortChange { shape, lock, kind })
    }
}

impl OneUpdate {
    fn of(update: &Update) -> Option<OneUpdate> {
        let Node::Scan(scan) = &*update.source else { return None };
        let plain = update.returning.is_none() && update.view_checks.is_empty() && update.guard.is_empty();
        let unfiltered = update.filter.is_none() && scan.filter.is_none();
        let (target, base) = (&update.target, update.target.table.base);
        if !plain || !unfiltered || scan.table.shape.oid != target.table.shape.oid || scan.table.base != base {
            return None;
        }
        let set: Vec<usize> = update.set.iter().map(|(column, _)| *column).collect();
        if is_referred_to(target, &set) {
            return None;
        }
        let mut read = Vec::new();
        let cheap = update.set.iter().all(|(_, e)| is_cheap(e, HEIGHT_MAX, &mut read));
        let columns = base..base + target.table.types.len();
        if !cheap || read.iter().any(|slot| !columns.contains(slot)) {
            return None;
        }
        let shape = &target.table.shape;
        let read: Vec<usize> = read.into_iter().map(|slot| slot - base).collect();
        let reads = (!read.is_empty()).then(|| Picker::new(shape, &read));
        let entries = EntryKeys::of(shape, true, |index| index.reads().iter().any(|c| set.contains(c)))?;
        let patcher = Patcher::new(shape, &set);
        Some(OneUpdate { key: key_parts(scan)?, reads, patcher, set: set.into(), entries })
    }
}

/// Whether a key, a unique index, or a constraint of other rows depends on one of these columns.
fn is_referred_to(target: &Target, set: &[usize]) -> bool {
    let shape = &target.table.shape;
    let touches = |columns: &[usize]| columns.iter().any(|c| set.contains(c));
    shape.key_and_unique_columns().any(|c| set.contains(&c))
        || target.referrers.iter().any(|key| touches(&key.columns))
        || target.uniques.iter().any(|unique| touches(&unique.columns))
}

/// SHT-2; notes the slots that the expression reads.
pub(super) fn is_cheap(e: &Bound, height_max: usize, read: &mut Vec<usize>) -> bool {
    // A type of users may have conditions.
    if height_max == 0 || e.ty.oid >= user::FIRST_OID {
        return false;
    }
    match &e.kind {
        BoundKind::Const(_) | BoundKind::Param(_) => true,
        BoundKind::Column { index, level: 0 } => {
            read.push(*index);
            true
        }
        BoundKind::Binary { op: Op::Add | Op::Sub | Op::Mul | Op::Div | Op::Rem, left, right } => {
            let numbers = is_number(left.ty) && is_number(right.ty);
            numbers && is_cheap(left, height_max - 1, read) && is_cheap(right, height_max - 1, read)
        }
        BoundKind::Prefix { op: Op::Sub, arg } => is_number(arg.ty) && is_cheap(arg, height_max - 1, read),
        BoundKind::Cast { arg, .. } => is_small(arg.ty) && is_small(e.ty) && is_cheap(arg, height_max - 1, read),
        BoundKind::Call { function, args } => args.is_empty() && !function.volatile,
        _ => false,
    }
}

fn is_number(ty: SqlType) -> bool {
    matches!(ty.oid, oid::INT2 | oid::INT4 | oid::INT8 | oid::FLOAT4 | oid::FLOAT8)
}

fn is_small(ty: SqlType) -> bool {
    let text = matches!(ty.oid, oid::TEXT | oid::VARCHAR | oid::BPCHAR);
    is_number(ty) || text || matches!(ty.oid, oid::BOOL | oid::DATE | oid::TIMESTAMP | oid::TIMESTAMPTZ)
}

/// Lends what expressions are evaluated in.
pub(super) fn within<T>(
    core: &Core,
    short: &Short<'_>,
    view: View,
    isolation: Isolation,
    f: impl FnOnce(Cx<'_>) -> T,
) -> T {
    let (format, role) = core.format_and_role();
    let names = CatalogNames {
        role,
        catalog: short.cached.catalog.clone(),
        database: core.database,
        path: short.cached.path.clone(),
    };
    let state = RunState::default();
    let run = Run {
        core,
        plan: &short.cached.plan,
        params: short.params,
        view,
        isolation,
        format,
        names,
        started: now(),
        transaction_started: core.transaction_started(),
        state: &state,
        views: &SystemViews,
    };
    f(Cx { run: &run, outer: &[] })
}

impl Session {
    /// Nothing interrupts the session, and no line of the log tells of each statement: one that is given up would be told twice.
    pub(super) fn may_try(&self) -> bool {
        let backend = &self.core.backend;
        backend.interrupt.pending().is_none()
            && backend.log.statements.load(Relaxed) == 0
            && !self.core.limits.must_wait(&self.core)
    }

    /// Runs a statement on the fast path; false: it must take the general path (PNT-1, SHT-1).
    pub(super) fn run_short(&mut self, short: &Short<'_>, client: &mut dyn Client) -> bool {
        if self.block == Block::Failed || !self.may_try() {
            return false;
        }
        // PNT-2: the version of the catalog is looked at under the table's lock.
        let cached = short.cached;
        let Some(fast) = &cached.fast else { return false };
        cached.version.is_some()
            && is_short_of_session(&self.core, cached)
            && match fast {
                Fast::Point(point) => self.run_point(short, point, Reading::InTransaction, client),
                Fast::Range(range) => self.run_range(short, range, Reading::InTransaction, client),
                Fast::Change(change) => self.run_change(short, change, client),
            }
    }

    fn run_change(&mut self, short: &Short<'_>, change: &ShortChange, client: &mut dyn Client) -> bool {
        if !self.savepoints.is_empty() {
            return false; // they note whether a statement has written
        }
        if let Kind::Insert(insert) = &change.kind
            && insert.passes()
        {
            return false;
        }
        let began_ns = self.row_turn.statement_since().unwrap_or_else(|| {
            let began_ns = waits::now_ns();
            let params = (!short.params.is_empty()).then_some(short.params);
            self.core.backend.runs_from(began_ns, short.text, params);
            self.watch_from(began_ns, short.digest, short.text, short.portal);
            began_ns
        });
        let has_key = match &change.kind {
            Kind::Update(OneUpdate { key, .. }) | Kind::Delete(OneDelete { key, .. }) => {
                key_bytes(key, short.params, &mut self.change_scratch.key)
            }
            Kind::Insert(_) => false,
        };
        if has_key && self.block == Block::None {
            // TRN-2: before the transaction begins.
            let (shape, key) = (&change.shape, &self.change_scratch.key);
            let row = row_digest(shape.oid, key);
            if !self.row_turn.take(row) {
                self.row_turn.was_refused(row, (shape.tree, key), short.text, began_ns);
                return false;
            }
        }
        self.begin_implicit_at(began_ns);
        self.core.row_written.store(0, Relaxed);
        self.change_scratch.taken = false;
        let count = match &change.kind {
            Kind::Update(update) => self.update_known_row(short, (change, update, has_key), began_ns),
            Kind::Insert(insert) => self.insert_one_row(short, change, insert, began_ns),
            Kind::Delete(delete) => self.delete_known_row(short, (change, delete, has_key), began_ns),
        };
        let Some(count) = count else {
            self.in_batch -= 1;
            return false;
        };
        self.changes += 1;
        self.watch.rows = count;
        client.command_complete(match (&change.kind, count) {
            (Kind::Update(_), 0) => "UPDATE 0",
            (Kind::Update(_), _) => "UPDATE 1",
            (Kind::Delete(_), 0) => "DELETE 0",
            (Kind::Delete(_), _) => "DELETE 1",
            (Kind::Insert(_), 0) => "INSERT 0 0",
            (Kind::Insert(_), _) => "INSERT 0 1",
        });
        self.watched(short.digest, began_ns, None, short.portal);
        true
    }

    /// From now on the session takes turns at the rows that its short transactions change. A task that calls `wait_for_turn` has to be polled
    /// whenever it is woken (TRN-5).
    pub fn takes_turns(&mut self) {
        self.row_turn.begin(self.core.backend.owner.get().map_or(0, |owner| owner.id()));
    }

    /// Whether what was tried has to wait for its turn at a row, and can be tried again then.
    pub fn wants_turn(&self) -> bool {
        self.row_turn.is_refused()
    }

    /// Waits for that turn.
    pub async fn wait_for_turn(&mut self) {
        let Some(owner) = self.core.backend.owner.get() else { return };
        self.row_turn.wait(self.core.db.transactions().locks(), owner).await;
    }

    /// The session's waits for locks are polled whenever they are woken, too (TRN-5).
    pub fn is_polled_when_woken(&mut self) {
        self.row_turn.is_polled_when_woken();
    }

    /// Gives back the turn at a row: what comes now may wait (TRN-3).
    #[inline]
    pub fn give_turn_back(&mut self) {
        self.row_turn.give_back();
    }

    /// Updates the row, if there is one; none: the statement must take the general path.
    pub(super) fn update_one_row(
        &mut self,
        short: &Short<'_>,
        change: &ShortChange,
        update: &OneUpdate,
        began_ns: u64,
    ) -> Option<u64> {
        let has_key = key_bytes(&update.key, short.params, &mut self.change_scratch.key);
        self.update_known_row(short, (change, update, has_key), began_ns)
    }

    /// The same for the row whose key is in the scratch memory.
    fn update_known_row(
        &mut self,
        short: &Short<'_>,
        (change, update, has_key): (&ShortChange, &OneUpdate, bool),
        began_ns: u64,
    ) -> Option<u64> {
        let (core, scratch) = (&*self.core, &mut self.change_scratch);
        let Action::Update(plan) = &short.cached.plan.action else { return None };
        let if_taken = if_taken(&self.row_turn);
        let statement = begin(core, short, change, began_ns)?;
        let read = (statement.view, if_taken);
        let done = if has_key { update_found(core, short, (change, update, plan), read, scratch) } else { Some(0) };
        self.watch.has_looked_at_rows(close(core, statement)[0]);
        done
    }
}

/// A change with the turn at its row is brief (LKM-18): it commits within this poll, or the turn is given back.
pub(super) fn if_taken(turn: &RowTurn) -> IfTaken {
    if turn.is_held() { IfTaken::FailBriefly } else { IfTaken::Fail }
}

/// Closes the statement; returns what the session has looked at (`Used::examined`).
pub(super) fn close(core: &Core, statement: clearway_engine::session::Statement) -> [u64; 4] {
    let mut engine = core.engine.take();
    engine.close_statement(statement);
    engine.used().examined()
}

/// DB-3
pub(super) fn is_moved(engine: &mut clearway_engine::session::Session, table: &LockTag) -> bool {
    matches!(table, LockTag::Relation { relation, .. } if engine.is_older_than_rows(*relation as u32))
}

/// Takes the table's lock and the snapshot.
pub(super) fn begin(
    core: &Core,
    short: &Short<'_>,
    change: &ShortChange,
    began_ns: u64,
) -> Option<clearway_engine::session::Statement> {
    let mut engine = core.engine.take();
    if engine.options().read_only || !engine.begin_short(short.text, &change.lock, LockMode::RowExclusive, began_ns) {
        return None;
    }
    if !short.cached.version.is_some_and(|version| engine.sees_catalog(version)) || is_moved(&mut engine, &change.lock)
    {
        return None; // PNT-2
    }
    Some(engine.open_short(StatementMode::Write, began_ns))
}

fn update_found(
    core: &Core,
    short: &Short<'_>,
    (change, update, plan): (&ShortChange, &OneUpdate, &Update),
    (view, if_taken): (View, IfTaken),
    scratch: &mut ChangeScratch,
) -> Option<u64> {
    let ChangeScratch { key, row, value, values, entries, taken } = scratch;
    let (shape, table) = (&*change.shape, &plan.target.table);
    let isolation = {
        let mut engine = core.engine.take();
        let isolation = engine.options().isolation;
        let Some(found) = engine.find_now(shape, &view, key)? else { return Some(0) };
        value.clear();
        value.extend_from_slice(found);
        isolation
    };
    entries.clear();
    if let Some(keys) = &update.entries {
        entries.go(keys, shape, (key, value)).then_some(())?;
    }
    row.clear();
    row.resize(table.base + table.types.len(), Datum::Null);
    if let Some(reads) = &update.reads {
        let mut sound = true;
        let put = &mut |column: usize, value: ValueRef<'_>| match borrowed_datum(value, table.types[column]) {
            Ok(datum) => row[table.base + column] = datum,
            Err(_) => sound = false,
        };
        reads.read(shape, key, value, put).ok()?;
        sound.then_some(())?;
    }
    values.clear();
    within(core, short, view, isolation, |cx| {
        plan.set.iter().try_for_each(|(_, e)| cx.value_now(e, row).map(|new| values.push(to_value(&new))))
    })
    .ok()?;
    match &update.patcher {
        Some(patcher) => patcher.write(value, values).then_some(())?,
        None => put_together(shape, key, (&update.set, values), value).then_some(())?,
    }
    if let Some(keys) = &update.entries {
        entries.come(keys, shape, (key, value)).then_some(())?;
    }
    core.writes_row(shape.oid, key);
    match core.engine.take().update_now(shape, (key, value), (Basis::Read(view), if_taken), entries) {
        Ok(Changed::Done) => Some(1),
        Ok(Changed::Newer | Changed::Again | Changed::Exists { .. }) | Err(NotNow::Other) => None,
        Err(NotNow::Taken) => {
            *taken = true;
            None
        }
    }
}
