//! Exported snapshots under SQL's names: `pg_export_snapshot`, SET TRANSACTION SNAPSHOT.

use super::core::Core;
use clearway_engine::session::ImportRefused;
use clearway_syntax::error::{Result, SqlError, code};
use clearway_txn::mvcc::book::View;

impl Core {
    /// Exports the snapshot at which a view reads; its id.
    ///
    /// # Errors
    /// 25001: there is a savepoint.
    pub fn export_snapshot(&self, view: &View) -> Result<String> {
        let serializable = self.is_serializable();
        let mut engine = self.engine.take();
        if engine.has_savepoint() {
            return Err(SqlError::new("25001", "cannot export a snapshot from a subtransaction"));
        }
        Ok(engine.export_snapshot(view, serializable))
    }

    /// The open transaction reads at an exported snapshot from now on.
    ///
    /// # Errors
    /// 25001: it has queried, or has a savepoint. 22023: there is no such snapshot. 0A000: its isolation, or the snapshot's database, is another one.
    pub fn import_snapshot(&self, id: &str) -> Result<()> {
        let serializable = self.is_serializable();
        self.engine.take().import_snapshot(id, serializable).map_err(|refused| explained(refused, id))
    }

    fn is_serializable(&self) -> bool {
        self.settings.lock().modes().0 == "serializable"
    }
}

fn explained(refused: ImportRefused, id: &str) -> SqlError {
    use ImportRefused as R;
    let message = match refused {
        R::NotFirst => return SqlError::new("25001", "SET TRANSACTION SNAPSHOT must be called before any query"),
        R::Unknown => return SqlError::new("22023", format!("invalid snapshot identifier: \"{id}\"")),
        R::ReadCommitted => {
            "a snapshot-importing transaction must have isolation level SERIALIZABLE or REPEATABLE READ"
        }
        R::NotSerializable => "a serializable transaction cannot import a snapshot from a non-serializable transaction",
        R::ReadOnly => "a non-read-only serializable transaction cannot import a snapshot from a read-only transaction",
        R::OtherDatabase => "cannot import a snapshot from a different database",
    };
    SqlError::new(code::FEATURE_NOT_SUPPORTED, message)
}
