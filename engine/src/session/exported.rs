//! A session exports and imports snapshots.

use clearway_txn::mvcc::book::View;
use clearway_txn::mvcc::snapshots::Reader;

use super::{Isolation, Session};
use crate::exported::Export;

/// Why a transaction can't import a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImportRefused {
    /// It has had a snapshot, or has changed something, or has a savepoint.
    NotFirst,
    /// Each of its statements takes a snapshot.
    ReadCommitted,
    /// No snapshot has that id.
    Unknown,
    /// It is serializable, and the transaction that exported the snapshot is not.
    NotSerializable,
    /// It is serializable and writes, and the transaction that exported the snapshot is read-only.
    ReadOnly,
    /// The snapshot is that of a session of another database.
    OtherDatabase,
}

impl Session {
    /// Exports the snapshot at which a view reads, until the open transaction ends; its id. `serializable`: whether the transaction is called that.
    ///
    /// # Panics
    /// If no transaction is open.
    pub fn export_snapshot(&mut self, view: &View, serializable: bool) -> String {
        assert!(self.txn.is_some(), "XPT-1: an export ends with its transaction");
        let reader = match self.reader.lend(view.read_lsn) {
            Some(reader) => reader,
            None => self.lend_newest(),
        };
        let (database, read_only) = (self.database, self.options.read_only);
        let export = Export { reader, database, serializable, read_only };
        self.db.exported().add(&mut self.exported, self.owner.id(), export)
    }

    /// A view that no open snapshot protects: what is committed now stands for it.
    fn lend_newest(&mut self) -> Reader {
        let newest = self.open_newest();
        let reader = self.reader.lend(newest.view.read_lsn).expect("SNP-4: it is open");
        self.close_statement(newest);
        reader
    }

    /// The open transaction reads from now on at the snapshot that another one has exported. `serializable`: whether the transaction is called that.
    ///
    /// # Errors
    /// The first reason that holds, in the order of `ImportRefused`; nothing has changed then.
    ///
    /// # Panics
    /// If no transaction is open.
    pub fn import_snapshot(&mut self, id: &str, serializable: bool) -> Result<(), ImportRefused> {
        let changed = self.txn().id().is_some();
        if changed || self.queried || self.in_savepoint || self.reader.open() > 0 {
            return Err(ImportRefused::NotFirst);
        }
        let (database, options, reader) = (self.database, self.options, &mut self.reader);
        if options.isolation != Isolation::RepeatableRead {
            return Err(ImportRefused::ReadCommitted);
        }
        let joined = self.db.exported().import(id, |export| {
            if serializable && !export.serializable {
                Err(ImportRefused::NotSerializable)
            } else if serializable && export.read_only && !options.read_only {
                Err(ImportRefused::ReadOnly)
            } else if export.database != database {
                Err(ImportRefused::OtherDatabase)
            } else {
                reader.join(&export.reader).ok_or(ImportRefused::NotFirst)
            }
        });
        let kept = joined.unwrap_or(Err(ImportRefused::Unknown))?;
        self.kept = Some(kept);
        self.queried = true;
        self.depends_on(kept.read_lsn); // XPT-3
        let over_shown = self.two_rows;
        self.txn().set_snapshot(kept.read_lsn, over_shown);
        Ok(())
    }

    /// The transaction ends: so do its exports.
    #[inline]
    pub(super) fn withdraw_exports(&mut self) {
        if !self.exported.is_empty() {
            let own = std::mem::take(&mut self.exported);
            self.db.exported().withdraw(own, self.owner.id());
        }
    }
}
