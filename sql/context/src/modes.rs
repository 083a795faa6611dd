//! The modes of the open transaction, under the names of settings: `transaction_read_only`, `transaction_isolation`.

use super::backend::Mode;
use super::core::Core;
use clearway_engine::session::{Isolation, Session};
use clearway_syntax::error::{Result, SqlError};
use std::sync::atomic::Ordering::Relaxed;

/// Whether the isolation level of the open transaction may change.
///
/// # Errors
/// 25001: the transaction has queried, and what it saw fits the old level only; or there is a savepoint.
pub fn may_set_isolation(engine: &Session) -> Result<()> {
    if engine.has_queried() {
        return Err(SqlError::new("25001", "SET TRANSACTION ISOLATION LEVEL must be called before any query"));
    }
    if engine.has_savepoint() {
        return Err(SqlError::new("25001", "SET TRANSACTION ISOLATION LEVEL must not be called in a subtransaction"));
    }
    Ok(())
}

/// Whether the open transaction, which is read-only, may become one that writes.
///
/// # Errors
/// 25001: the transaction has queried, or there is a savepoint.
pub fn may_write(engine: &Session) -> Result<()> {
    if engine.has_savepoint() {
        return Err(SqlError::new("25001", "cannot set transaction read-write mode inside a read-only transaction"));
    }
    if engine.has_queried() {
        return Err(SqlError::new("25001", "transaction read-write mode must be set before any query"));
    }
    Ok(())
}

impl Core {
    /// Judges a new value of such a setting before it is set; nothing to do for any other setting.
    ///
    /// # Errors
    /// 25001: the transaction has queried, and what it saw fits the old value only. 0A000: serializable.
    pub(super) fn check_mode(&self, name: &str, value: Option<&str>) -> Result<()> {
        if name.eq_ignore_ascii_case("transaction_read_only") {
            let writes = value.is_some_and(|v| matches!(v.to_ascii_lowercase().as_str(), "off" | "false" | "no" | "0"));
            let engine = self.engine.take();
            if writes && engine.is_open() && engine.options().read_only {
                may_write(&engine)?;
            }
        } else if name.eq_ignore_ascii_case("transaction_isolation") {
            let same = value.is_some_and(|v| self.settings.lock().get("transaction_isolation").eq_ignore_ascii_case(v));
            let settings = self.settings.lock();
            if value.is_some_and(|v| v.eq_ignore_ascii_case("serializable"))
                && settings.get("serializable") != "snapshot"
            {
                return Err(SqlError::unsupported("the isolation level SERIALIZABLE")
                    .hint("Set serializable = snapshot to run such transactions as REPEATABLE READ."));
            }
            drop(settings);
            let engine = self.engine.take();
            if !same && engine.is_open() {
                may_set_isolation(&engine)?;
            }
        }
        Ok(())
    }

    /// The setting has its new value: so has the transaction.
    pub(super) fn apply_mode(&self, name: &str) {
        if !name.get(..12).is_some_and(|start| start.eq_ignore_ascii_case("transaction_")) {
            return;
        }
        let (isolation, read_only) = self.settings.lock().modes();
        let mut engine = self.engine.take();
        if !engine.is_open() {
            return;
        }
        let repeatable = if isolation == "read committed" { 0 } else { Mode::REPEATABLE };
        let block = self.backend.mode.load(Relaxed) & Mode::BLOCK;
        self.backend.mode.store(repeatable | (u8::from(read_only) * Mode::READ_ONLY) | block, Relaxed);
        let mut options = engine.options();
        options.read_only = read_only;
        options.isolation = match isolation {
            "repeatable read" | "serializable" => Isolation::RepeatableRead,
            _ => Isolation::ReadCommitted,
        };
        engine.set_options(options);
    }
}
