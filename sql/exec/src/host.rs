//! Answers what expressions ask of the session: facts that are known at once, and calls that may wait.

use super::query::QueryRows;
use super::{Cx, SubqueryRows};
use clearway_base::memory::{Held, Kind};
use clearway_base::sync::sleep;
use clearway_base::waits::{Object as WaitObject, WaitEvent, in_wait};
use clearway_context::errors::from_engine;
use clearway_context::interrupt::Reason;
use clearway_context::names::own_path;
use clearway_context::privileges::{self, Judge};
use clearway_context::routines::qualified_of;
use clearway_engine::catalog::{Catalog, Object, Sequence};
use clearway_planner::plan::Subplan;
use clearway_syntax::error::{Result, SqlError, code};
use clearway_txn::lockmgr::{AdvisoryKey, IfTaken, LockMode, LockScope, LockTag};
use clearway_values::expr::bound::SubqueryUse;
use clearway_values::expr::host::HostFuture;
use clearway_values::expr::operators::{Op, binary};
use clearway_values::expr::{Bound, BoundKind, Host, HostFunction, Session};
use clearway_values::types::datetime::Format;
use clearway_values::types::datum::{Array, Record, RowShape};
use clearway_values::types::text::Names;
use clearway_values::types::{self, Datum, oid};
use std::sync::Arc;
use std::time::Duration;

/// The host of one place of evaluation.
pub struct CxHost<'a> {
    /// The place.
    pub cx: Cx<'a>,
}

impl Session for CxHost<'_> {
    fn format(&self) -> &Format {
        &self.cx.run.format
    }
    fn transaction_start(&self) -> i64 {
        self.cx.run.transaction_started
    }
    fn statement_start(&self) -> i64 {
        self.cx.run.started
    }
    fn clock(&self) -> i64 {
        clearway_context::core::now()
    }
    fn current_user(&self) -> Result<String> {
        self.cx.run.core.current_user()
    }
    fn session_user(&self) -> Result<String> {
        self.cx.run.core.session_user()
    }
    fn database(&self) -> String {
        self.cx.run.core.database_name.clone()
    }
    fn schema(&self) -> Option<String> {
        let names = &self.cx.run.names;
        own_path(&names.path).find_map(|s| match s.as_str() {
            "pg_catalog" | "information_schema" => Some(s.clone()),
            _ => names.catalog.schema(names.database, s).map(|schema| schema.name.clone()),
        })
    }
    fn version(&self) -> String {
        clearway_context::settings::VERSION_TEXT.to_owned()
    }
    fn backend_pid(&self) -> i32 {
        self.cx.run.core.backend.pid
    }
    fn setting(&self, name: &str) -> Option<String> {
        self.cx.run.core.show(name).ok()
    }
    fn random(&self) -> f64 {
        self.cx.run.core.random.number()
    }
    fn seed_random(&self, seed: f64) {
        self.cx.run.core.random.start_from(seed);
    }
    fn query(&self) -> String {
        self.cx.run.core.backend.activity.lock().query.to_string()
    }
    fn names(&self) -> &dyn Names {
        &self.cx.run.names
    }
}

fn int(args: &[Datum], i: usize) -> i64 {
    args.get(i).and_then(Datum::as_i64).unwrap_or(0)
}

fn sequence_in(catalog: &Catalog, oid: u32) -> Result<Sequence> {
    match catalog.get(oid).map(|o| &**o) {
        Some(Object::Sequence(s)) => Ok(s.clone()),
        Some(other) => Err(SqlError::new(code::WRONG_OBJECT_TYPE, format!("\"{}\" is not a sequence", other.name()))),
        None => Err(SqlError::new(code::UNDEFINED_TABLE, format!("could not open relation with OID {oid}"))),
    }
}

fn advisory(args: &[Datum]) -> AdvisoryKey {
    match args {
        [Datum::Int8(key)] => AdvisoryKey::One(*key),
        _ => AdvisoryKey::Two(int(args, 0) as i32, int(args, 1) as i32),
    }
}

