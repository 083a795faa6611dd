//! Functions about transactions: which have ended and how, and which ids a snapshot sees (`pg_xact_status`, `pg_current_snapshot`).

use super::Cx;
use clearway_storage::ids::TxnId;
use clearway_syntax::error::{Result, SqlError, code};
use clearway_txn::mvcc::state::Status;
use clearway_values::types::snapshot::{self, Snapshot};
use clearway_values::types::{Datum, oid};
use std::sync::Arc;

impl Cx<'_> {
    /// Answers one of these functions; none: it is another one.
    pub(super) fn transaction_call(self, name: &str, args: &[Datum]) -> Option<Result<Datum>> {
        Some(match name {
            "txid_current_if_assigned" | "pg_current_xact_id_if_assigned" => {
                let id = self.run.core.engine.take().txn().id();
                let wide = name != "txid_current_if_assigned";
                let shown = |id: u64| if wide { Datum::Word(id, oid::XID8) } else { Datum::Int8(id as i64) };
                Ok(id.map_or(Datum::Null, |id| shown(id.0)))
            }
            "txid_status" | "pg_xact_status" => self.status_of(match args.first() {
                Some(Datum::Word(id, _)) => *id,
                other => other.and_then(Datum::as_i64).unwrap_or(0) as u64,
            }),
            "txid_current_snapshot" | "pg_current_snapshot" => self.current_snapshot(),
            _ => return None,
        })
    }

    /// How a transaction has ended. NULL for one that is no longer known.
    fn status_of(self, id: u64) -> Result<Datum> {
        let book = self.run.core.db.transactions().book();
        // As in PostgreSQL, no transaction has an id whose lower half is 0.
        if id as u32 == 0 {
            return Ok(Datum::Null);
        }
        if id >= book.next_txn().0 {
            let message = format!("transaction ID {id} is in the future");
            return Err(SqlError::new(code::INVALID_PARAMETER_VALUE, message));
        }
        Ok(match book.end_of(TxnId(id)) {
            None => Datum::Null,
            Some(Status::Active) => Datum::text("in progress"),
            Some(Status::Aborted) => Datum::text("aborted"),
            Some(Status::Committed(lsn)) => {
                // The answer must not be sent before the commit is durable.
                self.run.core.engine.take().txn().depends_on(lsn);
                Datum::text("committed")
            }
        })
    }

    /// The ids of the snapshot with which the statement runs, the same each time.
    fn current_snapshot(self) -> Result<Datum> {
        let made = match self.run.state.snapshot.get() {
            Some(made) => made.clone(),
            None => {
                let made: Arc<str> = self.snapshot_text()?.into();
                self.run.state.snapshot.get_or_init(|| made).clone()
            }
        };
        Ok(Datum::Text(made))
    }

    fn snapshot_text(self) -> Result<String> {
        let core = self.run.core;
        let view = self.run.view;
        let mut session = core.engine.take();
        let own = session.txn().id().unwrap_or(TxnId::NONE);
        let too_old = || {
            SqlError::new("72000", "snapshot too old")
                .detail("More transactions have committed since than the server remembers by their ids.")
        };
        let ids = core.db.transactions().book().snapshot_ids(view.read_lsn, own).ok_or_else(too_old)?;
        session.txn().depends_on(view.read_lsn);
        Ok(snapshot::text(&Snapshot {
            xmin: ids.xmin.0,
            xmax: ids.xmax.0,
            running: ids.running.iter().map(|id| id.0).collect(),
        }))
    }
}
