//! Functions that reset statistics: pg_stat_reset and its variants, for superusers as in PostgreSQL. Also
//! `record_slow`, and the functions that return positions of the log.

use super::Cx;
use clearway_context::statements::Statements;
use clearway_engine::catalog::Object;
use clearway_syntax::{Result, SqlError};
use clearway_values::expr::HostFunction;
use clearway_values::types::Datum;

impl Cx<'_> {
    pub(super) fn reset_call(self, function: HostFunction, args: &[Datum]) -> Result<Datum> {
        use HostFunction as F;
        let core = self.run.core;
        let number = |i: usize| args.get(i).and_then(Datum::as_i64).unwrap_or(0);
        match function {
            // What a statement reads is always as of now.
            F::StatClearSnapshot | F::StatForceNextFlush => {}
            F::CurrentWalLsn | F::CurrentWalInsertLsn => {
                return Ok(Datum::Lsn(core.db.transactions().store().wal().end_lsn().0));
            }
            F::CurrentWalFlushLsn => return Ok(Datum::Lsn(core.db.transactions().store().wal().durable_lsn().0)),
            F::StatReset => {
                self.may_reset("pg_stat_reset")?;
                let catalog = &self.run.names.catalog;
                let database = core.database;
                core.db.usage().reset(database, |oid| match catalog.get(oid).map(|object| &**object) {
                    Some(Object::Relation(r)) => r.database == database,
                    Some(Object::Index(i)) => i.database == database,
                    _ => false,
                });
                core.backends.reset_sessions_of(&core.database_name);
                core.db.transactions().store().temp_files().reset(database);
            }
            F::StatResetShared => {
                self.may_reset("pg_stat_reset_shared")?;
                let name = args.first().and_then(Datum::as_str).unwrap_or("");
                if !self.run.views.reset_shared(name, self.run) {
                    let message = format!("unrecognized reset target: \"{name}\"");
                    let hint = "Target must be \"archiver\", \"bgwriter\", \"recovery_prefetch\", or \"wal\".";
                    return Err(SqlError::new("22023", message).hint(hint));
                }
            }
            F::StatResetTable => {
                self.may_reset("pg_stat_reset_single_table_counters")?;
                core.db.usage().reset_one(number(0) as u32);
            }
            // There are neither such caches nor such functions.
            F::StatResetSlru => self.may_reset("pg_stat_reset_slru")?,
            F::StatResetFunction => self.may_reset("pg_stat_reset_single_function_counters")?,
            F::RecordSlow => {
                self.may_reset("record_slow")?;
                let ns = |i: usize| match args.get(i) {
                    Some(Datum::Interval(interval)) => (interval.span().max(0) as f64) * 1e3,
                    _ => 0.0,
                };
                let bytes = u64::try_from(number(2)).unwrap_or(0);
                core.backends.recorded.record_slow(ns(0) as u64, ns(1) as u64, bytes);
            }
            F::StatementsReset | F::StatementsResetOf => {
                self.may_reset("pg_stat_statements_reset")?;
                let (user, database, query) = (number(0) as u32, number(1) as u32, number(2) as u64);
                reset_statements(&core.backends.statements, user, database, query);
            }
            other => return Err(SqlError::unsupported(format!("function {other:?}"))),
        }
        Ok(Datum::Void)
    }

    fn may_reset(self, function: &str) -> Result<()> {
        if self.run.core.role(&self.run.names.catalog).is_some_and(|role| role.superuser) {
            return Ok(());
        }
        Err(SqlError::new("42501", format!("permission denied for function {function}")))
    }
}

/// Those of a role, a database, a digest; 0 stands for all.
fn reset_statements(statements: &Statements, user: u32, database: u32, query: u64) {
    if (user, database, query) == (0, 0, 0) {
        return statements.reset();
    }
    let is_meant = |meant: u64, is: u64| meant == 0 || meant == is;
    statements.forget(|key| {
        is_meant(user.into(), key.user.into())
            && is_meant(database.into(), key.database.into())
            && is_meant(query, key.query)
    });
}