impl Host for CxHost<'_> {
    fn call(&self, function: HostFunction, args: Vec<Datum>) -> HostFuture<'_> {
        Box::pin(self.cx.call(function, args))
    }

    fn subquery<'a>(&'a self, id: usize, usage: &'a SubqueryUse, args: Vec<Datum>, row: &'a [Datum]) -> HostFuture<'a> {
        Box::pin(async move {
            let plan = &self.cx.run.plan.subqueries;
            let sub = plan.get(id).ok_or_else(|| SqlError::internal("a subquery without a plan"))?;
            let outer: Vec<&[Datum]> = std::iter::once(row).chain(self.cx.outer.iter().copied()).collect();
            let cx = Cx { run: self.cx.run, outer: &outer };
            let kept = cx.subquery_rows(id, sub, usage).await?;
            let first = |r: &Vec<Datum>| r.first().cloned().unwrap_or(Datum::Null);
            let rows = &kept.rows;
            match usage {
                SubqueryUse::Exists => Ok(Datum::Bool(!rows.is_empty())),
                SubqueryUse::Scalar | SubqueryUse::Row { .. } | SubqueryUse::Fields { .. } if rows.len() > 1 => {
                    Err(SqlError::new("21000", "more than one row returned by a subquery used as an expression"))
                }
                SubqueryUse::Scalar => Ok(rows.first().map_or(Datum::Null, first)),
                SubqueryUse::Row { op } => {
                    let holds = rows.first().map(|row| row_holds(&args, *op, row, self)).transpose()?.flatten();
                    Ok(holds.map_or(Datum::Null, Datum::Bool))
                }
                SubqueryUse::Fields { .. } => {
                    let types = sub.query.columns.iter().map(|c| c.ty).collect();
                    let shape = Arc::new(RowShape { oid: oid::RECORD, names: None, types });
                    let row = rows.first().map(|row| Record::new(shape.clone(), row.clone())).transpose()?;
                    Ok(Datum::Row(row.unwrap_or_else(|| Record::of_nulls(shape)).into()))
                }
                SubqueryUse::Array => {
                    let element = sub.query.columns.first().map_or(oid::TEXT, |c| c.ty.oid);
                    let values: Vec<Datum> = rows.iter().map(first).collect();
                    if types::array_of(element).is_none() && types::element_of(element).is_some() {
                        return clearway_values::expr::accumulate::arrays(&values, element);
                    }
                    types::size::array(Array::one_dimensional(element, values))
                }
                SubqueryUse::Quantified { op: Op::Eq, all: false }
                    if args.len() > 1
                        && !sub.correlated
                        && let Some((is_among, others)) = kept.among(&args) =>
                {
                    if is_among {
                        Ok(Datum::Bool(true))
                    } else {
                        row_among(&args, Op::Eq, false, others, self)
                    }
                }
                SubqueryUse::Quantified { op, all } if args.len() > 1 => row_among(&args, *op, *all, rows, self),
                SubqueryUse::Quantified { op: Op::Eq, all: false } if !sub.correlated => {
                    let left = args.first().unwrap_or(&Datum::Null);
                    Ok(kept.holds(left).map_or(Datum::Null, Datum::Bool))
                }
                SubqueryUse::Quantified { op, all } => {
                    let element = sub.query.columns.first().map_or(oid::TEXT, |c| c.ty.oid);
                    let list = Array::one_dimensional(element, rows.iter().map(first).collect());
                    let left = args.first().cloned().unwrap_or(Datum::Null);
                    clearway_values::expr::eval::quantified(&left, *op, *all, &Datum::Array(list.into()), self)
                }
            }
        })
    }
}

impl Cx<'_> {
    /// The rows of a subquery, as many as its use asks for: those that are kept if it depends on nothing.
    async fn subquery_rows(self, id: usize, sub: &Subplan, usage: &SubqueryUse) -> Result<Arc<SubqueryRows>> {
        if let (false, Some(rows)) = (sub.correlated, self.run.state.get(id)) {
            return Ok(rows);
        }
        let mut source = QueryRows::new(sub.query.clone());
        let enough = match usage {
            SubqueryUse::Exists => 1,
            SubqueryUse::Scalar | SubqueryUse::Row { .. } | SubqueryUse::Fields { .. } => 2,
            SubqueryUse::Array | SubqueryUse::Quantified { .. } => usize::MAX,
        };
        let mut rows = Vec::new();
        let mut held = Held::new(Kind::Subqueries);
        while rows.len() < enough {
            let Some(row) = source.next(self).await? else { break };
            rows.push(row);
            held.grow()?;
        }
        let rows = Arc::new(SubqueryRows::new(rows, held));
        if !sub.correlated {
            self.run.state.put(id, rows.clone());
        }
        Ok(rows)
    }

    /// A condition with the values of its subqueries in their place, where all of them depend on nothing and have been evaluated; none: it must
    /// still be awaited.
    pub(super) fn known(self, condition: &Bound) -> Option<Bound> {
        let state = self.run.state;
        let is_known = |e: &Bound| match &e.kind {
            BoundKind::Host { .. } => false,
            BoundKind::Subquery { id, usage: SubqueryUse::Scalar, args, correlated: false } => {
                args.is_empty() && state.get(*id).is_some_and(|kept| kept.rows.len() <= 1)
            }
            BoundKind::Subquery { .. } => false,
            _ => true,
        };
        if condition.any(&|e| !is_known(e)) {
            return None;
        }
        let mut known = condition.clone();
        put_known(&mut known, self);
        Some(known)
    }
}

fn put_known(e: &mut Bound, cx: Cx<'_>) {
    if let BoundKind::Subquery { id, .. } = &e.kind {
        let first = cx.run.state.get(*id).and_then(|kept| kept.rows.first().and_then(|row| row.first().cloned()));
        e.kind = BoundKind::Const(first.unwrap_or(Datum::Null));
        return;
    }
    clearway_base::stack::deeper(|| e.children_mut().into_iter().for_each(|e| put_known(e, cx)));
}

/// Whether `(a, b) op row`, in three-valued logic: the first pair of fields that differ, or that has a NULL, decides an order.
fn row_holds(left: &[Datum], op: Op, row: &[Datum], session: &dyn Session) -> Result<Option<bool>> {
    let mut same = Some(true);
    for (l, r) in left.iter().zip(row) {
        if l.is_null() || r.is_null() {
            if !matches!(op, Op::Eq | Op::Ne) {
                return Ok(None);
            }
            same = None;
        } else if binary(Op::Ne, l, r, session)?.as_bool() == Some(true) {
            return match op {
                Op::Eq | Op::Ne => Ok(Some(op == Op::Ne)),
                _ => Ok(binary(op, l, r, session)?.as_bool()),
            };
        }
    }
    Ok(same.map(|_| matches!(op, Op::Eq | Op::Le | Op::Ge)))
}

/// `(a, b) = ANY (rows)` and similar comparisons of rows.
fn row_among(left: &[Datum], op: Op, all: bool, rows: &[Vec<Datum>], session: &dyn Session) -> Result<Datum> {
    let mut unknown = false;
    for row in rows {
        clearway_base::breath::step(16)?;
        match row_holds(left, op, row, session)? {
            Some(holds) if holds != all => return Ok(Datum::Bool(!all)),
            Some(_) => {}
            None => unknown = true,
        }
    }
    Ok(if unknown { Datum::Null } else { Datum::Bool(all) })
}

/// How long `pg_sleep` and its kin sleep: for seconds, for an interval, until a moment.
fn to_sleep(args: &[Datum], session: &dyn Session) -> Result<Duration> {
    let now = session.clock();
    let until = |moment: &Datum| match moment {
        Datum::TimestampTz(moment) => moment.saturating_sub(now) as f64 / 1e6,
        _ => 0.0,
    };
    let seconds = match args.first() {
        Some(interval @ Datum::Interval(_)) => until(&binary(Op::Add, &Datum::TimestampTz(now), interval, session)?),
        Some(moment @ Datum::TimestampTz(_)) => until(moment),
        seconds => seconds.and_then(Datum::as_f64).unwrap_or(0.0),
    };
    if seconds.is_nan() {
        return Err(SqlError::new("22023", "the time to sleep must be a number"));
    }
    Ok(Duration::from_secs_f64(seconds.clamp(0.0, 1e9)))
}

impl Cx<'_> {
    /// The number of the transaction, which it has from now on.
    fn transaction_id(self) -> Result<u64> {
        let mut session = self.run.core.engine.take();
        let txn = session.txn();
        txn.assign().map_err(|e| from_engine(e.into()))?;
        Ok(txn.id().map_or(0, |t| t.0))
    }

    async fn call(self, function: HostFunction, args: Vec<Datum>) -> Result<Datum> {
        use HostFunction as F;
        let core = self.run.core;
        Ok(match function {
            F::Sql(oid) | F::Operator { function: oid, .. } => return self.routine_value(oid, args).await,
            F::PgSleep | F::PgSleepFor | F::PgSleepUntil => {
                in_wait(WaitEvent::PgSleep, WaitObject::NONE, sleep(to_sleep(&args, &CxHost { cx: self })?)).await;
                Datum::Void
            }
            F::Nextval => Datum::Int8(self.nextval(int(&args, 0) as u32).await?),
            F::Currval => {
                let sequence = self.sequence(int(&args, 0) as u32)?;
                privileges::sequence(core, &self.run.names.catalog, &sequence, "Ur")?;
                let value = core.sequences.lock().of.get(&sequence.oid).copied();
                Datum::Int8(value.ok_or_else(|| {
                    let message =
                        format!("currval of sequence \"{}\" is not yet defined in this session", sequence.name);
                    SqlError::new("55000", message)
                })?)
            }
            F::Lastval => self.lastval()?,
            F::SequenceLastValue => self.sequence_last_value(int(&args, 0) as u32).await?,
            F::SequenceState => self.sequence_state(int(&args, 0) as u32).await?,
            F::Setval => self.setval(int(&args, 0) as u32, int(&args, 1), true).await?,
            F::SetvalCalled => {
                let called = args.get(2).and_then(Datum::as_bool).unwrap_or(true);
                self.setval(int(&args, 0) as u32, int(&args, 1), called).await?
            }
            F::SetConfig => {
                let name = args
                    .first()
                    .and_then(Datum::as_str)
                    .ok_or_else(|| SqlError::new("22004", "SET requires parameter name"))?;
                let value = args.get(1).and_then(Datum::as_str);
                let local = args.get(2).and_then(Datum::as_bool).unwrap_or(false);
                core.set(name, value, local)?;
                Datum::text(core.settings.lock().show(name)?)
            }
            F::TxidCurrent => Datum::Int8(self.transaction_id()? as i64),
            F::CurrentXactId => Datum::Word(self.transaction_id()?, oid::XID8),
            F::ExportSnapshot => Datum::text(core.export_snapshot(&self.run.view)?),
            F::BlockingPids => {
                let pids = core.db.transactions().locks().blockers(int(&args, 0) as i32);
                let list = pids.into_iter().map(Datum::Int4).collect();
                Datum::Array(Array::one_dimensional(oid::INT4, list).into())
            }
            F::TestSessionIsBlocked => {
                let pids = core.db.transactions().locks().blockers(int(&args, 0) as i32);
                let among = match args.get(1) {
                    Some(Datum::Array(a)) => a.values.iter().filter_map(Datum::as_i64).collect::<Vec<_>>(),
                    _ => Vec::new(),
                };
                Datum::Bool(pids.iter().any(|p| among.contains(&i64::from(*p))))
            }
            F::CancelBackend => Datum::Bool(self.signal(int(&args, 0) as i32, Reason::Cancel)?),
            F::TerminateBackend => Datum::Bool(self.signal(int(&args, 0) as i32, Reason::Terminate)?),
            F::TerminateBackendWithin => Datum::Bool(self.terminate_within(int(&args, 0) as i32, int(&args, 1)).await?),
            F::ReloadConf => Datum::Bool(self.reload().await?),
            F::GetExprPretty => self.pretty_expression(args),
            F::GetExpr => self.expression_of(&args),
            F::GetIndexdef | F::GetIndexdefColumn => self.index_definition(&args),
            F::GetConstraintdef | F::GetConstraintdefPretty => self.constraint_definition(&args),
            F::TableIsVisible => self.table_is_visible(int(&args, 0) as u32),
            F::GetUserById => {
                let oid = int(&args, 0) as u32;
                match self.run.names.catalog.get(oid).map(|o| &**o) {
                    Some(Object::Role(r)) => Datum::text(r.name.as_str()),
                    _ => Datum::text(format!("unknown (OID={oid})")),
                }
            }
            F::GetViewdef | F::GetViewdefPretty => self.view_definition(int(&args, 0) as u32),
            F::Catalog(name) => self.catalog_call(name, &args)?,
            F::ObjDescription if args.get(1).and_then(Datum::as_str) == Some("pg_largeobject") => {
                return self.large_object_comment(&args).await;
            }
            F::ObjDescription
            | F::ObjDescriptionAny
            | F::ShobjDescription
            | F::ColDescription
            | F::PgNotify
            | F::NotificationQueueUsage => self.comment_call(function, &args)?,
            _ => return self.size_call(function, &args).await,
        })
    }

    /// pg_get_expr: what the catalogs have of an expression is its text.
    fn pretty_expression(self, args: Vec<Datum>) -> Datum {
        let wants_few = args.get(2).and_then(Datum::as_bool) == Some(true);
        let text = args.first().and_then(Datum::as_str).filter(|_| wants_few);
        let found = text.and_then(|text| self.run.views.pretty_condition(text, int(&args, 1) as u32, self.run));
        found.map_or_else(|| self.expression_of(&args), Datum::text)
    }

    /// A text of a relation's definition, as the session's path has it.
    fn expression_of(self, args: &[Datum]) -> Datum {
        match args.first().and_then(Datum::as_str) {
            Some(text) => Datum::text(qualified_of(&self.run.names, int(args, 1) as u32, text)),
            None => Datum::Null,
        }
    }

    /// pg_get_indexdef: the whole statement, or one column.
    fn index_definition(self, args: &[Datum]) -> Datum {
        let names = &self.run.names;
        match names.catalog.get(int(args, 0) as u32).map(|o| &**o) {
            Some(Object::Index(i)) => match int(args, 1) {
                0 => {
                    let pretty = args.get(2).and_then(Datum::as_bool).unwrap_or(false);
                    Datum::text(self.run.views.index_definition(i, pretty, self.run))
                }
                n => {
                    let pretty = args.get(2).and_then(Datum::as_bool).unwrap_or(false);
                    let at = usize::try_from(n - 1).unwrap_or(usize::MAX);
                    Datum::text(self.run.views.index_column(i, at, pretty, self.run).unwrap_or_default())
                }
            },
            _ => Datum::Null,
        }
    }

    fn constraint_definition(self, args: &[Datum]) -> Datum {
        let pretty = args.get(1).and_then(Datum::as_bool).unwrap_or(false);
        let found = self.run.views.constraint_definition(int(args, 0) as u32, pretty, self.run);
        found.map_or(Datum::Null, Datum::text)
    }

    fn table_is_visible(self, oid: u32) -> Datum {
        let names = &self.run.names;
        if let Some(view) = clearway_context::views::by_oid(oid) {
            return Datum::Bool(view.schema == "pg_catalog");
        }
        let shown = names.relation_name(oid).map(|name| clearway_context::names::split_name(&name));
        shown.map_or(Datum::Null, |parts| Datum::Bool(parts.len() == 1))
    }

    /// pg_reload_conf.
    async fn reload(self) -> Result<bool> {
        let core = self.run.core;
        if !Judge::of(core, &core.catalog()).is_superuser() {
            return Err(SqlError::new("42501", "permission denied for function pg_reload_conf"));
        }
        match core.backends.configuration() {
            Some(configuration) => Ok(configuration.reload().await),
            None => Err(SqlError::unsupported("pg_reload_conf in a database without a server")),
        }
    }

    fn sequence(self, oid: u32) -> Result<Sequence> {
        sequence_in(&self.run.names.catalog, oid)
    }

    /// Checks the right to a sequence, locks the sequence against ALTER SEQUENCE, and reads its definition after the lock has been granted.
    async fn locked_sequence(self, oid: u32, letters: &str, function: &str) -> Result<Sequence> {
        let core = self.run.core;
        let sequence = self.sequence(oid)?;
        if function != "nextval" || !self.gives_identity(&sequence) {
            privileges::sequence(core, &self.run.names.catalog, &sequence, letters)?;
        }
        core.lock_relation(oid, LockMode::RowExclusive, IfTaken::Wait).await?;
        let temporary = self.run.names.catalog.is_temporary(&Object::Sequence(sequence));
        if core.engine.take().options().read_only && !temporary {
            return Err(SqlError::new("25006", format!("cannot execute {function}() in a read-only transaction")));
        }
        let catalog = core.engine.take().catalog();
        sequence_in(&catalog, oid)
    }

    /// Whether the statement inserts into the table whose identity column has its values from a sequence: it needs no right to that.
    fn gives_identity(self, sequence: &Sequence) -> bool {
        let Some((table, column)) = sequence.owned_by else { return false };
        let column = self.run.names.catalog.relation(table).and_then(|table| table.columns.get(column));
        column.is_some_and(|column| column.identity.is_some())
            && self.run.plan.locks.iter().any(|lock| lock.oid == table && lock.privileges.contains('a'))
    }

    /// `last_value`, `log_cnt` and `is_called` at one moment: what a SELECT from the sequence reads.
    async fn sequence_state(self, oid: u32) -> Result<Datum> {
        let core = self.run.core;
        let sequence = self.sequence(oid)?;
        privileges::sequence(core, &self.run.names.catalog, &sequence, "r")?;
        core.lock_relation(oid, LockMode::AccessShare, IfTaken::Wait).await?;
        let shown = core.db.sequences().show(core.db.transactions(), &sequence).await.map_err(from_engine)?;
        core.engine.take().depends_on(shown.dep_lsn);
        let cells = [shown.last.to_string(), shown.left.to_string(), shown.called.to_string()];
        Ok(Datum::Array(Array::one_dimensional(oid::TEXT, cells.map(Datum::text).to_vec()).into()))
    }

    /// The last value that was given to any session; NULL before the first.
    async fn sequence_last_value(self, oid: u32) -> Result<Datum> {
        let core = self.run.core;
        let sequence = self.sequence(oid)?;
        privileges::sequence(core, &self.run.names.catalog, &sequence, "rU")?;
        core.lock_relation(oid, LockMode::AccessShare, IfTaken::Wait).await?;
        let shown = core.db.sequences().show(core.db.transactions(), &sequence).await.map_err(from_engine)?;
        core.engine.take().depends_on(shown.dep_lsn);
        Ok(if shown.called { Datum::Int8(shown.last) } else { Datum::Null })
    }

    fn lastval(self) -> Result<Datum> {
        let core = self.run.core;
        let undefined = || SqlError::new("55000", "lastval is not yet defined in this session");
        let (oid, value) = core.sequences.lock().last.ok_or_else(undefined)?;
        let catalog = &self.run.names.catalog;
        let sequence = sequence_in(catalog, oid).map_err(|_| undefined())?;
        privileges::sequence(core, catalog, &sequence, "Ur")?;
        Ok(Datum::Int8(value))
    }

    async fn nextval(self, oid: u32) -> Result<i64> {
        let core = self.run.core;
        let sequence = self.locked_sequence(oid, "Uw", "nextval").await?;
        let given = core.db.sequences().next(core.db.transactions(), &sequence).await.map_err(from_engine)?;
        core.engine.take().depends_on(given.dep_lsn);
        let value = given.value.ok_or_else(|| {
            let (end, at) = if sequence.increment > 0 { ("maximum", sequence.max) } else { ("minimum", sequence.min) };
            SqlError::new("2200H", format!("nextval: reached {end} value of sequence \"{}\" ({at})", sequence.name))
        })?;
        let mut sequences = core.sequences.lock();
        sequences.of.insert(oid, value);
        sequences.last = Some((oid, value));
        Ok(value)
    }

    async fn setval(self, oid: u32, value: i64, called: bool) -> Result<Datum> {
        let core = self.run.core;
        let sequence = self.locked_sequence(oid, "w", "setval").await?;
        if !(sequence.min..=sequence.max).contains(&value) {
            let message = format!(
                "setval: value {value} is out of bounds for sequence \"{}\" ({}..{})",
                sequence.name, sequence.min, sequence.max
            );
            return Err(SqlError::new(code::NUMERIC_VALUE_OUT_OF_RANGE, message));
        }
        let lsn =
            core.db.sequences().set(core.db.transactions(), &sequence, value, called).await.map_err(from_engine)?;
        core.engine.take().depends_on(lsn);
        if called {
            core.sequences.lock().of.insert(oid, value);
        }
        Ok(Datum::Int8(value))
    }

    pub(super) async fn advisory_call(self, function: HostFunction, args: &[Datum]) -> Result<Datum> {
        use HostFunction as F;
        let core = self.run.core;
        let tag = LockTag::Advisory { database: core.database, key: advisory(args) };
        let (mode, scope, attempt) = match function {
            F::AdvisoryLock | F::AdvisoryLock2 => (LockMode::Exclusive, LockScope::Session, false),
            F::AdvisoryLockShared | F::AdvisoryLockShared2 => (LockMode::Share, LockScope::Session, false),
            F::AdvisoryXactLock | F::AdvisoryXactLock2 => (LockMode::Exclusive, LockScope::Transaction, false),
            F::AdvisoryXactLockShared | F::AdvisoryXactLockShared2 => (LockMode::Share, LockScope::Transaction, false),
            F::TryAdvisoryLock | F::TryAdvisoryLock2 => (LockMode::Exclusive, LockScope::Session, true),
            F::TryAdvisoryLockShared | F::TryAdvisoryLockShared2 => (LockMode::Share, LockScope::Session, true),
            F::TryAdvisoryXactLock | F::TryAdvisoryXactLock2 => (LockMode::Exclusive, LockScope::Transaction, true),
            F::TryAdvisoryXactLockShared | F::TryAdvisoryXactLockShared2 => {
                (LockMode::Share, LockScope::Transaction, true)
            }
            F::AdvisoryUnlock | F::AdvisoryUnlock2 => return Ok(self.advisory_unlock(&tag, LockMode::Exclusive)),
            F::AdvisoryUnlockShared | F::AdvisoryUnlockShared2 => {
                return Ok(self.advisory_unlock(&tag, LockMode::Share));
            }
            F::AdvisoryUnlockAll => {
                let session = core.engine.take();
                core.db.transactions().locks().release_session(session.owner());
                // What the tables of locks keep for later belongs to all sessions.
                *core.advisory_held.lock() = Held::new(Kind::AdvisoryLocks);
                return Ok(Datum::Void);
            }
            other => return self.backup_call(other, args).await,
        };
        let if_taken = if attempt { IfTaken::Fail } else { IfTaken::Wait };
        core.advisory_held.lock().resume();
        let taken = {
            let mut session = core.engine.take();
            core.lock_wait(session.lock(tag, mode, scope, if_taken)).await
        };
        core.advisory_held.lock().grow()?;
        match taken {
            Ok(()) => Ok(if attempt { Datum::Bool(true) } else { Datum::Void }),
            Err(e) if attempt && clearway_context::errors::is_lock_not_available(&e) => Ok(Datum::Bool(false)),
            Err(e) => Err(from_engine(e)),
        }
    }

    fn advisory_unlock(self, tag: &LockTag, mode: LockMode) -> Datum {
        let core = self.run.core;
        core.advisory_held.lock().resume();
        let released = {
            let session = core.engine.take();
            core.db.transactions().locks().release_one(session.owner(), tag, mode)
        };
        core.advisory_held.lock().measure();
        if !released {
            let message = format!("you don't own a lock of type {}", mode.name());
            core.notice("WARNING", SqlError::new("01000", message));
        }
        Datum::Bool(released)
    }
}
